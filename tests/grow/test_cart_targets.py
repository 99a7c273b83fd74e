"""The greedy grower on several targets, against every split that there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import Cart, grow_cart, grow_dyadic, grow_kd
from certree.grow import TrainingSamples

CRITERIA = ["gini", "entropy", "squared"]


def table(seed, n=30, n_values=6):
    """Rows of few values, some missing; classes of three targets and numbers of two; weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (n, 3)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    score = np.nan_to_num(X) @ rng.normal(size=(3, 3)) + rng.normal(size=(n, 3))
    classes = np.stack([score[:, 0] > 0, (score[:, 1] > 0) + (score[:, 1] > 2), score[:, 2] > 0])
    numbers = score[:, :2] * [1.0, 300.0] + [0.0, 1e4]
    return X, classes.T.astype(int), numbers, rng.integers(1, 4, n).astype(float)


def in_deviations(numbers, weight):
    mean = np.average(numbers, axis=0, weights=weight)
    return (numbers - mean) / np.sqrt(np.average((numbers - mean) ** 2, axis=0, weights=weight))


def response(criterion, classes, numbers, weight):
    """What grows, and what the twin counts."""
    return (
        (numbers, in_deviations(numbers, weight)) if criterion == "squared" else (classes, classes)
    )


def cells(tree, X):
    inside = {0: np.arange(len(X))}
    for v in np.flatnonzero(tree.left >= 0):
        left = np.array([reference.goes_left(tree, v, x) for x in X[inside[v]]])
        inside[int(tree.left[v])], inside[int(tree.left[v]) + 1] = inside[v][left], inside[v][~left]
    return inside


def assert_same(a, b):
    for name in ("feature", "threshold", "left", "missing_left", "category_start", "categories"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("criterion", CRITERIA)
@given(st.integers(0, 10**6), st.booleans())
def test_every_split_is_the_best_of_all_splits(criterion, seed, weighted):
    X, classes, numbers, weight = table(seed)
    weight = weight if weighted else np.ones(len(X))
    y, counted = response(criterion, classes, numbers, weight)
    tree = grow_cart(X, y, criterion=criterion, sample_weight=weight)
    for v, inside in cells(tree, X).items():
        part = X[inside], counted[inside], weight[inside]
        cuts = [cut[0] for cut in reference.iterate_cart_splits(*part, criterion)]
        if tree.left[v] < 0:
            assert not cuts or (y[inside] == y[inside[0]]).all() or weight[inside].sum() <= 1
            continue
        left = np.array([reference.goes_left(tree, v, x) for x in part[0]])
        made = reference.compute_decrease(*part[1:], left, criterion)
        assert made >= max(cuts) - 1e-8 * (1 + abs(max(cuts)))


@pytest.mark.parametrize("criterion", CRITERIA)
@given(st.integers(0, 10**6), st.booleans())
def test_every_division_of_categories_is_the_best_of_all(criterion, seed, weighted):
    X, classes, numbers, weight = table(seed, n_values=5)
    weight = weight if weighted else np.ones(len(X))
    y, counted = response(criterion, classes, numbers, weight)
    tree = grow_cart(
        X, y, criterion=criterion, sample_weight=weight, categorical_features=[0, 1, 2]
    )
    assert tree.optimal_splits
    for v, inside in cells(tree, X).items():
        if tree.left[v] < 0:
            continue
        part = X[inside], counted[inside], weight[inside]
        cuts = [
            cut[0]
            for x in part[0].T
            for cut in reference.iterate_category_splits(x, *part[1:], criterion)
        ]
        left = np.array([reference.goes_left(tree, v, x) for x in part[0]])
        made = reference.compute_decrease(*part[1:], left, criterion)
        assert made >= max(cuts) - 1e-8 * (1 + abs(max(cuts)))


@pytest.mark.parametrize("criterion", ["gini", "squared"])
def test_many_categories_are_divided_along_the_first_principal_component(criterion):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 30, 900).astype(float)
    classes = np.column_stack([rng.random(900) < x / 30, rng.random(900) < x % 10 / 10]).astype(int)
    numbers = classes * [1.0, 20.0] + rng.normal(size=(900, 2)) * [0.3, 6.0]
    y, counted = response(criterion, classes, numbers, np.ones(900))
    tree = grow_cart(x[:, None], y, criterion=criterion, categorical_features=[0], max_depth=1)
    assert tree.optimal_splits is False
    scores = reference.compute_principal_scores(x, counted, np.ones(900))
    cuts = reference.iterate_prefix_splits(x, counted, np.ones(900), criterion, scores)
    left = np.array([reference.goes_left(tree, 0, row) for row in x[:, None]])
    made = reference.compute_decrease(counted, np.ones(900), left, criterion)
    assert made == pytest.approx(max(cut[0] for cut in cuts), rel=1e-6)


