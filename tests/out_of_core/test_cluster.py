"""The same model, bit by bit, of rows in memory and of collections of Dask."""

import contextlib
import os
import signal
import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from certree import (
    Cart,
    CertifiedTreeClassifier,
    CertifiedTreeRegressor,
    PACBayesTreeClassifier,
    PACBayesTreeRegressor,
    PrunedTreeClassifier,
    RepeatedRowsWarning,
)
from certree.ensembles import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CustomLoss,
    TreeForestClassifier,
    TreeForestRegressor,
    scored_sample,
)
from certree.out_of_core import cluster, open_rows, resources, sources, worker_links
from certree.out_of_core.cluster import DaskExecutor
from certree.out_of_core.worker_actor import align_arrays
from certree.out_of_core.worker_links import LinkLost
from run_length import LONG
from same_models import (
    add_targets,
    add_towns,
    expect_same,
    expect_same_tree,
    make_groups,
    make_table,
    split_table,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")

# Dask and its servers warn of what is theirs.
pytestmark = pytest.mark.filterwarnings("ignore")

N = 1300
FORKED_WITH = [
    *("distributed", "dask.array", "dask.dataframe", "pandas", "pyarrow.dataset"),
    *("pyarrow.parquet", "scipy.stats", "sklearn.base", "sklearn.model_selection"),
]


@contextlib.contextmanager
def two_workers():
    """The client of a cluster of two processes.

    They are forked from a process that has imported what certree needs, which takes seconds.
    """
    with (
        warnings.catch_warnings(),
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
    ):
        warnings.simplefilter("ignore")
        distributed.utils.get_mp_context().set_forkserver_preload(FORKED_WITH)
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
            ) as workers,
            distributed.Client(workers) as made,
        ):
            yield made


@pytest.fixture(scope="module")
def client():
    """That of a cluster of two processes."""
    with two_workers() as made:
        yield made


@pytest.fixture
def mortal():
    """That of a cluster for one test alone: a killed worker may not come back."""
    with two_workers() as made:
        yield made


def model_of(target, **how):
    made = BoostedTreesRegressor if target == "numbers" else BoostedTreesClassifier
    return made(**{"max_iter": 3, "max_leaf_nodes": 8, "random_state": 0, "n_jobs": 1, **how})


def frames(target, weighed, seed=0):
    """X, y and weights as frames of pandas, with categories."""
    X, y, weight = split_table(make_table(N, target, seed), weighed)
    X = X.to_pandas().astype({"colour": "category"})
    return X, pd.Series(y), None if weight is None else pd.Series(weight)


def cut(frame, ends):
    """A collection of parts of a frame, some of which may be empty."""
    parts = [frame.iloc[a:b] for a, b in pairwise(ends)]
    return dd.from_map(lambda one: one, parts, meta=frame.iloc[:0])


CASES = [
    ("two", False, [0, N], 0),
    ("three", True, [0, 900, 900, 1299, N], 1),
    ("numbers", True, [0, 650, N], 2),
]
if LONG:
    CASES += [
        (target, weighed, sorted([0, N, *np.random.RandomState(n).randint(0, N, n - 1)]), n)
        for target in ("two", "three", "numbers")
        for weighed in (False, True)
        for n in (1, 2, 5, 23, 97)
    ]


@pytest.mark.parametrize(("target", "weighed", "ends", "seed"), CASES)
def test_frames_on_workers_have_the_same_model(target, weighed, ends, seed, client, tmp_path):
    X, y, weight = frames(target, weighed)
    here = model_of(target).fit(X, y, weight)
    order = np.random.RandomState(seed).permutation(N)
    there = model_of(target).fit(
        *(None if one is None else cut(one.iloc[order], ends) for one in (X, y, weight))
    )
    expect_same(here, there, tmp_path)


