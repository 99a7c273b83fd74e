"""Certificates: what is promised about errors on new rows, with which probability, and why.

`METHODS` lists what may be promised. A certificate of one entry holds with probability
``1 - delta share``, so that several whose shares sum to at most 1 hold together with ``1 - delta``, if
their shares were written down before the weighing rows were seen. Laws, temperatures and prunings may
be chosen by the same rows, as all of them are covered at once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from certree import bounds, moments
from certree.columns import Int32, codes
from certree.divergence import kl_divergence
from certree.heldout import HeldOut
from certree.labelled import Law, ballot_of, divergence
from certree.priors import Prior
from certree.weights import NodeWeights, sample_pruning

# At least so many of so many draws wrong, as tried by `vote_tuples` with equal shares of delta.
TUPLES = tuple((n_draws, n_wrong) for n_draws in range(1, 6) for n_wrong in range(1, n_draws + 1))

# More than anybody has; numbers of doubles above would not be told apart from their neighbours.
_MOST_ROWS = 2**50


@dataclass(frozen=True, slots=True)
class Method:
    """One way to certify.

    Parameters
    ----------
    certify : callable
        The function that makes the certificate.
    inequality : callable
        The bound, of ``(*observed, n, complexity, log_delta)``.
    limit : callable
        What the bound tends to with ever more rows, of the same observed numbers.
    subject : str
        What the certificate speaks about.
    needs : str
        What must hold besides independent rows.
    reference : str
        Where the inequality is proved.
    rows : str
        What rows the bound is over.
    whole_errors : bool
        Whether it needs losses of 0 and 1, and so refuses groups of rows.
    """

    certify: "Callable[..., Certificate | Drawn]"
    inequality: Callable[..., float]
    limit: Callable[..., float]
    subject: str
    needs: str
    reference: str
    rows: str = "weighing rows"
    whole_errors: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """What a bound is made of; the three sum to it.

    Parameters
    ----------
    observed : float
        The bound that would be left with ever more rows like these.
    complexity : float
        What is added as the rows have chosen among many prunings.
    confidence : float
        What is added as the rows are few and `delta` is small.
    """

    observed: float
    complexity: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """An upper bound on the error on new rows, with all that it rests on.

    Parameters
    ----------
    method : str
        Row of `METHODS`.
    bound : float
        The error is at most this.
    delta : float
        Probability with which the promise may fail, over the draw of the rows.
    share : float
        Share of delta that this entry uses up.
    n : int
        Independent observations: rows, or groups of them.
    risk : float
        Error on these rows of what the certificate speaks about.
    observed : tuple of float
        The observed numbers that enter the bound.
    complexity : float
        Divergence from the prior, or minus the log of a prior mass (nats).
    grouped : bool
        Whether the observations are groups of rows.
    """

    method: str
    bound: float
    delta: float
    share: float
    n: int
    risk: float
    observed: tuple[float, ...]
    complexity: float
    grouped: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.bound <= 1:
            raise ValueError(f"bound must lie in 0 .. 1, got {self.bound!r}")

    @property
    def about(self) -> str:
        """What the certificate speaks about."""
        return METHODS[self.method].subject

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the promise to hold."""
        units = "groups of rows" if self.grouped else "rows"
        drawn = f"{units} are drawn independently, from the source that new ones come from"
        return drawn, METHODS[self.method].needs

    @property
    def log_delta(self) -> float:
        """Log of the probability with which this entry may fail."""
        return math.log(self.delta * self.share)

    @property
    def parts(self) -> Parts:
        """How much of the bound is observed error, complexity and confidence."""
        method = METHODS[self.method]
        observed = min(max(method.limit(*self.observed), 0.0), 1.0)
        alone = method.inequality(*self.observed, self.n, 0.0, self.log_delta)
        return Parts(observed, self.bound - alone, alone - observed)

    def rows_needed(self, target: float) -> int | None:
        """Count the rows (or groups) that would bring the bound down to a target.

        If error and complexity stayed as they are.

        Parameters
        ----------
        target : float
            The bound wanted.

        Returns
        -------
        int or None
            None if no number of rows is enough, as the observed error alone is too high or as good
            as the target.
        """
        method = METHODS[self.method]
        if target <= method.limit(*self.observed):
            return None

        def enough(n: int) -> bool:
            at_n = method.inequality(*self.observed, n, self.complexity, self.log_delta)
            return bool(at_n <= target)

        below, above = 0, 1
        while not enough(above):
            below, above = above, 2 * above
            if above > _MOST_ROWS:
                return None
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (below, middle) if enough(middle) else (middle, above)
        return above

    def __str__(self) -> str:
        """The promise as a sentence."""
        method = METHODS[self.method]
        units = f"groups of {method.rows}" if self.grouped else method.rows
        new = "rows of new groups" if self.grouped else "new rows"
        # Rounded up: a promise must not become stronger in print.
        bound = math.ceil(1000 * self.bound - 1e-9) / 10
        return (
            f"With probability at least {100 * (1 - self.delta):.10g} % over the draw of the "
            f"{self.n:,} {units}, {method.subject} on {new} from the same source is at most "
            f"{bound:.1f} % (observed on them: {100 * self.risk:.1f} %; method: {self.method})."
        )


