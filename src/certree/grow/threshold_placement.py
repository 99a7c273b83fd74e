"""Thresholds between neighbouring values of the rows that grew a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import choose_thresholds
from certree.rows.dates import DateColumns
from certree.tree import ALL_LEFT, Tree, group_by_feature


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
    nodes = np.flatnonzero(tree.compares_numbers)
    if not len(nodes):
        return tree
    threshold = tree.threshold.copy()
    for j, group in group_by_feature(tree.feature, nodes):
        values = np.sort(X[:, j])  # NaN comes last
        values = values[: np.searchsorted(values, np.inf, side="right")]
        place = np.searchsorted(values, threshold[group], side="right")
        bounded = np.concatenate([[-np.inf], values, [np.inf]])
        low, high = bounded[place], bounded[place + 1]
        is_below_all = np.isinf(low)
        is_above_all = (threshold[group] == ALL_LEFT) & (low < ALL_LEFT)
        moves = ~is_below_all & ~is_above_all
        low, high = low[moves], high[moves]
        moved = choose_thresholds(threshold[group[moves]], low, high, at_middle)
        if dates and j in dates:
            moved = dates[j].round_thresholds(moved, low, high)
        threshold[group[moves]] = moved
    return tree.with_splits(threshold, tree.category_start, tree.categories)
