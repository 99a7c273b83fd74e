"""Predicting many rows and single rows, against scikit-learn's tree of the same cells.

The tree is a ``DecisionTreeClassifier`` of up to 100 000 leaves, fitted to noisy labels of normal
rows with 16 features. The peer is this tree; ours is a ``PACBayesTreeClassifier`` in which all
prunings of the same tree vote. Target: at most the peer's time, for 1e6 rows of float64 and of
float32 in one call, and for 2000 calls of one row each.
"""

import argparse
from functools import partial

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from benchmarks.timing import Row, alternate, report
from certree import PACBayesTreeClassifier

FEATURES, CALLS = 16, 2000
PEER, TARGET = "DecisionTreeClassifier", 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--fit-rows", type=int, default=550_000)
    parser.add_argument("--leaves", type=int, default=100_000)
    parser.add_argument("--noise", type=float, default=6.0, help="the more noise, the more leaves")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()

    rng = np.random.default_rng(0)
    X = rng.standard_normal((arguments.fit_rows, FEATURES))
    y = X[:, 0] + X[:, 1] * X[:, 2] + arguments.noise * rng.standard_normal(len(X)) > 0
    peer = DecisionTreeClassifier(max_leaf_nodes=arguments.leaves, random_state=0)
    ours = PACBayesTreeClassifier(peer, lambda_error=1.0, lambda_penalty=0.1).fit(X, y)
    peer.fit(X, y)
    if ours.tree_.n_nodes != peer.tree_.node_count:
        raise RuntimeError(f"{ours.tree_.n_nodes} nodes, but {peer.tree_.node_count} of the peer")

    queries = rng.standard_normal((arguments.rows, FEATURES))
    rows = []
    for name, dtype in (("float64", np.float64), ("float32", np.float32)):
        batch = queries.astype(dtype)
        times = alternate(
            partial(ours.predict, batch), partial(peer.predict, batch), arguments.repeats
        )
        case = f"{len(batch)} rows, {name}, {peer.get_n_leaves()} leaves"
        rows.append(Row(case, times[0], PEER, times[1], TARGET))

    singles = [queries[i : i + 1] for i in range(min(CALLS, len(queries)))]

    def one_by_one(model: PACBayesTreeClassifier | DecisionTreeClassifier) -> None:
        for row in singles:
            model.predict(row)

    times = alternate(partial(one_by_one, ours), partial(one_by_one, peer), arguments.repeats)
    rows.append(Row(f"{len(singles)} calls of one row", times[0], PEER, times[1], TARGET))
    report("predict", rows)


if __name__ == "__main__":
    main()
