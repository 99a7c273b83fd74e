"""Assign whole groups of rows to folds or sets, if the rows of a group may be in several blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.out_of_core.executors import Executor
from certree.out_of_core.row_assignment import RowsToAssign
from certree.rows.folds import Indices, number_groups


def number_all_groups(names: Sequence[NDArray[Any] | None]) -> tuple[int, list[Indices]]:
    """Number the groups of all blocks 0, 1, ... in the sorted order of their names.

    names: for each block of rows, the distinct group names that occur in it, ascending, or None for
    a block without rows. Return the number of distinct groups over all blocks, and for each block
    with rows the numbers of its groups in the order of `names`, (number of its groups,) intp. Raise
    TypeError if group names of different types cannot be sorted together.
    """
    ends = np.cumsum([0, *(0 if groups is None else len(groups) for groups in names)])
    distinct, number = number_groups(
        np.concatenate([groups for groups in names if groups is not None])
    )
    return len(distinct), [number[a:b] for a, b in pairwise(ends)]


def assign_by_groups(
    executor: Executor, numbers: Sequence[Indices], assigned: NDArray[Any]
) -> list[NDArray[Any]]:
    """Assign the rows of each block to the folds or sets of their groups.

    A block is a range of rows of the table. A set is a part of the rows, such as the training or the
    calibration set.

    Parameters
    ----------
    executor : Executor
        Holds blocks of type `RowsToAssign`, whose field `group` is the position of each row's group
        among the groups of its block. The call replaces it by the number among the groups of all
        blocks.
    numbers : sequence of ndarray of intp
        For each block the numbers of its groups among those of all blocks, from `number_all_groups`.
    assigned : ndarray, shape (n_groups,)
        Number of the fold or set of each group.

    Returns
    -------
    list of ndarray
        For each block the numbers of the folds or sets of its rows, (n_rows,), in the order of the
        rows.

    Raises
    ------
    ValueError
        If the process holds more memory than the `memory_limit` of the fit.
    """
    executor.expect_within_limit()
    own = [(number, assigned[number]) for number in numbers]
    blocks = executor.replace_blocks(_assign_block, per_block=own)
    return [assigned_rows for _, assigned_rows in sorted(blocks, key=itemgetter(0))]


def _assign_block(
    block: RowsToAssign, groups: tuple[Indices, NDArray[Any]]
) -> tuple[RowsToAssign, list[tuple[int, NDArray[Any]]]]:
    """Replace the groups of a block by their numbers among all groups, and assign its rows.

    Parameters
    ----------
    block : RowsToAssign
        The block. Its field `group` has the position 0 .. k - 1 of each row's group among the k
        groups of the block, or is None if the block has one group or no rows.
    groups : tuple of two ndarrays, shape (k,)
        For each group of the block: its number among the groups of all blocks, and the number of
        its fold or set.

    Returns
    -------
    block : RowsToAssign
        The block whose field `group` has the numbers among the groups of all blocks.
    assigned : list of one tuple
        Number of the block, and number of the fold or set of each row, (n_rows,).
    """
    number, assigned = groups
    if block.group is None:
        return block, [(block.number, assigned)]
    return replace(block, group=number[block.group]), [(block.number, assigned[block.group])]
