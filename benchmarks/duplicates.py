"""How often certificates fail where a table holds rows more than once, by what is said of them.

Labels are coins, whatever the features are, so that the true error of everything that is fitted is
known. Rows are then copied as tools do it, and the certificates count that are below that error; a
share `delta` of them may be. Draws have the seeds 0, 1 and so on. Writes results/duplicates.csv.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.records import RESULTS, store
from certree import CertifiedForestClassifier, CertifiedTreeClassifier

Rows = tuple[NDArray[Any], NDArray[Any]]
N, DELTA = 300, 0.05


def coins(n: int, seed: int, rare: float = 0.5, n_features: int = 3) -> Rows:
    """Rows of noise, with labels of coins that show 1 with a probability of `rare`."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_features)), (rng.random(n) < rare).astype(int)


def oversampled(X: NDArray[Any], y: NDArray[Any]) -> Rows:
    """Copies of rows of the rarer class, drawn until both are as many."""
    few = np.flatnonzero(y == 1)
    again = np.random.default_rng(len(few)).choice(few, len(y) - 2 * len(few))
    return np.vstack([X, X[again]]), np.append(y, y[again])


def times(*counts: int) -> Callable[..., Rows]:
    """Each row as often as one of these numbers, in turn."""

    def copied(X: NDArray[Any], y: NDArray[Any]) -> Rows:
        row = np.repeat(np.arange(len(y)), np.resize(counts, len(y)))
        return X[row], y[row]

    return copied


def at_the_limit(X: NDArray[Any], y: NDArray[Any]) -> Rows:
    """As many copies as pass without a word, or nearly so."""
    few = np.arange(3)
    return np.vstack([X, X[few]]), np.append(y, y[few])


CASES: dict[str, tuple[float, Callable[..., Rows]]] = {
    "rows as they came": (0.5, lambda X, y: (X, y)),
    "three rows of 300 twice": (0.5, at_the_limit),
    "every row twice": (0.5, times(2)),
    "every row three times": (0.5, times(3)),
    "joined: once, twice, three times": (0.5, times(1, 2, 3)),
    "the rarer class copied up to one half": (0.2, oversampled),
}


def outcome(model: Any, word: str, case: str, seed: int) -> bool | None:
    """Whether the certificate is below the true error; None: there is none."""
    rare, copied = CASES[case]
    X, y = copied(*coins(N, seed, rare))
    model.set_params(duplicates=word, random_state=seed, delta=DELTA)
    try:
        model.fit(X, y)
    except ValueError:
        return None
    said = model.predict(coins(4000, 10**6 + seed)[0])
    return bool(model.certificate_.bound < np.mean(np.where(said == 1, 1 - rare, rare)))


def main() -> None:
    """Count the certificates that are false."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    models = {
        "tree": CertifiedTreeClassifier(),
        "forest": CertifiedForestClassifier(10, n_jobs=1),
    }
    print(f"certificates below the true error, {N} rows, {draws} draws, delta = {DELTA}")
    rows = []
    for name, model in models.items():
        for case in CASES:
            line = []
            for word in ("auto", "genuine", "copies"):
                found = [outcome(model, word, case, seed) for seed in range(draws)]
                made = [one for one in found if one is not None]
                false = f"{np.mean(made):.3f}" if made else ""
                told = {"false": false, "refused": draws - len(made)}
                rows.append({"model": name, "case": case, "duplicates": word, **told})
                line.append(f"{word} {false or '-':>5} ({draws - len(made):>3} refused)")
            print(f"{name:<7}{case:<38}{'   '.join(line)}", flush=True)
    store(RESULTS / "duplicates.csv", rows)


if __name__ == "__main__":
    main()
