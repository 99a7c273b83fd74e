"""The grower from bins: bins, and single trees from whole sums over them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import reference
from certree import Tree, grow_cart
from certree._core import grow_class_trees
from certree.grow import BinnedGrower, Bins
from certree.grow import bins as bins_module
from certree.rows.hashes import hash_samples
from run_length import choose_seeds

COLUMNS = [name for name in Tree.__dataclass_fields__ if name != "optimal_splits"]


def drawn(seed, n=40, p=3, missing=0.2, n_values=8):
    """Rows of few values, some missing, with gradients and Hessians."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, size=(n, p)) / 4.0
    X[rng.random((n, p)) < missing] = np.nan
    g = np.nan_to_num(X[:, 0]) - (X[:, -1] > 1) + rng.normal(size=n).round(1)
    return X, g, rng.integers(0, 9, size=n) / 8.0


def expect_same(a, b):
    for name in COLUMNS:
        assert np.array_equal(getattr(a.tree, name), getattr(b.tree, name)), name
    assert np.array_equal(a.sums, b.sums)


def expect_same_cuts(tree, nodes):
    assert tree.n_nodes == len(nodes)
    for v, node in enumerate(nodes):
        assert tree.left[v] == node.get("left", -1)
        if "left" in node:
            assert tree.feature[v] == node["feature"]
            assert tree.category_set(v).tolist() == node.get("categories", [])
            assert tree.threshold[v] == node.get("threshold", 0.0)
            assert tree.missing_left[v] == node["missing_left"]
            assert tree.unseen_left[v] == node.get("unseen_left", False)


def expect_twin(grown, nodes, numbers):
    expect_same_cuts(grown.tree, nodes)
    for v, node in enumerate(nodes):
        assert tuple(grown.sums[v]) == numbers(node["rows"])
        if grown.tree.left[v] < 0:
            assert (grown.leaf[node["rows"]] == v).all()


@st.composite
def tasks(draw, max_rows=60):
    n, p = draw(st.integers(1, max_rows)), draw(st.integers(1, 3))
    some = st.one_of(
        st.integers(-3, 3).map(float),
        st.floats(-10, 10, allow_subnormal=False),
        st.sampled_from([np.nan, 1e300, -1e300, 1e-300]),
    )
    X = draw(hnp.arrays(np.float64, (n, p), elements=some))
    scale = 10.0 ** draw(st.sampled_from([-300, -9, 0, 0, 9, 290]))
    g = draw(hnp.arrays(np.float64, n, elements=st.floats(-10, 10))) * scale
    h = draw(hnp.arrays(np.float64, n, elements=st.floats(0, 10)))
    rows = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    return X, g, h, np.array(rows, dtype=np.int32)


# -- bins


def codes_of(x, bins, j=0):
    """Codes by the values that bins span."""
    low, high = bins.bin_ranges(j)
    inside = (low <= x[:, None]) & (x[:, None] <= high)
    assert (inside.sum(axis=1) == ~np.isnan(x)).all()
    return np.where(np.isnan(x), 255, inside.argmax(axis=1))


@pytest.mark.parametrize("n_values", [1, 2, 255, 256, 3000])
def test_bins_ascend_and_hold_what_they_span(n_values):
    rng = np.random.default_rng(n_values)
    X = rng.choice(np.append(rng.normal(size=n_values), np.nan), size=(4000, 2))
    bins = Bins.from_table(X)
    for j in range(2):
        k = bins.n_bins[j]
        n_distinct = len(np.unique(X[~np.isnan(X[:, j]), j]))
        assert min(n_distinct, 200) <= k <= min(n_distinct, 255)
        low, high = bins.bin_ranges(j)
        assert (low <= high).all()
        assert (high[:-1] < low[1:]).all()
        assert np.array_equal(codes_of(X[:, j], bins, j), bins.codes[j])
        if n_values > 1000:
            assert np.bincount(bins.codes[j])[:k].max() < 3 * len(X) / 255


@pytest.mark.parametrize("fine_ends", [False, True])
@pytest.mark.parametrize(
    ("n", "n_values"), [(200, 90), (300, 280), (341, 10**6), (900, 400), (900, 10**6)]
)
def test_bins_are_those_of_the_twin(n, n_values, fine_ends):
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, n_values, n) ** 2.0
        codes = Bins.from_table(x[:, None], fine_ends=fine_ends).codes[0]
        assert codes.tolist() == reference.assign_bins(x.tolist(), fine_ends)


def test_a_frequent_value_has_a_bin_of_its_own():
    x = np.append(np.zeros(5000), np.random.default_rng(0).normal(size=5000))[:, None]
    bins = Bins.from_table(x)
    zero = bins.codes[0, 0]
    assert bins.n_bins[0] > 200
    assert np.bincount(bins.codes[0])[zero] < 5000 + 100


