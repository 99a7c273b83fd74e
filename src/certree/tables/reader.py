"""Reading of tables: as arrays, as a whole, or batch by batch, all with the same types."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import validate_arguments
from certree.tables.arrow import pa
from certree.tables.column_choices import ColumnChoices, choose_columns, create_table_format
from certree.tables.column_names import expect_known_columns
from certree.tables.column_types import (
    InferredColumns,
    choose_schema,
    convert_batch,
    convert_if_possible,
    is_date_type,
    join_columns,
    list_date_types,
)
from certree.tables.csv_text import CsvReading, Exceptions
from certree.tables.table import (
    InferredSchema,
    Table,
    describe_columns,
    describe_dialect,
    split_target,
)
from certree.tables.table_files import DataSet, TableFile, name_range, open_files
from certree.tables.table_source import TableSource
from certree.tables.text_formats import TextFormat, convert_texts

# Takes the names of all columns of a file; returns the types of columns in a fitted model, string,
# float64 or a type of dates, by name. Columns that it leaves out have the types of the file.
Types = Callable[[list[str]], Mapping[str, "pa.DataType"]]

# Rows of a batch where all batches are held.
_BATCH_ROWS = 2**17


def no_types(names: list[str]) -> Mapping[str, pa.DataType]:  # noqa: ARG001 -- as `Types` has it
    """Return an empty dict: a value of the parameter `types` of `read` for reading without a model.

    All columns then have the types of their files. names: not read.
    """
    return {}


@validate_arguments
@copy_descriptions_from(TableSource)
def read_table(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | None = None,
    *,
    separator: str | None = None,
    decimal: Literal[".", ","] | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
    dates: Literal["dd/mm", "mm/dd"] | None = None,
    drop: Sequence[str] = (),
    keep_text: Sequence[str] = (),
) -> Table:
    """Read a CSV, Parquet or Arrow file as arrays, and describe how its columns were read.

    Fits to files, `predict_files` and the command line read files by the same rules. A CSV column is
    numeric if at least 99 % of its values are numbers, boolean (0 and 1) if all are true or false,
    else categorical. Separators of values, encodings, decimal commas, separators of thousands,
    currency and percent signs, and orders of day and month are detected. `description` states what
    was found, which texts became missing values, and which columns were left out. Times without a
    date are refused. A target of dates or times has their text.

    Parameters
    ----------
    {source}
    target : str or None
        Name of the target column; None: all columns are features.
    {separator} {decimal} {encoding} {missing} {dates} {drop} {keep_text}

    Returns
    -------
    Table
        Features `X`, target `y`, `feature_names` and `description`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file cannot be read, two columns have the same name, or files have different columns;
        if there is no such target, or it has missing values; if a feature holds times without a
        date, or integers that float64 cannot represent; if no value of a column shows its decimal
        mark, or its order of day and month.
    ImportError
        If pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from certree import PACBayesTreeClassifier, read_table
    >>> file = Path(tempfile.mkdtemp()) / "flats.csv"
    >>> lines = "area,town,let", "71,Bonn,yes", "NA,Aachen,no", "55,Bonn,yes", "38,,no"
    >>> with file.open("w") as stream:
    ...     print(*lines, sep=chr(10), file=stream)
    >>> table = read_table(file, "let")
    >>> print(table.description)
    4 rows, 3 columns
    area: number, 1 missing (NA)
    town: category, 1 missing (empty)
    let: category
    >>> model = PACBayesTreeClassifier(random_state=0).fit(table.to_arrow(), table.y)
    >>> model.feature_names_in_.tolist()
    ['area', 'town']
    """
    given = TableSource(
        source,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        missing=missing,
        dates=dates,
        drop=drop,
        keep_text=keep_text,
    )
    columns, inferred = read_with_schema(given, text_dates=() if target is None else [target])
    return split_target(
        columns,
        target,
        describe_columns(columns, inferred),
        inferred.table_format,
        where=inferred.where,
    )


def read(source: Any, types: Types = no_types, text_dates: Collection[str] = ()) -> pa.Table:
    """Read files as a whole into an Arrow table, the first result of `read_with_schema`."""
    return read_with_schema(source, types, text_dates)[0]


def read_with_schema(
    source: Any, types: Types = no_types, text_dates: Collection[str] = ()
) -> tuple[pa.Table, InferredSchema]:
    """Read files as a whole, and return the rows with the inferred schema.

    Parameters
    ----------
    source : path, list of paths, TableSource or pyarrow.dataset.Dataset
        Files, or folders of files, with the same columns; "-" is CSV from standard input.
    types : callable
        Takes the names of the columns, and returns the types of columns in a fitted model, string or
        float64, by name. CSV columns that must be string keep their text unchanged. In other files,
        integers and dictionaries of numbers are converted to strings, and dictionaries of numbers to
        numbers. All other columns have the types of their files.
    text_dates : collection of str
        Names of columns of which dates and times in CSV files stay text.

    Returns
    -------
    table : pyarrow.Table
        All rows and columns, without a stored pandas index.
    inferred : InferredSchema
        Types and formats with which the columns were read.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file cannot be read, two columns have the same name, or files have different columns.
    ImportError
        If pyarrow is not installed.
    """
    files = open_files(source)
    inferred = infer_schema(files, types, text_dates)
    tables = [
        convert_batch(batch, inferred.schema, file.name)
        for file in files
        for batch in file.batches(inferred.schema.names, _BATCH_ROWS)
    ]
    return pa.concat_tables([inferred.schema.empty_table(), *tables]), inferred


def infer_schema(
    files: Sequence[TableFile | DataSet],
    types: Types = no_types,
    text_dates: Collection[str] = (),
) -> InferredSchema:
    """Infer types and formats of the columns of all files, in one pass over CSV files.

    The formats are set in `file.reading` of each CSV file, which is read with them afterwards. The
    parameters are those of `read_with_schema`.
    Raise ValueError if a file lacks a column that another one has, or if there is no type that holds
    the values of all files; the message names column and file.
    """
    inferred = [file.infer_columns() for file in files]
    found, n_rows = [columns for columns, _ in inferred], [n for _, n in inferred]
    keep_text = files[0].reading.options.keep_text
    expect_known_columns("keep_text", keep_text, found[0], files[0].name)
    fitted = types([*found[0]])
    wanted = {**fitted, **_list_kept_texts(files)}
    # Columns that a fitted model does not read need not be decided.
    needed = {*wanted, *text_dates} if fitted else None
    texts: Any = [(file, seen) for file, seen in zip(files, found, strict=True) if file.is_text]
    choices = choose_columns(texts, wanted, text_dates, needed) if texts else ColumnChoices()
    chosen = [_use_choices(*pair, choices) for pair in zip(files, found, strict=True)]
    columns = _join_files(files, chosen)
    schema = choose_schema(columns, wanted, text_dates)
    used = _select_used_formats(choices, schema)
    for file, _ in texts:
        _set_formats(file.reading, used, wanted)
    first = texts[0][0] if texts else None
    stored = create_table_format(used, first.reading, first.separator) if first else None
    dialects = dict.fromkeys(line for file, _ in texts for line in describe_dialect(file))
    where = name_range([file.name for file in files])
    return InferredSchema(columns, schema, n_rows, where, stored, choices.left_out, tuple(dialects))


def _use_choices(
    file: TableFile | DataSet, columns: InferredColumns, choices: ColumnChoices
) -> InferredColumns:
    """Return the columns of a file without those left out, and those of CSV files as chosen."""
    chosen = choices.columns if file.is_text else {}
    return {
        name: chosen.get(name, column)
        for name, column in columns.items()
        if name not in choices.left_out
    }


def _list_kept_texts(files: Sequence[TableFile | DataSet]) -> dict[str, pa.DataType]:
    """Return string as the type of the columns whose text an option keeps, by name."""
    string = pa.string()
    return dict.fromkeys(files[0].reading.options.keep_text, string)


def _select_used_formats(choices: ColumnChoices, schema: pa.Schema) -> ColumnChoices:
    """Return choices with the formats of those columns only that are read by them."""
    columns = {
        name: column if schema.field(name).type == column.kind else replace(column, form=None)
        for name, column in choices.columns.items()
        if name in schema.names
    }
    return replace(choices, columns=columns)


def _set_formats(reading: CsvReading, used: ColumnChoices, wanted: Mapping[str, Any]) -> None:
    """Set the formats by which columns of a CSV file become numbers or dates.

    used: choices whose formats are read, as `_select_used_formats` returns them; wanted: types of
    columns in a fitted model.
    """
    reading.formats = {
        name: column.form for name, column in used.columns.items() if column.form is not None
    }
    reading.fitted = {*wanted, *reading.stored_columns}


def _join_files(
    files: Sequence[TableFile | DataSet], found: Sequence[InferredColumns]
) -> InferredColumns:
    """Join the columns of files by name; `found` holds the columns of each file.

    Raise ValueError if a file lacks a column that another has, or a column has no common type.
    """
    first, joined = files[0], found[0]
    for file, more in zip(files[1:], found[1:], strict=True):
        for has, lacks, columns, names in (
            (first, file, joined, more),
            (file, first, more, joined),
        ):
            if missing := [name for name in columns if name not in names]:
                raise ValueError(
                    f"{lacks.name} has no column {missing[0]!r}, which {has.name} has: all files "
                    "must have the same columns"
                )
        pairs = {name: join_columns(column, more[name]) for name, column in joined.items()}
        for name, common in pairs.items():
            if common is None:
                raise ValueError(
                    f"column {name!r} of {file.name} holds {more[name].kind}, which has no common "
                    f"type without loss with {joined[name].kind} of files before it"
                )
        joined = {name: common for name, common in pairs.items() if common is not None}
    return joined


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive rows of one file, as `read_batches` yields them.

    Parameters
    ----------
    table : pyarrow.Table
        The rows; possibly none in the last batch or in the batch of an empty file.
    where : str
        Path of the file, or "standard input", for messages.
    fraction_read : float
        Fraction of the bytes of all files that has been read after this batch, 0 to 1.
    is_last : bool
        Whether this is the last batch of all files.
    """

    table: pa.Table
    where: str
    fraction_read: float
    is_last: bool = False


