"""Figure of feature importances."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.inspection import permutation_importance
from sklearn.utils.validation import check_is_fitted

from certree.estimators.naive_bayes import NaiveBayesClassifier
from certree.interface.arrays import Float64
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.formatting import format_percent, format_quantity, shorten_label
from certree.interface.parameter_aliases import suggests_arguments
from certree.interface.signatures import validate_arguments
from certree.rows.training import get_feature_names
from certree.show.calibration import plot_calibration
from certree.show.style import BLUE, GREY, Figure, get_axes, set_title, use_style

# Permutations of each column, and most rows that they use.
_N_REPEATS, _MAX_ROWS = 5, 5000


@suggests_arguments
@use_style
@validate_arguments
@copy_descriptions_from(plot_calibration)
def plot_importance(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    kind: Literal["impurity", "permutation"] = "impurity",
    max_features: int = 15,
    random_state: Any = 0,
    ax: Any = None,
) -> Figure:
    """Draw the importance of each feature, the largest first.

    Parameters
    ----------
    model : fitted estimator
        An estimator with `feature_importances_`, such as a tree, a forest or boosted trees of
        certree. Permutation importance takes any estimator with a `score` method.
    X : array-like of shape (n, p), or None
        Rows, preferably rows that were not used to fit the model. Needed for kind="permutation".
    y : array-like of shape (n,), or None
        Classes or numbers of the rows. Needed for kind="permutation".
    kind : {"impurity", "permutation"}, default="impurity"
        "impurity": `feature_importances_`, each feature's fraction of the impurity reduction of all
        splits. For naive Bayes it is the feature's fraction of the sum of all features' mutual
        information with the class.
        "permutation": the decrease of the score when a column is permuted, with the standard
        deviation over five permutations of at most 5000 rows; scikit-learn's
        `permutation_importance`.
    max_features : int, default=15
        Largest number of features with a bar of their own; one more bar has the sum of the others.
    random_state : int, RandomState or None, default=0
        Seed or generator of the rows and permutations.
    {ax}

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    TypeError
        If the model has no `feature_importances_`.
    ValueError
        If `max_features` is below 1, or kind="permutation" is used without X and y.
    """
    if max_features < 1:
        raise ValueError(f"max_features must be at least 1, got {max_features!r}")
    check_is_fitted(model)
    if kind == "impurity":
        if not hasattr(model, "feature_importances_"):
            raise TypeError(
                f"model must have feature_importances_, but {type(model).__name__} has none: use "
                'kind="permutation"'
            )
        values, spread = np.asarray(model.feature_importances_), None
        axis_label = f"fraction of the {name_importance(model)}"
    else:
        if X is None or y is None:
            raise ValueError(
                'X and y must be given for kind="permutation": pass rows, and their classes or numbers'
            )
        values, spread = compute_permutation_importance(model, X, y, random_state)
        axis_label = "decrease of the score when permuted"
    names = np.array(get_feature_names(model), dtype=object)
    return _draw_bars(names, values, spread, axis_label, max_features, ax)


def name_importance(model: Any) -> str:
    """Return what the `feature_importances_` of a model are fractions of, for the label of an axis.

    It is "mutual information" for naive Bayes, else "impurity reduction". model: the fitted model.
    """
    is_bayes = isinstance(model, NaiveBayesClassifier)
    return "mutual information" if is_bayes else "impurity reduction"


def compute_permutation_importance(
    model: Any, X: ArrayLike, y: ArrayLike, random_state: Any
) -> tuple[Float64, Float64]:
    """Return by how much the score of a model falls if the values of a feature are permuted.

    Each feature is permuted five times, on at most 5000 random rows, by scikit-learn's
    `permutation_importance`. The score is that of `model.score`, such as accuracy or R2.

    Parameters
    ----------
    model : fitted estimator
        An estimator with a `score` method.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Classes or numbers of the rows.
    random_state : int, RandomState or None
        Seed or generator of rows and permutations.

    Returns
    -------
    mean, standard_deviation : ndarray of float64, shape (p,)
        Mean and standard deviation, over the five permutations of each feature, of the score on the
        unchanged rows minus that on the permuted rows.
    """
    n = min(_MAX_ROWS, len(np.asarray(y)))
    importance = permutation_importance(
        model, X, y, n_repeats=_N_REPEATS, random_state=random_state, max_samples=n
    )
    return importance.importances_mean, importance.importances_std


def _draw_bars(
    names: NDArray[Any],
    values: Float64,
    spread: Float64 | None,
    axis_label: str,
    max_features: int,
    ax: Any,
) -> Figure:
    """Draw a bar for the importance of each feature, the largest first.

    Parameters
    ----------
    names : ndarray of str, shape (p,)
        Names of the features.
    values : ndarray of float64, shape (p,)
        Importances of the features.
    spread : ndarray of float64, shape (p,), or None
        Lengths of the error bars to each side, such as standard deviations; None: the importances
        are fractions of a whole, without error bars.
    axis_label : str
        Label of the axis of importances.
    max_features : int
        Number of features with a bar of their own; one more bar has the sum of the others.
    ax : matplotlib Axes or None
        Axes to draw on; None: those of a new figure.

    Returns
    -------
    matplotlib Figure
        The figure of the axes.
    """
    order = np.argsort(-values, kind="stable")
    shown, rest = order[:max_features], order[max_features:]
    ax = get_axes(ax, (6.4, 0.9 + 0.26 * (len(shown) + bool(len(rest)))))
    positions = np.arange(len(shown))
    errors = None if spread is None else spread[shown]
    ax.barh(positions, values[shown], 0.7, xerr=errors, color=BLUE, ecolor=GREY)
    labels = [shorten_label(str(name)) for name in names[shown]]
    if len(rest):
        labels.append(format_quantity(len(rest), "other"))
        ax.barh(len(shown), values[rest].sum(), 0.7, color=GREY)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(axis_label)
    set_title(ax, _describe_most_important(labels[0], values[shown[0]], spread is None))
    figure: Figure = ax.figure
    return figure


def _describe_most_important(name: str, importance: float, is_fraction: bool) -> str:
    """Return the title of the figure, such as "age is most important: 40 % of the total".

    If `is_fraction` is False it is like "Permuting age lowers the score by 0.12". If no importance
    is positive, it says so.

    Parameters
    ----------
    name : str
        The most important feature.
    importance : float
        Its importance.
    is_fraction : bool
        Whether the importance is a fraction of a total, the impurity reduction or, of naive Bayes,
        the mutual information; else it is the decrease of a score.
    """
    if not importance > 0:
        return "No feature has any importance"
    if is_fraction:
        return f"{name} is most important: {format_percent(importance)} of the total"
    return f"Permuting {name} lowers the score by {importance:.3g}"
