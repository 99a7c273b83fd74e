"""Hashes of all fitted rows, by which a classifier later detects rows of its fit among others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import UInt64, freeze
from certree.out_of_core.hash_ranges import count_hash_ranges, iterate_hash_intervals
from certree.out_of_core.row_block import RowBlock
from certree.rows.hashes import hash_fractional_rows, hash_samples, merge_hashes
from certree.rows.repeat_counts import RepeatCounts, hash_table

_NONE = np.zeros(0, dtype=np.uint64)


def add_hashes(
    block: RowBlock,
    features: tuple[NDArray[Any], ...],
    y: NDArray[Any],
    *,
    is_validation: bool = False,
) -> RowBlock:
    """Add hashes of its rows to a block; a classifier later detects fitted rows by them.

    Parameters
    ----------
    block : RowBlock
        Binned rows of the block, without these hashes.
    features : tuple of ndarray
        Feature values of the n rows: one or more 2-D tables with n rows each, numbers or category
        codes, as `certree.rows.hashes.hash_samples` accepts them.
    y : ndarray, shape (n,) or (n, n_targets)
        Class code of each row and target.
    is_validation : bool
        Whether the rows are those of a validation set, whose table gets a separate hash.

    Returns
    -------
    RowBlock
        The block with the fields `fit_hashes` (hash of each row, ascending), `rounded_hashes` (of
        the rows with values rounded to float32, distinct and ascending) and `table_hashes` (hash of
        the training rows and of the validation rows; one of them is 0).
    """
    hashes = hash_samples(*features)
    table = hash_table(hashes, y)
    hashes.sort()
    rounded = merge_hashes(hash_fractional_rows(*features))
    tables = (0, table) if is_validation else (table, 0)
    return replace(block, fit_hashes=hashes, rounded_hashes=rounded, table_hashes=tables)


def set_hashes_of_fit(model: Any, executor: Any, n: int, *, continues: bool) -> None:
    """Set the attributes by which a classifier recognises the n rows of its fit.

    model: the classifier. `model.sample_hashes_` becomes the ascending hashes of all rows, and
    `model._sample_counts` their `RepeatCounts`, numbers of distinct and repeated rows. executor: holds
    the rows in blocks with hashes from `add_hashes`, which are removed; continues: whether the rows are
    added to those of the previous fit (warm start). Then nothing is done if `model.sample_hashes_` is
    None.
    """
    if not continues:
        model.sample_hashes_, model._sample_counts = merge_fit_hashes(executor, n)
        return
    hashes, counts = model.sample_hashes_, getattr(model, "_sample_counts", None)
    if hashes is None:
        return
    before = RepeatCounts(0, 0, _NONE, _NONE) if counts is None else replace(counts, tables=())
    model.sample_hashes_, both = merge_fit_hashes(executor, n, (hashes, before))
    if counts is not None:
        model._sample_counts = replace(both, tables=(*counts.tables, *both.tables))


def merge_fit_hashes(
    executor: Any, n: int, earlier: tuple[UInt64, RepeatCounts] | None = None
) -> tuple[UInt64, RepeatCounts]:
    """Merge the hashes of all blocks, and remove them from the blocks.

    Parameters
    ----------
    executor : Executor
        The blocks, with hashes from `add_hashes`. They are replaced by blocks without hashes.
    n : int
        Number of rows in all blocks.
    earlier : tuple of (ndarray of uint64, RepeatCounts), or None
        The result of this function for an earlier fit, whose rows are merged with those of the blocks.
        None: there was no earlier fit.

    Returns
    -------
    hashes : ndarray of uint64, shape (k,)
        Distinct hashes of all rows, ascending, of values and of values rounded to float32. The array
        is read-only.
    counts : RepeatCounts
        Number of all rows, number of distinct rows, hashes that occur twice or more often, and the
        hash of each table (training rows, validation rows).
    """
    others, before = (_NONE, RepeatCounts(0, 0, _NONE, _NONE)) if earlier is None else earlier
    # Pages of the buffer that are never written take no memory.
    buffer, n_kept = np.empty(2 * n + len(others), dtype=np.uint64), 0
    counts, tables = [before], _add_tables(executor.reduce(_get_tables), before.tables)
    n_ranges = count_hash_ranges(n, executor.block_sizes)
    for first, last in iterate_hash_intervals(n_ranges):
        found = executor.reduce(get_hashes_between, first, last)
        exact = np.concatenate([hashes for hashes, _ in found])
        exact.sort()
        known = _take_between(others, first, last)
        twice, often = (
            _take_between(hashes, first, last) for hashes in (before.twice, before.often)
        )
        counts.append(RepeatCounts(0, 0, twice, often).add(known, exact))
        merged = merge_hashes(known, exact, *(rounded for _, rounded in found))
        buffer[n_kept : n_kept + len(merged)] = merged
        n_kept += len(merged)
    executor.replace_blocks(drop_hashes)
    hashes = buffer[:n_kept]
    hashes.flags.writeable = False
    return hashes, _add_counts(counts, tables)


def _add_counts(counts: list[RepeatCounts], tables: tuple[int, ...]) -> RepeatCounts:
    """Merge the counts of distinct and repeated rows of all ranges of hashes to one object.

    counts: first the counts of earlier fits, then those of the rows of this fit in each range of
    hashes, ascending. Numbers of rows are added. Repeated hashes are those of the ranges, which contain
    those of earlier fits. tables: hash of each table of rows, which the result stores.
    """
    return RepeatCounts(
        sum(block.n for block in counts),
        sum(block.n_distinct for block in counts),
        freeze(np.concatenate([block.twice for block in counts[1:]])),
        freeze(np.concatenate([block.often for block in counts[1:]])),
        tables,
    )


def _get_tables(block: RowBlock) -> list[tuple[int, int]]:
    """Return ``[(hash of the training rows of a block, hash of its validation rows)]``.

    The list lets `Executor.reduce` concatenate the pairs of all blocks.
    """
    return [block.table_hashes]


def _add_tables(sums: list[tuple[int, int]], before: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``(hash of all training rows, hash of all validation rows)``.

    Without validation rows, whose hash is 0, the tuple has one element. sums: for each block, the hash
    of its training rows and the hash of its validation rows; before: hashes of the tables of earlier
    fits, which are added to the first element. Hashes are summed modulo 2^64.
    """
    fit, validation = (sum(column) % 2**64 for column in zip(*sums, strict=True))
    total = (fit + sum(before)) % 2**64
    return (total, validation) if validation else (total,)


