"""What each step of boosted trees is worth: our loss without it over our loss with it.

On the tables of the directory CERTREE_DATA and of its folder `more`, at so many training rows, one
split each: default fits against fits that differ in one thing, in geometric mean over the tables, log
loss for classes and root mean squared error for numbers. Beside them the factor on the scores that
would have served the new rows best, and what it would have gained (1.00 and 0: calibrated as they
are); and the loss after so many rounds more than the best over that of the best number of rounds,
which rounds beyond it may at most raise by 3 %.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from benchmarks.defaults import Data
from benchmarks.learning_curves import NUMBERS, chooses, every_table, parts_of
from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor

STEPS: dict[str, dict[str, Any]] = {
    "no vote": {"prunings": "none"},
    "all thresholds": {"max_thresholds": None},
    "few thresholds": {"max_thresholds": 6},
    "all features": {"max_features": 1.0},
    "nine of ten rows grow": {"subsample": 0.9},
    "31 leaves": {"max_leaf_nodes": 31},
    "15 leaves": {"max_leaf_nodes": 15},
    "half the rate": {"learning_rate": 0.05},
}
MOST_ROUNDS = 2000


def model_of(data: Data, numbers: bool, **settings: Any) -> Any:
    """Our booster."""
    kind = BoostedTreesRegressor if numbers else BoostedTreesClassifier
    return kind(categorical_features=data.categorical, random_state=0, **settings)


def loss_of(model: Any, X: np.ndarray, y: np.ndarray, numbers: bool) -> float:
    """Root mean squared error, or log loss."""
    if numbers:
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    return float(-logs_of(model, X, 1.0)[np.arange(len(y)), y].mean())


def logs_of(model: Any, X: np.ndarray, factor: float) -> np.ndarray:
    """Logs of probabilities after a factor on the scores."""
    scores = model.decision_function(X) * factor
    return log_softmax(
        np.column_stack([0 * scores, scores]) if scores.ndim == 1 else scores, axis=1
    )


def best_factor(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The factor on the scores that serves rows best, and the share of log loss that it gains."""

    def loss(factor: float) -> float:
        return float(-logs_of(model, X, factor)[np.arange(len(y)), y].mean())

    found = minimize_scalar(loss, bounds=(0.2, 5.0), method="bounded")
    return float(found.x), 1 - float(found.fun) / loss(1.0)


def rounds_beyond(data: Data, parts: tuple[np.ndarray, ...], numbers: bool) -> float:
    """The loss after the last of many rounds over the least one."""
    X, y, X_test, y_test = parts
    model = model_of(data, numbers, max_iter=MOST_ROUNDS).fit(X, y, X_val=X_test, y_val=y_test)
    losses = -model.validation_score_[100:]
    return float((losses[-1] / losses.min()) ** (0.5 if numbers else 1.0))


def geometric(values: list[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def report(tables: dict[str, Data], n: int, numbers: bool, log: Callable[[str], None]) -> None:
    """Print all figures of some tables."""
    ratios: dict[str, list[float]] = {step: [] for step in STEPS}
    beyond, factors, gains = {}, [], []
    for name, data in tables.items():
        parts = parts_of(data, n, 0, numbers)
        X, y, X_test, y_test = parts
        model = model_of(data, numbers).fit(X, y)
        base = loss_of(model, X_test, y_test, numbers)
        for step, settings in STEPS.items():
            other = model_of(data, numbers, **settings).fit(X, y)
            ratios[step].append(loss_of(other, X_test, y_test, numbers) / base)
        if not numbers:
            factor, gain = best_factor(model, X_test, y_test)
            factors.append(factor)
            gains.append(gain)
        beyond[name] = rounds_beyond(data, parts, numbers)
    for step, values in ratios.items():
        log(f"   {step:24} {geometric(values):.3f}")
    if factors:
        log(f"   best factor on scores    {geometric(factors):.2f}, gains {np.mean(gains):.4f}")
    worst = max(beyond, key=lambda name: beyond[name])
    verdict = "met" if beyond[worst] <= 1.03 else "MISSED"
    log(
        f"   {MOST_ROUNDS} rounds over the best  {beyond[worst]:.3f} at worst, on {worst} ({verdict})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--without", nargs="*", default=[], help="tables to leave out")
    options = parser.parse_args()
    directory = os.environ.get("CERTREE_DATA")
    if not directory:
        print("boosting_steps: skipped, CERTREE_DATA names no directory of tables")
        return
    found = every_table(Path(directory))
    for chose in (True, False):
        for numbers in (False, True):
            part = {
                name: data
                for name, data in found.items()
                if chooses(name) == chose
                and (name in NUMBERS) == numbers
                and name not in options.without
                and options.rows <= 0.75 * len(data.y)
            }
            kind = "tables that chose" if chose else "tables that count"
            print(f"{kind}, {'numbers' if numbers else 'classes'}, {len(part)}", flush=True)
            if part:
                report(part, options.rows, numbers, lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
