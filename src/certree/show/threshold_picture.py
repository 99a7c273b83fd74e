"""What is promised at every threshold: three curves with their bands, and a point on each."""

import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.certificates.thresholds import Limits, OperatingPoint, ThresholdGuarantees
from certree.interface.arrays import Float64
from certree.interface.formatting import format_percent, shorten_label
from certree.interface.signatures import validate_arguments
from certree.show.style import (
    BLUE,
    GREY,
    LINE,
    VERMILLION,
    WIDE,
    Figure,
    Panel,
    letters,
    new_figure,
    styled,
)

_HEIGHT = 4.0  # inches
_LETTERS = 24  # of a class at most
_MOST = 400  # thresholds that are drawn, spread over all


@styled
@validate_arguments
def plot_thresholds(
    thresholds: ThresholdGuarantees, false_negative: float = 1.0, false_positive: float = 1.0
) -> Figure:
    """Draw rates and costs at every threshold with what holds of all of them at once.

    The first picture has the ROC curve, the second precision against recall, the third the mean cost
    of a row. Of the first two the lines are what is observed, and the darker ends of the bands what is
    promised; the point is the threshold with the lowest bound on the cost.

    Parameters
    ----------
    thresholds : ThresholdGuarantees
        What `thresholds` of `Guarantees` gives.
    false_negative, false_positive : float
        What a missed row of the second class costs, and a false alarm.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or both are 0.
    """
    point = thresholds.lowest_cost(false_negative, false_positive)
    assert point.certificate is not None  # asked for by costs
    figure = new_figure((WIDE, _HEIGHT))
    panels = threshold_panels(thresholds, point, (false_negative, false_positive))
    for draw, ax in zip(panels, figure.subplots(1, 3), strict=True):
        draw(ax)
    sure = format_percent(1 - thresholds.terms.delta)
    words = (
        f"At threshold {point.threshold:.3g} a row costs at most {point.certificate.promised} "
        f"({false_negative:.4g} for a missed {shorten_label(str(thresholds.positive), _LETTERS)}, "
        f"{false_positive:.4g} for a false alarm); all bounds hold together with {sure}"
    )
    title = textwrap.fill(words, letters(WIDE, 10.5))
    figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, parse_math=False)
    return figure


def threshold_panels(
    found: ThresholdGuarantees, point: OperatingPoint, costs: tuple[float, float]
) -> tuple[Panel, Panel, Panel]:
    """What draws the ROC curve, precision against recall, and the cost."""
    return (
        lambda ax: _roc(ax, found, point),
        lambda ax: _precision(ax, found, point),
        lambda ax: _cost(ax, found, found.cost(*costs), point),
    )


def _roc(ax: Any, found: ThresholdGuarantees, point: OperatingPoint) -> None:
    """The lower end: no more false alarms are certain and no higher recall; the upper the reverse."""
    alarmed, recall = found.false_positive_rate, found.recall
    ends = np.linspace(0, 1, 501)
    low = _step(ends, alarmed.highest, recall.lowest)
    high = 1 - _step(1 - ends, 1 - alarmed.lowest[::-1], 1 - recall.highest[::-1])
    ax.fill_between(ends, low, high, color=BLUE, alpha=0.15, lw=0, label="the true curve")
    ax.plot(ends, low, color=BLUE, label="certified")
    some = _places(found)
    ax.plot(alarmed.observed[some], recall.observed[some], color=GREY, label="observed")
    ax.plot([0, 1], [0, 1], color=LINE, lw=1, ls="--")
    _mark(ax, point.false_positive_rate, point.recall, upper=True)
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("recall")
    ax.set_title("Recall against false alarms")
    ax.legend(loc="lower right")


def _places(found: ThresholdGuarantees) -> NDArray[np.intp]:
    last = len(found.threshold) - 1
    return np.unique(np.round(np.linspace(0, last, _MOST)).astype(np.intp))


def _step(at: Float64, x: Float64, y: Float64) -> Float64:
    """The largest y of points whose x is at most that of each place; 0 where there is none."""
    best = np.append(0.0, np.maximum.accumulate(y))
    return best[np.searchsorted(x, at, side="right")]


def _precision(ax: Any, found: ThresholdGuarantees, point: OperatingPoint) -> None:
    some = _places(found)
    recall, precision = (each.map(lambda of: of[some]) for each in (found.recall, found.precision))
    ax.plot(recall.lowest, precision.lowest, color=BLUE, label="certified")
    ax.plot(recall.observed[1:], precision.observed[1:], color=GREY, label="observed")
    ax.fill(
        np.append(recall.lowest, recall.highest[::-1]),
        np.append(precision.lowest, precision.highest[::-1]),
        color=BLUE,
        alpha=0.15,
        lw=0,
    )
    ax.axhline(found.prevalence.observed, color=LINE, lw=1, ls="--")
    _mark(ax, point.recall, point.precision, upper=False)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("recall")
    ax.set_ylabel("precision")
    ax.set_title("Precision against recall")


def _mark(ax: Any, x: Limits, y: Limits, *, upper: bool) -> None:
    """The chosen point, with the end of its limits that is promised."""
    promised = (x.highest if upper else x.lowest), y.lowest
    ax.plot(
        [x.observed, promised[0]], [y.observed, promised[1]], ":", color=VERMILLION, lw=1, zorder=4
    )
    ax.plot(x.observed, y.observed, "o", mfc="white", color=VERMILLION, zorder=5)
    ax.plot(*promised, "o", color=VERMILLION, zorder=5)


def _cost(ax: Any, found: ThresholdGuarantees, cost: Limits, point: OperatingPoint) -> None:
    finite = _places(found)[1:]
    ends, band = found.threshold[finite], cost.map(lambda of: of[finite])
    ax.fill_between(ends, band.lowest, band.highest, step="post", color=BLUE, alpha=0.15, lw=0)
    ax.step(ends, band.highest, where="post", color=BLUE)
    ax.step(ends, band.observed, where="post", color=GREY)
    ax.plot(point.threshold, point.cost_at_most, "o", color=VERMILLION, label="lowest certified")
    ax.set_ylim(0, 1.05 * float(band.highest.max()))
    ax.set_xlabel("threshold")
    ax.set_ylabel("mean cost of a row")
    ax.set_title("Mean cost against the threshold")
    ax.legend(loc="best")
