"""Fits of the default tree with very many classes: seconds and memory.

Rows are drawn around the centres of their classes in ten columns. Targets: at most 3 s and 1 GB. Each
case runs in a process of its own.
"""

import argparse
import subprocess
import sys

import numpy as np

from benchmarks.timing import Row, peak_kib, report, seconds
from certree import PACBayesTreeClassifier

CASES = ((10_000, 5000), (5000, 1000), (50_000, 1000))
SECONDS, GIGABYTES = 3.0, 1.0


def print_fit(n: int, n_classes: int) -> None:
    """Print the seconds of a fit and the peak memory in GB; runs in the process that is measured."""
    random = np.random.default_rng(0)
    centre = random.normal(size=(n_classes, 10))
    y = random.integers(0, n_classes, n)
    X = centre[y] + 0.3 * random.normal(size=(n, 10))
    model = PACBayesTreeClassifier(random_state=0)
    print(seconds(lambda: model.fit(X, y)), 1024 * peak_kib() / 1e9)


def measured(n: int, n_classes: int) -> tuple[float, float]:
    """Seconds and GB of one case."""
    command = [sys.executable, "-m", "benchmarks.classes", "--case", str(n), str(n_classes)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(found[0]), float(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", type=int, nargs=2)
    options = parser.parse_args()
    if options.case:
        print_fit(*options.case)
        return
    rows = []
    for n, n_classes in CASES:
        taken, memory = measured(n, n_classes)
        case = f"{n} rows, {n_classes} classes"
        rows.append(Row(f"{case}, time", None, target=SECONDS, figure=taken, unit="s"))
        rows.append(Row(f"{case}, peak memory", None, target=GIGABYTES, figure=memory, unit="GB"))
    report("classes", rows)


if __name__ == "__main__":
    main()
