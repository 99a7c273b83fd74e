"""Class counts and labels of the nodes of a tree, and the protocol of all node statistics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from certree._core import compute_class_frequencies, compute_error_gains, find_majority_classes
from certree._core import count_classes as core_count
from certree.interface.arrays import (
    ADDED_LATER,
    MAX_TOTAL_WEIGHT,
    ArrayRecord,
    Float64,
    Int32,
    check_codes,
    check_column,
    check_matrix,
    check_n_classes,
    check_row_weights,
    to_array,
)
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_arguments, validate_settings
from certree.tree import Tree, Trees

__all__ = ["NodeStats", "Stats", "count"]


class Stats(Protocol):
    """Statistics of the target at the m nodes of a tree: row weights, losses and impurities.

    Pruning rules, posteriors and votes are computed from them. The protocol is implemented by
    `NodeStats` (classes), `SparseNodeStats` (many classes), `TargetStats` (a numeric target) and
    `SeveralStats` (several targets).
    """

    @property
    def n(self) -> Float64:
        """Sum of the weights of the rows in each node, (m,); their number if rows have no weights."""

    @property
    def weight_unit(self) -> float:
        """Mean weight of a row of the fit.

        Sums of weights divided by it count as numbers of rows, so that only ratios of weights
        matter. It is 1 without weights.
        """

    @property
    def loss(self) -> Float64:
        """Loss of the rows of each node if the node is a leaf, (m,).

        It is the weight of misclassified rows; or the sum of squared distances of the targets from
        the node's mean, divided by `TargetStats.unit`; for several targets the mean of their
        losses.
        """

    @property
    def impurity(self) -> Float64:
        """Impurity of each node times its weight, (m,), as greedy growth computes it.

        The impurity is the Gini index for classes, and the mean squared distance from the node's
        mean for numbers. So the product is the sum of squared distances for numbers.
        """

    @property
    def table(self) -> Any:
        """The statistics as an array, from which the C++ core computes losses of predictions.

        It has a row per node: class counts (m, K), or weight, mean and sum of squared distances
        from that mean, (m, 3). For `SparseNodeStats` it is a tuple of its fields begin, classes,
        weight and n_classes, for `SeveralStats` a list with one table per target.
        """

    def check_tree(self, tree: Trees) -> Self:
        """Return this object; raise ValueError unless it has as many nodes as `tree`."""

    def terms(self, tree: Trees, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Compute the terms whose weighted sum over leaves is the log weight of a pruning.

        A pruning is a subtree of the grown tree with the same root. `PosteriorFamily`, the set of
        posteriors over prunings, holds the factors of the terms (such as minus the inverse
        temperatures), and computes the weights of all prunings from the result.

        Parameters
        ----------
        tree : Trees
            The tree of these m nodes, or of several trees.
        n_terms : int
            Number of terms. 1: the loss, divided by `weight_unit`; 2: also the square root of the
            number of rows (weight divided by `weight_unit`); 3: also the number of leaves (1 for a
            node).
        empty_leaves : bool
            Whether a node without rows counts as a leaf.

        Returns
        -------
        gains : ndarray of float64, shape (m, n_terms)
            Sum of each term over the two children of a node, minus the term of the node; 0 at
            leaves. So the sums over the leaves of a pruning are `root` plus the gains of the nodes
            that it splits.
        root : ndarray of float64, shape (n_terms,)
            Terms of the root, or their sums over the roots of all trees.
        """

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """Compute smoothed predictions of all nodes: class probabilities (m, K) or means (m, 1).

        Several targets have their columns side by side: K for classes, 1 for a numeric target.
        tree: the tree of these m nodes. smoothing: a pseudo-count, the number of rows of mean
        weight that are added to each node with the prediction of its parent. To the root they are
        added with equal frequencies of all classes, or with the mean of all rows.
        """

    def take(self, nodes: NDArray[np.intp]) -> Self:
        """Return the statistics of k nodes, in the same type.

        nodes: node numbers, (k,). Node i of the result is ``nodes[i]``.
        """


