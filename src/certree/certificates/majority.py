"""Certificates of majority votes: of prunings drawn from a posterior, and of an ensemble's members."""

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
from certree.certificates.posteriors import Posterior, compute_posterior_vote, divergence
from certree.certificates.priors import Prior
from certree.interface.arrays import ArrayRecord, Float64, check_column, check_nonnegative, to_array
from certree.interface.signatures import validate_arguments
from certree.votes import Vote

# Default pairs (draws, wrong draws) of "vote_tuples", which share delta equally.
TUPLES = tuple((n_draws, n_wrong) for n_draws in range(1, 6) for n_wrong in range(1, n_draws + 1))


class PosteriorVote:
    """A posterior over prunings with its vote and its divergence from a prior, for several bounds.

    The constructor computes the divergence, and the vote if it is not passed. Attributes are
    `complexity`, the divergence (nats), and `held` and `ballot`, as below. A posterior is a
    distribution over the prunings of a tree (the tree with some nodes turned into leaves).

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set, whose rows may
        come in groups.
    posterior : NodeWeights or LabelledWeights
        The posterior, which may depend on the calibration rows: over prunings whose leaves predict
        the labels of the training set (NodeWeights), or over labelled prunings, which also draw the
        label of each leaf (LabelledWeights).
    prior : Prior
        A prior made without the calibration set.
    ballot : Vote or None
        Probability of each class under a drawn pruning, in each node; None: compute it.

    Raises
    ------
    ValueError
        If the prior is of another tree, or was made from other rows than the training set.
    """

    def __init__(
        self, held: HeldOut, posterior: Posterior, prior: Prior, ballot: Vote | None = None
    ) -> None:
        self.complexity = divergence(posterior, prior.check_source(held.tree, held.grown))
        self.held = held
        self.ballot = (
            compute_posterior_vote(held.tree, held.stats, posterior) if ballot is None else ballot
        )
        self._leaf_votes = LeafVotes.from_counts(held.tree, held.stats, self.ballot)

    def certificate(
        self,
        method: str,
        delta: float = 0.05,
        share: float = 1.0,
        tuples: Sequence[tuple[int, int]] = TUPLES,
    ) -> Certificate:
        """Certify a pruning drawn from this posterior, or its majority vote, by one method.

        A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        method : str
            Bound on the error of a pruning drawn for each row: "gibbs_kl" (PAC-Bayes-kl bound) or
            "gibbs_lambda" (in closed form, never lower). Or bound on the error of the majority
            vote: "vote_first_order" (twice that of a draw), "vote_first_order_range" (the same,
            refined by the smallest probability of a wrong draw), "vote_tandem" (by the risk that
            two draws are both wrong), "vote_either_wrong" (that at least one of two is),
            "vote_tuples" (the lowest bound by several numbers of draws), "vote_c_bound" (by mean
            and variance of the probability of a wrong draw) or "vote_disagreement" (by how often
            two draws differ; two classes only).
        delta, share : float
            Probability with which the certificate may fail, and the fraction of it that is used.
        tuples : sequence of (int, int)
            Pairs (draws, wrong draws) that "vote_tuples" tries; they share delta equally. The
            default is the 15 pairs with 1 <= wrong draws <= draws <= 5.

        Returns
        -------
        Certificate
            Upper bound on the error on new rows; for "vote_tuples" the lowest one of all pairs.
        """
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
        """Compute the expected fraction of rows that `n_wrong` or more of `n_draws` prunings get wrong.

        A pruning is the tree with some nodes turned into leaves. The rows are the calibration rows
        of `held`, the prunings are drawn independently from this posterior.
        """
        return self._leaf_votes.tuple_risk(n_draws, n_wrong)

    @cached_property
    def gibbs(self) -> float:
        """Expected fraction of the calibration rows that a pruning of this posterior gets wrong.

        The pruning is drawn anew for each row; the rows are those of `held`. A pruning is the tree
        with some nodes turned into leaves.
        """
        return self.tuples(1, 1)

    @cached_property
    def risk(self) -> float:
        """Fraction of the calibration rows that this posterior's majority vote gets wrong.

        The rows are those of `held`. The vote is the class with the largest probability in a leaf.
        """
        return self.held.compute_error(self.ballot.label)

    @property
    def one_wrong(self) -> float:
        """Expected fraction of the calibration rows that exactly one of two draws gets wrong.

        Both prunings are drawn independently from the posterior; the rows are those of `held`. A
        pruning is the tree with some nodes turned into leaves.
        """
        return self._leaf_votes.one_wrong()

    @property
    def differing(self) -> float:
        """Expected fraction of the calibration rows that two drawn prunings predict differently.

        Both prunings are drawn independently from the posterior; the rows are those of `held`. A
        pruning is the tree with some nodes turned into leaves.
        """
        return disagreement(self.held.tree, self.held.stats, self.ballot)

    @cached_property
    def least(self) -> WrongRange:
        """Smallest probability, over the leaves, that a drawn pruning is wrong.

        `WrongRange`: its field `right` is for rows that the majority vote predicts correctly,
        `wrong` for rows that it predicts wrongly. Leaves without rows count too. A pruning is the
        tree with some nodes turned into leaves.
        """
        return wrong_range(self.held.tree, self.ballot)


