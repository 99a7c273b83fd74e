"""Tables in memory: arrays of features and target, with a description of their columns."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certree.interface.formatting import format_quantity
from certree.tables.arrow import pa, pc
from certree.tables.column_choices import describe_exceptions
from certree.tables.column_names import (
    expect_distinct,
    expect_features,
    expect_target,
    join_names,
)
from certree.tables.column_types import (
    InferredColumn,
    InferredColumns,
    extract_feature,
    extract_values,
    is_text_type,
    name_type,
)
from certree.tables.csv_dialects import EIGHT_BITS
from certree.tables.csv_text import MISSING_MARKERS
from certree.tables.table_source import TableFormat

# Fewer rows do not show that a column identifies them: one that increases or has such a name, and any
# other column of integers.
_FEW_ROWS, _FEW_ROWS_OF_OTHERS = 20, 100
# Rows whose values are compared first, as most columns repeat values soon.
_FIRST_ROWS = 1000
# Names of columns that identify rows, such as id, user_id, userId or key.
_IDENTIFIER = re.compile(r"(?:^|[\W_])(?i:id|key|uid|uuid|no|nr|index)$|[a-z]I[Dd]$")
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
    notes : tuple of str
        How the text was read, such as "thousands separators removed".
    exceptions : str
        Number and examples of values that do not have the type and became missing; "" if all do.
    """

    name: str
    type: str
    n_missing: int
    markers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    exceptions: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the description is the type alone: no missing values and no notes."""
        return not self.n_missing and not self.notes and self.type != "empty"

    def __str__(self) -> str:
        words = ", ".join((self.type, *self.notes))
        if not self.n_missing:
            return f"{self.name}: {words}"
        marked = [marker if marker.strip() else "empty" for marker in self.markers]
        listed = join_names([*dict.fromkeys(marked), *filter(None, [self.exceptions])])
        line = f"{self.name}: {words}, {self.n_missing:,} missing" + (
            f" ({listed})" if listed else ""
        )
        read_words = [one for one in self.markers if one.strip() and one in MISSING_MARKERS]
        if self.type != "category" or not read_words:
            return line
        option = f"keep_text= (--keep-text {self.name!r})"
        return f"{line}; {option} keeps {join_names(read_words)} as text"


@dataclass(frozen=True, slots=True)
class TableDescription:
    """What was read from files: number of rows, and type and missing values of each column.

    `str` gives a line for each of the first 30 columns.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    columns : tuple of ColumnDescription
        The columns, in the order of the file.
    files : tuple of str
        Lines on the separator, the encoding and the lines above the header of CSV files, if these
        are unusual.
    left_out : tuple of str
        Lines on columns that were not read.
    """

    n_rows: int
    columns: tuple[ColumnDescription, ...]
    files: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self._summarize_size(), *self.files]
        lines += [str(column) for column in self.columns[:_LISTED]]
        if len(self.columns) > _LISTED:
            lines.append(f"and {len(self.columns) - _LISTED:,} more")
        return "\n".join([*lines, *self.left_out])

    def _summarize_size(self) -> str:
        """Return the first line of the description, such as "4 rows, 3 columns"."""
        rows = format_quantity(self.n_rows, "row")
        return f"{rows}, {format_quantity(len(self.columns), 'column')}"

    def summarize(self) -> list[str]:
        """Return the description as lines of text, in which columns of one type share a line.

        Only columns without missing values and notes share a line. The first line has the numbers
        of rows and columns; the last lines are on columns that were not read.
        """
        by_type: dict[str, list[str]] = {}
        for column in self.columns:
            if column.is_plain:
                by_type.setdefault(column.type, []).append(column.name)
        lines = [self._summarize_size(), *self.files]
        lines += [str(column) for column in self.columns if not column.is_plain]
        lines += [f"{join_names(names)}: {kind}" for kind, names in by_type.items()]
        return [*lines, *self.left_out]


@dataclass(frozen=True, slots=True)
class InferredSchema:
    """The columns found in files, and the types as which they are read.

    Parameters
    ----------
    columns : dict of str to InferredColumn
        Types, formats and missing-value markers of the columns, by name.
    schema : pyarrow.Schema
        Names and types of the columns as they are read.
    n_rows : list of int
        Number of rows of each file.
    where : str
        Names of the first and the last file, for messages.
    table_format : TableFormat or None
        The format of CSV files that a model stores; None: it is the usual one.
    left_out : dict of str to str
        Reasons why columns are not read, by name.
    files : tuple of str
        Lines that describe the dialects of CSV files, if these are unusual.
    """

    columns: InferredColumns
    schema: Any
    n_rows: list[int]
    where: str
    table_format: TableFormat | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as arrays: features, and a target if there is one.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features: float64 if none holds strings or dates; else objects, which are str or None in
        columns of strings, float in columns of numbers, and those of `datetime`, or None, in columns
        of dates and time spans.
    y : ndarray of shape (n,), or None
        Target: numbers, or strings of a NumPy str dtype; None without a target.
    feature_names : list of p str
        Names of the features, in the order of the columns of X.
    description : TableDescription or None
        Types and missing values of the columns; None for tables that `read_table` has not read.
    categorical : list of int, or None
        Indices (columns of X) of the categorical features: strings, and dictionaries of strings or
        of numbers. None: the columns that have a string in any row.
    table_format : TableFormat or None
        How the text of CSV files was read, if it was unusual. Models that are fitted to `to_arrow`
        store it, and read later files by it.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None
    feature_names: list[str]
    description: TableDescription | None = None
    categorical: list[int] | None = None
    table_format: TableFormat | None = None
    # What estimators say that get a table in place of its rows.
    _fit_remedy: ClassVar[str] = "pass table.to_arrow(), and table.y as y in a fit"

    def __post_init__(self) -> None:
        if self.categorical is None:
            is_object = self.X.dtype == object
            has_strings = [
                is_object and any(isinstance(value, str) for value in x) for x in self.X.T
            ]
            object.__setattr__(self, "categorical", np.flatnonzero(has_strings).tolist())

    def to_arrow(self) -> "pa.Table":
        """Return the features as an Arrow table, with which estimators learn the names of features.

        Returns
        -------
        pyarrow.Table
            Columns of float64, of strings or dictionaries of float64 for categorical features, and of
            dates and time spans.
        """
        columns = dict(zip(self.feature_names, self.X.T, strict=True))
        if self.X.dtype == object:
            for name, values in columns.items():
                if any(isinstance(value, date | timedelta) for value in values):
                    columns[name] = pa.array(values.tolist())
        return attach_format(create_arrow_table(columns, self.categorical), self.table_format)


def create_arrow_table(
    features: dict[str, Any], categorical: Sequence[int] | None = None
) -> "pa.Table":
    """Convert features to an Arrow table of strings, float64 and dictionaries of float64.

    features: values of each feature, (n,), by name, in the order of the columns; values that are
    Arrow columns are not changed. categorical: indices of the features that are categories. Those
    become dictionaries if they are numbers. None: arrays whose dtype is object are categories.
    """
    columns = {}
    for j, (name, values) in enumerate(features.items()):
        if not isinstance(values, np.ndarray):
            columns[name] = values
            continue
        is_category = values.dtype == object if categorical is None else j in categorical
        if is_category and all(isinstance(value, str | None) for value in values):
            columns[name] = pa.array(values, pa.string())
            continue
        numbers = pa.array(values.astype(np.float64, copy=False), from_pandas=is_category)
        columns[name] = numbers.dictionary_encode() if is_category else numbers
    return pa.table(columns)


def split_target(
    columns: "pa.Table",
    target: str | None,
    description: TableDescription | None = None,
    table_format: TableFormat | None = None,
    *,
    where: str = "the table",
) -> Table:
    """Convert an Arrow table to arrays of features and target.

    Parameters
    ----------
    columns : pyarrow.Table
        All columns, with distinct names. String and dictionary columns are categorical features;
        integer, float, decimal and boolean ones are numeric. Dates and time spans are objects. Nulls
        become NaN in numeric columns, and None in others.
    target : str or None
        Name of the target column; None: there is none.
    description : TableDescription or None
        Types and missing values of the columns; it becomes the field `description` of the result.
    table_format : TableFormat or None
        How the text of its files was read, if it was unusual; it becomes a field of the result,
        too.
    where : str
        Name of the table in messages.

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
        y = extract_target(columns, target, where)
        columns = columns.drop_columns([target])
    expect_features(columns.column_names, ["the target"], where)
    features = [extract_feature(columns, name) for name in columns.column_names]
    kind = np.result_type(*features)  # object if any feature is
    X = np.empty((columns.num_rows, len(features)), dtype=kind)
    for j, feature in enumerate(features):
        X[:, j] = feature
    categorical = [j for j, field in enumerate(columns.schema) if is_text_type(field.type)]
    names = list(columns.column_names)
    return Table(X, y, names, description, categorical=categorical, table_format=table_format)


