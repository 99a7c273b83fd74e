"""How often certificates fail that were searched for, or whose features were chosen by all rows.

Labels are coins, whatever the features are, so that the true error of everything that is fitted is one
half, and a certificate below that is broken; a share .05 of them may be. Draws have the seeds 0, 1 and
so on. Writes results/searches.csv; takes a few minutes.
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.feature_selection import SelectKBest

from benchmarks.duplicates import coins
from benchmarks.records import RESULTS, store
from certree import CertifiedTreeClassifier


def least_of(n_seeds: int, n: int, draw: int) -> float:
    """The lowest certificate of so many values of `random_state`."""
    X, y = coins(n, draw)
    fits = (CertifiedTreeClassifier(random_state=seed).fit(X, y) for seed in range(n_seeds))
    return min(one.certificate_.bound for one in fits)


def chosen(k: int, n_features: int, within: bool, n: int, draw: int) -> float:
    """The certificate of the k features that tell most, by the fit itself or by all rows before it."""
    X, y = coins(n, draw, n_features=n_features)
    choice = SelectKBest(k=k)
    if within:
        model = CertifiedTreeClassifier(preprocessor=choice, random_state=draw).fit(X, y)
    else:
        model = CertifiedTreeClassifier(random_state=draw).fit(choice.fit_transform(X, y), y)
    return model.certificate_.bound


# What is certified, and of how many of the draws that are asked for.
CASES: dict[str, tuple[Callable[[int], float], float]] = {
    "one fit, 300 rows of 3 features": (partial(least_of, 1, 300), 1),
    "the lowest certificate of 30 values of `random_state`, 300 rows": (
        partial(least_of, 30, 300),
        1,
    ),
    "the lowest certificate of 100 values of `random_state`, 200 rows": (
        partial(least_of, 100, 200),
        0.4,
    ),
    "10 of 1000 features, chosen as `preprocessor=`, 200 rows": (
        partial(chosen, 10, 1000, True, 200),
        1,
    ),
    "10 of 1000 features, chosen before `fit` by all 200 rows": (
        partial(chosen, 10, 1000, False, 200),
        1,
    ),
    "20 of 5000 features, chosen before `fit` by all 200 rows": (
        partial(chosen, 20, 5000, False, 200),
        1,
    ),
}


def main() -> None:
    """Count the certificates that are broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100)
    draws = parser.parse_args().draws
    rows = []
    for case, (bound, share) in CASES.items():
        broken = [bound(draw) < 0.5 for draw in range(round(share * draws))]
        rows.append({"case": case, "draws": len(broken), "broken": float(np.mean(broken))})
        print(*rows[-1].values(), flush=True)
    store(RESULTS / "searches.csv", rows)


if __name__ == "__main__":
    main()
