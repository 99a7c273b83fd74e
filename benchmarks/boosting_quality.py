"""What time buys boosted trees: "fast", "default" and "best" beside LightGBM and CatBoost.

On the tables of the directory CERTREE_DATA and of its folder `more` that chose no default, at 300, 1000
and 3000 training rows, and on four tables at 30,000: error and log loss (root mean squared error over
the standard deviation, of numbers), and seconds of CPU of a fit, one thread each, all else as it comes.
Of few rows, "stopped" is ours with `early_stopping`, and "seed 1" the default with another seed.
Every fit is a line of results/boosting_quality.csv; fits that stand there already are not made again.
Prints geometric means over tables of ours over LightGBM's, splits being averaged first.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.boosting import judged
from benchmarks.boosting import methods as as_they_come
from benchmarks.defaults import Data, tables
from benchmarks.learning_curves import NUMBERS, chooses, parts_of
from benchmarks.records import RESULTS, known, store
from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor

FILE = RESULTS / "boosting_quality.csv"
SIZES, MANY = (300, 1000, 3000), 30_000
LARGE = ("adult", "bank_marketing", "electricity", "diamonds")
QUALITIES = ("fast", "default", "best")
STOPPED, AGAIN = "stopped", "seed 1"
PEER, SLOW_PEER = "LightGBM", "CatBoost"


def methods(data: Data, numbers: bool, n: int) -> dict[str, Callable[[], Any]]:
    """What is fitted to so many rows."""
    ours = BoostedTreesRegressor if numbers else BoostedTreesClassifier
    options = {"categorical_features": data.categorical, "random_state": 0, "n_jobs": 1}
    peers = as_they_come(data, numbers)
    found: dict[str, Callable[[], Any]] = {
        name: lambda name=name: ours(quality=name, **options) for name in QUALITIES
    }
    if n < MANY:
        found[STOPPED] = lambda: ours(early_stopping=True, **options)
        found[AGAIN] = lambda: ours(**{**options, "random_state": 1})
    wanted = (PEER, SLOW_PEER) if n == MANY else (PEER,)
    return {**found, **{name: peers[name] for name in wanted if name in peers}}


def cells(directory: Path, splits: int) -> Iterator[tuple[str, int, int, Data]]:
    """Tables at numbers of rows, split by split; of many rows there is one."""
    found = tables(directory)
    for name in LARGE:
        yield name, MANY, 0, found[name]
    for split in range(splits):
        for n in SIZES:
            for name, data in found.items():
                if not chooses(name) and n <= 0.75 * len(data.y):
                    yield name, n, split, data


def ratio(rows: list[dict[str, Any]], method: str, field: str, to: str = PEER) -> float:
    """Geometric mean over tables of what a method has over another, splits being averaged first."""
    logs = []
    for name in dict.fromkeys(row["table"] for row in rows):
        of = {
            key: np.mean([r[field] for r in rows if (r["table"], r["method"]) == (name, key)])
            for key in (method, to)
        }
        logs.append(np.log(of[method] / of[to]))
    return float(np.exp(np.mean(logs)))


def few_rows(rows: list[dict[str, Any]], numbers: bool, n: int) -> list[dict[str, Any]]:
    """The fits of the tables of classes, or of numbers, at so many rows."""
    return [row for row in rows if (row["table"] in NUMBERS) == numbers and row["rows"] == n]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=1)
    directory = os.environ.get("CERTREE_DATA")
    options = parser.parse_args()
    if not directory:
        print("boosting_quality: skipped, CERTREE_DATA names no directory of tables")
        return
    rows = known(FILE)
    done = {(row["table"], row["rows"], row["split"], row["method"]) for row in rows}
    for name, n, split, data in cells(Path(directory), options.splits):
        numbers = name in NUMBERS
        parts = parts_of(data, n, split, numbers)
        for label, made in methods(data, numbers, n).items():
            if (name, n, split, label) not in done:
                place = {"table": name, "rows": n, "split": split, "method": label}
                rows.append({**place, **judged(made(), parts, numbers)})
                store(FILE, rows, added=bool(done))
                print(*rows[-1].values(), flush=True)
    for numbers in (False, True):
        for n in SIZES:
            some = few_rows(rows, numbers, n)
            for method in (*QUALITIES, STOPPED, AGAIN) if some else ():
                loss = ratio(some, method, "error" if numbers else "log_loss")
                time = ratio(some, method, "seconds")
                print(
                    f"{'numbers' if numbers else 'classes'}, {n}, {method}: {loss:.3f}, {time:.2f}"
                )


if __name__ == "__main__":
    main()
