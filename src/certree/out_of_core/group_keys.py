"""Random keys of groups whose rows are stored in several blocks: the keys that one table would give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64, UInt64
from certree.out_of_core.executors import Executor
from certree.out_of_core.row_block import RowBlock
from certree.rows.hashes import compute_keys, mix
from certree.rows.queries import sum_weights_by_group


def set_group_keys(executor: Executor, n_groups: int) -> None:
    """Replace the hashes of rows in all blocks by random keys of their groups.

    A group's key depends on the rows of the group alone, so that sorting by keys gives the same
    order of groups whatever the partition. The keys are those of `compute_group_keys`. executor:
    holds blocks whose field `keys` has hashes of rows, and whose field `group` has group numbers
    0 .. n_groups - 1. Each row's entry of `keys` becomes the key of its group, and `group` becomes
    None. Raise ValueError if the process holds more memory than its limit.
    """
    sums: UInt64 = executor.reduce(_sum_hashes, n_groups)
    executor.replace_blocks(
        _with_group_keys, compute_keys(sums.copy(), _sum_weights(executor, sums))
    )


def _sum_weights(executor: Executor, sums: UInt64) -> Float64:
    """Return numbers that order groups with equal rows by their weights, (n_groups,).

    For groups with equal rows they are sums of weights, each multiplied by a factor that the row's
    hash determines, see `sum_weights_by_group`. They are 0 for groups without an equal group, or if
    rows have no weights, and infinite for groups without rows. sums: sum of the row hashes of each
    group, (n_groups,); two groups have equal rows if their sums are equal.
    """
    n_groups = len(sums)
    n_rows: Int64 = executor.reduce(_count_rows, n_groups)
    # Groups whose rows are all held out, or have weight 0, come last.
    totals = np.where(n_rows > 0, 0.0, np.inf)
    _, number, n_equal = np.unique(sums, return_inverse=True, return_counts=True)
    tied = np.flatnonzero((n_equal[number] > 1) & (n_rows > 0))
    if not len(tied):
        return totals
    # Floating-point sums need the rows of a group in one order, so they are gathered.
    ends = np.cumsum(n_rows[tied])
    range_number = (ends - 1) // executor.block_sizes.compared_rows
    for groups in np.split(tied, np.flatnonzero(np.diff(range_number)) + 1):
        is_wanted = np.zeros(n_groups, dtype=np.bool_)
        is_wanted[groups] = True
        blocks = executor.reduce(_list_rows, is_wanted)
        if not blocks:
            return totals
        rows = (np.concatenate(column) for column in zip(*blocks, strict=True))
        sums_by_group = sum_weights_by_group(*rows)
        totals[groups] = sums_by_group[groups]
        executor.expect_within_limit()
    return totals


def _sum_hashes(block: RowBlock, n_groups: int) -> UInt64 | None:
    """Sum the hashes of a block's rows by group, modulo 2^64, as a hash of each group's content.

    block: rows with group numbers 0 .. n_groups - 1. Return (n_groups,), or None if the block has
    no rows.
    """
    if block.group is None:
        return None
    total = np.zeros(n_groups, dtype=np.uint64)
    np.add.at(total, block.group, mix(block.keys))
    return total


def _count_rows(block: RowBlock, n_groups: int) -> Int64 | None:
    """Count the rows of each group in a block; return (n_groups,), or None for a block without rows."""
    if block.group is None:
        return None
    return np.bincount(block.group, minlength=n_groups).astype(np.int64)


def _list_rows(
    block: RowBlock, is_wanted: NDArray[np.bool_]
) -> list[tuple[UInt64, NDArray[Any], Float64]]:
    """Return hashes, group numbers and weights of the rows of some groups in a block.

    is_wanted: for each group whether its rows are returned, (n_groups,). Return a list of one tuple of
    three arrays, (k,), or [] if the block has no rows, or rows have no weights.
    """
    if block.group is None or block.weight is None:
        return []
    rows = is_wanted[block.group]
    return [(block.keys[rows], block.group[rows], block.weight[rows])]


def _with_group_keys(block: RowBlock, keys: UInt64) -> tuple[RowBlock, int]:
    """Return a block in which each row has the random key of its group, and 0 as partial result.

    keys: key of each group, (n_groups,). The field `group` of the new block is None.
    """
    if block.group is None:
        return block, 0
    return replace(block, keys=keys[block.group], group=None), 0
