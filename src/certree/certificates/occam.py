"""Certificates of one labelling of the cells, or of one pruning; all are covered at once.

Of a labelling that abstains where its margin is small, too, and of one pruning whose leaves predict
numbers. The mean of errors that have no limit cannot be bounded by any number of rows: one row in a
million may be off by anything. So errors are cut at a limit that the training samples alone have set.
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
    """A single pruning that was drawn once, and its certificate."""

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
    """Certify by the observed risk alone."""
    about = get_sampling_facts(held) | rest
    return compute_certificate(method, (risk,), held.n, nats, delta, share, **about)


def _certify_label(
    method: str, held: HeldOut, label: ArrayLike, prior: Prior, delta: float, share: float
) -> Certificate:
    prior.check_source(held.tree, held.grown)
    cells = check_codes("label", label, held.tree.n_nodes, held.n_classes)
    nats = max(-prior.log_mass(cells), 0.0)
    return _certify_risk(method, held, held.compute_error(cells), nats, delta, share)


@validate_arguments
def occam_vote(
    held: HeldOut, label: ArrayLike, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify a vote as what it is: one label for each leaf of the tree.

    All labellings are covered at once, whatever chose them: any posterior, any temperature, any kind of
    vote. The complexity is that of all labelled prunings that predict the same.

    Parameters
    ----------
    held : HeldOut
        The tree and the calibration samples.
    label : array-like of int, shape (m,)
        Label of each node, such as ``Vote.label``; those of the tree's leaves are read.
    prior : Prior
        A prior made without the calibration samples.
    delta, share : float
        As in `hold_out`.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If the rows come in groups, or the prior has seen other rows than the growing ones.

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
    """Certify a vote like `occam_vote` by its mean loss over rows, or over groups of rows.

    Parameters
    ----------
    held : HeldOut
        The tree and the calibration samples, which may come in groups.
    label : array-like of int, shape (m,)
        Label of each node.
    prior : Prior
        A prior made without the calibration samples.
    delta, share : float
        As in `hold_out`.

    Returns
    -------
    Certificate
    """
    return _certify_label("occam_mean", held, label, prior, delta, share)


@validate_arguments
def occam_answers(
    held: HeldOut, label: ArrayLike, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the error of a vote that may abstain, on the rows that it answers.

    Parameters
    ----------
    held : HeldOut
        The tree and the calibration samples.
    label : array-like of int, shape (m,)
        Label of each node; K, the number of classes, stands for no answer.
    prior : Prior
        A prior with K + 1 labels, as `allow_abstention` makes it.
    delta, share : float
        As in `hold_out`.

    Returns
    -------
    Certificate
        Its n are the rows answered.

    Raises
    ------
    ValueError
        As `occam_vote`, or if no row is answered.
    """
    prior.check_source(held.tree, held.grown)
    if prior.n_labels != held.n_classes + 1:
        raise ValueError(f"prior must have {held.n_classes + 1} labels, got {prior.n_labels}")
    cells = check_codes("label", label, held.tree.n_nodes, prior.n_labels)
    silent = held.tree.is_leaf & (cells == held.n_classes)
    quiet = float(held.stats.n[silent].sum())
    answered = round(held.n - quiet)
    if answered == 0:
        raise ValueError("expected at least one calibration sample that is answered")
    risk = (held.compute_error(cells) * held.n - quiet) / answered
    nats = max(-prior.log_mass(cells), 0.0)
    entries = "occam_answers", (risk,), answered, nats, delta, share
    return compute_certificate(*entries, **get_sampling_facts(held))


