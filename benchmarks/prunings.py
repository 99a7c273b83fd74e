"""Seconds of the spatially adaptive pruning rule of Scott and Nowak on trees of a million leaves.

Mean over four values of alpha. KD and dyadic trees of single rows, and chains of splits with one or two
leaves beside each, whose rows have random weights. Target: at most 5 s.
"""

from functools import partial

import numpy as np
import typer

from benchmarks.results import Row, report
from benchmarks.timing import measure_median
from certree import NodeStats, Tree, _core, count, grow_dyadic, grow_kd
from certree.prunings import SpatiallyAdaptive

# From alpha 1, which keeps few leaves, to one that keeps half of them.
ALPHAS = (1.0, 0.1, 0.01, 0.001)


def grow(grower, n_leaves: int) -> tuple[Tree, NodeStats]:
    """Grow a tree over as many rows as it has leaves."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_leaves, 4))
    y = (X[:, 0] + rng.standard_normal(n_leaves) > 0).astype(np.int32)
    tree = grower(X, n_jobs=-1)
    return tree, count(tree, X, y, 2, n_jobs=-1)


def make_chain(beside: int, n_leaves: int) -> tuple[Tree, NodeStats]:
    """Make a chain of splits with one or two leaves of one row beside each."""
    n_added = 2 * beside  # nodes that a split of the chain adds
    n_splits = n_leaves // beside
    m = n_added * n_splits + 1
    left = np.full(m, -1, dtype=np.int32)
    start = 1 + n_added * np.arange(n_splits, dtype=np.int32)
    left[np.concatenate([[0], start[:-1]])] = start
    if beside == 2:
        left[start + 1] = start + 2
    tree = Tree(np.zeros(m, int), np.zeros(m), left, np.ones(m, int), n_features=1)
    leaves = np.flatnonzero(tree.is_leaf).astype(np.int32)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, len(leaves), dtype=np.int32)
    counts = _core.count_classes(left, leaves, y, rng.exponential(size=len(leaves)), 2)
    return tree, NodeStats(counts, counts.argmax(axis=1))


def prune(tree: Tree, stats: NodeStats) -> None:
    """Prune by every alpha."""
    family = SpatiallyAdaptive().family(tree, stats)
    for alpha in ALPHAS:
        family.solve(alpha)


def main(leaves: int = 1_000_000, repeats: int = 5) -> None:
    """Measure all trees."""
    makers = {
        "KD": partial(grow, partial(grow_kd, axis="cycle")),
        "dyadic": partial(grow, grow_dyadic),
        "chain": partial(make_chain, 1),
        "chain of pairs": partial(make_chain, 2),
    }
    rows = []
    for name, make in makers.items():
        seconds = measure_median(partial(prune, *make(leaves)), repeats) / len(ALPHAS)
        rows.append(Row(f"adaptive, {name}", seconds, target=5.0, figure=seconds, unit="s"))
    report("prunings", rows)


if __name__ == "__main__":
    typer.run(main)
