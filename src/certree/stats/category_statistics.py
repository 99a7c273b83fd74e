"""Target statistics of categories, by which trees split features of many categories.

A node has few training rows of each of hundreds of categories, so an order of the categories by the
node's own gradients is mostly noise. Instead the categories are ordered by their mean target over
all training rows, and by their weight. A training row must not use its own target, so it gets means
over the rows of other folds. Means are shrunk towards the mean of all rows (Micci-Barreca, "A
preprocessing scheme for high-cardinality categorical attributes", 2001; Prokhorenkova et al.,
"CatBoost", NeurIPS 2018). A new row gets the mean over all training rows, which depends on its
category alone. A split by a threshold on such a mean is therefore a split by a set of categories,
and finished trees hold only these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import choose_bin_edges, encode_numbers, fixed_unit
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import EDGE_ROWS, MISSING, Bins, UInt8
from certree.interface.arrays import Float64, Int32, Int64, UInt64, freeze
from certree.out_of_core.binning import BinRanges, Values, find_category_positions, make_bins
from certree.out_of_core.exact_sums import convert_to_integers, exact_sum, round_sum
from certree.rows.features import DenseFeatures
from certree.rows.folds import Indices
from certree.rows.hashes import mix
from certree.rows.sparse_rows import DenseOrSparseFeatures, SparseFeatures
from certree.stats.exact_leaf_sums import Reduce
from certree.tree import Trees

# Features with more categories than this get target statistics.
MAX_SET_CATEGORIES = 30
# A mean is shrunk as if this weight of rows with the mean of all rows were added to its category.
_SHRINKAGE = 10.0
# Means must differ by this many standard deviations of chance: statistics of noise would cost loss.
_DEVIATIONS = 2.0
# A training row sees the means over the rows of the other folds.
_FOLDS = 5
# With more classes than this, categories get no means, only weights: the columns are not worth it.
MAX_TARGET_CLASSES = 5
# Makes folds independent of the random draws of rounds, which use the same row keys.
_SALT = np.uint64(0x6C6576656C730000)
# Largest table of nodes by categories that `_list_category_sets` makes at a time, to limit memory.
_MAX_TABLE_SIZE = 1 << 22

Rows = NDArray[np.floating]


@dataclass(frozen=True, slots=True, eq=False)
class CategoryTarget:
    """Targets and weights of n rows, from which the mean target of each category is computed.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    y : ndarray of float64, shape (n,) or (n_outputs, n)
        Numbers or class codes, (n,); or one number for each output of a row, (n_outputs, n).
    n_outputs : int
        Number of outputs (scores) of a row: 1 for a number and for two classes.
    weight : ndarray of float64, shape (n,), or None
        Weights of the rows; None: 1 each.
    """

    y: Float64
    n_outputs: int
    weight: Float64 | None

    def select_rows(self, rows: slice | Indices) -> Self:
        """Return a copy with the targets and weights of some rows: a slice, or their indices."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, y=self.y[..., rows], weight=weight)

    def make_columns(self) -> Float64:
        """Return the numeric targets whose mean is computed for each category, (n_targets, n).

        For one output this is y, with shape (1, n). For K outputs and class codes these are K
        indicators of the classes, 0 or 1. For y of shape (n_outputs, n) they are the rows of y. If
        `n_outputs` is more than 5 (`MAX_TARGET_CLASSES`), there are none, and the shape is (0, n).
        """
        if self.n_outputs == 1:
            return self.y[None]
        n_classes = self.n_outputs if self.n_outputs <= MAX_TARGET_CLASSES else 0
        if self.y.ndim == 2:
            return self.y[:n_classes]
        indicators: Any = self.y == np.arange(n_classes)[:, None]
        return indicators.astype(np.float64)

    def get_weights(self) -> Float64:
        """Return the weight of each row, (n,); ones if `weight` is None."""
        return np.ones(self.y.shape[-1]) if self.weight is None else self.weight


# -- sums over rows, which may be in several blocks --------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CategoryRows:
    """A block of n training rows with their categories in q features.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    target : CategoryTarget
        Targets and weights of the rows.
    indices : ndarray of int32, shape (q, n)
        Index of each row's category among the categories of each feature; the number of categories
        if the value is missing.
    keys : ndarray of uint64, shape (n,)
        Key of each row: hash of its values and its copy number among equal rows. Hashes of the keys
        assign rows to five folds.
    """

    target: CategoryTarget
    indices: Int32
    keys: UInt64


