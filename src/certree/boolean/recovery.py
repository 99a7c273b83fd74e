"""Few coefficients from few measurements: y = A x + e, where most of x is 0."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import orthogonal_mp

from certree.interface.arrays import Float64, check_column, check_nonnegative
from certree.interface.signatures import validate_arguments, validate_settings

# Share of the measurements that rounding leaves of nothing.
_NOTHING = 1e-10
# Squares of larger numbers, and their sums, need not be numbers of float64.
_LARGEST = 1e140


@dataclass(frozen=True, slots=True, eq=False)
class SparseRecovery:
    """Coefficients that explain measurements up to their noise.

    Parameters
    ----------
    coefficients : ndarray of shape (p,)
        The coefficients; most are 0.
    residual : float
        Norm of what they leave unexplained, in units of y.
    noise : float
        Largest norm of the errors e.
    coherence : float
        Largest absolute cosine between two columns of the measurement.
    smallest_norm : float
        Norm of its shortest column.
    """

    coefficients: Float64
    residual: float
    noise: float
    coherence: float
    smallest_norm: float

    def __post_init__(self) -> None:
        validate_settings(self)

    @property
    def n_terms(self) -> int:
        """How many coefficients are not 0."""
        return int(np.count_nonzero(self.coefficients))

    def error_bound(self, n_terms: int) -> float:
        """How far the coefficients are from those that were measured, if these are so few.

        Parameters
        ----------
        n_terms : int
            How many coefficients of x are not 0, at most.

        Returns
        -------
        float
            Norm of the difference, at most; infinite if the columns are too much alike for so many
            terms.

        Raises
        ------
        ValueError
            If the number is negative.

        Notes
        -----
        With s terms of x and of the estimate together, ``|A z|^2 >= (1 - coherence (s - 1)) |z|^2`` for
        their difference z and columns of norm 1, by Gershgorin's circles, and ``|A z|`` is at most
        the residual and the noise.

        References
        ----------
        Donoho, Elad and Temlyakov, "Stable recovery of sparse overcomplete representations in the
        presence of noise", IEEE Transactions on Information Theory 2006, Theorem 2.1.
        """
        if n_terms < 0:
            raise ValueError(f"n_terms must not be negative, got {n_terms!r}")
        left = 1 - self.coherence * (self.n_terms + n_terms - 1)
        if not (left > _NOTHING and self.smallest_norm > 0):
            return math.inf
        return (self.residual + self.noise) / (math.sqrt(min(left, 1.0)) * self.smallest_norm)


@validate_arguments
def sparse_recovery(measurement: ArrayLike, y: ArrayLike, noise: float = 0.0) -> SparseRecovery:
    """Find few coefficients x with ``y = measurement @ x + e``, by orthogonal matching pursuit.

    Columns are taken one after the other, each time the one that is most like what is left, until
    the columns taken explain the measurements up to their noise. To learn a function of bits, rows
    are examples and columns the products of features that may have coefficients; `FourierRegressor`
    looks for these by itself, and needs no bound on the noise.

    Parameters
    ----------
    measurement : array-like of shape (m, p)
        What is measured, the matrix A.
    y : array-like of shape (m,)
        The measurements.
    noise : float
        Largest norm of the errors e, in units of y; the norm of m errors of standard deviation s is
        about ``s sqrt(m)``.

    Returns
    -------
    SparseRecovery
        Its `error_bound` says how far the coefficients may be from x.

    Raises
    ------
    ValueError
        If shapes do not go together, a number is not finite or above 1e140, or the noise is negative.

    References
    ----------
    Pati, Rezaiifar and Krishnaprasad, "Orthogonal matching pursuit", Asilomar 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from certree.boolean import sparse_recovery
    >>> A = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 400))
    >>> found = sparse_recovery(A, 3 * A[:, 7] - A[:, 50])
    >>> np.flatnonzero(found.coefficients), found.coefficients[[7, 50]].round(6)
    (array([ 7, 50]), array([ 3., -1.]))
    """
    given: Float64 = check_column("measurement", measurement, "float64", (None, None))
    values: Float64 = check_column("y", y, "float64", (len(given),))
    if not (np.isfinite(given).all() and np.isfinite(values).all()):
        raise ValueError("measurement and y must hold finite numbers")
    most = check_nonnegative("noise", noise)
    if max(np.abs(given).max(initial=0.0), np.abs(values).max(initial=0.0)) > _LARGEST:
        raise ValueError(f"measurement and y must hold numbers of size {_LARGEST:g} at most")
    largest = np.abs(given).max(axis=0, initial=0.0)
    there = np.flatnonzero(largest > 0)
    norms = np.zeros(given.shape[1])  # squares of small numbers would be nothing
    norms[there] = largest[there] * np.linalg.norm(given[:, there] / largest[there], axis=0)
    unit = given[:, there] / norms[there]
    least = max(most, _NOTHING * float(np.linalg.norm(values)))
    taken, coefficients = np.zeros(len(there)), np.zeros(given.shape[1])
    if len(there) and np.linalg.norm(values) > least:
        with warnings.catch_warnings():  # columns that depend on each other end the search early
            warnings.simplefilter("ignore", RuntimeWarning)
            taken = np.atleast_1d(orthogonal_mp(unit, values, tol=least**2))
    with np.errstate(over="ignore"):
        coefficients[there] = taken / norms[there]
    alike = np.abs(unit.T @ unit)
    np.fill_diagonal(alike, 0.0)
    return SparseRecovery(
        coefficients,
        float(np.linalg.norm(values - unit @ taken)),
        most,
        min(float(alike.max(initial=0.0)), 1.0),
        float(norms.min(initial=math.inf)) if given.shape[1] else 0.0,
    )
