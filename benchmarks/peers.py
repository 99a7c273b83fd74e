"""Other libraries' models as the benchmarks fit them, and the measures of a fit."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.tables import Data, Split, split_rows
from benchmarks.timing import Clock, measure_seconds


def make_lightgbm(kind: str, **parameters: Any) -> Any:
    """Return LightGBM's "Classifier", "Regressor" or "Ranker" on one thread."""
    import lightgbm

    options = {"verbose": -1, "n_jobs": 1, "random_state": 0, **parameters}
    return getattr(lightgbm, f"LGBM{kind}")(**options)


def make_catboost(kind: str, **parameters: Any) -> Any:
    """Return CatBoost's "Classifier", "Regressor" or "Ranker" on one thread."""
    import catboost

    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False, "random_seed": 0}
    return getattr(catboost, f"CatBoost{kind}")(**quiet, **parameters)


class EarlyStopping:
    """LightGBM that chooses its number of rounds by 15 % of the training rows."""

    def __init__(self, kind: str, categorical: list[int]) -> None:
        self.model = make_lightgbm(kind, learning_rate=0.05, n_estimators=2000)
        self.is_regression, self.categorical = kind == "Regressor", categorical

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Set validation rows apart, stratified by class if possible, and fit."""
        import lightgbm

        try:
            strata = None if self.is_regression else y
            parts = train_test_split(X, y, test_size=0.15, random_state=0, stratify=strata)
        except ValueError:  # a class with one row
            parts = train_test_split(X, y, test_size=0.15, random_state=0)
        X_train, X_validation, y_train, y_validation = parts
        known = np.isin(y_validation, y_train) | self.is_regression
        self.n_classes = 0 if self.is_regression else y.max() + 1
        self.model.fit(
            X_train,
            y_train,
            eval_set=[(X_validation[known], y_validation[known])],
            callbacks=[lightgbm.early_stopping(50, verbose=False)],
            categorical_feature=self.categorical,
        )

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict by the fitted model."""
        return self.model.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Predict probabilities; classes without training rows have probability 0."""
        probabilities = np.zeros((len(X), self.n_classes))
        probabilities[:, self.model.classes_] = self.model.predict_proba(X)
        return probabilities


class WithCategories:
    """A peer that takes categories as a parameter of `fit`; CatBoost needs a frame with texts."""

    def __init__(self, model: Any, categorical: list[int], as_text: bool = False) -> None:
        self.model, self.categorical, self.as_text = model, categorical, as_text

    def convert(self, X: np.ndarray) -> Any:
        """Return rows as the peer takes them."""
        if not self.as_text or not self.categorical:
            return X
        import pandas as pd

        frame = pd.DataFrame(X)
        for j in self.categorical:
            frame[j] = frame[j].map(lambda code: "?" if np.isnan(code) else str(int(code)))
        return frame

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit with categories."""
        name = "cat_features" if self.as_text else "categorical_feature"
        self.model.fit(self.convert(X), y, **({name: self.categorical} if self.categorical else {}))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict by the fitted model."""
        return np.ravel(self.model.predict(self.convert(X)))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Predict probabilities by the fitted model."""
        return self.model.predict_proba(self.convert(X))


def search_alpha(tree: Any, X: np.ndarray, y: np.ndarray) -> GridSearchCV:
    """Return an unfitted search of five folds over 30 values of ccp_alpha of scikit-learn's tree.

    The values are spaced evenly in their logarithm: nearly all alphas of a pruning path are small.
    """
    path = clone(tree).cost_complexity_pruning_path(X, y).ccp_alphas
    positive = path[path > path.max() * 1e-9]
    alphas = np.geomspace(positive.min(), positive.max(), 29) if len(positive) else []
    return GridSearchCV(tree, {"ccp_alpha": [0.0, *alphas]}, cv=5)


