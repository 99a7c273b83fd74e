"""Columns in an order, and categories by numbers, that rows tell: neither places nor names do."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

import reference
from certree import (
    AdaBoostTreeClassifier,
    BoostedTreesClassifier,
    BoostedTreesRanker,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedBoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.grow import BinnedGrower, Bins, Cart, Grid, grow_cart
from certree.grow.binned_grower import grow_on_samples
from certree.grow.training_samples import TrainingSamples
from certree.rows.draw_order import ColumnSums, hash_targets
from certree.rows.features import DenseFeatures
from certree.rows.sparse_rows import SparseFeatures

SIZES = None, 3, None, 5
VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 2.0, 3.0, np.nan, 1e300, 5e-324])
CODES = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, 0.5, -1.0, np.nan])
ROWS = st.lists(st.tuples(VALUES, CODES, VALUES, CODES), min_size=1, max_size=30)
TARGETS = st.sampled_from([0, 1, 5]), st.sampled_from([0.0, -0.0, 0.5, 3.0, -2.0, 1e-3])


# -- sums --------------------------------------------------------------------------------------------


def known_of(sums, j):
    """The sums of a column by category, None for missing values."""
    begin, n = int(sums.n_codes[:j].sum()), int(sums.n_codes[j])
    told = zip(sums.n_rows[begin:][:n].tolist(), sums.words[begin:][:n].tolist(), strict=True)
    names = [*range(n - 1), None]
    return {name: pair for name, pair in zip(names, told, strict=False) if pair[0]}


@given(ROWS, st.data(), st.integers(1, 2), st.booleans())
def test_sums_are_those_of_the_twin(rows, data, n_targets, are_classes):
    drawn = st.tuples(*[TARGETS[0] if are_classes else TARGETS[1]] * n_targets)
    targets = data.draw(st.lists(drawn, min_size=len(rows), max_size=len(rows)))
    X, y = np.array(rows), np.array(targets, dtype=np.int32 if are_classes else np.float64)
    sums = ColumnSums.sum_rows(DenseFeatures((X,)), y if n_targets > 1 else y[:, 0], SIZES)
    numbers, known = reference.sum_columns(X, [one.tolist() for one in y], SIZES)
    assert sums.numbers.tolist() == numbers
    assert [known_of(sums, j) for j in range(4)] == known
    assert sums.order_columns().tolist() == reference.order_columns(numbers, known)
    for j in (1, 3):
        assert sums.number_categories(j).tolist() == reference.number_categories(known[j], SIZES[j])


def drawn_rows(n=300, p=7):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.3)
    X[rng.random((n, p)) < 0.05] = np.nan
    X[:, 1], X[:, 3] = rng.integers(0, 4, size=(2, n))
    return X, rng.integers(0, 3, n).astype(np.int32)


def same_sums(one, other):
    for name in ("n_codes", "numbers", "n_rows", "words"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_sums_do_not_depend_on_where_rows_and_columns_are():
    X, y = drawn_rows()
    sizes = None, 4, None, 4, None, None, None
    sums = ColumnSums.sum_rows(DenseFeatures((X,)), y, sizes)
    columns = DenseFeatures(tuple(X.T))
    same_sums(ColumnSums.sum_rows(columns, y, sizes), sums)
    rows = np.random.default_rng(1).permutation(len(X))
    same_sums(ColumnSums.sum_rows(columns.take(rows), y[rows], sizes), sums)
    some = np.arange(120)
    parts = [
        ColumnSums.sum_rows(columns.take(one), y[one], sizes) for one in (some, np.arange(120, 300))
    ]
    same_sums(parts[0] + parts[1], sums)
    turned = [6, 3, 1, 0, 2, 5, 4]
    other = ColumnSums.sum_rows(DenseFeatures((X[:, turned],)), y, [sizes[j] for j in turned])
    assert np.array_equal(np.array(turned)[other.order_columns()], sums.order_columns())


def test_sums_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40_000, 20)).astype(np.float32), rng.integers(0, 2, 40_000)
    one, two = (ColumnSums.sum_rows(DenseFeatures((X,)), y, n_threads=n) for n in (1, 3))
    same_sums(one, two)
    same_sums(ColumnSums.sum_rows(DenseFeatures((X.astype(float),)), y), one)


def test_sums_of_sparse_rows_are_those_of_the_dense_table():
    X, y = drawn_rows()
    sparse = SparseFeatures.from_csr(sp.csr_array(X))
    same_sums(ColumnSums.sum_rows(sparse, y), ColumnSums.sum_rows(DenseFeatures((X,)), y))


def test_the_unit_of_a_target_means_nothing():
    y = np.array([0.0, 1.5, -3.0, 1e-9])
    assert np.array_equal(hash_targets(y, 4), hash_targets(-np.ldexp(-y, 30), 4))
    assert len(np.unique(hash_targets(np.array([0.0, 1.5, -1.5, 1.25]), 4))) == 4
    several = np.column_stack([y, y[::-1]])
    assert np.array_equal(hash_targets(several, 4), hash_targets(several[:, ::-1], 4))


# -- growers look at columns in the order ------------------------------------------------------------


def tied_rows(n=200, p=6):
    """Rows of few values, so that many cuts are equal."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, size=(n, p)).astype(float)
    X[rng.random((n, p)) < 0.1] = np.nan
    return X, (np.nan_to_num(X[:, 0]) + rng.integers(0, 2, n) > 1).astype(np.int32)


