"""Calendar parts of dates: month, day, weekday and hour."""

import datetime as dt
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import certree
import reference
from certree import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    CertifiedForestClassifier,
    CertifiedTreeClassifier,
    Grid,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
    PrunedTreeRegressor,
    TreeForestClassifier,
    TreeForestRegressor,
)
from certree.explain import interaction_fractions, shap_trees, shapley_values
from certree.export import check_export
from certree.interface.stored_state import DamagedModelError
from certree.rows import DateColumn, TrainCalibrationSplit, training_rows
from certree.rows.calendar_parts import (
    DatePart,
    DateSample,
    LocalTime,
    choose_parts,
    compute_utc_offsets,
    find_transitions,
)
from certree.show import model_card, plot_regions, report
from certree.show.waterfall import create_waterfall

PARTS = ("month", "day", "weekday", "hour")
ZONES = ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "+05:30", None]
MOMENTS = st.datetimes(dt.datetime(1791, 1, 1), dt.datetime(2149, 1, 1))
EPOCH = dt.datetime(1970, 1, 1)
ZONE = "Europe/Zurich"
pytestmark = pytest.mark.filterwarnings("ignore::certree.NearCopiesWarning")


def make_orders(n=1500, zone=ZONE, seed=0, years=5):
    """A table of orders whose dates, to the hour, are spread over some years; one is missing."""
    rng = np.random.default_rng(seed)
    moments = pd.Timestamp("2018-01-01", tz="UTC") + pd.to_timedelta(
        rng.integers(0, int(years * 365.25 * 24), n), unit="h"
    )
    opened = pd.Series(moments.tz_convert(zone) if zone else moments.tz_localize(None))
    opened[7] = pd.NaT
    return pd.DataFrame(
        {"size": rng.normal(size=n), "opened": opened, "city": rng.choice(["x", "y"], n)}
    )


def is_weekend(X):
    return (X["opened"].dt.day_of_week >= 5).to_numpy()


def mix_parts(X, seed=0):
    """A numeric target on which all parts act."""
    opened, noise = X["opened"].dt, np.random.default_rng(seed).normal(size=len(X)) / 5
    effects = [opened.day_of_week >= 5, opened.month > 10, opened.day < 6, opened.hour > 15]
    return np.sum([one.to_numpy(dtype=float) for one in effects], axis=0) + noise


def count_days(moments):
    counts = [
        np.nan if one is None else (one - EPOCH) / dt.timedelta(microseconds=1) for one in moments
    ]
    return np.array(counts) / 86_400e6


# -- values


@given(st.lists(st.none() | MOMENTS, min_size=1, max_size=8), st.sampled_from(ZONES))
def test_parts_are_those_of_python(moments, zone):
    local = LocalTime.read(count_days(moments), zone)
    for part in PARTS:
        expected = [reference.read_calendar_part(one, zone, part) for one in moments]
        np.testing.assert_array_equal(local.compute(part), expected)


@pytest.mark.parametrize("zone", ZONES)
def test_parts_at_the_edges_of_days_and_of_daylight_saving(zone):
    hours = [dt.datetime(2024, 3, 31), dt.datetime(2024, 10, 27), dt.datetime(1900, 2, 28, 12)]
    hours += [dt.datetime(2100, 2, 28, 12), dt.datetime(1969, 12, 31, 12), dt.datetime(2000, 2, 28)]
    steps = [dt.timedelta(minutes=20 * k) for k in range(150)]
    last = dt.timedelta(microseconds=1)
    moments = [hour + step - edge for hour in hours for step in steps for edge in (last, 0 * last)]
    local = LocalTime.read(count_days(moments), zone)
    for part in PARTS:
        expected = [reference.read_calendar_part(one, zone, part) for one in moments]
        np.testing.assert_array_equal(local.compute(part), expected)


def test_offsets_far_from_now_are_those_at_the_ends_of_pythons_years():
    seconds = np.array([-(10**12), 10**12])
    assert compute_utc_offsets(seconds, ZONE).tolist() == [2048, 3600]
    starts, offsets = find_transitions(ZONE, 5)
    assert len(starts) == len(offsets) > 10
    assert (np.diff(starts) > 0).all()


