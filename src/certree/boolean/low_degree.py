"""Coefficients of small sets, estimated from random examples, by Linial, Mansour and Nisan."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.boolean.bits import Bits, TwoValued, infer_coding
from certree.boolean.query_counter import expect_probability
from certree.boolean.sets import build_membership_matrix, count_sets, enumerate_sets
from certree.boolean.spectrum import Spectrum, compute_characters
from certree.interface.arrays import Float64, UInt64, check_column, check_nonnegative, to_array
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads

# Largest number of sets, and number of characters that are held in memory at a time.
_MAX_SETS, _BLOCK = 1 << 24, 1 << 22

Kept = Literal["all", "proven", "practical"]


@dataclass(frozen=True, slots=True, eq=False)
class LowDegree:
    """Estimates of the coefficients of small sets, with bounds on their errors.

    Parameters
    ----------
    spectrum : Spectrum
        The terms that are kept.
    n_sets : int
        Number of estimated coefficients, N: one for each set of at most `degree` features.
    radius : float
        With probability 1 - delta, all estimates are within this distance of their coefficients:
        ``b = largest sqrt(2 ln(2 N / delta) / m)`` for m examples (Hoeffding).
    keep : {"all", "proven", "practical"}
        The rule by which terms are kept; see `low_degree`.
    """

    spectrum: Spectrum
    n_sets: int
    radius: float
    keep: Kept

    def error_bound(self, weight_above: float = 0.0, l1_norm: float | None = None) -> float:
        """Bound the mean squared difference between the spectrum and the function of the examples.

        Parameters
        ----------
        weight_above : float
            Sum of the squares of the coefficients of larger sets, which are not estimated.
        l1_norm : float or None
            Upper bound on the sum of the sizes of all estimated coefficients, for instance the number
            of leaves of a tree with values of size at most 1; None: unknown.

        Returns
        -------
        float
            The bound, which holds with probability 1 - delta for examples drawn uniformly:
            ``weight_above + N b^2`` for keep="all", and for keep="proven"
            ``weight_above + (1 + sqrt(2)) b min(l1_norm, (1 + sqrt(2)) b N)``.

        Raises
        ------
        ValueError
            If `keep` is "practical", for which nothing is proven.
        """
        if self.keep == "practical":
            raise ValueError(
                'keep must be "proven" or "all" for an error bound, got "practical", which has no '
                "proven bound"
            )
        if self.keep == "all":
            return weight_above + self.n_sets * self.radius**2
        step = (1 + sqrt(2)) * self.radius
        l1_bound = step * self.n_sets if l1_norm is None else min(l1_norm, step * self.n_sets)
        return weight_above + step * l1_bound


@validate_arguments
def low_degree(
    X: ArrayLike,
    y: ArrayLike,
    degree: int,
    *,
    keep: Kept = "proven",
    coding: TwoValued | Literal["auto"] = "auto",
    largest: float = 1.0,
    delta: float = 0.05,
    n_jobs: int | None = None,
) -> LowDegree:
    """Estimate the coefficients of all sets of at most `degree` features, as means over examples.

    Parameters
    ----------
    X : array-like of shape (m, p)
        Rows drawn uniformly: features are independent and both values are equally frequent. Use
        `FourierRegressor` for other rows, where these means are not coefficients.
    y : array-like of shape (m,)
        Value of the function at each row, possibly with noise of mean 0.
    degree : int
        Number of features of the largest sets.
    keep : {"proven", "all", "practical"}
        The terms that are kept. "proven": those of size ``sqrt(2) b`` and more, where b is the radius;
        the bound then grows with the logarithm of the number of sets. "all": all terms. "practical":
        those of size ``sqrt(2 ln(N) / m)`` times the root mean square of y, which noise rarely reaches.
    coding : {"auto", "0/1", "-1/+1"}
        The two values of features; "auto" infers them from X.
    largest : float
        Upper bound on the size of y, at most 1e150.
    delta : float
        Probability that the bound fails.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    LowDegree
        The terms that are kept, with a bound on their errors.

    Raises
    ------
    TypeError
        If X or y is not numeric.
    ValueError
        If features have other values, y is above `largest`, there are too many sets, or `largest` is
        negative or above 1e150.

    References
    ----------
    Linial, Mansour and Nisan, "Constant depth circuits, Fourier transform, and learnability", 1993. The
    bound for terms above a threshold is ours.
    """
    expect_probability(delta)
    largest = check_nonnegative("largest", largest)
    rows, target = to_array("X", X), check_column("y", y, "float64", (None,))
    bits = Bits.two_valued(
        rows.shape[1] if rows.ndim == 2 else 0, infer_coding(rows) if coding == "auto" else coding
    )
    signs = bits.signs(rows)
    if len(target) != signs.shape[1] or not len(target):
        raise ValueError(f"X has {signs.shape[1]} rows, but y has {len(target)}")
    if not np.abs(target).max() <= largest:
        raise ValueError(
            f"y must be of size {largest:g} at most (largest), got {np.abs(target).max():g}: set "
            "largest to an upper bound"
        )
    n_sets = count_sets(len(bits), degree)
    if degree < 0 or n_sets > _MAX_SETS:
        raise ValueError(
            f"degree must be at least 0 and leave at most {_MAX_SETS} sets, got {degree}"
        )
    sets = enumerate_sets(len(bits), degree)
    estimates = compute_correlations(sets, signs, target[:, None], get_n_threads(n_jobs))
    radius = largest * sqrt(2 * (log(2 * n_sets) - log(delta)) / len(target))
    smallest = {
        "all": 0.0,
        "proven": sqrt(2) * radius,
        "practical": compute_practical_threshold(target, n_sets),
    }
    is_kept = np.abs(estimates[:, 0]) >= smallest[keep]
    spectrum = Spectrum.from_terms(sets[is_kept], estimates[is_kept], bits)
    return LowDegree(spectrum, n_sets, radius, keep)


def compute_practical_threshold(y: Float64, n_sets: int) -> float:
    """Return the size that the largest of `n_sets` estimates rarely exceeds if y is only noise."""
    return sqrt(2 * log(max(n_sets, 2)) / len(y) * float((y**2).mean()))


def compute_correlations(
    sets: UInt64, signs: Float64, targets: NDArray[np.float64], n_threads: int
) -> Float64:
    """Compute the mean of each target times the character of each set.

    Parameters
    ----------
    sets : ndarray of uint64, shape (k, W)
        Set masks.
    signs : ndarray of float64, shape (n_bits, m)
        Bits of the rows; see `Bits.signs`.
    targets : ndarray of float64, shape (m, K)
    n_threads : int

    Returns
    -------
    ndarray of float64, shape (k, K)
    """
    width = max(_BLOCK // signs.shape[1], 1)
    blocks = [
        compute_characters(build_membership_matrix(block, len(signs)), signs, None, n_threads)
        @ targets
        for block in (sets[first : first + width] for first in range(0, len(sets), width))
    ]
    return np.concatenate(blocks) / signs.shape[1]
