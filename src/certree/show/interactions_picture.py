"""Which features act alone, and which together."""

from typing import Any

import numpy as np

from certree.explain import Interactions
from certree.interface.extras import import_extra
from certree.interface.formatting import format_percent, format_quantity, shorten_label
from certree.interface.signatures import validate_arguments
from certree.show.style import (
    BLUE,
    GREY,
    INK,
    ON_LIGHT,
    ORANGE,
    SMALL,
    Figure,
    Panel,
    new_figure,
    styled,
    titled,
)

# Pairs of no variance, and those of most: the colour of their bars.
_PAIRS = ["#F4F4F4", ORANGE]
_CELL, _LETTERS = 0.42, 20  # inches of a cell, letters of a name beside it
_BARS, _NAMES = 6.4, 1.9  # inches of the bars, and of the names on two sides of the cells


@styled
@validate_arguments
def plot_interactions(shares: Interactions, max_terms: int = 12, max_features: int = 10) -> Figure:
    """Draw which share of the variance is due to which features and pairs.

    Parameters
    ----------
    shares : Interactions
        What `certree.explain.interaction_fractions` says of a model.
    max_terms : int, default=12
        So many features and pairs have a bar, the largest; the rest is one.
    max_features : int, default=10
        So many features stand in the heat map of pairs: those with the most variance, their pairs
        included.

    Returns
    -------
    matplotlib Figure
        On the left a bar for each term, on the right the pairs: in colour and in percent what two
        features make beyond what either makes alone.

    Raises
    ------
    ValueError
        If `max_terms` is less than 1, or `max_features` less than 2.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from certree.ensembles import TreeForestRegressor
    >>> from certree.explain import interaction_fractions
    >>> from certree.show import plot_interactions
    >>> X, y = make_friedman1(300, random_state=0)
    >>> model = TreeForestRegressor(10, random_state=0).fit(X, y)
    >>> figure = plot_interactions(interaction_fractions(model, X))
    """
    for name, given, least in (("max_terms", max_terms, 1), ("max_features", max_features, 2)):
        if given < least:
            raise ValueError(f"{name} must be at least {least}, got {given}")
    (wide, high), (heat_wide, heat_high) = interaction_sizes(shares, max_terms, max_features)
    figure = new_figure((wide + heat_wide, max(high, heat_high)))
    axes = figure.subplots(1, 2, width_ratios=[wide, heat_wide])
    for draw, ax in zip(interaction_panels(shares, max_terms, max_features), axes, strict=True):
        draw(ax)
    return figure


def interaction_sizes(
    shares: Interactions, max_terms: int = 12, max_features: int = 10
) -> list[tuple[float, float]]:
    """Inches of the bars, and of the heat map with its names."""
    n_terms = min(max_terms, len(shares.single) + len(shares.pairs))
    heat = _NAMES + _CELL * min(max_features, len(shares.single))
    return [(_BARS, 1.0 + 0.26 * (n_terms + 2)), (heat, heat)]


def interaction_panels(
    shares: Interactions, max_terms: int = 12, max_features: int = 10
) -> tuple[Panel, Panel]:
    """What draws the bars, and the heat map."""
    return (
        lambda ax: _draw_bars(ax, shares, max_terms),
        lambda ax: _draw_pairs(ax, shares, max_features),
    )


def _draw_bars(ax: Any, shares: Interactions, max_terms: int) -> None:
    terms = shares.terms()
    shown, rest = terms[:max_terms], terms[max_terms:]
    labels = [
        shorten_label(name)
        if other is None
        else f"{shorten_label(name, _LETTERS)} & {shorten_label(other, _LETTERS)}"
        for name, other, _ in shown
    ]
    values = [share for *_, share in shown]
    colours = [BLUE if other is None else ORANGE for _, other, _ in shown]
    if rest:
        labels.append(format_quantity(len(rest), "other"))
        values.append(sum(share for *_, share in rest))
        colours.append(GREY)
    labels.append("three features or more")
    values.append(shares.share(shares.higher))
    colours.append(GREY)
    errors = [0.0] * (len(values) - 1) + [shares.share(shares.error)]
    ax.barh(range(len(values)), values, 0.7, xerr=errors, color=colours, ecolor=INK)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter(lambda value, _: format_percent(value))
    ax.set_xlabel("share of the variance")
    titled(ax, _title(shares))


def _title(shares: Interactions) -> str:
    if not shares.total > 0:
        return "The model says the same of all"
    alone = format_percent(shares.share(shares.single.sum()))
    return (
        f"Single features make {alone}, pairs {format_percent(shares.share(shares.paired.sum()))}"
    )


def _draw_pairs(ax: Any, shares: Interactions, max_features: int) -> None:
    matrix = shares.matrix()
    order = np.argsort(-matrix.sum(axis=1), kind="stable")[:max_features]
    pairs = matrix[np.ix_(order, order)]
    np.fill_diagonal(pairs, np.nan)
    most = max(float(np.nanmax(pairs, initial=0.0)), np.finfo(float).tiny)
    colours = import_extra("matplotlib.colors", "plot").LinearSegmentedColormap.from_list(
        "", _PAIRS
    )
    edges = np.arange(len(order) + 1) - 0.5
    # Cells and not an image, so that a page has the same lines at every size.
    ax.pcolormesh(edges, edges, pairs, cmap=colours, vmin=0.0, vmax=most)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    for (row, column), share in np.ndenumerate(pairs):
        words = f"{100 * share:.1f}"
        if words not in ("nan", "0.0"):
            ax.text(column, row, words, ha="center", va="center", fontsize=SMALL, color=ON_LIGHT)
    names = [shorten_label(shares.feature_names[j], _LETTERS) for j in order]
    ax.set_xticks(range(len(order)), names, rotation=90, parse_math=False)
    ax.set_yticks(range(len(order)), names, parse_math=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title("Pairs, % of the variance")
