"""The same model, bit by bit, of rows in memory and of rows in files, however these are divided."""

import sys
import threading
from functools import partial, partialmethod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, make_scorer

from certree import _core
from certree.ensembles import (
    BoostedTreesClassifier,
    BoostedTreesRanker,
    BoostedTreesRegressor,
    CertifiedBoostedTreesClassifier,
    CertifiedForestClassifier,
    CustomLoss,
    evaluation,
    out_of_core_boosting,
    rounds,
    scored_sample,
)
from certree.ensembles.out_of_core_boosting import RoundOptions, fit_boosting_out_of_core
from certree.files import load
from certree.grow import code_trees
from certree.interface.arrays import stack_columns
from certree.interface.fitted_state import atomic_fit
from certree.out_of_core import binning, executors, joined_rows, resources, scratch, sources
from certree.out_of_core.binned_blocks import _sketch_chunk
from certree.out_of_core.executors import InMemory, LocalExecutor
from certree.tables import table_files
from run_length import choose_cases
from same_models import (
    COLUMNS,
    ChunkedRows,
    add_targets,
    add_towns,
    assert_same,
    expect_same,
    make_equal_rows,
    make_table,
    split_table,
    write_files,
)

N = 1500


def model_of(target, **how):
    made = BoostedTreesRegressor if target == "numbers" else BoostedTreesClassifier
    return made(**{"max_iter": 5, "random_state": 0, "n_jobs": 1, **how})


@atomic_fit
def fit_in_chunks(model, X, y, weight, ends, n_threads=1):
    fit_boosting_out_of_core(model, LocalExecutor(ChunkedRows(X, y, weight, ends), None, n_threads))
    return model


SETTINGS = [
    {},
    {"max_thresholds": 8, "subsample": 0.5},
    {"max_leaf_nodes": None, "max_depth": 3, "min_samples_leaf": 40},
    {"max_leaf_nodes": 2, "prunings": "none"},
    {"subsample": 1.0, "max_features": 2, "l2_regularization": 0.0},
    {"interaction_cst": [[0, 1], [1, 2, 4]], "learning_rate": 0.5},
    {"subsample": 1e-9},
]


@pytest.mark.parametrize("how", SETTINGS)
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_files_and_memory_have_the_same_model(target, how, tmp_path, left_nothing):
    rows = make_table(N, target)
    here = model_of(target, **how).fit(*split_table(rows, weighed=False))
    write_files(tmp_path, rows.drop_columns(["w"]))
    expect_same(here, model_of(target, **how).fit(tmp_path, "y"), tmp_path)


@pytest.mark.parametrize("weights", ["real", "whole"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.5}, {"one": 0.5, "third": 0}])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_weights_mean_the_same(target, class_weight, weights, tmp_path, left_nothing):
    if class_weight is not None and target == "numbers":
        pytest.skip("no classes")
    if isinstance(class_weight, dict) and (0 in class_weight) != (target == "two"):
        pytest.skip("of other classes")
    how = {} if class_weight is None else {"class_weight": class_weight}
    rows = make_table(N, target, weights=weights)
    here = model_of(target, **how).fit(*split_table(rows))
    there = model_of(target, **how).fit(write_files(tmp_path, rows), "y", sample_weight="w")
    expect_same(here, there, tmp_path)


def with_positive(rows, loss):
    """Counts, many of them 0, or amounts, in place of numbers."""
    y = np.exp(rows["y"].to_numpy() / 2)
    y = np.random.RandomState(0).poisson(y).astype(float) if loss == "poisson" else y
    return rows.set_column(rows.column_names.index("y"), "y", pa.array(y))


@pytest.mark.parametrize("block_rows", [2**19, 170])
@pytest.mark.parametrize("weights", ["real", "whole", None])
@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_positive_numbers_mean_the_same(
    loss, weights, block_rows, tmp_path, monkeypatch, left_nothing
):
    rows = with_positive(make_table(N, "numbers", weights=weights or "real"), loss)
    expect_same_in_files({"loss": loss}, rows, weights, block_rows, tmp_path, monkeypatch)


QUANTILES = [
    {"loss": "absolute_error"},
    {"loss": "quantile", "quantile": 0.83},
    {"loss": "huber", "subsample": 1.0},
]


@pytest.mark.parametrize(
    ("how", "weights", "block_rows"),
    choose_cases(QUANTILES, ["real", "whole", None], [2**19, 170, 1]),
)
def test_losses_of_order_statistics_mean_the_same(
    how, weights, block_rows, tmp_path, monkeypatch, left_nothing
):
    if block_rows == 1 and weights is not None:
        pytest.skip("takes long")
    rows = make_table(N if block_rows > 1 else 200, "numbers", weights=weights or "real")
    expect_same_in_files(how, rows, weights, block_rows, tmp_path, monkeypatch)


def expect_same_in_files(how, rows, weights, block_rows, folder, monkeypatch):
    """Rows in memory have the model of the same ones in files, in another order."""
    how = {"max_leaf_nodes": 9, **how}
    here = model_of("numbers", **how).fit(*split_table(rows, weights is not None))
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
    order = np.random.RandomState(1).permutation(len(rows))
    moved = rows.take(order) if weights else rows.take(order).drop_columns(["w"])
    files = write_files(folder, moved)
    there = model_of("numbers", **how).fit(files, "y", "w" if weights else None)
    expect_same(here, there, folder)
    assert here.predict(rows.drop_columns(["y", "w"])).std() > 0


@pytest.mark.parametrize(
    ("target", "weights", "n_levels", "block_rows"),
    choose_cases(["two", "three", "numbers"], ["real", "whole", None], [40, 300], [2**19, 170]),
)
def test_features_of_many_levels_mean_the_same(
    target, weights, n_levels, block_rows, tmp_path, monkeypatch, left_nothing
):
    rows = add_towns(make_table(N, target, weights=weights or "real"), n_levels)
    here = model_of(target).fit(*split_table(rows, weights is not None))
    names = [*here.feature_names_in_]
    assert (here.trees_.feature == names.index("town")).any()
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
    moved = rows.take(np.random.RandomState(1).permutation(len(rows)))
    files = write_files(tmp_path, moved if weights else moved.drop_columns(["w"]))
    expect_same(here, model_of(target).fit(files, "y", "w" if weights else None), tmp_path)


@pytest.mark.parametrize("how", [{}, {"quality": "best"}, {"interaction_cst": [[0, 1, 6], [2, 3]]}])
def test_rows_held_out_see_many_levels(how, tmp_path, left_nothing):
    rows = add_towns(make_table(N, "two").drop_columns(["w"]), 60)
    X, y = rows.drop_columns(["y"]), rows["y"].to_numpy()
    held = {} if how.get("quality") == "best" else {"early_stopping": True, "max_iter": 8}
    here, there = (model_of("two", **how, **held) for _ in range(2))
    expect_same(here.fit(X, y), there.fit(write_files(tmp_path, rows), "y"), tmp_path)
    judged = {"X_val": X.slice(0, 300), "y_val": y[:300]}
    if "quality" not in how:
        here.fit(X, y, **judged)
        expect_same(here, there.fit(write_files(tmp_path, rows), "y", **judged), tmp_path)


