"""Guarantees for all thresholds at once, on scores with known distributions.

Misses are counted at every threshold that occurs, and just above it: between two of them counts stay
as they are while the true rates move. Bands use up all of their delta where scores have no ties, so
that a band a tenth too narrow is found out here.
"""

import os
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from certree.certificates.subsets.families import CertificateTerms
from certree.certificates.thresholds import Limits, ThresholdGuarantees

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
REPEATS = 2000 if LONG else 150
SIZES = (200, 1000, 5000) if LONG else (200,)
DELTA = 0.05


@dataclass(frozen=True)
class Source:
    """Scores u^(1 / power) of uniform u, in steps or in all numbers, of either class."""

    prevalence: float = 0.3
    powers: tuple = (0.6, 2.5)
    steps: int | None = None

    def draw(self, rng, n):
        is_positive = rng.random(n) < self.prevalence
        score = rng.random(n) ** (1 / np.where(is_positive, *self.powers[::-1]))
        return (score if self.steps is None else np.floor(score * self.steps)), is_positive

    def above(self, threshold, which, strictly=False):
        """Probability of a score of at least a threshold, or of one above it."""
        if self.steps is not None:
            threshold = (
                np.ceil(threshold) + strictly * (threshold == np.ceil(threshold))
            ) / self.steps
        return 1 - np.clip(threshold, 0.0, 1.0) ** self.powers[which]


def is_missed(source, found, width=1.0):
    """Whether any limit at any threshold is wrong."""
    share = source.prevalence
    if not holds(found.prevalence, share, width):
        return True
    lower = np.append(found.threshold[1:], -np.inf)
    for threshold, strictly in ((found.threshold, False), (lower, True)):
        alarmed, recall = (source.above(threshold, which, strictly) for which in (0, 1))
        taken = share * recall + (1 - share) * alarmed
        limits = {
            "false_positive_rate": alarmed,
            "recall": recall,
            "predicted_positive_rate": taken,
            "precision": np.where(taken > 0, share * recall / np.where(taken > 0, taken, 1), 1.0),
        }
        if not all(holds(getattr(found, name), true, width) for name, true in limits.items()):
            return True
        cost = 5 * share * (1 - recall) + (1 - share) * alarmed
        if not holds(found.cost(5, 1), cost, width):
            return True
    return False


def holds(limits: Limits, true, width):
    low = limits.observed + width * (limits.lowest - limits.observed)
    high = limits.observed + width * (limits.highest - limits.observed)
    return bool(np.all((low <= true + 1e-12) & (true <= high + 1e-12)))


def judged(source, rng, n, costs=()):
    score, is_positive = source.draw(rng, n)
    return ThresholdGuarantees(1, score, is_positive, CertificateTerms(DELTA, 1.0), costs)


def expect_few(misses, repeats=REPEATS):
    # A rate of delta would pass this with a probability of 0.999.
    assert misses <= binom.ppf(0.999, repeats, DELTA), misses


@pytest.mark.parametrize("n", SIZES)
def test_limits_hold_at_all_thresholds_and_are_no_wider_than_needed(n):
    source = Source()
    rng, misses, of_narrow = np.random.default_rng(n), 0, 0
    for _ in range(REPEATS):
        found = judged(source, rng, n)
        misses += is_missed(source, found)
        of_narrow += is_missed(source, found, width=0.9)
    expect_few(misses)
    assert misses >= 0.3 * DELTA * REPEATS
    assert of_narrow > 3 * binom.ppf(0.999, REPEATS, DELTA)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("prevalence", [0.3, 0.02])
def test_limits_hold_where_scores_are_tied(n, prevalence):
    source = Source(prevalence, steps=12)
    rng = np.random.default_rng(n)
    expect_few(sum(is_missed(source, judged(source, rng, n)) for _ in range(REPEATS)))


@pytest.mark.parametrize("n", SIZES)
def test_limits_hold_for_all_rows_and_all_groups_together(n):
    """All rows are a mixture of the groups, whose rates are known, too."""
    sources = [Source(0.2), Source(0.5, (0.4, 1.5)), Source(0.3, (1.0, 1.0), 5)]
    rng, misses = np.random.default_rng(n), 0
    for _ in range(REPEATS):
        group = rng.integers(0, 3, n)
        score, is_positive = np.empty(n), np.empty(n, dtype=bool)
        for place, source in enumerate(sources):
            own = group == place
            score[own], is_positive[own] = source.draw(rng, own.sum())
        whole = ThresholdGuarantees(1, score, is_positive, CertificateTerms(DELTA, 1.0))
        found = ThresholdGuarantees.divide_delta(whole, ["a", "b", "c"], group).groups
        assert found["a"].terms.share == 0.25
        misses += any(map(is_missed, sources, found.values()))
    expect_few(misses)


@pytest.mark.parametrize("n", (200, 1000) if LONG else (200,))
@pytest.mark.parametrize("costs", [(5, 1), (1, 20)])
def test_named_costs_hold_wherever_the_bound_is_lowest(n, costs):
    source, repeats = Source(0.25, (0.3, 4.0)), 500 if LONG else 60
    rng, misses = np.random.default_rng(n), 0
    for _ in range(repeats):
        point = judged(source, rng, n, (costs,)).lowest_cost(*costs)
        alarmed, recall = (source.above(np.array(point.threshold), which) for which in (0, 1))
        true = costs[0] * 0.25 * (1 - recall) + costs[1] * 0.75 * alarmed
        misses += true > point.cost_at_most
    expect_few(misses, repeats)
