"""Thresholds keep rows apart whether their values are float64 or rounded to float32."""

import math
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import reference
from certree import (
    KD,
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    Cart,
    CertifiedTreeClassifier,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    TreeForestClassifier,
    TreeForestRegressor,
    grow_cart,
    grow_dyadic,
    grow_kd,
)
from certree._core import choose_thresholds
from certree._core import place_thresholds as core_place_thresholds
from certree.grow import dyadic_grid
from certree.grow.threshold_placement import place_thresholds
from certree.rows.dates import convert_dates, learn_dates
from certree.tree import ALL_LEFT, Tree

numbers = st.one_of(
    st.floats(-1e6, 1e6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-50, 50).map(lambda k: k / 10),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)

MODELS = {
    "PAC-Bayes": PACBayesTreeClassifier(random_state=0),
    "dyadic": PACBayesTreeClassifier("dyadic", random_state=0),
    "kd": HelmboldSchapireTreeClassifier(KD(), random_state=0),
    "binned": PrunedTreeClassifier(Cart(max_bins=90), random_state=0),
    "random": PrunedTreeClassifier(Cart(splitter="random"), random_state=0),
    "random bins": PrunedTreeClassifier(Cart(splitter="random", max_bins=9), random_state=0),
    "certified": CertifiedTreeClassifier(duplicates="genuine", random_state=0),
    "forest": TreeForestClassifier(10, leaves="plain", random_state=0),
    "extra trees": TreeForestClassifier(10, splitter="random", leaves="plain", random_state=0),
    "boosted": BoostedTreesClassifier(max_iter=20, random_state=0),
    "regression tree": PACBayesTreeRegressor(random_state=0),
    "regression forest": TreeForestRegressor(10, random_state=0),
    "boosted numbers": BoostedTreesRegressor(max_iter=20, random_state=0),
}


def decimals(n=1500, p=4, seed=0):
    """Numbers with one decimal, half of which float32 rounds up."""
    rng = np.random.default_rng(seed)
    X = np.round(2 * rng.normal(size=(n, p)), 1)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(int)
    return X, y


def tree_of(threshold, p=1):
    """A tree of one split."""
    return Tree([p - 1, 0, 0], [threshold, 0, 0], [1, -1, -1], [1, 1, 1], p)


@given(st.lists(numbers, min_size=1, max_size=8), numbers, st.booleans())
def test_thresholds_are_those_of_the_twin(values, threshold, at_middle):
    values = np.array(values) + 0.0
    if not (values <= threshold).any():
        threshold = float(values.min())
    low, high = reference.find_gap(values, threshold)
    (placed,) = place_thresholds(
        tree_of(threshold), values[:, None], at_middle=at_middle
    ).threshold[:1]
    assert placed == reference.place_threshold(values, threshold, at_middle)
    if not at_middle:
        assert placed == choose_thresholds(*np.array([[threshold], [low], [high]]) + 0.0)
    assert low <= placed < high
    below, above = reference.round_to_float32(low), reference.round_to_float32(high)
    tree = tree_of(placed)
    if below < above:
        assert max(low, below) <= placed < min(high, above)
        assert not len(tree.float64_features)
    elif placed == np.finfo(float).max:
        assert not len(tree.float64_features)
    elif below != low or math.nextafter(low, math.inf) < high:
        assert tree.float64_features.tolist() == [0]


def make_right_chain(features, thresholds, sets, p):
    """Make a tree in which the right child of each split is the next one.

    sets: for each split the categories that it tests for, or an empty list: it compares numbers.
    Return the nodes of the splits, and the columns of the tree as the core takes them.
    """
    n = len(features)
    m = 2 * n + 1
    columns = {
        "feature": np.zeros(m, np.int32),
        "threshold": np.zeros(m),
        "left": np.full(m, -1, np.int32),
    }
    splits = np.append(0, 2 * np.arange(1, n))[:n]
    columns["feature"][splits] = features
    columns["threshold"][splits] = thresholds
    columns["left"][splits] = 2 * np.arange(n) + 1
    lengths = np.zeros(m, np.int64)
    lengths[splits] = [len(codes) for codes in sets]
    categories = np.array([code for codes in sets for code in codes], np.int32)
    starts = np.append(0, np.cumsum(lengths))
    return splits, (*columns.values(), np.zeros(m, np.uint8), starts, categories)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at_middle", [False, True])