class Watching:
    """Keeps what it is told, and ends the fit after some rounds."""

    def __init__(self, last):
        self.last, self.told = last, []

    def __call__(self, now):
        scores = now.train_score, now.validation_score
        self.told.append((now.n_iter, *(one.tobytes() for one in scores)))
        return now.n_iter >= self.last


@pytest.mark.parametrize("how", [{}, {"early_stopping": True}, {"quality": "best"}])
@pytest.mark.parametrize("is_judged", [False, True])
def test_callbacks_are_told_the_same(how, is_judged, tmp_path, left_nothing):
    rows = make_table(N, "numbers").drop_columns(["w"])
    X, y = rows.drop_columns(["y"]), rows["y"].to_numpy()
    judged = {"X_val": X.slice(0, 300), "y_val": y[:300]} if is_judged else {}
    here, there = Watching(3), Watching(3)
    one = model_of("numbers", max_iter=9, **how).fit(X, y, callbacks=[here], **judged)
    files = write_files(tmp_path, rows)
    other = model_of("numbers", max_iter=9, **how).fit(files, "y", callbacks=[there], **judged)
    expect_same(one, other, tmp_path)
    assert here.told == there.told
    assert [n_iter for n_iter, *_ in there.told] == [1, 2, 3]


def test_a_callback_that_raises_leaves_the_model_as_it_was(tmp_path, left_nothing):
    rows = make_table(N).drop_columns(["w"])
    files = write_files(tmp_path, rows)
    model = model_of("two").fit(files, "y")
    before = model.trees_

    def fail(now):
        raise OSError(f"round {now.n_iter}")

    with pytest.raises(OSError, match="round 1"):
        model.fit(files, "y", callbacks=[fail])
    assert model.trees_ is before
    with pytest.raises(ValueError, match='scoring must be "loss" or the name of a scorer'):
        model.set_params(scoring=None).fit(files, "y", callbacks=[fail])


