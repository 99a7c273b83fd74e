"""Models as dictionaries of plain numbers and names, which any language reads from JSON."""

from typing import Any

import numpy as np

from certree.export.formula import Formula
from certree.tree import LEAF

VERSION = 1


def plain_dict(formula: Formula) -> dict[str, Any]:
    """All of a formula, in the form of ``docs/model.schema.json``."""
    return {
        "format": "certree",
        "version": VERSION,
        "features": [
            {"name": name, "categories": _listed(formula.categories_of(j))}
            for j, name in enumerate(formula.names)
        ],
        "classes": None if formula.classes is None else formula.labels,
        "trees": [_nodes(formula, number) for number in range(len(formula.trees))],
        "sum": {"tree": "only", "forest": "mean", "boosted": "sum"}[formula.kind],
        "start": formula.start.tolist(),
        "link": formula.link,
        "power": float(formula.power),
    }


def _listed(names: Any) -> list[Any] | None:
    return None if names is None else list(names)


def _nodes(formula: Formula, number: int) -> list[dict[str, Any]]:
    tree = formula.trees[number]
    share, both = formula.missing_shares(number), tree.missing_both
    nodes: list[dict[str, Any]] = []
    for node in range(tree.n_nodes):
        left = int(tree.left[node])
        if left == LEAF:
            nodes.append({"value": tree.value[node].tolist()})
            continue
        inner: dict[str, Any] = {"feature": int(tree.feature[node])}
        goes_left = formula.goes_left(number, node)
        if goes_left is None:
            inner["threshold"] = float(tree.threshold[node])
        else:
            inner["left_categories"] = np.flatnonzero(goes_left).tolist()
        inner |= {"left": left, "right": left + 1}
        inner["missing_left"] = float(share[node]) if both[node] else float(tree.missing_left[node])
        nodes.append(inner)
    return nodes
