"""How many new rows are expected to equal rows of a fit, if all are drawn from one source."""

import math

from scipy.special import betainccinv

# Probability that more new rows of the same source equal rows of the fit than `bound_matches` returns.
_LEVEL = 1e-6


def estimate_matches(n: int, n_once: int, n_new: int) -> float:
    """Estimate how many new rows equal some row of a fit in all features.

    Parameters
    ----------
    n : int
        Number of rows of the fit.
    n_once : int
        Number of rows of the fit that no other row of the fit equals.
    n_new : int
        Number of new rows.

    Returns
    -------
    float
        Expected number: ``n_new * (1 - n_once / n)``.

    References
    ----------
    Good, "The population frequencies of species and the estimation of population parameters",
    Biometrika 1953: a new row has features that no row of the fit has with probability about
    ``n_once / n``.
    """
    return n_new * (1 - n_once / n)


def bound_matches(n: int, n_once: int, n_twice: int, n_new: int, *, level: float = _LEVEL) -> int:
    """Return the largest plausible number of new rows that equal some row of a fit in all features.

    The probability that a new row equals one of the fit has a beta distribution with the mean of
    Good and Turing and the variance of Esty, plus the binomial variance of the new rows. One pair
    of equal rows is added to the counts, so that the limit is not 0 if all rows of the fit differ.

    Parameters
    ----------
    n : int
        Number of rows of the fit.
    n_once : int
        Number of rows of the fit that no other row of the fit equals.
    n_twice : int
        Number of different rows that occur exactly twice in the fit.
    n_new : int
        Number of new rows.
    level : float
        Probability with which more new rows match, if they are drawn from the source of the fit;
        1e-6 by default.

    Returns
    -------
    int
        0 .. n_new; n_new if the counts give no lower limit.

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
