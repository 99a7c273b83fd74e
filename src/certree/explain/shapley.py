"""Shapley and Banzhaf values of features, exactly, for trees, votes, forests and boosted trees.

Features are players: some of them are known of a row, and what the model says on average of the others
is what they win together. A value averages over what a feature adds to those that are known already.
A leaf's part of the game is a product over the features of its path, so that the average is the
integral of a polynomial; Gauss and Legendre's points, half as many as a path has features, sum it
exactly. Where features that are not known come from a background, its rows are grouped by the features
of a path that hold for them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import values_of_features
from certree.explain.explanation import Explanation
from certree.explain.summed import SummedTrees, cover_of, summable, summed_trees
from certree.interface.arrays import Float64
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads

# Points in 0 .. 1 at which features are known, and their weights, for paths of so many features.
Mixture = Callable[[int], tuple[Float64, Float64]]
Perturbation = Literal["auto", "tree_path_dependent", "interventional"]


def legendre(n_features: int) -> tuple[Float64, Float64]:
    """Points in 0 .. 1 and weights that integrate what paths of so many features make."""
    point, weight = np.polynomial.legendre.leggauss(max(1, ceil(n_features / 2)))
    return (point + 1) / 2, weight / 2


def halves(_: int) -> tuple[Float64, Float64]:
    """All sets of features alike."""
    return np.array([0.5]), np.ones(1)


@validate_arguments
def shapley_values(
    model: Any,
    X: ArrayLike,
    background: ArrayLike | None = None,
    *,
    feature_perturbation: Perturbation = "auto",
) -> Explanation:
    """Divide what a model says of each row among its features by their Shapley values.

    A feature's value is what knowing it changes, averaged over all orders in which features become
    known. It is computed exactly, in time linear in the nodes of the trees.

    Parameters
    ----------
    model : estimator
        A fitted tree, vote, forest, boosted trees or AdaBoost of certree.
    X : array-like of shape (n, p)
        Rows.
    background : array-like of shape (m, p), or None
        Rows from which the features that are not known come; a hundred are often enough.
    feature_perturbation : {"auto", "tree_path_dependent", "interventional"}
        As in shap. "interventional": features that are not known are those of the rows of the
        background. "tree_path_dependent": a row whose feature is not known goes both ways, by the rows
        of the fit in either child; where a model does not keep their numbers (boosted trees, AdaBoost
        and certified forests), the rows of the background are counted instead. "auto": the former if
        there is a background.

    Returns
    -------
    Explanation
        Values that sum to the prediction minus `base`, which is what the model says on average: shares
        of the classes (of forests before their power), raw scores of boosted trees, or numbers.

    Raises
    ------
    TypeError
        If the model has no trees whose leaves say numbers.
    ValueError
        If a background is missing.

    References
    ----------
    Lundberg et al., "From local explanations to global understanding with explainable AI for trees",
    Nature Machine Intelligence 2020, for both kinds of values; Yu, Xu, Bifet and Read, "Linear
    TreeSHAP", NeurIPS 2022, for linear time; the quadrature and the groups of rows are ours.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certree.ensembles import TreeForestRegressor
    >>> from certree.explain import shapley_values
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TreeForestRegressor(random_state=0).fit(X, y)
    >>> explained = shapley_values(model, X[:3])
    >>> bool(abs(explained.prediction[:, 0] - model.predict(X[:3])).max() < 1e-9)
    True
    """
    return _explained(model, X, background, feature_perturbation, legendre)


@validate_arguments
def banzhaf_values(
    model: Any,
    X: ArrayLike,
    background: ArrayLike | None = None,
    *,
    feature_perturbation: Perturbation = "auto",
) -> Explanation:
    """Say how much each feature changes what a model says of each row, by their Banzhaf values.

    A feature's value is what knowing it changes, averaged over all sets of other features that may be
    known, each as likely as any other. Values do not sum to the prediction.

    Parameters
    ----------
    model, X, background, feature_perturbation
        See `shapley_values`.

    Returns
    -------
    Explanation
        With ``additive=False``; `base` is what the model says on average.

    Raises
    ------
    TypeError
        If the model has no trees whose leaves say numbers.
    ValueError
        If a background is missing.

    References
    ----------
    Banzhaf, "Weighted voting doesn't work", Rutgers Law Review 1965.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certree import PACBayesTreeRegressor
    >>> from certree.explain import banzhaf_values
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    >>> banzhaf_values(model, X[:3], X).additive
    False
    """
    return _explained(model, X, background, feature_perturbation, halves)


def _explained(
    model: Any, X: Any, background: Any, perturbation: Perturbation, mixture: Mixture
) -> Explanation:
    model = summable(model)
    summed = summed_trees(model)
    rows, values = model._rows_and_values(X)
    others = None if background is None else model._new_rows(background)
    if others is not None and others.dtype != rows.dtype:
        rows, others = rows.astype(np.float64), others.astype(np.float64)
    n_threads = get_n_threads(model.n_jobs)
    if others is not None and perturbation != "tree_path_dependent":
        base = summed.outputs(others, n_threads).mean(axis=0)
        added = values_by(summed, rows, others, mixture, n_threads)
    elif perturbation == "interventional":
        raise ValueError('feature_perturbation="interventional" takes a background, got None')
    else:
        cover = cover_of(summed, others, n_threads)
        base = summed.expected(cover)
        added = values_by(summed.with_rows(cover), rows, None, mixture, n_threads)
    parts = summed.parts(base, added)
    additive = mixture is legendre
    names = model._feature_names()
    return Explanation(feature_names=names, values=values, additive=additive, **parts)


def values_by(
    summed: SummedTrees,
    X: NDArray[Any],
    background: NDArray[Any] | None,
    mixture: Mixture,
    n_threads: int,
) -> Float64:
    """Values of the features of rows, (n, n_outputs, p), by a background or by the rows of nodes."""
    if background is None:
        return _values(summed, X, None, mixture, n_threads)
    total = np.zeros((len(X), summed.n_outputs, X.shape[1]))
    # Rows that go both ways are taken pair by pair, which takes longer.
    for rows in summed.parted(X):
        for others in summed.parted(background):
            found = _values(summed, X[rows], background[others], mixture, n_threads)
            total[rows] += found * (len(others) / len(background))
    return total


def _values(
    summed: SummedTrees,
    X: NDArray[Any],
    background: NDArray[Any] | None,
    mixture: Mixture,
    n_threads: int,
) -> Float64:
    both, rows = summed.branches(X) if background is None else summed.branches(X, background)
    cover = summed.rows if background is None else rows
    valued: Any = values_of_features  # whose overloads mypy does not tell apart behind a star
    trees, points = summed.trees, mixture(min(summed.depth, X.shape[1]))
    games = X, background, both, cover
    added: Float64 = valued(*trees.splits, trees.root, trees.value, *games, *points, n_threads)
    return added.reshape(len(X), summed.n_outputs, X.shape[1])
