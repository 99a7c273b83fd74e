"""Columns of dates, dates with times and time spans as features."""

import datetime as dt
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import certree
import reference
from certree import (
    BoostedTreesClassifier,
    Cart,
    CertifiedTreeClassifier,
    Grid,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    TreeForestClassifier,
)
from certree.export import check_export
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.rows import DateColumn, TrainCalibrationSplit, training_rows
from certree.rows.dates import convert_dates, count_microseconds, find_zone, learn_dates
from certree.rows.fitted_attributes import restore_features, store_features
from certree.show.tree_summary import summarize_tree
from fuzz.models import ESTIMATORS

LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "pandas with Arrow types": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "pandas objects": lambda frame: frame.astype(
        dict.fromkeys(["when", "plain", "day", "span"], object)
    ),
}
every_library = pytest.mark.parametrize("library", LIBRARIES)
ZONE = "Europe/Zurich"
MOMENTS = st.datetimes(dt.datetime(1791, 1, 1), dt.datetime(2149, 1, 1))
pytestmark = pytest.mark.filterwarnings("ignore::certree.NearCopiesWarning")


def accounts():
    """A frame with every kind of dates, one of each missing, and an index of its own."""
    moments = pd.to_datetime(
        ["2024-02-29 13:30:00", None, "1969-12-31 23:59:59.000001"], format="ISO8601"
    )
    return pd.DataFrame(
        {
            "debt": [1.0, 2.0, 3.0],
            "when": moments.tz_localize(ZONE),
            "day": [dt.date(2020, 1, 1), None, dt.date(1950, 5, 5)],
            "plain": moments,
            "span": pd.to_timedelta(["1D", None, "36h"]),
            "word": ["x", "y", None],
        },
        index=[5, 7, 9],
    )


