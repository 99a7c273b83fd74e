"""Arrays at the door: what a stage is given becomes a checked, read-only column, or an error."""

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
# Of sparse rows: their starts, features and values of what is stored, and the number of features.
CSRArrays = tuple[Int64, Int32, NDArray[Any], int]

# The largest number that a setting may be: what is charged or weighed with it stays finite.
MAX_SETTING = 1e150
# The most rows that may be weighed together: what is made of them with numbers of classes, depths,
# logarithms and temperatures of a grid stays finite.
MAX_TOTAL_WEIGHT = 1e280

# Columns of so few numbers are written out.
_SHORT = 4
# So far from 0, and no farther, float64 holds all whole numbers.
MAX_EXACT_INTEGER = 2**53

# A dtype that converts to the wanted one without loss; strings, objects and float16 are refused.
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


# Metadata of a field that files of earlier versions lack; its default says what they mean.
ADDED_LATER: dict[str, bool] = {"is_added": True}
# Metadata {"stored_as": name} of a field says by which name model files hold it. Files hold other
# fields by their own names; `tests/files/stored_names.json` lists them all.


class ArrayRecord:
    """A frozen dataclass of columns, which its constructor checks.

    A copy or a pickle is a call of the constructor: arrays come out of them writable and unchecked,
    and the core trusts what it is given.
    """

    __slots__ = ()

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        # A dataclass writes one of its own, which spells columns out, unless its class has one.
        cls.__repr__ = ArrayRecord.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        one: Any = self
        said = (f"{field.name}={_in_short(getattr(one, field.name))}" for field in fields(one))
        return f"{type(self).__name__}({', '.join(said)})"

    def __reduce__(self) -> tuple[Any, ...]:
        one: Any = self
        return type(self), tuple(getattr(one, field.name) for field in fields(one))

    @classmethod
    def from_checked(cls, *columns: Any) -> Self:
        """Make one of columns that are checked already, or that the core has made.

        What users may get hold of must be columns that nobody can write to; see `frozen`.
        """
        one = object.__new__(cls)
        for field, value in zip(fields(cls), columns, strict=True):  # type: ignore[arg-type]
            object.__setattr__(one, field.name, value)
        return one

    def to_stored(self) -> dict[str, Any]:
        """What a file holds of it, by stored names, but for fields of `ADDED` that say nothing."""
        one: Any = self
        values = {
            field.name: getattr(one, field.name)
            for field in fields(one)
            if not (ADDED_LATER.items() <= field.metadata.items())
            or not _is_default(getattr(one, field.name), field.default)
        }
        # A word where a module leaves its annotations unread.
        numbers = {field.name for field in fields(one) if field.type in (float, "float")}
        names = {field.name: _stored_name(field) for field in fields(one)}
        return {names[name]: float(one) if name in numbers else one for name, one in values.items()}

    @classmethod
    def from_stored(cls, stored: Any, **known: Any) -> Self:
        """Make one of what is stored by the names of its fields, but for those that are known.

        Files of earlier versions may lack fields that have a default.
        """
        asked = {
            field.name: _stored_name(field)
            for field in fields(cls)  # type: ignore[arg-type]
            if field.name not in known
            and (field.default is MISSING or _stored_name(field) in stored)
        }
        return cls(**known, **{name: stored[in_file] for name, in_file in asked.items()})

    def _check(self, dtype: str, shape: tuple[int | None, ...], *names: str) -> None:
        """Make read-only columns of some fields; see `column`."""
        for name in names:
            object.__setattr__(self, name, check_column(name, getattr(self, name), dtype, shape))


def _stored_name(field: Field[Any]) -> str:
    """Return the name of a field in model files: its own, or the one that `stored_as` gave it."""
    name: str = field.metadata.get("stored_as", field.name)
    return name


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (not isinstance(value, np.ndarray) and bool(value == default))


def _in_short(value: Any) -> str:
    """A number or word as it is; of columns their type and shape, unless they are short."""
    if isinstance(value, np.ndarray) and value.size > _SHORT:
        return f"<{value.dtype} of shape {value.shape}>"
    if isinstance(value, ArrayRecord):
        return f"<{type(value).__name__}>"
    return shortened(value.tolist() if isinstance(value, np.ndarray) else value)


