"""Rows in files and in data sets of Arrow: read batch by batch, and never held together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import beside_each_other
from certree.interface.extras import needed
from certree.parts.chunks import Chunk
from certree.parts.memory_limit import PART_ROWS, RowsRead

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes of a file of text that are read at a time; and where memory is limited, as is the number of rows
# that are read at a time, and bytes of a column of Parquet.
_BLOCK, _SMALL_BLOCK, _FEW_ROWS, _BUFFER = 2**24, 2**20, 2**16, 2**16
# Pages of a column that are held at a time, of its words and of its values; bytes that most writers
# give them; rows that show how large they are; and how much larger others may be.
_PAGES, _PAGE, _FIRST_ROWS, _SPARE = 2, 2**20, 2**10, 1.3
# Blocks of text that are held at a time, with what is made of them.
_BLOCKS = 12
# Bytes of the object that a word becomes, beside what it says; and rows with words that are read at a
# time.
_OF_WORD, _FEW_WORDS = 150, 2**13
_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".csv.gz", ".csv", ".tsv.gz", ".tsv")
_EXPECTED = ".parquet, .arrow, .feather, .csv, .csv.gz or .tsv"
_MOST_BITS = 64  # of whole numbers
# Which row groups or batches of a file, or fragments of a data set; None: all.
Piece = list[int] | None


class FileRows:
    """Rows of files, or of a data set of Arrow, as parts of a fit.

    Parameters
    ----------
    X : path, list of paths, or pyarrow.dataset.Dataset
        Files, or a folder of them.
    y : str, list of str or None
        Name of the column that holds the target, or of those that hold several; None: there is none.
    weight : str or None
        Name of the column that holds the weights.
    part_rows : int
        Rows of a part.
    is_limited : bool
        Whether as little is held as can be, which takes more time.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If there are no such files, they cannot be read, or lack a column; if there is no type that
        holds all values of a column; if memory is limited, and it is not known what they take.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: Any = None,
        *,
        part_rows: int = PART_ROWS,
        is_limited: bool = False,
    ) -> None:
        needed("pyarrow", "files")
        y = one_or_several(y)
        for name, given in (("y", y), ("sample_weight", weight)):
            if given is not None and not isinstance(given, str | tuple):
                raise TypeError(
                    f"rows in files take the name of a column for {name}, got {type(given).__name__}"
                )
        if isinstance(weight, tuple):
            raise TypeError("rows in files take the name of a column for sample_weight, got tuple")
        self._y, self._weight, self.part_rows = y, weight, part_rows
        self._is_limited = is_limited
        is_set = not isinstance(X, str | os.PathLike | list | tuple)
        if is_set and is_limited:
            raise ValueError(
                "memory_limit takes paths of files, got a data set: pyarrow reads ahead in these"
            )
        self._tables: Sequence[_File | DataSet] = (
            [DataSet(X)] if is_set else [file_of(one, is_limited) for one in files_of(X)]
        )
        looks = [(one, *one.look()) for one in self._tables]
        self._schema = reduce(_joined, (look[:2] for look in looks))[1]
        self._n_rows = [look[2] for look in looks]
        named = [("y", one) for one in self._targets], [("sample_weight", weight)]
        for name, given in (pair for of_kind in named for pair in of_kind):
            if given is not None and given not in self._schema.names:
                raise ValueError(
                    f"{name}={given!r} is no column of {self._tables[0].name}; there are "
                    f"{', '.join(self._schema.names)}"
                )
        self.features = [one for one in self._schema.names if one not in self._beside()]
        if not self.features:
            raise ValueError(f"{self._tables[0].name} has no column beside y and sample_weight")
        self.has_weights = weight is not None

    @cached_property
    def about(self) -> RowsRead:
        """What reading takes where memory is limited."""
        columns = [*self.features, *self._beside()]
        files: Any = self._tables  # no data set, which are refused
        most = max(files, key=lambda one: one.held(columns))
        numbers = [one for one in columns if not _is_text(self._schema.field(one).type)]
        words = self._bytes_of_words([one for one in columns if one not in numbers])
        of_row = sum(_bytes_of(self._schema.field(one).type) for one in numbers)
        return RowsRead(
            self.n_rows,
            len(self.features),
            of_row + sum(words),
            sum(_OF_WORD + 2 * one for one in words),
            most.held(columns),
            most.name,
        )

    def _bytes_of_words(self, columns: list[str]) -> list[float]:
        """How many bytes a word of columns of text has, somewhat more than the first ones of a file."""
        schema = needed("pyarrow", "files").schema([self._schema.field(one) for one in columns])
        most = [0.0] * len(columns)
        for one in self._tables if columns else []:
            for batch in one.batches(columns, _FIRST_ROWS):
                sizes = [
                    column.nbytes / len(batch) for column in _as(batch, schema, one.name).columns
                ]
                most = [max(pair) for pair in zip(most, sizes, strict=True)]
                break
        return [_SPARE * one + 8 for one in most]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self._n_rows)

    @property
    def n_files(self) -> int:
        """Number of files; a data set is one."""
        return len(self._tables)

    @property
    def empty(self) -> pa.Table | None:
        """A table of the features without rows; None: some hold strings or categories."""
        kinds = [self._schema.field(one).type for one in self.features]
        if any(map(_is_text, kinds)):
            return None
        return self._schema.empty_table().select(self.features)

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """All rows, so many at a time as a part has; without X where targets alone are asked for."""
        columns = self._beside() if targets_only else [*self.features, *self._beside()]
        for table, where in self._in_parts(columns):
            yield self._chunk(table, where, with_features=not targets_only)

    def _chunk(self, table: pa.Table, where: str, *, with_features: bool = True) -> Chunk:
        weight = None
        if self._weight is not None:
            weight = _known("the column of weights", table, self._weight, where)
        columns = [_known("the target", table, one, where) for one in self._targets]
        y = columns[0] if len(columns) == 1 else beside_each_other(columns) if columns else None
        return Chunk(table.select(self.features) if with_features else None, y, weight, where)

    @property
    def n_parts(self) -> int:
        """How many partitions there are where workers of a cluster read them."""
        return len(self._pieces)

    @cached_property
    def _pieces(self) -> list[tuple[int, Piece]]:
        """What one worker reads at a time: of which file, and which pieces of it."""
        return [
            (i, piece) for i, one in enumerate(self._tables) for piece in one.pieces(self.part_rows)
        ]

    def partition(self, number: int) -> Any:
        """One of them, as what a worker computes that sees the files."""
        i, piece = self._pieces[number]
        alone = copy(self)
        alone.__dict__.pop("_pieces")
        alone._tables = [self._tables[i]]
        made = needed("dask", "dask").delayed(_read_by_worker, pure=False)
        return made(alone, piece, number)

    def piece(self, piece: Piece, number: int) -> Chunk:
        """The rows of a piece of the first file."""
        pa = needed("pyarrow", "files")
        table = self._tables[0]
        columns = [*self.features, *self._beside()]
        schema = pa.schema([self._schema.field(one) for one in columns])
        batches = table.batches(columns, self.part_rows, piece)
        read = [_as(batch, schema, table.name) for batch in batches]
        table.expect_unchanged()
        rows = pa.concat_tables([schema.empty_table(), *read])
        return self._chunk(rows, f"partition {number}, of {table.name}")

    @property
    def _most_at_a_time(self) -> tuple[int, float]:
        """Rows of a batch, and bytes of a part, which only words that are long make more of."""
        if not self._is_limited:
            return self.part_rows, np.inf
        few = _FEW_ROWS if self.about.of_words == 0 else _FEW_WORDS
        return min(self.part_rows, few), self.part_rows * self.about.of_row

    @property
    def _targets(self) -> tuple[str, ...]:
        """Names of the targets."""
        return self._y if isinstance(self._y, tuple) else () if self._y is None else (self._y,)

    def _beside(self) -> list[str]:
        """Columns that are no features, once each."""
        return [*dict.fromkeys(one for one in (*self._targets, self._weight) if one is not None)]

    def _in_parts(self, columns: list[str]) -> Iterator[tuple[pa.Table, str]]:
        pa = needed("pyarrow", "files")
        schema = pa.schema([self._schema.field(one) for one in columns])
        waiting: list[Any] = []
        n, places = 0, []
        batch_rows, most_bytes = self._most_at_a_time
        for one in self._tables:
            for batch in one.batches(columns, batch_rows):
                waiting.append(_as(batch, schema, one.name))
                places.append(one.name)
                n += len(batch)
                if n < self.part_rows and sum(each.nbytes for each in waiting) >= most_bytes:
                    yield pa.concat_tables(waiting), _named(places)
                    waiting, places, n = [], [], 0
                while n >= self.part_rows:
                    table = pa.concat_tables(waiting)
                    yield table.slice(0, self.part_rows), _named(places)
                    waiting, places = [table.slice(self.part_rows)], [one.name]
                    n = len(waiting[0])
            one.expect_unchanged()
        if n:
            yield pa.concat_tables(waiting), _named(places)


