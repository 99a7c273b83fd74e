"""Out-of-core and distributed fits: time, memory, disk space, and equal models.

Boosted trees; forests (`--model forest`, `--leaves 0` for full trees) of as many trees as rounds; or
one tree on bins (`--model tree`) of at most 100,000 leaves. Simulated tables are written as Parquet
files of a million rows. Each fit runs in a new process.

Out of core against in memory, in turn: the ratio of CPU times with reading (target 1.3; 3 for a tree),
the peak of the anonymous memory in MB (target 3000), and the most bytes of the scratch folder in GB
(target 40). The models must be equal. Above `--most-in-memory` rows there are only out-of-core fits.

`--messages`: messages of a worker in a round, and the MB that it would send.

`--dask`: against LightGBM's Dask estimator on a cluster of two processes with one thread each, with
equal leaves, bins, rounds and rates: the ratio of times, and log losses of 100,000 other rows.
"""

import hashlib
import os
import statistics
import tempfile
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benchmarks.results import Row, report
from benchmarks.timing import measure_seconds, run_in_new_process
from certree import BoostedTreesClassifier, Cart, PACBayesTreeClassifier, TreeForestClassifier

FILE_ROWS, LEAVES, PAUSE = 1_000_000, 100_000, 0.05
FILES = {"boosting": "scale", "forest": "scale_of_forests", "tree": "scale_tree"}


class Settings(NamedTuple):
    """What is fitted: kind of model, features, rounds, leaves, memory limit, and learning rate."""

    model: str
    features: int
    rounds: int
    leaves: int
    memory_limit: str
    rate: float

    def name_case(self, n: int) -> str:
        """Return the name of a case."""
        model = {
            "boosting": f"{self.rounds} rounds of {self.leaves} leaves",
            "forest": f"{self.rounds} trees of {self.leaves or 'all'} leaves",
            "tree": f"a tree of {LEAVES:.0e} leaves at most",
        }[self.model]
        limit = f", within {self.memory_limit}" if self.memory_limit else ""
        return f"{n:.0e} x {self.features}, {model}{limit}"

    def make_model(self, **options: Any) -> Any:
        """Return the model."""
        options = {"max_leaf_nodes": self.leaves or None, "random_state": 0, **options}
        if self.model == "forest":
            return TreeForestClassifier(self.rounds, **options)
        if self.model == "tree":
            grower = Cart(max_bins=255, max_leaf_nodes=LEAVES)
            given = {"lambda_error": 1.0, "lambda_penalty": 0.0, "n_jobs": -1}
            return PACBayesTreeClassifier(grower, **given, random_state=0)
        return BoostedTreesClassifier(max_iter=self.rounds, **options)


class Measured(NamedTuple):
    """CPU and wall seconds, peak memory in MB, scratch space in GB, and a hash of the model."""

    cpu: float
    wall: float
    memory: float
    scratch: float
    model: str


def draw_file(number: int, n: int, p: int) -> tuple[Any, Any]:
    """Return features and classes of one file."""
    rng = np.random.default_rng([number, p])
    X = rng.standard_normal((n, p))
    score = X[:, 0] * X[:, 1] + X[:, 2] - X[:, 3] + 0.5 * rng.standard_normal(n)
    return X, (score > 0).astype(np.int8)


def write_table(folder: str, n: int, p: int) -> None:
    """Write a table as files."""
    for number, start in enumerate(range(0, n, FILE_ROWS)):
        X, y = draw_file(number, min(FILE_ROWS, n - start), p)
        columns = {f"x{j}": X[:, j] for j in range(p)}
        pq.write_table(pa.table({**columns, "y": y}), f"{folder}/{number:05}.parquet")


def measure_memory() -> float:
    """Return the anonymous memory of this process and of those that it started, in MB."""
    total, processes = 0.0, [os.getpid()]
    while processes:
        path = Path(f"/proc/{(process := processes.pop())}")
        with suppress(OSError):  # the process may end
            lines = (path / "status").read_text().splitlines()
            total += sum(int(one.split()[1]) for one in lines if one.startswith("RssAnon")) / 1024
            processes += map(int, (path / f"task/{process}/children").read_text().split())
    return total


class Watcher(threading.Thread):
    """A thread that keeps the largest memory and scratch space."""

    def __init__(self, scratch: str) -> None:
        super().__init__(daemon=True)
        self.scratch, self.memory, self.space = Path(scratch), 0.0, 0.0

    def run(self) -> None:
        """Measure again and again."""
        while True:
            self.memory = max(self.memory, measure_memory())
            with suppress(FileNotFoundError):  # the fit removes its folder
                sizes = [one.stat().st_blocks * 512 for one in self.scratch.glob("certree-*/*")]
                self.space = max(self.space, sum(sizes) / 1e9)
            time.sleep(PAUSE)


def fit(kind: str, folder: str, scratch: str, settings: Settings) -> Measured:
    """Fit to the files of a folder, out of core ("files") or in memory ("memory")."""
    from certree.out_of_core import resources

    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    model, watcher = settings.make_model(), Watcher(scratch)
    watcher.start()
    cpu, wall = time.process_time(), time.perf_counter()
    if kind == "files":
        with resources(memory_limit=settings.memory_limit or None):
            model.fit(Path(folder), "y")
    else:
        table = pq.read_table(folder)
        model.fit(table.drop_columns(["y"]), table["y"].to_numpy())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    trees = model.tree_ if settings.model == "tree" else model.trees_
    values = model.vote_.score if settings.model == "tree" else trees.value
    arrays = (
        trees.feature,
        trees.threshold,
        trees.left,
        values,
        getattr(model, "start_", np.zeros(0)),
    )
    content = b"".join(np.ascontiguousarray(one).tobytes() for one in arrays)
    model_hash = hashlib.sha256(content).hexdigest()
    return Measured(cpu, wall, watcher.memory, watcher.space, model_hash)


