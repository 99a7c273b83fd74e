"""Encoded features of sparse rows, and functions for rows that are dense or sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse, vstack

from certree.interface.arrays import CSRArrays, Float64, get_csr_arrays
from certree.rows.features import DenseFeatures


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Encoded features of rows most of whose values are 0, as a CSR matrix.

    It has the methods of `DenseFeatures` that fits and predictions of sparse rows need.

    Parameters
    ----------
    matrix : csr_array of shape (n, p)
        Values in float64 or float32. No zero is stored; features ascend within a row, each once.
    """

    matrix: Any

    @classmethod
    def from_csr(cls, rows: Any) -> SparseFeatures:
        """Make an instance of a CSR matrix (n, p): sum up duplicate entries and drop stored zeros.

        rows: the matrix, which is not changed.
        """
        matrix = csr_array(rows)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        if not matrix.data.all():
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        return cls(matrix)

    def __len__(self) -> int:
        """Return the number of rows, n."""
        return int(self.matrix.shape[0])

    @property
    def tables(self) -> tuple[Any, ...]:
        """The CSR matrix (n, p) as a tuple of one table, as `hash_samples` takes it."""
        return (self.matrix,)

    def is_float32(self, feature: int) -> bool:  # noqa: ARG002 -- as in `DenseFeatures`
        """Return whether the matrix, and so every feature, has dtype float32. feature: not read."""
        return bool(self.matrix.dtype == np.float32)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.matrix.shape[1])

    @property
    def table(self) -> None:
        """None: there is no C-ordered array (n, p) of all values, as `DenseFeatures.table` is."""
        return

    def take_matrix(self, rows: Any) -> Any:
        """Return some rows as a CSR array (m, p); rows: their indices, (m,), or a range."""
        return self.matrix[np.asarray(rows)]

    def take(self, indices: NDArray[Any]) -> SparseFeatures:
        """Return a copy of the rows at these indices, (m,), as a `SparseFeatures`."""
        return SparseFeatures(self.matrix[indices])

    def score_in_blocks(self, scores: Callable[[Any], Float64]) -> Float64:
        """Return the scores of all rows, (k, n), from one call of a function.

        Unlike `DenseFeatures.score_in_blocks` it makes no blocks, as sparse rows need little
        memory.

        scores: function that maps rows, a CSR array (n, p), to scores (k, n) for k outputs.
        """
        return scores(self.matrix)

    def by_feature(self) -> CSRArrays:
        """Return the stored values feature by feature (CSC order), as the C++ core reads them.

        Return a tuple of four entries: where the entries of each feature start, (p + 1,) int64; the
        row of each entry, (n_stored,) int32; its value, (n_stored,); and the number of rows, n.
        """
        columns = self.matrix.tocsc()
        return get_csr_arrays(columns.T)


DenseOrSparseFeatures = DenseFeatures | SparseFeatures

# Smaller tables are not worth a conversion. With at most this fraction of values that are not 0,
# histograms of stored values take less time than those of all values.
_MIN_VALUES, _MAX_STORED = 2**20, 0.125


def is_mostly_zero(features: DenseOrSparseFeatures, n_compared: int | None = None) -> bool:
    """Return whether a fit takes less time if its features are stored as sparse ones.

    True for dense features with at least 2^20 values in one dtype, if at most an eighth of them is
    not 0, and a row has on average no more such values than a node compares features. The fitted
    model is the same either way. False for features that are sparse already.

    n_compared: number of features that each node compares; None: all of them.
    """
    if isinstance(features, SparseFeatures) or len({one.dtype for one in features.tables}) > 1:
        return False
    n_values = len(features) * features.n_features
    if n_values < _MIN_VALUES:
        return False
    n_stored = sum(map(np.count_nonzero, features.tables))
    # Histograms of all values read those of the compared features alone.
    most = len(features) * (features.n_features if n_compared is None else n_compared)
    return n_stored <= min(_MAX_STORED * n_values, most)


def to_sparse(features: DenseOrSparseFeatures) -> SparseFeatures:
    """Convert encoded features to `SparseFeatures` with the same values, or return sparse ones."""
    if isinstance(features, SparseFeatures):
        return features
    rows = [np.flatnonzero(column) for column in features.columns]
    values = [column[j] for column, j in zip(features.columns, rows, strict=True)]
    starts = np.cumsum([0, *map(len, rows)])
    shape = len(features), features.n_features
    entries = np.concatenate(values), np.concatenate(rows), starts
    return SparseFeatures.from_csr(csc_array(entries, shape=shape).tocsr())


def to_dense(rows: Any) -> NDArray[Any]:
    """Return rows (n, p) as a dense array; a dense array is returned unchanged."""
    is_sparse: bool = issparse(rows)
    dense: NDArray[Any] = rows.toarray() if is_sparse else rows
    return dense


def stack_tables(tables: Sequence[Any]) -> Any:
    """Concatenate the rows of tables, (n_i, p) each, to one table with all rows.

    It is a CSR array if any of the tables is sparse, else a dense array.
    """
    if not any(map(issparse, tables)):
        return np.concatenate(tables)
    return vstack([csr_array(one) for one in tables], format="csr")
