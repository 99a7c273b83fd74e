"""Which features decide."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.inspection import permutation_importance
from sklearn.utils.validation import check_is_fitted

from certree.interface.arrays import Float64
from certree.interface.formatting import format_percent, format_quantity, shorten_label
from certree.interface.signatures import validate_arguments
from certree.rows.training import names_of_features
from certree.show.style import BLUE, GREY, Figure, axes_of, styled, titled

# Times that every column is permuted, and rows that are asked at most.
_REPEATS, _ROWS = 5, 5000


@styled
@validate_arguments
def plot_importance(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    kind: Literal["impurity", "permutation"] = "impurity",
    max_features: int = 15,
    random_state: Any = 0,
    ax: Any = None,
) -> Figure:
    """Draw how much each feature matters, the largest first.

    Parameters
    ----------
    model : fitted estimator
        A tree, a forest or boosted trees of certree, or anything with `feature_importances_`;
        permutations take any fitted estimator with a `score`.
    X : array-like of shape (n, p), or None
        Rows, best such that the model has not seen; only permutations need them.
    y : array-like of shape (n,), or None
        Their classes or numbers.
    kind : {"impurity", "permutation"}, default="impurity"
        "impurity": `feature_importances_`, shares of what splits tell about the rows of the fit.
        "permutation": by how much the score of `X` falls when a column is permuted, with the standard
        deviation of five permutations of at most 5000 rows; scikit-learn's.
    max_features : int, default=15
        So many features are drawn, the rest is one bar.
    random_state : int, RandomState or None, default=0
        Draws rows and permutations.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    TypeError
        If the model has no `feature_importances_`.
    ValueError
        If permutations come without rows.
    """
    if max_features < 1:
        raise ValueError(f"max_features must be at least 1, got {max_features!r}")
    check_is_fitted(model)
    if kind == "impurity":
        if not hasattr(model, "feature_importances_"):
            raise TypeError(
                f"{type(model).__name__} has no feature_importances_; "
                'kind="permutation" takes any model'
            )
        values, spread = np.asarray(model.feature_importances_), None
        words = "share of what splits tell"
    else:
        if X is None or y is None:
            raise ValueError('kind="permutation" needs X and y')
        values, spread = permuted(model, X, y, random_state)
        words = "fall of the score when its values are permuted"
    names = np.array(names_of_features(model), dtype=object)
    return _drawn(names, values, spread, words, max_features, ax)


def permuted(model: Any, X: ArrayLike, y: ArrayLike, random_state: Any) -> tuple[Float64, Float64]:
    """By how much the score falls when a feature is permuted, and the spread of that, (p,) each."""
    n = min(_ROWS, len(np.asarray(y)))
    found = permutation_importance(
        model, X, y, n_repeats=_REPEATS, random_state=random_state, max_samples=n
    )
    return found.importances_mean, found.importances_std


def _drawn(
    names: NDArray[Any],
    values: Float64,
    spread: Float64 | None,
    words: str,
    max_features: int,
    ax: Any,
) -> Figure:
    order = np.argsort(-values, kind="stable")
    shown, rest = order[:max_features], order[max_features:]
    ax = axes_of(ax, (6.4, 0.9 + 0.26 * (len(shown) + bool(len(rest)))))
    places = np.arange(len(shown))
    errors = None if spread is None else spread[shown]
    ax.barh(places, values[shown], 0.7, xerr=errors, color=BLUE, ecolor=GREY)
    labels = [shorten_label(str(name)) for name in names[shown]]
    if len(rest):
        labels.append(format_quantity(len(rest), "other"))
        ax.barh(len(shown), values[rest].sum(), 0.7, color=GREY)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(words)
    titled(ax, _title(labels[0], values, shown[0], spread is None))
    drawn: Figure = ax.figure
    return drawn


def _title(name: str, values: Float64, first: int, are_shares: bool) -> str:
    if not values[first] > 0:
        return "No feature matters"
    if are_shares:
        return f"{name} decides most: {format_percent(values[first])} of what all splits tell"
    return f"Without {name} the score falls by {values[first]:.3g}"
