"""Fits on a cluster give the same model, or an error, whatever happens to workers and clients."""

import contextlib
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import Future
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from certree import Cart, CertifiedTreeClassifier, PACBayesTreeClassifier
from certree.ensembles import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    TreeForestClassifier,
    out_of_core_boosting,
    out_of_core_folds,
)
from certree.ensembles.round_schedule import RoundPlan, RoundSchedule
from certree.out_of_core import cluster, resources
from run_length import LONG
from same_models import expect_same, expect_same_tree

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    delayed = pytest.importorskip("dask").delayed
    distributed = pytest.importorskip("distributed")
    import worker_processes as faults

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Dask and its servers warn of what is theirs
    pytest.mark.skipif(sys.platform == "win32", reason="stops processes by signals"),
]

LIMIT = 120  # s, of each test
N = 1300


@pytest.fixture(autouse=True)
def time_limit():
    """Fail a test that waits for ever."""

    def stop(*_):
        pytest.fail(f"the test has not ended after {LIMIT} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def ctrl_c():
    """Let SIGINT interrupt this process, also in the background, where shells let it be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def boosting(**how):
    given = {"max_iter": 4, "max_leaf_nodes": 8, "random_state": 0, "n_jobs": 1, **how}
    return BoostedTreesClassifier(**given)


GROWER = Cart(max_bins=255, max_leaf_nodes=8)
MODELS = {
    "boosting": boosting,
    "forest": partial(TreeForestClassifier, 6, random_state=0, n_jobs=1),
    "tree": partial(PACBayesTreeClassifier, GROWER, cv=2, random_state=0),
    "certified": partial(
        CertifiedTreeClassifier, GROWER, duplicates="genuine", cv=2, random_state=0
    ),
}


def make_rows():
    X = np.random.RandomState(0).normal(size=(N, 4)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def make_collections(size=400):
    X, y = make_rows()
    return da.from_array(X, chunks=(size, 4)), da.from_array(y, chunks=size)


@pytest.fixture(scope="module")
def expect(tmp_path_factory):
    """Check a model of some kind, which must be the same as that of the rows in memory."""
    here = {kind: make().fit(*make_rows()) for kind, make in MODELS.items()}

    def check(kind, model):
        if kind in ("boosting", "forest"):
            expect_same(here[kind], model)
        else:
            expect_same_tree(here[kind], model, tmp_path_factory.mktemp("models"))

    return check


def fit(kind, client=None, rows=None):
    with contextlib.nullcontext() if client is None else resources(client=client):
        return MODELS[kind]().fit(*(rows or make_collections()))


def wait_until(is_true, seconds=30):
    """Fail unless something becomes true."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)


def start(work, *given):
    """Call a function in a thread that nobody waits for; return the future of its result."""
    result = Future()

    def run():
        try:
            result.set_result(work(*given))
        except BaseException as error:  # noqa: BLE001 # whoever asks for the result gets it
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result


def start_when(flag, act):
    """Call a function in a thread once a file is there; return the future of its result."""
    return start(lambda: (wait_until(flag.exists, LIMIT), act())[1])


def fit_at_once(kinds, client, rows, expect):
    """Fit models of some kinds at once, and check them."""
    started = [start(fit, kind, client, rows) for kind in kinds]
    for kind, model in zip(kinds, started, strict=True):
        expect(kind, model.result())


@pytest.mark.parametrize("kind", [*MODELS] if LONG else ["certified"])
def test_two_fits_at_once_on_workers_of_one_thread(kind, expect):
    with faults.start_cluster() as (client, _):
        fit_at_once(["boosting", kind], client, None, expect)


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [2, 8] if LONG else [8])
def test_fits_at_once_on_workers_that_share_a_process(n_workers, expect):
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as home,
        distributed.Client(home) as client,
    ):
        fit_at_once(["boosting", "certified", "tree"], client, make_collections(100), expect)


@pytest.mark.parametrize("secedes", [True, False])
def test_fits_in_tasks_leave_their_slots_to_the_tasks_of_the_fit(secedes, expect):
    with faults.start_cluster([{}]) as (client, _):
        started = [
            client.submit(faults.fit_in_task, secedes, boosting(), make_collections(), pure=False)
            for _ in range(2)
        ]
        for one in started:
            expect("boosting", one.result())


