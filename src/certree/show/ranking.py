"""Ranking by scores of two classes: ROC curve, precision and recall, Kolmogorov-Smirnov, costs."""

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
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import check_one_target
from certree.interface.formatting import shorten_label
from certree.interface.positive_class import find_positive_class
from certree.interface.signatures import validate_arguments
from certree.show.calibration import plot_calibration
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
    use_style,
)

_HEIGHT = 7.2  # inches
_MAX_LETTERS = 24  # of a class in a legend
_STANDARD_ERRORS = 1.96  # half the width of a 95 % interval


@dataclass(frozen=True, eq=False)
class Ranking:
    """True and false positives of two classes at each threshold of a score, counted on some rows.

    The rows of the positive class are positive, all others negative. A row is predicted positive if
    its score is at least the threshold. `rank_rows` makes a ranking.

    Parameters
    ----------
    threshold : ndarray of float64, shape (t,)
        The distinct scores, in decreasing order.
    true_positives : ndarray of float64, shape (t,)
        Number of positive rows with at least that score; the last entry counts all.
    false_positives : ndarray of float64, shape (t,)
        Number of negative rows with at least that score; the last entry counts all.
    """

    threshold: Float64
    true_positives: Float64
    false_positives: Float64

    @classmethod
    def from_scores(cls, is_positive: NDArray[np.bool_], score: Float64) -> Ranking:
        """Count true and false positives at each distinct score as threshold; return a ranking.

        is_positive: whether each row is of the positive class, (n,). score: scores of the rows, (n,);
        a row is predicted positive if its score is at least the threshold. There must be rows of
        both classes.
        """
        distinct, index = np.unique(-score, return_inverse=True)
        counts = [
            np.bincount(index[is_class], minlength=len(distinct))
            for is_class in (is_positive, ~is_positive)
        ]
        positives, negatives = (np.cumsum(count).astype(np.float64) for count in counts)
        return cls(-distinct, positives, negatives)

    @property
    def recall(self) -> Float64:
        """Fraction of the positive rows that are predicted positive at each threshold, (t,).

        The thresholds are the distinct scores, in decreasing order.
        """
        return self.true_positives / self.true_positives[-1]

    @property
    def false_positive_rate(self) -> Float64:
        """Fraction of the negative rows that are predicted positive at each threshold, (t,).

        The thresholds are the distinct scores, in decreasing order.
        """
        return self.false_positives / self.false_positives[-1]

    @property
    def precision(self) -> Float64:
        """True positives as a fraction of the rows predicted positive, at each threshold, (t,).

        The thresholds are the distinct scores, in decreasing order.
        """
        return self.true_positives / (self.true_positives + self.false_positives)

    @property
    def prevalence(self) -> float:
        """Fraction of all rows that are positive."""
        n_positive, n_negative = self.true_positives[-1], self.false_positives[-1]
        return float(n_positive / (n_positive + n_negative))

    @cached_property
    def _placements(self) -> tuple[Float64, Float64, Float64, Float64]:
        """The numbers from which DeLong's variance of the area under the ROC curve is computed.

        Returns
        -------
        positive, negative : ndarray of float64, shape (t,)
            Number of positive and of negative rows at each distinct score, in decreasing order of
            the scores.
        below : ndarray of float64, shape (t,)
            Fraction of the negative rows with a lower score; equal scores count half.
        above : ndarray of float64, shape (t,)
            Fraction of the positive rows with a higher score; equal scores count half.
        """
        positive = np.diff(self.true_positives, prepend=0.0)
        negative = np.diff(self.false_positives, prepend=0.0)
        below = 1 - self.false_positive_rate + negative / 2 / self.false_positives[-1]
        above = self.recall - positive / 2 / self.true_positives[-1]
        return positive, negative, below, above

    @property
    def auc(self) -> float:
        """Area under the ROC curve: probability that a positive row scores above a negative one.

        Both rows are drawn at random; equal scores count half.
        """
        positive, _, below, _ = self._placements
        return float(np.average(below, weights=positive))

    @property
    def auc_interval(self) -> tuple[float, float]:
        """Ends of an approximate 95 % interval of the area under the ROC curve on new rows.

        It is the area plus and minus 1.96 standard errors of DeLong, DeLong and Clarke-Pearson,
        Biometrics 1988, between 0 and 1.
        """
        area, variance = self.auc, 0.0
        positive, negative, below, above = self._placements
        for counts, placements in ((positive, below), (negative, above)):
            n = counts.sum()
            if n > 1:
                variance += float(counts @ (placements - area) ** 2) / (n - 1) / n
        half_width = _STANDARD_ERRORS * math.sqrt(variance)
        return max(area - half_width, 0.0), min(area + half_width, 1.0)

    @property
    def average_precision(self) -> float:
        """Mean over the positive rows of the precision at the threshold equal to their score."""
        return float(np.average(self.precision, weights=np.diff(self.true_positives, prepend=0.0)))

    @property
    def ks(self) -> tuple[float, float]:
        """Kolmogorov-Smirnov statistic, and the threshold of the score where it is reached.

        The statistic is the largest value of recall minus false positive rate over all thresholds,
        and at least 0.
        """
        distance = self.recall - self.false_positive_rate
        best = int(np.argmax(distance))
        return max(float(distance[best]), 0.0), float(self.threshold[best])

    def cost(self, false_negative: float, false_positive: float) -> Float64:
        """Return the mean cost of a row at every threshold, (t,), in decreasing order of thresholds.

        false_negative: cost of a positive row that is predicted negative. false_positive: cost of a
        negative row that is predicted positive. Rows that are predicted right cost nothing.
        """
        n = self.true_positives[-1] + self.false_positives[-1]
        n_missed = self.true_positives[-1] - self.true_positives
        return (false_negative * n_missed + false_positive * self.false_positives) / n


