"""What is promised where a vote is sure, against how often it is."""

from typing import Any

import numpy as np

from certree.estimators import CertifiedTreeClassifier
from certree.interface.formatting import format_bound, format_percent
from certree.interface.signatures import validate_arguments
from certree.show.style import BLUE, GREY, ORANGE, Figure, axes_of, styled, titled


@styled
@validate_arguments
def plot_selective(
    model: CertifiedTreeClassifier, delta: float | None = None, ax: Any = None
) -> Figure:
    """Draw the certified error of a vote that answers only where it is sure, against its coverage.

    Parameters
    ----------
    model : CertifiedTreeClassifier
        Fitted.
    delta : float or None
        Probability with which the bounds, all at once, may fail; None: that of the fit.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure
    """
    found = model.selective_certificates(delta)
    coverage = np.array([each.coverage for each in found])
    bounds = np.array([each.certificate.bound for each in found])
    risks = np.array([each.certificate.risk for each in found])
    ax = axes_of(ax)
    sure = format_percent(1 - found[0].certificate.delta)
    ax.plot(coverage, bounds, "o-", color=BLUE, label=f"certified bound, all hold with {sure}")
    ax.plot(coverage, risks, "o-", color=ORANGE, label="error on the calibration samples")
    best = int(bounds.argmin())
    ax.plot(coverage[best], bounds[best], "o", ms=9, mfc="none", mec=GREY)
    ax.set_xlabel("share of rows that are answered")
    ax.set_ylabel("error where it answers")
    ax.set_xlim(0, 1.02)
    ax.set_ylim(0, min(1.0, 1.2 * float(bounds.max())))
    ax.legend(loc="upper left")
    titled(
        ax,
        f"Answering {format_percent(coverage[best])} of the rows lowers the promise "
        f"from {format_bound(bounds[0])} to {format_bound(bounds[best])}"
        if best
        else f"The promise is lowest where all rows are answered: {format_bound(bounds[0])}",
    )
    drawn: Figure = ax.figure
    return drawn
