"""Exact additive contributions of features: the changes at the splits on the path of a row.

Each pruning stops at some node of the path. A split that it keeps changes its prediction from the value
of the node to the value of the child. The mean prediction of all prunings is therefore the value of the
root plus, for every split, its change times the probability that a pruning reaches the child. Abel
summation of the path sums of the vote gives the sums by feature exactly, in one walk down the tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.tree import LEAF, Tree, find_rows_with_missing
from certree.votes import (
    DeferredVote,
    NodePredictions,
    SparseNodePredictions,
    Vote,
    stopped_outcomes,
)
from certree.weights.node_weights import NodeWeights


def compute_contributions(
    tree: Tree,
    weights: NodeWeights,
    vote: Vote | DeferredVote,
    node_predictions: NodePredictions | SparseNodePredictions,
    rows_per_node: Float64,
    X: NDArray[Any],
    n_threads: int,
) -> tuple[Float64, Float64]:
    """Divide the prediction of a vote of prunings for each row among the features.

    A pruning is the tree with some nodes turned into leaves. The mean prediction of all prunings,
    by their posterior weights, is the prediction of the root plus a change at each split on the
    path of the row. The change is the prediction of the child minus that of the node, times the
    probability that a pruning makes the split. It counts for the feature of the split.

    Parameters
    ----------
    tree : Tree
        The tree of m nodes, whose prunings vote.
    weights : NodeWeights
        Posterior weights of its prunings: for each node, the probability that it is a leaf of a
        pruning drawn from the posterior.
    vote : Vote or DeferredVote
        Weighted sum of predictions over prunings, K numbers for each node. At a leaf of the tree the
        sum is over all prunings: class probabilities, or the mean. At an inner node it is over
        those prunings that have the node, or a node above it, as a leaf. A `DeferredVote` computes
        the numbers when they are needed.
    node_predictions : NodePredictions or SparseNodePredictions
        What each node predicts if it is a leaf of a pruning, without any mean over prunings: a
        label, or K numbers.
    rows_per_node : ndarray of float64, shape (m,)
        Number of training rows in each node. A row that lacks a value goes to both children in
        proportion to these numbers.
    X : ndarray of shape (n, p)
        Numeric rows, categories as codes.
    n_threads : int
        Number of threads.

    Returns
    -------
    base : ndarray of float64, shape (K,)
        Prediction of the root.
    contributions : ndarray of float64, shape (n, K, p)
        Contribution of each feature; with the base they sum to the outcome of the row.
    """
    nodes = np.arange(tree.n_nodes)
    if isinstance(vote, DeferredVote):
        # A table of all nodes and classes may exceed the memory; the rows visit few of the nodes.
        nodes = _find_visited_nodes(tree, X, n_threads)
    outcomes = stopped_outcomes(tree, weights, vote, node_predictions, nodes)
    if len(nodes) < tree.n_nodes:
        has_children = np.isin(tree.left[nodes], nodes)
        tree, rows_per_node = tree.keep_nodes(nodes, ~has_children), rows_per_node[nodes]
    return outcomes[0], tree.with_value(outcomes).compute_contributions(X, n_threads, rows_per_node)


def _find_visited_nodes(tree: Tree, X: NDArray[Any], n_threads: int) -> NDArray[np.intp]:
    """Return the indices, ascending, of the nodes on the paths of all rows, and of their siblings.

    Contributions are changes from a node to its child, so that no other node needs a prediction. X:
    numeric rows, (n, p), categories as codes; n_threads: number of threads. Return all nodes of the
    tree if a row lacks a value and may go to both children of a node.
    """
    if tree.missing_both.any() and len(find_rows_with_missing(X)):
        return np.arange(tree.n_nodes)
    is_visited = np.zeros(tree.n_nodes, dtype=bool)
    is_visited[0] = True
    parent = tree.parent
    nodes = np.unique(tree.route(X, n_threads))
    while len(nodes):
        is_visited[nodes] = True
        nodes = np.unique(parent[nodes])
        nodes = nodes[nodes >= 0]
        nodes = nodes[~is_visited[nodes]]
    left = tree.left[is_visited]
    left = left[left != LEAF]
    is_visited[left] = is_visited[left + 1] = True
    return np.flatnonzero(is_visited)
