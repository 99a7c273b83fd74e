"""Rows that occur more than once, by simulation: what is refused and what is certified."""

import os

import numpy as np
import pytest
from scipy.stats import binom

from certree.certificates.inequalities.good_turing import most_matches

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
DRAWS = 2000 if LONG else 60

SOURCES = {
    "bits": lambda rng, n: rng.integers(0, 8, n),
    "values": lambda rng, n: rng.integers(0, 1000, n),
    "rare repeats": lambda rng, n: rng.integers(0, 10**6, n),
    "continuous": lambda rng, n: rng.integers(0, 2**62, n),
    "power law": lambda rng, n: rng.zipf(1.6, n),
    "geometric": lambda rng, n: rng.geometric(0.01, n),
    "mixed": lambda rng, n: np.where(rng.random(n) < 0.2, 0, rng.integers(1, 2**62, n)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("n", "n_new"), [(60, 60), (500, 100), (1000, 3000)])
def test_new_rows_of_the_source_of_a_fit_match_no_more_than_is_plausible(source, n, n_new):
    rng, draw = np.random.default_rng(n), SOURCES[source]
    refused = above = 0
    for _ in range(DRAWS):
        rows, often = np.unique(draw(rng, n), return_counts=True)
        counts = n, int((often == 1).sum()), int((often == 2).sum()), n_new
        matches = int(np.isin(draw(rng, n_new), rows).sum())
        refused += matches > most_matches(*counts)
        above += matches > most_matches(*counts, level=0.01)
    # A beta distribution is an approximation: of a hundredth it misses up to two.
    assert above <= binom.ppf(0.999, DRAWS, 0.02)
    assert refused <= binom.ppf(0.999, DRAWS, 1e-4)
