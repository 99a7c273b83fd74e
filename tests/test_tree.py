"""Trees as columns: checks of columns, and the leaves that rows reach."""

import copy
import io
import pickle
from dataclasses import fields, replace

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference
from certree import (
    CertifiedTreeClassifier,
    DecoratedTreeRegressor,
    HelmboldSchapireTreeClassifier,
    NodeStats,
    NodeWeights,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TargetStats,
    Tree,
    Vote,
    grow_kd,
)
from certree.certificates import branching_prior
from certree.certificates.posteriors import LabelledWeights
from certree.estimators.naive_bayes.densities import CategoricalTable, Histogram, Moments, Normal
from certree.estimators.naive_bayes.powers import POWERS, PowerLosses
from certree.estimators.tune import Mixture
from certree.interface.arrays import ArrayRecord, check_column, check_row_weights
from certree.prunings import cost_complexity_path, sibling_merge_path
from certree.prunings.paths import PruningPath
from certree.prunings.scott_nowak import FragmentPrunings
from certree.tree import Trees
from certree.votes import NodePredictions
from certree.weights import average
from certree.weights.family import ChainStops, PosteriorFamily
from strategies import trees

SETS = {"category_start": [0, 2, 2, 2, 2, 2], "categories": [0, 1]}


def tree_columns(**changes):
    valid = {
        "feature": [0, 1, 0, 0, 0],
        "threshold": [0.5, -1.0, 0.0, 0.0, 0.0],
        "left": [1, 3, -1, -1, -1],
        "chain": [1, 2, 1, 1, 1],
        "n_features": 2,
    }
    return {**valid, **changes}


ODD_VALUES = [np.nan, -1.0, 0.5, 3e9, 2.0**31, 2.0**31 - 1, 1e300, -1e300, -0.0]


@pytest.mark.threads
@given(trees(sets=True), st.data())
def test_apply_with_sets_equals_the_literal_tree(tree, data):
    values = st.one_of(st.integers(-1, 6).map(float), st.sampled_from(ODD_VALUES))
    X = data.draw(hnp.arrays(float, (data.draw(st.integers(0, 200)), 3), elements=values))
    expected = reference.apply(tree, X)
    for n_jobs in (None, 2):
        np.testing.assert_array_equal(tree.apply(X, n_jobs=n_jobs), expected)
    by_row = [tree.apply(x[None])[0] for x in X]
    np.testing.assert_array_equal(by_row, expected)
    with np.errstate(over="ignore"):
        single = X[abs(X).max(axis=1, initial=0) < 1e30].astype(np.float32)
    np.testing.assert_array_equal(tree.apply(single), reference.apply(tree, single))


def test_infinities_are_in_no_set():
    tree = Tree([0] * 3, [0.0] * 3, [1, -1, -1], [1] * 3, 1, None, [0, 2, 2, 2], [0, 2**31 - 1])
    rows = np.array([[np.inf], [-np.inf], [2.0**31], [0.0], [2.0**31 - 1]])
    for X in (rows, np.repeat(rows, 100, axis=0)):
        assert set(tree.route(X, 1)[X[:, 0] == 0]) == {1}
        assert set(tree.route(X, 1)[np.isinf(X[:, 0])]) == {2}


@given(trees(sets=True), st.data())
def test_keep_nodes_stops_at_the_new_leaves(tree, data):
    pruned = {v for v in range(tree.n_nodes) if data.draw(st.booleans())}
    below = {
        v
        for v in range(tree.n_nodes)
        if any(u in pruned for u in reference.find_path(tree, v)[:-1])
    }
    kept = np.array([v for v in range(tree.n_nodes) if v not in below])
    is_leaf = np.array([v in pruned or tree.left[v] < 0 for v in kept])
    small = tree.keep_nodes(kept, is_leaf)
    X = np.array([[a, b, c] for a in (-1, 0, 2, np.nan) for b in (1, 3) for c in (0, 4, np.nan)])
    for leaf, number in zip(tree.apply(X), small.apply(X), strict=True):
        assert kept[number] in reference.find_path(tree, leaf)
    assert len(small.categories) == sum(
        len(tree.category_set(v)) for v, leaf in zip(kept, is_leaf, strict=True) if not leaf
    )


