"""Links between workers of Dask, by which they send each other arrays.

A message of Dask takes about a millisecond of both sides, as it goes through event loops. Workers whose
parts are asked thousands of times have sockets of their own instead. Where those of Dask are encrypted
these are, too, by its certificates; and nothing is read of who does not know what Dask has told.
"""

from __future__ import annotations

import hmac
import pickle
import secrets
import socket
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from certree.interface.extras import needed

# Seconds in which a worker must be reached, and say who it is.
_PATIENCE = 20.0
# Seconds after which a door is looked at, as not everywhere who waits there learns that it is closed.
_LOOK = 1.0
# Seconds after which a machine that says nothing is asked whether it is there, and times it is.
_SILENCE, _TIMES = 10, 3
# Buffers of fewer bytes are sent together.
_SMALL = 2**16


class Unlinked(Exception):  # noqa: N818 # no error: it says how to go on
    """Raised where a worker does not answer any more."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a worker is reached.

    Parameters
    ----------
    host, port : str and int
        Its address.
    key : bytes
        What it wants to be told.
    """

    host: str
    port: int
    key: bytes


class Link:
    """A connection to a worker.

    Parameters
    ----------
    connection : socket.socket
        The connection, which this one owns.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", _SILENCE),
            ("TCP_KEEPINTVL", _SILENCE),
            ("TCP_KEEPCNT", _TIMES),
            ("TCP_USER_TIMEOUT", 1000 * _SILENCE * (_TIMES + 1)),
        ):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def send(self, what: Any) -> None:
        """Send what can be pickled; its arrays are not copied.

        Raises
        ------
        Unlinked
            If the other side is gone.
        """
        arrays: list[pickle.PickleBuffer] = []
        head = pickle.dumps(what, 5, buffer_callback=arrays.append)
        buffers = [memoryview(head), *(one.raw() for one in arrays)]
        sizes = [one.nbytes for one in buffers]
        waiting = struct.pack(f"<{1 + len(sizes)}Q", len(sizes), *sizes)
        try:
            for one in buffers:
                if one.nbytes < _SMALL:
                    waiting += one
                    continue
                self._connection.sendall(waiting)
                self._connection.sendall(one)
                waiting = b""
            self._connection.sendall(waiting)
        except OSError as error:
            raise Unlinked from error

    def receive(self) -> Any:
        """What the other side sends next.

        Raises
        ------
        Unlinked
            If it is gone.
        """
        (n_buffers,) = struct.unpack("<Q", self._read(8))
        sizes = struct.unpack(f"<{n_buffers}Q", self._read(8 * n_buffers))
        head, *arrays = map(self._read, sizes)
        return pickle.loads(head, buffers=arrays)

    def _read(self, size: int) -> memoryview:
        # An array starts where the core may read numbers, and is not filled in vain.
        room = np.empty(size, dtype=np.uint8).data
        n_read = 0
        try:
            while n_read < size:
                n_more = self._connection.recv_into(room[n_read:])
                if n_more == 0:
                    raise Unlinked
                n_read += n_more
        except OSError as error:
            raise Unlinked from error
        return room

    def close(self) -> None:
        """End it, also for who waits for an answer."""
        _end(self._connection)


class Door:
    """Where a worker waits for the one that asks it."""

    def __init__(self) -> None:
        worker = needed("distributed", "dask").get_worker()
        self._certificates, own, others = _of_worker(worker, "listen")
        family = socket.AF_INET6 if ":" in own else socket.AF_INET
        self._waiting = socket.create_server((own, 0), family=family)
        self._waiting.settimeout(_LOOK)
        port = self._waiting.getsockname()[1]
        self.address = Address(others, port, secrets.token_bytes(32))

    def opened(self) -> Link:
        """The link to who knows the key; others are turned away.

        Raises
        ------
        Unlinked
            If the door is closed.
        """
        try:
            while True:
                with suppress(TimeoutError):
                    connection, _ = self._waiting.accept()
                    connection.settimeout(_PATIENCE)
                    if self._certificates is not None:
                        connection = self._certificates.wrap_socket(
                            connection, server_side=True, do_handshake_on_connect=False
                        )
                    if self._is_expected(connection):
                        return Link(connection)
                    _end(connection)
        except OSError as error:
            raise Unlinked from error
        finally:
            self.close()

    def _is_expected(self, connection: socket.socket) -> bool:
        key = b""
        with suppress(OSError):
            if isinstance(connection, ssl.SSLSocket):
                connection.do_handshake()
            while len(key) < len(self.address.key):
                told = connection.recv(len(self.address.key) - len(key))
                if not told:
                    break
                key += told
        return hmac.compare_digest(key, self.address.key)

    def close(self) -> None:
        """Let nobody in any more."""
        _end(self._waiting)


def link_to(address: Address) -> Link:
    """A link to a worker that waits at its door.

    Raises
    ------
    Unlinked
        If it cannot be reached.
    """
    certificates, *_ = _of_worker(needed("distributed", "dask").get_worker(), "connection")
    try:
        connection = socket.create_connection((address.host, address.port), _PATIENCE)
    except OSError as error:
        raise Unlinked from error
    if certificates is not None:
        connection = certificates.wrap_socket(
            connection, server_hostname=address.host, do_handshake_on_connect=False
        )
    try:
        if isinstance(connection, ssl.SSLSocket):
            connection.do_handshake()
        connection.sendall(address.key)
        return Link(connection)
    except OSError as error:
        _end(connection)
        raise Unlinked from error


def _of_worker(worker: Any, kind: str) -> tuple[Any, str, str]:
    """Certificates of a worker of Dask, or None; where it listens, and where others reach it."""
    if worker.address.startswith("inproc"):
        return None, "127.0.0.1", "127.0.0.1"
    host = needed("distributed.comm", "dask").get_address_host
    arguments = getattr(worker.security, f"get_{kind}_args")("worker")
    is_encrypted = worker.address.startswith("tls")
    certificates = arguments["ssl_context"] if is_encrypted else None
    return certificates, host(worker.listen_address), host(worker.contact_address or worker.address)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # it may not be connected
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
