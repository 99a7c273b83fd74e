"""Rows of files and of Arrow data sets, which are read block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from certree.interface.arrays import stack_columns
from certree.interface.extras import import_extra
from certree.out_of_core.checksums import Checksums
from certree.out_of_core.chunks import Chunk
from certree.out_of_core.memory_limit import BLOCK_ROWS, RowsRead
from certree.tables.column_choices import describe_exceptions
from certree.tables.column_names import (
    expect_features,
    expect_known_columns,
    expect_target,
)
from certree.tables.column_types import (
    convert_batch,
    convert_to_array,
    count_bytes,
    expect_feature_types,
    extract_values,
    is_date_type,
    is_text_type,
    name_type,
)
from certree.tables.formats import FIRST_ROWS, SPARE, open_files
from certree.tables.reader import Types, infer_schema, no_types
from certree.tables.table import attach_format
from certree.tables.table_files import Piece, TableFile, name_range

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of a record batch if memory is limited: without columns of text, and with them.
_BATCH_ROWS, _TEXT_BATCH_ROWS = 2**16, 2**13
# Bytes of the Python object of a string, without its characters.
_STRING_BYTES = 150


class FileRows:
    """A table in files, or in an Arrow data set, which is read block by block as a `Source`.

    Parameters
    ----------
    X : path, list of paths, or pyarrow.dataset.Dataset
        Files, or a folder of files.
    y : str, list of str or None
        Name of the column of the target, or names of the columns of several targets; None: there is
        no target.
    weight, groups : str or None
        Names of the columns of the weights, and of the group of each row; None: there is none.
    offset : str, list of str or None
        Name of the column of the offsets of rows, or of one column for each output; None: there is
        none.
    block_rows : int
        Number of rows in a block.
    is_limited : bool
        Whether reading must take as little memory as possible, which is slower.
    features : sequence of str or None
        Names of the features; names that are no columns are ignored. None: all other columns.
    types : callable
        ``types(names)`` takes the names of all columns, and returns a dictionary from the names of
        those that a fitted model has read to `InputColumn` objects, which have their types. Other
        columns, and by default all, have the types that the files suggest.

    Attributes
    ----------
    features : list of str
        Names of the features.
    inferred_schema : InferredSchema
        Types of the columns, numbers of rows and the format of the files.
    has_weights : bool
        Whether rows have weights.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    TypeError
        If y, weight, groups or offset is not a name.
    ValueError
        If a file cannot be read or lacks a column, or no type holds all values of a column. If a
        feature holds neither numbers, strings nor dates. If memory is limited and its need cannot be
        estimated.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: Any = None,
        groups: Any = None,
        offset: Any = None,
        *,
        block_rows: int = BLOCK_ROWS,
        is_limited: bool = False,
        features: Sequence[str] | None = None,
        types: Types = no_types,
    ) -> None:
        import_extra("pyarrow", "files")
        y, offset = normalize_targets("y", y), normalize_targets("offset", offset)
        for name, value, kinds in (
            ("y", y, str | tuple),
            ("sample_weight", weight, str),
            ("groups", groups, str),
            ("offset", offset, str | tuple),
        ):
            expect_column_name(name, value, kinds)
        self._y, self._weight, self._groups, self._offset = y, weight, groups, offset
        self.block_rows, self._is_limited = block_rows, is_limited
        self._tables: Sequence[TableFile] = open_files(X, is_limited)
        self._checksums = Checksums()
        # Dates that are classes or groups stay text, because later files may write them differently.
        self.inferred_schema = infer_schema(self._tables, types, self._list_other_columns())
        self._schema, self._n_rows = self.inferred_schema.schema, self.inferred_schema.n_rows
        where = name_range([table.name for table in self._tables])
        for target in self._targets:
            expect_target(self._schema.names, target, where)
        offsets = (("offset", name) for name in self._offsets)
        for name, value in (("sample_weight", weight), ("groups", groups), *offsets):
            if value is not None:
                expect_known_columns(name, [value], self._schema.names, where)
        self.features = [
            name
            for name in (self._schema.names if features is None else features)
            if name in self._schema.names and name not in self._list_other_columns()
        ]
        if features is None:
            roles = ("the target", y), ("the weights", weight), ("the groups", groups)
            others = [role for role, name in (*roles, ("the offsets", offset)) if name is not None]
            expect_features(self.features, others, where)
        expect_feature_types(self._schema.field(name) for name in self.features)
        self.has_weights = weight is not None
        if types is no_types:
            self._warn_of_exceptions()

    def _warn_of_exceptions(self) -> None:
        """Issue a UserWarning for each column of numbers that holds values that are no numbers.

        Only columns that the fit reads count. The message has the number of such values, and examples.
        """
        for name in (*self.features, *self._list_other_columns()):
            column = self.inferred_schema.columns[name]
            n, examples = describe_exceptions(column)
            if n and column.kind == self._schema.field(name).type:
                kind = f"{name_type(column.kind)}s"
                warn(
                    f"column {name!r} of {self._tables[0].name}: {n:,} values cannot be read as "
                    f"{kind} and count as missing: {examples}. Correct them unless they stand for "
                    "missing values",
                    stacklevel=2,
                )

    @cached_property
    def about(self) -> RowsRead:
        """Size of the table in the files, and estimated memory of reading it under a memory limit."""
        columns = [*self.features, *self._list_other_columns()]
        largest = max(self._tables, key=lambda table: table.held(columns))
        numbers = [name for name in columns if not is_text_type(self._schema.field(name).type)]
        text_sizes = self._estimate_text_bytes([name for name in columns if name not in numbers])
        number_bytes = sum(count_bytes(self._schema.field(name).type) for name in numbers)
        return RowsRead(
            self.n_rows,
            len(self.features),
            number_bytes + sum(text_sizes),
            sum(_STRING_BYTES + 2 * size for size in text_sizes),
            largest.held(columns),
            largest.name,
        )

    def _estimate_text_bytes(self, columns: list[str]) -> list[float]:
        """Estimate the mean bytes of a value in each column of text, with a margin.

        columns: names of the columns. The first rows of each file are measured, and the largest mean is
        taken. Return one number for each column.
        """
        schema = import_extra("pyarrow", "files").schema(
            [self._schema.field(name) for name in columns]
        )
        most = [0.0] * len(columns)
        for table in self._tables if columns else []:
            for batch in table.batches(columns, FIRST_ROWS):
                converted = convert_batch(batch, schema, table.name)
                sizes = [column.nbytes / len(batch) for column in converted.columns]
                most = [max(pair) for pair in zip(most, sizes, strict=True)]
                break
        return [SPARE * size + 8 for size in most]

    @property
    def n_rows(self) -> int:
        """Number of rows of all files."""
        return sum(self._n_rows)

    @property
    def n_files(self) -> int:
        """Number of files; a data set counts as one."""
        return len(self._tables)

    @property
    def empty_table(self) -> pa.Table | None:
        """An Arrow table with the columns of the features and no rows.

        None if some features hold strings, categories or dates, and so may be categorical.
        """
        kinds = [self._schema.field(name).type for name in self.features]
        if any(is_text_type(kind) or is_date_type(kind) for kind in kinds):
            return None
        return attach_format(
            self._schema.empty_table().select(self.features), self.inferred_schema.table_format
        )

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """Yield all rows as chunks of `block_rows` rows, or of fewer if strings are long.

        The last chunk may have fewer rows. targets_only: whether features are not read, and chunks
        have None as X. ValueError is raised if a file has changed since an earlier pass.
        """
        others = self._list_other_columns()
        columns = others if targets_only else [*self.features, *others]
        # Under a memory limit the rows of a block depend on the bytes of the columns that are read.
        division = (self.block_rows, tuple(columns) if self._is_limited else None)
        for number, (table, where) in enumerate(self._read_blocks(columns)):
            self._checksums.expect_same(table, number, division, where)
            yield self._make_chunk(table, where, with_features=not targets_only)

    def _make_chunk(self, table: pa.Table, where: str, *, with_features: bool = True) -> Chunk:
        """Return a table of rows as a `Chunk`: features, targets, weights, groups and offsets.

        table: Arrow table with the columns of all of these; where: name of the rows in error messages;
        with_features: False: the chunk has None as its features, whose columns `table` may lack.
        """
        weight = None
        if self._weight is not None:
            weight = extract_values("the column of weights", table, self._weight, where)
        columns = [extract_values("the target", table, name, where) for name in self._targets]
        y = columns[0] if len(columns) == 1 else stack_columns(columns) if columns else None
        groups = None if self._groups is None else convert_to_array(table, self._groups)
        columns = [
            extract_values("the column of offsets", table, one, where) for one in self._offsets
        ]
        offset = columns[0] if len(columns) == 1 else stack_columns(columns) if columns else None
        X = None
        if with_features:
            X = attach_format(table.select(self.features), self.inferred_schema.table_format)
        return Chunk(X, y, weight, where, groups=groups, offset=offset)

    @property
    def n_partitions(self) -> int:
        """Number of partitions into which the files are divided for a fit on a Dask cluster."""
        return len(self._pieces)

    @cached_property
    def _pieces(self) -> list[tuple[int, Piece]]:
        """For each partition the index of its file, and its piece of this file.

        A piece is a list of indices of row groups, record batches or fragments, or None for the whole
        file.
        """
        return [
            (i, piece)
            for i, table in enumerate(self._tables)
            for piece in table.pieces(self.block_rows)
        ]

    def partition(self, number: int) -> Any:
        """Return a partition as a `dask.delayed` object, which a worker reads and computes.

        Its value is a `Chunk`: raw rows with features, targets, weights, groups and offsets. number:
        0 .. n_partitions - 1. Workers must find the files at the same paths.
        """
        i, piece = self._pieces[number]
        alone = copy(self)
        alone.__dict__.pop("_pieces")
        alone._tables = [self._tables[i]]
        delayed = import_extra("dask", "dask").delayed(_read_piece, pure=False)
        return delayed(alone, piece, number)

    def piece(self, piece: Piece, number: int) -> Chunk:
        """Read one partition of a fit on a Dask worker: a part of this object's only file.

        `partition` makes a copy of this object with one file for each partition; this method runs
        on such a copy.

        Parameters
        ----------
        piece : Piece
            The part of the file: a list of indices of row groups, record batches or fragments, or
            None for the whole file; see `TableFile.pieces`.
        number : int
            Number of the partition, for error messages.

        Returns
        -------
        Chunk
            Features, targets, weights, groups and offsets of the rows of the part.

        Raises
        ------
        ValueError, FileNotFoundError
            If the file has changed or does not exist.
        """
        pa = import_extra("pyarrow", "files")
        table = self._tables[0]
        columns = [*self.features, *self._list_other_columns()]
        schema = pa.schema([self._schema.field(name) for name in columns])
        batches = table.batches(columns, self.block_rows, piece)
        converted = [convert_batch(batch, schema, table.name) for batch in batches]
        table.expect_unchanged()
        rows = pa.concat_tables([schema.empty_table(), *converted])
        return self._make_chunk(rows, f"partition {number}, of {table.name}")

    @property
    def _block_limits(self) -> tuple[int, float]:
        """Largest number of rows of a record batch, and largest size of a block in bytes.

        Without a memory limit the second is infinite. With one, only blocks with long strings reach it.
        """
        if not self._is_limited:
            return self.block_rows, np.inf
        batch_rows = _BATCH_ROWS if self.about.text_bytes == 0 else _TEXT_BATCH_ROWS
        return min(self.block_rows, batch_rows), self.block_rows * self.about.row_bytes

    @property
    def _targets(self) -> tuple[str, ...]:
        """Names of the columns of the targets; () without a target."""
        return _list_names(self._y)

    @property
    def _offsets(self) -> tuple[str, ...]:
        """Names of the columns of the offsets; () without offsets."""
        return _list_names(self._offset)

    def _list_other_columns(self) -> list[str]:
        """Return the names of the target, weight, group and offset columns, each once."""
        names = *self._targets, self._weight, self._groups, *self._offsets
        return [*dict.fromkeys(name for name in names if name is not None)]

    def _read_blocks(self, columns: list[str]) -> Iterator[tuple[pa.Table, str]]:
        """Yield blocks of rows, each as an Arrow table and the names of its files for error messages.

        columns: names of the columns to read. A block may have rows of several files. ValueError is
        raised if a file has changed.
        """
        pa = import_extra("pyarrow", "files")
        schema = pa.schema([self._schema.field(name) for name in columns])
        waiting: list[Any] = []
        n, names = 0, []
        batch_rows, most_bytes = self._block_limits
        for file in self._tables:
            for batch in file.batches(columns, batch_rows):
                waiting.append(convert_batch(batch, schema, file.name))
                names.append(file.name)
                n += len(batch)
                if n < self.block_rows and sum(rows.nbytes for rows in waiting) >= most_bytes:
                    yield pa.concat_tables(waiting), name_range(names)
                    waiting, names, n = [], [], 0
                while n >= self.block_rows:
                    table = pa.concat_tables(waiting)
                    yield table.slice(0, self.block_rows), name_range(names)
                    waiting, names = [table.slice(self.block_rows)], [file.name]
                    n = len(waiting[0])
            file.expect_unchanged()
        if n:
            yield pa.concat_tables(waiting), name_range(names)


