"""Votes, compared with the enumeration of all prunings."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certree
import reference
from certree import NodeStats, Tree, Vote, _core
from certree.votes import Voting
from strategies import temperatures, trees, trees_and_stats, trees_and_targets


@given(trees_and_stats(largest=1000), temperatures(10))
def test_majority_vote_counts_the_prunings(tree_and_stats, lam):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam, 0.1)
    prunings, masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.errors, lam, 0.1
    )
    one_hot = np.eye(stats.n_classes)[stats.label]
    ballot = certree.vote(tree, stats, weights)
    for leaf, outcome in reference.vote(tree, prunings, masses, one_hot).items():
        np.testing.assert_allclose(ballot.score[leaf], outcome, atol=1e-10)


@given(trees_and_stats(largest=1000), temperatures(10))
def test_mean_vote_averages_frequencies(tree_and_stats, lam):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam, 0.1)
    prunings, masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.errors, lam, 0.1
    )
    ballot = certree.vote(tree, stats, weights, "mean")
    value = reference.compute_frequencies(tree, stats.counts)
    for leaf, outcome in reference.vote(tree, prunings, masses, value).items():
        np.testing.assert_allclose(ballot.score[leaf], outcome, atol=1e-10)


@given(trees_and_stats(largest=1000), st.floats(0.01, 10))
def test_smoothing_adds_rows_with_the_classes_of_the_parent(tree_and_stats, smoothing):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, 0.3, 0.1)
    prunings, masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.errors, 0.3, 0.1
    )
    ballot = certree.vote(tree, stats, weights, Voting("mean", smoothing))
    value = reference.smooth_frequencies(tree, stats.counts, smoothing)
    for leaf, outcome in reference.vote(tree, prunings, masses, value).items():
        np.testing.assert_allclose(ballot.score[leaf], outcome, atol=1e-10)


@given(trees_and_stats())
def test_the_vote_of_one_pruning_is_the_label_of_its_leaf(tree_and_stats):
    tree, stats = tree_and_stats
    weights = certree.prunings.cost_complexity(tree, stats, 1.0)
    label = certree.vote(tree, stats, weights).label
    for leaf in np.flatnonzero(tree.is_leaf):
        stops = [v for v in reference.find_path(tree, leaf) if weights.weight[v]]
        assert label[leaf] == stats.label[stops[0]]


@given(
    trees_and_targets(),
    temperatures(10),
    st.sampled_from(["leaves", "branching"]),
    st.sampled_from([0.0, 1.5]),
)
def test_numeric_targets_are_averaged_and_their_variance_is_decomposed(
    tree_and_stats, lam, prior, smoothing
):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam, 0.1, prior)
    loss = reference.compute_losses_from_means(tree, stats)
    prunings, masses, evidence = reference.compute_pac_bayes_posterior(
        tree, stats.n, loss, lam, 0.1, prior
    )
    assert weights.log_evidence == pytest.approx(float(evidence), rel=1e-9, abs=1e-9)
    mean = reference.smooth_means(tree, stats.n, stats.mean, smoothing)
    node_variance = [e / n if n else 0.0 for e, n in zip(stats.sse, stats.n, strict=True)]
    variance = reference.smooth_means(tree, stats.n, node_variance, smoothing)
    ballot = certree.vote(tree, stats, weights, Voting("mean", smoothing))
    variances = certree.votes.prediction_variance(tree, stats, weights, Voting("mean", smoothing))
    average = reference.vote(tree, prunings, masses, mean)
    within = reference.vote(tree, prunings, masses, variance)
    for leaf, outcome in average.items():
        distance = reference.vote(tree, prunings, masses, (mean - outcome) ** 2)[leaf]
        np.testing.assert_allclose(ballot.score[leaf], outcome, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(variances.within[leaf], within[leaf], atol=1e-9)
        np.testing.assert_allclose(variances.between[leaf], distance, atol=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 1.5])
@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_variances_are_smoothed_by_the_effective_sample_size(smoothing, unit):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(200, 2)), rng.normal(size=200), unit * rng.exponential(size=200)
    tree = certree.grow_cart(X, y, min_samples_leaf=5)
    stats = certree.measure(tree, X, y, sample_weight=weight)
    posterior = certree.pac_bayes(tree, certree.measure(tree, X, y), 0.1, 0.1)
    variances = certree.votes.prediction_variance(tree, stats, posterior, Voting("mean", smoothing))
    inside = np.array(
        [
            [v in reference.find_path(tree, leaf) for leaf in tree.apply(X)]
            for v in range(tree.n_nodes)
        ]
    )
    size = (inside @ weight) ** 2 / (inside @ weight**2)
    np.testing.assert_allclose(stats.effective_size, size)
    node_variance = [
        np.average((y[i] - np.average(y[i], weights=weight[i])) ** 2, weights=weight[i])
        for i in inside
    ]
    variance = reference.smooth_means(tree, size, node_variance, smoothing)
    for leaf in np.flatnonzero(tree.is_leaf):
        path = reference.find_path(tree, leaf)
        expected = posterior.weight[path] @ variance[path]
        assert variances.within[leaf] == pytest.approx(expected, rel=1e-9)


@given(trees_and_targets(), st.floats(0, 5))
def test_the_best_pruning_of_a_numeric_target_costs_least(tree_and_stats, alpha):
    tree, stats = tree_and_stats
    weights = certree.prunings.cost_complexity(tree, stats, alpha)
    cost = stats.loss + alpha * (stats.n > 0)
    least, _ = reference.find_smallest_cost(tree, cost)
    assert weights.weight @ cost == pytest.approx(float(least), rel=1e-9, abs=1e-9)


def test_numeric_targets_have_no_majority_vote():
    tree = Tree([0], [0.0], [-1], [1], 1)
    stats = certree.TargetStats([1.0], [2.0], [0.0])
    weights = certree.pac_bayes(tree, stats, 1, 1)
    with pytest.raises(ValueError, match='kind must be "mean" for a numeric target'):
        certree.vote(tree, stats, weights)


def test_order_preserving_relabelling_permutes_the_vote():
    tree = Tree([0, 0, 0], [0.0, 0, 0], [1, -1, -1], [1, 1, 1], 1)
    compact = NodeStats([[4, 3], [4, 1], [0, 2]], [0, 0, 1])
    spread = NodeStats([[0, 4, 0, 3], [0, 4, 0, 1], [0, 0, 0, 2]], [1, 1, 3])
    weights = certree.pac_bayes(tree, compact, 0.5, 0.1)
    again = certree.pac_bayes(tree, spread, 0.5, 0.1)
    np.testing.assert_array_equal(weights.weight, again.weight)
    a = certree.vote(tree, compact, weights).score
    b = certree.vote(tree, spread, again).score
    np.testing.assert_array_equal(a, b[:, [1, 3]])


def test_ties_go_to_the_lowest_class():
    assert Vote([[0.25, 0.5, 0.5], [0.5, 0.5, 0.0]]).label.tolist() == [1, 0]


def test_bad_input_is_refused():
    tree = Tree([0, 0, 0], [0.0, 0, 0], [1, -1, -1], [1, 1, 1], 1)
    stats = NodeStats([[4, 3], [4, 1], [0, 2]], [0, 0, 1])
    weights = certree.pac_bayes(tree, stats, 0.5, 0.1)
    with pytest.raises(ValueError, match='must be a Voting or "majority" or "mean", got'):
        certree.vote(tree, stats, weights, "median")
    with pytest.raises(ValueError, match="smoothing must be a finite number >= 0"):
        certree.vote(tree, stats, weights, Voting("mean", -1))
    single = Tree([0], [0.0], [-1], [1], 1)
    with pytest.raises(ValueError, match="weights has 3 nodes, but the tree has 1 nodes"):
        certree.vote(single, stats, weights)
    with pytest.raises(ValueError, match="finite"):
        Vote([[np.nan, 1.0]])


@given(
    trees(max_inner=6, max_chain=1), st.integers(0, 2**32), st.sampled_from([[1, 0, 0], [-1, 1, 0]])
)
def test_values_are_monotone_in_every_pruning_and_otherwise_unchanged(tree, seed, constraints):
    rng = np.random.default_rng(seed)
    signs = np.array(constraints, dtype=np.int8)
    values = rng.integers(0, 5, tree.n_nodes).astype(float)
    monotone = _core.make_monotone(tree.left, tree.feature, signs, values)
    assert is_monotone_everywhere(tree, signs, monotone)
    if is_monotone_everywhere(tree, signs, values) and is_bounded(tree, signs, values):
        np.testing.assert_array_equal(monotone, values)


def is_monotone_everywhere(tree, signs, values):
    """Return whether rows that differ in one feature are ordered by it, in every pruning."""
    grid = np.stack(np.meshgrid(*[np.arange(-3.5, 4.5)] * 3, indexing="ij"), axis=-1)
    leaf = tree.apply(grid.reshape(-1, 3)).reshape(grid.shape[:3])
    for pruning in reference.enumerate_prunings(tree):
        leaves = {v for v, _ in pruning}
        stop = np.zeros(tree.n_nodes, dtype=int)
        for v in np.flatnonzero(tree.is_leaf):
            stop[v] = next(u for u in reference.find_path(tree, v) if u in leaves)
        steps = values[stop[leaf]]
        for j in np.flatnonzero(signs):
            if (np.diff(steps, axis=j) * signs[j] < 0).any():
                return False
    return True


def is_bounded(tree, signs, values):
    """Return whether no value passes the mean of two siblings above it in a constrained direction."""
    for leaf in np.flatnonzero(tree.is_leaf):
        low, high = -np.inf, np.inf
        nodes = reference.find_path(tree, leaf)
        for v, child in pairwise(nodes):
            left = int(tree.left[v])
            middle, sign = (values[left] + values[left + 1]) / 2, signs[tree.feature[v]]
            if sign and (child == left) == (sign > 0):
                high = min(high, middle)
            elif sign:
                low = max(low, middle)
            if not low <= values[child] <= high:
                return False
    return True


def test_the_vote_of_a_constrained_tree_is_monotone():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = (X[:, 0] + rng.normal(scale=0.5, size=300) > 0.5).astype(np.int32)
    signs = np.array([1, 0], dtype=np.int8)
    tree = certree.grow_cart(X, y, monotonic_cst=signs)
    stats = certree.count(tree, X, y, 2)
    weights = certree.pac_bayes(tree, stats, 0.3, 0.01)
    line = np.column_stack([np.linspace(0, 1, 200), np.full(200, 0.5)])
    for kind, smoothing in (("mean", 3.0), ("majority", 0.0)):
        score = certree.vote(tree, stats, weights, Voting(kind, smoothing, signs)).score
        np.testing.assert_allclose(score.sum(axis=1)[tree.is_leaf], 1)
        assert (np.diff(score[tree.apply(line), 1]) >= -1e-12).all()
    free = certree.grow_cart(X, y)
    stats = certree.count(free, X, y, 2)
    weights = certree.pac_bayes(free, stats, 0.3, 0.01)
    score = certree.vote(free, stats, weights, Voting("mean", 3.0)).score
    assert (np.diff(score[free.apply(line), 1]) < -1e-12).any()
    three = certree.NodeStats(np.ones((free.n_nodes, 3)), np.zeros(free.n_nodes, dtype=int))
    with pytest.raises(
        ValueError, match="for more than two classes, got constraints for 3 classes"
    ):
        certree.vote(free, three, weights, Voting("mean", 0.0, signs))
