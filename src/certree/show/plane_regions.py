"""Regions of a tree in the plane of two features, with all other features fixed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from certree.interface.arrays import Float64
from certree.show.tree_summary import TreeSummary
from certree.tree import Tree
from certree.weights.node_weights import reached

# The values of a feature in a region: the ends of an interval, or codes of categories, ascending.
Interval = tuple[float, float]
Values = Interval | list[int]


@dataclass(frozen=True, slots=True)
class PlaneRegion:
    """A region of the plane in which the model has one prediction.

    Parameters
    ----------
    leaf : int
        Node number of a leaf of the tree whose prediction holds in the region.
    sides : pair
        Values of the two features in the region, of each either an interval as a tuple (low, high),
        which contains `high` but not `low`, or a list of codes of categories, ascending.
    """

    leaf: int
    sides: tuple[Values, Values]


@dataclass(frozen=True, slots=True)
class PlaneSplit:
    """A split of the plane by one of its two features.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    axis : {0, 1}
        Which of the two features is split.
    positions : list of float
        Where the lines of the split cross that axis; category k covers k - 0.5 to k + 0.5.
    across : tuple or list
        Values of the other feature along which the lines run: an interval (low, high), or a list of
        codes of categories, ascending.
    depth : int
        Number of splits of the plane above this one in the tree: the region that it splits lies
        inside theirs.
    probability : float
        Posterior probability that a pruning has the split; 1 for a single tree.
    """

    axis: int
    positions: list[float]
    across: Values
    depth: int
    probability: float


def find_plane_regions(
    summary: TreeSummary, features: tuple[int, int], row: Float64, window: tuple[Values, Values]
) -> tuple[list[PlaneRegion], list[PlaneSplit]]:
    """Find the regions of a tree in a window of the plane of two features, and its splits there.

    Regions end where no pruning with positive weight splits further, so that a pruned tree has the
    leaves of its pruning.

    Parameters
    ----------
    summary : TreeSummary
        The tree and the weights of its prunings.
    features : pair of int
        Index of the feature of each axis.
    row : ndarray of float64, shape (p,)
        Encoded values of all features; those of `features` are ignored.
    window : pair
        For each axis the ends of the window, (low, high), or a list of the codes of all categories.

    Returns
    -------
    regions : list of PlaneRegion
        They partition the window.
    splits : list of PlaneSplit
        The splits by one of the two features, each before those inside it.
    """
    tree, weights = summary.tree, summary.explainer.weights
    probability = np.where(tree.is_leaf, 0.0, reached(tree, weights) - weights.weight)
    regions, splits = [], []
    stack = [(0, window, 0)]
    while stack:
        node, sides, depth = stack.pop()
        if probability[node] <= 0:
            regions.append(PlaneRegion(_find_first_leaf(tree, node), sides))
            continue
        feature, left = int(tree.feature[node]), int(tree.left[node])
        if feature not in features:
            stack.append((left + (not _goes_left(tree, node, row[feature])), sides, depth))
            continue
        axis = features.index(feature)
        parts = _split_values(tree, node, sides[axis])
        children = [(left + k, part) for k, part in enumerate(parts) if part]
        if len(children) == 2:
            positions = _find_positions(sides[axis], parts)
            across, share = sides[1 - axis], min(float(probability[node]), 1.0)
            splits.append(PlaneSplit(axis, positions, across, depth, share))
            depth += 1
        for child, part in children:
            stack.append((child, (part, sides[1]) if axis == 0 else (sides[0], part), depth))
    return regions, splits


def list_intervals(values: Values) -> list[Interval]:
    """Return the intervals of an axis that values cover, ascending.

    values: an interval, a tuple (low, high), which is the only result; or a list of ascending codes
    of categories. Category k covers k - 0.5 to k + 0.5, and adjacent categories share an interval.
    """
    if isinstance(values, tuple):
        return [values]
    gaps = [k for k, (code, after) in enumerate(pairwise(values), 1) if after != code + 1]
    runs = pairwise([0, *gaps, len(values)])
    return [(values[begin] - 0.5, values[end - 1] + 0.5) for begin, end in runs]


def _find_first_leaf(tree: Tree, node: int) -> int:
    """Return the number of the leftmost leaf below a node; of a leaf its own number.

    node: number of the node in the tree's arrays.
    """
    while not tree.is_leaf[node]:
        node = int(tree.left[node])
    return node


def _goes_left(tree: Tree, node: int, value: float) -> bool:
    """Return whether rows with an encoded value of the feature of a split go to its left child.

    tree, node: the tree, and the number of the node that is split. value: a number or a category
    code, not NaN.
    """
    codes = tree.category_set(node)
    if len(codes):
        return bool((value in codes) != tree.unseen_left[node])
    return bool(value <= tree.threshold[node])


def _split_values(tree: Tree, node: int, values: Values) -> tuple[Values, Values]:
    """Return the values of a region that go to the left child of a split, and to the right one.

    tree, node: the tree, and the number of the node that is split. values: values of its feature in
    the region: an interval, a tuple (low, high), or a list of codes of categories. Both results have
    the same form; [] if no value goes to the child.
    """
    if isinstance(values, list):
        is_left = [_goes_left(tree, node, code) for code in values]
        left = [code for code, left in zip(values, is_left, strict=True) if left]
        return left, [code for code, left in zip(values, is_left, strict=True) if not left]
    low, high = values
    limit = float(tree.threshold[node])
    if limit >= high:
        return values, []
    if limit <= low:
        return [], values
    return (low, limit), (limit, high)


def _find_positions(values: Values, parts: tuple[Values, Values]) -> list[float]:
    """Return where a split's lines cross the axis of its feature, between values of the two children.

    values: values of the feature in the region that is split: an interval, a tuple (low, high), or a
    list of category codes. parts: the values of its left and of its right child, neither empty. The
    result is the threshold in an interval. Between adjacent category codes k and k + 1 there is a
    line, at k + 0.5, if they go to different children.
    """
    if isinstance(values, tuple):
        return [parts[0][1]]
    left = set(parts[0])
    return [
        code + 0.5
        for code, after in pairwise(values)
        if after == code + 1 and (code in left) != (after in left)
    ]
