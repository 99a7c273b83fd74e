"""Bins: the values of a table as bin numbers of one byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as shortened
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, issparse

from certree._core import bin_features, bin_sparse_features, coarsen_bins
from certree.interface.arrays import Float64, Int32, Int64, check_matrix, get_csr_arrays
from certree.interface.signatures import validate_arguments
from certree.interface.threads import get_n_threads
from certree.rows.categories import make_categorical_mask
from certree.rows.dates import DateColumns
from certree.rows.features import DenseFeatures
from certree.rows.folds import Indices
from certree.rows.hashes import hash_samples
from certree.rows.sparse_rows import DenseOrSparseFeatures, SparseFeatures
from certree.tree import Trees, group_by_feature

UInt8 = NDArray[np.uint8]
AnyTrees = TypeVar("AnyTrees", bound=Trees)

MISSING = 255
# Number of rows from which bin edges are computed.
EDGE_ROWS = 2**17
# Tables of at most so many bytes fit in the cache, so a copy by row would gain nothing.
CACHE = 2**23


class SparseCodes(NamedTuple):
    """Bin numbers of a sparse table (n, p): only those of values whose bin is not that of 0.

    Attributes
    ----------
    start : ndarray of int64, shape (p + 1,)
        Entries ``start[j] .. start[j + 1] - 1`` of `row` and `code` belong to feature j.
    row : ndarray of int32, shape (number of entries,)
        Row of each entry.
    code : ndarray of uint8, shape (number of entries,)
        Bin of each entry; 255 if the value is missing.
    zero : ndarray of uint8, shape (p,)
        Bin of 0 for each feature, which all rows without an entry have.
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
        """The entries as a SciPy sparse matrix by columns, (n, p), with bin numbers as values.

        Entries whose code is 0 are stored, too. Values without an entry (the bin of 0) are absent.
        """
        return csc_array((self.code, self.row, self.start), shape=(self.n_rows, len(self.zero)))

    def select_rows(self, rows: Indices) -> SparseCodes:
        """Return the bin numbers of k rows, as `SparseCodes` of k rows.

        rows: indices of these rows, (k,), in the order of the result.
        """
        start, row, code, _ = get_csr_arrays(self._matrix[rows].tocsc().T)
        return SparseCodes(start, row, code, self.zero, len(rows))

    def to_csr_arrays(self, order: Indices | None) -> tuple[Int64, Int32, UInt8, UInt8]:
        """Return the bin numbers row by row, as compressed sparse rows.

        order: row numbers in the order of the result, (n,), or None for the order of the table. The
        tuple has the start of each row's entries (n + 1,), the feature and the bin number of each
        entry, and `zero`, the bin of the value 0 for each feature, (p,).
        """
        rows = self._matrix.tocsr()
        start, feature, code, _ = get_csr_arrays(rows if order is None else rows[order])
        return start, feature, code, self.zero

    def column(self, j: int) -> UInt8:
        """Return the bin of each row for feature j, (n,) uint8; 255 where the value is missing."""
        codes = np.full(self.n_rows, self.zero[j])
        entries = slice(*self.start[j : j + 2])
        codes[self.row[entries]] = self.code[entries]
        return codes


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """The rows of a table as bin numbers of one byte, with the values that the bins stand for.

    A numeric feature has at most 255 bins (or `max_bins`), which ascend: one bin for each distinct
    value if there are no more, else bins with about equally many rows. Bin edges lie between
    neighbouring values of the 2^17 rows with the smallest hashes of their values. So they depend
    neither on the order of the rows nor on their division into blocks. A categorical feature has
    one bin for each category; of more than 254 categories the 254 most frequent ones have their own
    bin, and all others share one.

    Parameters
    ----------
    codes : ndarray of uint8, shape (p, n), or SparseCodes
        Bin of each value, 255 where it is missing; `SparseCodes` for a sparse table.
    n_bins : ndarray of int32, shape (p,)
        Number of bins of each feature.
    bin_start : ndarray of int64, shape (p + 1,)
        The bins of feature j are at ``bin_start[j] .. bin_start[j + 1] - 1`` of `low` and `high`;
        none for categorical features.
    low, high : ndarray of float64, shape (number of numeric bins,)
        Smallest and largest value in each bin of a numeric feature.
    is_categorical : ndarray of uint8, shape (p,)
        1 for features that hold category codes, else 0.
    category_start : ndarray of int64, shape (p + 1,)
        The categories of feature j are at ``category_start[j] .. category_start[j + 1] - 1`` of
        `category_codes`; none for numeric features.
    category_codes : ndarray of int32, shape (number of categories,)
        Category codes that occur in the table, ascending within a feature.
    category_bin : ndarray of uint8, shape (number of categories,)
        Bin of each of these categories.
    dates : mapping of int to DateColumn
        Features that hold dates, whose thresholds `place_on_dates` makes round.

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
    is_categorical: UInt8
    category_start: Int64
    category_codes: Int32
    category_bin: UInt8
    dates: DateColumns = field(default_factory=dict, repr=False)
    # The codes by row, from the first read of `codes_by_feature_and_row` on.
    _transposed: UInt8 = field(
        default_factory=lambda: np.zeros((0, 0), np.uint8), init=False, repr=False
    )

    @classmethod
    def from_table(
        cls,
        X: ArrayLike | DenseOrSparseFeatures,
        categorical: ArrayLike | None = None,
        *,
        max_bins: int = MISSING,
        fine_ends: bool = False,
        n_jobs: int | None = None,
        feature_order: Int32 | None = None,
    ) -> Bins:
        """Compute the bins of a table.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), DenseFeatures or SparseFeatures
            Rows; `DenseFeatures` and `SparseFeatures` hold tables that have been checked. NaN is
            missing. Values that a sparse matrix does not store are 0; its bins equal those of the
            dense table.
        categorical : array-like of bool, int or str, or None
            Features that hold category codes 0, 1, ..., as a mask, indices, or column names of X.
        max_bins : int
            Largest number of bins of a numeric feature, 2 .. 255; the default is 255.
        fine_ends : bool
            For features with more than 255 values: whether bins hold fewer rows the nearer they are
            to the smallest or the largest value, from one row at each end to at most a fifth of the
            rows beyond it. Random forests must sometimes split on an uninformative feature; with
            fine ends such a split can separate few rows and loses little.
        n_jobs : int or None
            Number of threads; None is one, -1 all. The bins do not depend on it.
        feature_order : ndarray of int32, shape (p,), or None
            Order in which features enter the hashes of rows, so that bins need not depend on the
            order of columns; None: 0, 1, ..., p - 1.

        Returns
        -------
        Bins
            The bins of the n rows.

        Raises
        ------
        TypeError, ValueError
            If X is not a numeric table with rows and columns, category codes are not integers >= 0,
            or a sparse table has categorical features.
        """
        names = [*X.columns] if hasattr(X, "columns") else None
        features = _check_features(X)
        n, p = len(features), features.n_features
        if 0 in (n, p):
            raise ValueError(f"X must have at least one row and one feature, got shape {(n, p)}")
        category = _mark_categorical(categorical, p, names)
        all_rows = np.arange(n, dtype=np.int32)
        edge_rows = put_edge_rows_first(features, all_rows, feature_order)[:EDGE_ROWS]
        options = edge_rows, (max_bins, bool(fine_ends)), get_n_threads(n_jobs)
        codes: Any
        edges: Any
        if isinstance(features, SparseFeatures):
            if category.any():
                raise ValueError(
                    f"categorical must be None for a sparse X, got {shortened(categorical)}: convert "
                    "X to a dense table"
                )
            start, row, code, zero, *edges = bin_sparse_features(features.by_feature(), *options)
            codes = SparseCodes(start, row, code, zero, n)
        else:
            codes, *edges = bin_features(features.columns, edge_rows, category, *options[1:])
        n_bins, bin_start, low, high, *levels = edges
        return cls(codes, n_bins, bin_start, low, high, category, *levels)

    def with_codes(self, codes: UInt8, codes_by_row: UInt8) -> Bins:
        """Return a copy with other rows: the same edges and categories, and other bin codes.

        codes: bin codes of the new rows, (p, n); codes_by_row: the same codes as (n, p), or an
        array (0, 0) to compute them when they are needed.
        """
        bins = replace(self, codes=codes)
        object.__setattr__(bins, "_transposed", codes_by_row)
        return bins

    def select_rows(self, rows: Indices) -> Bins:
        """Return the bins of k rows, with the same edges and categories.

        rows: indices of these rows, (k,), in the order of the result.
        """
        if isinstance(self.codes, SparseCodes):
            return replace(self, codes=self.codes.select_rows(rows))
        return replace(self, codes=np.ascontiguousarray(self.codes[:, rows]))

    def with_dates(self, dates: DateColumns | None) -> Bins:
        """Return a copy with the field `dates` set: the description of each date feature by its index.

        dates: None or an empty mapping if no feature holds dates; these bins are then returned as
        they are.
        """
        return self if not dates else replace(self, dates=dates)

    def place_on_dates(
        self,
        trees: AnyTrees,
        others: Float64 | None = None,
        share_gaps: Callable[[Float64, Float64], tuple[Float64, Float64]] | None = None,
    ) -> AnyTrees:
        """Return trees with the thresholds of date features moved to round dates, such as 1 January.

        The trees were grown on these bins. A threshold moves within the gap between two bins, so
        that all rows of the table reach the same leaves; see `DateColumn.round_thresholds`. Without
        dates the trees are returned as they are.

        trees: `Tree` or `Trees` with thresholds between the values of two bins; others: further
        rows, (n_others, p), such as a validation set, which reach the same leaves, too; None: none;
        share_gaps: for rows that are distributed over several processes, a function that takes the
        lower and upper ends of gaps between the values of this process's rows, and returns the
        largest lower and smallest upper ends of all processes; None: all rows are in this process.
        """
        if not self.dates:
            return trees
        threshold = trees.threshold.copy()
        nodes = np.flatnonzero(trees.compares_numbers)
        for j, group in group_by_feature(trees.feature, nodes):
            if j not in self.dates:
                continue
            low, high = self.bin_ranges(j)
            gap = np.searchsorted(high, threshold[group], side="right") - 1
            # Thresholds below or above all values only separate missing ones.
            is_inside = (gap >= 0) & (gap < len(high) - 1)
            moved, gap = group[is_inside], gap[is_inside]
            ends, given = (high[gap], low[gap + 1]), threshold[moved]
            if others is not None or share_gaps is not None:
                values = np.sort(np.zeros(0) if others is None else others[:, j])  # NaN comes last
                bounded = np.concatenate([[-np.inf], values[~np.isnan(values)], [np.inf]])
                place = np.searchsorted(bounded, given, side="right")
                gaps = bounded[place - 1], bounded[place]
                gaps = gaps if share_gaps is None else share_gaps(*gaps)
                ends = np.maximum(ends[0], gaps[0]), np.minimum(ends[1], gaps[1])
            threshold[moved] = self.dates[j].round_thresholds(given, *ends)
        return trees.with_splits(threshold, trees.category_start, trees.categories)

    @property
    def codes_by_feature_and_row(self) -> SparseCodes | tuple[UInt8, UInt8]:
        """The bin numbers in both memory layouts, for histograms of many nodes.

        A tuple: `codes`, (p, n), and a copy (n, p), which speeds up histograms of small nodes. The
        copy is made at the first read and stays in memory; it is empty, (0, 0), for tables of at
        most 2^23 bytes. For a sparse table only the `SparseCodes`.
        """
        if isinstance(self.codes, SparseCodes):
            return self.codes
        if not len(self._transposed):
            object.__setattr__(self, "_transposed", transpose_codes(self.codes))
        return self.codes, self._transposed

    def column(self, j: int) -> UInt8:
        """Return the bin of each row for feature j, (n,) uint8; 255 where the value is missing."""
        return self.codes.column(j) if isinstance(self.codes, SparseCodes) else self.codes[j]

    def bin_ranges(self, j: int) -> tuple[Float64, Float64]:
        """Return smallest and largest value in each bin of numeric feature j.

        A tuple of two arrays (`low`, `high`), (n_bins[j],) each.
        """
        bins = slice(self.bin_start[j], self.bin_start[j] + self.n_bins[j])
        return self.low[bins], self.high[bins]

    @validate_arguments
    def coarsen(self, n_edges: int, key: int, feature_order: Int32 | None = None) -> Bins:
        """Return a copy in which bins are joined at all edges but a random selection.

        A tree grown on it splits numeric features at these edges only. Trees with different keys
        have different edges, so that their average is smoother than each tree.

        Parameters
        ----------
        n_edges : int
            Number of edges between bins that stay in each numeric feature, at least 1. All sets of
            so many edges are equally likely. Categorical features and features with at most 32 bins
            stay unchanged.
        key : int
            Seed of the draw, 0 .. 2^64 - 1.
        feature_order : ndarray of int32, shape (p,), or None
            The draw for a feature depends on `key` and on its place in this permutation; None: on
            `key` and its number.

        Returns
        -------
        Bins
            The coarser bins of the same rows; this object if `n_edges` is at least 255.

        Raises
        ------
        TypeError, ValueError
            If `n_edges` or `key` is not an integer in its range, or the table is sparse.
        """
        if not 0 <= key < 2**64:
            raise ValueError(f"key must lie in 0 .. 2^64 - 1, got {key!r}")
        if n_edges >= MISSING:
            return self
        if isinstance(self.codes, SparseCodes):
            raise TypeError(
                "codes must be those of a dense table for coarsen, got SparseCodes: convert X to a "
                "dense table"
            )
        columns: Any = coarsen_bins(self.codes, self.core_columns, n_edges, key, feature_order)
        return replace(self, **dict(zip(("codes", "n_bins", "low", "high"), columns, strict=True)))

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
    def core_columns(self) -> tuple[Any, ...]:
        """All fields but `codes`, as a tuple of arguments for the C++ core.

        The tuple has: n_bins, bin_start, low, high, is_categorical, category_start, category_codes,
        category_bin.
        """
        numbers = (self.n_bins, self.bin_start, self.low, self.high)
        return (
            *numbers,
            self.is_categorical,
            self.category_start,
            self.category_codes,
            self.category_bin,
        )


def transpose_codes(codes: UInt8) -> UInt8:
    """Return bin numbers (p, n) as a copy of shape (n, p), which stores them row by row.

    Return an empty array (0, 0) if there are at most 2^23 bytes, which fit in the processor's
    cache. codes: bin numbers, (p, n), uint8.
    """
    if codes.size <= CACHE:
        return np.zeros((0, 0), np.uint8)
    return np.ascontiguousarray(codes.T)


def _check_features(table: Any) -> DenseOrSparseFeatures:
    """Return a table as `DenseFeatures`, or `SparseFeatures` if it is sparse.

    table: array-like or sparse matrix (n, p), which is checked; objects of the two types are
    returned as they are. Both types hold a numeric table of n rows and p features from which bins
    are computed. Raise TypeError or ValueError if `table` is not a numeric table, or holds an
    infinity; NaN stands for a missing value.
    """
    if isinstance(table, DenseFeatures | SparseFeatures):
        return table
    if not issparse(table):
        return DenseFeatures((check_matrix(table),))
    rows: Any = table
    check_matrix(rows.data[:, None])
    return SparseFeatures.from_csr(rows.tocsr().astype(np.float64))


def make_empty_bins(p: int, categorical: ArrayLike | None = None) -> Bins:
    """Return `Bins` of p features and no rows.

    `grow_on_samples` needs a `BinnedGrower` only to check and pass on settings, and creates it with
    these bins. p: number of features; categorical: features that hold category codes, as a mask,
    indices or None; only the field `is_categorical` of the result depends on it.
    """
    ends, starts = np.zeros(0), np.zeros(p + 1, dtype=np.int64)
    codes, levels = np.zeros((p, 0), dtype=np.uint8), np.zeros(0, dtype=np.int32)
    category, n_bins = _mark_categorical(categorical, p, None), np.zeros(p, dtype=np.int32)
    return Bins(
        codes, n_bins, starts, ends, ends, category, starts, levels, levels.astype(np.uint8)
    )


def _mark_categorical(
    categorical: ArrayLike | None, p: int, names: Sequence[str] | None
) -> NDArray[np.uint8]:
    """Return 1 for categorical features and 0 for others, (p,) uint8, read-only.

    categorical: mask (p,), indices or names of the categorical features, or None for none; names:
    names of the p features, or None.
    """
    mask = make_categorical_mask(categorical, p, names)
    category = np.zeros(p, dtype=np.uint8)
    category[:] = False if mask is None else mask
    category.setflags(write=False)
    return category


def put_edge_rows_first(
    features: DenseOrSparseFeatures, rows: Int32, order: Int32 | None = None
) -> Int32:
    """Reorder row indices: those of the rows that determine bin edges come first.

    These rows are the 2^17 rows (`EDGE_ROWS`) with the smallest hashes of their values; bin edges
    are placed between their values alone.

    Parameters
    ----------
    features : DenseFeatures or SparseFeatures
        The table, of n rows and p features.
    rows : ndarray of int32, shape (n,)
        Row numbers 0 .. n - 1.
    order : ndarray of int32, shape (p,), or None
        Order in which features enter the hashes; None: 0, 1, ..., p - 1.

    Returns
    -------
    ndarray of int32, shape (n,)
        A permutation of `rows`; `rows` itself if there are at most 2^17.
    """
    if len(rows) <= EDGE_ROWS:
        return rows
    return rows[np.argpartition(hash_samples(*features.tables, order=order), EDGE_ROWS)]
