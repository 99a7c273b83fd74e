"""What rows that judge scores of two classes guarantee at every threshold at once.

A row is taken for the second class where its score is at least the threshold. The scores of either
class have a band around their distribution function, and the share of the second class has limits;
what else is asked of a threshold follows from these three, so that all of it holds together, for every
threshold: one may look at the curves first, and then choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certree.certificates.certificate import (
    Certificate,
    compute_certificate,
    compute_log_delta,
    get_sampling_facts,
)
from certree.certificates.inequalities.bounds import (
    compute_rate_level,
    highest_cost,
    prevalence_limits,
)
from certree.certificates.inequalities.order_statistics import compute_cdf_bounds
from certree.certificates.subsets.families import Terms
from certree.interface.arrays import Float64, check_nonnegative
from certree.interface.formatting import align_columns, format_confidence, format_quantity
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_arguments

# Where a cost that is named before is bounded directly: at the threshold that is best for it where
# scores are probabilities, and at odds so many times as large.
_LOG_ODDS = (-1.0, -0.5, 0.0, 0.5, 1.0)
# Thresholds that are shown.
_LINES = 10


class Limits(NamedTuple):
    """A rate: what is observed, and what lies below and above the true one, for all at once."""

    observed: Any
    lowest: Any
    highest: Any

    def map(self, function: Callable[[Any], Any]) -> Limits:
        """The same function of all three."""
        return Limits(*map(function, self))

    @property
    def complement(self) -> Limits:
        """Of the other rows."""
        return Limits(1 - self.observed, 1 - self.highest, 1 - self.lowest)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """One threshold and what is guaranteed there, whatever has chosen it.

    Parameters
    ----------
    positive : object
        The class that rows are taken for whose score is at least the threshold.
    threshold : float
        It; infinite: no row is.
    false_positive_rate, recall, precision, predicted_positive_rate : Limits
        Numbers.
    certificate : Certificate or None
        Of the mean cost, where the point was asked for by costs, in their units; its `unit` is the
        larger cost.
    """

    positive: Any
    threshold: float
    false_positive_rate: Limits
    recall: Limits
    precision: Limits
    predicted_positive_rate: Limits
    certificate: Certificate | None = None

    @property
    def cost_at_most(self) -> float:
        """The bound on the mean cost of a row, in units of the costs; infinite without any."""
        if self.certificate is None:
            return math.inf
        return self.certificate.bound

    def __str__(self) -> str:
        """What is guaranteed, in words."""
        told = (
            f"At threshold {self.threshold:.4g}: recall of {self.positive} at least "
            f"{_round_down(self.recall.lowest)}, false positive rate at most "
            f"{_round_up(self.false_positive_rate.highest)}, precision at least "
            f"{_round_down(self.precision.lowest)}, and {_round_down(self.predicted_positive_rate.lowest)} to "
            f"{_round_up(self.predicted_positive_rate.highest)} of new rows are taken for {self.positive}."
        )
        return told if self.certificate is None else f"{told}\n{self.certificate}"


@dataclass(frozen=True, eq=False)
class ThresholdGuarantees:
    """What holds at every threshold of the scores at once, by rows that were not seen before.

    Limits are arrays of shape (m,), by the entries of `threshold`. Between two of these, and for rows
    whose score is above a threshold rather than at least it, the limits are those of the next entry
    above; see `at`.

    Parameters
    ----------
    positive : object
        The second class.
    score : ndarray of shape (n,)
        Score of each judging row.
    is_positive : ndarray of bool, shape (n,)
        Whether it is of the second class.
    terms : Terms
        What all promises share.
    costs : tuple of pairs of float
        Costs of a missed row of the second class and of a false alarm that were named before the rows
        were seen. With them half of delta is for bounds of their own.
    complexity : float
        Price of what the judging rows have chosen (nats).
    groups : dict of object to ThresholdGuarantees
        The same of each group of rows; all of them and the whole share delta equally.
    """

    positive: Any
    score: Float64
    is_positive: NDArray[np.bool_]
    terms: Terms
    costs: tuple[tuple[float, float], ...] = ()
    complexity: float = 0.0
    groups: Mapping[Any, ThresholdGuarantees] = field(default_factory=dict)

    @classmethod
    def divide_delta(
        cls, whole: ThresholdGuarantees, names: Sequence[Any], group: NDArray[np.integer]
    ) -> ThresholdGuarantees:
        """Share delta among all rows and each group of them."""
        terms = replace(whole.terms, share=whole.terms.share / (len(names) + 1))
        shared, found = replace(whole, terms=terms), {}
        for place, name in enumerate(names):
            own = group == place
            found[name] = replace(
                shared, score=whole.score[own], is_positive=whole.is_positive[own]
            )
        return replace(shared, groups=found)

    # -- the rows ----------------------------------------------------------------------------------

    @cached_property
    def threshold(self) -> Float64:
        """Infinity, and every score that occurs, from the highest on, (m,)."""
        return np.append(np.inf, np.unique(self.score)[::-1])

    @property
    def n(self) -> int:
        """Number of judging rows."""
        return len(self.score)

    @cached_property
    def _class_sizes(self) -> tuple[int, int]:
        """Rows of the first class, and of the second."""
        positives = int(self.is_positive.sum())
        return self.n - positives, positives

    def _count_predicted_positives(
        self, threshold: Float64
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of either class whose score is at least each threshold."""
        first, second = (
            np.searchsorted(np.sort(-self.score[own]), -threshold, side="right")
            for own in (~self.is_positive, self.is_positive)
        )
        return first, second

    @property
    def _log_level(self) -> float:
        return compute_log_delta(self.terms.delta, self.terms.share) - self._band_complexity

    @property
    def _band_complexity(self) -> float:
        """What bands pay: with costs that were named half of delta is kept for these."""
        return self.complexity + (math.log(2) if self.costs else 0.0)

    # -- rates -------------------------------------------------------------------------------------

    @cached_property
    def prevalence(self) -> Limits:
        """The share of the second class."""
        positives = self._class_sizes[1]
        limits = prevalence_limits(positives, self.n, self._log_level)
        return Limits(positives / self.n, *limits)

    @cached_property
    def false_positive_rate(self) -> Limits:
        """Share of the rows of the first class that are taken for the second."""
        return self._bound_rate(0)

    @cached_property
    def recall(self) -> Limits:
        """Share of the rows of the second class that are taken for it."""
        return self._bound_rate(1)

    def _bound_rate(self, which: int) -> Limits:
        taken, n = self._count_predicted_positives(self.threshold)[which], self._class_sizes[which]
        lowest = compute_cdf_bounds(n, compute_rate_level(self._log_level))
        return Limits(taken / max(n, 1), lowest[taken], 1 - lowest[n - taken])

    @property
    def specificity(self) -> Limits:
        """1 less `false_positive_rate`."""
        return self.false_positive_rate.complement

    @property
    def false_negative_rate(self) -> Limits:
        """1 less `recall`."""
        return self.recall.complement

    @cached_property
    def precision(self) -> Limits:
        """Share of the second class in what is taken for it; 1 where nothing is."""
        alarmed, found, share = self.false_positive_rate, self.recall, self.prevalence
        return Limits(
            _compute_precision(share.observed, found.observed, alarmed.observed),
            np.where(
                found.lowest > 0,
                _compute_precision(share.lowest, found.lowest, alarmed.highest),
                0.0,
            ),
            _compute_precision(share.highest, found.highest, alarmed.lowest),
        )

    @cached_property
    def predicted_positive_rate(self) -> Limits:
        """Share of all rows that is taken for the second class."""
        return self._average_classes(self.recall, self.false_positive_rate)

    @validate_arguments
    def cost(self, false_negative: float, false_positive: float) -> Limits:
        """The mean cost of a row, for all costs at once.

        Parameters
        ----------
        false_negative, false_positive : float
            What a missed row of the second class costs, and what a false alarm does; >= 0, and one of
            them positive. They may be chosen after looking.

        Returns
        -------
        Limits

        Raises
        ------
        ValueError
            If a cost is negative or not finite, or both are 0.
        """
        of_miss, of_alarm = _check_cost_pair((false_negative, false_positive))
        missed = self.false_negative_rate.map(lambda rate: of_miss * rate)
        alarmed = self.false_positive_rate.map(lambda rate: of_alarm * rate)
        return self._average_classes(missed, alarmed)

    def _average_classes(self, second: Limits, first: Limits) -> Limits:
        """The mean over all rows of what the rows of either class have on average."""
        share = self.prevalence
        ends = share.lowest, share.highest
        observed = share.observed * second.observed + (1 - share.observed) * first.observed
        lowest = -highest_cost(-second.lowest, -first.lowest, ends)
        return Limits(observed, lowest, highest_cost(second.highest, first.highest, ends))

    # -- choices -----------------------------------------------------------------------------------

    @validate_arguments
    def at(self, threshold: float) -> OperatingPoint:
        """What holds at any threshold."""
        place = (
            np.searchsorted(-self.threshold, -check_not_nan("threshold", threshold), side="right")
            - 1
        )
        rates = ("false_positive_rate", "recall", "precision", "predicted_positive_rate")
        found = (getattr(self, name).map(lambda of: float(of[place])) for name in rates)
        return OperatingPoint(self.positive, float(threshold), *found)

    @validate_arguments
    def lowest_cost(self, false_negative: float, false_positive: float) -> OperatingPoint:
        """The threshold whose mean cost has the lowest bound.

        Parameters
        ----------
        false_negative, false_positive : float
            As in `cost`. Of costs that were named before, or multiples of them, some thresholds have a
            bound of their own, which is lower.

        Returns
        -------
        OperatingPoint
            Its certificate is of the mean cost of a row.

        Raises
        ------
        ValueError
            As in `cost`.
        """
        costs = _check_cost_pair((false_negative, false_positive))
        place = int(np.argmin(self.cost(*costs).highest))
        found = [self._certificate("every_threshold", float(self.threshold[place]), costs)]
        thresholds = [float(self.threshold[place])]
        if any(_are_multiples(costs, named) for named in self.costs):
            direct = _choose_thresholds(costs).tolist()
            found += [self._certificate("named_cost", one, costs) for one in direct]
            thresholds += direct
        best = min(range(len(found)), key=lambda i: found[i].bound)
        return replace(self.at(thresholds[best]), certificate=found[best])

    def _certificate(
        self, method: str, threshold: float, costs: tuple[float, float]
    ) -> Certificate:
        first, second = (
            int(taken[0]) for taken in self._count_predicted_positives(np.array([threshold]))
        )
        positives, terms = self._class_sizes[1], self.terms
        missed, alarms = (positives - second) / self.n, first / self.n
        unit = max(costs)
        weights = costs[0] / unit, costs[1] / unit
        observed: tuple[float, ...] = (missed, alarms, positives / self.n, *weights)
        nats = self._band_complexity
        if method == "named_cost":
            observed = (missed, alarms, *weights)
            nats += math.log(len(self.costs) * len(_LOG_ODDS))
        told = f"{costs[0]:.4g} for a missed {self.positive}, {costs[1]:.4g} for a false alarm"
        return compute_certificate(
            *(method, observed, self.n, nats, terms.delta, terms.share),
            risk=unit * min(weights[0] * missed + weights[1] * alarms, 1.0),
            part=f"threshold {threshold:.4g} ({told})",
            **get_sampling_facts(terms),
            unit=None if unit == 1 else unit,
        )

    @validate_arguments
    def highest_recall(self, precision: float) -> OperatingPoint:
        """The threshold with the highest certified recall where the precision is certified.

        Parameters
        ----------
        precision : float
            The least precision, between 0 and 1; it may be chosen after looking.

        Returns
        -------
        OperatingPoint

        Raises
        ------
        ValueError
            If no threshold has such a precision for certain.
        """
        if not 0 < precision < 1:
            raise ValueError(f"precision must lie between 0 and 1, got {precision!r}")
        sure = self.precision.lowest >= precision
        if not sure.any():
            raise ValueError(
                f"no threshold has a certified precision of {precision!r}: the highest is "
                f"{_round_down(self.precision.lowest.max())}"
            )
        place = int(np.argmax(np.where(sure, self.recall.lowest, -1.0)))
        return self.at(float(self.threshold[place]))

    # -- in words ----------------------------------------------------------------------------------

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and lines: some thresholds and what holds there, in words."""
        taken = self.predicted_positive_rate.observed
        some = np.unique(np.searchsorted(taken, np.linspace(0, 1, _LINES + 2)[1:-1]))
        head = ["threshold", "taken", "false positive rate", "recall", "precision"]
        lines = []
        for place in some.tolist():
            point = self.at(float(self.threshold[place]))
            lines.append(
                [
                    f"{point.threshold:.4g}",
                    f"{point.predicted_positive_rate.observed:.3f}",
                    f"<= {_round_up(point.false_positive_rate.highest)}",
                    f">= {_round_down(point.recall.lowest)}",
                    f">= {_round_down(point.precision.lowest)}",
                ]
            )
        return head, lines

    @property
    def title(self) -> str:
        """What holds at once, and with which probability."""
        terms = self.terms
        rows = format_quantity(self.n, "held-out row")
        if terms.distinct:
            rows = format_quantity(self.n, "distinct held-out row")
        if terms.repeats is None:
            rows += ", which were not compared with those of the fit"
        elif terms.repeats:
            rows += f", of which {terms.repeats:,} repeat other rows, as draws of their own"
        among = f" and all {len(self.groups)} groups" if self.groups else ""
        return (
            f"With probability at least {format_confidence(terms.delta)} over the draw of {rows}, "
            f"{self._class_sizes[1]:,} of them of class {self.positive}, for all thresholds{among} at once:"
        )

    def __str__(self) -> str:
        """A title, and a line for some of the thresholds."""
        head, lines = self.table()
        return "\n".join([self.title, *align_columns([head, *lines])])

    def _repr_html_(self) -> str:
        return make_html_table(self.title, *self.table())


def check_not_nan(name: str, value: float) -> float:
    """Check that a number is one, such as infinity."""
    if math.isnan(value):
        raise ValueError(f"{name} must be a number, got nan")
    return float(value)


def _compute_precision(share: float, found: Float64, alarmed: Float64) -> Float64:
    right, wrong = share * found, (1 - share) * alarmed
    total = right + wrong
    return np.where(total > 0, right / np.where(total > 0, total, 1.0), 1.0)


def _check_cost_pair(costs: Sequence[Any]) -> tuple[float, float]:
    of_miss, of_alarm = (
        check_nonnegative(name, cost)
        for name, cost in zip(("false_negative", "false_positive"), costs, strict=True)
    )
    if of_miss == of_alarm == 0:
        raise ValueError("one of the costs must be positive, got 0 and 0")
    return of_miss, of_alarm


def check_costs(costs: Any) -> tuple[tuple[float, float], ...]:
    """Check costs that are named before the rows are seen: pairs, or one of them."""
    if costs is None:
        return ()
    try:
        pairs = np.atleast_2d(np.asarray(costs, dtype=np.float64))
    except (ValueError, TypeError):
        pairs = np.empty((0, 0))
    if pairs.ndim != 2 or pairs.shape[1:] != (2,) or not len(pairs):
        raise ValueError(
            "costs must be pairs, of a missed row of the second class and of a false alarm, got "
            f"{costs!r}"
        )
    return tuple(_check_cost_pair(pair) for pair in pairs.tolist())


def _are_multiples(costs: tuple[float, float], named: tuple[float, float]) -> bool:
    (one, other), (its, of_other) = costs, named
    return math.isclose(one / max(costs), its / max(named), rel_tol=1e-12) and math.isclose(
        other / max(costs), of_other / max(named), rel_tol=1e-12
    )


def _choose_thresholds(costs: tuple[float, float]) -> Float64:
    """Thresholds that are fixed by costs alone, of scores that are probabilities."""
    of_miss, of_alarm = costs
    with np.errstate(divide="ignore"):
        odds = np.exp(_LOG_ODDS) * np.float64(of_alarm) / of_miss
    return np.where(np.isinf(odds), 1.0, odds / (1 + np.where(np.isinf(odds), 0.0, odds)))


def _round_up(rate: float) -> str:
    return f"{math.ceil(1000 * rate - 1e-9) / 1000:.3f}"


def _round_down(rate: float) -> str:
    return f"{math.floor(1000 * rate + 1e-9) / 1000:.3f}"
