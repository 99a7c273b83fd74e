"""How low the certificate of boosted trees is, beside that of a tree and a hold-out of one fifth.

Rows of public tables are drawn three times, delta .05, up to 10,000 other rows give the test error.
"hold-out" fits `BoostedTreesClassifier` to four fifths of the rows and bounds its error by the exact
binomial bound on the others; "all rows" is the test error of one that all rows train. Tables are told
apart by the parity of the SHA-256 of their names: defaults were chosen on the even ones. Needs
CERTREE_DATA.
"""

import argparse
import hashlib
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.defaults import REGRESSION, Data, tables
from benchmarks.records import RESULTS, store
from certree import (
    BoostedTreesClassifier,
    CertifiedBoostedTreesClassifier,
    CertifiedTreeClassifier,
    certify,
)

MOST_TESTED = 10_000


def is_odd(name: str) -> bool:
    """Whether figures count on this table."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 1


def measured(data: Data, n: int, seed: int) -> dict[str, float]:
    """Bounds, test errors and CPU seconds of one draw of n rows."""
    order = np.random.default_rng(seed).permutation(len(data.y))
    rows, others = order[:n], order[n : n + MOST_TESTED]
    X, y, X_test, y_test = data.X[rows], data.y[rows], data.X[others], data.y[others]
    options: dict[str, Any] = {"categorical_features": data.categorical, "random_state": seed}
    begun = time.process_time()
    boosted = CertifiedBoostedTreesClassifier(duplicates="genuine", n_jobs=1, **options).fit(X, y)
    between = time.process_time()
    tree = CertifiedTreeClassifier(duplicates="genuine", **options).fit(X, y)
    ended = time.process_time()
    part, kept, y_part, y_kept = train_test_split(X, y, test_size=0.2, random_state=seed)
    apart = BoostedTreesClassifier(n_jobs=1, **options).fit(part, y_part)
    whole = BoostedTreesClassifier(n_jobs=1, **options).fit(X, y)
    return {
        "bound": boosted.certificate_.bound,
        "tree": tree.certificate_.bound,
        "hold-out": certify(apart, kept, y_kept, duplicates="genuine").bound,
        "test error": 1 - boosted.score(X_test, y_test),
        "tree's": 1 - tree.score(X_test, y_test),
        "hold-out's": 1 - apart.score(X_test, y_test),
        "all rows": 1 - whole.score(X_test, y_test),
        "train size": boosted.train_size_,
        "CPU": between - begun,
        "tree's CPU": ended - between,
    }


def main() -> None:
    """Measure all tables of classes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 5000])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=["odd", "even"])
    options = parser.parse_args()
    lines = []
    for name, data in tables(Path(os.environ["CERTREE_DATA"])).items():
        kind = "odd" if is_odd(name) else "even"
        if name in REGRESSION or options.only not in (None, kind):
            continue
        for n in options.rows:
            if len(data.y) < 1.3 * n:
                continue
            every = [measured(data, n, seed) for seed in range(options.seeds)]
            means = {key: float(np.mean([one[key] for one in every])) for key in every[0]}
            lines.append({"table": name, "kind": kind, "rows": n, **means})
            figures = "  ".join(f"{key} {value:.3f}" for key, value in means.items())
            print(f"{kind:<5}{name:<18}{n:>5}  {figures}", flush=True)
    by_size: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        by_size[line["kind"], line["rows"]].append(line)
    for (kind, n), found in sorted(by_size.items()):
        ratio = np.exp(np.mean([np.log(one["bound"] / one["tree"]) for one in found]))
        below = np.mean([one["hold-out"] - one["bound"] for one in found])
        worse = max(one["test error"] - one["all rows"] for one in found)
        print(
            f"{kind}, {n} rows, {len(found)} tables: {ratio:.3f} of the tree's bound, "
            f"{below:.4f} below the hold-out's, test error at most {worse:.4f} above all rows'"
        )
    if lines:
        store(RESULTS / "certified_boosting.csv", lines)


if __name__ == "__main__":
    main()
