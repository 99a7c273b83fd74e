"""The section that holds trees to walk through: columns of numbers, and the words that go with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.estimators.tree_vote import TreeVoteEstimator
from certree.explain.path import ShownNode
from certree.show.cells import Cells, cells_of
from certree.show.page.judged import Judged
from certree.show.page.markup import Html, data_of, tag
from certree.show.page.section import Section
from certree.show.style import CLASSES, DIVERGING

# Letters of a tree on a page at most, leaves at first, and leaves that are open in the beginning.
_LETTERS, _LEAVES, _OPEN = 600_000, 6000, 10
# Trees of an ensemble that a page holds, letters for each, and rows that are counted in them at most.
_TREES, _LETTERS_OF_TREES, _COUNTED = 3, 450_000, 50_000
# Rows that can be picked.
_PICKED = 24


def explorer(judged: Judged) -> Section | None:
    """The tree, or the first trees, to be walked through."""
    model = judged.model
    trees = getattr(model, "trees_", None)
    if not isinstance(model, TreeVoteEstimator) and not trees:
        return None
    if trees:
        rows = judged.rows(judged.some(_COUNTED))
        numbers = range(min(len(trees), _TREES))
        shown = [(f"tree {i + 1} of {len(trees):,}", cells_of(model, i, rows)) for i in numbers]
        drawn = [tree_data(cells, title, _LETTERS_OF_TREES) for title, cells in shown]
    else:
        shown = [("the tree", cells_of(model))]
        drawn = [tree_data(shown[0][1], "the tree")]
    explained = shown[0][1].explainer
    sets = explained.categories or [None] * len(explained.feature_names)
    picked = judged.picked(_PICKED)
    data = {
        "trees": drawn,
        "features": [str(name) for name in explained.feature_names],
        "categories": [None if one is None else [str(name) for name in one] for one in sets],
        "rows": row_data(judged.coded[picked]),
        "classes": CLASSES,
        "diverging": DIVERGING,
        "titles": [judged.title_of(i) for i in picked.tolist()],
    }
    script = f'<script type="application/json" id="tree-data">{data_of(data)}</script>'
    counted = "rows given to this page" if trees else "rows of the fit"
    words = tag("p", f"Numbers of rows are those of the {counted}.")
    holder = tag("div", id="explorer")
    return Section("tree", "Walk through the tree", words + holder + Html(script))


def tree_data(cells: Cells, title: str, letters: int = _LETTERS) -> dict[str, Any]:
    """A tree, cut to its most important leaves where all of them would make a page too large."""
    n_leaves = _LEAVES
    while True:
        data = _columns(cells, title, n_leaves)
        if n_leaves <= _OPEN or len(data_of(data)) <= letters:
            return data
        n_leaves //= 2


def _columns(cells: Cells, title: str, max_leaves: int) -> dict[str, Any]:
    branches = _numbered(cells.shown(max_leaves))
    nodes = np.array([branch.cell.node for branch in branches])
    place = {node: number for number, node in enumerate(nodes.tolist())}
    tree, below = cells.tree, cells.leaves_below
    inner = [bool(branch.children) for branch in branches]
    leaders = np.array([cells.leader(int(node)) for node in nodes])
    opened = _numbered(cells.shown(_OPEN))
    return {
        "title": title,
        "feature": np.where(inner, tree.feature[nodes], -1).tolist(),
        "threshold": np.where(inner, np.nan_to_num(tree.threshold[nodes]), 0.0).tolist(),
        "left": [
            place[int(branch.children[0].cell.node)] if branch.children else -1
            for branch in branches
        ],
        "missingLeft": tree.missing_left[nodes].astype(int).tolist(),
        "missingBoth": np.flatnonzero(tree.missing_both[nodes]).tolist(),
        "sets": {
            i: codes
            for i, node in enumerate(nodes)
            if inner[i] and (codes := tree.category_set(int(node)).tolist())
        },
        "rows": [_short(value) for value in cells.explainer.rows_per_node[nodes]],
        "leader": leaders.tolist(),
        "said": [_short(value) for value in cells.said[nodes, leaders]],
        "inside": {
            i: int(below[node]) for i, node in enumerate(nodes) if branches[i].has_hidden_children
        },
        "open": [place[branch.cell.node] for branch in opened if branch.children],
        "outputs": None if cells.outputs is None else [str(name) for name in cells.outputs],
        "scale": cells.scale,
    }


def _numbered(root: ShownNode) -> list[ShownNode]:
    """Nodes in the order of their numbers on the page: parents first, siblings beside each other."""
    found = [root]
    for branch in found:
        found.extend(branch.children)
    return found


def _short(value: float) -> float:
    """Five digits, or all of a whole number."""
    value = float(value)
    return int(value) if value.is_integer() else float(f"{value:.5g}")


def row_data(coded: NDArray[Any]) -> list[list[float | None]]:
    """Rows as trees see them; None is a missing value."""
    return [[float(v) if np.isfinite(v) else None for v in row] for row in coded]
