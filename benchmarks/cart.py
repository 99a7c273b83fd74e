"""Greedy growth to full depth against scikit-learn's trees, both exact, on the same rows.

Classes follow a product and a sum of normal features with noise, so that trees grow deep. Times are of
one growth each; certree's is measured on one thread and on two, scikit-learn grows on one. The figure
is certree's time over scikit-learn's; the targets are 1/8 on one thread and 1/15 on two for 1e6 rows
of 28 features, 1/8 for the other classifications, 1/10 for regression. The test errors of the last
column must agree within noise. scikit-learn is given float32, which it works with.
"""

import argparse

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.timing import Row, report, seconds
from certree import count, grow_cart

TEST_ROWS = 50_000


def drawn(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, float32, and a noisy response."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + TEST_ROWS, p)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X))
    return X, signal.astype(np.float64)


def classification(n: int, p: int, targets: dict[int, float]) -> list[Row]:
    """Full-depth classification trees by Gini."""
    X, signal = drawn(n, p)
    y = (signal > 0).astype(np.int32)
    theirs = DecisionTreeClassifier(random_state=0)
    peer = seconds(lambda: theirs.fit(X[:n], y[:n]))
    peer_error = np.mean(theirs.predict(X[n:]) != y[n:])
    rows = []
    for threads, target in targets.items():
        ours = seconds(lambda k=threads: grow_cart(X[:n], y[:n], criterion="gini", n_jobs=k))
        tree = grow_cart(X[:n], y[:n], criterion="gini", n_jobs=threads)
        label = count(tree, X[:n], y[:n], 2).label
        error = np.mean(label[tree.apply(X[n:])] != y[n:])
        case = (
            f"classes, {n} rows, p = {p}, {threads} threads, errors {error:.4f} / {peer_error:.4f}"
        )
        rows.append(Row(case, ours, "DecisionTreeClassifier", peer, target))
    return rows


def regression(n: int, p: int) -> Row:
    """Full-depth regression trees by squared loss."""
    X, y = drawn(n, p)
    peer = seconds(lambda: DecisionTreeRegressor(random_state=0).fit(X[:n], y[:n]))
    ours = seconds(lambda: grow_cart(X[:n], y[:n], criterion="squared", n_jobs=1))
    return Row(f"numbers, {n} rows, p = {p}, 1 thread", ours, "DecisionTreeRegressor", peer, 0.1)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large cases")
    n = parser.parse_args().rows
    rows = classification(n // 10, 28, {1: 1 / 8}) + classification(n // 20, 200, {1: 1 / 8})
    rows += [regression(n, 10)]
    rows += classification(n, 28, {1: 1 / 8, 2: 1 / 15})
    report("cart", rows)


if __name__ == "__main__":
    main()
