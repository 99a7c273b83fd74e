"""Model selection of a certified fit: which predictor it uses, and which certificate that has.

The training set grows and labels a tree and chooses a posterior over its prunings; the vote of that
posterior is the training set's candidate. The calibration set then chooses weights for all
prunings, whose vote is the second candidate. One prior gives most of its probability to the first
candidate and the rest to all other labellings, so that the candidate with the lower bound is
certified with all of delta.

The fraction of training rows is chosen from a pilot's learning curve. Rows are revealed in random
order. The first of them, the pilot, are cross-validated at two sizes, and the error that a power
law predicts for more training rows is traded against the bound that fewer calibration rows allow.
As the choice depends on the pilot alone, the calibration rows are independent draws given it, and
no delta is spent.
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
    compute_posterior_vote,
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
from certree.rows.time_order import may_depend
from certree.stats import NodeStats
from certree.tree import Tree
from certree.votes import NodePredictions, Vote, Voting
from certree.weights.node_weights import NodeWeights, map_pruning

Deploy = Literal["best", "training", "vote"]

# Inverse temperatures (nats for each error) of the Gibbs posteriors that are tried.
PATH = (2.0 ** np.linspace(-6, 3, 10)).tolist()

# Small enough in practice, while fractions of it are still positive doubles.
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
    """A posterior over prunings that may be selected, with its vote, as `select_model` compares them.

    The vote is the weighted majority vote, or weighted mean, of the predictions of all prunings. A
    pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    posterior : NodeWeights or LabelledWeights
        The posterior over prunings, or over labelled prunings.
    ballot : Vote
        Scores (m, K) and label (m,) of its vote in each of the m nodes, for K classes.
    lambda_error : float or None
        Inverse temperature (nats for each error), one of `PATH` = 2^-6, 2^-5, ..., 2^3, if it is a
        Gibbs posterior (prior times ``exp(-lambda_error * errors)``); None: it is not.
    """

    posterior: _Posterior
    ballot: Vote
    lambda_error: float | None


@dataclass(frozen=True, slots=True, eq=False)
class SelectedModel:
    """The vote that `select_model` or `select_labelled` selected, with all certificates.

    The vote is the average of the predictions of all prunings (the tree with some nodes turned into
    leaves), by their posterior weights.

    Parameters
    ----------
    weights : NodeWeights
        The posterior over prunings: their weights in the vote.
    stats : NodeStats
        Class counts of the nodes that it votes by: of the training rows if their vote was selected,
        of the calibration rows if there is no training set, else of both together.
    ballot : Vote
        Scores (m, K) and label (m,) of the vote in each of the m nodes, for K classes.
    certificate : Certificate
        Bound on the error of the vote on new rows.
    alternatives : tuple of Certificate
        Certificates of all candidates for this selection, which hold together.
    others : tuple of Certificate
        Further certificates of the posterior that the calibration set chose: of one of its
        prunings, and of its vote by PAC-Bayes bounds. Each holds by itself, not together.
    lambda_error : float or None
        Inverse temperature of the posterior; None if it was not chosen by the bound.
    """

    weights: NodeWeights
    stats: NodeStats
    ballot: Vote
    certificate: Certificate
    alternatives: tuple[Certificate, ...]
    others: tuple[Certificate, ...]
    lambda_error: float | None


class _SelectionData:
    """Base class of `ModelSelection` and `LabelledSelection`.

    Subclasses are dataclasses with the fields `held` (a HeldOut: tree, training and calibration
    set), `delta` (probability with which certificates may fail, from 1e-300 to below 1) and
    `weighing` (NodeStats: class counts of the calibration rows with their weights; None: each row
    counts once). They define `structure` and `prior`, priors over labelled prunings, and
    `candidates`, which yields the votes to compare. The base class checks delta, and pickles only
    the fields. A labelled pruning is the tree with some nodes turned into leaves, and a label for
    each leaf.
    """

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
        """Class counts of the calibration rows in each node, from which posteriors are computed.

        The field `weighing` if it is not None, else ``held.stats``, in which each row counts once.
        A posterior is a distribution over the prunings of a tree (the tree with some nodes turned
        into leaves).
        """
        return self.held.stats if self.weighing is None else self.weighing

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields of the selection for pickling, without values computed from them.

        A dictionary from field name to value; cached properties, such as priors and votes, are left
        out and computed again when they are used.
        """
        computed = {name for name, how in vars(type(self)).items() if type(how) is cached_property}
        return {name: value for name, value in vars(self).items() if name not in computed}


