"""Tables for notebooks: HTML without scripts or files, for light pages and dark ones."""

from collections.abc import Sequence
from html import escape

# Orange for more and blue for less, as in pictures. All eyes tell them apart, and half transparent
# they go with any page.
_ABOVE, _BELOW = "rgba(213, 94, 0, 0.7)", "rgba(0, 114, 178, 0.7)"
_BAR_WIDTH = 6.0  # in units of letters, on either side


def make_html_table(
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
    parts = [f"<p>{escape(title)}</p>"] if title else []
    parts.append("<table style='color: inherit'>")
    if head:
        parts.append(f"<thead><tr>{_cells('th', head)}</tr></thead>")
    parts.append("<tbody>")
    for number, line in enumerate(lines):
        bar = "" if bars is None else _bar(bars[number])
        parts.append(f"<tr>{_cells('td', line)}{bar}</tr>")
    return "".join([*parts, "</tbody></table>"])


def _cells(tag: str, words: Sequence[str]) -> str:
    first, *others = map(escape, words)
    left = f"<{tag} style='text-align: left'>{first}</{tag}>"
    style = "text-align: right; white-space: nowrap"
    return left + "".join(f"<{tag} style='{style}'>{one}</{tag}>" for one in others)


def _bar(length: float) -> str:
    left = _BAR_WIDTH * (1 + min(length, 0.0))
    style = (
        f"margin-left: {left:.2f}em; width: {_BAR_WIDTH * abs(length):.2f}em; height: 0.8em; "
        f"background: {_ABOVE if length >= 0 else _BELOW}"
    )
    return f"<td style='min-width: {2 * _BAR_WIDTH}em'><div style='{style}'></div></td>"
