"""The power of a product of densities: chosen by how rows that were left out are judged."""

from dataclasses import dataclass
from math import frexp
from typing import Self

import numpy as np

from certree.interface.arrays import ArrayRecord, Float64, Int32

# The powers that are compared: those from 2^-12 on are within a fifth of the next. The first is next to
# nothing, but lets densities decide between classes of the same prior.
POWERS: Float64 = np.append(2.0**-40, 2.0 ** (-np.arange(48, -1, -1) / 4))
POWERS.flags.writeable = False


# Sums of losses that differ by less are equal: in other units of weight they round otherwise.
_ROUNDING = 1e-12
# A row loses no more than this: scikit-learn's log loss knows no smaller probability.
_LARGEST = -np.log(np.finfo(np.float64).eps)


def subtract_marginal(log_prior: Float64, log_density: Float64) -> Float64:
    """Log density in each class less that over all classes; (n, K), as is log_density.

    With the logarithm of the prior it adds up to the log posterior.
    """
    # Far from all classes densities are so small that only their differences are exact enough.
    apart = log_density - (log_prior + log_density).max(axis=1, keepdims=True)
    return apart - np.log(np.exp(log_prior + apart).sum(axis=1, keepdims=True))


def compute_power_losses(
    log_prior: Float64, log_density: Float64, y: Int32, weight: Float64
) -> Float64:
    """Log loss of rows for each of `POWERS`.

    Parameters
    ----------
    log_prior : ndarray of shape (K,)
        Logarithms of the prior, finite for the classes of the rows.
    log_density : ndarray of shape (n, K)
        Log density of each row in each class.
    y, weight : ndarray of shape (n,)
        Classes and weights of the rows.

    Returns
    -------
    ndarray of the shape of `POWERS`
        Sums over the rows. A row counts for 36 nats at most.
    """
    # One row for each class: sums over classes then run along the memory.
    by_class = np.ascontiguousarray(log_density.T)
    apart = by_class - by_class[y, np.arange(len(y))]
    with np.errstate(invalid="ignore"):  # of a class whose weight is lost beside that of the others
        prior_odds = log_prior[:, None] - log_prior[y]
    losses = np.zeros(len(POWERS))
    for number, power in enumerate(POWERS):
        odds = prior_odds + power * apart
        largest = odds.max(axis=0)
        loss = largest + np.log(np.exp(odds - largest).sum(axis=0))
        # Not a dot product: that of many rows goes to the threads of BLAS, which wait for each other.
        losses[number] = (weight * np.fmin(loss, _LARGEST)).sum()
    return losses


@dataclass(frozen=True, slots=True, eq=False)
class PowerLosses(ArrayRecord):
    """The log loss of rows that were left out, for each power.

    Sums over rows are all that is kept, so batches can be added for ever. A model of few rows is a
    bad judge of one of many: every time the number of rows passes a power of two, what was judged
    before the last such time is forgotten.

    Parameters
    ----------
    rows : float
        Number of the rows seen.
    older, recent : ndarray of float64, of the shape of `POWERS`
        Losses of the rows that were judged before and after the number of rows passed the last power
        of two.
    """

    rows: float
    older: Float64
    recent: Float64

    def __post_init__(self) -> None:
        self._check("float64", POWERS.shape, "older", "recent")

    @classmethod
    def empty(cls) -> Self:
        """No row has been judged."""
        return cls(0.0, np.zeros(len(POWERS)), np.zeros(len(POWERS)))

    def plus(self, losses: Float64, rows: float) -> Self:
        """Add the losses of a batch; `rows` is the number of rows seen with it."""
        passed = frexp(rows)[1] - frexp(self.rows)[1]
        if passed == 0:
            return type(self)(rows, self.older, self.recent + losses)
        return type(self)(rows, self.recent if passed == 1 else np.zeros(len(POWERS)), losses)

    @property
    def best(self) -> float:
        """The power with the smallest loss, of those that are equal but for rounding the largest.

        References
        ----------
        Titterington et al., "Comparison of discrimination techniques applied to a complex data set
        of head injured patients", JRSS A 1981, where dependent features are made to count for less.
        """
        losses = self.older + self.recent
        least = losses.min() + _ROUNDING * abs(losses.min())
        return float(POWERS[np.flatnonzero(losses <= least)[-1]])
