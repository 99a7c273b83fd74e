"""An exact bound on the mean cost of two kinds of errors with different costs, from their counts.

Each of n independent rows has an error of the first kind, one of the second, or none, so that the
counts are multinomial. Outcomes (pairs of counts) are ordered by a statistic that is fixed before
the rows are seen. The bound is the largest cost of error probabilities under which an outcome of at
most the observed rank has probability at least delta. The statistic is the cost plus a multiple of
its standard deviation, so that few expensive errors do not rank like many cheap ones.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betainccinv, gammaln, ndtri, xlog1py, xlogy

from certree.interface.arrays import Float64

# Number of intervals of p at the start, and number into which an interval is divided when refined.
_CELLS, _PARTS = 16, 4
# Precision of the bound: as a fraction of its distance from the observed cost, and of the costs.
_CLOSE, _NEGLIGIBLE = 0.01, 5e-5
# Precision of the bisection, and of sums of probabilities as a fraction of the level; both are added
# to the bound.
_STEP, _LEFT_OUT = 1e-5, 1e-7


@lru_cache(maxsize=65536)
def bound_weighted_errors(
    errors: tuple[int, int], n: int, weights: tuple[float, float], log_delta: float
) -> float:
    """Bound ``weights[0] p + weights[1] q`` for error probabilities p and q of two kinds.

    Parameters
    ----------
    errors : tuple of two ints
        Number of rows with an error of the first and of the second kind; no row has both.
    n : int
        Number of rows.
    weights : tuple of two floats
        Cost of an error of each kind, > 0.
    log_delta : float
        Log of the probability that the bound fails.

    Returns
    -------
    float
        The bound, at most about a hundredth of its distance from the observed cost above the exact
        one. The result is cached.

    References
    ----------
    Buehler, "Confidence intervals for the product of two binomial parameters", JASA 1957: the
    lowest bound that respects an order of the outcomes.
    """
    return _ConfidenceSet.from_counts(errors, n, weights, log_delta).compute_highest_cost(errors)


@dataclass(frozen=True, slots=True, eq=False)
class _ConfidenceSet:
    """The pairs of error probabilities (p, q) that are not rejected by the observed counts.

    An outcome is a number of errors of each kind; its rank is its cost plus a multiple of the
    standard deviation of the cost. A pair is kept if outcomes of at most the observed rank have
    probability at least `level`. If (p, q) is kept, so are all smaller pairs, as the rank rises
    with both counts. `from_counts` makes it.

    Parameters
    ----------
    n : int
        Number of rows.
    weights : tuple of two floats
        Cost of an error of each kind.
    level : float
        Smallest probability of the outcomes for a pair that is kept.
    most : ndarray of shape (I,)
        The outcomes of at most the observed rank: i errors of the first kind with 0 .. ``most[i]``
        of the second.
    """

    n: int
    weights: tuple[float, float]
    level: float
    most: Float64

    @classmethod
    def from_counts(
        cls, errors: tuple[int, int], n: int, weights: tuple[float, float], log_delta: float
    ) -> Self:
        """Collect the outcomes whose rank is at most that of the observed counts.

        An outcome is a pair of numbers of errors of both kinds among n rows; its rank is its cost
        plus a multiple of the standard deviation of the cost. errors: observed counts of both
        kinds; n: number of rows; weights: cost of each kind; log_delta: natural log of the level,
        the probability with which the set may lack the true pair. Return the `_ConfidenceSet` of
        these outcomes.
        """
        level = math.exp(log_delta)
        spread = max(-float(ndtri(level)), 0.0)
        one, other = weights

        def compute_rank(first: Float64, second: Float64) -> Float64:
            """Compute the rank statistic of outcomes with `first` and `second` errors, both arrays.

            It is the cost plus `spread` times an estimate of its standard deviation, in which each
            count is raised by 1; (a,) for arrays (a,). The enclosing method sets `one` and `other`,
            the costs of an error of each kind, and `spread`, the normal quantile of 1 - level, but
            at least 0.
            """
            open_to_chance = np.sqrt(one**2 * (first + 1) + other**2 * (second + 1))
            rank: Float64 = one * first + other * second + spread * open_to_chance
            return rank

        observed_rank = compute_rank(np.array([errors[0] + 0.0]), np.array([errors[1] + 0.0]))
        first = np.arange(n + 1.0)
        first = first[compute_rank(first, np.zeros(n + 1)) <= observed_rank]
        below, above = np.zeros(len(first)), n - first + 1
        while (above - below > 1).any():
            middle = np.floor((below + above) / 2)
            holds = compute_rank(first, middle) <= observed_rank
            below, above = np.where(holds, middle, below), np.where(holds, above, middle)
        return cls(n, weights, level, below)

    def compute_probability(self, p: Float64, q: Float64) -> Float64:
        """Compute the probability of the outcomes for pairs of error probabilities.

        The outcomes are those of the field `most`: pairs of numbers of errors of the two kinds
        among n rows. p, q: probabilities of the two kinds, both (a,). Return (a,): below the exact
        probability by at most 1e-7 of `level`, as rare outcomes are left out.
        """
        nats = math.log(2 / (_LEFT_OUT * self.level))
        lowest, highest = self.n * float(p.min()), self.n * float(p.max())
        first = math.floor(max(lowest - math.sqrt(2 * lowest * nats), 0.0))
        beyond = nats / 3 + math.sqrt((nats / 3) ** 2 + 2 * highest * nats)
        i = np.arange(first, min(math.ceil(highest + beyond) + 1, len(self.most)))
        rest = self.n - i
        ways = gammaln(self.n + 1) - gammaln(i + 1) - gammaln(rest + 1)
        mass = np.exp(ways + xlogy(i, p[:, None]) + xlog1py(rest, -p[:, None]))
        share = np.clip(q[:, None] / np.maximum(1 - p[:, None], _STEP), 0.0, 1.0)
        most = np.minimum(self.most[i], rest)
        below = betainc(np.maximum(rest - most, 1), most + 1, 1 - share)
        total: Float64 = (mass * np.where(most == rest, 1.0, below)).sum(axis=1)
        return total

    def is_likely(self, p: Float64, q: Float64) -> NDArray[np.bool_]:
        """Return for each pair of error probabilities whether this set contains it, bool (a,).

        It does if the outcomes of the field `most` have a probability of at least `level`. p, q:
        probabilities of the two kinds of errors, both (a,).
        """
        return self.compute_probability(p, q) >= self.level * (1 - 2 * _LEFT_OUT)

    def find_largest_q(self, p: Float64, low: Float64, high: Float64) -> tuple[Float64, Float64]:
        """Bisect for the largest q with which each p is kept.

        p: probabilities of the first kind, (a,); low, high: q that is kept and q that is not, (a,).
        A pair (p, q) is kept if it is in this set. Return (low, high), both (a,), at most 1e-5
        apart: q is kept at low, and not at high.
        """
        while (high - low > _STEP).any():
            middle = (low + high) / 2
            likely = self.is_likely(p, middle)
            low, high = np.where(likely, middle, low), np.where(likely, high, middle)
        return low, high

    def find_limit(self, k: float) -> float:
        """Return a limit on one error probability above which no pair is kept.

        A pair is kept if it is in this set. k: every outcome of the set has fewer than k errors of
        this kind. The other kind is taken to have probability 0, where the limit is largest.
        """
        if k > self.n:
            return 1.0
        return min(float(betainccinv(k, self.n - k + 1, self.level)) + _STEP, 1.0)

    def compute_highest_cost(self, errors: tuple[int, int]) -> float:
        """Compute an upper bound on the cost of all pairs that are kept, by refining intervals of p.

        The cost of a pair (p, q) is ``weights[0] p + weights[1] q``. errors: observed numbers of
        errors of the two kinds. Intervals are refined until the bound is at most about a hundredth
        of its distance from the observed cost too high.
        """
        one, other = self.weights
        observed = (one * errors[0] + other * errors[1]) / self.n
        ends = np.linspace(0, self.find_limit(len(self.most)), _CELLS + 1)
        left, right = ends[:-1], ends[1:]
        highest = np.minimum(1 - left, self.find_limit(self.most[0] + 1))
        low, high = self.find_largest_q(left, np.zeros(_CELLS), highest)
        reached = 0.0
        while True:
            reached = max(reached, float((one * left + other * low).max()))
            close = max(_CLOSE * (reached - observed), _NEGLIGIBLE * (one + other))
            again = one * right + other * high > reached + close
            if not again.any():
                return min(reached + close, max(one, other))
            parts = np.linspace(left[again], right[again], _PARTS + 1)
            below = np.append(low[1:], 0.0)[again]  # lower end of the next interval
            bracket = (np.tile(each, (_PARTS, 1)) for each in (below, high[again]))
            left, right, low, high = (each.T.ravel() for each in (parts[:-1], parts[1:], *bracket))
            low, high = self.find_largest_q(left, low, high)
