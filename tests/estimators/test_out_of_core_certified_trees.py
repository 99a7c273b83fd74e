"""The same certified tree, bit by bit, of rows in memory and in files, however these are divided.

Certificates are not simulated here: their numbers are those of fits in memory.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, dataset, feather
from sklearn.base import clone

from certree import Cart, CertifiedTreeClassifier, CertifiedTreeRegressor, PACBayesPosteriors
from certree.certificates.model_selection import PILOT
from certree.estimators.certified_classifier import compute_learning_curve
from certree.estimators.out_of_core_certified_trees import OutOfCoreCertifiedFit
from certree.interface.fitted_state import atomic_fit
from certree.out_of_core import resources, sources
from certree.out_of_core.executors import LocalExecutor
from certree.out_of_core.memory_limit import BlockSizes
from certree.rows.split import TrainCalibrationSplitter
from same_models import (
    ChunkedRows,
    assert_same,
    assert_same_fields,
    expect_same_tree,
    make_groups,
    make_table,
    split_table,
    write_files,
)

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tells no memory")
N = 900
ENDS = (0, 400, 400, N - 1, N)


def model_of(target, **how):
    given = {"random_state": 0, "duplicates": "genuine", **how}
    made = CertifiedTreeRegressor if target == "numbers" else CertifiedTreeClassifier
    return made(Cart(max_bins=255, max_leaf_nodes=60), **given)


@atomic_fit
def fit_in_chunks(model, X, y, weight, ends, n_threads=1, compared_rows=2**22, groups=None, **how):
    parts = LocalExecutor(ChunkedRows(X, y, weight, ends, groups), None, n_threads)
    parts.block_sizes = BlockSizes(n_threads, compared_rows=compared_rows)
    model._fit_blocks(parts, **how)
    return model


def expect_same_certificates(model, other):
    assert model.certificates_ == other.certificates_
    assert model.certificate_ == other.certificate_
    assert model.full_certificate_ == other.full_certificate_


def expect_same_fit(model, other, folder, *, copied=False):
    """Two certified trees have the same bits in all that a fit sets, and the same file."""
    expect_same_tree(model, other, folder)
    expect_same_certificates(model, other)
    if isinstance(model, CertifiedTreeRegressor):
        names, pair = ("leaf", "y", "weight"), [one.held_out_ for one in (model, other)]
    else:
        names, pair = ("given", "leaf", "y"), [one.calibration_ for one in (model, other)]
        assert pair[0].n_given == pair[1].n_given
        assert_same(model.sample_hashes_, other.sample_hashes_, "hashes")
        for side in ("grow", "weigh"):
            held = (getattr(one.model_selection_.held, side) for one in (model, other))
            assert_same(*held, side)
    for name in names:
        assert_same(*(getattr(one, name) for one in pair), name)
    assert pair[0].repeats == pair[1].repeats
    assert pair[0].repeats > 0 or not copied


WAYS = [
    ("two", {}),
    ("three", {"train_size": 0.4, "vote": "majority", "class_weight": "balanced"}),
    ("three", {"posteriors": "cv", "selection": "vote", "max_leaf_nodes": 6}),
    ("two", {"posteriors": PACBayesPosteriors(lambda_error=1.0, lambda_penalty=0.1)}),
    ("numbers", {}),
    ("numbers", {"max_leaf_nodes": 6, "widths": "one", "train_size": 0.3}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "how"), WAYS)
def test_files_and_memory_have_the_same_fit(target, how, tmp_path, monkeypatch, left_nothing):
    rows = make_table(N, target).drop_columns(["w"])
    files = write_files(tmp_path, rows, ENDS)
    X, y = rows.drop_columns(["y"]), rows["y"].to_numpy(zero_copy_only=False)
    here = model_of(target, **how).fit(X, y)
    for block_rows in (2**19, 170, 90):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of(target, **how).fit(files, "y")
        expect_same_fit(here, there, tmp_path, copied=target != "numbers")


def repeating(n=1600, n_alike=22, *, numbers=False, seed=0, as_float32=False):
    """Rows of which so many are alike that those which certify count as the worst case."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + rng.normal(size=n)
    y = y if numbers else np.array(["no", "yes"])[(y > 0).astype(int)]
    own, other = rng.permutation(n)[: 2 * n_alike].reshape(2, -1)
    X[own], y[own] = X[other], y[other]
    if as_float32:
        X[own] = X[own].astype(np.float32)
    return X, y


