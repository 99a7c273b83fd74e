"""A picture of a tree, from left to right: rules, rows, and what is predicted in its cells."""

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
    format_confidence,
    format_percent,
    format_quantity,
    shorten_label,
)
from certree.show.cells import Cells, cells_of
from certree.show.style import (
    CLASSES,
    DIVERGING,
    FAINT,
    INK,
    SEQUENTIAL,
    SMALL,
    WIDE,
    Figure,
    letters,
    new_figure,
    styled,
    titled,
)

# Inches: of a line of words, between nodes, of a box, and at most from one level to the next.
_LINE, _GAP, _BOX, _STEP = 0.15, 0.07, 0.12, 1.25
# All levels take at most so much of the width; the words of the last one have the rest.
_LEVELS = 0.62
# Width of the thickest line (points), that of all rows.
_THICK = 4.5


@styled
def plot_tree(
    model: Any,
    max_leaves: int = 8,
    ax: Any = None,
    *,
    number: int = 0,
    X: ArrayLike | None = None,
) -> Figure:
    """Draw the part of a tree that matters most to what is predicted, from left to right.

    A box is coloured by what the model predicts there: of two classes by the probability of the second,
    of more by the likeliest, numbers from low to high. A line is as wide as its rows are many. Behind
    each rule stand prediction and rows, and how many more cells a box hides that is split further.
    Below the leaves of a certified tree stand bounds on its error, if its certifying rows are at hand.

    Parameters
    ----------
    model : fitted estimator of certree with a tree
        The model.
    max_leaves : int, default=8
        At most so many leaves are shown: boxes are opened in the order of their rows times the
        probability that a pruning splits them.
    ax : matplotlib Axes or None
        Where to draw; None: on a new figure, 11 inches wide and as high as it takes.
    number : int, default=0
        Which tree of an ensemble.
    X : array-like of shape (n, p), or None
        The rows that are counted in the cells; None: those of the fit, which ensembles do not keep.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    TypeError
        If the model has no tree of certree.
    ValueError
        If `max_leaves` is below 1, there is no such tree, or an ensemble comes without `X`.
    """
    cells = cells_of(model, number, X)
    root = cells.shown(max_leaves)
    width = WIDE if ax is None else ax.get_window_extent().width / ax.figure.dpi
    placed = _placed(root, width - 0.2, cells)
    height = placed[-1].bottom
    if ax is None:
        title = 0.75 if cells.certified is None else 0.95
        ax = new_figure((width, height + title)).add_subplot()
    ax.set_axis_off()
    ax.set_xlim(0, width - 0.2)
    ax.set_ylim(height, 0)
    titled(ax, _title(model, cells, root, number) + _caption(cells))
    colour_of = _colours(cells, [node.branch.cell.node for node in placed])
    nodes = {node.branch.cell.node: node for node in placed}
    for node in placed:
        _draw_lines(ax, node, nodes, cells)
    for node in placed:
        _draw_box(ax, node, cells, colour_of(node.branch.cell.node))
    drawn: Figure = ax.figure
    return drawn


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """A node with its place (inches from the left and the top) and its words, line by line."""

    branch: ShownNode
    x: float
    y: float
    bottom: float
    rule: list[str]
    said: list[str]


def _placed(root: ShownNode, width: float, cells: Cells) -> list[_Node]:
    """All nodes from top to bottom, each between those on its two sides.

    So no line crosses words: what lies to the right of a node belongs to other rows.
    """
    order = list(_in_order(root))
    depth = max(level for _, level in order)
    step = min(_STEP, _LEVELS * width / max(depth, 1))
    placed: list[_Node] = []
    top = 0.0
    for branch, level in order:
        x = _BOX + level * step
        # Names may be longer than any line.
        rule = textwrap.shorten(escape_controls(branch.cell.rule), 400, placeholder=" ...")
        lines = textwrap.wrap(rule, letters(width - x - 0.2, SMALL)) or [""]
        said = _said(branch, cells)
        middle = top + _LINE * len(lines)
        bottom = middle + _LINE * len(said)
        placed.append(_Node(branch, x, middle, bottom, lines, said))
        top = bottom + _GAP
    return placed


def _said(branch: ShownNode, cells: Cells) -> list[str]:
    """What stands below the line of a node."""
    node = branch.cell.node
    said = [f"{escape_controls(cells.words(node))} · {format_quantity(branch.cell.rows, 'row')}"]
    if cells.certified is not None and not branch.children:
        said.append(f"error <= {format_bound(cells.certified[node].bound)}")
    return said


