"""Shapley and Banzhaf values of features, exactly, for trees, votes, forests and boosted trees.

Features are the players of a game. A coalition fixes the values of its features, and wins the mean
output of the model over the other features. The value of a feature is its average marginal gain.
The game of one leaf is a product over the features of its path, so the average is the integral of a
polynomial. Gauss-Legendre quadrature with half as many points as the path has features is exact.
If features outside the coalition come from a background, its rows are grouped by the features of a path
whose tests they pass.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree._core import compute_feature_values
from certree.explain.additive_trees import (
    AdditiveTrees,
    check_additive,
    get_additive_trees,
    get_rows_per_node,
)
from certree.explain.explanation import Explanation, select_positive_class
from certree.interface.arrays import Float64
from certree.interface.fitted_state import check_one_target
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads
from certree.rows.calendar_parts import describe_parts

# Takes the number of features of a path. Returns points in 0 .. 1, the probabilities with which a
# feature is in the coalition, and their weights.
Quadrature = Callable[[int], tuple[Float64, Float64]]
Perturbation = Literal["auto", "tree_path_dependent", "interventional"]


def choose_shapley_points(n_features: int) -> tuple[Float64, Float64]:
    """Return the quadrature that yields Shapley values, for paths of at most `n_features` features.

    A Shapley value is the integral over q in 0 .. 1 of a polynomial of degree n_features - 1, where
    q is the probability with which each other feature is known. Return Gauss-Legendre points, (k,)
    in 0 .. 1, and their weights, (k,), k = max(1, ceil(n_features / 2)), which are exact for this
    degree.
    """
    point, weight = np.polynomial.legendre.leggauss(max(1, ceil(n_features / 2)))
    return (point + 1) / 2, weight / 2


def choose_banzhaf_points(_: int) -> tuple[Float64, Float64]:
    """Return the quadrature that yields Banzhaf values: a point 1/2, (1,), and its weight 1, (1,).

    Each other feature is known with probability 1/2, so every set of known features has the same
    weight. The number of features does not matter. The argument, the number of features, is not
    used.
    """
    return np.array([0.5]), np.ones(1)


@validate_arguments
def shapley_values(
    model: Any,
    X: ArrayLike,
    background: ArrayLike | None = None,
    *,
    feature_perturbation: Perturbation = "auto",
    pos_label: Any = None,
) -> Explanation:
    """Divide the output of a model in each row among its features by their Shapley values.

    Features become known one after the other; the output is averaged over the values of features
    that are not yet known. The Shapley value of a feature is the change of this mean when the
    feature becomes known, averaged over all orders. Values are exact, and the time is linear in the
    number of nodes of the trees.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, boosted trees or AdaBoost of certree.
    X : array-like of shape (n, p)
        Rows to explain.
    background : array-like of shape (m, p), or None
        Rows from which unknown features are taken; a hundred rows are often enough.
    feature_perturbation : {"auto", "tree_path_dependent", "interventional"}
        As in shap. "interventional": unknown features are those of the rows of the background.
        "tree_path_dependent": a row with an unknown feature goes to both children, in proportion to
        their training rows. Boosted trees, AdaBoost and certified forests do not keep these
        numbers: the rows of the background are counted instead. "auto": "interventional" if there
        is a background, else "tree_path_dependent".
    pos_label : object or None
        The positive one of two classes, which is then the only output. None: both probabilities, or
        the raw score of the second class.

    Returns
    -------
    Explanation
        Its contributions are the values, (n, K, p) for K outputs. They sum to the prediction minus
        `base`, the mean output. Outputs are probabilities of classes, raw scores of boosted trees,
        or numbers. A forest's probabilities are averages over trees, before they are raised to the
        power ``leaves_.power``.

    Raises
    ------
    TypeError
        If the model has no trees with numeric leaves.
    ValueError
        If a background is missing, or `pos_label` is not one of two classes.

    References
    ----------
    Lundberg et al., "From local explanations to global understanding with explainable AI for
    trees", Nature Machine Intelligence 2020, for both kinds of values; Yu, Xu, Bifet and Read,
    "Linear TreeSHAP", NeurIPS 2022, for linear time; the quadrature and the groups of rows are our
    own.

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
    return _explain_rows(
        model, X, background, feature_perturbation, choose_shapley_points, pos_label
    )


