"""Formatting of numbers, labels and tables for text output, pictures and HTML pages."""

import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context

_MAX_LABEL_LENGTH = 48
# Significant digits of bounds in units of the target, which are rounded up.
_LOSS_DIGITS = Context(prec=4, rounding=ROUND_CEILING)
# Control characters, line ends, characters that set the direction of text, and lone surrogates.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def align_columns(lines: Iterable[Sequence[str]]) -> list[str]:
    """Format the lines of a table as text.

    lines: the cells of each line; all lines have the same number of cells. Return one string for
    each line, with the first column left-aligned, the others right-aligned, and two spaces between
    columns.
    """
    table = [*lines]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]).rstrip()
        for first, *others in table
    ]


def format_count(count: float) -> str:
    """Format a number of rows, or their total weight.

    An integer has all digits, with thousands separators, "12,345"; any other number six significant
    digits at most, "0.5". count: the number or weight.
    """
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.6g}"


def format_bound(bound: float) -> str:
    """Format an upper bound, a fraction, in percent: 0.1234 -> "12.4 %".

    The bound is rounded up to a tenth, so that the printed bound holds, too.
    """
    return f"{math.ceil(1000 * bound - 1e-9) / 10:.1f} %"


def format_loss_bound(bound: float) -> str:
    """Format an upper bound on a mean loss in units of the target: 12.34567 -> "12.35".

    The text has four significant digits and is rounded up, so that the printed bound holds, too.
    """
    return f"{float(_LOSS_DIGITS.create_decimal_from_float(bound)):.4g}"


def format_confidence(delta: float) -> str:
    """Format the probability 1 - delta with which a guarantee holds, in percent: 0.05 -> "95 %".

    All digits are shown, up to ten.
    """
    return f"{100 * (1 - delta):.10g} %"


def format_percent(fraction: float) -> str:
    """Format a fraction in percent, as an integer: 0.123 -> "12 %".

    The text has a decimal if it would read 0 or 100 otherwise: 0.002 -> "0.2 %".
    """
    integer, decimal = f"{100 * fraction:.0f}", f"{100 * fraction:.1f}"
    needs_decimal = integer in ("0", "100") and decimal not in ("0.0", "100.0")
    return f"{decimal if needs_decimal else integer} %"


def format_four_digits(number: float) -> str:
    """Format a number with four significant digits: 3.14159 -> "3.142".

    From 1e4 to 1e9 all digits before the decimal point are shown, with thousands separators.
    """
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"


def format_duration(seconds: float) -> str:
    """Format a time in seconds: "0.25 s", "12.3 s", "5 min" or "2 h 5 min"."""
    if seconds < 99.5:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.3g} s".replace(".0 s", " s")
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def format_file_size(n_bytes: int) -> str:
    """Format a number of bytes in kB, or in MB from 1 MB on (units of 1000): "12 kB", "3.5 MB"."""
    size, unit = n_bytes / 1000, "kB"
    if size >= 999.5:
        size, unit = size / 1000, "MB"
    return f"{size:.2g} {unit}" if size < 99.5 else f"{size:,.0f} {unit}"


def format_quantity(number: float, singular: str, plural: str | None = None) -> str:
    """Format a number with its noun: "1 row", "3 rows".

    singular, plural: the two forms of the noun; without a plural, "s" is appended to the singular.
    """
    return f"{format_count(number)} {singular if number == 1 else plural or singular + 's'}"


def format_row_total(total: float, noun: str = "row") -> str:
    """Format the number of rows of a node, "3 rows", or their total weight, "rows of weight 2.5".

    A total that is no integer is a weight. noun: the word for a row, such as "training row".
    """
    if float(total).is_integer():
        return format_quantity(total, noun)
    return f"{noun}s of weight {format_four_digits(total)}"


def escape_controls(text: str) -> str:
    """Replace control characters and lone surrogates of a text by Python's escapes for them."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def shorten_label(label: str, max_length: int = _MAX_LABEL_LENGTH) -> str:
    """Return a label with control characters escaped, and at most `max_length` characters long.

    A longer label is truncated, and ends with "...". max_length: 48 by default.
    """
    label = escape_controls(label)
    return label if len(label) <= max_length else f"{label[: max_length - 3]}..."
