"""A bound on the mean cost of two kinds of errors with different costs, from their counts.

Each of n independent rows has an error of the first kind, one of the second, or none, so that the
counts are multinomial. Outcomes (pairs of counts) are ordered by a statistic that is fixed before
the rows are seen. The bound is the largest cost of error probabilities, within given limits, under
which an outcome of at most the observed rank has probability at least delta. The statistic is the
cost plus a multiple of its standard deviation, so that few expensive errors do not rank like many
cheap ones.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, ndtri

from certree.interface.arrays import Float64

# Number of intervals of p at the start, and number into which an interval is divided when refined.
_CELLS, _PARTS = 16, 4
# Precision of the bound and of the bisection, as fractions of the bound's distance from the observed
# cost. Both are added to the bound.
_CLOSE, _STEP = 0.01, 0.002
# Precision of sums of probabilities, as a fraction of the level; it makes the bound larger.
_LEFT_OUT = 1e-7
# Numbers of errors of the first kind are taken together in blocks of a standard deviation divided by
# this number, as if the errors of the second kind were those of the block's most likely row.
_BLOCKS = 20.0
# More errors of the second kind than any table has rows.
_MANY = 1e15


@lru_cache(maxsize=65536)
def bound_weighted_errors(
    errors: tuple[int, int],
    n: int,
    weights: tuple[float, float],
    log_delta: float,
    limits: tuple[float, float],
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
        Log of the probability that the bound fails, if p and q are within the limits.
    limits : tuple of two floats
        Upper limits of p and of q; the closer they are, the faster is the computation.

    Returns
    -------
    float
        The bound. It exceeds the exact one by at most about 2 % of the distance between the bound
        and the observed cost. The result is cached.

    References
    ----------
    Buehler, "Confidence intervals for the product of two binomial parameters", JASA 1957: the
    lowest bound that respects an order of the outcomes.
    """
    if weights[0] < weights[1]:
        errors, weights, limits = errors[::-1], weights[::-1], limits[::-1]
    return _ConfidenceSet.from_counts(errors, n, weights, log_delta).compute_highest_cost(limits)