def test_bins_of_many_rows_depend_on_no_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(140_000, 2))
    X[rng.random(X.shape) < 0.05] = np.nan
    order = rng.permutation(len(X))
    whole, permuted = Bins.from_table(X), Bins.from_table(X[order], n_jobs=2)
    assert np.array_equal(whole.codes[:, order], permuted.codes)
    assert np.array_equal(whole.low, permuted.low)
    assert np.array_equal(whole.high, permuted.high)
    sample = np.argsort(hash_samples(X))[: 2**17]
    assert np.array_equal(Bins.from_table(X[sample]).codes, whole.codes[:, sample])
    counts = np.bincount(whole.codes[0], minlength=256)[:255]
    assert counts.min() > 0.5 * len(X) / 255


def test_features_without_values_have_no_bins():
    bins = Bins.from_table([[np.nan, 1.0], [np.nan, 2.0]])
    assert bins.n_bins.tolist() == [0, 2]
    assert bins.codes.tolist() == [[255, 255], [0, 1]]


def test_zeros_have_no_sign():
    assert not np.signbit(Bins.from_table([[-0.0], [0.0], [1.0]]).low).any()


@pytest.mark.parametrize("n_values", [20, 33, 200, 3000])
@pytest.mark.parametrize("n_edges", [1, 6, 254])
def test_coarser_bins_join_neighbours(n_values, n_edges):
    rng = np.random.default_rng(n_values)
    X = rng.choice(np.append(rng.normal(size=n_values), np.nan), size=(4000, 3))
    X[:, 2] = rng.integers(0, 50, size=4000)
    key = int(rng.integers(2**64, dtype=np.uint64))
    bins = Bins.from_table(X, [2])
    coarser = bins.coarsen(n_edges, key)
    for j in range(2):
        into = reference.merge_bins(bins.n_bins[j], n_edges, key, j)
        assert coarser.n_bins[j] == into[-1] + 1 == len(set(into))
        expected = np.where(bins.codes[j] == 255, 255, np.append(into, [255] * 256)[bins.codes[j]])
        np.testing.assert_array_equal(coarser.codes[j], expected)
        assert np.array_equal(codes_of(X[:, j], coarser, j), coarser.codes[j])
    assert np.array_equal(coarser.codes[2], bins.codes[2])
    assert coarser.n_bins[2] == bins.n_bins[2]
    assert not np.array_equal(coarser.codes, bins.codes) or coarser.n_bins.tolist() == [
        *bins.n_bins
    ]


def test_edges_of_coarser_bins_are_drawn_evenly():
    bins = Bins.from_table(np.arange(200.0)[:, None])
    drawn = np.zeros(199)
    for key in range(4000):
        drawn[np.flatnonzero(np.diff(bins.coarsen(5, key).codes[0]))] += 1
    assert drawn.sum() == 5 * 4000
    # 199 edges, each drawn with probability 5 / 199: five deviations.
    share = 5 / 199
    assert abs(drawn - 4000 * share).max() < 5 * np.sqrt(4000 * share * (1 - share))


def test_trees_split_coarser_bins_at_their_edges():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    g = rng.normal(size=3000) - X[:, 0] * X[:, 1]
    grower = BinnedGrower(Bins.from_table(X), max_leaves=40)
    coarser = grower.bins.coarsen(4, 1)
    one = grower.grow_gradients(g, np.ones(3000), bins=coarser)
    expect_same(one, BinnedGrower(coarser, max_leaves=40).grow_gradients(g, np.ones(3000)))
    inner = ~one.tree.is_leaf
    for j in range(2):
        thresholds = one.tree.threshold[inner & (one.tree.feature == j)]
        low, high = coarser.bin_ranges(j)
        between = np.searchsorted(low, thresholds)
        assert set(between) <= {1, 2, 3, 4}
        assert (high[between - 1] <= thresholds).all()
    assert np.array_equal(one.tree.apply(X), one.leaf)
    with pytest.raises(ValueError, match=r"bins must have .* of the grower, \(2, 3000\)"):
        grower.grow_gradients(g, np.ones(3000), bins=Bins.from_table(X[:5]))
    with pytest.raises(ValueError, match="n_edges must be at least 1"):
        grower.bins.coarsen(0, 1)


# -- against the twin


@pytest.mark.parametrize("seed", choose_seeds(40))
def test_trees_are_those_of_the_twin(seed):
    rng = np.random.default_rng(seed)
    X, g, h = drawn(seed, missing=0.3 * (seed % 3 > 0))
    switches = {
        "max_leaves": int(rng.integers(1, 12)),
        "max_depth": None if seed % 4 else 2,
        "min_samples_leaf": int(rng.integers(1, 4)),
    }
    order = "best" if seed % 2 else "level"
    limits = {"l2": rng.choice([0.0, 1.0]), "min_hessian": rng.choice([0.0, 0.5])}
    least = rng.choice([0.0, 0.3])
    rows = np.sort(rng.permutation(len(X))[:30]) if seed % 5 else np.arange(len(X))
    features = [0, 2] if seed % 7 == 0 else [0, 1, 2]
    grower = BinnedGrower(Bins.from_table(X), order=order, min_gain=least, **switches)
    grown = grower.grow_gradients(g, h, rows=rows, features=features, **limits)
    target = reference.GradientSums(g, h, rows.tolist(), min_gain=least, **limits)
    switches["min_rows"] = switches.pop("min_samples_leaf")
    switches |= {"best_first": order == "best", "features": features}
    nodes = reference.grow_binned(X, target, rows.tolist(), **switches)
    expect_twin(grown, nodes, target.numbers)
    assert np.array_equal(grown.tree.apply(X), grown.leaf)


