"""The grower of forests: trees on rows and by features that are drawn."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from certree import _core
from certree.grow import BinnedGrower, Bins
from certree.grow.binned_grower import grow_on_samples
from certree.rows.draw_order import sum_encoded_table
from certree.rows.hashes import compute_content_keys
from certree.rows.relative_weights import (
    NO_WEIGHTS,
    WeightUnit,
    compute_integer_weights,
    compute_relative_weights,
)
from certree.tree import Trees
from run_length import choose_seeds

SWITCHES = {"min_samples_leaf": "min_leaf", "min_samples_split": "min_split"}
SWITCHES |= {"min_gain": "min_decrease", "max_leaves": "max_leaves"}


def drawn(seed, n=40, p=4, missing=0.2, n_values=6):
    """Rows of few values, some missing, and a number of steps that depends on them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, size=(n, p)).astype(float)
    X[rng.random((n, p)) < missing] = np.nan
    y = np.nan_to_num(X[:, 0]) * (X[:, -1] > 1) + rng.integers(0, 3, size=n)
    return X, y


def forest_grower(bins, **given):
    """Full trees on bootstrap samples, by features that are drawn."""
    drawn = {"order": "depth", "bootstrap": True, "max_features": bins.n_features}
    return BinnedGrower(bins, **{**drawn, **given})


