"""Guarantees on a binary classifier at every decision threshold at once.

A row is predicted to be of the positive class, which is the second one by default, if its score is
at least the threshold. The score distribution of each class has a confidence band, and the
prevalence of the positive class has confidence limits. All rates and costs follow from these three,
so that all limits hold together for every threshold: one may look at the curves first and then
choose a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certree.certificates.baseline import Baseline
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
from certree.certificates.subsets.families import CertificateTerms
from certree.interface.arrays import Float64, check_nonnegative
from certree.interface.formatting import (
    align_columns,
    format_confidence,
    format_quantity,
    shorten_label,
)
from certree.interface.notebook import make_html_table
from certree.interface.signatures import validate_arguments

# Named costs are bounded directly at the threshold that is best if scores are probabilities, and at
# thresholds whose odds are these multiples (logarithms) of its odds.
_LOG_ODDS = (-1.0, -0.5, 0.0, 0.5, 1.0)
# Number of thresholds in the printed table.
_LINES = 10
# By how much probabilities may be below 0 or above 1 by rounding, and by what fraction of it another
# program may return another probability, as ONNX does with float32.
_ROUNDING = 1e-6


class Limits(NamedTuple):
    """A rate with its confidence limits, which hold for all thresholds at once.

    `ThresholdGuarantees` and `OperatingPoint` return rates in this form.

    Parameters
    ----------
    observed : float or ndarray of shape (m,)
        Rate on the calibration rows; arrays have an entry for each of m thresholds.
    lowest, highest : float or ndarray of shape (m,)
        Lower and upper limit of the rate on new rows.
    """

    observed: Any
    lowest: Any
    highest: Any

    def map(self, function: Callable[[Any], Any]) -> Limits:
        """Return new limits with an increasing function applied to each of the three fields.

        The fields are `observed`, `lowest` and `highest`; the function keeps their order.
        """
        return Limits(*map(function, self))

    @property
    def complement(self) -> Limits:
        """The limits of 1 minus this rate, whose upper limit is 1 minus the lower limit of the rate.

        The observed rate becomes 1 minus itself.
        """
        return Limits(1 - self.observed, 1 - self.highest, 1 - self.lowest)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """One threshold with the limits of its rates on new rows, which hold whatever chose the threshold.

    `ThresholdGuarantees` makes it. Functions with a parameter `threshold` take it in place of a
    number; the threshold then is about its positive class. `Limits` holds the rate on the
    calibration rows, and its lower and upper limit on new rows.

    Parameters
    ----------
    positive : object
        The positive class, predicted for rows with a score of at least the threshold.
    threshold : float
        The threshold; inf: no row is predicted positive. A threshold that limits have chosen lies
        between two scores of the calibration rows, so that a program which rounds probabilities
        differently predicts the same.
    false_positive_rate : Limits
        Fraction of negative rows that are predicted positive.
    recall : Limits
        Fraction of positive rows that are predicted positive.
    precision : Limits
        Fraction of positive rows among those predicted positive.
    predicted_positive_rate : Limits
        Fraction of rows that are predicted positive.
    certificate : Certificate or None
        Bound on the mean cost of a row if the point was chosen by costs, else None. Its `unit` is
        the larger of the two costs.
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
        """Upper bound on the mean cost of a row at this threshold; inf if no costs chose it."""
        if self.certificate is None:
            return math.inf
        return self.certificate.bound

    def __str__(self) -> str:
        """Return sentences with the threshold and the certified limits of its rates.

        They end with the bound on the mean cost if costs chose the threshold.
        """
        text = (
            f"At threshold {self.threshold:.4g}: recall of {self.positive} at least "
            f"{_round_down(self.recall.lowest)}, false positive rate at most "
            f"{_round_up(self.false_positive_rate.highest)}, precision at least "
            f"{_round_down(self.precision.lowest)}, and "
            f"{_round_down(self.predicted_positive_rate.lowest)} to "
            f"{_round_up(self.predicted_positive_rate.highest)} of new rows are predicted as "
            f"{self.positive}."
        )
        if self.predicted_positive_rate.observed in (0, 1):
            which = "All" if self.predicted_positive_rate.observed else "No"
            rows = "rows are" if which == "All" else "row is"
            text += (
                f" {which} calibration {rows} predicted as {self.positive}: this decides nothing."
            )
        return text if self.certificate is None else f"{text}\n{self.certificate}"


