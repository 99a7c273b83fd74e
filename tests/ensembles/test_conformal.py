"""Conformal prediction intervals: their guarantee, and what users rely on."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE
from sklearn.utils.estimator_checks import parametrize_with_checks

from certree import BoostedTreesRegressor
from certree.ensembles import ConformalBandRegressor

FAST = BoostedTreesRegressor("quantile", max_iter=5, random_state=0)


class Flat(RegressorMixin, BaseEstimator):
    """Predicts a quantile of the first rows of the target, whatever the row."""

    def __init__(self, quantile=0.5, rows=20):
        self.quantile, self.rows = quantile, rows

    def fit(self, X, y):  # noqa: ARG002
        self.value_ = np.quantile(y[: self.rows], self.quantile)
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


@parametrize_with_checks(
    [ConformalBandRegressor(BoostedTreesRegressor("quantile", max_iter=60, random_state=0))]
)
@pytest.mark.filterwarnings("ignore:.*intervals are infinite")
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_margin_is_that_of_the_definition():
    X, y = load_diabetes(return_X_y=True)
    for coverage, delta in ((0.8, None), (0.9, None), (0.9, 0.1), (0.5, 0.01)):
        model = ConformalBandRegressor(FAST, coverage=coverage, delta=delta, random_state=3)
        model.fit(X, y)
        n = model.n_calibration_
        assert n == round(len(y) - (1 - 0.25) * len(y))
        order = np.random.RandomState(3).permutation(len(y))
        apart = np.sort(order[len(y) - n :])
        low, _, high = (one.predict(X[apart]) for one in model.estimators_)
        beyond = sorted(max(a - t, t - b) for a, b, t in zip(low, high, y[apart], strict=True))
        if delta is None:
            place = math.ceil((n + 1) * coverage)
        else:  # the first whose row count lies below it with probability 1 - delta
            place = next(k for k in range(1, n + 2) if binom.cdf(k - 1, n, coverage) >= 1 - delta)
        assert model.margin_ == beyond[place - 1]
        inside = np.column_stack([low - model.margin_, high + model.margin_])
        np.testing.assert_array_equal(model.predict_interval(X[apart]), inside)
        assert [one.quantile for one in model.estimators_] == pytest.approx(
            [(1 - coverage) / 2, 0.5, (1 + coverage) / 2]
        )


@pytest.mark.parametrize("delta", [None, 0.2])
def test_intervals_keep_their_guarantee(delta):
    random = np.random.default_rng(0)
    shares = []
    for seed in range(400):
        y = random.standard_t(2, 160)
        model = ConformalBandRegressor(
            Flat(), coverage=0.8, delta=delta, calibration_size=0.5, random_state=seed
        )
        low, high = model.fit(y[:, None] * 0, y).predict_interval([[0.0]])[0]
        shares.append(((new := random.standard_t(2, 4000)) >= low).mean() - (new > high).mean())
    if delta is None:
        # On average at least .8, and at most one place of 81 more; three standard errors.
        error = 3 * np.std(shares) / 20
        assert 0.8 - error < np.mean(shares) < 0.8 + 1 / 81 + error
    else:
        missed = np.mean(np.array(shares) < 0.8)
        # At most .2, and not by much less; what 400 fits leave open.
        assert 0.08 < missed < 0.2 + 3 * math.sqrt(0.2 * 0.8 / 400)


def test_bands_follow_the_noise():
    random = np.random.default_rng(0)
    X = random.random((1500, 2))
    y = np.sin(6 * X[:, 0]) + random.normal(size=1500) * (0.05 + X[:, 1])
    quantiles = BoostedTreesRegressor("quantile", max_iter=300, random_state=0)
    model = ConformalBandRegressor(quantiles, random_state=0).fit(X[:1000], y[:1000])
    band = model.predict_interval(X[1000:])
    inside = (band[:, 0] <= y[1000:]) & (y[1000:] <= band[:, 1])
    assert 0.84 < inside.mean() < 0.96
    width = np.diff(band, axis=1)[:, 0]
    wide = X[1000:, 1] > 0.5
    assert width[wide].mean() > 1.4 * width[~wide].mean()
    assert abs(model.predict(X[1000:]) - np.sin(6 * X[1000:, 0])).mean() < 0.3


def test_other_regressors_and_frames_serve():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.assign(group=pd.Categorical(np.where(X["age"] > 0, "old", "young")))
    model = ConformalBandRegressor(FAST, random_state=0).fit(X, y)
    assert model.feature_names_in_.tolist() == [*X.columns]
    assert np.isfinite(model.predict_interval(X)).all()
    numbers = X.drop(columns="group")
    peer = HistGradientBoostingRegressor(loss="quantile", quantile=0.5, max_iter=5)
    assert ConformalBandRegressor(peer).fit(numbers, y).predict_interval(numbers).shape == (442, 2)


def test_the_same_state_gives_the_same_bands():
    X, y = load_diabetes(return_X_y=True)
    model = ConformalBandRegressor(FAST.set_params(random_state=None), random_state=1)
    first, second = (clone(model).fit(X, y).predict_interval(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_few_calibration_rows_give_infinite_intervals():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(
        UserWarning, match=r"coverage=0\.9 with delta=.* needs more than 5 calibration rows"
    ):
        model = ConformalBandRegressor(FAST, random_state=0).fit(X[:20], y[:20])
    assert model.predict_interval(X[:2]).tolist() == [[-np.inf, np.inf]] * 2


def test_bad_input_says_what_was_expected():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(NotFittedError):
        ConformalBandRegressor().predict_interval(X)
    for settings, message in (
        ({"coverage": 1.0}, "The 'coverage' parameter"),
        ({"delta": 0}, "The 'delta' parameter"),
        ({"calibration_size": 1}, "The 'calibration_size' parameter"),
        ({"estimator": "trees"}, "The 'estimator' parameter"),
        ({"estimator": BoostedTreesRegressor()}, 'must be None unless loss="quantile"'),
    ):
        with pytest.raises(ValueError, match=message):
            ConformalBandRegressor(**settings).fit(X, y)
    model = ConformalBandRegressor(FAST, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict_interval(X[:, :3])


def test_importances_are_the_mean_of_those_of_the_quantiles():
    X, y = load_diabetes(return_X_y=True)
    model = ConformalBandRegressor(FAST, random_state=0)
    with pytest.raises(NotFittedError):
        _ = model.feature_importances_
    model.fit(X, y)
    expected = np.mean([one.feature_importances_ for one in model.estimators_], axis=0)
    np.testing.assert_array_equal(model.feature_importances_, expected)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert RFE(clone(model), n_features_to_select=3).fit(X, y).support_[[2, 8]].all()
    assert not hasattr(
        ConformalBandRegressor(Flat(), random_state=0).fit(X, y), "feature_importances_"
    )
