"""What scores of rows start from beside the trees, as far as it is known before: offsets."""

from reprlib import repr as shortened
from typing import Any

import numpy as np

from certree.interface.arrays import Float64
from certree.rows.training import expect_numbers

# Logs beyond have exponentials whose products with targets are no float64.
_MOST_LOG = 300.0
_MOST_NUMBER = 1e100


def checked_offset(name: str, given: Any, n: int, n_outputs: int, *, is_log: bool) -> Float64:
    """Check what scores of n rows start from, and return it as (n_outputs, n).

    Parameters
    ----------
    name : str
        What errors call it.
    given : array-like of shape (n,), or (n, n_outputs) where there are several
        Numbers in units of the scores.
    n, n_outputs : int
        Numbers of rows and of scores.
    is_log : bool
        Whether scores are logarithms.

    Raises
    ------
    ValueError
        If it has another shape, or holds what is no finite number, or one that is too large.
    """
    expect_numbers(name, given, "biuf")
    offset, shape = np.array(given, dtype=np.float64), (n,) if n_outputs == 1 else (n, n_outputs)
    if offset.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {offset.shape}")
    most = _MOST_LOG if is_log else _MOST_NUMBER
    if not (np.abs(offset) <= most).all():
        unit = "logarithms" if is_log else "numbers"
        raise ValueError(
            f"{name} must hold {unit} in {-most:g} .. {most:g}, got {shortened(given)}"
        )
    return offset[None] if n_outputs == 1 else np.ascontiguousarray(offset.T)
