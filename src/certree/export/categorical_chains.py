"""Categorical splits as chains of threshold splits, for formats without category sets."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from certree.interface.arrays import Float64, Int32
from certree.tree import LEAF, Tree

# Each run of neighbouring codes needs a copy of the subtree below it.
_MAX_NODES = 2**22


class ExpandedTree(NamedTuple):
    """A tree without categorical splits.

    Attributes
    ----------
    tree : Tree
        The tree.
    origin : ndarray of int32, shape (m,)
        The node of the original tree from which each node stems.
    fraction : ndarray of shape (m,)
        Fraction of the rows of the original node that reach the node, if all codes are equally
        frequent.
    """

    tree: Tree
    origin: Int32
    fraction: Float64


class _CodeRange(NamedTuple):
    """Codes first .. last that rows at a node may have, and whether their value may be missing."""

    first: int
    last: int
    missing: bool

    @property
    def n(self) -> int:
        """Number of codes; at least 1, as a range of NaN alone counts as one."""
        return max(1, self.last - self.first + 1)


class _Run(NamedTuple):
    """Neighbouring codes that go to the same child, and their fraction of all codes that do."""

    codes: _CodeRange
    child: int
    fraction: float


class _PendingNode(NamedTuple):
    """A node to be written: an original node, or a split between runs of its codes.

    Attributes
    ----------
    node : int
        The original node.
    fraction : float
        See `ExpandedTree`.
    ranges : dict of int to _CodeRange
        Codes that rows may have here, of features on which chains above have split.
    runs : list of _Run
        Runs that the chain still has to separate; empty if the node is not part of a chain.
    """

    node: int
    fraction: float
    ranges: dict[int, _CodeRange]
    runs: list[_Run]


def expand_categorical_splits(tree: Tree, n_categories: Sequence[int]) -> ExpandedTree:
    """Replace categorical splits by chains of threshold splits that send rows the same way.

    Rows must have NaN, or the code of a category of the fit, in each categorical feature.

    Parameters
    ----------
    tree : Tree
        The tree.
    n_categories : sequence of int
        Number of categories of each feature.

    Returns
    -------
    ExpandedTree

    Raises
    ------
    ValueError
        If the tree would have more than 2**22 nodes.
    """
    if not len(tree.categories):
        return ExpandedTree(tree, np.arange(tree.n_nodes, dtype=np.int32), np.ones(tree.n_nodes))
    written: list[_PendingNode] = []
    splits: list[tuple[float, bool, int]] = []  # threshold, missing_left, left
    queue = [_PendingNode(0, 1.0, {}, [])]
    for pending in queue:  # The queue grows in the loop, so parents come before children.
        node = _skip_decided_splits(tree, n_categories, pending)
        written.append(node)
        if tree.left[node.node] == LEAF:
            splits.append((0.0, False, LEAF))
            continue
        threshold, missing_left, children = _make_children(tree, node)
        splits.append((threshold, missing_left, len(queue)))
        queue += children
        if len(queue) > _MAX_NODES:
            raise ValueError(
                f"categorical splits must need at most {_MAX_NODES} nodes as chains of threshold "
                "splits, and need more: export a smaller tree, such as that of compact()"
            )
    origin = np.array([node.node for node in written], dtype=np.int32)
    thresholds, missing, left = (list(column) for column in zip(*splits, strict=True))
    expanded = Tree(
        tree.feature[origin],
        np.array(thresholds, dtype=np.float64),
        np.array(left, dtype=np.int32),
        np.ones(len(origin), dtype=np.int32),
        tree.n_features,
        np.array(missing, dtype=np.bool_),
    )
    return ExpandedTree(expanded, origin, np.array([node.fraction for node in written]))


def _skip_decided_splits(
    tree: Tree, n_categories: Sequence[int], pending: _PendingNode
) -> _PendingNode:
    """Go down while all remaining codes go to one child; add the runs of the node that is reached."""
    while not pending.runs and len(tree.category_set(pending.node)):
        runs = _find_runs(tree, n_categories, pending)
        if len(runs) > 1:
            return pending._replace(runs=runs)
        pending = pending._replace(node=runs[0].child)
    return pending


def _find_runs(tree: Tree, n_categories: Sequence[int], pending: _PendingNode) -> list[_Run]:
    """Return the runs of codes at a categorical split, in order; the last run may be NaN alone."""
    node, feature = pending.node, int(tree.feature[pending.node])
    codes = pending.ranges.get(feature, _CodeRange(0, n_categories[feature] - 1, True))
    children = int(tree.left[node]), int(tree.left[node]) + 1
    missing_child, set_child = children if tree.missing_left[node] else children[::-1]
    inside = set(tree.category_set(node).tolist())
    missing, runs = codes.missing, []
    for is_inside, group in groupby(range(codes.first, codes.last + 1), inside.__contains__):
        run = [*group]
        # NaN joins the first run that goes to its child.
        with_missing = missing and not is_inside
        missing = missing and is_inside
        child = set_child if is_inside else missing_child
        runs.append((_CodeRange(run[0], run[-1], with_missing), child))
    if missing:
        runs.append((_CodeRange(0, -1, True), missing_child))
    total = {child: sum(codes.n for codes, to in runs if to == child) for child in children}
    return [_Run(codes, child, codes.n / total[child]) for codes, child in runs]


def _make_children(tree: Tree, pending: _PendingNode) -> tuple[float, bool, list[_PendingNode]]:
    """Return the threshold and missing_left of a split, and its two children."""
    node, feature = pending.node, int(tree.feature[pending.node])
    if not pending.runs:
        left = int(tree.left[node])
        children = [pending._replace(node=left), pending._replace(node=left + 1)]
        return float(tree.threshold[node]), bool(tree.missing_left[node]), children
    half = len(pending.runs) // 2
    first, second = pending.runs[:half], pending.runs[half:]
    missing_left = any(run.codes.missing for run in first)
    halves = [_make_half(pending, feature, first), _make_half(pending, feature, second)]
    return float(first[-1].codes.last), missing_left, halves


def _make_half(pending: _PendingNode, feature: int, runs: list[_Run]) -> _PendingNode:
    """Return the child of a chain's split that takes these runs."""
    if len(runs) > 1:
        return pending._replace(runs=runs)
    run = runs[0]
    return _PendingNode(
        run.child,
        pending.fraction * run.fraction,
        {**pending.ranges, feature: run.codes},
        [],
    )
