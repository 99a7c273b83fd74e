"""Forests of 100 trees against scikit-learn's with equal settings: losses and CPU seconds.

Public tables and those of scikit-learn with at most 8000 training rows, two splits, one thread.
"codes" treats codes of categories as numbers, as scikit-learn does; "plain" leaves are not smoothed.
Extra trees use no bootstrap, except "drawn". Fits that the result file has are not repeated.
"""

import time
import warnings
from typing import Any

import numpy as np
import typer
from sklearn import ensemble

import certree
from benchmarks.peers import list_fits
from benchmarks.results import run_missing
from benchmarks.tables import Data, Split, load_tables
from benchmarks.timing import measure_seconds


def make_methods(data: Data) -> dict[str, Any]:
    """Return functions that make the models, by kind of forest and library."""
    kind = "Regressor" if data.is_regression else "Classifier"
    ours = getattr(certree, f"TreeForest{kind}")
    forest, extra = (getattr(ensemble, f"{name}{kind}") for name in ("RandomForest", "ExtraTrees"))
    codes: dict[str, Any] = {"categorical_features": None, "random_state": 0}
    native = {**codes, "categorical_features": data.categorical}
    return {
        "forest, scikit-learn": lambda: forest(random_state=0, n_jobs=1),
        "forest, certree": lambda: ours(**native),
        "forest, codes": lambda: ours(**codes),
        "forest, plain": lambda: ours(leaves="plain", **codes),
        "extra, scikit-learn": lambda: extra(random_state=0, n_jobs=1),
        "extra, plain": lambda: ours(bootstrap=False, splitter="random", **codes),
        "extra, drawn": lambda: ours(splitter="random", **codes),
    }


def measure(model: Any, split: Split) -> dict[str, float]:
    """Return losses on the test rows, and CPU seconds of a fit and of a prediction."""
    X, y, X_test, y_test = split
    is_regression = y.dtype.kind == "f"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = measure_seconds(lambda: model.fit(X, y), time.process_time)
        start = time.process_time()
        found = model.predict(X_test) if is_regression else model.predict_proba(X_test)
        predict = time.process_time() - start
    if is_regression:
        loss = error = np.sqrt(np.mean((found - y_test) ** 2)) / np.std(y_test)
    else:
        loss = -np.log(np.maximum(found[np.arange(len(y_test)), y_test], 1e-15)).mean()
        error = np.mean(found.argmax(axis=1) != y_test)
    return {"loss": float(loss), "error": float(error), "fit": fit, "predict": predict}


def main(only: str = "", rows: int = 8000, splits: int = 2) -> None:
    """Run the missing fits; only: names of tables, separated by commas."""
    tables = load_tables(only, shipped=True)
    sizes = lambda n: [min(rows, int(0.75 * n))]  # noqa: E731
    run_missing("forest", list_fits(tables, sizes, lambda _: splits, make_methods, measure))


if __name__ == "__main__":
    typer.run(main)
