"""Trees with models in their leaves: what they keep, how nodes are judged, what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import certree
import reference
from certree import (
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
)
from certree.decorated import _rows_of_nodes
from certree.rows import content_folds

ESTIMATORS = [DecoratedTreeClassifier, DecoratedTreeRegressor]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def curved(n, seed=0, noise=0.1):
    """Two classes with a smooth boundary, and those without noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    clean = (X[:, 1] > 0.5 + 0.3 * np.sin(7 * X[:, 0])).astype(int)
    return X, np.where(rng.random(n) < noise, 1 - clean, clean), clean


def target(estimator, X, y):
    return y if estimator is DecoratedTreeClassifier else X[:, 0] ** 2 + y


@parametrize_with_checks([estimator() for estimator in ESTIMATORS])
def test_decorated_trees_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@every_estimator
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_small_cells_pass_the_checks_of_scikit_learn(estimator):
    expected = {}
    if estimator is DecoratedTreeClassifier:
        weights = "check_sample_weight_equivalence_on_dense_data"
        expected[weights] = "logistic regression stops within a tolerance"
    check_estimator(
        estimator(min_model_rows=4, min_rows=4, max_depth=2, partition="cart"),
        expected_failed_checks=expected,
        on_skip=None,
    )


def test_rows_of_nodes_are_those_that_pass_them():
    X, y, _ = curved(200)
    tree = certree.grow_kd(X, y, max_depth=4)
    rows = _rows_of_nodes(tree, tree.apply(X))
    assert rows[0].tolist() == list(range(200))
    for v in range(tree.n_nodes):
        if tree.left[v] >= 0:
            left = X[rows[v], tree.feature[v]] <= tree.threshold[v]
            np.testing.assert_array_equal(rows[tree.left[v]], rows[v][left])
            np.testing.assert_array_equal(rows[tree.left[v] + 1], rows[v][~left])


def table(tree, X, y, rows):
    return reference.counts(tree, X[rows], y[rows], 2)


def lost(shares, y, scoring):
    if scoring == "error":
        return float((shares.argmax(axis=1) != y).sum())
    return float(-np.log(shares[np.arange(len(y)), y]).sum())


@pytest.mark.parametrize("scoring", ["error", "log_loss"])
def test_the_pruning_is_the_best_of_all_by_the_judged_losses(scoring):
    X, y, _ = curved(600)
    model = DecoratedTreeClassifier(max_depth=3, scoring=scoring, random_state=0).fit(X, y)
    # The same, node by node and pruning by pruning.
    tree = certree.grow_kd(X, y.astype(np.int32), axis="spread", max_depth=3, min_rows=50)
    random_state = np.random.RandomState(0)
    random_state.randint(2**31 - 1)
    folds = list(content_folds(X, y.astype(np.int32), 3, random_state))
    losses = []
    shares = [reference.smoothed(tree, table(tree, X, y, f.grow), 1.0) for f in folds]
    for v, rows in enumerate(_rows_of_nodes(tree, tree.apply(X))):
        sides = [[np.intersect1d(side, rows) for side in (f.grow, f.judge)] for f in folds]
        constant = loss = 0.0
        for share, (grow, judge) in zip(shares, sides, strict=True):
            flat = np.tile(share[v], (len(judge), 1))
            constant += lost(flat, y[judge], scoring)
            if len(rows) < 50 or len(set(y[grow])) < 2:
                loss = np.inf
            elif len(judge):
                leaf = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
                loss += lost(leaf.fit(X[grow], y[grow]).predict_proba(X[judge]), y[judge], scoring)
        losses.append(min(loss, constant))
    expected = certree.prune(tree, losses)
    assert model.tree_.n_leaves == expected.expected_leaves
    kept = np.sort(model.stats_.n[model.tree_.is_leaf])
    counts = certree.count(tree, X, y, 2).n
    np.testing.assert_array_equal(kept, np.sort(counts[expected.weight > 0]))


def test_leaf_models_are_fitted_on_the_rows_of_their_leaves():
    X, y, _ = curved(600)
    model = DecoratedTreeClassifier(random_state=0).fit(X, y)
    leaf = model.apply(X)
    assert model.models_
    assert set(model.models_) <= set(np.flatnonzero(model.tree_.is_leaf))
    for v in np.unique(leaf):
        inside = leaf == v
        proba = model.predict_proba(X[inside])
        if v in model.models_:
            alone = clone(model.models_[v]).fit(X[inside], y[inside])
            np.testing.assert_allclose(proba, alone.predict_proba(X[inside]))
            np.testing.assert_array_equal(model.predict(X[inside]), alone.predict(X[inside]))
        else:
            np.testing.assert_allclose(proba, np.tile(model.vote_.score[v], (len(proba), 1)))


