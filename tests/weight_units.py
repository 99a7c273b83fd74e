"""What it means that only ratios of the weights of rows count."""

import numpy as np


def expect_no_unit(told, weight, powers=(-20, 3)):
    """No bit of what `told(weight)` returns changes with the unit of weights, but for rounding.

    Powers of two change none, other factors 1e-9 at most.
    """
    found = told(weight)
    for power in powers:
        np.testing.assert_array_equal(told(np.ldexp(weight, power)), found)
    np.testing.assert_allclose(told(3.7 * weight), found, rtol=1e-9, atol=1e-9)
