"""Models as dictionaries of numbers and strings, which any language reads from JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from certree.export.formula import Formula
from certree.interface.arrays import Float64
from certree.rows.categories import UNKNOWN_CODE
from certree.tree import LEAF

VERSION = 1


def make_plain_dict(formula: Formula) -> dict[str, Any]:
    """Return a fitted model as a dictionary of lists, numbers and strings, which JSON can hold.

    The format is that of ``docs/model.schema.json``. The keys are "format" and "version",
    "features" (names, categories, "dates" of features that hold dates, and "part" of their calendar
    parts, which come last), "classes", "trees" (a list of nodes for each), and "sum", "start",
    "link" and "power" (how leaf values become predictions). formula: the fitted model: its trees,
    and how their leaf values become predictions.
    """
    return {
        "format": "certree",
        "version": VERSION,
        "features": [
            {
                "name": name,
                "categories": _to_list(formula.get_categories(j)),
                **_describe_dates(formula, j),
                **_describe_part(formula, j),
            }
            for j, name in enumerate(formula.names)
        ],
        "classes": None if formula.classes is None else formula.labels,
        "trees": [_make_nodes(formula, number) for number in range(len(formula.trees))],
        "sum": {"tree": "only", "forest": "mean", "boosted": "sum"}[formula.kind],
        "start": formula.start.tolist(),
        "link": formula.link,
        "power": float(formula.power),
    }


def _describe_dates(formula: Formula, feature: int) -> dict[str, Any]:
    """Return {"dates": description} for a feature that holds dates, and {} for other features.

    formula: the model to export; feature: index of the feature. The description is a dictionary
    with "kind" ("date", "midnight", "datetime", or "span" of time), "zone" (the time zone, or None)
    and "unit" (of the numbers that trees read). It becomes part of the feature's entry in
    `make_plain_dict`.
    """
    if not formula.dates or feature not in formula.dates:
        return {}
    column = formula.dates[feature]
    return {"dates": {"kind": column.kind, "zone": column.zone, "unit": column.unit}}


def _describe_part(formula: Formula, feature: int) -> dict[str, Any]:
    """Return {"part": description} for a calendar part of a date, and {} for other features.

    formula: the model to export; feature: index of the feature. The description has "of", the index
    of the date feature, and "name", such as "month". It becomes part of the feature's entry in
    `make_plain_dict`.
    """
    part = formula.get_part(feature)
    return {} if part is None else {"part": {"of": part.feature, "name": part.part}}


def _to_list(names: Any) -> list[Any] | None:
    """Return the categories of a feature, a sequence of names, as a list; None for None.

    None stands for a numeric feature.
    """
    return None if names is None else list(names)


def _make_nodes(formula: Formula, number: int) -> list[dict[str, Any]]:
    """Return the nodes of one tree of a formula as dictionaries, in the order of their indices.

    number: index of the tree in `formula.trees`. A leaf has the key "value", a list of n_outputs
    numbers. Other nodes have "feature" (index), "threshold" or "left_categories" (codes), "left"
    and "right" (indices of the children), and "missing_left", the fraction of a row without value
    that goes left. Splits with "left_categories" have "unseen_left", the same for a row whose
    category is none of the feature's. formula: the trees of the fitted model, and how their leaf
    values become predictions.
    """
    tree = formula.trees[number]
    fraction, both = formula.compute_missing_left_fractions(number), tree.missing_both
    unseen_fraction = formula.compute_unseen_left_fractions(number)
    nodes: list[dict[str, Any]] = []
    for node in range(tree.n_nodes):
        left = int(tree.left[node])
        if left == LEAF:
            nodes.append({"value": tree.value[node].tolist()})
            continue
        inner: dict[str, Any] = {"feature": int(tree.feature[node])}
        is_left = formula.get_left_mask(number, node)
        if is_left is None:
            inner["threshold"] = float(tree.threshold[node])
        else:
            inner["left_categories"] = np.flatnonzero(is_left).tolist()
        inner |= {"left": left, "right": left + 1}
        inner["missing_left"] = (
            float(fraction[node]) if both[node] else float(tree.missing_left[node])
        )
        if is_left is not None:
            inner["unseen_left"] = float(unseen_fraction[node])
        nodes.append(inner)
    return nodes


# -- a reader --------------------------------------------------------------------------------------

_LARGEST = np.finfo(np.float64).max


def predict_from_dict(document: Mapping[str, Any], columns: Sequence[Sequence[Any]]) -> Float64:
    """Predict rows from the dictionary of a model, as ``docs/model.schema.json`` describes it.

    The function uses only the dictionary, so it shows what a reader in another language has to do.

    Parameters
    ----------
    document : dict
        The result of `make_plain_dict`, also after writing it to JSON and reading it again.
    columns : sequence of p sequences of length n
        The values of each feature: numbers or names of categories; None or NaN for a missing value.

    Returns
    -------
    ndarray of float64, shape (n, K) or (n, n_outputs)
        Probabilities of the K classes, in the order of "classes", or predicted numbers. Names that
        are no category of the fit go left in the fraction "unseen_left" at each split.
    """
    features = zip(columns, document["features"], strict=True)
    rows = np.array([_encode_column(column, feature["categories"]) for column, feature in features])
    outputs = np.zeros((rows.shape[1], len(document["start"])))
    for nodes in document["trees"]:
        outputs += _compute_outputs(nodes, rows)
    if document["sum"] == "mean":
        outputs /= len(document["trees"])
    return _apply_link(outputs + document["start"], document)


def _encode_column(column: Sequence[Any], categories: Sequence[Any] | None) -> Float64:
    """Return the values of a feature as numbers (n,), categories as codes; NaN for missing values.

    column: numbers or names of categories, with None or NaN for missing values. categories: names
    of the categories in the order of their codes, or None for a numeric feature. Categories that
    are not among them become -1; infinite numbers become the largest float64 of their sign.
    """
    if categories is None:
        numbers = np.array(column, dtype=np.float64)  # None becomes NaN.
        return np.clip(numbers, -_LARGEST, _LARGEST)
    codes = {name: code for code, name in enumerate(categories)}
    is_missing = [name is None or name != name for name in column]  # NaN
    encoded = np.array([codes.get(name, UNKNOWN_CODE) for name in column], dtype=np.float64)
    return np.where(is_missing, np.nan, encoded)


def _compute_outputs(nodes: Sequence[Mapping[str, Any]], rows: Float64) -> Float64:
    """Return the leaf values that one tree gives to each row, (n, n_outputs).

    nodes: dictionaries of the tree's nodes from `make_plain_dict`, the root first; a leaf has
    "value", another node its split and the indices of its children. rows: encoded rows, transposed
    to (p, n), with NaN for missing values. A row that goes to both children of a node gets the mean
    of the values of its leaves, weighted by the fractions of the row in them.
    """
    n = rows.shape[1]
    n_outputs = len(nodes[-1]["value"])  # The last node is a leaf, as children come after parents.
    outputs = np.zeros((n, n_outputs))
    # A node, the rows in it, and the fraction of each row that is there.
    stack = [(0, np.arange(n), np.ones(n))]
    while stack:
        number, inside, fraction = stack.pop()
        node = nodes[number]
        if "value" in node:
            outputs[inside] += fraction[:, None] * node["value"]
            continue
        left = _compute_left_fraction(node, rows[node["feature"], inside])
        for child, sent in ((node["left"], left), (node["right"], 1 - left)):
            goes = sent > 0
            if goes.any():
                stack.append((child, inside[goes], fraction[goes] * sent[goes]))
    return outputs


def _compute_left_fraction(node: Mapping[str, Any], values: Float64) -> Float64:
    """Return the fraction of each row that goes to the left child of a node, (n,).

    node: a node with children from `make_plain_dict`; it has "threshold" or "left_categories", and
    "missing_left". values: the rows' values of its feature, (n,); category codes if it splits on
    categories. The fraction is 1 for values up to "threshold", or codes in "left_categories", 0 for
    others, "missing_left" if the value is NaN, and "unseen_left" for unknown categories, -1.
    """
    is_left: NDArray[Any]
    if "threshold" in node:
        is_left = values <= node["threshold"]
    else:
        is_left = np.isin(values, node["left_categories"])
        # Earlier versions wrote no "unseen_left", as unknown categories counted as missing.
        unseen_left = node.get("unseen_left", node["missing_left"])
        is_left = np.where(values == UNKNOWN_CODE, unseen_left, is_left)
    return np.where(np.isnan(values), node["missing_left"], is_left)


def _apply_link(outputs: Float64, document: Mapping[str, Any]) -> Float64:
    """Return the class probabilities (n, K), or predicted numbers, that belong to outputs of rows.

    outputs: leaf values combined over the trees, (n, n_outputs). document: dictionary of the model,
    whose "link", "power" and "classes" are used. The link is "identity", "exp", "sorted" (in
    ascending order), "logistic" (log odds of the second class), "softmax", or "shares" (outputs to
    the power of "power", divided by their sum). Predicted numbers have the shape (n, n_outputs).
    """
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
