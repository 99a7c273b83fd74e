"""Choose the size of row blocks so that a fit to files stays within a memory limit.

All sizes are bytes of anonymous memory. Mapped files of the scratch folder do not count. A sum of a few
terms bounds the memory of a fit from above: what the process holds before the fit, rows that are read,
temporary arrays of the threads, and what the fit keeps. Measured fits stay below this bound.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

from certree.grow.bins import EDGE_ROWS
from certree.interface.extras import import_extra
from certree.out_of_core.plan import FitPlan

# Units of sizes, as in Dask.
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
# Rows of a block without a limit, which keeps temporary arrays small, and the fewest rows of a block.
BLOCK_ROWS, _FEWEST_ROWS = 2**19, 2**14
# Most blocks, because each one has its own files.
_MOST_BLOCKS = 2**11
# For each row of a block: rows whose hashes are compared at a time, and bytes of partial results that
# are requested at a time.
_COMPARED_ROWS, _RESULT_BYTES = 8, 192
# Bytes of Python objects, of modules that are imported late, of thread stacks and of fragments too
# small to be released. All other terms are multiplied by the margin.
_FIXED_BYTES, _MARGIN = 24 * 2**20, 1.15
# Largest accepted number of rows in a range of hashes, divided by the planned number.
_MAX_SIZE_RATIO = 2
# Bytes of the metadata of a block, without its arrays.
_BLOCK_BYTES = 20_000
# Bytes of a group while keys of groups are computed, and of a group of one block while the groups
# of all blocks are numbered, which is earlier. Measured: 95 and 65.
_GROUP_BYTES, _BLOCK_GROUP_BYTES = 98.0, 68.0
# Bytes of a histogram bin (gradient, Hessian, number of rows), and bins of a feature.
_BIN_BYTES, _BINS = 24, 256


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """How many rows a fit to files processes at a time; smaller numbers need less memory.

    Parameters
    ----------
    n_threads : int
        Number of blocks that are processed at a time.
    block_rows : int
        Number of rows in a block.
    compared_rows : int
        Number of rows, over all blocks, whose hashes are compared at a time.
    result_bytes : int
        Approximate size, in bytes, of the partial results (gradient histograms or bin codes) that are
        requested at a time, over all blocks.
    """

    n_threads: int = 1
    block_rows: int = BLOCK_ROWS
    compared_rows: int = _COMPARED_ROWS * BLOCK_ROWS
    result_bytes: int = _RESULT_BYTES * BLOCK_ROWS


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Size of a table in files, and the memory that reading it takes.

    Parameters
    ----------
    n, n_features : int
        Numbers of rows and features.
    row_bytes : float
        Estimated bytes of a row in the Arrow table that is read.
    text_bytes : float
        Estimated bytes of the Python str objects that are made of the strings of a row.
    reader_bytes : int
        Largest number of bytes that the reader of a file buffers.
    file : str
        Path of the file with the largest buffer.
    """

    n: int
    n_features: int
    row_bytes: float
    text_bytes: float
    reader_bytes: int
    file: str


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Terms from which the memory of a fit to files is estimated, in bytes.

    The rows as they are read (`RowsRead`) are not included.

    Parameters
    ----------
    fixed : float
        Bytes from the first pass to the end of the fit.
    per_read_row : float
        Bytes of temporary arrays for each row of a block that a thread reads.
    per_compared_row : float
        Bytes for each row whose hash is compared with others at the same time.
    after_reading : float
        Bytes that the fit holds while it grows trees, after all rows have been read.
    per_thread, per_thread_row : float
        Bytes that each thread holds while trees are grown: a constant, and bytes for each row of the
        thread's block.
    result_copies : float
        Number of copies of the partial results of all blocks, each of `BlockSizes.result_bytes` bytes.
        Each thread adds one copy. 0: there are none.
    scratch_per_row : float
        Bytes of temporary files for each row.
    """

    fixed: float
    per_read_row: float
    per_compared_row: float
    after_reading: float
    per_thread: float = 0.0
    per_thread_row: float = 0.0
    result_copies: float = 0.0
    scratch_per_row: float = 0.0

    def estimate_peak(self, rows: RowsRead, block_sizes: BlockSizes) -> float:
        """Return an upper bound of the memory that the fit adds to that of the process.

        Parameters
        ----------
        rows : RowsRead
            Size of the table, and memory for reading it.
        block_sizes : BlockSizes
            How many of its rows are processed at a time.

        Returns
        -------
        float
            The bound, in bytes.
        """
        n_threads, block_rows = block_sizes.n_threads, min(block_sizes.block_rows, rows.n)
        compared_rows = min(block_sizes.compared_rows, rows.n)
        sampled_row_bytes = 8.0 * (rows.n_features + 1)
        # Up to three blocks wait for a thread or for their results to be added.
        reading = rows.reader_bytes + (n_threads + 3) * block_rows * rows.row_bytes
        reading += n_threads * block_rows * (self.per_read_row + rows.text_bytes)
        # The sample for bin edges: before and after more rows are added, and the selection from both.
        n_copies = 3.1 if rows.n > EDGE_ROWS else 2.2
        reading += n_copies * min(rows.n, EDGE_ROWS) * sampled_row_bytes
        reading += (n_threads + 1) * min(block_rows, EDGE_ROWS) * sampled_row_bytes
        comparing = (self.per_compared_row + 20 * n_threads) * compared_rows
        after_reading = (
            self.after_reading
            + (self.result_copies and self.result_copies + n_threads) * block_sizes.result_bytes
        )
        after_reading += n_threads * (self.per_thread + self.per_thread_row * block_rows)
        fixed = self.fixed + rows.n / block_sizes.block_rows * _BLOCK_BYTES
        return _FIXED_BYTES + _MARGIN * (fixed + max(reading, comparing, after_reading))


def choose_block_sizes(limit: int, need: MemoryNeed, rows: RowsRead, n_threads: int) -> BlockSizes:
    """Choose the largest block sizes with which a fit stays within a memory limit.

    More threads are preferred to larger blocks. Freed memory is released to the system first.

    Parameters
    ----------
    limit : int
        Limit of the anonymous memory of the process, in bytes.
    need : MemoryNeed
        Terms of the memory of the fit.
    rows : RowsRead
        Size of the table, and memory for reading it.
    n_threads : int
        Largest number of threads.

    Returns
    -------
    BlockSizes
        Threads, and rows per block.

    Raises
    ------
    ValueError
        If even the smallest block sizes exceed the limit. The message has the smallest limit that
        works.
    """
    release_memory()
    before = measure_memory()
    candidates = [*_list_block_sizes(rows.n, n_threads)]
    for block_sizes in candidates:
        if before + need.estimate_peak(rows, block_sizes) <= limit:
            return block_sizes
    # The margin of 2 % allows for a process that holds slightly more at the next attempt.
    least = before + min(need.estimate_peak(rows, block_sizes) for block_sizes in candidates)
    least = -(-int(1.02 * least) // 10**6) * 10**6
    large_file = ""
    if _MARGIN * rows.reader_bytes > 0.3 * (least - before):
        large_file = (
            f". {rows.reader_bytes:,} bytes are read of {rows.file} at a time, whose pages or "
            "batches are that large: write it with smaller ones"
        )
    raise ValueError(
        f"memory_limit={limit:,} is too little for this fit: it needs at least {least:,} bytes, of "
        f"which the process holds {int(before):,} before the fit: raise it{large_file}"
    )


def make_plan(need: MemoryNeed, rows: RowsRead, block_sizes: BlockSizes) -> FitPlan:
    """Return the plan of a fit: its blocks, threads, memory and temporary files.

    Parameters
    ----------
    need : MemoryNeed
        Terms of the memory of the fit.
    rows : RowsRead
        Size of the table, and memory for reading it.
    block_sizes : BlockSizes
        How many of its rows are processed at a time.

    Returns
    -------
    FitPlan
        The plan. Its memory is the estimated peak of the whole process, including what it holds now.
    """
    return FitPlan(
        rows.n,
        rows.n_features,
        -(-rows.n // block_sizes.block_rows),
        block_sizes.n_threads,
        int(measure_memory() + need.estimate_peak(rows, block_sizes)),
        int(need.scratch_per_row * rows.n),
    )


def _list_block_sizes(n: int, n_threads: int) -> Iterator[BlockSizes]:
    """Yield the possible block sizes for n rows, the largest first.

    The number of threads decreases from `n_threads` to 1. For each number the size of the blocks is
    halved until blocks would be too small or too many.
    """
    sizes, size = [], BLOCK_ROWS
    while size >= _FEWEST_ROWS and (size == BLOCK_ROWS or size * _MOST_BLOCKS >= n):
        sizes.append(size)
        size //= 2
    for threads in range(n_threads, 0, -1):
        for rows in sizes:
            yield BlockSizes(threads, rows, _COMPARED_ROWS * rows, _RESULT_BYTES * rows)


def get_smallest_block_sizes(n: int) -> BlockSizes:
    """Return the smallest allowed block sizes for a table of n rows.

    The first pass over the files, which collects column types and categories, uses them, because the
    memory of the fit is not yet known.
    """
    return [*_list_block_sizes(n, 1)][-1]


def count_histogram_bytes(n_features: int) -> int:
    """Return the size of a node's gradient histogram over all features, in bytes."""
    return _BIN_BYTES * _BINS * n_features


