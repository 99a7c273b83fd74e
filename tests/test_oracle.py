"""Oracle bounds against the enumeration of all prunings, and against the rate that follows."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import certree
import reference
from certree import NodeStats, Tree
from strategies import trees_and_stats

EIGHT = Tree([0] * 15, [0.0] * 15, [*range(1, 15, 2), *[-1] * 8], [1] * 15, 1)


def as_population(stats):
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
    population = as_population(stats)
    prior = certree.certificates.branching_prior(tree, stats.n_classes).laws[0]
    masses = reference.law_of_log_odds(tree, np.clip(prior.log_odds, -1e3, 1e3))
    slope = (math.exp(lam) - 1) / lam
    least = min(
        slope * sum(population.errors[v] for v in nodes) - 2 * float(mass.ln()) / (lam * n)
        for nodes, mass in masses.items()
        if mass > 0
    )
    chance = (2 * math.log(2 / delta) + reference.log_of(reference.xi(n))) / (lam * n)
    got = certree.certificates.oracle_bound(tree, population, prior, n, 0.0, delta, lam)
    assert got.gibbs_risk == pytest.approx(min((least + chance) / (1 - lam / 2), 1), abs=1e-9)
    assert got.excess == min(stats.n_classes * got.gibbs_risk, 1)


def test_the_pruning_pays_least_for_all_numbers_of_rows():
    """With ever more rows there is one at which any other weight of risk and size picks another."""
    shares = np.array([[9, 1], [6, 4], [2, 8], [1, 9], [7, 3], [5, 5], [8, 2], [3, 7]]) / 80
    counts = np.zeros((15, 2))
    counts[7:] = shares
    for v in range(6, -1, -1):
        counts[v] = counts[2 * v + 1] + counts[2 * v + 2]
    population = NodeStats(counts, counts.argmax(axis=1))
    prior = certree.certificates.branching_prior(EIGHT, 2).laws[0]
    masses = reference.law_of_log_odds(EIGHT, np.clip(prior.log_odds, -1e3, 1e3))
    lam = 1.9
    slope = math.expm1(lam) / lam
    sizes = set()
    for n in range(1, 200):
        least = min(
            slope * sum(population.errors[v] for v in nodes) - 2 * float(mass.ln()) / (lam * n)
            for nodes, mass in masses.items()
        )
        got = certree.certificates.oracle_bound(EIGHT, population, prior, n, 0.0, lambda_error=lam)
        assert slope * got.risk + 2 * got.complexity / (lam * n) == pytest.approx(least, abs=1e-12)
        sizes.add(got.pruning.expected_leaves)
    assert len(sizes) > 2


def smooth_problem(dimension, depth):
    """A dyadic grid, and classes whose probabilities are a zigzag of slope below 1."""
    tree = certree.grow.dyadic_grid([0.0] * dimension, [1.0] * dimension, depth)
    axis = (np.arange(2 ** (12 // dimension)) + 0.5) / 2 ** (12 // dimension)
    points = np.stack(np.meshgrid(*dimension * [axis], indexing="ij"), -1).reshape(-1, dimension)
    first = 0.3 + 0.4 * np.abs((2.2 * points + 0.3) % 1 * 2 - 1).mean(axis=1)
    shares = np.stack([1 - first, first], axis=1) / len(points)
    y = np.tile([0, 1], len(points))
    population = certree.count(
        tree, np.repeat(points, 2, axis=0), y, 2, sample_weight=shares.ravel()
    )
    return tree, population, float(shares.min(axis=1).sum())


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_bound_falls_at_least_as_fast_as_the_rate(dimension):
    tree, population, bayes_risk = smooth_problem(dimension, 12)
    prior = certree.certificates.branching_prior(tree, 2).laws[0]
    sizes = 2 ** np.arange(10, 25, 2)
    found = [
        certree.certificates.oracle_bound(tree, population, prior, int(n), bayes_risk)
        for n in sizes
    ]
    excess = np.array([bound.excess for bound in found])
    rate = np.array([certree.certificates.hoelder_rate(float(n), 1, dimension) for n in sizes])
    assert excess[0] < 1
    assert (np.diff(excess / rate)[1:] < 0).all()
    # More rows pay for more leaves and take a smaller temperature.
    leaves = [bound.pruning.expected_leaves for bound in found]
    assert leaves == sorted(leaves)
    assert leaves[-1] > leaves[0]
    lambdas = [bound.lambda_error for bound in found]
    assert lambdas[-1] < lambdas[0]


def test_the_papers_prior_pays_for_the_depth():
    tree, population, bayes_risk = smooth_problem(1, 8)
    dear = certree.certificates.size_prior(tree, 2, 3.0 * tree.depth).laws[0]
    free = certree.certificates.branching_prior(tree, 2).laws[0]
    bounds = [
        certree.certificates.oracle_bound(tree, population, law, 10**5, bayes_risk).excess
        for law in (free, dear)
    ]
    assert bounds[0] < bounds[1] < 1


def test_bad_input():
    tree, population, bayes_risk = smooth_problem(1, 2)
    prior = certree.certificates.branching_prior(tree, 2).laws[0]
    counts = NodeStats(2 * population.counts, population.label)
    with pytest.raises(ValueError, match="probabilities that sum to 1, got 2"):
        certree.certificates.oracle_bound(tree, counts, prior, 100, bayes_risk)
    for wrong in ((0, 0.1, 0.05), (100, 1.5, 0.05), (100, 0.1, 0.0)):
        with pytest.raises(ValueError, match="expected n in 1"):
            certree.certificates.oracle_bound(tree, population, prior, *wrong)
    for lam in (0.0, 2.0, np.nan):
        with pytest.raises(ValueError, match="lambda_error must lie between 0 and 2"):
            certree.certificates.oracle_bound(tree, population, prior, 100, 0.1, lambda_error=lam)
    assert certree.certificates.oracle_excess(0.25, 3) == 0.75
    for wrong in ((-0.1, 2), (np.nan, 2), (0.1, 1)):
        with pytest.raises(ValueError, match="expected an excess >= 0"):
            certree.certificates.oracle_excess(*wrong)
    assert certree.certificates.hoelder_rate(1000, 1, 1) == pytest.approx(0.1)
    for wrong in ((0, 1, 1), (10, 1.5, 1), (10, 1, 0)):
        with pytest.raises(ValueError, match="expected n > 0, a smoothness"):
            certree.certificates.hoelder_rate(*wrong)
