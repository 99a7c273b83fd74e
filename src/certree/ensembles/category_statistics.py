"""Mean targets and frequencies of levels, by which trees cut features of many while they grow.

A cell holds few rows of each of hundreds of levels, so their order by the cell's own gradients is
mostly noise, and few cells divide them. Their mean targets order them by all rows, and so does how many
rows they have. A row must not find its own target there, so those that train see the means of rows in
other folds, drawn to the mean of all (Micci-Barreca, "A preprocessing scheme for high-cardinality
categorical attributes", 2001; Prokhorenkova et al., "CatBoost", NeurIPS 2018). New rows see the means
of all rows: their level alone tells on which side of a threshold they lie. So such a cut is one by a
set of levels, and trees that are grown hold nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import choose_bin_edges, encode_numbers, fixed_unit
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import EDGE_ROWS, MISSING, Bins, UInt8
from certree.interface.arrays import Float64, Int32, Int64, UInt64, freeze
from certree.parts.binned_parts import Ends, bins_of, places_of
from certree.parts.exact_sums import exact_sum, rounded, whole_numbers
from certree.rows.folds import Indices
from certree.rows.hashes import mix
from certree.rows.sparse_rows import DenseOrSparseFeatures, SparseFeatures
from certree.stats.exact_leaf_sums import Reduce
from certree.tree import Trees

# Sets tell so many levels apart well enough.
FEW_LEVELS = 30
# A mean is drawn to that of all rows as if by so many rows that have it.
_DRAWN = 10.0
# By so many standard deviations means differ more than by chance: those of noise would cost.
_DEVIATIONS = 2.0
# Rows see the means of the rows in other folds.
_FOLDS = 5
# Of more classes means are more columns than they are worth.
MOST_CLASSES = 5
# Folds have nothing to do with how rounds draw rows by the same keys.
_SALT = np.uint64(0x6C6576656C730000)

Rows = NDArray[np.floating]


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What means of levels are taken of.

    Parameters
    ----------
    y : ndarray of float64, shape (n,) or (n_outputs, n)
        Numbers, or codes of classes; of several numbers those of each output.
    n_outputs : int
        How many scores rows have: one for numbers and for two classes.
    weight : ndarray of float64, shape (n,), or None
        Weights of the rows; None: 1 each.
    """

    y: Float64
    n_outputs: int
    weight: Float64 | None

    def at(self, rows: slice) -> Self:
        """That of some rows."""
        return replace(
            self, y=self.y[..., rows], weight=None if self.weight is None else self.weight[rows]
        )

    def columns(self) -> Float64:
        """The targets (n_targets, n): numbers, the second of two classes, or all of a few."""
        if self.n_outputs == 1:
            return self.y[None]
        n_classes = self.n_outputs if self.n_outputs <= MOST_CLASSES else 0
        if self.y.ndim == 2:
            return self.y[:n_classes]
        of_classes: Any = self.y == np.arange(n_classes)[:, None]
        return of_classes.astype(np.float64)

    def weights(self) -> Float64:
        """The weight of each row, (n,)."""
        return np.ones(self.y.shape[-1]) if self.weight is None else self.weight


# -- sums over rows, wherever these lie --------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class RowsWithLevels:
    """Rows that train, and the levels that they have.

    Parameters
    ----------
    target : Target
        What means are taken of.
    place : ndarray of int32, shape (q, n)
        Place of each row's level of q features among all, the number of levels where it is missing.
    keys : ndarray of uint64, shape (n,)
        What deals rows to folds, wherever they lie.
    """

    target: Target
    place: Int32
    keys: UInt64


