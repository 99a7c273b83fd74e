"""Sums of parts are those of all, rounded once."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from certree.out_of_core.exact_sums import exact_sum, round_sum

NUMBERS = arrays.arrays(np.float64, st.integers(0, 30), elements=st.floats(-1e300, 1e300))


@given(NUMBERS, st.integers(0, 30))
def test_parts_add_up_to_what_fsum_says(values, place):
    total = exact_sum(values[:place]) + exact_sum(values[place:])
    assert Fraction(total, 2**1126) == sum(map(Fraction, values.tolist()))
    assert round_sum(total) == fsum(values)


def test_extreme_numbers():
    values = np.array([5e-324, -5e-324, 1.7e308, 5e-324, -1.7e308, 0.0, -0.0])
    assert round_sum(exact_sum(values)) == 5e-324
    with pytest.raises(OverflowError, match="exceeds the range of float64"):
        round_sum(exact_sum(np.array([1.7e308, 1.7e308])))


def test_many_numbers():
    values = np.random.RandomState(0).lognormal(0, 5, 100_000)
    parts = np.array_split(values, 7)
    assert round_sum(sum(map(exact_sum, parts))) == fsum(values)
