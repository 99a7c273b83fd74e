"""Which rows a model was fitted on, told by 64-bit hashes of their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from certree._core import hash_rows
from certree.interface.arrays import (
    Float64,
    UInt64,
    divide_by_largest,
    find_positions,
    get_csr_arrays,
)

# The constants of splitmix64, whose steps mix every bit of a number into all of them.
_STEP, _FIRST, _SECOND = (
    np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
# Rows at a time, and numbers of wide ones, so that what is computed stays in the cache.
_BLOCK, _CACHED = 8192, 2**16
# From so many zeros in a row on they count as one word: see core/rows/hashes.hpp.
_LONG_RUN = 256


def sample_hashes(*tables: NDArray[Any], rounded: bool = False) -> UInt64:
    """Hash each row of numbers, as float64, that one or more tables have side by side, (n,).

    Equal numbers have equal hashes: -0.0 is 0.0, and all NaN are alike. The same in every process.
    Numbers that are `rounded` to float32 have others than those that are not. Rows of a sparse table
    have those of the dense one.
    """
    if any(map(issparse, tables)):
        rows = hstack([csr_array(_two_dimensional(one)) for one in tables], format="csr")
        return hash_rows(get_csr_arrays(rows.astype(np.float64, copy=False)), rounded, 1)
    width = sum(1 if one.ndim == 1 else one.shape[1] for one in tables)
    return (
        _hashes_of_wide(tables, width, rounded) if width >= _LONG_RUN else _hashes(tables, rounded)
    )


def _hashes_of_wide(tables: tuple[NDArray[Any], ...], width: int, rounded: bool) -> UInt64:
    n, step = len(tables[0]), max(1, _CACHED // width)
    hashes = np.empty(n, dtype=np.uint64)
    for start in range(0, n, step):
        block = [_two_dimensional(one[start : start + step]) for one in tables]
        rows = np.concatenate(block, axis=1, dtype=np.float64, casting="unsafe")
        hashes[start : start + step] = hash_rows(np.ascontiguousarray(rows), rounded, 1)
    return hashes


def _two_dimensional(table: Any) -> Any:
    return table if table.ndim == 2 else table[:, None]


def _hashes(tables: tuple[NDArray[Any], ...], rounded: bool) -> UInt64:
    """The same of rows that have no long runs of zeros, column by column."""
    n = len(tables[0])
    hashes = np.empty(n, dtype=np.uint64)
    for start in range(0, n, _BLOCK):
        blocks = [np.atleast_2d(table[start : start + _BLOCK].T) for table in tables]
        columns = np.empty((sum(map(len, blocks)), blocks[0].shape[1]))
        np.concatenate(blocks, out=columns, casting="unsafe")
        if rounded:
            with np.errstate(over="ignore"):  # what float32 does not hold is infinite
                columns = columns.astype(np.float32).astype(np.float64)
        columns += 0.0
        columns[np.isnan(columns)] = np.nan
        mixed = np.full(columns.shape[1], _STEP if rounded else 0, dtype=np.uint64)
        shifted = np.empty_like(mixed)
        for bits in columns.view(np.uint64):
            mixed ^= bits
            mixed += _STEP
            mixed ^= np.right_shift(mixed, 30, out=shifted)
            mixed *= _FIRST
            mixed ^= np.right_shift(mixed, 27, out=shifted)
            mixed *= _SECOND
            mixed ^= np.right_shift(mixed, 31, out=shifted)
        hashes[start : start + _BLOCK] = mixed
    return hashes


def mix(words: UInt64) -> UInt64:
    """Spread every bit of a word over all of it (Stafford's variant 13 of MurmurHash3's finisher)."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def with_numbers(hashes: UInt64, *columns: Float64) -> UInt64:
    """Hashes of rows to which columns of float64 numbers are added, neither NaN nor -0.0."""
    for column in columns:
        hashes = mix((hashes ^ column.view(np.uint64)) + _STEP)
    return hashes


def copy_numbers(starts: NDArray[np.bool_]) -> UInt64:
    """Which copy each of some ordered rows is, 0, 1, ..., where new rows start is marked."""
    place = np.arange(len(starts))
    first = place * starts
    np.maximum.accumulate(first, out=first)
    np.subtract(place, first, out=place)
    return place.view(np.uint64)


def target_key(target: Float64, rows: UInt64, largest: float | None = None) -> int:
    """A number for a target of rows (n,), told by their hashes, in whatever order and unit.

    largest: the largest size of more rows, to whose numbers these add up; None: that of these.
    """
    scaled = divide_by_largest(target, largest) if target.any() else target
    return int(mix(rows ^ sample_hashes(scaled)).sum(dtype=np.uint64))