def rank_rows(
    model: Any, probabilities: Float64, y: NDArray[Any], pos_label: Any = None
) -> Ranking:
    """Return true and false positives at each threshold of the probability of the positive class.

    Parameters
    ----------
    model : fitted classifier
        The model that predicted the probabilities; only its `classes_` are read.
    probabilities : ndarray of shape (n, 2)
        Predicted probabilities of the two classes.
    y : ndarray of shape (n,)
        True classes.
    pos_label : object or None
        The positive class; None: the second.

    Returns
    -------
    Ranking
        The rows of the positive class count as positive.

    Raises
    ------
    ValueError
        If the model does not have two classes, `pos_label` is not one of them, or all rows are of
        one class.
    """
    classes = np.asarray(model.classes_)
    if len(classes) != 2:
        raise ValueError(
            f"model must have two classes to rank rows, got {len(classes)}: pass a binary classifier"
        )
    positive = find_positive_class(classes, pos_label)
    is_positive = y == classes[positive]
    if is_positive.all() or not is_positive.any():
        raise ValueError(
            f"y must have rows of both classes to rank them, got rows of class {y[0]!r} alone: pass "
            "rows of both"
        )
    return Ranking.from_scores(is_positive, probabilities[:, positive])


@use_style
@validate_arguments
@copy_descriptions_from(plot_calibration)
def plot_ranking(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    false_negative: float = 1.0,
    false_positive: float = 1.0,
    *,
    pos_label: Any = None,
) -> Figure:
    """Draw how well the probabilities of a classifier rank rows of two classes.

    Four panels: the ROC curve; precision against recall; the score distribution functions of both
    classes, whose largest distance is the Kolmogorov-Smirnov statistic; and the mean cost of a row.
    All are measured on the given rows, without guarantees; `plot_thresholds` draws certified
    bounds.

    Parameters
    ----------
    model : fitted classifier of two classes with `predict_proba`
        Any classifier of two classes with scikit-learn's interface.
    {X} {y}
    false_negative, false_positive : float, default=1
        Cost of a missed row of the positive class, and of a false alarm, which is a row of the
        other class that is predicted to be of the positive class.
    pos_label : object or None
        The positive class, whose probability ranks the rows; None: the second of ``classes_``.

    Returns
    -------
    matplotlib Figure
        A new figure.

    Raises
    ------
    TypeError
        If the model has no `predict_proba`.
    ValueError
        If there are not two classes, `pos_label` is not one of them, a class has no rows, a cost is
        negative, or both costs are 0.
    """
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"model must have predict_proba, but {type(model).__name__} has none: pass a classifier "
            "that predicts probabilities"
        )
    check_one_target("a picture of ranks", model)
    probabilities, labels = np.asarray(model.predict_proba(X)), column_or_1d(y)
    check_consistent_length(probabilities, labels)
    classes = np.asarray(model.classes_)
    expect_known_labels("y", labels, classes)
    ranking = rank_rows(model, probabilities, labels, pos_label)
    positive = str(classes[find_positive_class(classes, pos_label)])
    return draw_ranking(ranking, positive, false_negative, false_positive)


def check_costs(false_negative: float, false_positive: float) -> None:
    """Check that the costs of wrong predictions are finite and not negative, and not both 0.

    Parameters
    ----------
    false_negative, false_positive : float
        Cost of a missed row of the positive class, and of a false alarm, which is a row of the
        other class that is predicted to be of the positive class.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or both are 0.
    """
    costs = (false_negative, false_positive)
    if not all(0 <= cost < math.inf for cost in costs) or max(costs) == 0:
        raise ValueError(
            "costs of a missed row (false_negative) and of a false alarm (false_positive) must be "
            f"finite and >= 0, and not both 0, got {costs}"
        )