def test_repeated_rows_on_workers_are_counted_once(client):
    X, y, _ = frames("two", False)
    rows = np.append(np.arange(N), np.arange(N // 2))
    order = np.random.RandomState(0).permutation(len(rows))
    given = [cut(one.iloc[rows[order]], [0, 700, len(rows)]) for one in (X, y)]
    number = len(rows) - int((~X.assign(y=y).iloc[rows].duplicated(keep=False)).sum())
    for early_stopping in (False, True):
        model = model_of("two", early_stopping=early_stopping)
        with pytest.warns(
            RepeatedRowsWarning, match=f"hold {number:,} of {len(rows):,} rows"
        ) as said:
            model.fit(*given)
        assert sum(one.category is RepeatedRowsWarning for one in said) == 1


QUANTILES = {"loss": "quantile", "quantile": [0.2, 0.5, 0.9]}


@pytest.mark.parametrize(
    ("target", "names", "how"),
    [
        ("numbers", ["y", "b", "c"], {"loss": "huber"}),
        ("numbers", ["b"], QUANTILES),
        ("three", ["y", "b", "c"], {}),
    ],
)
def test_several_targets_on_workers_have_the_same_model(target, names, how, client, tmp_path):
    rows = add_targets(make_table(N, target), target).to_pandas().astype({"colour": "category"})
    X, y, weight = rows.drop(columns=["y", "b", "c", "w"]), rows[names].squeeze(axis=1), rows["w"]
    here = model_of(target, **how).fit(X, y, weight)
    order = np.random.RandomState(3).permutation(N)
    ends = [0, 500, 500, 900, N]
    cuts = [cut(one.iloc[order], ends) for one in (X, y, weight)]
    expect_same(here, model_of(target, **how).fit(*cuts), tmp_path)
    together = cut(X.join(rows[[*names, "w"]]).iloc[order], ends)
    there = model_of(target, **how).fit(together, names, "w")
    expect_same(here, there, tmp_path)
    kept = {"dataframe.convert-string": False}  # the lowest version converts all objects
    with dask.config.set(kept):
        said = there.predict(cuts[0]).compute()
    assert np.array_equal(said.to_numpy(), here.predict(X.iloc[order]))


def test_forests_on_workers_take_several_targets(client, tmp_path):
    rows = add_targets(make_table(N, "three"), "three").to_pandas().astype({"colour": "category"})
    X, y, weight = rows.drop(columns=["y", "b", "c", "w"]), rows[["y", "b", "c"]], rows["w"]
    here = TreeForestClassifier(6, random_state=0, n_jobs=1).fit(X, y, weight)
    cuts = [cut(one, [0, 500, 500, 900, N]) for one in (X, y, weight)]
    expect_same(here, TreeForestClassifier(6, random_state=0, n_jobs=1).fit(*cuts), tmp_path)


def test_targets_in_arrays_of_two_dimensions(client):
    X, _ = arrays()
    y = np.column_stack([X[:, 0] * X[:, 1], X[:, 2] ** 2, X[:, 3]])
    here = model_of("numbers").fit(X, y)
    for chunks in ((600, 3), (500, 1)):
        given = da.from_array(X, chunks=((600, 0, 700), 3)), da.from_array(y, chunks=chunks)
        expect_same(here, model_of("numbers").fit(*given))
    with pytest.raises(ValueError, match="must be a column of X, got 'z'"):
        model_of("numbers").fit(cut(pd.DataFrame({"a": y[:, 0], "b": y[:, 1]}), [0, N]), ["b", "z"])


def test_a_class_of_one_partition_and_columns_by_name(client):
    X, y, weight = frames("three", True)
    order = np.argsort(y, kind="stable")
    given = X.assign(y=y, w=weight).iloc[order]
    here = model_of("three", class_weight="balanced").fit(X, y, weight)
    there = model_of("three", class_weight="balanced").fit(cut(given, [0, 700, N]), "y", "w")
    expect_same(here, there)


def arrays():
    rs = np.random.RandomState(0)
    X = rs.normal(size=(N, 4)).astype(np.float32)
    X[:, 3] = rs.randint(0, 3, N)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_arrays_are_cut_alike(client):
    X, y = arrays()
    given = da.from_array(X, chunks=((600, 0, 700), 3)), da.from_array(y, chunks=500)
    expect_same(model_of("two").fit(X, y), model_of("two").fit(*given))


def test_without_a_cluster_partitions_are_read_here(tmp_path, monkeypatch):
    X, y = arrays()
    monkeypatch.setattr(open_rows, "get_current_client", lambda: None)
    given = da.from_array(X, chunks=(600, 4)), da.from_array(y, chunks=600)
    expect_same(model_of("two").fit(X, y), model_of("two").fit(*given), tmp_path)


def write_files(folder, rows, form):
    """Three files, one of them without rows, which stand in another order."""
    order = np.random.RandomState(1).permutation(len(rows))
    rows = rows.take(order)
    folder.mkdir()
    for number, (a, b) in enumerate([(0, 500), (500, 500), (500, N)]):
        some, place = rows.slice(a, b - a), folder / f"{number}.{form}"
        if form == "parquet":
            pq.write_table(some, place, row_group_size=90)
        elif form == "csv":
            pyarrow.csv.write_csv(some, place)
        else:
            with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, some.schema) as to:
                to.write_table(some, max_chunksize=130)
    return folder


@pytest.mark.parametrize("form", ["parquet", "csv", "arrow", "dataset"])
@pytest.mark.parametrize(("target", "weighed"), [("three", False), ("numbers", True)])
def test_workers_read_files(target, weighed, form, client, tmp_path, monkeypatch):
    rows = make_table(N, target)
    rows = rows if weighed else rows.drop_columns(["w"])
    X = rows.drop_columns(["y", *(["w"] if weighed else [])])
    y, w = rows["y"].to_numpy(False), "w" if weighed else None
    here = model_of(target).fit(X, y, rows["w"].to_numpy() if weighed else None)
    folder = write_files(tmp_path / "rows", rows, "parquet" if form == "dataset" else form)
    given = pa.dataset.dataset(folder) if form == "dataset" else folder
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", 200)
    n_partitions = sources.FileRows(given, "y", w).n_partitions
    assert n_partitions > 3 if form in ("parquet", "arrow") else n_partitions == 3
    made = []
    before = DaskExecutor.__init__
    monkeypatch.setattr(
        DaskExecutor, "__init__", lambda self, *given: made.append(given) or before(self, *given)
    )
    with resources(client=client):
        there = model_of(target).fit(given, "y", w)
    assert len(made) == 1
    expect_same(here, there, tmp_path)


def test_rows_of_workers_judge_the_same(client, tmp_path):
    (X, y, weight), (X_val, y_val, w_val) = (frames("two", True, seed) for seed in (0, 5))
    how = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 12}
    how["class_weight"] = "balanced"
    beside = {"X_val": X_val, "y_val": y_val, "sample_weight_val": w_val}
    here = model_of("two", **how).fit(X, y, weight, **beside)
    judges = {name: cut(one, (0, 300, N)) for name, one in beside.items()}
    parts = [cut(one, (0, 700, 701, N)) for one in (X, y, weight)]
    expect_same(here, model_of("two", **how).fit(*parts, **judges), tmp_path)
    offsets = {"offset": X["x0"].round(1), "offset_val": X_val["x0"].round(1)}
    here = model_of("two", **how).fit(X, y, weight, **beside, **offsets)
    given = {"offset": cut(offsets["offset"], (0, 700, 701, N))}
    given["offset_val"] = cut(offsets["offset_val"], (0, 300, N))
    expect_same(here, model_of("two", **how).fit(*parts, **judges, **given), tmp_path)


