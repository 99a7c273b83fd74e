"""Fits by time to files and to Dask collections are those to rows in memory, bit by bit."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import certree
from certree.ensembles import out_of_core_boosting, round_schedule
from certree.interface.fitted_state import find_groups_column, find_time_column
from certree.out_of_core import sources
from certree.out_of_core.time_split import TimeArguments

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

N = 900
CART = certree.Cart(max_bins=255, max_leaf_nodes=40)
KINDS = {
    "certified classes": lambda: certree.CertifiedTreeClassifier(CART, random_state=0),
    "certified numbers": lambda: certree.CertifiedTreeRegressor(CART, random_state=0),
    "small": lambda: certree.CertifiedTreeClassifier(CART, max_leaf_nodes=5, random_state=0),
    "balanced": lambda: certree.CertifiedTreeClassifier(
        CART, class_weight="balanced", train_size=0.5, random_state=0
    ),
    "pruned": lambda: certree.PrunedTreeClassifier(CART, random_state=0),
    "boosted": lambda: certree.BoostedTreesClassifier(
        early_stopping=True, max_iter=20, max_leaf_nodes=6, random_state=0
    ),
    "automatic": lambda: certree.BoostedTreesRegressor(max_leaf_nodes=4, random_state=0),
    "few": lambda: certree.BoostedTreesRegressor(max_iter=4, max_leaf_nodes=6, random_state=0),
}


@pytest.fixture
def rows():
    """Return shuffled rows with repeated times: features, target, number, weight and group."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N).round(1)})
    frame["c"] = rng.choice(["x", "y", "z"], N)
    frame["day"] = pd.date_range("2026-01-05 12:00", periods=N // 3, freq="6h").repeat(3)
    frame["number"] = frame["a"] + 0.3 * rng.normal(size=N)
    frame["label"] = np.where(frame["a"] + 0.5 * rng.normal(size=N) > 0, "yes", "no")
    frame["weight"], frame["group"] = rng.integers(0, 4, N), np.arange(N) // 7
    frame.loc[:5, "group"] = frame[
        "group"
    ].max()  # rows of a late group that are older than its period
    return frame.sample(frac=1, random_state=1).reset_index(drop=True)


def fit(model, frame, source, has_more, **how):
    """Fit a model to rows in memory, or, if `source` is given, to files or a collection of them."""
    target = "number" if type(model).__name__.endswith("Regressor") else "label"
    if source is None:
        more = {"sample_weight": frame["weight"], "groups": frame["group"]} if has_more else {}
        X = frame[["a", "b", "c", "day"]].astype({"c": "category"})
        return model.fit(X, frame[target], **more, time="day", **how)
    more = {"sample_weight": "weight", "groups": "group"} if has_more else {}
    return model.fit(source, target, **more, time="day", **how)


def select_columns(frame, model, has_more):
    target = "number" if type(model).__name__.endswith("Regressor") else "label"
    return frame[["a", "b", "c", "day", target, *(["weight", "group"] if has_more else [])]]


def expect_same_fit(one, other, frame):
    X = frame[["a", "b", "c", "day"]]
    predict = "predict_proba" if hasattr(one, "predict_proba") else "predict"
    assert getattr(one, predict)(X).tobytes() == getattr(other, predict)(X).tobytes()
    assert one.effective_sample_size_ == other.effective_sample_size_
    if hasattr(one, "classes_"):
        assert one.sample_hashes_.tobytes() == other.sample_hashes_.tobytes()
    if not hasattr(one, "certificate_"):
        return
    assert one.certificates_ == other.certificates_
    assert one.certificate_.period == other.certificate_.period
    assert (one.full_certificate_ or one.certificate_).period.first != "5 January 2026"
    assert other.certificate_.row_order is None
    if hasattr(one, "calibration_"):
        assert one.calibration_.given.tolist() == other.calibration_.given.tolist()


GAPS = [0, 40, timedelta(days=2)]

# Rows have weights and groups in every second case.
CASES = [
    (name, gap, i % 2 == j)
    for j, name in enumerate(KINDS)
    for i, gap in enumerate(GAPS if name.startswith(("certified", "boosted")) else GAPS[-1:])
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gap", "has_more"), CASES)
def test_files_and_memory_have_the_same_fit_by_time(
    name, gap, has_more, rows, tmp_path, monkeypatch
):
    model = KINDS[name]()
    frame = select_columns(rows, model, has_more)
    files = [tmp_path / f"{i}.parquet" for i in range(3)]
    for file, ends in zip(files, ((0, 100), (100, 100), (100, N)), strict=True):
        frame[slice(*ends)].to_parquet(file)
    here = fit(model, rows, None, has_more, gap=gap)
    for block_rows in (2**19, 170, 90):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        expect_same_fit(here, fit(KINDS[name](), rows, files, has_more, gap=gap), rows)


SQUARED = certree.ensembles.CustomLoss(
    lambda y, raw: (raw - y, np.ones(len(y))), lambda y, raw: (y - raw) ** 2 / 2
)
# Many rows, of which the latest choose the number of rounds: kind of target, parameters and gap.
CHOOSING = {
    "classes": ("label", {"learning_rate": 0.3}, 0),
    "weighted numbers": ("number", {"learning_rate": 0.3}, 40),
    "errors": ("label", {"learning_rate": 0.3, "standard_errors": True}, timedelta(days=2)),
    "best": ("number", {"learning_rate": 0.3, "quality": "best"}, timedelta(days=2)),
    "huber": ("number", {"learning_rate": 0.5, "loss": "huber"}, 0),
    "custom": ("number", {"learning_rate": 0.5, "loss": SQUARED}, 40),
    "quantiles": ("number", {"loss": "quantile", "quantile": [0.2, 0.6]}, 0),
}
# Plans of small tables may have more rounds.
PLAN = {"n_folds": 1, "min_rounds": 2, "max_rounds": 250, "step_factor": 2, "max_leaf_nodes": 5}


@pytest.fixture
def many(monkeypatch):
    """Let 900 rows count as many."""
    plan = round_schedule.RoundPlan(**PLAN, thresholds=(6, None))
    monkeypatch.setattr(round_schedule.RoundSchedule, "plan", lambda *_: plan)
    monkeypatch.setattr(out_of_core_boosting, "_IN_MEMORY", N // 2)


def make_choosing(name):
    target, how, gap = CHOOSING[name]
    kind = certree.BoostedTreesClassifier if target == "label" else certree.BoostedTreesRegressor
    return kind(early_stopping=False, random_state=0, **how), gap


def add_towns(rows):
    """Give the column c more categories than sets of categories have."""
    rows["c"] = "town " + (rows["a"].round(1) + rows.index % 3).astype(str)


def expect_same_choice(one, other, rows):
    assert one.n_iter_ == other.n_iter_
    assert one.thresholds_ == other.thresholds_
    expect_same_fit(one, other, rows)
    if one.standard_errors:
        X = rows[["a", "b", "c", "day"]]
        assert one.predict_std(X).tobytes() == other.predict_std(X).tobytes()


@pytest.mark.parametrize("name", CHOOSING)
def test_the_latest_of_many_rows_choose_rounds_as_in_memory(
    name, many, rows, tmp_path, monkeypatch
):
    has_more = name.startswith(("weighted", "errors", "custom"))
    if name in ("classes", "weighted numbers", "errors"):
        add_towns(rows)
    model, gap = make_choosing(name)
    frame = select_columns(rows, model, has_more)
    files = [tmp_path / f"{i}.parquet" for i in range(3)]
    for file, ends in zip(files, ((0, 100), (100, 100), (100, N)), strict=True):
        frame[slice(*ends)].to_parquet(file)
    here = fit(model, rows, None, has_more, gap=gap)
    assert 1 <= here.n_iter_ < 250 * (2 if name == "quantiles" else 1)
    for block_rows in (2**19, 170, 90):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        there = fit(make_choosing(name)[0], rows, files, has_more, gap=gap)
        expect_same_choice(here, there, rows)


@pytest.mark.parametrize("name", ["certified classes", "pruned", "boosted"])
def test_the_order_of_files_does_not_matter(name, rows, tmp_path):
    found = []
    for folder, seed in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        frame = rows.sample(frac=1, random_state=seed)
        frame = select_columns(frame, KINDS[name](), has_more=False)
        for i, part in enumerate(np.array_split(np.arange(N), 3 + seed)):
            frame.iloc[part].to_parquet(tmp_path / folder / f"{i}.parquet")
        found.append(fit(KINDS[name](), rows, tmp_path / folder, has_more=False))
    X = rows[["a", "b", "c", "day"]]
    assert found[0].predict_proba(X).tobytes() == found[1].predict_proba(X).tobytes()
    if name == "certified classes":
        assert found[0].certificate_ == found[1].certificate_


@pytest.fixture(params=[1, 2])
def client(request):
    with (
        distributed.LocalCluster(
            n_workers=request.param, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_collections_and_memory_have_the_same_fit_by_time(client, rows):
    for name, has_more in (
        ("certified classes", True),
        ("certified numbers", False),
        ("pruned", False),
        ("boosted", True),
    ):
        model = KINDS[name]()
        frame = select_columns(rows, model, has_more).astype({"c": "category"})
        here = fit(model, rows, None, has_more, gap=GAPS[-1])
        data = dd.from_pandas(frame, npartitions=4)
        there = fit(KINDS[name](), rows, data, has_more, gap=GAPS[-1])
        expect_same_fit(here, there, rows)


FORESTS = {
    "classes": lambda: certree.TreeForestClassifier(40, oob_score=True, random_state=0),
    "numbers": lambda: certree.TreeForestRegressor(
        40, oob_score=True, max_samples=6, leaves="shrunk", random_state=0
    ),
    "balanced": lambda: certree.TreeForestClassifier(
        30, class_weight="balanced_subsample", random_state=0
    ),
}


def expect_same_forest(one, other, rows):
    expect_same_fit(one, other, rows)
    assert one.leaves_ == other.leaves_
    if one.oob_score:
        assert one.oob_score_ == other.oob_score_
        name = "oob_decision_function_" if hasattr(one, "classes_") else "oob_prediction_"
        found = getattr(one, name)
        assert 0 < np.isfinite(found).mean() < 0.3
        assert found.tobytes() == getattr(other, name).tobytes()


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize(("gap", "has_more"), [(0, True), (40, False), (timedelta(days=9), True)])
def test_forests_of_files_draw_blocks_of_time(name, gap, has_more, rows, tmp_path, monkeypatch):
    if has_more:
        add_towns(rows)
    frame = select_columns(rows, FORESTS[name](), has_more)
    files = [tmp_path / f"{i}.parquet" for i in range(3)]
    for file, ends in zip(files, ((0, 100), (100, 100), (100, N)), strict=True):
        frame[slice(*ends)].to_parquet(file)
    here = fit(FORESTS[name](), rows, None, has_more, gap=gap)
    for block_rows in (2**19, 170, 90):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        expect_same_forest(here, fit(FORESTS[name](), rows, files, has_more, gap=gap), rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_forests_of_collections_draw_blocks_of_time(client, rows):
    for name, has_more in (("classes", True), ("numbers", False)):
        frame = select_columns(rows, FORESTS[name](), has_more).astype({"c": "category"})
        here = fit(FORESTS[name](), rows, None, has_more, gap=GAPS[-1])
        data = dd.from_pandas(frame, npartitions=4)
        there = fit(FORESTS[name](), rows, data, has_more, gap=GAPS[-1])
        expect_same_forest(here, there, rows)


def test_warm_starts_of_forests_keep_their_blocks_of_time(rows, tmp_path):
    file = write(select_columns(rows, FORESTS["classes"](), has_more=False), tmp_path)
    grown = FORESTS["classes"]().set_params(n_estimators=20, warm_start=True)
    fit(fit(grown, rows, file, False).set_params(n_estimators=40), rows, file, False)
    expect_same_forest(fit(FORESTS["classes"](), rows, None, False), grown, rows)
    grown.set_params(n_estimators=50)
    with pytest.raises(ValueError, match="time or gap are not those of that fit"):
        grown.fit(file, "label")
    with pytest.raises(ValueError, match="time or gap are not those of that fit"):
        fit(grown, rows, file, False, gap=timedelta(days=9))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_latest_rows_of_collections_choose_rounds(client, many, rows):
    add_towns(rows)
    for name, has_more in (("errors", True), ("custom", False)):
        model, gap = make_choosing(name)
        frame = select_columns(rows, model, has_more).astype({"c": "category"})
        here = fit(model, rows, None, has_more, gap=gap)
        data = dd.from_pandas(frame, npartitions=4)
        there = fit(make_choosing(name)[0], rows, data, has_more, gap=gap)
        expect_same_choice(here, there, rows)


def test_warm_starts_with_times_choose_rounds_again(many, rows, tmp_path):
    file = write(select_columns(rows, make_choosing("classes")[0], has_more=False), tmp_path)
    here, there = (make_choosing("classes")[0].set_params(warm_start=True) for _ in range(2))
    for n_rounds in (1, "auto"):
        fit(here.set_params(max_iter=n_rounds), rows, None, False)
        fit(there.set_params(max_iter=n_rounds), rows, file, False)
    assert there.n_iter_ > 1
    expect_same_choice(here, there, rows)


def test_warm_starts_remember_times_and_groups_as_in_memory(rows, tmp_path):
    X = rows[["a", "b", "c", "day"]].astype({"c": "category"})
    model = certree.BoostedTreesClassifier(max_leaf_nodes=4, random_state=0, warm_start=True)
    here, there = model, clone(model)
    for n_rounds, time, groups in ((1, None, None), (2, "day", "group"), (3, None, None)):
        group = None if groups is None else rows["group"]
        here.set_params(max_iter=n_rounds).fit(X, rows["label"], time=time, groups=group)
        columns = ["a", "b", "c", "day", "label", *([] if groups is None else [groups])]
        rows[columns].to_parquet(tmp_path / "rows.parquet")
        there.set_params(max_iter=n_rounds)
        there.fit(tmp_path / "rows.parquet", "label", time=time, groups=groups)
        assert find_time_column(there) == find_time_column(here)
        assert (find_groups_column(there) is None) == (find_groups_column(here) is None)
    assert find_time_column(there) == "day"
    assert find_groups_column(there) == ""


def test_further_guarantees_follow_from_independent_rows(rows, tmp_path):
    frame = select_columns(rows, KINDS["certified classes"](), has_more=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    here = fit(KINDS["certified classes"](), rows, None, False, independent=True)
    there = fit(
        KINDS["certified classes"](), rows, tmp_path / "rows.parquet", False, independent=True
    )
    assert there.certificate_.period.is_independent
    assert str(there.guarantees_.thresholds()) == str(here.guarantees_.thresholds())


def write(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_wrong_times_are_refused_as_in_memory(rows, tmp_path):
    frame = select_columns(rows, KINDS["certified classes"](), has_more=False)
    model = KINDS["certified classes"]()
    equal = frame.assign(day=frame["day"].iloc[0])
    with pytest.raises(ValueError, match="time must have at least two different values, got equal"):
        model.fit(write(equal, tmp_path), "label", time="day")
    gone = frame.assign(day=frame["day"].where(frame.index != 3))
    with pytest.raises(ValueError, match="time must be known for every row"):
        model.fit(write(gone, tmp_path), "label", time="day")
    file = write(frame, tmp_path)
    for one in (model, certree.BoostedTreesClassifier(max_iter=1)):  # the latter reads no times
        with pytest.raises(ValueError, match="time must name a column of X, got 'date'"):
            one.fit(file, "label", time="date")
    with pytest.raises(TypeError, match="time must hold numbers or dates, got text such as"):
        model.fit(file, "label", time="c")
    with pytest.raises(TypeError, match="time must be the name of a column if X is a file"):
        model.fit(file, "label", time=rows["day"])
    with pytest.raises(
        TypeError, match=r"groups .* a column if X is a file.* add the values to the"
    ):
        model.fit(file, "label", time="day", groups=rows["group"])
    with pytest.raises(ValueError, match="gap=5000 leaves no training rows before the 315 latest"):
        model.fit(file, "label", time="day", gap=5000)
    with pytest.raises(ValueError, match="gap describes rows in time order: pass time with it"):
        model.fit(file, "label", gap=3)
    with pytest.raises(ValueError, match="independent describes rows in time order: pass time"):
        model.fit(file, "label", independent=True)
    late = frame["day"].rank(method="dense") > 195
    for label, name in ((late, "calibration"), (~late, "training")):
        one = frame.assign(label=frame["label"].mask(label, "no"))
        message = f"y must have two classes among the .* {name} rows from .*, got only 'no'"
        with pytest.raises(ValueError, match=message):
            model.fit(write(one, tmp_path), "label", time="day")


def copy_rows(rows):
    """Return rows some of which occur several times, also as copies that float32 has rounded."""
    copies = pd.concat([rows, rows[:150], rows[100:250]], ignore_index=True)
    tick = (copies["day"] - copies["day"].min()).dt.total_seconds() / 3600 + 0.1
    rounded = copies[["a", "b"]].astype(np.float32).astype(float)
    copies = copies.assign(tick=tick)
    copies.loc[900:1049, "tick"] = tick[900:1050].astype(np.float32)
    copies.loc[900:1049, ["a", "b"]] = rounded[900:1050]
    return copies.sample(frac=1, random_state=2).reset_index(drop=True)


@pytest.mark.parametrize("has_more", [False, True])
@pytest.mark.parametrize("name", ["certified classes", "certified numbers", "balanced"])
def test_copies_are_merged_at_their_latest_time(name, has_more, rows, tmp_path, monkeypatch):
    rows, make = copy_rows(rows), lambda: KINDS[name]().set_params(duplicates="copies")
    target = "number" if name.endswith("numbers") else "label"
    X, more = rows[["a", "b", "tick"]], {}
    if has_more:
        more = {"sample_weight": rows["weight"] + 1.5, "groups": rows["group"]}
    here = make().fit(X, rows[target], **more, time="tick", gap=30)
    assert here.certificate_.distinct
    named = X.assign(y=rows[target], **more)
    named.to_parquet(tmp_path / "rows.parquet")
    columns = {key: key for key in more}
    for block_rows in (2**19, 170):
        monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", block_rows)
        file = tmp_path / "rows.parquet"
        there = make().fit(file, "y", **columns, time="tick", gap=30)
        predict = "predict_proba" if hasattr(here, "predict_proba") else "predict"
        assert getattr(here, predict)(X).tobytes() == getattr(there, predict)(X).tobytes()
        assert here.certificates_ == there.certificates_
        assert here.certificate_.period == there.certificate_.period
        assert here.effective_sample_size_ == there.effective_sample_size_


BESIDE = [
    *((name, False) for name in ("certified numbers", "automatic")),
    *((name, True) for name in ("certified classes", "pruned", "boosted", "forest")),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_collections_of_times_fit_as_arrays_in_memory(client, rows):
    """The times need not be a column of X, and X may be an array."""
    kinds = {**KINDS, "forest": FORESTS["classes"]}
    data = dd.from_pandas(rows, npartitions=4)
    for name, is_frame in BESIDE:
        y = "number" if type(kinds[name]()).__name__.endswith("Regressor") else "label"
        X, how = rows[["a", "b"]], {"groups": rows["group"], "gap": timedelta(days=2)}
        here = kinds[name]().fit(X if is_frame else X.to_numpy(), rows[y], time=rows["day"], **how)
        given = data[["a", "b"]], data[y], data["group"], data["day"]
        if not is_frame:
            given = [one.to_dask_array(lengths=True) for one in given]
        how["groups"], times = given[2:]
        there = kinds[name]().fit(*given[:2], time=times, **how)
        predict = "predict_proba" if hasattr(here, "predict_proba") else "predict"
        X = X if is_frame else X.to_numpy()
        assert getattr(here, predict)(X).tobytes() == getattr(there, predict)(X).tobytes()
        assert find_time_column(there) is not None
        if hasattr(here, "certificate_"):
            assert here.certificates_ == there.certificates_


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_times_beside_collections_must_be_one(client, rows):
    X = dd.from_pandas(rows[["a", "b"]], npartitions=2).to_dask_array(lengths=True)
    y = dd.from_pandas(rows["number"], npartitions=2).to_dask_array(lengths=True)
    for model in (
        certree.TreeForestRegressor(),
        certree.BoostedTreesRegressor(max_iter=1),
        certree.PrunedTreeRegressor(CART),
    ):
        with pytest.raises(TypeError, match=r"time must be a Dask array for .* Dask data frame"):
            model.fit(X, y, time="day")
        with pytest.raises(TypeError, match=r"time must be a Dask collection, as X, .* got Series"):
            model.fit(X, y, time=rows["day"])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(X, y, time=X[:100, 0])
    with pytest.raises(TypeError, match="time must hold numbers or dates, got text"):
        certree.TreeForestRegressor().fit(X, y, time=X[:, 0].astype(str))


def test_arguments_are_checked():
    assert TimeArguments.read("x.csv", None) is None
    assert TimeArguments.read("x.csv", "day", 3, independent=True) == TimeArguments("day", 3, True)
