"""Moments of a numeric target in the nodes of a tree: weight, mean and squared distances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import compute_moments, compute_squared_gains, smooth_means
from certree.interface.arrays import (
    ADDED_LATER,
    MAX_TOTAL_WEIGHT,
    ArrayRecord,
    Float64,
    Int32,
    check_column,
    check_matrix,
    check_row_weights,
)
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_arguments, validate_settings
from certree.stats.nodes import (
    Stats,
    compute_effective_size,
    expect_nodes,
    expect_weights,
    sum_squared_weights,
)
from certree.tree import Tree, Trees

__all__ = ["TargetStats", "measure", "noise_variance"]


@dataclass(frozen=True, slots=True, eq=False)
class TargetStats(ArrayRecord):
    """Row weight, mean target and sum of squared distances from it, for every node of a tree.

    `measure` makes it; prunings, posteriors and votes are computed from it.

    Parameters
    ----------
    rows : array-like of float, shape (m,)
        Number (or total weight) of the rows in each node.
    mean : array-like of float, shape (m,)
        Mean target of the rows, which the node predicts; in nodes without rows the mean of the
        parent.
    sse : array-like of float, shape (m,)
        Weighted sum of squared distances of the targets from the node's mean, in squared units of
        the target.
    unit : float
        Unit of loss: the squared distance that counts as a loss of 1. `loss` is divided by it,
        `sse` is not. If it is the variance of normal noise, `pac_bayes` with ``lambda_error = 1/2``
        weighs leaves by their likelihood.
    weight_unit : float
        Mean weight of a row of the fit. Sums of weights divided by it count as numbers of rows.
    squared_weight : array-like of float, shape (m,), or None
        Sum of the squared weights of the rows in each node; None: each row has weight
        `weight_unit`.

    Raises
    ------
    TypeError
        If a dtype does not convert without loss.
    ValueError
        If lengths differ, a number is not finite, rows or squares are negative, rows are more than
        1e280, or `unit` or `weight_unit` is not positive.
    """

    rows: Float64
    mean: Float64
    sse: Float64
    unit: float = 1.0
    weight_unit: float = field(default=1.0, metadata=ADDED_LATER)
    squared_weight: Float64 | None = field(default=None, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        validate_settings(self)
        m = len(check_column("rows", self.rows, "float64", (None,)))
        for name in ("rows", "mean", "sse"):
            values: Float64 = check_column(name, getattr(self, name), "float64", (m,))
            if not np.isfinite(values).all() or (name != "mean" and m and values.min() < 0):
                expected = "finite" + " and non-negative" * (name != "mean")
                raise ValueError(
                    f"{name} must be {expected}, got {values.min():g} .. {values.max():g}"
                )
            object.__setattr__(self, name, values)
        if m and self.rows.max() > MAX_TOTAL_WEIGHT:
            raise ValueError(f"rows must be at most {MAX_TOTAL_WEIGHT:g}, got {self.rows.max():g}")
        if not 0 < float(self.unit) < np.inf:
            raise ValueError(f"unit must be a finite number > 0, got {self.unit!r}")
        expect_weights(self, m)
        if m and self.sse.max() > min(float(self.unit), 1.0) * min(self.weight_unit, 1.0) * 1e307:
            raise ValueError(
                f"sse must be at most 1e307 times unit and weight_unit, got {self.sse.max():g}: "
                "divide the target by a constant"
            )

    @property
    def n(self) -> Float64:
        """Sum of the weights of the rows in each node, (m,); the same as `rows`."""
        return self.rows

    @property
    def effective_size(self) -> Float64:
        """Kish's effective sample size of the rows of each node, (m,).

        It is (sum of weights)^2 / sum of squared weights, or the weight divided by `weight_unit` if
        `squared_weight` is None.
        """
        return compute_effective_size(self.rows, self.squared_weight, self.weight_unit)

    @property
    def loss(self) -> Float64:
        """Sum of squared distances from the mean of each node, divided by `unit`, (m,)."""
        with np.errstate(over="ignore"):  # NumPy 1 warns when it divides denormal numbers
            return self.sse / self.unit

    @property
    def impurity(self) -> Float64:
        """Sum of squared distances of the targets from the mean of each node, (m,).

        It is the field `sse`, in squared units of the target; `loss` is `sse` divided by `unit`.
        """
        return self.sse

    @property
    def table(self) -> Float64:
        """Row weight, mean target, and sum of squared distances from it, of each node, (m, 3).

        The C++ core computes losses of predictions from it.
        """
        return np.column_stack([self.rows, self.mean, self.sse])

    def check_tree(self, tree: Trees) -> Self:
        """Return these statistics, or raise ValueError if `tree` has another number of nodes."""
        expect_nodes(len(self.rows), tree)
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
            Number of terms. 1: the sum of squares divided by `unit`, divided by `weight_unit`; 2:
            also the square root of the number of rows (weight divided by `weight_unit`); 3: also
            the number of leaves (1 for a node).
        {empty_leaves}

        Returns
        -------
        {gains} {root}
        """
        units, options = (self.unit, self.weight_unit), (n_terms, empty_leaves)
        gains = compute_squared_gains(tree.left, self.rows, self.mean, *units, *options)
        n, sse = self.rows[tree.root], self.sse[tree.root]
        loss = sse / self.unit / self.weight_unit
        terms = [loss, np.sqrt(n / self.weight_unit), (n > 0) | empty_leaves]
        return gains, np.array([term.sum() for term in terms[:n_terms]], dtype=np.float64)

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """Compute the smoothed mean target of each node, (m, 1), from `mean` and `rows`.

        tree: the tree of these m nodes. smoothing: a pseudo-count, the number of rows of mean
        weight that are added to each node with the mean of its parent (to the root with the mean of
        all rows).
        """
        # Sums of large targets over rows would overflow, before or after weights are divided by
        # their unit; scaling by a power of two changes no digit.
        largest = self.rows.max(initial=0.0)
        largest = max(largest, largest / self.weight_unit, float(smoothing))
        exponents = np.frexp(largest)[1] + np.frexp(np.abs(self.mean).max(initial=0.0))[1]
        excess = int(max(exponents - np.finfo(np.float64).maxexp + 2, 0))
        mean, unit = np.ldexp(self.mean, -excess), self.weight_unit
        means = smooth_means(tree.left, self.rows, mean, smoothing, unit)
        return np.ldexp(means, excess)[:, None]

    def take(self, nodes: NDArray[np.intp]) -> TargetStats:
        """Return the statistics of k nodes as `TargetStats`.

        nodes: node numbers, (k,). Node i of the result is ``nodes[i]``.
        """
        squared = None if self.squared_weight is None else self.squared_weight[nodes]
        moments = self.rows[nodes], self.mean[nodes], self.sse[nodes]
        return TargetStats(*moments, self.unit, self.weight_unit, squared)