@pytest.mark.parametrize("as_names", [False, True])
@pytest.mark.parametrize(
    ("target", "how"), [("three", {}), ("two", {"early_stopping": True}), ("numbers", {})]
)
def test_offsets_on_workers(target, how, as_names, client, tmp_path):
    X, y, weight = frames(target, True)
    random = np.random.RandomState(7)
    n_outputs = 3 if target == "three" else 1
    offset = pd.DataFrame({f"o{k}": random.normal(size=N).round(1) for k in range(n_outputs)})
    here = model_of(target, **how).fit(X, y, weight, offset=offset.to_numpy().squeeze())
    order, ends = random.permutation(N), [0, 200, 200, 1000, N]
    if as_names:
        rows = X.assign(y=y, w=weight, **offset).iloc[order]
        names = [*offset] if n_outputs > 1 else "o0"
        there = model_of(target, **how).fit(cut(rows, ends), "y", "w", offset=names)
    else:
        given = offset if n_outputs > 1 else offset["o0"]
        *cuts, given = (cut(one.iloc[order], ends) for one in (X, y, weight, given))
        there = model_of(target, **how).fit(*cuts, offset=given)
    expect_same(here, there, tmp_path)


@pytest.mark.parametrize("as_names", [False, True])
@pytest.mark.parametrize(("target", "how"), [("two", {"early_stopping": True}), ("numbers", {})])
def test_groups_of_boosted_trees_on_workers(target, how, as_names, client, tmp_path):
    X, y, weight = frames(target, True)
    random = np.random.RandomState(7)
    groups = pd.Series(random.randint(0, 90, N)).astype(str)
    here = model_of(target, **how).fit(X, y, weight, groups=groups)
    order, ends = random.permutation(N), [0, 200, 200, 1000, N]
    if as_names:
        rows = X.assign(y=y, w=weight, g=groups).iloc[order]
        there = model_of(target, **how).fit(cut(rows, ends), "y", "w", groups="g")
    else:
        *cuts, given = (cut(one.iloc[order], ends) for one in (X, y, weight, groups))
        there = model_of(target, **how).fit(*cuts, groups=given)
    expect_same(here, there, tmp_path)


@pytest.mark.parametrize(
    "loss", ["poisson", "gamma", "tweedie", "absolute_error", "quantile", "huber"]
)
def test_losses_of_numbers_on_workers(loss, client, tmp_path):
    X, y, weight = frames("numbers", True)
    if loss in ("poisson", "gamma", "tweedie"):
        y = np.exp(y / 2) if loss == "gamma" else np.floor(np.exp(y / 2))
    else:
        weight = np.ceil(weight)
    here = model_of("numbers", loss=loss).fit(X, y, weight)
    order = np.random.RandomState(3).permutation(N)
    cuts = (cut(one.iloc[order], [0, 200, 200, 1000, N]) for one in (X, y, weight))
    expect_same(here, model_of("numbers", loss=loss).fit(*cuts), tmp_path)


@pytest.mark.parametrize(
    ("target", "has_columns", "quality"),
    [("three", True, "default"), ("numbers", False, "default"), ("numbers", False, "best")],
)
def test_early_stopping_on_workers(target, has_columns, quality, client, tmp_path):
    X, y, weight = frames(target, True)
    if has_columns:
        y = pd.DataFrame({"one": y, "other": np.arange(N) % 2})
    how = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 5, "learning_rate": 0.7}
    how["quality"] = quality
    here = model_of(target, **how).fit(X, y, weight)
    order = np.random.RandomState(3).permutation(N)
    cuts = (cut(one.iloc[order], [0, 200, 200, 1000, N]) for one in (X, y, weight))
    there = model_of(target, **how).fit(*cuts)
    expect_same(here, there, tmp_path)
    assert len(there.validation_score_) > there.n_iter_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "scoring"), [("three", "roc_auc_ovr"), ("numbers", "neg_mean_absolute_error")]
)
def test_scorers_by_name_on_workers(target, scoring, mortal, monkeypatch):
    monkeypatch.setattr(scored_sample, "_SCORED_ROWS", 500)
    X, y, weight = frames(target, True)
    how = {"early_stopping": True, "n_iter_no_change": 3, "max_iter": 6, "scoring": scoring}
    here = model_of(target, **how).fit(X, y, weight)
    order = np.random.RandomState(3).permutation(N)
    cuts = [cut(one.iloc[order], [0, 200, 200, 1000, N]) for one in (X, y, weight)]
    expect_same(here, model_of(target, **how).fit(*cuts))
    calls = kill_before(monkeypatch, mortal, "gather_from_ranks", 5)
    expect_same(here, model_of(target, **how).fit(*cuts))
    assert len(calls) > 5


@pytest.mark.slow
def test_warm_starts_on_workers_add_the_same_rounds(client, tmp_path):
    X, y, weight = frames("three", True)
    order = np.random.RandomState(3).permutation(N)
    cuts = [cut(one.iloc[order], [0, 200, 200, 1000, N]) for one in (X, y, weight)]
    how = {"early_stopping": True, "n_iter_no_change": 20, "warm_start": True}
    here, there = (model_of("three", **how) for _ in range(2))
    for n_rounds in (3, 6, 6):
        here.set_params(max_iter=n_rounds).fit(X, y, weight)
        expect_same(here, there.set_params(max_iter=n_rounds).fit(*cuts), tmp_path)


def tree_of(target, **how):
    made = PACBayesTreeRegressor if target == "numbers" else PACBayesTreeClassifier
    return made(Cart(max_bins=255, max_leaf_nodes=8), random_state=0, **{"cv": 2, **how})


GIVEN = {"lambda_error": 1.0, "lambda_penalty": 0.5}
TREES = [
    ("three", True, [0, 400, 400, 1299, N], {}),
    ("numbers", True, [0, 650, N], GIVEN),
]
if LONG:
    TREES += [
        (target, weighed, sorted([0, N, *np.random.RandomState(n).randint(0, N, n - 1)]), how)
        for target in ("two", "three", "numbers")
        for weighed in (False, True)
        for n in (1, 5, 23)
        for how in ({}, GIVEN)
    ]


