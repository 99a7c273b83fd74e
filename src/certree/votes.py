"""The vote: path sums of the weights, pushed down once to every node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as shortened
from typing import Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from certree._core import make_monotone, push_down, push_down_to, smoothed_means
from certree.interface.arrays import (
    ArrayRecord,
    Float64,
    Int32,
    check_codes,
    check_column,
    check_nonnegative,
    to_array,
)
from certree.interface.signatures import validate_arguments, validate_settings
from certree.stats import NodeStats, SeveralStats, SparseNodeStats, Stats, TargetStats
from certree.stats.nodes import expect_nodes
from certree.stats.sparse import Entries
from certree.tree import Tree, Trees
from certree.weights.node_weights import NodeWeights, reached

__all__ = ["PredictionVariance", "Vote", "Voting", "prediction_variance", "vote"]

Kind = Literal["majority", "mean"]
Slopes = NDArray[np.int8] | None

# Scores that are made at a time where only their labels are asked for.
_BLOCK = 1 << 22

_EXPECTED_SLOPES = "slopes take numbers or two classes, got {n} classes"


@dataclass(frozen=True, eq=False)
class Vote(ArrayRecord):
    """The outcome of the vote in every cell.

    Parameters
    ----------
    score : array-like of float, shape (m, K)
        Votes that a class has from a node and all above it. The row of a leaf of the tree is the
        outcome for every x in it, and sums to 1. For a numeric target K is 1, and the row is the
        average of the prunings' predictions. Of several targets the columns stand one target behind
        the other.
    """

    score: Float64

    def __post_init__(self) -> None:
        score: Float64 = check_column("score", self.score, "float64", (None, None))
        if not score.shape[1] or not np.isfinite(score).all():
            raise ValueError("score must be finite numbers, one column at least")
        object.__setattr__(self, "score", score)

    def of(self, tree: Trees) -> Self:
        """Check that the votes belong to a tree of this size, and return them."""
        if len(self.score) != tree.n_nodes:
            raise ValueError(
                f"ballot has {len(self.score)} nodes, but the tree has {tree.n_nodes} nodes"
            )
        return self

    @cached_property
    def label(self) -> Int32:
        """Class with the most votes, ties to the lowest: (m,)."""
        return self.score.argmax(axis=1).astype(np.int32)

    def outcomes(self, nodes: NDArray[np.integer]) -> Float64:
        """The scores of some nodes, (k, K)."""
        return self.score.take(nodes, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class Ballots(ArrayRecord):
    """What every node votes for: a label (m,), or values (m, K); the other one is None."""

    label: Int32 | None
    values: Float64 | None
    n_values: int

    def __post_init__(self) -> None:
        if self.label is not None:
            label = check_codes("label", self.label, len(self.label), self.n_values)
            object.__setattr__(self, "label", label)
        if self.values is not None:
            self._check("float64", (None, self.n_values), "values")

    @property
    def frequency(self) -> Float64 | None:
        """The values, as the core takes them."""
        return self.values

    def at(self, nodes: NDArray[np.integer]) -> Float64:
        """The values of some nodes, (k, K); 0 and 1 of a label."""
        if self.values is not None:
            return self.values[nodes]
        assert self.label is not None
        return np.eye(self.n_values)[self.label[nodes]]

    def cast(self, tree: Trees, weights: NodeWeights) -> Vote:
        """Let all prunings vote with these ballots, each with its weight."""
        weight = weights.of(tree).weight
        return Vote.from_checked(
            push_down(tree.left, weight, self.label, self.values, self.n_values)
        )


@dataclass(frozen=True, slots=True, eq=False)
class SparseBallots(ArrayRecord):
    """What every node votes for where there are many classes: its label, or what its rows are.

    Parameters
    ----------
    stats : SparseNodeStats
        The counts and labels.
    kind : {"majority", "mean"}
        Which of them.
    smoothing : float
        See `Voting`.
    """

    stats: SparseNodeStats
    kind: Kind
    smoothing: float

    @property
    def label(self) -> Int32 | None:
        """The labels, if these are what nodes vote for."""
        return self.stats.label if self.kind == "majority" else None

    @property
    def frequency(self) -> tuple[Entries, float, float] | None:
        """The counts and what smooths them otherwise, as the core takes them."""
        if self.kind == "majority":
            return None
        return self.stats.table, self.smoothing, self.stats.weight_unit

    def cast(self, tree: Trees, weights: NodeWeights) -> DeferredVote:
        """Let all prunings vote with these ballots, each with its weight."""
        return DeferredVote(tree, weights.of(tree).weight, self)


@dataclass(frozen=True, eq=False)
class DeferredVote(ArrayRecord):
    """The outcome of a vote on many classes, made for the nodes that are asked for.

    Parameters
    ----------
    tree : Tree
        The tree.
    weight : ndarray of float64, shape (m,)
        Weight of each node; see `NodeWeights`.
    ballots : SparseBallots
        What its nodes vote for.
    """

    tree: Trees
    weight: Float64
    ballots: SparseBallots

    def __post_init__(self) -> None:
        self._check("float64", (self.tree.n_nodes,), "weight")

    def of(self, tree: Trees) -> Self:
        """Check that the votes belong to a tree of this size, and return them."""
        expect_nodes(len(self.weight), tree)
        return self

    @property
    def score(self) -> Float64:
        """The scores of all nodes as a table, (m, K), which may take much memory; see `Vote`."""
        return self.outcomes(np.arange(self.tree.n_nodes))

    @cached_property
    def label(self) -> Int32:
        """Class with the most votes, ties to the lowest: (m,)."""
        m = self.tree.n_nodes
        blocks = np.array_split(np.arange(m), m * self.ballots.stats.n_classes // _BLOCK + 1)
        labels = [self.outcomes(nodes).argmax(axis=1).astype(np.int32) for nodes in blocks]
        return np.concatenate(labels)

    def outcomes(self, nodes: NDArray[np.integer], rest: Float64 | None = None) -> Float64:
        """The scores of some nodes, (k, K), to which each adds the rest, (m,), of what it says."""
        asked, place = np.unique(nodes, return_inverse=True)
        ballots = self.ballots
        found = push_down_to(
            self.tree.left,
            self.weight,
            rest,
            ballots.label,
            ballots.frequency,
            ballots.stats.n_classes,
            asked.astype(np.int32),
        )
        scores: Float64 = np.asarray(found)[place]
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class Voting:
    """How a pruning votes.

    Parameters
    ----------
    kind : {"majority", "mean"}
        "majority": a pruning votes for the label of the leaf that x is in. "mean": it spreads its
        vote like the class frequencies there, or predicts the mean of a numeric target.
    smoothing : float
        Rows of mean weight that are added to those of a node, with classes like its parent's; above the
        root all classes are equally frequent, and numbers have the mean of all rows. A node without
        rows is like its parent in any case. Only the mean vote reads it.
    slopes : ndarray of int8, shape (p,), or None
        For every feature 1 or -1 if the mean, or the share of the second of two classes, must not
        fall or rise along it, else 0. Values are moved as little as it takes to keep to it in every
        pruning, and so in the vote.

    Raises
    ------
    ValueError
        If `kind` is unknown, or `smoothing` is negative or not finite.
    """

    kind: Kind = "majority"
    smoothing: float = 0.0
    slopes: Slopes = None

    def __post_init__(self) -> None:
        validate_settings(self)
        check_nonnegative("smoothing", self.smoothing)
        if self.slopes is None:
            return
        slopes = to_array("slopes", self.slopes)
        if slopes.dtype.kind not in "bi" or not np.isin(slopes, (-1, 0, 1)).all():
            raise ValueError(f"slopes must hold -1, 0 or 1, got {shortened(self.slopes)}")
        # A copy, as the core trusts what has been checked.
        object.__setattr__(self, "slopes", np.array(slopes, dtype=np.int8, order="C"))

    @overload
    def ballots(self, tree: Trees, stats: SparseNodeStats) -> SparseBallots: ...
    @overload
    def ballots(self, tree: Trees, stats: NodeStats | TargetStats | SeveralStats) -> Ballots: ...
    @overload
    def ballots(self, tree: Trees, stats: Stats) -> Ballots | SparseBallots: ...
    def ballots(self, tree: Trees, stats: Stats) -> Ballots | SparseBallots:
        """Say what every node votes for."""
        if isinstance(stats, SparseNodeStats):
            if self.slopes is not None:
                raise ValueError(_EXPECTED_SLOPES.format(n=stats.n_classes))
            return SparseBallots(stats.of(tree), self.kind, self.smoothing)
        if isinstance(stats, SeveralStats) and self.kind == "majority":
            every = np.arange(len(tree.left))
            labels = [self.ballots(tree, one).at(every) for one in stats.of_each]
            values = np.concatenate(labels, axis=1)
            return Ballots.from_checked(None, values, values.shape[1])
        if self.kind == "mean":
            values = self.averages(tree, stats)
            return Ballots.from_checked(None, values, values.shape[1])
        if not isinstance(stats, NodeStats):
            raise ValueError('a numeric target takes kind="mean", got "majority"')
        label = stats.of(tree).label
        if self.slopes is not None:
            plain = Voting("mean", 0.0, self.slopes)
            label = plain.averages(tree, stats).argmax(axis=1).astype(np.int32)
        return Ballots.from_checked(label, None, stats.n_classes)

    def averages(self, tree: Trees, stats: Stats) -> Float64:
        """Means, or shares of classes, that rise or fall along features in every pruning."""
        values = stats.of(tree).averages(tree, self.smoothing)
        if self.slopes is None:
            return values
        if isinstance(stats, SeveralStats):
            raise ValueError(f"slopes take one target, got {len(stats.of_each)}")
        slopes = self.slopes
        if slopes.shape != (tree.n_features,):
            raise ValueError(f"slopes must have shape ({tree.n_features},), got {slopes.shape}")
        if values.shape[1] > 2:
            raise ValueError(_EXPECTED_SLOPES.format(n=values.shape[1]))
        last = np.ascontiguousarray(values[:, -1])
        moved = make_monotone(tree.left, tree.feature, slopes, last)
        return moved[:, None] if values.shape[1] == 1 else np.column_stack([1 - moved, moved])


@overload
def vote(
    tree: Tree,
    stats: NodeStats | TargetStats | SeveralStats,
    weights: NodeWeights,
    voting: Voting | Kind = "majority",
) -> Vote: ...
@overload
def vote(
    tree: Tree, stats: Stats, weights: NodeWeights, voting: Voting | Kind = "majority"
) -> Vote | DeferredVote: ...
@validate_arguments
def vote(
    tree: Tree, stats: Stats, weights: NodeWeights, voting: Voting | Kind = "majority"
) -> Vote | DeferredVote:
    """Let all prunings vote in every cell.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats, SparseNodeStats, TargetStats or SeveralStats
        Labels and counts, or means, of its nodes.
    weights : NodeWeights
        The posterior over prunings, or one pruning.
    voting : Voting, "majority" or "mean"
        How a pruning votes; a string is ``Voting(kind)``.

    Returns
    -------
    Vote or DeferredVote
        The latter for `SparseNodeStats`.

    Raises
    ------
    ValueError
        If the kind is unknown, or the sizes differ.
    """
    how = Voting(voting) if isinstance(voting, str) else voting
    weights.of(tree)
    return how.ballots(tree, stats).cast(tree, weights)


def stopped_outcomes(
    tree: Trees,
    weights: NodeWeights,
    ballot: Vote | DeferredVote,
    ballots: Ballots | SparseBallots,
    nodes: NDArray[np.integer],
) -> Float64:
    """The outcomes at some nodes, (k, K), if all prunings that come as far as a node stopped there."""
    # No pruning goes on from a leaf, whatever is left there by rounding.
    rest = np.where(tree.is_leaf, 0.0, np.maximum(reached(tree, weights) - weights.weight, 0.0))
    if isinstance(ballots, SparseBallots):
        return ballots.cast(tree, weights).outcomes(nodes, rest)
    return ballot.score[nodes] + rest[nodes, None] * ballots.at(nodes)


@dataclass(frozen=True, slots=True, eq=False)
class PredictionVariance:
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


@validate_arguments
def prediction_variance(
    tree: Tree, stats: TargetStats, weights: NodeWeights, voting: Voting = Voting("mean")
) -> PredictionVariance:
    """Split the variance of a numeric target by the law of total variance.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : TargetStats
        Moments of its nodes.
    weights : NodeWeights
        The posterior over prunings, or one pruning.
    voting : Voting
        Smoothing and slopes of the predictions.

    Returns
    -------
    PredictionVariance
        The rows of the leaves of the tree hold for every x in them.
    """
    mean, exponent = scaled_distances(voting.averages(tree, stats)[:, 0], stats.mean[0])
    with np.errstate(over="ignore"):
        own = stats.sse / np.maximum(stats.rows, np.finfo(np.float64).tiny)
    # How well a variance is known hangs on how many rows there are, not on what they weigh.
    variance = smoothed_means(tree.left, stats.effective_size, own, voting.smoothing, 1.0)
    columns = np.column_stack([mean, mean**2, variance])
    sums = push_down(tree.left, weights.of(tree).weight, None, columns, 3)
    with np.errstate(over="ignore"):
        between: Float64 = np.ldexp(np.maximum(sums[:, 1] - sums[:, 0] ** 2, 0.0), 2 * exponent)
    return PredictionVariance(between, sums[:, 2])


def scaled_distances(values: Float64, mean: float) -> tuple[Float64, int]:
    """Distances from the overall mean, in which squares drown, and the power of two that they lack.

    It changes no digit, and the squares of such distances do not overflow.
    """
    half = values / 2 - mean / 2
    exponent = int(np.frexp(np.abs(half).max())[1]) + 1
    return np.ldexp(half, 1 - exponent), exponent
