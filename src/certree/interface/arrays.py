"""Checks that turn array-likes into read-only arrays, and dataclasses of such arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from decimal import Decimal
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
# A CSR array for the core: row starts, features, values, and the number of features.
CSRArrays = tuple[Int64, Int32, NDArray[Any], int]

# The largest value of a parameter; products and sums with it stay finite.
MAX_SETTING = 1e150
# The largest sum of sample weights; products with numbers of classes, depths, logarithms and inverse
# temperatures stay finite.
MAX_TOTAL_WEIGHT = 1e280

# Longer arrays are printed as their dtype and shape.
_MAX_SHOWN_VALUES = 4
# float64 represents all integers up to this size exactly.
MAX_EXACT_INTEGER = 2**53

# Dtypes that convert to each dtype without loss; strings, objects and float16 do not.
_ACCEPTED: dict[str, Sequence[str]] = {
    "float64": (
        "float64",
        "float32",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint32",
        "uint16",
        "uint8",
    ),
    "int32": ("int32", "int64", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
    "int64": ("int64", "int32", "int16", "int8", "uint32", "uint16", "uint8"),
    "uint64": ("uint64",),
    "bool": ("bool",),
}


# Metadata of a field that files of earlier versions lack; such files mean its default.
ADDED_LATER: dict[str, bool] = {"is_added": True}
# Metadata {"stored_as": name} of a field is its name in model files. Other fields have their own names
# there; `tests/files/stored_names.json` lists all of them.


class ArrayRecord:
    """Base class of frozen dataclasses of read-only arrays, which the constructor checks.

    Copies and unpickled objects are made by the constructor, too: arrays in a pickle become writable
    and may have been changed, and the core trusts the arrays that it gets.
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Otherwise each dataclass generates a __repr__ that prints whole arrays.
        cls.__repr__ = ArrayRecord.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        record: Any = self
        values = (
            f"{field.name}={_format_briefly(getattr(record, field.name))}"
            for field in fields(record)
        )
        return f"{type(self).__name__}({', '.join(values)})"

    def __reduce__(self) -> tuple[Any, ...]:
        record: Any = self
        return type(self), tuple(getattr(record, field.name) for field in fields(record))

    @classmethod
    def from_checked(cls, *values: Any) -> Self:
        """Make an object of all its fields without checks.

        The values must be checked, or come from the core. Arrays that users can access must be
        read-only; see `freeze`.
        """
        record = object.__new__(cls)
        for field, value in zip(fields(cls), values, strict=True):  # type: ignore[arg-type]
            object.__setattr__(record, field.name, value)
        return record

    def to_stored(self) -> dict[str, Any]:
        """Return the fields for a model file, by stored name.

        Fields with the metadata `ADDED_LATER` are left out if they have their default.
        """
        record: Any = self
        values = {
            field.name: getattr(record, field.name)
            for field in fields(record)
            if not (ADDED_LATER.items() <= field.metadata.items())
            or not _is_default(getattr(record, field.name), field.default)
        }
        # The type is text in modules with postponed annotations.
        floats = {field.name for field in fields(record) if field.type in (float, "float")}
        names = {field.name: _get_stored_name(field) for field in fields(record)}
        return {
            names[name]: float(value) if name in floats else value for name, value in values.items()
        }

    @classmethod
    def from_stored(cls, stored: Any, **known: Any) -> Self:
        """Make an object of a section of a model file, and check it.

        Parameters
        ----------
        stored : StoredState
            Values by stored name. Fields with a default may be absent.
        **known
            Fields that the file does not hold.
        """
        stored_names = {
            field.name: _get_stored_name(field)
            for field in fields(cls)  # type: ignore[arg-type]
            if field.name not in known
            and (field.default is MISSING or _get_stored_name(field) in stored)
        }
        return cls(**known, **{name: stored[key] for name, key in stored_names.items()})

    def _check(self, dtype: str, shape: tuple[int | None, ...], *names: str) -> None:
        """Replace the named fields by checked, read-only arrays; see `check_column`."""
        for name in names:
            object.__setattr__(self, name, check_column(name, getattr(self, name), dtype, shape))


