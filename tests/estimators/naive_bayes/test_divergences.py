"""What a feature says of the class: against sums over categories, and over a fine grid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.feature_selection import RFE

import reference
from certree import NaiveBayesClassifier, load, save
from certree.estimators.naive_bayes.densities import CategoricalTable, Normal
from certree.estimators.naive_bayes.divergences import compute_divergences


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6))
def test_divergences_of_tables_equal_the_literal_ones(seed, k, b):
    rng = np.random.default_rng(seed)
    table = CategoricalTable(rng.integers(0, 9, (k, b)).astype(float), 0.5)
    prior = rng.dirichlet(np.ones(k))
    found = prior @ compute_divergences(table, np.log(prior))
    assert found == pytest.approx(
        reference.compute_information(prior, np.exp(table.log_probability)), abs=1e-12
    )


@pytest.mark.parametrize("ratio", [1.0, 3.0, 50.0, 1e6])
@pytest.mark.parametrize("k", [2, 3])
def test_normals_say_what_a_fine_grid_says(k, ratio):
    density = Normal(np.arange(k) * 1.5, np.array([1.0, ratio, 0.3])[:k])
    prior = np.array([0.5, 0.3, 0.2])[:k] / sum([0.5, 0.3, 0.2][:k])
    steps = np.linspace(-8, 8, 4001)
    grid = np.unique(density.mean[:, None] + density.deviation[:, None] * steps)
    ends = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
    masses = np.diff(norm.cdf(ends, density.mean[:, None], density.deviation[:, None]), axis=1)
    found = prior @ compute_divergences(density, np.log(prior))
    assert found == pytest.approx(reference.compute_information(prior, masses), abs=2e-3)


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_normals_say_the_same_in_any_unit(unit):
    prior = np.log([0.4, 0.6])
    density = Normal(np.array([0.0, 2.0]), np.array([1.0, 0.5]))
    other = Normal(density.mean * unit, density.deviation * unit)
    np.testing.assert_allclose(
        compute_divergences(other, prior), compute_divergences(density, prior), rtol=1e-6
    )


def test_a_class_says_no_more_than_what_it_is():
    apart = Normal(np.array([0.0, 1e9]), np.ones(2))
    prior = np.array([0.25, 0.75])
    np.testing.assert_allclose(compute_divergences(apart, np.log(prior)), -np.log(prior), rtol=1e-9)
    alike = Normal(np.zeros(2), np.ones(2))
    assert np.abs(compute_divergences(alike, np.log(prior))).max() < 1e-12
    with np.errstate(divide="ignore"):
        assert compute_divergences(apart, np.log([0.0, 1.0])).tolist() == [0, 0]


@pytest.mark.parametrize("densities", ["auto", "normal", "histogram"])
def test_importances_are_fractions_of_the_mutual_information(densities, tmp_path):
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=len(X))])
    model = NaiveBayesClassifier(densities).fit(X, y)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert set(np.argsort(importances)[-2:]) == {2, 3}
    assert importances.argmin() == 4
    order = np.random.default_rng(1).permutation(len(y))
    other = NaiveBayesClassifier(densities).fit(X[order], y[order])
    np.testing.assert_allclose(other.feature_importances_, importances, rtol=1e-9)
    weight = np.random.default_rng(2).integers(1, 3, len(y))
    weighed = NaiveBayesClassifier(densities).fit(X, y, sample_weight=weight)
    times = NaiveBayesClassifier(densities).fit(X, y, sample_weight=3.7 * weight)
    np.testing.assert_allclose(weighed.feature_importances_, times.feature_importances_, rtol=1e-9)
    save(model, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").feature_importances_, importances)
    found = RFE(NaiveBayesClassifier(densities), n_features_to_select=2).fit(X, y)
    assert found.support_.tolist() == [False, False, True, True, False]


def test_values_that_are_often_missing_say_less():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    x = y + rng.normal(size=400)
    some = np.where(rng.random(400) < 0.8, np.nan, x)
    model = NaiveBayesClassifier("normal").fit(np.column_stack([x, some]), y)
    assert 0.1 < model.feature_importances_[1] < 0.3


def test_what_says_nothing_has_no_importance():
    model = NaiveBayesClassifier().fit(np.zeros((6, 2)), [0, 1] * 3)
    assert model.feature_importances_.tolist() == [0, 0]
    assert NaiveBayesClassifier().fit(np.zeros((6, 1)), [0] * 6).feature_importances_.tolist() == [
        0
    ]