def order_of_targets(y: NDArray[Any], *tables: NDArray[Any]) -> NDArray[np.intp]:
    """The order that several targets of rows, (n, q), tell themselves, whatever that of the rows."""
    hashes = sample_hashes(*tables)
    told = [target_key(one, hashes) for one in y.T.astype(np.float64)]
    return np.argsort(np.array(told, dtype=np.uint64), kind="stable")


def content_keys(*tables: NDArray[Any], weight: Float64 | None = None) -> UInt64:
    """Compute a number for each row from what tables hold of it, (n,), by which rows are drawn.

    Equal rows are told apart by their rank among each other, by ascending `weight` if there is one.
    The weight has no other part in it, so that no unit of weights changes what is drawn.
    """
    return keys_of(sample_hashes(*tables), weight)


class ChangedRowsError(ValueError):
    """Rows have changed since they told which of them are equal to rows elsewhere."""


def keys_of(
    hashes: UInt64, weight: Float64 | None = None, before: CopiesBefore | None = None
) -> UInt64:
    """Turn the hashes of rows into their keys, in place; see `content_keys`.

    before: rows elsewhere that are equal to some of these, and are numbered before them.
    """
    order = order_by_hash(hashes, weight)
    ordered = hashes[order]
    starts = starts_of_runs(ordered)
    copies = copy_numbers(starts)
    if before is not None and len(before.hashes):
        starts = starts | starts_of_runs(None if weight is None else weight[order])
        shared = find_positions(distinct(before.hashes), ordered[starts])[1]
        if shared.sum() != len(before.numbers):
            raise ChangedRowsError("rows differ from those that were told")
        runs = np.cumsum(starts) - 1
        within = copy_numbers(starts)
        number = np.zeros(len(shared), dtype=np.uint64)
        number[shared] = before.numbers
        copies = np.where(shared[runs], within + number[runs], copies)
    copies *= _STEP
    copies += _STEP
    ordered ^= copies
    hashes[order] = mix(ordered)
    return hashes


@dataclass(frozen=True, slots=True, eq=False)
class CopiesBefore:
    """Where rows stand among equal rows of several tables.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (k,)
        Hashes that rows of another table have, too: one entry for each weight that own rows of this
        hash have, by ascending hashes and weights.
    numbers : ndarray of uint64, shape (k,)
        How many rows of this hash come before the own ones of this weight.
    """

    hashes: UInt64
    numbers: UInt64


def order_by_hash(hashes: UInt64, weight: Float64 | None) -> NDArray[np.intp]:
    """Find the order of rows by hash, and of equal ones by weight."""
    if weight is None:
        return np.argsort(hashes, kind="stable")
    return np.lexsort((weight, hashes))


def starts_of_runs(ordered: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Mark where another value begins among sorted ones, the first included; of None nothing."""
    if ordered is None:
        return np.zeros(1, dtype=np.bool_)
    return np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]


def distinct(*hashes: UInt64) -> UInt64:
    """All of some hashes once each, ascending."""
    # np.unique takes forty times as long.
    ordered = np.concatenate(hashes)
    ordered.sort()
    ordered = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    ordered.flags.writeable = False
    return ordered


def fit_hashes(*tables: NDArray[Any], exact: UInt64 | None = None) -> UInt64:
    """What a model keeps to know the rows of its fit again: their hashes, also of rounded numbers.

    exact: those of numbers that are not rounded, if they are known.
    """
    exact = sample_hashes(*tables) if exact is None else exact
    return distinct(exact, sample_hashes(*tables, rounded=True))


def n_with_copies(hashes: NDArray[Any], counts: NDArray[Any] | None = None) -> int:
    """Count the rows that another row equals, by the hashes of all rows.

    Parameters
    ----------
    hashes : ndarray of shape (n,)
        Hash of each row, or another number that is the same where rows are equal.
    counts : ndarray of shape (n,), or None
        How many rows each entry stands for; None: 1.
    """
    if counts is not None:
        totals = np.bincount(np.unique(hashes, return_inverse=True)[1], counts)
        return int(totals[totals > 1].sum())
    ordered = np.sort(hashes)
    equals_next = np.zeros(len(ordered) + 1, dtype=np.bool_)
    np.equal(ordered[1:], ordered[:-1], out=equals_next[1:-1])
    return int(np.count_nonzero(equals_next[1:] | equals_next[:-1]))


def known_rows(X: NDArray[Any], hashes: UInt64) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are among those of a fit as they are, and which as float32 holds them."""
    return (
        find_positions(hashes, sample_hashes(X))[1],
        find_positions(hashes, sample_hashes(X, rounded=True))[1],
    )