def to_array(name: str, values: Any) -> NDArray[Any]:
    """Make an array of what is given, of whatever dtype, or say why it is none.

    Raises
    ------
    TypeError
        If it is sparse: no stage works on such rows, and made dense they may not fit into memory.
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
    """Whether truth values, if it holds some, are bytes 0 and 1, as the core takes them for numbers."""
    return array.dtype != np.bool_ or not (array.view(np.uint8) > 1).any()


def check_column(
    name: str, values: ArrayLike, dtype: str, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Check an array and return it read-only, in C order, with the dtype asked for.

    Parameters
    ----------
    name : str
        What error messages call the array.
    values : array-like
        The array.
    dtype : {"float64", "int32", "int64", "uint64", "bool"}
        The dtype of the result.
    shape : tuple of int or None
        The shape expected; None stands for any length.

    Returns
    -------
    ndarray
        The array itself if it is a column already, else a copy in memory that nobody can write.

    Raises
    ------
    TypeError
        If the dtype does not convert without loss.
    ValueError
        If the shape is another one, or an integer does not fit.
    """
    given = to_array(name, values)
    if given.size == 0 and not isinstance(values, np.ndarray):
        given = given.astype(dtype)
    _expect_dtype(name, given, dtype)
    fitting = [got if one is None else one for one, got in zip(shape, given.shape, strict=False)]
    if given.ndim != len(shape) or [*given.shape] != fitting:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name} must have shape ({wanted}), got {given.shape}")
    if dtype == "int32" and given.dtype != np.int32 and given.size:
        limits = np.iinfo(np.int32)
        if given.min() < limits.min or given.max() > limits.max:
            raise ValueError(f"{name} must fit into int32")
    if not has_valid_booleans(given):
        raise ValueError(f"{name} must hold True and False alone, got bytes other than 0 and 1")
    # Only what nobody can write to is shared: the core trusts columns that have been checked.
    if (
        given.dtype == dtype
        and given.flags.c_contiguous
        and given.flags.aligned
        and _is_nobodys(given)
    ):
        return given
    converted = np.ascontiguousarray(given, dtype=dtype)
    if dtype == "float64" and given.dtype.kind == "i" and has_inexact_integers(converted):
        check_exact(name, np.atleast_1d(given), converted)
    return freeze(converted)


def freeze(values: NDArray[Any]) -> NDArray[Any]:
    """The values in memory that nobody can write to, which is a copy unless they lie there already."""
    if values.flags.c_contiguous and not values.flags.writeable and _is_nobodys(values):
        return values
    return np.ndarray(values.shape, values.dtype, buffer=values.tobytes())


def make_zeros(n: int) -> Float64:
    """A column of zeros that nobody can write to."""
    return np.frombuffer(bytes(8 * n))


