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
    """Compute the cost-complexity path of a tree, by Gini impurity or by sums of squares.

    Gini impurity keeps nodes in which a rare class is frequent without being the majority; a path
    by errors would prune them.

    tree: the tree; stats: class counts, or moments of a numeric target, of the training rows in its
    nodes. A pruning is the tree after some nodes have become leaves. Return its nested prunings,
    each with the alpha (price of a leaf) from which on it is best.
    """
    return cost_complexity_path(tree, stats, None if isinstance(stats, TargetStats) else "gini")


def choose_small_alpha(folds: Sequence[GrownFold], n_threads: int) -> float:
    """Choose alpha, the price of a leaf in cost-complexity pruning, by cross-validation.

    The prunings are those with the smallest sum, over leaves, of rows times Gini impurity (or of
    sums of squares) plus alpha for each leaf. The alpha with the smallest validation loss is
    chosen: log loss, or squared error for numeric targets. A pruning is the tree with some nodes
    turned into leaves.

    folds: trees and node statistics of the cross-validation folds of the training set; n_threads:
    number of threads. Return alpha; 1 if there are no folds.
    """
    is_numeric = any(isinstance(fold.stats, TargetStats) for fold in folds)
    candidate = Candidate(compute_small_path, _VALIDATION_VOTING)
    scoring: Scoring = "squared" if is_numeric else "log_loss"
    return tune(Objective.for_candidate(folds, candidate, scoring, n_threads), [None])[0]


def find_small_pruning(tree: Tree, stats: Stats, n_leaves: int, alpha: float) -> NodeWeights:
    """Return the cost-complexity pruning at `alpha` with at most `n_leaves` leaves.

    A pruning (the tree after some nodes have become leaves) minimises the sum, over leaves, of rows
    times Gini impurity, or of sums of squares, plus alpha for each leaf. If the pruning at `alpha`
    has more leaves, the smallest larger value is used that leaves at most `n_leaves`.

    tree: the tree, with m nodes; stats: statistics of the training rows in its nodes. The result
    has weight 1 at the leaves of the pruning, 0 at all other nodes.
    """
    return compute_small_path(tree, stats).limit_leaves(n_leaves, alpha)


def shrink_tree(
    tree: Tree, stats: Stats, n_leaves: int, alpha: float, voting: Voting
) -> FittedVote:
    """Reduce a tree to its cost-complexity pruning with at most `n_leaves` leaves.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : Stats
        Class counts, or moments of a numeric target, of the training rows in its nodes.
    n_leaves : int
        Largest number of leaves.
    alpha : float
        Price of a leaf: how much each leaf must lower the sum of rows times Gini impurity, or the
        sum of squares. A larger one is used if the pruning would have too many leaves.
    voting : Voting
        How the pruning predicts: by the majority label of a leaf, or by its smoothed class
        frequencies or mean.

    Returns
    -------
    tree, stats, weights, vote
        The small tree, its statistics, the weights of its nodes (1 at leaves), and its predictions.
    """
    return collapse_to_pruning(
        tree, stats, find_small_pruning(tree, stats, n_leaves, alpha), voting
    )
