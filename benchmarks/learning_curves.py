"""The default trees against tuned trees and ensembles as they come, from 100 to 5000 training rows.

On every table of the directory CERTREE_DATA and of its folder `more`, and on those that ship with
scikit-learn: error and log loss (root mean squared error over the standard deviation, of numbers) and
seconds of a fit. The peers are scikit-learn's tree, its price among 30 and its criterion chosen by five
folds, with Laplace's rule in its leaves; its random forest and gradient boosting; and LightGBM, if it
is installed. Strings are categories; to scikit-learn's tree and forest numbers in the order of their
names. One thread.

A cell is a table at one number of rows. A cell is lost if our error is above the tuned tree's by more
than two standard errors of the paired difference over splits; equal methods lose 2 to 3 % of the cells.
Tables whose `sha256(name)` is even choose defaults, so goals count on the others; both are printed.
Writes every fit to results/learning_curves.csv.
"""

import argparse
import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.defaults import REGRESSION, Data, pruned_cart, tables
from benchmarks.records import RESULTS, store
from certree import PACBayesTreeClassifier, PACBayesTreeRegressor

SIZES = (100, 300, 1000, 3000, 5000)
SMALL, MANY_SPLITS, FEW_SPLITS = 1000, 20, 5
MOST_JUDGING = 4000
OURS, TUNED = "certree", "tuned tree"
SHIPPED = ("iris", "breast_cancer", "wine", "digits", "diabetes")
NUMBERS = {*REGRESSION, "sklearn_diabetes"}


def chooses(name: str) -> bool:
    """Whether defaults are chosen on a table."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 0


def every_table(directory: Path) -> dict[str, Data]:
    """The tables at hand."""
    found = tables(directory)
    for name in SHIPPED:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        found[f"sklearn_{name}"] = Data(X, y, np.zeros(X.shape[1], dtype=bool))
    return found


class TunedTree:
    """scikit-learn's tree with the criterion and the price that five folds like best."""

    def __init__(self, numbers: bool) -> None:
        self.numbers = numbers

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Try both criteria with 30 prices each."""
        criteria = ("squared_error",) if self.numbers else ("gini", "entropy")
        tried: list[GridSearchCV] = []
        for criterion in criteria:
            peer = DecisionTreeRegressor if self.numbers else DecisionTreeClassifier
            tree = peer(criterion=criterion, random_state=0)
            tried.append(pruned_cart(X, y, tree).fit(X, y))
        self.best = max(tried, key=lambda search: search.best_score_).best_estimator_
        rows = self.best.tree_.value[:, 0] * self.best.tree_.n_node_samples[:, None]
        self.shares = (rows + 1) / (rows + 1).sum(axis=1, keepdims=True)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """As the tree says."""
        return self.best.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """By Laplace's rule."""
        return self.shares[self.best.apply(X)]


def methods(data: Data, numbers: bool) -> dict[str, Callable[[], Any]]:
    """What is compared."""
    where = np.flatnonzero(data.categorical)
    trees = [PACBayesTreeClassifier, RandomForestClassifier, HistGradientBoostingClassifier]
    if numbers:
        trees = [PACBayesTreeRegressor, RandomForestRegressor, HistGradientBoostingRegressor]
    ours, forest, boosting = trees
    few = all(len(np.unique(data.X[:, j])) <= 255 for j in where)
    found = {
        OURS: lambda: ours(categorical_features=data.categorical, random_state=0),
        TUNED: lambda: TunedTree(numbers),
        "random forest": lambda: forest(random_state=0),
        "gradient boosting": lambda: boosting(
            categorical_features=where if few else None, random_state=0
        ),
    }
    try:
        import lightgbm
    except ImportError:
        return found
    light = lightgbm.LGBMRegressor if numbers else lightgbm.LGBMClassifier
    return {**found, "LightGBM": lambda: light(verbose=-1, n_jobs=1, random_state=0)}


def parts_of(data: Data, n: int, split: int, numbers: bool) -> tuple[np.ndarray, ...]:
    """Training and validation samples; classes that no training row has are judged by nobody."""
    order = np.random.default_rng(split).permutation(len(data.y))
    train, test = order[:n], order[n : n + MOST_JUDGING]
    y, y_test = data.y[train], data.y[test]
    if not numbers:
        known = np.isin(y_test, y)
        test, y_test = test[known], y_test[known]
        names, y = np.unique(y, return_inverse=True)
        y_test = np.searchsorted(names, y_test)
    return data.X[train], y, data.X[test], y_test


def judged(model: Any, parts: tuple[np.ndarray, ...], numbers: bool) -> dict[str, float]:
    """Error, log loss and seconds of a fit."""
    X, y, X_test, y_test = parts
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes rarer than folds; names of features
        model.fit(X, y)
        seconds = time.perf_counter() - start
        predicted = model.predict(X_test)
        shares = None if numbers else model.predict_proba(X_test)
    if shares is None:
        error, loss = np.sqrt(np.mean((predicted - y_test) ** 2)) / np.std(y_test), np.nan
    else:
        error = np.mean(predicted != y_test)
        loss = log_loss(y_test, np.clip(shares, 1e-15, 1), labels=np.arange(shares.shape[1]))
    return {"error": float(error), "log_loss": float(loss), "seconds": seconds}


