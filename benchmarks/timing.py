"""Measure times: certree and another library take turns in one process, and medians count.

Taking turns (A, B, A, B, ...) exposes both to the same load of the machine.
"""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

Clock = Callable[[], float]
Run = Callable[[], object]


def measure_seconds(run: Run, clock: Clock = time.perf_counter) -> float:
    """Return the seconds of one run, by default of wall time."""
    start = clock()
    run()
    return clock() - start


def measure_median(run: Run, repeats: int, clock: Clock = time.perf_counter) -> float:
    """Return the median seconds of several runs after one run that does not count."""
    run()
    return statistics.median(measure_seconds(run, clock) for _ in range(repeats))


def measure_in_turn(
    ours: Run, peer: Run, repeats: int, clock: Clock = time.perf_counter
) -> tuple[float, float]:
    """Return the median seconds of two functions that take turns, after one run of each."""
    ours(), peer()
    pairs = [(measure_seconds(ours, clock), measure_seconds(peer, clock)) for _ in range(repeats)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def run_in_new_process(run: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a function that runs in a new Python process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run, *args).result()
