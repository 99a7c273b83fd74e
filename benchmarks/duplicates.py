"""How often certificates are false if rows were copied, by the parameter `duplicates`.

Labels are fair coins (or of a rarer class), so the true error of each tree is known. Rows are copied
as tools do it. A certificate is false if it is below the true error; delta is .05.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.results import store
from certree import CertifiedTreeClassifier

Rows = tuple[NDArray[Any], NDArray[Any]]
N = 300


def draw_coins(n: int, seed: int, rare: float = 0.5, n_features: int = 3) -> Rows:
    """Return noise, with labels that are 1 with probability `rare`."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_features)), (rng.random(n) < rare).astype(int)


def repeat(*counts: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return a function that repeats rows by these numbers in turn."""
    return lambda y: np.repeat(np.arange(len(y)), np.resize(counts, len(y)))


def oversample(y: NDArray[Any]) -> NDArray[Any]:
    """Return row indices with copies of the rarer class, so that both classes have equal size."""
    few = np.flatnonzero(y == 1)
    copies = np.random.default_rng(len(few)).choice(few, len(y) - 2 * len(few))
    return np.append(np.arange(len(y)), copies)


CASES: dict[str, tuple[float, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "rows as they came": (0.5, repeat(1)),
    "three rows of 300 twice": (0.5, lambda y: np.append(np.arange(len(y)), np.arange(3))),
    "every row twice": (0.5, repeat(2)),
    "every row three times": (0.5, repeat(3)),
    "joined: once, twice, three times": (0.5, repeat(1, 2, 3)),
    "the rarer class copied up to one half": (0.2, oversample),
}


def is_false(duplicates: str, case: str, seed: int) -> float:
    """Return 1 if the certificate is below the true error, else 0; NaN if the fit is refused."""
    rare, copy = CASES[case]
    X, y = draw_coins(N, seed, rare)
    rows = copy(y)
    model = CertifiedTreeClassifier(duplicates=duplicates, random_state=seed, delta=0.05)
    try:
        model.fit(X[rows], y[rows])
    except ValueError:
        return np.nan
    predicted = model.predict(draw_coins(4000, 10**6 + seed)[0])
    return float(model.certificate_.bound < np.mean(np.where(predicted == 1, 1 - rare, rare)))


def main(draws: int = 300) -> None:
    """Count the certificates that are false."""
    warnings.simplefilter("ignore")
    lines = []
    for case in CASES:
        for duplicates in ("auto", "genuine", "copies"):
            found = np.array([is_false(duplicates, case, seed) for seed in range(draws)])
            refused = int(np.isnan(found).sum())
            false = "" if refused == draws else f"{np.nanmean(found):.3f}"
            line = {"model": "tree", "case": case, "duplicates": duplicates, "false": false}
            lines.append({**line, "refused": refused})
            print(*lines[-1].values(), flush=True)
    store("duplicates", lines)


if __name__ == "__main__":
    typer.run(main)
