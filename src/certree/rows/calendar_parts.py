"""Compute the calendar parts of dates (month, day, weekday, hour), and choose those worth having.

A calendar part becomes a column of numbers, behind the user's columns, in the encoded rows that
trees read. It is computed from the days since 1970 of its date column, in the time zone of that
column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from math import floor
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64
from certree.rows.dates import (
    MICROSECONDS_PER_DAY,
    CalendarPart,
    DateColumn,
    DateColumns,
    find_zone,
)
from certree.rows.features import DenseFeatures
from certree.rows.hashes import hash_samples

Int64 = NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SECONDS_PER_HOUR, SECONDS_PER_DAY = 3600, 86_400
# Python's dates end here: 2 January of year 1 and 30 December 9999, in seconds since 1970.
_FIRST_SECOND, _LAST_SECOND = -62_135_510_400, 253_402_128_000
# Transitions of a time zone are searched in blocks of 2^28 seconds, about 8.5 years.
LOG_BLOCK = 28
# -- choice of parts
_FEW_ROWS, _MOST_ROWS = 50, 10_000
_N_FOLDS = 5
# Numbers of bins of the date that are fitted one after the other; the best number of steps counts.
_N_BINS = (4, 16, 64, 256)
_MOST_CLASSES = 16
# A part must lower the loss by this multiple of the standard error of the difference.
_STANDARD_ERRORS = 2.0
# It must also lower the loss by this fraction of the target's variance.
_LEAST_GAIN = 0.002


class DatePart(NamedTuple):
    """A calendar part of a date column, which is one column of the encoded rows that trees read.

    Parameters
    ----------
    feature : int
        Index of the date column among the features.
    part : {"month", "day", "weekday", "hour"}
        The part: month 1 to 12, day of the month 1 to 31, weekday 1 (Monday) to 7, hour 0 to 23.
    column : DateColumn
        Kind and time zone of the date column; parts are those of local time in this time zone.
    """

    feature: int
    part: CalendarPart
    column: DateColumn

    def format(self, threshold: float) -> str:
        """Return a threshold as text: the largest value of the part that is not above it.

        threshold: any number, such as 10.5. The text is "Oct" for a month and "Wed" for a weekday.
        For hours, days, and numbers that are no month or weekday, it is an integer.
        """
        names = {"month": _MONTHS, "weekday": _WEEKDAYS}.get(self.part, ())
        if not -1e6 < threshold < 1e6:
            return f"{threshold:.6g}"
        number = floor(threshold)
        return names[number - 1] if 1 <= number <= len(names) else str(number)


# How thresholds of an encoded column are written if it is no plain number.
DateFormat = DateColumn | DatePart


def list_parts(dates: DateColumns | None) -> list[DatePart]:
    """Return the calendar parts of all date columns as a list of `DatePart`.

    A calendar part is the month, day, weekday or hour of a date, as a feature of its own. The list
    is sorted by the index of the date column, and for one date column has the order of
    `DateColumn.parts`. The encoded rows hold one column for each entry, in this order, behind the
    columns of the user. dates: mapping from the index of a date column to its `DateColumn`; None:
    there are none.
    """
    return [
        DatePart(j, part, column)
        for j, column in sorted((dates or {}).items())
        for part in column.parts
    ]


def name_parts(names: Sequence[str], dates: DateColumns | None) -> list[str]:
    """Return the names of all encoded columns: features first, then parts, as "month of opened".

    Parts are the month, day, weekday or hour of a date, which are features of their own. names:
    names of the p features of the user. dates: mapping from the index of a date column to its
    `DateColumn`; None: there are none, and the result is a copy of names.
    """
    return [*names, *(f"{one.part} of {names[one.feature]}" for one in list_parts(dates))]


def describe_parts(
    rows: NDArray[Any], n_features: int, dates: DateColumns | None
) -> dict[int, list[str]] | None:
    """Write the calendar parts of the dates of encoded rows as texts, "Sep, day 15, Thu, hour 0".

    rows: encoded rows, (n, k): the p features of the user, then the calendar parts. n_features: p.
    dates: mapping from the index of a date column to its `DateColumn`; None: there are none. Return
    a list of n texts for each date column with parts, by the index of the column; a missing date
    has the text "". Return None if no column has parts.
    """
    texts: dict[int, list[str]] = {}
    for k, one in enumerate(list_parts(dates), n_features):
        unit = f"{one.part} " if one.part in ("day", "hour") else ""
        values = ["" if np.isnan(v) else unit + one.format(v) for v in rows[:, k].tolist()]
        before = texts.get(one.feature)
        texts[one.feature] = (
            values
            if before is None
            else [f"{a}, {b}" if a else "" for a, b in zip(before, values, strict=True)]
        )
    return texts or None


def describe_dates(dates: DateColumns | None, n_features: int) -> Mapping[int, DateFormat] | None:
    """Return the objects that write thresholds of encoded columns as text, by index of the column.

    A `DateColumn` writes the thresholds of a date column, a `DatePart` those of a calendar part
    (month, day, weekday or hour of a date, as a column of its own); both have a method `format`.
    Other columns have no entry. dates: mapping from the index of a date column to its `DateColumn`,
    or None. n_features: number of the user's features, p, which is the index of the first part.
    Return None if there are no dates.
    """
    if not dates:
        return None
    return {**dates, **dict(enumerate(list_parts(dates), n_features))}


def list_owners(n_features: int, dates: DateColumns | None) -> NDArray[np.intp]:
    """Return the index of the user's feature to which each encoded column belongs, (k,) intp.

    The first p encoded columns are the user's features, so the first p entries are 0 .. p - 1. The
    calendar parts (month, day, weekday or hour of a date) follow, and belong to their date columns.
    n_features: number of the user's features, p. dates: mapping from the index of a date column to
    its `DateColumn`; None: there are none, and k = p.
    """
    parts = [one.feature for one in list_parts(dates)]
    return np.append(np.arange(n_features), parts).astype(np.intp)


def fold_parts(values: Float64, n_features: int, dates: DateColumns | None) -> Float64:
    """Add the values of calendar parts to those of their date columns.

    values: a number, such as an importance, for each encoded column, (..., k): the p features of
    the user, then the calendar parts (month, day, weekday or hour of a date). n_features: p. dates:
    mapping from the index of a date column to its `DateColumn`, or None. Return (..., p).
    """
    owners = list_owners(n_features, dates)
    if len(owners) == n_features:
        return values
    folded = values[..., :n_features].copy()
    for k, owner in enumerate(owners[n_features:], n_features):
        folded[..., owner] += values[..., k]
    return folded


def add_parts_to_groups(
    groups: Sequence[Collection[int]], n_features: int, dates: DateColumns | None
) -> list[list[int]]:
    """Add the calendar parts of dates to the groups of features that may interact.

    A calendar part is the month, day, weekday or hour of a date, as a column behind the p features
    of the user. groups: collections of feature indices. n_features: p. dates: mapping from the
    index of a date column to its `DateColumn`, or None. Return the groups, in which the indices of
    the parts of their date columns follow.
    """
    parts = list_owners(n_features, dates)[n_features:].tolist()
    return [
        [*group, *(k for k, owner in enumerate(parts, n_features) if owner in group)]
        for group in groups
    ]


def append_parts(features: Any, dates: DateColumns | None) -> Any:
    """Append the calendar parts of date columns to encoded rows.

    Parts are the month, day, weekday or hour, as further columns; `DateColumn.parts` lists those of
    a date. features: `DenseFeatures` or `SparseFeatures` with the user's columns; dates in days
    since 1970. dates: mapping from the index of a date column to its `DateColumn`, or None. Return
    the features unchanged if no column has parts, else a `DenseFeatures` of separate columns. A
    missing date is missing in all parts.
    """
    parts = list_parts(dates)
    if not parts:
        return features
    columns = features.columns
    return DenseFeatures((*columns, *_compute_columns(columns, parts)))


def _compute_columns(columns: Sequence[NDArray[Any]], parts: Sequence[DatePart]) -> list[Float64]:
    """Return the values of calendar parts, a list of (n,) float64 arrays in the order of `parts`.

    columns: the user's columns, (n,) each, with dates in days since 1970. parts: the parts (month,
    day, weekday or hour of a date column), of which each names its column.
    """
    found: dict[int, LocalTime] = {}
    for one in parts:
        if one.feature not in found:
            days = columns[one.feature].astype(np.float64, copy=False)
            found[one.feature] = LocalTime.read(days, one.column.zone)
    return [found[one.feature].compute(one.part) for one in parts]


# -- local time


@dataclass(frozen=True, slots=True, eq=False)
class LocalTime:
    """Dates of n rows in local time.

    Parameters
    ----------
    day : ndarray of int64, shape (n,)
        Number of days from 1970-01-01 to the local date; 0 for missing dates.
    second : ndarray of int64, shape (n,)
        Seconds since midnight as a local clock shows them, so that jumps of daylight saving time
        within the day do not count.
    is_missing : ndarray of bool, shape (n,)
        Which dates are missing.
    """

    day: Int64
    second: Int64
    is_missing: NDArray[np.bool_]

    @classmethod
    def read(cls, days: Float64, zone: str | None) -> LocalTime:
        """Convert days since 1970, UTC, to local time.

        days: (n,), NaN for missing dates. zone: name of the time zone, as in `DateColumn`; None:
        local time is the given time.
        """
        is_missing = np.isnan(days)
        seconds = _count_seconds(np.where(is_missing, 0.0, days))
        if zone is not None:
            seconds = seconds + compute_utc_offsets(seconds, zone)
        day, second = np.divmod(seconds, SECONDS_PER_DAY)
        return cls(day, second, is_missing)

    def compute(self, part: CalendarPart) -> Float64:
        """Return a calendar part of each row as float64, (n,); NaN if the date is missing.

        part: "month", "day", "weekday" or "hour".
        """
        return np.where(self.is_missing, np.nan, self.count(part))

    def count(self, part: CalendarPart) -> Int64:
        """Return a calendar part of each row, (n,) int64; that of 1970-01-01 for missing dates.

        part: "month" (1 to 12), "day" (1 to 31), "weekday" (1 for Monday to 7) or "hour" (0 to 23).
        """
        if part == "hour":
            return self.second // SECONDS_PER_HOUR
        if part == "weekday":
            return (self.day + 3) % 7 + 1  # 1970 began on a Thursday
        dates = self.day.astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        if part == "month":
            return months.astype(np.int64) % 12 + 1
        return (dates - months.astype("datetime64[D]")).astype(np.int64) + 1

    def count_cycle(self, part: CalendarPart) -> Int64:
        """Return the number of the period in which each date lies, (n,) int64, counted from 1970.

        The period is the time in which a part takes all its values: a year for "month", a month for
        "day", a week for "weekday" and a day for "hour". Missing dates count as 1970-01-01. part:
        name of the part.
        """
        if part == "hour":
            return self.day
        if part == "weekday":
            return (self.day + 3) // 7
        unit = "Y" if part == "month" else "M"
        return self.day.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)


def _count_seconds(days: Float64) -> Int64:
    """Convert days since 1970 to integer seconds since 1970, (n,), rounded down.

    Days that stand for a microsecond between 1791 and 2149 are read exactly as that microsecond.
    """
    count = np.rint(days * MICROSECONDS_PER_DAY)
    for step in (1.0, -1.0):
        is_off = count / MICROSECONDS_PER_DAY != days
        count += step * (is_off & ((count + step) / MICROSECONDS_PER_DAY == days))
    return count.astype(np.int64) // 10**6


def compute_utc_offsets(seconds: Int64, zone: str) -> Int64:
    """Return by how many seconds local time is ahead of UTC at some moments, (n,) int64.

    Parameters
    ----------
    seconds : ndarray of int64, shape (n,)
        Moments in seconds since 1970, UTC. Those before year 1 and after 9999 have the offset at
        the end of that range.
    zone : str
        Name of a time zone or offset; see `certree.rows.dates.find_zone`.

    Returns
    -------
    ndarray of int64, shape (n,)
        Offsets in seconds, positive east of Greenwich.
    """
    if isinstance(find_zone(zone), timezone):
        return np.full(len(seconds), _find_offset(zone, 0))
    moments = np.clip(seconds, _FIRST_SECOND, _LAST_SECOND)
    blocks = moments >> LOG_BLOCK
    offsets = np.zeros(len(seconds), dtype=np.int64)
    for block in np.unique(blocks).tolist():
        rows = np.flatnonzero(blocks == block)
        starts, values = find_transitions(zone, block)
        offsets[rows] = values[np.searchsorted(starts, moments[rows], side="right") - 1]
    return offsets


@lru_cache(maxsize=1024)
def find_transitions(zone: str, block: int) -> tuple[Int64, Int64]:
    """Find the changes of a time zone's offset in the seconds block * 2^28 .. (block + 1) * 2^28.

    The offset is read once a day, and each change is searched by bisection to the second.

    zone: name of the time zone; block: an integer. Return the seconds since 1970 (UTC) from which an
    offset holds, ascending, the first of them the start of the 2^28 seconds; and the offsets from
    UTC in seconds, both (k,) int64.
    """
    start, end = block << LOG_BLOCK, (block + 1) << LOG_BLOCK
    starts, offsets = [start], [_find_offset(zone, start)]
    low = start
    while low < end:
        high = min(low + SECONDS_PER_DAY, end)
        last = _find_offset(zone, high)
        while offsets[-1] != last:
            first_other = high
            same = low
            while first_other - same > 1:
                middle = (same + first_other) // 2
                if _find_offset(zone, middle) == offsets[-1]:
                    same = middle
                else:
                    first_other = middle
            low = first_other
            starts.append(low)
            offsets.append(_find_offset(zone, low))
        low = high
    return np.array(starts, dtype=np.int64), np.array(offsets, dtype=np.int64)


def _find_offset(zone: str, second: int) -> int:
    """Return the offset of a time zone from UTC, in seconds, at a second since 1970."""
    known = min(max(second, _FIRST_SECOND), _LAST_SECOND)
    local = (_EPOCH + timedelta(seconds=known)).astimezone(find_zone(zone))
    offset = local.utcoffset()
    return 0 if offset is None else floor(offset.total_seconds())


# -- choice


@dataclass(frozen=True, slots=True, eq=False)
class DateSample:
    """A random sample of at most 10,000 training rows, by which a date column's parts are chosen.

    Rows are sorted by a hash of date and target, so that their order in the table has no effect.

    Parameters
    ----------
    days : ndarray of float64, shape (n,)
        The dates, none of which is missing, in days since 1970.
    y : ndarray of shape (n,) or (n, n_outputs)
        Class codes (int32) or numeric targets (float64).
    weight : ndarray of float64, shape (n,)
        Positive weights.
    """

    days: Float64
    y: NDArray[Any]
    weight: Float64

    @classmethod
    def draw(cls, days: Float64, y: NDArray[Any], weight: Float64 | None) -> DateSample:
        """Draw at most 10,000 rows with a date: those with the smallest hashes of date and target.

        Neither the order of the rows nor their division into blocks changes the result. days: dates
        in days since 1970, (n,), NaN for missing dates. y: class codes or numeric targets, (n,) or
        (n, n_outputs). weight: weights, (n,); None: 1 each.
        """
        known = np.flatnonzero(~np.isnan(days))
        weight = np.ones(len(known)) if weight is None else weight[known]
        days, y = days[known].astype(np.float64), y[known]
        return cls(days, y, weight)._keep_first()

    def __add__(self, other: Self) -> Self:
        """Return the 10,000 rows with the smallest hashes among those of two samples."""
        both = [(self.days, other.days), (self.y, other.y), (self.weight, other.weight)]
        return type(self)(*map(np.concatenate, both))._keep_first()

    def _keep_first(self) -> Self:
        """Return the 10,000 rows with the smallest hashes of date and target, sorted by hash.

        Fewer rows are all kept.
        """
        days, y, weight = self.days, self.y, self.weight
        # Weights are not hashed, so that only their ratios matter.
        order = np.lexsort((weight, hash_samples(days, y.astype(np.float64))))[:_MOST_ROWS]
        return type(self)(days[order], y[order], weight[order])


def draw_samples(
    dates: DateColumns, features: DenseFeatures, y: NDArray[Any], weight: Float64 | None
) -> dict[int, DateSample]:
    """Draw a sample of rows for each date column; return the samples by index of the column.

    A sample has at most 10,000 rows; see `DateSample.draw`. dates: mapping from the index of a date
    column to its `DateColumn`. features: encoded training rows with n rows and the user's columns,
    of which date columns hold days since 1970. y: class codes or numeric targets, (n,) or (n,
    n_outputs). weight: weights, (n,); None: 1 each.
    """
    return {j: DateSample.draw(features.columns[j], y, weight) for j in dates}


def choose_all_parts(
    dates: DateColumns, samples: Mapping[int, DateSample], is_constrained: NDArray[np.bool_]
) -> dict[int, DateColumn]:
    """Choose the calendar parts of all date columns; return copies with these `parts`, by index.

    Parts are the month, day, weekday or hour of a date, which trees read as further features;
    `choose_parts` chooses them for each column. Columns with a monotonic constraint get none, as
    parts would break the constraint. dates: mapping from the index of a date column to its
    `DateColumn`. samples: a sample of training rows for each of them. is_constrained: True for
    features with a constraint, (p,).
    """
    return {
        j: one if is_constrained[j] else replace(one, parts=choose_parts(one, samples[j]))
        for j, one in dates.items()
    }


def choose_parts(column: DateColumn, sample: DateSample) -> tuple[CalendarPart, ...]:
    """Choose the calendar parts of a date column that lower the loss of a simple model.

    The simple model is a line in the date, plus constants for 4, 16, 64 and 256 bins of the date,
    plus a constant for each value of the parts, each fitted to the residuals of those before. Its
    target are indicators of the classes, or the ranks of numeric targets; its loss is the squared
    error on the left-out rows of five folds. Parts are added one by one, the best first, as long as
    one lowers the mean loss by two standard errors of the difference, and by 0.2 % of the
    target's variance.

    Parameters
    ----------
    column : DateColumn
        Kind and time zone of the column.
    sample : DateSample
        Training rows. With fewer than 50 no part is chosen.

    Returns
    -------
    tuple of str
        The chosen parts, in the order "month", "day", "weekday", "hour"; empty for time spans.
    """
    candidates = _list_candidates(column)
    if not candidates or len(sample.days) < _FEW_ROWS:
        return ()
    local = LocalTime.read(sample.days, column.zone)
    # Parts that do not recur follow from the date.
    codes = {part: local.count(part) for part in candidates if _recurs(local, part)}
    if not codes:
        return ()
    weight = sample.weight / sample.weight.mean()
    target = _make_target(sample.y)
    centred = target - (weight[:, None] * target).mean(axis=0)
    least_gain = _LEAST_GAIN * float((weight[:, None] * centred**2).sum(axis=1).mean())
    folds = _fit_fold_residuals(sample.days, target, weight)
    chosen: list[CalendarPart] = []
    loss = _cross_validate(folds, weight, [])
    while len(chosen) < len(codes):
        best, best_loss, best_gain = None, loss, _STANDARD_ERRORS
        for part in codes:
            if part in chosen:
                continue
            new_loss = _cross_validate(folds, weight, [codes[one] for one in [*chosen, part]])
            gain = loss - new_loss
            ratio = _count_standard_errors(gain)
            if ratio > best_gain and gain.mean() >= least_gain:
                best, best_loss, best_gain = part, new_loss, ratio
        if best is None:
            break
        chosen.append(best)
        loss = best_loss
    return tuple(part for part in candidates if part in chosen)


def _list_candidates(column: DateColumn) -> tuple[CalendarPart, ...]:
    """Return the calendar parts that a date column may have: none for time spans.

    Columns of dates have "month", "day" and "weekday"; columns with times of day also have "hour".
    """
    if column.kind == "span":
        return ()
    days: tuple[CalendarPart, ...] = ("month", "day", "weekday")
    return (*days, "hour") if column.has_hours else days


def _recurs(local: LocalTime, part: CalendarPart) -> bool:
    """Return whether a calendar part has several values, each in at least 1.5 periods on average.

    A period is for instance a year for "month". If the values of a part do not recur, the date
    itself predicts nearly as well as the part. local: times of the rows; part: name of the part.
    """
    values = local.count(part)
    n_pairs = len(np.unique(local.count_cycle(part) * 64 + values))
    n_values = len(np.unique(values))
    return n_values > 1 and n_pairs >= 1.5 * n_values


def _make_target(y: NDArray[Any]) -> Float64:
    """Convert targets to the q columns that the model of `choose_parts` predicts, (n, q) float64.

    y: class codes (int32), which become indicators of the 16 most frequent classes, or numeric
    targets, which become ranks between 0 and 1; (n,) or (n, n_targets). With several targets the
    columns are joined.
    """
    columns = []
    for one in y.reshape(len(y), -1).T:
        if y.dtype == np.int32:
            classes, counts = np.unique(one, return_counts=True)
            most = classes[np.argsort(-counts, kind="stable")[:_MOST_CLASSES]]
            columns += [(one == k).astype(np.float64) for k in np.sort(most)]
        else:
            ordered = np.sort(one)
            sides: Any = ("left", "right")
            ranks = sum(np.searchsorted(ordered, one, side=side) for side in sides)
            columns.append(ranks / (2 * len(one)))
    return np.column_stack(columns)


class _FoldResiduals(NamedTuple):
    """Residuals of all n rows after a model of the date alone, fitted to one fold's training rows.

    The model is a line in the date plus the means of bins of the date.

    Parameters
    ----------
    is_left_out : ndarray of bool, shape (n,)
        True for the validation rows of the fold, which were not fitted.
    weight : ndarray of float64, shape (n,)
        Weights of the fitted rows, 0 for those left out.
    residuals : list of ndarray of float64, shape (n, q)
        Residuals of q target columns after the line and 4 bins, 4 and 16 bins, and so on: one array
        for each number of bins. Rows that are left out have residuals, too.
    """

    is_left_out: NDArray[np.bool_]
    weight: Float64
    residuals: list[Float64]


def _fit_fold_residuals(days: Float64, target: Float64, weight: Float64) -> list[_FoldResiduals]:
    """Fit a model of the date alone to each fold's training rows; return residuals of all n rows.

    There are five folds: row i is left out in fold i modulo 5. Each fold's entry of the result has
    the residuals of its training rows and of the rows that it leaves out. The model is a line in
    the date plus the means of 4, 16, 64 and 256 bins of the date. They are fitted one after the
    other, each to the residuals of the one before; residuals are stored after each number of bins.

    days: dates of the rows as numbers, (n,). target: columns to predict, (n, q). weight: weights of
    the rows, (n,), with mean 1.
    """
    codes = [
        np.searchsorted(np.unique(np.quantile(days, np.arange(1, n_bins) / n_bins)), days)
        for n_bins in _N_BINS
    ]
    folds = []
    for fold in range(_N_FOLDS):
        is_left_out = np.arange(len(days)) % _N_FOLDS == fold
        train_weight = np.where(is_left_out, 0.0, weight)
        rest, residuals = _subtract_line(days, target, train_weight), []
        for code in codes:
            rest = _subtract_means(code, rest, train_weight)
            residuals.append(rest)
        folds.append(_FoldResiduals(is_left_out, train_weight, residuals))
    return folds


def _cross_validate(
    folds: Sequence[_FoldResiduals], weight: Float64, parts: Sequence[Int64]
) -> Float64:
    """Compute the cross-validated loss of each row under a model of the date and of calendar parts.

    The parts are fitted to the residuals of the date one after the other: the mean of each value of
    a part is subtracted before the next part is fitted. `_FoldResiduals` has residuals for 4, 16,
    64 and 256 bins of the date; those with the smallest total loss are used.

    folds: residuals of the model of the date, for each fold. weight: weights of the rows, (n,).
    parts: values of each calendar part in the model, (n,) each; empty for the date alone. Return
    the weight of each row times its squared error, when its fold is left out, (n,).
    """
    losses = np.zeros((len(_N_BINS), len(weight)))
    for fold in folds:
        for loss, residual in zip(losses, fold.residuals, strict=True):
            rest = residual
            for code in parts:
                rest = _subtract_means(code, rest, fold.weight)
            loss[fold.is_left_out] = (weight * (rest**2).sum(axis=1))[fold.is_left_out]
    best: Float64 = losses[losses.sum(axis=1).argmin()]
    return best


def _subtract_line(days: Float64, target: Float64, weight: Float64) -> Float64:
    """Return the residuals of weighted linear regressions of target columns on the date, (n, q).

    days: dates as numbers, (n,). target: the q columns, (n, q). weight: weights of the rows, (n,),
    0 for rows that are not fitted.
    """
    total = weight.sum()
    x = days - (weight * days).sum() / total
    spread = (weight * x**2).sum()
    rest = np.empty_like(target)
    for k, one in enumerate(target.T):
        centred = one - (weight * one).sum() / total
        slope = (weight * x * centred).sum() / spread if spread > 0 else 0.0
        rest[:, k] = centred - slope * x
    return rest


def _subtract_means(code: Int64, rest: Float64, weight: Float64) -> Float64:
    """Subtract from each row the weighted mean of the rows with its code; return (n, q).

    The means are shrunk to 0 by one row of weight 1. code: bin or value of a calendar part of each
    row, (n,), integers >= 0. rest: residuals of q columns, (n, q). weight: weights of the rows,
    (n,), 0 for rows that are not fitted; its mean is about 1.
    """
    total = np.bincount(code, weight) + 1.0
    means = [np.bincount(code, weight * one) / total for one in rest.T]
    return rest - np.column_stack([one[code] for one in means])


def _count_standard_errors(gain: Float64) -> float:
    """Return the mean of `gain`, (n,), divided by the standard error of the mean.

    Return 0 if all numbers are equal. gain: decrease of the loss of each row.
    """
    error = gain.std() / np.sqrt(len(gain))
    return float(gain.mean() / error) if error > 0 else 0.0
