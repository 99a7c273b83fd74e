"""The sources' theorems, by simulation where the truth is known: more draws in `make validity`.

A zigzag of one feature decides the classes, on the cells of a grid. The law of the rows is a finite
table, so that any number of them is one draw of its counts.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import certree
from certree import NodeStats, paper
from certree.certificates import inequalities
from certree.certificates.inequalities import bounds
from certree.paper.rates import BOUNDARIES, draw_rows, fit_exponent, generate_even_points
from run_length import LONG

REPEATS = 400 if LONG else 20
DELTA = 0.05
LAMBDAS = (0.02, 0.1, 0.3, 1.0, 1.7)


@dataclass(frozen=True)
class Draw:
    """Rows of a problem: their counts at each point, and in the nodes of its tree.

    The labels of the nodes are those of other rows.
    """

    population: NodeStats
    stats: NodeStats
    counts: np.ndarray
    bayes_errors: float


@dataclass(frozen=True)
class Problem:
    """Classes of points on a line, in the cells of a dyadic tree that are labelled by 500 rows."""

    depth: int = 8
    slope: float = 0.6

    @property
    def tree(self):
        return certree.grow.dyadic_grid([0.0], [1.0], self.depth)

    @property
    def points(self):
        return (np.arange(2**self.depth)[:, None] + 0.5) / 2**self.depth

    @property
    def shares(self):
        """Probability of each class at each point, all of which are alike."""
        first = 0.5 + self.slope * (np.abs((2.2 * self.points + 0.3) % 1 * 2 - 1) - 0.5)
        return np.column_stack([1 - first, first])

    @property
    def bayes_risk(self):
        return float(self.shares.min(axis=1).mean())

    def stats(self, counts, label=None, **empty):
        """What counts of points and classes are in the nodes."""
        X, y = np.repeat(self.points, 2, axis=0), np.tile([0, 1], len(self.points))
        weight = counts.ravel().astype(float)
        return certree.count(self.tree, X, y, 2, label, weight, **empty)

    def rows(self, rng, n):
        masses = self.shares.ravel() / len(self.points)
        return rng.multinomial(n, masses).reshape(-1, 2)

    def draw(self, seed, n, n_grow=500):
        rng = np.random.default_rng([seed, n])
        label = self.stats(self.rows(rng, n_grow), empty="first").label
        counts = self.rows(rng, n)
        population = self.stats(self.shares / len(self.points), label)
        wrong = np.take_along_axis(counts, self.shares.argmin(axis=1)[:, None], axis=1).sum()
        return Draw(population, self.stats(counts, label), counts, float(wrong))

    def excess_of_vote(self, stats, posterior):
        label = certree.vote(self.tree, stats, posterior).label[self.tree.apply(self.points)]
        right = np.take_along_axis(self.shares, label[:, None].astype(int), axis=1)
        return 1 - right.mean() - self.bayes_risk


PROBLEM = Problem()
TREE = PROBLEM.tree
BRANCHING = certree.certificates.branching_prior(TREE, 2).distributions[0]
PAPERS = certree.certificates.size_prior(TREE, 2, 3.0 * TREE.depth).distributions[0]


def expect_failures(n_failures, probability):
    """A rate of so much would pass this with a probability of 0.999."""
    assert n_failures <= binom.ppf(0.999, REPEATS, probability), n_failures


def penalties(kind, draw, n, delta):
    """Penalties by the rows, and limits on them: the paper's, or the same for all leaves."""
    if kind == "paper":
        return (
            paper.deviation_penalty(TREE, draw.stats, delta),
            paper.deviation_limit(TREE, draw.population, n, delta),
        )
    # Hoeffding's inequality, for each pruning with its share of delta by the branching prior, which
    # is at least exp(-2 log 2) for a leaf.
    most = math.sqrt(2 * (math.log(1 / delta) + 2 * math.log(2)) / n)
    return 2 * (np.full(TREE.n_nodes, most),)


