"""The greedy grower against every cut that there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import certree
import reference
from certree import grow_cart
from strategies import rows

CRITERIA = ["gini", "entropy", "misclassification", "squared"]


def cells(tree, X):
    """Rows of every node."""
    inside = {0: np.arange(len(X))}
    for v in range(tree.n_nodes):
        if tree.left[v] < 0:
            continue
        x = X[inside[v], tree.feature[v]]
        left = np.where(np.isnan(x), tree.missing_left[v], x <= tree.threshold[v])
        inside[int(tree.left[v])] = inside[v][left]
        inside[int(tree.left[v]) + 1] = inside[v][~left]
    return inside


@given(rows(max_rows=20), st.sampled_from(CRITERIA), st.booleans())
def test_every_cut_is_the_best_of_all_cuts(X_y, criterion, weighted):
    X, y = X_y
    X = np.where(abs(X) > 1e200, 17.0, X)
    weight = np.random.default_rng(len(X)).integers(1, 4, len(X)).astype(float)
    weight = weight if weighted else np.ones(len(X))
    response = y * 1.5 if criterion == "squared" else y
    tree = grow_cart(X, response, criterion=criterion, sample_weight=weight)
    for v, inside in cells(tree, X).items():
        cuts = list(reference.cart_cuts(X[inside], response[inside], weight[inside], criterion))
        if tree.left[v] < 0:
            assert not cuts or len(set(response[inside])) == 1 or weight[inside].sum() <= 1
            continue
        best = max(cut[0] for cut in cuts)
        tied = [cut for cut in cuts if cut[0] >= best - 1e-9 * (1 + abs(best))]
        made = next(
            cut
            for cut in cuts
            if cut[1:3] == (tree.feature[v], tree.threshold[v])
            and (cut[3] == tree.missing_left[v] or not np.isnan(X[inside, cut[1]]).any())
        )
        assert made[0] >= best - 1e-9 * (1 + abs(best))
        if criterion in ("gini", "misclassification") and not weighted:
            # Exact counts: of equal cuts that of the first feature, and there of the first sweep.
            assert made[1] == min(cut[1] for cut in tied)


@given(rows(), st.sampled_from(CRITERIA))
def test_full_growth_separates_all_that_can_be_separated(X_y, criterion):
    X, y = X_y
    tree = grow_cart(X, y.astype(float) if criterion == "squared" else y, criterion=criterion)
    assert tree.n_nodes <= 2 * len(X) - 1
    stats = certree.count(tree, X, y, 3)
    comparable = np.where(np.isnan(X), np.inf, X)
    _, group = np.unique(comparable, axis=0, return_inverse=True)
    table = np.zeros((group.max() + 1, 3))
    np.add.at(table, (group.ravel(), y), 1)
    assert stats.errors[tree.is_leaf].sum() == (table.sum(axis=1) - table.max(axis=1)).sum()


@given(rows(), st.integers(0, 50))
def test_row_order_and_copies_do_not_matter(X_y, seed):
    X, y = X_y
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, len(X))
    order = rng.permutation(weight.sum())
    a = grow_cart(X, y, sample_weight=weight)
    b = grow_cart(np.repeat(X, weight, 0)[order], np.repeat(y, weight)[order])
    for name in ("feature", "threshold", "left", "missing_left"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_threads_do_not_change_a_bit(criterion):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40_000, 4)).round(3)
    X[rng.random(X.shape) < 0.02] = np.nan
    y = rng.integers(0, 3, 40_000)
    response = rng.normal(size=40_000) if criterion == "squared" else y
    a = grow_cart(X, response, criterion=criterion)
    b = grow_cart(X, response, criterion=criterion, n_jobs=2)
    for name in ("feature", "threshold", "left", "missing_left"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_large_trees_are_those_of_scikit_learn_up_to_ties():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + X[:, 2]
    for criterion in ("gini", "entropy"):
        y = (signal + rng.normal(size=len(X)) > 0).astype(int)
        theirs = DecisionTreeClassifier(criterion=criterion, max_depth=7).fit(X, y)
        tree = grow_cart(X, y, criterion=criterion, max_depth=7)
        labels = certree.count(tree, X, y, 2).label[tree.apply(X)]
        assert np.mean(labels == theirs.predict(X)) > 0.999
    target = signal + rng.normal(size=len(X))
    theirs = DecisionTreeRegressor(max_depth=6).fit(X, target)
    tree = grow_cart(X, target, criterion="squared", max_depth=6)
    pairs = set(zip(tree.apply(X), theirs.apply(X), strict=True))
    assert len(pairs) == tree.n_leaves == theirs.get_n_leaves()


def test_worked_examples_of_split_losses():
    X, y = np.array([[1.0], [2], [5], [7]]), np.array([7.0, 6, 8, 3])
    losses = {
        cut: reference.impurity(y[left], np.ones(left.sum()), "squared")
        + reference.impurity(y[~left], np.ones((~left).sum()), "squared")
        for _, _, cut, _, left in reference.cart_cuts(X, y, np.ones(4), "squared")
    }
    assert list(losses.values()) == pytest.approx([12.667, 13, 2], abs=1e-3)
    tree = grow_cart(X, y, criterion="squared", max_depth=1)
    assert tree.threshold[0] == 6.0
    # Eight points, seven of one class: before, and after a cut in the middle.
    y = np.array([0, 0, 0, 0, 0, 0, 0, 1])
    expected = {
        "entropy": (0.544, 0.406),
        "gini": (0.219, 0.1875),
        "misclassification": (0.125,) * 2,
    }
    for criterion, (before, after) in expected.items():
        unit = np.log(2) if criterion == "entropy" else 1
        halves = [reference.impurity(y[h], np.ones(4), criterion) for h in (slice(4), slice(4, 8))]
        assert reference.impurity(y, np.ones(8), criterion) / 8 / unit == pytest.approx(
            before, abs=1e-3
        )
        assert sum(halves) / 8 / unit == pytest.approx(after, abs=1e-3)


def test_missing_values_take_the_side_they_belong_to():
    X = np.array([[0.0], [1], [2], [3], [np.nan], [np.nan]])
    tree = grow_cart(X, [0, 0, 1, 1, 0, 0])
    assert tree.n_leaves == 2
    assert tree.missing_left[0]
    tree = grow_cart(X, [0, 0, 1, 1, 1, 1])
    assert tree.n_leaves == 2
    assert not tree.missing_left[0]
    apart = grow_cart(X, [0, 0, 0, 0, 1, 1])
    assert apart.apply(X).tolist() == [1, 1, 1, 1, 2, 2]


def test_values_missing_at_prediction_only_go_to_the_larger_side():
    X = np.arange(5.0)[:, None]
    assert grow_cart(X, [0, 0, 0, 1, 1]).apply([[np.nan]]) == 1
    assert grow_cart(X, [0, 0, 1, 1, 1]).apply([[np.nan]]) == 2


def test_of_equal_cuts_of_a_feature_the_lowest_is_made():
    X = np.array([[0.0], [1], [2], [3]])
    for criterion in ("gini", "entropy", "misclassification"):
        assert grow_cart(X, [0, 1, 1, 0], criterion=criterion).threshold[0] == 0.5
    assert grow_cart(X, [0.0, 1, 1, 0], criterion="squared").threshold[0] == 0.5


def test_min_gain_stops_cuts_that_gain_less():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    tree = grow_cart(X, y, min_gain=0.8)
    counts = certree.count(tree, X, y, 2).counts
    gini = counts.sum(1) - (counts**2).sum(1) / counts.sum(1)
    inner = np.flatnonzero(~tree.is_leaf)
    gains = gini[inner] - gini[tree.left[inner]] - gini[tree.left[inner] + 1]
    assert 0 < len(inner) < 299
    assert gains.min() >= 0.8


def test_deep_trees_need_no_recursion():
    n = 3000
    X, y = np.arange(n, dtype=float)[:, None], np.arange(n) % 2
    # Every cut of alternating classes takes one row off an end, or little more.
    tree = grow_cart(X, y, criterion="misclassification")
    assert tree.n_leaves == n
    assert certree.count(tree, X, y, 2).errors[tree.is_leaf].sum() == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"criterion": "deviance"}, ValueError, "criterion must be"),
        ({"min_gain": -1}, ValueError, "min_gain must be a finite number >= 0"),
        ({"min_gain": np.nan}, ValueError, "min_gain must be a finite number >= 0"),
        ({"y": [0.5, 1.5]}, TypeError, "y must convert to int32"),
        ({"y": [-1, 0]}, ValueError, "y must hold classes 0, 1"),
        ({"y": [0, np.nan], "criterion": "squared"}, ValueError, "y must be finite"),
        ({"y": [0]}, ValueError, r"y must have shape \(2\)"),
        ({"X": [[np.inf], [0]]}, ValueError, "Input X contains infinity"),
        ({"min_rows": 0}, ValueError, "min_rows must be at least 1"),
        ({"max_depth": -1}, ValueError, "max_depth must be None"),
        ({"sample_weight": [0, 0]}, ValueError, "positive for at least one row"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        grow_cart(**{"X": [[0.0], [1.0]], "y": [0, 1], **arguments})