@pytest.mark.parametrize("seed", choose_seeds(40))
def test_constrained_trees_are_those_of_the_twin(seed):
    rng = np.random.default_rng(100 + seed)
    X, g, h = drawn(seed, n=60, p=4, n_values=[4, 9, 12][seed % 3])
    X *= 4.0
    categorical = [0, 2][: seed % 3]
    if seed % 3:
        g = g + 2.0 * np.isin(X[:, 0], [1, 3, 4])
    slopes = rng.integers(-1, 2, size=4) if seed % 2 else np.zeros(4, dtype=int)
    slopes[categorical] = 0
    groups = [[0, 1], [1, 2]] if seed % 4 > 1 else None
    limits = {"l2": [0.0, 0.7][seed % 2], "min_hessian": 0.2}
    rows = np.sort(rng.permutation(len(X))[:50])
    grower = BinnedGrower(
        Bins.from_table(X, categorical), max_leaves=9, monotonic_cst=slopes, interaction_cst=groups
    )
    grown = grower.grow_gradients(g, h, rows=rows, **limits)
    target = reference.GradientSums(g, h, rows.tolist(), **limits)
    given = {"categorical": categorical, "groups": [] if groups is None else [*groups, [3]]}
    if slopes.any():
        given["slopes"] = slopes
    nodes = reference.grow_binned(X, target, rows.tolist(), 9, **given)
    expect_twin(grown, nodes, target.numbers)
    assert np.array_equal(grown.tree.apply(X), grown.leaf)
    assert grown.tree.n_leaves > 1


@pytest.mark.parametrize("seed", choose_seeds(30))
def test_trees_on_classes_are_those_of_the_twin(seed):
    rng = np.random.default_rng(seed)
    X, g, _ = drawn(seed, n=50, n_values=[4, 10][seed % 2])
    n_classes = [2, 3, 1][seed % 3]
    y = np.clip((g + 1).astype(int), 0, n_classes - 1)
    weight = rng.integers(1, 4, size=50) * 0.5 if seed % 4 == 1 else None
    categorical, X = ([0], X * 4.0) if n_classes == 2 and weight is None else ([], X)
    slopes = [0, 1, -1] if n_classes == 2 and seed % 4 > 1 else [0, 0, 0]
    groups = [[0, 1], [1, 2]] if seed % 5 == 4 else None
    least = 2.0**-46  # what gains nothing is not made
    grower = BinnedGrower(
        Bins.from_table(X, categorical),
        max_leaves=7,
        min_gain=least,
        monotonic_cst=slopes,
        interaction_cst=groups,
    )
    forest = grower.grow_classes(y, n_classes, 1, sample_weight=weight)
    target = reference.ClassSums(y, n_classes, weight, range(50))
    given = {"categorical": categorical, "groups": groups or []}
    given |= {"slopes": slopes} if any(slopes) else {}
    nodes = reference.grow_binned(X, target, range(50), 7, **given)
    tree = forest.trees.tree(0)
    expect_same_cuts(tree, nodes)
    for v, said in enumerate(forest.class_weights(n_classes)):
        assert (*said, len(nodes[v]["rows"])) == target.numbers(nodes[v]["rows"])


@pytest.mark.parametrize("seed", choose_seeds(10))
def test_splits_by_entropy_are_the_best(seed):
    X, g, h = drawn(seed, n=50)
    y = np.clip((g + 1).astype(int), 0, 2)
    weight = h + 0.5 if seed % 2 else None
    grower = BinnedGrower(Bins.from_table(X))
    forest = grower.grow_classes(y, 3, 1, criterion="entropy", sample_weight=weight)
    tree, said = forest.trees.tree(0), forest.class_weights(3)
    target = reference.ClassSums(y, 3, weight, range(50), "entropy")
    inside = [[] for _ in range(tree.n_nodes)]
    for i, leaf in enumerate(tree.apply(X)):
        for v in reference.find_path(tree, leaf):
            inside[v].append(i)
    options = {"features": range(3), "groups": [], "categorical": [], "min_rows": 1}
    options |= {"slopes": [0] * 3, "constrained": False}
    for v, rows in enumerate(inside):
        values = [
            cut[0] for cut in reference.iterate_binned_splits(X, {"rows": rows}, target, options)
        ]
        most = max(values, default=0.0)
        left = tree.left[v]
        made = inside[left : left + 2] if left >= 0 else [rows]
        assert sum(map(target.value, made)) == pytest.approx(max(most, target.value(rows)))
        assert (*said[v], len(rows)) == target.numbers(rows)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("seed", range(4))
