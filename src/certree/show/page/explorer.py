"""A tree as the explorer of a page reads it: columns of numbers, and the words that go with them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.explain.path import Branch
from certree.show.cells import Cells
from certree.show.page.markup import data_of

# Letters of a tree on a page at most, leaves at first, and leaves that are open in the beginning.
_LETTERS, _LEAVES, _OPEN = 600_000, 6000, 10


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
        "rows": [_short(value) for value in cells.explainer.rows[nodes]],
        "leader": leaders.tolist(),
        "said": [_short(value) for value in cells.said[nodes, leaders]],
        "inside": {i: int(below[node]) for i, node in enumerate(nodes) if branches[i].hidden},
        "open": [place[branch.cell.node] for branch in opened if branch.children],
        "outputs": None if cells.outputs is None else [str(name) for name in cells.outputs],
        "scale": cells.scale,
        "leaves": tree.n_leaves,
    }


def _numbered(root: Branch) -> list[Branch]:
    """Nodes in the order of their numbers on the page: parents first, siblings beside each other."""
    found = [root]
    for branch in found:
        found.extend(branch.children)
    return found


def _short(value: float) -> float:
    """Four digits, or all of a whole number."""
    value = float(value)
    return int(value) if value.is_integer() else float(f"{value:.5g}")


def row_data(coded: NDArray[Any]) -> list[list[float | None]]:
    """Rows as trees see them; None is a missing value."""
    return [[float(v) if np.isfinite(v) else None for v in row] for row in coded]
