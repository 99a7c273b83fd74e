"""Distributions over prunings in numbers: how far apart they are, and what drawn prunings get wrong.

A row's wrong mass is the probability that a drawn pruning gets it wrong. It takes one value for
each leaf of the tree and class, so that a mean over rows is a sum over that table.

Prunings that stop in different cells of one chain label every row alike and count as one here:
nodes, not cells, are where a pruning stops.
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
    """Log of the sum over all prunings of a product over nodes, O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    log_stop : ndarray of float64, shape (m,)
        Log of the factor of a leaf of the pruning; -inf forbids it.
    log_split : ndarray of float64, shape (m,)
        Log of the factor of a node that the pruning splits.

    Returns
    -------
    float
        -inf if all prunings are forbidden.
    """
    nothing = np.zeros((tree.n_nodes, 0))
    stops = np.ascontiguousarray(log_stop), np.ascontiguousarray(log_split)
    return compute_posterior(tree.left, nothing, *stops, np.zeros(0), np.zeros(0), False)[2]


@validate_arguments
def kl_divergence(tree: Trees, posterior: NodeWeights, prior: NodeWeights) -> float:
    """Divergence of a posterior over prunings from another one (nats), O(m).

    By the chain rule: the sum over nodes of the probability of reaching it times the divergence of
    its decision. For a single pruning it is minus the log of its probability under the other.

    Parameters
    ----------
    tree : Tree or Trees
        The tree; of several trees, whose prunings are independent, the divergences add up.
    posterior, prior : NodeWeights
        The distribution, and the one that it is compared with.

    Returns
    -------
    float
        +inf if the prior forbids what the distribution allows.

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
        possible = probability > 0  # 0 times infinity is meant to be 0
        nats[possible] += probability[possible] * (log_posterior[possible] - log_prior[possible])
    reach = reached(tree, posterior)
    seen = reach > 0
    with np.errstate(over="ignore"):  # beyond float64 the divergence is infinite
        return float(reach[seen] @ np.maximum(nats[seen], 0.0))


