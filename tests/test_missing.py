"""Rows that lack values which no row of the fit lacked: they go both ways."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.metrics import log_loss

import certree
import reference
from certree import (
    Cart,
    CertifiedTreeClassifier,
    DecoratedTreeClassifier,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)
from strategies import trees

VALUES = st.one_of(st.integers(-3, 4).map(float), st.just(np.nan))
CANCER, KIND = load_breast_cancer(return_X_y=True)
CLASSIFIERS = [PACBayesTreeClassifier, HelmboldSchapireTreeClassifier, PrunedTreeClassifier]


@pytest.mark.threads
@given(trees(sets=True), st.data(), st.sampled_from([np.float32, np.float64]))
def test_rows_are_blended_like_the_literal_ones(tree, data, dtype):
    X = data.draw(hnp.arrays(np.float64, (5, tree.n_features), elements=VALUES)).astype(dtype)
    both = data.draw(hnp.arrays(np.bool_, tree.n_nodes)) & ~tree.is_leaf
    tree = replace(tree, missing_both=both)
    rows = data.draw(hnp.arrays(np.float64, tree.n_nodes, elements=st.integers(0, 9)))
    score = data.draw(hnp.arrays(np.float64, (tree.n_nodes, 2), elements=st.integers(-9, 9)))
    expected = [
        sum(
            (part * score[leaf] for leaf, part in reference.find_fractional_leaves(tree, rows, x)),
            0.0,
        )
        for x in X
    ]
    for n_threads in (1, 3):
        found = tree.blend(X, rows, score, n_threads)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@given(trees(sets=True), st.data())
def test_cells_know_which_values_their_rows_lack(tree, data):
    shape = data.draw(st.integers(0, 6)), tree.n_features
    X = data.draw(hnp.arrays(np.float64, shape, elements=VALUES))
    expected = ~reference.find_nodes_with_missing(tree, X) & ~tree.is_leaf
    np.testing.assert_array_equal(tree.learn_missing(X).missing_both, expected)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_shares_are_those_of_the_leaves_that_a_row_may_belong_to(estimator):
    model = estimator(random_state=0).fit(CANCER, KIND)
    assert (model.tree_.missing_both == ~model.tree_.is_leaf).all()
    X = CANCER[:40].copy()
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    X[0] = np.nan
    shares = model.predict_proba(X)
    for x, share in zip(X, shares, strict=True):
        parts = reference.find_fractional_leaves(model.tree_, model.stats_.n, x)
        expected = sum(part * model.vote_.score[leaf] for leaf, part in parts)
        np.testing.assert_allclose(share, expected / expected.sum(), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[shares.argmax(axis=1)])
    # A row without any value has the average of all leaves.
    leaves = model.tree_.is_leaf
    average = model.stats_.n[leaves] @ model.vote_.score[leaves] / len(CANCER)
    np.testing.assert_allclose(shares[0], average, atol=1e-9)


@pytest.mark.parametrize("estimator", [PACBayesTreeRegressor, PrunedTreeRegressor])
def test_numbers_are_averages_and_their_spread_is_that_of_both_sides(estimator):
    X, y = load_diabetes(return_X_y=True)
    model = estimator(random_state=0).fit(X, y)
    holes = X[:30].copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.4] = np.nan
    whole = model.predict_std(X) ** 2
    leaf = model.apply(X)
    spread = model.predict_std(holes) ** 2
    for x, mean, (between, within) in zip(holes, model.predict(holes), spread, strict=True):
        parts = reference.find_fractional_leaves(model.tree_, model.stats_.n, x)
        nodes, part = (np.array(column) for column in zip(*parts, strict=True))
        values = model.vote_.score[nodes, 0]
        assert mean == pytest.approx(part @ values)
        inside = np.array([whole[np.flatnonzero(leaf == node)[0]] for node in nodes])
        assert within == pytest.approx(part @ inside[:, 1])
        expected = part @ (inside[:, 0] + (values - mean) ** 2)
        assert between == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_last_bits_of_huge_targets_have_no_square_that_overflows():
    # The mean of three is another number by its last bit, which is 2e292.
    X, y = np.zeros((3, 1)), np.full(3, 1.7e308)
    model = PrunedTreeRegressor(alpha=0.0, cv=2).fit(X, y)
    assert model.vote_.score[0, 0] != model.stats_.mean[0]
    assert model.predict_std([[0.0], [np.nan]]).max() <= 2e292


def test_values_that_rows_of_the_fit_lack_have_a_side():
    X = CANCER.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    model = PACBayesTreeClassifier(random_state=0).fit(X, KIND)
    tree = model.tree_
    np.testing.assert_array_equal(
        tree.missing_both, ~reference.find_nodes_with_missing(tree, X) & ~tree.is_leaf
    )
    assert not tree.missing_both[0]
    np.testing.assert_allclose(
        model.predict_proba(X), model.vote_.score[model.apply(X)], atol=1e-12
    )


def test_going_both_ways_predicts_better_than_the_larger_child():
    X, y = load_digits(return_X_y=True)
    model = PACBayesTreeClassifier(random_state=0).fit(X[:900], y[:900])
    one_way = PACBayesTreeClassifier(random_state=0).fit(X[:900], y[:900])
    one_way.tree_ = replace(one_way.tree_, missing_both=None)
    losses = []
    for feature in np.argsort(-model.feature_importances_)[:3]:
        holes = X[900:].copy()
        holes[:, feature] = np.nan
        losses.append([log_loss(y[900:], one.predict_proba(holes)) for one in (model, one_way)])
    both, one = np.mean(losses, axis=0)
    assert both < 0.9 * one


def test_missing_values_go_both_ways_and_unseen_categories_to_the_larger_child():
    frame = pd.DataFrame({"city": pd.Categorical(["Athens", "Bern", "Cairo"] * 40)})
    y = (frame["city"] == "Bern").to_numpy().astype(int)
    model = PACBayesTreeClassifier(random_state=0).fit(frame, y)
    shares = model.predict_proba(pd.DataFrame({"city": ["Delhi", None, "Athens"]}))
    np.testing.assert_allclose(shares[1], [2 / 3, 1 / 3], atol=0.02)
    np.testing.assert_array_equal(shares[0], shares[2])


def test_copies_and_files_keep_the_ways(tmp_path):
    model = PACBayesTreeClassifier(Cart(min_samples_split=40), random_state=0).fit(CANCER, KIND)
    X = np.where(np.random.default_rng(0).random(CANCER.shape) < 0.3, np.nan, CANCER)
    certree.save(model, tmp_path / "model")
    again = certree.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    small = model.compact(0.2)
    assert small.get_n_leaves() < model.get_n_leaves()
    assert small.tree_.missing_both.any()


@pytest.mark.parametrize("factor", [1.0, 3.7])
def test_the_unit_of_weights_and_shuffled_rows_change_no_way(factor):
    rng = np.random.default_rng(0)
    weight, order = rng.integers(0, 3, len(KIND)), rng.permutation(len(KIND))
    X = np.where(np.random.default_rng(1).random(CANCER.shape) < 0.2, np.nan, CANCER)
    one = PACBayesTreeClassifier(random_state=0).fit(CANCER, KIND, weight)
    other = PACBayesTreeClassifier(random_state=0)
    other.fit(CANCER[order], KIND[order], factor * weight[order])
    np.testing.assert_array_equal(one.tree_.missing_both, other.tree_.missing_both)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("estimator", [CertifiedTreeClassifier, DecoratedTreeClassifier])
def test_what_certificates_and_models_in_leaves_speak_of_is_one_leaf(estimator):
    model = estimator(random_state=0).fit(CANCER, KIND)
    assert not model.tree_.missing_both.any()