def to_contiguous(values: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """Give an array as the core reads it: in C order, and aligned, which slices of bytes may not be."""
    return np.require(values, dtype, ["C", "A"])


def divide_by_largest(values: Float64, largest: float | None = None) -> Float64:
    """Numbers divided by the largest of their sizes, however small it is, or by that of more of them.

    Some releases of NumPy warn of overflow where it has no reciprocal; powers of two change no bit.
    """
    largest = np.abs(values).max() if largest is None else largest
    exponent = np.frexp(largest)[1]
    scaled: Float64 = np.ldexp(values, -exponent)
    return scaled / np.ldexp(largest, -exponent)


def _is_nobodys(given: NDArray[Any]) -> bool:
    """Whether the memory is that of bytes, or of a column of the core, which nobody can write to.

    A flag of one array says nothing of its other views.
    """
    owner: Any = given
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        if not owner.readonly:
            return False
        owner = owner.obj
    return isinstance(owner, bytes) or type(owner).__name__ == "nb_ndarray"


def _expect_dtype(name: str, given: NDArray[Any], dtype: str) -> None:
    if given.dtype.name not in _ACCEPTED[dtype]:
        raise TypeError(f"{name} must convert to {dtype} without loss, got dtype {given.dtype}")


def to_row_order(scores: Float64) -> Float64:
    """Scores (n_outputs, n) row by row, (n, n_outputs): sums over a row are then its own affair.

    NumPy adds along the axis whose numbers lie next to each other in another order than across it, and
    in a single row all do.
    """
    return np.ascontiguousarray(scores.T)


def stack_columns(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Columns as one table; of objects, where they are of several kinds."""
    if len({one.dtype.kind for one in columns}) == 1:
        return np.column_stack(columns)
    return np.column_stack([one.astype(object) for one in columns])


def has_inexact_integers(numbers: NDArray[Any]) -> bool:
    """Whether some number is so far from 0 that it may have been another whole number before."""
    highest = np.fmax.reduce(numbers, axis=None, initial=0.0)
    return bool(
        highest >= MAX_EXACT_INTEGER
        or np.fmin.reduce(numbers, axis=None, initial=0.0) <= -MAX_EXACT_INTEGER
    )


def check_exact(name: str, given: NDArray[Any], numbers: Float64) -> None:
    """Refuse whole numbers and decimals that are others in float64, as identifiers may be.

    Parameters
    ----------
    name : str
        What the error message calls them.
    given : ndarray
        What was given, of any dtype.
    numbers : ndarray of float64, of the same shape
        The same as float64.

    Raises
    ------
    ValueError
        If some value has changed.
    """
    far = np.abs(numbers) >= MAX_EXACT_INTEGER
    for value, number in zip(given[far].tolist(), numbers[far].tolist(), strict=True):
        whole = int(value) if isinstance(value, Integral) else value
        if isinstance(whole, (int, Decimal)) and whole != number:
            raise ValueError(
                f"{name} holds {whole}, which float64 does not hold: subtract a constant from it, or "
                "make it text if it is a name"
            )


def check_matrix(X: ArrayLike) -> NDArray[Any]:
    """Check a table of features: float64 or float32, C order, finite or NaN.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Integers become float64; float32 stays as it is.

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
    given = to_array("X", X)
    _expect_dtype("X", given, "float64")
    if given.ndim != 2:
        raise ValueError(f"X must have shape (any, any), got {given.shape}")
    whole = given if given.dtype.kind == "i" else None
    given = to_contiguous(given, np.float32 if given.dtype == np.float32 else np.float64)
    if whole is not None and has_inexact_integers(given):
        for j, numbers in enumerate(given.T):
            check_exact(f"feature {j}", whole[:, j], numbers)
    # The sum of finite values is finite, short of an overflow, and much faster to look at.
    with np.errstate(all="ignore"):
        suspicious = not np.isfinite(given.sum())
    if suspicious and np.isinf(given).any():
        raise ValueError(f"Input X contains infinity or a value too large for {given.dtype!r}.")
    return given


def check_n_classes(n_classes: Any) -> int:
    """Check a number of classes, which are counted in int32."""
    most = np.iinfo(np.int32).max
    if not isinstance(n_classes, Integral) or not 1 <= int(n_classes) <= most:
        raise ValueError(f"n_classes must be a whole number in 1 .. {most}, got {n_classes!r}")
    return int(n_classes)


def check_codes(name: str, values: ArrayLike, length: int, n_codes: int) -> Int32:
    """Check whole numbers in 0 .. n_codes - 1 and return them as an int32 column."""
    result: Int32 = check_column(name, values, "int32", (length,))
    if result.size and (result.min() < 0 or result.max() >= n_codes):
        raise ValueError(
            f"{name} must lie in 0 .. {n_codes - 1}, got {result.min()} .. {result.max()}"
        )
    return result


def check_row_weights(values: ArrayLike | None, n: int) -> Float64 | None:
    """Check one finite, non-negative weight per row; None if all rows weigh 1."""
    if values is None:
        return None
    result: Float64 = check_column("sample_weight", values, "float64", (n,))
    if not np.isfinite(result).all() or (result.size and result.min() < 0):
        raise ValueError("sample_weight must be finite and non-negative")
    if not has_finite_total(result):
        raise ValueError(f"sample_weight must sum to at most {MAX_TOTAL_WEIGHT:g}")
    return result


def has_finite_total(weight: Float64) -> bool:
    """Whether weights sum to at most `MOST_ROWS`; shares of an infinite sum mean nothing."""
    with np.errstate(over="ignore"):
        return bool(weight.sum() <= MAX_TOTAL_WEIGHT)


def to_float(number: Any) -> Any:
    """A number that compares as what it is: NumPy compares in the precision of its own scalars."""
    return float(number) if isinstance(number, np.floating) else number


def check_nonnegative(name: str, value: Any) -> float:
    """Check a finite number that is not negative."""
    given: Any = to_float(value)
    is_number = isinstance(given, Real)
    if not is_number or not 0 <= given <= MAX_SETTING:
        raise ValueError(
            f"{name} must be a finite number >= 0, at most {MAX_SETTING:g}, got {shortened(value)}"
        )
    return float(given)


def find_positions(
    known: NDArray[Any], given: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Where given values stand among ascending ones, of which there is one at least, and if they do."""
    places = np.searchsorted(known, given).clip(max=len(known) - 1)
    return places, known[places] == given


def get_csr_arrays(rows: Any) -> CSRArrays:
    """A CSR array as the core takes it."""
    return (
        rows.indptr.astype(np.int64, copy=False),
        rows.indices.astype(np.int32, copy=False),
        np.ascontiguousarray(rows.data),
        int(rows.shape[1]),
    )