@pytest.mark.threads
@given(trees(), st.data())
def test_apply_equals_the_literal_tree(tree, data):
    values = st.one_of(st.integers(-4, 4).map(float), st.just(float("nan")))
    X = data.draw(hnp.arrays(float, (data.draw(st.integers(0, 200)), 3), elements=values))
    expected = reference.apply(tree, X)
    for n_jobs in (None, 2, -1):
        np.testing.assert_array_equal(tree.apply(X, n_jobs=n_jobs), expected)
    np.testing.assert_array_equal(tree.apply(X.astype(np.float32)), expected)


@pytest.mark.threads
def test_a_large_batch_reaches_the_leaves_of_small_batches():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    tree = grow_kd(X[:3000])
    batch = tree.apply(X)
    in_blocks = np.concatenate([tree.apply(X[i : i + 7]) for i in range(0, 7000, 7)])
    np.testing.assert_array_equal(batch[:7000], in_blocks)
    np.testing.assert_array_equal(batch, tree.apply(X, n_jobs=2))
    np.testing.assert_array_equal(batch[:200], reference.apply(tree, X[:200]))


@given(trees())
def test_derived_columns(tree):
    assert tree.n_leaves == tree.is_leaf.sum()
    assert tree.n_cells == tree.chain.sum()
    depth = [reference.compute_depth(tree, v) for v in range(tree.n_nodes)]
    np.testing.assert_array_equal(tree.node_depth, depth)
    assert tree.depth == max(d + c - 1 for d, c in zip(depth, tree.chain, strict=True))
    for v in range(1, tree.n_nodes):
        assert tree.parent[v] == reference.find_path(tree, v)[-2]
    assert tree.parent[0] == -1


def test_columns_are_read_only_and_survive_a_pickle():
    tree = Tree(**tree_columns())
    with pytest.raises(ValueError, match="read-only"):
        tree.left[0] = 3
    again = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(again.left, tree.left)
    assert again.n_features == 2


def test_columns_are_copies_of_writable_arrays():
    left = np.array([1, -1, -1], dtype=np.int32)
    tree = Tree([0, 0, 0], [0.0, 0, 0], left, [1, 1, 1], 1)
    left[0] = 0
    assert tree.left[0] == 1


def copy_by_joblib(value):
    file = io.BytesIO()
    joblib.dump(value, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "protocol 2": lambda value: pickle.loads(pickle.dumps(value, protocol=2)),
    "joblib": copy_by_joblib,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def column_instances():
    tree = Tree(**tree_columns(**SETS))
    posterior = NodeWeights(np.ones(5) / 2, np.zeros(5), 0.0, np.zeros(5), np.zeros(5))
    return [
        tree,
        NodeStats(np.ones((5, 2)), np.zeros(5, dtype=int)),
        TargetStats(np.ones(5), np.zeros(5), np.ones(5), 2.0),
        posterior,
        Vote(np.ones((5, 1))),
        LabelledWeights(posterior, np.full((5, 2), 0.5)),
        branching_prior(tree, 2),
        Mixture(np.ones((2, 3)), np.full(2, 0.5), ["one", "other"]),
        *pruning_instances(tree),
        *naive_bayes_instances(),
    ]


def pruning_instances(tree):
    stops = ChainStops(*np.zeros((4, 5)))
    stats = NodeStats(np.ones((5, 2)), np.zeros(5, dtype=int))
    return [
        stops,
        PosteriorFamily(tree, np.zeros((5, 2)), np.zeros(2), np.zeros(1), stops),
        cost_complexity_path(tree, stats),
        sibling_merge_path(tree, stats),
        FragmentPrunings(tree, *np.zeros((5, 5))),
        NodePredictions(np.zeros(5, dtype=np.int64), None, 2),
        NodePredictions(None, np.zeros((5, 2)), 2),
    ]


def naive_bayes_instances():
    table = CategoricalTable(np.zeros((2, 3)), 1.0)
    none = np.zeros(len(POWERS))
    return [
        Moments(*np.ones((3, 2))),
        Normal(*np.ones((2, 2))),
        table,
        Histogram(np.arange(4.0), table),
        PowerLosses(1.0, none, none),
    ]


def get_arrays(value):
    columns = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: column for name, column in columns.items() if isinstance(column, np.ndarray)}


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("value", column_instances(), ids=lambda value: type(value).__name__)
def test_copies_have_read_only_columns(value, make_copy):
    again = make_copy(value)
    assert type(again) is type(value)
    assert get_arrays(value).keys() == get_arrays(again).keys() != set()
    for name, values in get_arrays(again).items():
        np.testing.assert_array_equal(values, get_arrays(value)[name])
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            values.flags.writeable = True


