"""Certificates of majority votes, whatever chose them: of a posterior, and of an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr

from certree.certificates.calibration_set import HeldOut
from certree.certificates.certificate import Certificate, compute_certificate, get_sampling_facts
from certree.certificates.inequalities.posterior_moments import (
    LeafVotes,
    WrongRange,
    disagreement,
    wrong_range,
)
from certree.certificates.methods import DRAWS, METHODS
from certree.certificates.posteriors import Posterior, cast_posterior_vote, divergence
from certree.certificates.priors import Prior
from certree.interface.arrays import ArrayRecord, Float64, check_column, check_nonnegative, to_array
from certree.interface.signatures import validate_arguments
from certree.votes import Vote

# At least so many of so many draws wrong, as "vote_tuples" tries them with equal shares of delta.
TUPLES = tuple((n_draws, n_wrong) for n_draws in range(1, 6) for n_wrong in range(1, n_draws + 1))


class PosteriorVote:
    """A posterior over prunings, what it votes and how far it is from its prior, for several bounds.

    Parameters
    ----------
    held : HeldOut
        The tree and the calibration samples, which may come in groups.
    posterior : NodeWeights or LabelledWeights
        The posterior over prunings, whatever chose it.
    prior : Prior
        A prior made without the calibration samples.
    ballot : Vote or None
        The majority vote of the posterior, if it has been cast already.

    Raises
    ------
    ValueError
        If the prior has seen other rows than the growing ones.
    """

    def __init__(
        self, held: HeldOut, posterior: Posterior, prior: Prior, ballot: Vote | None = None
    ) -> None:
        self.complexity = divergence(posterior, prior.check_source(held.tree, held.grown))
        self.held = held
        self.ballot = (
            cast_posterior_vote(held.tree, held.stats, posterior) if ballot is None else ballot
        )
        self._leaf_votes = LeafVotes.from_counts(held.tree, held.stats, self.ballot)

    def certificate(
        self,
        method: str,
        delta: float = 0.05,
        share: float = 1.0,
        tuples: Sequence[tuple[int, int]] = TUPLES,
    ) -> Certificate:
        """Certify the posterior, or its majority vote; see `certify_posterior`."""
        every: list[tuple[float, ...]]
        if method == "vote_tuples":
            every = [(self.tuples(*kind), *kind, len(tuples)) for kind in tuples]
        elif method in _OBSERVED:
            every = [_OBSERVED[method](self)]
        else:
            known = ", ".join([*_OBSERVED, "vote_tuples"])
            raise ValueError(f"method must be one of {known}, got {method!r}")
        held, nats = self.held, self.complexity
        risk = self.gibbs if METHODS[method].subject == DRAWS else self.risk
        certificates = [
            compute_certificate(
                method, observed, held.n, nats, delta, share, risk=risk, **get_sampling_facts(held)
            )
            for observed in every
        ]
        return min(certificates, key=lambda certificate: certificate.bound)

    def tuples(self, n_draws: int, n_wrong: int) -> float:
        """Share of the rows that so many of so many draws get wrong."""
        return self._leaf_votes.tuple_risk(n_draws, n_wrong)

    @cached_property
    def gibbs(self) -> float:
        """Share of the rows that a draw gets wrong."""
        return self.tuples(1, 1)

    @cached_property
    def risk(self) -> float:
        """Share of the rows that the majority vote gets wrong."""
        return self.held.compute_error(self.ballot.label)

    @property
    def one_wrong(self) -> float:
        """Share of the rows that one of two draws gets wrong."""
        return self._leaf_votes.one_wrong()

    @property
    def differing(self) -> float:
        """Share of the rows that two draws label differently."""
        return disagreement(self.held.tree, self.held.stats, self.ballot)

    @cached_property
    def least(self) -> WrongRange:
        """How little is voted against what wins, and against what loses."""
        return wrong_range(self.held.tree, self.ballot)


# What each bound takes besides the rows, the complexity and delta.
_OBSERVED: dict[str, Callable[[PosteriorVote], tuple[float, ...]]] = {
    "gibbs_kl": lambda posterior: (posterior.gibbs,),
    "gibbs_lambda": lambda posterior: (posterior.gibbs,),
    "vote_first_order": lambda posterior: (posterior.gibbs,),
    "vote_first_order_range": lambda posterior: (
        posterior.gibbs,
        posterior.least.right,
        posterior.least.wrong,
    ),
    "vote_tandem": lambda posterior: (posterior.tuples(2, 2),),
    "vote_either_wrong": lambda posterior: (posterior.tuples(2, 1),),
    "vote_c_bound": lambda posterior: (posterior.gibbs, posterior.one_wrong),
    "vote_disagreement": lambda posterior: (
        posterior.gibbs,
        posterior.differing,
        posterior.held.stats.n_classes,
    ),
}


@validate_arguments
def certify_posterior(
    held: HeldOut,
    posterior: Posterior,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    method: str = "gibbs_kl",
    tuples: Sequence[tuple[int, int]] = TUPLES,
) -> Certificate:
    """Certify random prunings of a posterior, or their majority vote: a PAC-Bayes generalisation bound.

    All are covered at once, so the calibration samples may choose one without overfitting the bound.

    Parameters
    ----------
    held : HeldOut
        The tree and the calibration samples, which may come in groups.
    posterior : NodeWeights or LabelledWeights
        The posterior over prunings, whatever chose it.
    prior : Prior
        A prior made without the calibration samples.
    delta : float
        Probability with which the promise may fail.
    share : float
        Share of delta that is used up here.
    method : str
        Row of `METHODS`. Of the classifier that draws a pruning anew for each row:

        * "gibbs_kl": its errors;
        * "gibbs_lambda": the same in closed form, never below "gibbs_kl".

        Of the majority vote of the prunings' labels:

        * "vote_first_order": twice the errors of a draw;
        * "vote_first_order_range": these, and how sure the vote is in its least sure cell;
        * "vote_tandem": how often two draws are both wrong;
        * "vote_either_wrong": how often one of two draws is wrong, which is lower if prunings err
          together, as those of one tree do;
        * "vote_tuples": the best of several kinds of tuples of draws;
        * "vote_c_bound": mean and variance of the wrong mass;
        * "vote_disagreement": how often two draws differ; two classes only.
    tuples : sequence of (int, int)
        Numbers of draws and of wrong ones that "vote_tuples" tries, written down before the rows
        were seen; they have equal parts of delta.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If the method is unknown, takes two classes and there are more, or the prior has seen other
        rows than the growing ones.

    Examples
    --------
    >>> import numpy as np
    >>> from certree import grow_cart
    >>> from certree.certificates import branching_prior, certify_posterior, gibbs_posterior, held_out
    >>> X = np.arange(400.0)[:, None] % 100
    >>> y = (X[:, 0] > 40).astype(int)
    >>> grow, weigh = np.arange(100), np.arange(100, 400)
    >>> held = held_out(grow_cart(X[grow], y[grow]), X, y, 2, grow=grow, weigh=weigh)
    >>> prior = branching_prior(held.tree, 2)
    >>> posterior = gibbs_posterior(held.tree, held.stats, prior.distributions[0], lambda_error=0.5)
    >>> round(certify_posterior(held, posterior, prior).bound, 3)
    0.022
    >>> round(certify_posterior(held, posterior, prior, method="vote_tandem").bound, 3)
    0.099
    """
    return PosteriorVote(held, posterior, prior).certificate(method, delta, share, tuples)


PAIR_METHODS = ("ensemble_tandem", "ensemble_either_wrong")
ENSEMBLE_METHODS = ("ensemble_first_order", *PAIR_METHODS)

# Rows that are judged at a time, so that tables of voters and rows stay small.
_BLOCK = 2**14
# Of sums of probabilities.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps(ArrayRecord):
    """Sums over the rows that each pair of T voters is judged by; a voter with itself is a pair, too.

    Parameters
    ----------
    rows : ndarray of float64, shape (T, T)
        Number of rows out of both samples.
    first_wrong : ndarray of float64, shape (T, T)
        Sum over them of the probability that the first voter is wrong.
    both_wrong : ndarray of float64, shape (T, T)
        Sum of the probability that both are.
    """

    rows: Float64
    first_wrong: Float64
    both_wrong: Float64

    @classmethod
    def sum_blocks(cls, rows: Float64, parts: Iterable[tuple[Float64, Float64]]) -> Overlaps:
        """Sum over parts of the rows, each by tables (T, n) of who is wrong and who is judged.

        Nobody may be wrong where he is not judged; `rows` are those of `count_shared_rows`.
        """
        sums = (np.stack([wrong @ judged.T, wrong @ wrong.T]) for wrong, judged in parts)
        return cls(rows, *reduce(np.add, sums))

    @property
    def n(self) -> int:
        """Rows that every voter is judged by, at least."""
        return int(self.rows.diagonal().min())

    @property
    def min_pair_rows(self) -> int:
        """Rows that every pair is judged by, at least."""
        return int(self.rows.min())

    def compute_risk(self, weight: Float64) -> float:
        """Risk of a voter that is drawn with these weights."""
        return float(weight @ (self.first_wrong.diagonal() / self.rows.diagonal()))

    def compute_tandem_risk(self, weight: Float64) -> float:
        """Risk that two voters, drawn each with these weights, are both wrong."""
        return float(weight @ (self.both_wrong / self.rows) @ weight)

    def compute_either_risk(self, weight: Float64) -> float:
        """Risk that one of two voters is wrong, of which the rows that judge them both tell."""
        return float(
            2 * weight @ (self.first_wrong / self.rows) @ weight
        ) - self.compute_tandem_risk(weight)

    def certificate(
        self,
        method: str,
        weight: Float64,
        complexity: float,
        risk: float,
        delta: float,
        share: float,
    ) -> Certificate:
        """Certify the vote with these weights; see `certify_ensemble`."""
        pairs = method in PAIR_METHODS
        n = self.min_pair_rows if pairs else self.n
        if n < 1:
            least = "pair of voters" if pairs else "voter"
            raise ValueError(f"every {least} must be judged by at least one row")
        observed = {
            "ensemble_first_order": self.compute_risk,
            "ensemble_tandem": self.compute_tandem_risk,
            "ensemble_either_wrong": self.compute_either_risk,
        }[method](weight)
        # Sums of shares may be above 1 by their rounding.
        share_wrong = min(max(observed, 0.0), 1.0)
        return compute_certificate(method, (share_wrong,), n, complexity, delta, share, risk=risk)


@validate_arguments
def certify_ensemble(
    wrong: ArrayLike,
    judged: ArrayLike,
    weight: ArrayLike | None = None,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    method: str = "ensemble_tandem",
    complexity: float = 0.0,
    risk: float | None = None,
) -> Certificate:
    """Certify the majority vote of an ensemble by the rows that its members did not learn from.

    Each of T voters is fixed by a sample of the rows, as those of bagging and of forests are, and
    judged by the others; the samples were drawn whatever the rows hold. All weights of the voters are
    covered at once, so that the same rows may choose them.

    Parameters
    ----------
    wrong : array-like of shape (T, n)
        Whether each voter, by its label, gets each row wrong; or the probability of it, 0 .. 1, for
        voters that are drawn themselves. Not read where `judged` is False.
    judged : array-like of bool, shape (T, n)
        Whether the row is out of the voter's sample.
    weight : array-like of shape (T,), or None
        Weights of the voters, which sum to 1, whatever chose them; None: all alike.
    delta : float
        Probability with which the promise may fail.
    share : float
        Share of delta that is used up here.
    method : {"ensemble_first_order", "ensemble_tandem", "ensemble_either_wrong"}
        Twice the risk of a voter; four times the risk that two are both wrong; 4/3 of the risk that
        one of two is.
    complexity : float
        What is added to the divergence of the weights from equal ones (nats): the mean divergence of
        the posteriors from their priors, for voters that are drawn.
    risk : float or None
        Error of the vote of those voters that a row judges, for the certificate to show; None: the
        share of the rows on which half of these votes or more are wrong.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If shapes differ, numbers are out of range, or a voter, or pair of voters, is judged by no row.

    References
    ----------
    Lorenzen, Igel and Seldin, "On PAC-Bayesian bounds for random forests", Machine Learning 2019;
    Masegosa, Lorenzen, Igel and Seldin, "Second order PAC-Bayesian bounds for the weighted majority
    vote", NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from certree.certificates import certify_ensemble
    >>> X, y = load_digits(return_X_y=True)
    >>> model = BaggingClassifier(n_estimators=50, max_samples=0.5, random_state=0).fit(X, y)
    >>> wrong = np.stack([one.predict(X) != y for one in model.estimators_])
    >>> judged = np.ones(wrong.shape, dtype=bool)
    >>> for row, sample in zip(judged, model.estimators_samples_):
    ...     row[sample] = False
    >>> round(certify_ensemble(wrong, judged, method="ensemble_first_order").bound, 3)
    0.472
    """
    if method not in ENSEMBLE_METHODS:
        raise ValueError(f"method must be one of {', '.join(ENSEMBLE_METHODS)}, got {method!r}")
    out, shares = _check_tables(judged, wrong)
    weights = _check_weights(weight, len(out))
    parts = ((shares[:, part], out[:, part]) for part in blocks(out.shape[1]))
    overlaps = Overlaps.sum_blocks(count_shared_rows(out), parts)
    if risk is None:
        risk = _compute_vote_error(shares, out, weights)
    nats = float(rel_entr(weights, 1 / len(weights)).sum()) + check_nonnegative(
        "complexity", complexity
    )
    return overlaps.certificate(method, weights, max(nats, 0.0), float(risk), delta, share)


def blocks(n: int) -> Iterator[slice]:
    """Parts of n rows that are judged at a time."""
    return (slice(first, first + _BLOCK) for first in range(0, n, _BLOCK))


def count_shared_rows(judged: NDArray[Any]) -> Float64:
    """Number of rows that each pair of voters is judged by, (T, T), by a table (T, n)."""
    parts = (judged[:, part].astype(np.float64) for part in blocks(judged.shape[1]))
    return sum((part @ part.T for part in parts), np.zeros((len(judged), len(judged))))


def _check_tables(judged: ArrayLike, wrong: ArrayLike) -> tuple[Float64, Float64]:
    out, shares = to_array("judged", judged), to_array("wrong", wrong)
    if out.ndim != 2 or 0 in out.shape or out.dtype != bool:
        raise ValueError(
            f"judged must hold a row of booleans for each voter, got dtype {out.dtype} and shape "
            f"{out.shape}"
        )
    if shares.shape != out.shape or shares.dtype.kind not in "biuf":
        raise ValueError(f"wrong must hold numbers of shape {out.shape}, got {shares.shape}")
    read = np.where(out, shares, 0.0)
    if not ((read >= -_ROUNDING) & (read <= 1 + _ROUNDING)).all():
        raise ValueError("wrong must lie in 0 .. 1 wherever a voter is judged")
    return out.astype(np.float64), np.clip(read, 0.0, 1.0)


def _check_weights(weight: ArrayLike | None, n_voters: int) -> Float64:
    if weight is None:
        return np.full(n_voters, 1 / n_voters)
    given = check_column("weight", weight, "float64", (n_voters,))
    if not ((given >= 0) & (given <= 1 + _ROUNDING)).all() or abs(given.sum() - 1) > _ROUNDING:
        raise ValueError(f"weight must hold {n_voters} numbers >= 0 that sum to 1, got {weight!r}")
    return given


def _compute_vote_error(wrong: Float64, judged: Float64, weight: Float64) -> float:
    """Share of the rows, of those that judge a voter with weight, on which half of these are wrong."""
    votes = weight @ judged
    known = votes > 0
    return float(np.mean((weight @ wrong)[known] >= votes[known] / 2)) if known.any() else 0.0
