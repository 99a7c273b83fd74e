"""Links between ranks on workers of Dask: connections of Dask to the ports of the workers.

Ranks form a tree, whose root is rank 0. Up to four ranks it is a star, else a binary tree. Words travel
as raw frames, and every message has the number of its step. When a link is closed, the ranks at both
ends close all of their links, so that every rank notices at once that one is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certree.interface.arrays import Int64
from certree.interface.extras import import_extra

# The name of the handler, and of the extension of the worker that has the arrivals.
_OPERATION = "certree_link"
# Seconds in which a rank must link up.
_PATIENCE = 60.0
# Up to so many ranks all are linked to rank 0.
_MOST_IN_STAR = 4


class Unlinked(Exception):  # noqa: N818 # no error: it says how to go on
    """Raised where a worker does not answer another one any more."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """One set of ranks, as one of them sees it.

    Parameters
    ----------
    token : str
        Name of the set; a set that replaces it after a loss has another one.
    rank : int
        Which of the ranks this is.
    addresses : tuple of str
        Addresses of the workers of all ranks.
    """

    token: str
    rank: int
    addresses: tuple[str, ...]

    @property
    def parent(self) -> int | None:
        """The rank above; None for rank 0."""
        if self.rank == 0:
            return None
        return 0 if len(self.addresses) <= _MOST_IN_STAR else (self.rank - 1) // 2

    @property
    def children(self) -> list[int]:
        """The ranks below."""
        n, rank = len(self.addresses), self.rank
        if n <= _MOST_IN_STAR:
            return [*range(1, n)] if rank == 0 else []
        return [one for one in (2 * rank + 1, 2 * rank + 2) if one < n]


@dataclass(slots=True, eq=False)
class _Arrival:
    """A connection that a rank has opened to the port of a worker."""

    comm: Any
    is_taken: asyncio.Event = field(default_factory=asyncio.Event)
    is_closed: asyncio.Event = field(default_factory=asyncio.Event)


class Arrivals:
    """The connections to a worker that its ranks have not taken yet."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], asyncio.Future[_Arrival]] = {}

    @classmethod
    def at(cls, worker: Any) -> Arrivals:
        """Return those of a worker, which has a handler for them from the first call on."""
        if _OPERATION not in worker.extensions:
            arrivals = cls()
            worker.extensions[_OPERATION] = arrivals
            worker.handlers[_OPERATION] = arrivals.accept
        found: Arrivals = worker.extensions[_OPERATION]
        return found

    async def accept(self, comm: Any, token: str, rank: int) -> Any:
        """Keep a connection of a rank until it is closed."""
        arrival, key = _Arrival(comm), (token, rank)
        place = self._place(key)
        if not place.done():
            place.set_result(arrival)
            with suppress(TimeoutError):
                await asyncio.wait_for(arrival.is_taken.wait(), _PATIENCE)
        if arrival.is_taken.is_set():
            await arrival.is_closed.wait()
        self._waiting.pop(key, None)
        comm.abort()
        return import_extra("distributed", "dask").core.Status.dont_reply

    async def take(self, token: str, rank: int) -> _Arrival:
        """Return the connection of a rank once it is there."""
        key = token, rank
        try:
            arrival = await asyncio.wait_for(self._place(key), _PATIENCE)
        except TimeoutError as error:
            raise Unlinked from error
        finally:
            self._waiting.pop(key, None)
        arrival.is_taken.set()
        return arrival

    def _place(self, key: tuple[str, int]) -> asyncio.Future[_Arrival]:
        if key not in self._waiting:
            self._waiting[key] = asyncio.get_running_loop().create_future()
        return self._waiting[key]


