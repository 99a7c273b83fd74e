"""Types of table columns: the types that texts may have, types of several files, and conversions.

The rules are the same for fits, predictions and reports:

* The type of a CSV column is the first of integer, boolean, float, date, time, date with time and
  text to which all its values convert. Spaces around values are ignored unless the column is text.
* Values that are equal to a marker of `MISSING_MARKERS` are missing. A column in which every value
  is missing has the type null.
* A feature is numeric (integer, float, decimal, boolean or null), categorical (text or
  dictionary), or one of dates (with or without times) or time spans. Other types are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, check_exact, has_inexact_integers
from certree.tables.arrow import pa, pc
from certree.tables.column_names import expect_distinct
from certree.tables.text_formats import TextFormat, convert_or_none

# Bits of the longest integers.
_MOST_BITS = 64


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """The inferred types and format of a column in one file, or in several files together.

    Parameters
    ----------
    kinds : tuple of pyarrow.DataType
        Types to which all values convert. The first one is the type of the column. A Parquet or
        Arrow file, which states types, gives only one.
    is_text : bool
        True for a column of CSV files, whose type was inferred from text.
    markers : frozenset of str
        The markers of missing values that occur in the text.
    evidence : ColumnEvidence or None
        What the text shows about the format of the values; None for files that state types.
    form : TextFormat or None
        The format by which text becomes numbers or dates; None: it is in plain form, or stays text.
    notes : tuple of str
        Remarks for a description of the table, such as "leading zeros kept".
    """

    kinds: tuple[Any, ...]
    is_text: bool = False
    markers: frozenset[str] = frozenset()
    evidence: Any = None
    form: TextFormat | None = None
    notes: tuple[str, ...] = ()

    @property
    def kind(self) -> Any:
        """Return the pyarrow type of the column, the first of `kinds`."""
        return self.kinds[0]


InferredColumns = dict[str, InferredColumn]


# -- the types of files


def list_stored_columns(schema: pa.Schema) -> InferredColumns:
    """Return the columns of a Parquet or Arrow file by name, each with the type that the file states.

    Columns of a pandas index are left out. schema: schema of the file. Raise a ValueError if two
    columns have the same name.
    """
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    fields = [field for field in schema if field.name not in index]
    expect_distinct(field.name for field in fields)
    return {field.name: InferredColumn((field.type,)) for field in fields}


@cache
def list_text_types() -> tuple[Any, ...]:
    """Return the pyarrow types that a CSV column may get, in the order of preference.

    They are null, int64, bool, float64, date, time, date with time (with or without nanoseconds and
    time zone), and string, which all texts have.
    """
    numbers = pa.null(), pa.int64(), pa.bool_(), pa.float64()
    times = pa.date32(), pa.time32("s")
    stamps = [pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "UTC")]
    return *numbers, *times, *stamps, pa.string()


def narrow_text_types(kinds: Sequence[Any], values: pa.Array) -> tuple[Any, ...]:
    """Return the types to which all texts of a column convert, in the given order.

    kinds: types to try, elements of `list_text_types`. values: texts, an Arrow array in which none
    is missing. Without texts all types are returned.
    """
    if not len(values):
        return tuple(kinds)
    kept: list[Any] = []
    for kind in kinds:
        is_float_too = pa.types.is_floating(kind) and any(map(pa.types.is_integer, kept))
        if (
            is_float_too
            or pa.types.is_string(kind)
            or _convert_text_or_none(values, kind) is not None
        ):
            kept.append(kind)
    return tuple(kept)


def choose_type(column: InferredColumn, wanted: Any, keeps_dates: bool = True) -> Any:
    """Return the pyarrow type as which a column is read.

    Parameters
    ----------
    column : InferredColumn
        Types of the column in the files.
    wanted : pyarrow.DataType or None
        Type of the column in a fitted model: string, float64 or a type of dates. None: there is no
        model, or the column is none of its columns.
    keeps_dates : bool
        Whether CSV text in the form of dates or times becomes dates or times; if not, it stays
        text.

    Returns
    -------
    pyarrow.DataType
        String if that is wanted for text, integers or dictionaries of numbers; the type of the
        numbers if float64 is wanted for a dictionary of numbers. All other columns keep their type,
        also if it is not the wanted one.
    """
    kind = column.kind
    if column.is_text and pa.types.is_temporal(kind) and not keeps_dates:
        return pa.string()
    if wanted is None:
        return kind
    values = kind.value_type if pa.types.is_dictionary(kind) else None
    has_numbers = values is not None and (is_number_type(values) or pa.types.is_boolean(values))
    if pa.types.is_string(wanted) and (column.is_text or pa.types.is_integer(kind) or has_numbers):
        return wanted
    if pa.types.is_floating(wanted) and has_numbers:
        return values
    return kind


def choose_schema(
    columns: InferredColumns, wanted: Mapping[str, Any], text_dates: Collection[str] = ()
) -> pa.Schema:
    """Return the names and types with which the columns of a table are read.

    columns: types of the columns in the files, by name. wanted: pyarrow types of columns in a
    fitted model (string, float64 or a type of dates), by name. text_dates: names of columns of
    which dates and times in CSV files stay text. The schema has all `columns`, in their order;
    those that are not in `wanted` keep the type of the files, and names in `wanted` alone are
    ignored. If files and model disagree, `choose_type` states which type is taken.
    """
    types = {
        name: choose_type(column, wanted.get(name), name not in text_dates)
        for name, column in columns.items()
    }
    return pa.schema(types.items())


# -- the types that several files share


def join_columns(one: InferredColumn, other: InferredColumn) -> InferredColumn | None:
    """Join a column of one file with the column of the same name in another file.

    one, other: the column in both files. The result has the types that hold the values of both
    without loss, and the evidence, notes and markers of missing values of both. Return None if there
    is no such type.
    """
    pairs = ((a, b) for a in one.kinds for b in other.kinds)
    kinds = [kind for a, b in pairs if (kind := common_type(a, b)) is not None]
    if not kinds:
        return None
    is_text = one.is_text and other.is_text
    if is_text:  # The order of preference is that of one file.
        kinds = [kind for kind in one.kinds if kind in other.kinds]
    return InferredColumn(
        tuple(dict.fromkeys(kinds)),
        is_text,
        one.markers | other.markers,
        _add_evidence(one.evidence, other.evidence),
        one.form or other.form,
        (*dict.fromkeys((*one.notes, *other.notes)),),
    )


def _add_evidence(one: Any, other: Any) -> Any:
    """Return the evidence about a column in two files together.

    one, other: `ColumnEvidence` of each file; None stands for a file without evidence, and the
    result is the other argument, which may be None, too.
    """
    if one is None or other is None:
        return one if other is None else other
    return one + other


def common_type(one: Any, other: Any) -> Any:
    """Return the pyarrow type that holds all values of two types without loss; None if there is none.

    Text and numbers, for instance, have none. Null joins with every type, and integers of up to 32
    bits with floats. one, other: the two pyarrow types.
    """
    if one == other:
        return one
    if pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    if _is_string(one) and _is_string(other):
        return pa.string()
    if pa.types.is_dictionary(one) and pa.types.is_dictionary(other):
        values = common_type(one.value_type, other.value_type)
        return None if values is None else pa.dictionary(pa.int32(), values)
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return _common_integer(one, other)
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return one if one.bit_width > other.bit_width else other
    for whole, real in ((one, other), (other, one)):
        if pa.types.is_integer(whole) and pa.types.is_floating(real) and whole.bit_width <= 32:
            return pa.float64()
    return None


def _common_integer(one: Any, other: Any) -> Any:
    """Return the smallest pyarrow integer type that holds all values of two integer types, or None.

    one, other: pyarrow integer types. There is none for uint64 and a signed type.
    """
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
    """Convert a record batch to a table with the columns and types of a schema.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Rows, with at least the columns of the schema.
    schema : pyarrow.Schema
        Names and types of the columns of the result.
    where : str
        Name of the file, for messages.

    Returns
    -------
    pyarrow.Table
        The columns of the schema, in its order.

    Raises
    ------
    ValueError
        If a value does not convert to the type of its column; the message names the column.
    """
    columns = []
    for field in schema:
        try:
            columns.append(_convert_column(batch.column(field.name), field.type))
        except pa.ArrowInvalid as error:
            raise ValueError(f"column {field.name!r} of {where}: {error}") from None
    return pa.table(columns, schema=schema)


def _convert_column(column: Any, kind: Any) -> Any:
    """Convert an Arrow array to a pyarrow type, and return the new array.

    column: the array; kind: the type. Raise `pyarrow.ArrowInvalid` if a value does not fit.
    """
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    if _is_string(column.type) and not is_text_type(kind):
        return _convert_text(column, kind)
    return column.cast(kind)


def convert_if_possible(column: Any, kinds: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Convert texts to the first of several types to which all of them convert.

    A caller that reads a column in batches passes the second result to the call for the next batch.

    Parameters
    ----------
    column : pyarrow.Array
        Texts of one batch.
    kinds : sequence of pyarrow.DataType
        The types to which all texts of earlier batches convert, in the order of preference.

    Returns
    -------
    column : pyarrow.Array
        The converted texts; unchanged if they convert to none of the types.
    kinds : tuple of pyarrow.DataType
        The types in `kinds` to which these texts convert, in the same order; may be empty.
    """
    found = {kind: _convert_text_or_none(column, kind) for kind in kinds}
    kept = tuple(kind for kind in kinds if found[kind] is not None)
    return (found[kept[0]] if kept else column), kept


