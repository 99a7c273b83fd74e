"""Sparse counts for many classes, which give the results of dense counts in all stages."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import NodeStats, PACBayesTreeClassifier, Voting, _core, load, pac_bayes, save
from certree.stats import SparseNodeStats
from certree.stats.nodes import count_by_leaf
from certree.stats.sparse import MANY_CLASSES
from certree.votes import DeferredVote, vote
from certree.weights.family import ValidationStatistics
from certree.weights.pac_bayes_posteriors import pac_bayes_family
from strategies import trees, trees_and_stats

VOTINGS = [Voting("mean", 0.0), Voting("mean", 0.7), Voting("majority")]


class DenseClassifier(PACBayesTreeClassifier):
    """The estimator with dense counts for any number of classes."""

    _takes_sparse_stats = False


def to_sparse(stats):
    """Convert dense counts to sparse ones."""
    node, classes = np.nonzero(stats.counts)
    begin = np.searchsorted(node, np.arange(len(stats.label) + 1))
    return SparseNodeStats(
        begin, classes, stats.counts[node, classes], stats.label, stats.n_classes
    )


def many_classes(n=900, k=MANY_CLASSES + 20, seed=0):
    random = np.random.default_rng(seed)
    centre = random.normal(size=(k, 3))
    y = np.concatenate([np.arange(k), random.integers(0, k, n - k)])
    return centre[y] + 0.4 * random.normal(size=(n, 3)), y


@given(trees(), st.integers(1, 5), st.integers(0, 60), st.booleans(), st.integers(0, 2**32 - 1))
def test_sparse_counts_equal_dense_counts(tree, n_classes, n, weighted, seed):
    random = np.random.default_rng(seed)
    X, y = random.integers(-3, 4, (n, 3)).astype(float), random.integers(0, n_classes, n)
    weight = random.random(n) * (random.random(n) < 0.8) if weighted else None
    leaf, y = tree.apply(X), y.astype(np.int32)
    found = SparseNodeStats.count(tree, leaf, y, weight, n_classes)
    table = count_by_leaf(tree, leaf, y, weight, n_classes)
    np.testing.assert_array_equal(found.counts, table.counts)
    np.testing.assert_allclose(found.counts, reference.count_classes(tree, X, y, n_classes, weight))
    np.testing.assert_array_equal(found.label, reference.label_nodes(tree, table.counts))
    assert (found.weight > 0).all()


@given(trees_and_stats(largest=10**6))
def test_sparse_statistics_equal_dense_statistics(tree_and_stats):
    tree, table = tree_and_stats
    entries = to_sparse(table)
    for name in ("n", "errors", "loss", "log_loss", "impurity"):
        expected = getattr(table, name)
        np.testing.assert_allclose(getattr(entries, name), expected, rtol=1e-9, atol=1e-9)
    for n_terms, empty_leaves in ((2, False), (3, True)):
        for found, expected in zip(
            entries.terms(tree, n_terms, empty_leaves),
            table.terms(tree, n_terms, empty_leaves),
            strict=True,
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    nodes = np.arange(tree.n_nodes)[::2]
    np.testing.assert_array_equal(entries.take(nodes).counts, table.take(nodes).counts)
    np.testing.assert_array_equal(entries.take(nodes).label, table.take(nodes).label)
    np.testing.assert_array_equal(entries.averages(tree, 0.3), table.averages(tree, 0.3))
    assert isinstance(entries.to_dense(), NodeStats)
    assert pickle.loads(pickle.dumps(entries)).n.tolist() == entries.n.tolist()


@given(trees_and_stats(), st.sampled_from(VOTINGS), st.floats(0, 3), st.data())
def test_deferred_votes_equal_votes_at_any_nodes(tree_and_stats, voting, alpha, data):
    tree, table = tree_and_stats
    weights = pac_bayes(tree, table, alpha, 0.1)
    whole, deferred = (
        vote(tree, table, weights, voting),
        vote(tree, to_sparse(table), weights, voting),
    )
    assert isinstance(deferred, DeferredVote)
    nodes = np.array(data.draw(st.lists(st.integers(0, tree.n_nodes - 1))), dtype=np.intp)
    np.testing.assert_array_equal(deferred.outcomes(nodes), whole.outcomes(nodes))
    np.testing.assert_array_equal(deferred.score, whole.score)
    np.testing.assert_array_equal(deferred.label, whole.label)


@given(
    trees_and_stats(),
    st.sampled_from(VOTINGS),
    st.sampled_from(["error", "log_loss"]),
    st.integers(0, 2**32 - 1),
)
def test_losses_from_sparse_counts_equal_those_from_dense_counts(
    tree_and_stats, voting, scoring, seed
):
    tree, table = tree_and_stats
    random = np.random.default_rng(seed)
    leaf = random.choice(np.flatnonzero(tree.is_leaf), 20).astype(np.int32)
    y = random.integers(0, table.n_classes, 20).astype(np.int32)
    validation = count_by_leaf(tree, leaf, y, None, table.n_classes)
    grid = np.array([[0.01, 0.0], [0.5, 0.2], [3.0, 0.0]])
    results = []
    for stats, validating in ((table, validation), (to_sparse(table), to_sparse(validation))):
        node_predictions = voting.ballots(tree, stats)
        family = pac_bayes_family(tree, stats)
        votes = ValidationStatistics(
            node_predictions.label, node_predictions.frequency, validating.table
        )
        results.append([family.compute_losses(grid, votes, scoring, 1)])
        if scoring == "log_loss":
            results[-1] += family.predict_validation(grid, votes, scoring, 1)
    for found, expected in zip(results[1], results[0], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"vote": "majority"},
        {"scoring": "error"},
        {"lambda_error": 1.0, "lambda_penalty": 0.5},
        {"grower": "kd", "search": "joint"},
    ],
    ids=str,
)
def test_an_estimator_with_sparse_counts_equals_that_with_dense_counts(parameters, tmp_path):
    X, y = many_classes()
    X[::17, 0] = np.nan if "grower" not in parameters else 0.0
    model = PACBayesTreeClassifier(random_state=0, **parameters).fit(X, y)
    twin = DenseClassifier(random_state=0, **parameters).fit(X, y)
    assert isinstance(model.stats_, SparseNodeStats)
    assert isinstance(twin.stats_, NodeStats)
    rows = X.copy()
    rows[::5, 1] = np.nan if "grower" not in parameters else 1.0
    np.testing.assert_allclose(model.predict_proba(rows), twin.predict_proba(rows), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), twin.predict(X))
    np.testing.assert_allclose(model.feature_importances_, twin.feature_importances_)
    assert model.export_text() == twin.export_text()
    smaller = model.compact(0.1)
    expected = twin.compact(0.1).predict_proba(X)
    np.testing.assert_allclose(smaller.predict_proba(X), expected, atol=1e-12)
    for number, fitted in enumerate((model, smaller)):
        save(fitted, tmp_path / f"{number}.certree")
        again = load(tmp_path / f"{number}.certree")
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_few_classes_have_dense_counts():
    X, y = many_classes(k=MANY_CLASSES)
    assert isinstance(PACBayesTreeClassifier().fit(X, y).stats_, NodeStats)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"begin": [0, 2, 1, 3]}, "begin must ascend from 0 to 3, the number of entries"),
        ({"begin": [0, 2, 3, 4]}, "begin must ascend from 0 to 3, the number of entries"),
        ({"begin": []}, "begin must ascend from 0"),
        ({"classes": [0, 2, 1]}, r"classes must lie in 0 \.\. 1"),
        ({"classes": [1, 0, 1]}, "classes must ascend in every node"),
        ({"classes": [0, 0, 1]}, "classes must ascend in every node"),
        ({"weight": [1.0, 0.0, 1.0]}, "weight must be positive"),
        ({"weight": [1.0, np.nan, 1.0]}, "weight must be positive"),
        ({"weight": [1e280, 1e280, 1.0]}, "sum to at most 1e"),
        ({"label": [0, 1]}, "label must have shape"),
        ({"label": [0, 1, 2]}, r"label must lie in 0 \.\. 1"),
        ({"n_classes": 0}, "n_classes must be an integer"),
    ],
)
def test_sparse_counts_that_do_not_match_are_refused(changes, message):
    plain = {
        "begin": [0, 2, 2, 3],
        "classes": [0, 1, 1],
        "weight": [1.0, 1.0, 1.0],
        "label": [0, 0, 1],
        "n_classes": 2,
    }
    assert SparseNodeStats(**plain).counts.tolist() == [[1, 1], [0, 0], [0, 1]]
    with pytest.raises(ValueError, match=message):
        SparseNodeStats(**(plain | changes))


def test_slopes_take_two_classes():
    X, y = many_classes()
    model = PACBayesTreeClassifier().fit(X, y)
    voting = Voting("mean", slopes=np.array([1, 0, 0]))
    with pytest.raises(
        ValueError, match="must be None for more than two classes, got constraints for 120 classes"
    ):
        vote(model.tree_, model.stats_, model.weights_, voting)


def test_the_core_checks_sparse_counts():
    left = np.array([1, -1, -1], dtype=np.int32)
    begin, classes = np.array([0, 2, 3, 4]), np.array([0, 1, 0, 1], dtype=np.int32)
    weight, ones = np.ones(4), np.ones(3)
    nodes = np.array([0, 2], dtype=np.int32)

    def push(begin=begin, classes=classes, n_classes=2, nodes=nodes):
        entries = (begin, classes, weight, n_classes)
        return _core.score_some_nodes(left, ones, None, None, (entries, 0.0, 1.0), n_classes, nodes)

    assert push().tolist() == [[0.5, 0.5], [0.5, 1.5]]
    for changes, message in (
        ({"begin": begin[:3]}, "begin has length 3, expected 4"),
        ({"begin": begin[::-1].copy()}, "begin must ascend"),
        ({"begin": begin + 1}, "begin must ascend"),
        ({"classes": classes + np.int32(1)}, r"classes must lie in 0 \.\. 1"),
        ({"n_classes": 0}, "frequency has no classes"),
        ({"nodes": nodes[::-1].copy()}, "nodes must be ascending and distinct"),
        ({"nodes": nodes + np.int32(1)}, r"nodes must lie in 0 \.\. 2"),
    ):
        with pytest.raises(ValueError, match=message):
            push(**changes)