@dataclass(frozen=True, eq=False)
class ThresholdGuarantees:
    """Confidence limits of rates and costs at every threshold of a binary classifier's scores.

    The limits of all thresholds, rates and costs hold together with probability 1 - delta over the
    draw of the calibration rows. `Guarantees.thresholds` makes it. Arrays of limits have shape
    (m,), with an entry for each entry of `threshold`. For a threshold between two entries the
    limits are those of the larger one; see `at`.

    Parameters
    ----------
    positive : object
        The positive class, by default the second of the two.
    score : ndarray of shape (n,)
        Score of each calibration row, fixed without these rows.
    is_positive : ndarray of bool, shape (n,)
        Whether each calibration row is of the positive class.
    terms : CertificateTerms
        Delta, the probability with which any limit may fail, the fraction of it that these use, and
        how the rows were drawn.
    costs : tuple of (float, float)
        Pairs (cost of a false negative, cost of a false positive) that were named before the rows
        were seen. If there are any, half of delta is used for bounds on these costs.
    complexity : float
        Price of choosing the classifier by the calibration rows (nats).
    groups : dict of object to ThresholdGuarantees
        The same for each group of rows; all rows and the groups share delta equally.
    """

    positive: Any
    score: Float64
    is_positive: NDArray[np.bool_]
    terms: CertificateTerms
    costs: tuple[tuple[float, float], ...] = ()
    complexity: float = 0.0
    groups: Mapping[Any, ThresholdGuarantees] = field(default_factory=dict)

    @classmethod
    def divide_delta(
        cls, whole: ThresholdGuarantees, names: Sequence[Any], group: NDArray[np.integer]
    ) -> ThresholdGuarantees:
        """Return the guarantees for all rows and for each group, which share delta equally.

        The result has all rows, and in its field `groups` a `ThresholdGuarantees` for each group.
        Delta is the probability with which any limit may fail. whole: the guarantees for all rows,
        with all of delta; names: the groups; group: index into `names` of each calibration row, (n,).
        """
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
        """The m thresholds, in descending order.

        Infinity, and each different score of the calibration rows.
        """
        return np.append(np.inf, np.unique(self.score)[::-1])

    @property
    def n(self) -> int:
        """Number of calibration rows from which the limits of all rates are computed."""
        return len(self.score)

    @cached_property
    def _class_sizes(self) -> tuple[int, int]:
        """Number of negative and of positive calibration rows, as two ints.

        By the field `is_positive`.
        """
        positives = int(self.is_positive.sum())
        return self.n - positives, positives

    def _count_predicted_positives(
        self, threshold: Float64
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Count the calibration rows with a score of at least each threshold, by class.

        The scores are the field `score`. threshold: array (k,). Return the counts of negative and
        of positive rows, both (k,).
        """
        first, second = (
            np.searchsorted(np.sort(-self.score[own]), -threshold, side="right")
            for own in (~self.is_positive, self.is_positive)
        )
        return first, second

    @property
    def _log_level(self) -> float:
        """Natural log of the probability with which any band or prevalence limit may fail.

        A band is the set of limits of one class's rate at all thresholds. The result is log(delta *
        share) of the field `terms`, minus the attribute `_band_complexity`: the nats for a choice of
        the classifier by the calibration rows, and for bounds on named costs.
        """
        return compute_log_delta(self.terms.delta, self.terms.share) - self._band_complexity

    @property
    def _band_complexity(self) -> float:
        """Nats by which the log probability of failure of the limits of rates is lowered.

        It is the field `complexity`, the price of choosing the classifier by the calibration rows,
        plus log 2 if the field `costs` names costs, whose bounds use half of delta.
        """
        return self.complexity + (math.log(2) if self.costs else 0.0)

    # -- rates -------------------------------------------------------------------------------------

    @cached_property
    def prevalence(self) -> Limits:
        """Fraction of rows that are of the positive class.

        `Limits` holds the rate on the calibration rows, and its lower and upper limit on new rows:
        floats, as it does not depend on the threshold.
        """
        positives = self._class_sizes[1]
        limits = prevalence_limits(positives, self.n, self._log_level)
        return Limits(positives / self.n, *limits)

    @cached_property
    def false_positive_rate(self) -> Limits:
        """Fraction of negative rows that are predicted positive.

        `Limits` holds the rate on the calibration rows, and its lower and upper limit on new rows:
        arrays (m,), with an entry for each entry of `threshold`. Rows with a score of at least the
        threshold are predicted positive.
        """
        return self._bound_rate(0)

    @cached_property
    def recall(self) -> Limits:
        """Fraction of positive rows that are predicted positive.

        `Limits` holds the rate on the calibration rows, and its lower and upper limit on new rows:
        arrays (m,), with an entry for each entry of `threshold`. Rows with a score of at least the
        threshold are predicted positive.
        """
        return self._bound_rate(1)

    def _bound_rate(self, which: int) -> Limits:
        """Return the limits of the fraction predicted positive in one class, by threshold.

        which: 0 for the negative class, 1 for the positive class. Rows with a score of at least the
        threshold are predicted positive. `Limits` holds the rate on the calibration rows, and its
        lower and upper limit on new rows: arrays (m,), with an entry for each entry of `threshold`.
        """
        taken, n = self._count_predicted_positives(self.threshold)[which], self._class_sizes[which]
        lowest = compute_cdf_bounds(n, compute_rate_level(self._log_level))
        return Limits(taken / max(n, 1), lowest[taken], 1 - lowest[n - taken])

    @property
    def specificity(self) -> Limits:
        """Fraction of negative rows that are predicted negative, 1 minus the false positive rate.

        `Limits` holds the rate on the calibration rows, and its lower and upper limit on new rows:
        arrays (m,), with an entry for each entry of `threshold`. Rows with a score of at least the
        threshold are predicted positive.
        """
        return self.false_positive_rate.complement

    @property
    def false_negative_rate(self) -> Limits:
        """Fraction of positive rows that are predicted negative, 1 minus the recall.

        `Limits` holds the rate on the calibration rows, and its lower and upper limit on new rows:
        arrays (m,), with an entry for each entry of `threshold`. Rows with a score of at least the
        threshold are predicted positive.
        """
        return self.recall.complement

    @cached_property
    def precision(self) -> Limits:
        """Fraction of positive rows among the rows that are predicted positive; 1 if none are.

        `Limits` holds the rate on the calibration rows, and its lower and upper limit on new rows:
        arrays (m,), with an entry for each entry of `threshold`. Rows with a score of at least the
        threshold are predicted positive.
        """
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
        """Fraction of all rows that are predicted positive.

        `Limits` holds the rate on the calibration rows, and its lower and upper limit on new rows:
        arrays (m,), with an entry for each entry of `threshold`. Rows with a score of at least the
        threshold are predicted positive.
        """
        return self._average_classes(self.recall, self.false_positive_rate)

    @validate_arguments
    def cost(self, false_negative: float, false_positive: float) -> Limits:
        """Return the limits of the mean cost of a row, by threshold; they hold for all costs at once.

        Parameters
        ----------
        false_negative, false_positive : float
            Cost of a positive row that is predicted negative, and of a negative row that is
            predicted positive; >= 0, not both 0. They may be chosen after looking.

        Returns
        -------
        Limits
            Arrays (m,), in units of the costs.

        Raises
        ------
        ValueError
            If a cost is negative or not finite, or both are 0.
        """
        of_miss, of_alarm = _check_cost_pair((false_negative, false_positive))
        missed = self.false_negative_rate.map(lambda rate: of_miss * rate)
        alarmed = self.false_positive_rate.map(lambda rate: of_alarm * rate)
        return self._average_classes(missed, alarmed)

    def _average_classes(self, positive: Limits, negative: Limits) -> Limits:
        """Return the limits of the mean over all rows of a quantity with known limits in each class.

        positive, negative: limits of its mean over the positive rows, and over the negative rows,
        arrays (m,). The prevalence may be anywhere within its limits. `Limits` holds the rate on
        the calibration rows, and its lower and upper limit on new rows: arrays (m,), with an entry
        for each entry of `threshold`.
        """
        share = self.prevalence
        ends = share.lowest, share.highest
        observed = share.observed * positive.observed + (1 - share.observed) * negative.observed
        lowest = -highest_cost(-positive.lowest, -negative.lowest, ends)
        return Limits(observed, lowest, highest_cost(positive.highest, negative.highest, ends))

    # -- choices -----------------------------------------------------------------------------------

    @cached_property
    def _next_lower(self) -> Float64:
        """For each entry of the attribute `threshold`, the next lower entry, (m,).

        For the last one, which is the smallest score, it is 0 (or that score, if it is below 0).
        """
        return np.append(self.threshold[1:], min(float(self.threshold[-1]), 0.0))

    @cached_property
    def _survives_rounding(self) -> NDArray[np.bool_]:
        """Whether each threshold is further from the next lower one than rounding moves scores, (m,).

        A mask of the attribute `threshold`. A database or an ONNX model may round scores
        differently. Thresholds for which this is False are not chosen, as rows could then be
        predicted differently.
        """
        return (self._next_lower < (1 - _ROUNDING) * self.threshold) | (self.threshold <= 0)

    def _place_threshold(self, entry: int) -> float:
        """Return the threshold that represents one entry of the field `threshold`.

        It lies near the middle of the gap between the next lower score and this one. Limits are the
        same in the whole gap, and no score is near enough for rounding to move it across. entry:
        index of the entry; for the first one return infinity.
        """
        high = float(self.threshold[entry])
        return high if math.isinf(high) else _round_between(float(self._next_lower[entry]), high)

    @validate_arguments
    def at(self, threshold: float) -> OperatingPoint:
        """Return the limits of all rates at one threshold as an `OperatingPoint`.

        threshold: number in [0, 1], or infinity, at which no row is predicted positive; between two
        entries of the field `threshold` the limits are those of the larger one.
        """
        place = (
            np.searchsorted(-self.threshold, -check_score_threshold(threshold), side="right") - 1
        )
        rates = ("false_positive_rate", "recall", "precision", "predicted_positive_rate")
        found = (getattr(self, name).map(lambda of: float(of[place])) for name in rates)
        return OperatingPoint(self.positive, float(threshold), *found)

    @validate_arguments
    def lowest_cost(self, false_negative: float, false_positive: float) -> OperatingPoint:
        """Return the operating point whose mean cost has the lowest upper bound.

        Parameters
        ----------
        false_negative, false_positive : float
            Cost of a positive row that is predicted negative, and of a negative row that is
            predicted positive; >= 0, not both 0. They may be chosen after looking. If they, or a
            multiple of them, are among the field `costs`, five thresholds have additional, tighter
            bounds: the best one if scores are true probabilities, and two on either side of it.

        Returns
        -------
        OperatingPoint
            Its `certificate` bounds the mean cost of a row.

        Raises
        ------
        ValueError
            If a cost is negative or not finite, or both are 0.
        """
        costs = _check_cost_pair((false_negative, false_positive))
        highest = np.where(self._survives_rounding, self.cost(*costs).highest, math.inf)
        thresholds = [self._place_threshold(int(np.argmin(highest)))]
        found = [self._certificate("every_threshold", thresholds[0], costs)]
        if any(_are_multiples(costs, named) for named in self.costs):
            direct = _choose_thresholds(costs).tolist()
            found += [self._certificate("named_cost", one, costs) for one in direct]
            thresholds += direct
        best = min(range(len(found)), key=lambda i: found[i].bound)
        return replace(self.at(thresholds[best]), certificate=found[best])

    def _certificate(
        self, method: str, threshold: float, costs: tuple[float, float]
    ) -> Certificate:
        """Compute the certificate of the mean cost at one threshold.

        Rows with a score of at least `threshold` are predicted positive. method: "every_threshold",
        or "named_cost" for thresholds and costs that were fixed before the rows; costs: (cost of a
        false negative, of a false positive).
        """
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
        text = f"{costs[0]:.4g} for a missed {self.positive}, {costs[1]:.4g} for a false alarm"
        found = compute_certificate(
            *(method, observed, self.n, nats, terms.delta, terms.share),
            risk=unit * min(weights[0] * missed + weights[1] * alarms, 1.0),
            part=f"threshold {threshold:.4g} ({text})",
            **get_sampling_facts(terms),
            unit=None if unit == 1 else unit,
        )
        return replace(found, baseline=self._compute_constant_cost(*costs))

    def _compute_constant_cost(self, false_negative: float, false_positive: float) -> Baseline:
        """Return the mean cost on the calibration rows of always predicting the cheaper class.

        false_negative, false_positive: cost of a positive row that is predicted negative, and of a
        negative row that is predicted positive. The `Baseline` holds this cost, and the name of the
        prediction: "never yes" or "always yes" if the positive class is "yes".
        """
        name, (negatives, positives) = shorten_label(str(self.positive)), self._class_sizes
        never = Baseline(f"never {name}", false_negative * positives / self.n)
        always = Baseline(f"always {name}", false_positive * negatives / self.n)
        return min(never, always, key=lambda one: one.value)

    @validate_arguments
    def highest_recall(self, precision: float) -> OperatingPoint:
        """Return the point with the highest lower limit of recall, given a certified precision.

        Parameters
        ----------
        precision : float
            Smallest lower limit of the precision, between 0 and 1; it may be chosen after looking.

        Returns
        -------
        OperatingPoint
            Its fields hold the threshold, and the limits of its recall, precision and other rates.

        Raises
        ------
        ValueError
            If no threshold has such a lower limit of the precision.
        """
        sure = self._find_certified("precision", precision, self.precision.lowest)
        place = int(np.argmax(np.where(sure, self.recall.lowest, -1.0)))
        return self.at(self._place_threshold(place))

    @validate_arguments
    def highest_threshold(self, recall: float) -> OperatingPoint:
        """Return the point with the highest threshold, given a certified recall.

        At this threshold the fewest rows are predicted positive.

        Parameters
        ----------
        recall : float
            Smallest lower limit of the recall, between 0 and 1; it may be chosen after looking.

        Returns
        -------
        OperatingPoint
            Its fields hold the threshold, and the limits of its recall, precision and other rates.

        Raises
        ------
        ValueError
            If no threshold has such a lower limit of the recall.
        """
        sure = self._find_certified("recall", recall, self.recall.lowest)
        return self.at(self._place_threshold(int(np.argmax(sure))))

    def _find_certified(self, name: str, wanted: float, lowest: Float64) -> NDArray[np.bool_]:
        """Return at which thresholds the lower limit of a rate is at least as high as wanted, (m,).

        Thresholds that rounding could exchange with the next lower one are left out.
        name: the rate, for messages; wanted: number between 0 and 1; lowest: lower limits, (m,).
        Raise ValueError if `wanted` is out of range, or there is no such threshold.
        """
        expect_certified_rate(name, wanted)
        lowest = np.where(self._survives_rounding, lowest, 0.0)
        sure = lowest >= wanted
        if not sure.any():
            raise ValueError(
                f"{name}={wanted!r} is not certified at any threshold: the highest certified {name} "
                f"is {_round_down(lowest.max())}; pass a lower one, or more calibration rows"
            )
        return sure

    # -- in words ----------------------------------------------------------------------------------

    @validate_arguments
    def table(self, thresholds: Sequence[float] | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the head and the rows of a table of thresholds, as lists of str.

        The columns are the threshold, the fraction of rows that are predicted positive, the upper
        limit of the false positive rate, and the lower limits of recall and precision.

        Parameters
        ----------
        thresholds : sequence of float or None
            A row for each of these thresholds, which may be chosen after looking. None: up to ten
            thresholds, which are spread evenly over the fraction of rows that are predicted
            positive.

        Returns
        -------
        head : list of str
            Names of the columns.
        rows : list of list of str
            The entries of the columns as text, a list for each threshold.
        """
        if thresholds is None:
            apart = np.flatnonzero(self._survives_rounding)
            taken = self.predicted_positive_rate.observed[apart]
            some = np.unique(np.searchsorted(taken, np.linspace(0, 1, _LINES + 2)[1:-1]))
            thresholds = [self._place_threshold(entry) for entry in apart[some].tolist()]
        head = ["threshold", "taken", "false positive rate", "recall", "precision"]
        lines = []
        for threshold in thresholds:
            point = self.at(threshold)
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
        """The sentence above the printed table of thresholds.

        It states the probability of all limits together, and the number of calibration rows.
        """
        terms = self.terms
        rows = format_quantity(self.n, "calibration row")
        if terms.distinct:
            rows = format_quantity(self.n, "distinct calibration row")
        if terms.repeats is None:
            rows += ", which were not compared with those of the fit"
        elif terms.repeats:
            rows += f", of which {terms.repeats:,} repeat other rows and count as independent draws"
        among = f" and all {len(self.groups)} groups" if self.groups else ""
        return (
            f"With probability at least {format_confidence(terms.delta)} over the draw of {rows}, "
            f"{self._class_sizes[1]:,} of them of class {self.positive}, for all thresholds{among} at "
            "once:"
        )

    def __str__(self) -> str:
        """Return these guarantees as text: title, and a table of up to ten thresholds."""
        head, lines = self.table()
        return "\n".join([self.title, *align_columns([head, *lines])])

    def _repr_html_(self) -> str:
        return make_html_table(self.title, *self.table())


