"""Growing a KD and a dyadic tree down to single rows, against SciPy's cKDTree on the same rows.

Rows are normal, float64, 16 features; the peer is ``cKDTree(X, leafsize=1, balanced_tree=True)``,
which uses one thread. Targets: at most 0.7 of the peer's time, and at most twice the size of X as
peak memory on top of X. Memory is measured in a process of its own for each case.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from benchmarks.timing import Row, alternate, peak_kib, report
from certree import Tree, grow_dyadic, grow_kd

FEATURES = 16
GROWERS: dict[str, Callable[..., Tree]] = {
    "kd, cycle": partial(grow_kd, axis="cycle"),
    "kd, spread": partial(grow_kd, axis="spread"),
    "dyadic": grow_dyadic,
}
THREADS = {"one thread": None, "all threads": -1}
PEER = "scipy cKDTree"
TIME, MEMORY = 0.7, 2.0


def normal_rows(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).standard_normal((n, FEATURES))


def peer(X: NDArray[np.float64]) -> cKDTree:
    return cKDTree(X, leafsize=1, balanced_tree=True)


def print_memory(case: str, n: int) -> None:
    """Print the peak on top of X over the size of X; runs in the process that is measured."""
    X = normal_rows(n)
    before = peak_kib()
    if case == PEER:
        peer(X)
    else:
        GROWERS[case](X)
    print(1024 * (peak_kib() - before) / X.nbytes)


def memory(case: str, n: int) -> float:
    """Peak extra memory over the size of X."""
    command = [sys.executable, "-m", "benchmarks.grow", "--rows", str(n), "--memory-of", case]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n = arguments.rows
    if arguments.memory_of:
        print_memory(arguments.memory_of, n)
        return
    # First of all: a new process starts with the peak of the one that starts it.
    extra = {case: memory(case, n) for case in [*GROWERS, PEER]}
    X = normal_rows(n)
    rows = []
    for case, grow in GROWERS.items():
        for name, n_jobs in THREADS.items():
            ours = partial(grow, X, n_jobs=n_jobs)
            times = alternate(ours, partial(peer, X), arguments.repeats)
            rows.append(Row(f"{case}, {name}, {n:.0e} rows", times[0], PEER, times[1], TIME))
    rows += [
        Row(f"{case}, peak memory", None, target=MEMORY, figure=extra[case], unit="of X")
        for case in GROWERS
    ]
    rows.append(Row(f"{PEER}, peak memory", None, figure=extra[PEER], unit="of X"))
    report("grow", rows)


if __name__ == "__main__":
    main()
