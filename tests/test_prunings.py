"""Optimal prunings against the enumeration of all prunings."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import certree
import reference
from certree import NodeStats, Tree
from strategies import temperatures, trees, trees_and_stats


def total(cost, weights):
    return sum(Fraction(float(cost[v])) for v in np.flatnonzero(weights.weight))


def is_pruning(tree, weights):
    return all(
        weights.weight[reference.path(tree, leaf)].sum() == 1
        for leaf in np.flatnonzero(tree.is_leaf)
    ) and set(np.unique(weights.weight)) <= {0, 1}


@given(trees(max_inner=6), st.data())
def test_prune_finds_the_smallest_cost_and_on_ties_the_smaller_tree(tree, data):
    cost = data.draw(hnp.arrays(float, tree.n_nodes, elements=st.integers(0, 6).map(float)))
    weights = certree.prune(tree, cost)
    best, fewest = reference.smallest_cost(tree, cost)
    assert is_pruning(tree, weights)
    assert total(cost, weights) == best
    assert weights.expected_leaves == fewest


@given(trees_and_stats(max_inner=6), temperatures())
def test_cost_complexity_is_exactly_optimal(tree_and_stats, price):
    tree, stats = tree_and_stats
    weights = certree.cost_complexity(tree, stats, price)
    cost = [
        Fraction(float(e)) + Fraction(price) * int(n > 0)
        for e, n in zip(stats.errors, stats.n, strict=True)
    ]
    every = [[v for v, _ in pruning] for pruning in reference.prunings(tree)]
    best = min(sum(cost[v] for v in leaves) for leaves in every)
    assert sum(cost[v] for v in np.flatnonzero(weights.weight)) == best
    assert weights.expected_leaves == min(
        len(leaves) for leaves in every if sum(cost[v] for v in leaves) == best
    )


@given(trees_and_stats(max_inner=6, largest=1000), temperatures(100))
def test_depth_penalised_is_optimal(tree_and_stats, price):
    tree, stats = tree_and_stats
    n = max(stats.n[0], 1)
    depth = np.array([reference.depth_of(tree, v) for v in range(tree.n_nodes)])
    penalty = np.sqrt(np.maximum(stats.n / n, depth / n) * depth / n)
    cost = stats.errors / n + price * penalty
    best, _ = reference.smallest_cost(tree, cost)
    weights = certree.depth_penalised(tree, stats, price)
    assert is_pruning(tree, weights)
    assert float(total(cost, weights)) == pytest.approx(float(best), rel=1e-12, abs=1e-12)


def test_depth_penalty_of_cells_with_fewer_rows_than_cells_above_them():
    tree = Tree([0] * 5, [0.0] * 5, [1, -1, 3, -1, -1], [1] * 5, 1)
    stats = NodeStats([[3, 1], [2, 0], [1, 1], [1, 0], [0, 1]], [1, 0, 0, 0, 1])
    # Two leaves of one row at depth 2 pay 2 each; sqrt(2) each would let node 2 split.
    weights = certree.depth_penalised(tree, stats, 0.5)
    np.testing.assert_array_equal(weights.weight, [0, 1, 1, 0, 0])


@given(trees_and_stats(max_inner=8, max_chain=1, largest=50))
def test_path_holds_every_cost_complexity_pruning(tree_and_stats):
    tree, stats = tree_and_stats
    path = certree.cost_complexity_path(tree, stats)
    assert path.prices[0] == 0
    assert (np.diff(path.prices) > 0).all()
    ends = [*path.prices[1:], path.prices[-1] + 2]
    for step, (price, end) in enumerate(zip(path.prices, ends, strict=True)):
        between = certree.cost_complexity(tree, stats, (price + end) / 2)
        np.testing.assert_array_equal(path.pruning(step).weight, between.weight)
    sizes = [path.pruning(step).expected_leaves for step in range(len(path.prices))]
    assert (np.diff(sizes) < 0).all()


@given(trees_and_stats(max_inner=8, max_chain=1, largest=50))
def test_path_changes_at_each_of_its_prices(tree_and_stats):
    tree, stats = tree_and_stats
    path = certree.cost_complexity_path(tree, stats)
    for step, price in enumerate(path.prices[1:], start=1):
        before = certree.cost_complexity(tree, stats, price * (1 - 1e-9))
        after = certree.cost_complexity(tree, stats, price * (1 + 1e-9))
        np.testing.assert_array_equal(before.weight, path.pruning(step - 1).weight)
        np.testing.assert_array_equal(after.weight, path.pruning(step).weight)


@given(trees_and_stats(max_inner=8, largest=50))
def test_prunings_of_the_path_are_nested(tree_and_stats):
    tree, stats = tree_and_stats
    path = certree.cost_complexity_path(tree, stats)
    inner = [certree.reached(tree, path.pruning(s)) > 0 for s in range(len(path.prices))]
    for larger, smaller in pairwise(inner):
        assert (smaller <= larger).all()


def test_path_matches_scikit_learn_on_data():
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    tree = certree.from_sklearn(model)
    stats = certree.count(tree, X, y, 3)
    path = certree.cost_complexity_path(tree, stats)
    # Twelve nodes or so: every step is small enough to enumerate.
    for step in range(len(path.prices)):
        weights = path.pruning(step)
        cost = stats.errors + path.prices[step]
        assert total(cost, weights) == reference.smallest_cost(tree, cost)[0]


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_path_by_impurity_is_that_of_scikit_learn(criterion):
    from sklearn.datasets import load_breast_cancer
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=4, random_state=0)
    theirs = model.fit(X, y).cost_complexity_pruning_path(X, y).ccp_alphas
    tree = certree.from_sklearn(model)
    path = certree.cost_complexity_path(tree, certree.count(tree, X, y, 2), criterion)
    unit = len(y) * (np.log(2) if criterion == "entropy" else 1)
    # Theirs names a price once for every subtree that collapses at it.
    np.testing.assert_allclose(path.prices / unit, np.unique(theirs.round(12)), atol=1e-9)
    leaves = [path.pruning(step).expected_leaves for step in range(len(path.prices))]
    for price, n_leaves in zip(path.prices, leaves, strict=True):
        again = DecisionTreeClassifier(
            criterion=criterion, min_samples_leaf=4, random_state=0, ccp_alpha=price / unit + 1e-9
        )
        assert again.fit(X, y).get_n_leaves() == n_leaves


def test_unknown_costs_are_refused():
    tree = Tree([0], [0.0], [-1], [1], 1)
    with pytest.raises(ValueError, match='cost must be "error", "gini" or "entropy"'):
        certree.cost_complexity_path(tree, NodeStats([[1, 2]], [1]), "squares")


def test_path_of_a_deep_tree_takes_no_recursion():
    inner = 20_000
    left = np.full(2 * inner + 1, -1)
    left[np.r_[0, 2 * np.arange(1, inner)]] = 1 + 2 * np.arange(inner)
    m = len(left)
    tree = Tree(np.zeros(m, int), np.zeros(m), left, np.ones(m, int), 1)
    counts = np.zeros((m, 2))
    rng = np.random.default_rng(0)
    leaves = np.flatnonzero(tree.is_leaf)
    counts[leaves, rng.integers(0, 2, len(leaves))] = 1
    for v in range(m - 1, -1, -1):
        if left[v] >= 0:
            counts[v] = counts[left[v]] + counts[left[v] + 1]
    stats = NodeStats(counts, counts.argmax(axis=1))
    path = certree.cost_complexity_path(tree, stats)
    assert len(path.prices) > 1
    weights = certree.cost_complexity(tree, stats, 0.25)
    step = np.searchsorted(path.prices, 0.25, side="right") - 1
    np.testing.assert_array_equal(weights.weight, path.pruning(step).weight)


def test_bad_costs_are_refused():
    tree = Tree([0, 0, 0], [0.0, 0, 0], [1, -1, -1], [1, 1, 1], 1)
    with pytest.raises(ValueError, match="cost must be finite"):
        certree.prune(tree, [0, np.inf, 0])
    with pytest.raises(TypeError, match="cost must convert to float64"):
        certree.prune(tree, np.array([0, 1, 2], dtype=object))
    stats = NodeStats([[5, 5], [5, 0], [0, 5]], [0, 0, 1])
    for rule in (certree.cost_complexity, certree.depth_penalised):
        with pytest.raises(ValueError, match="lambda_penalty must be a finite number >= 0"):
            rule(tree, stats, -0.5)
