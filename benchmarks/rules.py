"""Which pruning rule is best: test error and leaves on public tables, one greedy tree pruned by each.

Every rule of PrunedTreeClassifier is fitted on 70 % of the rows of each table of classes in the
directory CERTREE_DATA and in its folder `more`, three splits, one thread; of large tables 20000 rows
are drawn first. The price of a rule is chosen by five folds; of the rules that were published with one,
it is also kept at 1. Prints, and writes to results/rules.csv, the figures of every split, and
prints the means over tables and those of the ratios to cost-complexity.
"""

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.defaults import REGRESSION, SPLITS, Data, tables
from benchmarks.records import RESULTS, store
from certree import PrunedTreeClassifier
from certree.prunings.rule_names import RULES

ROWS = 20000
BASELINE = "cost-complexity"
AS_PUBLISHED = ("square-root", "spatially-adaptive", "pessimistic", "description-length")
FIGURES = ("error", "leaves", "seconds")

Record = dict[str, Any]


def candidates(categorical: np.ndarray) -> dict[str, PrunedTreeClassifier]:
    """Classifiers by rule, and those whose price is 1."""
    switches: dict[str, Any] = {"categorical_features": categorical, "random_state": 0}
    tuned = {rule: PrunedTreeClassifier(rule=rule, **switches) for rule in RULES}
    fixed = {
        f"{rule}, constant 1": PrunedTreeClassifier(rule=rule, alpha=1.0, **switches)
        for rule in AS_PUBLISHED
    }
    return tuned | fixed


def measured(name: str, data: Data) -> list[Record]:
    """Figures of every rule on every split of one table."""
    drawn = np.random.default_rng(0).permutation(len(data.y))[:ROWS]
    X, y = data.X[drawn], data.y[drawn]
    records = []
    for split in range(SPLITS):
        parts = train_test_split(X, y, test_size=0.3, random_state=split, stratify=y)
        for rule, model in candidates(data.categorical).items():
            records.append({"table": name, "split": split, "rule": rule, **judge(model, parts)})
    return records


def judge(model: PrunedTreeClassifier, parts: list[np.ndarray]) -> Record:
    """Test error, leaves and seconds of a fit."""
    X, X_test, y, y_test = parts
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes rarer than folds
        model.fit(X, y)
    seconds = time.perf_counter() - start
    return {
        "error": round(float(np.mean(model.predict(X_test) != y_test)), 5),
        "leaves": model.get_n_leaves(),
        "seconds": round(seconds, 4),
    }


def mean(records: list[Record], rule: str, figure: str) -> float:
    """Mean of a figure of one rule."""
    return float(np.mean([record[figure] for record in records if record["rule"] == rule]))


def summary(records: list[Record]) -> None:
    """Print the means over tables, and those of the ratios to the baseline."""
    groups = [
        [record for record in records if record["table"] == name]
        for name in dict.fromkeys(record["table"] for record in records)
    ]
    print(f"means over {len(groups)} tables; ratios to {BASELINE}")
    for rule in dict.fromkeys(record["rule"] for record in records):
        ratios = [
            np.mean([mean(group, rule, each) / mean(group, BASELINE, each) for group in groups])
            for each in FIGURES
        ]
        error, leaves = (mean(records, rule, each) for each in ("error", "leaves"))
        better = sum(
            mean(group, rule, "error") < mean(group, BASELINE, "error") for group in groups
        )
        print(
            f"  {rule:<32} error {error:.4f}  leaves {leaves:6.1f}  ratios: error {ratios[0]:.3f}"
            f"  leaves {ratios[1]:.2f}  time {ratios[2]:.2f}  fewer errors on {better} tables"
        )


def main() -> None:
    """Measure all tables of classes."""
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("rules: skipped, CERTREE_DATA names no directory of tables")
        return
    records: list[Record] = []
    for name, data in tables(Path(directory)).items():
        if name in REGRESSION:
            continue
        records += measured(name, data)
        print(name)
        for rule in candidates(data.categorical):
            figures = [
                mean([r for r in records if r["table"] == name], rule, figure) for figure in FIGURES
            ]
            print("  {:<32} error {:.4f}  leaves {:6.1f}  {:.2f} s".format(rule, *figures))
    summary(records)
    store(RESULTS / "rules.csv", records)


if __name__ == "__main__":
    main()
