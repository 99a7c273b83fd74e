"""Rows of whole weights as copies of themselves."""

import numpy as np

from certree.interface.arrays import Float64
from certree.rows.folds import Indices

# More copies than so many for each row take too much time.
_MOST_COPIES = 10


def copies(weight: Float64 | None, n: int) -> Indices | None:
    """Each of n rows as often as it weighs; None if weights are not whole, or their sum is large."""
    if weight is None or (weight % 1 != 0).any() or weight.sum() > _MOST_COPIES * n:
        return None
    return np.repeat(np.arange(n), weight.astype(np.intp))