def test_the_first_split_on_classes_is_that_of_the_exact_grower(seed, criterion):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 250, size=(400, 3)).astype(float)
    y = np.clip((X[:, 0] / 90 + rng.normal(size=400)).astype(int), 0, 1 + seed % 2)
    grower = BinnedGrower(Bins.from_table(X), max_leaves=31)
    tree = grower.grow_classes(y, 2 + seed % 2, 1, criterion=criterion).trees.tree(0)
    exact = grow_cart(X, y, criterion=criterion)
    assert tree.feature[0] == exact.feature[0]
    assert tree.threshold[0] == exact.threshold[0]


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("unit", [1.0, 0.25])
def test_weights_are_copies_of_rows(criterion, unit):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, size=(5000, 4)).astype(float)
    y = (X[:, 0] * X[:, 1] > 200).astype(int) + (X[:, 2] > 20)
    weight = rng.integers(1, 4, size=5000)
    X[:, 3] %= 12
    copies = np.arange(5000).repeat(weight)
    grown, again = (
        BinnedGrower(Bins.from_table(X[rows], [3]), max_leaves=20).grow_classes(
            y[rows], 3, 1, criterion=criterion, sample_weight=own
        )
        for rows, own in ((np.arange(5000), weight * unit), (copies, None))
    )
    assert np.array_equal(grown.class_weights(3), again.class_weights(3) * unit)
    assert np.array_equal(grown.trees.threshold, again.trees.threshold)
    assert np.array_equal(grown.trees.left, again.trees.left)


def test_sets_for_many_classes_part_them():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 20, size=3000)
    y = (level * 7) % 5
    X = level[:, None].astype(float)
    tree = BinnedGrower(Bins.from_table(X, [0])).grow_classes(y, 5, 1).trees.tree(0)
    leaf = tree.apply(X)
    for v in np.flatnonzero(tree.is_leaf):
        assert len(set(y[leaf == v])) == 1


@given(tasks(), st.integers(1, 4), st.sampled_from(["gini", "entropy"]))
def test_trees_on_classes_know_the_weights_of_their_rows(task, n_classes, criterion):
    X, _, h, _ = task
    y = np.random.default_rng(len(X)).integers(0, n_classes, size=len(X))
    grower = BinnedGrower(Bins.from_table(X), max_leaves=12)
    forest = grower.grow_classes(y, n_classes, 1, criterion=criterion, sample_weight=h)
    tree, said = forest.trees.tree(0), forest.class_weights(n_classes)
    leaf = tree.apply(X)
    for v in np.flatnonzero(tree.is_leaf):
        own = leaf == v
        expected = np.bincount(y[own], h[own], n_classes)
        np.testing.assert_allclose(said[v], expected, atol=len(X) * 2.0**-40 * h.max())
    inner = np.flatnonzero(~tree.is_leaf)
    assert np.allclose(said[inner], said[tree.left[inner]] + said[tree.left[inner] + 1])


@pytest.mark.parametrize("order", ["best", "level"])
def test_the_order_of_growth_tells_where_nodes_stand_alone(order):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, size=300)
    X[rng.random(X.shape) < 0.1] = np.nan
    grown, depth_first = (
        BinnedGrower(Bins.from_table(X), order=one).grow_classes(y, 3, 1)
        for one in (order, "depth")
    )
    tables = []
    for forest in (grown, depth_first):
        said = forest.class_weights(3)
        tables.append(said[forest.trees.tree(0).apply(X)])
        assert len(said) == len(depth_first.trees.left)
    assert np.array_equal(*tables)


def test_bad_classes_are_refused():
    grower = BinnedGrower(Bins.from_table([[0.0], [1.0]]), monotonic_cst=[1])
    with pytest.raises(ValueError, match="more than two classes, got 3"):
        grower.grow_classes([0, 1], 3, 1)
    with pytest.raises(ValueError, match=r"y must lie in 0 \.\. 1"):
        grower.grow_classes([0, 2], 2, 1)
    with pytest.raises(ValueError, match='criterion must be "gini", "entropy" or "log_loss"'):
        grower.grow_classes([0, 1], 2, 1, criterion="squared")
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        grower.grow_classes([0, 1], 2, 1, sample_weight=[1.0, np.nan])


def test_steps_of_a_monotonic_tree_are_in_order():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 3))
    g = np.sin(9 * X[:, 0]) - X[:, 1] + rng.normal(size=2000)
    grower = BinnedGrower(Bins.from_table(X), max_leaves=60, monotonic_cst=[1, 0, 0])
    tree, _, sums = grower.grow_gradients(g, np.ones(2000))
    step = -sums[:, 0] / sums[:, 1]
    grid = np.linspace(0, 1, 50)
    for _ in range(20):
        line = np.repeat(rng.random((1, 3)), 50, axis=0)
        line[:, 0] = grid
        assert (np.diff(step[tree.apply(line)]) >= 0).all()