@dataclass(frozen=True, slots=True, eq=False)
class TargetEnds:
    """Smallest and largest targets (n_targets,), the largest weight, and the number of rows."""

    least: Float64
    most: Float64
    heaviest: float
    n: int

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        return replace(
            self,
            least=np.minimum(self.least, other.least),
            most=np.maximum(self.most, other.most),
            heaviest=max(self.heaviest, other.heaviest),
            n=self.n + other.n,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """What targets are measured from, in units in which nothing overflows.

    Parameters
    ----------
    ends : TargetEnds
        Those of all rows.
    mean : ndarray of float64, shape (n_targets,)
        Means of all rows in units of the largest target.
    """

    ends: TargetEnds
    mean: Float64

    @property
    def weight_unit(self) -> int:
        """The power of two of which weights are whole multiples."""
        return int(fixed_unit(self.ends.heaviest, self.ends.n))

    @property
    def moved_unit(self) -> int:
        """The same of weights times targets above the mean, which are at most 2."""
        return int(fixed_unit(2.0 * self.ends.heaviest, self.ends.n))

    def above(self, target: Target) -> Float64:
        """How far targets (n_targets, n) are above the mean; 0 if all are equal."""
        differ = (self.ends.least < self.ends.most)[:, None]
        return np.where(differ, scaled(target, self.ends) - self.mean[:, None], 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class LevelSums:
    """What rows add up to by level and fold, of each feature; the last level is a missing one.

    Parameters
    ----------
    n_rows : tuple of ndarray of int64, shape (n_levels + 1, n_folds)
        How many rows there are.
    sums : tuple of ndarray of int64, shape (n_targets + 1, n_levels + 1, n_folds)
        Their weights, and weights times targets above the mean, as whole numbers.
    squares : tuple of int
        Exact sums of squared weights, and of weights times squares above the mean.
    """

    n_rows: tuple[Int64, ...]
    sums: tuple[Int64, ...]
    squares: tuple[int, int]

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        return replace(
            self,
            n_rows=tuple(map(np.add, self.n_rows, other.n_rows)),
            sums=tuple(map(np.add, self.sums, other.sums)),
            squares=(self.squares[0] + other.squares[0], self.squares[1] + other.squares[1]),
        )


def scaled(target: Target, ends: TargetEnds) -> Float64:
    """Targets (n_targets, n) in units of the largest one."""
    unit = np.maximum(np.abs(ends.least), np.abs(ends.most))
    return target.columns() / np.where(unit > 0, unit, 1.0)[:, None]


def ends_of_targets(rows: RowsWithLevels) -> TargetEnds:
    """What some rows tell first."""
    targets, weight = rows.target.columns(), rows.target.weights()
    least, most = targets.min(axis=1, initial=np.inf), targets.max(axis=1, initial=-np.inf)
    return TargetEnds(least, most, float(weight.max(initial=0.0)), len(weight))


def exact_totals(rows: RowsWithLevels, ends: TargetEnds) -> NDArray[np.object_]:
    """Exact sums of weights, and of weights times each target, in units of the largest."""
    weight = rows.target.weights()
    terms = [weight, *(scaled(rows.target, ends) * weight)]
    return np.array([exact_sum(one) for one in terms], dtype=object)


def sums_by_level(rows: RowsWithLevels, scale: Scale, n_levels: tuple[int, ...]) -> LevelSums:
    """What some rows add up to by level and fold."""
    weight, above = rows.target.weights(), scale.above(rows.target)
    whole = [
        whole_numbers(weight, scale.weight_unit),
        *(whole_numbers(one * weight, scale.moved_unit) for one in above),
    ]
    fold, n_rows, sums = folds_of(rows.keys), [], []
    for place, n in zip(rows.place, n_levels, strict=True):
        cell, shape = place * _FOLDS + fold, (n + 1, _FOLDS)
        n_rows.append(np.bincount(cell, minlength=shape[0] * _FOLDS).reshape(shape))
        total = np.zeros((len(whole), shape[0] * _FOLDS), dtype=np.int64)
        for own, one in zip(total, whole, strict=True):
            np.add.at(own, cell, one)
        sums.append(total.reshape(-1, *shape))
    squares = exact_sum(weight**2), sum(exact_sum(weight * one**2) for one in above)
    return LevelSums(tuple(n_rows), tuple(sums), squares)


def folds_of(keys: UInt64) -> Int32:
    """The fold of each row."""
    return (mix(keys ^ _SALT) % np.uint64(_FOLDS)).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class KnownLevels:
    """What all rows that train add up to by the levels of features.

    Parameters
    ----------
    scale : Scale
        What targets are measured from.
    by_level : LevelSums
        Of each feature.
    """

    scale: Scale
    by_level: LevelSums

    @classmethod
    def of(cls, ask: Reduce, n_levels: tuple[int, ...]) -> Self:
        """Ask rows, wherever they lie; n_levels: of each feature that is asked for."""
        ends: TargetEnds = ask(ends_of_targets)
        weight, *totals = map(rounded, ask(exact_totals, ends))
        scale = Scale(ends, np.array(totals) / weight)
        return cls(scale, ask(sums_by_level, scale, n_levels))

    def differ(self, q: int) -> bool:
        """Whether means of levels differ by more than if targets were dealt to rows at random.

        As the core tells it of the categories of a cell, in grow/chance.hpp.
        """
        rows, *of_targets = self._numbers(self.by_level.sums[q].sum(axis=2))
        known, total = rows > 0, float(rows.sum())
        between = sum(float((one[known] ** 2 / rows[known]).sum()) for one in of_targets)
        squares, spread = map(rounded, self.by_level.squares)
        row, degrees = squares / total, int(known.sum()) - 1
        chance = (degrees + _DEVIATIONS * (2 * degrees) ** 0.5) * row * spread
        return between * (total - row) > chance

    def _numbers(self, whole: Int64) -> list[Float64]:
        """Sums of weights, and of weights times each target, as numbers of float64."""
        scale = self.scale
        units = [scale.weight_unit, *[scale.moved_unit] * (len(whole) - 1)]
        return [
            np.ldexp(one.astype(np.float64), unit) for one, unit in zip(whole, units, strict=True)
        ]

    def means(self, q: int) -> list[tuple[Float64, Float64]]:
        """What is known of the levels of a feature, and what their rows see by fold.

        These are the weight of the rows, then for each target its mean above that of all.
        """
        by_fold = self.by_level.sums[q]
        rows, *of_targets = self._numbers(by_fold.sum(axis=2))
        others, *of_others = self._numbers(by_fold.sum(axis=2, keepdims=True) - by_fold)
        told = [(rows, np.repeat(rows[:, None], _FOLDS, axis=1))]
        for one, seen in zip(of_targets, of_others, strict=True):
            told.append((one / (rows + _DRAWN), seen / (others + _DRAWN)))
        return told


# -- what trees cut by -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ManyLevels:
    """The levels that rows have of features with many, if these tell something of the target.

    Parameters
    ----------
    feature : tuple of int
        The features.
    levels : tuple of ndarray of int32
        The levels of each feature that rows have, ascending.
    place : ndarray of int32, shape (q, n)
        Place of each row's level among these, the number of levels where it is missing.
    """

    feature: tuple[int, ...]
    levels: tuple[Int32, ...]
    place: Int32

    @classmethod
    def of(
        cls, features: DenseOrSparseFeatures, bins: Bins, target: Target, keys: UInt64
    ) -> Self | None:
        """The levels of rows in bins whose mean targets differ; None if those of no feature do."""
        feature = features_of_many_levels(bins)
        if isinstance(features, SparseFeatures) or not feature:
            return None
        levels = tuple(levels_of(bins, j) for j in feature)
        many = cls(feature, levels, places_of(features, dict(zip(feature, levels, strict=True))))
        known = many.known(target, keys)
        return many.those([q for q in range(len(feature)) if known.differ(q)])

    def those(self, some: list[int]) -> Self | None:
        """Those of some of the features; None if there are none."""
        if not some:
            return None
        feature, levels = tuple(self.feature[q] for q in some), tuple(self.levels[q] for q in some)
        return replace(self, feature=feature, levels=levels, place=self.place[some])

    def at(self, rows: Indices) -> Self:
        """Those of some rows."""
        return replace(self, place=self.place[:, rows])

    def known(self, target: Target, keys: UInt64) -> KnownLevels:
        """What the first rows, which train, add up to."""
        rows = RowsWithLevels(target, self.place[:, : len(keys)], keys)
        return KnownLevels.of(lambda f, *given: f(rows, *given), tuple(map(len, self.levels)))

    def statistics(self, target: Target, keys: UInt64) -> LevelStatistics:
        """What is known of the levels by the first rows, which train."""
        every = [*range(len(self.feature))]
        return LevelStatistics.of(self.feature, self.levels, self.known(target, keys), every)


def features_of_many_levels(bins: Bins) -> tuple[int, ...]:
    """Features of categories that have so many levels."""
    return tuple(np.flatnonzero(np.diff(bins.category_start) > FEW_LEVELS).tolist())


def levels_of(bins: Bins, j: int) -> Int32:
    """The levels of a feature, ascending."""
    return bins.category_codes[slice(*bins.category_start[j : j + 2])]


@dataclass(frozen=True, slots=True, eq=False)
class LevelStatistics:
    """What is known of levels by rows that train, and what rows see of it while trees grow.

    Of each of q features these are n_targets + 1 columns: the weight of the rows of each level; then,
    for each target, how far its mean is above that of all rows. All are 0 for levels that no row has.

    Parameters
    ----------
    feature : tuple of int
        The features.
    levels : tuple of ndarray of int32
        The levels of each, ascending.
    of_level : tuple of ndarray of shape (n_levels,)
        Of each column what is known of each level.
    bins : Bins
        Those of the columns, by what rows that train see, without codes.
    codes : tuple of ndarray of uint8, shape (n_levels + 1, n_folds + 1)
        Of each column the bin of what rows of each level see: those that train by fold, then others.
    has_missing : tuple of bool
        Of each column, whether a row that trains lacks its level.
    """

    feature: tuple[int, ...]
    levels: tuple[Int32, ...]
    of_level: tuple[Float64, ...]
    bins: Bins
    codes: tuple[UInt8, ...]
    has_missing: tuple[bool, ...]

    @classmethod
    def of(
        cls,
        feature: tuple[int, ...],
        levels: tuple[Int32, ...],
        known: KnownLevels,
        some: list[int],
    ) -> Self:
        """Statistics of some of the features and levels that are known."""
        of_level, edges, ends, codes, missing = [], [], [], [], []
        for q in some:
            n_rows = known.by_level.n_rows[q]
            for told, seen in known.means(q):
                told[-1], seen[-1] = np.nan, np.nan
                edges.append(_edges(seen, n_rows))
                ends.append(encode_numbers(seen[(n_rows > 0) & ~np.isnan(seen)], edges[-1])[1:])
                code = encode_numbers(seen.ravel(), edges[-1])[0].reshape(seen.shape)
                codes.append(np.column_stack([code, _nearest_bins(told, *ends[-1])]))
                of_level.append(told[:-1])
                missing.append(bool(n_rows[-1].any()))
        low, high = (np.full((len(ends), MISSING), np.inf) for _ in range(2))
        for c, (lowest, highest) in enumerate(ends):
            low[c, : len(lowest)], high[c, : len(highest)] = lowest, highest
        numbers = np.zeros(len(ends), dtype=np.uint8)
        bins = bins_of(tuple(edges), Ends(low, high), numbers)
        feature, levels = tuple(feature[q] for q in some), tuple(levels[q] for q in some)
        return cls(feature, levels, tuple(of_level), bins, tuple(codes), tuple(missing))

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.codes)

    def coded(self, place: Int32, keys: UInt64) -> UInt8:
        """What rows see, as codes (n_columns, n); the first of them train, and have keys."""
        fold = np.full(place.shape[1], _FOLDS, dtype=np.int32)
        fold[: len(keys)] = folds_of(keys)
        return np.stack(
            [code[place[q], fold] for q, code in zip(self._made_of, self.codes, strict=True)]
        )

    def beside(self, grower: BinnedGrower, coded: UInt8) -> BinnedGrower:
        """A grower on the same rows, of which what they see (n_columns, n) are more features.

        These may act together with those that their levels may.
        """
        bins, more = grower.bins, replace(self.bins, codes=coded)
        joined = {
            name: np.concatenate([getattr(bins, name), getattr(more, name)])
            for name in ("codes", "n_bins", "low", "high", "is_categorical")
        }
        joined["bin_start"] = np.append(bins.bin_start, bins.bin_start[-1] + more.bin_start[1:])
        starts = np.append(
            bins.category_start, np.repeat(bins.category_start[-1:], more.n_features)
        )
        slopes, groups, order = grower.monotonic_cst, grower.interaction_cst, grower.feature_order
        columns = [*enumerate(self._made_of.tolist(), bins.n_features)]
        if slopes is not None:
            slopes = np.append(slopes, np.zeros(more.n_features, dtype=np.int8))
        if groups is not None:
            feature = self.feature
            groups = [[*group, *(c for c, q in columns if feature[q] in group)] for group in groups]
        if order is not None:
            rank = np.argsort(order)
            columns.sort(key=lambda one: rank[self.feature[one[1]]])
            order = np.append(order, [c for c, _ in columns]).astype(np.int32)
        return replace(
            grower,
            bins=replace(bins, **joined, category_start=starts),
            monotonic_cst=slopes,
            interaction_cst=groups,
            feature_order=order,
        )

    def seen_by(self, X: Rows) -> Float64:
        """What new rows X (m, any) see of each of these, (m, n_columns)."""
        columns = []
        for missing, q, known in zip(self.has_missing, self._made_of, self.of_level, strict=True):
            levels, given = self.levels[q], X[:, self.feature[q]]
            place = np.searchsorted(levels, given).clip(max=len(levels) - 1)
            unknown = np.nan if missing else 0.0
            column = np.where(levels[place] == given, known[place], unknown)
            columns.append(np.where(np.isnan(given), np.nan, column))
        return np.stack(columns, axis=1)

    def as_sets(self, trees: Trees) -> Trees:
        """The same trees without these columns, in which sets of levels stand for cuts by them.

        A level that no row had goes where 0 does, if the feature is never missing.
        """
        n_features, missing = trees.n_features - self.n_columns, self.has_missing
        sets = np.split(trees.categories, trees.category_start[1:-1])
        feature, threshold = trees.feature.copy(), trees.threshold.copy()
        missing_left = trees.missing_left.copy()
        for c, (q, known) in enumerate(zip(self._made_of, self.of_level, strict=True)):
            levels = self.levels[q]
            order = np.argsort(known, kind="stable")
            nodes = np.flatnonzero(trees.feature == n_features + c)
            # By what is known of all rows they may all be on one side, if not by what they saw.
            n_left = np.searchsorted(known[order], threshold[nodes], side="right")
            n_left = np.clip(n_left, 1, len(order) - 1)
            if not missing[c]:
                missing_left[nodes] = threshold[nodes] >= 0.0
            for v, n in zip(nodes, n_left, strict=True):
                sets[v] = np.sort(levels[order[n:] if missing_left[v] else order[:n]])
            feature[nodes], threshold[nodes] = self.feature[q], 0
        return Trees.from_valid_columns(
            trees.left,
            n_features,
            feature=freeze(feature),
            threshold=freeze(threshold),
            chain=trees.chain,
            missing_left=freeze(missing_left),
            category_start=freeze(np.cumsum([0, *map(len, sets)])),
            categories=freeze(np.concatenate([trees.categories[:0], *sets])),
            missing_both=trees.missing_both,
            root=trees.root,
            value=trees.value,
        )

    @property
    def _made_of(self) -> Indices:
        """Which of the features with many levels each column is made of."""
        n_features = len(self.feature)
        return np.repeat(np.arange(n_features), self.n_columns // n_features)


def _nearest_bins(told: Float64, low: Float64, high: Float64) -> UInt8:
    """Where cuts halfway between bins, which end so, send what other rows see."""
    bins = np.searchsorted(high[:-1] + (low[1:] - high[:-1]) / 2.0, told)
    return np.where(np.isnan(told), MISSING, bins).astype(np.uint8)


def _edges(seen: Float64, n_rows: Int64) -> Float64:
    """Edges of the bins of what so many rows see, as `Bins` tells them."""
    has_rows = (n_rows > 0) & ~np.isnan(seen)
    order = np.argsort(seen[has_rows], kind="stable")
    values, last = seen[has_rows][order], np.cumsum(n_rows[has_rows][order])
    distinct = np.unique(values)
    if len(distinct) <= MISSING:
        return distinct[:-1]
    # Of more rows those at even distances tell as much.
    n = int(last[-1])
    rows = np.arange(min(n, EDGE_ROWS)) * max(1.0, n / EDGE_ROWS)
    told = values[np.searchsorted(last, rows.astype(np.int64), side="right")]
    edges: Float64 = choose_bin_edges(told, MISSING, False)
    return edges
