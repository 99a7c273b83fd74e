"""Figure of certified rates and costs at every threshold of a probability."""

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
    count_letters,
    new_figure,
    use_style,
)

_HEIGHT = 4.0  # inches
_MAX_LETTERS = 24  # of a class in the title
_N_DRAWN = 400  # most thresholds that are drawn, evenly spread


@use_style
@validate_arguments
def plot_thresholds(
    thresholds: ThresholdGuarantees, false_negative: float = 1.0, false_positive: float = 1.0
) -> Figure:
    """Draw observed and certified rates and costs at every threshold.

    Three panels: the ROC curve; precision against recall; and the mean cost of a row. Grey lines
    are values observed on the calibration set. Bands contain the true values, and blue lines are
    the certified ends of the bands. The marked point is the threshold with the lowest bound on the
    cost. All bands hold together with probability 1 - delta, which the title states.

    Parameters
    ----------
    thresholds : ThresholdGuarantees
        Observed and certified rates at every threshold: the result of `Guarantees.thresholds`.
    false_negative, false_positive : float, default=1
        Cost of a missed row of the positive class of the thresholds, and of a false alarm, which is
        a row of the other class that is predicted to be of the positive class.

    Returns
    -------
    matplotlib Figure
        A new figure.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or both are 0.
    """
    point = thresholds.lowest_cost(false_negative, false_positive)
    assert point.certificate is not None  # It has one, as costs were given.
    figure = new_figure((WIDE, _HEIGHT))
    panels = create_threshold_panels(thresholds, point, (false_negative, false_positive))
    for draw, ax in zip(panels, figure.subplots(1, 3), strict=True):
        draw(ax)
    sure = format_percent(1 - thresholds.terms.delta)
    title = (
        f"At threshold {point.threshold:.3g} a row costs at most {point.certificate.promised} "
        f"({false_negative:.4g} for a missed {shorten_label(str(thresholds.positive), _MAX_LETTERS)}, "
        f"{false_positive:.4g} for a false alarm); all bounds hold together with {sure}"
    )
    wrapped = textwrap.fill(title, count_letters(WIDE, 10.5))
    figure.suptitle(wrapped, x=0.01, ha="left", fontsize=10.5, parse_math=False)
    return figure


def create_threshold_panels(
    thresholds: ThresholdGuarantees, point: OperatingPoint, costs: tuple[float, float]
) -> tuple[Panel, Panel, Panel]:
    """Return three functions, each of which draws a panel on the matplotlib axes that it gets.

    The panels are the ROC curve, precision against recall, and the mean cost, with their certified
    bounds.

    Parameters
    ----------
    thresholds : ThresholdGuarantees
        False positive rate, recall and precision at every threshold: the observed value, and the
        certified lower and upper limit.
    point : OperatingPoint
        The threshold to mark (`threshold`), with the observed value and the certified limits of its
        rates.
    costs : pair of float
        Cost of a missed row of the positive class of the thresholds, and of a false alarm, which is
        a row of the other class that is predicted to be of the positive class.

    Returns
    -------
    tuple of three callables
        Each draws one panel, in this order, on the matplotlib Axes that it is called with.
    """
    return (
        lambda ax: _draw_roc(ax, thresholds, point),
        lambda ax: _draw_precision(ax, thresholds, point),
        lambda ax: _draw_cost(ax, thresholds, thresholds.cost(*costs), point),
    )


def _draw_roc(ax: Any, thresholds: ThresholdGuarantees, point: OperatingPoint) -> None:
    """Draw on axes the observed ROC curve, and the certified band around it.

    The band contains the true curve with the probability of the guarantee. Its lower end combines
    the highest false positive rates with the lowest recalls, its upper end the reverse.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    thresholds : ThresholdGuarantees
        Observed and certified rates at every threshold.
    point : OperatingPoint
        The rates at the threshold to mark.
    """
    false_positives, recall = thresholds.false_positive_rate, thresholds.recall
    rates = np.linspace(0, 1, 501)
    low = _evaluate_step_function(rates, false_positives.highest, recall.lowest)
    high = 1 - _evaluate_step_function(
        1 - rates, 1 - false_positives.lowest[::-1], 1 - recall.highest[::-1]
    )
    ax.fill_between(rates, low, high, color=BLUE, alpha=0.15, lw=0, label="contains the true curve")
    ax.plot(rates, low, color=BLUE, label="certified")
    shown = _select_thresholds(thresholds)
    ax.plot(false_positives.observed[shown], recall.observed[shown], color=GREY, label="observed")
    ax.plot([0, 1], [0, 1], color=LINE, lw=1, ls="--")
    _mark_point(ax, point.false_positive_rate, point.recall, upper=True)
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("recall")
    ax.set_title("ROC curve")
    ax.legend(loc="lower right")


