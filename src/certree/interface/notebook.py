"""HTML tables for notebooks, without scripts or files, for light and dark pages."""

from collections.abc import Sequence
from html import escape

# Orange for positive and blue for negative bars, as in pictures. The colours are distinct for
# colour-blind readers, and transparent enough for light and dark pages.
_ABOVE, _BELOW = "rgba(213, 94, 0, 0.7)", "rgba(0, 114, 178, 0.7)"
_BAR_WIDTH = 6.0  # em, on either side


def make_html_table(
    title: str,
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    bars: Sequence[float] | None = None,
) -> str:
    """Make an HTML table for notebooks; its first column is left-aligned, the others right-aligned.

    Parameters
    ----------
    title : str
        Text above the table; none if it is empty.
    head : sequence of str
        Names of the columns; the table has no head if it is empty.
    lines : sequence of sequence of str
        The text of the cells of each line; markup in it is escaped.
    bars : sequence of float, or None
        Length of a bar at the end of each line, from -1 (left) to 1 (right); None: no bars.

    Returns
    -------
    str
        The HTML code.
    """
    parts = [f"<p>{escape(title)}</p>"] if title else []
    parts.append("<table style='color: inherit'>")
    if head:
        parts.append(f"<thead><tr>{_make_cells('th', head)}</tr></thead>")
    parts.append("<tbody>")
    for number, line in enumerate(lines):
        bar = "" if bars is None else _make_bar(bars[number])
        parts.append(f"<tr>{_make_cells('td', line)}{bar}</tr>")
    return "".join([*parts, "</tbody></table>"])


def _make_cells(tag: str, texts: Sequence[str]) -> str:
    """Return the HTML code of the cells of a line: the first left-aligned, the others right-aligned.

    tag: "td" or "th"; texts: their text, which is escaped.
    """
    first, *others = map(escape, texts)
    left = f"<{tag} style='text-align: left'>{first}</{tag}>"
    style = "text-align: right; white-space: nowrap"
    return left + "".join(f"<{tag} style='{style}'>{text}</{tag}>" for text in others)


def _make_bar(length: float) -> str:
    """Return the HTML code of a cell with a bar of a length from -1 to 1.

    Bars start in the middle of the cell. Negative ones go to the left and are blue, positive ones
    go to the right and are orange; -1 and 1 reach the edge.
    """
    left = _BAR_WIDTH * (1 + min(length, 0.0))
    style = (
        f"margin-left: {left:.2f}em; width: {_BAR_WIDTH * abs(length):.2f}em; height: 0.8em; "
        f"background: {_ABOVE if length >= 0 else _BELOW}"
    )
    return f"<td style='min-width: {2 * _BAR_WIDTH}em'><div style='{style}'></div></td>"