@dataclass(frozen=True, slots=True)
class Drawn:
    """A single pruning that was drawn once, and its certificate."""

    pruning: NodeWeights
    certificate: Certificate


def _certificate(
    method: str,
    observed: tuple[float, ...],
    risk: float,
    n: int,
    complexity: float,
    delta: float,
    share: float,
    grouped: bool = False,
) -> Certificate:
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    entry = METHODS[method]
    if grouped and entry.whole_errors:
        usable = ", ".join(name for name, other in METHODS.items() if not other.whole_errors)
        raise ValueError(
            f"{method} counts whole errors of independent rows, but these come in groups; "
            f"expected one of {usable}"
        )
    bound = entry.inequality(*observed, n, complexity, math.log(delta * share))
    return Certificate(method, bound, delta, share, n, risk, observed, complexity, grouped)


# -- one classifier --------------------------------------------------------------------------------


def hold_out(errors: int, n: int, delta: float = 0.05, share: float = 1.0) -> Certificate:
    """Certify a classifier by rows that were used for nothing else.

    Parameters
    ----------
    errors : int
        Rows that it gets wrong.
    n : int
        Rows.
    delta : float
        Probability with which the promise may fail.
    share : float
        Share of delta that is used up here.

    Returns
    -------
    Certificate
    """
    return hold_out_best([errors], n, delta, share, method="hold_out")


def hold_out_best(
    errors: Sequence[int],
    n: int,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    method: str = "hold_out_best",
) -> Certificate:
    """Certify the best of several classifiers that were all fixed before the rows were seen.

    Parameters
    ----------
    errors : sequence of int
        Rows that each classifier gets wrong.
    n : int
        Rows.
    delta, share : float
        As in `hold_out`.
    method : str
        Row of `METHODS`.

    Returns
    -------
    Certificate
        That of the first with the fewest errors.
    """
    counted = np.asarray(errors)
    if n < 1 or counted.dtype.kind not in "iu" or counted.min() < 0 or counted.max() > n:
        raise ValueError(
            f"errors must be whole numbers in 0 .. n with n >= 1, got {errors!r}, {n!r}"
        )
    risk = float(counted.min()) / n
    return _certificate(method, (risk,), risk, n, math.log(len(counted)), delta, share)


def hold_out_mean(
    risk: float, n: int, delta: float = 0.05, share: float = 1.0, *, grouped: bool = False
) -> Certificate:
    """Certify a classifier like `hold_out` by its mean loss over rows, or over groups of rows.

    Parameters
    ----------
    risk : float
        Mean loss over the rows, or of the mean losses of the groups, between 0 and 1.
    n : int
        Rows, or groups.
    delta, share : float
        As in `hold_out`.
    grouped : bool
        Whether they are groups.

    Returns
    -------
    Certificate
    """
    if n < 1 or not 0 <= risk <= 1:
        raise ValueError(f"expected a risk in 0 .. 1 of n >= 1 rows, got {risk!r}, {n!r}")
    return _certificate("hold_out_mean", (risk,), risk, n, 0.0, delta, share, grouped)


