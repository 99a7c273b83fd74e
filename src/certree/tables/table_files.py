"""Files with rows, standard input and data sets of Arrow. They must not change while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from certree.interface.extras import import_extra
from certree.tables.arrow import pa
from certree.tables.column_evidence import TextCounts
from certree.tables.column_names import expect_known_columns
from certree.tables.column_types import InferredColumns, list_stored_columns
from certree.tables.csv_text import (
    STANDARD_INPUT,
    STANDARD_STREAM,
    CsvReading,
    get_display_name,
    get_usual_separator,
    read_standard_input,
)
from certree.tables.formats import CsvFormat, Format, Piece, get_format
from certree.tables.table_source import wrap_source

_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq", ".arrow", ".feather")
_EXPECTED = ".csv, .csv.gz, .tsv, .parquet, .arrow or .feather"


def is_data_set(source: Any) -> bool:
    """Return whether a source is a `pyarrow.dataset.Dataset`, not a path or a list of paths."""
    return not isinstance(source, str | os.PathLike | list | tuple)


def open_files(source: Any, is_limited: bool = False) -> Sequence[TableFile | DataSet]:
    """Return the files of a source, in the order in which they are read.

    Parameters
    ----------
    source : path, list of paths, TableSource or pyarrow.dataset.Dataset
        Files, or folders of files; "-" is CSV from standard input, which is read here.
    is_limited : bool
        Whether the fit has a memory limit.

    Returns
    -------
    sequence of TableFile or DataSet
        One object for each file; a single one for a data set or standard input.

    Raises
    ------
    FileNotFoundError, ValueError
        If a file does not exist or has no supported suffix, or a folder has no such file; if memory
        is limited, and the source is a data set or standard input.
    """
    import_extra("pyarrow", "files")  # Its absence is the first error.
    options = wrap_source(source)
    source = options.source
    is_stream = str(source) == STANDARD_STREAM
    if is_limited and (is_data_set(source) or is_stream):
        reason = f"{STANDARD_INPUT}: it is held in memory"
        if not is_stream:
            reason = "a data set: pyarrow reads ahead in these"
        raise ValueError(f"memory_limit takes paths of files, got {reason}")
    if is_data_set(source):
        return [DataSet(source, CsvReading(options))]
    if is_stream:
        return [StandardInput(CsvReading(options))]
    return [open_file(path, is_limited, CsvReading(options)) for path in list_files(source)]


def list_files(source: Any) -> list[Path]:
    """List the table files of a source: a file, a folder with its subfolders, or a list of these.

    Files of a folder are in the order of their names. Those whose name, or folder's name, begins
    with a dot or an underscore, and those with other suffixes than CSV, Parquet and Arrow files,
    are left out. Raise FileNotFoundError if a path does not exist; ValueError if a file has another
    suffix, or a folder has no table file.
    """
    if isinstance(source, list | tuple):
        return [file for one in source for file in list_files(one)]
    place = Path(source)
    if not place.is_dir():
        if not place.is_file():
            raise FileNotFoundError(f"no such file or folder: {place}")
        find_suffix(place, _SUFFIXES, _EXPECTED)
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
        and one.name.lower().endswith(_SUFFIXES)
        and not any(part.startswith((".", "_")) for part in one.relative_to(place).parts)
    ]
    if not files:
        raise ValueError(f"the folder {place} holds no {_EXPECTED} file")
    return files


def name_range(names: Sequence[str]) -> str:
    """Return the name of a file for messages; of several files "FIRST .. LAST"."""
    first, last = names[0], names[-1]
    return first if first == last else f"{first} .. {last}"


def find_suffix(file: Path, known: Iterable[str], expected: str) -> str:
    """Return the suffix of a file's name, such as ".csv.gz", in lower case.

    file: the path; known: supported suffixes, of which the first that the name ends in is returned;
    expected: text of the error message that lists them. Raise ValueError if no supported suffix
    matches.
    """
    for suffix in known:
        if file.name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"the name of the file must end in {expected}, got {file}")


def get_stem(path: str | os.PathLike[str]) -> str:
    """Return the name of a table's file without folder and suffix: "b" for the path "a/b.csv.gz".

    Raise ValueError if the suffix is none of the table files that certree reads.
    """
    file = Path(path)
    return file.name[: -len(find_suffix(file, _SUFFIXES, _EXPECTED))]


class FileState(NamedTuple):
    """Size, time and number of a file, by which a changed or replaced file is noticed.

    The time of a change of rights (ctime) is not among them.

    Parameters
    ----------
    size, time : int
        Bytes, and time of the last write in nanoseconds.
    number : int or None
        Number of the file on its file system (inode), which copies of other names do not share. None
        after it was sent to another process, whose machine may number files otherwise.
    """

    size: int
    time: int
    number: int | None

    @classmethod
    def read(cls, path: str | Path) -> FileState:
        """Return the present state of a file; raise FileNotFoundError if it does not exist."""
        found = os.stat(path)
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)

    def is_state_of(self, path: str | Path) -> bool:
        """Return whether a file still has this state."""
        now = FileState.read(path)
        return now[:2] == self[:2] and self.number in (None, now.number)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileState, (self.size, self.time, None)


@dataclass(slots=True)
class TableFile:
    """A table file, which each method opens and closes again.

    `open_file` makes an instance, and so records the state of the file. All methods raise
    ValueError or FileNotFoundError, with the name of the file, if it cannot be read or has changed
    since it was opened first.

    Parameters
    ----------
    path : Path
        The file.
    format : type
        The subclass of `Format` that reads it.
    before : FileState
        Its state when it was opened first.
    is_limited : bool
        Whether the fit has a memory limit, so that the file is read in small blocks.
    reading : CsvReading
        Options of reading, and how a CSV file is read.
    """

    path: Path
    format: type[Format]
    before: FileState
    is_limited: bool = False
    reading: CsvReading = field(default_factory=CsvReading)
    _held: dict[tuple[str, ...], int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the path, or "standard input", for messages."""
        return get_display_name(self.path)

    @property
    def n_bytes(self) -> int:
        """Return the size of the file in bytes."""
        return self.before.size

    @property
    def is_text(self) -> bool:
        """Return whether the file is CSV, which does not state the types of its columns."""
        return issubclass(self.format, CsvFormat)

    @property
    def separator(self) -> str:
        """The usual separator of CSV files with the suffix of this file."""
        return get_usual_separator(self.path)

    def names(self) -> list[str]:
        """Return the names of the columns, without a stored pandas index and columns to leave out."""
        with self._errors_named():
            names = self._open().names()
        return [*_drop_columns(dict.fromkeys(names), self)]

    def infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        """Return types and missing-value markers of columns, by name, and the number of rows.

        columns: names of the columns to inspect; None: all. A CSV file is read as a whole for it;
        other files return all columns, whatever this argument is.
        """
        with self._errors_named():
            seen, n_rows = self._open().infer_columns(columns)
        return (seen if columns is not None else _drop_columns(seen, self)), n_rows

    def count_texts(self, columns: Sequence[str]) -> dict[str, TextCounts]:
        """Return counts of the texts of columns of a CSV file, by name."""
        with self._errors_named():
            opened: Any = self._open()
            counts: dict[str, TextCounts] = opened.count_texts(columns)
        return counts

    def pieces(self, n_rows: int) -> list[Piece]:
        """Return pieces of the file that can be read separately; see `Format.pieces`.

        n_rows: largest number of rows of a piece, unless a row group is larger.
        """
        with self._errors_named():
            return self._open().pieces(n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Yield `pyarrow.RecordBatch` objects of at most n_rows rows each.

        columns: names of the columns to read. piece: an element of the result of `pieces`; None:
        all rows.
        """
        return (batch for batch, _ in self.batches_with_progress(columns, n_rows, piece))

    def batches_with_progress(
        self, columns: list[str], n_rows: int, piece: Piece = None
    ) -> Iterator[tuple[Any, float]]:
        """Yield the record batches of `batches`, each with the fraction of the file read so far.

        The fraction is in 0 to 1. The parameters are those of `batches`.
        """
        self.expect_unchanged()
        self.reading.exceptions.clear()
        with self._errors_named():
            opened = self._open()
        read = opened.batches(columns, n_rows, piece)
        while True:
            with self._errors_named():
                batch = next(read, None)
            # Rows of a changed file are not passed on: they would be mixed with earlier rows.
            self.expect_unchanged()
            if batch is None:
                self.reading.expect_few_exceptions(self.name)
                return
            yield batch, opened.fraction_read

    def held(self, columns: list[str]) -> int:
        """Estimate the memory, in bytes, that reading takes besides the record batches themselves.

        The estimate is for reading with `is_limited`. columns: names of the columns to read.
        """
        known = tuple(columns)
        if known not in self._held:
            with self._errors_named():
                self._held[known] = self._open().held(columns)
        return self._held[known]

    def _open(self) -> Format:
        return self.format(self.path, self.is_limited, self.reading)

    def expect_unchanged(self) -> None:
        """Raise ValueError, or FileNotFoundError, if the file has changed since it was opened first."""
        try:
            is_same = self.before.is_state_of(self.path)
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path} went away while it was read") from None
        if not is_same:
            raise ValueError(
                f"{self.path} has changed while it was read: do not write to it before the end"
            )

    def _errors_named(self) -> _ErrorsNamed:
        """Return a context manager that names this file in errors of Arrow."""
        return _ErrorsNamed(self)


def _drop_columns(columns: dict[str, Any], file: TableFile | DataSet) -> dict[str, Any]:
    """Return columns of a file by name, without those that an option leaves out.

    Raise ValueError if the file does not have such a column.
    """
    drop = file.reading.options.drop
    expect_known_columns("drop", drop, columns, file.name)
    return {name: column for name, column in columns.items() if name not in drop}


class _ErrorsNamed:
    """Turns errors in the body of a with statement into ValueErrors that name the file."""

    def __init__(self, file: TableFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        arrow = pa
        if isinstance(error, arrow.ArrowException | OSError | EOFError | UnicodeDecodeError):
            self._file.expect_unchanged()
            raise ValueError(f"{self._file.name} could not be read: {error}") from error


class StandardInput(TableFile):
    """CSV from standard input, which the constructor (without arguments) reads into memory."""

    __slots__ = ("_content",)

    def __init__(self, reading: CsvReading) -> None:
        super().__init__(Path(STANDARD_STREAM), CsvFormat, FileState(1, 0, None), reading=reading)
        self._content = read_standard_input()

    def _open(self) -> Format:
        return CsvFormat(self.path, reading=self.reading, content=self._content)

    def expect_unchanged(self) -> None:
        """Do nothing: the text is in memory."""


class DataSet:
    """A data set of Arrow, which is read as if it were one file, with the methods of `TableFile`.

    Parameters
    ----------
    given : pyarrow.dataset.Dataset
        The data set.
    reading : CsvReading
        Options of reading, of which those on columns count.

    Attributes
    ----------
    name : str
        Its name in messages.
    n_bytes : int
        1, as its size, which only measures progress, is not known.
    is_text : bool
        Whether columns have no types: False, as Arrow gives them types.
    """

    name, n_bytes, is_text = "the data set", 1, False

    def __init__(self, given: Any, reading: CsvReading) -> None:
        self._given, self.reading = given, reading
        files = getattr(given, "files", [])
        self._before = {one: FileState.read(one) for one in files if os.path.exists(one)}
        if hasattr(given, "files") and not files:
            raise ValueError("the data set has no files")

    def names(self) -> list[str]:
        """Return the names of the columns, without a stored pandas index."""
        return [*_drop_columns(list_stored_columns(self._given.schema), self)]

    def infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        """Return the type of each column, by name, and the number of rows; columns: not used."""
        del columns
        return _drop_columns(list_stored_columns(self._given.schema), self), self._n_rows

    def pieces(self, n_rows: int) -> list[Piece]:  # noqa: ARG002 -- as for files
        """Return the pieces that can be read separately: a list of one index for each fragment.

        n_rows: not used.
        """
        return [[i] for i, _ in enumerate(self._given.get_fragments())]

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Yield `pyarrow.RecordBatch` objects of at most n_rows rows each.

        columns: names of the columns to read. piece: an element of the result of `pieces`; None:
        all rows.
        """
        self.expect_unchanged()
        if piece is None:
            yield from self._given.to_batches(columns=columns, batch_size=n_rows)
            return
        every = [*self._given.get_fragments()]
        for i in piece:
            how = {"schema": self._given.schema, "columns": columns, "batch_size": n_rows}
            yield from every[i].to_batches(**how)

    def batches_with_progress(self, columns: list[str], n_rows: int) -> Iterator[tuple[Any, float]]:
        """Yield the record batches of all rows, each with the fraction of the rows read so far."""
        n_read = 0
        for batch in self.batches(columns, n_rows):
            n_read += len(batch)
            yield batch, n_read / max(self._n_rows, 1)

    @cached_property
    def _n_rows(self) -> int:
        return int(self._given.count_rows())

    def expect_unchanged(self) -> None:
        """Raise ValueError if a file has changed or is gone since this object was made."""
        for file, before in self._before.items():
            if not os.path.exists(file) or not before.is_state_of(file):
                raise ValueError(
                    f"{file} has changed while it was read: do not write to it before the end"
                )


def open_file(path: Path, is_limited: bool = False, reading: CsvReading | None = None) -> TableFile:
    """Return a file, whose suffix states its format.

    is_limited: whether memory is limited; reading: how CSV is read; None: all is detected.
    """
    how = CsvReading() if reading is None else reading
    return TableFile(path, get_format(path), FileState.read(path), is_limited, how)
