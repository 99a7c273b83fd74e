"""One fit to several outputs, against a fit for each: boosted trees and forests.

Sixteen numbers of 500, 2000 and 8000 rows with 12 features, whose true values are known: "shared" ones
are mixtures of four functions, "apart" ones have a function each. Noise has half of their deviation.
"numbers" are boosted trees, "forest" a forest; errors are root mean squared distances from the truth
on 5000 new rows. "boosted labels" are boosted trees of whether eight of the numbers are above their
medians, with log losses. `time` is the CPU time over that of one of the other fits, on one thread;
`error` the ratio of the errors. Targets: at most 3 and 1.01.
"""

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from benchmarks.results import store
from benchmarks.timing import measure_seconds
from certree import BoostedTreesClassifier, BoostedTreesRegressor, TreeForestRegressor

Numbers = NDArray[np.float64]
N_OUTPUTS, N_FEATURES, N_SHARED, N_LABELS, NEW_ROWS, DRAWS = 16, 12, 4, 8, 5000, 2
KINDS = ("shared", "apart")


def compute_function(X: Numbers, random: np.random.Generator) -> Numbers:
    """Return a random sum of waves, kinks and steps of pairs of features."""
    total = np.zeros(len(X))
    for _ in range(4):
        j, k = random.choice(X.shape[1], 2, replace=False)
        factors = random.normal(size=4)
        total += factors[0] * np.sin(1.5 * X[:, j] + factors[1])
        total += factors[2] * (X[:, j] * X[:, k] > 0) + 0.7 * factors[3] * np.maximum(X[:, k], 0)
    return total


def draw_numbers(kind: str, n: int, seed: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return rows, the true numbers, and the numbers with noise."""
    random = np.random.default_rng((seed, n))
    X = random.normal(size=(n, N_FEATURES))
    n_functions = N_SHARED if kind == "shared" else N_OUTPUTS
    truth = np.column_stack([compute_function(X, random) for _ in range(n_functions)])
    if kind == "shared":
        truth = truth @ random.normal(size=(N_SHARED, N_OUTPUTS))
    truth /= truth.std(axis=0)
    return X, truth, truth + 0.5 * random.normal(size=truth.shape)


def fit(make: Any, X: Numbers, y: NDArray[Any]) -> tuple[Any, float]:
    """Return a model and the CPU seconds of its fit."""
    model = make(random_state=0, n_jobs=1)
    return model, measure_seconds(lambda: model.fit(X, y), process_time)


def compare(make: Any, kind: str, n: int, seed: int) -> tuple[float, float]:
    """Return the ratios of times and of errors of one fit to those of a fit for each output."""
    X, truth, y = draw_numbers(kind, n + NEW_ROWS, seed)
    new, is_classifier = X[n:], make is BoostedTreesClassifier
    if is_classifier:
        y = truth = (y[:, :N_LABELS] > np.median(y[:, :N_LABELS], axis=0)).astype(int)
    together, time = fit(make, X[:n], y[:n])
    models, times = zip(*(fit(make, X[:n], column[:n]) for column in y.T), strict=True)
    if is_classifier:
        found = together.predict_proba(new), [model.predict_proba(new) for model in models]
        losses = [
            np.mean([log_loss(*pair) for pair in zip(truth[n:].T, one, strict=True)])
            for one in found
        ]
    else:
        found = together.predict(new), np.column_stack([model.predict(new) for model in models])
        losses = [np.sqrt(np.mean((one - truth[n:]) ** 2)) for one in found]
    return time / np.mean(times), float(losses[0] / losses[1])


OUTPUTS: dict[str, Callable[..., tuple[float, float]]] = {
    "numbers": partial(compare, BoostedTreesRegressor),
    "forest": partial(compare, TreeForestRegressor),
    "boosted labels": partial(compare, BoostedTreesClassifier),
}


def main(largest: int = 8000) -> None:
    """Measure all outputs; largest: the largest number of rows."""
    rows = []
    for what, run in OUTPUTS.items():
        for kind in KINDS:
            for n in (n for n in (500, 2000, 8000) if n <= largest):
                time, error = np.mean([run(kind, n, seed) for seed in range(DRAWS)], axis=0)
                figures = {"time": f"{time:.2f}", "error": f"{error:.3f}"}
                rows.append({"outputs": what, "table": kind, "rows": n, **figures})
                print(*rows[-1].values(), flush=True)
    store("outputs", rows)


if __name__ == "__main__":
    typer.run(main)
