"""How values, sets of them and predictions are written."""

from collections.abc import Sequence
from typing import Any

from certree.interface.formatting import format_count
from certree.rows.columns import is_missing

# So many categories of a set are named.
_SHOWN = 6


def value_in_words(value: Any) -> str:
    """A value of a feature."""
    if is_missing(value):
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def set_in_words(names: Sequence[Any]) -> str:
    """A set of categories, of which the first are named; they differ in any digit."""
    shown = ", ".join(f"{n:.15g}" if isinstance(n, float) else str(n) for n in names[:_SHOWN])
    return f"{{{shown}}}" if len(names) <= _SHOWN else f"{{{shown}, ... ({len(names)})}}"


def prediction_in_words(prediction: Any, probability: float | None, rows: float) -> str:
    """A class with its probability, or a number, and of how many rows it is said."""
    of = "1 row" if rows == 1 else f"{format_count(rows)} rows"
    if probability is None:
        return f"{prediction:.6g} ({of})"
    return f"{prediction} (probability {probability:.2f}, {of})"