@dataclass(frozen=True, eq=False)
class ModelSelection(_SelectionData):
    """The data of a selection between the training set's vote and votes chosen by the calibration set.

    A vote is the weighted majority vote, or weighted mean, of all prunings of the tree under a
    posterior. Pass the instance to `select_model`. Priors and votes are computed when first used. A
    pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set.
    posterior : NodeWeights
        Distribution over prunings chosen by the training set, or one pruning (weights 0 and 1). Its
        vote by the training counts is the first candidate.
    delta : float
        Probability with which the certificates may fail.
    voting : Voting
        What a leaf of a pruning contributes to the vote: its majority label, or class
        probabilities.
    weighing : NodeStats or None
        Weighted class counts of the calibration rows, from which posteriors are computed; None:
        each row counts once. In certificates each row counts once in any case.
    """

    held: HeldOut
    posterior: NodeWeights
    delta: float
    voting: Voting
    weighing: NodeStats | None = None

    @cached_property
    def both(self) -> NodeStats:
        """Class counts of training plus calibration rows in each node, as `NodeStats`.

        The counts are (m, K): those of ``held.grown`` (training set) plus those of the attribute
        `stats` (calibration set), without calibration rows of classes that no training row has. The
        label of each node, the class that it predicts as a leaf, is that of ``held.grown``: the
        calibration rows do not change it.
        """
        grown = self.held.grown
        counts = grown.counts + self.stats.counts[:, : grown.n_classes]
        # The pooled rows have the mean weight of all rows of both sets.
        both = (grown, self.stats)
        total, n = sum(one.n[0] for one in both), sum(one.n[0] / one.weight_unit for one in both)
        return NodeStats(counts, grown.label, float(total / n))

    @cached_property
    def structure(self) -> Prior:
        """The prior over labelled prunings that the tree and the training set allow.

        A labelled pruning is the tree with some nodes turned into leaves, and a label for each
        leaf. The prior mixes three priors with weight 1/3 each: the branching prior (each node that
        is reached becomes a leaf with probability 1/2), the count prior (a node of n training rows
        does with probability 10 / (10 + n)), and the mean of seven centred priors. In these a node
        becomes a leaf although the most likely pruning of the training set (attribute `likeliest`)
        splits it, or the other way round, with probability .1, .03, .01, .003, .001, .0003 or
        .0001. All of them give a leaf most probably the label of its training rows. Computed once.
        """
        return make_structure_prior(self.held.tree, self.held.grown, self.likeliest)

    @cached_property
    def likeliest(self) -> NodeWeights:
        """The most likely pruning under the posterior of the training set, as `NodeWeights`.

        Its leaves have weight 1, all other nodes 0. The posterior is the field `posterior`; a
        pruning is the tree with some nodes turned into leaves.
        """
        return map_pruning(self.held.tree, self.posterior)

    @cached_property
    def prior(self) -> Prior:
        """The prior over labelled prunings that certificates use.

        One labelling of the tree's leaves, that of the training set's vote as a whole, has the
        probability .9. The remaining .1 is the mixture prior of the attribute `structure`: every
        labelled pruning has .1 times the probability that it has in `structure`. A labelled pruning
        is the tree with some nodes turned into leaves, and a label for each leaf.
        """
        return add_candidate_labels(self.structure, self.held.grown, [self.alone.label])

    @cached_property
    def alone(self) -> Vote:
        """The vote, in each node, of the training set's posterior by the training counts.

        The posterior is the field `posterior`. `Vote` holds the score of each class in each node,
        (m, K), and the label of each node. The vote is the average of the predictions of all
        prunings (the tree with some nodes turned into leaves), by their posterior weights.
        """
        tree = self.held.tree
        return self.voting.ballots(tree, self.held.grown).compute_vote(tree, self.posterior)

    @cached_property
    def node_predictions(self) -> NodePredictions:
        """Contribution of each node to the vote of prunings of which it is a leaf.

        `NodePredictions`: a label or class probabilities for each node, computed from the class
        counts of training and calibration rows together.
        """
        return self.voting.ballots(self.held.tree, self.both)

    def candidates(
        self, posteriors: Sequence[NodeWeights] = ()
    ) -> Iterable[CandidateVote[NodeWeights]]:
        """Yield candidates for the selection, whose leaves vote by training and calibration rows.

        Each `CandidateVote` holds a posterior over prunings, the scores and labels of its vote in
        each node, and its inverse temperature (None for the argument `posteriors`). A posterior is
        a distribution over the prunings of a tree (the tree with some nodes turned into leaves).
        posteriors: the posteriors whose votes are yielded, in this order; empty: all Gibbs
        posteriors of `path`.
        """
        given: list[tuple[float | None, NodeWeights]] = [
            (None, posterior) for posterior in posteriors
        ]
        for value, posterior in given or self.path():
            yield CandidateVote(
                posterior, self.node_predictions.compute_vote(self.held.tree, posterior), value
            )

    def path(self) -> Iterable[tuple[float, NodeWeights]]:
        """Yield pairs (inverse temperature, Gibbs posterior of the calibration set).

        A Gibbs posterior gives each pruning (the tree with some nodes turned into leaves) its prior
        probability times ``exp(-inverse temperature * errors)``, normalised, with the errors of the
        calibration rows (attribute `stats`). There are 30 pairs: three priors, which are components
        of the attribute `structure`, each with the ten inverse temperatures of `PATH`, 2^-6 to 2^3
        in ascending order. The first is the centred prior with doubt .01 (a node becomes a leaf
        although the most likely pruning of the training set splits it, or the other way round, with
        probability .01), which usually has the lowest bound. The second is the branching prior (a
        node becomes a leaf with probability 1/2), the third the count prior (a node of n training
        rows does with probability 10 / (10 + n)).
        """
        plain, by_count, *centred = self.structure.distributions
        centre = centred[DOUBTS.index(0.01)]
        for posterior in (
            centre,
            plain,
            by_count,
        ):  # the component that usually has the lowest bound first
            family = make_gibbs_family(self.held.tree, self.stats, posterior)
            for value in PATH:
                yield value, family.solve(value, 0.0)


