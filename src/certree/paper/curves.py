"""Plots of the results of the experiments."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from certree.interface.extras import import_extra
from certree.paper.figure2 import Curve
from certree.paper.protocol import PRUNING
from certree.paper.rates import Rate, compute_log_n_over_n
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
    use_style,
)

# Colour of each method in all plots.
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


def _make_handle(**style: Any) -> Any:
    """Return a matplotlib line without points, which serves as an entry of a legend.

    style: keyword arguments of `matplotlib.lines.Line2D`.
    """
    return import_extra("matplotlib.lines", "plot").Line2D([], [], **style)


@use_style
def plot_table2(table: Sequence[Line]) -> Figure:
    """Plot the error ratios of Table 2 of the paper, in one panel for each grower.

    A grower is an algorithm that grows a tree. A method prunes the tree, or lets its prunings (the
    tree with some nodes turned into leaves) vote. A ratio is its test error divided by that of
    cost-complexity pruning. Filled marks with error bars of one standard error are our ratios; open
    marks are those that the paper, Nguyen and Kpotufe, "PAC-Bayes Tree", NeurIPS 2018, prints.
    Ratios are on the x axis, data sets on the y axis. Methods other than "SN-pruning", "PAC-Bayes
    joint", "PAC-Bayes error-first" and "HS-vote" are not drawn.

    Parameters
    ----------
    table : sequence of Line
        Lines of the table, one for each data set and grower.

    Returns
    -------
    matplotlib Figure
        The figure, which is not shown or saved.
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
    handles = _collect_handles(axes)
    if any(line.paper(method) is not None for line in table for method in _RATIOS):
        handles["open: the paper's"] = _make_handle(color="0.3", marker="o", ls="", mfc="none")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    return figure


def _collect_handles(axes: Iterable[Any]) -> dict[str, Any]:
    """Return the first legend handle of each label in matplotlib axes, as a dictionary by label."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles


def _draw_ratios(ax: Any, line: Line, row: int) -> None:
    """Plot the ratios of one line of Table 2 into a panel.

    ax: matplotlib axes; line: the ratios of all methods on one data set; row: the y coordinate
    around which they are drawn. A method prunes the tree, or lets its prunings (the tree with some
    nodes turned into leaves) vote. A ratio is its test error divided by that of cost-complexity
    pruning. Filled marks with error bars are our ratios, open marks those that Nguyen and Kpotufe
    (2018) print.
    """
    methods = [method for method in _RATIOS if method in line.ratios]
    for method in methods:
        # Each method has a height of its own, so that marks do not overlap.
        y = row + 0.17 * (_RATIOS.index(method) - (len(_RATIOS) - 1) / 2)
        ratio = line.ratios[method]
        error = 0.0 if np.isnan(ratio.standard_error) else ratio.standard_error
        style = {"color": COLOURS[method], "markersize": 5}
        ax.errorbar(ratio.value, y, xerr=error, fmt="o", elinewidth=1.2, label=method, **style)
        paper = line.paper(method)
        if paper is not None:
            ax.plot(paper, y, "o", markerfacecolor="none", **style)


@use_style
def plot_figure2(curves: Sequence[Curve]) -> Figure:
    """Plot the test error of each method against the number of training rows.

    There is a panel for each data set and grower (algorithm that grows the tree). A method prunes
    the tree, or lets its prunings (the tree with some nodes turned into leaves) vote. Bands extend
    one standard error above and below the mean. This is Figure 2 of Nguyen and Kpotufe, "PAC-Bayes
    Tree", NeurIPS 2018. Methods other than "pruning", "SN-pruning", "PAC-Bayes joint", "HS-vote"
    and "unpruned" are not drawn.

    Parameters
    ----------
    curves : sequence of Curve
        The curves, one for each data set, grower and method.

    Returns
    -------
    matplotlib Figure
        The figure, which is not shown or saved.
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
        width = np.nan_to_num([error.standard_error for error in curve.errors])
        colour = COLOURS[curve.method]
        ax.plot(curve.rows, mean, ".-", color=colour, label=curve.method, linewidth=1.2)
        ax.fill_between(curve.rows, mean - width, mean + width, color=colour, alpha=0.15, lw=0)
        ax.set_title(f"{curve.dataset}, {curve.grower}", fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel("training rows")
    for ax in axes[:, 0]:
        ax.set_ylabel("test error")
    handles = _collect_handles(axes.ravel())
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return figure


@use_style
def plot_rates(rates: Sequence[Rate]) -> Figure:
    """Plot the excess error of classifiers by number of training rows, on logarithmic axes.

    There is a panel for each boundary between the classes and number of features. The excess error
    is the error minus the Bayes error. Bars are standard errors. A dotted line falls at the rate of
    the theory; its height is fitted to the curve at the sizes to which the exponent is fitted.

    Parameters
    ----------
    rates : sequence of Rate
        The curves, one for each classifier, boundary and number of features.

    Returns
    -------
    matplotlib Figure
        The figure, which is not shown or saved.
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
        # The legend with the exponents needs space below the curves.
        ax.set_ylim(bottom=ax.get_ylim()[0] / 6)
        ax.grid(alpha=0.3)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="lower left", fontsize=7.5, title="exponent (theory)", title_fontsize=7.5)
    for ax in axes[-1]:
        ax.set_xlabel("training rows")
    for ax in axes[:, 0]:
        ax.set_ylabel("error beyond the Bayes error")
    names = dict.fromkeys(rate.rule for rate in rates)
    handles = [_make_handle(color=COLOURS[name], marker=".") for name in names]
    handles.append(_make_handle(color="0.3", ls=":"))
    labels = [*names, "theory's rate"]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw_rate(ax: Any, rate: Rate) -> None:
    """Plot the excess error of one classifier into a panel, with a dotted line of the theory.

    ax: matplotlib axes with logarithmic scales; rate: the excess errors and exponents of the
    classifier with one boundary and number of features. The dotted line is left out if there is no
    theoretical or no fitted exponent.
    """
    colour = COLOURS[rate.rule]
    mean = np.array([excess.value for excess in rate.excess])
    error = np.nan_to_num([excess.standard_error for excess in rate.excess])
    ax.errorbar(rate.rows, mean, error, fmt=".-", color=colour, elinewidth=1, linewidth=1.2)
    if np.isnan(rate.theory) or np.isnan(rate.fitted.value):
        return
    label = f"{rate.fitted.rounded(2)} ({rate.theory:.2f})"
    ratio = compute_log_n_over_n(rate.fitted_rows)
    # The line passes through the middle of the fitted sizes.
    height = np.exp(np.mean(np.log(mean[-len(ratio) :]) - rate.theory * np.log(ratio)))
    ax.plot(
        rate.fitted_rows, height * ratio**rate.theory, ":", color=colour, linewidth=2, label=label
    )
