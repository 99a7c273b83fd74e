"""Table files, and data sets of Arrow, which must not change while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from certree.tables.arrow import pa
from certree.tables.column_names import expect_known_columns
from certree.tables.column_types import InferredColumns, list_stored_columns
from certree.tables.table_source import TableSource

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq", ".arrow", ".feather")
_EXPECTED = ".csv, .csv.gz, .tsv, .parquet, .arrow or .feather"
# Functions of pandas that read other formats, by suffix.
_PANDAS_READERS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "read_excel"),
    ".json": "read_json",
    ".dta": "read_stata",
    ".sav": "read_spss",
    ".sas7bdat": "read_sas",
}
# Numbers of row groups or batches of a file, or of fragments of a data set; None: all.
Piece = list[int] | None


def list_files(source: Any) -> list[Path]:
    """List the table files of a source: a file, a folder with its subfolders, or a list of these.

    Files of a folder are in the order of their names. Files are left out if their name, or that of
    their folder, begins with a dot or an underscore, and if their suffix is none of CSV, Parquet
    and Arrow files. Raise FileNotFoundError if a path does not exist, and ValueError if a file has
    another suffix, or a folder has no table file.
    """
    if isinstance(source, list | tuple):
        return [file for one in source for file in list_files(one)]
    place = Path(source)
    if not place.is_dir():
        if not place.is_file():
            raise FileNotFoundError(f"no such file or folder: {place}. Check the path")
        find_suffix(place, SUFFIXES, _EXPECTED)
        return [place]
    try:
        found = sorted(place.rglob("*"))
        os.listdir(place)
    except OSError as error:
        raise type(error)(error.errno, f"cannot be read: {error.strerror}", str(place)) from None
    files = [
        one
        for one in found
        if one.is_file()
        and one.name.lower().endswith(SUFFIXES)
        and not any(part.startswith((".", "_")) for part in one.relative_to(place).parts)
    ]
    if not files:
        raise ValueError(f"the folder {place} holds no {_EXPECTED} file: check the path")
    return files


def name_range(names: Sequence[str]) -> str:
    """Return the name of files for messages: that of a single file, or "FIRST .. LAST" for several.

    names: names of the files, at least one, in the order in which they are read.
    """
    first, last = names[0], names[-1]
    return first if first == last else f"{first} .. {last}"


def find_suffix(file: Path, known: Iterable[str], expected: str) -> str:
    """Return the suffix of a file's name, such as ".csv.gz", in lower case.

    file: the path. known: supported suffixes, of which the first that the name ends in is returned.
    expected: words that list them in the message. Raise a ValueError if no supported suffix
    matches.
    """
    for suffix in known:
        if file.name.lower().endswith(suffix):
            return suffix
    remedy = ""
    is_input = known is SUFFIXES
    if is_input and (function := _PANDAS_READERS.get(file.suffix.lower())):
        remedy = f": read it by pandas.{function} and pass the data frame to fit, or save it as CSV"
    raise ValueError(f"the name of the file must end in {expected}, got {file}{remedy}")


def get_stem(path: str | os.PathLike[str]) -> str:
    """Return the name of a table's file without folder and suffix: "b" for the path "a/b.csv.gz".

    Raise ValueError if the suffix is none of the table files that certree reads.
    """
    file = Path(path)
    return file.name[: -len(find_suffix(file, SUFFIXES, _EXPECTED))]


class FileState(NamedTuple):
    """Size, time and inode of a file, by which a changed or replaced file is noticed.

    The time at which the file's permissions changed (ctime) is not used.

    Parameters
    ----------
    size : int
        Size in bytes.
    time : int
        Time of the last write, in nanoseconds.
    number : int or None
        Inode: number of the file on its file system, which a copy of the file does not share. None
        after the object was sent to another process, whose machine may number files otherwise.
    """

    size: int
    time: int
    number: int | None

    @classmethod
    def read(cls, path: str | Path) -> FileState:
        """Return the present state of the file at `path`; raise FileNotFoundError if there is none."""
        found = os.stat(path)
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)

    def is_state_of(self, path: str | Path) -> bool:
        """Return whether the file at `path` still has this size, time and inode (if it is known).

        Raise FileNotFoundError if there is no such file.
        """
        now = FileState.read(path)
        return now[:2] == self[:2] and self.number in (None, now.number)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileState, (self.size, self.time, None)


class TableFile:
    """A table file, which each method opens and closes again; there is a subclass for each format.

    A subclass must define `_infer_columns` and `_batches`, and may override `_names`, `_pieces` and
    `_held`, whose results are those of the methods without underscore. All methods raise ValueError
    or FileNotFoundError, with the name of the file, if it cannot be read or has changed since the
    constructor recorded its state.

    Parameters
    ----------
    name : str
        Name of the file in messages.
    source : TableSource
        Options of reading that the user has stated, such as columns to drop.
    paths : sequence of path
        The path of the file; several for a data set; none for text in memory.
    is_limited : bool
        Whether the fit has a memory limit, so that the file is read in small blocks by one thread.

    Attributes
    ----------
    states : dict of path to FileState
        State of each of `paths` when it was opened first.
    """

    # Whether the file is CSV, which does not state the types of its columns.
    is_text = False

    def __init__(
        self,
        name: str,
        source: TableSource,
        paths: Sequence[str | Path] = (),
        is_limited: bool = False,
    ) -> None:
        self.name, self.source, self._is_limited = name, source, is_limited
        self.states = {path: FileState.read(path) for path in paths}
        self._known_held: dict[tuple[str, ...], int] = {}

    @property
    def n_bytes(self) -> int:
        """Size of the file in bytes; of a data set that of all its files; 0 for text in memory."""
        return sum(state.size for state in self.states.values())

    def names(self) -> list[str]:
        """Return the names of the columns to read, without a pandas index and those of `drop`."""
        with self._errors_named():
            return [*self._drop_columns(dict.fromkeys(self._names()))]

    def infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        """Return the inferred columns (types, missing-value markers) by name, and the number of rows.

        An `InferredColumn` has the possible Arrow types of a column, and the markers of missing
        values that occur. columns: names of the columns to inspect; None: all but those of `drop`.
        A CSV file is read as a whole; other files state their types, and return all columns,
        whatever this argument is.
        """
        with self._errors_named():
            seen, n_rows = self._infer_columns(columns)
        return (seen if columns is not None else self._drop_columns(seen)), n_rows

    def pieces(self, n_rows: int) -> list[Piece]:
        """Return pieces of the file that can be read separately, of about n_rows rows each.

        A piece is a value of the argument `piece` of `batches`: a list of indices of row groups,
        record batches or fragments, or None for a whole file that cannot be divided. A row group
        with more rows is a piece of its own.
        """
        with self._errors_named():
            return self._pieces(n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Yield `pyarrow.RecordBatch` objects of at most n_rows rows each.

        columns: names of the columns to read. piece: an element of the result of `pieces`; None:
        all rows.
        """
        return (batch for batch, _ in self.batches_with_progress(columns, n_rows, piece))

    def batches_with_progress(
        self, columns: list[str], n_rows: int, piece: Piece = None
    ) -> Iterator[tuple[Any, float]]:
        """Yield the rows as `pyarrow.RecordBatch` objects, each with the fraction of the file read.

        The fraction is a number from 0 to 1. columns: names of the columns to read. n_rows: largest
        number of rows of a batch. piece: an element of the result of `pieces`; None: all rows.
        """
        self.expect_unchanged()
        read = self._batches(columns, n_rows, piece)
        while True:
            with self._errors_named():
                found = next(read, None)
            # Rows of a changed file are not passed on: they would be mixed with earlier rows.
            self.expect_unchanged()
            if found is None:
                return
            yield found

    def held(self, columns: list[str]) -> int:
        """Estimate the memory, in bytes, that reading takes besides the record batches themselves.

        The estimate is for reading in small blocks, as files are read if the fit has a memory
        limit. columns: names of the columns to read.
        """
        known = tuple(columns)
        if known not in self._known_held:
            with self._errors_named():
                self._known_held[known] = self._held(columns)
        return self._known_held[known]

    def expect_unchanged(self) -> None:
        """Raise ValueError, or FileNotFoundError, if the file has changed since it was opened first."""
        for path, before in self.states.items():
            try:
                is_same = before.is_state_of(path)
            except FileNotFoundError:
                raise FileNotFoundError(
                    f"{path} was removed while it was read: keep the file until the end"
                ) from None
            if not is_same:
                raise ValueError(
                    f"{path} has changed while it was read: do not write to it before the end"
                )

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Turn errors of Arrow in the body of a with statement into ValueErrors that name the file.

        If the file has changed since it was opened first, the message says so instead; raise
        FileNotFoundError if it was removed.
        """
        try:
            yield
        except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
            self.expect_unchanged()
            raise ValueError(f"{self.name} could not be read: {error}") from error

    def _drop_columns(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of the file, by name, without those that the option `drop` names.

        columns: any value, which is kept, for each column of the file, by name. Raise a ValueError
        if `drop` names a column that the file does not have.
        """
        expect_known_columns("drop", self.source.drop, columns, self.name)
        return {name: one for name, one in columns.items() if name not in self.source.drop}

    def _names(self) -> Iterable[str]:
        return self._infer_columns()[0]

    def _infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        raise NotImplementedError

    def _pieces(self, n_rows: int) -> list[Piece]:  # noqa: ARG002 -- a file that cannot be divided
        return [None]

    def _batches(
        self, columns: list[str], n_rows: int, piece: Piece
    ) -> Iterator[tuple[Any, float]]:
        raise NotImplementedError

    def _held(self, columns: list[str]) -> int:
        raise NotImplementedError


