"""Figure of selective classification: certified error against coverage."""

from typing import Any

import numpy as np

from certree.estimators import CertifiedTreeClassifier
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.formatting import format_bound, format_percent
from certree.interface.signatures import validate_arguments
from certree.show.calibration import plot_calibration
from certree.show.style import BLUE, GREY, ORANGE, Figure, get_axes, set_title, use_style


@use_style
@validate_arguments
@copy_descriptions_from(plot_calibration)
def plot_selective(
    model: CertifiedTreeClassifier, delta: float | None = None, ax: Any = None
) -> Figure:
    """Draw the certified error of a vote that abstains on uncertain rows, against its coverage.

    The vote predicts a row if the probability of its most probable class exceeds that of the second
    by a margin, and abstains otherwise. Each point is one margin; coverage is the fraction of rows
    with a prediction. The error is that of the predicted rows. The margin with the lowest bound is
    marked.

    Parameters
    ----------
    model : CertifiedTreeClassifier
        The fitted model, which must have its calibration set.
    delta : float or None
        Probability with which any of the bounds may fail; None: the `delta` of the model.
    {ax}

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    ValueError
        If the model was fitted with groups, or loaded from a file without its calibration set.
    """
    certificates = model.selective_certificates(delta)
    coverage = np.array([each.coverage for each in certificates])
    bounds = np.array([each.certificate.bound for each in certificates])
    risks = np.array([each.certificate.risk for each in certificates])
    ax = get_axes(ax)
    sure = format_percent(1 - certificates[0].certificate.delta)
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
        f"Predicting only {format_percent(coverage[best])} of the rows lowers the bound "
        f"from {format_bound(bounds[0])} to {format_bound(bounds[best])}"
        if best
        else f"The bound is lowest when all rows are predicted: {format_bound(bounds[0])}",
    )
    figure: Figure = ax.figure
    return figure
