"""How many cases the tests draw: few by default, all under `make validity`."""

import os
from collections.abc import Sequence

# Whether this is the long run, which takes hours.
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def choose_seeds(n: int) -> Sequence[int]:
    """Return the seeds 0 to n - 1 in long runs, and otherwise the first fifth, at least three."""
    return range(n if LONG else min(max(n // 5, 3), n))
