"""Moments of what prunings get wrong against pairs and tuples of prunings, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import certree
import reference
from certree import NodeStats, Vote
from certree.certificates import inequalities
from strategies import temperatures, trees_and_stats

SMALL = {"largest": 1000, "max_inner": 3, "max_chain": 2}


def drawn(tree_and_stats, lam):
    """A law, its vote and its masses by pruning."""
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam, 0.1)
    every, masses, _ = reference.compute_pac_bayes_posterior(tree, stats.n, stats.errors, lam, 0.1)
    ballot = certree.vote(tree, stats, weights)
    return weights, ballot, reference.group_by_nodes(every, masses)


def observed(case):
    """Not every drawn case has rows."""
    return case[1].n[0] > 0


@given(
    trees_and_stats(**SMALL).filter(observed),
    temperatures(10),
    st.sampled_from([(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]),
)
def test_tuple_risk_draws_all_tuples(tree_and_stats, lam, tuple_):
    tree, stats = tree_and_stats
    _, ballot, masses = drawn(tree_and_stats, lam)
    expected = reference.compute_tuple_risk(tree, masses, stats.counts, stats.label, *tuple_)
    assert inequalities.tuple_risk(tree, stats, ballot, *tuple_) == pytest.approx(
        expected, abs=1e-9
    )


@given(trees_and_stats(**SMALL).filter(observed), temperatures(10))
def test_disagreement_draws_all_pairs(tree_and_stats, lam):
    tree, stats = tree_and_stats
    _, ballot, masses = drawn(tree_and_stats, lam)
    expected = reference.compute_disagreement(tree, masses, stats.counts, stats.label)
    got = inequalities.disagreement(tree, stats, ballot)
    assert got == pytest.approx(expected, abs=1e-9)
    one_wrong = inequalities.one_wrong(tree, stats, ballot)
    if stats.n_classes == 2:
        assert one_wrong == pytest.approx(got, abs=1e-12)
    # Where one of two is right and one wrong they differ.
    assert one_wrong <= got + 1e-12


@given(trees_and_stats(**SMALL).filter(observed), temperatures(10))
def test_moments_are_those_of_one_another(tree_and_stats, lam):
    tree, stats = tree_and_stats
    weights, ballot, _ = drawn(tree_and_stats, lam)
    gibbs = inequalities.tuple_risk(tree, stats, ballot)
    tandem = inequalities.tuple_risk(tree, stats, ballot, 2, 2)
    assert gibbs == pytest.approx(certree.weights.gibbs_risk(stats, weights), abs=1e-12)
    assert inequalities.one_wrong(tree, stats, ballot) == pytest.approx(
        2 * (gibbs - tandem), abs=1e-12
    )
    either = inequalities.tuple_risk(tree, stats, ballot, 2, 1)
    assert either == pytest.approx(2 * gibbs - tandem, abs=1e-12)
    first, second = inequalities.margin_moments(tree, stats, ballot)
    assert first == pytest.approx(1 - 2 * gibbs, abs=1e-12)
    assert second == pytest.approx(1 - 4 * gibbs + 4 * tandem, abs=1e-12)


@given(trees_and_stats(**SMALL), temperatures(10))
def test_wrong_range_is_reached_and_never_passed(tree_and_stats, lam):
    tree, stats = tree_and_stats
    _, ballot, masses = drawn(tree_and_stats, lam)
    least = inequalities.wrong_range(tree, ballot)
    right, wrong = [], []
    for leaf in np.flatnonzero(tree.is_leaf):
        for k in range(stats.n_classes):
            mass = sum(
                float(mass)
                for nodes, mass in masses.items()
                if stats.label[reference.find_pruning_leaf(tree, nodes, leaf)] != k
            )
            (right if ballot.label[leaf] == k else wrong).append(mass)
    assert least.right == pytest.approx(min(right), abs=1e-9)
    assert least.wrong == pytest.approx(min(wrong, default=1.0), abs=1e-9)
    assert least.wrong >= 0.5 - 1e-9


def test_wrong_mass_keeps_what_is_small():
    ballot = Vote([[1e-30, 1 - 1e-16, 1e-25]])
    np.testing.assert_allclose(inequalities.wrong_mass(ballot), [[1, 1e-25 + 1e-30, 1]], rtol=1e-12)


@given(trees_and_stats(), temperatures(10), st.data())
def test_mean_and_variance_are_those_over_all_prunings(tree_and_stats, lam, data):
    tree = tree_and_stats[0]
    value = data.draw(hnp.arrays(float, tree.n_nodes, elements=st.floats(-100, 100)))
    weights, _, masses = drawn(tree_and_stats, lam)
    mean, variance = reference.compute_moments_of_leaf_sum(masses, value)
    assert inequalities.leaf_mean(tree, weights, value) == pytest.approx(mean, abs=1e-8)
    assert inequalities.leaf_variance(tree, weights, value) == pytest.approx(
        variance, rel=1e-8, abs=1e-7
    )
    ones = np.ones(tree.n_nodes)
    leaves = inequalities.leaf_mean(tree, weights, ones)
    assert leaves == pytest.approx(weights.expected_leaves, abs=1e-9)


@given(trees_and_stats(largest=30), st.floats(0.01, 3))
def test_variance_of_the_errors_is_the_slope_of_the_divergence(tree_and_stats, lam):
    """The derivative of KL by the temperature is the temperature times the variance."""
    tree, stats = tree_and_stats
    prior = certree.certificates.branching_prior(tree, stats.n_classes).distributions[0]
    step = 1e-6
    below, posterior, above = (
        certree.certificates.gibbs_posterior(tree, stats, prior, x)
        for x in (lam - step, lam, lam + step)
    )
    rise = inequalities.kl_divergence(tree, above, prior) - inequalities.kl_divergence(
        tree, below, prior
    )
    expected = lam * inequalities.leaf_variance(tree, posterior, stats.errors)
    rest = 1e-6 + stats.n[0] ** 3 * step**2
    assert rise / (2 * step) == pytest.approx(expected, rel=1e-6, abs=rest)


def test_one_pruning_has_no_variance_and_bad_values_are_refused():
    tree = certree.Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1)
    stats = NodeStats([[3, 1], [3, 0], [0, 1]], [0, 0, 1])
    pruning = certree.prunings.cost_complexity(tree, stats, 0.1)
    assert inequalities.leaf_mean(tree, pruning, [5, 2, 4]) == 6
    assert inequalities.leaf_variance(tree, pruning, [5, 2, 4]) == 0
    with pytest.raises(ValueError, match="value must be finite"):
        inequalities.leaf_mean(tree, pruning, [5, 2, np.inf])
    ballot = certree.vote(tree, stats, pruning)
    with pytest.raises(ValueError, match=r"n_wrong must lie in 1 .. 2"):
        inequalities.tuple_risk(tree, stats, ballot, 2, 3)
    with pytest.raises(ValueError, match="stats must count at least one row"):
        inequalities.one_wrong(tree, NodeStats(np.zeros((3, 2)), [0, 0, 0]), ballot)
