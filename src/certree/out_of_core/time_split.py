"""Read the times of out-of-core rows, and attach them to the rows of later passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Self

import numpy as np

from certree.interface.arrays import Float64, Int32
from certree.out_of_core.chunks import (
    Chunk,
    find_positive_rows,
    get_group_names,
    number_known_groups,
)
from certree.out_of_core.executors import Executor
from certree.out_of_core.sources import expect_column_name
from certree.out_of_core.time_cut import GroupTimes, find_cut_of_rows
from certree.out_of_core.transformed_rows import TransformedRows
from certree.rows.folds import Indices
from certree.rows.out_of_core import is_file_source
from certree.rows.split import count_training_units
from certree.rows.time_order import (
    EARLIER,
    GAP,
    LATEST,
    Period,
    RowTimes,
    TimeCut,
    expect_time_column,
    join_dates,
    raise_for_equal_times,
)


@dataclass(frozen=True, slots=True)
class TimeArguments:
    """The arguments of `fit` about the order of out-of-core rows.

    Parameters
    ----------
    column : str or None
        Name of the column of X that holds the times, which stays a feature; None: the times were
        passed beside X.
    gap : int or timedelta
        Rows to leave out between earlier and later rows: their number, or the time that they span.
    is_independent : bool
        Whether the user declares that rows of one period are independent draws, despite their times.
    collection : Dask collection of shape (n,), or None
        The times that were passed beside X; None: they are a column of X, or are not sent to workers.
    """

    column: str | None
    gap: Any = 0
    is_independent: bool = False
    collection: Any = field(default=None, compare=False)

    @classmethod
    def read(cls, X: Any, time: Any, gap: Any = 0, independent: bool = False) -> Self | None:
        """Check the arguments `time`, `gap` and `independent` of `fit`, and return them as one object.

        Return None if `time` is None, that is, if rows have no times. X: the rows, files or a Dask
        collection.

        Raise TypeError if X names files and `time` is no name of a column, and ValueError if `gap` or
        `independent` is set without times.
        """
        if time is None:
            RowTimes.read(None, None, 0, gap, independent)
            return None
        if is_file_source(X):
            expect_column_name("time", time)
        if isinstance(time, str):
            return cls(time, gap, independent)
        return cls(None, gap, independent, time)

    @property
    def stored_name(self) -> str:
        """Name of the column that a model stores: "" if the times were passed beside X."""
        return self.column or ""

    def expect_column(self, names: Any) -> None:
        """Raise an error unless X has the column of times, also if its values are not read.

        names: names of the columns of X, (p,); None: X is a Dask array. Raise TypeError if it is, and
        ValueError if there is no such column. Times that were passed beside X are no column of it.
        """
        if self.column is None:
            return
        if names is None:
            raise TypeError(
                "time must be a Dask array for a Dask array X, whose columns have no names, got "
                f"{self.column!r}: pass the times as a Dask array, or X as a Dask data frame with this "
                "column"
            )
        expect_time_column(self.column, names)

    def read_column(self, chunk: Chunk) -> RowTimes:
        """Return the times of a chunk's rows, which `RowTimes.values` holds as numbers.

        They are those of its field `time`, if it is set, as after copies of rows were merged.

        chunk: raw rows, with the column of times, or the times that were passed beside X. Raise
        TypeError if a column is named, but X is an array, whose columns have no names, and TypeError or
        ValueError for wrong times, with a note that names the chunk.
        """
        if isinstance(chunk.X, np.ndarray):
            self.expect_column(None)
        try:
            times = RowTimes.read(
                chunk.raw_time if self.column is None else self.column,
                chunk.X,
                len(chunk.y),
                is_independent=self.is_independent,
            )
        except (ValueError, TypeError) as error:
            error.add_note(f"in {chunk.where}")
            raise
        assert times is not None
        return times if chunk.time is None else replace(times, values=chunk.time)


@dataclass(frozen=True, slots=True, eq=False)
class TimedBlock:
    """Times of the n rows of positive weight in a block.

    Parameters
    ----------
    number : int
        Number of the block.
    time : ndarray of float64, shape (n,)
        Time of each row: a number, or a date as a number of days.
    group : ndarray of intp, shape (n,), or None
        Number of each row's group; None: no groups.
    """

    number: int
    time: Float64
    group: Indices | None


@dataclass(frozen=True, slots=True, eq=False)
class OutOfCoreTimes:
    """The times of all rows of a fit. `read_times` makes it.

    Parameters
    ----------
    arguments : TimeArguments
        Name of the column of times, and the gap, as `fit` got them.
    rows : RowTimes
        Earliest and latest time of each block, with the type of the dates and the checked gap.
    n_blocks : int
        Number of blocks.
    n : int
        Number of rows of positive weight.
    groups : GroupTimes or None
        Times of the groups, by their numbers; None: rows have no groups.
    """

    arguments: TimeArguments
    rows: RowTimes
    n_blocks: int
    n: int
    groups: GroupTimes | None

    @property
    def group_times(self) -> Float64 | None:
        """Latest time of each group, by its number, (n_groups,); None: rows have no groups."""
        return None if self.groups is None else self.groups.time

    def attach(self, executor: Executor, encoder: Any, cut: TimeCut | None = None) -> Executor:
        """Return an executor that reads the same rows with their times, as the field `Chunk.time`.

        All rows of a group get the time of its latest row. executor: reads blocks of rows, in this
        process or on Dask workers; encoder: copy of the model, which turns rows of X into numbers
        and codes; cut: boundaries of the gap between earlier and latest rows, whose rows are left
        out as rows of weight zero are; None: no rows are left out.
        """
        arguments = encoder, self.arguments, self.group_times, cut
        return TransformedRows(executor, _add_times, arguments, [None] * self.n_blocks)

    def number_blocks(self, executor: Executor, n_blocks: int) -> tuple[Int32, Int32]:
        """Divide rows, or whole groups, into blocks of consecutive times of about equal sizes.

        executor: holds the blocks of rows that `read_times` has made; n_blocks: wanted number of
        blocks of time. Return two arrays: the number of each row's block of time, rows in the order of
        the executor's blocks, (n,); and for each block of time the earliest one that a model which is
        applied to it must not be fitted on, because of the gap; without a gap that is the block itself.
        """
        found = sorted(executor.reduce(_list_times), key=itemgetter(0))
        _, values, group = zip(*found, strict=True)
        times = replace(self.rows, values=np.concatenate(values))
        groups = None if self.groups is None else np.concatenate(group)
        return times.number_blocks(n_blocks, groups)

    def find_period(self, executor: Executor, train_size: float) -> LatestPeriod:
        """Find the times that separate the training set from the later calibration set.

        Rows of a group are in one set. The gap, which `fit` got (`arguments`), is left out: rows, or
        time, directly before the calibration set.

        executor: holds the blocks of times that `read_times` has made; train_size: fraction of the
        rows, or groups, that are no calibration rows, including those in the gap. Return the end of
        the training set, the beginning of the calibration set, and the first and last time of each,
        as a `LatestPeriod`. Raise ValueError if one of the sets would be empty.
        """
        gap = self.rows.gap
        if self.groups is None:
            n_train = count_training_units(train_size, self.n, self.n)
            cut = find_cut_of_rows(executor, self.n - n_train, gap)
        else:
            n_groups = int((self.groups.n_rows > 0).sum())
            n_train = count_training_units(train_size, n_groups, self.n, "groups")
            cut = self.groups.find_cut(n_groups - n_train, gap)
        ends = executor.reduce(_find_ends_of_sets, cut, self.group_times)
        return LatestPeriod(
            self, cut, *(self._make_period(ends_of_set) for ends_of_set in _join_ends(ends))
        )

    def _make_period(self, ends: Float64) -> Period:
        """Return the period between two times as a `Period`, whose text has dates or numbers.

        ends: first and last time as numbers, (2,).
        """
        return replace(self.rows, values=ends).name_period(None)


@dataclass(frozen=True, slots=True, eq=False)
class LatestPeriod:
    """The times that divide a fit into earlier rows, which train, and the latest ones, which calibrate.

    Parameters
    ----------
    times : OutOfCoreTimes
        Times of all rows.
    cut : TimeCut
        Times (as numbers) at which the earlier rows end, and the latest ones begin; rows between them
        are left out.
    earlier, latest : Period
        First and last time of the earlier rows, and of the latest ones.
    """

    times: OutOfCoreTimes
    cut: TimeCut
    earlier: Period
    latest: Period

    @property
    def has_groups(self) -> bool:
        """Whether rows have groups, so that both periods are those of the groups' latest rows."""
        return self.times.groups is not None

    def attach(self, executor: Executor, encoder: Any) -> Executor:
        """Return an executor that adds times to the chunks and leaves out the rows of the gap.

        The gap lies between earlier and latest rows. Chunks are raw rows; their field `time` is set.
        executor: reads the chunks; encoder: copy of the model, which encodes rows. See
        `OutOfCoreTimes.attach`.
        """
        return self.times.attach(executor, encoder, self.cut)


