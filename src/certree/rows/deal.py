"""Which rows grow a tree, and which weigh its prunings."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def deal(
    n_rows: int, split: float, random_state: np.random.RandomState, groups: ArrayLike | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Deal rows, or groups of them, to growing and weighing at random, whatever they hold.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    split : float
        Share of the rows, or groups, that grow, between 0 and 1.
    random_state : numpy RandomState
        Source of the order.
    groups : array-like of shape (n_rows,), or None
        Group of each row, which stays in one piece.

    Returns
    -------
    grow, weigh : ndarray of intp
        Row numbers, ascending.

    Raises
    ------
    ValueError
        If a side would be empty, or there is not one group for each row.
    """
    part = np.arange(n_rows)
    if groups is not None:
        given = np.asarray(groups)
        if given.shape != (n_rows,):
            raise ValueError(f"groups must have shape ({n_rows},), got {given.shape}")
        part = np.unique(given, return_inverse=True)[1]
    n_parts = int(part.max()) + 1 if n_rows else 0
    n_growing = round(split * n_parts)
    if not 0 < n_growing < n_parts:
        units = "rows" if groups is None else "groups"
        raise ValueError(
            f"split={split!r} of {n_parts} {units} leaves none to "
            f"{'grow' if n_growing == 0 else 'weigh'}"
        )
    grows = np.zeros(n_parts, dtype=bool)
    grows[random_state.permutation(n_parts)[:n_growing]] = True
    return np.flatnonzero(grows[part]), np.flatnonzero(~grows[part])
