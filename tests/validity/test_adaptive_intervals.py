"""Simulations of adaptive intervals: long-run coverage under drift, dependence and an adversary.

`make validity` draws each of them more often.
"""

import math

import numpy as np
import pytest

from certree.certificates import AdaptiveIntervals
from run_length import LONG

DRAWS, ROWS = (2000, 1000) if LONG else (10, 1000)


def walk(rng):
    """Noise whose logarithmic size is a random walk."""
    return np.exp(np.cumsum(0.03 * rng.normal(size=ROWS))) * rng.normal(size=ROWS)


def switch(rng):
    """Noise that is ten times as large in every second period of random length."""
    state = np.cumsum(rng.random(ROWS) < 0.01) % 2
    return np.where(state == 1, 10, 1) * rng.normal(size=ROWS)


def jump(rng):
    """Noise that is a hundred times as large from some row on, and persists."""
    noise = rng.normal(size=ROWS)
    for i in range(1, ROWS):
        noise[i] = 0.9 * noise[i - 1] + 0.4 * noise[i]
    return noise * np.where(np.arange(ROWS) < rng.integers(ROWS), 1, 100)


@pytest.mark.parametrize("draw", [walk, switch, jump])
def test_coverage_holds_under_drift(draw):
    for seed in range(DRAWS):
        targets = draw(np.random.default_rng(seed))
        adaptive = AdaptiveIntervals(0.9)
        for target in targets:
            adaptive.update(adaptive.adjust([[-1.0, 1.0]]), [target])
        largest = max(np.abs(targets).max(), 1)
        assert 1 - adaptive.covered <= 0.1 + (math.log(largest) / 0.05 + 0.9) / ROWS + 1e-9
        assert adaptive.covered <= 0.96


def test_an_adversary_who_sees_the_interval_gains_no_more_than_the_constant():
    """Targets stand just outside of the interval whenever that is at most 100 from its centre."""
    adaptive = AdaptiveIntervals(0.9)
    for _ in range(20_000):
        interval = adaptive.adjust([[-1.0, 1.0]])
        adaptive.update(interval, [min(1.001 * interval[0, 1], 100.0)])
    limit = 0.1 + (math.log(100) / 0.05 + 0.9) / 20_000
    assert 0.1 < 1 - adaptive.covered <= limit