def fits(name: str, data: Data, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every fit on one table."""
    numbers = name in NUMBERS
    for n in options.sizes:
        if n > 0.75 * len(data.y):
            continue
        for split in range(options.splits or (MANY_SPLITS if n < SMALL else FEW_SPLITS)):
            parts = parts_of(data, n, split, numbers)
            if not numbers and len(np.unique(parts[1])) < 2:
                continue
            for label, made in methods(data, numbers).items():
                if label in (OURS, TUNED) or not options.trees:
                    figures = judged(made(), parts, numbers)
                    yield {"table": name, "rows": n, "split": split, "method": label, **figures}


def cells(rows: list[dict[str, Any]], method: str) -> dict[tuple[str, int], np.ndarray]:
    """Error, log loss and seconds of a method over the splits, (splits, 3), by cell."""
    found: dict[tuple[str, int], list[list[float]]] = {}
    for row in rows:
        if row["method"] == method:
            figures = [row[name] for name in ("error", "log_loss", "seconds")]
            found.setdefault((row["table"], row["rows"]), []).append(figures)
    return {cell: np.array(figures) for cell, figures in found.items()}


def geometric(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Geometric mean of ratios; a thousandth is added, as errors may be 0."""
    return float(np.exp(np.mean(np.log((ours + 1e-3) / (theirs + 1e-3)))))


def lost(ours: np.ndarray, theirs: np.ndarray) -> int:
    """1 if ours is above theirs by more than two standard errors, -1 if below, else 0."""
    difference = ours - theirs
    beyond = 2 * difference.std(ddof=1) / np.sqrt(len(difference))
    return int(np.sign(difference.mean())) * bool(abs(difference.mean()) > beyond)


def compare(rows: list[dict[str, Any]], peer: str, title: str) -> None:
    """Print how ours compares with a peer."""
    ours, theirs = cells(rows, OURS), cells(rows, peer)
    if not theirs:
        return
    mean = {cell: (ours[cell].mean(axis=0), theirs[cell].mean(axis=0)) for cell in theirs}
    a, b = (np.array([pair[side] for pair in mean.values()]) for side in (0, 1))
    results = [lost(ours[cell][:, 0], theirs[cell][:, 0]) for cell in theirs]
    wins, losses = results.count(-1), results.count(1)
    text = f"{title}, {peer}: {wins} cells won, {losses} of {len(results)} lost"
    text += f"; error {geometric(a[:, 0], b[:, 0]):.3f}"
    if not np.isnan(a[:, 1]).any():
        log_losses = [lost(ours[cell][:, 1], theirs[cell][:, 1]) for cell in theirs]
        text += f"; log loss {geometric(a[:, 1], b[:, 1]):.3f}, lost {log_losses.count(1)}"
    small = np.array([n <= SMALL for _, n in mean])
    for few, words in ((True, f"up to {SMALL} rows"), (False, "above")):
        if (small == few).any():
            ratio = np.exp(np.mean(np.log(a[small == few, 2] / b[small == few, 2])))
            text += f"; time {words} 1/{1 / ratio:.0f}"
    print(text)
    named = [
        f"{name} at {n}" for (name, n), result in zip(theirs, results, strict=True) if result > 0
    ]
    if named:
        print("   lost:", ", ".join(named))


def main() -> None:
    """Measure all tables, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", action="store_true", help="measure single trees alone")
    parser.add_argument("--splits", type=int, help="instead of 20 below 1000 rows and 5 above")
    parser.add_argument("--sizes", type=int, nargs="+", default=[*SIZES])
    options = parser.parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("learning_curves: skipped, CERTREE_DATA names no directory of tables")
        return
    rows: list[dict[str, Any]] = []
    for name, data in every_table(Path(directory)).items():
        rows += fits(name, data, options)
        print(name, flush=True)
    rounded = [
        {key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()}
        for row in rows
    ]
    store(RESULTS / "learning_curves.csv", rounded)
    summary(rows)


def summary(rows: list[dict[str, Any]]) -> None:
    """Print all comparisons, for the tables that count and for those that chose."""
    for chose, title in ((False, "tables that count"), (True, "tables that chose")):
        for numbers in (False, True):
            part = [
                row
                for row in rows
                if (row["table"] in NUMBERS) == numbers and chooses(row["table"]) == chose
            ]
            kind = "numbers" if numbers else "classes"
            for peer in dict.fromkeys(row["method"] for row in part):
                if peer != OURS:
                    compare(part, peer, f"{title}, {kind}")


if __name__ == "__main__":
    main()
