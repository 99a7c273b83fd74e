"""Divergences and prior masses against the enumeration of (labelled) prunings."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import certree
import reference
from certree import NodeStats, Tree
from certree.certificates import inequalities
from certree.certificates.inequalities.posterior_moments import log_prior_mass
from certree.certificates.priors import make_independent_decisions
from strategies import temperatures, trees, trees_and_stats

decisions = st.one_of(st.floats(-3, 3), st.floats(-30, 30))
small = {"max_inner": 4, "max_chain": 2}


@st.composite
def posteriors(draw, tree):
    """A law of independent decisions, and its masses by pruning."""
    log_odds = draw(hnp.arrays(float, tree.n_nodes, elements=decisions))
    return make_independent_decisions(tree, log_odds), reference.compute_masses_from_log_odds(
        tree, log_odds
    )


@given(st.data(), trees(**small))
def test_independent_decisions_are_the_law_that_they_say(data, tree):
    posterior, masses = data.draw(posteriors(tree))
    expected = [
        float(sum(p for nodes, p in masses.items() if v in nodes)) for v in range(tree.n_nodes)
    ]
    np.testing.assert_allclose(posterior.weight, expected, rtol=1e-9, atol=1e-300)


@given(st.data(), trees(**small))
def test_kl_is_the_sum_over_prunings(data, tree):
    (posterior, masses), (prior, prior_masses) = (
        data.draw(posteriors(tree)),
        data.draw(posteriors(tree)),
    )
    expected = reference.compute_kl_divergence(masses, prior_masses)
    assert inequalities.kl_divergence(tree, posterior, prior) == pytest.approx(
        expected, rel=1e-9, abs=1e-12
    )
    assert inequalities.kl_divergence(tree, posterior, posterior) == 0


@given(st.data(), trees(**small), st.sampled_from([0.1, 0.5, 0.999, 1.001, 2.0, 5.0]))
def test_renyi_is_the_sum_over_prunings(data, tree, order):
    (posterior, masses), (prior, prior_masses) = (
        data.draw(posteriors(tree)),
        data.draw(posteriors(tree)),
    )
    expected = reference.compute_renyi_divergence(masses, prior_masses, order)
    got = inequalities.renyi_divergence(tree, posterior, prior, order)
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(trees_and_stats(largest=1000), temperatures(100), st.sampled_from(["leaves", "branching"]))
def test_kl_of_a_posterior_is_that_of_its_cells_too(tree_and_stats, lam, prior_name):
    """Posterior and prior stop alike inside chains, so that expanding them changes nothing."""
    tree, stats = tree_and_stats
    posterior, prior = (certree.pac_bayes(tree, stats, x, 0.0, prior_name) for x in (lam, 0.0))
    every, masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.errors, lam, 0.0, prior_name
    )
    _, prior_masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.errors, 0.0, 0.0, prior_name
    )
    by_cell = [dict(zip(every, side, strict=True)) for side in (masses, prior_masses)]
    by_node = [reference.group_by_nodes(every, side) for side in (masses, prior_masses)]
    got = inequalities.kl_divergence(tree, posterior, prior)
    assert got == pytest.approx(reference.compute_kl_divergence(*by_cell), rel=1e-9, abs=1e-10)
    assert got == pytest.approx(reference.compute_kl_divergence(*by_node), rel=1e-9, abs=1e-10)


@given(trees_and_stats(), temperatures())
def test_kl_of_one_pruning_is_its_log_mass(tree_and_stats, alpha):
    tree, stats = tree_and_stats
    pruning = certree.prunings.cost_complexity(tree, stats, alpha)
    prior = certree.certificates.branching_prior(tree, stats.n_classes).distributions[0]
    nodes = tuple(np.flatnonzero(pruning.weight))
    mass = reference.group_by_nodes(
        *reference.compute_pac_bayes_posterior(tree, stats.n, stats.errors, 0, 0, "branching")[:2]
    )
    got = inequalities.kl_divergence(tree, pruning, prior)
    assert got == pytest.approx(-math.log(float(mass[nodes])), rel=1e-12, abs=1e-12)


def test_what_the_prior_forbids_is_infinitely_far():
    tree = Tree([0, 0, 0, 0, 0], [0.0] * 5, [1, 3, -1, -1, -1], [1] * 5, 1)
    full = make_independent_decisions(tree, np.full(5, np.inf))
    stump = make_independent_decisions(tree, np.array([np.inf, -np.inf, 0, 0, 0]))
    root = make_independent_decisions(tree, np.full(5, -np.inf))
    half = make_independent_decisions(tree, np.zeros(5))
    for one, other in ((full, stump), (stump, full), (root, full), (half, full)):
        assert inequalities.kl_divergence(tree, one, other) == np.inf
        assert inequalities.renyi_divergence(tree, one, other, 2) == np.inf
    # Below the root, which the law never splits, the two may decide as they like.
    assert inequalities.kl_divergence(tree, root, root) == 0
    elsewhere = make_independent_decisions(tree, np.array([-np.inf, np.inf, 0, 0, 0]))
    assert inequalities.kl_divergence(tree, elsewhere, root) == 0
    for order in (0.5, 2):
        assert inequalities.renyi_divergence(tree, elsewhere, root, order) == 0
        assert inequalities.renyi_divergence(tree, full, half, order) == pytest.approx(
            2 * np.log(2)
        )
    assert inequalities.renyi_divergence(tree, root, full, 0.5) == np.inf
    for order in (0, 1, -1, np.inf):
        with pytest.raises(ValueError, match="order must be positive"):
            inequalities.renyi_divergence(tree, full, full, order)


def test_divergence_of_far_laws_does_not_cancel():
    tree = Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1)
    stats = NodeStats([[10**9, 10**9], [10**9, 0], [0, 10**9]], [0, 0, 1])
    prior = certree.certificates.branching_prior(tree, 2).distributions[0]
    for lam in (1.0, 1e3, 1e6):
        posterior = certree.certificates.gibbs_posterior(tree, stats, prior, lam)
        assert inequalities.kl_divergence(tree, posterior, prior) == pytest.approx(
            np.log(2), rel=1e-14
        )


@st.composite
def label_priors(draw, tree, n_labels):
    raw = draw(hnp.arrays(float, (tree.n_nodes, n_labels), elements=st.floats(0.01, 1)))
    return raw / raw.sum(axis=1, keepdims=True)


@given(st.data(), trees(max_inner=3, max_chain=2), st.integers(1, 3))
def test_prior_mass_of_a_labelling_is_the_sum_over_labelled_prunings(data, tree, n_labels):
    prior, masses = data.draw(posteriors(tree))
    label_prior = data.draw(label_priors(tree, n_labels))
    label = data.draw(hnp.arrays(np.int32, tree.n_nodes, elements=st.integers(0, n_labels - 1)))
    got = log_prior_mass(tree, prior, np.log(label_prior), label)
    expected = reference.compute_mass_of_labelling(tree, masses, label_prior, label)
    assert got == pytest.approx(math.log(expected), rel=1e-9, abs=1e-9)


@given(st.data(), trees(max_inner=2), st.integers(1, 3))
def test_masses_of_all_labellings_sum_to_one(data, tree, n_labels):
    prior, _ = data.draw(posteriors(tree))
    log_label = np.log(data.draw(label_priors(tree, n_labels)))
    label, total = np.zeros(tree.n_nodes, dtype=np.int32), 0.0
    leaves = np.flatnonzero(tree.is_leaf)
    for labels in reference.product(range(n_labels), repeat=len(leaves)):
        label[leaves] = labels
        total += math.exp(log_prior_mass(tree, prior, log_label, label))
    assert total == pytest.approx(1, abs=1e-9)


def test_a_labelling_that_no_label_prior_allows_has_no_mass():
    tree = Tree([0], [0.0], [-1], [1], 1)
    prior = make_independent_decisions(tree, np.zeros(1))
    assert log_prior_mass(tree, prior, [[0.0, -np.inf]], [1]) == -np.inf
    assert log_prior_mass(tree, prior, [[0.0, -np.inf]], [0]) == 0
    with pytest.raises(ValueError, match=r"label must lie in 0 .. 1"):
        log_prior_mass(tree, prior, [[0.0, -np.inf]], [2])