# The observed numbers that the inequality of each method takes.
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
    """Compute a PAC-Bayes bound on prunings drawn from a posterior, or on their majority vote.

    The bound holds for all posteriors at once, so that the calibration rows may choose the
    posterior. A posterior is a distribution over the prunings of a tree (the tree with some nodes
    turned into leaves).

    Parameters
    ----------
    held : HeldOut
        The tree with the class counts of its training set and its calibration set, whose rows may
        come in groups.
    posterior : NodeWeights or LabelledWeights
        The posterior, which may depend on the calibration rows: over prunings whose leaves predict
        the labels of the training set (NodeWeights), or over labelled prunings, which also draw the
        label of each leaf (LabelledWeights).
    prior : Prior
        A prior made without the calibration set.
    delta : float
        Probability with which the certificate may fail.
    share : float
        Fraction of delta that it uses.
    method : str
        Key of `METHODS`. For the classifier that draws a pruning for each row:

        * "gibbs_kl": PAC-Bayes-kl bound on its error;
        * "gibbs_lambda": PAC-Bayes-lambda bound, in closed form, never below "gibbs_kl".

        For the majority vote of the prunings' labels:

        * "vote_first_order": twice the bound on the error of a draw;
        * "vote_first_order_range": a refinement by the smallest wrong mass in any leaf;
        * "vote_tandem": by the risk that two draws are both wrong;
        * "vote_either_wrong": by the risk that at least one of two draws is wrong, which is the
          lower bound if prunings err together, as those of one tree do;
        * "vote_tuples": the lowest bound by several numbers of draws and of wrong ones;
        * "vote_c_bound": the C-bound, by mean and variance of the wrong mass;
        * "vote_disagreement": by how often two draws predict different classes; two classes only.
    tuples : sequence of (int, int)
        Pairs (draws, wrong draws) that "vote_tuples" tries, fixed before the calibration rows were
        seen; they share delta equally. The default is the 15 pairs with 1 <= wrong draws <= draws
        <= 5.

    Returns
    -------
    Certificate
        Upper bound on the error on new rows, of a drawn pruning or of the majority vote.

    Raises
    ------
    ValueError
        If the method is unknown, "vote_disagreement" gets more than two classes, or the prior is of
        another tree or was made from other rows than the training set.

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

# Rows in a block, so that tables of voters and rows stay small.
_BLOCK = 2**14
# Rounding error that sums of probabilities may have.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class PairErrors(ArrayRecord):
    """Joint errors of each pair of T voters on the rows that are out-of-bag for both.

    Voters are the members of an ensemble, such as the trees of a forest. A row is out-of-bag for a
    voter that was not fitted to it. A pair may consist of one voter twice. `sum_blocks` makes it.

    Parameters
    ----------
    rows : ndarray of float64, shape (T, T)
        Number of rows that are out-of-bag for both voters.
    first_wrong : ndarray of float64, shape (T, T)
        Sum over these rows of the probability that the first voter (row index) is wrong.
    both_wrong : ndarray of float64, shape (T, T)
        Sum over these rows of the probability that both are wrong.
    """

    rows: Float64
    first_wrong: Float64
    both_wrong: Float64

    @classmethod
    def sum_blocks(cls, rows: Float64, blocks: Iterable[tuple[Float64, Float64]]) -> PairErrors:
        """Sum the errors of all pairs of voters over blocks of rows.

        rows: number of rows that are out-of-bag for each pair, (T, T), as `count_shared_rows`
        returns it. blocks: for each block of n_block rows two arrays (T, n_block). The first holds
        the probability that each voter predicts each row wrongly, 0 for in-bag rows. The second is
        1 where the row is out-of-bag for the voter, else 0.
        """
        sums = (np.stack([wrong @ judged.T, wrong @ wrong.T]) for wrong, judged in blocks)
        return cls(rows, *reduce(np.add, sums))

    @property
    def n(self) -> int:
        """Smallest number of out-of-bag rows that any of the T voters has."""
        return int(self.rows.diagonal().min())

    @property
    def min_pair_rows(self) -> int:
        """Smallest number of rows that are out-of-bag for both voters, over all pairs of voters."""
        return int(self.rows.min())

    def compute_risk(self, weight: Float64) -> float:
        """Compute the mean out-of-bag error of a voter drawn with the probabilities `weight`.

        weight: (T,), with sum 1. Each voter is evaluated on all of its out-of-bag rows, and must
        have some: check `n` before.
        """
        return float(weight @ (self.first_wrong.diagonal() / self.rows.diagonal()))

    def compute_tandem_risk(self, weight: Float64) -> float:
        """Compute the out-of-bag probability that two voters are both wrong.

        The voters are drawn independently with the probabilities `weight`, (T,). The mean is over
        all pairs, also of a voter with itself. Each pair is evaluated on the rows that are
        out-of-bag for both, and must have such rows: check `min_pair_rows` before.
        """
        return float(weight @ (self.both_wrong / self.rows) @ weight)

    def compute_either_risk(self, weight: Float64) -> float:
        """Compute the out-of-bag probability that at least one of two voters is wrong.

        The voters are drawn independently with the probabilities `weight`, (T,). The mean is over
        all pairs, also of a voter with itself. Each pair is evaluated on the rows that are
        out-of-bag for both, and must have such rows: check `min_pair_rows` before.
        """
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
        """Certify the majority vote of the voters with given weights.

        Parameters
        ----------
        method : {"ensemble_first_order", "ensemble_tandem", "ensemble_either_wrong"}
            Bound by twice the error of a voter; by four times the probability that two voters are
            both wrong; or by 4/3 of the probability that at least one of two is wrong.
        weight : ndarray of shape (T,)
            Weights of the voters, with sum 1.
        complexity : float
            Divergence of the weights from the prior weights (nats).
        risk : float
            Error of the vote to show in the certificate.
        delta, share : float
            Probability with which the certificate may fail, and the fraction of it that is used.

        Returns
        -------
        Certificate
            Upper bound on the probability that the majority vote predicts a new row wrongly.

        Raises
        ------
        ValueError
            If a voter, or for the last two methods a pair of voters, has no out-of-bag row.
        """
        pairs = method in PAIR_METHODS
        n = self.min_pair_rows if pairs else self.n
        if n < 1:
            least = "pair of voters" if pairs else "voter"
            raise ValueError(
                f"judged must mark as out-of-bag (True) at least one row for every {least}, got a "
                f"{least} without such a row: use smaller samples or more rows"
            )
        observed = {
            "ensemble_first_order": self.compute_risk,
            "ensemble_tandem": self.compute_tandem_risk,
            "ensemble_either_wrong": self.compute_either_risk,
        }[method](weight)
        # Rounding errors may bring the sum above 1.
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
    """Certify the majority vote of an ensemble by the out-of-bag rows of its members.

    Each of T voters is fit on a sample of the rows, as in bagging and forests, and evaluated on the
    other rows. The samples must be drawn independently of what the rows contain. All weights of the
    voters are covered at once, so that the same rows may choose them.

    Parameters
    ----------
    wrong : array-like of shape (T, n)
        Whether each voter predicts each row wrongly; or, for randomised voters, the probability of
        that. Not read where `judged` is False.
    judged : array-like of bool, shape (T, n)
        Whether the row is out-of-bag for the voter: not in its sample.
    weight : array-like of shape (T,), or None
        Weights of the voters, >= 0 with sum 1; None: equal weights.
    delta : float
        Probability with which the certificate may fail.
    share : float
        Fraction of delta that it uses.
    method : {"ensemble_first_order", "ensemble_tandem", "ensemble_either_wrong"}
        Bound by twice the risk of a voter; by four times the risk that two voters are both wrong;
        or by 4/3 of the risk that at least one of two is wrong.
    complexity : float
        For randomised voters the mean divergence of their posteriors from their priors (nats),
        which is added to the divergence of the weights from equal weights; >= 0.
    risk : float or None
        Observed error to show in the certificate; None: the fraction of rows on which at least half
        of the weight of the row's out-of-bag voters is wrong.

    Returns
    -------
    Certificate
        Upper bound on the probability that the majority vote predicts a new row wrongly.

    Raises
    ------
    ValueError
        If shapes differ, numbers are out of range, or a voter (for pair methods: a pair of voters)
        has no out-of-bag row.

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
    parts = ((shares[:, part], out[:, part]) for part in iterate_blocks(out.shape[1]))
    pair_errors = PairErrors.sum_blocks(count_shared_rows(out), parts)
    if risk is None:
        risk = _compute_vote_error(shares, out, weights)
    nats = float(rel_entr(weights, 1 / len(weights)).sum()) + check_nonnegative(
        "complexity", complexity
    )
    return pair_errors.certificate(method, weights, max(nats, 0.0), float(risk), delta, share)


