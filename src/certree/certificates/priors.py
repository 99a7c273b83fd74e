"""Priors over labelled prunings: what may be said of them before the calibration samples are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from certree._core import compute_log_masses, compute_reach_probabilities
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.interface.arrays import (
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
from certree.weights.family import ChainStops, Family
from certree.weights.node_weights import NodeWeights, expect_pruning, reached
from certree.weights.pac_bayes_posteriors import branching_stops

# How much of its prior a label of the training samples gets, how much of all that they propose, and how
# the doubts of a centred prior are spread when none is given.
TRUST = 0.9
PROPOSED = 0.9
DOUBTS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)

# How likely a node below the expected pruning stops.
_STOP_BELOW = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class CandidateLabels:
    """A labelling that has a share of a prior to itself, whatever prunings it is of.

    Parameters
    ----------
    label : ndarray of int32, shape (m,)
        Label of each node; those of the tree's leaves are read.
    log_share : float
        Log of its share (nats).
    """

    label: Int32
    log_share: float


@dataclass(frozen=True, eq=False)
class Prior(ArrayRecord):
    """A prior over prunings and over labels for their leaves, or a mixture of such priors.

    Parameters
    ----------
    tree : Tree
        The tree.
    distributions : tuple of NodeWeights
        Distributions over prunings, one for each part of the mixture.
    log_label : array-like of shape (J, m, L)
        For each part, log of the prior probability of each label at each node as a leaf (nats).
    log_share : array-like of shape (J,)
        Log of the share of each part (nats).
    seen : NodeStats or None
        Statistics that the prior was made from; None: the tree alone.
    candidate_labels : tuple of Proposal
        Labellings with shares of their own; see `add_candidate_labels`.

    Raises
    ------
    ValueError
        If the probabilities of labels or parts sum to more than 1, or sizes differ.
    """

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
            if not (totals <= 1 + 1e-9).all():  # NaN is not, either
                raise ValueError(f"{name} must hold logs of probabilities that sum to at most 1")
            object.__setattr__(self, name, values)
        if not self.n_labels:
            raise ValueError("log_label must have at least one label")
        proposed = sum(math.exp(proposal.log_share) for proposal in self.candidate_labels)
        if not float(np.exp(self.log_share).sum()) + proposed <= 1 + 1e-9:
            raise ValueError("shares of parts and proposals must sum to at most 1")
        for distribution in self.distributions:
            distribution.check_tree(self.tree)

    def check_source(self, tree: Tree, grown: NodeStats) -> Prior:
        """Check that the prior is one of this tree and has seen training samples alone; return it."""
        if self.tree is not tree:
            raise ValueError("prior is one over the prunings of another tree")
        if self.seen is not None and self.seen is not grown:
            raise ValueError(
                "prior may be made from the training samples only, but has seen other rows"
            )
        return self

    @property
    def n_labels(self) -> int:
        """Number of labels, L: the classes, and perhaps abstention."""
        return int(self.log_label.shape[2])

    @property
    def components(self) -> tuple[Prior, ...]:
        """The parts of the mixture as priors of their own, without proposals."""
        return tuple(
            Prior(self.tree, (distribution,), labels[None], np.zeros(1), self.seen)
            for distribution, labels in zip(self.distributions, self.log_label, strict=True)
        )

    def log_mass(self, label: ArrayLike) -> float:
        """Log of the mass of all labelled prunings that label the tree's leaves so (nats)."""
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
        """Logs of the probabilities of stopping and of going on, (J, m) each."""
        stop, split = zip(
            *(distribution.log_decisions for distribution in self.distributions), strict=True
        )
        return np.stack(stop), np.stack(split)

    def log_mass_of_pruning(self, pruning: NodeWeights) -> float:
        """Log of the mass of one pruning, with weights 0 and 1, whatever its labels (nats)."""
        logs = [
            -kl_divergence(self.tree, pruning, distribution) for distribution in self.distributions
        ]
        return self._mix_logs(np.array(logs))

    def _mix_logs(self, logs: Float64) -> float:
        """Log of the mean of the parts' masses, by their shares."""
        return float(np.logaddexp.reduce(self.log_share + logs))

    def divergence(self, weights: NodeWeights) -> float:
        """Divergence of a posterior over prunings from the prior, at most (nats).

        Exact for one part, else the least of what the parts give, with their shares.
        """
        parts = [
            kl_divergence(self.tree, weights, distribution) for distribution in self.distributions
        ]
        return float((np.array(parts) - self.log_share).min())