# -- one labelling of the cells --------------------------------------------------------------------


def _expect_prior(held: HeldOut, prior: Prior) -> None:
    if prior.tree is not held.tree:
        raise ValueError("prior is one over the prunings of another tree")
    if prior.seen is not None and prior.seen is not held.grown:
        raise ValueError("prior may be made from the growing rows only, but has seen other rows")


def wrong_share(held: HeldOut, label: Int32) -> float:
    """Share of the observations in leaves with other labels."""
    leaves = held.tree.is_leaf
    counts, named = held.stats.counts[leaves], label[leaves]
    right = counts[np.arange(len(named)), np.minimum(named, held.n_classes - 1)]
    wrong = counts.sum(axis=1) - np.where(named < held.n_classes, right, 0.0)
    return float(wrong.sum()) / held.n


def _of_label(
    method: str, held: HeldOut, label: ArrayLike, prior: Prior, delta: float, share: float
) -> Certificate:
    _expect_prior(held, prior)
    cells = codes("label", label, held.tree.n_nodes, held.n_classes)
    risk = wrong_share(held, cells)
    complexity = max(-prior.log_mass(cells), 0.0)
    return _certificate(method, (risk,), risk, held.n, complexity, delta, share, held.grouped)


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
    """
    return _of_label("occam_vote", held, label, prior, delta, share)


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
    _expect_prior(held, prior)
    if prior.n_labels != held.n_classes + 1:
        raise ValueError(f"prior must have {held.n_classes + 1} labels, got {prior.n_labels}")
    cells = codes("label", label, held.tree.n_nodes, prior.n_labels)
    silent = held.tree.is_leaf & (cells == held.n_classes)
    quiet = float(held.stats.n[silent].sum())
    answered = round(held.n - quiet)
    if answered == 0:
        raise ValueError("expected at least one weighing row that is answered")
    risk = (wrong_share(held, cells) * held.n - quiet) / answered
    complexity = max(-prior.log_mass(cells), 0.0)
    return _certificate(
        "occam_answers", (risk,), risk, answered, complexity, delta, share, held.grouped
    )


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
    _expect_prior(held, prior)
    risk = _pruning_risk(held, pruning)
    complexity = max(-prior.log_mass_of_pruning(pruning), 0.0)
    return _certificate(
        "occam_pruning", (risk,), risk, held.n, complexity, delta, share, held.grouped
    )


def _pruning_risk(held: HeldOut, pruning: NodeWeights) -> float:
    if not np.isin(pruning.of(held.tree).weight, (0, 1)).all():
        raise ValueError("pruning must have weights 0 and 1")
    return float(pruning.weight @ held.stats.errors) / held.n


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
    _expect_prior(held, prior)
    pruning = sample_pruning(held.tree, law, rng)
    risk = _pruning_risk(held, pruning)
    log_law = -kl_divergence(held.tree, pruning, law)
    log_ratio = log_law - prior.log_mass_of_pruning(pruning)
    return Drawn(
        pruning,
        _certificate("single_draw", (risk,), risk, held.n, log_ratio, delta, share, held.grouped),
    )


# -- a law over prunings, and its majority vote ----------------------------------------------------


class Weighed:
    """A law over prunings, what it votes and how far it is from its prior, for several bounds.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows, which may come in groups.
    law : NodeWeights or LabelledWeights
        The law over prunings, whatever chose it.
    prior : Prior
        A prior made without the weighing rows.

    Raises
    ------
    ValueError
        If the prior has seen other rows than the growing ones.
    """

    def __init__(self, held: HeldOut, law: Law, prior: Prior) -> None:
        _expect_prior(held, prior)
        self.held = held
        self.ballot = ballot_of(held.tree, held.stats, law)
        self.complexity = divergence(law, prior)
        self._judged = moments.Judged.of(held.tree, held.stats, self.ballot)

    def certificate(self, method: str, delta: float = 0.05, share: float = 1.0) -> Certificate:
        """Certify the law, or its majority vote, by one row of `METHODS`."""
        return self._by(method, _OBSERVED[method](self), delta, share)

    def best_of_tuples(
        self, tuples: Sequence[tuple[int, int]], delta: float = 0.05, share: float = 1.0
    ) -> Certificate:
        """Certify the majority vote by the best of several kinds of tuples; see `vote_tuples`."""
        certificates = [
            self._by("vote_tuples", (self.tuples(*kind), *kind, len(tuples)), delta, share)
            for kind in tuples
        ]
        return min(certificates, key=lambda certificate: certificate.bound)

    def tuples(self, n_draws: int, n_wrong: int) -> float:
        """Share of the rows that so many of so many draws get wrong."""
        return self._judged.tuple_risk(n_draws, n_wrong)

    @cached_property
    def gibbs(self) -> float:
        """Share of the rows that a draw gets wrong."""
        return self.tuples(1, 1)

    @cached_property
    def risk(self) -> float:
        """Share of the rows that the majority vote gets wrong."""
        return wrong_share(self.held, self.ballot.label)

    @property
    def one_wrong(self) -> float:
        """Share of the rows that one of two draws gets wrong."""
        return self._judged.one_wrong()

    @property
    def differing(self) -> float:
        """Share of the rows that two draws label differently."""
        return moments.disagreement(self.held.tree, self.held.stats, self.ballot)

    @cached_property
    def least(self) -> moments.WrongRange:
        """How little is voted against what wins, and against what loses."""
        return moments.wrong_range(self.held.tree, self.ballot)

    def _by(
        self, method: str, observed: tuple[float, ...], delta: float, share: float
    ) -> Certificate:
        held = self.held
        about_draws = METHODS[method].subject == _DRAWS
        risk = self.gibbs if about_draws else self.risk
        return _certificate(
            method, observed, risk, held.n, self.complexity, delta, share, held.grouped
        )


# What each bound takes besides the rows, the complexity and delta.
_OBSERVED: dict[str, Callable[[Weighed], tuple[float, ...]]] = {
    "gibbs_kl": lambda weighed: (weighed.gibbs,),
    "gibbs_lambda": lambda weighed: (weighed.gibbs,),
    "vote_first_order": lambda weighed: (weighed.gibbs,),
    "vote_first_order_range": lambda weighed: (
        weighed.gibbs,
        weighed.least.right,
        weighed.least.wrong,
    ),
    "vote_tandem": lambda weighed: (weighed.tuples(2, 2),),
    "vote_either_wrong": lambda weighed: (weighed.tuples(2, 1),),
    "vote_c_bound": lambda weighed: (weighed.gibbs, weighed.one_wrong),
    "vote_disagreement": lambda weighed: (
        weighed.gibbs,
        weighed.differing,
        weighed.held.n_classes,
    ),
}


def gibbs_kl(
    held: HeldOut, law: Law, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the classifier that draws a pruning anew for each row; all laws are covered at once.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows, which may come in groups.
    law : NodeWeights or LabelledWeights
        The law over prunings, whatever chose it.
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
        If the prior has seen other rows than the growing ones.
    """
    return Weighed(held, law, prior).certificate("gibbs_kl", delta, share)


