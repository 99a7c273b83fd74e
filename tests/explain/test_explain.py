"""Explanations against the mean over all prunings, and rules against rows that are asked one by one."""

import os
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

import certree
import reference
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeClassifier,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
    load,
    save,
)
from certree.ensembles import ConformalBandRegressor
from certree.explain import (
    Condition,
    Explanation,
    Rule,
    Rules,
    banzhaf_values,
    shapley_values,
)
from certree.explain.contributions import compute_contributions
from certree.explain.path import Explainer
from certree.explain.rules import extract_rules
from certree.interface.formatting import format_bound
from certree.stats import SparseNodeStats
from certree.votes import Voting
from strategies import temperatures, trees_and_stats, trees_and_targets

KINDS = st.sampled_from([Voting("majority"), Voting("mean"), Voting("mean", 1.5)])
BOOSTED = {"max_iter": 12, "random_state": 0}


def values_of(tree, stats, voting):
    """What the nodes vote for, by loops."""
    if voting.kind == "majority":
        return np.eye(stats.n_classes)[stats.label]
    if voting.smoothing == 0:
        return reference.compute_frequencies(tree, stats.counts)
    return reference.smooth_frequencies(tree, stats.counts, voting.smoothing)


def sparse(stats):
    node, classes = np.nonzero(stats.counts)
    begin = np.searchsorted(node, np.arange(len(stats.counts) + 1))
    weight = stats.counts[node, classes]
    return SparseNodeStats(begin, classes, weight, stats.label, stats.n_classes)


def rows_like(tree, seed, n=8):
    """Rows near the thresholds that lack values, and a tree in which some of these go both ways."""
    random = np.random.default_rng(seed)
    X = random.integers(-4, 6, (n, tree.n_features)).astype(float)
    X[random.random(X.shape) < 0.3] = np.nan
    both = (random.random(tree.n_nodes) < 0.5) & ~tree.is_leaf
    return replace(tree, missing_both=both), X


@given(
    trees_and_stats(largest=1000, sets=True, max_inner=4),
    temperatures(10),
    KINDS,
    st.integers(0, 2**32),
)
def test_contributions_are_the_mean_change_over_all_prunings(tree_and_stats, lam, voting, seed):
    tree, stats = tree_and_stats
    tree, X = rows_like(tree, seed)
    weights = certree.pac_bayes(tree, stats, lam, 0.1)
    every, masses, _ = reference.compute_pac_bayes_posterior(tree, stats.n, stats.errors, lam, 0.1)
    value = values_of(tree, stats, voting)
    ballot, node_predictions = (
        certree.vote(tree, stats, weights, voting),
        voting.ballots(tree, stats),
    )
    base, added = compute_contributions(tree, weights, ballot, node_predictions, stats.n, X, 1)
    np.testing.assert_allclose(base, value[0], atol=1e-12)
    for x, parts in zip(X, added, strict=True):
        expected = reference.compute_contributions(tree, every, masses, value, stats.n, x)
        np.testing.assert_allclose(parts, expected, atol=1e-10)
    blended = tree.blend(X, stats.n, ballot.score, 1)
    np.testing.assert_allclose(base + added.sum(axis=2), blended, atol=1e-12)


