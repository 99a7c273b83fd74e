"""Bounds against exact sums, inverses in many digits and one another."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import reference
from certree.certificates.inequalities import bounds

LOG_DELTA = math.log(0.05)
rows = st.integers(1, 300)
log_deltas = st.one_of(st.floats(-1e4, -1e-3), st.just(LOG_DELTA), st.just(math.log(0.05) - 690.8))
shares = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-12, 1 - 1e-12]))
nats = st.floats(-9, 2).map(lambda power: 10.0**power)
second = st.floats(0, 0.5)


@given(rows, st.floats(0, 1), st.floats(1e-6, 1 - 1e-6))
@example(300, 0.9, 1e-6)
@example(300, 0.01, 1 - 1e-6)
def test_log_tail_is_that_of_the_sum(n, share, p):
    errors = min(int(share * n), n - 1)
    expected = reference.compute_log(reference.compute_binomial_tail(errors, n, p))
    assert bounds.log_binomial_tail(errors, n, p) == pytest.approx(expected, rel=1e-11, abs=1e-12)


@given(rows, st.floats(0, 1), log_deltas)
def test_binomial_upper_is_the_largest_risk_that_is_not_too_unlikely(n, share, log_delta):
    errors = min(int(share * n), n)
    bound = bounds.binomial_upper(errors, n, log_delta)
    if errors == n:
        assert bound == 1
        return
    assert errors / n * (log_delta < math.log(0.5)) <= bound <= 1
    below, above = bound * (1 - 1e-9), bound + (1 - bound) * 1e-9
    assert (
        reference.compute_log(reference.compute_binomial_tail(errors, n, below)) > log_delta - 1e-9
    )
    if above < 1:
        slack = 1e-9 * max(1, -log_delta)
        assert (
            reference.compute_log(reference.compute_binomial_tail(errors, n, above))
            < log_delta + slack
        )


def test_binomial_upper_without_errors_has_a_closed_form():
    for log_delta in (-0.1, -3.0, -700.0, -5000.0):
        expected = -math.expm1(log_delta / 1000)
        assert bounds.binomial_upper(0, 1000, log_delta) == pytest.approx(expected, rel=1e-12)


def test_binomial_upper_takes_a_delta_far_below_the_smallest_double():
    """Delta times a prior mass of 1e-300, and of many times less."""
    deltas = [LOG_DELTA + power * math.log(10) for power in (-250, -275, -280, -285, -300, -3000)]
    values = [bounds.binomial_upper(1000, 10_000, log_delta) for log_delta in deltas]
    assert values == sorted(values)
    assert len(set(values)) == len(values)
    for log_delta, value in zip(deltas, values, strict=True):
        assert bounds.log_binomial_tail(1000, 10_000, value) == pytest.approx(log_delta, rel=1e-12)
    assert bounds.binomial_upper(3, 10, -math.inf) == 1


@given(rows, shares, st.floats(0, 40), log_deltas)
def test_whether_a_bound_holds_is_whether_it_is_found_to(n, share, complexity, log_delta):
    for risk, inverse, holds in (
        (round(share * n) / n, bounds.occam, bounds.occam_holds),
        (share, bounds.occam_mean, bounds.occam_mean_holds),
        (share, bounds.martingale_mean, bounds.martingale_mean_holds),
    ):
        bound = inverse(risk, n, complexity, log_delta)
        assert holds(min(bound * (1 + 1e-9), 1), risk, n, complexity, log_delta)
        assert not holds(bound * (1 - 1e-9), risk, n, complexity, log_delta)


@settings(max_examples=settings.default.max_examples // 3)
@given(n=st.integers(1, 3000), share=shares, nats=st.floats(0.1, 60))
def test_martingale_bound_is_the_one_in_many_digits(n, share, nats):
    for errors in (0, round(share * n)):
        risk = errors / n
        expected = reference.compute_martingale_bound(risk, n, nats)
        assert bounds.martingale_mean(risk, n, 0.0, -nats) == pytest.approx(expected, rel=1e-9)


def test_martingale_bound_is_little_above_that_for_independent_rows():
    for n, risk in ((1000, 0.05), (10_000, 0.2), (10**6, 0.5)):
        independent, dependent = (
            bound(risk, n, 0.0, LOG_DELTA) for bound in (bounds.occam, bounds.martingale_mean)
        )
        assert independent < dependent < risk + 2 * (independent - risk)
    assert bounds.martingale_mean(1.0, 100, 0.0, LOG_DELTA) == 1
    assert bounds.martingale_mean(0.0, 1, 0.0, LOG_DELTA) < 1


@given(shares, nats)
def test_kl_inverses_are_those_in_many_digits(q, eps):
    assert bounds.kl_upper(q, eps) == pytest.approx(
        reference.invert_binary_kl(q, eps, 1), rel=1e-10
    )
    lower = reference.invert_binary_kl(q, eps, 0)
    assert bounds.kl_lower(q, eps) == pytest.approx(lower, rel=1e-9, abs=1e-30)


@given(shares, shares)
def test_kl_is_that_in_many_digits(q, p):
    expected = float(reference.compute_binary_kl(q, p))
    assert bounds.kl(q, p) == pytest.approx(expected, rel=1e-10, abs=1e-15)


def test_kl_inverses_are_rounded_outwards_and_clip():
    for q in (0.0, 1e-17, 0.3, 1.0):
        assert bounds.kl_lower(q, 0) <= q <= bounds.kl_upper(q, 0) <= q + 1e-7
    assert bounds.kl_upper(-1e-17, 0.1) == bounds.kl_upper(0, 0.1)
    assert bounds.kl_upper(1 + 1e-16, 0.1) == 1
    assert bounds.kl_upper(0.2, math.inf) == 1
    assert bounds.kl_lower(0.2, math.inf) == 0


@given(st.integers(1, 400))
def test_xi_is_maurers_sum(n):
    assert bounds.log_xi(n) == pytest.approx(
        reference.compute_log(reference.compute_xi(n)), abs=1e-11
    )
    assert 0.5 * math.log(n) <= bounds.log_xi(n) <= math.log(2) + 0.5 * math.log(n) + 1e-12


def test_xi_of_many_rows_is_its_asymptote():
    for n in (10**6, 10**6 + 1, 10**9, 10**15, 2.0**64, 1e150):
        asymptote = 0.5 * math.log(math.pi * n / 2) + 2 / 3 * math.sqrt(2 / (math.pi * n))
        assert bounds.log_xi(n) == pytest.approx(asymptote, abs=1e-6)


# What each function takes as observed numbers: risks that can occur together.
OBSERVED = {
    bounds.occam: lambda p: (p,),
    bounds.occam_mean: lambda p: (p,),
    bounds.martingale_mean: lambda p: (p,),
    bounds.pac_bayes_kl: lambda p: (p,),
    bounds.pac_bayes_lambda: lambda p: (p,),
    bounds.first_order: lambda p: (p,),
    bounds.first_order_range: lambda p: (p, 0.0, 0.6),
    bounds.tandem: lambda p: (p**2,),
    bounds.either_wrong: lambda p: (1 - (1 - p) ** 2,),
    bounds.tuples: lambda p: (bounds.at_least_wrong(p, 4, 2), 4, 2, 15),
    bounds.c_bound: lambda p: (p, 2 * p * (1 - p)),
    bounds.disagreement: lambda p: (p, 2 * p * (1 - p), 2),
    bounds.single_draw: lambda p: (p,),
}


@pytest.mark.parametrize("bound", OBSERVED, ids=lambda bound: bound.__name__)
@given(
    p=second, n=st.integers(1, 10**6), complexity=st.floats(0, 50), log_delta=st.floats(-1e4, -1)
)
def test_bounds_fall_with_rows_and_rise_with_complexity_and_confidence(
    bound, p, n, complexity, log_delta
):
    observed = OBSERVED[bound](p)
    value = bound(*observed, n, complexity, log_delta)
    assert 0 <= value <= 1
    slack = 1e-9
    assert bound(*observed, 2 * n, complexity, log_delta) <= value + slack
    assert bound(*observed, n, complexity + 1, log_delta) >= value - slack
    assert bound(*observed, n, complexity, log_delta - 1) >= value - slack


@given(p=st.floats(0, 1), n=st.integers(8, 10**6), complexity=st.floats(0, 50))
def test_who_is_below_whom(p, n, complexity):
    arguments = (n, complexity, LOG_DELTA)
    kl = bounds.pac_bayes_kl(p, *arguments)
    assert p <= kl <= bounds.pac_bayes_lambda(p, *arguments) + 1e-9
    assert bounds.occam_mean(p, *arguments) <= kl
    assert bounds.first_order(p, *arguments) == min(2 * kl, 1)
    assert bounds.tuples(p, 1, 1, 1, *arguments) == pytest.approx(bounds.first_order(p, *arguments))
    assert bounds.first_order_range(p, 0, 0.5, *arguments) == min(2 * kl, 1)
    assert bounds.first_order_range(p, 0, 1, *arguments) == kl
    assert bounds.single_draw(p, *arguments) == kl
    whole = round(p * n)
    # The binomial tail is exact, Chernoff's is not.
    assert bounds.occam(whole / n, *arguments) <= bounds.occam_mean(whole / n, *arguments) + 1e-9


@given(p=st.floats(0, 0.5), n=st.integers(8, 10**6), complexity=st.floats(0, 50))
def test_lambda_is_at_its_best_parameter(p, n, complexity):
    best = bounds.pac_bayes_lambda(p, n, complexity, LOG_DELTA)
    nats = complexity + bounds.log_xi(n) - LOG_DELTA
    for lam in np.linspace(0.01, 1.99, 50):
        assert best <= (p + nats / (lam * n)) / (1 - lam / 2) + 1e-12


@settings(max_examples=settings.default.max_examples // 3)
@given(
    p=st.floats(0, 0.5),
    spread=st.floats(0, 1),
    n=st.integers(1, 300),
    complexity=st.floats(0, 20),
    log_delta=st.floats(-800, -0.1),
)
def test_bounds_on_votes_are_those_of_their_theorems(p, spread, n, complexity, log_delta):
    one_wrong = spread * 2 * p * (1 - p)
    arguments = (n, complexity, log_delta)
    observed = {
        bounds.pac_bayes_kl: (p,),
        bounds.first_order: (p,),
        bounds.first_order_range: (p, 0.01, 0.7),
        bounds.tandem: (p - one_wrong / 2,),
        bounds.either_wrong: (p + one_wrong / 2,),
        bounds.c_bound: (p, one_wrong),
        bounds.disagreement: (p, one_wrong, 2),
    }
    expected = reference.compute_vote_bounds(p, one_wrong, one_wrong, *arguments)
    for bound, numbers in observed.items():
        value = min(max(expected[bound.__name__], 0), 1)
        assert bound(*numbers, *arguments) == pytest.approx(value, rel=1e-8, abs=1e-9)


def test_second_order_bounds_are_markovs_and_cantellis():
    few = (10**12, 0.0, LOG_DELTA)
    assert bounds.tandem(0.04, *few) == pytest.approx(0.16, abs=1e-4)
    assert bounds.either_wrong(0.3, *few) == pytest.approx(0.4, abs=1e-4)
    assert bounds.tuples(0.1, 3, 2, 1, *few) == pytest.approx(0.2, abs=1e-4)
    assert bounds.disagreement(0.2, 0.3, 2, *few) == pytest.approx(0.2, abs=1e-4)
    assert bounds.c_bound(0.2, 0.3, *few) == pytest.approx(1 - 0.36 / 0.4, abs=1e-4)
    for n_draws, n_wrong in ((1, 1), (3, 2), (4, 1), (5, 5)):
        assert bounds.at_least_wrong(0.3, n_draws, n_wrong) == pytest.approx(
            1 - float(reference.compute_binomial_tail(n_wrong - 1, n_draws, 0.3))
        )


def test_kinds_of_tuples_share_delta():
    many = bounds.tuples(0.1, 3, 2, 15, 1000, 5.0, LOG_DELTA)
    assert many == bounds.tuples(0.1, 3, 2, 1, 1000, 5.0, LOG_DELTA - math.log(15))


def test_the_variance_that_no_vote_has_promises_nothing():
    assert bounds.c_bound(0.5, 0.2, 1000, 1, LOG_DELTA) == 1
    assert bounds.chebyshev_cantelli(0.2, 0.5) == 1
    assert bounds.first_order_range(0.1, 0.5, 0.5, 1000, 1, LOG_DELTA) == 1


def test_a_draw_that_the_prior_likes_better_pays_less():
    args = (0.1, 1000)
    assert bounds.single_draw(*args, -2.0, LOG_DELTA) < bounds.single_draw(*args, 0.0, LOG_DELTA)
    assert bounds.single_draw(*args, -1e6, LOG_DELTA) == pytest.approx(0.1)


def test_what_is_out_of_range_is_refused():
    with pytest.raises(ValueError, match="n_classes must be 2 for the disagreement bound, got 3"):
        bounds.disagreement(0.1, 0.1, 3, 100, 1, LOG_DELTA)
    with pytest.raises(ValueError, match=r"errors must lie in 0 .. 10"):
        bounds.binomial_upper(11, 10, LOG_DELTA)
    for function in (bounds.occam, bounds.occam_mean, bounds.martingale_mean, bounds.pac_bayes_kl):
        with pytest.raises(ValueError, match="log_delta must be negative"):
            function(0.1, 100, 1, 0.05)
    for n_wrong in (0, 3):
        with pytest.raises(ValueError, match=r"n_wrong must lie in 1 .. 2"):
            bounds.tuples(0.1, 2, n_wrong, 1, 100, 1, LOG_DELTA)