def same_but_for_places(tree, other, order):
    """Whether a tree is another one whose features are the places of its own in an order."""
    inner = ~other.is_leaf
    assert np.array_equal(tree.left, other.left)
    assert np.array_equal(tree.threshold, other.threshold)
    assert np.array_equal(tree.missing_left, other.missing_left)
    assert np.array_equal(tree.feature[inner], np.asarray(order)[other.feature[inner]])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_trees_from_bins_are_those_of_columns_that_stand_in_the_order(is_sparse, n_jobs):
    X, y = tied_rows()
    order = [4, 1, 5, 0, 3, 2]
    how = sp.csr_array if is_sparse else np.asarray
    given, turned = (Bins.from_table(how(one)) for one in (X, X[:, order]))
    gradient, ones = np.where(y, -1.0, 1.0), np.ones(len(y))
    for options in ({"max_leaves": 20}, {"order": "depth", "max_features": 2, "random_cuts": True}):
        options |= {"n_jobs": n_jobs, "seed": 7}
        one = BinnedGrower(given, feature_order=order, **options)
        other = BinnedGrower(turned, **options)
        trees = [grower.grow_classes(y, 2, 3).trees for grower in (one, other)]
        for own, twin in zip(*trees, strict=True):
            same_but_for_places(own, twin, order)
        if "max_features" not in options:
            grown = [grower.grow_gradients(gradient, ones).tree for grower in (one, other)]
            same_but_for_places(*grown, order)


@pytest.mark.parametrize("switches", [{}, {"max_features": 2}, {"splitter": "random"}])
@pytest.mark.parametrize("is_numeric", [False, True])
def test_trees_by_values_are_those_of_columns_that_stand_in_the_order(switches, is_numeric):
    X, y = tied_rows()
    y = y * 0.1 if is_numeric else y
    order = np.array([4, 1, 5, 0, 3, 2], dtype=np.int32)
    trees = [
        Cart(**switches).grow(
            TrainingSamples(rows, y, random_state=5, compute_feature_order=lambda o=o: o)
        )
        for rows, o in ((X, order), (X[:, order].copy(), np.arange(6, dtype=np.int32)))
    ]
    same_but_for_places(*trees, order)


def test_an_order_must_hold_every_feature_once():
    bins = Bins.from_table([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="feature_order must hold each of 0"):
        BinnedGrower(bins, feature_order=[0, 0])


def test_codes_that_are_no_categories_are_refused_as_before():
    for bad in (-1.0, 0.5):
        with pytest.raises(ValueError, match="categories must be whole numbers"):
            grow_cart([[0.0], [bad]], [0, 1], categorical_features=[0])


# -- every estimator ---------------------------------------------------------------------------------

BINNED = Cart(max_bins=255)
MODELS = [
    PACBayesTreeClassifier(random_state=0),
    PACBayesTreeClassifier(BINNED, random_state=0),
    PACBayesTreeClassifier(Cart(max_features=2), random_state=0),
    PACBayesTreeClassifier(Cart(max_features=2, max_bins=60, splitter="random"), random_state=0),
    PACBayesTreeClassifier(Cart(max_leaf_nodes=9), random_state=0),
    HelmboldSchapireTreeClassifier(random_state=0),
    PrunedTreeClassifier(random_state=0),
    PrunedTreeRegressor(random_state=0),
    PACBayesTreeRegressor(random_state=0),
    PACBayesTreeRegressor(BINNED, random_state=0),
    CertifiedTreeClassifier(random_state=0),
    CertifiedTreeClassifier(BINNED, random_state=0),
    CertifiedTreeRegressor(random_state=0),
    BoostedTreesClassifier(random_state=0, max_iter=20),
    BoostedTreesClassifier(random_state=0, max_iter=9, max_features=0.5, max_thresholds=7),
    BoostedTreesClassifier(random_state=0, max_iter=30, early_stopping=True),
    BoostedTreesClassifier(random_state=0),
    BoostedTreesRegressor(random_state=0, max_iter=20),
    BoostedTreesRegressor(random_state=0, max_iter=20, loss="quantile"),
    BoostedTreesRanker(random_state=0, max_iter=5),
    CertifiedBoostedTreesClassifier(random_state=0, max_iter=10),
    CertifiedBoostedTreesRegressor(random_state=0, max_iter=10),
    TreeForestClassifier(9, random_state=0),
    TreeForestClassifier(9, random_state=0, max_features_per_tree=3),
    TreeForestRegressor(9, random_state=0),
    CertifiedForestClassifier(9, random_state=0),
    AdaBoostTreeClassifier(n_estimators=9),
    AdaBoostTreeClassifier(n_estimators=9, max_depth=3),
    NaiveBayesClassifier(),
]
# What adds up over columns is rounded in their order.
ROUNDED = (NaiveBayesClassifier,)


def frame_and_target(seed, is_numeric, n_classes=2):
    """A table of numbers, flags that are much alike, and categories; cuts that are equal are many."""
    rng, n = np.random.default_rng(seed), 300
    frame = pd.DataFrame({f"number {j}": rng.normal(size=n).round(1) for j in range(2)})
    for j in range(4):
        frame[f"flag {j}"] = rng.integers(0, 2, n)
    frame["kind"] = pd.Categorical([f"k{c}" for c in rng.integers(0, 9, n)])
    frame["place"] = pd.Categorical([f"p{c}" for c in rng.integers(0, 40, n)])
    said = frame["number 0"] + 0.8 * frame["flag 1"] + 0.3 * (frame["kind"].cat.codes % 3)
    said += 0.5 * rng.normal(size=n)
    return frame, said.round(2).to_numpy() if is_numeric else (said > 0.7).to_numpy().astype(int)


def renamed(frame):
    """The same table, whose categories have names in another order."""
    frame = frame.copy()
    for name in ("kind", "place"):
        names = frame[name].cat.categories
        turned = np.random.default_rng(1).permutation(len(names))
        told = {old: f"n{k:03}" for old, k in zip(names, turned, strict=True)}
        frame[name] = pd.Categorical(frame[name].map(told).astype(str))
    return frame


def said_of(model, frame):
    is_of_shares = hasattr(model, "predict_proba")
    return np.asarray(model.predict_proba(frame) if is_of_shares else model.predict(frame))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:60])
