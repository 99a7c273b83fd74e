"""The training error of AdaBoost and its bound, round by round."""

from typing import Any

import numpy as np

from certree.ensembles.adaboost import AdaBoostTreeClassifier
from certree.show.style import BLUE, VERMILLION, Figure, axes_of, styled


@styled
def plot_adaboost(model: AdaBoostTreeClassifier, ax: Any = None) -> Figure:
    """Draw the training error of AdaBoost after each round, and its bound.

    Parameters
    ----------
    model : AdaBoostTreeClassifier
        Fitted.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure
    """
    ax = axes_of(ax)
    bounds, errors = model.error_bounds_, model.training_errors_
    rounds = np.arange(1, len(bounds) + 1)
    for values, color, words in (
        (bounds, VERMILLION, "bound: product of Z"),
        (errors, BLUE, "training error"),
    ):
        # A single round has no line, and what falls to 0 has a mark.
        ax.plot(rounds, values, color=color, label=words, marker="o", markevery=[len(rounds) - 1])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("rounds")
    ax.set_ylabel("share of the rows")
    ax.legend()
    ax.set_title(f"Training error {errors[-1]:.3g}, bounded by {bounds[-1]:.3g}")
    drawn: Figure = ax.figure
    return drawn
