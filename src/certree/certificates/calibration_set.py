"""The calibration set of a fit, and its counts in the nodes of a tree that it did not grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.certificates.baseline import Baseline, compute_median_baseline
from certree.interface.arrays import (
    ADDED_LATER,
    STORED_ELSEWHERE,
    ArrayRecord,
    Float64,
    Int32,
    Int64,
    check_codes,
    check_column,
    check_matrix,
    check_n_classes,
    to_array,
)
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import POSITIVE, validate_arguments, validate_settings
from certree.rows.duplicates import count_worst
from certree.rows.folds import Indices
from certree.rows.near_copies import NearCopies
from certree.rows.split import TrainCalibrationSplit, check_groups, compute_group_weights
from certree.rows.time_order import Period
from certree.stats import NodeStats, TargetStats
from certree.stats.exact_leaf_sums import count_exactly, reduce_in_memory
from certree.stats.nodes import count_by_leaf
from certree.tree import LEAF, Tree
from certree.weights.node_weights import NodeWeights, expect_pruning


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut(ArrayRecord):
    """A tree with the class counts of its training set and of its calibration set.

    `held_out` makes it. Bounds on what the calibration rows choose take this type, as they hold
    only for rows that neither the tree, nor its labels, nor the prior depend on.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes, grown on the training set or on no rows.
    grown : NodeStats
        Class counts of the training rows in each node, K classes; their majority labels the nodes.
    stats : NodeStats
        Class counts of the calibration rows in each node, with the labels of `grown`. For rows in
        groups each row counts 1 / (calibration rows of its group). An optional column K counts rows
        of other classes, which are errors whatever is predicted.
    grow, weigh : ndarray of intp
        Indices of the training rows and of the calibration rows in the table they came from.
    n : int
        Number of independent observations: calibration rows, or groups of them.
    grouped : bool
        Whether the observations are groups.
    repeats : int or None
        Number of calibration rows that equal a training row or another calibration row, and that
        were kept, since the value of `duplicates` allows them; None: they were not searched.
    distinct : bool
        Whether equal calibration rows were counted once.
    worst : int
        Number of repeated calibration rows that count as errors whatever is predicted, in column K of
        `stats`.
    near_copies : NearCopies or None
        Result of the search for calibration rows that nearly equal training rows; None: no search.
    period : Period or None
        First and last time of the calibration rows, and whether these are taken as independent
        draws; None: rows have no times.

    Raises
    ------
    ValueError
        If a row is in both sets, or twice in one; or if tree, counts and n do not fit together.
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
    period: Period | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        self._check("int64", (None,), "grow", "weigh")
        _check_disjoint(self.grow, self.weigh)
        for stats in (self.grown, self.stats):
            stats.check_tree(self.tree)
        if self.stats.n_classes not in (self.n_classes, self.n_classes + 1):
            raise ValueError(
                f"stats must have a column for each of the {self.n_classes} classes of grown, and "
                f"at most one more for other classes, got {self.stats.n_classes} columns: call "
                "certree.certificates.held_out, which makes both"
            )
        if not np.array_equal(self.grown.label, self.stats.label):
            raise ValueError(
                "stats.label must equal grown.label, as only training rows may label the nodes, got "
                "another label: call certree.certificates.held_out, which makes both"
            )
        observed = float(self.stats.n[0])
        if self.n < 1 or abs(observed - self.n) > 1e-6 * self.n:
            raise ValueError(
                f"stats must count n = {self.n} >= 1 observations, got {observed:g}: call "
                "certree.certificates.held_out, which counts the rows"
            )
        if not self.grouped and self.n != len(self.weigh):
            raise ValueError(
                f"n must be the number of calibration rows, {len(self.weigh)}, got {self.n}"
            )
        if not self.grouped and (self.stats.counts % 1 != 0).any():
            raise ValueError(
                "stats must count each calibration row once, got fractions, and bounds do not hold for "
                "weighted rows: call certree.certificates.held_out, which counts rows"
            )

    @property
    def n_classes(self) -> int:
        """Number of classes K that can be predicted: those that `grown` counts."""
        return self.grown.n_classes

    def compute_error(self, label: Int32) -> float:
        """Compute the fraction of calibration observations that a labelling of the leaves gets wrong.

        label: label of each node, (m,), 0 .. K - 1; a label of K or more (abstention) counts as an
        error. Only entries of the tree's leaves are read. The classes of the calibration rows are
        counted in the field `stats`; rows of other classes, in its column K, are errors. Groups
        count equally.
        """
        leaves, n_classes = self.tree.left == LEAF, self.grown.counts.shape[1]
        counts, named = self.stats.counts[leaves], label[leaves]
        right = counts[np.arange(len(named)), np.minimum(named, n_classes - 1)]
        wrong = counts.sum(axis=1) - np.where(named < n_classes, right, 0.0)
        return float(wrong.sum()) / self.n

    def compute_pruning_error(self, pruning: NodeWeights) -> float:
        """Compute the fraction of calibration observations that a pruning gets wrong.

        A pruning is the tree with some nodes turned into leaves. Its leaves predict the labels of
        the training rows (field `grown`), the calibration rows are those of the field `stats`, and
        groups count equally. pruning: weights of the m nodes, 1 for the leaves of the pruning, else
        0. Raises ValueError if they are not those of a pruning.
        """
        return float(expect_pruning(self.tree, pruning).weight @ self.stats.errors) / self.n


