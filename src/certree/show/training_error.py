"""Figure of the training error of AdaBoost and its bound by boosting round."""

from typing import Any

import numpy as np

from certree.ensembles.adaboost import AdaBoostTreeClassifier
from certree.interface.docstrings import copy_descriptions_from
from certree.show.calibration import plot_calibration
from certree.show.style import BLUE, VERMILLION, Figure, get_axes, use_style


@use_style
@copy_descriptions_from(plot_calibration)
def plot_adaboost(model: AdaBoostTreeClassifier, ax: Any = None) -> Figure:
    """Draw the training error of AdaBoost after each round, and its upper bound.

    The bound is `error_bounds_` of the model: the product of the normalizers Z of the rounds so
    far, at most 1. Z is the sum of the row weights after the round's update, before they are
    divided by it.

    Parameters
    ----------
    model : AdaBoostTreeClassifier
        The fitted model.
    {ax}

    Returns
    -------
    matplotlib Figure
        The figure of the axes.
    """
    ax = get_axes(ax)
    bounds, errors = model.error_bounds_, model.training_errors_
    rounds = np.arange(1, len(bounds) + 1)
    for values, color, label in (
        (bounds, VERMILLION, "bound: product of Z"),
        (errors, BLUE, "training error"),
    ):
        # The marker at the last round is visible even for a single round, or an error of 0.
        ax.plot(rounds, values, color=color, label=label, marker="o", markevery=[len(rounds) - 1])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("rounds")
    ax.set_ylabel("fraction of the rows")
    ax.legend()
    ax.set_title(f"Training error {errors[-1]:.3g}, bound {bounds[-1]:.3g}")
    figure: Figure = ax.figure
    return figure
