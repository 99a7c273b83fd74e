"""Which rows grow a tree and which judge it."""

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


# Numbers that are hashed at a time, so that what is made of them stays in the processor's cache.
_CACHED = 1 << 16

# Tables of a few rows may be dealt into more folds than they have rows, and the empty ones are left
# out; no more than these, as each is looked at.
_MOST_FOLDS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Indices of the rows that grow a tree, and of those that validate it; no row is in both."""

    train: Indices
    validation: Indices

    def swap(self) -> Fold:
        """Return the fold with sides exchanged."""
        return Fold(self.validation, self.train)

    def without_validation(self) -> Fold:
        """Return the fold without validation rows."""
        return Fold(self.train, self.validation[:0])


def expect_folds(n_folds: int, n: int | None = None) -> None:
    """Refuse fewer folds than two, or many more than n rows."""
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2, got {n_folds}")
    if n is not None and n_folds > (most := max(n, _MOST_FOLDS)):
        raise ValueError(f"cv must be at most {most} for {n} rows, got {n_folds}")


def iterate_group_folds(
    groups: NDArray[Any], n_folds: int, rng: np.random.RandomState
) -> Iterator[tuple[Indices, Indices]]:
    """Deal whole groups into folds at random: of rows that depend on each other none judge the rest.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Group of each row.
    n_folds : int
        Number of folds, at least 2; no more than there are groups are made.
    rng : numpy RandomState
        Source of the order.

    Yields
    ------
    grow, judge : ndarray of intp
        Rows of each side, ascending; one pair per fold that leaves rows on both sides.
    """
    names, group = number_groups(groups)
    dealt = assign_groups_to_folds(len(names), n_folds, rng)[group]
    for k in range(min(n_folds, len(names))):
        judges = dealt == k
        if not judges.all():
            yield np.flatnonzero(~judges), np.flatnonzero(judges)


def number_groups(groups: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """The groups that rows have, ascending, and the place of each row's among them, (n,)."""
    try:
        return np.unique(groups, return_inverse=True)
    except (TypeError, ValueError):
        raise make_unordered_error(groups) from None


def make_unordered_error(groups: NDArray[Any]) -> TypeError:
    """Say that groups have no order."""
    kinds = ", ".join(sorted({type(one).__name__ for one in groups.tolist()}))
    return TypeError(
        f"groups must hold values that can be ordered, such as text or numbers, got {kinds}"
    )


