"""Several outputs of one fit: numbers that one tree serves, and quantiles that never cross."""

import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import mean_pinball_loss
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

import several_targets
from certree import (
    BoostedTreesRegressor,
    CertifiedBoostedTreesRegressor,
    CertifiedTreeRegressor,
    load,
    save,
)
from certree.ensembles import CustomLoss
from certree.ensembles.losses import SquaredLoss
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.explain import shapley_values
from certree.export import check_export
from weight_units import expect_no_unit

SHORT = {"max_iter": 12, "random_state": 0}
QUANTILES = [0.1, 0.5, 0.9]


def table(n=300, seed=0):
    X, y, _ = several_targets.table(n, seed)
    return X, y


def regressor(**parameters):
    return BoostedTreesRegressor(**{**SHORT, **parameters})


# -- what a fit is ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
)
def test_one_fit_predicts_all_numbers(loss):
    X, y = table(1200)
    y = y if loss in ("squared_error", "absolute_error", "huber", "quantile") else np.exp(y)
    model = regressor(loss=loss, max_iter=60).fit(X, y)
    assert model.n_outputs_ == 3
    said = model.predict(X)
    assert said.shape == y.shape
    assert model.start_.shape == (3,)
    assert model.trees_.value.shape[1] == 3
    mean = np.median(y, axis=0)
    losses = np.abs(said - y).mean(axis=0), np.abs(mean - y).mean(axis=0)
    assert (losses[0] < 0.9 * losses[1]).all()
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(last, said)


def test_one_model_is_no_worse_than_several_if_numbers_are_related():
    X, y = table(2400)
    mine = regressor(max_iter=150).fit(X[:1200], y[:1200])
    theirs = MultiOutputRegressor(regressor(max_iter=150)).fit(X[:1200], y[:1200])
    assert mine.score(X[1200:], y[1200:]) > theirs.score(X[1200:], y[1200:]) - 0.01


def test_a_number_in_a_column_of_its_own_is_that_number():
    X, y = table()
    with pytest.warns(DataConversionWarning):
        column = regressor().fit(X, y[:, :1])
    assert column.n_outputs_ == 1
    np.testing.assert_array_equal(column.predict(X), regressor().fit(X, y[:, 0]).predict(X))


@pytest.mark.parametrize("n", [300, 1200])
def test_columns_may_be_in_any_order(n):
    X, y = table(n)
    order = [2, 0, 1]
    mine, other = regressor().fit(X, y), regressor().fit(X, y[:, order])
    np.testing.assert_array_equal(mine.predict(X)[:, order], other.predict(X))
    np.testing.assert_array_equal(mine.feature_importances_ > 0, other.feature_importances_ > 0)


def test_units_of_columns_do_not_matter():
    X, y = table(1200)
    units = np.array([1.0, 1024.0, 0.25])
    # Which rows grow is told by their content: here all of them do.
    mine, other = (regressor(subsample=1.0).fit(X, target) for target in (y, y * units))
    np.testing.assert_allclose(mine.predict(X) * units, other.predict(X), rtol=1e-9)
    np.testing.assert_allclose(mine.staged_loss(X, y), other.staged_loss(X, y * units))


@pytest.mark.parametrize("n", [300, 1200])
def test_rows_may_be_in_any_order_and_weights_have_no_unit(n):
    X, y = table(n)
    random = np.random.default_rng(1)
    order, weight = random.permutation(n), random.integers(0, 3, n).astype(float)
    model = regressor().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X[order], y[order]).predict(X))
    weighed, again = regressor().fit(X, y, weight), regressor()
    again.fit(X[order], y[order], weight[order])
    np.testing.assert_array_equal(weighed.predict(X), again.predict(X))
    expect_no_unit(lambda one: regressor().fit(X, y, one).predict(X), weight)


def test_a_constant_number_is_predicted_exactly():
    X, y = table()
    y[:, 1] = 7.0
    model = regressor().fit(X, y)
    np.testing.assert_array_equal(model.predict(X)[:, 1], 7.0)
    assert np.isfinite(model.staged_loss(X, y)).all()


def test_the_loss_of_a_row_is_in_units_of_the_start():
    X, y = table(1200)
    model = regressor(early_stopping=True, validation_fraction=None, max_iter=5).fit(X, y)
    assert model.train_score_[0] == pytest.approx(-1)
    of_each = np.square(y - model.predict(X)).mean(axis=0) / y.var(axis=0)
    assert model.staged_loss(X, y)[model.n_iter_ - 1] == pytest.approx(of_each.mean())


def test_the_order_of_outputs_is_that_of_their_targets():
    random = np.random.default_rng(0)
    rows, y = random.integers(0, 2**63, 50).astype(np.uint64), random.normal(size=(4, 50))
    known = MultiOutputLoss.combine([SquaredLoss()] * 4).with_training_rows(y, None, rows)
    for order in ([3, 1, 0, 2], [1, 0, 3, 2]):
        other = MultiOutputLoss.combine([SquaredLoss()] * 4).with_training_rows(
            4 * y[order], None, rows
        )
        assert [order[k] for k in other.order] == list(known.order)
    shuffled = random.permutation(50)
    turned = known.with_training_rows(y[:, shuffled], None, rows[shuffled])
    assert turned.order == known.order


