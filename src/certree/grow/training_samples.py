"""The checked rows that grow a tree, and the settings of a fit that all growers read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from certree._core import rank_rows
from certree.grow.bins import MISSING, Bins
from certree.interface.arrays import (
    MAX_SETTING,
    Float64,
    Int32,
    check_column,
    check_matrix,
    check_row_weights,
    raise_for_zero_weights,
    to_array,
)
from certree.interface.threads import get_n_threads
from certree.rows.categories import make_categorical_mask
from certree.rows.dates import DateColumns
from certree.rows.draw_order import sum_encoded_table
from certree.rows.features import DenseFeatures
from certree.rows.folds import Indices
from certree.rows.monotonic import MonotonicCst, MonotonicSigns, check_monotonic_cst
from certree.rows.relative_weights import compute_relative_weights
from certree.tree import Tree

MaxDepth = int | Literal["log"] | None

# Depth at which growth stops in any case. The C++ core counts depth in int32, with chain lengths.
MAX_DEPTH = 2**30


def _keep_tree(tree: Tree) -> Tree:
    return tree


class GrowthSettings(Protocol):
    """The settings of a fit that histogram-based growth of trees reads.

    Classes with these attributes are `TrainingSamples`, for rows in memory, and
    `BlockGrowthSettings`, for rows in blocks that are processed one by one or by several processes.
    """

    @property
    def n_targets(self) -> int:
        """Number of targets, the columns of y."""

    @property
    def max_depth(self) -> MaxDepth:
        """Depth at which nodes are leaves; None: no limit.

        "log": p times the integer part of ln n, for n rows of p features.
        """

    @property
    def categorical(self) -> NDArray[np.bool_] | None:
        """Which features hold category codes, (p,); None: no feature does."""

    @property
    def monotonic_signs(self) -> MonotonicSigns:
        """Monotonic constraint of each feature, (p,): 1, -1 or 0; None: no constraints."""

    @property
    def random_state(self) -> int | RandomState | None:
        """Seed or generator for random splits and random features."""

    @property
    def n_jobs(self) -> int | None:
        """Number of threads; None is one, -1 all."""

    @property
    def feature_order(self) -> Int32:
        """Permutation of 0 .. p - 1: order in which features are compared and drawn, (p,).

        Among equal splits the feature that comes first wins.
        """


@dataclass(frozen=True, eq=False)
class TrainingSamples:
    """The checked rows from which a grower grows a tree, and settings of the fit.

    All rows have positive weight. `from_arrays` checks arrays of a user. The constructor checks
    nothing. `select` makes the samples of a fold, which share bins and sorted rows with the samples
    that they are taken from (the parent).

    Parameters
    ----------
    table : ndarray of shape (N, p), float64 or float32
        Rows of the parent; without a parent these rows themselves. NaN where a value is missing.
    y : ndarray of shape (n,) or (n, q), or None
        Classes 0, 1, ... (int32) or a numeric target (float64); several targets have one column
        each.
    weight : ndarray of float64, shape (n,), or None
        Positive row weights, on any scale; None: 1. Limits on numbers of rows count each row once.
    max_depth : int, "log" or None
        Nodes at this depth are leaves; "log" is p times the integer part of ln n, None no limit.
    categorical : ndarray of bool, shape (p,), or None
        Which features hold category codes 0, 1, ...; None: no feature does.
    monotonic_signs : ndarray of int8, shape (p,), or None
        1 if the mean of y (or the frequency of the second of two classes) must not fall as the
        feature rises, -1 if it must not rise, 0 for no constraint; None: 0 for all features.
    random_state : int, RandomState or None
        Seed or generator for random splits and random features.
    n_jobs : int or None
        Number of threads; None is one, -1 all. A tree does not depend on it.
    parent : TrainingSamples or None
        The samples from which these were selected; None if they were not selected.
    indices : ndarray of int, shape (n,), or None
        Row numbers of these samples in the parent; None without a parent.
    compute_feature_order : callable without arguments, or None
        Returns `feature_order`; None: it is computed from the rows.
    dates : mapping of int to DateColumn, or None
        Features that hold dates, whose thresholds are round dates; None: no feature does.
    compute_bins : callable or None
        ``compute_bins(max_bins)`` returns `Bins` of all rows of `table`; None: they are computed
        from `table`.
    rank_categories : callable or None
        ``rank_categories(indices)`` returns these samples with ranks in place of very many
        categories, by the targets of the rows at `indices` (None: all), which grow a tree; see
        `certree.stats.ranked_categories`. None: there are no such features.
    replace_ranks : callable
        ``replace_ranks(tree)`` returns a tree that was grown on these rows as one that takes rows
        of the fit as they are encoded. It differs from the tree if `table` has ranks in place of
        category codes.
    """

    table: NDArray[Any]
    y: NDArray[Any] | None = None
    weight: Float64 | None = None
    max_depth: MaxDepth = None
    categorical: NDArray[np.bool_] | None = None
    monotonic_signs: MonotonicSigns = None
    random_state: int | RandomState | None = None
    n_jobs: int | None = None
    parent: TrainingSamples | None = None
    indices: Indices | None = None
    compute_feature_order: Callable[[], Int32] | None = None
    dates: DateColumns | None = None
    compute_bins: Callable[[int], Bins] | None = None
    rank_categories: Callable[[Indices | None], TrainingSamples] | None = None
    replace_ranks: Callable[[Tree], Tree] = field(default=_keep_tree)
    _bins: dict[int, Bins] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        *,
        categorical_features: ArrayLike | None = None,
        monotonic_cst: MonotonicCst = None,
        **settings: Any,
    ) -> TrainingSamples:
        """Check the arguments of `grow_cart`, `grow_kd` or `grow_dyadic`; return training samples.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows, float64 or float32.
        y : array-like of shape (n,) or (n, q), or None
            Integers are classes, floats a numeric target; several targets have one column each.
        sample_weight : array-like of shape (n,), or None
            Row weights >= 0; rows of weight 0 are removed. None: 1.
        categorical_features : array-like of bool, int or str, or None
            Features that hold category codes 0, 1, ..., as a mask, indices, or column names of X.
        monotonic_cst : array-like of int, shape (p,), dict from column names to int, or None
            1 if predictions must not fall as the feature rises, -1 if they must not rise, 0 for no
            constraint.
        **settings
            `max_depth`, `random_state`, `n_jobs` or `compute_feature_order` of `TrainingSamples`.

        Returns
        -------
        TrainingSamples
            The rows of positive weight, without a parent.

        Raises
        ------
        TypeError, ValueError
            If an array has a wrong dtype, shape or range, or no row has a positive weight.
        """
        names = [*X.columns] if hasattr(X, "columns") else None
        rows = check_matrix(X)
        if rows.shape[0] == 0 or rows.shape[1] == 0:
            raise ValueError(
                f"X must have at least one row and one feature, got shape {rows.shape}"
            )
        mask = make_categorical_mask(categorical_features, rows.shape[1], names)
        monotonic_signs = check_monotonic_cst(monotonic_cst, rows.shape[1], names)
        target = _check_target(y, len(rows))
        weight = check_row_weights(sample_weight, len(rows))
        if weight is not None:
            present = weight > 0
            if not present.any():
                raise_for_zero_weights()
            if not present.all():
                rows, weight = np.ascontiguousarray(rows[present]), weight[present]
                target = None if target is None else target[present]
        return cls(
            rows, target, weight, categorical=mask, monotonic_signs=monotonic_signs, **settings
        )

    def get_bins(self, max_bins: int) -> Bins:
        """Return these rows as `Bins` with at most `max_bins` bins per numeric feature (2 .. 255).

        Bin edges are computed from all rows of the parent (the samples from which these were
        selected), or from these rows if there is no parent. The parent keeps the bins for each
        `max_bins`, so that all of its selections have the same edges.
        """
        bins = (self.parent or self)._make_bins(max_bins)
        return bins if self.indices is None else bins.select_rows(self.indices)

    def _make_bins(self, max_bins: int) -> Bins:
        """Return `Bins` of all these rows, with at most `max_bins` bins per numeric feature.

        The bins are computed at the first call with a value of `max_bins`, and kept in `_bins`, a
        dict from `max_bins` to `Bins`. Bin edges are computed from these rows, also if they have a
        parent.
        """
        if max_bins not in self._bins and self.compute_bins is not None:
            self._bins[max_bins] = self.compute_bins(max_bins)
        if max_bins not in self._bins:
            self._bins[max_bins] = Bins.from_table(
                DenseFeatures((self.X,)),
                self.categorical,
                max_bins=max_bins,
                n_jobs=self.n_jobs,
                feature_order=self.feature_order,
            ).with_dates(self.dates)
        return self._bins[max_bins]

    @cached_property
    def feature_order(self) -> Int32:
        """Permutation of 0 .. p - 1: order in which features are compared and drawn, (p,).

        The order depends on the contents of the columns and not on their order in the table, so
        that the tree does not depend on the order either. The order is computed from all rows of
        the parent (the samples from which these were selected), from these rows without a parent,
        or by the field `compute_feature_order`.
        """
        if self.parent is not None:
            return self.parent.feature_order
        if self.compute_feature_order is not None:
            return self.compute_feature_order()
        return sum_encoded_table(
            self.X, self.y, self.categorical, get_n_threads(self.n_jobs)
        ).order_columns()

    def replace_columns(
        self,
        features: list[int],
        codes: NDArray[np.uint8],
        replace_in_bins: Callable[[Bins], Bins],
    ) -> TrainingSamples:
        """Return a copy in which some features of all rows of `table` hold codes 0 .. 254.

        features: the indices of the q features; codes: their new values for all N rows of `table`,
        (q, N), 255 for a missing value; replace_in_bins: a function that takes `Bins` of these rows
        and returns `Bins` in which the same features have these codes as bins. This object is not
        changed.
        """
        table = replace_columns(self.table, features, codes)
        return replace(self, table=table, compute_bins=lambda n: replace_in_bins(self.get_bins(n)))

    def select(self, indices: Indices) -> TrainingSamples:
        """Return the samples at `indices` (row numbers, (k,)), with this object as their parent.

        The selected samples keep the settings, and the targets and weights of their rows. The rows
        of X are copied when `X` of the result is first read.
        """
        y = None if self.y is None else self.y[indices]
        weight = None if self.weight is None else self.weight[indices]
        return replace(self, table=self.X, y=y, weight=weight, parent=self, indices=indices)

    @cached_property
    def X(self) -> NDArray[Any]:  # noqa: N802 -- the name of rows in scikit-learn
        """The rows, (n, p).

        For selected samples the first read copies them from `table`, which holds the rows of the
        parent, by `indices`.
        """
        return self.table if self.indices is None else self.table[self.indices]

    def __len__(self) -> int:
        """Number of rows, n."""
        return len(self.table if self.indices is None else self.indices)

    @cached_property
    def ranks(self) -> NDArray[np.uint32]:
        """The row numbers sorted by each numeric feature, (number of numeric features, 2 n) uint32.

        The CART algorithm of the C++ core reads them. A line has the pairs (rank, row number) of
        all rows in ascending order of one feature, one pair after the other. Equal values have
        equal ranks.
        """
        return rank_rows(self.X, self.is_categorical, get_n_threads(self.n_jobs))

    @property
    def parent_ranks(self) -> tuple[NDArray[np.uint32], Int32] | None:
        """Sorted rows of the parent, and which of them are these samples; or None.

        With them the rows of each fold need not be sorted again. The parent is the samples from
        which these were selected. The first entry is its `ranks`, its rows sorted by each feature.
        The second has, for each of the N rows of the parent, its row number in these samples or -1,
        (N,) int32. Without a parent the entries are `ranks` of these samples and 0 .. n - 1.

        None if the rows must be sorted again: because `indices` do not ascend, or because there is
        no parent and `ranks` has not been read before.
        """
        parent, indices = self.parent or self, self.indices
        if indices is None:
            shared = "ranks" in self.__dict__
            return (self.ranks, np.arange(len(self), dtype=np.int32)) if shared else None
        if not (np.diff(indices) > 0).all():
            return None
        place = np.full(len(parent), -1, dtype=np.int32)
        place[indices] = np.arange(len(indices), dtype=np.int32)
        return parent.ranks, place

    @property
    def is_categorical(self) -> NDArray[np.uint8] | None:
        """`categorical` as uint8 for the C++ core, (p,); None if no feature is categorical.

        1 marks a feature that holds category codes, 0 a numeric feature.
        """
        mask = self.categorical
        return None if mask is None or not mask.any() else mask.view(np.uint8)

    @property
    def n_targets(self) -> int:
        """Number of columns of y, q; 1 for a single target or none."""
        return 1 if self.y is None or self.y.ndim == 1 else self.y.shape[1]

    @property
    def target_codes(self) -> Int32 | None:
        """One integer per row, (n,) int32, equal for rows with equal targets; None without targets.

        For one column of classes they are y itself. Otherwise a code is the index of the row's
        target among the ascending distinct ones; with several targets that of its row of y. A node
        whose rows have one code is pure.
        """
        if self.y is None or (self.y.ndim == 1 and self.y.dtype == np.int32):
            return self.y
        return np.unique(self.y, axis=0, return_inverse=True)[1].ravel().astype(np.int32)

    @cached_property
    def relative_weight(self) -> Float64 | None:
        """Row weights divided by a common unit, (n,); None if all are equal.

        Sums of these weights do not over- or underflow, and do not depend on the unit of the
        weights; if they are integer multiples of a common number, at most 2^16 times it, this
        number is the unit, otherwise the largest weight is.
        """
        if self.weight is None:
            return None
        weight = compute_relative_weights(self.weight)
        return None if (weight == weight[0]).all() else weight

    @property
    def total_weight(self) -> float:
        """Sum of `relative_weight`; the number of rows if weights are equal.

        `relative_weight` has the row weights divided by a common unit.
        """
        weight = self.relative_weight
        return float(len(self) if weight is None else weight.sum())

    def stopping_options(self, min_samples_split: Any) -> dict[str, Any]:
        """Return `min_samples_split` and `max_depth` as keyword arguments for the C++ core.

        min_samples_split: least number of rows of a node that is split (not a fraction). The result
        is a dict with the keys "min_samples_split" and "max_depth" (a number; 2^30 for no limit).
        Raise ValueError if `min_samples_split` is below 2.
        """
        # NumPy compares in the precision of its own scalars, where the largest number may be infinite.
        if not 2 <= float(min_samples_split) <= MAX_SETTING:
            raise ValueError(f"min_samples_split must be at least 2, got {min_samples_split!r}")
        return {"min_samples_split": float(min_samples_split), "max_depth": self.depth_limit}

    @property
    def depth_limit(self) -> int:
        """Depth at which nodes become leaves, as an integer: `max_depth`, or 2^30 for no limit."""
        return resolve_max_depth(self.max_depth, int(self.table.shape[1]), len(self))


def replace_columns(
    table: NDArray[np.floating], features: list[int], codes: NDArray[np.uint8]
) -> NDArray[np.floating]:
    """Return a copy of a table, (n, p), in which the values of some features are replaced by codes.

    features: indices of the q features; codes: their codes, (q, n), where 255 becomes NaN.
    """
    replaced = table.copy()
    replaced[:, features] = np.where(codes == MISSING, np.nan, codes).T
    return replaced


def resolve_max_depth(depth: Any, p: int, n: int) -> int:
    """Return the depth at which nodes are leaves, for n rows of p features, at most 2^30.

    depth: the parameter `max_depth`: an integer >= 0, "log" for p times the integer part of ln n,
    or None for 2^30. Raise ValueError for any other value.
    """
    if depth is None:
        return MAX_DEPTH
    if isinstance(depth, str) and depth == "log":
        return min(MAX_DEPTH, p * int(np.log(max(n, 1.0))))
    if not isinstance(depth, Integral) or depth < 0:
        raise ValueError(f'max_depth must be None, "log" or an integer >= 0, got {depth!r}')
    return min(MAX_DEPTH, int(depth))


def resolve_max_features(max_features: Any, p: int) -> int | None:
    """Return how many of p features are compared in a node; None: all of them.

    max_features: "sqrt" or "log2" of p, a number of features, a fraction of p (float), or None, as
    in scikit-learn. The result is rounded down, and at least 1. The value is not checked.
    """
    if max_features is None:
        return None
    if isinstance(max_features, str):
        return max(1, int(np.sqrt(p) if max_features == "sqrt" else np.log2(p)))
    return (
        min(p, int(max_features))
        if isinstance(max_features, Integral)
        else max(1, int(max_features * p))
    )


def expect_poisson_targets(y: NDArray[Any], *, are_all: bool = True) -> None:
    """Raise ValueError, with scikit-learn's message, if targets have no Poisson deviance.

    Parameters
    ----------
    y : ndarray of float
        Targets, or their minimum and maximum.
    are_all : bool
        Whether y covers all rows of the fit. If not, as for a fold, the targets may all be 0.

    Raises
    ------
    ValueError
        If a target is negative, or if `are_all` and all targets are 0.
    """
    if y.min() < 0:
        raise ValueError(
            "Some value(s) of y are negative which is not allowed for Poisson regression, got "
            f'{y.min():g}: use criterion="squared_error", or leave out these rows'
        )
    if are_all and y.max() == 0:
        raise ValueError(
            "Sum of y is not strictly positive which is necessary for Poisson regression, got "
            'only zeros: use criterion="squared_error", or give y a positive value'
        )


def resolve_row_count(name: str, value: Any, minimum: int, n: float) -> float:
    """Return a number of rows from a parameter such as `min_samples_leaf`, as a float.

    Parameters
    ----------
    name : str
        Name of the parameter, for messages.
    value : int or float
        Value of the parameter. In (0, 1) it is a fraction of n, as is the float 1.0 if `minimum` is
        2; otherwise it is a number of rows, at least `minimum`, and an integer if `minimum` is 1.
    minimum : int
        Smallest number of rows, 1 or 2.
    n : float
        Number of rows.

    Returns
    -------
    float
        `value`, or for a fraction ``ceil(value * n)``, but at least `minimum`.

    Raises
    ------
    ValueError
        If `value` is neither such a number nor such a fraction.
    """
    needs_integer = minimum == 1
    if 0 < value < 1 or (value == 1 and not needs_integer and not isinstance(value, Integral)):
        return max(float(minimum), float(np.ceil(value * n)))
    # NumPy compares in the precision of its own scalars, where the largest number may be infinite.
    if not minimum <= float(value) <= MAX_SETTING or (
        needs_integer and not isinstance(value, Integral)
    ):
        number = "an integer" if needs_integer else "a number"
        raise ValueError(
            f"{name} must be {number} >= {minimum}, or a fraction of the rows below 1, got {value!r}"
        )
    return float(value)


def _check_target(y: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """Return y as int32 classes or float64 numbers, (n,) or (n, q); None for None.

    y: integers are classes, floats a numeric target; n: number of rows. One column (n, 1) becomes
    (n,).

    Raise TypeError or ValueError if the shape differs, or a number is not finite.
    """
    if y is None:
        return None
    array = to_array("y", y)
    shape = (n, None) if array.ndim == 2 and array.shape[1] > 1 else (n,)
    if array.dtype.kind != "f":
        return check_column("y", y, "int32", shape)
    target = check_column("y", y, "float64", shape)
    if not np.isfinite(target).all():
        raise ValueError("y must be finite, got NaN or infinity: leave out rows without a target")
    return target