def make_structure_prior(tree: Tree, training_stats: NodeStats, pruning: NodeWeights) -> Prior:
    """Make the default prior of certified trees: a mixture of three kinds of priors.

    A prior gives a probability to each labelled pruning: the tree with some nodes turned into
    leaves, and a label for each leaf. It mixes, with weight 1/3 each, `branching_prior` (a node
    stops, that is becomes a leaf, with probability 1/2), `count_prior` (a node of n training rows
    stops with probability 10 / (10 + n)), and `doubted_prior` (a node stops where `pruning` splits
    it, or the other way round, with a probability of .1 to .0001). All three give a leaf most
    probably the label of its training rows.

    tree: the tree; training_stats: class counts of the training rows in each node; pruning: the
    most likely pruning by the training rows, weight 1 for its leaves, 0 for all other nodes.
    """
    plain = trust_labels(branching_prior(tree, training_stats.n_classes), training_stats)
    centred = doubted_prior(tree, training_stats, pruning)
    return mix_priors(plain, count_prior(tree, training_stats), centred)


@dataclass(frozen=True, eq=False)
class LabelledSelection(_SelectionData):
    """The data of a selection among votes of labelled prunings, for a tree without a training set.

    Pass it to `select_labelled`. A labelled pruning is the tree with some nodes turned into leaves,
    and a label for each leaf.

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its calibration set; no row is a training row.
    delta : float
        Probability with which the certificate may fail.
    weighing : NodeStats or None
        Weighted class counts of the calibration rows, from which posteriors are computed; None:
        each row counts once. In certificates each row counts once in any case.
    """

    held: HeldOut
    delta: float
    weighing: NodeStats | None = None

    @cached_property
    def structure(self) -> Prior:
        """The branching prior over labelled prunings.

        Each node that is reached from the root becomes a leaf with probability 1/2, and all labels
        are equally likely. A labelled pruning is the tree with some nodes turned into leaves, and a
        label for each leaf.
        """
        return branching_prior(self.held.tree, self.held.n_classes)

    @property
    def prior(self) -> Prior:
        """The prior over labelled prunings that certificates use: the attribute `structure`.

        Each node that is reached from the root becomes a leaf with probability 1/2, and all labels
        are equally likely. A labelled pruning is the tree with some nodes turned into leaves, and a
        label for each leaf.
        """
        return self.structure

    def candidates(self) -> Iterable[CandidateVote[LabelledWeights]]:
        """Yield the votes of Gibbs posteriors over labelled prunings, one for each entry of `PATH`.

        `PATH` holds the inverse temperatures 2^-6, 2^-5, ..., 2^3. A posterior gives each labelled
        pruning (the tree with some nodes turned into leaves, and a label for each leaf) its
        probability in the prior `structure`, in which a node becomes a leaf with probability 1/2,
        times ``exp(-inverse temperature * errors)`` with the errors of the calibration rows
        (attribute `stats`). Each `CandidateVote` holds a posterior, the scores and labels of its
        vote in each node, and its inverse temperature.
        """
        for value in PATH:
            posterior = labelled_posterior(self.held.tree, self.stats, self.prior, value)
            yield CandidateVote(
                posterior, compute_posterior_vote(self.held.tree, self.stats, posterior), value
            )


