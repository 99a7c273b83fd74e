"""Assign rows to folds, or to a training and a validation set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from certree.interface.arrays import Float64, Int32
from certree.rows.hashes import mark_run_starts, mix, number_copies

Indices = NDArray[np.intp]


# Numbers hashed at a time, so that intermediate arrays stay in the processor's cache.
_CACHED = 1 << 16

# Small tables may be split into more folds than they have rows, and the empty ones are left out.
# This limits the number of folds to go through.
_MOST_FOLDS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Row indices of the training and the validation set of one cross-validation fold.

    No row is in both sets.

    Parameters
    ----------
    train : ndarray of intp
        Indices of the rows that grow a tree.
    validation : ndarray of intp
        Indices of the rows on which the loss of the tree is measured.
    """

    train: Indices
    validation: Indices

    def swap(self) -> Fold:
        """Return a new fold with the training set as validation set, and the other way round."""
        return Fold(self.validation, self.train)

    def without_validation(self) -> Fold:
        """Return a fold with the same training set and an empty validation set."""
        return Fold(self.train, self.validation[:0])


def expect_folds(n_folds: int, n: int | None = None) -> None:
    """Raise a ValueError if n_folds is less than 2, or more than n and more than 1000.

    n_folds: number of folds, which the message calls cv. n: number of rows; None: there is no upper
    limit.
    """
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2, got {n_folds}")
    if n is not None and n_folds > (most := max(n, _MOST_FOLDS)):
        raise ValueError(f"cv must be at most {most} for {n} rows, got {n_folds}: use fewer folds")


def iterate_group_folds(
    groups: NDArray[Any], n_folds: int, rng: np.random.RandomState
) -> Iterator[tuple[Indices, Indices]]:
    """Yield the folds of a cross-validation in which all rows of a group are in the same fold.

    Groups are assigned to folds at random. There are as many folds as groups if n_folds is larger.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Group of each row.
    n_folds : int
        Number of folds, at least 2.
    rng : numpy RandomState
        Source of the random assignment.

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
    """Number the groups 0, 1, ... in sorted order.

    Return the distinct groups, sorted, and the number of each row's group, (n,). Raise a TypeError
    if groups cannot be sorted.

    groups: group of each row, (n,).
    """
    try:
        return np.unique(groups, return_inverse=True)
    except (TypeError, ValueError):
        raise make_unordered_error(groups) from None


def make_unordered_error(groups: NDArray[Any]) -> TypeError:
    """Return, without raising it, a TypeError that names the types of groups that cannot be sorted.

    groups: group of each row, (n,).
    """
    kinds = ", ".join(sorted({type(one).__name__ for one in groups.tolist()}))
    return TypeError(
        f"groups must hold values that can be ordered, such as text or numbers, got {kinds}"
    )


def assign_groups_to_folds(n_groups: int, n_folds: int, rng: np.random.RandomState) -> Indices:
    """Return the number of the fold of each of n_groups groups, (n_groups,), drawn at random.

    The folds are numbered 0, ..., n_folds - 1; their numbers of groups differ by at most one.

    n_folds: number of folds, at least 2, else a ValueError is raised. rng: source of the draw.
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

    A row's fold depends on rng, on the values of the row, and on how often such a row occurs, but
    not on its position: the folds are the same when rows are shuffled. Weights do not change a
    row's fold, except among equal rows; equal rows are assigned independently of each other.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, p)
        Encoded rows: numbers, and codes for categories.
    y : ndarray of shape (n,), or (n, q)
        Class codes (int32), or a numeric target (float64). The order of several columns does not
        matter.
    n_folds : int
        Number of folds, at least 2, and at most the number of rows or 1000, whichever is more.
    rng : numpy RandomState
        Source of the random order.
    sample_weight : ndarray of shape (n,), or None
        Positive weight of each row. Equal rows are ordered by it, so that the folds do not depend
        on their positions either.
    order : ndarray of int32, shape (p,), or None
        Indices of the columns in the order in which rows are hashed, such as `Training.draw_order`,
        so that the folds do not depend on the order of columns; None: 0, 1, ....

    Yields
    ------
    Fold
        Folds, except those with an empty training or validation set.
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
    """Split rows at random into a training and a validation set, stratified by class.

    The set of a row depends on rng and on the values of the row, but not on its position, as in
    `content_folds`.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, p)
        Encoded rows: numbers, and codes for categories.
    y : ndarray of shape (n,), or (n, q)
        Class codes (int32), or a numeric target (float64).
    n_validation : int
        Number of validation rows, 0 .. n.
    rng : numpy RandomState
        Source of the random order.
    sample_weight : ndarray of shape (n,), or None
        Positive weight of each row, by which equal rows are ordered before they are drawn; it has no
        other effect. None: equal rows are ordered by position.
    order : ndarray of int32, shape (p,), or None
        Indices of the columns in the order in which rows are hashed; None: 0, 1, ....

    Returns
    -------
    Fold
        Row indices of both sets, ascending.
    """
    return _make_fold(
        mark_validation_places(
            _shuffle_within_classes(X, y, rng, sample_weight, order), n_validation, len(y)
        )
    )


