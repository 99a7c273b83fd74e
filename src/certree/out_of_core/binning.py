"""Bins of rows that are stored in several blocks; the bin edges are those of all rows in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import bin_categories, choose_bin_edges, distinct_values, encode_numbers
from certree.grow.bins import EDGE_ROWS, MISSING, Bins, UInt8
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.rows.features import DenseFeatures
from certree.rows.hashes import hash_samples

# A pass keeps this number of standard deviations more rows than bin edges need, because the number of
# rows with small hashes is random.
_SPARE = 8.0
# Columns and rows of a table that are copied at a time: a cache line of numbers, and what the
# second-level cache holds of them.
_GROUP, _COPIED_ROWS = 8, 2048
# Summary of the values of a feature. Numeric: the distinct values, ascending, or None if there are more
# than bins. Categorical: the distinct category codes, ascending, and the number of rows of each.
Values = Float64 | None | tuple[Int32, Int64]


def _iterate_columns(features: DenseFeatures) -> Iterator[Float64]:
    """Yield the values of each feature as float64, (n,), with 0.0 in place of -0.0.

    features: encoded features of n rows. The columns of a table in row order are copied in groups,
    because a column alone would read every cache line of the table. An array that is yielded is
    overwritten by later ones.
    """
    buffer = np.empty((_GROUP, len(features)))
    for table in features.tables:
        columns = np.atleast_2d(table.T)
        size = 1 if columns.flags.c_contiguous else _GROUP
        for first in range(0, len(columns), size):
            group = columns[first : first + size]
            copied = buffer[: len(group)]
            for start in range(0, len(features), _COPIED_ROWS):
                rows = slice(start, start + _COPIED_ROWS)
                copied[:, rows] = group[:, rows]
            copied += 0.0
            yield from copied


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Sample of the rows, and distinct values of each feature, by which bin edges are chosen.

    The sample has the rows with the smallest hashes, so it depends neither on the order of rows nor on
    their blocks. Adding two objects joins their rows.

    Parameters
    ----------
    n : int
        Number of rows.
    hashes : ndarray of uint64, shape (k,)
        Smallest hashes of rows, at most `EDGE_ROWS`, in any order.
    rows : ndarray of float64, shape (k, p)
        The rows with these hashes.
    values : tuple of Values
        For each numeric feature, its distinct values, ascending, or None if there are more than 255
        (the largest number of bins). For each categorical feature a pair of arrays: its distinct
        category codes, ascending, and the number of rows of each.
    weight : int
        Sum of the weights as an integer multiple of 2^-1126 (see `exact_sum`); 0 without weights.
    target_keys : ndarray of uint64, shape (n_targets,)
        For each target the sum of hashes of its values, by which several targets are ordered; empty
        if the order does not matter.
    """

    n: int
    hashes: UInt64
    rows: Float64
    values: tuple[Values, ...]
    weight: int = 0
    target_keys: UInt64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    @classmethod
    def from_rows(
        cls,
        features: DenseFeatures,
        category: UInt8,
        below: int | None = None,
        order: Int32 | None = None,
    ) -> Self:
        """Return the sample and the distinct values of the rows of one block.

        Parameters
        ----------
        features : DenseFeatures
            Encoded features of the rows.
        category : ndarray of uint8, shape (p,)
            1 for categorical features, 0 for numeric ones.
        below : int or None
            The sample has only rows with smaller hashes; None: rows with any hash.
        order : ndarray of int32, shape (p,), or None
            Order in which columns are hashed; None: 0, 1, ...

        Returns
        -------
        Sketch
            Sample and distinct values, with neither weights nor target keys.
        """
        hashes, p = hash_samples(*features.tables, order=order), features.n_features
        is_below = True if below is None else hashes < np.uint64(below)
        rows = np.flatnonzero(np.broadcast_to(is_below, hashes.shape))
        smallest, hashes = _select_smallest(hashes[rows])
        rows = rows[smallest]
        sample = np.empty((len(hashes), p))
        values: list[Values] = []
        for j, column in enumerate(_iterate_columns(features)):
            sample[:, j] = column[rows]
            distinct: Any = _count_codes(column) if category[j] else distinct_values(column)
            values.append(distinct)
        return cls(len(features), hashes, sample, tuple(values))

    def __add__(self, other: Self) -> Self:
        """Return the sample and distinct values of the rows of both objects.

        other: those of other rows with the same features.
        """
        hashes = np.concatenate([self.hashes, other.hashes])
        smallest, hashes = _select_smallest(hashes)
        both = np.concatenate([self.rows, other.rows])
        return replace(
            self,
            n=self.n + other.n,
            hashes=hashes,
            rows=both if len(hashes) == len(both) else both[smallest],
            values=tuple(map(_join_values, self.values, other.values)),
            weight=self.weight + other.weight,
            target_keys=self.target_keys + other.target_keys,
        )

    @property
    def is_complete(self) -> bool:
        """Whether the sample of rows is large enough to choose bin edges.

        It must have 2^17 rows (`EDGE_ROWS`), or all rows if there are fewer.
        """
        return len(self.hashes) >= min(EDGE_ROWS, self.n)

    def choose_edges(
        self, most: int = MISSING, *, fine_ends: bool = False, n_threads: int = 1
    ) -> tuple[NDArray[Any] | tuple[Int32, UInt8, int] | None, ...]:
        """Choose the bin edges of each feature.

        Parameters
        ----------
        most : int
            Largest number of bins of a numeric feature; 255 (`MISSING`) by default.
        fine_ends : bool
            Whether bins are narrower near the smallest and largest values; see `Bins.from_table`.
        n_threads : int
            Number of features at a time.

        Returns
        -------
        tuple, length p
            For a numeric feature its edges between bins, ascending float64, or None if all values are
            missing. For a categorical feature a tuple of its category codes, the bin of each, and the
            number of bins.
        """

        def choose(j: int) -> Any:
            values = self.values[j]
            if isinstance(values, tuple):
                return values[0], *bin_categories(*values)
            if values is not None and len(values) <= most:
                return values[:-1] if len(values) else None
            column = np.ascontiguousarray(self.rows[:, j])
            return choose_bin_edges(column[~np.isnan(column)], most, fine_ends)

        with ThreadPoolExecutor(n_threads) as pool:
            return tuple(pool.map(choose, range(len(self.values))))


