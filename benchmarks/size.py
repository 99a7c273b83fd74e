"""Greedy trees that are deep, long or wide: time, peak memory on top of X, growth of time with rows.

Each case runs in a process of its own. The deep tree is that of classes that take turns along one
feature: every cut takes one row off, so it has about as many levels as rows. The long and the wide
ones are noisy classes on normal features, float32. Targets: at least 3000 levels, peak memory of at
most three times X, time growing with at most the power 1.15 of the rows.
"""

import argparse
import subprocess
import sys

import numpy as np

from benchmarks.timing import Row, peak_kib, report, seconds
from certree import grow_cart

LEVELS, MEMORY, EXPONENT = 3000, 3.0, 1.15


def taking_turns(n: int) -> tuple[np.ndarray, np.ndarray]:
    """One feature along which two classes take turns."""
    return np.arange(n, dtype=np.float64)[:, None], np.arange(n, dtype=np.int32) % 2


def noisy(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal features, and classes that depend on three of them and on chance."""
    rng = np.random.default_rng(0)
    X = np.empty((n, p), dtype=np.float32)
    for row in range(0, n, 100_000):  # without a second X
        X[row : row + 100_000] = rng.standard_normal((len(X[row : row + 100_000]), p), np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) > 0
    return X, y.astype(np.int32)


def print_case(shape: str, n: int, p: int) -> None:
    """Print seconds, levels and peak memory over the size of X; runs in a process of its own."""
    X, y = taking_turns(n) if shape == "deep" else noisy(n, p)
    before = peak_kib()
    trees = []
    time = seconds(lambda: trees.append(grow_cart(X, y, criterion="gini", n_jobs=-1)))
    print(time, trees[0].depth, 1024 * (peak_kib() - before) / X.nbytes)


def measured(shape: str, n: int, p: int) -> tuple[float, ...]:
    """Seconds, levels and peak memory over the size of X."""
    command = [sys.executable, "-m", "benchmarks.size", "--case", shape, str(n), str(p)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(map(float, output.split()))


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the long case")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        shape, n, p = arguments.case
        print_case(shape, int(n), int(p))
        return
    time, levels, _ = measured("deep", 2 * LEVELS, 1)
    rows = [Row("deep: levels", time, target=-LEVELS, figure=-levels, unit="levels, negative")]
    sizes = [arguments.rows // 100, arguments.rows // 10, arguments.rows]
    long = [measured("long", n, 10) for n in sizes]
    for n, (time, levels, memory) in zip(sizes, long, strict=True):
        case = f"long: {n:.0e} rows, p = 10, {levels:.0f} levels, peak memory"
        rows.append(Row(case, time, target=MEMORY, figure=memory, unit="of X"))
    slope = np.polyfit(np.log(sizes), np.log([time for time, _, _ in long]), 1)[0]
    rows.append(Row("long: time by rows", None, target=EXPONENT, figure=slope, unit="slope"))
    time, levels, memory = measured("wide", 10_000, 10_000)
    case = f"wide: 1e4 rows, p = 1e4, {levels:.0f} levels, peak memory"
    rows.append(Row(case, time, target=MEMORY, figure=memory, unit="of X"))
    report("size", rows)


if __name__ == "__main__":
    main()