def test_features_of_different_groups_never_meet():
    rng = np.random.default_rng(1)
    X = rng.random((500, 4))
    g = X[:, 0] * X[:, 2] + X[:, 1] * X[:, 3] + rng.normal(size=500) / 9
    grower = BinnedGrower(Bins.from_table(X), max_leaves=40, interaction_cst=[{0, 1}, {1, 2}])
    tree = grower.grow_gradients(g - g.mean(), np.ones(500)).tree
    for leaf in np.flatnonzero(tree.is_leaf):
        above = {int(tree.feature[v]) for v in reference.find_path(tree, leaf)[:-1]}
        assert any(above <= group for group in ({0, 1}, {1, 2}, {3}))


# -- categories


def test_rare_levels_share_a_bin():
    x = np.repeat(np.arange(400.0), 1 + np.arange(400) % 3)
    bins = Bins.from_table(x[:, None], [0])
    assert bins.n_bins[0] == 255
    n_rows = np.bincount(x.astype(int))
    own = sorted(range(400), key=lambda level: (-n_rows[level], level))[:254]
    expected = np.full(400, 254)
    expected[sorted(own)] = np.arange(254)
    assert np.array_equal(bins.codes[0], expected[x.astype(int)])
    assert bins.category_codes.tolist() == list(range(400))
    assert np.array_equal(bins.category_bin, expected)


@pytest.mark.parametrize("n_levels", [5, 254, 255, 600])
def test_sets_send_rows_of_any_level_where_they_belong(n_levels):
    rng = np.random.default_rng(n_levels)
    level = rng.integers(0, n_levels, size=6000)
    X = np.column_stack([level, rng.normal(size=6000)]).astype(float)
    X[rng.random(6000) < 0.05, 0] = np.nan
    g = np.where(level % 3 == 0, 1.0, -1.0) + rng.normal(size=6000)
    grower = BinnedGrower(Bins.from_table(X, [0]), max_leaves=20)
    grown = grower.grow_gradients(g, np.ones(6000), rows=rng.permutation(6000)[:4000])
    assert np.array_equal(grown.tree.apply(X), grown.leaf)
    assert len(grown.tree.categories) > 0


def test_levels_of_chance_are_passed_over():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, size=(2000, 1)).astype(float)
    grower = BinnedGrower(Bins.from_table(X, [0]))
    assert grower.grow_gradients(rng.normal(size=2000), rng.random(2000)).tree.n_leaves == 1


@pytest.mark.parametrize("seed", choose_seeds(6))
def test_the_first_set_is_that_of_the_exact_grower(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 30, size=(400, 1)).astype(float)
    X[rng.random(400) < 0.1 * (seed % 2)] = np.nan
    y = rng.normal(size=30)[np.nan_to_num(X[:, 0]).astype(int)] + rng.normal(size=400)
    grown = BinnedGrower(Bins.from_table(X, [0])).grow_gradients(y.mean() - y, np.ones(400))
    exact = grow_cart(X, y, categorical_features=[0])
    sides = [np.array([reference.goes_left(tree, 0, x) for x in X]) for tree in (grown.tree, exact)]
    assert np.array_equal(*sides) or np.array_equal(sides[0], ~sides[1])


def test_levels_must_be_whole_numbers():
    with pytest.raises(ValueError, match=r"whole numbers 0, 1, \.\.\., got 0\.5"):
        Bins.from_table([[0.5], [1.0]], [0])


@pytest.mark.parametrize("seed", choose_seeds(10))
def test_the_first_split_is_that_of_the_exact_grower(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 250, size=(300, 3)).astype(float)
    X[rng.random(X.shape) < 0.1 * (seed % 2)] = np.nan
    y = np.nan_to_num(X[:, 0]) * 0.01 + rng.normal(size=300)
    grown = BinnedGrower(Bins.from_table(X), max_leaves=None).grow_gradients(
        y.mean() - y, np.ones(300)
    )
    exact = grow_cart(X, y)
    for name in ("feature", "threshold", "missing_left"):
        assert getattr(grown.tree, name)[0] == getattr(exact, name)[0]


# -- what must hold for any rows


@given(tasks(), st.integers(1, 20), st.booleans(), st.sampled_from([0.0, 1.0]))
def test_the_leaf_of_every_row_is_where_the_tree_sends_it(task, max_leaves, best_first, l2):
    X, g, h, rows = task
    order = "best" if best_first else "level"
    grower = BinnedGrower(Bins.from_table(X), max_leaves=max_leaves, order=order)
    tree, leaf, sums = grower.grow_gradients(g, h, rows=rows, l2=l2)
    assert np.array_equal(tree.apply(X), leaf)
    assert tree.n_leaves <= max_leaves
    inner = np.flatnonzero(~tree.is_leaf)
    children = sums[tree.left[inner]] + sums[tree.left[inner] + 1]
    assert np.allclose(sums[inner], children, rtol=1e-12, atol=1e-9 * np.abs(sums[0]).max())
    assert np.array_equal(
        np.bincount(leaf[rows], minlength=tree.n_nodes)[tree.is_leaf], sums[tree.is_leaf, 2]
    )
    for v in inner:
        values = X[rows, tree.feature[v]]
        assert (values == tree.threshold[v]).any() or not np.isin(values, tree.threshold[v]).any()


