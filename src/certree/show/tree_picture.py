"""Figure of a tree, from left to right: rules, predictions and numbers of rows of its nodes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.explain.path import ShownNode
from certree.interface.arrays import Float64
from certree.interface.extras import import_extra
from certree.interface.formatting import (
    escape_controls,
    format_bound,
    format_percent,
    format_quantity,
    format_row_total,
    shorten_label,
)
from certree.show.style import (
    CLASSES,
    DIVERGING,
    FAINT,
    INK,
    SEQUENTIAL,
    SMALL,
    WIDE,
    Figure,
    count_letters,
    new_figure,
    set_title,
    use_style,
)
from certree.show.tree_summary import TreeSummary, summarize_tree

# Inches: height of a line of text, gap between nodes, size of a box, largest indent of a child.
_LINE_HEIGHT, _GAP, _BOX, _MAX_INDENT = 0.15, 0.07, 0.12, 1.25
# Largest fraction of the width that all indents take; the text of the deepest nodes has the rest.
_MAX_INDENT_FRACTION = 0.62
# Width of the line for all rows (points); other lines are thinner in proportion to their rows.
_MAX_LINE_WIDTH = 4.5


@use_style
def plot_tree(
    model: Any,
    max_leaves: int = 8,
    ax: Any = None,
    *,
    number: int = 0,
    X: ArrayLike | None = None,
) -> Figure:
    """Draw the most important subtree of a tree, from left to right.

    The colour of a box shows the prediction: the probability of the second of two classes, the most
    probable of more classes, or the number from low to high. The width of a line shows the number
    of rows. Beside each box are the rule, the prediction, the number of rows, and the number of
    leaves that are not shown. Leaves have the numbers of `rules`. Those of a certified tree also
    have a bound on the error and the number of calibration rows; the title says why if not.

    Parameters
    ----------
    model : fitted estimator of certree with a tree
        A model that votes over the prunings of one tree, or a forest, boosted trees or AdaBoost.
    max_leaves : int, default=8
        Largest number of leaves to draw. Nodes are expanded in the order of their rows times the
        posterior probability that a pruning splits them, which is 1 in an ensemble.
    ax : matplotlib Axes or None
        Axes to draw on; None: those of a new figure, 11 inches wide and as high as needed.
    number : int, default=0
        Index of the tree in an ensemble; not used for a single tree.
    X : array-like of shape (n, p), or None
        Rows to count in the nodes; None: the training rows, whose counts only single trees keep.

    Returns
    -------
    matplotlib Figure
        The figure of the axes.

    Raises
    ------
    TypeError
        If the model is not an estimator of certree with a tree.
    ValueError
        If `max_leaves` is below 1, `number` is out of range, or X is None for an ensemble.
    """
    summary = summarize_tree(model, number, X)
    root = summary.select_branches(max_leaves)
    width = WIDE if ax is None else ax.get_window_extent().width / ax.figure.dpi
    nodes = _lay_out_nodes(root, width - 0.2, summary)
    height = nodes[-1].bottom
    if ax is None:
        title_height = 0.75 if summary.bounds is None else 0.95
        ax = new_figure((width, height + title_height)).add_subplot()
    ax.set_axis_off()
    ax.set_xlim(0, width - 0.2)
    ax.set_ylim(height, 0)
    set_title(ax, _describe_tree(model, summary, root, number) + _describe_bounds(summary))
    get_colour = create_colour_scale(summary, [node.branch.cell.node for node in nodes])
    node_by_number = {node.branch.cell.node: node for node in nodes}
    for node in nodes:
        _draw_lines(ax, node, node_by_number, summary)
    for node in nodes:
        _draw_box(ax, node, summary, get_colour(node.branch.cell.node))
    figure: Figure = ax.figure
    return figure


@dataclass(frozen=True, slots=True, eq=False)
class _DrawnNode:
    """A node of a drawn tree with its position (inches from the top left corner) and its texts.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    branch : ShownNode
        The node: `cell` has its index (`node`), rule and number of rows, and `children` the left
        and the right child, or nothing if they are not drawn.
    x, y : float
        Centre of its box.
    bottom : float
        Lower end of the text below its box.
    rule : list of str
        Lines above y: the test that leads from the parent to the node.
    prediction : list of str
        Lines below y: the prediction with the number of rows, and a bound on the error if there is
        one.
    """

    branch: ShownNode
    x: float
    y: float
    bottom: float
    rule: list[str]
    prediction: list[str]


def _lay_out_nodes(root: ShownNode, width: float, summary: TreeSummary) -> list[_DrawnNode]:
    """Compute positions and texts of the nodes of a drawn tree, from top to bottom.

    Deeper nodes stand further right. The node at the top is the leftmost leaf.

    Parameters
    ----------
    root : ShownNode
        Root of the subtree to draw; `children` of each node holds those to draw.
    width : float
        Width of the drawing in inches, to which rules are wrapped.
    summary : TreeSummary
        The tree, with the prediction, the number of rows and the rule of each node, and bounds on
        the errors of a certified tree.

    Returns
    -------
    list of _DrawnNode
        All nodes to draw. A node stands between its left and its right subtree, so no line crosses
        a text.
    """
    order = list(_iterate_in_order(root))
    depth = max(level for _, level in order)
    indent = min(_MAX_INDENT, _MAX_INDENT_FRACTION * width / max(depth, 1))
    nodes: list[_DrawnNode] = []
    top = 0.0
    for branch, level in order:
        x = _BOX + level * indent
        # Feature names may be longer than a line.
        rule = textwrap.shorten(escape_controls(branch.cell.rule), 400, placeholder=" ...")
        if branch.cell.number is not None and not branch.children:
            rule = f"{branch.cell.number}: {rule}"
        lines = textwrap.wrap(rule, count_letters(width - x - 0.2, SMALL)) or [""]
        prediction = _format_node(branch, summary)
        middle = top + _LINE_HEIGHT * len(lines)
        bottom = middle + _LINE_HEIGHT * len(prediction)
        nodes.append(_DrawnNode(branch, x, middle, bottom, lines, prediction))
        top = bottom + _GAP
    return nodes


def _format_node(branch: ShownNode, summary: TreeSummary) -> list[str]:
    """Return the lines of text below the box of a node.

    The first line has the prediction and the number of rows. If nodes have bounds, a leaf of the
    drawn subtree has a second line, with the upper bound on the error for new rows that reach it,
    and the number of calibration rows. branch: the node; it is a leaf if its `children` are empty.
    summary: the tree with the predictions and bounds of its nodes.
    """
    node, bounds = branch.cell.node, summary.bounds
    n_rows = format_row_total(branch.cell.rows, "row" if bounds is None else "training row")
    lines = [f"{escape_controls(summary.format_prediction(node))} · {n_rows}"]
    if bounds is not None and not branch.children:
        bound, n_calibration = bounds.get_bound(node), bounds.count_rows(node)
        known = [] if bound is None else [f"error <= {format_bound(bound)}"]
        if n_calibration is not None:
            known.append(format_quantity(n_calibration, "calibration row"))
        lines += [" · ".join(known)] if known else []
    return lines


def _iterate_in_order(root: ShownNode) -> Iterator[tuple[ShownNode, int]]:
    """Yield (node, depth) for all nodes of a subtree, in order: left subtree, node, right subtree.

    The depth is 0 for `root`. root: root of the subtree; `children` of a node holds its left and
    right child, or is empty.
    """
    stack: list[tuple[ShownNode, int, bool]] = [(root, 0, False)]
    while stack:
        branch, level, is_open = stack.pop()
        if is_open or not branch.children:
            yield branch, level
            continue
        left, right = branch.children
        stack += [(right, level + 1, False), (branch, level, True), (left, level + 1, False)]


def _draw_lines(
    ax: Any, node: _DrawnNode, node_by_number: dict[int, _DrawnNode], summary: TreeSummary
) -> None:
    """Draw on axes the lines from a node to its children, whose widths show the children's rows.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes whose data units are inches.
    node : _DrawnNode
        The node; nothing is drawn if it has no drawn children.
    node_by_number : dict of int to _DrawnNode
        All drawn nodes, with their positions, by their index in the tree.
    summary : TreeSummary
        The tree; the rows of its root have the widest line.
    """
    rows = summary.explainer.rows_per_node
    for child in node.branch.children:
        end = node_by_number[child.cell.node]
        fraction = child.cell.rows / rows[0] if rows[0] > 0 else 0.0
        line = {"color": "0.65", "zorder": 1, "solid_joinstyle": "miter"}
        line_width = 0.6 + _MAX_LINE_WIDTH * fraction
        ax.plot([node.x, node.x, end.x], [node.y, end.y, end.y], lw=line_width, **line)


def _draw_box(ax: Any, node: _DrawnNode, summary: TreeSummary, colour: Any) -> None:
    """Draw on axes the box of a node and its texts: rule, prediction and bound.

    If the figure leaves out the children of the node, the box is dashed, and a further text says
    how many leaves are below.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes whose data units are inches.
    node : _DrawnNode
        The node with its position and texts.
    summary : TreeSummary
        The tree, with the prediction, the number of rows and the rule of each node, and bounds on
        the errors of a certified tree.
    colour : matplotlib colour
        Fill colour of the box.
    """
    rectangle = import_extra("matplotlib.patches", "plot").Rectangle
    corner = (node.x - _BOX / 2, node.y - _BOX / 2)
    branch, number = node.branch, node.branch.cell.node
    line = "--" if branch.has_hidden_children else "-"
    box = rectangle(corner, _BOX, _BOX, facecolor=colour, edgecolor=INK, lw=0.7, ls=line, zorder=3)
    ax.add_patch(box)
    # Names are not parsed as formulas, as they may contain dollar signs.
    style = {"fontsize": SMALL, "parse_math": False, "zorder": 2}
    x = node.x + 0.8 * _BOX
    # The rule stands above the line to the children, the prediction below it.
    rule = ax.text(x, node.y, "\n".join(node.rule), va="bottom", linespacing=1.25, **style)
    rule.set_gid("rule")
    bold = ax.text(x, node.y, node.prediction[0], va="top", weight="bold", **style)
    bold.set_gid("prediction")
    if branch.has_hidden_children:
        position = {"xycoords": bold, "xy": (1, 1), "va": "top", "color": FAINT}
        n_hidden = format_quantity(summary.n_leaves_below[number], "leaf", "leaves")
        ax.annotate(f"  {n_hidden} below", **position, **style)
    for bound in node.prediction[1:]:
        ax.text(x, node.y + _LINE_HEIGHT, bound, va="top", **style).set_gid("bound")


def create_colour_scale(summary: TreeSummary, nodes: list[int]) -> Callable[[int], Any]:
    """Return the function from a node's index to its colour: red, green, blue, perhaps opacity.

    With more than two classes the hue is that of the most probable class; otherwise a colour scale
    runs over the probability of the second class, or over the predicted numbers from low to high.
    For raw scores (leaf values of boosted trees or AdaBoost) the scale is symmetric about 0.

    summary: the tree with its predictions. nodes: indices of the nodes to draw, whose predictions
    set the ends of the scale of numbers or raw scores; that of probabilities runs from 0 to 1.
    """
    colors = import_extra("matplotlib.colors", "plot")
    predictions = summary.predictions
    if summary.outputs is not None and predictions.shape[1] > 2:
        return lambda node: _blend_class_colour(colors, predictions[node])
    if summary.scale == "target":
        values = predictions[nodes, -1]
        scale = colors.Normalize(values.min(), values.max())
        colormap = import_extra("matplotlib", "plot").colormaps[SEQUENTIAL]
        return lambda node: colormap(float(scale(predictions[node, -1])))
    diverging = colors.LinearSegmentedColormap.from_list("diverging", DIVERGING)
    if summary.scale == "probability":
        return lambda node: diverging(float(predictions[node, -1]))
    largest = float(np.abs(predictions[nodes]).max()) or 1.0
    return lambda node: diverging(0.5 + 0.5 * float(predictions[node, -1]) / largest)


def _blend_class_colour(colors: Any, probabilities: Float64) -> Any:
    """Return the colour of the most probable class as red, green and blue (3,), each from 0 to 1.

    The lower its probability, the closer it is to white. colors: the module matplotlib.colors.
    probabilities: those of all classes, (K,), or raw scores, which are clipped to 0 to 1.
    """
    first = int(probabilities.argmax())
    colour = np.array(colors.to_rgb(CLASSES[first % len(CLASSES)]))
    strength = 0.25 + 0.75 * min(max(float(probabilities[first]), 0.0), 1.0)
    return 1 - strength * (1 - colour)


def _describe_tree(model: Any, summary: TreeSummary, root: ShownNode, number: int) -> str:
    """Return the title of the figure, such as "age is most important: 40 % of the total".

    The total is that of `model.feature_importances_`. The number of leaves follows, such as "8 of
    20 leaves" if not all are drawn. For a tree of an ensemble the title names the feature of the
    first split instead.

    Parameters
    ----------
    model : fitted estimator of certree
        The model of the tree.
    summary : TreeSummary
        The tree, with the prediction, the number of rows and the rule of each node, and bounds on
        the errors of a certified tree.
    root : ShownNode
        Root of the subtree that is drawn; `children` of each node holds those that are drawn.
    number : int
        Index of the tree in an ensemble; not used for a single tree.
    """
    n_leaves = summary.tree.n_leaves
    n_shown = (1 + sum(1 for _ in _iterate_in_order(root))) // 2
    leaves = f"{n_shown} of " * (n_shown < n_leaves) + format_quantity(n_leaves, "leaf", "leaves")
    if hasattr(model, "trees_"):
        tree = f"Tree {number % len(model.trees_) + 1} of {len(model.trees_):,}"
        if not root.children:
            return f"{tree} has no splits"
        feature = shorten_label(model._encoded_names()[summary.tree.feature[0]])
        return f"{tree} splits on {feature} first · {leaves}"
    importances = model.feature_importances_
    first = int(importances.argmax())
    if not root.children or not importances[first] > 0:
        return f"No feature has any importance · {leaves}"
    name = shorten_label(model._feature_names()[first])
    fraction = format_percent(importances[first])
    return f"{name} is most important: {fraction} of the total · {leaves}"


def _describe_bounds(summary: TreeSummary) -> str:
    """Return the second line of the figure's title, on the bounds on the errors of the leaves.

    It begins with a line break, and states the probability with which all bounds hold together, or
    why there are none. It is "" if `summary.bounds` is None. summary: the tree with the predictions
    and bounds of its nodes.
    """
    return "" if summary.bounds is None else f"\n{summary.bounds.title.rstrip('.')}"