@dataclass(frozen=True, slots=True, eq=False)
class TargetRange:
    """Smallest and largest target, and largest weight, of a block of rows.

    The constructor takes the attributes in this order. n_targets is the number of columns of
    `CategoryTarget.make_columns`: 1 for one output, K for K <= 5 outputs, else 0.

    Attributes
    ----------
    least, most : ndarray of float64, shape (n_targets,)
        Smallest and largest value of each target.
    heaviest : float
        Largest weight of a row.
    n : int
        Number of rows.
    """

    least: Float64
    most: Float64
    heaviest: float
    n: int

    def __add__(self, other: Self) -> Self:
        """Return the range of the targets, and the largest weight, of two blocks of rows together.

        other: those of the other block.
        """
        return replace(
            self,
            least=np.minimum(self.least, other.least),
            most=np.maximum(self.most, other.most),
            heaviest=max(self.heaviest, other.heaviest),
            n=self.n + other.n,
        )


@dataclass(frozen=True, slots=True, eq=False)
class TargetScale:
    """Numbers by which targets are scaled and centered, so that no sum of them overflows.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    range : TargetRange
        Range of the targets of all training rows.
    mean : ndarray of float64, shape (n_targets,)
        Weighted mean of each target over all training rows, divided by the largest absolute value
        of the target.
    """

    range: TargetRange
    mean: Float64

    @property
    def weight_unit(self) -> int:
        """Exponent e of 2**e, to whose integer multiples weights are rounded before they are added.

        Such sums do not depend on order. The power is so large that sums over all training rows fit
        into int64.
        """
        return int(fixed_unit(self.range.heaviest, self.range.n))

    @property
    def product_unit(self) -> int:
        """The integer e such that products of weight and centered target are multiples of 2**e.

        Products are rounded to such multiples, whose sums do not depend on order. 2**e is so large
        that sums over all training rows, divided by it, fit into int64.
        """
        return int(fixed_unit(2.0 * self.range.heaviest, self.range.n))

    def center(self, target: CategoryTarget) -> Float64:
        """Return scaled targets of a block of rows minus `mean`, (n_targets, n), in -2 .. 2.

        Targets are scaled by dividing by their largest absolute value over all training rows. A
        target that is constant over all training rows gives 0.
        """
        varies = (self.range.least < self.range.most)[:, None]
        return np.where(varies, scale_targets(target, self.range) - self.mean[:, None], 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class CategorySums:
    """Sums over rows by category and fold, for each of q features.

    The last entry along the axis of categories is that of missing values. There are five folds. The
    constructor takes the attributes in this order.

    Attributes
    ----------
    n_rows : tuple of q ndarray of int64, shape (n_categories + 1, n_folds)
        Number of rows.
    sums : tuple of q ndarray of int64, shape (n_targets + 1, n_categories + 1, n_folds)
        First the sum of the weights, as a multiple of ``2**TargetScale.weight_unit``; then, for
        each target, the sum of weight times centered target, as a multiple of
        ``2**TargetScale.product_unit``.
    squares : tuple of two int
        Sums over all rows without rounding: of squared weights, and of weight times squared
        centered target, the latter over all targets together. Both are integers in units of
        2**-1126, which the function `round_sum` turns into float64.
    """

    n_rows: tuple[Int64, ...]
    sums: tuple[Int64, ...]
    squares: tuple[int, int]

    def __add__(self, other: Self) -> Self:
        """Return the sums by category and fold over the rows of two blocks together.

        other: the sums of the other block, of the same features, categories and units.
        """
        return replace(
            self,
            n_rows=tuple(map(np.add, self.n_rows, other.n_rows)),
            sums=tuple(map(np.add, self.sums, other.sums)),
            squares=(self.squares[0] + other.squares[0], self.squares[1] + other.squares[1]),
        )


def scale_targets(target: CategoryTarget, target_range: TargetRange) -> Float64:
    """Divide each target by its largest absolute value in all rows; return (n_targets, n).

    A largest value of 0 is replaced by 1. target: targets of a block of rows. target_range: range of
    each target in all rows.
    """
    unit = np.maximum(np.abs(target_range.least), np.abs(target_range.most))
    return target.make_columns() / np.where(unit > 0, unit, 1.0)[:, None]


def compute_target_range(rows: CategoryRows) -> TargetRange:
    """Compute the smallest and largest target and the largest weight of a block of rows.

    rows: the block; targets and weights are those of `rows.target`.
    """
    targets, weight = rows.target.make_columns(), rows.target.get_weights()
    least, most = targets.min(axis=1, initial=np.inf), targets.max(axis=1, initial=-np.inf)
    return TargetRange(least, most, float(weight.max(initial=0.0)), len(weight))


def compute_exact_totals(rows: CategoryRows, target_range: TargetRange) -> NDArray[np.object_]:
    """Sum up weights, and weight times each scaled target, over a block of rows without rounding.

    Each target is divided by its own largest absolute value in all rows, which `target_range` has (1
    if it is 0). rows: the block; targets and weights are those of `rows.target`. Return (n_targets +
    1,) Python integers: the sum of the weights, then that of each target. They are in units of
    2**-1126; the function `round_sum` turns them into float64.
    """
    weight = rows.target.get_weights()
    terms = [weight, *(scale_targets(rows.target, target_range) * weight)]
    return np.array([exact_sum(values) for values in terms], dtype=object)


def sum_by_category(
    rows: CategoryRows, scale: TargetScale, n_categories: tuple[int, ...]
) -> CategorySums:
    """Sum up weights and weighted centered targets of a block of rows by category and fold.

    rows: the block: targets, weights, the category of each row in q features, and the keys that
    assign rows to folds. scale: center and units of the targets. n_categories: number of categories
    of each of the q features, length q. Return the sums as `CategorySums`, whose squares are sums
    over the whole block.
    """
    weight, centered = rows.target.get_weights(), scale.center(rows.target)
    whole = [
        convert_to_integers(weight, scale.weight_unit),
        *(convert_to_integers(values * weight, scale.product_unit) for values in centered),
    ]
    fold, n_rows, sums = assign_folds(rows.keys), [], []
    for index, n in zip(rows.indices, n_categories, strict=True):
        entry, shape = index * _FOLDS + fold, (n + 1, _FOLDS)
        n_rows.append(np.bincount(entry, minlength=shape[0] * _FOLDS).reshape(shape))
        total = np.zeros((len(whole), shape[0] * _FOLDS), dtype=np.int64)
        for into, values in zip(total, whole, strict=True):
            np.add.at(into, entry, values)
        sums.append(total.reshape(-1, *shape))
    squares = exact_sum(weight**2), sum(exact_sum(weight * values**2) for values in centered)
    return CategorySums(tuple(n_rows), tuple(sums), squares)


def assign_folds(keys: UInt64) -> Int32:
    """Return the fold of each row, 0 .. 4, (n,) int32, by a hash of its key.

    keys: key of each row, (n,): hash of its values and its copy number among equal rows.
    """
    return (mix(keys ^ _SALT) % np.uint64(_FOLDS)).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class CategoryTotals:
    """Sums of targets and weights by category, over all training rows.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    scale : TargetScale
        Center and unit of the targets.
    by_category : CategorySums
        Sums by category and fold, for each of q features.
    """

    scale: TargetScale
    by_category: CategorySums

    @classmethod
    def compute(cls, reduce: Reduce, n_categories: tuple[int, ...]) -> Self:
        """Sum up targets and weights by category and fold over all training rows.

        This takes three passes over the rows: range of the targets, means, sums by category.

        reduce: function such that ``reduce(f, *arguments)`` returns the sum of ``f(rows,
        *arguments)`` over all blocks of training rows, each a `CategoryRows`. n_categories: number
        of categories of each feature, length q.
        """
        target_range: TargetRange = reduce(compute_target_range)
        weight, *totals = map(round_sum, reduce(compute_exact_totals, target_range))
        scale = TargetScale(target_range, np.array(totals) / weight)
        return cls(scale, reduce(sum_by_category, scale, n_categories))

    def has_signal(self, q: int) -> bool:
        """Return whether the mean targets of the categories of feature q differ by more than chance.

        The weighted sum of squares between categories must exceed the mean that it would have if
        targets were assigned to rows at random, by two standard deviations. The core uses the same
        test for the categories in a node (grow/chance.hpp). q: position of the feature in
        `by_category`.
        """
        rows, *_ = self._to_numbers(self.by_category.sums[q].sum(axis=2))
        total, between = float(rows.sum()), sum(self._sum_squares_between(q))
        squares, spread = map(round_sum, self.by_category.squares)
        row, degrees = squares / total, int((rows > 0).sum()) - 1
        chance = (degrees + _DEVIATIONS * (2 * degrees) ** 0.5) * row * spread
        return between * (total - row) > chance

    def _sum_squares_between(self, q: int) -> list[float]:
        """Return, for each target, the weighted sum of squares between the categories of a feature.

        q: position of the feature in `by_category`.
        """
        rows, *targets = self._to_numbers(self.by_category.sums[q].sum(axis=2))
        has_rows = rows > 0
        return [float((sums[has_rows] ** 2 / rows[has_rows]).sum()) for sums in targets]

    def _to_numbers(self, sums: Int64) -> list[Float64]:
        """Convert sums in units of `scale`, (n_targets + 1, ...), to a list of float64 arrays.

        The first array holds sums of weights, the others sums of weight times a centered target.
        The result has n_targets + 1 arrays, each of the shape of ``sums[0]``.
        """
        scale = self.scale
        units = [scale.weight_unit, *[scale.product_unit] * (len(sums) - 1)]
        return [
            np.ldexp(values.astype(np.float64), unit)
            for values, unit in zip(sums, units, strict=True)
        ]

    def compute_means(self, q: int) -> list[tuple[Float64, Float64]]:
        """Compute the statistics of the categories of feature q, a pair of arrays for each.

        The first statistic is the weight of the rows of a category; then there is one for each
        target, the shrunken mean of the target as `TargetScale.center` returns it: the sum of
        weight times target, divided by the weight plus 10. The last category stands for missing
        values. q: position of the feature in `by_category`. Training rows must not use means that
        include their own target, so each fold has means without its rows.

        Returns
        -------
        list of (values, fold_values)
            values: statistic over all training rows, (n_categories + 1,). fold_values: statistic
            for the training rows of each fold, (n_categories + 1, n_folds): means over the rows of
            the other folds; weights over all rows.
        """
        by_fold = self.by_category.sums[q]
        rows, *targets = self._to_numbers(by_fold.sum(axis=2))
        other_rows, *other_targets = self._to_numbers(by_fold.sum(axis=2, keepdims=True) - by_fold)
        statistics = [(rows, np.repeat(rows[:, None], _FOLDS, axis=1))]
        for total, others in zip(targets, other_targets, strict=True):
            means = total / (rows + _SHRINKAGE)
            statistics.append((means, others / (other_rows + _SHRINKAGE)))
        return statistics

    def compute_largest_means(self, q: int) -> tuple[Float64, Float64]:
        """Compute the means of the target that differs most between the categories of feature q.

        It is the target with the largest weighted sum of squares between categories, of equal ones
        the first. q: position of the feature in `by_category`; there must be a target. Return the
        pair (values, fold_values) of this target, as `compute_means` does.
        """
        return self.compute_means(q)[1 + int(np.argmax(self._sum_squares_between(q)))]


# -- features with many categories -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class HighCardinalityFeatures:
    """The categories of n rows in q features that each have many categories.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    features : tuple of int
        Indices of the features, (q,).
    categories : tuple of q ndarray of int32
        Category codes of each feature that occur, ascending.
    indices : ndarray of int32, shape (q, n)
        Index of each row's category among the categories of the feature; their number if the value
        is missing.
    """

    features: tuple[int, ...]
    categories: tuple[Int32, ...]
    indices: Int32

    @classmethod
    def find(
        cls, columns: DenseOrSparseFeatures, bins: Bins, target: CategoryTarget, keys: UInt64
    ) -> Self | None:
        """Find the features with more than 30 categories whose mean targets differ by more than chance.

        Parameters
        ----------
        columns : DenseFeatures or SparseFeatures
            Features of the rows, (n, p).
        bins : Bins
            The same rows in bins.
        target : CategoryTarget
            Targets of the training rows, which are the first rows.
        keys : ndarray of uint64, shape (n_training,)
            Key of each training row (hash of its values and its copy number among equal rows), by
            which rows are assigned to folds.

        Returns
        -------
        HighCardinalityFeatures or None
            These features; None if there are none, or the table is sparse.
        """
        features = find_high_cardinality_features(bins)
        if isinstance(columns, SparseFeatures) or not features:
            return None
        candidates = cls.from_categories(columns, {j: list_categories(bins, j) for j in features})
        totals = candidates.compute_totals(target, keys)
        return candidates.select_features([q for q in range(len(features)) if totals.has_signal(q)])

    @classmethod
    def from_categories(cls, columns: DenseFeatures, categories: Mapping[int, Int32]) -> Self:
        """Look up the category of each row in q features, and return an instance of the class.

        columns: features of the rows, (n, p), with category codes. categories: for q of the p
        features, by the index of the feature, its category codes, ascending.
        """
        indices = find_category_positions(columns, categories)
        return cls(tuple(categories), tuple(categories.values()), indices)

    def select_features(self, positions: list[int]) -> Self | None:
        """Return a copy that has only some of its features; None if there are none.

        positions: their positions in the field `features`, in the order of the result.
        """
        if not positions:
            return None
        features = tuple(self.features[q] for q in positions)
        categories = tuple(self.categories[q] for q in positions)
        return replace(
            self, features=features, categories=categories, indices=self.indices[positions]
        )

    def select_rows(self, rows: Indices) -> Self:
        """Return a copy with the rows of these indices.

        rows: indices among the n rows; features and their lists of categories stay the same.
        """
        return replace(self, indices=self.indices[:, rows])

    def compute_totals(self, target: CategoryTarget, keys: UInt64) -> CategoryTotals:
        """Sum up targets and weights by category over the training rows, which are the first rows.

        target: targets and weights of the training rows. keys: key of each training row,
        (n_training,): hash of its values and its copy number among equal rows, by which rows are
        assigned to folds.
        """
        rows = CategoryRows(target, self.indices[:, : len(keys)], keys)
        n_categories = tuple(map(len, self.categories))
        return CategoryTotals.compute(lambda f, *arguments: f(rows, *arguments), n_categories)

    def compute_statistics(self, target: CategoryTarget, keys: UInt64) -> CategoryStatistics:
        """Compute mean target and weight of each category of all features from the training rows.

        Trees read these statistics as numeric columns while they grow. target: targets and weights
        of the training rows, which are the first rows. keys: key of each training row,
        (n_training,), by which rows are assigned to folds.
        """
        positions = [*range(len(self.features))]
        totals = self.compute_totals(target, keys)
        return CategoryStatistics.from_totals(self.features, self.categories, totals, positions)


def find_high_cardinality_features(bins: Bins) -> tuple[int, ...]:
    """Return the indices of the categorical features with more than 30 categories.

    bins: binned training rows, whose categories are counted.
    """
    return tuple(np.flatnonzero(np.diff(bins.category_start) > MAX_SET_CATEGORIES).tolist())


def list_features_of_many_categories(values: Sequence[Values]) -> tuple[int, ...]:
    """Return the indices of the features that have more than 30 categories, ascending.

    values: summary of the values of each feature, as `Sketch.values` has it: for a categorical
    feature a pair of arrays, the distinct category codes and the number of rows of each; other
    values for numeric features.
    """
    return tuple(
        j
        for j, of_feature in enumerate(values)
        if isinstance(of_feature, tuple) and len(of_feature[0]) > MAX_SET_CATEGORIES
    )


def list_categories(bins: Bins, j: int) -> Int32:
    """Return the category codes of feature j that occur in binned rows, ascending, as int32.

    The array is empty if the feature is numeric. bins: the binned rows.
    """
    return bins.category_codes[slice(*bins.category_start[j : j + 2])]


@dataclass(frozen=True, slots=True, eq=False)
class CategoryStatistics:
    """Statistics of the categories of q features, which trees read as additional numeric columns.

    Each feature has n_targets + 1 columns: the weight of the rows of a category, and for each
    target, divided by its largest absolute value, the shrunken mean minus the mean of all rows.
    Both are 0 for categories without training rows. The columns of a feature follow each other. The
    mean in a training row is taken over the rows of the other folds, so that it does not include
    the row's own target. The mean in any other row is taken over all training rows. The constructor
    takes the attributes in this order.

    Attributes
    ----------
    features : tuple of int
        Indices of the features, (q,).
    categories : tuple of q ndarray of int32
        Category codes of each feature, ascending.
    category_values : tuple of ndarray of float64, shape (n_categories,)
        For each of the n_columns columns the statistic of each category over all training rows.
    bins : Bins
        Bins of the columns, by the values of training rows, without codes of rows.
    codes : tuple of ndarray of uint8, shape (n_categories + 1, n_folds + 1)
        For each column the bin of a row's value, by category (axis 0) and fold (axis 1, five
        folds). The last entry of axis 1 is for rows that are not in the training set, the last
        entry of axis 0 stands for missing values.
    has_missing : tuple of bool
        For each column whether a training row lacks a value of the feature.
    """

    features: tuple[int, ...]
    categories: tuple[Int32, ...]
    category_values: tuple[Float64, ...]
    bins: Bins
    codes: tuple[UInt8, ...]
    has_missing: tuple[bool, ...]

    @classmethod
    def from_totals(
        cls,
        features: tuple[int, ...],
        categories: tuple[Int32, ...],
        totals: CategoryTotals,
        positions: list[int],
    ) -> Self:
        """Compute the statistics of some features from sums over the training rows.

        Parameters
        ----------
        features : tuple of int
            Indices of the features that `totals` has.
        categories : tuple of ndarray of int32
            Category codes of each of these features, ascending.
        totals : CategoryTotals
            Sums by category of each of these features.
        positions : list of int
            Positions in `features` of the features that get statistics.
        """
        all_values, edges, ends, codes, missing = [], [], [], [], []
        for q in positions:
            n_rows = totals.by_category.n_rows[q]
            for values, fold_values in totals.compute_means(q):
                binned = BinnedStatistic.from_values(values, fold_values, n_rows)
                edges.append(binned.edges)
                ends.append(binned.ends)
                codes.append(binned.codes)
                all_values.append(values[:-1])
                missing.append(bool(n_rows[-1].any()))
        low, high = (np.full((len(ends), MISSING), np.inf) for _ in range(2))
        for c, (lowest, highest) in enumerate(ends):
            low[c, : len(lowest)], high[c, : len(highest)] = lowest, highest
        is_category = np.zeros(len(ends), dtype=np.uint8)
        bins = make_bins(tuple(edges), BinRanges(low, high), is_category)
        features = tuple(features[q] for q in positions)
        categories = tuple(categories[q] for q in positions)
        return cls(features, categories, tuple(all_values), bins, tuple(codes), tuple(missing))

    @property
    def n_columns(self) -> int:
        """Number of columns of category statistics, of all features together.

        A feature has a column for the weight, and one for each mean target, of its categories.
        """
        return len(self.codes)

    def encode_rows(self, indices: Int32, keys: UInt64) -> UInt8:
        """Return the bin of each row's value in each column of statistics, (n_columns, n) uint8.

        The value is the weight or a mean target of the row's category. indices: index of each row's
        category, (q, n), as in `HighCardinalityFeatures`. keys: key of each training row,
        (n_training,): hash of its values and its copy number among equal rows; training rows are
        the first of the n rows. Hashes of keys assign these rows to folds; the mean in a training
        row leaves out the rows of its fold.
        """
        return get_codes_of_rows(self.codes, indices[self._column_features], keys)

    def extend_grower(self, grower: BinnedGrower, codes: UInt8) -> BinnedGrower:
        """Return a copy of a grower whose rows have the columns of statistics as additional features.

        A column has the weight, or a mean target, of a row's category. grower: the binned rows and
        settings from which trees are grown. codes: bins of the rows in the columns, (n_columns, n),
        as `encode_rows` returns them. Interaction constraints of a categorical feature are those of
        its columns, too. When the grower looks for a split, columns come after all features, in the
        order of their categorical features. Columns have no monotonic constraint.
        """
        bins, added = grower.bins, replace(self.bins, codes=codes)
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(bins, name), getattr(added, name)])
            for name in ("codes", "n_bins", "low", "high", "is_categorical")
        }
        joined["bin_start"] = np.append(bins.bin_start, bins.bin_start[-1] + added.bin_start[1:])
        starts = np.append(
            bins.category_start, np.repeat(bins.category_start[-1:], added.n_features)
        )
        signs, groups, order = grower.monotonic_cst, grower.interaction_cst, grower.feature_order
        columns = [*enumerate(self._column_features.tolist(), bins.n_features)]
        if signs is not None:
            signs = np.append(signs, np.zeros(added.n_features, dtype=np.int8))
        if groups is not None:
            groups = [
                [*group, *(c for c, q in columns if self.features[q] in group)] for group in groups
            ]
        if order is not None:
            rank = np.argsort(order)
            columns.sort(key=lambda column: rank[self.features[column[1]]])
            order = np.append(order, [c for c, _ in columns]).astype(np.int32)
        return replace(
            grower,
            bins=replace(bins, **joined, category_start=starts),
            monotonic_cst=signs,
            interaction_cst=groups,
            feature_order=order,
        )

    def encode_new_rows(self, X: Rows) -> Float64:
        """Return the statistics of the categories of new rows, (n, n_columns) float64.

        They are the weight and the mean targets of each row's category in each feature, over all
        training rows. X: rows outside of the training set, (n, p), with category codes. A missing
        value gives NaN. A category without training rows gives 0: its mean is that of all rows, and
        its weight is 0.
        """
        columns = []
        for q, values in zip(self._column_features, self.category_values, strict=True):
            categories, given = self.categories[q], X[:, self.features[q]]
            index = np.searchsorted(categories, given).clip(max=len(categories) - 1)
            column = np.where(categories[index] == given, values[index], 0.0)
            columns.append(np.where(np.isnan(given), np.nan, column))
        return np.stack(columns, axis=1)

    def replace_by_category_sets(self, trees: Trees) -> Trees:
        """Return trees in which splits on columns of statistics have become splits on categories.

        A column has the weight, or a mean target, of a row's category, so that a threshold on it
        divides the categories into two sets. The columns are no features of the result. trees:
        trees from a grower that `extend_grower` has returned, so that the columns are the last
        features. A category without training rows goes to the same child as the value 0, which
        stands for the mean of all rows. So do missing values if no training row lacks a value of
        the feature.
        """
        n_features, missing = trees.n_features - self.n_columns, self.has_missing
        feature, threshold = trees.feature.copy(), trees.threshold.copy()
        missing_left, unseen_left = trees.missing_left.copy(), trees.unseen_left.copy()
        n_categories = np.diff(trees.category_start)
        # Pairs of a mask of nodes and their category sets, one set after the other: first the nodes
        # that split on categories already, then those that split on each column.
        sets = [(n_categories > 0, trees.categories)]
        for c, (q, values) in enumerate(
            zip(self._column_features, self.category_values, strict=True)
        ):
            order = np.argsort(values, kind="stable")
            is_own = trees.feature == n_features + c
            nodes = np.flatnonzero(is_own)
            # The threshold separates values that training rows see; the values over all rows may all be
            # on one side of it.
            n_left = np.searchsorted(values[order], threshold[nodes], side="right")
            n_left = np.clip(n_left, 1, len(order) - 1)
            unseen_left[nodes] = threshold[nodes] >= 0.0
            if not missing[c]:
                missing_left[nodes] = unseen_left[nodes]
            goes_right = unseen_left[nodes]
            n_categories[nodes] = np.where(goes_right, len(order) - n_left, n_left)
            chosen = _list_category_sets(self.categories[q], np.argsort(order), n_left, goes_right)
            sets.append((is_own, chosen))
            feature[nodes], threshold[nodes] = self.features[q], 0
        codes = np.empty(n_categories.sum(), dtype=trees.categories.dtype)
        for is_own, chosen in sets:
            codes[np.repeat(is_own, n_categories)] = chosen
        return Trees.from_valid_columns(
            trees.left,
            n_features,
            feature=freeze(feature),
            threshold=freeze(threshold),
            chain=trees.chain,
            missing_left=freeze(missing_left),
            unseen_left=freeze(unseen_left),
            category_start=freeze(np.append(0, np.cumsum(n_categories))),
            categories=freeze(codes),
            missing_both=trees.missing_both,
            root=trees.root,
            value=trees.value,
        )

    @property
    def _column_features(self) -> Indices:
        """Position in the field `features` of the feature of each statistics column, (n_columns,)."""
        n_features = len(self.features)
        return np.repeat(np.arange(n_features), self.n_columns // n_features)


def _list_category_sets(
    categories: Int32, place: Indices, n_left: Indices, goes_right: NDArray[np.bool_]
) -> Int32:
    """Return the category sets of k nodes, one after the other, each ascending.

    The nodes split on the same feature, whose m categories are ordered by a statistic. The set of a
    node has the first n_left categories in this order, or all but these if `goes_right`.
    categories: all codes, ascending, (m,); place: position of each category in the order, (m,);
    n_left, goes_right: for each node, (k,) each.
    """
    step = max(1, _MAX_TABLE_SIZE // len(categories))
    sets = [categories[:0]]
    for first in range(0, len(n_left), step):
        nodes = slice(first, first + step)
        is_chosen = (place < n_left[nodes, None]) != goes_right[nodes, None]
        sets.append(np.broadcast_to(categories, is_chosen.shape)[is_chosen])
    return np.concatenate(sets)


def get_codes_of_rows(codes: tuple[UInt8, ...], indices: Int32, keys: UInt64) -> UInt8:
    """Look up the bin code of each row in tables by category and fold; return (n_columns, n) uint8.

    codes: the table of each column, (n_categories + 1, n_folds + 1), as in
    `CategoryStatistics.codes`. indices: index of each row's category in each column, (n_columns, n).
    keys: key of each training row, (n_training,), which assigns it to a fold; the training rows are
    the first of the n rows. All other rows take the last entry of the axis of folds.
    """
    fold = np.full(indices.shape[1], _FOLDS, dtype=np.int32)
    fold[: len(keys)] = assign_folds(keys)
    return np.stack([table[index, fold] for table, index in zip(codes, indices, strict=True)])


@dataclass(frozen=True, slots=True, eq=False)
class BinnedStatistic:
    """Bins of one statistic, such as the mean target, of the categories of a feature.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    edges : ndarray of float64, shape (n_bins - 1,)
        Edges between the bins, ascending.
    ends : tuple of two ndarray of float64, shape (n_bins,)
        Smallest and largest value of training rows in each bin.
    codes : ndarray of uint8, shape (n_categories + 1, n_folds + 1)
        Bin of a row's value, by category (axis 0) and fold (axis 1). The last entry of axis 1 is
        for rows that are not in the training set, that of axis 0 for missing values.
    """

    edges: Float64
    ends: tuple[Float64, Float64]
    codes: UInt8

    @classmethod
    def from_values(
        cls, values: Float64, fold_values: Float64, n_rows: Int64, n_bins: int = MISSING
    ) -> Self:
        """Choose the bins of one statistic, and return them with the code of each category and fold.

        values: statistic of each category over all training rows, (n_categories + 1,). fold_values:
        values of the training rows of each category and fold, (n_categories + 1, n_folds). n_rows:
        number of these rows, of the same shape. n_bins: largest number of bins. The last entries of
        values and fold_values, for missing values, are set to NaN in place.
        """
        values[-1], fold_values[-1] = np.nan, np.nan
        edges = _choose_edges(fold_values, n_rows, n_bins)
        low, high = encode_numbers(fold_values[(n_rows > 0) & ~np.isnan(fold_values)], edges)[1:]
        code = encode_numbers(fold_values.ravel(), edges)[0].reshape(fold_values.shape)
        nearest = find_nearest_bins(values, low, high)
        return cls(edges, (low, high), np.column_stack([code, nearest]))


def find_nearest_bins(values: Float64, low: Float64, high: Float64) -> UInt8:
    """Return the bin of each value, (n,) uint8, by thresholds halfway between neighbouring bins.

    values: (n,); NaN gets bin 255, that of missing values. low, high: smallest and largest value in
    each bin, (n_bins,).
    """
    bins = np.searchsorted(high[:-1] + (low[1:] - high[:-1]) / 2.0, values)
    return np.where(np.isnan(values), MISSING, bins).astype(np.uint8)


def _choose_edges(fold_values: Float64, n_rows: Int64, n_bins: int = MISSING) -> Float64:
    """Choose the edges between the bins of one column; return (n_bins - 1,) float64, ascending.

    Up to `n_bins` distinct values have a bin each; of more values each bin has about equally many
    rows. If there are more than 2**17 rows, edges follow from 2**17 rows at even distances in the
    order of their values. A bin holds the values above the edge before it, up to its own edge.

    fold_values: value of the training rows of each category and fold, (n_categories + 1, n_folds).
    n_rows: number of these rows, of the same shape. n_bins: largest number of bins. Entries that
    are NaN or have no rows are ignored.
    """
    has_rows = (n_rows > 0) & ~np.isnan(fold_values)
    order = np.argsort(fold_values[has_rows], kind="stable")
    values, last = fold_values[has_rows][order], np.cumsum(n_rows[has_rows][order])
    distinct = np.unique(values)
    if len(distinct) <= n_bins:
        return distinct[:-1]
    n = int(last[-1])
    rows = np.arange(min(n, EDGE_ROWS)) * max(1.0, n / EDGE_ROWS)
    sampled = values[np.searchsorted(last, rows.astype(np.int64), side="right")]
    edges: Float64 = choose_bin_edges(sampled, n_bins, False)
    return edges
