"""Sparsification: keep the largest terms of a spectrum, and bound the error of the others."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, log2
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certree.boolean.spectrum import Spectrum
from certree.certificates.inequalities.bounds import empirical_bernstein
from certree.interface.arrays import MAX_SETTING, Float64, check_column, to_array
from certree.interface.signatures import validate_arguments

# Fourth powers of differences within this range do not overflow float64.
_MAX_RANGE = 1e70


@dataclass(frozen=True, slots=True, eq=False)
class Sparsified:
    """The terms of a spectrum that are kept, and bounds on the error of dropping the other terms.

    A spectrum is a function of bits as a sum of terms: coefficients times products of signs. The
    size of a term is the absolute value of its coefficient, or their Euclidean norm if there are
    several outputs.

    Parameters
    ----------
    spectrum : Spectrum
        The terms that are kept.
    squared_error : float
        Mean squared difference to the whole spectrum, over independent features with its means. It
        is exactly the sum of the squares of the dropped terms. Features of real rows depend on each
        other; see `held_out_error`.
    sup_error : float
        Bound on the difference at every row: the sum over the dropped terms of their size times the
        largest absolute value of their product of signs, which is 1 without means.
    guaranteed_error : float
        Squared error in the theorem of Kushilevitz and Mansour (see `sparsify_as_proven`): 2
        epsilon in `sparsify_as_proven`, and `squared_error` in `sparsify`.
    guaranteed_terms : float
        Number of terms that suffice for this error by the theorem: ``2 L1^2 / guaranteed_error``,
        where L1 is the sum of the sizes of all terms. Infinite if the error is 0.
    guaranteed_degree : int or None
        Number of bits in a term that suffices by the theorem: ``log2(2 s / guaranteed_error)``,
        rounded up, for a tree of s leaves with values of size at most 1; None if s is unknown or
        the error is 0.
    """

    spectrum: Spectrum
    squared_error: float
    sup_error: float
    guaranteed_error: float
    guaranteed_terms: float
    guaranteed_degree: int | None

    def __str__(self) -> str:
        return (
            f"{len(self.spectrum)} terms of degree {self.spectrum.degree}: squared error "
            f"{self.squared_error:.6g} over independent features, at most {self.sup_error:.6g} off "
            f"at any row (the theorem needs {self.guaranteed_terms:.6g} terms for a squared error "
            "of "
            f"{self.guaranteed_error:.6g})"
        )


@validate_arguments
def sparsify(
    spectrum: Spectrum,
    *,
    budget: int | None = None,
    error: float | None = None,
    n_leaves: int | None = None,
) -> Sparsified:
    """Keep the terms of a spectrum with the largest coefficients, and bound the error.

    Among all choices of as many terms, these have the smallest mean squared difference to the
    spectrum.

    Parameters
    ----------
    spectrum : Spectrum
        The function: a sum of coefficients times products of signs of bits.
    budget : int or None
        Largest number of terms to keep. Pass either `budget` or `error`.
    error : float or None
        Largest squared error (sum of the squares of the dropped terms); as few terms as possible
        are kept.
    n_leaves : int or None
        Number of leaves of the tree that the spectrum was computed from; only for
        `Sparsified.guaranteed_degree`.

    Returns
    -------
    Sparsified
        The kept terms with their errors. Among terms of equal size, the first in the order of the
        spectrum are kept.

    Raises
    ------
    ValueError
        If neither or both of `budget` and `error` are passed, one is negative, or n_leaves is not
        positive.
    """
    if (budget is None) == (error is None):
        raise ValueError(
            "budget or error must be a number, and the other one None, got "
            f"budget={budget!r} and error={error!r}"
        )
    limit: Any = error if budget is None else budget
    if not limit >= 0:
        raise ValueError(
            f"{'error' if budget is None else 'budget'} must be at least 0, got {limit}"
        )
    if n_leaves is not None and not 1 <= n_leaves <= MAX_SETTING:
        raise ValueError(f"n_leaves must lie in 1 .. {MAX_SETTING:g}, got {n_leaves}")
    order = np.argsort(-spectrum.squares, kind="stable")
    if budget is None:
        # Entry i is the error if i terms are kept, summed from the smallest term up.
        errors = np.append(np.cumsum(spectrum.squares[order][::-1])[::-1], 0.0)
        budget = int(np.argmax(errors <= limit))
    return _keep_terms(spectrum, np.sort(order[:budget]), n_leaves)


@validate_arguments
def sparsify_as_proven(spectrum: Spectrum, epsilon: float, n_leaves: int) -> Sparsified:
    """Keep the terms that the theorem of Kushilevitz and Mansour keeps: small sets, large coefficients.

    Let a tree have s leaves with values of size at most 1, and L1 be the sum of the sizes of all
    coefficients. The sets of at most ``d = ceil(log2(s / epsilon))`` bits with coefficients of size
    at least ``epsilon / L1`` have a squared error of at most 2 epsilon. There are at most ``L1^2 /
    epsilon <= s^2 / epsilon`` of them. Proof: a node of depth d is reached with probability 2^-d,
    so the tree is within epsilon of a tree of degree d. Dropped terms of degree at most d are
    smaller than ``epsilon / L1``, and their sizes add up to at most L1, so their squares add up to
    at most epsilon.

    Parameters
    ----------
    spectrum : Spectrum
        The spectrum of the tree (a sum of coefficients times products of signs of bits), without
        means.
    epsilon : float
        Half of the guaranteed squared error.
    n_leaves : int
        Number of leaves of the tree, s.

    Returns
    -------
    Sparsified
        It has at most `guaranteed_terms` terms, of degree at most `guaranteed_degree`, and its
        `squared_error` is at most `guaranteed_error`.

    Raises
    ------
    ValueError
        If epsilon is not positive, `n_leaves` is below 1, or the spectrum has means.

    References
    ----------
    Kushilevitz and Mansour, "Learning decision trees using the Fourier spectrum", 1993.
    """
    epsilon = float(epsilon)
    if not 0 < epsilon <= MAX_SETTING or not 1 <= n_leaves <= MAX_SETTING:
        raise ValueError(
            f"epsilon must be positive, n_leaves at least 1, and both at most {MAX_SETTING:g}, got "
            f"epsilon={epsilon} and n_leaves={n_leaves}"
        )
    if spectrum.mean is not None:
        raise ValueError(
            "spectrum must have no means, as the theorem is about bits that are 0 and 1 equally "
            "often, "
            "but it has means: use sparsify, or compute the spectrum without mean"
        )
    l1_norm = spectrum.l1_norm
    smallest = epsilon / l1_norm if l1_norm > 0 else 0.0
    is_large = np.sqrt(spectrum.squares) >= smallest
    degree = compute_proven_degree(n_leaves, epsilon)
    kept_terms = np.flatnonzero(is_large & (spectrum.sizes <= degree))
    return _keep_terms(spectrum, kept_terms, n_leaves, 2 * epsilon)


def compute_proven_degree(n_leaves: int, epsilon: float) -> int:
    """Return a number of bits d such that terms of at most d bits approximate a tree to `epsilon`.

    A term is a coefficient times the product of the signs of some bits. The number is max(0,
    ceil(log2(n_leaves / epsilon))), for a tree of `n_leaves` leaves with values of size at most 1;
    `epsilon` bounds the mean squared error over independent, balanced bits; see
    `sparsify_as_proven`.
    """
    return ceil(max(log2(n_leaves) - log2(epsilon), 0.0))  # 0 if epsilon is infinite


def _keep_terms(
    spectrum: Spectrum, kept_terms: Any, n_leaves: int | None, guaranteed_error: float | None = None
) -> Sparsified:
    """Keep the given terms of a spectrum, and compute the errors of dropping the other terms.

    Parameters
    ----------
    spectrum : Spectrum
        All terms.
    kept_terms : ndarray of int
        Numbers of the terms to keep, among those of `spectrum`.
    n_leaves : int or None
        Number of leaves of the tree, for the degree of the theorem; None: unknown.
    guaranteed_error : float or None
        Squared error that the theorem of Kushilevitz and Mansour guarantees; None: the squared
        error of dropping the terms.

    Returns
    -------
    Sparsified
        The kept terms, with the errors of dropping the others.
    """
    is_kept = np.zeros(len(spectrum), dtype=bool)
    is_kept[kept_terms] = True
    dropped = spectrum.select_terms(~is_kept)
    error = dropped.squared_norm
    guaranteed = error if guaranteed_error is None else guaranteed_error
    n_terms = 2 * spectrum.l1_norm**2 / guaranteed if guaranteed > 0 else np.inf
    degree = None
    if n_leaves is not None and guaranteed / 2 > 0:
        degree = compute_proven_degree(n_leaves, guaranteed / 2)
    kept = spectrum.select_terms(is_kept)
    return Sparsified(kept, error, dropped.sup_norm_bound, guaranteed, n_terms, degree)


@validate_arguments
def held_out_error(
    spectrum: Spectrum,
    X: ArrayLike,
    values: ArrayLike,
    *,
    low: float = -1.0,
    high: float = 1.0,
    delta: float = 0.05,
) -> tuple[float, float]:
    """Estimate and bound the squared error of a spectrum on rows that were not used to choose it.

    Parameters
    ----------
    spectrum : Spectrum
        The function of bits, of K outputs; its values are clipped to the range `low` .. `high`.
    X : array-like of shape (n, p)
        Rows, drawn independently, that were not used to compute the spectrum.
    values : array-like of shape (n,) or (n, K)
        True values of the function, or labels, at these rows.
    low, high : float
        Range of the values.
    delta : float
        Probability that the bound fails.

    Returns
    -------
    mean : float
        Mean squared difference on these rows, summed over the K values.
    bound : float
        Upper bound, with probability 1 - delta, on the expected squared difference at new rows of
        the same distribution, by the empirical Bernstein inequality.

    Raises
    ------
    ValueError
        If there are fewer than 2 rows, values lie outside the range or the range is wider than
        1e70, or delta is not in 0 .. 1.

    References
    ----------
    Maurer and Pontil, "Empirical Bernstein bounds and sample-variance penalization", 2009.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
    low, high = float(low), float(high)
    if not high - low <= _MAX_RANGE:
        raise ValueError(
            f"low and high must be at most {_MAX_RANGE:g} apart, got {low!r} and {high!r}: divide "
            "the values by a constant"
        )
    array = to_array("values", values)
    table = array[:, None] if array.ndim == 1 else array
    truth = check_column("values", table, "float64", (None, spectrum.n_outputs))
    if not ((truth >= low) & (truth <= high)).all():
        raise ValueError(
            f"values must lie in low .. high = {low:g} .. {high:g}, got {truth.min():g} .. "
            f"{truth.max():g}: set low and high"
        )
    predicted = np.clip(spectrum.evaluate(X), low, high)
    if len(predicted) != len(truth):
        raise ValueError(
            f"X and values must have equal numbers of rows, got {len(predicted)} and {len(truth)}"
        )
    if len(predicted) < 2:
        raise ValueError(f"X must have at least 2 rows, got {len(predicted)}")
    differences: Float64 = ((predicted - truth) ** 2).sum(axis=1)
    mean, value_range = float(differences.mean()), spectrum.n_outputs * (high - low) ** 2
    variance = float(differences.var(ddof=1))
    return mean, empirical_bernstein(mean, variance, len(predicted), value_range, log(delta))
