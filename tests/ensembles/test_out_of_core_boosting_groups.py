"""Groups give the same model, bit by bit, for rows in files and for the same rows in memory."""

import sys

import numpy as np
import pyarrow as pa
import pytest

from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor
from certree.out_of_core import resources, sources
from certree.out_of_core.executors import sum_results
from certree.out_of_core.group_keys import set_group_keys
from certree.out_of_core.memory_limit import BlockSizes
from certree.out_of_core.row_block import RowBlock
from certree.rows.hashes import mix
from certree.rows.queries import compute_group_keys
from same_models import (
    add_targets,
    add_towns,
    expect_same,
    make_equal_rows,
    make_groups,
    make_table,
    write_files,
)

N = 1500


def model_of(target, **how):
    made = BoostedTreesRegressor if target == "numbers" else BoostedTreesClassifier
    return made(
        **{"max_iter": 4, "max_leaf_nodes": 9, "random_state": 0, "n_jobs": 1, **how},
    )


STOPS = {"early_stopping": True, "max_iter": 12, "n_iter_no_change": 2, "learning_rate": 0.5}


def expect_same_in_files(model, rows, folder, monkeypatch, weighed, targets=("y",), block_rows=170):
    """Assert that rows in files, in another order, have the model of the rows in memory.

    rows: a table with targets, weights w and groups g.
    """
    X = rows.drop_columns([*targets, "w", "g"])
    y = [rows[name].to_numpy(zero_copy_only=False) for name in targets]
    y = y[0] if len(y) == 1 else np.column_stack(y)
    weight, groups = rows["w"].to_numpy() if weighed else None, rows["g"].to_numpy(False)
    here = model().fit(X, y, weight, groups=groups)
    assert here.trees_.n_nodes > len(here.trees_)
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
    moved = rows.take(np.random.RandomState(1).permutation(len(rows)))
    files = write_files(folder, moved if weighed else moved.drop_columns(["w"]))
    y = targets[0] if len(targets) == 1 else [*targets]
    there = model().fit(files, y, "w" if weighed else None, groups="g")
    expect_same(here, there, folder)
    return there


@pytest.mark.parametrize("how", [{}, STOPS, {**STOPS, "validation_fraction": 9}])
@pytest.mark.parametrize("kind", ["ints", "text"])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_groups_in_files_mean_the_same(
    target, weighed, kind, how, tmp_path, monkeypatch, left_nothing
):
    _, rows = make_groups(make_table(N, target), kind)
    model = lambda: model_of(target, **how)  # noqa: E731
    there = expect_same_in_files(model, rows, tmp_path, monkeypatch, weighed)
    apart = write_files(tmp_path, rows.drop_columns(["g"]))
    assert (there.trees_.value != model().fit(apart, "y", "w").trees_.value[:1]).any()


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("how", [{}, STOPS])
@pytest.mark.parametrize("n_groups", [N, 700])
def test_equal_groups_are_numbered_by_weight_and_name(
    n_groups, how, weighed, tmp_path, monkeypatch, left_nothing
):
    X, y, weight = make_equal_rows(N, "two", "any")
    groups = np.random.RandomState(2).permutation(np.arange(N) % n_groups)
    columns = {"y": y, "w": weight, "g": groups}
    rows = X
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values))
    model = lambda: model_of("two", **how)  # noqa: E731
    expect_same_in_files(model, rows, tmp_path, monkeypatch, weighed)


@pytest.mark.parametrize("is_limited", [False, True])
@pytest.mark.parametrize("block_rows", [2**19, 37])
def test_groups_do_not_depend_on_the_blocks(
    block_rows, is_limited, tmp_path, monkeypatch, left_nothing
):
    def choose(*_):
        return BlockSizes(1, block_rows, 300)

    if is_limited and sys.platform != "linux":
        pytest.skip("memory_limit needs Linux")
    _, rows = make_groups(make_table(N, "three"), "text")
    monkeypatch.setattr("certree.out_of_core.executors.choose_block_sizes", choose)
    model = lambda: model_of("three", **STOPS)  # noqa: E731
    with resources(memory_limit="4GB" if is_limited else None):
        expect_same_in_files(model, rows, tmp_path, monkeypatch, True, block_rows=block_rows)


@pytest.mark.skipif(sys.platform != "linux", reason="memory_limit needs Linux")
@pytest.mark.parametrize("kind", ["ints", "text"])
def test_groups_keep_to_a_limit_of_memory(kind, tmp_path, left_nothing):
    _, rows = make_groups(make_table(N, "two"), kind)
    files = write_files(tmp_path, rows)
    model = model_of("two", **STOPS).fit(files, "y", "w", groups="g")
    with resources(memory_limit="4GB"):
        expect_same(model, model_of("two", **STOPS).fit(files, "y", "w", groups="g"), tmp_path)
    with (
        resources(memory_limit="20MB"),
        pytest.raises(ValueError, match=r"is too little for this fit|allows 20,000,000 bytes"),
    ):
        model_of("two").fit(files, "y", "w", groups="g")


