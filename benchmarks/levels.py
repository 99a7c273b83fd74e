"""What a random column of categories costs the default trees.

To adult, bank_marketing and diamonds (the folder `more` of the directory CERTREE_DATA) a column of 50,
500, 2000 and 8000 random levels is added. Trained on at most 5000 rows, judged on at most 10,000, five
splits, one thread. Prints, and writes to results/levels.csv, the accuracy (R2 of diamonds) without the
column, and what each column changes. The target is a change of at most .005.
"""

import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.defaults import REGRESSION, Data, tables
from benchmarks.records import RESULTS, store
from certree import PACBayesTreeClassifier, PACBayesTreeRegressor

TABLES = ("adult", "bank_marketing", "diamonds")
LEVELS = (50, 500, 2000, 8000)
SPLITS = 5
MOST_ROWS, MOST_JUDGING = 5000, 10_000
GOAL = 0.005


def with_column(data: Data, n_levels: int, seed: int) -> Data:
    """The table with a column of random levels; none for 0 levels."""
    if n_levels == 0:
        return data
    column = np.random.default_rng(seed).integers(0, n_levels, len(data.y))
    return Data(np.column_stack([data.X, column]), data.y, np.append(data.categorical, True))


def score(data: Data, numbers: bool, split: int) -> float:
    """Accuracy, or R2 of numbers, on rows that had no part in the fit."""
    parts = train_test_split(
        data.X,
        data.y,
        train_size=min(MOST_ROWS, len(data.y) // 2),
        test_size=min(MOST_JUDGING, len(data.y) // 2),
        random_state=split,
        stratify=None if numbers else data.y,
    )
    estimator = PACBayesTreeRegressor if numbers else PACBayesTreeClassifier
    model = estimator(categorical_features=data.categorical, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns that are nearly identifiers are what is measured
        model.fit(parts[0], parts[2])
    return float(model.score(parts[1], parts[3]))


def measured(name: str, data: Data) -> list[dict[str, object]]:
    """One row for each number of levels."""
    numbers = name in REGRESSION
    rows: list[dict[str, object]] = []
    without = np.zeros(SPLITS)
    for n_levels in (0, *LEVELS):
        scores = np.array(
            [score(with_column(data, n_levels, i), numbers, i) for i in range(SPLITS)]
        )
        without = scores if n_levels == 0 else without
        change = scores - without
        rows.append(
            {
                "table": name,
                "levels": n_levels,
                "score": round(float(scores.mean()), 5),
                "change": round(float(change.mean()), 5),
                "standard_error": round(float(change.std(ddof=1) / np.sqrt(SPLITS)), 5),
            }
        )
    return rows


def main() -> None:
    """Measure all tables."""
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("levels: skipped, CERTREE_DATA names no directory of tables")
        return
    found = tables(Path(directory))
    rows = []
    for name in TABLES:
        for row in measured(name, found[name]):
            rows.append(row)
            change, error = row["change"], row["standard_error"]
            verdict = "" if abs(float(str(change))) <= GOAL else "  beyond the goal"
            print(
                f"{name:<15} {row['levels']:>5} levels: {row['score']:.4f} "
                f"({change:+.4f} +-{error:.4f}){verdict}"
            )
    store(RESULTS / "levels.csv", rows)


if __name__ == "__main__":
    main()
