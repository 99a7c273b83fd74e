"""The training rows of a forest, sorted by hashes of their content.

Rows are drawn by their position in this order, so a forest does not depend on the order of the
input rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.grow.binned_grower import RowSampling
from certree.grow.bins import MISSING, Bins
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.rows.folds import Indices, number_groups
from certree.rows.hashes import compute_keys, hash_samples, order_targets
from certree.rows.queries import compute_group_keys
from certree.rows.relative_weights import compute_integer_weights
from certree.rows.sparse_rows import DenseOrSparseFeatures
from certree.rows.training import Training, compute_mean_weight
from certree.stats.category_statistics import MAX_TARGET_CLASSES, HighCardinalityFeatures
from certree.stats.ranked_categories import (
    RankableRows,
    RankedRows,
    find_rows_of_categories,
    make_target,
)
from certree.tree import Trees

# Blocks of time whose rows a tree draws together, and the latest ones, which out-of-bag estimates are
# about. More blocks would let trees know more of the rows next to the predicted ones.
N_TIME_BLOCKS = 10
N_SCORED_BLOCKS = 2


# Returns which rows count as out of the bag of a tree, (n,), of those that are, (n,).
SelectRows = Callable[[NDArray[np.bool_]], NDArray[np.bool_]]


class OutOfBagLeaves(Protocol):
    """For each row and each tree of a forest: the leaf that the row reaches if it is out of bag.

    All arrays of leaves are int32 of shape (T, number of rows) and hold ``~v`` = -1 - v where the
    row is out of the bag of the tree, with the index v of its leaf among the nodes of all T trees,
    and 0 where it is in the bag. The bag of a tree is the sample of rows that it was grown on. In
    time order an out-of-bag row also has 0 if the tree must not predict it; see
    `ForestSamples.select_predicted_rows`. Rows are in the order of `ForestSamples`. It is a protocol.
    """

    @property
    def trees(self) -> Trees:
        """The T trees in which the object finds the leaves of out-of-bag rows."""
        ...

    @property
    def first_leaves(self) -> Int32:
        """Out-of-bag leaves of the first k rows, (T, k), with k >= min(n, 8192).

        An entry is ``~v`` = -1 - v for an out-of-bag row, with the index v of its leaf among the
        nodes of all T trees, and 0 for an in-bag row. The losses of the first 8192 rows
        (`N_COMPARED_ROWS`) decide how leaves are filled: from in-bag or all rows, and how much they
        are shrunk.
        """
        ...

    def find_leaves(self, begin: int, end: int) -> Int32:
        """Return out-of-bag leaves of rows begin .. end - 1, (T, end - begin).

        An entry is ``~v`` = -1 - v for an out-of-bag row, with the index v of its leaf among the
        nodes of all T trees, and 0 for an in-bag row.
        """
        ...

    def iterate_blocks(self) -> Iterator[tuple[Int32, Int64, Int32]]:
        """Yield the out-of-bag leaves of all n rows in blocks of t consecutive trees.

        Each block is a tuple: index of the left child of each of the block's m nodes, (m,), where
        the right child follows it, and negative at leaves; index of the root of each tree, (t,);
        out-of-bag leaves, (t, n): ``~v`` = -1 - v for a row with leaf v that is out of the bag, 0
        in the bag. All three number the nodes of the block from 0.
        """
        ...


class ForestFeatures(Protocol):
    """Protocol of the feature table of a forest's training rows, in memory or in files.

    It gives the number of features, the bin codes that trees grow on, and the leaves that
    out-of-bag rows reach. Rows are in the order of `ForestSamples`: sorted by their content.
    """

    @property
    def n_features(self) -> int:
        """Number of features of the training rows, p."""
        ...

    def bins(self, categorical: ArrayLike | None, n_jobs: int) -> Bins:
        """Return bin edges and bin codes of all rows, from which trees grow.

        categorical: mask (p,), or indices, of the categorical features; None: all are numeric.
        n_jobs: number of threads.
        """
        ...

    def replace_ranks(self, trees: Trees) -> Trees:
        """Convert trees that were grown on `bins` to trees that take encoded rows.

        In features with very many categories, trees grow on ranks: categories ordered by their mean
        targets. Their splits are replaced by splits on sets of categories; see
        `certree.stats.ranked_categories`.
        """
        ...

    def find_out_of_bag_leaves(
        self,
        trees: Trees,
        row_sampling: RowSampling,
        n_threads: int,
        select: SelectRows | None = None,
    ) -> OutOfBagLeaves:
        """Find the leaf of each row in each tree of whose bag it is out.

        trees: the T trees; row_sampling: how their bags were drawn (number of draws, seed, with or
        without replacement); n_threads: number of threads; select: function that takes the mask
        (n,) of the rows that are out of the bag of one tree, and returns the mask of those that the
        tree may predict; None: all. Return the leaves that these rows reach.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class InMemoryOutOfBagLeaves:
    """`OutOfBagLeaves` that are held in memory for all trees and rows.

    Parameters
    ----------
    trees : Trees
        The T trees.
    first_leaves : ndarray of int32, shape (T, n)
        The leaves of all n rows: ``~v`` = -1 - v for a row that is out of the bag of the tree, with
        the index v of its leaf among the nodes of all T trees; 0 for rows in the bag, and for rows
        that the tree must not predict.
    """

    trees: Trees
    first_leaves: Int32

    def find_leaves(self, begin: int, end: int) -> Int32:
        """Return out-of-bag leaves of rows begin .. end - 1, (T, end - begin).

        An entry is ``~v`` = -1 - v for a row that is out of the bag of the tree, with the index v
        of its leaf among the nodes of all T trees; 0 for rows in the bag.
        """
        return np.ascontiguousarray(self.first_leaves[:, begin:end])

    def iterate_blocks(self) -> Iterator[tuple[Int32, Int64, Int32]]:
        """Yield a single block, which has all T trees.

        The block is a tuple: index of the left child of each of the M nodes, (M,), where the right
        child follows it, and negative at leaves; index of the root of each tree, (T,); out-of-bag
        leaves, (T, n): ``~v`` = -1 - v for a row with leaf v that is out of the bag, 0 in the bag.
        """
        yield self.trees.left, self.trees.root, self.first_leaves