def choose_hash_limit(n: int) -> int | None:
    """Return a bound below which almost surely at least 2^17 (`EDGE_ROWS`) of n 64-bit hashes are.

    Bin edges are chosen by a sample of `EDGE_ROWS` rows, those with the smallest hashes, so a pass
    over the rows keeps only those with hashes below the bound. Return None if n is so small that it
    must keep all rows.
    """
    wanted = EDGE_ROWS + _SPARE * EDGE_ROWS**0.5
    return None if wanted >= n else int(wanted / n * 2**64)


def _select_smallest(hashes: UInt64) -> tuple[NDArray[np.intp], UInt64]:
    """Return positions and values of the 2^17 (`EDGE_ROWS`) smallest hashes, or all, in any order."""
    if len(hashes) <= EDGE_ROWS:
        return np.arange(len(hashes)), hashes
    positions = np.argpartition(hashes, EDGE_ROWS)[:EDGE_ROWS]
    return positions, hashes[positions]


def _count_codes(column: Float64) -> tuple[Int32, Int64]:
    """Return the distinct category codes of a column, ascending, and the number of rows of each.

    column: category codes, (n,); NaN, a missing value, is not counted.
    """
    codes, counts = np.unique(column[~np.isnan(column)].astype(np.int32), return_counts=True)
    return codes, counts.astype(np.int64)


def _join_values(first: Values, second: Values) -> Values:
    """Merge the summaries of a feature's values in two sets of rows.

    first, second: for a numeric feature the distinct values, ascending, or None if there are more
    than 255 (the largest number of bins); for a categorical feature the distinct category codes,
    ascending, and the number of rows of each. Return the summary of both sets, of the same form.
    """
    if isinstance(first, tuple) and isinstance(second, tuple):
        joined = np.concatenate([first[0], second[0]])
        codes, position = np.unique(joined, return_inverse=True)
        counts = np.zeros(len(codes), dtype=np.int64)
        np.add.at(counts, position, np.concatenate([first[1], second[1]]))
        return codes, counts
    if first is None or second is None:
        return None
    values = np.unique(np.concatenate([first, second]))
    return values if len(values) <= MISSING else None