@pytest.mark.parametrize(("target", "weighed", "ends", "how"), TREES)
def test_single_trees_on_workers(target, weighed, ends, how, client, tmp_path):
    X, y, weight = frames(target, weighed)
    here = tree_of(target, **how).fit(X, y, weight)
    order = np.random.RandomState(1).permutation(N)
    there = tree_of(target, **how).fit(
        *(None if one is None else cut(one.iloc[order], ends) for one in (X, y, weight))
    )
    expect_same_tree(here, there, tmp_path)


def certified_of(target):
    made = CertifiedTreeRegressor if target == "numbers" else CertifiedTreeClassifier
    return made(Cart(max_bins=255, max_leaf_nodes=8), duplicates="genuine", cv=2, random_state=0)


@pytest.mark.parametrize(("target", "weighed"), [("three", True), ("numbers", False)])
def test_copies_on_workers_are_merged(target, weighed, client, tmp_path):
    rows = np.append(np.arange(N), np.random.RandomState(1).randint(0, N, 400))
    given = [None if one is None else one.iloc[rows] for one in frames(target, weighed)]
    model = certified_of(target).set_params(duplicates="copies")
    here = clone(model).fit(*given)
    ends = [0, 400, 400, 1299, len(rows)]
    there = clone(model).fit(*(None if one is None else cut(one, ends) for one in given))
    expect_same_tree(here, there, tmp_path)
    assert here.certificates_ == there.certificates_
    assert there.certificate_.distinct


@pytest.mark.slow
def test_classes_that_may_be_predicted_on_workers(client, tmp_path):
    X, y, weight = frames("three", True)
    classes = ["a", "one", "other", "third"]
    here = certified_of("three").fit(X, y, weight, classes=classes)
    cuts = (cut(one, [0, 400, 400, 1299, N]) for one in (X, y, weight))
    there = certified_of("three").fit(*cuts, classes=classes)
    expect_same_tree(here, there, tmp_path)
    assert here.certificates_ == there.certificates_
    assert there.classes_.tolist() == classes


@pytest.mark.parametrize(("target", "weighed"), [("three", True), ("numbers", False)])
def test_certified_trees_on_workers(target, weighed, client, tmp_path):
    X, y, weight = frames(target, weighed)
    here = certified_of(target).fit(X, y, weight)
    ends = [0, 400, 400, 1299, N]
    there = certified_of(target).fit(
        *(None if one is None else cut(one, ends) for one in (X, y, weight))
    )
    expect_same_tree(here, there, tmp_path)
    assert here.certificates_ == there.certificates_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "kind", "as_names"), [("three", "text", True), ("numbers", "ints", False)]
)
def test_certified_trees_of_groups_on_workers(target, kind, as_names, client, tmp_path):
    groups, rows = make_groups(make_table(N, target, weights="whole"), kind)
    X, y, weight = split_table(rows.drop_columns(["g"]))
    here = certified_of(target).fit(X, y, weight, groups)
    frame = rows.to_pandas().astype({"colour": "category"})
    frame = frame.astype({"g": "category"}) if kind == "text" else frame
    parts = cut(frame, [0, 400, 400, 1299, N])
    beside = ["y", "w", "g"]
    if not as_names:
        beside, parts = [parts[one] for one in beside], parts.drop(columns=beside)
    there = certified_of(target).fit(parts, *beside)
    expect_same_tree(here, there, tmp_path)
    assert here.certificates_ == there.certificates_
    assert there.certificate_.grouped


WRONG_GROUPS = [
    (lambda g: g, TypeError, "groups must be a Dask collection"),
    (lambda g: da.from_array(np.stack([g, g]).T, chunks=400), ValueError, r"shape \(n,\), got 2"),
    (lambda _: "g", TypeError, "groups must be a Dask collection if X is an array"),
    (lambda g: da.from_array(g[:400], chunks=400), ValueError, "inconsistent numbers of samples"),
    (lambda g: da.from_array(g / (g > 0), chunks=400), ValueError, "got none for 7 of"),
]


@pytest.mark.parametrize(("wrong", "kind", "said"), WRONG_GROUPS)
def test_wrong_groups_of_collections_are_refused(wrong, kind, said):
    X, y = arrays()
    given = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400)
    with np.errstate(invalid="ignore"):
        groups = wrong(np.arange(len(X)) // 7)
    with pytest.raises(kind, match=said):
        certified_of("two").fit(*given, groups=groups)


@pytest.mark.slow
def test_certified_trees_of_killed_workers(mortal, tmp_path, monkeypatch):
    X, y = arrays()
    here = certified_of("two").fit(X, y)
    given = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400)
    calls = kill_before(monkeypatch, mortal, "make_blocks", 2)
    there = certified_of("two").fit(*given)
    assert len(calls) > 2
    expect_same_tree(here, there, tmp_path)
    assert here.certificates_ == there.certificates_


def test_a_tree_of_files_that_workers_read_and_a_class_of_one_partition(client, tmp_path):
    rows = make_table(N, "three").drop_columns(["w"])
    rows = rows.take(np.argsort(rows["y"].to_numpy(False), kind="stable"))
    here = PrunedTreeClassifier(Cart(max_bins=30), alpha=1.0, random_state=0)
    there = PrunedTreeClassifier(Cart(max_bins=30), alpha=1.0, random_state=0)
    here.fit(rows.drop_columns(["y"]), rows["y"].to_numpy(False))
    (tmp_path / "rows").mkdir()
    for number, (a, b) in enumerate([(0, 700), (700, N)]):
        pq.write_table(rows.slice(a, b - a), tmp_path / "rows" / f"{number}.parquet")
    with resources(client=client):
        there.fit(tmp_path / "rows", "y")
    expect_same_tree(here, there, tmp_path)