def gibbs_lambda(
    held: HeldOut, law: Law, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the same by a bound in closed form, which `gibbs_kl` is never above; see there."""
    return Weighed(held, law, prior).certificate("gibbs_lambda", delta, share)


def vote_first_order(
    held: HeldOut, law: Law, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the majority vote by twice the risk of its prunings; parameters as in `gibbs_kl`."""
    return Weighed(held, law, prior).certificate("vote_first_order", delta, share)


def vote_first_order_range(
    held: HeldOut, law: Law, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the majority vote by the risk of its prunings and how sure it is in every cell.

    Parameters as in `gibbs_kl`.
    """
    return Weighed(held, law, prior).certificate("vote_first_order_range", delta, share)


def vote_tandem(
    held: HeldOut, law: Law, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the majority vote by pairs of prunings that are both wrong.

    Parameters as in `gibbs_kl`.
    """
    return Weighed(held, law, prior).certificate("vote_tandem", delta, share)


def vote_either_wrong(
    held: HeldOut, law: Law, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the majority vote by pairs of prunings of which one is wrong.

    Below `vote_tandem` if prunings err together, as those of one tree do. Parameters as in
    `gibbs_kl`.
    """
    return Weighed(held, law, prior).certificate("vote_either_wrong", delta, share)


def vote_tuples(
    held: HeldOut,
    law: Law,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    tuples: Sequence[tuple[int, int]] = TUPLES,
) -> Certificate:
    """Certify the majority vote by the best of several kinds of tuples of prunings.

    Parameters
    ----------
    held, law, prior, delta, share
        As in `gibbs_kl`.
    tuples : sequence of (int, int)
        Numbers of draws and of wrong ones, written down before the rows were seen; they have equal
        parts of delta.

    Returns
    -------
    Certificate
        The one with the lowest bound.
    """
    return Weighed(held, law, prior).best_of_tuples(tuples, delta, share)


def vote_c_bound(
    held: HeldOut, law: Law, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the majority vote by mean and variance of the wrong mass; parameters as in `gibbs_kl`."""
    return Weighed(held, law, prior).certificate("vote_c_bound", delta, share)


def vote_disagreement(
    held: HeldOut, law: Law, prior: Prior, delta: float = 0.05, share: float = 1.0
) -> Certificate:
    """Certify the majority vote by how often prunings differ; two classes only.

    Parameters as in `gibbs_kl`.
    """
    return Weighed(held, law, prior).certificate("vote_disagreement", delta, share)


def tightest(*certificates: Certificate) -> Certificate:
    """The lowest of several bounds, which hold together.

    Parameters
    ----------
    *certificates : Certificate
        Certificates of the same delta, whose shares were fixed before the rows were seen.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If their shares sum to more than 1, or they have several deltas.
    """
    if len({certificate.delta for certificate in certificates}) != 1:
        raise ValueError("certificates must have the same delta")
    total = sum(certificate.share for certificate in certificates)
    if total > 1 + 1e-9:
        raise ValueError(f"shares of delta must sum to at most 1, got {total:g}")
    return min(certificates, key=lambda certificate: certificate.bound)


_VOTE = "this vote's error"
_TREE = "this tree's error"
_DRAWS = "the error of a tree drawn anew for each row"
_BEFORE = "tree, labels and prior were fixed without the weighing rows"
_TREE_BEFORE = "tree and prior were fixed without the weighing rows"

METHODS: dict[str, Method] = {
    "hold_out": Method(
        hold_out,
        bounds.occam,
        lambda risk: risk,
        "this classifier's error",
        "the classifier was fixed before the held-out rows were seen",
        "Clopper and Pearson, Biometrika 1934",
        "held-out rows",
        whole_errors=True,
    ),
    "hold_out_best": Method(
        hold_out_best,
        bounds.occam,
        lambda risk: risk,
        "this classifier's error",
        "all classifiers were fixed before the held-out rows were seen",
        "Clopper and Pearson, Biometrika 1934, with Bonferroni's inequality",
        "held-out rows",
        whole_errors=True,
    ),
    "hold_out_mean": Method(
        hold_out_mean,
        bounds.occam_mean,
        lambda risk: risk,
        "this classifier's error",
        "the classifier was fixed before the held-out rows were seen",
        "Hoeffding, JASA 1963",
        "held-out rows",
    ),
    "occam_vote": Method(
        occam_vote,
        bounds.occam,
        lambda risk: risk,
        _VOTE,
        _TREE_BEFORE,
        "Langford, JMLR 2005",
        whole_errors=True,
    ),
    "occam_mean": Method(
        occam_mean,
        bounds.occam_mean,
        lambda risk: risk,
        _VOTE,
        _TREE_BEFORE,
        "Hoeffding, JASA 1963, with the prior of Langford, JMLR 2005",
    ),
    "occam_answers": Method(
        occam_answers,
        bounds.occam,
        lambda risk: risk,
        "this vote's error, where it answers,",
        _TREE_BEFORE,
        "Langford, JMLR 2005, given which rows are answered",
        "weighing rows that it answers",
        whole_errors=True,
    ),
    "occam_pruning": Method(
        occam_pruning,
        bounds.occam,
        lambda risk: risk,
        _TREE,
        _BEFORE,
        "Langford, JMLR 2005",
        whole_errors=True,
    ),
    "single_draw": Method(
        single_draw,
        bounds.single_draw,
        lambda risk: risk,
        _TREE,
        f"{_BEFORE}; the tree was drawn once, and its draw counts like that of the rows",
        "Rivasplata, Kuzborskij, Szepesvari and Shawe-Taylor, NeurIPS 2020",
        "weighing rows and of the tree",
    ),
    "gibbs_kl": Method(
        gibbs_kl,
        bounds.pac_bayes_kl,
        lambda risk: risk,
        _DRAWS,
        _BEFORE,
        "Maurer, arXiv:cs/0411099, 2004",
    ),
    "gibbs_lambda": Method(
        gibbs_lambda,
        bounds.pac_bayes_lambda,
        lambda risk: risk,
        _DRAWS,
        _BEFORE,
        "Thiemann, Igel, Wintenberger and Seldin, ALT 2017",
    ),
    "vote_first_order": Method(
        vote_first_order,
        bounds.first_order,
        lambda risk: 2 * risk,
        _VOTE,
        _BEFORE,
        "Langford and Shawe-Taylor, NeurIPS 2002",
    ),
    "vote_first_order_range": Method(
        vote_first_order_range,
        bounds.first_order_range,
        lambda risk, right, wrong: (risk - right) / (wrong - right) if wrong > right else 1.0,
        _VOTE,
        _BEFORE,
        "Leblanc and Germain, arXiv:2510.25569, 2025",
    ),
    "vote_tandem": Method(
        vote_tandem,
        bounds.tandem,
        lambda both_wrong: 4 * both_wrong,
        _VOTE,
        _BEFORE,
        "Masegosa, Lorenzen, Igel and Seldin, NeurIPS 2020",
    ),
    "vote_either_wrong": Method(
        vote_either_wrong,
        bounds.either_wrong,
        lambda either: 4 / 3 * either,
        _VOTE,
        _BEFORE,
        "Markov's inequality for pairs, as in Lacasse et al., ECML 2010",
    ),
    "vote_tuples": Method(
        vote_tuples,
        bounds.tuples,
        lambda share, n_draws, n_wrong, _: share / bounds.at_least_wrong(0.5, n_draws, n_wrong),
        _VOTE,
        f"{_BEFORE}, and so was the list of tuples",
        "Lacasse, Laviolette, Marchand and Turgeon-Boutin, ECML 2010",
    ),
    "vote_c_bound": Method(
        vote_c_bound,
        bounds.c_bound,
        bounds.chebyshev_cantelli,
        _VOTE,
        _BEFORE,
        "Germain, Lacasse, Laviolette, Marchand and Roy, JMLR 2015",
    ),
    "vote_disagreement": Method(
        vote_disagreement,
        bounds.disagreement,
        lambda risk, differing, _: 4 * risk - 2 * differing,
        _VOTE,
        f"{_BEFORE}; there are two classes",
        "Masegosa, Lorenzen, Igel and Seldin, NeurIPS 2020",
    ),
}