@dataclass(frozen=True, slots=True, eq=False)
class _ConfidenceSet:
    """The pairs of error probabilities (p, q) that are not rejected by the observed counts.

    An outcome is a number of errors of each kind; its rank is its cost plus a multiple of the
    standard deviation of the cost. A pair is kept if outcomes of at most the observed rank have
    probability at least `level`. If (p, q) is kept, so are all smaller pairs, as the rank rises
    with both counts. So is (p - x, q + x), as the rank rises if a cheap error becomes an expensive
    one. `from_counts` makes it.

    Parameters
    ----------
    n : int
        Number of rows.
    weights : tuple of two floats
        Cost of an error of each kind; the first is at least the second.
    level : float
        Smallest probability of the outcomes for a pair that is kept.
    spread : float
        The multiple of the standard deviation in the rank.
    rank : float
        The observed rank.
    observed : float
        The observed mean cost.
    """

    n: int
    weights: tuple[float, float]
    level: float
    spread: float
    rank: float
    observed: float

    @classmethod
    def from_counts(
        cls, errors: tuple[int, int], n: int, weights: tuple[float, float], log_delta: float
    ) -> Self:
        """Return the set of pairs that observed counts of both kinds of errors do not reject.

        The rank of i and j errors at costs c and d is ``c i + d j + z sqrt(c^2 (i + 1) + d^2 (j +
        1))``, with the normal quantile z of 1 - level, at least 0. errors: observed counts of both
        kinds; n: number of rows; weights: cost of each kind, the higher one first; log_delta:
        natural log of the level, the probability with which the set may lack the true pair.
        """
        level = math.exp(log_delta)
        spread = max(-float(ndtri(level)), 0.0)
        (one, other), (i, j) = weights, errors
        cost = one * i + other * j
        rank = cost + spread * math.sqrt(one**2 * (i + 1) + other**2 * (j + 1))
        return cls(n, weights, level, spread, rank, cost / n)

    def find_most(self, i: Float64) -> Float64:
        """Return the most errors of the second kind with which outcomes have at most the observed rank.

        An outcome is a pair of numbers of errors of the two kinds; its rank is its cost plus a
        multiple of the standard deviation of the cost. i: numbers of errors of the first kind,
        (a,). Return (a,): negative where there is none. The square root in the rank solves a
        quadratic equation. A part of 1e-13 of the cost is added before the division by the lower
        cost, so that rounding never makes a number smaller, also if the costs are far apart.
        """
        one, other = self.weights
        rest, constant = self.rank - one * i, one**2 * (i + 1) + other**2
        z = self.spread * other
        root = np.sqrt(np.maximum(z**2 + 4 * (constant + rest * other), 0.0))
        left = rest - self.spread * np.maximum((root - z) / 2, 0.0)
        added = 1e-13 * (self.rank + one * i) + 1e-9 * other
        return np.asarray(np.floor(np.clip(left + added, -other, _MANY * other) / other))

    def compute_probability(self, p: Float64, q: Float64) -> Float64:
        """Compute the probability of outcomes of at most the observed rank for pairs (p, q).

        An outcome is a pair of numbers of errors of the two kinds; its rank is its cost plus a
        multiple of the standard deviation of the cost.

        p, q: probabilities of the two kinds of errors, both (a,). Return (a,), an approximation:
        rare outcomes are left out, which lowers it by at most 1e-7 of `level`; and numbers of
        errors of the first kind are grouped in blocks, of which the smallest number decides how
        many errors of the second kind are possible, which raises it.
        """
        nats = math.log(2 / (_LEFT_OUT * self.level))
        lowest, highest = self.n * float(p.min()), self.n * float(p.max())
        first = math.floor(max(lowest - math.sqrt(2 * lowest * nats), 0.0))
        beyond = nats / 3 + math.sqrt((nats / 3) ** 2 + 2 * highest * nats)
        i = np.arange(first, min(math.ceil(highest + beyond), self.n) + 1.0)
        ways = gammaln(self.n + 1) - gammaln(i + 1) - gammaln(self.n - i + 1)
        p = np.clip(p, 1e-300, 1 - 1e-16)[:, None]
        mass = np.exp(ways + i * np.log(p) + (self.n - i) * np.log1p(-p))
        starts = np.arange(0, len(i), max(int(math.sqrt(highest) / _BLOCKS), 1))
        last = np.append(i[starts[1:] - 1], i[-1])
        rest, most = self.n - last, self.find_most(i[starts])
        share = np.clip(q[:, None] / (1 - p), 0.0, 1.0)
        tail = betainc(np.maximum(rest - most, 1), np.maximum(most, 0) + 1, 1 - share)
        tail = np.where(most >= rest, 1.0, np.where(most < 0, 0.0, tail))
        total: Float64 = (np.add.reduceat(mass, starts, axis=1) * tail).sum(axis=1)
        return total

    def is_likely(self, p: Float64, q: Float64) -> NDArray[np.bool_]:
        """Return for each pair of error probabilities whether this set contains it, bool (a,).

        The set has the pairs that the observed numbers of errors do not reject. p, q: probabilities
        of the two kinds of errors, both (a,).
        """
        return self.compute_probability(p, q) >= self.level * (1 - 2 * _LEFT_OUT)

    def find_largest_q(self, p: Float64, high: Float64, step: float) -> tuple[Float64, Float64]:
        """Bisect for the largest q such that (p, q) is in this set and costs at least as observed.

        p, q: probabilities of an error of the first and of the second kind; p and high, the upper
        limits of q, are arrays (a,). step: precision. Return (low, high), both (a,): (p, low) is in
        the set, and no (p, q) with q above high is. If all pairs in the set with this p cost less
        than observed, low is -inf; if there are none, high is -inf, too.
        """
        low = np.clip((self.observed - self.weights[0] * p) / self.weights[1], 0.0, high)
        is_kept = self.is_likely(p, low)
        high = np.where(is_kept, high, low)
        while (high - low > step).any():
            middle = (low + high) / 2
            likely = self.is_likely(p, middle)
            low, high = np.where(likely, middle, low), np.where(likely, high, middle)
        high = np.where(is_kept | (high > 0), high, -np.inf)
        return np.where(is_kept, low, -np.inf), high

    def compute_highest_cost(self, limits: tuple[float, float]) -> float:
        """Compute an upper bound on the cost of all pairs in this set, by refining intervals of p.

        p and q are the probabilities of an error of the first and of the second kind, and the cost
        of a pair (p, q) is ``weights[0] p + weights[1] q``. limits: upper limits of p and q. At
        p + x the largest q of the set is lower than at p by at least x, so its value at the left
        end of an interval bounds the cost in the interval.
        """
        one, other = self.weights
        corner = one * limits[0] + other * limits[1]
        start = max(
            (self.observed - other * limits[1]) / one, 0.0
        )  # lower p cost less than observed
        ends = np.linspace(start, limits[0], _CELLS + 1)
        left, right = ends[:-1], ends[1:]
        bracket, reached, distance = (
            np.full(_CELLS, limits[1]),
            self.observed,
            corner - self.observed,
        )
        while True:
            step = _STEP * distance / other
            low, high = self.find_largest_q(left, np.minimum(bracket, 1 - left), step)
            reached = max(reached, float((one * left + other * low).max()))
            distance = max(reached - self.observed, _STEP * (corner - self.observed))
            close = _CLOSE * distance
            fallen = np.maximum(high - (right - left), 0.0)
            highest = np.where(high < 0, -np.inf, one * right + other * fallen)
            again = highest > reached + close
            if not again.any():
                return min(reached + close, one)
            parts = np.linspace(left[again], right[again], _PARTS + 1)
            left, right = parts[:-1].ravel(), parts[1:].ravel()
            bracket = np.tile(high[again], _PARTS)
