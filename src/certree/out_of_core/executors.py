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
    """Raised if there are so few rows that they must be fitted in memory."""


def sum_results(results: Iterable[Any]) -> Any:
    """Return the sum of partial results, of which None is skipped; None if there are no others."""
    return reduce(add_results, (result for result in results if result is not None), None)


def add_results(first: Any, second: Any) -> Any:
    """Return the sum of two partial results; the second if the first is None."""
    return second if first is None else first + second


class Source(Protocol):
    """A table that is read block by block. Results do not depend on the order and sizes of blocks.

    It is a protocol without a constructor.

    Attributes
    ----------
    has_weights : bool
        Whether rows have weights.
    """

    has_weights: bool

    @property
    def empty_table(self) -> Any:
        """A table of the features without rows, if no feature can be categorical; else None."""
        ...

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None: unknown before the rows are read."""
        ...

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """Yield the rows block by block. targets_only: whether blocks may have None as X."""
        ...


class Executor(Protocol):
    """Calls a function for each block of the rows, and adds up the results.

    A chunk has raw rows as they are read (`scan` passes over all of them). `make_blocks` turns chunks
    into blocks of binned rows, which the executor holds; `reduce` sums results over these, and
    `replace_blocks` replaces them. Functions must be picklable, as they may be called in another
    process, and must not change their arguments, as they may be called again if a worker is lost. It
    is a protocol without a constructor.

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
        """Number of blocks that the executor holds."""
        ...

    @property
    def empty_table(self) -> Any:
        """A table of the features without rows, if no feature can be categorical; else None."""
        ...

    def apply_memory_limit(self, need: MemoryNeed) -> None:
        """Choose the largest block sizes with which the fit stays within its memory limit, if any.

        Call it once, after the first pass over the rows. need: memory of the fit. Raise ValueError
        if the smallest block sizes exceed the limit.
        """
        ...

    def expect_within_limit(self, n_compared: int = 0) -> None:
        """Raise ValueError if the process exceeds its memory limit, or would in the next step.

        n_compared: number of rows whose hashes are compared in the next step.
        """
        ...

    def scan(self, f: Callable[..., Any], *arguments: Any, targets_only: bool = False) -> Any:
        """Read all rows once, and return the sum of ``f(chunk, *arguments)`` over the chunks.

        targets_only: whether f does not use X, so that features need not be read.
        """
        ...

    def make_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Read all rows once, and make a block of each chunk; return the sum of partial results.

        ``f(number, chunk, *arguments)`` returns the block and a partial result. per_block:
        for each chunk, a further last argument of f.
        """
        ...

    def reduce(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of ``f(block, *arguments)`` over all blocks."""
        ...

    def replace_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Replace each block, and return the sum of partial results.

        ``f(block, *arguments)`` returns the new block and a partial result. per_block:
        for each block, a further last argument of f.
        """
        ...

    def run_on_ranks(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``f(rank, *arguments)`` on each machine, and return the result of rank 0.

        The first call joins the blocks of each machine to the table of a `Rank`, and drops the blocks.
        Functions may store results in the rank for later calls. If a machine is lost, all calls are
        repeated from the first.
        """
        ...

    def gather_from_ranks(self, f: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call ``f(rank, *arguments)`` on each machine, and return all results, rank 0 first.

        `run_on_ranks` describes the calls.
        """
        ...

    def choose_storage(self, n_bytes: int) -> Storage:
        """Return storage for arrays of n_bytes in all: memory, or files of the scratch folder."""
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

    def load_rows(self) -> tuple[Any, Any, Any, Any, Any]:
        """Read all rows into memory: X, target, and weights, groups and offsets (each may be None)."""
        ...


class ExecutorWrapper:
    """Base class of executors that read some of the rows of another executor.

    Subclasses define `scan` and `make_blocks`.

    Parameters
    ----------
    executor : Executor
        Reads all rows.
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
        self.map_jobs, self.expect_within_limit = executor.map_jobs, executor.expect_within_limit

    @property
    def n_blocks(self) -> int:
        """Number of blocks that the executor holds; see `Executor`."""
        return self._executor.n_blocks

    @property
    def n_workers(self) -> int:
        """Number of jobs that `map_jobs` runs at a time; 1: one after the other in this process.

        See `Executor.n_workers`.
        """
        return self._executor.n_workers


class LocalBlocks:
    """Blocks that this process holds, and calls functions for in several threads.

    Parameters
    ----------
    blocks : list of RowBlock
        The blocks.
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
        """Set the number of threads, that is, of blocks that are processed at a time."""
        self._n_threads = n_threads
        # One pool for all calls: the core keeps memory in each thread for its next call.
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self._blocks)

    def reduce(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of ``f(block, *arguments)`` over all blocks; see `Executor`."""
        return sum_results(self._map_in_threads(partial(_call, f, arguments), iter(self._blocks)))

    def replace_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Replace each block, and return the sum of partial results; see `Executor`."""
        each = [()] * self.n_blocks if per_block is None else [(one,) for one in per_block]
        items = zip(self._blocks, each, strict=True)
        return sum_results(
            self._store_blocks(
                self._map_in_threads(partial(_change_block, f, arguments, self._scratch), items)
            )
        )

    def _store_blocks(self, made: Iterator[tuple[RowBlock, Any]]) -> Iterator[Any]:
        """Replace all blocks by new ones, and yield the partial result that comes with each.

        made: pairs (new block, partial result), in the order of the blocks.
        """
        self._blocks = []
        for block, result in made:
            self._blocks.append(block)
            yield result

    def _map_in_threads(self, f: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
        """Yield ``f(item)`` in order, and take no more items at a time than there are threads."""
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
        Number of blocks that are processed at a time, at most.
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

        See `Executor.apply_memory_limit`.
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

        See `Executor.expect_within_limit`.
        """
        if self._memory_limit is not None:
            expect_memory_within(self._current_limit, n_compared / self.block_sizes.compared_rows)

    def _set_block_sizes(self, block_sizes: BlockSizes) -> None:
        """Set the numbers of rows that all further passes process at a time.

        block_sizes: the numbers. Call it before `make_blocks`.
        """
        source: Any = self._source
        source.block_rows = block_sizes.block_rows
        self.block_sizes = block_sizes
        self._set_n_threads(block_sizes.n_threads)

    @property
    def empty_table(self) -> Any:
        """A table of the features without rows, if no feature can be categorical; else None.

        See `Source.empty_table`.
        """
        return self._source.empty_table

    def scan(self, f: Callable[..., Any], *arguments: Any, targets_only: bool = False) -> Any:
        """Read all rows once, and return the sum of ``f(chunk, *arguments)`` over the chunks.

        See `Executor.scan`.
        """
        chunks = self._read_chunks(targets_only=targets_only)
        result = sum_results(
            self._map_in_threads(self._release_after(partial(_call, f, arguments)), chunks)
        )
        release_memory()  # Libraries would keep freed memory beside that of the next pass.
        return result

    def run_on_ranks(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``f(rank, *arguments)`` on each machine, and return the result of rank 0.

        See `Executor.run_on_ranks`. There is one rank.
        """
        if self._rank is None:
            self._rank = Rank(self._join())
        return f(self._rank, *arguments)

    def gather_from_ranks(self, f: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call ``f(rank, *arguments)`` on each machine, and return all results, rank 0 first.

        See `Executor.gather_from_ranks`. There is one rank.
        """
        return [self.run_on_ranks(f, *arguments)]

    def _join(self) -> JoinedRows:
        """Join all blocks to one table, and drop them."""
        joined = JoinedRows.join(self._blocks, self.choose_storage(count_bytes(self._blocks)))
        if self._scratch is not None:
            self._scratch.clear()
        self._blocks = []
        return joined

    def choose_storage(self, n_bytes: int) -> Storage:
        """Return storage for arrays of n_bytes in all: memory, or files of the scratch folder.

        See `Executor.choose_storage`. Files if a memory limit is set, or the rows are many.
        """
        return choose_storage(self._scratch, n_bytes, is_limited=self._memory_limit is not None)

    def _release_after(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return f, which releases freed memory to the system afterwards if memory is limited."""
        return f if self._memory_limit is None else partial(_call_and_release, f)

    def make_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Read all rows once, and make a block of each chunk; return the sum of partial results.

        See `Executor.make_blocks`.
        """
        each = repeat(()) if per_block is None else ((one,) for one in per_block)
        chunks = zip(count(), self._read_chunks(), each, strict=False)
        made = self._map_in_threads(
            self._release_after(partial(_make_block, f, arguments, self._scratch)), chunks
        )
        result = sum_results(self._store_blocks(made))
        release_memory()
        return result

    def _read_chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """Yield all rows chunk by chunk, and show progress. targets_only: as in `Source.chunks`."""
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
        """Number of jobs that `map_jobs` runs at a time; 1: one after the other in this process.

        See `Executor.n_workers`. The jobs themselves use several threads.
        """
        return 1

    def map_jobs(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Call ``f(*shared, *job)`` for each job, in parallel; yield the results in order.

        See `Executor.map_jobs`.
        """
        return (f(*shared, *job) for job in jobs)

    def load_rows(self) -> tuple[Any, Any, Any, Any, Any]:
        """Read all rows into memory: X, target, and weights, groups and offsets (each may be None).

        See `Executor.load_rows`.
        """
        if is_dry_run():
            source: Any = self._source
            about = source.about
            raise DryRunError(FitPlan(about.n, about.n_features, 0, 1, measure_memory(), 0))
        return join_chunks(self.scan(wrap_in_list))


def _call_and_release(f: Callable[[Any], Any], item: Any) -> Any:
    """Return ``f(item)``, and release freed memory to the system."""
    result = f(item)
    release_memory()
    return result


def _call(f: Callable[..., Any], arguments: tuple[Any, ...], item: Any) -> Any:
    """Return ``f(item, *arguments)``."""
    return f(item, *arguments)


def _make_block(
    f: Callable[..., Any],
    arguments: tuple[Any, ...],
    scratch: Scratch | None,
    item: tuple[int, Chunk, tuple[Any, ...]],
) -> tuple[RowBlock, Any]:
    """Make a block of a chunk; return it, stored in files unless `scratch` is None, and the result.

    f, arguments: as in `Executor.make_blocks`; item: number, chunk and own arguments of the block.
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
    """Replace a block; return the new one, stored in files unless `scratch` is None, and the result.

    f, arguments: as in `Executor.replace_blocks`; item: the block, and its own arguments.
    """
    block, result = f(item[0], *arguments, *item[1])
    return block if scratch is None else scratch.store(block), result
