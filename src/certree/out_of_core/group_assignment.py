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
    """Number the groups of all blocks 0, 1, ... in sorted order.

    names: distinct groups of each block; None: the block has no rows. Return the number of distinct
    groups, and for each block the numbers of its groups, (number of its groups,) intp. TypeError is
    raised if groups cannot be sorted.
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

    Parameters
    ----------
    executor : Executor
        Blocks of `RowsToAssign`. The field `group` becomes the number among the groups of all blocks.
    numbers : sequence of ndarray of intp
        For each block the numbers of its groups, from `number_all_groups`.
    assigned : ndarray, shape (n_groups,)
        Fold or set of each group.

    Returns
    -------
    list of ndarray
        For each block the folds or sets of its rows, in the order of the block.

    Raises
    ------
    ValueError
        If the process holds more memory than its limit.
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
        The block, with k groups.
    groups : tuple of two ndarrays, shape (k,)
        Number among all groups, and fold or set, of each group of the block.

    Returns
    -------
    block : RowsToAssign
        The block with the new numbers.
    assigned : list of one tuple
        Number of the block, and fold or set of each row.
    """
    number, assigned = groups
    if block.group is None:
        return block, [(block.number, assigned)]
    return replace(block, group=number[block.group]), [(block.number, assigned[block.group])]