@pytest.mark.parametrize(("grouped", "as_float32"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("target", ["two", "numbers"])
def test_repeats_that_count_as_the_worst_case_are_those_of_rows_in_memory(
    target, grouped, as_float32, tmp_path
):
    X, y = repeating(numbers=target == "numbers", as_float32=as_float32)
    groups = np.random.default_rng(1).integers(0, 900, len(y)) if grouped else None
    model = model_of(target, duplicates="auto", train_size=0.3)
    here = clone(model).fit(X, y, groups=groups)
    assert here.certificate_.worst > 0
    for compared_rows in (2**22, 300):
        ends = [0, 1, 1, 700, len(y)]
        there = fit_in_chunks(
            clone(model), X, y, None, ends, compared_rows=compared_rows, groups=groups
        )
        expect_same_fit(here, there, tmp_path)
        pair = [one.held_out_ if target == "numbers" else one.calibration_ for one in (here, there)]
        assert_same(*(one.is_worst for one in pair), "is_worst")
    X, y = repeating(n_alike=80, numbers=target == "numbers")
    with pytest.raises(ValueError, match=r"rows that certify repeat other rows.*same customer"):
        fit_in_chunks(clone(model), X, y, None, ends)


WEIGHED = [
    ("three", {}),
    ("three", {"class_weight": {"one": 0.5, "third": 0}, "max_leaf_nodes": 5}),
    ("two", {"class_weight": "balanced"}),
    ("numbers", {}),
    ("numbers", {"max_leaf_nodes": 5, "widths": "leaf"}),
]


@pytest.mark.parametrize("weights", ["real", "whole"])
@pytest.mark.parametrize(("target", "how"), WEIGHED)
def test_weights_mean_the_same(target, how, weights, tmp_path):
    X, y, weight = split_table(make_table(N, target, weights=weights))
    here = model_of(target, **how).fit(X, y, weight)
    there = fit_in_chunks(model_of(target, **how), X, y, weight, [0, 1, 1, 600, N], 2)
    expect_same_fit(here, there, tmp_path)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    target=st.sampled_from(["two", "three", "numbers"]),
    ends=st.lists(st.integers(0, 400), max_size=6),
    weights=st.sampled_from(["real", "whole", None]),
    leaves=st.one_of(st.none(), st.integers(1, 9)),
    compared_rows=st.sampled_from([100, 2**22]),
    groups=st.sampled_from([None, "text", "ints"]),
)
def test_no_order_of_the_rows_changes_a_number(
    seed, target, ends, weights, leaves, compared_rows, groups
):
    rows = make_table(400, target, seed % 1000, weights or "real")
    order = np.random.RandomState(seed).permutation(400)
    if groups is not None:
        groups, rows = make_groups(rows, groups, seed=seed % 1000)
        rows = rows.drop_columns(["g"])
    X, y, weight = split_table(rows, weights is not None)
    moved = X.take(order), y[order], None if weight is None else weight[order]
    here, there = (model_of(target, max_leaf_nodes=leaves, n_jobs=1) for _ in range(2))
    how = {"compared_rows": compared_rows, "groups": None if groups is None else groups[order]}
    there = fit_in_chunks(there, *moved, sorted([0, 400, *ends]), **how)
    expect_same_certificates(here.fit(X, y, weight, groups), there)
    for name in ("tree_", "stats_", "weights_", "vote_"):
        assert_same_fields(getattr(here, name), getattr(there, name), name)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weights", ["real", "whole", None])
def test_learning_curves_are_the_same(weights, grouped):
    groups, rows = make_groups(make_table(N, "three", weights=weights or "real"), "text")
    groups = groups if grouped else None
    X, y, weight = split_table(rows.drop_columns(["g"]), weights is not None)
    here, there = model_of("three"), model_of("three")
    deal = TrainCalibrationSplitter(PILOT, np.random.RandomState(0), by_content=True)
    training = here._prepare_training(X, y, weight, groups=groups, row_splitter=deal)
    source = ChunkedRows(X, y, weight, [0, 400, N], groups)
    dealt = OutOfCoreCertifiedFit.from_executor(there, LocalExecutor(source, None, 1))
    told, sides = dealt.grow_pilot(PILOT, np.random.RandomState(0), np.random.RandomState(0))
    curve = here._compute_pilot_curve(training, np.random.RandomState(0))
    assert compute_learning_curve(*told) == curve
    assert curve[0].share < curve[1].share < 1.1 * PILOT
    assert sides.n_units == training.split.n_units
    assert grouped == (sides.n_units in (59, 60))


GROUPED = [
    ("two", {}, "text", None),
    ("two", {"class_weight": {0: 0.5, 1: 2.0}, "max_leaf_nodes": 6}, "ints", "whole"),
    ("three", {"class_weight": "balanced"}, "ints", "real"),
    ("numbers", {}, "ints", "whole"),
    ("numbers", {"max_leaf_nodes": 6, "widths": "one"}, "text", "real"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "how", "kind", "weights"), GROUPED)
def test_groups_grow_or_certify_as_in_memory(
    target, how, kind, weights, tmp_path, monkeypatch, left_nothing
):
    groups, rows = make_groups(make_table(N, target, weights=weights or "real"), kind)
    files = write_files(tmp_path, rows if weights else rows.drop_columns(["w"]), ENDS)
    X, y, weight = split_table(rows.drop_columns(["g"]), weights is not None)
    here = model_of(target, **how).fit(X, y, weight, groups)
    for block_rows in (2**19, 500, 170):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of(target, **how).fit(files, "y", "w" if weights else None, groups="g")
        expect_same_fit(here, there, tmp_path)
    assert there.certificate_.grouped
    assert [*there.feature_names_in_] == X.column_names
    if target != "numbers":
        own = np.unique(groups[there.calibration_.given], return_counts=True)[1]
        assert there.certificate_.n == len(own) < 60
        np.testing.assert_array_equal(np.unique(1 / there.calibration_.weight), np.unique(own))


def dictionary(column):
    """The same values, which stand in another order in their dictionary."""
    words = column.unique().to_pylist()[::-1]
    places = [words.index(one) for one in column.to_pylist()]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(words))


