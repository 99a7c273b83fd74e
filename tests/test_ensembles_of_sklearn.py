"""Estimators of certree inside scikit-learn's ensembles, on tables with categories.

What scikit-learn itself does not let through: bagging, `AdaBoostClassifier` and `passthrough=True` make
an array of objects of a data frame. Columns of strings are still told from
numbers by what they hold; categories that are numbers must be named by `categorical_features`.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    HistGradientBoostingClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)

from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)
from run_length import LONG

RNG = np.random.default_rng(0)
N = 240
NUMBERS, NAMES = RNG.normal(size=N), RNG.choice([*"abcdef"], N)
# No order of the letters tells the classes apart by one cut, and the numbers tell nothing.
SIGNAL = np.isin(NAMES, [*"ace"])
Y = np.where(SIGNAL ^ (RNG.random(N) < 0.1), "yes", "no")
TARGET = 2.0 * SIGNAL + RNG.normal(size=N) / 4

TABLES = {
    "numpy": np.column_stack([NUMBERS.astype(object), NAMES]),
    "pandas": pd.DataFrame({"x": NUMBERS, "name": pd.Categorical(NAMES)}),
    "pandas strings": pd.DataFrame({"x": NUMBERS, "name": NAMES}),
    "polars": pl.DataFrame({"x": NUMBERS, "name": pl.Series(NAMES, dtype=pl.Categorical)}),
    "polars strings": pl.DataFrame({"x": NUMBERS, "name": NAMES}),
}
every_table = pytest.mark.parametrize("name", TABLES if LONG else ["pandas", "polars strings"])

CLASSIFIERS = [
    AdaBoostTreeClassifier(n_estimators=3),
    BoostedTreesClassifier(max_iter=5, random_state=0),
    CertifiedTreeClassifier(random_state=0),
    NaiveBayesClassifier(),
    PACBayesTreeClassifier(cv=2, random_state=0),
    PrunedTreeClassifier(random_state=0),
]
REGRESSORS = [
    BoostedTreesRegressor(max_iter=30, random_state=0),
    CertifiedTreeRegressor(random_state=0),
    PACBayesTreeRegressor(cv=2, random_state=0),
    PrunedTreeRegressor(random_state=0),
]
every_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
every_regressor = pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)


@every_table
@every_classifier
@pytest.mark.parametrize(
    "around",
    [
        lambda one: StackingClassifier([("a", one), ("b", one)], cv=2),
        lambda one: StackingClassifier([("a", one)], one, cv=2, passthrough=True),
        lambda one: VotingClassifier([("a", one), ("b", one)], voting="soft"),
        lambda one: VotingClassifier([("a", one), ("b", one)], voting="hard"),
        lambda one: CalibratedClassifierCV(one, cv=2),
        lambda one: CalibratedClassifierCV(one, cv=2, ensemble=False),
        lambda one: BaggingClassifier(one, 3, random_state=0),
        lambda one: AdaBoostClassifier(one, n_estimators=2, random_state=0),
    ],
    ids=[
        "stack",
        "passthrough",
        "soft",
        "hard",
        "calibrated",
        "calibrated once",
        "bags",
        "boosts",
    ],
)
def test_classes_are_told_apart_by_categories(around, model, name):
    table = TABLES[name]
    ensemble = around(model).fit(table, Y)
    assert ensemble.score(table, Y) > 0.85
    assert set(ensemble.predict(table)) == {"yes", "no"}
    if hasattr(ensemble, "predict_proba"):
        shares = ensemble.predict_proba(table)
        assert shares.shape == (N, 2)
        np.testing.assert_allclose(shares.sum(axis=1), 1)


@every_table
@every_regressor
@pytest.mark.parametrize(
    "around",
    [
        lambda one: StackingRegressor([("a", one), ("b", one)], cv=2),
        lambda one: StackingRegressor([("a", one)], one, cv=2, passthrough=True),
        lambda one: VotingRegressor([("a", one), ("b", one)]),
        lambda one: BaggingRegressor(one, 3, random_state=0),
    ],
    ids=["stack", "passthrough", "vote", "bags"],
)
def test_numbers_are_predicted_by_categories(around, model, name):
    table = TABLES[name]
    ensemble = around(model).fit(table, TARGET)
    assert ensemble.score(table, TARGET) > 0.6
    assert np.isfinite(ensemble.predict(table)).all()


@every_classifier
def test_bags_are_judged_by_the_rows_that_they_miss(model):
    ensemble = BaggingClassifier(model, 40, oob_score=True, random_state=0)
    assert ensemble.fit(TABLES["pandas strings"], Y).oob_score_ > 0.8


@every_classifier
def test_bags_may_lack_categories_and_rows_may_have_others(model):
    words = np.where(np.arange(N) == 0, "rare", np.where(np.arange(N) % 9, None, NAMES))
    table = pd.DataFrame({"x": NUMBERS, "name": words})
    ensemble = BaggingClassifier(model, 5, max_samples=10, random_state=0).fit(table, Y)
    new = pd.DataFrame({"x": [0.0, 1.0, np.nan], "name": ["new", None, "rare"]})
    assert np.isfinite(ensemble.predict_proba(new)).all()


@every_classifier
def test_categories_that_are_numbers_are_named_inside_bags(model):
    place = {name: code for code, name in enumerate("abcdef")}
    codes = pd.Categorical([place[name] for name in NAMES])
    table = pd.DataFrame({"x": NUMBERS, "name": codes})
    named = type(model)(**{**model.get_params(deep=False), "categorical_features": [1]})
    ensemble = BaggingClassifier(named, 3, random_state=0).fit(table, Y)
    assert all(one.categories_.mask.tolist() == [False, True] for one in ensemble.estimators_)
    assert ensemble.score(table, Y) > 0.85


@pytest.mark.parametrize("name", ["numpy", "polars"])
@pytest.mark.parametrize(
    "learner",
    [
        NaiveBayesClassifier(),
        HistGradientBoostingClassifier(early_stopping=False, max_iter=3, max_leaf_nodes=3),
    ],
    ids=lambda one: type(one).__name__,
)
def test_adaboost_tells_its_learners_which_columns_are_categories(name, learner):
    table = TABLES[name]
    model = AdaBoostTreeClassifier(learner, n_estimators=2).fit(table, Y)
    for one in model.estimators_:
        assert np.array_equal(one.categorical_features, [False, True])
    assert model.score(table, Y) > 0.85


def test_columns_of_bags_and_of_features_drawn_keep_their_categories():
    names = {"name": NAMES, "x": NUMBERS, "other": NAMES[::-1]}
    ensemble = BaggingClassifier(
        PACBayesTreeClassifier(cv=2, random_state=0), 8, max_features=2, random_state=0
    ).fit(pd.DataFrame(names), Y)
    for one, features in zip(ensemble.estimators_, ensemble.estimators_features_, strict=True):
        assert one.categories_.mask.tolist() == [j != 1 for j in features]
    assert ensemble.score(pd.DataFrame(names), Y) > 0.8
