"""Links between ranks on Dask workers: Dask connections to the ports of the workers.

Ranks form a tree whose root is rank 0: a star for up to four ranks, else a binary tree. Words are
sent as raw frames, and every message has the number of its step. If a link is closed, the ranks at
both ends close all of their links, so that every rank notices at once that one is lost.
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

# Name of Dask's handler for connections of ranks, and of the extension that holds them.
_OPERATION = "certree_link"
# Seconds within which a rank must connect.
_PATIENCE = 60.0
# Largest number of ranks that form a star.
_MAX_STAR = 4


class LinkLost(Exception):  # noqa: N818 # no error: the client repeats the call
    """Raised if the connection to another worker is lost."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The workers that take part in a fit until one of them is lost, seen from one of them.

    Each worker has a rank (its number 0, 1, ..., as in MPI). After the loss of a worker, a new
    epoch begins, with new ranks for the remaining workers.

    Parameters
    ----------
    token : str
        Name of the epoch, which differs from that of all other epochs and fits.
    rank : int
        Rank of the worker that holds this object.
    addresses : tuple of str
        Network addresses of the workers, in the order of their ranks.
    """

    token: str
    rank: int
    addresses: tuple[str, ...]

    @property
    def parent(self) -> int | None:
        """Rank of the worker to which this worker sends its sums; None for rank 0."""
        if self.rank == 0:
            return None
        return 0 if len(self.addresses) <= _MAX_STAR else (self.rank - 1) // 2

    @property
    def children(self) -> list[int]:
        """Ranks of the workers whose sums this worker receives."""
        n, rank = len(self.addresses), self.rank
        if n <= _MAX_STAR:
            return [*range(1, n)] if rank == 0 else []
        return [child for child in (2 * rank + 1, 2 * rank + 2) if child < n]


@dataclass(slots=True, eq=False)
class _PendingConnection:
    """A connection that the worker of a child rank has opened to this worker's port.

    comm: Dask's connection; is_taken: set when this worker starts to use it; is_closed: set when
    this worker closes it.
    """

    comm: Any
    is_taken: asyncio.Event = field(default_factory=asyncio.Event)
    is_closed: asyncio.Event = field(default_factory=asyncio.Event)


class PendingConnections:
    """Connections that other workers have opened to a worker, and that no fit uses yet.

    They are stored by the token of the epoch (the time in which the same workers take part in a
    fit) and the rank (number) of the other worker.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], asyncio.Future[_PendingConnection]] = {}

    @classmethod
    def get_or_register(cls, worker: Any) -> PendingConnections:
        """Return the pending connections of a Dask worker, a `distributed.Worker`.

        The first call for a worker creates them, and registers a handler that Dask calls for new
        connections.
        """
        if _OPERATION not in worker.extensions:
            connections = cls()
            worker.extensions[_OPERATION] = connections
            worker.handlers[_OPERATION] = connections.accept
        registered: PendingConnections = worker.extensions[_OPERATION]
        return registered

    async def accept(self, comm: Any, token: str, rank: int) -> Any:
        """Hold a connection of a child worker until it is closed; Dask calls this as a handler.

        comm: Dask's connection; token: name of the epoch (the time in which the same workers take
        part in a fit), which this worker need not know yet; rank: rank of the child. A connection
        that nobody takes within a minute is closed. Return Dask's status "dont_reply", so that Dask
        sends nothing over the connection.
        """
        connection, key = _PendingConnection(comm), (token, rank)
        future = self._get_future(key)
        if not future.done():
            future.set_result(connection)
            with suppress(TimeoutError):
                await asyncio.wait_for(connection.is_taken.wait(), _PATIENCE)
        if connection.is_taken.is_set():
            await connection.is_closed.wait()
        self._waiting.pop(key, None)
        comm.abort()
        return import_extra("distributed", "dask").core.Status.dont_reply

    async def take(self, token: str, rank: int) -> _PendingConnection:
        """Wait for the connection of a child worker, and return it.

        token: name of the epoch (the time in which the same workers take part in a fit); rank: rank
        of the child. Raise `LinkLost` after a minute without connection.
        """
        key = token, rank
        try:
            connection = await asyncio.wait_for(self._get_future(key), _PATIENCE)
        except TimeoutError as error:
            raise LinkLost from error
        finally:
            self._waiting.pop(key, None)
        connection.is_taken.set()
        return connection

    def _get_future(self, key: tuple[str, int]) -> asyncio.Future[_PendingConnection]:
        """Return the future of a child worker's connection, whose result is a `_PendingConnection`.

        key: token of the epoch (the time in which the same workers take part in a fit), and rank
        (number) of the child. The first call for a key creates the future.
        """
        if key not in self._waiting:
            self._waiting[key] = asyncio.get_running_loop().create_future()
        return self._waiting[key]


