"""Smaller copies of trees: what they predict, and what they leave out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import NotFittedError

import certree
import reference
from certree import (
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    Voting,
)
from certree.estimators.compact import compact_tree
from certree.tree import LEAF
from strategies import trees_and_stats


@given(
    trees_and_stats(),
    st.floats(0, 3),
    st.sampled_from([0.0, 0.01, 0.05, 0.3, 1.0]),
    st.sampled_from([Voting("mean", 1.0), Voting("majority")]),
)
def test_the_smaller_tree_is_the_literal_one(
    tree_and_stats, inverse_temperature, tolerance, voting
):
    tree, stats = tree_and_stats
    weights = certree.pac_bayes(tree, stats, inverse_temperature, 0.0)
    node_predictions = voting.ballots(tree, stats)
    values = (
        np.eye(stats.n_classes)[node_predictions.label]
        if node_predictions.values is None
        else node_predictions.values
    )
    smaller, kept, posterior, ballot = compact_tree(tree, stats, weights, voting, tolerance)
    # Where a change is the tolerance itself, rounding decides.
    near = [
        reference.compact_leaves(tree, weights.weight, values, tolerance + slack)
        for slack in (-1e-9, 1e-9)
    ]
    if near[0].keys() != near[1].keys():
        return
    leaves = smaller.left == LEAF
    expected = near[1]
    assert leaves.sum() == len(expected)
    order = sorted(expected)
    np.testing.assert_allclose(ballot.score[leaves], [expected[v] for v in order], atol=1e-12)
    np.testing.assert_array_equal(kept.counts[leaves], stats.counts[order])
    assert (smaller.chain[leaves] == 1).all()
    for leaf in np.flatnonzero(leaves):
        assert posterior.weight[reference.find_path(smaller, leaf)].sum() == pytest.approx(1)
    np.testing.assert_allclose(
        posterior.weight,
        certree.weights.reached(smaller, posterior) * expit(-posterior.log_odds),
        atol=1e-12,
    )


@pytest.mark.parametrize("vote", ["mean", "majority"])
@pytest.mark.parametrize("grower", ["cart", "kd", "dyadic"])
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.4])
def test_no_probability_changes_by_more_than_the_tolerance(grower, vote, tolerance):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :6]
    model = PACBayesTreeClassifier(grower, vote=vote, random_state=0).fit(X[::2], y[::2])
    smaller = model.compact(tolerance)
    rows = np.concatenate([X, np.random.default_rng(0).normal(0, 50, (500, 6))])
    change = np.abs(model.predict_proba(rows) - smaller.predict_proba(rows))
    assert change.max() <= tolerance + 1e-9
    assert smaller.get_n_leaves() <= model.get_n_leaves()
    assert smaller.get_n_leaves() < model.get_n_leaves() or tolerance < 0.4
    np.testing.assert_array_equal(
        smaller.classes_[smaller.predict_proba(rows).argmax(1)], smaller.predict(rows)
    )


def test_numbers_change_by_standard_deviations_of_the_target():
    X, y = load_diabetes(return_X_y=True)
    model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    smaller = model.compact(0.05)
    change = np.abs(model.predict(X) - smaller.predict(X)).max()
    assert 0 < change <= 0.05 * y.std() * (1 + 1e-9)
    assert smaller.get_n_leaves() < model.get_n_leaves() / 2
    assert smaller.predict_std(X).shape == (len(X), 2)


def test_everything_is_one_leaf_if_all_may_change():
    X, y = load_breast_cancer(return_X_y=True)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y).compact(1.0)
    assert model.get_n_leaves() == 1
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], np.bincount(y) / len(y), atol=1e-3)


def test_copies_keep_monotonic_constraints():
    rng = np.random.default_rng(0)
    X = rng.random((600, 2))
    y = (X[:, 0] + rng.normal(0, 0.4, 600) > 0.5).astype(int)
    model = PACBayesTreeClassifier(monotonic_cst=[1, 0], random_state=0).fit(X, y).compact(0.05)
    rising = np.column_stack([np.linspace(0, 1, 200), np.full(200, 0.3)])
    assert (np.diff(model.predict_proba(rising)[:, 1]) >= -1e-12).all()


def test_a_copy_is_a_model_of_its_own(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = HelmboldSchapireTreeClassifier(random_state=0).fit(X, y)
    before = model.get_n_leaves()
    smaller = model.compact(0.2)
    assert model.get_n_leaves() == before > smaller.get_n_leaves()
    assert smaller.get_params() == model.get_params()
    certree.save(smaller, tmp_path / "model")
    again = certree.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), smaller.predict_proba(X))
    assert sum(cell.share for cell in smaller.path(X[0])) == pytest.approx(1)
    assert smaller.compact(0.2).get_n_leaves() <= smaller.get_n_leaves()
    with pytest.raises(ValueError, match="rows"):
        certree.certify(smaller, X, y)
    assert smaller.fit(X, y).get_n_leaves() == before


@pytest.mark.parametrize("tolerance", [-0.1, np.nan, np.inf, "0.1", None])
def test_tolerances_are_numbers_from_0_on(tolerance):
    X, y = load_breast_cancer(return_X_y=True)
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises((TypeError, ValueError), match="tolerance must be"):
        model.compact(tolerance)


def test_only_fitted_votes_have_copies():
    with pytest.raises(NotFittedError):
        clone(PACBayesTreeClassifier()).compact()
    assert not hasattr(PrunedTreeClassifier(), "compact")
    assert not hasattr(certree.CertifiedTreeClassifier(), "compact")