def read_threshold(threshold: Any, pos_label: Any) -> tuple[Any, Any]:
    """Return a threshold as a number, and its positive class.

    Parameters
    ----------
    threshold : float, OperatingPoint or None
        The threshold: a number, or an operating point, which has one and its positive class.
    pos_label : object or None
        The positive class; None: that of the operating point, or else the second class.

    Returns
    -------
    threshold : float or None
        The number, unchanged; None if `threshold` is None.
    pos_label : object or None
        The positive class; None if `pos_label` is None and `threshold` is no operating point.

    Raises
    ------
    ValueError
        If `pos_label` is not the positive class of the operating point.
    """
    if not isinstance(threshold, OperatingPoint):
        return threshold, pos_label
    if pos_label is not None and pos_label != threshold.positive:
        raise ValueError(
            f"pos_label must be {threshold.positive!r}, the positive class of the threshold that was "
            f"chosen, got {pos_label!r}: leave it out, or choose by thresholds(pos_label={pos_label!r})"
        )
    return threshold.threshold, threshold.positive


def expect_certified_rate(name: str, wanted: float) -> None:
    """Raise a ValueError unless a wanted lower limit of a rate lies between 0 and 1.

    name: the rate, "recall" or "precision", for the message; wanted: the lower limit.
    """
    if not 0 < wanted < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {wanted!r}")


