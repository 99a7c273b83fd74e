"""Statistics of several targets against literal ones, and what posteriors make of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from certree import NodeStats, TargetStats, count, grow_kd, measure, pac_bayes, vote
from certree.prunings import cost_complexity, cost_complexity_path, depth_penalised
from certree.stats import SeveralStats
from certree.votes import Voting


def table(n=24, seed=0, weighted=False):
    """A small tree, rows, classes of three targets, numbers of two, and weights or None."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    classes = rng.integers(0, [2, 3, 2], (n, 3))
    numbers = rng.normal(size=(n, 2)) * [1.0, 50.0] + [7.0, 0.0]
    weight = rng.integers(1, 4, n) / 2 if weighted else None
    return grow_kd(X, max_depth=2), X, classes, numbers, weight


def of_classes(tree, X, classes, weight=None):
    return SeveralStats(
        tuple(count(tree, X, y, y.max() + 1, sample_weight=weight) for y in classes.T)
    )


def of_numbers(tree, X, numbers, weight=None):
    return SeveralStats(tuple(measure(tree, X, y, weight) for y in numbers.T))


@given(st.integers(0, 10**6), st.booleans())
def test_a_leaf_pays_the_mean_of_what_it_pays_for_each_target(seed, weighted):
    tree, X, classes, numbers, weight = table(seed=seed, weighted=weighted)
    stats = of_classes(tree, X, classes, weight)
    loss, nats = reference.mean_loss(tree, X, classes, weight)
    np.testing.assert_allclose(stats.loss, loss)
    np.testing.assert_allclose(stats.log_loss, nats, atol=1e-12)
    np.testing.assert_allclose(stats.n, stats.of_each[0].n)
    stats = of_numbers(tree, X, numbers, weight)
    units = [one.unit for one in stats.of_each]
    loss, nats = reference.mean_loss(tree, X, numbers, weight, units)
    np.testing.assert_allclose(stats.loss, loss, atol=1e-12)
    assert stats.log_loss is nats is None


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["classes", "numbers"]),
    st.sampled_from(["leaves", "branching"]),
    st.sampled_from(["error", "log_loss"]),
)
def test_posteriors_and_votes_are_those_of_all_prunings(seed, kind, prior, loss):
    tree, X, classes, numbers, _ = table(seed=seed)
    if kind == "classes":
        stats = of_classes(tree, X, classes)
        loss_of_nodes = reference.mean_loss(tree, X, classes)[loss == "log_loss"]
    else:
        loss = "error"
        stats = of_numbers(tree, X, numbers)
        units = [one.unit for one in stats.of_each]
        loss_of_nodes = reference.mean_loss(tree, X, numbers, None, units)[0]
    posterior = pac_bayes(tree, stats, 0.7, 0.3, prior, loss=loss)
    every, masses, _ = reference.pac_bayes(tree, stats.n, loss_of_nodes, 0.7, 0.3, prior)
    for k, voting in enumerate([Voting("mean"), Voting("majority")][: 1 + (kind == "classes")]):
        found = vote(tree, stats, posterior, voting).score
        columns = []
        for one in stats.of_each:
            if kind == "numbers":
                columns.append(one.mean[:, None])
            else:
                columns.append(
                    np.eye(one.n_classes)[one.label]
                    if k
                    else reference.frequencies(tree, one.counts)
                )
        expected = reference.vote(tree, every, masses, np.concatenate(columns, axis=1))
        for leaf, outcome in expected.items():
            np.testing.assert_allclose(found[leaf], outcome, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_prunings_are_those_of_the_mean_loss(kind):
    tree, X, classes, numbers, _ = table(200)
    tree = grow_kd(X, max_depth=3)
    stats = of_classes(tree, X, classes) if kind == "classes" else of_numbers(tree, X, numbers)
    for alpha in (0.0, 0.5, 3.0):
        cost = stats.loss + alpha * (stats.n > 0)
        least = float(reference.smallest_cost(tree, cost)[0])
        for pruning in (
            cost_complexity(tree, stats, alpha),
            cost_complexity_path(tree, stats).solve(alpha),
        ):
            assert pruning.weight @ cost == pytest.approx(least)
    assert depth_penalised(tree, stats, 1e9).weight[0] == 1


@given(st.integers(0, 10**6), st.permutations(range(3)))
def test_targets_may_stand_in_any_order_and_beside_copies(seed, order):
    tree, X, classes, numbers, weight = table(seed=seed, weighted=True)
    mine, other = (of_classes(tree, X, y, weight) for y in (classes, classes[:, order]))
    for name in ("n", "loss", "log_loss", "impurity"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(other, name))
    for one, two in zip(mine.terms(tree, 3, False), other.terms(tree, 3, False), strict=True):
        np.testing.assert_array_equal(one, two)
    for of, y in ((of_classes, classes), (of_numbers, numbers)):
        alone, twice = of(tree, X, y[:, :1]), of(tree, X, y[:, [0, 0]])
        np.testing.assert_array_equal(alone.loss, alone.of_each[0].loss)
        np.testing.assert_array_equal(alone.loss, twice.loss)
        np.testing.assert_array_equal(
            pac_bayes(tree, twice, 1.0, 1.0).weight,
            pac_bayes(tree, alone.of_each[0], 1.0, 1.0).weight,
        )


def test_numbers_count_in_units_of_their_own():
    tree, X, _, numbers, _ = table()
    stats, other = (of_numbers(tree, X, numbers * unit) for unit in (1.0, [1024.0, 0.125]))
    np.testing.assert_array_equal(stats.loss, other.loss)
    np.testing.assert_array_equal(stats.impurity, other.impurity)
    assert stats.impurity[0] == pytest.approx(len(X))
    np.testing.assert_allclose(stats.deviations, numbers.std(axis=0))
    assert of_numbers(tree, X, np.ones((24, 2))).deviations == [1.0, 1.0]
    assert of_classes(tree, X, np.eye(24, 2, dtype=int)).deviations == [1.0, 1.0]


def test_shapes_that_do_not_match_are_refused():
    tree, X, classes, numbers, _ = table()
    one, number = count(tree, X, classes[:, 0], 2), measure(tree, X, numbers[:, 0])
    with pytest.raises(
        TypeError, match=r"NodeStats alone, or TargetStats, got \['NodeStats', 'Tar"
    ):
        SeveralStats((one, number))
    with pytest.raises(TypeError, match=r"got \[\]"):
        SeveralStats(())
    with pytest.raises(TypeError, match="of_each must be a tuple, got 5"):
        SeveralStats(5)
    for others in (count(tree, X[1:], classes[1:, 0], 2), NodeStats(one.counts[1:], one.label[1:])):
        with pytest.raises(ValueError, match="the same rows in the same nodes"):
            SeveralStats((one, others))
    stats = SeveralStats((one, one))
    with pytest.raises(ValueError, match="stats has 7 nodes, but the tree has 1 nodes"):
        stats.of(grow_kd(X, max_depth=0))
    with pytest.raises(ValueError, match='takes loss="error", got "log_loss"'):
        pac_bayes(tree, SeveralStats((number, number)), 1.0, 1.0, loss="log_loss")
    with pytest.raises(ValueError, match="slopes take one target, got 2"):
        Voting("mean", 0.0, np.array([1, 0])).ballots(tree, stats)
    with pytest.raises(ValueError, match='takes kind="mean", got "majority"'):
        Voting().ballots(tree, SeveralStats((number, number)))
    assert isinstance(stats.at(np.array([0, 1])).of_each[1], NodeStats)
    assert isinstance(SeveralStats((number,)).of_each[0], TargetStats)
