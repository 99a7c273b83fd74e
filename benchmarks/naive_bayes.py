"""`NaiveBayesClassifier` against scikit-learn's: test log loss, error, and seconds.

70 % of the rows of seven public tables, three splits, one thread; "?" is a missing value. certree runs
at its defaults and with power=1. GaussianNB gets categories as 0/1 columns. CategoricalNB gets numbers
in ten bins. "both multiplied" is GaussianNB on the numbers times CategoricalNB on the categories.
Target: a log loss no larger than the other one's.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import typer
from scipy.special import softmax
from sklearn import preprocessing
from sklearn.compose import make_column_transformer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline

from benchmarks.results import Row, report
from benchmarks.tables import find_directory
from benchmarks.timing import measure_seconds
from certree import NaiveBayesClassifier

TABLES = "adult,bank_marketing,credit_default,electricity,magic04,pendigits,satimage"


def read(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Read the features, with texts as categories, and the classes."""
    frame = pd.read_parquet(find_directory() / "more" / f"{name}.parquet")
    X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
    texts = X.columns[[X[name].dtype.kind not in "iuf" for name in X]]
    return X.assign(**{name: X[name].where(X[name] != "?").astype("category") for name in texts}), y


def make_peers(X: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return functions that make scikit-learn's models for the columns of a table."""
    categories = [name for name in X if X[name].dtype == "category"]
    numbers = [name for name in X if name not in categories]
    unseen = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    encoder = preprocessing.OrdinalEncoder(**unseen, encoded_missing_value=-1)
    codes = (
        make_pipeline(encoder, preprocessing.FunctionTransformer(partial(np.add, 1))),
        categories,
    )
    bins = preprocessing.KBinsDiscretizer(
        encode="ordinal", quantile_method="averaged_inverted_cdf", n_bins=10
    )
    one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    plain = ("passthrough", numbers)

    def make(model: Any, *columns: Any) -> Callable[[], Any]:
        return lambda: make_pipeline(make_column_transformer(*columns), model())

    peers = {
        "GaussianNB": make(GaussianNB, plain, (one_hot, categories)),
        "CategoricalNB": make(CategoricalNB, (bins, numbers), codes),
    }
    if categories:
        pair = make(GaussianNB, plain), make(CategoricalNB, codes)
        peers["both multiplied"] = lambda: Product(*(make_one() for make_one in pair))
    return peers


class Product:
    """The product of two naive Bayes models for different columns, with the prior counted once."""

    def __init__(self, *models: Any) -> None:
        self.models = models

    def fit(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Fit both models."""
        for model in self.models:
            model.fit(X, y)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Multiply the posteriors, and divide by the prior."""
        logs = sum(model.predict_log_proba(X) for model in self.models)
        return softmax(logs - np.log(self.models[0][-1].class_prior_), axis=1)


def measure(model: Any, parts: list[Any]) -> tuple[float, float, float]:
    """Return log loss, error, and seconds of a fit with a prediction."""
    X, X_test, y, y_test = parts
    classes, found = np.unique(y), []
    seconds = measure_seconds(lambda: found.extend([model.fit(X, y), model.predict_proba(X_test)]))
    scores = np.clip(found[1], 1e-15, 1)
    error = float(np.mean(classes[scores.argmax(axis=1)] != y_test))
    return log_loss(y_test, scores, labels=classes), error, seconds


def main(only: str = TABLES, splits: int = 3) -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    ours = {"defaults": NaiveBayesClassifier, "power 1": partial(NaiveBayesClassifier, power=1.0)}
    rows = []
    for name in only.split(","):
        X, y = read(name)
        models, found = ours | (peers := make_peers(X)), []
        for seed in range(splits):
            parts = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
            found.append([measure(make(), parts) for make in models.values()])
        means = dict(zip(models, np.mean(found, axis=0).tolist(), strict=True))
        for fit in ours:
            for peer in peers:
                (a, error, seconds), (b, peer_error, peer_seconds) = means[fit], means[peer]
                errors = f"error {error:.4f} / {peer_error:.4f}"
                case = f"{name}, {fit}: log loss {a:.4f} / {b:.4f}, {errors}"
                rows.append(Row(case, seconds, peer, peer_seconds, 1.0, a / b, "of log loss"))
    report("naive_bayes", rows)


if __name__ == "__main__":
    typer.run(main)