def _in_order(root: ShownNode) -> Iterator[tuple[ShownNode, int]]:
    """Nodes with their levels: what is to the left, the node itself, what is to the right."""
    stack: list[tuple[ShownNode, int, bool]] = [(root, 0, False)]
    while stack:
        branch, level, is_open = stack.pop()
        if is_open or not branch.children:
            yield branch, level
            continue
        left, right = branch.children
        stack += [(right, level + 1, False), (branch, level, True), (left, level + 1, False)]


def _draw_lines(ax: Any, node: _Node, nodes: dict[int, _Node], cells: Cells) -> None:
    rows = cells.explainer.rows_per_node
    for child in node.branch.children:
        to = nodes[child.cell.node]
        share = child.cell.rows / rows[0] if rows[0] > 0 else 0.0
        line = {"color": "0.65", "zorder": 1, "solid_joinstyle": "miter"}
        ax.plot([node.x, node.x, to.x], [node.y, to.y, to.y], lw=0.6 + _THICK * share, **line)


def _draw_box(ax: Any, node: _Node, cells: Cells, colour: Any) -> None:
    rectangle = import_extra("matplotlib.patches", "plot").Rectangle
    corner = (node.x - _BOX / 2, node.y - _BOX / 2)
    branch, number = node.branch, node.branch.cell.node
    line = "--" if branch.has_hidden_children else "-"
    box = rectangle(corner, _BOX, _BOX, facecolor=colour, edgecolor=INK, lw=0.7, ls=line, zorder=3)
    ax.add_patch(box)
    # A dollar sign in a name is a dollar sign.
    style = {"fontsize": SMALL, "parse_math": False, "zorder": 2}
    x = node.x + 0.8 * _BOX
    # Rules above the line that leads to the children, predictions below.
    rule = ax.text(x, node.y, "\n".join(node.rule), va="bottom", linespacing=1.25, **style)
    rule.set_gid("rule")
    bold = ax.text(x, node.y, node.said[0], va="top", weight="bold", **style)
    bold.set_gid("prediction")
    if branch.has_hidden_children:
        beside = {"xycoords": bold, "xy": (1, 1), "va": "top", "color": FAINT}
        ax.annotate(
            f"  {format_quantity(cells.leaves_below[number], 'cell')} inside", **beside, **style
        )
    for bound in node.said[1:]:
        ax.text(x, node.y + _LINE, bound, va="top", **style).set_gid("bound")


def _colours(cells: Cells, nodes: list[int]) -> Callable[[int], Any]:
    """The colour of what a node predicts."""
    colors = import_extra("matplotlib.colors", "plot")
    said = cells.said
    if cells.outputs is not None and said.shape[1] > 2:
        return lambda node: _mixed(colors, said[node])
    if cells.scale == "target":
        values = said[nodes, -1]
        scale = colors.Normalize(values.min(), values.max())
        colormap = import_extra("matplotlib", "plot").colormaps[SEQUENTIAL]
        return lambda node: colormap(float(scale(said[node, -1])))
    diverging = colors.LinearSegmentedColormap.from_list("diverging", DIVERGING)
    if cells.scale == "probability":
        return lambda node: diverging(float(said[node, -1]))
    largest = float(np.abs(said[nodes]).max()) or 1.0
    return lambda node: diverging(0.5 + 0.5 * float(said[node, -1]) / largest)


def _mixed(colors: Any, said: Float64) -> Any:
    """The colour of the leading class, the paler the less it leads."""
    leader = int(said.argmax())
    colour = np.array(colors.to_rgb(CLASSES[leader % len(CLASSES)]))
    strength = 0.25 + 0.75 * min(max(float(said[leader]), 0.0), 1.0)
    return 1 - strength * (1 - colour)


def _title(model: Any, cells: Cells, root: ShownNode, number: int) -> str:
    n_leaves = cells.tree.n_leaves
    n_shown = (1 + sum(1 for _ in _in_order(root))) // 2
    part = f"{n_shown} of " * (n_shown < n_leaves) + format_quantity(n_leaves, "cell")
    if hasattr(model, "trees_"):
        tree = f"Tree {number % len(model.trees_) + 1} of {len(model.trees_):,}"
        if not root.children:
            return f"{tree} asks nothing"
        name = shorten_label(model._feature_names()[cells.tree.feature[0]])
        return f"{tree} asks for {name} first · {part}"
    importances = model.feature_importances_
    first = int(importances.argmax())
    if not root.children or not importances[first] > 0:
        return f"Nothing tells the rows apart · {part}"
    name = shorten_label(model._feature_names()[first])
    return f"{name} decides most: {format_percent(importances[first])} of what all splits tell · {part}"


def _caption(cells: Cells) -> str:
    """A line on how the bounds hold."""
    if cells.certified is None:
        return ""
    confidence = format_confidence(cells.certified.terms.delta)
    return f"\nBounds on the error hold with {confidence}, all at once"
