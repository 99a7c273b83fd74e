"""Growing forests from bins against scikit-learn's forests, on the same rows and one thread.

Classes and numbers follow a product and a sum of normal features with noise, as in benchmarks.cart, but
that columns are shuffled: equal cuts that go to the first column flatter whoever finds what tells
something there. Beside them the tables of the directory CERTREE_DATA, three quarters of whose rows
grow the trees; categories are codes, that are compared like numbers as scikit-learn does, and once
more as sets. Trees are full, on bootstrap samples; they look at the square root of the features for
classes, at all for numbers. Of numbers there are a tenth as many trees.

Times are CPU times of one fit each, bins included. The figure is certree's over scikit-learn's; the
targets are 1/15 for classes and 1/10 for numbers on the synthetic rows. Errors of the other rows (for
numbers, root mean squared errors over the standard deviation) stand in the cases: ours, ours with bins
that are not fine at the ends, ours with sets of categories where there are some, and scikit-learn's.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

from benchmarks.cart import TEST_ROWS, drawn
from benchmarks.defaults import REGRESSION, tables
from benchmarks.timing import Row, report
from certree.grow import BinnedGrower, Bins
from certree.tree import Trees

TABLES = (
    "adult", "letter", "satimage", "magic04", "credit_default", "electricity", "bank_marketing",
    "california_housing", "diamonds",
)  # fmt: skip

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of one run, and what it returns."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def error(said: np.ndarray, y: np.ndarray) -> float:
    """Share of rows that a forest is wrong about; of numbers, the error over the deviation."""
    if said.ndim == 2:
        return float(np.mean(said.argmax(axis=1) != y))
    return float(np.sqrt(np.mean((said - y) ** 2)) / np.std(y))


def fitted(X: np.ndarray, y: np.ndarray, n_trees: int, options: dict[str, Any]) -> Trees:
    """Our forest; classes are whole."""
    options = dict(options)
    bins = Bins.from_table(
        X, options.pop("categorical", None), fine_ends=options.pop("fine_ends", True)
    )
    p = X.shape[1]
    options = {"bootstrap": True, "order": "depth", **options}
    if y.dtype.kind == "f":
        forest = BinnedGrower(bins, max_features=p, **options).grow_numbers(y, n_trees)
        return forest.trees.with_value(forest.means()[:, None])
    n_classes = int(y.max()) + 1
    grower = BinnedGrower(bins, max_features=max(1, int(np.sqrt(p))), **options)
    forest = grower.grow_classes(y, n_classes, n_trees)
    table = forest.class_weights(n_classes)
    return forest.trees.with_value(table / table.sum(axis=1, keepdims=True))


def ours(parts: Parts, n_trees: int, **options: Any) -> tuple[float, float]:
    """CPU time of a fit, and the error."""
    X, X_test, y, y_test = parts
    seconds, trees = cpu(lambda: fitted(X, y, n_trees, options))
    total = trees.add(np.zeros((trees.value.shape[1], len(X_test))), X_test, 1).T / n_trees
    return seconds, error(total if y.dtype.kind != "f" else total[:, 0], y_test)


def compared(name: str, parts: Parts, peer: Any, target: float | None, **options: Any) -> Row:
    """One fit of each, and the errors."""
    X, X_test, y, y_test = parts
    seconds, own = ours(parts, peer.n_estimators, **options)
    errors = [own, ours(parts, peer.n_estimators, **{**options, "fine_ends": False})[1]]
    if "categorical" in options:
        codes = {k: v for k, v in options.items() if k != "categorical"}
        seconds, own = ours(parts, peer.n_estimators, **codes)
        errors = [own, ours(parts, peer.n_estimators, **codes, fine_ends=False)[1], errors[0]]
    peer_seconds, _ = cpu(lambda: peer.fit(X, y))
    says = peer.predict if y.dtype.kind == "f" else peer.predict_proba
    said = " / ".join(f"{one:.4f}" for one in [*errors, error(says(X_test), y_test)])
    case = f"{name}, {len(X)} rows, p = {X.shape[1]}, {peer.n_estimators} trees, errors {said}"
    return Row(case, seconds, type(peer).__name__, peer_seconds, target)


def synthetic(n: int, n_trees: int) -> list[Row]:
    """Classes by forests and extra trees, and numbers."""
    X, signal = drawn(n, 28)
    X = np.ascontiguousarray(X[:, np.random.default_rng(5).permutation(28)], dtype=np.float64)
    y = (signal > 0).astype(np.int32)
    classes = X[:n], X[n : n + TEST_ROWS], y[:n], y[n:]
    numbers = *classes[:2], signal[:n], signal[n:]
    forest = RandomForestClassifier(n_trees, random_state=0)
    extra = ExtraTreesClassifier(n_trees, random_state=0)
    few = RandomForestRegressor(max(1, n_trees // 10), random_state=0)
    return [
        compared("classes", classes, forest, 1 / 15),
        compared("classes", classes, extra, None, bootstrap=False, random_cuts=True),
        compared("numbers", numbers, few, 1 / 10),
    ]


def of_tables(directory: Path, n_trees: int) -> list[Row]:
    """The same on public tables."""
    rows = []
    for name, data in tables(directory).items():
        if name not in TABLES:
            continue
        order = np.random.default_rng(0).permutation(len(data.y))
        grow, test = np.split(order, [3 * len(order) // 4])
        y = data.y.astype(np.float64 if name in REGRESSION else np.int32)
        X = np.ascontiguousarray(np.nan_to_num(data.X, nan=-1.0))
        parts = X[grow], X[test], y[grow], y[test]
        peer: Any = RandomForestClassifier(n_trees, random_state=0)
        if name in REGRESSION:
            peer = RandomForestRegressor(max(1, n_trees // 10), random_state=0)
        sets = {"categorical": data.categorical} if data.categorical.any() else {}
        rows.append(compared(name, parts, peer, None, **sets))
    return rows


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the synthetic cases")
    parser.add_argument("--trees", type=int, default=100, help="trees of a forest of classes")
    options = parser.parse_args()
    rows = synthetic(options.rows, options.trees)
    directory = os.environ.get("CERTREE_DATA")
    if directory:
        rows += of_tables(Path(directory), options.trees)
    report("forest_growth", rows)


if __name__ == "__main__":
    main()
