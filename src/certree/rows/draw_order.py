"""In which order fits look at columns, and how they number categories: as rows tell, not names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import number_categories, order_columns, sum_columns
from certree.interface.arrays import Int32, UInt64
from certree.rows.features import DenseFeatures
from certree.rows.hashes import mix
from certree.rows.sparse_rows import DenseOrSparseFeatures, SparseFeatures

# The sign and the digits of a number of float64, and an exponent in place of its own.
_DIGITS, _EXPONENT = np.uint64(0x800FFFFFFFFFFFFF), np.uint64(0x3FF0000000000000)


def hash_targets(y: NDArray[Any] | None, n: int) -> UInt64:
    """Compute a word of each of n rows for its target: of classes, or of numbers in whatever unit.

    Numbers are told apart by sign and digits, as a power of two is but a unit. Of several targets the
    largest word counts, in whatever order and however often they stand.
    """
    if y is None:
        return np.zeros(n, dtype=np.uint64)
    if y.dtype.kind != "f":
        words = y.astype(np.uint64)
    else:
        words = np.ascontiguousarray(y, dtype=np.float64).view(np.uint64) & _DIGITS | _EXPONENT
        words = np.where(y == 0, np.uint64(0), words)
    words = mix(words + np.uint64(1))
    return words if words.ndim == 1 else words.max(axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSums:
    """What some rows add up to by column and category; those of more rows add up.

    Parameters
    ----------
    n_levels : ndarray of int32, shape (p,)
        0 for a column of numbers, else how many categories it has, and one more for missing values.
    numbers : ndarray of uint64, shape (p,)
        Sums of columns of numbers, modulo 2^64.
    n_rows, words : ndarray of uint64, shape (any,)
        How many rows have each category, and their sums, column by column.
    """

    n_codes: Int32
    numbers: UInt64
    n_rows: UInt64
    words: UInt64

    @classmethod
    def sum_rows(
        cls,
        features: DenseOrSparseFeatures,
        y: NDArray[Any] | None,
        n_categories: tuple[int | None, ...] | None = None,
        n_threads: int = 1,
    ) -> Self:
        """Add up rows and their targets; n_categories: of each column, None for one of numbers."""
        n_levels = np.zeros(features.n_features, dtype=np.int32)
        if n_categories is not None:
            n_levels[:] = [0 if n is None else n + 1 for n in n_categories]
        words = hash_targets(y, len(features))
        if isinstance(features, SparseFeatures):
            none = np.zeros(0, dtype=np.uint64)
            return cls(n_levels, _sum_sparse_columns(features, words), none, none)
        made: Any = sum_columns(features.columns, n_levels, words, n_threads)
        return cls(n_levels, *made)

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return replace(self, **sums)

    def order_columns(self) -> Int32:
        """Put columns in the order in which they are looked at, (p,), equal ones as they stand."""
        return order_columns(self.numbers, self.n_codes, self.n_rows, self.words)

    def number_categories(self, column: int) -> Int32:
        """Number each category of a column, (n_categories,): common ones first, then by their rows."""
        begin = int(self.n_codes[:column].sum())
        own = slice(begin, begin + int(self.n_codes[column]) - 1)
        return number_categories(self.n_rows[own], self.words[own])


_SUMS = ("numbers", "n_rows", "words")
# Codes of categories from here on are refused where cells are cut.
_MOST_CATEGORIES = 2**24


def sum_encoded_table(
    X: NDArray[Any],
    y: NDArray[Any] | None,
    categorical: NDArray[np.bool_] | None,
    n_threads: int = 1,
) -> ColumnSums:
    """Add up the rows (n, p) of a table some of whose features hold categories 0, 1, ...."""
    features = DenseFeatures((X,))
    if categorical is None or not categorical.any():
        return ColumnSums.sum_rows(features, y, n_threads=n_threads)
    largest = np.nan_to_num(np.fmax.reduce(X), nan=-1.0).clip(-1, _MOST_CATEGORIES - 1)
    told = zip(categorical.tolist(), largest.tolist(), strict=True)
    sizes = tuple(int(most) + 1 if is_set else None for is_set, most in told)
    return ColumnSums.sum_rows(features, y, sizes, n_threads)


def _sum_sparse_columns(features: SparseFeatures, targets: UInt64) -> UInt64:
    """The sums of the columns of sparse rows, of which zeros have no part."""
    rows, p = features.matrix, features.n_features
    values = rows.data.astype(np.float64)
    values[np.isnan(values)] = np.nan
    words = mix(values.view(np.uint64))
    ends = np.append(np.uint64(0), np.cumsum(words, dtype=np.uint64))[rows.indptr]
    of_row = mix(ends[1:] - ends[:-1] + targets)
    terms = words * np.repeat(of_row, np.diff(rows.indptr))
    order = np.argsort(rows.indices, kind="stable")
    starts = np.searchsorted(rows.indices[order], np.arange(p + 1))
    ends = np.append(np.uint64(0), np.cumsum(terms[order], dtype=np.uint64))[starts]
    return ends[1:] - ends[:-1]
