"""How many cases the tests draw: few by default, all under `make validity`.

`make test` runs a sample of the cases of each parametrized test, and `make test-rest` the others.
`make validity` leaves out the tests that would only run once more.
"""

import itertools
import os
from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

# Whether this is the long run, which takes hours.
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
# Largest number of cases of a parametrized test that `make test` runs.
_MAX_CASES = 3


def choose_seeds(n: int) -> Sequence[int]:
    """Return the seeds 0 to n - 1 in long runs, and otherwise the first fifth, at least three."""
    return range(n if LONG else min(max(n // 5, 3), n))


def choose_cases(*values: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
    """Return all combinations in long runs, and otherwise as few as hold each value of each list.

    For ``pytest.mark.parametrize(("a", "b"), choose_cases(values_of_a, values_of_b))``.
    """
    if LONG:
        return [*itertools.product(*values)]
    return [tuple(each[i % len(each)] for each in values) for i in range(max(map(len, values)))]


def split_cases(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split tests of pytest into those of `make test` and those of `make test-rest`.

    The first has three cases of each parametrized test, drawn by a hash of their names, so that other
    tests do not change the draw. Simulations, in the folder validity, and tests with the mark `slow`
    are all in the second.
    """
    cases = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    drawn = set()
    for each in cases.values():
        each.sort(key=lambda item: blake2b(item.nodeid.encode()).digest())
        drawn.update(item.nodeid for item in each[:_MAX_CASES])
    few, others = list[Any](), list[Any]()
    for item in items:
        is_slow = item.get_closest_marker("slow") or item.path.parent.name == "validity"
        (few if item.nodeid in drawn and not is_slow else others).append(item)
    return few, others


def select_drawn(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split tests of pytest into those that draw more cases in long runs, and all others.

    The first are simulations, in the folder validity, tests of Hypothesis, and the tests of files
    that ask this module how much to draw.
    """
    drawn, others = list[Any](), list[Any]()
    for item in items:
        is_drawn = item.path.parent.name == "validity" or hasattr(item.obj, "hypothesis")
        (drawn if is_drawn or _asks_here(item.module) else others).append(item)
    return drawn, others


def _asks_here(module: Any) -> bool:
    """Return whether a module has imported what says how much to draw."""
    here = (LONG, choose_seeds, choose_cases)
    names = ("LONG", "choose_seeds", "choose_cases")
    return any(vars(module).get(name) is one for name, one in zip(names, here, strict=True))
