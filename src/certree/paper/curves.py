"""Pictures of the tables of the experiments."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from certree.interface.extras import import_extra
from certree.paper.figure2 import Curve
from certree.paper.protocol import PRUNING
from certree.paper.rates import Rate, shrinking
from certree.paper.table2 import Line
from certree.show.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    Figure,
    new_figure,
    styled,
)

# One per method in every picture.
COLOURS = {
    PRUNING: BLACK,
    "SN-pruning": ORANGE,
    "PAC-Bayes joint": BLUE,
    "PAC-Bayes error-first": SKY,
    "HS-vote": PURPLE,
    "unpruned": GREY,
    "Gibbs": GREEN,
    "(1) square root": ORANGE,
    "(2) spatially adaptive": BLUE,
    "(2) as printed": GREY,
    "decorated": GREEN,
}
_RATIOS = ("SN-pruning", "PAC-Bayes joint", "PAC-Bayes error-first", "HS-vote")
_CURVES = (PRUNING, "SN-pruning", "PAC-Bayes joint", "HS-vote", "unpruned")


def _mark(**style: Any) -> Any:
    """A line or a mark that stands in a legend alone."""
    return import_extra("matplotlib.lines", "plot").Line2D([], [], **style)


@styled
def plot_table2(table: Sequence[Line]) -> Figure:
    """Draw the ratios of Table 2: filled marks with error bars are ours, open ones the paper's.

    Parameters
    ----------
    table : sequence of Line
        The table.

    Returns
    -------
    matplotlib Figure
    """
    growers = list(dict.fromkeys(line.grower for line in table))
    datasets = list(dict.fromkeys(line.dataset for line in table))
    size = (2.6 + 2.8 * len(growers), 1.6 + 0.55 * len(datasets))
    figure = new_figure(size)
    axes = figure.subplots(1, len(growers), sharey=True, sharex=True, squeeze=False)[0]
    for ax, grower in zip(axes, growers, strict=True):
        ax.axvline(1, color=COLOURS[PRUNING], linewidth=1)
        for line in table:
            if line.grower == grower:
                _draw_ratios(ax, line, datasets.index(line.dataset))
        ax.set_title(f"{grower} tree")
        ax.set_xlabel("error / error of the optimal pruning")
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(datasets)), datasets)
    axes[0].set_ylim(len(datasets) - 0.4, -0.6)
    handles = _legend(axes)
    if any(line.paper(method) is not None for line in table for method in _RATIOS):
        handles["open: the paper's"] = _mark(color="0.3", marker="o", ls="", mfc="none")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    return figure


def _legend(axes: Iterable[Any]) -> dict[str, Any]:
    """One handle for every label in any of the axes."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles


def _draw_ratios(ax: Any, line: Line, row: int) -> None:
    shown = [method for method in _RATIOS if method in line.ratios]
    for method in shown:
        # Every method keeps its height within the row, so that marks do not cover each other.
        y = row + 0.17 * (_RATIOS.index(method) - (len(_RATIOS) - 1) / 2)
        ratio = line.ratios[method]
        spread = 0.0 if np.isnan(ratio.standard_error) else ratio.standard_error
        style = {"color": COLOURS[method], "markersize": 5}
        ax.errorbar(ratio.value, y, xerr=spread, fmt="o", elinewidth=1.2, label=method, **style)
        paper = line.paper(method)
        if paper is not None:
            ax.plot(paper, y, "o", markerfacecolor="none", **style)


@styled
def plot_figure2(curves: Sequence[Curve]) -> Figure:
    """Draw error against training rows, with bands of one standard error.

    Parameters
    ----------
    curves : sequence of Curve
        The curves.

    Returns
    -------
    matplotlib Figure
    """
    growers = list(dict.fromkeys(curve.grower for curve in curves))
    datasets = list(dict.fromkeys(curve.dataset for curve in curves))
    size = (1 + 2.9 * len(datasets), 0.9 + 2.5 * len(growers))
    figure = new_figure(size)
    axes = figure.subplots(len(growers), len(datasets), squeeze=False, sharex="col")
    for curve in curves:
        if curve.method not in _CURVES:
            continue
        ax = axes[growers.index(curve.grower), datasets.index(curve.dataset)]
        mean = np.array([error.value for error in curve.errors])
        spread = np.nan_to_num([error.standard_error for error in curve.errors])
        colour = COLOURS[curve.method]
        ax.plot(curve.rows, mean, ".-", color=colour, label=curve.method, linewidth=1.2)
        ax.fill_between(curve.rows, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)
        ax.set_title(f"{curve.dataset}, {curve.grower}", fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel("training rows")
    for ax in axes[:, 0]:
        ax.set_ylabel("test error")
    handles = _legend(axes.ravel())
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return figure


@styled
def plot_rates(rates: Sequence[Rate]) -> Figure:
    """Draw excess error against training rows, both in logarithms, beside the rates of the theory.

    Bars are standard errors. Dotted lines fall at the theory's rate, through the middle of the sizes
    that the exponent is fitted to.

    Parameters
    ----------
    rates : sequence of Rate
        The curves.

    Returns
    -------
    matplotlib Figure
    """
    dimensions = list(dict.fromkeys(rate.dimension for rate in rates))
    boundaries = list(dict.fromkeys(rate.boundary for rate in rates))
    size = (0.8 + 4.2 * len(boundaries), 0.9 + 3.4 * len(dimensions))
    figure = new_figure(size)
    axes = figure.subplots(
        len(dimensions), len(boundaries), squeeze=False, sharex=True, sharey="row"
    )
    for rate in rates:
        _draw_rate(axes[dimensions.index(rate.dimension), boundaries.index(rate.boundary)], rate)
    for (row, column), ax in np.ndenumerate(axes):
        ax.set_title(f"{boundaries[column]} boundary, {dimensions[row]} features", fontsize=10)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        # Room for the exponents below the curves.
        ax.set_ylim(bottom=ax.get_ylim()[0] / 6)
        ax.grid(alpha=0.3)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="lower left", fontsize=7.5, title="exponent (theory)", title_fontsize=7.5)
    for ax in axes[-1]:
        ax.set_xlabel("training rows")
    for ax in axes[:, 0]:
        ax.set_ylabel("error beyond the Bayes error")
    names = dict.fromkeys(rate.rule for rate in rates)
    handles = [_mark(color=COLOURS[name], marker=".") for name in names]
    handles.append(_mark(color="0.3", ls=":"))
    labels = [*names, "theory's rate"]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_rate(ax: Any, rate: Rate) -> None:
    colour = COLOURS[rate.rule]
    mean = np.array([excess.value for excess in rate.excess])
    spread = np.nan_to_num([excess.standard_error for excess in rate.excess])
    ax.errorbar(rate.rows, mean, spread, fmt=".-", color=colour, elinewidth=1, linewidth=1.2)
    if np.isnan(rate.theory) or np.isnan(rate.fitted.value):
        return
    label = f"{rate.fitted.rounded(2)} ({rate.theory:.2f})"
    ratio = shrinking(rate.larger)
    # Through the middle of what is fitted.
    height = np.exp(np.mean(np.log(mean[-len(ratio) :]) - rate.theory * np.log(ratio)))
    ax.plot(rate.larger, height * ratio**rate.theory, ":", color=colour, linewidth=2, label=label)
