"""How much each feature matters to a forest: by impurity, and by shuffled values."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse

from certree._core import draw_rows, sum_out_of_bag_targets
from certree.ensembles.forest_samples import ForestSamples
from certree.ensembles.leaves import LeafStatistics, Leaves
from certree.explain.output_groups import OutputGroups
from certree.grow.binned_grower import RowSampling
from certree.interface.arrays import Float64, Int32
from certree.rows.folds import Indices
from certree.rows.relative_weights import balance_bag_weights
from certree.tree import Trees

# Nodes at a time, so that what is computed of several targets stays in the cache.
_BLOCK = 8192


def add_impurity_importances(
    trees: Trees, sums: Float64, units: Float64, before: Float64
) -> Float64:
    """Shares of features in how far the cuts of each tree lower its impurity, added to those before.

    The impurity is the Gini index of classes, or the variance: the weight of a cell times what its
    variance falls by is w_l w_r / (w_l + w_r) times the squared distance of the means of its children,
    each in a unit of its own.
    """
    inner = np.flatnonzero(trees.left >= 0)
    fallen = np.empty(len(inner))
    for start in range(0, len(inner), _BLOCK):
        block = slice(start, start + _BLOCK)
        child = trees.left[inner[block]]
        weight = [sums[child + side, 0] for side in (0, 1)]
        means = [sums[child + side, 1:] / weight[side][:, None] for side in (0, 1)]
        apart = np.square((means[0] - means[1]) / units).sum(axis=1)
        fallen[block] = weight[0] * weight[1] / (weight[0] + weight[1]) * apart
    return add_normalized_gains(trees, inner, fallen, before)


def add_normalized_gains(trees: Trees, inner: Indices, fallen: Float64, before: Float64) -> Float64:
    """Shares of features in what the cuts of each tree, (any,), are worth, added to those before."""
    p, n_trees = len(before), len(trees)
    tree = np.searchsorted(trees.root, inner, side="right") - 1
    place = tree * p + trees.feature[inner]
    table = np.bincount(place, weights=fallen, minlength=n_trees * p).reshape(n_trees, p)
    total = table.sum(axis=1, keepdims=True)
    importances = before
    # One tree after the other, so that it does not matter which fit has grown it.
    for shares in table / np.where(total > 0, total, 1.0):
        importances = importances + shares
    return importances


@contextmanager
def shuffle_feature(X: Any, j: int, order: Indices) -> Iterator[Any]:
    """Rows (n, p) whose values of a feature have another order, for a while."""
    is_sparse: bool = issparse(X)
    if is_sparse:
        columns = X.tocsc(copy=True)
        own = slice(*columns.indptr[j : j + 2])
        columns.indices[own] = np.argsort(order)[columns.indices[own]]
        columns.has_sorted_indices = False
        yield columns.tocsr()
        return
    values = X[:, j].copy()
    X[:, j] = values[order]
    yield X
    X[:, j] = values


def compute_permutation_importances(
    known: LeafStatistics,
    X: Any,
    leaves: Leaves,
    drawing: RowSampling,
    *,
    classes: bool,
    seed: int,
    feature_order: Int32,
) -> Float64:
    """How much the loss of rows out of bags rises by shuffling each feature, (p,).

    Parameters
    ----------
    known : LeafStatistics
        The rows of the fit, where they have arrived.
    X : ndarray or sparse matrix of shape (n, p)
        The same by their features.
    leaves : Leaves
        What leaves say, filled by the rows that grew the trees.
    drawing : RowSampling
        How rows are drawn.
    classes : bool
        Whether the target is a class.
    seed : int
        Decides how values are shuffled.
    feature_order : ndarray of int32, shape (p,)
        By their places in it features are shuffled differently.
    """
    rank = np.argsort(feature_order)
    before = _loss(known, leaves, classes, known.walk.first)
    # What no tree compares changes nothing; where no row judges nothing is known of any feature.
    found = np.full(X.shape[1], before - before)
    for j in np.unique(known.trees.feature[~known.trees.is_leaf]):
        order = np.random.default_rng((seed, rank[j])).permutation(len(known.y))
        with shuffle_feature(X, j, order) as shuffled_rows:
            leaf = known.trees.find_out_of_bag_leaves(shuffled_rows, drawing, known.n_threads)
        found[j] = _loss(known, leaves, classes, leaf) - before
    return found


def sum_in_bag_targets(
    trees: Trees,
    rows: ForestSamples,
    X: Any,
    drawing: RowSampling,
    lanes: OutputGroups,
    balanced: bool,
) -> Float64:
    """What the rows that were drawn for trees sum up to in each node, (M, 1 + n_lanes).

    balanced: whether classes weigh the same in each bag.
    """
    root, y = np.zeros(1, dtype=np.int64), rows.targets
    sums = [np.zeros((0, 1 + lanes.n_outputs))]
    for number, tree in enumerate(trees):
        count, own = draw_rows(len(y), drawing, number), rows.weights()
        weight = count * (balance_bag_weights(count, own, y) if balanced else own)
        leaf = ~tree.find_leaves(X, 1)
        sums.append(sum_out_of_bag_targets(tree.left, root, leaf, y, weight, lanes.size_array, 1))
    return np.concatenate(sums)


def _loss(known: LeafStatistics, leaves: Leaves, classes: bool, leaf: Int32) -> float:
    """Mean loss of rows out of bags at given leaves."""
    total, n_trees = known.said(leaves, len(known.y), leaf)
    judges = np.flatnonzero(n_trees > 0)
    if not len(judges):
        return np.nan
    mean = total[judges] / n_trees[judges, None]
    losses = known.losses(mean, judges, classes, (leaves.power,))[0]
    weight = None if known.weight is None else known.weight[judges]
    return float(np.average(losses, weights=weight))