def _check_disjoint(grow: Indices, weigh: Indices) -> None:
    """Raise ValueError if an index occurs twice in `grow` or in `weigh`, or in both.

    grow, weigh: indices of the training rows and of the calibration rows in one table.
    """
    for name, rows in (("grow", grow), ("weigh", weigh)):
        if _count_repeats(rows):
            raise ValueError(
                f"{name} must hold each row index at most once, got repeated indices: use np.unique"
            )
    shared = _count_repeats(grow, weigh)
    if shared:
        raise ValueError(
            "grow and weigh must be disjoint, as training rows cannot certify the tree, got "
            f"{shared} rows that are in both: leave them out of one"
        )


def _count_repeats(*rows: Indices) -> int:
    """Return the number of entries of all arrays minus the number of different entries.

    rows: arrays of indices of rows, (n,) each. The result is 0 if all indices are different.
    """
    ordered = np.concatenate(rows)
    ordered.sort()  # in place, as it may hold all rows of a fit
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
    """Count the training rows and the calibration rows in each node of a tree.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    X : array-like of shape (n, p)
        Training and calibration rows in one table.
    y : array-like of int, shape (n,)
        Class of each row, 0 .. n_classes - 1.
    n_classes : int
        Number of classes, K.
    grow : array-like of int
        Indices of the training rows: all rows that the tree depends on, also through scaling,
        imputation or feature selection. They label its nodes. Empty for a tree that was fixed
        before any row was seen.
    weigh : array-like of int
        Indices of the calibration rows, which choose the weights of prunings and certify the
        result.
    groups : array-like of shape (n,), or None
        Group of each row, such as a patient, if only groups are independent; all groups then have
        the same weight. None: rows are independent.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    HeldOut
        The tree with the class counts of both sets in each node: `grown` of the training rows,
        `stats` of the calibration rows. A node without rows has counts of 0.

    Raises
    ------
    ValueError
        If a row or a group is in both sets, an index is out of range, or there is no calibration
        row.

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
    train = _check_indices("grow", grow, len(rows))
    calibration = _check_indices("weigh", weigh, len(rows))
    _check_disjoint(train, calibration)
    leaf = tree.apply(rows, n_jobs=n_jobs)
    grown = count_by_leaf(tree, leaf[train], classes[train], None, n_classes)
    names = None if groups is None else check_groups(groups, len(rows))
    split = TrainCalibrationSplit(train, calibration, names, n_given=len(rows))
    found = CalibrationSet.from_split(split, classes[calibration])
    return found.count_classes(tree, grown, leaf[calibration], train, calibration)


def _check_indices(name: str, values: ArrayLike, n: int) -> Indices:
    """Return the argument `values` as a read-only intp array of indices in 0 .. n - 1.

    name: the argument's name in messages. Raises ValueError if it holds anything else.
    """
    numbers = np.array(to_array(name, values))
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a one-dimensional array of row indices, got {values!r}")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < n:
        raise ValueError(f"{name} must lie in 0 .. {n - 1}, got {numbers.min()} .. {numbers.max()}")
    numbers = numbers.astype(np.intp) if numbers.size else np.zeros(0, dtype=np.intp)
    numbers.flags.writeable = False
    return numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationSet(ArrayRecord):
    """The calibration set of a fit, by row: positions, targets and repeats, without features.

    Certified estimators make it in ``fit``, and compute certificates from it. Subclasses add what
    the model computes for each row, such as its leaf or its scores, and are stored in model files.
    The constructor takes all arguments by keyword.

    Parameters
    ----------
    given : array-like of int, shape (n,)
        Position of each calibration row among the rows passed to ``fit``.
    n_given : int
        Number of rows passed to ``fit``.
    y : array-like of shape (n,)
        Class code of each row, an integer >= 0; or its target, a float. Classes that no training
        row has follow those of the training rows.
    weight : array-like of shape (n,), or None
        For rows in groups 1 / (number of calibration rows of the row's group); None: no groups.
    repeats : int
        Number of calibration rows that equal a training row or another calibration row, and that
        were kept, since the value of `duplicates` allows them.
    distinct : bool
        Whether equal rows were treated as copies of one row and counted once.
    is_worst : array-like of bool, shape (n,), or None
        True for repeated rows that count as errors whatever is predicted; None: no such rows.
    near_copies : NearCopies or None
        Result of the search for calibration rows that nearly equal training rows; None: no search.
    period : Period or None
        First and last time of the calibration rows, and whether these are taken as independent
        draws; None: rows have no times.

    Raises
    ------
    ValueError
        If shapes differ, or positions, codes or weights are out of range.
    """

    given: Int64
    n_given: int
    y: NDArray[Any]
    weight: Float64 | None = None
    repeats: int = 0
    distinct: bool = False
    is_worst: NDArray[np.bool_] | None = field(default=None, metadata=ADDED_LATER)
    # Model files hold it with the certificate.
    near_copies: NearCopies | None = field(default=None, metadata=STORED_ELSEWHERE)
    period: Period | None = field(default=None, metadata=STORED_ELSEWHERE)

    def __post_init__(self) -> None:
        validate_settings(self)
        self._check("int64", (None,), "given")
        n, positions = len(self.given), self.given
        if n and not (positions.min() >= 0 and positions.max() < self.n_given):
            raise ValueError(
                f"given must lie in 0 .. {self.n_given - 1}, the positions of the rows of the fit, "
                f"got {positions.min()} .. {positions.max()}"
            )
        if self.weight is not None:
            self._check("float64", (n,), "weight")
            if not ((self.weight > 0) & (self.weight <= 1)).all():
                raise ValueError(
                    "the stored weights of the calibration rows must lie in (0, 1], got "
                    f"{self.weight.min():g} .. {self.weight.max():g}"
                )
        if np.asarray(self.y).dtype.kind == "f":
            self._check("float64", (n,), "y")
        else:
            codes = check_codes("y", self.y, n, np.iinfo(np.int32).max)
            object.__setattr__(self, "y", codes)
        if self.is_worst is not None:
            self._check("bool", (n,), "is_worst")

    @classmethod
    def from_split(cls, split: TrainCalibrationSplit, y: NDArray[Any], **further: Any) -> Self:
        """Collect the calibration set of a fit.

        split: which rows of the fit are training and calibration rows, their groups, and which
        calibration rows equal other rows. y: class codes or targets of the calibration rows, in the
        order of ``split.calibration``. further: fields of a subclass, by name. Raises ValueError if
        a group is in both sets.
        """
        weight = None
        if split.groups is not None:
            split.expect_whole_groups()
            weight = compute_group_weights(split.groups[split.calibration])
        given, n_given = split.calibration_places
        return cls(
            given=given,
            n_given=n_given,
            y=y,
            weight=weight,
            repeats=split.repeats,
            distinct=split.distinct,
            is_worst=split.is_worst,
            near_copies=split.near_copies,
            period=split.period,
            **further,
        )

    @property
    def grouped(self) -> bool:
        """Whether the calibration rows have groups, such as patients.

        Only groups are then independent of each other.
        """
        return self.weight is not None

    @property
    def n(self) -> int:
        """Number of independent observations: calibration rows or, if rows have groups, groups."""
        return len(self.given) if self.weight is None else round(self.weight.sum())

    @property
    def worst(self) -> int:
        """Number of calibration rows that repeat others and count as errors whatever is predicted.

        They are the rows for which `is_worst` is True.
        """
        return count_worst(self.is_worst)

    def sum_by_class(
        self,
        tree: Tree,
        grown: NodeStats,
        leaf: Int32,
        weight: Float64 | None,
        weight_unit: float = 1.0,
    ) -> NodeStats:
        """Sum up weights of the calibration rows by node and by class (field `y`).

        Nodes keep the labels of the training rows.

        Parameters
        ----------
        tree : Tree
            A tree with m nodes.
        grown : NodeStats
            Counts of the K classes of the training rows in each node, whose labels the result has.
        leaf : ndarray of int32, shape (n,)
            Node number of the leaf that each row reaches.
        weight : ndarray of float64, shape (n,), or None
            Weight of each row; None: 1. Weighted counts are exact sums, which do not depend on the
            order of the rows.
        weight_unit : float
            Mean weight of a row, stored in the result as its field `weight_unit`.

        Returns
        -------
        NodeStats
            Sums by node and class, (m, K), or (m, K + 1) if rows are of other classes or count as
            errors whatever is predicted. The last column then has all these rows.
        """
        y = np.minimum(self.y, grown.n_classes)
        if self.is_worst is not None:
            y[self.is_worst] = grown.n_classes
        columns = grown.n_classes + int((y == grown.n_classes).any())
        if weight is not None:  # exact sums, whatever the order of the rows
            leaf, y, weight, _ = count_exactly(reduce_in_memory(leaf, y, weight), columns)
        counts = count_by_leaf(tree, leaf, y, weight, columns).counts
        return NodeStats(counts, grown.label, weight_unit)

    def count_classes(
        self, tree: Tree, grown: NodeStats, leaf: Int32, train: Indices, calibration: Indices
    ) -> HeldOut:
        """Count the calibration rows of each class (field `y`) in each node of a tree.

        Each row counts once, or each group if rows have groups (field `weight`). The result, a
        `HeldOut`, also has the counts of the training rows.

        tree, grown: a tree, and the class counts of the training rows in its nodes; leaf: node
        number of the leaf that each calibration row reaches, (n,); train, calibration: indices of
        the training and calibration rows, for the fields `grow` and `weigh` of the result.
        """
        return HeldOut(
            tree,
            grown,
            self.sum_by_class(tree, grown, leaf, self.weight),
            train,
            calibration,
            self.n,
            self.grouped,
            self.repeats,
            self.distinct,
            self.worst,
            self.near_copies,
            self.period,
        )

    def hold_targets(
        self, tree: Tree, grown: TargetStats, leaf: Int32, limit: float
    ) -> HeldOutNumbers:
        """Return the numeric targets of the calibration rows with a tree and its training moments.

        The targets are the field `y`. The result also has the other fields of this object, such as
        weights and repeats.

        tree, grown: a tree, and for each node the number of training rows, their mean target and
        the sum of squared distances from it; leaf: node number of the leaf that each calibration
        row reaches, (n,); limit: absolute error at which larger ones are clipped, > 0, in units of
        the target.
        """
        return HeldOutNumbers(
            tree,
            grown,
            leaf,
            self.y,
            np.ones(len(self.y)) if self.weight is None else self.weight,
            limit,
            self.n,
            self.grouped,
            self.repeats,
            self.distinct,
            self.is_worst,
            self.near_copies,
            self.period,
        )


@dataclass(frozen=True, slots=True, eq=False)
@copy_descriptions_from(HeldOut)
class HeldOutNumbers(ArrayRecord):
    """A tree with the moments of its training set, and its calibration set for a numeric target.

    Certified regressors make it in ``fit``; `absolute_error` and `absolute_error_pruning` compute
    bounds from it.

    Parameters
    ----------
    {tree}
    grown : TargetStats
        Number of training rows in each node, the mean of their targets, and the sum of squared
        distances from it.
    leaf : array-like of int, shape (N,)
        Node number of the leaf that each calibration row reaches.
    y : array-like of shape (N,)
        Target of each calibration row.
    weight : array-like of shape (N,)
        Weight of each calibration row: 1; for rows in groups 1 / (calibration rows of its group).
    limit : float
        Absolute error at which larger ones are clipped, > 0, in units of the target; fixed by the
        training rows.
    {n} {grouped} {repeats} {distinct}
    is_worst : ndarray of bool, shape (N,), or None
        True for repeated rows whose error counts as `limit`; None: no such rows.
    {near_copies} {period}

    Raises
    ------
    ValueError
        If sizes differ, a target is not finite, `limit` is not positive and finite, or `weight`
        does not sum to n >= 1.
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
    period: Period | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        self.grown.check_tree(self.tree)
        y: Float64 = check_column("y", self.y, "float64", (None,))
        weight: Float64 = check_column("weight", self.weight, "float64", y.shape)
        leaf = check_codes("leaf", self.leaf, len(y), self.tree.n_nodes)
        if not (np.isfinite(y).all() and self.limit in POSITIVE):
            raise ValueError(
                "y and limit must be finite, and limit > 0, got a y of "
                f"{y.min(initial=np.inf):g} .. {y.max(initial=-np.inf):g} and limit={self.limit!r}"
            )
        if self.n < 1 or not abs(weight.sum() - self.n) <= 1e-6 * self.n:
            raise ValueError(f"weight must sum to n = {self.n} >= 1, got {weight.sum():g}")
        if self.is_worst is not None:
            self._check("bool", y.shape, "is_worst")
        for name, values in (("y", y), ("weight", weight), ("leaf", leaf)):
            object.__setattr__(self, name, values)

    @property
    def worst(self) -> int:
        """Number of calibration rows that repeat other rows; their error counts as `limit`."""
        return count_worst(self.is_worst)

    @property
    def baseline(self) -> Baseline:
        """Mean absolute error of always predicting the median of the targets, clipped at `limit`.

        In units of the target. Groups count equally. Repeated rows (field `is_worst`) count like
        others: their features may be known, but the constant does not read features.
        """
        return compute_median_baseline(self.y, self.limit, self.weight)

    def compute_loss(self, value: Float64) -> float:
        """Compute the mean absolute error of the calibration rows, clipped at and divided by `limit`.

        value: prediction of each node, (m,), of which those of leaves are read: a row is predicted
        by the value of its leaf (field `leaf`), and compared with its target (field `y`). Groups
        count equally, and repeated rows (field `is_worst`) have the loss 1. The sum is rounded
        once, so that it does not depend on the order of the rows.
        """
        # fsum rounds once, so that the result does not depend on the order of the rows.
        loss = compute_clipped_losses(value[self.leaf], self.y, self.limit, self.is_worst)
        return fsum(self.weight * loss) / self.n


def compute_clipped_losses(
    predicted: Float64, y: Float64, limit: float, is_worst: NDArray[np.bool_] | None = None
) -> Float64:
    """Compute absolute errors of predictions, clipped at a limit and divided by it, (n,).

    predicted: predictions, (n,); y: targets, (n,); limit: largest absolute error that counts;
    is_worst: bool (n,), True for rows whose loss is 1 whatever is predicted; None: no such rows.
    """
    with np.errstate(over="ignore"):
        errors: Float64 = np.minimum(np.abs(y - predicted) / limit, 1.0)
    return errors if is_worst is None else np.where(is_worst, 1.0, errors)