UNUSUAL = {
    "constant": lambda _: np.full(N, 7.0),
    "zeros of both signs": lambda rs: np.where(rs.rand(N) < 0.5, 0.0, -0.0),
    "many ties": lambda rs: np.round(rs.normal(size=N)),
    "two values": lambda _: np.repeat([-1.0, 2.0], N // 2),
    "heavy tails": lambda rs: rs.standard_cauchy(N),
    "large": lambda rs: 1e90 * rs.normal(size=N),
    "mostly zero": lambda rs: rs.gamma(1.0, size=N) * (rs.rand(N) < 0.4),
}


@pytest.mark.filterwarnings("ignore:sample_weight differs so much:UserWarning")
@pytest.mark.parametrize(
    ("how", "target"),
    choose_cases(
        [
            *QUANTILES,
            {"loss": "quantile", "quantile": 1 / 3},
            {"loss": "tweedie", "power": 1.2},
        ],
        [*UNUSUAL],
    ),
)
def test_unusual_targets_mean_the_same(how, target):
    rs = np.random.RandomState(0)
    X, _, _ = split_table(make_table(N), weighed=False)
    y = UNUSUAL[target](rs)
    if how["loss"] == "tweedie":
        y = np.abs(y) + (y.max() == 0)
    order = rs.permutation(N)
    here = model_of("numbers", **how).fit(X, y)
    ends = [0, 1, 300, 300, 1100, N]
    expect_same(
        here, fit_in_chunks(model_of("numbers", **how), X.take(order), y[order], None, ends)
    )
    weight = 10.0 ** rs.uniform(-18, 3, N)
    here = model_of("numbers", **how).fit(X, y, weight)
    moved = X.take(order), y[order], weight[order]
    expect_same(here, fit_in_chunks(model_of("numbers", **how), *moved, ends))


@pytest.mark.parametrize(("loss", "least"), [("poisson", -1.0), ("gamma", 0.0), ("tweedie", -1.0)])
def test_numbers_of_no_likelihood_are_refused(loss, least, tmp_path, left_nothing):
    rows = with_positive(make_table(N, "numbers"), "gamma").drop_columns(["w"])
    y = rows["y"].to_numpy().copy()
    y[-1] = least
    file = written(tmp_path, rows.set_column(rows.column_names.index("y"), "y", pa.array(y)))
    with pytest.raises(ValueError, match=f'y must be >.* with loss="{loss}"'):
        model_of("numbers", loss=loss).fit(file, "y")


@pytest.mark.parametrize("target", ["two", "numbers"])
def test_slopes_mean_the_same(target, tmp_path, left_nothing):
    rows = make_table(N, target).drop_columns(["w"])
    how = {"monotonic_cst": {"x0": 1, "x2": -1}, "max_leaf_nodes": 8}
    pq.write_table(rows, tmp_path / "rows.parquet")
    y = rows["y"].to_numpy()
    here = model_of(target, **how).fit(rows.drop_columns(["y"]), y)
    expect_same(here, model_of(target, **how).fit(tmp_path / "rows.parquet", "y"), tmp_path)


@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.sampled_from(["two", "three", "numbers"]),
    ends=st.lists(st.integers(0, 1100), max_size=8),
    weights=st.sampled_from(["real", "whole", None]),
    leaves=st.integers(2, 40),
    shuffles=st.booleans(),
)
@settings(max_examples=max(10, settings().max_examples // 6))
def test_however_rows_are_divided(seed, target, ends, weights, leaves, shuffles):
    rows = make_table(1100, target, seed, weights or "real")
    X, y, weight = split_table(rows, weights is not None)
    how = {"max_leaf_nodes": leaves, "max_iter": 3, "random_state": seed}
    order = np.random.RandomState(seed).permutation(1100) if shuffles else np.arange(1100)
    here = model_of(target, **how).fit(X, y, weight)
    moved = X.take(order), y[order], None if weight is None else weight[order]
    try:
        there = fit_in_chunks(model_of(target, **how), *moved, sorted([0, *ends, 1100]))
    except InMemory:  # few rows weigh more than nothing
        assert target == "numbers"
        assert weights == "whole"
        return
    expect_same(here, there)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.sampled_from(["two", "three", "numbers"]),
    ends=st.lists(st.integers(0, N), max_size=8),
    weights=st.sampled_from(["real", "whole", "any"]),
    stops=st.booleans(),
)
@settings(max_examples=max(10, settings().max_examples // 6))
def test_equal_rows_of_other_weights_may_lie_in_any_part(seed, target, ends, weights, stops):
    X, y, weight = make_equal_rows(N, target, weights, seed)
    how = {**(STOPPING if stops else {}), "max_iter": 3, "random_state": seed}
    here = model_of(target, **how).fit(X, y, weight)
    order = np.random.RandomState(seed).permutation(N)
    for moved in (X, y, weight), (X.take(order), y[order], weight[order]):
        there = fit_in_chunks(model_of(target, **how), *moved, sorted([0, *ends, N]))
        expect_same(here, there)


STOPPING = {
    "early_stopping": True,
    "n_iter_no_change": 2,
    "max_iter": 12,
    "learning_rate": 0.5,
    "max_leaf_nodes": 8,
}
STOPPED = [
    ("two", None, {}),
    ("two", "real", {"class_weight": "balanced", "validation_fraction": 200}),
    ("three", "whole", {}),
    ("three", "real", {"validation_fraction": 0.5}),
    ("numbers", None, {"validation_fraction": None, "loss": "huber"}),
    ("numbers", "real", {"tol": 0.01}),
    ("numbers", "whole", {"loss": "huber"}),
    ("numbers", "real", {"loss": "huber"}),
    ("numbers", "real", {"loss": "quantile", "quantile": 0.2}),
    ("numbers", "whole", {"loss": "absolute_error", "max_iter": "auto"}),
    ("numbers", "real", {"loss": "tweedie"}),
    ("numbers", "real", {"loss": "gamma"}),
    ("numbers", None, {"loss": "poisson"}),
    ("two", "real", {"quality": "best"}),
    ("three", None, {"quality": "best"}),
    ("numbers", "whole", {"quality": "best", "loss": "huber"}),
    ("numbers", None, {"quality": "best", "validation_fraction": None}),
]


@pytest.mark.parametrize(("target", "weights", "how"), STOPPED)
def test_early_stopping_means_the_same(target, weights, how, tmp_path, monkeypatch, left_nothing):
    rows = make_table(N, target, weights=weights or "real")
    if how.get("loss") in ("tweedie", "gamma", "poisson"):
        rows = with_positive(rows, how["loss"])
    how = {**STOPPING, **how}
    here = model_of(target, **how).fit(*split_table(rows, weights is not None))
    assert hasattr(here, "train_score_")
    order = np.random.RandomState(1).permutation(N)
    moved = rows.take(order) if weights else rows.take(order).drop_columns(["w"])
    weight = "w" if weights else None
    files = write_files(tmp_path, moved)
    for block_rows in (2**19, 170):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of(target, **how).fit(files, "y", weight)
        expect_same(here, there, tmp_path)


@pytest.mark.parametrize("loss", ["huber", "squared_error", "tweedie"])
def test_scores_that_are_no_numbers_mean_the_same(loss):
    X, y, _ = split_table(with_positive(make_table(N, "numbers"), "poisson"), weighed=False)
    how = {**STOPPING, "loss": loss, "learning_rate": 1e5 if loss == "tweedie" else 1e149}
    ends = [0, 10, 300, 301, 900, N]
    if loss == "tweedie":
        for fit in (lambda one: one.fit(X, y), lambda one: fit_in_chunks(one, X, y, None, ends)):
            with pytest.raises(ValueError, match="gradients must be finite"):
                fit(model_of("numbers", **how))
        return
    here = model_of("numbers", **how).fit(X, y)
    expect_same(here, fit_in_chunks(model_of("numbers", **how), X, y, None, ends))
    assert here.validation_score_[-1] == -np.inf


def log_cosh_slopes(y, score):
    tanh = np.tanh(score - y)
    return tanh, 1 - tanh**2


def log_cosh(y, score):
    return np.logaddexp(score - y, y - score) - np.log(2)


LOG_COSH = CustomLoss(log_cosh_slopes, log_cosh)
COUNTS = CustomLoss(
    lambda y, s: (np.exp(s) - y, np.exp(s)), lambda y, s: np.exp(s) - y * s, link="log"
)


@pytest.mark.parametrize("weights", [None, "real", "whole"])
@pytest.mark.parametrize(
    ("loss", "how"),
    [
        (LOG_COSH, {}),
        (LOG_COSH, STOPPING),
        (LOG_COSH, {**STOPPING, "quality": "best"}),
        (COUNTS, {}),
        (COUNTS, {**STOPPING, "validation_fraction": None}),
    ],
)
def test_losses_in_python_mean_the_same(loss, how, weights, tmp_path, monkeypatch, left_nothing):
    rows = make_table(N, "numbers", weights=weights or "real")
    rows = with_positive(rows, "poisson") if loss is COUNTS else rows
    weighed = weights is not None
    here, there = Watching(99), Watching(99)
    one = model_of("numbers", loss=loss, **how).fit(*split_table(rows, weighed), callbacks=[here])
    order = np.random.RandomState(1).permutation(N)
    moved = rows.take(order)
    chunks = fit_in_chunks(
        model_of("numbers", loss=loss, **how), *split_table(moved, weighed), [0, 300, 300, 1299, N]
    )
    expect_same_rounds(one, chunks)
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", 170)
    files = write_files(tmp_path, moved if weighed else moved.drop_columns(["w"]))
    other = model_of("numbers", loss=loss, **how)
    other.fit(files, "y", "w" if weighed else None, callbacks=[there])
    expect_same_rounds(one, other)
    assert here.told == there.told
    assert one.n_iter_ > 0


def expect_same_rounds(one, other):
    """Trees, start and scores have the same bits; model files do not hold functions."""
    assert np.array_equal(one.start_, other.start_)
    assert one.n_iter_ == other.n_iter_
    for name in COLUMNS:
        assert np.array_equal(getattr(one.trees_, name), getattr(other.trees_, name)), name


@pytest.mark.parametrize("is_in_files", [False, True])
def test_validation_sets_score_losses_in_python_the_same(is_in_files, tmp_path, left_nothing):
    rows, others = make_table(N, "numbers"), make_table(333, "numbers", seed=5)
    X, y, weight = split_table(others)
    how = {**STOPPING, "loss": LOG_COSH}
    beside = {"X_val": X, "y_val": y, "sample_weight_val": weight}
    here = model_of("numbers", **how).fit(*split_table(rows), **beside)
    if is_in_files:
        (tmp_path / "others").mkdir()
        write_files(tmp_path / "others", others, (0, 100, 100, 333))
        beside = {"X_val": tmp_path / "others", "y_val": "y", "sample_weight_val": "w"}
    there = model_of("numbers", **how).fit(write_files(tmp_path, rows), "y", "w", **beside)
    expect_same_rounds(here, there)
    assert np.array_equal(here.validation_score_, there.validation_score_)
    assert np.array_equal(here.train_score_, there.train_score_)


def test_wrong_gradients_are_refused_with_the_same_words(tmp_path, left_nothing):
    """The rows that are checked do not depend on the order of rows."""
    rows = make_table(N, "numbers").drop_columns(["w"])
    wrong = CustomLoss(lambda y, s: (1.01 * (s - y), y * 0 + 1), lambda y, s: (s - y) ** 2 / 2)
    moved = rows.take(np.random.RandomState(1).permutation(N))
    said = []
    in_memory = rows.drop_columns(["y"]), rows["y"].to_numpy()
    for data in (in_memory, (written(tmp_path, moved), "y")):
        with pytest.raises(ValueError, match="must return the derivatives of loss") as error:
            model_of("numbers", loss=wrong).fit(*data)
        said.append(str(error.value))
    assert said[0] == said[1]


VALIDATED = [
    ("two", None, False, {}),
    ("two", "real", True, {"early_stopping": False}),
    ("three", "whole", True, {}),
    ("numbers", "whole", True, {"loss": "huber"}),
    ("numbers", None, False, {"validation_fraction": None}),
    ("two", "real", True, {"quality": "best", "early_stopping": False}),
    ("numbers", None, True, {"quality": "best"}),
]


@pytest.mark.parametrize(("target", "weights", "weighed", "how"), VALIDATED)
def test_rows_in_memory_judge_the_same(target, weights, weighed, how, tmp_path, left_nothing):
    rows = make_table(N, target, weights=weights or "real")
    X, y, weight = split_table(make_table(333, target, seed=5), weighed)
    beside = {"X_val": X, "y_val": y, "sample_weight_val": weight}
    how = {**STOPPING, **how}
    here = model_of(target, **how).fit(*split_table(rows, weights is not None), **beside)
    files = write_files(tmp_path, rows if weights else rows.drop_columns(["w"]))
    there = model_of(target, **how).fit(files, "y", "w" if weights else None, **beside)
    expect_same(here, there, tmp_path)
    assert len(here.validation_score_) > here.n_iter_


@pytest.mark.parametrize(("target", "weights", "weighed", "how"), VALIDATED)
def test_rows_in_files_judge_the_same(
    target, weights, weighed, how, tmp_path, monkeypatch, left_nothing
):
    rows, others = make_table(N, target, weights=weights or "real"), make_table(333, target, seed=5)
    X, y, weight = split_table(others, weighed)
    if not isinstance(y[0], float) and "loss" not in how:
        how = {"class_weight": "balanced", **how}
    how = {**STOPPING, **how}
    here = model_of(target, **how).fit(
        *split_table(rows, weights is not None), X_val=X, y_val=y, sample_weight_val=weight
    )
    (tmp_path / "judges").mkdir()
    judges = others if weighed else others.drop_columns(["w"])
    beside = {"y_val": "y", "sample_weight_val": "w" if weighed else None}
    places = write_files(tmp_path / "judges", judges, (0, 100, 100, 333))
    files = write_files(tmp_path, rows if weights else rows.drop_columns(["w"]))
    for block_rows, place in ((2**19, tmp_path / "judges"), (170, places[::-1])):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of(target, **how)
        there.fit(files, "y", "w" if weights else None, X_val=place, **beside)
        expect_same(here, there, tmp_path)
    with resources(memory_limit="4GB"):
        there.fit(files, "y", "w" if weights else None, X_val=place, **beside)
    expect_same(here, there, tmp_path)
    assert len(there.validation_score_) > there.n_iter_


SCORED = [
    ("two", "accuracy", "real", {}),
    ("two", "roc_auc", None, {"validation_fraction": None}),
    ("two", "neg_brier_score", "whole", {"early_stopping": False, "quality": "best"}),
    ("three", "roc_auc_ovr", "real", {"class_weight": "balanced"}),
    ("three", "neg_log_loss", "whole", {"validation_fraction": None}),
    ("numbers", "neg_mean_absolute_error", "real", {}),
    ("numbers", "r2", None, {"loss": "huber", "validation_fraction": None}),
    ("numbers", "neg_median_absolute_error", "whole", {}),
]


@pytest.mark.parametrize(("case", "is_given"), choose_cases(SCORED, [False, True]))
def test_scorers_by_name_stop_fits_to_files_as_in_memory(
    case, is_given, tmp_path, monkeypatch, left_nothing
):
    target, scoring, weights, how = case
    monkeypatch.setattr(scored_sample, "_SCORED_ROWS", 333)
    monkeypatch.setattr(scored_sample, "_BLOCK_ROWS", 100)
    rows, others = (
        one if weights else one.drop_columns(["w"])
        for one in (
            make_table(N, target, weights=weights or "real"),
            make_table(333, target, seed=5, weights=weights or "real"),
        )
    )
    how = {**STOPPING, "scoring": scoring, **how}
    here = model_of(target, **how)
    is_last = Watching(7)  # so that rounds are scored where none stops them

    def in_memory(table):
        weight = table["w"].to_numpy() if weights else None
        names = [name for name in ("y", "w") if name in table.column_names]
        return table.drop_columns(names), table["y"].to_numpy(False), weight

    beside = dict(zip(("X_val", "y_val", "sample_weight_val"), in_memory(others), strict=True))
    here.fit(*in_memory(rows), callbacks=[is_last], **(beside if is_given else {}))
    moved, moved_others = (
        one.take(np.random.RandomState(1).permutation(len(one))) for one in (rows, others)
    )
    (tmp_path / "others").mkdir()
    files = write_files(tmp_path, moved)
    places = write_files(tmp_path / "others", moved_others, (0, 100, 100, 333))
    in_files = {"X_val": places, "y_val": "y", "sample_weight_val": "w" if weights else None}
    for block_rows, validation in ((2**19, in_files), (170, in_files), (170, beside)):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        told = Watching(7)
        there = model_of(target, **how)
        judged = validation if is_given else {}
        there.fit(files, "y", "w" if weights else None, callbacks=[told], **judged)
        expect_same(here, there, tmp_path)
        assert told.told == is_last.told
    assert len(np.unique(here.train_score_)) > 2
    is_dealt = how["early_stopping"] and "validation_fraction" not in how
    assert hasattr(here, "validation_score_") == (is_given or is_dealt)


@pytest.mark.parametrize("fraction", [0.2, None])
@pytest.mark.parametrize("column", ["groups", "offset"])
def test_scorers_by_name_take_groups_and_offsets(
    column, fraction, tmp_path, monkeypatch, left_nothing
):
    monkeypatch.setattr(scored_sample, "_SCORED_ROWS", 333)
    rows = make_table(N)
    values = np.random.RandomState(3).randint(0, 90, N).astype(float)
    how = {**STOPPING, "scoring": "neg_log_loss", "validation_fraction": fraction}
    X, y, weight = split_table(rows)
    here = model_of("two", **how).fit(X, y, weight, **{column: values / 90})
    rows = rows.append_column("z", pa.array(values / 90))
    files = write_files(tmp_path, rows.take(np.random.RandomState(1).permutation(N)))
    there = model_of("two", **how).fit(files, "y", "w", **{column: "z"})
    expect_same(here, there, tmp_path)
    assert len(np.unique(here.train_score_)) > 2


def test_scorers_by_name_score_previous_rounds(tmp_path, left_nothing):
    rows = make_table(N).drop_columns(["w"])
    files = write_files(tmp_path, rows.take(np.random.RandomState(1).permutation(N)))
    how = {**STOPPING, "scoring": "roc_auc", "warm_start": True, "n_iter_no_change": 20}
    here, there = (model_of("two", **how) for _ in range(2))
    for n_rounds in (3, 6):
        here.set_params(max_iter=n_rounds).fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
        expect_same(here, there.set_params(max_iter=n_rounds).fit(files, "y"), tmp_path)
    assert len(here.validation_score_) == 7


@pytest.mark.parametrize(("target", "scoring"), [("numbers", "r2"), ("two", "accuracy")])
def test_scorers_of_several_targets_stop_fits_to_files(target, scoring, tmp_path, left_nothing):
    rows = make_table(N, target).drop_columns(["w"])
    second = rows["x0"].to_numpy() > 0
    second = pa.array(second.astype(int) if target == "two" else rows["x0"].to_numpy() ** 2)
    rows = rows.append_column("b", second)
    how = {**STOPPING, "scoring": scoring}
    y = np.column_stack([rows[name].to_numpy() for name in ("y", "b")])
    here = model_of(target, **how).fit(rows.drop_columns(["y", "b"]), y)
    moved = rows.take(np.random.RandomState(1).permutation(N))
    there = model_of(target, **how).fit(write_files(tmp_path, moved), ["y", "b"])
    expect_same(here, there, tmp_path)
    assert len(np.unique(here.validation_score_)) > 2


@pytest.mark.skipif(sys.platform != "linux", reason="memory_limit needs Linux")
@pytest.mark.parametrize("fraction", [0.5, 500, None])
def test_scorers_keep_to_a_limit_of_memory(fraction, tmp_path, left_nothing):
    rows = make_table(N).drop_columns(["w"])
    how = {**STOPPING, "scoring": "roc_auc", "validation_fraction": fraction}
    here = model_of("two", **how).fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
    with resources(memory_limit="4GB"):
        there = model_of("two", **how).fit(write_files(tmp_path, rows), "y")
    expect_same(here, there, tmp_path)


def test_collections_and_data_sets_judge_files_and_the_reverse(tmp_path, left_nothing):
    frames = pytest.importorskip("dask.dataframe")
    rows, others = (
        make_table(N, "two", seed=seed).drop_columns(["w", "colour"]) for seed in (0, 5)
    )
    here = model_of("two", **STOPPING).fit(
        rows.drop_columns(["y"]),
        rows["y"].to_numpy(),
        X_val=others.drop_columns(["y"]),
        y_val=others["y"].to_numpy(),
    )
    data, judging = (
        (
            written(tmp_path, one, f"{name}.parquet"),
            frames.from_pandas(one.to_pandas(), npartitions=3),
            pyarrow.dataset.dataset(one),
        )
        for name, one in (("rows", rows), ("others", others))
    )
    for X, X_val in ((data[0], judging[1]), (data[1], judging[0]), (data[0], judging[2])):
        there = model_of("two", **STOPPING).fit(X, "y", X_val=X_val, y_val="y")
        expect_same(here, there, tmp_path)


def test_few_rows_that_others_judge_are_fitted_in_memory(tmp_path, left_nothing):
    X, y, _ = split_table(make_table(300, "numbers"))
    others, numbers, _ = split_table(make_table(90, "numbers", seed=1))
    how = {**STOPPING, "max_iter": 4}
    here = model_of("numbers", **how).fit(X, y, X_val=others, y_val=numbers)
    file = written(tmp_path, make_table(300, "numbers").drop_columns(["w"]))
    there = model_of("numbers", **how).fit(file, "y", X_val=others, y_val=numbers)
    assert here._n_first_trees > 0
    expect_same(here, there, tmp_path)
    judges = written(
        tmp_path, make_table(90, "numbers", seed=1).drop_columns(["w"]), "judges.parquet"
    )
    there = model_of("numbers", **how).fit(file, "y", X_val=judges, y_val="y")
    expect_same(here, there, tmp_path)


def test_early_stopping_is_chosen_by_the_number_of_rows(monkeypatch):
    X, y, weight = split_table(make_table(N, "two", weights="whole"))
    monkeypatch.setattr(evaluation, "_MANY_ROWS", (N + (weight > 0).sum()) // 2)
    how = {**STOPPING, "early_stopping": "auto"}
    for of_rows in (None, weight):
        here = model_of("two", **how).fit(X, y, of_rows)
        there = fit_in_chunks(model_of("two", **how), X, y, of_rows, [0, 700, N])
        expect_same(here, there)
        assert hasattr(there, "validation_score_") == (of_rows is None)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"validation_fraction": N}, "the resulting train set will be empty"),
        ({"validation_fraction": N - 1}, "gives 1499 validation and 1 training rows"),
    ],
)
def test_rows_that_cannot_be_held_out_are_refused(how, message, tmp_path, left_nothing):
    with pytest.raises(ValueError, match=message):
        model_of("two", early_stopping=True, **how).fit(written(tmp_path), "y")