@pytest.mark.parametrize(
    "model",
    [
        PACBayesTreeClassifier(),
        PACBayesTreeClassifier("kd", search="joint", max_depth=3),
        PACBayesTreeClassifier("dyadic"),
        PACBayesTreeRegressor(),
        HelmboldSchapireTreeClassifier(),
        PrunedTreeClassifier(),
        PrunedTreeRegressor("dyadic", rule="square-root"),
        CertifiedTreeClassifier(),
        CertifiedTreeClassifier("dyadic", posteriors="cv"),
        DecoratedTreeRegressor(),
    ],
    ids=repr,
)
def test_unchecked_instances_pass_the_checks_and_are_read_only(model, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    X[:80, 1] = X[80:160, 1]
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    if not isinstance(model, DecoratedTreeRegressor):
        X[::9, 0] = np.nan
    unchecked, instances = ArrayRecord.from_checked.__func__, []

    def check_as_well(cls, *values):
        cls(*values)
        instances.append(unchecked(cls, *values))
        return instances[-1]

    monkeypatch.setattr(ArrayRecord, "from_checked", classmethod(check_as_well))
    model.set_params(random_state=0).fit(X, y, rng.integers(1, 4, 200))
    assert instances
    public = [
        value for value in instances if isinstance(value, Tree | NodeStats | NodeWeights | Vote)
    ]
    for values in filter(len, (array for value in public for array in get_arrays(value).values())):
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            values.flags.writeable = True


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
def test_copies_are_checked(make_copy):
    tree = Tree(**tree_columns())
    object.__setattr__(tree, "left", np.array([1, 10**6, -1, -1, -1], dtype=np.int32))
    with pytest.raises(ValueError, match="left must be -1 or a node after its parent"):
        make_copy(tree)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            lambda tree, stops: PosteriorFamily(
                tree, np.zeros((4, 1)), np.zeros(1), np.zeros(0), stops
            ),
            "gains",
        ),
        (lambda *_: ChainStops(np.zeros(5), *np.zeros((3, 4))), "log_split"),
        (lambda tree, _: PruningPath(tree, np.zeros(1), np.zeros(4)), "critical"),
        (lambda tree, _: FragmentPrunings(tree, *np.zeros((5, 4))), "cost_gains"),
        (lambda *_: NodePredictions(np.array([0, 2]), None, 2), "label"),
        (lambda *_: NodePredictions(None, np.zeros((5, 3)), 2), "values"),
        (lambda *_: Histogram(np.arange(3.0), CategoricalTable(np.zeros((2, 3)), 1.0)), "edges"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_of_other_sizes_are_refused(wrong, reason):
    with pytest.raises(ValueError, match=reason):
        wrong(Tree(**tree_columns()), ChainStops(*np.zeros((4, 5))))


@pytest.mark.parametrize("view", ["slice", "owner", "memoryview"])
def test_a_read_only_view_of_writable_memory_is_copied(view):
    writable = np.array([1, -1, -1], dtype=np.int32)
    left = writable[:]
    if view == "owner":  # the view can be written, and not what owns the memory
        left, writable = writable, left
    elif view == "memoryview":
        left = np.frombuffer(memoryview(writable).toreadonly(), dtype=np.int32)
    left.flags.writeable = False
    tree = Tree([0, 0, 0], [0.0, 0, 0], left, [1, 1, 1], 1)
    writable[0] = 10**6
    assert tree.left.tolist() == [1, -1, -1]
    assert tree.apply([[0.0], [1.0]]).tolist() == [1, 2]


def test_columns_that_were_checked_are_shared():
    tree = Tree(**tree_columns())
    assert replace(tree, n_features=3).left is tree.left


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": [0, 3, -1, -1, -1]}, "left must be -1 or a node after its parent"),
        ({"left": [1, 1, -1, -1, -1]}, "left must be -1 or a node after its parent"),
        ({"left": [1, 4, -1, -1, -1]}, "followed by its sibling"),
        ({"left": [1, 99, -1, -1, -1]}, "followed by its sibling"),
        ({"left": [-2, 3, -1, -1, -1]}, "left must be -1 or a node"),
        ({"left": [1, 2, -1, -1, -1]}, "exactly one parent"),
        ({"left": [1, -1, -1, -1, -1]}, "exactly one parent"),
        ({"left": [3, 3, -1, -1, -1]}, "exactly one parent"),
        ({"feature": [0, 2, 0, 0, 0]}, "feature must lie in 0 .. 1"),
        ({"feature": [-1, 1, 0, 0, 0]}, "feature must lie in 0 .. 1"),
        ({"threshold": [np.nan, 0, 0, 0, 0]}, "threshold must be finite"),
        ({"threshold": [np.inf, 0, 0, 0, 0]}, "threshold must be finite"),
        ({"chain": [0, 1, 1, 1, 1]}, "chain must be at least 1"),
        ({"chain": [2**31 - 1, 1, 1, 1, 1]}, "chain must be at least 1 and at most 16777216"),
        ({"chain": [1, 1, 1]}, r"chain must have shape \(5\), got \(3,\)"),
        ({"threshold": np.zeros((5, 1))}, r"threshold must have shape \(5\)"),
        ({"left": np.zeros(0, dtype=np.int32)}, r"must have shape \(0\)|at least one node"),
        ({"left": [1, 2**40, -1, -1, -1]}, "left must fit into int32"),
        ({"categories": [1]}, "category_start must ascend from 0"),
        ({"category_start": [0, 1, 1, 1, 1, 1]}, "category_start must ascend from 0"),
        ({**SETS, "category_start": [0, 2, 2, 2, 2]}, r"category_start must have shape \(6\)"),
        ({**SETS, "category_start": [1, 2, 2, 2, 2, 2]}, "category_start must ascend from 0"),
        ({**SETS, "category_start": [0, 3, 2, 2, 2, 2]}, "category_start must ascend from 0"),
        (
            {**SETS, "category_start": [0, 0, 0, 2, 2, 2]},
            "category_start must give leaves no categories",
        ),
        ({**SETS, "categories": [1, 0]}, "distinct and ascending"),
        ({**SETS, "categories": [1, 1]}, "distinct and ascending"),
        ({**SETS, "categories": [-1, 1]}, "must be >= 0"),
        ({"optimal_splits": "yes"}, "optimal_splits must be None or True or False"),
    ],
)
def test_columns_that_are_no_tree_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Tree(**tree_columns(**changes))


