"""All rows of an out-of-core fit on one machine, joined in one table of memory-mapped arrays.

The core reads mapped arrays like arrays in memory, so it fits the table as one in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certree.grow.bins import CACHE, UInt8
from certree.interface.arrays import Float64, Int32, UInt64
from certree.out_of_core.row_block import RowBlock

# Rows that are transposed at a time.
_TRANSPOSED_ROWS = 2**16
# Bytes of a row during the rounds: two copies of its codes, one of which the core makes; and for one
# output its target, weight, key, score, gradient, Hessian and sort keys.
_BYTES_PER_CODE, _BYTES_PER_ROW = 2, 96
# Largest size in bytes of joined rows that stay in memory, which is faster than files. Reading has
# taken more memory before.
_MOST_BYTES_IN_MEMORY = 2**28


class Storage(Protocol):
    """Protocol of classes that allocate large arrays: in memory, or in memory-mapped files."""

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return a new array of arbitrary values.

        Raise OSError if it is stored in a file and the disk is full.
        """
        ...

    def hold_core_arrays(self) -> AbstractContextManager[Any]:
        """Return a context in which the compiled core allocates its large arrays in this storage."""
        ...


class _Memory:
    """A `Storage` that allocates arrays in memory."""

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Allocate an array in memory without initializing its values."""
        return np.empty(shape, dtype)

    def hold_core_arrays(self) -> AbstractContextManager[Any]:
        """Return a context that does nothing, as the compiled core allocates in memory by default."""
        return nullcontext()


MEMORY = _Memory()


def choose_storage(files: Storage | None, n_bytes: int, *, is_limited: bool = False) -> Storage:
    """Choose where arrays are allocated: in files if they are large or memory is limited.

    Return `files`, or the storage `MEMORY`, whose arrays are in memory.

    files: storage in files; None: there is none, and arrays are in memory; n_bytes: total size of
    the arrays; is_limited: whether the fit has a memory limit.
    """
    in_memory = files is None or (n_bytes <= _MOST_BYTES_IN_MEMORY and not is_limited)
    return MEMORY if in_memory or files is None else files


def count_bytes(blocks: Sequence[RowBlock]) -> int:
    """Estimate the bytes of the arrays that boosting needs for the rows of all blocks.

    They decide whether the joined rows are stored in memory or in files. blocks: at least one.
    """
    p = len(blocks[0].codes)
    per_row = _BYTES_PER_CODE * p + _BYTES_PER_ROW
    return sum(block.n * per_row + block.X_val.nbytes for block in blocks)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRows:
    """The n training rows of an out-of-core fit as one table, followed by the n_val validation rows.

    Parameters
    ----------
    codes : ndarray of uint8, shape (p, n)
        Bin codes of the training rows.
    y : ndarray of float64, shape (n_targets, n + n_val)
        Targets of all rows: numbers or class codes.
    weight : ndarray of float64, shape (n + n_val,), or None
        Weights of all rows; None: 1.
    keys : ndarray of uint64, shape (n,)
        Random key of each training row: a hash of its values and of its number among equal rows.
        Rows sorted by key have the same order whatever the division into blocks.
    X_val : ndarray of float64, shape (n_val, p), or None
        Feature values of the validation set; None: there is none.
    digests : mapping of int to int
        Checksum of each block of which the table was joined, by the number of the block. Later passes
        compare blocks that were recomputed with it.
    storage : Storage
        Allocates these arrays, and others of the fit.
    offset : ndarray of float64, shape (n_outputs, n + n_val), or None
        Offsets of all rows; None: there are none.
    fold : ndarray of uint8, shape (n,), or None
        Number of the fold whose validation set has each training row; None: there are no folds.
    categories : ndarray of int32, shape (q, n)
        For the q categorical features with more categories than bins, by ascending index of the
        feature: the index of each training row's category among the feature's categories; their
        number for a missing value. q is 0 if these indices are not needed.
    """

    codes: UInt8
    y: Float64
    weight: Float64 | None
    keys: UInt64
    X_val: Float64 | None
    digests: Mapping[int, int]
    storage: Storage
    offset: Float64 | None = None
    fold: UInt8 | None = None
    categories: Int32 = field(default_factory=lambda: np.zeros((0, 0), np.int32))

    @classmethod
    def join(cls, blocks: Sequence[RowBlock], storage: Storage) -> JoinedRows:
        """Join the rows of all blocks in one table: training rows, then validation rows.

        blocks: at least one; storage: allocates the arrays of the table, in memory or in files.
        """
        n = sum(block.n for block in blocks)
        n_val = sum(block.n_val for block in blocks)
        has_weights = any(len(weight) for block in blocks for weight in _list_weights(block))
        y = [np.atleast_2d(block.y) for block in blocks]
        y += [np.atleast_2d(block.y_val) for block in blocks if block.n_val]
        X_val = [block.X_val for block in blocks if block.n_val]
        has_folds = any(len(block.fold) for block in blocks)
        return cls(
            codes=_join(storage, [block.codes for block in blocks]),
            y=_join(storage, y),
            weight=_join_weights(storage, blocks, n + n_val) if has_weights else None,
            keys=_join(storage, [block.keys for block in blocks]),
            X_val=_stack(storage, X_val) if X_val else None,
            digests={block.number: block.digest for block in blocks},
            storage=storage,
            offset=_join_offsets(storage, blocks),
            fold=_join(storage, [block.fold for block in blocks]) if has_folds else None,
            categories=_join(storage, [block.categories for block in blocks]),
        )

    @property
    def n(self) -> int:
        """Number of training rows of the table, without validation rows."""
        return len(self.keys)

    def transpose_codes(self) -> UInt8:
        """Return the bin codes row by row, (n, p), so that those of a row are adjacent in memory.

        Return an empty (0, 0) array if the codes fit in the processor's cache, where the order does
        not matter.
        """
        return transpose_codes(self.codes, self.storage)


def transpose_codes(codes: UInt8, storage: Storage) -> UInt8:
    """Transpose bin numbers, so that those of a row are adjacent in memory.

    codes: bin numbers, (p, n); storage: allocates the result. Return (n, p); an empty (0, 0) array
    if `codes` fits in the processor's cache, where the order does not matter.
    """
    p, n = codes.shape
    if codes.size <= CACHE:
        return np.zeros((0, 0), np.uint8)
    by_row = storage.allocate((n, p), np.uint8)
    for start in range(0, n, _TRANSPOSED_ROWS):
        rows = slice(start, start + _TRANSPOSED_ROWS)
        by_row[rows] = codes[:, rows].T
    return by_row


def _list_weights(block: RowBlock) -> Iterator[Float64]:
    """Yield the weights of a block: of training rows, then of validation rows, unless None."""
    for weight in (block.weight, block.weight_val):
        if weight is not None:
            yield weight


def _join(storage: Storage, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays of several blocks along the last axis, that of the rows.

    storage: allocates the result; arrays: at least one, equal in dtype and all other dimensions.
    """
    shape = *arrays[0].shape[:-1], sum(array.shape[-1] for array in arrays)
    joined, start = storage.allocate(shape, arrays[0].dtype), 0
    for array in arrays:
        joined[..., start : start + array.shape[-1]] = array
        start += array.shape[-1]
    return joined


