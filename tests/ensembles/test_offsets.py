"""Offsets: known scores from which boosting starts, in fits and in predictions."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone

import reference
from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    load,
    save,
)
from certree.ensembles.losses import (
    GammaLoss,
    HuberLoss,
    LogLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
)
from weight_units import expect_no_unit

SHORT = {"max_iter": 15, "random_state": 0}
NUMBERS = ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
KINDS = [*NUMBERS, "two", "three"]


def rows_of(kind, n=300, seed=0):
    """Rows, targets and offsets."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    X[random.random(X.shape) < 0.03] = np.nan
    offset = random.normal(size=n)
    level = np.nan_to_num(X[:, 0]) + offset
    if kind == "two":
        return X, (random.random(n) < expit(level)).astype(int), offset
    if kind == "three":
        several = random.normal(size=(n, 3)) + level[:, None] * [0, 1, -1]
        return X, several.argmax(axis=1), np.outer(offset, [0.0, 1.0, -1.0])
    if kind in ("poisson", "gamma", "tweedie"):
        mean = np.exp(0.5 * level)
        y = random.poisson(mean) if kind == "poisson" else random.gamma(2.0, mean / 2)
        y = np.where(random.random(n) < 0.3, 0.0, y) if kind == "tweedie" else y
        return X, y.astype(float), 0.5 * offset
    # In whole numbers of 2^-20, so that sums are exact and a median stays a target.
    return X, *(np.round(one * 2**20) / 2**20 for one in (level + random.normal(size=n), offset))


def made(kind, **parameters):
    if kind in ("two", "three"):
        return BoostedTreesClassifier(**{**SHORT, **parameters})
    return BoostedTreesRegressor(kind, **{**SHORT, **parameters})


def scores_of(model, X, offset=None):
    if hasattr(model, "decision_function"):
        return model.decision_function(X, offset=offset)
    said = model.predict(X, offset=offset)
    return np.log(said) if model.loss in ("poisson", "gamma", "tweedie") else said


# -- where fits start ------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "loss",
    [SquaredLoss(), QuantileLoss(quantile=0.3), PoissonLoss(), GammaLoss(), TweedieLoss(power=1.3)],
    ids=lambda loss: loss.name,
)
def test_the_start_is_the_best_constant_with_offsets(loss, weighted):
    random = np.random.default_rng(0)
    y, offset = random.gamma(2.0, size=51), random.normal(size=(1, 51))
    weight = random.random(51) if weighted else None
    start = loss.compute_start(y, weight, offset)

    def mean(constant):
        of_rows = reference.compute_losses(loss.name, loss.parameter, y, offset + constant)
        return np.average(of_rows, weights=weight)

    near = start + np.linspace(-0.5, 0.5, 2001)
    assert mean(start) <= min(map(mean, near)) + 1e-12


def test_the_start_of_huber_is_the_median_above_offsets():
    random = np.random.default_rng(0)
    y, offset = random.normal(size=51), random.normal(size=(1, 51))
    assert HuberLoss().compute_start(y, None, offset) == np.median(y - offset[0])


