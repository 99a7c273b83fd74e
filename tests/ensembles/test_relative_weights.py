"""Weights of rows in ensembles: a row is one draw, only ratios count, and 0 is as if absent."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from certree.ensembles import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRanker,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
)
from weight_units import expect_no_unit

N = 240
SHORT = {"max_iter": 10, "random_state": 0}
STOPS = {"early_stopping": True, "max_iter": 40, "n_iter_no_change": 4, "random_state": 0}
FEW = {"n_estimators": 6, "random_state": 0}
OF_FOREST = {**FEW, "n_estimators": 40, "oob_score": True}
GENUINE = {"duplicates": "genuine"}

# Estimators, and the kind of their targets: a number of classes, or another word.
MODELS = {
    "boosted classes": (BoostedTreesClassifier(**SHORT), 2),
    "boosted three": (BoostedTreesClassifier(**SHORT), 3),
    "boosted rounds": (BoostedTreesClassifier(random_state=0), 2),
    "boosted stopping": (BoostedTreesClassifier(**STOPS), 3),
    "boosted best": (BoostedTreesClassifier(quality="best", **SHORT), 2),
    "boosted leaves": (BoostedTreesClassifier(min_samples_leaf=20, prunings="none", **SHORT), 2),
    "boosted balanced": (BoostedTreesClassifier(class_weight="balanced", **SHORT), 2),
    **{
        f"boosted {loss}": (BoostedTreesRegressor(loss, **SHORT), "numbers")
        for loss in (
            *("squared_error", "absolute_error", "huber", "quantile"),
            *("poisson", "gamma", "tweedie"),
        )
    },
    "boosted errors": (BoostedTreesRegressor(standard_errors=True, **SHORT), "numbers"),
    "boosted numbers' rounds": (BoostedTreesRegressor(random_state=0), "numbers"),
    "boosted columns": (BoostedTreesRegressor(**SHORT), "columns"),
    "ranker": (BoostedTreesRanker(**SHORT), "queries"),
    "ranker rounds": (BoostedTreesRanker(random_state=0), "queries"),
    "adaboost": (AdaBoostTreeClassifier(n_estimators=10), 2),
    "adaboost three": (AdaBoostTreeClassifier(n_estimators=10), 3),
    **{
        f"forest {leaves}": (TreeForestClassifier(leaves=leaves, **OF_FOREST), 3)
        for leaves in ("auto", "plain", "refilled", "shrunk", "honest")
    },
    "forest samples": (TreeForestClassifier(**FEW, max_samples=0.3, min_samples_leaf=5), 2),
    "forest numbers": (TreeForestRegressor(**OF_FOREST), "numbers"),
    "forest poisson": (TreeForestRegressor(criterion="poisson", **FEW), "numbers"),
    "forest columns": (TreeForestRegressor(**FEW), "columns"),
    "certified boosting": (CertifiedBoostedTreesClassifier(train_size=0.5, **SHORT, **GENUINE), 2),
    "certified boosting sizes": (CertifiedBoostedTreesClassifier(**SHORT, **GENUINE), 3),
    "certified boosting numbers": (CertifiedBoostedTreesRegressor(**SHORT), "numbers"),
    "certified forest": (CertifiedForestClassifier(**FEW, **GENUINE), 2),
    "certified forest three": (CertifiedForestClassifier(**FEW, **GENUINE), 3),
}
every_model = pytest.mark.parametrize("name", MODELS)


def rows(kind, n=N, seed=0):
    """Numbers, some of which are missing or often alike, and noisy targets; of queries, those."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    X[:, 1] = X[:, 1].round(1)
    X[:, 3] = random.integers(0, 4, n)
    score = X[:, 0] * X[:, 1] + X[:, 2] + random.normal(size=n)
    X[random.random(n) < 0.1, 2] = np.nan
    if kind == "columns":
        return X, np.column_stack([score, np.exp(X[:, 0])]), {}
    if kind == "queries":
        return X, np.digitize(score, [0.0, 1.0]).astype(float), {"qid": np.arange(n) // 6}
    if kind == "numbers":
        return X, np.exp(score / 2), {}
    return X, np.digitize(score, [0.0, 1.0][: kind - 1]), {}


def weights(kind, how, n=N, seed=1):
    """Whole ones, others, or such that one row weighs ten times as much as another."""
    random = np.random.default_rng(seed)
    weight = {
        "whole": random.integers(1, 5, n).astype(float),
        "real": random.uniform(0.5, 3.0, n),
        "ten": random.choice([1.0, 10.0], n, p=[0.8, 0.2]),
    }[how]
    return weight[np.arange(n) // 6] if kind == "queries" else weight


def told(model, X):
    """Return in one array what a fit predicts, out-of-bag predictions and certificates."""
    said = [model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)]
    if getattr(model, "standard_errors", False):
        said.append(model.predict_std(X))
    names = "oob_decision_function_", "oob_prediction_", "validation_score_", "estimator_weights_"
    said += [
        getattr(model, name) for name in (*names, "effective_sample_size_") if hasattr(model, name)
    ]
    said += [one.bound for one in getattr(model, "certificates_", ())]
    return np.concatenate([np.ravel(one) for one in said])


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("how", ["whole", "real", "ten"])
@every_model
def test_only_ratios_of_weights_count(name, how):
    model, kind = MODELS[name]
    X, y, about = rows(kind)
    expect_no_unit(
        lambda weight: told(clone(model).fit(X, y, weight, **about), X), weights(kind, how)
    )


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@every_model
def test_only_ratios_count_with_many_equal_rows_and_splits(name):
    model, kind = MODELS[name]
    for seed in (1, 3):
        X, y, about = rows(kind, seed=seed)
        X, weight = X.round(0), weights(kind, "whole", seed=seed)
        expect_no_unit(
            lambda one: told(clone(model).fit(X, y, one, **about), X),  # noqa: B023
            weight,
        )


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("power", [-900, 900])
@every_model
def test_weights_may_be_of_any_size(name, power):
    model, kind = MODELS[name]
    X, y, about = rows(kind)
    weight = weights(kind, "real")
    one, other = (
        clone(model).fit(X, y, given, **about) for given in (weight, np.ldexp(weight, power))
    )
    np.testing.assert_array_equal(told(one, X), told(other, X))


@pytest.mark.filterwarnings("ignore:sample_weight differs so much")
def test_rows_of_positive_weight_have_positive_relative_weights():
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    weight = np.where(np.arange(40) == 7, 1e200, 1e-200)
    # Folds without the heavy row have a mean of their own.
    model = BoostedTreesRegressor(random_state=0).fit(X, y, weight)
    assert model.predict(X[7:8]) == pytest.approx([7], rel=1e-6)


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@every_model
def test_equal_weights_are_none(name):
    model, kind = MODELS[name]
    X, y, about = rows(kind)
    one, other = (clone(model).fit(X, y, given, **about) for given in (None, np.full(N, 4.0)))
    np.testing.assert_allclose(told(one, X), told(other, X), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("how", ["whole", "real"])
@every_model
def test_rows_of_weight_zero_are_as_if_absent(name, how):
    model, kind = MODELS[name]
    X, y, about = rows(kind)
    weight = weights(kind, how)
    absent = np.arange(N) // 6 % 5 == 2
    X[absent, 0] = 1e6  # which would move edges of bins
    weight[absent] = 0
    there = ~absent
    of_there = {key: one[there] for key, one in about.items()}
    one = clone(model).fit(X, y, weight, **about)
    other = clone(model).fit(X[there], y[there], weight[there], **of_there)
    for fitted in (one, other):
        for key in ("oob_decision_function_", "oob_prediction_"):
            if len(getattr(fitted, key, ())) == N:
                assert np.isnan(getattr(fitted, key)[absent]).all()
                setattr(fitted, key, getattr(fitted, key)[there])
    np.testing.assert_array_equal(told(one, X), told(other, X))


# -- rows that weigh ten times as much -----------------------------------------------------------------


def noisy(n, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 5))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + random.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_row_of_integer_weight_stays_whole(early_stopping):
    X, y = noisy(600, 0)
    X_new, y_new = noisy(4000, 1)
    heavy = np.random.default_rng(2).random(600) < 0.3
    fits = []
    for weight in (10.0, 10.001):
        model = BoostedTreesClassifier(early_stopping=early_stopping, random_state=0)
        fits.append(model.fit(X, y, np.where(heavy, weight, 1.0)))
    n_rounds = [model.n_iter_ for model in fits]
    losses = [log_loss(y_new, model.predict_proba(X_new)) for model in fits]
    assert max(n_rounds) <= 2 * min(n_rounds)
    assert losses[0] < 1.05 * losses[1]
    assert losses[0] < 0.65
