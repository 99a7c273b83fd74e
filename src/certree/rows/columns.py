"""Columns at the door: tables of every library are read one feature at a time, and become numbers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time, timedelta
from reprlib import repr as shortened
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from certree.interface.arrays import MAX_EXACT_INTEGER, Float64, check_exact, has_inexact_integers

# A column of a data frame, or of an array.
SeriesOrArray = nw.Series[Any] | NDArray[Any]

_OBJECTS = (nw.Object, nw.Unknown)
# Of these, all numbers are numbers of float64; words are none at all.
_EXACT = (
    *(nw.Boolean, nw.Float64, nw.Float32, nw.String),
    *(nw.Int32, nw.Int16, nw.Int8, nw.UInt32, nw.UInt16, nw.UInt8),
)
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
# What pandas has in place of None and NaN.
_MISSING = ("NAType", "NaTType")


@dataclass(frozen=True, slots=True, eq=False)
class TableColumns:
    """The columns of an array or of a data frame.

    Parameters
    ----------
    columns : sequence of Column
        One for each feature.
    n : int
        Number of rows.
    names : list of str, or None
        Names of the features of a data frame.
    """

    columns: Sequence[SeriesOrArray]
    n: int
    names: list[str] | None

    @classmethod
    def read(cls, X: Any) -> TableColumns:
        """Take a data frame of any library that narwhals knows, or an array-like of shape (n, p)."""
        frame = as_data_frame(X)
        if frame is not None:
            columns = [frame[:, j] for j in range(frame.shape[1])]
            return cls(columns, len(frame), frame.columns)
        array = _to_exact_array(X)
        if array.dtype.kind == "U":
            array = np.asarray(X, dtype=object)  # numbers beside strings stay numbers
        if array.ndim != 2:
            raise ValueError(f"Expected 2D array, got array of shape {array.shape} instead")
        return cls([*array.T], len(array), None)

    def get_label(self, j: int) -> str:
        """What error messages call a feature."""
        return f"feature {j if self.names is None else self.names[j]!r}"


def as_data_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a data frame, if it is one of pandas, polars, Arrow or another library."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"the names of features must differ: {error}") from error
    return frame if isinstance(frame, nw.DataFrame) else None


def count_numeric_columns(X: Any) -> int:
    """Number of columns of a data frame that are all of numbers or booleans; 0 of all else."""
    frame = as_data_frame(X)
    dtypes = [] if frame is None else [*frame.schema.values()]
    return len(dtypes) if all(one.is_numeric() or one == nw.Boolean for one in dtypes) else 0


def take_rows(X: Any, indices: NDArray[Any]) -> Any:
    """Rows of a table or an array, by their numbers; scikit-learn 1.6 takes none of Arrow's tables."""
    frame = as_data_frame(X)
    return _safe_indexing(X, indices) if frame is None else frame[indices].to_native()


def copy_raw_values(X: Any) -> NDArray[Any]:
    """Copy the values of a table as they are: numbers (n, p), or objects where some are none."""
    table = TableColumns.read(X)
    columns = [get_raw_column(column) for column in table.columns]
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.column_stack(columns)
    values = np.empty((table.n, len(columns)), dtype=object)
    for j, column in enumerate(columns):
        values[:, j] = column
    return values


def get_raw_column(column: SeriesOrArray) -> NDArray[Any]:
    """The values of a column as they are: numbers, or objects where some are none."""
    if not isinstance(column, nw.Series):
        return column
    return column.to_numpy() if is_numeric(column) else _to_objects(column)


def _to_objects(column: nw.Series[Any]) -> NDArray[Any]:
    return np.fromiter(column.to_list(), object, len(column))


