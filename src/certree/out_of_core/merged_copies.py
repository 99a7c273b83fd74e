"""Merge the copies of a row that out-of-core data hold: one copy gets the weights of all, others 0.

Copies are found by hashes, of some million rows at a time. Rows of weight 0 are left out of fits.
"""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64, UInt64
from certree.out_of_core.chunks import Chunk, positive_rows
from certree.out_of_core.executors import Executor
from certree.out_of_core.group_assignment import assign_by_groups, number_all_groups
from certree.out_of_core.row_assignment import Division
from certree.out_of_core.train_calibration_split import (
    HashedRows,
    find_range,
    read_hashed_rows,
    share_keys,
)
from certree.out_of_core.transformed_rows import TransformedRows
from certree.rows.duplicates import raise_for_copies_in_groups


def merge_copies_of_blocks(parts: Executor, reader: Any) -> Executor:
    """Return an executor of the same rows, in which one copy of each row has a positive weight.

    It is the first copy in the order of the blocks, and its weight is the sum over all copies.

    Parameters
    ----------
    parts : Executor
        Has the rows.
    reader : object
        Encodes them by the classes and categories of all rows; if it has weights of classes, sums
        are those of weights that are multiplied by them.

    Returns
    -------
    Executor
        `parts` itself if no row equals another one.

    Raises
    ------
    ValueError
        If copies of a row are in different groups.
    """
    told = sorted(parts.make(read_hashed_rows, reader, Division(None)), key=itemgetter(0))
    _, sizes, _, names = zip(*told, strict=True)
    n, is_grouped = sum(sizes), any(one is not None for one in names)
    if is_grouped:
        n_groups, places = number_all_groups(names)
        assign_by_groups(parts, places, np.zeros(n_groups, dtype=np.bool_))
    n_ranges, has_copies = max(1, -(-n // parts.portions.together)), False
    share_keys(parts, n_ranges)
    for i in range(n_ranges):
        found: list[tuple[UInt64, Int64, Float64, NDArray[Any]]]
        found = parts.collect(_collect_range, i, n_ranges)
        keys, first, weight = _sum_copies(*map(np.concatenate, zip(*found, strict=True)))
        if len(keys):
            has_copies = True
            parts.change(_merge_range, i, n_ranges, keys, first, weight)
    if not has_copies:
        return parts
    weights = sorted(parts.collect(_list_weights), key=itemgetter(0))
    own = [weight for _, weight in weights]
    return TransformedRows(parts, _with_weights, (reader,), own, has_weights=True)


def _collect_range(
    part: HashedRows, i: int, n: int
) -> list[tuple[UInt64, Int64, Float64, NDArray[Any]]]:
    """Return key, place among all rows, weight, and group (0: none) of rows in the i-th of n ranges."""
    rows = find_range(part, i, n)
    group = np.zeros(len(rows), np.intp) if part.group is None else part.group
    return [(part.key[rows], _number_rows(part)[rows], part.weight[rows], group[rows])]


def _number_rows(part: HashedRows) -> Int64:
    """Return a number for each row that ascends from block to block, and within one, (n,)."""
    return (np.int64(part.number) << 40) + part.row


def _sum_copies(
    keys: UInt64, number: Int64, weight: Float64, group: NDArray[Any]
) -> tuple[UInt64, Int64, Float64]:
    """Sum the weights of rows with equal keys, in the order of their numbers.

    keys, number, weight, group: of n rows, (n,); see `_collect_range`. Return the keys that several
    rows have, ascending, the smallest number of these rows, and the sum of their weights. Raise
    ValueError if they have several groups.
    """
    order = np.lexsort((number, keys))
    keys, number, weight, group = keys[order], number[order], weight[order], group[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    n_copies = np.diff(np.append(starts, len(keys)))
    run = np.repeat(np.arange(len(starts)), n_copies)
    if (group != group[starts][run]).any():
        raise_for_copies_in_groups()
    total: Float64 = np.bincount(run, weight).astype(np.float64)  # in the order of the numbers
    is_copied = n_copies > 1
    return keys[starts][is_copied], number[starts][is_copied], total[is_copied]


def _merge_range(
    part: HashedRows, i: int, n: int, keys: UInt64, first: Int64, total: Float64
) -> tuple[HashedRows, int]:
    """Set the weights of copies in the i-th of n ranges to the sum, or to 0; see `_sum_copies`."""
    rows = np.flatnonzero(find_range(part, i, n))
    place = np.minimum(np.searchsorted(keys, part.key[rows]), len(keys) - 1)
    is_copy = keys[place] == part.key[rows]
    rows, place = rows[is_copy], place[is_copy]
    ties = part.ties.copy()
    ties[-1, rows] = np.where(_number_rows(part)[rows] == first[place], total[place], 0.0)
    return replace(part, ties=ties), 0


def _list_weights(part: HashedRows) -> list[tuple[int, Float64]]:
    """Return the number of a block, and the weights of its rows as they came."""
    weight = np.empty(len(part.row))
    weight[part.row] = part.weight
    return [(part.number, weight)]


def _with_weights(chunk: Chunk, reader: Any, weight: Float64) -> Chunk:
    """Return a chunk with the weights of merged copies.

    weight: weights of its rows that have a positive weight, (k,).
    """
    found, weights = positive_rows(reader, chunk), np.zeros(len(chunk.y))
    rows = np.zeros(0, np.intp) if found is None else found[2]
    Division.expect_rows(len(weight), len(rows))
    weights[rows] = weight
    return replace(chunk, weight=weights)
