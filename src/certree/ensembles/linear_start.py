"""Start of boosting on few rows of numbers: halfway to a ridge regression, as one tree per feature."""

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from certree.ensembles.rounds import BoostingRun
from certree.grow.bins import MISSING
from certree.interface.arrays import Float64, Int32, divide_by_largest
from certree.rows.hashes import hash_samples
from certree.tree import Tree, Trees

# Ridge penalties that cross-validation compares, for columns of variance 1.
_PENALTIES = np.logspace(-3, 6, 28)
# Fraction of the regression from which boosting starts. One fit from halfway is nearly as good as the
# mean of one fit from the mean and one from the whole regression.
_FRACTION = 0.5
# Columns with a smaller standard deviation, relative to their range, differ only in rows of nearly no
# weight, and are left out.
_MIN_DEVIATION = 1e-6
# Relative difference of cross-validation losses that counts as rounding.
_ROUNDING = 1e-6


def grow_linear_start(run: BoostingRun, n_steps: int | None) -> tuple[Trees, Float64]:
    """Grow a tree for each feature, which approximates half of its term in a ridge regression.

    A leaf has half of the weighted mean term of its rows, so that nothing is extrapolated. Trees
    respect the limits of the grower, monotonic constraints included, except for the number of
    leaves. With several targets a tree is grown for the target to which its feature contributes
    most, relative to the target's standard deviation, and its leaves have values for all targets.

    Parameters
    ----------
    run : BoostingRun
        A boosting run on numeric targets before its first round: its bins, targets and weights are
        used.
    n_steps : int or None
        Largest number of leaves of a tree; None: no limit.

    Returns
    -------
    trees : Trees
        The trees that have more than one leaf, with values (n_nodes, n_outputs).
    rows : ndarray of shape (n_nodes,)
        Number of training rows in each of their nodes.
    """
    grower = replace(run.grower, max_leaves=n_steps)
    weight = np.ones(len(run.keys)) if run.weight is None else run.weight
    order = _order_rows(run)
    trees, rows = [], [np.zeros(0)]
    for j, terms in zip(_list_features(run), compute_ridge_terms(run).swapaxes(0, 1), strict=True):
        gradients = -_FRACTION * weight * terms
        strongest = _find_strongest_output(terms[:, order], run.y[..., order])
        tree, leaf, sums = grower.grow_gradients(gradients[strongest], weight, features=[j])
        _, hessian, n = sums.T
        if len(n) > 1:
            total = sums[:, :1]
            if len(terms) > 1:
                total = _sum_by_node(tree, leaf[order], gradients[:, order])
            # Nodes of rows with nearly no weight have a sum of 0.
            is_positive = (hessian > 0)[:, None]
            values = np.divide(
                -total, hessian[:, None], out=np.zeros(total.shape), where=is_positive
            )
            trees.append(tree.with_value(values))
            rows.append(n)
    return Trees.joined(trees, run.bins.n_features, len(run.scores)), np.concatenate(rows)


def compute_ridge_terms(run: BoostingRun) -> Float64:
    """Compute the term of each feature in a ridge regression of each target, (n_outputs, p, n).

    The prediction of a row is the mean of the target plus the sum of its terms. Features are in the
    order in which the grower examines them, rows in that of the run. A numeric feature has a column
    with the middles of bins, with the mean for missing values, and an indicator of missing values;
    a categorical feature has an indicator of each category. Columns have mean 0 and variance 1.

    run: a boosting run on numeric targets before its first round: its bins, targets and weights are
    used. `fit_ridge` chooses the penalty. A constant target has terms 0.
    """
    order = _order_rows(run)
    weight = np.ones(len(order)) if run.weight is None else run.weight[order]
    columns = [_make_columns(run, j, order, weight) for j in _list_features(run)]
    design = np.concatenate(columns, axis=1)
    targets = np.atleast_2d(run.y)
    terms = np.zeros((len(targets), len(columns), len(order)))
    ends = np.cumsum([array.shape[1] for array in columns])[:-1]
    for output_terms, y in zip(terms, targets, strict=True):
        if not design.size or y.min() == y.max():
            continue
        with _get_thread_limits().limit(limits=1, user_api="blas"):
            coefficients = np.split(fit_ridge(design, y[order], weight), ends)
        for term, array, coefficient in zip(output_terms, columns, coefficients, strict=True):
            term[order] = (array * coefficient).sum(axis=1)
    return terms


def _order_rows(run: BoostingRun) -> NDArray[np.intp]:
    """Return an order of a run's training rows, (n,), that does not depend on how they are sorted.

    Sums in this order have the same rounding errors. Rows are sorted by their random keys; rows of
    a group share a key and are sorted by their content. run: a boosting run before its first round,
    with these keys, the bins, targets and weights.
    """
    n, keys = len(run.keys), run.keys
    if len(np.unique(keys)) == n:
        return np.argsort(keys)
    codes = np.stack([run.bins.column(j)[:n] for j in _list_features(run)], axis=1)
    weight = np.zeros(n) if run.weight is None else run.weight[:n]
    return np.lexsort((weight, *np.atleast_2d(run.y)[:, :n], hash_samples(codes), keys))


def _list_features(run: BoostingRun) -> list[int]:
    """Return the feature indices, (p,), in the order in which a boosting run examines them.

    It is `feature_order` of ``run.grower``, or the order of the columns if that is None.
    """
    order = run.grower.checked_feature_order
    return [*range(run.bins.n_features)] if order is None else order.tolist()