def count_group_bytes(n: int, n_groups: int) -> float:
    """Return an upper bound of the memory, in bytes, for `groups`, the group of each row.

    n: number of rows; n_groups: number of groups; 0: there are none. The names of the groups do not
    count: they are in memory before the bound is needed.
    """
    # The groups of each block are collected when groups are assigned to folds or sets.
    of_blocks = min(n, n_groups * -(-n // _FEWEST_ROWS))
    return max(_GROUP_BYTES * n_groups, _BLOCK_GROUP_BYTES * of_blocks)


def bound_leaves(n: int, leaves: int | None, depth: int | None, rows_of_leaf: int) -> int:
    """Return the largest number of leaves that a tree can have.

    Parameters
    ----------
    n : int
        Number of training rows.
    leaves, depth : int or None
        Largest number of leaves, and largest depth; None: no limit.
    rows_of_leaf : int
        Smallest number of rows in a leaf.

    Returns
    -------
    int
        The bound, at least 1.
    """
    most = max(1, n // max(1, rows_of_leaf))
    if leaves is not None:
        most = min(most, leaves)
    return most if depth is None else min(most, 1 << min(depth, 62))


def parse_size(size: Any) -> int:
    """Return a memory limit in bytes.

    Parameters
    ----------
    size : int or str
        Number of bytes, or a size in Dask's notation, such as "2GB" or "500 MiB".

    Returns
    -------
    int
        The number of bytes.

    Raises
    ------
    TypeError
        If size is neither an integer nor a string.
    ValueError
        If size is a string in another notation, or less than 1 byte.
    """
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if match is None:
            raise ValueError(
                f'memory_limit must be a number of bytes, or a size such as "2GB" or "500 MiB", got '
                f"{size!r}"
            )
        number, unit, binary = match.groups()
        units = _BINARY if binary and unit else _UNITS
        n_bytes = int(float(number) * units[unit.lower()])
    elif isinstance(size, bool) or not isinstance(size, Integral):
        raise TypeError(
            'memory_limit must be a number of bytes, a size such as "2GB", or None, got '
            f"{type(size).__name__}"
        )
    else:
        n_bytes = int(size)
    if n_bytes < 1:
        raise ValueError(
            f'memory_limit must be at least 1 byte, got {size!r}: set a size such as "2GB", or None'
        )
    return n_bytes


def count_categories(metadata: Any) -> list[int]:
    """Return the number of categories of each feature, 0 for numeric ones; [] if all are numeric.

    metadata: metadata of the rows, see `certree.out_of_core.metadata_pass.FitMetadata`.
    """
    categories = metadata.attributes["categories_"]
    return [] if categories is None else [len(names or ()) for names in categories.names]


def count_most_categories(metadata: Any) -> int:
    """Return the number of categories of the feature that has most, 0 if all are numeric.

    metadata: metadata of the rows, see `certree.out_of_core.metadata_pass.FitMetadata`.
    """
    return max(count_categories(metadata), default=0)


def count_rank_bytes(metadata: Any, least: int) -> float:
    """Return an upper bound of the bytes per row that ordering very many categories takes.

    In features with more than `least` categories, each category gets a rank by its mean target. For
    this, category indices, targets and keys of all rows are gathered. A key is a pseudo-random
    number that assigns a row to a fold. metadata: metadata of the rows, see
    `certree.out_of_core.metadata_pass.FitMetadata`.
    """
    n_ranked = sum(n > least for n in count_categories(metadata))
    return 30.0 * n_ranked + 60.0 * (n_ranked > 0)


def expect_memory_within(limit: int, size_ratio: float) -> None:
    """Raise ValueError during a fit if the process exceeds its memory limit, or would soon.

    No estimate before the fit covers very long strings, very many categories or very many equal rows.

    Parameters
    ----------
    limit : int
        Limit of the anonymous memory of the process, in bytes.
    size_ratio : float
        Number of rows whose hashes the next step holds at the same time, to find equal rows, divided
        by `BlockSizes.compared_rows`, for which the plan of the fit reserves memory; 0 if the next
        step compares no hashes.

    Raises
    ------
    ValueError
        If the process holds more than `limit` bytes, or `size_ratio` is above 2.
    """
    n_bytes = measure_memory()
    if n_bytes > limit or size_ratio > _MAX_SIZE_RATIO:
        raise ValueError(
            f"memory_limit allows {limit:,} bytes at this step, but the process holds {n_bytes:,} "
            "bytes and needs more: raise it. Features may have very many categories, strings may be "
            "much longer than in the first rows, or very many rows may be equal"
        )


# -- memory of this process ------------------------------------------------------------------------


def measure_memory() -> int:
    """Return the anonymous memory of this process in bytes.

    Raises
    ------
    ValueError
        If the system is not Linux, which reports it in /proc/self/status.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise ValueError(
        "memory_limit needs Linux, which reports the memory of a process in /proc/self/status: "
        "remove it on this system"
    )


def release_memory() -> None:
    """Release freed memory, which Arrow and the C library keep, to the operating system."""
    import_extra("pyarrow", "files").default_memory_pool().release_unused()
    _find_trim()(0)


@cache
def _find_trim() -> Any:
    """Return `malloc_trim` of GNU's C library, which returns freed memory to the system.

    Return `int`, which does nothing when it is called with 0, if the C library has no `malloc_trim`.
    """
    return getattr(ctypes.CDLL(None), "malloc_trim", int)
