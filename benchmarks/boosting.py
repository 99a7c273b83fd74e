"""Boosted trees whose prunings vote against LightGBM, HistGradientBoosting, CatBoost and XGBoost.

On every table of the directory CERTREE_DATA and of its folder `more`, and on those that ship with
scikit-learn, from 300 to 3000 training rows and, of larger tables, three quarters of the rows and at
most 30,000: error and log loss (root mean squared error over the standard deviation, of numbers), area
under the curve (of two classes), and seconds of CPU of a fit. Ours by default, "fast" and "best"; all
at their defaults, with native categories where they have them, one thread each; "early stopping" is
LightGBM at rate .05 with 15 % of the rows out, patience 50 and at most 2000 rounds. Peers that are not
installed are left out.

Prints mean ranks, and geometric means over tables of the ratios to each peer, with standard errors by
table; losses below .001 count as .001. A cell, a table at one number of rows, is lost to CatBoost if
our loss is larger by two standard errors of the paired difference over splits. Tables whose
`sha256(name)` is even choose defaults, so goals count on the others; both are printed. Every fit is a
line of results/boosting.csv; fits that stand there already are not made again.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.defaults import Data
from benchmarks.learning_curves import NUMBERS, chooses, every_table, parts_of
from benchmarks.records import RESULTS, known, store
from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor

SIZES, MOST = (300, 1000, 3000), 30_000
SPLITS = 3
OURS, FAST, BEST = "certree", "certree fast", "certree best"
LEAST = 1e-3
# Below so large a loss of CatBoost's a table tells nothing of losses.
TELLS = 0.01


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
    options = {"categorical_features": data.categorical, "random_state": 0, "n_jobs": 1}
    found: dict[str, Callable[[], Any]] = {
        OURS: lambda: ours(**options),
        FAST: lambda: ours(quality="fast", **options),
        BEST: lambda: ours(quality="best", **options),
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
    """Error, log loss, area under the curve and seconds of CPU of a fit."""
    X, y, X_test, y_test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes rarer than folds; names of features
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        if numbers:
            error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / np.std(y_test)
            return {"error": float(error), "log_loss": np.nan, "auc": np.nan, "seconds": seconds}
        shares = model.predict_proba(X_test)
    shares = np.clip(shares, 1e-15, 1)
    loss = log_loss(y_test, shares / shares.sum(axis=1, keepdims=True), labels=np.unique(y))
    error = np.mean(shares.argmax(axis=1) != y_test)
    area = np.nan
    if shares.shape[1] == 2 and len(np.unique(y_test)) == 2:
        area = roc_auc_score(y_test, shares[:, 1])
    return {
        "error": float(error),
        "log_loss": float(loss),
        "auc": float(area),
        "seconds": seconds,
    }


def sizes_of(n: int, sizes: Iterable[int]) -> Iterator[int]:
    """Numbers of rows that train of a table of n; the most is what it has, if that is much more."""
    most = min(3 * n // 4, MOST)
    for size in sizes:
        if size <= most or (size == MOST and 2 * most > 3 * SIZES[-1]):
            yield min(size, most)


def cells(options: argparse.Namespace, directory: Path) -> Iterator[tuple[str, int, int, Data]]:
    """Tables at numbers of rows, split by split."""
    found = every_table(directory)
    for split in range(options.splits):
        for name, data in found.items():
            for n in sizes_of(len(data.y), options.sizes):
                if name in (options.tables or found) and name not in options.without:
                    yield name, n, split, data


Fits = list[dict[str, Any]]


def by_cell(rows: Fits, field: str) -> dict[tuple[str, float], dict[str, dict[float, float]]]:
    """Of every cell what each method has in each split."""
    found: dict[tuple[str, float], dict[str, dict[float, float]]] = {}
    for row in rows:
        cell = found.setdefault((row["table"], row["rows"]), {})
        cell.setdefault(row["method"], {})[row["split"]] = max(row[field], LEAST)
    return found


def standings(rows: Fits, field: str, ours: str = OURS) -> dict[str, tuple[float, float]]:
    """Of every method its mean rank and the geometric mean of ours over its, the best one first."""
    others = {OURS, FAST, BEST} - {ours}
    table = by_cell([row for row in rows if row["method"] not in others], field)
    names = sorted({method for cell in table.values() for method in cell})
    full = [cell for cell in table.values() if len(cell) == len(names)]
    if not full or ours not in names:
        return {}
    means = np.array([[np.mean([*cell[name].values()]) for name in names] for cell in full])
    ranks = rankdata(means, axis=1).mean(axis=0)
    ratios = np.exp(np.mean(np.log(means[:, [names.index(ours)]] / means), axis=0))
    told = zip(names, ranks.tolist(), ratios.tolist(), strict=True)
    return {name: (rank, ratio) for name, rank, ratio in sorted(told, key=lambda one: one[1])}


def ratio_by_table(rows: Fits, field: str, ours: str, peer: str) -> tuple[float, float, int]:
    """Geometric mean over tables of ours over the peer's, its standard error, and how many tables."""
    logs: dict[str, list[float]] = {}
    for (name, _), cell in by_cell(rows, field).items():
        both = cell.get(ours, {}).keys() & cell.get(peer, {}).keys()
        if both:
            mine, other = (np.mean([cell[one][split] for split in both]) for one in (ours, peer))
            logs.setdefault(name, []).append(float(np.log(mine / other)))
    means = np.array([np.mean(one) for one in logs.values()])
    if not len(means):
        return np.nan, np.nan, 0
    ratio = float(np.exp(means.mean()))
    error = means.std(ddof=1) / len(means) ** 0.5 if len(means) > 1 else np.nan
    return ratio, ratio * float(error), len(means)