def check_score_threshold(threshold: float) -> float:
    """Return a threshold of scores, which are probabilities, as float.

    Infinity is allowed, as no row is predicted positive there. Raise ValueError if the threshold is
    another number outside [0, 1], or NaN.
    """
    # Probabilities of classifiers may exceed 1 by rounding, and each of them is a threshold.
    if not (-_ROUNDING <= threshold <= 1 + _ROUNDING or threshold == math.inf):
        percent = f": pass {threshold / 100:g} for {threshold:g} %" if 1 < threshold <= 100 else ""
        raise ValueError(f"threshold must lie in [0, 1], got {threshold!r}{percent}")
    return float(threshold)


def _compute_precision(prevalence: float, recall: Float64, false_positive_rate: Float64) -> Float64:
    """Compute the precision from prevalence, recall and false positive rate.

    prevalence: fraction of positive rows; recall, false_positive_rate: at m thresholds, both (m,).
    Return the precisions, (m,), with 1 where no row is predicted positive.
    """
    right, wrong = prevalence * recall, (1 - prevalence) * false_positive_rate
    total = right + wrong
    return np.where(total > 0, right / np.where(total > 0, total, 1.0), 1.0)


def _check_cost_pair(costs: Sequence[Any]) -> tuple[float, float]:
    """Return the costs of a false negative and of a false positive as floats.

    costs: the two costs in this order. Raises ValueError if one is negative or not finite, or both
    are 0.
    """
    of_miss, of_alarm = (
        check_nonnegative(name, cost)
        for name, cost in zip(("false_negative", "false_positive"), costs, strict=True)
    )
    if of_miss == of_alarm == 0:
        raise ValueError(
            "false_negative and false_positive must not both be 0: at least one cost must be positive"
        )
    return of_miss, of_alarm