def extract_target(columns: "pa.Table", target: str, where: str = "the table") -> NDArray[Any]:
    """Convert the target column of a table to an array, (n,): numbers, or strings of a str dtype.

    columns: the table. target: name of the column. where: name of the table in messages. Raise a
    ValueError if there is no such column, it has nulls, or a string ends in NUL.
    """
    expect_target(columns.column_names, target, where)
    y = extract_values("the target", columns, target, where)
    return _convert_to_str_dtype(y, target) if y.dtype == object else y


def _convert_to_str_dtype(values: NDArray[Any], target: str) -> NDArray[Any]:
    """Convert strings of dtype object, (n,), to a NumPy str dtype.

    values: the strings, (n,). target: name of their column, for the message. Raise a ValueError if
    a string ends in NUL, which NumPy would drop.
    """
    if any(isinstance(value, str) and value.endswith("\0") for value in values):
        raise ValueError(
            f"the target {target!r} must not have values that end in NUL, as NumPy drops "
            "it: rename them"
        )
    return values.astype(str)


def describe_columns(
    columns: "pa.Table", inferred: InferredSchema, others: Collection[str | None] = ()
) -> TableDescription:
    """Describe the columns of a table that has been read: type, missing values and notes.

    columns: the rows. inferred: the inferred schema of their files. others: names of columns that
    are no features, and None, which is ignored; they get no note that they may identify the rows.
    """
    missing = {}
    for name, column in zip(columns.column_names, columns.columns, strict=True):
        missing[name] = column.null_count
        if pa.types.is_floating(column.type) and column.type.bit_width > 16:
            missing[name] += pc.sum(pc.is_nan(column)).as_py() or 0
    found = describe_schema(inferred, missing)
    note = "may identify the rows: if so, leave it out by drop= (--drop)"
    described = tuple(
        replace(one, notes=(note,))
        if not one.notes and one.name not in others and _is_identifier(columns, one.name)
        else one
        for one in found.columns
    )
    return replace(found, columns=described)


