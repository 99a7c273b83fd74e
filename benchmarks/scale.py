"""Trees on rows in files and on workers of Dask: time, memory and bits.

Boosted trees; forests (``--model forest``), of as many trees as there would be rounds, full ones with
``--leaves 0``; or a single tree on bins (``--model tree``) of at most 100,000 leaves.

Tables are generated, seeded, and written as Parquet in files of a million rows: normal features, of
which three and a product tell two classes. Each fit runs in a process of its own.

Files against the same rows in memory, in turn: figures are the ratio of the CPU times of both fits,
reading of the files included on both sides, at most 1.3, and 3 of a single tree; the peak of the
anonymous memory of the process that fits to files and those that it starts, in MB, at most 3000; and
the most bytes of its scratch folder, in GB, at most 40. The models must have the same bits. Sizes go by
``--rows``, up to 1e8 and beyond: of sizes above ``--most-in-memory`` only files are fitted.

``--memory-limit`` keeps the fits to files to so many bytes, such as 500MB, at the peak.

``--told``: how often parts are asked in a round, and how much they tell together, in MB.

``--dask``: against LightGBM's estimator for Dask on the same cluster of two processes with a thread
each, of rows that lie there; leaves, bins, rounds and rates are equal, and every round looks at all
features, as LightGBM's do. Both fit a few rows before, and then in turn. Figures are the ratio of the
times, and the log losses of 1e5 rows of another seed, which are to be no larger. Is left out without
LightGBM, Dask or distributed. Linux alone says what the anonymous memory is.
"""

import argparse
import hashlib
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.timing import Row, report
from certree.parts import resources
from certree.parts.memory_limit import bytes_of
from certree.parts.part import begin_round, begin_tree, end_tree, go_on, largest

# What parts are asked in a round.
ROUND = (begin_round, largest, begin_tree, go_on, end_tree)
RATIO, RATIO_OF_TREE, ANONYMOUS, SCRATCH = 1.3, 3.0, 3000, 40
LEAVES = 100_000
# Files of results, and what their lines say, by what is fitted.
FILES = {"boosting": "scale", "forest": "scale_of_forests", "tree": "scale_tree"}
CASES = {
    "boosting": "{n} rounds of {leaves} leaves",
    "forest": "{n} trees of {leaves} leaves",
    "tree": f"a tree of {LEAVES:.0e} leaves at most",
}
ROWS_OF_FILE = 1_000_000
# Between looks at the memory, in seconds.
PAUSE = 0.05


def rows_of_file(number: int, n: int, p: int) -> tuple[Any, Any]:
    """Features and classes of a file."""
    rng = np.random.default_rng([number, p])
    X = rng.standard_normal((n, p))
    score = X[:, 0] * X[:, 1] + X[:, 2] - X[:, 3] + 0.5 * rng.standard_normal(n)
    return X, (score > 0).astype(np.int8)


def write_table(folder: Path, n: int, p: int) -> None:
    """Write a table as files, one at a time."""
    for number, start in enumerate(range(0, n, ROWS_OF_FILE)):
        X, y = rows_of_file(number, min(ROWS_OF_FILE, n - start), p)
        columns = {f"x{j}": X[:, j] for j in range(p)}
        pq.write_table(pa.table({**columns, "y": y}), folder / f"{number:05}.parquet")


def anonymous() -> float:
    """Anonymous memory of this process and those that it has started now, in MB."""
    total, seen = 0.0, [os.getpid()]
    while seen:
        process = seen.pop()
        try:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            below = Path(f"/proc/{process}/task/{process}/children").read_text()
        except OSError:  # it has ended
            continue
        total += next((int(one.split()[1]) for one in lines if one.startswith("RssAnon")), 0) / 1024
        seen += map(int, below.split())
    return total


def in_scratch() -> float:
    """How much lies in the scratch folders of this process now, in GB."""
    sizes = [one.stat().st_blocks * 512 for one in Path(tempfile.gettempdir()).glob("certree-*/*")]
    return sum(sizes) / 1e9


