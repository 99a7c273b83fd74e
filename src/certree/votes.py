"""The vote: path sums of the weights, pushed down once to every node."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from certree import _core
from certree.columns import Float64, Int32, column, nonnegative
from certree.stats import NodeStats, Stats, TargetStats
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
        outcome for every x in it, and sums to 1. For a numeric target K is 1, and the row is the
        average of the prunings' predictions.
    """

    score: Float64

    def __post_init__(self) -> None:
        score: Float64 = column("score", self.score, "float64", (None, None))
        if not np.isfinite(score).all():
            raise ValueError("score must be finite")
        object.__setattr__(self, "score", score)

    @property
    def label(self) -> Int32:
        """Class with the most votes, ties to the lowest: (m,)."""
        label: Int32 = self.score.argmax(axis=1).astype(np.int32)
        return label


@dataclass(frozen=True, slots=True, eq=False)
class Ballots:
    """What every node votes for: a label (m,), or values (m, K); the other one is None."""

    label: Int32 | None
    values: Float64 | None
    n_values: int


Slopes = NDArray[np.int8] | None


def ballots(
    tree: Tree, stats: Stats, kind: Kind, smoothing: float = 0.0, slopes: Slopes = None
) -> Ballots:
    """Say what every node votes for; see `vote`."""
    if kind == "mean":
        values = _averages(tree, stats, smoothing, slopes)
        return Ballots(None, values, values.shape[1])
    if kind != "majority":
        raise ValueError(f'kind must be "majority" or "mean", got {kind!r}')
    if not isinstance(stats, NodeStats):
        raise ValueError('a numeric target takes kind="mean", got "majority"')
    label = stats.of(tree).label
    if slopes is not None:
        label = _averages(tree, stats, 0.0, slopes).argmax(axis=1).astype(np.int32)
    return Ballots(label, None, stats.n_classes)


def _averages(tree: Tree, stats: Stats, smoothing: float, slopes: Slopes) -> Float64:
    """Means, or shares of classes, that rise or fall along features in every pruning."""
    values = stats.of(tree).averages(tree, nonnegative("smoothing", smoothing))
    if slopes is None:
        return values
    if values.shape[1] > 2:
        raise ValueError(f"slopes take numbers or two classes, got {values.shape[1]} classes")
    last = np.ascontiguousarray(values[:, -1])
    moved = _core.make_monotone(tree.left, tree.feature, slopes, last)
    return moved[:, None] if values.shape[1] == 1 else np.column_stack([1 - moved, moved])


def vote(
    tree: Tree,
    stats: Stats,
    weights: NodeWeights,
    kind: Kind = "majority",
    smoothing: float = 0.0,
    slopes: Slopes = None,
) -> Vote:
    """Let all prunings vote in every cell.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats or TargetStats
        Labels and counts, or means, of its nodes.
    weights : NodeWeights
        The law over prunings, or one pruning.
    kind : {"majority", "mean"}
        "majority": a pruning votes for the label of the leaf that x is in. "mean": it spreads its
        vote like the class frequencies there, or predicts the mean of a numeric target.
    smoothing : float
        Rows that are added to those of a node, with classes like its parent's; above the root all
        classes are equally frequent, and numbers have the mean of all rows. A node without rows is
        like its parent in any case. Only the mean vote reads it.
    slopes : ndarray of int8, shape (p,), or None
        For every feature 1 or -1 if the mean, or the share of the second of two classes, must not
        fall or rise along it, else 0. Values are moved as little as it takes to keep to it in every
        pruning, and so in the vote.

    Returns
    -------
    Vote

    Raises
    ------
    ValueError
        If `kind` is unknown, `smoothing` is negative or not finite, or the sizes differ.
    """
    weight = weights.of(tree).weight
    votes = ballots(tree, stats, kind, smoothing, slopes)
    return Vote(_core.push_down(tree.left, weight, votes.label, votes.values, votes.n_values))


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Variance of a numeric target at a row of each node, in two parts; both sum to the whole.

    Parameters
    ----------
    between : ndarray of shape (m,)
        Variance of the prunings' predictions, each with its weight.
    within : ndarray of shape (m,)
        Average over the prunings of the variance of the target in the leaf that holds the row,
        smoothed like the predictions: a leaf of one row knows no variance of its own.
    """

    between: Float64
    within: Float64


def spread(
    tree: Tree,
    stats: TargetStats,
    weights: NodeWeights,
    smoothing: float = 0.0,
    slopes: Slopes = None,
) -> Spread:
    """Split the variance of a numeric target by the law of total variance.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : TargetStats
        Moments of its nodes.
    weights : NodeWeights
        The law over prunings, or one pruning.
    smoothing, slopes
        Of the predictions; see `vote`.

    Returns
    -------
    Spread
        The rows of the leaves of the tree hold for every x in them.
    """
    # Distances from the overall mean, so that squares do not drown in it.
    mean = _averages(tree, stats, smoothing, slopes)[:, 0] - stats.mean[0]
    own = stats.sse / np.maximum(stats.rows, np.finfo(np.float64).tiny)
    variance = _core.smoothed_means(tree.left, stats.rows, own, smoothing)
    columns = np.column_stack([mean, mean**2, variance])
    sums = _core.push_down(tree.left, weights.of(tree).weight, None, columns, 3)
    between: Float64 = np.maximum(sums[:, 1] - sums[:, 0] ** 2, 0.0)
    return Spread(between, sums[:, 2])