@pytest.mark.parametrize(
    ("n", "n_thresholds"), [(1, 1), (63, 2), (64, 0), (130, 7), (300, 300), (9000, 90)]
)
def test_placed_thresholds_and_their_gaps_are_those_of_the_twin(dtype, at_middle, n, n_thresholds):
    rng = np.random.default_rng(n)
    X = np.round(rng.normal(size=(n, 4)), 2).astype(dtype)
    X[rng.random((n, 4)) < 0.1] = np.nan
    # Some thresholds are equal, some are values of rows, and some lie outside of all values.
    features = np.append(rng.choice([0, 1, 3], n_thresholds), [1, 1, 3, 3, 0])
    drawn = np.round(rng.normal(size=n_thresholds), 1).astype(dtype)
    thresholds = np.append(drawn.astype(float), [-99.0, ALL_LEFT, 99.0, ALL_LEFT, 0.0])
    sets = [[]] * (len(features) - 1) + [[1, 2]]
    splits, columns = make_right_chain(features, thresholds, sets, 4)
    expected = []
    for j, threshold, codes in zip(features, thresholds, sets, strict=True):
        low, high = reference.find_gap(X[:, j], threshold)
        if codes or low == -np.inf or threshold == ALL_LEFT:
            expected.append((threshold, -np.inf, high))
        else:
            placed = reference.place_threshold(X[:, j], threshold, at_middle)
            expected.append((placed, low, high))
    for n_threads in (1, 3):
        threshold, low, high = core_place_thresholds(*columns, X, at_middle, n_threads)
        found = np.transpose([column[splits] for column in (threshold, low, high)])
        is_placed = np.array(expected)[:, 1] > -np.inf
        assert np.array_equal(found[is_placed], np.array(expected)[is_placed])
        assert np.array_equal(found[:, :2], np.array(expected)[:, :2])
        leaves = np.setdiff1d(np.arange(len(threshold)), splits)
        assert (low[leaves] == -np.inf).all()
        assert (threshold[leaves] == 0).all()


@given(st.lists(numbers, min_size=2, max_size=20), numbers)
def test_no_number_passes_a_threshold_that_is_no_number_of_float32(values, x):
    """Of values that no row of the fit has, too."""
    X = np.array(values)[:, None] + 0.0
    tree = grow_cart(X, np.arange(len(X)) % 2)
    inner = np.flatnonzero(tree.left != -1)
    for v in inner[~np.isin(tree.feature[inner], tree.float64_features)]:
        t = tree.threshold[v]
        if reference.round_to_float32(t) != t:
            assert (x <= t) == (reference.round_to_float32(x) <= t)


@pytest.mark.parametrize("grow", [grow_cart, grow_kd, grow_dyadic])
def test_no_row_of_the_fit_changes_its_child(grow):
    X, y = decimals()
    tree = grow(X, y)
    assert np.array_equal(tree.apply(X), tree.apply(X.astype(np.float32)))
    again = place_thresholds(tree, X, at_middle=grow is not grow_dyadic)
    assert np.array_equal(again.threshold, tree.threshold)


def test_thresholds_lie_in_the_middle_between_values_of_all_rows():
    # In the left node 0 and 4 are neighbours, but other rows have 1 and 3.
    X = np.array([[0.0, 0], [4, 0], [1, 1], [3, 1], [0, 1]])
    tree = grow_cart(X, [0, 1, 2, 2, 2])
    assert tree.threshold[tree.feature == 0].max() == 2.0
    binned = Cart(max_bins=9)
    made = PrunedTreeClassifier(binned, alpha=0.0).fit(X, [0, 1, 2, 2, 2]).tree_
    assert np.array_equal(made.threshold, tree.threshold)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_predictions_are_those_of_float32(model):
    X, y = decimals()
    other, _ = decimals(seed=1)
    made = clone(model).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X, other, X[:3]):
            narrow = rows.astype(np.float32)
            assert np.array_equal(made.apply(narrow), made.apply(rows))
            if not isinstance(made, BoostedTreesRegressor):  # starts from a line
                assert np.array_equal(made.predict(narrow), made.predict(rows))
        made.to_onnx()
        made.to_sklearn()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("few", [True, False])