def is_numeric(column: nw.Series[Any]) -> bool:
    """Whether a data frame's column is of numbers or booleans."""
    return column.dtype.is_numeric() or column.dtype == nw.Boolean


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or what pandas has in their place."""
    if value is None or type(value).__name__ in _MISSING:
        return True
    return bool(value != value)


def has_times(column: SeriesOrArray) -> bool:
    """Whether a column is of dates, times or durations, or of objects with one of them."""
    if isinstance(column, nw.Series):
        if column.dtype.is_temporal():
            return True
        column = column.to_numpy() if column.dtype in _OBJECTS else np.zeros(0)
    if column.dtype.kind != "O":
        return column.dtype.kind in "mM"
    kinds = {kind for kind in map(type, column.tolist()) if kind.__name__ not in _MISSING}
    return any(issubclass(kind, _TIMES) or kind.__name__ == "Period" for kind in kinds)


def expect_no_times(column: SeriesOrArray, called: str) -> None:
    """Refuse dates and times, of some of which NumPy makes numbers without a word."""
    if has_times(column):
        raise ValueError(
            f"{called} holds dates or times, where numbers were expected: turn them into numbers, "
            "such as days since a date, as certree.rows.DateFeatures() does with those of data frames"
        )


def to_float64_column(column: SeriesOrArray, called: str) -> Float64:
    """Convert a column to float64, NaN where a value is missing.

    Parameters
    ----------
    column : Column
        Values, of any dtype.
    called : str
        What error messages call it.

    Returns
    -------
    ndarray of float64, shape (n,)

    Raises
    ------
    TypeError
        If it holds objects that are neither numbers nor text.
    ValueError
        If it holds text, dates, or whole numbers that float64 does not hold.
    """
    expect_no_times(column, called)
    numbers = _convert_to_float64(
        column.to_numpy() if isinstance(column, nw.Series) else column, called
    )
    if has_inexact_integers(numbers):
        check_exact(
            called, _to_objects(column) if isinstance(column, nw.Series) else column, numbers
        )
    return numbers


def to_float_column(column: SeriesOrArray, called: str) -> NDArray[Any]:
    """Do what `to_float64_column` does, but leave float64 and float32 where they are."""
    if column.dtype in (nw.Float64, nw.Float32, np.float64, np.float32):
        given = column.to_numpy() if isinstance(column, nw.Series) else column
        if given.dtype in (np.float64, np.float32):
            return np.require(given, None, "A")
    return to_float64_column(column, called)


def _convert_to_float64(column: NDArray[Any], called: str) -> Float64:
    column = column.astype(object) if column.dtype.kind == "U" else column
    if column.dtype.kind not in "biufO":
        raise ValueError(f"{called} must hold numbers, got dtype {column.dtype}")
    if column.dtype.kind == "O":  # what pandas has for missing values is no number to NumPy
        missing = [type(value).__name__ in _MISSING for value in column.tolist()]
        column = np.where(missing, np.nan, column) if any(missing) else column
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        odd = _find_first_non_number(column)
        remedy = (
            ": turn it into numbers, or list the feature in categorical_features of the fit if it "
            "holds names"
        )
        said = f"{called} must hold numbers, got {shortened(odd)}"
        raise kind(said + (remedy if isinstance(odd, str) else "")) from None


def _find_first_non_number(values: NDArray[Any]) -> Any:
    for value in values.tolist():
        try:
            np.float64(value)
        except (TypeError, ValueError, OverflowError):
            return value
    return values


def expect_exact_numbers(X: Any) -> None:
    """Refuse what scikit-learn's validation makes other numbers of without a word.

    Parameters
    ----------
    X : data frame or array-like
        Rows. What is no table at all, and what holds objects, is left to scikit-learn.

    Raises
    ------
    ValueError
        If a feature holds dates or times, or whole numbers that float64 does not hold.
    """
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        return
    frame = as_data_frame(X)
    if frame is None:
        try:
            X = _to_exact_array(X)
        except (ValueError, TypeError):
            return
        near = (
            X.dtype.kind in "iu"
            and X.size
            and -MAX_EXACT_INTEGER <= X.min() <= X.max() <= MAX_EXACT_INTEGER
        )
        if near or X.ndim != 2 or X.dtype.kind not in "iumMO":
            return
    elif all(dtype in _EXACT for dtype in frame.schema.values()):
        return
    table = TableColumns.read(X)
    for j, column in enumerate(table.columns):
        if not (isinstance(column, nw.Series) and column.dtype in _EXACT):
            with suppress(TypeError):
                to_float64_column(column, table.get_label(j))


def expect_columns_of_numbers(X: Any) -> None:
    """Refuse columns of text or objects that are no numbers, by their names; see `to_float64_column`.

    X : data frame or array-like
        Rows. What is no table at all, and complex numbers, are left to scikit-learn.
    """
    try:
        table = TableColumns.read(X)
    except (TypeError, ValueError):
        return
    for j, column in enumerate(table.columns):
        if isinstance(column, nw.Series) or column.dtype.kind in "OUS":
            to_float64_column(column, table.get_label(j))


def _to_exact_array(X: Any) -> NDArray[Any]:
    """An array that holds what is given: NumPy makes floats of whole numbers that stand beside some."""
    given = np.asarray(X)
    if given is not X and given.dtype.kind == "f" and has_inexact_integers(given):
        return np.asarray(X, dtype=object)
    return given