@pytest.mark.parametrize("n_outputs", [1, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_of_classes_fits_their_frequencies(n_outputs, weighted):
    random = np.random.default_rng(n_outputs)
    n, k = 80, max(2, n_outputs)
    y, offset = random.integers(0, k, n), 3 * random.normal(size=(n_outputs, n))
    weight = random.random(n) if weighted else np.ones(n)
    start = LogLoss(n_outputs).compute_start(y, weight if weighted else None, offset)
    # Half a row more of each class, at the mean offset.
    means = np.average(offset, axis=1, weights=weight)[:, None]
    offsets = np.hstack([offset, np.repeat(means, k, axis=1)])
    targets, weights = np.append(y, np.arange(k)), np.append(weight, np.full(k, 0.5))

    def loss(constant):
        return weights @ reference.compute_losses(
            "classes", 0.5, targets, offsets + constant[:, None]
        )

    best = minimize(loss, np.zeros(n_outputs), tol=1e-12)
    assert loss(start) <= best.fun * (1 + 1e-9)


# -- what fits make of them ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parameters", [{}, {"max_iter": "auto"}, {"early_stopping": True}])
def test_a_constant_offset_moves_the_start_alone(kind, parameters):
    X, y, offset = rows_of(kind)
    constant = np.zeros_like(offset) + (np.array([0.5, -1.0, 2.0]) if kind == "three" else 2.0)
    plain = made(kind, **parameters).fit(X, y)
    model = made(kind, **parameters).fit(X, y, offset=constant)
    assert model.n_iter_ == plain.n_iter_
    moved = np.atleast_1d(constant[0])
    if kind == "three":  # scores mean the same but for a constant
        moved = moved - moved.mean()
        centred = [one.start_ - one.start_.mean() for one in (plain, model)]
        np.testing.assert_allclose(centred[1], centred[0] - moved, atol=1e-8)
    else:
        np.testing.assert_allclose(model.start_, plain.start_ - moved, atol=1e-8)
    np.testing.assert_allclose(model.trees_.value, plain.trees_.value, atol=1e-6)
    np.testing.assert_array_equal(model.trees_.feature, plain.trees_.feature)
    if kind != "three":
        expected = scores_of(plain, X)
        np.testing.assert_allclose(scores_of(model, X, constant), expected, atol=1e-6)
        np.testing.assert_allclose(scores_of(model, X), expected - 2.0, atol=1e-6)


def test_numbers_less_an_offset_are_numbers_beside_it():
    X, y, offset = rows_of("squared_error")
    X = X[:, :1]  # the order of several features hangs on the targets, which differ
    for parameters in ({}, {"quality": "best"}, {"subsample": 1.0}):
        options = {**SHORT, **parameters, "subsample": 1.0}
        plain = BoostedTreesRegressor(**options).fit(X, y - offset)
        model = BoostedTreesRegressor(**options).fit(X, y, offset=offset)
        said = model.predict(X, offset=offset)
        np.testing.assert_allclose(said, plain.predict(X) + offset, atol=1e-8)
        np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-8)


@pytest.mark.parametrize("loss", [PoissonLoss(), GammaLoss()], ids=lambda loss: loss.name)
def test_exposures_weigh_rates(loss):
    random = np.random.default_rng(0)
    y, e, scores = (
        random.gamma(1.0, size=50) + 0.1,
        random.gamma(2.0, size=50),
        random.normal(size=(1, 50)),
    )
    weight = e ** (2 - loss.power)
    beside = reference.compute_gradients(loss.name, 0.5, y, scores + np.log(e))
    rates = reference.compute_gradients(loss.name, 0.5, y / e, scores)
    for one, other, ours in zip(
        beside, rates, loss.compute_gradients(y, scores + np.log(e)), strict=True
    ):
        np.testing.assert_allclose(one, weight * other, rtol=1e-10)
        np.testing.assert_allclose(one, ours, rtol=1e-10)


@pytest.mark.parametrize("kind", ["poisson", "gamma"])
def test_a_fit_with_the_log_of_exposures_is_one_to_rates(kind):
    X, y, _ = rows_of(kind)
    X = X[:, :1]  # the order of several features hangs on the targets, which differ
    e = np.where(np.arange(len(y)) % 2, 0.5, 1.5)
    options = {**SHORT, "subsample": 1.0}
    beside = BoostedTreesRegressor(kind, **options).fit(X, y, offset=np.log(e))
    weight = e if kind == "poisson" else None
    rates = BoostedTreesRegressor(kind, **options).fit(X, y / e, sample_weight=weight)
    np.testing.assert_allclose(beside.predict(X), rates.predict(X), rtol=1e-8)
    said = beside.predict(X, offset=np.log(e))
    np.testing.assert_allclose(said, e * rates.predict(X), rtol=1e-8)


def test_exposures_are_worth_knowing():
    random = np.random.default_rng(0)
    X, e = random.normal(size=(4000, 3)), random.choice([0.1, 1.0, 4.0], 4000)
    rate = np.exp(0.7 * X[:, 0])
    y = random.poisson(rate * e)
    options = {"max_iter": 60, "random_state": 0}
    beside = BoostedTreesRegressor("poisson", **options).fit(X[::2], y[::2], offset=np.log(e[::2]))
    without = BoostedTreesRegressor("poisson", **options).fit(X[::2], y[::2])
    new, truth = X[1::2], rate[1::2]
    errors = [np.abs(np.log(one.predict(new) / truth)).mean() for one in (beside, without)]
    assert errors[0] < 0.12 < errors[1]


@pytest.mark.parametrize("kind", KINDS)
def test_neither_the_order_of_rows_nor_the_unit_of_weights_matters(kind):
    X, y, offset = rows_of(kind)
    X[150:], y[150:] = X[:150], y[:150]  # rows that only offsets tell apart
    order = np.random.default_rng(0).permutation(len(y))
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    for parameters in ({}, {"max_iter": "auto"}, {"early_stopping": True}):
        model = made(kind, **parameters)
        one = model.fit(X, y, offset=offset).predict(X, offset=offset)
        again = model.fit(X[order], y[order], offset=offset[order]).predict(X, offset=offset)
        np.testing.assert_array_equal(one, again)
        told = partial(scores_beside, model, X, y, offset)
        expect_no_unit(told, weight)
        turned = scores_beside(model, X[order], y[order], offset[order], weight[order])
        np.testing.assert_array_equal(told(weight)[order], turned)


def scores_beside(model, X, y, offset, weight):
    """Return the scores of a fit on its training rows."""
    return model.fit(X, y, weight, offset=offset).predict(X, offset=offset)


@pytest.mark.parametrize("kind", ["squared_error", "poisson", "two", "three"])
@pytest.mark.parametrize("stopped", [False, True])
def test_a_warm_start_is_one_longer_fit(kind, stopped):
    X, y, offset = rows_of(kind)
    judging = {"X_val": X[::3], "y_val": y[::3], "offset_val": offset[::3]} if stopped else {}
    rows = {"offset": offset, **judging}
    whole = made(kind, max_iter=15).fit(X, y, **rows)
    model = made(kind, max_iter=6, warm_start=True).fit(X, y, **rows)
    model.set_params(max_iter=15).fit(X, y, **rows)
    np.testing.assert_array_equal(whole.trees_.value, model.trees_.value)
    if stopped:
        np.testing.assert_array_equal(whole.validation_score_, model.validation_score_)
    with pytest.raises(
        ValueError,
        match=r"offset must be (None|given) with warm_start=True, as the previous fit",
    ):
        model.set_params(max_iter=20).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("quality", ["fast", "best"])
def test_validation_rows_have_offsets(kind, quality):
    X, y, offset = rows_of(kind)
    rows = {"X_val": X[200:], "y_val": y[200:], "offset_val": offset[200:]}
    model = made(kind, quality=quality, learning_rate=0.3)
    model.fit(X[:200], y[:200], offset=offset[:200], **rows)
    stages = model.staged_loss(X[200:], y[200:], offset=offset[200:])
    np.testing.assert_allclose(-model.validation_score_[1:], stages, rtol=1e-9)
    trained = model.staged_loss(X[:200], y[:200], offset=offset[:200])
    np.testing.assert_allclose(-model.train_score_[1:], trained, rtol=1e-9)


def test_scorers_get_scores_with_offsets():
    X, y, offset = rows_of("squared_error")
    model = made("squared_error", scoring="neg_mean_squared_error", early_stopping=True)
    model.fit(X[:200], y[:200], offset=offset[:200], X_val=X[200:], y_val=y[200:],
              offset_val=offset[200:])  # fmt: skip
    said = model.predict(X[200:], offset=offset[200:])
    best = model.validation_score_[model.n_iter_]
    assert -np.mean((said - y[200:]) ** 2) == pytest.approx(best)


def test_means_of_categories_take_offsets():
    random = np.random.default_rng(0)
    n = 1500
    level = random.integers(0, 100, n)
    X = pd.DataFrame(
        {"a": pd.Categorical([f"l{one}" for one in level]), "b": random.normal(size=n)}
    )
    e = np.where(random.random(n) < 0.5, 0.2, 5.0)
    y = random.poisson(e * np.exp(random.normal(size=100)[level]))
    options = {**SHORT, "subsample": 1.0}
    e /= e.mean()
    beside = BoostedTreesRegressor("poisson", **options).fit(X, y, offset=np.log(e))
    assert (np.diff(beside.trees_.category_start) > 0).any()
    rates = BoostedTreesRegressor("poisson", **options).fit(X, y / e, sample_weight=e)
    # Rows are dealt into folds by what they hold, weights included.
    together = np.corrcoef(np.log(beside.predict(X)), np.log(rates.predict(X)))[0, 1]
    assert together > 0.98


# -- predictions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_are_added_to_scores(kind, tmp_path):
    X, y, offset = rows_of(kind)
    model = made(kind).fit(X, y, offset=offset)
    np.testing.assert_allclose(
        scores_of(model, X, offset), scores_of(model, X) + offset, atol=1e-12
    )
    save(model, tmp_path / "model")
    loaded, again = load(tmp_path / "model"), pickle.loads(pickle.dumps(model))
    for one in (loaded, again):
        said = one.predict(X, offset=offset)
        np.testing.assert_array_equal(said, model.predict(X, offset=offset))
    stages = [*model.staged_predict(X, offset=offset)]
    np.testing.assert_array_equal(stages[-1], model.predict(X, offset=offset))
    np.testing.assert_array_equal(stages[4], model.predict(X, n_iter=5, offset=offset))
    one = model.predict(X[:1], offset=offset[:1])
    assert one == model.predict(X, offset=offset)[:1]
    with pytest.raises(ValueError, match="offset must be given with warm_start=True"):
        loaded.set_params(warm_start=True, max_iter=20).fit(X, y)


def test_probabilities_take_offsets():
    X, y, offset = rows_of("two")
    model = made("two").fit(X, y, offset=offset)
    shares = model.predict_proba(X, offset=offset)[:, 1]
    np.testing.assert_allclose(shares, expit(logit(model.predict_proba(X)[:, 1]) + offset))
    stages = [*model.staged_predict_proba(X, offset=offset)]
    np.testing.assert_array_equal(stages[-1][:, 1], shares)


def test_invalid_offsets_are_refused():
    X, y, offset = rows_of("poisson")
    model = made("poisson")
    wrong = [
        (offset[:-1], ValueError, r"offset must have shape \(300,\), got \(299,\)"),
        (offset[:, None], ValueError, r"offset must have shape \(300,\), got \(300, 1\)"),
        (offset + 301, ValueError, "offset must hold logarithms in -300 .. 300"),
        (np.where(offset > 0, np.nan, 0), ValueError, "offset must hold logarithms"),
        (["a"] * 300, ValueError, "offset must hold numbers"),
        (1.0, ValueError, "offset must have shape"),
    ]
    for given, kind, message in wrong:
        with pytest.raises(kind, match=message):
            model.fit(X, y, offset=given)
    assert not hasattr(model, "trees_")
    with pytest.raises(ValueError, match="must be given together, but offset_val is None"):
        model.fit(X, y, offset=offset, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="must be given together, but offset is None"):
        model.fit(X, y, X_val=X, y_val=y, offset_val=offset)
    model.fit(X, y, offset=offset)
    for given, kind, message in wrong:
        with pytest.raises(kind, match=message):
            model.predict(X, offset=given)
    X, y, offset = rows_of("three")
    with pytest.raises(ValueError, match=r"offset must have shape \(300, 3\), got \(300,\)"):
        made("three").fit(X, y, offset=offset[:, 0])
    with pytest.raises(ValueError, match="offset must be None if y has one class"):
        made("two").fit(X, np.zeros(300), offset=offset[:, 0])


@pytest.mark.parametrize(
    "model",
    [
        CertifiedBoostedTreesClassifier(quality="fast", max_iter=3),
        CertifiedBoostedTreesRegressor(quality="fast", max_iter=3),
    ],
)
def test_certified_models_take_no_offsets(model):
    X, y, offset = rows_of("two")
    model = clone(model).fit(X, y)
    with pytest.raises(ValueError, match="must be None for Certified"):
        model.predict(X, offset=offset)


def test_rows_of_weight_zero_take_their_offsets_along():
    X, y, offset = rows_of("poisson")
    weight = np.where(np.arange(300) % 3, 1.0, 0.0)
    strange = np.where(weight > 0, offset, 100.0)
    kept = weight > 0
    one = made("poisson").fit(X, y, weight, offset=strange)
    other = made("poisson").fit(X[kept], y[kept], offset=offset[kept])
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
