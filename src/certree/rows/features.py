"""Encoded features of dense rows, in the arrays in which the caller passed them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int32

# Numbers in a block of rows, and in a smaller block that fits into the processor's cache.
_BLOCK, _CACHED = 2**20, 2**16


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """Encoded features of rows: finite numbers and category codes, NaN where a value is missing.

    The arrays are those of the caller where no conversion was needed, as a copy of a large table
    may not fit into memory.

    Parameters
    ----------
    tables : tuple of ndarray
        The features from left to right, float64 or float32: either a single array (n, p), or p
        arrays (n,), one for each feature.
    """

    tables: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        """Return the number of rows, n."""
        return len(self.tables[0])

    @cached_property
    def columns(self) -> list[NDArray[Any]]:
        """Values of each feature: a list of p arrays (n,), views into the field `tables`."""
        return [column for part in self.tables for column in np.atleast_2d(part.T)]

    def is_float32(self, feature: int) -> bool:
        """Return whether the column of a feature, given by its index, has dtype float32."""
        return self.columns[feature].dtype == np.float32

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.columns)

    @property
    def table(self) -> NDArray[Any] | None:
        """The features as one C-ordered array (n, p) if they are stored as such; else None."""
        first = self.tables[0]
        in_order = len(self.tables) == 1 and first.ndim == 2 and first.flags.c_contiguous
        return first if in_order else None

    @cached_property
    def matrix(self) -> NDArray[Any]:
        """The features as one C-ordered array (n, p): float32 if all are, else float64.

        It is a copy, unless the features are stored as such an array, the property `table`.
        """
        return self.take_matrix(range(len(self))) if self.table is None else self.table

    def take_matrix(self, rows: NDArray[Any] | range) -> NDArray[Any]:
        """Copy some rows to a C-ordered array (m, p): float32 if all features are, else float64.

        rows: indices of the rows, (m,), as an array or a range; the result has their order.
        """
        result = np.empty((len(rows), self.n_features), np.result_type(*self.tables))
        step = max(1, _CACHED // self.n_features)
        for start in range(0, len(rows), step):
            chosen, block = rows[start : start + step], result[start : start + step]
            which = slice(chosen.start, chosen.stop) if isinstance(chosen, range) else chosen
            first = 0
            for part in self.tables:
                values = part[which].reshape(len(block), -1)
                block[:, first : first + values.shape[1]] = values
                first += values.shape[1]
        return result

    def take(self, indices: NDArray[Any]) -> "DenseFeatures":
        """Return a copy of the rows at these indices, (m,), as a `DenseFeatures`.

        Features that are stored as separate columns stay so.
        """
        return DenseFeatures(tuple(part[indices] for part in self.tables))

    def score_in_blocks(self, scores: Callable[[NDArray[Any]], Float64]) -> Float64:
        """Compute scores of all rows, block by block, without a copy of the whole table.

        scores: function that maps a C-ordered table of some m rows, (m, p), to their scores (k, m)
        for k outputs. Return the scores of all rows, (k, n).
        """
        n, step = len(self), max(1, _BLOCK // self.n_features)
        if n <= step or self.table is not None:
            return scores(self.matrix)
        starts = range(0, n, step)
        parts = [scores(self.take_matrix(range(n)[start : start + step])) for start in starts]
        return np.concatenate(parts, axis=1)


def renumber_codes(features: DenseFeatures, numbers: Mapping[int, Int32]) -> DenseFeatures:
    """Replace the category codes of some features by other codes.

    Missing values stay NaN, and unknown categories -1.

    numbers: for each feature to change, by its index, the new code of each old code,
    (n_categories,). Return new features, stored as separate columns; the argument is not changed.
    """
    parts = list(features.columns)
    for j, number in numbers.items():
        codes = parts[j]
        is_known = codes >= 0
        known = np.append(number, 0)[np.where(is_known, codes, -1).astype(np.intp)]
        parts[j] = np.where(is_known, known, codes).astype(codes.dtype)
    return DenseFeatures(tuple(parts))
