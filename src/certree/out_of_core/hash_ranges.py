"""Divide hashes into ranges, so that blocks exchange the hashes of one range at a time.

There are two divisions. *Remainders* need no order: a hash belongs to the range of its remainder after
division by the number of ranges. *Intervals* ascend, for hashes that are merged in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import UInt64
from certree.out_of_core.memory_limit import BlockSizes


def count_hash_ranges(n: int, block_sizes: BlockSizes) -> int:
    """Return the number of ranges into which n hashes are divided, at least 1.

    Each range gets about `block_sizes.compared_rows` hashes.
    """
    return max(1, -(-n // block_sizes.compared_rows))


def find_hash_ranges(hashes: UInt64, n_ranges: int) -> NDArray[np.intp]:
    """Return the number 0 .. n_ranges - 1 of each hash's range: its remainder modulo `n_ranges`.

    hashes: uint64, (n,). Return (n,).
    """
    return (hashes % np.uint64(n_ranges)).astype(np.intp)


def iterate_hash_intervals(n_ranges: int) -> Iterator[tuple[int, int]]:
    """Divide all uint64 hashes into `n_ranges` intervals of equal length, in ascending order.

    Yield the smallest and the largest hash of each interval.
    """
    for first, end in pairwise((i << 64) // n_ranges for i in range(n_ranges + 1)):
        yield first, end - 1