def test_categories_that_tell_no_more_than_chance_are_passed_over():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 40, 400).astype(float)
    for y in (rng.normal(size=(400, 2)), rng.integers(0, 3, (400, 2))):
        assert grow_cart(x[:, None], y, categorical_features=[0]).n_leaves == 1
        y[:, 1] += (10 * (x > 20)).astype(y.dtype)
        tree = grow_cart(x[:, None], y, categorical_features=[0])
        assert tree.n_leaves > 1
        for v, inside in cells(tree, x[:, None]).items():
            counted = in_deviations(y, np.ones(400)) if y.dtype == float else y
            known = reference.differs_beyond_chance(
                x[inside], counted[inside], np.ones(len(inside))
            )
            assert known or tree.left[v] < 0


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"max_leaf_nodes": 9},
        {"splitter": "random"},
        {"max_features": 1},
        {"min_samples_leaf": 5},
        {"categorical_features": [2]},
    ],
    ids=str,
)
def test_rows_targets_and_threads_in_whatever_order_grow_one_tree(criterion, switches):
    for seed in range(3):
        X, classes, numbers, weight = table(seed, 200, 40)
        y = numbers if criterion == "squared" else classes
        rng = np.random.default_rng(seed)
        order, columns = rng.permutation(200), rng.permutation(y.shape[1])
        how = {"criterion": criterion, "random_state": 0, **switches}
        tree = grow_cart(X, y, sample_weight=weight, **how)
        targets = grow_cart(X, y[:, columns], sample_weight=weight, n_jobs=2, **how)
        assert_same(tree, targets)
        assert_same(tree, grow_cart(X[order], y[order], sample_weight=weight[order], **how))
        # What is chance, and how large leaves are, goes by rows.
        if not {"categorical_features", "min_samples_leaf"} & set(switches):
            copied = np.repeat(np.arange(200), weight.astype(int))
            look = TrainingSamples.from_arrays(X, y).feature_order  # copies may tell another one
            rows = TrainingSamples.from_arrays(
                X[copied], y[copied], random_state=0, compute_feature_order=lambda o=look: o
            )
            assert_same(tree, Cart(criterion, **switches).grow(rows))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_large_tables_grow_the_same_tree_in_threads_and_parts(criterion):
    X, classes, numbers, _ = table(0, 20_000, 3000)
    y = numbers if criterion == "squared" else classes
    tree = grow_cart(X, y, criterion=criterion)
    assert_same(tree, grow_cart(X, y, criterion=criterion, n_jobs=2))
    order = np.argsort(leaf := tree.apply(X), kind="stable")
    for inside in np.split(order, np.cumsum(np.bincount(leaf))[:-1]):
        is_pure = (y[inside] == y[inside[:1]]).all()
        assert is_pure or np.array_equal(X[inside], X[inside[[0] * len(inside)]], equal_nan=True)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_copies_of_a_target_grow_its_tree(criterion):
    X, classes, numbers, _ = table(3, 100, 60)
    y = np.rint(numbers) if criterion == "squared" else classes
    alone = grow_cart(X, y[:, 1], criterion=criterion, max_depth=4)
    assert_same(alone, grow_cart(X, y[:, [1, 1]], criterion=criterion, max_depth=4))
    assert_same(alone, grow_cart(X, y[:, 1:2].ravel(), criterion=criterion, max_depth=4))


def test_units_of_numbers_do_not_matter():
    X, _, numbers, weight = table(0, 200, 60)
    tree = grow_cart(X, numbers, sample_weight=weight)
    for unit in ([1024.0, 2.0**-300], [2.0**300, 1.0]):
        assert_same(tree, grow_cart(X, numbers * unit, sample_weight=weight))
    other = grow_cart(X, numbers * [1000.0, 0.3], sample_weight=weight)
    assert (tree.threshold[:9] == other.threshold[:9]).all()


