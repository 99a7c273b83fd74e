"""Rows of whole weights as copies of themselves."""

import numpy as np

from certree.interface.arrays import Float64
from certree.rows.folds import Indices

# More copies than so many for each row take too much time.
MOST_COPIES_OF_ROW = 10


def copies(weight: Float64 | None, n: int) -> Indices | None:
    """Each of n rows as often as it weighs; None if weights are not whole, or their sum is large."""
    if weight is None or not are_whole(weight) or not are_few(weight.sum(), n):
        return None
    return repeated(weight)


def are_whole(weight: Float64) -> bool:
    """Whether weights can be numbers of copies."""
    return bool((weight % 1 == 0).all())


def are_few(total: float, n: int) -> bool:
    """Whether so many copies of n rows in all do not take too much time."""
    return bool(total <= MOST_COPIES_OF_ROW * n)


def repeated(weight: Float64) -> Indices:
    """Each row as often as it weighs."""
    return np.repeat(np.arange(len(weight)), weight.astype(np.intp))
