"""Trees as ``ai.onnx.ml`` 3 has them, without category sets: each set is a chain of comparisons.

All members of a set lead to the same node, which has several parents then. The standard speaks of
trees, but onnxruntime takes it, as models of LightGBM are written like this.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from certree.export.formula import compared, rounded_down
from certree.interface.extras import import_extra
from certree.tree import LEAF, Tree

# A node: feature, comparison, number, true side, false side, where NaN goes.
_Node = tuple[int, str, float, int, int, int]


def tree_ensemble_regressor(trees: Sequence[Tree], dtype: Any) -> dict[str, Any]:
    """Attributes of a TreeEnsembleRegressor whose outputs, one for each tree, are numbers of leaves."""
    nodes: list[_Node] = []
    tree_ids: list[int] = []
    node_ids: list[int] = []
    leaves: list[tuple[int, int]] = []
    for number, tree in enumerate(trees):
        own = _nodes(tree)
        nodes += own
        tree_ids += [number] * len(own)
        node_ids += range(len(own))
        leaves += [(number, int(leaf)) for leaf in np.flatnonzero(tree.is_leaf)]
    features, modes, values, true, false, missing = zip(*nodes, strict=True)
    splits = np.array(values)
    splits = rounded_down(splits) if dtype == np.float32 else splits
    of_tree, of_node = zip(*leaves, strict=True)
    as_tensor = import_extra("onnx.numpy_helper", "onnx").from_array
    numbers = {"nodes_values": splits, "target_weights": np.arange(len(leaves), dtype=dtype)}
    if dtype == np.float64:
        numbers = {f"{name}_as_tensor": as_tensor(of, name) for name, of in numbers.items()}
    return {
        "n_targets": len(trees),
        "nodes_treeids": tree_ids,
        "nodes_nodeids": node_ids,
        "nodes_featureids": features,
        "nodes_modes": modes,
        "nodes_truenodeids": true,
        "nodes_falsenodeids": false,
        "nodes_missing_value_tracks_true": missing,
        "target_treeids": of_tree,
        "target_nodeids": of_node,
        "target_ids": of_tree,
        **numbers,
    }


def _nodes(tree: Tree) -> list[_Node]:
    """The nodes of a tree, and behind them those that compare further members of sets."""
    nodes: list[_Node] = []
    further: list[_Node] = []
    for node in range(tree.n_nodes):
        left, feature = int(tree.left[node]), int(tree.feature[node])
        if left == LEAF:
            nodes.append((0, "LEAF", 0.0, 0, 0, 0))
            continue
        missing_left = bool(tree.missing_left[node])
        members = tree.category_set(node).tolist()
        if not members:
            threshold = float(compared(tree.threshold[node]))
            nodes.append((feature, "BRANCH_LEQ", threshold, left, left + 1, int(missing_left)))
            continue
        inside, outside = left + missing_left, left + 1 - missing_left
        first = tree.n_nodes + len(further)
        otherwise = [*range(first, first + len(members) - 1), outside]
        chain = [
            (feature, "BRANCH_EQ", float(member), inside, to, 0)
            for member, to in zip(members, otherwise, strict=True)
        ]
        nodes.append(chain[0])
        further += chain[1:]
    return nodes + further
