"""Single trees that serve several targets: numbers, and columns of classes."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import log_loss, r2_score
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import compute_sample_weight, get_tags

import reference
import several_targets
from certree import (
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    Grid,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    certify,
    load,
    save,
)
from certree.explain import shapley_values
from certree.export import check_export
from certree.show import plot_calibration, plot_tree, report
from model_files import expect_refusal, read_arrays, rewrite

CLASSIFIERS = [PACBayesTreeClassifier, PrunedTreeClassifier]
REGRESSORS = [PACBayesTreeRegressor, PrunedTreeRegressor]
every_estimator = pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS)


def table(n=200, seed=0):
    return several_targets.table(n, seed)


def target_of(estimator, y, labels):
    return labels if estimator in CLASSIFIERS else y


def fitted(estimator, n=200, **given):
    X, y, labels = table(n)
    y = target_of(estimator, y, labels)
    return estimator(random_state=0, **given).fit(X, y), X, y


def predict_any(model, X):
    """All that is predicted, in columns."""
    said = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    return np.column_stack(said) if isinstance(said, list) else said.reshape(len(X), -1)


# -- what a fit is -----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_one_tree_tells_all_numbers(estimator):
    X, y, _ = table(900)
    model = estimator(random_state=0).fit(X[:600], y[:600])
    assert model.n_outputs_ == 3
    said = model.predict(X[600:])
    assert said.shape == (300, 3)
    assert model.score(X[600:], y[600:]) == pytest.approx(r2_score(y[600:], said))
    theirs = DecisionTreeRegressor(random_state=0).fit(np.nan_to_num(X[:600]), y[:600])
    assert model.score(X[600:], y[600:]) > theirs.score(np.nan_to_num(X[600:]), y[600:])
    apart = MultiOutputRegressor(estimator(random_state=0)).fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > apart.score(X[600:], y[600:]) - 0.15
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert (model.feature_importances_ > 0.02).all() or estimator is PrunedTreeRegressor


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_one_tree_tells_all_columns_of_classes(estimator):
    X, _, labels = table(900)
    model = estimator(random_state=0).fit(X[:600], labels[:600])
    assert model.n_outputs_ == 3
    known = [["no", "yes"], ["0", "1", "2"], ["False", "True"]]
    assert [one.tolist() for one in model.classes_] == known
    assert model.n_classes_ == [2, 3, 2]
    shares, answers = model.predict_proba(X[600:]), model.predict(X[600:])
    assert [one.shape for one in shares] == [(300, 2), (300, 3), (300, 2)]
    for k, (classes, one) in enumerate(zip(model.classes_, shares, strict=True)):
        np.testing.assert_allclose(one.sum(axis=1), 1.0)
        np.testing.assert_array_equal(classes[one.argmax(axis=1)], answers[:, k])
    right = (answers == labels[600:]).all(axis=1)
    assert model.score(X[600:], labels[600:]) == right.mean() > 0.25
    weight = np.random.default_rng(0).random(300)
    scored = model.score(X[600:], labels[600:], weight)
    assert scored == pytest.approx(weight @ right / weight.sum())
    if estimator is PACBayesTreeClassifier:
        logs = model.predict_log_proba(X[600:])
        np.testing.assert_array_equal(np.column_stack(logs), np.log(np.column_stack(shares)))
        apart = MultiOutputClassifier(estimator(random_state=0)).fit(X[:600], labels[:600])
        for k, one in enumerate(apart.predict_proba(X[600:])):
            mine, theirs = (log_loss(labels[600:, k], each) for each in (shares[k], one))
            assert mine < theirs + 0.15


@pytest.mark.parametrize("vote", ["mean", "majority"])
@pytest.mark.parametrize("prior", ["leaves", "branching"])
def test_all_prunings_vote_by_the_mean_loss_of_classes(prior, vote):
    X, _, labels = table(40)
    how = {"lambda_error": 0.5, "lambda_penalty": 0.1, "prior": prior, "max_depth": 3}
    model = PACBayesTreeClassifier(vote=vote, **how).fit(np.nan_to_num(X), labels)
    tree = model.tree_
    columns = [np.unique(one, return_inverse=True)[1] for one in labels.T]
    loss, _ = reference.compute_mean_loss(tree, np.nan_to_num(X), np.column_stack(columns))
    every, masses, _ = reference.compute_pac_bayes_posterior(
        tree, model.stats_.n, loss, 0.5, 0.1, prior
    )
    of_each = []
    for y in columns:
        counts = reference.count_classes(tree, np.nan_to_num(X), y, y.max() + 1)
        shares = reference.smooth_frequencies(tree, counts, 0.1)
        of_each.append(
            shares if vote == "mean" else np.eye(y.max() + 1)[reference.label_nodes(tree, counts)]
        )
    outcome = reference.vote(tree, every, masses, np.column_stack(of_each))
    leaf = reference.apply(tree, np.nan_to_num(X))
    expected = np.array([outcome[v] for v in leaf])
    np.testing.assert_allclose(
        predict_any(model, np.nan_to_num(X)), expected, rtol=1e-7, atol=1e-10
    )


def test_all_prunings_vote_by_the_mean_loss_of_numbers():
    X, y, _ = table(40)
    X = np.nan_to_num(X)
    how = {"lambda_error": 0.5, "lambda_penalty": 0.1, "max_depth": 3, "smoothing": 1.5}
    model = PACBayesTreeRegressor(**how).fit(X, y)
    tree = model.tree_
    units = [one.unit for one in model.stats_.of_each]
    loss, _ = reference.compute_mean_loss(tree, X, y, None, units)
    every, masses, _ = reference.compute_pac_bayes_posterior(tree, model.stats_.n, loss, 0.5, 0.1)
    means = []
    for one in y.T:
        rows, mean, _ = reference.compute_moments(tree, X, one)
        means.append(reference.smooth_means(tree, rows, mean, 1.5))
    outcome = reference.vote(tree, every, masses, np.column_stack(means))
    expected = [outcome[v] for v in reference.apply(tree, X)]
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-7, atol=1e-10)


@every_estimator
def test_scikit_learn_checks_several_outputs_of_trees(estimator):
    """The checks themselves run where each estimator has its tests; some of them need this tag."""
    assert get_tags(estimator()).target_tags.multi_output


# -- relations ---------------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("grower", ["cart", "kd", "dyadic"])
def test_targets_may_stand_in_any_order(estimator, grower):
    mine, X, y = fitted(estimator, grower=grower)
    for order in ([1, 2, 0], [0, 2, 1]):
        other = clone(mine).fit(X, y[:, order])
        np.testing.assert_array_equal(mine.predict(X)[:, order], other.predict(X))
        np.testing.assert_array_equal(mine.apply(X), other.apply(X))
        np.testing.assert_array_equal(mine.feature_importances_, other.feature_importances_)
        assert mine.best_params_ == other.best_params_
        assert mine.mixture_weights_ == other.mixture_weights_
        if estimator in CLASSIFIERS:
            shares = mine.predict_proba(X), other.predict_proba(X)
            for k, place in enumerate(order):
                np.testing.assert_array_equal(shares[0][place], shares[1][k])


@every_estimator
def test_the_order_of_rows_threads_and_the_unit_of_weights_say_nothing(estimator):
    model, X, y = fitted(estimator)
    random = np.random.default_rng(1)
    order, weight = random.permutation(200), random.integers(0, 3, 200)
    again = clone(model).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(predict_any(model, X), predict_any(again, X))
    shuffled = clone(model).fit(X[order], y[order])
    np.testing.assert_allclose(
        predict_any(model, X), predict_any(shuffled, X), rtol=1e-6, atol=1e-9
    )
    weighed, half, times = (clone(model).fit(X, y, w * weight) for w in (1.0, 0.5, 3.7))
    np.testing.assert_array_equal(predict_any(weighed, X), predict_any(half, X))
    np.testing.assert_allclose(predict_any(weighed, X), predict_any(times, X), rtol=1e-9, atol=1e-9)
    some = weight > 0
    kept = clone(model).fit(X[some], y[some], weight[some])
    np.testing.assert_array_equal(predict_any(weighed, X), predict_any(kept, X))
    np.testing.assert_array_equal(predict_any(model, X[:1]), predict_any(model, X)[:1])
    np.testing.assert_array_equal(
        predict_any(model, X.astype(np.float32)[:1]), predict_any(model, X[:1])
    )
    before = predict_any(model, X)
    model.set_params(grower="kd", max_depth=1)
    np.testing.assert_array_equal(predict_any(model, X), before)


@every_estimator
def test_a_column_is_one_target(estimator):
    X, y, labels = table()
    y = target_of(estimator, y, labels)
    alone = estimator(random_state=0).fit(X, y[:, 0])
    with pytest.warns(match="A column-vector y was passed"):
        column = estimator(random_state=0).fit(X, y[:, :1])
    assert column.n_outputs_ == alone.n_outputs_ == 1
    np.testing.assert_array_equal(column.predict(X), alone.predict(X))
    assert column.predict(X).shape == (200,)


@every_estimator
def test_copies_of_a_target_say_what_it_says_alone(estimator):
    X, y, labels = table()
    how = {"grower": "kd", "random_state": 0}
    how |= (
        {"alpha": 1.0}
        if estimator.__name__.startswith("Pruned")
        else {"lambda_error": 1.0, "lambda_penalty": 0.1}
    )
    y = target_of(estimator, y, labels)[:, 1]
    alone, twice = estimator(**how).fit(X, y), estimator(**how).fit(X, np.column_stack([y, y]))
    np.testing.assert_array_equal(alone.predict(X), twice.predict(X)[:, 1])
    np.testing.assert_array_equal(alone.weights_.weight, twice.weights_.weight)
    np.testing.assert_allclose(alone.feature_importances_, twice.feature_importances_)


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_units_of_numbers_do_not_matter(estimator):
    # Which rows are in which fold of a number goes by what targets are, in whatever unit.
    splits = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    model, X, y = fitted(estimator, cv=splits)
    units = np.array([1.0, 1000.0, 0.25])
    other = clone(model).fit(X, y * units)
    np.testing.assert_array_equal(model.apply(X), other.apply(X))
    np.testing.assert_allclose(model.predict(X) * units, other.predict(X), rtol=1e-9)
    y[:, 1] = 7.0
    np.testing.assert_allclose(clone(model).fit(X, y).predict(X)[:, 1], 7.0, rtol=1e-12)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_classes_may_be_one_or_words_beside_numbers(estimator):
    X, y, labels = table()
    labels[:, 2] = "same"
    model = estimator(random_state=0).fit(X, labels)
    assert model.n_classes_ == [2, 3, 1]
    np.testing.assert_array_equal(model.predict_proba(X)[2], np.ones((200, 1)))
    assert (model.predict(X)[:, 2] == "same").all()
    frame = pd.DataFrame({"word": labels[:, 0], "number": (y[:, 1] > 0).astype(int)})
    model.fit(X, frame)
    assert model.classes_[1].tolist() == [0, 1]
    said = model.predict(X)
    assert said.dtype == object
    assert model.score(X, frame) == (said == frame.to_numpy()).all(axis=1).mean()


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_class_weights_are_given_by_column(estimator):
    X, _, labels = table()
    model = estimator(random_state=0)
    weighed = clone(model).fit(X, labels, compute_sample_weight("balanced", labels))
    balanced = clone(model).set_params(class_weight="balanced").fit(X, labels)
    np.testing.assert_allclose(predict_any(balanced, X), predict_any(weighed, X))
    words = labels[:, [0, 2]]
    factors = [{"no": 1, "yes": 2}, {"False": 3, "True": 1}]
    given = clone(model).set_params(class_weight=factors).fit(X, words)
    weight = np.where(words == ["yes", "False"], [2, 3], 1).prod(axis=1)
    np.testing.assert_array_equal(
        predict_any(given, X), predict_any(clone(model).fit(X, words, weight), X)
    )
    with pytest.raises(ValueError, match="class_weight should be a list of dicts"):
        clone(model).set_params(class_weight={"no": 1}).fit(X, labels)
    with pytest.raises(ValueError, match="number of elements in class_weight should match"):
        clone(model).set_params(class_weight=[{"no": 1}]).fit(X, labels)


@every_estimator
def test_categories_groups_and_folds_are_taken(estimator):
    X, y, labels = table()
    y = target_of(estimator, y, labels)
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(
        kind=pd.Categorical(np.where(np.nan_to_num(X[:, 0]) > 0, "a", "b"))
    )
    model = estimator(random_state=0, cv=2).fit(frame, y, groups=np.arange(200) // 4)
    assert model.is_categorical_.tolist() == [False] * 4 + [True]
    assert model.score(frame, y) > 0.1
    tree = DecisionTreeClassifier if estimator in CLASSIFIERS else DecisionTreeRegressor
    model = estimator(tree(max_depth=5)).fit(
        X, np.unique(y, return_inverse=True)[1].reshape(y.shape)
    )
    assert model.tree_.depth <= 5
    splits = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    assert estimator(cv=splits).fit(X, y).n_outputs_ == 3


@pytest.mark.parametrize("search", ["mixture", "joint", "error-first"])
def test_posteriors_are_chosen_by_the_losses_of_all_targets(search):
    X, y, labels = table()
    for estimator, target in ((PACBayesTreeClassifier, labels), (PACBayesTreeRegressor, y)):
        model = estimator(random_state=0, search=search, max_depth=4).fit(X, target)
        assert (len(model.mixture_weights_) > 1) is (search == "mixture")
    model = PACBayesTreeClassifier(random_state=0, scoring="error").fit(X, labels)
    assert model.n_outputs_ == 3


# -- what follows a fit ----------------------------------------------------------------------------


@every_estimator
def test_files_and_pickles_hold_them(estimator, tmp_path):
    model, X, y = fitted(estimator)
    save(model, tmp_path / "model.certree")
    for again in (load(tmp_path / "model.certree"), pickle.loads(pickle.dumps(model))):
        assert again.n_outputs_ == 3
        np.testing.assert_array_equal(predict_any(again, X), predict_any(model, X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.stats_.loss, model.stats_.loss)
        np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
        assert again.score(X, y) == model.score(X, y)
        assert str(again.path(X[0])) == str(model.path(X[0]))


@every_estimator
def test_nodes_show_their_prediction_for_each_target(estimator):
    model, X, _ = fitted(estimator)
    cells = model.path(X[0])
    assert sum(cell.share for cell in cells) == pytest.approx(1)
    assert [len(cell.label) for cell in cells] == [3] * len(cells)
    assert cells[0].prediction == f"({', '.join(map(_text, cells[0].label))})"
    assert "votes (" in str(cells)
    assert model.apply(X).shape == (200,)
    assert model.decision_path(X).shape == (200, model.tree_.n_nodes)
    assert estimator.__name__ in model._repr_html_()


def _text(label):
    return f"{label:.6g}" if isinstance(label, float) else str(label)


@every_estimator
def test_explanations_sum_to_the_predictions_of_all_targets(estimator):
    model, X, _ = fitted(estimator)
    explained = model.explain(X[:5])
    if estimator in CLASSIFIERS:
        assert explained.output_names[:5] == ("y[0]=no", "y[0]=yes", "y[1]=0", "y[1]=1", "y[1]=2")
        assert explained.scale == "probability"
    else:
        assert explained.output_names == ("y[0]", "y[1]", "y[2]")
    for found in (explained, shapley_values(model, X[:5], background=X[:50])):
        np.testing.assert_allclose(found.prediction, predict_any(model, X[:5]), atol=1e-9)


def test_compact_trees_change_no_prediction_by_more_than_a_tolerance():
    for estimator in (PACBayesTreeClassifier, PACBayesTreeRegressor):
        model, X, y = fitted(estimator)
        smaller = model.compact(0.2)
        assert smaller.get_n_leaves() < model.get_n_leaves()
        most = 0.2 if estimator in CLASSIFIERS else 0.2 * y.std(axis=0)
        known = np.nan_to_num(X)
        assert (
            np.abs(predict_any(smaller, known) - predict_any(model, known)) <= most + 1e-9
        ).all()


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_exports_of_numbers_predict_the_same(estimator):
    X, y, _ = table()
    rows = np.nan_to_num(X).astype(np.float32)
    model = estimator(random_state=0).fit(rows, y)
    exports = ["dict", "onnx_float64", "sklearn", "sqlite", "duckdb"]
    checked = check_export(model, rows, exports=exports, tolerance=1e-9)
    assert checked.all_agree, checked
    assert not checked.skipped
    assert json.loads(json.dumps(model.to_dict()))["link"] == "identity"
    assert {"value_0", "value_2"} <= set(model.trees_to_dataframe())
    assert '"prediction_2"' in model.to_sql("t")


# -- what is refused -------------------------------------------------------------------------------


@every_estimator
def test_what_takes_one_target_says_so(estimator, tmp_path):
    model, X, y = fitted(estimator)
    kind = "Classifier" if estimator in CLASSIFIERS else "Regressor"
    asked = [model.rules, model.export_text]
    if kind == "Regressor":
        asked.append(lambda: model.predict_std(X))
    else:
        asked += [model.to_sklearn, model.to_dict, model.trees_to_dataframe, model.to_onnx]
        asked.append(lambda: model.to_sql("t"))
    if estimator is PrunedTreeClassifier:
        asked.append(lambda: model.certify_fit(X, y))
    asked.append(lambda: clone(model).set_params(monotonic_cst=[1, 0, 0, 0]).fit(X, y))
    for ask in asked:
        with pytest.raises(ValueError, match=f"takes one target, got y of 3 .*MultiOutput{kind}"):
            ask()
    asked = [lambda: report(model, X, y, tmp_path / "page.html"), lambda: plot_tree(model)]
    if kind == "Classifier":
        asked.append(lambda: certify(model, X, y))
    else:
        with pytest.raises(TypeError, match="must predict classes, got the regressor"):
            certify(model, X, y)
    for ask in asked:
        with pytest.raises(ValueError, match=f"needs a model with one target.*MultiOutput{kind}"):
            ask()
    if kind == "Classifier":
        with pytest.raises(ValueError, match="needs a model with one target"):
            plot_calibration(model, X, y)
        with pytest.raises(ValueError, match=r"y must have shape \(200, 3\), got \(200, 2\)"):
            model.score(X, y[:, :2])


@pytest.mark.parametrize("rule", ["pessimistic", "description-length"])
def test_rules_that_read_classes_take_one_target(rule):
    X, _, labels = table()
    model = PrunedTreeClassifier(rule=rule)
    with pytest.raises(ValueError, match=f"rule='{rule}' takes one target, got y of 3"):
        model.fit(X, labels)
    assert not hasattr(model, "tree_")


@pytest.mark.parametrize("rule", ["depth", "sibling-merge", "square-root", "spatially-adaptive"])
def test_other_rules_prune_by_the_mean_loss(rule):
    X, y, labels = table()
    for estimator, target in ((PrunedTreeClassifier, labels), (PrunedTreeRegressor, y)):
        model = estimator(rule=rule, random_state=0).fit(X, target)
        assert model.n_outputs_ == 3
        assert model.predict(X).shape == (200, 3)


@every_estimator
def test_rows_join_fits_of_one_target_alone(estimator):
    X, y, labels = table()
    y, X = target_of(estimator, y, labels), np.nan_to_num(X)
    given = (
        {"alpha": 1.0}
        if estimator.__name__.startswith("Pruned")
        else {"lambda_error": 1.0, "lambda_penalty": 0.0}
    )
    box = np.full(4, -5.0), np.full(4, 5.0)
    model = estimator(grower=Grid(box), max_depth=4, **given)
    with pytest.raises(ValueError, match="partial_fit takes one target, got y of 3 columns"):
        model.partial_fit(X, y)
    assert not hasattr(model, "tree_")
    model.fit(X, y)
    assert model.seen_rows_ is None
    for name in ("partial_fit", "forget", "merge"):
        with pytest.raises(
            AttributeError, match=f"no attribute '{name}' here: y must have a single"
        ):
            getattr(model, name)
    model.fit(X, y[:, 0]).partial_fit(X, y[:, 0])
    with pytest.raises(ValueError, match="y must have 1 outputs, as in the fit, got 3"):
        model.partial_fit(X, y)
    assert model.stats_.n[0] == 400


@every_estimator
def test_targets_and_rows_that_are_none_are_refused(estimator):
    X, y, labels = table()
    y = target_of(estimator, y, labels)
    for wrong, message in (
        (y[:-1], "inconsistent numbers of samples"),
        (y[:, :, None], "dim 3"),
        (csr_array((len(y), 2)), "Sparse data was passed for y"),
        (np.where(np.arange(3) == 1, np.nan, np.ones((len(y), 1))), "NaN"),
    ):
        model = estimator()
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(X, wrong)
        assert not hasattr(model, "tree_")
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        estimator().fit(csr_array(np.nan_to_num(X)), y)


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (CertifiedTreeClassifier, "Classifier"),
        (CertifiedTreeRegressor, "Regressor"),
        (HelmboldSchapireTreeClassifier, "Classifier"),
    ],
)
def test_others_say_who_takes_several(estimator, kind):
    X, y, labels = table()
    with pytest.raises(ValueError, match=f"PACBayesTree{kind}, PrunedTree{kind}.* take several"):
        estimator().fit(X, labels if kind == "Classifier" else y)
    assert not get_tags(estimator()).target_tags.multi_output


@every_estimator
def test_damaged_files_are_refused(estimator, tmp_path):
    model, X, y = fitted(estimator)
    path, alone = tmp_path / "model.certree", tmp_path / "alone.certree"
    save(clone(model).fit(X, y[:, 0]), alone)
    save(model, path)
    held = read_arrays(path)
    rows = "stats.1.counts" if estimator in CLASSIFIERS else "stats.1.rows"
    for changed, message in (
        ({rows: held[rows] + 1}, "same rows in the same nodes"),
        ({rows: held[rows][1:]}, "."),
        ({"vote.score": held["vote.score"][:, 1:]}, "score must have shape"),
        ({"vote.score": held["vote.score"] + np.nan}, "."),
    ):
        broken = tmp_path / "broken.certree"
        broken.write_bytes(path.read_bytes())
        rewrite(broken, changed)
        expect_refusal(broken, message)
    for n_outputs in (1, 4, "3", None):
        broken.write_bytes(path.read_bytes())
        rewrite(broken, n_outputs=n_outputs)
        expect_refusal(broken)
    for part in (rows, "stats.2.label" if estimator in CLASSIFIERS else "stats.2.mean"):
        broken.write_bytes(path.read_bytes())
        rewrite(broken, without=(part,))
        expect_refusal(broken, f"lacks {part}")
    rewrite(alone, n_outputs=2)
    expect_refusal(alone)


def test_estimators_of_one_target_take_no_files_of_several(tmp_path):
    X, y, labels = table()
    for model, target in (
        (HelmboldSchapireTreeClassifier(), labels),
        (CertifiedTreeRegressor(), y),
    ):
        save(model.fit(np.nan_to_num(X), target[:, 0]), tmp_path / "model.certree")
        rewrite(tmp_path / "model.certree", n_outputs=3)
        expect_refusal(
            tmp_path / "model.certree", "the model file holds several targets, but .* predicts one"
        )