def iterate_blocks(n: int) -> Iterator[slice]:
    """Yield slices that divide n rows into blocks of at most 16,384 rows.

    Arrays with an entry for each voter and row of a block then stay small. With n = 0 nothing is
    yielded.
    """
    return (slice(first, first + _BLOCK) for first in range(0, n, _BLOCK))


def count_shared_rows(is_out_of_bag: NDArray[Any]) -> Float64:
    """Count the rows that are out-of-bag for each pair of voters.

    is_out_of_bag: whether each of n rows is out-of-bag for each of T voters, (T, n) bool. Return
    float64 array (T, T); on its diagonal are the numbers of out-of-bag rows of each voter.
    """
    parts = (
        is_out_of_bag[:, part].astype(np.float64) for part in iterate_blocks(is_out_of_bag.shape[1])
    )
    return sum(
        (part @ part.T for part in parts), np.zeros((len(is_out_of_bag), len(is_out_of_bag)))
    )


def _check_tables(judged: ArrayLike, wrong: ArrayLike) -> tuple[Float64, Float64]:
    """Check two tables of T voters and n rows, and return them as float64 arrays (T, n).

    judged: whether each row is out-of-bag for each voter, bool; wrong: probability that the voter
    predicts the row wrongly. Return first `judged` as 0 and 1, then `wrong` clipped to 0 .. 1, with
    0 where `judged` is False. Raises ValueError if shapes differ, or numbers are out of range.
    """
    out, shares = to_array("judged", judged), to_array("wrong", wrong)
    if out.ndim != 2 or 0 in out.shape or out.dtype != bool:
        raise ValueError(
            "judged must be a boolean array (voters, rows) that is not empty, got dtype "
            f"{out.dtype} and shape {out.shape}: pass whether each row is out-of-bag for each voter"
        )
    if shares.shape != out.shape or shares.dtype.kind not in "biuf":
        raise ValueError(
            f"wrong must hold numbers of shape {out.shape}, as judged, got {shares.shape} and dtype "
            f"{shares.dtype}"
        )
    read = np.where(out, shares, 0.0)
    if not ((read >= -_ROUNDING) & (read <= 1 + _ROUNDING)).all():
        raise ValueError(
            "wrong must lie in 0 .. 1 wherever judged is True, got "
            f"{read.min():g} .. {read.max():g}"
        )
    return out.astype(np.float64), np.clip(read, 0.0, 1.0)


