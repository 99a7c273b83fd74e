"""Waterfall chart of one explained row: from the base to the prediction, feature by feature."""

from collections.abc import Hashable
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any

import numpy as np

from certree.explain import Explanation
from certree.interface.arrays import Float64
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.formatting import (
    format_four_digits,
    format_percent,
    format_quantity,
    shorten_label,
)
from certree.interface.signatures import validate_arguments
from certree.show.calibration import plot_calibration
from certree.show.style import (
    BLUE,
    GREY,
    INK,
    VERMILLION,
    Figure,
    get_axes,
    set_title,
    use_style,
)

# Most letters of a feature's name and of its value in a label.
_MAX_NAME_LETTERS, _MAX_VALUE_LETTERS = 28, 18


@dataclass(frozen=True, slots=True)
class WaterfallBar:
    """The bar of one feature, or of several features together, in a waterfall chart.

    Parameters
    ----------
    name : str
        The feature and its value, such as "age = 40", or the number of features, such as "5
        others".
    start : float
        Sum of the base (the prediction before any feature contributes) and the contributions of the
        bars before: one end of the bar.
    end : float
        `start` plus the contribution of the feature: the other end.
    """

    name: str
    start: float
    end: float

    @property
    def contribution(self) -> float:
        """What the features of the bar add to the prediction; negative if they lower it.

        It is `end` minus `start`.
        """
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The contributions of features to one output of one row, as bars from base to prediction.

    `create_waterfall` makes it.

    Parameters
    ----------
    base : float
        The output before any feature contributes; equal for all rows.
    bars : tuple of WaterfallBar
        The features, the largest absolute contribution first; the last bar may be the sum of
        several.
    output : hashable
        What is predicted: a class, or the name of the predicted number (a column of the target, or
        a quantile).
    scale : {"probability", "raw score", "target"}
        Unit of base and contributions: probabilities, scores before the link, or units of the
        target.
    """

    base: float
    bars: tuple[WaterfallBar, ...]
    output: Hashable
    scale: str

    @property
    def prediction(self) -> float:
        """The output of the explained row: the base plus the contributions of all features.

        It is in the unit that `scale` names: "probability", "raw score" (before the link) or "target".
        """
        return self.bars[-1].end if self.bars else self.base

    def format_value(self, number: float, sign: str = "") -> str:
        """Return a number of the chart as text, with digits that suit its unit.

        A number in units of the target has four significant digits, or all before the decimal
        point; other numbers have two decimals. number: base, prediction or contribution. sign: "+"
        to write the sign of positive numbers, too; "" to write only minus signs.
        """
        if self.scale == "target":
            return sign * (number > 0) + format_four_digits(number)
        return f"{number:{sign}.2f}"

    @property
    def title(self) -> str:
        """The output and its prediction as text, such as "yes: 70 %" or "Score of yes: 0.85".

        "Score of" is for scores before the link (`scale` "raw score"), such as log odds.
        """
        output = shorten_label(str(self.output))
        if self.scale == "probability":
            return f"{output}: {format_percent(self.prediction)}"
        subject = f"Score of {output}" if self.scale == "raw score" else output
        return f"{subject}: {self.format_value(self.prediction)}"

    @property
    def unit(self) -> str:
        """Label of the axis of contributions, such as "probability of yes" or "score of yes".

        For `scale` "target" it is the name of the predicted number.
        """
        prefixes = {"probability": "probability of ", "raw score": "score of "}
        return f"{prefixes.get(self.scale, '')}{shorten_label(str(self.output))}"


def create_waterfall(
    explanation: Explanation, row: int = 0, output: Any = None, max_features: int = 9
) -> Waterfall:
    """Select the contributions to one output of one explained row, and sum them up bar by bar.

    Parameters
    ----------
    explanation : Explanation
        Contributions of the features to the predictions of one or more rows.
    row : int, default=0
        Index of the row in the explanation; negative numbers count from the last row.
    output : object or None
        The class, or the name of the predicted number, as in `explanation.output_names`. None: the
        second if there are two outputs, else the output with the largest value.
    max_features : int, default=9
        Number of features with a bar of their own; one more bar has the sum of the others.

    Returns
    -------
    Waterfall
        The base, and a bar for each of the features with the largest absolute contributions, in
        descending order. Features that contribute 0 have no bar.

    Raises
    ------
    ValueError
        If there is no such row or output, or `max_features` is below 1.
    """
    if not -len(explanation) <= row < len(explanation):
        raise ValueError(
            f"row must lie in {-len(explanation)} .. {len(explanation) - 1}, as the explanation has "
            f"{len(explanation)} rows, got {row!r}"
        )
    if max_features < 1:
        raise ValueError(f"max_features must be at least 1, got {max_features!r}")
    names = list(explanation.output_names)
    if output is not None and output not in names:
        raise ValueError(f"output must be one of {shortened(names)}, got {output!r}")
    explained = explanation[row]
    k = _choose_output(explained.prediction[0]) if output is None else names.index(output)
    contributions = explained.contributions[0, k]
    order = np.argsort(-np.abs(contributions), kind="stable")
    order = order[contributions[order] != 0]
    labels, amounts, values = [], [], explained.format_values(0)
    for j in order[:max_features]:
        name = shorten_label(str(explained.feature_names[j]), _MAX_NAME_LETTERS)
        labels.append(f"{name} = {shorten_label(values[j], _MAX_VALUE_LETTERS)}")
        amounts.append(contributions[j])
    rest = order[max_features:]
    if len(rest):
        labels.append(format_quantity(len(rest), "other"))
        amounts.append(contributions[rest].sum())
    sums = np.cumsum([explained.base[k], *amounts])
    bars = [
        WaterfallBar(label, float(sums[i]), float(sums[i + 1])) for i, label in enumerate(labels)
    ]
    return Waterfall(float(explained.base[k]), tuple(bars), names[k], explanation.scale)


def _choose_output(prediction: Float64) -> int:
    """Return the index of the output to explain: the second of two, else the largest one.

    If several outputs are the largest, it is the first of them. prediction: the outputs of a row,
    (K,), such as the probabilities or scores of K classes.
    """
    return 1 if len(prediction) == 2 else int(prediction.argmax())


@use_style
@validate_arguments
@copy_descriptions_from(plot_calibration)
def plot_explanation(
    explanation: Explanation,
    row: int = 0,
    output: Any = None,
    max_features: int = 9,
    ax: Any = None,
) -> Figure:
    """Draw the contribution of each feature to the prediction for one row, as a waterfall chart.

    Parameters
    ----------
    explanation : Explanation
        The result of ``model.explain(X)`` or `certree.explain.shapley_values`.
    row : int, default=0
        Index of the row in the explanation.
    output : object or None
        The class, or the name of the predicted number, as in `explanation.output_names`. None: the
        second if there are two outputs, else the output with the largest value.
    max_features : int, default=9
        Number of features with a bar of their own, the largest first; one more bar has the sum of
        the others.
    {ax}

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    ValueError
        If there is no such row or output, or `max_features` is below 1.
    """
    waterfall = create_waterfall(explanation, row, output, max_features)
    ax = get_axes(ax, (7.5, 1.3 + 0.3 * (len(waterfall.bars) + 1)))
    labels = ["base", *(bar.name for bar in waterfall.bars)]
    positions = np.arange(1, len(labels))
    ends = np.array([bar.end for bar in waterfall.bars])
    widths = np.array([bar.contribution for bar in waterfall.bars])
    colours = [VERMILLION if width > 0 else BLUE for width in widths]
    ax.barh(positions, widths, 0.66, left=ends - widths, color=colours)
    ax.plot([waterfall.base] * 2, [-0.33, 0.33], color=INK, lw=2)
    ax.axvline(waterfall.prediction, color=GREY, ls=":", lw=1, zorder=0)
    offset = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8.5}
    ax.annotate(waterfall.format_value(waterfall.base), (waterfall.base, 0), **offset)
    for position, bar in zip(positions, waterfall.bars, strict=True):
        right = max(bar.start, bar.end)
        ax.annotate(waterfall.format_value(bar.contribution, "+"), (right, position), **offset)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.use_sticky_edges = False
    ax.margins(x=0.12)
    ax.set_xlabel(waterfall.unit, parse_math=False)
    set_title(ax, f"{waterfall.title}, {_describe_reason(waterfall)}")
    figure: Figure = ax.figure
    return figure


def _describe_reason(waterfall: Waterfall) -> str:
    """Return the second part of the figure's title, such as "mostly due to age = 40".

    It names the first bar, which has the largest absolute contribution. If there are no bars, it is
    "with no contribution from any feature". waterfall: the contributions of features to the
    prediction.
    """
    if not waterfall.bars:
        return "with no contribution from any feature"
    return f"mostly due to {waterfall.bars[0].name}"
