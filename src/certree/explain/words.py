"""How values, sets and numbers are written."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

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


def aligned(lines: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table: words on the left, numbers behind them."""
    table = [*lines]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]).rstrip()
        for first, *others in table
    ]


def number_in_words(rows: float) -> str:
    """A number of rows, or their weight."""
    return f"{rows:,.0f}" if float(rows).is_integer() else f"{rows:,.6g}"


def rounded_up(bound: float) -> str:
    """A bound in percent; a promise must not become stronger in print."""
    return f"{math.ceil(1000 * bound - 1e-9) / 10:.1f} %"


def surely(delta: float) -> str:
    """The probability with which a promise holds, in percent; it is not rounded up either."""
    return f"{100 * (1 - delta):.10g} %"


def prediction_in_words(prediction: Any, probability: float | None, rows: float) -> str:
    """A class with its probability, or a number, and of how many rows it is said."""
    of = "1 row" if rows == 1 else f"{number_in_words(rows)} rows"
    if probability is None:
        return f"{prediction:.6g} ({of})"
    return f"{prediction} (probability {probability:.2f}, {of})"
