"""Figure of the loss of boosted trees by boosting round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.ensembles.boosting import BoostedTrees
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import get_snapshot
from certree.interface.signatures import validate_arguments
from certree.show.calibration import plot_calibration
from certree.show.style import BLUE, VERMILLION, Figure, get_axes, set_title, use_style


@use_style
@validate_arguments
@copy_descriptions_from(plot_calibration)
def plot_loss(
    model: BoostedTrees, X: ArrayLike | None = None, y: ArrayLike | None = None, ax: Any = None
) -> Figure:
    """Draw the loss after each boosting round, on given rows or on the validation set of the fit.

    The loss is that of the model's parameter `loss`, or the log loss of a classifier, as a mean
    over the rows. If the fit stopped early, the loss on the validation set is also drawn for the
    rounds after the best one, which the model does not keep.

    Parameters
    ----------
    model : BoostedTreesClassifier or BoostedTreesRegressor
        The fitted model.
    X : array-like of shape (n, p), or None
        Rows; None: the validation set of the fit, which is ``X_val`` and ``y_val``, or rows that
        the fit held out for early stopping.
    y : array-like of shape (n,), or None
        Classes or numbers of the rows.
    {ax}

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    ValueError
        If one of X and y is missing, or if both are None and the model was fitted without a
        validation set or with another `scoring` than the loss.
    """
    if (X is None) != (y is None):
        missing, present = ("X", "y") if X is None else ("y", "X")
        raise ValueError(
            f"X and y must both be given, or both be None, got {missing}=None: pass {missing}, "
            f"or leave out {present}"
        )
    if X is not None and y is not None:
        losses, source = model.staged_loss(X, y), f"{len(np.asarray(y)):,} rows"
    elif hasattr(model, "validation_score_"):
        if get_snapshot(model).scoring != "loss":
            raise ValueError(
                "X and y must be given, as the model was fitted with a scoring other than 'loss': pass "
                "rows, or fit with scoring='loss'"
            )
        # Entry 0 is the score before the first round.
        losses, source = -np.asarray(model.validation_score_)[1:], "the validation set"
    else:
        raise ValueError(
            "X and y must be given, as the model was fitted without a validation set: pass rows, or "
            "fit with X_val and y_val"
        )
    rounds, ax = np.arange(1, len(losses) + 1), get_axes(ax)
    best = int(losses.argmin())
    ax.plot(rounds, losses, color=BLUE)
    ax.plot(rounds[best], losses[best], "o", color=VERMILLION)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("rounds")
    ax.set_ylabel(f"loss on {source}")
    increase = losses[-1] / losses[best] - 1 if losses[best] > 0 else 0.0
    set_title(
        ax,
        f"The loss is lowest after {rounds[best]} of {len(rounds):,} rounds, "
        f"and {increase:.1%} higher after the last",
    )
    figure: Figure = ax.figure
    return figure
