"""The vote: path sums of the weights, pushed down once to every node."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from certree import _core
from certree.columns import Float64, Int32, column, nonnegative
from certree.stats import NodeStats
from certree.tree import Tree
from certree.weights import NodeWeights

Kind = Literal["majority", "mean"]


@dataclass(frozen=True, slots=True, eq=False)
class Vote:
    """The outcome of the vote in every cell.

    Parameters
    ----------
    score : array-like of float, shape (m, K)
        Votes that a class has from a node and all above it. The row of a leaf of the tree is the
        outcome for every x in it, and sums to 1.
    """

    score: Float64

    def __post_init__(self) -> None:
        score: Float64 = column("score", self.score, "float64", (None, None))
        if not np.isfinite(score).all() or (score.size and score.min() < 0):
            raise ValueError("score must be finite and non-negative")
        object.__setattr__(self, "score", score)

    @property
    def label(self) -> Int32:
        """Class with the most votes, ties to the lowest: (m,)."""
        label: Int32 = self.score.argmax(axis=1).astype(np.int32)
        return label


def node_frequencies(tree: Tree, stats: NodeStats, smoothing: float = 0.0) -> Float64:
    """Shares of the classes in each node, (m, K), smoothed as `vote` says."""
    return _core.frequencies(tree.left, stats.of(tree).counts, nonnegative("smoothing", smoothing))


def vote(
    tree: Tree,
    stats: NodeStats,
    weights: NodeWeights,
    kind: Kind = "majority",
    smoothing: float = 0.0,
) -> Vote:
    """Let all prunings vote in every cell.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Labels and counts of its nodes.
    weights : NodeWeights
        The law over prunings, or one pruning.
    kind : {"majority", "mean"}
        "majority": a pruning votes for the label of the leaf that x is in. "mean": it spreads its
        vote like the class frequencies there.
    smoothing : float
        Rows that are added to those of a node, with classes like its parent's; above the root all
        classes are equally frequent. A node without rows is like its parent in any case. Only the
        mean vote reads it.

    Returns
    -------
    Vote

    Raises
    ------
    ValueError
        If `kind` is unknown, `smoothing` is negative or not finite, or the sizes differ.
    """
    if kind not in ("majority", "mean"):
        raise ValueError(f'kind must be "majority" or "mean", got {kind!r}')
    frequency = node_frequencies(tree, stats, smoothing) if kind == "mean" else None
    return Vote(
        _core.push_down(
            tree.left, weights.of(tree).weight, stats.of(tree).label, frequency, stats.n_classes
        )
    )
