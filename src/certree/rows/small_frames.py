"""Encode small data frames of pandas and polars quickly if their columns are like those of a fit."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import MAX_EXACT_INTEGER, Float64, has_inexact_integers
from certree.rows.categories import MAX_FLOAT32_CODES, UNKNOWN_CODE, Categories

# Larger frames gain little, as the general encoding has a cost per column.
_MAX_VALUES = 1024
# Type codes of NumPy for booleans, integers and float64.
_NUMPY_NUMBERS = frozenset("?bBhHiIlLqQd")
_PANDAS_NUMBERS = frozenset(
    (
        *("Int8Dtype", "Int16Dtype", "Int32Dtype", "Int64Dtype", "BooleanDtype", "Float64Dtype"),
        *("UInt8Dtype", "UInt16Dtype", "UInt32Dtype", "UInt64Dtype"),
    )
)
_PANDAS_TEXTS = frozenset(("StringDtype", "CategoricalDtype"))
_POLARS_NUMBERS = frozenset(
    (
        *("Boolean", "Float64", "Int8", "Int16", "Int32", "Int64"),
        *("UInt8", "UInt16", "UInt32", "UInt64"),
    )
)
_POLARS_TEXTS = frozenset(("String", "Categorical", "Enum"))

# What a column holds by its type: "nullable" are numbers of pandas with pandas.NA, "text" are texts
# and categories, "object" are Python objects.
_Kind = Literal["number", "float32", "nullable", "text", "object"]
_NUMPY_KINDS: frozenset[_Kind | None] = frozenset(("number", "float32"))


def encode_small_frame(
    X: Any, names: Sequence[str], categories: Categories | None, takes_float32: bool
) -> NDArray[Any] | None:
    """Encode a small data frame of pandas or polars that has the columns of the fit.

    The general encoding takes tens of microseconds for each column, much longer than a model
    predicts a row. This function reads all values in one call, as Python objects. It encodes only
    frames for which the general encoding raises no error, and with the same result.

    Parameters
    ----------
    X : object
        Rows, not encoded.
    names : sequence of str
        Names of the features of the fit, in order.
    categories : Categories or None
        Categories of the fit; None: all features are numeric.
    takes_float32 : bool
        Whether numeric features may be float32.

    Returns
    -------
    ndarray of shape (n, p), or None
        Numbers and category codes, NaN where a value is missing; unknown categories are -1, or NaN
        if `categories.unknown_are_missing`. The dtype is float32 if all columns have category codes
        or float32 numbers, else float64. None: the caller must use the general encoding, as X is
        another object, has no rows or more than 1024 values, has other columns, or values of types
        that this function does not handle.
    """
    kinds = _classify_columns(X, names)
    if kinds is None or (categories is not None and categories.digested):
        return None
    codes = (None,) * len(names) if categories is None else categories.codes
    are_float32 = []
    for kind, code in zip(kinds, codes, strict=True):
        if kind is None or (code is None and kind in ("text", "object")):
            return None
        if code is None and kind == "float32" and not takes_float32:
            return None
        are_float32.append(kind == "float32" if code is None else len(code) <= MAX_FLOAT32_CODES)
    unknown = np.nan if categories is not None and categories.unknown_are_missing else UNKNOWN_CODE
    encoded = _encode_columns(X, kinds, codes, unknown)
    return encoded.astype(np.float32) if encoded is not None and all(are_float32) else encoded


def _encode_columns(
    X: Any,
    kinds: Sequence[_Kind | None],
    codes: Sequence[Mapping[Any, float] | None],
    unknown: float,
) -> Float64 | None:
    """Return the numbers and category codes of a small frame, (n, p); None for unusual values.

    None tells the caller to use the general encoding. X: the data frame. kinds: what each column
    holds, such as "number" or "text", from `_classify_columns`. codes: for each feature a mapping from
    its categories to their codes; None for a numeric feature. unknown: code of categories that are not
    in codes.
    """
    is_polars, numeric = hasattr(type(X), "rows"), [j for j, c in enumerate(codes) if c is None]
    if len(numeric) == len(codes) and not is_polars and _NUMPY_KINDS.issuperset(kinds):
        # The values of a frame may be stored by columns, and the core takes rows.
        numbers: Float64 = np.ascontiguousarray(X.to_numpy(np.float64))
        return None if has_inexact_integers(numbers) else numbers
    values = [*zip(*_read_rows(X, kinds), strict=True)]
    encoded = np.empty((len(values[0]), len(codes)))
    if numeric:
        columns = _to_numbers([values[j] for j in numeric])
        if columns is None:
            return None
        encoded[:, numeric] = columns.T
    for j, code in enumerate(codes):
        if code is not None:
            column = _to_codes(values[j], code, unknown)
            if column is None:
                return None
            encoded[:, j] = column
    return encoded


def _read_rows(X: Any, kinds: Sequence[_Kind | None]) -> Sequence[Sequence[Any]]:
    """Return the values of a small frame of pandas or polars, row by row, as Python objects.

    X: the data frame. kinds: what each column holds, as `_classify_columns` returns it.
    """
    rows: Sequence[Sequence[Any]]
    # A column of pandas may be called "rows", which hasattr(X, "rows") would find.
    if hasattr(type(X), "rows"):
        rows = X.rows()
    elif len(X) > 1 or "object" in kinds:
        rows = X.to_numpy(dtype=object).tolist()
    else:
        # Reading texts of pandas one by one is faster than their conversion to an array.
        values = [X.iat[0, j] for j in range(len(kinds))]
        rows = [[value.item() if isinstance(value, np.generic) else value for value in values]]
    return rows


def _classify_columns(X: Any, names: Sequence[str]) -> list[_Kind | None] | None:
    """Return what each column of a small data frame of pandas or polars holds: a list of p kinds.

    An entry is "number", "float32", "nullable" (numbers with pandas.NA), "text" (texts or
    categories) or "object" (Python objects); None for a column of another type. Return None in
    place of the list if X is no such frame, has more than 1024 values, or has other columns than
    names, in this order.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and type(X) is pandas.DataFrame:
        is_similar = 0 < X.size <= _MAX_VALUES and X.columns.tolist() == names
        return [*map(_classify_pandas, X.dtypes)] if is_similar else None
    if polars is not None and type(X) is polars.DataFrame:
        is_similar = 0 < X.height * X.width <= _MAX_VALUES and X.columns == names
        return [*map(_classify_polars, X.dtypes)] if is_similar else None
    return None