def test_a_smallest_decrease_is_that_of_the_mean_impurity():
    X, classes, numbers, _ = table(0, 200, 60)
    for y, criterion in ((classes, "gini"), (numbers, "squared")):
        _, counted = response(criterion, classes, numbers, np.ones(200))
        tree = grow_cart(X, y, criterion=criterion, min_impurity_decrease=0.02)
        assert 1 < tree.n_leaves < grow_cart(X, y, criterion=criterion).n_leaves
        for v, inside in cells(tree, X).items():
            if tree.left[v] < 0:
                continue
            left = np.array([reference.goes_left(tree, v, x) for x in X[inside]])
            gain = reference.compute_decrease(
                counted[inside], np.ones(len(inside)), left, criterion
            )
            assert gain / 200 >= 0.02 - 1e-9


def test_a_target_that_never_varies_changes_nothing():
    X, classes, numbers, _ = table(0, 100, 60)
    for y in (classes, np.rint(numbers)):
        same = np.full((100, 1), 7, dtype=y.dtype)
        assert_same(
            grow_cart(X, np.hstack([y[:, :1], same])), grow_cart(X, np.hstack([y[:, :1], y[:, :1]]))
        )
        assert grow_cart(X, np.hstack([same, same])).n_nodes == 1


def test_other_growers_stop_where_no_target_varies():
    X = np.arange(8.0)[:, None]
    y = np.column_stack([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1, 1]])
    for grow in (grow_kd, grow_dyadic):
        for targets in (y, y * 1.5):
            assert grow(X, targets).n_leaves == 3
            assert grow(X, targets[:, 0]).n_leaves == 2


@pytest.mark.parametrize(
    ("kind", "switches", "message"),
    [
        (
            "classes",
            {"criterion": "misclassification"},
            "for several targets, got 'misclassification' and y with",
        ),
        (
            "numbers",
            {"criterion": "absolute_error"},
            "for several targets, got 'absolute_error' and y with",
        ),
        ("numbers", {"criterion": "poisson"}, "for several targets, got 'poisson' and y with 2"),
        ("numbers", {"monotonic_cst": [1, 0, 0]}, "monotonic_cst must be None for several targets"),
        (
            "classes",
            {"max_bins": 8},
            "max_bins must be None for several targets, got 8 and y with 2",
        ),
    ],
)
def test_what_takes_one_target_says_so(kind, switches, message):
    X, classes, numbers, _ = table(0)
    with pytest.raises(ValueError, match=message):
        grow_cart(X, classes[:, :2] if kind == "classes" else numbers, **switches)


def test_a_target_that_differs_in_rows_of_hardly_any_weight_splits_nothing():
    X, _, numbers, _ = table(0)
    flat = np.zeros(len(X))
    flat[0] = 1.0
    weight = np.ones(len(X))
    weight[0] = 1e-300
    both = np.column_stack([numbers[:, 0], flat])
    tree = grow_cart(X, both, sample_weight=weight, max_depth=2)
    assert tree.n_nodes > 1


def test_what_is_no_target_is_refused():
    X, classes, numbers, _ = table(0)
    with pytest.raises(ValueError, match=r"y must have shape \(30, any\), got \(29, 3\)"):
        grow_cart(X, classes[1:])
    with pytest.raises(ValueError, match=r"y must have shape \(30\), got \(30, 1, 1\)|shape"):
        grow_cart(X, classes[:, :1, None])
    with pytest.raises(ValueError, match="y must be finite"):
        grow_cart(X, np.where(numbers > 0, np.nan, numbers))
    with pytest.raises(ValueError, match=r"y must hold classes 0, 1, \.\.\., got -1"):
        grow_cart(X, classes - 1)
    with pytest.raises(TypeError, match=r"y must convert to int32 .* needs classes"):
        grow_cart(X, numbers, criterion="gini")
    assert TrainingSamples.from_arrays(X, classes).n_targets == 3
    assert Cart().grow(TrainingSamples.from_arrays(X, classes[:, 0])).n_nodes > 1
