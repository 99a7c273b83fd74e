"""Random keys of rows, by which rows are drawn, for rows that are stored in several blocks.

A row's key depends on its content, and for equal rows on a consecutive number. So blocks must number
rows that also occur in other blocks. They exchange only hashes of rows that another block may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int64, UInt64
from certree.out_of_core.hash_ranges import count_hash_ranges, find_hash_ranges
from certree.out_of_core.row_block import RowBlock, raise_for_changed_rows
from certree.rows.hashes import (
    ChangedRowsError,
    EarlierCopies,
    compute_keys,
    count_equal_rows,
    mark_run_starts,
    order_by_hash,
)

# Prefixes of hashes distinguish the rows of a range in a table of so many bits for each row.
_BITS_PER_ROW = 4


@dataclass(frozen=True, slots=True)
class HashRange:
    """A range of row hashes (uint64): those with remainder i after division by n.

    Blocks of rows compare the hashes of one range at a time, first their prefixes (leading bits).

    Parameters
    ----------
    i : int
        Number of the range, in 0 .. n - 1.
    n : int
        Number of ranges.
    bits : int
        Length in bits of the prefixes of hashes that blocks compare first.
    """

    i: int
    n: int
    bits: int

    def find_positions(self, hashes: UInt64) -> NDArray[np.intp]:
        """Return the positions of the hashes that are in this range, ascending. hashes: (n,) uint64."""
        return np.flatnonzero(find_hash_ranges(hashes, self.n) == self.i)

    def compute_prefixes(self, hashes: UInt64) -> NDArray[np.intp]:
        """Return the first `bits` bits of each hash as an integer, (len(hashes),)."""
        return (hashes >> np.uint64(64 - self.bits)).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class HashPrefixes:
    """Prefixes (leading bits) of row hashes that occur in any block, and in several blocks.

    Each field is a bit mask of all 2^bits prefixes, packed by `numpy.packbits`. Adding two objects
    merges the blocks of both.

    Parameters
    ----------
    in_any, in_several : ndarray of uint8
        Whether a block has each prefix, and whether at least two blocks have it.
    """

    in_any: NDArray[np.uint8]
    in_several: NDArray[np.uint8]

    def __add__(self, other: Self) -> Self:
        """Return which prefixes occur in any, and in several, of the blocks of both objects.

        other: the prefixes of other blocks.
        """
        in_several = self.in_several | other.in_several | (self.in_any & other.in_any)
        return replace(self, in_any=self.in_any | other.in_any, in_several=in_several)


def find_prefixes(block: RowBlock, among: HashRange) -> HashPrefixes:
    """Return the prefixes (leading bits) of those hashes of a block that are in a range.

    Parameters
    ----------
    block : RowBlock
        The block, whose field `keys` still has hashes of rows.
    among : HashRange
        The range of hashes, and the length of the prefixes.

    Returns
    -------
    HashPrefixes
        The prefixes; none of them is in several blocks.
    """
    is_present = np.zeros(2**among.bits, dtype=np.bool_)
    is_present[among.compute_prefixes(block.keys[among.find_positions(block.keys)])] = True
    in_any = np.packbits(is_present)
    return HashPrefixes(in_any, np.zeros_like(in_any))


@dataclass(frozen=True, slots=True, eq=False)
class SharedRows:
    """Counts of the rows of a block that may also occur in another block, by hash and weight.

    Parameters
    ----------
    number : int
        Number of the block.
    hashes : ndarray of uint64, shape (k,)
        Hash of each entry, ascending: one entry for each distinct combination of hash, weight and
        offsets.
    ties : ndarray of float64, shape (k,) or (q, k), or None
        Weight and offsets of each entry, ascending among equal hashes; see `RowBlock.ties`.
    counts : ndarray of int64, shape (k,)
        Number of rows of each entry.
    n_repeated : int
        Number of rows that occur in no other block, but have a copy in this block.
    """

    number: int
    hashes: UInt64
    ties: Float64 | None
    counts: Int64
    n_repeated: int


def count_shared_rows(
    block: RowBlock, among: HashRange, in_several: NDArray[np.uint8]
) -> list[SharedRows]:
    """Count the rows of a block that may also occur in another block, by hash, weight and offsets.

    Parameters
    ----------
    block : RowBlock
        The block, whose field `keys` still has hashes of rows.
    among : HashRange
        The range of the hashes that are compared.
    in_several : ndarray of uint8
        Bit mask of the prefixes that several blocks have, from `HashPrefixes.in_several`. Other rows
        of the block cannot occur in another block.

    Returns
    -------
    list of SharedRows
        The counts, as a list of one element, so that `Executor.reduce` concatenates those of all
        blocks.
    """
    rows = among.find_positions(block.keys)
    is_shared = np.unpackbits(in_several).view(np.bool_)[among.compute_prefixes(block.keys[rows])]
    n_repeated = count_equal_rows(block.keys[rows[~is_shared]])
    rows = rows[is_shared]
    ties = None if block.ties is None else block.ties[..., rows]
    order = order_by_hash(block.keys[rows], ties)
    hashes, ties = block.keys[rows[order]], None if ties is None else ties[..., order]
    starts = mark_run_starts(hashes) | mark_run_starts(ties)
    counts = np.diff(np.flatnonzero(np.append(starts, True)))
    ties = None if ties is None else ties[..., starts]
    return [SharedRows(block.number, hashes[starts], ties, counts, n_repeated)]


def number_shared_rows(shared: Sequence[SharedRows], n_blocks: int) -> list[EarlierCopies]:
    """Find, for each block, at which copy number its rows start among equal rows of all blocks.

    Equal rows are numbered 0, 1, ... by weight and offsets, ascending, and then by block.

    Parameters
    ----------
    shared : sequence of SharedRows
        Counts of the rows that may occur in several blocks, from all blocks in any order.
    n_blocks : int
        Number of blocks.

    Returns
    -------
    list of EarlierCopies
        For each block, in the order of block numbers: the hashes of its shared rows, and the copy
        number of the first of them, that is, the number of equal rows before it.
    """
    shared = sorted(shared, key=attrgetter("number"))
    hashes = np.concatenate([rows.hashes for rows in shared])
    counts = np.concatenate([rows.counts for rows in shared]).astype(np.uint64)
    block = np.repeat([rows.number for rows in shared], [len(rows.hashes) for rows in shared])
    # Blocks without rows do not have offsets.
    ties = [rows.ties for rows in shared if rows.ties is not None and len(rows.hashes)]
    order = order_by_hash(hashes, np.concatenate(ties, axis=-1) if ties else None)
    ordered, counts = hashes[order], counts[order]
    before = np.cumsum(counts, dtype=np.uint64) - counts
    starts = mark_run_starts(ordered)
    before -= np.maximum.accumulate(np.where(starts, before, np.uint64(0)))
    numbers = np.empty_like(before)
    numbers[order] = before
    return [EarlierCopies(hashes[block == k], numbers[block == k]) for k in range(n_blocks)]


def replace_hashes(block: RowBlock, before: EarlierCopies) -> tuple[RowBlock, int]:
    """Replace the hashes of the rows of a block by their random keys.

    A key is a hash of a row's values and of its copy number: 0 for the first of equal rows of all
    blocks, 1 for the second, ...

    Parameters
    ----------
    block : RowBlock
        The block, whose field `keys` still has hashes of rows.
    before : EarlierCopies
        For rows that also occur in other blocks, by hash: the copy number of the first one in this
        block, from `number_shared_rows`.

    Returns
    -------
    block : RowBlock
        The block with keys.
    zero : int
        0, as there is no partial result.

    Raises
    ------
    ValueError
        If the block was recomputed and has other rows than before.
    """
    try:
        return replace(block, keys=compute_keys(np.array(block.keys), block.ties, before)), 0
    except ChangedRowsError:
        raise_for_changed_rows(block.number)


def _list_shared_rows(executor: Any, n: int) -> Iterator[list[SharedRows]]:
    """Yield, for each range of row hashes, the rows that may occur in several blocks, with counts.

    These are candidates: a leading part of their hash occurs in several blocks, so that the caller
    must still compare the hashes. Each list has one `SharedRows` per block: the distinct rows among
    them, by hash, weight and offsets, how often the block has each, and how many of its other rows
    repeat within the block. executor: holds the blocks,
    whose field `keys` has hashes; n: number of rows in all blocks, which determines the number of
    ranges. ValueError is raised if the process holds more memory than its limit.
    """
    n_ranges = count_hash_ranges(n, executor.block_sizes)
    bits = max(8, (_BITS_PER_ROW * n // n_ranges).bit_length())
    for i in range(n_ranges):
        among = HashRange(i, n_ranges, bits)
        prefixes: HashPrefixes = executor.reduce(find_prefixes, among)
        yield executor.reduce(count_shared_rows, among, prefixes.in_several)
        executor.expect_within_limit()


def _count_repeated(shared: list[SharedRows]) -> int:
    """Return the number of rows in one range of hashes that equal another row of any block.

    shared: counts of the rows that may occur in several blocks, from all blocks, for this range.
    """
    hashes = np.concatenate([rows.hashes for rows in shared])
    counts = np.concatenate([rows.counts for rows in shared])
    return sum(rows.n_repeated for rows in shared) + count_equal_rows(hashes, counts)


def count_repeated_rows(executor: Any, n: int) -> int:
    """Count the rows that equal another row, of the same or of another block.

    Parameters
    ----------
    executor : Executor
        Holds the blocks, whose field `keys` still has hashes of rows.
    n : int
        Number of rows in all blocks.

    Returns
    -------
    int
        Number of rows that equal at least one other row.

    Raises
    ------
    ValueError
        If the process holds more memory than its limit.
    """
    return sum(map(_count_repeated, _list_shared_rows(executor, n)))


def set_keys(executor: Any, n: int) -> int:
    """Replace the row hashes in all blocks by random keys, as they would be in one table.

    The key of a row is a hash of its values and of its copy number: 0 for the first of equal rows,
    1 for the second, ... Rows sorted by key have the same order whatever the division into blocks.

    Parameters
    ----------
    executor : Executor
        Holds the blocks, whose field `keys` still has hashes. They are replaced by blocks with keys.
    n : int
        Number of rows in all blocks.

    Returns
    -------
    int
        Number of rows that equal another row.

    Raises
    ------
    ValueError
        If the process holds more memory than its limit, or a recomputed block has other rows.
    """
    n_blocks, n_repeated = executor.n_blocks, 0
    repeats: list[list[EarlierCopies]] = [[] for _ in range(n_blocks)]
    for shared in _list_shared_rows(executor, n):
        n_repeated += _count_repeated(shared)
        for ranges, more in zip(repeats, number_shared_rows(shared, n_blocks), strict=True):
            ranges.append(more)
    joined = []
    while repeats:  # Ranges are dropped at once, so that memory holds no entry twice.
        joined.append(_join_ranges(repeats.pop(0)))
    executor.replace_blocks(replace_hashes, per_block=joined)
    return n_repeated


def _join_ranges(ranges: list[EarlierCopies]) -> EarlierCopies:
    """Join the entries of a block for all ranges of hashes to one object, by ascending hash.

    ranges: one object for each range of hashes, which says for each hash with which copy number, that
    is, number 0, 1, ... among the equal rows of all blocks, the rows of the block start.
    """
    none = np.zeros(0, dtype=np.uint64)
    hashes = np.concatenate([none, *(one.hashes for one in ranges)])
    order = np.argsort(hashes, kind="stable")
    numbers = np.concatenate([none, *(one.numbers for one in ranges)])
    return EarlierCopies(hashes[order], numbers[order])