def fit_ridge(design: Float64, y: Float64, weight: Float64) -> Float64:
    """Fit a ridge regression and return its coefficients, (q,).

    The penalty is chosen by generalised cross-validation (Golub, Heath and Wahba, "Generalized
    cross-validation as a method for choosing a good ridge parameter", 1979).

    Parameters
    ----------
    design : ndarray of shape (n, q)
        Columns with weighted mean 0.
    y : ndarray of shape (n,)
        Target; its weighted mean is subtracted.
    weight : ndarray of shape (n,)
        Weights of the rows, with mean 1.
    """
    root = np.sqrt(weight)
    target, scaled = root * (y - _average(y, weight)), design * root[:, None]
    # The smaller of both Gram matrices (of columns or rows) has the same eigenvalues, and takes a
    # fraction of the time of a singular value decomposition. Penalties are far larger than the
    # rounding errors of eigenvalues.
    is_wide = scaled.shape[1] > scaled.shape[0]
    if is_wide:
        square, vectors = np.linalg.eigh(scaled @ scaled.T)
        projection = vectors.T @ target
    else:
        square, vectors = np.linalg.eigh(scaled.T @ scaled)
        is_zero = square <= square[-1] * len(square) * np.finfo(np.float64).eps
        root_square = np.sqrt(np.where(is_zero, 1.0, square))
        projection = np.where(is_zero, 0.0, vectors.T @ (scaled.T @ target) / root_square)
    square = square.clip(min=0)
    # Otherwise trees would grow on rounding errors of a target that has no linear part.
    least = len(y) * np.finfo(np.float64).eps * np.linalg.norm(target)
    projection[np.abs(projection) <= least] = 0.0
    kept = square / (square + _PENALTIES[:, None])
    residual = max(0.0, float(target @ target - projection @ projection))
    loss = residual + np.square((1 - kept) * projection).sum(axis=1)
    loss /= np.square(len(y) - 1 - kept.sum(axis=1))
    # With few rows all penalties may be equally good: take the largest, not one that rounding picks.
    best = np.flatnonzero(loss <= loss.min() * (1 + _ROUNDING))[-1]
    if is_wide:
        return scaled.T @ (vectors @ (projection / (square + _PENALTIES[best])))
    return vectors @ (projection * root_square / (square + _PENALTIES[best]))


def _find_strongest_output(terms: Float64, y: Float64) -> int:
    """Return the index of the target to which a feature contributes most.

    terms: terms of the feature in each target, (n_outputs, n); y: the targets, (n_outputs, n). The
    contribution is the standard deviation of the terms divided by that of the target. A constant
    target counts with standard deviation 1.
    """
    if len(terms) == 1:
        return 0
    deviation = y.std(axis=1)
    ratios = terms.std(axis=1) / np.where(deviation > 0, deviation, 1.0)
    return int(np.argmax(ratios))


def _sum_by_node(tree: Tree, leaf: Int32, values: Float64) -> Float64:
    """Sum up values over the rows in each node of a tree, (n_nodes, n_outputs).

    leaf: index of the leaf of each row among the nodes of the tree, (n,); values: (n_outputs, n).
    """
    totals = [np.bincount(leaf, row, tree.n_nodes) for row in values]
    sums: Float64 = np.stack(totals, axis=1)
    for v in np.flatnonzero(~tree.is_leaf)[::-1]:
        sums[v] = sums[tree.left[v]] + sums[tree.left[v] + 1]
    return sums


def _make_columns(run: BoostingRun, j: int, order: NDArray[np.intp], weight: Float64) -> Float64:
    """Make the columns of feature j for the regression, (n, q), with mean 0 and variance 1.

    run: a run before its first round; order: order of the rows, (n,); weight: weights in this
    order, (n,). A numeric feature has a column with the middles of bins and an indicator of missing
    values, a categorical feature an indicator of each category. Constant columns are left out, so q
    may be 0.
    """
    bins, codes = run.bins, run.bins.column(j)[order]
    if bins.is_categorical[j]:
        columns = (codes[:, None] == np.unique(codes)).astype(np.float64)
    else:
        has_value = codes != MISSING
        columns = np.column_stack([np.zeros(len(codes)), has_value])
        if len(np.unique(codes[has_value])) > 1:
            low, high = bins.bin_ranges(j)
            middle = _clip_infinite(low / 2 + high / 2, np.unique(codes[has_value]))
            if middle.any():  # All middles are 0 if the only finite value is 0.
                value = divide_by_largest(middle)[codes[has_value]]
                columns[has_value, 0] = value - _average(value, weight[has_value])
    columns = columns[:, columns.max(axis=0) > columns.min(axis=0)]
    columns -= _average(columns, weight)
    columns /= np.abs(columns).max(axis=0)
    deviation = np.sqrt(_average(columns**2, weight))
    is_kept = deviation > _MIN_DEVIATION
    return (columns / np.maximum(deviation, _MIN_DEVIATION))[:, is_kept]


def _clip_infinite(middle: Float64, codes: NDArray[np.uint8]) -> Float64:
    """Clip infinite middles of bins to the range of the finite ones.

    middle: the middles of the bins of a feature, (n_bins,); codes: bins that have rows, whose
    finite middles define the range. Return (n_bins,); `middle` itself if none of them is finite.
    """
    values = middle[codes]
    finite = values[np.abs(values) < np.finfo(np.float64).max]
    return np.clip(middle, finite.min(), finite.max()) if len(finite) else middle


def _average(columns: Float64, weight: Float64) -> Float64:
    """Return the weighted mean of each column, (q,), or of a single column, a float.

    columns: (n, q) or (n,); weight: (n,).
    """
    fraction = weight / weight.sum()
    mean: Float64 = (columns.T * fraction).sum(axis=-1)
    return mean


@cache
def _get_thread_limits() -> ThreadpoolController:
    """Return the controller of the threads of BLAS libraries; it is cached, as finding them is slow."""
    return ThreadpoolController()
