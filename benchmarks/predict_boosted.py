"""Predicting many rows by boosted trees, against LightGBM and CatBoost.

100 trees of 31 and of 63 leaves predict 1e5 rows of 28 features of float64, all of them numbers, or 10
of them categories of 3 to 60 levels. LightGBM has as many leaves, CatBoost is at its default depth of
6, 64 leaves each. All take a plain array, but CatBoost takes categories from a data frame, which is
faster than an array of objects. CPU time of one thread each, checks and conversions of the rows
included. Targets: at most CatBoost's time at 31 leaves, twice it at 63, three times with categories.
Peers that are not installed are left out.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.timing import Row, alternate, report
from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor

FEATURES, CATEGORICAL, TREES = 28, 10, 100
TARGETS = {31: 1.0, 63: 2.0}
WITH_CATEGORIES = 3.0


def drawn(n: int, n_categorical: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, the last features of which hold codes of categories, and numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES))
    y = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]) + 0.3 * X[:, 4:10].sum(axis=1)
    for j in range(FEATURES - n_categorical, FEATURES):
        size = rng.integers(3, 61)
        X[:, j] = rng.integers(0, size, n)
        y += 0.5 * rng.normal(size=size)[X[:, j].astype(int)]
    return X, y + rng.normal(size=n)


def ours(n_leaves: int, where: list[int], numbers: bool) -> Any:
    """Our model: every feature and threshold is looked at in each round."""
    model = BoostedTreesRegressor if numbers else BoostedTreesClassifier
    return model(
        quality="fast",
        max_iter=TREES,
        max_leaf_nodes=n_leaves,
        max_features=1.0,
        max_thresholds=None,
        categorical_features=where,
        random_state=0,
        n_jobs=1,
    )


def framed(X: np.ndarray, where: list[int]) -> Any:
    """Rows as CatBoost takes them."""
    if not where:
        return X
    import pandas as pd

    return pd.DataFrame(X).astype(dict.fromkeys(where, int))


Predicts = Callable[[np.ndarray], Callable[[], object]]


def peers(n_leaves: int, where: list[int], numbers: bool, X: Any, y: Any) -> dict[str, Predicts]:
    """What is installed, fitted: given rows, a call that predicts them."""
    found: dict[str, Predicts] = {}
    if find_spec("lightgbm"):
        import lightgbm

        light = lightgbm.LGBMRegressor if numbers else lightgbm.LGBMClassifier
        boosted = light(n_estimators=TREES, num_leaves=n_leaves, n_jobs=1, verbose=-1)
        boosted.fit(X, y, categorical_feature=where)
        found["LightGBM"] = lambda rows: partial(asked(boosted, numbers), rows)
    if find_spec("catboost"):
        import catboost

        cat = catboost.CatBoostRegressor if numbers else catboost.CatBoostClassifier
        quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "random_seed": 0}
        symmetric = cat(iterations=TREES, cat_features=where, **quiet).fit(framed(X, where), y)
        one = {"thread_count": 1}
        found["CatBoost"] = lambda rows: partial(
            asked(symmetric, numbers), framed(rows, where), **one
        )
    return found


def asked(model: Any, numbers: bool) -> Callable[..., object]:
    """What is timed: numbers, or probabilities."""
    call: Callable[..., object] = model.predict if numbers else model.predict_proba
    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--fit-rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    rows = []
    for n_categorical in (0, CATEGORICAL):
        X, y = drawn(options.rows, n_categorical)
        where = [*range(FEATURES - n_categorical, FEATURES)]
        for n_leaves, target in TARGETS.items():
            for numbers in (False, True):
                fitted = slice(options.fit_rows)
                known = y[fitted] if numbers else (y[fitted] > np.median(y)).astype(int)
                model = ours(n_leaves, where, numbers).fit(X[fitted], known)
                kind = f"{n_leaves} leaves, {'numbers' if numbers else 'classes'}"
                case = f"{len(X)} rows, {n_categorical} categorical, {kind}"
                predict = partial(asked(model, numbers), X)
                for peer, predicts in peers(n_leaves, where, numbers, X[fitted], known).items():
                    times = alternate(predict, predicts(X), options.repeats, time.process_time)
                    bound = WITH_CATEGORIES if n_categorical else target
                    rows.append(
                        Row(case, times[0], peer, times[1], bound if peer == "CatBoost" else None)
                    )
    if rows:
        report("predict_boosted", rows)


if __name__ == "__main__":
    main()
