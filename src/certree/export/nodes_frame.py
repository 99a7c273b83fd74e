"""Data frame of the nodes of all trees, with the columns of LightGBM."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.export.formula import Formula
from certree.interface.arrays import Float64
from certree.interface.extras import import_extra
from certree.tree import LEAF, Tree


def make_nodes_frame(formula: Formula) -> Any:
    """Return the nodes of all trees as a pandas data frame, one line for each node.

    formula: the trees of the fitted model, and how their leaf values become predictions. The
    columns are those of LightGBM's `trees_to_dataframe`: "tree_index", "node_depth" (1 at the
    root), "node_index" (such as "0-S2" for the split, or "0-L3" for the leaf, of tree 0),
    "left_child", "right_child", "parent_index", "split_feature", "split_gain" (NaN), "threshold",
    "decision_type", "missing_direction", "missing_type", "value" (of leaves; "value_0", ... if they
    have several), "weight" (NaN) and "count" (training rows; NaN if the model does not keep them).
    Raise ImportError if pandas is not installed.
    """
    pandas = import_extra("pandas", "frames")
    trees = [_make_columns(formula, number) for number in range(len(formula.trees))]
    return pandas.DataFrame(
        {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    )


def _make_columns(formula: Formula, number: int) -> dict[str, NDArray[Any]]:
    """Return the columns of one tree by name, each an array with an entry for each of m nodes.

    formula: the trees of the fitted model, and how their leaf values become predictions. number:
    index of the tree in `formula.trees`. The columns are those of LightGBM's `trees_to_dataframe`,
    with "value_0", "value_1", ... in place of "value" if leaves have several values; texts and None
    are in arrays of objects.
    """
    tree = formula.trees[number]
    m, inner = tree.n_nodes, tree.left != LEAF
    names = _make_object_array(f"{number}-{'S' if inner[v] else 'L'}{v}" for v in range(m))
    parent, not_kept = tree.parent, np.full(m, np.nan)
    features, no_value = _make_object_array(formula.names), np.array(None, dtype=object)
    return {
        "tree_index": np.full(m, number),
        "node_depth": tree.splits_above + 1,
        "node_index": names,
        "left_child": np.where(inner, names[tree.left], no_value),
        "right_child": np.where(inner, names[np.where(inner, tree.left + 1, 0)], no_value),
        "parent_index": np.where(parent >= 0, names[parent], no_value),
        "split_feature": np.where(inner, features[tree.feature], no_value),
        "split_gain": not_kept,
        **_describe_splits(formula, number),
        "missing_direction": np.where(inner, _describe_missing_directions(tree), no_value),
        "missing_type": np.where(inner, np.array("NaN", dtype=object), no_value),
        **_make_value_columns(tree),
        "weight": not_kept,
        "count": not_kept if formula.rows is None else formula.rows[number],
    }


def _describe_splits(formula: Formula, number: int) -> dict[str, NDArray[np.object_]]:
    """Return the columns "threshold" and "decision_type" of one tree, each of shape (m,).

    m is the number of nodes. number: index of the tree in `formula.trees`. A numeric split has its
    threshold and "<=" (such values go left); a categorical split has the names of the categories
    that go left, joined by "||", and "=="; a leaf has None in both. formula: the trees of the
    fitted model, and how their leaf values become predictions.
    """
    tree = formula.trees[number]
    threshold, decision = (np.full(tree.n_nodes, None, dtype=object) for _ in range(2))
    for v in np.flatnonzero(tree.left != LEAF):
        is_left = formula.get_left_mask(number, int(v))
        decision[v], threshold[v] = "<=", float(tree.threshold[v])
        if is_left is not None:
            names: Any = formula.get_categories(int(tree.feature[v]))
            decision[v] = "=="
            threshold[v] = "||".join(str(names[code]) for code in np.flatnonzero(is_left))
    return {"threshold": threshold, "decision_type": decision}


def _describe_missing_directions(tree: Tree) -> NDArray[np.str_]:
    """Return for each node the children that NaN goes to, (m,): "left", "right" or "both".

    "both" is for nodes that send rows without value to both children, divided in the ratio of their
    training rows. The entries of leaves have no meaning. tree: a tree with m nodes.
    """
    return np.where(tree.missing_both, "both", np.where(tree.missing_left, "left", "right"))


def _make_value_columns(tree: Tree) -> dict[str, Float64]:
    """Return the values of a tree's leaves as columns (m,), with NaN at other nodes.

    The only column is "value" if leaves have one value; else they are "value_0", "value_1", ...
    tree: a tree with m nodes; the values of node i are ``tree.value[i]``.
    """
    values = np.where((tree.left == LEAF)[:, None], tree.value, np.nan).T
    if len(values) == 1:
        return {"value": values[0]}
    return {f"value_{k}": column for k, column in enumerate(values)}


def _make_object_array(items: Iterable[Any]) -> NDArray[np.object_]:
    """Return the items of an iterable as an array (n,) of dtype object; items may be None."""
    return np.array([*items], dtype=object)
