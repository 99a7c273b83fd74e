"""Greedy nodes whose features are split between bins."""

import numpy as np
import pytest

import reference
from certree import Cart, PACBayesTreeClassifier, PACBayesTreeRegressor, grow_cart
from certree.grow import Bins, TrainingSamples
from run_length import choose_seeds

COLUMNS = ("feature", "threshold", "left", "missing_left", "category_start", "categories")


def expect_same(one, other):
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def table(seed, n, n_values=9, missing=0.0):
    """Rows of numbers, the first feature of categories, and classes that some of them decide."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (n, 4)).astype(float)
    X[:, 0] = rng.integers(0, 5, n)
    X[rng.random(X.shape) < missing] = np.nan
    y = (np.nan_to_num(X[:, 1]) > n_values / 2) + (X[:, 0] == 2) * 1 + (rng.random(n) < 0.2)
    return X, y.astype(np.int32)


def targets(y, criterion):
    if criterion in ("gini", "entropy"):
        return y, reference.ForestSums, {"n_classes": int(y.max()) + 1, "criterion": criterion}
    numbers = y * (1 + np.arange(len(y)) / 64)
    given = {"criterion": "poisson"} if criterion == "poisson" else {}
    return numbers, reference.ForestSums, given


@pytest.mark.parametrize("criterion", ["gini", "squared", "poisson"])
@pytest.mark.parametrize("seed", choose_seeds(8))
def test_the_tree_is_that_of_the_twin(seed, criterion):
    X, y = table(seed, 40, missing=0.1 * (seed % 3 == 0))
    y = y if seed % 2 else np.minimum(y, 1)
    answer, twin_of, given = targets(y, criterion)
    least, most = 1 + seed % 3, 6 if seed % 4 == 1 else None
    tree = grow_cart(
        X,
        answer,
        criterion=criterion,
        categorical_features=[0],
        min_samples_leaf=least,
        max_leaf_nodes=most,
        max_bins=255,
    )
    target = twin_of(answer, np.ones(len(X), dtype=int), **given)
    nodes = reference.grow_forest_tree(
        X, target, 0, 0, categorical=[0], min_leaf=least, max_leaves=most, ties_by_root=True
    )
    assert tree.n_nodes == len(nodes) > 3
    for v, node in enumerate(nodes):
        assert (tree.left[v] >= 0) == ("left" in node)
        if "left" not in node:
            continue
        for name in ("feature", "threshold", "missing_left", "unseen_left", "left"):
            assert getattr(tree, name)[v] == node[name]
        assert tree.category_set(v).tolist() == node["categories"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared"])
def test_few_values_give_a_tree_as_good_as_that_of_all_splits(criterion, n_classes):
    n_same = 0
    for seed in range(8):
        X, y = table(seed, 60, n_values=20, missing=0.1 * (seed % 2))
        y = np.minimum(y, n_classes - 1)
        answer = y * 2.0 if criterion == "squared" else y
        given = {"criterion": criterion, "min_samples_leaf": 1 + seed % 4}
        exact, binned = (grow_cart(X, answer, max_bins=bins, **given) for bins in (None, 255))
        expect_best_cuts(binned, X, answer, given["min_samples_leaf"], criterion)
        # Where no row of a node lacks a value, and children are equal, missing values go either way.
        told = [name for name in COLUMNS if name != "missing_left"]
        n_same += all(np.array_equal(getattr(exact, name), getattr(binned, name)) for name in told)
    assert n_same >= 7  # of splits that are equally good rounding may choose another


def expect_best_cuts(tree, X, y, least, criterion):
    inside = {0: np.arange(len(X))}
    for v in range(tree.n_nodes):
        rows = inside[v]
        cuts = [
            cut[0]
            for cut in reference.iterate_cart_splits(
                X[rows], y[rows], np.ones(len(rows)), criterion
            )
            if least == 1
        ]
        if tree.left[v] < 0:
            assert not cuts or len(set(y[rows])) == 1
            continue
        left = np.array([reference.goes_left(tree, v, x) for x in X[rows]])
        assert min(left.sum(), (~left).sum()) >= least
        made = reference.compute_decrease(y[rows], np.ones(len(rows)), left, criterion)
        assert made >= max(cuts, default=made) - 1e-9 * (1 + abs(made))
        first = int(tree.left[v])
        inside[first], inside[first + 1] = rows[left], rows[~left]


@pytest.mark.parametrize("max_bins", [2, 3, 16, 254])
def test_bins_of_so_many_are_those_of_the_twin(max_bins):
    for seed, n_values in enumerate((max_bins, max_bins + 1, 10**6)):
        x = np.random.default_rng(seed).integers(0, n_values, 600) ** 2.0
        bins = Bins.from_table(x[:, None], max_bins=max_bins)
        assert bins.codes[0].tolist() == reference.assign_bins(x.tolist(), False, max_bins)
        assert bins.n_bins[0] <= max_bins


@pytest.mark.parametrize("max_bins", [2, 7, 255])
@pytest.mark.parametrize("numeric", [False, True])
def test_no_split_divides_a_bin(max_bins, numeric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=2000)
    tree = grow_cart(X, y if numeric else (y > 0).astype(int), max_bins=max_bins)
    bins = Bins.from_table(X, max_bins=max_bins)
    for v in np.flatnonzero(~tree.is_leaf):
        j = int(tree.feature[v])
        left = np.unique(bins.codes[j][X[:, j] <= tree.threshold[v]])
        assert not np.isin(left, bins.codes[j][X[:, j] > tree.threshold[v]]).any()
    assert tree.n_leaves > max_bins


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared"])
@pytest.mark.parametrize("switches", [{}, {"max_leaf_nodes": 20}, {"min_samples_leaf": 5}])
def test_order_threads_and_memory_of_rows_change_no_bit(criterion, switches):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + rng.normal(size=3000) > 0).astype(np.int32)
    answer = y + rng.normal(size=3000).round(3) if criterion == "squared" else y
    given = {"criterion": criterion, "max_bins": 64, **switches}
    tree = grow_cart(X, answer, **given)
    order = rng.permutation(3000)
    expect_same(tree, grow_cart(X[order], answer[order], n_jobs=2, **given))
    expect_same(tree, grow_cart(np.asfortranarray(X, dtype=np.float64), answer, **given))
    assert tree.n_leaves >= 20


@pytest.mark.parametrize("numeric", [False, True])
def test_repeated_rows_and_weights_differ_only_where_rows_are_counted(numeric):
    rng = np.random.default_rng(2)
    # So few values that each has a bin of its own, however often rows are repeated.
    X = rng.integers(0, 9, (900, 4)).astype(float)
    y = (X[:, 0] + rng.normal(size=900) > 4).astype(np.int32)
    y = y + rng.integers(0, 9, 900) / 8 if numeric else y
    weight = rng.integers(0, 4, 900).astype(float)
    rows = np.repeat(np.arange(900), weight.astype(int))
    weighed = grow_cart(X, y, sample_weight=weight, max_bins=32)
    repeated = grow_cart(X[rows], y[rows], max_bins=32)
    for name in ("feature", "threshold", "left"):  # missing values go where more rows are
        np.testing.assert_array_equal(getattr(weighed, name), getattr(repeated, name))
    assert weighed.n_leaves > 30
    few = grow_cart(X, y, sample_weight=weight, max_bins=32, min_samples_leaf=4)
    assert np.bincount(few.apply(X[weight > 0])).max() >= 4
    sizes = np.bincount(few.apply(X[weight > 0]), minlength=few.n_nodes)[few.is_leaf]
    assert sizes.min() >= 4


@pytest.mark.parametrize("numeric", [False, True])
def test_weights_move_splits_and_their_unit_does_not(numeric):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 2))
    y = (X[:, 0] + rng.normal(size=500) > 0).astype(np.int32)
    y = y * 1.5 if numeric else y
    weight = rng.random(500) + 0.1
    plain = grow_cart(X, y, max_bins=20)
    tree = grow_cart(X, y, sample_weight=weight, max_bins=20)
    for unit in (4.0, 0.3, 1e-4):
        expect_same(tree, grow_cart(X, y, sample_weight=weight * unit, max_bins=20))
    assert plain.n_nodes != tree.n_nodes or (plain.threshold != tree.threshold).any()


def test_numbers_far_from_0_lose_no_digits():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 50, 400).astype(float)
    expect_same(grow_cart(X, y, max_bins=50), grow_cart(X, y + 2.0**50, max_bins=50))


def test_folds_share_the_bins_of_all_rows():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000).astype(np.int32)
    rows, grower = TrainingSamples(X, y), Cart(max_bins=10)
    indices = np.flatnonzero(rng.random(1000) < 0.6)
    part = rows.select(indices)
    bins = Bins.from_table(X, max_bins=10)
    tree = grower.grow(part)
    assert "X" not in vars(part)  # rows of a part are not copied
    for v in np.flatnonzero(~tree.is_leaf):
        j = int(tree.feature[v])
        left = X[:, j] <= tree.threshold[v]
        assert bins.codes[j][left].max() < bins.codes[j][~left].min()
    np.testing.assert_array_equal(part.X, X[indices])
    few = TrainingSamples(X.round(1), y)
    tree = Cart(max_bins=255).grow(few.select(indices))
    alone = Cart(max_bins=255).grow(TrainingSamples(few.X[indices], y[indices]))
    # Thresholds lie in gaps between values of all rows, or of these alone.
    for name in ("feature", "left"):
        assert np.array_equal(getattr(tree, name), getattr(alone, name))
    assert np.array_equal(tree.apply(few.X[indices]), alone.apply(few.X[indices]))


def test_monotonic_constraints_hold():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(800, 2))
    y = (X[:, 0] + 2 * rng.normal(size=800) > 0).astype(np.int32)
    tree = grow_cart(X, y, max_bins=30, monotonic_cst=[1, 0])
    leaf = tree.apply(X)
    share = np.bincount(leaf, y, tree.n_nodes) / np.maximum(np.bincount(leaf), 1)
    for i in range(50):
        line = np.tile(X[i], (60, 1))
        line[:, 0] = np.linspace(-3, 3, 60)
        assert (np.diff(share[tree.apply(line)]) >= 0).all()
    assert tree.n_leaves > 10


@pytest.mark.parametrize("switches", [{"max_features": 1}, {"splitter": "random"}])
def test_what_is_drawn_depends_on_the_seed(switches):
    X, y = table(0, 300, n_values=30)
    grown = [grow_cart(X, y, max_bins=255, random_state=one, **switches) for one in (0, 0, 1)]
    expect_same(grown[0], grown[1])
    assert grown[0].n_nodes != grown[2].n_nodes or (grown[0].feature != grown[2].feature).any()


@pytest.mark.parametrize("seed", choose_seeds(40))
def test_a_split_that_lowers_the_impurity_by_less_is_not_made(seed):
    X, y = table(seed, 60)
    exact, binned = (
        grow_cart(X, y, criterion="gini", min_impurity_decrease=0.0213, max_bins=bins)
        for bins in (None, 255)
    )
    assert 1 < binned.n_leaves == exact.n_leaves < grow_cart(X, y, max_bins=255).n_leaves


@pytest.mark.parametrize("model", [PACBayesTreeClassifier, PACBayesTreeRegressor])
def test_prunings_of_the_tree_vote(model):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(3000, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=3000)
    y = y > 0 if model is PACBayesTreeClassifier else y
    train, new = slice(2000), slice(2000, None)
    binned, exact, stump = (
        model(grower, random_state=0).fit(X[train], y[train]).score(X[new], y[new])
        for grower in (Cart(max_bins=255), Cart(), Cart(max_leaf_nodes=2))
    )
    assert binned > max(exact - 0.03, stump + 0.2)


@pytest.mark.parametrize("max_bins", [1, 256, 2.5, True, "many"])
def test_numbers_of_bins_that_make_no_sense_are_refused(max_bins):
    with pytest.raises((ValueError, TypeError), match="max_bins"):
        grow_cart([[0.0], [1.0]], [0, 1], max_bins=max_bins)


@pytest.mark.parametrize(
    ("switches", "y", "match"),
    [
        ({"criterion": "misclassification"}, [0, 1], "criterion must be one of .* with max_bins"),
        ({"criterion": "absolute_error"}, [0.0, 1.5], "criterion must be one of .* with max_bins"),
        (
            {"min_weight_fraction_leaf": 0.1},
            [0, 1],
            "min_weight_fraction_leaf must be 0 with max_bins",
        ),
    ],
)
def test_what_sums_over_bins_do_not_tell_is_refused(switches, y, match):
    with pytest.raises(ValueError, match=match):
        grow_cart([[0.0], [1.0]], y, max_bins=16, **switches)


def test_more_than_two_classes_take_no_monotonic_constraints():
    with pytest.raises(
        ValueError, match="monotonic_cst must be None for more than two classes, got 3"
    ):
        grow_cart([[0.0], [1.0], [2.0]], [0, 1, 2], max_bins=16, monotonic_cst=[1])
