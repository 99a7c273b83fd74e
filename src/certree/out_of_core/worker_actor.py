"""Dask actors: each holds the blocks of one worker, and forwards requests to other workers.

The workers of a fit form a binary tree. A worker forwards a request to its children, and adds their
results to the result of its own blocks, so that no worker reads more than two answers. The root also
runs whole jobs of several requests, such as the passes of `set_keys`.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from certree.interface.extras import import_extra
from certree.out_of_core.executors import LocalBlocks, sum_results
from certree.out_of_core.joined_rows import MEMORY, JoinedRows
from certree.out_of_core.ranks import Rank
from certree.out_of_core.worker_links import Epoch, LinkLost, PendingConnections, WorkerLinks

# Arrays of fewer bytes are pickled with the object that holds them.
_LARGE = 1 << 14
# Alignment in bytes that any dtype accepts. Dask places received arrays at any address.
_ALIGNED = 16
# Calls that run at a time in one actor: one of each method, and those that end as a worker is lost.
_MAX_CALLS = 16
# Seconds between checks that the cluster still holds an actor.
_INTERVAL = 1.0


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """A request that the client sends to workers: call a function for each of their row blocks.

    Parameters
    ----------
    f : callable
        ``f(block, *arguments)`` returns a partial result, or a new block and a partial result if
        `replacement` is not None. Partial results of all blocks are added by `+`; None is skipped,
        and is the sum if all are None.
    arguments : tuple
        Arguments that all blocks share.
    replacement : int or None
        The request is the replacement of all blocks with this number, counted from 0 in a fit, so
        that a worker does not repeat it. None: blocks are not replaced.
    per_block : mapping of int to object, or None
        Last argument for each block, by the number of the block; None: there is none.
    """

    f: Callable[..., Any]
    arguments: tuple[Any, ...]
    replacement: int | None = None
    per_block: Mapping[int, Any] | None = None

    def select(self, numbers: Sequence[int]) -> BlockRequest:
        """Return a copy of the request whose `per_block` has only the entries of some blocks.

        numbers: numbers of these blocks.
        """
        if self.per_block is None:
            return self
        return replace(self, per_block={i: self.per_block[i] for i in numbers})


@dataclass(frozen=True, slots=True)
class ChildWorker:
    """A Dask worker to which another worker, its parent in a tree of workers, forwards requests.

    Parameters
    ----------
    address, key : str
        Dask's address of the worker, and key of its actor.
    numbers : tuple of int
        Numbers of the blocks that the worker and its descendants in the tree hold.
    """

    address: str
    key: str
    numbers: tuple[int, ...]


class WorkerActor(LocalBlocks):
    """Dask actor that holds the row blocks of a fit on one worker, and calls functions for them.

    It processes as many blocks at a time as the worker has threads.

    Requests run in threads of the actor. Dask has one thread for all actors of a worker, which may
    hold two actors of a fit after another worker was lost, and the event loop has few threads, which
    all workers of a process share.

    Parameters
    ----------
    numbers : tuple of int
        Numbers of the blocks.
    *pairs : tuple of (RowBlock, object)
        For each number, the block and the partial result that came with it, which is ignored.
    """

    def __init__(self, numbers: tuple[int, ...], *pairs: tuple[Any, Any]) -> None:
        worker = import_extra("distributed", "dask").get_worker()
        super().__init__([align_arrays(block) for block, _ in pairs], worker.state.nthreads)
        self._worker, self._numbers = worker, numbers
        self._children: Sequence[ChildWorker] = ()
        self._answers: list[Future[list[Any]]] = []  # of the children, to the current request
        # Number and result of the last replacement: it is not repeated if its answer was lost.
        self._last: tuple[int, Any] = (-1, None)
        self._turn = threading.Lock()
        # The rank of these rows, its links, and the call that its thread executes.
        self._rank: Rank | None = None
        self._epoch = ""
        self._links: WorkerLinks | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._call: asyncio.Future[bytes] | None = None
        self._threads = ThreadPoolExecutor(_MAX_CALLS)
        self._is_dropped = False
        PendingConnections.get_or_register(worker)

    async def set_children(self, children: Sequence[ChildWorker]) -> str:
        """Replace the children, and return the address of this worker.

        children: workers to which this one will forward requests. A request that still waits for a
        former child ends with `LinkLost`.
        """
        self._cancel_answers()
        await self._run_in_thread(self._set_children, children)
        return str(self._worker.address)

    def _cancel_answers(self) -> None:
        """Cancel the answers of the children; the request that waits for them raises `LinkLost`.

        Called before new children are set and after the client is gone, as a lost worker would
        never answer.
        """
        for answer in self._answers:
            answer.cancel()

    async def _run_in_thread(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``f(*arguments)``, computed in a thread of the actor while the event loop goes on."""
        loop = asyncio.get_running_loop()
        return await self._wait(loop.run_in_executor(self._threads, f, *arguments))

    async def _wait(self, call: asyncio.Future[Any]) -> Any:
        """Wait for the result of a call that runs in a thread, and return it.

        If Dask has dropped the actor meanwhile, as the client is gone, end the call: `LinkLost` is
        raised.
        """
        while not (await asyncio.wait([call], timeout=_INTERVAL))[0]:
            if not any(actor is self for actor in self._worker.state.actors.values()):
                self._is_dropped = True
                self._cancel_answers()
                if self._links is not None:
                    self._links.close()
        return call.result()

    def _set_children(self, children: Sequence[ChildWorker]) -> None:
        """Replace the workers to which this one forwards requests, after the current request.

        children: the new ones.
        """
        with self._turn:
            self._children = children

    async def answer(self, request: bytes) -> list[Any]:
        """Process a request, and return the sum of the results of this worker and its descendants.

        request: a pickled `BlockRequest`. The sum is encoded by `pack`, as a list of its large
        arrays and the pickled rest; it is a `_Failure` if the function of the request has raised an
        error. Raise `LinkLost` if a worker is lost.
        """
        result: list[Any] = await self._run_in_thread(
            lambda: pack(self.process(pickle.loads(request)))
        )
        return result

    async def run_job(self, job: bytes, n_replacements: int) -> tuple[bytes, bytes, int]:
        """Run a job of several requests on this worker, the root of the tree of workers.

        The job is a function that sends each of its requests to all workers through a `Leader`. A
        replacement is a request that replaces each block of rows by a new one
        (`Leader.replace_blocks`).

        Parameters
        ----------
        job : bytes
            Pickled pair (f, arguments) of a function and a tuple; ``f(leader, *arguments)`` is
            called, where leader is a `Leader`.
        n_replacements : int
            Number of replacements in the fit before this job, by which its own are numbered.

        Returns
        -------
        result, replacements : bytes
            Result of the job, and the list of its replacements (`BlockRequest`), pickled. If a
            worker is lost later, its blocks are computed again, and `repeat_replacements` repeats
            all replacements for them.
        n : int
            Number of replacements of this job.

        Raises
        ------
        LinkLost
            If a worker is lost.
        """
        result: tuple[bytes, bytes, int] = await self._run_in_thread(
            self._run_job, job, n_replacements
        )
        return result

    def _run_job(self, job: bytes, n_replacements: int) -> tuple[bytes, bytes, int]:
        """Run a job of several requests in a thread of this worker.

        job: pickled pair of a function and its arguments, which is called with a `Leader`;
        n_replacements: number of requests before this job that replaced each block by a new one.
        Return the pickled result, the pickled requests of this job that did, and their number.
        """
        leader = Leader(self, n_replacements)
        f, arguments = pickle.loads(job)
        result = dump(f(leader, *arguments))
        return result, dump(leader.replacements), len(leader.replacements)

    def process(self, request: BlockRequest) -> Any:
        """Return the sum of the results of a request over this worker and its descendants.

        request: the function to call for each row block. Its partial results are added by `+`. If
        the function has raised an error on a worker, return a `_Failure` with the error instead.

        Raises
        ------
        LinkLost
            If a descendant is lost.
        """
        with self._turn:
            if self._is_dropped:
                raise LinkLost
            loop = self._worker.loop.asyncio_loop
            self._answers = [
                asyncio.run_coroutine_threadsafe(_forward(self._worker, child, request), loop)
                for child in self._children
            ]
            try:
                results = [
                    self._process_here(request),
                    *(unpack(answer.result()) for answer in self._answers),
                ]
            except CancelledError as error:
                raise LinkLost from error
        failed = [result for result in results if isinstance(result, _Failure)]
        return failed[0] if failed else sum_results(results)

    def _process_here(self, request: BlockRequest) -> Any:
        """Return the sum of the results of a request over the blocks of this worker.

        request: the function to call for each row block. Its partial results are added by `+`. If
        it is the last replacement of blocks that was done here, it is not repeated, but its result
        is returned again. Errors of the function are returned as `_Failure`, because other workers
        still answer the request.
        """
        try:
            if request.replacement is None:
                return self.reduce(request.f, *request.arguments)
            if request.replacement != self._last[0]:
                per_block = request.per_block
                values = None if per_block is None else [per_block[i] for i in self._numbers]
                result = self.replace_blocks(request.f, *request.arguments, per_block=values)
                self._last = request.replacement, result
            return self._last[1]
        except Exception as error:  # noqa: BLE001 # it is raised on the client
            return _Failure(error)

    async def run_on_rank(self, epoch: Epoch, calls: Sequence[bytes], from_all: bool) -> bytes:
        """Call functions with the `Rank` of this worker: the table of its rows, and stored state.

        A `Rank` is the number of a worker in a fit with what it holds: all its rows as one table,
        connections to other workers, and an object that calls store for later calls. The first call
        joins the blocks of this worker to the table.

        Parameters
        ----------
        epoch : Epoch
            The workers that take part, and their ranks. If it is new, the workers connect to each
            other first, and drop the state that earlier calls have stored.
        calls : sequence of bytes
            Pickled pairs (f, arguments); ``f(rank, *arguments)`` is called for each, in order.
        from_all : bool
            Whether all workers return the result of the last call, or rank 0 alone.

        Returns
        -------
        bytes
            The last result, pickled; empty if only rank 0 returns it.

        Raises
        ------
        LinkLost
            If a worker is lost.
        """
        links = self._links
        if links is None or self._epoch != epoch.token:
            await self.end_rank()
            links = WorkerLinks(self._worker, epoch)
            self._epoch, self._links = epoch.token, links
            await links.open()
            if self._rank is not None:
                self._rank.state = None
        if self._thread is None:
            # A thread of its own, because ranks of workers in one process wait for each other.
            self._thread = ThreadPoolExecutor(1)
        call = asyncio.get_running_loop().run_in_executor(
            self._thread, self._run_calls, links, calls, from_all
        )
        self._call = call
        result: bytes = await self._wait(call)
        return result

    async def end_rank(self) -> None:
        """Close the links to other workers, and wait until the current `run_on_rank` has ended."""
        if self._links is not None:
            self._links.close()
        if self._call is not None:
            await asyncio.wait([self._call])
        self._epoch, self._links, self._call = "", None, None

    def _run_calls(self, links: WorkerLinks, calls: Sequence[bytes], from_all: bool) -> bytes:
        """Call functions with the `Rank` of this worker in order; return the last result, pickled.

        The first call joins the blocks of this worker to one table. links: connections to the other
        workers, which an error closes; calls: pickled pairs (f, arguments) for ``f(rank,
        *arguments)``; from_all: False: only the worker of rank 0 returns the result, others empty
        bytes.
        """
        try:
            if self._rank is None:
                rows = JoinedRows.join(self._blocks, MEMORY)
                self._rank = Rank(rows, n_threads=self._worker.state.nthreads)
                self._blocks = []
            self._rank.links = links
            for call in calls:
                f, arguments = pickle.loads(call)
                result = f(self._rank, *arguments)
            return dump(result) if from_all or links.is_rank_0 else b""
        except BaseException:
            links.abort()  # so that all other ranks end, too
            raise

    async def repeat_replacements(self, jobs: Sequence[bytes]) -> None:
        """Repeat all replacements of blocks so far for the blocks of this worker, in place.

        Called for a worker that holds the blocks of a lost one, which were computed again from
        their partitions, without later replacements. jobs: for each job so far the pickled list of
        its requests that replaced blocks, from `run_job`.
        """
        await self._run_in_thread(self._repeat_replacements, jobs)

    def _repeat_replacements(self, jobs: Sequence[bytes]) -> None:
        """Repeat all replacements of blocks so far for the blocks of this worker, in place.

        jobs: for each job the pickled list of its requests that replaced blocks.
        """
        for job in jobs:
            for request in pickle.loads(job):
                raise_if_failed(self._process_here(request))