def _is_identifier(columns: "pa.Table", name: str) -> bool:
    """Return whether a column of integers may number or name the rows, as an id does.

    This is so if no two of at least 100 values are equal. 20 rows suffice if the values increase
    from row to row, or the name is like id. columns: the table. name: name of the column.
    """
    column, n = columns.column(name), columns.num_rows
    if not pa.types.is_integer(column.type) or column.null_count or n < _FEW_ROWS:
        return False
    values = column.to_numpy()
    if (values[1:] > values[:-1]).all():
        return True
    if n < _FEW_ROWS_OF_OTHERS and not _IDENTIFIER.search(name):
        return False
    return all(
        pc.count_distinct(some).as_py() == len(some) for some in (column[:_FIRST_ROWS], column)
    )


def describe_schema(
    inferred: InferredSchema, missing: dict[str, int] | None = None
) -> TableDescription:
    """Describe the columns of files by their inferred schema, without reading the files again.

    inferred: the schema. missing: number of missing values of each column, by name; None: the
    numbers that inference has counted in CSV files.
    """
    described = []
    for field_ in inferred.schema:
        column = inferred.columns.get(field_.name, InferredColumn((field_.type,)))
        is_read = column.kind == field_.type
        n_wrong, examples = describe_exceptions(column) if is_read else (0, "")
        kind = f"{name_type(field_.type)}s"
        exceptions = f"and {n_wrong:,} that are no {kind}: {examples}" if n_wrong else ""
        n_missing = sum(column.evidence.markers[one] for one in column.markers if column.evidence)
        if column.form is not None and is_read and column.evidence.counts is not None:
            n_missing = sum(inferred.n_rows) - column.evidence.counts.n + n_wrong
        described.append(
            ColumnDescription(
                field_.name,
                name_type(field_.type),
                n_missing if missing is None else missing[field_.name],
                tuple(sorted(column.markers)),
                column.notes if is_read else (),
                exceptions,
            )
        )
    left_out = tuple(f"{name}: {why}" for name, why in inferred.left_out.items())
    return TableDescription(sum(inferred.n_rows), tuple(described), inferred.files, left_out)


def describe_dialect(file: Any) -> list[str]:
    """Return a list with a line on separator, encoding and skipped lines of a CSV file.

    The list is empty if all of these are usual. The line is, for instance, "flats.csv: separated by
    semicolons, encoding Windows-1252". file: a `CsvFile`.
    """
    dialect, words = file.dialect, []
    signs = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
    if dialect.separator != file.separator:
        words.append(f"separated by {signs.get(dialect.separator, dialect.separator)}")
    if dialect.encoding not in ("utf-8", "utf-8-sig"):
        words.append(f"encoding {dialect.encoding.replace(EIGHT_BITS, 'Windows-1252')}")
    if dialect.n_skipped:
        words.append(f"{format_quantity(dialect.n_skipped, 'line')} above the header skipped")
    return [f"{file.name}: {', '.join(words)}"] if words else []


# -- the format of a table that a model is fitted to

_METADATA = b"certree table format"


def attach_format(columns: "pa.Table", found: TableFormat | None) -> "pa.Table":
    """Store the format of the files that a table was read from in the table's metadata.

    columns: the Arrow table. found: the unusual properties of the CSV files, such as the decimal
    mark; None: the table is returned unchanged. Return a table with the metadata.
    """
    if found is None:
        return columns
    metadata = {**(columns.schema.metadata or {}), _METADATA: json.dumps(found.to_stored())}
    return columns.replace_schema_metadata(metadata)


def read_attached_format(schema: Any) -> TableFormat | None:
    """Return the format that `attach_format` has stored in a table; None if there is none.

    A `TableFormat` has the unusual properties of the CSV files from which the table was read.
    schema: schema of the Arrow table, whose metadata is read. Schemas of other libraries have no
    format.
    """
    metadata = getattr(schema, "metadata", None)
    if not isinstance(metadata, dict) or _METADATA not in metadata:
        return None
    return TableFormat.from_stored(json.loads(metadata[_METADATA]))