def one_or_several(y: Any) -> Any:
    """What `fit` is given as y, a list of names being a tuple of them, or the one that it holds.

    Raises
    ------
    ValueError, TypeError
        If a list is empty, holds something else than names, or one of them twice.
    """
    if not isinstance(y, list | tuple):
        return y
    wrong = [one for one in y if not isinstance(one, str)]
    if wrong:
        raise TypeError(f"y must hold names of columns, got one that is {type(wrong[0]).__name__}")
    if not y:
        raise ValueError("y must name at least one column, got none")
    twice = [one for i, one in enumerate(y) if one in y[:i]]
    if twice:
        raise ValueError(f"y must name each column once, got {twice[0]!r} twice")
    return y[0] if len(y) == 1 else tuple(y)


def _read_by_worker(rows: FileRows, piece: Piece, number: int) -> Chunk:
    try:
        return rows.piece(piece, number)
    except FileNotFoundError as error:
        error.add_note("every worker of the cluster must see the files by the paths that are given")
        raise


def _named(places: list[str]) -> str:
    first, last = places[0], places[-1]
    return first if first == last else f"{first} .. {last}"


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


# -- what holds rows


@dataclass(slots=True)
class _File:
    """One file, and what it was like when it was looked at first."""

    path: Path
    open: Callable[[Path, bool], _Opened]
    before: tuple[int, int]
    is_limited: bool = False
    _held: dict[tuple[str, ...], int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.path)

    def look(self) -> tuple[pa.Schema, int]:
        """Its columns, and how many rows it has."""
        with self._reading():
            schema, n_rows = self._opened().look()
            return _without_index(schema), n_rows

    def pieces(self, n_rows: int) -> list[Piece]:
        with self._reading():
            return self._opened().pieces(n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        self.expect_unchanged()
        with self._reading():
            yield from self._opened().batches(columns, n_rows, piece)

    def held(self, columns: list[str]) -> int:
        """Bytes that reading some columns takes at a time, beside the rows that are read."""
        known = tuple(columns)
        if known not in self._held:
            with self._reading():
                self._held[known] = self._opened().held(columns)
        return self._held[known]

    def _opened(self) -> _Opened:
        return self.open(self.path, self.is_limited)

    def expect_unchanged(self) -> None:
        try:
            now = _state(self.path)
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path} went away while it was read") from None
        if now != self.before:
            raise ValueError(f"{self.path} has changed while it was read")

    def _reading(self) -> _Reading:
        return _Reading(self.path)


