"""Times of rows: read them, split rows into earlier and later ones, and name a period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from numbers import Integral
from reprlib import repr as shortened
from typing import Any, NoReturn, Protocol, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int32, Int64, to_array
from certree.interface.signatures import validate_settings
from certree.rows.columns import as_data_frame, has_times, to_float64_column
from certree.rows.dates import MICROSECONDS_PER_DAY, DateColumn, read_dates, to_local_time
from certree.rows.folds import Indices, number_groups
from certree.tables.column_names import suggest_names

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
# Periods shorter than this number of days are named with the time of day.
_SHORT_PERIOD = 2.0
# Longest text of a time that a model file may hold.
_MOST_CHARACTERS = 60
# Sets of rows: the latest ones, earlier ones, and those of the gap between both.
LATEST, EARLIER, GAP = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Period:
    """The period whose rows certify a model, and whether these rows are taken as independent.

    The value of the field `period` of a `Certificate`.

    Parameters
    ----------
    first, last : str
        Earliest and latest time of the rows, as text such as "3 March 2026". A group of rows that
        depend on each other has the time of its latest row only.
    is_independent : bool
        True: the user stated that rows (or groups) of the period are independent draws from one
        source. False: they may depend on earlier ones.

    Raises
    ------
    ValueError
        If a text is empty, longer than 60 characters or not printable.
    """

    first: str
    last: str
    is_independent: bool = False

    def __post_init__(self) -> None:
        validate_settings(self)
        for name, text in (("first", self.first), ("last", self.last)):
            if not (1 <= len(text) <= _MOST_CHARACTERS and text.isprintable()):
                raise ValueError(
                    f"{name} must be printable text of 1 to {_MOST_CHARACTERS} characters, got "
                    f"{text[:100]!r}"
                )

    @property
    def span(self) -> str:
        """Words that follow "rows": "from 3 March 2026 to 28 April 2026", or "of 3 March 2026"."""
        return (
            f"of {self.first}" if self.first == self.last else f"from {self.first} to {self.last}"
        )

    def describe(self, *, has_groups: bool) -> str:
        """Return words that follow "rows", such as "of 3 March 2026"; that is `span`.

        has_groups: whether rows have groups. Then return words that follow "groups of rows": "whose
        latest rows are " and `span`, as a group has the time of its latest row.
        """
        return f"whose latest rows are {self.span}" if has_groups else self.span


def may_depend(period: Period | None) -> bool:
    """Return whether the rows of a time period may depend on each other.

    period: period of the calibration rows. Return False if it is None, or if the user has stated
    by ``independent=True`` that its rows are independent.
    """
    return period is not None and not period.is_independent


def has_independent_period(model: Any) -> bool:
    """Return whether a model was fitted with times and ``independent=True``.

    The user states by ``independent=True`` that the calibration rows are independent draws, although
    they come from one time period. model: a fitted estimator. Return False if it has no certificate,
    or was fitted without times.
    """
    period = getattr(getattr(model, "certificate_", None), "period", None)
    return period is not None and not may_depend(period)


def has_dependent_rows(source: Any) -> bool:
    """Return whether calibration rows may depend on each other: they have groups, or a period.

    Rows of a period that the user stated to be independent do not count. source: object with the
    attributes `grouped` and `period`, such as a certificate or a calibration set.
    """
    return bool(source.grouped or may_depend(source.period))


@dataclass(frozen=True, slots=True, eq=False)
class RowTimes:
    """Times of the n rows of a fit, and the arguments gap and independent that belong to them.

    `read` makes an instance.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Time of each row: days since 1970 for dates, else the numbers themselves. No value is
        missing.
    dates : DateColumn or None
        Kind and time zone of the dates; None: times are numbers.
    gap : int or timedelta
        Rows to leave out between earlier and later rows: their number, or the time that they span.
    is_independent : bool
        Whether the user stated that rows of one period are independent draws.
    """

    values: Float64
    dates: DateColumn | None = None
    gap: int | timedelta = 0
    is_independent: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.values)

    @classmethod
    def read(
        cls, time: Any, X: Any, n: int, gap: Any = 0, is_independent: bool = False
    ) -> Self | None:
        """Check the arguments time, gap and independent of `fit`; return None if time is None.

        Parameters
        ----------
        time : array-like of shape (n,), str or None
            Times: numbers, dates, or the name of such a column of X.
        X : array-like or data frame of n rows
            Rows as the user passed them.
        n : int
            Number of rows.
        gap : int or timedelta
            Rows to leave out between earlier (training) and later (calibration or validation) rows:
            their number, or the time that they span. 0: none.
        is_independent : bool
            The argument `independent` of `fit`: whether the user states that rows of one period are
            independent draws.

        Returns
        -------
        RowTimes or None
            The times as numbers, with the gap; None if `time` is None.

        Raises
        ------
        TypeError
            If `time` holds other values, or names a column although X is no data frame; or if `gap`
            or `is_independent` is of another type.
        ValueError
            If `time` has another length, has a missing or infinite time, or names no column; if
            `gap` is negative, or a time span although times are numbers; or if `gap` or
            `is_independent` is set without times.
        """
        if not isinstance(is_independent, bool | np.bool_):
            raise TypeError(f"independent must be True or False, got {is_independent!r}")
        if time is None:
            if is_independent or not (isinstance(gap, Integral) and gap == 0):
                name = "independent" if is_independent else "gap"
                raise ValueError(f"{name} describes rows in time order: pass time with it")
            return None
        column = time if isinstance(time, str) else None
        if column is not None:
            time = _get_column(column, X)
        dates, values = _read_times(time, n, column)
        return cls.from_numbers(values, dates, gap, is_independent)

    @classmethod
    def from_numbers(
        cls, values: Float64, dates: DateColumn | None, gap: Any, is_independent: bool
    ) -> Self:
        """Return the times of rows whose time column has been converted to numbers; check `gap`.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)
            Times of the rows; days for dates.
        dates : DateColumn or None
            Type and time zone of the dates; None: times are numbers.
        gap : int or timedelta
            Rows to leave out between earlier and later rows: their number, or the time that they
            span.
        is_independent : bool
            Whether rows of one period are independent draws; without it, bounds allow dependence.

        Raises
        ------
        TypeError, ValueError
            As `read` does, if `gap` is wrong.
        """
        return cls(values, dates, _check_gap(gap, dates), bool(is_independent))

    @classmethod
    def read_batches(cls, batches: Sequence[Any], is_independent: bool) -> Self:
        """Return the times of the rows of all batches of a table, of which there is at least one.

        batches: for each batch its times, an array of numbers or dates, or its `RowTimes`;
        is_independent: whether rows of one period are independent draws. The result has no gap (0
        rows). Raise ValueError or TypeError if a batch has other values or missing times, and
        ValueError if batches hold different kinds of times.
        """
        blocks: list[Any] = [
            one if isinstance(one, cls) else cls.read(one, None, len(one), 0, is_independent)
            for one in batches
        ]
        values = np.concatenate([one.values for one in blocks])
        return cls.from_numbers(
            values, join_dates([one.dates for one in blocks]), 0, is_independent
        )

    def has_order(self, groups: NDArray[Any] | None) -> bool:
        """Return whether at least two rows, or groups, have different times.

        groups: group of each row, (n,), which has the time of its latest row; None: no groups.
        """
        _, of_units = self._find_unit_times(groups)
        return bool((of_units != of_units[:1]).any())

    def expect_order(self, groups: NDArray[Any] | None) -> None:
        """Raise a ValueError if all rows, or groups, have the same time.

        groups: group of each row, (n,), which has the time of its latest row; None: no groups.
        """
        if not self.has_order(groups):
            raise_for_equal_times(self.n, has_groups=groups is not None)

    def take(self, indices: Indices) -> Self:
        """Return the times of some rows. indices: indices of the rows, (m,)."""
        return replace(self, values=self.values[indices])

    def merge(self, first: Indices) -> Self:
        """Return times in which the first of equal rows has the latest time of these rows.

        The other times do not change. first: index of the first row that equals each row, (n,).
        """
        values = self.values.copy()
        np.maximum.at(values, first, self.values)
        return replace(self, values=values)

    def _find_unit_times(self, groups: NDArray[Any] | None) -> tuple[Float64, Float64]:
        """Return the time of each row or of its group, (n,), and the time of each group.

        groups: group of each row, (n,); a group has the time of its latest row. The second array
        has one entry for each group, in the order of their sorted names. Without groups both arrays
        are `values`.
        """
        if groups is None:
            return self.values, self.values
        names, group = number_groups(groups)
        of_groups = np.full(len(names), -np.inf)
        np.maximum.at(of_groups, group, self.values)
        return of_groups[group], of_groups

    def split_latest(
        self, n_latest: int, groups: NDArray[Any] | None = None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Split rows, or whole groups, into earlier and later ones, and leave out the gap.

        The gap has the last rows before the later ones: so many rows, or those within a time span,
        as the attribute `gap` says (0: there is none). Rows of one time stay together, so that the
        number of later rows is as near to `n_latest` as times allow; of two equally near numbers it
        is the larger one. A group has the time of its latest row. The order of the rows in the table
        does not matter.

        Parameters
        ----------
        n_latest : int
            Wanted number of later rows, or of later groups.
        groups : ndarray of shape (n,), or None
            Group of each row; None: rows have no groups.

        Returns
        -------
        is_earlier, is_latest : ndarray of bool, shape (n,)
            Rows of both sets. Rows of the gap are in neither.

        Raises
        ------
        ValueError
            If all times are equal, or the gap leaves no earlier rows.
        """
        time, of_units = self._find_unit_times(groups)
        rows = SortedTimes.count(time)
        units = rows if groups is None else SortedTimes.count(of_units)
        sets = find_time_cut(units, rows, n_latest, self.gap).assign(time)
        return sets == EARLIER, sets == LATEST

    def number_blocks(
        self, n_blocks: int, groups: NDArray[Any] | None = None
    ) -> tuple[Int32, Int32]:
        """Divide rows, or whole groups, into blocks of consecutive times of about equal sizes.

        Rows of one time are in one block, so that there may be fewer blocks than `n_blocks`; there
        are at least two. A group has the time of its latest row. The order of the rows in the table
        does not matter.

        Parameters
        ----------
        n_blocks : int
            Wanted number of blocks, at least 2.
        groups : ndarray of shape (n,), or None
            Group of each row; None: rows have no groups.

        Returns
        -------
        block : ndarray of int32, shape (n,)
            Number of each row's block, 0, 1, ... in the order of time.
        first_excluded : ndarray of int32, shape (number of blocks,)
            For each block b the earliest block that a model applied to b must not be fitted on: the
            earliest one with rows in the gap before b, or b itself if there are none. The gap has
            the last rows before b: so many rows, or those within a time span, as `gap` says.

        Raises
        ------
        ValueError
            If all times are equal.
        """
        time, of_units = self._find_unit_times(groups)
        self.expect_order(groups)
        distinct, n_each = np.unique(of_units, return_counts=True)
        middle = np.cumsum(n_each) - (n_each + 1) / 2
        number = np.unique((middle * n_blocks / len(of_units)).astype(int), return_inverse=True)[1]
        block = number[np.searchsorted(distinct, time)].astype(np.int32)
        starts = distinct[np.flatnonzero(np.diff(number, prepend=-1))]
        rows = SortedTimes.count(time)
        first_excluded = [
            block[time >= _find_gap_start(rows, start, self.gap)].min() for start in starts
        ]
        return block, np.array(first_excluded, dtype=np.int32)

    def name_period(self, groups: NDArray[Any] | None) -> Period:
        """Return the `Period` from the earliest to the latest of these times.

        groups: group of each row, (n,), which has the time of its latest row, as in `split_latest`:
        its earlier rows may be older than the period. None: no groups.
        """
        _, of_units = self._find_unit_times(groups)
        first, last = float(of_units.min()), float(of_units.max())
        has_hours = self.dates is not None and self.dates.has_hours
        with_hours = has_hours and last - first < _SHORT_PERIOD
        earliest, latest = (_format_time(one, self.dates, with_hours) for one in (first, last))
        return Period(earliest, latest, self.is_independent)