def test_proposition_1_holds_for_all_laws_and_parameters_at_once():
    failures, gaps, too_low, n = 0, [], 0, 200
    for seed in range(REPEATS):
        draw = PROBLEM.draw(seed, n)
        broken = below = False
        for inverse_temperature in LAMBDAS:
            posterior = certree.certificates.gibbs_posterior(
                TREE, draw.stats, BRANCHING, inverse_temperature
            )
            true = posterior.weight @ draw.population.errors
            observed = posterior.weight @ draw.stats.errors / n
            nats = inequalities.kl_divergence(TREE, posterior, BRANCHING)
            for lam in LAMBDAS:
                bound = bounds.pac_bayes_fixed_lambda(observed, n, nats, math.log(DELTA), lam)
                broken |= true > bound
                gaps.append(bound - true)
            below |= true > observed
        failures, too_low = failures + broken, too_low + below
    expect_failures(failures, DELTA)
    assert min(gaps) < 0.2
    assert too_low > 0.4 * REPEATS  # what is observed is no bound


@pytest.mark.parametrize("kind", ["paper", "constant"])
def test_the_penalties_keep_the_conditions_of_proposition_2(kind):
    """Of the paper's these are Lemmas 5 and 6: all prunings pay enough, and each not too much."""
    too_little, too_much, unpaid, n = 0, np.zeros(TREE.n_nodes), 0, 300
    for seed in range(REPEATS):
        draw = PROBLEM.draw(seed, n)
        penalty, limit = penalties(kind, draw, n, DELTA)
        too_much += penalty > limit
        # By how much errors are fewer than they are expected given the points, beside the same of
        # the best classifier.
        counts = draw.counts.sum(axis=1, keepdims=True) * PROBLEM.shares
        expected = PROBLEM.stats(counts, draw.population.label).errors
        lacking = (expected - draw.stats.errors) / n
        of_the_best = (counts.min(axis=1).sum() - draw.bayes_errors) / n

        def is_too_low(paid, lacking=lacking, of_the_best=of_the_best):
            worst = certree.prunings.prune(TREE, paid - lacking)
            return worst.weight @ (paid - lacking) + of_the_best < 0

        too_little += is_too_low(penalty)
        unpaid += is_too_low(0 * penalty)
    expect_failures(too_little, DELTA)
    expect_failures(too_much.max(), DELTA)
    assert unpaid > 0.9 * REPEATS


@pytest.mark.parametrize("kind", ["paper", "constant"])
@pytest.mark.parametrize("prior", [BRANCHING, PAPERS], ids=["branching", "paper"])
def test_the_excess_of_draws_is_below_what_the_rows_say(prior, kind):
    """Equation (9), for all laws and temperatures at once."""
    failures, n, lowest = 0, 2**16, np.inf
    for seed in range(REPEATS):
        draw = PROBLEM.draw(seed, n)
        penalty, _ = penalties(kind, draw, n, DELTA)
        broken = False
        for lam in LAMBDAS:
            posterior = paper.excess_posterior(TREE, draw.stats, prior, penalty, lam)
            bound = paper.gibbs_excess_bound(
                TREE, draw.stats, posterior, prior, penalty, draw.bayes_errors, lam, DELTA
            )
            broken |= posterior.weight @ draw.population.errors - PROBLEM.bayes_risk > bound
            lowest = min(lowest, bound)
        failures += broken
    expect_failures(failures, 2 * DELTA)
    assert lowest < 0.2


def promised(kind, prior, draw, n, delta, lam):
    """The bound on the excess of the vote by one temperature, and the law that it speaks of."""
    penalty, limit = penalties(kind, draw, n, 1 / n if delta is None else delta)
    bound = paper.excess_bound(
        TREE, draw.population, prior, limit, n, PROBLEM.bayes_risk, delta, lam
    )
    return bound.excess, paper.excess_posterior(TREE, draw.stats, prior, penalty, lam)


def promised_by_the_theorem(draw, n, delta, lam):
    bound = paper.theorem_bound(TREE, draw.population, n, PROBLEM.bayes_risk, delta, lam)
    of_the_law = 1 / n if delta is None else delta
    return bound.excess, certree.weights.theorem_posterior(TREE, draw.stats, lam, of_the_law)


