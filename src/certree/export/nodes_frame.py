"""The nodes of all trees as a table, with the columns that LightGBM has."""

from typing import Any

import numpy as np

from certree.export.formula import Formula
from certree.interface.extras import import_extra
from certree.tree import LEAF, Tree


def nodes_frame(formula: Formula) -> Any:
    """A frame of pandas with a row for each node of the trees of a formula."""
    pandas = import_extra("pandas", "frames")
    parts = [_columns(formula, number) for number in range(len(formula.trees))]
    return pandas.DataFrame(
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    )


def _columns(formula: Formula, number: int) -> dict[str, Any]:
    tree = formula.trees[number]
    m, inner = tree.n_nodes, tree.left != LEAF
    names = _objects(f"{number}-{'S' if inner[v] else 'L'}{v}" for v in range(m))
    parent, unknown = tree.parent, np.full(m, np.nan)
    features, nothing = _objects(formula.names), np.array(None, dtype=object)
    return {
        "tree_index": np.full(m, number),
        "node_depth": tree.splits_above + 1,
        "node_index": names,
        "left_child": np.where(inner, names[tree.left], nothing),
        "right_child": np.where(inner, names[np.where(inner, tree.left + 1, 0)], nothing),
        "parent_index": np.where(parent >= 0, names[parent], nothing),
        "split_feature": np.where(inner, features[tree.feature], nothing),
        "split_gain": unknown,
        **_cuts(formula, number),
        "missing_direction": np.where(inner, _sides(tree), nothing),
        "missing_type": np.where(inner, np.array("NaN", dtype=object), nothing),
        **_values(tree),
        "weight": unknown,
        "count": unknown if formula.rows is None else formula.rows[number],
    }


def _cuts(formula: Formula, number: int) -> dict[str, Any]:
    """What goes to the left: numbers up to a threshold, or a set of categories."""
    tree = formula.trees[number]
    threshold, decision = (np.full(tree.n_nodes, None, dtype=object) for _ in range(2))
    for v in np.flatnonzero(tree.left != LEAF):
        goes_left = formula.goes_left(number, int(v))
        decision[v], threshold[v] = "<=", float(tree.threshold[v])
        if goes_left is not None:
            known: Any = formula.categories_of(int(tree.feature[v]))
            decision[v] = "=="
            threshold[v] = "||".join(str(known[code]) for code in np.flatnonzero(goes_left))
    return {"threshold": threshold, "decision_type": decision}


def _sides(tree: Tree) -> Any:
    return np.where(tree.missing_both, "both", np.where(tree.missing_left, "left", "right"))


def _values(tree: Tree) -> dict[str, Any]:
    """What leaves say; of several outputs in a column each."""
    said = np.where((tree.left == LEAF)[:, None], tree.value, np.nan).T
    if len(said) == 1:
        return {"value": said[0]}
    return {f"value_{k}": one for k, one in enumerate(said)}


def _objects(given: Any) -> Any:
    return np.array([*given], dtype=object)
