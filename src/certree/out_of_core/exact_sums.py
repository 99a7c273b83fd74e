"""Sums that parts add up: without rounding, or of numbers that are rounded in a unit of all rows."""

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64

# Every number of float64 is a whole multiple of 2 to minus this.
_PLACES = 1126
# A number is a whole one of 53 bits; sums of both halves of so many fit into 64.
_BITS, _HALF = 53, 32


def whole_numbers(values: Float64, unit: int) -> Int64:
    """Finite numbers as whole multiples, rounded, of two to the power of a unit."""
    return np.rint(np.ldexp(values, -unit)).astype(np.int64)


def exact_sum(values: Float64) -> int:
    """Sum of finite numbers in units of 2^-1126: once rounded it is what `math.fsum` says."""
    if not len(values):
        return 0
    share, exponent = np.frexp(values)
    whole = np.ldexp(share, _BITS).astype(np.int64)
    order = np.argsort(exponent.astype(np.int16), kind="stable")
    exponent, whole = exponent[order], whole[order]
    starts = np.flatnonzero(np.append(True, exponent[1:] != exponent[:-1]))
    high = np.add.reduceat(whole >> _HALF, starts).tolist()
    low = np.add.reduceat(whole & (2**_HALF - 1), starts).tolist()
    shifts = (exponent[starts] + (_PLACES - _BITS)).tolist()
    parts = zip(high, low, shifts, strict=True)
    return sum(((h << _HALF) + one) << shift for h, one, shift in parts)


def class_totals(codes: NDArray[Any], weight: Float64 | None) -> list[int]:
    """Exact weight of the rows of each class; without weights how many there are."""
    counts = np.bincount(codes)
    if weight is None:
        return [int(one) for one in counts]
    return [exact_sum(weight[codes == k]) for k in range(len(counts))]


def rounded(total: int) -> float:
    """The nearest number of float64 to a sum in units of 2^-1126."""
    try:
        number = total / (1 << _PLACES)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise OverflowError("the sum is no number of float64")
    return number
