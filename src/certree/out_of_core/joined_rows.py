"""All rows of an out-of-core fit on one machine as one table, whose arrays lie in files.

The core reads mapped arrays as arrays in memory, so the table is fitted as one in memory.
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
from certree.out_of_core.row_block import PartOfRows

# Rows that are transposed at a time.
_TRANSPOSED_ROWS = 2**16
# Bytes of a row during the rounds: two copies of its codes, one of which the core makes, and for one
# output its target, weight, key, score, gradient and Hessian, and what the core sorts rows by.
_BYTES_PER_CODE, _BYTES_PER_ROW = 2, 96
# Arrays of at most so many bytes in all stay in memory, which is faster than files: blocks of rows that
# have been read took more before.
_MOST_BYTES_IN_MEMORY = 2**28


class Storage(Protocol):
    """Where the arrays of joined rows lie: in memory, or in files."""

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array with any values."""
        ...

    def hold_core_arrays(self) -> AbstractContextManager[Any]:
        """Return a context in which the core allocates its large arrays here."""
        ...


class _Memory:
    """Arrays in memory."""

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """See `Storage`."""
        return np.empty(shape, dtype)

    def hold_core_arrays(self) -> AbstractContextManager[Any]:
        """See `Storage`."""
        return nullcontext()


MEMORY = _Memory()


def choose_storage(files: Storage | None, n_bytes: int, *, is_limited: bool = False) -> Storage:
    """Return `files` for arrays of n_bytes in all if they are large or memory is limited, else memory.

    files: storage in files; None: there is none, and arrays are in memory.
    """
    in_memory = files is None or (n_bytes <= _MOST_BYTES_IN_MEMORY and not is_limited)
    return MEMORY if in_memory or files is None else files


def count_bytes(parts: Sequence[PartOfRows]) -> int:
    """Return about how many bytes of arrays rounds of boosting need for the rows of parts."""
    p = len(parts[0].codes)
    per_row = _BYTES_PER_CODE * p + _BYTES_PER_ROW
    return sum(part.n * per_row + part.values.nbytes for part in parts)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRows:
    """The training rows of an out-of-core fit, followed by its validation set.

    Parameters
    ----------
    codes : ndarray of uint8, shape (p, n)
        Bins of the training rows.
    y : ndarray of float64, shape (n_targets, n + n_val)
        Targets of all rows: numbers or class codes.
    weight : ndarray of float64, shape (n + n_val,), or None
        Weights of all rows; None: 1.
    keys : ndarray of uint64, shape (n,)
        Random keys of the training rows.
    values : ndarray of float64, shape (n_val, p), or None
        Feature values of the validation set; None: there is none.
    digests : mapping of int to int
        For the number of each part the digest of its rows, by which they are known again if the part
        is made anew.
    storage : Storage
        Where these arrays lie, and others of the fit.
    offset : ndarray of float64, shape (n_outputs, n + n_val), or None
        Offsets of all rows; None: there are none.
    fold : ndarray of uint8, shape (n,), or None
        Number of the fold whose validation set has each training row; None: there are no folds.
    categories : ndarray of int32, shape (q, n)
        Index of the category of each training row in q features of many categories; q is 0 if it is
        not needed.
    """

    codes: UInt8
    y: Float64
    weight: Float64 | None
    keys: UInt64
    values: Float64 | None
    digests: Mapping[int, int]
    storage: Storage
    offset: Float64 | None = None
    fold: UInt8 | None = None
    categories: Int32 = field(default_factory=lambda: np.zeros((0, 0), np.int32))

    @classmethod
    def join(cls, parts: Sequence[PartOfRows], storage: Storage) -> JoinedRows:
        """Join the rows of parts in arrays of a storage."""
        n = sum(part.n for part in parts)
        n_val = sum(part.n_held for part in parts)
        has_weights = any(len(one) for part in parts for one in _list_weights(part))
        y = [np.atleast_2d(part.y) for part in parts]
        y += [np.atleast_2d(part.y_held) for part in parts if part.n_held]
        held = [part.values for part in parts if part.n_held]
        has_folds = any(len(part.fold) for part in parts)
        return cls(
            codes=_join(storage, [part.codes for part in parts]),
            y=_join(storage, y),
            weight=_join_weights(storage, parts, n + n_val) if has_weights else None,
            keys=_join(storage, [part.keys for part in parts]),
            values=_stack(storage, held) if held else None,
            digests={part.number: part.digest for part in parts},
            storage=storage,
            offset=_join_offsets(storage, parts),
            fold=_join(storage, [part.fold for part in parts]) if has_folds else None,
            categories=_join(storage, [part.places for part in parts]),
        )

    @property
    def n(self) -> int:
        """Number of training rows."""
        return len(self.keys)

    def transpose_codes(self) -> UInt8:
        """Return the codes row by row, (n, p), or (0, 0) if they fit in the processor's cache."""
        return transpose_codes(self.codes, self.storage)


def transpose_codes(codes: UInt8, storage: Storage) -> UInt8:
    """Return codes, (p, n), row by row, (n, p), or (0, 0) if they fit in the processor's cache."""
    p, n = codes.shape
    if codes.size <= CACHE:
        return np.zeros((0, 0), np.uint8)
    by_row = storage.allocate((n, p), np.uint8)
    for start in range(0, n, _TRANSPOSED_ROWS):
        rows = slice(start, start + _TRANSPOSED_ROWS)
        by_row[rows] = codes[:, rows].T
    return by_row


def _list_weights(part: PartOfRows) -> Iterator[Float64]:
    """Yield the weights of the training rows, and of the validation set, that a part has."""
    for weight in (part.weight, part.weight_held):
        if weight is not None:
            yield weight


def _join(storage: Storage, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays along the last axis; rows of all are columns of the result."""
    shape = *arrays[0].shape[:-1], sum(one.shape[-1] for one in arrays)
    whole, start = storage.allocate(shape, arrays[0].dtype), 0
    for one in arrays:
        whole[..., start : start + one.shape[-1]] = one
        start += one.shape[-1]
    return whole


def _stack(storage: Storage, tables: Sequence[Float64]) -> Float64:
    """Join tables along the first axis."""
    whole, start = storage.allocate((sum(map(len, tables)), tables[0].shape[1]), np.float64), 0
    for one in tables:
        whole[start : start + len(one)] = one
        start += len(one)
    return whole


def _join_weights(storage: Storage, parts: Sequence[PartOfRows], n_all: int) -> Float64:
    """Join the weights of training rows and validation set, (n_all,); those of None are 1."""
    whole, start = storage.allocate((n_all,), np.float64), 0
    sides = [(part.n, part.weight) for part in parts]
    sides += [(part.n_held, part.weight_held) for part in parts]
    for n, weight in sides:
        whole[start : start + n] = 1.0 if weight is None else weight
        start += n
    return whole


def _join_offsets(storage: Storage, parts: Sequence[PartOfRows]) -> Float64 | None:
    """Join the offsets of training rows and validation set, (n_outputs, n_all), or return None."""
    sides = [part.offset for part in parts] + [part.offset_held for part in parts]
    offsets = [offset for offset in sides if offset is not None]  # blocks without rows have none
    return _join(storage, offsets) if offsets else None
