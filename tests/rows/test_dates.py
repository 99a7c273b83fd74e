"""Dates of data frames as numbers or parts."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from certree import CertifiedTreeClassifier, PACBayesTreeClassifier
from certree.rows import DateFeatures

LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
every_library = pytest.mark.parametrize("library", LIBRARIES)
ZONE = "Europe/Zurich"
MOMENTS = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))


def accounts():
    """A frame with every kind of dates, one of each missing, and an index of its own."""
    days = [dt.date(2020, 1, 1), None, dt.date(1950, 5, 5)]
    moments = pd.to_datetime(["2024-02-29 13:30:00", None, "1969-12-31 23:59:59"])
    return pd.DataFrame(
        {
            "debt": [1.0, 2.0, 3.0],
            "when": moments.tz_localize(ZONE),
            "day": days,
            "plain": moments.normalize(),
            "span": pd.to_timedelta(["1D", None, "36h"]),
            "word": ["x", "y", None],
        },
        index=[5, 7, 9],
    )


def columns_of(frame):
    """The columns of a frame of any library, as lists by their names."""
    if isinstance(frame, pa.Table):
        return frame.to_pydict()
    if isinstance(frame, pl.DataFrame):
        return frame.to_dict(as_series=False)
    return frame.to_dict("list")


@every_library
def test_dates_are_days_since_1970(library):
    frame = LIBRARIES[library](accounts())
    model = DateFeatures().fit(frame)
    found = columns_of(model.transform(frame))
    assert list(found) == list(model.get_feature_names_out()) == list(accounts())
    noon = dt.datetime(2024, 2, 29, 12, 30)  # in Zurich an hour later
    expected = {
        "when": [(noon - dt.datetime(1970, 1, 1)) / dt.timedelta(1), np.nan, -3601 / 86400],
        "day": [18262.0, np.nan, (dt.date(1950, 5, 5) - dt.date(1970, 1, 1)).days],
        "plain": [19782.0, np.nan, -1.0],
        "span": [1.0, np.nan, 1.5],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(np.array(found[name], dtype=float), values)
    assert found["debt"] == [1.0, 2.0, 3.0]
    assert found["word"][:2] == ["x", "y"]
    if library == "pandas":
        assert list(model.transform(frame).index) == [5, 7, 9]


@every_library
def test_parts_are_those_of_the_clock_there(library):
    frame = LIBRARIES[library](accounts())
    model = DateFeatures("parts").fit(frame)
    found = columns_of(model.transform(frame))
    assert list(found) == list(model.get_feature_names_out())
    assert model.hours_ == {"when"}
    assert model.columns_ == {"when": ZONE, "day": None, "plain": None, "span": "time span"}
    first = {name: values[0] for name, values in found.items()}
    said = [first[f"when_{part}"] for part in ("year", "month", "day", "weekday", "hour")]
    assert said == [2024, 2, 29, 3, 13]
    assert [found[f"day_{part}"][2] for part in ("year", "month", "day", "weekday")] == [
        1950,
        5,
        5,
        4,
    ]
    assert np.isnan(float(found["plain_year"][1]))
    assert found["span"][2] == 1.5
    assert "plain_hour" not in found


@given(st.lists(MOMENTS, min_size=1, max_size=8))
def test_parts_of_moments_are_those_of_the_calendar(moments):
    frame = pd.DataFrame({"t": np.array(moments, dtype="datetime64[us]")})
    found = DateFeatures("parts").fit_transform(frame)
    slow = [(one.year, one.month, one.day, one.weekday()) for one in moments]
    names = ["t_year", "t_month", "t_day", "t_weekday"]
    np.testing.assert_array_equal(found[names], slow)
    if "t_hour" in found:
        np.testing.assert_array_equal(found["t_hour"], [one.hour for one in moments])
    days = DateFeatures().fit_transform(frame)["t"]
    np.testing.assert_allclose(
        days, [(one - dt.datetime(1970, 1, 1)) / dt.timedelta(1) for one in moments], atol=1e-9
    )


@pytest.mark.filterwarnings("ignore::certree.NearCopiesWarning")
def test_it_stands_before_estimators():
    opened = pd.date_range("2020-01-01", periods=600, tz=ZONE)
    frame = pd.DataFrame({"opened": opened, "kind": pd.Categorical(["a", "b"] * 300)})
    y = (opened.day_of_week < 2) ^ (np.arange(600) % 2 == 0)
    model = make_pipeline(DateFeatures("parts"), PACBayesTreeClassifier(random_state=0))
    assert model.fit(frame, y).score(frame, y) == 1.0
    assert sorted(model[-1].categories_.names[-1]) == ["a", "b"]
    certified = CertifiedTreeClassifier(preprocessor=DateFeatures("parts"), random_state=0)
    assert certified.fit(frame, y).certificate_.bound < 0.1
    assert certified.predict(frame[:5]).tolist() == y[:5].tolist()
    with pytest.raises(
        ValueError,
        match=r"'opened' must hold numbers, got dates or times: .* certree.rows.DateFeatures",
    ):
        PACBayesTreeClassifier().fit(frame, y)


def test_rows_without_any_date_are_missing():
    frame = accounts()
    for dates in ("number", "parts"):
        model = DateFeatures(dates).fit(frame)
        row = model.transform(frame[1:2])
        assert row.drop(columns=["debt", "word"]).isna().all(axis=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.assign(when=f["when"].dt.tz_localize(None)),
            "held dates of the time zone Europe",
        ),
        (
            lambda f: f.assign(plain=f["when"]),
            "held dates without a time zone in the fit, and holds",
        ),
        (lambda f: f.assign(plain=f["span"]), "and holds time spans now"),
        (
            lambda f: f.assign(plain=[1.0, 2.0, 3.0]),
            "must hold dates or times, as in the fit, but holds none",
        ),
        (
            lambda f: f.assign(debt=f["plain"]),
            "'debt' must hold no dates or times, as in the fit, but holds some",
        ),
        (lambda f: f.drop(columns="debt"), "X must have the columns of the fit"),
        (lambda f: f.drop(columns="debt").to_numpy(), "X must be a data frame"),
    ],
)
def test_other_rows_than_in_the_fit_are_refused(change, message):
    model = DateFeatures().fit(accounts())
    with pytest.raises(ValueError, match=message):
        model.transform(change(accounts()))


@pytest.mark.parametrize(
    "values",
    [
        [dt.time(12, 0), dt.time(13, 0)],
        pd.period_range("2020-01", periods=2, freq="M"),
        [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2021, 1, 1)],
        [dt.date(2020, 1, 1), "soon"],
    ],
    ids=["times", "periods", "zones", "words"],
)
def test_what_is_no_date_is_refused(values):
    frame = pd.DataFrame(
        {"when": pd.Series(values, dtype=None if hasattr(values, "freq") else object)}
    )
    with pytest.raises(
        ValueError,
        match="'when' must hold dates or time spans of one type, got times without a date",
    ):
        DateFeatures().fit(frame)


def test_settings_and_states_are_checked():
    with pytest.raises(ValueError, match="'dates' parameter of DateFeatures"):
        DateFeatures("years").fit(accounts())
    with pytest.raises(ValueError, match="X must be a data frame"):
        DateFeatures().fit(np.array(["2020-01-01"], dtype="datetime64[D]")[:, None])
    with pytest.raises(NotFittedError):
        DateFeatures().transform(accounts())
    with pytest.raises(ValueError, match="input_features is not equal"):
        DateFeatures().fit(accounts()).get_feature_names_out(["a"])
    assert clone(DateFeatures("parts")).dates == "parts"