def test_each_node_stands_for_one_region_unless_chain_says_otherwise():
    columns = tree_columns()
    for chain in (columns.pop("chain"), [1] * 5):
        in_order = (columns["feature"], columns["threshold"], columns["left"], chain, 2)
        assert Tree(*in_order).chain.tolist() == chain
    assert Tree(**columns).chain.tolist() == [1] * 5
    assert Tree(**columns, chain=None).n_cells == 5
    del columns["n_features"]
    with pytest.raises(TypeError, match="n_features must be an integer, got None"):
        Tree(**columns)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("left", [1.0, 3, -1, -1, -1]),
        ("threshold", np.zeros(5, dtype=np.float16)),
        ("threshold", np.zeros(5, dtype=object)),
        ("feature", ["0"] * 5),
    ],
)
def test_lossy_dtypes_are_refused(name, values):
    with pytest.raises(TypeError, match=f"{name} must convert to .* without loss"):
        Tree(**tree_columns(**{name: values}))


# -- many trees and many rows: the core compares codes in small trees


def random_tree(random, n_leaves, thresholds, most_categories, n_outputs):
    """Draw a tree with `n_leaves` leaves: feature 0 has thresholds, 1 has sets, 2 has both."""
    m = 2 * n_leaves - 1
    left, sizes = np.full(m, -1, dtype=np.int32), np.zeros(m, dtype=np.int64)
    sets = []
    for k in range(n_leaves - 1):
        # Leaves with large numbers are split more often, so that depths differ.
        leaves = np.flatnonzero(left[: 2 * k + 1] < 0)
        left[leaves[int(len(leaves) * random.random() ** 0.5)]] = 2 * k + 1
    inner = left >= 0
    feature = np.where(inner, random.integers(0, 3, m), 0).astype(np.int32)
    has_set = inner & (feature > 0) & ((feature == 1) | (random.random(m) < 0.5))
    for v in np.flatnonzero(has_set):
        sets.append(np.unique(random.integers(0, most_categories, random.integers(1, 9))))
        sizes[v] = len(sets[-1])
    return Tree.from_valid_columns(
        left,
        3,
        feature=feature,
        threshold=np.where(inner & ~has_set, random.choice(thresholds, m), 0.0),
        chain=np.ones(m, dtype=np.int32),
        missing_left=inner & (random.random(m) < 0.5),
        category_start=np.append(0, np.cumsum(sizes)),
        categories=np.concatenate([np.zeros(0), *sets]).astype(np.int32),
        value=random.normal(size=(m, n_outputs)),
    )