def expect_same(a, b):
    for name in ("begin", "channel", "total"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for column in fields(Trees):
        assert np.array_equal(getattr(a.trees, column.name), getattr(b.trees, column.name)), column


def expect_twin(forest, number, nodes, numbers):
    tree, first = forest.trees.tree(number), forest.trees.root[number]
    assert tree.n_nodes == len(nodes)
    for v, node in enumerate(nodes):
        assert tree.left[v] == node.get("left", -1)
        if "left" in node:
            assert tree.feature[v] == node["feature"]
            assert tree.category_set(v).tolist() == node["categories"]
            assert tree.threshold[v] == node["threshold"]
            assert tree.missing_left[v] == node["missing_left"]
            assert tree.unseen_left[v] == node["unseen_left"]
        entries = slice(forest.begin[first + v], forest.begin[first + v + 1])
        channels = (
            forest.channel[entries] if len(forest.channel) else range(len(forest.total[entries]))
        )
        said = dict(zip(channels, forest.total[entries], strict=True))
        assert said == numbers(node["rows"])


# -- against the twin


def switches_of(seed):
    """Options of the grower, those of the twin, weights of rows and features of categories."""
    rng = np.random.default_rng(1000 + seed)
    given = {
        "max_features": int(rng.integers(1, 5)),
        "max_features_per_tree": int(rng.integers(2, 5)),
        "random_cuts": seed % 3 == 2,
        "max_depth": 3 if seed % 7 == 1 else None,
        "min_samples_leaf": int(rng.integers(1, 4)) if seed % 2 else 1,
        "min_samples_split": int(rng.integers(2, 9)) if seed % 4 == 0 else 2,
        "min_gain": 0.01 if seed % 5 == 4 else 0.0,
    }
    weight = rng.integers(0, 4, size=40) if seed % 4 == 1 else None
    categorical = [[], [0], [1, 3]][seed % 5 % 3]
    return given, weight, categorical


def grown_and_twins(seed, X, target_of, grow, **others):
    """The forest and the nodes of each of its trees, with what they sum up to."""
    given, weight, categorical = switches_of(seed)
    given |= others
    n = len(X)
    bootstrap, n_draws = [(True, n), (False, n), (False, 25), (True, 30)][seed % 4]
    grower = forest_grower(
        Bins.from_table(X, categorical),
        bootstrap=bootstrap,
        n_draws=n_draws,
        seed=seed + 2**63,
        keys=compute_content_keys(np.column_stack([X, np.arange(n)])) if seed % 2 else None,
        **given,
    )
    forest = grow(grower, weight)
    twin = {SWITCHES.get(name, name): value for name, value in given.items() if name != "order"}
    for number in range(2):
        count = grower.count_draws(number)
        target = target_of(count if weight is None else count * weight)
        nodes = reference.grow_forest_tree(
            X, target, seed + 2**63, number, categorical=categorical, **twin
        )
        expect_twin(forest, number, nodes, target.numbers)
    return forest


@pytest.mark.parametrize("seed", choose_seeds(60))
def test_trees_on_classes_are_those_of_the_twin(seed):
    n_classes = [2, 3, 1][seed % 7 % 3]
    X, y = drawn(seed, n_values=[4, 9][seed % 2], missing=0.2 * (seed % 3 > 0))
    y = np.clip(y.astype(int), 0, n_classes - 1)

    def grow(grower, weight):
        return grower.grow_classes(y, n_classes, 2, sample_weight=weight)

    forest = grown_and_twins(
        seed, X, lambda weight: reference.ForestSums(y, weight, n_classes), grow
    )
    if n_classes > 1:
        assert len(forest.trees.feature) > 2


@pytest.mark.parametrize("seed", choose_seeds(60))
def test_trees_on_numbers_are_those_of_the_twin(seed):
    X, y = drawn(seed, n_values=[4, 9][seed % 2], missing=0.2 * (seed % 3 > 0))
    y = y * 0.375 - 1.0

    def grow(grower, weight):
        return grower.grow_numbers(y, 2, sample_weight=weight)

    forest = grown_and_twins(seed, X, lambda weight: reference.ForestSums(y, weight), grow)
    assert len(forest.trees.feature) > 2


@pytest.mark.parametrize("seed", choose_seeds(40))
def test_trees_on_counts_are_those_of_the_twin(seed):
    X, y = drawn(seed, n_values=[4, 9][seed % 2], missing=0.2 * (seed % 3 > 0))
    y = np.maximum(y - 1, 0) * (1 + np.arange(len(y)) / 64)  # deviances of small counts are equal

    def grow(grower, weight):
        return grower.grow_numbers(y, 2, criterion="poisson", sample_weight=weight)

    def target_of(weight):
        return reference.ForestSums(y, weight, criterion="poisson")

    assert len(grown_and_twins(seed, X, target_of, grow).trees.feature) > 2


@pytest.mark.parametrize("seed", choose_seeds(60))
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_trees_on_columns_are_those_of_the_twin(kind, seed):
    X, y = drawn(seed, n_values=[4, 9][seed % 2], missing=0.2 * (seed % 3 > 0))
    rng = np.random.default_rng(seed)
    columns = np.column_stack([y, rng.integers(0, 3, len(y)), y // 2])[:, : 2 + seed % 2]
    n_classes, shares = None, None
    # Scores of categories that are alike, or of classes that are complements, are told by rounding.
    if kind == "numbers":
        columns = columns * [0.375, 1.0, 2.0][: columns.shape[1]]
        columns = columns + rng.integers(-512, 512, columns.shape) / 1024
        shares = [0.5, 2.0, 0.0][: columns.shape[1]]
    else:
        n_classes = [[2, 3, 4], [1, 3, 2], [2, 2, 2]][seed % 7 % 3][: columns.shape[1]]
        n_classes = [2] * len(n_classes) if switches_of(seed)[2] else n_classes
        columns = np.minimum(columns.astype(int), np.array(n_classes) - 1)
    times = rng.integers(1, 200, len(X))

    def grow(grower, weight):
        own = times if weight is None else weight * times
        given = {"n_classes": n_classes, "shares": shares, "sample_weight": own}
        return grower.grow_columns(columns, 2, **given)

    def target_of(weight):
        return reference.ForestColumns(columns, weight * times, n_classes, shares)

    assert len(grown_and_twins(seed, X, target_of, grow).trees.feature) > 2


def test_columns_are_checked():
    X, y = drawn(0)
    grower, columns = forest_grower(Bins.from_table(X)), np.column_stack([y, y > 1])
    for spoilt, error, message in (
        (
            {"y": columns[:-1]},
            ValueError,
            r"y must have shape \(40, number .* \(39, 2\)",
        ),
        ({"y": y}, ValueError, r"y must have shape \(40, number of targets\), got \(40,\)"),
        ({"y": columns[:, :0]}, ValueError, r"y must have shape"),
        ({"y": columns * np.nan}, ValueError, "y must be finite"),
        ({"y": columns.astype(str)}, TypeError, "y must be numeric"),
        ({"shares": [1.0]}, ValueError, r"shares must have shape \(2,\)"),
        ({"shares": [1.0, -1.0]}, ValueError, "shares must be finite and not negative"),
        (
            {"n_classes": [9]},
            ValueError,
            "n_classes must have one number for each of 2 columns",
        ),
        ({"n_classes": [9, 1]}, ValueError, "y must"),
        ({"y": columns / 2, "n_classes": [9, 2]}, ValueError, "y must hold classes"),
        ({"criterion": "nothing"}, ValueError, "criterion must be"),
        ({"sample_weight": np.full(40, 0.5)}, ValueError, "must hold integers"),
    ):
        with pytest.raises(error, match=message):
            grower.grow_columns(**{"y": columns, "n_trees": 1, **spoilt})
    slopes = forest_grower(Bins.from_table(X), monotonic_cst=[1, 0, 0, 0])
    with pytest.raises(ValueError, match="monotonic_cst must be None for several targets"):
        slopes.grow_columns(columns, 1)


@pytest.mark.parametrize("seed", choose_seeds(10))
def test_splits_of_columns_by_entropy_are_the_best_of_those_that_are_drawn(seed):
    X, y = drawn(seed, n=60)
    columns, n_classes = np.column_stack([y % 3, y > 2]).astype(int), [3, 2]
    grower = forest_grower(Bins.from_table(X), max_features=2, seed=seed)
    forest = grower.grow_columns(columns, 1, n_classes=n_classes, criterion="entropy")
    target = reference.ForestColumns(columns, grower.count_draws(0), n_classes, criterion="entropy")
    expect_best_cuts(X, forest.trees.tree(0), target, seed)


@pytest.mark.parametrize("seed", choose_seeds(40))
@pytest.mark.parametrize("criterion", ["gini", "squared", "poisson"])
def test_the_leaf_whose_split_gains_most_is_divided_first(criterion, seed):
    X, y = drawn(seed, n_values=9, missing=0.2 * (seed % 3 > 0))
    n_classes = (seed % 2 + 2) if criterion == "gini" else None
    y = y.astype(int) % n_classes if n_classes else y + np.arange(len(y)) ** 2 / 64
    times = np.random.default_rng(seed).integers(1, 200, len(X))  # so that few nodes gain alike
    best = {"order": "best", "max_leaves": int(3 + seed % 5)}

    def grow(grower, weight):
        own = times if weight is None else weight * times
        if n_classes:
            return grower.grow_classes(y, n_classes, 2, sample_weight=own)
        return grower.grow_numbers(y, 2, criterion=criterion, sample_weight=own)

    def target_of(weight):
        return reference.ForestSums(y, weight * times, n_classes, criterion)

    assert len(grown_and_twins(seed, X, target_of, grow, **best).trees.feature) > 4


@pytest.mark.parametrize("seed", choose_seeds(10))
def test_splits_by_entropy_are_the_best_of_those_that_are_drawn(seed):
    X, y = drawn(seed, n=60)
    y = np.clip(y.astype(int), 0, 2)
    grower = forest_grower(Bins.from_table(X), max_features=2, seed=seed)
    forest = grower.grow_classes(y, 3, 1, criterion="entropy")
    target = reference.ForestSums(y, grower.count_draws(0), 3, "entropy")
    expect_best_cuts(X, forest.trees.tree(0), target, seed)


def expect_best_cuts(X, tree, target, seed):
    keys = reference.compute_node_keys(tree, reference.derive_key(reference.derive_key(seed, 0), 2))
    inside = [[] for _ in range(tree.n_nodes)]
    for i, leaf in enumerate(tree.apply(X)):
        for v in reference.find_path(tree, leaf) if target.w[i] else ():
            inside[v].append(i)
    options = {"max_features": 2, "categorical": [], "random_cuts": False, "min_leaf": 1}
    for v, rows in enumerate(inside):
        cuts = list(
            reference.iterate_forest_splits(X, rows, keys[v], target, [0, 1, 2, 3], options)
        )
        gains = [target.decrease(rows, cut[3]) for cut in cuts]
        if tree.left[v] < 0:
            assert not gains or target.is_pure(rows)
        else:
            assert target.decrease(rows, inside[tree.left[v]]) == pytest.approx(max(gains))


@pytest.mark.parametrize(("bootstrap", "n_draws"), [(True, 9), (True, 30), (False, 9), (False, 17)])
def test_rows_are_drawn_as_by_the_twin(bootstrap, n_draws):
    bins = Bins.from_table(np.arange(17.0)[:, None])
    grower = forest_grower(bins, bootstrap=bootstrap, n_draws=n_draws, seed=3)
    for number in range(3):
        count = grower.count_draws(number)
        assert count.sum() == n_draws
        assert count.tolist() == reference.draw_rows(17, bootstrap, n_draws, 3, number)


@pytest.mark.parametrize(("n", "n_draws"), [(1, 1), (2, 2), (3, 3), (10, 10), (100, 100), (50, 20)])
def test_a_bootstrap_misses_the_share_of_rows_that_it_must(n, n_draws):
    bins, n_bags = Bins.from_table(np.arange(n)[:, None]), 2000
    growers = [forest_grower(bins, n_draws=n_draws, seed=seed) for seed in range(20)]
    missed = np.array(
        [grower.count_draws(t) == 0 for grower in growers for t in range(n_bags // 20)]
    )
    share = (1 - 1 / n) ** n_draws
    # Every row by itself, in bags that are independent; the worst of n rows.
    deviation = np.sqrt(share * (1 - share) / n_bags)
    assert (np.abs(missed.mean(axis=0) - share) <= (4 + np.log10(n)) * deviation).all()
    # Rows hinder each other from being missed, so the share of all varies less than if they did not.
    assert abs(missed.mean() - share) <= 4 * deviation / np.sqrt(n)
    if n == n_draws:
        assert share <= np.exp(-1)
        assert n < 100 or share > 0.99 * np.exp(-1)


# -- on samples, each in bins of its own


def samples_of(n, n_drawn, n_trees, seed=0):
    """Rows that grow each tree, and seeds."""
    rng = np.random.default_rng(seed)
    samples = [np.sort(rng.permutation(n)[:n_drawn]) for _ in range(n_trees)]
    return np.array(samples, dtype=np.int32), rng.integers(2**64, size=n_trees, dtype=np.uint64)


@pytest.mark.parametrize("seed", choose_seeds(40))
def test_trees_on_samples_are_those_of_the_twin(seed):
    n_classes = [2, 3, 1][seed % 7 % 3]
    X, y = drawn(seed, n_values=[4, 9][seed % 2], missing=0.2 * (seed % 3 > 0))
    y = np.clip(y.astype(int), 0, n_classes - 1).astype(np.int32)
    given, _, categorical = switches_of(seed)
    weight = [None, np.arange(1, 41) / 7.0, np.arange(1.0, 41.0)][seed % 3]
    samples, seeds = samples_of(len(X), 25, 3, seed)
    options = {"categorical": categorical, "order": "depth", **given}
    forest = grow_on_samples(X, y, n_classes, samples, seeds, sample_weight=weight, **options)
    given = {SWITCHES.get(name, name): value for name, value in given.items()}
    given |= {"categorical": categorical}
    twins = reference.grow_on_samples(X, y, n_classes, samples, seeds, weight, **given)
    for number, (target, nodes) in enumerate(twins):
        expect_twin(forest, number, nodes, target.numbers)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_edge_rows", [2**17, 300])
def test_trees_on_samples_are_those_of_growers_on_their_bins(monkeypatch, n_edge_rows, criterion):
    monkeypatch.setattr("certree.grow.bins.EDGE_ROWS", n_edge_rows)
    monkeypatch.setattr("certree.grow.binned_grower.EDGE_ROWS", n_edge_rows)
    rng = np.random.default_rng(n_edge_rows)
    X = rng.normal(size=(2000, 4)).astype(np.float32)
    X[:, 3] = rng.integers(0, 400, size=2000)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = ((X[:, 0] > 0) + (X[:, 1] * X[:, 2] > 0) + (rng.random(2000) < 0.1)).astype(np.int32)
    weight = rng.random(2000) + 0.1
    samples, seeds = samples_of(2000, 1200, 3)
    options = {"order": "depth", "max_features": 2}
    given = {"criterion": criterion, "sample_weight": weight}
    one, two = (
        grow_on_samples(X, y, 4, samples, seeds, categorical=[3], n_jobs=n, **given, **options)
        for n in (1, 2)
    )
    expect_same(one, two)
    assert np.array_equal(one.trees.root[1:] - one.trees.root[:-1] > 100, [True] * 2)
    for number, (sample, seed) in enumerate(zip(samples, seeds, strict=True)):
        rows = X[sample].astype(float)
        sums = sum_encoded_table(rows, y[sample], np.arange(4) == 3)
        numbers = sums.number_categories(3)
        rows[:, 3] = np.append(numbers, np.nan)[np.nan_to_num(rows[:, 3], nan=-1).astype(int)]
        bins = Bins.from_table(rows, [3], fine_ends=True, feature_order=sums.order_columns())
        whole = compute_integer_weights(weight[sample])
        alone = BinnedGrower(
            bins, seed=int(seed), feature_order=sums.order_columns(), **options
        ).grow_classes(y[sample], 4, 1, criterion=criterion, sample_weight=whole)
        tree, names = one.trees.tree(number), np.argsort(numbers)
        for column in fields(Trees):
            own, other = (getattr(each, column.name) for each in (tree, alone.trees.tree(0)))
            if column.name == "categories":
                starts = tree.category_start
                sets = np.split(names[other], starts[1:-1])
                other = np.concatenate([np.sort(some) for some in sets])
            assert np.array_equal(own, other), column.name
        first, last = one.trees.root[number], one.trees.root[number] + alone.trees.n_nodes
        said = one.class_weights(4)[first:last]
        assert np.array_equal(said, alone.class_weights(4))


WEIGHTS = st.floats(1e-300, 1e300) | st.integers(1, 2**18).map(float)


@given(st.lists(WEIGHTS, min_size=1) | st.lists(st.integers(1, 40).map(float), min_size=1))
def test_weights_are_made_integers_as_by_the_twin(weight):
    assert _core.find_weight_unit(np.array(weight))[1] == reference.find_weight_unit(weight)
    assert compute_integer_weights(
        np.array(weight)
    ).tolist() == reference.convert_weights_to_integers(weight)


@given(st.lists(st.integers(1, 2**16 - 1), min_size=1), st.floats(1e-9, 1e9))
def test_multiples_of_a_unit_are_integers_in_any_unit(multiples, unit):
    expected = np.array(multiples) // np.gcd.reduce(multiples)
    assert compute_integer_weights(np.array(multiples) * unit).tolist() == expected.tolist()


@given(st.lists(st.floats(1e-6, 1), min_size=2), st.integers(-60, 60))
def test_weights_times_a_power_of_two_become_the_same_numbers(weight, power):
    weight = np.array(weight)
    for made in (compute_integer_weights, compute_relative_weights):
        assert made(weight).tolist() == made(np.ldexp(weight, power)).tolist()
    assert np.allclose(
        compute_relative_weights(weight) / compute_relative_weights(weight)[0],
        weight / weight[0],
        1e-8,
    )


@given(st.lists(st.lists(WEIGHTS, max_size=4), min_size=1, max_size=4))
def test_units_of_parts_add_up_to_that_of_all(parts):
    total = sum((WeightUnit.find(np.array(part)) for part in parts), NO_WEIGHTS)
    whole = WeightUnit.find(np.concatenate([*map(np.array, parts)]))
    assert total.largest == whole.largest
    if total.common > 0 and whole.common > 0:
        assert total.common == pytest.approx(whole.common, rel=1e-6)


# -- what a forest depends on


@st.composite
def tasks(draw):
    """Rows with ties and missing values, classes, keys and another order of the rows."""
    n, p = draw(st.integers(1, 60)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(0, draw(st.integers(1, 9)), size=(n, p)).astype(float)
    X[rng.random((n, p)) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    n_classes = draw(st.integers(1, 4))
    y = rng.integers(0, n_classes, size=n)
    weight = draw(st.sampled_from([None, rng.integers(0, 5, size=n)]))
    categorical = draw(st.sampled_from([[], [0]]))
    given = {
        "max_features": draw(st.integers(1, p)),
        "random_cuts": draw(st.booleans()),
        "bootstrap": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**64 - 1)),
    }
    return X, y, n_classes, weight, categorical, given, rng.permutation(n)


@pytest.mark.threads
@given(tasks(), st.sampled_from(["gini", "entropy", "squared"]))
def test_trees_depend_neither_on_the_order_of_rows_nor_on_threads(task, criterion):
    X, y, n_classes, weight, categorical, given, order = task
    keys = compute_content_keys(
        np.column_stack([X, y, np.zeros(len(y)) if weight is None else weight])
    )
    forests = []
    for rows, n_jobs in ((np.arange(len(X)), 1), (order, 2)):
        grower = forest_grower(
            Bins.from_table(X[rows], categorical), keys=keys[rows], n_jobs=n_jobs, **given
        )
        weights = None if weight is None else weight[rows]
        if criterion == "squared":
            numbers = np.sqrt(y + 0.1)[rows]
            forests.append(grower.grow_numbers(numbers, 3, sample_weight=weights))
        else:
            options = {"criterion": criterion, "sample_weight": weights}
            forests.append(grower.grow_classes(y[rows], n_classes, 3, **options))
    expect_same(*forests)


@given(tasks(), st.sampled_from(["gini", "entropy"]))
def test_sums_add_up_and_leaves_of_full_trees_cannot_be_divided(task, criterion):
    X, y, n_classes, weight, categorical, given, _ = task
    grower = forest_grower(Bins.from_table(X, categorical), **given)
    options = {"criterion": criterion, "sample_weight": weight}
    forest = grower.grow_classes(y, n_classes, 2, **options)
    table = forest.class_weights(n_classes)
    inner = np.flatnonzero(forest.trees.left >= 0)
    child = forest.trees.left[inner]
    assert np.array_equal(table[inner], table[child] + table[child + 1])
    for number in range(2):
        tree, count = forest.trees.tree(number), grower.count_draws(number)
        count = count if weight is None else count * weight
        own = table[forest.trees.root[number] :][: tree.n_nodes]
        assert np.array_equal(own, reference.count_classes(tree, X, y, n_classes, count))
        leaf = tree.apply(X)
        for v in np.flatnonzero(tree.is_leaf):
            rows = np.flatnonzero((leaf == v) & (count > 0))
            pure = len(set(y[rows])) <= 1
            same = (np.nan_to_num(X[rows], nan=-1) == np.nan_to_num(X[rows[:1]], nan=-1)).all()
            # More than six levels need not be divided.
            assert pure or same or categorical


@given(tasks())
def test_sums_of_numbers_are_those_of_the_rows(task):
    X, y, _, weight, _, given, _ = task
    grower = forest_grower(Bins.from_table(X), **given)
    forest = grower.grow_numbers(y / 8.0, 2, sample_weight=weight)
    for number in range(2):
        tree, count = forest.trees.tree(number), grower.count_draws(number)
        count = count if weight is None else count * weight
        inside = reference.count_classes(tree, X, np.zeros(len(X), dtype=int), 1, count)[:, 0]
        total = reference.count_classes(tree, X, np.zeros(len(X), dtype=int), 1, count * y / 8.0)[
            :, 0
        ]
        own = forest.total.reshape(-1, 2)[forest.trees.root[number] :][: tree.n_nodes]
        assert np.array_equal(own, np.column_stack([inside, total]))
        means = forest.means()[forest.trees.root[number] :][: tree.n_nodes]
        assert np.allclose(means * inside, total)


@pytest.mark.threads
def test_trees_are_the_same_whichever_are_grown_along():
    X, y = drawn(0, n=300)
    grower = forest_grower(Bins.from_table(X), max_features=2, n_jobs=2)
    both = grower.grow_numbers(y, 5)
    later = grower.grow_numbers(y, 2, first=3)
    for number in range(2):
        a, b = both.trees.tree(3 + number), later.trees.tree(number)
        assert np.array_equal(a.threshold, b.threshold)
        assert np.array_equal(a.left, b.left)
    assert len(grower.grow_numbers(y, 0).trees) == 0


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_wide_sums_give_the_trees_of_narrow_ones(criterion, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.clip(np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) + 2, 0, n_classes - 1).astype(int)
    grower = forest_grower(Bins.from_table(X), max_features=2)
    plain = grower.grow_classes(y, n_classes, 2, criterion=criterion)
    # Logs are rounded.
    for scale in (1, 1024) if criterion == "gini" else (1,):
        weight = np.full(len(X), scale)
        wide = grower.grow_classes(y, n_classes, 2, criterion=criterion, sample_weight=weight)
        assert np.array_equal(plain.trees.threshold, wide.trees.threshold)
        assert np.array_equal(plain.trees.left, wide.trees.left)
        assert np.array_equal(plain.total * scale, wide.total)


@pytest.mark.parametrize("random_cuts", [False, True])
def test_rows_of_large_nodes_go_where_the_tree_says(random_cuts):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 9))
    X[:, 1] = rng.integers(0, 300, size=len(X))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 2]) + (X[:, 1] % 7 == 3)
    grower = forest_grower(
        Bins.from_table(X, [1], fine_ends=True), max_features=3, random_cuts=random_cuts
    )
    forest = grower.grow_numbers(y, 2)
    for number in range(2):
        tree, count = forest.trees.tree(number), grower.count_draws(number)
        inside = np.bincount(tree.apply(X), weights=count, minlength=tree.n_nodes)
        own = forest.total.reshape(-1, 2)[forest.trees.root[number] :][: tree.n_nodes, 0]
        assert np.array_equal(own[tree.is_leaf], inside[tree.is_leaf])


def test_columns_are_those_of_trees():
    X, y = drawn(1, n=200)
    forest = forest_grower(Bins.from_table(X, [0]), max_features=2).grow_numbers(y, 4)
    trees = forest.trees.with_value(forest.means()[:, None])
    scores = trees.add(np.zeros((1, len(X))), X, 1)[0]
    means = [forest.means()[start:] for start in forest.trees.root]
    each = [mean[forest.trees.tree(t).apply(X)] for t, mean in enumerate(means)]
    assert np.allclose(scores, np.sum(each, axis=0))


def test_a_forest_generalises():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    grower = forest_grower(Bins.from_table(X[:3000], fine_ends=True), max_features=2)
    forest = grower.grow_classes(y[:3000], 2, 30)
    table = forest.class_weights(2)
    trees = forest.trees.with_value(table / table.sum(axis=1, keepdims=True))
    votes = trees.add(np.zeros((2, 1000)), X[3000:], 1)
    assert np.mean(votes.argmax(axis=0) == y[3000:]) > 0.87


# -- what is at the edge


@pytest.mark.parametrize("random_cuts", [False, True])
def test_what_cannot_be_divided_is_a_leaf(random_cuts):
    def leaves(X, y, n_classes=2):
        grower = forest_grower(Bins.from_table(X), bootstrap=False, random_cuts=random_cuts)
        forest = grower.grow_classes(y, n_classes, 1)
        assert np.array_equal(
            forest.trees.left, grower.grow_numbers(np.asarray(y) * 0.1, 1).trees.left
        )
        return int(np.sum(forest.trees.left < 0))

    assert leaves([[1.0]], [0]) == 1
    assert leaves([[1.0], [2.0], [3.0]], [1, 1, 1]) == 1
    assert leaves([[1.0, np.nan], [1.0, np.nan]], [0, 1]) == 1
    assert leaves([[1.0, np.nan], [1.0, 0.0]], [0, 1]) == 2
    assert leaves([[1.0, 0.0], [1.0, 1.0]], [0, 1]) == 2


def test_splits_that_gain_nothing_are_made():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    forest = forest_grower(Bins.from_table(X), bootstrap=False).grow_classes([0, 1, 1, 0], 2, 3)
    assert np.sum(forest.trees.left < 0) == 12
    grower = forest_grower(Bins.from_table(X), bootstrap=False, min_gain=1e-9)
    assert np.sum(grower.grow_classes([0, 1, 1, 0], 2, 3).trees.left < 0) == 3


def test_features_that_are_constant_in_a_node_do_not_count():
    X = np.zeros((50, 40))
    X[:, 17] = np.arange(50)
    forest = forest_grower(Bins.from_table(X), max_features=1).grow_numbers(np.arange(50.0), 2)
    assert (forest.trees.feature[forest.trees.left >= 0] == 17).all()
    assert np.sum(forest.trees.left < 0) > 40


def test_a_tree_without_rows_of_weight_is_a_leaf():
    bins = Bins.from_table([[0.0], [1.0]])
    for draws in ({"bootstrap": False, "n_draws": 1}, {"n_draws": 1}):
        grower = forest_grower(bins, **draws)
        forest = grower.grow_classes([0, 1], 2, 8, sample_weight=[0, 1])
        empty = [grower.count_draws(t)[1] == 0 for t in range(8)]
        assert any(empty)
        assert np.array_equal(forest.class_weights(2).sum(axis=1) == 0, empty)
        assert (grower.grow_numbers([0.5, 0.5], 8, sample_weight=[0, 1]).means()[empty] == 0).all()


def test_large_numbers_are_rounded_little():
    rng = np.random.default_rng(0)
    y = rng.normal(size=500) * 1e300
    grower = forest_grower(Bins.from_table(rng.normal(size=(500, 2))))
    forest = grower.grow_numbers(y, 1)
    assert forest.total[1] == pytest.approx(np.sum(grower.count_draws(0) * y), rel=1e-9)


def test_features_of_a_tree_are_few():
    X, y = drawn(0, n=400, p=8)
    forest = forest_grower(Bins.from_table(X), max_features_per_tree=3).grow_numbers(y, 6)
    used = [set(tree.feature[~tree.is_leaf]) for tree in forest.trees]
    assert all(len(one) == 3 for one in used)
    assert len(set.union(*used)) > 3


def test_fine_ends_have_bins_of_few_rows():
    rng = np.random.default_rng(0)
    bins = Bins.from_table(rng.normal(size=(50_000, 2)), fine_ends=True)
    for codes in bins.codes:
        size = np.bincount(codes)
        assert len(size) == 255
        assert (size[:10] == 1).all()
        assert (size[-10:] == 1).all()
        below = np.cumsum(size) - size
        above = len(codes) - below - size
        assert (size <= np.maximum(1, 0.21 * np.minimum(below, above) + 1)).all()
        assert size.max() < 800
    mixed = Bins.from_table(
        np.append(np.zeros(5000), rng.normal(size=5000))[:, None], fine_ends=True
    )
    assert mixed.n_bins[0] > 240
    assert np.bincount(mixed.codes[0]).max() < 5100


# -- what is refused


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"max_features": 3}, "max_features must be at most 2, the number of features, got 3"),
        ({"max_features": 0}, "max_features must be an integer >= 1, got 0"),
        ({"max_features_per_tree": 3}, "max_features_per_tree must be at most 2"),
        ({"n_draws": 0}, "n_draws must be an integer >= 1"),
        ({"n_draws": 5, "bootstrap": False}, "n_draws must be at most 4 without bootstrap, got 5"),
        ({"max_depth": -1}, "max_depth must be an integer >= 0"),
        ({"min_samples_split": 1}, "min_samples_split must be an integer >= 2"),
        ({"min_samples_leaf": 0.5}, "min_samples_leaf must be an integer >= 1"),
        ({"min_gain": -1.0}, "min_gain must be a finite number >= 0"),
        ({"seed": -1}, "seed must be an integer in 0"),
        ({"seed": 2**64}, "seed must be an integer in 0"),
        ({"keys": np.zeros(3, dtype=np.uint64)}, r"keys must have shape \(4,\)"),
    ],
)
def test_bad_options_are_refused(given, what):
    with pytest.raises(ValueError, match=what):
        forest_grower(Bins.from_table(np.arange(8.0).reshape(4, 2)), **given)


