"""Several targets of rows in files, and several quantiles: the model of the same rows in memory."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certree import Cart, PACBayesTreeRegressor
from certree.ensembles import BoostedTreesClassifier, BoostedTreesRegressor
from certree.ensembles.out_of_core_boosting import fit_boosting_out_of_core
from certree.interface.arrays import stack_columns
from certree.interface.fitted_state import atomic_fit
from certree.out_of_core import sources
from certree.out_of_core.executors import LocalExecutor
from same_models import ChunkedRows, add_targets, add_towns, expect_same, make_table, write_files

N, NAMES = 1500, ["y", "b", "c"]


def model_of(target, **how):
    made = BoostedTreesRegressor if target == "numbers" else BoostedTreesClassifier
    return made(**{"max_iter": 5, "max_leaf_nodes": 9, "random_state": 0, "n_jobs": 1, **how})


def rows_of(target, weights, n=N, seed=0):
    return add_targets(make_table(n, target, seed, weights=weights or "real"), target)


def given_of(rows, weights, names=NAMES):
    """X, y and weights of a table in memory."""
    columns = [rows[name].to_numpy(zero_copy_only=False) for name in names]
    y = columns[0] if len(names) == 1 else stack_columns(columns)
    beside = [name for name in (*NAMES, "w") if name in rows.column_names]
    return rows.drop_columns(beside), y, rows["w"].to_numpy() if weights else None


def expect_same_in_files(rows, weights, target, how, folder, monkeypatch, names=NAMES):
    """Rows in memory have the model of the same ones in files, in another order."""
    judged = how.pop("judged", {})
    dropped = [one for one in NAMES if one not in names] + ([] if weights else ["w"])
    here = model_of(target, **how).fit(*given_of(rows, weights, names), **judged)
    moved = rows.take(np.random.RandomState(1).permutation(len(rows))).drop_columns(dropped)
    files = write_files(folder, moved)
    for block_rows in (2**19, 170):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of(target, **how).fit(files, names, "w" if weights else None, **judged)
        expect_same(here, there, folder)
    return here


LOSSES = ["squared_error", "absolute_error", "huber", "tweedie", "poisson"]


@pytest.mark.parametrize("weights", ["real", "whole", None])
@pytest.mark.parametrize("loss", LOSSES)
def test_several_numbers_mean_the_same(loss, weights, tmp_path, monkeypatch, left_nothing):
    rows = rows_of("numbers", weights)
    for name in NAMES:
        values = pa.array(np.abs(rows[name].to_numpy()))
        rows = rows.set_column(rows.column_names.index(name), name, values)
    model = expect_same_in_files(rows, weights, "numbers", {"loss": loss}, tmp_path, monkeypatch)
    assert model.n_outputs_ == 3
    assert len(set(model._loss_factors)) == 3


QUANTILES = {"loss": "quantile", "quantile": [0.1, 0.5, 0.95]}
STOPPING = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 12, "learning_rate": 0.5}


@pytest.mark.parametrize("weights", ["real", "whole", None])
@pytest.mark.parametrize("more", [{}, STOPPING, {"quality": "best", "subsample": 0.3}])
def test_several_quantiles_mean_the_same(more, weights, tmp_path, monkeypatch, left_nothing):
    rows, how = rows_of("numbers", weights), {**QUANTILES, **more}
    model = expect_same_in_files(rows, weights, "numbers", how, tmp_path, monkeypatch, ["b"])
    said = model.predict(rows.drop_columns([*NAMES, "w"]))
    assert said.shape == (N, 3)
    assert (np.diff(said, axis=1) >= 0).all()


NUMBERS = [
    {"max_thresholds": 8, "subsample": 1.0, "prunings": "none"},
    {"quality": "best"},
    {"subsample": 1e-9},
    STOPPING,
    {**STOPPING, "loss": "huber"},
    {**STOPPING, "loss": "absolute_error", "validation_fraction": None},
]


@pytest.mark.parametrize("weights", ["real", None])
@pytest.mark.parametrize("how", NUMBERS)
def test_settings_of_several_numbers_mean_the_same(
    how, weights, tmp_path, monkeypatch, left_nothing
):
    rows = add_towns(rows_of("numbers", weights), 60)
    model = expect_same_in_files(rows, weights, "numbers", {**how}, tmp_path, monkeypatch)
    assert hasattr(model, "train_score_") == ("early_stopping" in how)


@pytest.mark.parametrize("how", [{"early_stopping": False}, {"loss": "huber"}])
def test_rows_in_memory_judge_several_numbers(how, tmp_path, monkeypatch, left_nothing):
    X, y, weight = given_of(rows_of("numbers", "real", 333, seed=5), "real")
    judged = {"X_val": X, "y_val": y, "sample_weight_val": weight}
    how = {**STOPPING, **how, "judged": judged}
    model = expect_same_in_files(
        rows_of("numbers", "real"), "real", "numbers", how, tmp_path, monkeypatch
    )
    assert len(model.validation_score_) > model.n_iter_


LABELS = [
    {},
    {"class_weight": "balanced"},
    {"max_thresholds": 8, "subsample": 1.0, "prunings": "none"},
    {"quality": "best"},
    {**STOPPING, "validation_fraction": None},
    {**STOPPING, "validation_fraction": 0.3},
]


@pytest.mark.parametrize("how", LABELS)
@pytest.mark.parametrize(
    ("target", "weights"), [("two", "whole"), ("three", "real"), ("three", None)]
)
def test_columns_of_classes_mean_the_same(
    target, how, weights, tmp_path, monkeypatch, left_nothing
):
    rows = add_towns(rows_of(target, weights), 60)
    model = expect_same_in_files(rows, weights, target, {**how}, tmp_path, monkeypatch)
    assert [one.dtype.kind for one in model.classes_] == [
        "O" if target == "three" else "i",
        "O",
        "b",
    ]


@pytest.mark.parametrize("class_weight", [[{0: 2.5}, {"no": 0.5}, {}], [{}, {"so": 0}, {True: 3}]])
def test_weights_of_classes_of_each_column_mean_the_same(
    class_weight, tmp_path, monkeypatch, left_nothing
):
    how = {"class_weight": class_weight}
    expect_same_in_files(rows_of("two", "real"), "real", "two", how, tmp_path, monkeypatch)


def test_rows_in_memory_judge_columns_of_classes(tmp_path, monkeypatch, left_nothing):
    X, y, _ = given_of(rows_of("three", None, 333, seed=5), None)
    how = {**STOPPING, "judged": {"X_val": X, "y_val": y}}
    expect_same_in_files(rows_of("three", "real"), "real", "three", how, tmp_path, monkeypatch)


def test_columns_of_one_kind_are_told_together(tmp_path, monkeypatch, left_nothing):
    rows = rows_of("two", None)
    for name in ("b", "c"):
        values = pa.array(np.arange(N) % 5 if name == "b" else np.zeros(N, dtype=int))
        rows = rows.set_column(rows.column_names.index(name), name, values)
    model = expect_same_in_files(rows, None, "two", {}, tmp_path, monkeypatch)
    assert model.n_classes_ == [2, 5, 1]


@atomic_fit
def fit_in_chunks(model, X, y, weight, ends):
    fit_boosting_out_of_core(model, LocalExecutor(ChunkedRows(X, y, weight, ends), None, 1))
    return model


@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.sampled_from(["two", "three", "numbers"]),
    ends=st.lists(st.integers(0, 1100), max_size=8),
    weights=st.sampled_from(["real", None]),
    loss=st.sampled_from(["squared_error", "quantile", "huber"]),
    stops=st.booleans(),
)
@settings(max_examples=max(10, settings().max_examples // 6))
def test_however_rows_of_several_targets_are_divided(seed, target, ends, weights, loss, stops):
    X, y, weight = given_of(rows_of(target, weights, 1100, seed), weights)
    # Some rows are alike but for their targets.
    X = X.take(np.arange(1100) // 2 * 2)
    how = {"max_iter": 3, "random_state": seed}
    how |= {"loss": loss} if target == "numbers" else {"early_stopping": stops}
    here = model_of(target, **how).fit(X, y, weight)
    order = np.random.RandomState(seed).permutation(1100)
    moved = X.take(order), y[order], None if weight is None else weight[order]
    there = fit_in_chunks(model_of(target, **how), *moved, sorted([0, *ends, 1100]))
    expect_same(here, there)


def test_targets_that_never_change_mean_the_same():
    X, y, _ = given_of(rows_of("numbers", None), None)
    y[:, 1], y[:, 2] = 0.0, 7.0
    for loss in ("squared_error", "absolute_error", "huber"):
        here = model_of("numbers", loss=loss).fit(X, y)
        ends = [0, 10, 10, 900, N]
        expect_same(here, fit_in_chunks(model_of("numbers", loss=loss), X, y, None, ends))


@pytest.mark.parametrize(
    "how", [{}, {"early_stopping": True, "validation_fraction": 0.5, "loss": "huber"}]
)
@pytest.mark.parametrize("seed", range(4))
def test_numbers_far_below_the_others_mean_the_same(seed, how):
    """The order of targets is told in units of the largest sizes of those rows that train."""
    X, y, _ = given_of(rows_of("numbers", None, 1100, seed), None)
    y[np.arange(3) + 10 * seed, np.arange(3)] = -1000.0 * y.max(axis=0)
    here = model_of("numbers", max_iter=2, **how).fit(X, y)
    there = fit_in_chunks(model_of("numbers", max_iter=2, **how), X, y, None, [0, 500, 1100])
    expect_same(here, there)


def test_few_rows_of_several_numbers_are_fitted_in_memory(tmp_path, left_nothing):
    rows = rows_of("numbers", None, 300).drop_columns(["w"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    here = model_of("numbers").fit(*given_of(rows, None))
    assert here._n_first_trees > 0
    expect_same(here, model_of("numbers").fit(tmp_path, NAMES), tmp_path)


def test_passes_over_the_rows_do_not_grow_with_the_numbers(tmp_path, monkeypatch):
    rows = rows_of("numbers", None).drop_columns(["w"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    n_calls = []
    for names in (["y", "b", "c"], ["b", "c"]):
        calls = []

        def counted(name, calls=calls):
            before = getattr(LocalExecutor, name)
            return lambda *given, **how: calls.append(name) or before(*given, **how)

        with monkeypatch.context() as patched:
            for name in ("replace_blocks", "reduce"):
                patched.setattr(LocalExecutor, name, counted(name))
            model_of("numbers", max_iter=4, max_leaf_nodes=2).fit(tmp_path, names)
        n_calls.append(len(calls))
    assert n_calls[0] == n_calls[1]


# -- what is refused


REFUSED = [
    (
        ["y", "z"],
        None,
        ValueError,
        "must be a column of .*rows.parquet, but there is no column 'z'",
    ),
    (["y", "b", "y"], None, ValueError, "y must name each column once, got 'y' twice"),
    ([], None, ValueError, "y must name at least one column, got an empty list"),
    (["y", 3], None, TypeError, "y must hold names of columns, got one that is int"),
    (
        ["y", "b"],
        ["c"],
        TypeError,
        "sample_weight must be the name of a column if X is a file, got list",
    ),
]


@pytest.mark.parametrize(("names", "weight", "error", "message"), REFUSED)
def test_wrong_names_are_told(names, weight, error, message, tmp_path, left_nothing):
    pq.write_table(rows_of("numbers", None), tmp_path / "rows.parquet")
    with pytest.raises(error, match=message):
        model_of("numbers").fit(tmp_path, names, weight)


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "'b' must have no missing values, got 1 in .*rows"), (np.nan, "contains NaN")],
)
def test_one_missing_target_is_told(value, message, tmp_path, left_nothing):
    rows = rows_of("numbers", None)
    b = rows["b"].to_pylist()
    b[-3] = value
    rows = rows.set_column(rows.column_names.index("b"), "b", pa.array(b, from_pandas=False))
    pq.write_table(rows, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=message) as caught:
        model_of("numbers").fit(tmp_path, NAMES)
    assert "rows.parquet" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


def test_numbers_that_no_loss_takes_are_refused_in_every_column(tmp_path, left_nothing):
    pq.write_table(rows_of("numbers", None), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match='positive value with loss="poisson"'):
        model_of("numbers", loss="poisson").fit(tmp_path, ["c", "y"])


def test_rows_of_other_numbers_of_targets_are_refused():
    X, y, _ = given_of(rows_of("numbers", None), None)
    ragged = ChunkedRows(X, y, None, [0, 700, N])
    chunks = [*ragged.chunks()]
    chunks[1] = replace(chunks[1], y=chunks[1].y[:, :2])
    ragged.chunks = lambda **_: iter(chunks)
    with pytest.raises(ValueError, match="chunk 0 has 3 and chunk 1 2"):
        fit_boosting_out_of_core(model_of("numbers"), LocalExecutor(ragged, None, 1))


def test_what_takes_one_number_is_refused(tmp_path, left_nothing):
    pq.write_table(rows_of("numbers", None), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"quantile=\[...\] requires one output"):
        model_of("numbers", **QUANTILES).fit(tmp_path, NAMES)
    with pytest.raises(ValueError, match="monotonic_cst requires one output"):
        model_of("numbers", monotonic_cst={"x0": 1}).fit(tmp_path, NAMES)
    with pytest.raises(ValueError, match=r"y must be one column .*got 2 columns.*grower=Cart\(\)"):
        PACBayesTreeRegressor(Cart(max_bins=255)).fit(tmp_path, ["y", "b"])


def test_what_takes_one_column_of_classes_is_refused(tmp_path, left_nothing):
    pq.write_table(rows_of("two", None), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="monotonic_cst takes one target"):
        model_of("two", monotonic_cst={"x0": 1}).fit(tmp_path, NAMES)
    with pytest.raises(ValueError, match="a dict for each of 3 columns, got 2"):
        model_of("two", class_weight=[{}, {}]).fit(tmp_path, NAMES)


@pytest.mark.parametrize(
    ("last", "n_held", "message"),
    [
        (["once"], 0.2, "least populated class in y has only 1 member"),
        (
            ["rare"] * 3,
            1,
            r"gives 1 validation and 1499 training rows, but each set needs at least 2",
        ),
        (["rare"] * 3, 1490, "holds out all rows of 1 of the classes"),
    ],
)
def test_classes_that_cannot_be_held_out_are_refused_alike(last, n_held, message):
    rows = rows_of("two", None)
    rare = pa.array(["usual"] * (N - len(last)) + last)
    rows = rows.set_column(rows.column_names.index("b"), "b", rare)
    X, y, _ = given_of(rows, None)
    model = model_of("two", early_stopping=True, validation_fraction=n_held)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        fit_in_chunks(model, X, y, None, [0, 400, 400, N])


def test_a_list_of_one_name_is_that_column(tmp_path, left_nothing):
    pq.write_table(
        rows_of("numbers", None).drop_columns(["b", "c", "w"]), tmp_path / "rows.parquet"
    )
    expect_same(model_of("numbers").fit(tmp_path, "y"), model_of("numbers").fit(tmp_path, ["y"]))


@pytest.mark.parametrize("target", ["numbers", "three"])
def test_rows_in_files_judge_several_targets(target, tmp_path):
    """Early stopping by a folder has the model of early stopping by the same rows in memory."""
    train, judges = rows_of(target, "real"), rows_of(target, "real", n=400, seed=1)
    X, y, weight = given_of(train, True)
    X_val, y_val, weight_val = given_of(judges, True)
    how = {"max_iter": 40, "early_stopping": True, "n_iter_no_change": 2, "learning_rate": 1.0}
    in_memory = {"X_val": X_val, "y_val": y_val, "sample_weight_val": weight_val}
    here = model_of(target, **how).fit(X, y, weight, **in_memory)
    folders = [tmp_path / name for name in ("train", "judges")]
    for folder, rows in zip(folders, (train, judges), strict=True):
        folder.mkdir()
        write_files(folder, rows)
    in_files = {"X_val": folders[1], "y_val": NAMES, "sample_weight_val": "w"}
    there = model_of(target, **how).fit(folders[0], NAMES, "w", **in_files)
    assert here.n_iter_ < 40
    assert here.validation_score_.tobytes() == there.validation_score_.tobytes()
    expect_same(here, there, tmp_path)