def join_dates(dates: Sequence[DateColumn | None]) -> DateColumn | None:
    """Return the kind and time zone of the times of all blocks of rows; None if all are numbers.

    dates: kind and time zone of the times of each block that has rows; None: its times are numbers.
    If kinds differ, return the most general one: dates with times of day. If zones differ, return
    the first one by name. Raise a ValueError if some blocks have numbers, time spans, or dates
    without a zone, and others do not.
    """
    known = [one for one in dates if one is not None]
    if 0 < len(known) < len(dates):
        raise ValueError(
            f"time must hold numbers or dates, got both numbers and {known[0].description} in "
            "different blocks of rows: convert the numbers to dates"
        )
    return sum(known[1:], start=known[0]) if known else None


def is_before_gap(time: Float64, cut: float, gap: timedelta) -> NDArray[np.bool_]:
    """Return a mask (n,), True for times (in days, (n,)) at least the time span `gap` before `cut`."""
    before = np.rint((cut - time) * MICROSECONDS_PER_DAY)
    return np.asarray(before >= gap / timedelta(microseconds=1))


@dataclass(frozen=True, slots=True)
class TimeCut:
    """Boundaries between earlier and later rows, or groups.

    Parameters
    ----------
    end : float
        Rows before this time are the earlier ones.
    first_latest : float
        Rows from this time on are the latest ones. Rows between both are in the gap.
    """

    end: float
    first_latest: float

    def assign(self, time: Float64) -> NDArray[np.uint8]:
        """Return the set of each row, (n,): 0 for the latest rows, 1 for earlier ones, 2 for the gap.

        These are the constants `LATEST`, `EARLIER` and `GAP`. time: time of each row, (n,).
        """
        sets = np.full(len(time), GAP, dtype=np.uint8)
        sets[time < self.end] = EARLIER
        sets[time >= self.first_latest] = LATEST
        return sets


