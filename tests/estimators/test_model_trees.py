"""Trees with models in their leaves: their models, validation losses and errors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import certree
import reference
from certree import (
    KD,
    Cart,
    DecoratedTreeClassifier,
    DecoratedTreeRegressor,
    Dyadic,
    Grid,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeRegressor,
)
from certree.estimators.model_trees import _list_node_rows
from certree.estimators.tune import LOG_GRID, linear_grid
from certree.prunings import Polynomial, SquareRoot
from certree.prunings.scott_nowak import fragment_prunings
from certree.rows.folds import content_folds
from prunings.test_scott_nowak import literal_penalties, penalised_cost
from run_length import LONG
from sklearn_checks import copies_differ, expect_checks, mark_copies

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


@parametrize_with_checks(
    [
        *(estimator() for estimator in ESTIMATORS),
        DecoratedTreeClassifier(rule="polynomial"),
        *([DecoratedTreeClassifier(rule=Polynomial(smoothness=3), alpha=0.01)] if LONG else ()),
    ]
)
def test_decorated_trees_pass_the_checks_of_scikit_learn(request, estimator, check):
    mark_copies(request, check)
    check(estimator)


@pytest.mark.slow
@every_estimator
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_small_nodes_pass_the_checks_of_scikit_learn(estimator):
    small = estimator(min_samples_model=6, max_depth=2, grower=Cart(min_samples_split=5))
    expect_checks(small, copies_differ())


def test_rows_of_nodes_are_those_that_pass_them():
    X, y, _ = curved(200)
    tree = certree.grow_kd(X, y, max_depth=4)
    rows = _list_node_rows(tree, tree.apply(X))
    assert rows[0].tolist() == list(range(200))
    for v in range(tree.n_nodes):
        if tree.left[v] >= 0:
            left = X[rows[v], tree.feature[v]] <= tree.threshold[v]
            np.testing.assert_array_equal(rows[tree.left[v]], rows[v][left])
            np.testing.assert_array_equal(rows[tree.left[v] + 1], rows[v][~left])


def table(tree, X, y, rows):
    return reference.count_classes(tree, X[rows], y[rows], 2)


def lost(shares, y, scoring):
    if scoring == "error":
        return float((shares.argmax(axis=1) != y).sum())
    return float(-np.log(shares[np.arange(len(y)), y]).sum())


@pytest.mark.parametrize("scoring", ["error", "log_loss"])
def test_the_pruning_has_the_smallest_validation_loss(scoring):
    X, y, _ = curved(600)
    model = DecoratedTreeClassifier(max_depth=3, scoring=scoring, random_state=0).fit(X, y)
    # The same, node by node and pruning by pruning.
    tree = certree.grow_kd(X, y.astype(np.int32), max_depth=3, min_samples_split=51)
    random_state = np.random.RandomState(0)
    random_state.randint(2**31 - 1)
    folds = list(content_folds(X, y.astype(np.int32), 3, random_state))
    losses = []
    shares = [reference.smooth_frequencies(tree, table(tree, X, y, f.train), 1.0) for f in folds]
    for v, rows in enumerate(_list_node_rows(tree, tree.apply(X))):
        sides = [[np.intersect1d(side, rows) for side in (f.train, f.validation)] for f in folds]
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


def nodes_by_training_errors(tree, X, y, weight, leaf, scoring, X_new, y_new, weight_new):
    """Errors of the model or constant of each node on its rows, and its loss on new rows."""
    unit = weight.mean() if len(weight) else 1.0
    stats = replace(certree.count(tree, X, y, 2, sample_weight=weight), weight_unit=unit)
    shares = reference.smooth_frequencies(tree, stats.counts / unit, 1.0)
    cost, loss = [], []
    sides = [_list_node_rows(tree, tree.apply(side)) for side in (X, X_new)]
    for v, (inside, outside) in enumerate(zip(*sides, strict=True)):
        errors = weight[inside] @ (shares[v].argmax() != y[inside])
        predicted = np.tile(shares[v], (len(outside), 1))
        if len(set(y[inside])) > 1:
            model = clone(leaf)
            relative = weight[inside] / unit
            weights = {f"{name}__sample_weight": relative for name, _ in model.steps}
            model.fit(X[inside], y[inside], **weights)
            by_model = weight[inside] @ (model.predict(X[inside]) != y[inside])
            if by_model < errors:
                errors = by_model
                if len(outside):
                    predicted = model.predict_proba(X_new[outside])
        cost.append(errors)
        label, w = y_new[outside], weight_new[outside]
        if scoring == "error":
            loss.append(w @ (predicted.argmax(axis=1) != label))
        else:
            loss.append(-w @ np.log(predicted[np.arange(len(label)), label]))
    return stats, np.array(cost), np.array(loss)


def leaves_with_rows(model, X):
    leaf = model.apply(X)
    return {frozenset(np.flatnonzero(leaf == v)) for v in np.unique(leaf)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothness", [1, 1.5, 2, 3])
def test_the_polynomial_rule_prunes_by_training_errors_like_the_function(smoothness, weighted):
    X, y, _ = curved(700)
    rng = np.random.default_rng(5)
    weight = rng.integers(1, 4, 700).astype(float) if weighted else np.ones(700)
    tree = certree.grow_kd(X, y, max_depth=3, min_samples_split=51, sample_weight=weight)
    leaf = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    none = X[:0], y[:0], weight[:0]
    stats, cost, _ = nodes_by_training_errors(tree, X, y, weight, leaf, "error", *none)
    sizes = set()
    for alpha in (0.001, 0.003, 0.01, 0.1, 1.0):
        model = DecoratedTreeClassifier(
            rule=Polynomial(smoothness), alpha=alpha, max_depth=3, random_state=0
        ).fit(X, y, sample_weight=weight)
        weights = certree.prunings.polynomial_penalised(tree, stats, smoothness, alpha, cost=cost)
        inside = _list_node_rows(tree, tree.apply(X))
        expected = {frozenset(inside[v]) for v in np.flatnonzero(weights.weight)}
        assert leaves_with_rows(model, X) == expected
        assert model.best_params_ == {"alpha": alpha}
        # Its leaves make the errors that it was chosen for.
        assert weight @ (model.predict(X) != y) == weights.weight @ cost
        # No pruning pays less, with any root fragment.
        rule = fragment_prunings(tree, stats, smoothness=smoothness, cost=cost)
        # Rows of mean weight, and their errors.
        rows = certree.NodeStats(stats.counts / weight.mean(), stats.label)
        errors = cost / weight.mean()
        penalties = literal_penalties(tree, rows, alpha, smoothness, np.log(tree.n_leaves))
        value = penalised_cost(tree, rows, rule, alpha, penalties, False, errors)
        least = reference.enumerate_smallest_fragment_cost(tree, errors, rows.n, *penalties, False)
        assert value == pytest.approx(least)
        sizes.add(model.get_n_leaves())
    assert min(sizes) == 1 < len(sizes)


@pytest.mark.parametrize("scoring", ["error", "log_loss"])
def test_the_constant_of_the_polynomial_rule_has_the_smallest_held_out_loss(scoring):
    X, y, _ = curved(700)
    tree = certree.grow_kd(X, y, max_depth=3, min_samples_split=51)
    leaf = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = list(KFold(3).split(X))
    one = np.ones(700)
    judged = [
        nodes_by_training_errors(
            tree,
            *(X[grow], y[grow], one[grow], leaf, scoring),
            *(X[judge], y[judge], one[judge]),
        )
        for grow, judge in folds
    ]

    def held_out_loss(alpha):
        return sum(
            certree.prunings.polynomial_penalised(tree, stats, 2, alpha, cost=cost).weight @ loss
            for stats, cost, loss in judged
        )

    best = 1.0
    for grid in (LOG_GRID, None):
        values = linear_grid(best) if grid is None else grid
        best = values[np.argmin([held_out_loss(alpha) for alpha in values])]
    model = DecoratedTreeClassifier(rule="polynomial", max_depth=3, scoring=scoring, cv=folds)
    assert model.fit(X, y).best_params_ == {"alpha": best}
    given = DecoratedTreeClassifier(rule="polynomial", alpha=best, max_depth=3).fit(X, y)
    np.testing.assert_array_equal(given.predict_proba(X), model.predict_proba(X))


PAPERS = [Dyadic(resolution="paper"), Grid([[0, 0], [1, 1]], resolution="paper")]


@pytest.mark.parametrize("grower", PAPERS, ids=repr)
@pytest.mark.parametrize("smoothness", [1.5, 2, 3])
def test_the_rule_of_theorem_3_prunes_its_own_tree(grower, smoothness):
    X, y, _ = curved(1600)
    exponent = 1 / (2 + 2 * smoothness - 2)
    halvings = certree.grow.dyadic_resolution(1600, 2, exponent)
    if isinstance(grower, Grid):
        tree = certree.grow.dyadic_grid([0, 0], [1, 1], 2 * halvings)
    else:
        tree = certree.grow_dyadic(X, resolution="paper", exponent=exponent)
    leaf = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    weight = np.ones(1600)
    none = X[:0], y[:0], weight[:0]
    stats, cost, _ = nodes_by_training_errors(tree, X, y, weight, leaf, "error", *none)
    sizes = set()
    for alpha in (0.001, 0.01, 0.03, 1.0):
        rule = Polynomial(smoothness, count_empty=True)
        model = DecoratedTreeClassifier(grower=grower, rule=rule, alpha=alpha).fit(X, y)
        weights = certree.prunings.polynomial_penalised(
            tree,
            stats,
            smoothness,
            alpha,
            log_cells=2 * halvings * np.log(2),
            count_empty=True,
            cost=cost,
        )
        rows = _list_node_rows(tree, tree.apply(X))
        kept = [frozenset(rows[v]) for v in np.flatnonzero(weights.weight)]
        assert leaves_with_rows(model, X) == {inside for inside in kept if inside}
        assert np.sum(model.predict(X) != y) == weights.weight @ cost
        sizes.add(model.get_n_leaves())
    assert min(sizes) == 1 < len(sizes)


@pytest.mark.parametrize("grower", PAPERS, ids=repr)
def test_the_price_is_tuned_on_the_one_tree_of_all_rows(grower):
    # (60 / log 60)^(1/4) is 1.96, so that the rows of a fold alone have no such tree.
    X, y, _ = curved(80)
    rule = Polynomial(2, count_empty=True)
    model = DecoratedTreeClassifier(grower=grower, rule=rule, cv=KFold(4), min_samples_model=9)
    assert model.fit(X, y).best_params_["alpha"] > 0
    with pytest.raises(ValueError, match=r"60 rows .*are too few to halve each of 2 features"):
        model.fit(X[:60], y[:60])


def test_polynomial_kernels_need_their_lower_terms():
    """With coef0=0 a quadratic leaf has no linear terms: it cannot tell what a line tells."""
    X, y, _ = curved(1000, noise=0.0)
    new, _, truth = curved(4000, seed=1)
    for grower in ("kd", Dyadic(resolution="paper")):
        without, with_them = (
            np.mean(
                DecoratedTreeClassifier(
                    SVC(kernel="poly", degree=2, coef0=coef0),
                    grower=grower,
                    rule=Polynomial(smoothness=3),
                    alpha=0.003,
                )
                .fit(X, y)
                .predict(new)
                != truth
            )
            for coef0 in (0, 1)
        )
        assert with_them < 0.35 * without
        assert with_them < 0.05


def test_without_folds_the_constant_is_as_published():
    model = DecoratedTreeClassifier(rule="polynomial").fit([[0.0]], ["a"])
    assert model.best_params_ == {"alpha": 1.0}
    assert model.predict([[9.0]]) == ["a"]


def test_polynomials_of_degree_zero_are_the_majority():
    X, y, _ = curved(400)
    for rule in ("cross-validated", "polynomial"):
        leaf = SVC(kernel="poly", degree=0, coef0=1)
        model = DecoratedTreeClassifier(leaf, rule=rule, random_state=0).fit(X, y)
        assert not model.leaf_estimators_
        np.testing.assert_array_equal(model.predict(X), model.vote_.label[model.apply(X)])


@pytest.mark.parametrize("rule", ["cross-validated", "polynomial"])
def test_leaf_models_are_fitted_on_the_rows_of_their_leaves(rule):
    X, y, _ = curved(600)
    model = DecoratedTreeClassifier(rule=rule, random_state=0).fit(X, y)
    leaf = model.apply(X)
    assert model.leaf_estimators_
    assert set(model.leaf_estimators_) <= set(np.flatnonzero(model.tree_.is_leaf))
    for v in np.unique(leaf):
        inside = leaf == v
        proba = model.predict_proba(X[inside])
        if v in model.leaf_estimators_:
            alone = clone(model.leaf_estimators_[v]).fit(X[inside], y[inside])
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
    plain = PrunedTreeRegressor(random_state=0).fit(X[:2000], y[:2000])
    assert decorated.score(X[2000:], y[2000:]) > plain.score(X[2000:], y[2000:]) + 0.02
    linear = Ridge().fit(X[:2000], y[:2000])
    assert decorated.score(X[2000:], y[2000:]) > linear.score(X[2000:], y[2000:]) + 0.02


@pytest.mark.parametrize(
    "leaf",
    [
        SVC(kernel="poly", degree=2, coef0=1),
        SVC(kernel="poly", degree=3, coef0=1),
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
        modelled = np.isin(leaf_of, list(model.leaf_estimators_))
        assert set(np.unique(shares[modelled])) <= {0.0, 1.0}


def test_small_nodes_and_nodes_of_one_class_have_no_model():
    X, y, _ = curved(60)
    assert not DecoratedTreeClassifier(min_samples_model=61).fit(X, y).leaf_estimators_
    assert not DecoratedTreeClassifier().fit(X, np.zeros(60)).leaf_estimators_
    rare = np.zeros(60, dtype=int)
    rare[0] = 1  # left out once, the others are of one class
    assert not DecoratedTreeClassifier().fit(X, rare).leaf_estimators_
    assert DecoratedTreeClassifier().fit([[0.0]], ["a"]).predict([[9.0]]) == ["a"]
    assert DecoratedTreeRegressor().fit([[0.0], [1.0]], [3.0, 5.0]).predict([[9.0]]) == 4.0


@every_estimator
def test_rows_of_float32_have_models_of_float64(estimator):
    X, y, _ = curved(400)
    X = X.astype(np.float32)
    y = target(estimator, X, y)
    narrow = estimator(random_state=0).fit(X, y)
    wide = estimator(random_state=0).fit(X.astype(np.float64), y)
    ask = "predict_proba" if hasattr(narrow, "predict_proba") else "predict"
    np.testing.assert_array_equal(getattr(narrow, ask)(X), getattr(wide, ask)(X))


@pytest.mark.threads
@every_estimator
def test_weights_and_threads(estimator):
    X, y, _ = curved(400)
    y = target(estimator, X, y)
    rules = [{}, {"rule": "polynomial"}] if estimator is DecoratedTreeClassifier else [{}]
    for rule in rules:
        one = estimator(**rule, random_state=0).fit(X, y)
        two = estimator(**rule, random_state=0, n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(one.predict(X), two.predict(X))
    weight = np.random.default_rng(0).uniform(0, 3, 400)
    weighted = estimator(random_state=0).fit(X, y, sample_weight=weight)
    assert not np.array_equal(one.predict(X), weighted.predict(X))
    neighbours = DecoratedTreeClassifier(KNeighborsClassifier())
    with pytest.raises(ValueError, match="does not support sample_weight"):
        neighbours.fit(X, y > np.mean(y), sample_weight=weight)


def test_weights_reach_the_steps_of_a_pipeline():
    X, y, _ = curved(300)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    relative = weight / weight.mean()
    leaf = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000))
    settings = {"rule": Polynomial(smoothness=3), "alpha": 0.01, "max_depth": 2}
    for scale in (False, True):
        model = DecoratedTreeClassifier(leaf, **settings, scale=scale, min_samples_model=20)
        model.fit(X, y, sample_weight=weight)
        for v, whole in model.leaf_estimators_.items():
            inside = model.apply(X) == v
            rows, w, fitted = X[inside], relative[inside], whole
            if scale:
                scaler = StandardScaler().fit(rows, sample_weight=w)
                rows, fitted = scaler.transform(rows), whole[-1]
            alone = clone(leaf).fit(rows, y[inside], logisticregression__sample_weight=w)
            np.testing.assert_allclose(fitted[-1].coef_, alone[-1].coef_)
        assert model.leaf_estimators_
    nearest = DecoratedTreeClassifier(make_pipeline(StandardScaler(), KNeighborsClassifier()))
    with pytest.raises(ValueError, match="does not support sample_weight"):
        nearest.fit(X, y, sample_weight=weight)


@every_estimator
def test_categories_grow_the_tree_and_are_numbers_to_the_models(estimator):
    rng = np.random.default_rng(0)
    X, y, _ = curved(500)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["kind"] = pd.Categorical(rng.choice(["x", "y"], 500))
    model = estimator(grower="cart", random_state=0).fit(frame, target(estimator, X, y))
    assert model.predict(frame).shape == (500,)
    assert list(model.feature_names_in_) == ["a", "b", "kind"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DecoratedTreeClassifier(LinearRegression()), "leaf_estimator must be a classifier"),
        (DecoratedTreeRegressor(LogisticRegression()), "leaf_estimator must be a regressor"),
        (DecoratedTreeClassifier("svc"), "'leaf_estimator' parameter"),
        (DecoratedTreeClassifier(SVC(kernel="poly", degree=-1, coef0=1)), "degree"),
        (DecoratedTreeClassifier(cv=1), "'cv' parameter"),
        (DecoratedTreeClassifier(min_samples_model=1), "'min_samples_model' parameter"),
        (DecoratedTreeClassifier(rule="square-root"), "'rule' parameter"),
        (
            DecoratedTreeClassifier(rule=Polynomial(smoothness=0.5)),
            r"smoothness must lie in 1 \.\. 50, got 0.5",
        ),
        (
            DecoratedTreeClassifier(
                grower=Dyadic(resolution="paper"), rule="polynomial", max_depth=7
            ),
            'max_depth must be None with resolution="paper", got 7',
        ),
        (DecoratedTreeClassifier(rule=SquareRoot()), "'rule' parameter"),
        (DecoratedTreeClassifier(rule="polynomial", alpha=0.0), "'alpha' parameter"),
        (DecoratedTreeClassifier(alpha=1.0), "alpha must be None with rule='cross-validated', got"),
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


# -- growers and rules as objects ---------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize(
    ("name", "grower"),
    [
        ("kd", KD(min_samples_split=51)),
        ("cart", Cart(min_samples_split=51)),
        ("dyadic", Dyadic(min_samples_split=51)),
    ],
)
def test_a_grower_s_name_leaves_nodes_of_fifty_rows_unsplit(estimator, name, grower):
    X, y, _ = curved(500)
    y = target(estimator, X, y)
    by_name = estimator(grower=name, random_state=0).fit(X, y)
    by_object = estimator(grower=grower, random_state=0).fit(X, y)
    np.testing.assert_array_equal(by_name.predict(X), by_object.predict(X))
    nested = estimator(grower=name).set_params(grower__min_samples_split=200)
    assert type(nested.grower) is type(grower)
    assert grower.min_samples_split == 51
    assert nested.set_params(max_depth=3).grower.min_samples_split == 200
    kept = estimator(grower=name).set_params(grower__min_samples_split=51).grower
    assert kept.get_params() == grower.get_params()


@every_estimator
def test_a_fixed_box_may_be_decorated(estimator):
    X, y, _ = curved(1500)
    model = estimator(grower=Grid([[0, 0], [1, 1]]), max_depth=4, random_state=0)
    model.fit(X, target(estimator, X, y))
    assert 1 < model.get_n_leaves() <= 16
    assert set(model.tree_.threshold) <= set(np.arange(4) / 4)
    assert model.leaf_estimators_


def test_settings_of_the_rule_may_be_set_by_their_names():
    X, y, _ = curved(500)
    model = DecoratedTreeClassifier(rule="polynomial", alpha=0.01, max_depth=3)
    named = clone(model).fit(X, y)
    second = clone(model).set_params(rule__smoothness=2).fit(X, y)
    assert second.get_params()["rule__smoothness"] == 2
    np.testing.assert_array_equal(named.predict_proba(X), second.predict_proba(X))
    assert repr(second.rule) == "Polynomial()"
    with pytest.raises(ValueError, match="left out with rule='cross-validated'"):
        DecoratedTreeClassifier().set_params(rule__smoothness=2)


@every_estimator
def test_rows_of_weight_zero_are_as_if_absent(estimator):
    X, y, _ = curved(400)
    y = target(estimator, X, y)
    weight = np.where(np.arange(400) % 4 == 0, 0.0, 1.5)
    kept = weight > 0
    a = estimator(random_state=0, max_depth=3).fit(X, y, sample_weight=weight)
    b = estimator(random_state=0, max_depth=3).fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_models_in_leaves_have_no_spread():
    assert not hasattr(DecoratedTreeRegressor(), "predict_std")
    assert hasattr(PrunedTreeRegressor(), "predict_std")


@pytest.mark.parametrize("rule", ["cross-validated", "polynomial"])
def test_probabilities_of_one_class_are_1(rule):
    X, _, _ = curved(100)
    model = DecoratedTreeClassifier(rule=rule, random_state=0).fit(X, np.full(100, "only"))
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((100, 1)))


def test_text_says_which_leaves_have_models():
    X, y = load_iris(return_X_y=True)
    model = DecoratedTreeClassifier(random_state=0).fit(X, y)
    lines = model.export_text(1000).splitlines()
    assert (
        sum("and a model of its own" in line for line in lines) == len(model.leaf_estimators_) > 0
    )
