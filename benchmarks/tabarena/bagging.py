"""TabArena's protocol on the shared tables: the mean prediction of the models of eight folds.

A third of the rows tests. Each of eight stratified folds of the other rows is once the validation set
that ends the rounds; the predictions of the eight models are averaged. The metric is 1 - area under the
ROC curve for two classes, log loss for more, and RMSE for numbers. Only tables on which no default was
chosen count. One thread; seconds are process CPU. Runs that the result file has are not repeated.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import typer
from sklearn.metrics import log_loss, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold

from benchmarks.results import run_missing
from benchmarks.tabarena.certree.fitting import N_ITER_NO_CHANGE, fit_fold
from benchmarks.tables import Data, has_chosen_defaults, load_tables, split_fraction

N_FOLDS = 8
MAX_ROWS = 30_000  # larger tables run only if they are named

FitFold = Callable[[str, tuple[Any, Any], tuple[Any, Any]], Any]


def fit_certree(kind: str, training: tuple[Any, Any], validation: tuple[Any, Any]) -> Any:
    return fit_fold(kind, {"random_state": 0}, training, validation)


def fit_lightgbm(kind: str, training: tuple[Any, Any], validation: tuple[Any, Any]) -> Any:
    import lightgbm

    name = "LGBMRegressor" if kind == "regression" else "LGBMClassifier"
    model = getattr(lightgbm, name)(
        n_estimators=10_000, learning_rate=0.05, n_jobs=1, verbose=-1, random_state=0
    )
    stop = lightgbm.early_stopping(N_ITER_NO_CHANGE, verbose=False)
    return model.fit(*training, eval_set=[validation], callbacks=[stop])


def fit_catboost(kind: str, training: tuple[Any, Any], validation: tuple[Any, Any]) -> Any:
    import catboost

    name = "CatBoostRegressor" if kind == "regression" else "CatBoostClassifier"
    model = getattr(catboost, name)(
        iterations=10_000,
        learning_rate=0.05,
        thread_count=1,
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
        cat_features=[*training[0].select_dtypes("category").columns],
    )
    return model.fit(
        *training, eval_set=validation, early_stopping_rounds=N_ITER_NO_CHANGE, use_best_model=True
    )


METHODS: dict[str, FitFold] = {
    "certree": fit_certree,
    "lightgbm": fit_lightgbm,
    "catboost": fit_catboost,
}


def make_frame(X: np.ndarray, data: Data) -> pd.DataFrame:
    """Return rows as a data frame whose categorical columns have all categories of the table."""
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    for j in np.flatnonzero(data.categorical):
        known = np.unique(data.X[:, j]).astype(int)
        frame[f"x{j}"] = pd.Categorical(X[:, j].astype(int), categories=known)
    return frame


def get_kind(data: Data) -> str:
    """Return the kind of a table's target as TabArena names it."""
    if data.is_regression:
        return "regression"
    return "binary" if len(np.unique(data.y)) == 2 else "multiclass"


def compute_error(kind: str, y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the metric of TabArena for mean predictions of the test rows."""
    if kind == "regression":
        return float(root_mean_squared_error(y, predicted))
    if kind == "binary":
        return 1.0 - float(roc_auc_score(y, predicted[:, 1]))
    return float(log_loss(y, predicted / predicted.sum(axis=1, keepdims=True)))


def bag_folds(fit: FitFold, data: Data, seed: int, n_folds: int = N_FOLDS) -> tuple[float, float]:
    """Return the error of the mean prediction of the folds' models, and seconds of their fits."""
    kind, (X, y, X_test, y_test) = get_kind(data), split_fraction(data, seed, test_size=1 / 3)
    X, X_test = make_frame(X, data), make_frame(X_test, data)
    splitter = (KFold if data.is_regression else StratifiedKFold)(
        n_folds, shuffle=True, random_state=seed
    )
    total, seconds, n_classes = 0.0, 0.0, len(np.unique(data.y))
    for train, validation in splitter.split(X, y):
        begin = time.process_time()
        model = fit(kind, (X.iloc[train], y[train]), (X.iloc[validation], y[validation]))
        seconds += time.process_time() - begin
        if data.is_regression:
            total += model.predict(X_test) / n_folds
        else:
            votes = np.zeros((len(X_test), n_classes))
            votes[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X_test)
            total += votes / n_folds
    return compute_error(kind, y_test, np.asarray(total)), seconds


def measure_bags(fit: FitFold, data: Data, n_seeds: int) -> dict[str, float]:
    """Return the mean error and seconds of `bag_folds` over so many splits of a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [bag_folds(fit, data, seed) for seed in range(n_seeds)]
    error, seconds = np.mean(results, axis=0)
    return {"error": float(error), "seconds": float(seconds)}


def main(only: str = "", methods: str = ",".join(METHODS), seeds: int = 3) -> None:
    """Run what the result file lacks; only: names of tables, methods: names, separated by commas."""
    tables = [
        (name, data)
        for name, data in load_tables(only).items()
        if only or not (has_chosen_defaults(name) or len(data.y) > MAX_ROWS)
    ]
    run_missing(
        "tabarena",
        [
            (
                {"table": name, "method": method, "seeds": seeds},
                partial(measure_bags, METHODS[method], data, seeds),
            )
            for name, data in tables
            for method in methods.split(",")
        ],
    )


if __name__ == "__main__":
    typer.run(main)
