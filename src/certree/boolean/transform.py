"""The fast Walsh-Hadamard transform: all values of a function to its spectrum, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from certree import _core
from certree.boolean.bits import Bits, TwoValued
from certree.boolean.spectrum import Spectrum
from certree.interface.arrays import Float64, check_column, to_array
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads

# Largest number of bits of a function whose values, half a gigabyte, are all held in memory.
MAX_BITS = 26


@validate_arguments
def walsh_hadamard(
    values: ArrayLike, *, inverse: bool = False, n_jobs: int | None = None
) -> Float64:
    """Compute all Fourier coefficients of a function of n bits from all its values, or back.

    The coefficient of a set S of bits is the mean over all rows of the function's value times the
    product of the signs (-1)^b of the bits b in S.

    Parameters
    ----------
    values : array-like of shape (2^n,)
        Value of the function at each row u, where bit j of the row is bit j of the number u; n is
        at most 26. With `inverse`, the coefficient of each set S, where bit j of the number S says
        whether bit j belongs to the set.
    inverse : bool
        Whether to compute values from coefficients.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (2^n,)
        ``2^-n sum over u of values[u] (-1)^|u & S|`` for each set number S, where ``|u & S|`` is the
        number of bits that u and S share. With `inverse`, the same sum over sets for each row,
        without 2^-n.

    Raises
    ------
    TypeError
        If the values do not convert to float64 without loss.
    ValueError
        If their number is not a power of two, or above 2^26.
    """
    array = to_array("values", values)
    n = array.size.bit_length() - 1
    if array.size != 1 << max(n, 0) or n > MAX_BITS:
        raise ValueError(f"values must have 1, 2, 4, ... or 2^26 entries, got {array.size}")
    table: Float64 = check_column("values", array, "float64", (None,))
    return _core.walsh_hadamard(table, 1.0 if inverse else 0.5**n, get_n_threads(n_jobs))


@validate_arguments
def spectrum_of_values(
    values: ArrayLike, *, coding: TwoValued = "0/1", n_jobs: int | None = None
) -> Spectrum:
    """Compute the spectrum (all Fourier coefficients) of a function of n bits from all its values.

    Parameters
    ----------
    values : array-like of shape (2^n,)
        Value of the function at each row u, where bit j of the row is bit j of the number u; n lies
        in 1 .. 26.
    coding : {"0/1", "-1/+1"}
        The two values of the n features at which the spectrum can be evaluated; bit 0 is the value
        0, or +1 for "-1/+1".
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    Spectrum
        A spectrum of one output, with the terms whose coefficients are not 0.

    Raises
    ------
    TypeError
        If the values do not convert to float64 without loss.
    ValueError
        If their number is not a power of two, or n is not in 1 .. 26.
    """
    coefficients = walsh_hadamard(values, n_jobs=n_jobs)
    if len(coefficients) < 2:
        raise ValueError(
            "values must have at least 2 entries, those of the two rows of one bit, got "
            f"{len(coefficients)}"
        )
    sets = np.flatnonzero(coefficients)
    bits = Bits.two_valued(len(coefficients).bit_length() - 1, coding)
    return Spectrum(sets[:, None].astype(np.uint64), coefficients[sets, None], bits)
