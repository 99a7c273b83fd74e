"""Effect of a column of random categories on the default trees.

Columns of 50, 500, 2000 and 8000 random categories are added to three public tables; 5000 rows train
and 10,000 test; five splits, one thread. Accuracy (R2 for numbers) should change by at most .005.
"""

import warnings

import numpy as np
import typer

from benchmarks.results import store
from benchmarks.tables import Data, load_tables, split_fraction
from certree import PACBayesTreeClassifier, PACBayesTreeRegressor

SPLITS = 5


def score(data: Data, n_categories: int, seed: int) -> float:
    """Return the test score with a column of random categories, or without one for 0."""
    if n_categories:
        column = np.random.default_rng(seed).integers(0, n_categories, len(data.y))
        X = np.column_stack([data.X, column])
        data = data._replace(X=X, categorical=np.append(data.categorical, True))
    half = len(data.y) // 2
    X, y, X_test, y_test = split_fraction(data, seed, min(10_000, half), train_size=min(5000, half))
    kind = PACBayesTreeRegressor if data.is_regression else PACBayesTreeClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns that nearly identify rows
        model = kind(categorical_features=data.categorical, random_state=0).fit(X, y)
    return model.score(X_test, y_test)


def main(only: str = "adult,bank_marketing,diamonds") -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    rows = []
    for name, data in load_tables(only).items():
        first = np.array([score(data, 0, seed) for seed in range(SPLITS)])
        for n_categories in (50, 500, 2000, 8000):
            scores = np.array([score(data, n_categories, seed) for seed in range(SPLITS)])
            change = scores - first
            error = change.std(ddof=1) / SPLITS**0.5
            figures = {"score": scores.mean(), "change": change.mean(), "standard_error": error}
            rounded = {key: round(float(value), 5) for key, value in figures.items()}
            rows.append({"table": name, "levels": n_categories, **rounded})
            print(*rows[-1].values(), flush=True)
    store("random_categories", rows)


if __name__ == "__main__":
    typer.run(main)