FEW = np.r_[-np.inf, np.inf, 0.0, -0.0, np.arange(-9, 9) / 4]
MANY = np.r_[FEW, np.random.default_rng(0).normal(size=3000)]
SMALL_TREES = {
    "few thresholds": ([1, 2, 3, 31, 63, 64], FEW, 5, 1),
    "most codes": ([255], np.arange(254.0), 40, 1),
    "one too many": ([255], np.arange(255.0), 40, 1),
    "at the limits of size": ([64, 65, 128, 255, 256, 300], FEW, 70, 1),
    "many thresholds": ([31, 64, 128], MANY, 300, 1),
    "many categories": ([31, 64], FEW, 1030, 1),
    "a group of outputs": ([1, 31, 64], FEW, 70, 3),
    "several groups of outputs": ([2, 31, 255], FEW, 9, 10),
    "stumps": ([1, 2], FEW, 9, 1),
    "leaves alone": ([1], FEW, 9, 2),
}


@pytest.mark.threads
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SMALL_TREES)
def test_small_trees_predict_many_rows_like_the_literal_tree(name, dtype):
    sizes, thresholds, most_categories, n_outputs = SMALL_TREES[name]
    random = np.random.default_rng(len(name))
    thresholds = thresholds.astype(dtype).astype(float)
    arguments = thresholds, most_categories, n_outputs
    several = [random_tree(random, n, *arguments) for n in random.choice(sizes, 40)]
    together = Trees.joined(several, 3, n_outputs)
    # Literal trees are slow, so few rows are repeated.
    values = np.r_[thresholds, -1.0, 0.5, np.nan, 1e30, 2.0**31, np.arange(most_categories)]
    X = random.choice(values, (40, 3)).astype(dtype)
    X[9:12] = 1e30
    X[:9] = np.nextafter(X[:9], dtype(random.choice([-np.inf, np.inf])))
    leaf = np.stack([reference.apply(tree, X) for tree in several])
    expected = start = random.normal(size=(n_outputs, len(X)))
    for tree, tree_leaf in zip(several, leaf, strict=True):
        expected = expected + tree.value[tree_leaf].T
    leaf += together.root[:, None].astype(np.int32)
    for n in (64, 511, 512, 513, 767, 768, 769, 2500):
        row = random.integers(0, len(X), n)
        before, rows = start.take(row, axis=1), X[row]
        for n_threads in (1, 2):
            found = together.add(before, rows, n_threads)
            np.testing.assert_array_equal(found, expected[:, row])
            np.testing.assert_array_equal(together.find_leaves(rows, n_threads), leaf[:, row])
    half = together.add(before, rows, 1, 0, 20)
    np.testing.assert_array_equal(together.add(half, rows, 2, 20), expected[:, row])
    stages = [*together.iterate_stages(before, rows, 2, range(0, 40, 20))]
    np.testing.assert_array_equal(stages, [half, expected[:, row]])