class Watching(threading.Thread):
    """Keeps the most memory and scratch that it has seen."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.most_scratch = 0.0, 0.0

    def run(self) -> None:
        """Look at it now and then."""
        while True:
            self.most = max(self.most, anonymous())
            with suppress(FileNotFoundError):  # the folder goes away when the fit ends
                self.most_scratch = max(self.most_scratch, in_scratch())
            time.sleep(PAUSE)


def model_of(options: Any) -> Any:
    """What is fitted."""
    from certree import (
        BoostedTreesClassifier,
        Cart,
        PACBayesTreeClassifier,
        TreeForestClassifier,
    )

    leaves = options.leaves or None
    if options.model == "forest":
        return TreeForestClassifier(options.rounds, max_leaf_nodes=leaves, random_state=0)
    if options.model == "tree":
        grower = Cart(max_bins=255, max_leaf_nodes=LEAVES)
        return PACBayesTreeClassifier(
            grower, lambda_error=1.0, lambda_penalty=0.0, random_state=0, n_jobs=-1
        )
    return BoostedTreesClassifier(max_iter=options.rounds, max_leaf_nodes=leaves, random_state=0)


def print_case(kind: str, folder: Path, options: Any) -> None:
    """Fit, and print CPU time, wall time, peak memory and a hash of the model."""
    model = model_of(options)
    watching = Watching()
    watching.start()
    cpu, wall = time.process_time(), time.perf_counter()
    if kind == "files":
        with resources(memory_limit=options.memory_limit):
            model.fit(folder, "y")
    else:
        table = pq.read_table(folder)
        y = table["y"].to_numpy()
        model.fit(table.drop_columns(["y"]), y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    is_tree = options.model == "tree"
    trees = model.tree_ if is_tree else model.trees_
    said = [*model.vote_.score] if is_tree else [trees.value, getattr(model, "start_", np.zeros(0))]
    parts = trees.feature, trees.threshold, trees.left, *said
    known = hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in parts))
    print(cpu, wall, watching.most, watching.most_scratch, known.hexdigest())


def measured(kind: str, folder: Path, options: Any) -> tuple[float, float, float, float, str]:
    """What a process of its own says."""
    command = [sys.executable, "-m", "benchmarks.scale", "--case", kind, str(folder)]
    command += ["--rounds", str(options.rounds), "--leaves", str(options.leaves)]
    command += ["--model", options.model]
    if options.memory_limit is not None:
        command += ["--memory-limit", options.memory_limit]
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "TMPDIR": scratch},
        )
    *numbers, known = done.stdout.split()
    cpu, wall, most, most_scratch = map(float, numbers)
    return cpu, wall, most, most_scratch, known


def case_of(n: int, options: Any) -> str:
    """What a size is called."""
    of_model = CASES[options.model].format(n=options.rounds, leaves=options.leaves or "all")
    limit = "" if options.memory_limit is None else f", within {options.memory_limit}"
    return f"{n:.0e} x {options.features}, {of_model}{limit}"


def most_of(options: Any) -> float:
    """What fits to files may hold, in MB as the system counts them."""
    limit = options.memory_limit
    return ANONYMOUS if limit is None else bytes_of(limit) / 2**20


def rows_of(n: int, options: Any) -> list[Row]:
    """The lines of one size."""
    kinds = ["memory", "files"] if n <= options.most_in_memory else ["files"]
    found: dict[str, list[tuple[float, float, float, float, str]]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory(prefix="scale-", dir=options.folder) as folder:
        write_table(Path(folder), n, options.features)
        for _ in range(options.repeats):
            for kind in kinds:
                found[kind].append(measured(kind, Path(folder), options))
    if len({one[-1] for told in found.values() for one in told}) > 1:
        raise SystemExit(f"the models of {n:,} rows differ")
    case = case_of(n, options)
    cpu = {kind: statistics.median(one[0] for one in told) for kind, told in found.items()}
    wall = {kind: statistics.median(one[1] for one in told) for kind, told in found.items()}
    most = {kind: max(one[2] for one in told) for kind, told in found.items()}
    peer = ("memory", cpu["memory"]) if "memory" in kinds else ("", None)
    most_times = RATIO_OF_TREE if options.model == "tree" else RATIO
    target = most_times if peer[0] else None
    lines = [Row(f"files, CPU: {case}", cpu["files"], *peer, target=target)]
    lines.append(Row(f"files, wall: {case}", wall["files"], peer[0], wall.get("memory")))
    for kind in kinds:
        target = most_of(options) if kind == "files" else None
        lines.append(
            Row(f"{kind}, peak: {case}", None, target=target, figure=most[kind], unit="MB")
        )
    scratch = max(one[3] for one in found["files"])
    lines.append(Row(f"scratch: {case}", None, target=SCRATCH, figure=scratch, unit="GB"))
    return lines


# -- what is told


def rows_told(n: int, options: Any) -> list[Row]:
    """How often all rows are asked in a round, and how much one worker that held them would tell."""
    from certree import BoostedTreesClassifier
    from certree.parts.executors import Parts

    told: list[int] = []

    def counted(before: Any) -> Any:
        def ask(self: Parts, f: Any, *given: Any, **how: Any) -> Any:
            answer = before(self, f, *given, **how)
            if f in ROUND:
                told.append(len(pickle.dumps(answer, 5)))
            return answer

        return ask

    with (
        tempfile.TemporaryDirectory(prefix="scale-", dir=options.folder) as folder,
        patch.object(Parts, "change", counted(Parts.change)),
        patch.object(Parts, "collect", counted(Parts.collect)),
    ):
        write_table(Path(folder), n, options.features)
        BoostedTreesClassifier(
            max_iter=options.rounds, max_leaf_nodes=options.leaves, random_state=0
        ).fit(Path(folder), "y")
    case = case_of(n, options)
    figures = {
        "passes of a round": (len(told), "passes"),
        "told in a round": (sum(told) / 1e6, "MB"),
    }
    return [
        Row(f"{what}: {case}", None, figure=one / options.rounds, unit=unit)
        for what, (one, unit) in figures.items()
    ]


# -- on a cluster


def fitted_there(who: str, parts: tuple[Any, Any], client: Any, options: Any) -> tuple[float, Any]:
    """Seconds of a fit, and what was fitted."""
    model: Any
    if who == "certree":
        from certree import BoostedTreesClassifier

        model = BoostedTreesClassifier(
            max_iter=options.rounds,
            max_leaf_nodes=options.leaves,
            learning_rate=options.rate,
            max_features=None,
            random_state=0,
        )
    else:
        from lightgbm import DaskLGBMClassifier

        model = DaskLGBMClassifier(
            n_estimators=options.rounds,
            num_leaves=options.leaves,
            max_bin=255,
            learning_rate=options.rate,
            n_jobs=1,
            client=client,
            verbose=-1,
        )
    start = time.perf_counter()
    model.fit(*parts)
    seconds = time.perf_counter() - start
    return seconds, model if who == "certree" else model.to_local()


def rows_on_cluster(n: int, options: Any) -> list[Row]:
    """The lines of one size against LightGBM on a cluster; none without it."""
    names = "lightgbm", "dask", "distributed"
    if any(find_spec(one) is None for one in names):
        print(f"left out, as there is not all of {', '.join(names)}")
        return []
    import dask.array as da
    from distributed import Client, LocalCluster, wait
    from sklearn.metrics import log_loss

    found: dict[str, list[float]] = {"certree": [], "lightgbm": []}
    losses = {}
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):

        def placed(n: int) -> tuple[Any, Any]:
            X, y = rows_of_file(0, n, options.features)
            cut = -(-n // 2)
            parts = da.from_array(X, chunks=(cut, X.shape[1])), da.from_array(y, chunks=cut)
            parts = tuple(one.persist() for one in parts)
            wait(parts)
            return parts

        first = placed(20_000)
        for who in found:
            fitted_there(who, first, client, options)
        parts = placed(n)
        X, y = rows_of_file(1, 100_000, options.features)
        for _ in range(options.repeats):
            for who, seconds in found.items():
                took, model = fitted_there(who, parts, client, options)
                seconds.append(took)
                losses[who] = log_loss(y, model.predict_proba(X)[:, 1])
    case = case_of(n, options) + f", rate {options.rate:g}"
    own = statistics.median(found["certree"])
    peer = statistics.median(found["lightgbm"])
    lines = [Row(f"Dask: {case}", own, "lightgbm", peer, target=1.0)]
    for who, loss in losses.items():
        target = losses["lightgbm"] if who == "certree" else None
        lines.append(Row(f"Dask, {who}: {case}", None, target=target, figure=loss, unit="log loss"))
    return lines


def main() -> None:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6])
    parser.add_argument("--model", choices=[*FILES], default="boosting")
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-in-memory", type=float, default=1e7)
    parser.add_argument(
        "--folder", default=os.environ.get("TMPDIR"), help="where tables are written"
    )
    parser.add_argument("--rate", type=float, default=0.1, help="learning rate, with --dask")
    parser.add_argument("--memory-limit", help="what fits to files may hold, such as 500MB")
    parser.add_argument("--told", action="store_true", help="how often and how much parts tell")
    parser.add_argument("--dask", action="store_true", help="against LightGBM on workers")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print_case(options.case[0], Path(options.case[1]), options)
        return
    lines_of = rows_on_cluster if options.dask else rows_told if options.told else rows_of
    rows = [row for n in options.rows for row in lines_of(int(n), options)]
    if rows:
        report(FILES[options.model], rows, added=True)


if __name__ == "__main__":
    main()