def assign_groups_to_folds(n_groups: int, n_folds: int, rng: np.random.RandomState) -> Indices:
    """The fold that each group is dealt to, (n_groups,), in ascending order of them."""
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
    """Deal the rows into folds, by class if there are classes, and otherwise at random.

    Rows of several columns of classes are dealt by their rarest classes first, so that each fold has
    its part of these, too (after Sechidis, Tsoumakas and Vlahavas, "On the stratification of
    multi-label data", 2011).

    The random order depends on what rows hold and how often they occur, not on where they stand: it
    stays the same when the rows are shuffled. Each row is assigned as a whole, whatever it weighs;
    equal rows are assigned independently of each other.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows.
    y : ndarray of shape (n,), or (n, q)
        Class of each row (whole numbers), or a numeric target (floating-point numbers); rows of several
        targets are dealt by the classes that they have of all, in whatever order these stand.
    n_folds : int
        Number of folds, at least 2, and at most the number of rows or 1000, whichever is more.
    rng : numpy RandomState
        Source of the order.
    sample_weight : ndarray of shape (n,), or None
        Positive weight of each row, by which equal rows are numbered from the lightest on.
    order : ndarray of int32, shape (p,), or None
        In which the columns are taken, where folds are not to depend on where these stand; None: as
        they stand.

    Yields
    ------
    Fold
        One per fold that leaves rows on both sides.
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
    n_judging: int,
    rng: np.random.RandomState,
    sample_weight: Float64 | None = None,
    order: Int32 | None = None,
) -> Fold:
    """Let some rows judge, dealt as `content_folds` deals, so that each class has its share of them.

    Parameters
    ----------
    X, y, rng, sample_weight, order
        As there.
    n_judging : int
        How many rows judge.

    Returns
    -------
    Fold
    """
    return _make_fold(
        mark_validation_places(
            _shuffle_within_classes(X, y, rng, sample_weight, order), n_judging, len(y)
        )
    )


def mark_validation_places(place: Indices, n_judging: int, n: int) -> NDArray[np.bool_]:
    """Whether rows at some places among n judge, which are spread evenly."""
    before = (place * n_judging + n // 2) // n
    return ((place + 1) * n_judging + n // 2) // n > before


def split_by_groups(
    groups: NDArray[Any], n_judging: int, rng: np.random.RandomState
) -> tuple[Indices, Indices]:
    """Rows that grow and rows that judge: those of so many groups, drawn at random."""
    names, group = number_groups(groups)
    judges = (rng.permutation(len(names)) < n_judging)[group]
    return np.flatnonzero(~judges), np.flatnonzero(judges)


def _make_fold(judges: NDArray[np.bool_]) -> Fold:
    """Make a fold of a mask of the rows that validate."""
    return Fold(np.flatnonzero(~judges), np.flatnonzero(judges))


def _shuffle_within_classes(
    X: NDArray[Any],
    y: Int32 | Float64,
    rng: np.random.RandomState,
    sample_weight: Float64 | None,
    order: Int32 | None,
) -> Indices:
    """Compute the place of every row in a random order of the rows, class by class, (n,)."""
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
    """Hashes of what rows hold, and their classes: numbers are hashed, and of one class."""
    hashes = _hash_linearly(X, rng, order)
    if not np.issubdtype(y.dtype, np.floating):
        return hashes, y.astype(np.int32, copy=False)
    # In whatever order several targets stand.
    targets = y[:, None] if y.ndim == 1 else np.sort(y, axis=1)
    return mix(hashes + _hash_linearly(targets, rng)), np.zeros(len(y), dtype=np.int32)


def mix_copies(content: NDArray[np.uint64], y: Int32) -> NDArray[np.uint64]:
    """Numbers in whose order copies are dealt, of rows by ascending classes, and of these by hashes."""
    starts = np.ones(len(content), dtype=bool)
    starts[1:] = (content[1:] != content[:-1]) | (y[1:] != y[:-1])
    return mix(content + number_copies(starts) * np.uint64(0x9E3779B97F4A7C15))


def shuffle_by_content(
    content: NDArray[np.uint64], weight: Float64 | None, rng: np.random.RandomState
) -> Indices:
    """Put rows in a random order by their hashes, (n,), which is the same wherever they stand.

    Each row has a number that depends on all rows together: whatever they hold, every order is as
    likely as any other.

    weight: positive weight of each row; of equal rows the lighter ones are the first copies.
    """
    weight = np.zeros(len(content)) if weight is None else weight
    order, keys = np.lexsort((weight, content)), np.empty(len(content), dtype=np.uint64)
    mixed = mix_copies(content[order], np.zeros(len(content), dtype=np.int32))
    total = int(content.sum(dtype=np.uint64))
    keys[order] = mix(mixed ^ compute_random_word(total, rng))
    return np.argsort(keys, kind="stable")


def compute_random_word(total: int, rng: np.random.RandomState) -> np.uint64:
    """What a random state and the sum of the hashes of all rows make of the numbers of each."""
    word = (total + int(rng.randint(2**31 - 1))) % 2**64
    return mix(np.array([word], dtype=np.uint64))[0]


def _number_class_sets(y: Int32, hashes: NDArray[np.uint64]) -> Int32:
    """Number the sets of classes that rows (n, q) have."""
    n_classes = [*y.max(axis=0) + 1]
    sums = sum_classes(y, n_classes, hashes)
    sets = find_class_sets(y, n_classes, rank_classes(sums))
    return np.unique(sets, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)


def sum_classes(y: Int32, n_classes: list[int], hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """What tells the classes of all columns apart, one column behind the other, (2, n_labels).

    How many rows (n, q) have each, and which ones; those of more rows add up.
    """
    labels = _number_labels(y, n_classes)
    sums = np.zeros((2, sum(n_classes)), dtype=np.uint64)
    np.add.at(sums[0], labels.ravel(), np.uint64(1))
    np.add.at(sums[1], labels.ravel(), np.repeat(mix(hashes), y.shape[1]))
    return sums


def rank_classes(sums: NDArray[np.uint64]) -> Int32:
    """The places of the classes of all columns, rare ones first, wherever their columns stand."""
    rank = np.empty(sums.shape[1], dtype=np.int32)
    rank[np.lexsort(sums[::-1])] = np.arange(sums.shape[1])
    return rank


def find_class_sets(y: Int32, n_classes: list[int], rank: Int32) -> Int32:
    """The classes of rows by their places, (n, q): sets stand by the rarest one, then by the next."""
    return np.sort(rank[_number_labels(y, n_classes)], axis=1)


def _number_labels(y: Int32, n_classes: list[int]) -> NDArray[np.intp]:
    """Classes by their numbers among those of all columns."""
    return np.asarray(y + np.cumsum([0, *n_classes[:-1]]))


def _hash_linearly(
    X: NDArray[Any], rng: np.random.RandomState, order: Int32 | None = None
) -> NDArray[np.uint64]:
    """A random linear hash of every row's bits: equal rows collide, others hardly ever do."""
    odd = rng.randint(1, 2**63, size=(2, X.shape[1]), dtype=np.int64).astype(np.uint64) | 1
    if order is not None:  # each column has the factors of its place in it
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
    """The bits of numbers as float64; those of 0 are 0."""
    words = np.ascontiguousarray(numbers + 0.0, dtype=np.float64).view(np.uint64)
    return words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
