"""Checks that turn array-likes into read-only arrays, and dataclasses of such arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from decimal import Decimal
from functools import cache
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any, ClassVar, NoReturn, Self

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


# Metadata of a field that model files of earlier versions lack; it then has its default value.
ADDED_LATER: dict[str, bool] = {"is_added": True}
# Metadata of a field that the section of its record in a model file does not hold, as another one does.
STORED_ELSEWHERE: dict[str, bool] = {"is_elsewhere": True}
# Metadata {"stored_as": name} of a field is its name in model files. Other fields have their own names
# there; `tests/files/stored_names.json` lists all of them. Metadata {"least": number} of an array or
# number says that it must be finite in model files, and at least this number.


class ArrayRecord:
    """Base class of frozen dataclasses (records) of read-only arrays, numbers and other records.

    The base class has no fields itself; the constructor of a subclass takes the fields of the
    subclass. The `__post_init__` of a subclass checks its fields, with `_check`, which also makes
    them read-only arrays. `repr` prints long arrays as dtype and shape. Copies and unpickled
    objects are made by the constructor and checked again: arrays in a pickle may have been changed,
    and the C++ core trusts the arrays that it gets. `to_stored` returns the fields for a model
    file, from which `from_stored` makes the record again.
    """

    __slots__ = ()
    # Stored names that come first in model files; the others follow in the order of the fields.
    _stored_first: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Otherwise each dataclass would generate a __repr__ that prints whole arrays.
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
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        return _construct, (type(self), values)

    @classmethod
    def from_checked(cls, *values: Any) -> Self:
        """Return an object of this class without running its checks, for speed.

        values: the values of all fields, in the order of the dataclass. They must already satisfy
        the checks of `__post_init__`, or come from the C++ core. Arrays that users can reach must
        be read-only, in memory that nobody can change; `freeze` makes them so.
        """
        record = object.__new__(cls)
        for field, value in zip(_list_fields(cls), values, strict=True):  # type: ignore[arg-type]
            object.__setattr__(record, field.name, value)
        return record

    def to_stored(self) -> dict[str, Any]:
        """Return what a model file holds of this record: the values of its fields by stored name.

        The stored name is the entry "stored_as" of the metadata of the dataclass field, or else the
        name of the field. A field is left out if another section of the file holds it (metadata
        "is_elsewhere" is True), or if a later version of certree has added it (metadata "is_added"
        is True) and it has its default value.
        """
        record: Any = self
        stored = {}
        for field in _list_stored(self):
            value = getattr(record, field.name)
            if not (
                ADDED_LATER.items() <= field.metadata.items() and is_default(value, field.default)
            ):
                # The type is text in modules with postponed annotations.
                is_float = field.type in (float, "float")
                stored[_get_stored_name(field)] = float(value) if is_float else value
        return {name: stored[name] for name in self._stored_first} | stored

    @classmethod
    def from_stored(cls, stored: Any, **other_fields: Any) -> Self:
        """Return an object of this class from a section of a model file.

        Parameters
        ----------
        stored : StoredState
            The section: ``stored[name]`` is the value of the field with this name in model files.
            Fields with a default may be absent.
        **other_fields
            Values of the fields that the file does not hold, by field name.

        Returns
        -------
        object of this class

        Raises
        ------
        TypeError, ValueError
            If a value is missing, or fails a check of the constructor.
        """
        values = {
            field.name: _read_field(field, stored)
            for field in _list_stored(cls)
            if field.name not in other_fields
            and (field.default is MISSING or _get_stored_name(field) in stored)
        }
        return cls(**other_fields, **values)

    def _check(self, dtype: str, shape: tuple[int | None, ...], *names: str) -> None:
        """Replace some fields of this record by checked, read-only arrays.

        Parameters
        ----------
        dtype : {"float64", "int32", "int64", "uint64", "bool"}
            The dtype of these fields afterwards.
        shape : tuple of int or None
            Shape of these fields; None stands for any length.
        *names : str
            Names of the fields.

        Raises
        ------
        TypeError, ValueError
            If a field has another shape, or does not convert to this dtype without loss.
        """
        for name in names:
            object.__setattr__(self, name, check_column(name, getattr(self, name), dtype, shape))


def _construct(kind: type[ArrayRecord], values: dict[str, Any]) -> Any:
    """Return an object of the class `kind`, made and checked by its constructor from field values.

    values: values of the fields by name. Pickle and copy restore records by this function.
    """
    return kind(**values)


def _get_stored_name(field: Field[Any]) -> str:
    """Return the name of a dataclass field in model files.

    The name is the metadata entry `stored_as` of the field, or the field's own name if there is
    none.
    """
    name: str = field.metadata.get("stored_as", field.name)
    return name


@cache
def _list_fields(record_class: type[Any]) -> tuple[Field[Any], ...]:
    """Return the fields of a dataclass. They are kept, as each call of `fields` builds them anew."""
    return fields(record_class)


def _list_stored(record: Any) -> list[Field[Any]]:
    """Return the dataclass fields of a record that its section of a model file holds.

    record: an `ArrayRecord`, or its class. Left out are fields that another section holds: their
    metadata has the entry "is_elsewhere".
    """
    return [field for field in fields(record) if not field.metadata.get("is_elsewhere")]


def _read_field(field: Field[Any], stored: Any) -> Any:
    """Return the value of a dataclass field of an `ArrayRecord` from a section of a model file.

    field: the field; stored: a `StoredState`, which has the values of the section by name. If the
    metadata of the field has an entry "least", a lower bound, the value is a number or an array:
    raise ValueError unless it is finite and not below the bound, TypeError for other dtypes. Other
    values are not checked, as the constructor of the record does that. Raise ValueError if the
    section lacks the field.
    """
    name, least = _get_stored_name(field), field.metadata.get("least")
    if least is None:
        return stored[name]
    if field.type in (float, "float"):
        return stored.get_number(name, least, np.inf)
    return stored.get_numbers(name, (None,) * np.ndim(stored[name]), least)


def is_default(value: Any, default: Any) -> bool:
    """Return whether a value equals the default of its field.

    value: value of an attribute or a field. Arrays are not compared by their entries: an array
    equals the default only if both are the same object.
    """
    return value is default or (not isinstance(value, np.ndarray) and bool(value == default))


def _format_briefly(value: Any) -> str:
    """Return the text of a field's value in `repr`.

    Arrays of more than four values become their dtype and shape, nested records (`ArrayRecord`)
    their class name. Other values have Python's repr, shortened if it is long.
    """
    if isinstance(value, np.ndarray) and value.size > _MAX_SHOWN_VALUES:
        return f"<{value.dtype} of shape {value.shape}>"
    if isinstance(value, ArrayRecord):
        return f"<{type(value).__name__}>"
    return shortened(value.tolist() if isinstance(value, np.ndarray) else value)


def to_array(name: str, values: Any) -> NDArray[Any]:
    """Convert an array-like to a NumPy array with the dtype that NumPy chooses.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    values : array-like
        The values; an array is returned without a copy.

    Returns
    -------
    ndarray
        The same values.

    Raises
    ------
    TypeError
        If `values` is a sparse matrix. It is not made dense, as it may not fit into memory.
    ValueError
        If `values` is a list of lists of different lengths.
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
    """Return False if a boolean array has bytes other than 0 and 1, which break the C++ core.

    Return True for all other arrays.
    """
    return array.dtype != np.bool_ or not (array.view(np.uint8) > 1).any()