@validate_arguments
def select_model(
    model_selection: ModelSelection,
    posteriors: Sequence[NodeWeights] = (),
    selection: Deploy = "best",
) -> SelectedModel:
    """Certify the training set's vote and the calibration set's vote of lowest bound, and select one.

    The vote is the average of the predictions of all prunings (the tree with some nodes turned into
    leaves), by their posterior weights.

    Parameters
    ----------
    model_selection : ModelSelection
        The rows, the training set's posterior, delta and how prunings vote.
    posteriors : sequence of NodeWeights
        Posteriors among which the calibration set's vote with the lowest bound is searched; empty:
        Gibbs posteriors of three priors and ten temperatures, as `ModelSelection.path` yields them.
        All posteriors are covered at once, whatever chose them.
    selection : {"best", "training", "vote"}
        "best": select the candidate with the lower bound; "training": always select the training
        set's vote; "vote": always select the calibration set's vote.

    Returns
    -------
    SelectedModel
        The vote that was selected, its posterior over prunings, and the certificates of its error
        on new rows and of the alternatives.

    Raises
    ------
    ValueError
        If `selection` is unknown.

    References
    ----------
    Langford, "Tutorial on practical prediction theory for classification", JMLR 2005, for the
    bound.

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
    proposed = _certify_labels(model_selection, model_selection.alone.label)
    best, voted = _find_best_vote(model_selection, model_selection.candidates(posteriors))
    alternatives, others = (proposed, voted), tuple(_certify_alternatives(model_selection, best))
    if selection == "training" or (selection == "best" and proposed.bound <= voted.bound):
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
    """Select and certify the vote over labelled prunings with the lowest bound.

    The tree has no training set: the calibration rows label its nodes too. A labelled pruning is
    the tree with some nodes turned into leaves, and a label for each leaf.

    Parameters
    ----------
    model_selection : LabelledSelection
        The tree, the calibration set and delta.

    Returns
    -------
    SelectedModel
        Its vote is that of the Gibbs posterior with the lowest bound, of the ten inverse
        temperatures of `PATH`, 2^-6 to 2^3.

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
    """Compute the Occam bound of a labelling of the nodes, under the prior of a selection.

    It bounds the error on new rows of the classifier that predicts the label of the row's leaf, by
    its error on the calibration rows and minus the log prior probability of the labels. Uses
    `occam_mean`, by the mean loss of groups, for rows in groups; else `occam_vote`, by the number
    of errors. model_selection: gives calibration set, prior and delta; label: label of each node,
    (m,). Rows in time order that may depend on each other get the method "occam_period".
    """
    certify = occam_mean if model_selection.held.grouped else occam_vote
    return certify(model_selection.held, label, model_selection.prior, model_selection.delta)


