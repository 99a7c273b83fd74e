"""Costs of two kinds of errors: against enumeration, and exactly as often too low as delta allows."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import multinomial

import reference
from certree.certificates.inequalities import weighted_errors
from certree.certificates.inequalities.bounds import binomial_upper, named_cost
from certree.certificates.inequalities.weighted_errors import _ConfidenceSet, bound_weighted_errors

NO_LIMITS = (1.0, 1.0)
CASES = [
    ((0, 0), 4, (1.0, 0.2), 0.05),
    ((1, 2), 6, (1.0, 0.2), 0.1),
    ((2, 0), 5, (0.3, 1.0), 0.2),
    ((0, 3), 6, (1.0, 0.5), 0.02),
    ((5, 0), 5, (1.0, 0.2), 0.05),
]


@pytest.mark.parametrize("within_limits", [False, True])
@pytest.mark.parametrize(("errors", "n", "weights", "level"), CASES)
def test_bounds_are_those_of_enumeration(errors, n, weights, level, within_limits):
    if within_limits:
        limits = [reference.find_largest_risk(k, n, level * 0.025) for k in errors]
        numbers = (*(k / n for k in errors), *weights)
        bound, level = named_cost(*numbers, n, 0.0, math.log(level)), 0.95 * level
    else:
        limits = (1.0, 1.0)
        bound = bound_weighted_errors(errors, n, weights, math.log(level), limits)
    expected = reference.find_highest_mean_cost(errors, n, weights, level, 60, limits)
    observed = sum(w * k for w, k in zip(weights, errors, strict=True)) / n
    assert bound >= expected - 1e-9
    # From above by a hundredth of the way, the precision of bisection, and what the grid leaves out.
    assert bound <= expected + 0.015 * (bound - observed) + sum(weights) / 60


@pytest.mark.parametrize("n", [12, 3001])
def test_most_errors_are_those_of_the_rank(n):
    of_counts = _ConfidenceSet.from_counts((n // 5, n // 4), n, (1.0, 0.3), -4.0)
    i = np.arange(n + 1.0)
    j = of_counts.find_most(i)
    assert j[n // 5] == n // 4

    def is_within(first, second):
        spread = of_counts.spread * np.sqrt(first + 1 + 0.09 * (second + 1))
        return (second < 0) | (first + 0.3 * second + spread <= of_counts.rank * (1 + 1e-9))

    assert is_within(i, j).all()
    assert not is_within(i, np.maximum(j, -1) + 1).any()


@pytest.mark.parametrize("cheap", [1e-3, 1e-6, 1e-9, 1e-12, 1e-170, 1e-308])
def test_costs_far_apart_are_bounded_as_those_of_the_dear_errors(cheap):
    """Rounding must not leave out the observed outcome."""
    for errors, n in (((300, 20), 3000), ((1000, 10), 20_000), ((7, 9000), 90_000)):
        of_counts = _ConfidenceSet.from_counts(errors, n, (1.0, cheap), -3.0)
        assert of_counts.find_most(np.array([errors[0] + 0.0]))[0] >= errors[1]
        found = named_cost(errors[0] / n, errors[1] / n, 1.0, cheap, n, 0.0, -3.0)
        of_dear = binomial_upper(errors[0], n, -3.0)
        spread = of_dear - errors[0] / n
        assert of_dear <= found <= of_dear + 0.1 * spread + 2 * cheap * errors[1] / n


def test_blocks_of_many_rows_make_probabilities_larger_by_little(monkeypatch):
    of_counts = _ConfidenceSet.from_counts((2000, 9000), 100_000, (1.0, 0.2), -4.0)
    p, q = np.array([0.0205, 0.0211, 0.0216]), np.array([0.0905, 0.0911, 0.0916])
    of_blocks = of_counts.compute_probability(p, q)
    monkeypatch.setattr(weighted_errors, "_BLOCKS", np.inf)
    of_rows = of_counts.compute_probability(p, q)
    assert (of_blocks >= of_rows).all()
    np.testing.assert_allclose(of_blocks, of_rows, rtol=0.2)


def list_bounds(n, weights, level):
    """Return all outcomes of n rows, (m, 3), and their bounds."""
    outcomes = [(i, j) for i in range(n + 1) for j in range(n + 1 - i)]
    bounds = [named_cost(i / n, j / n, *weights, n, 0.0, math.log(level)) for i, j in outcomes]
    return np.array([(i, j, n - i - j) for i, j in outcomes]), np.array(bounds)


@pytest.mark.parametrize("weights", [(1.0, 0.25), (0.6, 1.0)])
def test_bounds_are_too_low_no_more_often_than_delta_says_and_nearly_as_often(weights):
    """Every outcome of a few rows, at many pairs of probabilities."""
    n, level = 12, 0.1
    numbers, bounds = list_bounds(n, weights, level)
    failing, of_lower = [], []
    for p, q in product(np.linspace(0.02, 0.9, 23), repeat=2):
        if p + q < 1:
            mass = multinomial.pmf(numbers, n, [p, q, 1 - p - q])
            cost = weights[0] * p + weights[1] * q
            observed = numbers[:, :2] @ weights / n
            failing.append(mass[bounds < cost].sum())
            of_lower.append(mass[observed + 0.9 * (bounds - observed) < cost].sum())
    assert 0.75 * level < max(failing) <= level
    assert max(of_lower) > 1.05 * level


def test_more_errors_and_lower_levels_cost_more():
    of_more = [
        bound_weighted_errors((k, 30 - 5 * k), 200, (1.0, 0.2), -3.0, NO_LIMITS) for k in range(7)
    ]
    assert (np.diff(of_more) > 0).all()  # few dear errors are less certain than many cheap ones
    of_levels = [
        bound_weighted_errors((3, 9), 100, (1.0, 0.5), level, NO_LIMITS)
        for level in (-1.0, -3.0, -9.0)
    ]
    assert of_levels == sorted(of_levels)
    one = bound_weighted_errors((3, 9), 100, (0.5, 1.0), -3.0, (1.0, 0.5))
    assert one == bound_weighted_errors((9, 3), 100, (1.0, 0.5), -3.0, (0.5, 1.0))


def test_costs_that_are_the_same_or_none_are_those_of_one_kind():
    of_sum = binomial_upper(15, 100, -3.0)
    assert named_cost(0.05, 0.1, 1.0, 1.0, 100, 1.0, -2.0) == of_sum
    assert named_cost(0.05, 0.1, 1.0, 0.0, 100, 0.0, -3.0) == binomial_upper(5, 100, -3.0)
    assert named_cost(0.05, 0.1, 0.0, 0.5, 100, 0.0, -3.0) == 0.5 * binomial_upper(10, 100, -3.0)
    almost = bound_weighted_errors((5, 10), 100, (1.0, 1.0), -3.0, NO_LIMITS)
    assert of_sum <= almost == pytest.approx(of_sum, rel=0.01)


@pytest.mark.parametrize("log_delta", [-2.0, -5.3, -40.0])
@pytest.mark.parametrize(("p", "q"), [(0.01, 0.05), (0.1, 0.2), (0.2, 0.01)])
def test_bounds_fall_with_the_rows_without_jumps_below_those_of_each_kind(p, q, log_delta):
    """Also from 3,000 rows on, and at 1e6 rows."""
    for n in (1000, 2900, 9900, 999_900):
        bound, more = (
            named_cost(round(p * k) / k, round(q * k) / k, 1.0, 0.2, k, 0.0, log_delta)
            for k in (n, n + 100)
        )
        observed = p + 0.2 * q
        each = log_delta - math.log(2)
        separate = binomial_upper(round(p * n), n, each) + 0.2 * binomial_upper(
            round(q * n), n, each
        )
        assert bound - observed < separate - observed
        fallen = math.sqrt(n / (n + 100))
        assert more - observed == pytest.approx(fallen * (bound - observed), rel=0.03)


@pytest.mark.parametrize("n", [2**24 + 1, 10**12, 2**50])
def test_more_rows_than_any_table_has_are_bounded_by_the_limits(n):
    """A joint bound would take minutes and gigabytes, and log-gamma would be off by several nats."""
    errors = n // 50, n // 10
    limits = [binomial_upper(k, n, -3.0 + math.log(0.025)) for k in errors]
    found = named_cost(errors[0] / n, errors[1] / n, 1.0, 0.2, n, 0.0, -3.0)
    assert found == limits[0] + 0.2 * limits[1]
    joint = named_cost(0.02, 0.1, 1.0, 0.2, 2**24, 0.0, -3.0)
    assert joint - 0.04 < 1.5 * math.sqrt(n / 2**24) * (found - 0.04)


def test_levels_below_the_smallest_number_are_bounded_by_the_limits():
    limits = [binomial_upper(k, 90_000, -900.0 + math.log(0.025)) for k in (300, 900)]
    found = named_cost(1 / 300, 0.01, 1.0, 0.2, 90_000, 0.0, -900.0)
    assert found == limits[0] + 0.2 * limits[1]
    above = named_cost(1 / 300, 0.01, 1.0, 0.2, 90_000, 0.0, -599.0)
    assert above < found
    for log_delta in (-500.0, -900.0):
        assert named_cost(0.5, 0.5, 1.0, 0.9, 10, 0.0, log_delta) == 1.0
