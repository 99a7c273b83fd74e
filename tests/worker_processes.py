"""Workers of Dask in processes without nannies, and faults that happen to them at a chosen message."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import multiprocessing
import os
import signal
import threading
import time
import warnings

import dask
import dask.array as da
import distributed

from certree.out_of_core import cluster, worker_links
from certree.out_of_core.joined_rows import JoinedRows
from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.worker_actor import WorkerActor

# Processes are forked from one that has imported these, which takes seconds.
FORKED_WITH = [
    *("distributed", "dask.array", "dask.dataframe", "pandas", "pyarrow.dataset"),
    *("pyarrow.parquet", "scipy.stats", "sklearn.base", "sklearn.model_selection"),
    "certree.out_of_core.cluster",
]
# What ranks and tasks of a fit call, by the place of the function.
_MESSAGES = [
    *((worker_links.WorkerLinks, name) for name in ("reduce", "share")),
    (WorkerActor, "process"),
    *((cluster, name) for name in ("_scan_chunk", "_make_block", "_run_job")),
]


def serve(scheduler, config, options):
    """Run a worker until it is closed; the option `namespace` names a network namespace for it."""
    namespace = options.pop("namespace", None)
    if namespace is not None:
        with open(f"/run/netns/{namespace}") as file:
            assert ctypes.CDLL(None).setns(file.fileno(), 0) == 0

    async def run():
        async with distributed.Worker(scheduler, **options) as worker:
            await worker.finished()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with warnings.catch_warnings(), dask.config.set(config):
        warnings.simplefilter("ignore")
        asyncio.run(run())


class Processes:
    """Processes that are workers of one scheduler, by the names of the workers."""

    def __init__(self, scheduler, config, options):
        self.scheduler, self.config, self.options = scheduler, config, options
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(FORKED_WITH)
        self.running = {}

    def start(self, **options):
        """Start one more; options: of `distributed.Worker`."""
        name = f"w{len(self.running)}"
        how = {"nthreads": 1, "name": name, "dashboard": False, **self.options, **options}
        scheduler = how.pop("scheduler", self.scheduler)
        process = self.context.Process(
            target=serve, args=(scheduler, self.config, how), daemon=True
        )
        process.start()
        self.running[name] = process
        return process

    def send(self, sign, *names):
        """Send a signal to some of them, or to all."""
        for name in names or self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.running[name].pid, sign)

    def end(self):
        """Kill all of them."""
        self.send(signal.SIGKILL)
        for process in self.running.values():
            process.join(30)


@contextlib.contextmanager
def start_cluster(each=({}, {}), config=None, security=None, host="127.0.0.1"):
    """Yield the client of a cluster of processes, and the processes.

    each: for every worker its options of `distributed.Worker`; config: of Dask, here and there;
    host: address of the scheduler.
    """
    config = config or {}
    options = {} if security is None else {"security": security}
    with (
        warnings.catch_warnings(),
        dask.config.set(config),
    ):
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=0,
                dashboard_address=":0",
                security=security,
                protocol="tcp://" if security is None else "tls://",
                host=host,
                processes=True,
            ) as home,
            distributed.Client(home) as client,
        ):
            processes = Processes(home.scheduler_address, config, options)
            try:
                for one in each:
                    processes.start(**one)
                client.wait_for_workers(len(each), timeout=60)
                yield client, processes
            finally:
                processes.end()


def act_before_message(act, name, number, flag, dask_worker=None, messages=_MESSAGES):
    """Let a worker of some name act once, before it takes part in its n-th message of any fit.

    messages: functions that count as messages, each as a pair of its place and its name.
    """
    if dask_worker.name != name:
        return
    count, lock = [0], threading.Lock()

    def counted(before):
        def call(*given, **how):
            with lock:
                count[0] += 1
                is_due = count[0] == number and not flag.exists()
                if is_due:
                    flag.touch()
            if is_due:
                act()
            return before(*given, **how)

        return call

    for place, called in messages:
        setattr(place, called, counted(getattr(place, called)))


def die():
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def stop():
    """Stop this process until it gets SIGCONT."""
    os.kill(os.getpid(), signal.SIGSTOP)


def hold_gil():
    """Let no other thread of this process run Python code for 3 s."""
    ctypes.PyDLL(None).sleep(3)


def pause():
    """Take part in no message for a second, in which others act."""
    time.sleep(1)


def get_name(dask_worker):
    """Return the name of a worker."""
    return dask_worker.name


def count_leftovers(dask_worker):
    """Return how many actors, blocks of rows and threads of fits a worker has."""
    gc.collect()
    blocks = [one for one in gc.get_objects() if isinstance(one, JoinedRows | RowBlock)]
    # Threads of Dask and of the event loop have other names.
    threads = [one for one in threading.enumerate() if one.name.startswith("ThreadPoolExecutor")]
    return len(dask_worker.state.actors), len(blocks), len(threads)


def fit_in_task(secedes, model, rows):
    """Fit a model in a task."""
    with distributed.worker_client() if secedes else contextlib.nullcontext():
        return model.fit(*rows)


def fit_as_client(scheduler, model, rows):
    """Fit a model to rows in the memory of a process, with a client of its own."""
    with distributed.Client(scheduler):
        model.fit(*(da.from_array(one, chunks=(400, *one.shape[1:])) for one in rows))


@contextlib.contextmanager
def start_nannies(each):
    """Yield the client of a cluster of workers with nannies; each: options of every nanny."""
    common = {"nthreads": 1, "host": "127.0.0.1", "dashboard": False}
    workers = {
        f"w{number}": {"cls": distributed.Nanny, "options": {**common, **one}}
        for number, one in enumerate(each)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False, "port": 0}}
    scheduler["options"]["host"] = "127.0.0.1"
    with (
        warnings.catch_warnings(),
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
    ):
        warnings.simplefilter("ignore")
        distributed.utils.get_mp_context().set_forkserver_preload(FORKED_WITH)
        with (
            distributed.SpecCluster(workers, scheduler) as home,
            distributed.Client(home) as client,
        ):
            client.wait_for_workers(len(workers), timeout=60)
            yield client


class Proxy:
    """Forwards connections to an address, until it is cut: then nothing arrives, and nothing ends."""

    def __init__(self, address):
        self.n_connections, self.is_cut = 0, False
        self.target = distributed.comm.parse_host_port(address.split("://")[1])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        serving = asyncio.start_server(self._forward, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _forward(self, reader, writer):
        self.n_connections += 1
        writers = [writer]
        try:
            other_reader, other_writer = await asyncio.open_connection(*self.target)
            writers.append(other_writer)
            pairs = (reader, other_writer), (other_reader, writer)
            await asyncio.gather(*(self._copy(*pair) for pair in pairs))
        except OSError:
            pass
        finally:
            for one in writers:
                one.transport.abort()

    async def _copy(self, reader, writer):
        while data := await reader.read(1 << 16):
            await self._wait_while_cut()
            writer.write(data)
            await writer.drain()
        await self._wait_while_cut()
        writer.close()

    async def _wait_while_cut(self):
        while self.is_cut:
            await asyncio.sleep(0.1)

    def cut(self):
        """Let nothing through any more."""
        self.is_cut = True

    def close(self):
        """End the thread."""

        async def end():
            self._server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.1)  # in which transports close their sockets

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
