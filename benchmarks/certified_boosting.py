"""Bounds of certified boosted trees and forests, against hold-outs and certified trees.

Random rows of public tables of classes, three draws, delta .05. A hold-out fits the same kind of model
to four fifths of the rows and bounds its error on the others; "all rows" is the test error of a fit to
all rows. Boosted trees: 300, 1000 and 5000 rows, up to 10,000 test rows (`certified_boosting.csv`; odd
tables chose no defaults). Forests: 70 % of the rows of seven tables, the others test
(`certified_forest.csv`).
"""

from typing import Any

import numpy as np
import typer
from sklearn.model_selection import train_test_split

import certree
from benchmarks.results import Row, report, store
from benchmarks.tables import Split, has_chosen_defaults, load_tables, split_fraction

# Largest bound of a certified forest that is allowed, by table.
GOALS = {
    "adult": 0.30, "bank_marketing": 0.21, "credit_default": 0.34, "letter": 0.42,
    "pendigits": None, "satimage": None, "spam": None,
}  # fmt: skip


def measure(kind: str, split: Split, options: dict[str, Any]) -> dict[str, float]:
    """Return bounds and test errors of "BoostedTrees" or "Forest", and the bound of a tree."""
    X, y, X_test, y_test = split
    make = getattr(certree, kind.replace("Forest", "TreeForest") + "Classifier")
    certified = getattr(certree, f"Certified{kind}Classifier")(duplicates="genuine", **options).fit(
        X, y
    )
    tree = certree.CertifiedTreeClassifier(duplicates="genuine", **options).fit(X, y)
    seed = options["random_state"]
    X_train, X_held, y_train, y_held = train_test_split(X, y, test_size=0.2, random_state=seed)
    held_out, plain = make(**options).fit(X_train, y_train), make(**options).fit(X, y)
    return {
        "bound": certified.certificate_.bound,
        "tree": tree.certificate_.bound,
        "hold-out": certree.certify(held_out, X_held, y_held, 0.05, duplicates="genuine").bound,
        "test error": 1 - certified.score(X_test, y_test),
        "hold-out's": 1 - held_out.score(X_test, y_test),
        "all rows": 1 - plain.score(X_test, y_test),
    }


def average(draws: list[dict[str, float]]) -> dict[str, float]:
    """Return the means over draws."""
    return {key: float(np.mean([one[key] for one in draws])) for key in draws[0]}


def main(only: str = "", seeds: int = 3, forests: bool = True) -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    lines, rows = [], []
    for name, data in load_tables(only, regression=False).items():
        options = [
            {"categorical_features": data.categorical, "random_state": s} for s in range(seeds)
        ]
        for n in (n for n in (300, 1000, 5000) if len(data.y) >= 1.3 * n):
            draws = []
            for seed in range(seeds):
                train, test, _ = data.draw(seed, n, 10_000)
                split = data.X[train], data.y[train], data.X[test], data.y[test]
                draws.append(measure("BoostedTrees", split, options[seed]))
            kind = "even" if has_chosen_defaults(name) else "odd"
            lines.append({"table": name, "kind": kind, "rows": n, **average(draws)})
            print(*lines[-1].values(), flush=True)
        if forests and name in GOALS:
            splits = [split_fraction(data, seed) for seed in range(seeds)]
            found = average([measure("Forest", s, o) for s, o in zip(splits, options, strict=True)])
            rows += [
                Row(name, target=GOALS[name], figure=found["bound"], unit="certificate"),
                Row(name, figure=found["test error"], unit="test error"),
                Row(name, figure=found["hold-out"], unit="hold-out"),
                Row(name, figure=found["hold-out's"], unit="test error, hold-out"),
                Row(name, figure=found["tree"], unit="certified tree"),
            ]
    store("certified_boosting", lines)
    if rows:
        report("certified_forest", rows)


if __name__ == "__main__":
    typer.run(main)
