"""Merge equal rows of out-of-core data: the first copy gets the sum of the weights, the others get 0.

If rows have times, the first copy also gets the latest time of all copies.

Copies are found by hashes, which are compared for one range of hashes at a time. Fits leave out rows of
weight 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Self

import numpy as np

from certree.interface.arrays import Float64, Int64, UInt64, find_positions
from certree.out_of_core.chunks import Chunk, find_positive_rows
from certree.out_of_core.executors import Executor
from certree.out_of_core.group_assignment import assign_by_groups, number_all_groups
from certree.out_of_core.hash_ranges import count_hash_ranges, find_hash_ranges
from certree.out_of_core.row_assignment import RowSorter
from certree.out_of_core.train_calibration_split import (
    HashedRows,
    read_hashed_rows,
    share_keys,
)
from certree.out_of_core.transformed_rows import TransformedRows
from certree.rows.duplicates import sum_copies
from certree.rows.folds import Indices


def merge_copies_of_blocks(executor: Executor, encoder: Any) -> Executor:
    """Merge equal rows: return an executor that reads the first copy with the weight of all copies.

    The first copy in the order of the blocks gets the sum of the weights of all copies, and their
    latest time; the other copies get weight 0, so that fits leave them out.

    Parameters
    ----------
    executor : Executor
        Reads the rows, perhaps with times (`OutOfCoreTimes.attach`). Its blocks are replaced by blocks
        of hashed rows (`HashedRows`).
    encoder : object
        Copy of the model, which encodes rows. Weights are multiplied by its class weights, if any.

    Returns
    -------
    Executor
        Reads the rows with the new weights and times; `executor` itself if no row equals another one.

    Raises
    ------
    ValueError
        If copies of a row are in different groups.
    """
    blocks = sorted(
        executor.make_blocks(read_hashed_rows, encoder, RowSorter(None)), key=itemgetter(0)
    )
    _, sizes, _, names = zip(*blocks, strict=True)
    n, is_grouped = sum(sizes), any(one is not None for one in names)
    if is_grouped:
        n_groups, numbers = number_all_groups(names)
        assign_by_groups(executor, numbers, np.zeros(n_groups, dtype=np.bool_))
    n_ranges, has_copies = count_hash_ranges(n, executor.block_sizes), False
    share_keys(executor, n_ranges)
    for i in range(n_ranges):
        found = executor.reduce(_collect_range, i, n_ranges)
        merged = MergedCopies.merge(*map(np.concatenate, zip(*found, strict=True)))
        if len(merged.keys):
            has_copies = True
            executor.replace_blocks(_merge_range, i, n_ranges, merged)
    if not has_copies:
        return executor
    rows = sorted(executor.reduce(_list_merged_rows), key=itemgetter(0))
    per_block = [of_block for _, of_block in rows]
    return TransformedRows(executor, _with_merged_rows, (encoder,), per_block, has_weights=True)


@dataclass(frozen=True, slots=True, eq=False)
class MergedCopies:
    """What rows that have equal hashes are merged to.

    Parameters
    ----------
    keys : ndarray of uint64, shape (k,)
        The hashes that several rows of all blocks have, ascending.
    first : ndarray of int64, shape (k,)
        Number of the first row with each of them over all blocks.
    total : ndarray of float64, shape (k,)
        Sum of the weights of its copies.
    latest : ndarray of float64, shape (k,)
        Latest time of its copies.
    """

    keys: UInt64
    first: Int64
    total: Float64
    latest: Float64

    @classmethod
    def merge(
        cls, keys: UInt64, number: Int64, weight: Float64, group: Indices, time: Float64
    ) -> Self:
        """Merge the rows of all blocks whose hashes are in one range, each array (n,).

        keys: hash of each row; number: its number over all blocks; weight, group, time: its weight,
        group and time. Raise ValueError if equal rows are in different groups.
        """
        copied, first, total = sum_copies(keys, number, weight, group)
        latest = np.full(len(copied), -np.inf)
        if len(copied):
            position, is_copy = find_positions(copied, keys)
            np.maximum.at(latest, position[is_copy], time[is_copy])
        return cls(copied, first, total, latest)


def _collect_range(
    block: HashedRows, i: int, n: int
) -> list[tuple[UInt64, Int64, Float64, Indices, Float64]]:
    """Return the rows of a block whose hashes are in range number i of n ranges of hashes.

    A hash is in the range of its remainder modulo n. Return a list of one tuple of five arrays, (k,):
    hash, number of the row over all blocks, weight, number of the group, and time; the last two are 0
    without groups and without times.
    """
    rows = find_hash_ranges(block.key, n) == i
    group = np.zeros(len(rows), np.intp) if block.group is None else block.group
    time = np.zeros(len(rows)) if block.time is None else block.time
    each = block.key, _number_rows(block), block.weight, group, time
    return [tuple(values[rows] for values in each)]


def _number_rows(block: HashedRows) -> Int64:
    """Return a number for each row of a block, (n,).

    Numbers are unique over all blocks. They ascend from block to block and, within a block, in the
    order in which rows were read.
    """
    return (np.int64(block.number) << 40) + block.row


def _merge_range(block: HashedRows, i: int, n: int, merged: MergedCopies) -> tuple[HashedRows, int]:
    """Set the weight of the first of equal rows to the sum of their weights, and of the others to 0.

    If rows have times, all of them get the latest one. block: rows with hashes; i, n: only hashes with
    remainder i modulo n are changed; merged: what the rows of all blocks with these hashes are merged
    to. Return the block with the new weights and times, and 0 as partial result.
    """
    rows = np.flatnonzero(find_hash_ranges(block.key, n) == i)
    position, is_copy = find_positions(merged.keys, block.key[rows])
    rows, position = rows[is_copy], position[is_copy]
    ties, time = block.ties.copy(), block.time
    is_first = _number_rows(block)[rows] == merged.first[position]
    ties[-1, rows] = np.where(is_first, merged.total[position], 0.0)
    if time is not None:
        time = time.copy()
        time[rows] = merged.latest[position]
    return replace(block, ties=ties, time=time), 0


def _list_merged_rows(block: HashedRows) -> list[tuple[int, tuple[Float64, Float64 | None]]]:
    """Return ``[(number of a block, (weights, times) of its rows)]``, in the order of reading.

    Rows that had weight 0 when they were read are left out. Times are None if rows have none. The list
    of one pair lets `Executor.reduce` concatenate the pairs of all blocks.
    """
    order = np.argsort(block.row)
    time = None if block.time is None else block.time[order]
    return [(block.number, (block.weight[order], time))]


def _with_merged_rows(chunk: Chunk, encoder: Any, merged: tuple[Float64, Float64 | None]) -> Chunk:
    """Return a chunk with the weights and times that its rows have after copies were merged.

    encoder: copy of the model, which checks targets and weights; merged: new weights of the rows whose
    original weight is positive, (k,), and their new times, or None; all other rows get the weight 0.
    Raise ValueError if the chunk has another number of such rows than before.
    """
    found, weights = find_positive_rows(encoder, chunk), np.zeros(len(chunk.y))
    rows = np.zeros(0, np.intp) if found is None else found[2]
    RowSorter.expect_rows(len(merged[0]), len(rows))
    weights[rows], time = merged[0], chunk.time
    if time is not None and merged[1] is not None:
        time = time.copy()
        time[rows] = merged[1]
    return replace(chunk, weight=weights, time=time)
