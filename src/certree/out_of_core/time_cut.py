"""Boundaries between earlier and later out-of-core rows, as `RowTimes.split_latest` finds in one table.

They are order statistics of the times of all blocks, so that neither the order of the rows nor their
division into blocks matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64
from certree.out_of_core.exact_quantiles import find_order_statistics
from certree.out_of_core.executors import Executor
from certree.out_of_core.group_assignment import assign_by_groups, number_all_groups
from certree.out_of_core.row_assignment import RowsToAssign
from certree.rows.time_order import (
    SortedTimes,
    TimeCut,
    find_time_cut,
    is_before_gap,
)


def get_time(block: Any) -> Float64:
    """Return the times of the rows of a block, (n,). block: has the field `time`."""
    time: Float64 = block.time
    return time


@dataclass(frozen=True, slots=True, eq=False)
class BlockTimes:
    """Order statistics of the times of the rows of all blocks, each computed in passes over them.

    It implements the protocol `certree.rows.time_order.TimeStatistics`.

    Parameters
    ----------
    executor : Executor
        Holds blocks that have times.
    """

    executor: Executor

    @property
    def n(self) -> int:
        """Number of rows of all blocks, each of which has a time."""
        return count_rows(self.executor)

    def find_at_rank(self, rank: int) -> float:
        """Return entry `rank` of all times in ascending order; the earliest time has rank 0."""
        return float(find_order_statistics(self.executor, [rank], get_time)[0])

    def count_around(self, value: float) -> tuple[int, int]:
        """Return how many times are before `value`, and how many are before or at it."""
        n_less, n_most = self.executor.reduce(_count_around, value)
        return int(n_less), int(n_most)

    def find_next(self, value: float) -> float | None:
        """Return the earliest time after `value`; None if there is none."""
        return min(self.executor.reduce(_find_next, value), default=None)

    def find_gap_start(self, cut: float, gap: timedelta) -> float:
        """Return the earliest time that is less than `gap` before `cut`; `cut` if there is none.

        cut: a time in days, as all times of the blocks.
        """
        return min(self.executor.reduce(_list_gap, cut, gap), default=cut)


def find_cut_of_rows(executor: Executor, n_latest: int, gap: int | timedelta) -> TimeCut:
    """Return the times that separate the earlier rows, a gap and the latest rows of all blocks.

    executor: holds blocks that have times; n_latest: wanted number of latest rows, which is met as
    nearly as possible, as rows of one time stay together; gap: number of rows, or time span, to leave
    out before them. Raise ValueError if all times are equal, or the gap leaves no earlier rows.
    """
    times = BlockTimes(executor)
    return find_time_cut(times, times, n_latest, gap)


@dataclass(frozen=True, slots=True, eq=False)
class GroupTimes:
    """Time and number of rows of each group.

    Parameters
    ----------
    time : ndarray of float64, shape (n_groups,)
        Time of the latest row of each group: a number, or days since 1970 for dates; -inf without rows.
    n_rows : ndarray of int64, shape (n_groups,)
        Number of rows of each group.
    """

    time: Float64
    n_rows: Int64

    def find_cut(self, size: float, gap: int | timedelta) -> TimeCut:
        """Find the times that separate the earlier groups, a gap and the latest groups.

        `RowTimes.split_latest` does the same for a table in memory.

        size: wanted number (int) or fraction (float) of latest groups; gap: number of rows, or
        duration, to leave out before them. Groups of one time stay together, so that the number of
        latest groups is as near to `size` as times allow. Groups without rows are ignored. Raise
        ValueError if all times are equal, or the gap leaves no earlier groups.
        """
        has_rows = self.n_rows > 0
        time, n_rows = self.time[has_rows], self.n_rows[has_rows]
        rows = SortedTimes.count(time, n_rows)
        return find_time_cut(SortedTimes.count(time), rows, count_latest(size, len(time)), gap)


def count_rows(executor: Executor) -> int:
    """Return the number of rows of all blocks. executor: holds blocks of `RowsToAssign` with times."""
    return int(executor.reduce(_count_rows))


def has_times(executor: Executor) -> bool:
    """Return whether the rows have times. executor: holds blocks of type `RowsToAssign`."""
    return any(executor.reduce(_has_times))


def _has_times(block: RowsToAssign) -> list[bool]:
    """Return ``[whether a block has rows with times]``; `Executor.reduce` concatenates such lists."""
    return [block.time is not None and len(block.time) > 0]


def _count_rows(block: Any) -> int:
    """Return the number of rows of a block. block: any object with the field `time`, (n,)."""
    return len(block.time)


def _count_around(block: Any, value: float) -> NDArray[np.int64]:
    """Count the rows of a block that are before a time, and those before or at it; return (2,).

    block: rows with the field `time`, (n,); value: the time as a number.
    """
    return np.array([(block.time < value).sum(), (block.time <= value).sum()], dtype=np.int64)


def _find_next(block: Any, value: float) -> list[float]:
    """Return the earliest time of a block after `value`, as a list; [] if there is none.

    block: rows with the field `time`, (n,); value: the time as a number.
    """
    later = block.time[block.time > value]
    return [float(later.min())] if len(later) else []


def _list_gap(block: Any, cut: float, gap: timedelta) -> list[float]:
    """Return the earliest time of a block in the gap before `cut`, as a list; [] if there is none.

    block: rows with the field `time`, (n,); cut: first time of the later rows; gap: time span
    before it whose rows are left out.
    """
    time = block.time[block.time < cut]
    time = time[~is_before_gap(time, cut, gap)]
    return [float(time.min())] if len(time) else []


def has_order(executor: Executor) -> bool:
    """Return whether at least two rows have different times. executor: holds blocks with times."""
    ends = np.array(executor.reduce(_list_ends))
    return bool(len(ends) and ends.min() < ends.max())


def _list_ends(block: Any) -> list[float]:
    """Return the earliest and the latest time of a block, as a list; [] if it has no rows."""
    return [float(block.time.min()), float(block.time.max())] if len(block.time) else []


def assign_by_time(
    executor: Executor, names: Sequence[NDArray[Any] | None], size: float, gap: int | timedelta
) -> list[NDArray[np.uint8]]:
    """Assign the rows of each block, or whole groups, to the latest rows, earlier rows, or the gap.

    Rows of the gap, between the earlier and the latest rows, are not used. A group has the time of its
    latest row.

    Parameters
    ----------
    executor : Executor
        Holds blocks of type `RowsToAssign` with times, in which all rows of a group have the group's
        time. With groups, the field `group` becomes the number among the groups of all blocks.
    names : sequence of (ndarray or None)
        Names of the distinct groups of each block; None: the block has no groups, or no rows.
    size : int or float
        Wanted number (int) or fraction (float) of latest rows, or of groups if there are some. Rows
        (groups) of one time stay together, so that their number is as near to it as times allow.
    gap : int or timedelta
        What to leave out before the latest rows: a number of rows, or a duration.

    Returns
    -------
    list of ndarray of uint8
        For each block the set of each row, in the order of the block: 0 (`LATEST`), 1 (`EARLIER`) or 2
        (`GAP`).

    Raises
    ------
    ValueError
        If all times are equal, or the gap leaves no earlier rows.
    """
    if all(groups is None for groups in names):
        n = count_rows(executor)
        return assign_by_cut(executor, find_cut_of_rows(executor, count_latest(size, n), gap))
    n_groups, numbers = number_all_groups(names)
    groups = GroupTimes(np.full(n_groups, -np.inf), np.zeros(n_groups, dtype=np.int64))
    for number, times, n_rows in executor.reduce(_list_group_times):
        groups.time[numbers[number]] = times
        groups.n_rows[numbers[number]] += n_rows
    sets = groups.find_cut(size, gap).assign(groups.time)
    return assign_by_groups(executor, numbers, sets)


def assign_by_cut(executor: Executor, cut: TimeCut) -> list[NDArray[np.uint8]]:
    """Assign the rows of each block to the latest rows, earlier rows, or the gap, by their times.

    executor: holds blocks of type `RowsToAssign` with times; cut: end of the earlier rows, and
    beginning of the latest ones. Return for each block the set of each row, (n,) uint8, in the order of
    the block: 0 (`LATEST`), 1 (`EARLIER`) or 2 (`GAP`, between both).
    """
    return [sets for _, sets in sorted(executor.reduce(_assign_block, cut), key=itemgetter(0))]


def _assign_block(block: RowsToAssign, cut: TimeCut) -> list[tuple[int, NDArray[np.uint8]]]:
    """Assign each row of a block to the latest rows, earlier rows, or the gap, by its time.

    block: the rows; cut: end of the earlier rows, and beginning of the latest ones. Return a list of
    one pair: number of the block, and set of each row, (n,): 0 (`LATEST`), 1 (`EARLIER`) or 2 (`GAP`).
    """
    return [(block.number, cut.assign(get_time(block)))]


def _list_group_times(block: RowsToAssign) -> list[tuple[int, Float64, Int64]]:
    """Return ``[(number of the block, time of each group, number of rows of each group)]``.

    The list lets `Executor.reduce` concatenate the tuples of all blocks; it is empty if rows have no
    groups. block: `group` has the position 0 .. k - 1 of each row's group among the k groups of the
    block, and all rows of a group have one time. Both arrays are (k,).
    """
    if block.group is None:
        return []
    n_rows = np.bincount(block.group).astype(np.int64)
    times = np.zeros(len(n_rows))
    times[block.group] = get_time(block)
    return [(block.number, times, n_rows)]


def count_latest(size: float, n: int) -> int:
    """Return how many of n rows, or groups, are the latest.

    size: the number (int), which is returned; or a fraction (float) of n, for which round(size * n)
    is returned, at least 1.
    """
    return size if isinstance(size, int) else max(1, round(size * n))
