"""Promises on regions: the leaves of what predicts, or any cell of the tree."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from certree._core import depths, reach
from certree.arrays import Float64, Int32
from certree.certificates.family import Part
from certree.stats.nodes import counted
from certree.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """Rows in the leaves of a tree that they had no part in.

    Parameters
    ----------
    tree : Tree
        The tree.
    grown : ndarray of float64, shape (m,)
        Growing rows of each node, or their weight.
    label : ndarray of int32, shape (m,)
        What is predicted in each of its leaves.
    leaf : ndarray of int32, shape (n,)
        Leaf of each row.
    """

    tree: Tree
    grown: Float64
    label: Int32
    leaf: Int32

    def at(self, kept: NDArray[np.bool_]) -> "Routed":
        """Some of the rows."""
        return replace(self, leaf=self.leaf[kept])

    def outcomes(self, wrong: NDArray[np.bool_]) -> Float64:
        """Rows that are right and wrong in each node, (m, 2)."""
        return counted(self.tree, self.leaf, wrong.astype(np.int32), None, 2).counts


def leaf_parts(routed: Routed, wrong: NDArray[np.bool_], nats: float) -> dict[int, Part]:
    """The largest cells with one label each: the leaves of the smallest pruning that predicts the same.

    They depend on the tree and the labelling alone, and a leaf's share of the level of the labelling
    on its growing rows. Given how many rows each leaf has, the numbers of errors are independent, so
    that all hold with probability 1 - product of (1 - delta)^share = delta at least.
    """
    tree, shares = routed.tree, routed.grown + 1
    ends = tree.is_leaf
    places = np.flatnonzero(ends).astype(np.int32)
    labels = counted(tree, places, routed.label[places], None, int(routed.label.max()) + 1).counts
    alike = (labels > 0).sum(axis=1) == 1
    leaves = np.flatnonzero((reach(tree.left, np.where(alike, -np.inf, np.inf)) > 0) & alike)
    shares = shares[leaves] / shares[leaves].sum()
    return {
        node: Part(str(node), (risk, share), n, nats)
        for (node, risk, n), share in zip(
            _counts(routed.outcomes(wrong), leaves), shares.tolist(), strict=True
        )
    }


def cell_parts(routed: Routed, wrong: NDArray[np.bool_], nats: float) -> dict[int, Part]:
    """Every node of the tree, so that one may look before one chooses some.

    A node below d splits has the level 2^-(d + 1) times its share of the growing rows at its depth.
    The shares of one depth sum to 1 and the powers over all depths to less than 1, so all levels sum
    to less than delta.
    """
    tree, rows = routed.tree, routed.grown + 1
    depth = depths(tree.left, np.ones_like(tree.chain))
    price = (depth + 1) * math.log(2) - np.log(rows / np.bincount(depth, rows)[depth])
    every = np.arange(tree.n_nodes)
    return {
        node: Part(str(node), (risk,), n, nats + own)
        for (node, risk, n), own in zip(
            _counts(routed.outcomes(wrong), every), price.tolist(), strict=True
        )
    }


def _counts(outcomes: Float64, nodes: NDArray[np.intp]) -> list[tuple[int, float, int]]:
    """Number, share of errors and rows of some nodes."""
    n, errors = outcomes[nodes].sum(axis=1), outcomes[nodes, 1]
    risk = errors / np.maximum(n, 1)
    return list(zip(nodes.tolist(), risk.tolist(), n.astype(np.int64).tolist(), strict=True))