FORMS = [
    *(("csv", kind) for kind in ("ints", "text")),
    *(("mixed", kind) for kind in ("ints", "text")),
    *(("arrow", "text"), ("dictionary", "text"), ("dataset", "ints")),
]


@pytest.mark.parametrize(("form", "kind"), FORMS)
def test_every_format_has_the_same_groups(form, kind, tmp_path):
    groups, rows = make_groups(make_table(N), kind)
    if kind == "text":  # of CSV others are numbers
        groups = np.array([f"no {one}" for one in groups], dtype=object)
        rows = rows.set_column(rows.column_names.index("g"), "g", pa.array(groups))
    X, y, weight = split_table(rows.drop_columns(["g"]))
    here = model_of("two", train_size=0.5).fit(X, y, weight, groups)
    (tmp_path / "rows").mkdir()
    own = rows["g"].combine_chunks()
    if form == "dictionary":
        rows = rows.set_column(rows.column_names.index("g"), "g", dictionary(own))
    for number, (begin, end) in enumerate([(500, N), (0, 200), (200, 200), (200, 500)]):
        some, place = rows.slice(begin, end - begin), tmp_path / "rows" / f"{number}.{form}"
        if form == "mixed" and number == 1:
            other = own.cast(pa.int16()) if kind == "ints" else dictionary(own)
            at = rows.column_names.index("g")
            some = rows.set_column(at, "g", other).slice(begin, end - begin)
        if form == "csv":
            csv.write_csv(some, place)
        elif form == "arrow":
            feather.write_feather(some, place, compression="uncompressed")
        else:
            pq.write_table(some, place.with_suffix(".parquet"))
    folder = tmp_path / "rows"
    given = dataset.dataset(folder) if form == "dataset" else folder
    there = model_of("two", train_size=0.5).fit(given, "y", "w", groups="g")
    expect_same_certificates(here, there)
    for name in ("tree_", "stats_", "weights_", "vote_"):
        assert_same_fields(getattr(here, name), getattr(there, name), name)