def compare_memory(n: int, settings: Settings, repeats: int, most_in_memory: float) -> list[Row]:
    """Return the rows of one size, out of core and in memory."""
    kinds = ["memory", "files"] if n <= most_in_memory else ["files"]
    found: dict[str, list[Measured]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        write_table(folder, n, settings.features)
        for _ in range(repeats):
            for kind in kinds:
                with tempfile.TemporaryDirectory() as scratch:
                    found[kind].append(run_in_new_process(fit, kind, folder, scratch, settings))
    if len({one.model for runs in found.values() for one in runs}) > 1:
        raise SystemExit(f"the models of {n:,} rows differ")
    case, rows = settings.name_case(n), []
    goal = (3.0 if settings.model == "tree" else 1.3) if len(kinds) > 1 else None
    for clock, name, target in ((0, "CPU", goal), (1, "wall", None)):
        seconds = {kind: statistics.median(one[clock] for one in found[kind]) for kind in kinds}
        peer = ("memory", seconds["memory"]) if len(kinds) > 1 else ("", None)
        rows.append(Row(f"files, {name}: {case}", seconds["files"], *peer, target=target))
    for kind in kinds:
        goal = 3000 if kind == "files" and not settings.memory_limit else None
        memory = max(one.memory for one in found[kind])
        rows.append(Row(f"{kind}, peak: {case}", target=goal, figure=memory, unit="MB"))
    scratch = max(one.scratch for one in found["files"])
    return [*rows, Row(f"scratch: {case}", target=40, figure=scratch, unit="GB")]


class CountedLinks:
    """The links of a rank that is alone, which count the words that it would send."""

    is_rank_0 = True

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def reduce(self, words: Any, n_sums: int) -> None:
        """Count a message to rank 0."""
        del n_sums
        self.sizes.append(words.nbytes)

    def share(self, words: Any) -> None:
        """Send nothing: words of rank 0 are the answer to a message."""


def measure_messages(n: int, settings: Settings) -> list[Row]:
    """Return the messages of a worker with all rows in a round, and how much it would send."""
    from certree.out_of_core import executors

    links, rank = CountedLinks(), executors.Rank
    with (
        tempfile.TemporaryDirectory(prefix="scale-") as folder,
        patch.object(executors, "Rank", lambda rows: rank(rows, links)),
    ):
        write_table(folder, n, settings.features)
        settings.make_model().fit(Path(folder), "y")
    case, rounds = settings.name_case(n), settings.rounds
    return [
        Row(f"passes of a round: {case}", figure=len(links.sizes) / rounds, unit="passes"),
        Row(f"told in a round: {case}", figure=sum(links.sizes) / 1e6 / rounds, unit="MB"),
    ]


def compare_cluster(n: int, settings: Settings, repeats: int) -> list[Row]:
    """Return the rows of one size against LightGBM on a cluster."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait
    from lightgbm import DaskLGBMClassifier
    from sklearn.metrics import log_loss

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        LocalCluster(**options, processes=True) as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):

        def place(n: int) -> list[Any]:
            X, y = draw_file(0, n, settings.features)
            half = -(-n // 2)
            placed = [da.from_array(X, chunks=(half, -1)), da.from_array(y, chunks=half)]
            placed = [one.persist() for one in placed]
            wait(placed)
            return placed

        def make(who: str) -> Any:
            if who == "certree":
                return settings.make_model(learning_rate=settings.rate, max_features=None)
            return DaskLGBMClassifier(
                n_estimators=settings.rounds, num_leaves=settings.leaves, max_bin=255,
                learning_rate=settings.rate, n_jobs=1, client=client, verbose=-1,
            )  # fmt: skip

        seconds, losses = {"certree": [], "lightgbm": []}, {}
        first, placed = place(20_000), place(n)
        for who in seconds:
            make(who).fit(*first)
        X, y = draw_file(1, 100_000, settings.features)
        for _ in range(repeats):
            for who, times in seconds.items():
                model = make(who)
                times.append(measure_seconds(lambda: model.fit(*placed)))  # noqa: B023
                local = model if who == "certree" else model.to_local()
                losses[who] = log_loss(y, local.predict_proba(X)[:, 1])
    case = f"{settings.name_case(n)}, rate {settings.rate:g}"
    ours, peer = (statistics.median(times) for times in seconds.values())
    goals = {"certree": losses["lightgbm"], "lightgbm": None}
    return [Row(f"Dask: {case}", ours, "lightgbm", peer, target=1.0)] + [
        Row(f"Dask, {who}: {case}", target=goals[who], figure=loss, unit="log loss")
        for who, loss in losses.items()
    ]


def main(
    rows: float = 1e6, model: str = "boosting", features: int = 10, rounds: int = 100,
    leaves: int = 31, repeats: int = 3, most_in_memory: float = 1e7, rate: float = 0.1,
    memory_limit: str = "", messages: bool = False, dask: bool = False,
) -> None:  # fmt: skip
    """Measure one size, and add it to the result file; TMPDIR is the folder of the tables."""
    settings = Settings(model, features, rounds, leaves, memory_limit, rate)
    if dask:
        if not all(map(find_spec, ("lightgbm", "dask", "distributed"))):
            print('skipped: pip install "certree[bench]" for LightGBM and Dask')
            return
        found = compare_cluster(int(rows), settings, repeats)
    elif messages:
        found = measure_messages(int(rows), settings)
    else:
        found = compare_memory(int(rows), settings, repeats, most_in_memory)
    report(FILES[model], found, added=True)


if __name__ == "__main__":
    typer.run(main)
