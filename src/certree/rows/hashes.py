"""Which rows a model was fitted on, told by 64-bit hashes of their features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from certree._core import hash_rows
from certree.interface.arrays import (
    Float64,
    Int32,
    UInt64,
    divide_by_largest,
    find_positions,
    get_csr_arrays,
)

# The constants of splitmix64, whose steps mix every bit of a number into all of them.
_STEP, _FIRST, _SECOND = (
    np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
# Rows at a time, and numbers of wide ones, so that what is computed stays in the cache.
_BLOCK, _CACHED = 8192, 2**16
# From so many zeros in a row on they count as one word: see core/rows/hashes.hpp.
_LONG_RUN = 256


def hash_samples(
    *tables: NDArray[Any], rounded: bool = False, order: Int32 | None = None
) -> UInt64:
    """Hash each row of numbers, as float64, that one or more tables have side by side, (n,).

    Equal numbers have equal hashes: -0.0 is 0.0, and all NaN are alike. The same in every process.
    Numbers that are `rounded` to float32 have others than those that are not. Rows of a sparse table
    have those of the dense one.

    order: in which the first columns are taken, where hashes are not to depend on where these stand;
    None: as they stand. Others come behind them.
    """
    if any(map(issparse, tables)):
        rows = hstack([csr_array(_to_two_dimensions(one)) for one in tables], format="csr")
        if order is not None:
            rows = rows[:, _complete_order(order, rows.shape[1])]
            rows.sort_indices()
        return hash_rows(get_csr_arrays(rows.astype(np.float64, copy=False)), rounded, 1)
    width = sum(1 if one.ndim == 1 else one.shape[1] for one in tables)
    every = None if order is None else _complete_order(order, width)
    hashes = _hash_wide_rows if width >= _LONG_RUN else _hash_narrow_rows
    return hashes(tables, width, rounded, every)


def _complete_order(order: Int32, width: int) -> NDArray[np.intp]:
    """All columns in an order that is told of the first of them."""
    return np.append(order, np.arange(len(order), width)).astype(np.intp)


def _hash_wide_rows(
    tables: tuple[NDArray[Any], ...], width: int, rounded: bool, order: NDArray[np.intp] | None
) -> UInt64:
    n, step = len(tables[0]), max(1, _CACHED // width)
    hashes = np.empty(n, dtype=np.uint64)
    for start in range(0, n, step):
        block = [_to_two_dimensions(one[start : start + step]) for one in tables]
        rows = np.concatenate(block, axis=1, dtype=np.float64, casting="unsafe")
        rows = rows if order is None else rows[:, order]
        hashes[start : start + step] = hash_rows(np.ascontiguousarray(rows), rounded, 1)
    return hashes


def _to_two_dimensions(table: Any) -> Any:
    return table if table.ndim == 2 else table[:, None]


def _hash_narrow_rows(
    tables: tuple[NDArray[Any], ...], width: int, rounded: bool, order: NDArray[np.intp] | None
) -> UInt64:
    """The same of rows that have no long runs of zeros, column by column."""
    n, taken = len(tables[0]), range(width) if order is None else order.tolist()
    hashes = np.empty(n, dtype=np.uint64)
    for start in range(0, n, _BLOCK):
        blocks = [np.atleast_2d(table[start : start + _BLOCK].T) for table in tables]
        columns = np.empty((width, blocks[0].shape[1]))
        np.concatenate(blocks, out=columns, casting="unsafe")
        if rounded:
            with np.errstate(over="ignore"):  # what float32 does not hold is infinite
                columns = columns.astype(np.float32).astype(np.float64)
        columns += 0.0
        columns[np.isnan(columns)] = np.nan
        mixed = np.full(columns.shape[1], _STEP if rounded else 0, dtype=np.uint64)
        shifted = np.empty_like(mixed)
        words = columns.view(np.uint64)
        for j in taken:
            mixed ^= words[j]
            mixed += _STEP
            mixed ^= np.right_shift(mixed, 30, out=shifted)
            mixed *= _FIRST
            mixed ^= np.right_shift(mixed, 27, out=shifted)
            mixed *= _SECOND
            mixed ^= np.right_shift(mixed, 31, out=shifted)
        hashes[start : start + _BLOCK] = mixed
    return hashes


def mix(words: UInt64) -> UInt64:
    """Spread every bit of a word over all of it (Stafford's variant 13 of MurmurHash3's finisher)."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def extend_hashes(hashes: UInt64, *columns: Float64) -> UInt64:
    """Hashes of rows to which columns of float64 numbers are added, neither NaN nor -0.0."""
    for column in columns:
        hashes = mix((hashes ^ column.view(np.uint64)) + _STEP)
    return hashes