class TunedTree:
    """scikit-learn's tree with alpha and criterion by five folds, smoothed by Laplace's rule."""

    def __init__(self, is_regression: bool) -> None:
        self.trees = [
            DecisionTreeClassifier(criterion=c, random_state=0) for c in ("gini", "entropy")
        ]
        if is_regression:
            self.trees = [DecisionTreeRegressor(random_state=0)]

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Search both criteria."""
        searches = [search_alpha(tree, X, y).fit(X, y) for tree in self.trees]
        self.best = max(searches, key=lambda search: search.best_score_).best_estimator_
        counts = self.best.tree_.value[:, 0] * self.best.tree_.n_node_samples[:, None] + 1
        self.probabilities = counts / counts.sum(axis=1, keepdims=True)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict by the tree."""
        return self.best.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Predict smoothed probabilities."""
        return self.probabilities[self.best.apply(X)]


def make_boosters(data: Data) -> dict[str, Callable[[], Any]]:
    """Return functions that make the installed gradient-boosting models, by name, on one thread."""
    where = np.flatnonzero(data.categorical).tolist()
    has_few = all(len(np.unique(data.X[:, j])) <= 255 for j in where)
    kind = "Regressor" if data.is_regression else "Classifier"
    peer = HistGradientBoostingRegressor if data.is_regression else HistGradientBoostingClassifier
    categories = where if has_few and where else None
    found: dict[str, Callable[[], Any]] = {
        "HistGradientBoosting": lambda: peer(categorical_features=categories, random_state=0)
    }
    if find_spec("lightgbm"):
        found["LightGBM"] = lambda: WithCategories(make_lightgbm(kind), where)
        found["early stopping"] = lambda: EarlyStopping(kind, where)
    if find_spec("catboost"):
        found["CatBoost"] = lambda: WithCategories(make_catboost(kind), where, as_text=True)
    if find_spec("xgboost"):
        import xgboost

        found["XGBoost"] = lambda: getattr(xgboost, f"XGB{kind}")(n_jobs=1, random_state=0)
    return found


def measure_fit(model: Any, split: Split, clock: Clock = time.process_time) -> dict[str, float]:
    """Fit a model, and return test error, log loss, AUC (two classes) and seconds of the fit.

    The error of numbers is the root mean squared error over the standard deviation of the target.
    """
    X, y, X_test, y_test = split
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds; names of features
        found = {"seconds": measure_seconds(lambda: model.fit(X, y), clock)}
        predicted = model.predict(X_test)
        scores = None if y.dtype.kind == "f" else model.predict_proba(X_test)
    if scores is None:
        error = np.sqrt(np.mean((predicted - y_test) ** 2)) / np.std(y_test)
        return {"error": float(error), "log_loss": np.nan, "auc": np.nan, **found}
    scores = np.clip(scores, 1e-15, 1)
    loss = log_loss(y_test, scores / scores.sum(axis=1, keepdims=True), labels=np.unique(y))
    has_area = scores.shape[1] == 2 and len(np.unique(y_test)) == 2
    area = roc_auc_score(y_test, scores[:, 1]) if has_area else np.nan
    error = np.mean(predicted != y_test)
    return {"error": float(error), "log_loss": float(loss), "auc": float(area), **found}


def list_fits(
    tables: dict[str, Data],
    choose_sizes: Callable[[int], Iterable[int]],
    count_splits: Callable[[int], int],
    make_methods: Callable[[Data], dict[str, Callable[[], Any]]],
    measure: Callable[[Any, Split], dict[str, float]] = measure_fit,
) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, float]]]]:
    """Yield the fits for `run_missing`: each method on random rows of each table.

    choose_sizes: numbers of training rows for a table of so many rows; count_splits: number of
    random splits for so many training rows; make_methods: functions that make models, by name;
    measure: fits a model to a split and returns the columns of the result.
    """
    for name, data in tables.items():
        for n in choose_sizes(len(data.y)):
            for seed in range(count_splits(n)):
                split = split_rows(data, n, seed)
                if len(np.unique(split[1])) < 2:
                    continue
                for method, make in make_methods(data).items():
                    key = {"table": name, "rows": n, "split": seed, "method": method}
                    yield key, partial(_measure_new, measure, make, split)


def _measure_new(measure: Callable[..., Any], make: Callable[[], Any], split: Split) -> Any:
    """Make a model, and measure it on a split."""
    return measure(make(), split)
