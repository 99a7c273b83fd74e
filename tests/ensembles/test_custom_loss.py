"""Losses that are written in Python: they equal those of the core, and are checked."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone

from certree import (
    BoostedTreesRegressor,
    CertifiedBoostedTreesRegressor,
    load,
    save,
)
from certree.ensembles import CustomLoss
from certree.ensembles.custom_loss import CustomLossAdapter
from weight_units import expect_no_unit

SHORT = {"max_iter": 12, "random_state": 0}


def squared_slopes(y, score):
    return score - y, np.ones_like(y)


def squared(y, score):
    return (score - y) ** 2 / 2


def poisson_slopes(y, score):
    return np.exp(score) - y, np.exp(score)


def poisson(y, score):
    return np.exp(score) - y * score


def log_cosh_slopes(y, score):
    bent = np.tanh(score - y)
    return bent, 1 - bent**2


def log_cosh(y, score):
    return np.logaddexp(score - y, y - score) - np.log(2)


def pinball_slopes(y, score):
    off = np.abs(y - score)
    return np.where(y > score, -0.9, 0.1), 0.5 / np.maximum(off, 0.1)


def pinball(y, score):
    return np.maximum(0.9 * (y - score), -0.1 * (y - score))


SQUARED = CustomLoss(squared_slopes, squared)
POISSON = CustomLoss(poisson_slopes, poisson, link="log")
LOG_COSH = CustomLoss(log_cosh_slopes, log_cosh)
PINBALL = CustomLoss(pinball_slopes, pinball)


def rows(n=300, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    X[random.random(X.shape) < 0.03] = np.nan
    offset = random.normal(size=n)
    return X, random.poisson(np.exp(0.5 * np.nan_to_num(X[:, 0]) + 0.3 * offset)), 0.3 * offset


# -- the same as the core's own --------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"max_iter": "auto"},
        {"early_stopping": True, "max_iter": 40, "n_iter_no_change": 3},
        {"quality": "best", "early_stopping": True},
        {"prunings": "none", "subsample": 1.0},
        {"warm_start": True},
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_squared_error_in_python_is_that_of_the_core(parameters, beside):
    X, y, offset = rows(1200)  # more start from the mean, not from a line
    given = {"offset": offset} if beside else {}
    weight = 1 + np.random.default_rng(1).random(len(y))
    model = BoostedTreesRegressor(SQUARED, **{**SHORT, **parameters}).fit(X, y, weight, **given)
    known = BoostedTreesRegressor(**{**SHORT, **parameters}).fit(X, y, weight, **given)
    if parameters.get("warm_start"):
        for one in (model, known):
            one.set_params(max_iter=20).fit(X, y, weight, **given)
    assert model.n_iter_ == known.n_iter_
    np.testing.assert_allclose(model.predict(X), known.predict(X), rtol=1e-8, atol=1e-8)
    if "early_stopping" in parameters:
        for name in ("train_score_", "validation_score_"):
            np.testing.assert_allclose(getattr(model, name), getattr(known, name), rtol=1e-8)


@pytest.mark.parametrize("beside", [False, True])
def test_counts_in_python_have_the_gradients_of_the_core(beside):
    X, y, offset = rows()
    given = {"offset": offset} if beside else {}
    # What votes weigh by may differ: nobody knows whose likelihood a loss in Python is.
    options = {**SHORT, "prunings": "none"}
    model = BoostedTreesRegressor(POISSON, **options).fit(X, y, **given)
    known = BoostedTreesRegressor("poisson", **options).fit(X, y, **given)
    np.testing.assert_allclose(model.start_, known.start_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), known.predict(X), rtol=1e-7)
    assert (model.predict(X) > 0).all()
    np.testing.assert_allclose(
        model.predict(X, offset=offset), known.predict(X, offset=offset), rtol=1e-7
    )
    constant = np.mean(model.staged_loss(X, y) - known.staged_loss(X, y))
    np.testing.assert_allclose(model.staged_loss(X, y), known.staged_loss(X, y) + constant)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", [SQUARED, POISSON, LOG_COSH, PINBALL], ids=["2", "p", "c", "q"])
def test_the_start_is_the_best_constant(loss, weighted):
    random = np.random.default_rng(0)
    y, offset = random.gamma(2.0, size=101), 0.5 * random.normal(size=(1, 101))
    weight = random.random(101) if weighted else None
    one = CustomLossAdapter(functions=loss)
    start = one.compute_start(y, weight, offset)

    def mean(constant):
        return np.average(loss.loss(y, offset[0] + constant), weights=weight)

    best = minimize_scalar(mean, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9})
    assert mean(start[0]) <= best.fun + 1e-3 * abs(best.fun)


def test_a_loss_in_python_is_lowered():
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 3))
    y = X[:, 0] + random.standard_t(1.5, size=2000)
    robust = BoostedTreesRegressor(LOG_COSH, max_iter=60, random_state=0).fit(X[::2], y[::2])
    squares = BoostedTreesRegressor(max_iter=60, random_state=0).fit(X[::2], y[::2])
    errors = [np.abs(model.predict(X[1::2]) - X[1::2, 0]).mean() for model in (robust, squares)]
    assert errors[0] < 0.7 * errors[1]
    high = BoostedTreesRegressor(PINBALL, max_iter=60, random_state=0).fit(X[::2], y[::2])
    assert (y[1::2] < high.predict(X[1::2])).mean() == pytest.approx(0.9, abs=0.05)


def test_neither_the_order_of_rows_nor_the_unit_of_weights_matters():
    X, y, offset = rows()
    order = np.random.default_rng(0).permutation(len(y))
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    for parameters in ({}, {"max_iter": "auto"}, {"early_stopping": True}):
        model = BoostedTreesRegressor(LOG_COSH, **{**SHORT, **parameters})
        one = model.fit(X, y, offset=offset).predict(X)
        again = model.fit(X[order], y[order], offset=offset[order]).predict(X)
        np.testing.assert_array_equal(one, again)
        weighed = model.fit(X, y, weight).predict(X)
        again = model.fit(X[order], y[order], weight[order]).predict(X)
        np.testing.assert_array_equal(weighed, again)
        expect_no_unit(lambda one: model.fit(X, y, one).predict(X), weight)  # noqa: B023


def test_a_warm_start_is_one_longer_fit():
    X, y, _ = rows()
    whole = BoostedTreesRegressor(LOG_COSH, max_iter=20, random_state=0).fit(X, y)
    model = BoostedTreesRegressor(LOG_COSH, max_iter=8, random_state=0, warm_start=True).fit(X, y)
    model.set_params(max_iter=20).fit(X, y)
    np.testing.assert_array_equal(whole.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="loss must be CustomLoss"):
        model.set_params(loss=SQUARED, max_iter=30).fit(X, y)


def test_categories_have_means_with_losses_in_python():
    random = np.random.default_rng(0)
    level = random.integers(0, 100, 1500)
    X = pd.DataFrame({"a": pd.Categorical([f"l{one}" for one in level])})
    y = random.normal(size=100)[level] + random.normal(size=1500)
    ours, known = (
        BoostedTreesRegressor(loss, **SHORT).fit(X, y, offset=0.5 * np.ones(1500))
        for loss in (SQUARED, "squared_error")
    )
    np.testing.assert_allclose(ours.predict(X), known.predict(X), rtol=1e-7)


# -- what models with such losses can be asked -----------------------------------------------------


@pytest.mark.parametrize("loss", [LOG_COSH, POISSON], ids=["identity", "log"])
def test_models_are_copied_exported_and_certified(loss):
    X, y, _ = rows()
    model = BoostedTreesRegressor(loss, **SHORT).fit(X, y)
    assert clone(model).loss == loss
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.fit(X, y).predict(X), model.predict(X))
    assert model.to_dict()["link"] == ("exp" if loss is POISSON else "identity")
    said = model.explain(X).prediction[:, 0]
    expected = np.log(model.predict(X)) if loss is POISSON else model.predict(X)
    np.testing.assert_allclose(said, expected, atol=1e-9)
    assert model.importance("permutation", X, y)[0] > 0
    certified = CertifiedBoostedTreesRegressor(loss, **SHORT).fit(X, y)
    assert (np.diff(certified.predict_interval(X)) > 0).all()


@pytest.mark.parametrize("loss", [LOG_COSH, POISSON], ids=["identity", "log"])
@pytest.mark.parametrize("kind", [BoostedTreesRegressor, CertifiedBoostedTreesRegressor])
def test_files_hold_the_link_and_no_code(loss, kind, tmp_path):
    X, y, _ = rows()
    model = kind(loss, **SHORT).fit(X, y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.loss == CustomLoss(link=loss.link)
    for act in (lambda: loaded.fit(X, y), lambda: loaded.staged_loss(X, y)):
        with pytest.raises(
            ValueError, match=r"loss must be a CustomLoss with functions.*do not hold functions"
        ):
            act()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    save(loaded, tmp_path / "again")
    loaded.set_params(loss=loss)
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), model.predict(X))


# -- what is refused -------------------------------------------------------------------------------


def test_functions_and_links_are_checked():
    for functions in ((squared_slopes,), (None, squared), ("a", "b")):
        with pytest.raises(TypeError, match="gradient_hessian and loss must be callables"):
            CustomLoss(*functions)
    with pytest.raises(ValueError, match='link must be "identity" or "log", got \'logit\''):
        CustomLoss(squared_slopes, squared, link="logit")
    X, y, _ = rows()
    with pytest.raises(
        ValueError, match='quantile must be None unless loss="quantile", got quantile=0'
    ):
        BoostedTreesRegressor(SQUARED, quantile=0.3).fit(X, y)


def of(gradient=None, hessian=None, loss=None):
    """Make a squared-error loss with some of its functions replaced."""

    def slopes(y, score):
        first, second = squared_slopes(y, score)
        return (
            first if gradient is None else gradient(y, score),
            second if hessian is None else hessian(y, score),
        )

    return CustomLoss(slopes, squared if loss is None else loss)


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (
            of(lambda y, s: y - s),
            ValueError,
            "must return the derivatives of loss: at y=.*its gradient is",
        ),
        (of(lambda y, s: 1.01 * (s - y)), ValueError, "must return the derivatives of loss"),
        (of(lambda y, _: y[:-1]), ValueError, r"must have shape \(300,\) and hold numbers"),
        (of(lambda y, _: np.full(len(y), np.nan)), ValueError, "must hold finite numbers, got nan"),
        (of(lambda y, _: y.astype(str)), ValueError, "hold numbers, got .* of <U"),
        (of(hessian=lambda y, _: -np.ones(len(y))), ValueError, "must be >= 0, got -1"),
        (of(loss=lambda *_: 0.0), ValueError, r"loss must have shape \(300,\)"),
        (
            CustomLoss(lambda y, s: s - y, squared),
            TypeError,
            "must return a pair of arrays, got ndarray",
        ),
        (CustomLoss(), ValueError, "model files do not hold functions"),
    ],
)
def test_an_invalid_loss_is_refused_and_leaves_no_trace(loss, error, message):
    X, y, _ = rows()
    model = BoostedTreesRegressor(**SHORT).fit(X, y)
    said = model.predict(X)
    with pytest.raises(error, match=message):
        model.set_params(loss=loss).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), said)


def test_arguments_of_functions_are_read_only():
    X, y, _ = rows()

    def writes(given, score):
        score[0] = 0.0
        return squared_slopes(given, score)

    with pytest.raises(ValueError, match="read-only"):
        BoostedTreesRegressor(CustomLoss(writes, squared), **SHORT).fit(X, y)


def test_an_error_of_a_late_round_goes_through():
    X, y, _ = rows()
    calls = []

    def fails(given, score):
        calls.append(len(given))
        if len(calls) > 9:
            raise ArithmeticError("enough")
        return squared_slopes(given, score)

    model = BoostedTreesRegressor(CustomLoss(fails, squared), **SHORT)
    with pytest.raises(ArithmeticError, match="enough"):
        model.fit(X, y)
    assert not hasattr(model, "trees_")


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_gradients_are_checked_in_the_unit_of_the_targets(unit):
    X, y, _ = rows()
    wrong = of(lambda y, s: 1.01 * (s - y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BoostedTreesRegressor(SQUARED, **SHORT).fit(X, y * unit)
        with pytest.raises(ValueError, match="must return the derivatives of loss"):
            BoostedTreesRegressor(wrong, **SHORT).fit(X, y * unit)
    BoostedTreesRegressor(SQUARED, **SHORT).fit(X, np.full(len(y), unit))
    BoostedTreesRegressor(PINBALL, **SHORT).fit(X, y * unit)


def test_objects_may_be_functions():
    X, y, _ = rows()

    def slopes(power, y, score):
        return score - y, np.full(len(y), power)

    model = BoostedTreesRegressor(CustomLoss(partial(slopes, 1.0), squared), **SHORT).fit(X, y)
    known = BoostedTreesRegressor(SQUARED, **SHORT).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), known.predict(X))
