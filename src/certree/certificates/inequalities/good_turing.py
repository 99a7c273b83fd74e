"""How many new rows match rows of a fit where all are drawn independently from one source."""

import math

from scipy.special import betainccinv

# Probability with which new rows of the same source match more rows of the fit than `bound_matches`.
_LEVEL = 1e-6


def estimate_matches(n: int, n_once: int, n_new: int) -> float:
    """Number of new rows whose features are expected to occur in a fit.

    Parameters
    ----------
    n : int
        Rows of the fit.
    n_once : int
        Rows whose features no other row of the fit has.
    n_new : int
        New rows.

    References
    ----------
    Good, "The population frequencies of species and the estimation of population parameters",
    Biometrika 1953: a new row has features that no row of the fit has with probability about
    ``n_once / n``.
    """
    return n_new * (1 - n_once / n)


def bound_matches(n: int, n_once: int, n_twice: int, n_new: int, *, level: float = _LEVEL) -> int:
    """Largest plausible number of new rows whose features occur in a fit.

    The probability that a new row matches has a beta distribution with the mean of Good and Turing and
    the variance of Esty, to which the binomial noise of the new rows is added. One pair of alike rows
    more than there are is counted, so that a fit whose rows all differ may be matched by some.

    Parameters
    ----------
    n : int
        Rows of the fit.
    n_once, n_twice : int
        Rows whose features no other row has, and feature rows that exactly two rows have.
    n_new : int
        New rows.
    level : float
        Probability with which more of them match, if they are drawn from the source of the fit.

    Returns
    -------
    int

    References
    ----------
    Esty, "A normal limit law for a nonparametric estimator of the coverage of a random sample",
    Annals of Statistics 1983.
    """
    size, twice = n + 2, n_twice + 1
    share = 1 - n_once / size
    if not n_once or not n_new:
        return n_new
    variance = (n_once * share + 2 * twice) / size**2 + share * (1 - share) / n_new
    total = share * (1 - share) / variance - 1
    if total <= 0:
        return n_new
    highest = float(betainccinv(total * share, total * (1 - share), level))
    return math.floor(n_new * highest + 0.5)
