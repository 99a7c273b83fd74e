"""The features of rows as checked numbers, in the memory in which they came."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int32

# Numbers of a block of rows, and of a part of it, which fits into the processor's cache.
_BLOCK, _CACHED = 2**20, 2**16


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """The features of rows: finite numbers, or NaN where one is missing.

    They stay where they are, by rows or by columns: a copy of a large table may not fit into memory.

    Parameters
    ----------
    parts : tuple of ndarray
        Features side by side, float64 or float32: a whole table (n, p), or columns (n,).
    """

    tables: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        """Number of rows, n."""
        return len(self.tables[0])

    @cached_property
    def columns(self) -> list[NDArray[Any]]:
        """The values of each feature, (n,)."""
        return [column for part in self.tables for column in np.atleast_2d(part.T)]

    def is_float32(self, feature: int) -> bool:
        """Whether the values of a feature are float32."""
        return self.columns[feature].dtype == np.float32

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return len(self.columns)

    @property
    def table(self) -> NDArray[Any] | None:
        """The rows, if they lie in C order already."""
        first = self.tables[0]
        in_order = len(self.tables) == 1 and first.ndim == 2 and first.flags.c_contiguous
        return first if in_order else None

    @cached_property
    def matrix(self) -> NDArray[Any]:
        """All rows in C order, (n, p): float32 if all features are, else float64; no needless copy."""
        return self.take_matrix(range(len(self))) if self.table is None else self.table

    def take_matrix(self, rows: NDArray[Any] | range) -> NDArray[Any]:
        """Copy some of the rows, by their numbers, in C order: dtype as of `matrix`."""
        taken = np.empty((len(rows), self.n_features), np.result_type(*self.tables))
        step = max(1, _CACHED // self.n_features)
        for start in range(0, len(rows), step):
            some, to = rows[start : start + step], taken[start : start + step]
            which = slice(some.start, some.stop) if isinstance(some, range) else some
            at = 0
            for part in self.tables:
                values = part[which].reshape(len(to), -1)
                to[:, at : at + values.shape[1]] = values
                at += values.shape[1]
        return taken

    def take(self, indices: NDArray[Any]) -> "DenseFeatures":
        """Some of the rows, by their numbers, in memory of the same order."""
        return DenseFeatures(tuple(part[indices] for part in self.tables))

    def score_in_blocks(self, scores: Callable[[NDArray[Any]], Float64]) -> Float64:
        """Scores (k, n) of all rows by those of a table of some, which is made block by block."""
        n, step = len(self), max(1, _BLOCK // self.n_features)
        if n <= step or self.table is not None:
            return scores(self.matrix)
        starts = range(0, n, step)
        parts = [scores(self.take_matrix(range(n)[start : start + step])) for start in starts]
        return np.concatenate(parts, axis=1)


def renumber_codes(features: DenseFeatures, numbers: Mapping[int, Int32]) -> DenseFeatures:
    """Replace the codes 0, 1, ... of some features, which lie column by column, by other numbers."""
    parts = list(features.columns)
    for j, number in numbers.items():
        codes = parts[j]
        is_missing = np.isnan(codes)
        known = np.append(number, 0)[np.where(is_missing, -1, codes).astype(np.intp)]
        parts[j] = np.where(is_missing, np.nan, known).astype(codes.dtype)
    return DenseFeatures(tuple(parts))
