"""Forests against scikit-learn's, on the same rows and one thread, 100 trees of the same settings.

On every table of the directory CERTREE_DATA and of its folder `more`, and on those that ship with
scikit-learn, at no more than so many training rows: log loss and error (root mean squared error over
the standard deviation, of numbers), and seconds of CPU of a fit and of a prediction. Ours have native
categories; "codes" compares codes like numbers, as scikit-learn does, and "plain" leaves shares in
leaves as they are. In extra trees all have `bootstrap=False`, so leaves are plain, but for "drawn",
which grows on drawn rows.

Prints geometric means of the ratios to scikit-learn, and where ours is worse by more than two standard
errors of the differences row by row. Every fit is a line of results/forest.csv; fits that stand there
already are not made again. Last the size of our file and of scikit-learn's pickle on all of adult.
"""

import argparse
import os
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from benchmarks.defaults import Data
from benchmarks.learning_curves import NUMBERS, chooses, every_table, parts_of
from benchmarks.records import RESULTS, known, store
from certree import TreeForestClassifier, TreeForestRegressor, save

# Losses below count as this.
LEAST = 1e-3
# Goals: log loss and root mean squared error over scikit-learn's, its seconds over ours, and bytes.
LOG_LOSS, RMSE, PREDICT, SIZE = 0.93, 1.00, 4.0, 8e6

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def methods(data: Data, numbers: bool) -> dict[str, dict[str, Callable[[], Any]]]:
    """What is compared: ours by name, beside the peer that it is compared with."""
    ours = TreeForestRegressor if numbers else TreeForestClassifier
    forest = RandomForestRegressor if numbers else RandomForestClassifier
    extra = ExtraTreesRegressor if numbers else ExtraTreesClassifier
    sets = {"categorical_features": data.categorical, "random_state": 0}
    codes = {"categorical_features": None, "random_state": 0}
    one_cut = {**codes, "splitter": "random"}
    return {
        "forest": {
            "scikit-learn": lambda: forest(random_state=0, n_jobs=1),
            "certree": lambda: ours(**sets),
            "codes": lambda: ours(**codes),
            "plain": lambda: ours(leaves="plain", **codes),
        },
        "extra": {
            "scikit-learn": lambda: extra(random_state=0, n_jobs=1),
            "plain": lambda: ours(bootstrap=False, **one_cut),
            "drawn": lambda: ours(**one_cut),
        },
    }


def judged(model: Any, parts: Parts, numbers: bool) -> tuple[dict[str, float], np.ndarray]:
    """Losses and seconds of CPU of one fit, and the loss of each row."""
    X, y, X_test, y_test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(X, y)
        middle = time.process_time()
        said = model.predict(X_test) if numbers else model.predict_proba(X_test)
        end = time.process_time()
    seconds = {"fit": middle - start, "predict": end - middle}
    if numbers:
        losses = (said - y_test) ** 2
        error = float(np.sqrt(losses.mean()) / np.std(y_test))
        return {"loss": error, "error": error, **seconds}, losses
    own = said[np.arange(len(y_test)), np.searchsorted(model.classes_, y_test)]
    losses = -np.log(np.maximum(own, 1e-15))
    wrong = float(np.mean(model.classes_[said.argmax(axis=1)] != y_test))
    return {"loss": float(losses.mean()), "error": wrong, **seconds}, losses


def compared(
    name: str, split: int, data: Data, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Every method on one split of a table."""
    numbers = name in NUMBERS
    n = min(options.rows, int(0.75 * len(data.y)))
    parts = parts_of(data, n, split, numbers)
    rows = []
    for kind, made in methods(data, numbers).items():
        if kind not in options.kinds:
            continue
        peer = np.zeros(0)
        for label, model in made.items():
            figures, losses = judged(model(), parts, numbers)
            peer = losses if label == "scikit-learn" else peer
            difference = losses - peer
            error = difference.std() / np.sqrt(len(difference))
            worse = float(difference.mean() / error) if error > 0 else 0.0
            cell = {"table": name, "rows": n, "split": split, "method": f"{kind}, {label}"}
            rows.append({**cell, **figures, "worse": worse})
    return rows


def ratio(rows: list[dict[str, Any]], method: str, field: str) -> float:
    """Geometric mean of ours over scikit-learn's, tables' splits averaged first."""
    kind = method.split(",")[0]
    sums: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        sums.setdefault(row["method"], {}).setdefault(row["table"], []).append(row[field])
    ours, peers = sums[method], sums[f"{kind}, scikit-learn"]
    least = LEAST if field in ("loss", "error") else 1e-9
    logs = [
        np.log(max(np.mean(ours[name]), least) / max(np.mean(peers[name]), least)) for name in ours
    ]
    return float(np.exp(np.mean(logs)))


def summary(rows: list[dict[str, Any]]) -> None:
    """Print all comparisons."""
    for numbers in (False, True):
        part = [row for row in rows if (row["table"] in NUMBERS) == numbers]
        found = {row["method"] for row in part if not row["method"].endswith("scikit-learn")}
        for method in sorted(found):
            figures = {f: ratio(part, method, f) for f in ("loss", "error", "fit", "predict")}
            counted = [row for row in part if not chooses(row["table"])]
            loss = "RMSE" if numbers else "log loss"
            goal = RMSE if numbers else LOG_LOSS
            verdict = ""
            if method == "forest, certree":
                verdict = f" (<= {goal}: {'met' if figures['loss'] <= goal else 'MISSED'})"
            print(
                f"{method:18} {loss} {figures['loss']:.3f}{verdict}, on tables that count "
                f"{ratio(counted, method, 'loss'):.3f}, error {figures['error']:.3f}, fits "
                f"{1 / figures['fit']:.1f} times as fast, predicts {1 / figures['predict']:.1f}"
            )
            own = [row for row in part if row["method"] == method]
            bad = {row["table"] for row in own if row["worse"] > 2}
            means = {t: np.mean([r["worse"] for r in own if r["table"] == t]) for t in bad}
            if bad:
                words = ", ".join(f"{t} ({z:.1f} on average)" for t, z in sorted(means.items()))
                print(f"   worse by more than two standard errors in a split: {words}")


def sizes(data: Data) -> None:
    """Bytes of models on a whole table."""
    ours = TreeForestClassifier(random_state=0, categorical_features=None).fit(data.X, data.y)
    peer = RandomForestClassifier(random_state=0).fit(data.X, data.y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest.certree"
        save(ours, path)
        size = path.stat().st_size
    verdict = "met" if size <= SIZE else "MISSED"
    whole = len(pickle.dumps(peer))
    print(f"adult: {size / 1e6:.1f} MB (<= 8: {verdict}), scikit-learn's pickle {whole / 1e6:.1f}")


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", default=["forest", "extra"])
    parser.add_argument("--without", nargs="*", default=[], help="tables to leave out")
    parser.add_argument("--file", type=Path, default=RESULTS / "forest.csv")
    options = parser.parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("forest: skipped, CERTREE_DATA names no directory of tables")
        return
    found = every_table(Path(directory))
    rows = known(options.file)
    done = {(row["table"], row["split"]) for row in rows}
    for split in range(options.splits):
        for name, data in found.items():
            if (name, split) in done or name in options.without:
                continue
            rows += compared(name, split, data, options)
            store(options.file, rows, added=bool(done))
            print(name, split, flush=True)
    summary(rows)
    if "adult" in found:
        sizes(found["adult"])


if __name__ == "__main__":
    main()
