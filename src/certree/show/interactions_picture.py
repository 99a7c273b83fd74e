"""Figure of the variance due to single features, and to interactions of features."""

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
    set_title,
    use_style,
)

# Colours of the heat map, from no variance to the most; the last is that of the bars of pairs.
_HEAT_COLOURS = ["#F4F4F4", ORANGE]
_CELL_SIZE = 0.42  # inches, width and height of a cell of the heat map
_MAX_LETTERS = 20  # of a feature's name beside the heat map
_BARS_WIDTH, _NAMES_WIDTH = 6.4, 1.9  # inches


@use_style
@validate_arguments
def plot_interactions(shares: Interactions, max_terms: int = 12, max_features: int = 10) -> Figure:
    """Draw which fraction of the variance is due to each feature and each pair of features.

    Parameters
    ----------
    shares : Interactions
        Variance of the predictions, and how much of it is due to each feature and pair: the result
        of `certree.explain.interaction_fractions`.
    max_terms : int, default=12
        Number of features and pairs with a bar of their own, the largest; one more bar has the sum
        of the others.
    max_features : int, default=10
        Number of features in the heat map of pairs: those with the largest variance, including that
        of their pairs.

    Returns
    -------
    matplotlib Figure
        On the left a bar for each feature and pair. On the right a heat map of the variance
        (percent) due to the interaction of two features, beyond what each contributes alone.

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
    for name, value, minimum in (("max_terms", max_terms, 1), ("max_features", max_features, 2)):
        if value < minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {value}")
    (bar_width, bar_height), (map_width, map_height) = compute_interaction_sizes(
        shares, max_terms, max_features
    )
    figure = new_figure((bar_width + map_width, max(bar_height, map_height)))
    axes = figure.subplots(1, 2, width_ratios=[bar_width, map_width])
    for draw, ax in zip(
        create_interaction_panels(shares, max_terms, max_features), axes, strict=True
    ):
        draw(ax)
    return figure


def compute_interaction_sizes(
    interactions: Interactions, max_terms: int = 12, max_features: int = 10
) -> list[tuple[float, float]]:
    """Return the sizes in inches of the bar chart and the heat map of `plot_interactions`.

    Parameters
    ----------
    interactions : Interactions
        Variance of the predictions, and how much of it is due to each feature and pair: the result
        of `interaction_fractions`.
    max_terms, max_features : int
        Largest numbers of features and pairs with a bar of their own, and of features in the heat
        map.

    Returns
    -------
    list of (float, float)
        Width and height of the bar chart, and of the heat map with the names of its features.
    """
    n_terms = min(max_terms, len(interactions.single) + len(interactions.pairs))
    heat = _NAMES_WIDTH + _CELL_SIZE * min(max_features, len(interactions.single))
    return [(_BARS_WIDTH, 1.0 + 0.26 * (n_terms + 2)), (heat, heat)]


def create_interaction_panels(
    interactions: Interactions, max_terms: int = 12, max_features: int = 10
) -> tuple[Panel, Panel]:
    """Return two functions, which draw the bar chart and the heat map of `plot_interactions`.

    Parameters
    ----------
    interactions : Interactions
        Variance of the predictions, and how much of it is due to each feature and pair.
    max_terms, max_features : int
        Largest numbers of features and pairs with a bar of their own, and of features in the heat
        map.

    Returns
    -------
    tuple of two callables
        The first draws the bar chart, the second the heat map, on the matplotlib Axes that it is
        called with; they return None.
    """
    return (
        lambda ax: _draw_bars(ax, interactions, max_terms),
        lambda ax: _draw_pairs(ax, interactions, max_features),
    )


def _draw_bars(ax: Any, interactions: Interactions, max_terms: int) -> None:
    """Draw on axes a bar for the fraction of the variance of each feature and pair.

    One more bar has the sum of the features and pairs that are left out, and a last one the
    variance due to interactions of three or more features.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    interactions : Interactions
        Variance of the predictions, and how much of it is due to each feature and pair: the result
        of `interaction_fractions`.
    max_terms : int
        Number of features and pairs with a bar of their own, the largest first.
    """
    terms = interactions.terms()
    shown, rest = terms[:max_terms], terms[max_terms:]
    labels = [
        shorten_label(name)
        if other is None
        else f"{shorten_label(name, _MAX_LETTERS)} & {shorten_label(other, _MAX_LETTERS)}"
        for name, other, _ in shown
    ]
    values = [fraction for *_, fraction in shown]
    colours = [BLUE if other is None else ORANGE for _, other, _ in shown]
    if rest:
        labels.append(format_quantity(len(rest), "other"))
        values.append(sum(fraction for *_, fraction in rest))
        colours.append(GREY)
    labels.append("three or more features")
    values.append(interactions.share(interactions.higher))
    colours.append(GREY)
    errors = [0.0] * (len(values) - 1) + [interactions.share(interactions.error)]
    ax.barh(range(len(values)), values, 0.7, xerr=errors, color=colours, ecolor=INK)
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter(lambda value, _: format_percent(value))
    ax.set_xlabel("fraction of the variance")
    set_title(ax, _describe_fractions(interactions))


def _describe_fractions(interactions: Interactions) -> str:
    """Return the title of the figure, such as "Single features: 60 %, pairs: 30 %".

    The percentages are fractions of the variance of the predictions: the sum over features alone,
    and over pairs. If it is 0, the title is "All predictions are equal". interactions: this
    variance, and how much of it is due to each feature and pair.
    """
    if not interactions.total > 0:
        return "All predictions are equal"
    single = format_percent(interactions.share(interactions.single.sum()))
    paired = format_percent(interactions.share(interactions.paired.sum()))
    return f"Single features: {single}, pairs: {paired}"


def _draw_pairs(ax: Any, interactions: Interactions, max_features: int) -> None:
    """Draw on axes the heat map of pairs, with the percentage of the variance in each field.

    Rows and columns are the same features, in the order of their variance; the diagonal is empty.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    interactions : Interactions
        Variance of the predictions, and how much of it is due to each feature and pair: the result
        of `interaction_fractions`.
    max_features : int
        Number of features with a row and a column: those with the largest variance, including that
        of their pairs.
    """
    matrix = interactions.matrix()
    order = np.argsort(-matrix.sum(axis=1), kind="stable")[:max_features]
    pairs = matrix[np.ix_(order, order)]
    np.fill_diagonal(pairs, np.nan)
    largest = max(float(np.nanmax(pairs, initial=0.0)), np.finfo(float).tiny)
    colours = import_extra("matplotlib.colors", "plot").LinearSegmentedColormap.from_list(
        "", _HEAT_COLOURS
    )
    edges = np.arange(len(order) + 1) - 0.5
    # Drawn as cells and not as an image, so that lines stay sharp at every size of a page.
    ax.pcolormesh(edges, edges, pairs, cmap=colours, vmin=0.0, vmax=largest)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    for (row, column), fraction in np.ndenumerate(pairs):
        text = f"{100 * fraction:.1f}"
        if text not in ("nan", "0.0"):
            ax.text(column, row, text, ha="center", va="center", fontsize=SMALL, color=ON_LIGHT)
    names = [shorten_label(interactions.feature_names[j], _MAX_LETTERS) for j in order]
    ax.set_xticks(range(len(order)), names, rotation=90, parse_math=False)
    ax.set_yticks(range(len(order)), names, parse_math=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title("Pairs, % of the variance")