def test_several_targets_have_groups(tmp_path, monkeypatch, left_nothing):
    _, rows = make_groups(add_targets(make_table(N, "numbers"), "numbers"), "ints")
    model = lambda: model_of("numbers", early_stopping=True)  # noqa: E731
    expect_same_in_files(model, rows, tmp_path, monkeypatch, True, ("y", "b", "c"))


def test_features_of_many_categories_have_folds_of_groups(tmp_path, monkeypatch, left_nothing):
    _, rows = make_groups(add_towns(make_table(N, "two"), 60), "text")
    there = expect_same_in_files(lambda: model_of("two"), rows, tmp_path, monkeypatch, True)
    assert (there.trees_.feature == [*there.feature_names_in_].index("town")).any()


@pytest.mark.parametrize("lies_in", ["memory", "files"])
def test_validation_sets_and_offsets_beside_groups(lies_in, tmp_path, left_nothing):
    groups, rows = make_groups(make_table(N, "two"), "text")
    rows = rows.append_column("o", pa.array(np.round(np.random.RandomState(5).normal(size=N), 1)))
    held, rest = rows.slice(0, 300), rows.slice(300)
    model = lambda: model_of("two", early_stopping=True, max_iter=9)  # noqa: E731
    others = ["y", "w", "g", "o"]
    validation = {
        "X_val": held.drop_columns(others),
        "y_val": held["y"].to_numpy(),
        "sample_weight_val": held["w"].to_numpy(),
        "offset_val": held["o"].to_numpy(),
    }
    here = model().fit(
        rest.drop_columns(others),
        *(rest[name].to_numpy() for name in ("y", "w")),
        groups=groups[300:],
        offset=rest["o"].to_numpy(),
        **validation,
    )
    if lies_in == "files":
        (tmp_path / "held").mkdir()
        files = write_files(tmp_path / "held", held.drop_columns(["g"]), (0, 50, 300))
        validation = {"X_val": files, "y_val": "y", "sample_weight_val": "w", "offset_val": "o"}
    files = write_files(tmp_path, rest)
    there = model().fit(files, "y", "w", groups="g", offset="o", **validation)
    expect_same(here, there, tmp_path)


def test_few_rows_with_groups_are_fitted_in_memory(tmp_path, left_nothing):
    groups, rows = make_groups(make_table(600, "numbers"), "ints")
    X, y = rows.drop_columns(["y", "w", "g"]), rows["y"].to_numpy()
    here = BoostedTreesRegressor(random_state=0).fit(X, y, rows["w"].to_numpy(), groups=groups)
    files = write_files(tmp_path, rows, (0, 300, 600))
    there = BoostedTreesRegressor(random_state=0).fit(files, "y", "w", groups="g")
    expect_same(here, there, tmp_path)


def test_wrong_groups_are_named(tmp_path, left_nothing):
    groups, rows = make_groups(make_table(N, "two"), "text")
    groups = groups.copy()
    groups[3] = None
    rows = rows.set_column(rows.column_names.index("g"), "g", pa.array(groups))
    (file,) = write_files(tmp_path, rows, (0, N))
    with pytest.raises(
        ValueError, match="groups must name a group of every row, got none for 1 of"
    ):
        model_of("two").fit(file, "y", "w", groups="g")
    with pytest.raises(ValueError, match=r"groups must name columns of .* no column 'nowhere'"):
        model_of("two").fit(file, "y", "w", groups="nowhere")
    with pytest.raises(TypeError, match="groups must be the name of a column"):
        model_of("two").fit(file, "y", "w", groups=groups)
    rows = rows.set_column(rows.column_names.index("g"), "g", pa.array(["a"] * N))
    (file,) = write_files(tmp_path, rows, (0, N))
    with pytest.raises(ValueError, match="groups"):
        model_of("two", early_stopping=True).fit(file, "y", "w", groups="g")


class FakeExecutor:
    """Blocks in a list."""

    def __init__(self, blocks, compared_rows):
        self.all, self.block_sizes = blocks, BlockSizes(compared_rows=compared_rows)

    def expect_within_limit(self):
        """There is none."""

    def reduce(self, f, *given):
        return sum_results(f(block, *given) for block in self.all)

    def replace_blocks(self, f, *given):
        self.all = [f(block, *given)[0] for block in self.all]


@pytest.mark.parametrize("compared_rows", [1, 7, 2**22])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_keys_of_groups_are_those_of_one_table(seed, weighed, compared_rows):
    random = np.random.RandomState(seed)
    n, n_groups = 60, 25
    group = random.randint(0, n_groups - 1, n)  # the last one has no rows
    hashes = mix(random.randint(0, 3, n).astype(np.uint64))
    weight = random.choice([0.1, 0.7, 1.3], n) if weighed else None
    _, number = np.unique(group, return_inverse=True)
    expected = compute_group_keys(hashes, number, weight)[number]
    blocks, none = [], np.zeros((1, 0), np.uint8)
    for k, rows in enumerate(np.split(np.arange(n), [9, 9, 31])):
        own = None if weight is None else weight[rows]
        blocks.append(RowBlock(k, none, np.zeros(len(rows)), own, hashes[rows], group=group[rows]))
    parts = FakeExecutor(blocks, compared_rows)
    set_group_keys(parts, n_groups)
    assert (np.concatenate([block.keys for block in parts.all]) == expected).all()
