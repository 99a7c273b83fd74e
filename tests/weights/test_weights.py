"""Posteriors over prunings, compared with the enumeration of all prunings."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import certree
import reference
from certree import NodeStats, Tree, Voting, vote, weights
from certree.certificates.inequalities import kl_divergence
from certree.tree import Trees
from certree.weights import node_weights
from certree.weights.pac_bayes_posteriors import pac_bayes_family
from strategies import temperatures, trees, trees_and_stats

EPS = np.finfo(float).eps


def assert_equals(weights, tree, expected, atol=1e-10):
    prunings, masses, log_evidence = expected
    np.testing.assert_allclose(
        weights.weight, reference.compute_leaf_weights(tree, prunings, masses), atol=atol
    )
    assert weights.log_evidence == pytest.approx(float(log_evidence), rel=1e-12, abs=10 * atol)


def flat_tree(chain=(1, 1, 1)):
    return Tree([0, 0, 0], [0.0, 0, 0], [1, -1, -1], list(chain), 1)


# Splitting node 0 costs 10^15 nats of errors, and splitting node 1 saves as many. A sum of absolute
# log weights loses the nat that decides.
CANCELLING = (
    Tree([0, 0, 0, 0, 0], [0.0] * 5, [1, 3, -1, -1, -1], [1] * 5, 1),
    NodeStats(
        np.array([[10**9, 0], [10**9, 0], [0, 0], [10**9, 0], [0, 0]]), np.array([0, 1, 0, 0, 0])
    ),
)


# The root alone misclassifies all rows, and the split none: the evidence is of order 1.
WRONG_ROOT = (
    CANCELLING[0],
    NodeStats(
        np.array([[67108862, 0], [0, 0], [67108862, 0], [0, 0], [0, 0]]), np.array([1, 0, 0, 0, 0])
    ),
)


@given(trees_and_stats(), temperatures(), temperatures(), st.sampled_from(["leaves", "branching"]))
@example(CANCELLING, 1e6, 0.0, "leaves")
@example(CANCELLING, 0.1, 0.0, "leaves")
@example(WRONG_ROOT, 0.25, 0.0, "leaves")
def test_pac_bayes_is_the_average_over_all_prunings(tree_and_stats, lam1, lam2, prior):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam1, lam2, prior=prior)
    assert_equals(
        weights,
        tree,
        reference.compute_pac_bayes_posterior(tree, stats.n, stats.errors, lam1, lam2, prior),
    )


@given(trees_and_stats(), temperatures(), st.floats(0.01, 0.99))
def test_branching_prior_with_any_stop_probability(tree_and_stats, lam1, stop):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam1, 0.5, prior="branching", stop_probability=stop)
    expected = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.errors, lam1, 0.5, "branching", stop
    )
    assert_equals(weights, tree, expected)


@given(trees(), st.floats(0.01, 0.99))
def test_branching_prior_is_proper(tree, stop):
    stats = NodeStats(np.zeros((tree.n_nodes, 2)), np.zeros(tree.n_nodes, int))
    weights = certree.pac_bayes(tree, stats, 3.0, 1.0, prior="branching", stop_probability=stop)
    assert weights.log_evidence == pytest.approx(0, abs=1e-12)


@given(trees_and_stats(largest=1000), st.floats(0.01, 1.99), st.floats(0.001, 0.999))
def test_theorem_posterior_is_the_average_over_all_prunings(tree_and_stats, lam, delta):
    tree, stats = tree_and_stats
    weights = certree.weights.theorem_posterior(tree, stats, lam, delta)
    assert_equals(
        weights, tree, reference.compute_theorem_posterior(tree, stats.n, stats.errors, lam, delta)
    )


@given(trees_and_stats(n_classes=2), temperatures(100))
def test_helmbold_schapire_is_the_average_over_all_prunings(tree_and_stats, inverse_temperature):
    tree, stats = tree_and_stats
    weights = certree.weights.helmbold_schapire(tree, stats, inverse_temperature)
    expected = reference.compute_helmbold_schapire_posterior(
        tree, stats.counts, inverse_temperature
    )
    # This loss is not an integer, so its products have rounding errors.
    assert_equals(
        weights, tree, expected, atol=1e-10 + 16 * EPS * inverse_temperature * stats.n.max()
    )


@given(st.data(), trees())
def test_average_takes_any_log_weights(data, tree):
    elements = st.one_of(st.floats(-1e4, 1e4), st.floats(-3, 3))
    log_own = data.draw(hnp.arrays(float, tree.n_nodes, elements=elements))
    split = data.draw(hnp.arrays(float, tree.n_nodes, elements=st.floats(-5, 5)))
    expected = reference.average_prunings(tree, log_own, split)
    assert_equals(
        certree.weights.average(tree, log_own, split),
        tree,
        expected,
        1e-10 + 16 * EPS * abs(log_own).max(),
    )


@given(trees(), st.floats(-4, 4))
def test_average_takes_one_split_weight_for_all_nodes(tree, split):
    log_own = np.linspace(-1, 1, tree.n_nodes)
    assert_equals(
        certree.weights.average(tree, log_own, split),
        tree,
        reference.average_prunings(tree, log_own, np.full(tree.n_nodes, split)),
    )


@given(trees(max_inner=4), st.data())
def test_minus_infinity_forbids_a_leaf(tree, data):
    log_own = np.linspace(-1, 1, tree.n_nodes)
    inner = np.flatnonzero(~tree.is_leaf)
    forbidden = [v for v in inner if data.draw(st.booleans())]
    log_own[forbidden] = -np.inf
    finite = np.where(np.isinf(log_own), -1e6, log_own)
    weights = certree.weights.average(tree, log_own)
    assert_equals(weights, tree, reference.average_prunings(tree, finite, np.zeros(tree.n_nodes)))
    assert (weights.weight[forbidden] == 0).all()


def test_forbidding_a_leaf_of_the_tree_forbids_splits_above_it():
    weights = certree.weights.average(flat_tree(), [0.0, -np.inf, 0.0])
    np.testing.assert_array_equal(weights.weight, [1, 0, 0])


def test_forbidding_every_pruning_is_an_error():
    with pytest.raises(ValueError, match="log_own must be finite at all leaves"):
        certree.weights.average(flat_tree(), [-np.inf, -np.inf, 0.0])


@given(trees_and_stats(), temperatures(), temperatures())
def test_weights_sum_to_one_along_every_path(tree_and_stats, lam1, lam2):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam1, lam2)
    for leaf in np.flatnonzero(tree.is_leaf):
        total = weights.weight[reference.find_path(tree, leaf)].sum()
        assert total == pytest.approx(1, abs=1e-12)


@given(trees_and_stats())
def test_zero_temperatures_give_the_prior(tree_and_stats):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, 0, 0)
    expected = reference.average_prunings(
        tree, -(stats.n > 0).astype(float), np.zeros(tree.n_nodes)
    )
    assert_equals(weights, tree, expected)


def test_one_node_tree():
    tree = Tree([0], [0.0], [-1], [1], 1)
    stats = NodeStats([[3, 2]], [0])
    weights = certree.pac_bayes(tree, stats, 0.5, 0.1)
    assert weights.weight == [1]
    assert weights.log_evidence == pytest.approx(-0.5 * 2 - 0.1 * 5**0.5 - 1)
    assert certree.weights.entropy(tree, weights) == 0


def test_extreme_error_weight_gives_the_full_tree():
    tree = flat_tree()
    stats = NodeStats([[5, 5], [5, 0], [0, 5]], [0, 0, 1])
    np.testing.assert_array_equal(certree.pac_bayes(tree, stats, 1e6, 0).weight, [0, 1, 1])


@given(trees_and_stats(largest=100), temperatures(10), st.sampled_from(["leaves", "branching"]))
def test_entropy_map_gibbs_and_leaves_match_enumeration(tree_and_stats, lam, prior):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam, 0.3, prior=prior)
    prunings, masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.errors, lam, 0.3, prior
    )
    masses = [float(mass) for mass in masses]
    assert certree.weights.entropy(tree, weights) == pytest.approx(
        reference.compute_entropy(masses), abs=1e-9
    )
    leaves = sum(mass * len(pruning) for pruning, mass in zip(prunings, masses, strict=True))
    assert weights.expected_leaves == pytest.approx(leaves)
    if stats.n[0] > 0:
        risks = [sum(stats.errors[v] for v, _ in pruning) / stats.n[0] for pruning in prunings]
        assert certree.weights.gibbs_risk(stats, weights) == pytest.approx(np.dot(masses, risks))
    chosen = frozenset(np.flatnonzero(certree.weights.map_pruning(tree, weights).weight))
    by_nodes = {}
    for pruning, mass in zip(prunings, masses, strict=True):
        nodes = frozenset(v for v, _ in pruning)
        by_nodes[nodes] = max(mass, by_nodes.get(nodes, 0))
    assert by_nodes[chosen] == pytest.approx(max(masses), rel=1e-9)


def test_map_pruning_takes_the_smaller_tree_on_ties():
    tree = flat_tree()
    weights = certree.weights.average(tree, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(certree.weights.map_pruning(tree, weights).weight, [1, 0, 0])


def test_map_pruning_counts_each_region_of_a_chain_as_one_pruning():
    # Stopping in the chain of 3 has odds 3 : 2 in total, but each single region has less than 2.
    tree = flat_tree(chain=(3, 1, 1))
    weights = certree.weights.average(tree, [0.0, np.log(2) / 2, np.log(2) / 2])
    assert weights.weight[0] == pytest.approx(3 / 5)
    np.testing.assert_array_equal(certree.weights.map_pruning(tree, weights).weight, [0, 1, 1])


def test_map_pruning_when_the_weight_of_the_root_underflows():
    # 2^1024 prunings or so, all equally likely: the smallest one is the root alone.
    depth = 11
    inner = 2**depth - 1
    left = np.r_[1 + 2 * np.arange(inner), np.full(inner + 1, -1)]
    m = 2 * inner + 1
    tree = Tree(np.zeros(m, int), np.zeros(m), left, np.ones(m, int), 1)
    weights = certree.weights.average(tree, np.zeros(m))
    assert weights.weight[0] == 0
    assert certree.weights.map_pruning(tree, weights).weight[0] == 1


@pytest.mark.parametrize("prior", ["leaves", "branching"])
def test_sampled_prunings_follow_the_posterior(prior):
    tree = Tree([0] * 7, [0.0] * 7, [1, 3, 5, -1, -1, -1, -1], [2, 1, 1, 1, 1, 1, 1], 1)
    counts = np.array([[9, 7], [6, 2], [3, 5], [4, 0], [2, 2], [3, 1], [0, 4]])
    stats = NodeStats(counts, counts.argmax(axis=1))
    weights = certree.pac_bayes(tree, stats, 0.4, 0.2, prior=prior)
    rng = np.random.default_rng(7)
    n = 4000
    frequency = sum(certree.weights.sample_pruning(tree, weights, rng).weight for _ in range(n)) / n
    # Five standard errors of a frequency.
    np.testing.assert_allclose(frequency, weights.weight, atol=5 * 0.5 / n**0.5)


def test_equal_seeds_sample_equal_prunings():
    tree = flat_tree()
    weights = certree.weights.average(tree, [0.0, 0.0, 0.0])
    draws = [certree.weights.sample_pruning(tree, weights, seed).weight[0] for seed in range(20)]
    again = [certree.weights.sample_pruning(tree, weights, seed).weight[0] for seed in range(20)]
    assert draws == again
    assert 0 < sum(draws) < 20


@given(trees_and_stats(), temperatures(10))
def test_reached_is_the_probability_of_being_at_or_above_the_leaves(tree_and_stats, lam):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, lam, 0.1)
    prunings, masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.errors, lam, 0.1
    )
    expected = np.zeros(tree.n_nodes)
    for pruning, mass in zip(prunings, masses, strict=True):
        nodes = {u for v, _ in pruning for u in reference.find_path(tree, v)}
        expected[list(nodes)] += float(mass)
    np.testing.assert_allclose(certree.weights.reached(tree, weights), expected, atol=1e-10)


@pytest.mark.parametrize("value", [-1, np.nan, np.inf])
def test_bad_temperatures_are_refused(value):
    tree, stats = flat_tree(), NodeStats([[5, 5], [5, 0], [0, 5]], [0, 0, 1])
    with pytest.raises(ValueError, match="lambda_error must be a finite number >= 0"):
        certree.pac_bayes(tree, stats, value, 1)
    with pytest.raises(ValueError, match="lambda_penalty must be a finite number >= 0"):
        certree.pac_bayes(tree, stats, 1, value)
    with pytest.raises(ValueError, match="inverse_temperature must be a finite number >= 0"):
        certree.weights.helmbold_schapire(tree, stats, value)


def test_bad_arguments_of_posteriors_are_refused():
    tree, stats = flat_tree(), NodeStats([[5, 5], [5, 0], [0, 5]], [0, 0, 1])
    with pytest.raises(ValueError, match='prior must be "leaves" or "branching"'):
        certree.pac_bayes(tree, stats, 1, 1, prior="uniform")
    with pytest.raises(ValueError, match="stop_probability must lie between 0 and 1"):
        certree.pac_bayes(tree, stats, 1, 1, prior="branching", stop_probability=1)
    for lam in (0, 2):
        with pytest.raises(ValueError, match="lambda_error must lie between 0 and 2"):
            certree.weights.theorem_posterior(tree, stats, lam, 0.05)
    for delta in (0, 1):
        with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
            certree.weights.theorem_posterior(tree, stats, 1, delta)
    with pytest.raises(ValueError, match=r"must have 2 classes for .*, got 3"):
        certree.weights.helmbold_schapire(tree, NodeStats(np.ones((3, 3)), [0, 0, 0]), 1)
    with pytest.raises(ValueError, match="stats has 1 nodes, but the tree has 3"):
        certree.pac_bayes(tree, NodeStats([[1, 1]], [0]), 1, 1)
    with pytest.raises(ValueError, match="log_own must be finite or -inf"):
        certree.weights.average(tree, [0, np.nan, 0])
    with pytest.raises(ValueError, match="log_split must be finite or -inf"):
        certree.weights.average(tree, [0, 0, 0], np.inf)
    with pytest.raises(TypeError, match="log_own must convert to float64 without loss"):
        certree.weights.average(tree, np.zeros(3, dtype=np.float16))
    with pytest.raises(ValueError, match=r"log_own must have shape \(3\)"):
        certree.weights.average(tree, np.zeros(2))


@given(trees_and_stats(), st.lists(st.floats(0, 50), min_size=1, max_size=4), st.integers(0, 99))
def test_a_mixture_has_the_average_of_the_weights(tree_and_stats, temperatures, seed):
    tree, stats = tree_and_stats
    mixture = np.random.default_rng(seed).dirichlet(np.ones(len(temperatures)))
    family = pac_bayes_family(tree, stats, "branching")
    posteriors = [family.solve(value, 0.5) for value in temperatures]
    mixed = node_weights.mix_posteriors(tree, posteriors, mixture)
    expected = sum(w * posterior.weight for w, posterior in zip(mixture, posteriors, strict=True))
    np.testing.assert_allclose(mixed.weight, expected, rtol=1e-12, atol=1e-300)
    # The odds of its splits give the same weights.
    stop = 1 / (1 + np.exp(np.minimum(mixed.log_odds, 700)))
    np.testing.assert_allclose(
        certree.weights.reached(tree, mixed) * stop, expected, rtol=1e-9, atol=1e-15
    )
    assert (mixed.log_odds[tree.is_leaf] == -np.inf).all()


@given(trees_and_stats(), st.floats(0.1, 10), st.floats(0, 1))
def test_a_mixture_of_priors_never_claims_more_entropy_in_a_chain_than_it_has(
    tree_and_stats, inverse_temperature, share
):
    tree, stats = tree_and_stats
    posteriors = [
        pac_bayes_family(tree, stats, prior).solve(inverse_temperature, 0.0)
        for prior in ("leaves", "branching")
    ]
    mixed = node_weights.mix_posteriors(tree, posteriors, np.array([share, 1 - share]))
    for node in range(tree.n_nodes):
        masses = np.array([share, 1 - share]) * [p.weight[node] for p in posteriors]
        if masses.sum() < 1e-12:
            continue
        k = int(tree.chain[node])
        halves = 0.5 ** np.arange(1, k + 1)
        if tree.is_leaf[node]:
            halves[-1] *= 2
        regions = masses / masses.sum() @ [np.full(k, 1 / k), halves / halves.sum()]
        assert mixed.chain_entropy[node] <= -(regions * np.log(regions)).sum() + 1e-9
        assert mixed.chain_mode[node] >= np.log(regions.max()) - 1e-9


@given(trees_and_stats(), temperatures(), temperatures())
def test_leaves_may_have_log_loss(tree_and_stats, lam1, lam2):
    tree, stats = tree_and_stats
    nats = reference.compute_log_losses(stats.counts)
    for prior in ("leaves", "branching"):
        weights = certree.pac_bayes(tree, stats, lam1, lam2, prior, loss="log_loss")
        expected = reference.compute_pac_bayes_posterior(
            tree, stats.n, nats, lam1, lam2, prior, 0.5
        )
        assert_equals(
            weights, tree, expected, atol=1e-10 + 16 * EPS * (lam1 + lam2) * stats.n.max() * 8
        )


def test_numbers_have_no_log_loss():
    tree = flat_tree()
    moments = certree.TargetStats(np.ones(3), np.zeros(3), np.zeros(3))
    with pytest.raises(
        ValueError, match='loss must be "error" for a numeric target, got "log_loss"'
    ):
        certree.pac_bayes(tree, moments, 1.0, 0.0, loss="log_loss")


@given(
    st.lists(trees_and_stats(n_classes=3), min_size=1, max_size=4),
    temperatures(10.0),
    temperatures(10.0),
)
def test_posteriors_of_many_trees_are_those_of_each(cases, lam1, lam2):
    stats = NodeStats(
        np.concatenate([stats.counts for _, stats in cases]),
        np.concatenate([stats.label for _, stats in cases]),
    )
    trees = Trees.joined([tree for tree, _ in cases], 3, 0)
    family = pac_bayes_family(trees, stats)
    posterior = family.solve(lam1, lam2)
    each = [certree.pac_bayes(tree, own, lam1, lam2) for tree, own in cases]
    for name in ("weight", "log_odds", "chain_entropy", "chain_mode"):
        expected = np.concatenate([getattr(single, name) for single in each])
        np.testing.assert_array_equal(getattr(posterior, name), expected)
    evidence = sum(single.log_evidence for single in each)
    assert posterior.log_evidence == pytest.approx(evidence, rel=1e-12, abs=1e-9)
    reach = np.concatenate(
        [weights.reached(tree, single) for (tree, _), single in zip(cases, each, strict=True)]
    )
    np.testing.assert_array_equal(weights.reached(trees, posterior), reach)
    for kind in ("majority", "mean"):
        voting = Voting(kind, smoothing=0.5 if kind == "mean" else 0.0)
        votes = [
            vote(tree, own, single, voting).score
            for (tree, own), single in zip(cases, each, strict=True)
        ]
        cast = voting.ballots(trees, stats).compute_vote(trees, posterior)
        np.testing.assert_array_equal(cast.score, np.concatenate(votes))
    other = family.solve(lam1 / 2, 0.0)
    divergence = sum(
        kl_divergence(tree, single, certree.pac_bayes(tree, own, lam1 / 2, 0.0))
        for (tree, own), single in zip(cases, each, strict=True)
    )
    assert kl_divergence(trees, posterior, other) == pytest.approx(divergence, rel=1e-9, abs=1e-12)
    if len(cases) > 1:
        with pytest.raises(TypeError, match="tree must be a Tree"):
            certree.pac_bayes(trees, stats, lam1, lam2)