def read_batches(
    source: Any,
    types: Types,
    n_rows: int,
    columns: Sequence[str] | None = None,
    text_columns: Collection[str] = (),
) -> Iterator[Batch]:
    """Read the rows of files batch by batch, with the types of a fitted model.

    A CSV file is read only once if the model has types for all columns that are read. Otherwise it
    is read once more, before its rows, for the types of the other columns.

    Parameters
    ----------
    source : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of files; "-" is CSV from standard input.
    types : callable
        Takes the names of the columns of a file, and returns the types of columns in a fitted model,
        string, float64 or a type of dates, by name. A CSV column of dates stays text from the first
        batch on with a text that is no date.
    n_rows : int
        Largest number of rows of a batch.
    columns : sequence of str or None
        Names of the columns to read; those that a file lacks are left out. None: all columns.
    text_columns : collection of str
        Columns that are read from CSV files as text, unchanged, if `types` has no type for them.

    Yields
    ------
    Batch
        In the order of the files and their rows; every file has at least one batch, which may be
        empty. Only the last batch has `is_last`.

    Raises
    ------
    OSError, ValueError
        If a file does not exist, cannot be read in the format of its suffix, has two columns of the
        same name, or changes while it is read.
    """
    files = open_files(source)
    sizes = [max(file.n_bytes, 1) for file in files]
    last: Batch | None = None
    for i, file in enumerate(files):
        try:
            for table, fraction in _read_file(file, types, n_rows, columns, text_columns):
                if last is not None:
                    yield last
                n_read = sum(sizes[:i]) + fraction * sizes[i]
                last = Batch(table, file.name, n_read / sum(sizes))
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{file.name} could not be read: {error}") from error
    assert last is not None  # every file has a batch
    yield replace(last, is_last=True)


