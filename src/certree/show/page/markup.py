"""HTML of a page: everything that comes from a model or a table is escaped here."""

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
    """Text that is markup already."""

    text: str

    def __add__(self, other: "Html") -> "Html":
        return Html(self.text + other.text)


def text_of(content: Any) -> str:
    """Markup as it is, everything else escaped; no line ends between a number and its unit."""
    if isinstance(content, Html):
        return content.text
    return escape(str(content)).replace(" %", "\N{NO-BREAK SPACE}%")


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """An element; ``class_`` and ``data_x`` are the attributes "class" and "data-x"."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{''.join(map(text_of, content))}</{name}>")


def joined(parts: Iterable[Html]) -> Html:
    """Elements one behind the other."""
    return Html("".join(part.text for part in parts))


def table(head: Sequence[Any], lines: Iterable[Sequence[Any]], caption: str = "") -> Html:
    """A table whose first column names the lines; it scrolls where it is too wide."""
    titles = tag("tr", *(tag("th", title, scope="col") for title in head))
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest))
        for first, *rest in lines
    ]
    title = [tag("caption", caption)] if caption else []
    inner = tag("table", *title, tag("thead", titles), tag("tbody", *body))
    # What scrolls must be reached by keyboard.
    return tag(
        "div", inner, class_="wide", tabindex="0", role="region", aria_label=caption or "table"
    )


def folded(summary: str, content: Html) -> Html:
    """What opens by a click on its summary."""
    return tag("details", tag("summary", summary), content)


def picture(figure: Figure, words: str) -> Html:
    """A figure as an inline SVG, and its words for who does not see it."""
    file = io.StringIO()
    with import_extra("matplotlib", "plot").rc_context(_SETTINGS):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    label = f'<svg role="img" aria-label="{escape(words)}"'
    return tag("figure", Html(svg.replace("<svg", label, 1)), class_="picture", tabindex="0")


def pictures(figures: Iterable[Figure], words: str) -> Html:
    """Figures beside each other, or below each other where the page is narrow."""
    return tag("div", joined(picture(figure, words) for figure in figures), class_="panels")


def data_of(content: Any) -> str:
    """JSON that no text in it can end or leave."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
