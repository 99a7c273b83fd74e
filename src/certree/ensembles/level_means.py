"""Mean targets of the levels of categorical features that have many, as further columns while trees grow.

A cell holds few rows of each of hundreds of levels, so their order by the cell's own gradients is mostly
noise, and few cells divide them. Their mean targets order them by all rows. A row must not find its own
target there, so those that train see the means of other rows, drawn to the mean of all (Micci-Barreca, "A
preprocessing scheme for high-cardinality categorical attributes", 2001; Prokhorenkova et al., "CatBoost",
NeurIPS 2018). New rows see those of all: which side of a threshold they lie on is told by their level
alone, so such a cut is one by a set of levels, and the trees hold nothing else.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.grow.binned import BinnedGrower
from certree.grow.bins import Bins
from certree.interface.arrays import Float64, Int32, UInt64, frozen
from certree.rows.folds import Indices
from certree.rows.hashes import mix
from certree.tree import Trees

# Sets tell so many levels apart well enough.
_FEW_LEVELS = 30
# A mean is drawn to that of all rows as if by so many rows that have it.
_DRAWN = 10.0
# Rows see the means of the rows in other folds.
_FOLDS = 5
# With more classes means of each are more columns than they are worth.
_MOST_CLASSES = 5
# Folds have nothing to do with how rounds draw rows by the same keys.
_SALT = np.uint64(0x6C6576656C730000)


@dataclass(frozen=True, slots=True, eq=False)
class ManyLevels:
    """The levels that rows have of the categorical features with many.

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
    def of(cls, X: NDArray[np.floating], bins: Bins) -> "ManyLevels | None":
        """The levels of rows X (n, p) that are in bins; None if no feature has many."""
        many = np.flatnonzero(np.diff(bins.level_start) > _FEW_LEVELS)
        if not len(many):
            return None
        levels = [bins.levels[slice(*bins.level_start[j : j + 2])] for j in many]
        place = np.empty((len(many), len(X)), dtype=np.int32)
        for to, j, known in zip(place, many, levels, strict=True):
            to[:] = np.searchsorted(known, X[:, j])  # NaN is behind all
        return cls(tuple(many.tolist()), tuple(levels), place)

    def at(self, rows: Indices) -> "ManyLevels":
        """Those of some rows."""
        return replace(self, place=self.place[:, rows])


