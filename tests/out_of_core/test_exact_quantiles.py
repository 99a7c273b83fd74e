"""Order statistics of parts are those of all numbers."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from certree.out_of_core.exact_quantiles import count_prefixes, find_order_statistics
from certree.out_of_core.executors import sum_results

NUMBERS = st.floats(width=64, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324])


class FakeExecutor:
    """Blocks of numbers, with the number of passes over them."""

    def __init__(self, values, places):
        ends = [0, *sorted(places), len(values)]
        self.parts = [SimpleNamespace(y=values[a:b]) for a, b in pairwise(ends)]
        self.n_passes = 0

    def reduce(self, f, *given):
        self.n_passes += 1
        return sum_results(f(block, *given) for block in self.parts)


def scaled(block, factor):
    return block.y * factor


@given(
    values=arrays.arrays(np.float64, st.integers(1, 40), elements=NUMBERS),
    places=st.lists(st.integers(0, 40), max_size=4),
    ranks=st.lists(st.floats(0, 1), min_size=1, max_size=3),
    has_first=st.booleans(),
)
def test_numbers_of_ranks_are_those_in_order(values, places, ranks, has_first):
    parts = FakeExecutor(values, places)
    ranks = [min(int(one * len(values)), len(values) - 1) for one in ranks]
    first = parts.reduce(count_prefixes, scaled, (-1.0,)) if has_first else None
    found = find_order_statistics(parts, ranks, scaled, -1.0, first_counts=first)
    expected = np.sort(-values + 0.0)[ranks] + 0.0
    assert found.tobytes() == expected.tobytes()
    assert parts.n_passes == 3


@given(
    values=arrays.arrays(np.float64, 30, elements=st.floats(-2, 2).map(lambda x: round(x, 1))),
    weight=arrays.arrays(np.int64, 30, elements=st.integers(0, 4)),
    places=st.lists(st.integers(0, 30), max_size=4),
    share=st.floats(0, 1),
    has_first=st.booleans(),
)
def test_numbers_that_weigh_more_have_more_ranks(values, weight, places, share, has_first):
    weight[7] = 1
    parts = FakeExecutor(values, places)
    for block, own in zip(parts.parts, FakeExecutor(weight, places).parts, strict=True):
        block.weight = own.y / 8
    copies = np.sort(np.repeat(values, weight))
    rank = min(int(share * len(copies)), len(copies) - 1)
    first = parts.reduce(count_prefixes, scaled, (1.0,), -3) if has_first else None
    found = find_order_statistics(parts, [rank], scaled, 1.0, first_counts=first, unit=-3)
    assert found == copies[rank]
    assert parts.n_passes == 3


def test_counts_of_many_numbers_are_few():
    values = np.random.RandomState(0).normal(size=100_000)
    found = count_prefixes(SimpleNamespace(y=values), scaled, (1.0,))
    assert found.counts.sum() == len(values)
    assert len(found.prefixes) < 20_000
