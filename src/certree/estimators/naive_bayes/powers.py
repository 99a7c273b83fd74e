"""The power of the product of densities in naive Bayes, chosen by leave-one-out log loss."""

from dataclasses import dataclass, field
from math import frexp
from typing import Self

import numpy as np

from certree.interface.arrays import ArrayRecord, Float64, Int32

# The powers that are compared: those from 2^-12 on are within a fifth of the next. The first is next to
# nothing, but lets densities decide between classes of the same prior.
POWERS: Float64 = np.append(2.0**-40, 2.0 ** (-np.arange(48, -1, -1) / 4))
POWERS.flags.writeable = False


# Sums of losses that differ by less are equal: in another unit of weight they are rounded differently.
_ROUNDING = 1e-12
# Largest loss of a row: scikit-learn's log loss clips probabilities at this epsilon, too.
_LARGEST = -np.log(np.finfo(np.float64).eps)


def subtract_marginal(log_prior: Float64, log_density: Float64) -> Float64:
    """Return the log density of each class minus the log density of the mixture of all classes.

    log_prior: log prior probabilities, (K,); log_density: log density of n rows in each class, (n,
    K). The mixture has the prior probabilities as weights. The result, (n, K), plus the log prior
    is the log posterior; all are in nats.
    """
    # Far from all classes the densities underflow; differences of their logarithms do not.
    difference = log_density - (log_prior + log_density).max(axis=1, keepdims=True)
    return difference - np.log(np.exp(log_prior + difference).sum(axis=1, keepdims=True))


def compute_power_losses(
    log_prior: Float64, log_density: Float64, y: Int32, weight: Float64
) -> Float64:
    """Compute the total log loss of rows for each power in `POWERS`: 50 numbers from 2**-40 to 1.

    Parameters
    ----------
    log_prior : ndarray of shape (K,)
        Log prior probabilities, finite for the classes of the rows.
    log_density : ndarray of shape (n, K)
        Log density of each row in each class, for power 1.
    y, weight : ndarray of shape (n,)
        Class code and weight of each row.

    Returns
    -------
    ndarray of shape (len(POWERS),)
        Weighted sums of the log loss (nats). The loss of a row is limited to 36 nats, -log of the
        smallest probability that scikit-learn's log loss distinguishes from 0.
    """
    # One row for each class: sums over classes then run along the memory.
    by_class = np.ascontiguousarray(log_density.T)
    difference = by_class - by_class[y, np.arange(len(y))]
    with np.errstate(invalid="ignore"):  # of a class whose weight is lost beside that of the others
        prior_odds = log_prior[:, None] - log_prior[y]
    losses = np.zeros(len(POWERS))
    for number, power in enumerate(POWERS):
        odds = prior_odds + power * difference
        largest = odds.max(axis=0)
        loss = largest + np.log(np.exp(odds - largest).sum(axis=0))
        # Not a dot product: that of many rows goes to the threads of BLAS, which wait for each other.
        losses[number] = (weight * np.fmin(loss, _LARGEST)).sum()
    return losses


@dataclass(frozen=True, slots=True, eq=False)
class PowerLosses(ArrayRecord):
    """The leave-one-out log loss of training rows for each power in `POWERS`, summed over batches.

    `POWERS` holds 50 candidates for the power of the densities, from 2**-40 to 1. A row is scored
    once, when its batch is added. The best power depends on the number of rows, so old losses are
    dropped: whenever the number of rows passes a power of two, `recent` becomes `older`, and the
    former `older` is dropped.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    rows : float
        Number of rows of all batches so far.
    older, recent : ndarray of float64, shape (len(POWERS),)
        Total losses (nats). `recent`: of the rows of the batch with which `rows` last passed a
        power of two, and of all later ones. `older`: of the rows from the batch that passed the
        power of two before that one, up to `recent`.
    """

    rows: float = field(metadata={"least": 0})
    older: Float64 = field(metadata={"least": -np.inf})
    recent: Float64 = field(metadata={"least": -np.inf})

    def __post_init__(self) -> None:
        self._check("float64", POWERS.shape, "older", "recent")

    @classmethod
    def empty(cls) -> Self:
        """Return the losses before the first batch: `rows` and all losses are 0."""
        return cls(0.0, np.zeros(len(POWERS)), np.zeros(len(POWERS)))

    def add_batch(self, losses: Float64, rows: float) -> Self:
        """Return new losses with a batch added; this object does not change.

        losses: result of `compute_power_losses` for the batch, (len(POWERS),); rows: number of rows
        of all batches, including this one. If it passes a power of two, `recent` becomes `older`,
        and the losses of this batch are the new `recent`; if it passes several, `older` becomes 0.
        """
        passed = frexp(rows)[1] - frexp(self.rows)[1]
        if passed == 0:
            return type(self)(rows, self.older, self.recent + losses)
        return type(self)(rows, self.recent if passed == 1 else np.zeros(len(POWERS)), losses)

    @property
    def best_power(self) -> float:
        """The power with the smallest sum of `older` and `recent` losses.

        If the losses of several powers are equal within rounding, it is the largest of these
        powers.

        References
        ----------
        Titterington et al., "Comparison of discrimination techniques applied to a complex data set
        of head injured patients", JRSS A 1981, where dependent features are made to count for less.
        """
        losses = self.older + self.recent
        limit = losses.min() + _ROUNDING * abs(losses.min())
        return float(POWERS[np.flatnonzero(losses <= limit)[-1]])
