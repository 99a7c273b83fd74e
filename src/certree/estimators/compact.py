"""Compact copies of fitted trees: nodes become leaves if that hardly changes a prediction."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from certree._core import compute_reach_probabilities
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.interface.arrays import Float64, Int32, check_nonnegative
from certree.interface.fitted_state import snapshot_method
from certree.stats import SeveralStats, Stats, TargetStats
from certree.tree import LEAF, Tree
from certree.votes import DeferredVote, Vote, Voting, stopped_outcomes, vote
from certree.weights.node_weights import NodeWeights, reached

# Rounding error of sums of weights along a path.
_ROUNDING = 1e-12

# A tree, the statistics of its nodes, the posterior over its prunings, and the outcome of their vote.
FittedVote = tuple[Tree, Stats, NodeWeights, Vote | DeferredVote]


def truncate_tree(
    tree: Tree, stats: Stats, weights: NodeWeights, ends: NDArray[np.bool_], voting: Voting
) -> FittedVote:
    """Turn some nodes of a tree into leaves, and compute the vote of the truncated prunings.

    A pruning is the tree after some nodes have become leaves. A pruning that passes through a new
    leaf stops there: the leaf gets the weight of all prunings that reach it.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    stats : Stats
        Class counts, or moments of a numeric target, of the training rows in its nodes.
    weights : NodeWeights
        Posterior over its prunings, as the probability of each node to be a leaf.
    ends : ndarray of bool, shape (m,)
        Nodes that become leaves; leaves of `tree` stay leaves.
    voting : Voting
        How a pruning votes: by label or by smoothed mean, and with which monotonic constraints.

    Returns
    -------
    tree, stats, weights, vote
        The smaller tree, the statistics of the nodes that are left, the posterior over its
        prunings, and their vote.
    """
    ends = ends | tree.is_leaf
    kept = np.flatnonzero(
        compute_reach_probabilities(tree.left, np.where(ends, -np.inf, np.inf)) > 0
    )
    is_leaf = ends[kept]
    weight, log_odds = weights.weight[kept], weights.log_odds[kept]
    posterior = NodeWeights(
        np.where(is_leaf, np.minimum(reached(tree, weights)[kept], 1.0), weight),
        np.where(is_leaf, -np.inf, log_odds),
        weights.log_evidence,
        # A new leaf stands for a single region, also if it had a chain of several.
        np.where(is_leaf, 0.0, weights.chain_entropy[kept]),
        np.where(is_leaf, 0.0, weights.chain_mode[kept]),
    )
    smaller, kept_stats = tree.keep_nodes(kept, is_leaf), stats.take(kept)
    return smaller, kept_stats, posterior, vote(smaller, kept_stats, posterior, voting)


def collapse_to_pruning(
    tree: Tree, stats: Stats, weights: NodeWeights, voting: Voting
) -> FittedVote:
    """Reduce a tree to a single pruning of it: some nodes become leaves.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    stats : Stats
        Class counts, or moments of a numeric target, of the training rows in its nodes.
    weights : NodeWeights
        The pruning: weight 1 at its leaves, 0 at all other nodes.
    voting : Voting
        How the pruning predicts: by the majority label of a leaf, or by its smoothed class
        frequencies or mean.

    Returns
    -------
    tree, stats, weights, vote
        The pruned tree, the statistics of its nodes, weights that are 1 at its leaves, and its
        predictions.
    """
    return truncate_tree(tree, stats, weights, weights.weight > 0, voting)


def map_to_smaller_tree(smaller: Tree, tree: Tree) -> Int32:
    """Find, for each node of a tree, the node of a pruned copy that contains it.

    smaller: the tree after some nodes of `tree` have become leaves; tree: the original tree, with m
    nodes. Return an int32 array (m,) of node numbers of `smaller`: for a node that `smaller` still
    has, the number that it has there; for any other node, the leaf of `smaller` above it.
    """
    place = np.zeros(tree.n_nodes, dtype=np.int32)
    inner = np.flatnonzero(~tree.is_leaf)
    depth = tree.node_depth[inner]
    for level in np.unique(depth):
        nodes = inner[depth == level]
        below = smaller.left[place[nodes]]
        for is_right in (0, 1):
            place[tree.left[nodes] + is_right] = np.where(
                below == LEAF, place[nodes], below + is_right
            )
    return place


def compact_tree(
    tree: Tree, stats: Stats, weights: NodeWeights, voting: Voting, tolerance: float | Float64
) -> FittedVote:
    """Remove all nodes without which no outcome of the vote changes by more than a tolerance.

    A pruning is the tree after some nodes have become leaves. A pruning that passes through a leaf
    of the smaller tree stops there. So the outcome is still a vote of prunings, and keeps monotonic
    constraints.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    stats : Stats
        Class counts, or moments of a numeric target, of the training rows in its nodes.
    weights : NodeWeights
        Posterior over its prunings, as the probability of each node to be a leaf.
    voting : Voting
        How a pruning votes: by label or by smoothed mean, and with which monotonic constraints.
    tolerance : float, or ndarray of float64, shape (K,)
        Largest change of the outcome at any leaf: one number for all K columns of the outcome
        (class probabilities, or the predicted number), or one for each column.

    Returns
    -------
    tree, stats, weights, vote
        The smaller tree, the statistics of the nodes that are left, the posterior over its
        prunings, and their vote.
    """
    node_predictions = voting.ballots(tree, stats)
    ballot = node_predictions.compute_vote(tree, weights)
    score = ballot.score
    stopped = stopped_outcomes(tree, weights, ballot, node_predictions, np.arange(tree.n_nodes))
    inner = np.flatnonzero(~tree.is_leaf)
    low, high = score.copy(), score.copy()
    depth = tree.node_depth[inner]
    for level in np.unique(depth)[::-1]:  # from the deepest nodes up
        nodes = inner[depth == level]
        left, right = tree.left[nodes], tree.left[nodes] + 1
        low[nodes] = np.minimum(low[left], low[right])
        high[nodes] = np.maximum(high[left], high[right])
    change = np.maximum(high - stopped, stopped - low)
    is_small: Any = (change <= tolerance + _ROUNDING).all(axis=1)
    return truncate_tree(tree, stats, weights, is_small, voting)


class CompactableTree(TreeVoteEstimator):
    """Base class of estimators with a method `compact`, which returns a copy with fewer nodes.

    The copy's predictions differ by at most a tolerance. The class adds no constructor arguments.
    """

    @snapshot_method
    def compact(self, tolerance: float = 0.05) -> Self:
        """Return a copy of the model with fewer nodes and nearly the same predictions.

        It is for pictures, small files and fast prediction. A node becomes a leaf if no row's
        prediction changes by more than the tolerance; the prunings of the smaller tree vote with
        the same weights as before. A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        tolerance : float
            Largest change of a class probability; for numeric targets, of the prediction divided by
            the standard deviation of the target in the training rows.

        Returns
        -------
        object
            A fitted estimator of the same class with the same parameters. `partial_fit`, `forget`
            and `merge` raise an error on it; `fit` grows a full tree again.

        Raises
        ------
        ValueError
            If the tolerance is negative or not finite.
        NotFittedError
            If the model is not fitted.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from certree import PACBayesTreeClassifier
        >>> X, y = make_moons(1000, noise=0.35, random_state=0)
        >>> model = PACBayesTreeClassifier(random_state=0).fit(X, y)
        >>> model.get_n_leaves(), model.compact(0.05).get_n_leaves()
        (148, 62)
        """
        check_is_fitted(self)
        limit: Any = check_nonnegative("tolerance", tolerance)
        if isinstance(self.stats_, TargetStats):
            limit *= float(np.sqrt(self.stats_.sse[0] / self.stats_.rows[0]))
        elif isinstance(self.stats_, SeveralStats) and not is_classifier(self):
            limit *= np.array(self.stats_.deviations)
        smaller = copy(self)
        smaller.seen_rows_ = None
        smaller._set_fitted(
            *compact_tree(self.tree_, self.stats_, self.weights_, self._get_voting(), limit)
        )
        return smaller
