"""Convert dates of data frames to numbers, or to year, month, day and so on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, ClassVar, Literal, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from certree.interface.arrays import Float64
from certree.rows.columns import as_data_frame, has_times, is_missing

Dates = Literal["number", "parts"]

_PER_DAY = 86_400e6  # microseconds
# Parts of a date, with NumPy's unit of each.
_PARTS = {"year": "Y", "month": "M", "day": "D", "weekday": "D", "hour": "h"}


class DateFeatures(TransformerMixin, BaseEstimator):
    """Turn the dates, times and time spans of a data frame into numeric columns.

    All other columns stay as they are, so it can be a step before any estimator in a pipeline, or
    the `preprocessor` of a certified one.

    Parameters
    ----------
    dates : {"number", "parts"}, default="number"
        "number": days since 1 January 1970, UTC; times are fractions of a day. "parts": year,
        month, day, weekday (Monday is 0) and, if a date of the fit has a time, hour, by the clock
        of its time zone. Time spans become days in either case.

    Attributes
    ----------
    columns_ : dict of str to (str or None)
        Time zone of each converted column, by its name; None: it has none. "time span" for time
        spans.
    hours_ : set of str
        Names of the columns of dates that have a time of day; with "parts" they give an hour.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of the fit.
    n_features_in_ : int
        Number of columns of the fit.

    Examples
    --------
    >>> import pandas as pd
    >>> from certree.rows import DateFeatures
    >>> frame = pd.DataFrame({"opened": pd.to_datetime(["2024-02-29", None]), "debt": [1.0, 2.0]})
    >>> DateFeatures().fit_transform(frame)
        opened  debt
    0  19782.0   1.0
    1      NaN   2.0
    >>> DateFeatures("parts").fit(frame).get_feature_names_out().tolist()
    ['opened_year', 'opened_month', 'opened_day', 'opened_weekday', 'debt']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "dates": [StrOptions({"number", "parts"})]
    }

    def __init__(self, dates: Dates = "number") -> None:
        self.dates: Dates = dates

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:  # noqa: ARG002 -- pipelines pass y
        """Find the columns that hold dates, times or time spans, and their time zones.

        Parameters
        ----------
        X : data frame of shape (n, p)
            Of pandas, polars, Arrow or any library that narwhals reads.
        y : object
            Not read.

        Returns
        -------
        self : object
            The fitted transformer.

        Raises
        ------
        ValueError
            If X is no data frame, or a column holds times without a date, or periods.
        """
        self._validate_params()
        frame = _expect_frame(X)
        found = [name for name in frame.columns if has_times(frame[name])]
        self.columns_ = {name: _find_zone(frame[name]) for name in found}
        self.hours_ = {name for name in found if _has_hours(frame[name], self.columns_[name])}
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = len(frame.columns)
        return self

    def transform(self, X: Any) -> Any:
        """Convert the dates, times and time spans of rows to numbers, NaN where one is missing.

        Parameters
        ----------
        X : data frame of shape (n, p)
            Rows with the columns of the fit.

        Returns
        -------
        data frame
            Of the same library, with the columns that `get_feature_names_out` names.

        Raises
        ------
        ValueError
            If X is no data frame or has other columns, or a column does not hold dates of the same
            time zone, or time spans, as in the fit.
        """
        check_is_fitted(self)
        frame, names = _expect_frame(X), self.feature_names_in_.tolist()
        if frame.columns != names:
            raise ValueError(f"X must have the columns of the fit, {names}, got {frame.columns}")
        converted: list[nw.Series[Any]] = []
        for name in names:
            if name in self.columns_:
                converted += self._convert_column(frame[name])
            elif has_times(frame[name]):
                raise ValueError(
                    f"column {name!r} must hold no dates or times, as in the fit, but holds some: "
                    "convert it as for the fit, or fit again"
                )
            else:
                converted.append(frame[name])
        return frame.select(*converted).to_native()

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` makes.

        Parameters
        ----------
        input_features : array-like of str, or None
            Names of the columns of the fit, or None.

        Returns
        -------
        ndarray of str objects
            Names in the order of the columns; with "parts" a date gives "<name>_year" and so on.

        Raises
        ------
        ValueError
            If `input_features` differs from the names of the fit.
        """
        check_is_fitted(self)
        names = self.feature_names_in_.tolist()
        if input_features is not None and list(np.asarray(input_features)) != names:
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array([output for name in names for output in self._names(name)], dtype=object)

    def _names(self, name: str) -> list[str]:
        """Return the names of the columns that `transform` makes of one column.

        name: name of a column of the fit. A date with dates="parts" gives "<name>_year", "_month",
        "_day", "_weekday" and, if the name is in `hours_`, "_hour"; other columns keep their names.
        """
        if name not in self.columns_ or not self._in_parts(name):
            return [name]
        return [f"{name}_{part}" for part in self._parts(name)]

    def _in_parts(self, name: str) -> bool:
        return self.dates == "parts" and self.columns_[name] != _SPAN

    def _parts(self, name: str) -> list[str]:
        return [part for part in _PARTS if part != "hour" or name in self.hours_]

    def _convert_column(self, column: nw.Series[Any]) -> list[nw.Series[Any]]:
        name, zone = column.name, self.columns_[column.name]
        if len(column) > column.null_count() and not has_times(column):
            raise ValueError(
                f"column {name!r} must hold dates or times, as in the fit, but holds none: convert "
                "it as for the fit, or fit again"
            )
        now = zone if not len(column) - column.null_count() else _find_zone(column)
        if now != zone:
            raise ValueError(
                f"column {name!r} held {_describe_zone(zone)} in the fit, and holds "
                f"{_describe_zone(now)} now: convert it as for the fit, or fit again"
            )
        if not self._in_parts(name):
            return [_make_column(column, name, _count_microseconds(column) / _PER_DAY)]
        local = _count_microseconds(column, zone)
        parts = {part: _extract_part(local, part) for part in self._parts(name)}
        return [_make_column(column, f"{name}_{part}", values) for part, values in parts.items()]


# Accepted types of single objects.
_DATES = (date, timedelta, np.datetime64, np.timedelta64)
# Entry of `columns_` for a column of time spans, in place of a time zone.
_SPAN = "time span"


def _describe_zone(zone: str | None) -> str:
    if zone == _SPAN:
        return "time spans"
    return "dates without a time zone" if zone is None else f"dates of the time zone {zone}"


def _expect_frame(X: Any) -> nw.DataFrame[Any]:
    frame = as_data_frame(X)
    if frame is None:
        raise ValueError(
            "X must be a data frame, as the types of its columns decide which hold dates, got "
            f"{type(X).__name__}"
        )
    return frame


def _find_zone(column: nw.Series[Any]) -> str | None:
    """Return the entry of `DateFeatures.columns_` for a column of dates, times or time spans.

    That is the name of the time zone, None for dates without a time zone, or "time span". Raise a
    ValueError for a column of Python objects that are not all dates, or all time spans, without a
    time zone.
    """
    dtype = column.dtype
    if isinstance(dtype, nw.Datetime):
        return None if dtype.time_zone is None else str(dtype.time_zone)
    if isinstance(dtype, nw.Duration):
        return _SPAN
    if isinstance(dtype, nw.Date):
        return None
    values = _to_datetime64(column)
    return _SPAN if values.dtype.kind == "m" else None


def _to_datetime64(column: nw.Series[Any]) -> NDArray[Any]:
    """Convert a column of date or time span objects to datetime64 or timedelta64, (n,).

    Missing values become NaT. Raise a ValueError if the column holds any other objects, such as
    times without a date or pandas periods, if it holds both dates and time spans, or if values have
    a time zone.
    """
    values = [None if is_missing(value) else value for value in column.to_list()]
    try:
        present = [value for value in values if value is not None]
        if any(not isinstance(one, _DATES) or getattr(one, "tzinfo", None) for one in present):
            raise TypeError("values must be dates or time spans without a time zone")
        found = np.array([np.datetime64("NaT") if one is None else one for one in values])
        if found.dtype.kind == "O":
            found = np.array(values, dtype="datetime64[us]")
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.dtype.kind not in "mM":
        raise ValueError(
            f"column {column.name!r} must hold dates or time spans of one type, got times without a "
            "date, periods, values with different time zones, or other objects: convert it to one type"
        )
    return found


def _count_microseconds(column: nw.Series[Any], zone: str | None = None) -> Float64:
    """Convert time spans to microseconds, and dates to microseconds since 1 January 1970.

    The result is float64, (n,), with NaN for missing values. zone: time zone of the column, to
    count dates by the local clock of this zone; None: dates are counted in UTC, or as they are if
    they have no time zone.
    """
    dtype = column.dtype
    if isinstance(dtype, nw.Duration):
        found = column.dt.total_microseconds()
    elif isinstance(dtype, nw.Date | nw.Datetime):
        moments = column.cast(nw.Datetime("us")) if isinstance(dtype, nw.Date) else column
        if zone is not None:
            moments = moments.dt.replace_time_zone(None)
        found = moments.dt.timestamp("us")
    else:
        values = _to_datetime64(column)
        unit = "timedelta64[us]" if values.dtype.kind == "m" else "datetime64[us]"
        whole = values.astype(unit)
        return np.where(np.isnat(whole), np.nan, whole.astype(np.int64).astype(np.float64))
    whole_numbers = [np.nan if is_missing(one) else float(one) for one in found.to_list()]
    return np.array(whole_numbers, dtype=np.float64)


def _has_hours(column: nw.Series[Any], zone: str | None) -> bool:
    if zone == _SPAN:
        return False
    local = _count_microseconds(column, zone)
    return bool((local[~np.isnan(local)] % _PER_DAY != 0).any())


def _extract_part(local: Float64, part: str) -> Float64:
    """Extract the year, month, day, weekday or hour of dates, (n,) float64.

    local: microseconds since 1970 by the local clock, (n,), NaN where a date is missing, which
    stays NaN. part: "year", "month" (1 to 12), "day" (of the month, from 1), "weekday" (Monday is
    0) or "hour" (0 to 23).
    """
    is_present = ~np.isnan(local)
    moments = np.where(is_present, local, 0).astype(np.int64).astype("datetime64[us]")
    days, months = moments.astype("datetime64[D]"), moments.astype("datetime64[M]")
    compute: dict[str, Callable[[], Any]] = {
        "year": lambda: months.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": lambda: months.astype(np.int64) % 12 + 1,
        "day": lambda: (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": lambda: (days.astype(np.int64) + 3) % 7,
        "hour": lambda: (moments - days).astype("timedelta64[h]").astype(np.int64),
    }
    return np.where(is_present, compute[part](), np.nan)


def _make_column(column: nw.Series[Any], name: str, values: Float64) -> nw.Series[Any]:
    """Make a column of numbers in the data frame library of another column.

    column: a column of that library, whose index (in pandas) the result gets. name: name of the new
    column. values: its values, (n,).
    """
    series = nw.new_series(name, values, nw.Float64(), backend=nw.get_native_namespace(column))
    index = nw.maybe_get_index(column)
    return series if index is None else nw.maybe_set_index(series, index=index)
