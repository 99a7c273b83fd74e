"""The estimators keep scikit-learn's contract, and what certree adds to it."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from certree import HelmboldSchapireClassifier, PACBayesTreeClassifier, PrunedTreeClassifier

ESTIMATORS = [PACBayesTreeClassifier, PrunedTreeClassifier, HelmboldSchapireClassifier]
PARTITIONS = ["cart", "dyadic", "kd", DecisionTreeClassifier(max_depth=6)]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
every_partition = pytest.mark.parametrize("partition", PARTITIONS, ids=str)


def two_classes(seed=0, n=200):
    return make_classification(n, 5, flip_y=0.2, random_state=seed)


@parametrize_with_checks([estimator() for estimator in ESTIMATORS])
def test_default_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@every_estimator
@pytest.mark.parametrize("partition", ["cart", "dyadic", DecisionTreeClassifier()], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_other_partitions_pass_the_checks_of_scikit_learn(estimator, partition):
    expected = {}
    if (estimator, partition) == (PACBayesTreeClassifier, "dyadic") or (
        estimator is HelmboldSchapireClassifier and partition != "dyadic"
    ):
        # It weighs the rows of two classes by 1e-4, which leaves the decision to the prior.
        expected["check_class_weight_classifiers"] = "the prior outweighs rows of weight 1e-4"
    check_estimator(estimator(partition), expected_failed_checks=expected, on_skip=None)


@every_estimator
@every_partition
def test_whole_weights_are_repeated_rows_with_tuning_included(estimator, partition):
    X, y = two_classes()
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 4, len(y))
    for cv in (2, 3):
        model = estimator(partition, cv=cv, random_state=0)
        weighted = clone(model).fit(X, y, sample_weight=weight)
        order = rng.permutation(weight.sum())
        repeated = clone(model).fit(np.repeat(X, weight, 0)[order], np.repeat(y, weight)[order])
        assert weighted.temperatures_ == repeated.temperatures_
        np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))


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
    assert a.temperatures_ == b.temperatures_


@every_estimator
def test_bad_weights_are_refused(estimator):
    X, y = two_classes(n=20)
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
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
@every_partition
def test_threads_do_not_change_a_bit(estimator, partition):
    X, y = two_classes(n=600)
    one = estimator(partition, random_state=0).fit(X, y)
    two = estimator(partition, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_shuffled_rows_give_the_same_model():
    X, y = two_classes()
    order = np.random.default_rng(0).permutation(len(y))
    for partition in ("cart", "kd", "dyadic"):
        a = PACBayesTreeClassifier(partition, random_state=0).fit(X, y)
        b = PACBayesTreeClassifier(partition, random_state=0).fit(X[order], y[order])
        np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@every_estimator
def test_one_class_is_predicted(estimator):
    X = np.random.default_rng(0).normal(size=(10, 2))
    model = estimator().fit(X, np.full(10, "only"))
    assert (model.predict(X) == "only").all()
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((10, 1)))
    assert model.explain(X[0])[0].label == "only"


def test_three_classes_are_too_many_for_helmbold_and_schapire():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        HelmboldSchapireClassifier().fit(X, y)


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
    assert any(cell.rule[0] in names for cell in model.explain(columns[:1])[1:])


def test_copies_pipelines_and_searches():
    X, y = two_classes()
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    pipeline = make_pipeline(StandardScaler(), clone(model)).set_output(transform="pandas")
    assert pipeline.fit(X, y).score(X, y) > 0.6
    search = GridSearchCV(clone(model), {"lambda_error": [0.1, 1.0], "partition": ["kd", "dyadic"]})
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
@every_partition
def test_missing_values_are_routed(estimator, partition):
    X, y = two_classes()
    X[::7, 0] = np.nan
    model = estimator(partition, random_state=0).fit(X, y)
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
        ([["a"], ["b"]], [0, 1], "could not convert string to float"),
        ([[0.0], [1.0]], [[0, 1], [1, 0]], "y should be a 1d array"),
        ([[0.0], [1.0]], [0.5, 1.7], "Unknown label type"),
    ],
)
@every_estimator
def test_bad_rows_are_refused_in_scikit_learns_words(estimator, X, y, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"lambda_error": -1}, "lambda_error"),
        ({"lambda_penalty": -0.1}, "lambda_penalty"),
        ({"partition": "forest"}, "partition"),
        ({"partition": DecisionTreeClassifier}, "partition"),
        ({"prior": "flat"}, "prior"),
        ({"vote": "median"}, "vote"),
        ({"search": "random"}, "search"),
        ({"scoring": "auc"}, "scoring"),
        ({"cv": 1}, "cv"),
        ({"min_rows": 0}, "min_rows"),
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
    for method in ("predict", "predict_proba", "apply", "decision_path", "explain"):
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
    cells = model.explain(X[0])
    assert sum(cell.share for cell in cells) == pytest.approx(1)
    with pytest.raises(ValueError, match="explain takes one row, got 2"):
        model.explain(X[:2])


def test_a_pruned_tree_is_the_pruning_alone():
    X, y = two_classes(n=500)
    model = PrunedTreeClassifier("cart", lambda_penalty=3.0).fit(X, y)
    full = PrunedTreeClassifier("cart", lambda_penalty=0.0).fit(X, y)
    assert model.get_n_leaves() < full.get_n_leaves()
    assert full.score(X, y) == 1
    frequencies = model.stats_.counts / model.stats_.n[:, None]
    np.testing.assert_allclose(model.predict_proba(X), frequencies[model.apply(X)])


@pytest.mark.parametrize("cv", [3, None, KFold(3), KFold(2, shuffle=True, random_state=0)])
@pytest.mark.parametrize("scoring", ["error", "log_loss"])
def test_any_cv_and_scoring_tune(cv, scoring):
    X, y = two_classes()
    model = PACBayesTreeClassifier("cart", vote="mean", cv=cv, scoring=scoring, random_state=0)
    assert set(model.fit(X, y).temperatures_) == {"lambda_error", "lambda_penalty"}
    assert model.score(X, y) > 0.6


def test_other_scikit_learn_trees_are_partitions():
    X, y = two_classes()
    for tree in (DecisionTreeClassifier(criterion="entropy"), ExtraTreeClassifier()):
        a = PACBayesTreeClassifier(tree, random_state=3).fit(X, y)
        b = PACBayesTreeClassifier(tree, random_state=3).fit(X, y)
        np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
        assert not hasattr(tree, "tree_")
