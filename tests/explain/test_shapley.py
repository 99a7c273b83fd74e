"""Shapley and Banzhaf values against all coalitions of features, their axioms, and shap."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

import reference
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    DecoratedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    Tree,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.explain import banzhaf_values, shap_trees, shapley_values
from certree.explain.additive_trees import AdditiveTrees
from certree.explain.shapley import (
    choose_banzhaf_points,
    choose_shapley_points,
    compute_coalition_values,
)
from certree.tree import Trees
from strategies import sum_leaves, trees

BOOSTED = {"max_iter": 8, "random_state": 0}


@st.composite
def games(draw, most_features=6, n_trees=3, lacking=True):
    """A few trees with values and rows, rows of a table and of a background; some lack values."""
    p = draw(st.integers(1, most_features))
    values = st.integers(-4, 4).map(float)
    if lacking:
        values = st.one_of(values, st.just(float("nan")))
    X, background = (
        draw(hnp.arrays(np.float64, (draw(st.integers(1, 3)), p), elements=values))
        for _ in range(2)
    )
    n_outputs = draw(st.integers(1, 2))
    made = []
    for _ in range(draw(st.integers(1, n_trees))):
        tree = draw(trees(max_inner=8, n_features=p, sets=True))
        m = tree.n_nodes
        value = draw(hnp.arrays(np.float64, (m, n_outputs), elements=st.integers(-9, 9)))
        leaf_rows = draw(hnp.arrays(np.float64, m, elements=st.integers(0, 4)))
        made.append((tree, value, sum_leaves(tree, leaf_rows)))
    return made, X, background


def summed(made):
    p, n_outputs = made[0][0].n_features, made[0][1].shape[1]
    joined = Trees.joined([tree.with_value(value) for tree, value, _ in made], p, n_outputs)
    rows = np.concatenate([own for _, _, own in made])
    return AdditiveTrees(joined, np.zeros(n_outputs), rows, dict)


def expected(made, x, background):
    """Shapley's and Banzhaf's values by all coalitions, (n_outputs, p) each."""

    def says(known):
        if background is None:
            return sum(reference.predict_by_path(t, r, v, x, known) for t, v, r in made)
        return sum(
            reference.predict_by_background(t, r, v, x, background, known) for t, v, r in made
        )

    return [one.T for one in reference.compute_power_indices(says, len(x))]


@given(games(), st.booleans(), st.booleans())
def test_values_are_those_of_all_coalitions(game, both, with_background):
    made, X, background = game
    if both:
        made = [(replace(t, missing_both=~t.is_leaf), v, rows) for t, v, rows in made]
    others = background if with_background else None
    shapley, banzhaf = zip(*[expected(made, x, others) for x in X], strict=True)
    trees_of_all = summed(made)
    np.testing.assert_allclose(
        compute_coalition_values(trees_of_all, X, others, choose_shapley_points, 1),
        shapley,
        atol=1e-11,
    )
    np.testing.assert_allclose(
        compute_coalition_values(trees_of_all, X, others, choose_banzhaf_points, 1),
        banzhaf,
        atol=1e-11,
    )


@given(games())
def test_outputs_and_expectations_are_those_of_no_and_all_features(game):
    made, X, background = game
    own = summed(made)
    p = X.shape[1]
    for x, said in zip(X, own.compute_outputs(X, 1), strict=True):
        whole = sum(reference.predict_by_path(t, r, v, x, set(range(p))) for t, v, r in made)
        np.testing.assert_allclose(said, whole, atol=1e-12)
        nothing = sum(reference.predict_by_path(t, r, v, x, set()) for t, v, r in made)
        np.testing.assert_allclose(own.compute_mean_output(own.rows_per_node), nothing, atol=1e-12)
        before = sum(
            reference.predict_by_background(t, r, v, x, background, set()) for t, v, r in made
        )
        np.testing.assert_allclose(
            own.compute_outputs(background, 1).mean(axis=0), before, atol=1e-12
        )


@given(games(most_features=4, lacking=False))
def test_a_feature_that_is_not_compared_has_no_value(game):
    made, X, background = game
    own = summed(made)
    idle = np.setdiff1d(
        np.arange(X.shape[1]), np.concatenate([t.feature[~t.is_leaf] for t, _, _ in made])
    )
    for others in (None, background):
        for quadrature in (choose_shapley_points, choose_banzhaf_points):
            assert not compute_coalition_values(own, X, others, quadrature, 1)[:, :, idle].any()


@given(games(most_features=4))
def test_features_that_change_places_change_their_values(game):
    made, X, background = game
    order = np.arange(X.shape[1])[::-1]
    turned = [
        (replace(t, feature=np.where(t.is_leaf, 0, order[t.feature])), v, rows)
        for t, v, rows in made
    ]
    for others in (None, background):
        before = compute_coalition_values(summed(made), X, others, choose_shapley_points, 1)
        there = None if others is None else np.ascontiguousarray(others[:, order])
        turn = np.ascontiguousarray(X[:, order])
        after = compute_coalition_values(summed(turned), turn, there, choose_shapley_points, 1)
        np.testing.assert_allclose(before[:, :, order], after, atol=1e-12)


def deep(p=70, seed=0):
    """A path of p features, more than a word has bits."""
    random = np.random.default_rng(seed)
    left = [index + 1 if index % 2 == 0 else -1 for index in range(2 * p + 1)]
    left[-1] = -1
    # Odd nodes are leaves, even ones go on: their children are the next two.
    feature = np.array([v // 2 if child >= 0 else 0 for v, child in enumerate(left)])
    m = len(left)
    tree = Tree(feature, np.zeros(m), np.array(left), np.ones(m, dtype=np.int32), p)
    value = random.normal(size=(m, 1))
    return tree, value, sum_leaves(tree, random.integers(1, 9, m).astype(float))


def test_paths_of_many_features():
    made = [deep()]
    own = summed(made)
    random = np.random.default_rng(1)
    X, background = random.normal(size=(2, 5, 70))
    # The first few features lead somewhere; most rows leave the path early.
    X[0] = background[0] = 1.0
    before = own.compute_outputs(background, 1).mean(axis=0)
    for others, base in ((None, own.compute_mean_output(own.rows_per_node)), (background, before)):
        added = compute_coalition_values(own, X, others, choose_shapley_points, 1)
        np.testing.assert_allclose(added.sum(axis=2) + base, own.compute_outputs(X, 1), atol=1e-10)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_values_do_not_depend_on_threads_or_on_other_rows(n_jobs):
    X, y = load_diabetes(return_X_y=True)
    model = TreeForestRegressor(20, max_depth=6, random_state=0).fit(X, y)
    alone = {True: shapley_values(model, X, X[:30]), False: shapley_values(model, X)}
    model.set_params(n_jobs=n_jobs)
    for by_background, one in alone.items():
        others = X[:30] if by_background else None
        again = shapley_values(model, X, others)
        assert np.array_equal(one.contributions, again.contributions)
        some = shapley_values(model, X[5:8], others)
        assert np.array_equal(one.contributions[5:8], some.contributions)


MODELS = [
    PACBayesTreeClassifier(random_state=0),
    PrunedTreeClassifier(random_state=0),
    CertifiedTreeClassifier(random_state=0),
    TreeForestClassifier(10, leaves="plain", random_state=0),
    CertifiedForestClassifier(10, random_state=0),
    CertifiedBoostedTreesClassifier(**BOOSTED),
    BoostedTreesClassifier(**BOOSTED),
    AdaBoostTreeClassifier(n_estimators=8),
]
NUMBERS = [
    CertifiedTreeRegressor(random_state=0),
    PACBayesTreeRegressor(random_state=0),
    TreeForestRegressor(10, random_state=0),
    BoostedTreesRegressor(**BOOSTED),
    CertifiedBoostedTreesRegressor(**BOOSTED),
]


def said(model, X):
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X)
        return scores.reshape(len(X), -1)
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)[:, None]


def table(kind):
    """Rows of numbers and categories some of which are missing, and a target."""
    X, y = load_iris(return_X_y=True) if kind != "numbers" else load_diabetes(return_X_y=True)
    X, y = X[::2].copy(), y[::2]
    if kind == "two":
        y = np.array(["no", "yes"])[(y == 1).astype(int)]
    X[::7, 0] = np.nan
    frame = pd.DataFrame(X).rename(columns=str)
    frame["kind"] = np.array(["a", "b", "c", None])[np.arange(len(X)) % 4]
    return frame, y


@pytest.mark.parametrize(
    ("model", "kind"),
    [(one, kind) for one in MODELS for kind in ("two", "three")]
    + [(HelmboldSchapireTreeClassifier(random_state=0), "two")]
    + [(one, "numbers") for one in NUMBERS],
    ids=str,
)
def test_values_sum_to_what_models_say(model, kind):
    X, y = table(kind)
    model = type(model)(**model.get_params()).fit(X.iloc[:60], y[:60])
    before = said(model, X[:60]).mean(axis=0)
    explained = shapley_values(model, X[55:], X[:60])
    scale = np.abs(said(model, X)).max()
    assert explained.additive
    np.testing.assert_allclose(explained.base, before, atol=1e-12 * scale)
    np.testing.assert_allclose(explained.prediction, said(model, X[55:]), atol=1e-11 * scale)
    by_path = shapley_values(model, X[55:], X[:60], feature_perturbation="tree_path_dependent")
    np.testing.assert_allclose(by_path.prediction, said(model, X[55:]), atol=1e-11 * scale)
    assert explained.output_names == by_path.output_names == model.explain(X[55:]).output_names


@pytest.mark.parametrize(
    "model",
    [
        PACBayesTreeClassifier(random_state=0),
        PACBayesTreeRegressor(random_state=0),
        TreeForestClassifier(20, random_state=0),
        TreeForestRegressor(20, max_depth=6, random_state=0),
        BoostedTreesRegressor(**BOOSTED),
        AdaBoostTreeClassifier(n_estimators=8, max_depth=2),
    ],
    ids=str,
)
def test_values_are_those_of_shap(model):
    shap = pytest.importorskip("shap")
    has_classes = isinstance(model, ClassifierMixin)
    X, y = load_iris(return_X_y=True) if has_classes else load_diabetes(return_X_y=True)
    X = np.round(1000 * X)  # with a background shap compares float32
    model = model.fit(X, y)
    explainer = shap.TreeExplainer(shap_trees(model, X))
    theirs = explainer.shap_values(X[::5], check_additivity=False)
    theirs = theirs if theirs.ndim == 3 else theirs[:, :, None]
    ours = shapley_values(model, X[::5], X, feature_perturbation="tree_path_dependent")
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(
        ours.contributions, theirs.transpose(0, 2, 1), rtol=0, atol=1e-10 * max(scale, 1)
    )
    np.testing.assert_allclose(ours.base, explainer.expected_value, atol=1e-10 * max(scale, 1))
    explainer = shap.TreeExplainer(shap_trees(model, X), X[:40])
    theirs = explainer.shap_values(X[::5], check_additivity=False)
    theirs = theirs if theirs.ndim == 3 else theirs[:, :, None]
    ours = shapley_values(model, X[::5], X[:40])
    np.testing.assert_allclose(
        ours.contributions, theirs.transpose(0, 2, 1), rtol=0, atol=1e-5 * max(scale, 1)
    )


def test_values_of_categories_are_drawn_by_shap():
    shap = pytest.importorskip("shap")
    X, y = table("two")
    model = BoostedTreesClassifier(**BOOSTED).fit(X, y)
    ours = shapley_values(model, X[:9], X[:40])
    values = shap.Explanation(
        ours.contributions[:, 0], ours.base[0], ours.values, feature_names=ours.feature_names
    )
    axes = shap.plots.waterfall(values[0], show=False)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    plt.close(axes.figure)
    assert any(name in label for label in labels for name in ours.feature_names)
    total = values[0].base_values + values[0].values.sum()
    np.testing.assert_allclose(total, model.decision_function(X)[0])


def test_what_shap_cannot_take():
    X, y = table("two")
    with pytest.raises(ValueError, match="model must have no categorical splits"):
        shap_trees(TreeForestClassifier(30, random_state=0).fit(X, y))
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="background must be an array of rows"):
        shap_trees(BoostedTreesClassifier(**BOOSTED).fit(X, y))
    nothing = AdaBoostTreeClassifier().fit(np.zeros((4, 1)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="model must have at least one tree"):
        shap_trees(nothing)
    explained = shapley_values(nothing, np.zeros((2, 1)), np.zeros((1, 1)))
    assert np.array_equal(explained.prediction, np.zeros((2, 1)))


def test_models_that_keep_no_rows_count_those_of_a_background():
    X, y = load_iris(return_X_y=True)
    forest = TreeForestClassifier(3, bootstrap=False, leaves="plain", random_state=0).fit(X, y)
    by_fit = shapley_values(forest, X)
    rows_per_node = forest._get_additive_trees().count_rows_per_node(X, 1)
    assert np.array_equal(rows_per_node, forest._rows)
    boosted = BoostedTreesClassifier(**BOOSTED).fit(X, y)
    with pytest.raises(ValueError, match="background must be an array of rows"):
        shapley_values(boosted, X)
    with pytest.raises(ValueError, match="background must be an array of rows if"):
        shapley_values(forest, X, feature_perturbation="interventional")
    assert by_fit.base == pytest.approx([1 / 3] * 3)


def test_banzhaf_values_tell_no_prediction():
    X, y = load_iris(return_X_y=True)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    explained = banzhaf_values(model, X[:2])
    assert not explained.additive
    assert not explained[0].additive
    with pytest.raises(ValueError, match="do not sum"):
        explained.prediction  # noqa: B018 # it is computed
    assert "prediction" not in str(explained)
    assert "prediction" not in explained._repr_html_()
    assert len(explained.to_frame()) == 2 * 3 * 5


def test_what_has_no_values():
    X, y = load_iris(return_X_y=True)
    for model in (NaiveBayesClassifier().fit(X, y), DecoratedTreeRegressor().fit(X, y), None):
        with pytest.raises(TypeError, match="model must be a tree, forest"):
            shapley_values(model, X)
    with pytest.raises(NotFittedError):
        shapley_values(TreeForestClassifier(), X)
    model = TreeForestClassifier(3).fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        shapley_values(model, X, X[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        shapley_values(model, X, X[:0])
    with pytest.raises(ValueError, match="feature_perturbation must be"):
        shapley_values(model, X, feature_perturbation="paths")


def test_rows_and_background_may_be_of_different_widths():
    X, y = load_iris(return_X_y=True)
    model = TreeForestClassifier(3, random_state=0).fit(X.astype(np.float32), y)
    narrow, wide = X[:5].astype(np.float32), X[::10].astype(np.float32)
    same = shapley_values(model, narrow, wide)
    mixed = shapley_values(model, narrow, wide.astype(np.float64))
    assert np.array_equal(same.contributions, mixed.contributions)