def test_models_in_leaves_are_better_than_constants_on_smooth_boundaries():
    X, y, _ = curved(3000)
    X_new, _, clean = curved(20000, 1)
    quadratic = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000))
    plain = PACBayesTreeClassifier(random_state=0).fit(X, y)
    decorated = DecoratedTreeClassifier(quadratic, max_depth=4, random_state=0).fit(X, y)
    one = quadratic.fit(X, y)
    error = {
        name: np.mean(model.predict(X_new) != clean)
        for name, model in {"plain": plain, "decorated": decorated, "one": one}.items()
    }
    assert error["decorated"] < 0.7 * error["plain"]
    assert error["decorated"] < 0.7 * error["one"]


def test_linear_models_in_leaves_are_better_than_means():
    X, y = make_friedman1(3000, 5, noise=0.5, random_state=0)
    decorated = DecoratedTreeRegressor(random_state=0).fit(X[:2000], y[:2000])
    plain = certree.PrunedTreeRegressor(random_state=0).fit(X[:2000], y[:2000])
    assert decorated.score(X[2000:], y[2000:]) > plain.score(X[2000:], y[2000:]) + 0.02
    linear = Ridge().fit(X[:2000], y[:2000])
    assert decorated.score(X[2000:], y[2000:]) > linear.score(X[2000:], y[2000:]) + 0.02


@pytest.mark.parametrize(
    "leaf",
    [
        SVC(kernel="poly", degree=2),
        SVC(kernel="poly", degree=3, coef0=1.0),
        NaiveBayesClassifier(),
        KNeighborsClassifier(),
    ],
    ids=str,
)
def test_any_classifier_may_sit_in_a_leaf(leaf):
    X, y, clean = curved(800)
    names = np.array(["no", "yes"])
    model = DecoratedTreeClassifier(leaf, random_state=0).fit(X, names[y])
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.mean(model.predict(X) == names[clean]) > 0.85
    if not hasattr(leaf, "predict_proba"):
        leaf_of = model.apply(X)
        modelled = np.isin(leaf_of, list(model.models_))
        assert set(np.unique(shares[modelled])) <= {0.0, 1.0}


def test_small_cells_and_cells_of_one_class_have_no_model():
    X, y, _ = curved(60)
    assert not DecoratedTreeClassifier(min_model_rows=61).fit(X, y).models_
    assert not DecoratedTreeClassifier().fit(X, np.zeros(60)).models_
    rare = np.zeros(60, dtype=int)
    rare[0] = 1  # left out once, the others are of one class
    assert not DecoratedTreeClassifier().fit(X, rare).models_
    assert DecoratedTreeClassifier().fit([[0.0]], ["a"]).predict([[9.0]]) == ["a"]
    assert DecoratedTreeRegressor().fit([[0.0], [1.0]], [3.0, 5.0]).predict([[9.0]]) == 4.0


@every_estimator
def test_weights_and_threads(estimator):
    X, y, _ = curved(400)
    y = target(estimator, X, y)
    one = estimator(random_state=0).fit(X, y)
    two = estimator(random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    weight = np.random.default_rng(0).uniform(0, 3, 400)
    weighted = estimator(random_state=0).fit(X, y, sample_weight=weight)
    assert not np.array_equal(one.predict(X), weighted.predict(X))
    neighbours = DecoratedTreeClassifier(KNeighborsClassifier())
    with pytest.raises(ValueError, match="takes no sample_weight"):
        neighbours.fit(X, y > np.mean(y), sample_weight=weight)


@every_estimator
def test_categories_grow_the_tree_and_are_numbers_to_the_models(estimator):
    rng = np.random.default_rng(0)
    X, y, _ = curved(500)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["kind"] = pd.Categorical(rng.choice(["x", "y"], 500))
    model = estimator(partition="cart", random_state=0).fit(frame, target(estimator, X, y))
    assert model.predict(frame).shape == (500,)
    assert list(model.feature_names_in_) == ["a", "b", "kind"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DecoratedTreeClassifier(LinearRegression()), "leaf_estimator must be a classifier"),
        (DecoratedTreeRegressor(LogisticRegression()), "leaf_estimator must be a regressor"),
        (DecoratedTreeClassifier("svc"), "'leaf_estimator' parameter"),
        (DecoratedTreeClassifier(SVC(kernel="poly", degree=-1)), "degree"),
        (DecoratedTreeClassifier(cv=1), "'cv' parameter"),
        (DecoratedTreeClassifier(min_model_rows=1), "'min_model_rows' parameter"),
    ],
)
def test_bad_models_are_refused_and_change_nothing(model, message):
    X, y, _ = curved(200)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@every_estimator
def test_missing_values_are_a_matter_of_the_models(estimator):
    X, y, _ = curved(200)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        estimator().fit(holes, target(estimator, X, y))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        estimator().fit(X, target(estimator, X, y)).predict(holes)
    if estimator is DecoratedTreeClassifier:
        model = estimator(NaiveBayesClassifier()).fit(holes, y)
        assert model.predict(holes).shape == (200,)