@given(tasks(), st.randoms(use_true_random=False))
def test_trees_depend_on_no_order_of_rows(task, random):
    X, g, h, rows = task
    order = list(range(len(X)))
    random.shuffle(order)
    place = np.argsort(order)
    grown = BinnedGrower(Bins.from_table(X), max_leaves=8).grow_gradients(g, h, rows=rows)
    mixed = place[rows]
    random.shuffle(mixed)
    other = BinnedGrower(Bins.from_table(X[order]), max_leaves=8, n_jobs=2)
    again = other.grow_gradients(g[order], h[order], rows=mixed)
    expect_same(grown, again)
    assert np.array_equal(grown.leaf[order], again.leaf)


@pytest.mark.threads
def test_trees_depend_on_no_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 9))
    X[rng.random(X.shape) < 0.1] = np.nan
    g, h = np.nan_to_num(X[:, 0]) + rng.normal(size=len(X)), rng.random(len(X))
    rows = np.sort(rng.permutation(len(X))[:20_000])
    bins = Bins.from_table(X)
    alone = BinnedGrower(bins).grow_gradients(g, h, rows=rows)
    for n_jobs in (2, 3, 16):
        together = BinnedGrower(Bins.from_table(X, n_jobs=n_jobs), n_jobs=n_jobs)
        grown = together.grow_gradients(g, h, rows=rows)
        expect_same(alone, grown)
        assert np.array_equal(alone.leaf, grown.leaf)
    assert np.array_equal(alone.tree.apply(X), alone.leaf)


def test_large_nodes_are_added_up_block_by_block():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, size=(9000, 2)).astype(float)
    g, h = rng.integers(-9, 9, size=9000).astype(float), np.ones(9000)
    grown = BinnedGrower(Bins.from_table(X), max_leaves=None).grow_gradients(g, h)
    for v in np.flatnonzero(grown.tree.is_leaf):
        rows = grown.leaf == v
        assert grown.sums[v].tolist() == [g[rows].sum(), rows.sum(), rows.sum()]


def test_rounding_is_below_what_is_promised():
    rng = np.random.default_rng(2)
    g, h = rng.normal(size=4000) * 10.0 ** rng.integers(-9, 3, size=4000), rng.random(4000)
    grown = BinnedGrower(Bins.from_table(np.arange(4000.0)[:, None]), max_leaves=1).grow_gradients(
        g, h
    )
    assert abs(grown.sums[0, 0] - g.sum()) < 4000 * 2.0**-40 * np.abs(g).max()
    assert abs(grown.sums[0, 1] - h.sum()) < 4000 * 2.0**-40


# -- ends


def leaves(X, g, h, l2=0.0, **options):
    return BinnedGrower(Bins.from_table(X), **options).grow_gradients(g, h, l2=l2).tree.n_leaves


def test_what_cannot_be_split_is_a_leaf():
    assert leaves([[1.0]], [1.0], [1.0]) == 1
    assert leaves(np.ones((5, 2)), np.arange(5.0), np.ones(5)) == 1
    assert leaves(np.full((5, 1), np.nan), np.arange(5.0), np.ones(5)) == 1
    assert leaves(np.arange(50.0)[:, None], np.full(50, 0.3), np.ones(50)) == 1
    assert leaves(np.arange(5.0)[:, None], np.zeros(5), np.ones(5)) == 1
    assert leaves(np.arange(5.0)[:, None], np.arange(5.0), np.zeros(5)) == 1
    assert leaves(np.arange(5.0)[:, None], np.arange(5.0), np.ones(5), max_depth=0) == 1
    assert leaves(np.arange(5.0)[:, None], np.arange(-2.0, 3.0), np.zeros(5), l2=1.0) > 1


def test_features_that_may_not_be_compared_are_not():
    X, g, h = drawn(0)
    grower = BinnedGrower(Bins.from_table(X))
    tree = grower.grow_gradients(g, h, features=[1]).tree
    assert set(tree.feature[~tree.is_leaf]) == {1}
    assert grower.grow_gradients(g, h, features=np.zeros(0, dtype=int)).tree.n_leaves == 1


def test_rows_that_are_not_given_have_no_leaf():
    X, g, h = drawn(1)
    leaf = BinnedGrower(Bins.from_table(X)).grow_gradients(g, h, rows=[0, 1, 5, 9], others=[2]).leaf
    assert (np.flatnonzero(leaf >= 0) == [0, 1, 2, 5, 9]).all()


def test_a_row_that_is_given_twice_counts_twice():
    X, g, h = drawn(2)
    rows = np.arange(len(X)).repeat(2)
    grown = BinnedGrower(Bins.from_table(X), max_leaves=5).grow_gradients(g, h, rows=rows)
    once = BinnedGrower(Bins.from_table(X), max_leaves=5).grow_gradients(g, h)
    assert np.array_equal(grown.tree.left, once.tree.left)
    assert np.array_equal(grown.sums, 2 * once.sums)