def test_features_that_need_float64_are_named(model, few):
    X, _ = decimals()
    times = 1.7e9 + np.arange(len(X)) % 40
    frame = pd.DataFrame({"a": X[:, 0], "time": times})
    target = (times % 2 + 0.01 * X[:, 0] > 0.5).astype(float if "Regressor" in repr(model) else int)
    made = clone(model).fit(frame, target)
    narrow = frame.astype(np.float32)[: 5 if few else None]
    with pytest.warns(UserWarning, match="feature 'time' that float32 does not distinguish"):
        made.predict(narrow)
    with pytest.warns(UserWarning, match="'time' .* dtype=\"float64\""):
        made.to_onnx()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.predict(frame)
        made.predict(frame.astype({"a": np.float32}))
        graph = made.to_onnx(dtype="auto")
        if isinstance(made, BoostedTreesClassifier | BoostedTreesRegressor):
            made.to_sklearn()
    assert graph.graph.input[0].type.tensor_type.elem_type == 11  # of doubles
    if not isinstance(made, BoostedTreesClassifier | BoostedTreesRegressor):
        with pytest.warns(UserWarning, match="round rows to float32"):
            made.to_sklearn()


def test_arrays_without_names_are_warned_of_by_number():
    X, _ = decimals()
    X[:, 2] = 1.7e9 + np.arange(len(X)) % 40
    made = PrunedTreeClassifier(alpha=0.0).fit(X, (X[:, 2] % 2).astype(int))
    for rows in (X, X[:1]):
        with pytest.warns(UserWarning, match="feature 'x.2.' that float32"):
            made.predict(rows.astype(np.float32))


def test_a_graph_of_few_digits_is_taken_where_it_suffices():
    X, y = decimals()
    graph = PACBayesTreeClassifier(random_state=0).fit(X, y).to_onnx(dtype="auto")
    assert graph.graph.input[0].type.tensor_type.elem_type == 1  # of floats
    with pytest.raises(ValueError, match=r'must be "float32", "float64" or "auto", got .half.'):
        PACBayesTreeClassifier(random_state=0).fit(X, y).to_onnx(dtype="half")


def test_nodes_of_a_known_box_keep_to_float32():
    tree = dyadic_grid([0.0, 0.3], [0.7, 1.0], 8)
    assert not len(tree.float64_features)
    X = np.random.default_rng(0).random((4000, 2)).round(3)
    assert np.array_equal(tree.apply(X), tree.apply(X.astype(np.float32)))
    assert abs(tree.threshold[0] - 0.35) < 1e-7


# -- the shared tables -----------------------------------------------------------------------------

DATA = os.environ.get("CERTREE_DATA")
PATHS = sorted(Path(DATA).rglob("*.parquet")) if DATA else []
TABLES = [pytest.param(path, id=path.stem) for path in PATHS]


@pytest.mark.data
@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("path", TABLES)
def test_features_of_tables_need_float64_only_where_float32_merges_values(path):
    table = pd.read_parquet(path)
    table = table.sample(min(600, len(table)), random_state=0)
    X, y = table.iloc[:, :-1], table.iloc[:, -1]
    X = convert_dates(X, learn_dates(X))
    names = (
        ["regression tree", "boosted numbers"] if y.dtype.kind == "f" else ["PAC-Bayes", "boosted"]
    )
    for name in names:
        model = clone(MODELS[name])
        if "max_iter" in model.get_params():
            model.set_params(max_iter=5)
        for j in model.fit(X, y)._float64_features:
            values = X.iloc[:, j].dropna().to_numpy(dtype=float)
            assert len(np.unique(values.astype(np.float32))) < len(np.unique(values))
