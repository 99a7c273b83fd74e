"""Fewer terms, and how far off they are: what theorems promise, what is computed, what rows say."""

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

# Range of values whose differences still have squares that float64 can square.
_WIDEST = 1e70


@dataclass(frozen=True, slots=True, eq=False)
class Sparsified:
    """Some terms of a function, and how far they are from it.

    Parameters
    ----------
    spectrum : Spectrum
        The terms that are kept.
    squared_error : float
        Mean of the squared difference over independent features of the means of the spectrum: the sum
        of the squares of the other terms, exactly. Real rows are not drawn like that; see
        `held_out_error`.
    sup_error : float
        Bound on the difference at any row whatever: the sum of the sizes of the other terms.
    guaranteed_error : float
        Squared error of which the theorem speaks: 2 epsilon of `sparsify_as_proven`, and
        `squared_error` of `sparsify`.
    guaranteed_terms : float
        So many terms suffice by the theorem for this error: ``2 L1^2 / guaranteed_error`` of degree
        `guaranteed_degree`, where L1 is the sum of the sizes of all terms. Infinite if the error is 0.
    guaranteed_degree : int or None
        ``log2(2 s / guaranteed_error)`` of the theorem, rounded up, for a tree of s leaves with values
        of size 1 at most; None if the number of leaves was not given, or the error is 0.
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
            f"at any row (the theorem needs {self.guaranteed_terms:.6g} terms for a squared error of "
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
    """Keep the largest terms: no other choice of as many has a smaller squared error.

    Parameters
    ----------
    spectrum : Spectrum
        The function.
    budget : int or None
        Keep so many terms at most.
    error : float or None
        Keep as few terms as have a squared error of at most this. Exactly one of the two is given.
    n_leaves : int or None
        Number of leaves of the tree, for `Sparsified.guaranteed_degree`.

    Returns
    -------
    Sparsified
        Of terms of the same size the first in the order of the spectrum are kept.

    Raises
    ------
    ValueError
        If neither or both are given, or one is negative.
    """
    if (budget is None) == (error is None):
        raise ValueError("expected either budget or error")
    given: Any = error if budget is None else budget
    if not given >= 0:
        raise ValueError(f"budget and error must be at least 0, got {given}")
    if n_leaves is not None and not 1 <= n_leaves <= MAX_SETTING:
        raise ValueError(f"n_leaves must be positive, got {n_leaves}")
    order = np.argsort(-spectrum.squares, kind="stable")
    if budget is None:
        # What is left when so many are kept, summed from the smallest up.
        left = np.append(np.cumsum(spectrum.squares[order][::-1])[::-1], 0.0)
        budget = int(np.argmax(left <= given))
    return _kept(spectrum, np.sort(order[:budget]), n_leaves)


@validate_arguments
def sparsify_as_proven(spectrum: Spectrum, epsilon: float, n_leaves: int) -> Sparsified:
    """Keep what the theorem keeps: small sets with coefficients that are not small.

    A tree of s leaves, whose values have size 1 at most, is kept to a squared error of 2 epsilon by
    the sets of at most ``d = ceil(log2(s / epsilon))`` bits with coefficients of at least ``epsilon /
    L1``, where L1 is the sum of the sizes of all coefficients. These are at most ``L1^2 / epsilon <=
    s^2 / epsilon`` terms. For: nodes of depth d are reached with probability 2^-d each, so that the
    tree is within epsilon of one of degree d; and what is dropped of degree d or less has squares of
    at most ``epsilon / L1`` times sizes that add up to at most L1.

    Parameters
    ----------
    spectrum : Spectrum
        The tree, over fair bits (without means).
    epsilon : float
        Half of the squared error.
    n_leaves : int
        Number of leaves of the tree, s.

    Returns
    -------
    Sparsified
        Its guarantee is that of the theorem: at most `guaranteed_terms` terms of degree
        `guaranteed_degree` at most are kept, and `squared_error` is at most ``guaranteed_error``.

    Raises
    ------
    ValueError
        If epsilon is not positive, there is no leaf, or the spectrum has means.

    References
    ----------
    Kushilevitz and Mansour, "Learning decision trees using the Fourier spectrum", 1993.
    """
    epsilon = float(epsilon)
    if not 0 < epsilon <= MAX_SETTING or not 1 <= n_leaves <= MAX_SETTING:
        raise ValueError(f"epsilon and n_leaves must be positive, got {epsilon} and {n_leaves}")
    if spectrum.mean is not None:
        raise ValueError("the theorem speaks of fair bits, but the spectrum has means")
    l1_norm = spectrum.l1_norm
    least = epsilon / l1_norm if l1_norm > 0 else 0.0
    is_large = np.sqrt(spectrum.squares) >= least
    degree = proven_degree(n_leaves, epsilon)
    kept = np.flatnonzero(is_large & (spectrum.sizes <= degree))
    return _kept(spectrum, kept, n_leaves, 2 * epsilon)


def proven_degree(n_leaves: int, epsilon: float) -> int:
    """Degree at which a tree of so many leaves is within epsilon, by the theorem."""
    return ceil(max(log2(n_leaves) - log2(epsilon), 0.0))  # an infinite epsilon needs none


def _kept(
    spectrum: Spectrum, kept: Any, n_leaves: int | None, guaranteed_error: float | None = None
) -> Sparsified:
    """Keep some terms; guaranteed_error: that of the theorem, None: what they have."""
    is_kept = np.zeros(len(spectrum), dtype=bool)
    is_kept[kept] = True
    others = spectrum.only(~is_kept)
    error = others.squared_norm
    proven = error if guaranteed_error is None else guaranteed_error
    terms = 2 * spectrum.l1_norm**2 / proven if proven > 0 else np.inf
    degree = None
    if n_leaves is not None and proven / 2 > 0:
        degree = proven_degree(n_leaves, proven / 2)
    told = error, others.sup_norm_bound, proven, terms, degree
    return Sparsified(spectrum.only(is_kept), *told)


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
    """Compare with what a function says of rows that had no part in the choice of terms.

    Parameters
    ----------
    spectrum : Spectrum
        Terms; what they say is clipped to the range of the values.
    X : array-like of shape (n, p)
        Rows, drawn independently, which nothing of the spectrum was learned from.
    values : array-like of shape (n,) or (n, K)
        What the function says of them, or labels.
    low, high : float
        Range of each value.
    delta : float
        Probability that the bound fails.

    Returns
    -------
    mean : float
        Mean squared difference on these rows, summed over the K values.
    bound : float
        Bound on its expectation over rows from where these came, with probability 1 - delta, by the
        empirical Bernstein inequality.

    Raises
    ------
    ValueError
        If there are fewer than 2 rows, values lie outside the range or the range is wider than 1e70, or
        delta is not in 0 .. 1.

    References
    ----------
    Maurer and Pontil, "Empirical Bernstein bounds and sample-variance penalization", 2009.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta}")
    low, high = float(low), float(high)
    if not high - low <= _WIDEST:
        raise ValueError(f"low and high must be at most {_WIDEST:g} apart, got {low!r}, {high!r}")
    given = to_array("values", values)
    numbers = given[:, None] if given.ndim == 1 else given
    truth = check_column("values", numbers, "float64", (None, spectrum.n_outputs))
    if not ((truth >= low) & (truth <= high)).all():
        raise ValueError(f"values must lie in {low:g} .. {high:g}")
    said = np.clip(spectrum.evaluate(X), low, high)
    if len(said) != len(truth):
        raise ValueError(f"X has {len(said)} rows, but values has {len(truth)}")
    if len(said) < 2:
        raise ValueError(f"a bound needs at least 2 rows, got {len(said)}")
    differences: Float64 = ((said - truth) ** 2).sum(axis=1)
    mean, width = float(differences.mean()), spectrum.n_outputs * (high - low) ** 2
    variance = float(differences.var(ddof=1))
    return mean, empirical_bernstein(mean, variance, len(said), width, log(delta))
