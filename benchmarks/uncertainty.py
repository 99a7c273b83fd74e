"""How often true means are within 1.645 standard errors of boosted predictions, by several methods.

Simulated tables with known means: Friedman's three functions, a sum of steps, and a wave whose noise
grows along the first feature; 500, 2000 and 8000 rows, three draws, 2000 new rows. The figure is the
fraction of new rows within; `size` is the root mean square of the standard errors over that of the
errors. Methods:

* thirds: `predict_std`;
* late rounds: deviation over the second half of the rounds (Malinin, Prokhorenkova and Ustimenko,
  "Uncertainty in gradient boosting via ensembles", ICLR 2021);
* seeds: deviation of four fits; bootstrap: deviation of eight fits with exponential row weights.

Two and three classes are drawn by the same functions on a log scale, and by a softmax.
"""

from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
import typer
from scipy.special import softmax

from benchmarks.results import Row, report
from certree import BoostedTreesClassifier, BoostedTreesRegressor
from certree.interface.arrays import Float64

SIZES, DRAWS, NEW_ROWS = (500, 2000, 8000), 3, 2000
# Rows, their means, and the deviation of the noise.
World = tuple[Float64, Float64, Any]


def draw_friedman_1(random: np.random.Generator, n: int) -> World:
    X = random.random((n, 10))
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, mean + 10 * X[:, 3] + 5 * X[:, 4], 2.0


def draw_circuit(is_phase: bool, random: np.random.Generator, n: int) -> World:
    """Draw Friedman's second function (impedance) or the third one (phase)."""
    X = random.random((n, 4)) * [100, 520 * np.pi, 1, 10] + [0, 40 * np.pi, 0, 1]
    reactance = X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])
    return (
        (X, np.arctan(reactance / X[:, 0]), 0.15)
        if is_phase
        else (X, np.hypot(X[:, 0], reactance), 125.0)
    )


def draw_steps(random: np.random.Generator, n: int) -> World:
    X = random.random((n, 6))
    above = (X > [0.3, 0.5, 0.7, 0.2, 0.6, 0.4]).astype(float)
    return X, above @ [2, -1.5, 1, 0.5, 0, 0] + ((X[:, 0] > 0.6) & (X[:, 1] < 0.4)), 1.0


def draw_wave(random: np.random.Generator, n: int) -> World:
    X = random.random((n, 5))
    return X, 4 * np.sin(3 * X[:, 0]) + 2 * X[:, 1], 0.3 + 2 * X[:, 0]


WORLDS = {
    "Friedman 1": draw_friedman_1,
    "Friedman 2": partial(draw_circuit, False),
    "Friedman 3": partial(draw_circuit, True),
    "steps": draw_steps,
    "noisier along": draw_wave,
}


def draw_two_classes(world: Any, random: np.random.Generator, n: int) -> tuple[Float64, Float64]:
    """Return rows and the probabilities of two classes."""
    X, mean, _ = world(random, n)
    centre = world(np.random.default_rng(0), 10_000)[1]
    score = 2 * (mean - centre.mean()) / centre.std()
    return X, softmax(np.column_stack([-score / 2, score / 2]), axis=1)


def draw_three_classes(random: np.random.Generator, n: int) -> tuple[Float64, Float64]:
    """Return rows and the probabilities of three classes."""
    X = random.normal(size=(n, 5))
    scores = np.column_stack([X[:, 0], np.sin(2 * X[:, 1]), X[:, 2] * X[:, 0] / 2])
    return X, softmax(1.5 * scores, axis=1)


def estimate_errors(
    X: Float64, y: Float64, new: Float64, seed: int
) -> tuple[Float64, dict[str, Any]]:
    """Return predictions of new rows, and their standard errors by each method."""
    random = np.random.default_rng(seed)
    model = BoostedTreesRegressor(random_state=seed, standard_errors=True).fit(X, y)
    stages = np.array([*model.staged_predict(new)])

    def refit(number: int, weight: Any = None) -> Float64:
        other = BoostedTreesRegressor(
            max_iter=model.n_iter_,
            max_thresholds=model.thresholds_[0],
            max_leaf_nodes=model.max_leaf_nodes_,
            random_state=1000 * seed + number,
        )
        return other.fit(X, y, sample_weight=weight).predict(new)

    weighted = [refit(30 + k, random.exponential(size=len(y))) for k in range(8)]
    return model.predict(new), {
        "thirds": model.predict_std(new),
        "late rounds": stages[model.n_iter_ // 2 :].std(axis=0),
        "seeds": np.std([refit(k) for k in range(4)], axis=0, ddof=1),
        "bootstrap": np.std(weighted, axis=0, ddof=1),
    }


def compare(error: Float64, std: Float64) -> tuple[float, float]:
    """Return the fraction of errors within, and the size of standard errors relative to errors."""
    within = np.abs(error) <= 1.645 * std
    return float(within.mean()), float(np.sqrt(np.mean(std**2) / np.mean(error**2)))


def main(largest: int = 8000) -> None:
    """Measure all simulations; largest: the largest number of rows."""
    found = defaultdict(list)
    classes = {f"classes by {k}": partial(draw_two_classes, one) for k, one in WORLDS.items()}
    classes["three classes"] = draw_three_classes
    for n in (n for n in SIZES if n <= largest):
        for seed in range(DRAWS):
            for name, world in WORLDS.items():
                random = np.random.default_rng(seed)
                (X, mean, noise), (new, truth, _) = world(random, n), world(random, NEW_ROWS)
                y = mean + noise * random.normal(size=n)
                predicted, errors = estimate_errors(X, y, new, seed)
                for method, std in errors.items():
                    found[f"{name}, {n} rows, {method}"].append(compare(predicted - truth, std))
            for name, world in classes.items():
                random = np.random.default_rng(seed)
                (X, chances), (new, truth) = world(random, n), world(random, NEW_ROWS)
                y = (random.random((n, 1)) > chances.cumsum(axis=1)).sum(axis=1)
                model = BoostedTreesClassifier(random_state=seed, standard_errors=True).fit(X, y)
                pair = compare(model.predict_proba(new) - truth, model.predict_std(new))
                found[f"{name}, {n} rows, thirds"].append(pair)
    rows = []
    for case, pairs in found.items():
        held, size = np.mean(pairs, axis=0)
        rows.append(Row(case, figure=float(held), unit=f"held, size {size:.2f}"))
    report("uncertainty", rows)


if __name__ == "__main__":
    typer.run(main)
