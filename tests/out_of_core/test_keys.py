"""Rows of parts have the keys that they have in one table."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from certree.out_of_core.executors import sum_results
from certree.out_of_core.fit_hashes import merge_fit_hashes
from certree.out_of_core.keys import count_repeated_rows, set_keys
from certree.out_of_core.memory_limit import BlockSizes
from certree.out_of_core.row_block import RowBlock
from certree.rows.hashes import compute_keys, count_equal_rows, merge_hashes, mix
from certree.rows.repeat_counts import RepeatCounts
from same_models import assert_same


class FakeExecutor:
    """Blocks in a list."""

    def __init__(self, hashes):
        codes, none = np.zeros((1, 0), np.uint8), np.zeros(0)
        self.all = [RowBlock(i, codes, none, None, one) for i, one in enumerate(hashes)]
        self.told, self.block_sizes = [], BlockSizes()

    @property
    def n_blocks(self):
        return len(self.all)

    def expect_within_limit(self):
        """There is none."""

    def reduce(self, f, *given):
        told = [f(block, *given) for block in self.all]
        self.told += told
        return sum_results(told)

    def replace_blocks(self, f, *given, per_block=None):
        each = [()] * self.n_blocks if per_block is None else [(one,) for one in per_block]
        self.all = [f(block, *given, *one)[0] for block, one in zip(self.all, each, strict=True)]


@given(
    st.lists(st.integers(0, 12), max_size=60),
    st.lists(st.integers(0, 60), max_size=5),
    st.sampled_from([3, 2**22]),
)
def test_however_rows_are_divided(contents, ends, compared_rows):
    hashes = mix(np.array(contents, dtype=np.uint64))
    parts = FakeExecutor(np.split(hashes, sorted(min(one, len(hashes)) for one in ends)))
    parts.block_sizes = BlockSizes(compared_rows=compared_rows)
    n_repeated = count_equal_rows(hashes)
    assert count_repeated_rows(parts, len(hashes)) == n_repeated
    assert set_keys(parts, len(hashes)) == n_repeated
    found = np.concatenate([block.keys for block in parts.all])
    expected = compute_keys(hashes.copy())
    # Of equal rows it does not matter which one has which key.
    order = np.lexsort((found, hashes)), np.lexsort((expected, hashes))
    assert (found[order[0]] == expected[order[1]]).all()


def test_hashes_that_no_other_part_can_have_are_not_told():
    hashes = [mix(np.arange(first, first + 1000, dtype=np.uint64)) for first in (0, 5000)]
    hashes[0][-1] = hashes[1][-1]
    parts = FakeExecutor(hashes)
    set_keys(parts, 2000)
    told = [len(one[0].hashes) for one in parts.told if isinstance(one, list)]
    assert sum(told) >= 2
    assert sum(told) < 1200


HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=20)


@given(st.lists(HASHES, min_size=1, max_size=4), HASHES)
def test_hashes_of_a_fit(given_hashes, others):
    known = [np.sort(np.array(one, dtype=np.uint64)) for one in given_hashes]
    parts = FakeExecutor([one[:0] for one in known])
    parts.all = [replace(p, fit_hashes=one) for p, one in zip(parts.all, known, strict=True)]
    n = sum(map(len, known))
    if not n:
        return
    hashes, counts = merge_fit_hashes(parts, n)
    assert (hashes == merge_hashes(*known)).all()
    assert_same(counts, RepeatCounts.count(np.sort(np.concatenate(known)), counts.tables), "counts")
    assert not any(len(block.fit_hashes) for block in parts.all)
    # Those of other rows are put among them.
    parts.all = [replace(p, fit_hashes=one) for p, one in zip(parts.all, known, strict=True)]
    beside = np.sort(np.concatenate([known[0], np.array(others, dtype=np.uint64)]))
    before = np.unique(beside), RepeatCounts.count(beside)
    hashes, counts = merge_fit_hashes(parts, n, before)
    assert (hashes == merge_hashes(*known, beside)).all()
    together = np.sort(np.concatenate([*known, beside]))
    assert_same(counts, RepeatCounts.count(together, counts.tables), "counts")
