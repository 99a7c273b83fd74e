"""Categorical splits as chains of threshold splits, for formats without category sets."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from certree.interface.arrays import Float64, Int32
from certree.rows.categories import UNKNOWN_CODE
from certree.tree import LEAF, Tree

# Code of unknown categories.
_UNKNOWN = int(UNKNOWN_CODE)
# Each run of neighbouring codes needs a copy of the subtree below it, so that a tree of hundreds of
# nodes can need millions. Trees of this many nodes are expanded in a second or two.
_MAX_NODES = 2**17


class ExpandedTree(NamedTuple):
    """A tree whose categorical splits have been replaced by threshold splits.

    Attributes
    ----------
    tree : Tree
        The tree, with m nodes.
    origin : ndarray of int32, shape (m,)
        For each of its nodes, the index of the node of the original tree that it replaces. Several
        nodes may replace one: copies, or the splits of a chain.
    fraction : ndarray of float64, shape (m,)
        Fraction of the rows of the original node that reach the node, if all category codes are
        equally frequent. All splits of a chain have the fraction of its first split.
    """

    tree: Tree
    origin: Int32
    fraction: Float64


class _CodeRange(NamedTuple):
    """The range of category codes of one feature that rows at a node may have.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    first, last : int
        The codes are first, first + 1, ..., last; there are none if last is first - 1. Code -1
        stands for unknown categories.
    missing : bool
        Whether the value of such rows may also be missing (NaN).
    """

    first: int
    last: int
    missing: bool

    @property
    def n(self) -> int:
        """Number of codes >= 0 in the range, but at least 1.

        The number is 1 if the range only stands for missing values or unknown categories: these
        count as one code.
        """
        return max(1, self.last - max(self.first, 0) + 1)


class _Run(NamedTuple):
    """Neighbouring category codes that a categorical split sends to the same child.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    codes : _CodeRange
        The first and the last of the codes, and whether missing values (NaN) go with them.
    child : int
        Index of the child in the original tree.
    fraction : float
        Number of these codes, divided by the number of all codes that go to the same child, of
        those that rows may have at the split. A run of missing values alone counts as one code.
    """

    codes: _CodeRange
    child: int
    fraction: float


class _PendingNode(NamedTuple):
    """A node of the new tree to be written next.

    The new node replaces a node of the original tree, as a copy of it or as one of the splits of
    its chain: the threshold splits that together replace a categorical split. The constructor takes
    the attributes in this order.

    Attributes
    ----------
    node : int
        Index of the original node.
    fraction : float
        Fraction of the rows of the original node that reach this one, if all category codes are
        equally frequent. All splits of a chain have the fraction of its first split.
    ranges : dict of int to _CodeRange
        For the index of each feature that chains above have split on, the codes that rows may have
        here. For any other feature, rows may have all codes, or lack the value.
    runs : sequence of _Run
        Runs (neighbouring codes that go to the same child of the original node) that the chain
        still has to separate; empty if the node is not part of a chain.
    """

    node: int
    fraction: float
    ranges: dict[int, _CodeRange]
    runs: Sequence[_Run]


class _RunFinder:
    """Finds the runs of category codes at the splits of a tree.

    A run is a range of neighbouring codes that a categorical split sends to the same child. The
    runs of a node are kept, as copies of the node need them again. tree: the original tree.
    n_categories: number of categories of each of the p features; not used for numeric features.
    """

    def __init__(self, tree: Tree, n_categories: Sequence[int]) -> None:
        self.tree, self.n_categories = tree, n_categories
        self.feature: list[int] = tree.feature.tolist()
        self.left: list[int] = tree.left.tolist()
        self.has_set: list[bool] = (np.diff(tree.category_start) > 0).tolist()
        self._found = dict[tuple[int, _CodeRange | None], list[_Run]]()

    def find(self, pending: _PendingNode) -> list[_Run]:
        """Return the runs at a categorical split: neighbouring codes that go to the same child.

        pending: a node with a categorical split, and in `ranges` the codes that rows may have there.
        Return them in the order of the codes. A single run means that all possible codes go to one
        child. Missing values are in the first run that goes to their child, or in a last run of
        their own. Callers must not change the list, as it is kept for the next call.
        """
        key = pending.node, pending.ranges.get(self.feature[pending.node])
        if (runs := self._found.get(key)) is None:
            runs = self._found[key] = _find_runs(self.tree, self.n_categories, *key)
        return runs


def expand_categorical_splits(tree: Tree, n_categories: Sequence[int]) -> ExpandedTree:
    """Replace categorical splits by chains of threshold splits that send rows the same way.

    The function serves export formats that have no category sets. A split by "code in {0, 1, 4}" of
    a feature with codes 0 .. 5 has four runs of codes: 0 .. 1, 2 .. 3, 4 and 5. They are separated
    by "code <= 3", and then by "code <= 1" and "code <= 4". Each run needs a copy of the subtree of
    the child that its codes go to. Rows must have NaN, the code of a category of the fit, or -1 for
    any other category, in each categorical feature.

    Parameters
    ----------
    tree : Tree
        The tree; it is not changed.
    n_categories : sequence of p int
        Number of categories of each of the p features; not used for numeric features.

    Returns
    -------
    ExpandedTree
        The new tree and, for each of its nodes, the index of the original node and the fraction of
        that node's rows. A tree without categorical splits is returned as it is.

    Raises
    ------
    ValueError
        If the tree would have more than 2**17 nodes.
    """
    if not len(tree.categories):
        return ExpandedTree(tree, np.arange(tree.n_nodes, dtype=np.int32), np.ones(tree.n_nodes))
    written: list[_PendingNode] = []
    splits: list[tuple[float, bool, int]] = []  # threshold, missing_left, left
    finder = _RunFinder(tree, n_categories)
    queue = [_PendingNode(0, 1.0, {}, ())]
    for pending in queue:  # The queue grows in the loop, so parents come before children.
        node = _skip_decided_splits(finder, pending)
        written.append(node)
        if finder.left[node.node] == LEAF:
            splits.append((0.0, False, LEAF))
            continue
        threshold, missing_left, children = _make_children(finder, node)
        splits.append((threshold, missing_left, len(queue)))
        queue += children
        if len(queue) > _MAX_NODES:
            raise ValueError(
                f"a tree must need at most {_MAX_NODES} nodes without categorical splits, which "
                "scikit-learn does not have, and needs more: use to_onnx(), to_sql() or to_dict(), "
                "which have them, or export a smaller model, such as the result of its compact()"
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


def _skip_decided_splits(finder: _RunFinder, pending: _PendingNode) -> _PendingNode:
    """Go down from a node while its categorical split sends all possible codes to one child.

    The possible codes are those that the splits above leave to the rows of the node. A run is a
    range of neighbouring codes that go to the same child.

    Parameters
    ----------
    finder : _RunFinder
        The original tree, and the runs of codes at its splits.
    pending : _PendingNode
        The node to start from: its index in the original tree and, in `ranges`, the codes that rows
        may have there. It is returned unchanged if its `runs` are not empty: it is then a split
        inside a chain of threshold splits, whose runs are known already.

    Returns
    -------
    _PendingNode
        The first node that is a leaf, or has a threshold split, or a categorical split that divides
        the possible codes; it may be `pending` itself. At the categorical split `runs` is a list of
        at least two `_Run`, in the order of the codes. Each holds its first and last code, the
        index of the child in the original tree that they go to, and their fraction of the possible
        codes that go to that child. At a leaf or a threshold split `runs` is empty.
    """
    while not pending.runs and finder.has_set[pending.node]:
        node, fraction, ranges, _ = pending
        runs = finder.find(pending)
        if len(runs) > 1:
            return _PendingNode(node, fraction, ranges, runs)
        pending = _PendingNode(runs[0].child, fraction, ranges, ())
    return pending


def _find_runs(
    tree: Tree, n_categories: Sequence[int], node: int, codes: _CodeRange | None
) -> list[_Run]:
    """Return the runs of codes at a categorical split: neighbouring codes that go to one child.

    Parameters
    ----------
    tree : Tree
        The original tree.
    n_categories : sequence of p int
        Number of categories of each of the p features; not used for numeric features.
    node : int
        A node with a categorical split.
    codes : _CodeRange or None
        The codes that rows may have there; None: all of them, or none (a missing value).

    Returns
    -------
    list of _Run
        The runs in the order of the codes; each has its codes, the index of the child in `tree`,
        and their fraction of those codes in `codes` that go to that child. A single run means that
        all possible codes go to one child. If rows may lack the value, NaN belongs to the first run
        that goes to the child of missing values. If there is none, NaN has a run of its own, the
        last.
    """
    if codes is None:
        codes = _CodeRange(_UNKNOWN, n_categories[int(tree.feature[node])] - 1, True)
    children = int(tree.left[node]), int(tree.left[node]) + 1
    missing_child = children[0] if tree.missing_left[node] else children[1]
    unseen_child, set_child = children if tree.unseen_left[node] else children[::-1]
    inside = set(tree.category_set(node).tolist())
    missing, runs = codes.missing, []
    for is_inside, group in groupby(range(codes.first, codes.last + 1), inside.__contains__):
        run = [*group]
        child = set_child if is_inside else unseen_child
        # NaN joins the first run that goes to its child.
        with_missing = missing and child == missing_child
        missing = missing and not with_missing
        runs.append((_CodeRange(run[0], run[-1], with_missing), child))
    if missing:
        runs.append((_CodeRange(0, -1, True), missing_child))
    total = dict.fromkeys(children, 0)
    for found, child in runs:
        total[child] += found.n
    return [_Run(codes, child, codes.n / total[child]) for codes, child in runs]


def _make_children(
    finder: _RunFinder, pending: _PendingNode
) -> tuple[float, bool, list[_PendingNode]]:
    """Return the threshold of a node's split in the expanded tree, and its two children.

    A node with runs (ranges of neighbouring category codes) is split between the halves of the list
    of its runs: the first half goes left, the second, with the middle run of an odd number, right.
    Any other node has a threshold split already, and is split as in the original tree.

    Parameters
    ----------
    finder : _RunFinder
        The original tree.
    pending : _PendingNode
        The node, which is not a leaf. `_skip_decided_splits` has filled in its `runs`, at least
        two, if its split is categorical.

    Returns
    -------
    threshold : float
        Values (or category codes) up to it go left.
    missing_left : bool
        Whether NaN goes left.
    children : list of two _PendingNode
        The left and the right child, for the caller to write next.
    """
    node, fraction, ranges, runs = pending
    if not runs:
        tree, left = finder.tree, finder.left[node]
        children = [_PendingNode(child, fraction, ranges, ()) for child in (left, left + 1)]
        return float(tree.threshold[node]), bool(tree.missing_left[node]), children
    feature, half = finder.feature[node], len(runs) // 2
    first, second = runs[:half], runs[half:]
    missing_left = any(run.codes.missing for run in first)
    halves = [_make_half(pending, feature, first), _make_half(pending, feature, second)]
    return float(first[-1].codes.last), missing_left, halves


def _make_half(pending: _PendingNode, feature: int, runs: Sequence[_Run]) -> _PendingNode:
    """Return the child of a chain's split that takes half of the runs of codes.

    A chain is the threshold splits that replace a categorical split; a run is a range of
    neighbouring codes that the categorical split sends to the same child.

    Parameters
    ----------
    pending : _PendingNode
        The node that is split.
    feature : int
        Index of the categorical feature that the chain splits on.
    runs : sequence of _Run
        Runs whose codes go to the child.

    Returns
    -------
    _PendingNode
        With several runs, the next split of the same chain: `pending` with these `runs`. With a
        single run, the child of the original node that its codes go to, with no `runs`; its rows
        can only have the codes of the run, and its `fraction` is that of `pending` times the run's.
    """
    node, fraction, ranges, _ = pending
    if len(runs) > 1:
        return _PendingNode(node, fraction, ranges, runs)
    run = runs[0]
    return _PendingNode(run.child, fraction * run.fraction, {**ranges, feature: run.codes}, ())
