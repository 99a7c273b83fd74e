"""Costs of two kinds of errors: against enumeration, and exactly as often too low as delta allows."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import multinomial

import reference
from certree.certificates.inequalities.bounds import binomial_upper, named_cost
from certree.certificates.inequalities.weighted_errors import bound_weighted_errors

CASES = [
    ((0, 0), 4, (1.0, 0.2), 0.05),
    ((1, 2), 6, (1.0, 0.2), 0.1),
    ((2, 0), 5, (0.3, 1.0), 0.2),
    ((0, 3), 6, (1.0, 0.5), 0.02),
    ((5, 0), 5, (1.0, 0.2), 0.05),
]


@pytest.mark.parametrize(("errors", "n", "weights", "level"), CASES)
def test_bounds_are_those_of_enumeration(errors, n, weights, level):
    bound = bound_weighted_errors(errors, n, weights, math.log(level))
    expected = reference.find_highest_mean_cost(errors, n, weights, level, steps=60)
    observed = sum(w * k for w, k in zip(weights, errors, strict=True)) / n
    assert bound >= expected - 1e-9
    # From above by a hundredth of the way, and what the grid leaves out.
    assert bound <= expected + 0.011 * (bound - observed) + sum(weights) / 60


def test_bounds_are_too_low_no_more_often_than_delta_says_and_nearly_as_often():
    """Every outcome of a few rows, at many pairs of probabilities."""
    n, weights, level = 12, (1.0, 0.25), 0.1
    outcomes = [(i, j) for i in range(n + 1) for j in range(n + 1 - i)]
    bounds = np.array([bound_weighted_errors(one, n, weights, math.log(level)) for one in outcomes])
    numbers = np.array([(i, j, n - i - j) for i, j in outcomes])
    failing, of_lower = [], []
    for p, q in product(np.linspace(0.02, 0.9, 23), repeat=2):
        if p + q < 1:
            mass = multinomial.pmf(numbers, n, [p, q, 1 - p - q])
            cost = weights[0] * p + weights[1] * q
            observed = numbers[:, :2] @ weights / n
            failing.append(mass[bounds < cost].sum())
            of_lower.append(mass[observed + 0.9 * (bounds - observed) < cost].sum())
    assert 0.8 * level < max(failing) <= level
    assert max(of_lower) > 1.1 * level


def test_more_errors_and_lower_levels_cost_more():
    of_more = [bound_weighted_errors((k, 30 - 5 * k), 200, (1.0, 0.2), -3.0) for k in range(7)]
    assert (np.diff(of_more) > 0).all()  # few dear errors are less certain than many cheap ones
    of_levels = [
        bound_weighted_errors((3, 9), 100, (1.0, 0.5), level) for level in (-1.0, -3.0, -9.0)
    ]
    assert of_levels == sorted(of_levels)
    assert bound_weighted_errors((3, 9), 100, (0.5, 1.0), -3.0) == pytest.approx(
        bound_weighted_errors((9, 3), 100, (1.0, 0.5), -3.0), rel=0.01
    )


def test_costs_that_are_the_same_or_none_are_those_of_one_kind():
    of_sum = binomial_upper(15, 100, -3.0)
    assert named_cost(0.05, 0.1, 1.0, 1.0, 100, 1.0, -2.0) == of_sum
    assert named_cost(0.05, 0.1, 1.0, 0.0, 100, 0.0, -3.0) == binomial_upper(5, 100, -3.0)
    assert bound_weighted_errors((5, 10), 100, (1.0, 1.0), -3.0) == pytest.approx(of_sum, rel=0.01)
    assert bound_weighted_errors((5, 10), 100, (1.0, 1.0), -3.0) >= of_sum


def test_many_rows_bound_either_kind_by_itself():
    half = -3.0 - math.log(2)
    expected = binomial_upper(200, 4000, half) + 0.2 * binomial_upper(400, 4000, half)
    assert named_cost(0.05, 0.1, 1.0, 0.2, 4000, 0.0, -3.0) == pytest.approx(expected)
    assert named_cost(0.5, 0.5, 1.0, 0.9, 10, 0.0, -500.0) == 1.0
