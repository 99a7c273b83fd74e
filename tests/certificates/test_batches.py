"""Rows in files certify as the same rows in memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, feather, parquet
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import certree
from certree import BoostedTreesClassifier, CertifiedTreeClassifier, PrunedTreeRegressor, certify
from certree.certificates import Guarantees
from certree.out_of_core import sources

WRITERS = {
    "parquet": parquet.write_table,
    "arrow": feather.write_feather,
    "csv": csv.write_csv,
}


def drawn(n, seed):
    """Rows with a number, a word and two classes."""
    rng = np.random.default_rng(seed)
    a, kind = rng.normal(size=n), np.array(["x", "y", "z"])[rng.integers(0, 3, n)]
    label = np.where((a > 0) & (kind != "z") ^ (rng.random(n) < 0.1), "yes", "no")
    return pd.DataFrame({"key": np.arange(n), "a": a, "kind": kind, "label": label})


def split(rows):
    return rows[["a", "kind"]], rows["label"].to_numpy()


@pytest.fixture(scope="module")
def model():
    return BoostedTreesClassifier(max_iter=3, random_state=0).fit(*split(drawn(300, 0)))


@pytest.fixture(params=[*WRITERS])
def folder(request, tmp_path):
    """Rows in three files of a folder, and the same in memory."""
    rows = drawn(600, 1)
    for k in range(3):
        part = pa.Table.from_pandas(rows.iloc[k * 200 : (k + 1) * 200], preserve_index=False)
        WRITERS[request.param](part, str(tmp_path / f"{k}.{request.param}"))
    return tmp_path, rows


def test_a_folder_its_files_and_a_data_set_certify_as_rows_in_memory(model, folder):
    place, rows = folder
    expected = certify(model, *split(rows), 0.1)
    files = sorted(place.iterdir())
    assert certify(model, place, "label", 0.1) == expected
    assert certify(model, str(place), "label", 0.1) == expected
    assert certify(model, files, "label", 0.1) == expected
    assert (
        certify(model, dataset.dataset(files, format=files[0].suffix[1:]), "label", 0.1) == expected
    )
    one = certify(model, files[0], y="label", look=2)
    assert one == certify(model, *split(rows.iloc[:200]), look=2)


def test_groups_of_files_are_a_column(model, tmp_path):
    rows = drawn(600, 1).assign(customer=[f"c{i // 7}" for i in range(600)])
    for k in range(3):
        rows.iloc[k * 200 : (k + 1) * 200].to_csv(tmp_path / f"{k}.csv", index=False)
    found = certify(model, tmp_path, "label", groups="customer")
    assert found.n == 86
    assert found == certify(model, *split(rows), groups=rows["customer"])
    for groups, error, message in (
        ("nix", ValueError, "groups must name columns of .* no column 'nix'"),
        ("a", ValueError, "groups must name a column that is no feature"),
        (rows["customer"], TypeError, "groups must be the name of a column if X is a file"),
    ):
        with pytest.raises(error, match=message):
            certify(model, tmp_path, "label", groups=groups)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_times_of_files_are_a_column(form, tmp_path, monkeypatch):
    old, rows = draw_over_time(300, 0), draw_over_time(600, 1)
    for k in range(3):
        part = pa.Table.from_pandas(rows.iloc[k * 200 : (k + 1) * 200], preserve_index=False)
        WRITERS[form](part, str(tmp_path / f"{k}.{form}"))
    monkeypatch.setitem(sources.FileRows.__init__.__kwdefaults__, "block_rows", 170)
    for features in (["a", "kind"], ["a", "kind", "day"]):
        model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(old[features], old["label"])
        X, y = rows[features], rows["label"]
        for time in ("day", "tick"):
            for how in ({}, {"independent": True}, {"look": 2}):
                found = certify(model, tmp_path, "label", time=time, **how)
                assert found == certify(model, X, y, time=rows[time], **how)
                assert found.period.is_independent == ("independent" in how)
        found = certify(model, tmp_path, "label", time="day", groups="shop")
        assert found == certify(model, X, y, time=rows["day"], groups=rows["shop"])
    for how, error, message in (
        ({"time": "date"}, ValueError, "time must name a column of X, got 'date'"),
        ({"time": "kind"}, TypeError, "time must hold numbers or dates, got text such as"),
        (
            {"time": rows["day"]},
            TypeError,
            "time must be the name of a column if X is a file.* add the",
        ),
        ({"independent": True}, ValueError, "independent describes rows in time order"),
    ):
        with pytest.raises(error, match=message):
            certify(model, tmp_path, "label", **how)


def draw_over_time(n, seed):
    """Return shuffled rows with days, numbers of times, and groups."""
    day = pd.date_range("2026-01-05", periods=n // 3, freq="6h").repeat(3)
    more = {"day": day, "tick": np.arange(n) // 5, "shop": np.arange(n) // 7}
    return drawn(n, seed).assign(**more).sample(frac=1, random_state=seed)


@pytest.mark.slow
def test_dask_frames_certify_by_names_of_columns():
    dd = pytest.importorskip("dask.dataframe")
    old, rows = draw_over_time(300, 0), draw_over_time(600, 1)
    data, y = dd.from_pandas(rows, npartitions=4, sort=False), rows["label"]
    for features in (["kind", "a"], ["a", "kind", "day"]):
        model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(old[features], old["label"])
        X = rows[features]
        assert certify(model, data, "label") == certify(model, X, y)
        for time in ("day", "tick"):
            expected = certify(model, X, y, time=rows[time], look=2)
            for given in (time, data[time], rows[time], rows[time].to_numpy()):
                assert certify(model, data, "label", time=given, look=2) == expected
        expected = certify(model, X, y, time=rows["day"], groups=rows["shop"])
        for labels in (data["label"], y, y.to_numpy()):
            for groups in ("shop", data["shop"], rows["shop"]):
                assert certify(model, data, labels, time="day", groups=groups) == expected
    more = dd.concat([data.partitions[[0]], data.partitions[[1]].query("a > 100")])
    first = rows.iloc[: len(data.partitions[0])]
    expected = certify(model, first[features], first["label"], time=first["day"])
    assert certify(model, more, "label", time="day") == expected  # one partition is empty
    for arguments, error, message in (
        (("nix",), ValueError, "y must be a column of X, got 'nix'"),
        (
            (y[:-1],),
            ValueError,
            "y must have a value for each row of X, got 599 values, but",
        ),
        (("label", {"time": "date"}), ValueError, "time must name a column of X, got 'date'"),
        (
            ("label", {"time": "kind"}),
            TypeError,
            "time must hold numbers or dates, got text such as",
        ),
        (("label", {"time": [*rows["tick"], 1]}), ValueError, "time must .* 601 .* fewer rows"),
        (("label", {"groups": "a"}), ValueError, "groups must name a column that is no feature"),
        (("kind",), ValueError, "y must name a column that is no feature"),
        (("label", {"independent": True}), ValueError, "independent describes rows in time order"),
    ):
        with pytest.raises(error, match=message):
            certify(model, data, arguments[0], **dict(*arguments[1:]))
    with pytest.raises(ValueError, match="X must have a column 'a', as the classifier was fitted"):
        certify(model, data[["kind", "day", "label"]], "label", time="day")
    with pytest.raises(TypeError, match="classifier must have classes_ if X is not in memory"):
        certify(Without(), data, "label")


class Without:
    """A classifier without `classes_`."""

    def predict(self, X):
        return np.zeros(len(X))


def test_dask_arrays_certify_with_arrays_of_times():
    da = pytest.importorskip("dask.array")
    old, rows = draw_over_time(300, 0), draw_over_time(600, 1)
    features, y, day = rows[["a", "tick"]].to_numpy(), rows["label"].to_numpy(), rows["day"]
    X = da.from_array(features, chunks=(170, 1))
    for kind in (DecisionTreeClassifier(max_depth=3), BoostedTreesClassifier(max_iter=3)):
        model = kind.set_params(random_state=0).fit(old[["a", "tick"]].to_numpy(), old["label"])
        expected = certify(model, features, y, time=day)
        for times in (day, da.from_array(day.to_numpy(), chunks=100)):
            for labels in (y, da.from_array(y, chunks=600)):
                assert certify(model, X, labels, time=times) == expected
    with pytest.raises(TypeError, match="time must be a Dask array for a Dask array X"):
        certify(model, X, y, time="day")


def test_times_of_batches_are_joined():
    old, rows = drawn(300, 0), drawn(600, 1)
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(*split(old))
    day = pd.date_range("2026-01-05", periods=600, freq="6h")
    ends = [(0, 100), (100, 100), (100, 600)]
    batches = [split(rows[a:b]) for a, b in ends]
    times = [day[a:b] for a, b in ends if a < b]
    how = {"groups": [np.arange(a, b) for a, b in ends], "independent": True}
    found = Guarantees.by_batches(model, batches, times=times, **how)
    expected = Guarantees.by_rows(
        model, *split(rows), time=day, groups=range(600), independent=True
    )
    assert found.certificate == expected.certificate
    assert str(found.thresholds()) == str(expected.thresholds())
    dependent = Guarantees.by_batches(model, batches, times=times)
    assert dependent.certificate == certify(model, *split(rows), time=day)
    with pytest.raises(ValueError, match="pass independent=True with time"):
        dependent.thresholds()
    with pytest.raises(ValueError, match="got both numbers and dates"):
        Guarantees.by_batches(model, batches, times=[times[0], np.arange(500)])


def test_copies_have_the_time_of_the_latest_one():
    """As in fits, although the first one is kept."""
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(*split(drawn(300, 0)))
    rows = drawn(200, 1)
    rows = pd.concat([rows, rows[:50]])
    day = pd.date_range("2026-01-05", periods=250, freq="D")
    found = certify(model, *split(rows), duplicates="copies", time=day)
    assert (found.n, found.period.first) == (200, "24 February 2026")
    assert found.period.last == "11 September 2026"


def test_the_method_takes_files_too(folder):
    place, rows = folder
    model = CertifiedTreeClassifier(random_state=0).fit(*split(drawn(300, 0)))
    assert model.certify(place, "label") == model.certify(*split(rows))
    assert model.certify(X=place, y="label", delta=0.2) == model.certify(*split(rows), 0.2)


def test_classifiers_of_scikit_learn_are_certified(folder):
    place, rows = folder
    old = drawn(300, 0)
    for found in (DecisionTreeClassifier(max_depth=2), LinearSVC()):
        found.fit(old[["a"]], old["label"])
        assert certify(found, place, "label") == certify(found, rows[["a"]], rows["label"])


def test_codes_that_look_like_numbers_are_strings_as_in_the_fit(tmp_path):
    def draw(n, seed):
        rows = drawn(n, seed)
        return rows.assign(kind=rows["kind"].map({"x": "1", "y": "01", "z": "3A"}))

    rows = draw(400, 1)
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(*split(draw(300, 0)))
    some = rows[rows["kind"] != "3A"]
    some.to_csv(tmp_path / "rows.csv", index=False)
    assert certify(model, tmp_path, "label") == certify(model, *split(some))


def test_rows_of_the_fit_are_refused(folder):
    place, rows = folder
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(*split(rows))
    with pytest.raises(ValueError, match="600 rows also occur among those of the fit"):
        certify(model, place, "label")
    at_files = BoostedTreesClassifier(max_iter=3, random_state=0).fit(place, "label")
    with pytest.raises(ValueError, match="600 rows also occur among those of the fit"):
        certify(at_files, place, "label")


def test_what_files_cannot_certify_is_said(model, folder):
    place, rows = folder
    X, y = split(rows)
    with pytest.raises(TypeError, match=r"y must be the name of a column .* got ndarray"):
        certify(model, place, y)
    with pytest.raises(ValueError, match="no column 'lable'"):
        certify(model, place, "lable")
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        certify(model, place / "none", "label")
    other = BoostedTreesClassifier(max_iter=2).fit(X.rename(columns={"a": "b"}), y)
    with pytest.raises(ValueError, match="X must have a column 'b'"):
        certify(other, place, "label")
    with pytest.raises(TypeError, match="must predict classes, got the regressor PrunedTree"):
        certify(PrunedTreeRegressor().fit(X, np.arange(600.0)), place, "label")
    with pytest.raises(ValueError, match="must hold classes among"):
        certify(DecisionTreeClassifier().fit(X[["a"]], y), place, "kind")
    odd = place.parent / "odd.csv"
    rows.assign(label=[*y[:-1], "Yes"]).to_csv(odd, index=False)
    with pytest.raises(ValueError, match=r"classes among \['no', 'yes'\], got \['Yes'\]"):
        certify(model, odd, "label")


def test_files_without_rows_are_refused(model, tmp_path):
    empty = pa.Table.from_pandas(drawn(2, 0), preserve_index=False).slice(0, 0)
    parquet.write_table(empty, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="at least one row"):
        certify(model, tmp_path, "label")


def test_lazy_frames_of_polars_are_refused(model):
    pl = pytest.importorskip("polars")
    frame = pl.from_pandas(drawn(300, 2))
    X, y = frame.select("a", "kind"), frame["label"].to_numpy()
    refused = pytest.raises(
        TypeError, match=r"X must be rows in memory, got a lazy .*\.collect\(\)"
    )
    with refused:
        certify(model, X.lazy(), y)
    with refused:
        model.predict(X.lazy())
    kinds = [certree.PrunedTreeClassifier, certree.NaiveBayesClassifier, certree.BoostedTreesRanker,
             certree.ensembles.ConformalBandRegressor, BoostedTreesClassifier]  # fmt: skip
    for kind in kinds:
        with pytest.raises(TypeError, match=r"X must be .*\.collect\(\)"):
            kind().fit(X.lazy(), y)
        if kind is not certree.BoostedTreesRanker:
            with pytest.raises(TypeError, match=r"y must be .*\.collect\(\)"):
                kind().fit(X, frame.select("label").lazy())
