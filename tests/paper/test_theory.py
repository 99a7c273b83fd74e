"""Oracle bounds, compared with the enumeration of all prunings and with their rates."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import certree
import reference
from certree import NodeStats, Tree, paper
from certree.certificates import inequalities
from certree.grow import dyadic_grid
from certree.prunings import spatially_adaptive
from strategies import trees_and_stats

EIGHT = Tree([0] * 15, [0.0] * 15, [*range(1, 15, 2), *[-1] * 8], [1] * 15, 1)


def to_population(stats):
    return NodeStats(stats.counts / stats.n[0], stats.label)


@given(
    trees_and_stats(max_inner=4, max_chain=2),
    st.floats(0.01, 1.9),
    st.integers(1, 300),
    st.sampled_from([0.01, 0.05, 0.5]),
)
def test_an_oracle_bound_is_the_least_over_all_prunings(tree_and_stats, lam, n, delta):
    tree, stats = tree_and_stats
    assume(stats.n[0] > 0 and stats.n_classes > 1)
    population = to_population(stats)
    prior = certree.certificates.branching_prior(tree, stats.n_classes).distributions[0]
    masses = reference.compute_masses_from_log_odds(tree, np.clip(prior.log_odds, -1e3, 1e3))
    slope = (math.exp(lam) - 1) / lam
    least = min(
        slope * sum(population.errors[v] for v in nodes) - 2 * float(mass.ln()) / (lam * n)
        for nodes, mass in masses.items()
        if mass > 0
    )
    chance = (2 * math.log(2 / delta) + reference.compute_log(reference.compute_xi(n))) / (lam * n)
    got = paper.chernoff_oracle_bound(tree, population, prior, n, 0.0, delta, lam)
    assert got.gibbs_excess == pytest.approx(min((least + chance) / (1 - lam / 2), 1), abs=1e-9)
    assert got.excess == min(stats.n_classes * got.gibbs_excess, 1)


def test_the_oracle_pruning_is_the_best_for_all_numbers_of_rows():
    """Another balance of risk and size would choose another pruning at some number of rows."""
    probabilities = np.array([[9, 1], [6, 4], [2, 8], [1, 9], [7, 3], [5, 5], [8, 2], [3, 7]]) / 80
    counts = np.zeros((15, 2))
    counts[7:] = probabilities
    for v in range(6, -1, -1):
        counts[v] = counts[2 * v + 1] + counts[2 * v + 2]
    population = NodeStats(counts, counts.argmax(axis=1))
    prior = certree.certificates.branching_prior(EIGHT, 2).distributions[0]
    masses = reference.compute_masses_from_log_odds(EIGHT, np.clip(prior.log_odds, -1e3, 1e3))
    lam = 1.9
    slope = math.expm1(lam) / lam
    sizes = set()
    for n in range(1, 200):
        least = min(
            slope * sum(population.errors[v] for v in nodes) - 2 * float(mass.ln()) / (lam * n)
            for nodes, mass in masses.items()
        )
        got = paper.chernoff_oracle_bound(EIGHT, population, prior, n, 0.0, lambda_error=lam)
        assert slope * got.risk + 2 * got.complexity / (lam * n) == pytest.approx(least, abs=1e-12)
        sizes.add(got.pruning.expected_leaves)
    assert len(sizes) > 2


LAMBDAS = st.floats(0.01, 1.9)
DELTAS = st.sampled_from([0.01, 0.05, 0.5])


def make_prior(tree, n_classes):
    """Return a non-uniform prior, and the masses of all prunings."""
    prior = certree.certificates.branching_prior(tree, n_classes, 0.3).distributions[0]
    return prior, reference.compute_masses_from_log_odds(tree, np.clip(prior.log_odds, -1e3, 1e3))


def sum_leaves(values, masses):
    """Sum values over the leaves of every pruning."""
    return {nodes: sum(float(values[v]) for v in nodes) for nodes in masses}


@given(
    trees_and_stats(max_inner=4, max_chain=3), LAMBDAS, st.integers(8, 10**6), DELTAS, st.booleans()
)
def test_the_theorem_s_bound_is_the_least_over_all_prunings(tree_and_stats, lam, n, delta, mean):
    tree, stats = tree_and_stats
    assume(stats.n[0] > 0 and stats.n_classes > 1)
    population = to_population(stats)
    columns = population.n, population.errors
    risks = [
        sum(population.errors[v] for v, _ in leaves)
        for leaves in reference.enumerate_prunings(tree)
    ]
    bayes = min(risks) / 2
    literal = reference.compute_theorem_bound(
        tree, *columns, n, bayes, 1 / n if mean else delta, lam, stats.n_classes, mean
    )
    got = paper.theorem_bound(tree, population, n, bayes, None if mean else delta, lam)
    assert got.excess == pytest.approx(min(literal, 1), rel=1e-9)
    assert got.gibbs_excess == pytest.approx(min(literal / stats.n_classes, 1), rel=1e-9)
    assert got.penalty == pytest.approx(
        got.pruning.weight @ paper.deviation_limit(tree, population, n, 1 / n if mean else delta)
    )


@given(
    trees_and_stats(max_inner=4, max_chain=2), LAMBDAS, st.integers(8, 10**4), DELTAS, st.booleans()
)
def test_proposition_2_is_the_least_for_any_prior_and_penalty(tree_and_stats, lam, n, delta, mean):
    tree, stats = tree_and_stats
    assume(stats.n[0] > 0 and stats.n_classes > 1)
    population = to_population(stats)
    prior, masses = make_prior(tree, stats.n_classes)
    penalty = np.random.default_rng(n).exponential(0.01, tree.n_nodes)
    literal = reference.bound_excess_over_prunings(
        sum_leaves(population.errors, masses),
        sum_leaves(penalty, masses),
        {nodes: -float(mass.ln()) for nodes, mass in masses.items()},
        n,
        1 / n if mean else delta,
        lam,
        stats.n_classes,
        mean,
    )
    got = paper.excess_bound(tree, population, prior, penalty, n, 0.0, None if mean else delta, lam)
    assert got.excess == pytest.approx(min(literal, 1), rel=1e-9)


@given(trees_and_stats(max_inner=4, max_chain=2, largest=50), LAMBDAS, DELTAS)
def test_the_posterior_of_proposition_2_has_the_lowest_bound_on_its_draws(
    tree_and_stats, lam, delta
):
    tree, stats = tree_and_stats
    n = float(stats.n[0])
    assume(n >= 8 and stats.n_classes > 1)
    prior, masses = make_prior(tree, stats.n_classes)
    penalty = np.random.default_rng(int(n)).exponential(0.05, tree.n_nodes)
    cost = sum_leaves(stats.errors + n * penalty, masses)
    least = min(cost.values())  # whose weight would underflow
    weights = {h: float(mass) * math.exp(lam * (least - cost[h])) for h, mass in masses.items()}
    total = sum(weights.values())
    literal = {h: weight / total for h, weight in weights.items()}
    posterior = paper.excess_posterior(tree, stats, prior, penalty, lam)
    leaves = [sum(q for h, q in literal.items() if v in h) for v in range(tree.n_nodes)]
    np.testing.assert_allclose(posterior.weight, leaves, atol=1e-9)

    bayes_errors = n / 10
    nats = sum(q * math.log(q / float(masses[h])) for h, q in literal.items() if q > 0)
    observed = (sum(q * cost[h] for h, q in literal.items()) - bayes_errors) / n
    bound = paper.gibbs_excess_bound
    got = bound(tree, stats, posterior, prior, penalty, bayes_errors, lam, delta)
    expected = reference.compute_gibbs_bound(observed, nats, n, delta, lam)
    assert got == pytest.approx(min(expected, 1), abs=1e-9)
    for other in (prior, certree.certificates.gibbs_posterior(tree, stats, prior, lam)):
        assert got <= bound(tree, stats, other, prior, penalty, bayes_errors, lam, delta) + 1e-9


@given(trees_and_stats(max_chain=1), LAMBDAS, DELTAS)
def test_the_theorem_s_posterior_is_that_of_the_proposition(tree_and_stats, lam, delta):
    tree, stats = tree_and_stats
    assume(stats.n[0] > 0 and stats.n_classes > 1)
    prior = certree.certificates.size_prior(tree, stats.n_classes, 3.0 * tree.depth).distributions[
        0
    ]
    penalty = paper.deviation_penalty(tree, stats, delta)
    posterior = paper.excess_posterior(tree, stats, prior, penalty, lam)
    expected = certree.weights.theorem_posterior(tree, stats, lam, delta)
    np.testing.assert_allclose(posterior.weight, expected.weight, atol=1e-6)


@pytest.mark.parametrize(
    ("n", "at_one", "at_best"),
    [(2**14, 0.757, 0.443), (2**18, 0.259, 0.153), (2**22, 0.073, 0.040)],
)
def test_the_values_of_the_theorem_on_a_zigzag(n, at_one, at_best):
    points = (np.arange(4096) + 0.5) / 4096
    first = 0.3 + 0.4 * np.abs((2.2 * points + 0.3) % 1 * 2 - 1)
    tree = certree.grow.dyadic_grid([0.0], [1.0], 12)
    assert (tree.n_cells, tree.depth) == (8191, 12)
    weight = np.column_stack([1 - first, first]).ravel() / 4096
    population = certree.count(
        tree, np.repeat(points, 2)[:, None], np.tile([0, 1], 4096), 2, sample_weight=weight
    )
    bayes = float(np.minimum(first, 1 - first).mean())
    bound = paper.theorem_bound
    assert bound(tree, population, n, bayes, lambda_error=1.0).excess == pytest.approx(
        at_one, abs=5e-4
    )
    best = bound(tree, population, n, bayes)
    assert best.excess == pytest.approx(at_best, abs=5e-4)
    # The bound is that at its own inverse temperature.
    again = bound(tree, population, n, bayes, lambda_error=best.lambda_error)
    assert again.excess == best.excess


def test_the_bound_at_a_parameter_has_its_own_constant():
    bounds = inequalities.bounds
    for risk, n, nats, lam in ((0.1, 100, 3.0, 0.5), (0.0, 8, 0.0, 1.9), (0.4, 10**6, 50.0, 0.01)):
        literal = reference.compute_gibbs_bound(risk, nats, n, 0.05, lam)
        assert bounds.pac_bayes_fixed_lambda(risk, n, nats, math.log(0.05), lam) == pytest.approx(
            literal
        )
    # At the best parameter, and with Maurer's constant, it is close to `pac_bayes_lambda`.
    grid = np.linspace(0.01, 1.99, 1999)
    arguments = 0.1, 1000, 3.0, math.log(0.05)
    best = min(bounds.pac_bayes_fixed_lambda(*arguments, lam) for lam in grid)
    less = (math.log(2 * math.sqrt(1000)) - bounds.log_xi(1000)) / 1000
    assert best - 4 * less < bounds.pac_bayes_lambda(*arguments) < best


def smooth_problem(dimension, depth):
    """Return a dyadic grid, zigzag class probabilities of slope below 1, and the Bayes risk."""
    tree = certree.grow.dyadic_grid([0.0] * dimension, [1.0] * dimension, depth)
    axis = (np.arange(2 ** (12 // dimension)) + 0.5) / 2 ** (12 // dimension)
    points = np.stack(np.meshgrid(*dimension * [axis], indexing="ij"), -1).reshape(-1, dimension)
    first = 0.3 + 0.4 * np.abs((2.2 * points + 0.3) % 1 * 2 - 1).mean(axis=1)
    probabilities = np.stack([1 - first, first], axis=1) / len(points)
    y = np.tile([0, 1], len(points))
    population = certree.count(
        tree, np.repeat(points, 2, axis=0), y, 2, sample_weight=probabilities.ravel()
    )
    return tree, population, float(probabilities.min(axis=1).sum())


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_bound_falls_at_least_as_fast_as_the_rate(dimension):
    tree, population, bayes_risk = smooth_problem(dimension, 12)
    prior = certree.certificates.branching_prior(tree, 2).distributions[0]
    sizes = 2 ** np.arange(10, 25, 2)
    found = [
        paper.chernoff_oracle_bound(tree, population, prior, int(n), bayes_risk) for n in sizes
    ]
    excess = np.array([bound.excess for bound in found])
    rate = np.array([paper.hoelder_rate(float(n), 1, dimension) for n in sizes])
    assert excess[0] < 1
    assert (np.diff(excess / rate)[1:] < 0).all()
    at_one = [
        paper.theorem_bound(tree, population, int(n), bayes_risk, None, 1.0).excess
        for n in 2 ** np.arange(20, 31, 2)
    ]
    # The excess is inside the minimum, so the bound falls to 0 at a fixed inverse temperature.
    assert (np.diff(at_one) < 0).all()
    assert at_one[-1] < 0.2
    # With more rows the bound has more leaves and a smaller inverse temperature.
    leaves = [bound.pruning.expected_leaves for bound in found]
    assert leaves == sorted(leaves)
    assert leaves[-1] > leaves[0]
    lambdas = [bound.lambda_error for bound in found]
    assert lambdas[-1] < lambdas[0]


def test_the_paper_s_prior_costs_more_by_the_depth():
    tree, population, bayes_risk = smooth_problem(1, 8)
    by_depth = certree.certificates.size_prior(tree, 2, 3.0 * tree.depth).distributions[0]
    free = certree.certificates.branching_prior(tree, 2).distributions[0]
    bounds = [
        paper.chernoff_oracle_bound(tree, population, posterior, 10**5, bayes_risk).excess
        for posterior in (free, by_depth)
    ]
    assert bounds[0] < bounds[1] < 1


def test_bad_arguments_of_bounds_are_refused():
    tree, population, bayes_risk = smooth_problem(1, 2)
    prior = certree.certificates.branching_prior(tree, 2).distributions[0]
    counts = NodeStats(2 * population.counts, population.label)
    valid = {"n": 100, "bayes_risk": bayes_risk, "delta": 0.05, "lambda_error": 1.0}
    none = np.zeros(tree.n_nodes)
    for bound, required in (
        (paper.chernoff_oracle_bound, {"prior": prior}),
        (paper.theorem_bound, {}),
        (paper.excess_bound, {"prior": prior, "penalty": none}),
    ):
        smallest = 1 if bound is paper.chernoff_oracle_bound else 8
        with pytest.raises(ValueError, match="that sum to 1, got 2"):
            bound(tree, counts, **required, **valid)
        for wrong, words in (
            ({"n": smallest - 1}, f"n must lie in {smallest} .."),
            ({"bayes_risk": 1.5}, "bayes_risk must lie in 0 .. 1"),
            ({"bayes_risk": 0.6}, "bayes_risk must be at most the risk of every pruning, got 0.6"),
            ({"delta": 0.0}, "delta must lie between 0 and 1, got 0"),
            ({"delta": 1.0}, "delta must lie between 0 and 1, got 1"),
            ({"lambda_error": 0.0}, "lambda_error must lie between 0 and 2, got 0"),
            ({"lambda_error": 2.0}, "lambda_error must lie between 0 and 2, got 2"),
            ({"lambda_error": np.nan}, "lambda_error must lie between 0 and 2, got nan"),
        ):
            with pytest.raises(ValueError, match=words):
                bound(tree, population, **required, **{**valid, **wrong})
    for penalty, words in (
        (none - 1, "must be at least 0 for every node, got -1"),
        (none[:1], "cost"),
    ):
        with pytest.raises(ValueError, match=words):
            paper.excess_bound(tree, population, prior, penalty, **valid)
    posterior = certree.certificates.gibbs_posterior(tree, population, prior, 1.0)
    rows = NodeStats(np.ones((tree.n_nodes, 2)), population.label)
    bound = paper.gibbs_excess_bound
    with pytest.raises(
        ValueError, match=r"bayes_errors must lie in 0 \.\. 2, the number of rows in stats, got 3"
    ):
        bound(tree, rows, posterior, prior, none, 3.0, 1.0)
    with pytest.raises(ValueError, match="n must be at least 8, got 2"):
        bound(tree, rows, posterior, prior, none, 0.0, 1.0)
    empty = NodeStats(np.zeros((tree.n_nodes, 2)), population.label)
    with pytest.raises(ValueError, match="stats must count at least one row"):
        paper.deviation_penalty(tree, empty)
    assert paper.oracle_excess(0.25, 3) == 0.75
    for wrong in ((-0.1, 2), (np.nan, 2), (0.1, 1)):
        with pytest.raises(ValueError, match="gibbs_excess must be at least 0"):
            paper.oracle_excess(*wrong)
    rate = paper.hoelder_rate
    assert rate(1000, 1, 1) == pytest.approx((math.log(1000) / 1000) ** (1 / 3))
    assert rate(1000, 0.5, 3) == pytest.approx((math.log(1000) / 1000) ** (1 / 8))
    for wrong in ((1, 1, 1), (10, 1.5, 1), (10, 1, 0)):
        with pytest.raises(ValueError, match="n must be at least 2, smoothness"):
            rate(*wrong)


# -- the index of resolvability --------------------------------------------------------------------


def grid_population(mass):
    """Return a complete tree over a line, and the statistics of class masses (leaves, 2)."""
    mass = np.asarray(mass, dtype=float) / np.sum(mass)
    depth = int(math.log2(len(mass)))
    tree = dyadic_grid([0.0], [1.0], depth)
    points = (np.arange(len(mass)) + 0.5) / len(mass)
    rows = np.repeat(points, 2)[:, None]
    population = certree.count(
        tree, rows, np.tile([0, 1], len(mass)), 2, sample_weight=mass.ravel()
    )
    return tree, population


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=4, max_size=4),
    st.integers(1, 10**6),
)
def test_the_index_of_resolvability_is_the_least_over_all_prunings(mass, n):
    assume(sum(map(sum, mass)) > 0)
    tree, population = grid_population([(a + 1e-3, b + 1e-3) for a, b in mass])
    bayes = float(population.errors[tree.is_leaf].sum())
    inside = n * population.n
    penalties = (
        [math.sqrt(48 * a * math.log(2 * n)) for a in inside],
        [math.sqrt(48 * a * math.log(4)) for a in inside],
    )
    least = reference.enumerate_smallest_fragment_cost(
        tree, n * population.errors, inside, *penalties, True
    )
    found = paper.resolvability(tree, population, n, bayes)
    assert found.value == pytest.approx(least / n - bayes, rel=1e-9, abs=1e-9)
    assert found.value == found.excess + found.penalty


def test_the_excess_of_the_adaptive_rule_is_below_its_index():
    """The mean excess is far below the index, which is an upper bound."""
    x = (np.arange(16) + 0.5) / 16
    noise = np.where(x < 0.3, 0.1, 0.9)
    tree, population = grid_population(np.stack([1 - noise, noise], axis=1))
    rng, n = np.random.default_rng(0), 4000
    excess = []
    for _ in range(20):
        cell = rng.integers(0, 16, n)
        y = (rng.random(n) < noise[cell]).astype(np.intp)
        stats = certree.count(tree, x[cell, None], y, 2)
        pruning = spatially_adaptive(tree, stats, count_empty=True)
        labelled = NodeStats(population.counts, stats.label)
        excess.append(pruning.weight @ labelled.errors - 0.1)
    found = paper.resolvability(tree, population, n, 0.1)
    assert np.mean(excess) <= found.value
    # The index falls to 0 as the number of rows grows.
    indices = [paper.resolvability(tree, population, 10**k, 0.1).value for k in range(4, 14, 3)]
    assert indices == sorted(indices, reverse=True)
    assert indices[-1] < 1e-4


def test_the_index_needs_a_complete_tree():
    tree, population = grid_population([(1, 2), (3, 4)])
    chained = Tree([0, 0, 0], [0.5, 0.0, 0.0], [1, -1, -1], [2, 1, 1], 1)
    with pytest.raises(ValueError, match="tree must have a node for every split"):
        paper.resolvability(chained, population, 10, 0.0)
    with pytest.raises(ValueError, match="probabilities of the root that sum to 1"):
        paper.resolvability(tree, NodeStats(2 * population.counts, population.label), 10, 0.0)
