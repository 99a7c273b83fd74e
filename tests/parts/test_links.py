"""Links between workers: arrays arrive as they are, strangers are turned away, and ends are noticed."""

import shutil
import socket
import ssl
import subprocess
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest

from certree.parts import links
from certree.parts.links import Door, Unlinked, link_to

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("distributed")

HERE = "127.0.0.1"
MAKE_CERTIFICATE = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x"


@pytest.fixture
def at_home(monkeypatch):
    """No worker of Dask, which would say the same."""
    monkeypatch.setattr(links, "_of_worker", lambda *_: (None, HERE, HERE))
    monkeypatch.setattr(links, "needed", lambda *_: Workerless)


class Workerless:
    get_worker = staticmethod(lambda: None)


@pytest.fixture
def linked():
    """A function that gives the links of both sides of a door, which are closed in the end."""
    made = []

    def link(door):
        waiting = threading.Thread(target=lambda: made.append(door.opened()))
        waiting.start()
        made.append(link_to(door.address))
        waiting.join(20)
        return made[-2:]

    yield link
    for one in made:
        one.close()


def test_what_is_sent_arrives(at_home, linked):
    one, other = linked(Door())
    large = np.arange(300_000)
    said = [
        {"small": np.arange(3), "none": np.zeros((0, 4)), "text": "x" * 100_000},
        (large, large[::2].reshape(3, -1), None, np.float64(0.1)),
        7,
    ]
    # Both at once: neither waits for the other to read first.
    sending = threading.Thread(target=lambda: [one.send(what) for what in said])
    sending.start()
    told = [other.receive() for _ in said]
    sending.join(20)
    assert told[0]["text"] == said[0]["text"]
    for key in ("small", "none"):
        np.testing.assert_array_equal(told[0][key], said[0][key])
    for got, given in zip(told[1][:2], said[1][:2], strict=True):
        np.testing.assert_array_equal(got, given)
        assert got.flags.aligned
    assert told[1][2:] == said[1][2:]
    assert told[2] == 7
    other.send("back")
    assert one.receive() == "back"


@pytest.mark.parametrize("ends", ["close", "leave"])
def test_who_waits_learns_that_the_other_is_gone(ends, at_home, linked):
    one, other = linked(Door())
    learned = threading.Event()

    def wait():
        with pytest.raises(Unlinked):
            other.receive()
        learned.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    (other if ends == "close" else one).close()
    assert learned.wait(20)
    waiting.join(20)
    with pytest.raises(Unlinked):
        other.send(np.zeros(10_000_000))


def test_strangers_are_turned_away_unread(at_home, monkeypatch):
    monkeypatch.setattr(links, "_PATIENCE", 0.5)
    door = Door()
    found = []
    waiting = threading.Thread(target=lambda: found.append(door.opened()))
    waiting.start()
    silent = socket.create_connection((HERE, door.address.port))
    for key in (b"", b"short", bytes(32)):
        link = link_to(replace(door.address, key=key))
        link._connection.shutdown(socket.SHUT_WR)
        with pytest.raises(Unlinked):
            link.receive()
        link.close()
    assert not found
    friend = link_to(door.address)
    waiting.join(20)
    friend.send("known")
    assert found[0].receive() == "known"
    for one in (silent, friend, *found):
        one.close()
    with pytest.raises(Unlinked):  # one is let in, and no more
        link_to(door.address)


def test_a_closed_door_ends_the_waiting(at_home):
    door = Door()
    ended = threading.Event()

    def wait():
        with pytest.raises(Unlinked):
            door.opened()
        ended.set()

    threading.Thread(target=wait).start()
    door.close()
    assert ended.wait(20)


def turned_away(door):
    with pytest.raises(Unlinked):
        door.opened()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_links_are_encrypted_by_the_certificates_of_workers(tmp_path, monkeypatch, linked):
    key, own = tmp_path / "key.pem", tmp_path / "own.pem"
    subprocess.run(
        [*MAKE_CERTIFICATE.split(), "-keyout", key, "-out", own],
        check=True,
        capture_output=True,
    )
    from distributed.security import Security

    class Worker:
        address, contact_address = f"tls://{HERE}:1", None
        listen_address = address
        security = Security(
            tls_ca_file=str(own),
            tls_worker_cert=str(own),
            tls_worker_key=str(key),
            require_encryption=True,
        )

    monkeypatch.setattr("distributed.get_worker", lambda: Worker)
    one, other = linked(Door())
    assert isinstance(one._connection, ssl.SSLSocket)
    large = np.arange(100_000)
    sending = threading.Thread(target=lambda: one.send(large))
    sending.start()
    np.testing.assert_array_equal(other.receive(), large)
    sending.join(20)
    plain = Door()
    stranger = socket.create_connection((HERE, plain.address.port))
    threading.Thread(target=turned_away, args=(plain,)).start()
    stranger.sendall(plain.address.key)
    stranger.settimeout(20)
    assert stranger.recv(1) in (b"", b"\x15")  # an alert, and no link
    stranger.close()
    plain.close()
