"""Order columns and number categories by the values and targets of rows, not by place or name."""

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

# Bits of sign and mantissa of a float64, and the exponent that replaces its own.
_DIGITS, _EXPONENT = np.uint64(0x800FFFFFFFFFFFFF), np.uint64(0x3FF0000000000000)


def hash_targets(y: NDArray[Any] | None, n: int) -> UInt64:
    """Hash the target of each of n rows, (n,) uint64; return zeros if y is None.

    y: class codes or numeric targets, (n,) or (n, n_outputs). Numeric targets are hashed by sign
    and mantissa alone, so that targets times a power of two have the same hashes. With several
    targets the hash of a row is the largest hash of its targets, so that their order does not
    matter. n: number of rows.
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
    """Sums of row hashes by column and by category, from which columns and categories get an order.

    This order does not depend on the order of rows or columns in the table, nor on the spelling of
    categories. So fits of permuted tables give the same trees. The hash of a row is computed from
    its target and the sum of the hashes of its numeric values. Sums of two blocks of rows can be
    added.

    Parameters
    ----------
    n_codes : ndarray of int32, shape (p,)
        0 for a numeric column; for a categorical one the number of its categories plus 1, as
        missing values are counted like a last category.
    numbers : ndarray of uint64, shape (p,)
        For each numeric column the sum of hash(value) * hash(row) over the rows, modulo 2^64; 0 for
        categorical columns.
    n_rows : ndarray of uint64, shape (sum of n_codes,)
        Number of rows of each category. The categories of the first categorical column come first,
        in the order of their codes, then those of the next one.
    words : ndarray of uint64, shape (sum of n_codes,)
        Sum of the hashes of the rows of each category, modulo 2^64, in the order of `n_rows`.
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
        """Sum up the row hashes of a block of rows by column and category; return a `ColumnSums`.

        Parameters
        ----------
        features : DenseFeatures or SparseFeatures
            Numbers and category codes of n rows.
        y : ndarray of shape (n,) or (n, n_outputs), or None
            Class codes or numeric targets; None: rows without a target.
        n_categories : tuple of (int or None), length p, or None
            Number of categories of each column, None for a numeric one; None: all are numeric.
        n_threads : int
            Number of threads of the C++ core.

        Returns
        -------
        ColumnSums
            `numbers` has a sum for each numeric column, `n_rows` and `words` a number of rows and a
            sum for each category; for sparse rows all columns are numeric.
        """
        n_codes = np.zeros(features.n_features, dtype=np.int32)
        if n_categories is not None:
            n_codes[:] = [0 if n is None else n + 1 for n in n_categories]
        words = hash_targets(y, len(features))
        if isinstance(features, SparseFeatures):
            none = np.zeros(0, dtype=np.uint64)
            return cls(n_codes, _sum_sparse_columns(features, words), none, none)
        sums: Any = sum_columns(features.columns, n_codes, words, n_threads)
        return cls(n_codes, *sums)

    def __add__(self, other: Self) -> Self:
        """Return the sums over the rows of two blocks of one table, of which `other` has the second."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return replace(self, **sums)

    def order_columns(self) -> Int32:
        """Return the indices of the columns, (p,) int32, sorted by their sums.

        The sum of a numeric column is its entry of `numbers`; that of a categorical one adds a hash
        of `n_rows` and `words` over its categories. Fits consider and draw columns in this order,
        whatever the order of the columns in the table. Columns with equal sums, whose values are
        equal, keep their relative order.
        """
        return order_columns(self.numbers, self.n_codes, self.n_rows, self.words)

    def number_categories(self, column: int) -> Int32:
        """Return the new code of each category of a column, (n_categories,) int32.

        Categories with more rows get smaller codes; among categories with equally many rows those
        with a smaller sum of row hashes. Missing values get no code.

        column: index of a categorical column.
        """
        begin = int(self.n_codes[:column].sum())
        categories = slice(begin, begin + int(self.n_codes[column]) - 1)
        return number_categories(self.n_rows[categories], self.words[categories])


_SUMS = ("numbers", "n_rows", "words")
# Growth refuses category codes from here on.
_MOST_CATEGORIES = 2**24


def sum_encoded_table(
    X: NDArray[Any],
    y: NDArray[Any] | None,
    categorical: NDArray[np.bool_] | None,
    n_threads: int = 1,
) -> ColumnSums:
    """Compute `ColumnSums` for the rows of an encoded table.

    The number of categories of a column is taken to be its largest code plus 1, at most 2^24.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Numbers and category codes.
    y : ndarray of shape (n,) or (n, n_outputs), or None
        Class codes or numeric targets; None: rows without a target.
    categorical : ndarray of bool, shape (p,), or None
        True for columns that hold category codes; None: all columns are numeric.
    n_threads : int
        Number of threads of the C++ core.

    Returns
    -------
    ColumnSums
        `numbers` has a sum for each numeric column, `n_rows` and `words` a number of rows and a sum
        for each category.
    """
    features = DenseFeatures((X,))
    if categorical is None or not categorical.any():
        return ColumnSums.sum_rows(features, y, n_threads=n_threads)
    largest = np.nan_to_num(np.fmax.reduce(X), nan=-1.0).clip(-1, _MOST_CATEGORIES - 1)
    pairs = zip(categorical.tolist(), largest.tolist(), strict=True)
    sizes = tuple(int(largest_code) + 1 if is_set else None for is_set, largest_code in pairs)
    return ColumnSums.sum_rows(features, y, sizes, n_threads)


def _sum_sparse_columns(features: SparseFeatures, targets: UInt64) -> UInt64:
    """Compute the attribute `numbers` of `ColumnSums`, (p,) uint64, for sparse rows.

    For each column it is the sum of hash(value) * hash(row) over the stored values, modulo 2^64.
    The hash of a row is computed from its target and the sum of the hashes of its stored values.
    So zeros, which are not stored, are left out. features: the n rows. targets: hash of each row's
    target, (n,).
    """
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
