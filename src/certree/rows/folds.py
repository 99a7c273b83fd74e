"""Assign rows to folds, or to a training and a validation set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from certree.interface.arrays import Float64, Int32
from certree.rows.hashes import mix, number_copies

Indices = NDArray[np.intp]


# Numbers hashed at a time, so that intermediate arrays stay in the processor's cache.
_CACHED = 1 << 16

# Small tables may be split into more folds than they have rows, and the empty ones are left out.
# This limits the number of folds to go through.
_MOST_FOLDS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Training and validation set of one fold of a cross-validation; no row is in both.

    Parameters
    ----------
    train : ndarray of intp
        Indices of the rows that grow a tree.
    validation : ndarray of intp
        Indices of the rows that validate it.
    """

    train: Indices
    validation: Indices

    def swap(self) -> Fold:
        """Return a fold whose training set is this fold's validation set, and the other way round."""
        return Fold(self.validation, self.train)

    def without_validation(self) -> Fold:
        """Return a fold with the same training set and an empty validation set."""
        return Fold(self.train, self.validation[:0])


def expect_folds(n_folds: int, n: int | None = None) -> None:
    """Raise a ValueError if n_folds is less than 2, or more than n rows and more than 1000.

    n: number of rows; None: no upper limit.
    """
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2, got {n_folds}")
    if n is not None and n_folds > (most := max(n, _MOST_FOLDS)):
        raise ValueError(f"cv must be at most {most} for {n} rows, got {n_folds}")


def iterate_group_folds(
    groups: NDArray[Any], n_folds: int, rng: np.random.RandomState
) -> Iterator[tuple[Indices, Indices]]:
    """Yield the folds of a cross-validation by whole groups, assigned at random.

    Rows that depend on each other, those of a group, are then never in training and validation
    set.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Group of each row.
    n_folds : int
        Number of folds, at least 2; at most as many as there are groups are made.
    rng : numpy RandomState
        Source of the order.

    Yields
    ------
    train, validation : ndarray of intp
        Row indices, ascending. A fold whose training set would be empty is left out.
    """
    names, group = number_groups(groups)
    fold_of_row = assign_groups_to_folds(len(names), n_folds, rng)[group]
    for k in range(min(n_folds, len(names))):
        is_validation = fold_of_row == k
        if not is_validation.all():
            yield np.flatnonzero(~is_validation), np.flatnonzero(is_validation)


