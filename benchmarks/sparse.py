"""Boosted trees on sparse rows against LightGBM: seconds, and memory beyond the input.

20,000 rows of 50,000 features have about 100 values each: words drawn by Zipf's law as they occur
(one-hot) and as tf-idf, and features drawn alike. Both make 30 rounds of trees of 31 leaves and are
else at their defaults, one thread each. Every figure is that of a process of its own, after the same
on a few rows; the two take turns, and medians count. Seconds are of CPU; memory is how far a fit
raises what is in use. Goal: at most 1.5 of LightGBM's time and memory of a fit, and of its time of a
prediction.

That the bits are those of the dense table is for tests/ensembles/test_boosting_sparse.py to say.
"""

import argparse
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.memory import PEER, rise
from benchmarks.timing import Row, report

N, P, VALUES, FEW = 20_000, 50_000, 100, 500
OURS, GOAL = "certree", 1.5
KINDS = ("one-hot words", "tf-idf", "features alike")


def table(kind: str, n: int) -> tuple[Any, np.ndarray]:
    """Rows, and classes that some of the first 2000 features tell something of."""
    rng = np.random.default_rng(0)
    often = np.ones(P) if kind == "features alike" else 1 / (np.arange(P) + 10)
    drawn = np.searchsorted(np.cumsum(often / often.sum()), rng.random((n, VALUES)))
    rows = np.repeat(np.arange(n), VALUES)
    shape = n, P + 1  # a number may be beyond the last by rounding
    X = sparse.csr_array((np.ones(n * VALUES), (rows, drawn.ravel())), shape=shape)[:, :P]
    if kind == "tf-idf":
        in_rows = np.bincount(X.indices, minlength=P)
        X.data *= np.log(n / in_rows[X.indices]) + 1
        lengths = np.sqrt(X.multiply(X).sum(axis=1))
        X.data /= np.repeat(lengths, np.diff(X.indptr))
    else:
        X.data[:] = 1
    slopes = np.zeros(P)
    slopes[rng.integers(0, 2000, 200)] = rng.normal(size=200)
    said = X @ slopes
    noisy = said + said.std() / 2 * rng.normal(size=n)
    return X, (noisy > np.median(said)).astype(int)


def model_of(name: str) -> Any:
    """A model of 30 rounds of 31 leaves."""
    if name == PEER:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=30, num_leaves=31, n_jobs=1, verbose=-1)
    from certree.ensembles import BoostedTreesClassifier

    return BoostedTreesClassifier(max_iter=30, max_leaf_nodes=31, random_state=0, n_jobs=1)


def print_case(kind: str, name: str, n: int) -> None:
    """Print seconds and memory of a fit, and seconds of a prediction; in a process of its own."""
    X, y = table(kind, n)
    model_of(name).fit(X[:FEW], y[:FEW]).predict(X[:FEW])
    model = model_of(name)
    start = time.process_time()
    memory = rise(lambda: model.fit(X, y))
    took, start = time.process_time() - start, time.process_time()
    model.predict(X)
    print(took, memory, time.process_time() - start)


def measured(kind: str, name: str, n: int) -> tuple[float, ...]:
    """What `print_case` prints."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.sparse", "--rows", str(n)]
    done = subprocess.run(
        [*command, "--case", kind, name], check=True, capture_output=True, text=True
    )
    return tuple(map(float, done.stdout.split()))


def rows_of(kind: str, n: int, repeats: int) -> list[Row]:
    """The lines of one kind of rows."""
    found = [[measured(kind, name, n) for name in (OURS, PEER)] for _ in range(repeats)]
    ours, theirs = (
        [statistics.median(run[who][figure] for run in found) for figure in range(3)]
        for who in (0, 1)
    )
    memory = f"memory of a fit, {kind}: {ours[1]:.0f} MB to {theirs[1]:.0f} MB"
    return [
        Row(f"fit, {kind}", ours[0], PEER, theirs[0], target=GOAL),
        Row(memory, None, PEER, None, target=GOAL, figure=ours[1] / theirs[1]),
        Row(f"predict, {kind}", ours[2], PEER, theirs[2], target=GOAL),
    ]


def main() -> None:
    """Measure all kinds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=N)
    parser.add_argument("--kinds", nargs="*", default=[*KINDS])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print_case(*options.case, options.rows)
        return
    found = [rows_of(kind, options.rows, options.repeats) for kind in options.kinds]
    report("sparse", [row for rows in found for row in rows])


if __name__ == "__main__":
    main()
