"""Bands around distribution functions: exact chances, and levels that use up all of delta."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

import reference
from certree._core import compute_order_probability
from certree.certificates.inequalities.order_statistics import (
    compute_cdf_bound,
    compute_cdf_bounds,
    local_level,
)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=7))
def test_chances_are_those_of_the_determinant(pairs):
    lower = np.sort([min(pair) for pair in pairs])
    upper = np.sort([max(pair) for pair in pairs])
    expected = float(reference.compute_order_probability(lower, upper))
    assert compute_order_probability(lower, upper) == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_chances_of_many_draws_are_those_that_are_known():
    whole = np.zeros(3000), np.ones(3000)
    assert compute_order_probability(*whole) == pytest.approx(1, abs=1e-9)
    # All below a number, and none of two below another one.
    assert compute_order_probability(np.zeros(400), np.full(400, 0.999)) == pytest.approx(
        0.999**400
    )
    assert compute_order_probability(np.array([0.3, 0.3]), np.ones(2)) == pytest.approx(0.49)
    assert compute_order_probability(np.array([0.0, 0.6]), np.array([0.5, 0.6])) == 0


@pytest.mark.parametrize(
    ("lower", "upper"), [([0.5, 0.2], [1.0, 1.0]), ([0.1], [1.5]), ([-0.1], [1.0]), ([], [])]
)
def test_boundaries_must_ascend(lower, upper):
    with pytest.raises(ValueError, match=r"must ascend in 0 \.\. 1"):
        compute_order_probability(np.array(lower), np.array(upper))
    with pytest.raises(ValueError, match="upper has length 1, expected 2"):
        compute_order_probability(np.zeros(2), np.ones(1))


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
@pytest.mark.parametrize("n", [1, 2, 5, 40, 700])
def test_levels_are_as_high_as_delta_allows(n, delta):
    level, places = local_level(n, delta), np.arange(1, n + 1)
    for factor, is_held in ((1.0, True), (1.01, False)):
        lower = beta.ppf(factor * level / 2, places, n + 1 - places)
        miss = 1 - compute_order_probability(lower, 1 - lower[::-1].copy())
        assert (miss <= delta * (1 + 1e-6)) == is_held
    # A tenth off the width fails far more often.
    middle = places / (n + 1)
    narrow = middle + 0.9 * (beta.ppf(level / 2, places, n + 1 - places) - middle)
    if n > 10 and delta == 0.05:
        narrow = np.maximum.accumulate(narrow.clip(0, 1))
        assert 1 - compute_order_probability(narrow, 1 - narrow[::-1].copy()) > 1.4 * delta


def test_levels_of_few_draws_are_those_of_the_determinant():
    for n in (2, 4, 6):
        lower = compute_cdf_bounds(n, math.log(0.1))[1:]
        chance = reference.compute_order_probability(lower, 1 - lower[::-1])
        assert 0.9 <= float(chance) < 0.9005


@pytest.mark.parametrize(
    ("n", "log_delta"), [(10_001, -3.0), (300, -30.0), (20, -2000.0), (0, -3.0)]
)
def test_closed_forms_are_those_of_massart_and_of_bonferroni(n, log_delta):
    shares, half = compute_cdf_bounds(n, log_delta), log_delta - math.log(2)
    assert len(shares) == n + 1
    assert shares[0] == 0
    for k in range(0, n + 1, max(n // 7, 1)):
        middle = k / max(n, 1) - math.sqrt((math.log(2) - half) / (2 * max(n, 1)))
        tail = beta.ppf(math.exp(half) / (2 * n), k, n + 1 - k) if k else 0.0
        assert shares[k] == pytest.approx(max(middle, tail, 0.0), abs=1e-12)
        assert compute_cdf_bound(k, n, log_delta) == shares[k]


def test_one_entry_is_that_of_all_and_of_any_number_of_draws():
    for n in (1, 9, 120):
        every = compute_cdf_bounds(n, -3.0)
        assert [compute_cdf_bound(k, n, -3.0) for k in range(n + 1)] == every.tolist()
        assert not every.flags.writeable
        assert (np.diff(every) > 0).all()
    assert compute_cdf_bound(2**49, 2**50, -3.0) == pytest.approx(0.5, abs=1e-6)


def test_a_band_holds_distribution_functions_with_atoms():
    rng, misses = np.random.default_rng(0), 0
    n, delta, repeats = 60, 0.2, 600
    lowest = compute_cdf_bounds(n, math.log(delta))
    points = np.arange(5)
    for _ in range(repeats):
        drawn = rng.binomial(4, 0.3, n)
        below, at_most = (
            np.array([test(drawn, x).sum() for x in points]) for test in (np.less, np.less_equal)
        )
        truth = np.array([math.comb(4, x) * 0.3**x * 0.7 ** (4 - x) for x in points])
        for count, share in ((at_most, truth.cumsum()), (below, truth.cumsum() - truth)):
            if (share < lowest[count] - 1e-12).any() or (
                share > 1 - lowest[n - count] + 1e-12
            ).any():
                misses += 1
                break
    assert misses <= delta * repeats