def test_files_that_workers_cannot_read_are_named(client, tmp_path):
    folder = write_files(tmp_path / "rows", make_table(N), "parquet")
    words = make_table(N).set_column(0, "x0", pa.array(["word"] * N))
    pq.write_table(words.slice(0, 10), folder / "9.parquet")
    with resources(client=client), pytest.raises(ValueError, match=r"9\.parquet holds string"):
        model_of("two").fit(folder, "y", "w")
    y = [None, *make_table(N)["y"].to_pylist()[1:]]
    broken = make_table(N).set_column(1, "y", pa.array(y))
    pq.write_table(broken.select(make_table(N).column_names), folder / "9.parquet")
    with (
        resources(client=client),
        pytest.raises(
            ValueError, match=r"no missing values, got 1 in partition 3, of .*9\.parquet"
        ),
    ):
        model_of("two").fit(folder, "y", "w")


def test_few_rows_are_gathered_where_a_fit_in_memory_does_more(client):
    X, y, weight = (None if one is None else one[:300] for one in frames("numbers", True))
    here = model_of("numbers").fit(X, y, weight)
    assert here._n_first_trees > 0
    given = (cut(one, [0, 100, 300]) for one in (X, y, weight))
    expect_same(here, model_of("numbers").fit(*given))


def kill_before(monkeypatch, client, asks, call, also=lambda: None):
    """Let a worker be killed when parts are asked for the n-th time in some way."""
    before, calls = getattr(DaskExecutor, asks), []

    def asked(self, *given, **how):
        calls.append(given)
        if len(calls) == call + 1:
            also()
            process_of = client.run(os.getpid)
            holding = [w for one in self._workers for w in client.who_has(one.future).popitem()[1]]
            os.kill(process_of[(holding or [*process_of])[0]], signal.SIGKILL)
        return before(self, *given, **how)

    monkeypatch.setattr(DaskExecutor, asks, asked)
    return calls


PHASES = [("run_on_root", 3), ("run_on_ranks", 1)]
if LONG:
    PHASES += [
        ("scan", 0),
        ("scan", 1),
        ("make_blocks", 0),
        *(("run_on_root", n) for n in range(3)),
    ]
    PHASES += [("run_on_ranks", 0)]


@pytest.mark.parametrize(("asks", "call"), PHASES)
def test_parts_of_killed_workers_are_made_anew(asks, call, mortal, tmp_path, monkeypatch):
    X, y = arrays()
    here = model_of("two", max_iter=4).fit(X, y)
    given = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400)
    calls = kill_before(monkeypatch, mortal, asks, call)
    there = model_of("two", max_iter=4).fit(*given)
    assert len(calls) > call
    expect_same(here, there, tmp_path)


@pytest.mark.parametrize("call", [1, 2] if LONG else [2])
def test_previous_rounds_of_killed_workers_are_added_again(call, mortal, tmp_path, monkeypatch):
    X, y = arrays()
    given = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400)
    here = model_of("two", warm_start=True).fit(X, y)
    there = model_of("two", warm_start=True).fit(X, y)
    calls = kill_before(monkeypatch, mortal, "_run_on_ranks", call)
    here.set_params(max_iter=6).fit(X, y)
    there.set_params(max_iter=6).fit(*given)
    assert len(calls) == 4  # start, previous rounds, and one round at a time
    expect_same(here, there, tmp_path)


def die_in_midst(flag, at_top, call):
    """Let a worker be killed once, in the midst of the rounds, by its n-th message."""
    before, calls = worker_links.WorkerLinks.reduce, []

    def reduce(self, words, n_sums):
        if self.is_rank_0 == at_top:
            calls.append(1)
            if len(calls) == call and not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        before(self, words, n_sums)

    worker_links.WorkerLinks.reduce = reduce


@pytest.mark.parametrize(
    ("at_top", "call"),
    [(True, 6), (False, 27), *((at, n) for at in (True, False) for n in (1, 2, 15) if LONG)],
)
@pytest.mark.parametrize("loss", ["squared_error", "huber"] if LONG else ["squared_error"])
def test_a_round_whose_workers_are_killed_is_made_again(at_top, call, loss, mortal, tmp_path):
    X, y = arrays()
    numbers = X[:, 1] + y
    here = model_of("numbers", max_iter=4, loss=loss).fit(X, numbers)
    given = da.from_array(X, chunks=(400, 4)), da.from_array(numbers, chunks=400)
    mortal.run(die_in_midst, tmp_path / "dead", at_top, call)
    there = model_of("numbers", max_iter=4, loss=loss).fit(*given)
    assert (tmp_path / "dead").exists()
    expect_same(here, there, tmp_path)


@pytest.mark.parametrize("call", range(3, 11) if LONG else [8])
def test_levels_of_killed_workers_are_seen_anew(call, mortal, tmp_path, monkeypatch):
    X, y, _ = split_table(add_towns(make_table(N, "two"), 300), weighed=False)
    X = X.to_pandas().astype(dict.fromkeys(("colour", "street", "town"), "category"))
    here = model_of("two").fit(X, y)
    assert (here.trees_.feature == [*X.columns].index("town")).any()
    calls = kill_before(monkeypatch, mortal, "run_on_root", call)
    ends = [0, 650, N]
    there = model_of("two").fit(cut(X, ends), cut(pd.Series(y), ends))
    assert len(calls) > call
    expect_same(here, there, tmp_path)


PHASES_OF_TREES = [("run_on_root", 3)]
if LONG:
    PHASES_OF_TREES = [
        *(("scan", n) for n in range(2)),
        *(("make_blocks", n) for n in range(2)),
        *(("run_on_root", n) for n in range(7)),
    ]