def test_the_scale_of_gradients_does_not_matter():
    X, g, h = drawn(3)
    plain = BinnedGrower(Bins.from_table(X)).grow_gradients(g, h)
    for exponent in (-1000, -900, 900, 1000):
        grown = BinnedGrower(Bins.from_table(X)).grow_gradients(np.ldexp(g, exponent), h)
        assert np.array_equal(grown.tree.threshold, plain.tree.threshold)
        grown = BinnedGrower(Bins.from_table(X)).grow_gradients(g, np.ldexp(h, exponent))
        assert np.array_equal(grown.tree.threshold, plain.tree.threshold)


def test_other_rows_may_have_any_gradients():
    X, g, h = drawn(4)
    g[3], h[5] = np.nan, -1.0
    rows = np.setdiff1d(np.arange(len(X)), [3, 5])
    grown = BinnedGrower(Bins.from_table(X)).grow_gradients(g, h, rows=rows)
    assert np.array_equal(grown.tree.apply(X), grown.leaf)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gradient": [0.0, np.nan, 1.0]}, "gradients must be finite, got nan"),
        ({"gradient": [0.0, np.inf, 1.0]}, "gradients must be finite, got inf"),
        ({"hessian": [1.0, -np.inf, 1.0]}, "Hessians must be finite and not negative, got -inf"),
        ({"hessian": [1.0, -1.0, 1.0]}, "Hessians must be finite and not negative, got -1"),
        ({"gradient": [0.0, 1.0]}, r"gradient must have shape \(3,\), got \(2,\)"),
        ({"rows": []}, "rows must have at least one row number"),
        ({"rows": [3]}, r"rows must lie in 0 \.\. 2"),
        ({"others": [-1]}, r"others must lie in 0 \.\. 2"),
        ({"features": [1]}, r"features must lie in 0 \.\. 0"),
        ({"l2": -1.0}, "l2 must be a finite number"),
        ({"min_hessian": np.nan}, "min_hessian must be a finite number"),
        ({"rows": [[0]]}, r"rows must have one dimension"),
    ],
)
def test_bad_rows_are_refused(changes, words):
    given = {"gradient": [1.0, 2.0, 3.0], "hessian": [1.0, 1.0, 1.0], **changes}
    with pytest.raises(ValueError, match=words):
        BinnedGrower(Bins.from_table([[0.0], [1.0], [2.0]])).grow_gradients(**given)


