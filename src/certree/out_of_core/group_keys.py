"""Random keys of whole groups of rows that lie in several blocks: those that one table would give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64, UInt64
from certree.out_of_core.executors import Executor
from certree.out_of_core.row_block import PartOfRows
from certree.rows.hashes import compute_keys, mix
from certree.rows.queries import sum_weights_by_group


def set_group_keys(parts: Executor, n_groups: int) -> None:
    """Replace the hashes of rows in all blocks by the keys of their groups.

    The keys are those of `compute_group_keys`. parts: has the rows, whose blocks have `group`;
    n_groups: number of groups.
    """
    sums: UInt64 = parts.collect(_sum_hashes, n_groups)
    parts.change(_with_group_keys, compute_keys(sums.copy(), _sum_weights(parts, sums)))


def _sum_weights(parts: Executor, sums: UInt64) -> Float64:
    """Return numbers that order groups with equal rows, (n_groups,); 0 if rows have no weights.

    They are those of `sum_weights_by_group`, 0 for groups that no other group equals, and infinite for
    groups without rows. sums: sum of the hashes of each group, (n_groups,).
    """
    n_groups = len(sums)
    n_rows: Int64 = parts.collect(_count_rows, n_groups)
    # Groups whose rows are all held out, or have weight 0, come last.
    totals = np.where(n_rows > 0, 0.0, np.inf)
    _, number, n_equal = np.unique(sums, return_inverse=True, return_counts=True)
    tied = np.flatnonzero((n_equal[number] > 1) & (n_rows > 0))
    if not len(tied):
        return totals
    # Floating-point sums need the rows of a group in one order, so they are gathered.
    ends = np.cumsum(n_rows[tied])
    portion = (ends - 1) // parts.portions.together
    for some in np.split(tied, np.flatnonzero(np.diff(portion)) + 1):
        is_wanted = np.zeros(n_groups, dtype=np.bool_)
        is_wanted[some] = True
        told = parts.collect(_list_rows, is_wanted)
        if not told:
            return totals
        rows = (np.concatenate(one) for one in zip(*told, strict=True))
        found = sum_weights_by_group(*rows)
        totals[some] = found[some]
        parts.expect_within_limit()
    return totals


def _sum_hashes(part: PartOfRows, n_groups: int) -> UInt64 | None:
    """Sum up the mixed hashes of each group, (n_groups,), modulo 2**64; None: there are no rows."""
    if part.group is None:
        return None
    total = np.zeros(n_groups, dtype=np.uint64)
    np.add.at(total, part.group, mix(part.keys))
    return total


def _count_rows(part: PartOfRows, n_groups: int) -> Int64 | None:
    """Count the rows of each group, (n_groups,); None: there are no rows."""
    if part.group is None:
        return None
    return np.bincount(part.group, minlength=n_groups).astype(np.int64)


def _list_rows(
    part: PartOfRows, is_wanted: NDArray[np.bool_]
) -> list[tuple[UInt64, NDArray[Any], Float64]]:
    """Return hashes, group numbers and weights of the rows of some groups; []: there are no weights.

    is_wanted: whether the rows of a group are returned, (n_groups,).
    """
    if part.group is None or part.weight is None:
        return []
    rows = is_wanted[part.group]
    return [(part.keys[rows], part.group[rows], part.weight[rows])]


def _with_group_keys(part: PartOfRows, keys: UInt64) -> tuple[PartOfRows, int]:
    """Return a block whose rows have the keys of their groups, (n_groups,)."""
    if part.group is None:
        return part, 0
    return replace(part, keys=keys[part.group], group=None), 0
