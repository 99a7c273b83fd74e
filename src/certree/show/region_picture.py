"""Figure of the regions of a tree in the plane of two features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.estimators.model_trees import DecoratedTree
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.explain.value_formatting import format_categories
from certree.interface.arrays import Float64
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.extras import import_extra
from certree.interface.fitted_state import get_snapshot
from certree.interface.formatting import format_four_digits, format_quantity, shorten_label
from certree.rows.dates import find_zone, learn_dates, read_days
from certree.show.calibration import plot_calibration
from certree.show.plane_regions import (
    PlaneSplit,
    Values,
    find_plane_regions,
    list_intervals,
)
from certree.show.style import (
    CLASSES,
    DIVERGING,
    INK,
    SEQUENTIAL,
    Figure,
    get_axes,
    set_title,
    use_style,
)
from certree.show.tree_picture import create_colour_scale
from certree.show.tree_summary import TreeSummary, summarize_tree

_SIZE = (7.2, 5.0)  # inches
_MARGIN = 0.04  # of the range of X, on each side of the window
# Width of the line of the first split (points), its factor per level, and the smallest width.
_SPLIT_WIDTH, _PER_LEVEL, _MIN_SPLIT_WIDTH = 2.4, 0.75, 0.4
_MAX_POINTS, _MANY_POINTS = 2000, 500  # drawn points; more than the second number are smaller
# Colours of classes in regions are mixed with white, so that points stand out.
_STRENGTH = 0.6
# Points of a category are spread over this fraction of its unit, by multiples of the golden ratio.
_SPREAD, _GOLDEN = 0.6, 0.6180339887498949
_NUMBER = "{x:,.10g}"  # format of tick labels
# Logarithmic axes have labels at 2, 5, 20, ... if the ratio of their ends is smaller.
_MAX_LABELLED_RATIO = 100
_MAX_LABELS = 24  # of categories on an axis
_MAX_LETTERS = 16  # of a category on an axis
_MAX_FIXED = 4  # features whose fixed values the title names


@use_style
@copy_descriptions_from(plot_calibration)
def plot_regions(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    ax: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    at: Mapping[str | int, Any] | None = None,
    log: Sequence[str | int] = (),
    show_splits: bool = True,
) -> Figure:
    """Draw the regions of a tree in the plane of two features, coloured by prediction.

    Every region is exact: the model has one prediction for all rows in it. For a vote over prunings
    the colour is that of the vote. The colours are those of `plot_tree`: the probability of the
    second of two classes, the most probable of more classes, or the number from low to high. Rows
    of X are points. Lines are splits: the deeper a split, the thinner its line; the fewer of the
    voting prunings have the split, the fainter. Points of one category are spread over its unit. A
    pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    model : fitted estimator of certree with one tree
        A single tree, such as `PrunedTreeClassifier`, or a vote over the prunings of one tree.
    X : array-like of shape (n, p)
        Rows, such as those of the fit. They set the window and the default of `at`. At most 2000
        rows, evenly spread over X, are drawn.
    y : array-like of shape (n,), or None
        Classes or numbers of the rows, which colour their points; None: points are grey.
    {ax}
    features : pair of str or int, or None
        Name or index of the feature on the x axis and of that on the y axis; None: the two features
        of a model that has no others.
    at : mapping of str or int to value, or None
        Values of other features, by name or index. A feature that is not in it has its median in X,
        or its most frequent category. Calendar parts of dates, such as "month of opened", are
        features of their own here. Points are drawn whatever the other features of their rows.
    log : sequence of str or int, default=()
        Features of `features` whose axes are logarithmic.
    show_splits : bool, default=True
        Whether to draw the lines of the splits.

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    TypeError
        If the model is not such an estimator, or is an ensemble or a tree with models in its leaves.
    ValueError
        If `features`, `at` or `log` does not fit the model or X, a classifier has several targets,
        or y has another length than X.

    Notes
    -----
    The plane has no missing values. Rows that lack one of the two features, or whose category the
    fit does not know, are not drawn, and `at` must not have missing values. A category covers a
    unit of its axis. A split by a feature of `at` has no line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certree import PrunedTreeClassifier
    >>> from certree.show import plot_regions
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> X = X[["petal length (cm)", "petal width (cm)"]]
    >>> model = PrunedTreeClassifier(random_state=0).fit(X, y)
    >>> figure = plot_regions(model, X, y)
    """
    if not isinstance(model, TreeVoteEstimator) or isinstance(model, DecoratedTree):
        raise TypeError(
            "model must be an estimator of certree with one tree whose leaves have constant "
            f"predictions, such as PACBayesTreeClassifier, got {shortened(model)}: fit such a tree"
        )
    summary, model = summarize_tree(model), get_snapshot(model)
    names = model._encoded_names()
    axes = _choose_features(names, features)
    rows = np.asarray(model._encode_new_rows(X), dtype=np.float64)
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.shape != (len(rows),):
        raise ValueError(
            f"y must have one entry for each of the {len(rows)} rows of X, got shape {labels.shape}"
        )
    log_axes = {_find_feature("log", names, feature) for feature in log}
    if not log_axes <= set(axes):
        unknown = names[min(log_axes - set(axes))]
        raise ValueError(
            f"log must have only features of the two axes, got {unknown!r}: leave it out, or choose "
            "it as an axis by the argument features="
        )
    window = tuple(_find_window(model, rows, feature, feature in log_axes) for feature in axes)
    row, fixed = _fix_other_features(model, rows, axes, at)
    regions, splits = find_plane_regions(summary, axes, row, (window[0], window[1]))

    ax = get_axes(ax, _SIZE)
    nodes = [region.leaf for region in regions]
    get_colour = create_colour_scale(summary, nodes)
    strength = 1.0 if summary.outputs is None else _STRENGTH
    _draw_rectangles(
        ax, [(r.sides, _mix_with_white(get_colour(r.leaf), strength)) for r in regions]
    )
    if show_splits:
        _draw_splits(ax, splits)
    _draw_points(ax, summary, _place_points(rows[:, axes], window), labels, nodes)
    for axis, feature, values in zip((ax.xaxis, ax.yaxis), axes, window, strict=True):
        _label_axis(axis, model, feature, values, feature in log_axes)
    _explain_colours(ax, summary, nodes)
    title = f"Predictions in {format_quantity(len(regions), 'region')}"
    set_title(ax, title + _describe_fixed(summary, names, row, fixed))
    figure: Figure = ax.figure
    return figure


def _choose_features(names: Sequence[str], features: Sequence[str | int] | None) -> tuple[int, int]:
    """Return the indices of the features of the x and the y axis.

    names: those of all features. features: names or indices of two features, or None if the model
    has two features. Raise ValueError if they are not two different features of the model.
    """
    if features is None:
        if len(names) != 2:
            raise ValueError(
                f"features must name two features, as the model has {len(names)}, got None: pass "
                "the features of the x and the y axis"
            )
        return 0, 1
    chosen = [] if isinstance(features, str) else [*features]
    found = [_find_feature("features", names, feature) for feature in chosen]
    if len(found) != 2 or found[0] == found[1]:
        raise ValueError(
            f"features must have two different names or indices, got {features!r}: pass those of "
            "the x and the y axis"
        )
    return found[0], found[1]


def _find_feature(parameter: str, names: Sequence[str], feature: Any) -> int:
    """Return the index of a feature.

    parameter: name of the argument, for messages. names: those of all features. feature: a name or
    an index. Raise ValueError if there is no such feature.
    """
    if isinstance(feature, str) and feature in names:
        return [*names].index(feature)
    is_index = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if is_index and 0 <= feature < len(names):
        return int(feature)
    raise ValueError(
        f"{parameter} must have names or indices (0 .. {len(names) - 1}) of features, got "
        f"{feature!r}: the features are {format_categories(names)}"
    )


def _get_categories(model: Any, feature: int) -> Sequence[Any] | None:
    """Return the names of a feature's categories by code; None if the feature is numeric.

    model: the fitted model; feature: index of the feature.
    """
    categories = model._get_encoded_categories()
    return None if categories is None else categories.names[feature]


def _find_window(model: Any, rows: Float64, feature: int, is_log: bool) -> Values:
    """Return the ends of the window on the axis of a feature, or the codes of its categories.

    Parameters
    ----------
    model : fitted estimator of certree
        The model, which has the categories of the feature.
    rows : ndarray of float64, shape (n, p)
        Encoded rows; NaN is a missing value.
    feature : int
        Index of the feature.
    is_log : bool
        Whether the axis is logarithmic; the values must then be positive numbers.

    Returns
    -------
    tuple or list
        A tuple of two floats, the smallest and the largest value with a margin; or a list of all
        category codes.

    Raises
    ------
    ValueError
        If all values are missing, or the axis cannot be logarithmic.
    """
    name, categories = model._encoded_names()[feature], _get_categories(model, feature)
    is_number = categories is None and feature not in (model.dates_ or {})
    known = rows[~np.isnan(rows[:, feature]), feature]
    if is_log and not (is_number and (known > 0).all()):
        raise ValueError(
            f"log must have only features with positive numbers, got {name!r}: leave it out"
        )
    if categories is not None:
        if not len(categories):
            raise ValueError(
                f"features must have values, got {name!r} without any category: choose another feature"
            )
        return [*range(len(categories))]
    if not len(known):
        raise ValueError(
            f"X must have values of the features of both axes, got none of {name!r}: choose another "
            "feature, or pass other rows"
        )
    ends = np.array([known.min(), known.max()])
    ends = np.log(ends) if is_log else ends
    margin = _MARGIN * (ends[1] - ends[0]) or 0.5 * max(abs(ends[0]), 1.0)
    low, high = ends[0] - margin, ends[1] + margin
    return (float(np.exp(low)), float(np.exp(high))) if is_log else (float(low), float(high))


def _fix_other_features(
    model: Any, rows: Float64, axes: tuple[int, int], at: Mapping[str | int, Any] | None
) -> tuple[Float64, list[int]]:
    """Return the encoded values of the features that have no axis, and their indices.

    Parameters
    ----------
    model : fitted estimator of certree
        The model, which encodes the values.
    rows : ndarray of float64, shape (n, p)
        Encoded rows, from which the defaults are computed.
    axes : pair of int
        Indices of the features that have an axis.
    at : mapping of str or int to value, or None
        Values of some of the other features, by name or index.

    Returns
    -------
    row : ndarray of float64, shape (p,)
        The value of each feature; NaN for those with an axis.
    fixed : list of int
        The other features, those of `at` first.

    Raises
    ------
    ValueError
        If `at` has another feature or an invalid value, or rows have no value for a default.
    """
    names, row = model._encoded_names(), np.full(rows.shape[1], np.nan)
    chosen = {_find_feature("at", names, feature): value for feature, value in (at or {}).items()}
    for feature, value in chosen.items():
        if feature in axes:
            raise ValueError(
                f"at must not set {names[feature]!r}, which is on an axis of the picture: leave it out "
                "of at, or choose other axes by features"
            )
        row[feature] = _encode_value(model, feature, value)
    rest = [f for f in range(len(row)) if f not in axes and f not in chosen]
    for feature in rest:
        known = rows[:, feature][~np.isnan(rows[:, feature])]
        if _get_categories(model, feature) is not None:
            codes, counts = np.unique(known[known >= 0], return_counts=True)
            known = codes[counts == counts.max()][:1] if len(codes) else codes
        if not len(known):
            raise ValueError(f"at must have a value of {names[feature]!r}, as X has none: pass one")
        row[feature] = np.median(known)
    return row, [*chosen, *rest]


def _encode_value(model: Any, feature: int, value: Any) -> float:
    """Return a value of a feature as the number that trees read.

    This is a category's code, a date in days since 1970, a time span in days, or the number itself.
    model: the fitted estimator. feature: index of the feature. Raise ValueError if the value is
    missing, of another kind than in the fit, or a category that the model does not know.
    """
    name, categories = model._encoded_names()[feature], _get_categories(model, feature)
    expected = "a number"
    if categories is not None:
        cells = np.full((1, model.n_features_in_), None, dtype=object)
        cells[0, feature] = value
        code = float(model.categories_.encode(cells)[0, feature])
        if code >= 0:
            return code
        expected = f"a category of {format_categories(categories)}"
    elif feature in (model.dates_ or {}):
        cell, column = np.full((1, 1), value, dtype=object), model.dates_[feature]
        kind = learn_dates(cell).get(0)
        days = None if kind is None or not column.takes(kind) else read_days(cell[:, 0], repr(name))
        if days is not None and np.isfinite(days[0]):
            return float(days[0])
        expected = f"a value of the kind of the fit ({column.description})"
    elif isinstance(value, float | int | np.number | np.bool_) and np.isfinite(value):
        return float(value)
    raise ValueError(f"at must have {expected} for {name!r}, got {value!r}")


def _mix_with_white(colours: Any, strength: float) -> Float64:
    """Return colours mixed with white, (..., 3). strength: fraction of the colour, 0 to 1.

    colours: red, green and blue from 0 to 1, (..., 3), or with opacity, (..., 4), which is ignored.
    """
    mixed: Float64 = 1 - strength * (1 - np.asarray(colours)[..., :3])
    return mixed


def _draw_rectangles(ax: Any, regions: Sequence[tuple[tuple[Values, Values], Any]]) -> None:
    """Draw the rectangles of regions on matplotlib axes.

    ax: matplotlib Axes; regions: for each region a pair: the values of the features of the x and the
    y axis (intervals (low, high) or lists of category codes), and its colour.
    """
    corners, colours = [], []
    for (x_values, y_values), colour in regions:
        for x0, x1 in list_intervals(x_values):
            for y0, y1 in list_intervals(y_values):
                corners.append([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
                colours.append(colour)
    collections = import_extra("matplotlib.collections", "plot")
    # Lines in the colour of a rectangle cover the seams between rectangles.
    style = {"facecolors": colours, "edgecolors": colours, "linewidths": 0.3, "zorder": 0.5}
    rectangles = collections.PolyCollection(corners, **style)
    rectangles.set_gid("regions")
    ax.add_collection(rectangles)


def _draw_splits(ax: Any, splits: Sequence[PlaneSplit]) -> None:
    """Draw the lines of splits on matplotlib axes, thinner by depth and fainter by probability.

    ax: matplotlib Axes; splits: the splits of the plane by one of its two features.
    """
    lines, widths, colours = [], [], []
    rgb = import_extra("matplotlib.colors", "plot").to_rgb(INK)
    for split in splits:
        for position in split.positions:
            for begin, end in list_intervals(split.across):
                ends = [(position, begin), (position, end)]
                lines.append(ends if split.axis == 0 else [point[::-1] for point in ends])
                width = _SPLIT_WIDTH * _PER_LEVEL**split.depth
                widths.append(max(width, _MIN_SPLIT_WIDTH))
                colours.append((*rgb, split.probability))
    collections = import_extra("matplotlib.collections", "plot")
    drawn = collections.LineCollection(lines, linewidths=widths, colors=colours, zorder=1)
    drawn.set_gid("splits")
    ax.add_collection(drawn)


def _place_points(values: Float64, window: Sequence[Values]) -> Float64:
    """Return the positions of rows on both axes, (n, 2); NaN for unknown categories.

    values: encoded values of both features, (n, 2), not changed. window: for each axis the ends of
    the window, a tuple, or a list of the codes of all categories. Rows of category k are spread
    around k, by their position in the table.
    """
    places = values.copy()
    for k in range(2):
        if isinstance(window[k], list):
            places[places[:, k] < 0, k] = np.nan  # categories that the fit does not know
            places[:, k] += _SPREAD * ((np.arange(len(places)) * _GOLDEN) % 1 - 0.5)
    return places


def _draw_points(
    ax: Any, summary: TreeSummary, points: Float64, labels: NDArray[Any] | None, nodes: list[int]
) -> None:
    """Draw rows as points on axes.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on.
    summary : TreeSummary
        The tree, with the classes, or the unit of its predictions.
    points : ndarray of float64, shape (n, 2)
        Positions on both axes; rows with NaN are left out.
    labels : ndarray of shape (n,), or None
        Classes or numbers of the rows; None: all points are grey.
    nodes : list of int
        Numbers of the drawn nodes, whose predictions set the ends of the colour scale of numbers.
    """
    spread = np.unique(np.linspace(0, len(points) - 1, _MAX_POINTS).round().astype(np.intp))
    spread = spread[~np.isnan(points[spread]).any(axis=1)] if len(points) else spread[:0]
    x, y = points[spread].T
    size, edge = (14, 0.6) if len(x) <= _MANY_POINTS else (9, 0.35)
    style = {"s": size, "linewidths": edge, "edgecolors": "white", "zorder": 2}
    if labels is None:
        ax.scatter(x, y, color="0.35", **style)
    elif summary.outputs is None:
        style |= {"cmap": SEQUENTIAL}
        low, high = _get_value_range(summary, nodes)
        ax.scatter(x, y, c=labels[spread].astype(np.float64), vmin=low, vmax=high, **style)
    else:
        for k, label in enumerate(summary.outputs):
            chosen = labels[spread] == label
            ax.scatter(x[chosen], y[chosen], color=_get_class_colour(summary, k), **style)


def _get_value_range(summary: TreeSummary, nodes: list[int]) -> tuple[float, float]:
    """Return the lowest and the highest prediction of some nodes of a regression tree.

    summary: the tree with its predictions; nodes: numbers of the nodes, at least one.
    """
    values = summary.predictions[nodes, -1]
    return float(values.min()), float(values.max())


def _get_class_colour(summary: TreeSummary, k: int) -> str:
    """Return the colour of class k as a string for matplotlib.

    Two classes have the ends of the diverging colour scale. summary: the tree with its classes.
    """
    assert summary.outputs is not None  # Only classifiers have classes.
    return DIVERGING[2 * k] if len(summary.outputs) == 2 else CLASSES[k % len(CLASSES)]


def _label_axis(axis: Any, model: Any, feature: int, values: Values, is_log: bool) -> None:
    """Set the name, the limits, the scale and the tick labels of the axis of a feature.

    Parameters
    ----------
    axis : matplotlib Axis
        The x axis or the y axis.
    model : fitted estimator of certree
        The model, with names, categories and dates.
    feature : int
        Index of the feature.
    values : tuple or list
        Ends of the window, or the codes of all categories.
    is_log : bool
        Whether the axis is logarithmic.
    """
    intervals = list_intervals(values)
    is_x = axis.axis_name == "x"
    if is_log:
        (axis.axes.set_xscale if is_x else axis.axes.set_yscale)("log")
    (axis.axes.set_xlim if is_x else axis.axes.set_ylim)(intervals[0][0], intervals[-1][1])
    axis.set_label_text(shorten_label(model._encoded_names()[feature]), parse_math=False)
    date_column = (model.dates_ or {}).get(feature)
    if isinstance(values, list):
        shown = values[:: -(-len(values) // _MAX_LABELS)]
        names = [_get_categories(model, feature)[code] for code in shown]  # type: ignore[index]
        texts = [f"{n:.15g}" if isinstance(n, float) else str(n) for n in names]
        texts = [shorten_label(text, _MAX_LETTERS) for text in texts]
        is_long = is_x and sum(map(len, texts)) > 60
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
        axis.set_ticks(shown, texts, parse_math=False, **turned)
        axis.set_tick_params(length=0)
    elif date_column is not None and date_column.kind != "span":
        dates = import_extra("matplotlib.dates", "plot")
        zone = None if date_column.zone is None else find_zone(date_column.zone)
        locator = dates.AutoDateLocator(tz=zone)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=zone))
    elif date_column is not None:
        axis.set_label_text(f"{shorten_label(model._encoded_names()[feature])} (days)")
    elif is_log:
        axis.set_major_formatter(_NUMBER)
        ticker = import_extra("matplotlib.ticker", "plot")
        if intervals[0][1] < _MAX_LABELLED_RATIO * intervals[0][0]:
            axis.set_minor_locator(ticker.LogLocator(subs=(2, 5)))
            axis.set_minor_formatter(_NUMBER)
        else:
            axis.set_minor_formatter(ticker.NullFormatter())


def _explain_colours(ax: Any, summary: TreeSummary, nodes: list[int]) -> None:
    """Add a legend of the classes, or a colour bar of probabilities or numbers, beside axes.

    ax: matplotlib Axes. summary: the tree with its predictions. nodes: numbers of the nodes that are
    drawn, whose predictions set the ends of the scale of numbers.
    """
    matplotlib = import_extra("matplotlib", "plot")
    if summary.outputs is not None and len(summary.outputs) != 2:
        patches = import_extra("matplotlib.patches", "plot")
        shown = [*enumerate(summary.outputs)][: len(CLASSES)]
        handles = [
            patches.Patch(color=_get_class_colour(summary, k), label=shorten_label(str(label)))
            for k, label in shown
        ]
        legend = ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1))
        for text in legend.get_texts():
            text.set_parse_math(False)
        return
    colors = import_extra("matplotlib.colors", "plot")
    if summary.outputs is None:
        low, high = _get_value_range(summary, nodes)
        colormap, label = matplotlib.colormaps[SEQUENTIAL], "prediction"
    else:
        low, high, label = 0.0, 1.0, f"probability of {shorten_label(str(summary.outputs[1]))}"
        diverging = colors.LinearSegmentedColormap.from_list("diverging", DIVERGING)
        colormap = colors.ListedColormap(
            _mix_with_white(diverging(np.linspace(0, 1, 256)), _STRENGTH)
        )
    scale = import_extra("matplotlib.cm", "plot").ScalarMappable(
        colors.Normalize(low, high), colormap
    )
    bar = ax.figure.colorbar(scale, ax=ax, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter(_NUMBER)
    bar.ax.set_ylabel(label, parse_math=False)


def _describe_fixed(
    summary: TreeSummary, names: Sequence[str], row: Float64, fixed: Sequence[int]
) -> str:
    """Return the second line of the title: the values of the features without an axis.

    Parameters
    ----------
    summary : TreeSummary
        The tree, with categories and dates.
    names : sequence of str
        Names of all features.
    row : ndarray of float64, shape (p,)
        Their encoded values.
    fixed : sequence of int
        The features without an axis; only the first four are named.

    Returns
    -------
    str
        It begins with a line break; "" if all features have an axis.
    """
    texts = []
    for feature in fixed[:_MAX_FIXED]:
        value, explainer = float(row[feature]), summary.explainer
        dates, categories = explainer.dates or {}, explainer.categories
        if feature in dates:
            text = dates[feature].format(value)
        elif categories is not None and categories[feature] is not None:
            text = str(explainer.get_category_names(feature, [int(value)])[0])
        else:
            text = format_four_digits(value)
        texts.append(f"{shorten_label(names[feature])} = {shorten_label(text, _MAX_LETTERS)}")
    if len(fixed) > _MAX_FIXED:
        n_others = format_quantity(len(fixed) - _MAX_FIXED, "other feature", "other features")
        texts.append(f"{n_others} fixed")
    return f"\nat {', '.join(texts)}" if texts else ""
