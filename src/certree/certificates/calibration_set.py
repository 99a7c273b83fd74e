"""Which rows touched what: statistics of rows that neither grew the tree nor labelled it."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import (
    ArrayRecord,
    Float64,
    Int32,
    check_codes,
    check_column,
    check_matrix,
    check_n_classes,
    to_array,
)
from certree.interface.signatures import POSITIVE, validate_arguments, validate_settings
from certree.rows.duplicates import count_worst
from certree.rows.folds import Indices
from certree.rows.near_copies import NearCopies
from certree.rows.split import TrainCalibrationSplit, check_groups
from certree.stats import NodeStats, TargetStats
from certree.stats.exact_leaf_sums import count_exactly, reduce_in_memory
from certree.stats.nodes import count_by_leaf
from certree.tree import LEAF, Tree
from certree.weights.node_weights import NodeWeights, expect_pruning


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut(ArrayRecord):
    """A tree with its training samples, and calibration samples that certify what they weigh.

    `held_out` makes it. Bounds on what the calibration samples choose take nothing else, as they hold
    only for rows that neither the tree, nor its labels, nor the prior have seen.

    Parameters
    ----------
    tree : Tree
        The tree, grown on the training samples or on none.
    grown : NodeStats
        Counts of the training samples, whose majority labels the nodes.
    stats : NodeStats
        Counts of the calibration samples, with the labels of `grown`. Of rows in groups each has the
        weight 1 / (rows of its group). A column after those of `grown` counts rows of other classes,
        which are errors whatever is predicted.
    grow, weigh : ndarray of intp
        Indices of the two sides.
    n : int
        Independent observations: calibration samples, or groups of them.
    grouped : bool
        Whether they are groups.
    repeats, distinct, worst, near_copies
        What is assumed of rows that are alike; see `Certificate`. Those that count as the worst case
        are of another class in `stats`.

    Raises
    ------
    ValueError
        If a row is on both sides, or twice on one, or the statistics do not belong together.
    """

    tree: Tree
    grown: NodeStats
    stats: NodeStats
    grow: Indices
    weigh: Indices
    n: int
    grouped: bool = False
    repeats: int = 0
    distinct: bool = False
    worst: int = 0
    near_copies: NearCopies | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        self._check("int64", (None,), "grow", "weigh")
        _check_disjoint(self.train, self.weigh)
        for stats in (self.grown, self.stats):
            stats.check_tree(self.tree)
        if self.stats.n_classes not in (self.n_classes, self.n_classes + 1):
            raise ValueError(
                f"stats must count the {self.n_classes} classes of grown and perhaps others, got "
                f"{self.stats.n_classes}"
            )
        if not np.array_equal(self.grown.label, self.stats.label):
            raise ValueError(
                "the calibration samples must not label the nodes: labels of grown expected"
            )
        observed = float(self.stats.n[0])
        if self.n < 1 or abs(observed - self.n) > 1e-6 * self.n:
            raise ValueError(f"stats must count n = {self.n} >= 1 observations, got {observed:g}")
        if not self.grouped and self.n != len(self.weigh):
            raise ValueError(f"expected n = {len(self.weigh)} calibration samples, got {self.n}")
        if not self.grouped and (self.stats.counts % 1 != 0).any():
            raise ValueError("stats must count whole rows: bounds do not hold for weighted ones")

    @property
    def n_classes(self) -> int:
        """Number of classes that may be predicted, K."""
        return self.grown.n_classes

    def compute_error(self, label: Int32) -> float:
        """Share of the observations in leaves with other labels; no answer is wrong everywhere."""
        leaves, n_classes = self.tree.left == LEAF, self.grown.counts.shape[1]
        counts, named = self.stats.counts[leaves], label[leaves]
        right = counts[np.arange(len(named)), np.minimum(named, n_classes - 1)]
        wrong = counts.sum(axis=1) - np.where(named < n_classes, right, 0.0)
        return float(wrong.sum()) / self.n

    def compute_pruning_error(self, pruning: NodeWeights) -> float:
        """Share of the observations that a pruning gets wrong by the training samples' labels."""
        return float(expect_pruning(self.tree, pruning).weight @ self.stats.errors) / self.n


def _check_disjoint(grow: Indices, weigh: Indices) -> None:
    for name, rows in (("grow", grow), ("weigh", weigh)):
        if _count_repeats(rows):
            raise ValueError(f"{name} must not name a row twice")
    shared = _count_repeats(np.concatenate([grow, weigh]))
    if shared:
        raise ValueError(
            f"rows that grew the tree cannot certify it: {shared} rows both grow and weigh"
        )


def _count_repeats(rows: Indices) -> int:
    """How many rows have been named before."""
    ordered = np.sort(rows)
    return int(np.sum(ordered[1:] == ordered[:-1]))


