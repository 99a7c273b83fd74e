"""Polynomials over bits: sets, their coefficients, and what can be read off them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from certree._core import multiply_features
from certree.boolean.bits import Bits
from certree.boolean.sets import ascending, members_of, n_words, starts_of_equal
from certree.interface.arrays import ArrayRecord, Float64, Int64, UInt64, check_column, to_array
from certree.interface.extras import import_extra
from certree.interface.signatures import validate_arguments, validate_settings
from certree.interface.threads import get_n_threads

# Products of features that are made at a time.
_BLOCK = 1 << 22
# So many terms are shown.
_SHOWN = 10
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Spectrum(ArrayRecord):
    """A function of bits as a sum of characters, which are products of features.

    With x = (-1)^b for a bit b (see `Bits`)::

        f(x) = sum over S of coefficient[S] prod over j in S of phi_j,    phi_j = x_j

    That is the Fourier expansion of f over fair independent bits. Where features have means, it is
    that over independent bits of these means, with ``phi_j = (x_j - mean_j) / sqrt(1 - mean_j^2)``.
    Characters are orthonormal under these distributions, so squares of coefficients add up to squares
    of functions (Parseval). f has K values, such as one for each class.

    Parameters
    ----------
    masks : ndarray of uint64, shape (k, W)
        The sets: bit j is bit j % 64 of word j // 64. They are distinct and ascend, by their last word
        first; `of` brings any into this order.
    coefficients : array-like of float, shape (k, K)
        The coefficients of each.
    bits : Bits
        What the bits are.
    mean : array-like of float, shape (n_bits,), or None
        Means of the x_j, between -1 and 1; None: 0.

    Raises
    ------
    TypeError
        If a column's dtype does not convert without loss.
    ValueError
        If sets are not in order or hold other bits, or numbers are not finite.
    """

    masks: UInt64
    coefficients: Float64
    bits: Bits
    mean: Float64 | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        self._check("uint64", (None, n_words(len(self.bits))), "masks")
        self._check("float64", (len(self.masks), None), "coefficients")
        if not self.coefficients.shape[1] or not np.isfinite(self.coefficients).all():
            raise ValueError("coefficients must be finite numbers, one column at least")
        last_bits = len(self.bits) % 64
        if last_bits and (self.masks[:, -1] >> np.uint64(last_bits)).any():
            raise ValueError(f"sets must be of {len(self.bits)} bits")
        in_order = np.array_equal(ascending(self.masks), np.arange(len(self.masks)))
        if not in_order or len(starts_of_equal(self.masks)) < len(self.masks):
            raise ValueError("sets must be distinct and ascend; Spectrum.of puts them in order")
        if self.mean is not None:
            object.__setattr__(self, "mean", means_of(self.mean, len(self.bits)))

    @classmethod
    def of(
        cls, masks: UInt64, coefficients: Float64, bits: Bits, mean: Float64 | None = None
    ) -> Spectrum:
        """Put sets in order; the coefficients of those that are equal are added."""
        order = ascending(masks)
        masks, coefficients = masks[order], coefficients[order]
        starts = starts_of_equal(masks)
        if len(starts) < len(masks):
            coefficients = np.add.reduceat(coefficients, starts, axis=0)
        return cls(masks[starts], coefficients, bits, mean)

    # -- its terms ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def n_outputs(self) -> int:
        """Number of values of the function, K."""
        return self.coefficients.shape[1]

    @cached_property
    def members(self) -> sparse.csr_matrix:
        """Which bits each set has, a sparse matrix (k, n_bits) of ones."""
        return members_of(self.masks, len(self.bits))

    @cached_property
    def sizes(self) -> Int64:
        """Number of bits of each set, (k,)."""
        return np.diff(self.members.indptr).astype(np.int64)

    def sets(self) -> Iterator[tuple[int, ...]]:
        """Give the bits of each set, in the order of the terms."""
        parts = np.split(self.members.indices, self.members.indptr[1:-1])
        return (tuple(part.tolist()) for part in parts[: len(self)])

    def coefficient(self, bits: Sequence[int]) -> Float64:
        """Give the coefficients (K,) of one set of bits; 0 if it is no term."""
        for place, one in enumerate(self.sets()):
            if one == tuple(sorted(bits)):
                return self.coefficients[place]
        return np.zeros(self.n_outputs)

    @cached_property
    def squares(self) -> Float64:
        """Square of each term, (k,): of its K coefficients together."""
        with np.errstate(over="ignore"):
            squares: Float64 = (self.coefficients**2).sum(axis=1)
        return squares

    @property
    def sparsity(self) -> int:
        """Number of terms that are not 0."""
        return int(np.count_nonzero(self.squares))

    @property
    def degree(self) -> int:
        """Number of bits of the largest set whose coefficient is not 0."""
        return int(self.sizes[self.squares > 0].max(initial=0))

    @property
    def l1_norm(self) -> float:
        """Sum of the sizes of all coefficients, each the norm of K numbers."""
        return float(np.sqrt(self.squares).sum())

    @property
    def squared_norm(self) -> float:
        """Mean of the square of the function, which is the sum of all squares (Parseval)."""
        return float(self.squares.sum())

    @property
    def variance(self) -> float:
        """Variance of the function, summed over its K values."""
        return float(self.squares[self.sizes > 0].sum())

    @property
    def sup_norm_bound(self) -> float:
        """Bound on the size of the function at any row: the sum of the largest sizes of its terms."""
        if self.mean is None:
            return self.l1_norm
        highest = np.log((1 + np.abs(self.mean)) / np.sqrt((1 - self.mean) * (1 + self.mean)))
        return float((np.sqrt(self.squares) * np.exp(self.members @ highest)).sum())

    # -- arithmetic --------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Spectrum:
        if not isinstance(other, Spectrum):
            return NotImplemented
        same_means = np.array_equal(self._means, other._means)
        if not self.bits.equals(other.bits) or not same_means:
            raise ValueError("spectra can be added only if they are over the same bits and means")
        if self.n_outputs != other.n_outputs:
            raise ValueError(f"spectra have {self.n_outputs} and {other.n_outputs} values")
        masks = np.concatenate([self.masks, other.masks])
        coefficients = np.concatenate([self.coefficients, other.coefficients])
        return Spectrum.of(masks, coefficients, self.bits, self.mean)

    def __mul__(self, factor: Any) -> Spectrum:
        if not isinstance(factor, Real):
            return NotImplemented
        return replace(self, coefficients=self.coefficients * float(factor))

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Spectrum:
        if not isinstance(other, Spectrum):
            return NotImplemented
        return self + -1.0 * other

    def only(self, kept: NDArray[Any]) -> Spectrum:
        """Keep some of the terms: a mask, or ascending places."""
        return replace(self, masks=self.masks[kept], coefficients=self.coefficients[kept])

    @validate_arguments
    def truncate(self, degree: int) -> Spectrum:
        """Keep the terms of at most `degree` bits: the nearest function of that degree."""
        return self.only(self.sizes <= degree)

    # -- values ------------------------------------------------------------------------------------

    @property
    def _means(self) -> Float64:
        return np.zeros(len(self.bits)) if self.mean is None else self.mean

    @validate_arguments
    def evaluate(self, X: ArrayLike, *, n_jobs: int | None = None) -> Float64:
        """Give the values of the function.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        n_jobs : int or None
            Number of threads; None is one, -1 all.

        Returns
        -------
        ndarray of float64, shape (n, K)

        Raises
        ------
        TypeError
            If X is not numeric.
        ValueError
            If X has another number of features, a missing value, or values that `bits` has not; if a
            value is beyond float64.
        """
        rows, n_threads = np.atleast_1d(to_array("X", X)), get_n_threads(n_jobs)
        width = max(_BLOCK // max(len(self), len(self.bits)), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [
                self._sums(self.bits.signs(rows[first : first + width]), n_threads)
                for first in range(0, max(len(rows), 1), width)
            ]
        values = np.concatenate(parts)
        if not np.isfinite(values).all():
            raise ValueError("coefficients must sum up to numbers of float64, and here some do not")
        return values

    def characters(self, signs: Float64, n_threads: int = 1) -> Float64:
        """Give the character of each term (k, n) at rows whose signs (n_bits, n) are given."""
        return characters(self.members, signs, self.mean, n_threads)

    def _sums(self, signs: Float64, n_threads: int) -> Float64:
        """Values at rows whose signs are given.

        Terms are added up one after the other, as products of matrices are rounded by their size.
        """
        if not len(self):
            return np.zeros((signs.shape[1], self.coefficients.shape[1]))
        terms = self.characters(signs, n_threads)
        outputs = self.coefficients.T[:, :, None]
        return np.stack([np.add.accumulate(terms * one)[-1] for one in outputs], axis=1)

    # -- influences --------------------------------------------------------------------------------

    def _weights(self, degree: int | None) -> Float64:
        """The squares of terms, of those of at most `degree` bits."""
        return self.squares if degree is None else np.where(self.sizes <= degree, self.squares, 0)

    @validate_arguments
    def influences(self, degree: int | None = None) -> Float64:
        """Say how much of the function each bit takes part in.

        Parameters
        ----------
        degree : int or None
            Only terms of at most so many bits count; None: all.

        Returns
        -------
        ndarray of float64, shape (n_bits,)
            Sum of the squares of the terms that have the bit: the mean, over all others, of the
            variance that the bit alone causes. Of a function with values -1 and 1, over fair bits, the
            probability that the function changes with the bit.
        """
        return np.asarray(self.members.T @ self._weights(degree)).ravel()

    @validate_arguments
    def pair_influences(self, degree: int | None = None) -> Float64:
        """Say how much of the function each pair of bits takes part in together.

        Parameters
        ----------
        degree : int or None
            Only terms of at most so many bits count; None: all.

        Returns
        -------
        ndarray of float64, shape (n_bits, n_bits)
            Sum of the squares of the terms that have both; on the diagonal the influences.
        """
        weighed = sparse.diags(self._weights(degree)) @ self.members
        return np.asarray((self.members.T @ weighed).toarray())

    @validate_arguments
    def total_influence(self, degree: int | None = None) -> float:
        """Sum of all influences: the mean number of bits of a term, weighed by squares.

        Parameters
        ----------
        degree : int or None
            Only terms of at most so many bits count; None: all.

        Returns
        -------
        float
        """
        return float(self._weights(degree) @ self.sizes)

    @validate_arguments
    def noise_stability(self, rho: float) -> float:
        """Say how well the function agrees with itself when bits are drawn anew.

        Parameters
        ----------
        rho : float
            Each bit stays with this probability, 0 to 1, and is drawn anew otherwise.

        Returns
        -------
        float
            Mean of the product of both values, summed over the K outputs.

        Raises
        ------
        ValueError
            If rho is not in 0 .. 1.
        """
        if not 0 <= rho <= 1:
            raise ValueError(f"rho must lie in 0 .. 1, got {rho}")
        return float(self.squares @ float(rho) ** self.sizes)

    # -- in words ----------------------------------------------------------------------------------

    def to_frame(self, feature_names: Any = None) -> Any:
        """Give the terms as a data frame, those of the largest squares first.

        Parameters
        ----------
        feature_names : sequence of str, or None
            Names of the features; None: "x[0]", "x[1]" and so on.

        Returns
        -------
        pandas.DataFrame
            Columns "term", "size", "share" of the variance (NaN for the constant), and "coefficient",
            or "coefficient_0" and so on of a function of several values.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        order = self._largest_first()
        frame: dict[str, Any] = {"term": self._terms(order, feature_names)}
        frame["size"] = self.sizes[order]
        total = self.variance
        share = self.squares / total if total > 0 else np.zeros(len(self))
        frame["share"] = np.where(self.sizes > 0, share, np.nan)[order]
        names = [f"coefficient_{k}" for k in range(self.n_outputs)]
        for k, name in enumerate(names if self.n_outputs > 1 else ["coefficient"]):
            frame[name] = self.coefficients[order, k]
        return import_extra("pandas", "frames").DataFrame(frame)

    def _largest_first(self) -> NDArray[np.intp]:
        # Equal coefficients are usual, and rounding does not tell them apart.
        shares = np.round(self.squares / max(self.squares.max(initial=0), _TINY), 9)
        return np.lexsort([self.sizes, -shares])

    def _terms(self, places: NDArray[np.intp], feature_names: Any = None) -> list[str]:
        names, begin = self.bits.names(feature_names), self.members.indptr
        bits = [self.members.indices[begin[i] : begin[i + 1]] for i in places]
        # What stands for a character is x, -1 and 1; a condition stands in brackets.
        marked = names if self.bits.coding != "thresholds" else [f"[{name}]" for name in names]
        return [" ".join(marked[j] for j in one) or "1" for one in bits]

    def __str__(self) -> str:
        order = self._largest_first()
        shown = order[:_SHOWN]
        lines = [
            f"{len(self)} terms of degree {self.degree} over {len(self.bits)} bits, "
            f"squared norm {self.squared_norm:.6g}"
        ]
        for place, term in zip(shown, self._terms(shown), strict=True):
            numbers = ", ".join(f"{value:+.6g}" for value in self.coefficients[place])
            lines.append(f"  {numbers}  {term}")
        if len(order) > _SHOWN:
            lines.append(f"  ... and {len(order) - _SHOWN} more")
        return "\n".join(lines)


def characters(
    members: sparse.csr_matrix, signs: Float64, mean: Float64 | None, n_threads: int
) -> Float64:
    """Products of features (k, n) for sets (k, n_bits) at rows whose signs (n_bits, n) are given."""
    if mean is not None:
        deviation = np.sqrt((1 - mean) * (1 + mean))
        signs = (signs - mean[:, None]) / deviation[:, None]
    start, bits = members.indptr.astype(np.int64), members.indices.astype(np.int32)
    return multiply_features(np.ascontiguousarray(signs), start, bits, n_threads)


def means_of(values: ArrayLike, n_bits: int) -> Float64:
    """Check the means of all bits, as x = (-1)^b."""
    mean: Float64 = check_column("mean", values, "float64", (n_bits,))
    if not (np.abs(mean) < 1).all():
        raise ValueError("mean must lie between -1 and 1: a bit that never changes is no feature")
    return mean