def _check_weights(weight: ArrayLike | None, n_voters: int) -> Float64:
    """Return the weights of the voters, (n_voters,): equal ones if `weight` is None, else checked.

    Raises ValueError if they are not n_voters numbers >= 0 with sum 1.
    """
    if weight is None:
        return np.full(n_voters, 1 / n_voters)
    given = check_column("weight", weight, "float64", (n_voters,))
    if not ((given >= 0) & (given <= 1 + _ROUNDING)).all() or abs(given.sum() - 1) > _ROUNDING:
        raise ValueError(
            f"weight must hold {n_voters} numbers >= 0 that sum to 1, got {weight!r}: divide them by "
            "their sum"
        )
    return given


def _compute_vote_error(wrong: Float64, is_out_of_bag: Float64, weight: Float64) -> float:
    """Compute the fraction of rows on which at least half of the out-of-bag voters' weight is wrong.

    wrong: probability that each voter is wrong, (T, n), 0 for in-bag rows; is_out_of_bag: 1 for
    out-of-bag rows, (T, n); weight: weight of each voter, (T,). Rows without any out-of-bag voter
    of positive weight are left out; 0 if there are no others.
    """
    votes = weight @ is_out_of_bag
    known = votes > 0
    return float(np.mean((weight @ wrong)[known] >= votes[known] / 2)) if known.any() else 0.0
