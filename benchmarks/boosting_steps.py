"""Effect of each default of boosted trees: the loss of fits that differ in one parameter.

Geometric means over tables of the loss with the other value, divided by the loss at the default: log
loss, or root mean squared error for numbers. One split with 3000 training rows per table. Prints the
ratios for tables that chose defaults and for the others; `certree.ensembles.round_schedule` uses them.
"""

from collections import defaultdict
from typing import Any

import numpy as np
import typer

from benchmarks.peers import measure_fit
from benchmarks.tables import has_chosen_defaults, load_tables, split_rows
from certree import BoostedTreesClassifier, BoostedTreesRegressor

STEPS: dict[str, dict[str, Any]] = {
    "default": {},
    "no vote": {"prunings": "none"},
    "all thresholds": {"max_thresholds": None},
    "few thresholds": {"max_thresholds": 6},
    "all features": {"max_features": 1.0},
    "seven of ten rows": {"subsample": 0.7},
    "nine of ten rows": {"subsample": 0.9},
    "31 leaves": {"max_leaf_nodes": 31},
    "15 leaves": {"max_leaf_nodes": 15},
    "rate .1": {"learning_rate": 0.1},
    "rate .05": {"learning_rate": 0.05},
    "more shrinkage": {"l2_regularization": 5.0},
    "less shrinkage": {"l2_regularization": 1.0},
}


def main(rows: int = 3000, only: str = "") -> None:
    """Print the ratios; only: names of tables, separated by commas."""
    logs = defaultdict(list)
    for name, data in load_tables(only, shipped=True).items():
        if rows > 0.75 * len(data.y):
            continue
        kind, field = BoostedTreesClassifier, "log_loss"
        if data.is_regression:
            kind, field = BoostedTreesRegressor, "error"
        split, losses = split_rows(data, rows, 0), {}
        for step, parameters in STEPS.items():
            model = kind(categorical_features=data.categorical, random_state=0, **parameters)
            losses[step] = measure_fit(model, split)[field]
            ratio = np.log(losses[step] / losses["default"])
            logs[has_chosen_defaults(name), data.is_regression, step].append(ratio)
    for (chosen, is_regression, step), ratios in sorted(logs.items()):
        kind = "numbers" if is_regression else "classes"
        tables = f"{len(ratios)} tables of {kind} that {'chose' if chosen else 'did not choose'}"
        print(f"{tables} defaults: {step} {np.exp(np.mean(ratios)):.3f}")


if __name__ == "__main__":
    typer.run(main)