def _find_best_vote(
    model_selection: ModelSelection | LabelledSelection,
    candidates: Iterable[CandidateVote[_Posterior]],
) -> tuple[CandidateVote[_Posterior], Certificate]:
    """Return the first candidate whose labelling has the lowest Occam bound, and its certificate.

    The Occam bound limits the error of the vote on new rows: by its error on the calibration rows,
    and by minus the log prior probability of its labelling. Calibration set, prior and delta are
    those of `model_selection`. A labelling is the class that the vote predicts in each leaf.
    candidates: at least one candidate vote.
    """
    held, log_delta = model_selection.held, math.log(model_selection.delta)
    holds = bounds.occam_mean_holds if held.grouped else bounds.occam_holds
    if may_depend(held.period):
        holds = bounds.martingale_mean_holds
    best, below = None, 1.0
    for candidate in candidates:
        label = candidate.ballot.label
        risk = held.compute_error(label)
        # Skip a candidate early if it cannot beat the best so far, even with complexity 0.
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
    """Yield certificates of the calibration set's posterior by other methods.

    These are, in this order, the certificate of its most likely pruning (unless rows come in
    groups), that of a pruning drawn for each row, and, for majority votes of labels, six PAC-Bayes
    bounds on the majority vote (methods "vote_first_order", "vote_first_order_range",
    "vote_tandem", "vote_either_wrong", "vote_c_bound" and "vote_tuples"). Each bounds an error on
    new rows, with the prior ``model_selection.structure``, and holds by itself. A posterior is a
    distribution over the prunings of a tree (the tree with some nodes turned into leaves).
    model_selection: gives tree, calibration set and delta; best: the candidate that the calibration
    set chose. There are none for rows in time order that may depend on each other.
    """
    held, prior, delta = model_selection.held, model_selection.structure, model_selection.delta
    if may_depend(held.period):
        return
    if not held.grouped:
        likeliest = map_pruning(held.tree, best.posterior)
        yield occam_pruning(held, likeliest, prior, delta)
    # These bounds need the labels of the training rows. A mean vote has other labels, and so has a
    # majority vote with monotonic constraints, which use the counts of both sets.
    by_label = model_selection.voting.kind == "majority" and model_selection.voting.slopes is None
    weighed = PosteriorVote(held, best.posterior, prior, best.ballot if by_label else None)
    yield weighed.certificate("gibbs_kl", delta)
    if by_label:
        for method in _OF_MAJORITY:
            yield weighed.certificate(method, delta)


# Fraction of the rows in time order that trains with train_size="auto": it must not depend on errors.
TIME_SHARE = 0.65
# Fraction of the rows that is always used for training (the pilot), and the fractions to choose from.
PILOT = 0.35
SHARES = (PILOT, 0.5, 0.65, 0.75, 0.85)


