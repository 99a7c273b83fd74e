"""Priors over labelled prunings, which are fixed before the calibration rows are seen.

A labelled pruning is a pruning of the tree with a label for each of its leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from certree._core import compute_log_masses, compute_reach_probabilities
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.interface.arrays import (
    MAX_SETTING,
    ArrayRecord,
    Float64,
    Int32,
    check_codes,
    check_column,
    check_n_classes,
    freeze,
    make_zeros,
)
from certree.interface.signatures import validate_arguments, validate_settings
from certree.stats import NodeStats
from certree.tree import LEAF, Tree, Trees
from certree.weights.family import ChainStops, PosteriorFamily
from certree.weights.node_weights import NodeWeights, expect_pruning, reached
from certree.weights.pac_bayes_posteriors import branching_stops

# Defaults: prior probability of a leaf's training label, of all candidate labellings together, and the
# doubts of centred priors.
TRUST = 0.9
PROPOSED = 0.9
DOUBTS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)

# Probability that a node below the pruning of a centred prior stops.
_STOP_BELOW = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class CandidateLabels:
    """A labelling of the tree's leaves with a prior probability of its own.

    An entry of `Prior.candidate_labels`; `add_candidate_labels` makes it.

    Parameters
    ----------
    label : ndarray of int32, shape (m,)
        Label of each node; only entries of the tree's leaves are read.
    log_share : float
        Log of the labelling's prior probability.
    """

    label: Int32
    log_share: float


@dataclass(frozen=True, eq=False)
class Prior(ArrayRecord):
    """A prior over labelled prunings of a tree: a mixture of J distributions, and candidate labellings.

    A pruning is the tree with some nodes turned into leaves. Each component has a distribution over
    prunings, and draws a label for each leaf of the pruning independently. `branching_prior`,
    `count_prior`, `mix_priors` and others make priors.

    Parameters
    ----------
    tree : Tree
        The tree, with m nodes.
    distributions : tuple of NodeWeights
        Distribution over prunings of each of the J components.
    log_label : array-like of shape (J, m, L)
        Log of the probability of each of L labels at each node that is a leaf of the pruning, by
        component. Values below -1e150 count as -inf, like those of `log_share`.
    log_share : array-like of shape (J,)
        Log of the weight of each component.
    seen : NodeStats or None
        Class counts in each node, by the training rows that the prior was made from; None: only the
        tree was used.
    candidate_labels : tuple of CandidateLabels
        Single labellings of the leaves with prior probabilities of their own, besides those that
        the components give them.

    Raises
    ------
    ValueError
        If probabilities of labels, or the weights of components and candidates, sum to more than 1,
        or sizes differ.
    """

    # Messages name it if a parameter must be a prior.
    _example: ClassVar[str] = "branching_prior(tree, n_classes)"

    tree: Tree
    distributions: tuple[NodeWeights, ...]
    log_label: Float64
    log_share: Float64
    seen: NodeStats | None = None
    candidate_labels: tuple[CandidateLabels, ...] = ()

    def __post_init__(self) -> None:
        validate_settings(self)
        shape = (len(self.distributions), self.tree.n_nodes, None)
        for name, expected in (("log_label", shape), ("log_share", shape[:1])):
            values: Float64 = check_column(name, getattr(self, name), "float64", expected)
            with np.errstate(over="ignore"):
                totals = np.exp(values).sum(axis=-1)
            if not (totals <= 1 + 1e-9).all():  # also refuses NaN
                raise ValueError(
                    f"{name} must hold logs of probabilities that sum to at most 1, got a sum of "
                    f"{totals.max():g}: subtract the log of each such sum from its logs"
                )
            # A sum over nodes of such logs would exceed float64.
            values = freeze(np.where(values < -MAX_SETTING, -np.inf, values))
            object.__setattr__(self, name, values)
        if not self.n_labels:
            raise ValueError("log_label must have at least one label (last axis), got none")
        proposed = sum(math.exp(proposal.log_share) for proposal in self.candidate_labels)
        if not float(np.exp(self.log_share).sum()) + proposed <= 1 + 1e-9:
            raise ValueError(
                "log_share and candidate_labels must have probabilities that sum to at most 1, got "
                f"{float(np.exp(self.log_share).sum()) + proposed:g}: subtract the log of this sum "
                "from log_share and from the log_share of each candidate"
            )
        for distribution in self.distributions:
            distribution.check_tree(self.tree)

    def check_source(self, tree: Tree, grown: NodeStats) -> Prior:
        """Return self, after a check that the prior is valid for this tree and its training rows.

        Raises ValueError if the prior is of another tree object, or was made from statistics other
        than `grown` (compared by identity).
        """
        if self.tree is not tree:
            raise ValueError(
                "prior must be over the prunings of the tree of the calibration set (held.tree), got "
                "the prior of another tree object: make it from held.tree"
            )
        if self.seen is not None and self.seen is not grown:
            raise ValueError(
                "prior must be made from the training rows only, got a prior made from other "
                "statistics: pass held.grown to the function that makes it"
            )
        return self

    @property
    def n_labels(self) -> int:
        """Number of labels L of this prior: the classes, and one more if abstention is a label."""
        return int(self.log_label.shape[2])

    @property
    def components(self) -> tuple[Prior, ...]:
        """The J components of this mixture, each as a prior by itself, without candidate labellings.

        A component is a distribution over prunings with the probability of each label in each leaf.
        A pruning is the tree with some nodes turned into leaves.
        """
        return tuple(
            Prior(self.tree, (distribution,), labels[None], np.zeros(1), self.seen)
            for distribution, labels in zip(self.distributions, self.log_label, strict=True)
        )

    def log_mass(self, label: ArrayLike) -> float:
        """Compute the log of the prior probability (nats) of predicting a given labelling.

        A labelled pruning is the tree with some nodes turned into leaves, and a label for each
        leaf. label: label of each node, (m,); only entries of the tree's leaves are read. The
        probabilities of all labelled prunings that give the tree's leaves these labels are added
        up.
        """
        cells = check_codes("label", label, self.tree.n_nodes, self.n_labels)
        mass = self._mix_logs(
            compute_log_masses(self.tree.left, cells, *self._decisions, self.log_label)
        )
        for proposal in self.candidate_labels:
            if not ((proposal.label != cells) & self.tree.is_leaf).any():
                mass = float(np.logaddexp(mass, proposal.log_share))
        return mass

    @cached_property
    def _decisions(self) -> tuple[Float64, Float64]:
        """Log probabilities of stopping at each node and of splitting it, two arrays (J, m).

        A node that stops becomes a leaf of the pruning. Each is conditional on reaching the node,
        in each of the J components.
        """
        stop, split = zip(
            *(distribution.log_decisions for distribution in self.distributions), strict=True
        )
        return np.stack(stop), np.stack(split)

    def log_mass_of_pruning(self, pruning: NodeWeights) -> float:
        """Compute the log prior probability (nats) of one pruning, whatever labels its leaves have.

        A pruning is the tree with some nodes turned into leaves. pruning: weights 0 and 1 over the
        nodes, where the leaves of the pruning have 1. Candidate labellings do not count.
        """
        logs = [
            -kl_divergence(self.tree, pruning, distribution) for distribution in self.distributions
        ]
        return self._mix_logs(np.array(logs))

    def _mix_logs(self, logs: Float64) -> float:
        """Compute the log of the weighted sum of J numbers, of which the logs are given, (J,).

        The weights are those of the components, ``exp(log_share)``, which sum to less than 1 if
        there are candidate labellings; the sum is not divided by theirs.
        """
        return float(np.logaddexp.reduce(self.log_share + logs))

    def divergence(self, weights: NodeWeights) -> float:
        """Bound the KL divergence (nats) of a distribution over prunings from the prior.

        A pruning is the tree with some nodes turned into leaves. weights: the distribution over the
        prunings of the tree. The upper bound is the smallest, over the components, of the
        divergence from the component minus its log weight; it is exact for one component of weight
        1.
        """
        parts = [
            kl_divergence(self.tree, weights, distribution) for distribution in self.distributions
        ]
        return float((np.array(parts) - self.log_share).min())


def _make_distribution(tree: Tree, stops: ChainStops) -> NodeWeights:
    """Return the prior distribution over prunings that `stops` describes.

    A pruning is the tree with some nodes turned into leaves. tree: the tree; stops: prior log
    weights of stopping at (making it a leaf) and of splitting each node. `NodeWeights` holds the
    probability that each node is a leaf of the pruning.
    """
    return PosteriorFamily(
        tree, np.zeros((tree.n_nodes, 0)), np.zeros(0), np.zeros(0), stops
    ).solve()


def make_independent_decisions(tree: Trees, log_odds: Float64) -> NodeWeights:
    """Return the distribution over prunings in which nodes are split independently of each other.

    tree: one or several trees; log_odds: log odds of splitting each node that is reached, (m,).
    Leaves of the tree are never split. A pruning is the tree with some nodes turned into leaves;
    `NodeWeights` holds the probability that each node is a leaf of it.
    """
    odds = freeze(np.where(tree.left == LEAF, -np.inf, log_odds))
    weight = freeze(compute_reach_probabilities(tree.left, odds) * expit(-odds))
    return NodeWeights.from_checked(weight, odds, 0.0, *2 * [make_zeros(len(odds))])


def _make_uniform_labels(tree: Tree, n_classes: int, distribution: NodeWeights) -> Prior:
    """Return the prior with this distribution over prunings in which all labels are equally likely.

    A pruning is the tree with some nodes turned into leaves. tree: the tree; distribution: over its
    prunings; n_classes: number of labels K, each of which a leaf has with probability 1 / K. The
    `Prior` has this one component.
    """
    n_labels = check_n_classes(n_classes)
    labels = np.full((1, tree.n_nodes, n_labels), -np.log(n_labels))
    return Prior(tree, (distribution,), labels, np.zeros(1))


@validate_arguments
def branching_prior(tree: Tree, n_classes: int, stop_probability: float = 0.5) -> Prior:
    """Make the prior that stops at each node with the same probability; all labels are equally likely.

    A prior gives a probability to each pruning: the tree with some nodes turned into leaves. A node
    stops if it becomes a leaf.

    Parameters
    ----------
    tree : Tree
        The tree.
    n_classes : int
        Number of classes, K.
    stop_probability : float
        Probability that a node which is reached becomes a leaf, between 0 and 1. At 1/2 a pruning
        with t leaves has at least the log probability ``-(2 t - 1) log 2``.

    Returns
    -------
    Prior
        A `Prior` over prunings with a label for each leaf; of one component.

    References
    ----------
    Willems, Shtarkov and Tjalkens, "The context-tree weighting method", IEEE Trans. Information
    Theory 1995.
    """
    return _make_uniform_labels(
        tree, n_classes, _make_distribution(tree, branching_stops(tree, stop_probability))
    )


@validate_arguments
def size_prior(tree: Tree, n_classes: int, leaf_cost: float = float(np.log(4))) -> Prior:
    """Make the prior in which a pruning's probability depends on its number of leaves alone.

    The probability is proportional to ``exp(-leaf_cost * leaves)``; all labels are equally likely.
    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    n_classes : int
        Number of classes, K.
    leaf_cost : float
        Cost of a leaf (nats). Below log 4 the number of large prunings outweighs their cost, and
        small prunings become improbable in deep trees.

    Returns
    -------
    Prior
        A `Prior` over prunings with a label for each leaf; of one component.
    """
    if not np.isfinite(float(leaf_cost)):
        raise ValueError(f"leaf_cost must be finite, got {leaf_cost!r}")
    zero = np.zeros(tree.n_nodes)
    stops = ChainStops(np.full(tree.n_nodes, -float(leaf_cost)), zero, zero, zero)
    return _make_uniform_labels(tree, n_classes, _make_distribution(tree, stops))


@validate_arguments
def count_prior(tree: Tree, grown: NodeStats, rows: float = 10.0, trust: float = TRUST) -> Prior:
    """Make the prior that splits nodes with many training rows.

    A node with n training rows stops with probability ``rows / (rows + n)``. A prior gives a
    probability to each pruning: the tree with some nodes turned into leaves. A node stops if it
    becomes a leaf.

    Parameters
    ----------
    tree : Tree
        The tree.
    grown : NodeStats
        Class counts of the training rows in each node; their majority labels the nodes.
    rows : float
        Number of training rows at which splitting and stopping are equally likely, > 0.
    trust : float
        Prior probability that a leaf has the label of its training rows, .9 by default; the rest is
        divided among all classes by their smoothed frequencies in the node.

    Returns
    -------
    Prior
        A `Prior` over prunings with a label for each leaf; of one component.
    """
    if not 0 < rows < np.inf:
        raise ValueError(f"rows must be a finite number > 0, got {rows!r}")
    distribution = make_count_decisions(tree, grown, rows)
    return _make_trusting_prior(tree, (distribution,), grown, np.array([float(trust)]))


def make_count_decisions(tree: Trees, training_stats: NodeStats, rows: float) -> NodeWeights:
    """Return the distribution over prunings that splits nodes with many training rows.

    A node with n training rows that is reached stops with probability ``rows / (rows + n)``. tree:
    one or several trees; training_stats: counts of the training rows in each node; rows: number of
    training rows at which stopping and splitting are equally likely, > 0. A pruning is the tree
    with some nodes turned into leaves; `NodeWeights` holds the probability that each node is a leaf
    of it.
    """
    with np.errstate(divide="ignore", over="ignore"):
        log_odds = np.log(
            training_stats.check_tree(tree).n / training_stats.weight_unit / float(rows)
        )
    return make_independent_decisions(tree, log_odds)


@validate_arguments
def centred_prior(
    tree: Tree,
    grown: NodeStats,
    pruning: NodeWeights,
    doubt: float = 0.01,
    stop_below: float = _STOP_BELOW,
) -> Prior:
    """Make the prior that is concentrated around one pruning and the labels of the training rows.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    grown : NodeStats
        Class counts of the training rows in each node; their majority labels the nodes.
    pruning : NodeWeights
        The pruning: weight 1 for its leaves, 0 for all other nodes. It must not depend on
        calibration rows.
    doubt : float
        Probability that a node becomes a leaf although the pruning splits it, or is split although
        it is a leaf of the pruning. A leaf has the label of its training rows with probability ``1 -
        doubt``; all classes share the rest by their smoothed frequencies in the leaf. Between 0
        and 1.
    stop_below : float
        Probability that a node below the leaves of the pruning becomes a leaf if it is reached, .6
        by default.

    Returns
    -------
    Prior
        A `Prior` over prunings with a label for each leaf; of one component.

    References
    ----------
    Priors chosen by other rows: Ambroladze, Parrado-Hernandez and Shawe-Taylor, "Tighter PAC-Bayes
    bounds", NeurIPS 2006.
    """
    return doubted_prior(tree, grown, pruning, (doubt,), stop_below)


@validate_arguments
def doubted_prior(
    tree: Tree,
    grown: NodeStats,
    pruning: NodeWeights,
    doubts: tuple[float, ...] = DOUBTS,
    stop_below: float = _STOP_BELOW,
) -> Prior:
    """Make a prior that is concentrated around one pruning: a mixture over several degrees of doubt.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    grown : NodeStats
        Class counts of the training rows in each node; their majority labels the nodes.
    pruning : NodeWeights
        The pruning: weight 1 for its leaves, 0 for all other nodes. It must not depend on
        calibration rows.
    doubts : tuple of float
        For each component, all of equal weight, the probability that a node becomes a leaf although
        the pruning splits it, or is split although it is a leaf of the pruning. It is also the part
        of a leaf's label probability that all classes share by their smoothed frequencies; the
        label of its training rows gets the rest. Between 0 and 1; by default .1, .03, .01, .003,
        .001, .0003 and .0001.
    stop_below : float
        Probability that a node below the leaves of the pruning becomes a leaf if it is reached,
        between 0 and 1; .6 by default.

    Returns
    -------
    Prior
        A `Prior` over prunings with a label for each leaf; a component for each doubt.
    """
    distributions = _make_centred_distributions(tree, pruning, doubts, stop_below)
    return _make_trusting_prior(tree, distributions, grown, 1 - np.array(doubts, dtype=np.float64))


@validate_arguments
def pruning_prior(tree: Tree, pruning: NodeWeights) -> Prior:
    """Make a prior for numeric targets, concentrated around one pruning.

    Half of the probability is the mean of seven distributions in which a node becomes a leaf
    although the pruning splits it, or the other way round, with probability .1, .03, .01, .003,
    .001, .0003 or .0001. In the other half each node becomes a leaf with probability 1/2. There is
    a single label, as leaves predict numbers. A pruning is the tree with some nodes turned into
    leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    pruning : NodeWeights
        The pruning: weight 1 for its leaves, 0 for all other nodes. It must not depend on
        calibration rows.

    Returns
    -------
    Prior
        A `Prior` over prunings of eight components, the first of which has the weight 1/2.
    """
    distributions = _make_centred_distributions(tree, pruning, DOUBTS, _STOP_BELOW)
    shape = (len(distributions), tree.n_nodes, 1)
    centred = Prior(
        tree,
        distributions,
        np.zeros(shape),
        np.full(len(distributions), -np.log(len(distributions))),
    )
    return mix_priors(branching_prior(tree, 1), centred)


def _make_centred_distributions(
    tree: Tree, pruning: NodeWeights, doubts: tuple[float, ...], stop_below: float
) -> tuple[NodeWeights, ...]:
    """Return distributions over prunings that are concentrated around one pruning.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    pruning : NodeWeights
        The pruning: weight 1 for its leaves, 0 for all other nodes.
    doubts : tuple of float
        For each distribution the probability that a node becomes a leaf although the pruning splits
        it, or is split although it is a leaf of the pruning, between 0 and 1.
    stop_below : float
        Probability that a node below the leaves of the pruning becomes a leaf if it is reached,
        between 0 and 1.

    Returns
    -------
    tuple of NodeWeights
        A distribution for each doubt.

    Raises
    ------
    ValueError
        If `doubts` is empty, or a probability is not between 0 and 1.
    """
    if not len(doubts):
        raise ValueError("doubts must hold at least one number, got none")
    for name, value in (*(("doubt", doubt) for doubt in doubts), ("stop_below", stop_below)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    leaf = expect_pruning(tree, pruning).weight == 1
    inside = (reached(tree, pruning) == 1) & ~leaf
    distributions = []
    for doubt in map(float, doubts):
        stop = np.where(inside, doubt, np.where(leaf, 1 - doubt, float(stop_below)))
        with np.errstate(divide="ignore"):  # 1 minus a tiny doubt is 1 in floating point
            log_odds = np.log1p(-stop) - np.log(stop)
        distributions.append(make_independent_decisions(tree, log_odds))
    return tuple(distributions)


@validate_arguments
def trust_labels(prior: Prior, grown: NodeStats, trust: float = TRUST) -> Prior:
    """Return the same prior over prunings with labels that favour those of the training rows.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    prior : Prior
        The prior over prunings; its label probabilities are replaced.
    grown : NodeStats
        Class counts of the training rows in each node; their majority labels the nodes.
    trust : float
        Prior probability that a leaf has the label of its training rows, in (0, 1]; .9 by default.
        The rest is divided among all classes, that label included, in proportion to their
        frequencies in the node, smoothed by one row with the frequencies of the parent.

    Returns
    -------
    Prior
        A `Prior` with the components of `prior`, and new probabilities of labels.
    """
    trusts = np.full(len(prior.distributions), float(trust))
    trusting = _make_trusting_prior(prior.tree, prior.distributions, grown, trusts)
    seen = _check_same_source(prior.seen, grown)
    return replace(
        trusting, log_share=prior.log_share, seen=seen, candidate_labels=prior.candidate_labels
    )


def _make_trusting_prior(
    tree: Tree, distributions: tuple[NodeWeights, ...], training_stats: NodeStats, trusts: Float64
) -> Prior:
    """Return a mixture of distributions whose labels favour those of the training rows.

    A pruning is the tree with some nodes turned into leaves. tree: the tree; distributions: J
    distributions over prunings; training_stats: class counts of the training rows; trusts: for each
    component the probability that a leaf has the label of its training rows, (J,), in (0, 1]. The
    rest of the label probability is divided among all classes by their smoothed frequencies in the
    node. The J components have equal weights.
    """
    if not ((trusts > 0) & (trusts <= 1)).all():
        raise ValueError(
            "trust must lie in (0, 1], as it is the prior probability that a leaf has the label of "
            f"its training rows, got {trusts.tolist()!r}"
        )
    label = (1 - trusts)[:, None, None] * training_stats.check_tree(tree).averages(tree, 1.0)
    label[:, np.arange(tree.n_nodes), training_stats.label] += trusts[:, None]
    with np.errstate(divide="ignore"):
        log_label = np.log(label)
    return Prior(
        tree,
        distributions,
        log_label,
        np.full(len(distributions), -np.log(len(distributions))),
        training_stats,
    )


@validate_arguments
def allow_abstention(prior: Prior, share: float = 0.1) -> Prior:
    """Return the same prior with one more label, the last one, that stands for abstention.

    The prior gives a probability to each pruning (the tree with some nodes turned into leaves) and
    to each label of its leaves.

    Parameters
    ----------
    prior : Prior
        The prior over the K classes.
    share : float
        Prior probability that a leaf abstains, between 0 and 1; those of the classes are multiplied
        by ``1 - share``.

    Returns
    -------
    Prior
        A `Prior` over prunings with K + 1 labels for each leaf.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1, got {share!r}")
    abstain = np.full((*prior.log_label.shape[:2], 1), math.log(share))
    log_label = np.concatenate([prior.log_label + math.log1p(-share), abstain], axis=2)
    return replace(prior, log_label=log_label)


