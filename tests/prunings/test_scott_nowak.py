"""The prunings of Scott and Nowak, compared with all prunings and fragments, and with all sizes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import certree
import reference
from certree import (
    KD,
    Cart,
    Dyadic,
    Grid,
    NodeStats,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TargetStats,
    Tree,
    count,
    grow_dyadic,
    grow_kd,
    measure,
)
from certree.estimators.tune import LOG_GRID, linear_grid
from certree.prunings import CostComplexity, Polynomial, SpatiallyAdaptive, SquareRoot
from certree.prunings.scott_nowak import fragment_prunings
from certree.stats.targets import noise_variance
from prunings.test_prunings import deep_tree_and_stats, is_pruning
from sklearn_checks import copies_differ, expect_checks
from strategies import temperatures, trees_and_stats, trees_and_targets

UNIT = [[0, 0], [1, 1]]
alphas = st.sampled_from([0.0, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0])
any_target = st.one_of(trees_and_stats(max_inner=14, max_chain=2, largest=500), trees_and_targets())


def pruning_pairs(weights):
    return tuple((int(v), 0) for v in np.flatnonzero(weights.weight))


def assert_close(value, expected, scale):
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-11 * (1 + scale))


# -- the square-root rule --------------------------------------------------------------------------


def square_root_penalty(stats, alpha, leaves):
    n = max(stats.n[0], 1)
    return n * alpha * math.sqrt(32 * math.log(math.e * n) / n) * math.sqrt(leaves)


@given(trees_and_stats(max_inner=5, max_chain=2, largest=300), alphas, st.booleans())
def test_square_root_rule_finds_the_best_of_all_prunings(tree_and_stats, alpha, count_empty):
    tree, stats = tree_and_stats
    totals = [
        stats.errors[[v for v, _ in pruning]].sum()
        + square_root_penalty(
            stats, alpha, reference.count_leaves(tree, pruning, stats.n, count_empty)
        )
        for pruning in reference.enumerate_prunings(tree)
    ]
    weights = certree.prunings.square_root_penalised(tree, stats, alpha, count_empty=count_empty)
    assert is_pruning(tree, weights)
    leaves = reference.count_leaves(tree, pruning_pairs(weights), stats.n, count_empty)
    value = weights.weight @ stats.errors + square_root_penalty(stats, alpha, leaves)
    assert_close(value, min(totals), stats.n[0])


@given(any_target, alphas, st.booleans())
def test_square_root_rule_finds_the_best_of_all_sizes(tree_and_stats, alpha, count_empty):
    tree, stats = tree_and_stats
    _, costs = reference.compute_costs_by_size(tree, stats.loss, stats.n, count_empty)
    best = min(
        loss + square_root_penalty(stats, alpha, leaves) for leaves, loss in costs[0].items()
    )
    weights = certree.prunings.square_root_penalised(tree, stats, alpha, count_empty=count_empty)
    leaves = reference.count_leaves(tree, pruning_pairs(weights), stats.n, count_empty)
    value = weights.weight @ stats.loss + square_root_penalty(stats, alpha, leaves)
    assert_close(value, best, stats.loss.max())


# -- the spatially adaptive rules ------------------------------------------------------------------


def literal_penalties(tree, stats, alpha, smoothness, log_cells):
    n, p = max(stats.n[0], 1), tree.n_features
    degree = 0 if smoothness is None else max(k for k in range(50) if k < smoothness)
    coefficients = math.comb(p + degree, degree)
    cells = log_cells if smoothness is None else (p + smoothness) * log_cells / p
    return (
        [alpha * math.sqrt(48 * a * coefficients * math.log(2 * n)) for a in stats.n],
        [alpha * math.sqrt(48 * a * cells) for a in stats.n],
    )


def penalised_cost(tree, stats, rule, alpha, penalties, count_empty, cost=None):
    """Return the cost of the rule's pruning plus the literal penalty of the rule's fragment."""
    weights, fragment = rule.solve(alpha), rule.fragment(alpha)
    assert is_pruning(tree, weights)
    assert is_pruning(tree, fragment)
    assert (certree.weights.reached(tree, fragment) <= certree.weights.reached(tree, weights)).all()
    # If the pruning splits a leaf of the fragment, the fragment stops at the end of the chain.
    regions = tuple(
        (v, 0 if weights.weight[v] else int(tree.chain[v]) - 1) for v, _ in pruning_pairs(fragment)
    )
    pruning = pruning_pairs(weights)
    penalty = reference.compute_fragment_penalty(
        tree, pruning, regions, stats.n, *penalties, count_empty
    )
    return weights.weight @ (stats.loss if cost is None else cost) + penalty


@given(
    trees_and_stats(max_inner=4, max_chain=2, largest=300),
    alphas,
    st.sampled_from([None, 1, 1.5, 2]),
    st.booleans(),
)
def test_adaptive_rule_finds_the_best_of_all_prunings_with_all_root_fragments(
    tree_and_stats, alpha, smoothness, count_empty
):
    tree, stats = tree_and_stats
    penalties = literal_penalties(tree, stats, alpha, smoothness, 2.5)
    best = reference.enumerate_smallest_fragment_cost(
        tree, stats.errors, stats.n, *penalties, count_empty
    )
    rule = fragment_prunings(
        tree, stats, smoothness=smoothness, log_cells=2.5, count_empty=count_empty
    )
    assert_close(penalised_cost(tree, stats, rule, alpha, penalties, count_empty), best, stats.n[0])


@given(any_target, alphas, st.sampled_from([0.0, 0.01, 2.5]), st.booleans())
def test_adaptive_rule_finds_the_best_of_all_sizes(tree_and_stats, alpha, log_cells, count_empty):
    tree, stats = tree_and_stats
    penalties = literal_penalties(tree, stats, alpha, None, log_cells)
    best = reference.find_smallest_fragment_cost(tree, stats.loss, stats.n, *penalties, count_empty)
    rule = fragment_prunings(tree, stats, log_cells=log_cells, count_empty=count_empty)
    assert_close(
        penalised_cost(tree, stats, rule, alpha, penalties, count_empty), best, stats.loss.max()
    )


def draw_costs(tree, draw):
    """Draw costs of nodes as leaves, which may be larger than those of their parents."""
    scale = draw(st.sampled_from([1.0, 30.0, 1000.0]))
    whole = draw(st.booleans())
    elements = st.integers(0, 9).map(float) if whole else st.floats(0, 1, width=32)
    return scale * draw(hnp.arrays(np.float64, tree.n_nodes, elements=elements))


@given(
    trees_and_stats(max_inner=4, max_chain=2, largest=300),
    alphas,
    st.sampled_from([1, 1.25, 2, 2.5, 3]),
    st.booleans(),
    st.data(),
)
def test_any_node_costs_give_the_best_of_all_prunings_with_all_root_fragments(
    tree_and_stats, alpha, smoothness, count_empty, data
):
    tree, stats = tree_and_stats
    cost = draw_costs(tree, data.draw)
    penalties = literal_penalties(tree, stats, alpha, smoothness, 2.5)
    best = reference.enumerate_smallest_fragment_cost(tree, cost, stats.n, *penalties, count_empty)
    options = {"log_cells": 2.5, "count_empty": count_empty, "cost": cost}
    rule = fragment_prunings(tree, stats, smoothness=smoothness, **options)
    assert_close(
        penalised_cost(tree, stats, rule, alpha, penalties, count_empty, cost), best, cost.max()
    )
    weights = certree.prunings.polynomial_penalised(tree, stats, smoothness, alpha, **options)
    np.testing.assert_array_equal(weights.weight, rule.solve(alpha).weight)


@given(trees_and_stats(max_inner=14, max_chain=2, largest=500), alphas, st.booleans(), st.data())
def test_any_node_costs_give_the_best_of_all_sizes(tree_and_stats, alpha, count_empty, data):
    tree, stats = tree_and_stats
    cost = draw_costs(tree, data.draw)
    penalties = literal_penalties(tree, stats, alpha, None, 0.01)
    best = reference.find_smallest_fragment_cost(tree, cost, stats.n, *penalties, count_empty)
    rule = fragment_prunings(tree, stats, log_cells=0.01, count_empty=count_empty, cost=cost)
    assert_close(
        penalised_cost(tree, stats, rule, alpha, penalties, count_empty, cost), best, cost.max()
    )


def smallest_cost_by_size(tree, cost, size_penalty, cell_penalty):
    """Return the smallest penalised cost, from arrays of costs by number of leaves."""
    table, best = {}, {}
    for v in range(tree.n_nodes - 1, -1, -1):
        leaf = np.array([np.inf, cost[v]])
        table[v], best[v] = leaf, cost[v] + size_penalty[v] + cell_penalty[v]
        if tree.left[v] < 0:
            continue
        left, right = table.pop(tree.left[v]), table.pop(tree.left[v] + 1)
        sums = np.full(len(left) + len(right) - 1, np.inf)
        for leaves, loss in enumerate(left):
            inside = slice(leaves, leaves + len(right))
            sums[inside] = np.minimum(sums[inside], loss + right)
        sums[1] = np.inf
        penalised = sums + size_penalty[v] * np.sqrt(np.arange(len(sums))) + cell_penalty[v]
        divided = best[tree.left[v]] + best[tree.left[v] + 1]
        best[v] = min(best[v], penalised.min(), divided)
        sums[1] = cost[v]
        table[v] = sums
    return best[0]


def leaves_below_nodes(tree, weights):
    """Return the number of leaves of a pruning below each node."""
    leaves = weights.weight.copy()
    for v in np.flatnonzero(~tree.is_leaf)[::-1]:
        leaves[v] += leaves[tree.left[v]] + leaves[tree.left[v] + 1]
    return leaves


def grow_deep(X):
    """Grow a tree with long paths, by dyadic splits of values that are dense near 0."""
    return grow_dyadic(np.exp(4 * X))


@pytest.mark.parametrize("log_cells", [0.0, 0.003, 4.0])
@pytest.mark.parametrize("target", ["classes", "numbers", "models"])
@pytest.mark.parametrize("grow", [grow_kd, grow_deep])
def test_piecewise_minima_with_many_pieces_are_searched_exactly(grow, target, log_cells):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    noise = rng.normal(size=400)
    tree = grow(X)
    rows = np.exp(4 * X) if grow is grow_deep else X
    if target == "numbers":
        stats = measure(tree, rows, X[:, 0] + noise, unit=0.5)
    else:
        stats = count(tree, rows, (X[:, 0] + noise > 0).astype(int), 2)
    # Models in leaves may have more errors than that of their parent, independently in each node.
    cost = stats.loss * rng.uniform(0.5, 1.0, len(stats.n)) if target == "models" else stats.loss
    sizes = set()
    for alpha in (0.001, 0.003, 0.01, 0.02, 0.03, 0.04, 0.06, 0.1):
        penalties = literal_penalties(tree, stats, alpha, None, log_cells)
        rule = fragment_prunings(tree, stats, log_cells=log_cells, cost=cost)
        weights, fragment = rule.solve(alpha), rule.fragment(alpha)
        inside = leaves_below_nodes(tree, weights)
        value = weights.weight @ cost
        value += fragment.weight @ (penalties[0] * np.sqrt(inside) + penalties[1])
        assert_close(value, smallest_cost_by_size(tree, cost, *penalties), stats.loss[0])
        sizes.add(weights.expected_leaves)
    assert len(sizes) >= 3


# -- ends ------------------------------------------------------------------------------------------


def prune_by_all_rules(tree, stats, alpha, **options):
    yield certree.prunings.square_root_penalised(tree, stats, alpha, **options)
    yield certree.prunings.spatially_adaptive(tree, stats, alpha, **options)
    yield certree.prunings.polynomial_penalised(tree, stats, 2, alpha, **options)


@given(trees_and_stats(max_inner=8), st.booleans())
def test_without_a_penalty_the_smallest_tree_with_the_fewest_errors_is_left(
    tree_and_stats, count_empty
):
    tree, stats = tree_and_stats
    fewest, leaves = reference.find_smallest_cost(tree, stats.errors)
    for weights in prune_by_all_rules(tree, stats, 0.0, count_empty=count_empty):
        assert weights.weight @ stats.errors == fewest
        assert weights.expected_leaves == leaves


@given(trees_and_stats(max_inner=8, largest=1000), st.booleans())
def test_a_large_constant_leaves_the_root(tree_and_stats, count_empty):
    tree, stats = tree_and_stats
    # Leaves without rows have no penalty in the adaptive rules, so splitting them off may be free.
    if (stats.n > 0).all():
        for weights in prune_by_all_rules(tree, stats, 1e6, count_empty=count_empty):
            leaves = reference.count_leaves(tree, pruning_pairs(weights), stats.n, count_empty)
            assert leaves == 1


@given(trees_and_stats(max_inner=8, max_chain=1, largest=50), temperatures(1))
def test_without_chains_and_empty_leaves_all_leaves_are_those_with_rows(tree_and_stats, alpha):
    tree, stats = tree_and_stats
    whole = certree.prune(tree, np.where(tree.is_leaf, 0.0, 1.0))
    stats = NodeStats(stats.counts + leaves_below_nodes(tree, whole)[:, None], stats.label)
    counted = (
        prune_by_all_rules(tree, stats, alpha),
        prune_by_all_rules(tree, stats, alpha, count_empty=True),
    )
    for with_rows, counting_all in zip(*counted, strict=True):
        np.testing.assert_array_equal(with_rows.weight, counting_all.weight)


def test_a_single_node_and_no_rows_are_their_own_prunings():
    single = Tree([0], [0.0], [-1], [3], 1)
    split = Tree([0, 0, 0], [0.0] * 3, [1, -1, -1], [2, 1, 1], 1)
    for count_empty in (False, True):
        for weights in prune_by_all_rules(
            single, NodeStats([[2, 1]], [0]), 1.0, count_empty=count_empty
        ):
            np.testing.assert_array_equal(weights.weight, [1])
        empty = NodeStats(np.zeros((3, 2)), [0, 0, 0])
        for weights in prune_by_all_rules(split, empty, 1.0, count_empty=count_empty):
            np.testing.assert_array_equal(weights.weight, [1, 0, 0])
        nothing = TargetStats([0.0] * 3, [0.0] * 3, [0.0] * 3)
        for weights in prune_by_all_rules(split, nothing, 1.0, count_empty=count_empty):
            np.testing.assert_array_equal(weights.weight, [1, 0, 0])


def test_integral_weights_with_the_unit_of_copies_prune_like_copies():
    rng = np.random.default_rng(1)
    X, y, w = rng.normal(size=(60, 2)), rng.integers(0, 2, 60), rng.integers(1, 4, 60)
    tree = grow_kd(X)
    weighted = count(tree, X, y, 2, sample_weight=w.astype(float))
    repeated = count(tree, np.repeat(X, w, axis=0), np.repeat(y, w), 2)
    for alpha in (0.01, 0.02, 1.0):
        pair = prune_by_all_rules(tree, weighted, alpha), prune_by_all_rules(tree, repeated, alpha)
        for by_weight, by_copies in zip(*pair, strict=True):
            np.testing.assert_array_equal(by_weight.weight, by_copies.weight)


def test_deep_trees_take_no_recursion():
    tree, stats = deep_tree_and_stats()
    sizes = [fragment_prunings(tree, stats).solve(c).expected_leaves for c in (0.0, 0.03, 0.1, 1.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1


def test_the_penalty_of_an_empty_leaf_beside_a_chain():
    # The split of the root saves all 100 errors. With six empty leaves it has eight in all.
    tree = Tree([0, 0, 0], [0.0] * 3, [1, -1, -1], [7, 1, 1], 1)
    stats = NodeStats([[100, 100], [100, 0], [0, 100]], [0, 0, 1])
    unit = math.sqrt(32 * 200 * math.log(math.e * 200))
    between = 100 / (math.sqrt(5) - 1) / unit
    for count_empty, n_leaves in ((False, 2), (True, 1)):
        weights = certree.prunings.square_root_penalised(
            tree, stats, between, count_empty=count_empty
        )
        assert weights.expected_leaves == n_leaves
    # With a large log_cells the fragment is the root alone, at the end of its chain.
    for count_empty in (False, True):
        rule = fragment_prunings(tree, stats, log_cells=50.0, count_empty=count_empty)
        assert rule.fragment(0.1).expected_leaves == 1
        unit = math.sqrt(48 * 200 * math.log(400))
        assert rule.solve(0.999 * 100 / (math.sqrt(2) - 1) / unit).expected_leaves == 2
        assert rule.solve(1.001 * 100 / (math.sqrt(2) - 1) / unit).expected_leaves == 1


# -- the tree of the paper -------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_paper_s_tree_halves_all_sides_equally_often(p):
    rng = np.random.default_rng(p)
    X = rng.random((3000, p))
    for exponent in (None, 1 / (p + 1), 1 / (p + 2)):
        halvings = certree.grow.dyadic_resolution(3000, p, exponent)
        power = 1 / p if exponent is None else exponent
        assert 2**halvings <= (3000 / math.log(3000)) ** power < 2 ** (halvings + 1)
        tree = grow_dyadic(X, np.zeros(3000, int), resolution="paper", exponent=exponent)
        assert tree.depth == p * halvings
        same = grow_dyadic(X, max_depth=p * halvings)
        np.testing.assert_array_equal(tree.left, same.left)


def test_the_paper_s_tree_counts_rows_and_not_weights():
    rng = np.random.default_rng(0)
    X = rng.random((40, 1))
    plain = grow_dyadic(X, resolution="paper")
    for weight in (np.full(40, 100.0), rng.uniform(0.01, 100, 40)):
        weighted = grow_dyadic(X, resolution="paper", sample_weight=weight)
        np.testing.assert_array_equal(weighted.left, plain.left)
    # Repeated rows count as more rows.
    repeated = grow_dyadic(np.repeat(X, 100, axis=0), resolution="paper")
    assert repeated.n_leaves > plain.n_leaves


@pytest.mark.parametrize("alpha", [0.005, 0.01, 0.02, 0.05])
def test_chains_stand_for_the_empty_leaves_that_are_not_stored(alpha):
    rng = np.random.default_rng(4)
    X = rng.random((60, 2)) ** 3
    y = (X[:, 0] > X[:, 1] * rng.random(60)).astype(int)
    found = []
    for expand in (False, True):
        tree = grow_dyadic(X, y, resolution="paper", exponent=1.0, expand=expand)
        stats = count(tree, X, y, 2)
        rule = fragment_prunings(tree, stats, log_cells=5.0, count_empty=True)
        penalties = literal_penalties(tree, stats, alpha, None, 5.0)
        value = penalised_cost(tree, stats, rule, alpha, penalties, True)
        search = SquareRoot(count_empty=True).family(tree, stats)
        step = search.find_step(alpha)
        found.append((value, search.costs[step] + alpha * search.penalties[step]))
    assert found[0] == pytest.approx(found[1], rel=1e-12)


# -- in the estimators -----------------------------------------------------------------------------

PAPER = Dyadic(resolution="paper")
PUBLISHED = [SquareRoot(), SpatiallyAdaptive(), *(Polynomial(r) for r in (1, 2, 3))]
every_published_rule = pytest.mark.parametrize("rule", PUBLISHED, ids=str)
both_estimators = pytest.mark.parametrize(
    "estimator", [PrunedTreeClassifier, PrunedTreeRegressor], ids=["classes", "numbers"]
)


def make_problem(estimator, n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p)) ** 2
    noise = rng.normal(size=n) / 8
    value = X[:, 0] - X[:, -1] / 2 + noise
    y = (value > 0.2).astype(int) if estimator is PrunedTreeClassifier else np.round(value, 2)
    return X, y, rng.integers(1, 4, n).astype(float)


def summarise(tree, X, y, weight, weight_unit=None):
    """Compute node statistics with a mean weight of `weight_unit` (None: that of these rows)."""
    weight_unit = weight.mean() if weight_unit is None else weight_unit
    if y.dtype.kind == "i":
        return replace(count(tree, X, y, 2, sample_weight=weight), weight_unit=weight_unit)
    stats = measure(tree, X, y, sample_weight=weight)
    unit = noise_variance(tree, stats.rows, stats.sse, weight_unit)
    return replace(stats, unit=unit, weight_unit=weight_unit)


def prune_by_function(rule, X, y, weight, alpha, weight_unit=None):
    """Return the tree of the paper, and its pruning by the function of the rule."""
    p, name, smoothness = X.shape[1], type(rule), getattr(rule, "smoothness", None)
    if name is Polynomial:
        exponent = 1 / (p + 2 * smoothness - 2)
    else:
        exponent = 1 / (p + 1) if name is SquareRoot else 1 / p
    tree = grow_dyadic(X, resolution="paper", exponent=exponent)
    stats = summarise(tree, X, y, weight, weight_unit)
    options = {"count_empty": rule.count_empty}
    if name is SquareRoot:
        return tree, certree.prunings.square_root_penalised(tree, stats, alpha, **options)
    halvings = certree.grow.dyadic_resolution(len(y), p, exponent)
    options["log_cells"] = math.log((2**halvings) ** p)
    if name is SpatiallyAdaptive:
        return tree, certree.prunings.spatially_adaptive(tree, stats, alpha, **options)
    return tree, certree.prunings.polynomial_penalised(tree, stats, smoothness, alpha, **options)


def find_leaves(tree, weights, X):
    """Return the leaf of a pruning that each row reaches."""
    leaf = tree.apply(X)
    while (is_pruned := weights.weight[leaf] == 0).any():
        leaf = np.where(is_pruned, tree.parent[leaf], leaf)
    return leaf


def as_sets(leaf):
    return {frozenset(np.flatnonzero(leaf == v)) for v in np.unique(leaf)}


@both_estimators
@every_published_rule
@pytest.mark.parametrize("weighted", [False, True])
def test_estimators_prune_the_paper_s_tree_like_the_functions(estimator, rule, weighted):
    sizes = set()
    for seed, p in ((0, 1), (1, 2), (2, 2)):
        X, y, weight = make_problem(estimator, 400, p, seed)
        weight = weight if weighted else np.ones(len(y))
        for alpha in (0.002, 0.01, 0.03, 1.0):
            for count_empty in (False, True):
                model = estimator(PAPER, rule=clone(rule), alpha=alpha)
                model.set_params(rule__count_empty=count_empty).fit(X, y, sample_weight=weight)
                tree, weights = prune_by_function(model.rule, X, y, weight, alpha)
                expected = find_leaves(tree, weights, X)
                assert as_sets(model.apply(X)) == as_sets(expected)
                assert model.get_n_leaves() == weights.expected_leaves
                sizes.add(model.get_n_leaves())
    assert len(sizes) > 1


@both_estimators
@every_published_rule
def test_alpha_is_tuned_on_trees_grown_in_each_fold(estimator, rule):
    X, y, weight = make_problem(estimator, 600, 2)
    folds = list(KFold(3).split(X))
    rule = clone(rule).set_params(count_empty=True)
    model = estimator(PAPER, rule=rule, cv=folds).fit(X, y, sample_weight=weight)

    def held_out_loss(alpha):
        loss = 0.0
        for train, validate in folds:
            training = X[train], y[train], weight[train]
            tree, weights = prune_by_function(rule, *training, alpha, weight.mean())
            stats = summarise(tree, *training, weight.mean())
            leaf = find_leaves(tree, weights, X[validate])
            if estimator is PrunedTreeClassifier:
                loss += weight[validate] @ (stats.label[leaf] != y[validate])
            else:
                loss += weight[validate] @ (stats.mean[leaf] - y[validate]) ** 2
        return loss

    best = 1.0
    for grid in (LOG_GRID, None):
        values = linear_grid(best) if grid is None else grid
        best = values[np.argmin([held_out_loss(alpha) for alpha in values])]
    assert model.best_params_["alpha"] == best


@both_estimators
def test_on_other_trees_the_leaves_are_counted(estimator):
    X, y, weight = make_problem(estimator, 200, 2)
    rule = Polynomial(smoothness=3, count_empty=True)
    model = estimator("dyadic", rule=rule, alpha=0.005).fit(X, y, sample_weight=weight)
    tree = grow_dyadic(X, y)
    stats = summarise(tree, X, y, weight)
    weights = certree.prunings.polynomial_penalised(tree, stats, 3, 0.005, count_empty=True)
    assert as_sets(model.apply(X)) == as_sets(find_leaves(tree, weights, X))
    assert 1 < model.get_n_leaves() < tree.n_leaves


@both_estimators
@every_published_rule
def test_an_explicit_exponent_is_kept(estimator, rule):
    X, y, weight = make_problem(estimator, 300, 2)
    grower = Dyadic(resolution="paper", exponent=0.6)
    model = estimator(grower, rule=rule, alpha=0.0).fit(X, y, sample_weight=weight)
    assert grower.exponent == 0.6
    tree = grow_dyadic(X, resolution="paper", exponent=0.6)
    stats = summarise(tree, X, y, weight)
    weights = rule.family(tree, stats, exponent=0.6).solve(0.0)
    assert as_sets(model.apply(X)) == as_sets(find_leaves(tree, weights, X))


@both_estimators
@every_published_rule
@pytest.mark.parametrize("weighted", [False, True])
def test_on_a_fixed_cube_all_leaves_of_the_paper_s_tree_count(estimator, rule, weighted):
    sizes = set()
    for seed, p in ((0, 1), (1, 2)):
        X, y, weight = make_problem(estimator, 400, p, seed)
        weight = weight if weighted else np.ones(len(y))
        halvings = certree.grow.dyadic_resolution(400, p, rule.exponent(p))
        tree = certree.grow.dyadic_grid(np.zeros(p), np.ones(p), p * halvings)
        stats = summarise(tree, X, y, weight)
        for alpha in (0.002, 0.03, 1.0):
            grower = Grid([[0] * p, [1] * p], resolution="paper")
            model = estimator(grower, rule=rule, alpha=alpha)
            model.fit(X, y, sample_weight=weight)
            if isinstance(rule, SquareRoot):
                expected = certree.prunings.square_root_penalised(
                    tree, stats, alpha, count_empty=True
                )
            else:
                expected = fragment_prunings(
                    tree,
                    stats,
                    smoothness=getattr(rule, "smoothness", None),
                    log_cells=math.log(2) * p * halvings,
                    count_empty=True,
                ).solve(alpha)
            assert as_sets(model.apply(X)) == as_sets(find_leaves(tree, expected, X))
            assert model.get_n_leaves() == expected.expected_leaves
            sizes.add(model.get_n_leaves())
    assert len(sizes) > 1


@every_published_rule
def test_a_fixed_cube_is_the_box_of_rows_that_span_it(rule):
    """The leaves without rows of the grid are those that the tree of the rows does not store."""
    X, y, _ = make_problem(PrunedTreeClassifier, 500, 2)
    X[0], X[1] = 0, 1
    rule = clone(rule).set_params(count_empty=True)
    for alpha in (0.002, 0.01, 0.1):
        stored, fixed = (
            PrunedTreeClassifier(grower, rule=rule, alpha=alpha).fit(X, y)
            for grower in (PAPER, Grid(UNIT, resolution="paper"))
        )
        assert np.mean(stored.predict(X) != y) == np.mean(fixed.predict(X) != y)


def test_real_smoothness_has_the_degree_below_it_and_its_own_resolution():
    assert Polynomial(1.5).exponent(2) == 1 / 3
    assert Polynomial(2).exponent(2) == 1 / 4
    X, y, _ = make_problem(PrunedTreeClassifier, 300, 2)
    tree = grow_dyadic(X, y)
    stats = count(tree, X, y, 2)
    below, at, above = (
        fragment_prunings(tree, stats, smoothness=gamma, log_cells=2.0) for gamma in (1.5, 2, 2.001)
    )
    np.testing.assert_array_equal(below.size_penalty, at.size_penalty)
    np.testing.assert_allclose(above.size_penalty, at.size_penalty * math.sqrt(6 / 3))
    np.testing.assert_allclose(below.cell_penalty, at.cell_penalty * math.sqrt(3.5 / 4))


@both_estimators
@every_published_rule
def test_a_fit_changes_neither_its_grower_nor_its_rule(estimator, rule):
    X, y, _ = make_problem(estimator, 700, 2)
    grower, before = Dyadic(resolution="paper"), rule.get_params()
    estimator(grower, rule=rule, alpha=0.01).fit(X, y)
    assert grower.get_params() == Dyadic(resolution="paper").get_params()
    assert rule.get_params() == before


@both_estimators
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_settings_pass_the_checks_of_scikit_learn(estimator):
    rule = Polynomial(smoothness=3, count_empty=True)
    # The penalty grows like the root of the number of rows, errors like the number itself.
    expected = copies_differ() if estimator is PrunedTreeClassifier else {}
    expect_checks(estimator(Dyadic(), rule=rule), expected)


@both_estimators
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"rule": "depth", "grower": PAPER},
            r"grower must have resolution=None with rule=DepthPenalised\(\), got Dyadic",
        ),
        (
            {"rule": CostComplexity(), "grower": PAPER},
            "grower must have resolution=None with rule=",
        ),
        (
            {"rule": "square-root", "grower": PAPER, "max_depth": 3},
            'max_depth must be None with resolution="paper", got 3',
        ),
        ({"rule": Polynomial(smoothness=0)}, r"smoothness must lie in 1 \.\. 50, got 0"),
        ({"rule": Polynomial(smoothness=0.9)}, r"smoothness must lie in 1 \.\. 50, got 0.9"),
        ({"rule": Polynomial(smoothness=51)}, r"smoothness must lie in 1 \.\. 50, got 51"),
        (
            {"rule": Polynomial(smoothness=0), "grower": PAPER},
            r"smoothness must lie in 1 \.\. 50, got 0",
        ),
        (
            {"rule": "square-root", "grower": Grid(UNIT, resolution="paper"), "max_depth": 3},
            'max_depth must be None with resolution="paper", got 3',
        ),
        (
            {"rule": CostComplexity(), "grower": Grid(UNIT, resolution="paper")},
            "grower must have resolution=None with rule=",
        ),
        (
            {"rule": "square-root", "grower": Grid(UNIT, exponent=0.5)},
            'exponent must be None without resolution="paper", got 0.5',
        ),
        (
            {"rule": "square-root", "grower": Dyadic(resolution="fine")},
            "resolution must be None or \"paper\", got 'fine'",
        ),
        (
            {"rule": "square-root", "grower": Dyadic(resolution="paper", exponent=-1.0)},
            "exponent must be a finite number >= 0",
        ),
        ({"rule": SquareRoot(count_empty="yes")}, "count_empty must be True or False, got 'yes'"),
        ({"rule": "square"}, "'rule' parameter"),
        ({"rule": SquareRoot}, "rule must be the name of a rule or an object such as"),
    ],
)
def test_settings_that_do_not_apply_are_refused(estimator, settings, message):
    X, y, _ = make_problem(estimator, 40, 2)
    model = estimator("dyadic").set_params(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@both_estimators
@pytest.mark.parametrize("grower", [Cart(), KD()], ids=str)
def test_leaves_without_rows_are_counted_on_any_grower(estimator, grower):
    # These growers grow no leaves without rows, so count_empty makes no difference.
    X, y, _ = make_problem(estimator, 200, 2)
    fits = [
        estimator(grower, rule=SquareRoot(count_empty=count_empty), alpha=0.005).fit(X, y)
        for count_empty in (False, True)
    ]
    np.testing.assert_array_equal(fits[0].predict(X), fits[1].predict(X))


@both_estimators
def test_too_few_rows_for_the_paper_s_tree_are_refused_in_folds_too(estimator):
    # (27 / log 27)^(1 / 3) is 2.02, but a fold has 18 rows.
    X, y, _ = make_problem(estimator, 27, 2)
    model = estimator(PAPER, rule="square-root", cv=KFold(3))
    message = "{} rows .*are too few to halve each of 2 features"
    with pytest.raises(ValueError, match=message.format(18)):
        model.fit(X, y)
    model.set_params(alpha=1.0).fit(X, y)
    for weight in (None, np.full(26, 100.0)):  # large weights do not count as more rows
        with pytest.raises(ValueError, match=message.format(26)):
            model.fit(X[1:], y[1:], sample_weight=weight)


# -- as objects ------------------------------------------------------------------------------------


def test_rules_are_cloned_and_show_their_settings():
    for rule in PUBLISHED:
        again = clone(rule)
        assert again is not rule
        assert again.get_params() == rule.get_params()
    assert repr(Polynomial(smoothness=3, count_empty=True)) == (
        "Polynomial(count_empty=True, smoothness=3)"
    )
    assert repr(PrunedTreeClassifier(PAPER, rule=SquareRoot())) == (
        "PrunedTreeClassifier(grower=Dyadic(resolution='paper'), rule=SquareRoot())"
    )


@both_estimators
def test_a_rule_s_name_has_the_settings_of_its_object(estimator):
    X, y, _ = make_problem(estimator, 200, 2)
    for name, rule in (
        ("square-root", SquareRoot()),
        ("spatially-adaptive", SpatiallyAdaptive()),
        ("polynomial", Polynomial(smoothness=2)),
    ):
        by_name = estimator(rule=name, alpha=0.01).fit(X, y)
        by_object = estimator(rule=rule, alpha=0.01).fit(X, y)
        np.testing.assert_array_equal(by_name.predict(X), by_object.predict(X))
    model = estimator("dyadic", rule="polynomial")
    model.set_params(rule__smoothness=3, grower__resolution="paper")
    assert (model.rule.smoothness, model.rule.count_empty) == (3, False)
    assert model.grower.resolution == "paper"
    model.set_params(rule__count_empty=True)
    assert (model.rule.smoothness, model.rule.count_empty) == (3, True)
    assert clone(model).get_params()["rule__smoothness"] == 3


def test_grid_search_sets_parameters_of_rules():
    X, y, _ = make_problem(PrunedTreeClassifier, 700, 2)
    model = PrunedTreeClassifier("dyadic", rule="polynomial", alpha=0.003)
    grid = {"rule__smoothness": [1, 3], "grower__resolution": ["paper", None]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.rule.smoothness == search.best_params_["rule__smoothness"]
    assert model.rule == "polynomial"


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [-0.5, float("nan"), float("inf")])
def test_bad_constants_are_refused(alpha):
    tree = Tree([0], [0.0], [-1], [1], 1)
    stats = NodeStats([[1, 2]], [1])
    for rule in (
        certree.prunings.square_root_penalised,
        certree.prunings.spatially_adaptive,
        lambda tree, stats, alpha: certree.prunings.polynomial_penalised(tree, stats, 1, alpha),
        certree.prunings.pessimistic,
        certree.prunings.minimum_description_length,
    ):
        with pytest.raises(ValueError, match="alpha must be a finite number >= 0"):
            rule(tree, stats, alpha)
    with pytest.raises(ValueError, match="log_cells must be a finite number >= 0"):
        certree.prunings.spatially_adaptive(tree, stats, log_cells=alpha)


def test_other_bad_input_is_refused():
    tree = Tree([0], [0.0], [-1], [1], 1)
    stats = NodeStats([[1, 2]], [1])
    for smoothness in (0, 0.5, 51):
        with pytest.raises(ValueError, match=r"smoothness must lie in 1 \.\. 50"):
            certree.prunings.polynomial_penalised(tree, stats, smoothness)
    for smoothness in ("2", None):
        with pytest.raises((TypeError, ValueError), match="smoothness must be a number"):
            certree.prunings.polynomial_penalised(tree, stats, smoothness)
    with pytest.raises(ValueError, match="cost must be finite"):
        certree.prunings.polynomial_penalised(tree, stats, 2, cost=[np.nan])
    with pytest.raises(ValueError, match="cost"):
        certree.prunings.polynomial_penalised(tree, stats, 2, cost=[1.0, 2.0])
    two = NodeStats([[1, 2], [1, 1]], [1, 0])
    for rule in (certree.prunings.square_root_penalised, certree.prunings.spatially_adaptive):
        with pytest.raises(ValueError, match="stats has 2 nodes, but the tree has 1 nodes"):
            rule(tree, two)
    X = np.zeros((20, 12))
    with pytest.raises(ValueError, match="too few to halve each of 12 features"):
        grow_dyadic(X, resolution="paper")
    with pytest.raises(ValueError, match=r"1 rows .*are too few to halve each of 1 features"):
        certree.grow.dyadic_resolution(1, 1)
    with pytest.raises(ValueError, match="resolution must be None or"):
        grow_dyadic(X, resolution="fine")
    with pytest.raises(ValueError, match='max_depth must be None with resolution="paper", got 3'):
        grow_dyadic(X, resolution="paper", max_depth=3)
    with pytest.raises(ValueError, match="exponent must be a finite number >= 0"):
        certree.grow.dyadic_resolution(100, 2, float("nan"))