def get_fixed_train_size(train_size: float | str, has_times: bool) -> float | None:
    """Return the fraction of the rows that trains; None if a learning curve chooses it.

    train_size: parameter of the estimator. A fraction is returned as float. "auto" gives None, or
    .65 if rows are split by time, when no error may choose the fraction. has_times: whether they are.
    """
    if not isinstance(train_size, str):
        return float(train_size)
    return TIME_SHARE if has_times else None


# Mean and standard deviation of exponents of learning curves of trees, measured on eight public data
# sets; and the largest exponent allowed.
EXPONENT, _SPREAD, _STEEPEST = 0.15, 0.15, 0.7


class CurvePoint(NamedTuple):
    """A point of a learning curve: the error of trees grown on one fraction of the rows.

    `choose_train_fraction` takes several of them.

    Parameters
    ----------
    share : float
        Fraction of all rows that each tree was grown on.
    error : float
        Fraction of the validation rows that the trees predict wrongly.
    n_validation : int
        Number of validation rows of all these trees together.
    """

    share: float
    error: float
    n_validation: int


class PowerLaw(NamedTuple):
    """A learning curve ``error = level * s ** -exponent`` for the fraction s of training rows.

    Parameters
    ----------
    level : float
        Error that is expected if all rows are training rows.
    exponent : float
        The exponent in this formula, >= 0: the larger, the faster the error falls.
    """

    level: float
    exponent: float

    def predict(self, share: float) -> float:
        """Return the error that this learning curve predicts, at most 1.

        It is ``level * share ** -exponent``. share: fraction of the rows that is used for training.
        """
        return min(self.level * share**-self.exponent, 1.0)


def fit_power_law(curve: Sequence[CurvePoint], exponent: float = EXPONENT) -> PowerLaw:
    """Fit the law ``error = level * s ** -exponent`` to a learning curve; return the `PowerLaw`.

    s is the fraction of the rows that is used for training. A regression of the log error on log s;
    points are weighted by the precision of their error. The exponent has a normal prior with mean
    `exponent` and standard deviation .15, and is then clipped to 0 .. .7.

    curve: the points (fraction, error, number of validation rows), at least one; exponent: prior
    mean, .15 by default, the mean on public data sets.
    """
    n_rows = np.array([point.n_validation for point in curve], dtype=np.float64)
    error = (np.array([point.error for point in curve]) * n_rows + 0.5) / (n_rows + 1)
    size, falls = np.log([point.share for point in curve]), np.log(error)
    certainty = n_rows * error / (1 - error)
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
    """Choose the fraction of training rows for which the expected bound is lowest.

    Parameters
    ----------
    curve : sequence of CurvePoint
        Learning curve of the pilot, the fraction .35 of the rows that is always used for training;
        its points were found by cross-validation in these rows. Empty: return .35.
    n : int
        Number of rows, or groups, to divide into training and calibration set.
    delta : float
        Probability with which the certificate may fail.
    grouped : bool
        Whether n counts groups of rows.
    complexity : float
        Expected complexity of the certificate (nats); the default, -log(.9), is that of the
        training set's vote, which has the prior probability .9.
    exponent : float
        Prior mean of the exponent in ``error = level * s ** -exponent``, .15 by default, for trees
        grown on the fraction s of the rows.

    Returns
    -------
    float
        One of `SHARES`, .35, .5, .65, .75 and .85; the smallest if bounds are equal.
    """
    if not curve:
        return PILOT
    law, inequality = (
        fit_power_law(curve, exponent),
        get_inequality("occam_mean" if grouped else "occam_vote"),
    )

    def expected(share: float) -> float:
        """Return the bound that is expected if the fraction `share` of the n rows is used for training.

        Uses variables of the enclosing function: the fitted power law `law`, which predicts the
        error, the `inequality`, whose function `bound` it evaluates, and the arguments `n`,
        `complexity` and `delta`; inf if no calibration row is left.
        """
        weighing = n - round(share * n)
        if weighing < 1:
            return math.inf
        return inequality.bound(law.predict(share), weighing, complexity, math.log(delta))

    return min(SHARES, key=expected)
