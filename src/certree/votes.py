"""Votes of prunings: the prediction of all prunings of a tree, each with its posterior weight.

The vote of a leaf is a sum over the nodes on its path, so it is computed once for every node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from reprlib import repr as shortened
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from certree._core import make_monotone, score_nodes, score_some_nodes, smooth_means
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
from certree.rows.monotonic import MonotonicSigns
from certree.stats import NodeStats, SeveralStats, SparseNodeStats, Stats, TargetStats
from certree.stats.nodes import expect_nodes
from certree.stats.sparse import Entries
from certree.tree import Tree, Trees
from certree.weights.node_weights import NodeWeights, reached

__all__ = ["PredictionVariance", "Vote", "Voting", "prediction_variance", "vote"]

Kind = Literal["majority", "mean"]

# Number of scores that are held in memory at a time when only labels are needed.
_BLOCK = 1 << 22

_TOO_MANY_CLASSES = (
    "slopes must be None for more than two classes, got constraints for {n} classes: leave them out"
)


@dataclass(frozen=True, eq=False)
class Vote(ArrayRecord):
    """Prediction of a weighted vote of all prunings of a tree, at each of its m nodes.

    A pruning is the tree with some nodes turned into leaves. For a row it votes, with its posterior
    weight, for the prediction of its own leaf on the row's path (see `NodePredictions`).

    Parameters
    ----------
    score : array-like of float, shape (m, K)
        Weighted sum of the votes of the prunings that have the node, or a node above it, as a leaf;
        a vote is 1 for a label, or class frequencies, or a mean. At a leaf of the tree these are
        all prunings: its scores are the probabilities of K classes and sum to 1, or, with K = 1,
        the mean prediction of a numeric target. For several targets the columns of each target
        follow those of the one before.
    """

    score: Float64

    def __post_init__(self) -> None:
        score: Float64 = check_column("score", self.score, "float64", (None, None))
        if not score.shape[1]:
            raise ValueError(f"score must have at least one column, got shape {score.shape}")
        if not np.isfinite(score).all():
            raise ValueError("score must be finite, got NaN or infinity")
        object.__setattr__(self, "score", score)

    def check_tree(self, tree: Trees) -> Self:
        """Return this vote, or raise ValueError if `tree` has another number of nodes."""
        if len(self.score) != tree.n_nodes:
            raise ValueError(
                f"ballot has {len(self.score)} nodes, but the tree has {tree.n_nodes} nodes: use the "
                "vote of this tree"
            )
        return self

    @cached_property
    def label(self) -> Int32:
        """Class with the largest score in each node, (m,) int32; the lowest class on ties.

        A score is the weighted vote of the prunings (the tree with some nodes turned into leaves)
        that have the node, or a node above it, as a leaf. The label has no meaning for a numeric
        target or several targets.
        """
        return self.score.argmax(axis=1).astype(np.int32)

    def outcomes(self, nodes: NDArray[np.integer]) -> Float64:
        """Return the rows of `score` for some nodes, (k, K).

        A row sums up the weighted votes of the prunings (the tree with some nodes turned into
        leaves) that have the node, or a node above it, as a leaf. nodes: numbers of the nodes,
        (k,). At leaves of the tree the rows are class probabilities, or the mean prediction (K =
        1); for several targets their columns side by side.
        """
        return self.score.take(nodes, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class NodePredictions(ArrayRecord):
    """What each of a tree's m nodes predicts for its rows if it is a leaf: a label, or K numbers.

    A pruning turns some nodes of the tree into leaves and predicts what these predict. `Vote` is
    the weighted mean of such predictions over all prunings.

    Parameters
    ----------
    label : ndarray of int32, shape (m,), or None
        Class that each node predicts; None if `values` are set.
    values : ndarray of float64, shape (m, K), or None
        Class probabilities that each node predicts, or its mean (K = 1); for several targets the
        columns of each target follow those of the one before. None if `label` is set.
    n_values : int
        Number of columns of the prediction, K: the number of classes, 1 for a numeric target, and
        the sum of both over several targets.
    """

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
        """Class probabilities or means of the m nodes, (m, K): the field `values`.

        None if nodes vote by label. The C++ core reads it; `SparseNodePredictions.frequency` is a tuple
        instead.
        """
        return self.values

    def take(self, nodes: NDArray[np.integer]) -> Float64:
        """Return the predictions of some nodes as numbers, (k, K).

        nodes: numbers of the nodes, (k,). The prediction of a node is its row of `values`, or 1 for
        its label and 0 for other classes.
        """
        if self.values is not None:
            return self.values[nodes]
        assert self.label is not None
        return np.eye(self.n_values)[self.label[nodes]]

    def compute_vote(self, tree: Trees, weights: NodeWeights) -> Vote:
        """Average the predictions of all prunings of a tree by their weights; return a `Vote`.

        A pruning is the tree with some nodes turned into leaves. The field `score` of the result
        has a row for each node, (m, K). tree: the tree of these m nodes; weights: the distribution
        over its prunings, or one pruning: for each node the probability that it is a leaf of a
        drawn pruning. Raise ValueError if sizes differ.
        """
        weight = weights.check_tree(tree).weight
        return Vote.from_checked(
            score_nodes(tree.left, weight, self.label, self.values, self.n_values)
        )


@dataclass(frozen=True, slots=True, eq=False)
class SparseNodePredictions(ArrayRecord):
    """`NodePredictions` for many classes: what each node predicts, from sparse class counts.

    Class frequencies are not stored but computed when they are needed.

    Parameters
    ----------
    stats : SparseNodeStats
        Class counts of each node, and its most frequent class (label).
    kind : {"majority", "mean"}
        "majority": a node predicts its label; "mean": its smoothed class frequencies.
    smoothing : float
        Pseudo-count, only for "mean": number of rows of mean weight that are added to each node
        with the class frequencies of its parent (to the root with equal frequencies).
    """

    stats: SparseNodeStats
    kind: Kind
    smoothing: float

    @property
    def label(self) -> Int32 | None:
        """The label of each node, (m,), if nodes vote by label; else None.

        The label is the class code that each node predicts as a leaf: the field `label` of `stats`.
        """
        return self.stats.label if self.kind == "majority" else None

    @property
    def frequency(self) -> tuple[Entries, float, float] | None:
        """Sparse counts, smoothing and mean row weight, as a tuple; None for votes by label.

        The C++ core computes the class frequencies of the nodes from it. The sparse counts are a
        tuple of the fields begin, classes, weight and n_classes of `stats`: the classes that occur
        in node v, and their weights, are the entries ``begin[v]`` to ``begin[v + 1] - 1`` of
        classes and weight.
        """
        if self.kind == "majority":
            return None
        return self.stats.table, self.smoothing, self.stats.weight_unit

    def compute_vote(self, tree: Trees, weights: NodeWeights) -> DeferredVote:
        """Return the weighted mean prediction of all prunings, whose scores are computed when read.

        A pruning is the tree with some nodes turned into leaves. tree: the tree of the nodes in
        `stats`; weights: the distribution over its prunings, as the probability of each node to be
        a leaf of a drawn pruning. Raise ValueError if sizes differ.
        """
        return DeferredVote(tree, weights.check_tree(tree).weight, self)


@dataclass(frozen=True, eq=False)
class DeferredVote(ArrayRecord):
    """Weighted vote of all prunings of a tree on many classes; scores are computed when read.

    A pruning is the tree with some nodes turned into leaves. `vote` returns this object for sparse
    class counts, and a `Vote`, which stores all scores, for others.

    Parameters
    ----------
    tree : Trees
        The tree, of m nodes.
    weight : ndarray of float64, shape (m,)
        Probability that each node is a leaf of a pruning that is drawn from the distribution over
        prunings: `NodeWeights.weight`.
    node_predictions : SparseNodePredictions
        What each node predicts if it is a leaf of a pruning.
    """

    tree: Trees
    weight: Float64
    node_predictions: SparseNodePredictions

    def __post_init__(self) -> None:
        self._check("float64", (self.tree.n_nodes,), "weight")

    def to_stored(self) -> dict[str, Any]:
        """Return {}: a model file does not store a vote.

        The vote, the weighted mean of the predictions of all prunings (the tree with some nodes
        turned into leaves), is computed again from the tree, the weights of its prunings and the
        class counts.
        """
        return {}

    def check_tree(self, tree: Trees) -> Self:
        """Return this vote, or raise ValueError if `tree` has another number of nodes."""
        expect_nodes(len(self.weight), tree)
        return self

    @property
    def score(self) -> Float64:
        """Scores of all m nodes for K classes as a dense table, (m, K), which may take much memory.

        A pruning is the tree with some nodes turned into leaves. A row sums up the votes of the
        prunings that have the node, or a node above it, as a leaf.
        """
        return self.outcomes(np.arange(self.tree.n_nodes))

    @cached_property
    def label(self) -> Int32:
        """Class with the largest score in each node, (m,) int32; the lowest class on ties.

        A score is the weighted vote of the prunings (the tree with some nodes turned into leaves)
        that have the node, or a node above it, as a leaf.
        """
        m = self.tree.n_nodes
        blocks = np.array_split(
            np.arange(m), m * self.node_predictions.stats.n_classes // _BLOCK + 1
        )
        labels = [self.outcomes(nodes).argmax(axis=1).astype(np.int32) for nodes in blocks]
        return np.concatenate(labels)

    def outcomes(self, nodes: NDArray[np.integer], rest: Float64 | None = None) -> Float64:
        """Compute the scores of some nodes: the weighted votes of the tree's prunings for each class.

        A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        nodes : ndarray of int, shape (k,)
            Numbers of the nodes.
        rest : ndarray of float64, shape (m,), or None
            Weight that is added to that of each node as a leaf. For a row that stops in a node it
            is the weight of the prunings that split this node. It counts in the scores of the node
            itself, but not in those of nodes below it. None: 0.

        Returns
        -------
        ndarray of float64, shape (k, K)
            Scores of each node for K classes: probabilities if it is a leaf of the tree, else only
            the votes of the prunings that have the node, or a node above it, as a leaf.
        """
        distinct, place = np.unique(nodes, return_inverse=True)
        node_predictions = self.node_predictions
        distinct_scores = score_some_nodes(
            self.tree.left,
            self.weight,
            rest,
            node_predictions.label,
            node_predictions.frequency,
            node_predictions.stats.n_classes,
            distinct.astype(np.int32),
        )
        scores: Float64 = np.asarray(distinct_scores)[place]
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class Voting:
    """How prunings vote: by label or by mean, with which smoothing and monotonic constraints.

    A pruning is the tree with some nodes turned into leaves. The prediction of a model is the
    average of the votes of all prunings, by their posterior weights.

    Parameters
    ----------
    kind : {"majority", "mean"}
        "majority": a pruning votes for the label of the leaf that a row reaches. "mean": its vote
        is the class frequencies of that leaf, or the mean of a numeric target.
    smoothing : float
        Pseudo-count: number of rows of mean weight that are added to each node with the class
        frequencies, or the mean, of its parent; >= 0. To the root they are added with equal
        frequencies, or the mean of all rows. A node without rows has the values of its parent. Only
        the mean vote is smoothed.
    slopes : ndarray of int8, shape (p,), or None
        Monotonic constraint of each feature, like `monotonic_cst` of estimators: 1 if the mean, or
        the probability of the second of two classes, must not fall as the feature rises; -1 if it
        must not rise; 0 for none. Values of nodes are changed as little as needed for the vote of
        each pruning to satisfy them. The array is copied.

    Raises
    ------
    ValueError
        If `kind` is unknown, `smoothing` is negative or not finite, or `slopes` has other values
        than -1, 0 and 1.
    """

    kind: Kind = "majority"
    smoothing: float = 0.0
    slopes: MonotonicSigns = None

    def __post_init__(self) -> None:
        validate_settings(self)
        check_nonnegative("smoothing", self.smoothing)
        if self.slopes is None:
            return
        signs = to_array("slopes", self.slopes)
        if signs.dtype.kind not in "bi" or not np.isin(signs, (-1, 0, 1)).all():
            raise ValueError(f"slopes must hold -1, 0 or 1, got {shortened(self.slopes)}")
        # A copy that the caller cannot change, as the C++ core does not check it again.
        object.__setattr__(self, "slopes", np.array(signs, dtype=np.int8, order="C"))

    @overload
    def ballots(self, tree: Trees, stats: SparseNodeStats) -> SparseNodePredictions: ...
    @overload
    def ballots(
        self, tree: Trees, stats: NodeStats | TargetStats | SeveralStats
    ) -> NodePredictions: ...
    @overload
    def ballots(self, tree: Trees, stats: Stats) -> NodePredictions | SparseNodePredictions: ...
    def ballots(self, tree: Trees, stats: Stats) -> NodePredictions | SparseNodePredictions:
        """Compute what each node of a tree predicts if it is a leaf of a pruning.

        A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        tree : Trees
            The tree, of m nodes.
        stats : NodeStats, SparseNodeStats, TargetStats or SeveralStats
            Counts and labels, or means, of its nodes.

        Returns
        -------
        NodePredictions or SparseNodePredictions
            `SparseNodePredictions` for `SparseNodeStats`. For several targets `NodePredictions`
            have values side by side, also with kind "majority" (1 in the column of the label, 0 in
            the other classes).

        Raises
        ------
        ValueError
            If a numeric target has kind "majority", the constraints are given for more than two
            classes or for several targets, or sizes differ.
        """
        if isinstance(stats, SparseNodeStats):
            if self.slopes is not None:
                raise ValueError(_TOO_MANY_CLASSES.format(n=stats.n_classes))
            return SparseNodePredictions(stats.check_tree(tree), self.kind, self.smoothing)
        if isinstance(stats, SeveralStats) and self.kind == "majority":
            nodes = np.arange(len(tree.left))
            labels = [self.ballots(tree, target).take(nodes) for target in stats.of_each]
            values = np.concatenate(labels, axis=1)
            return NodePredictions.from_checked(None, values, values.shape[1])
        if self.kind == "mean":
            values = self.averages(tree, stats)
            return NodePredictions.from_checked(None, values, values.shape[1])
        if not isinstance(stats, NodeStats):
            raise ValueError('kind must be "mean" for a numeric target, got "majority"')
        label = stats.check_tree(tree).label
        if self.slopes is not None:
            unsmoothed = Voting("mean", 0.0, self.slopes)
            label = unsmoothed.averages(tree, stats).argmax(axis=1).astype(np.int32)
        return NodePredictions.from_checked(label, None, stats.n_classes)

    def averages(self, tree: Trees, stats: Stats) -> Float64:
        """Compute what each node predicts in mean votes: class frequencies (m, K) or means (m, 1).

        For several targets the columns of each target follow those of the one before: K for a
        target of K classes, 1 for a numeric target. The values are smoothed and satisfy the
        constraints `slopes`.

        tree: the tree; stats: the statistics of its nodes. Raise ValueError if constraints are
        given for more than two classes or for several targets, or sizes differ.
        """
        values = stats.check_tree(tree).averages(tree, self.smoothing)
        if self.slopes is None:
            return values
        if isinstance(stats, SeveralStats):
            raise ValueError(
                "slopes must be None for several targets, got constraints for "
                f"{len(stats.of_each)} targets: leave them out"
            )
        signs = self.slopes
        if signs.shape != (tree.n_features,):
            raise ValueError(f"slopes must have shape ({tree.n_features},), got {signs.shape}")
        if values.shape[1] > 2:
            raise ValueError(_TOO_MANY_CLASSES.format(n=values.shape[1]))
        last = np.ascontiguousarray(values[:, -1])
        monotone = make_monotone(tree.left, tree.feature, signs, last)
        if values.shape[1] == 1:
            return monotone[:, None]
        return np.column_stack([1 - monotone, monotone])


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
    """Compute the vote of all prunings of a tree, each with its weight, in every node.

    A pruning is the tree with some nodes turned into leaves. Its vote for a row is the prediction
    of its leaf on the row's path; the outcome is the weighted mean of these votes.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats, SparseNodeStats, TargetStats or SeveralStats
        Labels and counts, or means, of its nodes.
    weights : NodeWeights
        The posterior over prunings, or one pruning: for each node the probability that it is a leaf
        of a drawn pruning.
    voting : Voting, "majority" or "mean"
        How a pruning votes; a string stands for ``Voting(kind)``.

    Returns
    -------
    Vote or DeferredVote
        The outcome, whose `score` has one row for each node; a `DeferredVote` for
        `SparseNodeStats`, whose scores are computed when they are read.

    Raises
    ------
    ValueError
        If the kind is unknown, or the sizes differ.
    """
    voting = Voting(voting) if isinstance(voting, str) else voting
    weights.check_tree(tree)
    return voting.ballots(tree, stats).compute_vote(tree, weights)


def stopped_outcomes(
    tree: Trees,
    weights: NodeWeights,
    ballot: Vote | DeferredVote,
    node_predictions: NodePredictions | SparseNodePredictions,
    nodes: NDArray[np.integer],
) -> Float64:
    """Compute the vote for rows that stop at given nodes instead of going on to a leaf.

    A pruning is the tree with some nodes turned into leaves; the vote is the weighted mean of the
    predictions of all prunings. Prunings that split such a node are counted as if the node were
    their leaf. So the outcome does not depend on splits below it.

    Parameters
    ----------
    tree : Trees
        The tree, of m nodes.
    weights : NodeWeights
        The posterior over its prunings: for each node the probability that it is a leaf of a drawn
        pruning.
    ballot : Vote or DeferredVote
        The outcome of the vote with these weights, as `vote` returns it. It is not read if
        `node_predictions` are `SparseNodePredictions`.
    node_predictions : NodePredictions or SparseNodePredictions
        What each node predicts as a leaf, as `Voting.ballots` returns it.
    nodes : ndarray of int, shape (k,)
        Numbers of the nodes.

    Returns
    -------
    ndarray of float64, shape (k, K)
        For each of these nodes the probabilities of K classes, or the mean prediction (K = 1); for
        several targets their columns side by side.
    """
    # Prunings do not split leaves; a difference there is a rounding error.
    rest = np.where(tree.is_leaf, 0.0, np.maximum(reached(tree, weights) - weights.weight, 0.0))
    if isinstance(node_predictions, SparseNodePredictions):
        return node_predictions.compute_vote(tree, weights).outcomes(nodes, rest)
    return ballot.score[nodes] + rest[nodes, None] * node_predictions.take(nodes)


@dataclass(frozen=True, slots=True, eq=False)
class PredictionVariance:
    """The variance of a numeric target in each of the m nodes of a tree, as the sum of two terms.

    `prediction_variance` makes it. A pruning is the tree with some nodes turned into leaves; each
    has a posterior weight. The entries of a leaf apply to all rows that reach it; those of inner
    nodes are partial sums.

    Parameters
    ----------
    between : ndarray of shape (m,)
        Variance of the predictions of the prunings, each with its weight, in squared units of the
        target.
    within : ndarray of shape (m,)
        Mean over the prunings of the variance of the target in their leaf. That variance is
        smoothed like the predictions, as a leaf of one row has no variance.
    """

    between: Float64
    within: Float64


@validate_arguments
def prediction_variance(
    tree: Tree, stats: TargetStats, weights: NodeWeights, voting: Voting = Voting("mean")
) -> PredictionVariance:
    """Decompose the variance of a numeric target by the law of total variance.

    A pruning is the tree with some nodes turned into leaves. The two terms are the variance of the
    prunings' predictions, and the mean over the prunings of the variance within their leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : TargetStats
        Number of rows, mean target and sum of squares of each node.
    weights : NodeWeights
        The posterior over prunings, or one pruning: for each node the probability that it is a leaf
        of a drawn pruning.
    voting : Voting
        Smoothing and monotonic constraints of the predictions; its `kind` is not read.

    Returns
    -------
    PredictionVariance
        The entries of a leaf of the tree apply to all rows in it.
    """
    mean, exponent = scaled_distances(voting.averages(tree, stats)[:, 0], stats.mean[0])
    with np.errstate(over="ignore"):
        node_variance = stats.sse / np.maximum(stats.rows, np.finfo(np.float64).tiny)
    # The precision of a variance depends on the number of rows rather than on their weights, so
    # smoothing uses the effective sample size.
    variance = smooth_means(tree.left, stats.effective_size, node_variance, voting.smoothing, 1.0)
    columns = np.column_stack([mean, mean**2, variance])
    sums = score_nodes(tree.left, weights.check_tree(tree).weight, None, columns, 3)
    with np.errstate(over="ignore"):
        between: Float64 = np.ldexp(np.maximum(sums[:, 1] - sums[:, 0] ** 2, 0.0), 2 * exponent)
    return PredictionVariance(between, sums[:, 2])


def scaled_distances(values: Float64, mean: float) -> tuple[Float64, int]:
    """Compute distances from a mean, scaled so that their squares do not overflow.

    Parameters
    ----------
    values : ndarray of float64, shape (m,)
        Numbers.
    mean : float
        Subtracted first, as squares of values far from 0 would lose digits.

    Returns
    -------
    scaled : ndarray of float64, shape (m,)
        ``(values - mean) / 2**exponent``, below 1 in magnitude.
    exponent : int
        Exponent of the power of two.
    """
    half = values / 2 - mean / 2
    exponent = int(np.frexp(np.abs(half).max())[1]) + 1
    return np.ldexp(half, 1 - exponent), exponent
