"""Types of table columns: which types texts may have, which type files share, and conversions.

The rules are the same for fits, predictions and reports:

* The type of a CSV column is the first of integer, boolean, float, date, time, date with time and
  text that all its values have. Spaces around values are ignored unless the column is text.
* Values that are equal to a marker of `MISSING_MARKERS` are missing. A column in which every value
  is missing has the type null.
* A feature is numeric (integer, float, decimal, boolean or null), categorical (text or
  dictionary), or one of dates (with or without times) or time spans. Other types are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, check_exact, has_inexact_integers
from certree.interface.extras import import_extra
from certree.tables.column_names import expect_distinct

if TYPE_CHECKING:
    import pyarrow as pa

# Bits of the longest integers, and texts that are converted before all texts of a block.
_MOST_BITS, _TRIED = 64, 64


@dataclass(frozen=True, slots=True)
class SeenColumn:
    """What is known of a column of a file, or of the columns of this name in several files.

    Parameters
    ----------
    kinds : tuple of pyarrow.DataType
        Types that all its values have. The first one is the type of the column.
    is_text : bool
        Whether all of the values are text of CSV files, so that the file does not state a type.
    markers : frozenset of str
        The markers of missing values that occur in the text.
    """

    kinds: tuple[Any, ...]
    is_text: bool = False
    markers: frozenset[str] = frozenset()

    @property
    def kind(self) -> Any:
        """The type of the column."""
        return self.kinds[0]


SeenColumns = dict[str, SeenColumn]


# -- the types of files


def see_schema(schema: pa.Schema) -> SeenColumns:
    """Return the columns of a file that states their types, without a stored pandas index.

    schema: that of the file. Raise ValueError if two columns have the same name.
    """
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    fields = [field for field in schema if field.name not in index]
    expect_distinct(field.name for field in fields)
    return {field.name: SeenColumn((field.type,)) for field in fields}


@cache
def list_text_types() -> tuple[Any, ...]:
    """Return the types that text may have, in the order in which they are preferred."""
    pa = import_extra("pyarrow", "files")
    numbers = pa.null(), pa.int64(), pa.bool_(), pa.float64()
    times = pa.date32(), pa.time32("s")
    stamps = [pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "UTC")]
    return *numbers, *times, *stamps, pa.string()


def narrow_text_types(kinds: Sequence[Any], values: pa.Array) -> tuple[Any, ...]:
    """Return those of some types that all of some texts have, in the same order.

    kinds: elements of `list_text_types`; values: texts, none of which is missing.
    """
    of = import_extra("pyarrow", "files").types
    if not len(values):
        return tuple(kinds)
    kept: list[Any] = []
    for kind in kinds:
        is_float_too = of.is_floating(kind) and any(map(of.is_integer, kept))
        if is_float_too or of.is_string(kind) or _convert_text_or_none(values, kind) is not None:
            kept.append(kind)
    return tuple(kept)


def choose_type(column: SeenColumn, wanted: Any, keeps_dates: bool = True) -> Any:
    """Return the type as which a column is read.

    column: what is known of it; wanted: the type that it has in a fitted model, string, float64 or
    a type of dates, or None; keeps_dates: whether text that has the form of dates or times may become
    such a type. Text and integers become strings if these are wanted, and dictionaries of numbers
    become numbers. All other columns keep their type, also if it is not the wanted one.
    """
    pa = import_extra("pyarrow", "files")
    of, kind = pa.types, column.kind
    if column.is_text and of.is_temporal(kind) and not keeps_dates:
        return pa.string()
    if wanted is None:
        return kind
    if of.is_string(wanted) and (column.is_text or of.is_integer(kind)):
        return wanted
    if of.is_floating(wanted) and of.is_dictionary(kind) and not is_text_type(kind.value_type):
        return kind.value_type
    return kind


def choose_schema(
    columns: SeenColumns, wanted: Mapping[str, Any], text_dates: Collection[str] = ()
) -> pa.Schema:
    """Return the types as which the columns of a table are read.

    columns: what is known of them; wanted: types in a fitted model, string or float64, by name of
    the column; text_dates: names of columns of which dates and times in CSV files stay text.
    """
    types = {
        name: choose_type(column, wanted.get(name), name not in text_dates)
        for name, column in columns.items()
    }
    return import_extra("pyarrow", "files").schema(types.items())


# -- the types that several files share


def join_columns(one: SeenColumn, other: SeenColumn) -> SeenColumn | None:
    """Return what is known of a column of two files: types that hold the values of both.

    None: there is no such type.
    """
    pairs = ((a, b) for a in one.kinds for b in other.kinds)
    kinds = [kind for a, b in pairs if (kind := common_type(a, b)) is not None]
    if not kinds:
        return None
    is_text = one.is_text and other.is_text
    if is_text:  # The order of preference is that of one file.
        kinds = [kind for kind in list_text_types() if kind in one.kinds and kind in other.kinds]
    return SeenColumn(tuple(dict.fromkeys(kinds)), is_text, one.markers | other.markers)


def common_type(one: Any, other: Any) -> Any:
    """Return the type that holds all values of two types; None: there is none."""
    pa = import_extra("pyarrow", "files")
    of = pa.types
    if one == other:
        return one
    if of.is_null(one) or of.is_null(other):
        return other if of.is_null(one) else one
    if _is_string(one) and _is_string(other):
        return pa.string()
    if of.is_dictionary(one) and of.is_dictionary(other):
        values = common_type(one.value_type, other.value_type)
        return None if values is None else pa.dictionary(pa.int32(), values)
    if of.is_integer(one) and of.is_integer(other):
        return _common_integer(one, other)
    if of.is_floating(one) and of.is_floating(other):
        return one if one.bit_width > other.bit_width else other
    for whole, real in ((one, other), (other, one)):
        if of.is_integer(whole) and of.is_floating(real) and whole.bit_width <= 32:
            return pa.float64()
    return None


def _common_integer(one: Any, other: Any) -> Any:
    """Return the integer type that holds all values of two integer types; None: there is none."""
    pa = import_extra("pyarrow", "files")
    signed = [kind for kind in (one, other) if pa.types.is_signed_integer(kind)]
    bits = max(one.bit_width, other.bit_width)
    if len(signed) == 1:
        unsigned = other if signed[0] is one else one
        bits = max(signed[0].bit_width, 2 * unsigned.bit_width)
    if bits > _MOST_BITS:
        return None
    prefix = "int" if signed else "uint"
    return getattr(pa, f"{prefix}{bits}")()


# -- conversion of columns to a type


def convert_batch(batch: Any, schema: Any, where: str) -> Any:
    """Convert rows to a table with the types of a schema.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Rows, with at least the columns of the schema.
    schema : pyarrow.Schema
        Names and types of the columns of the result.
    where : str
        The file, for messages.

    Raises
    ------
    ValueError
        If a value is not of the type of its column; the message names it.
    """
    pa = import_extra("pyarrow", "files")
    columns = []
    for field in schema:
        try:
            columns.append(_convert_column(batch.column(field.name), field.type))
        except pa.ArrowInvalid as error:
            raise ValueError(f"column {field.name!r} of {where}: {error}") from None
    return pa.table(columns, schema=schema)


def _convert_column(column: Any, kind: Any) -> Any:
    """Convert an Arrow array to a type; raise `pyarrow.ArrowInvalid` if a value does not have it."""
    of = import_extra("pyarrow", "files").types
    if column.type == kind:
        return column
    if of.is_dictionary(column.type) and not of.is_dictionary(kind):
        column = column.dictionary_decode()
    if _is_string(column.type) and not is_text_type(kind):
        return _convert_text(column, kind)
    return column.cast(kind)


def convert_if_possible(column: Any, kinds: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Convert texts to the first of some types that all of them have.

    Parameters
    ----------
    column : pyarrow.Array
        Texts.
    kinds : sequence of pyarrow.DataType
        The types that all texts of this column before these had.

    Returns
    -------
    column : pyarrow.Array
        The converted column; unchanged if no type is left.
    kinds : tuple of pyarrow.DataType
        The types that these texts have as well.
    """
    found = {kind: _convert_text_or_none(column, kind) for kind in kinds}
    kept = tuple(kind for kind in kinds if found[kind] is not None)
    return (found[kept[0]] if kept else column), kept


