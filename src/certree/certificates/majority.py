"""Certificates of a law over prunings, and of its majority vote, for all laws at once."""

from collections.abc import Callable, Sequence
from functools import cached_property

from certree.certificates.certificate import DRAWS, METHODS, Certificate, certificate_of
from certree.certificates.labelled_prunings import Law, ballot_of, divergence
from certree.certificates.moments import Judged, WrongRange, disagreement, wrong_range
from certree.certificates.priors import Prior
from certree.certificates.weighing import HeldOut
from certree.signatures import checked
from certree.votes import Vote

# At least so many of so many draws wrong, as "vote_tuples" tries them with equal shares of delta.
TUPLES = tuple((n_draws, n_wrong) for n_draws in range(1, 6) for n_wrong in range(1, n_draws + 1))


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
    ballot : Vote or None
        The majority vote of the law, if it has been cast already.

    Raises
    ------
    ValueError
        If the prior has seen other rows than the growing ones.
    """

    def __init__(self, held: HeldOut, law: Law, prior: Prior, ballot: Vote | None = None) -> None:
        self.complexity = divergence(law, prior.of(held.tree, held.grown))
        self.held = held
        self.ballot = ballot_of(held.tree, held.stats, law) if ballot is None else ballot
        self._judged = Judged.of(held.tree, held.stats, self.ballot)

    def certificate(
        self,
        method: str,
        delta: float = 0.05,
        share: float = 1.0,
        tuples: Sequence[tuple[int, int]] = TUPLES,
    ) -> Certificate:
        """Certify the law, or its majority vote; see `certify_law`."""
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
            certificate_of(method, observed, risk, held.n, nats, delta, share, held.grouped)
            for observed in every
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
        return self.held.error_of(self.ballot.label)

    @property
    def one_wrong(self) -> float:
        """Share of the rows that one of two draws gets wrong."""
        return self._judged.one_wrong()

    @property
    def differing(self) -> float:
        """Share of the rows that two draws label differently."""
        return disagreement(self.held.tree, self.held.stats, self.ballot)

    @cached_property
    def least(self) -> WrongRange:
        """How little is voted against what wins, and against what loses."""
        return wrong_range(self.held.tree, self.ballot)


# What each bound takes besides the rows, the complexity and delta.
_OBSERVED: dict[str, Callable[[Weighed], tuple[float, ...]]] = {
    "gibbs_kl": lambda law: (law.gibbs,),
    "gibbs_lambda": lambda law: (law.gibbs,),
    "vote_first_order": lambda law: (law.gibbs,),
    "vote_first_order_range": lambda law: (law.gibbs, law.least.right, law.least.wrong),
    "vote_tandem": lambda law: (law.tuples(2, 2),),
    "vote_either_wrong": lambda law: (law.tuples(2, 1),),
    "vote_c_bound": lambda law: (law.gibbs, law.one_wrong),
    "vote_disagreement": lambda law: (law.gibbs, law.differing, law.held.stats.n_classes),
}


@checked
def certify_law(
    held: HeldOut,
    law: Law,
    prior: Prior,
    delta: float = 0.05,
    share: float = 1.0,
    *,
    method: str = "gibbs_kl",
    tuples: Sequence[tuple[int, int]] = TUPLES,
) -> Certificate:
    """Certify random prunings of a law, or their majority vote: a PAC-Bayes generalisation bound.

    All laws are covered at once, so the weighing rows may choose one without overfitting the bound.

    Parameters
    ----------
    held : HeldOut
        The tree and the weighing rows, which may come in groups.
    law : NodeWeights or LabelledWeights
        The law over prunings, whatever chose it.
    prior : Prior
        A prior made without the weighing rows.
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
    >>> from certree.certificates import branching_prior, certify_law, gibbs_posterior, held_out
    >>> X = np.arange(400.0)[:, None] % 100
    >>> y = (X[:, 0] > 40).astype(int)
    >>> grow, weigh = np.arange(100), np.arange(100, 400)
    >>> held = held_out(grow_cart(X[grow], y[grow]), X, y, 2, grow=grow, weigh=weigh)
    >>> prior = branching_prior(held.tree, 2)
    >>> law = gibbs_posterior(held.tree, held.stats, prior.laws[0], lambda_error=0.5)
    >>> round(certify_law(held, law, prior).bound, 3)
    0.022
    >>> round(certify_law(held, law, prior, method="vote_tandem").bound, 3)
    0.099
    """
    return Weighed(held, law, prior).certificate(method, delta, share, tuples)
