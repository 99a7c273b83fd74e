"""Mean targets and frequencies of levels, by which trees cut features of many while they grow.

A cell holds few rows of each of hundreds of levels, so their order by the cell's own gradients is
mostly noise, and few cells divide them. Their mean targets order them by all rows, and so does how many
rows they have. A row must not find its own target there, so those that train see the means of rows in
other folds, drawn to the mean of all (Micci-Barreca, "A preprocessing scheme for high-cardinality
categorical attributes", 2001; Prokhorenkova et al., "CatBoost", NeurIPS 2018). New rows see the means
of all rows: their level alone tells on which side of a threshold they lie. So such a cut is one by a
set of levels, and trees that are grown hold nothing else.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.grow.binned import BinnedGrower
from certree.grow.bins import Bins
from certree.interface.arrays import Float64, Int32, UInt64, frozen
from certree.rows.folds import Indices
from certree.rows.hashes import mix
from certree.rows.sparse_rows import AnyColumns, SparseColumns
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
_MOST_CLASSES = 5
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
        n_classes = self.n_outputs if self.n_outputs <= _MOST_CLASSES else 0
        if self.y.ndim == 2:
            return self.y[:n_classes]
        of_classes: Any = self.y == np.arange(n_classes)[:, None]
        return of_classes.astype(np.float64)

    def above_mean(self, order: Indices) -> tuple[Float64, Float64]:
        """The targets above their means, and the weights, in an order of the rows.

        They are in units in which nothing overflows, and 0 if all are equal.
        """
        weight = np.ones(len(order)) if self.weight is None else self.weight[order]
        targets = self.columns()[:, order]
        units = np.abs(targets).max(axis=1, keepdims=True)
        scaled = targets / np.where(units > 0, units, 1.0)
        mean = (scaled * weight).sum(axis=1, keepdims=True) / weight.sum()
        above = np.where(np.ptp(scaled, axis=1, keepdims=True) > 0, scaled - mean, 0.0)
        return above, weight


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
    def of(cls, features: AnyColumns, bins: Bins, target: Target, keys: UInt64) -> Self | None:
        """The levels of rows in bins whose mean targets differ; None if those of no feature do."""
        many = np.flatnonzero(np.diff(bins.level_start) > FEW_LEVELS)
        if isinstance(features, SparseColumns) or not len(many):
            return None
        order = np.argsort(keys, kind="stable")
        above, weight = target.above_mean(order)
        found = []
        for j in many:
            levels = bins.levels[slice(*bins.level_start[j : j + 2])]
            place = np.searchsorted(levels, features.columns[j])  # NaN is behind all
            if _beyond_chance(place[order], above, weight):
                found.append((int(j), levels, place))
        if not found:
            return None
        feature, known, places = zip(*found, strict=True)
        return cls(feature, known, np.array(places, dtype=np.int32))

    def at(self, rows: Indices) -> Self:
        """Those of some rows."""
        return replace(self, place=self.place[:, rows])


@dataclass(frozen=True, slots=True, eq=False)
class LevelStatistics:
    """What is known of levels by rows that train, and what rows see of it while trees grow.

    Parameters
    ----------
    many : ManyLevels
        The levels of rows, of which the first ones train.
    of_level : tuple of ndarray of shape (n_levels,)
        Of each feature, the weight of the rows of each level; then, for each target, how far its mean
        is above that of all rows. All are 0 for levels that no row has.
    seen : ndarray of shape (q * (n_targets + 1), n)
        What rows see of each of these; NaN where the level is missing.
    """

    many: ManyLevels
    of_level: tuple[Float64, ...]
    seen: Float64

    @classmethod
    def of(cls, many: ManyLevels, target: Target, keys: UInt64) -> Self:
        """Take them by the rows that train."""
        n = len(keys)
        # By keys, as the last bits of sums depend on the order.
        order = np.argsort(mix(keys ^ _SALT), kind="stable")
        fold = np.arange(n, dtype=np.int32) % _FOLDS
        above, weight = target.above_mean(order)
        of_level, seen = [], []
        for levels, place in zip(many.levels, many.place, strict=True):
            shape = len(levels) + 1, _FOLDS
            cell = place[order] * _FOLDS + fold
            in_fold = _sums(cell, weight, shape)
            rows = in_fold.sum(axis=1)
            statistics, columns = [rows], [rows[place]]
            for one in above:
                total = _sums(cell, one * weight, shape)
                mean = total.sum(axis=1) / (rows + _DRAWN)
                column = mean[place]
                column[order] = (_without(total) / (_without(in_fold) + _DRAWN)).ravel()[cell]
                statistics.append(mean)
                columns.append(column)
            of_level += [one[:-1] for one in statistics]
            seen += [np.where(place == len(levels), np.nan, column) for column in columns]
        return cls(many, tuple(of_level), np.stack(seen))

    def beside(self, grower: BinnedGrower) -> BinnedGrower:
        """A grower on the same rows, of which what they see are more features.

        These may act together with those that their levels may.
        """
        bins, more = grower.bins, Bins.of(self.seen.T)
        joined = {
            name: np.concatenate([getattr(bins, name), getattr(more, name)])
            for name in ("codes", "n_bins", "low", "high", "category")
        }
        joined["bin_start"] = np.append(bins.bin_start, bins.bin_start[-1] + more.bin_start[1:])
        starts = np.append(bins.level_start, np.repeat(bins.level_start[-1:], more.n_features))
        slopes, groups = grower.monotonic_cst, grower.interaction_cst
        if slopes is not None:
            slopes = np.append(slopes, np.zeros(more.n_features, dtype=np.int8))
        if groups is not None:
            columns = [*enumerate(self._made_of, bins.n_features)]
            feature = self.many.feature
            groups = [[*group, *(c for c, q in columns if feature[q] in group)] for group in groups]
        return replace(
            grower,
            bins=replace(bins, **joined, level_start=starts),
            monotonic_cst=slopes,
            interaction_cst=groups,
        )

    def seen_by(self, X: Rows) -> Float64:
        """What new rows X (m, any) see of each of these, (m, q * (n_targets + 1))."""
        columns = []
        for missing, q, known in zip(self._has_missing, self._made_of, self.of_level, strict=True):
            levels, given = self.many.levels[q], X[:, self.many.feature[q]]
            place = np.searchsorted(levels, given).clip(max=len(levels) - 1)
            unknown = np.nan if missing else 0.0
            column = np.where(levels[place] == given, known[place], unknown)
            columns.append(np.where(np.isnan(given), np.nan, column))
        return np.stack(columns, axis=1)

    def as_sets(self, trees: Trees, n_features: int) -> Trees:
        """The same trees on n_features features, in which sets of levels stand for cuts by statistics.

        A level that no row had goes where 0 does, if the feature is never missing.
        """
        missing = self._has_missing
        sets = np.split(trees.categories, trees.category_start[1:-1])
        feature, threshold = trees.feature.copy(), trees.threshold.copy()
        missing_left = trees.missing_left.copy()
        for c, (q, known) in enumerate(zip(self._made_of, self.of_level, strict=True)):
            levels = self.many.levels[q]
            order = np.argsort(known, kind="stable")
            nodes = np.flatnonzero(trees.feature == n_features + c)
            # By what is known of all rows they may all be on one side, if not by what they saw.
            n_left = np.searchsorted(known[order], threshold[nodes], side="right")
            n_left = np.clip(n_left, 1, len(order) - 1)
            if not missing[c]:
                missing_left[nodes] = threshold[nodes] >= 0.0
            for v, n in zip(nodes, n_left, strict=True):
                sets[v] = np.sort(levels[order[n:] if missing_left[v] else order[:n]])
            feature[nodes], threshold[nodes] = self.many.feature[q], 0
        return Trees.known(
            trees.left,
            n_features,
            feature=frozen(feature),
            threshold=frozen(threshold),
            chain=trees.chain,
            missing_left=frozen(missing_left),
            category_start=frozen(np.cumsum([0, *map(len, sets)])),
            categories=frozen(np.concatenate([trees.categories[:0], *sets])),
            missing_both=trees.missing_both,
            root=trees.root,
            value=trees.value,
        )

    @property
    def _has_missing(self) -> NDArray[np.bool_]:
        """Whether each column has missing values."""
        return np.asarray(np.isnan(self.seen.min(axis=1)))

    @property
    def _made_of(self) -> Indices:
        """Which of the features with many levels each column is made of."""
        n_features = len(self.many.feature)
        return np.repeat(np.arange(n_features), len(self.of_level) // n_features)


def _sums(cell: Int32, of_rows: Float64, shape: tuple[int, int]) -> Float64:
    """Sums over the rows of each level in each fold."""
    total: Any = np.bincount(cell, of_rows, shape[0] * shape[1])
    return np.asarray(total.reshape(shape), dtype=np.float64)


def _without(sums: Float64) -> Float64:
    """Sums over all folds but each of them."""
    others = [np.delete(sums, fold, axis=1).sum(axis=1) for fold in range(_FOLDS)]
    return np.stack(others, axis=1)


def _beyond_chance(place: Indices, above: Float64, weight: Float64) -> bool:
    """Whether means of levels differ by more than if targets were dealt to rows at random.

    As the core tells it of the categories of a cell, in grow/chance.hpp.
    """
    rows = np.bincount(place, weights=weight)
    known = rows > 0
    between = 0.0
    for one in above:
        totals = np.bincount(place, weights=one * weight)[known]
        between += float((totals**2 / rows[known]).sum())
    row = float((weight**2).sum() / weight.sum())
    degrees = int(known.sum()) - 1
    chance = (degrees + _DEVIATIONS * (2 * degrees) ** 0.5) * row * float((weight * above**2).sum())
    return between * (float(weight.sum()) - row) > chance
