"""What certainty costs where a threshold is chosen: boosted trees on public tables, 5 FN + FP.

4000 rows train, 1000 judge, all others say what is true; delta .05, means over 20 splits. A missed row
of the second class costs 5, a false alarm 1, per row:

* `certified`: the bound at the threshold that has the lowest, with costs that are named before;
* `by bands`: the same without, so that all costs are covered;
* `Bonferroni`: the lowest over 50 thresholds fixed before, 0.02 to 0.98 or so, each with the limits of
  Clopper and Pearson for either kind of errors at delta / 100;
* `chosen, then one limit`: what holds of one threshold alone, at the one that looks best: no promise;
* true costs at the thresholds that are certified, at the one that looks best, and the lowest there is.

Needs CERTREE_DATA; takes some minutes. Goal: .42 certified on adult.
"""

import math
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.defaults import Data, tables
from benchmarks.timing import Row, report
from certree import BoostedTreesClassifier
from certree.certificates import Guarantees
from certree.certificates.inequalities.bounds import binomial_upper, named_cost

TABLES = ("adult", "bank_marketing", "credit_default", "electricity", "magic04", "spam")
COSTS, DELTA = (5.0, 1.0), 0.05
TRAIN, JUDGE, SPLITS, GRID = 4000, 1000, 20, 50
GOAL = {"adult, certified": 0.42}


def costs_of(y: Any, score: Any, thresholds: Any) -> tuple[Any, Any]:
    """Missed rows and false alarms at each threshold."""
    first, second = (np.sort(score[y == label]) for label in (0, 1))
    return np.searchsorted(second, thresholds), len(first) - np.searchsorted(first, thresholds)


def split(data: Data, seed: int) -> dict[str, float]:
    """What one split says."""
    order = np.random.default_rng(seed).permutation(len(data.y))
    train, judge, rest = np.split(order, [TRAIN, TRAIN + JUDGE])
    if len(rest) < 500:
        train, judge, rest = np.split(order, [len(order) // 2, len(order) // 2 + JUDGE])
    model = BoostedTreesClassifier(
        quality="fast", categorical_features=data.categorical, random_state=seed
    ).fit(data.X[train], data.y[train])
    guarantees = Guarantees.by_rows(
        model, data.X[judge], data.y[judge], DELTA, duplicates="genuine"
    )
    named = guarantees.thresholds(costs=COSTS).lowest_cost(*COSTS)
    bands = guarantees.thresholds().lowest_cost(*COSTS)
    score = model.predict_proba(data.X[judge])[:, 1]
    grid = np.linspace(0, 1, GRID + 2)[1:-1]
    log_level = math.log(DELTA / GRID / 2)
    errors = zip(*costs_of(data.y[judge], score, grid), strict=True)
    several = min(
        sum(
            cost * binomial_upper(int(k), JUDGE, log_level)
            for cost, k in zip(COSTS, pair, strict=True)
        )
        for pair in errors
    )
    own = np.unique(score)
    missed, alarms = costs_of(data.y[judge], score, own)
    best = int(np.argmin(COSTS[0] * missed + COSTS[1] * alarms))
    shares = missed[best] / JUDGE, alarms[best] / JUDGE
    alone = 5 * named_cost(*shares, 1.0, 0.2, JUDGE, 0.0, math.log(DELTA))
    new = model.predict_proba(data.X[rest])[:, 1]

    def true(thresholds: Any) -> Any:
        missed, alarms = costs_of(data.y[rest], new, np.atleast_1d(thresholds))
        return (COSTS[0] * missed + COSTS[1] * alarms) / len(rest)

    return {
        "certified": named.cost_at_most,
        "by bands": bands.cost_at_most,
        "Bonferroni over 50": several,
        "chosen, then one limit (no promise)": alone,
        "true, certified": float(true(named.threshold)[0]),
        "true, by bands": float(true(bands.threshold)[0]),
        "true, looks best": float(true(own[best])[0]),
        "true, threshold .5": float(true(0.5)[0]),
        "true, lowest": float(true(np.unique(new)).min()),
        "false promises": float(true(named.threshold)[0] > named.cost_at_most),
    }


def main() -> None:
    """Measure all tables."""
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("thresholds: skipped, CERTREE_DATA names no directory of tables")
        return
    rows = []
    for name, data in tables(Path(directory)).items():
        if name not in TABLES:
            continue
        found = defaultdict(list)
        for seed in range(SPLITS):
            for way, figure in split(data, seed).items():
                found[way].append(figure)
        for way, figures in found.items():
            case = f"{name}, {way}"
            mean = float(np.mean(figures))
            rows.append(Row(case, None, target=GOAL.get(case), figure=mean, unit="a row"))
    report("thresholds", rows)


if __name__ == "__main__":
    main()
