"""The loss of boosted trees, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.ensembles.boosting import BoostedTrees
from certree.interface.fitted_state import get_snapshot
from certree.interface.signatures import validate_arguments
from certree.show.style import BLUE, VERMILLION, Figure, axes_of, styled, titled


@styled
@validate_arguments
def plot_loss(
    model: BoostedTrees, X: ArrayLike | None = None, y: ArrayLike | None = None, ax: Any = None
) -> Figure:
    """Draw the loss after each round of boosting, that of some rows or of the evaluation set.

    Of a fit that stopped early, rounds behind the best one are drawn, too, though it dropped them.

    Parameters
    ----------
    model : BoostedTreesClassifier or BoostedTreesRegressor
        Fitted.
    X : array-like of shape (n, p), or None
        Rows; None: the evaluation set of the fit, ``X_val`` and ``y_val`` or rows that were held out.
    y : array-like of shape (n,), or None
        Their classes or numbers.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError
        If there are no rows, and the model was fitted without an evaluation set, or with another
        `scoring` than the loss.
    """
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together")
    if X is not None and y is not None:
        losses, of = model.staged_loss(X, y), f"{len(np.asarray(y)):,} rows"
    elif hasattr(model, "validation_score_"):
        if get_snapshot(model).scoring != "loss":
            raise ValueError(
                "scores of the evaluation set are no losses by scoring=...: give X and y"
            )
        # Entry 0 is of no round.
        losses, of = -np.asarray(model.validation_score_)[1:], "the evaluation set"
    else:
        raise ValueError(
            "the model was fitted without X_val and y_val, so there is no loss to draw: give X and y"
        )
    rounds, ax = np.arange(1, len(losses) + 1), axes_of(ax)
    best = int(losses.argmin())
    ax.plot(rounds, losses, color=BLUE)
    ax.plot(rounds[best], losses[best], "o", color=VERMILLION)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("rounds")
    ax.set_ylabel(f"loss on {of}")
    beyond = losses[-1] / losses[best] - 1 if losses[best] > 0 else 0.0
    titled(
        ax,
        f"The loss is smallest after {rounds[best]} of {len(rounds):,} rounds, "
        f"{beyond:.1%} larger at the end",
    )
    drawn: Figure = ax.figure
    return drawn