@validate_arguments
def occam_pruning(
    held: HeldOut, pruning: NodeWeights, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify one pruning with the labels of the training samples; all prunings are covered at once.

    Parameters
    ----------
    held : HeldOut
        The tree and the calibration samples.
    pruning : NodeWeights
        Weights 0 and 1, whatever chose them.
    prior : Prior
        A prior made without the calibration samples; its labels are not read.
    delta, share : float
        As in `hold_out`.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        As `occam_vote`, or if the weights are not 0 and 1.
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
    """Draw one pruning from a posterior, once, and certify it.

    To draw again and keep the better one breaks the promise.

    Parameters
    ----------
    held : HeldOut
        The tree and the calibration samples.
    posterior : NodeWeights
        The posterior over prunings.
    prior : Prior
        A prior made without the calibration samples; its labels are not read.
    delta, share : float
        As in `hold_out`.
    rng : numpy Generator, int or None
        Source of the randomness, or its seed; it must not depend on the rows.

    Returns
    -------
    Drawn
        The pruning, and the certificate, whose complexity is the log of the posterior's probability
        of the pruning over the prior's; it may be negative.
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
    """Certify the mean absolute error of predictions that were fixed without the calibration samples.

    Parameters
    ----------
    held : HeldOutNumbers
        The tree and the calibration samples.
    value : array-like of shape (m,)
        What each node predicts, in units of the target; leaves of the tree are read.
    delta, share : float
        As in `hold_out`.

    Returns
    -------
    Certificate
        In units of the target; its ``unit`` is the limit of an error.

    References
    ----------
    Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 1963.
    """
    numbers: Float64 = check_column("value", value, "float64", (held.tree.n_nodes,))
    entries = "absolute_error", held, held.compute_loss(numbers), 0.0
    return _certify_risk(*entries, delta, share, unit=float(held.limit))


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
    """Certify the mean absolute error of one pruning with the means of the training samples.

    All prunings are covered at once, whatever chose this one.

    Parameters
    ----------
    held : HeldOutNumbers
        The tree and the calibration samples.
    pruning : NodeWeights
        Weights 0 and 1.
    prior : Prior
        A prior made without the calibration samples; its labels are not read.
    delta, share : float
        As in `hold_out`.
    voting : Voting or None
        How its leaves predict; None: by the mean of their training samples.

    Returns
    -------
    Certificate
        As `absolute_error`.

    Raises
    ------
    ValueError
        If the prior is one of another tree, or the weights are not 0 and 1.
    """
    if prior.tree is not held.tree:
        raise ValueError("prior is one over the prunings of another tree")
    means = (Voting("mean") if voting is None else voting).ballots(held.tree, held.grown)
    value = means.cast(held.tree, expect_pruning(held.tree, pruning)).score[:, 0]
    nats = max(-prior.log_mass_of_pruning(pruning), 0.0)
    entries = "absolute_error_pruning", held, held.compute_loss(value), nats
    return _certify_risk(*entries, delta, share, unit=float(held.limit))


# Shares of the rows that are answered, at most; a margin for each is tried.
_COVERAGES = np.linspace(1, 0.05, 20)


@dataclass(frozen=True, slots=True)
class Selective:
    """A vote that answers where its margin is large enough, and a bound on its error there.

    Parameters
    ----------
    margin : float
        It answers where the class with the most votes is at least so far before the second.
    coverage : float
        Share of the calibration samples that it answers; observed, not promised.
    certificate : Certificate
        What holds of the rows that it answers.
    """

    margin: float
    coverage: float
    certificate: Certificate

    def __str__(self) -> str:
        """The margin, the coverage and the promise."""
        return (
            f"Answering where the margin is at least {self.margin:.4g} "
            f"({100 * self.coverage:.1f} % of the calibration samples): {self.certificate}"
        )


def compute_node_margins(ballot: Vote) -> Float64:
    """By how much the class with the most votes is before the second in every cell, (m,)."""
    return compute_class_margins(ballot.score)


def compute_class_margins(shares: Float64) -> Float64:
    """By how much the first of the classes is before the second, of shares (n, K)."""
    if shares.shape[1] == 1:
        return np.ones(len(shares))
    two = np.partition(shares, -2, axis=1)[:, -2:]
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
    """Certify a vote that stays silent where its margin is small, for several margins at once.

    Which cells are silent is one more labelling, so all margins are covered together, whatever the
    calibration samples say for one of them. Of a vote that was fixed without them, the training samples
    choose the margins, and the prior expects these labellings.

    Parameters
    ----------
    held : HeldOut
        The tree and the calibration samples.
    ballot : Vote
        Any vote in its cells.
    prior : Prior
        A prior made without the calibration samples, over the classes.
    delta, share : float
        As in `hold_out`.
    fixed : bool
        Whether the vote was fixed without the calibration samples.

    Returns
    -------
    tuple of Selective
        By rising margin; the first answers everywhere. At most 20.

    Raises
    ------
    ValueError
        If the rows come in groups, or the prior has seen other rows than the growing ones.

    References
    ----------
    Geifman and El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017, for the
    guarantee as such; the bound is Langford's, JMLR 2005.
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
    """Margins that leave shares of some rows, (m,) in the nodes, to be answered; 0 is the first."""
    leaves = np.flatnonzero(tree.is_leaf)
    leaves = leaves[np.argsort(-lead[leaves], kind="stable")]
    answered = np.cumsum(n[leaves]) / max(float(n[0]), 1.0)  # there may be no rows to go by
    last = np.searchsorted(answered, _COVERAGES[1:] * (1 + 1e-12), side="right") - 1
    last = last[(last >= 0) & (answered[last] > 0)]
    # Rounded down: margins that differ by rounding alone are not to be told apart.
    rounded = np.maximum(np.floor(1e4 * lead[leaves[last]] - 1e-6), 0) / 1e4
    return np.unique([0.0, *rounded]).tolist()
