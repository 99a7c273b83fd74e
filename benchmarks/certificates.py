"""Bounds of `CertifiedTreeClassifier` at its defaults, against hold-outs and against a plain fit.

Random rows of public tables of classes and of scikit-learn's, 60 draws for each number of rows, delta
.05; up to 5000 other rows give the test error. A hold-out prunes a tree by cross-validation on a
fraction of the rows and bounds its error on the others; six fractions. `certificates_draws.csv` has all
draws, `certificates.csv` the time of a fit over that of `PACBayesTreeClassifier`. Takes an hour.
"""

import warnings
from functools import partial
from typing import Any

import numpy as np
import typer

from benchmarks.figures import NAMED, SIZES
from benchmarks.results import Row, report, store
from benchmarks.tables import Data, load_tables
from benchmarks.timing import measure_in_turn
from certree import CertifiedTreeClassifier, PACBayesTreeClassifier, PrunedTreeClassifier
from certree.certificates import hold_out
from certree.rows.split import train_calibration_split

DELTA, FRACTIONS = 0.05, (0.2, 0.35, 0.5, 0.65, 0.75, 0.85)
MAX_TEST_ROWS, MIN_TEST_ROWS = 5000, 100


def measure(data: Data, size: int, seed: int) -> dict[str, float]:
    """Return the bounds of one draw of rows."""
    order = np.random.RandomState(seed).permutation(len(data.y))
    rows, test = order[:size], order[size : size + MAX_TEST_ROWS]
    X, y = data.X[rows], data.y[rows]
    options: dict[str, Any] = {"categorical_features": data.categorical, "random_state": seed}
    model = CertifiedTreeClassifier(delta=DELTA, duplicates="genuine", **options).fit(X, y)
    found = {
        "certree": model.certificate_.bound,
        "error": 1 - model.score(data.X[test], data.y[test]),
        "train_size": model.train_size_,
        "proposal": float(model.certificate_ is model.certificates_[0]),
    }
    for fraction in FRACTIONS:
        split = train_calibration_split(size, fraction, np.random.RandomState(seed))
        pruned = PrunedTreeClassifier(rule="cost-complexity", cv=3, **options)
        pruned.fit(X[split.train], y[split.train])
        held = split.calibration
        errors = int(np.sum(pruned.predict(X[held]) != y[held]))
        found[f"hold-out {fraction}"] = hold_out(errors, len(held), DELTA).bound
    return found


def compare_times(data: Data) -> tuple[float, float]:
    """Return the seconds of a certified fit to all rows and of one without a certificate."""
    options: dict[str, Any] = {"categorical_features": data.categorical, "random_state": 0}
    models = (
        CertifiedTreeClassifier(duplicates="genuine", **options),
        PACBayesTreeClassifier(**options),
    )
    return measure_in_turn(*(partial(model.fit, data.X, data.y) for model in models), repeats=3)


def main(only: str = "", draws: int = 60) -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    rows: list[dict[str, Any]] = []
    tables = load_tables(only, regression=False, shipped=True)
    warnings.simplefilter("ignore")  # classes with fewer rows than folds
    for size in SIZES:
        for name, data in tables.items():
            n = 4000 if (name, size) == ("spam", 5000) else size  # spam has 4601 rows
            if n + MIN_TEST_ROWS <= len(data.y):
                where = {"table": name, "size": size}
                rows += [{**where, "seed": s, **measure(data, n, s)} for s in range(draws)]
                print(name, size, flush=True)
    store("certificates_draws", rows)
    times = {name: compare_times(tables[name]) for name in NAMED if name in tables}
    report(
        "certificates",
        [Row(f"{k}, fit", a, "no certificate", b, 2.0) for k, (a, b) in times.items()],
    )


if __name__ == "__main__":
    typer.run(main)