def mark_validation_places(place: Indices, n_validation: int, n: int) -> NDArray[np.bool_]:
    """Choose n_validation of the n positions 0, ..., n - 1 at equal distances; return a mask (m,).

    Callers sort rows by class first, so that each class gets its fraction of the validation set.
    place: positions in 0 .. n - 1 of the m rows of this process, (m,); in a distributed fit m < n.
    The mask is True for rows whose position is chosen.
    """
    before = (place * n_validation + n // 2) // n
    return ((place + 1) * n_validation + n // 2) // n > before


def split_by_groups(
    groups: NDArray[Any], n_validation: int, rng: np.random.RandomState
) -> tuple[Indices, Indices]:
    """Draw n_validation groups at random, and split the rows by their groups.

    groups: group of each row, (n,). n_validation: number of groups, not of rows. rng: source of the
    draw. Return the row indices of the training set and of the validation set, both ascending; the
    validation set has all rows of the drawn groups, the training set all other rows.
    """
    names, group = number_groups(groups)
    is_validation = draw_validation_groups(len(names), n_validation, rng)[group]
    return np.flatnonzero(~is_validation), np.flatnonzero(is_validation)


def draw_validation_groups(
    n_groups: int, n_validation: int, rng: np.random.RandomState
) -> NDArray[np.bool_]:
    """Draw n_validation of n_groups groups at random; return True for these, (n_groups,).

    rng: source of the draw.
    """
    return np.asarray(rng.permutation(n_groups) < n_validation)


def _make_fold(is_validation: NDArray[np.bool_]) -> Fold:
    """Return a `Fold` with the rows of a mask as validation set, and the others as training set.

    is_validation: True for validation rows, (n,). Both sets hold row indices, ascending.
    """
    return Fold(np.flatnonzero(~is_validation), np.flatnonzero(is_validation))


def _shuffle_within_classes(
    X: NDArray[Any],
    y: Int32 | Float64,
    rng: np.random.RandomState,
    sample_weight: Float64 | None,
    order: Int32 | None,
) -> Indices:
    """Shuffle rows within each class, and sort them by class.

    Return the position of each row in the new order, (n,). The order depends on the values of rows
    and on rng, not on the positions of rows in the table. Rows with a numeric target count as one
    class. With several targets the combinations of classes are the classes.

    X: encoded rows (numbers, and codes for categories), (n, p). y: class codes or numeric targets, (n,)
    or (n, q). rng: source of the random order. sample_weight: weight of each row, (n,), which orders
    equal rows, or None. order: indices of the columns, (p,), in the order in which they are hashed, or
    None.
    """
    hashes, y = hash_contents(X, y, rng, order)
    weight = np.zeros(len(y)) if sample_weight is None else sample_weight
    if y.ndim == 2:
        y = _number_class_sets(y, hashes)
    place = np.empty(len(y), dtype=np.intp)
    place[np.lexsort((compute_sort_keys(hashes, y, [weight]), y))] = np.arange(len(y))
    return place


def hash_contents(
    X: NDArray[Any], y: Int32 | Float64, rng: np.random.RandomState, order: Int32 | None = None
) -> tuple[NDArray[np.uint64], Int32]:
    """Hash the values of each row, and return the hashes and the classes to stratify by.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, p)
        Encoded rows: numbers, and codes for categories.
    y : ndarray of shape (n,) or (n, q)
        Class codes (int32), or numeric targets (float64).
    rng : numpy RandomState
        Source of the random factors of the hash function.
    order : ndarray of int32, shape (p,), or None
        Indices of the columns in the order in which they are hashed; None: 0, 1, ....

    Returns
    -------
    hashes : ndarray of uint64, shape (n,)
        Hashes of the features and, if the targets are numeric, of the targets.
    classes : ndarray of int32, shape (n,) or (n, q)
        The class codes y; zeros, (n,), if the targets are numeric.
    """
    hashes = _hash_linearly(X, rng, order)
    if not np.issubdtype(y.dtype, np.floating):
        return hashes, y.astype(np.int32, copy=False)
    # Sorting makes the hash independent of the order of the targets.
    targets = y[:, None] if y.ndim == 1 else np.sort(y, axis=1)
    return mix(hashes + _hash_linearly(targets, rng)), np.zeros(len(y), dtype=np.int32)


def compute_sort_keys(
    content: NDArray[np.uint64],
    y: Int32,
    ties: Sequence[Float64] | Float64,
    word: np.uint64 | None = None,
) -> NDArray[np.uint64]:
    """Compute a pseudo-random number for each row from its hash and its number among equal rows.

    Callers sort rows by the results. Equal rows of one class are numbered 0, 1, ..., so that their
    results differ as if the rows were independent. If rows are in several blocks, all rows that have
    some hashes are passed together.

    Parameters
    ----------
    content : ndarray of uint64, shape (n,)
        Hashes of the rows.
    y : ndarray of int32, shape (n,)
        Class of each row.
    ties : sequence of ndarray of float64, shape (n,)
        Numbers by which equal rows are numbered, ascending, such as weights; the last one decides
        first. Rows without a difference are numbered as they follow each other.
    word : uint64 or None
        Random number that changes the results, see `compute_random_word`; None: they depend on the
        hashes only.

    Returns
    -------
    ndarray of uint64, shape (n,)
    """
    order = np.lexsort((*ties, content, y))
    content, y, keys = content[order], y[order], np.empty(len(content), dtype=np.uint64)
    starts = mark_run_starts(content) | mark_run_starts(y)
    mixed = mix(content + number_copies(starts) * np.uint64(0x9E3779B97F4A7C15))
    keys[order] = mixed if word is None else mix(mixed ^ word)
    return keys


def shuffle_by_content(
    content: NDArray[np.uint64], weight: Float64 | None, rng: np.random.RandomState
) -> Indices:
    """Return row indices, (n,), in a random order that depends on the values of rows.

    The order of the rows in the table does not matter. The random number of a row depends on the
    hashes of all rows, so that every order is equally likely.

    Parameters
    ----------
    content : ndarray of uint64, shape (n,)
        Hashes of the rows.
    weight : ndarray of float64, shape (n,), or None
        Positive weight of each row. Equal rows are numbered by ascending weight, and get different
        random numbers; None: they are numbered in the order of the table.
    rng : numpy RandomState
        Generator, from which one random number is drawn. Another number gives another order.
    """
    word = compute_random_word(int(content.sum(dtype=np.uint64)), rng)
    one_class, ties = np.zeros(len(content), dtype=np.int32), [] if weight is None else [weight]
    return np.argsort(compute_sort_keys(content, one_class, ties, word), kind="stable")


def compute_random_word(total: int, rng: np.random.RandomState) -> np.uint64:
    """Compute a random 64-bit number from the sum of the hashes of all rows and one number of rng.

    Callers compute the random number of a row as ``mix(hash ^ word)``, where word is the result.
    total: sum of the hashes of all rows. rng: generator that is advanced by one integer.
    """
    word = (total + int(rng.randint(2**31 - 1))) % 2**64
    return mix(np.array([word], dtype=np.uint64))[0]


def _number_class_sets(y: Int32, hashes: NDArray[np.uint64]) -> Int32:
    """Number the distinct combinations of classes of rows with several targets; return (n,) int32.

    Combinations are numbered 0, 1, ... in the order of their rarest classes (then of their second
    rarest, and so on), so that rows with the rarest class come first.

    y: class codes, (n, q). hashes: hash of each row, (n,); equally frequent classes are ordered by
    the sums of the hashes of their rows.
    """
    n_classes = [*y.max(axis=0) + 1]
    sums = sum_classes(y, n_classes, hashes)
    sets = find_class_sets(y, n_classes, rank_classes(sums))
    return np.unique(sets, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)


def sum_classes(y: Int32, n_classes: list[int], hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Count the rows of each class, and sum up their hashes modulo 2^64.

    `rank_classes` orders the classes by the result. Results of two blocks of rows can be added.

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
        In the first line the number of rows of each class, in the second one the sum of the hashes
        of these rows. The columns are the classes of the first target, then those of the next one,
        and so on.
    """
    labels = _number_labels(y, n_classes)
    sums = np.zeros((2, sum(n_classes)), dtype=np.uint64)
    np.add.at(sums[0], labels.ravel(), np.uint64(1))
    np.add.at(sums[1], labels.ravel(), np.repeat(mix(hashes), y.shape[1]))
    return sums


def rank_classes(sums: NDArray[np.uint64]) -> Int32:
    """Return the rank of each class of all targets, (k,) int32: 0 for the rarest class.

    sums: result of `sum_classes`, (2, k), for k classes; ranks have the order of its columns.
    Equally frequent classes are ordered by their sums of hashes, so that the order of targets and
    the codes of classes do not matter.
    """
    rank = np.empty(sums.shape[1], dtype=np.int32)
    rank[np.lexsort(sums[::-1])] = np.arange(sums.shape[1])
    return rank


def find_class_sets(y: Int32, n_classes: list[int], rank: Int32) -> Int32:
    """Return the ranks of the q classes of each row, sorted: the rarest class first, (n, q) int32.

    Ranks count over the classes of all targets. Rows with the same combination of classes have
    equal results. y: class codes, (n, q). n_classes: number of classes of each target, length q.
    rank: result of `rank_classes`, (sum of n_classes,).
    """
    return np.sort(rank[_number_labels(y, n_classes)], axis=1)


def _number_labels(y: Int32, n_classes: list[int]) -> NDArray[np.intp]:
    """Number the classes of all targets consecutively: return a number for each entry of y, (n, q).

    To each class code the number of classes of all earlier targets is added. y: class codes, (n,
    q). n_classes: number of classes of each target, length q.
    """
    return np.asarray(y + np.cumsum([0, *n_classes[:-1]]))


def _hash_linearly(
    X: NDArray[Any], rng: np.random.RandomState, order: Int32 | None = None
) -> NDArray[np.uint64]:
    """Hash each row by a random linear function of the bits of its values, (n,) uint64.

    Equal rows have equal hashes; different rows hardly ever do.

    X: rows of numbers, dense or CSR, (n, p). rng: source of the random factors. order: indices of
    the columns, (p,), in the order in which they get their factors; None: 0, 1, ....
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
    """Convert numbers to float64, and split the 64 bits of each into two integers.

    Return the upper 32 bits and the lower 32 bits, both as uint64 arrays of the shape of numbers.
    The number -0.0 is treated as 0.0.
    """
    words = np.ascontiguousarray(numbers + 0.0, dtype=np.float64).view(np.uint64)
    return words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
