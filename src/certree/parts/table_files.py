"""Files of rows and data sets of Arrow, which must stay as they are while they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from certree.interface.extras import import_extra
from certree.parts.arrow_types import without_index
from certree.parts.formats import Format, Piece, format_of

if TYPE_CHECKING:
    import pyarrow as pa

_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".csv.gz", ".csv", ".tsv.gz", ".tsv")
_EXPECTED = ".parquet, .arrow, .feather, .csv, .csv.gz or .tsv"


def files_of(given: Any) -> list[Path]:
    """The files of a path, of those in a folder below it, or of a list; in the order of their names."""
    if isinstance(given, list | tuple):
        return [file for one in given for file in files_of(one)]
    place = Path(given)
    if place.is_dir():
        try:
            found = sorted(place.rglob("*"))
            os.listdir(place)
        except OSError as error:
            raise type(error)(
                error.errno, f"cannot be read: {error.strerror}", str(place)
            ) from None
        hidden = (".", "_")
        files = [
            one
            for one in found
            if one.is_file()
            and one.name.lower().endswith(_SUFFIXES)
            and not any(part.startswith(hidden) for part in one.relative_to(place).parts)
        ]
        if not files:
            raise ValueError(f"the folder {place} holds no {_EXPECTED} file")
        return files
    if not place.is_file():
        raise FileNotFoundError(f"no such file or folder: {place}")
    if not place.name.lower().endswith(_SUFFIXES):
        raise ValueError(f"expected a {_EXPECTED} file, got {place}")
    return [place]


class FileState(NamedTuple):
    """What tells that a file is another one than before; its ctime alone, as of new rights, does not.

    Parameters
    ----------
    size, time : int
        Bytes, and when they were written last.
    number : int or None
        Number of the file on its file system (inode), which copies of other names do not share. None
        after it was sent to another process, whose machine may number files otherwise.
    """

    size: int
    time: int
    number: int | None

    @classmethod
    def of(cls, path: str | Path) -> FileState:
        """Read the state of a file."""
        found = os.stat(path)
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)

    def is_of(self, path: str | Path) -> bool:
        """Whether a file still has this state."""
        now = FileState.of(path)
        return now[:2] == self[:2] and self.number in (None, now.number)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileState, (self.size, self.time, None)


@dataclass(slots=True)
class TableFile:
    """One file, and what it was like when it was looked at first."""

    path: Path
    format: type[Format]
    before: FileState
    is_limited: bool = False
    _held: dict[tuple[str, ...], int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What errors call it."""
        return str(self.path)

    def look(self) -> tuple[pa.Schema, int]:
        """Its columns, and how many rows it has."""
        with self._reading():
            schema, n_rows = self._opened().look()
            return without_index(schema), n_rows

    def pieces(self, n_rows: int) -> list[Piece]:
        """What can be read apart, of about so many rows each."""
        with self._reading():
            return self._opened().pieces(n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Batches of all, or of a piece, of at most so many rows."""
        self.expect_unchanged()
        read = self._opened().batches(columns, n_rows, piece)
        while True:
            with self._reading():
                batch = next(read, None)
            # No rows of a changed file go on: they would be a mixture with those before.
            self.expect_unchanged()
            if batch is None:
                return
            yield batch

    def held(self, columns: list[str]) -> int:
        """Bytes that reading some columns takes at a time, beside the rows that are read."""
        known = tuple(columns)
        if known not in self._held:
            with self._reading():
                self._held[known] = self._opened().held(columns)
        return self._held[known]

    def _opened(self) -> Format:
        return self.format(self.path, self.is_limited)

    def expect_unchanged(self) -> None:
        """Refuse a file that has changed since the first look."""
        try:
            is_same = self.before.is_of(self.path)
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path} went away while it was read") from None
        if not is_same:
            raise ValueError(f"{self.path} has changed while it was read")

    def _reading(self) -> _Reading:
        return _Reading(self)


class _Reading:
    """Tells of which file an error is, and whether it has changed."""

    def __init__(self, file: TableFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        arrow = import_extra("pyarrow", "files")
        if isinstance(error, arrow.ArrowException | OSError | EOFError | UnicodeDecodeError):
            self._file.expect_unchanged()
            raise ValueError(f"{self._file.name} could not be read: {error}") from error


class DataSet:
    """A data set of Arrow."""

    def __init__(self, given: Any) -> None:
        self._given = given
        files = getattr(given, "files", [])
        self._before = {one: FileState.of(one) for one in files if os.path.exists(one)}
        if hasattr(given, "files") and not files:
            raise ValueError("the data set has no files")

    name = "the data set"

    def look(self) -> tuple[pa.Schema, int]:
        """Its columns, and how many rows it has."""
        return without_index(self._given.schema), self._given.count_rows()

    def pieces(self, n_rows: int) -> list[Piece]:  # noqa: ARG002 -- as of files
        """What can be read apart."""
        return [[i] for i, _ in enumerate(self._given.get_fragments())]

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Batches of all, or of a piece."""
        self.expect_unchanged()
        if piece is None:
            yield from self._given.to_batches(columns=columns, batch_size=n_rows)
            return
        every = [*self._given.get_fragments()]
        for i in piece:
            how = {"schema": self._given.schema, "columns": columns, "batch_size": n_rows}
            yield from every[i].to_batches(**how)

    def expect_unchanged(self) -> None:
        """Refuse files that have changed since the first look."""
        for file, before in self._before.items():
            if not os.path.exists(file) or not before.is_of(file):
                raise ValueError(f"{file} has changed while it was read")


def file_of(path: Path, is_limited: bool = False) -> TableFile:
    """A file of the format that its suffix names."""
    return TableFile(path, format_of(path), FileState.of(path), is_limited)
