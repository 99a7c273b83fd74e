"""Rows of Dask collections, and fits on the workers of a Dask cluster.

Dask tasks read the partitions and make blocks of them. From then on the blocks of each worker
belong to a Dask actor (`WorkerActor`). Jobs run on the root of the workers, which forwards requests
to the others. Dask recomputes the tasks of a lost worker, but not its actor. So the fit recomputes
the blocks of the actor from their partitions, repeats all replacements, which gives the same bits,
and repeats the job.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from certree.interface.arrays import stack_columns
from certree.interface.extras import import_extra
from certree.out_of_core.chunks import Chunk, join_chunks, wrap_in_list
from certree.out_of_core.executors import sum_results
from certree.out_of_core.joined_rows import Storage, choose_storage
from certree.out_of_core.memory_limit import BlockSizes, MemoryNeed
from certree.out_of_core.sources import normalize_targets
from certree.out_of_core.worker_actor import ChildWorker, Leader, WorkerActor, align_arrays, dump
from certree.out_of_core.worker_links import Epoch, LinkLost

# Arguments of `fit` with a value for each row of X.
_ROW_ARGUMENTS = ("y", "sample_weight", "groups", "offset", "time")
# Number of results that one task, or the client, adds up.
_RESULTS_PER_SUM = 8
# How often one request is repeated because a worker was lost.
_MAX_LOSSES = 4
# Seconds between checks that the cluster is still running.
_PATIENCE = 3.0
# Seconds after which a fit stops that waits for a worker on a cluster without workers.
_NO_WORKERS_TIMEOUT = 300.0
_LOGGER = logging.getLogger("certree")


class DaskRows:
    """A table of Dask collections with equal partitions, each of which is read as a `Chunk`.

    A chunk has raw rows. The table is a `Source`, that is, a fit reads it block by block.

    Parameters
    ----------
    X : dask.array.Array of shape (n, p), or dask.dataframe.DataFrame
        Features.
    y : collection of shape (n,) or (n, n_targets), str, or list of str
        Targets, or names of their columns in X.
    weight, groups : collection of shape (n,), str, or None
        Weight and group of each row, or names of their columns in X; None: there are none.
    offset : collection of shape (n,) or (n, n_outputs), str, list of str, or None
        Offsets (known scores from which boosting starts), or names of their columns in X; None: there
        are none.
    time : collection of shape (n,), or None
        Times of the rows; None: there are none, or they are a column of X, which stays a feature.

    Attributes
    ----------
    has_weights : bool
        Whether rows have weights.

    Raises
    ------
    TypeError, ValueError
        If an argument is no such collection, has another number of rows (arrays) or of partitions than
        X, or a name is no column of X. Arrays are rechunked as X.
    """

    empty_table = n_rows = None

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: Any = None,
        groups: Any = None,
        offset: Any = None,
        time: Any = None,
    ) -> None:
        y, offset = normalize_targets("y", y), normalize_targets("offset", offset)
        pairs = zip(_ROW_ARGUMENTS, (y, weight, groups, offset, time), strict=True)
        values = [
            (name, value)
            for name, argument in pairs
            for value in (argument if isinstance(argument, tuple) else [argument])
        ]
        for name, value in values:
            if isinstance(value, str) and not hasattr(X, "columns"):
                raise TypeError(
                    f"{name} must be a Dask collection if X is an array, which has no column names, "
                    f"got {value!r}: pass a Dask array, or a Dask data frame as X"
                )
        columns = [(name, value) for name, value in values if isinstance(value, str)]
        for name, column in columns:
            if column not in X.columns:
                raise ValueError(
                    f"{name} must be a column of X, got {column!r}: pass one of {[*X.columns]}"
                )
        y, offset = ([*value] if isinstance(value, tuple) else value for value in (y, offset))
        # Columns are selected in each partition. If they were selected in the collection, Dask might
        # make other partitions of fewer columns.
        arguments = y, weight, groups, offset, time
        names = [value if isinstance(value, str | list) else None for value in arguments]
        self._names = names if columns else None
        collections: list[Any] = [
            value if name is None else None for value, name in zip(arguments, names, strict=True)
        ]
        if hasattr(X, "numblocks") and len(X.numblocks) != 2:
            raise ValueError(
                f"X must have two dimensions, rows and features, got shape {X.shape}: reshape it"
            )
        if hasattr(X, "numblocks") and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if groups is not None and getattr(collections[2], "ndim", 1) != 1:
            raise ValueError(
                f"groups must have shape (n,), got {collections[2].ndim} dimensions: pass one column"
            )
        self.has_weights = weight is not None
        self._rows, self._columns = _align_partitions(X, collections)

    @property
    def n_partitions(self) -> int:
        """Number of partitions of X."""
        return len(self._rows)

    def partition(self, number: int) -> Any:
        """Return a partition as a `dask.delayed` object, which a worker computes.

        Its value is a `Chunk`: raw rows with features, targets, weights, groups and offsets. number:
        0 .. n_partitions - 1.
        """
        columns = (None if tasks is None else tasks[number] for tasks in self._columns)
        delayed = import_extra("dask", "dask").delayed(make_chunk, pure=False)
        return delayed(number, self._rows[number], *columns, self._names)

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """Yield the rows of each partition as a `Chunk`, computed one after the other.

        A chunk has raw features, targets, weights, groups and offsets. targets_only: ignored; chunks
        always have their features.
        """
        del targets_only
        dask = import_extra("dask", "dask")
        for number in range(self.n_partitions):
            yield dask.compute(self.partition(number))[0]


def _align_partitions(X: Any, collections: list[Any]) -> tuple[list[Any], list[list[Any] | None]]:
    """Return the partitions of X, and those of the other arguments, as `dask.delayed` objects.

    collections: y, weight, groups, offset and time as Dask collections, in this order; None: the
    argument is a column of X, or is not used. Arrays are rechunked first, so that partitions have as
    many rows as those of X. Return the list of partitions of X, and for each entry of `collections` its
    list of partitions, or None. Raise TypeError if an entry is no Dask collection, and ValueError if it
    has another number of rows or of partitions than X.
    """
    aligned = {
        name: _rechunk_as(name, collection, X)
        for name, collection in zip(_ROW_ARGUMENTS, collections, strict=True)
        if collection is not None
    }
    # Dask joins small files when it optimises a graph; how many may depend on the columns.
    for is_optimised in (True, False):
        rows = _list_tasks(X, is_optimised)
        columns = {name: _list_tasks(one, is_optimised) for name, one in aligned.items()}
        if all(len(tasks) == len(rows) for tasks in columns.values()):
            break
    for name, tasks in columns.items():
        if len(tasks) != len(rows):
            raise ValueError(
                f"X and {name} must have equal partitions, got {len(rows)} and {len(tasks)} "
                "partitions: make both from one collection, or pass the name of a column of X"
            )
    return rows, [columns.get(name) for name in _ROW_ARGUMENTS]


def _list_tasks(collection: Any, is_optimised: bool) -> list[Any]:
    """Return the partitions of a Dask collection as `dask.delayed` objects, in order.

    is_optimised: whether Dask may optimise the graph first, which can join partitions.
    """
    tasks = collection.to_delayed(optimize_graph=is_optimised)
    return [*np.ravel(np.array(tasks, dtype=object))]


def _rechunk_as(name: str, collection: Any, X: Any) -> Any:
    """Return a Dask array whose partitions have as many rows as those of X, and all columns.

    name: name of the argument of fit, for messages; collection: the argument, which is not changed.
    Rows are not rechunked if their numbers are unknown, or if it or X is a data frame. Raise TypeError
    if `collection` is no Dask collection, and ValueError if it has another number of rows than X.
    """
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            f"{name} must be a Dask collection, as X, or the name of a column of X, got "
            f"{type(collection).__name__}: pass one of them, or compute X first"
        )
    if hasattr(collection, "chunks") and hasattr(X, "chunks"):
        is_known = not np.isnan([*X.chunks[0], *collection.chunks[0]]).any()
        if is_known and collection.chunks[0] != X.chunks[0]:
            if collection.shape[0] != X.shape[0]:
                raise ValueError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"[{X.shape[0]}, {collection.shape[0]}]: pass {name} with a value for each row "
                    "of X"
                )
            collection = collection.rechunk({0: X.chunks[0]})
    if len(getattr(collection, "numblocks", ())) == 2 and collection.numblocks[1] > 1:
        collection = collection.rechunk({1: -1})
    return collection


def make_chunk(
    number: int,
    X: Any,
    y: Any,
    weight: Any,
    groups: Any,
    offset: Any,
    time: Any = None,
    names: Sequence[str | list[str] | None] | None = None,
) -> Chunk:
    """Return a partition as a `Chunk`.

    Parameters
    ----------
    number : int
        Number of the partition, for error messages.
    X : array or data frame
        Features, and the columns in `names`.
    y, weight, groups, offset, time : array, series, data frame, or None
        Arguments of fit that are no columns of X; None: the argument is a column of X, or is not used.
    names : sequence of (str, list of str or None), or None
        For each of y, weight, groups, offset and time the names of its columns in X, which are no
        features, or None if it is passed; None: X has only features.

    Returns
    -------
    Chunk
        Features, targets, weights, groups, offsets and times of the partition.

    Raises
    ------
    ValueError
        If a column has another number of rows than X.
    """
    if names is not None:
        columns = (y, weight, groups, offset, time)
        y, weight, groups, offset, time = (
            column if name is None else X[name] for column, name in zip(columns, names, strict=True)
        )
        lists = [[name] if isinstance(name, str) else name or [] for name in names]
        X = X.drop(columns=[*dict.fromkeys(chain.from_iterable(lists))])
    for name, column in zip(_ROW_ARGUMENTS, (y, weight, groups, offset, time), strict=True):
        if column is not None and len(column) != len(X):
            raise ValueError(
                f"X and {name} must have equal partitions, but partition {number} has {len(X)} rows of "
                f"X and {len(column)} of {name}: make both from one collection, or pass the name of a "
                "column of X"
            )
    weights, groups, offset = (
        None if column is None else np.asarray(column) for column in (weight, groups, offset)
    )
    if hasattr(y, "columns") and len(y.columns) > 1:  # of whatever types Dask has made them
        y = stack_columns([np.asarray(y[name]) for name in y.columns])
    return Chunk(X, y, weights, f"partition {number}", groups=groups, offset=offset, raw_time=time)


class PartitionSource(Protocol):
    """Protocol of a table whose partitions Dask tasks read on workers.

    Attributes
    ----------
    has_weights : bool
        Whether rows have weights.
    """

    has_weights: bool

    @property
    def n_partitions(self) -> int:
        """Number of partitions of the table."""
        ...

    def partition(self, number: int) -> Any:
        """Return a `dask.delayed` object that reads a partition on a worker.

        Its value is a `Chunk`: raw rows with features, targets, weights, groups and offsets. number:
        0 .. n_partitions - 1.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorkerBlocks:
    """Handle, on the client, of the row blocks that one Dask worker holds.

    Parameters
    ----------
    numbers : tuple of int
        Numbers of the partitions of which the blocks were made.
    future : distributed.Future
        Keeps the actor alive; its status shows whether the worker is lost.
    actor : distributed.Actor
        Proxy of the `WorkerActor`, the object on the worker that holds the blocks.
    """

    numbers: tuple[int, ...]
    future: Any
    actor: Any

    @property
    def is_lost(self) -> bool:
        """Whether Dask has noticed that the worker which holds the blocks is lost."""
        return self.future.status not in ("finished", "pending")