KINDS = [*MODELS] if LONG else ["boosting"]
# The scheduler removes workers from which it has not heard for so long; on a busy machine workers that
# are well may be silent for some seconds.
SOON = {"distributed.scheduler.worker-ttl": "10s"}
# Which message of a fit a fault precedes: of boosting one of the first round.
NUMBERS = {"boosting": 20, "forest": 12, "tree": 12, "certified": 30}


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_busy_with_python_code_is_waited_for(kind, expect, tmp_path):
    with faults.start_cluster() as (client, _):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.hold_gil, "w1", NUMBERS[kind], flag)
        expect(kind, fit(kind))
        assert flag.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_workers_join_a_running_fit(kind, expect, tmp_path):
    with faults.start_cluster() as (client, processes):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.pause, "w1", NUMBERS[kind], flag)
        joined = start_when(flag, processes.start)
        expect(kind, fit(kind))
        joined.result()
        client.wait_for_workers(3, timeout=30)


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_is_retired_in_a_running_fit(kind, expect, tmp_path):
    with faults.start_cluster() as (client, _):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.pause, "w1", NUMBERS[kind], flag)
        retired = start_when(flag, partial(client.retire_workers, names=["w1"]))
        expect(kind, fit(kind))
        retired.result()


KILLS = [(name, kind) for name in ("w0", "w1") for kind in MODELS]


@pytest.mark.parametrize(
    ("name", "kind"), KILLS if LONG else [("w0", "boosting"), ("w1", "certified")]
)
def test_a_worker_is_killed_in_a_running_fit(name, kind, expect, tmp_path):
    with faults.start_cluster() as (client, _):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.die, name, NUMBERS[kind], flag)
        expect(kind, fit(kind))
        assert flag.exists()


OF_ROUNDS = {
    "one run": {},
    "several runs": {"quality": "best"},
    "early stopping": {"early_stopping": True},
    "a scorer": {"early_stopping": True, "scoring": "accuracy"},
    "many categories": {"categorical_features": [3]},
    "two targets": {},
}


@pytest.mark.parametrize("kind", OF_ROUNDS)
@pytest.mark.parametrize("name", ["w0", "w1"] if LONG else ["w1"])
def test_rounds_before_a_loss_are_restored_from_their_trees(name, kind, tmp_path, monkeypatch):
    X, y = make_rows()
    X[:, 3] = np.random.RandomState(1).randint(0, 40, N) // 2 * 2 + y  # mean targets tell much
    estimator = BoostedTreesClassifier
    if kind == "two targets":
        estimator, y = BoostedTreesRegressor, np.column_stack([X[:, 0] * X[:, 1], X[:, 3] + y])
    given = {"max_iter": 12, "max_leaf_nodes": 8, "random_state": 0, "n_jobs": 1}
    make = partial(estimator, **given, **OF_ROUNDS[kind])
    monkeypatch.setattr("certree.ensembles.distributed_rounds._SECONDS_AT_ONCE", 0.0)
    sent, call = [], cluster.DaskExecutor._call_ranks

    def record(executor, calls, from_all):
        sent.append([pickle.loads(one)[0].__name__ for one in calls])
        return call(executor, calls, from_all)

    monkeypatch.setattr(cluster.DaskExecutor, "_call_ranks", record)
    with faults.start_cluster() as (client, _):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.die, name, 80, flag)
        rows = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=(400, 2)[: y.ndim])
        model = make().fit(*rows)
        assert flag.exists()
    expect_same(make().fit(X, y), model)
    (again,) = (calls for calls in sent[1:] if len(calls) > 1)
    after = again[again.index("restore_rounds") :]
    assert after[1:].count("make_rounds") + after[1:].count("score_rounds") <= 2
    assert "make_rounds" not in again[: again.index("restore_rounds")]


