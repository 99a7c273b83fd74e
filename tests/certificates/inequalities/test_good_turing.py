"""How many rows of a fit new rows match."""

import numpy as np
import pytest
from scipy.stats import beta

from certree.certificates.inequalities.good_turing import bound_matches, estimate_matches


def literal(n, n_once, n_twice, n_new, level):
    """The same by a beta distribution of this mean and variance, found by counting up."""
    p = 1 - n_once / (n + 2)
    of_fit = (n_once * (1 - n_once / (n + 2)) + 2 * (n_twice + 1)) / (n + 2) ** 2
    variance = of_fit + p * (1 - p) / n_new
    if n_once == 0 or variance >= p * (1 - p):
        return n_new
    a = p * (p * (1 - p) / variance - 1)
    b = (1 - p) * (p * (1 - p) / variance - 1)
    most = 0
    while most < n_new and beta.sf((most + 0.5) / n_new, a, b) > level:
        most += 1
    return most


@pytest.mark.parametrize("level", [1e-6, 0.01])
def test_quantiles_are_those_of_the_literal_twin(level):
    rng = np.random.default_rng(0)
    for _ in range(60):
        counts = rng.multinomial(rng.integers(2, 80), rng.dirichlet(np.full(60, 0.5)))
        n, once, twice = int(counts.sum()), int((counts == 1).sum()), int((counts == 2).sum())
        n_new = int(rng.integers(1, 90))
        expected = literal(n, once, twice, n_new, level)
        assert bound_matches(n, once, twice, n_new, level=level) == expected


def test_ends():
    assert estimate_matches(100, 80, 50) == pytest.approx(10)
    # All rows of few bits match; a fit whose rows all differ may be matched by a few.
    assert bound_matches(1000, 0, 3, 200) == 200
    assert bound_matches(1000, 1000, 0, 1000) < 50
    assert bound_matches(1000, 1000, 0, 0) == 0
    assert bound_matches(1, 1, 0, 5) == 5
