"""The loss of boosted trees, round by round."""

from typing import TYPE_CHECKING, Any

import numpy as np

from certree.ensembles.boosting import BoostedTrees
from certree.extras import needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_loss(model: BoostedTrees, ax: Any = None) -> "Figure":
    """Draw the loss of the evaluation set after each round of boosting.

    Parameters
    ----------
    model : BoostedTreesClassifier or BoostedTreesRegressor
        Fitted with ``X_val`` and ``y_val``.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError
        If the model was fitted without an evaluation set.
    """
    scores = getattr(model, "validation_score_", None)
    if scores is None:
        raise ValueError(
            "the model was fitted without X_val and y_val, so there is no loss to draw"
        )
    if ax is None:
        figure = needed("matplotlib.figure", "plot").Figure(figsize=(6.4, 4), layout="constrained")
        ax = figure.add_subplot()
    rounds, losses = np.arange(1, len(scores) + 1), -np.asarray(scores)
    best = int(losses.argmin())
    ax.plot(rounds, losses, color="#0072B2")
    ax.plot(rounds[best], losses[best], "o", color="#D55E00")
    ax.set_xscale("log")
    ax.set_xlabel("rounds")
    ax.set_ylabel("loss on the evaluation set")
    beyond = losses[-1] / losses[best] - 1 if losses[best] > 0 else 0.0
    ax.set_title(
        f"The loss is smallest after {rounds[best]} of {len(rounds)} rounds, "
        f"{beyond:.1%} larger at the end"
    )
    ax.spines[["top", "right"]].set_visible(False)
    drawn: Figure = ax.figure
    return drawn
