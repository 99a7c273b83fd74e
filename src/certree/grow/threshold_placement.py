"""Thresholds between neighbouring values of the rows that grew a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import choose_thresholds
from certree.interface.arrays import Float64
from certree.rows.dates import DateColumns
from certree.tree import ALL_LEFT, Tree, group_by_feature

# So many features are copied from rows to columns at a time: eight float64 fill a cache line.
_FEATURES_AT_ONCE = 8


def place_thresholds(
    tree: Tree, X: NDArray[Any], *, at_middle: bool, dates: DateColumns | None = None
) -> Tree:
    """Return a copy of a tree with thresholds moved within gaps between neighbouring values.

    The gap of a threshold lies between the largest value of its feature in X that is not above it,
    and the smallest value above it. So no row of X changes its leaf. Rows reach the same leaves if
    their values are rounded to float32, unless float32 merges the two values of a gap; see
    `Trees.float64_features`.

    Parameters
    ----------
    tree : Tree
        Tree as it was grown on X.
    X : ndarray of shape (n, p), float64 or float32
        Rows that grew it; NaN where a value is missing.
    at_middle : bool
        Whether thresholds move to the middles of their gaps. If False, a threshold moves only as
        far as rounding to float32 requires.
    dates : mapping of int to DateColumn, or None
        Features that hold dates. Their thresholds move on to the roundest dates in their gaps; see
        `DateColumn.round_thresholds`. None: no feature does.

    Returns
    -------
    Tree
        The copy, or `tree` itself if it has no thresholds. Thresholds that only separate missing
        values, as they lie below or above all numbers and category codes, stay.
    """
    groups = list(group_by_feature(tree.feature, np.flatnonzero(tree.compares_numbers)))
    if not groups:
        return tree
    threshold = tree.threshold.copy()
    for first in range(0, len(groups), _FEATURES_AT_ONCE):
        batch = groups[first : first + _FEATURES_AT_ONCE]
        columns = X.T[[j for j, _ in batch]]
        columns.sort(axis=1)  # NaN comes last
        for (j, members), column in zip(batch, columns, strict=True):
            values = column[: np.searchsorted(column, np.inf, side="right")]
            # Binary search among the values is faster for ascending thresholds.
            group = members[np.argsort(threshold[members])]
            low, high = _find_gaps(values, threshold[group])
            is_below_all = np.isinf(low)
            is_above_all = (threshold[group] == ALL_LEFT) & (low < ALL_LEFT)
            moves = ~is_below_all & ~is_above_all
            low, high = low[moves], high[moves]
            moved = choose_thresholds(threshold[group[moves]], low, high, at_middle)
            if dates and j in dates:
                moved = dates[j].round_thresholds(moved, low, high)
            threshold[group[moves]] = moved
    return tree.with_splits(threshold, tree.category_start, tree.categories)


def _find_gaps(values: NDArray[Any], threshold: Float64) -> tuple[Float64, Float64]:
    """Return the largest value not above each threshold, and the smallest above it, (k,) each.

    They are -inf and inf where there is none. values: those of one feature, ascending, (n,);
    threshold: thresholds on this feature, (k,).
    """
    place = np.searchsorted(values, threshold, side="right")
    low, high = np.full(len(place), -np.inf), np.full(len(place), np.inf)
    has_low, has_high = place > 0, place < len(values)
    low[has_low] = values[place[has_low] - 1]
    high[has_high] = values[place[has_high]]
    return low, high
