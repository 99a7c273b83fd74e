"""HTML elements of the report. Text from models and tables is escaped here."""

import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from certree.interface.extras import import_extra
from certree.show.style import Figure

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "certree",
    "font.family": ["DejaVu Sans"],
}


@dataclass(frozen=True, slots=True)
class Html:
    """HTML markup that is ready for the page: `tag` and `table` do not escape it again.

    Two pieces are concatenated by ``+``.

    Parameters
    ----------
    text : str
        The markup.
    """

    text: str

    def __add__(self, other: "Html") -> "Html":
        return Html(self.text + other.text)


def to_markup(content: Any) -> str:
    """Return content as the text of HTML markup, a str.

    The text of `Html` is returned unchanged. Anything else is converted to a string and escaped; a
    space before a percent sign becomes a no-break space.
    """
    if isinstance(content, Html):
        return content.text
    return escape(str(content)).replace(" %", "\N{NO-BREAK SPACE}%")


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """Return an HTML element.

    Parameters
    ----------
    name : str
        Name of the element, such as "div".
    *content : Html or object
        What the element contains, in order. `Html` is taken as markup; anything else becomes
        escaped text.
    **attributes : object
        Values of attributes by name, which are escaped. ``class_`` becomes "class", and
        ``aria_label`` "aria-label". An attribute of value None is left out.
    """
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{attribute_text}>{''.join(map(to_markup, content))}</{name}>")


def concatenate(elements: Iterable[Html]) -> Html:
    """Return pieces of markup one after the other, as one piece.

    elements: the pieces in order.
    """
    return Html("".join(element.text for element in elements))


def table(headings: Sequence[Any], rows: Iterable[Sequence[Any]], caption: str = "") -> Html:
    """Return an HTML table, which scrolls if it is wider than the page.

    Parameters
    ----------
    headings : sequence
        Headings of the columns.
    rows : iterable of sequences
        The cells of each line, the first of which is the heading of the line. All but `Html` is
        escaped.
    caption : str, default=""
        Title of the table; "": none.
    """
    head = tag("tr", *(tag("th", heading, scope="col") for heading in headings))
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest))
        for first, *rest in rows
    ]
    title = [tag("caption", caption)] if caption else []
    inner = tag("table", *title, tag("thead", head), tag("tbody", *body))
    # A scrolling element needs a tabindex to be reachable by keyboard.
    return tag(
        "div", inner, class_="wide", tabindex="0", role="region", aria_label=caption or "table"
    )


def collapse(summary: str, content: Html) -> Html:
    """Return an element that shows its summary, and its content once the reader clicks on that.

    summary: text that is always visible. content: markup that is hidden until then.
    """
    return tag("details", tag("summary", summary), content)


def embed_figure(figure: Figure, description: str) -> Html:
    """Return a matplotlib figure as an HTML element with the figure as inline SVG.

    figure: the figure. description: text that screen readers read in its place.
    """
    file = io.StringIO()
    with import_extra("matplotlib", "plot").rc_context(_SETTINGS):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    label = f'<svg role="img" aria-label="{escape(description)}"'
    return tag("figure", Html(svg.replace("<svg", label, 1)), class_="picture", tabindex="0")


def embed_figures(figures: Iterable[Figure], description: str) -> Html:
    """Return matplotlib figures as HTML, side by side, or below each other on a narrow page.

    figures: the figures. description: text that screen readers read in place of each of them.
    """
    panels = concatenate(embed_figure(figure, description) for figure in figures)
    return tag("div", panels, class_="panels")


def to_script_json(content: Any) -> str:
    """Return content as JSON for an HTML script element, which no text in it can close.

    content: dictionaries, lists, strings, finite numbers, booleans and None. The signs < > & and
    two line separators are written as escapes of JSON.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
