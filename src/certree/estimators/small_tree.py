"""One small tree in place of the vote of all prunings: which pruning of the whole tree it is."""

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

# Rows with the shares of its parent that a judged leaf is given: a leaf of few rows is no certainty.
_JUDGED_BY = Voting("mean", 1.0)


def compute_small_path(tree: Tree, stats: Any) -> PruningPath:
    """The cost-complexity prunings of a tree, by Gini impurity or sums of squares.

    By errors a rare class would be lost, and with it cells in which it is often met.
    """
    return cost_complexity_path(tree, stats, None if isinstance(stats, TargetStats) else "gini")


def choose_small_alpha(folds: Sequence[GrownFold], n_threads: int) -> float:
    """The alpha with the lowest log loss, or squared loss, in folds of training samples."""
    of_numbers = any(isinstance(fold.stats, TargetStats) for fold in folds)
    judged = Candidate(compute_small_path, _JUDGED_BY)
    scoring: Scoring = "squared" if of_numbers else "log_loss"
    return tune(Objective.for_candidate(folds, judged, scoring, n_threads), [None])[0]


def find_small_pruning(tree: Tree, stats: Stats, n_leaves: int, alpha: float) -> NodeWeights:
    """The pruning at this alpha, or at a higher one at which it has at most so many leaves."""
    return compute_small_path(tree, stats).limit_leaves(n_leaves, alpha)


def shrink_tree(
    tree: Tree, stats: Stats, n_leaves: int, alpha: float, voting: Voting
) -> FittedVote:
    """Cut a tree and its columns down to that pruning."""
    return collapse_to_pruning(
        tree, stats, find_small_pruning(tree, stats, n_leaves, alpha), voting
    )
