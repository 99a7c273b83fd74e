"""Pruning rules: test error, leaves and seconds of one greedy tree pruned by each rule.

Public tables of classes; 70 % of at most 20,000 random rows train; three splits, one thread. Five
folds choose alpha; rules that were published with an alpha are also fitted with alpha 1.
"""

import time

import typer

from benchmarks.peers import measure_fit
from benchmarks.results import store
from benchmarks.tables import load_tables, split_fraction
from certree import PrunedTreeClassifier
from certree.prunings.rule_names import RULES

ROWS = 20_000
PUBLISHED = ("square-root", "spatially-adaptive", "pessimistic", "description-length")
CANDIDATES = {rule: {"rule": rule} for rule in RULES} | {
    f"{rule}, constant 1": {"rule": rule, "alpha": 1.0} for rule in PUBLISHED
}


def main(only: str = "", splits: int = 3) -> None:
    """Measure all rules; only: names of tables, separated by commas."""
    rows = []
    for name, data in load_tables(only, regression=False).items():
        chosen, _ = data.draw(0, ROWS)
        some = data._replace(X=data.X[chosen], y=data.y[chosen])
        for seed in range(splits):
            split = split_fraction(some, seed)
            for rule, parameters in CANDIDATES.items():
                options = {"categorical_features": data.categorical, "random_state": 0}
                model = PrunedTreeClassifier(**options, **parameters)
                found = measure_fit(model, split, time.perf_counter)
                rows.append({
                    "table": name, "split": seed, "rule": rule, "error": found["error"],
                    "leaves": model.get_n_leaves(), "seconds": found["seconds"],
                })  # fmt: skip
        print(name, flush=True)
    store("rules", rows)


if __name__ == "__main__":
    typer.run(main)