@dataclass(frozen=True, slots=True, eq=False)
class LevelMeans:
    """Mean targets of levels, and what rows see of them while trees grow.

    Parameters
    ----------
    many : ManyLevels
        The levels of rows, of which the first ones train.
    means : tuple of ndarray of shape (n_levels, n_targets)
        How far the mean of each level, by all rows that train, is above that of all levels; 0 of those
        that none of them has.
    seen : ndarray of shape (q * n_targets, n)
        What rows see, feature by feature; NaN where the level is missing.
    """

    many: ManyLevels
    means: tuple[Float64, ...]
    seen: Float64

    @classmethod
    def of(cls, many: ManyLevels, targets: Float64, weight: Float64, keys: UInt64) -> "LevelMeans":
        """Take the means of targets (n_targets, n_training), by rows of some weights and keys."""
        n = len(keys)
        # By keys, as the last bits of sums depend on the order.
        order = np.argsort(mix(keys ^ _SALT), kind="stable")
        fold = np.empty(n, dtype=np.int32)
        fold[order] = np.arange(n) % _FOLDS
        above = _above_mean(targets[:, order], weight[order])
        means, seen = [], []
        for levels, place in zip(many.levels, many.place, strict=True):
            k = len(levels) + 1
            cell = place[:n] * _FOLDS + fold

            def sums(of_rows: Float64, cell: Indices = cell[order], k: int = k) -> Float64:
                total = np.bincount(cell, weights=of_rows, minlength=k * _FOLDS)
                table: Float64 = total.reshape(k, _FOLDS)
                return table

            rows, totals = sums(weight[order]), [sums(one) for one in above * weight[order]]
            all_folds = np.stack([_drawn(one, rows, slice(None)) for one in totals], axis=1)
            others = [np.arange(_FOLDS) != one for one in range(_FOLDS)]
            for one, of_all in zip(totals, all_folds.T, strict=True):
                out_of_fold = np.stack([_drawn(one, rows, other) for other in others], axis=1)
                column = of_all[place]
                column[:n] = out_of_fold.ravel()[cell]
                seen.append(np.where(place == k - 1, np.nan, column))
            means.append(all_folds[:-1])
        return cls(many, tuple(means), np.stack(seen))

    def beside(self, grower: BinnedGrower) -> BinnedGrower:
        """A grower on the same rows with what they see as more features, which act as their levels do."""
        bins, more = grower.bins, Bins.of(self.seen.T)
        joined = {
            name: np.concatenate([getattr(bins, name), getattr(more, name)])
            for name in ("codes", "n_bins", "low", "high", "category")
        }
        starts = np.append(bins.level_start, np.repeat(bins.level_start[-1:], more.n_features))
        slopes, groups = grower.monotonic_cst, grower.interaction_cst
        if slopes is not None:
            slopes = np.append(slopes, np.zeros(more.n_features, dtype=np.int8))
        if groups is not None:
            columns = [*enumerate(self._features, bins.n_features)]
            groups = [[*group, *(c for c, j in columns if j in group)] for group in groups]
        return replace(
            grower,
            bins=replace(bins, **joined, level_start=starts),
            monotonic_cst=slopes,
            interaction_cst=groups,
        )

    def as_sets(self, trees: Trees, n_features: int) -> Trees:
        """The same trees on n_features features, in which sets of levels stand for cuts by means.

        A level that no row had goes where a mean of 0 does, if the feature is never missing.
        """
        columns = [of_target for one in self.means for of_target in one.T]
        missing = np.isnan(self.seen).any(axis=1)
        sets = np.split(trees.categories, trees.category_start[1:-1])
        feature, threshold = trees.feature.copy(), trees.threshold.copy()
        missing_left = trees.missing_left.copy()
        for c, (j, means) in enumerate(zip(self._features, columns, strict=True)):
            levels = self.many.levels[self.many.feature.index(j)]
            order = np.argsort(means, kind="stable")
            nodes = np.flatnonzero(trees.feature == n_features + c)
            # All rows may lie on one side by the means of all, if not by those that they saw.
            n_left = np.searchsorted(means[order], threshold[nodes], side="right")
            n_left = np.clip(n_left, 1, len(order) - 1)
            if not missing[c]:
                missing_left[nodes] = threshold[nodes] >= 0
            for v, n in zip(nodes, n_left, strict=True):
                sets[v] = np.sort(levels[order[n:] if missing_left[v] else order[:n]])
            feature[nodes], threshold[nodes] = j, 0
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
    def _features(self) -> tuple[int, ...]:
        """Which feature each column is made of."""
        of_all = zip(self.many.feature, self.means, strict=True)
        return tuple(j for j, means in of_all for _ in range(means.shape[1]))


def targets_of(y: Float64, n_outputs: int) -> Float64:
    """What means are taken of, (n_targets, n): numbers, the second of two classes, or all of a few."""
    if n_outputs == 1:
        return y[None]
    of_classes: Any = y == np.arange(n_outputs if n_outputs <= _MOST_CLASSES else 0)[:, None]
    return of_classes.astype(np.float64)


def _above_mean(targets: Float64, weight: Float64) -> Float64:
    """Targets above their mean, in units in which nothing overflows; 0 if all are equal."""
    units = np.abs(targets).max(axis=1, keepdims=True)
    scaled = targets / np.where(units > 0, units, 1.0)
    mean = (scaled * weight).sum(axis=1, keepdims=True) / weight.sum()
    above: Float64 = np.where(np.ptp(scaled, axis=1, keepdims=True) > 0, scaled - mean, 0.0)
    return above


def _drawn(totals: Float64, rows: Float64, folds: Any) -> Float64:
    """Means of levels by the rows in some folds, drawn to 0."""
    mean: Float64 = totals[:, folds].sum(axis=1) / (rows[:, folds].sum(axis=1) + _DRAWN)
    return mean