def number_copies(starts: NDArray[np.bool_]) -> UInt64:
    """Which copy each of some ordered rows is, 0, 1, ..., where new rows start is marked."""
    place = np.arange(len(starts))
    first = place * starts
    np.maximum.accumulate(first, out=first)
    np.subtract(place, first, out=place)
    return place.view(np.uint64)


def hash_target(target: Float64, rows: UInt64, largest: float | None = None) -> int:
    """A number for a target of rows (n,), told by their hashes, in whatever order and unit.

    largest: the largest size of more rows, to whose numbers these add up; None: that of these.
    """
    scaled = divide_by_largest(target, largest) if target.any() else target
    return int(mix(rows ^ hash_samples(scaled)).sum(dtype=np.uint64))


def order_targets(
    y: NDArray[Any], *tables: NDArray[Any], order: Int32 | None = None
) -> NDArray[np.intp]:
    """The order that several targets of rows, (n, q), tell themselves, whatever that of the rows."""
    hashes = hash_samples(*tables, order=order)
    told = [hash_target(one, hashes) for one in y.T.astype(np.float64)]
    return np.argsort(np.array(told, dtype=np.uint64), kind="stable")


def compute_content_keys(
    *tables: NDArray[Any], weight: Float64 | None = None, order: Int32 | None = None
) -> UInt64:
    """Compute a number for each row from what tables hold of it, (n,), by which rows are drawn.

    Equal rows are told apart by their rank among each other, by ascending `weight` if there is one.
    The weight has no other part in it, so that no unit of weights changes what is drawn.
    """
    return compute_keys(hash_samples(*tables, order=order), weight)


class ChangedRowsError(ValueError):
    """Rows have changed since they told which of them are equal to rows elsewhere."""


def compute_keys(
    hashes: UInt64, weight: Float64 | None = None, before: EarlierCopies | None = None
) -> UInt64:
    """Turn the hashes of rows into their keys, in place; see `compute_content_keys`.

    before: rows elsewhere that are equal to some of these, and are numbered before them.
    """
    order = order_by_hash(hashes, weight)
    ordered = hashes[order]
    starts = mark_run_starts(ordered)
    copies = number_copies(starts)
    if before is not None and len(before.hashes):
        starts = starts | mark_run_starts(None if weight is None else weight[order])
        shared = find_positions(merge_hashes(before.hashes), ordered[starts])[1]
        if shared.sum() != len(before.numbers):
            raise ChangedRowsError("rows differ from those that were told")
        runs = np.cumsum(starts) - 1
        within = number_copies(starts)
        number = np.zeros(len(shared), dtype=np.uint64)
        number[shared] = before.numbers
        copies = np.where(shared[runs], within + number[runs], copies)
    copies *= _STEP
    copies += _STEP
    ordered ^= copies
    hashes[order] = mix(ordered)
    return hashes


@dataclass(frozen=True, slots=True, eq=False)
class EarlierCopies:
    """Where rows stand among equal rows of several tables.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (k,)
        Hashes that rows of another table have, too: one entry for each weight that own rows of this
        hash have, by ascending hashes and weights.
    numbers : ndarray of uint64, shape (k,)
        How many rows of this hash come before the own ones of this weight.
    """

    hashes: UInt64
    numbers: UInt64


def order_by_hash(hashes: UInt64, weight: Float64 | None) -> NDArray[np.intp]:
    """Find the order of rows by hash, and of equal ones by weight."""
    if weight is None:
        return np.argsort(hashes, kind="stable")
    return np.lexsort((weight, hashes))


