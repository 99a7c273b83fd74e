"""Set masks: a set of bits as W words of 64 bits; bit j is bit j % 64 of word j // 64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from certree.interface.arrays import UInt64

# Number of sets that are unpacked to one byte per bit at a time.
_BLOCK = 1 << 14


def count_words(n_bits: int) -> int:
    """Return the number W of 64-bit words of a mask that has one bit for each of `n_bits` numbers."""
    return (n_bits + 63) // 64


def pack_members(members: NDArray[np.integer], n_bits: int) -> UInt64:
    """Convert sets of bit numbers to masks.

    members: bit numbers of each of k sets, which all have the same size, (k, size); n_bits: number
    of bits to choose from. Return masks, (k, W), of W = ceil(n_bits / 64) words: bit j % 64 of word
    j // 64 is 1 if bit j belongs to the set.
    """
    masks = np.zeros((len(members), count_words(n_bits)), dtype=np.uint64)
    rows = np.arange(len(members))
    for bit in members.T:
        masks[rows, bit // 64] |= np.uint64(1) << (bit % 64).astype(np.uint64)
    return masks


def pack_indicators(indicators: NDArray[np.bool_]) -> UInt64:
    """Convert sets of bits, given as booleans, to masks.

    indicators: whether each bit belongs to each of k sets, (k, n_bits). Return masks, (k, W), of W
    = ceil(n_bits / 64) words: bit j % 64 of word j // 64 is 1 if bit j belongs to the set.
    """
    padded = np.zeros((len(indicators), 64 * count_words(indicators.shape[1])), dtype=np.uint8)
    padded[:, : indicators.shape[1]] = indicators
    little_endian = np.packbits(padded, axis=1, bitorder="little").view("<u8")
    return little_endian.astype(np.uint64)


def unpack_indicators(masks: UInt64, n_bits: int) -> NDArray[np.bool_]:
    """Convert masks of sets of bits, (k, W), to booleans, (k, n_bits): True for bits of the set.

    Bit j of a set is bit j % 64 of word j // 64 of its mask.
    """
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :n_bits].astype(bool)


def build_membership_matrix(masks: UInt64, n_bits: int) -> sparse.csr_matrix:
    """Convert masks of sets of bits, (k, W), to a sparse matrix of float64, (k, n_bits).

    The matrix is 1 where a bit belongs to a set. Bit j of a set is bit j % 64 of word j // 64 of
    its mask.
    """
    members, sizes = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
    for first in range(0, len(masks), _BLOCK):
        indicators = unpack_indicators(masks[first : first + _BLOCK], n_bits)
        members.append(np.nonzero(indicators)[1].astype(np.int32))
        sizes.append(indicators.sum(axis=1, dtype=np.int64))
    bits, begin = np.concatenate(members), np.cumsum(np.concatenate(sizes))
    return sparse.csr_matrix((np.ones(len(bits)), bits, begin), shape=(len(masks), n_bits))


def argsort_masks(masks: UInt64) -> NDArray[np.intp]:
    """Return the indices, (k,), that sort masks of sets of bits, (k, W), ascending.

    Masks are compared by their last word first, then by the last but one, and so on. `Spectrum`
    stores terms in this order.
    """
    return np.lexsort(masks.T)


def find_distinct(masks: UInt64) -> NDArray[np.intp]:
    """Return the index of the first mask of each group of equal masks, ascending.

    masks: masks of sets of bits, (k, W), sorted as by `argsort_masks`, so that equal masks are
    adjacent.
    """
    differs = (masks[1:] != masks[:-1]).any(axis=1)
    return np.flatnonzero(np.append(np.ones(min(len(masks), 1), dtype=bool), differs))


def count_sets(n_bits: int, degree: int) -> int:
    """Return how many sets of at most `degree` elements `n_bits` bits have; the empty set counts."""
    return sum(comb(n_bits, size) for size in range(min(degree, n_bits) + 1))


def enumerate_sets(n_bits: int, degree: int) -> UInt64:
    """Return the masks of all sets of at most `degree` of `n_bits` bits, smaller sets first.

    The first is the empty set. Masks have shape (k, W), W = ceil(n_bits / 64): bit j % 64 of word j
    // 64 is 1 if bit j belongs to the set.
    """
    return np.concatenate([*_iterate_sizes(n_bits, degree)])


def _iterate_sizes(n_bits: int, degree: int) -> Iterator[UInt64]:
    """Yield, for each size from 0 to min(degree, n_bits), the masks of all sets of that many bits.

    Each yielded array is (number of sets, W), W = ceil(n_bits / 64): bit j % 64 of word j // 64 is
    1 if bit j belongs to the set.
    """
    for size in range(min(degree, n_bits) + 1):
        flat = np.fromiter(
            (bit for members in combinations(range(n_bits), size) for bit in members),
            dtype=np.int64,
            count=size * comb(n_bits, size),
        )
        yield pack_members(flat.reshape(comb(n_bits, size), size), n_bits)