@validate_arguments
def add_candidate_labels(
    prior: Prior, grown: NodeStats, labels: ArrayLike, share: float = PROPOSED
) -> Prior:
    """Return a prior that gives most of its probability to labellings chosen by the training rows.

    Such a labelling is then certified almost as if it had been fixed before, and all other
    labellings keep the rest of the probability.

    Parameters
    ----------
    prior : Prior
        The prior, whose probabilities are multiplied by ``1 - share``; it may have candidate
        labellings already.
    grown : NodeStats
        Class counts of the training rows, which chose the labellings.
    labels : array-like of int, shape (P, m)
        P labellings of the nodes; only entries of the tree's leaves are read.
    share : float
        Prior probability of the P labellings together, between 0 and 1, .9 by default; each gets
        ``share / P``.

    Returns
    -------
    Prior
        A `Prior` with the components of `prior`, and P more candidate labellings.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1, got {share!r}")
    named = check_column("labels", labels, "int32", (None, prior.tree.n_nodes))
    if not len(named):
        raise ValueError("labels must hold at least one labelling, got none")
    rest, each = math.log1p(-share), math.log(share) - math.log(len(named))
    kept = (replace(old, log_share=old.log_share + rest) for old in prior.candidate_labels)
    added = (
        CandidateLabels(check_codes("labels", label, prior.tree.n_nodes, prior.n_labels), each)
        for label in named
    )
    return replace(
        prior,
        log_share=prior.log_share + rest,
        seen=_check_same_source(prior.seen, grown.check_tree(prior.tree)),
        candidate_labels=(*kept, *added),
    )


@validate_arguments
def mix_priors(*priors: Prior) -> Prior:
    """Return the mixture of J priors over prunings, with equal weights.

    The complexity in a bound is at most log J nats larger than with any single one of the J priors.
    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    *priors : Prior
        J priors over prunings of the same tree, with the same number of labels.

    Returns
    -------
    Prior
        A `Prior` with the components of all J priors.

    Raises
    ------
    ValueError
        If the priors are of different trees, or were made from different statistics.
    """
    first, *others = priors
    seen, mixed = first.seen, math.log(len(priors))
    for prior in others:
        if prior.tree is not first.tree:
            raise ValueError(
                "priors must all be over prunings of the same tree, got different trees: make all "
                "of them from one tree object"
            )
        seen = _check_same_source(seen, prior.seen)
    return Prior(
        first.tree,
        sum((prior.distributions for prior in priors), ()),
        np.concatenate([prior.log_label for prior in priors]),
        np.concatenate([prior.log_share for prior in priors]) - mixed,
        seen,
        tuple(
            replace(proposal, log_share=proposal.log_share - mixed)
            for prior in priors
            for proposal in prior.candidate_labels
        ),
    )


def _check_same_source(first: NodeStats | None, second: NodeStats | None) -> NodeStats | None:
    """Return the training statistics that both priors were made from, or None if neither used any.

    first, second: the statistics of each prior, its field `seen`. Raises ValueError if they are two
    different objects.
    """
    if first is not None and second is not None and first is not second:
        raise ValueError(
            "priors must be made from the same statistics of the training rows, got two different "
            "ones: pass held.grown to the functions that make them"
        )
    return first if second is None else second
