"""What the weighing rows say about every node: class counts and labels, or moments of a number."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from certree._core import count as core_count
from certree._core import error_gains, frequencies, majority, moments, smoothed_means, squared_gains
from certree.arrays import (
    MOST_ROWS,
    Float64,
    Int32,
    OfColumns,
    array_of,
    class_number,
    codes,
    column,
    matrix,
    row_weights,
)
from certree.signatures import checked, expect_settings
from certree.tree import Tree

__all__ = ["NodeStats", "Stats", "TargetStats", "count", "measure", "noise_variance"]


class Stats(Protocol):
    """What the later stages ask of the statistics of a tree, whatever the target is."""

    @property
    def n(self) -> Float64:
        """Rows in each node, (m,)."""

    @property
    def loss(self) -> Float64:
        """What each node's rows cost if it is a leaf, (m,)."""

    @property
    def impurity(self) -> Float64:
        """What greedy splits lower, (m,)."""

    @property
    def table(self) -> Float64:
        """The columns that judge a vote, one row per node."""

    def of(self, tree: Tree) -> Self:
        """Check that the statistics belong to a tree of this size, and return them."""

    def terms(self, tree: Tree, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Loss, square root of the rows and, as a third term, leaves: gains (m, f) and root (f,)."""

    def averages(self, tree: Tree, smoothing: float) -> Float64:
        """What each node predicts: shares of the classes (m, K), or a mean (m, 1)."""

    def at(self, nodes: NDArray[np.intp]) -> Self:
        """The statistics of some nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeStats(OfColumns):
    """Class counts and a label for every node of a tree.

    Parameters
    ----------
    counts : array-like of float, shape (m, K)
        Number (or weight) of the rows of each class in each node. A node's row is the sum of its
        children's rows.
    label : array-like of int, shape (m,)
        Class that each node predicts. Stored, because it need not be the majority of `counts`: it
        may come from other rows.

    Raises
    ------
    TypeError
        If a dtype does not convert without loss.
    ValueError
        If shapes differ, a count is negative, those of a node sum to more than 1e280, or a label is
        no class.
    """

    counts: Float64
    label: Int32

    def __post_init__(self) -> None:
        counts: Float64 = column("counts", self.counts, "float64", (None, None))
        if counts.shape[1] == 0:
            raise ValueError("counts must have at least one class")
        with np.errstate(over="ignore", invalid="ignore"):
            totals = counts.sum(axis=1)
        if not (totals <= MOST_ROWS).all() or (counts.size and counts.min() < 0):
            raise ValueError(
                f"counts must be finite and non-negative, and sum to at most {MOST_ROWS:g} in a node"
            )
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "label", codes("label", self.label, *counts.shape))

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.counts.shape[1])

    @property
    def n(self) -> Float64:
        """Rows in each node, (m,)."""
        return self.counts.sum(axis=1)

    @property
    def errors(self) -> Float64:
        """Rows in each node that its label gets wrong, (m,)."""
        right = np.take_along_axis(self.counts, self.label[:, None].astype(np.intp), axis=1)[:, 0]
        return self.n - right

    @property
    def loss(self) -> Float64:
        """The errors, (m,)."""
        return self.errors

    @property
    def log_loss(self) -> Float64:
        """Log loss of the rows of each node under its own frequencies (nats), (m,): n times entropy."""
        n = self.n
        shares = self.counts / np.maximum(n, np.finfo(np.float64).tiny)[:, None]
        return n * entr(shares).sum(axis=1)

    @property
    def impurity(self) -> Float64:
        """Rows of each node times its Gini index, (m,)."""
        n = self.n
        # Powers of two change no digit, and squares of large weights would overflow.
        scale = 2.0 ** -np.frexp(max(n.max(initial=0.0), 1.0))[1]
        least = np.finfo(np.float64).tiny
        squares = ((self.counts * scale) ** 2).sum(axis=1) / np.maximum(n * scale, least) / scale
        return np.maximum(n - squares, 0.0)

    @property
    def table(self) -> Float64:
        """The counts, (m, K)."""
        return self.counts

    def of(self, tree: Tree) -> Self:
        """Check that the statistics belong to a tree of this size, and return them."""
        _expect_nodes(len(self.label), tree)
        return self

    def terms(self, tree: Tree, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Errors, square root of the rows and, as a third term, leaves: gains (m, f) and root (f,)."""
        gains = error_gains(tree.left, self.counts, self.label, n_terms, empty_leaves)
        n = self.counts[0].sum()
        root = [n - self.counts[0, self.label[0]], np.sqrt(n), float(empty_leaves or n > 0)]
        return gains, np.array(root[:n_terms])

    def averages(self, tree: Tree, smoothing: float) -> Float64:
        """Shares of the classes in each node, (m, K), smoothed as `vote` says."""
        return frequencies(tree.left, self.counts, smoothing)

    def at(self, nodes: NDArray[np.intp]) -> "NodeStats":
        """The statistics of some nodes."""
        return NodeStats(self.counts[nodes], self.label[nodes])


@dataclass(frozen=True, slots=True, eq=False)
class TargetStats(OfColumns):
    """Moments of a numeric target for every node of a tree.

    Parameters
    ----------
    rows : array-like of float, shape (m,)
        Number (or weight) of the rows in each node.
    mean : array-like of float, shape (m,)
        Mean of their targets, which the node predicts; a node without rows has its parent's.
    sse : array-like of float, shape (m,)
        Sum of squared distances from the mean, in squared units of the target.
    unit : float
        Squared distance that counts as a loss of 1: the noise variance makes a law with
        ``lambda_error = 1/2`` the posterior under normal noise.

    Raises
    ------
    TypeError
        If a dtype does not convert without loss.
    ValueError
        If lengths differ, a number is not finite, rows or squares are negative, rows are more than
        1e280, or `unit` is not positive.
    """

    rows: Float64
    mean: Float64
    sse: Float64
    unit: float = 1.0

    def __post_init__(self) -> None:
        expect_settings(self)
        m = len(column("rows", self.rows, "float64", (None,)))
        for name in ("rows", "mean", "sse"):
            values: Float64 = column(name, getattr(self, name), "float64", (m,))
            if not np.isfinite(values).all() or (name != "mean" and m and values.min() < 0):
                raise ValueError(f"{name} must be finite" + " and non-negative" * (name != "mean"))
            object.__setattr__(self, name, values)
        if m and self.rows.max() > MOST_ROWS:
            raise ValueError(f"rows must be at most {MOST_ROWS:g}, got {self.rows.max():g}")
        if not 0 < float(self.unit) < np.inf:
            raise ValueError(f"unit must be a finite number > 0, got {self.unit!r}")
        if m and self.sse.max() > min(float(self.unit), 1.0) * 1e307:
            raise ValueError(f"sse must be at most 1e307 units, got {self.sse.max():g}")

    @property
    def n(self) -> Float64:
        """Rows in each node, (m,)."""
        return self.rows

    @property
    def loss(self) -> Float64:
        """Sum of squares over `unit`, (m,)."""
        with np.errstate(over="ignore"):  # NumPy 1 warns where denormal numbers are divided
            return self.sse / self.unit

    @property
    def impurity(self) -> Float64:
        """The sum of squares, (m,)."""
        return self.sse

    @property
    def table(self) -> Float64:
        """Rows, mean and sum of squares, (m, 3)."""
        return np.column_stack([self.rows, self.mean, self.sse])

    def of(self, tree: Tree) -> Self:
        """Check that the statistics belong to a tree of this size, and return them."""
        _expect_nodes(len(self.rows), tree)
        return self

    def terms(self, tree: Tree, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Loss, square root of the rows and, as a third term, leaves: gains (m, f) and root (f,)."""
        gains = squared_gains(tree.left, self.rows, self.mean, self.unit, n_terms, empty_leaves)
        n = self.rows[0]
        root = [self.sse[0] / self.unit, np.sqrt(n), float(empty_leaves or n > 0)]
        return gains, np.array(root[:n_terms])

    def averages(self, tree: Tree, smoothing: float) -> Float64:
        """Mean of each node, (m, 1), smoothed as `vote` says."""
        # Powers of two change no digit, and sums of large targets of heavy rows would overflow.
        heaviest = max(self.rows.max(initial=0.0), float(smoothing))
        exponents = np.frexp(heaviest)[1] + np.frexp(np.abs(self.mean).max(initial=0.0))[1]
        excess = int(max(exponents - np.finfo(np.float64).maxexp + 2, 0))
        means = smoothed_means(tree.left, self.rows, np.ldexp(self.mean, -excess), smoothing)
        return np.ldexp(means, excess)[:, None]

    def at(self, nodes: NDArray[np.intp]) -> "TargetStats":
        """The statistics of some nodes."""
        return TargetStats(self.rows[nodes], self.mean[nodes], self.sse[nodes], self.unit)


def _expect_nodes(n_nodes: int, tree: Tree) -> None:
    if n_nodes != tree.n_nodes:
        raise ValueError(f"stats has {n_nodes} nodes, but the tree has {tree.n_nodes} nodes")


@checked
def count(
    tree: Tree,
    X: ArrayLike,
    y: ArrayLike,
    n_classes: int,
    label: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    n_jobs: int | None = None,
) -> NodeStats:
    """Count the classes of the rows in every node.

    Parameters
    ----------
    tree : Tree
        The tree.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of int, shape (n,)
        Class of each row, 0 .. n_classes - 1.
    n_classes : int
        Number of classes, K.
    label : array-like of int, shape (m,), or None
        Class that each node predicts. None: the majority of these rows, ties to the lowest class; a
        node without rows predicts what its parent predicts.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as; None: one.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    NodeStats

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range.
    """
    rows = matrix(X)
    n_classes = class_number(n_classes)
    classes = codes("y", y, len(rows), n_classes)
    weight = row_weights(sample_weight, len(rows))
    stats = counted(tree, tree.apply(rows, n_jobs=n_jobs), classes, weight, n_classes)
    return stats if label is None else NodeStats(stats.counts, array_of("label", label)).of(tree)


def counted(tree: Tree, leaf: Int32, y: Int32, weight: Float64 | None, n_classes: int) -> NodeStats:
    """Do what `count` does, for rows that have been checked and routed to their leaves."""
    counts = core_count(tree.left, leaf, y, weight, n_classes)
    return NodeStats(counts, majority(tree.left, counts))


# Cells of so many rows are small enough to be nearly constant in what can be predicted, and large
# enough for greedy cuts not to have used up the noise.
_NOISE_ROWS = 16


@checked
def noise_variance(tree: Tree, rows: Float64, sse: Float64) -> float:
    """Variance of the target within small cells of a tree: what no pruning can predict.

    Pools the largest cells that hold at most 16 rows. A target without any such variance has that of
    all rows instead, or 1.

    Parameters
    ----------
    tree : Tree
        The tree.
    rows, sse : ndarray of shape (m,)
        Rows of each node and the sum of their squared distances from the mean.

    Returns
    -------
    float
        A positive number, in squared units of the target.

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range.
    """
    rows = column("rows", rows, "float64", (tree.n_nodes,))
    sse = column("sse", sse, "float64", (tree.n_nodes,))
    if not (rows.min() >= 0 and rows.max() <= MOST_ROWS and sse.min() >= 0):
        raise ValueError(f"rows must lie in 0 .. {MOST_ROWS:g}, and sse be non-negative")
    small = rows <= _NOISE_ROWS
    parent = tree.parent
    small[1:] &= ~small[parent[1:]]  # copies: small[parent] is read before it is written
    freedom = rows[small].sum() - (rows[small] > 0).sum()
    with np.errstate(over="ignore"):  # an infinite sum is none that says anything
        within = sse[small].sum()
    for variance in (within / max(freedom, 1.0), sse[0] / max(rows[0], 1.0)):
        if np.isfinite(variance) and variance > 0:
            return float(variance)
    return 1.0


@checked
def measure(
    tree: Tree,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    unit: float | None = None,
    n_jobs: int | None = None,
) -> TargetStats:
    """Take the moments of a numeric target in every node.

    Parameters
    ----------
    tree : Tree
        The tree.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Target of each row.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as; None: one.
    unit : float or None
        Squared distance that counts as a loss of 1; None: `noise_variance`.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    TargetStats

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range.
    """
    X = matrix(X)
    target: Float64 = column("y", y, "float64", (len(X),))
    if not np.isfinite(target).all():
        raise ValueError("y must be finite")
    weight = row_weights(sample_weight, len(X))
    return measured(tree, tree.apply(X, n_jobs=n_jobs), target, weight, unit)


def measured(
    tree: Tree, leaf: Int32, y: Float64, weight: Float64 | None, unit: float | None = None
) -> TargetStats:
    """Do what `measure` does, for rows that have been checked and routed to their leaves."""
    rows, mean, sse = moments(tree.left, leaf, y, weight)
    if len(y) and rows[0] > 0:
        with np.errstate(over="ignore"):
            mean_square = sse[0] / rows[0]
        _expect_squares(y if weight is None else y[weight > 0], mean_square)
    return TargetStats(rows, mean, sse, noise_variance(tree, rows, sse) if unit is None else unit)


def _expect_squares(y: Float64, mean_square: float) -> None:
    """Refuse a target in a unit in which its squares overflow, or are too small to be told apart."""
    if y.min() < y.max() and not 2.0**-900 < mean_square < np.inf:
        raise ValueError(
            "y must be in a unit in which its squared distances from the mean sum to a float64, "
            f"got values in {y.min():.3g} .. {y.max():.3g}: multiply it by a constant"
        )
