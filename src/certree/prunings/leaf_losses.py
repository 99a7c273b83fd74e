"""Validation losses of prunings, also of those that a function finds for each alpha."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certree.interface.arrays import Float64
from certree.stats import NodeStats
from certree.tree import Tree
from certree.weights.family import Scoring, ValidationStatistics
from certree.weights.node_weights import NodeWeights, expect_pruning


def compute_leaf_losses(votes: ValidationStatistics, scoring: Scoring) -> Float64:
    """Compute for each node the loss of its validation rows if the node is a leaf, (m,).

    votes: the prediction of each node as a leaf, and statistics of the validation set, which must
    not be sparse; scoring: "error" (weight of misclassified rows), "log_loss" (nats) or "squared"
    (numeric targets). Losses are summed over the rows of each node by their weights.
    """
    validation, values = votes.validation, votes.values
    predicted: Float64 = np.eye(validation.shape[1])[votes.label] if values is None else values
    losses: Float64
    if scoring == "squared":
        rows, mean, sse = validation.T
        with np.errstate(over="ignore"):  # beyond float64 a loss is infinite
            losses = rows * (predicted[:, 0] - mean) ** 2 + sse
    elif scoring == "error":
        losses = NodeStats(validation, predicted.argmax(axis=1)).errors
    else:
        predicted = predicted / predicted.sum(axis=1, keepdims=True)
        logs = np.log(np.maximum(predicted, np.finfo(np.float64).eps))
        losses = -(validation * logs).sum(axis=1)
    return losses


@dataclass(frozen=True, slots=True, eq=False)
class SolvedPrunings:
    """The prunings that a pruning rule finds, computed one by one: one pruning for each alpha.

    A pruning is the tree with some nodes turned into leaves; alpha is the factor of the rule's
    penalty. `PruningRule.family` returns this object for rules that define `PruningRule.solve`. It
    implements the protocol `TuningCandidates`, so that cross-validation can choose alpha.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    find : callable
        ``find(alpha)`` returns the pruning for an alpha >= 0 as `NodeWeights`: weight 1 at its
        leaves, 0 at other nodes.
    """

    tree: Tree
    find: Callable[[float], NodeWeights]

    def solve(self, alpha: float) -> NodeWeights:
        """Return the pruning that the rule finds for `alpha`, as `NodeWeights` of 0 and 1.

        A pruning is the tree with some nodes turned into leaves. alpha: factor of the penalty, >=
        0. The weight is 1 at the leaves of the pruning. Raise TypeError or ValueError if the rule
        has returned something else.
        """
        found = self.find(alpha)
        if not isinstance(found, NodeWeights):
            raise TypeError(f"solve of a pruning rule must return a NodeWeights, got {found!r}")
        return expect_pruning(self.tree, found)

    def compute_losses(
        self,
        temperatures: Float64,
        votes: ValidationStatistics,
        scoring: Scoring,
        n_threads: int,  # noqa: ARG002 -- part of the protocol `TuningCandidates`, but not needed here
    ) -> Float64:
        """Compute the validation loss of the prunings for several alphas, (g,).

        A pruning is the tree with some nodes turned into leaves; alpha is the factor of its
        penalty. temperatures: the alphas of g prunings, (g, 1); votes: the prediction of each node
        as a leaf, and statistics of the validation set; scoring: "error" (weight of misclassified
        rows), "log_loss" (nats) or "squared"; n_threads: not used.
        """
        loss = compute_leaf_losses(votes, scoring)
        alphas = temperatures[:, 0].tolist()
        return np.array([self.solve(alpha).weight @ loss for alpha in alphas])