def read_times(executor: Executor, encoder: Any, arguments: TimeArguments) -> OutOfCoreTimes:
    """Read the times of all rows.

    Parameters
    ----------
    executor : Executor
        Reads the rows. Its blocks are replaced by blocks of type `TimedBlock`.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    arguments : TimeArguments
        Name of the column of times, and the gap.

    Returns
    -------
    OutOfCoreTimes
        Times of groups, ends of the times, and numbers of rows.

    Raises
    ------
    ValueError, TypeError
        If there is no such column, it holds other values than numbers or dates, a time is missing,
        or all times are equal.
    """
    arguments = replace(arguments, collection=None)  # chunks have its values
    found = sorted(executor.make_blocks(_read_block, encoder, arguments), key=itemgetter(0))
    _, sizes, dates, ends, numbers, group_times = zip(*found, strict=True)
    names, groups = get_group_names(encoder), None
    if names is not None:
        groups = GroupTimes(np.full(len(names), -np.inf), np.zeros(len(names), dtype=np.int64))
        for number, block in zip(numbers, group_times, strict=True):
            np.maximum.at(groups.time, number, block.time)
            groups.n_rows[number] += block.n_rows
    every = join_dates([one for one, size in zip(dates, sizes, strict=True) if size])
    values = np.concatenate(ends)
    times = RowTimes.from_numbers(values, every, arguments.gap, arguments.is_independent)
    units = values if groups is None else groups.time[groups.n_rows > 0]
    if not (units != units[:1]).any():
        raise_for_equal_times(sum(sizes), has_groups=groups is not None)
    return OutOfCoreTimes(arguments, times, len(found), sum(sizes), groups)


