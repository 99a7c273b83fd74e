"""All training rows of an out-of-core fit in one table of bin codes, from which trees grow.

A code takes one byte, so the table is an eighth of the rows in float64. Its arrays are mapped files
if they are large or memory is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.grow.bins import Bins, UInt8
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import Float64, Int32, UInt64
from certree.out_of_core.executors import Executor, sum_results
from certree.out_of_core.joined_rows import Storage
from certree.out_of_core.row_block import RowBlock, raise_for_changed_rows
from certree.rows.folds import Indices

# Bytes of a row beside its codes: target, weight, number of its fold, and leaves in two trees.
_BYTES_PER_ROW = 25


@dataclass(frozen=True, slots=True, eq=False)
class GatheredRows:
    """The n training rows of a fit, by default in the order of their blocks.

    `gather_rows` makes it, and `fill_rows` writes to its arrays.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n, p)
        Bin codes of the features; 255 for a missing value.
    y : ndarray of int32 or float64, shape (n,), or (n, n_targets)
        Class codes, or numeric targets.
    weight : ndarray of float64, shape (n,), or None
        Positive weights; None: 1.
    fold : ndarray of uint8, shape (n,), or None
        Number of the fold whose validation set has the row; None: there are no folds.
    categories : ndarray of int32, shape (n, q)
        For the q categorical features with more categories than bins, by ascending index of the
        feature: the index of each row's category among the feature's categories; their number for a
        missing value.
    keys : ndarray of uint64, shape (n,)
        Random keys of the rows (hashes of their values and their number among equal rows), by which
        rows have the same order whatever their blocks; (0,) if q is 0.
    storage : Storage
        Allocates large arrays, in memory or in files.
    block_rows : int
        Number of rows that are processed at a time, which limits temporary arrays.
    """

    codes: UInt8
    y: NDArray[Any]
    weight: Float64 | None
    fold: UInt8 | None
    categories: Int32
    keys: UInt64
    storage: Storage
    block_rows: int

    def make_reduce(self, make_block: Callable[[slice], Any], n_threads: int) -> Callable[..., Any]:
        """Return a function that sums results over ranges of the rows, in threads.

        ``reduce(f, *arguments)`` returns the sum of ``f(block, *arguments)``, which `+` adds; None is
        skipped, and returned if all are None. make_block: takes a slice of 0 .. n - 1, and returns
        the block of these rows; n_threads: number of blocks at a time. The functions of
        `certree.stats.exact_leaf_sums` take such a function.
        """
        slices = [
            slice(begin, begin + self.block_rows)
            for begin in range(0, len(self.y), self.block_rows)
        ]

        def reduce(f: Any, *arguments: Any) -> Any:
            total = None
            with ThreadPoolExecutor(n_threads) as pool:
                # No more results wait than there are threads.
                for first in range(0, len(slices), n_threads):
                    some = slices[first : first + n_threads]
                    results = pool.map(lambda rows: f(make_block(rows), *arguments), some)
                    total = sum_results([total, *results])
            return total

        return reduce


@dataclass(frozen=True, eq=False, kw_only=True)
class BinnedSamples(TrainingSamples):
    """Training samples of which only bin codes are stored, for trees that grow from histograms.

    The field `table` holds the codes, (n, p) uint8. See `TrainingSamples` for all other fields.

    Parameters
    ----------
    edges : Bins
        Bin edges of the p features; their codes are not used.
    storage : Storage
        Allocates the codes of selected samples, in memory or in files.
    """

    edges: Bins
    storage: Storage

    def get_bins(self, max_bins: int) -> Bins:
        """Return the bin edges of the features, with the bin codes of these rows, (p, n), as `codes`.

        max_bins: ignored, as the rows are binned already.
        """
        del max_bins
        return replace(self.edges, codes=self.table.T)

    def replace_columns(
        self,
        features: list[int],
        codes: UInt8,
        replace_in_bins: Callable[[Bins], Bins],
    ) -> BinnedSamples:
        """Return a copy in which some features have other bin codes; the table is copied.

        features: indices of the q features; codes: their new codes, (q, n), 255 for a missing value;
        replace_in_bins: takes the `Bins` of these rows, and returns `Bins` in which the same features
        have the new codes as bins.
        """
        table = self.storage.allocate(self.table.shape, np.uint8)
        table[:] = self.table
        table[:, features] = codes.T
        return replace(self, table=table, edges=replace_in_bins(self.edges))

    def select(self, indices: Indices) -> BinnedSamples:
        """Return the samples at `indices` (row numbers, (k,)); their codes are copied."""
        table = self.storage.allocate((len(indices), self.table.shape[1]), np.uint8)
        np.take(self.table, indices, axis=0, out=table, mode="clip")
        y = None if self.y is None else self.y[indices]
        weight = None if self.weight is None else self.weight[indices]
        return replace(self, table=table, y=y, weight=weight, parent=self, indices=indices)

    @property
    def X(self) -> NDArray[Any]:  # noqa: N802 -- the name of rows in scikit-learn
        """Bin codes of the rows, (n, p) uint8; 255 for a missing value. Raw features are not stored."""
        return self.table


def gather_rows(
    executor: Executor,
    bins: Bins,
    *,
    has_classes: bool,
    has_weights: bool,
    has_folds: bool,
    n_ranked: int = 0,
) -> GatheredRows:
    """Copy the training rows of all blocks to one table.

    Parameters
    ----------
    executor : Executor
        Holds the blocks, which are not changed.
    bins : Bins
        Bin edges of the p features.
    has_classes, has_weights, has_folds : bool
        Whether targets are classes, rows have weights, and rows are assigned to folds.
    n_ranked : int
        Number of features for which blocks store indices of categories, because they have more
        categories than bins. If it is not 0, the caller must have replaced the hashes in the field
        `keys` of the blocks by random keys of the rows, see `certree.out_of_core.keys.set_keys`.

    Returns
    -------
    GatheredRows
        The rows, ordered by the numbers of their blocks.

    Raises
    ------
    ValueError
        If a block was lost, and recomputed from other rows than before.
    OSError
        If there is no space for the arrays.
    """
    sizes = sorted(executor.reduce(list_sizes), key=itemgetter(0))
    n, p = sum(size for _, size, _ in sizes), bins.n_features
    row_bytes = p + _BYTES_PER_ROW + (4 * n_ranked + 8 if n_ranked else 0)
    storage = executor.choose_storage(n * row_bytes)
    rows = GatheredRows(
        codes=storage.allocate((n, p), np.uint8),
        y=storage.allocate((n,), np.int32 if has_classes else np.float64),
        weight=storage.allocate((n,), np.float64) if has_weights else None,
        fold=storage.allocate((n,), np.uint8) if has_folds else None,
        categories=storage.allocate((n, n_ranked), np.int32),
        keys=storage.allocate((n if n_ranked else 0,), np.uint64),
        storage=storage,
        block_rows=executor.block_sizes.block_rows,
    )
    places, begin = {}, 0
    for number, size, digest in sizes:
        places[number], begin = (begin, digest), begin + size
    fill_rows(executor, rows, row_bytes, places)
    return rows


def fill_rows(
    executor: Executor,
    rows: GatheredRows,
    row_bytes: int,
    places: Mapping[int, tuple[int, int]] | None = None,
) -> None:
    """Copy the training rows of all blocks to the arrays of one table.

    Parameters
    ----------
    executor : Executor
        Has the blocks.
    rows : GatheredRows
        The arrays, which are overwritten.
    row_bytes : int
        Bytes that a row takes while it is sent. As many rows are copied at a time as fit in
        `executor.block_sizes.result_bytes`, but at least one.
    places : mapping of int to tuple of two int, or None
        For each block, by number, the index of its first row in the table, and its digest, a checksum
        of its rows. None: the field `keys` of blocks has the index of each row in the table.

    Raises
    ------
    ValueError
        If a block has another digest, because it was recomputed from other rows.
    """
    step = max(1, executor.block_sizes.result_bytes // row_bytes)
    for first in range(0, len(rows.y), step):
        for copied in executor.reduce(copy_rows, first, first + step, places):
            place, codes, categories, keys, *columns = copied
            rows.codes[place] = codes
            if rows.categories.size:
                rows.categories[place] = categories.T
            if len(rows.keys):
                rows.keys[place] = keys
            for to, column in zip((rows.y, rows.weight, rows.fold), columns, strict=True):
                if to is not None and column is not None:
                    to[place] = column.T


def list_sizes(block: RowBlock) -> list[tuple[int, int, int]]:
    """Return ``[(number of the block, number of its training rows, checksum of its rows)]``.

    `Executor.reduce` concatenates the lists of all blocks.
    """
    return [(block.number, block.n, block.digest)]


def copy_rows(
    block: RowBlock, first: int, end: int, places: Mapping[int, tuple[int, int]] | None
) -> list[tuple[Any, ...]]:
    """Return the rows of a block at the indices first .. end - 1 of the table; [] if it has none.

    The list has one tuple: indices of k rows in the table (array or slice), bin codes (k, p), category
    indices (q, k), keys (k,), targets (k,) or (n_targets, k), weights (k,) or None, and numbers of
    folds (k,) or None. places: for each block, by number, the index of its first row in the table, and
    the checksum of its rows; None: `block.keys` has the index of each row in the table. Raise
    ValueError if the block has another checksum.
    """
    rows: Any
    place: Any
    if places is None:
        rows = np.flatnonzero((block.keys >= np.uint64(first)) & (block.keys < np.uint64(end)))
        rows = rows[np.argsort(block.keys[rows])]
        place = block.keys[rows].astype(np.intp)
        codes = np.ascontiguousarray(block.codes[:, rows].T)
    else:
        begin, digest = places[block.number]
        if digest != block.digest:
            raise_for_changed_rows(block.number)
        rows = slice(max(first - begin, 0), max(min(end - begin, block.n), 0))
        place, codes = slice(begin + rows.start, begin + rows.stop), block.codes[:, rows].T
    if not len(codes):
        return []
    weight = None if block.weight is None else block.weight[rows]
    fold = block.fold[rows] if len(block.fold) == block.n else None
    columns = block.keys[rows], block.y[..., rows], weight, fold
    return [(place, codes, block.categories[:, rows], *columns)]
