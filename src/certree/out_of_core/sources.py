"""Rows in files and in data sets of Arrow: read batch by batch, and never held together."""

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
from certree.out_of_core.memory_limit import PART_ROWS, RowsRead
from certree.tables.column_choices import describe_exceptions
from certree.tables.column_names import expect_features, expect_target
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

# Where memory is limited, rows that are read at a time; and of those with words, each of which becomes
# an object of so many bytes, beside what it says.
_FEW_ROWS, _FEW_WORDS, _OF_WORD = 2**16, 2**13, 150


class FileRows:
    """Rows of files, or of a data set of Arrow, as parts of a fit.

    Parameters
    ----------
    X : path, list of paths, or pyarrow.dataset.Dataset
        Files, or a folder of them.
    y : str, list of str or None
        Name of the column that holds the target, or of those that hold several; None: there is none.
    weight, groups : str or None
        Names of the columns that hold the weights, and the group of each row.
    offset : str, list of str or None
        Name of the column that holds the offsets of rows, or of one column for each output.
    part_rows : int
        Rows of a part.
    is_limited : bool
        Whether as little is held as can be, which takes more time.
    features : sequence of str or None
        Names of the features, of which those that are no columns are left out; None: all columns
        beside the others.
    types : callable
        Takes the names of the columns, and returns the columns of a fitted model, by name.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If there are no such files, they cannot be read, or lack a column; if there is no type that
        holds all values of a column; if a feature holds neither numbers nor strings; if memory is
        limited, and it is not known what they take.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: Any = None,
        groups: Any = None,
        offset: Any = None,
        *,
        part_rows: int = PART_ROWS,
        is_limited: bool = False,
        features: Sequence[str] | None = None,
        types: Types = no_types,
    ) -> None:
        import_extra("pyarrow", "files")
        y, offset = one_or_several("y", y), one_or_several("offset", offset)
        for name, given, kinds in (
            ("y", y, str | tuple),
            ("sample_weight", weight, str),
            ("groups", groups, str),
            ("offset", offset, str | tuple),
        ):
            if given is not None and not isinstance(given, kinds):
                raise TypeError(
                    f"rows in files take the name of a column for {name}, got {type(given).__name__}"
                )
        self._y, self._weight, self._groups, self._offset = y, weight, groups, offset
        self.part_rows, self._is_limited = part_rows, is_limited
        self._tables: Sequence[TableFile] = open_files(X, is_limited)
        self._checksums = Checksums()
        # Dates that are classes or groups stay text, as they are written in later files.
        self.inferred_schema = infer_schema(self._tables, types, self._beside())
        self._schema, self._n_rows = self.inferred_schema.schema, self.inferred_schema.n_rows
        where = name_range([one.name for one in self._tables])
        for target in self._targets:
            expect_target(self._schema.names, target, where)
        offsets = (("offset", one) for one in self._offsets)
        for name, given in (("sample_weight", weight), ("groups", groups), *offsets):
            if given is not None and given not in self._schema.names:
                raise ValueError(
                    f"{name}={given!r} is no column of {where}; there are "
                    f"{', '.join(self._schema.names)}"
                )
        self.features = [
            one
            for one in (self._schema.names if features is None else features)
            if one in self._schema.names and one not in self._beside()
        ]
        if features is None:
            roles = ("the target", y), ("the weights", weight), ("the groups", groups)
            others = [role for role, name in (*roles, ("the offsets", offset)) if name is not None]
            expect_features(self.features, others, where)
        expect_feature_types(self._schema.field(one) for one in self.features)
        self.has_weights = weight is not None
        if types is no_types:
            self._warn_of_exceptions()

    def _warn_of_exceptions(self) -> None:
        """Warn of values that are no numbers in columns of numbers that a fit reads."""
        for name in (*self.features, *self._beside()):
            column = self.inferred_schema.columns[name]
            n, examples = describe_exceptions(column)
            if n and column.kind == self._schema.field(name).type:
                kind = f"{name_type(column.kind)}s"
                warn(
                    f"column {name!r} of {self._tables[0].name}: {n:,} values are no {kind} and "
                    f"count as missing: {examples}",
                    stacklevel=2,
                )

    @cached_property
    def about(self) -> RowsRead:
        """What reading takes where memory is limited."""
        columns = [*self.features, *self._beside()]
        most = max(self._tables, key=lambda one: one.held(columns))
        numbers = [one for one in columns if not is_text_type(self._schema.field(one).type)]
        words = self._bytes_of_words([one for one in columns if one not in numbers])
        of_row = sum(count_bytes(self._schema.field(one).type) for one in numbers)
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
        schema = import_extra("pyarrow", "files").schema(
            [self._schema.field(one) for one in columns]
        )
        most = [0.0] * len(columns)
        for one in self._tables if columns else []:
            for batch in one.batches(columns, FIRST_ROWS):
                sizes = [
                    column.nbytes / len(batch)
                    for column in convert_batch(batch, schema, one.name).columns
                ]
                most = [max(pair) for pair in zip(most, sizes, strict=True)]
                break
        return [SPARE * one + 8 for one in most]

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
        """A table of the features without rows; None: some hold strings, categories or dates."""
        kinds = [self._schema.field(one).type for one in self.features]
        if any(is_text_type(one) or is_date_type(one) for one in kinds):
            return None
        return attach_format(
            self._schema.empty_table().select(self.features), self.inferred_schema.table_format
        )

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """All rows, so many at a time as a part has; without X where targets alone are asked for."""
        columns = self._beside() if targets_only else [*self.features, *self._beside()]
        # Where memory is limited, blocks are cut by the bytes of their columns.
        division = (self.part_rows, tuple(columns) if self._is_limited else None)
        for number, (table, where) in enumerate(self._in_parts(columns)):
            self._checksums.expect_same(table, number, division, where)
            yield self._chunk(table, where, with_features=not targets_only)

    def _chunk(self, table: pa.Table, where: str, *, with_features: bool = True) -> Chunk:
        weight = None
        if self._weight is not None:
            weight = extract_values("the column of weights", table, self._weight, where)
        columns = [extract_values("the target", table, one, where) for one in self._targets]
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
        made = import_extra("dask", "dask").delayed(_read_by_worker, pure=False)
        return made(alone, piece, number)

    def piece(self, piece: Piece, number: int) -> Chunk:
        """The rows of a piece of the first file."""
        pa = import_extra("pyarrow", "files")
        table = self._tables[0]
        columns = [*self.features, *self._beside()]
        schema = pa.schema([self._schema.field(one) for one in columns])
        batches = table.batches(columns, self.part_rows, piece)
        read = [convert_batch(batch, schema, table.name) for batch in batches]
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
        return _list_names(self._y)

    @property
    def _offsets(self) -> tuple[str, ...]:
        """Names of the columns of offsets."""
        return _list_names(self._offset)

    def _beside(self) -> list[str]:
        """Columns that are no features, once each."""
        named = *self._targets, self._weight, self._groups, *self._offsets
        return [*dict.fromkeys(one for one in named if one is not None)]

    def _in_parts(self, columns: list[str]) -> Iterator[tuple[pa.Table, str]]:
        pa = import_extra("pyarrow", "files")
        schema = pa.schema([self._schema.field(one) for one in columns])
        waiting: list[Any] = []
        n, places = 0, []
        batch_rows, most_bytes = self._most_at_a_time
        for one in self._tables:
            for batch in one.batches(columns, batch_rows):
                waiting.append(convert_batch(batch, schema, one.name))
                places.append(one.name)
                n += len(batch)
                if n < self.part_rows and sum(each.nbytes for each in waiting) >= most_bytes:
                    yield pa.concat_tables(waiting), name_range(places)
                    waiting, places, n = [], [], 0
                while n >= self.part_rows:
                    table = pa.concat_tables(waiting)
                    yield table.slice(0, self.part_rows), name_range(places)
                    waiting, places = [table.slice(self.part_rows)], [one.name]
                    n = len(waiting[0])
            one.expect_unchanged()
        if n:
            yield pa.concat_tables(waiting), name_range(places)


def _list_names(names: Any) -> tuple[str, ...]:
    """Return the names that `one_or_several` has returned as a tuple; () for None."""
    return names if isinstance(names, tuple) else () if names is None else (names,)


def one_or_several(name: str, y: Any) -> Any:
    """Convert the list of column names that `fit` got as y to a tuple, or to its only name.

    name: name of the argument, for messages; y: the argument, which is returned if it is no list.

    Raises
    ------
    ValueError, TypeError
        If a list is empty, holds something else than names, or one of them twice.
    """
    if not isinstance(y, list | tuple):
        return y
    wrong = [one for one in y if not isinstance(one, str)]
    if wrong:
        kind = type(wrong[0]).__name__
        raise TypeError(f"{name} must hold names of columns, got one that is {kind}")
    if not y:
        raise ValueError(f"{name} must name at least one column, got none")
    twice = [one for i, one in enumerate(y) if one in y[:i]]
    if twice:
        raise ValueError(f"{name} must name each column once, got {twice[0]!r} twice")
    return y[0] if len(y) == 1 else tuple(y)


def _read_by_worker(rows: FileRows, piece: Piece, number: int) -> Chunk:
    try:
        return rows.piece(piece, number)
    except FileNotFoundError as error:
        error.add_note("every worker of the cluster must see the files by the paths that are given")
        raise