def test_wrong_types_are_refused():
    grower = BinnedGrower(Bins.from_table([[0.0], [1.0]]))
    with pytest.raises(TypeError, match="rows must hold integers"):
        grower.grow_gradients([0.0, 1.0], [1.0, 1.0], rows=[0.5])
    with pytest.raises(TypeError, match="gradient must be numeric"):
        grower.grow_gradients(["a", "b"], [1.0, 1.0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_leaves": 0}, "max_leaves must be an integer >= 1, got 0"),
        ({"max_depth": -1}, "max_depth must be an integer >= 0"),
        ({"min_samples_leaf": 0.5}, "min_samples_leaf must be an integer"),
        ({"min_gain": np.inf}, "min_gain must be a finite number"),
        ({"order": "worst"}, 'order must be "best", "level" or "depth", got \'worst\''),
        ({"order": "depth", "max_leaves": 3}, 'max_leaves must be None with order="depth", got 3'),
        ({"monotonic_cst": [1, 1]}, r"monotonic_cst must have shape \(1,\)"),
        ({"interaction_cst": [0]}, r"must be None or a sequence of tuples or lists, got: \[0\]"),
        ({"interaction_cst": "pairwise"}, "must be None or a sequence of tuples or lists"),
        ({"interaction_cst": ["a"]}, "must be None or a sequence of tuples or lists"),
        ({"interaction_cst": [[1]]}, r"= \[0, 0\], got invalid indices: \[1\]"),
        ({"interaction_cst": [{-1}]}, r"= \[0, 0\], got invalid indices: \{-1\}"),
        ({"interaction_cst": [[False]]}, r"got invalid indices: \[False\]"),
        (
            {"interaction_cst": [(0.0,)]},
            r"must consist of integer indices in \[0, n_features - 1\]",
        ),
        ({"interaction_cst": [["a"]]}, r"must consist of integer indices in \[0, n_features - 1\]"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        BinnedGrower(Bins.from_table([[0.0]]), **options)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_features": 1}, "max_features"),
        ({"max_features_per_tree": 1}, "max_features_per_tree"),
        ({"random_cuts": True}, "random_cuts"),
        ({"bootstrap": True}, "bootstrap"),
        ({"n_draws": 1}, "n_draws"),
        ({"order": "depth"}, 'order="depth"'),
    ],
)
def test_gradients_take_given_rows_and_all_splits(options, name):
    grower = BinnedGrower(Bins.from_table([[0.0], [1.0]]), **options)
    with pytest.raises(ValueError, match=f"{name} is set, but grow_gradients does not support it"):
        grower.grow_gradients([0.0, 1.0], [1.0, 1.0])


def test_tables_without_rows_are_refused():
    with pytest.raises(ValueError, match="at least one row and one feature"):
        Bins.from_table(np.zeros((0, 2)))


# -- rows most of whose values are 0


def sparse_table(seed, n=300, p=6):
    """Values of both signs, some of them missing, few or many of a feature."""
    rng = np.random.default_rng(seed)
    X = sparse.random(n, p, [0.5, 0.05, 1.0][seed % 3], format="csr", random_state=rng)
    X.data -= rng.choice([0.0, 0.4, 1.5])
    if seed % 4 < 2:
        X.data[rng.random(X.nnz) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("seed", choose_seeds(12))
@pytest.mark.parametrize("fine_ends", [False, True])
def test_bins_of_sparse_rows_are_those_of_the_dense_table(seed, fine_ends, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(bins_module, "EDGE_ROWS", 400)
    X = sparse_table(seed, n=700)
    bins, dense = (Bins.from_table(one, fine_ends=fine_ends, n_jobs=2) for one in (X, X.toarray()))
    for mine, theirs in zip(bins.core_columns, dense.core_columns, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (bins.n_features, bins.n_rows) == (dense.n_features, dense.n_rows)
    rows = np.random.default_rng(0).integers(0, 700, 50)
    for j in range(6):
        np.testing.assert_array_equal(bins.column(j), dense.codes[j])
        np.testing.assert_array_equal(
            bins.select_rows(rows).column(j), dense.select_rows(rows).codes[j]
        )
        assert (bins.codes.zero[j] != bins.codes.code[slice(*bins.codes.start[j : j + 2])]).all()


@pytest.mark.parametrize("seed", choose_seeds(12))
def test_trees_of_sparse_rows_are_those_of_the_dense_table(seed):
    rng = np.random.default_rng(seed)
    X = sparse_table(seed)
    g, h = rng.normal(size=300) - np.nan_to_num(X.toarray()[:, 0]), rng.random(300)
    how = {
        "max_leaves": [None, 5][seed % 2],
        "min_samples_leaf": 1 + seed % 3,
        "order": ["best", "level"][seed % 2],
        "monotonic_cst": [None, [1, 0, -1, 0, 0, 0]][seed // 2 % 2],
        "interaction_cst": [None, [[0, 1], [1, 2, 3]]][(seed + 1) // 2 % 2],
    }
    rows = rng.integers(0, 300, 200)
    one, other = (
        BinnedGrower(Bins.from_table(X_of), **how, n_jobs=n_jobs).grow_gradients(
            g, h, l2=0.5, rows=rows, others=np.arange(50), features=[0, 1, 3, 5]
        )
        for X_of, n_jobs in ((X, 2), (X.toarray(), 1))
    )
    expect_same(one, other)


def test_sparse_bins_refuse_what_they_cannot_do():
    bins = Bins.from_table(sparse.csr_array(np.eye(40)))
    with pytest.raises(TypeError, match="codes must be those of a dense table for coarsen"):
        bins.coarsen(4, 1)
    with pytest.raises(ValueError, match="categorical must be None for a sparse X"):
        Bins.from_table(sparse.csr_array(np.eye(4)), [0])
    with pytest.raises(ValueError, match="contains infinity"):
        Bins.from_table(sparse.csr_array([[np.inf, 0.0]]))
    with pytest.raises(ValueError, match="at least one row and one feature"):
        Bins.from_table(sparse.csr_array((0, 3)))


def test_the_core_refuses_codes_that_do_not_go_together():
    bins = Bins.from_table(sparse.csr_array(np.eye(5)))
    codes = bins.codes
    wrong = [
        codes._replace(start=codes.start[:-1]),
        codes._replace(start=codes.start[::-1].copy()),
        codes._replace(row=codes.row + 1),
        codes._replace(code=codes.code + 1),
        codes._replace(code=codes.code[:-1]),
        codes._replace(zero=codes.zero + 9),
        codes._replace(n_rows=3),
    ]
    for one in wrong:
        grower = BinnedGrower(replace(bins, codes=one))
        with pytest.raises(ValueError, match=r"must|expected|code|start|row"):
            grower.grow_gradients(np.ones(one.n_rows), np.ones(one.n_rows))
    start, feature, code, zero = codes.to_csr_arrays(None)
    rest = (bins.core_columns, None, np.zeros(5, dtype=np.int32), 2, "gini")
    options = (grower.row_sampling, 0, 1, 5, False), grower._limits, None, None, 1
    for rows in (
        (start[::-1].copy(), feature, code, zero),
        (start, feature + 1, code, zero),
        (start, feature, code + 1, zero),
        (start, feature, code, zero + 9),
        (start[:0], feature, code, zero),
    ):
        with pytest.raises(ValueError, match=r"must|expected"):
            grow_class_trees(rows, *rest, *options)
