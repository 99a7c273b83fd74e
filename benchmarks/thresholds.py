"""Certified costs at chosen thresholds: boosted trees on public tables, costs 5 FN + FP per row.

4000 rows train, 1000 calibrate, all others give true costs; delta .05, means over 20 splits:

* `certified`: the lowest bound over thresholds, with costs named beforehand;
* `by bands`: the same for all costs at once;
* `Bonferroni`: the lowest over 50 fixed thresholds, with binomial limits at delta / 100;
* `chosen, then one limit`: the limit for one threshold, at the chosen one, which guarantees nothing;
* true costs at the certified threshold, and the lowest true cost.
"""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import typer

from benchmarks.results import Row, report
from benchmarks.tables import Data, load_tables
from certree import BoostedTreesClassifier
from certree.certificates import Guarantees
from certree.certificates.inequalities.bounds import binomial_upper, named_cost

TABLES = "adult,bank_marketing,credit_default,electricity,magic04,spam"
COSTS, DELTA = np.array([5.0, 1.0]), 0.05
TRAIN, CALIBRATION, GRID = 4000, 1000, 50


def count_errors(y: Any, score: Any, thresholds: Any) -> np.ndarray:
    """Return false negatives and false positives at each threshold, (2, n_thresholds)."""
    first, second = (np.sort(score[y == label]) for label in (0, 1))
    below = np.searchsorted(first, thresholds)
    return np.array([np.searchsorted(second, thresholds), len(first) - below])


def measure(data: Data, seed: int) -> dict[str, float]:
    """Return certified and true costs of one split."""
    train, held, test = data.draw(seed, TRAIN, CALIBRATION)
    if len(test) < 500:
        train, held, test = data.draw(seed, len(data.y) // 2, CALIBRATION)
    X, y = data.X[held], data.y[held]
    options = {"categorical_features": data.categorical, "random_state": seed}
    model = BoostedTreesClassifier(quality="fast", **options).fit(data.X[train], data.y[train])
    guarantees = Guarantees.by_rows(model, X, y, DELTA, duplicates="genuine")
    named = guarantees.thresholds(costs=tuple(COSTS)).lowest_cost(*COSTS)
    score, new = (model.predict_proba(rows)[:, 1] for rows in (X, data.X[test]))
    grid = np.linspace(0, 1, GRID + 2)[1:-1]
    level = math.log(DELTA / GRID / 2)
    limits = [
        [binomial_upper(int(k), CALIBRATION, level) for k in pair]
        for pair in count_errors(y, score, grid).T
    ]
    errors = count_errors(y, score, np.unique(score))
    fractions = errors[:, np.argmin(COSTS @ errors)] / CALIBRATION
    true_costs = [
        COSTS @ count_errors(data.y[test], new, at) / len(test)
        for at in (np.array([named.threshold]), np.unique(new))
    ]
    return {
        "certified": named.cost_at_most,
        "by bands": guarantees.thresholds().lowest_cost(*COSTS).cost_at_most,
        "Bonferroni over 50": float((np.array(limits) @ COSTS).min()),
        "chosen, then one limit (no promise)": 5
        * named_cost(*fractions, 1.0, 0.2, CALIBRATION, 0.0, math.log(DELTA)),
        "true, certified": float(true_costs[0][0]),
        "true, lowest": float(true_costs[1].min()),
    }


def main(only: str = TABLES, splits: int = 20) -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    found = defaultdict(list)
    for name, data in load_tables(only).items():
        for seed in range(splits):
            for what, cost in measure(data, seed).items():
                found[f"{name}, {what}"].append(cost)
    rows = [Row(case, figure=float(np.mean(costs)), unit="a row") for case, costs in found.items()]
    report("thresholds", rows)


if __name__ == "__main__":
    typer.run(main)