@dataclass(frozen=True, slots=True, eq=False)
class SortedFeatures:
    """`ForestFeatures` of a table in memory, which is kept in input order and sorted on demand.

    Parameters
    ----------
    features : DenseFeatures or SparseFeatures
        The features of the n rows, in input order.
    order : ndarray of intp, shape (n,)
        Row ``order[i]`` of `features` is row i of the forest's training rows.
    feature_order : ndarray of int32, shape (p,)
        Indices of the features in the order in which they are drawn and compared. The order depends
        on their content alone, not on that of the columns.
    ranked : RankedRows or None
        Ranks by mean target that replace category codes in the features with more than 30
        categories, for each row in the forest's order; None: no feature has so many.
    """

    features: DenseOrSparseFeatures
    order: Indices
    feature_order: Int32
    ranked: RankedRows | None = None

    @property
    def n_features(self) -> int:
        """Number of features of the training rows, p."""
        return self.features.n_features

    @property
    def X(self) -> Any:  # noqa: N802
        """A sorted copy of the features, (n, p): a CSR matrix if they are sparse, else an ndarray.

        In features with more than 30 categories, ranks of the categories by mean target (the field
        `ranked`) replace the codes. Each access makes a new copy.
        """
        X = self.features.take_matrix(self.order)
        return X if self.ranked is None else self.ranked.replace_in_table(X)

    def bins(self, categorical: ArrayLike | None, n_jobs: int) -> Bins:
        """Compute bin edges from all rows, and return them with the bin codes of the sorted rows.

        categorical: mask (p,), or indices, of the categorical features; None: all are numeric.
        n_jobs: number of threads.
        """
        order = self.feature_order
        bins = Bins.from_table(
            self.features, categorical, fine_ends=True, n_jobs=n_jobs, feature_order=order
        )
        bins = bins.select_rows(self.order)
        return bins if self.ranked is None else self.ranked.replace_in_bins(bins)

    def replace_ranks(self, trees: Trees) -> Trees:
        """Convert trees that were grown on `bins` to trees that take encoded rows (category codes).

        Splits on ranks of categories (by mean target) become splits on sets of categories.
        """
        ranked = self.ranked
        return trees if ranked is None else ranked.categories.replace_by_category_sets(trees)

    def find_out_of_bag_leaves(
        self,
        trees: Trees,
        row_sampling: RowSampling,
        n_threads: int,
        select: SelectRows | None = None,
    ) -> InMemoryOutOfBagLeaves:
        """Find the leaf of each row in each tree of whose bag (sample of rows) it is out.

        trees: the T trees; row_sampling: how their bags were drawn (number of draws, seed, with or
        without replacement); n_threads: number of threads; select: function that takes the mask
        (n,) of the rows that are out of the bag of one tree, and returns the mask of those that the
        tree may predict; None: all. Return the leaves that these rows reach, all in memory.
        """
        leaves = trees.find_out_of_bag_leaves(self.X, row_sampling, n_threads)
        kept = leaves if select is None else keep_selected_rows(leaves, select)
        return InMemoryOutOfBagLeaves(trees, kept)


