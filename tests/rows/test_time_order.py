"""Times of rows: what fits accept, and which rows are the latest."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import TimeSeriesSplit

import certree
import reference
from certree.rows import training_rows
from certree.rows.split import TrainCalibrationSplitter
from certree.rows.time_order import Period, RowTimes


@given(st.data())
def test_the_latest_rows_are_those_that_loops_find(data):
    n = data.draw(st.integers(2, 12))
    times = data.draw(
        st.lists(st.integers(0, 6), min_size=n, max_size=n).filter(lambda t: len(set(t)) > 1)
    )
    groups = data.draw(st.none() | st.lists(st.integers(0, 5), min_size=n, max_size=n))
    n_latest, gap = data.draw(st.integers(1, n)), data.draw(st.integers(0, 3))
    row_times = RowTimes(np.array(times, dtype=float), gap=gap)
    codes = None if groups is None else np.array(groups)
    if not row_times.has_order(codes):
        with pytest.raises(ValueError, match="at least two different values of the latest rows"):
            row_times.split_latest(n_latest, codes)
        return
    expected = reference.split_latest(times, groups, n_latest, gap)
    if not any(expected[0]):
        message = f"leaves no training rows before the {sum(expected[1])} latest rows"
        with pytest.raises(ValueError, match=message):
            row_times.split_latest(n_latest, codes)
        return
    found = row_times.split_latest(n_latest, codes)
    assert [one.tolist() for one in found] == [*expected]
    # Another order of the rows gives the same split.
    order = np.array(data.draw(st.permutations(range(n))))
    moved = row_times.take(order).split_latest(n_latest, None if codes is None else codes[order])
    assert [one.tolist() for one in moved] == [one[order].tolist() for one in found]


@given(st.data())
def test_blocks_of_time_are_those_that_loops_find(data):
    n = data.draw(st.integers(2, 30))
    times = data.draw(
        st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(lambda t: len(set(t)) > 1)
    )
    groups = data.draw(st.none() | st.lists(st.integers(0, 9), min_size=n, max_size=n))
    n_blocks, gap = data.draw(st.integers(2, 10)), data.draw(st.integers(0, 5))
    row_times = RowTimes(np.array(times, dtype=float), gap=gap)
    codes = None if groups is None else np.array(groups)
    if not row_times.has_order(codes):
        with pytest.raises(ValueError, match="at least two different values of the latest rows"):
            row_times.number_blocks(n_blocks, codes)
        return
    block, first_excluded = row_times.number_blocks(n_blocks, codes)
    assert 2 <= len(first_excluded) == block.max() + 1 <= n_blocks
    expected = reference.number_time_blocks(times, groups, n_blocks, gap)
    assert (block.tolist(), first_excluded.tolist()) == expected


def test_groups_of_equal_times_are_named():
    with pytest.raises(ValueError, match="at least two different values of the latest rows"):
        RowTimes(np.array([1.0, 2.0, 2.0])).split_latest(1, np.array([0, 0, 1]))
    with pytest.raises(ValueError, match="at least two different values, got equal times of 3"):
        RowTimes(np.ones(3)).split_latest(1)


def test_blocks_of_time_leave_out_a_time_span():
    days = pd.date_range("2026-01-01", periods=40)
    times = RowTimes.read(days, np.zeros((40, 1)), 40, timedelta(days=6))
    block, first_excluded = times.number_blocks(10)
    assert block.tolist() == (np.arange(40) // 4).tolist()
    # A block of four days knows the days up to six before it, which are in the block before the last.
    assert first_excluded.tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7]


def test_a_gap_may_be_a_time_span():
    days = pd.date_range("2026-01-01", periods=10)
    times = RowTimes.read(days, np.zeros((10, 1)), 10, timedelta(days=3))
    earlier, latest = times.split_latest(2)
    assert np.flatnonzero(latest).tolist() == [8, 9]
    assert np.flatnonzero(earlier).tolist() == [*range(6)]  # labels known after exactly three days
    as_number = RowTimes.read(days, None, 10, np.timedelta64(3, "D")).split_latest(2)[0]
    assert as_number.tolist() == earlier.tolist()


ZONE = pd.date_range("2026-03-28 20:00", periods=8, freq="h", tz="Europe/Zurich")
AS_TIMES = {
    "numbers": list(range(8)),
    "integers": np.arange(8),
    "days": np.datetime64("2026-03-01") + np.arange(8),
    "pandas": ZONE,
    "series": pd.Series(ZONE.tz_convert("UTC")),
    "polars": pl.Series([one.to_pydatetime() for one in ZONE.tz_convert("UTC")]),
    "objects": [one.to_pydatetime() for one in ZONE],
    "dates": [date(2026, 3, day) for day in range(1, 9)],
    "spans": [timedelta(hours=hour) for hour in range(8)],
}


@pytest.mark.parametrize("name", AS_TIMES)
def test_times_of_many_types_give_one_order(name):
    times = RowTimes.read(AS_TIMES[name], np.zeros((8, 1)), 8)
    assert np.argsort(times.values).tolist() == [*range(8)]
    assert times.split_latest(2)[1].tolist() == [False] * 6 + [True] * 2


def test_a_column_of_the_table_is_named():
    X = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=4), "x": range(4)})
    assert RowTimes.read("day", X, 4).values.tolist() == [20454, 20455, 20456, 20457]
    with pytest.raises(ValueError, match="time must name a column of X, got 'date'"):
        RowTimes.read("date", X, 4)
    with pytest.raises(TypeError, match="unless X is a data frame in memory, got the text"):
        RowTimes.read("day", X.to_numpy(), 4)


@pytest.mark.parametrize(
    ("time", "gap", "error", "message"),
    [
        ([1.0, np.nan, 3.0], 0, ValueError, "got NaN or NaT for 1 of 3 rows"),
        (pd.to_datetime(["2026-01-01", None, None]), 0, ValueError, "for 2 of 3 rows"),
        ([1, 2], 0, ValueError, r"time must have shape \(3,\), got \(2,\)"),
        ([1, 2, np.inf], 0, ValueError, "time must be finite"),
        (["a", "b", "c"], 0, TypeError, "time must hold numbers or dates, got text such as"),
        ([True, False, True], 0, TypeError, "time must hold numbers or dates, got bool"),
        ([1, 2, 3], -1, ValueError, "gap must not be negative, got -1"),
        ([1, 2, 3], 1.0, TypeError, r"gap must be an integer \(number of rows\) or a timedelta"),
        ([1, 2, 3], True, TypeError, "gap must be an integer"),
        ([1, 2, 3], timedelta(1), ValueError, "gap must be a number of rows if times are numbers"),
        (None, 1, ValueError, "gap describes rows in time order: pass time"),
    ],
)
def test_other_times_and_gaps_are_refused(time, gap, error, message):
    with pytest.raises(error, match=message):
        RowTimes.read(time, np.zeros((3, 1)), 3, gap)


def test_independence_needs_times():
    with pytest.raises(ValueError, match="independent describes rows in time order"):
        RowTimes.read(None, None, 3, is_independent=True)
    with pytest.raises(TypeError, match="independent must be True or False, got 'yes'"):
        RowTimes.read([1, 2, 3], None, 3, is_independent="yes")


@pytest.mark.parametrize(
    ("time", "span"),
    [
        ([3, 1.5], "from 1.5 to 3"),
        (np.array(["2026-03-03", "2026-04-28"], "M8[D]"), "from 3 March 2026 to 28 April 2026"),
        (
            pd.to_datetime(["2026-03-03 10:00", "2026-03-05 10:00"]),
            "from 3 March 2026 to 5 March 2026",
        ),
        (ZONE[:2], "from 28 March 2026 20:00 to 28 March 2026 21:00"),
        ([datetime(2026, 1, 2, tzinfo=UTC)] * 2, "of 2 January 2026 00:00"),
    ],
)
def test_a_period_is_named_by_its_ends(time, span):
    assert RowTimes.read(time, None, 2).name_period(None).span == span


def test_a_period_of_a_damaged_file_is_refused():
    for text in ("", "a" * 61, "a\nb"):
        with pytest.raises(ValueError, match="first must be printable text"):
            Period(text, "b")


def rows(n=40):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), np.tile([0, 1], n // 2)


def test_certified_fits_split_by_time_and_leave_out_the_gap():
    X, y = rows()
    order = np.random.default_rng(1).permutation(40)
    splitter = TrainCalibrationSplitter(0.5, np.random.RandomState(0))
    model = certree.CertifiedTreeClassifier(duplicates="genuine")
    how = {"time": order, "gap": 3, "row_splitter": splitter}
    split = training_rows(model, X, y, **how)[0].split
    assert sorted(order[split.indices[split.train]]) == [*range(17)]
    assert sorted(order[split.indices[split.calibration]]) == [*range(20, 40)]
    assert split.n_given == 40
    assert split.period == Period("20", "39")
    # Rows of weight zero do not count.
    weight = (order < 30).astype(float)
    split = training_rows(model, X, y, weight, **how)[0].split
    assert sorted(order[split.indices[split.calibration]]) == [*range(15, 30)]


def test_a_group_that_spans_the_boundary_trains_nothing():
    X, y = rows()
    groups = np.arange(40) // 4
    groups[0] = 9  # its latest row is the last one
    splitter = TrainCalibrationSplitter(0.5, np.random.RandomState(0))
    model = certree.CertifiedTreeClassifier(duplicates="genuine")
    training, _ = training_rows(
        model, X, y, groups=groups, time=np.arange(40), row_splitter=splitter
    )
    assert training.split.train.tolist() == [*range(1, 20)]
    assert training.split.calibration.tolist() == [0, *range(20, 40)]
    # Its first row is older than the period, which is that of the latest rows of the groups.
    assert training.split.period == Period("23", "39")
    with pytest.raises(ValueError, match="training rows of groups whose latest rows are from 3 to"):
        training_rows(
            model, X, np.arange(40) < 0, groups=groups, time=np.arange(40), row_splitter=splitter
        )


def test_copies_that_count_once_have_the_latest_time():
    X, y = rows()
    X[30], y[30] = X[2], y[2]
    splitter = TrainCalibrationSplitter(0.5, np.random.RandomState(0))
    model = certree.CertifiedTreeClassifier(duplicates="copies")
    split = training_rows(model, X, y, time=np.arange(40), row_splitter=splitter)[0].split
    assert 2 in split.indices[split.calibration]
    assert len(split.train) + len(split.calibration) == 39


def test_folds_and_validation_sets_have_the_latest_rows():
    X, y = rows()
    order = np.random.default_rng(1).permutation(40)
    model = certree.PrunedTreeClassifier()
    training, _ = training_rows(model, X, y, time=order, gap=2)
    (fold,) = training.split_folds(5, np.random.RandomState(0))
    assert sorted(order[fold.validation]) == [*range(32, 40)]
    assert sorted(order[fold.train]) == [*range(30)]
    small, validation = training.hold_out_rows(0.1, np.random.RandomState(0))
    assert len(validation.y) == 4
    assert len(small.y) == 34
    # Rows of one time have no order among them.
    same = training.take(np.flatnonzero(order < 1).repeat(10))
    assert len(same.split_folds(2, np.random.RandomState(0))) == 2


@pytest.mark.parametrize("cv", [TimeSeriesSplit(3), [([0, 1], [2, 3])]])
def test_splitters_of_the_user_are_refused_with_times(cv):
    X, y = rows()
    for kind in (certree.PrunedTreeClassifier, certree.CertifiedTreeClassifier):
        with pytest.raises(ValueError, match=f"cv must be .* with time, got {type(cv).__name__}"):
            kind(cv=cv).fit(X, y, time=np.arange(40))


def test_one_class_in_a_part_is_refused():
    X, _ = rows()
    with pytest.raises(ValueError, match="two classes among the 14 calibration rows from 26 to 39"):
        certree.CertifiedTreeClassifier().fit(
            X, np.arange(40) % 2 * (np.arange(40) < 20), time=np.arange(40)
        )
    with pytest.raises(ValueError, match="two classes among the 26 training rows from 0 to 25"):
        certree.CertifiedBoostedTreesClassifier().fit(X, np.arange(40) > 30, time=np.arange(40))
    with pytest.raises(
        ValueError, match="at least two different values, got equal times of 40 rows"
    ):
        certree.BoostedTreesClassifier().fit(X, np.arange(40) % 2, time=np.ones(40))
