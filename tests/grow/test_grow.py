"""The growers against literal ones, and what must hold for any rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.tree import DecisionTreeClassifier

import certree
import reference
from certree import grow_dyadic, grow_kd
from strategies import rows

GROWERS = {
    "dyadic": grow_dyadic,
    "kd": grow_kd,
    "kd-cycle": lambda *a, **k: grow_kd(*a, axis="cycle", **k),
}
every_grower = pytest.mark.parametrize("grow", GROWERS.values(), ids=GROWERS.keys())

switches = st.fixed_dictionaries(
    {},
    optional={
        "min_samples_split": st.integers(2, 6),
        "max_depth": st.integers(0, 12),
        "stop_when_pure": st.booleans(),
    },
)


def same_columns(a, b):
    for name in ("feature", "threshold", "left", "chain"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


@given(rows(max_rows=14), switches)
def test_dyadic_is_the_literal_dyadic_tree(X_y, options):
    X, y = X_y
    tree = grow_dyadic(X, y, **options)
    assert reference.nest_tree(tree, X) == reference.grow_dyadic(X, y, **options)


@pytest.mark.parametrize(
    "x",
    [
        [1, 1 + 2 * 2**-52, 1 + 4 * 2**-52],
        [1, 1 + 2**-52],
        [1.6e9, 1.6e9 + 2**-22, 1.6e9 + 3 * 2**-22, np.nan],
        [1e17, 1e17 + 16, 1e17 + 64],
        [0, 5e-324],
        [-5e-324, 0, 1.5e-323],
        [-1.7e308, 0, 1.7e308],
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_dyadic_ends_where_a_feature_spans_few_units_of_rounding(x, sign):
    X = sign * np.array(x)[:, None]
    tree = grow_dyadic(X)
    assert reference.nest_tree(tree, X) == reference.grow_dyadic(X)


@given(rows(), switches, st.sampled_from(["cycle", "spread"]), st.booleans())
def test_kd_is_the_literal_median_tree(X_y, options, axis, weighted):
    X, y = X_y
    X = np.where(abs(X) > 1e200, 17.0, X)  # the literal deviations would overflow,
    X = np.where(abs(X) < 1e-100, 0.0, X)  # or underflow
    weight = np.random.default_rng(len(X)).integers(1, 4, len(X)).astype(float)
    options["weight"] = weight if weighted else None
    literal = reference.grow_kd(X, y, axis, **options)
    tree = grow_kd(X, y, axis=axis, sample_weight=options.pop("weight"), **options)
    if axis == "cycle":
        assert reference.nest_tree(tree, X) == literal
    else:
        # Two spreads may agree to rounding; then either feature is right, but not another number
        # of leaves at the root's split.
        assert same_unless_tied(reference.nest_tree(tree, X), literal, X)


def same_unless_tied(got, expected, X):
    if got[0] != expected[0] or got[:2] == expected[:2] == ("leaf", 1):
        return got == expected
    if got[2] != expected[2]:
        ratio = relative_spread(X, got) / relative_spread(X, expected)
        return ratio == pytest.approx(1, rel=1e-9)
    return got[3] == expected[3] and all(same_unless_tied(got[i], expected[i], X) for i in (4, 5))


def relative_spread(X, node):
    def rows_below(part):
        return part[2] if part[0] == "leaf" else rows_below(part[4]) + rows_below(part[5])

    column = X[rows_below(node), node[2]]
    return (np.nanmax(column) - np.nanmin(column)) / np.nanstd(X[:, node[2]])


@given(rows(max_rows=10), switches)
def test_the_compressed_dyadic_tree_is_the_expanded_one(X_y, options):
    X, y = X_y
    compressed = grow_dyadic(X, y, **options)
    expanded = grow_dyadic(X, y, expand=True, **options)
    assert (expanded.chain == 1).all()
    # The same rows share leaves, and every row lies in as many nodes.
    a, b = compressed.apply(X), expanded.apply(X)
    assert len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))
    depth = compressed.node_depth + compressed.chain - 1
    np.testing.assert_array_equal(depth[a], expanded.node_depth[b])
    # Laws over their prunings agree, once nodes without rows cost nothing and forbid nothing.
    label = np.zeros(compressed.n_nodes, int)
    stats = certree.count(compressed, X, y, 3, label=label)
    every = certree.count(expanded, X, y, 3, label=np.zeros(expanded.n_nodes, int))
    weights = certree.pac_bayes(compressed, stats, 0.7, 0.2)
    literal = certree.pac_bayes(expanded, every, 0.7, 0.2)
    assert weights.log_evidence == pytest.approx(literal.log_evidence, abs=1e-9)
    votes = certree.vote(compressed, stats, weights, "mean").score[a]
    np.testing.assert_allclose(
        votes, certree.vote(expanded, every, literal, "mean").score[b], atol=1e-9
    )


@every_grower
@given(X_y=rows())
def test_every_tree_separates_distinct_rows_and_is_small(grow, X_y):
    X, _ = X_y
    tree = grow(X)
    leaf = tree.apply(X)
    assert tree.n_nodes <= 2 * len(X) - 1
    assert len(np.unique(leaf)) == tree.n_leaves
    comparable = np.where(np.isnan(X), np.inf, X)
    distinct = len(np.unique(comparable, axis=0))
    if grow is grow_dyadic:
        # Rows nearer than 2^-48 of the range, or NaN and the largest value, share a node.
        assert tree.n_leaves <= distinct
    else:
        assert tree.n_leaves == distinct


@every_grower
@given(X_y=rows(), seed=st.integers(0, 100))
def test_shuffled_rows_give_the_same_tree(grow, X_y, seed):
    X, y = X_y
    order = np.random.default_rng(seed).permutation(len(X))
    same_columns(grow(X, y), grow(X[order], y[order]))


@every_grower
@given(X_y=rows(), power=st.integers(-20, 20))
def test_features_scaled_by_powers_of_two_give_the_same_tree(grow, X_y, power):
    X, y = X_y
    # Thresholds lie where float32 rounds, whose smallest numbers have fewer digits.
    X = np.where(abs(X) > 1e30, 17.0, np.where(abs(X) < 1e-30, 0.0, X))
    a, b = grow(X, y), grow(np.ldexp(X, power), y)
    np.testing.assert_array_equal(a.left, b.left)
    np.testing.assert_array_equal(a.feature, b.feature)
    np.testing.assert_array_equal(np.ldexp(a.threshold, power), b.threshold)


@every_grower
@given(X_y=rows(), seed=st.integers(0, 100))
def test_medians_are_weighted_and_rows_are_counted_once(grow, X_y, seed):
    X, y = X_y
    weight = np.random.default_rng(seed).integers(0, 4, len(X))
    weight[0] = 2
    repeated = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    for options in ({}, {"stop_when_pure": False}):
        same_columns(grow(X, y, sample_weight=weight, **options), grow(*repeated, **options))
    for options in ({"min_samples_split": 4}, {"max_depth": "log"}):
        tree = grow(X, y, sample_weight=weight, **options)
        same_columns(tree, grow(X, y, sample_weight=0.3 * weight, **options))
        inside = X[weight > 0]
        rows = np.bincount(tree.apply(inside), minlength=tree.n_nodes)
        for v in range(tree.n_nodes - 1, -1, -1):
            if tree.left[v] >= 0:
                rows[v] = rows[tree.left[v]] + rows[tree.left[v] + 1]
        if "min_samples_split" in options:
            assert (rows[~tree.is_leaf] >= 4).all()
        else:
            assert tree.depth <= X.shape[1] * int(np.log(len(inside))) + 1


@pytest.mark.threads
@every_grower
def test_threads_do_not_change_a_bit(grow):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60_000, 5)).round(2)
    y = rng.integers(0, 2, 60_000)
    for n_jobs in (2, 3, -1):
        same_columns(grow(X, y, n_jobs=n_jobs), grow(X, y))


@every_grower
def test_one_row_one_class_and_constant_features(grow):
    assert grow([[1.0, 2.0]]).n_nodes == 1
    assert grow(np.zeros((5, 2))).n_nodes == 1
    assert grow(np.arange(6.0)[:, None], np.ones(6, int)).n_nodes == 1
    assert grow(np.arange(6.0)[:, None], np.ones(6, int), stop_when_pure=False).n_leaves == 6
    X = np.c_[np.full(4, 7.0), [1.0, 2, 3, 4]]
    tree = grow(X)
    assert tree.n_leaves == 4
    assert (tree.feature[~tree.is_leaf] == 1).all()


@every_grower
def test_many_features_and_one_feature(grow):
    rng = np.random.default_rng(0)
    assert grow(rng.normal(size=(40, 5000))).n_leaves == 40
    assert grow(rng.normal(size=(3000, 1))).n_leaves == 3000


@every_grower
def test_nan_goes_right(grow):
    X = np.array([[0.0], [1.0], [np.nan], [np.nan]])
    tree = grow(X)
    leaf = tree.apply(X)
    assert leaf[2] == leaf[3]
    assert leaf[2] not in (leaf[0],)
    v = 0
    while tree.left[v] >= 0:
        v = tree.left[v] + 1
    assert leaf[2] == v


@every_grower
def test_all_missing_features_are_constant(grow):
    X = np.c_[np.full(3, np.nan), [1.0, 2.0, 3.0]]
    tree = grow(X)
    assert tree.n_leaves == 3
    assert (tree.feature == 1)[~tree.is_leaf].all()


@every_grower
def test_stopping_switches(grow):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    assert grow(X, y, max_depth=3).depth <= 3
    assert grow(X, y, max_depth=0).n_nodes == 1
    assert grow(X, y, max_depth="log").depth <= 3 * int(np.log(500))
    n = certree.count(grow(X, min_samples_split=21), X, y, 2).n
    tree = grow(X, min_samples_split=21)
    assert (n[~tree.is_leaf] >= 21).all()
    pure = certree.count(grow(X, y), X, y, 2)
    assert pure.errors[grow(X, y).is_leaf].sum() == 0
    assert grow(X, y).n_nodes < grow(X, y, stop_when_pure=False).n_nodes


@every_grower
@pytest.mark.parametrize("weight", [0.25, 1.5, 100.0])
def test_a_row_counts_once_whatever_it_weighs(grow, weight):
    X, weights = np.arange(3.0)[:, None], np.full(3, weight)
    for least, is_split in ((2.5, True), (3, True), (3.5, False), (4, False)):
        tree = grow(X, sample_weight=weights, min_samples_split=least)
        assert (tree.n_nodes > 1) == is_split


@every_grower
@given(X_y=rows(), scale=st.floats(-10, 10))
def test_nodes_with_one_value_of_a_number_are_pure(grow, X_y, scale):
    X, y = X_y
    levels = np.unique(y * scale, return_inverse=True)[1]
    same_columns(grow(X, y * scale), grow(X, levels))


def test_the_twin_splits_by_the_same_axis_unless_told():
    X = np.random.default_rng(0).normal(size=(20, 3)) * [1, 10, 3]
    same_columns(grow_kd(X), grow_kd(X, axis="spread"))
    assert reference.nest_tree(grow_kd(X), X) == reference.grow_kd(X)
    assert (grow_kd(X).feature != grow_kd(X, axis="cycle").feature).any()


@given(hnp.arrays(np.float32, (20, 2), elements=st.floats(-100, 100, width=32)))
def test_float32_rows_give_the_tree_of_the_same_values(X):
    for grow in GROWERS.values():
        same_columns(grow(X), grow(X.astype(np.float64)))


def test_huge_ranges_do_not_overflow():
    X = np.array([[-1.7e308], [-1.0], [1.0], [1.7e308]])
    for grow in GROWERS.values():
        tree = grow(X)
        assert tree.n_leaves >= 3
        assert np.isfinite(tree.threshold).all()


@every_grower
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X": np.zeros((0, 2))}, ValueError, "at least one row and one feature"),
        ({"X": np.zeros((2, 0))}, ValueError, "at least one row and one feature"),
        ({"X": np.zeros(3)}, ValueError, "X must have two dimensions"),
        ({"X": [[np.inf]]}, ValueError, "Input X contains infinity"),
        ({"X": [["a"]]}, TypeError, "X must convert to float64"),
        ({"X": np.zeros((2, 1), dtype=np.float16)}, TypeError, "X must convert to float64"),
        ({"y": [0]}, ValueError, r"y must have shape \(2\)"),
        ({"y": ["a", "b"]}, TypeError, "y must convert to int32"),
        ({"y": [0.0, np.nan]}, ValueError, "y must be finite"),
        ({"min_samples_split": 1}, ValueError, "min_samples_split must be at least 2"),
        ({"min_samples_split": np.nan}, ValueError, "min_samples_split must be at least 2"),
        ({"min_rows": 1}, TypeError, "unexpected keyword argument 'min_rows'"),
        ({"max_depth": -1}, ValueError, "max_depth must be None"),
        ({"max_depth": 1.5}, ValueError, "max_depth must be None"),
        ({"max_depth": "deep"}, ValueError, "max_depth must be None"),
        ({"sample_weight": [1.0]}, ValueError, r"sample_weight must have shape \(2\)"),
        ({"sample_weight": [1.0, -1]}, ValueError, "finite and non-negative"),
        ({"sample_weight": [1.0, np.nan]}, ValueError, "finite and non-negative"),
        ({"sample_weight": [0.0, 0]}, ValueError, "positive for at least one row"),
    ],
)
def test_bad_input_is_refused(grow, arguments, error, message):
    with pytest.raises(error, match=message):
        grow(**{"X": np.zeros((2, 2)), **arguments})


def test_unknown_axis_is_refused():
    with pytest.raises(ValueError, match='axis must be "cycle" or "spread", got'):
        grow_kd([[0.0]], axis="widest")


def test_a_scikit_learn_tree_keeps_its_nodes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = DecisionTreeClassifier(max_leaf_nodes=30, random_state=0).fit(X, y)
    tree = certree.grow.from_sklearn(model)
    assert tree.n_nodes == model.tree_.node_count
    assert tree.depth == model.get_depth()
    pairs = set(zip(tree.apply(X), model.apply(X), strict=True))
    assert len(pairs) == tree.n_leaves == model.get_n_leaves()
    stats = certree.count(tree, X, y, 2)
    np.testing.assert_array_equal(stats.label[tree.apply(X)], model.predict(X))


def test_what_is_no_fitted_tree_is_refused():
    with pytest.raises(TypeError, match="estimator must be a fitted scikit-learn decision tree"):
        certree.grow.from_sklearn(DecisionTreeClassifier())


@given(st.integers(1, 3), st.integers(0, 6), st.integers(0, 2**32))
def test_the_grid_halves_the_box_whatever_the_rows_are(p, depth, seed):
    rng = np.random.default_rng(seed)
    low = rng.integers(-8, 0, p).astype(float)
    high = low + 2.0 ** rng.integers(0, 4, p)
    tree = certree.grow.dyadic_grid(low, high, depth)
    assert tree.n_leaves == 2**depth
    assert set(tree.node_depth[tree.is_leaf]) == {depth}
    X = rng.uniform(low - 1, high + 1, (40, p))
    leaf = tree.apply(X)
    cells = {}
    for x, v in zip(X, leaf, strict=True):
        corners = reference.find_grid_region(low, high, depth, x)
        assert cells.setdefault(v, corners) == corners
    assert len({str(corners) for corners in cells.values()}) == len(cells)


@pytest.mark.parametrize(
    ("low", "high", "depth", "message"),
    [
        ([0.0], [1.0, 2.0], 1, "the same length, at least 1, got 1 and 2"),
        ([], [], 1, "the same length, at least 1, got 0 and 0"),
        ([0.0], [0.0], 1, "low < high"),
        ([0.0], [np.inf], 1, "must be finite"),
        ([0.0], [1.0], 21, r"depth must lie in 0 .. 20, got 21"),
        ([0.0], [1.0], -1, "depth must lie in"),
    ],
)
def test_bad_boxes_are_refused(low, high, depth, message):
    with pytest.raises(ValueError, match=message):
        certree.grow.dyadic_grid(low, high, depth)