def _convert_text_or_none(column: Any, kind: Any) -> Any:
    """Convert texts to a type; return None if a text does not have it."""
    try:
        # Arrow writes a message for every text that it cannot convert, so few are tried first.
        _convert_text(column.slice(0, _TRIED), kind)
        return _convert_text(column, kind)
    except import_extra("pyarrow", "files").ArrowInvalid:
        return None


def _convert_text(column: Any, kind: Any) -> Any:
    """Convert an Arrow array of texts to a type, ignoring spaces and tabs around each text.

    Raise `pyarrow.ArrowInvalid` if a text does not have the type.
    """
    pa, pc = import_extra("pyarrow", "files"), import_extra("pyarrow.compute", "files")
    if pa.types.is_null(kind):
        if column.null_count < len(column):
            raise pa.ArrowInvalid("a column without values must not have any")
        return pa.nulls(len(column))
    if pa.types.is_time(kind):  # Arrow does not convert texts to times of the day.
        days = pc.binary_join_element_wise("1970-01-01", pc.utf8_trim(column, " \t"), " ")
        return days.cast(pa.timestamp("s")).cast(kind)
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        # Few files have such spaces, so texts are copied without them only then.
        return pc.utf8_trim(column, " \t").cast(kind)


# -- roles of types


def is_text_type(kind: Any) -> bool:
    """Return whether values of a type are categories: strings, or values of a dictionary."""
    return _is_string(kind) or bool(import_extra("pyarrow", "files").types.is_dictionary(kind))


