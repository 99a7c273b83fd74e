"""Naive Bayes on tables of numbers and categories: test log loss, error and time against scikit-learn.

Every model is fitted on 70 % of the rows of each table in the folder `more` of the directory
CERTREE_DATA, three splits, one thread. "?" is a missing value; certree is given the columns as they
are. The peers are given what they can take:

* GaussianNB: categories become 0/1 columns.
* CategoricalNB: numbers become ten bins of equally many rows, missing values a category.
* Both multiplied: GaussianNB on the numbers and CategoricalNB on the categories, as one posterior.

certree is run with its defaults and with power=1, naive Bayes as in textbooks. The bounded figure is
the mean test log loss of certree over that of the peer; the target is 1.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.compose import make_column_transformer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
)

from benchmarks.timing import Row, report, seconds
from certree import NaiveBayesClassifier

SPLITS = 3
TABLES = (
    "adult",
    "bank_marketing",
    "credit_default",
    "electricity",
    "magic04",
    "pendigits",
    "satimage",
)


def table(file: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Features, strings as categories, and the classes."""
    columns = pd.read_parquet(file)
    X, y = columns.iloc[:, :-1], columns.iloc[:, -1]
    names = X.columns[[X[name].dtype.kind not in "iuf" for name in X]]
    return X.assign(**{name: X[name].where(X[name] != "?").astype("category") for name in names}), y


def held(X: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Names of the features of numbers, and of those of categories."""
    categories = [name for name in X if X[name].dtype == "category"]
    return [name for name in X if name not in categories], categories


def codes() -> Pipeline:
    """Categories as codes 1, 2, ...; 0 stands for what is missing or was not seen."""
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
    )
    return make_pipeline(encoder, FunctionTransformer(partial(np.add, 1)))


def gaussian(X: pd.DataFrame) -> Pipeline:
    """GaussianNB on numbers and 0/1 columns."""
    numbers, categories = held(X)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(("passthrough", numbers), (one_hot, categories))
    return make_pipeline(columns, GaussianNB())


def categorical(X: pd.DataFrame) -> Pipeline:
    """CategoricalNB on categories and binned numbers."""
    numbers, categories = held(X)
    bins = KBinsDiscretizer(encode="ordinal", quantile_method="averaged_inverted_cdf", n_bins=10)
    columns = make_column_transformer((bins, numbers), (codes(), categories))
    return make_pipeline(columns, CategoricalNB())


class Product:
    """GaussianNB on the numbers times CategoricalNB on the categories, the prior counted once."""

    def __init__(self, X: pd.DataFrame) -> None:
        numbers, categories = held(X)
        self.gaussian = make_pipeline(
            make_column_transformer(("passthrough", numbers)), GaussianNB()
        )
        self.categorical = make_pipeline(
            make_column_transformer((codes(), categories)), CategoricalNB()
        )

    def fit(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Fit both."""
        self.gaussian.fit(X, y)
        self.categorical.fit(X, y)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Multiply the posteriors and divide by the prior."""
        prior = np.log(self.gaussian[-1].class_prior_)
        logs = self.gaussian.predict_log_proba(X) + self.categorical.predict_log_proba(X) - prior
        return softmax(logs, axis=1)


@dataclass(frozen=True, slots=True)
class Judged:
    """What one model did on one split."""

    loss: float
    error: float
    seconds: float


def judge(model: Any, parts: list[Any]) -> Judged:
    """Fit on the first part and judge on the second; the time is that of both."""
    X, X_test, y, y_test = parts
    classes, wanted = np.unique(y), {}

    def run() -> None:
        model.fit(X, y)
        wanted["shares"] = model.predict_proba(X_test)

    elapsed = seconds(run)
    shares = np.clip(wanted["shares"], 1e-15, 1)
    error = float(np.mean(classes[shares.argmax(axis=1)] != y_test))
    return Judged(log_loss(y_test, shares, labels=classes), error, elapsed)


def compared(name: str, X: pd.DataFrame, y: pd.Series) -> list[Row]:
    """One line for each peer and each of ours on a table."""
    ours: dict[str, Callable[[], Any]] = {
        "defaults": NaiveBayesClassifier,
        "power 1": partial(NaiveBayesClassifier, power=1.0),
    }
    peers: dict[str, Callable[[], Any]] = {
        "GaussianNB": partial(gaussian, X),
        "CategoricalNB": partial(categorical, X),
    }
    if held(X)[1]:
        peers["both multiplied"] = partial(Product, X)
    means = measured({**ours, **peers}, X, y)
    return [
        row(f"{name}, {mine}", means[mine], peer, means[peer]) for mine in ours for peer in peers
    ]


def measured(
    models: dict[str, Callable[[], Any]], X: pd.DataFrame, y: pd.Series
) -> dict[str, Judged]:
    """Means over the splits; on each split the models take turns."""
    judged: dict[str, list[Judged]] = {label: [] for label in models}
    for split in range(SPLITS):
        parts = train_test_split(X, y, test_size=0.3, random_state=split, stratify=y)
        for label, model in models.items():
            judged[label].append(judge(model(), parts))
    return {
        label: Judged(*np.mean([astuple(one) for one in several], axis=0).tolist())
        for label, several in judged.items()
    }


def row(case: str, ours: Judged, peer: str, theirs: Judged) -> Row:
    """One line of the report."""
    losses = f"log loss {ours.loss:.4f} / {theirs.loss:.4f}"
    errors = f"error {ours.error:.4f} / {theirs.error:.4f}"
    return Row(
        f"{case}: {losses}, {errors}",
        ours.seconds,
        peer,
        theirs.seconds,
        target=1.0,
        figure=ours.loss / theirs.loss,
        unit="of log loss",
    )


def main() -> None:
    """Measure all tables."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("naive_bayes: skipped, CERTREE_DATA names no directory of tables")
        return
    files = [Path(directory) / "more" / f"{name}.parquet" for name in TABLES]
    report("naive_bayes", [row for file in files for row in compared(file.stem, *table(file))])


if __name__ == "__main__":
    main()
