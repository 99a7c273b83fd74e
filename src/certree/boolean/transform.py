"""The fast Walsh-Hadamard transform: from all values of a function to its spectrum, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from certree import _core
from certree.boolean.bits import Bits, TwoValued
from certree.boolean.spectrum import Spectrum
from certree.interface.arrays import Float64, check_column, to_array
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads

# All values of a function of so many bits fit into memory: half a gigabyte.
MOST_BITS = 26


@validate_arguments
def walsh_hadamard(
    values: ArrayLike, *, inverse: bool = False, n_jobs: int | None = None
) -> Float64:
    """Transform all values of a function to all its coefficients, or back.

    Parameters
    ----------
    values : array-like of shape (2^n,)
        Value at u, whose bit j is bit j of the number u; n is at most 26. Backwards: the coefficient
        of each set, numbered in the same way.
    inverse : bool
        Whether to go back, from coefficients to values.
    n_jobs : int or None
        Number of threads; None is one, -1 all. The result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (2^n,)
        ``2^-n sum over u of values[u] (-1)^|u & S|`` for each S; backwards the same without 2^-n.

    Raises
    ------
    TypeError
        If the values do not convert to float64 without loss.
    ValueError
        If their number is no power of two, or there are more than 2^26.
    """
    given = to_array("values", values)
    n = given.size.bit_length() - 1
    if given.size != 1 << max(n, 0) or n > MOST_BITS:
        raise ValueError(f"values must have 1, 2, 4, ... or 2^26 entries, got {given.size}")
    table: Float64 = check_column("values", given, "float64", (None,))
    return _core.walsh_hadamard(table, 1.0 if inverse else 0.5**n, get_n_threads(n_jobs))


@validate_arguments
def spectrum_of_values(
    values: ArrayLike, *, coding: TwoValued = "0/1", n_jobs: int | None = None
) -> Spectrum:
    """Expand a function that is given by all its values.

    Parameters
    ----------
    values : array-like of shape (2^n,)
        Value at u, whose bit j is bit j of the number u; n lies in 1 .. 26.
    coding : {"0/1", "-1/+1"}
        What features are; see `Bits`.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    Spectrum
        The terms that are not 0.

    Raises
    ------
    TypeError
        If the values do not convert to float64 without loss.
    ValueError
        If their number is no power of two, or n is not in 1 .. 26.
    """
    coefficients = walsh_hadamard(values, n_jobs=n_jobs)
    if len(coefficients) < 2:
        raise ValueError("values must be those of one bit at least")
    sets = np.flatnonzero(coefficients)
    bits = Bits.two_valued(len(coefficients).bit_length() - 1, coding)
    return Spectrum(sets[:, None].astype(np.uint64), coefficients[sets, None], bits)
