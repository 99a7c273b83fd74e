"""Sparse recovery: the coefficients x in y = A x + e, most of which are 0."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import orthogonal_mp

from certree.interface.arrays import Float64, check_column, check_nonnegative
from certree.interface.signatures import validate_arguments, validate_settings

# Residuals below this fraction of the norm of y count as rounding errors.
_ROUNDING = 1e-10
# Sums of squares of larger numbers might overflow float64.
_LARGEST = 1e140


@dataclass(frozen=True, slots=True, eq=False)
class SparseRecovery:
    """A vector x of mostly zero coefficients that fits measurements y = A x + e up to the noise e.

    Made by `sparse_recovery`.

    Parameters
    ----------
    coefficients : ndarray of shape (p,)
        Estimate of x, one coefficient for each column of A; most are 0.
    residual : float
        Euclidean norm of y - A @ coefficients.
    noise : float
        Upper bound on the Euclidean norm of the errors e, as passed by the caller.
    coherence : float
        Largest absolute cosine between two columns of A.
    smallest_norm : float
        Euclidean norm of the shortest column of A.
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
        """Number of estimated coefficients that are not 0."""
        return int(np.count_nonzero(self.coefficients))

    def error_bound(self, n_terms: int) -> float:
        """Bound the Euclidean norm of the difference between the estimated coefficients and the true x.

        Parameters
        ----------
        n_terms : int
            Upper bound on the number of nonzero entries of x.

        Returns
        -------
        float
            The bound; infinite if the coherence is too large for a bound with this many terms.

        Raises
        ------
        ValueError
            If `n_terms` is negative.

        Notes
        -----
        Let x and the estimate have s nonzero terms together, and z be their difference. For columns
        of norm 1, ``|A z|^2 >= (1 - coherence (s - 1)) |z|^2`` by Gershgorin's circles, and ``|A
        z|`` is at most the sum of residual and noise.

        References
        ----------
        Donoho, Elad and Temlyakov, "Stable recovery of sparse overcomplete representations in the
        presence of noise", IEEE Transactions on Information Theory 2006, Theorem 2.1.
        """
        if n_terms < 0:
            raise ValueError(f"n_terms must not be negative, got {n_terms!r}")
        eigenvalue = 1 - self.coherence * (self.n_terms + n_terms - 1)
        if not (eigenvalue > _ROUNDING and self.smallest_norm > 0):
            return math.inf
        scale = math.sqrt(min(eigenvalue, 1.0)) * self.smallest_norm
        return (self.residual + self.noise) / scale


@validate_arguments
def sparse_recovery(measurement: ArrayLike, y: ArrayLike, noise: float = 0.0) -> SparseRecovery:
    """Find sparse coefficients x with ``y = measurement @ x + e``, by orthogonal matching pursuit.

    Each step adds the column with the largest cosine to the residual and refits by least squares,
    until the Euclidean norm of the residual is at most `noise`. To learn a function of bits, let
    rows be examples, and columns the products of features that may have coefficients.
    `FourierRegressor` searches for these products itself and needs no bound on the noise.

    Parameters
    ----------
    measurement : array-like of shape (m, p)
        The measurement matrix A.
    y : array-like of shape (m,)
        The measured values.
    noise : float
        Upper bound on the Euclidean norm of the errors e, in units of y. The norm of m errors of
        standard deviation s is about ``s sqrt(m)``.

    Returns
    -------
    SparseRecovery
        The coefficients; `SparseRecovery.error_bound` bounds their distance from x.

    Raises
    ------
    ValueError
        If shapes do not match, a number is not finite or above 1e140, or the noise is negative.

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
    A: Float64 = check_column("measurement", measurement, "float64", (None, None))
    values: Float64 = check_column("y", y, "float64", (len(A),))
    if not (np.isfinite(A).all() and np.isfinite(values).all()):
        raise ValueError(
            "measurement and y must have finite numbers, got NaN or infinity: leave out these rows"
        )
    noise = check_nonnegative("noise", noise)
    if max(np.abs(A).max(initial=0.0), np.abs(values).max(initial=0.0)) > _LARGEST:
        raise ValueError(
            f"measurement and y must have absolute values of at most {_LARGEST:g}, got a larger "
            "number: "
            "rescale them"
        )
    largest = np.abs(A).max(axis=0, initial=0.0)
    nonzero = np.flatnonzero(largest > 0)
    # Columns are scaled by their largest entry first, as squares of tiny numbers underflow.
    norms = np.zeros(A.shape[1])
    norms[nonzero] = largest[nonzero] * np.linalg.norm(A[:, nonzero] / largest[nonzero], axis=0)
    unit = A[:, nonzero] / norms[nonzero]
    tolerance = max(noise, _ROUNDING * float(np.linalg.norm(values)))
    scaled, coefficients = np.zeros(len(nonzero)), np.zeros(A.shape[1])
    if len(nonzero) and np.linalg.norm(values) > tolerance:
        with warnings.catch_warnings():  # linearly dependent columns end the search early
            warnings.simplefilter("ignore", RuntimeWarning)
            scaled = np.atleast_1d(orthogonal_mp(unit, values, tol=tolerance**2))
    with np.errstate(over="ignore"):
        coefficients[nonzero] = scaled / norms[nonzero]
    cosines = np.abs(unit.T @ unit)
    np.fill_diagonal(cosines, 0.0)
    return SparseRecovery(
        coefficients,
        float(np.linalg.norm(values - unit @ scaled)),
        noise,
        min(float(cosines.max(initial=0.0)), 1.0),
        float(norms.min(initial=math.inf)) if A.shape[1] else 0.0,
    )
