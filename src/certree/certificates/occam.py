"""Occam bounds: certificates of one labelling of the leaves, or of one pruning, all covered at once.

Labellings may abstain in leaves with a small margin. The mean of unbounded errors of a numeric
target cannot be bounded, so absolute errors are clipped at a limit that the training rows have set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.certificates.calibration_set import HeldOut, HeldOutNumbers
from certree.certificates.certificate import Certificate, compute_certificate, get_sampling_facts
from certree.certificates.inequalities.posterior_moments import kl_divergence
from certree.certificates.priors import Prior, add_candidate_labels, allow_abstention
from certree.interface.arrays import Float64, check_codes, check_column
from certree.interface.signatures import validate_arguments
from certree.tree import Tree
from certree.votes import Vote, Voting
from certree.weights.node_weights import NodeWeights, expect_pruning, sample_pruning


@dataclass(frozen=True, slots=True)
class Drawn:
    """A pruning that was drawn once from a posterior, with its certificate; `single_draw` makes it.

    A posterior is a distribution over the prunings of a tree (the tree with some nodes turned into
    leaves).

    Parameters
    ----------
    pruning : NodeWeights
        The pruning: weight 1 for its leaves, 0 for all other nodes.
    certificate : Certificate
        Bound on the error of the pruning on new rows.
    """

    pruning: NodeWeights
    certificate: Certificate


def _certify_risk(
    method: str,
    held: HeldOut | HeldOutNumbers,
    risk: float,
    nats: float,
    delta: float,
    share: float,
    **rest: Any,
) -> Certificate:
    """Compute a certificate by a method whose inequality takes the observed risk alone.

    Parameters
    ----------
    method : str
        Key of `METHODS`.
    held : HeldOut or HeldOutNumbers
        The calibration set, of which `n` and how the rows were drawn are read.
    risk : float
        Fraction of errors, or mean loss, of the calibration rows, between 0 and 1.
    nats : float
        Complexity: minus the log prior probability of what is certified; 0 if it was fixed before.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.
    **rest
        Further fields of `Certificate` by name, such as `unit`.

    Returns
    -------
    Certificate
        Upper bound on the error, or mean loss, on new rows.
    """
    about = get_sampling_facts(held) | rest
    return compute_certificate(method, (risk,), held.n, nats, delta, share, **about)


def _certify_label(
    method: str, held: HeldOut, label: ArrayLike, prior: Prior, delta: float, share: float
) -> Certificate:
    """Compute the Occam bound of a labelling of the tree's leaves as a certificate.

    It bounds the probability that a new row's class differs from the label of its leaf. method:
    "occam_vote" (by the number of errors; independent rows) or "occam_mean" (by the mean loss; also
    groups); held: counts of training and calibration set; label: label of each node, (m,); prior:
    distribution over labelled prunings (the tree with some nodes turned into leaves, and a label
    for each leaf), made without the calibration set; delta, share: probability with which
    certificates may fail, and the fraction of it that is used. Raises ValueError if the prior is of
    another tree, or was made from other rows than the training set.
    """
    prior.check_source(held.tree, held.grown)
    cells = check_codes("label", label, held.tree.n_nodes, held.n_classes)
    nats = max(-prior.log_mass(cells), 0.0)
    return _certify_risk(method, held, held.compute_error(cells), nats, delta, share)


@validate_arguments
def occam_vote(
    held: HeldOut, label: ArrayLike, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Bound the error of a tree with given leaf labels, such as those of a vote (Occam bound).

    The bound holds for all labels at once, so the calibration rows may choose the posterior, its
    temperatures and the kind of vote that give the labels. A labelled pruning is the tree with some
    nodes turned into leaves, and a label for each leaf. The complexity of the bound is minus the
    log prior probability of all labelled prunings that give each leaf of the tree the same label as
    `label`.

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set.
    label : array-like of int, shape (m,)
        Label of each node, such as ``Vote.label``; only entries of the tree's leaves are read.
    prior : Prior
        A prior made without the calibration set.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.

    Returns
    -------
    Certificate
        Upper bound on the probability that a new row's class differs from the label of its leaf.

    Raises
    ------
    ValueError
        If the rows come in groups, or the prior is of another tree or was made from other rows than
        the training set.

    Examples
    --------
    >>> import numpy as np
    >>> from certree import grow_cart, pac_bayes, vote
    >>> from certree.certificates import branching_prior, held_out, occam_vote
    >>> X = np.arange(400.0)[:, None] % 100
    >>> y = (X[:, 0] > 40).astype(int)
    >>> grow, weigh = np.arange(100), np.arange(100, 400)
    >>> held = held_out(grow_cart(X[grow], y[grow]), X, y, 2, grow=grow, weigh=weigh)
    >>> posterior = pac_bayes(held.tree, held.stats, lambda_error=0.5, lambda_penalty=0.1)
    >>> label = vote(held.tree, held.stats, posterior).label
    >>> certificate = occam_vote(held, label, branching_prior(held.tree, held.n_classes))
    >>> certificate.risk, round(certificate.bound, 3)
    (0.0, 0.017)
    """
    return _certify_label("occam_vote", held, label, prior, delta, share)


