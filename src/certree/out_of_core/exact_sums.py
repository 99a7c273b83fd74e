"""Sums of float64 numbers as Python integers, which do not depend on the order of the blocks."""

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64

# Every finite float64 number is an integer multiple of 2^-1126.
_PLACES = 1126
# Mantissas have 53 bits. They are split in two, so that sums of up to 2^31 halves fit in int64.
_BITS, _HALF = 53, 32


def convert_to_integers(values: Float64, unit: int) -> Int64:
    """Round numbers to multiples of a power of two.

    Parameters
    ----------
    values : ndarray of float64
        Finite numbers.
    unit : int
        Exponent of the power of two.

    Returns
    -------
    ndarray of int64, same shape
        The multiples of 2^unit.
    """
    return np.rint(np.ldexp(values, -unit)).astype(np.int64)


def exact_sum(values: Float64) -> int:
    """Sum finite numbers exactly; return the sum divided by 2^-1126, as a Python integer.

    values: the numbers, (n,). Every float64 number is an integer multiple of 2^-1126, so the
    integer does not depend on the order of the numbers, and sums of several blocks can be added.
    `round_sum` turns the total into a float, which equals `math.fsum` of all numbers.
    """
    if not len(values):
        return 0
    fraction, exponent = np.frexp(values)
    mantissa = np.ldexp(fraction, _BITS).astype(np.int64)
    order = np.argsort(exponent.astype(np.int16), kind="stable")
    exponent, mantissa = exponent[order], mantissa[order]
    starts = np.flatnonzero(np.append(True, exponent[1:] != exponent[:-1]))
    high = np.add.reduceat(mantissa >> _HALF, starts).tolist()
    low = np.add.reduceat(mantissa & (2**_HALF - 1), starts).tolist()
    shifts = (exponent[starts] + (_PLACES - _BITS)).tolist()
    terms = zip(high, low, shifts, strict=True)
    return sum(((h << _HALF) + low_half) << shift for h, low_half, shift in terms)


def compute_exact_sum(values: Float64) -> float:
    """Return the exact sum of finite numbers, (n,), rounded once to float64.

    It equals `math.fsum`, but is faster. OverflowError is raised if it exceeds the range of float64.
    """
    return round_sum(exact_sum(values))


def sum_class_weights(codes: NDArray[Any], weight: Float64 | None) -> list[int]:
    """Sum the weights of the rows of each class exactly, or count them.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Class code of each row, from 0 on.
    weight : ndarray of float64, shape (n,), or None
        Weight of each row; None: rows are counted.

    Returns
    -------
    list of int
        For each class up to the largest code: the sum of its weights, as an integer multiple of 2^-1126
        (see `exact_sum`), or its number of rows.
    """
    counts = np.bincount(codes)
    if weight is None:
        return [int(n) for n in counts]
    return [exact_sum(weight[codes == k]) for k in range(len(counts))]


def round_sum(total: int) -> float:
    """Return the float64 number nearest to an exact sum.

    total: the sum divided by 2^-1126, an integer from `exact_sum`. OverflowError is raised if the
    sum exceeds the range of float64.
    """
    try:
        number = total / (1 << _PLACES)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise OverflowError(
            "the sum of y or sample_weight exceeds the range of float64, about 1.8e308: divide them by "
            "a constant"
        )
    return number