def many(n=240, seed=0):
    """Many rows like these, with a target that the dates decide."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("2020-01-01", "us")
    moments = pd.to_datetime(start + rng.integers(0, 4 * 10**13, n).astype("timedelta64[us]"))
    frame = pd.DataFrame(
        {
            "debt": rng.normal(size=n).round(2),
            "when": moments.tz_localize("UTC").tz_convert(ZONE),
            "day": [one.date() for one in moments],
            "plain": moments,
            "span": pd.to_timedelta(rng.integers(0, 10**6, n), unit="s"),
            "word": rng.choice(["x", "y", "z"], n),
        }
    )
    y = (moments > pd.Timestamp("2020-09-01")) ^ (rng.random(n) < 0.1)
    frame.loc[::17, "when"] = None
    frame.loc[::19, "day"] = None
    frame.loc[::23, "span"] = None
    return frame, y.astype(int)


# -- conversion ------------------------------------------------------------------------------------


@every_library
def test_dates_are_days_since_1970(library):
    frame = LIBRARIES[library](accounts())
    dates = learn_dates(frame)
    assert dates == {
        1: DateColumn("datetime", ZONE),
        2: DateColumn("date"),
        3: DateColumn("datetime"),
        4: DateColumn("span"),
    }
    found = convert_dates(frame, dates)
    assert type(found) is type(frame)
    noon = dt.datetime(2024, 2, 29, 12, 30)  # in Zurich an hour later
    expected = {
        "when": [(noon - dt.datetime(1970, 1, 1)) / dt.timedelta(1), np.nan, -3600999999 / 864e8],
        "day": [18262.0, np.nan, (dt.date(1950, 5, 5) - dt.date(1970, 1, 1)).days],
        "plain": [19782.5625, np.nan, -999999 / 864e8],
        "span": [1.0, np.nan, 1.5],
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(np.array(found[name], dtype=float), values)
    assert [*found["debt"]] == [1.0, 2.0, 3.0] or found["debt"].to_pylist() == [1.0, 2.0, 3.0]
    if library.startswith("pandas"):
        assert list(found.index) == [5, 7, 9]


@pytest.mark.parametrize("unit", ["Y", "D", "h", "s", "ms", "us", "ns"])
def test_arrays_of_dates_are_days(unit):
    days = np.array([["2021-01-01", "NaT"], ["1969-01-01", "2020-01-01"]], f"M8[{unit}]")
    expected = [[18628.0, np.nan], [-365.0, 18262.0]]
    dates = learn_dates(days)
    kind = "date" if unit in "YD" else "midnight"
    assert dates == {0: DateColumn(kind), 1: DateColumn(kind)}
    np.testing.assert_array_equal(convert_dates(days, dates), expected)
    objects = np.array([["2021-01-01", "x"], ["1969-01-01", "y"]], dtype=object)
    objects[:, 0] = [*days[:, 0]]
    assert learn_dates(objects) == {0: DateColumn(kind)}
    assert convert_dates(objects, {0: DateColumn(kind)}).tolist() == [[18628.0, "x"], [-365.0, "y"]]


def test_time_spans_of_arrays_are_days():
    spans = np.array([[36, "NaT"]], dtype="m8[h]")
    np.testing.assert_array_equal(convert_dates(spans, learn_dates(spans)), [[1.5, np.nan]])


@given(st.lists(MOMENTS, min_size=1, max_size=8))
def test_microseconds_are_kept(moments):
    X = np.array(moments, dtype="M8[us]")[:, None]
    column = DateColumn("datetime")
    days = convert_dates(X, {0: column})[:, 0]
    assert [count_microseconds(one) for one in days] == X[:, 0].astype(np.int64).tolist()
    shown = [dt.datetime.fromisoformat(column.format(one)) for one in days]
    assert shown == moments


@given(st.floats(-70_000, 70_000))
def test_a_threshold_in_microseconds_divides_as_in_days(days):
    count = count_microseconds(days)
    assert count / 86_400e6 <= days < (count + 1) / 86_400e6


def test_dates_too_far_from_1970_are_refused():
    X = np.array([[10**9], [0]]).astype("M8[D]")
    with pytest.raises(
        ValueError, match="feature 0 must hold dates within 100,000,000 days of 1970"
    ):
        PrunedTreeClassifier().fit(X, [0, 1])


@pytest.mark.parametrize(
    ("column", "days", "expected"),
    [
        (DateColumn("date"), 19480.5, "2023-05-03"),
        (DateColumn("date"), -0.5, "1969-12-31"),
        (DateColumn("datetime"), 19480.0, "2023-05-03 00:00:00"),
        (DateColumn("midnight"), 19480.5, "2023-05-03"),
        (DateColumn("datetime"), 19480.5, "2023-05-03 12:00:00"),
        (DateColumn("datetime", ZONE), 19480.5, "2023-05-03 14:00:00+02:00"),
        (DateColumn("datetime", ZONE), 19480 - 2 / 24, "2023-05-03 00:00:00+02:00"),
        (DateColumn("datetime", "+01:30"), 19480.5, "2023-05-03 13:30:00+01:30"),
        (DateColumn("datetime", "UTC-02:00"), 19480.5, "2023-05-03 10:00:00-02:00"),
        (DateColumn("datetime", "Mars/Olympus"), 19480.5, "2023-05-03 12:00:00+00:00"),
        (DateColumn("datetime"), 1e9, "1e+09 days"),
        (DateColumn("span"), 1.5, "1.5 days"),
    ],
)
def test_days_are_written_as_dates(column, days, expected):
    assert column.format(days) == expected


def test_zones_of_objects_are_named():
    fixed = dt.timezone(dt.timedelta(hours=-3, minutes=-30))
    for zone, name in ((ZoneInfo(ZONE), ZONE), (dt.UTC, "UTC"), (fixed, "-03:30")):
        X = np.array([[dt.datetime(2020, 1, 1, tzinfo=zone)]], dtype=object)
        assert learn_dates(X) == {0: DateColumn("datetime", name)}
        now = dt.datetime(2020, 1, 1, 12)
        assert find_zone(name).utcoffset(now) == zone.utcoffset(now)


@pytest.mark.parametrize(
    "values",
    [
        [dt.time(12, 0), dt.time(13, 0)],
        pd.period_range("2020-01", periods=2, freq="M"),
        [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2021, 1, 1)],
        [dt.date(2020, 1, 1), "soon"],
        [dt.date(2020, 1, 1), dt.timedelta(1)],
        [dt.date(2020, 1, 1), 5],
    ],
    ids=["times", "periods", "zones", "words", "spans", "numbers"],
)
def test_what_is_no_date_is_refused(values):
    column = pd.Series(values, dtype=None if hasattr(values, "freq") else object)
    with pytest.raises(
        ValueError, match=r"feature 'when' must hold numbers, dates, .* of one kind"
    ):
        PrunedTreeClassifier().fit(pd.DataFrame({"when": column}), [0, 1])


# -- estimators ------------------------------------------------------------------------------------


def make_estimators():
    for kind in ESTIMATORS:
        if not kind.__name__.startswith("Fourier"):
            yield pytest.param(kind, id=kind.__name__)


@pytest.mark.parametrize("kind", [*make_estimators()])
def test_every_estimator_reads_dates_as_days(kind):
    X, y = many(120)
    few = {"max_iter": 3, "n_estimators": 3, "random_state": 0, "cv": 2}
    few = {name: value for name, value in few.items() if name in kind().get_params()}
    groups = {"group": np.repeat(10, 12)} if kind is certree.BoostedTreesRanker else {}
    if kind.__name__.startswith("Decorated"):
        X = X.ffill().bfill()  # models in leaves take no missing values
    model = kind(**few).fit(X, y, **groups)
    numbers = convert_dates(X, learn_dates(X))
    other = kind(**few).fit(numbers, y, **groups)
    expected = other.predict(numbers)
    predicted = model.predict(X)
    if kind.__name__.startswith("Certified"):
        # Calibration rows may lie between the threshold of the numbers and that of the dates.
        assert np.mean(predicted == expected) > 0.9
    else:
        np.testing.assert_array_equal(predicted, expected)
    # Models in leaves multiply one row in another order of additions than many.
    rtol = 1e-12 if kind.__name__.startswith("Decorated") else 0
    np.testing.assert_allclose(model.predict(X[5:6]), predicted[5:6], rtol=rtol)
    assert {j: one.kind for j, one in model.dates_.items()} == {
        1: "datetime",
        2: "date",
        3: "datetime",
        4: "span",
    }
    assert other.dates_ is None
    assert model.fit(numbers, y, **groups).dates_ is None


@every_library
def test_all_libraries_give_equal_fits(library):
    X, y = many()
    settings = {"max_iter": 5, "random_state": 0}
    model = BoostedTreesClassifier(**settings).fit(X, y)
    expected = model.predict_proba(X)
    table = LIBRARIES[library](X)
    np.testing.assert_array_equal(model.predict_proba(table), expected)
    other = BoostedTreesClassifier(**settings).fit(table, y)
    np.testing.assert_array_equal(other.predict_proba(X), expected)
    assert other.dates_ == model.dates_


@given(st.integers(-20_000, 20_000), st.integers(0, 3))
def test_shifting_all_instants_changes_no_prediction(days, seed):
    X, y = many(60, seed)
    X = X[["debt", "when", "plain", "word"]]
    shift = pd.Timedelta(days=days, microseconds=days)
    moved = X.assign(when=X["when"] + shift, plain=X["plain"] + shift)
    model = PACBayesTreeClassifier(lambda_error=1.0, lambda_penalty=0.1, random_state=0)
    other = clone(model).fit(moved, y)
    model.fit(X, y)
    # Calendar parts, which a shift changes, may be chosen by chance.
    assume(not any(one.parts for fit in (model, other) for one in fit.dates_.values()))
    np.testing.assert_array_equal(other.predict_proba(moved), model.predict_proba(X))


def test_the_last_date_is_one_of_the_training_rows():
    X, y = many()
    model = BoostedTreesClassifier(max_iter=2).fit(X, y)
    assert model.dates_[3].format(model.dates_[3].last) == str(X["plain"].max())
    rows = X.index[:100].to_numpy()
    split = TrainCalibrationSplit(rows, np.arange(100, 240))
    training, learned = training_rows(PrunedTreeClassifier(), X, y, row_splitter=lambda *_: split)
    assert len(training.y) == 240
    assert learned["dates_"][2].last == max(
        (one - dt.date(1970, 1, 1)).days for one in X["day"][:100].dropna()
    )


def test_chosen_categories_may_be_dates():
    X, y = many()
    X["month"] = X["plain"].dt.to_period("M").dt.start_time
    model = PACBayesTreeClassifier(categorical_features=["month", "word"], random_state=0)
    model.fit(X.drop(columns=["when", "plain"]), y)
    assert "2020-09-01 00:00:00" in model.categories_.names[4]
    assert [*model.dates_] == [1, 2]
    assert model.score(X.drop(columns=["when", "plain"]), y) > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.assign(when=f["plain"]),
            "'when' must hold dates with a time zone, .* without",
        ),
        (
            lambda f: f.assign(plain=f["when"]),
            "'plain' must hold dates without .* got dates with a",
        ),
        (lambda f: f.assign(plain=f["span"]), "'plain' must hold dates without .* got time spans"),
        (lambda f: f.assign(span=f["plain"]), "'span' must hold time spans.* got dates without a"),
        (lambda f: f.assign(plain=1.0), "'plain' must hold dates .* got values of type float"),
        (lambda f: f.assign(day="2020-01-01"), "'day' must hold dates .* got values of type str"),
        (lambda f: f.assign(debt=f["plain"]), "'debt' must hold numbers, as in the fit, got dates"),
        (lambda f: f.drop(columns="debt"), "feature names should match"),
        (lambda f: f[[*f.columns[::-1]]], "must be in the same order"),
        (lambda f: f.to_numpy()[:, 1:], "features"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_other_columns_than_in_the_fit_are_refused(change, message):
    X, y = many()
    model = PrunedTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict(change(X))


def test_columns_of_the_same_instants_are_taken():
    X, y = many()
    model = BoostedTreesClassifier(max_iter=5, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    moved = X.assign(
        when=X["when"].dt.tz_convert("Asia/Tokyo"), day=pd.to_datetime(X["day"]), span=X["span"]
    )
    np.testing.assert_array_equal(model.predict_proba(moved), expected)
    missing = X.assign(when=np.nan, day=None, span=pd.NaT)
    nat = X.assign(when=pd.NaT, day=pd.NaT, span=pd.NaT)
    np.testing.assert_array_equal(model.predict_proba(missing), model.predict_proba(nat))


def test_a_float_array_is_no_array_of_dates():
    X, y = many()
    dates = X[["plain"]].to_numpy()
    model = PACBayesTreeClassifier(random_state=0).fit(dates, y)
    with pytest.raises(ValueError, match=r"feature 0 must hold dates .* got values of type float"):
        model.predict(np.array([[19000.0]]))
    assert model.predict(dates.tolist()).tolist() == model.predict(dates).tolist()


def test_preprocessors_get_dates_and_may_return_them():
    X, y = many()

    def add_month(frame):
        return frame.assign(month=frame["plain"].dt.month)

    certified = CertifiedTreeClassifier(preprocessor=FunctionTransformer(add_month), random_state=0)
    certified.fit(X, y)
    assert certified.n_features_in_ == 7
    assert [*certified.dates_] == [1, 2, 3, 4]
    assert certified.score(X, y) > 0.8
    model = make_pipeline(FunctionTransformer(add_month), PACBayesTreeClassifier(random_state=0))
    assert model.fit(X, y).score(X, y) > 0.8


# -- updates, copies and files ---------------------------------------------------------------------


def test_updates_read_dates():
    X, y = many()
    X = X[["plain", "day"]].dropna()
    y = y[X.index]
    box = [[18000.0, 18000.0], [20000.0, 20000.0]]
    settings = {"lambda_error": 1.0, "lambda_penalty": 0.1, "random_state": 0}
    model = PACBayesTreeClassifier(Grid(box), max_depth=6, **settings)
    first, second = slice(0, 100), slice(100, None)
    together = clone(model).fit(X, y)
    updated = clone(model).fit(X[first], y[first]).partial_fit(X[second], y[second])
    merged = clone(model).fit(X[first], y[first]).merge(clone(model).fit(X[second], y[second]))
    for one in (updated, merged):
        np.testing.assert_array_equal(one.predict_proba(X), together.predict_proba(X))
        assert one.dates_ == together.dates_
    np.testing.assert_array_equal(
        updated.forget(X[second], y[second]).predict_proba(X),
        clone(model).fit(X[first], y[first]).predict_proba(X),
    )
    zoned = X.assign(plain=X["plain"].dt.tz_localize("UTC"))
    with pytest.raises(ValueError, match="'plain' must hold dates without a time zone"):
        updated.partial_fit(zoned, y)
    with pytest.raises(ValueError, match="other must be a fit with the same dates"):
        updated.merge(clone(model).fit(zoned, y))


def test_naive_bayes_is_updated_with_dates():
    X, y = many()
    model = NaiveBayesClassifier().partial_fit(X[:100], y[:100], classes=[0, 1])
    model.partial_fit(X[100:], y[100:])
    assert model.dates_ == NaiveBayesClassifier().fit(X, y).dates_
    assert model.score(X, y) > 0.6


def test_rows_of_the_fit_are_recognised_by_their_instants():
    X, y = many()
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    moved = X.assign(when=X["when"].dt.tz_convert("Asia/Tokyo"))
    with pytest.raises(ValueError, match="240 of 240 rows"):
        certree.certify(model, moved, y)
    new, labels = many(seed=1)
    assert certree.certify(model, new, labels).bound < 0.4


def test_repeated_rows_are_found_by_their_instants():
    X, y = many(60)
    twice = pd.concat([X, X.assign(when=X["when"].dt.tz_convert("UTC"))], ignore_index=True)
    twice["when"] = [*X["when"], *X["when"].dt.tz_convert("UTC")]  # objects of two zones
    with pytest.raises(ValueError, match="repeat"):
        CertifiedTreeClassifier(random_state=0).fit(twice, np.r_[y, y])


def test_files_have_dates_only_if_there_are_some(tmp_path):
    X, y = many()
    model = CertifiedTreeClassifier(random_state=0).fit(X, y)
    certree.save(model, tmp_path / "dates.certree")
    loaded = certree.load(tmp_path / "dates.certree")
    assert loaded.dates_ == model.dates_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert "dates" in store_features(model)
    assert "dates" not in store_features(PrunedTreeClassifier().fit(X[["debt", "word"]], y))


@pytest.mark.parametrize(
    "entry",
    [
        [],
        [[9, "date", None, 1.0]],
        [[1, "time", None, 1.0]],
        [[1, "date", 5, 1.0]],
        [[1, "date", None, "x"]],
        [[1, "date", None]],
        [[2, "date", None, 1.0], [1, "date", None, 1.0]],
        "x",
    ],
)
def test_damaged_dates_of_files_are_refused(entry):
    X, y = many()
    stored = store_features(PrunedTreeClassifier().fit(X.drop(columns="word"), y))
    assert restore_features(StoredState(stored, {}))["dates_"][2].kind == "date"
    with pytest.raises(DamagedModelError, match="the model file's dates must"):
        restore_features(StoredState(stored | {"dates": entry}, {}))


# -- data out of core ------------------------------------------------------------------------------


def out_of_core_models():
    binned = Cart(max_bins=255)
    yield BoostedTreesClassifier(max_iter=3, random_state=0)
    yield PACBayesTreeClassifier(binned, random_state=0)
    yield CertifiedTreeClassifier(grower=binned, random_state=0)


@pytest.mark.parametrize("model", [*out_of_core_models()], ids=lambda one: type(one).__name__)
def test_files_give_the_fit_of_memory(model, tmp_path):
    X, y = many()
    table = pa.Table.from_pandas(X.assign(y=y), preserve_index=False)
    folder = tmp_path / "rows"
    folder.mkdir()
    pq.write_table(table.slice(0, 100), folder / "a.parquet")
    pq.write_table(table.slice(100), folder / "b.parquet")
    expected = clone(model).fit(X, y)
    model.fit(str(folder), "y")
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert model.dates_ == expected.dates_


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_of_files_are_those_of_memory(suffix, tmp_path):
    X, y = many()
    X = X.drop(columns="span")  # which CSV files do not have
    model = BoostedTreesClassifier(max_iter=3, random_state=0).fit(X, y)
    path = tmp_path / f"rows.{suffix}"
    if suffix == "csv":
        X.to_csv(path, index=False)
    else:
        X.to_parquet(path)
    certree.predict_files(model, path, tmp_path / "predicted.parquet", batch_size=3)
    found = pq.read_table(tmp_path / "predicted.parquet")["probability_1"].to_numpy()
    np.testing.assert_array_equal(found, model.predict_proba(X)[:, 1])


def test_blocks_of_other_kinds_of_dates_are_refused():
    day, moment = DateColumn("date", last=1.0), DateColumn("datetime", last=2.0)
    assert day + moment == moment + day == DateColumn("datetime", last=2.0)
    zoned = [DateColumn("datetime", zone) for zone in ("UTC", ZONE)]
    assert zoned[0] + zoned[1] == zoned[1] + zoned[0] == DateColumn("datetime", ZONE)
    for one, other in ((day, zoned[0]), (moment, DateColumn("span"))):
        with pytest.raises(ValueError, match="X must hold one kind of dates in a column"):
            one + other


# -- round thresholds ------------------------------------------------------------------------------


@given(st.data())
def test_round_thresholds_are_those_of_the_twin(data):
    start = data.draw(st.sampled_from([0.0, 19_723.0, 19_737.512, -3_000.3]), "start")
    width = data.draw(st.floats(1e-9, 4) | st.sampled_from([1.0, 1 / 24, 1 / 1440, 1e-6]), "width")
    low = start + data.draw(st.floats(0, 1), "shift")
    high, fraction = low + width, data.draw(st.sampled_from([0.5]) | st.floats(0, 1), "fraction")
    threshold = min(low + fraction * width, np.nextafter(high, -np.inf))
    if not low <= threshold < high:
        return
    gap = np.array([[threshold], [low], [high]])
    (found,) = DateColumn("datetime").round_thresholds(*gap)
    assert found == reference.round_threshold(threshold, low, high)
    assert low <= found < high
    for kind in ("date", "midnight", "span"):
        assert DateColumn(kind).round_thresholds(*gap) == [threshold]


def test_thresholds_beyond_all_dates_are_round():
    (found,) = DateColumn("datetime").round_thresholds(
        np.array([19_723.3]), np.array([19_723.2]), np.array([np.inf])
    )
    assert found == 19_724


GROWERS = [
    lambda: PrunedTreeClassifier(random_state=0),
    lambda: PrunedTreeClassifier(Cart(max_bins=64), random_state=0),
    lambda: PrunedTreeClassifier(Cart(splitter="random"), random_state=0),
    lambda: PrunedTreeClassifier("kd", random_state=0),
    lambda: PrunedTreeClassifier("dyadic", random_state=0),
    lambda: PrunedTreeClassifier(DecisionTreeClassifier(random_state=0), random_state=0),
    lambda: BoostedTreesClassifier(max_iter=10, random_state=0),
    lambda: BoostedTreesClassifier(max_iter=10, early_stopping=True, random_state=0),
    lambda: TreeForestClassifier(n_estimators=5, random_state=0),
    lambda: TreeForestClassifier(n_estimators=5, splitter="random", random_state=0),
    lambda: certree.AdaBoostTreeClassifier(n_estimators=5),
]


@pytest.mark.parametrize("make", GROWERS)
@pytest.mark.parametrize("zone", [None, ZONE])
def test_growers_split_on_round_dates(make, zone):
    """Trees of dates and of their days send all rows of the fit to the same leaves."""
    rng = np.random.default_rng(0)
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 30 * 86_400, 300), unit="s")
    at = at if zone is None else at.tz_localize("UTC").tz_convert(zone)
    X = pd.DataFrame({"at": at, "x": rng.normal(size=300)})
    y = ((np.arange(300) % 7 == 0) ^ (X["at"].dt.day > 12) ^ (X["x"] > 1)).astype(int)
    model, other = make().fit(X, y), make().fit(convert_dates(X, learn_dates(X)), y)
    dates, days = (one.tree_ if hasattr(one, "tree_") else one.trees_ for one in (model, other))
    numbers = convert_dates(X, learn_dates(X)).to_numpy(float)
    leaves, other_leaves = (
        one.find_leaves(np.ascontiguousarray(numbers), 1) for one in (dates, days)
    )
    np.testing.assert_array_equal(leaves, other_leaves)
    np.testing.assert_array_equal(dates.feature, days.feature)
    is_date = dates.compares_numbers & (dates.feature == 0)
    is_moved = dates.threshold != days.threshold
    assert is_date.any()
    assert not is_moved[~is_date].any()
    texts = [model.dates_[0].format(one) for one in dates.threshold[is_date]]
    assert all(re.fullmatch(r"[-0-9]{10} [:0-9]{8}([+]01:00)?", one) for one in texts)
    assert np.mean([one[11:19].endswith("00") for one in texts]) > 0.5


def test_early_stopping_scores_the_model_as_it_is():
    rng = np.random.default_rng(0)
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 30 * 86_400, 400), unit="s")
    X, y = pd.DataFrame({"at": at}), (at.day % 3 == 0).astype(int)
    model = BoostedTreesClassifier(max_iter=15, random_state=0)
    model.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    scores = [log_loss(y[40:], one) for one in model.staged_predict_proba(X[40:])]
    expected = model.validation_score_[-len(scores) :]
    np.testing.assert_allclose(np.abs(expected), scores, rtol=1e-9)


# -- words and exports -----------------------------------------------------------------------------


def test_thresholds_are_shown_as_dates():
    days = pd.date_range("2020-01-01", periods=400)
    y = (days < "2020-07-01").astype(int)
    settings = {"lambda_error": 1.0, "lambda_penalty": 0.1, "random_state": 0}
    for opened, shown in (
        (days.date, "2020-06-30"),
        (days, "2020-06-30"),
        (days + pd.Timedelta(hours=6), "2020-06-30 18:00:00"),
        (days.tz_localize("UTC").tz_convert(ZONE), "2020-06-30 14:00:00+02:00"),
        (days - days[0], "181.5 days"),
    ):
        X = pd.DataFrame({"opened": opened})
        model = PACBayesTreeClassifier(**settings).fit(X, y)
        first, last = (f"opened {sign} {shown}" for sign in ("<=", ">"))
        text = model.export_text(max_leaves=2)
        assert first in text
        assert last in text
        assert [rule.condition for rule in model.rules(max_leaves=2)] == [first, last]
        assert first in str(model.path(X[:1]))
    forest = TreeForestClassifier(n_estimators=1, max_features=1.0, random_state=0)
    X = pd.DataFrame({"opened": days.date})
    root = summarize_tree(forest.fit(X, y), 0, X).explainer
    assert root.describe_split(1, 0).startswith("opened <= 2020-0")


def test_explanations_show_dates():
    X, y = many()
    model = BoostedTreesClassifier(max_iter=5, random_state=0).fit(X, y)
    explained = model.explain(X)
    assert f"plain = {X['plain'][0].isoformat(sep=' ')}" in str(explained[:1])
    midnight = X.assign(plain=X["plain"].dt.normalize())
    assert f"plain = {X['plain'][0].date().isoformat()} " in str(model.explain(midnight)[:1])
    arrays = X[["when", "plain"]].assign(when=X["when"].dt.tz_convert(None)).to_numpy("M8[ns]")
    other = BoostedTreesClassifier(max_iter=5, random_state=0).fit(arrays, y).explain(arrays)
    assert f"x[1] = {X['plain'][0].isoformat(sep=' ')}" in str(other[:1])


@pytest.mark.filterwarnings("ignore:Trees and forests of scikit-learn round rows to float32")
@pytest.mark.parametrize("kind", [PACBayesTreeClassifier, BoostedTreesClassifier])
def test_exports_predict_what_the_model_predicts(kind):
    X, y = many()
    model = kind(random_state=0).fit(X, y)
    report = check_export(model, X)
    assert report.all_agree
    assert [*report.skipped] == ["onnx"]  # of float32
    features = model.to_dict()["features"]
    assert features[1]["dates"] == {
        "kind": "datetime",
        "zone": ZONE,
        "unit": "days since 1970-01-01T00:00:00Z",
    }
    assert features[4]["dates"] == {"kind": "span", "zone": None, "unit": "days"}
    assert "dates" not in features[0]


def test_the_warning_of_float32_names_an_export_that_takes_dates():
    X, y = many()
    model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match=r'or to_onnx\("float64", inputs="named"\)\.$'):
        model.to_sklearn()
    model.to_onnx("float64", inputs="named")


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
def test_databases_compare_their_own_dates(database):
    X, y = many()
    model = BoostedTreesClassifier(max_iter=5, random_state=0).fit(X, y)
    table = X.assign(row=range(len(X)), span=X["span"] / pd.Timedelta(days=1))
    statement = model.to_sql("rows", keep=["row"])
    assert "TIMESTAMP" not in statement
    if database == "sqlite":
        with closing(sqlite3.connect(":memory:")) as connection:
            table.assign(when=table["when"].dt.tz_convert("UTC")).to_sql(
                "rows", connection, index=False
            )
            found = connection.execute(statement).fetchall()
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'America/New_York'")
            connection.register("given", pa.Table.from_pandas(table))
            connection.execute("CREATE TABLE rows AS SELECT * FROM given")
            found = connection.execute(statement).fetchall()
    probability = [row[-1] for row in sorted(found)]
    np.testing.assert_allclose(probability, model.predict_proba(X)[:, 1], atol=1e-12)


@pytest.mark.parametrize("ending", ["", ".%f", "+00:00", ".%f+00:00"])
def test_a_statement_reads_dates_in_text_of_the_documented_form(ending):
    minutes = pd.to_timedelta(np.random.default_rng(0).integers(0, 3000, 400), unit="min")
    when = pd.Timestamp("2024-03-30", tz="Europe/Zurich") + minutes
    X = pd.DataFrame({"when": when, "plain": when.tz_localize(None)})
    model = BoostedTreesClassifier(max_iter=5, random_state=0).fit(X, minutes.seconds > 40_000)
    texts = X.assign(
        row=range(len(X)),
        when=when.tz_convert("UTC").strftime(f"%Y-%m-%d %H:%M:%S{ending}"),
        plain=X["plain"].dt.strftime("%Y-%m-%d %H:%M:%S"),
    )
    with closing(sqlite3.connect(":memory:")) as connection:
        texts.to_sql("rows", connection, index=False)
        found = connection.execute(model.to_sql("rows", keep=["row"])).fetchall()
    probability = [row[-1] for row in sorted(found)]
    np.testing.assert_allclose(probability, model.predict_proba(X)[:, 1], atol=1e-12)


def test_pages_and_docstring_state_the_form_of_dates_in_text():
    form, docs = "YYYY-MM-DD HH:MM:SS", Path(__file__).parents[2] / "docs"
    for page in ("guide/exports.md", "howto/deploy.md"):
        text = (docs / page).read_text(encoding="utf-8")
        assert re.search(rf"\*\*[^*]*`{form}`[^*]*UTC[^*]*\*\*", text), page
    assert form in BoostedTreesClassifier.to_sql.__doc__


def test_frames_of_dask_give_the_fit_of_memory():
    dask = pytest.importorskip("dask.dataframe")
    X, y = many()
    X = X.drop(columns="day")  # Dask makes texts of Python's dates
    X.loc[:80, "plain"] = None
    collection = dask.from_pandas(X.assign(y=y), npartitions=3)
    settings = {"max_iter": 3, "random_state": 0}
    model = BoostedTreesClassifier(**settings).fit(collection, "y")
    expected = BoostedTreesClassifier(**settings).fit(X, y)
    assert model.dates_ == expected.dates_
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    lazy = model.predict_proba(collection.drop(columns="y"))
    np.testing.assert_array_equal(np.asarray(lazy.compute()), expected.predict_proba(X))


def test_dates_at_midnight_are_dates_until_a_block_has_a_time(tmp_path):
    days = pd.date_range("2020-01-01", periods=400)
    y, times = (days < "2020-07-01").astype(int), days + pd.to_timedelta([0] * 399 + [30], unit="m")
    whole, other, none = (
        learn_dates(pd.DataFrame({"a": column}))[0]
        for column in (days, times, pd.Series([pd.NaT] * 3))
    )
    assert (whole.kind, other.kind, none.kind) == ("midnight", "datetime", "midnight")
    assert (whole + other).kind == (other + whole).kind == (none + other).kind == "datetime"
    assert (DateColumn("date") + whole).kind == (whole + none).kind == "midnight"
    assert whole.takes(other)
    for column, kind in ((days, "midnight"), (times, "datetime")):
        frame = pd.DataFrame({"a": column, "y": y})
        for k in range(2):
            frame[200 * k : 200 * k + 200].to_parquet(tmp_path / f"{k}.parquet")
        model = BoostedTreesClassifier(max_iter=3, random_state=0)
        there = clone(model).fit(tmp_path, "y")
        here = model.fit(frame[["a"]], y)
        assert here.dates_[0].kind == there.dates_[0].kind == kind
        np.testing.assert_array_equal(
            here.predict_proba(frame[["a"]]), there.predict_proba(frame[["a"]])
        )
        assert ("hour" in str(here.dates_)) <= (kind == "datetime")
    tree = PrunedTreeClassifier().fit(pd.DataFrame({"a": days}), y)
    assert "a <= 2020-06-30:" in tree.export_text()
    assert check_export(tree, pd.DataFrame({"a": days})).all_agree
    certree.save(tree, tmp_path / "tree.certree")
    assert certree.load(tmp_path / "tree.certree").dates_ == tree.dates_
