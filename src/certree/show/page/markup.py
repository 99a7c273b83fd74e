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
    """HTML markup, which is not escaped again."""

    text: str

    def __add__(self, other: "Html") -> "Html":
        return Html(self.text + other.text)


def to_markup(content: Any) -> str:
    """Return the text of `Html` unchanged, anything else as escaped text.

    A space before a percent sign becomes a no-break space.
    """
    if isinstance(content, Html):
        return content.text
    return escape(str(content)).replace(" %", "\N{NO-BREAK SPACE}%")


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """Return an HTML element with content and attributes.

    Attributes of value None are left out. ``class_`` and ``data_x`` become "class" and "data-x".
    """
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{attribute_text}>{''.join(map(to_markup, content))}</{name}>")


def concatenate(elements: Iterable[Html]) -> Html:
    """Return the elements one after the other, as one piece of markup."""
    return Html("".join(element.text for element in elements))


def table(headings: Sequence[Any], rows: Iterable[Sequence[Any]], caption: str = "") -> Html:
    """Return an HTML table whose first column has the headings of its rows.

    A table that is wider than the page scrolls.
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
    """Return content that is hidden until the reader clicks on its summary."""
    return tag("details", tag("summary", summary), content)


def embed_figure(figure: Figure, description: str) -> Html:
    """Return a matplotlib figure as inline SVG; screen readers read its description."""
    file = io.StringIO()
    with import_extra("matplotlib", "plot").rc_context(_SETTINGS):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    label = f'<svg role="img" aria-label="{escape(description)}"'
    return tag("figure", Html(svg.replace("<svg", label, 1)), class_="picture", tabindex="0")


def embed_figures(figures: Iterable[Figure], description: str) -> Html:
    """Return figures side by side, or one below the other on a narrow page."""
    panels = concatenate(embed_figure(figure, description) for figure in figures)
    return tag("div", panels, class_="panels")


def to_script_json(content: Any) -> str:
    """Return JSON for a script element; no text in the content can close the element."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