@validate_arguments
def banzhaf_values(
    model: Any,
    X: ArrayLike,
    background: ArrayLike | None = None,
    *,
    feature_perturbation: Perturbation = "auto",
    pos_label: Any = None,
) -> Explanation:
    """Compute the Banzhaf value of each feature for the output of a model in each row.

    For a set of known features, the output is averaged over the values of all unknown features. The
    Banzhaf value of a feature is the change of this mean when the feature becomes known too,
    averaged over all sets of other features with equal weight. The values do not sum to the
    prediction.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, boosted trees or AdaBoost of certree.
    X : array-like of shape (n, p)
        Rows to explain.
    background : array-like of shape (m, p), or None
        Rows from which unknown features are taken; a hundred rows are often enough.
    feature_perturbation : {"auto", "tree_path_dependent", "interventional"}
        "interventional": unknown features are those of the rows of the background.
        "tree_path_dependent": a row with an unknown feature goes to both children, in proportion to
        their training rows, or to the rows of the background if the model does not keep these
        numbers. "auto": "interventional" if there is a background, else "tree_path_dependent".
    pos_label : object or None
        The positive one of two classes, which is then the only output. None: both probabilities, or
        the raw score of the second class.

    Returns
    -------
    Explanation
        Its contributions are the values, (n, K, p) for K outputs; ``additive`` is False, and `base`
        is the mean output of the model.

    Raises
    ------
    TypeError
        If the model has no trees with numeric leaves.
    ValueError
        If a background is missing, or `pos_label` is not one of two classes.

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
    return _explain_rows(
        model, X, background, feature_perturbation, choose_banzhaf_points, pos_label
    )


def _explain_rows(
    model: Any,
    X: Any,
    background: Any,
    perturbation: Perturbation,
    quadrature: Quadrature,
    pos_label: Any,
) -> Explanation:
    """Compute Shapley values, or Banzhaf values, of the features for the output of a model in each row.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest, boosted trees or AdaBoost of certree.
    X : array-like of shape (n, p)
        Rows to explain.
    background : array-like of shape (m, p), or None
        Rows from which unknown features are taken.
    perturbation : {"auto", "tree_path_dependent", "interventional"}
        How unknown features are treated. "interventional": they are taken from the background.
        "tree_path_dependent": rows go to both children in proportion to the training rows there.
        "auto": "interventional" if there is a background, else "tree_path_dependent".
    quadrature : callable
        `choose_shapley_points` or `choose_banzhaf_points`: takes a number of features, and returns
        probabilities with which other features are known, and the weights of these points.
    pos_label : object or None
        The positive one of two classes, which is then the only output; None: all outputs.

    Returns
    -------
    Explanation
        Its contributions are the values; additive for Shapley values only.
    """
    model = check_additive(model)
    trees = get_additive_trees(model)
    if pos_label is not None:
        check_one_target("pos_label", model)
    rows, row_values = model._encode_with_raw_values(X)
    rules = model._describe_rules(rows)
    parts = describe_parts(rows, model.n_features_in_, model.dates_)
    others = None if background is None else model._encode_new_rows(background)
    if others is not None and others.dtype != rows.dtype:
        rows, others = rows.astype(np.float64), others.astype(np.float64)
    n_threads = get_n_threads(model.n_jobs)
    if others is not None and perturbation != "tree_path_dependent":
        base = trees.compute_outputs(others, n_threads).mean(axis=0)
        added = compute_coalition_values(trees, rows, others, quadrature, n_threads)
    elif perturbation == "interventional":
        raise ValueError(
            'background must be an array of rows if feature_perturbation="interventional", got '
            "None: pass rows of the fit, a hundred are often enough"
        )
    else:
        rows_per_node = get_rows_per_node(trees, others, n_threads)
        base = trees.compute_mean_output(rows_per_node)
        trees = trees.with_rows_per_node(rows_per_node)
        added = compute_coalition_values(trees, rows, None, quadrature, n_threads)
    fields = trees.build_explanation_fields(base, model._fold_parts(added))
    additive = quadrature is choose_shapley_points
    names = model._feature_names()
    found = Explanation(
        feature_names=names,
        values=row_values,
        additive=additive,
        rules=rules,
        calendar_parts=parts,
        **fields,
    )
    return select_positive_class(found, getattr(model, "classes_", None), pos_label)


def compute_coalition_values(
    model: AdditiveTrees,
    X: NDArray[Any],
    background: NDArray[Any] | None,
    quadrature: Quadrature,
    n_threads: int,
) -> Float64:
    """Compute the Shapley or Banzhaf values of the features in numeric rows.

    Parameters
    ----------
    model : AdditiveTrees
        The model; without a background it must have `rows_per_node`.
    X : ndarray of shape (n, p)
        Numeric rows to explain, categories as codes.
    background : ndarray of shape (m, p), or None
        Numeric rows from which unknown features are taken. None: rows with an unknown feature go to
        both children in proportion to `model.rows_per_node`.
    quadrature : callable
        `choose_shapley_points` or `choose_banzhaf_points`: takes a number of features, and returns
        probabilities with which other features are known, and the weights of these points.
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of float64, shape (n, n_outputs, p)
        Value of each feature for each output.
    """
    if background is None:
        return _compute_group_values(model, X, None, quadrature, n_threads)
    total = np.zeros((len(X), model.n_outputs, X.shape[1]))
    # Rows that go to both children are compared pair by pair, which takes longer.
    for rows in model.group_rows_by_routing(X):
        for others in model.group_rows_by_routing(background):
            values = _compute_group_values(
                model, X[rows], background[others], quadrature, n_threads
            )
            total[rows] += values * (len(others) / len(background))
    return total


def _compute_group_values(
    model: AdditiveTrees,
    X: NDArray[Any],
    background: NDArray[Any] | None,
    quadrature: Quadrature,
    n_threads: int,
) -> Float64:
    """Compute the values of features for one group of rows and one group of background rows.

    model: the trees; X: rows to explain, (n, p); background: rows from which unknown features are
    taken, (m, p), or None: rows with an unknown feature go to both children in proportion to
    `model.rows_per_node`. quadrature: `choose_shapley_points` or `choose_banzhaf_points`, which
    determines the kind of values: it takes the largest number of features on a path, and returns
    probabilities with which other features are known, and their weights; n_threads: number of
    threads. In each table either all rows have one path in each tree, or all may go to both
    children of a split whose feature they lack. Return an array (n, n_outputs, p).
    """
    tables = (X,) if background is None else (X, background)
    both, rows_per_node = model.get_fractional_routing(*tables)
    if background is None:
        rows_per_node = model.rows_per_node
    compute: Any = compute_feature_values  # mypy does not resolve overloads with starred arguments
    trees, points = model.trees, quadrature(min(model.depth, X.shape[1]))
    game = X, background, both, rows_per_node
    values: Float64 = compute(
        *trees.split_columns, trees.root, trees.value, *game, *points, n_threads
    )
    return values.reshape(len(X), model.n_outputs, X.shape[1])
