"""A bound on the mean cost of errors of two kinds that cost differently, from how many there were.

Of n independent rows some have an error of the first kind, some of the second, the others none: their
numbers are multinomial. Outcomes are put in an order that was fixed before, and the bound is the
highest cost at which outcomes so low in it are no less likely than delta. The order adds to the cost
of an outcome what chance leaves open of it, so that few dear errors are not taken for many cheap ones.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betainccinv, gammaln, ndtri, xlog1py, xlogy

from certree.interface.arrays import Float64

# Cells of the first look, and parts of those that are looked at again.
_CELLS, _PARTS = 16, 4
# How near to the lowest bound one gets, in shares of its way from the observed cost, and of the costs.
_CLOSE, _NEGLIGIBLE = 0.01, 5e-5
# What bisection leaves open, and what sums of probabilities leave out in shares of the level; both are
# added.
_STEP, _LEFT_OUT = 1e-5, 1e-7


@lru_cache(maxsize=65536)
def bound_weighted_errors(
    errors: tuple[int, int], n: int, weights: tuple[float, float], log_delta: float
) -> float:
    """Bound ``weights[0] p + weights[1] q`` for errors of probabilities p and q, by their numbers.

    Parameters
    ----------
    errors : tuple of int
        Rows with an error of either kind; no row has both.
    n : int
        Rows.
    weights : tuple of float
        What errors of either kind cost, > 0.
    log_delta : float
        Log of the probability that the bound is too low.

    Returns
    -------
    float
        From above, to a hundredth of its way from the observed cost.

    References
    ----------
    Buehler, "Confidence intervals for the product of two binomial parameters", JASA 1957: the lowest
    bound that keeps an order of the outcomes.
    """
    return _ConfidenceSet.from_counts(errors, n, weights, log_delta).compute_highest_cost(errors)


@dataclass(frozen=True, slots=True, eq=False)
class _ConfidenceSet:
    """Which probabilities make outcomes no less likely than a level that are so low in the order.

    With (p, q) all that are at most p and q are likely enough, too, as the order rises with both
    numbers of errors. So where q may be at most g(p), no p in a cell from a to b has a q above g(a).

    Parameters
    ----------
    n : int
        Rows.
    weights : tuple of float
        What errors cost.
    level : float
        The least probability.
    most : ndarray of shape (I,)
        The outcomes: with 0, 1, ... errors of the first kind so many of the second at most.
    """

    n: int
    weights: tuple[float, float]
    level: float
    most: Float64

    @classmethod
    def from_counts(
        cls, errors: tuple[int, int], n: int, weights: tuple[float, float], log_delta: float
    ) -> Self:
        level = math.exp(log_delta)
        spread = max(-float(ndtri(level)), 0.0)
        one, other = weights

        def compute_rank(first: Float64, second: Float64) -> Float64:
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
        """Probability of the outcomes, less what is left out, for pairs of probabilities."""
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
        return self.compute_probability(p, q) >= self.level * (1 - 2 * _LEFT_OUT)

    def find_largest_q(self, p: Float64, low: Float64, high: Float64) -> tuple[Float64, Float64]:
        """Bring the two ends of an interval with the highest q of each p close to each other."""
        while (high - low > _STEP).any():
            middle = (low + high) / 2
            likely = self.is_likely(p, middle)
            low, high = np.where(likely, middle, low), np.where(likely, high, middle)
        return low, high

    def find_limit(self, k: float) -> float:
        """What makes fewer than k errors of one kind likely enough, without any of the other."""
        if k > self.n:
            return 1.0
        return min(float(betainccinv(k, self.n - k + 1, self.level)) + _STEP, 1.0)

    def compute_highest_cost(self, errors: tuple[int, int]) -> float:
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
            below = np.append(low[1:], 0.0)[again]  # of the next cell that is left
            bracket = (np.tile(each, (_PARTS, 1)) for each in (below, high[again]))
            left, right, low, high = (each.T.ravel() for each in (parts[:-1], parts[1:], *bracket))
            low, high = self.find_largest_q(left, low, high)
