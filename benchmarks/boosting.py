"""Boosted trees whose prunings vote against LightGBM, HistGradientBoosting, CatBoost and XGBoost.

On every table of the directory CERTREE_DATA and of its folder `more`, and on those that ship with
scikit-learn, from 300 to 3000 training rows: error and log loss (root mean squared error over the
standard deviation, of numbers), and seconds of CPU of a fit. All at their defaults, with native
categories where they have them, one thread each; "early stopping" is LightGBM at rate .05 with 15 % of
the rows out, patience 50 and at most 2000 rounds. Peers that are not installed are left out.

Prints mean ranks, and geometric means of the ratios to each peer; losses below .001 count as .001.
Tables whose `sha256(name)` is even choose defaults, so goals count on the others; both are printed.
Every fit is a line of results/boosting.csv; fits that stand there already are not made again.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.defaults import Data
from benchmarks.learning_curves import NUMBERS, chooses, every_table, parts_of
from benchmarks.records import RESULTS, known, store
from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor

SIZES = (300, 1000, 3000)
SPLITS = 3
OURS = "certree"
LEAST = 1e-3
# Goals of the tables that count: our loss over the peer's.
CLASSES = {"LightGBM": 0.78, "early stopping": 0.88, "CatBoost": 0.90}
OF_NUMBERS = {"LightGBM": 0.90, "CatBoost": 0.98}


class EarlyStopping:
    """LightGBM that keeps rows out to choose its rounds."""

    def __init__(self, model: Any, numbers: bool, where: list[int]) -> None:
        self.model, self.numbers, self.where = model, numbers, where

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Keep 15 % of the rows out, of each class if that can be."""
        import lightgbm

        strata = None if self.numbers or np.bincount(y).min() < 2 else y
        try:
            split = train_test_split(X, y, test_size=0.15, random_state=0, stratify=strata)
        except ValueError:
            split = train_test_split(X, y, test_size=0.15, random_state=0)
        grow, judge, y_grow, y_judge = split
        if not self.numbers:
            known = np.isin(y_judge, y_grow)
            judge, y_judge = judge[known], y_judge[known]
        self.classes = None if self.numbers else np.unique(y)
        patience = lightgbm.early_stopping(50, verbose=False)
        self.model.fit(
            grow,
            y_grow,
            eval_set=[(judge, y_judge)],
            callbacks=[patience],
            categorical_feature=self.where,
        )

    def predict(self, X: np.ndarray) -> np.ndarray:
        """As the model says."""
        return self.model.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """As the model says; classes that it has not seen have no share."""
        shares = np.zeros((len(X), len(self.classes)))
        shares[:, np.searchsorted(self.classes, self.model.classes_)] = self.model.predict_proba(X)
        return shares


