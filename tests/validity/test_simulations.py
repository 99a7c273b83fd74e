"""Seeded simulations of guarantees, longer in `make validity` than in `make test`."""

import numpy as np
import pytest

import certree
from certree import HelmboldSchapireTreeClassifier, PACBayesTreeClassifier, PrunedTreeClassifier
from run_length import LONG

REPEATS = 200 if LONG else 5


def planted(rng, n, noise):
    """Rows whose classes follow a small tree, apart from a share of coin flips."""
    X = rng.random((n, 3))
    y = (X[:, 0] > 0.5) ^ ((X[:, 1] > 0.25) & (X[:, 0] <= 0.5))
    flipped = rng.random(n) < noise
    return X, np.where(flipped, rng.integers(0, 2, n), y).astype(int)


@pytest.mark.parametrize(
    "estimator", [PACBayesTreeClassifier, PrunedTreeClassifier, HelmboldSchapireTreeClassifier]
)
def test_coin_flips_are_not_learnt(estimator):
    errors = []
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        X, y = rng.random((200, 3)), rng.integers(0, 2, 200)
        model = estimator(random_state=seed).fit(X[:100], y[:100])
        errors.append(np.mean(model.predict(X[100:]) != y[100:]))
    # Four standard errors of the mean of that many rows.
    assert np.mean(errors) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(100 * REPEATS))


@pytest.mark.parametrize("grower", ["kd", "dyadic"])
@pytest.mark.parametrize(("search", "factor"), [("joint", 1.05), ("mixture", 1.1)])
def test_the_vote_is_about_as_good_as_the_best_pruning(grower, search, factor):
    vote, pruning, unpruned = [], [], []
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        X, y = planted(rng, 1200, 0.3)
        new, truth = X[400:], y[400:]
        model = PACBayesTreeClassifier(grower, search=search, random_state=seed)
        model.fit(X[:400], y[:400])
        vote.append(np.mean(model.predict(new) != truth))
        single = PrunedTreeClassifier(grower, random_state=seed).fit(X[:400], y[:400])
        pruning.append(np.mean(single.predict(new) != truth))
        full = PrunedTreeClassifier(grower, alpha=0).fit(X[:400], y[:400])
        unpruned.append(np.mean(full.predict(new) != truth))
    assert np.mean(vote) <= factor * np.mean(pruning)
    assert np.mean(vote) <= 0.9 * np.mean(unpruned)


def test_helmbold_schapire_keeps_their_regret_bound():
    """Loss of the mixture in hindsight: -log evidence <= temperature loss(T) - log prior(T)."""
    for seed in range(REPEATS):
        rng = np.random.default_rng(seed)
        X, y = planted(rng, 300, 0.2)
        tree = certree.grow_kd(X, y)
        stats = certree.count(tree, X, y, 2)
        loss = 2 * stats.counts[:, 0] * stats.counts[:, 1] / stats.n
        for inverse_temperature in (0.1, 1.0, 10.0):
            posterior = certree.weights.helmbold_schapire(tree, stats, inverse_temperature)
            for _ in range(5):
                pruning = certree.weights.sample_pruning(tree, posterior, rng)
                nodes = certree.weights.reached(tree, pruning) > 0
                could_split = (nodes & ~tree.is_leaf).sum()
                bound = inverse_temperature * (pruning.weight @ loss) + could_split * np.log(2)
                assert -posterior.log_evidence <= bound + 1e-9


def test_shares_of_sampled_prunings_are_the_vote():
    rng = np.random.default_rng(5)
    X, y = planted(rng, 150, 0.3)
    tree = certree.grow_kd(X, y)
    stats = certree.count(tree, X, y, 2)
    posterior = certree.pac_bayes(tree, stats, 0.8, 0.1)
    score = certree.vote(tree, stats, posterior).score
    draws = 4000 if LONG else 400
    total = np.zeros_like(score)
    for _ in range(draws):
        pruning = certree.weights.sample_pruning(tree, posterior, rng)
        total += certree.vote(tree, stats, pruning).score
    leaves = tree.is_leaf
    np.testing.assert_allclose(total[leaves] / draws, score[leaves], atol=5 * 0.5 / draws**0.5)
