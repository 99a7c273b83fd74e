"""Boosted trees on sparse rows against LightGBM: CPU seconds, and memory beyond the input.

20,000 rows of 50,000 features with about 100 values each: words by Zipf's law as they occur (one-hot)
and as tf-idf, and features drawn alike. 30 rounds of 31 leaves, one thread. Each fit runs in a new
process, after a fit to few rows; both take turns, and medians count. Target: at most 1.5 times
LightGBM's time and memory.
"""

import time
from typing import Any

import numpy as np
import typer
from scipy import sparse

from benchmarks.memory import PEER, measure_rise
from benchmarks.peers import make_lightgbm
from benchmarks.results import Row, report
from benchmarks.timing import measure_seconds, run_in_new_process
from certree import BoostedTreesClassifier

P, VALUES, FEW, GOAL = 50_000, 100, 500, 1.5
KINDS = ("one-hot words", "tf-idf", "features alike")


def draw_table(kind: str, n: int) -> tuple[Any, np.ndarray]:
    """Return rows, and classes that depend on some of the first 2000 features."""
    rng = np.random.default_rng(0)
    often = np.ones(P) if kind == "features alike" else 1 / (np.arange(P) + 10)
    drawn = np.searchsorted(np.cumsum(often / often.sum()), rng.random((n, VALUES)))
    # A drawn feature may be P by rounding.
    rows, shape = np.repeat(np.arange(n), VALUES), (n, P + 1)
    X = sparse.csr_array((np.ones(n * VALUES), (rows, drawn.ravel())), shape=shape)[:, :P]
    if kind == "tf-idf":
        X.data *= np.log(n / np.bincount(X.indices, minlength=P)[X.indices]) + 1
        X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    else:
        X.data[:] = 1
    weights = np.zeros(P)
    weights[rng.integers(0, 2000, 200)] = rng.normal(size=200)
    score = X @ weights
    noisy = score + score.std() / 2 * rng.normal(size=n)
    return X, (noisy > np.median(score)).astype(int)


def measure(kind: str, name: str, n: int) -> tuple[float, float, float]:
    """Return CPU seconds and MB of a fit, and CPU seconds of a prediction."""
    X, y = draw_table(kind, n)

    def make() -> Any:
        if name == PEER:
            return make_lightgbm("Classifier", n_estimators=30, num_leaves=31)
        return BoostedTreesClassifier(max_iter=30, max_leaf_nodes=31, random_state=0, n_jobs=1)

    make().fit(X[:FEW], y[:FEW]).predict(X[:FEW])
    model, start = make(), time.process_time()
    memory = measure_rise(lambda: model.fit(X, y))
    seconds = time.process_time() - start
    return seconds, memory, measure_seconds(lambda: model.predict(X), time.process_time)


def main(rows: int = 20_000, only: str = "", repeats: int = 3) -> None:
    """Measure all kinds of rows; only: one of them."""
    found = []
    for kind in [only] if only else KINDS:
        runs = [
            [run_in_new_process(measure, kind, name, rows) for name in ("certree", PEER)]
            for _ in range(repeats)
        ]
        (fit, memory, predict), (peer_fit, peer_memory, peer_predict) = np.median(
            runs, axis=0
        ).tolist()
        case = f"memory of a fit, {kind}: {memory:.0f} MB to {peer_memory:.0f} MB"
        found += [
            Row(f"fit, {kind}", fit, PEER, peer_fit, target=GOAL),
            Row(case, None, PEER, None, target=GOAL, figure=memory / peer_memory),
            Row(f"predict, {kind}", predict, PEER, peer_predict, target=GOAL),
        ]
    report("sparse", found)


if __name__ == "__main__":
    typer.run(main)