@pytest.mark.parametrize("name", ["w0", "w1"] if LONG else ["w1"])
def test_a_worker_is_killed_while_the_latest_rows_choose_rounds(name, tmp_path, monkeypatch):
    X, y = make_rows()
    rows = pd.DataFrame(X, columns=[*"abcd"]).assign(day=np.arange(N), label=y)
    few = RoundPlan(1, 1, 12, step_factor=1, max_leaf_nodes=8, thresholds=(6, None))
    monkeypatch.setattr(RoundSchedule, "plan", lambda *_: few)
    model = boosting(max_iter="auto", early_stopping=False)
    here = clone(model).fit(rows.drop(columns="label"), y, time="day", gap=20)
    monkeypatch.setattr(out_of_core_boosting, "_IN_MEMORY", N // 2)
    chosen = [(out_of_core_folds, "advance_selection")]
    with faults.start_cluster() as (client, _):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.die, name, 2, flag, messages=chosen)
        there = model.fit(dd.from_pandas(rows, npartitions=4), "label", time="day", gap=20)
    assert flag.exists()
    assert there.n_iter_ == here.n_iter_
    assert there.thresholds_ == here.thresholds_
    expect_same(here, there)


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_hangs_is_replaced_and_does_no_harm_when_it_goes_on(kind, expect, tmp_path):
    with faults.start_cluster(config=SOON) as (client, processes):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.stop, "w1", NUMBERS[kind], flag)
        expect(kind, fit(kind))
        assert flag.exists()
        second = start(fit, kind)
        processes.send(signal.SIGCONT, "w1")
        expect(kind, second.result())
        processes.running["w1"].join(30)  # it ends as the scheduler has removed it
        assert processes.running["w1"].exitcode == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_is_cut_off_is_replaced(kind, expect, tmp_path):
    with (
        faults.start_cluster([{}], config=SOON) as (client, processes),
        contextlib.ExitStack() as ends,
    ):
        port = find_free_port()
        proxies = [faults.Proxy(f"tcp://127.0.0.1:{port}"), faults.Proxy(processes.scheduler)]
        for one in proxies:
            ends.callback(one.close)
        here, home = (f"tcp://127.0.0.1:{one.port}" for one in proxies)
        processes.start(host="127.0.0.1", port=port, contact_address=here, scheduler=home)
        client.wait_for_workers(2, timeout=30)
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.pause, "w1", NUMBERS[kind], flag)
        cut = start_when(flag, lambda: [one.cut() for one in proxies])
        expect(kind, fit(kind))
        cut.result()
        assert proxies[0].n_connections > 1  # links and messages have gone by its contact address


def test_workers_behind_nannies_are_reached_by_their_contact_addresses(expect):
    with contextlib.ExitStack() as ends:
        proxies = [faults.Proxy(f"tcp://127.0.0.1:{find_free_port()}") for _ in range(2)]
        for one in proxies:
            ends.callback(one.close)
        addresses = [f"tcp://127.0.0.1:{one.port}" for one in proxies]
        client = ends.enter_context(
            faults.start_nannies(
                {"worker_port": one.target[1], "contact_address": address}
                for one, address in zip(proxies, addresses, strict=True)
            )
        )
        assert {*client.nthreads()} == {*addresses}
        before = [one.n_connections for one in proxies]
        expect("boosting", fit("boosting"))
        assert all(one.n_connections > n for one, n in zip(proxies, before, strict=True))


def run_ip(*given):
    subprocess.run(["ip", *given], check=True, capture_output=True)


@pytest.fixture
def cable():
    """Addresses of this machine and of a network namespace, and the device between them."""
    name, device = "certree-faults", "certree0"
    if not LONG or shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("takes a minute, and namespaces of Linux")
    try:
        run_ip("netns", "add", name)
    except subprocess.CalledProcessError:
        pytest.skip("namespaces cannot be made here")
    try:
        run_ip("link", "add", device, "type", "veth", "peer", "name", "certree1", "netns", name)
        run_ip("addr", "add", "10.213.5.1/24", "dev", device)
        run_ip("link", "set", device, "up")
        run_ip("-n", name, "addr", "add", "10.213.5.2/24", "dev", "certree1")
        run_ip("-n", name, "link", "set", "certree1", "up")
        yield "10.213.5.1", "10.213.5.2", name, device
    finally:
        subprocess.run(["ip", "link", "del", device], check=False, capture_output=True)
        run_ip("netns", "del", name)


@pytest.mark.parametrize("kind", [*MODELS])
def test_a_worker_whose_network_fails_is_replaced(kind, expect, cable, tmp_path):
    here, there, name, device = cable
    each = [{"host": here}, {"host": there, "namespace": name}]
    soon = {"distributed.comm.timeouts.tcp": "11s"}
    with faults.start_cluster(each, config=soon, host=here) as (client, _):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.pause, "w1", NUMBERS[kind], flag)
        cut = start_when(flag, partial(run_ip, "link", "set", device, "down"))
        expect(kind, fit(kind))
        cut.result()


def find_free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is an address of Linux alone")
def test_workers_on_several_addresses(expect):
    each = [{"host": f"127.0.0.{number}"} for number in (1, 2, 3)]
    with faults.start_cluster(each) as (client, _):
        assert {one.split(":")[1] for one in client.nthreads()} == {
            f"//{one['host']}" for one in each
        }
        fit_at_once(["boosting", "certified"], client, None, expect)


