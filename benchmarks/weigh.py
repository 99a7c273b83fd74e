"""Weighing all prunings of a tree: time per node, per node and grid point, and its growth with m.

The tree is a KD tree of single rows, with two classes that follow the first feature. No library
computes the same; the peer is the dynamic program as one would write it down, over dictionaries in
Python, on a small tree. Targets: at most 30 ns per node and pair of temperatures when 100 pairs are
judged in one call, and a slope of log time against log nodes of at most 1.05 between 1e4 and 1e7
nodes.
"""

import argparse
import math
from functools import partial

import numpy as np

from benchmarks.timing import Row, alternate, median, report
from certree import NodeStats, Tree, count, grow_kd, pac_bayes
from certree.estimators.tune import Candidate, GrownFold, Objective
from certree.tree import LEAF
from certree.votes import Voting
from certree.weights.pac_bayes_posteriors import pac_bayes_family

LAMBDA_ERROR, LAMBDA_PENALTY = 1.0, 0.1
NANOSECONDS, SLOPE = 30.0, 1.05
FEATURES = 4
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


def weighed_tree(n_nodes: int) -> GrownFold:
    """Grow a tree of about so many nodes; as many rows as grew it judge it."""
    n = n_nodes // 2
    rng = np.random.default_rng(0)

    def sample() -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((n, FEATURES))
        return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(np.int32)

    X, y = sample()
    tree = grow_kd(X, axis="cycle", n_jobs=-1)
    stats = count(tree, X, y, 2, n_jobs=-1)
    return GrownFold(tree, stats, count(tree, *sample(), 2, stats.label, n_jobs=-1).counts)


def pairs(n: int) -> np.ndarray:
    """Spread pairs of temperatures, (n, 2), over a square grid of the tuner's range."""
    side = math.isqrt(n)
    grid = 2.0 ** np.linspace(-8, 6, side)
    return np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)


def in_dictionaries(tree: Tree, stats: NodeStats) -> dict[int, float]:
    """Weigh every node by the recursion as it stands in the paper, in logs."""
    n, errors = dict(enumerate(stats.n.tolist())), dict(enumerate(stats.errors.tolist()))
    left = dict(enumerate(tree.left.tolist()))
    own: dict[int, float] = {}
    beta: dict[int, float] = {}
    for v in reversed(range(tree.n_nodes)):
        own[v] = -LAMBDA_ERROR * errors[v] - LAMBDA_PENALTY * math.sqrt(n[v]) - (n[v] > 0)
        beta[v] = own[v]
        if left[v] != LEAF:
            split = beta[left[v]] + beta[left[v] + 1]
            high, low = max(own[v], split), min(own[v], split)
            beta[v] = high + math.log1p(math.exp(low - high))
    reached = {0: 0.0}
    weight: dict[int, float] = {}
    for v in range(tree.n_nodes):
        weight[v] = math.exp(reached[v] + own[v] - beta[v])
        if left[v] != LEAF:
            split = beta[left[v]] + beta[left[v] + 1] - beta[v]
            reached[left[v]] = reached[left[v] + 1] = reached[v] + split
    return weight


def against_dictionaries(fold: GrownFold, repeats: int) -> Row:
    tree, stats = fold.tree, fold.stats
    ours = partial(pac_bayes, tree, stats, LAMBDA_ERROR, LAMBDA_PENALTY)
    peer = partial(in_dictionaries, tree, stats)
    np.testing.assert_allclose(ours().weight, list(peer().values()), rtol=0, atol=1e-8)
    times = alternate(ours, peer, repeats)
    return Row(f"one pair, {tree.n_nodes} nodes", times[0], "Python dictionaries", times[1])


def per_node(fold: GrownFold, repeats: int) -> list[Row]:
    """Time one pair, in one piece and in two, on one tree."""
    tree, stats = fold.tree, fold.stats
    family = pac_bayes_family(tree, stats)
    parts = {
        "pac_bayes": partial(pac_bayes, tree, stats, LAMBDA_ERROR, LAMBDA_PENALTY),
        "pac_bayes_family": partial(pac_bayes_family, tree, stats),
        "Family.at": partial(family.at, LAMBDA_ERROR, LAMBDA_PENALTY),
    }
    rows = []
    for name, part in parts.items():
        time = median(part, repeats)
        figure = 1e9 * time / tree.n_nodes
        rows.append(Row(f"{name}, {tree.n_nodes} nodes", time, figure=figure, unit="ns per node"))
    return rows


def per_pair(fold: GrownFold, repeats: int) -> list[Row]:
    """Time many pairs judged in one call, on one tree."""
    n_pairs = 100
    rows = []
    for name, n_threads in (("1 thread", 1), ("2 threads", 2)):
        objective = _objective(fold, n_threads)
        time = median(partial(objective.compute_losses, pairs(n_pairs)), repeats)
        figure = 1e9 * time / (fold.tree.n_nodes * n_pairs)
        case = f"{n_pairs} pairs, {fold.tree.n_nodes} nodes, {name}"
        rows.append(Row(case, time, target=NANOSECONDS, figure=figure, unit="ns per node and pair"))
    return rows


def slopes(largest: int, repeats: int) -> list[Row]:
    """Fit slopes of log time against log nodes to trees of all sizes."""
    sizes, times = [], {"Family.at": [], "4 pairs": []}
    for n_nodes in (size for size in SIZES if size <= largest):
        fold = weighed_tree(n_nodes)
        family = pac_bayes_family(fold.tree, fold.stats)
        runs = repeats * max(1, 300_000 // n_nodes)
        sizes.append(fold.tree.n_nodes)
        times["Family.at"].append(median(partial(family.at, LAMBDA_ERROR, LAMBDA_PENALTY), runs))
        times["4 pairs"].append(median(partial(_objective(fold).compute_losses, pairs(4)), runs))
    rows = []
    for name, values in times.items():
        slope = float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
        case = f"{name}, {sizes[0]:.0e} to {sizes[-1]:.0e} nodes"
        rows.append(Row(case, values[-1], target=SLOPE, figure=slope, unit="slope"))
        for size, value in zip(sizes, values, strict=True):
            figure = 1e9 * value / size
            rows.append(Row(f"{name}, {size} nodes", value, figure=figure, unit="ns per node"))
    return rows


def _objective(fold: GrownFold, n_threads: int = 1) -> Objective:
    return Objective.for_candidate(
        [fold], Candidate(pac_bayes_family, Voting("majority")), "error", n_threads
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="largest tree of the slopes")
    parser.add_argument("--repeats", type=int, default=11)
    arguments = parser.parse_args()
    rows = [against_dictionaries(weighed_tree(10_000), arguments.repeats)]
    fold = weighed_tree(arguments.nodes)
    rows += per_node(fold, arguments.repeats)
    rows += per_pair(fold, max(3, arguments.repeats // 4))
    rows += slopes(arguments.largest, arguments.repeats)
    report("weigh", rows)


if __name__ == "__main__":
    main()
