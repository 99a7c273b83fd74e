"""Formatting of feature values, category sets and predictions as text."""

from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from certree.rows.calendar_parts import DateFormat
from certree.rows.columns import is_missing

_MAX_CATEGORIES_SHOWN = 6


def format_value(value: Any, parts: str = "") -> str:
    """Format one feature value as text: floats to six digits; NaN and None become "missing".

    Dates are in ISO format, with a time unless it is midnight; time spans are in days. parts: the
    calendar parts of a date, such as "Thu", which follow it in parentheses; "": there are none.
    """
    if parts:
        return f"{format_value(value)} ({parts})"
    if is_missing(value):
        return "missing"
    if isinstance(value, timedelta):
        return f"{value / timedelta(days=1):.6g} days"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def format_threshold(threshold: float, dates: Mapping[int, DateFormat] | None, feature: int) -> str:
    """Format a threshold of a split as text: to six digits, or as a date.

    dates: the features that hold dates, by index; None: there are none. feature: index of the
    feature.
    """
    if dates and feature in dates:
        return dates[feature].format(threshold)
    return f"{threshold:.6g}"


def format_categories(names: Sequence[Any]) -> str:
    """Format names of categories as "{a, b}".

    If there are more than six, show the first six and the number of all: "{a, ..., f, ... (9)}".
    """
    # All 15 digits, as categories that are numbers may differ in any of them.
    shown = ", ".join(
        f"{n:.15g}" if isinstance(n, float) else str(n) for n in names[:_MAX_CATEGORIES_SHOWN]
    )
    if len(names) <= _MAX_CATEGORIES_SHOWN:
        return f"{{{shown}}}"
    return f"{{{shown}, ... ({len(names)})}}"


def format_prediction(
    prediction: Any, probability: float | None, rows: str, pos_label: Any = None
) -> str:
    """Format a prediction and the numbers of rows behind it.

    prediction: a class, or a number if `probability` is None; probability: that of the class, or of
    `pos_label` if that is not None; rows: numbers of rows as text. Examples are "cat (probability
    0.91, 12 rows)", "cat (probability of dog 0.09, 12 rows)", and "3.25 (12 rows)".
    """
    if probability is None:
        return f"{prediction:.6g} ({rows})"
    whose = "" if pos_label is None else f" of {pos_label}"
    return f"{prediction} (probability{whose} {probability:.2f}, {rows})"
