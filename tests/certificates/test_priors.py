"""Priors and their posteriors against the enumeration of all (labelled) prunings."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import certree
import reference
from certree import NodeStats, Tree
from certree.certificates import Prior, inequalities
from strategies import temperatures, trees, trees_and_stats

STUMP = Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1)
GROWN = NodeStats([[6, 4], [6, 0], [0, 4]], [0, 0, 1])


def masses_of(tree, posterior):
    return reference.compute_masses_from_log_odds(tree, np.clip(posterior.log_odds, -1e3, 1e3))


@given(trees(max_chain=3), st.floats(0.05, 0.95))
def test_branching_prior_is_that_of_pac_bayes(tree, stop):
    prior = certree.certificates.branching_prior(tree, 2, stop).distributions[0]
    stats = NodeStats(np.zeros((tree.n_nodes, 2)), np.zeros(tree.n_nodes, int))
    same = certree.pac_bayes(tree, stats, 0, 0, "branching", stop)
    np.testing.assert_allclose(prior.weight, same.weight, rtol=1e-12)
    np.testing.assert_allclose(prior.chain_entropy, same.chain_entropy)


@given(trees(max_inner=5), st.floats(-1, 3))
def test_size_prior_weighs_prunings_by_their_leaves(tree, leaf_cost):
    masses = masses_of(tree, certree.certificates.size_prior(tree, 3, leaf_cost).distributions[0])
    total = sum(math.exp(-leaf_cost * len(nodes)) for nodes in masses)
    for nodes, mass in masses.items():
        expected = math.exp(-leaf_cost * len(nodes)) / total
        assert float(mass) == pytest.approx(expected, rel=1e-9)


@given(trees_and_stats(labels=("majority",)), st.floats(0.1, 100))
def test_count_prior_stops_as_it_says(tree_and_stats, rows):
    tree, grown = tree_and_stats
    posterior = certree.certificates.count_prior(tree, grown, rows).distributions[0]
    stop = np.where(tree.is_leaf, 1.0, rows / (rows + grown.n))
    np.testing.assert_allclose(1 / (1 + np.exp(posterior.log_odds)), stop, rtol=1e-9)


@given(trees_and_stats(labels=("majority",)), temperatures(10), st.sampled_from([0.001, 0.1, 0.5]))
def test_centred_prior_pays_little_for_its_pruning(tree_and_stats, alpha, doubt):
    tree, grown = tree_and_stats
    pruning = certree.prunings.cost_complexity(tree, grown, alpha)
    prior = certree.certificates.centred_prior(tree, grown, pruning, doubt)
    split = (certree.weights.reached(tree, pruning) > 0) & (pruning.weight == 0)
    stopped = (pruning.weight > 0) & ~tree.is_leaf
    expected = (split.sum() + stopped.sum()) * np.log1p(-doubt)
    assert prior.log_mass_of_pruning(pruning) == pytest.approx(expected, abs=1e-9)
    below = (certree.weights.reached(tree, pruning) == 0) & ~tree.is_leaf
    np.testing.assert_allclose(1 / (1 + np.exp(prior.distributions[0].log_odds[below])), 0.6)
    # Its own labels are nearly free, too.
    label = certree.vote(tree, grown, pruning).label
    smallest = expected + (pruning.weight > 0).sum() * np.log1p(-doubt)
    assert prior.log_mass(label) >= smallest - 1e-9
    posterior = reference.compute_masses_from_log_odds(tree, prior.distributions[0].log_odds)
    assert float(posterior[tuple(np.flatnonzero(pruning.weight))]) == pytest.approx(
        math.exp(expected)
    )


@given(trees_and_stats(labels=("majority",), max_inner=3), st.floats(0.1, 1))
def test_labels_are_trusted(tree_and_stats, trust):
    tree, grown = tree_and_stats
    prior = certree.certificates.trust_labels(
        certree.certificates.branching_prior(tree, grown.n_classes), grown, trust
    )
    label = np.exp(prior.log_label[0])
    np.testing.assert_allclose(label.sum(axis=1), 1)
    spread = reference.smooth_frequencies(tree, grown.counts, 1.0)
    own = trust * np.eye(grown.n_classes)[grown.label]
    np.testing.assert_allclose(label, own + (1 - trust) * spread, atol=1e-12)


@given(trees_and_stats(labels=("majority",), max_inner=3, max_chain=2, n_classes=2), st.data())
def test_a_mixture_mixes_masses(tree_and_stats, data):
    tree, grown = tree_and_stats
    pruning = certree.prunings.cost_complexity(tree, grown, 1.0)
    mixed = certree.certificates.mix_priors(
        certree.certificates.branching_prior(tree, 2),
        certree.certificates.doubted_prior(tree, grown, pruning, (0.1, 0.01)),
        certree.certificates.count_prior(tree, grown),
    )
    shares = [1 / 3, 1 / 6, 1 / 6, 1 / 3]
    np.testing.assert_allclose(np.exp(mixed.log_share), shares)
    label = data.draw(hnp.arrays(np.int32, tree.n_nodes, elements=st.integers(0, 1)))
    expected, of_pruning = 0.0, 0.0
    nodes = tuple(np.flatnonzero(pruning.weight))
    for share, posterior, labels in zip(shares, mixed.distributions, mixed.log_label, strict=True):
        masses = masses_of(tree, posterior)
        expected += share * reference.compute_mass_of_labelling(tree, masses, np.exp(labels), label)
        of_pruning += share * float(masses[nodes])
    assert mixed.log_mass(label) == pytest.approx(math.log(expected), rel=1e-9, abs=1e-9)
    assert mixed.log_mass_of_pruning(pruning) == pytest.approx(math.log(of_pruning), rel=1e-9)
    parts = [part.divergence(pruning) for part in mixed.components]
    assert mixed.divergence(pruning) == min(np.array(parts) - np.log(shares))
    assert mixed.divergence(pruning) >= -mixed.log_mass_of_pruning(pruning) - 1e-9


@given(
    trees_and_stats(labels=("majority",), max_inner=3, n_classes=2),
    st.floats(0.01, 0.99),
    st.integers(1, 3),
    st.data(),
)
def test_proposals_have_a_share_of_all_labellings(tree_and_stats, share, n_proposed, data):
    """Every labelling of the leaves keeps its part of the rest, and all masses sum to at most 1."""
    tree, grown = tree_and_stats
    rest = certree.certificates.count_prior(tree, grown)
    labels = hnp.arrays(np.int32, tree.n_nodes, elements=st.integers(0, 1))
    proposed = [data.draw(labels) for _ in range(n_proposed)]
    prior = certree.certificates.add_candidate_labels(rest, grown, proposed, share)
    leaves, total = np.flatnonzero(tree.is_leaf), 0.0
    for named in product([0, 1], repeat=len(leaves)):
        label = np.zeros(tree.n_nodes, dtype=np.int32)
        label[leaves] = named
        times = sum(tuple(one[leaves]) == named for one in proposed)
        expected = share * times / n_proposed + (1 - share) * math.exp(rest.log_mass(label))
        assert math.exp(prior.log_mass(label)) == pytest.approx(expected, rel=1e-9)
        total += expected
    assert total <= 1 + 1e-9
    # Mixtures and further proposals keep what was proposed, with less of the whole.
    label = proposed[0]
    both = certree.certificates.mix_priors(prior, rest)
    mean = (math.exp(prior.log_mass(label)) + math.exp(rest.log_mass(label))) / 2
    assert math.exp(both.log_mass(label)) == pytest.approx(mean, rel=1e-9)
    again = certree.certificates.add_candidate_labels(prior, grown, [label], 0.5)
    half = 0.5 + math.exp(prior.log_mass(label)) / 2
    assert math.exp(again.log_mass(label)) == pytest.approx(half, rel=1e-9)
    assert (
        certree.certificates.trust_labels(prior, grown).candidate_labels == prior.candidate_labels
    )


@given(trees_and_stats(labels=("majority",), max_inner=3, max_chain=2, n_classes=2), st.data())
def test_abstention_is_one_more_label(tree_and_stats, data):
    tree, grown = tree_and_stats
    prior = certree.certificates.allow_abstention(
        certree.certificates.count_prior(tree, grown), 0.2
    )
    assert prior.n_labels == 3
    np.testing.assert_allclose(np.exp(prior.log_label).sum(axis=2), 1)
    np.testing.assert_allclose(np.exp(prior.log_label[:, :, 2]), 0.2)
    label = data.draw(hnp.arrays(np.int32, tree.n_nodes, elements=st.integers(0, 2)))
    masses = masses_of(tree, prior.distributions[0])
    expected = reference.compute_mass_of_labelling(tree, masses, np.exp(prior.log_label[0]), label)
    assert math.exp(prior.log_mass(label)) == pytest.approx(expected, rel=1e-9, abs=1e-100)


@given(trees_and_stats(labels=("majority",)), temperatures(), temperatures())
def test_the_posterior_of_the_branching_prior_is_pac_bayes(tree_and_stats, lam, penalty):
    tree, stats = tree_and_stats
    prior = certree.certificates.branching_prior(tree, stats.n_classes).distributions[0]
    posterior = certree.certificates.gibbs_posterior(tree, stats, prior, lam, penalty)
    same = certree.pac_bayes(tree, stats, lam, penalty, "branching")
    np.testing.assert_allclose(posterior.weight, same.weight, atol=1e-10)
    assert inequalities.kl_divergence(tree, posterior, same) == pytest.approx(0, abs=1e-8)


@given(trees_and_stats(largest=30), temperatures(10), st.data())
def test_posterior_weighs_the_prior_by_errors(tree_and_stats, lam, data):
    tree, stats = tree_and_stats
    log_odds = data.draw(hnp.arrays(float, tree.n_nodes, elements=st.floats(-5, 5)))
    prior = certree.certificates.priors.make_independent_decisions(tree, log_odds)
    posterior = certree.certificates.gibbs_posterior(tree, stats, prior, lam)
    with reference.localcontext() as context:
        context.prec = reference.DIGITS
        weighed = {
            nodes: mass * (-reference.Decimal(lam) * sum(int(stats.errors[v]) for v in nodes)).exp()
            for nodes, mass in reference.compute_masses_from_log_odds(tree, log_odds).items()
        }
        total = sum(weighed.values())
        expected = [
            float(sum(mass for nodes, mass in weighed.items() if v in nodes) / total)
            for v in range(tree.n_nodes)
        ]
        log_total = float(total.ln())
    np.testing.assert_allclose(posterior.weight, expected, atol=1e-9)
    assert posterior.log_evidence == pytest.approx(log_total, rel=1e-9, abs=1e-9)


def test_a_prior_knows_what_it_has_seen():
    other = NodeStats(GROWN.counts, GROWN.label)
    assert certree.certificates.branching_prior(STUMP, 2).seen is None
    count, again = (
        certree.certificates.count_prior(STUMP, GROWN),
        certree.certificates.count_prior(STUMP, other),
    )
    assert count.seen is GROWN
    assert (
        certree.certificates.mix_priors(certree.certificates.branching_prior(STUMP, 2), count).seen
        is GROWN
    )
    with pytest.raises(ValueError, match="made from the same statistics of the training rows"):
        certree.certificates.mix_priors(count, again)
    with pytest.raises(ValueError, match="made from the same statistics of the training rows"):
        certree.certificates.trust_labels(count, other)
    twin = Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1)
    with pytest.raises(ValueError, match="priors must all be over prunings of the same tree"):
        certree.certificates.mix_priors(count, certree.certificates.branching_prior(twin, 2))


def test_logs_whose_sums_exceed_float64_count_as_probability_0():
    posterior = certree.certificates.branching_prior(STUMP, 2).distributions[0]
    labels = np.log(np.full((1, 3, 2), 0.5))
    expected, found = labels.copy(), labels.copy()
    expected[0, :, 1], found[0, :, 1] = -np.inf, -1.5e308
    stats = certree.NodeStats([[2, 5], [2, 1], [0, 4]], [1, 0, 1])
    answers = []
    for logs in (expected, found):
        prior = Prior(STUMP, (posterior,), logs, np.zeros(1))
        answers.append(certree.certificates.labelled_posterior(STUMP, stats, prior, 0.5))
    np.testing.assert_array_equal(answers[1].share, answers[0].share)
    np.testing.assert_array_equal(answers[1].weights.weight, answers[0].weights.weight)
    found[0] = -1.5e308
    prior = Prior(STUMP, (posterior,), found, np.zeros(1))
    with pytest.raises(ValueError, match="prior must give every node a label"):
        certree.certificates.labelled_posterior(STUMP, stats, prior, 0.5)


def test_bad_priors_are_refused():
    posterior = certree.certificates.branching_prior(STUMP, 2).distributions[0]
    labels = np.log(np.full((1, 3, 2), 0.6))
    with pytest.raises(ValueError, match="log_label must hold logs of probabilities"):
        Prior(STUMP, (posterior,), labels, np.zeros(1))
    with pytest.raises(ValueError, match="log_share must hold logs of probabilities"):
        Prior(STUMP, (posterior, posterior), np.log(np.full((2, 3, 2), 0.5)), np.zeros(2))
    with pytest.raises(ValueError, match="log_label must have shape"):
        Prior(STUMP, (posterior,), np.log(np.full((1, 2, 2), 0.5)), np.zeros(1))
    pruning = certree.prunings.cost_complexity(STUMP, GROWN, 1.0)
    for doubt in (0, 1):
        with pytest.raises(ValueError, match="doubt must lie between 0 and 1"):
            certree.certificates.centred_prior(STUMP, GROWN, pruning, doubt)
    with pytest.raises(ValueError, match="pruning must have weights 0 and 1"):
        certree.certificates.centred_prior(STUMP, GROWN, posterior)
    with pytest.raises(ValueError, match="rows must be a finite number > 0"):
        certree.certificates.count_prior(STUMP, GROWN, 0)
    with pytest.raises(ValueError, match="leaf_cost must be finite"):
        certree.certificates.size_prior(STUMP, 2, np.inf)
    with pytest.raises(ValueError, match=r"trust must lie in \(0, 1\]"):
        certree.certificates.trust_labels(certree.certificates.branching_prior(STUMP, 2), GROWN, 0)
    with pytest.raises(ValueError, match="share must lie between 0 and 1"):
        certree.certificates.allow_abstention(certree.certificates.branching_prior(STUMP, 2), 1)


def test_bad_proposals_are_refused():
    posterior = certree.certificates.branching_prior(STUMP, 2)
    for labels, share, message in (
        (np.zeros((0, 3), dtype=int), 0.5, "at least one labelling, got none"),
        ([[0, 1]], 0.5, r"labels must have shape"),
        (0, 0.5, r"labels must have shape"),
        ([[0, 1, 2]], 0.5, r"labels must lie in 0 .. 1"),
        ([[0, 1, 0]], 1.0, "share must lie between 0 and 1, got 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            certree.certificates.add_candidate_labels(posterior, GROWN, labels, share)
    proposal = certree.certificates.priors.CandidateLabels(np.zeros(3, dtype=np.int32), np.log(0.5))
    with pytest.raises(ValueError, match="candidate_labels must have probabilities that sum"):
        replace(posterior, candidate_labels=(proposal,))