def _read_block(
    number: int, chunk: Chunk, encoder: Any, arguments: TimeArguments
) -> tuple[TimedBlock, Any]:
    """Read the times of the rows of positive weight in a block.

    number, chunk: number of the block, and its raw rows; encoder: copy of the model, which finds rows
    of positive weight and numbers groups; arguments: name the column of times. Return the times, and a
    list of one tuple, which summarizes them: number of the block, number of rows, type of the dates
    (None for numbers or without rows), earliest and latest time (2,), and numbers of the distinct
    groups with their `GroupTimes`.
    """
    none, no_numbers = np.zeros(0), np.zeros(0, dtype=np.int64)
    numbers, groups, group = no_numbers, GroupTimes(none, no_numbers), None
    found = find_positive_rows(encoder, chunk)
    if found is None:
        return TimedBlock(number, none, None), [(number, 0, None, none, numbers, groups)]
    times, rows = arguments.read_column(chunk), found[2]
    time = times.values[rows]
    ends = np.array([time.min(), time.max()])
    if chunk.groups is not None:
        group = number_known_groups(encoder, chunk.groups[rows])
        numbers, place, n_rows = np.unique(group, return_inverse=True, return_counts=True)
        groups = GroupTimes(np.full(len(numbers), -np.inf), n_rows)
        np.maximum.at(groups.time, place, time)
    return TimedBlock(number, time, group), [
        (number, len(time), times.dates, ends, numbers, groups)
    ]


def _add_times(
    chunk: Chunk,
    encoder: Any,
    arguments: TimeArguments,
    group_times: Float64 | None,
    cut: TimeCut | None,
    per_block: None,
) -> Chunk:
    """Return a chunk with the times of its rows, in which rows of the gap are marked as left out.

    chunk: raw rows; encoder: copy of the model, which encodes rows; arguments: name the column of
    times; group_times: latest time of each group, by its number, which its rows get, or None; cut:
    boundaries of the gap, or None; per_block: not used. `TransformedRows` calls this function.
    """
    del per_block
    if not len(chunk.y):
        return replace(chunk, time=np.zeros(0))
    time = arguments.read_column(chunk).values
    if group_times is not None:
        time = time.copy()
        rows = find_positive_rows(encoder, chunk)
        if rows is not None:
            assert chunk.groups is not None
            groups = number_known_groups(encoder, chunk.groups[rows[2]])
            time[rows[2]] = group_times[groups]
    left_out = None if cut is None else cut.assign(time) == GAP
    return replace(chunk, time=time, is_left_out=left_out)


def _list_times(block: TimedBlock) -> list[tuple[int, Float64, Indices]]:
    """Return ``[(number of the block, time of each row, number of each row's group)]``.

    The last array is empty without groups. The list lets `Executor.reduce` concatenate the tuples of
    all blocks.
    """
    group = np.zeros(0, dtype=np.intp) if block.group is None else np.array(block.group)
    return [(block.number, np.array(block.time), group)]


def _find_ends_of_sets(
    block: TimedBlock, cut: TimeCut, group_times: Float64 | None
) -> list[tuple[Float64, Float64]]:
    """Find the first and last time of the earlier rows, and of the latest rows, of a block.

    cut: boundaries of both sets; group_times: time of each group, which its rows have,
    or None. Return a list of one pair of arrays, (2,) or, for a set without rows, (0,).
    """
    time = block.time
    if group_times is not None and block.group is not None:
        time = group_times[block.group]
    sets = cut.assign(time)
    of_sets = (time[sets == one] for one in (EARLIER, LATEST))
    earlier, latest = (np.array([one.min(), one.max()]) if len(one) else one for one in of_sets)
    return [(earlier, latest)]


def _join_ends(ends: list[tuple[Float64, Float64]]) -> Iterator[Float64]:
    """Yield the first and last time of the earlier rows of all blocks, (2,), then of the latest rows.

    ends: for each block the pair from `_find_ends_of_sets`.
    """
    for times in zip(*ends, strict=True):
        every = np.concatenate(times)
        yield np.array([every.min(), every.max()])
