"""The parts of a fit that a worker of Dask holds, and how workers ask each other.

Workers form a tree: each asks those below it what it is asked, and adds what they tell to what its own
parts do. So none has more than two answers to read, however many workers there are. The one at the top
decides, too: a job of many questions, as a round of boosting is, is made there.
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
from certree.out_of_core.executors import Parts, added
from certree.out_of_core.joined_rows import MEMORY, JoinedRows
from certree.out_of_core.ranks import Rank
from certree.out_of_core.worker_links import Arrivals, Epoch, Unlinked, WorkerLinks

# Arrays of fewer bytes are pickled with what holds them.
_LARGE = 1 << 14
# Where numbers of all kinds may begin; Dask lays arrays anywhere.
_ALIGNED = 16
# Calls of one actor that run at a time: one of each method, and those that end as a worker is lost.
_MOST_CALLS = 16
# Seconds after which a call checks whether the cluster still holds its actor.
_INTERVAL = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What parts are asked.

    Parameters
    ----------
    f : callable
        A function of a part.
    given : tuple
        What else it is given.
    change : int or None
        Which change of parts it is, in whose places is put what it gives; None: it is none.
    own : mapping or None
        What is given to each of the parts alone, by their numbers.
    """

    f: Callable[..., Any]
    given: tuple[Any, ...]
    change: int | None = None
    own: Mapping[int, Any] | None = None

    def of(self, numbers: Sequence[int]) -> Asked:
        """What some of the parts are asked, by their numbers."""
        return self if self.own is None else replace(self, own={i: self.own[i] for i in numbers})


@dataclass(frozen=True, slots=True)
class Below:
    """A worker that is asked by another one.

    Parameters
    ----------
    address, key : str
        Where it is reached, and its actor there.
    numbers : tuple of int
        Of its parts, and of those of workers below it.
    """

    address: str
    key: str
    numbers: tuple[int, ...]


