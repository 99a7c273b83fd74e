"""Numbers and labels in words, as answers, pictures and pages say them."""

import math
import re
from collections.abc import Iterable, Sequence

# Letters of a label at most.
_LETTERS = 48
# Controls, ends of lines, what turns the direction of text, and halves of letters.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def align_columns(lines: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table: words on the left, numbers behind them."""
    table = [*lines]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]).rstrip()
        for first, *others in table
    ]


def format_count(rows: float) -> str:
    """A number of rows, or their weight."""
    return f"{rows:,.0f}" if float(rows).is_integer() else f"{rows:,.6g}"


def format_bound(bound: float) -> str:
    """A bound in percent; a promise must not become stronger in print."""
    return f"{math.ceil(1000 * bound - 1e-9) / 10:.1f} %"


def format_confidence(delta: float) -> str:
    """The probability with which a promise holds, in percent; it is not rounded up either."""
    return f"{100 * (1 - delta):.10g} %"


def format_percent(share: float) -> str:
    """A share in percent, with a digit after the point only where it would read 0 or 100."""
    whole, finer = f"{100 * share:.0f}", f"{100 * share:.1f}"
    is_near = whole in ("0", "100") and finer not in ("0.0", "100.0")
    return f"{finer if is_near else whole} %"


def format_four_digits(number: float) -> str:
    """A number to at least four digits, without an exponent where it is of everyday size."""
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"


def format_duration(seconds: float) -> str:
    """A time to two or three digits, in the units that people use."""
    if seconds < 99.5:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.3g} s".replace(".0 s", " s")
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def format_file_size(n_bytes: int) -> str:
    """The size of a file, in units of a thousand."""
    size, unit = n_bytes / 1000, "kB"
    if size >= 999.5:
        size, unit = size / 1000, "MB"
    return f"{size:.2g} {unit}" if size < 99.5 else f"{size:,.0f} {unit}"


def format_quantity(number: float, one: str, many: str | None = None) -> str:
    """So many of something, whose plural ends on "s" unless it is given."""
    return f"{format_count(number)} {one if number == 1 else many or one + 's'}"


def escape_controls(line: str) -> str:
    """A line with what steers a terminal, or is no letter, as Python escapes it."""
    return _STEERING.sub(lambda letter: letter[0].encode("unicode_escape").decode(), line)


def shorten_label(label: str, letters: int = _LETTERS) -> str:
    """A label that leaves room for what it names."""
    label = escape_controls(label)
    return label if len(label) <= letters else f"{label[: letters - 3]}..."
