"""Exact additive contributions: what the cuts along the path of a row change.

A pruning stops somewhere along the path of a row. Each cut that it makes before changes what it says
from the value of the node to that of the child. So what all prunings say on average is what the root
says, and for every cut its change times the probability that a pruning goes as far as the child. Sums
of changes by feature are exact (by Abel summation of the path sums of the vote), and cost one walk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.tree import LEAF, Tree, find_rows_with_missing
from certree.votes import Ballots, DeferredVote, SparseBallots, Vote, stopped_outcomes
from certree.weights.node_weights import NodeWeights


def contributions(
    tree: Tree,
    weights: NodeWeights,
    ballot: Vote | DeferredVote,
    ballots: Ballots | SparseBallots,
    rows: Float64,
    X: NDArray[Any],
    n_threads: int,
) -> tuple[Float64, Float64]:
    """Divide the outcomes of a vote among the features.

    Parameters
    ----------
    tree : Tree
        The tree.
    weights : NodeWeights
        The distribution over its prunings.
    ballot : Vote or DeferredVote
        The outcome of their vote.
    ballots : Ballots or SparseBallots
        What the nodes vote for.
    rows : ndarray of float64, shape (m,)
        Rows of each node, by which its children share rows that lack a value.
    X : ndarray of shape (n, p)
        Checked rows.
    n_threads : int
        Number of threads.

    Returns
    -------
    base : ndarray of float64, shape (K,)
        What the root says.
    contributions : ndarray of float64, shape (n, K, p)
        What each feature adds.
    """
    nodes = np.arange(tree.n_nodes)
    if isinstance(ballot, DeferredVote):
        # A table of all nodes and classes may not fit into memory; the rows pass few of the nodes.
        nodes = _passed(tree, X, n_threads)
    said = stopped_outcomes(tree, weights, ballot, ballots, nodes)
    if len(nodes) < tree.n_nodes:
        has_children = np.isin(tree.left[nodes], nodes)
        tree, rows = tree.keep_nodes(nodes, ~has_children), rows[nodes]
    return said[0], tree.with_value(said).compute_contributions(X, n_threads, rows)


def _passed(tree: Tree, X: NDArray[Any], n_threads: int) -> NDArray[np.intp]:
    """The nodes that rows pass, and the siblings of these."""
    if tree.missing_both.any() and len(find_rows_with_missing(X)):
        return np.arange(tree.n_nodes)
    passed = np.zeros(tree.n_nodes, dtype=bool)
    passed[0] = True
    parent = tree.parent
    nodes = np.unique(tree.route(X, n_threads))
    while len(nodes):
        passed[nodes] = True
        nodes = np.unique(parent[nodes])
        nodes = nodes[nodes >= 0]
        nodes = nodes[~passed[nodes]]
    left = tree.left[passed]
    left = left[left != LEAF]
    passed[left] = passed[left + 1] = True
    return np.flatnonzero(passed)
