"""Set masks: sets of bits as rows of W 64-bit words, where bit j is bit j % 64 of word j // 64."""

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
    """Return the number of words, W, of a mask over `n_bits` bits."""
    return (n_bits + 63) // 64


def pack_members(members: NDArray[np.integer], n_bits: int) -> UInt64:
    """Convert the members (k, size) of sets of one size to masks (k, W)."""
    masks = np.zeros((len(members), count_words(n_bits)), dtype=np.uint64)
    rows = np.arange(len(members))
    for bit in members.T:
        masks[rows, bit // 64] |= np.uint64(1) << (bit % 64).astype(np.uint64)
    return masks


def pack_indicators(indicators: NDArray[np.bool_]) -> UInt64:
    """Convert indicators (k, n_bits), True for members, to masks (k, W)."""
    padded = np.zeros((len(indicators), 64 * count_words(indicators.shape[1])), dtype=np.uint8)
    padded[:, : indicators.shape[1]] = indicators
    little_endian = np.packbits(padded, axis=1, bitorder="little").view("<u8")
    return little_endian.astype(np.uint64)


def unpack_indicators(masks: UInt64, n_bits: int) -> NDArray[np.bool_]:
    """Convert masks (k, W) to indicators (k, n_bits), True for members."""
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :n_bits].astype(bool)


def build_membership_matrix(masks: UInt64, n_bits: int) -> sparse.csr_matrix:
    """Convert masks (k, W) to a sparse matrix (k, n_bits) with a 1 for each member."""
    members, sizes = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
    for first in range(0, len(masks), _BLOCK):
        indicators = unpack_indicators(masks[first : first + _BLOCK], n_bits)
        members.append(np.nonzero(indicators)[1].astype(np.int32))
        sizes.append(indicators.sum(axis=1, dtype=np.int64))
    bits, begin = np.concatenate(members), np.cumsum(np.concatenate(sizes))
    return sparse.csr_matrix((np.ones(len(bits)), bits, begin), shape=(len(masks), n_bits))


def argsort_masks(masks: UInt64) -> NDArray[np.intp]:
    """Return the indices that sort masks, by their last word first, as the core sorts them."""
    return np.lexsort(masks.T)


def find_distinct(masks: UInt64) -> NDArray[np.intp]:
    """Return the index of the first mask of each group of equal masks; `masks` must be sorted."""
    differs = (masks[1:] != masks[:-1]).any(axis=1)
    return np.flatnonzero(np.append(np.ones(min(len(masks), 1), dtype=bool), differs))


def count_sets(n_bits: int, degree: int) -> int:
    """Return the number of sets of at most `degree` of `n_bits` bits."""
    return sum(comb(n_bits, size) for size in range(min(degree, n_bits) + 1))


def enumerate_sets(n_bits: int, degree: int) -> UInt64:
    """Return the masks (k, W) of all sets of at most `degree` bits, smaller sets first."""
    return np.concatenate([*_iterate_sizes(n_bits, degree)])


def _iterate_sizes(n_bits: int, degree: int) -> Iterator[UInt64]:
    """Yield the masks of all sets of each size from 0 to `degree`."""
    for size in range(min(degree, n_bits) + 1):
        flat = np.fromiter(
            (bit for members in combinations(range(n_bits), size) for bit in members),
            dtype=np.int64,
            count=size * comb(n_bits, size),
        )
        yield pack_members(flat.reshape(comb(n_bits, size), size), n_bits)