class WorkerLinks:
    """The links of a rank on a worker; see `Links`.

    `open` and `close` run on the worker's event loop, all else in a thread beside it.

    Parameters
    ----------
    worker : distributed.Worker
        The worker.
    epoch : Epoch
        The set of ranks.
    """

    def __init__(self, worker: Any, epoch: Epoch) -> None:
        self._worker, self._epoch = worker, epoch
        self._loop = worker.loop.asyncio_loop
        self._above: Any = None
        self._below: list[Any] = []
        self._arrivals: list[_Arrival] = []
        self._sending: Future[Any] | None = None
        self._step, self._is_closed = 0, False

    @property
    def decides(self) -> bool:
        """See `Links`."""
        return self._epoch.rank == 0

    async def open(self) -> None:
        """Link up with the rank above and with those below.

        Raises
        ------
        Unlinked
            If one of them cannot be reached.
        """
        token, rank, parent = self._epoch.token, self._epoch.rank, self._epoch.parent
        try:
            if parent is not None:
                self._above = await self._connect(self._epoch.addresses[parent])
                await self._above.write(
                    {"op": _OPERATION, "token": token, "rank": rank, "reply": False}
                )
            arrivals = Arrivals.at(self._worker)
            for child in self._epoch.children:
                self._arrivals.append(await arrivals.take(token, child))
        except OSError as error:
            self.close()
            raise Unlinked from error
        except BaseException:
            self.close()
            raise
        self._below = [one.comm for one in self._arrivals]
        for comm in self._comms:
            comm.deserialize = False  # frames stay as they come
        if self._is_closed:
            self.close()
            raise Unlinked

    async def _connect(self, address: str) -> Any:
        given = self._worker.security.get_connection_args("worker")
        return await import_extra("distributed", "dask").comm.connect(
            address, timeout=_PATIENCE, **given
        )

    @property
    def _comms(self) -> list[Any]:
        return [*self._below, *([] if self._above is None else [self._above])]

    def close(self) -> None:
        """Close all links; who waits for a message raises `Unlinked`."""
        self._is_closed = True
        for comm in self._comms:
            comm.abort()
        for arrival in self._arrivals:
            arrival.comm.abort()
            arrival.is_closed.set()

    def abort(self) -> None:
        """Close all links from another thread."""
        self._is_closed = True
        self._loop.call_soon_threadsafe(self.close)

    def reduce(self, words: Int64, n_sums: int) -> None:
        """See `Links`."""
        self._step += 1
        total = words.copy()  # messages may be sent later than they are written
        reduced = self._start(self._reduce(total, n_sums, self._step))
        if self.decides:
            self._wait(reduced)
            words[:] = total
        else:
            self._sending = reduced

    async def _reduce(self, total: Int64, n_sums: int, step: int) -> None:
        for comm in self._below:
            other = await self._read(comm, step, len(total))
            total[:n_sums] += other[:n_sums]
            np.maximum(total[n_sums:], other[n_sums:], out=total[n_sums:])
        if self._above is not None:
            await self._write(self._above, step, total)

    def share(self, words: Int64) -> None:
        """See `Links`."""
        self._step += 1
        if self.decides:
            self._sending = self._start(self._send_below(words.copy(), self._step))
            return
        words[:] = self._wait(self._start(self._share(len(words), self._step)))

    async def _share(self, n: int, step: int) -> Int64:
        words = await self._read(self._above, step, n)
        await self._send_below(words, step)
        return words

    async def _send_below(self, words: Int64, step: int) -> None:
        for comm in self._below:
            await self._write(comm, step, words)

    def _start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Start work on the event loop, once what was sent before has gone."""
        try:
            if self._sending is not None:
                self._wait(self._sending)
            if self._is_closed:
                raise Unlinked
        except BaseException:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _wait(self, started: Future[Any]) -> Any:
        try:
            return started.result()
        except (OSError, CancelledError) as error:
            raise Unlinked from error

    async def _write(self, comm: Any, step: int, words: Int64) -> None:
        serialized = import_extra("distributed.protocol", "dask").Serialized
        await comm.write([step, serialized({}, [words.data.cast("B")])])

    async def _read(self, comm: Any, step: int, n: int) -> Int64:
        other, message = await comm.read()
        frames = message.frames
        words = np.frombuffer(frames[0] if len(frames) == 1 else b"".join(frames), np.int64)
        if other != step or len(words) != n:
            raise RuntimeError(
                f"ranks have come apart: step {step} of {n} words, got step {other} of {len(words)}"
            )
        return words
