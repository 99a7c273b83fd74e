"""Posteriors that the calibration samples choose, and how far they are from their priors.

Of prunings, whose leaves have the labels of the training samples, and of labelled prunings: their
labels are weighed too, so that no rows are needed to choose them.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, rel_entr

from certree._core import score_nodes
from certree.certificates.priors import Prior
from certree.interface.arrays import ArrayRecord, Float64, check_column, check_nonnegative
from certree.interface.signatures import validate_arguments, validate_settings
from certree.stats import NodeStats
from certree.tree import Tree, Trees
from certree.votes import Vote, vote
from certree.weights.family import ChainStops, Family, compute_gains
from certree.weights.node_weights import NodeWeights


def make_gibbs_family(tree: Trees, stats: NodeStats, prior: NodeWeights) -> Family:
    """The Gibbs posteriors of a prior, by (lambda_error, lambda_penalty); see `gibbs_posterior`."""
    gains, root = stats.check_tree(tree).terms(tree, 2, False)
    decisions = prior.check_tree(tree).log_decisions
    stops = ChainStops.from_checked(*decisions, prior.chain_entropy, prior.chain_mode)
    return Family.from_checked(tree, gains, root, np.zeros(0), stops, False)


@validate_arguments
def gibbs_posterior(
    tree: Tree,
    stats: NodeStats,
    prior: NodeWeights,
    lambda_error: float,
    lambda_penalty: float = 0.0,
) -> NodeWeights:
    """Weigh all prunings by their errors and any prior distribution over them.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Errors and rows of its nodes.
    prior : NodeWeights
        The prior, such as one of ``Prior.distributions``.
    lambda_error, lambda_penalty : float
        As in `pac_bayes`, which this is for its branching prior.

    Returns
    -------
    NodeWeights

    References
    ----------
    Catoni, "PAC-Bayesian supervised classification", 2007, Section 1.
    """
    return make_gibbs_family(tree, stats, prior).solve(
        check_nonnegative("lambda_error", lambda_error),
        check_nonnegative("lambda_penalty", lambda_penalty),
    )


@dataclass(frozen=True, slots=True, eq=False)
class LabelledWeights(ArrayRecord):
    """A posterior over prunings and over labels for their leaves.

    Parameters
    ----------
    weights : NodeWeights
        The posterior over prunings.
    share : array-like of shape (m, K)
        Probability of each label at a node, given that it is a leaf of the pruning.

    Raises
    ------
    ValueError
        If `share` holds no probabilities.
    """

    weights: NodeWeights
    share: Float64

    def __post_init__(self) -> None:
        validate_settings(self)
        share: Float64 = check_column(
            "share", self.share, "float64", (len(self.weights.weight), None)
        )
        possible = (share >= 0) & (share <= 1 + 1e-9)  # so that sums do not overflow
        if not (possible.all() and np.allclose(share.sum(axis=1), 1, atol=1e-9)):
            raise ValueError("every row of share must hold probabilities that sum to 1")
        object.__setattr__(self, "share", share)


# What draws a pruning with its labels; a posterior over prunings takes the labels of the training
# samples.
Posterior = NodeWeights | LabelledWeights


@validate_arguments
def labelled_posterior(
    tree: Tree, stats: NodeStats, prior: Prior, lambda_error: float
) -> LabelledWeights:
    """Weigh all labelled prunings by their errors and a prior.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Counts of the calibration samples; their labels are not read.
    prior : Prior
        A prior of one part, whose labels are the classes. Rows of classes after those are errors of
        every label.
    lambda_error : float
        Weight of an error (nats), >= 0.

    Returns
    -------
    LabelledWeights
        A leaf's own weight is the sum over labels of prior times ``exp(-lambda_error errors)``.

    Raises
    ------
    ValueError
        If the prior is a mixture, has more labels than there are classes or forbids all of them at a
        node, or the temperature is not valid.

    References
    ----------
    Catoni, "PAC-Bayesian supervised classification", 2007, Section 1.
    """
    lam = check_nonnegative("lambda_error", lambda_error)
    if len(prior.distributions) != 1 or prior.n_labels > stats.check_tree(tree).n_classes:
        raise ValueError(
            f"prior must have one part and at most {stats.n_classes} labels, got "
            f"{len(prior.distributions)} parts and {prior.n_labels} labels"
        )
    posterior = prior.distributions[0]
    # Errors beyond those of the best label: their weights do not underflow all at once.
    right, log_label = stats.counts[:, : prior.n_labels], prior.log_label[0]
    if (log_label.max(axis=1) == -np.inf).any():
        raise ValueError("prior must give every node a label that has a probability above 0")
    most = np.where(log_label > -np.inf, right, 0.0).max(axis=1)
    least = stats.n - most
    with np.errstate(over="ignore"):  # beyond float64 a label is never drawn
        logs = log_label - lam * (np.maximum(most[:, None] - right, 0.0) / stats.weight_unit)
    total = logsumexp(logs, axis=1)
    stops = ChainStops(*posterior.log_decisions, posterior.chain_entropy, posterior.chain_mode)
    unit = stats.weight_unit
    gains = np.stack([compute_gains(tree, least, unit), compute_gains(tree, total)], axis=1)
    root = np.array([least[0] / unit, total[0]])
    weights = Family(tree, gains, root, np.array([1.0]), stops).solve(lam)
    return LabelledWeights(weights, np.exp(logs - total[:, None]))


def cast_posterior_vote(tree: Tree, stats: NodeStats, posterior: Posterior) -> Vote:
    """Probability of each class under a drawn pruning, in every cell."""
    if isinstance(posterior, NodeWeights):
        return vote(tree, stats, posterior)
    weight = posterior.weights.check_tree(tree).weight
    return Vote(score_nodes(tree.left, weight, None, posterior.share, posterior.share.shape[1]))


def divergence(posterior: Posterior, prior: Prior) -> float:
    """Divergence of a posterior, labelled or not, from a prior (nats); see `Prior.divergence`."""
    if isinstance(posterior, NodeWeights):
        return prior.divergence(posterior)
    drawn = posterior.weights.weight > 0
    weight, share = posterior.weights.weight[drawn], posterior.share[drawn]
    if share.shape[1] != prior.n_labels:
        raise ValueError(
            f"posterior has {share.shape[1]} labels, but prior has {prior.n_labels} labels"
        )
    labels = [
        weight @ rel_entr(share, np.exp(log_label[drawn])).sum(axis=1)
        for log_label in prior.log_label
    ]
    structure = [part.divergence(posterior.weights) for part in prior.components]
    return float((np.array(structure) + np.array(labels) - prior.log_share).min())
