"""Which training rows a scorer gets, wherever rows are stored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree.ensembles import scored_sample
from certree.ensembles.scored_sample import (
    compute_key_limits,
    count_classes,
    count_sampled_rows,
    draw_smallest_keys,
    find_sampled_rows,
    merge_samples,
)


@given(
    n=st.integers(1, 90),
    n_scored=st.integers(1, 40),
    n_classes=st.integers(1, 4),
    n_blocks=st.integers(1, 4),
    seed=st.integers(0, 2**31 - 2),
)
def test_blocks_draw_the_rows_of_one_table(n, n_scored, n_classes, n_blocks, seed):
    random = np.random.RandomState(seed)
    keys = random.randint(0, 2**63, n, dtype=np.uint64)
    classes = random.randint(0, n_classes, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scored_sample, "_SCORED_ROWS", n_scored)
        patch.setattr(scored_sample, "_BLOCK_ROWS", 7)
        n_sampled = count_sampled_rows(count_classes(classes.astype(float), n_classes))
        blocks = np.array_split(np.arange(n), n_blocks)
        drawn = [draw_smallest_keys(keys[b], classes[b], seed, n_sampled) for b in blocks]
        limits = compute_key_limits(merge_samples(drawn, n_sampled), n_sampled)
        found = find_sampled_rows(keys, classes, seed, limits)
    expected = reference.draw_scored_rows(keys, classes, seed, n_scored)
    np.testing.assert_array_equal(found, expected)
    assert len(expected) == min(n, n_scored)


def test_rows_of_one_group_are_scored_together(monkeypatch):
    monkeypatch.setattr(scored_sample, "_SCORED_ROWS", 10)
    keys, classes = np.repeat(np.arange(20, dtype=np.uint64), 3), np.zeros(60, dtype=np.intp)
    n_sampled = count_sampled_rows(count_classes(classes, 1))
    limits = compute_key_limits(draw_smallest_keys(keys, classes, 0, n_sampled), n_sampled)
    found = find_sampled_rows(keys, classes, 0, limits)
    assert len(found) == 12
    assert np.isin(np.bincount(keys[found].astype(int)), [0, 3]).all()
