"""What the calibration samples say about every node if the target is a number: its moments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import moments, smoothed_means, squared_gains
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
from certree.interface.signatures import validate_arguments, validate_settings
from certree.stats.nodes import (
    effective_size,
    expect_nodes,
    expect_weights,
    squared_weights,
)
from certree.tree import Tree, Trees

__all__ = ["TargetStats", "measure", "noise_variance"]


@dataclass(frozen=True, slots=True, eq=False)
class TargetStats(ArrayRecord):
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
        Squared distance that counts as a loss of 1: the noise variance makes a posterior with
        ``lambda_error = 1/2`` the posterior under normal noise.
    weight_unit, squared_weight
        See `NodeStats`.

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
                raise ValueError(f"{name} must be finite" + " and non-negative" * (name != "mean"))
            object.__setattr__(self, name, values)
        if m and self.rows.max() > MAX_TOTAL_WEIGHT:
            raise ValueError(f"rows must be at most {MAX_TOTAL_WEIGHT:g}, got {self.rows.max():g}")
        if not 0 < float(self.unit) < np.inf:
            raise ValueError(f"unit must be a finite number > 0, got {self.unit!r}")
        expect_weights(self, m)
        if m and self.sse.max() > min(float(self.unit), 1.0) * min(self.weight_unit, 1.0) * 1e307:
            raise ValueError(f"sse must be at most 1e307 units, got {self.sse.max():g}")

    @property
    def n(self) -> Float64:
        """Number (or weight) of the rows in each node, (m,)."""
        return self.rows

    @property
    def effective_size(self) -> Float64:
        """Kish's effective number of rows in each node, (m,); see `effective_size`."""
        return effective_size(self.rows, self.squared_weight, self.weight_unit)

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

    def of(self, tree: Trees) -> Self:
        """Check that the statistics belong to a tree of this size, and return them."""
        expect_nodes(len(self.rows), tree)
        return self

    def terms(self, tree: Trees, n_terms: int, empty_leaves: bool) -> tuple[Float64, Float64]:
        """Loss, square root of the rows and, as a third term, leaves: gains (m, f) and root (f,)."""
        units, how = (self.unit, self.weight_unit), (n_terms, empty_leaves)
        gains = squared_gains(tree.left, self.rows, self.mean, *units, *how)
        n, sse = self.rows[tree.root], self.sse[tree.root]
        loss = sse / self.unit / self.weight_unit
        terms = [loss, np.sqrt(n / self.weight_unit), (n > 0) | empty_leaves]
        return gains, np.array([term.sum() for term in terms[:n_terms]], dtype=np.float64)

    def averages(self, tree: Trees, smoothing: float) -> Float64:
        """Mean of each node, (m, 1), smoothed as `vote` says."""
        # Powers of two change no digit, and sums of large targets of heavy rows would overflow.
        heaviest = max(self.rows.max(initial=0.0), float(smoothing))
        exponents = np.frexp(heaviest)[1] + np.frexp(np.abs(self.mean).max(initial=0.0))[1]
        excess = int(max(exponents - np.finfo(np.float64).maxexp + 2, 0))
        mean, unit = np.ldexp(self.mean, -excess), self.weight_unit
        means = smoothed_means(tree.left, self.rows, mean, smoothing, unit)
        return np.ldexp(means, excess)[:, None]

    def at(self, nodes: NDArray[np.intp]) -> TargetStats:
        """The statistics of some nodes."""
        squared = None if self.squared_weight is None else self.squared_weight[nodes]
        moments = self.rows[nodes], self.mean[nodes], self.sse[nodes]
        return TargetStats(*moments, self.unit, self.weight_unit, squared)


# Cells of so many rows are small enough to be nearly constant in what can be predicted, and large
# enough for greedy cuts not to have used up the noise.
_NOISE_ROWS = 16


@validate_arguments
def noise_variance(tree: Tree, rows: Float64, sse: Float64, weight_unit: float = 1.0) -> float:
    """Variance of the target within small cells of a tree: what no pruning can predict.

    Pools the largest cells that hold at most 16 rows. A target without any such variance has that of
    all rows instead, or 1.

    Parameters
    ----------
    tree : Tree
        The tree.
    rows, sse : ndarray of shape (m,)
        Rows of each node and the sum of their squared distances from the mean, both weighted.
    weight_unit : float
        Mean weight of a row, over which sums of weights are numbers of rows.

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
        raise ValueError(f"rows must lie in 0 .. {MAX_TOTAL_WEIGHT:g}, and sse be non-negative")
    weight_unit = float(weight_unit)
    if not (0 < weight_unit < np.inf and rows.max() <= MAX_TOTAL_WEIGHT * weight_unit):
        raise ValueError(
            "weight_unit must be finite and > 0, and rows at most "
            f"{MAX_TOTAL_WEIGHT:g} times as much, got {weight_unit!r}"
        )
    small = rows / weight_unit <= _NOISE_ROWS
    parent = tree.parent
    small[1:] &= ~small[parent[1:]]  # copies: small[parent] is read before it is written
    freedom = rows[small].sum() / weight_unit - (rows[small] > 0).sum()
    with np.errstate(over="ignore"):  # an infinite sum is none that says anything
        within = sse[small].sum() / weight_unit
        whole = sse[0] / weight_unit / max(rows[0] / weight_unit, 1.0)
    for variance in (within / max(freedom, 1.0), whole):
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
        Weight of each row, in any unit; None: 1. A row of weight 0 is as if absent.
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
    X = check_matrix(X)
    target: Float64 = check_column("y", y, "float64", (len(X),))
    if not np.isfinite(target).all():
        raise ValueError("y must be finite")
    weight = check_row_weights(sample_weight, len(X))
    return measured(tree, tree.apply(X, n_jobs=n_jobs), target, weight, unit)


def measured(
    tree: Tree,
    leaf: Int32,
    y: Float64,
    weight: Float64 | None,
    unit: float | None = None,
    weight_unit: float = 1.0,
) -> TargetStats:
    """Do what `measure` does, for rows that have been checked and routed to their leaves."""
    rows, mean, sse = moments(tree.left, leaf, y, weight)
    if len(y) and rows[0] > 0:
        with np.errstate(over="ignore"):
            mean_square = sse[0] / rows[0]
        known = y if weight is None else y[weight > 0]
        expect_squares(float(known.min()), float(known.max()), mean_square)
    if unit is None:
        unit = noise_variance(tree, rows, sse, weight_unit)
    squared = squared_weights(tree, leaf, weight, None)
    return TargetStats(rows, mean, sse, unit, weight_unit, squared)


def expect_squares(least: float, most: float, mean_square: float) -> None:
    """Refuse a target in a unit in which its squares overflow, or are too small to be told apart."""
    if least < most and not 2.0**-900 < mean_square < np.inf:
        raise ValueError(
            "y must be in a unit in which its squared distances from the mean sum to a float64, "
            f"got values in {least:.3g} .. {most:.3g}: multiply it by a constant"
        )
