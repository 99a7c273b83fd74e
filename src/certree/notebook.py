"""Tables for notebooks: HTML without scripts or files, for light pages and dark ones."""

from collections.abc import Sequence
from html import escape

# Blue and orange are told apart by all eyes; half transparent they go with any page.
_ABOVE, _BELOW = "rgba(0, 114, 178, 0.55)", "rgba(213, 94, 0, 0.55)"
_BAR_WIDTH = 6.0  # in units of letters, on either side


def html_table(
    title: str,
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    bars: Sequence[float] | None = None,
) -> str:
    """Write a table whose first column is words and whose others are numbers.

    Parameters
    ----------
    title : str
        What stands above it.
    head : sequence of str
        Names of the columns; none: the table has no head.
    lines : sequence of sequence of str
        The cells of each line.
    bars : sequence of float, or None
        A bar behind each line, from -1 to 1.

    Returns
    -------
    str
    """
    parts = ["<table>"]
    if title:
        parts.append(f"<caption style='text-align: left'>{escape(title)}</caption>")
    if head:
        names = "".join(f"<th style='text-align: left'>{escape(name)}</th>" for name in head)
        parts.append(f"<thead><tr>{names}</tr></thead>")
    parts.append("<tbody>")
    for number, (first, *others) in enumerate(lines):
        cells = f"<td style='text-align: left'>{escape(first)}</td>"
        cells += "".join(f"<td style='text-align: right'>{escape(one)}</td>" for one in others)
        parts.append(f"<tr>{cells}{'' if bars is None else _bar(bars[number])}</tr>")
    return "".join([*parts, "</tbody></table>"])


def _bar(length: float) -> str:
    left = _BAR_WIDTH * (1 + min(length, 0.0))
    style = (
        f"margin-left: {left:.2f}em; width: {_BAR_WIDTH * abs(length):.2f}em; height: 0.8em; "
        f"background: {_ABOVE if length >= 0 else _BELOW}"
    )
    return f"<td style='min-width: {2 * _BAR_WIDTH}em'><div style='{style}'></div></td>"
