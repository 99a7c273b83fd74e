"""Executors call functions for all blocks of rows, and add up the results: here in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial, reduce
from itertools import count, repeat
from typing import Any, Protocol

from certree.interface.progress import RowRate, show_progress
from certree.out_of_core.chunks import Chunk, as_list, joined
from certree.out_of_core.joined_rows import JoinedRows, Storage, choose_storage, count_bytes
from certree.out_of_core.memory_limit import (
    Need,
    Portions,
    choose_portions,
    expect_memory_within,
    get_smallest_portions,
    make_plan,
    measure_memory,
    release_memory,
)
from certree.out_of_core.plan import FitPlan, PlannedError, is_planned
from certree.out_of_core.ranks import Rank
from certree.out_of_core.row_block import PartOfRows
from certree.out_of_core.scratch import Scratch

_NO_LIMIT = 2**62  # bytes


class InMemory(Exception):  # noqa: N818 # no error: the caller fits the rows in memory
    """Raised if there are so few rows that they must be fitted in memory."""


def added(results: Iterable[Any]) -> Any:
    """Return the sum of partial results, of which None is skipped; None if there are no others."""
    return reduce(add, (result for result in results if result is not None), None)


def add(first: Any, second: Any) -> Any:
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
    def empty(self) -> Any:
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

    It reads blocks as chunks of raw rows, makes binned blocks of them (`make`), which it holds, and
    replaces these by others (`change`). Functions must be picklable, as they may be called in another
    process, and must not change their arguments, as they may be called again if a worker is lost. It
    is a protocol without a constructor.

    Attributes
    ----------
    has_weights : bool
        Whether rows have weights.
    portions : Portions
        How many rows are processed at a time.
    """

    has_weights: bool
    portions: Portions

    @property
    def n_parts(self) -> int:
        """Number of blocks that the executor holds."""
        ...

    @property
    def empty(self) -> Any:
        """See `Source`."""
        ...

    def keep_to_limit(self, need: Need) -> None:
        """Choose the largest portions with which the fit stays within its memory limit, if any.

        Call it once, after the first pass over the rows. need: memory of the fit. Raise ValueError
        if the smallest portions exceed the limit.
        """
        ...

    def expect_within_limit(self, n_together: int = 0) -> None:
        """Raise ValueError if the process exceeds its memory limit, or would in the next step.

        n_together: number of rows whose hashes are compared in the next step.
        """
        ...

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """Read all rows once, and return the sum of ``f(chunk, *given)`` over the chunks.

        targets_only: whether f does not use X, so that features need not be read.
        """
        ...

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """Read all rows once, and make a block of each chunk; return the sum of partial results.

        ``f(number, chunk, *given)`` returns the block and a partial result. own: for each chunk, a
        further last argument of f.
        """
        ...

    def collect(self, f: Callable[..., Any], *given: Any) -> Any:
        """Return the sum of ``f(block, *given)`` over all blocks."""
        ...

    def change(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """Replace each block, and return the sum of partial results.

        ``f(block, *given)`` returns the new block and a partial result. own: for each block, a further
        last argument of f.
        """
        ...

    def run_on_ranks(self, f: Callable[..., Any], *given: Any) -> Any:
        """Call ``f(rank, *given)`` on each machine, and return the result of rank 0.

        The first call joins the blocks of each machine to the table of a `Rank`, and drops the blocks.
        Functions may store results in the rank for later calls. If a machine is lost, all calls are
        repeated from the first.
        """
        ...

    def collect_from_ranks(self, f: Callable[..., Any], *given: Any) -> list[Any]:
        """Do the same as `run_on_ranks`, and return the results of all ranks, rank 0 first."""
        ...

    def choose_storage(self, n_bytes: int) -> Storage:
        """Return storage for arrays of n_bytes in all: memory, or files of the scratch folder."""
        ...

    @property
    def n_workers(self) -> int:
        """Number of jobs that `spread` runs at a time; 1: one after the other in this process."""
        ...

    def spread(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yield ``f(*shared, *job)`` for each job, in order. shared: sent to each worker once."""
        ...

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """Read all rows into memory: X, target, and weights, groups and offsets (each may be None)."""
        ...


class SomeRows:
    """Base class of executors that read some of the rows of another executor.

    Subclasses define `look` and `make`.

    Parameters
    ----------
    parts : Executor
        Reads all rows.
    """

    def __init__(self, parts: Executor) -> None:
        self._parts = parts
        self.has_weights, self.empty, self.portions = parts.has_weights, parts.empty, parts.portions
        self.collect, self.change = parts.collect, parts.change
        self.run_on_ranks, self.choose_storage = parts.run_on_ranks, parts.choose_storage
        self.collect_from_ranks = parts.collect_from_ranks
        self.spread, self.expect_within_limit = parts.spread, parts.expect_within_limit

    @property
    def n_parts(self) -> int:
        """See `Executor`."""
        return self._parts.n_parts

    @property
    def n_workers(self) -> int:
        """See `Executor`."""
        return self._parts.n_workers


class Parts:
    """Blocks that this process holds, and calls functions for in several threads.

    Parameters
    ----------
    parts : list of PartOfRows
        The blocks.
    n_threads : int
        Number of blocks that are processed at a time.
    kept : Scratch or None
        Stores the arrays of blocks in files; None: they are in memory.
    """

    def __init__(
        self, parts: list[PartOfRows], n_threads: int, kept: Scratch | None = None
    ) -> None:
        self._parts, self._scratch = parts, kept
        self._work_with(n_threads)

    def _work_with(self, n_threads: int) -> None:
        """Set the number of blocks that are processed at a time."""
        self._n_threads = n_threads
        # One pool for all calls: the core keeps memory in each thread for its next call.
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    @property
    def n_parts(self) -> int:
        """Number of blocks."""
        return len(self._parts)

    def collect(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`."""
        return added(self._mapped(partial(_call, f, given), iter(self._parts)))

    def change(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`."""
        each = [()] * self.n_parts if own is None else [(one,) for one in own]
        parts = zip(self._parts, each, strict=True)
        return added(
            self._put(self._mapped(partial(_change_block, f, given, self._scratch), parts))
        )

    def _put(self, made: Iterator[tuple[PartOfRows, Any]]) -> Iterator[Any]:
        """Replace all blocks by those of pairs (block, partial result), and yield the results."""
        self._parts = []
        for part, result in made:
            self._parts.append(part)
            yield result

    def _mapped(self, f: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
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


class Here(Parts):
    """An executor for rows that are read in this process.

    Parameters
    ----------
    source : Source
        Reads the rows.
    kept : Scratch or None
        Stores the arrays of blocks in files; None: they are in memory.
    n_threads : int
        Number of blocks that are processed at a time, at most.
    shown : bool
        Whether a progress bar shows how many rows have been read.
    limit : int or None
        Limit of the anonymous memory of the process in bytes, for rows in files; None: no limit.
    """

    def __init__(
        self,
        source: Source,
        kept: Scratch | None,
        n_threads: int,
        *,
        shown: bool = False,
        limit: int | None = None,
    ) -> None:
        super().__init__([], n_threads, kept)
        self._source, self._shown = source, shown
        self._limit, self._most_threads = limit, n_threads
        self._rank: Rank | None = None
        self.has_weights = source.has_weights
        self.portions = Portions(n_threads)
        if limit is not None:
            known: Any = source
            self._take(get_smallest_portions(known.n_rows))
            # The first pass may exceed a limit that is too small: its error names a sufficient limit.
            self._most = max(limit, 2 * measure_memory())

    def keep_to_limit(self, need: Need) -> None:
        """See `Executor`."""
        known: Any = self._source
        if is_planned():
            limit = _NO_LIMIT if self._limit is None else self._limit
            portions = choose_portions(limit, need, known.about, self._most_threads)
            raise PlannedError(make_plan(need, known.about, portions))
        if self._limit is None:
            return
        self._most = self._limit
        self._take(choose_portions(self._limit, need, known.about, self._most_threads))

    def expect_within_limit(self, n_together: int = 0) -> None:
        """See `Executor`."""
        if self._limit is not None:
            expect_memory_within(self._most, n_together / self.portions.together)

    def _take(self, portions: Portions) -> None:
        """Set the portions of all further passes; call it before blocks are made."""
        source: Any = self._source
        source.part_rows = portions.part_rows
        self.portions = portions
        self._work_with(portions.n_threads)

    @property
    def empty(self) -> Any:
        """See `Source`."""
        return self._source.empty

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """See `Executor`."""
        chunks = self._read(targets_only=targets_only)
        result = added(self._mapped(self._releasing(partial(_call, f, given)), chunks))
        release_memory()  # Libraries would keep freed memory beside that of the next pass.
        return result

    def run_on_ranks(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`: there is one rank."""
        if self._rank is None:
            self._rank = Rank(self._join())
        return f(self._rank, *given)

    def collect_from_ranks(self, f: Callable[..., Any], *given: Any) -> list[Any]:
        """See `Executor`: there is one rank."""
        return [self.run_on_ranks(f, *given)]

    def _join(self) -> JoinedRows:
        """Join all blocks to one table, and drop them."""
        joined = JoinedRows.join(self._parts, self.choose_storage(count_bytes(self._parts)))
        if self._scratch is not None:
            self._scratch.clear()
        self._parts = []
        return joined

    def choose_storage(self, n_bytes: int) -> Storage:
        """See `Executor`: files if a memory limit is set, or the rows are many."""
        return choose_storage(self._scratch, n_bytes, is_limited=self._limit is not None)

    def _releasing(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return f, which releases freed memory to the system afterwards if memory is limited."""
        return f if self._limit is None else partial(_call_and_release, f)

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`."""
        each = repeat(()) if own is None else ((one,) for one in own)
        chunks = zip(count(), self._read(), each, strict=False)
        made = self._mapped(self._releasing(partial(_make_block, f, given, self._scratch)), chunks)
        result = added(self._put(made))
        release_memory()
        return result

    def _read(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """Yield all rows chunk by chunk, and show progress. targets_only: as in `Source.chunks`."""
        n_rows = self._source.n_rows
        with show_progress(self._shown and n_rows is not None, n_rows or 0, "reading") as show:
            pace = RowRate()
            for chunk in self._source.chunks(targets_only=targets_only):
                n = len(chunk.y)
                yield chunk
                del chunk
                if self._limit is not None:
                    release_memory()
                    self.expect_within_limit()
                show(n, pace.update(n))

    @property
    def n_workers(self) -> int:
        """See `Executor`: the jobs themselves use several threads."""
        return 1

    def spread(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """See `Executor`."""
        return (f(*shared, *job) for job in jobs)

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """See `Executor`."""
        if is_planned():
            source: Any = self._source
            about = source.about
            raise PlannedError(FitPlan(about.n, about.n_features, 0, 1, measure_memory(), 0))
        return joined(self.look(as_list))


def _call_and_release(f: Callable[[Any], Any], item: Any) -> Any:
    """Return ``f(item)``, and release freed memory to the system."""
    result = f(item)
    release_memory()
    return result


def _call(f: Callable[..., Any], given: tuple[Any, ...], item: Any) -> Any:
    """Return ``f(item, *given)``."""
    return f(item, *given)


def _make_block(
    f: Callable[..., Any],
    given: tuple[Any, ...],
    kept: Scratch | None,
    item: tuple[int, Chunk, tuple[Any, ...]],
) -> tuple[PartOfRows, Any]:
    """Make a block of a chunk; return it, stored in files unless `kept` is None, and the result.

    f, given: as in `Executor.make`; item: number, chunk and own arguments of the block.
    """
    number, chunk, own = item
    part, result = f(number, chunk, *given, *own)
    return part if kept is None else kept.keep(part), result


def _change_block(
    f: Callable[..., Any],
    given: tuple[Any, ...],
    kept: Scratch | None,
    item: tuple[PartOfRows, tuple[Any, ...]],
) -> tuple[PartOfRows, Any]:
    """Replace a block; return the new one, stored in files unless `kept` is None, and the result.

    f, given: as in `Executor.change`; item: the block, and its own arguments.
    """
    part, result = f(item[0], *given, *item[1])
    return part if kept is None else kept.keep(part), result