def _make_distribution(tree: Tree, stops: ChainStops) -> NodeWeights:
    """The distribution over prunings that no rows enter."""
    return Family(tree, np.zeros((tree.n_nodes, 0)), np.zeros(0), np.zeros(0), stops).solve()


def make_independent_decisions(tree: Trees, log_odds: Float64) -> NodeWeights:
    """The distribution whose nodes are split independently with these log odds; leaves never are."""
    odds = freeze(np.where(tree.left == LEAF, -np.inf, log_odds))
    weight = freeze(compute_reach_probabilities(tree.left, odds) * expit(-odds))
    return NodeWeights.from_checked(weight, odds, 0.0, *2 * [make_zeros(len(odds))])


def _make_uniform_labels(tree: Tree, n_classes: int, distribution: NodeWeights) -> Prior:
    """One part, in which all labels are alike."""
    n_labels = check_n_classes(n_classes)
    labels = np.full((1, tree.n_nodes, n_labels), -np.log(n_labels))
    return Prior(tree, (distribution,), labels, np.zeros(1))


@validate_arguments
def branching_prior(tree: Tree, n_classes: int, stop_probability: float = 0.5) -> Prior:
    """Stop in every cell that the tree splits with the same probability; all labels are alike.

    Parameters
    ----------
    tree : Tree
        The tree.
    n_classes : int
        Number of classes, K.
    stop_probability : float
        Between 0 and 1. At 1/2 a pruning costs at most ``(2 leaves - 1) log 2`` nats.

    Returns
    -------
    Prior

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
    """Weigh prunings by their number of leaves alone; all labels are alike.

    Parameters
    ----------
    tree : Tree
        The tree.
    n_classes : int
        Number of classes, K.
    leaf_cost : float
        Price of a leaf (nats). Below log 4 the sum over all prunings of a deep tree explodes, and
        small ones become dear.

    Returns
    -------
    Prior
    """
    if not np.isfinite(float(leaf_cost)):
        raise ValueError(f"leaf_cost must be finite, got {leaf_cost!r}")
    zero = np.zeros(tree.n_nodes)
    stops = ChainStops(np.full(tree.n_nodes, -float(leaf_cost)), zero, zero, zero)
    return _make_uniform_labels(tree, n_classes, _make_distribution(tree, stops))


@validate_arguments
def count_prior(tree: Tree, grown: NodeStats, rows: float = 10.0, trust: float = TRUST) -> Prior:
    """Split nodes with many training samples: one with n of them stops with ``rows / (rows + n)``.

    Parameters
    ----------
    tree : Tree
        The tree.
    grown : NodeStats
        Counts of the training samples, with their labels.
    rows : float
        Training samples at which splitting and stopping are alike, > 0.
    trust : float
        Prior probability of a node's own label; see `trust_labels`.

    Returns
    -------
    Prior
    """
    if not 0 < rows < np.inf:
        raise ValueError(f"rows must be a finite number > 0, got {rows!r}")
    distribution = make_count_decisions(tree, grown, rows)
    return _make_trusting_prior(tree, (distribution,), grown, np.array([float(trust)]))


def make_count_decisions(tree: Trees, grown: NodeStats, rows: float) -> NodeWeights:
    """The distribution of `count_prior`."""
    with np.errstate(divide="ignore", over="ignore"):
        log_odds = np.log(grown.check_tree(tree).n / grown.weight_unit / float(rows))
    return make_independent_decisions(tree, log_odds)


@validate_arguments
def centred_prior(
    tree: Tree,
    grown: NodeStats,
    pruning: NodeWeights,
    doubt: float = 0.01,
    stop_below: float = _STOP_BELOW,
) -> Prior:
    """Expect one pruning that the training samples have chosen, and labels like theirs.

    Parameters
    ----------
    tree : Tree
        The tree.
    grown : NodeStats
        Counts of the training samples, with their labels.
    pruning : NodeWeights
        The pruning, weights 0 and 1, found without any weighing row.
    doubt : float
        Probability that a node of the pruning decides otherwise, or that a leaf has another label.
    stop_below : float
        Probability that a node below the pruning stops.

    Returns
    -------
    Prior

    References
    ----------
    Priors that another part of the rows has chosen: Ambroladze, Parrado-Hernandez and Shawe-Taylor,
    "Tighter PAC-Bayes bounds", NeurIPS 2006.
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
    """The mixture of centred priors of several doubts; see `centred_prior`."""
    distributions = _make_centred_distributions(tree, pruning, doubts, stop_below)
    return _make_trusting_prior(tree, distributions, grown, 1 - np.array(doubts, dtype=np.float64))


