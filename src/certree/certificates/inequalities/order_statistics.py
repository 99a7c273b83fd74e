"""How far a distribution function lies from that of n draws, at all points at once.

The distribution function at the k-th smallest of n independent draws is the k-th smallest of n uniform
ones, which has a beta distribution. All of these are given the same level, a share of delta that makes
the chance of a miss anywhere delta: a band of equal local levels, which is as narrow in the tails, in
units of what the draws leave open there, as it is in the middle.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv

from certree._core import compute_order_probability
from certree.interface.arrays import Float64, freeze

# Of more draws the chance of a miss takes seconds; of a lower delta it is lost in rounding.
_MOST_DRAWS, _LEAST_DELTA = 10_000, 1e-9
# How near to the log of the highest level one gets, and in how many steps.
_NEAR, _MOST_STEPS = 2e-3, 50


@lru_cache(maxsize=64)
def compute_cdf_bounds(n: int, log_delta: float) -> Float64:
    """Bound the distribution function of n independent draws from below, at all points at once.

    Parameters
    ----------
    n : int
        Draws.
    log_delta : float
        Log of the probability that the distribution function is below these bounds somewhere, or above
        those from above.

    Returns
    -------
    ndarray of shape (n + 1,)
        By k: the probability of at most x is at least this wherever k draws are at most x, and that of
        less than x wherever k draws are less. From above it is at most 1 less the entry of n - k.
        Draws that are tied make it hold all the more. Read-only.

    References
    ----------
    Berk and Jones, "Goodness-of-fit test statistics that dominate the Kolmogorov statistics",
    Zeitschrift fuer Wahrscheinlichkeitstheorie 1979, for equal local levels; Moscovich and Nadler,
    "Fast calculation of boundary crossing probabilities for Poisson processes", Statistics and
    Probability Letters 2017, for the chance of a miss. Of more than 10,000 draws: Massart, "The tight
    constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of Probability 1990, and
    Bonferroni's inequality, with half of delta each.
    """
    k = np.arange(n + 1.0)
    if _is_exact(n, log_delta):
        shares = _compute_lower_ends(k, n, local_level(n, math.exp(log_delta)))
    else:
        shares = _compute_closed_form(k, n, log_delta)
    return freeze(np.clip(shares, 0.0, 1.0))


def compute_cdf_bound(k: int, n: int, log_delta: float) -> float:
    """One entry of `compute_cdf_bounds`, of however many draws."""
    if _is_exact(n, log_delta):
        return float(compute_cdf_bounds(n, log_delta)[k])
    share = float(_compute_closed_form(np.array([k + 0.0]), n, log_delta)[0])
    return min(max(share, 0.0), 1.0)


def _is_exact(n: int, log_delta: float) -> bool:
    return n <= _MOST_DRAWS and log_delta >= math.log(_LEAST_DELTA)


def _compute_closed_form(k: Float64, n: int, log_delta: float) -> Float64:
    half, rows = log_delta - math.log(2), max(n, 1)
    shift = math.sqrt((math.log(2) - half) / (2 * rows))
    return np.maximum(k / rows - shift, _compute_lower_ends(k, n, math.exp(half) / rows))


@lru_cache(maxsize=65536)
def local_level(n: int, delta: float) -> float:
    """The level of each of n order statistics, both sides together, at which delta is that of all."""
    if n < 2:
        return delta
    # All together fail no more often than all added up.
    safe, wanted = math.log(delta / n), math.log(-math.log1p(-delta))
    log_level = math.log(delta) - math.log(4 * math.log(n + 1))
    # Misses are nearly in proportion to the level.
    for _ in range(_MOST_STEPS):
        step = wanted - math.log(
            max(-math.log(_compute_band_coverage(n, math.exp(log_level))), 1e-300)
        )
        if 0 <= step <= _NEAR:
            return math.exp(log_level)
        log_level += step - _NEAR / 2
    return math.exp(safe)


def _compute_lower_ends(k: Float64, n: int, level: float) -> Float64:
    """Lower ends of the intervals of order statistics of n uniform draws; 0 of the one before all."""
    return np.where(k > 0, betaincinv(np.maximum(k, 1), n + 1 - k, level / 2), 0.0)


def _compute_band_coverage(n: int, level: float) -> float:
    """The probability that none of n uniform draws in order is outside of its interval."""
    # Neighbours of the same share in floating point must not seem to fall.
    lower = np.maximum.accumulate(_compute_lower_ends(np.arange(1.0, n + 1), n, level))
    return float(compute_order_probability(lower, np.ascontiguousarray(1 - lower[::-1])))
