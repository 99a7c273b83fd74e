"""Counts without zeros, for many classes: all stages say what they say of tables."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import NodeStats, PACBayesTreeClassifier, Voting, _core, load, pac_bayes, save
from certree.stats import SparseNodeStats
from certree.stats.nodes import counted
from certree.stats.sparse import MANY_CLASSES
from certree.votes import DeferredVote, vote
from certree.weights.family import JudgedVotes
from certree.weights.pac_bayes_posteriors import pac_bayes_family
from strategies import trees, trees_and_stats

VOTINGS = [Voting("mean", 0.0), Voting("mean", 0.7), Voting("majority")]


class OfTables(PACBayesTreeClassifier):
    """The same estimator, with a table whatever the number of classes."""

    _takes_sparse_stats = False


def sparse(stats):
    """The entries of a table that are not 0."""
    node, of_class = np.nonzero(stats.counts)
    begin = np.searchsorted(node, np.arange(len(stats.label) + 1))
    return SparseNodeStats(
        begin, of_class, stats.counts[node, of_class], stats.label, stats.n_classes
    )


def many_classes(n=900, k=MANY_CLASSES + 20, seed=0):
    random = np.random.default_rng(seed)
    centre = random.normal(size=(k, 3))
    y = np.concatenate([np.arange(k), random.integers(0, k, n - k)])
    return centre[y] + 0.4 * random.normal(size=(n, 3)), y


@given(trees(), st.integers(1, 5), st.integers(0, 60), st.booleans(), st.integers(0, 2**32 - 1))
def test_counting_gives_the_entries_of_the_table(tree, n_classes, n, weighted, seed):
    random = np.random.default_rng(seed)
    X, y = random.integers(-3, 4, (n, 3)).astype(float), random.integers(0, n_classes, n)
    weight = random.random(n) * (random.random(n) < 0.8) if weighted else None
    leaf, y = tree.apply(X), y.astype(np.int32)
    found = SparseNodeStats.count(tree, leaf, y, weight, n_classes)
    table = counted(tree, leaf, y, weight, n_classes)
    np.testing.assert_array_equal(found.counts, table.counts)
    np.testing.assert_allclose(found.counts, reference.counts(tree, X, y, n_classes, weight))
    np.testing.assert_array_equal(found.label, reference.majority(tree, table.counts))
    assert (found.weight > 0).all()


@given(trees_and_stats(largest=10**6))
def test_entries_say_what_their_table_says(tree_and_stats):
    tree, table = tree_and_stats
    entries = sparse(table)
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
    np.testing.assert_array_equal(entries.at(nodes).counts, table.at(nodes).counts)
    np.testing.assert_array_equal(entries.at(nodes).label, table.at(nodes).label)
    np.testing.assert_array_equal(entries.averages(tree, 0.3), table.averages(tree, 0.3))
    assert isinstance(entries.dense(), NodeStats)
    assert pickle.loads(pickle.dumps(entries)).n.tolist() == entries.n.tolist()


@given(trees_and_stats(), st.sampled_from(VOTINGS), st.floats(0, 3), st.data())
def test_votes_are_made_for_the_nodes_that_are_asked_for(tree_and_stats, voting, alpha, data):
    tree, table = tree_and_stats
    weights = pac_bayes(tree, table, alpha, 0.1)
    whole, deferred = vote(tree, table, weights, voting), vote(tree, sparse(table), weights, voting)
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
def test_judging_by_entries_gives_the_losses_of_tables(tree_and_stats, voting, scoring, seed):
    tree, table = tree_and_stats
    random = np.random.default_rng(seed)
    leaf = random.choice(np.flatnonzero(tree.is_leaf), 20).astype(np.int32)
    y = random.integers(0, table.n_classes, 20).astype(np.int32)
    judging = counted(tree, leaf, y, None, table.n_classes)
    grid = np.array([[0.01, 0.0], [0.5, 0.2], [3.0, 0.0]])
    answers = []
    for stats, judges in ((table, judging), (sparse(table), sparse(judging))):
        ballots = voting.ballots(tree, stats)
        family = pac_bayes_family(tree, stats)
        votes = JudgedVotes(ballots.label, ballots.frequency, judges.table)
        answers.append([family.losses(grid, votes, scoring, 1)])
        if scoring == "log_loss":
            answers[-1] += family.judged_votes(grid, votes, scoring, 1)
    for found, expected in zip(answers[1], answers[0], strict=True):
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
def test_an_estimator_of_many_classes_is_that_of_tables(parameters, tmp_path):
    X, y = many_classes()
    X[::17, 0] = np.nan if "grower" not in parameters else 0.0
    model = PACBayesTreeClassifier(random_state=0, **parameters).fit(X, y)
    twin = OfTables(random_state=0, **parameters).fit(X, y)
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
    for number, one in enumerate((model, smaller)):
        save(one, tmp_path / f"{number}.certree")
        again = load(tmp_path / f"{number}.certree")
        np.testing.assert_array_equal(again.predict_proba(X), one.predict_proba(X))
        np.testing.assert_array_equal(again.predict(X), one.predict(X))


def test_few_classes_have_a_table():
    X, y = many_classes(k=MANY_CLASSES)
    assert isinstance(PACBayesTreeClassifier().fit(X, y).stats_, NodeStats)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"begin": [0, 2, 1, 3]}, "begin must rise from 0 to the number of entries, 3"),
        ({"begin": [0, 2, 3, 4]}, "begin must rise from 0 to the number of entries, 3"),
        ({"begin": []}, "begin must rise from 0"),
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
def test_entries_that_do_not_go_together_are_refused(changes, message):
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
    with pytest.raises(ValueError, match="slopes take numbers or two classes, got 120 classes"):
        vote(model.tree_, model.stats_, model.weights_, voting)


def test_the_doors_check_entries():
    left = np.array([1, -1, -1], dtype=np.int32)
    begin, classes = np.array([0, 2, 3, 4]), np.array([0, 1, 0, 1], dtype=np.int32)
    weight, ones = np.ones(4), np.ones(3)
    nodes = np.array([0, 2], dtype=np.int32)

    def pushed(begin=begin, classes=classes, n_classes=2, nodes=nodes):
        entries = (begin, classes, weight, n_classes)
        return _core.push_down_to(left, ones, None, None, (entries, 0.0, 1.0), n_classes, nodes)

    assert pushed().tolist() == [[0.5, 0.5], [0.5, 1.5]]
    for changes, message in (
        ({"begin": begin[:3]}, "begin has length 3, expected 4"),
        ({"begin": begin[::-1].copy()}, "begin must rise"),
        ({"begin": begin + 1}, "begin must rise"),
        ({"classes": classes + np.int32(1)}, r"classes must lie in 0 \.\. 1"),
        ({"n_classes": 0}, "frequency has no classes"),
        ({"nodes": nodes[::-1].copy()}, "nodes must be ascending and distinct"),
        ({"nodes": nodes + np.int32(1)}, r"nodes must lie in 0 \.\. 2"),
    ):
        with pytest.raises(ValueError, match=message):
            pushed(**changes)
