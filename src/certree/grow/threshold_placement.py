"""Thresholds between neighbouring values of the rows that grew a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import place_thresholds as core_place_thresholds
from certree.rows.dates import DateColumns
from certree.tree import Tree


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
        Whether thresholds move near the middles of their gaps, or near the largest value if none is
        above them. If False, a threshold moves only as far as rounding to float32 requires.
    dates : mapping of int to DateColumn, or None
        Features that hold dates. Their thresholds move on to the roundest dates in their gaps; see
        `DateColumn.round_thresholds`. None: no feature does.
    n_threads : int
        Largest number of threads; each takes some features.

    Returns
    -------
    Tree
        The copy, or `tree` itself if it has no thresholds. A threshold below all values stays, and
        `ALL_LEFT` above all values, too: they only separate missing values.
    """
    if not tree.compares_numbers.any():
        return tree
    threshold, low, high = core_place_thresholds(*tree.split_columns, X, at_middle, n_threads)
    threshold = threshold.copy() if dates else threshold
    for j, date in (dates or {}).items():
        nodes = np.flatnonzero((tree.feature == j) & np.isfinite(low))
        threshold[nodes] = date.round_thresholds(threshold[nodes], low[nodes], high[nodes])
    return tree.with_splits(threshold, tree.category_start, tree.categories)