def number_groups(groups: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """Return the distinct groups, sorted, and the index of each row's group among them, (n,).

    Raise a TypeError if groups cannot be sorted.
    """
    try:
        return np.unique(groups, return_inverse=True)
    except (TypeError, ValueError):
        raise make_unordered_error(groups) from None


def make_unordered_error(groups: NDArray[Any]) -> TypeError:
    """Return a TypeError that says which types of groups cannot be sorted."""
    kinds = ", ".join(sorted({type(one).__name__ for one in groups.tolist()}))
    return TypeError(
        f"groups must hold values that can be ordered, such as text or numbers, got {kinds}"
    )


def assign_groups_to_folds(n_groups: int, n_folds: int, rng: np.random.RandomState) -> Indices:
    """Return the fold of each of n_groups groups, (n_groups,), drawn at random with equal sizes.

    n_folds: number of folds, at least 2. rng: source of the order.
    """
    expect_folds(n_folds)
    return rng.permutation(n_groups) % n_folds


def content_folds(
    X: NDArray[Any],
    y: Int32 | Float64,
    n_folds: int,
    rng: np.random.RandomState,
    sample_weight: Float64 | None = None,
    order: Int32 | None = None,
) -> Iterator[Fold]:
    """Split rows into folds at random: stratified by class if the target holds classes.

    With several columns of classes, rows are assigned by their rarest class first, so that each
    fold gets its fraction of rare classes, too (after Sechidis, Tsoumakas and Vlahavas, "On the
    stratification of multi-label data", 2011).

    The random order depends on the contents of rows and how often they occur, not on their place:
    the folds are the same when rows are shuffled. Weights do not change a row's fold; equal rows
    are assigned independently of each other.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows.
    y : ndarray of shape (n,), or (n, q)
        Class codes (int32), or a numeric target (float64). The order of several columns does not
        matter.
    n_folds : int
        Number of folds, at least 2, and at most the number of rows or 1000, whichever is more.
    rng : numpy RandomState
        Source of the order.
    sample_weight : ndarray of shape (n,), or None
        Positive weight of each row. Equal rows are numbered by it, the lightest first.
    order : ndarray of int32, shape (p,), or None
        Order of columns in which rows are hashed, so that the folds need not depend on the place
        of columns; None: 0, 1, ....

    Yields
    ------
    Fold
        Folds with rows in both sets.
    """
    expect_folds(n_folds, len(y))
    place = _shuffle_within_classes(X, y, rng, sample_weight, order)
    for k in range(n_folds):
        fold = _make_fold(place % n_folds == k)
        if len(fold.train) and len(fold.validation):
            yield fold


def split_by_content(
    X: NDArray[Any],
    y: Int32 | Float64,
    n_validation: int,
    rng: np.random.RandomState,
    sample_weight: Float64 | None = None,
    order: Int32 | None = None,
) -> Fold:
    """Split rows into a training and a validation set, stratified as by `content_folds`.

    Parameters
    ----------
    X, y, rng, sample_weight, order
        See `content_folds`.
    n_validation : int
        Number of validation rows.

    Returns
    -------
    Fold
    """
    return _make_fold(
        mark_validation_places(
            _shuffle_within_classes(X, y, rng, sample_weight, order), n_validation, len(y)
        )
    )


def mark_validation_places(place: Indices, n_validation: int, n: int) -> NDArray[np.bool_]:
    """Mark n_validation of the places 0, ..., n - 1, evenly spread.

    place: places of m rows in an order of all n rows by class, in which marks so fall on each
    class in its proportion. Return for each entry of place whether it is marked, (m,) bool.
    """
    before = (place * n_validation + n // 2) // n
    return ((place + 1) * n_validation + n // 2) // n > before


def split_by_groups(
    groups: NDArray[Any], n_validation: int, rng: np.random.RandomState
) -> tuple[Indices, Indices]:
    """Draw n_validation groups at random, and return training and validation rows.

    groups: group of each row, (n,). Both results are row indices, ascending; the rows of the drawn
    groups are the second.
    """
    names, group = number_groups(groups)
    is_validation = (rng.permutation(len(names)) < n_validation)[group]
    return np.flatnonzero(~is_validation), np.flatnonzero(is_validation)


def _make_fold(is_validation: NDArray[np.bool_]) -> Fold:
    """Make a fold of a mask of the validation rows, (n,)."""
    return Fold(np.flatnonzero(~is_validation), np.flatnonzero(is_validation))


def _shuffle_within_classes(
    X: NDArray[Any],
    y: Int32 | Float64,
    rng: np.random.RandomState,
    sample_weight: Float64 | None,
    order: Int32 | None,
) -> Indices:
    """Return the place of each row in an order that is random within classes, (n,).

    Classes ascend in the order. It depends on what rows hold, not on where they are. See
    `content_folds` for the arguments.
    """
    hashes, y = hash_contents(X, y, rng, order)
    weight = np.zeros(len(y)) if sample_weight is None else sample_weight
    if y.ndim == 2:
        y = _number_class_sets(y, hashes)
    row = np.lexsort((weight, hashes, y))
    mixed = mix_copies(hashes[row], y[row])
    place = np.empty(len(row), dtype=np.intp)
    place[row[np.lexsort((mixed, y[row]))]] = np.arange(len(row))
    return place


def hash_contents(
    X: NDArray[Any], y: Int32 | Float64, rng: np.random.RandomState, order: Int32 | None = None
) -> tuple[NDArray[np.uint64], Int32]:
    """Hash what rows hold, and return the hashes, (n,) uint64, and the classes of the rows.

    Classes are int32, (n,) or (n, q). A numeric target is part of the hash instead, and all
    classes are then 0.

    X: rows, (n, p). y: class codes or numeric targets, (n,) or (n, q). rng: source of the random
    factors of the hashes. order: order of the columns, (p,), as in `content_folds`.
    """
    hashes = _hash_linearly(X, rng, order)
    if not np.issubdtype(y.dtype, np.floating):
        return hashes, y.astype(np.int32, copy=False)
    # Sorting makes the hash independent of the order of the targets.
    targets = y[:, None] if y.ndim == 1 else np.sort(y, axis=1)
    return mix(hashes + _hash_linearly(targets, rng)), np.zeros(len(y), dtype=np.int32)


def mix_copies(content: NDArray[np.uint64], y: Int32) -> NDArray[np.uint64]:
    """Hash each row's content with its number among equal rows, (n,) uint64.

    content: hashes of rows, (n,), sorted by class and then by hash; y: their classes, (n,). So
    copies of a row get independent random numbers.
    """
    starts = np.ones(len(content), dtype=bool)
    starts[1:] = (content[1:] != content[:-1]) | (y[1:] != y[:-1])
    return mix(content + number_copies(starts) * np.uint64(0x9E3779B97F4A7C15))


def shuffle_by_content(
    content: NDArray[np.uint64], weight: Float64 | None, rng: np.random.RandomState
) -> Indices:
    """Return row indices, (n,), in a random order that depends on contents, not on places.

    A row's random number depends on the contents of all rows, so every order is equally likely.

    Parameters
    ----------
    content : ndarray of uint64, shape (n,)
        Hashes of the rows.
    weight : ndarray of float64, shape (n,), or None
        Positive weight of each row. Equal rows are numbered by it, the lightest first.
    rng : numpy RandomState
        Source of the order.
    """
    weight = np.zeros(len(content)) if weight is None else weight
    order, keys = np.lexsort((weight, content)), np.empty(len(content), dtype=np.uint64)
    mixed = mix_copies(content[order], np.zeros(len(content), dtype=np.int32))
    total = int(content.sum(dtype=np.uint64))
    keys[order] = mix(mixed ^ compute_random_word(total, rng))
    return np.argsort(keys, kind="stable")


def compute_random_word(total: int, rng: np.random.RandomState) -> np.uint64:
    """Compute a random word that depends on all rows and on a number drawn from rng.

    total: sum of the hashes of all rows. Callers XOR the word with the hash of each row, and mix
    the result to the row's random number.
    """
    word = (total + int(rng.randint(2**31 - 1))) % 2**64
    return mix(np.array([word], dtype=np.uint64))[0]


def _number_class_sets(y: Int32, hashes: NDArray[np.uint64]) -> Int32:
    """Number the distinct combinations of classes that rows (n, q) have; return (n,) int32.

    Combinations are sorted by their rarest class. hashes: hash of each row, (n,), for ties.
    """
    n_classes = [*y.max(axis=0) + 1]
    sums = sum_classes(y, n_classes, hashes)
    sets = find_class_sets(y, n_classes, rank_classes(sums))
    return np.unique(sets, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)


def sum_classes(y: Int32, n_classes: list[int], hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Count the rows of each class, and sum up their hashes modulo 2^64.

    The sums of two blocks of rows can be added. They order classes by `rank_classes`.

    Parameters
    ----------
    y : ndarray of int32, shape (n, q)
        Class codes of q targets.
    n_classes : list of int, length q
        Number of classes of each target.
    hashes : ndarray of uint64, shape (n,)
        Hashes of the rows.

    Returns
    -------
    ndarray of uint64, shape (2, sum of n_classes)
        Counts, and sums of hashes: classes of the first target, then those of the next one, and so
        on.
    """
    labels = _number_labels(y, n_classes)
    sums = np.zeros((2, sum(n_classes)), dtype=np.uint64)
    np.add.at(sums[0], labels.ravel(), np.uint64(1))
    np.add.at(sums[1], labels.ravel(), np.repeat(mix(hashes), y.shape[1]))
    return sums


def rank_classes(sums: NDArray[np.uint64]) -> Int32:
    """Return the rank of each class of all targets, (sum of n_classes,): rare classes first.

    sums: result of `sum_classes`. Ties are broken by the sums of hashes, not by the order of
    targets.
    """
    rank = np.empty(sums.shape[1], dtype=np.int32)
    rank[np.lexsort(sums[::-1])] = np.arange(sums.shape[1])
    return rank


def find_class_sets(y: Int32, n_classes: list[int], rank: Int32) -> Int32:
    """Return the ranks of the q classes of each row, ascending, (n, q): the rarest class first.

    y: class codes, (n, q). n_classes: number of classes of each column. rank: result of
    `rank_classes`.
    """
    return np.sort(rank[_number_labels(y, n_classes)], axis=1)


def _number_labels(y: Int32, n_classes: list[int]) -> NDArray[np.intp]:
    """Number classes across columns, (n, q), so that no two columns share a number.

    The number of classes of all earlier columns is added to each code of y, (n, q).
    """
    return np.asarray(y + np.cumsum([0, *n_classes[:-1]]))


def _hash_linearly(
    X: NDArray[Any], rng: np.random.RandomState, order: Int32 | None = None
) -> NDArray[np.uint64]:
    """Hash each row by a random linear function of its bits, (n,) uint64.

    Equal rows have equal hashes; different rows hardly ever do. rng: source of the factors. order:
    columns, (p,), in the order in which they get their factors; None: 0, 1, ....
    """
    odd = rng.randint(1, 2**63, size=(2, X.shape[1]), dtype=np.int64).astype(np.uint64) | 1
    if order is not None:  # column order[k] gets the k-th factors
        odd[:, order] = odd.copy()
    if issparse(X):
        rows: Any = X
        high, low = _split_words(rows.data)
        terms = high * odd[0, rows.indices] + low * odd[1, rows.indices]
        sums = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
        return sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    hashes = np.empty(len(X), dtype=np.uint64)
    most = max(1, _CACHED // max(1, X.shape[1]))
    for start in range(0, len(X), most):
        block = slice(start, start + most)
        high, low = _split_words(X[block])
        hashes[block] = (high * odd[0] + low * odd[1]).sum(axis=1, dtype=np.uint64)
    return hashes


def _split_words(numbers: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the upper and the lower 32 bits of numbers as float64; -0.0 counts as 0.0."""
    words = np.ascontiguousarray(numbers + 0.0, dtype=np.float64).view(np.uint64)
    return words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
