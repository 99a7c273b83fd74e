"""Spectra: functions of bits as sums of products, with their norms and influences."""

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
from certree.boolean.sets import argsort_masks, build_membership_matrix, count_words, find_distinct
from certree.interface.arrays import ArrayRecord, Float64, Int64, UInt64, check_column, to_array
from certree.interface.extras import import_extra
from certree.interface.signatures import validate_arguments, validate_settings
from certree.interface.threads import get_n_threads

# Number of characters that are held in memory at a time.
_BLOCK = 1 << 22
# Number of terms that `str` shows.
_MAX_SHOWN = 10
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Spectrum(ArrayRecord):
    """A function of the bits of a row, as a sum of terms: a coefficient times a product of signs.

    Each term belongs to a set S of bits. With the sign x = (-1)^b of a bit b (see `Bits`), the
    function is::

        f(x) = sum over S of coefficient[S] prod over j in S of phi_j,    phi_j = x_j

    The product over a set is its character. This is the Fourier expansion of f over independent
    bits that are 0 and 1 with probability 1/2 each (O'Donnell, "Analysis of Boolean Functions",
    2014, chapter 1). With `mean`, it is the expansion over independent bits of these means (chapter
    8), where ``phi_j = (x_j - mean_j) / sqrt(1 - mean_j^2)``. Characters are orthonormal under
    these distributions, so the sum of the squares of the coefficients is the mean square of f
    (Parseval). f returns K numbers (outputs), for instance one for each class. `spectrum` computes
    the spectrum of a fitted tree model.

    Parameters
    ----------
    masks : ndarray of uint64, shape (k, W)
        The set of bits of each of k terms, as a mask of W = ceil(n_bits / 64) words: bit number j
        belongs to the set if bit j % 64 of word j // 64 is 1. The masks must be distinct and sorted
        by their last word first; `from_terms` sorts them.
    coefficients : array-like of float, shape (k, K)
        Coefficients of each term, one for each output.
    bits : Bits
        The features and thresholds that define the n_bits bits.
    mean : array-like of float, shape (n_bits,), or None
        Means of the signs x_j, strictly between -1 and 1; None: all are 0.

    Raises
    ------
    TypeError
        If an array's dtype does not convert to that of the parameter without loss.
    ValueError
        If masks are not sorted and distinct or have bits beyond `bits`, or numbers are not finite.
    """

    masks: UInt64
    coefficients: Float64
    bits: Bits
    mean: Float64 | None = None

    def __post_init__(self) -> None:
        validate_settings(self)
        self._check("uint64", (None, count_words(len(self.bits))), "masks")
        self._check("float64", (len(self.masks), None), "coefficients")
        if not self.coefficients.shape[1] or not np.isfinite(self.coefficients).all():
            raise ValueError(
                "coefficients must be finite numbers, with at least one column (output), got "
                f"shape {self.coefficients.shape}, or NaN or infinity in it"
            )
        last_bits = len(self.bits) % 64
        if last_bits and (self.masks[:, -1] >> np.uint64(last_bits)).any():
            raise ValueError(
                f"masks must have bits 0 .. {len(self.bits) - 1} only, got a mask with a larger "
                "bit number"
            )
        is_sorted = np.array_equal(argsort_masks(self.masks), np.arange(len(self.masks)))
        if not is_sorted or len(find_distinct(self.masks)) < len(self.masks):
            raise ValueError(
                "masks must be distinct and ascend: use Spectrum.from_terms, which sorts masks and "
                "adds the coefficients of equal ones"
            )
        if self.mean is not None:
            object.__setattr__(self, "mean", check_means(self.mean, len(self.bits)))

    @classmethod
    def from_terms(
        cls, masks: UInt64, coefficients: Float64, bits: Bits, mean: Float64 | None = None
    ) -> Spectrum:
        """Create a spectrum from terms in any order; the coefficients of equal sets of bits are added.

        Parameters
        ----------
        masks : ndarray of uint64, shape (k, W)
            The set of bits of each term: bit number j belongs to it if bit j % 64 of word j // 64
            is 1.
        coefficients : ndarray of float64, shape (k, K)
            Coefficients of each term, one for each of K outputs. A coefficient is multiplied by the
            product over the term's bits of their signs x, or with `mean` of
            ``(x - mean) / sqrt(1 - mean**2)``.
        bits : Bits
            The features and thresholds that define the bits.
        mean : ndarray of float64, shape (n_bits,), or None
            Means of the signs of the bits, strictly between -1 and 1; the sign of a bit is 1 if it
            is 0, and -1 if it is 1. None: all means are 0.

        Returns
        -------
        Spectrum
            At most k terms, with distinct sets.
        """
        order = argsort_masks(masks)
        masks, coefficients = masks[order], coefficients[order]
        starts = find_distinct(masks)
        if len(starts) < len(masks):
            coefficients = np.add.reduceat(coefficients, starts, axis=0)
        return cls(masks[starts], coefficients, bits, mean)

    # -- terms -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def n_outputs(self) -> int:
        """Number of values that this function returns for a row, K; for instance one per class."""
        return self.coefficients.shape[1]

    @cached_property
    def members(self) -> sparse.csr_matrix:
        """Bits of the set of each term, as a sparse matrix of 0 and 1, (n_terms, n_bits)."""
        return build_membership_matrix(self.masks, len(self.bits))

    @cached_property
    def sizes(self) -> Int64:
        """Number of bits in the set of each term, (n_terms,)."""
        return np.diff(self.members.indptr).astype(np.int64)

    def sets(self) -> Iterator[tuple[int, ...]]:
        """Iterate over the terms; yield each term's set as a tuple of ascending bit numbers.

        The constant has the empty tuple. Terms come in the order of `masks`.
        """
        members = np.split(self.members.indices, self.members.indptr[1:-1])
        return (tuple(bits.tolist()) for bits in members[: len(self)])

    def coefficient(self, bits: Sequence[int]) -> Float64:
        """Return the coefficients of the term with this set of bits, one for each output, (K,).

        `bits` holds the distinct bit numbers of the set in any order; () is the constant. The
        coefficients are 0 if the spectrum has no term with this set.
        """
        for i, members in enumerate(self.sets()):
            if members == tuple(sorted(bits)):
                return self.coefficients[i]
        return np.zeros(self.n_outputs)

    @cached_property
    def squares(self) -> Float64:
        """Sum of the squares of the K coefficients (one for each output) of each term, (n_terms,)."""
        with np.errstate(over="ignore"):
            squares: Float64 = (self.coefficients**2).sum(axis=1)
        return squares

    @property
    def sparsity(self) -> int:
        """Number of terms of this spectrum with a coefficient other than 0 in some output."""
        return int(np.count_nonzero(self.squares))

    @property
    def degree(self) -> int:
        """Number of bits of the largest set with a coefficient other than 0 in some output."""
        return int(self.sizes[self.squares > 0].max(initial=0))

    @property
    def l1_norm(self) -> float:
        """Sum over all terms of the Euclidean norm of their coefficients, one for each output."""
        return float(np.sqrt(self.squares).sum())

    @property
    def squared_norm(self) -> float:
        """Mean square of the function, summed over outputs, for independent bits with means `mean`.

        By Parseval's identity it is the sum of the squares of all coefficients.
        """
        return float(self.squares.sum())

    @property
    def variance(self) -> float:
        """Variance of the function, summed over outputs, for independent bits with means `mean`.

        The variance is the sum of the squares of all coefficients but that of the constant.
        """
        return float(self.squares[self.sizes > 0].sum())

    @property
    def sup_norm_bound(self) -> float:
        """Upper bound on the Euclidean norm of the function's K outputs at any row.

        The bound is the sum over the terms of the norm of their K coefficients times the largest
        absolute value that their product of signs has at any row, which is 1 without means.
        """
        if self.mean is None:
            return self.l1_norm
        log_largest = np.log((1 + np.abs(self.mean)) / np.sqrt((1 - self.mean) * (1 + self.mean)))
        return float((np.sqrt(self.squares) * np.exp(self.members @ log_largest)).sum())

    # -- arithmetic --------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Spectrum:
        if not isinstance(other, Spectrum):
            return NotImplemented
        has_same_means = np.array_equal(self._means, other._means)
        if not self.bits.equals(other.bits) or not has_same_means:
            raise ValueError(
                "spectra must have equal bits (features and thresholds) and equal mean to be added, "
                "got different ones: call spectrum for both with the same parameters coding and mean"
            )
        if self.n_outputs != other.n_outputs:
            raise ValueError(
                f"spectra must have equal numbers of outputs to be added, got {self.n_outputs} and "
                f"{other.n_outputs}"
            )
        masks = np.concatenate([self.masks, other.masks])
        coefficients = np.concatenate([self.coefficients, other.coefficients])
        return Spectrum.from_terms(masks, coefficients, self.bits, self.mean)

    def __mul__(self, factor: Any) -> Spectrum:
        if not isinstance(factor, Real):
            return NotImplemented
        return replace(self, coefficients=self.coefficients * float(factor))

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Spectrum:
        if not isinstance(other, Spectrum):
            return NotImplemented
        return self + -1.0 * other

    def select_terms(self, terms: NDArray[Any]) -> Spectrum:
        """Return a spectrum with the selected terms only.

        terms: booleans, (n_terms,), or ascending term numbers. Bits and means stay, and this
        spectrum does not change.
        """
        return replace(self, masks=self.masks[terms], coefficients=self.coefficients[terms])

    @validate_arguments
    def truncate(self, degree: int) -> Spectrum:
        """Return a spectrum with the terms whose sets have at most `degree` bits.

        Over independent bits with the spectrum's means, it has the smallest mean squared difference
        to this function among all sums of such terms.
        """
        return self.select_terms(self.sizes <= degree)

    # -- values ------------------------------------------------------------------------------------

    @property
    def _means(self) -> Float64:
        """Means of the signs of all bits, (n_bits,); zeros if `mean` is None."""
        return np.zeros(len(self.bits)) if self.mean is None else self.mean

    @validate_arguments
    def evaluate(self, X: ArrayLike, *, n_jobs: int | None = None) -> Float64:
        """Compute the values of the function at rows.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows of features, whose values `bits.coding` names: two values, or any numbers for
            "thresholds".
        n_jobs : int or None
            Number of threads; None is one, -1 all.

        Returns
        -------
        ndarray of float64, shape (n, K)
            The K outputs at each row.

        Raises
        ------
        TypeError
            If X is not numeric.
        ValueError
            If X has another number of features, a missing value, or values outside the coding of
            `bits`; if a value of the function overflows float64.
        """
        rows, n_threads = np.atleast_1d(to_array("X", X)), get_n_threads(n_jobs)
        width = max(_BLOCK // max(len(self), len(self.bits)), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            blocks = [
                self._sum_terms(self.bits.signs(rows[first : first + width]), n_threads)
                for first in range(0, max(len(rows), 1), width)
            ]
        values = np.concatenate(blocks)
        if not np.isfinite(values).all():
            raise ValueError(
                "coefficients must sum up to finite float64 numbers, got a sum that overflows: "
                "multiply the spectrum by a small number"
            )
        return values

    def compute_characters(self, signs: Float64, n_threads: int = 1) -> Float64:
        """Compute the product of the signs of each term's bits (its character) at each row.

        signs: -1 or 1 for each bit of each row, (n_bits, n_rows), as `Bits.signs` returns them. If
        the spectrum has means, they are subtracted and the difference is divided by the standard
        deviation first. n_threads: number of threads. Return an array (n_terms, n_rows).
        """
        return compute_characters(self.members, signs, self.mean, n_threads)

    def _sum_terms(self, signs: Float64, n_threads: int) -> Float64:
        """Compute the values of the K polynomials for each row, (n_rows, K).

        A term of a polynomial is its coefficient times the product of the signs of some bits. Terms
        are added one after the other, so that the result for a row does not depend on other rows.
        signs: -1 or 1 for each bit of each row, (n_bits, n_rows); n_threads: number of threads.
        """
        if not len(self):
            return np.zeros((signs.shape[1], self.coefficients.shape[1]))
        terms = self.compute_characters(signs, n_threads)
        outputs = self.coefficients.T[:, :, None]
        sums = [np.add.accumulate(terms * coefficients)[-1] for coefficients in outputs]
        return np.stack(sums, axis=1)

    # -- influences --------------------------------------------------------------------------------

    def _squares_to_degree(self, degree: int | None) -> Float64:
        """Return the squared coefficients of each term, summed over outputs, (n_terms,).

        The entry of a term whose set has more than `degree` bits is 0. degree: largest number of
        bits; None: no limit.
        """
        return self.squares if degree is None else np.where(self.sizes <= degree, self.squares, 0)

    @validate_arguments
    def influences(self, degree: int | None = None) -> Float64:
        """Compute the influence of each bit: how much of the function's variance depends on it.

        Parameters
        ----------
        degree : int or None
            Terms of more bits are ignored; None: all terms count.

        Returns
        -------
        ndarray of float64, shape (n_bits,)
            Sum of the squared coefficients of the terms whose sets contain the bit, over all
            outputs. It is the variance of the function over this bit, averaged over all other bits.
            Without means, for a function with the values -1 and 1, it is the probability that
            flipping the bit changes the value.
        """
        return np.asarray(self.members.T @ self._squares_to_degree(degree)).ravel()

    @validate_arguments
    def pair_influences(self, degree: int | None = None) -> Float64:
        """Compute the joint influence of each pair of bits.

        Parameters
        ----------
        degree : int or None
            Terms of more bits are ignored; None: all terms count.

        Returns
        -------
        ndarray of float64, shape (n_bits, n_bits)
            Sum of the squared coefficients of the terms whose sets contain both bits, over all
            outputs. The matrix is symmetric; its diagonal has the influences of single bits.
        """
        weighted = sparse.diags(self._squares_to_degree(degree)) @ self.members
        return np.asarray((self.members.T @ weighted).toarray())

    @validate_arguments
    def total_influence(self, degree: int | None = None) -> float:
        """Compute the sum of the influences of all bits, a measure of how complex the function is.

        The total influence is the sum over the terms of the number of their bits times their
        squared coefficients.

        Parameters
        ----------
        degree : int or None
            Terms of more bits are ignored; None: all terms count.

        Returns
        -------
        float
            The sum, over all outputs.
        """
        return float(self._squares_to_degree(degree) @ self.sizes)

    @validate_arguments
    def noise_stability(self, rho: float) -> float:
        """Compute the noise stability: the mean product of values at a row and at a noisy copy.

        The noise stability is the sum over the terms of rho^size times the squared coefficients,
        where size is the number of bits.

        Parameters
        ----------
        rho : float
            Probability, 0 to 1, with which the copy keeps each bit; other bits are drawn again,
            independently.

        Returns
        -------
        float
            The mean over random rows of independent bits, summed over the K outputs.

        Raises
        ------
        ValueError
            If rho is not in 0 .. 1.
        """
        if not 0 <= rho <= 1:
            raise ValueError(f"rho must lie in 0 .. 1, got {rho}")
        return float(self.squares @ float(rho) ** self.sizes)

    # -- display -----------------------------------------------------------------------------------

    def to_frame(self, feature_names: Any = None) -> Any:
        """Return the terms as a data frame, one line for each, largest squared coefficient first.

        Parameters
        ----------
        feature_names : sequence of str, or None
            Names of the features; None: "x[0]", "x[1]" and so on.

        Returns
        -------
        pandas.DataFrame
            Columns "term", the names of the multiplied bits ("1" for the constant); "size", the
            number of bits; "share", the squared coefficient as a fraction of the function's
            variance (NaN for the constant); and "coefficient", or "coefficient_0" and so on if
            there are several outputs.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        order = self._order_by_size()
        frame: dict[str, Any] = {"term": self._format_terms(order, feature_names)}
        frame["size"] = self.sizes[order]
        variance = self.variance
        fractions = self.squares / variance if variance > 0 else np.zeros(len(self))
        frame["share"] = np.where(self.sizes > 0, fractions, np.nan)[order]
        names = [f"coefficient_{k}" for k in range(self.n_outputs)]
        for k, name in enumerate(names if self.n_outputs > 1 else ["coefficient"]):
            frame[name] = self.coefficients[order, k]
        return import_extra("pandas", "frames").DataFrame(frame)

    def _order_by_size(self) -> NDArray[np.intp]:
        """Return all term numbers, (n_terms,), sorted by squared coefficient, largest first.

        Terms with equal squares, up to nine digits, are sorted by number of bits, fewest first.
        """
        # Equal coefficients are common; squares are rounded so that they count as equal.
        rounded = np.round(self.squares / max(self.squares.max(initial=0), _TINY), 9)
        return np.lexsort([self.sizes, -rounded])

    def _format_terms(self, terms: NDArray[np.intp], feature_names: Any = None) -> list[str]:
        """Format terms as products of bit names, such as "x[0] x[2]"; "1" for the constant.

        terms: numbers of the terms, (k,); feature_names: names of the features, or None for "x[0]",
        "x[1]" and so on. Return k strings.
        """
        names, start = self.bits.names(feature_names), self.members.indptr
        sets = [self.members.indices[start[i] : start[i + 1]] for i in terms]
        # Brackets mark a condition that stands for its sign.
        factors = names if self.bits.coding != "thresholds" else [f"[{name}]" for name in names]
        return [" ".join(factors[j] for j in members) or "1" for members in sets]

    def __str__(self) -> str:
        order = self._order_by_size()
        shown = order[:_MAX_SHOWN]
        lines = [
            f"{len(self)} terms of degree {self.degree} over {len(self.bits)} bits, "
            f"squared norm {self.squared_norm:.6g}"
        ]
        for i, term in zip(shown, self._format_terms(shown), strict=True):
            numbers = ", ".join(f"{value:+.6g}" for value in self.coefficients[i])
            lines.append(f"  {numbers}  {term}")
        if len(order) > _MAX_SHOWN:
            lines.append(f"  ... and {len(order) - _MAX_SHOWN} more")
        return "\n".join(lines)


def compute_characters(
    members: sparse.csr_matrix, signs: Float64, mean: Float64 | None, n_threads: int
) -> Float64:
    """Compute the character of each set of bits at each row: the product of the signs of its bits.

    Parameters
    ----------
    members : csr_matrix of shape (k, n_bits)
        1 where a bit belongs to a set, for each of k sets.
    signs : ndarray of float64, shape (n_bits, n)
        -1 or 1 for each bit of each of n rows: a bit b has the sign (-1)^b.
    mean : ndarray of float64, shape (n_bits,), or None
        Means of the signs. They are subtracted, and the differences divided by sqrt(1 - mean^2),
        before signs are multiplied. None: signs are multiplied as they are.
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of float64, shape (k, n)
        The product for each set and row; 1 for the empty set.
    """
    if mean is not None:
        deviation = np.sqrt((1 - mean) * (1 + mean))
        signs = (signs - mean[:, None]) / deviation[:, None]
    start, bits = members.indptr.astype(np.int64), members.indices.astype(np.int32)
    return multiply_features(np.ascontiguousarray(signs), start, bits, n_threads)


def check_means(values: ArrayLike, n_bits: int) -> Float64:
    """Check means of the signs of all bits, `values`, and return them as float64, (n_bits,).

    Raise ValueError if the shape differs, or a mean is not strictly between -1 and 1.
    """
    mean: Float64 = check_column("mean", values, "float64", (n_bits,))
    if not (np.abs(mean) < 1).all():
        raise ValueError(
            "mean must lie strictly between -1 and 1 for every bit, got "
            f"{mean[np.abs(mean).argmax()]:g}: a bit of mean -1 or 1 never changes, so drop it"
        )
    return mean
