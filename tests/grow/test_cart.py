"""The greedy grower against every split that there is."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kstest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.fixes import parse_version

import certree
import reference
from certree import Cart, _core, grow_cart
from certree.grow import TrainingSamples
from certree.grow.cart import _draw_key
from certree.rows.draw_order import sum_encoded_table
from run_length import choose_seeds
from strategies import categorical_rows, rows

OF_NUMBERS = ["squared", "absolute_error", "poisson"]
CRITERIA = ["gini", "entropy", "misclassification", *OF_NUMBERS]


def cells(tree, X):
    """Rows of every node."""
    inside = {0: np.arange(len(X))}
    for v in range(tree.n_nodes):
        if tree.left[v] < 0:
            continue
        left = np.array([reference.goes_left(tree, v, x) for x in X[inside[v]]])
        inside[int(tree.left[v])] = inside[v][left]
        inside[int(tree.left[v]) + 1] = inside[v][~left]
    return inside


def assert_same_tree(a, b):
    for name in ("feature", "threshold", "left", "missing_left", "category_start", "categories"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.optimal_splits == b.optimal_splits


@given(rows(max_rows=20), st.sampled_from(CRITERIA), st.booleans())
def test_every_split_is_the_best_of_all_splits(X_y, criterion, weighted):
    X, y = X_y
    X = np.where(abs(X) > 1e200, 17.0, X)
    weight = np.random.default_rng(len(X)).integers(1, 4, len(X)).astype(float)
    weight = weight if weighted else np.ones(len(X))
    assume(criterion != "poisson" or y.any())
    assert_every_cut_is_the_best(X, y * 1.5 if criterion in OF_NUMBERS else y, weight, criterion)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3])
@given(st.integers(0, 10**6))
def test_every_split_of_few_values_is_the_best_of_all_splits(n_classes, criterion, seed):
    X, y = few_values(seed, 60, n_classes)
    response = y * 1.5 if criterion in OF_NUMBERS else y
    assert_every_cut_is_the_best(X, response, np.ones(60), criterion)


def few_values(seed, n, n_classes):
    """Flags, counts, a constant and numbers, and classes that some of them decide."""
    rng = np.random.default_rng(seed)
    X = rng.poisson([0.05, 0.3, 0.7, 3, 0, 9], (n, 6)) * [1.0, -1.0, 0.1, 2.0, 1.0, 1.0]
    X[:, 5] += rng.normal(size=n).round(1)
    y = np.minimum((X[:, 0] - X[:, 1] + rng.random(n)).astype(int), n_classes - 1)
    return X, y


def assert_every_cut_is_the_best(X, response, weight, criterion):
    weighted = (weight != 1).any()
    tree = grow_cart(X, response, criterion=criterion, sample_weight=weight)
    worth = np.full(X.shape[1], -np.inf)  # of each feature at the root
    for gain, j, *_ in reference.iterate_cart_splits(X, response, weight, criterion):
        worth[j] = max(worth[j], gain)
    for v, inside in cells(tree, X).items():
        cuts = list(
            reference.iterate_cart_splits(X[inside], response[inside], weight[inside], criterion)
        )
        if tree.left[v] < 0:
            assert not cuts or len(set(response[inside])) == 1 or weight[inside].sum() <= 1
            continue
        best = max(cut[0] for cut in cuts)
        tied = [cut for cut in cuts if cut[0] >= best - 1e-9 * (1 + abs(best))]
        made = next(
            cut
            for cut in cuts
            if cut[1] == tree.feature[v]
            and reference.place_threshold(X[:, cut[1]], cut[2]) == tree.threshold[v]
            and (cut[3] == tree.missing_left[v] or not np.isnan(X[inside, cut[1]]).any())
        )
        assert made[0] >= best - 1e-9 * (1 + abs(best))
        if criterion in ("gini", "misclassification") and not weighted:
            # Exact counts: of equal splits that of the feature worth most at the root, then the first.
            classes = [[int(one)] for one in response]
            order = reference.order_columns(*reference.sum_columns(X, classes, [None] * X.shape[1]))
            places = {j: (-round(worth[j], 9), order.index(j)) for j in order}
            assert made[1] == min((cut[1] for cut in tied), key=places.get)


@given(rows(max_rows=40), st.permutations(range(3)), st.sampled_from(["gini", "entropy"]))
def test_the_tree_does_not_depend_on_the_order_of_features(X_y, order, criterion):
    X, y = X_y
    X = np.where(abs(X) > 1e200, 17.0, X)
    order = [j for j in order if j < X.shape[1]]
    tree, other = (grow_cart(each, y, criterion=criterion) for each in (X, X[:, order]))
    worth = [
        max(
            (
                cut[0]
                for cut in reference.iterate_cart_splits(X[:, [j]], y, np.ones(len(y)), criterion)
            ),
            default=0,
        )
        for j in range(X.shape[1])
    ]
    assume(len(set(np.round(worth, 9))) == len(worth))
    np.testing.assert_array_equal(tree.apply(X), other.apply(X[:, order]))
    inner = ~tree.is_leaf
    np.testing.assert_array_equal(tree.feature[inner], np.array(order)[other.feature[inner]])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("criterion", CRITERIA)
@given(st.data(), st.booleans())
def test_every_division_of_categories_is_the_best_of_all(criterion, n_classes, data, weighted):
    X, y = data.draw(categorical_rows(n_classes=n_classes))
    weight = np.random.default_rng(len(X)).integers(1, 4, len(X)).astype(float)
    weight = weight if weighted else np.ones(len(X))
    assume(criterion != "poisson" or y.any())  # which takes no zeros alone
    response = y * 1.5 if criterion in OF_NUMBERS else y
    tree = grow_cart(
        X, response, criterion=criterion, sample_weight=weight, categorical_features=[0, 2]
    )
    assert tree.optimal_splits is True or criterion in ("poisson", "absolute_error")
    for v, inside in cells(tree, X).items():
        here, answer, w = X[inside], response[inside], weight[inside]
        cuts = [cut[0] for cut in reference.iterate_cart_splits(here[:, [1]], answer, w, criterion)]
        for j in (0, 2):
            cuts += [cut[0] for cut in divisions(here[:, j], answer, w, criterion)]
        if tree.left[v] < 0:
            assert not cuts or len(set(answer)) == 1 or w.sum() <= 1
            continue
        left = np.array([reference.goes_left(tree, v, x) for x in here])
        made = reference.compute_decrease(answer, w, left, criterion)
        assert made >= max(cuts) - 1e-9 * (1 + abs(max(cuts)))
        members = tree.category_set(v)
        if tree.feature[v] == 1:
            assert len(members) == 0
            continue
        seen = here[:, tree.feature[v]]
        present = set(seen[~np.isnan(seen)])
        assert set(members) <= present
        if not np.isnan(seen).any():
            assert tree.missing_left[v] == (w[left].sum() > w[~left].sum())
        for code in {-1.0, *range(6)} - present:
            row = np.where(np.arange(3) == tree.feature[v], code, 0.0)
            assert reference.goes_left(tree, v, row) == (w[left].sum() >= w[~left].sum())


def divisions(x, y, w, criterion):
    """Those of a node's categories that are compared: all, or those of an order."""
    x = np.nan_to_num(x, nan=99)
    mean = {c: np.average(y[x == c], weights=w[x == c]) for c in np.unique(x)}
    if criterion == "absolute_error" or (criterion == "poisson" and 0 in mean.values()):
        return list(reference.iterate_prefix_splits(x, y, w, criterion, mean))
    return list(reference.iterate_category_splits(x, y, w, criterion))