@dataclass(frozen=True, slots=True, eq=False)
class InputRows:
    """Targets and weights of the k training rows of positive weight, in input order.

    Out-of-bag scores are computed on them, as those are reported in input order.

    Parameters
    ----------
    n : int
        Number of rows that were passed to `fit`, rows of weight zero among them.
    indices : ndarray of intp, shape (k,)
        Position of each row among the n rows.
    y : ndarray of shape (k,), or (k, q)
        Class codes (int32), or numbers (float64); a column for each of several targets.
    weight : ndarray of float64, shape (k,), or None
        Row weights; None: 1 each.
    """

    n: int
    indices: Indices
    y: NDArray[Any]
    weight: Float64 | None

    @classmethod
    def from_training(cls, training: Training) -> InputRows:
        """Collect targets and weights of the training rows of a fit in memory.

        training: the encoded rows of the fit; rows of weight zero are left out already.
        """
        sides, n = training.split, len(training.y)
        indices = np.arange(n) if sides.indices is None else sides.indices
        n_input = n if sides.n_given is None else sides.n_given
        return cls(n_input, indices, training.y, training.weight)


def keep_selected_rows(leaves: Int32, select: SelectRows) -> Int32:
    """Return out-of-bag leaves, (T, n), with 0 for rows that `select` leaves out of those of a tree.

    leaves: ``~v`` = -1 - v for a row that is out of the bag of the tree, with the index v of its
    leaf among the nodes of all T trees, and 0 for rows in the bag, (T, n); select: function that
    takes the mask (n,) of the rows that are out of the bag of one tree, and returns the mask of
    those to keep.
    """
    return np.array([np.where(select(of_tree != 0), of_tree, 0) for of_tree in leaves], np.int32)


def sort_by_keys(keys: UInt64, weight: Float64 | None) -> tuple[Indices, int]:
    """Sort rows by their content keys, and hash all rows together.

    keys: content key of each row, (n,); weight: row weights, (n,), or None. Return the indices that
    sort the rows by ascending key, (n,), and a 56-bit hash of the sorted keys and weights. The hash
    does not depend on the order of the rows.
    """
    order = np.argsort(keys, kind="stable")
    digest = compute_digest(keys[order])
    return order, digest if weight is None else digest ^ compute_digest(weight[order])


def sort_by_content(
    hashes: UInt64,
    weight: Float64 | None,
    group: NDArray[Any] | None,
    first_excluded: Int32 | None = None,
) -> tuple[Indices, int, Int32 | None]:
    """Sort rows by keys of their content, so that their input order does not matter.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
        Hash of each row, target included. The array is overwritten.
    weight : ndarray of float64, shape (n,), or None
        Integer row weights; None: 1.
    group : ndarray of int, shape (n,), or None
        Number of each row's group, 0 .. n_groups - 1, in the order of their names; None: rows have
        no groups.
    first_excluded : ndarray of int32, shape (n_groups,), or None
        If groups are blocks of consecutive times: for each block the earliest block that a tree must
        not have drawn if it is to predict rows of this block as if they were new. The blocks keep
        their numbers. None: groups are no blocks of time.

    Returns
    -------
    order : ndarray of intp, shape (n,)
        Indices that sort the rows.
    content : int
        56-bit hash of the sorted rows, weights, groups and `first_excluded`.
    group : ndarray of int32, shape (n,), or None
        Group of each sorted row; groups are numbered by their content, or by time. None: there are
        no groups.
    """
    if group is None:
        order, content = sort_by_keys(compute_keys(hashes, weight), weight)
        return order, content, None
    number = group
    if first_excluded is None:
        keys = compute_group_keys(hashes, group, weight)
        number = keys.argsort(kind="stable").argsort().astype(np.int32)[group]
    # Equal rows are ordered by their groups.
    by_group = np.argsort(number, kind="stable")
    group_weight = None if weight is None else weight[by_group]
    hashes[by_group] = compute_keys(hashes[by_group], group_weight)
    order, content = sort_by_keys(hashes, weight)
    group = number[order]
    content ^= compute_digest(group)
    if first_excluded is not None:  # with another gap other trees predict rows out of their bags
        content ^= compute_digest(first_excluded)
    return order, content, group


