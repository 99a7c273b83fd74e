"""Cases with planted faults, for the test of the workers; it imports little, as workers start anew."""

import os
import time
from collections.abc import Sequence


def planted(number: int, kinds: Sequence[str]) -> str | None:
    """Crash in case 3, hang in case 5, and find something in case 6.

    number: that of the case; kinds: ignored. Return what was found, or None.
    """
    if number == 3:
        os.abort()
    if number == 5:
        time.sleep(100)
    return "found" if number == 6 else None
