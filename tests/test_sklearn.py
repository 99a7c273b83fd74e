"""The estimators keep scikit-learn's contract, and what certree adds to it."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from certree import (
    KD,
    Cart,
    Dyadic,
    Grid,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    Voting,
    count,
    grow_cart,
    grow_dyadic,
    grow_kd,
)
from certree.estimators.tune import MIXED_GRID
from certree.prunings import Pessimistic, cost_complexity, sibling_merge_path
from certree.prunings.rule_names import RULES
from sklearn_checks import copies_differ, expect_checks, mark_copies

ESTIMATORS = [PACBayesTreeClassifier, PrunedTreeClassifier, HelmboldSchapireTreeClassifier]
GROWERS = ["cart", "dyadic", "kd", DecisionTreeClassifier(max_depth=6)]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
every_grower = pytest.mark.parametrize("grower", GROWERS, ids=str)


def two_classes(seed=0, n=200):
    return make_classification(n, 5, flip_y=0.2, random_state=seed)


@parametrize_with_checks(
    [*(estimator() for estimator in ESTIMATORS), PrunedTreeClassifier(rule="sibling-merge")]
)
def test_estimators_pass_the_checks_of_scikit_learn(request, estimator, check):
    if not isinstance(estimator, PrunedTreeClassifier):
        mark_copies(request, check)
    check(estimator)


@every_estimator
@pytest.mark.parametrize("grower", ["cart", "dyadic", DecisionTreeClassifier()], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_other_growers_pass_the_checks_of_scikit_learn(estimator, grower):
    expect_checks(estimator(grower), {} if estimator is PrunedTreeClassifier else copies_differ())


@every_estimator
def test_rows_of_weight_zero_are_as_if_absent(estimator):
    X, y = two_classes()
    weight = np.where(np.arange(len(y)) < 150, 0.5, 0)
    a = estimator(random_state=0).fit(X, y, sample_weight=weight)
    b = estimator(random_state=0).fit(X[:150], y[:150], sample_weight=weight[:150])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    splits = [(np.arange(0, 200, 2), np.arange(1, 200, 2))]
    kept = [(np.arange(0, 150, 2), np.arange(1, 150, 2))]
    a = estimator(cv=splits, random_state=0).fit(X, y, sample_weight=weight)
    b = estimator(cv=kept, random_state=0).fit(X[:150], y[:150], sample_weight=weight[:150])
    assert a.best_params_ == b.best_params_


@every_estimator
def test_the_order_of_the_rows_of_a_split_does_not_matter(estimator):
    X, y = two_classes()
    splits = list(KFold(3, shuffle=True, random_state=5).split(X, y))
    backwards = [(grow[::-1], judge[::-1]) for grow, judge in splits]
    a, b = (estimator(cv=cv, random_state=0).fit(X, y) for cv in (splits, backwards))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@every_estimator
def test_bad_weights_are_refused(estimator):
    X, y = two_classes(n=20)
    with pytest.raises(ValueError, match="at least one"):
        estimator().fit(X, y, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="Negative values"):
        estimator().fit(X, y, sample_weight=-np.ones(20))


def test_class_weights_are_sample_weights():
    X, y = two_classes()
    a = PACBayesTreeClassifier(class_weight={0: 3, 1: 1}, random_state=0).fit(X, y)
    b = PACBayesTreeClassifier(random_state=0).fit(X, y, sample_weight=np.where(y == 0, 3, 1))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    balanced = PACBayesTreeClassifier(class_weight="balanced", random_state=0).fit(X, y)
    assert balanced.stats_.counts[0] == pytest.approx([100, 100])


@every_estimator
@every_grower
def test_threads_do_not_change_a_bit(estimator, grower):
    X, y = two_classes(n=600)
    one = estimator(grower, random_state=0).fit(X, y)
    two = estimator(grower, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_shuffled_rows_give_the_same_model():
    X, y = two_classes()
    order = np.random.default_rng(0).permutation(len(y))
    for grower in ("cart", "kd", "dyadic"):
        a = PACBayesTreeClassifier(grower, random_state=0).fit(X, y)
        b = PACBayesTreeClassifier(grower, random_state=0).fit(X[order], y[order])
        np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@every_estimator
def test_one_class_is_predicted(estimator):
    X = np.random.default_rng(0).normal(size=(10, 2))
    model = estimator().fit(X, np.full(10, "only"))
    assert (model.predict(X) == "only").all()
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((10, 1)))
    assert model.path(X[0])[0].label == "only"


def test_three_classes_are_too_many_for_helmbold_and_schapire():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        HelmboldSchapireTreeClassifier().fit(X, y)


@every_estimator
def test_the_vote_is_a_distribution_and_its_largest_share_is_predicted(estimator):
    X, y = two_classes()
    model = estimator(random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_feature_names_are_kept_and_checked(frame):
    X, y = load_iris(return_X_y=True)
    names = ["a", "b", "c", "d"]
    columns = frame(dict(zip(names, X.T, strict=True)))
    model = PACBayesTreeClassifier(random_state=0).fit(columns, y)
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(columns[["b", "a", "c", "d"]])
    assert any(cell.rule[0] in names for cell in model.path(columns[:1])[1:])


def test_copies_pipelines_and_searches():
    X, y = two_classes()
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    pipeline = make_pipeline(StandardScaler(), clone(model)).set_output(transform="pandas")
    assert pipeline.fit(X, y).score(X, y) > 0.6
    search = GridSearchCV(clone(model), {"lambda_error": [0.1, 1.0], "grower": ["kd", "dyadic"]})
    assert search.fit(X, y).best_score_ > 0.5
    assert len(cross_val_score(clone(model), X, y, scoring="neg_log_loss")) == 5


@every_estimator
def test_numbers_of_any_type_are_read(estimator):
    X, y = two_classes()
    X = X.round(1)
    expected = estimator(random_state=0).fit(X, y).predict(X)
    np.testing.assert_array_equal(
        estimator(random_state=0).fit(X.astype(object), y).predict(X.astype(object)), expected
    )
    single = X.astype(np.float32)
    assert np.mean(estimator(random_state=0).fit(single, y).predict(single) == expected) > 0.9


@every_estimator
@every_grower
def test_missing_values_are_routed(estimator, grower):
    X, y = two_classes()
    X[::7, 0] = np.nan
    model = estimator(grower, random_state=0).fit(X, y)
    new = X[:50].copy()
    new[:, 1] = np.nan
    assert np.isfinite(model.predict_proba(new)).all()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((0, 2)), [], "0 sample"),
        (np.zeros((2, 0)), [0, 1], "0 feature"),
        (np.zeros(3), [0, 1, 0], "Expected 2D array"),
        ([[0.0], [1.0]], [0], "inconsistent numbers of samples"),
        ([[np.inf], [1.0]], [0, 1], "contains infinity or a value too large"),
        ([[0.0], [1.0]], [0.0, np.nan], "contains NaN"),
        ([["a"], ["b"]], [0, 1], "must hold numbers"),
        ([[0.0], [1.0]], [[0, 1], [1, 0]], "y should be a 1d array"),
        ([[0.0], [1.0]], [0.5, 1.7], "Unknown label type"),
    ],
)
@every_estimator
def test_bad_rows_are_refused_in_scikit_learns_words(estimator, X, y, message):
    if np.ndim(y) == 2 and get_tags(estimator()).target_tags.multi_output:
        pytest.skip("it takes several targets")
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"lambda_error": -1}, "lambda_error"),
        ({"lambda_penalty": -0.1}, "lambda_penalty"),
        ({"grower": "forest"}, "grower"),
        ({"grower": DecisionTreeClassifier}, "grower"),
        ({"prior": "flat"}, "prior"),
        ({"vote": "median"}, "vote"),
        ({"search": "random"}, "search"),
        ({"scoring": "auc"}, "scoring"),
        ({"cv": 1}, "cv"),
        (
            {"grower": Cart(min_samples_split=1)},
            "min_samples_split must be a number >= 2, or",
        ),
        ({"grower": KD(min_samples_split=np.nan)}, "min_samples_split must be at least 2"),
        ({"grower": KD(axis="longest")}, 'axis must be "cycle" or "spread", got'),
        ({"grower": Cart}, "grower"),
        ({"grower": Grid([[0.0] * 5, [0.0] * 5])}, "low < high in every feature"),
        ({"grower": Grid([[0.0] * 4, [1.0] * 4])}, r"box must have shape \(2, 5\)"),
        ({"vote": Voting}, "vote"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_depth": "deep"}, "max_depth"),
    ],
)
def test_bad_parameters_are_refused(parameters, error):
    X, y = two_classes(n=20)
    with pytest.raises(ValueError, match=error):
        PACBayesTreeClassifier(**parameters).fit(X, y)


@every_estimator
def test_prediction_needs_a_fit_and_as_many_features(estimator):
    X, y = two_classes(n=30)
    model = estimator()
    for method in ("predict", "predict_proba", "apply", "decision_path", "path", "explain"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X[:1])
    for method in ("get_depth", "get_n_leaves", "export_text"):
        with pytest.raises(NotFittedError):
            getattr(model, method)()
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 4 features, but .* is expecting 5 features"):
        model.predict(X[:, :4])


def test_a_failed_fit_leaves_the_fitted_model_alone():
    X, y = two_classes(n=60)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="contains infinity"):
        model.fit(np.full_like(X, np.inf), y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@every_estimator
def test_the_tree_can_be_looked_at(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 2] > 0).astype(int)
    model = estimator("cart", random_state=0).fit(X, y)
    assert model.feature_importances_.argmax() == 2
    assert model.feature_importances_.sum() == pytest.approx(1)
    path, leaf = model.decision_path(X[:9]), model.apply(X[:9])
    assert path.shape == (9, model.tree_.n_nodes)
    assert (path[np.arange(9), leaf] == 1).all()
    assert (path[:, 0].toarray() == 1).all()
    assert path.sum(axis=1).max() <= model.get_depth() + 1
    assert model.get_n_leaves() == model.tree_.n_leaves
    cells = model.path(X[0])
    assert sum(cell.share for cell in cells) == pytest.approx(1)
    with pytest.raises(ValueError, match="x must be a single row, got 2"):
        model.path(X[:2])


def test_a_pruned_tree_is_the_pruning_alone():
    X, y = two_classes(n=500)
    model = PrunedTreeClassifier("cart", alpha=3.0).fit(X, y)
    full = PrunedTreeClassifier("cart", alpha=0.0).fit(X, y)
    assert model.get_n_leaves() < full.get_n_leaves()
    assert full.score(X, y) == 1
    frequencies = model.stats_.counts / model.stats_.n[:, None]
    np.testing.assert_allclose(model.predict_proba(X), frequencies[model.apply(X)])


@pytest.mark.parametrize("cv", [3, None, KFold(3), KFold(2, shuffle=True, random_state=0)])
@pytest.mark.parametrize("scoring", ["error", "log_loss"])
def test_any_cv_and_scoring_tune(cv, scoring):
    X, y = two_classes()
    model = PACBayesTreeClassifier("cart", vote="mean", cv=cv, scoring=scoring, random_state=0)
    assert set(model.fit(X, y).best_params_) == {"lambda_error", "lambda_penalty"}
    assert model.score(X, y) > 0.6


def test_other_scikit_learn_trees_are_growers():
    X, y = two_classes()
    for tree in (DecisionTreeClassifier(criterion="entropy"), ExtraTreeClassifier()):
        a = PACBayesTreeClassifier(tree, random_state=3).fit(X, y)
        b = PACBayesTreeClassifier(tree, random_state=3).fit(X, y)
        np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
        assert not hasattr(tree, "tree_")


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
@pytest.mark.parametrize("unit", [0.1, 1.0, 1 / 3])
def test_equally_good_cuts_are_told_apart_in_the_same_way_with_weights(criterion, unit):
    # Each of the two features separates the classes.
    X = np.array([[3.0, 1.0], [2.0, 0.0], [3.0, 0.0], [1.0, 2.0]])
    y, weight = np.array([0, 0, 0, 1]), np.array([1, 3, 1, 3])
    model = PACBayesTreeClassifier(Cart(criterion), lambda_error=1.0, lambda_penalty=0.1)
    a = clone(model).fit(X, y, sample_weight=weight * unit)
    b = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(a.tree_.feature, b.tree_.feature)
    np.testing.assert_array_equal(a.tree_.feature, [0, 0, 0])
    np.testing.assert_array_equal(a.tree_.threshold, b.tree_.threshold)


@every_estimator
@every_grower
def test_weights_of_one_are_no_weights(estimator, grower):
    X, y = two_classes()
    a = estimator(grower, random_state=0).fit(X, y)
    b = estimator(grower, random_state=0).fit(X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@every_estimator
def test_a_class_whose_rows_weigh_nothing_is_absent(estimator):
    X, y = two_classes()
    model = estimator(random_state=0).fit(X, y, sample_weight=(y == 1).astype(float))
    np.testing.assert_array_equal(model.classes_, [1])
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))


@every_estimator
@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]], ids=["numbers", "strings"])
def test_class_weights_multiply_sample_weights(estimator, labels):
    X, y = two_classes()
    names = np.array(labels)[y]
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    weight[:20] = 0
    a = estimator(class_weight={labels[0]: 3, labels[1]: 0.5}, random_state=0)
    a.fit(X, names, sample_weight=weight)
    b = estimator(random_state=0).fit(X, names, sample_weight=weight * np.where(y == 0, 3, 0.5))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@every_estimator
def test_balanced_weights_are_those_of_scikit_learn(estimator):
    X, y = two_classes()
    X, y = X[60:], np.sort(y)[60:]
    share = np.bincount(y) / len(y)
    assert share.min() < 0.35
    a = estimator(class_weight="balanced", random_state=0).fit(X, y)
    b = estimator(random_state=0).fit(X, y, sample_weight=(0.5 / share)[y])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    # Rows of weight zero do not count as members of their class.
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    a = estimator(class_weight="balanced", random_state=0).fit(X, y, sample_weight=weight)
    b = estimator(class_weight="balanced", random_state=0).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@every_estimator
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, np.nan, 1.0, 1.0], "contains NaN"),
        ([1.0, np.inf, 1.0, 1.0], "contains infinity"),
        ([1.0, 1.0, 1.0], "sample_weight.shape"),
        ([[1.0]] * 4, "1D array or scalar"),
        ([1.0, -1e-9, 1.0, 1.0], "Negative values"),
    ],
    ids=["NaN", "infinite", "short", "table", "negative"],
)
def test_weights_that_are_none_are_refused(estimator, weight, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], sample_weight=weight)


def test_class_weights_that_leave_no_row_are_refused():
    with pytest.raises(ValueError, match="positive for at least one row"):
        PACBayesTreeClassifier(class_weight={0: 0, 1: 0}).fit([[0.0], [1.0]], [0, 1])


# -- cross-validation ------------------------------------------------------------------------------


@every_estimator
def test_an_iterable_of_splits_means_what_the_splitter_does(estimator):
    X, y = two_classes()
    splitter = KFold(3, shuffle=True, random_state=5)
    splits = list(splitter.split(X, y))
    masks = [(np.isin(np.arange(len(y)), grow), judge) for grow, judge in splits]
    chosen = [
        estimator(cv=cv, random_state=0).fit(X, y).best_params_
        for cv in (splitter, splits, iter(splits), masks)
    ]
    assert chosen[1:] == chosen[:1] * 3


@every_estimator
def test_splits_count_all_rows_while_splitters_see_those_of_positive_weight(estimator):
    X, y = two_classes()
    weight = np.random.default_rng(0).choice([0.0, 0.7, 2.0], len(y))
    weight[[0, -1]] = 0
    left = np.flatnonzero(weight)
    splits = list(KFold(3, shuffle=True, random_state=5).split(X))
    numbers = np.cumsum(weight > 0) - 1
    kept = [tuple(numbers[part[weight[part] > 0]] for part in split) for split in splits]
    for cv, cv_left in ((splits, kept), (KFold(4), KFold(4)), (3, 3), (None, None)):
        a = estimator(cv=cv, random_state=0).fit(X, y, sample_weight=weight)
        b = estimator(cv=cv_left, random_state=0).fit(X[left], y[left], sample_weight=weight[left])
        assert a.best_params_ == b.best_params_
        np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


def test_five_folds_are_dealt_by_default_of_scikit_learn():
    X, y = two_classes()
    a = PACBayesTreeClassifier(cv=None, random_state=0).fit(X, y)
    b = PACBayesTreeClassifier(cv=5, random_state=0).fit(X, y)
    assert a.best_params_ == b.best_params_


@every_estimator
def test_the_number_of_folds_and_the_seed_matter(estimator):
    X, y = two_classes()
    switches = [{"cv": cv, "random_state": seed} for cv in (2, 5) for seed in range(5)]
    models = [estimator(scoring="log_loss", **each).fit(X, y) for each in switches]
    assert len({str((model.best_params_, model.mixture_weights_)) for model in models}) > 1


def test_given_temperatures_need_no_cross_validation():
    X, y = two_classes()
    model = PACBayesTreeClassifier(lambda_error=0.5, lambda_penalty=0.25, cv=iter([]))
    assert model.fit(X, y).best_params_ == {"lambda_error": 0.5, "lambda_penalty": 0.25}
    half = PACBayesTreeClassifier(lambda_penalty=0.25, random_state=0).fit(X, y)
    assert half.best_params_["lambda_penalty"] == 0.25
    assert half.best_params_["lambda_error"] == 4 * MIXED_GRID.tolist()
    one = PACBayesTreeClassifier(lambda_error=0.5, prior="leaves", random_state=0).fit(X, y)
    assert set(one.posteriors_) == {"error, leaves"}
    assert one.best_params_["lambda_penalty"] == MIXED_GRID.tolist()
    assert sum(half.mixture_weights_) == pytest.approx(1)


@pytest.mark.parametrize(
    ("search", "scoring", "n_laws"),
    [
        (None, "log_loss", 32),
        ("mixture", "log_loss", 32),
        (None, "error", 1),
        ("joint", "log_loss", 1),
    ],
)
def test_the_search_decides_whether_laws_are_mixed(search, scoring, n_laws):
    X, y = two_classes()
    model = PACBayesTreeClassifier(search=search, scoring=scoring, random_state=0).fit(X, y)
    assert len(model.mixture_weights_) == n_laws == np.size(model.best_params_["lambda_error"])
    assert len(model.posteriors_) == n_laws
    pairs = [
        f"{loss}, {prior}" for loss in ("error", "log_loss") for prior in ("leaves", "branching")
    ]
    assert n_laws == 1 or model.posteriors_ == list(np.repeat(pairs, 8))
    np.testing.assert_array_equal(
        model.classes_[model.predict_proba(X).argmax(1)], model.predict(X)
    )


def test_a_mixture_is_not_learned_from_errors():
    with pytest.raises(ValueError, match='scoring must be "log_loss" with search="mixture"'):
        PACBayesTreeClassifier(search="mixture", scoring="error").fit(*two_classes())


@every_estimator
@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_rows_are_fitted(estimator, n):
    X, y = np.arange(float(n))[:, None], np.arange(n) % 2
    for cv in (2, 10):
        model = estimator(cv=cv, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert set(model.predict(X)) <= set(y)


@every_estimator
def test_scoring_matters_to_what_is_chosen(estimator):
    X, y = two_classes(n=300)
    chosen = [
        estimator(scoring=scoring, random_state=seed).fit(X, y).best_params_
        for scoring in ("error", "log_loss")
        for seed in range(3)
    ]
    assert chosen[:3] != chosen[3:]


def test_random_states_of_every_kind_are_taken():
    X, y = two_classes()
    a = PACBayesTreeClassifier(random_state=3).fit(X, y)
    b = PACBayesTreeClassifier(random_state=np.random.RandomState(3)).fit(X, y)
    assert a.best_params_ == b.best_params_
    np.random.seed(3)  # noqa: NPY002 - what None means to scikit-learn
    c = PACBayesTreeClassifier().fit(X, y)
    assert c.best_params_ == a.best_params_


# -- rows and classes ------------------------------------------------------------------------------


@every_estimator
@every_grower
@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
def test_a_missing_value_goes_the_same_way_in_any_container(estimator, grower, single):
    X, y = two_classes()
    X = X.astype(np.float32) if single else X
    X[::5, 1] = np.nan
    model = estimator(grower, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    for rows in (np.asfortranarray(X), X.astype(object), X.tolist()):
        np.testing.assert_array_equal(model.predict_proba(rows), expected)
    np.testing.assert_array_equal(
        np.vstack([model.predict_proba(row[None]) for row in X[:30]]), expected[:30]
    )


@every_estimator
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_are_refused(estimator, container):
    X, y = two_classes(n=30)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        estimator().fit(container(X), y)
    model = estimator(random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        model.predict(container(X))


@every_estimator
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[np.inf, 0.0]], "contains infinity or a value too large"),
        ([["a", "b"]], "must hold numbers"),
        ([1.0, 2.0], "Expected 2D array"),
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros((1, 3)), "X has 3 features"),
    ],
    ids=["infinite", "words", "one row", "no row", "wide"],
)
def test_bad_rows_are_refused_when_predicting_too(estimator, rows, message):
    model = estimator(random_state=0).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 1])
    for method in ("predict", "predict_proba", "apply", "decision_path"):
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(rows)


@every_estimator
@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (["b", "a"], "<U1"),
        (np.array(["b", "a"], dtype=object), object),
        ([True, False], bool),
        ([7, -2], int),
        ([0.0, 2.0], float),
    ],
    ids=["str", "object", "bool", "int", "float"],
)
def test_classes_of_every_kind_are_predicted_as_such(estimator, classes, dtype):
    X, y = two_classes()
    names = np.asarray(classes)[y]
    model = estimator(random_state=0).fit(X, names)
    reference = estimator(random_state=0).fit(X, y if classes[0] < classes[1] else 1 - y)
    np.testing.assert_array_equal(model.classes_, sorted(classes))
    assert model.predict(X).dtype == model.classes_.dtype == dtype
    np.testing.assert_array_equal(model.predict_proba(X), reference.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), model.classes_[reference.predict(X)])


@pytest.mark.parametrize("estimator", [PACBayesTreeClassifier, PrunedTreeClassifier])
@every_grower
def test_many_classes_are_told_apart(estimator, grower):
    X, y = load_iris(return_X_y=True)
    model = estimator(grower, random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > (0.6 if grower == "dyadic" else 0.85)
    assert model.predict_proba(X).shape == (150, 3)


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
@every_estimator
def test_frames_are_read_like_their_arrays(estimator, container):
    X, y = two_classes()
    frame = container({f"x{j}": X[:, j] for j in range(X.shape[1])})
    a, b = estimator(random_state=0).fit(frame, y), estimator(random_state=0).fit(X, y)
    np.testing.assert_array_equal(a.predict_proba(frame), b.predict_proba(X))
    assert list(a.feature_names_in_) == list(frame.columns)
    assert a.n_features_in_ == 5
    assert not hasattr(b, "feature_names_in_")
    one_row = a.path(frame[:1])
    assert [cell.share for cell in one_row] == [cell.share for cell in b.path(X[0])]
    with pytest.raises(ValueError, match="x must be a single row, got 3"):
        a.path(frame[:3])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        a.predict(X)


def test_a_missing_value_of_pandas_is_one():
    X, y = two_classes()
    X[::4, 2] = np.nan
    frame = pd.DataFrame(X).rename(columns=str).convert_dtypes()
    assert frame["2"].isna().sum() == 50
    a = PACBayesTreeClassifier(random_state=0).fit(frame, y)
    b = PACBayesTreeClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(a.predict_proba(frame), b.predict_proba(X))


@every_estimator
def test_the_rows_given_are_left_as_they_are(estimator):
    X, y = two_classes()
    X[3, 1], weight = -0.0, np.ones(len(y))
    before = X.copy()
    for array in (X, y, weight):
        array.flags.writeable = False
    estimator(random_state=0).fit(X, y, sample_weight=weight).predict(X)
    assert X.tobytes() == before.tobytes()


# -- fitted models ---------------------------------------------------------------------------------


@every_estimator
@every_grower
def test_copies_of_every_kind_predict_the_same(estimator, grower):
    X, y = two_classes()
    model = estimator(grower, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    for again in (
        copy.deepcopy(model),
        copy.copy(model),
        pickle.loads(pickle.dumps(model)),
        clone(model).fit(X, y),
        model.fit(X, y),
    ):
        np.testing.assert_array_equal(again.predict_proba(X), expected)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@every_estimator
def test_a_clone_is_not_fitted_and_has_all_parameters(estimator):
    X, y = two_classes()
    grower = DecisionTreeClassifier(max_depth=4)
    model = estimator(grower, cv=3, max_depth=9, random_state=4).fit(X, y)
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict(X)
    ours, theirs = again.get_params(), model.get_params()
    assert ours.pop("grower") is not theirs.pop("grower")
    assert ours == theirs
    assert ours["grower__max_depth"] == 4
    again.set_params(grower__max_depth=1).fit(X, y)
    assert again.get_depth() <= 1 < model.tree_.n_nodes
    assert grower.max_depth == 4


@every_estimator
def test_a_path_holds_the_leaf_and_all_nodes_above_it(estimator):
    X, y = two_classes()
    model = estimator(random_state=0).fit(X, y)
    path, leaves = model.decision_path(X), model.apply(X)
    parent = model.tree_.parent
    for i, leaf in enumerate(leaves):
        nodes = {int(leaf)}
        while min(nodes) > 0:
            nodes.add(int(parent[min(nodes)]))
        assert set(path[[i]].indices) == nodes
        assert model.tree_.is_leaf[leaf]
    assert (path.data == 1).all()


@every_estimator
def test_depth_and_leaves_are_those_of_the_tree(estimator):
    X, y = two_classes()
    model = estimator("cart", random_state=0).fit(X, y)
    lengths = np.asarray(model.decision_path(X).sum(axis=1)).ravel()
    assert model.get_depth() == lengths.max() - 1
    assert model.get_n_leaves() == len(set(model.apply(X)))
    shallow = estimator("cart", max_depth=2, random_state=0).fit(X, y)
    assert shallow.get_depth() <= 2
    assert shallow.get_n_leaves() <= 4


@every_estimator
@every_grower
def test_importances_are_shares_that_favour_the_feature_that_matters(estimator, grower):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = ((X[:, 1] > 0.1) ^ (rng.random(600) < 0.1)).astype(int)
    importances = estimator(grower, random_state=0).fit(X, y).feature_importances_
    assert importances.shape == (3,)
    assert importances.min() >= 0
    assert importances.sum() == pytest.approx(1)
    assert importances.argmax() == 1


@every_estimator
def test_a_tree_without_splits_has_no_importances(estimator):
    model = estimator(random_state=0).fit([[1.0, 2.0]] * 4, [0, 1, 0, 1])
    np.testing.assert_array_equal(model.feature_importances_, [0, 0])
    assert (model.get_depth(), model.get_n_leaves()) == (0, 1)
    np.testing.assert_allclose(model.predict_proba([[1.0, 2.0]]), [[0.5, 0.5]], atol=0.5)


def test_the_vote_is_the_mean_of_the_prunings_it_weighs():
    # Two prunings: the root alone, or one cut.
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    model = PACBayesTreeClassifier(
        DecisionTreeClassifier(), vote="majority", lambda_error=1.0, lambda_penalty=0.5
    ).fit(X, y)
    whole = np.exp(-1 - 2 * 1.0 - 0.5 * np.sqrt(4))
    cut = np.exp(-2 - 0.5 * 2 * np.sqrt(2))
    share = whole / (whole + cut)
    np.testing.assert_allclose(model.predict_proba([[0.0]]), [[1, 0]])
    np.testing.assert_allclose(model.predict_proba([[3.0]]), [[share, 1 - share]])
    for smoothing in (0.0, 0.5, 1.0):
        mean = clone(model).set_params(vote=Voting("mean", smoothing)).fit(X, y)
        other_class = 0.5 * smoothing / (2 + smoothing)  # in a leaf, beside its two rows
        first = 0.5 * share + other_class * (1 - share)
        np.testing.assert_allclose(mean.predict_proba([[3.0]]), [[first, 1 - first]])


@every_estimator
def test_the_largest_share_is_predicted_and_ties_go_to_the_first_class(estimator):
    model = estimator(random_state=0).fit([[1.0]] * 4, ["b", "a", "b", "a"])
    assert model.predict([[1.0]]) == ["a"]


def test_a_failed_fit_does_not_mix_up_the_classes():
    X, y = two_classes()
    model = HelmboldSchapireTreeClassifier(random_state=0).fit(X, np.array(["b", "c"])[y])
    before = model.predict(X)
    with pytest.raises(ValueError, match="Only binary classification"):
        model.fit(X, np.array(["a", "b", "c"])[np.arange(len(y)) % 3])
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(model.classes_, ["b", "c"])


@every_estimator
def test_progress_is_shown_on_standard_error_if_wanted(estimator, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if somebody watched
    monkeypatch.delenv("NO_COLOR", raising=False)
    X, y = two_classes()
    estimator(random_state=0, verbose=0).fit(X, y)
    assert capsys.readouterr() == ("", "")
    shown = estimator(random_state=0, verbose=1).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert estimator.__name__ in err
    quiet = estimator(random_state=0).fit(X, y)
    np.testing.assert_array_equal(shown.predict_proba(X), quiet.predict_proba(X))


# -- parameters ------------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("value", [-1.0, -1e-300, np.nan, np.inf, "much"])
def test_temperatures_are_finite_and_not_negative(estimator, value):
    X, y = two_classes(n=20)
    for name in estimator._temperatures:
        with pytest.raises(ValueError, match=name):
            estimator(**{name: value}).fit(X, y)


@every_estimator
@pytest.mark.parametrize("grower", [DecisionTreeClassifier, object(), 5, None])
def test_a_grower_that_cannot_grow_is_refused(estimator, grower):
    X, y = two_classes(n=20)
    with pytest.raises((ValueError, TypeError), match="grower"):
        estimator(grower).fit(X, y)


def test_an_estimator_without_a_tree_is_no_grower():
    X, y = two_classes(n=20)
    with pytest.raises(TypeError, match="estimator must be a fitted scikit-learn decision tree"):
        PACBayesTreeClassifier(StandardScaler()).fit(X, y)


@every_estimator
def test_an_estimator_s_cells_are_its_own(estimator):
    X, y = two_classes()
    tree = DecisionTreeClassifier(max_leaf_nodes=6, random_state=2)
    model = estimator(tree, random_state=0).fit(X, y)
    fitted = clone(tree).fit(X, y)
    if estimator is not PrunedTreeClassifier:
        cells = {(a, b) for a, b in zip(fitted.apply(X), model.apply(X), strict=True)}
        assert len(cells) == len({a for a, _ in cells}) == len({b for _, b in cells}) == 6
    else:
        assert model.get_n_leaves() <= 6


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_pruning_has_weights_zero_and_one_and_shrinks_with_its_price(rule):
    X, y = two_classes(n=400)
    sizes = []
    for alpha in (0.0, 0.01, 1.0, 1e6):
        model = PrunedTreeClassifier("cart", rule=rule, alpha=alpha).fit(X, y)
        np.testing.assert_array_equal(model.weights_.weight, model.tree_.is_leaf)
        sizes.append(model.get_n_leaves())
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] == 1


def test_sibling_merge_takes_the_pruning_of_its_price_given_or_tuned():
    X, y = two_classes(n=400)
    sizes = set()
    for alpha in (1.0, 3.0, None):
        model = PrunedTreeClassifier(rule="sibling-merge", alpha=alpha, random_state=0)
        model.fit(X, y)
        tree = grow_cart(X, y)
        path = sibling_merge_path(tree, count(tree, X, y, 2))
        weights = path.solve(model.best_params_["alpha"])
        assert model.get_n_leaves() == weights.expected_leaves
        cells = set(zip(path_leaves(tree, weights, X), model.apply(X), strict=True))
        assert len(cells) == model.get_n_leaves()
        sizes.add(model.get_n_leaves())
    assert len(sizes) == 3


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"depth"}))
def test_every_rule_tunes_its_price_to_a_tree_that_is_not_a_leaf(rule):
    X, y = two_classes(n=400)
    model = PrunedTreeClassifier("dyadic", rule=rule, random_state=0).fit(X, y)
    full = PrunedTreeClassifier("dyadic", rule=rule, alpha=0).fit(X, y)
    assert 1 < model.get_n_leaves() <= full.get_n_leaves()


def path_leaves(tree, weights, X):
    """The leaf of a pruning that each row reaches."""
    nodes = tree.apply(X)
    while (above := weights.weight[nodes] == 0).any():
        nodes = np.where(above, tree.parent[nodes], nodes)
    return nodes


def test_searches_of_scikit_learn_find_a_temperature_and_a_grower():
    X, y = two_classes()
    grid = {"lambda_error": [0.0, 0.5], "grower": ["kd", DecisionTreeClassifier(max_depth=3)]}
    model = PACBayesTreeClassifier(vote="majority", lambda_penalty=0.1, random_state=0)
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["lambda_error"] == 0.5
    assert len(search.cv_results_["params"]) == 4
    pipeline = make_pipeline(StandardScaler(), clone(model))
    name = "pacbayestreeclassifier__grower"
    search = GridSearchCV(pipeline, {name: ["kd", "cart"]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.6


def test_a_scaler_s_frame_gives_its_names_to_the_model():
    X, y = load_iris(return_X_y=True, as_frame=True)
    for kind in ("pandas", "polars"):
        pipeline = make_pipeline(StandardScaler(), PACBayesTreeClassifier(random_state=0))
        pipeline.set_output(transform=kind).fit(X, y)
        assert list(pipeline[-1].feature_names_in_) == list(X.columns)
        assert pipeline.score(X, y) > 0.9


# -- growers as objects -------------------------------------------------------------------------

OBJECTS = [Cart(), KD(), Dyadic()]
GROWN_BY = {"cart": grow_cart, "kd": grow_kd, "dyadic": grow_dyadic}


def given(estimator):
    """Temperatures that spare the cross-validation."""
    if estimator is PACBayesTreeClassifier:
        return {"lambda_error": 0.5, "lambda_penalty": 0.1}
    return {"alpha": 0.0} if estimator is PrunedTreeClassifier else {"inverse_temperature": 1.0}


@every_estimator
@pytest.mark.parametrize(
    ("name", "grower"), [*zip(["cart", "kd", "dyadic"], OBJECTS, strict=True)], ids=str
)
def test_a_name_is_short_for_the_grower_with_its_defaults(estimator, name, grower):
    X, y = two_classes()
    by_name = estimator(name, random_state=0).fit(X, y)
    by_object = estimator(grower, random_state=0).fit(X, y)
    np.testing.assert_array_equal(by_name.predict_proba(X), by_object.predict_proba(X))
    assert by_name.grower == name
    assert by_object.grower is grower


@every_estimator
@pytest.mark.parametrize("grower", ["cart", "kd", "dyadic"])
def test_estimators_and_functions_grow_by_the_same_defaults(estimator, grower):
    X, y = two_classes()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    for w in (None, weight):
        model = estimator(grower, **given(estimator)).fit(X, y, sample_weight=w)
        tree = GROWN_BY[grower](X, y, sample_weight=w)
        if estimator is PrunedTreeClassifier:
            stats = count(tree, X, y, 2, sample_weight=w)
            assert model.get_n_leaves() == cost_complexity(tree, stats, 0.0).expected_leaves
        else:
            np.testing.assert_array_equal(model.tree_.feature, tree.feature)
            np.testing.assert_array_equal(model.tree_.threshold, tree.threshold)
            np.testing.assert_array_equal(model.tree_.left, tree.left)


@pytest.mark.parametrize(("name", "grow"), [*GROWN_BY.items()], ids=[*GROWN_BY])
def test_functions_take_the_switches_of_their_grower_and_no_others(name, grow):
    X, y = two_classes()
    grower = dict(zip(GROWN_BY, OBJECTS, strict=True))[name]
    plain, switched = grow(X, y), grow(X, y, **grower.get_params())
    np.testing.assert_array_equal(plain.threshold, switched.threshold)
    smaller = clone(grower).set_params(min_samples_split=60)
    model = PACBayesTreeClassifier(smaller, lambda_error=1.0, lambda_penalty=0.0).fit(X, y)
    tree = grow(X, y, min_samples_split=60)
    assert tree.n_leaves < plain.n_leaves
    np.testing.assert_array_equal(model.tree_.threshold, tree.threshold)
    with pytest.raises(TypeError, match="unexpected keyword argument 'min_rows'"):
        grow(X, y, min_rows=5)


@pytest.mark.parametrize(
    "grower",
    [
        Cart("gini", max_leaf_nodes=9, max_features="sqrt"),
        KD(axis="cycle", stop_when_pure=False),
        Dyadic(resolution="paper", exponent=0.5),
        Grid([[0, 0], [1, 2]]),
        Grid(np.array([[0.0], [1.0]])),
    ],
    ids=str,
)
def test_growers_are_cloned_copied_and_say_what_they_are(grower):
    params = grower.get_params()
    for again in (
        clone(grower),
        copy.deepcopy(grower),
        pickle.loads(pickle.dumps(grower)),
    ):
        assert type(again) is type(grower)
        assert again is not grower
        assert str(again.get_params()) == str(params)
        assert repr(again) == repr(grower)
    model = PACBayesTreeClassifier(grower)
    words = " ".join(f"grower={grower!r}".split())
    assert words in " ".join(repr(model).split())
    assert clone(model).grower is not grower
    assert {f"grower__{name}" for name in params} <= set(model.get_params())


def test_the_words_of_growers():
    assert repr(Cart(criterion="gini", max_leaf_nodes=64)) == (
        "Cart(criterion='gini', max_leaf_nodes=64)"
    )
    assert [*map(repr, OBJECTS)] == ["Cart()", "KD()", "Dyadic()"]
    assert repr(Grid([[0, 0], [1, 1]])) == "Grid(box=[[0, 0], [1, 1]])"


@every_estimator
def test_switches_are_set_through_the_estimator_whatever_was_given(estimator):
    model = estimator().set_params(grower__max_leaf_nodes=4)
    assert (model.grower.max_leaf_nodes, model.grower.criterion) == (4, None)
    model.set_params(grower__criterion="gini")
    assert (model.grower.max_leaf_nodes, model.grower.criterion) == (4, "gini")
    model.set_params(grower="kd", grower__axis="cycle")
    assert repr(model.grower) == "KD(axis='cycle')"
    model.set_params(grower=DecisionTreeClassifier(), grower__max_depth=3)
    assert model.grower.max_depth == 3
    assert estimator().grower == "cart"
    with pytest.raises(ValueError, match="Invalid parameter 'max_leaves' for estimator Cart"):
        estimator().set_params(grower__max_leaves=4)
    with pytest.raises(ValueError, match=r"grower must be .* got 'forest'"):
        estimator("forest").set_params(grower__max_leaf_nodes=4)


@every_estimator
def test_searches_of_scikit_learn_find_a_switch_of_a_name(estimator):
    X, y = two_classes()
    model = estimator(**given(estimator))
    grid = [
        {"grower": ["cart"], "grower__max_leaf_nodes": [2, 8]},
        {"grower": ["kd"], "grower__axis": ["cycle", "spread"]},
        {"max_depth": [3]},
    ]
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 5
    assert model.grower == "cart"
    shallow = GridSearchCV(model, {"grower__max_leaf_nodes": [2]}, cv=3).fit(X, y)
    assert shallow.best_estimator_.get_n_leaves() == 2


def test_two_models_do_not_share_what_a_name_became():
    one = PACBayesTreeClassifier().set_params(grower__max_leaf_nodes=4)
    two = PACBayesTreeClassifier().set_params(grower__max_leaf_nodes=8)
    assert one.grower is not two.grower
    assert one.grower.max_leaf_nodes == 4


@every_estimator
def test_fits_leave_the_grower_as_it_is(estimator):
    X, y = two_classes()
    for grower in (Cart(max_leaf_nodes=5), KD(), Dyadic(), Grid([[-9.0] * 5, [9.0] * 5])):
        before = copy.deepcopy(vars(grower))
        estimator(grower, random_state=0).fit(X, y)
        assert vars(grower) == before


@every_estimator
def test_a_fixed_box_is_a_grower_of_any_classifier(estimator):
    X, y = two_classes(n=500)
    grid = Grid([[-3.0] * 5, [3.0] * 5])
    model = estimator(grid, random_state=0).fit(X, y)
    assert 1 < model.get_n_leaves() <= 2**8
    assert model.score(X, y) > 0.6
    # No row has a part in the tree: others of the same number have the same.
    other = estimator(grid, **given(estimator)).fit(np.sqrt(np.abs(X)), 1 - y)
    assert set(other.tree_.threshold) <= set(np.linspace(-3, 3, 17))
    shallow = estimator(grid, max_depth=3, random_state=0).fit(X, y)
    assert shallow.get_depth() <= 3
    if estimator is not PrunedTreeClassifier:
        assert model.get_n_leaves() == 2**8  # log2 of 500
        assert shallow.get_n_leaves() == 2**3


class CellsOfAnyClass:
    """A grower that somebody else might write."""

    depends_on_rows, supports_monotonic_cst = True, False

    def get_params(self, deep=True):  # noqa: ARG002 -- scikit-learn's
        return {}

    def grow(self, rows):
        return KD(stop_when_pure=False).grow(replace(rows, max_depth=rows.X.shape[1]))


@every_estimator
def test_any_object_that_grows_trees_is_a_grower(estimator):
    X, y = two_classes()
    model = estimator(CellsOfAnyClass(), **given(estimator)).fit(X, y)
    assert model.get_depth() <= 5
    assert model.score(X, y) > 0.6


# -- votes and rules as objects --------------------------------------------------------------------


def test_a_voting_says_how_prunings_vote():
    X, y = two_classes()
    posterior = {"lambda_error": 0.5, "lambda_penalty": 0.1}
    shares = {
        name: PACBayesTreeClassifier(vote=voting, **posterior).fit(X, y).predict_proba(X)
        for name, voting in {
            "mean": "mean",
            "same": Voting("mean", smoothing=0.1),
            "plain": Voting("mean"),
            "majority": "majority",
            "same majority": Voting("majority"),
        }.items()
    }
    np.testing.assert_array_equal(shares["mean"], shares["same"])
    np.testing.assert_array_equal(shares["majority"], shares["same majority"])
    assert not np.array_equal(shares["mean"], shares["plain"])
    model = PACBayesTreeClassifier(vote=Voting("mean", smoothing=3.0))
    assert clone(model).vote.smoothing == 3.0
    assert f"vote={model.vote!r}" in " ".join(repr(model).split())


def test_a_voting_that_cannot_be_is_refused():
    for kind, smoothing, message in (
        ("median", 0.0, 'kind must be "majority" or "mean", got \'median\''),
        ("mean", -1.0, "smoothing must be a finite number >= 0"),
        ("mean", np.nan, "smoothing must be a finite number >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Voting(kind, smoothing)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_rule_s_name_is_short_for_the_rule_with_its_defaults(rule):
    X, y = two_classes()
    by_name = PrunedTreeClassifier(rule=rule, random_state=0).fit(X, y)
    by_object = PrunedTreeClassifier(rule=RULES[rule](), random_state=0).fit(X, y)
    np.testing.assert_array_equal(by_name.predict_proba(X), by_object.predict_proba(X))
    assert by_name.best_params_ == by_object.best_params_
    again = clone(by_object.rule)
    assert again.get_params() == by_object.rule.get_params()
    assert repr(again) == f"{RULES[rule].__name__}()"


def test_settings_of_a_rule_reach_the_pruning():
    X, y = two_classes(n=400)
    model = PrunedTreeClassifier(rule="pessimistic", alpha=1.0)
    sizes = [
        clone(model).set_params(rule__confidence=confidence).fit(X, y).get_n_leaves()
        for confidence in (0.01, 0.25, 0.999)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert sizes[1] == clone(model).fit(X, y).get_n_leaves()
    for confidence in (0.0, 1.5):
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
            PrunedTreeClassifier(rule=Pessimistic(confidence)).fit(X, y)
    with pytest.raises(ValueError, match=r"rule must be the name of a rule .* got 'optimistic'"):
        PrunedTreeClassifier(rule="optimistic").set_params(rule__confidence=0.1)
