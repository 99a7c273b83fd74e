"""Means and priors have the names and the values that scikit-learn's naive Bayes gives them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from certree import NaiveBayesClassifier
from model_files import save_and_load


def test_means_and_priors_are_those_of_scikit_learn(tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[:120], y[:120]
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = NaiveBayesClassifier("normal").fit(X, y, weight)
    means = GaussianNB().fit(X, y, weight).theta_
    codes = CategoricalNB().fit(X.astype(int), y, weight)
    for one in (model, save_and_load(model, tmp_path / "model")):
        np.testing.assert_allclose(one.theta_, means, rtol=1e-12)
        np.testing.assert_allclose(one.class_log_prior_, codes.class_log_prior_, rtol=1e-12)


def test_categories_have_no_mean():
    X = pd.DataFrame({"town": ["a", "b"] * 20, "x": np.arange(40.0)})
    model = NaiveBayesClassifier().fit(X, np.arange(40) % 2)
    assert np.isnan(model.theta_[:, 0]).all()
    np.testing.assert_allclose(model.theta_[:, 1], [19, 20])


@pytest.mark.parametrize("name", ["theta_", "class_log_prior_"])
def test_an_unfitted_model_has_none(name):
    with pytest.raises(NotFittedError):
        getattr(NaiveBayesClassifier(), name)
