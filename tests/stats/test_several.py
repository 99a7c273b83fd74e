"""Statistics of several targets, compared with literal ones, and posteriors from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import NodeStats, TargetStats, count, grow_kd, measure, pac_bayes, vote
from certree.prunings import cost_complexity, cost_complexity_path, depth_penalised
from certree.stats import SeveralStats
from certree.votes import Voting


def make_problem(n=24, seed=0, weighted=False):
    """Return a small tree, rows, classes of three targets, numbers of two, and weights or None."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    classes = rng.integers(0, [2, 3, 2], (n, 3))
    numbers = rng.normal(size=(n, 2)) * [1.0, 50.0] + [7.0, 0.0]
    weight = rng.integers(1, 4, n) / 2 if weighted else None
    return grow_kd(X, max_depth=2), X, classes, numbers, weight


def count_targets(tree, X, classes, weight=None):
    return SeveralStats(
        tuple(count(tree, X, y, y.max() + 1, sample_weight=weight) for y in classes.T)
    )


def measure_targets(tree, X, numbers, weight=None):
    return SeveralStats(tuple(measure(tree, X, y, weight) for y in numbers.T))


@given(st.integers(0, 10**6), st.booleans())
def test_the_loss_of_a_leaf_is_the_mean_over_targets(seed, weighted):
    tree, X, classes, numbers, weight = make_problem(seed=seed, weighted=weighted)
    stats = count_targets(tree, X, classes, weight)
    loss, nats = reference.compute_mean_loss(tree, X, classes, weight)
    np.testing.assert_allclose(stats.loss, loss)
    np.testing.assert_allclose(stats.log_loss, nats, atol=1e-12)
    np.testing.assert_allclose(stats.n, stats.of_each[0].n)
    stats = measure_targets(tree, X, numbers, weight)
    units = [target.unit for target in stats.of_each]
    loss, nats = reference.compute_mean_loss(tree, X, numbers, weight, units)
    np.testing.assert_allclose(stats.loss, loss, atol=1e-12)
    assert stats.log_loss is nats is None


