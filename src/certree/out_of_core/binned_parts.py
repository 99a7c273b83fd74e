"""Bins of rows that lie in parts: the edges are those of all rows in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import bin_categories, choose_bin_edges, distinct_values, encode_numbers
from certree.grow.bins import EDGE_ROWS, MISSING, Bins, UInt8
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.rows.features import DenseFeatures
from certree.rows.hashes import hash_samples

# So many more standard deviations of rows are kept than edges are told by, as few rows are equal.
_SPARE = 8.0
# What some rows have of a feature: few distinct numbers, or None for more than a bin each; or the
# levels of categories, ascending, and how many rows have each.
Values = Float64 | None | tuple[Int32, Int64]


def _column(features: DenseFeatures, j: int) -> Float64:
    """Values of a feature; zeros without a sign."""
    return np.ascontiguousarray(features.columns[j], dtype=np.float64) + 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """What decides the bins of some rows; those of more add up.

    Parameters
    ----------
    n : int
        Number of rows.
    hashes : ndarray of uint64, shape (k,)
        The smallest hashes of rows, at most 2^17.
    rows : ndarray of float64, shape (k, p)
        These rows.
    values : tuple of Values
        Of each feature.
    weight : int
        Exact sum of the weights.
    target_keys : ndarray of uint64, shape (n_targets,)
        Of several targets what decides their order.
    """

    n: int
    hashes: UInt64
    rows: Float64
    values: tuple[Values, ...]
    weight: int = 0
    target_keys: UInt64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    @classmethod
    def of(
        cls,
        features: DenseFeatures,
        category: UInt8,
        below: int | None = None,
        order: Int32 | None = None,
    ) -> Self:
        """That of the rows of a part.

        below: of those rows alone whose hashes are below it; order: in which columns are hashed.
        """
        hashes, p = hash_samples(*features.tables, order=order), features.n_features
        is_below = True if below is None else hashes < np.uint64(below)
        rows = np.flatnonzero(np.broadcast_to(is_below, hashes.shape))
        smallest, hashes = _smallest(hashes[rows])
        rows = rows[smallest]
        taken = np.empty((len(hashes), p))
        values: list[Values] = []
        for j in range(p):
            column = _column(features, j)
            taken[:, j] = column[rows]
            few: Any = _levels(column) if category[j] else distinct_values(column)
            values.append(few)
        return cls(len(features), hashes, taken, tuple(values))

    def __add__(self, other: Self) -> Self:
        """That of both."""
        hashes = np.concatenate([self.hashes, other.hashes])
        smallest, hashes = _smallest(hashes)
        both = np.concatenate([self.rows, other.rows])
        return replace(
            self,
            n=self.n + other.n,
            hashes=hashes,
            rows=both if len(hashes) == len(both) else both[smallest],
            values=tuple(map(_added, self.values, other.values)),
            weight=self.weight + other.weight,
            target_keys=self.target_keys + other.target_keys,
        )

    @property
    def is_whole(self) -> bool:
        """Whether all rows are kept that decide the bins."""
        return len(self.hashes) >= min(EDGE_ROWS, self.n)

    def edges(
        self, most: int = MISSING, *, fine_ends: bool = False
    ) -> tuple[NDArray[Any] | tuple[Int32, UInt8, int], ...]:
        """What tells the bin of a value: edges of numbers; levels, their bins, and how many bins.

        most: most bins of a feature of numbers; fine_ends: see `Bins.from_table`.
        """
        told: list[Any] = []
        for j, known in enumerate(self.values):
            if isinstance(known, tuple):
                told.append((known[0], *bin_categories(*known)))
            elif known is not None and len(known) <= most:
                told.append(known[:-1] if len(known) else None)
            else:
                column = np.ascontiguousarray(self.rows[:, j])
                told.append(choose_bin_edges(column[~np.isnan(column)], most, fine_ends))
        return tuple(told)


def hashes_below(n: int) -> int | None:
    """Below what the smallest hashes of n rows lie, most probably; None: all decide the bins."""
    wanted = EDGE_ROWS + _SPARE * EDGE_ROWS**0.5
    return None if wanted >= n else int(wanted / n * 2**64)


def _smallest(hashes: UInt64) -> tuple[NDArray[np.intp], UInt64]:
    if len(hashes) <= EDGE_ROWS:
        return np.arange(len(hashes)), hashes
    places = np.argpartition(hashes, EDGE_ROWS)[:EDGE_ROWS]
    return places, hashes[places]


def _levels(column: Float64) -> tuple[Int32, Int64]:
    levels, counts = np.unique(column[~np.isnan(column)].astype(np.int32), return_counts=True)
    return levels, counts.astype(np.int64)


def _added(one: Values, other: Values) -> Values:
    if isinstance(one, tuple) and isinstance(other, tuple):
        levels, place = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
        counts = np.zeros(len(levels), dtype=np.int64)
        np.add.at(counts, place, np.concatenate([one[1], other[1]]))
        return levels, counts
    if one is None or other is None:
        return None
    values = np.unique(np.concatenate([one, other]))
    return values if len(values) <= MISSING else None


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Smallest and largest values of rows in each bin, (p, 255); infinite where there are none."""

    low: Float64
    high: Float64

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        return replace(
            self, low=np.minimum(self.low, other.low), high=np.maximum(self.high, other.high)
        )


