"""Boosted trees on many rows: whole tables, and drawn ones, against LightGBM and CatBoost.

Three quarters of adult, bank, electricity, california housing and diamonds, of the directory
CERTREE_DATA, and rows of normal features as in benchmarks.cart with their columns shuffled. All at
their defaults, one thread each. For every case the loss (log loss, or root mean squared error over the
standard deviation) should be at most 1 % above that of the better peer, a fit take at most half of
CatBoost's time and four times LightGBM's, a prediction of 1e5 rows at most LightGBM's time for each
tree, one row at most 30 us beyond the checks of input. Times are CPU times of one run each.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.boosting import OURS, judged, methods
from benchmarks.cart import drawn
from benchmarks.defaults import Data
from benchmarks.learning_curves import NUMBERS, every_table, parts_of

TABLES = ("adult", "bank_marketing", "electricity", "california_housing", "diamonds")
PEERS = ("LightGBM", "CatBoost")
N_FEATURES = 28


def synthetic(n: int) -> Data:
    """Classes that few of many features tell, in no order."""
    X, signal = drawn(n, N_FEATURES)
    order = np.random.default_rng(1).permutation(N_FEATURES)
    return Data(
        np.ascontiguousarray(X[:, order]),
        (signal > 0).astype(int),
        np.zeros(N_FEATURES, dtype=bool),
    )


def least_seconds(run: Any, repeats: int = 3) -> float:
    """CPU time of the fastest of some runs."""
    took = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        took.append(time.process_time() - start)
    return min(took)


def predictions(model: Any, peer: Any, X: np.ndarray) -> str:
    """Time of a prediction for each tree over LightGBM's, and of one row beyond its checks."""
    many = np.resize(X, (100_000, X.shape[1]))
    booster = peer.model.booster_
    ours = least_seconds(
        lambda: model.trees_.add(np.zeros((len(model.start_), len(many))), many, 1)
    )
    theirs = least_seconds(lambda: booster.predict(many, num_threads=1))
    ratio = ours / model.n_iter_ / (theirs / booster.num_trees())
    one = X[:1]
    whole = least_seconds(lambda: [model.predict(one) for _ in range(200)]) / 200
    checks = least_seconds(lambda: [model._encode_new_rows(one) for _ in range(200)]) / 200
    return (
        f"a tree {ratio:.2f} of LightGBM's, one row {1e6 * (whole - checks):.0f} us beyond checks"
    )


def compare(name: str, parts: tuple[np.ndarray, ...], data: Data, numbers: bool) -> None:
    """Print a case."""
    field = "error" if numbers else "log_loss"
    found, models = {}, {}
    for label, made in methods(data, numbers).items():
        if label in (OURS, *PEERS):
            models[label] = made()
            found[label] = judged(models[label], parts, numbers)
    line = [f"{label} {one[field]:.4f} in {one['seconds']:.1f} s" for label, one in found.items()]
    print(f"{name}, {len(parts[1])} rows: " + ", ".join(line))
    peers = [found[label][field] for label in PEERS if label in found]
    if peers:
        ratio = found[OURS][field] / min(peers)
        print(f"   loss {ratio:.3f} of the better peer's ({'met' if ratio <= 1.01 else 'MISSED'})")
    for label, goal in (("CatBoost", 0.5), ("LightGBM", 4.0)):
        if label in found:
            ratio = found[OURS]["seconds"] / found[label]["seconds"]
            verdict = "met" if ratio <= goal else "MISSED"
            print(f"   time {ratio:.2f} of {label}'s (<= {goal}: {verdict})")
    if "LightGBM" in models:
        print("   " + predictions(models[OURS], models["LightGBM"], parts[2]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000])
    parser.add_argument("--tables", nargs="*", default=[*TABLES])
    options = parser.parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if directory:
        found = every_table(Path(directory))
        for name in options.tables:
            data, numbers = found[name], name in NUMBERS
            compare(name, parts_of(data, 3 * len(data.y) // 4, 0, numbers), data, numbers)
    for n in options.rows:
        data = synthetic(n)
        X, y = data.X, data.y
        compare("drawn rows", (X[:n], y[:n], X[n:], y[n:]), data, numbers=False)


if __name__ == "__main__":
    main()
