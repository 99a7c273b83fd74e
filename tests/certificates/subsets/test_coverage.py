"""Which order statistic covers a share of new rows: against all outcomes, and by invariants."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree.certificates.inequalities import bounds
from certree.certificates.subsets import Scores, place_to_cover

SHARES = st.floats(0.01, 0.99)
DELTAS = st.floats(0.01, 0.5)


@given(st.integers(0, 40), SHARES, DELTAS)
def test_the_place_is_that_of_the_definition(n, coverage, delta):
    place = place_to_cover(n, coverage, delta)
    expected = reference.find_covering_rank(n, coverage, delta)
    if place != expected:  # where the sum is delta up to rounding
        fails = float(
            reference.compute_undercoverage_probability(n, min(place, expected), coverage)
        )
        assert fails == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize("n", [1, 3, 5, 6])
@pytest.mark.parametrize("coverage", [0.25, 0.5, 0.8])
def test_it_covers_whatever_n_rows_are_drawn_from_a_few_values(n, coverage):
    """Every sample of four values of given probabilities, ties included, with its probability."""
    probability = [0.1, 0.4, 0.3, 0.2]
    for delta in (0.05, 0.3, 0.5):
        place = place_to_cover(n, coverage, delta)
        if place <= n:
            assert (
                reference.compute_failure_probability(probability, n, place, coverage)
                <= delta + 1e-12
            )


@given(st.integers(1, 500), SHARES, SHARES, DELTAS)
def test_places_rise_with_what_is_promised(n, coverage, more, delta):
    place = place_to_cover(n, coverage, delta)
    assert 1 <= place <= n + 1
    assert place_to_cover(n, coverage + (1 - coverage) * more, delta) >= place
    assert place_to_cover(n, coverage, delta * more) >= place
    assert place_to_cover(n + 1, coverage, delta) in (place, place + 1)
    if place <= n:  # the certificate of the same rows never says more than was asked for
        bound = bounds.occam((n - place) / n, n, 0.0, math.log(delta))
        assert bound <= (1 - coverage) * (1 + 1e-12)


@given(SHARES, st.floats(1e-9, 0.5))
def test_rows_to_cover_are_the_fewest(coverage, delta):
    n = bounds.count_rows_to_cover(coverage, math.log(delta))
    assert place_to_cover(n, coverage, delta) == n
    assert n == 1 or place_to_cover(n - 1, coverage, delta) == n


def test_on_average_the_place_is_that_of_split_conformal_prediction():
    for n in (1, 9, 10, 19, 100):
        for coverage in (0.1, 0.5, 0.9, 0.95):
            # Of n + 1 exchangeable scores the last is among the `place` lowest.
            place = place_to_cover(n, coverage, None)
            assert place / (n + 1) >= coverage - 1e-9
            assert (place - 1) / (n + 1) < coverage


def regions(sizes=(40, 3, 100), mass=(0.3, 0.3, 0.4)):
    rng = np.random.default_rng(0)
    region = np.repeat(np.arange(len(sizes)), sizes)
    return rng.random(len(region)).round(2), region, np.array(mass)


def test_regions_are_covered_each_for_itself():
    value, region, mass = regions()
    scores = Scores.from_rows(value, region, mass)
    reach = scores.find_limits(0.8, 0.05)
    made = scores.certificates("leaf_band", 0.8, 0.05, ["a", "b", "c"])
    for r, certificate in enumerate(made):
        own = np.sort(value[region == r])
        place = reference.find_covering_rank(len(own), 0.8, 0.05 * mass[r])
        if place > len(own):
            assert certificate is None
            assert reach[r] == np.inf
            continue
        assert reach[r] == own[place - 1]
        assert certificate.n == len(own)
        assert certificate.risk == np.mean(own > reach[r])
        assert certificate.bound <= 0.2
        assert certificate.delta == 0.05
        assert f"rows in region {certificate.part}" in str(certificate)
    assert made[1] is None
    assert None not in (made[0], made[2])


def test_scores_go_through_a_pickle():
    scores = Scores.from_rows(*regions())
    again = pickle.loads(pickle.dumps(scores))
    for name in ("value", "start", "mass"):
        np.testing.assert_array_equal(getattr(again, name), getattr(scores, name))


def test_too_few_rows_say_how_many_are_needed():
    scores = Scores.from_rows(*regions((20,), (1.0,)))
    with pytest.raises(
        ValueError, match=r"coverage=0.9 with delta=0.05 needs at least 29 calibration rows"
    ):
        scores.find_limits(0.9, 0.05)
    assert Scores.from_rows(*regions((29,), (1.0,))).find_limits(0.9, 0.05) < np.inf
    with pytest.raises(ValueError, match="at least 40 calibration rows in a region, got 20"):
        Scores.from_rows(*regions((20, 19), (0.3, 0.3))).find_limits(0.9, 0.05)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"value": [2.0, 1.0]}, "ascend"),
        ({"value": [1.0, np.nan]}, "ascend"),
        ({"start": [0, 1]}, "start must rise"),
        ({"start": [0]}, "start must rise|shape"),
        ({"mass": [1.1]}, "sum to at most 1"),
        (
            {"mass": [0.0]},
            "mass, the fraction of delta that each region uses, must hold positive numbers",
        ),
    ],
)
def test_scores_that_do_not_go_together_are_refused(changed, message):
    given = {"value": [1.0, 2.0], "start": [0, 2], "mass": [1.0]}
    Scores(**given)
    with pytest.raises(ValueError, match=message):
        Scores(**{**given, **changed})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((10, 0.0, 0.05), "coverage must lie between 0 and 1"),
        ((10, 1.0, None), "coverage must lie between 0 and 1"),
        ((10, 0.9, 0.0), "delta must lie between 0 and 1"),
        ((10, 0.9, 1.5), "delta must lie between 0 and 1"),
        ((-1, 0.9, 0.5), "n must be a number of rows in"),
        (
            (2**64 - 1, 0.05, 0.5),
            r"n must be a number of rows in 0 .. 2\*\*53, got 18446744073709551615",
        ),
    ],
)
def test_numbers_out_of_range_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        place_to_cover(*given)
