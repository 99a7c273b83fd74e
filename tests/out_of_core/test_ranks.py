"""Sums over ranks are those of all numbers, rounded once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import reference
from certree.out_of_core.exact_sums import exact_sum
from certree.out_of_core.ranks import sum_over_ranks
from rank_threads import Exchange


def add(values_of_ranks):
    """Return what each rank, a thread, computes as the sums of two columns."""
    n_ranks = len(values_of_ranks)
    exchange = Exchange(n_ranks)

    def work(rank):
        totals = [exact_sum(column) for column in values_of_ranks[rank]]
        return sum_over_ranks(totals, exchange.link(rank))

    with ThreadPoolExecutor(n_ranks) as pool:
        return [*pool.map(work, range(n_ranks))]


@pytest.mark.parametrize("n_ranks", [1, 2, 5])
@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-310])
def test_all_ranks_get_the_sum_of_all_numbers(n_ranks, scale):
    rng = np.random.default_rng(n_ranks)
    ranks = [scale * rng.normal(size=(2, size)) for size in rng.integers(0, 40, n_ranks)]
    ranks[-1][0] *= -1e-17  # a sum of large and of tiny numbers of both signs
    expected = [reference.sum_over_ranks([rank[k].tolist() for rank in ranks]) for k in range(2)]
    assert add(ranks) == [expected] * n_ranks


def test_large_numbers_cancel():
    tiny, large = 5e-324, 1.7e308
    ranks = [np.array([[large, tiny], [0.0, -0.0]]), np.array([[-large, tiny], [tiny, tiny]])]
    assert add(ranks) == [[1e-323, 1e-323]] * 2
