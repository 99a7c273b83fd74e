"""Certificates of a law over prunings, and of its majority vote."""

from collections.abc import Callable, Sequence
from functools import cached_property

from certree.certificates import moments
from certree.certificates.certificate import _DRAWS, METHODS, Certificate, _certificate
from certree.certificates.labelled_prunings import Law, ballot_of, divergence
from certree.certificates.occam import _expect_prior, wrong_share
from certree.certificates.priors import Prior
from certree.certificates.weighing import HeldOut

# At least so many of so many draws wrong, as tried by `vote_tuples` with equal shares of delta.
TUPLES = tuple((n_draws, n_wrong) for n_draws in range(1, 6) for n_wrong in range(1, n_draws + 1))


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
