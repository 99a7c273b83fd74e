"""Types of columns of Arrow: those that several files share, and what is made of their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.extras import import_extra

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BITS = 64  # of whole numbers


def without_index(schema: pa.Schema) -> pa.Schema:
    """Leave out what pandas has written as the index of its rows."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    kept = [one for one in schema if one.name not in index]
    names = [one.name for one in kept]
    if len(set(names)) < len(names):
        raise ValueError(f"the names of columns must differ, got {', '.join(names)}")
    return import_extra("pyarrow", "files").schema([one.remove_metadata() for one in kept])


def is_text(kind: Any) -> bool:
    """Whether values of a type are words or categories."""
    return _is_string(kind) or _is_dictionary(kind)


def bytes_of_number(kind: Any) -> float:
    """Bytes of a number, and whether it is missing."""
    try:
        return (kind.bit_width + 1) / 8
    except ValueError:  # no number, which is refused where it is read
        return 16.0


def _is_string(kind: Any) -> bool:
    of = import_extra("pyarrow", "files").types
    if of.is_dictionary(kind):
        return _is_string(kind.value_type)
    return of.is_string(kind) or of.is_large_string(kind) or of.is_string_view(kind)


def _is_dictionary(kind: Any) -> bool:
    return bool(import_extra("pyarrow", "files").types.is_dictionary(kind))


def common_type(one: Any, other: Any) -> Any:
    """The type that holds all values of two; None: there is none."""
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


def joined_schema(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    """The columns of two files, by name, with types that hold the values of both."""
    pa = import_extra("pyarrow", "files")
    (before, schema), (file, more) = one, other
    for has, lacks, names in ((before, file, more.names), (file, before, schema.names)):
        of = schema if has is before else more
        missing = [name for name in of.names if name not in names]
        if missing:
            raise ValueError(f"{lacks.name} has no column {missing[0]!r}, which {has.name} has")
    fields = []
    for name in schema.names:
        kinds = schema.field(name).type, more.field(name).type
        kind = common_type(*kinds)
        if kind is None:
            raise ValueError(
                f"column {name!r} of {file.name} holds {kinds[1]}, which has no common type without "
                f"loss with {kinds[0]} of files before it"
            )
        fields.append(pa.field(name, kind))
    return before, pa.schema(fields)


def as_schema(batch: Any, schema: Any, where: str) -> Any:
    """A batch as a table of the types that all files share."""
    pa = import_extra("pyarrow", "files")
    columns = []
    for one in schema:
        column = batch.column(one.name)
        if column.type != one.type:
            if _is_dictionary(column.type) and not _is_dictionary(one.type):
                column = column.dictionary_decode()
            try:
                column = column.cast(one.type)
            except pa.ArrowInvalid as error:
                raise ValueError(f"column {one.name!r} of {where}: {error}") from None
        columns.append(column)
    return pa.table(columns, schema=schema)


def known_values(what: str, table: Any, name: str, where: str) -> NDArray[Any]:
    """A column without missing values as an array; see `values_of`."""
    if missing := table.column(name).null_count:
        raise ValueError(f"{what} {name!r} has {missing} missing values in {where}")
    return values_of(table, name)


def values_of(table: Any, name: str) -> NDArray[Any]:
    """A column as an array: of text objects, of all else what NumPy has; of categories their values.

    Missing values are None, NaN or NaT.
    """
    column = table.column(name).combine_chunks()
    if _is_string(column.type) and not column.null_count:
        # One object for each word, not for each row.
        words = column if _is_dictionary(column.type) else column.dictionary_encode()
        values: NDArray[Any] = words.dictionary.to_numpy(zero_copy_only=False)
        return values[words.indices.to_numpy()]
    if _is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))
