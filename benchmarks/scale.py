"""Trees on rows in files against the same rows in memory: time, memory and bits.

Boosted trees; forests (``--model forest``), of as many trees as there would be rounds, full ones with
``--leaves 0``; or a single tree on bins (``--model tree``) of at most 100,000 leaves.

Tables are generated, seeded, and written as Parquet in files of a million rows: normal features, of
which three and a product tell two classes. Each fit runs in a process of its own, memory and files in
turn. Figures are the ratio of the CPU times of both fits, reading of the files included on both
sides, at most 1.3, and 3 of a single tree; and the peak of the anonymous memory of the process that
fits to files, in MB, at most 3000. The models must have the same bits. Sizes go by ``--rows``, up to
1e8 and beyond: of sizes above ``--most-in-memory`` only files are fitted. Linux alone says what the
anonymous memory is.
"""

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.timing import Row, report

RATIO, RATIO_OF_TREE, ANONYMOUS = 1.3, 3.0, 3000
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
PAUSE = 0.01


def write_table(folder: Path, n: int, p: int) -> None:
    """Write a table as files, one at a time."""
    for number, start in enumerate(range(0, n, ROWS_OF_FILE)):
        rng = np.random.default_rng([number, p])
        X = rng.standard_normal((min(ROWS_OF_FILE, n - start), p))
        score = X[:, 0] * X[:, 1] + X[:, 2] - X[:, 3] + 0.5 * rng.standard_normal(len(X))
        columns = {f"x{j}": X[:, j] for j in range(p)}
        table = pa.table({**columns, "y": (score > 0).astype(np.int8)})
        pq.write_table(table, folder / f"{number:05}.parquet")


def anonymous() -> float:
    """Anonymous memory of this process now, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


class Watching(threading.Thread):
    """Keeps the largest anonymous memory that it has seen."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0.0

    def run(self) -> None:
        """Look at it now and then."""
        while True:
            self.most = max(self.most, anonymous())
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
        return PACBayesTreeClassifier(grower, lambda_error=1.0, lambda_penalty=0.0, random_state=0)
    return BoostedTreesClassifier(max_iter=options.rounds, max_leaf_nodes=leaves, random_state=0)


def print_case(kind: str, folder: Path, options: Any) -> None:
    """Fit, and print CPU time, wall time, peak memory and a hash of the model."""
    model = model_of(options)
    watching = Watching()
    watching.start()
    cpu, wall = time.process_time(), time.perf_counter()
    if kind == "files":
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
    print(cpu, wall, watching.most, known.hexdigest())


def measured(kind: str, folder: Path, options: Any) -> tuple[float, float, float, str]:
    """What a process of its own says."""
    command = [sys.executable, "-m", "benchmarks.scale", "--case", kind, str(folder)]
    command += ["--rounds", str(options.rounds), "--leaves", str(options.leaves)]
    command += ["--model", options.model]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu, wall, most, known = done.stdout.split()
    return float(cpu), float(wall), float(most), known


def rows_of(n: int, options: Any) -> list[Row]:
    """The lines of one size."""
    kinds = ["memory", "files"] if n <= options.most_in_memory else ["files"]
    found: dict[str, list[tuple[float, float, float, str]]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory(prefix="certree-scale-", dir=options.folder) as folder:
        write_table(Path(folder), n, options.features)
        for _ in range(options.repeats):
            for kind in kinds:
                found[kind].append(measured(kind, Path(folder), options))
    if len({one[3] for told in found.values() for one in told}) > 1:
        raise SystemExit(f"the models of {n:,} rows differ")
    of_model = CASES[options.model].format(n=options.rounds, leaves=options.leaves or "all")
    case = f"{n:.0e} x {options.features}, {of_model}"
    cpu = {kind: statistics.median(one[0] for one in told) for kind, told in found.items()}
    wall = {kind: statistics.median(one[1] for one in told) for kind, told in found.items()}
    most = {kind: max(one[2] for one in told) for kind, told in found.items()}
    peer = ("memory", cpu["memory"]) if "memory" in kinds else ("", None)
    most_times = RATIO_OF_TREE if options.model == "tree" else RATIO
    target = most_times if peer[0] else None
    lines = [Row(f"files, CPU: {case}", cpu["files"], *peer, target=target)]
    lines.append(Row(f"files, wall: {case}", wall["files"], peer[0], wall.get("memory")))
    for kind in kinds:
        target = ANONYMOUS if kind == "files" else None
        lines.append(
            Row(f"{kind}, peak: {case}", None, target=target, figure=most[kind], unit="MB")
        )
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
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print_case(options.case[0], Path(options.case[1]), options)
        return
    report(FILES[options.model], [row for n in options.rows for row in rows_of(int(n), options)])


if __name__ == "__main__":
    main()