def test_few_rows_in_groups_are_fitted_in_memory(tmp_path):
    groups, rows = make_groups(make_table(100), "text", 30)
    pq.write_table(rows, tmp_path / "rows.parquet")
    here = model_of("two").fit(*split_table(rows.drop_columns(["g"])), groups)
    there = model_of("two").fit(tmp_path / "rows.parquet", "y", "w", groups="g")
    expect_same_fit(here, there, tmp_path)


def message(fit, *given, **how):
    with pytest.raises((ValueError, TypeError)) as refused:
        fit(*given, **how)
    return str(refused.value)


@pytest.mark.parametrize("target", ["two", "numbers"])
def test_wrong_groups_are_refused_as_in_memory(target, tmp_path):
    _, rows = make_groups(make_table(N, target), "text")
    X, y, weight = split_table(rows.drop_columns(["g"]))
    model, number = model_of(target), np.arange(N) % 30
    weight = np.where(np.arange(N) < 450, 0, weight)  # no row of the first file has any
    rows = rows.set_column(rows.column_names.index("w"), "w", pa.array(weight))
    stamp = np.datetime64("2026-01-01", "ns") + number
    stamp[::7] = np.datetime64("NaT")
    said = set()
    for values in (
        pa.array(np.where(number % 7, number.astype(str).astype(object), None)),
        pa.array(number, mask=number % 7 == 0),
        pa.array(np.where(number % 7, number / 3, np.nan)),
        pa.array(np.where(number % 7, number.astype(str).astype(object), None)).dictionary_encode(),
        pa.array(np.where(number % 7, number > 3, None)),
        pa.array(np.where(number % 7, stamp, np.datetime64("NaT"))),
    ):
        given = rows.set_column(rows.column_names.index("g"), "g", values)
        files = write_files(tmp_path, given, (0, 400, 400, N))
        one = message(model.fit, files, "y", "w", groups="g")
        memory = pa.table({"g": values})["g"].to_pandas().to_numpy()
        assert one == message(model.fit, X, y, weight, groups=memory)
        said.add(one.split(", got")[0])
    assert said == {"groups must name a group of every row"}
    one_group = rows.set_column(rows.column_names.index("g"), "g", pa.array(np.zeros(N)))
    files = write_files(tmp_path, one_group, ENDS)
    lacking = message(model.fit, files, "y", "w", groups="g")
    assert "of 1 groups leaves none to" in lacking
    assert lacking == message(model.fit, X, y, weight, groups=np.zeros(N))
    wrong = message(model.fit, files, "y", groups=np.zeros(N))
    assert wrong.startswith("groups must be the name of a column if X is a file, got ndarray")
    assert "groups must name columns of" in message(model.fit, files, "y", groups="h")
    words = pa.array([[1], [2, 3]] * (N // 2))
    files = write_files(tmp_path, rows.set_column(rows.column_names.index("g"), "g", words), ENDS)
    assert "groups must hold values that can be ordered" in message(
        model.fit, files, "y", groups="g"
    )
    assert not hasattr(model, "tree_")


def test_rows_that_are_alike_in_a_group_repeat_none(tmp_path):
    rows = make_table(N).drop_columns(["w"]).append_column("g", pa.array(np.arange(N) // 9))
    rows = pa.concat_tables([rows, rows.slice(0, 300), rows.slice(0, 3)])
    files = write_files(tmp_path, rows, (0, 700, N + 200, N + 303))
    X, y = rows.drop_columns(["y", "g"]), rows["y"].to_numpy()
    here = model_of("two", train_size=0.3).fit(X, y, groups=rows["g"].to_numpy())
    there = model_of("two", train_size=0.3).fit(files, "y", groups="g")
    expect_same_fit(here, there, tmp_path)
    alone = model_of("two", train_size=0.3).fit(X, y).calibration_.repeats
    assert 0 < here.calibration_.repeats < alone


def test_a_class_that_only_certifies(tmp_path):
    X, _, _ = split_table(make_table(N), weighed=False)
    y = np.array(["one", "two"], dtype=object)[np.arange(N) % 2]
    y[::90] = [f"rare {k}" for k in range(10)]
    here = model_of("two", train_size=0.5, class_weight="balanced").fit(X, y)
    there = model_of("two", train_size=0.5, class_weight="balanced")
    expect_same_fit(here, fit_in_chunks(there, X, y, None, [0, 1, 500, N]), tmp_path)
    assert here.n_classes_ == 12
    n_trained = here.model_selection_.held.n_classes
    assert 2 < n_trained < 12
    assert set(here.calibration_.y) >= set(range(n_trained, 12))


MERGED = [
    ("two", None, {}),
    ("three", "real", {"class_weight": "balanced", "train_size": 0.4}),
    ("three", "whole", {"class_weight": {"one": 0.3, "other": 0.0, "third": 0.7}}),
    ("two", None, {"class_weight": {0: 0.3, 1: 0.7}, "max_leaf_nodes": 6}),
    ("numbers", "real", {}),
    ("numbers", None, {"max_leaf_nodes": 6}),
]


def copied_rows(target, weights, n=N):
    """Rows with copies of some of them, which stand anywhere."""
    rows = make_table(n, target, weights=weights or "real")
    rows = rows if weights else rows.drop_columns(["w"])
    rs = np.random.RandomState(2)
    return rows.take(rs.permutation(np.append(np.arange(n), rs.randint(0, n, n // 2))))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:sample_weight differs so much:UserWarning")
@pytest.mark.parametrize(("target", "weights", "how"), MERGED)
def test_copies_of_one_draw_are_merged_as_in_memory(
    target, weights, how, tmp_path, monkeypatch, left_nothing
):
    rows = copied_rows(target, weights)
    names = [name for name in ("y", "w") if name in rows.column_names]
    X, y = rows.drop_columns(names), rows["y"].to_numpy(False)
    weight = rows["w"].to_numpy() if weights else None
    how = {"duplicates": "copies", **how}
    here = model_of(target, **how).fit(X, y, weight)
    assert here.certificate_.distinct
    files = write_files(tmp_path, rows, (0, 400, 400, len(rows) - 1, len(rows)))
    for block_rows in (2**19, 170):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of(target, **how).fit(files, "y", "w" if weights else None)
        expect_same_fit(here, there, tmp_path)
    there = fit_in_chunks(
        model_of(target, **how), X, y, weight, [0, 1, 500, len(y)], compared_rows=300
    )
    expect_same_fit(here, there, tmp_path)
    if weights == "real":  # sums of which depend on the order, in memory, too
        return
    order = np.random.RandomState(3).permutation(len(y))
    given = X.take(order), y[order], None if weight is None else weight[order]
    there = fit_in_chunks(model_of(target, **how), *given, [0, 1, 500, len(y)])
    expect_same_certificates(here, there)
    for name in ("tree_", "vote_", "stats_", "weights_"):
        assert_same_fields(getattr(here, name), getattr(there, name), name)


@pytest.mark.parametrize("target", ["two", "numbers"])
def test_rows_without_copies_are_fitted_as_in_memory(target, tmp_path):
    rs = np.random.RandomState(0)
    X, y = rs.normal(size=(N, 3)), rs.normal(size=N)
    y = y if target == "numbers" else (y > X[:, 0]).astype(int)
    here = model_of(target, duplicates="copies").fit(X, y)
    there = fit_in_chunks(model_of(target, duplicates="copies"), X, y, None, [0, 300, N])
    expect_same_fit(here, there, tmp_path)
    assert here.certificate_.distinct


@pytest.mark.parametrize("as_float32", [False, True])
def test_copies_in_float32_are_merged_as_in_memory(as_float32, tmp_path):
    X, y = repeating(n_alike=300, as_float32=as_float32)
    here = model_of("two", duplicates="copies").fit(X, y)
    for compared_rows in (2**22, 300):
        there = model_of("two", duplicates="copies")
        there = fit_in_chunks(
            there, X, y, None, [0, 1, 1, 700, len(y)], compared_rows=compared_rows
        )
        expect_same_fit(here, there, tmp_path)


def test_groups_of_copies_must_be_the_same(tmp_path):
    X, y = repeating(n_alike=100)
    group = np.random.RandomState(0).randint(0, 90, len(y))
    model = model_of("two", duplicates="copies")
    for fit in (
        lambda: clone(model).fit(X, y, groups=group),
        lambda: fit_in_chunks(clone(model), X, y, None, [0, 700, len(y)], groups=group),
    ):
        with pytest.raises(ValueError, match="groups must be the same for copies of a row"):
            fit()
    _, first = np.unique(np.column_stack([X, y == "yes"]), axis=0, return_inverse=True)
    group = first.ravel() % 200
    here = clone(model).fit(X, y, groups=group)
    there = fit_in_chunks(clone(model), X, y, None, [0, 700, len(y)], groups=group)
    expect_same_fit(here, there, tmp_path)
    assert here.certificate_.distinct


GIVEN_CLASSES = [
    (["third", "one", "other"], {}),
    (["a", "one", "other", "p", "third", "z"], {"train_size": 0.4, "class_weight": "balanced"}),
    (["one", "other", "third", "z"], {"max_leaf_nodes": 6, "selection": "vote"}),
]


@pytest.mark.slow
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(("classes", "how"), GIVEN_CLASSES)
def test_files_take_the_classes_that_may_be_predicted(
    classes, how, weighed, tmp_path, monkeypatch, left_nothing
):
    rows = make_table(N, "three")
    X, y, weight = split_table(rows, weighed)
    here = model_of("three", **how).fit(X, y, weight, classes=classes)
    assert here.classes_.tolist() == sorted(classes)
    files = write_files(tmp_path, rows if weighed else rows.drop_columns(["w"]), ENDS)
    for block_rows in (2**19, 90):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = model_of("three", **how)
        there.fit(files, "y", "w" if weighed else None, classes=classes)
        expect_same_fit(here, there, tmp_path)
    moved = rows.take(np.random.RandomState(1).permutation(N))
    X, y, weight = split_table(moved, weighed)
    (tmp_path / "moved").mkdir()
    files = write_files(tmp_path / "moved", moved if weighed else moved.drop_columns(["w"]), ENDS)
    there = model_of("three", **how).fit(files, "y", "w" if weighed else None, classes=classes)
    expect_same_certificates(here, there)
    for name in ("tree_", "vote_", "stats_", "weights_"):
        assert_same_fields(getattr(here, name), getattr(there, name), name)


def with_rare_classes(n_rare=10):
    """Rows of two classes, and of some with one row each."""
    X, _, _ = split_table(make_table(N), weighed=False)
    y = np.array(["one", "two"], dtype=object)[np.arange(N) % 2]
    y[:: N // n_rare] = [f"rare {k}" for k in range(n_rare)]
    return X, y


def test_calibration_rows_of_classes_that_were_not_given_are_errors(tmp_path):
    X, y = with_rare_classes()
    # Which of the rare classes the training set has does not depend on the classes that are given.
    seen = model_of("two", train_size=0.5).fit(X, y)
    names = [f"rare {k}" for k in range(10)]
    is_trained = dict(zip(seen.classes_.tolist(), seen._trained.is_trained.tolist(), strict=True))
    classes = [name for name, trained in is_trained.items() if trained] + ["absent"]
    assert 0 < len(set(names) - set(classes)) < 10
    here = model_of("two", train_size=0.5, class_weight="balanced").fit(X, y, classes=classes)
    there = model_of("two", train_size=0.5, class_weight="balanced")
    expect_same_fit(
        here, fit_in_chunks(there, X, y, None, [0, 1, 500, N], classes=classes), tmp_path
    )
    assert here.classes_.tolist() == sorted(classes)
    assert here.calibration_.y.max() == len(classes)


@pytest.mark.parametrize("classes", [["one"], ["one", "two"], ["no", "such"]])
def test_training_rows_of_classes_that_were_not_given_are_refused(classes):
    X, y = with_rare_classes()
    model = model_of("two", train_size=0.5)
    with pytest.raises(ValueError, match=r"y must hold classes among .*, got .*rare"):
        model.fit(X, y, classes=classes)
    with pytest.raises(ValueError, match=r"y must hold classes among .*, got .*rare"):
        fit_in_chunks(model, X, y, None, [0, 500, N], classes=classes)


def test_few_rows_in_files_take_the_classes_that_may_be_predicted(tmp_path):
    rows = make_table(100).drop_columns(["w"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    X, y = rows.drop_columns(["y"]), rows["y"].to_numpy()
    here = model_of("two").fit(X, y, classes=[0, 1, 2])
    there = model_of("two").fit(tmp_path / "rows.parquet", "y", classes=[2, 1, 0])
    expect_same_fit(here, there, tmp_path)


def test_categories_are_those_of_the_rows_that_grow(tmp_path):
    rs = np.random.RandomState(0)
    kind = rs.choice(["a", "b", "c"], N).astype(object)
    kind[:5] = [f"rare {k}" for k in range(5)]
    X, y = pa.table({"x": rs.normal(size=N), "kind": pa.array(kind)}), rs.randint(0, 2, N)
    here, there = (model_of("two", train_size=0.5) for _ in range(2))
    fit_in_chunks(there, X, y, None, [0, 2, N])
    assert here.fit(X, y).categories_.names == there.categories_.names
    assert 3 < len(here.categories_.names[1]) < 8
    assert_same(here.vote_.score, there.vote_.score, "score")
    assert here.certificates_ == there.certificates_


def test_few_rows_are_fitted_in_memory(tmp_path):
    rows = make_table(100).drop_columns(["w"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    here = model_of("two").fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
    expect_same_fit(here, model_of("two").fit(tmp_path / "rows.parquet", "y"), tmp_path)


def test_a_random_state_goes_on_as_in_memory():
    X, y, _ = split_table(make_table(N), weighed=False)
    states = [np.random.RandomState(5) for _ in range(2)]
    model_of("two", random_state=states[0]).fit(X, y)
    fit_in_chunks(model_of("two", random_state=states[1]), X, y, None, [0, 300, N])
    assert states[0].randint(2**31 - 1) == states[1].randint(2**31 - 1)


REFUSED = [
    ({"cv": [([0], [1])]}, {}, "cv must be a number of folds"),
    ({"grower": "cart"}, {}, r"Cart\(max_bins=255\)"),
    ({"train_size": 1e-9}, {}, "leaves none to train"),
]


@pytest.mark.parametrize("target", ["two", "numbers"])
@pytest.mark.parametrize(("how", "given", "said"), REFUSED)
def test_what_takes_rows_in_memory_is_refused_by_name(
    target, how, given, said, tmp_path, left_nothing
):
    files = write_files(tmp_path, make_table(N, target).drop_columns(["w"]), ENDS)
    model = model_of(target).set_params(**how)
    with pytest.raises(ValueError, match=said):
        model.fit(files, "y", **given)
    assert not hasattr(model, "tree_")


@pytest.mark.parametrize("word", ["auto", "refuse"])
def test_repeated_rows_are_counted_as_in_memory(word, tmp_path):
    rows = make_table(N).drop_columns(["w"])
    files = write_files(tmp_path, rows, ENDS)
    said = []
    for X, y in ((rows.drop_columns(["y"]), rows["y"].to_numpy()), (files, "y")):
        with pytest.raises(ValueError, match="rows that certify repeat other rows") as refused:
            model_of("two", duplicates=word).fit(X, y)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_preprocessors_take_rows_in_memory(tmp_path):
    files = write_files(tmp_path, make_table(N).drop_columns(["w"]), ENDS)
    from sklearn.preprocessing import StandardScaler

    with pytest.raises(ValueError, match="preprocessor must be None for out-of-core"):
        model_of("two", preprocessor=StandardScaler()).fit(files, "y")


def test_an_error_leaves_the_model_as_it_was(tmp_path):
    X, y, _ = split_table(make_table(N), weighed=False)
    model = model_of("two").fit(X, y)
    before = model.tree_, model.certificate_, model.sample_hashes_
    rows = make_table(N, "numbers").drop_columns(["w"])
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(write_files(tmp_path, rows, ENDS), "y")
    assert (model.tree_, model.certificate_, model.sample_hashes_) == before


@linux
@pytest.mark.filterwarnings("ignore:sample_weight differs so much:UserWarning")
@pytest.mark.parametrize("duplicates", ["genuine", "copies"])
@pytest.mark.parametrize("target", ["two", "numbers"])
def test_a_limit_of_memory_changes_nothing(target, duplicates, tmp_path):
    files = write_files(tmp_path, make_table(N, target), ENDS)
    how = {"max_leaf_nodes": 5, "duplicates": duplicates}
    free = model_of(target, **how).fit(files, "y", sample_weight="w")
    with resources(memory_limit="8GB"):
        same = model_of(target, **how).fit(files, "y", sample_weight="w")
    expect_same_fit(same, free, tmp_path)
    with resources(memory_limit="1MB"), pytest.raises(ValueError, match="it needs at least"):
        model_of(target).fit(files, "y", sample_weight="w")


@linux
@pytest.mark.parametrize("target", ["two", "numbers"])
def test_a_limit_takes_whole_weights_of_any_size(target, tmp_path):
    rows = make_table(N, target, weights="whole")
    heavy = pa.array(10_000 * rows["w"].to_numpy())
    files = write_files(tmp_path, rows.drop_columns(["w"]).append_column("w", heavy), ENDS)
    free = model_of(target).fit(files, "y", sample_weight="w")
    with resources(memory_limit="8GB"):
        same = model_of(target).fit(files, "y", sample_weight="w")
    expect_same_fit(same, free, tmp_path)


@pytest.mark.filterwarnings("ignore:sample_weight differs so much:UserWarning")
@pytest.mark.parametrize("how", [{}, {"class_weight": "balanced"}])
def test_the_effective_number_is_that_of_all_rows(how):
    X, y, weight = split_table(make_table(N))
    weight = np.where(np.arange(N) == 0, 3000.0, weight)
    here = model_of("two", **how).fit(X, y, weight)
    there = fit_in_chunks(model_of("two", **how), X, y, weight, [0, 300, N])
    assert there.effective_sample_size_ == here.effective_sample_size_ < N / 10


def test_uneven_weights_are_worth_one_warning():
    X, y, weight = split_table(make_table(N))
    weight = np.where(np.arange(N) == 0, 3000.0, weight)
    with pytest.warns(UserWarning, match="sample_weight differs so much that 900 rows") as found:
        fit_in_chunks(model_of("two"), X, y, weight, [0, 300, N])
    assert len(found) == 1


@linux
def test_a_limit_takes_groups(tmp_path):
    rows = make_table(N).drop_columns(["w"]).append_column("g", pa.array(np.arange(N) // 3))
    files = write_files(tmp_path, rows)
    plain = model_of("two").fit(files, "y", groups="g")
    with resources(memory_limit="8GB"):
        limited = model_of("two").fit(files, "y", groups="g")
    assert limited.certificate_ == plain.certificate_