@validate_arguments
def held_out(
    tree: Tree,
    X: ArrayLike,
    y: ArrayLike,
    n_classes: int,
    *,
    grow: ArrayLike,
    weigh: ArrayLike,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> HeldOut:
    """Count the growing and the calibration samples of a tree, and keep them apart.

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
    grow : array-like of int
        Indices of all rows that the tree has seen, also through scaling, imputation or the choice of
        features. They label its nodes. Empty for a tree that was there before the rows.
    weigh : array-like of int
        Indices of the rows that weigh the prunings and certify the result.
    groups : array-like of shape (n,), or None
        Group of each row, such as a patient, where only groups are independent; None: each row by
        itself. Every group then weighs the same.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    HeldOut

    Raises
    ------
    ValueError
        If a row or a group is on both sides, or there is no weighing row.

    Examples
    --------
    >>> import numpy as np
    >>> from certree import grow_cart
    >>> from certree.certificates import held_out
    >>> X = np.arange(400.0)[:, None] % 100
    >>> y = (X[:, 0] > 40).astype(int)
    >>> grow, weigh = np.arange(100), np.arange(100, 400)
    >>> held = held_out(grow_cart(X[grow], y[grow]), X, y, 2, grow=grow, weigh=weigh)
    >>> held.n, held.grown.counts[0].tolist(), held.stats.counts[0].tolist()
    (300, [41.0, 59.0], [123.0, 177.0])
    """
    rows = check_matrix(X)
    n_classes = check_n_classes(n_classes)
    classes = check_codes("y", y, len(rows), n_classes)
    growing = _check_indices("grow", grow, len(rows))
    weighing = _check_indices("weigh", weigh, len(rows))
    _check_disjoint(growing, weighing)
    leaf = tree.apply(rows, n_jobs=n_jobs)
    return count_routed_rows(tree, leaf, classes, n_classes, growing, weighing, groups)


def count_routed_rows(
    tree: Tree,
    leaf: Int32,
    y: Int32,
    n_classes: int,
    grow: Indices,
    weigh: Indices,
    groups: ArrayLike | None = None,
) -> HeldOut:
    """Do what `held_out` does, for rows that have been checked and routed to their leaves.

    Calibration samples of a class that no label names have the code `n_classes` or a larger one.
    """
    grown = count_by_leaf(tree, leaf[grow], y[grow], None, n_classes)
    weight, n = None, len(weigh)
    if groups is not None:
        weight, n = compute_group_weights(check_groups(groups, len(y)), grow, weigh)
    stats = count_calibration_rows(tree, leaf[weigh], y[weigh], weight, grown)
    return HeldOut(tree, grown, stats, grow, weigh, n, groups is not None)


def count_calibration_rows(
    tree: Tree,
    leaf: Int32,
    y: Int32,
    weight: Float64 | None,
    grown: NodeStats,
    weight_unit: float = 1.0,
) -> NodeStats:
    """Count calibration samples, with the training samples' labels; one column more for others."""
    y = np.minimum(y, grown.n_classes)
    columns = grown.n_classes + int((y == grown.n_classes).any())
    if weight is not None:  # added up in whatever order they come
        leaf, y, weight, _ = count_exactly(reduce_in_memory(leaf, y, weight), columns)
    counts = count_by_leaf(tree, leaf, y, weight, columns).counts
    return NodeStats(counts, grown.label, weight_unit)


def replace_worst_classes(y: Int32, is_worst: NDArray[np.bool_] | None, n_classes: int) -> Int32:
    """Codes of classes, (n,); rows that count as the worst case have that of all other classes."""
    if is_worst is None:
        return y
    return np.where(is_worst, n_classes, y).astype(np.int32)


def _check_indices(name: str, values: ArrayLike, n: int) -> Indices:
    numbers = np.array(to_array(name, values))
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a list of indices of rows, got {values!r}")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < n:
        raise ValueError(f"{name} must lie in 0 .. {n - 1}")
    numbers = numbers.astype(np.intp) if numbers.size else np.zeros(0, dtype=np.intp)
    numbers.flags.writeable = False
    return numbers


def check_positions(given: Any, n_given: int, weight: Any) -> tuple[dict[str, NDArray[Any]], int]:
    """Check which of the rows given to a fit certify it, and their weights; columns by name, and n."""
    columns: dict[str, NDArray[Any]] = {"given": check_column("given", given, "int64", (None,))}
    places = columns["given"]
    if len(places) and not (places.min() >= 0 and places.max() < n_given):
        raise ValueError(f"given must lie in 0 .. {n_given - 1}")
    if weight is not None:
        columns["weight"] = weights = check_column("weight", weight, "float64", (len(places),))
        if not ((weights > 0) & (weights <= 1)).all():
            raise ValueError("weight must lie in 0 .. 1, and be positive")
    return columns, len(places)


def compute_group_weights(
    groups: NDArray[np.generic], grow: Indices, weigh: Indices
) -> tuple[NDArray[np.float64], int]:
    """Weight of each weighing row, which sum to 1 in a group, and the number of groups."""
    shared = np.intersect1d(groups[grow], groups[weigh])
    if len(shared):
        raise ValueError(f"{len(shared)} groups both grow and weigh, such as {shared[0]}")
    _, group, size = np.unique(groups[weigh], return_inverse=True, return_counts=True)
    return 1 / size[group], len(size)


@dataclass(frozen=True, slots=True, eq=False)
class CertifyingRows:
    """The rows that weigh the prunings of a tree, n of them, and counts of those that have grown it.

    Parameters
    ----------
    sides : TrainCalibrationSplit
        Which rows these are.
    leaf, y : ndarray of int32, shape (n,)
        Leaf and class of each.
    weight : ndarray of float64, shape (n,), or None
        What each weighs where a posterior is shaped; None: 1.
    grown : NodeStats
        What the training samples weigh.
    """

    sides: TrainCalibrationSplit
    leaf: Int32
    y: Int32
    weight: Float64 | None
    grown: NodeStats

    @property
    def effective_classes(self) -> Int32:
        """The class that each counts as: another one, whatever is predicted, in the worst case."""
        return replace_worst_classes(self.y, self.sides.is_worst, self.grown.n_classes)

    def held_out(self, tree: Tree) -> HeldOut:
        """Both sides, of which each row, or group, that weighs counts once."""
        sides, weight, n = self.sides, None, len(self.leaf)
        if sides.groups is not None:
            weight, n = compute_group_weights(sides.groups, sides.train, sides.calibration)
        stats = count_calibration_rows(tree, self.leaf, self.effective_classes, weight, self.grown)
        about = sides.grouped, sides.repeats, sides.distinct, sides.worst, sides.near_copies
        return HeldOut(tree, self.grown, stats, sides.train, sides.calibration, n, *about)

    def weights(self) -> Float64 | None:
        """What rows weigh where groups count alike; None: each counts once."""
        if self.weight is None or self.sides.groups is None:
            return self.weight
        return (
            self.weight
            * compute_group_weights(self.sides.groups, self.sides.train, self.sides.calibration)[0]
        )


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutNumbers(ArrayRecord):
    """A tree with the moments of its training samples, and new calibration samples.

    Parameters
    ----------
    tree : Tree
        The tree, grown on the training samples or on none.
    grown : TargetStats
        Moments of the training samples.
    leaf : array-like of int, shape (N,)
        Leaf that each weighing row reaches.
    y : array-like of shape (N,)
        Target of each weighing row.
    weight : array-like of shape (N,)
        1 for each row; of rows in groups 1 / (calibration samples of its group).
    limit : float
        Absolute error that larger ones count as, in units of the target, by the training samples.
    n : int
        Independent observations: calibration samples, or groups of them.
    grouped : bool
        Whether they are groups.
    repeats, distinct, near_copies
        What is assumed of rows that are alike; see `Certificate`.
    is_worst : ndarray of bool, shape (N,), or None
        Which rows count as the worst case, with the largest error; None: none.

    Raises
    ------
    ValueError
        If sizes differ, a number is not finite, or there is no weighing row.
    """

    tree: Tree
    grown: TargetStats
    leaf: Int32
    y: Float64
    weight: Float64
    limit: float
    n: int
    grouped: bool = False
    repeats: int = 0
    distinct: bool = False
    is_worst: NDArray[np.bool_] | None = None
    near_copies: NearCopies | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        self.grown.check_tree(self.tree)
        y: Float64 = check_column("y", self.y, "float64", (None,))
        weight: Float64 = check_column("weight", self.weight, "float64", y.shape)
        leaf = check_codes("leaf", self.leaf, len(y), self.tree.n_nodes)
        if not (np.isfinite(y).all() and self.limit in POSITIVE):
            raise ValueError(f"y and limit must be finite, and limit > 0, got {self.limit!r}")
        if self.n < 1 or not abs(weight.sum() - self.n) <= 1e-6 * self.n:
            raise ValueError(f"weight must sum to n = {self.n} >= 1, got {weight.sum():g}")
        if self.is_worst is not None:
            self._check("bool", y.shape, "is_worst")
        for name, values in (("y", y), ("weight", weight), ("leaf", leaf)):
            object.__setattr__(self, name, values)

    @property
    def worst(self) -> int:
        """How many rows count as the worst case."""
        return count_worst(self.is_worst)

    def compute_loss(self, value: Float64) -> float:
        """Mean absolute error, each cut at the limit and in units of it, where nodes predict so."""
        # Rounded once, so that no order of the rows changes a bit.
        loss = compute_clipped_losses(value[self.leaf], self.y, self.limit, self.is_worst)
        return fsum(self.weight * loss) / self.n


def compute_clipped_losses(
    said: Float64, y: Float64, limit: float, is_worst: NDArray[np.bool_] | None = None
) -> Float64:
    """Absolute errors of predictions, each cut at a limit and in units of it, (n,).

    is_worst: rows whose error is the limit, whatever is predicted.
    """
    with np.errstate(over="ignore"):
        errors: Float64 = np.minimum(np.abs(y - said) / limit, 1.0)
    return errors if is_worst is None else np.where(is_worst, 1.0, errors)
