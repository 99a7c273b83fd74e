"""One tree over categories alone, against the trees of gradient boosting that take categories.

50,000 rows of 20 features with 5 to 100 categories each and two classes, which depend on random
effects of the categories; one tree of as many leaves, each best first. The time is that from the
matrix of codes to the grown tree, the peers' binning and the setting up of their estimators
included, of one thread each and of two. The peers boost the log loss for one round; LightGBM is
skipped where it is not installed. The target is to be faster than each peer.
"""

import argparse
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from benchmarks.timing import Row, alternate, report
from certree import grow_cart

N_FEATURES = 20
LEAVES = (31, 255)


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of codes, float64, and two classes."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 101, N_FEATURES)
    X = rng.integers(0, sizes, (n, N_FEATURES))
    effects = [rng.normal(size=size) for size in sizes]
    signal = sum(effect[X[:, j]] for j, effect in enumerate(effects[:6]))
    y = signal + 2 * rng.normal(size=n) > 0
    return X.astype(np.float64), y.astype(np.int32)


def boosting(X: np.ndarray, y: np.ndarray, n_leaves: int, n_jobs: int) -> None:
    """One tree of scikit-learn's gradient boosting."""
    with threadpool_limits(n_jobs, "openmp"):
        HistGradientBoostingClassifier(
            max_iter=1,
            max_leaf_nodes=n_leaves,
            min_samples_leaf=1,
            categorical_features=range(N_FEATURES),
            early_stopping=False,
        ).fit(X, y)


def peers() -> dict[str, Callable[[np.ndarray, np.ndarray, int, int], None]]:
    """The peers that are installed."""
    found = {"HistGradientBoosting": boosting}
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        print("LightGBM is not installed and is skipped.")
        return found

    def lightgbm(X: np.ndarray, y: np.ndarray, n_leaves: int, n_jobs: int) -> None:
        LGBMClassifier(
            n_estimators=1,
            num_leaves=n_leaves,
            min_child_samples=1,
            n_jobs=n_jobs,
            verbose=-1,
        ).fit(X, y, categorical_feature=list(range(N_FEATURES)))

    return {**found, "LightGBM": lightgbm}


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="number of rows")
    n = parser.parse_args().rows
    X, y = drawn(n)
    every = range(N_FEATURES)
    rows = []
    for name, peer in peers().items():
        for n_leaves in LEAVES:
            for n_jobs in (1, 2):
                ours, theirs = alternate(
                    lambda k=n_leaves, j=n_jobs: grow_cart(
                        X,
                        y,
                        criterion="gini",
                        max_leaf_nodes=k,
                        categorical_features=every,
                        n_jobs=j,
                    ),
                    lambda f=peer, k=n_leaves, j=n_jobs: f(X, y, k, j),
                    repeats=9,
                )
                case = f"{n} rows, p = {N_FEATURES}, {n_leaves} leaves, {n_jobs} threads"
                rows.append(Row(case, ours, name, theirs, 1.0))
    report("categorical", rows)


if __name__ == "__main__":
    main()
