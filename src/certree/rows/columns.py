"""Read tables of any library one column at a time, and convert columns to numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, time, timedelta
from reprlib import repr as shortened
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from certree.interface.arrays import (
    MAX_EXACT_INTEGER,
    Float64,
    check_exact,
    has_inexact_integers,
    to_array,
)

# A column of a data frame, or of an array.
SeriesOrArray = nw.Series[Any] | NDArray[Any]

_OBJECTS = (nw.Object, nw.Unknown)
# Types whose numbers float64 holds exactly; strings are included as they hold no numbers.
_EXACT = (
    *(nw.Boolean, nw.Float64, nw.Float32, nw.String),
    *(nw.Int32, nw.Int16, nw.Int8, nw.UInt32, nw.UInt16, nw.UInt8),
)
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
# Types of the missing values of pandas.
_MISSING = ("NAType", "NaTType")
# What to do with columns of a data frame that are no features, by their type.
_REMEDIES = {
    "Struct": "make a column of each of its fields",
    "List": "make a column of each element, or of a number such as the length of the list",
    "Array": "make a column of each element",
    "Map": "make a column of each key",
    "Binary": "decode the bytes to text, or convert them to numbers",
}


@dataclass(frozen=True, slots=True, eq=False)
class TableColumns:
    """Columns of an array or of a data frame, without conversion of their values.

    `read` makes an instance.

    Parameters
    ----------
    columns : sequence of (narwhals Series or ndarray of shape (n,))
        Values of each feature: Series of a data frame, or columns of an array.
    n : int
        Number of rows.
    names : list of str, or None
        Names of the features; None for an array.
    """

    columns: Sequence[SeriesOrArray]
    n: int
    names: list[str] | None

    @classmethod
    def read(cls, X: Any) -> TableColumns:
        """Read the columns of a data frame, or of an array-like of shape (n, p).

        X: data frame of any library that narwhals reads, or array-like. Lists of lists become
        arrays, with dtype object if a common dtype would change integers or numbers beside strings.

        Raise a ValueError if an array is not two-dimensional, or two columns of a data frame have
        the same name.
        """
        frame = as_data_frame(X)
        if frame is not None:
            columns = [frame[:, j] for j in range(frame.shape[1])]
            return cls(columns, len(frame), frame.columns)
        array = _to_exact_array(X)
        if array.dtype.kind == "U":
            array = np.asarray(
                X, dtype=object
            )  # NumPy would convert numbers beside strings to strings
        if array.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got array of shape {array.shape} instead: X must have shape "
                "(n_samples, n_features). Pass a row as X.iloc[[i]] or x.reshape(1, -1), and "
                "dictionaries as a data frame"
            )
        return cls([*array.T], len(array), None)

    def get_label(self, j: int) -> str:
        """Return how messages name feature j: "feature 'age'", or "feature 3" without names."""
        return f"feature {j if self.names is None else self.names[j]!r}"


def as_data_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Wrap a data frame (pandas, polars, Arrow, ...) by narwhals; return None for any other X.

    Raise a ValueError if two columns have the same name.
    """
    if isinstance(X, np.ndarray):
        return None  # narwhals would look for all libraries of data frames first
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(
            f"X must have distinct column names, got {error}: rename the columns"
        ) from error
    return frame if isinstance(frame, nw.DataFrame) else None


def expect_table(X: Any) -> None:
    """Raise an error if dense rows are not a table whose columns can be read.

    X: the rows, of any type; what is not named here passes. A TypeError is raised for dictionaries,
    and for a data frame with a column of structs, lists, maps or bytes; a ValueError for a series,
    and for a data frame without columns, or with two columns of the same name.
    """
    if isinstance(X, Mapping) or (isinstance(X, list) and X and isinstance(X[0], Mapping)):
        raise TypeError(
            "X must have shape (n_samples, n_features), got dictionaries: pass them as a data frame, "
            "such as pandas.DataFrame(X)"
        )
    if isinstance(X, np.ndarray):
        return
    if isinstance(nw.from_native(X, series_only=True, pass_through=True), nw.Series):
        raise ValueError(
            f"Expected 2D array, got a series of {len(X)} values instead: X must have shape "
            "(n_samples, n_features). Pass a row as X.iloc[[i]], and a column as X[[name]]"
        )
    frame = as_data_frame(X)
    if frame is not None and not frame.shape[1]:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={frame.shape}) while a minimum of 1 is required: "
            "pass a data frame with at least one column"
        )
    for name, dtype in () if frame is None else frame.schema.items():
        if remedy := _REMEDIES.get(type(dtype).__name__):
            raise TypeError(
                f"feature {name!r} must hold numbers, text, booleans or dates, got dtype {dtype}: "
                f"{remedy}"
            )


