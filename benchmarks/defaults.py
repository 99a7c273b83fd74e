"""Which defaults of the PAC-Bayes trees are best: test error, log loss and time on public tables.

Every candidate is fitted on 70 % of the rows of each table in the directory CERTREE_DATA and in its
folder `more`, three splits, one thread. Strings are categories. The error of a number is its root mean
squared error over the standard deviation of the test rows. The peer is scikit-learn's tree, pruned by
cost-complexity with 30 values of ccp_alpha and five folds (`--peer`; it takes most of the time), with
categories as numbers in the order of their names. Prints, and writes to results/defaults.csv, the
figures of each candidate by table, and prints the means over tables of their ratios to the first
candidate.
"""

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from sklearn.base import clone, is_classifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.records import RESULTS, store
from certree import (
    Cart,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeRegressor,
    Voting,
)

SPLITS = 3
REGRESSION = {
    *(
        "abalone",
        "airfoil_self_noise",
        "auto_mpg",
        "bike_sharing",
        "california_housing",
        "concrete",
    ),
    *("diamonds", "energy_efficiency", "parkinsons_updrs"),
}


class Data(NamedTuple):
    """A table: categories are codes, and `categorical` says where."""

    X: np.ndarray
    y: np.ndarray
    categorical: np.ndarray


def classifiers(categorical: np.ndarray) -> dict[str, Any]:
    """Classifiers by what sets them apart."""
    base: dict[str, Any] = {"categorical_features": categorical, "random_state": 0}
    gini = {"grower": Cart(criterion="gini")}
    error = {**base, "search": "joint", "scoring": "error", "vote": "majority", "cv": 5}
    one = {**base, "search": "joint", "scoring": "log_loss", "cv": 5}
    mixed = {**base, "search": "mixture", "scoring": "log_loss", "cv": 3}
    choices = {
        "one law, majority, error, cv 2, Gini": {**error, **gini, "cv": 2},
        "one law, majority, error": error,
        "one law, mean, error": {**error, "vote": "mean"},
        "one law, mean, log loss": one,
        "one law, mean, log loss, cv 2": {**one, "cv": 2},
        "mixture": mixed,
        "mixture, cv 2": {**mixed, "cv": 2},
        "mixture, cv 5": {**mixed, "cv": 5},
        "mixture, cv 10": {**mixed, "cv": 10},
        "mixture, not smoothed": {**mixed, "vote": Voting("mean", 0.0)},
        "mixture, smoothing 0.5": {**mixed, "vote": Voting("mean", 0.5)},
        "mixture, smoothing 2": {**mixed, "vote": Voting("mean", 2.0)},
        "mixture, leaves": {**mixed, "prior": "leaves"},
        "mixture, branching": {**mixed, "prior": "branching"},
        "mixture, Gini": {**mixed, **gini},
        "mixture, KD": {**mixed, "grower": "kd"},
    }
    return {name: PACBayesTreeClassifier(**choice) for name, choice in choices.items()}


def regressors(categorical: np.ndarray) -> dict[str, Any]:
    """Regressors by what sets them apart."""
    base: dict[str, Any] = {"categorical_features": categorical, "random_state": 0}
    one = {**base, "lambda_penalty": 0.0, "search": "joint"}
    leaves, branching = ({**one, "prior": prior} for prior in ("leaves", "branching"))
    return {
        "one pruning": PrunedTreeRegressor(**base),
        "one pruning, sibling-merge": PrunedTreeRegressor(rule="sibling-merge", **base),
        "mixture": PACBayesTreeRegressor(**base),
        "mixture, cv 3": PACBayesTreeRegressor(cv=3, **base),
        "mixture, cv 10": PACBayesTreeRegressor(cv=10, **base),
        "mixture, not smoothed": PACBayesTreeRegressor(smoothing=0.0, **base),
        "mixture, leaves": PACBayesTreeRegressor(prior="leaves", **base),
        "mixture, KD": PACBayesTreeRegressor("kd", **base),
        "leaves": PACBayesTreeRegressor(**leaves),
        "leaves, cv 3": PACBayesTreeRegressor(cv=3, **leaves),
        "leaves, not smoothed": PACBayesTreeRegressor(smoothing=0.0, **leaves),
        "leaves, smoothing 5": PACBayesTreeRegressor(smoothing=5.0, **leaves),
        "leaves, penalty tuned": PACBayesTreeRegressor(**{**leaves, "lambda_penalty": None}),
        "branching": PACBayesTreeRegressor(**branching),
        "branching, smoothing 5": PACBayesTreeRegressor(smoothing=5.0, **branching),
    }