def test_bad_rows_are_refused():
    grower = forest_grower(Bins.from_table([[0.0], [1.0]]))
    with pytest.raises(ValueError, match=r"y must lie in 0 \.\. 1"):
        grower.grow_classes([0, 2], 2, 1)
    with pytest.raises(ValueError, match="criterion must be"):
        grower.grow_classes([0, 1], 2, 1, criterion="squared")
    with pytest.raises(ValueError, match="y must be finite"):
        grower.grow_numbers([0.0, np.inf], 1)
    with pytest.raises(ValueError, match=r"y must have shape \(2,\)"):
        grower.grow_numbers([0.0], 1)
    with pytest.raises(TypeError, match="y must be numeric"):
        grower.grow_numbers(["a", "b"], 1)
    with pytest.raises(ValueError, match="sample_weight must hold integers"):
        grower.grow_numbers([0.0, 1.0], 1, sample_weight=[0.5, 1.0])
    with pytest.raises(ValueError, match="sample_weight must be at most"):
        grower.grow_numbers([0.0, 1.0], 1, sample_weight=[2.0**50, 1.0])
    with pytest.raises(ValueError, match="n_trees must be an integer >= 0"):
        grower.grow_numbers([0.0, 1.0], -1)
    with pytest.raises(TypeError, match="keys must be uint64"):
        forest_grower(grower.bins, keys=[0, 1])


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"max_features": 3}, "max_features must be at most 2, the number of features, got 3"),
        ({"categorical": [5]}, "categorical"),
        ({"criterion": "squared"}, "criterion must be"),
        ({"sample_weight": [1.0, np.nan, 1.0]}, "sample_weight must be finite"),
        ({"y": np.array([0, 1, 2], dtype=np.int32)}, r"y must lie in 0 \.\. 1"),
        ({"samples": np.array([[0, 3]], dtype=np.int32)}, r"samples must lie in 0 \.\. 2"),
        ({"samples": np.array([[0, -1]], dtype=np.int32)}, r"samples must lie in 0 \.\. 2"),
        ({"samples": np.zeros((1, 0), dtype=np.int32)}, "at least one row"),
        ({"samples": np.zeros((2, 1), dtype=np.int32)}, "seeds has length 1, expected 2"),
        ({"X": np.array([[0.0, 0.5]] * 3), "categorical": [1]}, "categories must be whole"),
    ],
    ids=str,
)
def test_samples_that_are_none_are_refused(given, what):
    good = {
        "X": np.arange(6.0).reshape(3, 2),
        "y": np.array([0, 1, 1], dtype=np.int32),
        "n_classes": 2,
        "samples": np.array([[0, 2]], dtype=np.int32),
        "seeds": np.zeros(1, dtype=np.uint64),
    }
    assert grow_on_samples(**good).trees.n_nodes == 3
    with pytest.raises(ValueError, match=what):
        grow_on_samples(**{**good, **given})
