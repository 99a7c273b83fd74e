"""Feature importances of forests: by impurity, and by shuffling features of out-of-bag rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse

from certree._core import draw_rows, sum_out_of_bag_targets
from certree.ensembles.forest_leaves import LeafStatistics, Leaves
from certree.ensembles.forest_samples import ForestSamples
from certree.explain.output_groups import OutputGroups
from certree.grow.binned_grower import RowSampling
from certree.interface.arrays import Float64, Int32
from certree.rows.folds import Indices
from certree.rows.relative_weights import balance_bag_weights
from certree.tree import Trees

# Nodes that are processed together, so that arrays of several outputs stay in the cache.
_BLOCK = 8192


def add_impurity_importances(
    trees: Trees, sums: Float64, units: Float64, previous: Float64
) -> Float64:
    """Add the impurity importances of some trees to those of previous trees.

    Each tree adds, for each feature, the fraction of the tree's total impurity decrease that its
    splits on the feature make. The impurity is the Gini index of classes, or the variance. A split
    into children of weights w_l and w_r decreases it, times the node's weight, by w_l w_r / (w_l +
    w_r) times the squared distance of the children's mean outputs.

    Parameters
    ----------
    trees : Trees
        T trees with M nodes.
    sums : ndarray of shape (M, 1 + n_outputs)
        Sums over the in-bag rows of each node: total weight, then the weighted sum of each output
        (indicator of a class, or number).
    units : ndarray of shape (n_outputs,) or (1,)
        Differences of mean outputs are divided by these units before they are squared.
    previous : ndarray of shape (p,)
        Sum of the importances of previous trees; zeros if there are none.

    Returns
    -------
    ndarray of shape (p,)
        `previous` plus the importances of the T trees, which sum up to 1 in each tree with a split
        that decreases the impurity, and are 0 in others.
    """
    inner = np.flatnonzero(trees.left >= 0)
    decrease = np.empty(len(inner))
    for start in range(0, len(inner), _BLOCK):
        block = slice(start, start + _BLOCK)
        child = trees.left[inner[block]]
        weight = [sums[child + k, 0] for k in (0, 1)]
        means = [sums[child + k, 1:] / weight[k][:, None] for k in (0, 1)]
        distance = np.square((means[0] - means[1]) / units).sum(axis=1)
        decrease[block] = weight[0] * weight[1] / (weight[0] + weight[1]) * distance
    return add_normalized_gains(trees, inner, decrease, previous)


def add_normalized_gains(trees: Trees, inner: Indices, gain: Float64, previous: Float64) -> Float64:
    """Add the feature importances of trees, from the gains of their splits, to previous ones.

    In each tree the gains are summed up by feature and divided by their total.

    Parameters
    ----------
    trees : Trees
        T trees.
    inner : ndarray of intp, shape (k,)
        Indices of nodes that are split, among all nodes of the trees.
    gain : ndarray of shape (k,)
        Gain of each of these splits, at least 0.
    previous : ndarray of shape (p,)
        Sum of the importances of previous trees.

    Returns
    -------
    ndarray of shape (p,)
        `previous` plus, for each tree, the fraction of its total gain that belongs to each feature;
        a tree of gain 0 adds 0.
    """
    p, n_trees = len(previous), len(trees)
    tree = np.searchsorted(trees.root, inner, side="right") - 1
    index = tree * p + trees.feature[inner]
    table = np.bincount(index, weights=gain, minlength=n_trees * p).reshape(n_trees, p)
    total = table.sum(axis=1, keepdims=True)
    importances = previous
    # Trees are added one by one, so that a warm start gives the same bits as a single fit.
    for fractions in table / np.where(total > 0, total, 1.0):
        importances = importances + fractions
    return importances


@contextmanager
def shuffle_feature(X: Any, j: int, order: Indices, parts: Indices) -> Iterator[Any]:
    """Permute the values of one feature while the body of the with statement runs.

    X: rows, (n, p), an ndarray or a CSR matrix; j: index of the feature; order: permutation of the
    rows, (n,): row i gets the value of row ``order[i]``. parts: indices of the columns that were
    computed from the feature if it is a date (such as the month), which move with it; sparse rows
    have none. It is a context manager, which gives the permuted rows, (n, p). An ndarray is changed
    in place and restored at the end, if the body raises no exception; of a sparse matrix the context
    gets a changed copy.
    """
    is_sparse: bool = issparse(X)
    if is_sparse:
        columns = X.tocsc(copy=True)
        entries = slice(*columns.indptr[j : j + 2])
        columns.indices[entries] = np.argsort(order)[columns.indices[entries]]
        columns.has_sorted_indices = False
        yield columns.tocsr()
        return
    together = [j, *parts.tolist()]
    values = X[:, together]  # a copy
    X[:, together] = values[order]
    yield X
    X[:, together] = values


def compute_permutation_importances(
    statistics: LeafStatistics,
    X: Any,
    leaves: Leaves,
    row_sampling: RowSampling,
    *,
    classes: bool,
    seed: int,
    feature_order: Int32,
    owners: Indices,
    keep_leaves: Callable[[Int32], Int32],
) -> Float64:
    """Compute by how much the mean out-of-bag loss rises if the values of a feature are shuffled.

    Parameters
    ----------
    statistics : LeafStatistics
        Sums of the in-bag rows' targets in the nodes of the forest, which fill the leaves; the
        leaves of its n training rows; and their targets and weights, by which losses are computed.
    X : ndarray or CSR matrix of shape (n, p)
        Features of the training rows, in the same order. An ndarray is changed while the function
        runs.
    leaves : Leaves
        How leaves are filled; `filled_by`, the rows that fill them, must be "in_bag". Its `power`
        is the exponent of the averaged class probabilities.
    row_sampling : RowSampling
        How the bags of the trees were drawn: number of draws, seed, with or without replacement.
    classes : bool
        True for log loss (nats), False for squared error.
    seed : int
        Seed of the permutations.
    feature_order : ndarray of int32, shape (p,)
        Indices of the features, sorted by their content. The position of a feature in this order is
        part of its seed, so that the order of the columns does not matter.
    owners : ndarray of intp, shape (p,)
        Index of the user's feature to which each column of X belongs: its own index, or, for
        columns computed from dates (such as the month), which come last, that of the date.
    keep_leaves : callable
        Takes the out-of-bag leaves of all rows, (T, n), 0 for rows in the bag. Returns a like array
        with 0 also for rows that the tree must not predict, as it was grown on later rows.

    Returns
    -------
    ndarray of float64, one entry for each of the user's features
        Rise of the mean loss; 0 for a feature that no tree uses; NaN if no row is out of any bag.
    """
    rank = np.argsort(feature_order)
    base_loss = _compute_loss(
        statistics, leaves, classes, statistics.out_of_bag_leaves.first_leaves
    )
    # The difference is 0, or NaN if there is no out-of-bag row.
    n_features = int(owners.max()) + 1
    rise = np.full(n_features, base_loss - base_loss)
    for j in np.unique(owners[statistics.trees.feature[~statistics.trees.is_leaf]]):
        parts = n_features + np.flatnonzero(owners[n_features:] == j)
        order = np.random.default_rng((seed, rank[j])).permutation(len(statistics.y))
        with shuffle_feature(X, j, order, parts) as shuffled:
            leaf = statistics.trees.find_out_of_bag_leaves(
                shuffled, row_sampling, statistics.n_threads
            )
        leaf = keep_leaves(leaf)
        rise[j] = _compute_loss(statistics, leaves, classes, leaf) - base_loss
    return rise


def sum_in_bag_targets(
    trees: Trees,
    rows: ForestSamples,
    X: Any,
    row_sampling: RowSampling,
    output_groups: OutputGroups,
    balanced: bool,
) -> Float64:
    """Sum the targets of the in-bag rows in each node of a forest.

    In-bag rows are those that a tree was grown on.

    Parameters
    ----------
    trees : Trees
        The trees, with M nodes.
    rows : ForestSamples
        Targets and weights of the n training rows.
    X : ndarray or CSR matrix of shape (n, p)
        Features of the same rows.
    row_sampling : RowSampling
        How the bags of the trees were drawn: number of draws, seed, with or without replacement.
    output_groups : OutputGroups
        How many outputs belong to each target: 1 for a number or two classes, else one for each
        class.
    balanced : bool
        Whether all classes have the same total weight in each bag.

    Returns
    -------
    ndarray of shape (M, 1 + n_outputs)
        Sums over the in-bag rows of each node: total weight, then the weighted sum of each output
        (indicator of a class, or number). A row that was drawn k times counts k times.
    """
    root, y = np.zeros(1, dtype=np.int64), rows.targets
    sums = [np.zeros((0, 1 + output_groups.n_outputs))]
    for number, tree in enumerate(trees):
        count, row_weight = draw_rows(len(y), row_sampling, number), rows.get_weights()
        weight = count * (balance_bag_weights(count, row_weight, y) if balanced else row_weight)
        leaf = ~tree.find_leaves(X, 1)
        sizes = output_groups.size_array
        sums.append(sum_out_of_bag_targets(tree.left, root, leaf, y, weight, sizes, 1))
    return np.concatenate(sums)


def _compute_loss(statistics: LeafStatistics, leaves: Leaves, classes: bool, leaf: Int32) -> float:
    """Compute the weighted mean of the out-of-bag losses of the training rows.

    Each row is predicted by the mean leaf value of the trees of whose bags it is out; rows in every
    bag are left out. The result is NaN if no row is left. statistics: sums of weights and targets
    over the rows of each node, from which leaf values follow, and the targets `y` and weights of
    the n rows, with which losses are computed and averaged; leaves: which rows' targets determine
    leaf values, how much leaves are shrunk towards their parents, and the exponent of the averaged
    class probabilities; classes: True for log loss (nats), False for squared error; leaf: the
    leaves that the n rows reach in the T trees, (T, n): ``~v`` = -1 - v for a row that is out of
    the bag of the tree, with the index v of its leaf among all M nodes; 0 for rows in the bag.
    """
    total, n_trees = statistics.sum_predictions(leaves, len(statistics.y), leaf)
    rows = np.flatnonzero(n_trees > 0)
    if not len(rows):
        return np.nan
    mean = total[rows] / n_trees[rows, None]
    losses = statistics.compute_losses(mean, rows, classes, (leaves.power,))[0]
    weight = None if statistics.weight is None else statistics.weight[rows]
    return float(np.average(losses, weights=weight))