def _list_names(names: Any) -> tuple[str, ...]:
    """Return a result of `normalize_targets` as a tuple of column names.

    names: tuple of names; one name; or None, for which () is returned.
    """
    return names if isinstance(names, tuple) else () if names is None else (names,)


def expect_column_name(name: str, value: Any, kinds: Any = str) -> None:
    """Raise a TypeError unless an argument of a fit to files is the name of a column, or None.

    name, value: name and value of the argument; kinds: allowed types of names, as for `isinstance`.
    """
    if value is not None and not isinstance(value, kinds):
        raise TypeError(
            f"{name} must be the name of a column if X is a file, got {type(value).__name__}: add the "
            "values to the files as a column and pass its name, or load X into memory"
        )


def normalize_targets(name: str, y: Any) -> Any:
    """Return a list of column names as a tuple, and a list of one name as this name.

    name: name of the argument of `fit`, for messages; y: the argument, which is returned unchanged
    if it is neither list nor tuple. TypeError is raised if a list holds anything else than names,
    ValueError if it is empty or holds a name twice.
    """
    if not isinstance(y, list | tuple):
        return y
    wrong = [name for name in y if not isinstance(name, str)]
    if wrong:
        kind = type(wrong[0]).__name__
        raise TypeError(
            f"{name} must hold names of columns, got one that is {kind}: pass a list of str"
        )
    if not y:
        raise ValueError(
            f"{name} must name at least one column, got an empty list: pass the name of a column"
        )
    repeated = [column for i, column in enumerate(y) if column in y[:i]]
    if repeated:
        raise ValueError(
            f"{name} must name each column once, got {repeated[0]!r} twice: remove one of them"
        )
    return y[0] if len(y) == 1 else tuple(y)


def _read_piece(rows: FileRows, piece: Piece, number: int) -> Chunk:
    """Read a part of a file as a partition, on a worker of a Dask cluster.

    rows: a source that reads one file; piece: indices of row groups, record batches or fragments, or
    None for the whole file; number: number of the partition, for messages. FileNotFoundError is raised
    if the worker does not find the file, and ValueError if the file has changed.
    """
    try:
        return rows.piece(piece, number)
    except FileNotFoundError as error:
        error.add_note("X must have paths that exist on every worker of the cluster")
        raise