@given(
    st.integers(0, 10**6),
    st.sampled_from(["classes", "numbers"]),
    st.sampled_from(["leaves", "branching"]),
    st.sampled_from(["error", "log_loss"]),
)
def test_posteriors_and_votes_are_those_of_all_prunings(seed, kind, prior, loss):
    tree, X, classes, numbers, _ = make_problem(seed=seed)
    if kind == "classes":
        stats = count_targets(tree, X, classes)
        node_losses = reference.compute_mean_loss(tree, X, classes)[loss == "log_loss"]
    else:
        loss = "error"
        stats = measure_targets(tree, X, numbers)
        units = [target.unit for target in stats.of_each]
        node_losses = reference.compute_mean_loss(tree, X, numbers, None, units)[0]
    posterior = pac_bayes(tree, stats, 0.7, 0.3, prior, loss=loss)
    prunings, masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, node_losses, 0.7, 0.3, prior
    )
    for k, voting in enumerate([Voting("mean"), Voting("majority")][: 1 + (kind == "classes")]):
        found = vote(tree, stats, posterior, voting).score
        columns = []
        for target in stats.of_each:
            if kind == "numbers":
                columns.append(target.mean[:, None])
            else:
                columns.append(
                    np.eye(target.n_classes)[target.label]
                    if k
                    else reference.compute_frequencies(tree, target.counts)
                )
        expected = reference.vote(tree, prunings, masses, np.concatenate(columns, axis=1))
        for leaf, outcome in expected.items():
            np.testing.assert_allclose(found[leaf], outcome, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_prunings_are_those_of_the_mean_loss(kind):
    tree, X, classes, numbers, _ = make_problem(200)
    tree = grow_kd(X, max_depth=3)
    stats = (
        count_targets(tree, X, classes) if kind == "classes" else measure_targets(tree, X, numbers)
    )
    for alpha in (0.0, 0.5, 3.0):
        cost = stats.loss + alpha * (stats.n > 0)
        least = float(reference.find_smallest_cost(tree, cost)[0])
        for pruning in (
            cost_complexity(tree, stats, alpha),
            cost_complexity_path(tree, stats).solve(alpha),
        ):
            assert pruning.weight @ cost == pytest.approx(least)
    assert depth_penalised(tree, stats, 1e9).weight[0] == 1


@given(st.integers(0, 10**6), st.permutations(range(3)))
def test_the_order_of_targets_and_copies_of_a_target_do_not_matter(seed, order):
    tree, X, classes, numbers, weight = make_problem(seed=seed, weighted=True)
    stats, other = (count_targets(tree, X, y, weight) for y in (classes, classes[:, order]))
    for name in ("n", "loss", "log_loss", "impurity"):
        np.testing.assert_array_equal(getattr(stats, name), getattr(other, name))
    for term, same in zip(stats.terms(tree, 3, False), other.terms(tree, 3, False), strict=True):
        np.testing.assert_array_equal(term, same)
    for summarise, y in ((count_targets, classes), (measure_targets, numbers)):
        alone, twice = summarise(tree, X, y[:, :1]), summarise(tree, X, y[:, [0, 0]])
        np.testing.assert_array_equal(alone.loss, alone.of_each[0].loss)
        np.testing.assert_array_equal(alone.loss, twice.loss)
        np.testing.assert_array_equal(
            pac_bayes(tree, twice, 1.0, 1.0).weight,
            pac_bayes(tree, alone.of_each[0], 1.0, 1.0).weight,
        )


def test_the_units_of_targets_do_not_matter():
    tree, X, _, numbers, _ = make_problem()
    stats, other = (measure_targets(tree, X, numbers * unit) for unit in (1.0, [1024.0, 0.125]))
    np.testing.assert_array_equal(stats.loss, other.loss)
    np.testing.assert_array_equal(stats.impurity, other.impurity)
    assert stats.impurity[0] == pytest.approx(len(X))
    np.testing.assert_allclose(stats.deviations, numbers.std(axis=0))
    assert measure_targets(tree, X, np.ones((24, 2))).deviations == [1.0, 1.0]
    assert count_targets(tree, X, np.eye(24, 2, dtype=int)).deviations == [1.0, 1.0]


def test_shapes_that_do_not_match_are_refused():
    tree, X, classes, numbers, _ = make_problem()
    classified, measured = count(tree, X, classes[:, 0], 2), measure(tree, X, numbers[:, 0])
    with pytest.raises(
        TypeError, match=r"NodeStats alone, or TargetStats alone, got \['NodeStats', 'Tar"
    ):
        SeveralStats((classified, measured))
    with pytest.raises(TypeError, match=r"got \[\]"):
        SeveralStats(())
    with pytest.raises(TypeError, match=r"of_each must be a tuple of statistics, .*, got 5"):
        SeveralStats(5)
    for others in (
        count(tree, X[1:], classes[1:, 0], 2),
        NodeStats(classified.counts[1:], classified.label[1:]),
    ):
        with pytest.raises(ValueError, match="the same rows in the same nodes"):
            SeveralStats((classified, others))
    stats = SeveralStats((classified, classified))
    with pytest.raises(ValueError, match="stats has 7 nodes, but the tree has 1 nodes"):
        stats.check_tree(grow_kd(X, max_depth=0))
    with pytest.raises(
        ValueError, match='loss must be "error" for a numeric target, got "log_loss"'
    ):
        pac_bayes(tree, SeveralStats((measured, measured)), 1.0, 1.0, loss="log_loss")
    with pytest.raises(ValueError, match="slopes must be None for several targets"):
        Voting("mean", 0.0, np.array([1, 0])).ballots(tree, stats)
    with pytest.raises(
        ValueError, match='kind must be "mean" for a numeric target, got "majority"'
    ):
        Voting().ballots(tree, SeveralStats((measured, measured)))
    assert isinstance(stats.take(np.array([0, 1])).of_each[1], NodeStats)
    assert isinstance(SeveralStats((measured,)).of_each[0], TargetStats)
