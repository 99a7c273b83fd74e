"""Draw the training rows that a scorer gets: at most 10,000, of each class its fraction.

Rows are drawn by their random keys, so the draw does not depend on where rows are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Int64, UInt64
from certree.rows.hashes import mix

# A scorer gets at most so many training rows, as in scikit-learn.
_SCORED_ROWS = 10_000
# Rows whose keys are looked through at a time.
_BLOCK_ROWS = 2**18
_LARGEST_KEY = np.iinfo(np.uint64).max


class KeySample(NamedTuple):
    """The smallest random keys of the rows of each class, which define a random sample of rows.

    The key of a row is a random number; rows with keys up to the largest one here are in the sample.

    Attributes
    ----------
    keys : ndarray of uint64, shape (m,)
        Keys of the m rows of the sample, mixed with the seed of the fit.
    classes : ndarray of intp, shape (m,)
        The class of each of these rows.
    """

    keys: UInt64
    classes: NDArray[np.intp]


def get_strata(y: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """Return the class of each training row, by which a sample of rows is stratified, (n,).

    y: class codes or numbers, (n,) or (n, n_targets); n_classes: number of classes; 1 for numbers
    or several targets: all rows then have class 0. The dtype is that of y, or int32.
    """
    return y if n_classes > 1 else np.broadcast_to(np.int32(0), (len(y),))


def count_classes(classes: NDArray[Any], n_classes: int) -> Int64:
    """Count the rows of each class, (n_classes,). classes: class code of each row, (n,)."""
    counts = np.zeros(n_classes, np.int64)
    for rows in _iterate_blocks(len(classes)):
        counts += np.bincount(classes[rows].astype(np.intp), minlength=n_classes)
    return counts


def count_sampled_rows(n_of_class: Int64) -> Int64:
    """Return how many training rows of each class a scorer gets, (K,).

    A scorer of scikit-learn gets all rows, or 10,000 in proportion to the classes if there are more.

    n_of_class: number of training rows of each class, (K,).
    """
    n = int(n_of_class.sum())
    if n <= _SCORED_ROWS:
        return n_of_class
    return np.diff((np.cumsum(n_of_class) * _SCORED_ROWS + n // 2) // n, prepend=0)


def draw_smallest_keys(
    keys: UInt64, classes: NDArray[Any], seed: int, n_sampled: Int64
) -> KeySample:
    """Find the smallest keys of each class, after they are mixed with a seed.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n,)
        Random keys of the rows: hashes of their values and of their numbers among equal rows.
    classes : ndarray of shape (n,)
        Class of each row; see `get_strata`.
    seed : int
        Seed of the fit.
    n_sampled : ndarray of int64, shape (K,)
        Wanted number of keys of each of K classes.

    Returns
    -------
    KeySample
        The mixed keys and the classes of the rows that have them, sorted by class and key. It has
        fewer keys of a class that has fewer rows.
    """
    sample = KeySample(np.zeros(0, np.uint64), np.zeros(0, np.intp))
    limits = np.full(len(n_sampled), _LARGEST_KEY)
    for rows in _iterate_blocks(len(keys)):
        mixed, of_class = _mix_seed(keys[rows], seed), classes[rows].astype(np.intp)
        is_candidate = mixed <= limits[of_class]
        block = KeySample(mixed[is_candidate], of_class[is_candidate])
        sample = merge_samples([sample, block], n_sampled)
        limits = compute_key_limits(sample, n_sampled)
    return sample


def merge_samples(samples: Iterable[KeySample], n_sampled: Int64) -> KeySample:
    """Merge samples of several blocks of rows to one sample, sorted by class and key.

    samples: smallest random keys of the rows of each block, and the classes of these rows;
    n_sampled: number of rows to keep of each of K classes, (K,), those with the smallest keys.
    """
    keys, classes = (np.concatenate(one) for one in zip(*samples, strict=True))
    order = np.lexsort((keys, classes))
    starts = np.searchsorted(classes[order], np.arange(len(n_sampled)))
    place = np.arange(len(order)) - starts[classes[order]]
    kept = order[place < n_sampled[classes[order]]]
    return KeySample(keys[kept], classes[kept])


def compute_key_limits(sample: KeySample, n_sampled: Int64) -> UInt64:
    """Return, for each class, the largest random key in a sample of rows, (K,) uint64.

    Rows with larger keys are not in the sample. n_sampled: wanted number of rows of each class,
    (K,). The limit is the largest uint64 if the sample has fewer rows of the class, and 0 if no row
    is wanted.
    """
    limits = np.zeros(len(n_sampled), np.uint64)
    np.maximum.at(limits, sample.classes, sample.keys)
    counts = np.bincount(sample.classes, minlength=len(n_sampled))
    return np.where(counts < n_sampled, _LARGEST_KEY, limits)


def find_sampled_rows(
    keys: UInt64, classes: NDArray[Any], seed: int, limits: UInt64
) -> NDArray[np.intp]:
    """Return the indices of the rows that a scorer gets, whose keys do not exceed a limit.

    keys, classes: random key and class of each row, (n,); seed: seed of the fit, with which keys
    are mixed before the comparison; limits: for each class the largest mixed key of the sample,
    (K,), see `compute_key_limits`. Return indices, (m,), ascending. Rows of one group have the same
    key, so a scorer gets whole groups, and may get a few more rows than were wanted.
    """
    found = [np.zeros(0, np.intp)]
    for rows in _iterate_blocks(len(keys)):
        is_sampled = _mix_seed(keys[rows], seed) <= limits[classes[rows].astype(np.intp)]
        found.append(rows.start + np.flatnonzero(is_sampled))
    return np.concatenate(found)


def _iterate_blocks(n: int) -> Iterator[slice]:
    """Yield slices that divide 0 .. n - 1 into blocks, so that temporary arrays stay small."""
    return (slice(begin, begin + _BLOCK_ROWS) for begin in range(0, n, _BLOCK_ROWS))


def _mix_seed(keys: UInt64, seed: int) -> UInt64:
    """Hash random keys, (n,), together with a seed; return (n,) uint64.

    The result is independent of the random samples of rounds, which use the keys themselves.
    """
    return mix(keys ^ np.uint64(seed))
