"""Trees in ``ai.onnx.ml`` 3, which has no category sets: each set is a chain of comparisons.

All members of a set lead to the same node, which then has several parents. The standard only mentions
trees, but onnxruntime supports it, as converters of LightGBM models do the same.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from certree.export.formula import extend_largest_threshold, round_down_to_float32
from certree.interface.extras import import_extra
from certree.tree import LEAF, Tree

# A node: feature, comparison, number, child if true, child if false, and 1 if NaN counts as true.
_Node = tuple[int, str, float, int, int, int]


def make_tree_ensemble_regressor(trees: Sequence[Tree], dtype: Any) -> dict[str, Any]:
    """Return the attributes of a TreeEnsembleRegressor node that returns leaf numbers.

    The result has the values of the attributes by name, such as "nodes_modes". The node is of
    ``ai.onnx.ml`` 3. trees: T trees, each of which fills a column of the output. dtype: numpy type
    of the input rows, float32 or float64. The output (n, T) holds the number of the leaf that a row
    reaches; leaves are numbered 0, 1, ... through all trees.
    """
    nodes: list[_Node] = []
    tree_ids: list[int] = []
    node_ids: list[int] = []
    leaves: list[tuple[int, int]] = []
    for number, tree in enumerate(trees):
        tree_nodes = _list_nodes(tree)
        nodes += tree_nodes
        tree_ids += [number] * len(tree_nodes)
        node_ids += range(len(tree_nodes))
        leaves += [(number, int(leaf)) for leaf in np.flatnonzero(tree.is_leaf)]
    features, modes, thresholds, true, false, missing = zip(*nodes, strict=True)
    splits = np.array(thresholds)
    splits = round_down_to_float32(splits) if dtype == np.float32 else splits
    leaf_trees, leaf_nodes = zip(*leaves, strict=True)
    as_tensor = import_extra("onnx.numpy_helper", "onnx").from_array
    numbers = {"nodes_values": splits, "target_weights": np.arange(len(leaves), dtype=dtype)}
    if dtype == np.float64:
        numbers = {f"{name}_as_tensor": as_tensor(values, name) for name, values in numbers.items()}
    return {
        "n_targets": len(trees),
        "nodes_treeids": tree_ids,
        "nodes_nodeids": node_ids,
        "nodes_featureids": features,
        "nodes_modes": modes,
        "nodes_truenodeids": true,
        "nodes_falsenodeids": false,
        "nodes_missing_value_tracks_true": missing,
        "target_treeids": leaf_trees,
        "target_nodeids": leaf_nodes,
        "target_ids": leaf_trees,
        **numbers,
    }


def _list_nodes(tree: Tree) -> list[_Node]:
    """Return a tree's nodes for ONNX; a category set becomes a chain of comparisons.

    The first m entries are the nodes of the tree, by index. A node with a category set compares
    with the first category of the set. Nodes for its further categories follow after the m-th
    entry. Each entry is a tuple of the type `_Node`: index of the feature, comparison
    ("BRANCH_LEQ", "BRANCH_EQ", or "LEAF", with zeros in the other places), the number to compare
    with (a threshold or a category code), entry of the child if true, entry of the child if false,
    and 1 if NaN counts as true. tree: a tree with m nodes.
    """
    nodes: list[_Node] = []
    additional: list[_Node] = []
    for node in range(tree.n_nodes):
        left, feature = int(tree.left[node]), int(tree.feature[node])
        if left == LEAF:
            nodes.append((0, "LEAF", 0.0, 0, 0, 0))
            continue
        missing_left = bool(tree.missing_left[node])
        members = tree.category_set(node).tolist()
        if not members:
            threshold = float(extend_largest_threshold(tree.threshold[node]))
            nodes.append((feature, "BRANCH_LEQ", threshold, left, left + 1, int(missing_left)))
            continue
        unseen_left = bool(tree.unseen_left[node])
        inside, outside = left + unseen_left, left + 1 - unseen_left
        first = tree.n_nodes + len(additional)
        if_false = [*range(first, first + len(members) - 1), outside]
        chain = [
            (feature, "BRANCH_EQ", float(member), inside, outside_node, 0)
            for member, outside_node in zip(members, if_false, strict=True)
        ]
        # If NaN goes to the child of the set, it leaves the chain at the first comparison.
        nodes.append((*chain[0][:-1], int(missing_left != unseen_left)))
        additional += chain[1:]
    return nodes + additional