@dataclass(frozen=True, slots=True)
class _Failure:
    """The result of a request whose function has raised an error. error: the error."""

    error: Exception


def raise_if_failed(result: Any) -> Any:
    """Return the result of a request, or raise the error that its function has raised on a worker.

    result: result of `WorkerActor.process`; a `_Failure` holds the error.
    """
    if isinstance(result, _Failure):
        raise result.error
    return result


async def _forward(worker: Any, child: ChildWorker, request: BlockRequest) -> list[Any]:
    """Send a request to a child worker, as one Dask actor calls another, and return the result.

    worker: this Dask worker. The result is that of the child and its descendants, encoded by
    `pack`: a list of its large arrays and the pickled rest. Raise `LinkLost` if the child is lost.
    """
    serialize = import_extra("distributed.protocol", "dask").to_serialize
    arguments = [serialize(dump(request.select(child.numbers)))]
    try:
        answer = await worker.rpc(child.address).actor_execute(
            function="answer", actor=child.key, args=arguments
        )
    except (OSError, KeyError) as error:
        raise LinkLost from error
    if answer["status"] != "OK":
        raise answer["exception"]
    result: list[Any] = answer["result"]
    return result


def dump(value: Any) -> bytes:
    """Pickle a value by cloudpickle; return the bytes.

    value: any object; it may hold functions that are not in an importable module.
    """
    pickled: bytes = import_extra("cloudpickle", "dask").dumps(value, protocol=5)
    return pickled


