"""How often a classifier is right where it says how sure it is."""

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
from certree.interface.signatures import validate_arguments
from certree.show.style import BLUE, LINE, Figure, axes_of, styled, titled

# Probability that an interval misses, and letters of a class at most.
_DELTA, _LETTERS = 0.05, 24


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Rows in groups of like predicted probability, and how often each came true.

    Parameters
    ----------
    said : ndarray of shape (b,)
        Mean predicted probability of every group.
    found : ndarray of shape (b,)
        Share of its rows that have the class.
    low, high : ndarray of shape (b,)
        Interval that contains the frequency of the class there with probability 95 %, exact
        (Clopper and Pearson, Biometrika 1934).
    rows : ndarray of shape (b,)
        Rows in every group.
    """

    said: Float64
    found: Float64
    low: Float64
    high: Float64
    rows: Float64

    @property
    def error(self) -> float:
        """The expected calibration error: how far groups are off, on average over rows."""
        return float(np.average(np.abs(self.said - self.found), weights=self.rows))

    @property
    def misses(self) -> int:
        """Groups whose interval does not contain what was said."""
        return int(((self.said < self.low) | (self.said > self.high)).sum())


def exact_interval(hits: float, n: float, delta: float = _DELTA) -> tuple[float, float]:
    """Where the probability of a hit lies, with probability 1 - delta: Clopper and Pearson."""
    log_delta = math.log(delta / 2)
    return 1 - binomial_upper(n - hits, n, log_delta), binomial_upper(hits, n, log_delta)


def reliability(came_true: ArrayLike, said: ArrayLike, bins: int = 10) -> Reliability:
    """Compare predicted probabilities with what came true, in groups of equally many rows.

    Equal probabilities stay together, so there may be fewer groups than asked for.
    """
    came_true, said = np.asarray(came_true, dtype=np.float64), np.asarray(said, dtype=np.float64)
    edges = np.unique(np.quantile(said, np.linspace(0, 1, bins + 1)[1:-1]))
    group = np.searchsorted(edges, said, side="left")
    sums = [np.bincount(group, values) for values in (np.ones(len(said)), came_true, said)]
    rows, hits, total = np.array([one[sums[0] > 0] for one in sums])
    ends = [exact_interval(hit, n) for hit, n in zip(hits, rows, strict=True)]
    low, high = np.array(ends).T
    return Reliability(total / rows, hits / rows, low, high, rows)


@styled
@validate_arguments
def plot_calibration(
    model: Any, X: ArrayLike, y: ArrayLike, bins: int = 10, ax: Any = None
) -> Figure:
    """Draw how often predictions come true against how probable they were said to be.

    Rows are in groups of like probability, equally many in each. Of two classes it is that of the
    second; of more, that of the predicted class. Bars are exact intervals that hold with 95 % for each
    group.

    Parameters
    ----------
    model : fitted classifier with `predict_proba`
        Any classifier in scikit-learn's sense.
    X : array-like of shape (n, p)
        Rows, best such that the model has not seen.
    y : array-like of shape (n,)
        Their classes.
    bins : int, default=10
        Number of groups at most.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    TypeError
        If the model has no `predict_proba`.
    ValueError
        If rows and classes do not go together, or there is no group.
    """
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"model must have predict_proba, {type(model).__name__} has none")
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins!r}")
    check_one_target("a picture of probabilities", model)
    shares, truth = np.asarray(model.predict_proba(X)), column_or_1d(y)
    check_consistent_length(shares, truth)
    expect_known_labels("y", truth, np.asarray(model.classes_))
    return draw_reliability(*compared(np.asarray(model.classes_), shares, truth, bins), ax)


def compared(
    classes: NDArray[Any], shares: Float64, y: NDArray[Any], bins: int = 10
) -> tuple[str, Reliability]:
    """The class whose probability is asked about, and what came true of it."""
    if len(classes) == 2:
        return str(classes[1]), reliability(y == classes[1], shares[:, 1], bins)
    is_right = y == classes[shares.argmax(axis=1)]
    return "the predicted class", reliability(is_right, shares.max(axis=1), bins)


@styled
def draw_reliability(subject: str, found: Reliability, ax: Any = None) -> Figure:
    """Draw groups of rows beside the line of what was said."""
    ax = axes_of(ax, (4.8, 4.6))
    ax.plot([0, 1], [0, 1], color=LINE, lw=1, ls="--", label="as said", zorder=1)
    bars = [np.maximum(found.found - found.low, 0), np.maximum(found.high - found.found, 0)]
    label = f"{len(found.rows)} groups of some {found.rows.mean():,.0f} rows, 95 % intervals"
    ax.errorbar(
        found.said, found.found, bars, fmt="o-", color=BLUE, lw=1, elinewidth=1.2, label=label
    )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    ax.set_xlabel(f"predicted probability of {shorten_label(subject, _LETTERS)}", parse_math=False)
    ax.set_ylabel("share of rows that have it")
    ax.legend(loc="upper left")
    titled(
        ax,
        f"Probabilities are off by {100 * found.error:.1f} points on average;\n"
        f"{found.misses} of {len(found.rows)} groups lie outside their interval",
    )
    drawn: Figure = ax.figure
    return drawn