def check_costs(costs: Any) -> tuple[tuple[float, float], ...]:
    """Return the argument `costs` of `Guarantees.thresholds` as a tuple of pairs of floats.

    costs: None, which gives (); one pair (cost of a false negative, cost of a false positive); or a
    sequence of pairs. Raises ValueError if it is none of these, or a cost is negative, or both of a
    pair are 0.
    """
    if costs is None:
        return ()
    try:
        pairs = np.atleast_2d(np.asarray(costs, dtype=np.float64))
    except (ValueError, TypeError):
        pairs = np.empty((0, 0))
    if pairs.ndim != 2 or pairs.shape[1:] != (2,) or not len(pairs):
        raise ValueError(
            "costs must be a pair (cost of a false negative, cost of a false positive) or a sequence "
            f"of such pairs, got {costs!r}"
        )
    return tuple(_check_cost_pair(pair) for pair in pairs.tolist())


def _are_multiples(costs: tuple[float, float], named: tuple[float, float]) -> bool:
    """Return whether two pairs of costs are positive multiples of each other.

    costs, named: both (cost of a false negative, cost of a false positive).
    """
    (one, other), (its, of_other) = costs, named
    return math.isclose(one / max(costs), its / max(named), rel_tol=1e-12) and math.isclose(
        other / max(costs), of_other / max(named), rel_tol=1e-12
    )


