"""Coefficients of small sets from random examples, by Linial, Mansour and Nisan."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.boolean.bits import Bits, TwoValued, coding_of
from certree.boolean.queries import expect_probability
from certree.boolean.sets import low_degree_sets, members_of, number_of_sets
from certree.boolean.spectrum import Spectrum, characters
from certree.interface.arrays import Float64, UInt64, check_column, check_nonnegative, to_array
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads

# So many sets, or numbers of a block of them, fit into memory.
_MOST_SETS, _BLOCK = 1 << 24, 1 << 22

Kept = Literal["all", "proven", "practical"]


@dataclass(frozen=True, slots=True, eq=False)
class LowDegree:
    """Estimates of the coefficients of small sets, and how good they are.

    Parameters
    ----------
    spectrum : Spectrum
        The terms that are kept.
    n_sets : int
        Number of sets of the degree, N.
    radius : float
        With probability 1 - delta, no estimate is further than this from its coefficient:
        ``b = largest sqrt(2 ln(2 N / delta) / m)`` for m examples (Hoeffding).
    keep : {"all", "proven", "practical"}
        Which terms are kept.
    """

    spectrum: Spectrum
    n_sets: int
    radius: float
    keep: Kept

    def error_bound(self, weight_above: float = 0.0, l1_norm: float | None = None) -> float:
        """Bound the mean squared difference to what the examples are values of.

        Parameters
        ----------
        weight_above : float
            Sum of the squares of the coefficients of larger sets, which are not estimated.
        l1_norm : float or None
            Sum of the sizes of the coefficients of these sets, such as the number of leaves of a tree
            with values of size 1; None: not known.

        Returns
        -------
        float
            ``weight_above + N b^2`` if all terms are kept. If those of size ``sqrt(2) b`` are:
            ``weight_above + (1 + sqrt(2)) b min(l1_norm, (1 + sqrt(2)) b N)``. It holds with
            probability 1 - delta for examples drawn uniformly.

        Raises
        ------
        ValueError
            If terms are kept by the practical threshold, which nothing is proven of.
        """
        if self.keep == "practical":
            raise ValueError('keep="practical" has no proven bound: use "proven" or "all"')
        if self.keep == "all":
            return weight_above + self.n_sets * self.radius**2
        step = (1 + sqrt(2)) * self.radius
        size = step * self.n_sets if l1_norm is None else min(l1_norm, step * self.n_sets)
        return weight_above + step * size


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
        Rows drawn uniformly: features are fair and independent. On other rows these means are no
        coefficients; `FourierRegressor` takes any.
    y : array-like of shape (m,)
        Value at each row, or a number of that expectation.
    degree : int
        Number of features of the largest sets.
    keep : {"proven", "all", "practical"}
        Keep terms of size ``sqrt(2) b`` and more, where b is the radius: what is then proven depends
        on the number of features by its logarithm only. "all": keep all terms. "practical": those of
        size ``sqrt(2 ln(N) / m)`` times the root mean square of y, which mere noise rarely reaches.
    coding : {"auto", "0/1", "-1/+1"}
        The two values of features.
    largest : float
        No y is larger in size; at most 1e150, whose square is a number.
    delta : float
        Probability that the bound fails.
    n_jobs : int or None
        Number of threads; None is one, -1 all.

    Returns
    -------
    LowDegree

    Raises
    ------
    TypeError
        If X or y is not numeric.
    ValueError
        If features have other values, y is larger, or there are too many sets; if `largest` is negative
        or larger than it may be.

    References
    ----------
    Linial, Mansour and Nisan, "Constant depth circuits, Fourier transform, and learnability", 1993. The
    bound for terms above a threshold is ours.
    """
    expect_probability(delta)
    largest = check_nonnegative("largest", largest)
    rows, target = to_array("X", X), check_column("y", y, "float64", (None,))
    bits = Bits.two_valued(
        rows.shape[1] if rows.ndim == 2 else 0, coding_of(rows) if coding == "auto" else coding
    )
    signs = bits.signs(rows)
    if len(target) != signs.shape[1] or not len(target):
        raise ValueError(f"X has {signs.shape[1]} rows, but y has {len(target)}")
    if not np.abs(target).max() <= largest:
        raise ValueError(f"y must be of size {largest:g} at most (largest)")
    n_sets = number_of_sets(len(bits), degree)
    if degree < 0 or n_sets > _MOST_SETS:
        raise ValueError(
            f"degree must be at least 0 and leave at most {_MOST_SETS} sets, got {degree}"
        )
    sets = low_degree_sets(len(bits), degree)
    found = correlations(sets, signs, target[:, None], get_n_threads(n_jobs))
    radius = largest * sqrt(2 * (log(2 * n_sets) - log(delta)) / len(target))
    least = {
        "all": 0.0,
        "proven": sqrt(2) * radius,
        "practical": practical_threshold(target, n_sets),
    }
    kept = np.abs(found[:, 0]) >= least[keep]
    return LowDegree(Spectrum.of(sets[kept], found[kept], bits), n_sets, radius, keep)


def practical_threshold(y: Float64, n_sets: int) -> float:
    """What the largest of so many means of noise hardly exceeds."""
    return sqrt(2 * log(max(n_sets, 2)) / len(y) * float((y**2).mean()))


def correlations(
    sets: UInt64, signs: Float64, targets: NDArray[np.float64], n_threads: int
) -> Float64:
    """Means of targets (m, K) times the character of each set, (k, K)."""
    width = max(_BLOCK // signs.shape[1], 1)
    parts = [
        characters(members_of(sets[first : first + width], len(signs)), signs, None, n_threads)
        @ targets
        for first in range(0, len(sets), width)
    ]
    return np.concatenate(parts) / signs.shape[1]
