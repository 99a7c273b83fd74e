"""Merge equal rows of out-of-core data: the first copy gets the sum of the weights, the others get 0.

Copies are found by hashes, which are compared for one range of hashes at a time. Fits leave out rows of
weight 0.
"""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64, UInt64
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


def merge_copies_of_blocks(executor: Executor, encoder: Any) -> Executor:
    """Merge equal rows: return an executor that reads the first copy with the weight of all copies.

    The first copy in the order of the blocks gets the sum of the weights of all copies; the other
    copies get weight 0, so that fits leave them out.

    Parameters
    ----------
    executor : Executor
        Reads the rows. Its blocks are replaced by blocks of hashed rows (`HashedRows`).
    encoder : object
        Copy of the model, which encodes rows. Weights are multiplied by its class weights, if any.

    Returns
    -------
    Executor
        Reads the rows with the new weights; `executor` itself if no row equals another one.

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
        found: list[tuple[UInt64, Int64, Float64, NDArray[Any]]]
        found = executor.reduce(_collect_range, i, n_ranges)
        keys, first, weight = sum_copies(*map(np.concatenate, zip(*found, strict=True)))
        if len(keys):
            has_copies = True
            executor.replace_blocks(_merge_range, i, n_ranges, keys, first, weight)
    if not has_copies:
        return executor
    weights = sorted(executor.reduce(_list_weights), key=itemgetter(0))
    per_block = [weight for _, weight in weights]
    return TransformedRows(executor, _with_weights, (encoder,), per_block, has_weights=True)


def _collect_range(
    block: HashedRows, i: int, n: int
) -> list[tuple[UInt64, Int64, Float64, NDArray[Any]]]:
    """Return the rows of a block whose hashes are in range number i of n ranges of hashes.

    A hash is in the range of its remainder modulo n. Return a list of one tuple of four arrays, (k,):
    hash, number of the row over all blocks, weight, and number of the group (0 without groups).
    """
    rows = find_hash_ranges(block.key, n) == i
    group = np.zeros(len(rows), np.intp) if block.group is None else block.group
    return [(block.key[rows], _number_rows(block)[rows], block.weight[rows], group[rows])]


def _number_rows(block: HashedRows) -> Int64:
    """Return a number for each row of a block, (n,).

    Numbers are unique over all blocks. They ascend from block to block and, within a block, in the
    order in which rows were read.
    """
    return (np.int64(block.number) << 40) + block.row


def _merge_range(
    block: HashedRows, i: int, n: int, keys: UInt64, first: Int64, total: Float64
) -> tuple[HashedRows, int]:
    """Set the weight of the first of equal rows to the sum of their weights, and of the others to 0.

    block: rows with hashes; i, n: only hashes with remainder i modulo n are changed; keys: the hashes
    that several rows of all blocks have, ascending, (k,); first, total: number of the first row with
    each of them over all blocks, and sum of the weights of its copies, (k,). Return the block with the
    new weights, and 0 as partial result.
    """
    rows = np.flatnonzero(find_hash_ranges(block.key, n) == i)
    position = np.minimum(np.searchsorted(keys, block.key[rows]), len(keys) - 1)
    is_copy = keys[position] == block.key[rows]
    rows, position = rows[is_copy], position[is_copy]
    ties = block.ties.copy()
    ties[-1, rows] = np.where(_number_rows(block)[rows] == first[position], total[position], 0.0)
    return replace(block, ties=ties), 0


def _list_weights(block: HashedRows) -> list[tuple[int, Float64]]:
    """Return ``[(number of a block, weights of its rows)]``, in the order in which rows were read.

    Rows that had weight 0 when they were read are left out. The list of one pair lets `Executor.reduce`
    concatenate the pairs of all blocks.
    """
    weight = np.empty(len(block.row))
    weight[block.row] = block.weight
    return [(block.number, weight)]


def _with_weights(chunk: Chunk, encoder: Any, weight: Float64) -> Chunk:
    """Return a chunk with the weights that its rows have after copies were merged.

    encoder: copy of the model, which checks targets and weights; weight: new weights of the rows whose
    original weight is positive, (k,); all other rows get 0. Raise ValueError if the chunk has another
    number of such rows than before.
    """
    found, weights = find_positive_rows(encoder, chunk), np.zeros(len(chunk.y))
    rows = np.zeros(0, np.intp) if found is None else found[2]
    RowSorter.expect_rows(len(weight), len(rows))
    weights[rows] = weight
    return replace(chunk, weight=weights)
