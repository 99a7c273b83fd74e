"""Boundaries of times in blocks are those of the times of one table."""

import re
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree.out_of_core.executors import sum_results
from certree.out_of_core.time_cut import assign_by_time, has_order
from certree.rows.time_order import EARLIER, LATEST, RowTimes


class FakeExecutor:
    """Blocks of times, and of groups, which are numbered within each block."""

    def __init__(self, times, groups, places):
        ends, self.names, self.blocks = [0, *sorted(places), len(times)], [], []
        for number, (a, b) in enumerate(pairwise(ends)):
            names, group = None, None
            if groups is not None:
                names, group = np.unique(groups[a:b], return_inverse=True)
            self.names.append(names)
            block = {"number": number, "time": np.array(times[a:b], dtype=float), "group": group}
            self.blocks.append(SimpleNamespace(**block))

    def reduce(self, f, *arguments):
        return sum_results(f(block, *arguments) for block in self.blocks)

    def replace_blocks(self, _, per_block):
        """Assign the rows of each block to the sets of their groups."""
        pairs = zip(self.blocks, per_block, strict=True)
        return [(block.number, assigned[block.group]) for block, (_, assigned) in pairs]

    def expect_within_limit(self):
        pass


@given(st.data())
def test_sets_are_those_that_loops_find(data):
    n = data.draw(st.integers(2, 14))
    times = data.draw(st.lists(st.integers(0, 6), min_size=n, max_size=n))
    groups = data.draw(st.none() | st.lists(st.integers(0, 5), min_size=n, max_size=n))
    places = data.draw(st.lists(st.integers(0, n), max_size=3))
    gap, size = data.draw(st.integers(0, 4)), data.draw(st.integers(1, n) | st.floats(0.01, 0.99))
    # Blocks have the time of the latest row of each group.
    known = None if groups is None else np.array(groups)
    of_rows = RowTimes(np.array(times, dtype=float))._find_unit_times(known)[0]
    executor = FakeExecutor(of_rows, groups, places)
    assert has_order(executor) == RowTimes(of_rows).has_order(known)
    if not has_order(executor):
        with pytest.raises(ValueError, match="at least two different values"):
            assign_by_time(executor, executor.names, size, gap)
        return
    n_units = n if groups is None else len(set(groups))
    n_latest = size if isinstance(size, int) else max(1, round(size * n_units))
    is_earlier, is_latest = reference.split_latest(times, groups, n_latest, gap)
    if not any(is_earlier):
        with pytest.raises(ValueError, match="leaves no training rows before the"):
            assign_by_time(executor, executor.names, size, gap)
        return
    sets = np.concatenate(assign_by_time(executor, executor.names, size, gap))
    assert (sets == EARLIER).tolist() == is_earlier
    assert (sets == LATEST).tolist() == is_latest


@given(st.data())
def test_spans_of_time_are_left_out_as_in_one_table(data):
    n = data.draw(st.integers(2, 14))
    times = np.array(data.draw(st.lists(st.floats(0, 3), min_size=n, max_size=n)))
    groups = data.draw(st.none() | st.lists(st.integers(0, 5), min_size=n, max_size=n))
    known, gap = (
        None if groups is None else np.array(groups),
        timedelta(days=data.draw(st.floats(0, 1))),
    )
    row_times = RowTimes(times, gap=gap)
    of_rows = row_times._find_unit_times(known)[0]
    executor = FakeExecutor(of_rows, groups, data.draw(st.lists(st.integers(0, n), max_size=3)))
    n_units = n if groups is None else len(set(groups))
    try:
        is_earlier, is_latest = row_times.split_latest(max(1, round(0.3 * n_units)), known)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            assign_by_time(executor, executor.names, 0.3, gap)
        return
    sets = np.concatenate(assign_by_time(executor, executor.names, 0.3, gap))
    assert (sets == EARLIER).tolist() == is_earlier.tolist()
    assert (sets == LATEST).tolist() == is_latest.tolist()
