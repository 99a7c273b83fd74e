"""Which predictor a certified fit selects, and what certifies it.

Training samples have grown and labelled the tree and chosen a posterior over its prunings, whose
vote they propose. Calibration samples then weigh all prunings. One prior holds the proposal with
most of its mass and all other labellings with the rest, so that whatever has the lowest bound is
certified with all of delta: the proposal hardly above the hold-out that it is, or a vote by the
calibration samples.

How many rows shall grow and how many certify, a pilot's learning curve says. Rows are revealed one
after the other in a random order. A pilot of them is cross-validated at two sizes, and the error
that a power law expects of more training samples is weighed against the bound that fewer certifying
rows allow. The choice reads nothing but the pilot, so it stops the training samples at a time that only
they decide: those after it are independent draws given it, and no delta is spent.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from certree.certificates.calibration_set import HeldOut
from certree.certificates.certificate import Certificate
from certree.certificates.inequalities import bounds
from certree.certificates.majority import PosteriorVote
from certree.certificates.methods import get_inequality
from certree.certificates.occam import occam_mean, occam_pruning, occam_vote
from certree.certificates.posteriors import (
    LabelledWeights,
    cast_posterior_vote,
    labelled_posterior,
    make_gibbs_family,
)
from certree.certificates.priors import (
    DOUBTS,
    PROPOSED,
    Prior,
    add_candidate_labels,
    branching_prior,
    count_prior,
    doubted_prior,
    mix_priors,
    trust_labels,
)
from certree.interface.arrays import Int32
from certree.interface.signatures import validate_arguments, validate_settings
from certree.stats import NodeStats
from certree.tree import Tree
from certree.votes import Ballots, Vote, Voting
from certree.weights.node_weights import NodeWeights, map_pruning

Deploy = Literal["best", "vote"]

# Weights of an error (nats) along the path of Gibbs posteriors; the best ones lie between.
PATH = (2.0 ** np.linspace(-6, 3, 10)).tolist()

# Parts of it must be numbers of float64, too.
_LEAST_DELTA = 1e-300

_OF_MAJORITY = (
    "vote_first_order",
    "vote_first_order_range",
    "vote_tandem",
    "vote_either_wrong",
    "vote_c_bound",
    "vote_tuples",
)

_Posterior = TypeVar("_Posterior", NodeWeights, LabelledWeights)


@dataclass(frozen=True, slots=True, eq=False)
class CandidateVote(Generic[_Posterior]):
    """A posterior that stands for selection: its vote, and its temperature if it is one of the path."""

    posterior: _Posterior
    ballot: Vote
    lambda_error: float | None


@dataclass(frozen=True, slots=True, eq=False)
class SelectedModel:
    """A predictor with its certificate, and those of its alternatives.

    Parameters
    ----------
    weights : NodeWeights
        The posterior over prunings.
    stats : NodeStats
        Statistics that its nodes vote by.
    ballot : Vote
        Its outcome in every cell.
    certificate : Certificate
        What holds for it.
    alternatives : tuple of Certificate
        Those of both candidates; they hold together.
    others : tuple of Certificate
        What else can be said of the vote by the calibration samples, each by itself.
    lambda_error : float or None
        Temperature of the posterior; None if it was not chosen by the bound.
    """

    weights: NodeWeights
    stats: NodeStats
    ballot: Vote
    certificate: Certificate
    alternatives: tuple[Certificate, ...]
    others: tuple[Certificate, ...]
    lambda_error: float | None


class _SelectionData:
    """The rows of a selection; a pickle holds the fields, and nothing that is computed from them."""

    held: HeldOut
    delta: float
    weighing: NodeStats | None

    def __post_init__(self) -> None:
        validate_settings(self)
        if not _LEAST_DELTA <= self.delta < 1:
            raise ValueError(
                f"delta must be at least {_LEAST_DELTA} and below 1, got {self.delta!r}"
            )

    @property
    def stats(self) -> NodeStats:
        """Counts that shape the posterior."""
        return self.held.stats if self.weighing is None else self.weighing

    def __getstate__(self) -> dict[str, Any]:
        computed = {name for name, how in vars(type(self)).items() if type(how) is cached_property}
        return {name: value for name, value in vars(self).items() if name not in computed}


@dataclass(frozen=True, eq=False)
class ModelSelection(_SelectionData):
    """What the candidates share.

    Parameters
    ----------
    held : HeldOut
        The tree with its growing and its calibration samples.
    posterior : NodeWeights
        Distribution over prunings that the training samples have chosen, or one pruning, weights 0
        and 1. Its vote by their counts is what they propose.
    delta : float
        Probability with which the certificates may fail.
    voting : Voting
        How prunings vote.
    weighing : NodeStats or None
        Weighted counts of the calibration samples, which shape the posterior; None: each row counts
        once, as it does in the certificates in any case.
    """

    held: HeldOut
    posterior: NodeWeights
    delta: float
    voting: Voting
    weighing: NodeStats | None = None

    @cached_property
    def both(self) -> NodeStats:
        """Counts of growing and calibration samples, with the labels of the former."""
        grown = self.held.grown
        counts = grown.counts + self.stats.counts[:, : grown.n_classes]
        # Rows of both sides have their weights side by side, and so a mean weight of their own.
        both = (grown, self.stats)
        total, n = sum(one.n[0] for one in both), sum(one.n[0] / one.weight_unit for one in both)
        return NodeStats(counts, grown.label, float(total / n))

    @cached_property
    def structure(self) -> Prior:
        """The mixture of priors over prunings that the training samples and the tree allow."""
        return make_structure_prior(self.held.tree, self.held.grown, self.likeliest)

    @cached_property
    def likeliest(self) -> NodeWeights:
        """The likeliest pruning by the training samples."""
        return map_pruning(self.held.tree, self.posterior)

    @cached_property
    def prior(self) -> Prior:
        """The same, with most of its mass on what the training samples propose."""
        return add_candidate_labels(self.structure, self.held.grown, [self.alone.label])

    @cached_property
    def alone(self) -> Vote:
        """What the training samples alone predict: the vote of their posterior, by their counts."""
        tree = self.held.tree
        return self.voting.ballots(tree, self.held.grown).cast(tree, self.posterior)

    @cached_property
    def ballots(self) -> Ballots:
        """What every node votes for, by the counts of both sides."""
        return self.voting.ballots(self.held.tree, self.both)

    def candidates(
        self, posteriors: Sequence[NodeWeights] = ()
    ) -> Iterable[CandidateVote[NodeWeights]]:
        """The votes of some posteriors; none: of every posterior along the path of Gibbs posteriors."""
        given: list[tuple[float | None, NodeWeights]] = [
            (None, posterior) for posterior in posteriors
        ]
        for value, posterior in given or self.path():
            yield CandidateVote(posterior, self.ballots.cast(self.held.tree, posterior), value)

    def path(self) -> Iterable[tuple[float, NodeWeights]]:
        """Gibbs posteriors of every temperature and of a posterior of each kind in the prior."""
        plain, by_count, *centred = self.structure.distributions
        centre = centred[DOUBTS.index(0.01)]
        for posterior in (centre, plain, by_count):  # the likeliest winner first
            family = make_gibbs_family(self.held.tree, self.stats, posterior)
            for value in PATH:
                yield value, family.solve(value, 0.0)


def make_structure_prior(tree: Tree, grown: NodeStats, pruning: NodeWeights) -> Prior:
    """The mixture of priors that training samples, and their likeliest pruning, allow."""
    plain = trust_labels(branching_prior(tree, grown.n_classes), grown)
    centred = doubted_prior(tree, grown, pruning)
    return mix_priors(plain, count_prior(tree, grown), centred)


@dataclass(frozen=True, eq=False)
class LabelledSelection(_SelectionData):
    """The same for labelled prunings of a tree that no row has grown or labelled.

    Parameters
    ----------
    held : HeldOut
        The tree, without training samples.
    delta : float
        Probability with which the certificate may fail.
    weighing : NodeStats or None
        As in `ModelSelection`.
    """

    held: HeldOut
    delta: float
    weighing: NodeStats | None = None

    @cached_property
    def structure(self) -> Prior:
        """Stops anywhere with the same probability, and all labels alike."""
        return branching_prior(self.held.tree, self.held.n_classes)

    @property
    def prior(self) -> Prior:
        """The same: no rows propose a labelling."""
        return self.structure

    def candidates(self) -> Iterable[CandidateVote[LabelledWeights]]:
        """The votes of every posterior along the path of Gibbs posteriors."""
        for value in PATH:
            posterior = labelled_posterior(self.held.tree, self.stats, self.prior, value)
            yield CandidateVote(
                posterior, cast_posterior_vote(self.held.tree, self.stats, posterior), value
            )


@validate_arguments
def select_model(
    model_selection: ModelSelection,
    posteriors: Sequence[NodeWeights] = (),
    selection: Deploy = "best",
) -> SelectedModel:
    """Certify what the training samples propose and the best vote, and select one of them.

    Parameters
    ----------
    model_selection : ModelSelection
        The rows and how prunings vote.
    posteriors : sequence of NodeWeights
        Posteriors of which the one with the lowest bound votes; none: those along the path of Gibbs
        posteriors. All are covered at once, whatever chose them.
    selection : {"best", "vote"}
        Whether the lower bound wins, or the vote by the calibration samples in any case.

    Returns
    -------
    Deployed

    Raises
    ------
    ValueError
        If `selection` is unknown.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005, for the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from certree import Voting, grow_cart
    >>> from certree.certificates import ModelSelection, select_model, held_out
    >>> from certree.prunings import cost_complexity
    >>> X = np.arange(400.0)[:, None] % 100
    >>> y = (X[:, 0] > 40).astype(int)
    >>> grow, weigh = np.arange(100), np.arange(100, 400)
    >>> held = held_out(grow_cart(X[grow], y[grow]), X, y, 2, grow=grow, weigh=weigh)
    >>> pruning = cost_complexity(held.tree, held.grown, 2.0)
    >>> selected = select_model(ModelSelection(held, pruning, delta=0.05, voting=Voting("majority")))
    >>> [(other.method, round(other.bound, 3)) for other in selected.alternatives]
    [('occam_vote', 0.01), ('occam_vote', 0.01)]
    """
    if selection not in ("best", "vote"):
        raise ValueError(f'selection must be "best" or "vote", got {selection!r}')
    proposed = _certify_labels(model_selection, model_selection.alone.label)
    best, voted = _find_best_vote(model_selection, model_selection.candidates(posteriors))
    alternatives, others = (proposed, voted), tuple(_certify_alternatives(model_selection, best))
    if selection == "best" and proposed.bound <= voted.bound:
        grown = model_selection.held.grown
        return SelectedModel(
            model_selection.posterior,
            grown,
            model_selection.alone,
            proposed,
            alternatives,
            others,
            None,
        )
    return SelectedModel(
        best.posterior,
        model_selection.both,
        best.ballot,
        voted,
        alternatives,
        others,
        best.lambda_error,
    )


@validate_arguments
def select_labelled(model_selection: LabelledSelection) -> SelectedModel:
    """Certify the best vote over labelled prunings of a tree that no row has grown or labelled.

    Parameters
    ----------
    model_selection : LabelledSelection
        The tree and the rows.

    Returns
    -------
    Deployed
        The vote with the lowest bound of those along the path of Gibbs posteriors.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005.
    """
    best, voted = _find_best_vote(model_selection, model_selection.candidates())
    weighed = PosteriorVote(
        model_selection.held, best.posterior, model_selection.prior, best.ballot
    )
    others = (weighed.certificate("gibbs_kl", model_selection.delta),)
    counts = model_selection.stats.counts[:, : model_selection.held.n_classes]
    stats = NodeStats(counts, best.ballot.label, model_selection.stats.weight_unit)
    return SelectedModel(
        best.posterior.weights, stats, best.ballot, voted, (voted,), others, best.lambda_error
    )


def _certify_labels(
    model_selection: ModelSelection | LabelledSelection, label: Int32
) -> Certificate:
    """The bound of a labelling of the cells, by its prior mass."""
    certify = occam_mean if model_selection.held.grouped else occam_vote
    return certify(model_selection.held, label, model_selection.prior, model_selection.delta)


def _find_best_vote(
    model_selection: ModelSelection | LabelledSelection,
    candidates: Iterable[CandidateVote[_Posterior]],
) -> tuple[CandidateVote[_Posterior], Certificate]:
    """The first vote with the lowest bound of its labelling, and that bound."""
    held, log_delta = model_selection.held, math.log(model_selection.delta)
    holds = bounds.occam_mean_holds if held.grouped else bounds.occam_holds
    best, below = None, 1.0
    for candidate in candidates:
        label = candidate.ballot.label
        risk = held.compute_error(label)
        # Most are no better than the best so far, many of them not even without any complexity.
        if not holds(below, risk, held.n, 0.0, log_delta):
            continue
        if not holds(below, risk, held.n, -model_selection.prior.log_mass(label), log_delta):
            continue
        certificate = _certify_labels(model_selection, label)
        if certificate.bound <= below:
            best = candidate, certificate
            below = math.nextafter(certificate.bound, 0.0)
    assert best is not None  # the path is never empty, and no bound is above 1
    return best


def _certify_alternatives(
    model_selection: ModelSelection, best: CandidateVote[NodeWeights]
) -> Iterable[Certificate]:
    """Bounds on prunings and, if they vote by their labels, on their draws and majority."""
    held, prior, delta = model_selection.held, model_selection.structure, model_selection.delta
    if not held.grouped:
        likeliest = map_pruning(held.tree, best.posterior)
        yield occam_pruning(held, likeliest, prior, delta)
    # Bounds by draws are about labels of the training samples. A mean vote has others, and so has a
    # majority whose labels slopes have moved by the counts of both sides.
    by_label = model_selection.voting.kind == "majority" and model_selection.voting.slopes is None
    weighed = PosteriorVote(held, best.posterior, prior, best.ballot if by_label else None)
    yield weighed.certificate("gibbs_kl", delta)
    if by_label:
        for method in _OF_MAJORITY:
            yield weighed.certificate(method, delta)


# Share of the rows that grow in any case, and the shares to choose from.
PILOT = 0.35
SHARES = (PILOT, 0.5, 0.65, 0.75, 0.85)

# What exponents of learning curves of trees are like, by those of eight public tables; and the
# steepest.
EXPONENT, _SPREAD, _STEEPEST = 0.15, 0.15, 0.7


class CurvePoint(NamedTuple):
    """What trees of some size get wrong: a point of a learning curve.

    Parameters
    ----------
    share : float
        Share of all rows that grew each tree.
    error : float
        Share of the judged rows that the trees get wrong.
    judged : int
        Number of rows that judge them.
    """

    share: float
    error: float
    judged: int


class PowerLaw(NamedTuple):
    """An error that falls with the share s of training samples like ``level * s^-exponent``."""

    level: float
    exponent: float

    def predict(self, share: float) -> float:
        """The error that is expected if this share grows, at most 1."""
        return min(self.level * share**-self.exponent, 1.0)


def fit_power_law(curve: Sequence[CurvePoint], exponent: float = EXPONENT) -> PowerLaw:
    """The likeliest power law, where points are as certain as their errors are many.

    The regression of the logarithm of the error on that of the share, with a normal prior on the
    exponent around the one given, which is then kept between 0 and .7.
    """
    judged = np.array([point.judged for point in curve], dtype=np.float64)
    error = (np.array([point.error for point in curve]) * judged + 0.5) / (judged + 1)
    size, falls = np.log([point.share for point in curve]), np.log(error)
    certainty = judged * error / (1 - error)
    centre = np.average(size, weights=certainty)
    spread = certainty @ (size - centre) ** 2 + _SPREAD**-2
    slope = certainty @ ((centre - size) * falls) + exponent * _SPREAD**-2
    likeliest = min(max(float(slope / spread), 0.0), _STEEPEST)
    level = np.average(falls, weights=certainty) + likeliest * centre
    return PowerLaw(math.exp(level), likeliest)


def choose_train_fraction(
    curve: Sequence[CurvePoint],
    n: int,
    delta: float,
    grouped: bool = False,
    complexity: float = -math.log(PROPOSED),
    exponent: float = EXPONENT,
) -> float:
    """Choose the share of rows that grow by the bound that it lets expect.

    Parameters
    ----------
    curve : sequence of CurvePoint
        What the pilot has found; without a point nothing is known, and the pilot's share is taken.
    n : int
        Rows, or groups, that grow or certify.
    delta : float
        Probability with which the certificate may fail.
    grouped : bool
        Whether they are groups.
    complexity : float
        What certifies pays for the choice of what predicts (nats); the default is that of a tree whose
        prunings the calibration samples weigh.
    exponent : float
        How steep learning curves of such models are, in the mean.

    Returns
    -------
    float
        One of `SHARES`, on ties the smallest.
    """
    if not curve:
        return PILOT
    posterior, inequality = (
        fit_power_law(curve, exponent),
        get_inequality("occam_mean" if grouped else "occam_vote"),
    )

    def expected(share: float) -> float:
        weighing = n - round(share * n)
        if weighing < 1:
            return math.inf
        return inequality.bound(posterior.predict(share), weighing, complexity, math.log(delta))

    return min(SHARES, key=expected)