def test_thresholds_are_months_and_weekdays():
    column = DateColumn("datetime")
    assert DatePart(0, "month", column).format(10.5) == "Oct"
    assert DatePart(0, "weekday", column).format(5.5) == "Fri"
    assert DatePart(0, "hour", column).format(8.5) == "8"
    assert DatePart(0, "day", column).format(15.0) == "15"
    assert DatePart(0, "weekday", column).format(7.5) == "Sun"
    assert DatePart(0, "weekday", column).format(0.5) == "0"
    assert DatePart(0, "month", column).format(1e300) == "1e+300"


# -- choice


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_choice_is_that_of_the_loops(kind, seed):
    rng = np.random.default_rng(seed)
    days = 17_000 + rng.uniform(0, 900, 120)
    column = DateColumn("datetime", ZONE)
    local = LocalTime.read(days, ZONE)
    effect = (local.count("weekday") > 5) + (local.count("hour") > 12) * (seed % 2)
    y = effect + rng.normal(size=120) / 3
    y = (y > 0.5).astype(np.int32) if kind == "classes" else y
    sample = DateSample.draw(days, y, rng.uniform(1, 2, 120))
    local = LocalTime.read(sample.days, ZONE)
    codes = {part: local.count(part).tolist() for part in PARTS if part != "month"}
    if len(np.unique(local.count_cycle("month"))) > 2:
        codes["month"] = local.count("month").tolist()
    expected = reference.choose_calendar_parts(
        sample.days.tolist(), codes, sample.y.tolist(), sample.weight.tolist()
    )
    assert set(choose_parts(column, sample)) == set(expected)


def test_parts_are_chosen_where_the_target_has_them():
    days = LocalTime.read(np.arange(17_000, 18_500) + 0.3, None)
    sample = {"days": np.arange(17_000, 18_500) + 0.3, "weight": np.ones(1500)}
    noise = np.random.default_rng(0).normal(size=1500) / 2
    date = DateColumn("date")
    for part, largest in (("month", 10), ("day", 20), ("weekday", 5)):
        y = (days.count(part) > largest) + noise
        assert choose_parts(date, DateSample(y=y, **sample)) == (part,)
        assert choose_parts(DateColumn("span"), DateSample(y=y, **sample)) == ()


TRENDS = {
    "line": lambda u, _: u,
    "noisy line": lambda u, rng: u + rng.normal(size=len(u)) / 5,
    "step": lambda u, _: (u > 0.4).astype(np.int32),
    "growth": lambda u, rng: np.exp(3 * u) + rng.normal(size=len(u)),
    "noise": lambda u, rng: (rng.random(len(u)) < 0.5).astype(np.int32),
}


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("years", [0.1, 1, 8])
def test_trends_get_no_parts(trend, years):
    rng = np.random.default_rng(5)
    u = rng.random(1500)
    days = 17_000 + 365.25 * years * u
    sample = DateSample.draw(days, TRENDS[trend](u, rng), None)
    assert choose_parts(DateColumn("datetime", ZONE), sample) == ()


def test_samples_of_blocks_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    days, y, weight = rng.integers(0, 3000, 12_000) / 4, rng.normal(size=12_000), rng.random(12_000)
    days[::50] = np.nan
    whole = DateSample.draw(days, y, weight)
    order = rng.permutation(12_000)
    blocks = order[:9000], order[9000:]
    first, last = (DateSample.draw(days[rows], y[rows], weight[rows]) for rows in blocks)
    for name in ("days", "y", "weight"):
        np.testing.assert_array_equal(getattr(last + first, name), getattr(whole, name))
    assert len(whole.days) == 10_000


# -- models


@pytest.mark.parametrize("zone", [ZONE, "UTC", None])
def test_a_fit_learns_weekdays(zone):
    X = make_orders(zone=zone)
    model = PrunedTreeClassifier(random_state=0).fit(X, is_weekend(X))
    assert model.dates_[1].parts == ("weekday",)
    assert model.score(X, is_weekend(X)) == 1
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["size", "opened", "city"]
    np.testing.assert_array_equal(model.feature_importances_, [0, 1, 0])
    assert model.is_categorical_.tolist() == [False, False, True]
    text = model.export_text()
    assert "weekday of opened <= Fri" in text
    assert "weekday of opened > Fri" in text
    later = X.assign(opened=X["opened"] + pd.Timedelta(days=7 * 400))
    np.testing.assert_array_equal(model.predict(later), is_weekend(later))