@use_style
def draw_ranking(
    ranking: Ranking, positive: str, false_negative: float = 1.0, false_positive: float = 1.0
) -> Figure:
    """Draw four panels on a new figure: ROC curve, precision, Kolmogorov-Smirnov, and mean cost.

    Parameters
    ----------
    ranking : Ranking
        Numbers of true and false positives at each threshold.
    positive : str
        Name of the positive class.
    false_negative, false_positive : float, default=1
        Cost of a missed row of the positive class, and of a false alarm, which is a row of the
        other class that is predicted to be of the positive class.

    Returns
    -------
    matplotlib Figure
        A new figure with 2 x 2 panels.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or both are 0.
    """
    check_costs(false_negative, false_positive)
    figure = new_figure((WIDE * 0.8, _HEIGHT))
    panels = create_ranking_panels(ranking, positive, (false_negative, false_positive))
    for draw, ax in zip(panels, figure.subplots(2, 2).flat, strict=True):
        draw(ax)
    return figure


def create_ranking_panels(
    ranking: Ranking, positive: str, costs: tuple[float, float]
) -> tuple[Panel, Panel, Panel, Panel]:
    """Return four functions, each of which draws a panel on the matplotlib axes that it gets.

    The panels are the ROC curve, precision against recall, the Kolmogorov-Smirnov distance, and the
    mean cost.

    Parameters
    ----------
    ranking : Ranking
        Numbers of true and false positives at each threshold.
    positive : str
        Name of the positive class.
    costs : pair of float
        Cost of a missed row of the positive class, and of a false alarm, which is a row of the
        other class that is predicted to be of the positive class.

    Returns
    -------
    tuple of four callables
        Each draws one panel, in this order, on the matplotlib Axes that it is called with.
    """
    return (
        lambda ax: _draw_roc(ax, ranking),
        lambda ax: _draw_precision(ax, ranking),
        lambda ax: _draw_ks(ax, ranking, shorten_label(positive, _MAX_LETTERS)),
        lambda ax: _draw_cost(ax, ranking, *costs),
    )


def _draw_roc(ax: Any, ranking: Ranking) -> None:
    """Draw the ROC curve of a ranking on matplotlib axes, with its area in the title.

    The x axis is the false positive rate, the y axis the recall. ax: matplotlib Axes. ranking:
    numbers of true and false positives at each threshold.
    """
    ax.plot([0, 1], [0, 1], color=LINE, lw=1, ls="--")
    ax.plot(np.append(0, ranking.false_positive_rate), np.append(0, ranking.recall), color=BLUE)
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("recall")
    ax.set_title(f"ROC curve: area {ranking.auc:.3f}")


def _draw_precision(ax: Any, ranking: Ranking) -> None:
    """Draw precision against recall on matplotlib axes, with the average precision in the title.

    A dashed line marks the fraction of positive rows, the precision of a random ranking. ax:
    matplotlib Axes. ranking: true and false positives at each threshold.
    """
    ax.axhline(ranking.prevalence, color=LINE, lw=1, ls="--")
    ax.plot(ranking.recall, ranking.precision, color=BLUE)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("recall")
    ax.set_ylabel("precision")
    ax.set_title(f"Average precision: {ranking.average_precision:.3f}")


def _draw_ks(ax: Any, ranking: Ranking, positive: str) -> None:
    """Draw for each threshold the fraction of each class with a lower score, on matplotlib axes.

    The largest distance of the two curves, the Kolmogorov-Smirnov statistic, is marked.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    ranking : Ranking
        Numbers of true and false positives at each threshold.
    positive : str
        Name of the positive class.
    """
    distance, threshold = ranking.ks
    best = int(np.argmax(ranking.recall - ranking.false_positive_rate))
    below = [1 - ranking.recall, 1 - ranking.false_positive_rate]
    ax.step(ranking.threshold, below[1], where="post", color=GREY, label="other class")
    ax.step(ranking.threshold, below[0], where="post", color=ORANGE, label=positive)
    ax.plot([threshold] * 2, [below[0][best], below[1][best]], "o-", color=VERMILLION, lw=1)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("threshold")
    ax.set_ylabel("fraction of the class below it")
    ax.legend(loc="best").get_texts()[1].set_parse_math(False)
    ax.set_title(f"Kolmogorov-Smirnov: {distance:.3f} at threshold {threshold:.3g}")


def _draw_cost(ax: Any, ranking: Ranking, false_negative: float, false_positive: float) -> None:
    """Draw the mean cost of a row against the threshold on matplotlib axes; mark the lowest cost.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    ranking : Ranking
        Numbers of true and false positives at each threshold.
    false_negative, false_positive : float
        Cost of a missed row of the positive class, and of a false alarm, which is a row of the
        other class that is predicted to be of the positive class.
    """
    cost = ranking.cost(false_negative, false_positive)
    cheapest = int(np.argmin(cost))
    ax.step(ranking.threshold, cost, where="post", color=BLUE)
    ax.plot(ranking.threshold[cheapest], cost[cheapest], "o", color=VERMILLION)
    ax.set_ylim(0, 1.05 * float(cost.max()) or 1.0)
    ax.set_xlabel("threshold")
    ax.set_ylabel("mean cost of a row")
    ax.set_title(f"Cost: lowest at threshold {ranking.threshold[cheapest]:.3g}")
