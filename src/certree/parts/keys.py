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

from certree.interface.arrays import UInt64
from certree.parts.part import PartOfRows
from certree.rows.hashes import keys_of

# Bits by which rows that are looked at together are told apart at first, for each row.
_BITS_OF_ROW = 4


@dataclass(frozen=True, slots=True)
class Range:
    """The part of all hashes that are looked at together: the i-th of so many, by so many bits."""

    i: int
    n: int
    bits: int

    def of(self, hashes: UInt64) -> UInt64:
        """The hashes among these that are in it."""
        return hashes[hashes % np.uint64(self.n) == self.i]

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
    has[among.buckets(among.of(part.keys))] = True
    once = np.packbits(has)
    return Seen(once, np.zeros_like(once))


def doubtful(part: PartOfRows, among: Range, twice: NDArray[np.uint8]) -> list[tuple[Any, ...]]:
    """Hashes of a part that another part may have, and how many rows have each."""
    own = among.of(part.keys)
    is_shared = np.unpackbits(twice).view(np.bool_)[among.buckets(own)]
    return [(part.number, *np.unique(own[is_shared], return_counts=True))]


def copies_before(told: Sequence[tuple[Any, ...]], n_parts: int) -> list[tuple[UInt64, UInt64]]:
    """Of each part, hashes that parts before it have, and of how many rows."""
    told = sorted(told, key=lambda one: one[0])
    hashes = np.concatenate([one[1] for one in told])
    counts = np.concatenate([one[2] for one in told]).astype(np.uint64)
    number = np.repeat([one[0] for one in told], [len(one[1]) for one in told])
    order = np.argsort(hashes, kind="stable")
    hashes, counts, number = hashes[order], counts[order], number[order]
    before = np.cumsum(counts, dtype=np.uint64) - counts
    starts = np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]
    before -= np.maximum.accumulate(np.where(starts, before, np.uint64(0)))
    found = []
    for one in range(n_parts):
        mine = (number == one) & (before > 0)
        found.append((hashes[mine], before[mine]))
    return found


def with_keys(part: PartOfRows, before: tuple[UInt64, UInt64]) -> tuple[PartOfRows, int]:
    """A part whose hashes have become keys."""
    return replace(part, keys=keys_of(np.array(part.keys), before)), 0


def set_keys(parts: Any, n: int) -> None:
    """Let the hashes of all parts become the keys that their n rows have in one table."""
    n_parts, n_ranges = parts.n_parts, max(1, -(-n // parts.portions.together))
    before: list[list[tuple[UInt64, UInt64]]] = [[] for _ in range(n_parts)]
    bits = max(8, (_BITS_OF_ROW * n // n_ranges).bit_length())
    for i in range(n_ranges if n_parts > 1 else 0):
        among = Range(i, n_ranges, bits)
        twice = parts.collect(seen, among).twice
        told = parts.collect(doubtful, among, twice)
        for own, more in zip(before, copies_before(told, n_parts), strict=True):
            own.append(more)
        parts.expect_within_limit()
    own_of_all = []
    while before:  # so that nothing is there twice
        own_of_all.append(_joined(before.pop(0)))
    parts.change(with_keys, own=own_of_all)


def _joined(found: list[tuple[UInt64, UInt64]]) -> tuple[UInt64, UInt64]:
    """What is known of several ranges, by ascending hashes."""
    none = np.zeros(0, dtype=np.uint64)
    hashes = np.concatenate([none, *(one[0] for one in found)])
    order = np.argsort(hashes)
    return hashes[order], np.concatenate([none, *(one[1] for one in found)])[order]
