"""Where boosting of few numbers starts: halfway to a ridge regression, as trees of one feature each."""

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from certree.ensembles.rounds import Rounds
from certree.grow.bins import MISSING
from certree.interface.arrays import Float64, Int32, divide_by_largest
from certree.rows.hashes import hash_samples
from certree.tree import Tree, Trees

# Penalties that are chosen among, for columns of variance 1.
_PENALTIES = np.logspace(-3, 6, 28)
# One fit from halfway is nearly as good as the average of one from the mean and one from the line.
_SHARE = 0.5
# Columns whose deviation is a smaller part of their range differ in rows of next to no weight.
_LEAST = 1e-6
_ROUNDING = 1e-6


def linear_start(run: Rounds, n_steps: int | None) -> tuple[Trees, Float64]:
    """Grow trees on half of what a ridge regression adds to the mean, one for each feature.

    A leaf says the mean of its rows. So nothing extrapolates, and the trees keep all limits of the
    grower but that of leaves: those of slopes, too. Of several numbers a tree follows the one to which
    its feature adds most in units of its deviation, and says the means of all.

    Parameters
    ----------
    run : Rounds
        A run on numbers before its first round.
    n_steps : int or None
        So many leaves a tree at most.

    Returns
    -------
    trees : Trees
        Those that have more than one leaf.
    rows : ndarray of shape (m,)
        How many rows are in each of their nodes.
    """
    grower = replace(run.grower, max_leaves=n_steps)
    weight = np.ones(len(run.keys)) if run.weight is None else run.weight
    order = _order(run)
    trees, rows = [], [np.zeros(0)]
    for j, terms in zip(_features(run), ridge_terms(run).swapaxes(0, 1), strict=True):
        gradients = -_SHARE * weight * terms
        largest = _largest(terms[:, order], run.y[..., order])
        tree, leaf, sums = grower.grow_gradients(gradients[largest], weight, features=[j])
        _, hessian, n = sums.T
        if len(n) > 1:
            total = sums[:, :1]
            if len(terms) > 1:
                total = _sums(tree, leaf[order], gradients[:, order])
            # Rows of next to no weight have a sum of 0.
            known = (hessian > 0)[:, None]
            steps = np.divide(-total, hessian[:, None], out=np.zeros(total.shape), where=known)
            trees.append(tree.with_value(steps))
            rows.append(n)
    return Trees.joined(trees, run.bins.n_features, len(run.scores)), np.concatenate(rows)


def ridge_terms(run: Rounds) -> Float64:
    """What each feature adds to the means in ridge regressions on all of them, (n_outputs, p, n).

    Features come in the order in which they are looked at, wherever they stand.

    Its columns are the middles of bins of numbers, with the mean where a value is missing, whether it
    is missing, and one for each category. They have mean 0 and variance 1.
    """
    order = _order(run)
    weight = np.ones(len(order)) if run.weight is None else run.weight[order]
    columns = [_columns(run, j, order, weight) for j in _features(run)]
    design = np.concatenate(columns, axis=1)
    targets = np.atleast_2d(run.y)
    terms = np.zeros((len(targets), len(columns), len(order)))
    ends = np.cumsum([one.shape[1] for one in columns])[:-1]
    for of_output, y in zip(terms, targets, strict=True):
        if not design.size or y.min() == y.max():
            continue
        with _linear_algebra().limit(limits=1, user_api="blas"):
            slopes = ridge_slopes(design, y[order], weight)
        for term, column, slope in zip(of_output, columns, np.split(slopes, ends), strict=True):
            term[order] = (column * slope).sum(axis=1)
    return terms


def _order(run: Rounds) -> NDArray[np.intp]:
    """An order of the rows that does not depend on theirs, as the last bits of sums hang on it.

    That of their keys; rows of a group, which share one, stand by what they hold.
    """
    n, keys = len(run.keys), run.keys
    if len(np.unique(keys)) == n:
        return np.argsort(keys)
    codes = np.stack([run.bins.column(j)[:n] for j in _features(run)], axis=1)
    weight = np.zeros(n) if run.weight is None else run.weight[:n]
    return np.lexsort((weight, *np.atleast_2d(run.y)[:, :n], hash_samples(codes), keys))


