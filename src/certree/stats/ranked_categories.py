"""Ranks of categories by their mean target, on which single trees and forests split.

A split of a node sorts categories by the node's own targets, and the leaves below count the same
targets. With few rows of each of very many categories such leaves are far too confident. So trees
grow on the ranks of the categories by their mean target instead. The rank of a training row is
computed from the rows of the other folds, so neither a split nor the count of a leaf uses its own
target in the rank; see `CategoryStatistics`. The rank of a new row is computed from all training
rows. A split by a threshold on the ranks is a split by a set of categories, and finished trees hold
only these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.grow.bins import MISSING, AnyTrees, Bins, UInt8
from certree.grow.training_samples import TrainingSamples, replace_columns
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.rows.features import DenseFeatures
from certree.rows.folds import Indices, number_groups
from certree.rows.hashes import compute_keys, hash_samples
from certree.rows.queries import compute_group_keys
from certree.rows.sparse_rows import DenseOrSparseFeatures
from certree.rows.training import Training
from certree.stats.category_statistics import (
    MAX_SET_CATEGORIES,
    MAX_TARGET_CLASSES,
    BinnedStatistic,
    CategoryTarget,
    CategoryTotals,
    HighCardinalityFeatures,
    find_nearest_bins,
    get_codes_of_rows,
)
from certree.tree import LEAF


@dataclass(frozen=True, slots=True, eq=False)
class RankedCategories:
    """Ranks, 0 .. 254, of the categories of q features by mean target.

    Attributes
    ----------
    features : tuple of int
        Indices of the features, (q,).
    categories : tuple of q ndarray of int32
        Category codes of each feature that occur in training rows, ascending.
    ranks : tuple of q ndarray of uint8, shape (n_categories + 1, n_folds + 1)
        Rank of a row by its category (axis 0) and fold (axis 1). The last column is for rows that
        are not in the training set, the last row for missing values, whose rank is 255.
    unseen : tuple of int
        For each feature the rank of categories without training rows: that of the mean of all rows.
    has_missing : tuple of bool
        For each feature whether a training row lacks its value.
    """

    features: tuple[int, ...]
    categories: tuple[Int32, ...]
    ranks: tuple[UInt8, ...]
    unseen: tuple[int, ...]
    has_missing: tuple[bool, ...]

    @classmethod
    def from_totals(
        cls, categories: Mapping[int, Int32], totals: CategoryTotals, n_ranks: int = MISSING
    ) -> Self | None:
        """Rank the categories of the features whose mean targets differ by more than chance.

        With three to five classes the mean is the frequency of the class that differs most between
        the categories of the feature.

        Parameters
        ----------
        categories : mapping of int to ndarray of int32
            Category codes of each feature in `totals`, ascending, by the index of the feature.
        totals : CategoryTotals
            Sums of targets and weights of the training rows by category.
        n_ranks : int
            Largest number of ranks of a feature, at most 255; if it has more categories, those with
            similar mean targets share a rank.

        Returns
        -------
        RankedCategories or None
            None if there is no such feature, as with one class or more than five.
        """
        positions = [q for q in range(len(categories)) if totals.has_signal(q)]
        if not positions:
            return None
        ranks, unseen, has_missing = [], [], []
        for q in positions:
            n_rows = totals.by_category.n_rows[q]
            values, fold_values = totals.compute_largest_means(q)
            binned = BinnedStatistic.from_values(values, fold_values, n_rows, n_ranks)
            ranks.append(binned.codes)
            unseen.append(int(find_nearest_bins(np.zeros(1), *binned.ends)[0]))
            has_missing.append(bool(n_rows[-1].any()))
        features = [*categories]
        chosen = {features[q]: categories[features[q]] for q in positions}
        return cls(
            tuple(chosen), tuple(chosen.values()), tuple(ranks), tuple(unseen), tuple(has_missing)
        )

    def select_numeric(self, categorical: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a copy of a mask of categorical features in which features with ranks are numeric.

        categorical: True for features that hold category codes, (p,). The result is False for the
        features of the field `features`, whose codes have been replaced by ranks.
        """
        mask = categorical.copy()
        mask[[*self.features]] = False
        return mask

    def rank_rows(self, indices: Int32, keys: UInt64) -> UInt8:
        """Return the ranks of rows, (q, n) uint8; 255 where a value is missing.

        indices: index of each row's category among `categories`, (q, n); the number of categories
        where it is missing. keys: key of each training row, (n_training,): hash of its values and
        its copy number among equal rows, by which it is assigned to a fold. The first n_training of
        the n rows are the training rows; their ranks do not depend on the targets of their fold.
        """
        return get_codes_of_rows(self.ranks, indices, keys)

    def replace_in_bins(self, bins: Bins, ranks: UInt8) -> Bins:
        """Return bins in which the ranked features are numeric, with a bin for each rank.

        bins: bins of the rows, in which these features are categorical. ranks: ranks of the rows,
        (q, n); with n = 0 the result has no codes of rows.
        """
        columns: dict[str, list[Any]] = {"low": [], "high": [], "codes": [], "bins": []}
        codes: Any = bins.codes
        n_bins, is_categorical = bins.n_bins.copy(), bins.is_categorical.copy()
        values = {
            j: np.arange(int(table[table != MISSING].max(initial=0)) + 1.0)
            for j, table in zip(self.features, self.ranks, strict=True)
        }
        for j in range(bins.n_features):
            low, high = (values[j], values[j]) if j in values else bins.bin_ranges(j)
            of_feature = slice(0) if j in values else slice(*bins.category_start[j : j + 2])
            columns["low"].append(low)
            columns["high"].append(high)
            columns["codes"].append(bins.category_codes[of_feature])
            columns["bins"].append(bins.category_bin[of_feature])
            n_bins[j] = len(low)
        is_categorical[[*self.features]] = 0
        if codes.shape[1]:
            codes = codes.copy()
            codes[[*self.features]] = ranks
        return replace(
            bins,
            codes=codes,
            n_bins=n_bins,
            bin_start=np.cumsum([0, *n_bins], dtype=np.int64),
            low=np.concatenate(columns["low"]),
            high=np.concatenate(columns["high"]),
            is_categorical=is_categorical,
            category_start=np.cumsum([0, *map(len, columns["codes"])], dtype=np.int64),
            category_codes=np.concatenate(columns["codes"]),
            category_bin=np.concatenate(columns["bins"]),
        )

    def replace_by_category_sets(self, trees: AnyTrees) -> AnyTrees:
        """Return trees in which splits on ranks have become splits on sets of categories.

        A set holds only categories that reach its node. A category without training rows goes to
        the same child as its rank in `unseen`. So do missing values if no training row lacks a
        value of the feature.

        trees: `Tree` or `Trees` that were grown on ranks.
        """
        missing_left, unseen_left = trees.missing_left.copy(), trees.unseen_left.copy()
        threshold, sizes = trees.threshold.copy(), np.diff(trees.category_start)
        owners = [np.repeat(np.arange(trees.n_nodes), sizes)]
        sets = [trees.categories]
        for q, j in enumerate(self.features):
            nodes = np.flatnonzero((trees.feature == j) & (trees.left != LEAF))
            unseen_left[nodes] = self.unseen[q] <= threshold[nodes]
            if not self.has_missing[q]:
                missing_left[nodes] = unseen_left[nodes]
            owner, categories = self._list_sets(q, trees, nodes, unseen_left[nodes])
            owners.append(owner)
            sets.append(categories)
            threshold[nodes] = 0.0
        owner, categories = np.concatenate(owners), np.concatenate(sets)
        order = np.lexsort((categories, owner))
        starts = np.append(0, np.cumsum(np.bincount(owner, minlength=trees.n_nodes)))
        splits_ranks = np.isin(trees.feature[trees.left != LEAF], self.features).any()
        return trees.with_splits(
            threshold,
            starts.astype(np.int64),
            categories[order].astype(np.int32),
            missing_left=missing_left,
            unseen_left=unseen_left,
            **({"optimal_splits": False} if splits_ranks and trees.optimal_splits else {}),
        )

    def _list_sets(
        self, q: int, trees: AnyTrees, nodes: NDArray[np.intp], unseen_left: NDArray[np.bool_]
    ) -> tuple[Int64, Int32]:
        """Return the sets of categories at the nodes that split on the ranks of one feature.

        A set holds the categories that go to the child to which unseen categories do not go. q:
        position of the feature in `features`. trees: trees that were grown on ranks. nodes: the
        nodes, (k,). unseen_left: whether unseen categories go left at each node, (k,). Return two
        arrays with an entry for each category of each set: its node, and its code.
        """
        ranks, categories = self.ranks[q][:-1, -1], self.categories[q]
        order, n = np.argsort(ranks, kind="stable"), len(ranks)
        n_up_to = np.append(0, np.cumsum(np.bincount(ranks, minlength=MISSING)))
        lowest, end = _find_ranges(trees, self.features[q])
        first, last = n_up_to[lowest[nodes]], n_up_to[end[nodes]]
        split = n_up_to[_find_first_right(trees.threshold[nodes])].clip(first, last)
        begin, stop = np.where(unseen_left, split, first), np.where(unseen_left, last, split)
        # Ranks over all rows may all be on one side of a threshold between ranks over other folds.
        # Sets must not be empty: such a set gets a category that does not reach the node, or the
        # one of the nearest rank.
        is_empty, is_last = begin == stop, (first == 0) & ((last < n) | unseen_left)
        begin = np.where(is_empty, np.where(is_last, n - 1, 0), begin)
        sizes = np.where(is_empty, 1, stop - begin)
        entry = np.arange(sizes.sum()) + np.repeat(begin - np.cumsum(sizes) + sizes, sizes)
        return np.repeat(nodes, sizes), categories[order[entry]]


