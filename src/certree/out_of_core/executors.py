"""Executors: call functions for each block of rows, and add up the results.

`Executor` is the interface. `LocalExecutor` runs in this process; `DaskExecutor` on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial, reduce
from itertools import count, repeat
from typing import Any, Protocol

from certree.interface.progress import RowRate, show_progress
from certree.out_of_core.chunks import Chunk, join_chunks, wrap_in_list
from certree.out_of_core.joined_rows import JoinedRows, Storage, choose_storage, count_bytes
from certree.out_of_core.memory_limit import (
    BlockSizes,
    MemoryNeed,
    choose_block_sizes,
    expect_memory_within,
    get_smallest_block_sizes,
    make_plan,
    measure_memory,
    release_memory,
)
from certree.out_of_core.plan import DryRunError, FitPlan, is_dry_run
from certree.out_of_core.ranks import Rank
from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.scratch import Scratch

_NO_LIMIT = 2**62  # bytes


class InMemory(Exception):  # noqa: N818 # no error: the caller fits the rows in memory
    """Raised in an out-of-core fit if there are so few rows that the caller must fit them in memory."""


def sum_results(results: Iterable[Any]) -> Any:
    """Return the sum of partial results, which `+` adds; skip None; return None if all are None."""
    return reduce(add_results, (result for result in results if result is not None), None)


def add_results(first: Any, second: Any) -> Any:
    """Return the sum of two partial results; None as the first stands for no result."""
    return second if first is None else first + second


class Source(Protocol):
    """Protocol of a table that is read block by block, from files or from a Dask collection.

    Models that are fitted to it do not depend on the order and sizes of the blocks.

    Attributes
    ----------
    has_weights : bool
        Whether rows have weights.
    """

    has_weights: bool

    @property
    def empty_table(self) -> Any:
        """An Arrow table with the columns of the features and no rows.

        None if its columns do not suffice to encode rows: if some features hold strings, categories or
        dates, or the rows are those of a Dask collection.
        """
        ...

    @property
    def n_rows(self) -> int | None:
        """Number of rows of the table; None if it is unknown before the rows are read."""
        ...

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """Yield the rows block by block, as `Chunk` (features X, targets y, weights, groups, offsets).

        targets_only: whether the caller does not use X, so that chunks may have None as X.
        """
        ...


class Executor(Protocol):
    """Protocol of classes that call a function for each block of rows, and add up the results.

    A chunk has raw rows as they are read (`scan` passes over all of them). `make_blocks` turns chunks
    into blocks of binned rows, which the executor holds; `reduce` sums results over these, and
    `replace_blocks` replaces them. Functions must be picklable, as they may be called in another
    process, and must not change their arguments, as they may be called again if a worker is lost.

    Attributes
    ----------
    has_weights : bool
        Whether rows have weights.
    block_sizes : BlockSizes
        Numbers of rows that are processed at a time.
    """

    has_weights: bool
    block_sizes: BlockSizes

    @property
    def n_blocks(self) -> int:
        """Number of blocks of binned rows that the executor holds."""
        ...

    @property
    def empty_table(self) -> Any:
        """An Arrow table with the columns of the features and no rows.

        None if its columns do not suffice to encode rows: if some features hold strings, categories or
        dates, or the rows are those of a Dask collection.
        """
        ...

    def apply_memory_limit(self, need: MemoryNeed) -> None:
        """Choose the largest block sizes with which the fit stays within its memory limit, if any.

        Call it once, after the first pass over the rows. need: terms from which the memory of the
        fit is estimated. Raise ValueError if even the smallest block sizes exceed the limit.
        """
        ...

    def expect_within_limit(self, n_compared: int = 0) -> None:
        """Raise ValueError if the process exceeds its memory limit, or would in the next step.

        n_compared: number of rows whose hashes are in memory at the same time in the next step; 0 if it
        compares no hashes.
        """
        ...

    def scan(self, f: Callable[..., Any], *arguments: Any, targets_only: bool = False) -> Any:
        """Read all rows once, and return the sum of ``f(chunk, *arguments)`` over the chunks.

        A chunk has raw rows: features X, targets y, weights, groups and offsets. Results are added
        with `+`; None is skipped, and returned if all are None. targets_only: whether f does not use
        X, so that features need not be read.
        """
        ...

    def make_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Read all rows once, and make a block of each chunk; return the sum of partial results.

        A chunk has raw rows. ``f(number, chunk, *arguments)`` returns a `RowBlock`, which the
        executor holds from then on, and a partial result; number: number of the chunk. Partial
        results are added with `+`; None is skipped, and returned if all are None. per_block: for each
        chunk, a further last argument of f.
        """
        ...

    def reduce(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of ``f(block, *arguments)`` over all blocks that the executor holds.

        f returns a partial result; `+` adds partial results. None is skipped, and returned if all are
        None.
        """
        ...

    def replace_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Replace each block that the executor holds, and return the sum of partial results.

        ``f(block, *arguments)`` returns the new block and a partial result. `+` adds partial
        results; None is skipped, and returned if all are None. per_block: for each block, a further
        last argument of f.
        """
        ...

    def run_on_ranks(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``f(rank, *arguments)`` in each process that holds rows; return that of process 0.

        A `Rank` is the state of one process (a Dask worker, or this one): the table of all rows
        that the process holds, and what earlier calls have stored. The first call joins the blocks
        of each process to this table, and drops the blocks. If a worker is lost, all calls are
        repeated from the first, except for those that `replace_rank_calls` has replaced.
        """
        ...

    def gather_from_ranks(self, f: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call ``f(rank, *arguments)`` in each process that holds rows, and return all results.

        rank: a `Rank`, the table of all rows of the process and what earlier calls have stored.
        Results are in the order in which processes are numbered. See `run_on_ranks`.
        """
        ...

    @property
    def n_rank_calls(self) -> int | None:
        """Number of calls of ranks that are repeated if one is lost; None: none can be lost."""
        ...

    def replace_rank_calls(self, n_kept: int, f: Callable[..., Any], *arguments: Any) -> None:
        """Choose what is repeated if a worker is lost: the first n_kept calls of ranks, and then f.

        ``f(rank, *arguments)`` stands for all later calls so far, and must bring a rank into the state
        after them. It is not called now.
        """
        ...

    def choose_storage(self, n_bytes: int) -> Storage:
        """Return a `Storage`, which allocates arrays in memory or in files of the temporary folder.

        n_bytes: total size of the arrays, by which the storage is chosen.
        """
        ...

    @property
    def n_workers(self) -> int:
        """Number of jobs that `map_jobs` runs at a time; 1: one after the other in this process."""
        ...

    def map_jobs(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call ``f(*shared, *job)`` for each job, in parallel; yield the results in order.

        shared: arguments that all jobs have, which are sent to each worker once; jobs: the further
        arguments of each job.
        """
        ...

    def load_rows(self) -> Chunk:
        """Read all rows into memory, and return them as one chunk (`join_chunks`)."""
        ...


class ExecutorWrapper:
    """Base class of executors that select or change the rows of another executor, block by block.

    Subclasses define the methods in which they differ, such as `scan` and `make_blocks`. All others are
    those of the wrapped executor, except `apply_memory_limit` and `load_rows`, which are missing.

    Parameters
    ----------
    executor : Executor
        The wrapped executor, which reads all rows.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.has_weights, self.empty_table, self.block_sizes = (
            executor.has_weights,
            executor.empty_table,
            executor.block_sizes,
        )
        self.reduce, self.replace_blocks = executor.reduce, executor.replace_blocks
        self.run_on_ranks, self.choose_storage = executor.run_on_ranks, executor.choose_storage
        self.gather_from_ranks = executor.gather_from_ranks
        self.replace_rank_calls = executor.replace_rank_calls
        self.map_jobs, self.expect_within_limit = executor.map_jobs, executor.expect_within_limit

    @property
    def n_blocks(self) -> int:
        """Number of blocks of binned rows that the wrapped executor holds."""
        return self._executor.n_blocks

    @property
    def n_workers(self) -> int:
        """Number of jobs that `map_jobs` runs at a time; 1: one after the other in this process."""
        return self._executor.n_workers

    @property
    def n_rank_calls(self) -> int | None:
        """Number of calls of ranks that are repeated if one is lost; None: none can be lost."""
        return self._executor.n_rank_calls


class LocalBlocks:
    """Row blocks in this process; functions are called for several of them at a time, in threads.

    Parameters
    ----------
    blocks : list of RowBlock
        The blocks: rows with bin codes, targets and weights.
    n_threads : int
        Number of blocks that are processed at a time.
    scratch : Scratch or None
        Stores the arrays of blocks in files; None: they are in memory.
    """

    def __init__(
        self, blocks: list[RowBlock], n_threads: int, scratch: Scratch | None = None
    ) -> None:
        self._blocks, self._scratch = blocks, scratch
        self._set_n_threads(n_threads)

    def _set_n_threads(self, n_threads: int) -> None:
        """Replace the pool of threads. n_threads: number of blocks that are processed at a time."""
        self._n_threads = n_threads
        # One pool for all calls: the core keeps memory in each thread for its next call.
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    @property
    def n_blocks(self) -> int:
        """Number of blocks of rows that this process holds."""
        return len(self._blocks)

    def reduce(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of ``f(block, *arguments)`` over all blocks.

        f returns a partial result; `+` adds partial results. None is skipped, and returned if all are
        None.
        """
        return sum_results(self._map_in_threads(partial(_call, f, arguments), iter(self._blocks)))

    def replace_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Replace each block (binned rows) by a new one, and return the sum of partial results.

        ``f(block, *arguments)`` returns the new block and a partial result; `+` adds partial results.
        None is skipped, and returned if all are None. per_block: for each block, in order, a further
        last argument of f.
        """
        each = [()] * self.n_blocks if per_block is None else [(one,) for one in per_block]
        items = zip(self._blocks, each, strict=True)
        return sum_results(
            self._store_blocks(
                self._map_in_threads(partial(_change_block, f, arguments, self._scratch), items)
            )
        )

    def _store_blocks(self, pairs: Iterator[tuple[RowBlock, Any]]) -> Iterator[Any]:
        """Replace the blocks of this object by new ones, and yield their partial results.

        pairs: (new block, partial result), in the order of the blocks.
        """
        self._blocks = []
        for block, result in pairs:
            self._blocks.append(block)
            yield result

    def _map_in_threads(self, f: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
        """Yield ``f(item)`` for each item, in order, computed in threads.

        items: what f is called with; the next one is taken when a thread is free. With one thread (no
        pool) f is called in the caller's thread.
        """
        if self._pool is None:
            yield from map(f, items)
            return
        waiting: list[Future[Any]] = []
        try:
            for item in items:
                waiting.append(self._pool.submit(f, item))
                if len(waiting) > self._n_threads:
                    yield waiting.pop(0).result()
                elif len(waiting) == self._n_threads:
                    wait(waiting, return_when=FIRST_COMPLETED)
            while waiting:
                yield waiting.pop(0).result()
        finally:
            # After an error no thread uses the blocks any more.
            wait([future for future in waiting if not future.cancel()])


class LocalExecutor(LocalBlocks):
    """An executor for rows that are read in this process.

    Parameters
    ----------
    source : Source
        Reads the rows.
    scratch : Scratch or None
        Stores the arrays of blocks in files; None: they are in memory.
    n_threads : int
        Largest number of blocks that are processed at a time.
    is_shown : bool
        Whether a progress bar shows how many rows have been read.
    memory_limit : int or None
        Limit of the anonymous memory of the process in bytes, for rows in files; None: no limit.
    """

    def __init__(
        self,
        source: Source,
        scratch: Scratch | None,
        n_threads: int,
        *,
        is_shown: bool = False,
        memory_limit: int | None = None,
    ) -> None:
        super().__init__([], n_threads, scratch)
        self._source, self._is_shown = source, is_shown
        self._memory_limit, self._max_threads = memory_limit, n_threads
        self._rank: Rank | None = None
        self.has_weights = source.has_weights
        self.block_sizes = BlockSizes(n_threads)
        if memory_limit is not None:
            rows: Any = source
            self._set_block_sizes(get_smallest_block_sizes(rows.n_rows))
            # The first pass may exceed a limit that is too small: its error names a sufficient limit.
            self._current_limit = max(memory_limit, 2 * measure_memory())

    def apply_memory_limit(self, need: MemoryNeed) -> None:
        """Choose the largest block sizes with which the fit stays within its memory limit, if any.

        Call it once, after the first pass over the rows. need: terms from which the memory of the
        fit is estimated. Raise ValueError if even the smallest block sizes exceed the limit, and
        DryRunError, which has the plan of the fit, in a dry run.
        """
        source: Any = self._source
        if is_dry_run():
            memory_limit = _NO_LIMIT if self._memory_limit is None else self._memory_limit
            block_sizes = choose_block_sizes(memory_limit, need, source.about, self._max_threads)
            raise DryRunError(make_plan(need, source.about, block_sizes))
        if self._memory_limit is None:
            return
        self._current_limit = self._memory_limit
        self._set_block_sizes(
            choose_block_sizes(self._memory_limit, need, source.about, self._max_threads)
        )

    def expect_within_limit(self, n_compared: int = 0) -> None:
        """Raise ValueError if the process exceeds its memory limit, or would in the next step.

        n_compared: number of rows whose hashes are in memory at the same time in the next step; 0 if it
        compares no hashes. Do nothing without a memory limit.
        """
        if self._memory_limit is not None:
            expect_memory_within(self._current_limit, n_compared / self.block_sizes.compared_rows)

    def _set_block_sizes(self, block_sizes: BlockSizes) -> None:
        """Set the numbers of rows that all further passes process at a time.

        block_sizes: the numbers of rows, and of threads. Call it before `make_blocks`.
        """
        source: Any = self._source
        source.block_rows = block_sizes.block_rows
        self.block_sizes = block_sizes
        self._set_n_threads(block_sizes.n_threads)

    @property
    def empty_table(self) -> Any:
        """An Arrow table with the columns of the features and no rows.

        None if its columns do not suffice to encode rows: if some features hold strings, categories or
        dates, or the rows are those of a Dask collection.
        """
        return self._source.empty_table

    def scan(self, f: Callable[..., Any], *arguments: Any, targets_only: bool = False) -> Any:
        """Read all rows once, and return the sum of ``f(chunk, *arguments)`` over the chunks.

        A chunk has raw rows (features, targets, weights, groups, offsets). Results are added with `+`;
        None is skipped, and returned if all are None. targets_only: whether f does not use the
        features, so that they need not be read.
        """
        chunks = self._read_chunks(targets_only=targets_only)
        result = sum_results(
            self._map_in_threads(self._release_after(partial(_call, f, arguments)), chunks)
        )
        release_memory()  # Libraries would keep freed memory beside that of the next pass.
        return result

    def run_on_ranks(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``f(rank, *arguments)``.

        rank: the table of all rows, and what earlier calls have stored. There is one `Rank`,
        because this process holds all rows. The first call joins the blocks to this table. See
        `Executor.run_on_ranks`.
        """
        if self._rank is None:
            self._rank = Rank(self._join())
        return f(self._rank, *arguments)

    def gather_from_ranks(self, f: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``[f(rank, *arguments)]``, a list of one result, because this process holds all rows.

        rank: a `Rank`, the table of all rows and what earlier calls have stored. See `run_on_ranks`.
        """
        return [self.run_on_ranks(f, *arguments)]

    @property
    def n_rank_calls(self) -> None:
        """None, because the only rank is this process, which cannot be lost. See `Executor`."""
        return None

    def replace_rank_calls(self, n_kept: int, f: Callable[..., Any], *arguments: Any) -> None:
        """Do nothing, because no call is repeated. See `Executor.replace_rank_calls`."""

    def _join(self) -> JoinedRows:
        """Join the rows of all blocks to one table, and return it.

        The blocks and their files are dropped.
        """
        joined = JoinedRows.join(self._blocks, self.choose_storage(count_bytes(self._blocks)))
        if self._scratch is not None:
            self._scratch.clear()
        self._blocks = []
        return joined

    def choose_storage(self, n_bytes: int) -> Storage:
        """Return a `Storage`, which allocates arrays in memory or in files of the temporary folder.

        n_bytes: total size of the arrays. Files are used if a memory limit is set, or the arrays
        are large. See `Executor.choose_storage`.
        """
        return choose_storage(self._scratch, n_bytes, is_limited=self._memory_limit is not None)

    def _release_after(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return f, or a function that calls f and then releases freed memory to the system.

        The second is returned if the fit has a memory limit. f: a function of one argument.
        """
        return f if self._memory_limit is None else partial(_call_and_release, f)

    def make_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Read all rows once, and make a block of each chunk; return the sum of partial results.

        ``f(number, chunk, *arguments)`` returns a block (binned rows), which replaces former blocks,
        and a partial result; number, chunk: number of the chunk from 0, and its raw rows. `+` adds
        partial results; None is skipped, and returned if all are None. per_block: for each chunk, a
        further last argument of f.
        """
        each = repeat(()) if per_block is None else ((one,) for one in per_block)
        chunks = zip(count(), self._read_chunks(), each, strict=False)
        pairs = self._map_in_threads(
            self._release_after(partial(_make_block, f, arguments, self._scratch)), chunks
        )
        result = sum_results(self._store_blocks(pairs))
        release_memory()
        return result

    def _read_chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """Yield all rows as chunks of raw rows, and show a progress bar if it was asked for.

        targets_only: whether chunks may have None as their features X. Raise ValueError if the process
        exceeds its memory limit, if any.
        """
        n_rows = self._source.n_rows
        with show_progress(self._is_shown and n_rows is not None, n_rows or 0, "reading") as show:
            pace = RowRate()
            for chunk in self._source.chunks(targets_only=targets_only):
                n = len(chunk.y)
                yield chunk
                del chunk
                if self._memory_limit is not None:
                    release_memory()
                    self.expect_within_limit()
                show(n, pace.update(n))

    @property
    def n_workers(self) -> int:
        """1, because `map_jobs` runs its jobs one after the other in this process.

        Each job uses several threads. See `Executor.n_workers`.
        """
        return 1

    def map_jobs(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yield ``f(*shared, *job)`` for each job, one after the other in this process.

        shared: arguments that all jobs have; jobs: the further arguments of each job. See
        `Executor.map_jobs`.
        """
        return (f(*shared, *job) for job in jobs)

    def load_rows(self) -> Chunk:
        """Read all rows into memory, and return them as one chunk (`join_chunks`).

        In a dry run raise DryRunError instead.
        """
        if is_dry_run():
            source: Any = self._source
            about = source.about
            raise DryRunError(FitPlan(about.n, about.n_features, 0, 1, measure_memory(), 0))
        return join_chunks(self.scan(wrap_in_list))


def _call_and_release(f: Callable[[Any], Any], item: Any) -> Any:
    """Return ``f(item)``, and release freed memory to the operating system afterwards."""
    result = f(item)
    release_memory()
    return result


def _call(f: Callable[..., Any], arguments: tuple[Any, ...], item: Any) -> Any:
    """Return ``f(item, *arguments)``. `functools.partial` fixes f and `arguments`."""
    return f(item, *arguments)


def _make_block(
    f: Callable[..., Any],
    arguments: tuple[Any, ...],
    scratch: Scratch | None,
    item: tuple[int, Chunk, tuple[Any, ...]],
) -> tuple[RowBlock, Any]:
    """Make a block of a chunk.

    Parameters
    ----------
    f : callable
        ``f(number, chunk, *arguments, *per_block)`` returns a block and a partial result.
    arguments : tuple
        Arguments of f that all blocks share.
    scratch : Scratch or None
        Stores the arrays of the block in files; None: they stay in memory.
    item : tuple
        Number of the block, its raw rows, and the tuple `per_block` of further arguments of f.

    Returns
    -------
    block : RowBlock
        The block, whose arrays are memory maps if `scratch` is not None.
    result : object
        The partial result.
    """
    number, chunk, per_block = item
    block, result = f(number, chunk, *arguments, *per_block)
    return block if scratch is None else scratch.store(block), result


def _change_block(
    f: Callable[..., Any],
    arguments: tuple[Any, ...],
    scratch: Scratch | None,
    item: tuple[RowBlock, tuple[Any, ...]],
) -> tuple[RowBlock, Any]:
    """Replace a block.

    Parameters
    ----------
    f : callable
        ``f(block, *arguments, *per_block)`` returns the new block and a partial result.
    arguments : tuple
        Arguments of f that all blocks share.
    scratch : Scratch or None
        Stores the arrays of the new block in files; None: they stay in memory.
    item : tuple
        The block, and the tuple `per_block` of further arguments of f.

    Returns
    -------
    block : RowBlock
        The new block, whose arrays are memory maps if `scratch` is not None.
    result : object
        The partial result.
    """
    block, result = f(item[0], *arguments, *item[1])
    return block if scratch is None else scratch.store(block), result
