"""Convert dates, times and time spans of tables to numbers of days, and write such numbers as dates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from math import floor
from typing import Any, Literal, Self, get_args
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import MAX_EXACT_INTEGER, Float64
from certree.interface.stored_state import DamagedModelError
from certree.rows.columns import (
    SeriesOrArray,
    TableColumns,
    as_data_frame,
    has_times,
    is_missing,
    to_objects,
)

DateKind = Literal["date", "midnight", "datetime", "span"]
CalendarPart = Literal["month", "day", "weekday", "hour"]

MICROSECONDS_PER_DAY = 86_400 * 10**6
# Milliseconds, seconds, minutes, ten minutes, hours and midnights of a day: moments that are round.
_MOMENTS_PER_DAY = (86_400_000, 86_400, 1_440, 144, 24, 1)
# Later dates, in days since 1970, have no 64-bit number of microseconds.
_MAX_DAYS = 10**8
# Units of NumPy's dates without a time of day.
_DAYS_OR_LONGER = ("Y", "M", "W", "D")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATES = (date, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True, slots=True)
class DateColumn:
    """What a fit learned about a column of dates, dates with times, or time spans.

    Trees read such a column as a number: days since 1 January 1970, UTC, or the length of a time
    span in days, as float64. Microseconds are kept for dates until 2149; finer digits are dropped.

    Parameters
    ----------
    kind : {"date", "midnight", "datetime", "span"}
        Dates; dates with times of day; time spans. "midnight": dates with times, without a time
        zone, that are all at 00:00 in the training rows. They are shown without the time.
    zone : str or None
        Time zone in which dates are shown, such as "Europe/Zurich" or "+01:00"; None: they have no
        time zone.
    last : float or None
        The latest date of the training rows, in days since 1970 (or the longest time span, in
        days), also of rows that a model's method `forget` has removed; None: no training row has a
        date, or the rows have not been read yet.
    parts : tuple of str
        Calendar parts that trees read beside the date, by local time in the zone: "month" (1 to 12),
        "day" (of the month, 1 to 31), "weekday" (1 for Monday to 7), "hour" (0 to 23).
    """

    kind: DateKind
    zone: str | None = None
    last: float | None = None
    parts: tuple[CalendarPart, ...] = ()

    @property
    def unit(self) -> str:
        """Unit of the numbers that replace dates: "days", or "days since 1970-01-01T00:00:00Z"."""
        return "days" if self.kind == "span" else "days since 1970-01-01T00:00:00Z"

    @property
    def has_hours(self) -> bool:
        """Whether values of the column may have a time of day other than 00:00."""
        return self.kind == "datetime"

    @property
    def description(self) -> str:
        """What the column holds, for messages, such as "dates without a time zone"."""
        return _describe_kind(self.kind, self.zone)

    def __add__(self, other: Self) -> Self:
        """Return the record of a column from those of two blocks of its rows, in any order.

        The result has the more general kind, and the later of both last dates. It has a time zone
        if both records have one. Raise a ValueError if only one record is about time spans, or only
        one has a zone.
        """
        if not self.takes(other):
            raise ValueError(
                f"X must hold one kind of dates in a column, got {self.description} and "
                f"{other.description} in different blocks of rows: convert the column in all blocks"
            )
        kinds: set[DateKind] = {self.kind, other.kind}
        later: DateKind = "datetime" if "datetime" in kinds else "midnight"
        kind: DateKind = self.kind if self.kind == other.kind else later
        zone = None if self.zone is None or other.zone is None else min(self.zone, other.zone)
        known = [one for one in (self.last, other.last) if one is not None]
        return replace(self, kind=kind, zone=zone, last=max(known, default=None))

    def takes(self, other: DateColumn) -> bool:
        """Return whether a column that `other` describes can be read in place of this column.

        Dates and dates with times can replace each other, and dates of one time zone those of
        another. Time spans and dates cannot replace each other; nor can dates with a time zone and
        dates without one.
        """
        are_spans = self.kind == "span", other.kind == "span"
        has_zone = self.zone is None, other.zone is None
        return are_spans[0] == are_spans[1] and has_zone[0] == has_zone[1]

    def with_last(self, days: NDArray[Any]) -> Self:
        """Return a copy whose `last` is the latest of `last` and the dates of training rows.

        days: dates of training rows in days since 1970, (n,), NaN for missing ones. Return this
        object if all are missing.
        """
        known = days[~np.isnan(days)]
        if not len(known):
            return self
        last = float(known.max())
        return replace(self, last=last if self.last is None else max(last, self.last))

    def format(self, days: float) -> str:
        """Return a number of days as the text of a date or time span, rounded down to microseconds.

        Dates are in ISO format and in the zone of the column. They have a time, also at midnight: a
        date alone in "at <= 2024-05-31" would seem to mean the whole day. Columns of the kinds
        "date" and "midnight" show the date only. Time spans are a number of days, as are years
        outside 1 .. 9999.

        days: value or threshold of the column.
        """
        local = None if self.kind == "span" else to_local_time(days, self.zone)
        if local is None:
            return f"{days:.6g} days"
        if not self.has_hours:
            return local.date().isoformat()
        return local.isoformat(sep=" ")

    def round_thresholds(self, threshold: Float64, low: Float64, high: Float64) -> Float64:
        """Move each threshold to the roundest date in its gap; return (k,) float64, in days.

        The gap of a threshold is the interval between the two neighbouring values of the training
        rows. Midnight is rounder than a full hour, and so on by ten minutes, minutes, seconds and
        milliseconds; of equally round dates the nearest to the threshold counts. A date at a full
        minute that is nearer than a quarter of the gap is preferred to rounder dates that are not.
        Dates are in UTC, so that the same dates in another time zone give the same model.
        Thresholds do not move in columns without times of day, and in gaps without such a date.
        Dates at both ends of a gap reach the same child as before, and so do they after rounding to
        float32, unless float32 merges them.

        threshold: days, (k,). low, high: ends of the gaps, (k,), with low <= threshold < high. low
        is the largest training value that is not above the threshold; high is the smallest one
        above, or infinity.
        """
        if not self.has_hours:
            return threshold
        quarter = (high - low) / 4
        with np.errstate(over="ignore"):
            ends = low.astype(np.float32).astype(float), high.astype(np.float32).astype(float)
        is_merged = ends[0] == ends[1]
        low = np.where(is_merged, low, np.maximum(low, ends[0]))
        high = np.where(is_merged, high, np.minimum(high, ends[1]))
        rounded, every, middle = threshold, np.arange(len(threshold)), threshold.clip(low, high)
        # Later dates replace earlier ones.
        for per_day, reach in (
            *((per_day, np.inf) for per_day in _MOMENTS_PER_DAY),
            *((per_day, quarter) for per_day in _MOMENTS_PER_DAY[2:]),
        ):
            # Rounding may put a date below the one before it, so that the third one is needed.
            dates = (np.floor(middle * per_day) + np.arange(3.0)[:, None]) / per_day
            distance = np.abs(dates - threshold)
            distance[(dates <= low) | (dates >= high) | (distance >= reach)] = np.inf
            nearest = distance.argmin(axis=0), every
            rounded = np.where(np.isfinite(distance[nearest]), dates[nearest], rounded)
        return rounded

    def format_utc(self, days: float) -> str | None:
        """Return days since 1970 as a date in ISO format and UTC, so that texts sort as dates.

        The text is "2023-05-03" for a column of dates without times, else "2023-05-03
        12:00:00.000000", with "+00:00" if the column has a time zone. It is rounded down. Return
        None for years outside 1 .. 9999.
        """
        moment = to_local_time(days, None)
        if moment is None:
            return None
        if self.kind == "date":
            return moment.date().isoformat()
        text = moment.isoformat(sep=" ", timespec="microseconds")
        return text if self.zone is None else f"{text}+00:00"

    def to_stored(self) -> list[Any]:
        """Return the list that model files store: [kind, zone, last], or [kind, zone, last, parts].

        kind: "date", "midnight", "datetime" or "span" (of time); zone: name of the time zone, or
        None; last: latest date of the training rows in days since 1970, or None; parts: list of
        calendar parts, such as "month", if there are any.
        """
        return [self.kind, self.zone, self.last, *([[*self.parts]] if self.parts else [])]

    @classmethod
    def from_stored(cls, entry: Any) -> Self:
        """Restore the description of a column of dates from a model file.

        entry: the list that `to_stored` returned at the save. Raise `DamagedModelError` if it is no
        such list.
        """
        types = (str, str | None, int | float | None, list)
        is_whole = isinstance(entry, list) and len(entry) in (3, 4)
        if (
            not is_whole
            or not all(isinstance(one, kind) for one, kind in zip(entry, types, strict=False))
            or entry[0] not in get_args(DateKind)
        ):
            raise DamagedModelError(
                f"the model file's dates must hold a kind, a time zone and a number, got {entry!r}"
            )
        kind, zone, last, *given = entry
        parts = given[0] if given else []
        possible = () if kind == "span" else get_args(CalendarPart)
        if [one for one in possible if one in parts] != parts:
            raise DamagedModelError(
                f"the model file's dates must hold parts among {possible} in order, got {parts!r}"
            )
        return cls(kind, zone, None if last is None else float(last), tuple(parts))


def _describe_kind(kind: DateKind, zone: str | None) -> str:
    if kind == "span":
        return "time spans"
    return f"dates {'without' if zone is None else 'with'} a time zone"


# Records of the columns of a table that hold dates, by index.
DateColumns = Mapping[int, DateColumn]


# -- numbers as dates


def count_microseconds(days: float) -> int:
    """Convert days since 1970 to integer microseconds, rounded down.

    The result is the last microsecond whose number of days, as float64, is at most `days`. So a
    column of microseconds compares with the result as its days compare with `days`. Raise an
    OverflowError for infinite numbers.
    """
    count = floor(days * MICROSECONDS_PER_DAY)
    if abs(count) < MAX_EXACT_INTEGER:  # else microseconds have no numbers of their own
        while (count + 1) / MICROSECONDS_PER_DAY <= days:
            count += 1
        while count / MICROSECONDS_PER_DAY > days:
            count -= 1
    return count


def to_local_time(days: float, zone: str | None) -> datetime | None:
    """Convert days since 1970, UTC, to a datetime in a time zone; return None if it does not exist.

    Python's datetime has the years 1 .. 9999. zone: name of a time zone, or an offset such as
    "+01:00". None: the result is UTC without a time zone. A name that this computer does not know
    counts as UTC.
    """
    try:
        moment = _EPOCH + timedelta(microseconds=count_microseconds(days))
        return moment.replace(tzinfo=None) if zone is None else moment.astimezone(find_zone(zone))
    except (OverflowError, ValueError):
        return None


def find_zone(name: str) -> tzinfo:
    """Return the time zone of a name, such as "Europe/Zurich", "+01:00" or "UTC+01:00".

    Return UTC for names that this computer does not know.
    """
    offset = name.removeprefix("UTC")
    if offset[:1] in ("+", "-"):
        try:
            hours, _, minutes = offset[1:].partition(":")
            size = timedelta(hours=int(hours), minutes=int(minutes or 0))
            return timezone(size if offset[0] == "+" else -size)
        except ValueError:
            return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return UTC


# -- tables


def learn_dates(X: Any) -> dict[int, DateColumn]:
    """Find the columns of a table that hold dates, dates with times, or time spans.

    Parameters
    ----------
    X : data frame, array-like or sparse matrix of shape (n, p)
        Rows, not encoded.

    Returns
    -------
    dict of int to DateColumn
        Kind and time zone of each of these columns, by its index; `last` is None.

    Raises
    ------
    ValueError
        If a column holds times without a date, periods, or values of several kinds.
    """
    table = _read_if_dates(X)
    if table is None:
        return {}
    return {
        j: read_dates(column, table.get_label(j))[0]
        for j, column in enumerate(table.columns)
        if has_times(column)
    }


def has_dates(X: Any) -> bool:
    """Return whether a column of a table holds dates, times or time spans.

    X: data frame, array-like or sparse matrix of shape (n, p).
    """
    table = _read_if_dates(X)
    return table is not None and any(map(has_times, table.columns))


def convert_dates(X: Any, dates: DateColumns) -> Any:
    """Replace columns of dates by days since 1970, NaN if missing, in an object of the same library.

    Parameters
    ----------
    X : data frame or array-like of shape (n, p)
        Rows, not encoded.
    dates : mapping of int to DateColumn
        The columns that held dates in the fit, by index. If it is empty, X is returned unchanged.

    Returns
    -------
    object
        Like X. An array of dates and other values has dtype object, an array of dates float64.

    Raises
    ------
    ValueError
        If one of these columns holds anything but missing values and dates that `DateColumn.takes`
        accepts.
    """
    if not dates:
        return X
    table = TableColumns.read(X)
    numbers = {
        j: _convert_as_in_fit(table.columns[j], table.get_label(j), known)
        for j, known in dates.items()
    }
    frame = as_data_frame(X)
    if frame is not None:
        made = (_make_series(frame[:, j], days) for j, days in numbers.items())
        return frame.with_columns(*made).to_native()
    if len(numbers) == len(table.columns):
        return np.column_stack([numbers[j] for j in range(len(numbers))])
    array = np.empty((table.n, len(table.columns)), dtype=object)
    for j, column in enumerate(table.columns):
        array[:, j] = numbers.get(j, column)
    return array


def read_days(column: SeriesOrArray, label: str) -> Float64 | None:
    """Convert a column of dates to days, (n,); return None for all other columns.

    Days since 1970 (UTC) are float64, NaN for missing dates; time spans become their length in days.
    column: narwhals Series or array (n,). label: how messages name the column. None is also
    returned for times of day, periods, and dates of several kinds.
    """
    if not has_times(column):
        return None
    try:
        return read_dates(column, label)[1]
    except ValueError:
        return None


def _read_if_dates(X: Any) -> TableColumns | None:
    """Return the columns of a table, or None if its types show that none holds dates.

    X: data frame, array-like or sparse matrix. None is also returned for arrays that have not two
    dimensions, and lists that make no array: the caller finds these errors.
    """
    frame = as_data_frame(X)
    if frame is None:
        if not isinstance(X, np.ndarray):
            try:
                X = np.asarray(X)
            except (TypeError, ValueError):
                return None
        if X.dtype.kind not in "OmM" or X.ndim != 2:
            return None
    elif not any(one.is_temporal() or one in _OBJECTS for one in frame.schema.values()):
        return None
    return TableColumns.read(X)


_OBJECTS = (nw.Object, nw.Unknown)


def _convert_as_in_fit(column: SeriesOrArray, label: str, known: DateColumn) -> Float64:
    """Convert a column that held dates in the fit to days, (n,), NaN for missing dates.

    column: narwhals Series or array (n,). label: how messages name the column. known: the record of
    the column that the fit made. Raise a ValueError if the column holds anything but missing values
    and dates that `known.takes` accepts.
    """
    if not has_times(column):
        values = to_objects(column).tolist()
        if all(map(is_missing, values)):
            return np.full(len(values), np.nan)
        kind = next(type(one).__name__ for one in values if not is_missing(one))
        raise ValueError(
            f"{label} must hold {known.description}, as in the fit, got values of type {kind}: "
            "convert the column to dates"
        )
    found, days = read_dates(column, label)
    if not known.takes(found) and not np.isnan(days).all():
        raise ValueError(
            f"{label} must hold {known.description}, as in the fit, got {found.description}: convert "
            "the column"
        )
    return days


def _make_series(column: nw.Series[Any], values: Float64) -> nw.Series[Any]:
    """Return a series of numbers with the name, data frame library and pandas index of a column.

    column: narwhals Series of n rows; values: the numbers, (n,).
    """
    index, native = nw.maybe_get_index(column), column.to_native()
    if index is not None:  # narwhals would copy the index label by label
        return nw.from_native(type(native)(values, index=index, name=native.name), series_only=True)
    backend = nw.get_native_namespace(column)
    return nw.new_series(column.name, values, nw.Float64(), backend=backend)


# -- columns


def read_dates(column: SeriesOrArray, label: str) -> tuple[DateColumn, Float64]:
    """Return the record of a column of dates (kind, time zone), and its values in days, (n,).

    Days are counted from 1970 (UTC), NaN for missing dates. column: narwhals Series or array (n,),
    for which `has_times` is true. label: how messages name the column. Raise a ValueError for times
    without a date, periods, and values of several kinds.
    """
    if isinstance(column, nw.Series):
        dtype = column.dtype
        if isinstance(dtype, nw.Duration):
            return DateColumn("span"), _to_days(column.dt.total_microseconds())
        if isinstance(dtype, nw.Date):
            return DateColumn("date"), _to_days(column.cast(nw.Datetime("us")).dt.timestamp("us"))
        if isinstance(dtype, nw.Datetime):
            zone = None if dtype.time_zone is None else str(dtype.time_zone)
            return _describe_moments(_to_days(column.dt.timestamp("us")), zone)
    values = column.to_numpy() if isinstance(column, nw.Series) else column
    if values.dtype.kind == "O":
        return _read_objects(values.tolist(), label)
    days = _count_days(values, label)
    if values.dtype.kind == "m":
        return DateColumn("span"), days
    has_days_only = np.datetime_data(values.dtype)[0] in _DAYS_OR_LONGER
    return (DateColumn("date"), days) if has_days_only else _describe_moments(days)


def _describe_moments(days: Float64, zone: str | None = None) -> tuple[DateColumn, Float64]:
    """Return the record (kind, time zone) of a column of dates with times, and its values unchanged.

    The kind is "midnight" if there is no time zone and all times are 00:00, else "datetime". A
    column without values is "midnight", so that it does not change the kind when blocks are joined.
    days: the values in days, (n,), NaN for missing ones. zone: time zone of the column, or None.
    """
    is_whole = zone is None and bool((np.isnan(days) | (days == np.floor(days))).all())
    return DateColumn("midnight" if is_whole else "datetime", zone), days


def _to_days(microseconds: nw.Series[Any]) -> Float64:
    numbers = microseconds.cast(nw.Float64()).to_numpy()
    days: Float64 = numbers.astype(np.float64) / MICROSECONDS_PER_DAY
    return days


def _read_objects(values: list[Any], label: str) -> tuple[DateColumn, Float64]:
    """Convert a column of Python date, datetime or timedelta objects to days; see `read_dates`.

    values: the objects, with None or NaN for missing dates; label: name of the column for messages.
    Return a `DateColumn` with kind and time zone, and the days since 1970 (or of time spans), (n,)
    float64, NaN if missing. Raise ValueError if they are of other or different types.
    """
    is_present = ~_mark_missing(values)
    present = [value for value, known in zip(values, is_present.tolist(), strict=True) if known]
    found: DateColumn | None = None
    read: set[str] = set()
    try:
        for one in _list_kinds(present):
            read.add(one.description)
            found = one if found is None else found + one
    except TypeError:
        found, read = None, {type(value).__name__ for value in present}
    except ValueError:
        found = None
    if found is None:
        remedy = "such as times of day to hours and periods to their first day"
        if all(kind.startswith("dates with") for kind in read):
            remedy = "such as by pandas.to_datetime(column, utc=True)"
        raise ValueError(
            f"{label} must hold numbers, dates, dates with times or time spans, all of one kind, got "
            f"{' and '.join(sorted(read))}: convert the column, {remedy}"
        )
    if found.zone is not None:
        present = [value.astimezone(UTC).replace(tzinfo=None) for value in present]
    kind = "timedelta64" if found.kind == "span" else "datetime64"
    moments = np.full(len(values), "NaT", dtype=f"{kind}[us]")
    moments[is_present] = np.array(present, dtype=moments.dtype)
    days = _count_days(moments, label)
    return _describe_moments(days, found.zone) if found.kind == "datetime" else (found, days)


def _mark_missing(values: list[Any]) -> NDArray[np.bool_]:
    """Return a mask (n,), True for values that are None, NaN, NaT or pandas.NA."""
    if {type(None), float} >= {type(one) for one in values if not isinstance(one, _DATES)}:
        # Dates equal themselves, NaN and NaT do not; this takes a tenth of the time.
        return np.fromiter((one is None or one != one for one in values), bool, len(values))
    return np.fromiter(map(is_missing, values), bool, len(values))


def _list_kinds(values: list[Any]) -> Iterator[DateColumn]:
    """Yield a `DateColumn` for each type and time zone among the values of a column.

    values: Python or NumPy objects, none of them missing. Raise a TypeError if one is no date or
    time span.
    """
    for kind in set(map(type, values)):
        if issubclass(kind, datetime):
            zones = {value.tzinfo for value in values if type(value) is kind}
            for zone in zones:
                yield DateColumn("datetime", None if zone is None else _name_zone(zone))
        elif issubclass(kind, np.datetime64):
            units = {np.datetime_data(value.dtype)[0] for value in values if type(value) is kind}
            yield DateColumn("date" if units <= {*_DAYS_OR_LONGER} else "datetime")
        elif issubclass(kind, timedelta | np.timedelta64):
            yield DateColumn("span")
        elif issubclass(kind, date):
            yield DateColumn("date")
        else:
            raise TypeError(f"values must be dates or time spans, got {kind.__name__}")


def _name_zone(zone: tzinfo) -> str:
    """Return the name of a time zone, such as "Europe/Zurich", or its offset, such as "+01:00"."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    offset = zone.utcoffset(None)
    if name or offset is None:
        return str(name or zone)
    return "UTC" if not offset else _EPOCH.astimezone(timezone(offset)).isoformat()[19:]


def _count_days(values: NDArray[Any], label: str) -> Float64:
    """Convert datetime64 or timedelta64 values of any unit to days, (n,), NaN for NaT.

    Raise a ValueError if a value is more than 10^8 days from 1970. label: how the message names the
    column.
    """
    is_present = ~np.isnat(values)
    days = values[is_present].astype(f"{values.dtype.kind}8[D]").astype(np.int64)
    if len(days) and max(-int(days.min()), int(days.max())) > _MAX_DAYS:
        raise ValueError(
            f"{label} must hold dates within {_MAX_DAYS:,} days of 1970, got others: drop these rows"
        )
    counts = np.full(len(values), np.nan)
    exact = values[is_present].astype(f"{values.dtype.kind}8[us]").astype(np.int64)
    counts[is_present] = exact / MICROSECONDS_PER_DAY
    return counts