def _choose_thresholds(costs: tuple[float, float]) -> Float64:
    """Return the five thresholds at which named costs have bounds of their own, (5,).

    costs: (cost of a false negative fn, cost of a false positive fp). If scores are probabilities
    the best threshold is fp / (fp + fn). The others have odds of e^-1, e^-0.5, e^0.5 and e times
    the odds of that.
    """
    of_miss, of_alarm = costs
    with np.errstate(divide="ignore"):
        odds = np.exp(_LOG_ODDS) * np.float64(of_alarm) / of_miss
    return np.where(np.isinf(odds), 1.0, odds / (1 + np.where(np.isinf(odds), 0.0, odds)))


def _round_between(low: float, high: float) -> float:
    """Return the number with the fewest decimal digits in the middle half of an interval.

    If several numbers have as few digits, it is the one nearest to the middle. low, high: the ends
    of the interval, low <= high. Return `high` if there is no number between them.
    """
    middle, reach = low + (high - low) / 2, (high - low) / 4
    for digits in range(17):
        rounded = round(middle, digits)
        if abs(rounded - middle) <= reach:
            return rounded
    return middle if low < middle else high


def _round_up(rate: float) -> str:
    """Return a rate as text with three decimals, rounded up: "0.124" for 0.1231."""
    return f"{math.ceil(1000 * rate - 1e-9) / 1000:.3f}"


def _round_down(rate: float) -> str:
    """Return a rate as text with three decimals, rounded down: "0.123" for 0.1239."""
    return f"{math.floor(1000 * rate + 1e-9) / 1000:.3f}"
