"""Which predictor a certified fit deploys, and what certifies it.

Growing rows have grown and labelled the tree and chosen one pruning of it. Weighing rows then weigh all
prunings. Two candidates stand for election, each with half of delta: the pruning of the growing rows,
which the weighing rows certify as a hold-out, and the vote, whose labelling of the cells has a prior
mass. So the winner's bound is never worse than that hold-out with half of delta.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from certree.arrays import Int32
from certree.certificates import bounds
from certree.certificates import certificate as certificates
from certree.certificates.certificate import Certificate
from certree.certificates.labelled_prunings import LabelledWeights, ballot_of, labelled_posterior
from certree.certificates.priors import (
    DOUBTS,
    Prior,
    branching_prior,
    count_prior,
    doubted_prior,
    gibbs_family,
    mixture,
    trust_labels,
)
from certree.certificates.weighing import HeldOut
from certree.stats import NodeStats
from certree.votes import Vote, Voting, vote
from certree.weights.node_weights import NodeWeights, map_pruning

Deploy = Literal["best", "vote"]


# Weights of an error (nats) along the path of Gibbs posteriors; the best ones lie between.
PATH = 2.0 ** np.linspace(-6, 3, 10)


# Each of the two candidates has one half of delta.
_SHARE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Deployed:
    """A predictor with its certificate, and those of its rivals.

    Parameters
    ----------
    weights : NodeWeights
        The law over prunings; one pruning if that of the growing rows has won.
    stats : NodeStats
        Statistics that its nodes vote by.
    ballot : Vote
        Its outcome in every cell.
    certificate : Certificate
        What holds for it.
    rivals : tuple of Certificate
        Those of both candidates; they hold together.
    others : tuple of Certificate
        What else can be said, each by itself with half of delta.
    lambda_error : float or None
        Temperature of the vote's law; None if it was not chosen by the bound.
    """

    weights: NodeWeights
    stats: NodeStats
    ballot: Vote
    certificate: Certificate
    rivals: tuple[Certificate, ...]
    others: tuple[Certificate, ...]
    lambda_error: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Election:
    """What the candidates share.

    Parameters
    ----------
    held : HeldOut
        The tree with its growing and its weighing rows.
    pruning : NodeWeights
        Pruning that the growing rows have chosen, weights 0 and 1.
    delta : float
        Probability with which the certificates may fail.
    voting : Voting
        How prunings vote.
    weighing : NodeStats or None
        Weighted counts of the weighing rows, which shape the law; None: each row counts once.
    """

    held: HeldOut
    pruning: NodeWeights
    delta: float
    voting: Voting
    weighing: NodeStats | None = None

    @property
    def stats(self) -> NodeStats:
        """Counts that shape the law."""
        return self.held.stats if self.weighing is None else self.weighing

    @property
    def both(self) -> NodeStats:
        """Counts of growing and weighing rows, with the labels of the former."""
        counts = self.held.grown.counts + self.stats.counts
        return NodeStats(counts, self.held.grown.label)

    def prior(self) -> Prior:
        """The mixture of priors that the growing rows and the tree allow."""
        tree, grown = self.held.tree, self.held.grown
        plain = trust_labels(branching_prior(tree, grown.n_classes), grown)
        centred = doubted_prior(tree, grown, self.pruning)
        return mixture(plain, count_prior(tree, grown), centred)

    def path(self, prior: Prior) -> Iterable[tuple[float, NodeWeights]]:
        """Gibbs posteriors of every temperature and of a law of each kind in the prior."""
        plain, by_count, *centred = prior.laws
        centre = centred[DOUBTS.index(0.01)]
        for law in (centre, plain, by_count):  # the likeliest winner first
            family = gibbs_family(self.held.tree, self.stats, law)
            for value in PATH:
                yield float(value), family.at(value, 0.0)

    def ballot(self, weights: NodeWeights, both: NodeStats) -> Vote:
        """The vote of a law, by the counts of both sides."""
        return vote(self.held.tree, both, weights, self.voting)


@dataclass(frozen=True, slots=True, eq=False)
class LabelledElection:
    """The same for labelled prunings of a tree that no row has grown or labelled.

    Parameters
    ----------
    held : HeldOut
        The tree, without growing rows.
    delta : float
        Probability with which the certificate may fail.
    """

    held: HeldOut
    delta: float

    def prior(self) -> Prior:
        """Stops anywhere with the same probability, and all labels alike."""
        return branching_prior(self.held.tree, self.held.n_classes)


def elect(
    election: Election,
    laws: Sequence[NodeWeights] = (),
    deploy: Deploy = "best",
) -> Deployed:
    """Certify the pruning of the growing rows and the best vote, and deploy one of them.

    Parameters
    ----------
    election : Election
        The rows and how prunings vote.
    laws : sequence of NodeWeights
        Laws of which the one with the lowest bound votes; none: those along the path of Gibbs
        posteriors. All are covered at once, whatever chose them.
    deploy : {"best", "vote"}
        Whether the lower bound wins, or the vote in any case.

    Returns
    -------
    Deployed

    Raises
    ------
    ValueError
        If `deploy` is unknown.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005, for both bounds.
    """
    if deploy not in ("best", "vote"):
        raise ValueError(f'deploy must be "best" or "vote", got {deploy!r}')
    held, prior, both = election.held, election.prior(), election.both
    log_delta = float(np.log(election.delta * _SHARE))
    alone = vote(held.tree, held.grown, election.pruning, "mean")
    certified = certificates.occam_mean if held.grouped else certificates.occam_vote
    holds = bounds.occam_mean_holds if held.grouped else bounds.occam_holds
    candidates: Iterable[tuple[float | None, NodeWeights]] = (
        ((None, law) for law in laws) if laws else election.path(prior)
    )
    best: tuple[Certificate, float | None, NodeWeights, Vote] | None = None
    for value, weights in candidates:
        ballot = election.ballot(weights, both)
        risk = certificates.wrong_share(held, ballot.label)
        # Most are no better than the best so far, many of them not even without any complexity.
        if best is not None:
            lower = np.nextafter(best[0].bound, 0.0)
            if not holds(lower, risk, held.n, 0.0, log_delta):
                continue
            if not holds(lower, risk, held.n, -prior.log_mass(ballot.label), log_delta):
                continue
        found = certified(held, ballot.label, prior, election.delta, _SHARE)
        if best is None or found.bound < best[0].bound:
            best = found, value, weights, ballot
    assert best is not None  # the path is never empty
    voted, value, weights, ballot = best
    rivals = (_held_out(held, alone.label, election.delta), voted)
    others = tuple(_others(election, prior, weights))
    if deploy == "best" and rivals[0].bound <= voted.bound:
        return Deployed(election.pruning, held.grown, alone, rivals[0], rivals, others, None)
    return Deployed(weights, both, ballot, voted, rivals, others, value)


def elect_labelled(election: LabelledElection) -> Deployed:
    """Certify the best vote over labelled prunings of a tree that no row has grown or labelled.

    Parameters
    ----------
    election : LabelledElection
        The tree and the rows.

    Returns
    -------
    Deployed
        The vote with the lowest bound of those along the path of Gibbs posteriors.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005.
    """
    held, delta, prior = election.held, election.delta, election.prior()
    best: tuple[Certificate, float, LabelledWeights, Vote] | None = None
    for value in map(float, PATH):
        law = labelled_posterior(held.tree, held.stats, prior, value)
        ballot = ballot_of(held.tree, held.stats, law)
        found = certificates.occam_vote(held, ballot.label, prior, delta)
        if best is None or found.bound < best[0].bound:
            best = found, value, law, ballot
    assert best is not None  # the path is never empty
    voted, value, law, ballot = best
    others = (certificates.gibbs_kl(held, law, prior, delta),)
    stats = NodeStats(held.stats.counts, ballot.label)
    return Deployed(law.weights, stats, ballot, voted, (voted,), others, value)


def _held_out(held: HeldOut, label: Int32, delta: float) -> Certificate:
    """The weighing rows as a hold-out of a labelling that they had no part in."""
    risk = certificates.wrong_share(held, label)
    if held.grouped:
        return certificates.hold_out_mean(risk, held.n, delta, _SHARE, grouped=True)
    return certificates.hold_out(round(risk * held.n), held.n, delta, _SHARE)


def _others(election: Election, prior: Prior, weights: NodeWeights) -> Iterable[Certificate]:
    """Bounds on prunings and, if they vote by their labels, on their draws and majority."""
    held, delta = election.held, election.delta
    if not held.grouped:
        likeliest = map_pruning(held.tree, weights)
        yield certificates.occam_pruning(held, likeliest, prior, delta, _SHARE)
    weighed = certificates.Weighed(held, weights, prior)
    yield weighed.certificate("gibbs_kl", delta, _SHARE)
    if election.voting.kind == "mean":
        return  # what follows speaks of the majority of labels, which another predictor is
    for method in (
        "vote_first_order",
        "vote_first_order_range",
        "vote_tandem",
        "vote_either_wrong",
        "vote_c_bound",
    ):
        yield weighed.certificate(method, delta, _SHARE)
    yield weighed.best_of_tuples(certificates.TUPLES, delta, _SHARE)
