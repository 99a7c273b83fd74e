"""The sections that explain some rows."""

import numpy as np
from numpy.typing import NDArray

from certree.explain import Explanation, shapley_values
from certree.interface.formatting import format_quantity
from certree.show.page.judged import Judged
from certree.show.page.markup import Html, tag
from certree.show.page.section import Section
from certree.show.waterfall import Waterfall, waterfall_of

# Rows that are explained, and features that are named of each; rows by Shapley values, and those from
# which features come that are not known.
_ROWS, _STEPS = 6, 7
_SHAPLEY_ROWS, _BACKGROUND = 3, 50


def explained(judged: Judged) -> Section | None:
    """What each feature adds to the prediction of some rows."""
    model = judged.model
    if not hasattr(model, "explain"):
        return None
    chosen = judged.picked(_ROWS)
    shown = _bars_of(judged, chosen, model.explain(judged.rows(chosen)))
    words = (
        "From the base, which is the same for all rows, each feature leads on to the prediction. "
        "The sums are exact; they follow the splits on the way of a row, and are no Shapley values."
    )
    return Section("rows", "Some rows explained", tag("p", words) + shown)


def shapley(judged: Judged) -> Section | None:
    """The Shapley values of some rows."""
    if not judged.adds_up:
        return None
    chosen, background = judged.picked(_SHAPLEY_ROWS), judged.some(_BACKGROUND)
    values = shapley_values(judged.model, judged.rows(chosen), judged.rows(background))
    words = (
        "What knowing a feature changes, averaged over all orders in which features become known; "
        f"others are as in {format_quantity(len(background), 'row')} of this page. "
        "The values are exact."
    )
    shown = tag("p", words) + _bars_of(judged, chosen, values)
    return Section("shapley", "The same rows by Shapley values", shown)


def _bars_of(judged: Judged, chosen: NDArray[np.intp], explanation: Explanation) -> Html:
    """A waterfall for each row, all on one scale."""
    drawn = [waterfall_of(explanation, place, max_features=_STEPS) for place in range(len(chosen))]
    ends = [end for one in drawn for end in (one.base, *(step.end for step in one.steps))]
    scale = min(ends), max(ends)
    titles = map(judged.title_of, chosen.tolist())
    pairs = zip(titles, drawn, strict=True)
    parts = [tag("div", tag("h3", title), _bars(one, *scale)) for title, one in pairs]
    return tag("div", *parts, class_="panels even")


def _bars(drawn: Waterfall, low: float, high: float) -> Html:
    """A waterfall as a table with bars between two ends."""
    width = (high - low) or 1.0

    def bar(start: float, end: float, kind: str) -> Html:
        left = 100 * (min(start, end) - low) / width
        place = f"left:{left:.2f}%;width:{100 * abs(end - start) / width:.2f}%"
        return tag("span", class_=kind, style=place)

    def line(name: str, step: Html, words: str) -> Html:
        cells = (tag("td", step, class_="step"), tag("td", words, class_="number"))
        return tag("tr", tag("th", name, scope="row"), *cells)

    lines = [line("base", bar(drawn.base, drawn.base, "whole"), drawn.said(drawn.base))]
    for step in drawn.steps:
        shown = bar(step.start, step.end, "up" if step.added > 0 else "down")
        lines.append(line(step.name, shown, drawn.said(step.added, "+")))
    end = bar(drawn.prediction, drawn.prediction, "whole")
    lines.append(line(drawn.unit, end, drawn.said(drawn.prediction)))
    return tag("table", tag("tbody", *lines), class_="waterfall")
