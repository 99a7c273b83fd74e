"""The same forest, bit by bit, of rows in memory and of rows in files, however these are divided."""

import tempfile
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from certree.ensembles import (
    TreeForestClassifier,
    TreeForestRegressor,
    forest_leaves,
    out_of_core_forest_features,
)
from certree.ensembles.forest_samples import ForestSamples, InputRows
from certree.ensembles.out_of_core_forest import (
    IntegerWeightScaling,
    read_forest_samples,
    set_positions,
)
from certree.files import load, save
from certree.grow import code_trees
from certree.interface.arrays import stack_columns
from certree.out_of_core import executors, scratch, sources
from certree.out_of_core.executors import LocalExecutor
from certree.out_of_core.memory_limit import BlockSizes
from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.scratch import Scratch
from certree.rows.relative_weights import NO_WEIGHTS, WeightUnit, compute_integer_weights
from certree.rows.training import training_rows
from same_models import (
    ChunkedRows,
    add_targets,
    assert_same,
    expect_same,
    make_equal_rows,
    make_groups,
    make_table,
    split_table,
    write_files,
)

N = 1500
pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")


def model_of(target, **how):
    made = TreeForestRegressor if target == "numbers" else TreeForestClassifier
    return made(**{"n_estimators": 4, "random_state": 0, "n_jobs": 1, **how})


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of rows and of trees that are passed one after the other, also of few rows."""
    monkeypatch.setattr(executors, "BlockSizes", partial(BlockSizes, result_bytes=1300))
    monkeypatch.setattr(forest_leaves, "_LEAVES_OF_BLOCK", 600)
    monkeypatch.setattr(code_trees, "CODES_PER_BLOCK", 350)
    monkeypatch.setattr(forest_leaves, "N_COMPARED_ROWS", 299)
    for name, size in (
        ("N_COMPARED_ROWS", 299),
        ("LEAVES_PER_BLOCK", 2 * N),
    ):
        monkeypatch.setattr(out_of_core_forest_features, name, size)


SETTINGS = [
    {},
    {"leaves": "refilled", "oob_score": True, "max_samples": 0.4},
    {"leaves": "honest", "splitter": "random", "max_features_per_tree": 2},
    {"leaves": "shrunk", "bootstrap": False, "max_features": 3, "min_samples_leaf": 5},
    {"max_leaf_nodes": 9, "oob_score": True, "min_impurity_decrease": 1e-4},
    {"max_depth": 4, "min_samples_split": 0.05},
]


@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_files_and_memory_have_the_same_forest(
    target, number, tmp_path, monkeypatch, left_nothing, small_blocks
):
    rows, how = make_table(N, target), SETTINGS[number]
    here = model_of(target, **how).fit(*split_table(rows, weighed=False))
    files = write_files(tmp_path, rows.drop_columns(["w"]))
    sizes = [2**19, 170, 1499]
    for block_rows in sizes if number == 1 else [sizes[(number + len(target)) % 3]]:
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        expect_same(here, model_of(target, **how).fit(files, "y"), tmp_path)


CRITERIA = [
    ("two", {"criterion": "entropy", "monotonic_cst": {"x0": 1, "x2": -1}}),
    ("three", {"criterion": "entropy"}),
    ("two", {"class_weight": "balanced_subsample", "oob_score": True}),
    ("three", {"class_weight": "balanced_subsample"}),
    ("numbers", {"criterion": "poisson"}),
    ("numbers", {"monotonic_cst": {"x0": 1}, "categorical_features": ["colour", "x1"]}),
]


@pytest.mark.parametrize(("target", "how"), CRITERIA)
def test_criteria_and_slopes_mean_the_same(target, how, tmp_path, left_nothing):
    rows = make_table(N, target).drop_columns(["w"])
    y = rows["y"].to_numpy(zero_copy_only=False)
    if target == "numbers":
        y = np.floor(np.exp(y / 2))
        rows = rows.set_column(rows.column_names.index("y"), "y", pa.array(y))
    if "categorical_features" in how:
        x1 = np.abs(rows["x1"].to_numpy() * 10).round()
        rows = rows.set_column(rows.column_names.index("x1"), "x1", pa.array(x1))
    here = model_of(target, **how).fit(rows.drop_columns(["y"]), y)
    there = model_of(target, **how).fit(write_files(tmp_path, rows), "y")
    expect_same(here, there, tmp_path)


@pytest.mark.parametrize("weights", ["real", "whole"])
@pytest.mark.parametrize(
    "class_weight",
    [None, "balanced", "balanced_subsample", {0: 2.5}, {"one": 0.5, "third": 0}],
)
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_weights_mean_the_same(target, class_weight, weights, tmp_path, left_nothing, small_blocks):
    if class_weight is not None and target == "numbers":
        pytest.skip("no classes")
    if isinstance(class_weight, dict) and (0 in class_weight) != (target == "two"):
        pytest.skip("of other classes")
    how = {"oob_score": True} if class_weight is None else {"class_weight": class_weight}
    rows = make_table(N, target, weights=weights)
    here = model_of(target, **how).fit(*split_table(rows))
    there = model_of(target, **how).fit(write_files(tmp_path, rows), "y", sample_weight="w")
    expect_same(here, there, tmp_path)


@pytest.mark.parametrize("how", [SETTINGS[1], SETTINGS[4], {"bootstrap": False}])
@pytest.mark.parametrize("weights", [None, "real", "whole"])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_groups_in_files_mean_the_same(
    target, weights, how, tmp_path, monkeypatch, left_nothing, small_blocks
):
    kind = "text" if weights else "ints"
    groups, rows = make_groups(make_table(N, target, weights=weights or "real"), kind)
    X, y = rows.drop_columns(["y", "w", "g"]), rows["y"].to_numpy(zero_copy_only=False)
    here = model_of(target, **how).fit(
        X, y, rows["w"].to_numpy() if weights else None, groups=groups
    )
    # Those out of bags are told in the order in which rows came.
    order = np.arange(N) if "oob_score" in how else np.random.RandomState(1).permutation(N)
    files = write_files(tmp_path, rows.take(order).drop_columns([] if weights else ["w"]))
    sizes = [2**19, 170, 37]
    for block_rows in sizes if target == "two" and weights else [sizes[len(target) % 3]]:
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of(target, **how).fit(files, "y", "w" if weights else None, groups="g")
        expect_same(here, there, tmp_path)


@pytest.mark.parametrize("weighed", [False, True])
def test_groups_of_equal_rows_mean_the_same(weighed, tmp_path, left_nothing):
    X, y, weight = make_equal_rows(N, "two", "any")
    groups = np.random.RandomState(2).permutation(np.arange(N) % 700)
    rows = X.append_column("y", pa.array(y)).append_column("g", pa.array(groups))
    rows = rows.append_column("w", pa.array(weight)) if weighed else rows
    here = model_of("two").fit(X, y, weight if weighed else None, groups=groups)
    files = write_files(tmp_path, rows.take(np.random.RandomState(1).permutation(N)))
    expect_same(here, model_of("two").fit(files, "y", "w" if weighed else None, groups="g"))


def test_a_warm_start_has_the_same_groups(tmp_path, left_nothing):
    groups, rows = make_groups(make_table(N), "ints")
    X, y, weight = split_table(rows.drop_columns(["g"]))
    files = write_files(tmp_path, rows)
    here, there = (model_of("two", warm_start=True, n_estimators=2) for _ in range(2))
    for n_trees in (2, 4):
        here.set_params(n_estimators=n_trees).fit(X, y, weight, groups=groups)
        there.set_params(n_estimators=n_trees).fit(files, "y", "w", groups="g")
        expect_same(here, there)
    at = rows.column_names.index("g")
    others = rows.set_column(at, "g", pa.array(np.random.RandomState(3).permutation(groups)))
    with pytest.raises(ValueError, match="time or gap are not those of that fit"):
        there.set_params(n_estimators=5).fit(write_files(tmp_path, others), "y", "w", groups="g")


SEVERAL = [{}, {"oob_score": True, "n_estimators": 40}, {"bootstrap": False, "max_leaf_nodes": 9}]


@pytest.mark.parametrize(
    "how", [*SEVERAL, {"class_weight": "balanced"}, {"class_weight": "balanced_subsample"}]
)
@pytest.mark.parametrize(
    ("target", "weights"),
    [("two", "whole"), ("three", "real"), ("numbers", "real"), ("numbers", None)],
)
def test_several_targets_mean_the_same(target, how, weights, tmp_path, left_nothing, small_blocks):
    if target == "numbers" and "class_weight" in how:
        pytest.skip("no classes")
    names = ["y", "b", "c"]
    rows = add_targets(make_table(N, target, weights=weights or "real"), target)
    X, weight = rows.drop_columns([*names, "w"]), rows["w"].to_numpy() if weights else None
    y = stack_columns([rows[name].to_numpy(zero_copy_only=False) for name in names])
    here = model_of(target, **how).fit(X, y, weight)
    # Those out of bags are told in the order in which rows came.
    order = np.arange(N) if "oob_score" in how else np.random.RandomState(1).permutation(N)
    files = write_files(tmp_path, rows.take(order).drop_columns([] if weights else ["w"]))
    there = model_of(target, **how).fit(files, names, "w" if weights else None)
    expect_same(here, there, tmp_path)
    assert here.n_outputs_ == 3


@pytest.mark.parametrize("weights", [2.0**20, 0.001, 1e270])
def test_weights_of_any_size_mean_the_same(weights, tmp_path, left_nothing):
    rows = make_table(N, "two")
    weight = rows["w"].to_numpy() * weights
    if weights == 2.0**20:
        weight = np.round(weight)
    rows = rows.set_column(rows.column_names.index("w"), "w", pa.array(weight))
    here = model_of("two").fit(*split_table(rows))
    expect_same(here, model_of("two").fit(write_files(tmp_path, rows), "y", "w"), tmp_path)


@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.sampled_from(["two", "three", "numbers"]),
    ends=st.lists(st.integers(0, 300), max_size=8),
    weights=st.sampled_from(["real", "whole", None]),
    how=st.sampled_from(SETTINGS),
    shuffles=st.booleans(),
)
@settings(max_examples=max(10, settings().max_examples // 6), deadline=None)
def test_however_rows_are_divided(seed, target, ends, weights, how, shuffles):
    rows = make_table(300, target, seed, weights or "real")
    X, y, weight = split_table(rows, weights is not None)
    how = {**how, "n_estimators": 3, "random_state": seed}
    order = np.random.RandomState(seed).permutation(300) if shuffles else np.arange(300)
    moved = X.take(order), y[order], None if weight is None else weight[order]
    here = model_of(target, **how).fit(*(moved if "oob_score" in how else (X, y, weight)))
    there = model_of(target, **how)
    rows, given_rows, kept = read(there, *moved, sorted([0, *ends, 300]))
    with kept:
        there._seed = here._seed
        there._fit_samples(rows, given_rows, None)
    assert_same(here.trees_.value, there.trees_.value, "value")
    assert_same(here.trees_.threshold, there.trees_.threshold, "threshold")
    assert here._fit_digest == there._fit_digest
    if "oob_score" in how:
        assert_same(here.oob_score_, there.oob_score_, "oob_score_")
        name = here._oob_attribute
        assert_same(getattr(here, name), getattr(there, name), name)


@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.sampled_from(["two", "three", "numbers"]),
    ends=st.lists(st.integers(0, 300), max_size=8),
    weights=st.sampled_from(["real", "whole", "any"]),
)
@settings(max_examples=max(10, settings().max_examples // 6), deadline=None)
def test_equal_rows_of_other_weights_may_lie_in_any_part(seed, target, ends, weights):
    X, y, weight = make_equal_rows(300, target, weights, seed)
    here = model_of(target, random_state=seed).fit(X, y, weight)
    order = np.random.RandomState(seed).permutation(300)
    for moved in (X, y, weight), (X.take(order), y[order], weight[order]):
        there = model_of(target, random_state=seed)
        rows, given_rows, kept = read(there, *moved, sorted([0, *ends, 300]))
        with kept:
            there._seed = here._seed
            there._fit_samples(rows, given_rows, None)
        assert_same(here.trees_.value, there.trees_.value, "value")
        assert_same(here.trees_.threshold, there.trees_.threshold, "threshold")
        assert here._fit_digest == there._fit_digest


def read(model, X, y, weight, ends):
    """The rows of a forest in chunks, and the folder in which they lie."""
    folder = tempfile.TemporaryDirectory()
    parts = LocalExecutor(ChunkedRows(X, y, weight, ends), None, 1)
    rows, given_rows = read_forest_samples(model, parts, Scratch(folder.name))
    return rows, given_rows, folder


@pytest.mark.parametrize("weights", ["real", "whole", None])
@pytest.mark.parametrize("target", ["three", "numbers"])
def test_rows_of_parts_are_those_of_one_table(target, weights):
    X, y, weight = split_table(
        make_table(N, target, weights=weights or "real"), weights is not None
    )
    model = model_of(target, oob_score=True)
    training, _ = training_rows(model, X, y, weight)
    known, as_given = ForestSamples.from_training(training), InputRows.from_training(training)
    rows, told, kept = read(model, X, y, weight, [0, 3, 3, 700, N])
    with kept:
        for name in ("y", "weight", "input_index", "columns", "content"):
            assert_same(getattr(known, name), getattr(rows, name), name)
        for name in ("n", "indices", "y", "weight"):
            assert_same(getattr(as_given, name), getattr(told, name), name)
        mask = model._category_mask()
        bins, found = (one.features.bins(mask, 1) for one in (known, rows))
        for name in (
            "codes",
            "n_bins",
            "low",
            "high",
            "category_codes",
            "category_bin",
            "is_categorical",
        ):
            assert_same(getattr(bins, name), getattr(found, name), name)


@given(
    weight=st.lists(st.floats(1e-6, 1e6) | st.integers(1, 10**6).map(float), min_size=1),
    cuts=st.integers(0, 2**31),
)
@example(weight=[303.0, 0.5], cuts=1)
def test_weights_of_parts_become_the_whole_numbers_of_all(weight, cuts):
    weight = np.array(weight)
    parts = np.split(weight, [cuts % len(weight)])
    unit = sum(map(WeightUnit.find, parts), NO_WEIGHTS)
    weight_scaling = IntegerWeightScaling(weight.max(), unit=unit)
    told = np.concatenate([weight_scaling(one) for one in parts])
    assert_same(told, compute_integer_weights(weight), "weights")


def test_threads_change_nothing(tmp_path, left_nothing):
    rows = make_table(N, "three").drop_columns(["w"])
    files = write_files(tmp_path, rows)
    one, more = (model_of("three", n_jobs=n, oob_score=True).fit(files, "y") for n in (1, 3))
    expect_same(one, more)


@pytest.mark.parametrize(
    ("target", "how"),
    [
        ("two", {"oob_score": True}),
        ("three", {"class_weight": "balanced_subsample"}),
        ("numbers", {"leaves": "plain", "max_leaf_nodes": 20}),
    ],
)
def test_warm_starts_add_the_same_trees(target, how, tmp_path, left_nothing, small_blocks):
    rows = make_table(N, target)
    X, y, weight = split_table(rows)
    whole = model_of(target, n_estimators=7, **how).fit(X, y, weight)
    order = np.arange(N) if "oob_score" in how else np.random.RandomState(1).permutation(N)
    files = write_files(tmp_path, rows.take(order), ends=(0, 900, 1500))
    there = model_of(target, warm_start=True, **how).fit(files, "y", "w")
    first = there.trees_
    save(there, tmp_path / "model.certree")
    restored = load(tmp_path / "model.certree")
    here = model_of(target, warm_start=True, **how).fit(X, y, weight)
    here.set_params(n_estimators=7).fit(X, y, weight)
    other_files = write_files(tmp_path, rows)
    for model in (there, restored):
        model.set_params(n_estimators=7).fit(other_files, "y", "w")
        expect_same(model, here, tmp_path)
        assert_same(model.trees_.value, whole.trees_.value, "value")
        assert_same(model.trees_.threshold, whole.trees_.threshold, "threshold")
        assert_same(model.feature_importances_, whole.feature_importances_, "importances")
    assert_same(first.root, there.trees_.root[: len(first)], "root")
    for model in (here, there):  # rows in memory after files, and files after rows in memory
        model.set_params(n_estimators=8)
    expect_same(there.fit(X, y, weight), here.fit(other_files, "y", "w"), tmp_path)


def test_a_warm_start_refuses_other_rows(tmp_path, left_nothing):
    rows = make_table(N, "three")
    files = write_files(tmp_path, rows)
    model = model_of("three", warm_start=True).fit(files, "y", "w")
    state = dict(vars(model))

    def expect_refused(message, others, **how):
        (tmp_path / "others").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match=message):
            model.set_params(**how).fit(write_files(tmp_path / "others", others), "y", "w")
        model.set_params(**{name: state[name] for name in how})
        assert all(vars(model)[name] is state[name] for name in state)

    def replace_column(name, values):
        return rows.set_column(rows.column_names.index(name), name, pa.array(values))

    expect_refused("adds trees to the previous fit, but X, y", rows.slice(1), n_estimators=9)
    expect_refused("n_estimators=3 must be larger or equal to", rows, n_estimators=3)
    expect_refused("max_depth must be None, as in the fit", rows, max_depth=4)
    # The same codes of other names.
    renamed = [None if one is None else f"_{one}" for one in rows["colour"].to_pylist()]
    expect_refused("got rows with another categories_", replace_column("colour", renamed))
    classes = [f"_{one}" for one in rows["y"].to_pylist()]
    expect_refused("got rows with another classes_", replace_column("y", classes))
    expect_refused("got rows with another n_features_in_", rows.append_column("z", rows["w"]))
    names = ["z" if name == "x1" else name for name in rows.column_names]
    expect_refused("got rows with another feature_names_in_", rows.rename_columns(names))


def test_a_forest_of_files_is_like_any_other(tmp_path, left_nothing):
    rows = make_table(N, "two").drop_columns(["w"])
    model = model_of("two").fit(write_files(tmp_path, rows), "y")
    X, y, _ = split_table(make_table(N, "two"), weighed=False)
    save(model, tmp_path / "model.certree")
    again = load(tmp_path / "model.certree")
    assert_same(model.predict_proba(X), again.predict_proba(X), "shares")
    known = model_of("two").fit(X, y).out_of_bag_importances(X, y)
    assert_same(model.out_of_bag_importances(X, y), known, "importances")


def test_what_takes_rows_in_memory_is_refused_by_name(tmp_path, left_nothing):
    files = write_files(tmp_path, make_table(N).drop_columns(["w"]))
    with pytest.raises(
        TypeError, match="y must be the name of a column if X is a file, got ndarray"
    ):
        model_of("two").fit(files, np.zeros(N))
    with pytest.raises(ValueError, match="oob_score must be False with bootstrap=False"):
        model_of("two", bootstrap=False, oob_score=True).fit(files, "y")


def test_errors_leave_the_fit_before(tmp_path, left_nothing):
    files = write_files(tmp_path, make_table(N))
    X, y, _ = split_table(make_table(N))
    model = model_of("two").fit(X, y)
    before = model.predict_proba(X)
    for how, message in (
        ({"y": "z"}, "no column 'z'"),
        ({"y": "colour"}, "missing values"),
        ({"y": "y", "sample_weight": "x0"}, "Negative values"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(files, **how)
    assert_same(model.predict_proba(X), before, "shares")


def test_a_source_that_changes_is_named():
    class Changing(ChunkedRows):
        n_read = 0

        def chunks(self, *, targets_only=False):
            self.n_read += 1
            self.ends = [0, N] if self.n_read < 4 else [0, N - 1]
            return super().chunks(targets_only=targets_only)

    X, y, _ = split_table(make_table(N), weighed=False)
    source = Changing(X, y, None, [0, N])
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(ValueError, match=r"X must .*has 1499 rows, and had 1500 before"),
    ):
        read_forest_samples(model_of("two"), LocalExecutor(source, None, 1), Scratch(folder))


def test_a_part_of_other_rows_than_before_is_named():
    part = RowBlock(3, np.zeros((1, 0), np.uint8), np.zeros(0), None, np.zeros(0, np.uint64), 7)
    place = np.zeros(0, np.uint64)
    assert set_positions(part, {3: 7}, place)[0].keys is place
    with pytest.raises(ValueError, match="partition 3 has other rows than before"):
        set_positions(part, {3: 8}, place)


def test_a_full_disk_is_named(tmp_path, monkeypatch, left_nothing):
    files = write_files(tmp_path, make_table(N).drop_columns(["w"]))

    def full(_, n_bytes):
        if n_bytes == N * 5:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(scratch, "_fill", full)
    with pytest.raises(OSError, match="needs 7,500 more bytes"):
        model_of("two").fit(files, "y")


def test_a_near_identifier_is_named(tmp_path, left_nothing):
    rows = (
        make_table(N)
        .drop_columns(["w"])
        .append_column("name", pa.array([f"n{i}" for i in range(N)]))
    )
    files = write_files(tmp_path, rows)
    here = model_of("two")
    with pytest.warns(UserWarning, match="'name' has 1500 categories in 1500 rows"):
        here.fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
    with pytest.warns(UserWarning, match="'name' has 1500 categories in 1500 rows") as found:
        expect_same(here, model_of("two").fit(files, "y"))
    assert "numbers" not in str(found[0].message).partition("order matters.")[2]
    numbers = rows.set_column(
        rows.column_names.index("name"), "name", pa.array([f"{i}.5" for i in range(N)])
    )
    pa.parquet.write_table(numbers, tmp_path / "numbers.parquet")
    with pytest.warns(UserWarning, match=r"Most of its texts are numbers, such as '\d+\.5'"):
        model_of("two").fit(tmp_path / "numbers.parquet", "y")


def test_one_class_a_constant_and_an_empty_feature(tmp_path, left_nothing):
    X = np.column_stack([np.full(40, 2.0), np.full(40, np.nan), np.arange(40) % 7])
    for target in (np.zeros(40), np.arange(40) % 2):
        rows = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": target.astype(int)})
        here = model_of("two").fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
        there = model_of("two").fit(write_files(tmp_path, rows, (0, 1, 40)), "y")
        expect_same(here, there, tmp_path)
