"""Certificates without a split: in a box that is known before, all rows label, prune and certify."""

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
    """The cells of a box that is known without the rows, and the rows that label and certify them.

    `fixed_box` makes it.

    Parameters
    ----------
    tree : Tree
        The cells of the box, all sides halved equally often.
    stats : NodeStats
        Counts of the rows of two classes, each row once; their majority labels the nodes.
    box : array-like of shape (2, p)
        Lower and upper corner, fixed before any row was seen.

    Raises
    ------
    ValueError
        If the tree is not that of the box, or rows are weighted or not of two classes, or others have
        labelled the nodes.
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
                "tree must hold all cells of the box, as dyadic_grid makes them: one that rows have "
                "grown cannot be certified by them"
            )
        if depth % p:
            raise ValueError(
                f"tree must halve all sides equally often: expected a depth that {p} divides, got "
                f"{depth}"
            )
        counts = self.stats.check_tree(self.tree).counts
        if counts.shape[1] != 2:
            raise ValueError(f"expected rows of 2 classes, got {counts.shape[1]}")
        if (counts % 1 != 0).any() or not counts[0].sum() >= 1:
            raise ValueError("stats must count whole rows, one at least")
        if (self.stats.errors > counts.min(axis=1)).any():
            raise ValueError("the majority of the rows must label the nodes")

    @property
    def n(self) -> int:
        """Number of rows."""
        return round(float(self.stats.n[0]))

    @property
    def log_cells(self) -> float:
        """Log of the number of the smallest cells, p log m (nats)."""
        return self.tree.depth * math.log(2)

    def prunings(self, log_delta: float) -> FragmentPrunings:
        """The prunings that pay for what is not known of their error, and for their root fragment."""
        nats = self.log_cells + math.log(3) - log_delta
        rule = fragment_prunings(self.tree, self.stats, log_cells=self.log_cells, count_empty=True)
        return replace(rule, cell_penalty=np.sqrt(24 * nats * self.stats.n) + 2 * nats)


@validate_arguments
def fixed_box(
    tree: Tree, X: ArrayLike, y: ArrayLike, box: ArrayLike, *, n_jobs: int | None = None
) -> FixedBox:
    """Count all rows in the cells of a box that was fixed before they were seen.

    Parameters
    ----------
    tree : Tree
        The cells, ``dyadic_grid(*box, depth)`` of a depth that p divides. It may depend on the number
        of the rows, and on nothing else of them.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of int, shape (n,)
        Class of each row, 0 or 1.
    box : array-like of shape (2, p)
        Lower and upper corner. Values beyond it fall into the cells at its boundary.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    FixedBox

    Raises
    ------
    ValueError
        If the tree is not that of the box, or there are more classes.
    """
    rows = check_matrix(X)
    classes = check_codes("y", y, len(rows), 2)
    return count_in_box(tree, tree.apply(rows, n_jobs=n_jobs), classes, box)


def count_in_box(tree: Tree, leaf: Int32, y: Int32, box: ArrayLike) -> FixedBox:
    """Do what `fixed_box` does, for rows that have been checked and routed to their leaves."""
    corners: Float64 = check_column("box", box, "float64", (2, tree.n_features))
    return FixedBox(tree, count_by_leaf(tree, leaf, y, None, 2), corners)


@validate_arguments
def lowest_fixed_box(fixed: FixedBox, delta: float = 0.05, share: float = 1.0) -> NodeWeights:
    """Find the pruning with the lowest bound of `certify_fixed_box`, exactly.

    Parameters
    ----------
    fixed : FixedBox
        The box and the rows.
    delta, share : float
        As in `certify_fixed_box`.

    Returns
    -------
    NodeWeights
        Weights 0 and 1.
    """
    return fixed.prunings(compute_log_delta(delta, share)).solve(1.0)


@validate_arguments
def certify_fixed_box(
    fixed: FixedBox, pruning: NodeWeights, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify a pruning by the rows that have labelled it and chosen it.

    All prunings are covered at once, whatever chose this one. Its error is at most the one observed
    plus the least, over its root fragments R, of ``1 / n`` times the sum over the leaves v of R of ::

        sqrt(48 n(v) T(v) log(2 n)) + sqrt(24 n(v) c) + 2 c,    c = p log(m) + log(3 / delta)

    where v holds n(v) rows and T(v) of the pruning's leaves, those without rows too, and m cells are a
    side of the box. The source leaves open whether the last term stands once for all leaves; here it
    stands for each of them, which is the safe reading.

    Parameters
    ----------
    fixed : FixedBox
        The box and the rows.
    pruning : NodeWeights
        Weights 0 and 1, such as `spatially_adaptive` or `lowest_fixed_box` finds.
    delta, share : float
        As in `hold_out`.

    Returns
    -------
    Certificate
        Its complexity is p log(m), and observed are the error, the sums over R of the roots of the
        shares of rows times leaves and of the shares of rows, and the leaves of R. The term of the
        leaves counts as confidence in its `parts`.

    Raises
    ------
    ValueError
        If the weights are not 0 and 1, or a probability is out of range.

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
    # Below the pruning a fragment would only pay more.
    paid = rule.size_penalty * np.sqrt(np.maximum(leaves, 1)) + rule.cell_penalty
    fragment = prune(fixed.tree, paid).weight
    shares = fixed.stats.n / fixed.n
    risk = float(pruning.weight @ fixed.stats.errors) / fixed.n
    sizes, roots = float(fragment @ np.sqrt(shares * leaves)), float(fragment @ np.sqrt(shares))
    observed = (risk, sizes, roots, float(fragment.sum()))
    return compute_certificate("fixed_box", observed, fixed.n, fixed.log_cells, delta, share)


def find_matching_pruning(tree: Tree, pruned: Tree) -> NodeWeights:
    """The pruning of a tree that another tree is, which has the same cells down to its leaves."""
    number = np.zeros(pruned.n_nodes, dtype=np.intp)
    for v in np.flatnonzero(~pruned.is_leaf):
        number[pruned.left[v] : pruned.left[v] + 2] = tree.left[number[v]] + np.arange(2)
    splits = np.zeros(tree.n_nodes, dtype=bool)
    splits[number[~pruned.is_leaf]] = True
    return make_pruning(tree, splits)