def _stack(storage: Storage, tables: Sequence[Float64]) -> Float64:
    """Join float64 tables, (n_i, p), along the first axis, that of the rows.

    storage: allocates the result; tables: at least one.
    """
    shape = sum(map(len, tables)), tables[0].shape[1]
    joined, start = storage.allocate(shape, np.float64), 0
    for table in tables:
        joined[start : start + len(table)] = table
        start += len(table)
    return joined


def _join_weights(storage: Storage, blocks: Sequence[RowBlock], n_all: int) -> Float64:
    """Join the row weights of all blocks: the training rows, then the validation set.

    storage: allocates the result; blocks: blocks of rows, whose weights are 1 if they are None;
    n_all: number of training and validation rows. Return (n_all,).
    """
    joined, start = storage.allocate((n_all,), np.float64), 0
    pairs = [(block.n, block.weight) for block in blocks]
    pairs += [(block.n_val, block.weight_val) for block in blocks]
    for n, weight in pairs:
        joined[start : start + n] = 1.0 if weight is None else weight
        start += n
    return joined


def _join_offsets(storage: Storage, blocks: Sequence[RowBlock]) -> Float64 | None:
    """Join the offsets of all blocks: the training rows, then the validation set.

    storage: allocates the result. Return (n_outputs, n_all), or None if rows have no offsets.
    """
    both = [block.offset for block in blocks] + [block.offset_val for block in blocks]
    offsets = [offset for offset in both if offset is not None]  # blocks without rows have none
    return _join(storage, offsets) if offsets else None