class _Reading:
    """Tells of which file an error is."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        arrow = needed("pyarrow", "files")
        if isinstance(error, arrow.ArrowException | OSError | EOFError):
            raise ValueError(f"{self._path} could not be read: {error}") from error


class DataSet:
    """A data set of Arrow."""

    def __init__(self, given: Any) -> None:
        self._given = given
        files = getattr(given, "files", [])
        self._before = {one: _state(one) for one in files if os.path.exists(one)}
        if hasattr(given, "files") and not files:
            raise ValueError("the data set has no files")

    name = "the data set"

    def look(self) -> tuple[pa.Schema, int]:
        """Its columns, and how many rows it has."""
        return _without_index(self._given.schema), self._given.count_rows()

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
            if not os.path.exists(file) or _state(file) != before:
                raise ValueError(f"{file} has changed while it was read")


def _state(path: str | Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def file_of(path: Path, is_limited: bool = False) -> _File:
    """A file of the format that its suffix names."""
    name = path.name.lower()
    kind: Callable[[Path, bool], _Opened] = _Text
    if name.endswith((".parquet", ".pq")):
        kind = _Parquet
    elif name.endswith((".arrow", ".feather")):
        kind = _Arrow
    return _File(path, kind, _state(path), is_limited)


def _runs(sizes: list[int], n_rows: int) -> list[Piece]:
    """Pieces that stand beside each other, of at most so many rows or of one."""
    runs: list[list[int]] = []
    held = 0
    for i, n in enumerate(sizes):
        if not runs or held + n > n_rows:
            runs.append([])
            held = 0
        runs[-1].append(i)
        held += n
    return [*runs]


class _Opened:
    """A file of some format; where memory is limited it is read piece by piece, by one thread."""

    def __init__(self, path: Path, is_limited: bool) -> None:
        self._path, self._is_limited = path, is_limited

    def look(self) -> tuple[pa.Schema, int]:
        raise NotImplementedError

    def pieces(self, n_rows: int) -> list[Piece]:  # noqa: ARG002 -- of what cannot be divided
        return [None]

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        raise NotImplementedError

    def held(self, columns: list[str]) -> int:
        """Bytes that this takes at a time where memory is limited, beside the rows that are read."""
        raise NotImplementedError


class _Parquet(_Opened):
    def _file(self) -> Any:
        # Without a buffer all that is read of a row group is held, however few rows are asked for.
        how: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False}
        kind = needed("pyarrow.parquet", "files").ParquetFile
        return kind(self._path, **(how if self._is_limited else {}))

    def look(self) -> tuple[pa.Schema, int]:
        with self._file() as file:
            return file.schema_arrow, file.metadata.num_rows

    def pieces(self, n_rows: int) -> list[Piece]:
        with self._file() as file:
            about, n = file.metadata, file.num_row_groups
            return _runs([about.row_group(i).num_rows for i in range(n)], n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        how = {"row_groups": piece, "columns": columns, "use_threads": not self._is_limited}
        with self._file() as file:
            yield from file.iter_batches(n_rows, **how)

    def held(self, columns: list[str]) -> int:
        pa = needed("pyarrow", "files")
        with self._file() as file:
            about, largest = file.metadata, (0, 0, 0)
            for i in range(about.num_row_groups):
                group = about.row_group(i)
                chunks = [group.column(j) for j in range(group.num_columns)]
                sizes = [
                    one.total_uncompressed_size
                    for one in chunks
                    if one.path_in_schema.split(".")[0] in columns
                ]
                pages = sum(min(_PAGE, one) for one in sizes)
                largest = max(largest, (sum(sizes), pages, i))
            before, found = pa.total_allocated_bytes(), 0
            for _ in file.iter_batches(
                _FIRST_ROWS, row_groups=[largest[2]], columns=columns, use_threads=False
            ):
                found = pa.total_allocated_bytes() - before
                break
            buffers = 2 * _BUFFER * len(columns) + 8 * about.serialized_size
            return int(_SPARE * max(_PAGES * largest[1], found)) + buffers


class _Arrow(_Opened):
    def look(self) -> tuple[pa.Schema, int]:
        with needed("pyarrow", "files").memory_map(str(self._path)) as memory:
            file = needed("pyarrow.ipc", "files").open_file(memory)
            lengths = (len(file.get_batch(i)) for i in range(file.num_record_batches))
            return file.schema, sum(lengths)

    def pieces(self, n_rows: int) -> list[Piece]:
        with needed("pyarrow", "files").memory_map(str(self._path)) as memory:
            file = needed("pyarrow.ipc", "files").open_file(memory)
            return _runs([len(file.get_batch(i)) for i in range(file.num_record_batches)], n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        with needed("pyarrow", "files").memory_map(str(self._path)) as memory:
            file = needed("pyarrow.ipc", "files").open_file(memory)
            for i in range(file.num_record_batches) if piece is None else piece:
                batch = file.get_batch(i).select(columns)
                for start in range(0, len(batch), n_rows):
                    yield batch.slice(start, n_rows)

    def held(self, columns: list[str]) -> int:
        pa, most = needed("pyarrow", "files"), 0
        with pa.memory_map(str(self._path)) as memory:
            file = needed("pyarrow.ipc", "files").open_file(memory)
            for i in range(file.num_record_batches):
                # What is not compressed stays in the file.
                before = pa.total_allocated_bytes()
                batch = file.get_batch(i)
                most = max(most, pa.total_allocated_bytes() - before)
                del batch
        del columns
        return 2 * most


class _Text(_Opened):
    """CSV, whose types are those that all values have, wherever they stand."""

    def _read(self, **how: Any) -> Any:
        csv = needed("pyarrow.csv", "files")
        delimiter = "\t" if ".tsv" in self._path.name.lower() else ","
        return csv.open_csv(
            self._path,
            read_options=csv.ReadOptions(
                block_size=_SMALL_BLOCK if self._is_limited else _BLOCK,
                use_threads=not self._is_limited,
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, **how),
        )

    def look(self) -> tuple[pa.Schema, int]:
        pa, n_rows = needed("pyarrow", "files"), 0
        with self._read() as first:
            names = first.schema.names
        seen: dict[str, Any] = dict.fromkeys(names, pa.null())
        with self._read(column_types=dict.fromkeys(names, pa.string())) as blocks:
            for block in blocks:
                n_rows += len(block)
                for name in names:
                    seen[name] = _type_of_text(block.column(name), seen[name])
        return pa.schema(seen.items()), n_rows

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        del piece
        pa = needed("pyarrow", "files")
        types = dict.fromkeys(columns, pa.string())
        with self._read(column_types=types, include_columns=columns) as blocks:
            for block in blocks:
                for start in range(0, len(block), n_rows):
                    yield block.slice(start, n_rows)

    def held(self, columns: list[str]) -> int:
        del columns
        return _BLOCKS * _SMALL_BLOCK


def _type_of_text(column: Any, before: Any) -> Any:
    """The first of the types that text may mean, in their order, which holds all that has been seen."""
    pa = needed("pyarrow", "files")
    kinds = [pa.null(), pa.int64(), pa.float64(), pa.string()]
    if pa.types.is_boolean(before):
        kinds = [pa.bool_(), pa.string()]
    for kind in kinds[kinds.index(before) if before in kinds else 0 :]:
        if pa.types.is_null(kind):
            if column.null_count == len(column):
                return kind
            if _can_be(column, pa.bool_()) and not _can_be(column, pa.int64()):
                return pa.bool_()
        elif _can_be(column, kind):
            return kind
    return pa.string()


def _can_be(column: Any, kind: Any) -> bool:
    pa = needed("pyarrow", "files")
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


# -- types


def _without_index(schema: pa.Schema) -> pa.Schema:
    """Leave out what pandas has written as the index of its rows."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    kept = [one for one in schema if one.name not in index]
    names = [one.name for one in kept]
    if len(set(names)) < len(names):
        raise ValueError(f"the names of columns must differ, got {', '.join(names)}")
    return needed("pyarrow", "files").schema([one.remove_metadata() for one in kept])