def test_all_workers_lost_at_once_end_a_fit_that_says_what_it_awaits(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "_NO_WORKERS_TIMEOUT", 2.0)
    with faults.start_cluster() as (client, processes):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.pause, "w0", NUMBERS["boosting"], flag)
        killed = start_when(flag, partial(processes.send, signal.SIGKILL))
        with pytest.raises(
            RuntimeError, match=r"no workers for 2 s, and the fit waits for one to "
        ):
            fit("boosting")
        killed.result()


@pytest.mark.skipif(not LONG, reason="kills workers as others do")
def test_workers_that_come_after_all_were_lost_end_the_fit_well(expect, tmp_path):
    with faults.start_cluster() as (client, processes):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.pause, "w0", NUMBERS["boosting"], flag)
        killed = start_when(flag, partial(processes.send, signal.SIGKILL))
        model = start(fit, "boosting")
        killed.result()
        processes.start()
        expect("boosting", model.result())


def test_each_epoch_is_logged_with_its_ranks_and_the_workers_that_were_lost(tmp_path, caplog):
    caplog.set_level("INFO", logger="certree")
    with faults.start_cluster() as (client, _):
        addresses = client.run(faults.get_name)
        (lost,) = (address for address, name in addresses.items() if name == "w1")
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.die, "w1", NUMBERS["boosting"], flag)
        fit("boosting")
    first, second = (one for one in caplog.records if one.name == "certree")
    assert first.levelname == "INFO"
    assert "epoch 1 of fit " in first.message
    assert first.message.endswith("lost: none")
    assert second.levelname == "WARNING"
    assert "epoch 2 of fit " in second.message
    assert second.message.endswith(f"lost: {lost}")
    assert all(f"={one}" in first.message for one in addresses)


def test_a_second_client_fits_beside_the_first(expect):
    with (
        faults.start_cluster() as (client, processes),
        distributed.Client(processes.scheduler, set_as_default=False) as second,
    ):
        started = [start(fit, "boosting", one) for one in (client, second)]
        for one in started:
            expect("boosting", one.result())


@contextlib.contextmanager
def nothing_is_left(client):
    """Check that soon after the block workers have no actor, block or thread of a fit."""
    assert {*client.run(faults.count_leftovers).values()} == {(0, 0, 0)}
    yield
    wait_until(lambda: {*client.run(faults.count_leftovers).values()} == {(0, 0, 0)}, 20)


@pytest.mark.slow
def test_nothing_is_left_of_fits(expect):
    with faults.start_cluster() as (client, _), nothing_is_left(client):
        for kind in MODELS:
            expect(kind, fit(kind))


