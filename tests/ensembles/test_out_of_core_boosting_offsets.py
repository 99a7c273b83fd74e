"""Offsets give the same model, bit by bit, for rows in files and for the same rows in memory."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import softmax

from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor, CustomLoss
from certree.ensembles.losses import compute_class_probabilities
from certree.out_of_core import sources
from same_models import (
    add_targets,
    add_towns,
    expect_same,
    make_equal_rows,
    make_table,
    split_table,
    write_files,
)

N = 1500
SQUARED = CustomLoss(lambda y, s: (s - y, np.ones(len(y))), lambda y, s: (y - s) ** 2 / 2)

pytestmark = pytest.mark.filterwarnings("ignore::certree.RepeatedRowsWarning")


def model_of(target, **how):
    made = BoostedTreesRegressor if target == "numbers" else BoostedTreesClassifier
    return made(
        **{"max_iter": 4, "max_leaf_nodes": 9, "random_state": 0, "n_jobs": 1, **how},
    )


def make_offsets(n, n_outputs=1, seed=5):
    """Make offsets, (n, n_outputs), of few distinct values."""
    return np.random.RandomState(seed).normal(size=(n, n_outputs)).round(1)


def add_offsets(rows, offsets):
    """Return the table with columns o0, o1, ... of offsets, and what `fit` takes as offset."""
    names = [f"o{k}" for k in range(offsets.shape[1])]
    for name, values in zip(names, offsets.T, strict=True):
        rows = rows.append_column(name, pa.array(values))
    return rows, names[0] if len(names) == 1 else names


def expect_same_in_files(model, rows, offsets, folder, monkeypatch, block_rows=170):
    """Assert that rows in files, in another order, have the model of the rows in memory."""
    is_weighed = "w" in rows.column_names
    if is_weighed:
        X, y, weight = split_table(rows)
    else:
        X, y, weight = rows.drop_columns(["y"]), rows["y"].to_numpy(zero_copy_only=False), None
    here = model().fit(X, y, weight, offset=offsets[:, 0] if offsets.shape[1] == 1 else offsets)
    rows, names = add_offsets(rows, offsets)
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
    files = write_files(folder, rows.take(np.random.RandomState(1).permutation(len(rows))))
    there = model().fit(files, "y", "w" if is_weighed else None, offset=names)
    expect_same(here, there, folder)
    assert there._has_offset
    return there


LOSSES = [
    ("two", {}),
    ("three", {}),
    ("numbers", {}),
    ("numbers", {"loss": "poisson"}),
    ("numbers", {"loss": "gamma"}),
    ("numbers", {"loss": "tweedie"}),
    ("numbers", {"loss": "huber"}),
    ("numbers", {"loss": "absolute_error"}),
    ("numbers", {"quantile": [0.1, 0.7], "loss": "quantile"}),
]


def make_positive(rows):
    """Return the table with the exponentials of the targets."""
    y = np.exp(rows["y"].to_numpy() / 2)
    return rows.set_column(rows.column_names.index("y"), "y", pa.array(y))


@pytest.mark.parametrize("weights", [None, "real", "whole"])
@pytest.mark.parametrize(("target", "how"), LOSSES)
def test_offsets_in_files_mean_the_same(target, how, weights, tmp_path, monkeypatch, left_nothing):
    rows = make_table(N, target, weights=weights or "real")
    if how.get("loss") in ("poisson", "gamma", "tweedie"):
        rows = make_positive(rows)
    rows = rows if weights else rows.drop_columns(["w"])
    offsets = make_offsets(N, 3 if target == "three" else 2 if "quantile" in how else 1)
    expect_same_in_files(lambda: model_of(target, **how), rows, offsets, tmp_path, monkeypatch)


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("weights", [None, "real"])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_equal_rows_of_other_offsets_may_lie_in_any_part(
    target, weights, stops, tmp_path, monkeypatch, left_nothing
):
    X, y, weight = make_equal_rows(N, target, weights or "real")
    rows = X.append_column("y", pa.array(y))
    rows = rows if weights is None else rows.append_column("w", pa.array(weight))
    how = {"early_stopping": True, "max_iter": 12, "n_iter_no_change": 2} if stops else {}
    offsets = make_offsets(N, 3 if target == "three" else 1)
    model = lambda: model_of(target, **how)  # noqa: E731
    expect_same_in_files(model, rows, offsets, tmp_path, monkeypatch)


@pytest.mark.slow
def test_one_part_may_have_one_row(tmp_path, monkeypatch, left_nothing):
    rows = make_table(120, "three").drop_columns(["w"])
    how = {"max_iter": 2}
    expect_same_in_files(
        lambda: model_of("three", **how), rows, make_offsets(120, 3), tmp_path, monkeypatch, 1
    )


def test_several_numbers_have_offsets_of_their_own(tmp_path, left_nothing):
    rows = add_targets(make_table(N, "numbers"), "numbers")
    targets, offsets = ["y", "b", "c"], make_offsets(N, 3)
    X = rows.drop_columns([*targets, "w"])
    y = np.column_stack([rows[name].to_numpy() for name in targets])
    here = model_of("numbers").fit(X, y, rows["w"].to_numpy(), offset=offsets)
    rows, names = add_offsets(rows, offsets)
    files = write_files(tmp_path, rows.take(np.arange(N)[::-1]))
    there = model_of("numbers").fit(files, targets, "w", offset=names)
    expect_same(here, there, tmp_path)


COMPARED = [
    (target, how, weights, 170)
    for target, how in [*LOSSES[:8], ("numbers", {"loss": SQUARED})]
    for weights in (None, "real")
]
COMPARED += [
    ("numbers", {"loss": loss}, None, block_rows)
    for loss in ("tweedie", "huber", "absolute_error", SQUARED)
    for block_rows in (2**19, 37)
]


@pytest.mark.parametrize(("target", "how", "weights", "block_rows"), COMPARED)
def test_categories_are_compared_by_newton_steps(
    target, how, weights, block_rows, tmp_path, monkeypatch, left_nothing
):
    rows = make_table(N, target)
    if how.get("loss") in ("poisson", "gamma", "tweedie"):
        rows = make_positive(rows)
    rows = add_towns(rows if weights else rows.drop_columns(["w"]), 60)
    offsets = make_offsets(N, 3 if target == "three" else 1)
    model = lambda: model_of(target, **how)  # noqa: E731
    there = expect_same_in_files(model, rows, offsets, tmp_path, monkeypatch, block_rows)
    assert (there.trees_.feature == [*there.feature_names_in_].index("town")).any()


@pytest.mark.parametrize("block_rows", [2**19, 170, 37])
def test_losses_in_python_have_offsets(block_rows, tmp_path, monkeypatch, left_nothing):
    rows = make_table(N, "numbers")
    model = lambda: model_of("numbers", loss=SQUARED)  # noqa: E731
    expect_same_in_files(model, rows, make_offsets(N), tmp_path, monkeypatch, block_rows)


@pytest.mark.parametrize("lies_in", ["memory", "files"])
@pytest.mark.parametrize("target", ["two", "numbers"])
def test_validation_sets_have_offsets(target, lies_in, tmp_path, left_nothing):
    rows, offsets = make_table(N, target), make_offsets(N)
    held, rest = rows.slice(0, 300), rows.slice(300)
    model = lambda: model_of(target, early_stopping=True, max_iter=9)  # noqa: E731
    X, y, weight = split_table(rest)
    X_val, y_val, weight_val = split_table(held)
    validation = {
        "X_val": X_val,
        "y_val": y_val,
        "sample_weight_val": weight_val,
        "offset_val": offsets[:300, 0],
    }
    here = model().fit(X, y, weight, offset=offsets[300:, 0], **validation)
    (tmp_path / "held").mkdir()
    if lies_in == "files":
        files = write_files(tmp_path / "held", add_offsets(held, offsets[:300])[0], (0, 50, 300))
        names = {"y_val": "y", "sample_weight_val": "w", "offset_val": "o0"}
        validation = {"X_val": files, **names}
    files = write_files(tmp_path, add_offsets(rest, offsets[300:])[0])
    there = model().fit(files, "y", "w", offset="o0", **validation)
    expect_same(here, there, tmp_path)
    with pytest.raises(ValueError, match="offset and offset_val must be given together"):
        model().fit(files, "y", offset="o0", **{**validation, "offset_val": None})


def test_few_rows_with_offsets_are_fitted_in_memory(tmp_path, left_nothing):
    rows, offsets = make_table(600, "numbers"), make_offsets(600)
    held, rest = rows.slice(0, 100), rows.slice(100)
    X, y, weight = split_table(rest)
    X_val, y_val, _ = split_table(held)
    here = model_of("numbers").fit(
        *(X, y, weight),
        offset=offsets[100:, 0],
        X_val=X_val,
        y_val=y_val,
        offset_val=offsets[:100, 0],
    )
    files = write_files(tmp_path, add_offsets(rest, offsets[100:])[0], (0, 300, 500))
    (tmp_path / "held").mkdir()
    others = add_offsets(held.drop_columns(["w"]), offsets[:100])[0]
    files_val = write_files(tmp_path / "held", others, (0, 100))
    there = model_of("numbers").fit(
        *(files, "y", "w"), offset="o0", X_val=files_val, y_val="y", offset_val="o0"
    )
    expect_same(here, there, tmp_path)


def test_wrong_offsets_are_named(tmp_path, left_nothing):
    rows, name = add_offsets(make_table(N, "two").drop_columns(["w"]), make_offsets(N))
    rows = rows.append_column("word", pa.array(["a", "b"] * (N // 2)))
    (file,) = write_files(tmp_path, rows, (0, N))
    model = model_of("two")
    with pytest.raises(TypeError, match="offset must be the name of a column if X is a file"):
        model.fit(file, "y", offset=np.zeros(N))
    with pytest.raises(ValueError, match=r"offset must name columns of .* no column 'nowhere'"):
        model.fit(file, "y", offset="nowhere")
    with pytest.raises(ValueError, match=r"offset must have shape \(1500,\), got \(1500, 2\)"):
        model.fit(file, "y", offset=[name, "x0"])
    with pytest.raises(ValueError, match="offset must hold numbers"):
        model.fit(file, "y", offset="word")
    with pytest.raises(ValueError, match=r"offset must hold logarithms in -300 \.\. 300"):
        model.fit(file, "y", offset="x2")
    with pytest.raises(ValueError, match="offsets 'colour' must have no missing values"):
        model.fit(file, "y", offset="colour")
    far = rows.set_column(rows.column_names.index(name), name, pa.array(np.full(N, 301.0)))
    (file,) = write_files(tmp_path, far, (0, N))
    with pytest.raises(ValueError, match=r"offset must hold logarithms in -300 \.\. 300"):
        model.fit(file, "y", offset=name)
    ones = far.set_column(far.column_names.index("y"), "y", pa.array(np.ones(N, dtype=int)))
    (file,) = write_files(tmp_path, ones, (0, N))
    with pytest.raises(ValueError, match="offset must be None if y has one class only"):
        model.fit(file, "y", offset=name)


def test_features_are_all_columns_but_the_offsets(tmp_path, left_nothing):
    rows, names = add_offsets(make_table(N, "three").drop_columns(["w"]), make_offsets(N, 3))
    model = model_of("three").fit(write_files(tmp_path, rows), "y", offset=names)
    assert [*model.feature_names_in_] == ["x0", "x1", "x2", "x3", "colour"]


@pytest.mark.parametrize("n_classes", [2, 3, 11])
def test_probabilities_are_those_of_scipy_and_the_same_in_any_block(n_classes):
    random = np.random.RandomState(n_classes)
    start = random.normal(size=n_classes)
    offset = 9 * random.normal(size=(1 if n_classes == 2 else n_classes, 77))
    found = compute_class_probabilities(start, offset)
    both = np.vstack([np.zeros(77), offset]) if n_classes == 2 else offset
    np.testing.assert_allclose(found, softmax(start[:, None] + both, axis=0), rtol=1e-14)
    for block in (slice(3, 4), slice(5, 40)):
        part = compute_class_probabilities(start, np.asfortranarray(offset[:, block]))
        assert (part == found[:, block]).all()


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_warm_starts_have_offsets(target, grouped, tmp_path, left_nothing):
    rows = make_table(N, target).drop_columns(["w"])
    offsets = make_offsets(N, 3 if target == "three" else 1)
    groups = np.random.RandomState(3).randint(0, 200, N) if grouped else None
    X, y = rows.drop_columns(["y"]), rows["y"].to_numpy(zero_copy_only=False)
    given = offsets[:, 0] if offsets.shape[1] == 1 else offsets
    with_offsets, names = add_offsets(rows, offsets)
    if grouped:
        with_offsets = with_offsets.append_column("g", pa.array(groups))
    files = write_files(tmp_path, with_offsets)
    here, there = (model_of(target, warm_start=True, max_iter=4) for _ in range(2))
    for n_rounds in (4, 7):
        here.set_params(max_iter=n_rounds).fit(X, y, offset=given, groups=groups)
        column = "g" if grouped else None
        there.set_params(max_iter=n_rounds).fit(files, "y", offset=names, groups=column)
    assert here.n_iter_ == there.n_iter_ == 7
    expect_same(here, there, tmp_path)
