"""Exact order statistics of numbers in several blocks, by radix selection on the bits of float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

import numpy as np

from certree.interface.arrays import Float64, Int64, UInt64
from certree.out_of_core.exact_sums import convert_to_integers
from certree.out_of_core.executors import Executor, LocalBlocks
from certree.out_of_core.row_block import RowBlock

# Number of low bits that each pass ignores. The last pass compares whole numbers. The first compares
# sign, exponent and ten digits, so that few numbers have a prefix of their own.
_SHIFTS, _STEP = (42, 21, 0), 21
_SIGN = np.uint64(1 << 63)

# Returns the numbers of a block.
GetValues = Callable[..., Float64]


@dataclass(frozen=True, slots=True, eq=False)
class PrefixCounts:
    """Histogram of float64 values by the leading bits (prefix) of their 64-bit encoding.

    The encoding preserves the order of the values; `_encode` computes it. A prefix is the encoding
    shifted to the right: `count_prefixes` keeps the first 22, 43 or all 64 bits. Adding two objects
    gives the histogram of the values of both, if their prefixes have equally many bits and their
    weights the same unit.

    Parameters
    ----------
    prefixes : ndarray of uint64, shape (k,)
        Distinct prefixes, ascending.
    counts : ndarray of int64, shape (k,)
        Number of values with each prefix. If rows have weights, the total weight of these rows, as
        a multiple of the power of two 2^unit that `count_prefixes` was called with.
    """

    prefixes: UInt64
    counts: Int64

    def __add__(self, other: Self) -> Self:
        """Return the histogram of the values of both objects.

        other: histogram of other values, whose prefixes have the same number of bits.
        """
        prefixes = np.concatenate([self.prefixes, other.prefixes])
        order = np.argsort(prefixes, kind="stable")
        prefixes, starts = _find_distinct(prefixes[order])
        counts = np.append(self.counts, other.counts)[order]
        return type(self)(prefixes, np.add.reduceat(counts, starts) if len(starts) else counts)


def _find_distinct(ordered: UInt64) -> tuple[UInt64, Int64]:
    """Return the distinct values of an ascending array, and the index of the first of each, (k,)."""
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    return ordered[starts], starts


def _encode(values: Float64) -> UInt64:
    """Return uint64 integers of the same shape that are ordered as the values.

    values: float64 without NaN. 0.0 and -0.0 get the same integer. `_decode` is the inverse.
    """
    bits = (values + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _decode(bits: UInt64) -> Float64:
    """Return the float64 values that `_encode` turned into these integers, of the same shape."""
    return np.where(bits & _SIGN, bits ^ _SIGN, ~bits).view(np.float64)


def count_prefixes(
    block: RowBlock,
    get_values: GetValues,
    arguments: tuple[Any, ...],
    unit: int | None = None,
    step: int = 0,
    begins: UInt64 | None = None,
) -> PrefixCounts:
    """Count the values of a block of rows by the prefixes (leading bits) of their 64-bit encoding.

    The encoding turns float64 into uint64 and preserves the order. `find_order_statistics` selects
    values in three passes, of which each counts longer prefixes.

    Parameters
    ----------
    block : RowBlock
        Rows with weights, or without if `block.weight` is None.
    get_values : callable
        ``get_values(block, *arguments)`` returns the numbers of the block, (n,).
    arguments : tuple
        Further arguments of `get_values`.
    unit : int or None
        Exponent: the weights of rows are rounded to multiples of 2^unit. None: each number counts once.
    step : int
        Number of the pass: 0, 1 or 2. Later passes have longer prefixes.
    begins : ndarray of uint64, or None
        Prefixes of the pass before, `step` - 1: only values with one of them are counted. None: all.

    Returns
    -------
    PrefixCounts
        Number of values, or total weight in multiples of 2^unit, for each prefix that occurs.
    """
    bits = _encode(get_values(block, *arguments))
    weight = (
        None if unit is None or block.weight is None else convert_to_integers(block.weight, unit)
    )
    if begins is not None:
        is_counted = np.isin(bits >> np.uint64(_SHIFTS[step - 1]), begins)
        bits, weight = bits[is_counted], None if weight is None else weight[is_counted]
    prefixes = bits >> np.uint64(_SHIFTS[step])
    if weight is None:
        distinct, starts = _find_distinct(np.sort(prefixes))
        return PrefixCounts(distinct, np.diff(np.append(starts, len(prefixes))))
    order = np.argsort(prefixes)  # not stable, which is faster: sums of integers have no order
    distinct, starts = _find_distinct(prefixes[order])
    counts = np.add.reduceat(weight[order], starts) if len(starts) else weight
    return PrefixCounts(distinct, counts)


def find_order_statistics(
    executor: Executor | LocalBlocks,
    ranks: Sequence[int],
    get_values: GetValues,
    *arguments: Any,
    first_counts: PrefixCounts | None = None,
    unit: int | None = None,
) -> Float64:
    """Return the values of given ranks among the values of all blocks.

    The smallest value has rank 0. If rows have weights, which are multiples of 2^unit, a value with
    the weight k 2^unit has k consecutive ranks.

    Parameters
    ----------
    executor : Executor or LocalBlocks
        The blocks.
    ranks : sequence of int
        Ranks, in 0 .. number of values - 1, or total weight / 2^unit - 1.
    get_values : callable
        ``get_values(block, *arguments)`` returns the numbers of a block, (n,).
    *arguments : object
        Further arguments of `get_values`.
    first_counts : PrefixCounts or None
        Sum of `count_prefixes` with step=0 over all blocks, if it is already known. None: the function
        computes it, in one more pass over the blocks.
    unit : int or None
        Exponent: the weights of rows are rounded to multiples of 2^unit. None: each number counts once.

    Returns
    -------
    ndarray of float64, shape (len(ranks),)
        The numbers. 0.0 stands for -0.0.
    """
    counts = first_counts
    if counts is None:
        counts = executor.reduce(count_prefixes, get_values, arguments, unit)
    found = [_find_prefix(counts.prefixes, counts.counts, rank) for rank in ranks]
    for step in range(1, len(_SHIFTS)):
        begins = np.array([prefix for prefix, _ in found], dtype=np.uint64)
        counts = executor.reduce(count_prefixes, get_values, arguments, unit, step, begins)
        previous = counts.prefixes >> np.uint64(_STEP)
        found = [
            _find_prefix(counts.prefixes[is_below], counts.counts[is_below], rank)
            for is_below, rank in ((previous == np.uint64(prefix), rank) for prefix, rank in found)
        ]
    return _decode(np.array([prefix for prefix, _ in found], dtype=np.uint64))


def _find_prefix(prefixes: UInt64, counts: Int64, rank: int) -> tuple[int, int]:
    """Find the value of a given rank in a histogram of prefixes.

    prefixes, counts: distinct prefixes (leading bits) of encoded values, ascending, and number of
    values with each, (k,); rank: position of the value, from 0, if all values of the histogram are
    sorted. Return the prefix of the value, and its position among the values with this prefix.
    """
    before = np.append(0, np.cumsum(counts))
    position = int(np.searchsorted(before, rank, side="right")) - 1
    return int(prefixes[position]), rank - int(before[position])


def find_quantile(
    executor: Executor | LocalBlocks,
    quantile: float,
    unit: int | None,
    get_values: GetValues,
    *arguments: Any,
) -> Float64:
    """Return the smallest value at or below which at least a fraction of all values lies, (1,).

    executor: holds the blocks of rows; quantile: the fraction, between 0 and 1; get_values:
    ``get_values(block, *arguments)`` returns the values of a block's rows, (n,); unit: exponent: values
    count by the weights of rows, rounded to multiples of 2^unit; None: each value counts once.
    """
    first: PrefixCounts = executor.reduce(count_prefixes, get_values, arguments, unit)
    rank = compute_quantile_rank(quantile, int(first.counts.sum()))
    return find_order_statistics(
        executor, [rank], get_values, *arguments, first_counts=first, unit=unit
    )


def compute_quantile_rank(quantile: float, total: int) -> int:
    """Return the index, 0 .. total - 1, of a quantile in a sorted array of `total` numbers.

    It is ceil(quantile * total) - 1: the smallest number at or below which at least the fraction
    `quantile` of all lies.
    """
    return min(max(ceil(quantile * float(total)) - 1, 0), total - 1)