def test_neither_places_of_columns_nor_names_of_categories_change_a_model(model):
    is_numeric = not is_classifier(model)
    frame, y = frame_and_target(0, is_numeric)
    given = {}
    if has_fit_parameter(model, "qid"):
        y, given = np.digitize(y, [0.0, 1.0]).astype(float), {"qid": np.arange(300) // 10}
    turned = frame.iloc[:, np.random.default_rng(2).permutation(frame.shape[1])]
    other_names = renamed(frame)
    expected = said_of(clone(model).fit(frame, y, **given), frame)
    for table in (turned, other_names, renamed(turned)):
        said = said_of(clone(model).fit(table, y, **given), table)
        if isinstance(model, ROUNDED):
            np.testing.assert_allclose(said, expected, rtol=1e-12)
        else:
            assert np.array_equal(said, expected)


@pytest.mark.parametrize(
    "model",
    [
        PrunedTreeClassifier(random_state=0),
        BoostedTreesClassifier(random_state=0, max_iter=9),
        TreeForestClassifier(9, random_state=0),
    ],
)
def test_trees_are_the_same_but_for_the_numbers_of_columns(model):
    frame, y = frame_and_target(1, False)
    turned = np.random.default_rng(2).permutation(frame.shape[1])
    one, other = clone(model).fit(frame, y), clone(model).fit(frame.iloc[:, turned], y)
    trees, twins = (getattr(each, "trees_", getattr(each, "tree_", None)) for each in (one, other))
    same_but_for_places(twins, trees, np.argsort(turned))
    worth = one.feature_importances_[turned]
    np.testing.assert_allclose(worth, other.feature_importances_, rtol=1e-12)


def test_rows_that_do_not_grow_have_no_say():
    frame, y = frame_and_target(2, False)
    model = CertifiedTreeClassifier(random_state=0, train_size=0.5)
    one = clone(model).fit(frame, y)
    certify, other, rng = one.calibration_.given, frame.copy(), np.random.default_rng(0)
    for name in ("kind", "number 1"):
        other.loc[certify, name] = rng.permutation(other[name].to_numpy()[certify])
    changed = y.copy()
    changed[certify] = 1 - y[certify]
    two = clone(model).fit(other, changed)
    assert two.categories_.names == one.categories_.names
    for name in ("feature", "threshold", "left", "categories"):
        assert np.array_equal(getattr(two.tree_, name), getattr(one.tree_, name))


def test_trees_of_certified_forests_hang_on_their_samples_alone():
    frame, y = frame_and_target(2, False)
    codes, changed = frame.apply(lambda one: pd.factorize(one)[0]).to_numpy(float), 1 - y
    samples, seeds = np.arange(200, dtype=np.int32)[None], np.array([5], dtype=np.uint64)
    changed[:200] = y[:200]
    other = codes.copy()
    other[200:] = np.random.default_rng(0).permutation(other[200:])
    given = {"categorical": [6, 7], "max_features": 3}
    one, two = (
        grow_on_samples(X, target.astype(np.int32), 2, samples, seeds, **given).trees
        for X, target in ((codes, y), (other, changed))
    )
    for name in ("feature", "threshold", "left", "categories"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


def test_cells_that_are_fixed_before_any_row_go_by_spelling():
    frame, y = frame_and_target(0, False)
    model = PrunedTreeClassifier(Grid([[0, 0], [10, 50]]), max_depth=4, alpha=0.1)
    model.fit(frame[["kind", "place"]], y)
    assert [list(names) == sorted(names) for names in model.categories_.names] == [True, True]
