"""Certificates of one labelling of the cells, or of one pruning; all are covered at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from certree.arrays import codes
from certree.certificates.certificate import Certificate, certificate_of
from certree.certificates.divergence import kl_divergence
from certree.certificates.priors import Prior
from certree.certificates.weighing import HeldOut
from certree.signatures import checked
from certree.weights.node_weights import NodeWeights, sample_pruning


@dataclass(frozen=True, slots=True)
class Drawn:
    """A single pruning that was drawn once, and its certificate."""

    pruning: NodeWeights
    certificate: Certificate


def _of_label(
    method: str, held: HeldOut, label: ArrayLike, prior: Prior, delta: float, share: float
) -> Certificate:
    prior.of(held.tree, held.grown)
    cells = codes("label", label, held.tree.n_nodes, held.n_classes)
    risk = held.error_of(cells)
    complexity = max(-prior.log_mass(cells), 0.0)
    return certificate_of(method, (risk,), risk, held.n, complexity, delta, share, held.grouped)


@checked
def occam_vote(
    held: HeldOut, label: ArrayLike, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify a vote as what it is: one label for each leaf of the tree.

    All labellings are covered at once, whatever chose them: any law, any temperature, any kind of
    vote. The complexity is that of all labelled prunings that predict the same.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows.
    label : array-like of int, shape (m,)
        Label of each node, such as ``Vote.label``; those of the tree's leaves are read.
    prior : Prior
        A prior made without the weighing rows.
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
    >>> law = pac_bayes(held.tree, held.stats, lambda_error=0.5, lambda_penalty=0.1)
    >>> label = vote(held.tree, held.stats, law).label
    >>> certificate = occam_vote(held, label, branching_prior(held.tree, held.n_classes))
    >>> certificate.risk, round(certificate.bound, 3)
    (0.0, 0.017)
    """
    return _of_label("occam_vote", held, label, prior, delta, share)


@checked
def occam_mean(
    held: HeldOut, label: ArrayLike, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify a vote like `occam_vote` by its mean loss over rows, or over groups of rows.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows, which may come in groups.
    label : array-like of int, shape (m,)
        Label of each node.
    prior : Prior
        A prior made without the weighing rows.
    delta, share : float
        As in `hold_out`.

    Returns
    -------
    Certificate
    """
    return _of_label("occam_mean", held, label, prior, delta, share)


@checked
def occam_answers(
    held: HeldOut, label: ArrayLike, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the error of a vote that may abstain, on the rows that it answers.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows.
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
    prior.of(held.tree, held.grown)
    if prior.n_labels != held.n_classes + 1:
        raise ValueError(f"prior must have {held.n_classes + 1} labels, got {prior.n_labels}")
    cells = codes("label", label, held.tree.n_nodes, prior.n_labels)
    silent = held.tree.is_leaf & (cells == held.n_classes)
    quiet = float(held.stats.n[silent].sum())
    answered = round(held.n - quiet)
    if answered == 0:
        raise ValueError("expected at least one weighing row that is answered")
    risk = (held.error_of(cells) * held.n - quiet) / answered
    complexity = max(-prior.log_mass(cells), 0.0)
    return certificate_of(
        "occam_answers", (risk,), risk, answered, complexity, delta, share, held.grouped
    )


@checked
def occam_pruning(
    held: HeldOut, pruning: NodeWeights, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify one pruning with the labels of the growing rows; all prunings are covered at once.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows.
    pruning : NodeWeights
        Weights 0 and 1, whatever chose them.
    prior : Prior
        A prior made without the weighing rows; its labels are not read.
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
    prior.of(held.tree, held.grown)
    risk = held.error_of_pruning(pruning)
    complexity = max(-prior.log_mass_of_pruning(pruning), 0.0)
    return certificate_of(
        "occam_pruning", (risk,), risk, held.n, complexity, delta, share, held.grouped
    )


@checked
def single_draw(
    held: HeldOut,
    law: NodeWeights,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    rng: np.random.Generator | int | None = None,
) -> Drawn:
    """Draw one pruning from a law, once, and certify it.

    To draw again and keep the better one breaks the promise.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows.
    law : NodeWeights
        The law over prunings.
    prior : Prior
        A prior made without the weighing rows; its labels are not read.
    delta, share : float
        As in `hold_out`.
    rng : numpy Generator, int or None
        Source of the randomness, or its seed; it must not depend on the rows.

    Returns
    -------
    Drawn
        The pruning, and the certificate, whose complexity is the log of the law's probability of the
        pruning over the prior's; it may be negative.
    """
    prior.of(held.tree, held.grown)
    pruning = sample_pruning(held.tree, law, rng)
    risk = held.error_of_pruning(pruning)
    log_law = -kl_divergence(held.tree, pruning, law)
    log_ratio = log_law - prior.log_mass_of_pruning(pruning)
    return Drawn(
        pruning,
        certificate_of("single_draw", (risk,), risk, held.n, log_ratio, delta, share, held.grouped),
    )