@validate_arguments
def occam_mean(
    held: HeldOut, label: ArrayLike, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Bound the error of a tree with given leaf labels, for rows that may come in groups.

    The calibration rows may choose the labels. A labelled pruning is the tree with some nodes
    turned into leaves, and a label for each leaf. The complexity of the bound is minus the log
    prior probability of all labelled prunings that give each leaf of the tree the same label as
    `label`. Hoeffding's inequality replaces the binomial tail of `occam_vote`, so that groups are
    allowed.

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set, whose rows may
        come in groups.
    label : array-like of int, shape (m,)
        Label of each node; only entries of the tree's leaves are read.
    prior : Prior
        A prior made without the calibration set.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.

    Returns
    -------
    Certificate
        Upper bound on the probability that a new row's class differs from the label of its leaf.
        For groups it bounds the mean, over new groups, of the fraction of such rows.

    Raises
    ------
    ValueError
        If the prior is of another tree or was made from other rows than the training set.
    """
    return _certify_label("occam_mean", held, label, prior, delta, share)


@validate_arguments
def occam_answers(
    held: HeldOut, label: ArrayLike, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Bound the error of a tree that abstains in some leaves, on the rows that get a prediction.

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set.
    label : array-like of int, shape (m,)
        Label of each node, where K, the number of classes, stands for abstention; only entries of
        the tree's leaves are read.
    prior : Prior
        A prior with K + 1 labels, as `allow_abstention` makes it, without the calibration set.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.

    Returns
    -------
    Certificate
        Upper bound on the error on new rows that get a prediction. Its `n` is the number of
        calibration rows that get one.

    Raises
    ------
    ValueError
        If the rows come in groups; if the prior is of another tree, was made from other rows than
        the training set, or has another number of labels; or if the vote abstains from all rows.
    """
    prior.check_source(held.tree, held.grown)
    if prior.n_labels != held.n_classes + 1:
        raise ValueError(
            f"prior must have {held.n_classes + 1} labels, got {prior.n_labels}: add the label of "
            "abstention by allow_abstention(prior)"
        )
    cells = check_codes("label", label, held.tree.n_nodes, prior.n_labels)
    silent = held.tree.is_leaf & (cells == held.n_classes)
    quiet = float(held.stats.n[silent].sum())
    answered = round(held.n - quiet)
    if answered == 0:
        raise ValueError(
            "label must not be abstention for all calibration rows, got no row with a prediction: "
            "abstain from fewer leaves, by a lower margin"
        )
    risk = (held.compute_error(cells) * held.n - quiet) / answered
    nats = max(-prior.log_mass(cells), 0.0)
    entries = "occam_answers", (risk,), answered, nats, delta, share
    return compute_certificate(*entries, **get_sampling_facts(held))


@validate_arguments
def occam_pruning(
    held: HeldOut, pruning: NodeWeights, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify one pruning whose leaves have the labels of the training rows; all prunings are covered.

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set.
    pruning : NodeWeights
        Weights 0 and 1 over the nodes, where the leaves of the pruning have 1; they may depend on
        the calibration rows.
    prior : Prior
        A prior made without the calibration set; its label probabilities are not used.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.

    Returns
    -------
    Certificate
        Upper bound on the error of the pruning on new rows.

    Raises
    ------
    ValueError
        If the rows come in groups; if the prior is of another tree or was made from other rows than
        the training set; or if the weights are not those of a pruning.
    """
    prior.check_source(held.tree, held.grown)
    risk = held.compute_pruning_error(pruning)
    nats = max(-prior.log_mass_of_pruning(pruning), 0.0)
    return _certify_risk("occam_pruning", held, risk, nats, delta, share)


@validate_arguments
def single_draw(
    held: HeldOut,
    posterior: NodeWeights,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    rng: np.random.Generator | int | None = None,
) -> Drawn:
    """Draw one pruning from a posterior, and certify it.

    Call it once: drawing again and keeping the better pruning makes the certificate invalid.

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set, whose rows may
        come in groups.
    posterior : NodeWeights
        The posterior over prunings; it may depend on the calibration rows.
    prior : Prior
        A prior made without the calibration set; its label probabilities are not used.
    delta, share : float
        Probability, over calibration rows and draw, with which certificates may fail, and the
        fraction of it that this one uses.
    rng : numpy Generator, int or None
        Source of the draw, or its seed; it must not depend on the rows.

    Returns
    -------
    Drawn
        The pruning and its certificate, whose complexity is the log of the posterior over the prior
        probability of the pruning; it may be negative.

    Raises
    ------
    ValueError
        If the prior is of another tree or was made from other rows than the training set.
    """
    prior.check_source(held.tree, held.grown)
    pruning = sample_pruning(held.tree, posterior, rng)
    risk = held.compute_pruning_error(pruning)
    log_posterior = -kl_divergence(held.tree, pruning, posterior)
    nats = log_posterior - prior.log_mass_of_pruning(pruning)
    return Drawn(pruning, _certify_risk("single_draw", held, risk, nats, delta, share))


@validate_arguments
def absolute_error(
    held: HeldOutNumbers, value: Float64, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the mean absolute error of predictions that were fixed without the calibration set.

    Parameters
    ----------
    held : HeldOutNumbers
        The tree and the calibration set.
    value : array-like of shape (m,)
        Prediction of each node, in units of the target; only entries of the tree's leaves are read.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.

    Returns
    -------
    Certificate
        Upper bound on the mean absolute error of new rows, in units of the target. Absolute errors
        above its `unit`, the limit of `held`, count as that.

    References
    ----------
    Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 1963.
    """
    numbers: Float64 = check_column("value", value, "float64", (held.tree.n_nodes,))
    entries = "absolute_error", held, held.compute_loss(numbers), 0.0
    return _certify_risk(*entries, delta, share, unit=float(held.limit), baseline=held.baseline)


@validate_arguments
def absolute_error_pruning(
    held: HeldOutNumbers,
    pruning: NodeWeights,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    voting: Voting | None = None,
) -> Certificate:
    """Certify the mean absolute error of one pruning, whose leaves predict means of training rows.

    All prunings are covered at once, so that the calibration rows may choose it.

    Parameters
    ----------
    held : HeldOutNumbers
        The tree and the calibration set.
    pruning : NodeWeights
        Weights 0 and 1 over the nodes, where the leaves of the pruning have 1.
    prior : Prior
        A prior made without the calibration set; its label probabilities are not used.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that this one uses.
    voting : Voting or None
        How leaves predict from the statistics of the training rows; None: by their mean.

    Returns
    -------
    Certificate
        Upper bound on the mean absolute error of new rows, in units of the target. Absolute errors
        above its `unit`, the limit of `held`, count as that.

    Raises
    ------
    ValueError
        If the prior is of another tree, or the weights are not those of a pruning.
    """
    if prior.tree is not held.tree:
        raise ValueError(
            "prior must be over the prunings of held.tree, got the prior of another tree object: make "
            "it by pruning_prior(held.tree, pruning)"
        )
    means = (Voting("mean") if voting is None else voting).ballots(held.tree, held.grown)
    value = means.compute_vote(held.tree, expect_pruning(held.tree, pruning)).score[:, 0]
    nats = max(-prior.log_mass_of_pruning(pruning), 0.0)
    entries = "absolute_error_pruning", held, held.compute_loss(value), nats
    return _certify_risk(*entries, delta, share, unit=float(held.limit), baseline=held.baseline)


# Largest fraction of rows with a prediction, for each margin that is tried.
_COVERAGES = np.linspace(1, 0.05, 20)


@dataclass(frozen=True, slots=True)
class Selective:
    """A classifier that abstains where its margin is small, and a bound on its error elsewhere.

    The margin of a row is the probability of its most likely class minus that of the second most
    likely class. `selective_certificates` makes it.

    Parameters
    ----------
    margin : float
        The classifier abstains from rows with a smaller margin.
    coverage : float
        Fraction of the calibration rows that get a prediction; observed, not guaranteed.
    certificate : Certificate
        Bound on the error on new rows that get a prediction.
    """

    margin: float
    coverage: float
    certificate: Certificate

    def __str__(self) -> str:
        """Return this classifier with abstention as a sentence: margin, coverage and certificate.

        The coverage is the fraction of calibration rows that get a prediction.
        """
        return (
            f"Answering where the margin is at least {self.margin:.4g} "
            f"({100 * self.coverage:.1f} % of the calibration rows): {self.certificate}"
        )


def compute_node_margins(ballot: Vote) -> Float64:
    """Compute the margin of a vote in each node, (m,).

    It is the probability of the most likely class minus that of the second most likely class.
    ballot: a vote with class probabilities (m, K).
    """
    return compute_class_margins(ballot.score)


def compute_class_margins(probabilities: Float64) -> Float64:
    """Compute for each row the largest probability minus the second largest, (n,).

    probabilities: class probabilities, (n, K). With a single class all margins are 1.
    """
    if probabilities.shape[1] == 1:
        return np.ones(len(probabilities))
    two = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.minimum(two[:, 1] - two[:, 0], 1.0)


@validate_arguments
def selective_certificates(
    held: HeldOut,
    ballot: Vote,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    fixed: bool = False,
) -> tuple[Selective, ...]:
    """Certify a vote that abstains where its margin is small, for several margins at once.

    Abstention is one more label, so that the Occam bound covers all margins together. The margins
    tried leave at most 100 %, 95 %, ..., 5 % of some rows with a prediction: of the calibration
    rows, or, if `fixed`, of the training rows. If `fixed`, the labellings of these margins have
    together the prior probability .9.

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set.
    ballot : Vote
        Class probabilities of each node, (m, K).
    prior : Prior
        A prior over the K classes, made without the calibration set.
    delta, share : float
        Probability with which certificates may fail, and the fraction of it that these use
        together.
    fixed : bool
        Whether the vote was fixed without the calibration set, by the training rows alone; see
        above.

    Returns
    -------
    tuple of Selective
        By rising margin, at most 20; the first has the margin 0 and never abstains. They hold together.

    Raises
    ------
    ValueError
        If the rows come in groups, or the prior is of another tree or was made from other rows than
        the training set.

    References
    ----------
    Geifman and El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017, for the
    kind of guarantee; the bound is that of Langford, JMLR 2005.
    """
    lead, winner = compute_node_margins(ballot.check_tree(held.tree)), ballot.label
    tried = _choose_margins(held.tree, lead, held.grown.n if fixed else held.stats.n)
    labels = {margin: np.where(lead >= margin, winner, held.n_classes) for margin in tried}
    silent = allow_abstention(prior)
    if fixed:
        silent = add_candidate_labels(silent, held.grown, [*labels.values()])
    leaves, found = held.tree.is_leaf, []
    for margin, label in labels.items():
        answered = float(held.stats.n[leaves & (lead >= margin)].sum())
        if answered > 0:
            certificate = occam_answers(held, label, silent, delta, share)
            found.append(Selective(margin, answered / float(held.stats.n[0]), certificate))
    return tuple(found)


def _choose_margins(tree: Tree, lead: Float64, n: Float64) -> list[float]:
    """Choose the margins for which at most 100 %, 95 %, ..., 5 % of the rows get a prediction.

    A row gets a prediction if the margin of its leaf is not smaller than the chosen one. tree: the
    tree; lead: margin of the vote in each node (probability of its most likely class minus that of
    the second), (m,); n: number of rows in each node, (m,). Return the chosen margins, at most 20,
    in ascending order from 0, rounded down to four decimals.
    """
    leaves = np.flatnonzero(tree.is_leaf)
    leaves = leaves[np.argsort(-lead[leaves], kind="stable")]
    answered = np.cumsum(n[leaves]) / max(float(n[0]), 1.0)  # n may be 0 everywhere
    last = np.searchsorted(answered, _COVERAGES[1:] * (1 + 1e-12), side="right") - 1
    last = last[(last >= 0) & (answered[last] > 0)]
    # Rounded down, so that margins which differ by rounding errors become equal.
    rounded = np.maximum(np.floor(1e4 * lead[leaves[last]] - 1e-6), 0) / 1e4
    return np.unique([0.0, *rounded]).tolist()
