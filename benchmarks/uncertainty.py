"""How often the true mean lies within 1.645 standard errors of a boosted prediction, by several ways.

Drawn tables whose true means are known: Friedman's three functions, a sum of steps, and a wave whose
noise grows along the first feature; 500, 2000 and 8000 rows, three draws, 2000 new rows each. `held` is
the share of new rows whose true mean lies within, which normal errors would make .9; `size` the root
mean square of the standard errors over that of the errors. Ways:

* thirds: `predict_std`, the deviations of the prunings added up, as large as fits to thirds tell;
* thirds, one size: what these tell, the same for all rows;
* prunings, added: deviations of the prunings, of all rounds; prunings, independent: the root of the
  sum of their squares;
* late rounds: the deviation of what the rounds of the second half say (truncated virtual ensembles of
  Malinin, Prokhorenkova and Ustimenko, "Uncertainty in gradient boosting via ensembles", ICLR 2021);
* seeds: that of four fits of other seeds; halves: of 12 fits to halves, six pairs; bootstrap: of eight
  fits with weights of the Bayesian bootstrap. All have as many rounds as the model.

Classes are drawn by the same functions on a log scale, and three by a softmax: `predict_std` alone, of
probabilities. Where CERTREE_DATA names public tables, two fits to disjoint halves of 1000 and 4000 rows
of those of numbers predict up to 5000 others: `held` is the share of new rows of which they differ by
less than 1.645 times the root of the sum of both squared standard errors. The spread is a part of the
error: thirds tell more, as all fits may be wrong together. Takes some minutes.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from benchmarks.defaults import REGRESSION, Data, tables
from benchmarks.timing import Row, alternate, report
from certree import BoostedTreesClassifier, BoostedTreesRegressor
from certree.interface.arrays import Float64

WIDE, SIZES, DRAWS, NEW = 1.645, (500, 2000, 8000), 3, 2000
HALVES, MOST_NEW = (1000, 4000), 5000

Drawn = tuple[Float64, Float64, Float64]  # rows, their means, and the deviation of the noise


def friedman_1(random: np.random.Generator, n: int) -> Drawn:
    X = random.random((n, 10))
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, mean + 10 * X[:, 3] + 5 * X[:, 4], np.full(n, 2.0)


def _circuit(random: np.random.Generator, n: int) -> tuple[Float64, Float64]:
    X = random.random((n, 4)) * [100, 520 * np.pi, 1, 10] + [0, 40 * np.pi, 0, 1]
    return X, X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])


def friedman_2(random: np.random.Generator, n: int) -> Drawn:
    X, reactance = _circuit(random, n)
    return X, np.hypot(X[:, 0], reactance), np.full(n, 125.0)


def friedman_3(random: np.random.Generator, n: int) -> Drawn:
    X, reactance = _circuit(random, n)
    return X, np.arctan(reactance / X[:, 0]), np.full(n, 0.15)


def steps(random: np.random.Generator, n: int) -> Drawn:
    X = random.random((n, 6))
    above = (X > [0.3, 0.5, 0.7, 0.2, 0.6, 0.4]).astype(float)
    corner = (X[:, 0] > 0.6) & (X[:, 1] < 0.4)
    return X, above @ [2, -1.5, 1, 0.5, 0, 0] + corner, np.ones(n)


def wave(random: np.random.Generator, n: int) -> Drawn:
    X = random.random((n, 5))
    return X, 4 * np.sin(3 * X[:, 0]) + 2 * X[:, 1], 0.3 + 2 * X[:, 0]


WORLDS = {
    "Friedman 1": friedman_1,
    "Friedman 2": friedman_2,
    "Friedman 3": friedman_3,
    "steps": steps,
    "noisier along": wave,
}


def two_classes(world: Callable[..., Drawn], random: np.random.Generator, n: int) -> Any:
    """Rows, and the probabilities of two classes."""
    X, mean, _ = world(random, n)
    centre = world(np.random.default_rng(0), 10_000)[1]
    score = 2 * (mean - centre.mean()) / centre.std()
    return X, softmax(np.column_stack([-score / 2, score / 2]), axis=1)


def three_classes(random: np.random.Generator, n: int) -> Any:
    """Rows, and the probabilities of three classes."""
    X = random.normal(size=(n, 5))
    scores = np.column_stack([X[:, 0], np.sin(2 * X[:, 1]), X[:, 2] * X[:, 0] / 2])
    return X, softmax(1.5 * scores, axis=1)


def by_all_ways(X: Float64, y: Float64, new: Float64, seed: int) -> tuple[Float64, dict[str, Any]]:
    """Predictions of new rows, and their standard errors by each way."""
    random = np.random.default_rng(seed)
    model = BoostedTreesRegressor(random_state=seed, standard_errors=True).fit(X, y)
    leaf = model.apply(new) + model.trees_.root
    deviation = model._errors.deviation[leaf, 0]
    stages = np.array([*model.staged_predict(new)])
    told = {
        "thirds": model.predict_std(new),
        "thirds, one size": np.full(len(new), np.sqrt(np.mean(model.predict_std(X) ** 2))),
        "prunings, added": deviation.sum(axis=1),
        "prunings, independent": np.sqrt((deviation**2).sum(axis=1)),
        "late rounds": stages[model.n_iter_ // 2 :].std(axis=0),
    }

    def again(number: int, rows: Any = slice(None), weight: Any = None) -> Float64:
        one = BoostedTreesRegressor(
            max_iter=model.n_iter_,
            max_thresholds=model.thresholds_[0],
            max_leaf_nodes=model.max_leaf_nodes_,
            random_state=1000 * seed + number,
        )
        return one.fit(X[rows], y[rows], sample_weight=weight).predict(new)

    def apart(number: int) -> Float64:
        sides = np.array_split(random.permutation(len(y)), 2)
        one, other = (again(number + k, rows) for k, rows in enumerate(sides))
        return (one - other) / np.sqrt(2)

    told["seeds"] = np.std([again(k) for k in range(4)], axis=0, ddof=1)
    told["halves"] = np.sqrt(np.mean([apart(10 + 2 * k) ** 2 for k in range(6)], axis=0))
    drawn = [again(30 + k, weight=random.exponential(size=len(y))) for k in range(8)]
    told["bootstrap"] = np.std(drawn, axis=0, ddof=1)
    return model.predict(new), told


def numbers(name: str, n: int) -> Iterator[Row]:
    """Coverage of each way on a drawn table of numbers."""
    found = defaultdict(list)
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        X, mean, noise = WORLDS[name](random, n)
        new, truth, _ = WORLDS[name](random, NEW)
        predicted, told = by_all_ways(X, mean + noise * random.normal(size=n), new, seed)
        for way, std in told.items():
            found[way].append(held(predicted - truth, std))
    for way, figures in found.items():
        yield row(f"{name}, {n} rows, {way}", figures)


def classes(name: str, world: Callable[..., Any], n: int) -> Iterator[Row]:
    """Coverage of probabilities on a drawn table of classes."""
    figures = []
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        (X, shares), (new, truth) = world(random, n), world(random, NEW)
        y = (random.random((n, 1)) > shares.cumsum(axis=1)).sum(axis=1)
        model = BoostedTreesClassifier(random_state=seed, standard_errors=True).fit(X, y)
        figures.append(held(model.predict_proba(new) - truth, model.predict_std(new)))
    yield row(f"{name}, {n} rows, thirds", figures)


def halves(name: str, data: Data, n: int) -> Iterator[Row]:
    """Differences between fits to disjoint halves of a table."""
    figures = []
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(data.y))
        if len(order) < 2.5 * n:
            return
        new, said = data.X[order[2 * n : 2 * n + MOST_NEW]], []
        for rows in (order[:n], order[n : 2 * n]):
            model = BoostedTreesRegressor(
                standard_errors=True, categorical_features=data.categorical, random_state=seed
            )
            model.fit(data.X[rows], data.y[rows].astype(np.float64))
            said.append((model.predict(new), model.predict_std(new)))
        (one, of_one), (other, of_other) = said
        figures.append(held(one - other, np.hypot(of_one, of_other)))
    yield row(f"{name}, two halves of {n} rows, thirds", figures)


def held(error: Float64, std: Float64) -> tuple[float, float]:
    """Share of errors that lie within, and mean size of standard errors over that of errors."""
    within = np.abs(error) <= WIDE * std
    return float(within.mean()), float(np.sqrt(np.mean(std**2) / np.mean(error**2)))


def row(case: str, figures: list[tuple[float, float]]) -> Row:
    """Means over the draws."""
    share, size = np.mean(figures, axis=0)
    return Row(case, None, figure=float(share), unit=f"held, size {size:.2f}")


def times() -> Iterator[Row]:
    """What it takes, against the same fit without."""
    for n in SIZES:
        X, mean, noise = friedman_1(np.random.default_rng(0), n)
        y = mean + noise * np.random.default_rng(1).normal(size=n)
        models = [
            BoostedTreesRegressor(random_state=0, n_jobs=1, standard_errors=told)
            for told in (True, False)
        ]
        fits = [partial(one.fit, X, y) for one in models]
        with_them, without = alternate(*fits, 5, time.process_time)
        yield Row(f"fit, {n} rows", with_them, "without", without)


def main() -> None:
    """Measure everything."""
    made = [row for n in SIZES for name in WORLDS for row in numbers(name, n)]
    for n in SIZES:
        for name, world in WORLDS.items():
            made += classes(f"classes by {name}", partial(two_classes, world), n)
        made += classes("three classes", three_classes, n)
    directory = os.environ.get("CERTREE_DATA")
    for name, data in (tables(Path(directory)) if directory else {}).items():
        if name in REGRESSION:
            made += [row for n in HALVES for row in halves(name, data, n)]
    made += times()
    report("uncertainty", made)


if __name__ == "__main__":
    main()
