"""The same single tree, bit by bit, of rows in memory and in files, however these are divided."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certree import (
    Cart,
    HelmboldSchapireTreeClassifier,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
)
from certree.estimators.out_of_core_trees import fit_tree_out_of_core
from certree.interface.fitted_state import atomic_fit
from certree.out_of_core import sources
from certree.out_of_core.executors import LocalExecutor
from certree.out_of_core.memory_limit import BlockSizes
from run_length import LONG
from same_models import (
    ChunkedRows,
    expect_same_tree,
    make_groups,
    make_table,
    split_table,
    write_files,
)

N = 900


def model_of(target, grower=None, **how):
    made = PACBayesTreeRegressor if target == "numbers" else PACBayesTreeClassifier
    given = {"lambda_error": 1.0, "lambda_penalty": 0.5, "random_state": 0, **how}
    return made(Cart(max_bins=255, **(grower or {})), **given)


@atomic_fit
def fit_in_chunks(model, X, y, weight, ends, n_threads=1, groups=None, **block_sizes):
    model.seen_rows_ = None
    parts = LocalExecutor(ChunkedRows(X, y, weight, ends, groups), None, n_threads)
    parts.block_sizes = BlockSizes(**block_sizes)
    fit_tree_out_of_core(model, parts)
    return model


ENDS = (0, 400, 400, N - 1, N)


GROWERS = [
    {},
    {"max_leaf_nodes": 12},
    {"max_leaf_nodes": 1},
    {"criterion": "other", "min_samples_leaf": 7, "min_samples_split": 0.05},
    {"max_features": 2, "min_impurity_decrease": 1e-3},
    {"splitter": "random", "max_leaf_nodes": 40},
]
OTHER = {"two": "gini", "three": "gini", "numbers": "squared_error"}


@pytest.mark.parametrize("block_rows", [2**19, 170, 90] if LONG else [170])
@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_files_and_memory_have_the_same_tree(
    target, grower, block_rows, tmp_path, monkeypatch, left_nothing
):
    how = {**grower}
    if "criterion" in how:
        how["criterion"] = OTHER[target]
    rows = make_table(N, target)
    here = model_of(target, how).fit(*split_table(rows, weighed=False))
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
    moved = rows.take(np.random.RandomState(1).permutation(N)).drop_columns(["w"])
    there = model_of(target, how).fit(write_files(tmp_path, moved, ENDS), "y")
    expect_same_tree(here, there, tmp_path)
    n_leaves = here.tree_.n_leaves
    assert n_leaves == grower["max_leaf_nodes"] if "max_leaf_nodes" in grower else n_leaves > 20


@pytest.mark.parametrize("leaf", [1, 5] if LONG else [5])
@pytest.mark.parametrize("weights", ["real", "whole", "heavy"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.5}, {"one": 0.5, "third": 0}])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_weights_mean_the_same(target, class_weight, weights, leaf, tmp_path):
    if class_weight is not None and target == "numbers":
        pytest.skip("no classes")
    if isinstance(class_weight, dict) and (0 in class_weight) != (target == "two"):
        pytest.skip("of other classes")
    how = {} if class_weight is None else {"class_weight": class_weight}
    rows = make_table(N, target, weights="real" if weights == "real" else "whole")
    X, y, weight = split_table(rows)
    weight = weight * 37.0 if weights == "heavy" else weight
    here = model_of(target, {"min_samples_leaf": leaf}, **how).fit(X, y, weight)
    there = model_of(target, {"min_samples_leaf": leaf}, **how)
    order = np.random.RandomState(2).permutation(N)
    moved = X.take(order), y[order], weight[order]
    expect_same_tree(here, fit_in_chunks(there, *moved, [0, 1, 1, 600, N]), tmp_path)


@pytest.mark.parametrize("target", ["two", "numbers"])
def test_the_unit_of_weights_says_nothing(target):
    X, y, weight = split_table(make_table(400, target, weights="whole"))
    ask = "predict" if target == "numbers" else "predict_proba"
    said, *others = (
        getattr(fit_in_chunks(model_of(target), X, y, factor * weight, [0, 100, 400]), ask)(X)
        for factor in (1.0, 0.25, 3.7, 1e-4)
    )
    np.testing.assert_array_equal(said, others[0])
    for other in others[1:]:
        np.testing.assert_allclose(said, other, rtol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.sampled_from(["two", "three", "numbers"]),
    ends=st.lists(st.integers(0, 300), max_size=6),
    weights=st.sampled_from(["real", "whole", None]),
    leaves=st.one_of(st.none(), st.integers(1, 40)),
    max_bins=st.sampled_from([2, 5, 30, 255]),
    result_bytes=st.sampled_from([1, 10_000, 2**27]),
)
def test_no_division_of_the_rows_changes_a_bit(
    seed, target, ends, weights, leaves, max_bins, result_bytes
):
    X, y, weight = split_table(
        make_table(300, target, seed % 1000, weights or "real"), weights is not None
    )
    grower = {"max_leaf_nodes": leaves}
    models = [model_of(target, grower).set_params(grower__max_bins=max_bins) for _ in range(2)]
    order = np.random.RandomState(seed).permutation(300)
    moved = X.take(order), y[order], None if weight is None else weight[order]
    there = fit_in_chunks(models[0], *moved, sorted([0, 300, *ends]), result_bytes=result_bytes)
    with tempfile.TemporaryDirectory() as folder:
        expect_same_tree(models[1].fit(X, y, weight), there, Path(folder))


PRUNED = [
    (PrunedTreeClassifier, "two", {"alpha": 2.0}),
    (PrunedTreeClassifier, "three", {"alpha": 0.5, "rule": "sibling-merge"}),
    (PrunedTreeClassifier, "two", {"alpha": 1.0, "rule": "pessimistic"}),
    (PrunedTreeRegressor, "numbers", {"alpha": 1.5}),
]


@pytest.mark.parametrize(("kind", "target", "how"), PRUNED)
def test_prunings_are_the_same(kind, target, how, tmp_path):
    X, y, _ = split_table(make_table(N, target), weighed=False)
    here, there = (kind(Cart(max_bins=64), random_state=0, **how) for _ in range(2))
    expect_same_tree(
        here.fit(X, y), fit_in_chunks(there, X, y, None, [0, 300, 700, N], 2), tmp_path
    )
    assert here.tree_.n_leaves > 1


CHOSEN = [
    (PACBayesTreeClassifier, "two", {}),
    (PACBayesTreeClassifier, "three", {"cv": 4, "scoring": "error", "prior": "leaves"}),
    (PACBayesTreeRegressor, "numbers", {"cv": 3}),
    (PrunedTreeClassifier, "three", {"cv": 2}),
    (PrunedTreeRegressor, "numbers", {}),
    (HelmboldSchapireTreeClassifier, "two", {"cv": 3}),
    (HelmboldSchapireTreeClassifier, "two", {"inverse_temperature": 0.5}),
]


@pytest.mark.parametrize("weights", ["real", "whole", "heavy", None])
@pytest.mark.parametrize(("kind", "target", "how"), CHOSEN)
def test_folds_choose_the_same(kind, target, how, weights, tmp_path):
    named = "whole" if weights == "heavy" else weights or "real"
    X, y, weight = split_table(make_table(700, target, weights=named), weights is not None)
    weight = weight * 37.0 if weights == "heavy" else weight
    grower = Cart(max_bins=255, max_leaf_nodes=60)
    here, there = (kind(grower, random_state=3, **how) for _ in range(2))
    order = np.random.RandomState(4).permutation(700)
    moved = X.take(order), y[order], None if weight is None else weight[order]
    there = fit_in_chunks(there, *moved, [0, 1, 1, 300, 700])
    expect_same_tree(here.fit(X, y, weight), there, tmp_path)


GROUP_FAMILIES = [
    *((*CHOSEN[0], weights) for weights in ("real", "whole", "heavy", None)),
    *((*CHOSEN[2], weights) for weights in ("whole", "heavy", None)),
    *((*CHOSEN[i], "whole") for i in (3, 4, 5, 6)),
]


@pytest.mark.parametrize(("kind", "target", "how", "weights"), GROUP_FAMILIES)
def test_folds_of_groups_choose_the_same(kind, target, how, weights, tmp_path):
    named = "whole" if weights == "heavy" else weights or "real"
    groups, rows = make_groups(make_table(700, target, weights=named), "text", 40)
    X, y, weight = split_table(rows.drop_columns(["g"]), weights is not None)
    weight = weight * 37.0 if weights == "heavy" else weight
    grower = Cart(max_bins=255, max_leaf_nodes=60)
    here, there = (kind(grower, random_state=3, **how) for _ in range(2))
    order = np.random.RandomState(4).permutation(700)
    moved = X.take(order), y[order], None if weight is None else weight[order]
    there = fit_in_chunks(there, *moved, [0, 1, 1, 300, 700], groups=groups[order])
    expect_same_tree(here.fit(X, y, weight, groups), there, tmp_path)


@pytest.mark.parametrize("n_groups", [1, 3])
def test_fewer_groups_than_folds(n_groups, tmp_path):
    groups, rows = make_groups(make_table(N), "ints", n_groups)
    X, y, _ = split_table(rows.drop_columns(["g"]), weighed=False)
    here, there = (PACBayesTreeClassifier(Cart(max_bins=9), random_state=0) for _ in range(2))
    there = fit_in_chunks(there, X, y, None, [0, 1, N], groups=groups)
    expect_same_tree(here.fit(X, y, groups=groups), there, tmp_path)


def test_a_class_that_a_fold_lacks(tmp_path):
    X, _, _ = split_table(make_table(400), weighed=False)
    y = np.repeat([0, 1, 2], [200, 199, 1])
    here, there = (PACBayesTreeClassifier(Cart(max_bins=9), random_state=0) for _ in range(2))
    expect_same_tree(here.fit(X, y), fit_in_chunks(there, X, y, None, [0, 250, 400]), tmp_path)


def test_few_rows_are_fitted_in_memory(tmp_path):
    rows = make_table(30).drop_columns(["w"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    here, there = (PACBayesTreeClassifier(Cart(max_bins=9), random_state=0) for _ in range(2))
    here.fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
    expect_same_tree(here, there.fit(tmp_path / "rows.parquet", "y"), tmp_path)


@pytest.mark.parametrize("target", ["two", "numbers"])
def test_slopes_and_depths_mean_the_same(target, tmp_path):
    X, y, _ = split_table(make_table(N, target), weighed=False)
    how = {"monotonic_cst": {"x0": 1, "x2": -1}, "max_depth": "log"}
    here = model_of(target, {"max_leaf_nodes": 30}, **how).fit(X, y)
    there = fit_in_chunks(model_of(target, {"max_leaf_nodes": 30}, **how), X, y, None, [0, 7, N])
    expect_same_tree(here, there, tmp_path)


@pytest.mark.parametrize("least", [0, 3])
def test_counts_mean_the_same(least, tmp_path):
    X, y, _ = split_table(make_table(N, "numbers"), weighed=False)
    y = least + np.random.RandomState(0).poisson(np.exp(y / 2)).astype(float)
    grower = {"criterion": "poisson", "min_samples_leaf": 3}
    here = model_of("numbers", grower).fit(X, y)
    there = fit_in_chunks(model_of("numbers", grower), X, y, None, [0, 500, N])
    expect_same_tree(here, there, tmp_path)
    with pytest.raises(ValueError, match="negative which is not allowed for Poisson"):
        fit_in_chunks(model_of("numbers", grower), X, y - least - 1, None, [0, 800, N])


UNUSUAL = {
    "constant": lambda _: np.full(N, 7.0),
    "two values": lambda _: np.repeat([-1.0, 2.0], N // 2),
    "zeros of both signs": lambda rs: np.where(rs.rand(N) < 0.5, 0.0, -0.0),
    "far from 0": lambda rs: 1e9 + rs.normal(size=N),
    "heavy tails": lambda rs: rs.standard_cauchy(N),
    "large": lambda rs: 1e90 * rs.normal(size=N),
    "small": lambda rs: 1e-90 * rs.normal(size=N),
}


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_numbers_mean_the_same(name, weighed, tmp_path):
    X, _, weight = split_table(make_table(N), weighed)
    y = UNUSUAL[name](np.random.RandomState(0))
    order = np.random.RandomState(3).permutation(N)
    here = model_of("numbers").fit(X, y, weight)
    moved = X.take(order), y[order], None if weight is None else weight[order]
    there = fit_in_chunks(model_of("numbers"), *moved, [0, 600, N])
    expect_same_tree(here, there, tmp_path)


def test_one_class_is_a_tree_of_one_leaf(tmp_path):
    X, _, _ = split_table(make_table(50), weighed=False)
    y = np.full(50, "only")
    here = model_of("two").fit(X, y)
    expect_same_tree(here, fit_in_chunks(model_of("two"), X, y, None, [0, 20, 50]), tmp_path)
    assert here.tree_.n_leaves == 1


def test_many_classes_and_many_levels(tmp_path):
    rs = np.random.RandomState(0)
    level = rs.randint(0, 300, N)
    X = pa.table({"x": rs.normal(size=N), "level": pa.array(level.astype(str))})
    y = np.where(rs.rand(N) < 0.7, level % 120, rs.randint(0, 120, N))
    here = model_of("three", {"max_leaf_nodes": 60}).fit(X, y)
    there = fit_in_chunks(model_of("three", {"max_leaf_nodes": 60}), X, y, None, [0, 500, N])
    expect_same_tree(here, there, tmp_path)


REFUSED = [
    (PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.0), r"Cart\(max_bins=255\)"),
    (PACBayesTreeClassifier(Cart(), lambda_error=1.0, lambda_penalty=0.0), "max_bins=255"),
    (PrunedTreeClassifier("kd", alpha=1.0), r"grower must be .* got KD\("),
    (PACBayesTreeClassifier(Cart(max_bins=255), cv=[([0], [1])]), "cv must be a number of folds"),
    (
        PACBayesTreeClassifier(Cart(max_bins=255), cv=256),
        "cv must be a number of folds, at most 255",
    ),
    (PrunedTreeClassifier(Cart(max_bins=999), alpha=1.0), "max_bins must be None or an integer"),
    (
        PrunedTreeClassifier(Cart(max_bins=9, min_weight_fraction_leaf=0.1), alpha=1.0),
        "min_weight_fraction_leaf must be 0 with max_bins",
    ),
]


@pytest.mark.parametrize(("model", "said"), REFUSED)
def test_what_takes_rows_in_memory_is_refused_by_name(model, said, tmp_path, left_nothing):
    files = write_files(tmp_path, make_table(N), ENDS)
    with pytest.raises(ValueError, match=said):
        model.fit(files, "y")
    assert not hasattr(model, "tree_")


def test_two_classes_where_two_are_expected(tmp_path, left_nothing):
    files = write_files(tmp_path, make_table(N, "three"), ENDS)
    with pytest.raises(ValueError, match=r"Only binary classification.*\(3 classes\)"):
        HelmboldSchapireTreeClassifier(Cart(max_bins=9)).fit(files, "y")


def test_an_error_leaves_the_model_as_it_was(tmp_path):
    X, y, _ = split_table(make_table(N), weighed=False)
    model = model_of("two").fit(X, y)
    before = model.tree_
    rows = make_table(N, "numbers").drop_columns(["w"])
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(write_files(tmp_path, rows, ENDS), "y")
    assert model.tree_ is before


def test_poissons_deviance_takes_a_positive_target_but_folds_of_zeros(tmp_path):
    X, y = np.arange(200.0)[:, None] / 7, np.zeros(200)
    folder = tmp_path / "rows"
    folder.mkdir()
    for max_bins in (None, 64):
        model = PACBayesTreeRegressor(Cart("poisson", max_bins=max_bins), random_state=0)
        with pytest.raises(ValueError, match="Sum of y is not strictly positive"):
            model.fit(X, y)
        # The rows that grow the tree of the fold which this row judges are zeros alone.
        model.fit(X, np.append(y[1:], 1.0))
    rows = {"x": X[:, 0], "y": y}
    pq.write_table(pa.table(rows), folder / "rows.parquet")
    with pytest.raises(ValueError, match="Sum of y is not strictly positive"):
        model.fit(folder, "y")
    pq.write_table(pa.table({**rows, "y": np.append(y[1:], 1.0)}), folder / "rows.parquet")
    model.fit(folder, "y")
