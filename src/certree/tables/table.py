"""Tables in memory: arrays of features and target, with a description of their columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.extras import import_extra
from certree.tables.column_names import expect_distinct, join_names
from certree.tables.column_types import (
    SeenColumn,
    SeenColumns,
    extract_feature,
    extract_values,
    name_type,
)

if TYPE_CHECKING:
    import pyarrow as pa

# Most columns that a printed description lists.
_LISTED = 30


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """Type and missing values of a column, as they were read.

    Parameters
    ----------
    name : str
        Name of the column.
    type : str
        "number", "boolean", "category", "date", "time span", "time", or "empty" if all values are
        missing.
    n_missing : int
        Number of missing values.
    markers : tuple of str
        The texts of a CSV file that were read as missing values in this column, such as "NA".
    """

    name: str
    type: str
    n_missing: int
    markers: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.n_missing:
            return f"{self.name}: {self.type}"
        marked = join_names(marker or "empty" for marker in self.markers)
        return f"{self.name}: {self.type}, {self.n_missing:,} missing" + (
            f" ({marked})" if marked else ""
        )


@dataclass(frozen=True, slots=True)
class TableDescription:
    """What was read from files: number of rows, and type and missing values of each column.

    `str` gives a line for each column, of at most 30 columns.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    columns : tuple of ColumnDescription
        The columns, in the order of the file.
    """

    n_rows: int
    columns: tuple[ColumnDescription, ...]

    def __str__(self) -> str:
        lines = [f"{self.n_rows:,} rows, {len(self.columns):,} columns"]
        lines += [str(column) for column in self.columns[:_LISTED]]
        if len(self.columns) > _LISTED:
            lines.append(f"and {len(self.columns) - _LISTED:,} more")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as arrays: features, and a target if there is one.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features: float64 if all are numeric; else objects, which are str or None in categorical
        features, float in numeric ones, and those of `datetime`, or None, in features of dates and
        time spans.
    y : ndarray of shape (n,), or None
        Target: numbers, or strings of a NumPy str dtype; None without a target.
    feature_names : list of p str
        Names of the features, in the order of the columns of X.
    description : TableDescription or None
        Types and missing values of the columns; None for tables that `read_table` has not read.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None
    feature_names: list[str]
    description: TableDescription | None = None

    @property
    def categorical(self) -> list[int]:
        """Indices (columns of X) of the features that have a string in any row."""
        if self.X.dtype != object:
            return []
        return [j for j, x in enumerate(self.X.T) if any(isinstance(value, str) for value in x)]

    def to_arrow(self) -> "pa.Table":
        """Return the features as an Arrow table, with which estimators learn the names of features.

        Returns
        -------
        pyarrow.Table
            Columns of float64, of strings for categorical features, and of dates and time spans.
        """
        columns = dict(zip(self.feature_names, self.X.T, strict=True))
        if self.X.dtype == object:
            pa = import_extra("pyarrow", "files")
            for name, values in columns.items():
                if any(isinstance(value, date | timedelta) for value in values):
                    columns[name] = pa.array(values.tolist())
        return create_arrow_table(columns, self.categorical)


def create_arrow_table(
    features: dict[str, Any], categorical: Sequence[int] | None = None
) -> "pa.Table":
    """Return features as an Arrow table of strings and float64.

    features: values, (n,), by name; Arrow columns are not changed. categorical: indices of those
    that hold strings; None: arrays whose dtype is object.
    """
    pa = import_extra("pyarrow", "files")
    columns = {}
    for j, (name, values) in enumerate(features.items()):
        if not isinstance(values, np.ndarray):
            columns[name] = values
            continue
        is_text = values.dtype == object if categorical is None else j in categorical
        kind, dtype = (pa.string(), object) if is_text else (pa.float64(), np.float64)
        columns[name] = pa.array(values.astype(dtype, copy=False), kind)
    return pa.table(columns)


def split_target(
    columns: "pa.Table", target: str | None, description: TableDescription | None = None
) -> Table:
    """Convert an Arrow table to arrays of features and target.

    Parameters
    ----------
    columns : pyarrow.Table
        All columns, with distinct names. String and dictionary columns are categorical features;
        integer, float, decimal and boolean ones are numeric. Dates and time spans are objects. Nulls
        become NaN in numeric and None in other features.
    target : str or None
        Name of the target column; None: there is none.
    description : TableDescription or None
        Description of the result.

    Returns
    -------
    Table
        All columns except the target as features, in their order; `y` is None without a target.

    Raises
    ------
    ValueError
        If names are not distinct; if the target is missing, or has nulls; if there is no feature,
        or one has another type or integers that float64 cannot represent.
    """
    expect_distinct(columns.column_names)
    y = None
    if target is not None:
        y = extract_target(columns, target)
        columns = columns.drop_columns([target])
    features = [extract_feature(columns, name) for name in columns.column_names]
    if not features:
        raise ValueError("the table must have a feature column, but has none besides the target")
    kind = np.result_type(*features)  # object if any feature is
    X = np.empty((columns.num_rows, len(features)), dtype=kind)
    for j, feature in enumerate(features):
        X[:, j] = feature
    return Table(X, y, list(columns.column_names), description)


def extract_target(columns: "pa.Table", target: str, where: str = "the table") -> NDArray[Any]:
    """Convert the target column of a table to an array, (n,): numbers, or strings of a str dtype.

    columns: the table; target: name of the column; where: name of the table in messages. Raise
    ValueError if there is no such column, it has nulls, or a string ends in NUL.
    """
    if target not in columns.column_names:
        raise ValueError(
            f"the target must be a column, but there is no column {target!r}: name one of "
            f"{join_names(columns.column_names)}"
        )
    y = extract_values("the target", columns, target, where)
    return _convert_to_str_dtype(y, target) if y.dtype == object else y


def _convert_to_str_dtype(values: NDArray[Any], target: str) -> NDArray[Any]:
    """Convert strings of dtype object, (n,), to a NumPy str dtype.

    values: the strings; target: name of their column, for the message. Raise ValueError if a string
    ends in NUL, which NumPy would drop.
    """
    if any(isinstance(value, str) and value.endswith("\0") for value in values):
        raise ValueError(
            f"the target {target!r} must not have values that end in NUL, as NumPy drops "
            "it: rename them"
        )
    return values.astype(str)


def describe_columns(columns: "pa.Table", seen: SeenColumns) -> TableDescription:
    """Describe the columns of a table.

    columns: the rows, as they were read; seen: what is known of the columns of their files.
    """
    pa, pc = import_extra("pyarrow", "files"), import_extra("pyarrow.compute", "files")
    described = []
    for name, column in zip(columns.column_names, columns.columns, strict=True):
        n_missing = column.null_count
        if pa.types.is_floating(column.type) and column.type.bit_width > 16:
            n_missing += pc.sum(pc.is_nan(column)).as_py() or 0
        markers = tuple(sorted(seen.get(name, SeenColumn(())).markers))
        described.append(ColumnDescription(name, name_type(column.type), n_missing, markers))
    return TableDescription(columns.num_rows, tuple(described))