def _is_text(kind: Any) -> bool:
    return _is_string(kind) or _is_dictionary(kind)


def _bytes_of(kind: Any) -> float:
    """Bytes of a number, and whether it is missing."""
    try:
        return (kind.bit_width + 1) / 8
    except ValueError:  # no number, which is refused where it is read
        return 16.0


def _is_string(kind: Any) -> bool:
    of = needed("pyarrow", "files").types
    if of.is_dictionary(kind):
        return _is_string(kind.value_type)
    return of.is_string(kind) or of.is_large_string(kind) or of.is_string_view(kind)


def _is_dictionary(kind: Any) -> bool:
    return bool(needed("pyarrow", "files").types.is_dictionary(kind))


def common_type(one: Any, other: Any) -> Any:
    """The type that holds all values of two; None: there is none."""
    pa = needed("pyarrow", "files")
    of = pa.types
    if one == other:
        return one
    if of.is_null(one) or of.is_null(other):
        return other if of.is_null(one) else one
    if _is_string(one) and _is_string(other):
        return pa.string()
    if of.is_dictionary(one) and of.is_dictionary(other):
        values = common_type(one.value_type, other.value_type)
        return None if values is None else pa.dictionary(pa.int32(), values)
    if of.is_integer(one) and of.is_integer(other):
        return _common_integer(one, other)
    if of.is_floating(one) and of.is_floating(other):
        return one if one.bit_width > other.bit_width else other
    for whole, real in ((one, other), (other, one)):
        if of.is_integer(whole) and of.is_floating(real) and whole.bit_width <= 32:
            return pa.float64()
    return None


