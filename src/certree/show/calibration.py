"""Reliability of predicted probabilities: how often predictions of a probability come true."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from certree.certificates.hold_out import expect_known_labels
from certree.certificates.inequalities.bounds import binomial_upper
from certree.interface.arrays import Float64
from certree.interface.fitted_state import check_one_target
from certree.interface.formatting import shorten_label
from certree.interface.positive_class import find_positive_class
from certree.interface.signatures import validate_arguments
from certree.show.style import BLUE, LINE, Figure, get_axes, set_title, use_style

# Probability that an interval does not contain the frequency.
_DELTA = 0.05
# Most letters of a class in a label.
_MAX_LETTERS = 24


@dataclass(frozen=True, slots=True, eq=False)
class ReliabilityCurve:
    """Predicted probabilities and observed frequencies in b groups of rows.

    The rows of a group have similar predicted probabilities of an event, such as a class.
    Groups are ordered by this probability. `compute_reliability_curve` makes the object.

    Parameters
    ----------
    predicted : ndarray of float64, shape (b,)
        Mean predicted probability of each group.
    observed : ndarray of float64, shape (b,)
        Fraction of the rows of each group for which the event happened.
    low, high : ndarray of float64, shape (b,)
        Ends of the exact 95 % interval of the probability of the event in each group (Clopper and
        Pearson, Biometrika 1934).
    n_rows : ndarray of float64, shape (b,)
        Number of rows of each group.
    """

    predicted: Float64
    observed: Float64
    low: Float64
    high: Float64
    n_rows: Float64

    @property
    def error(self) -> float:
        """Expected calibration error: mean absolute difference of `predicted` and `observed`.

        The mean over the groups is weighted by their numbers of rows.
        """
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.n_rows))

    @property
    def n_misses(self) -> int:
        """Number of groups whose mean predicted probability is below `low` or above `high`."""
        return int(((self.predicted < self.low) | (self.predicted > self.high)).sum())


def compute_clopper_pearson_interval(
    hits: float, n: float, delta: float = _DELTA
) -> tuple[float, float]:
    """Return the ends of the exact confidence interval of the probability of an event.

    The interval contains the true probability with probability at least 1 - delta (Clopper and
    Pearson, Biometrika 1934).

    Parameters
    ----------
    hits : float
        Number of draws in which the event happened.
    n : float
        Number of independent draws.
    delta : float, default=0.05
        Largest probability that the interval misses the true probability, half of it at each end.

    Returns
    -------
    low, high : float
        Lower and upper end of the interval, between 0 and 1.
    """
    log_delta = math.log(delta / 2)
    return 1 - binomial_upper(n - hits, n, log_delta), binomial_upper(hits, n, log_delta)


def compute_reliability_curve(
    is_event: ArrayLike, probabilities: ArrayLike, bins: int = 10
) -> ReliabilityCurve:
    """Group rows by predicted probability, and compute the observed frequency in each group.

    Parameters
    ----------
    is_event : array-like of bool, shape (n,)
        For each row, whether the event happened, such as that the row is of a class.
    probabilities : array-like of shape (n,)
        For each row, the predicted probability of the event.
    bins : int, default=10
        Number of groups of about equal size, at least 1. Rows of equal probability are in one
        group, so there may be fewer groups.

    Returns
    -------
    ReliabilityCurve
        Mean predicted probability and observed frequency of each group, by ascending probability.
    """
    is_event = np.asarray(is_event, dtype=np.float64)
    probabilities = np.asarray(probabilities, dtype=np.float64)
    edges = np.unique(np.quantile(probabilities, np.linspace(0, 1, bins + 1)[1:-1]))
    group = np.searchsorted(edges, probabilities, side="left")
    columns = (np.ones(len(probabilities)), is_event, probabilities)
    sums = [np.bincount(group, values) for values in columns]
    n_rows, hits, total = np.array([values[sums[0] > 0] for values in sums])
    intervals = [
        compute_clopper_pearson_interval(hit, n) for hit, n in zip(hits, n_rows, strict=True)
    ]
    low, high = np.array(intervals).T
    return ReliabilityCurve(total / n_rows, hits / n_rows, low, high, n_rows)


@use_style
@validate_arguments
def plot_calibration(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    bins: int = 10,
    ax: Any = None,
    *,
    pos_label: Any = None,
) -> Figure:
    """Draw a reliability diagram: observed frequencies against predicted probabilities.

    Rows are grouped by probability; the groups have about equal size. With two classes the
    probability is that of the positive class; with more, it is that of the predicted class, and is
    compared with the accuracy. Error bars are exact 95 % intervals, each for its own group.

    Parameters
    ----------
    model : fitted classifier with `predict_proba`
        Any classifier with scikit-learn's interface.
    X : array-like of shape (n, p)
        Rows, preferably rows that were not used to fit the model.
    y : array-like of shape (n,)
        Classes of the rows.
    bins : int, default=10
        Largest number of groups.
    ax : matplotlib Axes or None
        Axes to draw on; None: those of a new figure.
    pos_label : object or None
        The positive one of two classes; None: the second of ``classes_``.

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    TypeError
        If the model has no `predict_proba`.
    ValueError
        If X and y differ in length, y has classes that the model lacks, `bins` is below 1, or
        `pos_label` is not one of two classes.
    """
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"model must have predict_proba, but {type(model).__name__} has none: pass a classifier "
            "that predicts probabilities"
        )
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins!r}")
    check_one_target("a picture of probabilities", model)
    probabilities, labels = np.asarray(model.predict_proba(X)), column_or_1d(y)
    check_consistent_length(probabilities, labels)
    classes = np.asarray(model.classes_)
    expect_known_labels("y", labels, classes)
    return draw_reliability(
        *compute_classifier_reliability(classes, probabilities, labels, bins, pos_label), ax
    )


def compute_classifier_reliability(
    classes: NDArray[Any],
    probabilities: Float64,
    y: NDArray[Any],
    bins: int = 10,
    pos_label: Any = None,
) -> tuple[str, ReliabilityCurve]:
    """Compare the probabilities of a classifier with observed frequencies, in groups of rows.

    With two classes, the probability of the positive class is compared with its frequency. With
    more, the probability of the predicted class is compared with the accuracy.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        The classes.
    probabilities : ndarray of shape (n, K)
        Predicted probabilities.
    y : ndarray of shape (n,)
        True classes.
    bins : int, default=10
        Largest number of groups, as in `compute_reliability_curve`.
    pos_label : object or None
        The positive one of two classes; None: the second.

    Returns
    -------
    subject : str
        Whose probability is compared: the name of the positive one of two classes, else "the predicted
        class".
    curve : ReliabilityCurve
        Predicted probability and observed frequency in each group of rows.
    """
    positive = find_positive_class(classes, pos_label)
    if len(classes) == 2:
        return str(classes[positive]), compute_reliability_curve(
            y == classes[positive], probabilities[:, positive], bins
        )
    is_right = y == classes[probabilities.argmax(axis=1)]
    return "the predicted class", compute_reliability_curve(
        is_right, probabilities.max(axis=1), bins
    )


@use_style
def draw_reliability(subject: str, curve: ReliabilityCurve, ax: Any = None) -> Figure:
    """Draw a reliability diagram: observed frequencies against predicted probabilities.

    Parameters
    ----------
    subject : str
        Whose probability is predicted, for the label of the axis: the name of a class, or "the
        predicted class".
    curve : ReliabilityCurve
        Predicted probability and observed frequency in each group of rows.
    ax : matplotlib Axes or None
        Axes to draw on; None: those of a new figure.

    Returns
    -------
    matplotlib Figure
        The figure of the axes.
    """
    ax = get_axes(ax, (4.8, 4.6))
    ax.plot([0, 1], [0, 1], color=LINE, lw=1, ls="--", label="perfectly calibrated", zorder=1)
    bars = [
        np.maximum(curve.observed - curve.low, 0),
        np.maximum(curve.high - curve.observed, 0),
    ]
    mean_rows = curve.n_rows.mean()
    label = f"{len(curve.n_rows)} groups of about {mean_rows:,.0f} rows, 95 % intervals"
    points = curve.predicted, curve.observed
    ax.errorbar(*points, bars, fmt="o-", color=BLUE, lw=1, elinewidth=1.2, label=label)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    ax.set_xlabel(
        f"predicted probability of {shorten_label(subject, _MAX_LETTERS)}", parse_math=False
    )
    ax.set_ylabel("observed frequency")
    ax.legend(loc="upper left")
    set_title(
        ax,
        f"Mean calibration error: {100 * curve.error:.1f} percentage points.\n"
        f"{curve.n_misses} of {len(curve.n_rows)} groups are outside their 95 % interval",
    )
    figure: Figure = ax.figure
    return figure
