"""Compare results for plausible arguments with those of the slow versions in tests/reference.py."""

import math
from typing import Any

import numpy as np

import reference
from certree import Tree, grow_kd
from fuzz.world import STEADY, World

MOST_NODES = 9  # of a tree whose prunings are enumerated


def _few_prunings(tree: Tree) -> bool:
    return tree.n_nodes <= MOST_NODES and int(tree.chain.max()) <= 4


def _close(got: Any, expected: Any, relative: float = 1e-9, absolute: float = 1e-12) -> None:
    np.testing.assert_allclose(got, expected, rtol=relative, atol=absolute)


def _count(world: World, answer: Any, tree: Tree, X: Any, y: Any, **given: Any) -> None:
    weight = given.get("sample_weight")
    expected = reference.count_classes(tree, X, y, answer.n_classes, weight)
    _close(answer.counts, expected, absolute=1e-12 * expected.max())


def _measure(world: World, answer: Any, tree: Tree, X: Any, y: Any, **given: Any) -> None:
    rows, mean, sse = reference.compute_moments(tree, X, y, given.get("sample_weight"))
    _close(answer.rows, rows, absolute=1e-12 * rows.max())
    _close(answer.mean, mean, 1e-9, 1e-9 * np.abs(y).max())
    with np.errstate(over="ignore"):
        most = 1e-9 * rows.max() * np.abs(y).max() ** 2
    _close(answer.sse, sse, 1e-6, min(most, np.finfo(np.float64).max))


def _pac_bayes(world: World, answer: Any, tree: Tree, stats: Any, **given: Any) -> None:
    cost = getattr(stats, "errors", None)
    stop = given.get("stop_probability", 0.5)
    if cost is None or not _few_prunings(tree) or not 0 < stop < 1:
        return
    lambdas = given["lambda_error"], given["lambda_penalty"]
    rows = stats.n / stats.weight_unit
    if max(lambdas) * float(rows[0]) > 1e6 or 0 < stats.n[0] < 1e-100:
        return  # beyond the range in which float64 can tell such prunings apart
    if given.get("loss") == "log_loss":
        cost = reference.compute_log_losses(stats.counts)
    every, masses, _ = reference.compute_pac_bayes_posterior(
        tree, rows, cost / stats.weight_unit, *lambdas, given.get("prior", "leaves"), stop
    )
    _close(answer.weight, reference.compute_leaf_weights(tree, every, masses), 1e-7, 1e-9)


def _average(world: World, answer: Any, tree: Tree, log_own: Any, log_split: Any = 0.0) -> None:
    splits = np.broadcast_to(log_split, tree.n_nodes)
    if not _few_prunings(tree) or np.abs(log_own).max() > 1e6:
        return
    every, masses, _ = reference.average_prunings(tree, log_own, splits)
    _close(answer.weight, reference.compute_leaf_weights(tree, every, masses), 1e-7, 1e-9)


def _prune(world: World, answer: Any, tree: Tree, cost: Any) -> None:
    expected, _ = reference.find_smallest_cost(tree, cost)
    _close(float(answer.weight @ cost), float(expected))


def _theorem_bound(
    world: World, answer: Any, tree: Tree, population: Any, n: int, bayes_risk: float, **given: Any
) -> None:
    lam, delta = given.get("lambda_error"), given.get("delta", 0.05)
    if not _few_prunings(tree) or lam is None or delta is None or delta < 1e-100:
        return
    known = population.n, population.errors
    literal = reference.compute_theorem_bound(
        tree, *known, n, bayes_risk, delta, lam, population.n_classes
    )
    _close(answer.excess, min(literal, 1.0))


def _dyadic(world: World, answer: Any, X: Any, y: Any = None, **given: Any) -> None:
    if given.keys() <= {"max_depth", "n_jobs"} and X.dtype == np.float64:
        literal = reference.grow_dyadic(X, y, max_depth=given.get("max_depth"))
        assert reference.nest_tree(answer, X) == literal


def _kd(world: World, answer: Any, X: Any, y: Any = None, **given: Any) -> None:
    ordinary = np.abs(X[np.isfinite(X) & (X != 0)])
    if given.keys() - {"max_depth", "n_jobs"} or not ordinary.size or X.dtype != np.float64:
        return
    if ordinary.min() > 1e-100 and ordinary.max() < 1e100 and world.n <= 8:
        literal = reference.grow_kd(X, y, "cycle", max_depth=given.get("max_depth"))
        assert reference.nest_tree(grow_kd(X, y, axis="cycle", **given), X) == literal


def _cart(world: World, answer: Tree, X: Any, **given: Any) -> None:
    np.testing.assert_array_equal(answer.route(X, 1), reference.apply(answer, X))


def _vote(world: World, answer: Any, tree: Tree, stats: Any, weights: Any, **given: Any) -> None:
    leaves = tree.is_leaf
    if getattr(stats, "errors", None) is not None:
        _close(answer.score[leaves].sum(axis=1), np.ones(leaves.sum()))


def _hold_out(world: World, answer: Any, errors: int, n: int, **given: Any) -> None:
    log_delta = math.log(given.get("delta", 0.05)) + math.log(given.get("share", 1.0))
    if log_delta < -30 or log_delta > -1e-6 or errors == n:
        return
    tail = float(reference.compute_log(reference.compute_binomial_tail(errors, n, answer.bound)))
    assert abs(tail - log_delta) < 1e-6 * max(1.0, -log_delta), (tail, log_delta)


def _recovered(world: World, answer: Any, function: Any, n_features: int, **given: Any) -> None:
    """Assert that the recovered polynomial of a deterministic function has its values."""
    rows = np.array(np.meshgrid(*[[0, 1]] * n_features)).reshape(n_features, -1).T
    rows = 1 - 2 * rows if given.get("coding") == "-1/+1" else rows
    if function in STEADY:
        _close(answer.spectrum.evaluate(rows)[:, 0], function(rows), 1e-6, 1e-6)


TWINS = {
    "count": _count,
    "measure": _measure,
    "pac_bayes": _pac_bayes,
    "average": _average,
    "prune": _prune,
    "grow_dyadic": _dyadic,
    "grow_kd": _kd,
    "grow_cart": _cart,
    "vote": _vote,
    "hold_out": _hold_out,
    "theorem_bound": _theorem_bound,
    "sparse_transform": _recovered,
}
