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
    """Estimated Fourier coefficients of all small sets of features, with a bound on their errors.

    Made by `low_degree`. A coefficient belongs to a set of features: it is the mean over all rows
    of the function's value times the product of the signs of these features. The size of a number
    is its absolute value.

    Parameters
    ----------
    spectrum : Spectrum
        The terms that are kept.
    n_sets : int
        Number of estimated coefficients, N: one for each set of at most `degree` features, the
        argument of `low_degree`.
    radius : float
        With probability 1 - delta, all estimates are within this distance of their coefficients:
        ``b = largest sqrt(2 ln(2 N / delta) / m)`` for m examples (Hoeffding). delta and `largest`,
        a bound on the size of y, are arguments of `low_degree`.
    keep : {"all", "proven", "practical"}
        Which terms are kept. "all": all. "proven": those of size ``sqrt(2) b`` and more.
        "practical": those of at least ``sqrt(2 ln(N) / m)`` times the root mean square of y, which
        are larger than the largest would be if y were only noise; there is no proven bound on the
        error for these.
    """

    spectrum: Spectrum
    n_sets: int
    radius: float
    keep: Kept

    def error_bound(self, weight_above: float, l1_norm: float | None = None) -> float:
        """Bound the mean squared difference between the estimated spectrum and the true function.

        N is the number of estimated coefficients, `n_sets`; b is the largest error of an estimate,
        `radius`; delta is the argument of `low_degree`.

        Parameters
        ----------
        weight_above : float
            Sum of the squares of the coefficients of larger sets, which are not estimated: 0 for a
            function of at most `degree` features per term, such as a tree of this depth. If nothing
            is known of the function, its mean square is an upper bound: 1 for values -1 and 1.
        l1_norm : float or None
            Upper bound on the sum of the sizes of all estimated coefficients, for instance the
            number of leaves of a tree with values of size at most 1. None: unknown; the bound for
            keep="proven" is then larger than that for keep="all", as it grows with N.

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
    """Estimate the Fourier coefficients of all sets of at most `degree` features from examples.

    The coefficient of a set is the mean over all rows of the function's value times the product of
    the signs (-1 or 1) of the set's features. Terms with small estimates are dropped, as `keep`
    says. The size of a number is its absolute value.

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
        The terms that are kept. "proven": those of size ``sqrt(2) b`` and more, where b is
        `LowDegree.radius`. If the sizes of all coefficients sum to at most `l1_norm`, an argument
        of `LowDegree.error_bound`, the bound on the error is ``(1 + sqrt(2)) b l1_norm``, which
        grows only with the root of the logarithm of the number N of sets. Without `l1_norm` it is
        ``(1 + sqrt(2))^2 N b^2``, more than the ``N b^2`` of "all". "all": all terms. "practical":
        those of size ``sqrt(2 ln(N) / m)`` times the root mean square of y, and more. If y were
        only noise, no coefficient would be that large in most samples. There is no proven bound for
        these.
    coding : {"auto", "0/1", "-1/+1"}
        The two values of features; "auto" infers them from X.
    largest : float
        Upper bound on the size of y, at most 1e150.
    delta : float
        Probability that the bounds `radius` and `error_bound` of the result fail.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    LowDegree
        The terms that are kept. Its method `error_bound` bounds the mean squared error of their
        sum; pass `l1_norm` to it with keep="proven".

    Raises
    ------
    TypeError
        If X or y is not numeric.
    ValueError
        If X has values outside `coding`, a value of y is larger than `largest` in size, there are
        more than 2^24 sets, or `largest` is negative or above 1e150.

    References
    ----------
    Linial, Mansour and Nisan, "Constant depth circuits, Fourier transform, and learnability", 1993.
    The bound for terms above a threshold is ours.
    """
    expect_probability(delta)
    largest = check_nonnegative("largest", largest)
    rows, target = to_array("X", X), check_column("y", y, "float64", (None,))
    bits = Bits.two_valued(
        rows.shape[1] if rows.ndim == 2 else 0, infer_coding(rows) if coding == "auto" else coding
    )
    signs = bits.signs(rows)
    if len(target) != signs.shape[1] or not len(target):
        raise ValueError(
            f"X and y must have equal numbers of rows, at least 1, got {signs.shape[1]} and "
            f"{len(target)}"
        )
    if not np.abs(target).max() <= largest:
        raise ValueError(
            f"y must have absolute values of at most largest={largest:g}, got "
            f"{np.abs(target).max():g}: set largest to an upper bound"
        )
    n_sets = count_sets(len(bits), degree)
    if degree < 0 or n_sets > _MAX_SETS:
        raise ValueError(
            f"degree must be at least 0 and small enough that {len(bits)} features have at most "
            f"{_MAX_SETS} sets of at most that size, got {degree}"
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
    """Return the size that the largest of `n_sets` coefficients rarely exceeds if y is only noise.

    A coefficient is the mean of y times a product of signs; its size is the absolute value. y:
    targets, (m,). The size is sqrt(2 ln(max(n_sets, 2)) / m) times the root mean square of y.
    """
    return sqrt(2 * log(max(n_sets, 2)) / len(y) * float((y**2).mean()))


def compute_correlations(
    sets: UInt64, signs: Float64, targets: NDArray[np.float64], n_threads: int
) -> Float64:
    """Compute the mean over rows of each target times the product of the signs of each set's bits.

    Parameters
    ----------
    sets : ndarray of uint64, shape (k, W)
        Masks of k sets, of W = ceil(n_bits / 64) words: bit j belongs to a set if bit j % 64 of
        word j // 64 is 1.
    signs : ndarray of float64, shape (n_bits, m)
        -1 or 1 for each bit of each of m rows, as `Bits.signs` returns them: a bit b has the sign
        (-1)^b.
    targets : ndarray of float64, shape (m, K)
        K numbers for each row.
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of float64, shape (k, K)
        Mean for each set and target.
    """
    width = max(_BLOCK // signs.shape[1], 1)
    blocks = [
        compute_characters(build_membership_matrix(block, len(signs)), signs, None, n_threads)
        @ targets
        for block in (sets[first : first + width] for first in range(0, len(sets), width))
    ]
    return np.concatenate(blocks) / signs.shape[1]
