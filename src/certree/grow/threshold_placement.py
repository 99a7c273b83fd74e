"""Where thresholds lie between the values of the rows that grow a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import choose_thresholds
from certree.tree import Tree, group_by_feature


def place_thresholds(tree: Tree, X: NDArray[Any], *, at_middle: bool) -> Tree:
    """Move each threshold within the gap between two neighbouring values in which it lies.

    No row of X changes its side. Rows go to the same sides if their values are rounded to float32,
    unless float32 merges the two values; see `Trees.float64_features`.

    Parameters
    ----------
    tree : Tree
        Tree as it was grown.
    X : ndarray of shape (n, p)
        Rows that grew it, float64 or float32, NaN where a value is missing.
    at_middle : bool
        Whether thresholds move to the middles of their gaps. Otherwise they stay as close as they
        can to where they are.

    Returns
    -------
    Tree
    """
    nodes = np.flatnonzero(tree.compares_numbers)
    if not len(nodes):
        return tree
    threshold = tree.threshold.copy()
    for j, own in group_by_feature(tree.feature, nodes):
        values = np.sort(X[:, j])  # NaN comes last
        values = values[: np.searchsorted(values, np.inf, side="right")]
        behind = np.searchsorted(values, threshold[own], side="right")
        bounded = np.concatenate([[-np.inf], values, [np.inf]])
        low, high = bounded[behind], bounded[behind + 1]
        threshold[own] = choose_thresholds(threshold[own], low, high, at_middle)
    return tree.with_splits(threshold, tree.category_start, tree.categories)