class WorkerLinks:
    """Network connections of one Dask worker to its parent and children among all workers of a fit.

    Workers form a tree by their ranks. `reduce` sums arrays of integers up the tree, and `share`
    sends arrays down it. All workers must make the same calls in the same order. `open` and `close`
    run on the worker's event loop, all other methods in another thread.

    Parameters
    ----------
    worker : distributed.Worker
        The worker.
    epoch : Epoch
        Rank of the worker, and addresses of the workers of all ranks.
    """

    def __init__(self, worker: Any, epoch: Epoch) -> None:
        self._worker, self._epoch = worker, epoch
        self._loop = worker.loop.asyncio_loop
        self._parent: Any = None
        self._children: list[Any] = []
        self._connections: list[_PendingConnection] = []
        self._sending: Future[Any] | None = None
        self._step, self._is_closed = 0, False

    @property
    def is_rank_0(self) -> bool:
        """Whether this worker has rank 0, which chooses splits and computes the values of nodes."""
        return self._epoch.rank == 0

    async def open(self) -> None:
        """Connect to the parent, and wait for the connections of the children.

        Raises
        ------
        LinkLost
            If another worker cannot be reached.
        """
        token, rank, parent = self._epoch.token, self._epoch.rank, self._epoch.parent
        try:
            if parent is not None:
                self._parent = await self._connect(self._epoch.addresses[parent])
                await self._parent.write(
                    {"op": _OPERATION, "token": token, "rank": rank, "reply": False}
                )
            pending = PendingConnections.get_or_register(self._worker)
            for child in self._epoch.children:
                self._connections.append(await pending.take(token, child))
        except OSError as error:
            self.close()
            raise LinkLost from error
        except BaseException:
            self.close()
            raise
        self._children = [connection.comm for connection in self._connections]
        for comm in self._comms:
            comm.deserialize = False  # messages are raw frames
        if self._is_closed:
            self.close()
            raise LinkLost

    async def _connect(self, address: str) -> Any:
        """Open Dask's connection to the worker at an address, within a minute, and return it."""
        arguments = self._worker.security.get_connection_args("worker")
        return await import_extra("distributed", "dask").comm.connect(
            address, timeout=_PATIENCE, **arguments
        )

    @property
    def _comms(self) -> list[Any]:
        """Dask's connections to the children and to the parent of this worker."""
        return [*self._children, *([] if self._parent is None else [self._parent])]

    def close(self) -> None:
        """Close the connections to parent and children.

        A call that waits for a message raises `LinkLost` then.
        """
        self._is_closed = True
        for comm in self._comms:
            comm.abort()
        for connection in self._connections:
            connection.comm.abort()
            connection.is_closed.set()

    def abort(self) -> None:
        """Close the connections to parent and children from a thread other than the event loop's."""
        self._is_closed = True
        self._loop.call_soon_threadsafe(self.close)

    def reduce(self, words: Int64, n_sums: int) -> None:
        """Reduce an array over all workers to rank 0, element by element.

        words: integers, (n,); the first n_sums elements are summed, the others reduced to their
        maximum. It is changed in place at rank 0 only. All workers must call it with arrays of the
        same size. Raise `LinkLost` if a worker is lost.
        """
        self._step += 1
        total = words.copy()  # a message may be sent after this method has returned
        reduced = self._start(self._reduce(total, n_sums, self._step))
        if self.is_rank_0:
            self._wait(reduced)
            words[:] = total
        else:
            self._sending = reduced

    async def _reduce(self, total: Int64, n_sums: int, step: int) -> None:
        """Reduce the arrays of the children into `total`, in place, and send it to the parent.

        total: integers of this worker, (n,); n_sums: the first n_sums elements are summed, the others
        reduced to their maximum; step: number of the message.
        """
        for comm in self._children:
            other = await self._read(comm, step, len(total))
            total[:n_sums] += other[:n_sums]
            np.maximum(total[n_sums:], other[n_sums:], out=total[n_sums:])
        if self._parent is not None:
            await self._write(self._parent, step, total)

    def share(self, words: Int64) -> None:
        """Copy an array of integers from rank 0 to all workers, in place.

        words: the array, (n,), at rank 0; at other ranks an array of the same size, which is
        overwritten. All workers must call it. Raise `LinkLost` if a worker is lost.
        """
        self._step += 1
        if self.is_rank_0:
            self._sending = self._start(self._send_to_children(words.copy(), self._step))
            return
        words[:] = self._wait(self._start(self._share(len(words), self._step)))

    async def _share(self, n: int, step: int) -> Int64:
        """Receive n integers from the parent, send them to the children, and return them.

        step: number of the message.
        """
        words = await self._read(self._parent, step, n)
        await self._send_to_children(words, step)
        return words

    async def _send_to_children(self, words: Int64, step: int) -> None:
        """Send an array of integers to all child workers.

        words: the array, (n,); step: number of the message.
        """
        for comm in self._children:
            await self._write(comm, step, words)

    def _start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Start a coroutine on the event loop, after the previous message was sent; return its future.

        The result of the future is that of the coroutine. work: the coroutine, which is closed if
        it cannot start. Raise `LinkLost` if the connections are closed, or the previous message
        could not be sent.
        """
        try:
            if self._sending is not None:
                self._wait(self._sending)
            if self._is_closed:
                raise LinkLost
        except BaseException:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _wait(self, started: Future[Any]) -> Any:
        """Wait for the result of a coroutine, and return it.

        started: future from `_start`. Raise `LinkLost` if a connection was closed.
        """
        try:
            return started.result()
        except (OSError, CancelledError) as error:
            raise LinkLost from error

    async def _write(self, comm: Any, step: int, words: Int64) -> None:
        """Send an array of integers, with the number of the message, over a connection.

        comm: Dask's connection; step: number of the message; words: the array, (n,).
        """
        serialized = import_extra("distributed.protocol", "dask").Serialized
        await comm.write([step, serialized({}, [words.data.cast("B")])])

    async def _read(self, comm: Any, step: int, n: int) -> Int64:
        """Receive n integers from a connection of Dask, and return them, (n,) int64.

        comm: the connection; step: expected number of the message. Raise RuntimeError if it has
        another number or size.
        """
        other, message = await comm.read()
        frames = message.frames
        words = np.frombuffer(frames[0] if len(frames) == 1 else b"".join(frames), np.int64)
        if other != step or len(words) != n:
            raise RuntimeError(
                f"ranks must be at the same step: expected {n} words of step {step}, got {len(words)} "
                f"of step {other}. Please report this error of certree"
            )
        return words
