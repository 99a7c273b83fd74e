"""Defaults of PAC-Bayes trees: test error, log loss and seconds of candidate settings.

Each candidate is fitted to 70 % of the rows of each public table of classes; three splits, one thread.
"""

import time
from typing import Any

import typer

from benchmarks.peers import measure_fit
from benchmarks.results import store
from benchmarks.tables import load_tables, split_fraction
from certree import Cart, PACBayesTreeClassifier, Voting

GINI = {"grower": Cart(criterion="gini")}
ERROR = {"search": "joint", "scoring": "error", "vote": "majority", "cv": 5}
MIXTURE = {"search": "mixture", "scoring": "log_loss", "cv": 3}
CANDIDATES: dict[str, dict[str, Any]] = {
    "one law, majority, error, cv 2, Gini": {**ERROR, **GINI, "cv": 2},
    "one law, mean, error": {**ERROR, "vote": "mean"},
    "one law, mean, log loss": {"search": "joint", "scoring": "log_loss", "cv": 5},
    "mixture": MIXTURE,
    "mixture, cv 5": {**MIXTURE, "cv": 5},
    "mixture, cv 10": {**MIXTURE, "cv": 10},
    "mixture, not smoothed": {**MIXTURE, "vote": Voting("mean", 0.0)},
    "mixture, smoothing 0.5": {**MIXTURE, "vote": Voting("mean", 0.5)},
    "mixture, smoothing 2": {**MIXTURE, "vote": Voting("mean", 2.0)},
    "mixture, leaves": {**MIXTURE, "prior": "leaves"},
    "mixture, Gini": {**MIXTURE, **GINI},
    "mixture, KD": {**MIXTURE, "grower": "kd"},
}


def main(only: str = "", splits: int = 3) -> None:
    """Measure all candidates; only: names of tables, separated by commas."""
    rows = []
    for name, data in load_tables(only, regression=False).items():
        for seed in range(splits):
            split = split_fraction(data, seed)
            options = {"categorical_features": data.categorical, "random_state": 0}
            for label, parameters in CANDIDATES.items():
                model = PACBayesTreeClassifier(**options, **parameters)
                found = measure_fit(model, split, time.perf_counter)
                rows.append({"table": name, "split": seed, "candidate": label, **found})
        print(name, flush=True)
    store("defaults", rows)


if __name__ == "__main__":
    typer.run(main)