def _read_file(
    file: TableFile | DataSet,
    types: Types,
    n_rows: int,
    columns: Sequence[str] | None,
    text_columns: Collection[str],
) -> Iterator[tuple[pa.Table, float]]:
    """Yield the rows of a file as tables, each with the fraction of the file that has been read.

    At least one table is yielded, without rows if the file has none. The parameters are those of
    `read_batches`.
    """
    every = file.names()
    names = [name for name in every if columns is None or name in columns]
    wanted = types(every)
    if file.is_text:
        string = pa.string()
        wanted = {**{name: string for name in text_columns if name in every}, **wanted}
    converter = _Converter(file, names, wanted)
    is_empty = True
    for batch, fraction in file.batches_with_progress(names, n_rows):
        is_empty &= not len(batch)
        yield converter.convert(batch), fraction
    if is_empty:
        yield converter.schema.empty_table(), 1.0
    file.expect_unchanged()


class _Converter:
    """Converts the record batches of one file, in their order, to the types of a fitted model.

    The constructor reads a CSV file as a whole if `wanted` lacks one of its columns.

    Parameters
    ----------
    file : TableFile or DataSet
        The file.
    names : list of str
        Its columns to read.
    wanted : mapping
        Types of columns in the model, string, float64 or types of dates, by name. Columns that it
        lacks get the types of the file.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the converted columns. In a CSV file, float64 columns may become integers
        or booleans; columns of dates stay text from the first batch on with a text that is no date.
    """

    def __init__(
        self, file: TableFile | DataSet, names: Iterable[str], wanted: Mapping[str, Any]
    ) -> None:
        names = [*names]
        self._where, self._reading = file.name, file.reading
        wanted = {**wanted, **_list_kept_texts([file])}
        # By column of numbers or dates: the types to which all its texts so far could be converted.
        self._kinds: dict[str, tuple[Any, ...]] = {}
        self._dates: set[str] = set()
        # What numbers are read by that are not plain.
        self._form = TextFormat(decimal=self._reading.decimal or ".")
        is_number = {name: name in wanted and pa.types.is_floating(wanted[name]) for name in names}
        stored = self._reading.stored_columns
        known: dict[str, Any] = {}
        for name in names if file.is_text else ():
            is_date = name in wanted and is_date_type(wanted[name])
            if (name in wanted and pa.types.is_string(wanted[name])) or (
                name in stored and is_number[name]
            ):
                known[name] = wanted[name]
            elif name in stored and is_date:
                known[name] = stored[name].type
            elif is_number[name]:
                known[name] = wanted[name]
                # Integers come first, as float64 may not represent them.
                floats = () if self._form.decimal == "," else (wanted[name],)
                self._kinds[name] = pa.int64(), *floats, pa.bool_()
            elif is_date:
                self._dates.add(name)
                self._kinds[name] = list_date_types()
                known[name] = self._kinds[name][0]
        self._known_formats = {name: stored[name] for name in stored if name in known}
        unknown = [name for name in names if name not in known]
        chosen = self._choose(file, unknown, wanted) if unknown else {}
        self.schema = pa.schema([(name, {**known, **chosen}[name]) for name in names])
        if file.is_text:
            self._reading.formats = {
                name: form
                for name, form in {**self._reading.formats, **self._known_formats}.items()
                if name in names and self.schema.field(name).type == form.type
            }
            self._reading.fitted = {*wanted, *stored}

    def _choose(
        self, file: TableFile | DataSet, unknown: list[str], wanted: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the types of columns that the model does not have, which are found in the file."""
        seen = {
            name: one for name, one in file.infer_columns(unknown)[0].items() if name in unknown
        }
        choices = ColumnChoices()
        if file.is_text:
            text_file: Any = file
            choices = choose_columns([(text_file, seen)], wanted, ())
            seen = {name: choices.columns.get(name, one) for name, one in seen.items()}
        schema = choose_schema(seen, wanted)
        if file.is_text:
            _set_formats(file.reading, _select_used_formats(choices, schema), wanted)
        return dict(zip(schema.names, schema.types, strict=True))

    def convert(self, batch: Any) -> pa.Table:
        """Convert a record batch of the file.

        Texts that are no numbers become null; columns with text that is no date stay text.
        """
        fields, columns = [], []
        for field in self.schema:
            column, kind = batch.column(field.name), field.type
            if field.name in self._kinds:
                column = self._convert_numbers(field.name, column)
                kind = column.type
            fields.append((field.name, kind))
            columns.append(column)
        converted = pa.RecordBatch.from_arrays(columns, [name for name, _ in fields])
        return convert_batch(converted, pa.schema(fields), self._where)

    def _convert_numbers(self, name: str, texts: Any) -> Any:
        """Convert texts of a column of numbers or dates, and count those that are no numbers."""
        column, kinds = convert_if_possible(texts, self._kinds[name])
        exceptions = texts.slice(0, 0)
        if kinds:
            self._kinds[name] = kinds
        elif name not in self._dates:  # Text in a column of dates is refused as a whole.
            column, exceptions = convert_texts(texts, self._form)
        n = len(column) - column.null_count + len(exceptions)
        self._reading.exceptions.setdefault(name, Exceptions()).add(n, exceptions)
        return column