def to_plain_columns(X: Any) -> Any:
    """Replace sparse columns of a data frame by dense ones, and integers of 128 bits by int64.

    Return any other X unchanged. Raise a ValueError if an integer exceeds 64 bits.
    """
    frame = as_data_frame(X)
    if frame is None:
        return X
    for name, dtype in frame.schema.items():
        if type(dtype).__name__ in ("Int128", "UInt128"):
            try:
                frame = frame.with_columns(nw.col(name).cast(nw.Int64))
            except Exception as error:  # Each library has an error of its own.
                raise ValueError(
                    f"feature {name!r} must hold numbers that float64 represents exactly, got dtype "
                    f"{dtype} with integers beyond 64 bits: convert the column to text if it holds "
                    "codes, or to float64"
                ) from error
            X = frame.to_native()
    if not frame.implementation.is_pandas():
        return X
    dense = {
        name: kind.subtype
        for name, kind in X.dtypes.items()
        if type(kind).__name__ == "SparseDtype"
    }
    return X.astype(dense) if dense else X


def count_numeric_columns(X: Any) -> int:
    """Return the number of columns of a data frame if all are numeric or boolean, else 0.

    Also return 0 if X is not a data frame.
    """
    frame = as_data_frame(X)
    dtypes = [] if frame is None else [*frame.schema.values()]
    return len(dtypes) if all(one.is_numeric() or one == nw.Boolean for one in dtypes) else 0


def take_rows(X: Any, indices: NDArray[Any]) -> Any:
    """Return some rows of a data frame, array or sparse matrix, in an object of the same library.

    indices: row numbers, (m,), in the order of the result. X: the rows, n of them.
    """
    frame = as_data_frame(X)
    return _safe_indexing(X, indices) if frame is None else frame[indices].to_native()


def copy_raw_values(X: Any) -> NDArray[Any]:
    """Copy the values of a data frame or array-like X to an array (n, p); encode no categories.

    The array has a numeric dtype if all columns are numeric; else it holds Python objects.
    """
    table = TableColumns.read(X)
    columns = [get_raw_column(column) for column in table.columns]
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.column_stack(columns)
    values = np.empty((table.n, len(columns)), dtype=object)
    for j, column in enumerate(columns):
        values[:, j] = column
    return values


def get_raw_column(column: SeriesOrArray) -> NDArray[Any]:
    """Return the values of a column as an array, (n,): numbers, or objects for other types.

    Dates become objects of `datetime`. column: narwhals Series or array (n,); an array without
    dates is returned unchanged.
    """
    if not isinstance(column, nw.Series):
        return to_objects(column) if column.dtype.kind in "mM" else column
    return column.to_numpy() if is_numeric(column) else to_objects(column)


def to_objects(column: SeriesOrArray) -> NDArray[Any]:
    """Return the values of a column as Python objects, (n,); dates become those of `datetime`.

    column: narwhals Series or array (n,).
    """
    if isinstance(column, nw.Series):
        return np.fromiter(column.to_list(), object, len(column))
    unit = np.datetime_data(column.dtype)[0] if column.dtype.kind in "mM" else ""
    if unit in ("ns", "ps", "fs", "as"):  # NumPy would convert these to integers
        column = column.astype(f"{column.dtype.kind}8[us]")
    return column.astype(object)


def is_numeric(column: nw.Series[Any]) -> bool:
    """Return whether a data frame's column, a narwhals Series, has a numeric or boolean type."""
    return column.dtype.is_numeric() or column.dtype == nw.Boolean


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in _MISSING:
        return True
    return bool(value != value)


def has_times(column: SeriesOrArray) -> bool:
    """Return whether a column holds dates, times, time spans or pandas periods.

    column: narwhals Series or array (n,). Its dtype decides; in a column of Python objects one such
    object suffices.
    """
    if isinstance(column, nw.Series):
        if column.dtype.is_temporal():
            return True
        column = column.to_numpy() if column.dtype in _OBJECTS else np.zeros(0)
    if column.dtype.kind != "O":
        return column.dtype.kind in "mM"
    kinds = {kind for kind in map(type, column.tolist()) if kind.__name__ not in _MISSING}
    return any(issubclass(kind, _TIMES) or kind.__name__ == "Period" for kind in kinds)


def expect_no_times(column: SeriesOrArray, label: str) -> None:
    """Raise a ValueError if a column holds dates, times or time spans.

    NumPy would convert some of them to numbers without a warning. Features that held dates in the
    fit are numbers before this check.

    column: narwhals Series or array (n,). label: how the message names the column.
    """
    if has_times(column):
        hint = ", as in the fit" if label.startswith("feature") else ""
        raise ValueError(
            f"{label} must hold numbers{hint}, got dates or times: convert them to numbers, such as "
            "days since a date"
        )


