"""Which rows grow a tree and which judge it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


def content_folds(
    X: NDArray[Any], y: NDArray[Any], n_folds: int, rng: np.random.RandomState
) -> Iterator[tuple[Indices, Indices]]:
    """Deal the rows into folds by what they hold.

    Equal rows of one class share a fold, so that a row of weight w is dealt like w copies of it and
    no copy of a judged row has grown the tree. Within each class the distinct rows are dealt in
    turn, in a random order that does not depend on the order of the rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows.
    y : ndarray of int, shape (n,)
        Class of each row.
    n_folds : int
        Number of folds, at least 2.
    rng : numpy RandomState
        Source of the order.

    Yields
    ------
    grow, judge : ndarray of int
        Row numbers. A fold that would leave no row on a side is passed over.
    """
    # A random linear hash of the bits: equal rows collide, others do with probability 2^-64 or so.
    words = np.ascontiguousarray(X + 0.0, dtype=np.float64).view(np.uint64)
    multipliers = rng.randint(1, 2**63, size=2 * X.shape[1], dtype=np.int64).astype(np.uint64) | 1
    high, low = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
    hashes = (high * multipliers[::2] + low * multipliers[1::2]).sum(axis=1, dtype=np.uint64)
    hashes ^= hashes >> np.uint64(29)
    order = np.lexsort((hashes, y))
    new = np.ones(len(y), dtype=bool)
    new[1:] = (hashes[order][1:] != hashes[order][:-1]) | (y[order][1:] != y[order][:-1])
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = (np.cumsum(new) - 1) % n_folds
    for k in range(n_folds):
        grow, judge = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if len(grow) and len(judge):
            yield grow, judge