def check_column(
    name: str, values: ArrayLike, dtype: str, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Check an array of any dimension, and return it read-only, in C order, with a given dtype.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    values : array-like
        The array.
    dtype : {"float64", "int32", "int64", "uint64", "bool"}
        The dtype of the result.
    shape : tuple of int or None
        The expected shape; None stands for any length.

    Returns
    -------
    ndarray of this dtype and shape
        `values` itself if it is such an array in immutable memory, else a copy.

    Raises
    ------
    TypeError
        If the dtype of `values` does not convert without loss; strings, objects and float16 never
        do.
    ValueError
        If the shape differs, an integer exceeds int32 or is not exact in float64, or a boolean
        array has bytes other than 0 and 1.
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
        raise ValueError(
            f"{name} must hold only True and False, as bytes 1 and 0, got other bytes: convert the "
            "original numbers by astype(bool)"
        )
    # Other memory is copied, as a checked array must not change later.
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
    """Return a C-ordered array whose memory nobody can change: the array itself, or a copy.

    The array itself is returned if its memory belongs to a `bytes` object or to the C++ core.
    values: an array.
    """
    if values.flags.c_contiguous and not values.flags.writeable and _is_immutable_memory(values):
        return values
    return np.ndarray(values.shape, values.dtype, buffer=values.tobytes())


def make_zeros(n: int) -> Float64:
    """Return a float64 array of n zeros, (n,), whose memory nobody can change."""
    return np.frombuffer(bytes(8 * n))


def to_contiguous(values: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """Return an array in C order and with aligned memory, as the C++ core needs it.

    dtype: dtype of the result; None keeps that of `values`. The array is copied only if it has to
    change.
    """
    return np.require(values, dtype, ["C", "A"])


def divide_by_largest(values: Float64, largest: float | None = None) -> Float64:
    """Divide numbers by the largest of their absolute values, without overflow.

    Parameters
    ----------
    values : ndarray of float64
        The numbers.
    largest : float or None
        A number other than 0 to divide by, at least as large as all absolute values; None: the
        largest of them, which must not be 0.

    Returns
    -------
    ndarray of float64, of the same shape
        Numbers in -1 .. 1. Numbers and divisor are scaled by a power of two first, so that a
        subnormal divisor causes no overflow.
    """
    largest = np.abs(values).max() if largest is None else largest
    exponent = np.frexp(largest)[1]
    scaled: Float64 = np.ldexp(values, -exponent)
    return scaled / np.ldexp(largest, -exponent)


def _is_immutable_memory(array: NDArray[Any]) -> bool:
    """Return whether the memory of an array belongs to a `bytes` object or to the C++ core.

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
    """Raise TypeError if the dtype of an array does not convert to `dtype` without loss.

    Only the dtypes are compared, not the values. name: name of the argument, for the message.
    dtype: "float64", "int32", "int64", "uint64" or "bool".
    """
    if array.dtype.name not in _ACCEPTED[dtype]:
        raise TypeError(f"{name} must convert to {dtype} without loss, got dtype {array.dtype}")


def to_row_order(scores: Float64) -> Float64:
    """Transpose scores (n_outputs, n) to a C-ordered array (n, n_outputs).

    Without the copy, the last bits of a row's sum over the outputs would depend on n: NumPy adds
    contiguous numbers in another order, and the outputs are contiguous in a transposed view only if
    n is 1.
    """
    return np.ascontiguousarray(scores.T)


def stack_columns(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Return columns, (n,) each, as one array (n, len(columns)).

    If their dtypes are of different kinds, such as numbers and strings, the array has dtype object.
    """
    if len({column.dtype.kind for column in columns}) == 1:
        return np.column_stack(columns)
    return np.column_stack([column.astype(object) for column in columns])


def list_classes(classes: NDArray[Any]) -> list[Any]:
    """Return classes, (n,), as a list of Python objects; dates and time spans stay NumPy scalars.

    `tolist()` would make integers of those in nanoseconds.
    """
    return [*classes] if classes.dtype.kind in "mM" else classes.tolist()


def has_inexact_integers(numbers: NDArray[Any]) -> bool:
    """Return whether some number has an absolute value of 2**53 or more.

    Such a number may be an integer that float64 has rounded. NaN is ignored. numbers: array of any
    shape.
    """
    highest = np.fmax.reduce(numbers, axis=None, initial=0.0)
    return bool(
        highest >= MAX_EXACT_INTEGER
        or np.fmin.reduce(numbers, axis=None, initial=0.0) <= -MAX_EXACT_INTEGER
    )


def check_exact(name: str, values: NDArray[Any], numbers: Float64) -> None:
    """Raise ValueError if the conversion to float64 has changed an integer or a `decimal.Decimal`.

    Parameters
    ----------
    name : str
        Name of the values, for the message.
    values : ndarray
        The values before the conversion, of any dtype.
    numbers : ndarray of float64, of the same shape
        The values after the conversion.

    Raises
    ------
    ValueError
        If a value has changed; the message names it. Only values of 2**53 or more can.
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
    """Check a table of numeric features, and return it in C order.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The table. NaN is a missing value; infinities are not allowed.

    Returns
    -------
    ndarray of shape (n, p)
        float32 if X is float32, else float64.

    Raises
    ------
    TypeError
        If the dtype is not a float32, float64 or integer one.
    ValueError
        If X is not two-dimensional, has an infinity, or has an integer that float64 would round.
    """
    array = to_array("X", X)
    _check_dtype("X", array, "float64")
    if array.ndim != 2:
        raise ValueError(
            f"X must have two dimensions, got shape {array.shape}: reshape a single feature by "
            "X.reshape(-1, 1), a single row by X.reshape(1, -1)"
        )
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
    """Return a number of classes as int.

    Raise ValueError unless `n_classes` is an integer in 1 .. 2**31 - 1.
    """
    largest = np.iinfo(np.int32).max
    if not isinstance(n_classes, Integral) or not 1 <= int(n_classes) <= largest:
        raise ValueError(f"n_classes must be an integer in 1 .. {largest}, got {n_classes!r}")
    return int(n_classes)


def check_codes(name: str, values: ArrayLike, length: int, n_codes: int) -> Int32:
    """Check class or category codes, and return them as a read-only int32 array, (length,).

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    values : array-like of int
        The codes.
    length : int
        Number of codes.
    n_codes : int
        Number of possible codes: each must be in 0 .. n_codes - 1.

    Raises
    ------
    TypeError, ValueError
        If the dtype, the shape or a code is not as expected.
    """
    result: Int32 = check_column(name, values, "int32", (length,))
    if result.size and (result.min() < 0 or result.max() >= n_codes):
        raise ValueError(
            f"{name} must lie in 0 .. {n_codes - 1}, got {result.min()} .. {result.max()}"
        )
    return result


def check_row_weights(values: ArrayLike | None, n: int) -> Float64 | None:
    """Check sample weights, and return them as a read-only float64 array, (n,).

    values: the weights of n rows; for None, which means that all are 1, None is returned. Raise
    ValueError if the number of weights is not n, a weight is negative or not finite, or their sum
    is above 1e280.
    """
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


def raise_for_zero_weights() -> NoReturn:
    """Raise the ValueError of a fit in which the weights of all rows are 0."""
    raise ValueError(
        "sample_weight must be positive for at least one row, got 0 for all rows: leave it out, or "
        "pass positive weights"
    )


def has_finite_total(weight: Float64) -> bool:
    """Return whether the sum of `weight`, (n,), is at most `MAX_TOTAL_WEIGHT` (1e280)."""
    with np.errstate(over="ignore"):
        return bool(weight.sum() <= MAX_TOTAL_WEIGHT)


def to_float(number: Any) -> Any:
    """Convert a NumPy floating-point scalar to float, and return anything else unchanged.

    number: an object of any type. Comparisons of NumPy scalars, such as float32, would use their
    own, lower precision.
    """
    return float(number) if isinstance(number, np.floating) else number


def check_nonnegative(name: str, value: Any) -> float:
    """Return the number `value` as float.

    name: name of the argument, for the message. Raise ValueError unless the number is in 0 ..
    `MAX_SETTING` (1e150).
    """
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
    """Find values in a sorted array.

    Parameters
    ----------
    sorted_values : ndarray of shape (k,)
        A sorted array with at least one entry.
    values : ndarray of shape (n,)
        The values to find.

    Returns
    -------
    positions : ndarray of intp, shape (n,)
        Index of each value in `sorted_values`, or of another entry if it is not there.
    found : ndarray of bool, shape (n,)
        Whether the value is there.
    """
    positions = np.searchsorted(sorted_values, values).clip(max=len(sorted_values) - 1)
    return positions, sorted_values[positions] == values


def get_csr_arrays(rows: Any) -> CSRArrays:
    """Return the arrays of a SciPy CSR matrix with the dtypes that the C++ core needs.

    rows: the matrix, (n, p), with k stored entries. Return four values: the start of each row among
    the entries, int64 (n + 1,); the feature of each entry, int32 (k,); its value, (k,), with the
    dtype of `rows`; and the number of features, p.
    """
    return (
        rows.indptr.astype(np.int64, copy=False),
        rows.indices.astype(np.int32, copy=False),
        np.ascontiguousarray(rows.data),
        int(rows.shape[1]),
    )
