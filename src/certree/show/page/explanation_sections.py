"""The sections of the report that explain the predictions for some rows."""

import numpy as np
from numpy.typing import NDArray

from certree.explain import Explanation, shapley_values
from certree.interface.formatting import format_quantity
from certree.show.page.evaluated_model import EvaluatedModel
from certree.show.page.markup import Html, tag
from certree.show.page.section import Section
from certree.show.waterfall import Waterfall, create_waterfall

# Rows that are explained, and features that are named for each.
_N_ROWS, _N_FEATURES = 6, 7
# Rows that are explained by Shapley values, and their background rows.
_N_SHAPLEY_ROWS, _N_BACKGROUND_ROWS = 3, 50


def build_explanation_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section with a waterfall chart for each of at most six rows.

    The charts show the contributions of the features to a prediction, from `model.explain`. The
    rows range from the best to the worst predicted, of the positive class if one is named. None if
    the model has no method `explain`. evaluated: the fitted model, the rows of the report and their
    predictions.
    """
    model = evaluated.model
    if not hasattr(model, "explain"):
        return None
    indices = evaluated.select_examples(_N_ROWS)
    explained = model.explain(evaluated.take_rows(indices), pos_label=evaluated.pos_label)
    charts = _build_waterfalls(evaluated, indices, explained)
    text = (
        "The base is the same for all rows. Each bar is the contribution of one feature; base and "
        "contributions add up exactly to the prediction. Contributions follow the splits on the path "
        f"of the row and are not Shapley values.{evaluated.describe_examples()}"
    )
    return Section("rows", "Explanations of selected rows", tag("p", text) + charts)


def build_shapley_section(evaluated: EvaluatedModel) -> Section | None:
    """Return the report's section with waterfall charts of Shapley values of at most three rows.

    The rows are the best predicted one, and those at the median and the upper quartile of the loss.
    At most 50 random rows of the report are the background, whose values replace those of features
    that count as unknown. None if the predictions are not sums of leaf values of trees. evaluated:
    the fitted model, the rows of the report and their predictions.
    """
    if not evaluated.has_additive_trees:
        return None
    indices = evaluated.select_examples(_N_SHAPLEY_ROWS)
    background = evaluated.sample_indices(_N_BACKGROUND_ROWS)
    values = shapley_values(
        evaluated.model,
        evaluated.take_rows(indices),
        evaluated.take_rows(background),
        pos_label=evaluated.pos_label,
    )
    text = (
        "The Shapley value of a feature is the change of the prediction when the value of the feature "
        "becomes known, averaged over all orders of the features. Unknown values are those of "
        f"{format_quantity(len(background), 'row')} of this page. Shapley values are computed exactly."
        f"{evaluated.describe_examples()}"
    )
    charts = _build_waterfalls(evaluated, indices, values)
    return Section("shapley", "Shapley values of selected rows", tag("p", text) + charts)


def _build_waterfalls(
    evaluated: EvaluatedModel, indices: NDArray[np.intp], explanation: Explanation
) -> Html:
    """Return a waterfall chart as HTML for each explained row, all on one scale.

    Parameters
    ----------
    evaluated : EvaluatedModel
        The model and its rows, which give the headings of the charts.
    indices : ndarray of int, shape (r,)
        Indices of the explained rows in `evaluated`.
    explanation : Explanation
        Contributions of the features to the predictions of these r rows, in this order. Each chart
        shows one output: the positive one of two classes, else the most probable class, or the number.
    """
    waterfalls = [
        create_waterfall(explanation, i, max_features=_N_FEATURES) for i in range(len(indices))
    ]
    ends = [
        end
        for waterfall in waterfalls
        for end in (waterfall.base, *(bar.end for bar in waterfall.bars))
    ]
    low, high = min(ends), max(ends)
    rules = explanation.rules or [None] * len(indices)
    charts = [
        tag(
            "div",
            tag("h3", evaluated.describe_row(i)),
            _build_waterfall(waterfall, low, high),
            *([] if rule is None else [tag("p", f"Rule {rule}")]),
        )
        for i, waterfall, rule in zip(indices.tolist(), waterfalls, rules, strict=True)
    ]
    return tag("div", *charts, class_="panels even")


def _build_waterfall(waterfall: Waterfall, low: float, high: float) -> Html:
    """Return a waterfall chart as an HTML table, with a line and a bar for each feature.

    Parameters
    ----------
    waterfall : Waterfall
        Contributions of the features to the prediction for one row.
    low, high : float
        Values at the left and the right end of the scale.
    """
    width = (high - low) or 1.0

    def bar_element(start: float, end: float, css_class: str) -> Html:
        left = 100 * (min(start, end) - low) / width
        style = f"left:{left:.2f}%;width:{100 * abs(end - start) / width:.2f}%"
        return tag("span", class_=css_class, style=style)

    def table_row(name: str, bar: Html, number: str) -> Html:
        cells = (tag("td", bar, class_="step"), tag("td", number, class_="number"))
        return tag("tr", tag("th", name, scope="row"), *cells)

    def total_row(name: str, value: float) -> Html:
        bar = bar_element(value, value, "whole")
        return table_row(name, bar, waterfall.format_value(value))

    rows = [total_row("base", waterfall.base)]
    for bar in waterfall.bars:
        element = bar_element(bar.start, bar.end, "up" if bar.contribution > 0 else "down")
        rows.append(table_row(bar.name, element, waterfall.format_value(bar.contribution, "+")))
    rows.append(total_row(waterfall.unit, waterfall.prediction))
    return tag("table", tag("tbody", *rows), class_="waterfall")
