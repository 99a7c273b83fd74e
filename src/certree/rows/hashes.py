"""Hash rows to 64 bits, to recognise the rows of a fit and to draw rows by content."""

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

# The constants of splitmix64.
_STEP, _FIRST, _SECOND = (
    np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
# Rows that are inspected at a time, so that intermediate arrays stay in the cache.
_BLOCK = 8192
# Numbers that are copied at a time if they are neither float32 nor float64.
_COPIED = 2**20


def hash_samples(
    *tables: NDArray[Any], rounded: bool = False, order: Int32 | None = None
) -> UInt64:
    """Hash each row of a table of numbers, (n,) uint64; the same in every process.

    Equal numbers have equal hashes: -0.0 equals 0.0, and NaN equals NaN. Sparse rows have the
    hashes of the same dense rows.

    Parameters
    ----------
    *tables : ndarrays or CSR arrays of shape (n, p) or (n,)
        Columns of the rows, from left to right; they are hashed as float64.
    rounded : bool
        Whether values are rounded to float32 first. The hash of a rounded row differs from the hash
        that the same values have without rounding.
    order : ndarray of int32, shape (q,), or None
        Indices of the first q columns in the order in which they are hashed, so that hashes need
        not depend on the order of the table's columns; later columns follow. None: 0, 1, ....

    Returns
    -------
    ndarray of uint64, shape (n,)
    """
    if any(map(issparse, tables)):
        rows = hstack([csr_array(_to_two_dimensions(one)) for one in tables], format="csr")
        if order is not None:
            rows = rows[:, _complete_order(order, rows.shape[1])]
            rows.sort_indices()
        return hash_rows(get_csr_arrays(rows.astype(np.float64, copy=False)), rounded, 1)
    n, width = len(tables[0]), sum(1 if one.ndim == 1 else one.shape[1] for one in tables)
    places: Any = range(width) if order is None else _complete_order(order, width)
    hashes, step = np.empty(n, dtype=np.uint64), max(1, _COPIED // max(width, 1))
    for start in range(0, n, step):
        some = slice(start, start + step)
        columns = [column for one in tables for column in _split_columns(one[some])]
        hashes[some] = hash_rows([columns[j] for j in places], rounded, 1)
    return hashes


def _split_columns(table: NDArray[Any]) -> Any:
    """Return the columns of a dense table, (n, p) or (n,), as float32 or float64, (p, n).

    Columns of other types, and unaligned ones (such as fields of records), are copied to float64.
    """
    if table.dtype not in (np.float64, np.float32) or not table.flags.aligned:
        table = table.astype(np.float64)
    return np.atleast_2d(table.T)


def _complete_order(order: Int32, width: int) -> NDArray[np.intp]:
    """Append the indices of the last columns of a table to an order of its first columns.

    order: a permutation of the indices of the first columns. width: number of columns. Return a
    permutation of 0, ..., width - 1.
    """
    return np.append(order, np.arange(len(order), width)).astype(np.intp)


def _to_two_dimensions(table: Any) -> Any:
    return table if table.ndim == 2 else table[:, None]


def mix(words: UInt64) -> UInt64:
    """Hash 64-bit words one by one, so that each bit of the input changes every bit of the output.

    The finaliser of MurmurHash3 with the constants of Stafford's variant 13. words: array of any
    shape; the result has the same shape.
    """
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def extend_hashes(hashes: UInt64, *columns: Float64) -> UInt64:
    """Combine the hash of each row with the values of more columns to a new hash, (n,) uint64.

    hashes: hashes of the rows, (n,). columns: values of the rows, (n,) each, which must hold
    neither NaN nor -0.0.
    """
    for column in columns:
        hashes = mix((hashes ^ column.view(np.uint64)) + _STEP)
    return hashes


def number_copies(starts: NDArray[np.bool_]) -> UInt64:
    """Return each row's copy number, (n,) uint64: 0 for the first of equal rows, 1 for the second.

    starts: mask of n sorted rows, True for the first row and for rows that differ from the row
    before them.
    """
    place = np.arange(len(starts))
    first = place * starts
    np.maximum.accumulate(first, out=first)
    np.subtract(place, first, out=place)
    return place.view(np.uint64)


def hash_target(target: Float64, rows: UInt64, largest: float | None = None) -> int:
    """Hash a numeric target together with the features of its rows to a single integer.

    The result does not depend on the order of the rows or on the unit of the target.
    `order_targets` sorts several targets by it.

    Parameters
    ----------
    target : ndarray of float64, shape (n,)
        Target of each row; it is divided by the largest absolute value before it is hashed.
    rows : ndarray of uint64, shape (n,)
        Hash of the features of each row.
    largest : float or None
        The largest absolute value, if these rows are one of several blocks. The results of all
        blocks then add up, modulo 2^64, to that of all rows. None: computed from target.

    Returns
    -------
    int
        Sum of hashes of the rows modulo 2^64, in 0, ..., 2^64 - 1.
    """
    scaled = divide_by_largest(target, largest) if target.any() else target
    return int(mix(rows ^ hash_samples(scaled)).sum(dtype=np.uint64))


def order_targets(
    y: NDArray[Any], *tables: NDArray[Any], order: Int32 | None = None
) -> NDArray[np.intp]:
    """Sort q numeric targets by hashes of their values, and return their indices, (q,).

    So models can process targets in an order that changes neither with the order of the columns of
    y nor with that of the rows.

    y: targets, (n, q). tables: columns of the features, (n, p) or (n,) each. order: indices of the
    first columns in the order in which they are hashed; None: 0, 1, ....
    """
    hashes = hash_samples(*tables, order=order)
    target_hashes = [hash_target(one, hashes) for one in y.T.astype(np.float64)]
    return np.argsort(np.array(target_hashes, dtype=np.uint64), kind="stable")


def compute_content_keys(
    *tables: NDArray[Any], weight: Float64 | None = None, order: Int32 | None = None
) -> UInt64:
    """Compute the key of each row, (n,) uint64: a random number that the row's values determine.

    A key is the hash of the row's values and of its copy number: 0 for the first of equal rows, 1
    for the second, .... So equal rows get different keys. Callers draw rows by comparing or sorting
    keys, so that the draw does not depend on the order of the rows.

    Parameters
    ----------
    *tables : ndarrays or CSR arrays of shape (n, p) or (n,)
        Columns of the rows, from left to right.
    weight : ndarray of float64, shape (n,), or None
        Weight of each row. Equal rows are numbered by ascending weight. Weights have no other
        influence, so that their unit does not matter. None: equal rows are numbered in the order of
        the table.
    order : ndarray of int32, shape (q,), or None
        Indices of the first q columns in the order in which they are hashed; None: 0, 1, ....

    Returns
    -------
    ndarray of uint64, shape (n,)
    """
    return compute_keys(hash_samples(*tables, order=order), weight)


class ChangedRowsError(ValueError):
    """Error of an out-of-core fit: the rows of a block have changed since an earlier pass.

    `compute_keys` raises it if the `EarlierCopies` of the earlier pass do not fit the rows. The
    constructor takes the message, like that of ValueError.
    """


def compute_keys(
    hashes: UInt64, ties: Float64 | None = None, before: EarlierCopies | None = None
) -> UInt64:
    """Replace hashes of rows by keys, in place, and return the keys.

    The key of a row is a hash of its hash and its copy number: 0 for the first of equal rows, 1 for
    the second, .... Rows sorted by key have the same order however they are divided into blocks.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
        Hashes of the rows; overwritten.
    ties : ndarray of float64, shape (n,) or (k, n), or None
        Numbers by which equal rows are numbered, ascending: their weights, or k numbers of each
        row, of which the last one decides first. None: in the order of the table.
    before : EarlierCopies or None
        If these rows are one of several blocks: copy numbers with which equal rows of this block
        start, because other blocks hold equal rows. None: these are all rows.

    Returns
    -------
    ndarray of uint64, shape (n,)
        The array `hashes`, which now holds the keys.

    Raises
    ------
    ChangedRowsError
        If the rows have changed since `before` was computed, so that its entries do not match them.
    """
    order = order_by_hash(hashes, ties)
    ordered = hashes[order]
    starts = mark_run_starts(ordered)
    numbers = number_copies(starts)
    if before is not None and len(before.hashes):
        starts = starts | mark_run_starts(None if ties is None else ties[..., order])
        shared = find_positions(merge_hashes(before.hashes), ordered[starts])[1]
        if shared.sum() != len(before.numbers):
            raise ChangedRowsError(
                "X must have the same rows in each pass over the data, but some have changed: do not "
                "write to its files during the fit"
            )
        runs = np.cumsum(starts) - 1
        within = number_copies(starts)
        number = np.zeros(len(shared), dtype=np.uint64)
        number[shared] = before.numbers
        numbers = np.where(shared[runs], within + number[runs], numbers)
    numbers *= _STEP
    numbers += _STEP
    ordered ^= numbers
    hashes[order] = mix(ordered)
    return hashes


@dataclass(frozen=True, slots=True, eq=False)
class EarlierCopies:
    """Copy numbers with which rows of one block start, if other blocks hold equal rows.

    The equal rows of all blocks are numbered 0, 1, ... by ascending weight, then by ascending
    offset (a known score from which boosting starts) if there are offsets, and then by block.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (k,)
        Hashes of rows that occur in this and in another block, ascending. A hash has one entry for
        each distinct weight (and offset) that rows of this block with this hash have, ascending.
    numbers : ndarray of uint64, shape (k,)
        For each entry the copy number of the first row of this block with this hash and weight: how
        many equal rows, in all blocks, come before it.
    """

    hashes: UInt64
    numbers: UInt64


def order_by_hash(hashes: UInt64, ties: Float64 | None) -> NDArray[np.intp]:
    """Return row indices, (n,), sorted by hash and, among equal hashes, by numbers that break ties.

    hashes: hash of each row, (n,). ties: a number of each row, such as its weight, (n,), or k
    numbers, (k, n), of which the last one decides first; None: equal hashes keep their order.
    """
    if ties is None:
        return np.argsort(hashes, kind="stable")
    return np.lexsort((*np.atleast_2d(ties), hashes))


def mark_run_starts(ordered: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Mark the entries of a sorted array that differ from the entry before them, in a mask (n,).

    The first entry is marked. ordered: sorted array, (n,), or k numbers of each entry, (k, n), any
    of which may differ; None: return an array with the single entry False, which callers combine
    with other masks by broadcasting.
    """
    if ordered is None:
        return np.zeros(1, dtype=np.bool_)
    differs = np.atleast_2d(ordered[..., 1:] != ordered[..., :-1]).any(axis=0)
    return np.append(True, differs)[: ordered.shape[-1]]


def merge_hashes(*hashes: UInt64) -> UInt64:
    """Return the distinct values of one or more arrays of hashes, (k,), ascending and read-only."""
    # np.unique takes forty times as long.
    ordered = np.concatenate(hashes)
    ordered.sort()
    ordered = ordered[mark_run_starts(ordered)]
    ordered.flags.writeable = False
    return ordered


class Float32Rounding(NamedTuple):
    """Which rows change when they are rounded to float32; `inspect` computes it.

    Parameters
    ----------
    is_exact : ndarray of bool, shape (n,)
        True for rows all of whose values float32 represents exactly.
    is_fractional : ndarray of bool, shape (n,)
        True for rows with at least one value that is not an integer and that float32 does not
        represent exactly. certree recognises such a row also after rounding to float32. Rows in
        which only integers would be rounded, such as ids above 2^24, are not: different integers
        may become the same number of float32.
    """

    is_exact: NDArray[np.bool_]
    is_fractional: NDArray[np.bool_]

    @classmethod
    def inspect(cls, *tables: NDArray[Any], n: int | None = None) -> Float32Rounding:
        """Return which of n rows change when they are rounded to float32, as two masks.

        tables: columns of the rows from left to right, dense or CSR, (n, p) or (n,) each. n: number
        of rows; None: that of the first table. Without tables no row changes.
        """
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
    """Mark in two masks which rows of dense tables change when they are rounded to float32.

    In `is_exact` a row with a value that float32 does not represent exactly becomes False. In
    `is_fractional` it becomes True if such a value is not an integer. After a fractional value both
    entries of a row are final, so that its later columns are not read.

    tables: columns of all n rows, (n, p) each, where p may differ. rows: slice of the rows to
    inspect. is_exact, is_fractional: masks of all n rows, (n,) bool, changed in place. Callers
    start with True in all of is_exact and False in all of is_fractional.
    """
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
    """Mark the numbers that rounding to float32 changes, and those of them that are fractions.

    Return two masks of the shape of values. The first one marks numbers that change, the second one
    those of them that are not integers. NaN and infinite values are in neither. Finite numbers too
    large for float32 are in the first one.
    """
    with np.errstate(over="ignore"):  # too large numbers become infinite in float32
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
    """Round rows to float32, and hash the result by `hash_samples`; return (n,) uint64.

    These are the hashes of rows that were passed as float32. They differ from those of
    ``hash_samples(..., rounded=True)``, which mark rows as rounded. tables: columns of the rows,
    (n, p) or (n,) each.
    """
    with np.errstate(over="ignore"):
        return hash_samples(*(one.astype(np.float32) for one in tables))


def compute_fit_hashes(*tables: NDArray[Any], exact: UInt64 | None = None) -> UInt64:
    """Return the hashes by which a model recognises rows of its fit, distinct and ascending.

    These are the hashes of all rows. For fractional rows, which hold a number with decimals that
    float32 does not represent exactly, they are also those after rounding to float32.

    tables: columns of the rows, (n, p) or (n,) each. exact: result of ``hash_samples(*tables)``,
    (n,), to save time; None: it is computed.
    """
    exact = hash_samples(*tables) if exact is None else exact
    return merge_hashes(exact, hash_fractional_rows(*tables))


def hash_fractional_rows(*tables: NDArray[Any]) -> UInt64:
    """Return the hashes of the fractional rows, (n_fractional,) uint64, after rounding to float32.

    They are computed by `hash_samples` with ``rounded=True``. Fractional rows hold a number with
    decimals that float32 does not represent exactly. tables: columns of all rows, (n, p) or (n,)
    each.
    """
    fractional = np.flatnonzero(Float32Rounding.inspect(*tables).is_fractional)
    if not len(fractional):
        return np.zeros(0, dtype=np.uint64)
    return hash_samples(*_take_table_rows(tables, fractional), rounded=True)


def _take_table_rows(
    tables: tuple[NDArray[Any], ...], rows: NDArray[np.intp]
) -> list[NDArray[Any]]:
    """Select the same rows from each table; return a list of arrays in the order of the tables.

    tables: dense or CSR, (n, p) or (n,) each. rows: distinct row indices, ascending, (m,); if m is
    n, the tables themselves are returned, without a copy.
    """
    return [*tables] if len(rows) == tables[0].shape[0] else [one[rows] for one in tables]


class RowHashes(NamedTuple):
    """Hashes of rows with their targets, from which `keys` finds rows that are copies.

    Two rows are copies if they are equal as float64. They are also copies if rounding to float32
    turns one into the other; then one of them is exact in float32 and the other one fractional: it
    holds a number with decimals that float32 does not represent exactly. Targets are compared after
    rounding to float32, unless they are integers.

    Parameters
    ----------
    exact : ndarray of uint64, shape (n,)
        Hash of the features and the target of each row.
    fractional : ndarray of intp, shape (m,)
        Indices of the fractional rows.
    rounded : ndarray of uint64, shape (m,)
        Hashes of the fractional rows, target included, after rounding to float32.
    is_float32 : ndarray of bool, shape (n,)
        True for rows all of whose features are exact in float32.
    """

    exact: UInt64
    fractional: NDArray[np.intp]
    rounded: UInt64
    is_float32: NDArray[np.bool_]

    @classmethod
    def hash_rows(
        cls, features: Sequence[NDArray[Any]], target: NDArray[Any], *, are_all: bool = False
    ) -> RowHashes:
        """Hash rows of numbers with their targets.

        Parameters
        ----------
        features : sequence of ndarrays or CSR arrays of shape (n, p) or (n,)
            Columns of the rows from left to right.
        target : ndarray of shape (n,)
            Target of each row.
        are_all : bool
            True if the rows are compared with each other only, not with rows of other tables. If
            none of them is exact in float32, `fractional` and `rounded` are then left empty, which
            saves time.

        Returns
        -------
        RowHashes
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
        """Join the hashes of several tables into one instance, as if the tables were stacked.

        hashes: one instance for each table, in the order of the tables.
        """
        ends = np.cumsum([0, *(len(one.exact) for one in hashes)])
        moved = [one.fractional + end for one, end in zip(hashes, ends, strict=False)]
        exact, rounded, is_float32 = (
            np.concatenate([getattr(one, name) for one in hashes])
            for name in ("exact", "rounded", "is_float32")
        )
        return cls(exact, np.concatenate(moved), rounded, is_float32)

    @property
    def keys(self) -> UInt64:
        """A number for each row, (n,) uint64: equal for copies, different for other rows.

        Copies are rows that are equal, or of which one equals the other after rounding to float32. The
        number is the row's hash in `exact`. For a fractional row whose rounded values equal a row that
        is exact in float32, it is the hash of that other row. Keys of different objects are not
        comparable.
        """
        if not (len(self.fractional) and self.is_float32.any()):
            return self.exact
        return self.compute_keys_among(merge_hashes(self.exact[self.is_float32]))

    def compute_keys_among(self, known: UInt64) -> UInt64:
        """Return a number for each row, (n,) uint64: equal for copies in all compared tables.

        Copies are rows that are equal, or of which one equals the other after rounding to float32.
        This is `keys` for several tables: call it on the object of each table, with the same known.
        known: hashes (`exact`) of the rows of all tables that are exact in float32, this table's
        included, distinct and ascending.
        """
        keys = self.exact.copy()
        if len(known):
            is_copy = find_positions(known, self.rounded)[1]
            keys[self.fractional[is_copy]] = self.rounded[is_copy]
        return keys


def _round_fractions(target: NDArray[Any]) -> NDArray[Any]:
    """Round targets to float32, but leave integers unchanged; return an array of the same shape."""
    if target.dtype.kind != "f":
        return target
    with np.errstate(over="ignore"):
        return np.where(np.floor(target) == target, target, target.astype(np.float32))


def count_equal_rows(hashes: NDArray[Any], counts: NDArray[Any] | None = None) -> int:
    """Count the rows that equal another row.

    Parameters
    ----------
    hashes : ndarray of shape (n,)
        Hash of each row, or another number that is the same for equal rows.
    counts : ndarray of shape (n,), or None
        Number of rows that each entry of `hashes` stands for; None: 1 each.

    Returns
    -------
    int
        Number of rows, all rows of each set of equal rows included.
    """
    if counts is not None:
        totals = np.bincount(np.unique(hashes, return_inverse=True)[1], counts)
        return int(totals[totals > 1].sum())
    ordered = np.sort(hashes)
    equals_next = np.zeros(len(ordered) + 1, dtype=np.bool_)
    np.equal(ordered[1:], ordered[:-1], out=equals_next[1:-1])
    return int(np.count_nonzero(equals_next[1:] | equals_next[:-1]))


def find_known_rows(X: NDArray[Any], hashes: UInt64) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find the rows of X that a model was fitted on.

    They are also found if X or the rows of the fit were rounded to float32.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Encoded rows: numbers, and codes for categories, as in the fit.
    hashes : ndarray of uint64
        Hashes of the rows of the fit, ascending: result of `compute_fit_hashes`. In model files of
        early versions they include hashes of rounded integers.

    Returns
    -------
    is_equal : ndarray of bool, shape (n,)
        True for rows that equal a row of the fit.
    is_equal_rounded : ndarray of bool, shape (n,)
        True for rows that equal a row of the fit after either of them is rounded to float32, if the
        rounded row is fractional: it holds a number with decimals that float32 does not represent
        exactly.
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
