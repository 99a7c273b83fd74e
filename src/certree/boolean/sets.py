"""Sets of bits as rows of 64-bit words: bit j is bit j % 64 of word j // 64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from certree.interface.arrays import UInt64

# So many sets at a time become one number for each bit.
_BLOCK = 1 << 14


def n_words(n_bits: int) -> int:
    """How many words a set of so many bits takes."""
    return (n_bits + 63) // 64


def masks_of(members: NDArray[np.integer], n_bits: int) -> UInt64:
    """Pack sets of the same size: bits (k, size) become words (k, W)."""
    masks = np.zeros((len(members), n_words(n_bits)), dtype=np.uint64)
    number = np.arange(len(members))
    for bit in members.T:
        masks[number, bit // 64] |= np.uint64(1) << (bit % 64).astype(np.uint64)
    return masks


def packed(indicators: NDArray[np.bool_]) -> UInt64:
    """Pack indicators (k, n_bits) into words (k, W)."""
    padded = np.zeros((len(indicators), 64 * n_words(indicators.shape[1])), dtype=np.uint8)
    padded[:, : indicators.shape[1]] = indicators
    little = np.packbits(padded, axis=1, bitorder="little").view("<u8")
    return little.astype(np.uint64)


def unpacked(masks: UInt64, n_bits: int) -> NDArray[np.bool_]:
    """Give the indicators (k, n_bits) of sets."""
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :n_bits].astype(bool)


def members_of(masks: UInt64, n_bits: int) -> sparse.csr_matrix:
    """Give the sets as a sparse matrix (k, n_bits) of ones."""
    found, sizes = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
    for first in range(0, len(masks), _BLOCK):
        inside = unpacked(masks[first : first + _BLOCK], n_bits)
        found.append(np.nonzero(inside)[1].astype(np.int32))
        sizes.append(inside.sum(axis=1, dtype=np.int64))
    bits, begin = np.concatenate(found), np.cumsum(np.concatenate(sizes))
    return sparse.csr_matrix((np.ones(len(bits)), bits, begin), shape=(len(masks), n_bits))


def ascending(masks: UInt64) -> NDArray[np.intp]:
    """Order of the sets: by their last word first, as the core has them."""
    return np.lexsort(masks.T)


def starts_of_equal(masks: UInt64) -> NDArray[np.intp]:
    """Where other sets begin, of sets in their order."""
    differs = (masks[1:] != masks[:-1]).any(axis=1)
    return np.flatnonzero(np.append(np.ones(min(len(masks), 1), dtype=bool), differs))


def number_of_sets(n_bits: int, degree: int) -> int:
    """How many sets of at most `degree` bits there are."""
    return sum(comb(n_bits, size) for size in range(min(degree, n_bits) + 1))


def low_degree_sets(n_bits: int, degree: int) -> UInt64:
    """Give all sets of at most `degree` bits, smaller ones first."""
    return np.concatenate([*_by_size(n_bits, degree)])


def _by_size(n_bits: int, degree: int) -> Iterator[UInt64]:
    for size in range(min(degree, n_bits) + 1):
        flat = np.fromiter(
            (bit for one in combinations(range(n_bits), size) for bit in one),
            dtype=np.int64,
            count=size * comb(n_bits, size),
        )
        yield masks_of(flat.reshape(comb(n_bits, size), size), n_bits)