def mark_run_starts(ordered: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Mark where another value begins among sorted ones, the first included; of None nothing."""
    if ordered is None:
        return np.zeros(1, dtype=np.bool_)
    return np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]


def merge_hashes(*hashes: UInt64) -> UInt64:
    """All of some hashes once each, ascending."""
    # np.unique takes forty times as long.
    ordered = np.concatenate(hashes)
    ordered.sort()
    ordered = ordered[mark_run_starts(ordered)]
    ordered.flags.writeable = False
    return ordered


class Float32Rounding(NamedTuple):
    """What rounding to float32 does to rows.

    Parameters
    ----------
    is_exact : ndarray of bool, shape (n,)
        Rows that float32 holds as they are.
    is_fractional : ndarray of bool, shape (n,)
        Rows with a value that is neither an integer nor exact in float32. Only these are known again
        once they have passed through float32: integers that it merges, such as seconds since 1970
        or ids above 2^24, are different values.
    """

    is_exact: NDArray[np.bool_]
    is_fractional: NDArray[np.bool_]

    @classmethod
    def inspect(cls, *tables: NDArray[Any], n: int | None = None) -> Float32Rounding:
        """Those of n rows of numbers that tables have side by side; None: as many as these have."""
        n = tables[0].shape[0] if n is None else n
        is_exact, is_fractional = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        dense = []
        for table in tables:
            if table.dtype.kind == "b" or np.can_cast(table.dtype, np.float32):
                continue
            if issparse(table):
                _mark_sparse(table, is_exact, is_fractional)
            else:
                dense.append(_to_two_dimensions(table))
        for start in range(0, n, _BLOCK):
            _mark_dense(dense, slice(start, start + _BLOCK), is_exact, is_fractional)
        return cls(is_exact, is_fractional)


def _mark_dense(
    tables: list[NDArray[Any]],
    rows: slice,
    is_exact: NDArray[np.bool_],
    is_fractional: NDArray[np.bool_],
) -> None:
    """Mark some rows of dense tables; columns after the first fraction of a row are not read."""
    exact, fractional = is_exact[rows], is_fractional[rows]
    left: Any = slice(None)
    for table in tables:
        begin, end = 0, 1
        while begin < table.shape[1] and (isinstance(left, slice) or len(left)):
            inexact, is_fraction = _find_inexact(table[rows, begin:end][left])
            if inexact.any():
                exact[left] &= ~inexact.any(axis=1)
            if is_fraction.any():
                fractional[left] |= is_fraction.any(axis=1)
                left = np.flatnonzero(~fractional)
            begin, end = end, 2 * end


def _find_inexact(values: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which numbers float32 does not hold, and which of these are no integers."""
    with np.errstate(over="ignore"):  # what float32 does not hold is infinite
        inexact = np.asarray(values.astype(np.float32) != values)
    if not inexact.any() or values.dtype.kind != "f":
        return inexact, np.zeros_like(inexact)
    inexact &= values == values  # NaN is NaN in float32
    return inexact, inexact & (np.floor(values) != values)


def _mark_sparse(table: Any, is_exact: NDArray[np.bool_], is_fractional: NDArray[np.bool_]) -> None:
    rows = csr_array(table)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    inexact, fractional = _find_inexact(rows.data)
    is_exact[row[inexact]] = False
    is_fractional[row[fractional]] = True


def hash_as_float32(*tables: NDArray[Any]) -> UInt64:
    """Hashes of what rows are once they have passed through float32, as those of rows that have."""
    with np.errstate(over="ignore"):
        return hash_samples(*(one.astype(np.float32) for one in tables))


def compute_fit_hashes(*tables: NDArray[Any], exact: UInt64 | None = None) -> UInt64:
    """What a model keeps to know the rows of its fit again, also once they have passed through float32.

    exact: hashes of numbers that are not rounded, if they are known.
    """
    exact = hash_samples(*tables) if exact is None else exact
    return merge_hashes(exact, hash_fractional_rows(*tables))


def hash_fractional_rows(*tables: NDArray[Any]) -> UInt64:
    """Hashes by which fractional rows are known once they have passed through float32, (any,)."""
    fractional = np.flatnonzero(Float32Rounding.inspect(*tables).is_fractional)
    if not len(fractional):
        return np.zeros(0, dtype=np.uint64)
    return hash_samples(*_take_table_rows(tables, fractional), rounded=True)


def _take_table_rows(
    tables: tuple[NDArray[Any], ...], rows: NDArray[np.intp]
) -> list[NDArray[Any]]:
    """Some rows of tables; all of them without a copy."""
    return [*tables] if len(rows) == tables[0].shape[0] else [one[rows] for one in tables]


class RowHashes(NamedTuple):
    """Hashes of rows with their targets, by which copies are found.

    Two rows are copies if they are equal as float64. They are also copies if float32 holds one of them
    as it is, the other one is fractional, and both are equal as float32; see `Float32Rounding`. Targets
    are compared as float32 if they are no integers.

    Parameters
    ----------
    exact : ndarray of uint64, shape (n,)
        Hashes of the rows.
    fractional : ndarray of intp, shape (m,)
        Which rows are fractional.
    rounded : ndarray of uint64, shape (m,)
        Hashes of these once they have passed through float32.
    is_float32 : ndarray of bool, shape (n,)
        Which rows float32 holds as they are.
    """

    exact: UInt64
    fractional: NDArray[np.intp]
    rounded: UInt64
    is_float32: NDArray[np.bool_]

    @classmethod
    def hash_rows(
        cls, features: Sequence[NDArray[Any]], target: NDArray[Any], *, are_all: bool = False
    ) -> RowHashes:
        """Those of rows of numbers that tables have side by side, and of their targets.

        are_all: whether they are compared with no other rows.
        """
        kinds = Float32Rounding.inspect(*features, n=len(target))
        target = _round_fractions(target)
        fractional = np.flatnonzero(kinds.is_fractional)
        rounded = np.zeros(0, dtype=np.uint64)
        if are_all and not kinds.is_exact.any():
            fractional = fractional[:0]
        if len(fractional):
            with np.errstate(over="ignore"):
                some = [
                    one.astype(np.float32) for one in _take_table_rows((*features,), fractional)
                ]
            rounded = hash_samples(*some, target[fractional])
        return cls(hash_samples(*features, target), fractional, rounded, kinds.is_exact)

    @classmethod
    def concatenate(cls, hashes: Sequence[RowHashes]) -> RowHashes:
        """Those of several tables, one below the other."""
        ends = np.cumsum([0, *(len(one.exact) for one in hashes)])
        moved = [one.fractional + end for one, end in zip(hashes, ends, strict=False)]
        exact, rounded, is_float32 = (
            np.concatenate([getattr(one, name) for one in hashes])
            for name in ("exact", "rounded", "is_float32")
        )
        return cls(exact, np.concatenate(moved), rounded, is_float32)

    @property
    def keys(self) -> UInt64:
        """A number for each row, (n,), which copies share."""
        if not (len(self.fractional) and self.is_float32.any()):
            return self.exact
        return self.compute_keys_among(merge_hashes(self.exact[self.is_float32]))

    def compute_keys_among(self, known: UInt64) -> UInt64:
        """The same where hashes of rows that float32 holds as they are, ascending, are known."""
        keys = self.exact.copy()
        if len(known):
            is_copy = find_positions(known, self.rounded)[1]
            keys[self.fractional[is_copy]] = self.rounded[is_copy]
        return keys


def _round_fractions(target: NDArray[Any]) -> NDArray[Any]:
    """Targets as float32 holds them, but for integers."""
    if target.dtype.kind != "f":
        return target
    with np.errstate(over="ignore"):
        return np.where(np.floor(target) == target, target, target.astype(np.float32))


def count_rows_with_copies(hashes: NDArray[Any], counts: NDArray[Any] | None = None) -> int:
    """Count the rows that another row equals, by the hashes of all rows.

    Parameters
    ----------
    hashes : ndarray of shape (n,)
        Hash of each row, or another number that is the same where rows are equal.
    counts : ndarray of shape (n,), or None
        How many rows each entry stands for; None: 1.
    """
    if counts is not None:
        totals = np.bincount(np.unique(hashes, return_inverse=True)[1], counts)
        return int(totals[totals > 1].sum())
    ordered = np.sort(hashes)
    equals_next = np.zeros(len(ordered) + 1, dtype=np.bool_)
    np.equal(ordered[1:], ordered[:-1], out=equals_next[1:-1])
    return int(np.count_nonzero(equals_next[1:] | equals_next[:-1]))


def find_known_rows(X: NDArray[Any], hashes: UInt64) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are among those of a fit as they are, and which are once float32 holds them.

    See `Float32Rounding` for what is known again; hashes of earlier versions also hold rounded integers.
    """
    kinds = Float32Rounding.inspect(X)
    rounded = np.zeros(len(X), dtype=bool)
    for is_kind, hash_some in (
        (kinds.is_fractional, hash_as_float32),
        (kinds.is_exact, partial(hash_samples, rounded=True)),
    ):
        rows = np.flatnonzero(is_kind)
        if len(rows):
            rounded[rows] = find_positions(hashes, hash_some(*_take_table_rows((X,), rows)))[1]
    return find_positions(hashes, hash_samples(X))[1], rounded