def test_a_class_of_one_row_is_not_held_out(tmp_path, left_nothing):
    rows = make_table(N, "two").drop_columns(["w"])
    y = np.append(2, rows["y"].to_numpy()[1:])
    file = written(tmp_path, rows.set_column(rows.column_names.index("y"), "y", pa.array(y)))
    with pytest.raises(ValueError, match="least populated class in y has only 1 member"):
        model_of("two", early_stopping=True).fit(file, "y")


def test_rows_of_large_whole_weights_are_held_out_as_in_memory(tmp_path, left_nothing):
    rows = make_table(N, "two", weights="whole")
    place = rows.column_names.index("w")
    many = rows.set_column(place, "w", pa.array(20 + rows["w"].to_numpy()))
    here = model_of("two", **STOPPING).fit(*split_table(many))
    there = model_of("two", **STOPPING).fit(written(tmp_path, many), "y", "w")
    expect_same(here, there, tmp_path)


def test_threads_change_nothing():
    rows = make_table(N, "three")
    ends = [0, 10, 300, 301, 900, N]
    made = [fit_in_chunks(model_of("three"), *split_table(rows), ends, n) for n in (1, 2, 5)]
    expect_same(made[0], made[1])
    expect_same(made[0], made[2])


@pytest.mark.parametrize("target", ["two", "numbers"])
def test_members_of_the_best_quality(target, tmp_path):
    rows = make_table(N, target).drop_columns(["w"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    y = rows["y"].to_numpy()
    how = {"quality": "best", "max_iter": 2}
    here = model_of(target, **how).fit(rows.drop_columns(["y"]), y)
    expect_same(here, model_of(target, **how).fit(str(tmp_path), "y"), tmp_path)


@pytest.mark.parametrize("spare", [8.0, -300.0])
def test_many_rows_have_edges_of_a_sample(spare, tmp_path, monkeypatch, left_nothing):
    """Where too few rows are kept at first, as many are equal, they are asked for again."""
    looks, before = [], LocalExecutor.scan
    monkeypatch.setattr(
        LocalExecutor, "scan", lambda *a, **how: looks.append(a[1]) or before(*a, **how)
    )
    monkeypatch.setattr(binning, "_SPARE", spare)
    n = 2**17 + 5000
    rs = np.random.RandomState(0)
    X = rs.normal(size=(n, 2)).astype(np.float32)
    rows = pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] > X[:, 1]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", 40_000)
    here = model_of("two", max_iter=2).fit(rows.drop_columns(["y"]), rows["y"].to_numpy(False))
    expect_same(here, model_of("two", max_iter=2).fit(tmp_path, "y"), tmp_path)
    assert looks.count(_sketch_chunk) == (1 if spare > 0 else 2)


def test_who_watches_changes_nothing(tmp_path, capsys):
    rows = make_table(N).drop_columns(["w"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    shown = model_of("two", verbose=1).fit(tmp_path, "y")
    expect_same(shown, model_of("two").fit(tmp_path, "y"))
    capsys.readouterr()


def test_few_rows_are_fitted_in_memory_where_this_does_more(tmp_path, left_nothing):
    rows = make_table(300, "numbers").drop_columns(["w"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    X, y = rows.drop_columns(["y"]), rows["y"].to_numpy()
    for how in ({"max_iter": 3}, {"max_iter": "auto", "quality": "default"}):
        here = model_of("numbers", **how).fit(X, y)
        assert here._n_first_trees > 0
        expect_same(here, model_of("numbers", **how).fit(tmp_path, "y"), tmp_path)


@pytest.mark.parametrize("form", ["csv", "tsv", "arrow", "feather", "dataset", "list", "csv.gz"])
def test_forms_of_files(form, tmp_path, left_nothing):
    rows = make_table(N, "three").drop_columns(["w"])
    here = model_of("three").fit(rows.drop_columns(["y"]), rows["y"].to_numpy(False))
    given = tmp_path / f"rows.{form}"
    if form in ("csv", "tsv", "csv.gz"):
        from pyarrow import csv

        with pa.output_stream(given, "gzip" if form == "csv.gz" else None) as file:
            csv.write_csv(rows, file, csv.WriteOptions(delimiter="\t" if form == "tsv" else ","))
    elif form == "arrow":
        with pa.OSFile(str(given), "wb") as file, pa.ipc.new_file(file, rows.schema) as to:
            to.write_table(rows, max_chunksize=200)
    elif form == "feather":
        pa.feather.write_feather(rows, str(given))
    else:
        files = write_files(tmp_path, rows)
        given = pa.dataset.dataset(files) if form == "dataset" else [str(one) for one in files]
    expect_same(here, model_of("three").fit(given, "y"), tmp_path)


def test_types_of_files_are_joined(tmp_path, left_nothing):
    rows = make_table(N, "two").drop_columns(["w"])
    x = pa.array(np.arange(N) % 7)
    rows = rows.set_column(0, "x0", x.cast(pa.int64()))
    first = rows.slice(0, 700).set_column(0, "x0", x.slice(0, 700).cast(pa.int8()))
    names = rows.column_names
    colour = rows.slice(700)["colour"].combine_chunks().dictionary_encode()
    second = rows.slice(700).set_column(names.index("colour"), "colour", colour)
    second = second.select(names[::-1])
    pq.write_table(first, tmp_path / "0.parquet")
    pq.write_table(second, tmp_path / "1.parquet")
    here = model_of("two").fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
    expect_same(here, model_of("two").fit(tmp_path, "y"), tmp_path)


# -- warm starts


def as_judges(rows):
    X, y, weight = split_table(rows)
    return {"X_val": X, "y_val": y, "sample_weight_val": weight}


WARM = [
    ("two", {"class_weight": "balanced", "verbose": 1}, False),
    ("three", {"early_stopping": True, "n_iter_no_change": 30, "learning_rate": 0.5}, False),
    (
        "numbers",
        {"early_stopping": True, "n_iter_no_change": 2, "validation_fraction": None},
        False,
    ),
    ("numbers", {"loss": "huber", "max_thresholds": 8, "subsample": 0.5}, True),
    ("numbers", {"loss": "quantile", "quantile": [0.2, 0.9], "early_stopping": True}, True),
    ("numbers", {"loss": LOG_COSH}, True),
]


@pytest.mark.parametrize(("target", "how", "is_judged"), WARM)
def test_warm_starts_add_the_same_rounds(
    target, how, is_judged, tmp_path, left_nothing, monkeypatch
):
    monkeypatch.setattr(code_trees, "CODES_PER_BLOCK", 1111)
    rows = make_table(N, target)
    judges = as_judges(make_table(300, target, seed=5)) if is_judged else {}
    weighed = target == "two"
    X, y, weight = split_table(rows, weighed)
    names = ("y", "w" if weighed else None)
    shuffled = rows.take(np.random.RandomState(1).permutation(N))
    for number, one in enumerate([rows, shuffled]):
        (tmp_path / str(number)).mkdir()
        write_files(tmp_path / str(number), one if weighed else one.drop_columns(["w"]))
    models = [model_of(target, warm_start=True, **how) for _ in range(3)]
    for n_rounds in (4, 9, 9):
        here, there, mixed = (one.set_params(max_iter=n_rounds) for one in models)
        here.fit(X, y, weight, **judges)
        there.fit(tmp_path / str(n_rounds % 2), *names, **judges)
        mixed.fit(*((X, y, weight) if n_rounds == 4 else (tmp_path / "1", *names)), **judges)
        expect_same(here, there, tmp_path)
        expect_same(here, mixed, tmp_path)
    whole = model_of(target, max_iter=9, **how).fit(tmp_path / "0", *names, **judges)
    if whole.n_iter_ == here.n_iter_:
        assert_same(whole.trees_.value, there.trees_.value, "value")
        assert_same(whole.feature_importances_, there.feature_importances_, "importances")
    if how.get("loss") is LOG_COSH:  # model files hold no functions
        return
    restored = load(tmp_path / "one.certree").fit(tmp_path / "1", *names, **judges)
    expect_same(here.fit(X, y, weight, **judges), restored, tmp_path)


@pytest.mark.parametrize("target", ["two", "numbers"])
def test_warm_starts_take_dates_several_targets_and_callbacks(target, tmp_path, left_nothing):
    rows = add_targets(make_table(N, target), target)
    day = np.datetime64("2020-02-27") + np.random.RandomState(0).randint(0, 900, N)
    rows = rows.append_column("day", pa.array(day))
    names = ["y", "b", "c"]
    X, weight = rows.drop_columns([*names, "w"]), rows["w"].to_numpy()
    y = stack_columns([rows[name].to_numpy(zero_copy_only=False) for name in names])
    (tmp_path / "rows").mkdir()
    write_files(tmp_path / "rows", rows.take(np.random.RandomState(1).permutation(N)))
    here, there = (model_of(target, warm_start=True) for _ in range(2))
    for n_rounds in (3, 7):
        found, expected = [], []
        here.set_params(max_iter=n_rounds).fit(X, y, weight, callbacks=[expected.append])
        there.set_params(max_iter=n_rounds)
        there.fit(tmp_path / "rows", names, "w", callbacks=[found.append])
        expect_same(here, there, tmp_path)
        assert_same(expected, found, "iterations")
        assert len(found[-1].train_score) == n_rounds + 1


def test_warm_starts_repeat_rounds_on_statistics_of_categories(tmp_path, left_nothing):
    rows = add_towns(make_table(N, "three").drop_columns(["w"]), 300)
    X = rows.drop_columns(["y"])
    y = rows["y"].to_numpy(zero_copy_only=False)
    files = write_files(tmp_path, rows)
    here, there = (model_of("three", warm_start=True) for _ in range(2))
    for n_rounds in (3, 6):
        here.set_params(max_iter=n_rounds).fit(X, y)
        expect_same(here, there.set_params(max_iter=n_rounds).fit(files, "y"), tmp_path)


def test_small_tables_are_read_for_warm_starts(tmp_path, left_nothing):
    rows = make_table(400, "numbers").drop_columns(["w"])
    X, y = rows.drop_columns(["y"]), rows["y"].to_numpy()
    files = write_files(tmp_path, rows, (0, 100, 400))
    here, there = (model_of("numbers", warm_start=True) for _ in range(2))
    for n_rounds in (3, 6):
        here.set_params(max_iter=n_rounds).fit(X, y)
        expect_same(here, there.set_params(max_iter=n_rounds).fit(files, "y"), tmp_path)


def test_blocks_of_a_warm_start_get_no_trees_and_hashes(monkeypatch):
    X, y, _ = split_table(make_table(N, "two"), weighed=False)
    model, readers = model_of("two", warm_start=True).fit(X, y), []

    def record(before, self, *given, **how):
        readers.extend(one for one in given if hasattr(one, "get_params"))
        return before(self, *given, **how)

    for name in ("scan", "make_blocks"):
        monkeypatch.setattr(
            LocalExecutor, name, partialmethod(partial(record, getattr(LocalExecutor, name)))
        )
    parts = LocalExecutor(ChunkedRows(X, y, None, [0, 700, N]), None, 1)
    fit_boosting_out_of_core(
        model.set_params(max_iter=7), parts, options=RoundOptions(model.trees_)
    )
    assert len(readers) >= 3
    for reader in readers:
        assert not {"trees_", "_sample_counts"} & {
            name for name, value in vars(reader).items() if value is not None
        }
    assert model.n_iter_ == 7


def test_a_warm_start_refuses_other_tables(tmp_path, left_nothing):
    rows = make_table(N, "three").drop_columns(["w"])
    model = model_of("three", warm_start=True).fit(written(tmp_path, rows), "y")
    state = dict(vars(model))

    def expect_refused(message, others, **how):
        with pytest.raises(ValueError, match=message):
            model.set_params(**how).fit(written(tmp_path, others), "y")
        model.set_params(**{name: state[name] for name in how})
        assert all(vars(model)[name] is state[name] for name in state)

    def replace_column(name, values):
        return rows.set_column(rows.column_names.index(name), name, pa.array(values))

    expect_refused("max_iter must be at least n_iter_=5", rows, max_iter=4)
    expect_refused("learning_rate must be 'auto', as in the fit", rows, learning_rate=0.3)
    expect_refused('quality must be "fast" or "default"', rows, quality="best")
    renamed = [None if one is None else f"_{one}" for one in rows["colour"].to_pylist()]
    expect_refused("got rows with another categories_", replace_column("colour", renamed))
    moved = replace_column("x0", 1.01 * rows["x0"].to_numpy()).drop_columns(["colour"])
    of_numbers = model_of("three", warm_start=True)
    of_numbers.fit(written(tmp_path, rows.drop_columns(["colour"])), "y")
    with pytest.raises(ValueError, match="got rows with other bins of feature 'x0'"):
        of_numbers.set_params(max_iter=9).fit(written(tmp_path, moved), "y")
    X, y, _ = split_table(make_table(N, "three"), weighed=False)
    with_offset = model_of("three", warm_start=True).fit(X, y, offset=np.zeros((N, 3)))
    with pytest.raises(ValueError, match="offset must be given with warm_start=True"):
        with_offset.fit(written(tmp_path, rows), "y")


def test_a_warm_start_takes_other_rows_in_the_same_bins(tmp_path, left_nothing):
    rows = make_table(N, "two").drop_columns(["w"])
    x = np.floor(np.abs(10 * rows["x0"].to_numpy()))
    rows = pa.table({"x": x, "z": np.arange(N) % 7, "y": rows["y"]})
    others = rows.take(np.append(np.arange(N), np.arange(0, N, 3)))
    here, there = (model_of("two", warm_start=True) for _ in range(2))
    for n_rounds, some in ((3, rows), (6, others)):
        X, y = some.drop_columns(["y"]), some["y"].to_numpy()
        here.set_params(max_iter=n_rounds).fit(X, y)
        there.set_params(max_iter=n_rounds).fit(written(tmp_path, some), "y")
        expect_same(here, there, tmp_path)


# -- what is refused


def written(folder, rows=None, name="rows.parquet"):
    pq.write_table(make_table(N).drop_columns(["w"]) if rows is None else rows, folder / name)
    return folder / name


REFUSED = [
    ({"early_stopping": True, "scoring": None}, {}, "name of a scorer of scikit-learn.*got None"),
    (
        {"early_stopping": True, "scoring": make_scorer(accuracy_score)},
        {},
        r"name of a scorer of scikit-learn.*got make_scorer\(accuracy_score",
    ),
    ({"early_stopping": True, "scoring": "accurate"}, {}, "scoring must be .*got 'accurate'"),
    ({}, {"y_val": [0, 1]}, "X_val and y_val must be given together, but X_val is None"),
    ({}, {"X_val": "some.parquet"}, "X_val and y_val must be given together, but y_val is None"),
    (
        {},
        {"X_val": make_table(9).select(["x0", "x1"]), "y_val": [0] * 9},
        "feature names should match",
    ),
]


@pytest.mark.parametrize(("how", "beside", "name"), REFUSED)
def test_what_takes_rows_in_memory_is_refused_by_name(how, beside, name, tmp_path, left_nothing):
    with pytest.raises(ValueError, match=name):
        model_of("two", **how).fit(written(tmp_path), "y", **beside)


@pytest.mark.parametrize(
    "model",
    [CertifiedBoostedTreesClassifier(), CertifiedForestClassifier(), BoostedTreesRanker()],
)
def test_other_estimators_are_refused(model, tmp_path):
    how = {"qid": np.zeros(2)} if isinstance(model, BoostedTreesRanker) else {}
    with pytest.raises(
        TypeError, match="boosted trees and forests without a certificate take files"
    ):
        model.fit(written(tmp_path), [0, 1], **how)


def test_wrong_columns_are_named(tmp_path, left_nothing):
    file = written(tmp_path)
    for y, weight, message in (
        ("z", None, "no column 'z'"),
        ("y", "v", "sample_weight must name columns .*no column 'v'"),
    ):
        with pytest.raises(ValueError, match=message):
            model_of("two").fit(file, y, weight)
    with pytest.raises(
        TypeError, match="y must be the name of a column if X is a file, got ndarray"
    ):
        model_of("two").fit(file, np.zeros(N))


def test_missing_columns_and_types_name_their_file(tmp_path, left_nothing):
    rows = make_table(N).drop_columns(["w"])
    written(tmp_path, rows, "a.parquet")
    other = written(tmp_path, rows.drop_columns(["x2"]), "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has no column 'x2'"):
        model_of("two").fit(tmp_path, "y")
    words = pa.array(["word"] * N)
    written(tmp_path, rows.set_column(rows.column_names.index("x2"), "x2", words), other.name)
    with pytest.raises(ValueError, match=r"'x2' of .*b\.parquet holds string.*double"):
        model_of("two").fit(tmp_path, "y")


def test_bad_rows_name_their_place(tmp_path, left_nothing):
    rows = make_table(N).drop_columns(["w"])
    y = rows["y"].to_pylist()
    y[-1] = None
    file = written(tmp_path, rows.set_column(rows.column_names.index("y"), "y", pa.array(y)))
    with pytest.raises(
        ValueError, match=r"'y' must have no missing values, got 1 in .*rows\.parquet"
    ):
        model_of("two").fit(file, "y")
    weight = np.ones(N)
    weight[7] = -1
    file = written(tmp_path, rows.append_column("w", pa.array(weight)))
    with pytest.raises(ValueError, match="Negative") as caught:
        model_of("two").fit(file, "y", "w")
    assert any("rows.parquet" in note for note in caught.value.__notes__)


def test_a_column_that_the_fiftieth_file_lacks_is_named(tmp_path, left_nothing):
    rows = make_table(N).drop_columns(["w"])
    for number in range(50):
        written(tmp_path, rows.slice(30 * number, 30), f"{number:02}.parquet")
    written(tmp_path, rows.slice(0, 9).drop_columns(["x3"]), "50.parquet")
    with pytest.raises(
        ValueError, match=r"50\.parquet has no column 'x3', which .*00\.parquet has"
    ):
        model_of("two").fit(tmp_path, "y")


def test_a_folder_that_must_not_be_read_is_named(tmp_path, monkeypatch):
    written(tmp_path)

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(table_files.os, "listdir", forbidden)
    with pytest.raises(PermissionError, match="cannot be read: Permission denied") as caught:
        model_of("two").fit(tmp_path, "y")
    assert caught.value.filename == str(tmp_path)


def test_places_without_files(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("a,y\n1,2\n")
    (tmp_path / "broken.parquet").write_bytes(b"no table")
    model = model_of("two")
    with pytest.raises(ValueError, match=r"the folder .*empty holds no"):
        model.fit(tmp_path / "empty", "y")
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        model.fit(tmp_path / "nowhere", "y")
    with pytest.raises(ValueError, match=r"must end in \.csv.*text\.txt"):
        model.fit(tmp_path / "text.txt", "y")
    with pytest.raises(ValueError, match=r"broken\.parquet could not be read"):
        model.fit(tmp_path / "broken.parquet", "y")
    assert not hasattr(model, "trees_")


@pytest.mark.parametrize("change", ["rewritten", "removed"])
def test_files_that_change_between_passes(change, tmp_path, monkeypatch, left_nothing):
    file = written(tmp_path)
    model = model_of("two").fit(file, "y")
    before = dict(vars(model))
    look = executors.LocalExecutor.scan

    def looked(self, *given, **how):
        told = look(self, *given, **how)
        file.unlink()
        if change == "rewritten":
            written(tmp_path, make_table(N, seed=1).drop_columns(["w"]))
        return told

    monkeypatch.setattr(executors.LocalExecutor, "scan", looked)
    wanted = "was removed" if change == "removed" else "has changed"
    with pytest.raises((ValueError, FileNotFoundError), match=rf"rows\.parquet {wanted}"):
        model.fit(file, "y")
    assert vars(model) == before


@pytest.mark.parametrize(
    ("name", "call"), [("replace_blocks", 1), ("replace_blocks", 2), ("run_on_ranks", 2)]
)
def test_a_fit_that_is_stopped_leaves_the_model_as_it_was(
    name, call, tmp_path, monkeypatch, left_nothing
):
    file = written(tmp_path)
    model = model_of("two").fit(file, "y")
    before = dict(vars(model))
    asked, calls = getattr(executors.LocalExecutor, name), []

    def counted(self, *given, **how):
        calls.append(given)
        if len(calls) == call and name == "replace_blocks":
            raise KeyboardInterrupt
        if len(calls) == call:
            _core.interrupt_at(3, 1000)  # in the rounds
        return asked(self, *given, **how)

    monkeypatch.setattr(executors.LocalExecutor, name, counted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(file, "y")
    assert vars(model) == before
    assert _core.set_scratch_folder("") == ""


@pytest.mark.parametrize("how", [{}, {"max_thresholds": 8}, {"early_stopping": True, "tol": 0.0}])
@pytest.mark.parametrize("target", ["two", "three", "numbers"])
def test_rows_in_mapped_arrays_mean_the_same(target, how, tmp_path, monkeypatch, left_nothing):
    rows = make_table(N, target)
    here = model_of(target, **how).fit(*split_table(rows))
    write_files(tmp_path, rows)
    monkeypatch.setattr(joined_rows, "_MOST_BYTES_IN_MEMORY", 0)
    expect_same(here, model_of(target, **how).fit(tmp_path, "y", sample_weight="w"), tmp_path)


def test_arrays_of_the_core_lie_in_files_too(tmp_path, monkeypatch, left_nothing):
    """150,000 rows have arrays of more than a mebibyte; they are anonymous where memory is enough."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150_000, 2))
    rows = pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] * X[:, 1]})
    here = model_of("numbers").fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
    write_files(tmp_path, rows, (0, 70_000, 150_000))
    run, maps = out_of_core_boosting.start_rounds, []

    def noted(*given):
        started = run(*given)
        # A grower's arrays are there while it works: look from the first round on.
        monkeypatch.setattr(rounds, "run_rounds", watched(rounds.run_rounds))
        return started

    def watched(core):
        def call(*given):
            n_before = count_mapped_files(left_nothing)
            looks = []
            stop = threading.Event()

            def look():
                while not stop.is_set():
                    looks.append(count_mapped_files(left_nothing))

            thread = threading.Thread(target=look)
            thread.start()
            made = core(*given)
            stop.set()
            thread.join()
            maps.append((n_before, max(looks)))
            return made

        return call

    monkeypatch.setattr(joined_rows, "_MOST_BYTES_IN_MEMORY", 0)
    monkeypatch.setattr(out_of_core_boosting, "start_rounds", noted)
    expect_same(here, model_of("numbers").fit(tmp_path, "y"), tmp_path)
    if sys.platform == "linux":
        assert all(during > before for before, during in maps)
    assert not any(left_nothing.iterdir())


def count_mapped_files(folder):
    """Count the deleted files in a folder that this process has mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines() if sys.platform == "linux" else ()
    return sum(str(folder) in line and line.endswith("(deleted)") for line in lines)


@pytest.mark.skipif(sys.platform != "linux", reason="large arrays are files on Linux alone")
def test_arrays_of_the_core_name_the_folder_that_cannot_hold_them(tmp_path):
    before = _core.set_scratch_folder(str(tmp_path / "none"))
    try:
        with pytest.raises(OSError, match=r"bytes of scratch are needed .*TMPDIR.*none"):
            model_of("numbers").fit(np.arange(300_000.0)[:, None], np.arange(300_000.0))
    finally:
        assert _core.set_scratch_folder(before) == str(tmp_path / "none")


def test_a_full_disk_is_said(tmp_path, monkeypatch, left_nothing):
    file = written(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scratch.os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"needs [\d,]+ more bytes .No space left.*TMPDIR"):
        model_of("two").fit(file, "y")


@pytest.mark.parametrize("loss", [None, "quantile", "tweedie", "huber"])
def test_passes_over_the_rows_are_few(loss, tmp_path, monkeypatch):
    """All passes over the blocks are before the first round."""
    rows = make_table(N, "numbers" if loss else "two").drop_columns(["w"])
    rows = with_positive(rows, "gamma") if loss else rows
    calls = []

    def counted(name):
        before = getattr(executors.LocalExecutor, name)
        return lambda *given, **how: calls.append(name) or before(*given, **how)

    for name in ("replace_blocks", "reduce"):
        monkeypatch.setattr(executors.LocalExecutor, name, counted(name))
    how = {"loss": loss} if loss else {}
    model_of("numbers" if loss else "two", max_iter=4, **how).fit(written(tmp_path, rows), "y")
    # Keys, hashes that are read and forgotten, digests, a quantile or classes.
    assert len(calls) <= 8
