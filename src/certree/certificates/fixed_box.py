"""Certificates without a train/calibration split.

In a fixed box the same rows label, prune and certify.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from certree.certificates.certificate import Certificate, compute_certificate, compute_log_delta
from certree.grow.grid import MAX_GRID_DEPTH, dyadic_grid
from certree.interface.arrays import (
    ArrayRecord,
    Float64,
    Int32,
    check_codes,
    check_column,
    check_matrix,
)
from certree.interface.signatures import validate_arguments, validate_settings
from certree.prunings.penalties import prune
from certree.prunings.scott_nowak import FragmentPrunings, fragment_prunings
from certree.stats import NodeStats
from certree.stats.nodes import count_by_leaf
from certree.tree import Tree
from certree.weights.node_weights import NodeWeights, expect_pruning, make_pruning

_COLUMNS = ("feature", "threshold", "left", "chain", "missing_left", "categories")


@dataclass(frozen=True, slots=True, eq=False)
class FixedBox(ArrayRecord):
    """A dyadic grid over a box that was fixed before any row was seen, with counts of rows.

    `fixed_box` makes it.

    Parameters
    ----------
    tree : Tree
        The grid as a tree: all sides of the box are halved equally often.
    stats : NodeStats
        Class counts of the rows in each node, two classes, each row once; their majority labels the
        nodes.
    box : array-like of shape (2, p)
        Lower and upper corner of the box.

    Raises
    ------
    ValueError
        If the tree is not the grid of the box, rows are weighted or not of two classes, or the
        labels are not those of the majority.
    """

    tree: Tree
    stats: NodeStats
    box: Float64

    def __post_init__(self) -> None:
        validate_settings(self)
        self._check("float64", (2, self.tree.n_features), "box")
        depth, p = self.tree.depth, self.tree.n_features
        fixed = dyadic_grid(self.box[0], self.box[1], min(depth, MAX_GRID_DEPTH))
        if not all(
            np.array_equal(getattr(self.tree, name), getattr(fixed, name)) for name in _COLUMNS
        ):
            raise ValueError(
                "tree must be the grid that dyadic_grid makes for box, got another tree, which "
                "cannot be certified by the rows that it grew on: pass dyadic_grid(*box, depth)"
            )
        if depth % p:
            raise ValueError(
                f"tree must halve all sides equally often: its depth must be a multiple of {p}, got "
                f"{depth}; choose such a depth"
            )
        counts = self.stats.check_tree(self.tree).counts
        if counts.shape[1] != 2:
            raise ValueError(
                f"stats must count rows of 2 classes, got {counts.shape[1]} classes: count rows with "
                "classes 0 and 1 by certree.certificates.fixed_box; more classes are not supported"
            )
        if (counts % 1 != 0).any() or not counts[0].sum() >= 1:
            raise ValueError(
                "stats must count each row once, and at least one row, got fractional counts or no "
                "rows: call certree.certificates.fixed_box, which counts the rows"
            )
        if (self.stats.errors > counts.min(axis=1)).any():
            raise ValueError(
                "stats must have the majority class of each node as its label, got another class: call "
                "certree.certificates.fixed_box, which sets the labels"
            )

    @property
    def n(self) -> int:
        """Number of rows that the object counts: those in the root of the grid."""
        return round(float(self.stats.n[0]))

    @property
    def log_cells(self) -> float:
        """Natural logarithm of the number of cells of the grid: the leaves of its tree."""
        return self.tree.depth * math.log(2)

    def prunings(self, log_delta: float) -> FragmentPrunings:
        """Return the family of prunings that minimise error plus a multiple of a bound's penalty.

        The bound is that of `certify_fixed_box` on the error of a pruning of the grid on new rows:
        the error on the rows counted here plus a penalty, which grows with the number of the
        pruning's leaves. log_delta: natural log of the probability with which it may fail.
        ``solve(alpha)`` of the result returns, as `NodeWeights`, the pruning with the lowest error
        plus alpha times the penalty; ``solve(1.0)`` has the lowest bound.
        """
        nats = self.log_cells + math.log(3) - log_delta
        rule = fragment_prunings(self.tree, self.stats, log_cells=self.log_cells, count_empty=True)
        return replace(rule, cell_penalty=np.sqrt(24 * nats * self.stats.n) + 2 * nats)


@validate_arguments
def fixed_box(
    tree: Tree, X: ArrayLike, y: ArrayLike, box: ArrayLike, *, n_jobs: int | None = None
) -> FixedBox:
    """Count all rows in the nodes of a grid over a box that was fixed before they were seen.

    Parameters
    ----------
    tree : Tree
        The grid, ``dyadic_grid(*box, depth)`` with a depth that is a multiple of p. It may depend
        on the number of rows, but on nothing else of them.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of int, shape (n,)
        Class of each row, 0 or 1.
    box : array-like of shape (2, p)
        Lower and upper corner. Rows beyond it are counted in the leaves at its boundary.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    FixedBox
        The grid, the box, and the number of rows of each class in each node; the majority class
        labels the node, and nodes without rows have counts of 0.

    Raises
    ------
    ValueError
        If the tree is not the grid of the box, or classes are not 0 and 1.
    """
    rows = check_matrix(X)
    classes = check_codes("y", y, len(rows), 2)
    return count_in_box(tree, tree.apply(rows, n_jobs=n_jobs), classes, box)


def count_in_box(tree: Tree, leaf: Int32, y: Int32, box: ArrayLike) -> FixedBox:
    """Count rows in the nodes of a grid over a fixed box, by the leaves that they reach.

    tree: the grid, a tree that halves the sides of the box in turn, as `dyadic_grid` makes it;
    leaf: node number of the leaf that each row reaches, (n,); y: class of each row, 0 or 1, (n,);
    box: lower and upper corner, (2, p). The rows themselves are not read: rows outside the box
    count in the leaves at its boundary that they reach.

    Return a `FixedBox`: the grid, the corners, and the number of rows of each class in each node,
    (m, 2). The majority class labels the node; a node without rows has counts of 0 and the label of
    its parent. Raises ValueError if the tree is not the grid of the box, or there are no rows.
    """
    corners: Float64 = check_column("box", box, "float64", (2, tree.n_features))
    return FixedBox(tree, count_by_leaf(tree, leaf, y, None, 2), corners)


@validate_arguments
def lowest_fixed_box(fixed: FixedBox, delta: float = 0.05, share: float = 1.0) -> NodeWeights:
    """Find the pruning with the lowest bound of `certify_fixed_box`, exactly.

    A pruning is the grid's tree with some nodes turned into leaves.

    Parameters
    ----------
    fixed : FixedBox
        The grid and the rows.
    delta, share : float
        Probability with which the bound may fail, and the fraction of it that is used.

    Returns
    -------
    NodeWeights
        The pruning of the grid whose error on new rows has the lowest bound: weight 1 for its
        leaves, 0 for all other nodes.
    """
    return fixed.prunings(compute_log_delta(delta, share)).solve(1.0)


@validate_arguments
def certify_fixed_box(
    fixed: FixedBox, pruning: NodeWeights, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the error of a pruning of a fixed grid by the same rows that chose and labelled it.

    All prunings are covered at once. The error is at most the observed one plus ``1 / n`` times the
    least, over the root fragments R of the pruning, of the sum over the leaves v of R of ::

        sqrt(48 n(v) T(v) log(2 n)) + sqrt(24 n(v) c) + 2 c,    c = p log(m) + log(3 / delta)

    A root fragment is a pruning that stops at the same nodes or above. n(v) is the number of rows
    in v, T(v) the number of the pruning's leaves in v (also those without rows), p the number of
    features, and m the number of cells along a side of the box. Scott and Nowak leave open whether
    the last term, 2 c, counts once or for each leaf; here it counts for each leaf, which is the
    larger value.

    Parameters
    ----------
    fixed : FixedBox
        The grid and the rows.
    pruning : NodeWeights
        Weight 1 for the leaves of the pruning, 0 for all other nodes, as `spatially_adaptive` and
        `lowest_fixed_box` return it.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.

    Returns
    -------
    Certificate
        Upper bound on the error of the pruning on new rows. Its `complexity` is p log(m).
        `observed` are the error, the sums over the leaves v of R of sqrt(q(v) T(v)) and of
        sqrt(q(v)) for the fractions q(v) = n(v) / n of the rows, and the number of leaves of R. In
        its `parts`, the terms that the bound is the sum of, the term 2 c counts as `confidence`.

    Raises
    ------
    ValueError
        If the weights are not those of a pruning, or delta or share is out of range.

    References
    ----------
    Scott and Nowak, "Near-minimax optimal classification with dyadic classification trees", NIPS
    2003, Lemma 1.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.certificates import certify_fixed_box, fixed_box, lowest_fixed_box
    >>> from certree.grow import dyadic_grid
    >>> X = np.random.default_rng(0).random((20_000, 1))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> fixed = fixed_box(dyadic_grid([0.0], [1.0], 3), X, y, box=[[0], [1]])
    >>> pruning = lowest_fixed_box(fixed)
    >>> certificate = certify_fixed_box(fixed, pruning)
    >>> pruning.expected_leaves, certificate.risk, round(certificate.bound, 3)
    (2.0, 0.0, 0.312)
    """
    ends = np.flatnonzero(expect_pruning(fixed.tree, pruning).weight).astype(np.int32)
    rule = fixed.prunings(compute_log_delta(delta, share))
    leaves = count_by_leaf(fixed.tree, ends, np.zeros_like(ends), None, 1).counts[:, 0]
    # A fragment that reaches below the pruning is never cheaper.
    paid = rule.size_penalty * np.sqrt(np.maximum(leaves, 1)) + rule.cell_penalty
    fragment = prune(fixed.tree, paid).weight
    shares = fixed.stats.n / fixed.n
    risk = float(pruning.weight @ fixed.stats.errors) / fixed.n
    sizes, roots = float(fragment @ np.sqrt(shares * leaves)), float(fragment @ np.sqrt(shares))
    observed = (risk, sizes, roots, float(fragment.sum()))
    return compute_certificate("fixed_box", observed, fixed.n, fixed.log_cells, delta, share)


def find_matching_pruning(tree: Tree, pruned: Tree) -> NodeWeights:
    """Return the pruning of `tree` that equals another tree: weight 1 for its leaves, else 0.

    pruned: a tree with the same splits as `tree`, down to its own leaves; its nodes may be numbered
    otherwise. That the splits are the same is not checked.
    """
    number = np.zeros(pruned.n_nodes, dtype=np.intp)
    for v in np.flatnonzero(~pruned.is_leaf):
        number[pruned.left[v] : pruned.left[v] + 2] = tree.left[number[v]] + np.arange(2)
    splits = np.zeros(tree.n_nodes, dtype=bool)
    splits[number[~pruned.is_leaf]] = True
    return make_pruning(tree, splits)