def _get_stored_name(field: Field[Any]) -> str:
    """Return the name of a field in model files: its own, or the one that `stored_as` gave it."""
    name: str = field.metadata.get("stored_as", field.name)
    return name


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a value is its default; for an array, whether it is the same object."""
    return value is default or (not isinstance(value, np.ndarray) and bool(value == default))


def _format_briefly(value: Any) -> str:
    """Format a value for `repr`; arrays of more than four values as their dtype and shape."""
    if isinstance(value, np.ndarray) and value.size > _MAX_SHOWN_VALUES:
        return f"<{value.dtype} of shape {value.shape}>"
    if isinstance(value, ArrayRecord):
        return f"<{type(value).__name__}>"
    return shortened(value.tolist() if isinstance(value, np.ndarray) else value)


def to_array(name: str, values: Any) -> NDArray[Any]:
    """Convert an array-like to an array of any dtype; `name` is for messages.

    Raises
    ------
    TypeError
        If it is sparse. It is not made dense, as it may not fit into memory.
    ValueError
        If it is a list of lists of different lengths.
    """
    if issparse(values):
        raise TypeError(
            f"Sparse data was passed for {name}, but dense data is required: use .toarray(), or "
            "sparse_output=False in the encoder that made it"
        )
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise ValueError(
            f"{name} must be an array whose rows have the same length, got {shortened(values)}"
        ) from None


def has_valid_booleans(array: NDArray[Any]) -> bool:
    """Return whether an array is not boolean, or has only bytes 0 and 1, which the core expects."""
    return array.dtype != np.bool_ or not (array.view(np.uint8) > 1).any()


def check_column(
    name: str, values: ArrayLike, dtype: str, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Check an array, and return it read-only, in C order, with a given dtype.

    Parameters
    ----------
    name : str
        Name of the array in messages.
    values : array-like
        The array.
    dtype : {"float64", "int32", "int64", "uint64", "bool"}
        The dtype of the result.
    shape : tuple of int or None
        The expected shape; None stands for any length.

    Returns
    -------
    ndarray
        The array itself if it has all these properties, else a copy in immutable memory.

    Raises
    ------
    TypeError
        If the dtype does not convert without loss.
    ValueError
        If the shape differs, or an integer does not fit.
    """
    array = to_array(name, values)
    if array.size == 0 and not isinstance(values, np.ndarray):
        array = array.astype(dtype)
    _check_dtype(name, array, dtype)
    expected = [got if n is None else n for n, got in zip(shape, array.shape, strict=False)]
    if array.ndim != len(shape) or [*array.shape] != expected:
        lengths = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name} must have shape ({lengths}), got {array.shape}")
    if dtype == "int32" and array.dtype != np.int32 and array.size:
        limits = np.iinfo(np.int32)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(f"{name} must fit into int32, got {array.min()} .. {array.max()}")
    if not has_valid_booleans(array):
        raise ValueError(f"{name} must hold only True and False, got bytes other than 0 and 1")
    # Other memory is copied: the core relies on checked arrays, which must not change.
    if (
        array.dtype == dtype
        and array.flags.c_contiguous
        and array.flags.aligned
        and _is_immutable_memory(array)
    ):
        return array
    converted = np.ascontiguousarray(array, dtype=dtype)
    if dtype == "float64" and array.dtype.kind == "i" and has_inexact_integers(converted):
        check_exact(name, np.atleast_1d(array), converted)
    return freeze(converted)


