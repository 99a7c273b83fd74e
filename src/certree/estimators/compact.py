"""Smaller trees that predict alike: cells below which little changes become leaves."""

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

# Sums of shares are right to a few units of rounding.
_ROUNDING = 1e-12


FittedVote = tuple[Tree, Stats, NodeWeights, Vote | DeferredVote]


def truncate_tree(
    tree: Tree, stats: Stats, weights: NodeWeights, ends: NDArray[np.bool_], voting: Voting
) -> FittedVote:
    """Cut a tree off below some nodes, (m,), at which prunings that pass them stop; vote again."""
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
        # What is left of the chain of a leaf is one cell.
        np.where(is_leaf, 0.0, weights.chain_entropy[kept]),
        np.where(is_leaf, 0.0, weights.chain_mode[kept]),
    )
    smaller, own = tree.keep_nodes(kept, is_leaf), stats.take(kept)
    return smaller, own, posterior, vote(smaller, own, posterior, voting)


def collapse_to_pruning(
    tree: Tree, stats: Stats, weights: NodeWeights, voting: Voting
) -> FittedVote:
    """Cut a tree and its columns down to one pruning, given by weights 0 and 1."""
    return truncate_tree(tree, stats, weights, weights.weight > 0, voting)


def map_to_smaller_tree(smaller: Tree, tree: Tree) -> Int32:
    """Where rows of the nodes of a tree, (m,), are in a smaller one that is a part of it."""
    place = np.zeros(tree.n_nodes, dtype=np.int32)
    inner = np.flatnonzero(~tree.is_leaf)
    depth = tree.node_depth[inner]
    for level in np.unique(depth):
        nodes = inner[depth == level]
        below = smaller.left[place[nodes]]
        for side in (0, 1):
            place[tree.left[nodes] + side] = np.where(below == LEAF, place[nodes], below + side)
    return place


def compact_tree(
    tree: Tree, stats: Stats, weights: NodeWeights, voting: Voting, tolerance: float | Float64
) -> FittedVote:
    """Cut off all cells without which no outcome of the vote changes by more than a tolerance.

    It is one for all outcomes, or one for each, (K,).

    A pruning that passes a leaf of the smaller tree stops there. So the outcome is that of a vote of
    prunings again, and keeps to slopes like theirs.
    """
    ballots = voting.ballots(tree, stats)
    ballot = ballots.cast(tree, weights)
    score = ballot.score
    stopped = stopped_outcomes(tree, weights, ballot, ballots, np.arange(tree.n_nodes))
    inner = np.flatnonzero(~tree.is_leaf)
    low, high = score.copy(), score.copy()
    depth = tree.node_depth[inner]
    for level in np.unique(depth)[::-1]:  # from the deepest cells up
        nodes = inner[depth == level]
        left, right = tree.left[nodes], tree.left[nodes] + 1
        low[nodes] = np.minimum(low[left], low[right])
        high[nodes] = np.maximum(high[left], high[right])
    change = np.maximum(high - stopped, stopped - low)
    is_small: Any = (change <= tolerance + _ROUNDING).all(axis=1)
    return truncate_tree(tree, stats, weights, is_small, voting)


class CompactableTree(TreeVoteEstimator):
    """Estimators of which there are smaller copies."""

    @snapshot_method
    def compact(self, tolerance: float = 0.05) -> Self:
        """Give a copy whose tree has no cells that hardly matter.

        For pictures, files and fast prediction. Cells of `tree_` become leaves where no row's
        prediction changes by more than the tolerance; the prunings that are left vote as before.

        Parameters
        ----------
        tolerance : float
            The most by which a class's share may change; for numbers the most by which the prediction
            may, in standard deviations of the target of the fit.

        Returns
        -------
        object
            A fitted estimator of the same class with the same parameters; a fit of it grows the whole
            tree again.

        Raises
        ------
        ValueError
            If the tolerance is negative or not finite.
        NotFittedError
            If there is no fit.

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
        most: Any = check_nonnegative("tolerance", tolerance)
        if isinstance(self.stats_, TargetStats):
            most *= float(np.sqrt(self.stats_.sse[0] / self.stats_.rows[0]))
        elif isinstance(self.stats_, SeveralStats) and not is_classifier(self):
            most *= np.array(self.stats_.deviations)
        smaller = copy(self)
        smaller.seen_rows_ = None
        smaller._set_fitted(
            *compact_tree(self.tree_, self.stats_, self.weights_, self._get_voting(), most)
        )
        return smaller