def _is_string(kind: Any) -> bool:
    """Return whether a type is a string type, or a dictionary of strings."""
    of = import_extra("pyarrow", "files").types
    if of.is_dictionary(kind):
        return _is_string(kind.value_type)
    return bool(of.is_string(kind) or of.is_large_string(kind) or of.is_string_view(kind))


def name_type(kind: Any) -> str:
    """Return the word for a type, or Arrow's name.

    Words are number, boolean, category, empty, date, time span and time.
    """
    of = import_extra("pyarrow", "files").types
    words = {
        "category": is_text_type,
        "boolean": of.is_boolean,
        "empty": of.is_null,
        "date": lambda one: of.is_date(one) or of.is_timestamp(one),
        "time span": of.is_duration,
        "time": of.is_temporal,
        "number": is_number_type,
    }
    return next((word for word, accepts in words.items() if accepts(kind)), str(kind))


def is_number_type(kind: Any) -> bool:
    """Return whether a type is an integer, float or decimal type."""
    of = import_extra("pyarrow", "files").types
    return bool(of.is_integer(kind) or of.is_floating(kind) or of.is_decimal(kind))


def is_date_type(kind: Any) -> bool:
    """Return whether a type is one of dates, dates with times, or time spans."""
    of = import_extra("pyarrow", "files").types
    return bool(of.is_date(kind) or of.is_timestamp(kind) or of.is_duration(kind))


def list_date_types() -> tuple[Any, ...]:
    """Return the types of dates that text may have, in the order in which they are preferred."""
    return tuple(kind for kind in list_text_types() if is_date_type(kind))


def expect_feature_types(fields: Iterable[pa.Field]) -> None:
    """Raise ValueError if a feature holds no numbers, strings or dates; fields: names and types."""
    of = import_extra("pyarrow", "files").types
    for field in fields:
        kind = field.type.value_type if of.is_dictionary(field.type) else field.type
        accepted = _is_string, is_number_type, of.is_boolean, of.is_null, is_date_type
        if not any(accepts(kind) for accepts in accepted):
            raise ValueError(
                f"feature {field.name!r} must hold numbers, strings or dates, got {field.type}: "
                "convert or drop the column"
            )


