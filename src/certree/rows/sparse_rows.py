"""Encoded features of sparse rows, and functions for rows that are dense or sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from certree.interface.arrays import CSRArrays, Float64, get_csr_arrays
from certree.rows.features import DenseFeatures


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Encoded features of rows most of whose values are 0; it has the methods of `DenseFeatures`.

    Parameters
    ----------
    matrix : csr_array of shape (n, p)
        Values in float64 or float32. No zero is stored; features ascend within a row, each once.
    """

    matrix: Any

    @classmethod
    def from_csr(cls, rows: Any) -> SparseFeatures:
        """Convert a CSR matrix: sum up duplicate entries and drop stored zeros.

        The matrix itself is not changed.
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
        """Return the matrix as a tuple of one table, as `hash_samples` takes it."""
        return (self.matrix,)

    def is_float32(self, feature: int) -> bool:  # noqa: ARG002 -- as in `DenseFeatures`
        """Return whether the matrix, and so every feature, has dtype float32. feature: not read."""
        return bool(self.matrix.dtype == np.float32)

    @property
    def n_features(self) -> int:
        """Return the number of features, p."""
        return int(self.matrix.shape[1])

    @property
    def table(self) -> None:
        """Return None, as sparse rows are not stored as a C-ordered array."""
        return

    def take_matrix(self, rows: Any) -> Any:
        """Return the rows at these indices as a CSR array (m, p)."""
        return self.matrix[np.asarray(rows)]

    def take(self, indices: NDArray[Any]) -> SparseFeatures:
        """Return the rows at these indices."""
        return SparseFeatures(self.matrix[indices])

    def score_in_blocks(self, scores: Callable[[Any], Float64]) -> Float64:
        """Return the scores of all rows, (k, n), in one block.

        scores: function that maps a CSR array (n, p) to them.
        """
        return scores(self.matrix)

    def by_feature(self) -> CSRArrays:
        """Return the arrays of the transposed matrix (p, n) in CSR order, as the core reads them.

        They are the start of each feature, the rows and the values of its entries, and n.
        """
        columns = self.matrix.tocsc()
        return get_csr_arrays(columns.T)


DenseOrSparseFeatures = DenseFeatures | SparseFeatures


def to_dense(rows: Any) -> NDArray[Any]:
    """Return rows (n, p) as a dense array; a dense array is returned unchanged."""
    is_sparse: bool = issparse(rows)
    dense: NDArray[Any] = rows.toarray() if is_sparse else rows
    return dense


def stack_tables(tables: Sequence[Any]) -> Any:
    """Concatenate the rows of tables with the same columns; a CSR array if one is sparse."""
    if not any(map(issparse, tables)):
        return np.concatenate(tables)
    return vstack([csr_array(one) for one in tables], format="csr")