@pytest.mark.parametrize("n_workers", [1, 2] if LONG else [2])
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_fit_on_all_workers(n_workers, tmp_path):
    with faults.start_cluster([{}] * n_workers) as (client, _), nothing_is_left(client):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.pause, "w0", 60, flag)
        start_when(flag, partial(signal.raise_signal, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            fit_for_hours()


def test_a_closed_client_ends_a_fit_on_all_workers(tmp_path):
    with faults.start_cluster() as (client, processes):
        other = distributed.Client(processes.scheduler)
        flag = tmp_path / "flag"
        with nothing_is_left(client):
            client.run(faults.act_before_message, faults.pause, "w0", 60, flag)
            start_when(flag, other.close)
            with (
                resources(client=other),
                pytest.raises(RuntimeError, match="the cluster was closed during the fit"),
            ):
                fit_for_hours()


@pytest.mark.parametrize("n_workers", [1, 2] if LONG else [1])
def test_a_killed_client_ends_a_fit_on_all_workers(n_workers, tmp_path):
    with faults.start_cluster([{}] * n_workers) as (client, processes), nothing_is_left(client):
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.pause, "w0", 60, flag)
        process = processes.context.Process(
            target=faults.fit_as_client,
            args=(processes.scheduler, boosting(max_iter=100_000), make_rows()),
            daemon=True,
        )
        process.start()
        wait_until(flag.exists)
        process.kill()
        process.join(30)


def fit_for_hours():
    boosting(max_iter=100_000).fit(*make_collections())


def test_three_fits_at_once_beside_cancelled_ones(expect, tmp_path):
    with faults.start_cluster() as (client, processes):
        fitting = [start(fit, kind, client) for kind in ("boosting", "tree", "boosting")]
        for _ in range(3):
            other = distributed.Client(processes.scheduler, set_as_default=False)
            cancelled = start(fit, "boosting", other)
            time.sleep(0.3)
            other.close()
            assert cancelled.exception(30) is None or isinstance(
                cancelled.exception(), RuntimeError
            )
        for kind, one in zip(("boosting", "tree", "boosting"), fitting, strict=True):
            expect(kind, one.result())


@pytest.fixture(scope="module")
def security(tmp_path_factory):
    """Certificates of one that all of a cluster trust."""
    openssl, folder = shutil.which("openssl"), tmp_path_factory.mktemp("certificates")
    if openssl is None:
        pytest.skip("openssl makes the certificates")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    parts = {
        f"tls_{who}_{what}": path
        for who in ("client", "scheduler", "worker")
        for what, path in (("key", key), ("cert", certificate))
    }
    return distributed.Security(tls_ca_file=certificate, require_encryption=True, **parts)


@pytest.mark.slow
def test_a_cluster_whose_connections_are_encrypted(security, expect, tmp_path):
    with faults.start_cluster(security=security) as (client, _):
        assert all(one.startswith("tls://") for one in client.nthreads())
        fit_at_once(["boosting", "certified"], client, None, expect)
        flag = tmp_path / "flag"
        client.run(faults.act_before_message, faults.die, "w1", NUMBERS["boosting"], flag)
        expect("boosting", fit("boosting"))
        assert flag.exists()


@pytest.mark.parametrize("kind", [*MODELS] if LONG else ["boosting", "certified"])
def test_workers_in_one_process_write_to_nothing_that_was_sent(kind, expect, monkeypatch):
    connection = distributed.comm.inproc.InProc
    sent, before = [], connection.write

    async def write(self, message, *arguments, **options):
        if isinstance(message, list) and len(message) == 2 and hasattr(message[1], "frames"):
            words = np.frombuffer(message[1].frames[0], np.int64)
            sent.append((words, words.copy()))
        return await before(self, message, *arguments, **options)

    monkeypatch.setattr(connection, "write", write)
    X, y = make_rows()
    for one in (X, y):
        one.flags.writeable = False
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as home,
        distributed.Client(home) as client,
    ):
        blocks = [slice(0, 400), slice(400, 900), slice(900, N)]
        futures = [client.scatter([one[block] for block in blocks]) for one in (X, y)]
        rows = [
            da.concatenate(
                [
                    da.from_delayed(delayed(future), one[block].shape, one.dtype)
                    for future, block in zip(each, blocks, strict=True)
                ]
            )
            for one, each in zip((X, y), futures, strict=True)
        ]
        expect(kind, fit(kind, client, rows))
    assert sent or kind != "boosting"
    for words, as_sent in sent:
        np.testing.assert_array_equal(words, as_sent)
    np.testing.assert_array_equal(X, make_rows()[0])


def expect_after(act, kind, name, number, expect, folder):
    """Let a worker fail before a message of a fit, which must end with the same model."""
    with faults.start_cluster(config=SOON if act is faults.stop else None) as (client, _):
        client.run(faults.act_before_message, act, name, number, folder / "flag")
        expect(kind, fit(kind))
    assert (folder / "flag").exists()


# Either worker takes part in at least so many messages of a fit, or more than 40.
MOST_MESSAGES = {"boosting": 40, "forest": 14, "tree": 16, "certified": 40}
MESSAGES = [(kind, n) for kind, most in MOST_MESSAGES.items() for n in range(1, most + 1)]


@pytest.mark.skipif(not LONG, reason="takes many minutes")
@pytest.mark.parametrize("name", ["w0", "w1"])
@pytest.mark.parametrize(("kind", "number"), MESSAGES)
def test_a_worker_is_killed_before_any_message(kind, number, name, expect, tmp_path):
    expect_after(faults.die, kind, name, number, expect, tmp_path)


@pytest.mark.skipif(not LONG, reason="takes minutes")
@pytest.mark.parametrize("name", ["w0", "w1"])
@pytest.mark.parametrize("number", [*range(1, 12), 20, 40])
@pytest.mark.parametrize("kind", ["boosting", "certified"])
def test_a_worker_hangs_before_any_message(kind, number, name, expect, tmp_path):
    expect_after(faults.stop, kind, name, number, expect, tmp_path)
