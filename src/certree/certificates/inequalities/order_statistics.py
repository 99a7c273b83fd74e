"""Confidence bands of a distribution function from n independent draws, at all points at once.

The distribution function at the k-th smallest of n draws has the distribution of the k-th smallest
of n uniform draws, a beta distribution. Each of the n order statistics gets an interval of the same
level (equal local levels), chosen such that the probability that any interval fails is delta. Such
a band is narrow in the tails as well as in the middle.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv

from certree._core import compute_order_probability
from certree.interface.arrays import Float64, freeze

# With more draws the exact level takes seconds; with a lower delta it is lost in rounding errors.
_MOST_DRAWS, _LEAST_DELTA = 10_000, 1e-9
# Precision of the log level, and largest number of steps of the search for it.
_NEAR, _MOST_STEPS = 2e-3, 50


@lru_cache(maxsize=64)
def compute_cdf_bounds(n: int, log_delta: float) -> Float64:
    """Compute the lower confidence band of a distribution function from n independent draws.

    Parameters
    ----------
    n : int
        Number of draws.
    log_delta : float
        Log of the probability that the lower band, or the upper band that mirrors it, fails
        anywhere.

    Returns
    -------
    ndarray of shape (n + 1,)
        Entry k is a lower bound on P(draw <= x) for each x such that k of the n draws are at most
        x, and on P(draw < x) if k draws are below x. The upper bound is 1 minus entry n - k. With
        ties the bounds hold with a larger probability. Read-only, as it is cached.

    References
    ----------
    Berk and Jones, "Goodness-of-fit test statistics that dominate the Kolmogorov statistics",
    Zeitschrift fuer Wahrscheinlichkeitstheorie 1979, for equal local levels; Moscovich and Nadler,
    "Fast calculation of boundary crossing probabilities for Poisson processes", Statistics and
    Probability Letters 2017, for the probability that the band fails. For more than 10,000 draws,
    or delta below 1e-9: Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality",
    Annals of Probability 1990, and Bonferroni's inequality, with half of delta each.
    """
    k = np.arange(n + 1.0)
    if _is_exact(n, log_delta):
        shares = _compute_lower_ends(k, n, local_level(n, math.exp(log_delta)))
    else:
        shares = _compute_closed_form(k, n, log_delta)
    return freeze(np.clip(shares, 0.0, 1.0))


def compute_cdf_bound(k: int, n: int, log_delta: float) -> float:
    """Return entry k of ``compute_cdf_bounds(n, log_delta)``; fast also for large n.

    It is the lower confidence limit of P(draw <= x) for a number x such that k of n draws are at
    most x. log_delta: log of the probability that the band of these limits fails anywhere.
    """
    if _is_exact(n, log_delta):
        return float(compute_cdf_bounds(n, log_delta)[k])
    share = float(_compute_closed_form(np.array([k + 0.0]), n, log_delta)[0])
    return min(max(share, 0.0), 1.0)


def _is_exact(n: int, log_delta: float) -> bool:
    """Return whether `compute_cdf_bounds` uses equal local levels: n <= 10,000 and delta >= 1e-9.

    With equal local levels the bound on each draw fails with the same probability. Otherwise the
    DKW and Bonferroni inequalities give the band. n: number of draws; log_delta: log of delta, the
    probability that the band fails anywhere.
    """
    return n <= _MOST_DRAWS and log_delta >= math.log(_LEAST_DELTA)


def _compute_closed_form(k: Float64, n: int, log_delta: float) -> Float64:
    """Compute entries k of the band by the DKW and Bonferroni inequalities, whichever is higher.

    k: indices of entries, 0 .. n, array of floats; n: number of draws; log_delta: log of the
    probability that the band fails anywhere, of which each inequality uses half. Return an array of
    the shape of k, not clipped to 0 .. 1.
    """
    half, rows = log_delta - math.log(2), max(n, 1)
    shift = math.sqrt((math.log(2) - half) / (2 * rows))
    return np.maximum(k / rows - shift, _compute_lower_ends(k, n, math.exp(half) / rows))


@lru_cache(maxsize=65536)
def local_level(n: int, delta: float) -> float:
    """Find the level of the interval of each order statistic such that all n together have level delta.

    n: number of uniform draws; delta: probability that any of them is outside its two-sided
    interval. Return the level of one interval, the probability that its draw is outside; at most
    0.2 % below the exact one.
    """
    if n < 2:
        return delta
    # Bonferroni: n intervals of level delta / n together have at most level delta.
    safe, wanted = math.log(delta / n), math.log(-math.log1p(-delta))
    log_level = math.log(delta) - math.log(4 * math.log(n + 1))
    # The probability of a failure is nearly proportional to the level.
    for _ in range(_MOST_STEPS):
        step = wanted - math.log(
            max(-math.log(_compute_band_coverage(n, math.exp(log_level))), 1e-300)
        )
        if 0 <= step <= _NEAR:
            return math.exp(log_level)
        log_level += step - _NEAR / 2
    return math.exp(safe)


def _compute_lower_ends(k: Float64, n: int, level: float) -> Float64:
    """Compute the lower ends of intervals of order statistics of n uniform draws.

    k: ranks from 1, array; 0 gives 0. level: probability that a draw is outside its two-sided
    interval. Return the level / 2 quantiles of Beta(k, n + 1 - k).
    """
    return np.where(k > 0, betaincinv(np.maximum(k, 1), n + 1 - k, level / 2), 0.0)


def _compute_band_coverage(n: int, level: float) -> float:
    """Compute the probability that n sorted uniform draws all lie in their intervals.

    n: number of draws; level: probability that the draw of one rank, any of them, is outside its
    two-sided interval, whose ends are quantiles of a beta distribution.
    """
    # Rounding errors must not make the sequence of lower ends fall.
    lower = np.maximum.accumulate(_compute_lower_ends(np.arange(1.0, n + 1), n, level))
    return float(compute_order_probability(lower, np.ascontiguousarray(1 - lower[::-1])))
