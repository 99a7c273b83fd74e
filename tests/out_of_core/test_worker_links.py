"""Ranks on workers of Dask add up over links, and all notice when one of them is gone."""

import asyncio
import itertools
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from certree.out_of_core import worker_links
from certree.out_of_core.worker_links import (
    Epoch,
    LinkLost,
    PendingConnections,
    WorkerLinks,
    _CommLink,
    _SocketLink,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")
_NUMBERS = itertools.count()


@contextmanager
def start_workers(protocol):
    """Start six workers of a cluster in this process."""
    with distributed.LocalCluster(
        n_workers=6,
        threads_per_worker=1,
        processes=False,
        protocol=protocol,
        dashboard_address=":0",
    ) as cluster:
        yield [*cluster.workers.values()]


@pytest.fixture(scope="module", params=["inproc://", "tcp://"])
def workers(request):
    """Six workers of a cluster in this process, by its protocol."""
    with start_workers(request.param) as started:
        yield started


@contextmanager
def link_ranks(workers, n):
    """Link n ranks, which may be on one worker; close the links at the end."""
    homes = [workers[rank % len(workers)] for rank in range(n)]
    token, addresses = f"fit {next(_NUMBERS)}", tuple(one.address for one in homes)
    links = [WorkerLinks(home, Epoch(token, rank, addresses)) for rank, home in enumerate(homes)]
    try:
        for one in [run(one.open(), one) for one in links]:
            one.result(30)
        yield links
    finally:
        for one in links:
            one.abort()


@pytest.fixture
def linked(workers):
    """Makes links between some ranks, and closes them at the end."""
    with ExitStack() as stack:
        yield lambda n: stack.enter_context(link_ranks(workers, n))


def run(work, links):
    return asyncio.run_coroutine_threadsafe(work, links._loop)


def on_each(links, work):
    """What work(links, rank) returns or raises on each rank, in threads of their own."""
    with ThreadPoolExecutor(len(links)) as pool:
        started = [pool.submit(work, one, rank) for rank, one in enumerate(links)]
        return [one.exception(60) or one.result() for one in started]


@pytest.mark.parametrize("n_words", [1, 3000, 2**17])
@pytest.mark.parametrize("n", [1, 2, 4, 6, 8])
def test_words_are_reduced_and_shared(n, n_words, linked):
    words = np.random.default_rng(n).integers(-(2**50), 2**50, (n, n_words))
    n_sums = n_words // 3

    def work(links, rank):
        assert links.is_rank_0 == (rank == 0)
        told = []
        for step in range(3):
            own = words[rank] + step
            links.reduce(own, n_sums)
            links.share(own)
            links.share(own)
            told.append(own)
        return told

    expected = [
        np.concatenate([(words[:, :n_sums] + k).sum(axis=0), (words[:, n_sums:] + k).max(axis=0)])
        for k in range(3)
    ]
    for told in on_each(linked(n), work):
        np.testing.assert_array_equal(told, expected)


@pytest.mark.parametrize("n", [2, 6])
@pytest.mark.parametrize("lost", [0, 1])
def test_all_ranks_notice_that_one_is_gone(n, lost, linked):
    links = linked(n)

    def work(own, rank):
        words = np.zeros(10, dtype=np.int64)
        for step in range(1000):
            if rank == lost and step == 3:
                own.abort()
                return "gone"
            try:
                own.reduce(words, 10)
                own.share(words)
            except LinkLost:
                own.abort()  # as the worker does where a call ends by an error
                raise
        return "ended"

    told = on_each(links, work)
    assert told[lost] == "gone"
    assert all(isinstance(one, LinkLost) for rank, one in enumerate(told) if rank != lost)


def test_a_rank_that_does_not_come_is_not_waited_for_for_ever(workers, monkeypatch):
    monkeypatch.setattr(worker_links, "_PATIENCE", 0.2)
    links = WorkerLinks(workers[0], Epoch("alone", 0, (workers[0].address, workers[1].address)))
    with pytest.raises(LinkLost):
        run(links.open(), links).result(30)
    gone = Epoch("alone", 1, ("tcp://127.0.0.1:9", workers[1].address))
    links = WorkerLinks(workers[1], gone)
    with pytest.raises(LinkLost):
        run(links.open(), links).result(30)


def test_connections_that_nobody_takes_are_closed(workers, monkeypatch):
    monkeypatch.setattr(worker_links, "_PATIENCE", 0.2)
    worker, is_closed = workers[0], threading.Event()

    async def connect():
        arrivals = PendingConnections.get_or_register(worker)
        comm = SimpleNamespace(abort=is_closed.set)
        await arrivals.accept(comm, "nobody", 1, False)
        return len(arrivals._waiting)

    assert asyncio.run_coroutine_threadsafe(connect(), worker.loop.asyncio_loop).result(30) == 0
    assert is_closed.is_set()


def test_ranks_that_have_come_apart_are_told(linked):
    def work(links, rank):
        try:
            links.reduce(np.zeros(3 + rank, dtype=np.int64), 1)
            links.share(np.zeros(3 + rank, dtype=np.int64))
        finally:
            links.abort()

    first, second = on_each(linked(2), work)
    assert isinstance(first, RuntimeError)
    assert "expected 3 words of step 1, got 4 of step 1" in str(first)
    assert isinstance(second, LinkLost)


@pytest.mark.parametrize("ends", [[], [16], [3, 20]])
def test_received_frames_may_be_unaligned_read_only_and_several(ends):
    sent = np.array([1, -2, 3])

    class Comm:
        """Delivers words in frames that start at odd addresses and may not be written to."""

        async def read(self):
            frames = []
            for part in np.split(np.frombuffer(sent.tobytes(), np.uint8), ends):
                odd = np.append(np.zeros(1, np.uint8), part)[1:]
                odd.flags.writeable = False
                frames.append(memoryview(odd))
            return 1, SimpleNamespace(frames=frames)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        assert _CommLink(Comm(), loop).receive(1, 3).tolist() == sent.tolist()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_sockets_are_used_where_dask_sends_bytes_as_they_are(compression, monkeypatch):
    words, comm = np.arange(3000), distributed.comm.core.Comm
    describe = comm.handshake_info

    def describe_other_host(self):
        return {**describe(self), "compression": compression}

    monkeypatch.setattr(comm, "handshake_info", describe_other_host)

    def work(links, rank):
        del rank
        own = words.copy()
        links.reduce(own, len(own))
        links.share(own)
        return own

    with start_workers("tcp://") as workers, link_ranks(workers, 3) as links:
        kinds = {type(one) for each in links for one in [*each._children, each._parent] if one}
        assert kinds == {_CommLink if compression else _SocketLink}
        np.testing.assert_array_equal(on_each(links, work), np.tile(3 * words, (3, 1)))


@pytest.mark.parametrize("has_stream", [True, False])
def test_a_connection_of_which_only_one_end_would_use_the_socket_is_closed(
    has_stream, workers, monkeypatch
):
    worker, is_closed = workers[0], threading.Event()
    monkeypatch.setattr(worker_links, "_find_stream", lambda _: None if has_stream else "stream")

    async def connect():
        pending = PendingConnections.get_or_register(worker)
        await pending.accept(SimpleNamespace(abort=is_closed.set), "half", 1, has_stream)
        return len(pending._waiting)

    assert asyncio.run_coroutine_threadsafe(connect(), worker.loop.asyncio_loop).result(30) == 0
    assert is_closed.is_set()


def test_a_socket_that_dask_closes_ends_the_wait_for_a_message(linked):
    """As a worker does that closes while a fit goes on: it does not call our methods."""
    links = linked(2)

    def work(own, rank):
        if rank == 1:
            time.sleep(0.2)
            own._loop.call_soon_threadsafe(links[0]._connections[0].comm.abort)
            return "closed"
        own.reduce(np.zeros(10, dtype=np.int64), 10)
        return "received"

    told = on_each(links, work)
    assert isinstance(told[0], LinkLost)


def test_trees_of_ranks_have_all_of_them():
    for n in range(1, 20):
        epochs = [Epoch("fit", rank, ("",) * n) for rank in range(n)]
        pairs = [(one.rank, child) for one in epochs for child in one.children]
        assert sorted(pairs) == sorted((one.parent, one.rank) for one in epochs if one.rank > 0)
        assert all(len(one.children) <= (3 if n <= 4 else 2) for one in epochs)


def test_workers_have_handlers_and_extensions_by_name(workers):
    """Dask documents neither; links need both."""
    PendingConnections.get_or_register(workers[0])
    assert workers[0].handlers["certree_link"] == workers[0].extensions["certree_link"].accept