def get_hashes_between(block: RowBlock, first: int, last: int) -> list[tuple[UInt64, UInt64]]:
    """Return those hashes of a block's rows that are in a range.

    Parameters
    ----------
    block : RowBlock
        Rows with hashes from `add_hashes`.
    first, last : int
        Ends of the range, both included.

    Returns
    -------
    list of one tuple of two ndarrays of uint64
        Hashes of the rows, and hashes of the rows with values rounded to float32; both ascend. The
        list lets `Executor.reduce` concatenate the tuples of all blocks.
    """
    # The slices are views, because blocks in files are mapped and must not be copied to memory.
    return [
        (
            _take_between(block.fit_hashes, first, last),
            _take_between(block.rounded_hashes, first, last),
        )
    ]


def _take_between(hashes: UInt64, first: int, last: int) -> UInt64:
    """Return those of ascending hashes that are in first .. last, both included, as a view."""
    ends = np.array([first, last], dtype=np.uint64)
    begin = int(np.searchsorted(hashes, ends[0], side="left"))
    end = int(np.searchsorted(hashes, ends[1], side="right"))
    return hashes[begin:end]


def drop_hashes(block: RowBlock) -> tuple[RowBlock, int]:
    """Return a block without the row hashes that `add_hashes` has stored, and 0 as partial result."""
    return replace(block, fit_hashes=_NONE, rounded_hashes=_NONE), 0