PROMISES = {
    "Theorem 1": promised_by_the_theorem,
    "Proposition 2": partial(promised, "paper", BRANCHING),
    "Proposition 2, other penalties": partial(promised, "constant", BRANCHING),
}


@pytest.mark.parametrize("name", PROMISES)
def test_the_excess_of_the_vote_is_below_its_bound(name):
    failures, n, bounds_, found = 0, 2**18, [], []
    for seed in range(REPEATS):
        draw = PROBLEM.draw(seed, n)
        broken = False
        for lam in LAMBDAS:
            bound, posterior = PROMISES[name](draw, n, DELTA, lam)
            excess = PROBLEM.excess_of_vote(draw.stats, posterior)
            broken |= excess > bound
            bounds_.append(bound)
            found.append(excess)
        failures += broken
    expect_failures(failures, 4 * DELTA)
    assert min(bounds_) < 0.2
    assert max(found) > 0


@pytest.mark.parametrize("name", PROMISES)
def test_the_mean_excess_of_the_vote_is_below_its_bound(name):
    """Equation (14), given the rows that label the tree."""
    n, lam = 2**18, 0.3
    outcomes = []
    for seed in range(REPEATS):
        draw = PROBLEM.draw(seed, n)
        bound, posterior = PROMISES[name](draw, n, None, lam)
        outcomes.append((bound, PROBLEM.excess_of_vote(draw.stats, posterior)))
    bound, excess = np.array(outcomes).T
    assert bound.max() < 0.5
    assert excess.mean() < bound.mean()


def test_the_mean_excess_falls_at_the_rate_of_corollary_1():
    """As many rows label the tree as weigh it, and its cells are as many: depth log2 n."""
    sizes, means = 2 ** np.arange(12, 19, 2), []
    for n in sizes:
        problem = Problem(depth=min(int(np.log2(n)), 14))
        excess = []
        for seed in range(max(REPEATS // 4, 4)):
            draw = problem.draw(seed, int(n), n_grow=int(n))
            posterior = certree.weights.theorem_posterior(problem.tree, draw.stats, 1.0, 1 / n)
            excess.append(problem.excess_of_vote(draw.stats, posterior))
        means.append(np.mean(excess))
    rate = np.array([paper.hoelder_rate(float(n), 1, 1) for n in sizes])
    assert (np.array(means) <= 1.2 * rate).all()
    assert means[-1] / rate[-1] < 0.5 * means[0] / rate[0]


# -- Scott and Nowak -------------------------------------------------------------------------------

UNIT = [[0.0, 0.0], [1.0, 1.0]]


def linear_leaf():
    return LogisticRegression(C=1000, max_iter=1000)


def quadratic():
    return make_pipeline(PolynomialFeatures(2), linear_leaf())


@pytest.mark.parametrize(
    ("smoothness", "leaf", "sizes"),
    [
        (1.5, linear_leaf(), (2**8, 2**12, 2**16)),
        (2, linear_leaf(), (2**8, 2**12, 2**16)),
        (3, quadratic(), (2**10, 2**16)),
    ],
    ids=["1.5", "2", "3"],
)
def test_the_excess_on_a_smooth_boundary_falls_at_the_rate_of_theorem_3(smoothness, leaf, sizes):
    """At the sizes at which the tree grows by a halving; without noise the Bayes risk is 0."""
    smooth = BOUNDARIES[1]
    points = generate_even_points(2, 2**15)
    means = []
    for n in sizes:
        excess = []
        for repeat in range(8 if LONG else 1):
            model = certree.DecoratedTreeClassifier(
                leaf,
                grower=certree.Grid(UNIT, resolution="paper"),
                rule=certree.prunings.Polynomial(smoothness),
                alpha=0.005,
            )
            model.fit(*draw_rows(smooth, 2, n, repeat, 0.0))
            excess.append(np.mean(model.predict(points) != smooth.is_above(points)))
        means.append(np.mean(excess))
    power = smoothness / (2 + 2 * smoothness - 2)
    assert fit_exponent(sizes, means).value > 0.8 * power