def lost(
    rows: Fits, field: str, peer: str, ours: str = OURS
) -> tuple[list[tuple[str, float]], int]:
    """Cells in which ours loses more by two standard errors, and how many cells there are."""
    found, n_cells = [], 0
    for where, cell in by_cell(rows, field).items():
        both = sorted(cell.get(ours, {}).keys() & cell.get(peer, {}).keys())
        if len(both) > 1:
            apart = np.array([cell[ours][split] - cell[peer][split] for split in both])
            n_cells += 1
            if apart.mean() > 2 * apart.std(ddof=1) / len(apart) ** 0.5:
                found.append(where)
    return found, n_cells


def that_tell(rows: Fits, field: str = "log_loss") -> Fits:
    """The cells in which the loss of CatBoost is large enough to tell something."""
    tells = {
        where
        for where, cell in by_cell(rows, field).items()
        if np.mean([*cell.get("CatBoost", {0: 1.0}).values()]) > TELLS
    }
    return [row for row in rows if (row["table"], row["rows"]) in tells]


def summary(rows: Fits) -> None:
    """Print all comparisons."""
    for chose in (False, True):
        part = [row for row in rows if chooses(row["table"]) == chose]
        print("tables that chose" if chose else "tables that count")
        for numbers, field in ((False, "log_loss"), (False, "error"), (True, "error")):
            some = [row for row in part if (row["table"] in NUMBERS) == numbers]
            word = f"{'numbers' if numbers else 'classes'}, {field}"
            for name, (rank, ratio) in standings(some, field).items():
                print(f"   {word}: {name:22} rank {rank:.2f}, ours / its {ratio:.3f}")
            for ours, peer in product((OURS, FAST, BEST), ("LightGBM", "CatBoost")):
                print(
                    f"   {word}: {ours} / {peer}",
                    *_by_size(that_tell(some, field), field, ours, peer),
                )
            which, n_cells = lost(some, field, "CatBoost")
            print(f"   {word}: lost to CatBoost {len(which)} of {n_cells} cells: {which}")
        for numbers in (False, True):
            some = [row for row in part if (row["table"] in NUMBERS) == numbers]
            for ours, peer in product((OURS, FAST, BEST), ("LightGBM", "CatBoost")):
                word = f"{'numbers' if numbers else 'classes'}, seconds: {ours} / {peer}"
                print(f"   {word}", *_by_size(some, "seconds", ours, peer))


def _by_size(rows: Fits, field: str, ours: str, peer: str) -> Iterator[str]:
    """Ratios by the number of rows."""
    few = [row for row in rows if row["rows"] <= SIZES[-1]]
    many = [row for row in rows if row["rows"] > SIZES[-1]]
    for word, some in (("all", rows), (f"to {SIZES[-1]} rows", few), ("more", many)):
        ratio, error, n_tables = ratio_by_table(some, field, ours, peer)
        yield f"| {word} {ratio:.3f} +- {error:.3f} ({n_tables})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[*SIZES, MOST])
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--methods", nargs="+", help="of which alone fits are made")
    parser.add_argument("--tables", nargs="+", help="on which alone fits are made")
    parser.add_argument("--without", nargs="*", default=[], help="tables to leave out")
    parser.add_argument("--again", nargs="*", default=[], help="methods whose fits are made again")
    parser.add_argument("--file", type=Path, default=RESULTS / "boosting.csv")
    options = parser.parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("boosting: skipped, CERTREE_DATA names no directory of tables")
        return
    rows = [row for row in known(options.file) if row["method"] not in options.again]
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
