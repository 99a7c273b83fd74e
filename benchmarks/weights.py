"""Sample weights: a row is one draw, whatever it weighs, and only ratios of weights matter.

Two classes of 1500 rows with six features, of which the probabilities are known; log losses are means
over 4000 new rows, and means over twenty draws (units: the largest of three). Three questions are
asked of each classifier:

* "class weight": the weighted log loss of ``class_weight={0: 1, 1: 10}`` over that of {0: .1, 1: 1},
  and of {0: 1, 1: 10.001}; AdaBoost takes them as weights of rows. Target: at most 3 % from 1.
* "unit": the most by which a probability moves where weights of 1 or 10 are multiplied by powers of
  two, and by other constants from 1e-4 to 1e4. Targets: 0, and 1e-9 (forests 1e-3).
* "uneven": the log loss of a fit to rows that weigh 1 or 10 at random over that of an unweighted fit to
  as many rows as Kish's effective number of them. Target: at most 1.03.

Prints, and writes to results/weights.csv, a line for each classifier; ``--only`` measures some of them,
and leaves the others in the file as they are.
"""

import argparse
import csv
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from benchmarks.records import RESULTS, store
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    CertifiedBoostedTreesClassifier,
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    TreeForestClassifier,
)

Numbers = NDArray[np.float64]

ROWS, NEW, FEATURES, SEEDS, HEAVY = 1500, 4000, 6, 20, 10.0
MODELS: dict[str, Callable[..., Any]] = {
    "PAC-Bayes tree": PACBayesTreeClassifier,
    "pruned tree": PrunedTreeClassifier,
    "Helmbold-Schapire tree": HelmboldSchapireTreeClassifier,
    "decorated tree": DecoratedTreeClassifier,
    "naive Bayes": NaiveBayesClassifier,
    "boosted trees": BoostedTreesClassifier,
    "forest": TreeForestClassifier,
    "AdaBoost": AdaBoostTreeClassifier,
    "certified tree": CertifiedTreeClassifier,
    "certified boosted trees": CertifiedBoostedTreesClassifier,
}
# Those of which rounding may decide which rows are drawn.
FORESTS = ("forest",)
# Each takes nine fits.
_SEEDS_OF_UNITS = 3
POWERS, OTHERS = (2.0**-13, 0.5, 2.0, 2.0**13), (1e-4, 0.3, 7.0, 1e4)


def drawn(n: int, seed: int) -> tuple[Numbers, NDArray[np.int64]]:
    """Draw rows and classes."""
    random = np.random.default_rng((seed, n))
    X = random.normal(size=(n, FEATURES))
    score = 1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) - np.maximum(X[:, 3], 0) + 0.3
    return X, (random.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)


def fitted(kind: Callable[..., Any], **parameters: Any) -> Any:
    """Make a model with a seed, if it takes one."""
    model = kind(**parameters)
    seeded = "random_state" in model.get_params()
    return model.set_params(random_state=0) if seeded else model


def by_classes(kind: Callable[..., Any], seed: int) -> tuple[float, float]:
    """Weighted log losses of 1:10 over .1:1, and over 1:10.001."""
    (X, y), (X_new, y_new) = drawn(ROWS, seed), drawn(NEW, seed)
    losses = []
    for of_classes in ((1.0, HEAVY), (0.1, HEAVY / 10), (1.0, HEAVY + 1e-3)):
        if "class_weight" in kind().get_params():
            model = fitted(kind, class_weight=dict(enumerate(of_classes))).fit(X, y)
        else:
            model = fitted(kind).fit(X, y, sample_weight=np.array(of_classes)[y])
        weight = np.where(y_new == 1, HEAVY, 1.0)
        losses.append(log_loss(y_new, model.predict_proba(X_new), sample_weight=weight))
    return losses[0] / losses[1], losses[0] / losses[2]


def by_unit(kind: Callable[..., Any], seed: int) -> tuple[float, float]:
    """How far probabilities move in other units of weight: powers of two, and others."""
    (X, y), (X_new, _) = drawn(ROWS, seed), drawn(NEW, seed)
    weight = np.random.default_rng(seed).choice([1.0, HEAVY], ROWS)

    def said(unit: float) -> Numbers:
        return fitted(kind).fit(X, y, sample_weight=unit * weight).predict_proba(X_new)

    first = said(1.0)
    moved = [max(np.abs(said(unit) - first).max() for unit in units) for units in (POWERS, OTHERS)]
    return moved[0], moved[1]


def by_size(kind: Callable[..., Any], seed: int) -> tuple[float, float]:
    """Log losses of a weighted fit, and of an unweighted one to its effective number of rows."""
    (X, y), (X_new, y_new) = drawn(ROWS, seed), drawn(NEW, seed)
    weight = np.random.default_rng(seed).choice([1.0, HEAVY], ROWS)
    size = round(weight.sum() ** 2 / np.square(weight).sum())
    weighted = fitted(kind).fit(X, y, sample_weight=weight)
    fewer = fitted(kind).fit(X[:size], y[:size])
    losses = [log_loss(y_new, one.predict_proba(X_new)) for one in (weighted, fewer)]
    return losses[0], losses[1]


def line_of(name: str, seeds: int) -> dict[str, Any]:
    """Measure a classifier."""
    kind = MODELS[name]
    ratios = np.mean([by_classes(kind, seed) for seed in range(seeds)], axis=0)
    moved = np.max([by_unit(kind, seed) for seed in range(min(seeds, _SEEDS_OF_UNITS))], axis=0)
    losses = np.mean([by_size(kind, seed) for seed in range(seeds)], axis=0)
    least = 1e-3 if name in FORESTS else 1e-9
    met = [
        np.abs(ratios - 1).max() <= 0.03,
        moved[0] == 0 and moved[1] <= least,
        losses[0] <= 1.03 * losses[1],
    ]
    return {
        "model": name,
        "rows": ROWS,
        "seeds": seeds,
        "class_weight": f"{ratios[0]:.4f}",
        "class_weight_10_001": f"{ratios[1]:.4f}",
        "moved_by_powers_of_two": f"{moved[0]:.1e}",
        "moved_by_others": f"{moved[1]:.1e}",
        "log_loss": f"{losses[0]:.4f}",
        "log_loss_of_effective_size": f"{losses[1]:.4f}",
        "ratio": f"{losses[0] / losses[1]:.3f}",
        "met": "yes" if all(met) else "no",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[*MODELS], default=[*MODELS])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    place, found = RESULTS / "weights.csv", {}
    if place.exists():
        with place.open() as file:
            found = {one["model"]: one for one in csv.DictReader(file)}
    for name in options.only:
        found[name] = line_of(name, options.seeds)
        print(*found[name].values(), sep="  ", flush=True)
    store(place, [found[name] for name in MODELS if name in found])


if __name__ == "__main__":
    main()