def compute_digest(values: NDArray[Any]) -> int:
    """Hash the bytes of an array of values to an integer of 56 bits (BLAKE2b)."""
    return int.from_bytes(blake2b(values.tobytes(), digest_size=7).digest(), "little")


@dataclass(frozen=True, slots=True, eq=False)
class ForestSamples:
    """The training rows of a forest: n rows of positive weight, sorted by ascending content key.

    A content key is a hash of a row's features and target, and of its number among equal rows.

    Parameters
    ----------
    features : ForestFeatures
        Features of the rows.
    y : ndarray of shape (n,), or (n, q)
        Class codes (int32), or numbers (float64); a column for each of q > 1 targets.
    weight : ndarray of float64, shape (n,), or None
        Integer row weights; None: 1 each.
    input_index : ndarray of intp, shape (n,)
        Position of each row among the rows that were passed to `fit`.
    content : int
        56-bit hash of rows, weights, groups and `first_excluded`. Two fits with equal hashes had
        the same rows, blocks of time and gap.
    columns : ndarray of intp, shape (q,)
        Column ``columns[k]`` of the target that was passed to `fit` is column k of `y`. Targets are
        sorted by a hash of their content, so sums over them do not depend on the order of the
        columns.
    feature_order : ndarray of int32, shape (p,)
        Indices of the features in the order in which they are drawn and compared. The order depends
        on their content alone, not on that of the columns.
    group : ndarray of int32, shape (n,), or None
        Number of each row's group, 0 .. n_groups - 1. All rows of a group are drawn together. None:
        rows are drawn one by one.
    first_excluded : ndarray of int32, shape (n_groups,), or None
        If groups are blocks of time: for each of them the earliest block that a tree must not have
        drawn, if it is to predict rows of this block as if they were new; see
        `RowTimes.number_blocks`. None: rows have no times.
    """

    features: ForestFeatures
    y: NDArray[Any]
    weight: Float64 | None
    input_index: Indices
    content: int
    columns: Indices
    feature_order: Int32
    group: Int32 | None = None
    first_excluded: Int32 | None = None

    @classmethod
    def from_training(cls, training: Training) -> ForestSamples:
        """Sort the encoded rows of a fit in memory by content, and round their weights to integers.

        training: the rows, in input order. Weights become integers of at most 2^16: multiples of a
        common unit, else they are rounded to multiples of 2^-16 of the largest.
        """
        features, y, weight = training.features, training.y, training.weight
        feature_order = training.draw_order
        indices = training.split.indices
        input_index = np.arange(len(y)) if indices is None else indices
        rounded = None if weight is None else compute_integer_weights(weight)
        columns = np.zeros(1, dtype=np.intp)
        if y.ndim == 2:
            columns = order_targets(y, *features.tables, order=feature_order)
            y = y[:, columns]
        groups, times = training.split.groups, training.split.times
        input_group: NDArray[Any] | None = None
        first_excluded = None
        if groups is not None:
            input_group = number_groups(groups)[1]
        if times is not None:
            input_group, first_excluded = times.number_blocks(N_TIME_BLOCKS, groups)
        hashes = hash_samples(*features.tables, y, order=feature_order)
        order, content, group = sort_by_content(hashes, rounded, input_group, first_excluded)
        return cls(
            SortedFeatures(features, order, feature_order),
            y[order],
            None if rounded is None else rounded[order],
            input_index[order],
            content,
            columns,
            feature_order,
            group,
            first_excluded,
        )

    def rank_categories(
        self, categorical: NDArray[np.bool_] | None, n_classes: int
    ) -> ForestSamples:
        """Return a copy in which ranks replace the categories of features that have more than 30.

        A rank is the position of a category in the order of mean targets. The rank for a row is
        computed without the targets of its fold; see `RankedCategories`. Sums are exact, so that
        trees do not depend on the input order of rows.

        categorical: which features hold category codes, (p,), or None; n_classes: number of
        classes; 1 for numbers. Rows in files have been ranked already. Return this object if no
        feature gets ranks.
        """
        features = self.features
        if not isinstance(features, SortedFeatures) or self.y.ndim > 1:
            return self
        rows = find_rows_of_categories(features.features, categorical)
        if rows is None:
            return self
        ranked = self.rank_rows(rows.select_rows(features.order), n_classes)
        return self if ranked is None else replace(self, features=replace(features, ranked=ranked))

    def rank_rows(self, rows: HighCardinalityFeatures, n_classes: int) -> RankedRows | None:
        """Order the categories of features with more than 30 categories by the targets of these rows.

        rows: the category of each row in these features; n_classes: number of classes, 1 for
        numbers. The rank for a row is computed without the targets of its fold; rows of a group are
        in one fold. Return the rank of each row's category, or None if no feature gets ranks.
        """
        if n_classes > MAX_TARGET_CLASSES:
            return None
        weight = None if self.weight is None else self.weight / compute_mean_weight(self.weight)
        keys = np.arange(len(self.y)) if self.group is None else self.group
        target = make_target(self.y, n_classes, weight)
        return RankableRows(rows, target, keys.astype(np.uint64)).rank(None, MISSING)

    def find_out_of_bag_leaves(
        self, trees: Trees, row_sampling: RowSampling, n_threads: int
    ) -> OutOfBagLeaves:
        """Find the leaf of each row in each tree of whose bag (sample of rows) it is out.

        If rows have times, only trees whose bags hold earlier rows count; see
        `select_predicted_rows`.

        trees: the T trees; row_sampling: how their bags were drawn (number of draws, seed, with or
        without replacement); n_threads: number of threads. The result gives arrays of leaves,
        (T, number of rows), by its methods: ``~v`` = -1 - v for an out-of-bag row, with the
        index v of its leaf among the nodes of all T trees, and 0 for others.
        """
        select = None if self.first_excluded is None else self.select_predicted_rows
        return self.features.find_out_of_bag_leaves(trees, row_sampling, n_threads, select)

    def select_predicted_rows(self, is_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the mask of the rows that a tree predicts as if they were new, later rows, (n,).

        The rows of the forest are divided into consecutive blocks of time, and the bag of a tree
        consists of whole blocks. A row is predicted if its block is one of the latest two, and all
        blocks of the bag are earlier than it and than the gap before it (the rows, or time, to
        leave out, which the user passed to `fit`). All other rows are False. Only forests that were
        fitted with times have this method. is_out: mask of the rows out of the bag, (n,).
        """
        assert self.group is not None
        assert self.first_excluded is not None
        block = np.arange(len(self.first_excluded))
        is_scored = block >= len(block) - N_SCORED_BLOCKS
        latest = self.group[~is_out].max(initial=-1)
        is_predicted = (latest < self.first_excluded) & is_scored
        return is_out & is_predicted[self.group]

    def keep_earlier_bags(self, leaves: Int32) -> Int32:
        """Drop the out-of-bag leaves of all n rows in trees that were grown on later rows.

        If rows have times, an entry becomes 0, as if the row were in the bag, unless the row is of
        one of the latest two blocks of time, and the tree's bag holds only blocks before it and the
        gap.

        leaves: ``~v`` = -1 - v for a row that is out of the bag of the tree, with the index v of
        its leaf among the nodes of all T trees, and 0 for rows in the bag, (T, n). They are
        returned unchanged if rows have no times.
        """
        if self.first_excluded is None:
            return leaves
        return keep_selected_rows(leaves, self.select_predicted_rows)

    @property
    def n_features(self) -> int:
        """Number of features of the training rows, p."""
        return self.features.n_features

    @property
    def targets(self) -> Float64:
        """The targets as a contiguous float64 array, (n, q); class codes as floats."""
        return np.ascontiguousarray(self.y.reshape(len(self.y), -1), dtype=np.float64)

    @property
    def deviations(self) -> Float64:
        """Weighted standard deviation of each numeric target, (q,); 1 for a constant target.

        Targets are the columns of `y`, and weights those of `weight`.
        """
        y, weight = self.targets, self.get_weights()
        variance = np.average((y - np.average(y, 0, weight)) ** 2, 0, weight)
        deviations: Float64 = np.where(np.ptp(y, axis=0) > 0, np.sqrt(variance), 1.0)
        return deviations

    def get_weights(self) -> Float64:
        """Return the integer weight of each row, (n,); ones if `weight` is None."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    def average_by_input_row(self, total: Float64, n_trees: NDArray[Any], n: int) -> Float64:
        """Divide summed predictions by the number of trees, and put the rows back in input order.

        total: predictions of each row, summed over the trees of which it is out of bag, (len(y),
        n_outputs); n_trees: how many trees those are, (len(y),); n: number of rows that were passed
        to `fit`. Return means, (n, n_outputs), whose columns are in the order of those of `total`.
        A row has NaN if it is in every bag or has weight zero.
        """
        mean = np.full((n, total.shape[1]), np.nan)
        is_out = n_trees > 0
        mean[self.input_index[is_out]] = total[is_out] / n_trees[is_out, None]
        return mean
