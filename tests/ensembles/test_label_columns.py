"""Boosted classifiers of several columns of classes, which one tree a round serves."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import log_loss
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import compute_sample_weight, get_tags

import reference
import several_targets
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    CertifiedBoostedTreesClassifier,
    TreeForestClassifier,
    certify,
    load,
    save,
)
from certree.ensembles.losses import LogLoss
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.explain import shapley_values
from certree.show import plot_loss, report
from model_files import expect_refusal, read_arrays, rewrite
from weight_units import expect_no_unit

SHORT = {"max_iter": 12, "random_state": 0}


def table(n=300, seed=0):
    X, _, labels = several_targets.table(n, seed)
    return X, labels


def classifier(**parameters):
    return BoostedTreesClassifier(**{**SHORT, **parameters})


def told(model, X, **how):
    """All probabilities, in columns."""
    return np.column_stack(model.predict_proba(X, **how))


def codes_of(labels):
    return np.array([np.unique(one, return_inverse=True)[1] for one in labels.T])


# -- the loss --------------------------------------------------------------------------------------


@given(
    lanes=st.lists(st.sampled_from([1, 3, 4]), min_size=2, max_size=4),
    n=st.integers(1, 30),
    seed=st.integers(0, 1000),
    far=st.sampled_from([1.0, 30.0]),
)
def test_the_loss_is_the_sum_of_the_log_losses(lanes, n, seed, far):
    random = np.random.default_rng(seed)
    y = np.array([random.integers(0, max(2, width), n) for width in lanes])
    scores = far * random.normal(size=(sum(lanes), n))
    loss = MultiOutputLoss.combine([LogLoss(n_outputs=width) for width in lanes])
    loss = loss.with_training_rows(y, None, random.integers(0, 2**63, n).astype(np.uint64))
    expected, gradient, hessian = reference.compute_multi_column_log_loss(y, scores, lanes)
    np.testing.assert_allclose(loss.compute_row_losses(y, scores), expected, rtol=1e-9, atol=1e-12)
    weight = random.random(n) + 0.1
    mean = np.average(expected, weights=weight)
    assert loss.compute_mean(y.astype(float), scores, weight) == pytest.approx(mean)
    parts = zip(loss.components, y, loss.output_groups.split(scores, axis=0), strict=True)
    slopes = [
        one.compute_gradients(known, np.ascontiguousarray(said)) for one, known, said in parts
    ]
    for found, twin in zip(zip(*slopes, strict=True), (gradient, hessian), strict=True):
        np.testing.assert_allclose(np.concatenate(found), twin, rtol=1e-9, atol=1e-12)


def test_gradients_are_those_of_the_loss():
    random = np.random.default_rng(0)
    lanes, y = [1, 3], np.array([random.integers(0, k, 20) for k in (2, 3)])
    scores, step = random.normal(size=(4, 20)), 1e-5
    _, gradient, hessian = reference.compute_multi_column_log_loss(y, scores, lanes)
    before = reference.compute_multi_column_log_loss(y, scores, lanes)[0]
    for k in range(4):
        aside = [scores.copy(), scores.copy()]
        aside[0][k] -= step
        aside[1][k] += step
        low, high = (reference.compute_multi_column_log_loss(y, one, lanes)[0] for one in aside)
        np.testing.assert_allclose((high - low) / (2 * step), gradient[k], atol=1e-8)
        factor = 1.0 if k == 0 else 1.5
        second = factor * (high - 2 * before + low) / step**2
        np.testing.assert_allclose(second, hessian[k], atol=1e-4)


def test_a_first_step_is_that_of_the_literal_twin():
    X, labels = table(60)
    how = {"subsample": 1.0, "prunings": "none", "max_iter": 1, "learning_rate": 1.0}
    model = classifier(**how, l2_regularization=2.0).fit(X, labels)
    y, lanes = codes_of(labels), model._output_groups.sizes
    scores = np.repeat(model.start_[:, None], 60, axis=1)
    _, gradient, hessian = reference.compute_multi_column_log_loss(y, scores, lanes)
    (tree,), leaf = [*model.trees_], model.apply(X)[:, 0]
    for k in range(sum(lanes)):
        steps = reference.compute_newton_steps(tree, leaf, gradient[k], hessian[k], 2.0)
        at_leaves = tree.left < 0
        np.testing.assert_allclose(
            model.trees_.value[at_leaves, k], steps[at_leaves], rtol=1e-7, atol=1e-9
        )
    start = [np.log((np.bincount(one) + 0.5) / (len(one) + 0.5 * (one.max() + 1))) for one in y]
    expected = [one[1:] - one[:1] if len(one) == 2 else one for one in start]
    np.testing.assert_allclose(model.start_, np.concatenate(expected))


# -- what a fit is ---------------------------------------------------------------------------------


def test_one_fit_predicts_all_columns():
    X, labels = table(1200)
    model = classifier(max_iter=80).fit(X[:800], labels[:800])
    assert model.n_outputs_ == 3
    assert [one.tolist() for one in model.classes_] == [
        ["no", "yes"],
        ["0", "1", "2"],
        ["False", "True"],
    ]
    assert model.n_classes_ == [2, 3, 2]
    assert model.start_.shape == (5,)
    assert model.trees_.value.shape[1] == 5
    assert len(model.trees_) == 80
    new, truth = X[800:], labels[800:]
    shares, answers, scores = (
        ask(new) for ask in (model.predict_proba, model.predict, model.decision_function)
    )
    assert [one.shape for one in shares] == [(400, 2), (400, 3), (400, 2)]
    assert scores.shape == (400, 5)
    np.testing.assert_allclose(shares[0][:, 1], expit(scores[:, 0]))
    np.testing.assert_allclose(shares[1], softmax(scores[:, 1:4], axis=1))
    np.testing.assert_allclose(shares[2][:, 1], expit(scores[:, 4]))
    for k, (classes, one) in enumerate(zip(model.classes_, shares, strict=True)):
        np.testing.assert_allclose(one.sum(axis=1), 1.0)
        np.testing.assert_array_equal(classes[one.argmax(axis=1)], answers[:, k])
    np.testing.assert_array_equal(
        np.column_stack(model.predict_log_proba(new)), np.log(told(model, new))
    )
    right = (answers == truth).all(axis=1)
    assert model.score(new, truth) == right.mean() > 0.35
    weight = np.random.default_rng(0).random(400)
    assert model.score(new, truth, weight) == pytest.approx(weight @ right / weight.sum())
    of_each = [log_loss(truth[:, k], one) for k, one in enumerate(shares)]
    assert model.staged_loss(new, truth)[-1] == pytest.approx(sum(of_each))


def test_one_model_is_no_worse_than_several_if_columns_are_related():
    losses = []
    for seed in range(4):
        X, labels = table(2400, seed)
        labels = np.column_stack([labels, labels[:, ::-1]])
        mine = classifier(max_iter=100).fit(X[:1200], labels[:1200])
        theirs = MultiOutputClassifier(classifier(max_iter=100)).fit(X[:1200], labels[:1200])
        losses.append(
            [
                np.mean([log_loss(labels[1200:, k], one) for k, one in enumerate(columns)])
                for columns in (mine.predict_proba(X[1200:]), theirs.predict_proba(X[1200:]))
            ]
        )
    mine, theirs = np.mean(losses, axis=0)
    assert mine < theirs + 0.012


def test_stages_end_with_the_prediction():
    X, labels = table()
    model = classifier().fit(X, labels)
    asks = {
        "predict": lambda one: one,
        "predict_proba": np.column_stack,
        "decision_function": lambda one: one,
    }
    for name, columns in asks.items():
        stages = list(getattr(model, f"staged_{name}")(X))
        assert len(stages) == 12
        ask = getattr(model, name)
        np.testing.assert_array_equal(columns(stages[-1]), columns(ask(X)))
        np.testing.assert_array_equal(columns(stages[4]), columns(ask(X, n_iter=5)))
    assert (model.decision_function(X, n_iter=0) == model.start_).all()


@pytest.mark.parametrize("kind", [np.int8, np.uint64, float, bool, object, "U", "M8[D]"])
def test_classes_may_have_any_dtype_that_forests_take(kind):
    X, labels = table(200)
    y = codes_of(labels).T
    y = labels.astype(object) if kind is object else y > 0 if kind is bool else y.astype(kind)
    model = classifier(max_iter=5).fit(X, y)
    said = model.predict(X)
    assert said.dtype == model.classes_[0].dtype == np.asarray(y).dtype
    assert model.score(X, y) == (said == y).all(axis=1).mean()
    mine, other = told(model, X), told(classifier(max_iter=5).fit(X, codes_of(y).T), X)
    np.testing.assert_array_equal(mine, other)


def test_words_may_stand_beside_numbers():
    X, labels = table()
    frame = pd.DataFrame({"word": labels[:, 0], "number": codes_of(labels)[1]})
    model = classifier().fit(X, frame, X_val=X, y_val=frame)
    assert model.classes_[1].tolist() == [0, 1, 2]
    said = model.predict(X)
    assert said.dtype == object
    assert model.score(X, frame) == (said == frame.to_numpy()).all(axis=1).mean()
    given = frame.to_numpy()
    np.testing.assert_array_equal(model.staged_loss(X, given), model.staged_loss(X, frame))


# -- relations -------------------------------------------------------------------------------------


def test_a_column_by_itself_is_that_target():
    X, labels = table()
    with pytest.warns(DataConversionWarning):
        column = classifier().fit(X, labels[:, 1:2])
    assert column.n_outputs_ == 1
    alone = classifier().fit(X, labels[:, 1])
    np.testing.assert_array_equal(column.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize("n", [300, 1200])
@pytest.mark.parametrize("how", [{}, {"max_iter": "auto"}, {"early_stopping": True}])
def test_columns_may_be_in_any_order(n, how):
    X, labels = table(n)
    labels = np.column_stack([labels, labels[::-1, 0]])
    order = [2, 3, 0, 1]
    mine, other = classifier(**how).fit(X, labels), classifier(**how).fit(X, labels[:, order])
    assert mine.n_iter_ == other.n_iter_
    np.testing.assert_array_equal(mine.apply(X), other.apply(X))
    np.testing.assert_array_equal(mine.predict(X)[:, order], other.predict(X))
    first, second = mine.predict_proba(X), other.predict_proba(X)
    for k, place in enumerate(order):
        np.testing.assert_array_equal(first[place], second[k])
    np.testing.assert_array_equal(mine.feature_importances_, other.feature_importances_)


def test_the_order_of_columns_is_that_of_their_classes():
    _, labels = table(1200)
    rows = np.random.default_rng(0).integers(0, 2**63, 1200).astype(np.uint64)
    y, order = codes_of(labels), [2, 0, 1]
    losses = [LogLoss(n_outputs=width) for width in (1, 3, 1)]
    known = MultiOutputLoss.combine(losses).with_training_rows(y, None, rows)
    other = MultiOutputLoss.combine([losses[k] for k in order]).with_training_rows(
        y[order], None, rows
    )
    assert [order[k] for k in other.order] == list(known.order)
    assert [goal[1] for goal in known.list_groups()] == [1.0, 1.0, 1.0]
    assert sorted(goal[2:] for goal in known.list_groups()) == [(0, 1, 0), (1, 3, 1), (4, 1, 2)]


@pytest.mark.threads
@pytest.mark.parametrize("n", [300, 1200])
def test_rows_may_be_in_any_order_and_weights_have_no_unit(n):
    X, labels = table(n)
    random = np.random.default_rng(1)
    order, weight = random.permutation(n), random.integers(0, 3, n).astype(float)
    how = {"max_iter": "auto"} if n < 500 else {}
    model = classifier(**how, n_jobs=1).fit(X, labels)
    shuffled = classifier(**how, n_jobs=2).fit(X[order], labels[order])
    np.testing.assert_array_equal(told(model, X), told(shuffled, X))
    weighed = classifier(**how).fit(X, labels, weight)
    again = classifier(**how).fit(X[order], labels[order], weight[order])
    np.testing.assert_array_equal(told(weighed, X), told(again, X))
    expect_no_unit(lambda one: told(classifier(**how).fit(X, labels, one), X), weight)
    np.testing.assert_array_equal(told(model, X[:1]), told(model, X)[:1])
    np.testing.assert_array_equal(
        told(model, X.astype(np.float32)), told(model, X.astype(np.float32).astype(float))
    )


def test_constant_columns_are_predicted_exactly():
    X, labels = table()
    labels[:, 2] = "same"
    model = classifier(early_stopping=True).fit(X, labels)
    assert model.n_classes_ == [2, 3, 1]
    np.testing.assert_array_equal(model.predict_proba(X)[2], np.ones((300, 1)))
    assert (model.predict(X)[:, 2] == "same").all()
    same = classifier().fit(X, np.full((300, 2), 7))
    assert (same.predict(X) == 7).all()


def test_balanced_classes_weigh_by_the_product_of_their_factors():
    X, labels = table()
    weighed = classifier().fit(X, labels, compute_sample_weight("balanced", labels))
    balanced = classifier(class_weight="balanced").fit(X, labels)
    np.testing.assert_allclose(told(balanced, X), told(weighed, X))
    words = labels[:, [0, 2]]
    factors = [{"no": 1, "yes": 2}, {"False": 3, "True": 1}]
    given = classifier(class_weight=factors).fit(X, words)
    weight = np.where(words == ["yes", "False"], [2, 3], 1).prod(axis=1)
    np.testing.assert_array_equal(told(given, X), told(classifier().fit(X, words, weight), X))


def test_parameters_set_after_a_fit_change_nothing():
    X, labels = table()
    model = classifier().fit(X, labels)
    before = told(model, X)
    model.set_params(max_iter=3, learning_rate=1.0, class_weight="balanced", quality="best")
    np.testing.assert_array_equal(told(model, X), before)


# -- what follows a fit ----------------------------------------------------------------------------


@pytest.mark.parametrize("quality", ["fast", "default", "best"])
def test_rounds_are_chosen_by_all_columns(quality):
    X, labels = table(200)
    model = BoostedTreesClassifier(quality=quality, random_state=0).fit(X, labels)
    assert len(model.trees_) == model.n_iter_ * model._count_members()
    scores = model.decision_function(X).shape[1]
    assert (model.n_iter_ == round(200 * scores / 3)) is (quality == "fast")
    assert model.score(X, labels) > 0.5


def test_early_stopping_and_evaluation_take_several_columns():
    X, labels = table(1300)
    judged = {"X_val": X[1000:], "y_val": labels[1000:]}
    model = classifier(max_iter=40).fit(X[:1000], labels[:1000], **judged)
    said = model.staged_loss(*judged.values())
    np.testing.assert_allclose(-model.validation_score_[1:], said, rtol=1e-9)
    assert model.train_score_[0] < -1.5
    for scoring in (None, lambda one, X, y: float((one.predict(X) == y).mean())):
        stopped = classifier(early_stopping=True, scoring=scoring, max_iter=30).fit(X, labels)
        assert 1 <= stopped.n_iter_ <= 30
        assert 0 < stopped.validation_score_.max() <= 1
    flags = labels[:, [0, 2]] == labels[0, [0, 2]]
    ranked = classifier(early_stopping=True, scoring="roc_auc", max_iter=30).fit(X, flags)
    assert ranked.validation_score_.max() > 0.6
    stopped = classifier(early_stopping=True, quality="best", max_iter=10).fit(X, labels)
    assert stopped.predict(X).shape == labels.shape
    for wrong in (labels[:, :2], labels[:, 0]):
        with pytest.raises(ValueError, match=r"y_val must have shape \(n, 3\), as in the fit, got"):
            classifier().fit(X, labels, X_val=X, y_val=wrong)
    unknown = np.where(np.arange(1300)[:, None] == 3, "?", labels)
    with pytest.raises(ValueError, match=r"y_val must hold classes among .*got \['\?'\]"):
        classifier().fit(X, labels, X_val=X, y_val=unknown)


def test_rows_that_are_held_out_are_some_of_each_class():
    X, labels = table(300)
    rare = np.where(np.arange(300) < 4, "rare", labels[:, 0])
    y = np.column_stack([labels[:, 1], rare])
    model = classifier(early_stopping=True, validation_fraction=0.3).fit(X, y)
    assert model.n_classes_ == [3, 3]
    y[1:4, 1] = "no"
    with pytest.raises(ValueError, match="least populated class in y has only 1 member"):
        classifier(early_stopping=True).fit(X, y)
    groups = np.where(np.arange(300) < 4, 0, np.arange(300) // 30 + 1)
    y[:4, 1] = "rare"
    model = classifier(early_stopping=True, validation_fraction=0.5, max_iter=1)
    model.set_params(random_state=0).fit(X, y, groups=groups)
    model.set_params(random_state=2)  # which holds the first group out
    with pytest.raises(ValueError, match="holds out all rows of 1 of the classes"):
        model.fit(X, y, groups=groups)


def test_a_warm_start_is_one_fit():
    X, labels = table(1200)
    model = classifier(warm_start=True).fit(X, labels)
    model.set_params(max_iter=20).fit(X, labels)
    np.testing.assert_array_equal(told(model, X), told(classifier(max_iter=20).fit(X, labels), X))
    for wrong, n in ((labels[:, :2], 2), (labels[:, 0], 1)):
        with pytest.raises(ValueError, match=f"y must have 3 outputs, as in the fit, got {n}"):
            model.set_params(max_iter=25).fit(X, wrong)
    assert model.n_iter_ == 20
    model.set_params(warm_start=False)
    assert model.fit(X, labels[:, :2]).predict(X).shape == (1200, 2)
    assert model.fit(X, labels[:, 0]).predict(X).shape == (1200,)


def test_files_and_pickles_hold_them(tmp_path):
    X, labels = table()
    model = classifier(standard_errors=True).fit(X, labels)
    save(model, tmp_path / "model.certree")
    for again in (load(tmp_path / "model.certree"), pickle.loads(pickle.dumps(model))):
        assert again.n_outputs_ == 3
        assert again.n_classes_ == [2, 3, 2]
        np.testing.assert_array_equal(told(again, X), told(model, X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(
            *(np.column_stack(one.predict_std(X)) for one in (again, model))
        )
        np.testing.assert_allclose(
            again.staged_loss(X, labels), model.staged_loss(X, labels), rtol=1e-12
        )
        more = again.set_params(warm_start=True, max_iter=15).fit(X, labels)
        anew = clone(model).set_params(max_iter=15).fit(X, labels)
        np.testing.assert_array_equal(told(more, X), told(anew, X))


@pytest.mark.parametrize("name", ["start", "trees.value", "classes.1"])
def test_inconsistent_files_are_refused(name, tmp_path):
    X, labels = table()
    place = tmp_path / "model.certree"
    save(classifier().fit(X, labels), place)
    held = read_arrays(place)[name]
    # Of values numbers that are none; classes must ascend.
    other = np.full_like(held, np.nan) if held.dtype.kind == "f" else held[::-1]
    for spoilt in (held[..., :-1], held[..., :0], held.astype("S9"), other):
        rewrite(place, {name: spoilt})
        expect_refusal(place)


def test_inconsistent_headers_are_refused(tmp_path):
    X, labels = table()
    place = tmp_path / "model.certree"
    for header in ({"n_outputs": 2}, {"n_outputs": 4}, {"n_outputs": 1}, {"classes.2.dtype": "V4"}):
        save(classifier().fit(X, labels), place)
        rewrite(place, **header)
        expect_refusal(place)
    save(CertifiedBoostedTreesClassifier(max_iter=2).fit(X, labels[:, 0]), place)
    rewrite(place, n_outputs=2)
    expect_refusal(place, "several targets, but CertifiedBoostedTreesClassifier predicts one")


def test_sparse_rows_and_categories_are_taken():
    X, labels = table()
    dense = np.where(np.abs(np.nan_to_num(X)) < 0.5, 0.0, np.nan_to_num(X))
    fits = classifier().fit(dense, labels), classifier().fit(csr_array(dense), labels)
    np.testing.assert_array_equal(*(told(one, dense) for one in fits))
    frame = pd.DataFrame(dense, columns=[*"abcd"]).assign(
        kind=pd.Categorical(np.where(dense[:, 0] > 0, "a", "b"))
    )
    model = classifier(max_iter=40).fit(frame, labels)
    assert model.is_categorical_.tolist() == [False] * 4 + [True]
    assert model.score(frame, labels) > 0.4


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_features_of_many_categories_are_split_by_means_of_all_columns(n_classes):
    random = np.random.default_rng(0)
    level, effect = random.integers(0, 60, 1500), random.normal(size=(60, 2))
    first = effect[level, 0] + 0.3 * random.normal(size=1500) > 0
    ends = np.linspace(-1, 1, n_classes - 1) if n_classes > 2 else [0.0]
    y = np.column_stack([first, np.digitize(effect[level, 1], ends)]).astype(int)
    frame = pd.DataFrame(
        {"level": pd.Categorical(level.astype(str)), "noise": random.normal(size=1500)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = classifier(max_iter=30).fit(frame[:1000], y[:1000])
        other = classifier(max_iter=30).fit(frame[:1000], y[:1000, ::-1])
    assert mine.score(frame[1000:], y[1000:]) > 0.5
    pairs = zip(mine.predict_proba(frame), other.predict_proba(frame)[::-1], strict=True)
    for one, same in pairs:
        np.testing.assert_array_equal(one, same)


def test_explanations_sum_to_the_scores_of_all_columns():
    X, labels = table()
    model = classifier().fit(X, labels)
    explained = model.explain(X[:5])
    names = "y[0]=yes", "y[1]=0", "y[1]=1", "y[1]=2", "y[2]=True"
    assert explained.output_names == names
    assert explained.scale == "raw score"
    for found in (explained, shapley_values(model, X[:5], background=X)):
        assert found.output_names == names
        np.testing.assert_allclose(found.prediction, model.decision_function(X[:5]), atol=1e-12)
    assert "y[2]=True" in str(explained)
    assert model.importance("permutation", X, labels).max() > 0
    assert model.importance("split").sum() == (model.trees_.left >= 0).sum()
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.apply(X).shape == (300, 12)
    assert "n_outputs_" in dir(model)
    assert "BoostedTreesClassifier" in model._repr_html_()


def test_standard_errors_are_those_of_each_column():
    X, labels = table(600)
    model = classifier(standard_errors=True, max_iter=40).fit(X, labels)
    errors = model.predict_std(X)
    assert [one.shape for one in errors] == [(600, 2), (600, 3), (600, 2)]
    for one in errors:
        assert 0 < one.mean() < 0.2
    np.testing.assert_array_equal(errors[0][:, 0], errors[0][:, 1])
    plain = classifier(max_iter=40).fit(X, labels)
    np.testing.assert_array_equal(told(plain, X), told(model, X))


def test_losses_are_drawn_round_by_round():
    X, labels = table()
    model = classifier().fit(X, labels)
    assert "round" in plot_loss(model, X, labels).axes[0].get_title(loc="left") + str(
        plot_loss(model, X, labels).axes[0].get_xlabel()
    )


# -- what is refused -------------------------------------------------------------------------------


def test_what_takes_one_target_says_so(tmp_path):
    X, labels = table(60)
    offset = np.zeros((60, 5))
    refused = r"takes one target, got y of 3 columns: .*MultiOutputClassifier"
    model = classifier(monotonic_cst=[1, 0, 0, 0])
    with pytest.raises(ValueError, match=f"monotonic_cst {refused}"):
        model.fit(X, labels)
    assert not hasattr(model, "trees_")
    with pytest.raises(ValueError, match=f"offset {refused}"):
        classifier().fit(X, labels, offset=offset)
    model = classifier().fit(X, labels)
    for ask in (model.predict, model.predict_proba, model.decision_function, model.staged_predict):
        with pytest.raises(ValueError, match=f"offset {refused}"):
            ask(X, offset=offset)
    for export in (model.to_sklearn, model.to_onnx, model.to_dict, model.trees_to_dataframe):
        with pytest.raises(ValueError, match=f"an export {refused}"):
            export()
    with pytest.raises(ValueError, match=f"an export {refused}"):
        model.to_sql("t")
    for ask in (certify, lambda *rows: report(*rows, tmp_path / "page.html")):
        with pytest.raises(
            ValueError, match=r"needs a model with one target.*MultiOutputClassifier"
        ):
            ask(model, X, labels)
    for other in (CertifiedBoostedTreesClassifier(), AdaBoostTreeClassifier()):
        takers = "PACBayesTreeClassifier, .*, TreeForestClassifier and BoostedTreesClassifier take"
        with pytest.raises(ValueError, match=f"predicts one output. {takers}"):
            other.fit(X, labels)
    assert get_tags(model).target_tags.multi_output
    assert not get_tags(CertifiedBoostedTreesClassifier()).target_tags.multi_output


def test_rows_of_dask_are_fitted_and_predicted():
    dask = pytest.importorskip("dask.array")
    X, labels = table(120)
    X, flags = np.nan_to_num(X), (labels == labels[0]).astype(int)
    rows = dask.from_array(X, chunks=(40, 4))
    model = classifier().fit(X, flags)
    same = classifier().fit(rows, dask.from_array(flags, chunks=(40, 3)))
    np.testing.assert_array_equal(same.decision_function(X), model.decision_function(X))
    with pytest.raises(
        ValueError, match=r"must not be a Dask collection for probabilities of several targets"
    ):
        model.predict_proba(rows)
    np.testing.assert_array_equal(model.predict(rows).compute(), model.predict(X))
    np.testing.assert_array_equal(
        model.decision_function(rows).compute(), model.decision_function(X)
    )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda y: y[:-1], "inconsistent numbers of samples"),
        (lambda y: y[:, :, None], "dim 3"),
        (lambda y: y[:, :0], r"0 feature\(s\)"),
        (lambda y: csr_array((len(y), 2)), "Sparse data was passed for y"),
        (lambda y: np.where(np.arange(3) == 1, np.nan, np.ones((len(y), 1))), "NaN"),
        (lambda y: np.full((len(y), 2), np.inf), "infinity"),
        (lambda y: np.random.default_rng(0).random((len(y), 2)), "Unknown label type: continuous"),
    ],
)
def test_invalid_targets_are_refused_in_scikit_learns_words(spoil, message):
    X, labels = table()
    model = classifier()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, spoil(labels))
    assert not hasattr(model, "trees_")


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"no": 1}, "class_weight should be a list of dicts"),
        ([{"no": 1}], "number of elements in class_weight should match number of outputs"),
        ([{"no": -1}, {}, {}], "must be finite and non-negative, got -1 for class 'no'"),
        ([1, 2, 3], "class_weight must hold a dict for each column, got 1"),
    ],
)
def test_class_weights_must_be_of_each_column(factors, message):
    X, labels = table()
    with pytest.raises(ValueError, match=message):
        classifier(class_weight=factors).fit(X, labels)


def test_class_weights_of_one_column_are_in_no_list():
    X, labels = table()
    for model in (classifier(), CertifiedBoostedTreesClassifier(), TreeForestClassifier(3)):
        for factors in ([{"no": 1, "yes": 2}], []):
            with pytest.raises(ValueError, match=r"must be a dict, .* y of one column, got \["):
                model.set_params(class_weight=factors).fit(X, labels[:, 0])


def test_methods_about_rows_take_all_columns():
    X, labels = table()
    model = classifier().fit(X, labels)
    with pytest.raises(ValueError, match=r"y must have shape \(300, 3\), got \(300, 2\)"):
        model.score(X, labels[:, :2])
    for wrong in (labels[:, 0], labels[:, :2]):
        with pytest.raises(ValueError, match=r"y_val must have shape \(n, 3\), as in the fit"):
            model.staged_loss(X, wrong)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.staged_loss(X, labels[:-1])
