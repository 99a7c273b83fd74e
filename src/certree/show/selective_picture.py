"""Figure of selective classification: certified error against coverage."""

from typing import Any

import numpy as np

from certree.estimators import CertifiedTreeClassifier
from certree.interface.signatures import checked
from certree.interface.words import percent, rounded_up
from certree.show.style import BLUE, GREY, ORANGE, Figure, get_axes, set_title, use_style


@use_style
@checked
def plot_selective(
    model: CertifiedTreeClassifier, delta: float | None = None, ax: Any = None
) -> Figure:
    """Draw the certified error of a vote that abstains on uncertain rows, against its coverage.

    Parameters
    ----------
    model : CertifiedTreeClassifier
        The fitted model.
    delta : float or None
        Probability with which any of the bounds may fail; None: that of the fit.
    ax : matplotlib Axes or None
        Axes to draw on; None: those of a new figure.

    Returns
    -------
    matplotlib Figure
    """
    certificates = model.selective_certificates(delta)
    coverage = np.array([each.coverage for each in certificates])
    bounds = np.array([each.certificate.bound for each in certificates])
    risks = np.array([each.certificate.risk for each in certificates])
    ax = get_axes(ax)
    sure = percent(1 - certificates[0].certificate.delta)
    ax.plot(coverage, bounds, "o-", color=BLUE, label=f"certified bound; all hold with {sure}")
    ax.plot(coverage, risks, "o-", color=ORANGE, label="error on the calibration set")
    best = int(bounds.argmin())
    ax.plot(coverage[best], bounds[best], "o", ms=9, mfc="none", mec=GREY)
    ax.set_xlabel("coverage: fraction of the rows with a prediction")
    ax.set_ylabel("error on the rows with a prediction")
    ax.set_xlim(0, 1.02)
    ax.set_ylim(0, min(1.0, 1.2 * float(bounds.max())))
    ax.legend(loc="upper left")
    set_title(
        ax,
        f"Predicting only {percent(coverage[best])} of the rows lowers the bound "
        f"from {rounded_up(bounds[0])} to {rounded_up(bounds[best])}"
        if best
        else f"The bound is lowest when all rows are predicted: {rounded_up(bounds[0])}",
    )
    figure: Figure = ax.figure
    return figure
