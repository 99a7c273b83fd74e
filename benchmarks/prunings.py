"""Pruning after Scott and Nowak: time and memory on large trees, and how they grow with the leaves.

The trees are KD and dyadic trees of single rows, with two classes that follow the first feature, a
chain of splits with a leaf beside each, and the same with two leaves beside each, whose bends merge
into those of the chain. Rows of the chains have random weights, so that no two bends are one. No
library computes the same; the peer is the recursion over the numbers of leaves, O(m^2), as one would
write it down with NumPy, on a small tree. Targets: at most 5 s and 2 GB for a million leaves, and a
slope of log time against log leaves of at most 1.2 between 1e4 and 1e6 leaves.
"""

import argparse
import resource
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.timing import Row, alternate, median, report
from certree import NodeStats, Tree, _core, count, grow_dyadic, grow_kd
from certree.prunings import SpatiallyAdaptive, SquareRoot
from certree.prunings.scott_nowak import FragmentPrunings

SECONDS, GIGABYTES, SLOPE = 5.0, 2.0, 1.2
# From the one that is printed, which leaves a few leaves, to one that leaves half of all.
PRICES = (1.0, 0.1, 0.01, 0.001)
FEATURES = 4
SIZES = (10_000, 100_000, 1_000_000)

CYCLING = partial(grow_kd, axis="cycle")
Trees = Callable[[int], tuple[Tree, NodeStats]]


def of_rows(grow: Callable[..., Tree], n_leaves: int) -> tuple[Tree, NodeStats]:
    """Grow a tree over as many rows as it has leaves."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_leaves, FEATURES))
    y = (X[:, 0] + rng.standard_normal(n_leaves) > 0).astype(np.int32)
    tree = grow(X, n_jobs=-1)
    return tree, count(tree, X, y, 2, n_jobs=-1)


def chain(n_leaves: int, beside: int) -> tuple[Tree, NodeStats]:
    """Make a chain of splits with one or two leaves of one row beside each."""
    block = 2 * beside  # nodes that a split of the chain adds
    n_blocks = n_leaves // beside
    m = block * n_blocks + 1
    left = np.full(m, -1, dtype=np.int32)
    start = 1 + block * np.arange(n_blocks, dtype=np.int32)
    left[np.concatenate([[0], start[:-1]])] = start
    if beside == 2:
        left[start + 1] = start + 2
    tree = Tree(np.zeros(m, int), np.zeros(m), left, np.ones(m, int), n_features=1)
    leaves = np.flatnonzero(tree.is_leaf).astype(np.int32)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, len(leaves), dtype=np.int32)
    counts = _core.count_classes(left, leaves, y, rng.exponential(size=len(leaves)), 2)
    return tree, NodeStats(counts, counts.argmax(axis=1))


def over_sizes(prunings: FragmentPrunings) -> float:
    """Find the least that a pruning pays beyond the root, by the recursion over numbers of leaves."""
    left = prunings.tree.left
    best: dict[int, float] = {}
    by_size: dict[int, np.ndarray] = {}
    for v in reversed(range(prunings.tree.n_nodes)):
        best[v] = prunings.size_penalty[v] + prunings.cell_penalty[v]
        by_size[v] = np.array([np.inf, 0.0])
        if left[v] < 0:
            continue
        few, many = sorted((by_size.pop(left[v]), by_size.pop(left[v] + 1)), key=len)
        sums = np.full(len(few) + len(many) - 1, np.inf)
        for leaves, cost in enumerate(few):
            inside = sums[leaves : leaves + len(many)]
            np.minimum(inside, cost + many + prunings.cost_gains[v], out=inside)
        sizes = np.sqrt(np.arange(len(sums)))
        below = (sums + prunings.size_penalty[v] * sizes).min() + prunings.cell_penalty[v]
        best[v] = min(best[v], below, best[left[v]] + best[left[v] + 1] + prunings.cost_gains[v])
        sums[1] = 0.0
        by_size[v] = sums
    return best[0]


def against_sizes(repeats: int) -> Row:
    tree, stats = of_rows(CYCLING, 2000)
    prunings = SpatiallyAdaptive().family(tree, stats)
    ours, peer = partial(prunings.at, 1.0), partial(over_sizes, prunings)
    times = alternate(ours, peer, repeats)
    return Row(f"one pruning, {tree.n_leaves} leaves", times[0], "over sizes, NumPy", times[1])


def solve(tree: Tree, stats: NodeStats) -> None:
    """Prepare the spatially adaptive rule and prune at all prices."""
    prunings = SpatiallyAdaptive().family(tree, stats)
    for alpha in PRICES:
        prunings.solve(alpha)


def slopes(name: str, trees: Trees, largest: int, repeats: int) -> list[Row]:
    """Time both rules on trees of all sizes, and fit the slope of the adaptive one."""
    leaves, times, rows = [], [], []
    for n_leaves in (size for size in SIZES if size <= largest):
        tree, stats = trees(n_leaves)
        runs = repeats * max(1, 100_000 // n_leaves)
        leaves.append(tree.n_leaves)
        times.append(median(partial(solve, tree, stats), runs) / len(PRICES))
        rows.append(Row(f"adaptive, {name}, {tree.n_leaves} leaves", times[-1]))
    slope = float(np.polyfit(np.log(leaves), np.log(times), 1)[0])
    rows.append(Row(f"adaptive, {name}", times[-1], target=SLOPE, figure=slope, unit="slope"))
    bounded = Row(f"adaptive, {name}", times[-1], target=SECONDS, figure=times[-1], unit="s")
    path = median(partial(SquareRoot().family, tree, stats), max(1, repeats // 2))
    case = f"square root, {name}, {tree.n_leaves} leaves"
    return [*rows, bounded, Row(case, path, target=SECONDS, figure=path, unit="s")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="leaves of the largest tree")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rows = [against_sizes(arguments.repeats)]
    cases: dict[str, Trees] = {
        "KD": partial(of_rows, CYCLING),
        "dyadic": partial(of_rows, grow_dyadic),
        "chain": partial(chain, beside=1),
        "chain of pairs": partial(chain, beside=2),
    }
    for name, trees in cases.items():
        rows += slopes(name, trees, arguments.largest, arguments.repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.append(Row("peak of all cases", None, target=GIGABYTES, figure=peak, unit="GB"))
    report("prunings", rows)


if __name__ == "__main__":
    main()
