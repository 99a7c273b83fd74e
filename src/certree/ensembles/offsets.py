"""Offsets: known scores of rows, from which boosting starts."""

from reprlib import repr as shortened
from typing import Any

import numpy as np

from certree.interface.arrays import Float64
from certree.rows.training import expect_numbers

# Products of exponentials of larger logarithms with targets would overflow float64.
_MAX_LOG = 300.0
_MAX_NUMBER = 1e100


def convert_offset(name: str, offset: Any, n: int, n_outputs: int, *, is_log: bool) -> Float64:
    """Check the offsets of n rows and convert them to an array (n_outputs, n) of float64.

    Offsets are known scores of the rows, to which a boosted model adds its trees.

    Parameters
    ----------
    name : str
        Name of the parameter in errors.
    offset : array-like of shape (n,), or (n, n_outputs) for several outputs
        Offsets in units of the scores.
    n, n_outputs : int
        Number of rows, and of scores of a row; one score for two classes.
    is_log : bool
        Whether scores are logarithms or log odds, which must be in -300 .. 300; other scores must be in
        -1e100 .. 1e100.

    Raises
    ------
    ValueError
        If the shape differs, or a number is NaN, infinite or out of range.
    """
    expect_numbers(name, offset, "biuf")
    array, shape = np.array(offset, dtype=np.float64), (n,) if n_outputs == 1 else (n, n_outputs)
    if array.shape != shape:
        raise ValueError(
            f"{name} must have shape {shape}, got {array.shape}: pass one offset for each row and "
            "output"
        )
    largest = _MAX_LOG if is_log else _MAX_NUMBER
    if not (np.abs(array) <= largest).all():
        unit = "logarithms" if is_log else "numbers"
        raise ValueError(
            f"{name} must hold {unit} in {-largest:g} .. {largest:g}, got {shortened(offset)}: clip "
            "them, and replace missing ones by 0"
        )
    return array[None] if n_outputs == 1 else np.ascontiguousarray(array.T)
