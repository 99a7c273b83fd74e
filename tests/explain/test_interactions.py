"""Shares of the variance against the enumeration of all cells, and what they are known to be."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_iris, make_friedman1

import certree.explain.interactions as module
import reference
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesRegressor,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.explain import Interactions, interaction_fractions
from certree.explain.additive_trees import AdditiveTrees
from certree.tree import Trees
from strategies import sum_leaves, trees


@st.composite
def models(draw, sets=True):
    """A few trees over three features, with rows of which some lack values."""
    p = 3
    n_outputs = draw(st.integers(1, 2))
    both = draw(st.booleans())
    made = []
    for _ in range(draw(st.integers(1, 2))):
        tree = draw(trees(max_inner=6, n_features=p, sets=sets))
        m = tree.n_nodes
        value = draw(hnp.arrays(np.float64, (m, n_outputs), elements=st.integers(-9, 9)))
        rows = sum_leaves(tree, draw(hnp.arrays(np.float64, m, elements=st.integers(0, 4))))
        made.append((replace(tree, missing_both=~tree.is_leaf & both), value, rows))
    X = draw(
        hnp.arrays(
            np.float64,
            (draw(st.integers(1, 5)), p),
            elements=st.one_of(st.integers(-1, 3).map(float), st.just(float("nan"))),
        )
    )
    joined = Trees.joined([tree.with_value(value) for tree, value, _ in made], p, n_outputs)
    rows = np.concatenate([own for _, _, own in made])
    summed = AdditiveTrees(joined, np.ones(n_outputs), rows, dict)
    return made, summed, X


def cells(X):
    """Values of features with their shares of the rows."""
    return [
        [(value, float(np.mean((x == value) | (np.isnan(x) & np.isnan(value))))) for value in found]
        for x, found in ((x, np.unique(x)) for x in X.T)
    ]


def expected(made, X):
    """Variance of each set of features, summed over the outputs."""
    total = {}
    for k in range(made[0][1].shape[1]):

        def says(x, k=k):
            return sum(
                part * value[leaf, k]
                for tree, value, rows in made
                for leaf, part in reference.find_fractional_leaves(tree, rows, x)
            )

        for features, variance in reference.analyse_variance(says, cells(X)).items():
            total[features] = total.get(features, 0.0) + variance
    return total


@given(models())
def test_shares_are_those_of_all_cells(model):
    made, summed, X = model
    # Names and codes are checked elsewhere: rows come as they are.
    found = module.compute_interactions(summed, X, ("a", "b", "c"), max_bins=None, n_threads=1)
    variances = expected(made, X)
    scale = max(1.0, sum(variances.values()))
    for j in range(3):
        assert found.single[j] == pytest.approx(variances[frozenset([j])], abs=1e-12 * scale)
    paired = {
        frozenset(pair): v for pair, v in zip(found.pairs.tolist(), found.paired, strict=True)
    }
    for pair in ({0, 1}, {0, 2}, {1, 2}):
        own = paired.get(frozenset(pair), 0.0)
        assert own == pytest.approx(variances[frozenset(pair)], abs=1e-12 * scale)
    assert found.higher == pytest.approx(variances[frozenset(range(3))], abs=1e-11 * scale)
    assert found.error == 0
    assert found.total == pytest.approx(sum(variances.values()), abs=1e-11 * scale)


def test_higher_orders_are_estimated_where_leaves_are_many(monkeypatch):
    X, y = make_friedman1(500, random_state=0)
    y = y + 10 * (X[:, 5] > 0.5) * (X[:, 6] > 0.5) * (X[:, 7] > 0.5)
    model = TreeForestRegressor(10, max_depth=6, random_state=0).fit(X, y)
    exact = interaction_fractions(model, X)
    monkeypatch.setattr(module, "MAX_EXACT_LEAVES", 0)
    for seed in range(5):
        estimated = interaction_fractions(model, X, random_state=seed)
        assert np.array_equal(estimated.single, exact.single)
        assert np.array_equal(estimated.paired, exact.paired)
        assert 0 < estimated.error < exact.higher / 5
        assert abs(estimated.higher - exact.higher) < 4 * estimated.error
    assert exact.error == 0
    model.set_params(n_jobs=3)
    again = interaction_fractions(model, X, random_state=4)
    assert again.higher == estimated.higher
    assert np.array_equal(again.paired, estimated.paired)


def test_bins_hardly_change_shares():
    X, y = make_friedman1(2000, random_state=0)
    model = TreeForestRegressor(20, max_depth=6, random_state=0).fit(X, y)
    fine, coarse = (interaction_fractions(model, X, max_bins=m) for m in (None, 32))
    assert np.abs(fine.matrix() - coarse.matrix()).max() < 0.01
    assert fine.pairs[fine.paired.argmax()].tolist() == [0, 1]


@pytest.mark.parametrize(
    "model",
    [
        PACBayesTreeClassifier(random_state=0),
        TreeForestClassifier(5, random_state=0),
        BoostedTreesRegressor(max_iter=5, random_state=0),
        AdaBoostTreeClassifier(n_estimators=10),
    ],
    ids=str,
)
def test_all_models_have_shares(model):
    X, y = load_iris(return_X_y=True)
    found = interaction_fractions(model.fit(X, y), X)
    shares = found.matrix()
    total = np.trace(shares) + shares[np.triu_indices(4, 1)].sum() + found.higher / found.total
    assert total == pytest.approx(1.0, abs=1e-9)
    assert found.total > 0
    if isinstance(model, AdaBoostTreeClassifier):  # stumps
        assert not len(found.pairs)
        assert found.higher == pytest.approx(0.0, abs=1e-12)


def test_shares_as_words_and_frames():
    found = Interactions(
        np.array([3.0, 0.0, 1.0]), np.array([[0, 2], [1, 2]]), np.array([0.0, 4.0]), 2.0, 0.1, "abc"
    )
    assert found.total == 10
    assert np.array_equal(found.matrix(), [[0.3, 0, 0], [0, 0, 0.4], [0, 0.4, 0.1]])
    assert str(found).splitlines() == [
        "                        share of the variance, 10",
        "b & c                                       40.0%",
        "a                                           30.0%",
        "c                                           10.0%",
        "three features or more             20.0% +- 1.00%",
    ]
    assert found._repr_html_().count("<tr>") == 5
    frame = found.to_frame()
    assert frame["share"].tolist() == [0.4, 0.3, 0.1, 0.0, 0.0, 0.2]
    assert frame["feature"].tolist()[:2] == ["b", "a"]
    assert frame["other"].isna().tolist() == [False, True, True, True, False, True]
    nothing = Interactions(np.zeros(2), np.zeros((0, 2), int), np.zeros(0), 0.0, 0.0, "ab")
    assert "0.0%" in str(nothing)
    assert not nothing.matrix().any()


def test_what_has_no_shares():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="model must be a tree"):
        interaction_fractions(NaiveBayesClassifier().fit(X, y), X)
    model = TreeForestClassifier(3).fit(X, y)
    with pytest.raises(ValueError, match="max_bins must be at least 2"):
        interaction_fractions(model, X, max_bins=1)
    with pytest.raises(ValueError, match="n_draws must be at least 2"):
        interaction_fractions(model, X, n_draws=0)
    with pytest.raises(ValueError, match="0 sample"):
        interaction_fractions(model, X[:0])