def test_the_linear_start_follows_all_numbers():
    X, _ = table(400)
    y = np.nan_to_num(X) @ np.array([[1.0, 0.0, 3.0], [0.0, 2.0, -1.0], [0, 0, 0], [0, 0, 0]])
    model = regressor(max_iter=1).fit(X, y)
    n_first = len(model.trees_) - 1
    assert 2 <= n_first <= 4
    assert model.score(X, y) > 0.6


# -- what follows a fit ----------------------------------------------------------------------------


def test_early_stopping_and_evaluation_take_several_numbers():
    X, y = table(1300)
    judged = {"X_val": X[1000:], "y_val": y[1000:]}
    model = regressor(max_iter=40).fit(X[:1000], y[:1000], **judged)
    said = model.staged_loss(judged["X_val"], judged["y_val"])
    np.testing.assert_allclose(-model.validation_score_[1:], said, rtol=1e-9)
    for scoring in (None, "r2", "neg_mean_absolute_error"):
        stopped = regressor(early_stopping=True, scoring=scoring, max_iter=30).fit(X, y)
        assert 1 <= stopped.n_iter_ <= 30
    best = regressor(early_stopping=True, quality="best", max_iter=10).fit(X, y)
    assert best.predict(X).shape == y.shape
    with pytest.raises(
        ValueError, match=r"y must have shape \(n, 3\), as in the fit, got \(1300, 2\)"
    ):
        regressor().fit(X, y, X_val=X, y_val=y[:, :2])


def test_a_warm_start_is_one_fit():
    X, y = table(1200)
    model = regressor(warm_start=True).fit(X, y)
    model.set_params(max_iter=20).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), regressor(max_iter=20).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="y must have 3 outputs, as in the fit, got 2"):
        model.set_params(max_iter=25).fit(X, y[:, :2])
    model.set_params(warm_start=False)
    assert model.fit(X, y[:, :2]).predict(X).shape == (1200, 2)
    assert model.fit(X, y[:, 0]).predict(X).shape == (1200,)


def test_offsets_are_those_of_each_number():
    X, y = table(1200)
    offset = np.random.default_rng(0).normal(size=y.shape)
    model = regressor(max_iter=40).fit(X, y + offset, offset=offset)
    np.testing.assert_allclose(model.predict(X, offset=offset), model.predict(X) + offset)
    assert model.score(X, y) > 0.5
    with pytest.raises(ValueError, match=r"offset must have shape \(1200, 3\), got \(1200,\)"):
        regressor().fit(X, y, offset=offset[:, 0])


# Those that read float64; of boosted trees scikit-learn does.
FLOAT64_EXPORTS = ["dict", "onnx_float64", "sklearn", "sqlite", "duckdb"]


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_exports_predict_the_same(loss):
    X, y = table()
    y = np.exp(y) if loss == "poisson" else y
    model = regressor(loss=loss).fit(X, y)
    checked = check_export(model, X, tolerance=1e-12, exports=FLOAT64_EXPORTS)
    assert checked.all_agree, checked
    assert not checked.skipped
    form = json.loads(json.dumps(model.to_dict()))
    assert form["link"] == ("exp" if loss == "poisson" else "identity")
    assert len(form["start"]) == 3
    assert {"value_0", "value_2"} <= set(model.trees_to_dataframe())
    statement = model.to_sql("t")
    assert all(f'"prediction_{k}"' in statement for k in range(3))
    with pytest.raises(ValueError, match="prediction_1"):
        model.to_sql("t", keep=["prediction_1"])


def test_explanations_sum_to_all_numbers():
    X, y = table()
    model = regressor().fit(X, y)
    explained = model.explain(X[:5])
    assert explained.output_names == ("y[0]", "y[1]", "y[2]")
    np.testing.assert_allclose(explained.prediction, model.predict(X[:5]))
    values = shapley_values(model, X[:5], background=X)
    np.testing.assert_allclose(values.prediction, model.predict(X[:5]))
    logs = regressor(loss="gamma").fit(X, np.exp(y[:, :2])).explain(X[:5])
    assert logs.scale == "raw score"
    assert "y[0]" in str(logs)
    assert "y[1]" in str(logs)
    assert model.importance("permutation", X, y).shape == (4,)
    assert model.apply(X).shape == (len(X), len(model.trees_))