@validate_arguments
def renyi_divergence(tree: Tree, posterior: NodeWeights, prior: NodeWeights, order: float) -> float:
    """Renyi divergence of a posterior over prunings from another one (nats), O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    posterior, prior : NodeWeights
        The distribution, and the one that it is compared with.
    order : float
        Positive and not 1; at 1 the limit is `kl_divergence`.

    Returns
    -------
    float

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
        # What the posterior never does counts for nothing, and the prior may forbid what is below.
        factors.append(
            np.where(log_posterior == -np.inf, -np.inf, np.where(tilted < np.inf, tilted, 0))
        )
    return max(log_sum(tree, *factors) / (order - 1), 0.0)


@validate_arguments
def log_prior_mass(tree: Tree, prior: NodeWeights, log_label: ArrayLike, label: ArrayLike) -> float:
    """Log of the prior mass of all labelled prunings that predict the same (nats), O(m L).

    A labelled pruning is a pruning and a label for each of its leaves, drawn from the prior label by
    label. Every labelling of the leaves of the tree is the prediction of some of them, the vote over
    prunings is one, and the masses of all labellings sum to at most 1.

    Parameters
    ----------
    tree : Tree
        The tree.
    prior : NodeWeights
        The prior over prunings.
    log_label : array-like of shape (m, L)
        Log of the prior probability of each label at each node as a leaf. Abstention may be one of
        the labels.
    label : array-like of int, shape (m,)
        The labelling, 0 .. L - 1; only those of the tree's leaves are read.

    Returns
    -------
    float
        -inf if no labelled pruning predicts so.

    References
    ----------
    The pass is that of Willems, Shtarkov and Tjalkens, "The context-tree weighting method", IEEE
    Trans. Information Theory 1995, over the prunings that are constant where the labelling is.
    """
    log_prior: Float64 = check_column("log_label", log_label, "float64", (tree.n_nodes, None))
    cells = check_codes("label", label, *log_prior.shape)
    stop, split = prior.check_tree(tree).log_decisions
    mass = compute_log_masses(tree.left, cells, stop[None], split[None], log_prior[None])
    return float(mass[0])


# More than anybody draws; beta functions of larger numbers lose their digits.
_MOST_DRAWS = 2**31 - 1
_ROUNDING = 1e-9


@validate_arguments
def wrong_mass(ballot: Vote) -> Float64:
    """Mass of the votes for other classes than each class, (m, K)."""
    score = ballot.score
    # Sums from both sides, as 1 - score would lose what is small.
    before, after = np.zeros_like(score), np.zeros_like(score)
    with np.errstate(over="ignore"):
        before[:, 1:] = np.cumsum(score[:, :-1], axis=1)
        after[:, :-1] = np.cumsum(score[:, :0:-1], axis=1)[:, ::-1]
        return np.minimum(before + after, 1.0)


def _check_votes(tree: Tree, ballot: Vote) -> Float64:
    """Check that the votes are shares of classes in the nodes of a tree, and return them."""
    score = ballot.check_tree(tree).score
    if not ((score >= -_ROUNDING) & (score <= 1 + _ROUNDING)).all():
        raise ValueError("ballot must hold shares of classes, between 0 and 1")
    return score


@dataclass(frozen=True, slots=True, eq=False)
class LeafVotes:
    """The rows of each leaf and class that has any, and the votes against and for that class.

    Parameters
    ----------
    rows, wrong, right : ndarray of float64, shape (a,)
        Number of rows, wrong mass and votes for the class.
    """

    rows: Float64
    wrong: Float64
    right: Float64

    @classmethod
    def from_counts(cls, tree: Tree, stats: NodeStats, ballot: Vote) -> LeafVotes:
        """Judge the counted rows by the majority vote of a distribution."""
        held = np.where(tree.is_leaf[:, None], stats.check_tree(tree).counts, 0) > 0
        if not held.any():
            raise ValueError("stats must count at least one row")
        # Nothing votes for classes beyond those of the vote.
        score = _check_votes(tree, ballot)
        beyond = (0, 0), (0, held.shape[1] - score.shape[1])
        wrong = np.pad(wrong_mass(ballot), beyond, constant_values=1.0)
        return cls(stats.counts[held], wrong[held], np.pad(score, beyond)[held])

    def mean(self, value: Float64) -> float:
        """Mean of a value over the rows."""
        return float(self.rows @ value / self.rows.sum())

    def tuple_risk(self, n_draws: int, n_wrong: int) -> float:
        """See the function of this name."""
        if not 1 <= n_wrong <= n_draws:
            raise ValueError(f"n_wrong must lie in 1 .. {n_draws}, got {n_wrong!r}")
        if n_draws > _MOST_DRAWS:
            raise ValueError(f"n_draws must be at most {_MOST_DRAWS}, got {n_draws!r}")
        if n_draws == 1:
            return self.mean(self.wrong)
        return self.mean(betaincc(n_draws - n_wrong + 1, n_wrong, 1 - self.wrong))

    def one_wrong(self) -> float:
        """See the function of this name."""
        return self.mean(2 * self.wrong * self.right)


@validate_arguments
def tuple_risk(
    tree: Tree, stats: NodeStats, ballot: Vote, n_draws: int = 1, n_wrong: int = 1
) -> float:
    """Share of rows that at least `n_wrong` of `n_draws` drawn prunings get wrong, expected, O(m K).

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of the rows.
    ballot : Vote
        Majority vote of the distribution that the prunings are drawn from.
    n_draws, n_wrong : int
        (1, 1) is the Gibbs risk, (2, 2) the tandem risk, (2, 1) the risk that either is wrong.

    Returns
    -------
    float

    References
    ----------
    Lacasse, Laviolette, Marchand and Turgeon-Boutin, "Learning with randomized majority votes", ECML
    2010.
    """
    return LeafVotes.from_counts(tree, stats, ballot).tuple_risk(n_draws, n_wrong)


@validate_arguments
def one_wrong(tree: Tree, stats: NodeStats, ballot: Vote) -> float:
    """Share of rows that exactly one of two drawn prunings gets wrong, expected, O(m K)."""
    return LeafVotes.from_counts(tree, stats, ballot).one_wrong()


@validate_arguments
def disagreement(tree: Tree, stats: NodeStats, ballot: Vote) -> float:
    """Share of rows for which two drawn prunings predict different classes, expected, O(m K).

    Their classes are not read. With two classes this is `one_wrong`.
    """
    differing = (_check_votes(tree, ballot) * wrong_mass(ballot)).sum(axis=1)
    rows = np.where(tree.is_leaf, stats.check_tree(tree).n, 0.0)
    if not rows.any():
        raise ValueError("stats must count at least one row")
    return float(rows @ differing / rows.sum())


@validate_arguments
def margin_moments(tree: Tree, stats: NodeStats, ballot: Vote) -> tuple[float, float]:
    """First and second moment of the margin, votes for the class less votes for others, O(m K)."""
    return (1 - 2 * tuple_risk(tree, stats, ballot), 1 - 2 * one_wrong(tree, stats, ballot))


@dataclass(frozen=True, slots=True)
class WrongRange:
    """The smallest wrong mass anywhere in the tree, where the vote is right and where it is wrong."""

    right: float
    wrong: float


@validate_arguments
def wrong_range(tree: Tree, ballot: Vote) -> WrongRange:
    """Find the least mass of votes against the class that wins, and against any that does not.

    Over all leaves of the tree, also those without rows: new rows may lie in them.
    """
    if ballot.check_tree(tree).score.shape[1] == 1:
        return WrongRange(0.0, 1.0)
    lowest = np.sort(wrong_mass(ballot)[tree.is_leaf], axis=1)
    return WrongRange(float(lowest[:, 0].min()), float(lowest[:, 1].min()))


@validate_arguments
def leaf_mean(tree: Tree, weights: NodeWeights, value: ArrayLike) -> float:
    """Expected sum of a value over the leaves of a drawn pruning, O(m)."""
    return float(weights.check_tree(tree).weight @ _check_values(tree, value))


@validate_arguments
def leaf_variance(tree: Tree, weights: NodeWeights, value: ArrayLike) -> float:
    """Variance of the sum of a value over the leaves of a drawn pruning, O(m).

    Parameters
    ----------
    tree : Tree
        The tree.
    weights : NodeWeights
        The distribution.
    value : array-like of shape (m,)
        Value of a node as a leaf: 1 counts leaves, the errors give the errors of a pruning.

    Returns
    -------
    float
        The sum over nodes of the variance that their decision adds, by the law of total variance.
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
    values: Float64 = check_column("value", value, "float64", (tree.n_nodes,))
    if not (np.abs(values) <= MAX_SETTING).all():
        raise ValueError(f"value must be finite, and at most {MAX_SETTING:g} in size")
    return values