@validate_arguments
def pruning_prior(tree: Tree, pruning: NodeWeights) -> Prior:
    """Expect one pruning, with several doubts, or any one that stops with probability 1/2 anywhere.

    For targets that have no labels: there is a single one.

    Parameters
    ----------
    tree : Tree
        The tree.
    pruning : NodeWeights
        The pruning, weights 0 and 1, found without any weighing row.

    Returns
    -------
    Prior
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
    """Distributions that expect one pruning, one for each doubt."""
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
        with np.errstate(divide="ignore"):  # 1 less a tiny doubt is 1
            log_odds = np.log1p(-stop) - np.log(stop)
        distributions.append(make_independent_decisions(tree, log_odds))
    return tuple(distributions)


@validate_arguments
def trust_labels(prior: Prior, grown: NodeStats, trust: float = TRUST) -> Prior:
    """The same prior over prunings, with labels like those of the training samples.

    Parameters
    ----------
    prior : Prior
        The prior.
    grown : NodeStats
        Counts of the training samples, with their labels.
    trust : float
        Prior probability of a node's own label, in (0, 1]. The rest is spread like the frequencies
        of the classes there, smoothed by one row like the parent's.

    Returns
    -------
    Prior
    """
    trusts = np.full(len(prior.distributions), float(trust))
    trusting = _make_trusting_prior(prior.tree, prior.distributions, grown, trusts)
    seen = _check_same_source(prior.seen, grown)
    return replace(
        trusting, log_share=prior.log_share, seen=seen, candidate_labels=prior.candidate_labels
    )


def _make_trusting_prior(
    tree: Tree, distributions: tuple[NodeWeights, ...], grown: NodeStats, trusts: Float64
) -> Prior:
    """Distributions of equal shares with labels like those of training samples; see `trust_labels`."""
    if not ((trusts > 0) & (trusts <= 1)).all():
        raise ValueError(f"trust must lie in (0, 1], got {trusts[0]!r}")
    label = (1 - trusts)[:, None, None] * grown.check_tree(tree).averages(tree, 1.0)
    label[:, np.arange(tree.n_nodes), grown.label] += trusts[:, None]
    with np.errstate(divide="ignore"):
        log_label = np.log(label)
    return Prior(
        tree,
        distributions,
        log_label,
        np.full(len(distributions), -np.log(len(distributions))),
        grown,
    )


@validate_arguments
def allow_abstention(prior: Prior, share: float = 0.1) -> Prior:
    """The same prior with one more label, the last one, that stands for no answer.

    Parameters
    ----------
    prior : Prior
        The prior.
    share : float
        Prior probability that a leaf abstains, between 0 and 1.

    Returns
    -------
    Prior
    """
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1, got {share!r}")
    silent = np.full((*prior.log_label.shape[:2], 1), math.log(share))
    log_label = np.concatenate([prior.log_label + math.log1p(-share), silent], axis=2)
    return replace(prior, log_label=log_label)


@validate_arguments
def add_candidate_labels(
    prior: Prior, grown: NodeStats, labels: ArrayLike, share: float = PROPOSED
) -> Prior:
    """Give labellings that the training samples propose most of the mass; the rest keeps the prior.

    So the union over all labellings is paid once: a proposal costs hardly more than a classifier that
    was fixed before, and the others no more than the rest of the mass says.

    Parameters
    ----------
    prior : Prior
        The prior, which may hold proposals.
    grown : NodeStats
        Counts of the training samples, by which the labellings were found.
    labels : array-like of int, shape (P, m)
        P labellings of the nodes, of which those of the tree's leaves are read.
    share : float
        Prior probability of all of them together, between 0 and 1; each has as much.

    Returns
    -------
    Prior
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
    """Mix priors of one tree, all with the same share: J of them cost at most log J nats.

    Parameters
    ----------
    *priors : Prior
        Priors of one tree and the same labels.

    Returns
    -------
    Prior

    Raises
    ------
    ValueError
        If the priors are of different trees, or were made from different rows.
    """
    first, *others = priors
    seen, mixed = first.seen, math.log(len(priors))
    for prior in others:
        if prior.tree is not first.tree:
            raise ValueError("priors of different trees do not mix")
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
    if first is not None and second is not None and first is not second:
        raise ValueError("a prior may be made from the training samples only, got two statistics")
    return first if second is None else second