@pytest.mark.parametrize(("asks", "call"), PHASES_OF_TREES)
def test_trees_on_parts_of_killed_workers(asks, call, mortal, tmp_path, monkeypatch):
    X, y = arrays()
    here = tree_of("two").fit(X, y)
    given = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400)
    calls = kill_before(monkeypatch, mortal, asks, call)
    there = tree_of("two").fit(*given)
    assert len(calls) > call
    expect_same_tree(here, there, tmp_path)


def test_rows_that_are_others_when_they_are_read_again_are_named(mortal, tmp_path, monkeypatch):
    X, y = arrays()
    flag = tmp_path / "others"

    def read(block):
        return block + flag.exists()

    rows = da.from_array(X, chunks=(400, 4)).map_blocks(read, dtype=X.dtype, meta=X[:0])
    kill_before(monkeypatch, mortal, "run_on_ranks", 1, flag.touch)
    model = model_of("two", max_iter=4)
    with pytest.raises(ValueError, match=r"partition . has other rows than before"):
        model.fit(rows, da.from_array(y, chunks=400))
    assert not hasattr(model, "trees_")


def test_workers_that_die_again_and_again_end_the_fit(client, monkeypatch):
    X, y = arrays()
    lost = []
    monkeypatch.setattr(DaskExecutor, "_call", lambda *_: lost.append(1) or raise_unlinked())
    with pytest.raises(RuntimeError, match="workers with rows of the fit were lost several times"):
        model_of("two").fit(da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400))
    assert len(lost) == cluster._MAX_LOSSES


def raise_unlinked():
    raise LinkLost


def test_parts_of_a_worker_are_asked_together(client, monkeypatch):
    """Workers with some partitions tell once what these add up to."""
    X, y = arrays()
    here = model_of("two", max_iter=2).fit(X, y)
    held, before = [], DaskExecutor.make_blocks
    monkeypatch.setattr(
        DaskExecutor,
        "make_blocks",
        lambda self, *given, **how: (before(self, *given, **how), held.append(self._workers))[0],
    )
    there = model_of("two", max_iter=2).fit(
        da.from_array(X, chunks=(130, 4)), da.from_array(y, chunks=130)
    )
    assert len(held[-1]) <= 2
    assert sorted(i for one in held[-1] for i in one.numbers) == [*range(10)]
    expect_same(here, there)


def counted_below(dask_worker):
    """How many workers each of those of a worker asks, and which parts are its own."""
    return [(len(one._children), one._numbers) for one in dask_worker.state.actors.values()]


def test_many_workers_add_up_among_themselves(tmp_path, monkeypatch):
    X, y = arrays()
    here = model_of("two", max_iter=2).fit(X, y)
    tree = tree_of("two", **GIVEN).fit(X, y)
    with (
        distributed.LocalCluster(
            n_workers=6, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as workers,
        distributed.Client(workers) as client,
    ):
        asked, calls, below = [], [], []
        before, run = DaskExecutor._call, DaskExecutor.run_on_ranks

        def waited(self, held, method, *given):
            told = before(self, held, method, *given)
            if method == "run_job":
                asked.append(self._workers.index(held))
                below[:] = [one for of in client.run(counted_below).values() for one in of]
            return told

        def run_on_ranks(self, f, *given):
            calls.append(f.__name__)
            return run(self, f, *given)

        monkeypatch.setattr(DaskExecutor, "_call", waited)
        monkeypatch.setattr(DaskExecutor, "run_on_ranks", run_on_ranks)
        given = da.from_array(X, chunks=(130, 4)), da.from_array(y, chunks=130)
        expect_same(here, model_of("two", max_iter=2).fit(*given))
        assert {*asked} == {0}
        assert calls == ["start_rounds", "make_rounds", "make_rounds"]  # of 1, 2, 4, ... rounds
        assert sorted(i for _, numbers in below for i in numbers) == [*range(10)]
        assert len(below) > 3
        assert sum(n for n, _ in below) == len(below) - 1
        assert max(n for n, _ in below) == 2
        expect_same_tree(tree, tree_of("two", **GIVEN).fit(*given), tmp_path)


@pytest.mark.parametrize("stops", [False, True])
def test_callbacks_are_told_of_each_round_once_though_a_worker_is_killed(
    stops, mortal, monkeypatch
):
    X, y = arrays()
    how = {"max_iter": 6, "early_stopping": stops}

    def record(told):
        return lambda now: told.append(
            (now.n_iter, now.train_score.tolist(), now.validation_score.tolist())
        )

    here, there = [], []
    model = model_of("two", **how).fit(X, y, callbacks=[record(here)])
    calls = kill_before(monkeypatch, mortal, "run_on_ranks", 4)
    given = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400)
    other = model_of("two", **how).fit(*given, callbacks=[record(there)])
    assert len(calls) > 6
    assert there == here
    assert len(here) == 6
    expect_same(model, other)


def test_an_error_in_the_midst_of_the_rounds_ends_them_on_all_workers(client):
    X, y = arrays()
    given = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400)

    def stop(now):
        if now.n_iter == 2:
            raise KeyboardInterrupt

    model = model_of("two", max_iter=50)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*given, callbacks=[stop])
    assert not hasattr(model, "trees_")
    # Workers are free for the next fit.
    expect_same(model_of("two").fit(X, y), model_of("two").fit(*given))