def pack(value: Any) -> list[Any]:
    """Encode a value for a Dask message: a list of its large arrays and, last, the rest, pickled.

    The arrays are returned as raw bytes, 1-D uint8. Dask sends an array without a copy, but each
    array takes time, so small ones are pickled with the rest. `unpack` decodes the list.
    """
    large: list[Any] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        """Return whether an array's buffer is pickled; append the bytes of a large one to `large`."""
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            large.append(np.frombuffer(raw, dtype=np.uint8))
        return raw.nbytes < _LARGE

    rest = pickle.dumps(value, 5, buffer_callback=is_small)
    return [*large, rest]


def unpack(packed: list[Any]) -> Any:
    """Return the value that `pack` has encoded. packed: the list that `pack` has returned."""
    *large, rest = packed
    aligned = [raw if raw.ctypes.data % _ALIGNED == 0 else raw.copy() for raw in large]
    return pickle.loads(rest, buffers=aligned)


class Leader:
    """Calls functions for all row blocks of a fit from one of the workers, as an `Executor` does.

    That worker is the root of the tree of workers.

    Parameters
    ----------
    root : WorkerActor
        The actor of the root.
    n_replacements : int
        Number of requests before this job that replaced each block by a new one.

    Attributes
    ----------
    replacements : list of BlockRequest
        The requests of this job that replaced each block, those of `replace_blocks`.
    """

    def __init__(self, root: WorkerActor, n_replacements: int) -> None:
        self._root, self._n_replacements = root, n_replacements
        self.replacements: list[BlockRequest] = []

    def reduce(self, f: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of ``f(block, *arguments)`` over the blocks of all workers.

        f returns a partial result, or raises an error, which is raised here; `+` adds partial
        results. None is skipped, and returned if all are None.
        """
        return raise_if_failed(self._root.process(BlockRequest(f, arguments)))

    def replace_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Mapping[int, Any] | None = None
    ) -> Any:
        """Replace each block on its worker, and return the sum of partial results.

        ``f(block, *arguments)`` returns the new block and a partial result; `+` adds partial
        results. None is skipped, and returned if all are None. per_block: a further last argument of
        f for each block, by the number of the block; None: there is none.
        """
        number = self._n_replacements + len(self.replacements)
        request = BlockRequest(f, arguments, number, per_block)
        result = raise_if_failed(self._root.process(request))
        self.replacements.append(request)
        return result


def align_arrays(value: Any) -> Any:
    """Return a received value in which all arrays are aligned, as the C++ core needs them.

    Arrays in a Dask message may start at any byte. Unaligned arrays are copied, also those in
    dictionaries, tuples, lists and dataclasses.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if isinstance(value, dict):
        return type(value)({key: align_arrays(item) for key, item in value.items()})
    if isinstance(value, tuple | list):
        items = map(align_arrays, value)
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    before = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    after = {name: align_arrays(item) for name, item in before.items()}
    copied = {name: item for name, item in after.items() if item is not before[name]}
    return replace(value, **copied) if copied else value