def _features(run: Rounds) -> list[int]:
    """The features in the order in which they are looked at."""
    order = run.grower.checked_feature_order
    return [*range(run.bins.n_features)] if order is None else order.tolist()


def ridge_slopes(design: Float64, y: Float64, weight: Float64) -> Float64:
    """Slopes (q,) of a ridge regression on columns (n, q) of mean 0, the weights (n,) having mean 1.

    The penalty is that of generalised cross-validation (Golub, Heath and Wahba, "Generalized
    cross-validation as a method for choosing a good ridge parameter", 1979).
    """
    root = np.sqrt(weight)
    target = root * (y - _mean(y, weight))
    left, size, right = np.linalg.svd(design * root[:, None], full_matrices=False)
    along = left.T @ target
    kept = size**2 / (size**2 + _PENALTIES[:, None])
    beside = max(0.0, float(target @ target - along @ along))
    loss = beside + np.square((1 - kept) * along).sum(axis=1)
    loss /= np.square(len(y) - 1 - kept.sum(axis=1))
    # Few rows may be as well served by all; the largest one then, not one that rounding picks.
    best = np.flatnonzero(loss <= loss.min() * (1 + _ROUNDING))[-1]
    slopes: Float64 = (along * size / (size**2 + _PENALTIES[best])) @ right
    return slopes


def _largest(terms: Float64, y: Float64) -> int:
    """The output whose terms (n_outputs, n) are largest beside the deviation of its numbers."""
    if len(terms) == 1:
        return 0
    deviation = y.std(axis=1)
    shares = terms.std(axis=1) / np.where(deviation > 0, deviation, 1.0)
    return int(np.argmax(shares))


def _sums(tree: Tree, leaf: Int32, gradients: Float64) -> Float64:
    """Sums over the rows of each node of what has as many rows as outputs, (m, n_outputs)."""
    totals = [np.bincount(leaf, one, tree.n_nodes) for one in gradients]
    sums: Float64 = np.stack(totals, axis=1)
    for v in np.flatnonzero(~tree.is_leaf)[::-1]:
        sums[v] = sums[tree.left[v]] + sums[tree.left[v] + 1]
    return sums


def _columns(run: Rounds, j: int, order: NDArray[np.intp], weight: Float64) -> Float64:
    """The columns of a feature, (n, any); those that tell no rows apart are left out."""
    bins, codes = run.bins, run.bins.column(j)[order]
    if bins.is_categorical[j]:
        columns = (codes[:, None] == np.unique(codes)).astype(np.float64)
    else:
        known = codes != MISSING
        columns = np.column_stack([np.zeros(len(codes)), known])
        if len(np.unique(codes[known])) > 1:
            low, high = bins.bin_ranges(j)
            middle = _within(low / 2 + high / 2, np.unique(codes[known]))
            if middle.any():  # those of 0 and infinity alone are nowhere else
                value = divide_by_largest(middle)[codes[known]]
                columns[known, 0] = value - _mean(value, weight[known])
    columns = columns[:, columns.max(axis=0) > columns.min(axis=0)]
    columns -= _mean(columns, weight)
    columns /= np.abs(columns).max(axis=0)
    deviation = np.sqrt(_mean(columns**2, weight))
    return (columns / np.maximum(deviation, _LEAST))[:, deviation > _LEAST]


def _within(middle: Float64, codes: NDArray[np.uint8]) -> Float64:
    """Middles of bins; infinite values have no distance, and lie where the outermost others do."""
    found = middle[codes]
    near = found[np.abs(found) < np.finfo(np.float64).max]
    return np.clip(middle, near.min(), near.max()) if len(near) else middle


def _mean(columns: Float64, weight: Float64) -> Float64:
    share = weight / weight.sum()
    mean: Float64 = (columns.T * share).sum(axis=-1)
    return mean


@cache
def _linear_algebra() -> ThreadpoolController:
    # To look for libraries takes longer than to solve what is small.
    return ThreadpoolController()