class WithCategories:
    """A peer that is told which columns hold categories when it is fitted, or that takes a frame."""

    def __init__(self, model: Any, where: list[int], as_text: bool) -> None:
        self.model, self.where, self.as_text = model, where, as_text

    def _frame(self, X: np.ndarray) -> Any:
        if not self.as_text or not self.where:
            return X
        import pandas as pd

        frame = pd.DataFrame(X)
        for j in self.where:
            frame[j] = frame[j].map(lambda code: "?" if np.isnan(code) else str(int(code)))
        return frame

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit with categories."""
        name = "cat_features" if self.as_text else "categorical_feature"
        self.model.fit(self._frame(X), y, **({name: self.where} if self.where else {}))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """As the model says."""
        return np.ravel(self.model.predict(self._frame(X)))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """As the model says."""
        return self.model.predict_proba(self._frame(X))


def methods(data: Data, numbers: bool) -> dict[str, Callable[[], Any]]:
    """What is compared."""
    where = np.flatnonzero(data.categorical).tolist()
    few = all(len(np.unique(data.X[:, j])) <= 255 for j in where)
    ours = BoostedTreesRegressor if numbers else BoostedTreesClassifier
    boosting = HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier
    found: dict[str, Callable[[], Any]] = {
        OURS: lambda: ours(categorical_features=data.categorical, random_state=0),
        "HistGradientBoosting": lambda: boosting(
            categorical_features=where if few and where else None, random_state=0
        ),
    }
    if find_spec("lightgbm"):
        import lightgbm

        light = lightgbm.LGBMRegressor if numbers else lightgbm.LGBMClassifier
        plain = {"verbose": -1, "n_jobs": 1, "random_state": 0}
        slow = {**plain, "learning_rate": 0.05, "n_estimators": 2000}
        found["LightGBM"] = lambda: WithCategories(light(**plain), where, as_text=False)
        found["early stopping"] = lambda: EarlyStopping(light(**slow), numbers, where)
    if find_spec("catboost"):
        import catboost

        cat = catboost.CatBoostRegressor if numbers else catboost.CatBoostClassifier
        quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "random_seed": 0}
        found["CatBoost"] = lambda: WithCategories(cat(**quiet), where, as_text=True)
    if find_spec("xgboost"):
        import xgboost

        extreme = xgboost.XGBRegressor if numbers else xgboost.XGBClassifier
        found["XGBoost"] = lambda: extreme(n_jobs=1, random_state=0)
    return found


def judged(model: Any, parts: tuple[np.ndarray, ...], numbers: bool) -> dict[str, float]:
    """Error, log loss and seconds of CPU of a fit."""
    X, y, X_test, y_test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes rarer than folds; names of features
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        if numbers:
            error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / np.std(y_test)
            return {"error": float(error), "log_loss": np.nan, "seconds": seconds}
        shares = model.predict_proba(X_test)
    shares = np.clip(shares, 1e-15, 1)
    loss = log_loss(y_test, shares / shares.sum(axis=1, keepdims=True), labels=np.unique(y))
    error = np.mean(shares.argmax(axis=1) != y_test)
    return {"error": float(error), "log_loss": float(loss), "seconds": seconds}


def cells(options: argparse.Namespace, directory: Path) -> Iterator[tuple[str, int, int, Data]]:
    """Tables at numbers of rows, split by split."""
    found = every_table(directory)
    for split in range(options.splits):
        for n in options.sizes:
            for name, data in found.items():
                if n <= 0.75 * len(data.y) and name not in options.without:
                    yield name, n, split, data


def standings(rows: list[dict[str, Any]], field: str) -> dict[str, tuple[float, float]]:
    """Of every method its mean rank and the geometric mean of ours over its, the best one first."""
    table: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for row in rows:
        cell = table.setdefault((row["table"], row["rows"]), {})
        cell.setdefault(row["method"], []).append(max(row[field], LEAST))
    names = sorted({method for cell in table.values() for method in cell})
    full = [cell for cell in table.values() if len(cell) == len(names)]
    if not full or OURS not in names:
        return {}
    means = np.array([[np.mean(cell[name]) for name in names] for cell in full])
    ranks = rankdata(means, axis=1).mean(axis=0)
    ratios = np.exp(np.mean(np.log(means[:, [names.index(OURS)]] / means), axis=0))
    told = zip(names, ranks.tolist(), ratios.tolist(), strict=True)
    return {name: (rank, ratio) for name, rank, ratio in sorted(told, key=lambda one: one[1])}


def compare(rows: list[dict[str, Any]], title: str, goals: dict[str, float], field: str) -> None:
    """Mean ranks, and ratios of ours to the peers."""
    print(f"{title}, {field}")
    for name, (rank, ratio) in standings(rows, field).items():
        goal = goals.get(name)
        verdict = "" if goal is None else f" (<= {goal}: {'met' if ratio <= goal else 'MISSED'})"
        print(f"   {name:22} rank {rank:.2f}, ours / its {ratio:.3f}{verdict}")


def summary(rows: list[dict[str, Any]]) -> None:
    """Print all comparisons."""
    for chose in (False, True):
        part = [row for row in rows if chooses(row["table"]) == chose]
        kind = "tables that chose" if chose else "tables that count"
        classes = [row for row in part if row["table"] not in NUMBERS]
        numbers = [row for row in part if row["table"] in NUMBERS]
        for few, words in ((None, "all"), (True, "below 1000 rows"), (False, "from 1000 rows")):
            some = [row for row in classes if few is None or (row["rows"] < 1000) == few]
            compare(some, f"{kind}, classes, {words}", {}, "error")
            compare(some, f"{kind}, classes, {words}", CLASSES if few is None else {}, "log_loss")
            some = [row for row in numbers if few is None or (row["rows"] < 1000) == few]
            compare(some, f"{kind}, numbers, {words}", OF_NUMBERS if few is None else {}, "error")
        compare(classes, f"{kind}, classes, seconds", {}, "seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[*SIZES])
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--methods", nargs="+", help="of which alone fits are made")
    parser.add_argument("--without", nargs="*", default=[], help="tables to leave out")
    parser.add_argument("--again", action="store_true", help="make our fits again")
    parser.add_argument("--file", type=Path, default=RESULTS / "boosting.csv")
    options = parser.parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("boosting: skipped, CERTREE_DATA names no directory of tables")
        return
    rows = known(options.file)
    if options.again:
        rows = [row for row in rows if row["method"] != OURS]
    done = {(row["table"], row["rows"], row["split"], row["method"]) for row in rows}
    for name, n, split, data in cells(options, Path(directory)):
        numbers = name in NUMBERS
        parts = parts_of(data, n, split, numbers)
        for label, made in methods(data, numbers).items():
            if (name, n, split, label) in done or label not in (options.methods or [label]):
                continue
            figures = judged(made(), parts, numbers)
            rows.append({"table": name, "rows": n, "split": split, "method": label, **figures})
            store(options.file, rows, added=bool(done))
        print(name, n, split, flush=True)
    summary(rows)


if __name__ == "__main__":
    main()
