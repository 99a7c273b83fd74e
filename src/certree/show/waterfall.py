"""One explained row as a waterfall: from the base to the prediction, feature by feature."""

from collections.abc import Hashable
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any

import numpy as np

from certree.explain import Explanation
from certree.explain.value_formatting import format_value
from certree.interface.arrays import Float64
from certree.interface.formatting import (
    format_four_digits,
    format_percent,
    format_quantity,
    shorten_label,
)
from certree.interface.signatures import validate_arguments
from certree.show.style import BLUE, GREY, INK, VERMILLION, Figure, axes_of, styled, titled

# Letters of a feature's name and of its value at most, so that both are seen.
_NAME, _VALUE = 28, 18


@dataclass(frozen=True, slots=True)
class Step:
    """What one feature adds.

    Parameters
    ----------
    name : str
        The feature and its value.
    start, end : float
        The sum before it and with it.
    """

    name: str
    start: float
    end: float

    @property
    def added(self) -> float:
        """What it adds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The sum that makes up one output of one row.

    Parameters
    ----------
    base : float
        Where it begins.
    steps : tuple of Step
        The features, the largest first, and last all others together.
    output : hashable
        What is predicted: a class, or the name of a number.
    scale : {"probability", "raw score", "target"}
        What is added up.
    """

    base: float
    steps: tuple[Step, ...]
    output: Hashable
    scale: str

    @property
    def prediction(self) -> float:
        """Where it ends."""
        return self.steps[-1].end if self.steps else self.base

    def said(self, number: float, sign: str = "") -> str:
        """A number on the scale."""
        if self.scale == "target":
            return sign * (number > 0) + format_four_digits(number)
        return f"{number:{sign}.2f}"

    @property
    def title(self) -> str:
        """What is predicted."""
        output = shorten_label(str(self.output))
        if self.scale == "probability":
            return f"{output}: {format_percent(self.prediction)}"
        subject = f"Score of {output}" if self.scale == "raw score" else output
        return f"{subject}: {self.said(self.prediction)}"

    @property
    def unit(self) -> str:
        """What the axis counts."""
        words = {"probability": "probability of ", "raw score": "score of "}
        return f"{words.get(self.scale, '')}{shorten_label(str(self.output))}"


def waterfall_of(
    explanation: Explanation, row: int = 0, output: Any = None, max_features: int = 9
) -> Waterfall:
    """Add up what features say of one output of one row.

    Parameters
    ----------
    explanation : Explanation
        Of some rows.
    row : int
        Which of them.
    output : object or None
        The class, or the name of the number; None: the second of two classes, which the colours of
        trees mean, too, or the one of more that is predicted.
    max_features : int
        So many features are named, the rest is one step.

    Returns
    -------
    Waterfall

    Raises
    ------
    ValueError
        If there is no such row or output, or `max_features` is below 1.
    """
    if not -len(explanation) <= row < len(explanation):
        raise ValueError(f"row must be one of {len(explanation)} rows, got {row!r}")
    if max_features < 1:
        raise ValueError(f"max_features must be at least 1, got {max_features!r}")
    names = list(explanation.output_names)
    if output is not None and output not in names:
        raise ValueError(f"output must be one of {shortened(names)}, got {output!r}")
    one = explanation[row]
    k = _subject(one.prediction[0]) if output is None else names.index(output)
    added = one.contributions[0, k]
    order = np.argsort(-np.abs(added), kind="stable")
    order = order[added[order] != 0]
    values = [format_value(value) for value in one.values[0].tolist()]
    parts = [
        (
            f"{shorten_label(str(one.feature_names[j]), _NAME)} = {shorten_label(values[j], _VALUE)}",
            added[j],
        )
        for j in order[:max_features]
    ]
    rest = order[max_features:]
    if len(rest):
        parts.append((format_quantity(len(rest), "other"), added[rest].sum()))
    sums = np.cumsum([one.base[k], *(part for _, part in parts)])
    steps = [Step(name, float(sums[i]), float(sums[i + 1])) for i, (name, _) in enumerate(parts)]
    return Waterfall(float(one.base[k]), tuple(steps), names[k], explanation.scale)


def _subject(prediction: Float64) -> int:
    """What is explained: of two classes the second, as colours of trees do, else the likeliest."""
    return 1 if len(prediction) == 2 else int(prediction.argmax())


@styled
@validate_arguments
def plot_explanation(
    explanation: Explanation,
    row: int = 0,
    output: Any = None,
    max_features: int = 9,
    ax: Any = None,
) -> Figure:
    """Draw what each feature of a row adds to its prediction, as a waterfall.

    Parameters
    ----------
    explanation : Explanation
        What ``model.explain(X)`` says.
    row : int, default=0
        Which of its rows.
    output : object or None
        The class, or the name of the number; None: the second of two classes, which the colours of
        trees mean, too, or the one of more that is predicted.
    max_features : int, default=9
        So many features are named, the largest first; the rest is one bar.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError
        If there is no such row or output, or `max_features` is below 1.
    """
    drawn = waterfall_of(explanation, row, output, max_features)
    ax = axes_of(ax, (7.5, 1.3 + 0.3 * (len(drawn.steps) + 1)))
    labels = ["base", *(step.name for step in drawn.steps)]
    places = np.arange(1, len(labels))
    ends = np.array([step.end for step in drawn.steps])
    widths = np.array([step.added for step in drawn.steps])
    colours = [VERMILLION if width > 0 else BLUE for width in widths]
    ax.barh(places, widths, 0.66, left=ends - widths, color=colours)
    ax.plot([drawn.base] * 2, [-0.33, 0.33], color=INK, lw=2)
    ax.axvline(drawn.prediction, color=GREY, ls=":", lw=1, zorder=0)
    beside = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8.5}
    ax.annotate(drawn.said(drawn.base), (drawn.base, 0), **beside)
    for place, step in zip(places, drawn.steps, strict=True):
        right = max(step.start, step.end)
        ax.annotate(drawn.said(step.added, "+"), (right, place), **beside)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.use_sticky_edges = False
    ax.margins(x=0.12)
    ax.set_xlabel(drawn.unit, parse_math=False)
    titled(ax, f"{drawn.title}, {_reason(drawn)}")
    figure: Figure = ax.figure
    return figure


def _reason(drawn: Waterfall) -> str:
    if not drawn.steps:
        return "whatever the features are"
    return f"most of all by {drawn.steps[0].name}"
