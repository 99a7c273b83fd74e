"""A single small tree in place of the vote of all prunings (`max_leaf_nodes` of certified trees)."""

from collections.abc import Sequence
from typing import Any

from certree.estimators.compact import FittedVote, collapse_to_pruning
from certree.estimators.tune import Candidate, GrownFold, Objective, tune
from certree.prunings.paths import PruningPath, cost_complexity_path
from certree.stats import Stats, TargetStats
from certree.tree import Tree
from certree.votes import Voting
from certree.weights.family import Scoring
from certree.weights.node_weights import NodeWeights

# Leaves of few rows are smoothed before cross-validation scores them.
_VALIDATION_VOTING = Voting("mean", 1.0)


def compute_small_path(tree: Tree, stats: Any) -> PruningPath:
    """Return the cost-complexity path of a tree, by Gini impurity or by sums of squares.

    By errors, nodes in which a rare class is frequent, but not the majority, would be lost.

    tree: the tree; stats: class counts or moments of the training rows in its nodes. Return its
    nested prunings with their alphas.
    """
    return cost_complexity_path(tree, stats, None if isinstance(stats, TargetStats) else "gini")


def choose_small_alpha(folds: Sequence[GrownFold], n_threads: int) -> float:
    """Choose the alpha of `compute_small_path` with the smallest cross-validated loss.

    folds: grown folds of the training set; n_threads: number of threads. The loss is the log loss,
    or the squared error for numeric targets. Without folds alpha is 1.
    """
    is_numeric = any(isinstance(fold.stats, TargetStats) for fold in folds)
    candidate = Candidate(compute_small_path, _VALIDATION_VOTING)
    scoring: Scoring = "squared" if is_numeric else "log_loss"
    return tune(Objective.for_candidate(folds, candidate, scoring, n_threads), [None])[0]


def find_small_pruning(tree: Tree, stats: Stats, n_leaves: int, alpha: float) -> NodeWeights:
    """Return the cost-complexity pruning at `alpha` with at most `n_leaves` leaves.

    If it has more leaves, the next larger alpha is used at which it has not. tree: the tree; stats:
    statistics of the training rows in its nodes. The result has weight 1 at leaves of the pruning,
    0 elsewhere.
    """
    return compute_small_path(tree, stats).limit_leaves(n_leaves, alpha)


def shrink_tree(
    tree: Tree, stats: Stats, n_leaves: int, alpha: float, voting: Voting
) -> FittedVote:
    """Reduce a tree to its cost-complexity pruning with at most `n_leaves` leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : Stats
        Statistics of the training rows in its nodes.
    n_leaves : int
        Largest number of leaves.
    alpha : float
        The alpha of the pruning; a larger one is used if the pruning would have too many leaves.
    voting : Voting
        How the pruning predicts.

    Returns
    -------
    tree, stats, weights, vote
        The small tree, its statistics, the weights of its nodes (1 at leaves), and its predictions.
    """
    return collapse_to_pruning(
        tree, stats, find_small_pruning(tree, stats, n_leaves, alpha), voting
    )