# Largest number of rows of a node that estimates the noise. In much smaller nodes greedy splits have
# fitted the noise; in larger ones the regression function varies.
_NOISE_ROWS = 16


@validate_arguments
def noise_variance(tree: Tree, rows: Float64, sse: Float64, weight_unit: float = 1.0) -> float:
    """Estimate the noise variance of a target: its variance within small nodes of a tree.

    The nodes are those of at most 16 rows whose parent has more. Their entries of `sse` are added,
    and divided by the number of their rows minus the number of these nodes. If the result is 0, the
    variance of all rows is returned, or 1 if that is 0.

    Parameters
    ----------
    tree : Tree
        The tree, of m nodes.
    rows, sse : ndarray of shape (m,)
        Weight of the rows of each node, and weighted sum of their squared distances from the node's
        mean.
    weight_unit : float
        Mean weight of a row of the fit; ``rows / weight_unit`` counts as a number of rows.

    Returns
    -------
    float
        A positive number, in squared units of the target.

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range.
    """
    rows = check_column("rows", rows, "float64", (tree.n_nodes,))
    sse = check_column("sse", sse, "float64", (tree.n_nodes,))
    if not (rows.min() >= 0 and rows.max() <= MAX_TOTAL_WEIGHT and sse.min() >= 0):
        raise ValueError(
            f"rows must lie in 0 .. {MAX_TOTAL_WEIGHT:g}, and sse be non-negative, got rows in "
            f"{rows.min():g} .. {rows.max():g} and sse from {sse.min():g}"
        )
    weight_unit = float(weight_unit)
    if not (0 < weight_unit < np.inf and rows.max() <= MAX_TOTAL_WEIGHT * weight_unit):
        raise ValueError(
            "weight_unit must be finite and > 0, and at least the largest weight in rows divided by "
            f"{MAX_TOTAL_WEIGHT:g}, got {weight_unit!r} and weights of nodes up to {rows.max():g}: "
            "pass the mean weight of the training rows"
        )
    is_small = rows <= _NOISE_ROWS * weight_unit
    parent = tree.parent
    is_small[1:] &= ~is_small[parent[1:]]  # indexing copies, so parents are read before the update
    degrees_of_freedom = rows[is_small].sum() / weight_unit - (rows[is_small] > 0).sum()
    with np.errstate(over="ignore"):  # infinite sums are skipped below
        within = sse[is_small].sum() / weight_unit
        overall = sse[0] / weight_unit / max(rows[0] / weight_unit, 1.0)
    for variance in (within / max(degrees_of_freedom, 1.0), overall):
        if np.isfinite(variance) and variance > 0:
            return float(variance)
    return 1.0


