"""A picture of a tree with the shares of its cells."""

from collections.abc import Callable
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import numpy as np

from certree.explain.path import Branch, ExplainedCell
from certree.extras import needed
from certree.fitted import state_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from certree.estimators.tree_vote import TreeVoteEstimator


def plot_tree(model: "TreeVoteEstimator", max_leaves: int = 8) -> "Figure":
    """Draw the part of a fitted model's tree that matters most to the vote.

    A box is coloured by the class or the number that its cell predicts, the more strongly the larger
    the share of the vote that the cell has; dashed boxes are split further.

    Parameters
    ----------
    model : fitted estimator of certree
        The model.
    max_leaves : int
        At most so many leaves are shown.

    Returns
    -------
    matplotlib Figure
    """
    if not hasattr(model, "_explainer"):
        raise TypeError(
            f"model must be an estimator of certree with a tree, got {shortened(model)}"
        )
    model = state_of(model)
    root = model._explainer().shown(max_leaves)
    places: dict[int, tuple[float, int]] = {}
    n_leaves = _place(root, places)
    depth = max(level for _, level in places.values())
    # Neighbours must not cover each other: some 0.06 inches for each letter of the longest rule.
    width = max(1.75, 0.3 + 0.06 * max(len(cell.rule) for cell in _cells(root)))
    size = (1.2 + width * n_leaves, 1.1 + 1.15 * depth)
    figure: Figure = needed("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set_xlim(-0.6, n_leaves - 0.4)
    ax.set_ylim(-depth - 0.5, 0.5)
    colour_of = _colours(model, root)
    stack = [root]
    while stack:
        branch = stack.pop()
        stack.extend(branch.children)
        _draw_branch(ax, branch, places, colour_of(branch.cell.label))
    return figure


def _colours(model: "TreeVoteEstimator", root: Branch) -> Callable[[Any], Any]:
    """The colour of what a cell predicts: one for each class, or a scale of numbers."""
    colormaps = needed("matplotlib", "plot").colormaps
    if hasattr(model, "classes_"):
        palette = colormaps["tab10"](range(10))
        labels = [str(label) for label in model.classes_]
        return lambda label: palette[labels.index(str(label)) % 10, :3]
    numbers = [cell.label for cell in _cells(root)]
    scale = needed("matplotlib.colors", "plot").Normalize(min(numbers), max(numbers))
    return lambda label: colormaps["viridis"](float(scale(label)))[:3]


def _cells(root: Branch) -> list[ExplainedCell]:
    return [root.cell, *(cell for child in root.children for cell in _cells(child))]


def _place(root: Branch, places: dict[int, tuple[float, int]]) -> int:
    """Leaves side by side, every other node above the middle of its children; counts the leaves."""
    n_leaves = 0
    stack = [(root, 0, False)]
    while stack:
        branch, level, placed_below = stack.pop()
        if not branch.children:
            places[branch.cell.node] = (float(n_leaves), level)
            n_leaves += 1
        elif placed_below:
            x = float(np.mean([places[child.cell.node][0] for child in branch.children]))
            places[branch.cell.node] = (x, level)
        else:
            stack.append((branch, level, True))
            stack.extend((child, level + 1, False) for child in reversed(branch.children))
    return n_leaves


def _draw_branch(
    ax: Any, branch: Branch, places: dict[int, tuple[float, int]], colour: Any
) -> None:
    x, level = places[branch.cell.node]
    for child in branch.children:
        below, _ = places[child.cell.node]
        ax.plot([x, below], [-level, -level - 1], color="0.6", linewidth=1, zorder=1)
    cell = branch.cell
    strength = 0.12 + 0.68 * min(cell.share, 1.0)
    ax.text(
        x,
        -level,
        f"{cell.rule}\n{cell.rows:g} rows: {cell.prediction}\n{100 * cell.share:.1f} % of the vote",
        ha="center",
        va="center",
        fontsize=7.5,
        parse_math=False,  # a dollar sign in a name is a dollar sign
        zorder=2,
        bbox={
            "boxstyle": "round",
            "facecolor": (1 - strength) + strength * np.array(colour),
            "edgecolor": "0.3",
            "linestyle": "--" if branch.hidden else "-",
        },
    )