def _classify_pandas(dtype: Any) -> _Kind | None:
    """Return what a column of pandas with this dtype holds; None for other dtypes, such as dates.

    The result is "number", "float32", "nullable" (numbers with pandas.NA), "text" or "object".
    """
    if isinstance(dtype, np.dtype):
        if dtype.char in _NUMPY_NUMBERS:
            return "number"
        if dtype.char == "f":
            return "float32"
        return "object" if dtype.char == "O" else None
    name = type(dtype).__name__
    if name in _PANDAS_NUMBERS:
        return "nullable"
    return "text" if name in _PANDAS_TEXTS else None


def _classify_polars(dtype: Any) -> _Kind | None:
    """Return what a column of polars with this dtype holds; None for other dtypes, such as dates.

    The result is "number", "float32" or "text".
    """
    name = dtype.base_type().__name__
    if name in _POLARS_NUMBERS:
        return "number"
    if name == "Float32":
        return "float32"
    return "text" if name in _POLARS_TEXTS else None


def _to_numbers(columns: list[Sequence[Any]]) -> Float64 | None:
    """Convert the values of k numeric columns to float64, (k, n), NaN for missing values.

    columns: integers, floats, booleans, None and pandas.NA. Return None if a number is infinite, or
    so large that it may be an integer that float64 rounds.
    """
    try:
        numbers = np.array(columns, dtype=np.float64)
    except TypeError:  # NumPy cannot convert pandas.NA
        known = [[None if _is_na(value) else value for value in column] for column in columns]
        numbers = np.array(known, dtype=np.float64)
    return None if has_inexact_integers(numbers) else numbers


def _to_codes(
    values: Sequence[Any], code: Mapping[Any, float], unknown: float
) -> list[float] | None:
    """Return the category code of each value, NaN for missing values.

    values: Python objects. code: code of each category; the categories are all texts or all floats.
    unknown: code of other values. Return None if a value is not missing and not of the type of the
    categories, or if it is so large that it may be an integer that float64 rounds.
    """
    are_texts = isinstance(next(iter(code), None), str)
    kinds: tuple[type, ...] = (str,) if are_texts else (int, float, bool) if code else ()
    found = []
    for value in values:
        kind = type(value)
        if kind in kinds and (are_texts or abs(value) < MAX_EXACT_INTEGER):
            found.append(code.get(value, unknown))
        elif value is None or (kind is float and value != value) or _is_na(value):
            found.append(np.nan)
        else:
            return None
    return found


def _is_na(value: Any) -> bool:
    """Return whether a value is pandas.NA."""
    return type(value).__name__ == "NAType"