class OnWorker(Parts):
    """The parts of a fit on a worker, as many of which are asked at a time as it has threads.

    Parameters
    ----------
    numbers : tuple of int
        Which of the partitions they are.
    *pairs : tuples
        The parts, and what they have told when they were made.
    """

    def __init__(self, numbers: tuple[int, ...], *pairs: tuple[Any, Any]) -> None:
        worker = import_extra("distributed", "dask").get_worker()
        super().__init__([received(part) for part, _ in pairs], worker.state.nthreads)
        self._worker, self._numbers = worker, numbers
        self._below: Sequence[Below] = ()
        self._answers: list[Future[list[Any]]] = []  # that are waited for
        # The change that was made last, and what it told, as somebody on the way may have been lost.
        self._last: tuple[int, Any] = (-1, None)
        self._turn = threading.Lock()
        self._is_dropped = False
        # The rank that the rows here are, its links, and the call that its thread works on.
        self._rank: Rank | None = None
        self._epoch = ""
        self._links: WorkerLinks | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._call: asyncio.Future[bytes] | None = None
        # The pool of the event loop has few threads, which all workers of a process share.
        self._threads = ThreadPoolExecutor(_MOST_CALLS)
        Arrivals.at(worker)

    # What is asked of an actor runs in threads of its own: Dask has one for all actors of a worker, and
    # there may be two of a fit once others are lost.

    async def meet(self, below: Sequence[Below]) -> str:
        """Take the workers below in the place of those so far; tells where this one is reached."""
        self._stop_waiting()
        await self._run(self._take, below)
        return str(self._worker.address)

    def _stop_waiting(self) -> None:
        """Let who waits for a lost worker raise `Unlinked`."""
        for one in self._answers:
            one.cancel()

    async def _run(self, f: Callable[..., Any], *given: Any) -> Any:
        """Call a function in a thread of this actor; it ends by `Unlinked` if the actor is dropped."""
        return await self._watch(
            asyncio.get_running_loop().run_in_executor(self._threads, f, *given)
        )

    async def _watch(self, call: asyncio.Future[Any]) -> Any:
        """Wait for a call, and end it once the cluster has dropped the actor, as the client is gone."""
        while not (await asyncio.wait([call], timeout=_INTERVAL))[0]:
            if not any(one is self for one in self._worker.state.actors.values()):
                self._is_dropped = True
                self._stop_waiting()
                if self._links is not None:
                    self._links.close()
        return call.result()

    def _take(self, below: Sequence[Below]) -> None:
        with self._turn:  # once nobody is asked any more
            self._below = below

    async def tell(self, asked: bytes) -> list[Any]:
        """What the worker above asks, pickled, and what it is told, as `packed` has it.

        Raises
        ------
        Unlinked
            If a worker is lost.
        """
        told: list[Any] = await self._run(lambda: packed(self.told(pickle.loads(asked))))
        return told

    async def lead(self, job: bytes, n_changes: int) -> tuple[bytes, bytes, int]:
        """What a job tells, the changes that it has made, and how many; see `Executor.led`.

        job: a function and what it is given. n_changes: how many there have been before.

        Raises
        ------
        Unlinked
            If a worker is lost.
        """
        told: tuple[bytes, bytes, int] = await self._run(self._lead, job, n_changes)
        return told

    def _lead(self, job: bytes, n_changes: int) -> tuple[bytes, bytes, int]:
        leader = Leader(self, n_changes)
        f, given = pickle.loads(job)
        told = dump(f(leader, *given))
        return told, dump(leader.changes), len(leader.changes)

    def told(self, asked: Asked) -> Any:
        """What the parts here and below tell together, or an error.

        Raises
        ------
        Unlinked
            If a worker below is lost.
        """
        with self._turn:
            if self._is_dropped:
                raise Unlinked
            loop = self._worker.loop.asyncio_loop
            self._answers = [
                asyncio.run_coroutine_threadsafe(_answer(self._worker, one, asked), loop)
                for one in self._below
            ]
            try:
                told = [self._own(asked), *(unpacked(one.result()) for one in self._answers)]
            except CancelledError as error:
                raise Unlinked from error
        failed = [one for one in told if isinstance(one, _Failed)]
        return failed[0] if failed else added(told)

    def _own(self, asked: Asked) -> Any:
        """What the parts here tell; errors, too, as others still tell what they are asked."""
        try:
            if asked.change is None:
                return self.collect(asked.f, *asked.given)
            if asked.change != self._last[0]:
                own = None if asked.own is None else [asked.own[i] for i in self._numbers]
                self._last = asked.change, self.change(asked.f, *asked.given, own=own)
            return self._last[1]
        except Exception as error:  # noqa: BLE001 # it is raised where the fit is made
            return _Failed(error)

    async def run_on_rank(self, epoch: Epoch, calls: Sequence[bytes], from_all: bool) -> bytes:
        """Call functions with the rank of the parts here; see `Executor.run_on_ranks`.

        Parameters
        ----------
        epoch : Epoch
            The ranks. If they are new, they link up first, and forget the state of those before.
        calls : sequence of bytes
            Functions, and what they are given, pickled; they are called one after the other.
        from_all : bool
            Whether all ranks send what the last one has returned, or rank 0 alone.

        Returns
        -------
        bytes
            What the last one has returned, pickled; empty if another rank sends it.

        Raises
        ------
        Unlinked
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
            # A thread of its own: the ranks of workers in one process wait for each other.
            self._thread = ThreadPoolExecutor(1)
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, self._run_calls, links, calls, from_all
        )
        self._call = work
        told: bytes = await self._watch(work)
        return told

    async def end_rank(self) -> None:
        """Close the links of the rank, and wait until its thread has ended what it does."""
        if self._links is not None:
            self._links.close()
        if self._call is not None:
            await asyncio.wait([self._call])
        self._epoch, self._links, self._call = "", None, None

    def _run_calls(self, links: WorkerLinks, calls: Sequence[bytes], from_all: bool) -> bytes:
        try:
            if self._rank is None:
                rows = JoinedRows.join(self._parts, MEMORY)
                self._rank = Rank(rows, n_threads=self._worker.state.nthreads)
                self._parts = []
            self._rank.links = links
            for call in calls:
                f, given = pickle.loads(call)
                result = f(self._rank, *given)
            return dump(result) if from_all or links.decides else b""
        except BaseException:
            links.abort()  # the others end, too
            raise

    async def change_again(self, jobs: Sequence[bytes]) -> None:
        """Make the changes of jobs that parts before these have made."""
        await self._run(self._change_again, jobs)

    def _change_again(self, jobs: Sequence[bytes]) -> None:
        for job in jobs:
            for one in pickle.loads(job):
                known(self._own(one))


@dataclass(frozen=True, slots=True)
class _Failed:
    """What is told where parts cannot answer."""

    error: Exception


def known(told: Any) -> Any:
    """What is told, if it is no error."""
    if isinstance(told, _Failed):
        raise told.error
    return told


async def _answer(worker: Any, below: Below, asked: Asked) -> list[Any]:
    """What a worker below tells, as one actor of Dask asks another."""
    serialized = import_extra("distributed.protocol", "dask").to_serialize
    given = [serialized(dump(asked.of(below.numbers)))]
    try:
        told = await worker.rpc(below.address).actor_execute(
            function="tell", actor=below.key, args=given
        )
    except (OSError, KeyError) as error:
        raise Unlinked from error
    if told["status"] != "OK":
        raise told["exception"]
    answer: list[Any] = told["result"]
    return answer


def dump(value: Any) -> bytes:
    """Pickle a value that may hold functions of the user, which need not be in a module."""
    pickled: bytes = import_extra("cloudpickle", "dask").dumps(value, protocol=5)
    return pickled


def packed(told: Any) -> list[Any]:
    """The bytes of large arrays, if there are any, and behind them all else, pickled.

    Dask sends an array as it lies, but takes its time for each of many small ones.
    """
    large: list[Any] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            large.append(np.frombuffer(raw, dtype=np.uint8))
        return raw.nbytes < _LARGE

    rest = pickle.dumps(told, 5, buffer_callback=stays)
    return [*large, rest]


def unpacked(told: list[Any]) -> Any:
    """What has been packed."""
    *large, rest = told
    aligned = [one if one.ctypes.data % _ALIGNED == 0 else one.copy() for one in large]
    return pickle.loads(rest, buffers=aligned)


class Leader:
    """Asks all parts of a fit from the worker at the top.

    Parameters
    ----------
    top : OnWorker
        Its own parts.
    n_changes : int
        How many changes there have been.
    """

    def __init__(self, top: OnWorker, n_changes: int) -> None:
        self._top, self._n_changes = top, n_changes
        self.changes: list[Asked] = []

    def collect(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`."""
        return known(self._top.told(Asked(f, given)))

    def change(
        self, f: Callable[..., Any], *given: Any, own: Mapping[int, Any] | None = None
    ) -> Any:
        """See `Executor`."""
        asked = Asked(f, given, self._n_changes + len(self.changes), own)
        told = known(self._top.told(asked))
        self.changes.append(asked)
        return told


def received(given: Any) -> Any:
    """What came in a message of Dask, whose arrays may start at any byte, as the core reads it."""
    if isinstance(given, np.ndarray):
        return given if given.flags.aligned else given.copy()
    if isinstance(given, dict):
        return type(given)({key: received(one) for key, one in given.items()})
    if isinstance(given, tuple | list):
        made = map(received, given)
        return type(given)(*made) if hasattr(given, "_fields") else type(given)(made)
    if not is_dataclass(given) or isinstance(given, type):
        return given
    own = {one.name: getattr(given, one.name) for one in fields(given) if one.init}
    told = {name: received(one) for name, one in own.items()}
    moved = {name: one for name, one in told.items() if one is not own[name]}
    return replace(given, **moved) if moved else given