class _WorkerLost(Exception):  # noqa: N818 # no error: the fit recomputes the blocks of the worker
    """Raised if the Dask worker that holds some blocks is lost."""


class DaskExecutor:
    """An executor for rows in the memory of the workers of a Dask cluster.

    It calls functions for each block of rows on the worker that holds it. See `Executor`.

    Parameters
    ----------
    source : PartitionSource
        Reads the rows.
    client : distributed.Client
        Client of the cluster.
    n_threads : int
        Number of threads of what this process computes itself.
    files : Storage or None
        Stores rows that are gathered on the client in files if they are many; None: in memory.
    """

    empty_table = None

    def __init__(
        self,
        source: PartitionSource,
        client: Any,
        n_threads: int,
        files: Storage | None = None,
    ) -> None:
        self._source, self._client, self._files = source, client, files
        self.has_weights = source.has_weights
        self.block_sizes = BlockSizes(n_threads)
        self._workers: list[WorkerBlocks] = []
        # Function, pickled arguments and arguments per block that have made the blocks.
        self._maker: tuple[Any, ...] = ()
        self._is_connected = False
        # For each job its pickled requests that replaced blocks, which are repeated for lost blocks.
        self._replacements: list[bytes] = []
        self._n_replacements = 0
        # Addresses of the workers, name of the current set of ranks, and all calls of ranks, which
        # are repeated if a rank is lost.
        self._addresses: list[str] = []
        self._token: str | None = None
        self._calls: list[bytes] = []
        # Number of epochs, and the addresses of workers that were lost since the last one began.
        self._n_epochs = 0
        self._lost: list[str] = []
        self._no_workers_since: float | None = None

    @property
    def n_blocks(self) -> int:
        """Number of blocks of rows, one for each partition of the table."""
        return self._source.n_partitions

    def apply_memory_limit(self, need: MemoryNeed) -> None:
        """Do nothing: Dask's workers have memory limits of their own. need: ignored."""

    def expect_within_limit(self, n_compared: int = 0) -> None:
        """Do nothing: Dask's workers have memory limits of their own. n_compared: ignored."""

    def scan(self, f: Callable[..., Any], *arguments: Any, targets_only: bool = False) -> Any:
        """Read all rows once on the workers, and return the sum of ``f(chunk, *arguments)``.

        A chunk has the raw rows of a partition (features, targets, weights, groups, offsets). Results
        are added with `+`; None is skipped, and returned if all are None. targets_only: ignored;
        chunks always have their features.
        """
        del targets_only
        return self._sum_futures(self._compute_partitions(_scan_chunk, f, arguments))

    def make_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Read all rows once on the workers, and make a block of each partition.

        ``f(number, chunk, *arguments)`` returns a block (binned rows), which the worker keeps, and a
        partial result; number, chunk: number and raw rows of a partition. per_block: for each
        partition, a further last argument of f. Return the sum of the partial results, which `+`
        adds; None is skipped, and returned if all are None. Former blocks are freed.
        """
        # A pickled copy, as callers may change arguments later, such as a random state.
        self._maker = f, dump(arguments), per_block
        self._release_blocks()
        self._addresses, self._is_connected, self._token = [], False, None
        self._replacements, self._n_replacements, self._calls = [], 0, []
        pairs = self._compute_partitions(_make_block, f, arguments, per_block)
        result = self._sum_futures([self._submit(itemgetter(1), pair) for pair in pairs])
        self._workers = [
            self._start_actor(numbers, [pairs[i] for i in numbers])
            for numbers in self._group_by_worker(pairs)
        ]
        return result

    def _group_by_worker(self, futures: list[Any]) -> list[tuple[int, ...]]:
        """Return, for each worker, the positions in `futures` of the results that it stores.

        futures: finished Dask futures. A result that several workers store is listed for one of them.
        """
        workers = self._client.who_has(futures)
        by_worker: dict[str, list[int]] = {}
        for number, future in enumerate(futures):
            worker = next(iter(workers.get(future.key, ())), "")
            by_worker.setdefault(worker, []).append(number)
        return [*map(tuple, by_worker.values())]

    def _start_actor(self, numbers: tuple[int, ...], pairs: list[Any]) -> WorkerBlocks:
        """Start an actor on the worker that stores some blocks; the actor owns them from then on.

        numbers: numbers of the blocks' partitions; pairs: Dask futures of (block, partial result).
        Return the client's handle of these blocks.
        """
        future = self._client.submit(WorkerActor, numbers, *pairs, pure=False, actor=True)
        return WorkerBlocks(numbers, future, self._wait_for_future(future))

    def reduce(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of ``f(block, *arguments)`` over the blocks of all workers.

        f returns a partial result; `+` adds partial results. None is skipped, and returned if all are
        None.
        """
        return self.run_on_root(Leader.reduce, f, *arguments)

    def replace_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Replace each block (binned rows) on its worker, and return the sum of partial results.

        ``f(block, *arguments)`` returns the new block and a partial result; `+` adds partial results.
        None is skipped, and returned if all are None. per_block: for each block, by its number, a
        further last argument of f.
        """
        by_number = None if per_block is None else dict(enumerate(per_block))
        return self.run_on_root(_replace_blocks, f, arguments, by_number)

    def run_on_ranks(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``f(rank, *arguments)`` on each worker that holds rows; return one result.

        rank: a `Rank`, the table of all rows of the worker and what earlier calls have stored. Workers
        are numbered; the result is that of worker number 0. If a worker is lost, its rows are
        computed again, and all workers repeat the earlier calls that no other call has replaced. See
        `Executor.run_on_ranks`.
        """
        return self._run_on_ranks(f, arguments, from_all=False)[0]

    def gather_from_ranks(self, f: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call ``f(rank, *arguments)`` on each worker that holds rows, and return all results.

        rank: a `Rank`, the table of all rows of the worker and what earlier calls have stored.
        Results are in the order in which workers are numbered. See `run_on_ranks`.
        """
        return self._run_on_ranks(f, arguments, from_all=True)

    def _run_on_ranks(
        self, f: Callable[..., Any], arguments: tuple[Any, ...], *, from_all: bool
    ) -> list[Any]:
        """Call ``f(rank, *arguments)`` on each worker that holds rows.

        rank: a `Rank`, the table of all rows of the worker and what earlier calls have stored. The
        call is stored, so that it can be repeated after a worker is lost. from_all: True returns the
        results of all workers; False returns a list with the result of worker number 0 alone. Raise
        RuntimeError if workers are lost four times in this call.
        """
        self._calls.append(dump((f, arguments)))
        for _ in range(_MAX_LOSSES):
            try:
                self._connect_workers()
                if self._token is None:
                    self._token = uuid4().hex
                    self._log_epoch()
                    results = self._call_ranks(self._calls, from_all)
                else:
                    results = self._call_ranks(self._calls[-1:], from_all)
            except (_WorkerLost, LinkLost):
                self._is_connected, self._token = False, None
                continue
            return [pickle.loads(result) for result in results[: None if from_all else 1]]
        raise self._make_loss_error()

    @property
    def n_rank_calls(self) -> int:
        """Number of calls of ranks that are repeated if a worker is lost."""
        return len(self._calls)

    def replace_rank_calls(self, n_kept: int, f: Callable[..., Any], *arguments: Any) -> None:
        """Choose what is repeated if a worker is lost: the first n_kept calls of ranks, and then f.

        ``f(rank, *arguments)`` stands for all later calls so far. See `Executor.replace_rank_calls`.
        """
        self._calls[n_kept:] = [dump((f, arguments))]

    def _log_epoch(self) -> None:
        """Log the addresses of the workers with rows, and of the workers that were lost.

        An epoch is the time between two losses. The list of lost workers is then cleared.
        """
        self._n_epochs += 1
        _LOGGER.log(
            logging.WARNING if self._lost else logging.INFO,
            "epoch %d of fit %s: ranks %s; lost: %s",
            self._n_epochs,
            self._token,
            ", ".join(f"{rank}={address}" for rank, address in enumerate(self._addresses)),
            ", ".join(self._lost) or "none",
        )
        self._lost = []

    def choose_storage(self, n_bytes: int) -> Storage:
        """Return a `Storage`, which allocates arrays on the client: in files if they are large.

        n_bytes: total size of the arrays. See `Executor.choose_storage`.
        """
        return choose_storage(self._files, n_bytes)

    def _call_ranks(self, calls: Sequence[bytes], from_all: bool) -> list[bytes]:
        """Send calls to all ranks (workers with rows); return the pickled last result of each.

        calls: pickled pairs of a function and its arguments, which each rank calls in order;
        from_all: whether ranks other than 0 send their results, instead of empty bytes. Raise the
        error of a rank if one fails.
        """
        addresses, token = tuple(self._addresses), str(self._token)
        answers = [
            (
                blocks,
                self._send(blocks, "run_on_rank", Epoch(token, rank, addresses), calls, from_all),
            )
            for rank, blocks in enumerate(self._workers)
        ]
        results, errors = [], []
        for pair in answers:
            try:
                results.append(self._wait_for_answer(*pair))
            except Exception as error:  # noqa: BLE001 # it is raised below
                errors.append(error)
        # If one rank fails, the others only know that it does not answer.
        errors.sort(key=lambda error: isinstance(error, LinkLost | _WorkerLost))
        if errors:
            raise errors[0]
        return results

    def close(self) -> None:
        """End running calls on all workers, close their connections, and let them free their blocks.

        The connections are those between workers. Workers that do not answer are ignored.
        """
        if self._token is not None:
            with suppress(Exception):  # a worker that does not answer is lost
                answers = [self._send(blocks, "end_rank") for blocks in self._workers]
                for answer in answers:
                    answer.result(timeout=_PATIENCE)
        self._token = None
        self._release_blocks()

    def _release_blocks(self) -> None:
        """Let workers free their blocks, and forget them.

        Their futures are cancelled, because reference cycles of Dask's actors would hold the blocks
        longer.
        """
        if self._client.status == "running":
            with suppress(Exception):
                self._client.cancel([blocks.future for blocks in self._workers])
        self._workers = []

    def run_on_root(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``f(leader, *arguments)``, computed on the root, which is one of the workers.

        f: a job of several passes over the blocks; leader: a `Leader`, whose `reduce` and
        `replace_blocks` work on the blocks of all workers. If a worker is lost, its blocks are
        recomputed, and the job is repeated. Raise RuntimeError if workers are lost four times.
        """
        job = dump((f, arguments))
        for _ in range(_MAX_LOSSES):
            try:
                self._connect_workers()
                result, replacements, n = self._call(
                    self._workers[0], "run_job", job, self._n_replacements
                )
            except (_WorkerLost, LinkLost):
                self._is_connected = False
                continue
            if n > 0:
                self._replacements.append(replacements)
                self._n_replacements += n
            return pickle.loads(result)
        raise self._make_loss_error()

    def _make_loss_error(self) -> RuntimeError:
        """Return a RuntimeError that says that the fit has lost too many workers."""
        return RuntimeError(
            "workers with rows of the fit were lost several times in a row, or could not connect to "
            "each other, so the fit was stopped: raise the memory_limit of the workers in Dask"
        )

    def _connect_workers(self) -> None:
        """Connect the workers to a binary tree, in which each one forwards requests to two children.

        Blocks of lost workers are recomputed on other workers first. Do nothing if all are connected.
        `run_on_root` and `_run_on_ranks` call it before each job.
        """
        if self._is_connected:
            return
        connected: dict[int, ChildWorker] = {}
        self._addresses = self._addresses or [""] * len(self._workers)
        for place in reversed(range(len(self._workers))):
            positions = (2 * place + 1, 2 * place + 2)
            children = [connected.pop(i) for i in positions if i in connected]
            try:
                address = self._call(self._workers[place], "set_children", children)
            except _WorkerLost:
                self._lost.append(self._addresses[place] or "unknown")
                self._recompute_blocks(place)
                address = self._call(self._workers[place], "set_children", children)
            blocks, self._addresses[place] = self._workers[place], address
            numbers = blocks.numbers, *(child.numbers for child in children)
            connected[place] = ChildWorker(address, blocks.future.key, sum(numbers, ()))
        self._is_connected = True

    def _call(self, blocks: WorkerBlocks, method: str, *arguments: Any) -> Any:
        """Call a method of the actor that holds some blocks, wait, and return the result.

        blocks: handle of these blocks; method: name of a method of `WorkerActor`. Raise
        `_WorkerLost` if the actor's worker is lost, and `LinkLost` if another worker of the fit is.
        """
        return self._wait_for_answer(blocks, self._send(blocks, method, *arguments))

    def _send(self, blocks: WorkerBlocks, method: str, *arguments: Any) -> Any:
        """Start a call of a method of the actor that holds some blocks.

        blocks: handle of these blocks; method: name of a method of `WorkerActor`. Return Dask's
        future of the result. Raise `_WorkerLost` if the worker is lost.
        """
        try:
            call = getattr(blocks.actor, method)
        except (RuntimeError, ValueError) as error:  # Dask knows that the worker is lost
            raise _WorkerLost from error
        return call(*arguments)

    def _wait_for_answer(self, blocks: WorkerBlocks, answer: Any) -> Any:
        """Wait for the result of an actor's method, and return it.

        blocks: handle of the blocks of the actor; answer: result of `_send`. Raise `_WorkerLost` if
        the actor's worker is lost, and `LinkLost` if another worker of the fit is lost.
        """
        distributed = import_extra("distributed", "dask")
        while True:
            try:
                return answer.result(timeout=_PATIENCE)
            except TimeoutError:
                self._expect_cluster()
                if blocks.is_lost:
                    break
                if any(other.is_lost for other in self._workers):
                    raise LinkLost from None
            except (OSError, distributed.CancelledError):
                self._expect_cluster()
                break
        raise _WorkerLost

    def _recompute_blocks(self, place: int) -> None:
        """Recompute the blocks of a lost worker from their partitions, on another worker.

        place: position of the lost worker in `_workers`, which gets the handle of the new blocks. All
        replacements of blocks so far are repeated.
        """
        numbers, (f, arguments, per_block) = self._workers[place].numbers, self._maker
        pairs = self._compute_partitions(
            _make_block, f, pickle.loads(arguments), per_block, numbers
        )
        blocks = self._start_actor(numbers, pairs)
        self._call(blocks, "repeat_replacements", self._replacements)
        self._workers[place] = blocks

    @property
    def n_workers(self) -> int:
        """Number of jobs that `map_jobs` runs at a time: the number of threads of all workers."""
        return max(1, sum(self._client.nthreads().values()))

    def map_jobs(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yield ``f(*shared, *job)`` for each job, computed in parallel on the workers, in order.

        shared: arguments that all jobs have, sent to each worker once; jobs: the further arguments
        of each job. See `Executor.map_jobs`.
        """
        (copied,) = self._client.scatter([shared], broadcast=True, hash=False)
        for future in [self._submit(_run_job, f, copied, *job) for job in jobs]:
            yield self._wait_for_future(future)

    def load_rows(self) -> Chunk:
        """Read all rows into the memory of the client, and return them as one chunk (`join_chunks`)."""
        return join_chunks(self.scan(wrap_in_list))

    def _compute_partitions(
        self,
        call: Callable[..., Any],
        f: Any,
        arguments: tuple[Any, ...],
        per_block: Sequence[Any] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[Any]:
        """Start ``call(f, arguments, number, chunk)`` on workers for some partitions; return futures.

        number, chunk: number and raw rows of a partition; per_block: for each partition, an object
        that is appended to `arguments`; numbers: numbers of the partitions; None: all. Return one
        Dask future for each partition.
        """
        delayed = import_extra("dask", "dask").delayed(call, pure=False)
        tasks = [
            delayed(
                f,
                (*arguments, *(() if per_block is None else (per_block[i],))),
                i,
                self._source.partition(i),
            )
            for i in (range(self.n_blocks) if numbers is None else numbers)
        ]
        futures: list[Any] = self._client.compute(tasks)
        return futures

    def _submit(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Start ``f(*arguments)`` on a worker, and return its Dask future.

        The call gets a new key, so that Dask neither hashes the arguments nor reuses an earlier result.
        """
        return self._client.submit(_call_aligned, f, *arguments, pure=False)

    def _sum_futures(self, futures: list[Any]) -> Any:
        """Wait for Dask futures, and return the sum of their partial results.

        None is skipped, and returned if all are None. Workers add up the results of eight futures at
        a time if there are more.
        """
        while len(futures) > _RESULTS_PER_SUM:
            starts = range(0, len(futures), _RESULTS_PER_SUM)
            futures = [self._submit(_sum, *futures[i : i + _RESULTS_PER_SUM]) for i in starts]
        return sum_results(map(self._wait_for_future, futures))

    def _wait_for_future(self, future: Any) -> Any:
        """Wait for the result of a Dask future, and return it with arrays aligned in memory.

        RuntimeError is raised if workers are lost several times, or the cluster is closed.
        """
        distributed = import_extra("distributed", "dask")
        try:
            while True:
                try:
                    return align_arrays(future.result(timeout=_PATIENCE))
                except TimeoutError:
                    self._expect_cluster()
        except distributed.KilledWorker as error:
            raise RuntimeError(
                "workers with rows of the fit were lost several times in a row, so the fit was "
                f"stopped: raise the memory_limit of the workers in Dask ({error})"
            ) from error
        except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
            raise RuntimeError(
                f"the cluster was closed during the fit ({type(error).__name__}): fit again with a new "
                "client"
            ) from error

    def _expect_cluster(self) -> None:
        """Raise RuntimeError if the cluster is closed, or has had no workers for 300 seconds.

        Dask alone would wait on: for a new scheduler, which would not know the fit, or for workers.
        """
        if self._client.status != "running":
            raise RuntimeError("the cluster was closed during the fit: fit again with a new client")
        if self._client.nthreads():
            self._no_workers_since = None
            return
        now = time.monotonic()
        self._no_workers_since = self._no_workers_since or now
        if now - self._no_workers_since > _NO_WORKERS_TIMEOUT:
            raise RuntimeError(
                f"the cluster has had no workers for {_NO_WORKERS_TIMEOUT:.0f} s, and the fit waits "
                f"for one to hold {self.n_blocks} partitions: start workers, and fit again"
            )


def _run_job(f: Callable[..., Any], shared: tuple[Any, ...], *job: Any) -> Any:
    """Return ``f(*shared, *job)``; workers run it for `DaskExecutor.map_jobs`."""
    return f(*shared, *job)


def _call_aligned(f: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``f(*arguments)``, with unaligned arrays in `arguments` replaced by aligned copies."""
    return f(*align_arrays(arguments))


def _replace_blocks(
    leader: Leader, f: Callable[..., Any], arguments: tuple[Any, ...], per_block: Any
) -> Any:
    """Replace the blocks of all workers, and return the sum of partial results.

    leader: runs on one worker, and sends requests to all blocks; ``f(block, *arguments)`` returns
    the new block and a partial result; per_block: dictionary from the number of a block to a
    further last argument of f, or None.
    """
    return leader.replace_blocks(f, *arguments, per_block=per_block)


def _sum(*results: Any) -> Any:
    """Return the sum of partial results, which `+` adds; skip None; return None if all are None."""
    return sum_results(results)


def _scan_chunk(f: Callable[..., Any], arguments: tuple[Any, ...], _: int, chunk: Chunk) -> Any:
    """Return ``f(chunk, *arguments)``, computed on a worker.

    chunk: raw rows of a partition. Arrays in `arguments` are aligned in memory first. The third
    parameter, the number of the partition, is not used.
    """
    return f(chunk, *align_arrays(arguments))


def _make_block(
    f: Callable[..., Any], arguments: tuple[Any, ...], number: int, chunk: Chunk
) -> Any:
    """Return ``f(number, chunk, *arguments)``, a block and a partial result, on a worker.

    number, chunk: number and raw rows of a partition. Arrays in `arguments` are aligned in memory
    first.
    """
    return f(number, chunk, *align_arrays(arguments))