def to_float64_column(column: SeriesOrArray, label: str) -> Float64:
    """Convert a column to float64, NaN where a value is missing.

    Parameters
    ----------
    column : narwhals Series or ndarray of shape (n,)
        Values, of any dtype.
    label : str
        How messages name the column.

    Returns
    -------
    ndarray of float64, shape (n,)

    Raises
    ------
    TypeError
        If the column holds objects that are neither numbers nor text.
    ValueError
        If the column holds text that is not a number, dates, or integers that float64 cannot
        represent.
    """
    expect_no_times(column, label)
    numbers = _convert_to_float64(
        column.to_numpy() if isinstance(column, nw.Series) else column, label
    )
    if has_inexact_integers(numbers):
        check_exact(label, to_objects(column) if isinstance(column, nw.Series) else column, numbers)
    return numbers


def to_float_column(column: SeriesOrArray, label: str) -> NDArray[Any]:
    """Return a float64 or float32 column without a copy; convert any other one to float64, (n,).

    column: narwhals Series or array (n,). label: how messages name the column. Raise a TypeError
    for objects that are neither numbers nor text, and a ValueError for text that is not a number,
    for dates, and for integers that float64 cannot represent.
    """
    if column.dtype in (nw.Float64, nw.Float32, np.float64, np.float32):
        given = column.to_numpy() if isinstance(column, nw.Series) else column
        if given.dtype in (np.float64, np.float32):
            return np.require(given, None, "A")
    return to_float64_column(column, label)


def _convert_to_float64(column: NDArray[Any], label: str) -> Float64:
    column = column.astype(object) if column.dtype.kind == "U" else column
    if column.dtype.kind not in "biufO":
        raise ValueError(f"{label} must hold numbers, got dtype {column.dtype}: convert it")
    if column.dtype.kind == "O":  # NumPy cannot convert pandas.NA and NaT
        missing = [type(value).__name__ in _MISSING for value in column.tolist()]
        column = np.where(missing, np.nan, column) if any(missing) else column
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        value = find_first_non_number(column)
        hint = ""
        if isinstance(value, str):
            hint = (
                ": convert it to numbers, or list the feature in categorical_features of the fit if "
                "it holds names (such a list replaces the choice by dtype)"
            )
        raise kind(f"{label} must hold numbers, got {shortened(value)}{hint}") from None


def find_first_non_number(values: NDArray[Any]) -> Any:
    """Return the first object of an array that does not convert to float64.

    values: array of objects, (n,). If all of them convert, the array itself is returned.
    """
    for value in values.tolist():
        try:
            if np.ndim(np.float64(value)):  # a tuple of numbers converts to an array
                return value
        except (TypeError, ValueError, OverflowError):
            return value
    return values


def expect_exact_numbers(X: Any) -> None:
    """Raise an error for values that scikit-learn's validation would change without a warning.

    These are dates, which it converts to integers, and integers that float64 cannot represent,
    which it rounds. Call this before `sklearn.utils.check_array`, which finds all other errors.

    Parameters
    ----------
    X : data frame or array-like
        Rows. If X is neither a data frame nor a two-dimensional array, nothing is raised.

    Raises
    ------
    ValueError
        If a feature holds dates or times, or integers that float64 cannot represent.
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
    """Raise an error that names the first column with text, or with objects that are not numbers.

    Call this after scikit-learn's validation has raised an error that names no column. If no such
    column is found, nothing is raised.

    X: data frame or array-like, the rows. X that is not two-dimensional, and complex numbers, raise
    nothing. The error is a TypeError for objects, and a ValueError for text that is not a number,
    for dates, and for integers that float64 cannot represent.
    """
    try:
        table = TableColumns.read(X)
    except (TypeError, ValueError):
        return
    for j, column in enumerate(table.columns):
        if isinstance(column, nw.Series) or column.dtype.kind in "OUS":
            to_float64_column(column, table.get_label(j))


def _to_exact_array(X: Any) -> NDArray[Any]:
    """Convert an array-like to an array, without rounding integers.

    `numpy.asarray` converts integers beside floats to float64. If that would change an integer, the
    result has dtype object instead. Raise ValueError for lists of different lengths. X: an array, a
    sequence of rows, or another array-like.
    """
    try:
        given = np.asarray(X)
    except ValueError:
        given = to_array("X", X)  # names the argument in the error
    if given is not X and given.dtype.kind == "f" and has_inexact_integers(given):
        return np.asarray(X, dtype=object)
    return given
