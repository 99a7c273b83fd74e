"""How well scores put two classes in order: ROC, precision, Kolmogorov-Smirnov, and costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from certree.certificates.hold_out import expect_known_labels
from certree.interface.arrays import Float64
from certree.interface.fitted_state import check_one_target
from certree.interface.formatting import shorten_label
from certree.interface.signatures import validate_arguments
from certree.show.style import (
    BLUE,
    GREY,
    LINE,
    ORANGE,
    VERMILLION,
    WIDE,
    Figure,
    Panel,
    new_figure,
    styled,
)

_HEIGHT, _LETTERS = 7.2, 24  # inches, and letters of a class at most
_STANDARD_ERRORS = 1.96  # to either side, for 95 %


@dataclass(frozen=True, eq=False)
class Ranking:
    """What is met above each threshold of a score, observed on some rows.

    Parameters
    ----------
    threshold : ndarray of shape (t,)
        The scores that occur, falling; rows with at least that score are taken for positive.
    hits : ndarray of shape (t,)
        Positive rows with at least that score.
    alarms : ndarray of shape (t,)
        Negative rows with at least that score.
    """

    threshold: Float64
    hits: Float64
    alarms: Float64

    @classmethod
    def of(cls, came_true: NDArray[np.bool_], score: Float64) -> Ranking:
        """Count rows of both classes by their score."""
        distinct, place = np.unique(-score, return_inverse=True)
        both = [np.bincount(place[one], minlength=len(distinct)) for one in (came_true, ~came_true)]
        hits, alarms = (np.cumsum(each).astype(np.float64) for each in both)
        return cls(-distinct, hits, alarms)

    @property
    def recall(self) -> Float64:
        """Share of the positive rows that are taken, (t,)."""
        return self.hits / self.hits[-1]

    @property
    def false_positive_rate(self) -> Float64:
        """Share of the negative rows that are taken, (t,)."""
        return self.alarms / self.alarms[-1]

    @property
    def precision(self) -> Float64:
        """Share of the taken rows that are positive, (t,)."""
        return self.hits / (self.hits + self.alarms)

    @property
    def prevalence(self) -> float:
        """Share of all rows that are positive."""
        return float(self.hits[-1] / (self.hits[-1] + self.alarms[-1]))

    @cached_property
    def _placements(self) -> tuple[Float64, Float64, Float64, Float64]:
        """Of each score its rows of both classes, and the share of the other class that it beats."""
        of_class = [np.diff(each, prepend=0.0) for each in (self.hits, self.alarms)]
        below = 1 - self.false_positive_rate + of_class[1] / 2 / self.alarms[-1]
        above = self.recall - of_class[0] / 2 / self.hits[-1]
        return of_class[0], of_class[1], below, above

    @property
    def auc(self) -> float:
        """The area under the ROC curve: how often a positive row scores above a negative one."""
        positive, _, below, _ = self._placements
        return float(np.average(below, weights=positive))

    @property
    def auc_interval(self) -> tuple[float, float]:
        """Where the area lies on new rows with about 95 %.

        By the standard error of DeLong, DeLong and Clarke-Pearson, Biometrics 1988.
        """
        area, variance = self.auc, 0.0
        positive, negative, below, above = self._placements
        for rows, placed in ((positive, below), (negative, above)):
            n = rows.sum()
            if n > 1:
                variance += float(rows @ (placed - area) ** 2) / (n - 1) / n
        off = _STANDARD_ERRORS * math.sqrt(variance)
        return max(area - off, 0.0), min(area + off, 1.0)

    @property
    def average_precision(self) -> float:
        """The mean precision over the positive rows, each at its own score."""
        return float(np.average(self.precision, weights=np.diff(self.hits, prepend=0.0)))

    @property
    def ks(self) -> tuple[float, float]:
        """Kolmogorov and Smirnov's distance of the classes' scores, and the threshold where it is."""
        apart = self.recall - self.false_positive_rate
        place = int(np.argmax(apart))
        return max(float(apart[place]), 0.0), float(self.threshold[place])

    def cost(self, false_negative: float, false_positive: float) -> Float64:
        """Mean cost of a row at every threshold, (t,)."""
        n = self.hits[-1] + self.alarms[-1]
        return (false_negative * (self.hits[-1] - self.hits) + false_positive * self.alarms) / n


def ranking_of(model: Any, shares: Float64, y: NDArray[Any]) -> Ranking:
    """How the shares of the second of two classes put rows in order.

    Raises
    ------
    ValueError
        If there are not two classes, or no row of one of them.
    """
    classes = np.asarray(model.classes_)
    if len(classes) != 2:
        raise ValueError(f"a ranking is of two classes, and the model has {len(classes)}")
    came_true = y == classes[1]
    if came_true.all() or not came_true.any():
        raise ValueError("a ranking takes rows of both classes, got those of one")
    return Ranking.of(came_true, shares[:, 1])


@styled
@validate_arguments
def plot_ranking(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    false_negative: float = 1.0,
    false_positive: float = 1.0,
) -> Figure:
    """Draw how well the probabilities of a classifier put rows of two classes in order.

    Four pictures: the ROC curve; precision against recall; the share of each class with a score below
    each threshold, whose largest distance is the statistic of Kolmogorov and Smirnov; and the mean cost
    of a row. All is observed on the rows given; `plot_thresholds` draws what is promised.

    Parameters
    ----------
    model : fitted classifier of two classes with `predict_proba`
        Any classifier in scikit-learn's sense.
    X : array-like of shape (n, p)
        Rows, best such that the model has not seen.
    y : array-like of shape (n,)
        Their classes.
    false_negative, false_positive : float, default=1
        What a missed row of the second class costs, and a false alarm.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    TypeError
        If the model has no `predict_proba`.
    ValueError
        If there are not two classes, no row of one of them, or a cost is negative, or both are 0.
    """
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"model must have predict_proba, {type(model).__name__} has none")
    check_one_target("a picture of ranks", model)
    shares, truth = np.asarray(model.predict_proba(X)), column_or_1d(y)
    check_consistent_length(shares, truth)
    expect_known_labels("y", truth, np.asarray(model.classes_))
    found = ranking_of(model, shares, truth)
    return draw_ranking(found, str(model.classes_[1]), false_negative, false_positive)


def expect_costs(false_negative: float, false_positive: float) -> None:
    """Check what two errors cost.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or both are 0.
    """
    both = (false_negative, false_positive)
    if not all(0 <= cost < math.inf for cost in both) or max(both) == 0:
        raise ValueError(f"costs must be finite and >= 0, and not both 0, got {both}")


@styled
def draw_ranking(
    found: Ranking, positive: str, false_negative: float = 1.0, false_positive: float = 1.0
) -> Figure:
    """Draw the four pictures."""
    expect_costs(false_negative, false_positive)
    figure = new_figure((WIDE * 0.8, _HEIGHT))
    panels = ranking_panels(found, positive, (false_negative, false_positive))
    for draw, ax in zip(panels, figure.subplots(2, 2).flat, strict=True):
        draw(ax)
    return figure


def ranking_panels(
    found: Ranking, positive: str, costs: tuple[float, float]
) -> tuple[Panel, Panel, Panel, Panel]:
    """What draws each of the four."""
    return (
        lambda ax: _draw_roc(ax, found),
        lambda ax: _draw_precision(ax, found),
        lambda ax: _draw_ks(ax, found, shorten_label(positive, _LETTERS)),
        lambda ax: _draw_cost(ax, found, *costs),
    )


def _draw_roc(ax: Any, found: Ranking) -> None:
    ax.plot([0, 1], [0, 1], color=LINE, lw=1, ls="--")
    ax.plot(np.append(0, found.false_positive_rate), np.append(0, found.recall), color=BLUE)
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("recall")
    ax.set_title(f"ROC curve: area {found.auc:.3f}")


def _draw_precision(ax: Any, found: Ranking) -> None:
    ax.axhline(found.prevalence, color=LINE, lw=1, ls="--")
    ax.plot(found.recall, found.precision, color=BLUE)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("recall")
    ax.set_ylabel("precision")
    ax.set_title(f"Precision: {found.average_precision:.3f} on average")


def _draw_ks(ax: Any, found: Ranking, positive: str) -> None:
    distance, threshold = found.ks
    at, place = found.threshold, int(np.argmax(found.recall - found.false_positive_rate))
    below = [1 - found.recall, 1 - found.false_positive_rate]
    ax.step(at, below[1], where="post", color=GREY, label="all others")
    ax.step(at, below[0], where="post", color=ORANGE, label=positive)
    ax.plot([threshold] * 2, [below[0][place], below[1][place]], "o-", color=VERMILLION, lw=1)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("threshold")
    ax.set_ylabel("share of the class below it")
    ax.legend(loc="best").get_texts()[1].set_parse_math(False)
    ax.set_title(f"Kolmogorov-Smirnov: {distance:.3f} at {threshold:.3g}")


def _draw_cost(ax: Any, found: Ranking, false_negative: float, false_positive: float) -> None:
    cost = found.cost(false_negative, false_positive)
    place = int(np.argmin(cost))
    ax.step(found.threshold, cost, where="post", color=BLUE)
    ax.plot(found.threshold[place], cost[place], "o", color=VERMILLION)
    ax.set_ylim(0, 1.05 * float(cost.max()) or 1.0)
    ax.set_xlabel("threshold")
    ax.set_ylabel("mean cost of a row")
    ax.set_title(f"Cost: least at {found.threshold[place]:.3g}")