@dataclass(frozen=True, slots=True, eq=False)
class NodeStats(ArrayRecord):
    """Class counts and a label for every node of a tree.

    `count` makes it; prunings, posteriors and votes are computed from it.

    Parameters
    ----------
    counts : array-like of float, shape (m, K)
        Number (or total weight) of the rows of each class in each node. The counts of a node are the
        sums of those of its children.
    label : array-like of int, shape (m,)
        Class that each node predicts. It need not be the majority of `counts`: it may come from other
        rows.
    weight_unit : float
        Mean weight of a row. Posteriors, prunings and smoothing divide sums of weights by it to get a
        number of rows, so that only ratios of weights matter. Estimators set it to the mean weight of
        the rows of the fit; 1 leaves weights as they are.
    squared_weight : array-like of float, shape (m,), or None
        Sum of the squared weights of the rows in each node; None: each row has weight
        `weight_unit`.

    Raises
    ------
    TypeError
        If a dtype does not convert without loss.
    ValueError
        If shapes differ, a count is negative, the counts of a node sum to more than 1e280, a label is
        not a class, or `weight_unit` is not positive.
    """

    counts: Float64
    label: Int32
    weight_unit: float = field(default=1.0, metadata=ADDED_LATER)
    squared_weight: Float64 | None = field(default=None, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        validate_settings(self)
        counts: Float64 = check_column("counts", self.counts, "float64", (None, None))
        if counts.shape[1] == 0:
            raise ValueError(
                "counts must have at least one class (column), got none: pass an array (m, K)"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            totals = counts.sum(axis=1)
        if not (totals <= MAX_TOTAL_WEIGHT).all() or (counts.size and counts.min() < 0):
            raise ValueError(
                "counts must be finite and non-negative, and sum to at most "
                f"{MAX_TOTAL_WEIGHT:g} in a node, got counts from {counts.min():g} and sums up to "
                f"{totals.max():g}"
            )
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "label", check_codes("label", self.label, *counts.shape))
        expect_weights(self, len(counts))

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.counts.shape[1])

    @property
    def n(self) -> Float64:
        """Sum of the weights of the rows in each node, (m,): the row sums of `counts`."""
        return self.counts.sum(axis=1)

    @property
    def effective_size(self) -> Float64:
        """Kish's effective sample size of the rows of each node, (m,).

        It is (sum of weights)^2 / sum of squared weights, or the weight divided by `weight_unit` if
        `squared_weight` is None.
        """
        return compute_effective_size(self.n, self.squared_weight, self.weight_unit)

    @property
    def errors(self) -> Float64:
        """Weight of the rows in each node whose class is not the label of the node, (m,)."""
        correct = np.take_along_axis(self.counts, self.label[:, None].astype(np.intp), axis=1)[:, 0]
        return self.n - correct

    @property
    def loss(self) -> Float64:
        """The errors: weight of the rows of each node whose class is not its label, (m,)."""
        return self.errors

    @property
    def log_loss(self) -> Float64:
        """Log loss of the rows of each node under its class frequencies (nats), (m,).

        It is the weight of the rows times the entropy of the class frequencies.
        """
        n = self.n
        frequencies = self.counts / np.maximum(n, np.finfo(np.float64).tiny)[:, None]
        return n * entr(frequencies).sum(axis=1)

    @property
    def impurity(self) -> Float64:
        """Weight of each node times its Gini index, (m,)."""
        n = self.n
        # Squares of large weights would overflow; scaling by a power of two changes no digit.
        scale = 2.0 ** -np.frexp(max(n.max(initial=0.0), 1.0))[1]
        tiny = np.finfo(np.float64).tiny
        squares = ((self.counts * scale) ** 2).sum(axis=1) / np.maximum(n * scale, tiny) / scale
        return np.maximum(n - squares, 0.0)

    @property
    def table(self) -> Float64:
        """The field `counts`, (m, K): number or weight of the rows of each class in each node.

        The C++ core computes losses of predictions from it.
        """
        return self.counts

    def check_tree(self, tree: Trees) -> Self:
        """Return these statistics, or raise ValueError if `tree` has another number of nodes."""
        expect_nodes(len(self.label), tree)
        return self

    @copy_descriptions_from(Stats.terms)
    def terms(self, tree: Trees, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Compute the terms whose weighted sum over leaves is the log weight of a pruning.

        A pruning is a subtree of the grown tree with the same root. `PosteriorFamily`, the set of
        posteriors over prunings, holds the factors of the terms (such as minus the inverse
        temperatures), and computes the weights of all prunings from the result.

        Parameters
        ----------
        {tree}
        n_terms : int
            Number of terms. 1: the errors, divided by `weight_unit`; 2: also the square root of the
            number of rows (weight divided by `weight_unit`); 3: also the number of leaves (1 for a
            node).
        {empty_leaves}

        Returns
        -------
        {gains} {root}
        """
        unit = self.weight_unit
        gains = compute_error_gains(tree.left, self.counts, self.label, unit, n_terms, empty_leaves)
        n = self.counts[tree.root].sum(axis=1)
        wrong = n - self.counts[tree.root, self.label[tree.root]]
        terms = [wrong / unit, np.sqrt(n / unit), (n > 0) | empty_leaves]
        return gains, np.array([term.sum() for term in terms[:n_terms]], dtype=np.float64)

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """Compute the smoothed class frequencies of each node, (m, K), from `counts`.

        tree: the tree of these m nodes. smoothing: a pseudo-count, the number of rows of mean
        weight that are added to each node. The added rows have the class frequencies of the parent;
        at the root all classes are equally frequent among them.
        """
        return compute_class_frequencies(tree.left, self.counts, smoothing, self.weight_unit)

    def take(self, nodes: NDArray[np.intp]) -> NodeStats:
        """Return the statistics of k nodes as `NodeStats`.

        nodes: node numbers, (k,). Node i of the result is ``nodes[i]``.
        """
        squared = None if self.squared_weight is None else self.squared_weight[nodes]
        return NodeStats(self.counts[nodes], self.label[nodes], self.weight_unit, squared)


def expect_unit(stats: Any) -> None:
    """Check `weight_unit` of a statistics object, and convert it to float in place.

    stats: object with `weight_unit`, the mean weight of a row, and `n`, the weight of each node's
    rows, (m,). Raise a ValueError if the unit is not positive and finite, or the weight of a node
    is more than 1e280 units.
    """
    unit = float(stats.weight_unit)
    if not 0 < unit < np.inf:
        raise ValueError(f"weight_unit must be a finite number > 0, got {stats.weight_unit!r}")
    if stats.n.max(initial=0.0) > MAX_TOTAL_WEIGHT * unit:
        raise ValueError(
            "weight_unit must be at least the largest weight of a node divided by "
            f"{MAX_TOTAL_WEIGHT:g}, got {unit:g} and a weight of {stats.n.max():g}"
        )
    object.__setattr__(stats, "weight_unit", unit)


def expect_weights(stats: Any, n_nodes: int) -> None:
    """Check `weight_unit` and `squared_weight` of a statistics object, and convert them in place.

    `weight_unit` becomes a float, and `squared_weight` a read-only float64 array or stays None.
    stats: object with `weight_unit`, the mean weight of a row; `n`, the weight of each node's rows,
    (m,); and `squared_weight`, the sum of their squared weights, (m,), or None. n_nodes: number of
    nodes, m. Raise TypeError or ValueError if `squared_weight` has another shape or a negative
    entry, the unit is not positive and finite, or the weight of a node is more than 1e280 units.
    """
    expect_unit(stats)
    if stats.squared_weight is not None:
        squared = check_column("squared_weight", stats.squared_weight, "float64", (n_nodes,))
        if not (squared >= 0).all():
            raise ValueError(f"squared_weight must be non-negative, got {squared.min():g}")
        object.__setattr__(stats, "squared_weight", squared)


def compute_effective_size(
    weight: Float64, squared_weight: Float64 | None, weight_unit: float
) -> Float64:
    """Compute Kish's effective sample size: (sum of weights)^2 / sum of squared weights.

    The mean of as many rows of equal weight has the same variance. It is at most the number of rows.

    Parameters
    ----------
    weight : ndarray of shape (m,)
        Sum of the weights of each node.
    squared_weight : ndarray of shape (m,), or None
        Sum of the squared weights. If it is None, or in nodes where it is 0 or infinite, all rows
        count as rows of weight `weight_unit`.
    weight_unit : float
        Mean weight of a row.

    Returns
    -------
    ndarray of shape (m,)
        The effective sample size of each node.

    References
    ----------
    Kish, "Survey Sampling", 1965.
    """
    if squared_weight is None:
        return weight / weight_unit
    root = np.sqrt(squared_weight)
    is_valid = (root > 0) & np.isfinite(root)
    size: Float64 = np.square(np.divide(weight, root, out=np.zeros(len(root)), where=is_valid))
    return np.where(is_valid, size, weight / weight_unit)


def expect_nodes(n_nodes: int, tree: Trees) -> None:
    """Raise a ValueError unless `tree` has `n_nodes` nodes, the number of nodes of statistics."""
    if n_nodes != len(tree.left):
        raise ValueError(
            f"stats has {n_nodes} nodes, but the tree has {tree.n_nodes} nodes: use statistics of "
            "this tree"
        )


@validate_arguments
def count(
    tree: Tree,
    X: ArrayLike,
    y: ArrayLike,
    n_classes: int,
    label: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    empty: Literal["parent", "first"] = "parent",
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
        Class that each node predicts. None: the majority of these rows, ties to the lowest class.
    sample_weight : array-like of shape (n,), or None
        Weight of each row, >= 0; None: 1. Rows of weight 0 do not count.
    empty : {"parent", "first"}
        Label of nodes without rows if `label` is None: that of the parent, or the first class, as in
        Corollary 1 of Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    NodeStats
        The counts and labels.

    Raises
    ------
    TypeError, ValueError
        If `empty` is unknown, or an array has a wrong dtype, shape or range.
    """
    rows = check_matrix(X)
    n_classes = check_n_classes(n_classes)
    classes = check_codes("y", y, len(rows), n_classes)
    weight = check_row_weights(sample_weight, len(rows))
    stats = count_by_leaf(tree, tree.apply(rows, n_jobs=n_jobs), classes, weight, n_classes)
    if label is not None:
        return replace(stats, label=to_array("label", label)).check_tree(tree)
    if empty == "first":
        return replace(stats, label=np.where(stats.n > 0, stats.label, 0))
    return stats


def count_by_leaf(
    tree: Trees,
    leaf: Int32,
    y: Int32,
    weight: Float64 | None,
    n_classes: int,
    weight_unit: float = 1.0,
    squared_weight: Float64 | None = None,
) -> NodeStats:
    """Count the classes of rows in every node from the leaves that the rows reach.

    The arguments are not checked.

    Parameters
    ----------
    tree : Trees
        The tree, or several trees, with m nodes in all.
    leaf, y : ndarray of int32, shape (n,)
        Node number of the leaf of each row, and the row's class.
    weight : ndarray of float64, shape (n,), or None
        Row weights; None: 1.
    n_classes : int
        Number of classes, K.
    weight_unit : float
        Mean weight of a row of the fit. Sums of weights divided by it count as numbers of rows.
    squared_weight : ndarray of float64, shape (n,), or None
        If each row here stands for several rows: sum of their squared weights. None: the squares of
        `weight`.

    Returns
    -------
    NodeStats
        Labels are majorities, the lowest class on ties; nodes without rows have the label of their
        parent.
    """
    counts = core_count(tree.left, leaf, y, weight, n_classes)
    squared = sum_squared_weights(tree, leaf, weight, squared_weight)
    return NodeStats.from_checked(
        counts, find_majority_classes(tree.left, counts), weight_unit, squared
    )


def sum_squared_weights(
    tree: Trees, leaf: Int32, weight: Float64 | None, squared_weight: Float64 | None
) -> Float64 | None:
    """Sum the squared weights of rows in every node, (m,); return None if `weight` is None.

    tree: the tree or trees, of m nodes; leaf: node number of the leaf of each row, (n,); weight: row
    weights, (n,), or None; squared_weight: if each row here stands for several rows, the sum of
    their squared weights, (n,), else None. A sum that overflows is infinite.
    """
    if weight is None:
        return None
    # If squares overflow, `compute_effective_size` falls back to `weight_unit`.
    with np.errstate(over="ignore", under="ignore"):
        squared = np.square(weight) if squared_weight is None else squared_weight
    return core_count(tree.left, leaf, np.zeros(len(leaf), np.int32), squared, 1)[:, 0]