class DataSet(TableFile):
    """A data set of Arrow, which is read as if it were one file.

    Parameters
    ----------
    source : TableSource
        The data set, with options of reading. Only options about columns, such as `drop`, are used.
    """

    def __init__(self, source: TableSource) -> None:
        self._given = source.source
        files = getattr(self._given, "files", [])
        if hasattr(self._given, "files") and not files:
            raise ValueError(
                "X must be a pyarrow data set with at least one file, got one without files: check "
                "the path and the filter with which it was opened"
            )
        super().__init__("the data set", source, [one for one in files if os.path.exists(one)])

    def _infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        del columns
        return list_stored_columns(self._given.schema), self._n_rows

    def _pieces(self, n_rows: int) -> list[Piece]:
        del n_rows
        return [[i] for i, _ in enumerate(self._given.get_fragments())]

    def _batches(
        self, columns: list[str], n_rows: int, piece: Piece
    ) -> Iterator[tuple[Any, float]]:
        fragments, how = [self._given], {}
        if piece is not None:
            every = [*self._given.get_fragments()]
            fragments, how = [every[i] for i in piece], {"schema": self._given.schema}
        n_read = 0
        for fragment in fragments:
            for batch in fragment.to_batches(columns=columns, batch_size=n_rows, **how):
                n_read += len(batch)
                yield batch, n_read / max(self._n_rows, 1)

    @cached_property
    def _n_rows(self) -> int:
        return int(self._given.count_rows())