def _select_thresholds(thresholds: ThresholdGuarantees) -> NDArray[np.intp]:
    """Return the indices of at most 400 thresholds to draw, evenly spread over all.

    The first and the last threshold are among them. thresholds: observed and certified rates at
    every threshold.
    """
    last = len(thresholds.threshold) - 1
    return np.unique(np.round(np.linspace(0, last, _N_DRAWN)).astype(np.intp))


def _evaluate_step_function(positions: Float64, x: Float64, y: Float64) -> Float64:
    """Return the value of a rising step function at each position.

    The function is the largest y of the points whose x is at most the position, and 0 if there is
    none.

    Parameters
    ----------
    positions : ndarray of float64, shape (q,)
        Where to evaluate the function.
    x : ndarray of float64, shape (t,)
        Coordinates of the points, ascending.
    y : ndarray of float64, shape (t,)
        Values of the points.

    Returns
    -------
    ndarray of float64, shape (q,)
        The values at the positions, in their order.
    """
    largest = np.append(0.0, np.maximum.accumulate(y))
    return largest[np.searchsorted(x, positions, side="right")]


def _draw_precision(ax: Any, thresholds: ThresholdGuarantees, point: OperatingPoint) -> None:
    """Draw on axes the observed precision against recall, and the certified band around it.

    A dashed line marks the observed fraction of the positive class.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    thresholds : ThresholdGuarantees
        Observed and certified rates at every threshold.
    point : OperatingPoint
        The rates at the threshold to mark.
    """
    shown = _select_thresholds(thresholds)
    recall, precision = (
        limits.map(lambda values: values[shown])
        for limits in (thresholds.recall, thresholds.precision)
    )
    ax.plot(recall.lowest, precision.lowest, color=BLUE, label="certified")
    ax.plot(recall.observed[1:], precision.observed[1:], color=GREY, label="observed")
    ax.fill(
        np.append(recall.lowest, recall.highest[::-1]),
        np.append(precision.lowest, precision.highest[::-1]),
        color=BLUE,
        alpha=0.15,
        lw=0,
    )
    ax.axhline(thresholds.prevalence.observed, color=LINE, lw=1, ls="--")
    _mark_point(ax, point.recall, point.precision, upper=False)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("recall")
    ax.set_ylabel("precision")
    ax.set_title("Precision against recall")


def _mark_point(ax: Any, x: Limits, y: Limits, *, upper: bool) -> None:
    """Mark the chosen threshold on axes: its observed rates, joined to their certified limits.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    x, y : Limits
        `observed`, `lowest` and `highest` value, at the chosen threshold, of the rate on the x axis
        and of that on the y axis; the last two are limits for new rows. The lowest y is marked as
        certified.
    upper : bool
        Whether the highest x is marked as certified, as for the false positive rate, instead of the
        lowest, as for recall.
    """
    certified = (x.highest if upper else x.lowest), y.lowest
    ax.plot(
        [x.observed, certified[0]],
        [y.observed, certified[1]],
        ":",
        color=VERMILLION,
        lw=1,
        zorder=4,
    )
    ax.plot(x.observed, y.observed, "o", mfc="white", color=VERMILLION, zorder=5)
    ax.plot(*certified, "o", color=VERMILLION, zorder=5)


def _draw_cost(
    ax: Any, thresholds: ThresholdGuarantees, cost: Limits, point: OperatingPoint
) -> None:
    """Draw on axes the observed mean cost of a row by threshold, and the certified band around it.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    thresholds : ThresholdGuarantees
        Its `threshold` has the t thresholds, of which the first is infinite and not drawn.
    cost : Limits
        Observed mean cost, and its certified lower and upper limit, at every threshold, (t,) each.
    point : OperatingPoint
        The threshold to mark, with the upper limit of its cost if costs chose it.
    """
    # The first threshold is infinite.
    finite = _select_thresholds(thresholds)[1:]
    positions, band = thresholds.threshold[finite], cost.map(lambda values: values[finite])
    ax.fill_between(positions, band.lowest, band.highest, step="post", color=BLUE, alpha=0.15, lw=0)
    ax.step(positions, band.highest, where="post", color=BLUE)
    ax.step(positions, band.observed, where="post", color=GREY)
    if point.certificate is None:
        ax.axvline(point.threshold, color=VERMILLION, ls=":", label="chosen threshold")
    else:
        ax.plot(point.threshold, point.cost_at_most, "o", color=VERMILLION, label="lowest bound")
    ax.set_ylim(0, 1.05 * float(band.highest.max()))
    ax.set_xlabel("threshold")
    ax.set_ylabel("mean cost of a row")
    ax.set_title("Mean cost against the threshold")
    ax.legend(loc="best")