def test_what_is_cut_otherwise_is_refused(client):
    X, y = arrays()
    frame = pd.DataFrame(X, columns=[*"abcd"])
    with pytest.raises(ValueError, match="equal partitions, got 2 and 3 partitions"):
        model_of("two").fit(
            dd.from_pandas(frame, npartitions=2), dd.from_pandas(pd.Series(y), npartitions=3)
        )
    with pytest.raises(ValueError, match=r"partition . has 650 rows of X and [67]00 of y"):
        model_of("two").fit(cut(frame, [0, 650, N]), cut(pd.Series(y), [0, 600, N]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model_of("two").fit(da.from_array(X), da.from_array(y[:-1]))
    with pytest.raises(TypeError, match="y must be a Dask collection"):
        model_of("two").fit(da.from_array(X), y)
    with pytest.raises(ValueError, match="must be a column of X, got 'z'"):
        model_of("two").fit(cut(frame, [0, N]), "z")


def test_errors_of_workers_say_which_partition(client):
    X, y = arrays()
    frame = pd.DataFrame(X, columns=[*"abcd"])
    other = frame.rename(columns={"a": "z"})
    parts = [frame.iloc[:600], other.iloc[600:]]
    given = dd.from_map(lambda one: one, parts, meta=frame.iloc[:0])
    with pytest.raises(ValueError, match=r"partition 0 has features.*partition 1|columns in the"):
        model_of("two").fit(given, cut(pd.Series(y), [0, 600, N]))


def test_arrays_of_messages_are_read_wherever_they_start():
    @dataclass(frozen=True)
    class Told:
        numbers: np.ndarray
        rest: tuple

    odd = np.ndarray(3, np.float64, buffer=bytearray(25), offset=1)
    odd[...] = [1.0, 2.0, 3.0]
    assert not odd.flags.aligned
    even = np.arange(3)
    told = align_arrays([Told(odd, (odd, {"a": odd})), even, 7, (Told(even, ()),)])
    straight = [told[0].numbers, told[0].rest[0], told[0].rest[1]["a"]]
    assert all(one.flags.aligned and one.tolist() == [1.0, 2.0, 3.0] for one in straight)
    assert told[1] is even
    assert told[2] == 7
    assert told[3][0].numbers is even


def forest_of(target, **how):
    made = TreeForestRegressor if target == "numbers" else TreeForestClassifier
    return made(**{"n_estimators": 11, "oob_score": True, "random_state": 0, "n_jobs": 1, **how})


FORESTS = [
    ("two", False, [0, N], False),
    ("three", True, [0, 900, 900, 1299, N], True),
    ("numbers", True, [0, 350, 351, N], False),
]


@pytest.mark.parametrize(("target", "weighed", "ends", "by_class"), FORESTS)
def test_forests_on_workers_are_the_same(
    target, weighed, ends, by_class, client, tmp_path, monkeypatch
):
    X, y, weight = frames(target, weighed)
    order = np.argsort(y, kind="stable") if by_class else np.arange(N)
    rows = [None if one is None else one.iloc[order] for one in (X, y, weight)]
    here = forest_of(target).fit(*rows)
    spread, jobs = DaskExecutor.map_jobs, []

    def noted(self, f, shared, given):
        jobs.extend(given)
        return spread(self, f, shared, given)

    monkeypatch.setattr(DaskExecutor, "map_jobs", noted)
    there = forest_of(target).fit(*(None if one is None else cut(one, ends) for one in rows))
    assert len(jobs) == (6 if len(client.nthreads()) == 2 else 1)
    expect_same(here, there, tmp_path)
    shuffled = np.random.RandomState(0).permutation(N)
    cuts = (None if one is None else cut(one.iloc[shuffled], ends) for one in rows)
    other = forest_of(target, oob_score=False).fit(*cuts)
    assert here.trees_.value.tobytes() == other.trees_.value.tobytes()


def test_warm_starts_of_forests_on_workers_add_the_same_trees(client, tmp_path):
    X, y, weight = frames("three", True)
    order = np.random.RandomState(2).permutation(N)
    cuts = [cut(one.iloc[order], [0, 500, 500, N]) for one in (X, y, weight)]
    models = [forest_of("three", oob_score=False, warm_start=True) for _ in range(2)]
    for n_estimators in (5, 9, 9):
        for model, rows in zip(models, [(X, y, weight), cuts], strict=True):
            model.set_params(n_estimators=n_estimators).fit(*rows)
        expect_same(*models, tmp_path)


def log_cosh_slopes(y, score):
    tanh = np.tanh(score - y)
    return tanh, 1 - tanh**2


LOG_COSH = CustomLoss(log_cosh_slopes, lambda y, s: np.logaddexp(s - y, y - s) - np.log(2))
STOPS = {"early_stopping": True, "max_iter": 12, "n_iter_no_change": 2, "learning_rate": 0.5}


@pytest.mark.parametrize(("how", "weighed"), [({}, True), (STOPS, False), ({**STOPS}, True)])
def test_losses_in_python_on_workers(how, weighed, client):
    X, y, weight = frames("numbers", weighed)
    here = model_of("numbers", loss=LOG_COSH, **how).fit(X, y, weight)
    order, ends = np.random.RandomState(7).permutation(N), [0, 200, 200, 1000, N]
    cuts = [None if one is None else cut(one.iloc[order], ends) for one in (X, y, weight)]
    there = model_of("numbers", loss=LOG_COSH, **how).fit(*cuts)
    expect_same(here, there)  # files do not hold functions


def test_wrong_gradients_on_workers_are_refused(client):
    X, y, _ = frames("numbers", False)
    wrong = CustomLoss(lambda y, s: (1.01 * (s - y), y * 0 + 1), lambda y, s: (s - y) ** 2 / 2)
    with pytest.raises(ValueError, match="must return the derivatives of loss") as here:
        model_of("numbers", loss=wrong).fit(X, y)
    ends = [0, 200, 200, 1000, N]
    with pytest.raises(ValueError, match="must return the derivatives of loss") as there:
        model_of("numbers", loss=wrong).fit(cut(X, ends), cut(y, ends))
    assert str(here.value) == str(there.value)


def test_an_error_of_a_loss_on_one_worker_ends_the_fit(client):
    X, y, _ = frames("numbers", False)
    largest = float(y.max())

    def raise_at_largest(y, s):
        if (y == largest).any() and s.std() > 0:
            raise OverflowError("too large")
        return s - y, np.ones(len(y))

    loss = CustomLoss(raise_at_largest, lambda y, s: (s - y) ** 2 / 2)
    ends = [0, 200, 200, 1000, N]
    with pytest.raises(OverflowError, match="too large"):
        model_of("numbers", loss=loss).fit(cut(X, ends), cut(y, ends))


@pytest.fixture(params=[1, 2])
def threads(request):
    """The client of a cluster of one or two workers, which are threads of this process."""
    with (
        distributed.LocalCluster(
            n_workers=request.param, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.mark.parametrize(
    ("target", "columns", "how"),
    [
        ("two", ("w", "g"), {**STOPS, "standard_errors": True}),
        ("three", ("o",), {"standard_errors": True}),
        ("numbers", ("w", "o"), {"standard_errors": True, "quality": "best"}),
        ("numbers", ("o",), {"standard_errors": True, "loss": LOG_COSH}),
        ("numbers", ("w", "o"), {"loss": "huber"}),
        ("numbers", ("o",), {"loss": "absolute_error", **STOPS}),
        ("numbers", ("w", "o"), {"loss": "tweedie"}),
        ("numbers", ("w",), {**STOPS, "quality": "best"}),
        ("two", (), {**STOPS, "quality": "best"}),
    ],
)
def test_fits_on_one_worker_or_two(target, columns, how, threads):
    rows = add_towns(make_table(N, target), 60)
    if how.get("loss") == "tweedie":
        y = np.exp(rows["y"].to_numpy() / 2)
        rows = rows.set_column(rows.column_names.index("y"), "y", pa.array(y))
    frame, y = rows.drop_columns(["y"]).to_pandas(), pd.Series(rows["y"].to_numpy(False))
    frame = frame.astype(dict.fromkeys(("colour", "street", "town"), "category"))
    random, n_outputs = np.random.RandomState(7), 3 if target == "three" else 1
    offset = random.normal(size=(N, n_outputs)).round(1)
    given = {
        "sample_weight": frame["w"] if "w" in columns else None,
        "groups": pd.Series(random.randint(0, 90, N)) if "g" in columns else None,
        "offset": pd.DataFrame(offset).squeeze(axis=1) if "o" in columns else None,
    }
    given = {name: one for name, one in given.items() if one is not None}
    X, order, ends = frame.drop(columns="w"), random.permutation(N), [0, 200, 200, 1000, N]
    here = model_of(target, **how).fit(X, y, **{k: one.to_numpy() for k, one in given.items()})
    X, y = (cut(one.iloc[order], ends) for one in (X, y))
    parts = {name: cut(one.iloc[order], ends) for name, one in given.items()}
    expect_same(here, model_of(target, **how).fit(X, y, **parts))


@pytest.mark.parametrize("target", ["two", "numbers"])
def test_forests_of_groups_on_one_worker_or_two(target, threads):
    X, y, weight = frames(target, True)
    random = np.random.RandomState(7)
    groups = pd.Series(random.randint(0, 90, N)).astype(str)
    how = {"oob_score": False, "max_samples": 0.6}
    here = forest_of(target, **how).fit(X, y, weight, groups=groups)
    order, ends = random.permutation(N), [0, 200, 200, 1000, N]
    *cuts, given = (cut(one.iloc[order], ends) for one in (X, y, weight, groups))
    expect_same(here, forest_of(target, **how).fit(*cuts, groups=given))


@pytest.mark.parametrize("n_workers", [1, 2])
def test_forests_on_one_worker_or_more_are_the_same(n_workers, tmp_path):
    X, y = arrays()
    here = forest_of("two").fit(X, y)
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        given = da.from_array(X, chunks=((600, 0, 700), 3)), da.from_array(y, chunks=500)
        expect_same(here, forest_of("two").fit(*given), tmp_path)


def test_workers_read_the_files_of_forests(client, tmp_path):
    rows = make_table(N, "numbers").drop_columns(["w"])
    folder = write_files(tmp_path / "rows", rows, "parquet")
    here = forest_of("numbers", oob_score=False)
    here.fit(rows.drop_columns(["y"]), rows["y"].to_numpy())
    with resources(client=client):
        there = forest_of("numbers", oob_score=False).fit(folder, "y")
    expect_same(here, there, tmp_path)


@pytest.mark.parametrize("call", [0, 1, 2] if LONG else [2])
def test_parts_of_forests_whose_workers_are_killed_are_made_anew(
    call, mortal, tmp_path, monkeypatch
):
    X, y = arrays()
    here = forest_of("two").fit(X, y)
    given = da.from_array(X, chunks=(400, 4)), da.from_array(y, chunks=400)
    calls = kill_before(monkeypatch, mortal, "run_on_root", call)
    there = forest_of("two").fit(*given)
    assert len(calls) > call
    expect_same(here, there, tmp_path)


def test_columns_of_small_files_are_cut_alike(tmp_path):
    # Of fewer columns Dask joins more of these files.
    rng, frames = np.random.default_rng(0), []
    for k in range(4):
        frame = pd.DataFrame(rng.normal(size=(100, 12)), columns=[f"x{j}" for j in range(12)])
        frame["late"] = (frame["x0"] * frame["x1"] > 0).astype(int)
        frame["weight"] = rng.integers(1, 3, 100).astype(float)
        frame.to_parquet(tmp_path / f"{k}.parquet")
        frames.append(frame)
    rows, expected = dd.read_parquet(tmp_path), pd.concat(frames, ignore_index=True)
    beside = ["late", "weight"]
    model = model_of("two").fit(expected.drop(columns=beside), expected["late"], expected["weight"])
    for given in (
        (rows, "late", "weight"),
        (rows.drop(columns=beside), rows["late"], rows["weight"]),
    ):
        found = model_of("two").fit(*given)
        np.testing.assert_array_equal(found.trees_.value, model.trees_.value)
        assert found.feature_names_in_.tolist() == model.feature_names_in_.tolist()
