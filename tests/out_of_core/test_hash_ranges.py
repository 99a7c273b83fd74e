"""Ranges of hashes are disjoint, and together have all hashes."""

from itertools import pairwise

import numpy as np
import pytest

from certree.out_of_core.hash_ranges import (
    count_hash_ranges,
    find_hash_ranges,
    iterate_hash_intervals,
)
from certree.out_of_core.memory_limit import BlockSizes


@pytest.mark.parametrize(("n", "compared_rows", "expected"), [(0, 5, 1), (5, 5, 1), (11, 5, 3)])
def test_ranges_have_the_planned_size(n, compared_rows, expected):
    assert count_hash_ranges(n, BlockSizes(compared_rows=compared_rows)) == expected


@pytest.mark.parametrize("n_ranges", [1, 2, 7])
def test_each_hash_is_in_one_range(n_ranges):
    hashes = np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64, endpoint=False)
    hashes[:2] = 0, 2**64 - 1
    assert find_hash_ranges(hashes, n_ranges).tolist() == [int(h) % n_ranges for h in hashes]
    intervals = [*iterate_hash_intervals(n_ranges)]
    assert intervals[0][0] == 0
    assert intervals[-1][1] == 2**64 - 1
    assert all(a[1] + 1 == b[0] for a, b in pairwise(intervals))
    sizes = [last - first for first, last in intervals]
    assert max(sizes) - min(sizes) <= 1
