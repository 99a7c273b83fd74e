"""What a small certified tree costs in bound and in test error, beside the vote of the whole tree.

Up to 10,000 rows of public tables of classes are drawn, four fifths of them fit
`CertifiedTreeClassifier`, delta .05, and the rest give the test error; means over the draws. Bounds
less test errors should be alike for all sizes: what small trees cost is their error.
Needs CERTREE_DATA.
"""

import argparse
import os
from pathlib import Path

import numpy as np

from benchmarks.defaults import REGRESSION, Data, tables
from benchmarks.records import RESULTS, store
from certree import CertifiedTreeClassifier

MOST_ROWS, TESTED = 10_000, 5
SIZES = (8, 16, None)


def measured(data: Data, seed: int) -> list[float]:
    """Bound, test error and leaves of each size, for one draw."""
    rows = np.random.default_rng(seed).permutation(len(data.y))[:MOST_ROWS]
    tested, fitted = np.split(rows, [len(rows) // TESTED])
    found: list[float] = []
    for size in SIZES:
        model = CertifiedTreeClassifier(
            max_leaf_nodes=size,
            duplicates="genuine",
            categorical_features=data.categorical,
            random_state=seed,
        ).fit(data.X[fitted], data.y[fitted])
        error = float(np.mean(model.predict(data.X[tested]) != data.y[tested]))
        found += [model.certificate_.bound, error, model.get_n_leaves()]
    return found


def main() -> None:
    """Measure all tables of classes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    head = [f"{what}_{size or 'all'}" for size in SIZES for what in ("bound", "error", "leaves")]
    lines = []
    for name, data in tables(Path(os.environ["CERTREE_DATA"])).items():
        if name in REGRESSION:
            continue
        means = np.mean([measured(data, seed) for seed in range(options.seeds)], axis=0)
        lines.append({"table": name, **dict(zip(head, means.tolist(), strict=True))})
        parts = [f"{b:.3f} {e:.3f} {leaves:6.1f}" for b, e, leaves in means.reshape(-1, 3)]
        print(f"{name:18} " + " | ".join(parts), flush=True)
    store(RESULTS / "small_tree.csv", lines)


if __name__ == "__main__":
    main()
