"""Numbers by which rows are drawn, wherever they lie: of equal rows each part has others.

Rows are told apart by hashes of what they hold; of equal ones, by which of them each is. So parts must
know how many rows like their own others have. Hashes alone are told, of rows that may be equal to
those of another part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64, UInt64
from certree.out_of_core.part import PartOfRows, refuse_other_rows
from certree.rows.hashes import (
    ChangedRowsError,
    EarlierCopies,
    compute_keys,
    count_rows_with_copies,
    mark_run_starts,
    order_by_hash,
)

# Bits by which rows that are looked at together are told apart at first, for each row.
_BITS_OF_ROW = 4


@dataclass(frozen=True, slots=True)
class Range:
    """The part of all hashes that are looked at together: the i-th of so many, by so many bits."""

    i: int
    n: int
    bits: int

    def places(self, hashes: UInt64) -> NDArray[np.intp]:
        """Where the hashes stand that are in it."""
        return np.flatnonzero(hashes % np.uint64(self.n) == self.i)

    def buckets(self, hashes: UInt64) -> NDArray[np.intp]:
        """The first bits of hashes."""
        return (hashes >> np.uint64(64 - self.bits)).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Which first bits hashes of any part have, and of two parts: packed bits."""

    once: NDArray[np.uint8]
    twice: NDArray[np.uint8]

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        twice = self.twice | other.twice | (self.once & other.once)
        return replace(self, once=self.once | other.once, twice=twice)


def seen(part: PartOfRows, among: Range) -> Seen:
    """The first bits of the hashes of a part."""
    has = np.zeros(2**among.bits, dtype=np.bool_)
    has[among.buckets(part.keys[among.places(part.keys)])] = True
    once = np.packbits(has)
    return Seen(once, np.zeros_like(once))


@dataclass(frozen=True, slots=True, eq=False)
class SharedRows:
    """The rows of a part whose hashes another part may have.

    Parameters
    ----------
    number : int
        Which of the parts it is.
    hashes : ndarray of uint64, shape (k,)
        Their hashes, ascending: one entry for each weight and offset.
    ties : ndarray of float64, shape (k,) or (q, k), or None
        Their weights and offsets, ascending among equal hashes; see `PartOfRows.ties`.
    counts : ndarray of int64, shape (k,)
        How many rows have each.
    n_repeated : int
        How many of the other rows of the part equal another one.
    """

    number: int
    hashes: UInt64
    ties: Float64 | None
    counts: Int64
    n_repeated: int


def shared_rows(part: PartOfRows, among: Range, twice: NDArray[np.uint8]) -> list[SharedRows]:
    """Count the rows of a part whose hashes another part may have, by hash, weight and offset."""
    place = among.places(part.keys)
    may_be_shared = np.unpackbits(twice).view(np.bool_)[among.buckets(part.keys[place])]
    n_repeated = count_rows_with_copies(part.keys[place[~may_be_shared]])
    place = place[may_be_shared]
    ties = None if part.ties is None else part.ties[..., place]
    order = order_by_hash(part.keys[place], ties)
    own, ties = part.keys[place[order]], None if ties is None else ties[..., order]
    starts = mark_run_starts(own) | mark_run_starts(ties)
    counts = np.diff(np.flatnonzero(np.append(starts, True)))
    ties = None if ties is None else ties[..., starts]
    return [SharedRows(part.number, own[starts], ties, counts, n_repeated)]


def copies_before(shared: Sequence[SharedRows], n_parts: int) -> list[EarlierCopies]:
    """Number the equal rows of all parts by their weights and offsets, and then by part."""
    shared = sorted(shared, key=lambda one: one.number)
    hashes = np.concatenate([one.hashes for one in shared])
    counts = np.concatenate([one.counts for one in shared]).astype(np.uint64)
    number = np.repeat([one.number for one in shared], [len(one.hashes) for one in shared])
    # Blocks without rows do not have offsets.
    ties = [one.ties for one in shared if one.ties is not None and len(one.hashes)]
    order = order_by_hash(hashes, np.concatenate(ties, axis=-1) if ties else None)
    ordered, counts = hashes[order], counts[order]
    before = np.cumsum(counts, dtype=np.uint64) - counts
    starts = mark_run_starts(ordered)
    before -= np.maximum.accumulate(np.where(starts, before, np.uint64(0)))
    numbers = np.empty_like(before)
    numbers[order] = before
    return [EarlierCopies(hashes[number == k], numbers[number == k]) for k in range(n_parts)]


def with_keys(part: PartOfRows, before: EarlierCopies) -> tuple[PartOfRows, int]:
    """A part whose hashes have become keys."""
    try:
        return replace(part, keys=compute_keys(np.array(part.keys), part.ties, before)), 0
    except ChangedRowsError:
        refuse_other_rows(part.number)


def _shared_rows(parts: Any, n: int) -> Iterator[list[SharedRows]]:
    """What all parts, of n rows, share with each other: range by range of their hashes."""
    n_ranges = max(1, -(-n // parts.portions.together))
    bits = max(8, (_BITS_OF_ROW * n // n_ranges).bit_length())
    for i in range(n_ranges):
        among = Range(i, n_ranges, bits)
        yield parts.collect(shared_rows, among, parts.collect(seen, among).twice)
        parts.expect_within_limit()


def _n_repeated(shared: list[SharedRows]) -> int:
    """Count the rows of a range that another row equals, of the same part or not."""
    hashes = np.concatenate([one.hashes for one in shared])
    counts = np.concatenate([one.counts for one in shared])
    return sum(one.n_repeated for one in shared) + count_rows_with_copies(hashes, counts)


def n_repeated_rows(parts: Any, n: int) -> int:
    """Count which of n rows another row equals, by the hashes of all parts."""
    return sum(map(_n_repeated, _shared_rows(parts, n)))


def set_keys(parts: Any, n: int) -> int:
    """Replace the hashes in all parts by the keys that the n rows would have in one table.

    Returns
    -------
    int
        How many of the rows another row equals.
    """
    n_parts, n_repeated = parts.n_parts, 0
    before: list[list[EarlierCopies]] = [[] for _ in range(n_parts)]
    for shared in _shared_rows(parts, n):
        n_repeated += _n_repeated(shared)
        for own, more in zip(before, copies_before(shared, n_parts), strict=True):
            own.append(more)
    own_of_all = []
    while before:  # so that nothing is there twice
        own_of_all.append(_joined(before.pop(0)))
    parts.change(with_keys, own=own_of_all)
    return n_repeated


def _joined(found: list[EarlierCopies]) -> EarlierCopies:
    """What is known of several ranges, by ascending hashes."""
    none = np.zeros(0, dtype=np.uint64)
    hashes = np.concatenate([none, *(one.hashes for one in found)])
    order = np.argsort(hashes, kind="stable")
    numbers = np.concatenate([none, *(one.numbers for one in found)])
    return EarlierCopies(hashes[order], numbers[order])