class TimeStatistics(Protocol):
    """Order statistics of n times, of one table or of blocks; a protocol without a constructor."""

    @property
    def n(self) -> int:
        """Number of times."""
        ...

    def find_at_rank(self, rank: int) -> float:
        """Return entry `rank` of all n times in ascending order; the earliest time has rank 0."""
        ...

    def count_around(self, value: float) -> tuple[int, int]:
        """Return how many times are before `value`, and how many are before or at it."""
        ...

    def find_next(self, value: float) -> float | None:
        """Return the earliest time after `value`; None if there is none."""
        ...

    def find_gap_start(self, cut: float, gap: timedelta) -> float:
        """Return the earliest time that is less than `gap` before `cut`; `cut` if there is none."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SortedTimes:
    """Order statistics of times in memory; see `TimeStatistics`.

    Parameters
    ----------
    distinct : ndarray of float64, shape (k,)
        The distinct times, ascending.
    n_before : ndarray of int64, shape (k + 1,)
        How many times are before each of them, and the number of all times.
    """

    distinct: Float64
    n_before: Int64

    @classmethod
    def count(cls, times: Float64, counts: Int64 | None = None) -> Self:
        """Sort times, (m,), and count equal ones.

        counts: how often each entry of `times` occurs, (m,); None: once each.
        """
        distinct, place = np.unique(times, return_inverse=True)
        return cls(distinct, np.append(0, np.cumsum(np.bincount(place, counts))).astype(np.int64))

    @property
    def n(self) -> int:
        """Number of times."""
        return int(self.n_before[-1])

    def find_at_rank(self, rank: int) -> float:
        """Return entry `rank` of all n times in ascending order; the earliest time has rank 0."""
        return float(self.distinct[np.searchsorted(self.n_before, rank, side="right") - 1])

    def count_around(self, value: float) -> tuple[int, int]:
        """Return how many times are before `value`, and how many are before or at it."""
        first, end = (np.searchsorted(self.distinct, value, side=one) for one in ("left", "right"))
        return int(self.n_before[first]), int(self.n_before[end])

    def find_next(self, value: float) -> float | None:
        """Return the earliest time after `value`; None if there is none."""
        place = int(np.searchsorted(self.distinct, value, side="right"))
        return float(self.distinct[place]) if place < len(self.distinct) else None

    def find_gap_start(self, cut: float, gap: timedelta) -> float:
        """Return the earliest time that is less than `gap` before `cut`; `cut` if there is none."""
        time = self.distinct[self.distinct < cut]
        return float(time[~is_before_gap(time, cut, gap)].min(initial=cut))


def find_time_cut(
    units: TimeStatistics, rows: TimeStatistics, n_latest: int, gap: int | timedelta
) -> TimeCut:
    """Find the boundaries between earlier rows, a gap, and the latest rows or groups.

    Rows of one time stay together, so that the number of latest rows (or groups) is as near to
    `n_latest` as times allow; of two equally near numbers it is the larger one. If all times are
    distinct, it is `n_latest`.

    Parameters
    ----------
    units : TimeStatistics
        Times of the groups; without groups `rows` itself.
    rows : TimeStatistics
        Times of the rows; a row of a group has the time of the group.
    n_latest : int
        Wanted number of latest rows, or of groups.
    gap : int or timedelta
        Number of rows (also if there are groups), or time, to leave out before the latest ones.

    Returns
    -------
    TimeCut
        Its fields are `end`, the time before which rows are earlier ones, and `first_latest`, the
        time from which on they are latest ones. Rows between both are in the gap.

    Raises
    ------
    ValueError
        If all times are equal, or the gap leaves no earlier rows.
    """
    n_earlier = min(max(units.n - n_latest, 0), units.n - 1)
    cut = units.find_at_rank(n_earlier)
    n_less, n_most = units.count_around(cut)
    later = units.find_next(cut)
    # Of two equally near boundaries it is the earlier one, which makes more rows the latest.
    if later is not None and (not n_less or n_most - n_earlier < n_earlier - n_less):
        cut = later
    elif not n_less:
        raise_for_equal_times(rows.n, has_groups=units is not rows)
    end = _find_gap_start(rows, cut, gap)
    n_rows = rows.n - rows.count_around(cut)[0]
    expect_earlier_rows(rows.count_around(end)[0] > 0, gap, n_rows, rows.n)
    return TimeCut(end, cut)


def _find_gap_start(rows: TimeStatistics, cut: float, gap: int | timedelta) -> float:
    """Return the earliest time of the gap before `cut`; `cut` itself if no row is in the gap.

    The gap has rows that are left out between earlier and later rows. If `gap` is a number, they are
    the last so many rows before `cut`, and rows of the same time as one of them. If it is a
    timedelta, they are the rows less than this time before `cut`. rows: times of the rows; cut: time
    of the first later row.
    """
    if isinstance(gap, timedelta):
        return rows.find_gap_start(cut, gap)
    return rows.find_at_rank(max(rows.count_around(cut)[0] - gap, 0)) if gap else cut


def raise_for_equal_times(n: int, *, has_groups: bool) -> NoReturn:
    """Raise a ValueError: all times are equal, so that rows cannot be split by time.

    n: number of rows. has_groups: whether the message is about the latest rows of groups.
    """
    whose = " of the latest rows of its groups" if has_groups else ""
    raise ValueError(
        f"time must have at least two different values{whose}, got equal times of {n:,} rows: pass "
        "the times of the rows, or fit without time"
    )


def expect_earlier_rows(has_earlier: bool, gap: Any, n_latest: int, n: int) -> None:
    """Raise a ValueError if the gap leaves no rows before the latest ones.

    has_earlier: whether there are such rows; gap: the argument of `fit`; n_latest, n: numbers of the
    latest rows and of all rows, for the message.
    """
    if not has_earlier:
        raise ValueError(
            f"gap={gap!r} leaves no training rows before the {n_latest:,} latest rows (n_samples = "
            f"{n}): use a smaller gap, or more rows"
        )


def expect_classes_in_both_parts(
    y: NDArray[Any],
    train: Indices,
    calibration: Indices,
    times: RowTimes,
    groups: NDArray[Any] | None,
) -> None:
    """Raise a ValueError if all training rows, or all calibration rows, have the same class.

    y: class of each row, (n,); train, calibration: indices of both sets; times, groups: time and
    group of each row, for the message; groups is None if there are none.
    """
    for name, rows in (("training", train), ("calibration", calibration)):
        labels = y[rows]
        if (labels == labels[0]).all():
            period = times.take(rows).name_period(None if groups is None else groups[rows])
            label = labels[:1].tolist()[0]
            raise_for_single_class(name, len(rows), period, label, has_groups=groups is not None)


def raise_for_single_class(
    name: str, n: int, period: Period, label: Any, *, has_groups: bool
) -> NoReturn:
    """Raise a ValueError which says that the training or the calibration rows have a single class.

    name: "training" or "calibration"; n: number of these rows; period: their period; label: the
    class; has_groups: whether the period is one of groups of rows.
    """
    rows = f"{name} rows{' of groups' if has_groups else ''}"
    raise ValueError(
        f"y must have two classes among the {n:,} {rows} {period.describe(has_groups=has_groups)}, "
        f"got only {label!r}: "
        "change train_size, or pass more rows"
    )


def expect_folds_by_number(cv: Any) -> None:
    """Raise a ValueError if cv, in a fit with times, is neither an integer nor None.

    cv: value of the parameter of the estimator, which may be a splitter or a list of folds.
    """
    if not (cv is None or isinstance(cv, Integral)):
        raise ValueError(
            f"cv must be an integer or None with time, got {type(cv).__name__}: rows are then split "
            "in time order, and the latest ones validate. Fit without time to use this cv"
        )


def expect_no_row_times(time: Any, gap: Any = 0, *, what: str) -> None:
    """Raise a ValueError if times or a gap are passed to a fit without a training set.

    time, gap: arguments of `fit`. what: the parameter that does not support them, such as
    "grower=Grid()", for the message.
    """
    name, value = ("gap", gap) if time is None else ("time", time)
    if time is not None or gap != 0:
        raise ValueError(
            f"{name} must be {'0' if time is None else 'None'} for {what}, as there is no training "
            f"set of earlier rows, got {shortened(value)}: leave it out, or use another grower, "
            "such as Cart()"
        )


def _get_column(name: str, X: Any) -> Any:
    """Return the time column of a data frame; it remains a feature of the fit, too.

    name: name of the column, as the user passed it for `time`; X: the data frame. Raise ValueError
    if X has no such column, and TypeError if it is no data frame.
    """
    frame = as_data_frame(X)
    if frame is None:
        raise TypeError(
            "time must have one value for each row of X, unless X is a data frame in memory, got the "
            f"text {name!r}: pass the times themselves"
        )
    expect_time_column(name, frame.columns)
    return frame[name].to_native()


def expect_time_column(name: str, names: Sequence[str] | NDArray[Any]) -> None:
    """Raise a ValueError unless a column has the name that was passed as `time`.

    name: value of the argument. names: names of the columns of X.
    """
    if name not in names:
        raise ValueError(
            f"time must name a column of X, got {name!r}: {suggest_names(name, names)}"
        )


def _read_times(time: Any, n: int, name: str | None) -> tuple[DateColumn | None, Float64]:
    """Check an array or a column of times, and convert it to numbers.

    time: array or series of n numbers or dates. n: expected number of rows. name: name of the
    column of X, for messages; None: that of the series. Return a pair: a
    `DateColumn` with kind and time zone of the dates, or None for numbers; and the values, (n,)
    float64, in days for dates. Raise TypeError or ValueError as `RowTimes.read`.
    """
    series = nw.from_native(time, series_only=True, pass_through=True)
    column = series if isinstance(series, nw.Series) else to_array("time", time)
    if column.shape != (n,):
        raise ValueError(
            f"time must have shape ({n},), got {column.shape}: pass the time of each row"
        )
    if has_times(column):
        dates, values = read_dates(column, "time")
    else:
        kinds = column.to_numpy() if isinstance(column, nw.Series) else column
        if kinds.dtype.kind not in "iuf":
            _raise_for_other_times(kinds, name or getattr(column, "name", None))
        dates, values = None, to_float64_column(column, "time")
    if missing := int(np.isnan(values).sum()):
        raise ValueError(
            f"time must be known for every row, got NaN or NaT for {missing:,} of {n:,} rows: fill "
            "in these times, or drop these rows"
        )
    if not np.isfinite(values).all():
        raise ValueError("time must be finite, got an infinite number: drop these rows")
    return dates, values


def _raise_for_other_times(values: NDArray[Any], name: str | None) -> NoReturn:
    """Raise the TypeError that times are neither numbers nor dates.

    values: the times, (n,); name: name of their column; None or "": it has none.
    """
    some = values[:1000].tolist()
    text = next((one for one in some if isinstance(one, str)), None)
    if text is not None:
        where = f" in column {name!r}" if name else ""
        raise TypeError(
            f"time must hold numbers or dates, got text such as {text!r}{where}: write whole dates, "
            "such as 2024-03-01 for March 2024, or numbers, such as 202403. In Python, "
            "pandas.to_datetime converts text to dates"
        )
    found = ", ".join(sorted({type(one).__name__ for one in some}))
    raise TypeError(f"time must hold numbers or dates, got {found}: pass one of them for each row")


def _check_gap(gap: Any, dates: DateColumn | None) -> int | timedelta:
    """Check the argument gap of `fit`, and return it as an int or a timedelta.

    dates: kind of the times; None: times are numbers, and a gap that is a time span raises a
    ValueError. Raise ValueError also if gap is negative, and TypeError if it is of another type.
    """
    if isinstance(gap, np.timedelta64):
        gap = gap.astype("m8[us]").item()
    if isinstance(gap, timedelta):
        if dates is None:
            raise ValueError(
                f"gap must be a number of rows if times are numbers, got {gap!r}: pass an integer, or "
                "dates as time"
            )
        if gap < timedelta(0):
            raise ValueError(f"gap must not be negative, got {gap!r}")
        return gap
    if isinstance(gap, bool) or not isinstance(gap, Integral):
        remedy = f": pass pandas.Timedelta({gap!r})" if isinstance(gap, str) else ""
        raise TypeError(
            f"gap must be an integer (number of rows) or a timedelta, got {type(gap).__name__}{remedy}"
        )
    if gap < 0:
        raise ValueError(f"gap must not be negative, got {gap!r}")
    return int(gap)


def _format_time(value: float, dates: DateColumn | None, with_hours: bool) -> str:
    """Write a time as text for sentences: "3 March 2026", "3 March 2026 14:05", or a number.

    Time spans, and dates that Python cannot represent, become a number of days, such as "3.5 days".
    value: days since 1970, days of a time span, or a number. dates: kind and time zone of the dates;
    None: times are numbers. with_hours: whether to add the time of day to a date.
    """
    if dates is None:
        return f"{value:.15g}"
    local = None if dates.kind == "span" else to_local_time(value, dates.zone)
    if local is None:
        return f"{value:.6g} days"
    text = f"{local.day} {_MONTHS[local.month - 1]} {local.year}"
    return f"{text} {local:%H:%M}" if with_hours else text