def many_categories(seed, criterion):
    """Rows of two features of many categories, of which the first one matters, and a number."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 200))
    X = np.column_stack([*rng.integers(0, [[12], [40]], (2, n)), rng.normal(size=n).round(1)])
    X[rng.random(X.shape) < 0.05] = np.nan
    effect = rng.normal(size=13)[np.nan_to_num(X[:, 0], nan=12).astype(int)]
    y = effect + np.nan_to_num(X[:, 2]) + rng.normal(size=n)
    return X, y - y.min() if criterion in OF_NUMBERS else (y > 0).astype(int)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", choose_seeds(6))
def test_many_categories_are_divided_if_chance_does_not_explain_them(criterion, seed):
    X, y = many_categories(seed, criterion)
    weight = np.random.default_rng(seed).choice([0.3, 1.0, 2.5] if seed % 2 else [1.0], len(y))
    tree = grow_cart(X, y, criterion=criterion, sample_weight=weight, categorical_features=[0, 1])
    passed_over = 0
    for v, inside in cells(tree, X).items():
        here, answer, w = X[inside], y[inside], weight[inside]
        if len(inside) == 1 or len(set(answer)) == 1:
            continue
        cuts = [cut[0] for cut in reference.iterate_cart_splits(here[:, [2]], answer, w, criterion)]
        for j in (0, 1):
            if not reference.differs_beyond_chance(here[:, j], answer, w):
                passed_over += 1
                continue
            x = np.nan_to_num(here[:, j], nan=99)
            mean = {c: np.average(answer[x == c], weights=w[x == c]) for c in np.unique(x)}
            found = reference.iterate_prefix_splits(x, answer, w, criterion, mean)
            cuts += [gain for gain, _ in found]
        if tree.left[v] < 0:
            assert not cuts or max(w.sum(), len(w)) < 2
            continue
        left = np.array([reference.goes_left(tree, v, x) for x in here])
        slack = 1e-9 * (1 + max(cuts))
        made = reference.compute_decrease(answer, w, left, criterion)
        assert made == pytest.approx(max(cuts), abs=slack)
    assert passed_over


@pytest.mark.parametrize("criterion", CRITERIA)
def test_trees_of_many_categories_depend_neither_on_the_order_of_rows_nor_on_units(criterion):
    X, y = many_categories(7, criterion)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    order = np.random.default_rng(2).permutation(len(y))
    switches = {"criterion": criterion, "categorical_features": [0, 1]}
    tree = grow_cart(X, y, sample_weight=weight, **switches)
    assert_same_tree(tree, grow_cart(X[order], y[order], sample_weight=weight[order], **switches))
    assert_same_tree(tree, grow_cart(X, y, sample_weight=weight * 2.0**-40, **switches))
    if criterion in OF_NUMBERS:
        assert_same_tree(tree, grow_cart(X, y * 2.0**30, sample_weight=weight, **switches))


def test_a_category_of_each_row_tells_nothing():
    x = np.arange(400.0)[:, None]
    assert grow_cart(x, np.arange(400) % 2, categorical_features=[0]).n_leaves == 1
    assert grow_cart(x, np.arange(400) * 1.5, categorical_features=[0]).n_leaves == 1


@pytest.mark.parametrize("n_categories", [50, 500, 4000])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared"])
def test_random_categories_do_not_beat_what_matters(criterion, n_categories):
    rng = np.random.default_rng(n_categories)
    X = np.column_stack([rng.normal(size=2000), rng.integers(0, n_categories, 2000)])
    y = (X[:, 0] + 2 * rng.normal(size=2000) > 0) + 0
    response = y.astype(float) if criterion in OF_NUMBERS else y
    tree = grow_cart(X, response, criterion=criterion, categorical_features=[1], max_depth=2)
    assert tree.feature[~tree.is_leaf].tolist() == [0, 0, 0]


def test_sets_of_four_categories_are_divided_in_all_seven_ways():
    x, y = np.array([0.0, 1, 2, 3]), np.array([7.0, 6, 8, 3])
    cuts = list(reference.iterate_category_splits(x, y, np.ones(4), "squared"))
    assert len(cuts) == 7
    tree = grow_cart(x[:, None], y, criterion="squared", categorical_features=[0], max_depth=1)
    gain, left = max(cuts, key=lambda cut: cut[0])
    assert reference.compute_impurity(y, np.ones(4), "squared") - gain == 2
    assert (tree.apply(x[:, None]) == tree.apply([[0.0]])).tolist() == left.tolist()
    assert tree.category_set(0).tolist() == [3]
    assert tree.apply([[np.nan], [17.0], [-1.0], [0.5], [1e300]]).tolist() == [2] * 5


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
@pytest.mark.parametrize("seed", range(5))
def test_many_categories_of_many_classes_are_divided_along_their_principal_component(
    criterion, seed
):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 40, 2000).astype(float)
    share = rng.dirichlet(np.ones(4), 40).cumsum(axis=1)
    y = (rng.random((2000, 1)) > share[x.astype(int)]).sum(axis=1)
    tree = grow_cart(x[:, None], y, criterion=criterion, categorical_features=[True], max_depth=1)
    assert tree.optimal_splits is False
    w = np.ones(len(x))
    cuts = reference.iterate_prefix_splits(
        x, y, w, criterion, reference.compute_principal_scores(x, y, w)
    )
    made = reference.compute_decrease(y, w, tree.apply(x[:, None]) == 1, criterion)
    assert made == pytest.approx(max(cut[0] for cut in cuts), rel=1e-9)


def test_twelve_groups_of_many_classes_are_divided_in_every_way():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 12, 600).astype(float)
    share = rng.dirichlet(np.ones(5), 12).cumsum(axis=1)
    y = (rng.random((600, 1)) > share[x.astype(int)]).sum(axis=1)
    for criterion in ("gini", "entropy"):
        tree = grow_cart(x[:, None], y, criterion=criterion, categorical_features=[0], max_depth=1)
        assert tree.optimal_splits is True
        best = max(
            cut[0] for cut in reference.iterate_category_splits(x, y, np.ones(600), criterion)
        )
        made = reference.compute_decrease(y, np.ones(600), tree.apply(x[:, None]) == 1, criterion)
        assert made == pytest.approx(best, rel=1e-9)


def test_any_number_of_pure_categories_counts_as_one_per_class():
    x = np.repeat(np.arange(400.0), 5)
    tree = grow_cart(x[:, None], x.astype(int) % 5, categorical_features=[0])
    assert tree.optimal_splits is True
    assert tree.n_leaves == 5
    assert max(len(tree.category_set(v)) for v in range(tree.n_nodes)) <= 200


@given(categorical_rows(), st.integers(0, 50), st.sampled_from(CRITERIA[:3]))
def test_row_order_and_copies_do_not_matter_to_categories(X_y, seed, criterion):
    X, y = X_y
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, len(X))
    order = rng.permutation(weight.sum())
    categories = {"categorical_features": [0, 2]}
    a = as_columns_stand(X, y, weight, criterion, **categories)
    copies = np.repeat(X, weight, 0)[order], np.repeat(y, weight)[order]
    assert_same_tree(a, as_columns_stand(*copies, None, criterion, **categories))


def as_columns_stand(X, y, weight=None, criterion=None, **how):
    """A tree whose columns are compared as they stand: copies may tell another order than weights."""
    order = np.arange(X.shape[1], dtype=np.int32)
    return Cart(criterion).grow(
        TrainingSamples.from_arrays(X, y, weight, compute_feature_order=lambda: order, **how)
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_categories_that_only_interact_are_separated(n_classes):
    values = np.arange(float(n_classes))
    X = np.array([[a, b] for a in values for b in values])
    y = X.sum(axis=1).astype(int) % n_classes
    tree = grow_cart(X, y, categorical_features=[0, 1])
    assert certree.count(tree, X, y, n_classes).errors[tree.is_leaf].sum() == 0


def test_ten_thousand_categories_are_cheap():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 10_000, 60_000)
    good = rng.random(10_000) < 0.5
    y = (good[x] ^ (rng.random(len(x)) < 0.1)).astype(int)
    tree = grow_cart(x[:, None], y, categorical_features=[0], max_depth=1)
    sides = tree.apply(np.arange(10_000.0)[:, None])
    assert np.mean((sides == 2) == good) > 0.95
    assert len(tree.categories) <= 10_000


@pytest.mark.parametrize("value", [-1.0, 0.5, 2.0**24, 2.0**32 - 1, 2.0**32, 1e30])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_no_category_is_refused(value, dtype):
    X = np.array([[value], [0]], dtype=dtype)
    with pytest.raises(ValueError, match=r"categories must be whole numbers in 0 \.\. 167"):
        grow_cart(X, [0, 1], categorical_features=[0])


@given(rows(), st.sampled_from(CRITERIA[:-1]))
def test_full_growth_separates_all_that_can_be_separated(X_y, criterion):
    X, y = X_y
    tree = grow_cart(X, y.astype(float) if criterion in OF_NUMBERS else y, criterion=criterion)
    assert tree.n_nodes <= 2 * len(X) - 1
    stats = certree.count(tree, X, y, 3)
    comparable = np.where(np.isnan(X), np.inf, X)
    _, group = np.unique(comparable, axis=0, return_inverse=True)
    table = np.zeros((group.max() + 1, 3))
    np.add.at(table, (group.ravel(), y), 1)
    assert stats.errors[tree.is_leaf].sum() == (table.sum(axis=1) - table.max(axis=1)).sum()


@given(rows(), st.sampled_from(CRITERIA))
def test_the_criterion_is_that_of_the_target_unless_given(X_y, criterion):
    X, y = X_y
    X = np.where(abs(X) > 1e200, 17.0, X)
    assert_same_tree(grow_cart(X, y), grow_cart(X, y, criterion="entropy"))
    numbers = y * 1.5
    assert_same_tree(grow_cart(X, numbers), grow_cart(X, numbers, criterion="squared"))
    if criterion in OF_NUMBERS and (criterion != "poisson" or y.any()):
        tree = grow_cart(X, y.astype(float), criterion=criterion)
        assert_same_tree(tree, grow_cart(X, y, criterion=criterion))
    for ours, theirs in (("entropy", "log_loss"), ("squared", "squared_error")):
        assert_same_tree(grow_cart(X, y, criterion=ours), grow_cart(X, y, criterion=theirs))


@pytest.mark.parametrize("criterion", CRITERIA)
@given(X_y=rows(), seed=st.integers(0, 50))
def test_rows_of_weight_zero_are_as_if_absent(criterion, X_y, seed):
    X, y = X_y
    weight = np.random.default_rng(seed).integers(0, 3, len(X)).astype(float)
    weight[0] = 1
    here = weight > 0
    assume(criterion != "poisson" or y[here].any())  # which takes no zeros alone
    switches = {"criterion": criterion, "min_impurity_decrease": 0.01}
    assert_same_tree(
        grow_cart(X, y, sample_weight=weight, **switches),
        grow_cart(X[here], y[here], sample_weight=weight[here], **switches),
    )


@given(rows(), st.integers(0, 50))
def test_row_order_and_copies_do_not_matter(X_y, seed):
    X, y = X_y
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, len(X))
    order = rng.permutation(weight.sum())
    # Errors are exact. Of splits of equal entropy rounding decides, and weights round otherwise.
    criterion = "misclassification"
    a = as_columns_stand(X, y, weight, criterion)
    copies = np.repeat(X, weight, 0)[order], np.repeat(y, weight)[order]
    assert_same_tree(a, as_columns_stand(*copies, None, criterion))


def test_of_equally_good_splits_copies_make_the_one_that_weights_make():
    # {5, 5, 6} | {7, 7} and {5, 5} | {6, 7, 7} are equally good: rounding decides, and so does the
    # value that distances are taken from.
    y, weight = np.array([12.0, 5.0, 6.0, 7.0, 9.0]), np.array([3, 2, 1, 2, 3])
    X = np.arange(5.0)[:, None]
    weighed = grow_cart(X, y, sample_weight=weight)
    assert_same_tree(weighed, grow_cart(np.repeat(X, weight, 0), np.repeat(y, weight)))


@pytest.mark.threads
@pytest.mark.parametrize("criterion", CRITERIA)
def test_threads_do_not_change_a_bit(criterion):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40_000, 4)).round(3)
    y = rng.integers(0, 3, 40_000)
    response = rng.exponential(size=40_000) if criterion in OF_NUMBERS else y
    X = np.column_stack([X, rng.integers(0, [5, 40, 3000], (40_000, 3))])
    X[rng.random(X.shape) < 0.02] = np.nan
    switches = {"criterion": criterion, "categorical_features": [4, 5, 6]}
    a = grow_cart(X, response, **switches)
    b = grow_cart(X, response, **switches, n_jobs=2)
    assert_same_tree(a, b)


@pytest.mark.threads
@pytest.mark.parametrize("criterion", CRITERIA[:3])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [50, 900, 40_000])
def test_features_of_few_values_grow_like_those_in_an_order(n, n_classes, criterion):
    X, y = few_values(n, n, n_classes)
    counted = grow_cart(X, y, criterion=criterion)
    assert_same_tree(counted, grow_cart(X, y, criterion=criterion, n_jobs=2))
    # Rows that weigh are never counted by value.
    ordered = grow_cart(X, y, criterion=criterion, sample_weight=np.full(n, 2.0))
    assert_same_tree(counted, ordered)


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
        cut: reference.compute_impurity(y[left], np.ones(left.sum()), "squared")
        + reference.compute_impurity(y[~left], np.ones((~left).sum()), "squared")
        for _, _, cut, _, left in reference.iterate_cart_splits(X, y, np.ones(4), "squared")
    }
    assert list(losses.values()) == pytest.approx([12.667, 13, 2], abs=1e-3)
    tree = grow_cart(X, y, criterion="squared", max_depth=1)
    assert tree.threshold[0] == 6.0
    # Eight points, seven of one class: before, and after a split in the middle.
    y = np.array([0, 0, 0, 0, 0, 0, 0, 1])
    expected = {
        "entropy": (0.544, 0.406),
        "gini": (0.219, 0.1875),
        "misclassification": (0.125,) * 2,
    }
    for criterion, (before, after) in expected.items():
        unit = np.log(2) if criterion == "entropy" else 1
        halves = [
            reference.compute_impurity(y[h], np.ones(4), criterion) for h in (slice(4), slice(4, 8))
        ]
        assert reference.compute_impurity(y, np.ones(8), criterion) / 8 / unit == pytest.approx(
            before, abs=1e-3
        )
        assert sum(halves) / 8 / unit == pytest.approx(after, abs=1e-3)


def test_worked_examples_of_splits_that_misclassification_cannot_choose():
    # Four points each at 2, 4 and 6, of which 1, 2 and 1 are not of the majority.
    x = np.repeat([2.0, 4, 6], 4)
    y = np.array([0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1])

    def errors(*sides):
        return sum(
            reference.compute_impurity(y[s], np.ones(s.sum()), "misclassification") for s in sides
        )

    assert errors(x > 0) == 6
    cuts = list(reference.iterate_cart_splits(x[:, None], y, np.ones(12), "misclassification"))
    assert [errors(left, ~left) for *_, left in cuts] == [4, 4]
    assert grow_cart(x[:, None], y, criterion="misclassification", max_depth=1).threshold[0] == 3.0
    # The same as three categories: one of the three divisions is no better than none.
    divided = [errors(x == value, x != value) for value in (2, 4, 6)]
    assert divided == [4, 6, 4]
    gains = [
        gain
        for gain, _ in reference.iterate_category_splits(x, y, np.ones(12), "misclassification")
    ]
    assert sorted(gains) == pytest.approx([0, 2, 2])


def test_missing_values_take_the_child_they_belong_to():
    X = np.array([[0.0], [1], [2], [3], [np.nan], [np.nan]])
    tree = grow_cart(X, [0, 0, 1, 1, 0, 0])
    assert tree.n_leaves == 2
    assert tree.missing_left[0]
    tree = grow_cart(X, [0, 0, 1, 1, 1, 1])
    assert tree.n_leaves == 2
    assert not tree.missing_left[0]
    apart = grow_cart(X, [0, 0, 0, 0, 1, 1])
    assert apart.apply(X).tolist() == [1, 1, 1, 1, 2, 2]


def test_values_missing_at_prediction_only_go_to_the_larger_child():
    X = np.arange(5.0)[:, None]
    assert grow_cart(X, [0, 0, 0, 1, 1]).apply([[np.nan]]) == 1
    assert grow_cart(X, [0, 0, 1, 1, 1]).apply([[np.nan]]) == 2


def test_of_equal_splits_of_a_feature_the_lowest_is_made():
    X = np.array([[0.0], [1], [2], [3]])
    for criterion in ("gini", "entropy", "misclassification"):
        assert grow_cart(X, [0, 1, 1, 0], criterion=criterion).threshold[0] == 0.5
    assert grow_cart(X, [0.0, 1, 1, 0], criterion="squared").threshold[0] == 0.5


@pytest.mark.parametrize("criterion", CRITERIA)
def test_splits_that_gain_less_over_all_rows_are_not_made(criterion):
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(150, 3)), rng.integers(0, 2, 150), np.ones(150)
    least = 1.5 if criterion == "misclassification" else 0.61
    tree = grow_cart(X, y, criterion=criterion, min_impurity_decrease=least / 150)
    for v, inside in cells(tree, X).items():
        cuts = reference.iterate_cart_splits(X[inside], y[inside], w[inside], criterion)
        best = max((cut[0] for cut in cuts), default=0.0)
        assert (best >= least) == (tree.left[v] >= 0)
    assert 1 < tree.n_leaves < 150


@pytest.mark.parametrize("criterion", ["gini", "squared"])
@pytest.mark.parametrize("weighted", [False, True])
def test_switches_with_names_of_scikit_learn_mean_what_they_mean_there(criterion, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X))
    weight = rng.uniform(0.5, 3, len(X)) if weighted else None
    y = signal.astype(float) if criterion in OF_NUMBERS else (signal > 0).astype(int)
    model = DecisionTreeRegressor if criterion in OF_NUMBERS else DecisionTreeClassifier
    switches = {"min_impurity_decrease": 0.002}
    if not weighted:  # where certree counts rows it counts weights
        switches["min_samples_split"] = 30
    for limit in (None, 15):
        switches["max_leaf_nodes"] = limit
        tree = grow_cart(X, y, criterion=criterion, sample_weight=weight, **switches)
        # Its random state decides between equal splits.
        theirs = [
            model(**switches, random_state=seed).fit(X, y, sample_weight=weight)
            for seed in range(10)
        ]
        pairs = [len(set(zip(tree.apply(X), one.apply(X), strict=True))) for one in theirs]
        assert 10 < min(pairs) == tree.n_leaves
        assert theirs[int(np.argmin(pairs))].get_n_leaves() == tree.n_leaves


# -- how much lies on either side of a cut


def least_sides():
    return st.tuples(st.sampled_from([1, 2, 3, 0.2, 0.4]), st.sampled_from([0.0, 0.1, 0.25, 0.5]))


@pytest.mark.parametrize("criterion", CRITERIA)
@given(
    categorical_rows(),
    least_sides(),
    st.sampled_from([[1.0], [1.0, 2.0, 3.0], [0.25, 0.5, 1.0, 2.5]]),
    st.integers(0, 99),
)
def test_the_best_of_the_splits_that_leave_enough_is_made(criterion, X_y, least, weights, seed):
    X, y = X_y
    assume(criterion != "poisson" or y.any())  # which takes no zeros alone
    y = y.astype(float if criterion in OF_NUMBERS else int)
    w = np.random.default_rng(seed).choice(weights, len(y))
    leaf, fraction = least
    limits = leaf if leaf >= 1 else np.ceil(leaf * len(w)), fraction * w.sum()
    tree = grow_cart(
        X,
        y,
        criterion=criterion,
        sample_weight=w,
        min_samples_leaf=leaf,
        min_weight_fraction_leaf=fraction,
        categorical_features=[0],
    )
    for v, inside in cells(tree, X).items():
        here, answer, ones = X[inside], y[inside], w[inside]
        # Of categories prefixes of their order are compared, of which one is best without limits.
        sets = divisions(here[:, 0], answer, ones, criterion)
        bound = [
            cut[0]
            for cut in [*reference.iterate_cart_splits(here[:, 1:], answer, ones, criterion)]
            if reference.is_enough(ones, cut[-1], *limits)
        ]
        allowed = [gain for gain, left in sets if reference.is_enough(ones, left, *limits)]
        if tree.left[v] < 0:
            assert not bound or len(set(answer)) == 1 or len(ones) < 2
            continue
        left = np.array([reference.goes_left(tree, v, x) for x in here])
        assert reference.is_enough(ones, left, *limits)
        slack = 1e-9 * (1 + abs(max([*bound, *allowed])))
        made = reference.compute_decrease(answer, ones, left, criterion)
        assert made >= max(bound, default=-np.inf) - slack
        best = max(sets, key=lambda cut: cut[0], default=(-np.inf, None))
        unique = sum(gain > best[0] - slack for gain, _ in sets) == 1
        if unique and reference.is_enough(ones, best[1], *limits):
            assert made >= best[0] - slack


@pytest.mark.parametrize("criterion", CRITERIA)
@given(X_y=categorical_rows(), least=least_sides(), seed=st.integers(0, 50))
def test_limits_of_leaves_know_neither_the_order_of_rows_nor_the_unit(criterion, X_y, least, seed):
    X, y = X_y
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 4, len(X)).astype(float)
    weight[0] = 1
    assume(criterion != "poisson" or y[weight > 0].any())  # which takes no zeros alone
    order = rng.permutation(len(X))
    switches = {"criterion": criterion, "categorical_features": [0]}
    switches |= dict(zip(("min_samples_leaf", "min_weight_fraction_leaf"), least, strict=True))
    a = grow_cart(X, y, sample_weight=weight, **switches)
    b = grow_cart(X[order], y[order], sample_weight=0.3 * weight[order], **switches)
    assert_same_tree(a, b)


def expect_peer_of_today():
    """Skip where scikit-learn is of its lowest version, whose trees were mended since."""
    if parse_version(sklearn.__version__) < parse_version("1.7"):
        pytest.skip("scikit-learn cuts missing values and weighed absolute errors elsewhere")


@pytest.mark.parametrize("least", [{"min_samples_leaf": 20}, {"min_samples_leaf": 0.031}])
@pytest.mark.parametrize("share", [0.0, 0.0401])
@pytest.mark.parametrize("criterion", ["gini", "squared_error", "poisson"])
@pytest.mark.parametrize("missing", [False, True])
def test_limits_of_leaves_are_those_of_scikit_learn(missing, criterion, share, least):
    if missing:
        expect_peer_of_today()
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 4)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    of_numbers = criterion in ("squared_error", "poisson")
    y = np.exp(signal / 2) if of_numbers else (signal > 0).astype(int)
    model = DecisionTreeRegressor if of_numbers else DecisionTreeClassifier
    limits = {**least, "min_weight_fraction_leaf": share}
    weight = np.full(len(X), 0.25) if share else None
    tree = grow_cart(X, y, criterion=criterion, sample_weight=weight, **limits)
    pairs = []
    for seed in range(10):
        theirs = model(criterion=criterion, random_state=seed, **limits)
        theirs.fit(X, y, sample_weight=weight)
        pairs.append(len(set(zip(tree.apply(X), theirs.apply(X), strict=True))))
    assert min(pairs) == tree.n_leaves > 10


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
def test_weights_may_be_as_far_apart_as_numbers_are(criterion):
    X, weight = np.arange(6.0)[:, None], np.array([5e-324, 1.0, 1.0, 1.0, 1.0, 1e200])
    y = np.arange(6.0) // 3
    tree = grow_cart(X, y, sample_weight=weight, criterion=criterion)
    assert tree.is_leaf[tree.apply(X)].all()  # and no overflow was warned of


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
def test_absolute_errors_and_deviances_split_as_in_scikit_learn(criterion, weighted):
    if criterion == "absolute_error":
        expect_peer_of_today()
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = np.exp(X[:, 0] * X[:, 1] + X[:, 2] / 2 + rng.normal(size=len(X)))
    weight = rng.uniform(0.5, 2, len(y)) if weighted else None
    switches = {"criterion": criterion, "max_depth": 5, "min_impurity_decrease": 0.004}
    tree = grow_cart(X, y, sample_weight=weight, **switches)
    theirs = DecisionTreeRegressor(random_state=0, **switches).fit(X, y, sample_weight=weight)
    pairs = set(zip(tree.apply(X), theirs.apply(X), strict=True))
    assert len(pairs) == tree.n_leaves == theirs.get_n_leaves() > 8


@pytest.mark.parametrize("seed", choose_seeds(6))
def test_categories_are_swept_by_absolute_errors_in_the_order_of_their_means(seed):
    X, y = many_categories(seed, "absolute_error")
    weight = np.random.default_rng(seed).choice([0.3, 1.0, 2.5] if seed % 2 else [1.0], len(y))
    of_fit = {"sample_weight": weight, "categorical_features": [0, 1]}
    tree = grow_cart(X, y, criterion="absolute_error", **of_fit)
    assert tree.optimal_splits is False
    for v, inside in cells(tree, X).items():
        here, answer, w = X[inside], y[inside], weight[inside]
        if tree.left[v] < 0:
            continue
        cuts = [
            cut[0]
            for cut in reference.iterate_cart_splits(here[:, [2]], answer, w, "absolute_error")
        ]
        for j in (0, 1):
            if reference.differs_beyond_chance(here[:, j], answer, w):
                x = np.nan_to_num(here[:, j], nan=99)
                mean = {c: np.average(answer[x == c], weights=w[x == c]) for c in np.unique(x)}
                found = reference.iterate_prefix_splits(x, answer, w, "absolute_error", mean)
                cuts += [gain for gain, _ in found]
        left = np.array([reference.goes_left(tree, v, x) for x in here])
        made = reference.compute_decrease(answer, w, left, "absolute_error")
        assert made == pytest.approx(max(cuts), abs=1e-9 * (1 + max(cuts)))


def test_a_child_of_zeros_alone_is_not_split_off_by_poissons_deviance():
    X, y = np.arange(6.0)[:, None], np.array([0.0, 0, 0, 1, 0, 5])
    tree = grow_cart(X, y, criterion="poisson", max_depth=1)
    assert tree.threshold[0] == 4.5
    assert grow_cart(X[:4], y[:4], criterion="poisson").n_leaves == 1
    for max_bins in (None, 8):
        with pytest.raises(ValueError, match="Sum of y is not strictly positive"):
            grow_cart(X, np.zeros(6), criterion="poisson", max_bins=max_bins)
    with pytest.raises(ValueError, match="negative which is not allowed for Poisson regression"):
        grow_cart(X, y - 1, criterion="poisson")


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        (
            {"min_samples_leaf": 0},
            "min_samples_leaf must be an integer >= 1, or a fraction",
        ),
        ({"min_samples_leaf": 1.0}, "min_samples_leaf must be an integer >= 1"),
        ({"min_samples_leaf": 2.5}, "min_samples_leaf must be an integer >= 1"),
        ({"min_samples_leaf": -0.5}, "min_samples_leaf must be an integer >= 1"),
        ({"min_samples_leaf": np.nan}, "min_samples_leaf must be an integer >= 1"),
        ({"min_samples_split": 1}, "min_samples_split must be a number >= 2"),
        ({"min_samples_split": 1.5}, "min_samples_split must be a number >= 2"),
        (
            {"min_weight_fraction_leaf": 0.51},
            "min_weight_fraction_leaf must be a number in the range",
        ),
        (
            {"min_weight_fraction_leaf": -0.1},
            "min_weight_fraction_leaf must be a number in the range",
        ),
        ({"min_weight_fraction_leaf": np.nan}, "min_weight_fraction_leaf must be"),
    ],
)
def test_limits_of_leaves_that_mean_nothing_are_refused(switches, message):
    with pytest.raises(ValueError, match=message):
        grow_cart([[0.0], [1.0]], [0, 1], **switches)


def test_fractions_of_rows_are_rounded_up():
    X, y = np.arange(10.0)[:, None], np.arange(10) % 2
    for share, number in ((0.21, 3), (0.3, 3), (0.01, 1), (0.5, 5)):
        a = grow_cart(X, y, min_samples_leaf=share)
        assert_same_tree(a, grow_cart(X, y, min_samples_leaf=number))
    assert_same_tree(grow_cart(X, y, min_samples_split=0.45), grow_cart(X, y, min_samples_split=5))
    assert grow_cart(X, y, min_samples_split=1.0).n_leaves > 1
    assert grow_cart(X, y, min_samples_leaf=10**18).n_leaves == 1


@given(categorical_rows(), st.sampled_from(CRITERIA), st.integers(1, 8))
def test_the_best_leaf_is_divided_first(X_y, criterion, max_leaves):
    X, y = X_y
    assume(criterion != "poisson" or y.any())
    y, w = y.astype(float if criterion in OF_NUMBERS else int), np.ones(len(y))
    tree = grow_cart(X, y, criterion=criterion, max_leaf_nodes=max_leaves, categorical_features=[0])
    full = grow_cart(X, y, criterion=criterion, categorical_features=[0])
    assert tree.n_leaves == min(max_leaves, full.n_leaves)
    inside = cells(tree, X)

    def gain(v):
        here, answer, ones = X[inside[v]], y[inside[v]], w[inside[v]]
        if len(set(answer)) == 1:
            return -np.inf
        cuts = [
            cut[0] for cut in reference.iterate_cart_splits(here[:, 1:], answer, ones, criterion)
        ]
        cuts += [cut[0] for cut in divisions(here[:, 0], answer, ones, criterion)]
        return max(cuts, default=-np.inf)

    leaves = {0}
    for v in sorted(np.flatnonzero(tree.left >= 0), key=lambda v: tree.left[v]):
        assert gain(v) >= max(gain(u) for u in leaves) - 1e-9
        leaves = leaves - {v} | {int(tree.left[v]), int(tree.left[v]) + 1}


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared"])
def test_best_first_trees_are_those_of_scikit_learn(criterion):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X))
    if criterion in OF_NUMBERS:
        theirs, y = DecisionTreeRegressor(max_leaf_nodes=25), signal.astype(float)
    else:
        theirs = DecisionTreeClassifier(criterion=criterion, max_leaf_nodes=25)
        y = (signal > 0).astype(int)
    theirs.fit(X, y)
    tree = grow_cart(X, y, criterion=criterion, max_leaf_nodes=25)
    pairs = set(zip(tree.apply(X), theirs.apply(X), strict=True))
    assert len(pairs) == tree.n_leaves == theirs.get_n_leaves() == 25


def cuts_of(j, X, y, w, criterion):
    """All splits of one feature, of which the first holds categories."""
    if j == 0:
        found = divisions(X[:, 0], y, w, criterion)
        return [(gain, j, 0.0, None, left) for gain, left in found]
    found = reference.iterate_cart_splits(X[:, [j]], y, w, criterion)
    return [(gain, j, cut, missing, left) for gain, _, cut, missing, left in found]


FIRST = np.arange(3) == 0


@given(
    categorical_rows(),
    st.sampled_from(CRITERIA),
    st.sampled_from(["best", "random"]),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_what_is_drawn_in_a_node_follows_from_its_key(
    X_y, criterion, splitter, max_features, random_state
):
    X, y = X_y
    assume(criterion != "poisson" or y.any())  # which takes no zeros alone
    y, w = y.astype(float if criterion in OF_NUMBERS else int), np.ones(len(y))
    tree = grow_cart(
        X,
        y,
        criterion=criterion,
        splitter=splitter,
        max_features=max_features,
        categorical_features=[0],
        random_state=random_state,
    )
    keys = reference.compute_node_keys(tree, _draw_key(random_state))
    order = sum_encoded_table(X, y.astype(float if criterion in OF_NUMBERS else np.int32), FIRST)
    order = order.order_columns().tolist()

    def placed(cut):
        """The threshold of a split of numbers."""
        return reference.place_threshold(X[:, cut[1]], cut[2], splitter == "best")

    for v, inside in cells(tree, X).items():
        here, answer, ones = X[inside], y[inside], w[inside]
        cuts = []
        for place in reference.draw_features(keys[v], here[:, order], max_features):
            j = order[place]
            if splitter == "random":
                drawn = (keys[v], place, here[:, j], answer, ones, criterion, j == 0)
                cuts += [(cut[0], j, *cut[2:]) for cut in reference.iterate_random_splits(*drawn)]
            else:
                cuts += cuts_of(j, here, answer, ones, criterion)
        if tree.left[v] < 0:
            assert not cuts or len(set(answer)) == 1
            continue
        left = np.array([reference.goes_left(tree, v, x) for x in here])
        best = max(cut[0] for cut in cuts)
        made = [
            cut
            for cut in cuts
            if cut[1] == tree.feature[v]
            # Splits of missing values from all categories have thresholds beyond all codes.
            and (cut[1] == 0 or placed(cut) == tree.threshold[v])
            and ((cut[4] == left).all() or (splitter == "best" and (cut[4] == ~left).all()))
        ]
        assert max(cut[0] for cut in made) >= best - 1e-9 * (1 + abs(best))


def test_thresholds_are_drawn_uniformly_and_features_evenly():
    X = np.array([[1.0, 0, 10], [2, 0, 11], [4, 0, 12], [3, 0, 10.5]])
    trees = [
        grow_cart(X, [0, 1, 0, 1], splitter="random", max_features=1, random_state=i, max_depth=1)
        for i in range(600)
    ]
    first = [tree.threshold[0] for tree in trees if tree.feature[0] == 0]
    assert {tree.feature[0] for tree in trees} == {0, 2}
    assert 250 < len(first) < 350
    assert kstest(first, "uniform", (1, 3)).pvalue > 0.01


def test_nothing_is_drawn_unless_asked_for():
    X, y = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 3
    assert_same_tree(grow_cart(X, y, random_state=1), grow_cart(X, y))
    assert_same_tree(grow_cart(X, y, random_state=1, max_features=4), grow_cart(X, y))
    generator = np.random.RandomState(0)
    grow_cart(X, y, random_state=generator)
    assert generator.randint(2**31) == np.random.RandomState(0).randint(2**31)
    assert grow_cart(X, y, max_features=2, random_state=0).optimal_splits is False


def test_max_features_counts_as_in_scikit_learn():
    X, y = np.random.default_rng(0).normal(size=(60, 10)), np.arange(60) % 3
    for given_as, number in (("sqrt", 3), ("log2", 3), (0.5, 5), (0.01, 1), (np.int64(4), 4)):
        a = grow_cart(X, y, max_features=given_as, random_state=0)
        assert_same_tree(a, grow_cart(X, y, max_features=number, random_state=0))


def mean_of_nodes(tree, X, y):
    inside = cells(tree, X)
    return np.array([y[inside[v]].mean() for v in range(tree.n_nodes)])


def is_monotone(tree, X, y, feature, sign):
    """Whether what every pruning predicts, the mean of a node, is monotone in a feature."""
    mean = mean_of_nodes(tree, X, y)
    values = np.linspace(X.min() - 1, X.max() + 1, 15)
    lines = np.repeat(X[:6, None], len(values), axis=1)
    lines[:, :, feature] = values
    paths = [[reference.find_path(tree, leaf) for leaf in tree.apply(line)] for line in lines]
    for pruning in reference.enumerate_prunings(tree):
        leaves = {v for v, _ in pruning}
        for line in paths:
            predicted = [mean[next(v for v in path if v in leaves)] for path in line]
            if (sign * np.diff(predicted) < 0).any():
                return False
    return True


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_pruning_is_monotone_where_it_must_be(criterion, sign):
    free_ones = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 2)).round(1)
        y = sign * X[:, 0] + 2 * np.sin(3 * X[:, 0]) + rng.normal(size=60)
        y = y - y.min() if criterion in OF_NUMBERS else (y > 0).astype(int)
        switches = {"criterion": criterion, "max_leaf_nodes": 7}
        tree = grow_cart(X, y, **switches, monotonic_cst=[sign, 0])
        assert tree.n_leaves > 1
        assert is_monotone(tree, X, y, 0, sign)
        free_ones += is_monotone(grow_cart(X, y, **switches), X, y, 0, sign)
        drawn = grow_cart(
            X, y, **switches, monotonic_cst=[sign, 0], splitter="random", random_state=seed
        )
        assert is_monotone(drawn, X, y, 0, sign)
    assert free_ones < 6


@given(categorical_rows(n_classes=2), st.sampled_from(CRITERIA), st.sampled_from([-1, 1]))
def test_the_best_of_the_splits_that_keep_the_order_is_made(X_y, criterion, slope):
    X, y = X_y
    assume(criterion != "poisson" or y.any())  # which takes no zeros alone
    y, w = y.astype(float if criterion in OF_NUMBERS else int), np.ones(len(y))
    slopes = [slope, 0, -slope]
    tree = grow_cart(X, y, criterion=criterion, monotonic_cst=slopes)
    bounds = {0: (-np.inf, np.inf)}
    for v, inside in cells(tree, X).items():
        here, answer, ones = X[inside], y[inside], w[inside]
        gains = [
            cut[0]
            for cut in reference.iterate_cart_splits(here, answer, ones, criterion)
            # Means that meet a bound may be beyond it by rounding.
            if reference.has_ordered_means(answer, ones, cut[4], slopes[cut[1]], *bounds[v], -1e-12)
        ]
        if tree.left[v] < 0:
            assert not gains or len(set(answer)) == 1
            continue
        left = np.array([reference.goes_left(tree, v, x) for x in here])
        made, j = reference.compute_decrease(answer, ones, left, criterion), tree.feature[v]
        assert reference.has_ordered_means(answer, ones, left, slopes[j], *bounds[v], 1e-12)
        assert made >= max(gains, default=0) - 1e-9
        middle = (answer[left].mean() + answer[~left].mean()) / 2
        (lower, upper), child = bounds[v], int(tree.left[v])
        bounds[child] = bounds[child + 1] = (lower, upper)
        if slopes[j]:
            bounds[child + (slopes[j] < 0)] = (lower, middle)
            bounds[child + (slopes[j] > 0)] = (middle, upper)


@pytest.mark.parametrize("criterion", ["gini", "squared"])
def test_monotone_trees_are_those_of_scikit_learn(criterion):
    # Where a feature is free, scikit-learn splits beyond the bounds and clips what it predicts.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 3)).astype(np.float32)
    y = X[:, 0] + np.sin(4 * X[:, 1]) - X[:, 2] + rng.normal(size=len(X))
    y = y - y.min() if criterion in OF_NUMBERS else (y > 0).astype(int)
    model = DecisionTreeRegressor if criterion in OF_NUMBERS else DecisionTreeClassifier
    theirs = model(max_depth=5, monotonic_cst=[1, -1, -1]).fit(X, y)
    tree = grow_cart(X, y, criterion=criterion, max_depth=5, monotonic_cst=[1, -1, -1])
    pairs = set(zip(tree.apply(X), theirs.apply(X), strict=True))
    assert len(pairs) == tree.n_leaves == theirs.get_n_leaves() > 5


def test_monotonic_constraints_may_be_named():
    X = pd.DataFrame({"a": [0.0, 1, 2, 3], "b": [0.0, 1, 0, 1]})
    y = [1, 0, 0, 0]
    by_name = grow_cart(X, y, monotonic_cst={"a": 1})
    assert_same_tree(by_name, grow_cart(X, y, monotonic_cst=[1, 0]))
    assert by_name.feature[0] == 1


@pytest.mark.threads
@pytest.mark.parametrize(
    "switches",
    [
        {"max_leaf_nodes": 300},
        {"max_features": 2, "random_state": 0},
        {"splitter": "random", "random_state": 0},
        {"splitter": "random", "random_state": 0, "max_features": 0.5, "max_leaf_nodes": 50},
        {"monotonic_cst": [1, -1, 0, 0]},
    ],
    ids=str,
)
def test_threads_do_not_change_a_bit_of_other_growth(switches):
    rng = np.random.default_rng(0)
    X = rng.integers(0, [300, 40, 4, 2000], (40_000, 4)).astype(float)
    y = (X[:, 0] / 300 + X[:, 3] / 2000 + rng.normal(size=40_000) > 1).astype(int)
    X[rng.random(X.shape) < 0.02] = np.nan
    a = grow_cart(X, y, **switches, categorical_features=[2, 3])
    assert_same_tree(a, grow_cart(X, y, **switches, categorical_features=[2, 3], n_jobs=2))


def test_deep_trees_need_no_recursion():
    n = 3000
    X, y = np.arange(n, dtype=float)[:, None], np.arange(n) % 2
    # Every split of alternating classes takes one row off an end, or little more.
    tree = grow_cart(X, y, criterion="misclassification")
    assert tree.n_leaves == n
    assert certree.count(tree, X, y, 2).errors[tree.is_leaf].sum() == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"criterion": "deviance"}, ValueError, "criterion must be"),
        ({"min_impurity_decrease": -1}, ValueError, "min_impurity_decrease must be a finite"),
        ({"min_impurity_decrease": np.nan}, ValueError, "min_impurity_decrease must be a finite"),
        ({"min_gain": 1}, TypeError, "unexpected keyword argument 'min_gain'"),
        ({"y": [0.5, 1.5], "criterion": "gini"}, TypeError, "y must convert to int32"),
        ({"y": None}, ValueError, "y must be classes or numbers, as Cart needs a target, got None"),
        ({"y": [-1, 0]}, ValueError, "y must hold classes 0, 1"),
        ({"y": [0, np.nan], "criterion": "squared"}, ValueError, "y must be finite"),
        ({"y": [0]}, ValueError, r"y must have shape \(2\)"),
        ({"X": [[np.inf], [0]]}, ValueError, "Input X contains infinity"),
        ({"y": [0.0, np.inf]}, ValueError, "y must be finite"),
        ({"min_samples_split": 1}, ValueError, "min_samples_split must be a number >= 2"),
        ({"max_depth": -1}, ValueError, "max_depth must be None"),
        ({"sample_weight": [0, 0]}, ValueError, "positive for at least one row"),
        ({"max_leaf_nodes": 0}, ValueError, "max_leaf_nodes must be None or an integer >= 1"),
        (
            {"max_leaf_nodes": 2.5},
            ValueError,
            "max_leaf_nodes must be None or an integer, got 2.5",
        ),
        ({"max_features": 0}, ValueError, "max_features must be None"),
        ({"max_features": 2}, ValueError, r"an integer in 1 \.\. 1"),
        ({"max_features": 1.5}, ValueError, "max_features must be None"),
        ({"max_features": "all"}, ValueError, "max_features must be None"),
        ({"splitter": "worst"}, ValueError, 'splitter must be "best" or "random"'),
        (
            {"random_state": "x", "splitter": "random"},
            ValueError,
            "random_state must be None or an integer",
        ),
        ({"monotonic_cst": [1, 0]}, ValueError, r"monotonic_cst must have shape \(1,\)"),
        ({"monotonic_cst": [2]}, ValueError, "monotonic_cst must hold -1, 0 or 1"),
        (
            {"monotonic_cst": {"x": 1}},
            ValueError,
            r"monotonic_cst must have names .* got \['x'\]",
        ),
        ({"monotonic_cst": [1], "y": [0, 2]}, ValueError, "more than two classes, got 3 classes"),
        (
            {"monotonic_cst": [1], "categorical_features": [0]},
            ValueError,
            "monotonic_cst must be 0 for categorical features",
        ),
        ({"categorical_features": [1]}, ValueError, "must lie in 0 .. 0, got 1 .. 1"),
        ({"categorical_features": [True, False]}, ValueError, r"must have shape \(1,\) if it is"),
        ({"categorical_features": ["x"]}, ValueError, "X has no feature names"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        grow_cart(**{"X": [[0.0], [1.0]], "y": [0, 1], **arguments})


@given(rows(max_rows=200), st.integers(2, 3), st.sampled_from(["entropy", "gini"]))
def test_rows_that_count_once_grow_like_rows_of_weight_one(X_y, n_classes, criterion):
    X, y = X_y
    y = y % n_classes
    counted = grow_cart(X, y, criterion=criterion)
    weighed = grow_cart(X, y, criterion=criterion, sample_weight=np.ones(len(X)))
    for name in ("feature", "threshold", "left", "missing_left"):
        np.testing.assert_array_equal(getattr(counted, name), getattr(weighed, name))


@given(rows(), st.sampled_from(CRITERIA), st.integers(0, 99), st.booleans(), st.booleans())
def test_rows_ranked_beforehand_grow_the_same_tree(X_y, criterion, seed, single, weighted):
    X, y = X_y
    X = np.where(abs(X) > 1e30, 17.0, X).astype(np.float32 if single else np.float64)
    rng = np.random.default_rng(seed)
    categorical = rng.random(X.shape[1]) < 0.4
    X[:, categorical] = rng.integers(0, 4, (len(X), categorical.sum()))
    part = np.flatnonzero(rng.random(len(X)) < 0.7)
    part = part if len(part) else np.array([0])
    assume(criterion != "poisson" or y[part].any())  # which takes no zeros alone
    weight = rng.integers(1, 4, len(X)).astype(float) if weighted else None
    response = y.astype(float) if criterion in OF_NUMBERS else y
    whole = TrainingSamples.from_arrays(X, response, weight, categorical_features=categorical)
    ranked = whole.select(part)
    assert ranked.parent_ranks is not None
    other = TrainingSamples.from_arrays(
        X[part],
        response[part],
        weight[part] if weighted else None,
        categorical_features=categorical,
        compute_feature_order=lambda: whole.feature_order,
    )
    assert_same_tree(Cart(criterion).grow(ranked), Cart(criterion).grow(other))
    # What has been ranked for a part serves the whole too.
    assert_same_tree(
        Cart(criterion).grow(whole),
        grow_cart(
            X,
            response,
            criterion=criterion,
            sample_weight=weight,
            categorical_features=categorical,
        ),
    )


def test_rows_that_stand_in_another_order_are_ranked_anew():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 3
    part = np.random.default_rng(1).permutation(40)[:25]
    rows = TrainingSamples.from_arrays(X, y).select(part)
    assert rows.parent_ranks is None
    assert_same_tree(Cart().grow(rows), grow_cart(X[part], y[part]))


# What grow_cart hands to the core for three rows of one feature.
SWITCHES = {
    "y": np.array([[0, 1, 1]], dtype=np.int32),
    "target": None,
    "n_classes": 2,
    "criterion": "gini",
    "weight": None,
    "min_samples_split": 2.0,
    "max_depth": 9,
    "min_gain": 0.0,
    "min_leaf_rows": 0.0,
    "min_leaf_weight": 0.0,
    "max_leaves": 0,
    "max_features": 1,
    "random_splits": False,
    "key": 0,
    "category": None,
    "monotonic": None,
    "feature_order": None,
    "n_threads": 1,
}


def test_classes_without_rows_take_no_memory():
    X = np.arange(6.0)[:, None]
    y = np.array([0, 0, 7, 7, 0, 7])
    tracemalloc.start()
    tree = grow_cart(X, np.where(y == 7, 2**31 - 1, 0))
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 10**6
    assert_same_tree(tree, grow_cart(X, y // 7))


UNITS = [-900, -401, -50, -1, 1, 22, 50, 401, 900]


def unit_rows(n_classes):
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(200, 4))
    X[:, 3] = rng.integers(0, 5, 200)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] * (n_classes > 2) > 0) + rng.integers(0, 2, 200)
    return X, y % n_classes, rng.gamma(0.5, size=200)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_entropy_of_more_rows_than_are_tabulated_is_that_of_rows_that_weigh(n_classes):
    n = 2**22 + 1000
    rng = np.random.default_rng(n_classes)
    X = rng.integers(0, 40, (n, 1)).astype(np.float32)
    y = (rng.integers(0, 40 * n_classes, n) < X[:, 0]) + (X[:, 0] > 20) * (n_classes - 2)
    counted = grow_cart(X, y, max_depth=2)
    assert_same_tree(counted, grow_cart(X, y, max_depth=2, sample_weight=np.full(n, 2.0)))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_tree_does_not_depend_on_the_unit_of_weights(criterion, n_classes, unit):
    X, y, weight = unit_rows(n_classes)
    response = y * 1.5 if criterion in OF_NUMBERS else y
    options = {"criterion": criterion, "categorical_features": [3]}
    tree = grow_cart(X, response, sample_weight=weight, **options)
    other = grow_cart(X, response, sample_weight=np.ldexp(weight, unit), **options)
    assert_same_tree(tree, other)
    plain = grow_cart(X, response, **options)
    assert_same_tree(
        plain, grow_cart(X, response, sample_weight=np.full(200, 2.0**unit), **options)
    )


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("switches", [{}, {"max_leaf_nodes": 9}, {"splitter": "random"}])
def test_the_tree_does_not_depend_on_the_unit_of_the_target(switches, unit):
    X, _, weight = unit_rows(2)
    y = X[:, 0] + weight
    tree, other = (
        grow_cart(X, target, sample_weight=weight, random_state=0, **switches)
        for target in (y, np.ldexp(y, unit))
    )
    assert_same_tree(tree, other)


def test_a_smallest_decrease_is_in_the_units_of_weights_and_target():
    X, _, weight = unit_rows(2)
    y = X[:, 0] + weight
    tree = grow_cart(X, y, sample_weight=weight, min_impurity_decrease=0.01)
    assert 3 < tree.n_nodes < grow_cart(X, y, sample_weight=weight).n_nodes
    other = grow_cart(
        X, y * 2.0**40, sample_weight=weight * 2.0**-60, min_impurity_decrease=0.01 * 2.0**80
    )
    assert_same_tree(tree, other)


@pytest.mark.parametrize("weight", [1e-14, 1e-11, 1, 1e14, 1e277])
def test_weights_of_any_size_split_where_the_classes_meet(weight):
    X, *_ = unit_rows(2)
    tree = grow_cart(X, (X[:, 2] > 0).astype(int), sample_weight=np.full(200, weight))
    assert tree.n_nodes == 3
    assert tree.feature[0] == 2


@pytest.mark.parametrize(
    ("order", "place", "message"),
    [
        (np.zeros((2, 6)), [0, 1, 2], "order has length 2, expected 1"),
        (np.zeros((1, 4)), [0, 1, 2], "order's row has length 4, expected 6"),
        (np.zeros((1, 6)), [0, 2, 1], "place must count up from 0"),
        (np.zeros((1, 6)), [0, -2, 1], "place must count up from 0"),
        (np.zeros((1, 8)), [0, 1, -1, -1], "place has length 2, expected 3"),
        (np.full((1, 6), 3), [0, 1, 2], "order must hold rows of place"),
        (np.zeros((1, 8)), [-1, 0, 1, 2], "order must hold every row once"),
    ],
)
def test_orders_that_do_not_go_with_the_rows_are_refused(order, place, message):
    given = {"order": order.astype(np.uint32), "place": np.array(place, dtype=np.int32)}
    with pytest.raises(ValueError, match=message):
        _core.grow_cart(np.zeros((3, 1)), **SWITCHES, **given)


def test_the_core_takes_one_response_where_criteria_do_not_add_up():
    X, codes, numbers = np.zeros((3, 1)), np.zeros((2, 3), dtype=np.int32), np.zeros((2, 3))
    slopes = np.ones(1, dtype=np.int8)
    for y, target, criterion, monotonic, message in (
        (
            codes,
            None,
            "misclassification",
            None,
            'criterion "misclassification" takes one response',
        ),
        (None, numbers, "poisson", None, 'criterion "poisson" takes one response'),
        (None, numbers, "squared", slopes, "monotonic takes one response"),
        (codes[:, :2].copy(), None, "gini", None, "y's row has length 2, expected 3"),
        (codes[:0], None, "gini", None, "y is empty"),
        (codes + 2, None, "gini", None, "y must lie in 0 .. 1"),
    ):
        given = {"y": y, "target": target, "criterion": criterion, "monotonic": monotonic}
        with pytest.raises(ValueError, match=message):
            _core.grow_cart(X, **{**SWITCHES, **given}, order=None, place=None)
