"""Numbers by which rows are drawn, wherever they lie: of equal rows each part has others.

Rows are told apart by hashes of what they hold; of equal ones, by which of them each is. So parts must
know how many rows like their own others have. Hashes alone are told, of rows that may be equal to
those of another part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64, UInt64
from certree.parts.part import PartOfRows, refuse_other_rows
from certree.rows.hashes import (
    ChangedRowsError,
    CopiesBefore,
    keys_of,
    order_by_hash,
    starts_of_runs,
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


def shared_rows(
    part: PartOfRows, among: Range, twice: NDArray[np.uint8]
) -> list[tuple[int, UInt64, Float64 | None, Int64]]:
    """Count the rows of a part whose hashes another part may have, by hash and weight, ascending."""
    place = among.places(part.keys)
    place = place[np.unpackbits(twice).view(np.bool_)[among.buckets(part.keys[place])]]
    weight = None if part.weight is None else part.weight[place]
    order = order_by_hash(part.keys[place], weight)
    own, weight = part.keys[place[order]], None if weight is None else weight[order]
    starts = starts_of_runs(own) | starts_of_runs(weight)
    counts = np.diff(np.flatnonzero(np.append(starts, True)))
    return [(part.number, own[starts], None if weight is None else weight[starts], counts)]


def copies_before(
    told: Sequence[tuple[int, UInt64, Float64 | None, Int64]], n_parts: int
) -> list[CopiesBefore]:
    """Number the equal rows of all parts from the lightest on, and those of equal weight by part."""
    told = sorted(told, key=lambda one: one[0])
    hashes = np.concatenate([one[1] for one in told])
    counts = np.concatenate([one[3] for one in told]).astype(np.uint64)
    number = np.repeat([one[0] for one in told], [len(one[1]) for one in told])
    weights = [np.zeros(len(one[1])) if one[2] is None else one[2] for one in told]
    order = order_by_hash(hashes, np.concatenate(weights))
    ordered, counts = hashes[order], counts[order]
    before = np.cumsum(counts, dtype=np.uint64) - counts
    starts = starts_of_runs(ordered)
    before -= np.maximum.accumulate(np.where(starts, before, np.uint64(0)))
    numbers = np.empty_like(before)
    numbers[order] = before
    return [CopiesBefore(hashes[number == k], numbers[number == k]) for k in range(n_parts)]


def with_keys(part: PartOfRows, before: CopiesBefore) -> tuple[PartOfRows, int]:
    """A part whose hashes have become keys."""
    try:
        return replace(part, keys=keys_of(np.array(part.keys), part.weight, before)), 0
    except ChangedRowsError:
        refuse_other_rows(part)


def set_keys(parts: Any, n: int) -> None:
    """Let the hashes of all parts become the keys that their n rows have in one table."""
    n_parts, n_ranges = parts.n_parts, max(1, -(-n // parts.portions.together))
    before: list[list[CopiesBefore]] = [[] for _ in range(n_parts)]
    bits = max(8, (_BITS_OF_ROW * n // n_ranges).bit_length())
    for i in range(n_ranges if n_parts > 1 else 0):
        among = Range(i, n_ranges, bits)
        twice = parts.collect(seen, among).twice
        told = parts.collect(shared_rows, among, twice)
        for own, more in zip(before, copies_before(told, n_parts), strict=True):
            own.append(more)
        parts.expect_within_limit()
    own_of_all = []
    while before:  # so that nothing is there twice
        own_of_all.append(_joined(before.pop(0)))
    parts.change(with_keys, own=own_of_all)


def _joined(found: list[CopiesBefore]) -> CopiesBefore:
    """What is known of several ranges, by ascending hashes."""
    none = np.zeros(0, dtype=np.uint64)
    hashes = np.concatenate([none, *(one.hashes for one in found)])
    order = np.argsort(hashes, kind="stable")
    numbers = np.concatenate([none, *(one.numbers for one in found)])
    return CopiesBefore(hashes[order], numbers[order])
