"""How many cases the tests draw: few by default, all under `make validity`."""

import itertools
import os
from collections.abc import Sequence
from typing import Any

# Whether this is the long run, which takes hours.
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


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