def count_bytes(kind: Any) -> float:
    """Return the bytes of a number and of the bit that says whether it is missing."""
    try:
        return (kind.bit_width + 1) / 8
    except ValueError:  # No number; it is refused where it is read.
        return 16.0


# -- conversion of columns to arrays


def extract_feature(columns: pa.Table, name: str) -> NDArray[Any]:
    """Convert a feature column of a table to an array, (n,).

    columns: the table; name: name of the column. A string or dictionary column becomes an array of
    objects: str, or None for null. So does a column of dates or time spans, with the objects of
    `datetime`, rounded down to microseconds. A numeric or boolean column, or one without any value,
    becomes float64, with NaN for null. Raise ValueError for other types, and for integers that
    float64 cannot represent.
    """
    pa = import_extra("pyarrow", "files")
    field, values = columns.schema.field(name), columns.column(name)
    expect_feature_types([field])
    if pa.types.is_dictionary(field.type):
        values = values.cast(pa.string())
    if is_text_type(field.type):
        return np.asarray(values.to_numpy(), dtype=object)
    if is_date_type(field.type):
        dates = values.cast(_to_python_type(field.type), safe=False)
        return np.fromiter(dates.to_pylist(), object, len(values))
    return _convert_to_float64(values, f"feature {name!r}")


def _to_python_type(kind: Any) -> Any:
    """Return the type whose values are objects of `datetime`, for a type of dates or time spans."""
    pa = import_extra("pyarrow", "files")
    if pa.types.is_date(kind):
        return pa.date32()
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")


def _convert_to_float64(values: Any, label: str) -> Float64:
    """Convert a numeric column to float64, (n,), with NaN for null.

    values: the column, a `pyarrow.ChunkedArray`; label: its name in the message. Raise ValueError if
    float64 cannot represent an integer.
    """
    pa = import_extra("pyarrow", "files")
    of, kind = pa.types, values.type
    if of.is_decimal(kind):  # Python rounds decimals correctly, and NumPy as Python does.
        missing = values.is_null().to_numpy()
        numbers = np.where(missing, np.nan, values.to_numpy()).astype(np.float64)
    else:
        numbers = np.asarray(values.cast(pa.float64(), safe=False).to_numpy())
    if (of.is_integer(kind) or of.is_decimal(kind)) and has_inexact_integers(numbers):
        check_exact(label, np.array(values.to_pylist(), dtype=object), numbers)
    return numbers


def extract_values(what: str, table: Any, name: str, where: str) -> NDArray[Any]:
    """Convert a column without missing values to an array, (n,); see `convert_to_array`.

    what: role of the column in the message, such as "the target"; table: the rows; name: name of the
    column; where: the file, for the message. Raise ValueError if a value is missing.
    """
    if missing := table.column(name).null_count:
        raise ValueError(
            f"{what} {name!r} must have no missing values, got {missing} in {where}: drop these rows"
        )
    return convert_to_array(table, name)


def convert_to_array(table: Any, name: str) -> NDArray[Any]:
    """Convert a column to an array, (n,): text to objects, and other values to NumPy's type.

    table: the rows; name: name of the column. A dictionary becomes its values. Missing values become
    None, NaN or NaT.
    """
    of = import_extra("pyarrow", "files").types
    column = table.column(name).combine_chunks()
    is_dictionary = of.is_dictionary(column.type)
    if _is_string(column.type) and not column.null_count:
        # One object for each distinct text, not for each row.
        words = column if is_dictionary else column.dictionary_encode()
        values: NDArray[Any] = words.dictionary.to_numpy(zero_copy_only=False)
        return values[words.indices.to_numpy()]
    if is_dictionary:
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))
