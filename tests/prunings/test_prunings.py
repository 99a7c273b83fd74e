"""Optimal prunings, compared with all prunings, and merge paths, compared with literal merges."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import betainc
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

import certree
import reference
from certree import NodeStats, PrunedTreeClassifier, Tree, _core
from certree.prunings import (
    CostComplexity,
    DepthPenalised,
    DescriptionLength,
    Pessimistic,
    Polynomial,
    PruningRule,
    SiblingMerge,
    SpatiallyAdaptive,
    SquareRoot,
)
from certree.prunings.paths import compute_costs
from certree.prunings.penalties import compute_upper_errors
from certree.prunings.rule_names import RULES, resolve_rule
from certree.weights.family import ValidationStatistics
from strategies import sum_leaves, temperatures, trees, trees_and_stats, trees_and_targets


def total(cost, weights):
    return sum(Fraction(float(cost[v])) for v in np.flatnonzero(weights.weight))


def is_pruning(tree, weights):
    return all(
        weights.weight[reference.find_path(tree, leaf)].sum() == 1
        for leaf in np.flatnonzero(tree.is_leaf)
    ) and set(np.unique(weights.weight)) <= {0, 1}


@given(trees(max_inner=6), st.data())
def test_prune_finds_the_smallest_cost_and_on_ties_the_smaller_tree(tree, data):
    cost = data.draw(hnp.arrays(float, tree.n_nodes, elements=st.integers(0, 6).map(float)))
    weights = certree.prune(tree, cost)
    best, fewest = reference.find_smallest_cost(tree, cost)
    assert is_pruning(tree, weights)
    assert total(cost, weights) == best
    assert weights.expected_leaves == fewest


@given(trees_and_stats(max_inner=6), temperatures())
def test_cost_complexity_is_exactly_optimal(tree_and_stats, alpha):
    tree, stats = tree_and_stats
    weights = certree.prunings.cost_complexity(tree, stats, alpha)
    cost = [
        Fraction(float(e)) + Fraction(alpha) * int(n > 0)
        for e, n in zip(stats.errors, stats.n, strict=True)
    ]
    prunings = [[v for v, _ in pruning] for pruning in reference.enumerate_prunings(tree)]
    best = min(sum(cost[v] for v in leaves) for leaves in prunings)
    assert sum(cost[v] for v in np.flatnonzero(weights.weight)) == best
    assert weights.expected_leaves == min(
        len(leaves) for leaves in prunings if sum(cost[v] for v in leaves) == best
    )


@given(trees_and_stats(max_inner=6, largest=1000), temperatures(100))
def test_depth_penalised_is_optimal(tree_and_stats, alpha):
    tree, stats = tree_and_stats
    n = max(stats.n[0], 1)
    depth = np.array([reference.compute_depth(tree, v) for v in range(tree.n_nodes)])
    penalty = np.sqrt(np.maximum(stats.n / n, depth / n) * depth / n)
    cost = stats.errors / n + alpha * penalty
    best, _ = reference.find_smallest_cost(tree, cost)
    weights = certree.prunings.depth_penalised(tree, stats, alpha)
    assert is_pruning(tree, weights)
    assert float(total(cost, weights)) == pytest.approx(float(best), rel=1e-12, abs=1e-12)


def test_depth_penalty_of_cells_with_fewer_rows_than_cells_above_them():
    tree = Tree([0] * 5, [0.0] * 5, [1, -1, 3, -1, -1], [1] * 5, 1)
    stats = NodeStats([[3, 1], [2, 0], [1, 1], [1, 0], [0, 1]], [1, 0, 0, 0, 1])
    # Two leaves of one row at depth 2 pay 2 each; sqrt(2) each would let node 2 split.
    weights = certree.prunings.depth_penalised(tree, stats, 0.5)
    np.testing.assert_array_equal(weights.weight, [0, 1, 1, 0, 0])


@given(trees_and_stats(max_inner=8, max_chain=1, largest=50))
def test_path_has_every_cost_complexity_pruning(tree_and_stats):
    tree, stats = tree_and_stats
    path = certree.prunings.cost_complexity_path(tree, stats)
    assert path.alphas[0] == 0
    assert (np.diff(path.alphas) > 0).all()
    ends = [*path.alphas[1:], path.alphas[-1] + 2]
    for step, (alpha, end) in enumerate(zip(path.alphas, ends, strict=True)):
        between = certree.prunings.cost_complexity(tree, stats, (alpha + end) / 2)
        np.testing.assert_array_equal(path.pruning(step).weight, between.weight)
    sizes = [path.pruning(step).expected_leaves for step in range(len(path.alphas))]
    assert (np.diff(sizes) < 0).all()


@given(trees_and_stats(max_inner=8, max_chain=1, largest=50))
def test_path_changes_at_each_of_its_alphas(tree_and_stats):
    tree, stats = tree_and_stats
    path = certree.prunings.cost_complexity_path(tree, stats)
    for step, alpha in enumerate(path.alphas[1:], start=1):
        before = certree.prunings.cost_complexity(tree, stats, alpha * (1 - 1e-9))
        after = certree.prunings.cost_complexity(tree, stats, alpha * (1 + 1e-9))
        np.testing.assert_array_equal(before.weight, path.pruning(step - 1).weight)
        np.testing.assert_array_equal(after.weight, path.pruning(step).weight)


@given(trees_and_stats(max_inner=8, largest=50))
def test_prunings_of_the_path_are_nested(tree_and_stats):
    tree, stats = tree_and_stats
    path = certree.prunings.cost_complexity_path(tree, stats)
    inner = [certree.weights.reached(tree, path.pruning(s)) > 0 for s in range(len(path.alphas))]
    for larger, smaller in pairwise(inner):
        assert (smaller <= larger).all()


def test_path_matches_scikit_learn_on_data():
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    tree = certree.grow.from_sklearn(model)
    stats = certree.count(tree, X, y, 3)
    path = certree.prunings.cost_complexity_path(tree, stats)
    # The tree has about twelve nodes, so every step can be enumerated.
    for step in range(len(path.alphas)):
        weights = path.pruning(step)
        cost = stats.errors + path.alphas[step]
        assert total(cost, weights) == reference.find_smallest_cost(tree, cost)[0]


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_path_by_impurity_is_that_of_scikit_learn(criterion):
    from sklearn.datasets import load_breast_cancer
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=4, random_state=0)
    theirs = model.fit(X, y).cost_complexity_pruning_path(X, y).ccp_alphas
    tree = certree.grow.from_sklearn(model)
    path = certree.prunings.cost_complexity_path(tree, certree.count(tree, X, y, 2), criterion)
    unit = len(y) * (np.log(2) if criterion == "entropy" else 1)
    # scikit-learn repeats an alpha for every subtree that collapses at it.
    np.testing.assert_allclose(path.alphas / unit, np.unique(theirs.round(12)), atol=1e-9)
    leaves = [path.pruning(step).expected_leaves for step in range(len(path.alphas))]
    for alpha, n_leaves in zip(path.alphas, leaves, strict=True):
        again = DecisionTreeClassifier(
            criterion=criterion, min_samples_leaf=4, random_state=0, ccp_alpha=alpha / unit + 1e-9
        )
        assert again.fit(X, y).get_n_leaves() == n_leaves


def test_unknown_costs_are_refused():
    tree = Tree([0], [0.0], [-1], [1], 1)
    with pytest.raises(ValueError, match='cost must be None or "error" or "gini" or "entropy"'):
        certree.prunings.cost_complexity_path(tree, NodeStats([[1, 2]], [1]), "squares")
    with pytest.raises(ValueError, match='cost must be None or "error" or "gini" or "entropy"'):
        certree.prunings.sibling_merge_path(tree, NodeStats([[1, 2]], [1]), "squares")


def deep_tree_and_stats(inner=20_000):
    """Return a tree of 20,000 nested splits, each with a leaf of one row, and its statistics."""
    left = np.full(2 * inner + 1, -1)
    left[np.r_[0, 2 * np.arange(1, inner)]] = 1 + 2 * np.arange(inner)
    m = len(left)
    tree = Tree(np.zeros(m, int), np.zeros(m), left, np.ones(m, int), 1)
    counts = np.zeros((m, 2))
    rng = np.random.default_rng(0)
    leaves = np.flatnonzero(tree.is_leaf)
    counts[leaves, rng.integers(0, 2, len(leaves))] = 1
    counts = sum_leaves(tree, counts)
    return tree, NodeStats(counts, counts.argmax(axis=1))


def test_path_of_a_deep_tree_takes_no_recursion():
    tree, stats = deep_tree_and_stats()
    path = certree.prunings.cost_complexity_path(tree, stats)
    assert len(path.alphas) > 1
    weights = certree.prunings.cost_complexity(tree, stats, 0.25)
    step = np.searchsorted(path.alphas, 0.25, side="right") - 1
    np.testing.assert_array_equal(weights.weight, path.pruning(step).weight)


def exact_rises(tree, cost):
    """Return by how much merging the children of each node raises the cost, as fractions."""
    exact = [Fraction(float(c)) for c in cost]
    return [
        exact[v] - exact[left] - exact[left + 1] if left >= 0 else None
        for v, left in enumerate(tree.left)
    ]


@given(trees(max_inner=10), st.data())
def test_the_cheapest_siblings_merge_first_and_on_ties_the_lowest_node(tree, data):
    values = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e3, 1e3))
    rise = data.draw(hnp.arrays(float, tree.n_nodes, elements=values))
    order = _core.find_merge_order(tree.left, rise)
    expected = np.full(tree.n_nodes, -1)
    expected[reference.order_merges(tree, rise)] = np.arange(tree.n_nodes // 2)
    np.testing.assert_array_equal(order, expected)


@given(trees_and_stats(max_inner=10))
def test_a_merge_path_equals_literal_merges(tree_and_stats):
    tree, stats = tree_and_stats
    path = certree.prunings.sibling_merge_path(tree, stats)
    rise = exact_rises(tree, stats.errors)
    order = reference.order_merges(tree, rise)
    np.testing.assert_array_equal(path.rises, [float(rise[v]) for v in order])
    leaves = set(np.flatnonzero(tree.is_leaf))
    for n_merges, v in enumerate([*order, None]):
        np.testing.assert_array_equal(
            np.flatnonzero(path.pruning_after(n_merges).weight), sorted(leaves)
        )
        if v is not None:
            leaves = (leaves - {tree.left[v], tree.left[v] + 1}) | {v}
    assert leaves == {0}
    critical = reference.compute_critical_values(tree, rise)
    np.testing.assert_array_equal(path.critical, critical)
    np.testing.assert_array_equal(path.alphas, sorted({0.0, *critical} - {-1.0}))


@given(trees_and_stats(max_inner=10, largest=50), temperatures(100), st.data())
def test_an_alpha_admits_the_merges_before_the_first_larger_rise(tree_and_stats, alpha, data):
    tree, stats = tree_and_stats
    cost = data.draw(st.sampled_from(["error", "gini", "entropy"]))
    path = certree.prunings.sibling_merge_path(tree, stats, cost)
    alpha = data.draw(st.sampled_from([alpha, *path.alphas]))
    n_merges = next((i for i, rise in enumerate(path.rises) if rise > alpha), len(path.rises))
    weights = path.solve(alpha)
    assert is_pruning(tree, weights)
    np.testing.assert_array_equal(weights.weight, path.pruning_after(n_merges).weight)
    step = np.searchsorted(path.alphas, alpha, side="right") - 1
    np.testing.assert_array_equal(weights.weight, path.pruning(step).weight)


@given(trees_and_stats(max_inner=10, largest=50), st.sampled_from(["error", "gini", "entropy"]))
def test_merges_are_nested_and_raise_the_cost_by_their_rises(tree_and_stats, cost):
    tree, stats = tree_and_stats
    path = certree.prunings.sibling_merge_path(tree, stats, cost)
    costs = compute_costs(stats, cost)
    prunings = [path.pruning_after(n_merges) for n_merges in range(tree.n_nodes // 2 + 1)]
    np.testing.assert_array_equal(prunings[0].weight, tree.is_leaf)
    np.testing.assert_array_equal(prunings[-1].weight, np.arange(tree.n_nodes) == 0)
    assert [weights.expected_leaves for weights in prunings] == list(range(tree.n_leaves, 0, -1))
    for (larger, smaller), rise in zip(pairwise(prunings), path.rises, strict=True):
        inside = certree.weights.reached(tree, smaller) <= certree.weights.reached(tree, larger)
        assert inside.all()
        raised = costs @ smaller.weight - costs @ larger.weight
        assert raised == pytest.approx(rise, abs=1e-11 * (1 + costs.max()))


@given(
    trees_and_stats(n_classes=3, max_inner=10, largest=50),
    st.sampled_from([certree.prunings.cost_complexity_path, certree.prunings.sibling_merge_path]),
    st.sampled_from(["majority", "mean"]),
    st.data(),
)
def test_losses_of_a_path_are_those_of_its_votes(tree_and_stats, find_path, kind, data):
    tree, stats = tree_and_stats
    table = data.draw(hnp.arrays(np.int64, (tree.n_nodes, 3), elements=st.integers(0, 9)))
    validation = sum_leaves(tree, table)
    path = find_path(tree, stats)
    alphas = np.array([*path.alphas, *data.draw(st.lists(temperatures(100), max_size=5))])
    frequency = stats.averages(tree, 0.0) if kind == "mean" else None
    leaves = np.flatnonzero(tree.is_leaf)
    wrong, nats = [], []
    for alpha in alphas:
        ballot = certree.vote(tree, stats, path.solve(alpha), kind)
        winner, probability = ballot.label[leaves], np.maximum(ballot.score[leaves], 2.0**-52)
        wrong.append(validation[leaves].sum() - validation[leaves, winner].sum())
        nats.append(-(validation[leaves] * np.log(probability)).sum())
    arguments = alphas[:, None], ValidationStatistics(stats.label, frequency, validation)
    np.testing.assert_array_equal(path.compute_losses(*arguments, "error", 1), wrong)
    np.testing.assert_allclose(
        path.compute_losses(*arguments, "log_loss", 1), nats, rtol=1e-11, atol=1e-9
    )


@given(
    trees_and_stats(n_classes=3, max_inner=10, largest=50),
    st.sampled_from([certree.prunings.cost_complexity_path, certree.prunings.sibling_merge_path]),
    st.sampled_from(["error", "gini", "entropy"]),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.5, 3.0, 1e9]),
)
def test_limit_leaves_returns_the_first_pruning_that_is_small_enough(
    tree_and_stats, find_path, cost, n_leaves, alpha
):
    tree, stats = tree_and_stats
    path = find_path(tree, stats, cost)
    found = path.limit_leaves(n_leaves, alpha)
    alphas = [alpha, *(other for other in path.alphas if other > alpha), np.inf]
    prunings = (path.solve(other) for other in alphas)
    first = next(pruning for pruning in prunings if (pruning.weight > 0).sum() <= n_leaves)
    np.testing.assert_array_equal(found.weight, first.weight)
    assert found.expected_leaves <= n_leaves


def test_cost_complexity_collapses_a_subtree_that_merges_keep():
    # Below node 1 is an exclusive or: its own split saves no error, and those of its children save five
    # each, ten for three leaves. Node 2 saves four errors for one leaf.
    left = [1, 3, 9, 5, 7, -1, -1, -1, -1, -1, -1]
    tree = Tree([0] * 11, [0.0] * 11, left, [1] * 11, 1)
    leaves = [[25, 0], [0, 5], [0, 5], [5, 0], [4, 0], [0, 30]]
    counts = sum_leaves(tree, [[0, 0]] * 5 + leaves)
    stats = NodeStats(counts, counts.argmax(axis=1))
    links = certree.prunings.cost_complexity_path(tree, stats)
    merges = certree.prunings.sibling_merge_path(tree, stats)
    np.testing.assert_allclose(links.alphas, [0, 10 / 3, 4, 20])
    np.testing.assert_array_equal(merges.rises, [4, 5, 5, 0, 20])
    np.testing.assert_array_equal(merges.alphas, [0, 4, 5, 20])
    np.testing.assert_array_equal(np.flatnonzero(links.pruning(1).weight), [1, 9, 10])
    np.testing.assert_array_equal(np.flatnonzero(merges.pruning(1).weight), [2, 5, 6, 7, 8])


def test_rises_that_differ_by_rounding_are_ties():
    tree = Tree([0] * 7, [0.0] * 7, [1, 3, 5, -1, -1, -1, -1], [1] * 7, 1)
    counts = np.zeros((7, 2))
    counts[:, 0] = 9.0
    # 0.1 + 0.2 is more than 0.3, and 0.3 + 0.6 - 0.9 is not 0 in doubles.
    counts[:, 1] = [0.9, 0.3, 0.6, 0.1, 0.2, 0.2, 0.4]
    path = certree.prunings.sibling_merge_path(tree, NodeStats(counts, [0] * 7))
    np.testing.assert_array_equal(path.order, [2, 0, 1, -1, -1, -1, -1])
    np.testing.assert_array_equal(path.rises, [0, 0, 0])
    assert not np.signbit(path.rises).any()
    np.testing.assert_array_equal(path.alphas, [0])


def test_merges_of_a_deep_tree_start_at_the_deepest_node():
    tree, stats = deep_tree_and_stats()
    path = certree.prunings.sibling_merge_path(tree, stats)
    np.testing.assert_array_equal(path.order[~tree.is_leaf], np.arange(20_000)[::-1])
    np.testing.assert_array_equal(path.pruning_after(20_000).weight, np.arange(tree.n_nodes) == 0)


def test_bad_costs_are_refused():
    tree = Tree([0, 0, 0], [0.0, 0, 0], [1, -1, -1], [1, 1, 1], 1)
    with pytest.raises(ValueError, match="cost must be finite"):
        certree.prune(tree, [0, np.inf, 0])
    with pytest.raises(TypeError, match="cost must convert to float64"):
        certree.prune(tree, np.array([0, 1, 2], dtype=object))
    stats = NodeStats([[5, 5], [5, 0], [0, 5]], [0, 0, 1])
    for rule in (certree.prunings.cost_complexity, certree.prunings.depth_penalised):
        with pytest.raises(ValueError, match="alpha must be a finite number >= 0"):
            rule(tree, stats, -0.5)


@given(
    trees_and_targets(),
    st.sampled_from([certree.prunings.cost_complexity_path, certree.prunings.sibling_merge_path]),
    st.data(),
)
def test_losses_of_a_path_with_a_numeric_target_are_those_of_its_means(
    tree_and_stats, find_path, data
):
    tree, stats = tree_and_stats
    _, other = data.draw(trees_and_targets())
    validation = np.resize(other.table, (tree.n_nodes, 3))
    # Only leaves hold rows; the moments of inner nodes are merged from those of their children.
    for v in range(tree.n_nodes - 1, -1, -1):
        if tree.left[v] >= 0:
            (n, mean, sse), (more, other_mean, other_sse) = validation[
                tree.left[v] : tree.left[v] + 2
            ]
            total = n + more
            middle = (n * mean + more * other_mean) / total if total else 0.0
            between = n * (mean - middle) ** 2 + more * (other_mean - middle) ** 2
            validation[v] = total, middle, sse + other_sse + between
    path = find_path(tree, stats)
    values = stats.averages(tree, 0.0)
    losses = path.compute_losses(
        path.alphas[:, None], ValidationStatistics(None, values, validation), "squared", 1
    )
    leaves = np.flatnonzero(tree.is_leaf)
    for alpha, loss in zip(path.alphas, losses, strict=True):
        mean = certree.vote(tree, stats, path.solve(alpha), "mean").score[leaves, 0]
        rows, middle, sse = validation[leaves].T
        literal = (rows * (mean - middle) ** 2 + sse).sum()
        assert loss == pytest.approx(literal, rel=1e-9, abs=1e-6 * (1 + abs(stats.mean).max() ** 2))


def test_the_path_of_sums_of_squares_is_scikit_learn_s():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200)
    theirs = DecisionTreeRegressor(random_state=0).fit(X, y)
    tree = certree.grow.from_sklearn(theirs)
    path = certree.prunings.cost_complexity_path(tree, certree.measure(tree, X, y), "squared")
    alphas = theirs.cost_complexity_pruning_path(X, y).ccp_alphas
    np.testing.assert_allclose(path.alphas / 200, alphas, rtol=1e-6, atol=1e-12)
    with pytest.raises(ValueError, match="cost must be None or one of squared"):
        certree.prunings.cost_complexity_path(tree, certree.measure(tree, X, y), "gini")


# -- other pruning rules ---------------------------------------------------------------------------


@given(trees_and_stats(n_classes=3, max_inner=6, largest=50), st.data())
def test_reduced_error_pruning_is_the_smallest_with_the_fewest_validation_errors(
    tree_and_stats, data
):
    tree, stats = tree_and_stats
    table = data.draw(hnp.arrays(np.int64, (tree.n_nodes, 3), elements=st.integers(0, 9)))
    counts = sum_leaves(tree, table)
    wrong = [counts[v].sum() - counts[v, stats.label[v]] for v in range(tree.n_nodes)]
    weights = certree.prunings.reduced_error(tree, stats, NodeStats(counts, counts.argmin(axis=1)))
    best, fewest = reference.find_smallest_cost(tree, wrong)
    assert total(wrong, weights) == best
    assert weights.expected_leaves == fewest


@pytest.mark.parametrize(
    ("errors", "n", "limit", "within"),
    # C4.5 approximates the limit if there are errors.
    [(0, 6, 0.206, 5e-4), (0, 9, 0.143, 5e-4), (0, 1, 0.75, 1e-9), (1, 16, 0.157, 3e-3)],
)
def test_pessimistic_limits_are_those_of_the_book(errors, n, limit, within):
    upper = compute_upper_errors(NodeStats([[n - errors, errors]], [0]), 0.25)
    assert upper[0] / n == pytest.approx(limit, abs=within)


@given(st.integers(0, 30), st.integers(1, 30), st.floats(0.01, 0.99))
def test_at_the_pessimistic_limit_the_errors_have_the_probability_of_the_confidence(
    errors, right, confidence
):
    n = errors + right
    rate = compute_upper_errors(NodeStats([[right, errors]], [0]), confidence)[0] / n
    chance = sum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(errors + 1))
    assert chance == pytest.approx(confidence, rel=1e-6)


@pytest.mark.parametrize("unit", [1.0, 0.3, 1000.0])
def test_pessimistic_limits_of_weighted_rows_are_those_of_their_effective_number(unit):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(150, 2)), rng.integers(0, 3, 150), rng.exponential(size=150)
    tree = certree.grow_cart(X, y, min_samples_leaf=4)
    m = unit * weight.mean()
    stats = replace(certree.count(tree, X, y, 3, sample_weight=unit * weight), weight_unit=m)
    upper, leaves = compute_upper_errors(stats, 0.25), tree.apply(X)
    for v in range(tree.n_nodes):
        inside = np.array([v in reference.find_path(tree, leaf) for leaf in leaves])
        w, wrong = weight[inside], y[inside] != stats.label[v]
        size = w.sum() ** 2 / (w**2).sum()
        assert size <= inside.sum()
        rate = upper[v] / (w.sum() / weight.mean())
        errors = size * (w @ wrong) / w.sum()
        # At this rate, at most the observed errors have the probability of the confidence.
        assert 1 - betainc(errors + 1, size - errors, rate) == pytest.approx(0.25, rel=1e-9)
    added = upper - stats.errors / m
    expected = certree.prune(tree, stats.errors / m + 2 * added)
    found = certree.prunings.pessimistic(tree, stats, 2.0)
    np.testing.assert_array_equal(found.weight, expected.weight)


@pytest.mark.parametrize("unit", [2.0**-1060, 2.0**900])
def test_pessimistic_limits_do_not_depend_on_a_power_of_2_in_the_weights(unit):
    counts = np.array([[30.0, 12.0], [7.0, 0.0], [0.0, 0.0]])
    expected = compute_upper_errors(NodeStats(counts, [0, 0, 0]), 0.25)
    found = compute_upper_errors(NodeStats(counts * unit, [0, 0, 0], weight_unit=unit), 0.25)
    np.testing.assert_array_equal(found, expected)


def test_pessimistic_pruning_does_as_in_the_book():
    # Leaves of 6, 9 and 1 rows without errors have an upper limit of 3.273 errors, and one leaf of 16
    # rows with one error 2.512: the subtree is pruned.
    tree = Tree([0] * 5, [0.0] * 5, [1, -1, 3, -1, -1], [1] * 5, 1)
    stats = NodeStats(sum_leaves(tree, [[0, 0], [6, 0], [0, 0], [9, 0], [0, 1]]), [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(certree.prunings.pessimistic(tree, stats).weight, [1, 0, 0, 0, 0])
    unpruned = certree.prunings.pessimistic(tree, stats, confidence=0.999)
    np.testing.assert_array_equal(unpruned.weight, [0, 1, 0, 1, 1])
    assert compute_upper_errors(NodeStats([[0, 7], [0, 0]], [0, 0]), 0.25).tolist() == [7, 0]
    for confidence in (0, 1, float("nan")):
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
            certree.prunings.pessimistic(tree, stats, confidence=confidence)


@given(trees_and_stats(max_inner=6, largest=1000), temperatures(100))
def test_pessimistic_pruning_is_optimal(tree_and_stats, alpha):
    tree, stats = tree_and_stats
    added = compute_upper_errors(stats, 0.25) - stats.errors
    cost = stats.errors + alpha * added
    weights = certree.prunings.pessimistic(tree, stats, alpha)
    best = float(reference.find_smallest_cost(tree, cost)[0])
    assert float(total(cost, weights)) == pytest.approx(best, rel=1e-12, abs=1e-9)


@given(trees_and_stats(max_inner=6, largest=1000), temperatures(100), st.booleans())
def test_the_shortest_description_is_found(tree_and_stats, alpha, free_splits):
    tree, stats = tree_and_stats
    k = stats.n_classes

    def length(leaves):
        inner = {u for v in leaves for u in reference.find_path(tree, v)[:-1]}
        nats = (len(leaves) + len(inner)) * math.log(2)
        if not free_splits:
            n_thresholds = (max(stats.n[v] - 1, 1) for v in inner)
            nats += sum(math.log(tree.n_features) + math.log(n) for n in n_thresholds)
        nats *= alpha
        for v in leaves:
            n = stats.n[v]
            if n > 0:
                nats += sum(c * math.log(n / c) for c in stats.counts[v] if c > 0)
                nats += (k - 1) / 2 * math.log(n / 2)
                nats += math.log(math.pi ** (k / 2) / math.gamma(k / 2))
        return nats

    weights = certree.prunings.minimum_description_length(
        tree, stats, alpha, free_splits=free_splits
    )
    best = min(length([v for v, _ in pruning]) for pruning in reference.enumerate_prunings(tree))
    assert length(np.flatnonzero(weights.weight)) == pytest.approx(best, rel=1e-11, abs=1e-9)


def test_validation_rows_of_other_trees_or_classes_are_refused():
    tree = Tree([0], [0.0], [-1], [1], 1)
    stats = NodeStats([[1, 2]], [1])
    with pytest.raises(ValueError, match="validation has 3 classes, but stats has 2"):
        certree.prunings.reduced_error(tree, stats, NodeStats([[1, 2, 3]], [1]))
    with pytest.raises(ValueError, match="stats has 2 nodes, but the tree has 1 nodes"):
        certree.prunings.reduced_error(tree, stats, NodeStats([[1, 2], [1, 2]], [1, 1]))


# -- rules as objects ------------------------------------------------------------------------------

OBJECTS = [
    (CostComplexity(), certree.prunings.cost_complexity, {}),
    (DepthPenalised(), certree.prunings.depth_penalised, {}),
    (Pessimistic(), certree.prunings.pessimistic, {}),
    (Pessimistic(0.05), certree.prunings.pessimistic, {"confidence": 0.05}),
    (DescriptionLength(), certree.prunings.minimum_description_length, {}),
    (DescriptionLength(True), certree.prunings.minimum_description_length, {"free_splits": True}),
    (SquareRoot(), certree.prunings.square_root_penalised, {}),
    (SquareRoot(True), certree.prunings.square_root_penalised, {"count_empty": True}),
    (SpatiallyAdaptive(), certree.prunings.spatially_adaptive, {}),
    (SpatiallyAdaptive(True), certree.prunings.spatially_adaptive, {"count_empty": True}),
    (Polynomial(), certree.prunings.polynomial_penalised, {"smoothness": 2}),
    (Polynomial(3), certree.prunings.polynomial_penalised, {"smoothness": 3}),
]


@given(trees_and_stats(max_inner=8, largest=500), temperatures(100))
def test_rules_prune_like_their_functions(tree_and_stats, alpha):
    tree, stats = tree_and_stats
    for rule, function, settings in OBJECTS:
        expected = function(tree, stats, alpha=alpha, **settings)
        np.testing.assert_array_equal(
            rule.family(tree, stats).solve(alpha).weight, expected.weight, err_msg=str(rule)
        )


@given(trees_and_stats(max_inner=8, largest=50), temperatures(100), st.data())
def test_sibling_merge_has_the_path_of_its_cost(tree_and_stats, alpha, data):
    tree, stats = tree_and_stats
    cost = data.draw(st.sampled_from([None, "error", "gini", "entropy"]))
    path = certree.prunings.sibling_merge_path(tree, stats, cost)
    found = SiblingMerge(cost).family(tree, stats)
    np.testing.assert_array_equal(found.alphas, path.alphas)
    np.testing.assert_array_equal(found.solve(alpha).weight, path.solve(alpha).weight)


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_name_means_the_rule_with_its_defaults(name):
    rule = resolve_rule(name)
    assert type(rule) is RULES[name]
    assert resolve_rule(rule) is rule
    assert resolve_rule(name) is not rule
    assert repr(rule) == f"{RULES[name].__name__}()"
    assert clone(rule).get_params() == rule.get_params() == RULES[name]().get_params()
    assert rule.reads_classes == (name in ("pessimistic", "description-length"))


def test_rules_show_their_settings_and_can_be_set():
    assert repr(Pessimistic(0.1)) == "Pessimistic(confidence=0.1)"
    assert repr(DescriptionLength(free_splits=True)) == "DescriptionLength(free_splits=True)"
    assert repr(SiblingMerge("gini")) == "SiblingMerge(cost='gini')"
    assert Pessimistic().set_params(confidence=0.5).confidence == 0.5
    for rule, _, _ in OBJECTS:
        assert repr(clone(rule)) == repr(rule)


@pytest.mark.parametrize("value", ["optimistic", None, 3, CostComplexity, PrunedTreeClassifier()])
def test_other_values_are_refused_as_rules(value):
    with pytest.raises(ValueError, match="rule must be the name of a rule or an object such as"):
        resolve_rule(value)


def test_rules_refuse_settings_out_of_range():
    tree, stats = Tree([0], [0.0], [-1], [1], 1), NodeStats([[1, 2]], [1])
    for rule, message in (
        (Pessimistic(1.0), "confidence must lie between 0 and 1, got 1.0"),
        (SiblingMerge("squared"), "cost must be None or one of error, gini, entropy, got"),
        (SquareRoot("no"), "count_empty must be True or False, got 'no'"),
        (SpatiallyAdaptive(None), "count_empty must be True or False, got None"),
        (Polynomial(0), r"smoothness must lie in 1 \.\. 50, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            rule.family(tree, stats)


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_solves_one_alpha(name):
    rule, rng = resolve_rule(name), np.random.default_rng(0)
    X, y = rng.random((300, 2)), rng.integers(0, 2, 300)
    tree = certree.grow_cart(X, y)
    stats = certree.count(tree, X, y, n_classes=2)
    for alpha in (0.0, 0.3, 2.0):
        expected = rule.family(tree, stats).solve(alpha)
        np.testing.assert_array_equal(rule.solve(tree, stats, alpha).weight, expected.weight)


def test_a_rule_without_its_prunings_says_what_to_define():
    class Unfinished(PruningRule):
        """A rule that does not say which prunings are best."""

    tree = Tree([0, 0, 0], [0.5, 0, 0], [1, -1, -1], n_features=1)
    with pytest.raises(
        NotImplementedError, match=r"Unfinished must define solve\(self, tree, stats, alpha\)"
    ):
        Unfinished().family(tree, NodeStats([[1, 1]] * 3, [0, 0, 0])).solve(1.0)


class ByDepth(PruningRule):
    """Charge alpha for each level of the deepest leaf, which is no sum over leaves."""

    def solve(self, tree, stats, alpha):
        path = certree.prunings.cost_complexity_path(tree, stats)
        prunings = [path.pruning(i) for i in range(len(path.alphas))]
        depth = tree.splits_above
        return min(
            prunings, key=lambda one: one.weight @ stats.loss + alpha * depth[one.weight == 1].max()
        )


@pytest.mark.parametrize("numeric", [False, True])
def test_alpha_of_a_penalty_that_is_no_sum_over_leaves_is_chosen(numeric):
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = (X[:, 0] > 0.5) ^ (rng.random(300) < 0.2)
    kind = certree.PrunedTreeRegressor if numeric else certree.PrunedTreeClassifier
    y = y.astype(float) if numeric else y
    model = kind(rule=ByDepth(), random_state=0).fit(X, y)
    whole = kind(rule=ByDepth(), alpha=0, random_state=0).fit(X, y)
    assert model.best_params_["alpha"] > 0
    assert model.get_n_leaves() <= whole.get_n_leaves()
    again = kind(rule=ByDepth(), alpha=model.best_params_["alpha"], random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_rules_that_return_no_prunings_are_refused():
    class NoPruning(PruningRule):
        """A rule whose method returns a number."""

        def solve(self, *_):
            return 1.0

    class NoFamily(PruningRule):
        """A rule whose family cannot score its prunings."""

        def family(self, tree, stats):
            return certree.prunings.cost_complexity(tree, stats, 1.0)

    X, y = np.arange(40.0)[:, None] % 10, np.arange(40) % 2
    with pytest.raises(TypeError, match="must return a NodeWeights, got"):
        certree.PrunedTreeClassifier(rule=NoPruning(), alpha=1).fit(X, y)
    with pytest.raises(TypeError, match="must return an object with solve and compute_losses"):
        certree.PrunedTreeClassifier(rule=NoFamily(), cv=2).fit(X, y)
