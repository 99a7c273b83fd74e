"""Links between ranks on Dask workers: Dask connections to the ports of the workers.

Ranks form a tree whose root is rank 0: a star for up to four ranks, else a binary tree. Words are
sent as raw bytes, and every message has the number of its step. If a link is closed, the ranks at
both ends close all of their links, so that every rank notices at once that one is lost.

Dask opens each connection. The threads of the ranks then use its socket themselves, because a
message over the event loops of two workers takes 20 times as long. Connections without a socket
(of workers in one process) and compressed ones are used as Dask offers them.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from certree.interface.arrays import Int64
from certree.interface.extras import import_extra

# Name of Dask's handler for connections of ranks, and of the extension that holds them.
_OPERATION = "certree_link"
# Seconds within which a rank must connect.
_PATIENCE = 60.0
# Largest number of ranks that form a star.
_MAX_STAR = 4
# Seconds after which a thread that waits for bytes looks whether its socket was closed.
_INTERVAL = 0.5
# Header of a message: the number of its step, and how many 64-bit integers follow.
_HEADER = struct.Struct("=qq")
# Sent by the parent when it has taken over the socket, and then by the child.
_READY = b"r"


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

    async def accept(self, comm: Any, token: str, rank: int, has_stream: bool) -> Any:
        """Hold a connection of a child worker until it is closed; Dask calls this as a handler.

        comm: Dask's connection; token: name of the epoch (the time in which the same workers take
        part in a fit), which this worker need not know yet; rank: rank of the child; has_stream:
        whether the child will use the socket of the connection itself. A connection is closed that
        nobody takes within a minute, or whose socket only one end would use. Return Dask's status
        "dont_reply", so that Dask sends nothing over the connection.
        """
        connection, key = _PendingConnection(comm), (token, rank)
        future = self._get_future(key)
        if not future.done() and has_stream == (_find_stream(comm) is not None):
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


class _Link(Protocol):
    """A connection to another rank, over which a thread sends and receives arrays of integers."""

    def send(self, step: int, words: Int64) -> None:
        """Send the array `words`, (n,), as message number `step`."""

    def receive(self, step: int, n: int) -> Int64:
        """Wait for message number `step`, and return its n integers, (n,) int64.

        Raise RuntimeError if the message has another number or size.
        """

    def close(self) -> None:
        """Close the connection; a thread that waits for a message gets an OSError."""


def _expect_step(step: int, n: int, received: tuple[int, int]) -> None:
    """Raise RuntimeError if a message is not the expected one.

    step, n: expected number of the message, and of its words; received: those of the message.
    """
    if received != (step, n):
        raise RuntimeError(
            f"ranks must be at the same step: expected {n} words of step {step}, got {received[1]} "
            f"of step {received[0]}. Please report this error of certree"
        )


class _CommLink:
    """A link whose messages Dask sends and receives on the worker's event loop.

    Parameters
    ----------
    comm : distributed.comm.Comm
        Connection of Dask.
    loop : asyncio event loop
        Event loop of the worker; `send` and `receive` run in another thread.
    """

    def __init__(self, comm: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._comm, self._loop = comm, loop
        comm.deserialize = False  # messages are raw frames

    def send(self, step: int, words: Int64) -> None:
        """Send the array `words`, (n,), as message number `step`.

        The message is a copy: workers in one process receive the very array that is sent.
        """
        serialized = import_extra("distributed.protocol", "dask").Serialized
        self._wait(self._comm.write([step, serialized({}, [words.copy().data.cast("B")])]))

    def receive(self, step: int, n: int) -> Int64:
        """Wait for message number `step`, and return its n integers, (n,) int64.

        Raise RuntimeError if the message has another number or size.
        """
        other, message = self._wait(self._comm.read())
        frames = message.frames
        words = np.frombuffer(frames[0] if len(frames) == 1 else b"".join(frames), np.int64)
        _expect_step(step, n, (other, len(words)))
        return words

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the event loop, and return its result."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except CancelledError as error:
            raise OSError("the event loop has ended") from error

    def close(self) -> None:
        """Close the connection; a thread that waits for a message gets an OSError."""
        self._loop.call_soon_threadsafe(self._comm.abort)


class _SocketLink:
    """A link whose messages a thread sends and receives over the socket of Dask's connection.

    Parameters
    ----------
    stream : tornado.iostream.IOStream
        Stream of Dask's connection; the event loop no longer reads from it.
    is_parent : bool
        Whether this worker is the parent: it sends nothing before the child is ready, as the
        child's event loop may read from the socket until then.
    """

    def __init__(self, stream: Any, is_parent: bool) -> None:
        stream.io_loop.remove_handler(stream.fileno())
        self._socket: socket.socket = stream.socket
        self._socket.settimeout(_INTERVAL)
        self._is_closed, self._must_wait = False, is_parent
        self._send(_READY)

    def send(self, step: int, words: Int64) -> None:
        """Send the array `words`, (n,), as message number `step`."""
        self._wait_for_child()
        self._send(_HEADER.pack(step, len(words)))
        self._send(words.data.cast("B"))

    def receive(self, step: int, n: int) -> Int64:
        """Wait for message number `step`, and return its n integers, (n,) int64.

        Raise RuntimeError if the message has another number or size.
        """
        self._wait_for_child()
        header, words = bytearray(_HEADER.size), np.empty(n, dtype=np.int64)
        self._receive(header)
        _expect_step(step, n, _HEADER.unpack(header))
        self._receive(words.data.cast("B"))
        return words

    def _wait_for_child(self) -> None:
        """Wait until the child is ready, before the first message of a parent."""
        if self._must_wait:
            self._receive(bytearray(len(_READY)))
            self._must_wait = False

    def _send(self, message: bytes | memoryview) -> None:
        """Send bytes. Raise OSError if the connection is closed."""
        left = memoryview(message)
        while left:
            with suppress(TimeoutError):
                left = left[self._socket.send(left) :]
            self._expect_open()

    def _receive(self, message: bytearray | memoryview) -> None:
        """Wait for as many bytes as `message` has, and overwrite it with them.

        Raise OSError if the connection is closed.
        """
        left = memoryview(message)
        while left:
            with suppress(TimeoutError):
                n_new = self._socket.recv_into(left)
                if n_new == 0:
                    raise ConnectionResetError("the other worker has closed the connection")
                left = left[n_new:]
            self._expect_open()

    def _expect_open(self) -> None:
        """Raise OSError if this worker has closed the connection."""
        if self._is_closed or self._socket.fileno() < 0:
            raise ConnectionAbortedError("this worker has closed the connection")

    def close(self) -> None:
        """Close the connection; a thread that waits for a message gets an OSError.

        Dask closes the socket itself.
        """
        self._is_closed = True
        with suppress(OSError):  # the other worker may have closed it
            # Of an encrypted socket as well: its own method would drop what a waiting thread uses.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _find_stream(comm: Any) -> Any:
    """Return the stream of a connection of Dask whose bytes are sent as they are; None without one.

    comm: the connection. One of workers in one process has no stream, and one that compresses its
    messages is left to Dask. An encrypted one has a stream, whose socket encrypts.
    """
    stream = getattr(comm, "stream", None)
    is_stream = isinstance(stream, import_extra("tornado.iostream", "dask").IOStream)
    return stream if is_stream and not comm.handshake_options.get("compression") else None


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
        self._parent: _Link | None = None
        self._children: list[_Link] = []
        self._parent_comm: Any = None
        self._connections: list[_PendingConnection] = []
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
        pending = PendingConnections.get_or_register(self._worker)
        try:
            if self._epoch.parent is not None:
                self._parent = await self._open_parent(self._epoch.addresses[self._epoch.parent])
            for child in self._epoch.children:
                connection = await pending.take(self._epoch.token, child)
                self._connections.append(connection)
                self._children.append(self._make_link(connection.comm, is_parent=True))
        except OSError as error:
            self.close()
            raise LinkLost from error
        except BaseException:
            self.close()
            raise
        if self._is_closed:
            self.close()
            raise LinkLost

    async def _open_parent(self, address: str) -> _Link:
        """Connect to the parent, wait until it has taken the connection, and return the link.

        address: network address of the parent's worker. Raise OSError if it cannot be reached.
        """
        comm = self._parent_comm = await self._connect(address)
        stream = _find_stream(comm)
        call = {"op": _OPERATION, "token": self._epoch.token, "rank": self._epoch.rank}
        await comm.write({**call, "has_stream": stream is not None, "reply": False})
        if stream is not None:
            # The parent sends nothing else before this worker has taken over the socket.
            closed = import_extra("tornado.iostream", "dask").StreamClosedError
            try:
                await asyncio.wait_for(stream.read_bytes(len(_READY)), 2 * _PATIENCE)
            except (closed, TimeoutError) as error:
                raise ConnectionResetError(
                    f"the worker at {address} has closed the connection, or has not accepted it within "
                    f"{2 * _PATIENCE:g} s; Dask's client connects the workers of the fit again"
                ) from error
        return self._make_link(comm, is_parent=False)

    def _make_link(self, comm: Any, *, is_parent: bool) -> _Link:
        """Return the link over a connection of Dask.

        comm: the connection; is_parent: whether this worker is the parent of the other one.
        """
        stream = _find_stream(comm)
        return _CommLink(comm, self._loop) if stream is None else _SocketLink(stream, is_parent)

    async def _connect(self, address: str) -> Any:
        """Open Dask's connection to the worker at an address, within a minute, and return it."""
        arguments = self._worker.security.get_connection_args("worker")
        return await import_extra("distributed", "dask").comm.connect(
            address, timeout=_PATIENCE, **arguments
        )

    def close(self) -> None:
        """Close the connections to parent and children.

        A call that waits for a message raises `LinkLost` then.
        """
        self._close_links()
        if self._parent_comm is not None:
            self._parent_comm.abort()
        for connection in self._connections:
            connection.comm.abort()
            connection.is_closed.set()

    def abort(self) -> None:
        """Close the connections to parent and children from a thread other than the event loop's."""
        self._close_links()
        self._loop.call_soon_threadsafe(self.close)

    def _close_links(self) -> None:
        """Close the links, so that threads that wait for messages go on."""
        self._is_closed = True
        for link in [*self._children, *([] if self._parent is None else [self._parent])]:
            link.close()

    def reduce(self, words: Int64, n_sums: int) -> None:
        """Reduce an array over all workers to rank 0, element by element.

        words: integers, (n,); the first n_sums elements are summed, the others reduced to their
        maximum. It is changed in place at rank 0 only. All workers must call it with arrays of the
        same size. Raise `LinkLost` if a worker is lost.
        """
        self._step += 1
        with self._raise_if_lost():
            total = words.copy() if self._children and not self.is_rank_0 else words
            for child in self._children:
                other = child.receive(self._step, len(total))
                total[:n_sums] += other[:n_sums]
                np.maximum(total[n_sums:], other[n_sums:], out=total[n_sums:])
            if self._parent is not None:
                self._parent.send(self._step, total)

    def share(self, words: Int64) -> None:
        """Copy an array of integers from rank 0 to all workers, in place.

        words: the array, (n,), at rank 0; at other ranks an array of the same size, which is
        overwritten. All workers must call it. Raise `LinkLost` if a worker is lost.
        """
        self._step += 1
        with self._raise_if_lost():
            if self._parent is not None:
                words[:] = self._parent.receive(self._step, len(words))
            for child in self._children:
                child.send(self._step, words)

    @contextmanager
    def _raise_if_lost(self) -> Iterator[None]:
        """Raise `LinkLost` if the links are closed, or a connection is closed in the block."""
        if self._is_closed:
            raise LinkLost
        try:
            yield
        except OSError as error:
            raise LinkLost from error