def test_weekdays_are_those_of_the_time_zone_of_the_fit():
    X = make_orders(zone="Asia/Tokyo")
    model = PrunedTreeClassifier(random_state=0).fit(X, is_weekend(X))
    assert model.score(X.assign(opened=X["opened"].dt.tz_convert("UTC")), is_weekend(X)) == 1


def test_arrays_without_names_have_parts():
    X = make_orders(zone=None)
    rows = X[["opened"]].to_numpy("M8[us]")
    model = PrunedTreeClassifier(random_state=0).fit(rows, is_weekend(X))
    assert "weekday of x[0] <= Fri" in model.export_text()
    assert model.score(rows, is_weekend(X)) == 1
    assert model.to_dict()["features"][1]["name"] == "weekday of x0"


MODELS = {
    "boosted": lambda: BoostedTreesRegressor(max_iter=10, random_state=0),
    "tree": lambda: PrunedTreeRegressor(random_state=0),
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_order_of_rows_and_other_rows_do_not_matter(kind):
    X = make_orders(600)
    y = mix_parts(X)
    model = MODELS[kind]().fit(X, y)
    assert model.dates_[1].parts
    order = np.random.default_rng(1).permutation(len(X))
    other = MODELS[kind]().fit(X.iloc[order], y[order])
    assert other.dates_ == model.dates_
    expected = model.predict(X)
    np.testing.assert_array_equal(other.predict(X), expected)
    for i in (0, 7, 8):
        assert model.predict(X[i : i + 1]) == expected[i]


def test_a_missing_date_is_missing_in_all_parts():
    X = make_orders(400)
    model = BoostedTreesRegressor(max_iter=3, random_state=0).fit(X, mix_parts(X))
    encoded = model._encode_new_rows(X[7:9])
    assert encoded.shape[1] == 3 + len(model.dates_[1].parts)
    assert np.isnan(encoded[0, 3:]).all()
    assert not np.isnan(encoded[1, 3:]).any()


def test_explanations_are_of_the_users_columns():
    X = make_orders(600)
    model = BoostedTreesRegressor(max_iter=10, random_state=0).fit(X, mix_parts(X))
    predicted = model.predict(X[:5])
    for explained in (model.explain(X[:5]), shapley_values(model, X[:5], background=X[:50])):
        assert list(explained.feature_names) == ["size", "opened", "city"]
        added = explained.contributions.sum(axis=2)[:, 0]
        np.testing.assert_allclose(explained.base[..., 0] + added, predicted)
    for kind in ("gain", "split"):
        assert model.importance(kind).shape == (3,)
    shuffled = model.importance("permutation", X=X, y=mix_parts(X))
    assert shuffled.argmax() == 1
    names = interaction_fractions(model, X[:200]).feature_names
    assert names[:3] == ("size", "opened", "city")
    assert "weekday of opened" in names
    with pytest.raises(ValueError, match="shapley_values"):
        shap_trees(model, X[:50])


def test_printed_explanations_show_the_parts_that_the_model_reads():
    X = make_orders(600)
    model = BoostedTreesClassifier(max_iter=10, random_state=0).fit(X, is_weekend(X))
    assert model.dates_[1].parts == ("weekday",)
    shown = X.assign(opened=X["opened"].mask(X.index > 1)).iloc[:3]
    shown.loc[0, "opened"] = pd.Timestamp("2022-09-15 23:58", tz="UTC")  # Friday in Zurich
    shown.loc[1, "opened"] = pd.Timestamp("2022-09-17 00:00", tz=ZONE)
    explained = model.explain(shown)
    assert explained.calendar_parts == {1: ["Fri", "Sat", ""]}
    assert [explained.format_values(i)[1][-5:] for i in (0, 1)] == ["(Fri)", "(Sat)"]
    assert explained.format_values(2)[1] == "missing"
    assert "opened = 2022-09-17 (Sat)" in str(explained[1:2])
    found = shapley_values(model, shown, background=X[:50])
    assert "opened = 2022-09-17 (Sat)" in str(found[1])
    assert "(Sat)" in " ".join(bar.name for bar in create_waterfall(found, 1).bars)
    everything = BoostedTreesRegressor(max_iter=5, random_state=0).fit(X, mix_parts(X))
    assert everything.dates_[1].parts == PARTS
    assert "(Sep, day 17, Sat, hour 0)" in everything.explain(shown).format_values(1)[1]


def test_out_of_bag_importances_shuffle_parts_with_their_date():
    X = make_orders(600)
    y = is_weekend(X)
    forest = TreeForestClassifier(10, random_state=0).fit(X, y)
    rises = forest.out_of_bag_importances(X, y)
    assert rises.shape == (3,)
    assert rises[1] > 0.2
    assert rises.argmax() == 1


def test_plots_of_regions_have_parts_as_features():
    X = make_orders(600)
    model = PrunedTreeClassifier(random_state=0).fit(X, is_weekend(X))
    figure = plot_regions(model, X, features=["opened", "weekday of opened"], at={"city": "x"})
    assert figure.axes[0].get_ylabel() == "weekday of opened"


def test_constraints_hold_for_parts():
    X = make_orders(600)
    y = mix_parts(X)
    free = BoostedTreesRegressor(max_iter=5, random_state=0)
    constrained = BoostedTreesRegressor(max_iter=5, random_state=0, monotonic_cst=[0, 1, 0])
    assert not constrained.fit(X, y).dates_[1].parts
    names = {"size": 1}
    assert free.set_params(monotonic_cst=names).fit(X, y).dates_[1].parts
    apart = BoostedTreesRegressor(max_iter=5, random_state=0, interaction_cst="no_interactions")
    apart.fit(X, y)
    assert apart.dates_[1].parts
    for tree in apart.trees_:
        assert len(set(apart._get_owners()[tree.feature[~tree.is_leaf]])) <= 1


@pytest.mark.parametrize(
    "model",
    [
        BoostedTreesRegressor(max_iter=5),
        TreeForestRegressor(5),
        PrunedTreeRegressor(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_messages_on_monotonic_constraints_name_the_category(model):
    X = make_orders(600)
    y = mix_parts(X)
    for constraints in ({"city": -1}, [0, 0, -1]):
        with pytest.raises(ValueError, match=r"monotonic_cst must be 0 .* got -1 for feature 'cit"):
            clone(model).set_params(monotonic_cst=constraints).fit(X, y)
    with pytest.raises(ValueError, match=r"monotonic_cst must have shape \(3,\), got \(2,\)"):
        clone(model).set_params(monotonic_cst=[1, 0]).fit(X, y)
    with pytest.raises(ValueError, match="got -1 for feature 2"):
        clone(model).set_params(monotonic_cst=[0, 0, -1]).fit(X.to_numpy(dtype=object), y)


@pytest.mark.parametrize("group", [[3], [4], [-1], [0.5]])
def test_groups_of_features_hold_the_users_columns_only(group):
    X = make_orders(600)
    model = BoostedTreesRegressor(max_iter=5, interaction_cst=[group, [0, 1]])
    with pytest.raises(ValueError, match=r"interaction_cst must .* = \[0, 2\], got invalid"):
        model.fit(X, mix_parts(X))
    assert model.set_params(interaction_cst=[[2], [0, 1]]).fit(X, mix_parts(X)).dates_[1].parts


def test_reports_and_cards_count_the_users_columns(tmp_path):
    X = make_orders(600)
    y = is_weekend(X)
    model = BoostedTreesClassifier(max_iter=5, random_state=0).fit(X, y)
    assert model.dates_[1].parts
    assert "from 3 features." in model_card(model, X, y)
    report(model, X, y, tmp_path / "report.html")
    assert "from 3 features." in (tmp_path / "report.html").read_text()


def test_rows_that_certify_choose_no_parts():
    X = make_orders(1500)
    y = is_weekend(X)
    model = CertifiedTreeClassifier(train_size=0.5, random_state=0).fit(X, y)
    assert model.dates_[1].parts == ("weekday",)
    rows = np.arange(len(X))
    split = TrainCalibrationSplit(rows[:900], rows[900:])
    tree = PrunedTreeClassifier()
    for target in (y, np.where(rows < 900, y, ~y), np.where(rows < 900, rows % 2, y)):
        learned = training_rows(tree, X, target, row_splitter=lambda *_: split)[1]
        expected = () if target.dtype != bool else ("weekday",)
        assert learned["dates_"][1].parts == expected
    for estimator in (
        CertifiedForestClassifier(5, random_state=0),
        NaiveBayesClassifier(),
        PACBayesTreeClassifier(Grid([[-9, 9], [0, 30_000]]), max_depth=2),
    ):
        assert not estimator.fit(X[["size", "opened"]].ffill(), y).dates_[1].parts


# -- files, exports


def test_model_files_hold_parts(tmp_path):
    X = make_orders(600)
    for model in (
        TreeForestClassifier(5, random_state=0),
        BoostedTreesClassifier(max_iter=5, random_state=0),
        PACBayesTreeClassifier(random_state=0),
    ):
        model.fit(X, is_weekend(X))
        certree.save(model, tmp_path / "model.certree")
        loaded = certree.load(tmp_path / "model.certree")
        assert loaded.dates_ == model.dates_
        assert loaded.dates_[1].parts == ("weekday",)
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)


def test_stored_records_are_checked():
    column = DateColumn("datetime", ZONE, 5.0, ("month", "hour"))
    assert DateColumn.from_stored(column.to_stored()) == column
    assert DateColumn.from_stored(["date", None, 5.0]) == DateColumn("date", None, 5.0)
    for entry in (
        ["datetime", ZONE, 5.0, ["hour", "month"]],
        ["datetime", ZONE, 5.0, ["year"]],
        ["datetime", ZONE, 5.0, "month"],
        ["span", None, 5.0, ["month"]],
    ):
        with pytest.raises(DamagedModelError):
            DateColumn.from_stored(entry)


@pytest.mark.parametrize("zone", ["America/New_York", "+05:30", None])
def test_exports_compute_parts(zone):
    X = make_orders(800, zone=zone)
    model = BoostedTreesRegressor(max_iter=10, random_state=0).fit(X, mix_parts(X))
    assert len(model.dates_[1].parts) == 4
    far = pd.Timestamp("1900-01-02", tz="UTC") + pd.to_timedelta(
        np.random.default_rng(0).integers(0, 200 * 365 * 86_400, 300), unit="s"
    )
    rows = X[:300].assign(opened=far.tz_convert(zone) if zone else far.tz_localize(None))
    rows.loc[5, "opened"] = pd.NaT
    report = check_export(model, rows)
    assert report.all_agree
    assert {"dict", "onnx_float64", "sqlite", "duckdb"} <= {*report.exports}
    assert model.to_dict()["features"][3]["part"] == {"of": 1, "name": "month"}
    for export in (model.to_sklearn, lambda: model.to_code("c")):
        with pytest.raises(ValueError, match=r"parts of 'opened'.*to_onnx"):
            export()


@pytest.mark.parametrize("database", ["sqlite", "duckdb"])
def test_databases_read_parts_of_their_own_dates(database):
    X = make_orders(500)
    X["day"] = X["opened"].dt.tz_localize(None).dt.date
    model = BoostedTreesClassifier(max_iter=5, random_state=0).fit(X, is_weekend(X))
    statement = model.to_sql("rows", keep=["row"])
    table = X.assign(row=range(len(X)))
    if database == "sqlite":
        with closing(sqlite3.connect(":memory:")) as connection:
            utc = table.assign(opened=table["opened"].dt.tz_convert("UTC"))
            utc.to_sql("rows", connection, index=False)
            found = connection.execute(statement).fetchall()
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'America/St_Johns'")
            connection.register("given", pa.Table.from_pandas(table))
            connection.execute("CREATE TABLE rows AS SELECT * FROM given")
            found = connection.execute(statement).fetchall()
    probability = [row[-1] for row in sorted(found)]
    np.testing.assert_allclose(probability, model.predict_proba(X)[:, 1], atol=1e-12)


def test_frames_of_dask_give_the_parts_of_memory():
    dask = pytest.importorskip("dask.dataframe")
    X = make_orders(900)
    y = mix_parts(X)
    expected = BoostedTreesRegressor(max_iter=3, random_state=0).fit(X, y)
    assert expected.dates_[1].parts
    for n_blocks in (2, 5):
        collection = dask.from_pandas(X.assign(y=y), npartitions=n_blocks)
        model = BoostedTreesRegressor(max_iter=3, random_state=0).fit(collection, "y")
        assert model.dates_ == expected.dates_
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