@given(
    trees_and_stats(n_classes=4, largest=100, sets=True),
    KINDS,
    st.integers(0, 2**32),
    st.booleans(),
)
def test_many_classes_are_explained_as_few_are(tree_and_stats, voting, seed, complete):
    tree, stats = tree_and_stats
    tree, X = rows_like(tree, seed, n=2)
    X = np.nan_to_num(X) if complete else X
    answers = []
    for one in (stats, sparse(stats)):
        weights = certree.pac_bayes(tree, one, 0.3, 0.1)
        ballot, node_predictions = (
            certree.vote(tree, one, weights, voting),
            voting.ballots(tree, one),
        )
        answers.append(compute_contributions(tree, weights, ballot, node_predictions, one.n, X, 1))
    for found, expected in zip(*answers, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@given(trees_and_targets(max_inner=4), temperatures(10), st.integers(0, 2**32))
def test_contributions_to_numbers_are_the_mean_change_over_all_prunings(tree_and_stats, lam, seed):
    tree, stats = tree_and_stats
    tree, X = rows_like(tree, seed)
    weights = certree.pac_bayes(tree, stats, lam, 0.1)
    every, masses, _ = reference.compute_pac_bayes_posterior(
        tree, stats.n, stats.sse / 0.5, lam, 0.1
    )
    value = reference.smooth_means(tree, stats.n, stats.mean, 1.0)[:, None]
    how = Voting("mean", 1.0)
    ballot, node_predictions = certree.vote(tree, stats, weights, how), how.ballots(tree, stats)
    _, added = compute_contributions(tree, weights, ballot, node_predictions, stats.n, X, 1)
    for x, parts in zip(X, added, strict=True):
        expected = reference.compute_contributions(tree, every, masses, value, stats.n, x)
        np.testing.assert_allclose(parts, expected, rtol=1e-9, atol=1e-9)


# -- estimators ------------------------------------------------------------------------------------


def mixed(n=400, n_classes=2, seed=0):
    """Numbers and categories, cells of which are missing, and classes or numbers."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, n),
            "job": random.choice(["clerk", "<b>boss</b>", "nurse", None], n),
            "hours": random.normal(40, 8, n),
        }
    )
    score = (frame["age"] > 45) + (frame["job"] == "clerk") + random.normal(0, 0.5, n)
    frame.loc[random.random(n) < 0.1, "hours"] = np.nan
    names = np.array(["low", "middle", "high", "top"])[:n_classes]
    return frame, names[
        np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    ]


CLASSIFIERS = [
    PACBayesTreeClassifier(random_state=0),
    PACBayesTreeClassifier("kd", vote="majority", random_state=0),
    PACBayesTreeClassifier("dyadic", lambda_error=0.5, lambda_penalty=0.1),
    PrunedTreeClassifier(random_state=0),
    HelmboldSchapireTreeClassifier(random_state=0),
    CertifiedTreeClassifier(random_state=0),
    CertifiedTreeClassifier(selection="vote", vote="majority", random_state=0),
    TreeForestClassifier(10, random_state=0),
    BoostedTreesClassifier(**BOOSTED),
    AdaBoostTreeClassifier(n_estimators=20),
    NaiveBayesClassifier(),
]
REGRESSORS = [
    CertifiedTreeRegressor(random_state=0),
    PACBayesTreeRegressor(random_state=0),
    PrunedTreeRegressor(random_state=0),
    TreeForestRegressor(10, random_state=0),
    BoostedTreesRegressor(**BOOSTED),
    BoostedTreesRegressor("poisson", **BOOSTED),
    ConformalBandRegressor(BoostedTreesRegressor("quantile", **BOOSTED), random_state=0),
]


def expected_of(model, X):
    """What contributions must sum to, on the scale of the model."""
    if isinstance(model, TreeForestClassifier):
        mean = model._average_trees(X)
        return np.column_stack([1 - mean, mean]) if mean.shape[1] == 1 else mean
    if isinstance(model, NaiveBayesClassifier):
        logs = model.predict_log_proba(X)
        return np.diff(logs) if logs.shape[1] == 2 else logs
    if hasattr(model, "decision_function"):
        return model.decision_function(X).reshape(len(X), -1)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    if isinstance(model, ConformalBandRegressor):
        return np.column_stack([one.predict(X) for one in model.estimators_])
    predicted = model.predict(X)[:, None]
    return np.log(predicted) if getattr(model, "loss", "") == "poisson" else predicted


def assert_sums(model, X):
    explanation = model.explain(X)
    expected = expected_of(model, X)
    found = explanation.prediction
    np.testing.assert_array_equal(found, explanation.base + explanation.contributions.sum(axis=2))
    if isinstance(model, NaiveBayesClassifier) and expected.shape[1] > 1:
        found = found - found[:, :1] + expected[:, :1]  # what all classes share is free
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-12)
    return explanation


def lacking_more(X, seed=1):
    """The same rows, more of whose cells are missing."""
    lacks = np.random.default_rng(seed).random(X.shape) < 0.2
    return X.mask(lacks) if isinstance(X, pd.DataFrame) else np.where(lacks, np.nan, X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_contributions_sum_to_what_is_predicted(model, n_classes, tmp_path):
    if n_classes > 2 and isinstance(model, HelmboldSchapireTreeClassifier):
        return
    X, y = mixed(n_classes=n_classes)
    model.fit(X, y)
    explanation = assert_sums(model, X)
    assert explanation.feature_names == ("age", "job", "hours")
    assert set(explanation.output_names) <= set(np.unique(y).tolist())
    assert np.abs(explanation.contributions).max() > 0.01
    assert_sums(model, lacking_more(X))
    save(model, tmp_path / "model.certree")
    again = load(tmp_path / "model.certree").explain(X)
    np.testing.assert_array_equal(again.contributions, explanation.contributions)
    np.testing.assert_array_equal(again.base, explanation.base)


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_contributions_sum_to_numbers(model, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model.fit(X, y)
    explanation = assert_sums(model, X)
    assert_sums(model, lacking_more(X))
    assert explanation.scale == (
        "raw score" if getattr(model, "loss", "") == "poisson" else "target"
    )
    if isinstance(model, ConformalBandRegressor):
        names = ("quantile 0.05", "quantile 0.5", "quantile 0.95")
        assert explanation.output_names == names
        np.testing.assert_allclose(explanation.prediction[:, 1], model.predict(X))
        return
    assert explanation.output_names == ("prediction",)
    save(model, tmp_path / "model.certree")
    again = load(tmp_path / "model.certree").explain(X)
    np.testing.assert_array_equal(again.contributions, explanation.contributions)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_one_class_is_explained_by_the_base(model):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model.fit(X, ["only"] * 40)
    explanation = model.explain(X)
    assert explanation.output_names == ("only",)
    if explanation.scale == "probability":
        np.testing.assert_array_equal(explanation.prediction, 1)
    np.testing.assert_allclose(explanation.contributions, 0, atol=1e-15)


def test_a_forest_goes_from_mean_to_mean():
    X, y = load_iris(return_X_y=True)
    model = TreeForestClassifier(5, bootstrap=False, random_state=0).fit(X, y)
    # Without bags every root holds all rows.
    np.testing.assert_allclose(model.explain(X).base, np.bincount(y) / len(y), atol=1e-6)
    tree = model.trees_.tree(0)
    value = tree.value
    leaf = tree.apply(X)
    for v in range(tree.n_nodes):
        inside = np.array([v in reference.find_path(tree, one) for one in leaf])
        np.testing.assert_allclose(value[v], value[leaf[inside]].mean(axis=0), atol=1e-12)


def test_a_learner_that_decides_alone_explains_alone():
    X, y = load_iris(return_X_y=True)
    model = AdaBoostTreeClassifier(n_estimators=5, max_depth=9).fit(X, y)
    assert np.isinf(model.estimator_weights_[-1])
    assert_sums(model, X)


def test_what_is_not_exact_is_not_explained():
    X, y = load_iris(return_X_y=True)
    decorated = DecoratedTreeClassifier(random_state=0).fit(X, y)
    adaboost = AdaBoostTreeClassifier(DecisionTreeClassifier(max_depth=1)).fit(X, y)
    for model, names in (
        (decorated, ("explain", "rules")),
        (adaboost, ("explain",)),
        (TreeForestClassifier(), ("rules",)),
        (BoostedTreesClassifier(), ("rules",)),
        (ConformalBandRegressor(DecisionTreeClassifier()), ("explain",)),
    ):
        for name in names:
            assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="has no attribute 'explain'"):
        decorated.explain(X)


def test_preprocessed_features_are_those_that_are_explained():
    from sklearn.decomposition import PCA

    X, y = load_iris(return_X_y=True)
    model = CertifiedTreeClassifier(preprocessor=PCA(2), random_state=0).fit(X, y)
    explanation = assert_sums(model, X)
    np.testing.assert_array_equal(explanation.values, model.preprocessor_.transform(X))


DATA = os.environ.get("CERTREE_DATA")
PATHS = sorted(Path(DATA).rglob("*.parquet")) if DATA else []
TABLES = [pytest.param(path, id=path.stem) for path in PATHS]


@pytest.mark.skipif(not DATA, reason="CERTREE_DATA names no directory")
@pytest.mark.parametrize("path", TABLES)
def test_contributions_sum_to_predictions_on_every_table(path):
    table = pd.read_parquet(path)
    table = table.sample(min(1000, len(table)), random_state=0)
    X, y = table.iloc[:, :-1], table.iloc[:, -1]
    numbers = y.dtype.kind == "f" or path.stem in NUMERIC
    model = PACBayesTreeRegressor if numbers else PACBayesTreeClassifier
    settings = {"lambda_error": 1.0, "lambda_penalty": 0.1, "prior": "leaves"}
    fitted = model(**settings, random_state=0).fit(X, y)
    assert_sums(fitted, X)
    assert_sums(fitted, lacking_more(X))


NUMERIC = ("abalone", "bike_sharing", "california_housing", "diamonds")


# -- the type --------------------------------------------------------------------------------------


def explained(model=None, n_classes=2):
    X, y = mixed(n_classes=n_classes)
    return (model or PACBayesTreeClassifier(random_state=0)).fit(X, y).explain(X)


def test_values_are_as_they_were_given():
    X, y = mixed()
    fitted = PACBayesTreeClassifier(random_state=0).fit(X, y)
    new = X.assign(job="astronaut")
    explanation = fitted.explain(new)
    assert explanation.values[:, 1].tolist() == ["astronaut"] * len(X)
    assert explanation.values[:, 0].tolist() == X["age"].tolist()
    for other in (pl.from_pandas(X), X.assign(job=X["job"].astype("category"))):
        found = PACBayesTreeClassifier(random_state=0).fit(other, y).explain(other)
        np.testing.assert_array_equal(found.contributions, fitted.explain(X).contributions)
        known = X["job"].notna().to_numpy()
        assert found.values[known, 1].tolist() == X["job"][known].tolist()
    table = load_iris().data
    given = PACBayesTreeClassifier(random_state=0).fit(table, load_iris().target).explain(table)
    np.testing.assert_array_equal(given.values, table)
    assert given.feature_names == ("x[0]", "x[1]", "x[2]", "x[3]")


@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesClassifier(**BOOSTED),
        AdaBoostTreeClassifier(n_estimators=5),
        NaiveBayesClassifier(),
        TreeForestClassifier(4, random_state=0),
        CertifiedTreeClassifier(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_positive_class_is_explained(model):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 3)), 2)
    is_default = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=300) > 1
    names = np.where(is_default, "default", "paid")
    model = clone(model).fit(X, names)
    explain = [model.explain]
    if hasattr(model, "trees_") or hasattr(model, "tree_"):
        explain.append(partial(shapley_values, model, background=X[:50]))
        explain.append(partial(banzhaf_values, model, background=X[:50]))
    for function in explain:
        found, both = function(X[:20], pos_label="default"), function(X[:20])
        other = function(X[:20], pos_label="paid")
        assert (found.output_names, other.output_names) == (("default",), ("paid",))
        assert (found.scale, found.additive) == (both.scale, both.additive)
        np.testing.assert_array_equal(other.contributions[:, 0], both.contributions[:, -1])
        np.testing.assert_allclose(found.contributions, -other.contributions, atol=1e-12)
        constant = 1.0 if found.scale == "probability" else 0.0
        np.testing.assert_allclose(found.base, constant - other.base, atol=1e-12)
        title = "P(default)" if found.scale == "probability" else "score of default"
        assert title in str(found)
    # Fits of other models draw rows or break ties by the order of the classes.
    if isinstance(model, AdaBoostTreeClassifier | NaiveBayesClassifier):
        exchanged = clone(model).fit(X, np.where(is_default, "w default", "v paid")).explain(X[:20])
        found = model.explain(X[:20], pos_label="default")
        np.testing.assert_allclose(found.contributions, exchanged.contributions, atol=1e-9)
        np.testing.assert_allclose(found.base, exchanged.base, atol=1e-9)
    with pytest.raises(ValueError, match="pos_label must be one of the classes 'default' and"):
        model.explain(X, pos_label="Default")


def test_a_positive_class_needs_two_classes():
    X, y = load_iris(return_X_y=True)
    for target, found in ((y, "3 classes"), (np.array([*"abc"])[y], "3 classes")):
        model = BoostedTreesClassifier(max_iter=2).fit(X, target)
        with pytest.raises(ValueError, match=f"pos_label must be None unless .* {found}"):
            model.explain(X, pos_label=target[0])
    numbers = BoostedTreesRegressor(max_iter=2).fit(X, y)
    with pytest.raises(ValueError, match="pos_label=1 and a target without classes"):
        numbers.explain(X, pos_label=1)
    several = TreeForestClassifier(2, random_state=0).fit(X, np.column_stack([y > 0, y > 1]))
    with pytest.raises(ValueError, match="pos_label needs a model with one target"):
        several.explain(X, pos_label=True)


def test_rows_can_be_picked():
    explanation = explained()
    assert len(explanation) == 400
    for rows, n in ((3, 1), (-1, 1), (slice(2, 7), 5), (np.arange(400) < 9, 9), ([4, 4], 2)):
        part = explanation[rows]
        assert len(part) == n
        expected = explanation.prediction[rows].reshape(n, -1)
        np.testing.assert_array_equal(part.prediction, expected)
        assert part.values.shape == (n, 3)
    with pytest.raises(IndexError):
        explanation[400]
    assert sum(1 for _ in explanation[:3]) == 3


def test_an_explanation_cannot_be_changed():
    explanation = explained()
    for name in ("base", "contributions", "values"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(explanation, name)[...] = 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_frame_holds_all_numbers(n_classes):
    explanation = explained(n_classes=n_classes)[:7]
    frame = explanation.to_frame()
    assert [*frame.columns] == ["row", "output", "feature", "value", "contribution"]
    assert len(frame) == 7 * n_classes * 4
    sums = frame.groupby(["row", "output"], sort=False)["contribution"].sum()
    np.testing.assert_allclose(sums.to_numpy().reshape(7, n_classes), explanation.prediction)
    one = frame[(frame["row"] == 2) & (frame["feature"] == "job")]
    assert one["value"].tolist() == [explanation.values[2, 1]] * n_classes


def test_words_name_what_matters_most():
    values = np.array([[39.0, "clerk", None]], dtype=object)
    added = np.array([[[-0.1, -0.3, 0.0], [0.1, 0.3, 0.0]]])
    base = np.array([0.75, 0.25])
    one = Explanation(base, added, ["age", "job", "hours"], ["no", "yes"], values, "probability")
    assert str(one) == (
        "             P(yes)\n"
        "base          0.250\n"
        "job = clerk  +0.300\n"
        "age = 39     +0.100\n"
        "prediction    0.650"
    )


def test_words_sum_up_the_rest_and_count_the_rows_that_are_left_out():
    random = np.random.default_rng(0)
    added = random.normal(size=(9, 3, 30))
    many = Explanation(
        np.zeros(3), added, [f"f{j}" for j in range(30)], ["a", "b", "c"], added[:, 0], "raw score"
    )
    first = str(many).split("\n\n")[0].splitlines()
    assert first[0].split(maxsplit=2)[:2] == ["row", "0"]
    assert len(first) == 14
    assert first[-2].startswith("20 other features")
    assert str(many).endswith("... and 4 more rows")
    shown = np.array([line.split()[-1] for line in first[1:-1]], dtype=float)
    assert shown.sum() == pytest.approx(float(first[-1].split()[-1]), abs=0.01)
    missing = Explanation([0.0], [[[1.5]]], ["f"], ["prediction"], [[np.nan]], "target")
    assert "f = missing        +1.5" in str(missing)


class Tags(HTMLParser):
    """Whether all that is opened is closed, and what is written."""

    def __init__(self, page):
        super().__init__()
        self.open, self.words = [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):  # noqa: ARG002 -- so the parser calls it
        assert tag in {"table", "caption", "thead", "tbody", "tr", "th", "td", "div", "p"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_pages_are_escaped_and_whole():
    explanation = explained()
    words = Tags(explanation._repr_html_()).words
    assert any("<b>boss</b>" in word for word in words)
    assert words[-1] == "... and 395 more rows"
    model = PACBayesTreeClassifier(random_state=0).fit(*mixed())
    assert Tags(model.rules(5)._repr_html_()).words[:4] == ["if", "then", "probability", "rows"]
    hostile = Rule((Condition("<i>", high=1.0),), "</td>", 0.5, 3.0, 1)
    words = ["<i> <= 1", "</td>", "0.50", "3"]
    assert Tags(Rules((hostile,))._repr_html_()).words[4:] == words
    numbers = PrunedTreeRegressor(random_state=0).fit(*load_diabetes(return_X_y=True))
    assert Tags(numbers.rules(5)._repr_html_()).words[:4] == ["rule", "if", "then", "rows"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": "odds"}, "scale must be one of"),
        ({"base": [0.5]}, r"base must have shape \(2,\), got \(1,\)"),
        ({"feature_names": ["a"]}, r"contributions must have shape \(1, 2, 1\), got \(1, 2, 3\)"),
        ({"values": [[1.0]]}, r"values must have shape \(1, 3\), got \(1, 1\)"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    given = {
        "base": [0.5, 0.5],
        "contributions": np.zeros((1, 2, 3)),
        "feature_names": ["a", "b", "c"],
        "output_names": [0, 1],
        "values": np.zeros((1, 3)),
        "scale": "probability",
    }
    with pytest.raises(ValueError, match=message):
        Explanation(**(given | changes))


# -- rules -----------------------------------------------------------------------------------------


def holds(condition, value):
    """Whether a value satisfies a condition."""
    if pd.isna(value):
        return condition.missing
    if condition.categories is not None:
        return (value in condition.categories) != condition.excluded
    return condition.low < value <= condition.high


def satisfied(rules, row):
    """The rules that a row satisfies, given by its values by name."""
    return [rule for rule in rules if all(holds(one, row[one.feature]) for one in rule.conditions)]


@given(
    trees_and_stats(largest=1000, sets=True, max_inner=6),
    st.integers(1, 8),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_every_row_satisfies_one_rule(tree_and_stats, max_leaves, seed, named):
    tree, stats = tree_and_stats
    X = rows_like(tree, seed, 30)[1]
    names = ["a", "b", "c"]
    sets = [None, tuple(range(-0, 6)), None] if named else None
    if named:  # of the categories that there are
        X[:, 1] = np.where(X[:, 1] >= 0, X[:, 1], np.nan)
    weights = certree.pac_bayes(tree, stats, 0.01, 0.0)
    ballot = certree.vote(tree, stats, weights)
    explainer = Explainer(
        tree, stats.n, weights, names, stats.label.__getitem__, sets, shows_missing=True
    )

    def told(outcome):
        return int(outcome.argmax()), float(outcome.max())

    rules = extract_rules(explainer, ballot, told, max_leaves)
    assert len(rules) <= max_leaves
    assert sum(rule.training_rows for rule in rules) == pytest.approx(stats.n[0])
    for x, leaf in zip(X, tree.apply(X), strict=True):
        (rule,) = satisfied(rules, dict(zip(names, x, strict=True)))
        assert rule.node in reference.find_path(tree, leaf)
    for rule in rules:
        expected = reference.compute_outcome_below(tree, ballot.score, stats.n, rule.node)
        assert rule.probability == pytest.approx(expected.max())
        if tree.is_leaf[rule.node]:
            assert (rule.prediction, rule.probability) == told(ballot.score[rule.node])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("grower", ["cart", "kd"])
def test_rules_predict_what_the_model_does(grower, n_classes):
    X, y = mixed(n_classes=n_classes)
    X["hours"] = X["hours"].fillna(40.0)
    X["job"] = X["job"].fillna("none")
    model = PACBayesTreeClassifier(grower, lambda_error=0.5, lambda_penalty=0.01).fit(X, y)
    rules = model.rules(10_000)
    assert len(rules) == model.get_n_leaves()
    shares, classes = model.predict_proba(X), model.predict(X)
    for i in range(len(X)):
        (rule,) = satisfied(rules, X.iloc[i])
        assert rule.node == model.apply(X.iloc[[i]])[0]
        assert rule.prediction == classes[i]
        assert rule.probability == shares[i].max()


def test_a_hidden_part_predicts_the_mean_over_its_rows():
    X, y = load_diabetes(return_X_y=True)
    model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    (rule,) = model.rules(1)
    assert rule.prediction == pytest.approx(model.predict(X).mean())
    assert (str(rule), rule.probability) == (f"all rows: {rule.prediction:.6g} (442 rows)", None)
    for rule in model.rules(5):
        names = [f"x[{j}]" for j in range(10)]
        inside = [bool(satisfied([rule], dict(zip(names, x, strict=True)))) for x in X]
        assert rule.training_rows == sum(inside)
        assert rule.prediction == pytest.approx(model.predict(X[inside]).mean())


def test_conditions_on_a_feature_are_one():
    X = np.repeat(np.arange(8.0), 20)[:, None]
    y = np.isin(X[:, 0], [3, 4]).astype(int)
    model = PrunedTreeClassifier(DecisionTreeClassifier(), alpha=0.0).fit(X, y)
    assert [str(rule) for rule in model.rules()] == [
        "R1: if x[0] <= 2.5 then 0 (probability 1.00, 60 rows)",
        "R2: if 2.5 < x[0] <= 4.5 then 1 (probability 1.00, 40 rows)",
        "R3: if x[0] > 4.5 then 0 (probability 1.00, 60 rows)",
    ]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Condition("age", high=30.0), "age <= 30"),
        (Condition("age", low=30.0, missing=True), "age > 30 (or missing)"),
        (Condition("age", 3.0, 5.0), "3 < age <= 5"),
        (Condition("age", 5.0, 3.0, missing=True), "age is missing"),
        (Condition("job", categories=("a", "b")), "job in {a, b}"),
        (Condition("job", categories=("a",), excluded=True), "job not in {a}"),
        (
            Condition("job", categories=("a",), excluded=True, missing=True),
            "job not in {a} (or missing)",
        ),
        (Condition("job", categories=(), missing=True), "job is missing"),
        (Condition("job", categories=(), excluded=True), "job is not missing"),
    ],
)
def test_conditions_are_read_aloud(condition, words):
    assert str(condition) == words


def test_rules_are_a_sequence_and_a_frame():
    X, y = mixed()
    rules = PACBayesTreeClassifier(random_state=0).fit(X, y).rules(6)
    assert len(rules) == 6
    assert isinstance(rules[1:3], Rules)
    assert str(rules[1:3]) == f"{rules[1]}\n{rules[2]}"
    frame = rules.to_frame()
    assert [*frame.columns] == ["condition", "prediction", "probability", "training_rows"]
    assert frame["training_rows"].sum() == len(X)
    assert frame["condition"].tolist() == [rule.condition for rule in rules]
    numbers = PrunedTreeRegressor().fit(*load_diabetes(return_X_y=True)).rules()
    assert [*numbers.to_frame().columns] == ["number", "condition", "prediction", "training_rows"]
    with pytest.raises(ValueError, match="max_leaves must be at least 1, got 0"):
        PACBayesTreeClassifier(random_state=0).fit(X, y).rules(0)


def test_rules_have_the_probability_of_the_positive_class():
    X, y = mixed(n_classes=2)
    names = np.where(y == y[0], "default", "paid")
    model = PACBayesTreeClassifier(random_state=0).fit(X, names)
    plain = model.rules(6)
    for pos_label in ("default", "paid"):
        rules = model.rules(6, pos_label=pos_label)
        for rule, other in zip(rules, plain, strict=True):
            is_predicted = rule.prediction == pos_label
            expected = other.probability if is_predicted else 1 - other.probability
            assert rule.probability == pytest.approx(expected)
            assert replace(rule, probability=other.probability, pos_label=None) == other
            assert f"(probability of {pos_label} {rule.probability:.2f}, " in str(rule)
        assert f"probability of {pos_label}" in rules._repr_html_()
        assert f"probability of {pos_label}" not in plain._repr_html_()
    with pytest.raises(ValueError, match="pos_label must be one of the classes 'default' and"):
        model.rules(6, pos_label="late")


@pytest.mark.parametrize("max_leaves", [1, 4, 10_000])
def test_rules_of_a_certified_tree_bound_the_error_in_their_cells(max_leaves):
    X, y = mixed()
    model = CertifiedTreeClassifier(random_state=0, delta=0.1).fit(X, y)
    cells, rules = model.conditional_guarantees("cells").cells, model.rules(max_leaves)
    bounds = [cells[rule.node].bound for rule in rules]
    assert [rule.error_at_most for rule in rules] == bounds
    assert [*rules[:2].to_frame()["error_at_most"]] == bounds[:2]
    for rule, bound in zip(rules, bounds, strict=True):
        assert str(rule).endswith(f"), error at most {format_bound(bound)}")
        assert f">{format_bound(bound)}<" in rules._repr_html_()
    title = "Error bounds hold with probability 90 %, all rules together."
    assert rules[:1].title == title
    assert str(rules).splitlines()[0] == title
    assert title in rules[:1]._repr_html_()
    # The promise is that of the fit, whatever the estimator is set to for the next one.
    model.set_params(delta=0.5)
    assert model.rules(max_leaves).rules == rules.rules


def test_rules_without_rows_that_certify_bound_nothing(tmp_path):
    X, y = mixed()
    model = CertifiedTreeClassifier(random_state=0)
    save(model.fit(X, y), tmp_path / "model.certree", calibration_samples=False)
    loaded = load(tmp_path / "model.certree")
    few = CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X[:18], y[:18])
    grouped = clone(model).fit(X, y, groups=np.arange(len(y)) // 2)
    plain = PACBayesTreeClassifier(random_state=0).fit(X, y)
    reasons = {
        "the model file does not hold the calibration set": loaded,
        "the fit has fewer than 10 calibration rows": few,
        "the rows of the fit came in groups": grouped,
    }
    for reason, one in reasons.items():
        for text in (str(one.rules(5)), one.export_text()):
            assert f"Rules have no error bounds of their own: {reason}" in text.splitlines()[0]
    assert plain.rules(5).title == ""
    for one in (loaded, few, grouped, plain):
        rules = one.rules(5)
        assert rules.delta is None
        assert all(rule.error_at_most is None for rule in rules)
        assert "error_at_most" not in rules.to_frame()
        assert "error at most" not in str(rules) + rules._repr_html_()
    bounded = model.rules(5)
    unknown = {"error_at_most": None, "calibration_rows": None}
    assert [replace(rule, **unknown) for rule in bounded] == [*loaded.rules(5)]
    with pytest.raises(NotFittedError):
        CertifiedTreeClassifier().rules()


def test_rows_of_different_lengths_are_refused_by_name():
    X = np.array([["a", 1.0], ["b", 2.0]] * 20, dtype=object)
    model = PACBayesTreeClassifier().fit(X, [0, 1] * 20)
    with pytest.raises(ValueError, match="X must be an array whose rows have the same length"):
        model.explain([["a", 1.0], ["b"]])