@dataclass(frozen=True, slots=True, eq=False)
class BinRanges:
    """Smallest and largest value in each bin of each feature. Adding two objects joins their rows.

    Parameters
    ----------
    low, high : ndarray of float64, shape (p, 255)
        Smallest and largest value of numeric features; inf and -inf in empty bins, in bins that a
        feature lacks, and for categorical features.
    """

    low: Float64
    high: Float64

    def __add__(self, other: Self) -> Self:
        """Return the smallest and largest value in each bin over the rows of both objects.

        other: those of other rows in the same bins.
        """
        return replace(
            self, low=np.minimum(self.low, other.low), high=np.maximum(self.high, other.high)
        )


def bin_rows(features: DenseFeatures, edges: tuple[Any, ...]) -> tuple[UInt8, BinRanges]:
    """Return the bin codes of the rows of a block, and the range of values in each bin.

    Parameters
    ----------
    features : DenseFeatures
        Encoded features of the n rows.
    edges : tuple, length p
        For each numeric feature its bin edges, ascending, or None; for each categorical feature a
        tuple of its category codes, the bin of each, and the number of bins. `Sketch.choose_edges`
        returns it.

    Returns
    -------
    codes : ndarray of uint8, shape (p, n)
        Bin codes; 255 for a missing value.
    ranges : BinRanges
        Range of the values in each bin.
    """
    n, p = len(features), features.n_features
    codes = np.empty((p, n), dtype=np.uint8)
    low, high = np.full((p, MISSING), np.inf), np.full((p, MISSING), -np.inf)
    columns = _iterate_columns(features)
    for j, (feature_edges, column) in enumerate(zip(edges, columns, strict=True)):
        if feature_edges is None:
            codes[j] = MISSING
        elif isinstance(feature_edges, tuple):
            categories, bins, _ = feature_edges
            n_codes = int(categories[-1]) + 2 if len(categories) else 1
            # The last entry belongs to missing values, whose index is -1.
            table = np.full(n_codes, MISSING, dtype=np.uint8)
            table[categories] = bins
            codes[j] = table[np.where(np.isnan(column), -1, column).astype(np.intp)]
        else:
            codes[j], lowest, highest = encode_numbers(column, feature_edges)
            low[j, : len(lowest)], high[j, : len(highest)] = lowest, highest
    return codes, BinRanges(low, high)


def find_category_positions(features: DenseFeatures, categories: Mapping[int, Int32]) -> Int32:
    """Return the position of each row's category among the categories of a feature.

    Parameters
    ----------
    features : DenseFeatures
        Encoded features of the n rows.
    categories : mapping of int to ndarray of int32
        Category codes, ascending, of q features, by the index of the feature.

    Returns
    -------
    ndarray of int32, shape (q, n)
        Position of the row's category among those of each feature; their number if the value is
        missing.
    """
    positions = np.empty((len(categories), len(features)), dtype=np.int32)
    for row, (j, codes) in zip(positions, categories.items(), strict=True):
        row[:] = np.searchsorted(codes, features.columns[j])
    return positions


def make_bins(edges: tuple[Any, ...], ranges: BinRanges, category: UInt8) -> Bins:
    """Return the bins of all features as a `Bins` object without the codes of rows.

    Parameters
    ----------
    edges : tuple, length p
        For each numeric feature its bin edges, ascending, or None; for each categorical feature a
        tuple of its category codes, the bin of each, and the number of bins. `Sketch.choose_edges`
        returns it.
    ranges : BinRanges
        Range of the values in each bin.
    category : ndarray of uint8, shape (p,)
        1 for categorical features, 0 for numeric ones.

    Returns
    -------
    Bins
        Bin edges, value ranges and category bins; its codes have shape (p, 0).
    """
    n_bins, categories, category_bin = [], [], []
    for feature_edges in edges:
        if isinstance(feature_edges, tuple):
            codes, bins, n = feature_edges
        else:
            codes, bins = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
            n = 0 if feature_edges is None else len(feature_edges) + 1
        n_bins.append(n)
        categories.append(codes)
        category_bin.append(bins)
    has_bin = np.arange(MISSING) < np.array(n_bins)[:, None]
    is_number = (category == 0)[:, None]
    starts = np.cumsum([0, *map(len, categories)], dtype=np.int64)
    return Bins(
        np.zeros((len(edges), 0), dtype=np.uint8),
        np.array(n_bins, dtype=np.int32),
        np.cumsum([0, *n_bins], dtype=np.int64),
        np.where(is_number, ranges.low, 0.0)[has_bin],
        np.where(is_number, ranges.high, 0.0)[has_bin],
        category,
        starts,
        np.concatenate(categories).astype(np.int32),
        np.concatenate(category_bin).astype(np.uint8),
    )
