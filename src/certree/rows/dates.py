"""Dates of data frames as numbers or parts, which trees can compare."""

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
# What parts are made of: a name, the unit of NumPy that counts it, and the one that it is counted in.
_PARTS = {"year": "Y", "month": "M", "day": "D", "weekday": "D", "hour": "h"}


class DateFeatures(TransformerMixin, BaseEstimator):
    """Turn the dates, times and time spans of a data frame into numbers.

    All other columns stay as they are, so that it stands in front of any estimator in a pipeline, or is
    the `preprocessor` of a certified one.

    Parameters
    ----------
    dates : {"number", "parts"}, default="number"
        "number": days since 1 January 1970, UTC, with fractions for times: before and after are all
        that a tree asks. "parts": year, month, day, weekday (Monday is 0) and, where a date of the fit
        has a time, hour, by the clock of its time zone. Time spans are days in either case.

    Attributes
    ----------
    columns_ : dict of str to (str or None)
        The columns that are turned, each with its time zone; None: it has none.
    hours_ : set of str
        Those of them whose parts have hours.
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

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:  # noqa: ARG002 -- as pipelines call it
        """Remember which columns hold dates, and their time zones.

        Parameters
        ----------
        X : data frame of shape (n, p)
            Of pandas, polars, Arrow or any library that narwhals knows.
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
        """Turn the dates of rows into numbers, NaN where one is missing.

        Parameters
        ----------
        X : data frame of shape (n, p)
            With the columns of the fit.

        Returns
        -------
        data frame
            Of the same library; the columns that `get_feature_names_out` names.

        Raises
        ------
        ValueError
            If X is no data frame or has other columns, or a column holds other things than in the fit.
        """
        check_is_fitted(self)
        frame, names = _expect_frame(X), self.feature_names_in_.tolist()
        if frame.columns != names:
            raise ValueError(f"X must have the columns of the fit, {names}, got {frame.columns}")
        made: list[nw.Series[Any]] = []
        for name in names:
            if name in self.columns_:
                made += self._turned(frame[name])
            elif has_times(frame[name]):
                raise ValueError(f"column {name!r} held no dates or times in the fit, and does now")
            else:
                made.append(frame[name])
        return frame.select(*made).to_native()

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns that `transform` makes.

        Parameters
        ----------
        input_features : array-like of str, or None
            Those of the fit, or None.

        Returns
        -------
        ndarray of str objects

        Raises
        ------
        ValueError
            If `input_features` are others than those of the fit.
        """
        check_is_fitted(self)
        names = self.feature_names_in_.tolist()
        if input_features is not None and list(np.asarray(input_features)) != names:
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array([made for name in names for made in self._names(name)], dtype=object)

    def _names(self, name: str) -> list[str]:
        """What becomes of a column."""
        if name not in self.columns_ or not self._in_parts(name):
            return [name]
        return [f"{name}_{part}" for part in self._parts(name)]

    def _in_parts(self, name: str) -> bool:
        return self.dates == "parts" and self.columns_[name] != _SPAN

    def _parts(self, name: str) -> list[str]:
        return [part for part in _PARTS if part != "hour" or name in self.hours_]

    def _turned(self, column: nw.Series[Any]) -> list[nw.Series[Any]]:
        name, zone = column.name, self.columns_[column.name]
        if len(column) > column.null_count() and not has_times(column):
            raise ValueError(f"column {name!r} held dates or times in the fit, and does not now")
        now = zone if not len(column) - column.null_count() else _find_zone(column)
        if now != zone:
            raise ValueError(
                f"column {name!r} held {_describe_zone(zone)} in the fit, and holds {_describe_zone(now)} now"
            )
        if not self._in_parts(name):
            return [_make_column(column, name, _count_microseconds(column) / _PER_DAY)]
        local = _count_microseconds(column, zone)
        parts = {part: _extract_part(local, part) for part in self._parts(name)}
        return [_make_column(column, f"{name}_{part}", values) for part, values in parts.items()]


# What single objects may be.
_DATES = (date, timedelta, np.datetime64, np.timedelta64)
# Stands in place of a time zone.
_SPAN = "time span"


def _describe_zone(zone: str | None) -> str:
    if zone == _SPAN:
        return "time spans"
    return "dates without a time zone" if zone is None else f"dates of the time zone {zone}"


def _expect_frame(X: Any) -> nw.DataFrame[Any]:
    frame = as_data_frame(X)
    if frame is None:
        raise ValueError(
            "X must be a data frame, whose columns say which of them hold dates, got "
            f"{type(X).__name__}"
        )
    return frame


def _find_zone(column: nw.Series[Any]) -> str | None:
    """The time zone of a column of dates; None: it has none, or `_SPAN`."""
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
    """Objects that are dates or time spans, as NumPy has them; missing values are NaT."""
    values = [None if is_missing(value) else value for value in column.to_list()]
    try:
        present = [value for value in values if value is not None]
        if any(not isinstance(one, _DATES) or getattr(one, "tzinfo", None) for one in present):
            raise TypeError("no dates, or time zones of single values")
        found = np.array([np.datetime64("NaT") if one is None else one for one in values])
        if found.dtype.kind == "O":
            found = np.array(values, dtype="datetime64[us]")
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.dtype.kind not in "mM":
        raise ValueError(
            f"column {column.name!r} holds times without a date, periods, time zones of single "
            "values, or dates beside other things: give it one type of dates"
        )
    return found


def _count_microseconds(column: nw.Series[Any], zone: str | None = None) -> Float64:
    """Microseconds of a span, or since 1970 by the clock of a time zone, NaN where one is missing."""
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
    """A part of dates by their microseconds since 1970, NaN where one is missing."""
    known = ~np.isnan(local)
    moments = np.where(known, local, 0).astype(np.int64).astype("datetime64[us]")
    days, months = moments.astype("datetime64[D]"), moments.astype("datetime64[M]")
    made: dict[str, Callable[[], Any]] = {
        "year": lambda: months.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": lambda: months.astype(np.int64) % 12 + 1,
        "day": lambda: (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": lambda: (days.astype(np.int64) + 3) % 7,
        "hour": lambda: (moments - days).astype("timedelta64[h]").astype(np.int64),
    }
    return np.where(known, made[part](), np.nan)


def _make_column(column: nw.Series[Any], name: str, values: Float64) -> nw.Series[Any]:
    """A column of numbers for the same rows of the same library."""
    made = nw.new_series(name, values, nw.Float64(), backend=nw.get_native_namespace(column))
    index = nw.maybe_get_index(column)
    return made if index is None else nw.maybe_set_index(made, index=index)