@validate_arguments
def measure(
    tree: Tree,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    unit: float | None = None,
    n_jobs: int | None = None,
) -> TargetStats:
    """Compute the mean of a numeric target, and squared distances from it, in every node.

    Parameters
    ----------
    tree : Tree
        The tree.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Target of each row.
    sample_weight : array-like of shape (n,), or None
        Weight of each row, >= 0; None: 1. Rows of weight 0 do not count.
    unit : float or None
        Squared distance that counts as a loss of 1, which the result stores; None: the variance of
        y within small nodes, by `noise_variance`.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    TargetStats
        For the rows in each node: their weight, their mean target, and the sum of squared distances
        from this mean.

    Raises
    ------
    TypeError, ValueError
        If an array has a wrong dtype, shape or range.
    """
    X = check_matrix(X)
    target: Float64 = check_column("y", y, "float64", (len(X),))
    if not np.isfinite(target).all():
        raise ValueError("y must be finite, got NaN or infinity: drop these rows")
    weight = check_row_weights(sample_weight, len(X))
    return measure_by_leaf(tree, tree.apply(X, n_jobs=n_jobs), target, weight, unit)


def measure_by_leaf(
    tree: Tree,
    leaf: Int32,
    y: Float64,
    weight: Float64 | None,
    unit: float | None = None,
    weight_unit: float = 1.0,
) -> TargetStats:
    """Compute mean and squared distances of a target in every node, from the leaves of the rows.

    Parameters
    ----------
    tree : Tree
        The tree.
    leaf : ndarray of int32, shape (n,)
        Node number of the leaf of each row.
    y : ndarray of float64, shape (n,)
        Target of each row.
    weight : ndarray of float64, shape (n,), or None
        Row weights; None: 1.
    unit : float or None
        Squared distance that counts as a loss of 1. It is only stored: `TargetStats.loss` divides
        by it. None: the variance of y within small nodes, by `noise_variance`.
    weight_unit : float
        Mean weight of a row of the fit. Sums of weights divided by it count as numbers of rows.

    Returns
    -------
    TargetStats
        For the rows in each node: their weight, their mean target, and the weighted sum of squared
        distances from this mean.

    Raises
    ------
    ValueError
        If squared distances from the mean overflow or underflow float64.
    """
    rows, mean, sse = compute_moments(tree.left, leaf, y, weight)
    if len(y) and rows[0] > 0:
        with np.errstate(over="ignore"):
            mean_square = sse[0] / rows[0]
        counted = y if weight is None else y[weight > 0]
        expect_squares(float(counted.min()), float(counted.max()), mean_square)
    if unit is None:
        unit = noise_variance(tree, rows, sse, weight_unit)
    squared = sum_squared_weights(tree, leaf, weight, None)
    return TargetStats(rows, mean, sse, unit, weight_unit, squared)


def expect_squares(smallest: float, largest: float, mean_square: float) -> None:
    """Raise a ValueError if squared distances of a target from its mean over- or underflow float64.

    A constant target passes.

    Parameters
    ----------
    smallest, largest : float
        Smallest and largest value of the target.
    mean_square : float
        Mean squared distance from the mean, as it was computed in float64: infinite on overflow; at
        most 2^-900 counts as underflow.
    """
    if smallest < largest and not 2.0**-900 < mean_square < np.inf:
        raise ValueError(
            "y must have squared distances from its mean that neither overflow nor underflow "
            f"float64, got values in {smallest:.3g} .. {largest:.3g}: multiply it by a constant"
        )
