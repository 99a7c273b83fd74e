"""Divergences between distributions over prunings, and moments of the errors of drawn prunings.

A row's wrong mass is the probability that a pruning drawn from the posterior predicts it wrongly.
It depends only on the row's leaf and class, so that a mean over rows is a sum over a table of
leaves and classes.

Prunings that stop in different regions of one chain label all rows alike and count as one pruning
here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincc, expit

from certree._core import compute_log_masses, compute_posterior, sum_below_nodes
from certree.interface.arrays import MAX_SETTING, Float64, check_codes, check_column
from certree.interface.signatures import validate_arguments
from certree.stats import NodeStats
from certree.tree import Tree, Trees
from certree.votes import Vote
from certree.weights.node_weights import NodeWeights, reached


def log_sum(tree: Tree, log_stop: Float64, log_split: Float64) -> float:
    """Compute the log of the sum over all prunings of a product over their nodes, in O(m).

    A pruning is the tree with some nodes turned into leaves; its nodes are those that remain.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    log_stop : ndarray of float64, shape (m,)
        Log of the factor of a node that is a leaf of the pruning; -inf excludes such prunings.
    log_split : ndarray of float64, shape (m,)
        Log of the factor of a node that the pruning splits.

    Returns
    -------
    float
        The log of the sum; -inf if all prunings are excluded.
    """
    nothing = np.zeros((tree.n_nodes, 0))
    stops = np.ascontiguousarray(log_stop), np.ascontiguousarray(log_split)
    return compute_posterior(tree.left, nothing, *stops, np.zeros(0), np.zeros(0), False)[2]


@validate_arguments
def kl_divergence(tree: Trees, posterior: NodeWeights, prior: NodeWeights) -> float:
    """Compute the KL divergence (nats) of one distribution over prunings from another, in O(m).

    By the chain rule it is the sum over nodes of the probability of reaching the node times the
    divergence of its decision to stop or split. For a single pruning it is minus the log of its
    probability under `prior`. A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree or Trees
        The tree; divergences of several trees add up, as their prunings are independent.
    posterior : NodeWeights
        The distribution over prunings that is averaged over.
    prior : NodeWeights
        The distribution that it is compared with.

    Returns
    -------
    float
        KL(posterior || prior); inf if the prior excludes a pruning that the posterior allows.

    References
    ----------
    Cover and Thomas, "Elements of information theory", 2006, Theorem 2.5.3.
    """
    own = posterior.check_tree(tree).log_odds
    nats = np.zeros(len(own))
    decisions = zip(posterior.log_decisions, prior.check_tree(tree).log_decisions, strict=True)
    for probability, (log_posterior, log_prior) in zip(
        (expit(-own), expit(own)), decisions, strict=True
    ):
        possible = probability > 0  # 0 times infinity counts as 0
        nats[possible] += probability[possible] * (log_posterior[possible] - log_prior[possible])
    reach = reached(tree, posterior)
    seen = reach > 0
    with np.errstate(over="ignore"):  # beyond float64 the divergence is infinite
        return float(reach[seen] @ np.maximum(nats[seen], 0.0))


@validate_arguments
def renyi_divergence(tree: Tree, posterior: NodeWeights, prior: NodeWeights, order: float) -> float:
    """Compute the Renyi divergence (nats) of one distribution over prunings from another, in O(m).

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    posterior : NodeWeights
        The distribution over prunings whose power `order` is taken.
    prior : NodeWeights
        The distribution that it is compared with.
    order : float
        Positive and not 1, where the limit is `kl_divergence`.

    Returns
    -------
    float
        At least 0; inf if order > 1 and the prior excludes a pruning that the posterior allows.

    References
    ----------
    Van Erven and Harremoes, "Renyi divergence and Kullback-Leibler divergence", IEEE Trans.
    Information Theory 2014.
    """
    order = float(order)
    if not (0 < order <= MAX_SETTING and order != 1):
        raise ValueError(
            f"order must be positive, at most {MAX_SETTING:g} and not 1, got {order!r}"
        )
    if order > 1 and kl_divergence(tree, posterior, prior) == np.inf:
        return float("inf")
    factors = []
    decisions = zip(
        posterior.check_tree(tree).log_decisions, prior.check_tree(tree).log_decisions, strict=True
    )
    for log_posterior, log_prior in decisions:
        with np.errstate(invalid="ignore", over="ignore"):
            tilted = order * log_posterior + (1 - order) * log_prior
        # Decisions of posterior probability 0 do not count; the prior may exclude nodes below them.
        factors.append(
            np.where(log_posterior == -np.inf, -np.inf, np.where(tilted < np.inf, tilted, 0))
        )
    return max(log_sum(tree, *factors) / (order - 1), 0.0)


@validate_arguments
def log_prior_mass(tree: Tree, prior: NodeWeights, log_label: ArrayLike, label: ArrayLike) -> float:
    """Compute the log prior probability of predicting a given labelling of the leaves, in O(m L).

    A labelled pruning is a pruning with a label for each leaf, drawn independently. Several
    labelled prunings give all leaves of the tree the same labels; their probabilities are added up.
    The probabilities of all labellings sum to at most 1.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    prior : NodeWeights
        The prior over prunings.
    log_label : array-like of shape (m, L)
        Log of the prior probability of each of L labels at each node that is a leaf of the pruning;
        abstention may be one of them.
    label : array-like of int, shape (m,)
        The labelling, 0 .. L - 1; only entries of the tree's leaves are read.

    Returns
    -------
    float
        In nats; -inf if no labelled pruning predicts so.

    References
    ----------
    The recursion is that of Willems, Shtarkov and Tjalkens, "The context-tree weighting method",
    IEEE Trans. Information Theory 1995, over the prunings that are constant where the labelling is.
    """
    log_prior: Float64 = check_column("log_label", log_label, "float64", (tree.n_nodes, None))
    cells = check_codes("label", label, *log_prior.shape)
    stop, split = prior.check_tree(tree).log_decisions
    mass = compute_log_masses(tree.left, cells, stop[None], split[None], log_prior[None])
    return float(mass[0])


# Beta functions of larger numbers are imprecise.
_MOST_DRAWS = 2**31 - 1
_ROUNDING = 1e-9


@validate_arguments
def wrong_mass(ballot: Vote) -> Float64:
    """Sum the vote's probabilities of all other classes, for each node and class.

    ballot: a vote with the class probabilities of each node. Return entry (v, k): the probability
    in node v of all classes but k; shape (m, K), at most 1. It is added up, as 1 minus the
    probability would lose small values.
    """
    score = ballot.score
    # Sums of the classes before and after each, as 1 - score would lose small values.
    before, after = np.zeros_like(score), np.zeros_like(score)
    with np.errstate(over="ignore"):
        before[:, 1:] = np.cumsum(score[:, :-1], axis=1)
        after[:, :-1] = np.cumsum(score[:, :0:-1], axis=1)[:, ::-1]
        return np.minimum(before + after, 1.0)


def _check_votes(tree: Tree, ballot: Vote) -> Float64:
    """Return the class probabilities of a vote, (m, K), after a check against the tree.

    ballot: the vote, with the probability of each of K classes in each of m nodes. Raises
    ValueError if the vote has another number of nodes, or values outside 0 .. 1.
    """
    score = ballot.check_tree(tree).score
    if not ((score >= -_ROUNDING) & (score <= 1 + _ROUNDING)).all():
        raise ValueError(
            "ballot must hold probabilities of classes, between 0 and 1, got "
            f"{score.min():g} .. {score.max():g}"
        )
    return score


@dataclass(frozen=True, slots=True, eq=False)
class LeafVotes:
    """Calibration rows counted by leaf and true class, with the probabilities of the vote for them.

    `LeafVotes.from_counts` makes it. Each of the a entries is a pair of a leaf and a class that has
    rows there. A pruning is the tree with some nodes turned into leaves; it is drawn from the
    posterior, whose class probabilities are the vote.

    Parameters
    ----------
    rows : ndarray of float64, shape (a,)
        Number of rows of each pair.
    wrong : ndarray of float64, shape (a,)
        Probability that a drawn pruning predicts another class for them.
    right : ndarray of float64, shape (a,)
        Probability that it predicts their class.
    """

    rows: Float64
    wrong: Float64
    right: Float64

    @classmethod
    def from_counts(cls, tree: Tree, stats: NodeStats, ballot: Vote) -> LeafVotes:
        """Collect the pairs of a leaf and a class that have rows, with the vote's probabilities.

        A pruning is the tree with some nodes turned into leaves. tree: the tree; stats: class
        counts of the rows in its nodes; ballot: the class probabilities of a pruning drawn from the
        posterior, in each node. Rows of classes that the vote lacks are wrong with probability 1.
        Raises ValueError if there are no rows.
        """
        held = np.where(tree.is_leaf[:, None], stats.check_tree(tree).counts, 0) > 0
        if not held.any():
            raise ValueError("stats must count at least one row, got none")
        # Classes beyond those of the vote have probability 0.
        score = _check_votes(tree, ballot)
        beyond = (0, 0), (0, held.shape[1] - score.shape[1])
        wrong = np.pad(wrong_mass(ballot), beyond, constant_values=1.0)
        return cls(stats.counts[held], wrong[held], np.pad(score, beyond)[held])

    def mean(self, value: Float64) -> float:
        """Return the mean of a value over all counted rows.

        Each pair counts with its number of rows, the field `rows`. value: value of each pair of a
        leaf and a class, (a,).
        """
        return float(self.rows @ value / self.rows.sum())

    def tuple_risk(self, n_draws: int, n_wrong: int) -> float:
        """Compute the mean probability that at least `n_wrong` of `n_draws` drawn prunings are wrong.

        The mean is over the rows. The prunings are drawn independently, each wrong with the
        probability of the field `wrong`. Raises ValueError unless 1 <= n_wrong <= n_draws < 2^31. A
        pruning is the tree with some nodes turned into leaves.
        """
        if not 1 <= n_wrong <= n_draws:
            raise ValueError(f"n_wrong must lie in 1 .. {n_draws}, got {n_wrong!r}")
        if n_draws > _MOST_DRAWS:
            raise ValueError(f"n_draws must be at most {_MOST_DRAWS}, got {n_draws!r}")
        if n_draws == 1:
            return self.mean(self.wrong)
        return self.mean(betaincc(n_draws - n_wrong + 1, n_wrong, 1 - self.wrong))

    def one_wrong(self) -> float:
        """Compute the mean over the counted rows of ``2 wrong right``.

        This is the probability that exactly one of two prunings drawn from the posterior is wrong.
        A pruning is the tree with some nodes turned into leaves.
        """
        return self.mean(2 * self.wrong * self.right)


@validate_arguments
def tuple_risk(
    tree: Tree, stats: NodeStats, ballot: Vote, n_draws: int = 1, n_wrong: int = 1
) -> float:
    """Compute the expected fraction of rows that at least `n_wrong` of `n_draws` prunings get wrong.

    The prunings are drawn independently from a distribution whose vote is given. Takes O(m K). A
    pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    stats : NodeStats
        Class counts of the rows in each node.
    ballot : Vote
        Probability of each class under a drawn pruning, in each node, (m, K): the majority vote of
        the distribution.
    n_draws, n_wrong : int
        Number of drawn prunings, and of wrong ones among them. (1, 1) gives the Gibbs risk, (2, 2)
        the tandem risk, (2, 1) the risk that at least one of two is wrong.

    Returns
    -------
    float
        The fraction, 0 .. 1.

    References
    ----------
    Lacasse, Laviolette, Marchand and Turgeon-Boutin, "Learning with randomized majority votes",
    ECML 2010.
    """
    return LeafVotes.from_counts(tree, stats, ballot).tuple_risk(n_draws, n_wrong)


@validate_arguments
def one_wrong(tree: Tree, stats: NodeStats, ballot: Vote) -> float:
    """Compute the expected fraction of rows that exactly one of two drawn prunings gets wrong.

    A pruning is the tree with some nodes turned into leaves. tree: the tree; stats: class counts of
    the rows in its nodes; ballot: probability of each class under a drawn pruning, in each node.
    Takes O(m K).
    """
    return LeafVotes.from_counts(tree, stats, ballot).one_wrong()


@validate_arguments
def disagreement(tree: Tree, stats: NodeStats, ballot: Vote) -> float:
    """Compute the expected fraction of rows for which two drawn prunings predict different classes.

    A pruning is the tree with some nodes turned into leaves. tree: the tree; stats: counts of the
    rows in its nodes, whose classes do not matter; ballot: probability of each class under a drawn
    pruning, in each node. With two classes this equals `one_wrong`. Takes O(m K).
    """
    differing = (_check_votes(tree, ballot) * wrong_mass(ballot)).sum(axis=1)
    rows = np.where(tree.is_leaf, stats.check_tree(tree).n, 0.0)
    if not rows.any():
        raise ValueError("stats must count at least one row, got none")
    return float(rows @ differing / rows.sum())


@validate_arguments
def margin_moments(tree: Tree, stats: NodeStats, ballot: Vote) -> tuple[float, float]:
    """Compute the mean and the second moment over the rows of the margin of a vote.

    The margin of a row is the probability of its true class minus that of all other classes under a
    drawn pruning. A pruning is the tree with some nodes turned into leaves. tree: the tree; stats:
    class counts of the rows in its nodes; ballot: probability of each class under a drawn pruning,
    in each node. Return (mean margin, mean squared margin). Takes O(m K).
    """
    return (1 - 2 * tuple_risk(tree, stats, ballot), 1 - 2 * one_wrong(tree, stats, ballot))


@dataclass(frozen=True, slots=True)
class WrongRange:
    """The smallest wrong mass of rows that a vote predicts correctly, and wrongly.

    `wrong_range` makes it; the minima are over all leaves of a tree. A pruning is the tree with
    some nodes turned into leaves.

    The wrong mass of a row is the probability that a drawn pruning predicts another class than the
    row's.

    Parameters
    ----------
    right : float
        Smallest wrong mass that a row can have whose class wins the vote in its leaf.
    wrong : float
        Smallest wrong mass that a row can have whose class does not win the vote.
    """

    right: float
    wrong: float


@validate_arguments
def wrong_range(tree: Tree, ballot: Vote) -> WrongRange:
    """Find the smallest wrong mass of rows of the winning class, and of rows of another class.

    The wrong mass of a row is the probability that a drawn pruning predicts another class than the
    row's. Both minima are over all leaves of the tree, with or without rows. A pruning is the tree
    with some nodes turned into leaves. tree: the tree; ballot: probability of each class under a
    drawn pruning, in each node. With a single class the result is (0, 1).
    """
    if ballot.check_tree(tree).score.shape[1] == 1:
        return WrongRange(0.0, 1.0)
    lowest = np.sort(wrong_mass(ballot)[tree.is_leaf], axis=1)
    return WrongRange(float(lowest[:, 0].min()), float(lowest[:, 1].min()))


@validate_arguments
def leaf_mean(tree: Tree, weights: NodeWeights, value: ArrayLike) -> float:
    """Compute the expected sum of a node value over the leaves of a drawn pruning, in O(m).

    A pruning is the tree with some nodes turned into leaves. tree: the tree, with m nodes; weights:
    distribution over prunings; value: value of each node as a leaf, (m,), finite.
    """
    return float(weights.check_tree(tree).weight @ _check_values(tree, value))


@validate_arguments
def leaf_variance(tree: Tree, weights: NodeWeights, value: ArrayLike) -> float:
    """Compute the variance of the sum of a node value over the leaves of a drawn pruning, in O(m).

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    weights : NodeWeights
        The distribution over prunings.
    value : array-like of shape (m,)
        Value of each node as a leaf: with 1 the number of leaves varies, with errors the errors of
        a pruning.

    Returns
    -------
    float
        Sum over the nodes of the variance due to their decision to stop or split (law of total
        variance).
    """
    values = _check_values(tree, value)
    log_odds = weights.check_tree(tree).log_odds
    below = sum_below_nodes(tree.left, log_odds, values)
    inner = np.flatnonzero(~tree.is_leaf)
    child = tree.left[inner]
    step = values[inner] - (below[child] + below[child + 1])
    spread = expit(log_odds[inner]) * expit(-log_odds[inner]) * step**2
    return float(reached(tree, weights)[inner] @ spread)


def _check_values(tree: Tree, value: ArrayLike) -> Float64:
    """Return `value` as float64 array (m,), after a check that it has a finite entry for each node.

    tree: the tree, with m nodes. Raises ValueError if a value is missing, NaN or infinite.
    """
    values: Float64 = check_column("value", value, "float64", (tree.n_nodes,))
    if not (np.abs(values) <= MAX_SETTING).all():
        raise ValueError(
            f"value must be finite, and at most {MAX_SETTING:g} in absolute value, got "
            f"{values.min():g} .. {values.max():g}"
        )
    return values