def _common_integer(one: Any, other: Any) -> Any:
    pa = needed("pyarrow", "files")
    signed = [kind for kind in (one, other) if pa.types.is_signed_integer(kind)]
    bits = max(one.bit_width, other.bit_width)
    if len(signed) == 1:
        unsigned = other if signed[0] is one else one
        bits = max(signed[0].bit_width, 2 * unsigned.bit_width)
    if bits > _MOST_BITS:
        return None
    prefix = "int" if signed else "uint"
    return getattr(pa, f"{prefix}{bits}")()


def _joined(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    """The columns of two files, by name, with types that hold the values of both."""
    pa = needed("pyarrow", "files")
    (before, schema), (file, more) = one, other
    for has, lacks, names in ((before, file, more.names), (file, before, schema.names)):
        of = schema if has is before else more
        missing = [name for name in of.names if name not in names]
        if missing:
            raise ValueError(f"{lacks.name} has no column {missing[0]!r}, which {has.name} has")
    fields = []
    for name in schema.names:
        kinds = schema.field(name).type, more.field(name).type
        kind = common_type(*kinds)
        if kind is None:
            raise ValueError(
                f"column {name!r} of {file.name} holds {kinds[1]}, which has no common type without "
                f"loss with {kinds[0]} of files before it"
            )
        fields.append(pa.field(name, kind))
    return before, pa.schema(fields)


def _as(batch: Any, schema: Any, where: str) -> Any:
    """A batch as a table of the types that all files share."""
    pa = needed("pyarrow", "files")
    columns = []
    for one in schema:
        column = batch.column(one.name)
        if column.type != one.type:
            if _is_dictionary(column.type) and not _is_dictionary(one.type):
                column = column.dictionary_decode()
            try:
                column = column.cast(one.type)
            except pa.ArrowInvalid as error:
                raise ValueError(f"column {one.name!r} of {where}: {error}") from None
        columns.append(column)
    return pa.table(columns, schema=schema)


def _known(what: str, table: Any, name: str, where: str) -> NDArray[Any]:
    """A column without missing values as an array: of text objects, of all else what NumPy has."""
    column = table.column(name).combine_chunks()
    if column.null_count:
        raise ValueError(f"{what} {name!r} has {column.null_count} missing values in {where}")
    if _is_string(column.type):
        # One object for each word, not for each row.
        words = column if _is_dictionary(column.type) else column.dictionary_encode()
        values: NDArray[Any] = words.dictionary.to_numpy(zero_copy_only=False)
        return values[words.indices.to_numpy()]
    if _is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))
