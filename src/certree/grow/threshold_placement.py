"""Thresholds between neighbouring values of the rows that grew a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import choose_thresholds, find_gaps
from certree.rows.dates import DateColumns
from certree.tree import ALL_LEFT, Tree, group_by_feature


def place_thresholds(
    tree: Tree,
    X: NDArray[Any],
    *,
    at_middle: bool,
    dates: DateColumns | None = None,
    n_threads: int = 1,
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
    n_threads : int
        Largest number of threads; each takes some features.

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
    nodes = np.concatenate([group[np.argsort(threshold[group])] for _, group in groups])
    features = np.array([j for j, _ in groups], np.int32)
    start = np.cumsum([0, *(len(group) for _, group in groups)])
    low, high = find_gaps(X, features, start, threshold[nodes], n_threads)
    is_below_all = np.isinf(low)
    is_above_all = (threshold[nodes] == ALL_LEFT) & (low < ALL_LEFT)
    moves = ~is_below_all & ~is_above_all
    nodes, low, high = nodes[moves], low[moves], high[moves]
    moved = choose_thresholds(threshold[nodes], low, high, at_middle)
    threshold[nodes] = moved
    for j, date in (dates or {}).items():
        has_dates = tree.feature[nodes] == j
        gaps = moved[has_dates], low[has_dates], high[has_dates]
        threshold[nodes[has_dates]] = date.round_thresholds(*gaps)
    return tree.with_splits(threshold, tree.category_start, tree.categories)