@pytest.mark.parametrize("kind", ["numbers", "quantiles"])
def test_files_and_pickles_hold_them(kind, tmp_path):
    X, y = table()
    y = y if kind == "numbers" else y[:, 0]
    model = regressor(**({} if kind == "numbers" else {"loss": "quantile", "quantile": QUANTILES}))
    model.fit(X, y)
    save(model, tmp_path / "model.certree")
    for again in (load(tmp_path / "model.certree"), pickle.loads(pickle.dumps(model))):
        assert again.n_outputs_ == model.n_outputs_
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_allclose(again.staged_loss(X, y), model.staged_loss(X, y), rtol=1e-12)
        more = again.set_params(warm_start=True, max_iter=15).fit(X, y)
        anew = clone(model).set_params(max_iter=15).fit(X, y)
        np.testing.assert_array_equal(more.predict(X), anew.predict(X))


# -- quantiles -------------------------------------------------------------------------------------


def test_quantiles_of_one_fit_never_cross():
    X, y = table(1500)
    y = y[:, 0]
    many = np.linspace(0.05, 0.95, 10)
    model = regressor(loss="quantile", quantile=many, max_iter=80).fit(X[:1000], y[:1000])
    said = model.predict(X)
    assert said.shape == (1500, 10)
    assert (np.diff(said, axis=1) >= 0).all()
    below = (y[1000:, None] <= said[1000:]).mean(axis=0)
    np.testing.assert_allclose(below, many, atol=0.12)
    assert model.n_outputs_ == 1
    for stage in model.staged_predict(X[:20]):
        assert (np.diff(stage, axis=1) >= 0).all()
    raw = model.explain(X).prediction
    np.testing.assert_allclose(np.sort(raw, axis=1), said, rtol=1e-9, atol=1e-12)

    def pinball(at):
        pairs = zip(many, at.T, strict=True)
        return sum(mean_pinball_loss(y, one, alpha=q) for q, one in pairs)

    assert pinball(said) <= pinball(raw) + 1e-12


def test_one_quantile_in_a_list_is_that_quantile():
    X, y = table()
    one, other = (regressor(loss="quantile", quantile=q).fit(X, y[:, 0]) for q in ([0.3], 0.3))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_exports_of_quantiles_sort_or_refuse():
    X, y = table()
    model = regressor(loss="quantile", quantile=QUANTILES).fit(X, y[:, 0])
    explained = model.explain(X[:3])
    assert explained.output_names == ("quantile 0.1", "quantile 0.5", "quantile 0.9")
    assert model.to_dict()["link"] == "sorted"
    for export in (lambda: model.to_sql("t"), model.to_sklearn):
        with pytest.raises(ValueError, match=r"quantile must be a single number .*use to_onnx"):
            export()
    with pytest.raises(ValueError, match="score is not defined for a model of several quantiles"):
        model.score(X, y[:, 0])
    checked = check_export(model, X, exports=FLOAT64_EXPORTS)
    assert checked.all_agree, checked
    assert [*checked.skipped] == ["sklearn", "sqlite", "duckdb"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.5, 0.1], "quantile must hold ascending numbers"),
        ([0.5, 0.5], "quantile must hold ascending numbers"),
        ([0.1, 1.0], "quantile must hold numbers between 0 and 1"),
        ([0.1, np.nan], "quantile must hold numbers between 0 and 1"),
        ([], "quantile must hold numbers between 0 and 1"),
        ([[0.1, 0.2]], "quantile must hold numbers between 0 and 1"),
        (["a"], "quantile must hold numbers between 0 and 1"),
    ],
)
def test_quantiles_must_be_some(given, message):
    X, y = table(30)
    with pytest.raises(ValueError, match=message):
        regressor(loss="quantile", quantile=given).fit(X, y[:, 0])


# -- what takes one --------------------------------------------------------------------------------


def test_what_takes_one_number_says_so():
    X, y = table(60)
    slopes = CustomLoss(lambda y, s: (s - y, np.ones_like(y)), lambda y, s: (s - y) ** 2 / 2)
    for model, target, message in (
        (regressor(monotonic_cst=[1, 0, 0, 0]), y, "monotonic_cst requires one output"),
        (regressor(loss=slopes), y, r"loss=CustomLoss\(...\) requires one output"),
        (
            regressor(loss="quantile", quantile=QUANTILES),
            y,
            r"quantile=\[...\] requires one output",
        ),
        (CertifiedBoostedTreesRegressor(), y, "CertifiedBoostedTreesRegressor predicts one output"),
        (CertifiedTreeRegressor(), y, "CertifiedTreeRegressor predicts one output"),
    ):
        with pytest.raises(ValueError, match=rf"{message}.*MultiOutputRegressor"):
            model.fit(X, target)
    with pytest.raises(ValueError, match="quantile"):
        CertifiedBoostedTreesRegressor("quantile", quantile=QUANTILES).fit(X, y[:, 0])
    model = regressor().fit(X, y)
    for wrong in (y[:, 0], y[:, :2]):
        with pytest.raises(ValueError, match=r"y must have shape \(n, 3\), as in the fit"):
            model.staged_loss(X, wrong)


def test_tags_say_who_takes_several():
    for model, takes in ((regressor(), True), (CertifiedBoostedTreesRegressor(), False)):
        assert get_tags(model).target_tags.multi_output is takes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, y = table(30)
        regressor().fit(X, y.tolist())
