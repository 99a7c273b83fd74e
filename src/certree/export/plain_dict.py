"""Models as dictionaries of plain numbers and names, which any language reads from JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from certree.export.formula import Formula
from certree.interface.arrays import Float64
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


# -- a reader --------------------------------------------------------------------------------------

_LARGEST = np.finfo(np.float64).max


def predict_from_dict(document: Mapping[str, Any], columns: Sequence[Sequence[Any]]) -> Float64:
    """Predict rows by the dictionary of a model alone, as ``docs/model.schema.json`` describes it.

    Parameters
    ----------
    document : dict
        What `plain_dict` returns, or what JSON makes of it.
    columns : sequence of sequences of length n
        The values of each feature: numbers or names of categories, None or NaN where one is missing.

    Returns
    -------
    ndarray of float64, shape (n, K) or (n, n_outputs)
        Probabilities of the classes, or predicted numbers.
    """
    features = zip(columns, document["features"], strict=True)
    rows = np.array([_coded(column, feature["categories"]) for column, feature in features])
    outputs = np.zeros((rows.shape[1], len(document["start"])))
    for nodes in document["trees"]:
        outputs += _outputs(nodes, rows)
    if document["sum"] == "mean":
        outputs /= len(document["trees"])
    return _linked(outputs + document["start"], document)


def _coded(column: Sequence[Any], categories: Sequence[Any] | None) -> Float64:
    """Numbers, of which infinite ones count as the largest, or places of categories; else NaN."""
    if categories is None:
        numbers = np.array(column, dtype=np.float64)  # which makes NaN of None
        return np.clip(numbers, -_LARGEST, _LARGEST)
    code = {name: place for place, name in enumerate(categories)}
    return np.array([code.get(name, np.nan) for name in column], dtype=np.float64)


def _outputs(nodes: Sequence[Mapping[str, Any]], rows: Float64) -> Float64:
    """Outputs (n, n_outputs) of one tree for rows (p, n)."""
    n = rows.shape[1]
    n_outputs = len(nodes[-1]["value"])  # children come after their parents, so it is a leaf
    outputs = np.zeros((n, n_outputs))
    waiting = [(0, np.arange(n), np.ones(n))]  # a node, rows in it, and the share of each
    while waiting:
        number, inside, share = waiting.pop()
        node = nodes[number]
        if "value" in node:
            outputs[inside] += share[:, None] * node["value"]
            continue
        left = _share_left(node, rows[node["feature"], inside])
        for child, part in ((node["left"], left), (node["right"], 1 - left)):
            goes = part > 0
            if goes.any():
                waiting.append((child, inside[goes], share[goes] * part[goes]))
    return outputs


def _share_left(node: Mapping[str, Any], values: Float64) -> Float64:
    """Share of each row that goes to the left."""
    goes_left: NDArray[np.bool_]
    if "threshold" in node:
        goes_left = values <= node["threshold"]
    else:
        goes_left = np.isin(values, node["left_categories"])
    return np.where(np.isnan(values), node["missing_left"], goes_left)


def _linked(outputs: Float64, document: Mapping[str, Any]) -> Float64:
    """Probabilities or numbers that outputs lead to."""
    link = document["link"]
    if link == "exp":
        return np.exp(outputs)
    if link == "sorted":
        return np.sort(outputs, axis=1)
    if link == "softmax":
        return softmax(outputs, axis=1)
    if link == "logistic":
        return expit(np.hstack([-outputs, outputs]))
    if link == "shares":
        if outputs.shape[1] == 1 and len(document["classes"]) == 2:
            second = outputs.clip(0.0, 1.0)
            outputs = np.hstack([1 - second, second])
        powers = outputs ** document["power"]
        return powers / powers.sum(axis=1, keepdims=True)
    return outputs
