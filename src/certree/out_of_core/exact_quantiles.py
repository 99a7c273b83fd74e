"""Order statistics of numbers that lie in parts, exactly, by how many lie in ranges of their bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from certree.interface.arrays import Float64, Int64, UInt64
from certree.out_of_core.exact_sums import whole_numbers
from certree.out_of_core.executors import Executor
from certree.out_of_core.part import PartOfRows

# Bits that a pass over the parts does not look at yet, each time 21 less; the last one tells numbers.
# The first looks at sign, exponent and ten digits, which few numbers have each for themselves.
_SHIFTS, _LESS = (42, 21, 0), 21
_SIGN = np.uint64(1 << 63)

# The numbers of a part.
Of = Callable[..., Float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many numbers begin with some bits, or what they weigh; those of more add up.

    Parameters
    ----------
    begins : ndarray of uint64, shape (k,)
        The first bits, ascending.
    n : ndarray of int64, shape (k,)
        How many numbers begin with each, or their weights as whole numbers.
    """

    begins: UInt64
    n: Int64

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        begins = np.concatenate([self.begins, other.begins])
        order = np.argsort(begins, kind="stable")
        begins, starts = _distinct(begins[order])
        n = np.append(self.n, other.n)[order]
        return type(self)(begins, np.add.reduceat(n, starts) if len(starts) else n)


def _distinct(ordered: UInt64) -> tuple[UInt64, Int64]:
    """The distinct ones of ascending numbers, and where each of them starts."""
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    return ordered[starts], starts


def _ordered_bits(numbers: Float64) -> UInt64:
    """Bits in the order of the numbers; those of -0.0 are those of 0.0."""
    bits = (numbers + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _numbers(bits: UInt64) -> Float64:
    """The numbers of such bits."""
    return np.where(bits & _SIGN, bits ^ _SIGN, ~bits).view(np.float64)


def counted(
    part: PartOfRows,
    of: Of,
    given: tuple[Any, ...],
    unit: int | None = None,
    step: int = 0,
    begins: UInt64 | None = None,
) -> Counts:
    """Count the numbers of a part, of(part, *given), by their first bits.

    unit: the power of two of which their weights are whole multiples; None: each counts once. step:
    which of the passes it is; begins: the bits of those that it looks at, as the one before has told
    them.
    """
    bits = _ordered_bits(of(part, *given))
    weight = None if unit is None or part.weight is None else whole_numbers(part.weight, unit)
    if begins is not None:
        some = np.isin(bits >> np.uint64(_SHIFTS[step - 1]), begins)
        bits, weight = bits[some], None if weight is None else weight[some]
    first = bits >> np.uint64(_SHIFTS[step])
    if weight is None:
        distinct, starts = _distinct(np.sort(first))
        return Counts(distinct, np.diff(np.append(starts, len(first))))
    order = np.argsort(first, kind="stable")
    distinct, starts = _distinct(first[order])
    return Counts(distinct, np.add.reduceat(weight[order], starts) if len(starts) else weight)


def order_statistics(
    parts: Executor,
    ranks: Sequence[int],
    of: Of,
    *given: Any,
    told: Counts | None = None,
    unit: int | None = None,
) -> Float64:
    """The numbers of some ranks among those of all parts, the smallest being of rank 0.

    Numbers that weigh k units have k ranks.

    Parameters
    ----------
    parts : Executor
        Where the numbers lie.
    ranks : sequence of int
        Ranks.
    of, *given : callable, any
        Of a part these are of(part, *given).
    told : Counts or None
        What parts have told in the first pass already; None: they are asked.
    unit : int or None
        See `counted`.

    Returns
    -------
    ndarray of shape (n_ranks,)
    """
    counts = parts.collect(counted, of, given, unit) if told is None else told
    found = [_place(counts.begins, counts.n, rank) for rank in ranks]
    for step in range(1, len(_SHIFTS)):
        begins = np.array([begin for begin, _ in found], dtype=np.uint64)
        counts = parts.collect(counted, of, given, unit, step, begins)
        above = counts.begins >> np.uint64(_LESS)
        some = [above == np.uint64(begin) for begin, _ in found]
        found = [
            _place(counts.begins[own], counts.n[own], rank)
            for own, (_, rank) in zip(some, found, strict=True)
        ]
    return _numbers(np.array([begin for begin, _ in found], dtype=np.uint64))


def _place(begins: UInt64, n: Int64, rank: int) -> tuple[int, int]:
    """The first bits of the number of a rank, and its rank among those that begin so."""
    before = np.append(0, np.cumsum(n))
    place = int(np.searchsorted(before, rank, side="right")) - 1
    return int(begins[place]), rank - int(before[place])