def _find_ranges(trees: AnyTrees, j: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ranks of feature j that reach each node: the lowest, and the highest plus 1.

    trees: trees of M nodes whose splits on feature j are thresholds on ranks. Return two arrays (M,).
    """
    lowest = np.zeros(trees.n_nodes, dtype=np.intp)
    end = np.full(trees.n_nodes, MISSING, dtype=np.intp)
    nodes = trees.root.astype(np.intp)
    while len(nodes := nodes[trees.left[nodes] != LEAF]):
        left, is_ranked = trees.left[nodes], trees.feature[nodes] == j
        split = _find_first_right(trees.threshold[nodes])
        for child in (left, left + 1):
            lowest[child], end[child] = lowest[nodes], end[nodes]
        left, split = left[is_ranked], split[is_ranked]
        end[left] = np.minimum(end[left], split)
        lowest[left + 1] = np.maximum(lowest[left + 1], split)
        nodes = np.concatenate([trees.left[nodes], trees.left[nodes] + 1])
    return lowest, end


def _find_first_right(threshold: Float64) -> NDArray[np.intp]:
    """Return the lowest rank, 0 .. 255, that goes to the right child of each split, (k,).

    threshold: thresholds of the k splits, (k,); a rank up to the threshold goes left. 255, the rank
    of missing values, stands for a split that sends all ranks of categories left.
    """
    return np.floor(threshold).clip(-1, MISSING - 1).astype(np.intp) + 1


@dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """The ranks of n rows in their categorical features: categories are ranked by mean target.

    Attributes
    ----------
    categories : RankedCategories
        The ranks of the categories of q features.
    ranks : ndarray of uint8, shape (q, n)
        Rank of each row in these features; 255 where the value is missing.
    """

    categories: RankedCategories
    ranks: UInt8

    def replace_in_table(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return a copy of the encoded rows X, (n, p), with ranks in place of category codes.

        Only features with ranks change. A rank is the position of a category in the order of mean
        targets.
        """
        return replace_columns(X, [*self.categories.features], self.ranks)

    def replace_in_bins(self, bins: Bins) -> Bins:
        """Return binned rows in which features with ranks are numeric, with a bin for each rank.

        bins: bins of the same rows, in which these features are categorical.
        """
        return self.categories.replace_in_bins(bins, self.ranks)


@dataclass(frozen=True, slots=True, eq=False)
class RankableRows:
    """Training rows in memory with their categories in q features of more than 30 categories.

    Attributes
    ----------
    rows : HighCardinalityFeatures
        Category of each row in these features.
    target : CategoryTarget
        Targets of the rows, and weights of mean 1.
    keys : ndarray of uint64, shape (n,)
        Key of each row (hash of its values and its copy number among equal rows), by which rows are
        assigned to folds.
    """

    rows: HighCardinalityFeatures
    target: CategoryTarget
    keys: UInt64

    @classmethod
    def from_training(
        cls, training: Training, categorical: NDArray[np.bool_], n_classes: Any
    ) -> Self | None:
        """Collect what ranks the categories of features with more than 30: categories, targets, keys.

        Keys assign rows to folds, so that the target of a row does not rank its own categories.
        Rows of a group get the same key. training: the rows, in memory. categorical: which features
        hold category codes, (p,). n_classes: number of classes; 1 for numeric targets. Return None
        if no feature has more than 30 categories, the table is sparse, or there are several targets
        or more than five classes.
        """
        features, y, weight = training.features, training.y, training.weight
        if y.ndim > 1 or n_classes > MAX_TARGET_CLASSES:
            return None
        rows = find_rows_of_categories(features, categorical)
        if rows is None:
            return None
        hashes = hash_samples(*features.tables, y, order=training.draw_order)
        if training.split.groups is None:
            keys = compute_keys(hashes, weight)
        else:
            group = number_groups(training.split.groups)[1]
            keys = compute_group_keys(hashes, group, weight)[group]
        relative = None if weight is None else weight / training.weight_unit
        return cls(rows, make_target(y, n_classes, relative), keys)

    def rank(self, indices: Indices | None, n_ranks: int) -> RankedRows | None:
        """Rank the categories by the targets of some rows, and return the ranks of all n rows.

        Parameters
        ----------
        indices : ndarray of int, shape (k,), or None
            The rows whose targets rank the categories; None: all n rows.
        n_ranks : int
            Largest number of ranks of a feature; if it has more categories, those with similar mean
            targets share a rank.

        Returns
        -------
        RankedRows or None
            The ranks of all n rows. A row in `indices` has the rank that the rows of other folds
            give; all other rows have the rank that all rows in `indices` give. None if no feature
            has mean targets that differ by more than chance.
        """
        some = np.arange(len(self.keys)) if indices is None else indices
        rows, keys = self.rows.select_rows(some), self.keys[some]
        totals = rows.compute_totals(self.target.select_rows(some), keys)
        categories = dict(zip(rows.features, rows.categories, strict=True))
        ranked = RankedCategories.from_totals(categories, totals, n_ranks)
        if ranked is None:
            return None
        of_rows = self.rows.indices[[rows.features.index(j) for j in ranked.features]]
        ranks = ranked.rank_rows(of_rows, keys[:0])
        ranks[:, some] = ranked.rank_rows(of_rows[:, some], keys)
        return RankedRows(ranked, ranks)

    def rank_samples(
        self, samples: TrainingSamples, n_ranks: int, indices: Indices | None
    ) -> TrainingSamples:
        """Return training samples with ranks in place of the categories of some features.

        Features get ranks if they have more than 30 categories, whose mean targets differ by more
        than chance. samples: the n training rows, (n, p). n_ranks: largest number of ranks of a
        feature; if it has more categories, those with similar means share a rank. indices: rows
        whose targets rank the categories; None: all. A row among them gets the rank that rows of
        other folds give, any other row the rank that all of them give. Return `samples` itself if
        no feature gets ranks.
        """
        found, mask = self.rank(indices, n_ranks), samples.categorical
        if found is None or mask is None:
            return samples
        categories = found.categories
        columns = [*categories.features], found.ranks, found.replace_in_bins
        return replace(
            samples.replace_columns(*columns),
            categorical=categories.select_numeric(mask),
            replace_ranks=categories.replace_by_category_sets,
        )


def make_target(y: NDArray[Any], n_classes: int, weight: Float64 | None) -> CategoryTarget:
    """Return targets and weights by which categories are ranked, as a `CategoryTarget`.

    It has y as floats, the number of outputs (n_classes for more than two classes, else 1), and the
    weights. y: class codes or numbers, (n,). n_classes: number of classes, 1 for numbers. weight:
    weights of mean 1, (n,), or None.
    """
    return CategoryTarget(y.astype(np.float64), n_classes if n_classes > 2 else 1, weight)


def find_rows_of_categories(
    features: DenseOrSparseFeatures, categorical: NDArray[np.bool_] | None
) -> HighCardinalityFeatures | None:
    """Find the category of each row in the features of more than 30 categories.

    features: the rows, (n, p). categorical: which features hold category codes, (p,); None: none
    does. The result holds the indices of the features, the category codes that occur in each, and
    the index of each row's category among them; for a missing value it is their number. Return None
    if there is no such feature, or the table is sparse.
    """
    if categorical is None or not isinstance(features, DenseFeatures):
        return None
    codes = {j: _list_codes(features, j) for j in np.flatnonzero(categorical).tolist()}
    many = {j: each for j, each in codes.items() if len(each) > MAX_SET_CATEGORIES}
    return HighCardinalityFeatures.from_categories(features, many) if many else None


def _list_codes(features: DenseFeatures, j: int) -> Int32:
    """Return the distinct category codes of a feature that occur in the rows, ascending.

    features: table of the rows, with NaN for missing values; j: index of the feature.
    """
    column = features.columns[j]
    return np.unique(column[~np.isnan(column)]).astype(np.int32)