def encoded(features: DenseFeatures, edges: tuple[Any, ...]) -> tuple[UInt8, Ends]:
    """Codes (p, n) of the rows of a part, and the ends of what is in each bin."""
    n, p = len(features), features.n_features
    codes = np.empty((p, n), dtype=np.uint8)
    low, high = np.full((p, MISSING), np.inf), np.full((p, MISSING), -np.inf)
    for j, known in enumerate(edges):
        column = _column(features, j)
        if known is None:
            codes[j] = MISSING
        elif isinstance(known, tuple):
            levels, bins, _ = known
            code = np.full(int(levels[-1]) + 2 if len(levels) else 1, MISSING, dtype=np.uint8)
            code[levels] = bins
            codes[j] = code[np.where(np.isnan(column), -1, column).astype(np.intp)]
        else:
            codes[j], lowest, highest = encode_numbers(column, known)
            low[j, : len(lowest)], high[j, : len(highest)] = lowest, highest
    return codes, Ends(low, high)


def places_of(features: DenseFeatures, levels: Mapping[int, Int32]) -> Int32:
    """Place of each row's level among the levels of some features; behind all where it is missing.

    Returns
    -------
    ndarray of int32, shape (q, n)
    """
    places = np.empty((len(levels), len(features)), dtype=np.int32)
    for place, (j, known) in zip(places, levels.items(), strict=True):
        place[:] = np.searchsorted(known, features.columns[j])
    return places


def bins_of(edges: tuple[Any, ...], ends: Ends, category: UInt8) -> Bins:
    """The bins of all rows, without their codes."""
    n_bins, levels, level_bin = [], [], []
    for known in edges:
        is_set = isinstance(known, tuple)
        n_bins.append(known[2] if is_set else 0 if known is None else len(known) + 1)
        levels.append(known[0] if is_set else np.zeros(0, dtype=np.int32))
        level_bin.append(known[1] if is_set else np.zeros(0, dtype=np.uint8))
    held = np.arange(MISSING) < np.array(n_bins)[:, None]
    is_number = (category == 0)[:, None]
    starts = np.cumsum([0, *map(len, levels)], dtype=np.int64)
    return Bins(
        np.zeros((len(edges), 0), dtype=np.uint8),
        np.array(n_bins, dtype=np.int32),
        np.cumsum([0, *n_bins], dtype=np.int64),
        np.where(is_number, ends.low, 0.0)[held],
        np.where(is_number, ends.high, 0.0)[held],
        category,
        starts,
        np.concatenate(levels).astype(np.int32),
        np.concatenate(level_bin).astype(np.uint8),
    )
