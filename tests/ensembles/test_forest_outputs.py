"""Forests whose trees serve several targets: numbers, and columns of classes."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.utils import compute_sample_weight, get_tags

import reference
from certree import TreeForestClassifier, TreeForestRegressor, certify, load, save
from certree.ensembles.forest_samples import ForestSamples
from certree.explain import shapley_values
from certree.explain.output_groups import OutputGroups
from certree.export import check_export
from certree.show import plot_calibration, plot_ranking, plot_tree, report
from several_targets import table
from weight_units import expect_no_unit

LEAVES = ["auto", "plain", "refilled", "shrunk", "honest"]
SHORT = {"n_estimators": 12, "random_state": 0}


def models(**given):
    """A forest of each kind and what it is fitted on."""
    _, y, labels = table()
    given = {**SHORT, **given}
    return (TreeForestRegressor(**given), y), (TreeForestClassifier(**given), labels)


def told(model, X):
    """All that is predicted, in columns."""
    said = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    return np.column_stack(said) if isinstance(said, list) else said.reshape(len(X), -1)


# -- what a fit is -----------------------------------------------------------------------------------


def test_one_forest_predicts_all_numbers():
    X, y, _ = table(1200)
    model = TreeForestRegressor(random_state=0).fit(X[:800], y[:800])
    assert model.n_outputs_ == 3
    assert model.trees_.value.shape[1] == 3
    said = model.predict(X[800:])
    assert said.shape == (400, 3)
    assert model.score(X[800:], y[800:]) == pytest.approx(r2_score(y[800:], said))
    theirs = RandomForestRegressor(random_state=0).fit(X[:800], y[:800])
    assert model.score(X[800:], y[800:]) > theirs.score(X[800:], y[800:]) - 0.02
    apart = MultiOutputRegressor(TreeForestRegressor(random_state=0)).fit(X[:800], y[:800])
    assert model.score(X[800:], y[800:]) > apart.score(X[800:], y[800:]) - 0.1


def test_one_forest_predicts_all_columns_of_classes():
    X, _, labels = table(1200)
    model = TreeForestClassifier(random_state=0).fit(X[:800], labels[:800])
    assert model.n_outputs_ == 3
    assert [one.tolist() for one in model.classes_] == [
        ["no", "yes"],
        ["0", "1", "2"],
        ["False", "True"],
    ]
    assert model.n_classes_ == [2, 3, 2]
    shares, answers = model.predict_proba(X[800:]), model.predict(X[800:])
    assert [one.shape for one in shares] == [(400, 2), (400, 3), (400, 2)]
    for k, (classes, one) in enumerate(zip(model.classes_, shares, strict=True)):
        np.testing.assert_allclose(one.sum(axis=1), 1.0)
        np.testing.assert_array_equal(classes[one.argmax(axis=1)], answers[:, k])
    np.testing.assert_array_equal(
        np.column_stack(model.predict_log_proba(X[800:])), np.log(np.column_stack(shares))
    )
    right = (answers == labels[800:]).all(axis=1)
    assert model.score(X[800:], labels[800:]) == right.mean() > 0.35
    weight = np.random.default_rng(0).random(400)
    assert model.score(X[800:], labels[800:], weight) == pytest.approx(
        weight @ right / weight.sum()
    )
    apart = MultiOutputClassifier(TreeForestClassifier(random_state=0)).fit(X[:800], labels[:800])
    for k, one in enumerate(apart.predict_proba(X[800:])):
        mine, theirs = (log_loss(labels[800:, k], each) for each in (shares[k], one))
        assert mine < theirs + 0.05


def test_flags_are_scored_as_in_scikit_learn():
    X, y, _ = table()
    flags = (y > 0).astype(int)
    model = TreeForestClassifier(**SHORT).fit(X, flags)
    assert model.score(X, flags) == accuracy_score(flags, model.predict(X))


@pytest.mark.parametrize("estimator", [TreeForestClassifier, TreeForestRegressor])
def test_scikit_learn_checks_several_outputs_of_forests(estimator):
    """The checks themselves run in test_forest; those on several outputs need this tag."""
    assert get_tags(estimator()).target_tags.multi_output


# -- relations ---------------------------------------------------------------------------------------


def test_a_target_in_a_column_of_its_own_is_that_target():
    X, y, labels = table()
    for model, target in (
        (TreeForestRegressor(**SHORT), y[:, 0]),
        (TreeForestClassifier(**SHORT), labels[:, 1]),
    ):
        with pytest.warns(DataConversionWarning):
            column = clone(model).fit(X, target[:, None])
        assert column.n_outputs_ == 1
        np.testing.assert_array_equal(column.predict(X), clone(model).fit(X, target).predict(X))


@pytest.mark.parametrize("criterion", ["gini", "entropy", "numbers"])
@settings(max_examples=10)
@given(seed=st.integers(0, 1000), n_copies=st.sampled_from([2, 4]), k=st.integers(0, 2))
def test_a_target_that_is_repeated_grows_the_trees_of_one(criterion, seed, n_copies, k):
    X, y, labels = table(80, seed)
    # Which rows are drawn is told by all that is known of them.
    how = {"n_estimators": 4, "random_state": seed, "bootstrap": False, "max_features": 2}
    if criterion == "numbers":
        model, target = TreeForestRegressor(**how), y[:, k]
    else:
        model, target = TreeForestClassifier(**how, criterion=criterion), labels[:, k]
    one = clone(model).fit(X, target)
    several = clone(model).fit(X, np.column_stack([target] * n_copies))
    if criterion != "entropy":  # logarithms are rounded
        np.testing.assert_array_equal(several.trees_.threshold, one.trees_.threshold)
        np.testing.assert_array_equal(several.trees_.left, one.trees_.left)
        np.testing.assert_allclose(
            several.feature_importances_, one.feature_importances_, rtol=1e-9
        )
        for part in np.split(told(several, X), n_copies, axis=1):
            np.testing.assert_allclose(part, told(one, X), rtol=1e-9, atol=1e-12)
    said = several.predict(X)
    np.testing.assert_array_equal(said, said[:, :1].repeat(n_copies, axis=1))


@pytest.mark.parametrize("leaves", LEAVES)
def test_columns_may_be_in_any_order(leaves):
    X, *_ = table()
    order = [2, 0, 1]
    for model, target in models(leaves=leaves, oob_score=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine, other = (clone(model).fit(X, y) for y in (target, target[:, order]))
        np.testing.assert_array_equal(mine.predict(X)[:, order], other.predict(X))
        np.testing.assert_array_equal(mine.apply(X), other.apply(X))
        np.testing.assert_array_equal(mine.feature_importances_, other.feature_importances_)
        assert mine.leaves_ == other.leaves_
        assert mine.oob_score_ == pytest.approx(other.oob_score_, nan_ok=True)
        told_out_of_bag = [getattr(one, mine._oob_attribute) for one in (mine, other)]
        for k, place in enumerate(order):
            a, b = told_out_of_bag[0][..., place], told_out_of_bag[1][..., k]
            np.testing.assert_array_equal(a, b)


def test_rows_may_be_in_any_order_and_weights_have_no_unit():
    X, *_ = table()
    random = np.random.default_rng(1)
    order, weight = random.permutation(300), random.integers(0, 3, 300).astype(float)
    for model, y in models():
        first, second = clone(model).fit(X, y), clone(model).set_params(n_jobs=2)
        np.testing.assert_array_equal(told(first, X), told(second.fit(X[order], y[order]), X))
        expect_no_unit(lambda one: told(clone(model).fit(X, y, one), X), weight)  # noqa: B023
        weighed, again = clone(model).fit(X, y, weight), clone(model)
        again.fit(X[order], y[order], weight[order])
        np.testing.assert_array_equal(told(weighed, X), told(again, X))
        np.testing.assert_array_equal(told(first, X[:1]), told(first, X)[:1])


def test_units_of_numbers_do_not_matter():
    X, y, _ = table()
    units = np.array([1.0, 1024.0, 0.25])
    model = TreeForestRegressor(**SHORT, bootstrap=False, max_features=2)
    mine, other = clone(model).fit(X, y), clone(model).fit(X, y * units)
    np.testing.assert_array_equal(mine.trees_.threshold, other.trees_.threshold)
    np.testing.assert_array_equal(mine.predict(X) * units, other.predict(X))
    np.testing.assert_allclose(mine.feature_importances_, other.feature_importances_)


def test_constant_targets_are_predicted_exactly():
    X, y, labels = table()
    y[:, 1] = 7.0
    np.testing.assert_array_equal(TreeForestRegressor(**SHORT).fit(X, y).predict(X)[:, 1], 7.0)
    assert (TreeForestRegressor(3).fit(X, np.full((300, 2), 7.0)).predict(X) == 7.0).all()
    labels[:, 2] = "same"
    model = TreeForestClassifier(**SHORT).fit(X, labels)
    assert model.n_classes_ == [2, 3, 1]
    np.testing.assert_array_equal(model.predict_proba(X)[2], np.ones((300, 1)))
    assert (model.predict(X)[:, 2] == "same").all()


def test_columns_of_strings_and_of_numbers_mix():
    X, y, labels = table()
    frame = pd.DataFrame({"word": labels[:, 0], "number": (y[:, 1] > 0).astype(int)})
    model = TreeForestClassifier(**SHORT).fit(X, frame)
    assert model.classes_[1].tolist() == [0, 1]
    said = model.predict(X)
    assert said.dtype == object
    assert model.score(X, frame) == (said == frame.to_numpy()).all(axis=1).mean()


def test_balanced_weights_are_products_of_the_factors_of_all_targets():
    X, _, labels = table()
    model = TreeForestClassifier(**SHORT)
    weighed = clone(model).fit(X, labels, compute_sample_weight("balanced", labels))
    balanced = clone(model).set_params(class_weight="balanced").fit(X, labels)
    np.testing.assert_allclose(told(balanced, X), told(weighed, X))
    words = labels[:, [0, 2]]
    factors = [{"no": 1, "yes": 2}, {"False": 3, "True": 1}]
    given = clone(model).set_params(class_weight=factors).fit(X, words)
    weight = np.where(words == ["yes", "False"], [2, 3], 1).prod(axis=1)
    np.testing.assert_array_equal(told(given, X), told(clone(model).fit(X, words, weight), X))


# -- rows out of bags ----------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_bag_predictions_are_those_of_the_loop_twin(leaves, weighted):
    X, y, labels = table(40)
    weight = np.random.default_rng(1).random(40) + 0.5 if weighted else None
    how = {"n_estimators": 6, "leaves": leaves, "oob_score": True, "random_state": 0}
    for model, target in ((TreeForestRegressor(**how), y), (TreeForestClassifier(**how), labels)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, target, weight)
        rows = ForestSamples.from_training(clone(model)._prepare_training(X, target, weight))
        draws = np.array([model._create_grower(rows).count_draws(number) for number in range(6)])
        filled_by, shrinkage, power = model.leaves_
        lanes, units = model._output_groups.sizes, rows.get_weights()
        codes = np.empty_like(rows.targets)
        codes[:, rows.columns] = rows.targets
        total, n_trees = reference.sum_out_of_bag_predictions(
            *([*model.trees_], rows.features.X, codes, units, draws),
            *(filled_by, shrinkage * units.mean(), lanes),
        )
        with np.errstate(invalid="ignore"):
            mean = np.empty((40, sum(lanes)))
            mean[rows.input_index] = total / n_trees[:, None]
        if not model._has_classes:
            np.testing.assert_allclose(model.oob_prediction_, mean, atol=1e-9)
            continue
        parts = np.split(mean, np.cumsum(lanes)[:-1], axis=1)
        assert model.oob_decision_function_.shape == (40, 3, 3)
        for k, part in enumerate(parts):
            found = model.oob_decision_function_[:, : model.n_classes_[k], k]
            assert (
                np.nan_to_num(model.oob_decision_function_[:, model.n_classes_[k] :, k]) == 0
            ).all()
            shares = np.column_stack([1 - part, part]) if part.shape[1] == 1 else part
            raised = np.maximum(shares, 0) ** power
            np.testing.assert_allclose(found, raised / raised.sum(axis=1, keepdims=True), atol=1e-9)


def test_out_of_bag_probabilities_have_the_shape_of_scikit_learn():
    X, _, labels = table(60)
    words = (labels[:, [0, 2]] == labels[0, [0, 2]]).astype(int)
    how = {"n_estimators": 4, "oob_score": True, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = TreeForestClassifier(**how).fit(np.nan_to_num(X), words)
        other = RandomForestClassifier(**how).fit(np.nan_to_num(X), words)
        one = TreeForestClassifier(**how).fit(X, words[:, 0])
    assert mine.oob_decision_function_.shape == other.oob_decision_function_.shape == (60, 2, 2)
    assert one.oob_decision_function_.shape == (60, 2)
    # Rows in all bags, or of weight zero, have no probabilities of any class.
    unknown = np.isnan(mine.oob_decision_function_)
    assert unknown.any()
    assert (unknown == unknown[:, :1, :1]).all()
    known = mine.oob_decision_function_[~unknown[:, 0, 0]]
    np.testing.assert_allclose(known.sum(axis=1), 1)


def test_out_of_bag_scores_are_those_of_all_targets():
    X, y, labels = table(1000)
    numbers = TreeForestRegressor(random_state=0, oob_score=True).fit(X, y)
    assert numbers.oob_score_ == pytest.approx(r2_score(y, numbers.oob_prediction_))
    classes = TreeForestClassifier(random_state=0, oob_score=True).fit(X, labels)
    likeliest = classes.oob_decision_function_.argmax(axis=1)
    answer = np.column_stack(
        [known[codes] for known, codes in zip(classes.classes_, likeliest.T, strict=True)]
    )
    assert classes.oob_score_ == pytest.approx((answer == labels).all(axis=1).mean())
    worst = TreeForestRegressor(40, oob_score=lambda y, said: float(np.abs(y - said).max()))
    assert worst.fit(X, y).oob_score_ > 0.5
    found = numbers.out_of_bag_importances(X, y)
    order = np.random.default_rng(0).permutation(1000)
    np.testing.assert_array_equal(numbers.out_of_bag_importances(X[order], y[order]), found)
    assert found.min() > 0
    assert classes.out_of_bag_importances(X, labels).min() > 0


# -- what follows a fit ----------------------------------------------------------------------------


def test_a_warm_start_is_one_fit():
    X, *_ = table()
    for model, y in models(warm_start=True, n_estimators=5):
        model.fit(X, y).set_params(n_estimators=12).fit(X, y)
        anew = clone(model).set_params(warm_start=False).fit(X, y)
        np.testing.assert_array_equal(told(model, X), told(anew, X))
        np.testing.assert_array_equal(model.feature_importances_, anew.feature_importances_)
        for wrong, n in ((y[:, :2], 2), (y[:, 0], 1)):
            with pytest.raises(ValueError, match=f"y must have 3 outputs, as in the fit, got {n}"):
                model.fit(X, wrong)
        model.set_params(warm_start=False)
        assert model.fit(X, y[:, :2]).predict(X).shape == (300, 2)
        assert model.fit(X, y[:, 0]).predict(X).shape == (300,)


def test_files_and_pickles_hold_them(tmp_path):
    X, *_ = table()
    for model, y in models():
        model.fit(X, y)
        save(model, tmp_path / "model.certree")
        for again in (load(tmp_path / "model.certree"), pickle.loads(pickle.dumps(model))):
            assert again.n_outputs_ == 3
            np.testing.assert_array_equal(told(again, X), told(model, X))
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            np.testing.assert_array_equal(
                again.out_of_bag_importances(X, y), model.out_of_bag_importances(X, y)
            )
            more = again.set_params(warm_start=True, n_estimators=15).fit(X, y)
            anew = clone(model).set_params(n_estimators=15).fit(X, y)
            np.testing.assert_array_equal(told(more, X), told(anew, X))


def test_sparse_rows_and_categories_are_taken():
    X, *_ = table()
    dense = np.where(np.abs(np.nan_to_num(X)) < 0.5, 0.0, np.nan_to_num(X))
    frame = pd.DataFrame(dense, columns=[*"abcd"]).assign(
        kind=pd.Categorical(np.where(dense[:, 0] > 0, "a", "b"))
    )
    for model, y in models():
        fits = clone(model).fit(dense, y), clone(model).fit(csr_array(dense), y)
        np.testing.assert_array_equal(*(told(one, dense) for one in fits))
        model.fit(frame, y)
        assert model.is_categorical_.tolist() == [False] * 4 + [True]
        assert model.score(frame, y) > 0.4


def test_exports_of_numbers_predict_the_same():
    X, y, _ = table()
    model = TreeForestRegressor(**SHORT).fit(X.astype(np.float32), y)
    rows = np.nan_to_num(X).astype(np.float32)
    exports = ["dict", "onnx_float64", "sklearn", "sqlite", "duckdb"]
    checked = check_export(model, rows, exports=exports, tolerance=1e-9)
    assert checked.all_agree, checked
    assert not checked.skipped
    form = json.loads(json.dumps(model.to_dict()))
    assert form["link"] == "identity"
    assert {"value_0", "value_2"} <= set(model.trees_to_dataframe())
    statement = model.to_sql("t")
    assert all(f'"prediction_{k}"' in statement for k in range(3))


def test_exports_of_several_columns_of_classes_are_refused():
    X, _, labels = table()
    model = TreeForestClassifier(**SHORT).fit(X, labels)
    for export in (model.to_sklearn, model.to_onnx, model.to_dict, model.trees_to_dataframe):
        with pytest.raises(ValueError, match=r"an export takes one target.*MultiOutputClassifier"):
            export()
    with pytest.raises(ValueError, match=r"an export takes one target.*MultiOutputClassifier"):
        model.to_sql("t")


def test_explanations_sum_to_the_predictions_of_all_targets():
    X, y, labels = table()
    numbers = TreeForestRegressor(**SHORT).fit(X, y)
    explained = numbers.explain(X[:5])
    assert explained.output_names == ("y[0]", "y[1]", "y[2]")
    np.testing.assert_allclose(explained.prediction, numbers.predict(X[:5]))
    classes = TreeForestClassifier(**SHORT, leaves="plain").fit(X, labels)
    explained = classes.explain(X[:5])
    assert explained.output_names[:5] == ("y[0]=no", "y[0]=yes", "y[1]=0", "y[1]=1", "y[1]=2")
    assert explained.scale == "probability"
    for found in (explained, shapley_values(classes, X[:5], background=X)):
        np.testing.assert_allclose(found.prediction, told(classes, X[:5]), atol=1e-12)


# -- what is refused -------------------------------------------------------------------------------


def test_what_takes_one_target_says_so():
    X, y, labels = table(60)
    for model, target in (
        (TreeForestRegressor(3, monotonic_cst=[1, 0, 0, 0]), y),
        (TreeForestRegressor(3, criterion="poisson"), np.abs(y)),
        (TreeForestClassifier(3, monotonic_cst=[1, 0, 0, 0]), labels),
    ):
        kind = "Classifier" if hasattr(model, "predict_proba") else "Regressor"
        with pytest.raises(ValueError, match=f"takes one target, got y of 3.*MultiOutput{kind}"):
            model.fit(X, target)
        assert not hasattr(model, "trees_")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda y: y[:-1], "inconsistent numbers of samples"),
        (lambda y: y[:, :, None], "dim 3"),
        (lambda y: y[:, :0], r"0 feature\(s\)"),
        (lambda y: csr_array((len(y), 2)), "Sparse data was passed for y"),
        (lambda y: np.where(np.arange(3) == 1, np.nan, np.ones((len(y), 1))), "NaN"),
        (lambda y: np.full((len(y), 2), np.inf), "infinity"),
    ],
)
def test_targets_that_are_none_are_refused_in_scikit_learns_words(spoil, message):
    X, *_ = table()
    for model, y in models():
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(X, spoil(y))
        assert not hasattr(model, "trees_")


def test_classes_must_be_classes():
    X, y, labels = table()
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        TreeForestClassifier(3).fit(X, y)
    with pytest.raises(ValueError, match="y must hold numbers"):
        TreeForestRegressor(3).fit(X, labels)
    model = TreeForestClassifier(3)
    for factors, message in (
        ({"no": 1}, "class_weight should be a list of dicts"),
        ([{"no": 1}], "number of elements in class_weight should match number of outputs"),
        ([{"no": -1}, {}, {}], "must be finite and non-negative, got -1 for class 'no'"),
        ([1, 2, 3], "class_weight must hold a dict for each column, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_params(class_weight=factors).fit(X, labels)
    with pytest.raises(ValueError, match=r"y must have shape \(300, 3\), got \(300, 2\)"):
        TreeForestClassifier(3).fit(X, labels).score(X, labels[:, :2])


def test_what_asks_about_one_target_refuses_models_of_several(tmp_path):
    def page(model, X, y):
        return report(model, X, y, tmp_path / "page.html")

    X, y, labels = table()
    numbers, classes = TreeForestRegressor(3).fit(X, y), TreeForestClassifier(3).fit(X, labels)
    for ask, model, target, kind in (
        (certify, classes, labels, "Classifier"),
        (page, numbers, y, "Regressor"),
        (page, classes, labels[:, 0], "Classifier"),
        (plot_calibration, classes, labels, "Classifier"),
        (plot_ranking, classes, labels[:, 0], "Classifier"),
        (lambda model, X, _: plot_tree(model, number=0, X=X), classes, labels, "Classifier"),
    ):
        with pytest.raises(ValueError, match=f"needs a model with one target.*MultiOutput{kind}"):
            ask(model, X, target)
    with pytest.raises(TypeError, match="must predict classes, got the regressor TreeForestReg"):
        certify(numbers, X, y)
    for model in (numbers, classes):
        assert "n_outputs_" in dir(model)
        assert "TreeForest" in model._repr_html_()


# -- where they stand ------------------------------------------------------------------------------


def test_outputs_are_in_the_order_of_their_targets():
    lanes, order = OutputGroups.for_classes([2, 3, 1, 4]), np.array([3, 1, 0, 2])
    assert lanes.sizes == (1, 3, 1, 4)
    assert lanes.n_outputs == 9
    values = np.arange(9.0)[None]
    shuffled = np.concatenate([lanes.split(values)[k] for k in order], axis=1)
    np.testing.assert_array_equal(lanes.restore_order(shuffled, order), values)
