"""Bins: the values of a feature as codes of one byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, issparse

from certree._core import bin_features, bin_sparse_features, coarsen_bins
from certree.interface.arrays import Float64, Int32, Int64, check_matrix, get_csr_arrays
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads
from certree.rows.categories import make_categorical_mask
from certree.rows.features import DenseFeatures
from certree.rows.folds import Indices
from certree.rows.hashes import hash_samples
from certree.rows.sparse_rows import DenseOrSparseFeatures, SparseFeatures

UInt8 = NDArray[np.uint8]

MISSING = 255
# Edges of bins are told from so many rows.
EDGE_ROWS = 2**17
# Codes of fewer bytes are at hand however they lie.
CACHE = 2**23


class SparseCodes(NamedTuple):
    """Codes of a table most of whose values are 0: of those that lie in other bins than 0 does.

    Attributes
    ----------
    start : ndarray of int64, shape (p + 1,)
        Where the values of each feature start.
    row : ndarray of int32, shape (any,)
        Row of each value.
    code : ndarray of uint8, shape (any,)
        Bin of each value, 255 where it is missing.
    zero : ndarray of uint8, shape (p,)
        Bin of all other values.
    n_rows : int
        Number of rows, n.
    """

    start: Int64
    row: Int32
    code: UInt8
    zero: UInt8
    n_rows: int

    @property
    def _matrix(self) -> Any:
        """Codes as a sparse matrix (n, p), which keeps those that are 0."""
        return csc_array((self.code, self.row, self.start), shape=(self.n_rows, len(self.zero)))

    def at(self, rows: Indices) -> SparseCodes:
        """Some of the rows, by their numbers."""
        start, row, code, _ = get_csr_arrays(self._matrix[rows].tocsc().T)
        return SparseCodes(start, row, code, self.zero, len(rows))

    def transpose_codes(self, order: Indices | None) -> tuple[Int64, Int32, UInt8, UInt8]:
        """Where those of each row start, features, codes, and codes of 0, of rows in an order."""
        rows = self._matrix.tocsr()
        start, feature, code, _ = get_csr_arrays(rows if order is None else rows[order])
        return start, feature, code, self.zero

    def column(self, j: int) -> UInt8:
        """Codes of a feature, (n,)."""
        codes = np.full(self.n_rows, self.zero[j])
        own = slice(*self.start[j : j + 2])
        codes[self.row[own]] = self.code[own]
        return codes


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """The rows of a table as codes of one byte each.

    The values of a feature of numbers lie in at most 255 bins, or `max_bins`, which ascend: a bin for
    each value if there are no more, else about as many rows in each. Edges lie between neighbouring
    values of the 2^17 rows with the smallest hashes, so that they depend neither on the order of the
    rows nor on how they are divided among machines. A level of a feature of categories has a bin of
    its own; of more than 254, those 254 that most rows have, and all others share one.

    Parameters
    ----------
    codes : ndarray of uint8, shape (p, n), or SparseCodes
        Bin of each value, 255 where it is missing; of sparse rows in a form of their own.
    n_bins : ndarray of int32, shape (p,)
        Number of bins of each feature.
    bin_start : ndarray of int64, shape (p + 1,)
        Where the bins of each feature start.
    low, high : ndarray of float64, shape (any,)
        Smallest and largest value in each bin of a feature of numbers.
    category : ndarray of uint8, shape (p,)
        Whether a feature holds categories.
    level_start : ndarray of int64, shape (p + 1,)
        Where the levels of each feature start.
    levels : ndarray of int32, shape (any,)
        Levels that occur, ascending within a feature.
    level_bin : ndarray of uint8, shape (any,)
        Bin of each level.

    Examples
    --------
    >>> from certree.grow import Bins
    >>> bins = Bins.from_table([[0.5, 2.0], [0.1, float("nan")], [0.5, 1.0]])
    >>> bins.codes.tolist(), bins.n_bins.tolist()
    ([[1, 0, 1], [1, 255, 0]], [2, 2])
    """

    codes: UInt8 | SparseCodes
    n_bins: Int32
    bin_start: Int64
    low: Float64
    high: Float64
    category: UInt8
    level_start: Int64
    levels: Int32
    level_bin: UInt8
    # The codes by row, once somebody has asked for them.
    _of_rows: UInt8 = field(
        default_factory=lambda: np.zeros((0, 0), np.uint8), init=False, repr=False
    )

    @classmethod
    def of(
        cls,
        X: ArrayLike | DenseOrSparseFeatures,
        categorical: ArrayLike | None = None,
        *,
        max_bins: int = MISSING,
        fine_ends: bool = False,
        n_jobs: int | None = None,
        feature_order: Int32 | None = None,
    ) -> Bins:
        """Put the values of a table into bins.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), FeatureColumns, or SparseColumns
            Rows. NaN is missing, and what is not stored is 0: it has the bins of the dense table.
        categorical : array-like of bool, int or str, or None
            Features that hold categories 0, 1, ..., as a mask, indices, or names if X has some.
        max_bins : int
            Most bins of a feature of numbers, 2 .. 255.
        fine_ends : bool
            Whether bins of more than 255 values hold the fewer rows the nearer they are to the
            smallest or the largest value: one row at the ends, and at most a fifth of those beyond.
            Trees that must cut by features that tell nothing, as those of forests must, then cut off
            a few rows and lose little.
        n_jobs : int or None
            Number of threads; None is one, -1 all. The bins do not depend on it.
        feature_order : ndarray of int32, shape (p,), or None
            In which features are hashed, where bins are not to depend on where these stand; None: as
            they stand.

        Returns
        -------
        Bins

        Raises
        ------
        TypeError, ValueError
            If X is no table of numbers, categories are not whole numbers >= 0, or sparse rows hold
            some.
        """
        names = [*X.columns] if hasattr(X, "columns") else None
        features = _features_of(X)
        n, p = len(features), features.n_features
        if 0 in (n, p):
            raise ValueError(f"X must have at least one row and one feature, got shape {(n, p)}")
        category = _category(categorical, p, names)
        every = np.arange(n, dtype=np.int32)
        telling = edges_first(features, every, feature_order)[:EDGE_ROWS]
        how = telling, (max_bins, bool(fine_ends)), get_n_threads(n_jobs)
        codes: Any
        made: Any
        if isinstance(features, SparseFeatures):
            if category.any():
                raise ValueError("sparse rows hold numbers alone, but categorical names categories")
            start, row, code, zero, *made = bin_sparse_features(features.by_feature(), *how)
            codes = SparseCodes(start, row, code, zero, n)
        else:
            codes, *made = bin_features(features.columns, telling, category, *how[1:])
        n_bins, bin_start, low, high, *levels = made
        return cls(codes, n_bins, bin_start, low, high, category, *levels)

    def at(self, rows: Indices) -> Bins:
        """Some of the rows, by their numbers, in the same bins."""
        if isinstance(self.codes, SparseCodes):
            return replace(self, codes=self.codes.at(rows))
        return replace(self, codes=np.ascontiguousarray(self.codes[:, rows]))

    @property
    def codes_by_feature_and_row(self) -> SparseCodes | tuple[UInt8, UInt8]:
        """The codes; and by row, too, where small cells are found faster by them."""
        if isinstance(self.codes, SparseCodes):
            return self.codes
        if not len(self._of_rows):
            object.__setattr__(self, "_of_rows", transpose_codes(self.codes))
        return self.codes, self._of_rows

    def column(self, j: int) -> UInt8:
        """Codes of a feature, (n,)."""
        return self.codes.column(j) if isinstance(self.codes, SparseCodes) else self.codes[j]

    def ends(self, j: int) -> tuple[Float64, Float64]:
        """Smallest and largest value in each bin of a feature, (n_bins,)."""
        own = slice(self.bin_start[j], self.bin_start[j] + self.n_bins[j])
        return self.low[own], self.high[own]

    @validate_arguments
    def coarser(self, n_edges: int, key: int, feature_order: Int32 | None = None) -> Bins:
        """Join neighbouring bins of numbers but at some edges.

        A tree that is grown on them cuts features at these edges only. What is drawn by another key
        differs, so that trees do, and their average is smoother than each of them.

        Parameters
        ----------
        n_edges : int
            Number of edges between bins of a feature that stay, at least 1; drawn out of all sets of
            so many with the same probability. Features of categories and those with at most 32 bins
            stay as they are.
        key : int
            What decides the edges, 0 .. 2^64 - 1.
        feature_order : ndarray of int32, shape (p,), or None
            By the place of a feature in it its edges are drawn; None: by where it stands.

        Returns
        -------
        Bins

        Raises
        ------
        TypeError, ValueError
            If `n_edges` or `key` is no whole number, or below 1 or 0, or rows are sparse.
        """
        if not 0 <= key < 2**64:
            raise ValueError(f"key must lie in 0 .. 2^64 - 1, got {key!r}")
        if n_edges >= MISSING:
            return self
        if isinstance(self.codes, SparseCodes):
            raise TypeError("coarser bins are those of dense rows, but these are sparse")
        made: Any = coarsen_bins(self.codes, self.kept, n_edges, key, feature_order)
        return replace(self, **dict(zip(("codes", "n_bins", "low", "high"), made, strict=True)))

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.n_bins)

    @property
    def n_rows(self) -> int:
        """Number of rows, n."""
        codes = self.codes
        return codes.n_rows if isinstance(codes, SparseCodes) else codes.shape[1]

    @property
    def kept(self) -> tuple[Any, ...]:
        """All but the codes, as the core takes it."""
        numbers = (self.n_bins, self.bin_start, self.low, self.high)
        return (*numbers, self.category, self.level_start, self.levels, self.level_bin)


def transpose_codes(codes: UInt8) -> UInt8:
    """Codes (p, n) once more, row by row, (n, p); no rows where there are so few that none is far."""
    if codes.size <= CACHE:
        return np.zeros((0, 0), np.uint8)
    return np.ascontiguousarray(codes.T)


def _features_of(given: Any) -> DenseOrSparseFeatures:
    """Features of rows of any kind, checked unless they have been."""
    if isinstance(given, DenseFeatures | SparseFeatures):
        return given
    if not issparse(given):
        return DenseFeatures((check_matrix(given),))
    rows: Any = given
    check_matrix(rows.data[:, None])
    return SparseFeatures.from_csr(rows.tocsr().astype(np.float64))


def no_rows(p: int, categorical: ArrayLike | None = None) -> Bins:
    """What is known of p features before there is any row: which of them hold categories."""
    ends, starts = np.zeros(0), np.zeros(p + 1, dtype=np.int64)
    codes, levels = np.zeros((p, 0), dtype=np.uint8), np.zeros(0, dtype=np.int32)
    category, n_bins = _category(categorical, p, None), np.zeros(p, dtype=np.int32)
    return Bins(
        codes, n_bins, starts, ends, ends, category, starts, levels, levels.astype(np.uint8)
    )


def _category(
    categorical: ArrayLike | None, p: int, names: Sequence[str] | None
) -> NDArray[np.uint8]:
    """Whether each feature holds categories, (p,)."""
    mask = make_categorical_mask(categorical, p, names)
    category = np.zeros(p, dtype=np.uint8)
    category[:] = False if mask is None else mask
    category.setflags(write=False)
    return category


def edges_first(features: DenseOrSparseFeatures, rows: Int32, order: Int32 | None = None) -> Int32:
    """Numbers of all rows (n,), those first that edges are told from: with the smallest hashes.

    Rows that are equal can stand for each other.
    """
    if len(rows) <= EDGE_ROWS:
        return rows
    return rows[np.argpartition(hash_samples(*features.tables, order=order), EDGE_ROWS)]