def _convert_text_or_none(column: Any, kind: Any) -> Any:
    """Convert an Arrow array of texts to a pyarrow type; return None if a text does not convert.

    column: the texts, with nulls for missing values; kind: a type of numbers, dates or texts.
    """
    return convert_or_none(column, lambda texts: _convert_text(texts, kind))


def _convert_text(column: Any, kind: Any) -> Any:
    """Convert an Arrow array of texts to a pyarrow type, ignoring spaces and tabs around each text.

    Return the new array. Raise `pyarrow.ArrowInvalid` if a text does not convert. column: the texts,
    with nulls for missing values; kind: the type; for the type null, all texts must be missing.
    """
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
    """Return whether a pyarrow type holds categories: strings, or a dictionary of any values."""
    return _is_string(kind) or bool(pa.types.is_dictionary(kind))


def _is_string(kind: Any) -> bool:
    """Return whether a pyarrow type is a string type, or a dictionary type of strings."""
    if pa.types.is_dictionary(kind):
        return _is_string(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def name_type(kind: Any) -> str:
    """Return the word for a pyarrow type in descriptions of tables.

    It is "number", "boolean", "category", "empty" (null), "date", "time span", "time", or else
    Arrow's name.
    """
    words = {
        "category": is_text_type,
        "boolean": pa.types.is_boolean,
        "empty": pa.types.is_null,
        "date": lambda one: pa.types.is_date(one) or pa.types.is_timestamp(one),
        "time span": pa.types.is_duration,
        "time": pa.types.is_temporal,
        "number": is_number_type,
    }
    return next((word for word, accepts in words.items() if accepts(kind)), str(kind))


def is_number_type(kind: Any) -> bool:
    """Return whether a pyarrow type is an integer, float or decimal type."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_date_type(kind: Any) -> bool:
    """Return whether a pyarrow type is a date, timestamp or duration type."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def list_date_types() -> tuple[Any, ...]:
    """Return the pyarrow types of dates that CSV text may get, the preferred type first.

    They are days, and dates with time, with and without nanoseconds and time zone.
    """
    return tuple(kind for kind in list_text_types() if is_date_type(kind))


def expect_feature_types(fields: Iterable[pa.Field]) -> None:
    """Raise a ValueError if the type of a feature is none of number, boolean, string, date and null.

    fields: names and types of the features. The type of a dictionary is that of its values.
    """
    for field in fields:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        accepted = _is_string, is_number_type, pa.types.is_boolean, pa.types.is_null
        if not any(accepts(kind) for accepts in accepted) and not is_date_type(field.type):
            raise ValueError(
                f"feature {field.name!r} must hold numbers, strings or dates, got {field.type}: "
                "convert the column, leave it out by drop= (--drop), or keep the text of a CSV file by "
                "keep_text= (--keep-text)"
            )


def count_bytes(kind: Any) -> float:
    """Return the bytes per row that a column of a pyarrow type takes, with the bit for missing values.

    A type without fixed width, such as text, counts as 16 bytes. kind: the type.
    """
    try:
        return (kind.bit_width + 1) / 8
    except ValueError:  # No number; it is refused where it is read.
        return 16.0


# -- conversion of columns to arrays


def extract_feature(columns: pa.Table, name: str) -> NDArray[Any]:
    """Convert a feature column of a table to an array, (n,), as estimators read it.

    Columns of strings, or dictionaries of strings, become arrays of objects: str, or None for null.
    Dates and time spans become objects of `datetime`, rounded down to microseconds. Numeric or
    boolean columns, dictionaries of these, and columns without values become float64, with NaN for
    null. Integers that float64 cannot represent become text if they are in a dictionary.

    columns: the table. name: name of the column. Raise a ValueError for other integers that float64
    cannot represent, and for other types.
    """
    field, values = columns.schema.field(name), columns.column(name)
    expect_feature_types([field])
    if is_date_type(field.type):
        dates = values.cast(_to_python_type(field.type), safe=False)
        return np.fromiter(dates.to_pylist(), object, len(values))
    is_dictionary = pa.types.is_dictionary(field.type)
    if is_dictionary:
        values = values.cast(field.type.value_type)
    if not _is_string(field.type):
        try:
            return _convert_to_float64(values, f"feature {name!r}")
        except ValueError:
            if not is_dictionary:
                raise
        values = values.cast(pa.string())
    return np.asarray(values.to_numpy(), dtype=object)


def _to_python_type(kind: Any) -> Any:
    """Return the nearest pyarrow type whose values convert to objects of `datetime`.

    kind: a type of dates, timestamps or durations. The result has days or microseconds.
    """
    if pa.types.is_date(kind):
        return pa.date32()
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")


def _convert_to_float64(values: Any, label: str) -> Float64:
    """Convert a numeric column to float64, (n,), with NaN for null.

    values: the column, a `pyarrow.ChunkedArray`. label: name of the column in the message. Raise a
    ValueError if float64 cannot represent an integer.
    """
    kind = values.type
    if pa.types.is_decimal(kind):  # Python rounds decimals correctly, and NumPy as Python does.
        missing = values.is_null().to_numpy()
        numbers = np.where(missing, np.nan, values.to_numpy()).astype(np.float64)
    else:
        numbers = np.asarray(values.cast(pa.float64(), safe=False).to_numpy())
    if (pa.types.is_integer(kind) or pa.types.is_decimal(kind)) and has_inexact_integers(numbers):
        check_exact(label, np.array(values.to_pylist(), dtype=object), numbers)
    return numbers


def extract_values(what: str, table: Any, name: str, where: str) -> NDArray[Any]:
    """Convert a column without missing values to an array, (n,).

    Texts become objects of str, and other values NumPy's type, such as int64 or datetime64.

    what: role of the column, such as "the target", for the message. table: the rows, a
    pyarrow.Table. name: name of the column. where: name of the file, for the message. Raise a
    ValueError if a value is missing.
    """
    column = table.column(name)
    if missing := column.null_count:
        message = f"{what} {name!r} must have no missing values, got {missing} in {where}"
        message += ": drop these rows"
        if is_text_type(column.type):
            message += f", or read words such as NA as text by keep_text= (--keep-text {name!r})"
        raise ValueError(message)
    return convert_to_array(table, name)


def convert_to_array(table: Any, name: str) -> NDArray[Any]:
    """Convert a column to an array, (n,): text to objects, and other values to NumPy's type.

    table: the rows, a pyarrow.Table; name: name of the column. A dictionary becomes its values.
    Missing values become None (texts), NaN (numbers) or NaT (dates).
    """
    column = table.column(name).combine_chunks()
    is_dictionary = pa.types.is_dictionary(column.type)
    if _is_string(column.type) and not column.null_count:
        # One object for each distinct text, not for each row.
        words = column if is_dictionary else column.dictionary_encode()
        values: NDArray[Any] = words.dictionary.to_numpy(zero_copy_only=False)
        return values[words.indices.to_numpy()]
    if is_dictionary:
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))
