"""Small certified trees: bound and test error of at most 8 or 16 leaves, and of the vote.

Four fifths of at most 10,000 random rows of public tables of classes fit `CertifiedTreeClassifier`;
the others give the test error. Delta is .05; means over five draws.
"""

import numpy as np
import typer

from benchmarks.results import store
from benchmarks.tables import Data, load_tables
from certree import CertifiedTreeClassifier

MAX_ROWS = 10_000


def measure(data: Data, seed: int) -> dict[str, float]:
    """Return bound, test error and leaves for each size, for one draw."""
    rows, _ = data.draw(seed, MAX_ROWS)
    test, train = np.split(rows, [len(rows) // 5])
    found = {}
    for size in (8, 16, None):
        options = {"categorical_features": data.categorical, "random_state": seed}
        model = CertifiedTreeClassifier(max_leaf_nodes=size, duplicates="genuine", **options)
        model.fit(data.X[train], data.y[train])
        found |= {
            f"bound_{size or 'all'}": model.certificate_.bound,
            f"error_{size or 'all'}": 1 - model.score(data.X[test], data.y[test]),
            f"leaves_{size or 'all'}": model.get_n_leaves(),
        }
    return found


def main(only: str = "", seeds: int = 5) -> None:
    """Measure all tables; only: names of tables, separated by commas."""
    rows = []
    for name, data in load_tables(only, regression=False).items():
        draws = [measure(data, seed) for seed in range(seeds)]
        means = {key: float(np.mean([one[key] for one in draws])) for key in draws[0]}
        rows.append({"table": name, **means})
        print(*rows[-1].values(), flush=True)
    store("small_tree", rows)


if __name__ == "__main__":
    typer.run(main)
