"""Columns of text that hold integers, such as keys of CSV files."""

from __future__ import annotations

from typing import Any

from certree.tables.arrow import pa, pc

# Integers as they are usually written, so that no text changes if it becomes a number and is
# printed again. All with at most 18 digits fit into 64 bits.
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"


def holds_integers(column: Any) -> bool:
    """Return whether all texts of a column are integers without leading zeros or signs "+".

    column: pyarrow Array or ChunkedArray. Missing values are ignored; False for columns of other
    types than text.
    """
    if not pa.types.is_string(column.type):
        return False
    return bool(pc.all(pc.match_substring_regex(column, _INTEGER), min_count=0).as_py())


def convert_integer_text(column: Any) -> Any:
    """Convert a column of text to int64 if all its values are integers; else return it unchanged.

    A column without any value is unchanged, too. column: pyarrow Array or ChunkedArray.
    """
    if column.null_count < len(column) and holds_integers(column):
        return column.cast(pa.int64())
    return column
