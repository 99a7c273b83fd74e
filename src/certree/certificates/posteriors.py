"""Posteriors over prunings chosen by the calibration rows, and their divergences from priors.

The leaves of a pruning have the labels of the training rows. In a posterior over labelled prunings
labels are drawn too, so that no training rows are needed.
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
from certree.weights.family import ChainStops, PosteriorFamily, compute_gains
from certree.weights.node_weights import NodeWeights


def make_gibbs_family(tree: Trees, stats: NodeStats, prior: NodeWeights) -> PosteriorFamily:
    """Return all Gibbs posteriors of a prior over prunings, as a function of two inverse temperatures.

    A posterior is a distribution over the prunings of a tree (the tree with some nodes turned into
    leaves).

    Parameters
    ----------
    tree : Tree or Trees
        One or several trees.
    stats : NodeStats
        Class counts and labels of the nodes, by the rows that choose the posterior.
    prior : NodeWeights
        Prior distribution over prunings.

    Returns
    -------
    PosteriorFamily
        ``solve(lambda_error, lambda_penalty)`` returns the posterior in which a pruning has its
        prior probability times ``exp(-lambda_error err - lambda_penalty sqrt(n))`` for each leaf
        with n rows and err errors, normalised.
    """
    gains, root = stats.check_tree(tree).terms(tree, 2, False)
    decisions = prior.check_tree(tree).log_decisions
    stops = ChainStops.from_checked(*decisions, prior.chain_entropy, prior.chain_mode)
    return PosteriorFamily.from_checked(tree, gains, root, np.zeros(0), stops, False)


@validate_arguments
def gibbs_posterior(
    tree: Tree,
    stats: NodeStats,
    prior: NodeWeights,
    lambda_error: float,
    lambda_penalty: float = 0.0,
) -> NodeWeights:
    """Compute the Gibbs posterior over prunings for any prior distribution over them.

    The weight of a pruning is its prior probability times ``exp(-lambda_error err - lambda_penalty
    sqrt(n))`` for each leaf with n rows and err errors, normalised. A pruning is the tree with some
    nodes turned into leaves.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Class counts and labels of its nodes, which give the errors of each node.
    prior : NodeWeights
        The prior distribution over prunings, such as one of ``Prior.distributions``.
    lambda_error, lambda_penalty : float
        Inverse temperatures, >= 0: nats for each error, and for each square root of the number of
        rows of a leaf. ``pac_bayes(..., prior="branching")`` is this function with a prior in which
        each node becomes a leaf with the same probability.

    Returns
    -------
    NodeWeights
        The posterior.

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
    """A posterior over labelled prunings: over prunings, and over a label for each of their leaves.

    `labelled_posterior` makes it.

    Parameters
    ----------
    weights : NodeWeights
        The posterior over prunings.
    share : array-like of shape (m, K)
        Probability of each of K labels at each of m nodes, given that the node is a leaf of the
        pruning.

    Raises
    ------
    ValueError
        If a row of `share` is negative or does not sum to 1.
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
            with np.errstate(over="ignore"):
                sums = share.sum(axis=1)
            raise ValueError(
                "share must hold probabilities that sum to 1 in every row, got sums of "
                f"{sums.min():g} .. {sums.max():g}"
            )
        object.__setattr__(self, "share", share)


# A posterior over prunings, whose leaves have the labels of the training rows, or over labelled ones.
Posterior = NodeWeights | LabelledWeights


@validate_arguments
def labelled_posterior(
    tree: Tree, stats: NodeStats, prior: Prior, lambda_error: float
) -> LabelledWeights:
    """Compute the Gibbs posterior over labelled prunings from the errors of each label.

    A labelled pruning is the tree with some nodes turned into leaves, and a label for each leaf.

    Parameters
    ----------
    tree : Tree
        The tree.
    stats : NodeStats
        Class counts of the calibration rows in each node; the labels in it are not read.
    prior : Prior
        A prior of one component, whose L labels are the first classes of `stats`. Rows of other
        classes are errors of every label.
    lambda_error : float
        Inverse temperature (nats for each error), >= 0.

    Returns
    -------
    LabelledWeights
        A labelled pruning has its prior probability times ``exp(-lambda_error * errors)``,
        normalised, where `errors` counts the rows that its labels get wrong.

    Raises
    ------
    ValueError
        If the prior has several components, has more labels than `stats` has classes, or excludes
        all labels at a node, or if `lambda_error` is negative or not finite.

    References
    ----------
    Catoni, "PAC-Bayesian supervised classification", 2007, Section 1.
    """
    lam = check_nonnegative("lambda_error", lambda_error)
    if len(prior.distributions) != 1 or prior.n_labels > stats.check_tree(tree).n_classes:
        raise ValueError(
            f"prior must have one component and at most {stats.n_classes} labels, got "
            f"{len(prior.distributions)} components and {prior.n_labels} labels: pass such a prior as "
            "branching_prior(tree, n_classes)"
        )
    posterior = prior.distributions[0]
    # Errors in excess of those of the best label, so that not all weights underflow.
    right, log_label = stats.counts[:, : prior.n_labels], prior.log_label[0]
    if (log_label.max(axis=1) == -np.inf).any():
        raise ValueError(
            "prior must give every node a label that has a probability above 0, got a node whose "
            "log_label is -inf for all labels"
        )
    most = np.where(log_label > -np.inf, right, 0.0).max(axis=1)
    least = stats.n - most
    with np.errstate(over="ignore"):  # an overflow means probability 0
        logs = log_label - lam * (np.maximum(most[:, None] - right, 0.0) / stats.weight_unit)
    total = logsumexp(logs, axis=1)
    stops = ChainStops(*posterior.log_decisions, posterior.chain_entropy, posterior.chain_mode)
    unit = stats.weight_unit
    gains = np.stack([compute_gains(tree, least, unit), compute_gains(tree, total)], axis=1)
    root = np.array([least[0] / unit, total[0]])
    weights = PosteriorFamily(tree, gains, root, np.array([1.0]), stops).solve(lam)
    return LabelledWeights(weights, np.exp(logs - total[:, None]))


def compute_posterior_vote(tree: Tree, stats: NodeStats, posterior: Posterior) -> Vote:
    """Compute the probability of each class under a pruning drawn from a posterior, in every node.

    A pruning is the tree with some nodes turned into leaves. tree: the tree, with m nodes; stats:
    statistics of its nodes, of which the label of each node is used if `posterior` is over prunings
    without labels; posterior: over prunings (`NodeWeights`), or over labelled prunings, whose
    leaves have labels of their own (`LabelledWeights`). Return a `Vote` with scores (m, K) for K
    classes; those of a leaf of the tree sum to 1, those of other nodes count only prunings that
    have a leaf there or above.
    """
    if isinstance(posterior, NodeWeights):
        return vote(tree, stats, posterior)
    weight = posterior.weights.check_tree(tree).weight
    return Vote(score_nodes(tree.left, weight, None, posterior.share, posterior.share.shape[1]))


def divergence(posterior: Posterior, prior: Prior) -> float:
    """Compute an upper bound on the KL divergence (nats) of a posterior over prunings from a prior.

    A posterior is a distribution over the prunings of a tree (the tree with some nodes turned into
    leaves). posterior: over prunings (`NodeWeights`), or over labelled prunings, whose leaves have
    labels of their own (`LabelledWeights`), for which the divergence of the labels is added; prior:
    a mixture of components (distributions over prunings, with weights). The bound is the smallest,
    over the components, of the divergence from the component minus the log of its weight; exact if
    the prior has one component. Raises ValueError if posterior and prior have different numbers of
    labels.
    """
    if isinstance(posterior, NodeWeights):
        return prior.divergence(posterior)
    drawn = posterior.weights.weight > 0
    weight, share = posterior.weights.weight[drawn], posterior.share[drawn]
    if share.shape[1] != prior.n_labels:
        raise ValueError(
            f"posterior and prior must have the same number of labels, got {share.shape[1]} and "
            f"{prior.n_labels}: make the posterior by labelled_posterior from this prior"
        )
    labels = [
        weight @ rel_entr(share, np.exp(log_label[drawn])).sum(axis=1)
        for log_label in prior.log_label
    ]
    structure = [part.divergence(posterior.weights) for part in prior.components]
    return float((np.array(structure) + np.array(labels) - prior.log_share).min())