@pytest.mark.parametrize("width", [0, 2, 4])
def test_rows_of_another_width_are_refused(width):
    trees = Trees.joined([random_tree(np.random.default_rng(0), 9, FEW, 3, 1)], 3, 1)
    rows = np.zeros((4, width))
    for walk in (
        lambda: trees.find_leaves(rows, 1),
        lambda: trees.add(np.zeros((1, 4)), rows, 1),
        lambda: trees.find_out_of_bag_leaves(rows, ("bootstrap", 4, 0), 1),
    ):
        with pytest.raises(ValueError, match=f"X has {width} features, but the trees have 3"):
            walk()


def test_apply_refuses_bad_rows():
    tree = Tree(**tree_columns())
    with pytest.raises(ValueError, match="X has 3 features, but the tree has 2 features"):
        tree.apply(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="Input X contains infinity or a value too large"):
        tree.apply([[0.0, np.inf]])
    with pytest.raises(ValueError, match="X must have two dimensions"):
        tree.apply(np.zeros(2))
    for dtype in (np.float16, object, str, complex):
        with pytest.raises(TypeError, match="X must convert to float64 without loss"):
            tree.apply(np.zeros((1, 2)).astype(dtype))


def test_integers_that_float64_does_not_hold_are_refused():
    tree, far = Tree(**tree_columns()), 2**53 + 1
    with pytest.raises(ValueError, match=f"feature 1 must hold .* exactly, got {far}"):
        tree.apply([[0, 1], [2**60, far]])
    assert tree.apply([[0, 2**60], [2**53, -(2**53)]]).shape == (2,)
    with pytest.raises(ValueError, match=f"sample_weight must hold .* exactly, got {far}"):
        check_row_weights([1, far], 2)
    for log_split in (far, np.array(far)):
        with pytest.raises(ValueError, match=f"log_split must hold .* exactly, got {far}"):
            average(tree, np.zeros(tree.n_nodes), log_split)


def test_large_finite_values_are_not_taken_for_infinities():
    tree = Tree(**tree_columns())
    assert tree.apply(np.full((100, 2), 1.7e308)).tolist() == [2] * 100


def test_a_column_is_a_copy_of_a_writable_array_of_the_core():
    X = np.random.default_rng(0).random((20, 2))
    leaf = grow_kd(X).apply(X)
    kept = check_column("leaf", leaf, "int32", (20,))
    before = kept.copy()
    leaf[:] = -1
    assert np.array_equal(kept, before)
    assert not kept.flags.writeable