def freeze(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array in immutable memory: the array itself if it is there, else a copy."""
    if values.flags.c_contiguous and not values.flags.writeable and _is_immutable_memory(values):
        return values
    return np.ndarray(values.shape, values.dtype, buffer=values.tobytes())


def make_zeros(n: int) -> Float64:
    """Return n zeros in immutable memory."""
    return np.frombuffer(bytes(8 * n))


def to_contiguous(values: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """Return an array in C order and aligned, as the core needs it; slices of bytes may not be."""
    return np.require(values, dtype, ["C", "A"])


def divide_by_largest(values: Float64, largest: float | None = None) -> Float64:
    """Divide numbers by their largest absolute value, or by a given larger one; none may be 0.

    It may be subnormal. Scaling by a power of two first changes no bit, and avoids the overflow
    warnings of some releases of NumPy.
    """
    largest = np.abs(values).max() if largest is None else largest
    exponent = np.frexp(largest)[1]
    scaled: Float64 = np.ldexp(values, -exponent)
    return scaled / np.ldexp(largest, -exponent)


def _is_immutable_memory(array: NDArray[Any]) -> bool:
    """Return whether the memory belongs to bytes, or to an array of the core.

    The flag `writeable` is not enough, as other views of the same memory may be writable.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        if not owner.readonly:
            return False
        owner = owner.obj
    return isinstance(owner, bytes) or type(owner).__name__ == "nb_ndarray"


def _check_dtype(name: str, array: NDArray[Any], dtype: str) -> None:
    """Raise TypeError if an array does not convert to a dtype without loss."""
    if array.dtype.name not in _ACCEPTED[dtype]:
        raise TypeError(f"{name} must convert to {dtype} without loss, got dtype {array.dtype}")


def to_row_order(scores: Float64) -> Float64:
    """Transpose scores (n_outputs, n) to C order, (n, n_outputs).

    The sum of a row then does not depend on the number of rows: NumPy adds numbers in another order if
    they are contiguous, and those of a single row always are.
    """
    return np.ascontiguousarray(scores.T)


def stack_columns(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Return columns as one table, of objects if their dtypes are of different kinds."""
    if len({column.dtype.kind for column in columns}) == 1:
        return np.column_stack(columns)
    return np.column_stack([column.astype(object) for column in columns])


def has_inexact_integers(numbers: NDArray[Any]) -> bool:
    """Return whether some number is so large that it may be a rounded integer; NaN is ignored."""
    highest = np.fmax.reduce(numbers, axis=None, initial=0.0)
    return bool(
        highest >= MAX_EXACT_INTEGER
        or np.fmin.reduce(numbers, axis=None, initial=0.0) <= -MAX_EXACT_INTEGER
    )


def check_exact(name: str, values: NDArray[Any], numbers: Float64) -> None:
    """Raise ValueError if the conversion to float64 has changed an integer or a decimal.

    Parameters
    ----------
    name : str
        Name of the values in the message.
    values : ndarray
        The values before the conversion, of any dtype.
    numbers : ndarray of float64, of the same shape
        The values after the conversion.

    Raises
    ------
    ValueError
        If some value has changed.
    """
    far = np.abs(numbers) >= MAX_EXACT_INTEGER
    for value, number in zip(values[far].tolist(), numbers[far].tolist(), strict=True):
        exact = int(value) if isinstance(value, Integral) else value
        if isinstance(exact, (int, Decimal)) and exact != number:
            raise ValueError(
                f"{name} must hold numbers that float64 represents exactly, got {exact}: subtract "
                "a constant, or convert identifiers to text"
            )


def check_matrix(X: ArrayLike) -> NDArray[Any]:
    """Check a table of features, and return it in C order; values must be finite or NaN.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The table. The table. Integers become float64; float32 stays as it is.

    Returns
    -------
    ndarray of shape (n, p)

    Raises
    ------
    TypeError
        If the dtype is not a float32, float64 or integer one.
    ValueError
        If X is not two-dimensional or holds an infinity.
    """
    array = to_array("X", X)
    _check_dtype("X", array, "float64")
    if array.ndim != 2:
        raise ValueError(f"X must have shape (any, any), got {array.shape}")
    integers = array if array.dtype.kind == "i" else None
    table = to_contiguous(array, np.float32 if array.dtype == np.float32 else np.float64)
    if integers is not None and has_inexact_integers(table):
        for j, numbers in enumerate(table.T):
            check_exact(f"feature {j}", integers[:, j], numbers)
    # Fast test first: an infinity makes the sum infinite or NaN, as a missing value or overflow does.
    with np.errstate(all="ignore"):
        is_suspicious = not np.isfinite(table.sum())
    if is_suspicious and np.isinf(table).any():
        raise ValueError(f"Input X contains infinity or a value too large for {table.dtype!r}.")
    return table


def check_n_classes(n_classes: Any) -> int:
    """Check a number of classes, which must fit into int32, and return it."""
    most = np.iinfo(np.int32).max
    if not isinstance(n_classes, Integral) or not 1 <= int(n_classes) <= most:
        raise ValueError(f"n_classes must be an integer in 1 .. {most}, got {n_classes!r}")
    return int(n_classes)


def check_codes(name: str, values: ArrayLike, length: int, n_codes: int) -> Int32:
    """Check integers in 0 .. n_codes - 1, and return them as a read-only int32 array, (length,)."""
    result: Int32 = check_column(name, values, "int32", (length,))
    if result.size and (result.min() < 0 or result.max() >= n_codes):
        raise ValueError(
            f"{name} must lie in 0 .. {n_codes - 1}, got {result.min()} .. {result.max()}"
        )
    return result


def check_row_weights(values: ArrayLike | None, n: int) -> Float64 | None:
    """Check sample weights of n rows, and return them read-only; None if all are 1."""
    if values is None:
        return None
    result: Float64 = check_column("sample_weight", values, "float64", (n,))
    is_valid = np.isfinite(result) & (result >= 0)
    if not is_valid.all():
        raise ValueError(
            f"sample_weight must be finite and non-negative, got {result[~is_valid][0]:g}"
        )
    if not has_finite_total(result):
        raise ValueError(
            f"sample_weight must sum to at most {MAX_TOTAL_WEIGHT:g}, got more: divide it by a constant"
        )
    return result


def has_finite_total(weight: Float64) -> bool:
    """Return whether weights sum to at most `MAX_TOTAL_WEIGHT`."""
    with np.errstate(over="ignore"):
        return bool(weight.sum() <= MAX_TOTAL_WEIGHT)


def to_float(number: Any) -> Any:
    """Convert a NumPy float to float; NumPy compares its scalars in their own, lower precision."""
    return float(number) if isinstance(number, np.floating) else number


def check_nonnegative(name: str, value: Any) -> float:
    """Check a number in 0 .. `MAX_SETTING`, and return it as a float."""
    number: Any = to_float(value)
    is_number = isinstance(number, Real)
    if not is_number or not 0 <= number <= MAX_SETTING:
        raise ValueError(
            f"{name} must be a finite number >= 0, at most {MAX_SETTING:g}, got {shortened(value)}"
        )
    return float(number)


def find_positions(
    sorted_values: NDArray[Any], values: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the positions of values in a sorted, non-empty array, and whether they are there."""
    positions = np.searchsorted(sorted_values, values).clip(max=len(sorted_values) - 1)
    return positions, sorted_values[positions] == values


def get_csr_arrays(rows: Any) -> CSRArrays:
    """Return the arrays of a CSR array with the dtypes that the core needs."""
    return (
        rows.indptr.astype(np.int64, copy=False),
        rows.indices.astype(np.int32, copy=False),
        np.ascontiguousarray(rows.data),
        int(rows.shape[1]),
    )
