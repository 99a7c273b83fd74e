"""Blocks: rows of an out-of-core fit that are processed together, after binning.

Blocks are immutable: a function that changes a block returns another one. A block that was lost with a
worker is recomputed from its partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from certree.grow.bins import UInt8
from certree.interface.arrays import Float64, Int32, UInt64


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """A block of n binned training rows, and n_val raw rows of the validation set.

    A block is a range of rows of an out-of-core fit that are processed together.

    Parameters
    ----------
    number : int
        Number of the block.
    codes : ndarray of uint8, shape (p, n)
        Bin codes of the training rows.
    y : ndarray of float64, shape (n,) or (n_targets, n)
        Targets or class codes of the training rows.
    weight : ndarray of float64, shape (n,), or None
        Weights of the training rows; None: 1.
    keys : ndarray of uint64, shape (n,)
        Random key of each training row: a hash of its values and of its number among equal rows. Rows
        sorted by key have the same order whatever the division into blocks. Until `set_keys` computes
        keys, the field holds hashes of the values.
    digest : int
        Checksum of all rows of the block, by which a recomputed block is compared with the first one.
    fit_hashes, rounded_hashes : ndarray of uint64
        Hashes that a classifier stores to detect its rows later, ascending: one for each row, and the
        distinct hashes of fractional rows after rounding to float32. See `add_hashes`.
    table_hashes : tuple of two int
        Sums of the hashes of rows with their targets: training rows, and validation rows.
    categories : ndarray of int32, shape (q, n)
        For the q categorical features with more categories than bins, by ascending index of the
        feature: index of each training row's category among the feature's categories; their number
        for a missing value. q is 0 once these are replaced by statistics.
    fold : ndarray of uint8, shape (n,) or (0,)
        Number of the fold whose validation set has the row; empty without folds.
    X_val : ndarray of float64, shape (n_val, p)
        Feature values of the validation rows. They are not binned, because trees that are converted
        to thresholds may separate values of one bin.
    y_val, weight_val : ndarray of float64
        Targets and weights of the validation rows, as `y` and `weight`.
    offset, offset_val : ndarray of float64, shape (n_outputs, n) and (n_outputs, n_val), or None
        Offsets of the training rows and of the validation rows; None: no offsets.
    group : ndarray of intp, shape (n,), or None
        Number of the group of each training row, until `keys` are computed from groups; None: no
        groups.
    """

    number: int
    codes: UInt8
    y: Float64
    weight: Float64 | None
    keys: UInt64
    digest: int = 0
    fit_hashes: UInt64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    rounded_hashes: UInt64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    table_hashes: tuple[int, int] = (0, 0)
    categories: Int32 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    fold: UInt8 = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    X_val: Float64 = field(default_factory=lambda: np.zeros((0, 1)))
    y_val: Float64 = field(default_factory=lambda: np.zeros(0))
    weight_val: Float64 | None = None
    offset: Float64 | None = None
    offset_val: Float64 | None = None
    group: NDArray[np.intp] | None = None

    @property
    def n(self) -> int:
        """Number of training rows in the block."""
        return int(self.y.shape[-1])

    @property
    def n_val(self) -> int:
        """Number of validation rows in the block."""
        return int(self.y_val.shape[-1])

    def select_training_rows(self, rows: NDArray[Any]) -> RowBlock:
        """Return a block of some of the training rows, without their bin codes: p is 0.

        rows: mask or indices of the rows. Bin codes, validation rows and the hashes of `add_hashes`
        are left out, as they are not needed and would be copied.
        """
        selected: dict[str, Any] = {
            name: np.asarray(value)[..., rows]
            for name in ("y", "weight", "keys", "categories", "fold", "offset", "group")
            if (value := getattr(self, name)) is not None and value.shape[-1] == self.n
        }
        empty = RowBlock(self.number, self.codes[:, :0], self.y, None, self.keys)
        return replace(empty, digest=self.digest, table_hashes=self.table_hashes, **selected)

    @property
    def ties(self) -> Float64 | None:
        """Numbers by which equal training rows are ordered.

        Weights, (n,); with offsets an array (k, n) of offsets and, in its last row, weights. The
        last row is compared first. None: rows have neither weights nor offsets.
        """
        if self.offset is None:
            return self.weight
        return np.vstack([self.offset, *([] if self.weight is None else [self.weight])])


def expect_same_rows(block: RowBlock, digests: Mapping[int, int]) -> None:
    """Raise ValueError if a block was recomputed from other rows than before.

    digests: checksum of each block when it was first read, by its number.
    """
    if digests[block.number] != block.digest:
        raise_for_changed_rows(block.number)


def raise_for_changed_rows(number: int) -> NoReturn:
    """Raise ValueError: a partition was read again, and has other rows. number: its number."""
    raise ValueError(
        f"X must give the same rows whenever it is read, but partition {number} has other rows than "
        "before: fit again when no program changes the source of X"
    )


def list_digests(block: RowBlock) -> list[tuple[int, int]]:
    """Return ``[(number, checksum)]`` of a block; `Executor.reduce` concatenates such lists."""
    return [(block.number, block.digest)]