def pruned_cart(X: np.ndarray, y: np.ndarray, tree: Any = None) -> GridSearchCV:
    """scikit-learn's tree with 30 values of ccp_alpha along its own path, five folds.

    The values are even in their logs: nearly all prices of a path are small, and the few large ones
    are those that matter on noisy tables.
    """
    tree = DecisionTreeClassifier(random_state=0) if tree is None else tree
    path = clone(tree).cost_complexity_pruning_path(X, y).ccp_alphas
    positive = path[path > path.max() * 1e-9]
    alphas = np.geomspace(positive.min(), positive.max(), 29) if len(positive) else []
    return GridSearchCV(tree, {"ccp_alpha": [0.0, *alphas]}, cv=5)


def tables(directory: Path) -> dict[str, Data]:
    """All tables; the target is in the last column."""
    found = {}
    for file in [*sorted(directory.glob("*.parquet")), *sorted(directory.glob("more/*.parquet"))]:
        columns = pa.parquet.read_table(file)
        *names, last = columns.column_names
        features = np.column_stack([_numbers(columns.column(name)) for name in names])
        categorical = np.array([_holds_names(columns.column(name)) for name in names])
        target = columns.column(last).to_numpy()
        if file.stem not in REGRESSION:
            target = np.unique(target, return_inverse=True)[1]
        found[file.stem] = Data(features, target, categorical)
    return found


def _holds_names(column: pa.ChunkedArray) -> bool:
    return pa.types.is_large_string(column.type) or pa.types.is_string(column.type)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    if _holds_names(column):
        return np.unique(column.to_numpy(), return_inverse=True)[1].astype(float)
    return column.cast(pa.float64()).to_numpy()


def main() -> None:
    """Measure all candidates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true", help="measure scikit-learn's tree as well")
    options = parser.parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("defaults: skipped, CERTREE_DATA names no directory of tables")
        return
    rows: list[dict[str, Any]] = []
    for name, data in tables(Path(directory)).items():
        rows += measured(name, data, options.peer)
        report([row for row in rows if row["table"] == name], name)
    for numbers in (False, True):
        summary([row for row in rows if (row["table"] in REGRESSION) == numbers])
    store(RESULTS / "defaults.csv", rows)


def measured(name: str, data: Data, peer: bool) -> list[dict[str, Any]]:
    """Figures of every candidate on every split of one table."""
    numbers = name in REGRESSION
    rows = []
    for split in range(SPLITS):
        stratify = None if numbers else data.y
        parts = train_test_split(
            data.X, data.y, test_size=0.3, random_state=split, stratify=stratify
        )
        models = (regressors if numbers else classifiers)(data.categorical)
        if peer:
            tree = (DecisionTreeRegressor if numbers else DecisionTreeClassifier)(random_state=0)
            models["scikit-learn, pruned"] = pruned_cart(parts[0], parts[2], tree)
        for label, model in models.items():
            rows.append({"table": name, "split": split, "candidate": label, **judge(model, parts)})
    return rows


def judge(model: Any, parts: list[np.ndarray]) -> dict[str, float]:
    """Test error, log loss (of classes) and seconds of a fit."""
    X, X_test, y, y_test = parts
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes rarer than folds
        model.fit(X, y)
    seconds = time.perf_counter() - start
    distance = model.predict(X_test) - y_test
    if is_classifier(model):
        error = np.mean(distance != 0)
        shares = np.clip(model.predict_proba(X_test), 1e-15, 1)
        loss = log_loss(y_test, shares, labels=model.classes_)
    else:
        error, loss = np.sqrt(np.mean(distance**2)) / np.std(y_test), np.nan
    figures = {"error": error, "log_loss": loss, "seconds": seconds}
    return {name: round(float(figure), 5) for name, figure in figures.items()}


def mean(rows: list[dict[str, Any]], label: str, figure: str) -> float:
    """Mean of a figure of one candidate."""
    return float(np.mean([row[figure] for row in rows if row["candidate"] == label]))


def report(rows: list[dict[str, Any]], name: str) -> None:
    """Print the means of one table."""
    print(name)
    for label in dict.fromkeys(row["candidate"] for row in rows):
        figures = [mean(rows, label, figure) for figure in ("error", "log_loss", "seconds")]
        print("  {:<38} error {:.4f}  log loss {:.3f}  {:.2f} s".format(label, *figures))


def summary(rows: list[dict[str, Any]]) -> None:
    """Print the means over tables of the ratios to the first candidate."""
    labels = list(dict.fromkeys(row["candidate"] for row in rows))
    groups = [
        [row for row in rows if row["table"] == name]
        for name in dict.fromkeys(row["table"] for row in rows)
    ]
    print("mean over tables of the ratio to the first candidate")
    for label in labels:
        ratios = [
            np.mean(
                [mean(group, label, figure) / mean(group, labels[0], figure) for group in groups]
            )
            for figure in ("error", "log_loss", "seconds")
        ]
        print("  {:<38} error {:.3f}  log loss {:.3f}  time {:.2f}".format(label, *ratios))


if __name__ == "__main__":
    main()
