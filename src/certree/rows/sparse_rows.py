"""Rows most of whose values are 0: those that are stored, checked, row by row."""

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
    """The features of rows of which most are 0, beside `DenseFeatures`, whose place it takes.

    Parameters
    ----------
    matrix : csr_array of shape (n, p)
        Float64 or float32; what is not stored is 0, and no 0 is stored. Features ascend in a row, each
        once.
    """

    matrix: Any

    @classmethod
    def from_csr(cls, rows: Any) -> SparseFeatures:
        """Bring a CSR matrix of numbers into that form, without a change to what was given."""
        own = csr_array(rows)
        if not own.has_canonical_format:
            own = own.copy()
            own.sum_duplicates()
        if not own.data.all():
            own = own.copy()
            own.eliminate_zeros()
        return cls(own)

    def __len__(self) -> int:
        """Number of rows, n."""
        return int(self.matrix.shape[0])

    @property
    def tables(self) -> tuple[Any, ...]:
        """The rows as they are hashed."""
        return (self.matrix,)

    def is_float32(self, feature: int) -> bool:  # noqa: ARG002 -- as of `DenseFeatures`
        """Whether the values of a feature are float32."""
        return bool(self.matrix.dtype == np.float32)

    @property
    def n_features(self) -> int:
        """Number of features, p."""
        return int(self.matrix.shape[1])

    @property
    def table(self) -> None:
        """The rows in C order, which is where they do not lie."""
        return

    def take_matrix(self, rows: Any) -> Any:
        """Some of the rows, by their numbers, as `matrix` has them."""
        return self.matrix[np.asarray(rows)]

    def take(self, indices: NDArray[Any]) -> SparseFeatures:
        """Some of the rows, by their numbers."""
        return SparseFeatures(self.matrix[indices])

    def score_in_blocks(self, scores: Callable[[Any], Float64]) -> Float64:
        """Scores (k, n) of all rows."""
        return scores(self.matrix)

    def by_feature(self) -> CSRArrays:
        """The values of each feature, as the core takes them."""
        columns = self.matrix.tocsc()
        return get_csr_arrays(columns.T)


DenseOrSparseFeatures = DenseFeatures | SparseFeatures


def to_dense(rows: Any) -> NDArray[Any]:
    """Rows (n, p) with their zeros."""
    is_sparse: bool = issparse(rows)
    dense: NDArray[Any] = rows.toarray() if is_sparse else rows
    return dense


def stack_tables(tables: Sequence[Any]) -> Any:
    """Rows (n, p) of several tables, dense if all are."""
    if not any(map(issparse, tables)):
        return np.concatenate(tables)
    return vstack([csr_array(one) for one in tables], format="csr")
