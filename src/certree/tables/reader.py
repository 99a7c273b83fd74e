"""Read tables as arrays, as a whole, or batch by batch, with the same types in all three cases."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from reprlib import repr as shortened
from typing import Any, Literal

from sklearn.pipeline import Pipeline

from certree.interface.docstrings import copy_descriptions_from
from certree.interface.parameter_aliases import suggests_arguments
from certree.interface.signatures import validate_arguments
from certree.tables.arrow import pa
from certree.tables.column_choices import choose_columns, create_table_format
from certree.tables.column_names import expect_known_columns, join_names
from certree.tables.column_types import (
    InferredColumns,
    choose_schema,
    convert_batch,
    is_date_type,
    join_columns,
    list_date_types,
)
from certree.tables.fitted_types import get_fitted_columns, list_input_columns, use_model_format
from certree.tables.formats import CsvFile, open_files
from certree.tables.pipeline_columns import InputColumn
from certree.tables.table import (
    InferredSchema,
    Table,
    TableDescription,
    describe_columns,
    describe_dialect,
    split_target,
)
from certree.tables.table_files import TableFile, name_range
from certree.tables.table_source import TableSource

# Takes the names of all columns of a file; returns the columns of a fitted model, by name. Columns that
# it leaves out have the types of the file.
Types = Callable[[list[str]], Mapping[str, InputColumn]]

# Rows of a batch where all batches are held.
_BATCH_ROWS = 2**17


def no_types(names: list[str]) -> Mapping[str, InputColumn]:  # noqa: ARG001 -- as `Types` has it
    """Return an empty dict; passed as the parameter `types`, it reads files without a fitted model.

    All columns then have the types of their files. names: not read.
    """
    return {}


@suggests_arguments
@validate_arguments
@copy_descriptions_from(TableSource)
def read_table(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | None = None,
    *,
    separator: str | None = None,
    decimal: Literal[".", ","] | None = None,
    encoding: str | None = None,
    missing: Sequence[str] | None = None,
    dates: Literal["dd/mm", "mm/dd"] | None = None,
    drop: Sequence[str] = (),
    keep_text: Sequence[str] = (),
    timezone: str | None = None,
    like: Any = None,
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
    {separator} {decimal} {encoding} {missing} {dates} {drop} {keep_text} {timezone}
    like : fitted estimator or pipeline, or None
        A model for which the table is read: columns get the types and formats of its fit, and the
        features are those of the model, in its order; `description` lists the other columns. None:
        types and formats are detected.

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
        mark, or its order of day and month; if the table lacks a feature of `like`.
    TypeError
        If `like` is no fitted estimator of certree, and no pipeline.
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
        timezone=timezone,
    )
    if like is not None and not (hasattr(like, "categories_") or isinstance(like, Pipeline)):
        raise TypeError(
            "like must be a fitted estimator of certree, which stores the types of its columns, or a "
            f"pipeline that ends in one, got {shortened(like)}"
        )
    types = no_types if like is None else partial(get_fitted_columns, like, target)
    columns, inferred = read_with_schema(
        use_model_format(given, like), types, () if target is None else [target]
    )
    names = None if like is None else list_input_columns(like)[0]
    description = describe_columns(columns, inferred, [target])
    if names is not None:
        if missing_names := [name for name in names if name not in columns.column_names]:
            raise ValueError(
                f"like must be a model whose features are columns of {inferred.where}, but there "
                f"is no column {missing_names[0]!r}: add the column, or pass another model"
            )
        selected = [*names, *([] if target is None else [target])]
        description = _leave_out(description, selected)
        columns = columns.select(selected)
    return split_target(
        columns,
        target,
        description,
        inferred.table_format,
        where=inferred.where,
    )


def _leave_out(description: TableDescription, names: Collection[str]) -> TableDescription:
    """Return the description of a table reduced to some columns, with a line on the others.

    description: description of all columns. names: names of the features of a model and of the
    target; the line says that all other columns are left out.
    """
    others = [one.name for one in description.columns if one.name not in names]
    line = f"neither features of the model nor the target, left out: {join_names(others)}"
    return replace(description, left_out=(*description.left_out, *([line] if others else [])))


def read(source: Any, types: Types = no_types, text_dates: Collection[str] = ()) -> pa.Table:
    """Read files as a whole into an Arrow table, and return the table.

    source: path, list of paths, `TableSource` or `pyarrow.dataset.Dataset`: files, or folders of
    files; "-" is CSV from standard input. types: function that takes the names of all columns, and
    returns the columns of a fitted model by name, whose types are used. text_dates: names of
    columns of which dates and times in CSV files stay text. `read_with_schema` also returns the
    schema, and lists the errors.
    """
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
        Takes the names of all columns, and returns the columns of a fitted model (`InputColumn`) by
        name. CSV columns that have type string there keep their text unchanged, also words such as
        NA that are categories of the model. In other files, integers and dictionaries of numbers
        are converted to strings if the model has strings, and dictionaries of numbers to numbers.
        All other columns have the types of their files.
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
    files: Sequence[TableFile],
    types: Types = no_types,
    text_dates: Collection[str] = (),
    columns: Sequence[str] | None = None,
) -> InferredSchema:
    """Infer types and formats of the columns of all files, in one pass over CSV files.

    The formats are set in each `CsvFile`, which is read with them afterwards.

    Parameters
    ----------
    files : sequence of TableFile
        The files.
    types : callable
        Takes the names of all columns, and returns the columns of a fitted model (`InputColumn`) by
        name, whose types are used: text of CSV columns that have type string there is kept
        unchanged, and columns of other files are converted if their types differ.
    text_dates : collection of str
        Names of columns of which dates and times in CSV files stay text.
    columns : sequence of str or None
        Names of the columns to infer; None: all. If the decimal mark or date order of a column that
        a fitted model does not read is not clear, it then stays text instead of raising an error.

    Returns
    -------
    InferredSchema
        Types and formats with which the columns are read, numbers of rows of the files, and reasons
        why columns are left out.

    Raises
    ------
    ValueError
        If a file lacks a column that another one has, or if there is no type that holds the values
        of all files; the message names column and file.
    """
    texts = [file for file in files if isinstance(file, CsvFile)]
    fitted = types(files[0].names())
    for file in texts:
        file.words = {name: column.words for name, column in fitted.items()}
    inferred = [file.infer_columns(columns) for file in files]
    found = [
        {name: one for name, one in seen.items() if columns is None or name in columns}
        for seen, _ in inferred
    ]
    if columns is None:
        expect_known_columns("keep_text", files[0].source.keep_text, found[0], files[0].name)
    wanted = {name: column.type for name, column in fitted.items()}
    wanted |= dict.fromkeys(files[0].source.keep_text, pa.string())
    needed = {*wanted, *text_dates} if fitted and columns is None else None
    seen = [one for file, one in zip(files, found, strict=True) if file.is_text]
    chosen, left_out, decimal = choose_columns(texts, seen, wanted, text_dates, needed)
    joined = _join_files(
        files, [_use_choices(*one, chosen, left_out) for one in zip(files, found, strict=True)]
    )
    # The columns chosen have the evidence of all CSV files, which must not be added again.
    joined |= {name: replace(joined[name], evidence=one.evidence) for name, one in chosen.items()}
    joined = _use_timezone(joined, files[0].source.timezone)
    schema = choose_schema(joined, wanted, text_dates)
    forms = _list_formats(chosen, schema)
    for file in texts:
        file.texts = {one.name for one in schema if pa.types.is_string(one.type)}
        file.formats, file.fitted = dict(forms), {*wanted, *file.source.stored.columns}
    if texts:
        joined = _keep_words(joined, texts[0])
    read = {one.name: joined[one.name] for one in schema}
    return InferredSchema(
        joined,
        schema,
        [n_rows for _, n_rows in inferred],
        name_range([file.name for file in files]),
        create_table_format(forms, read, texts[0], decimal) if texts else None,
        left_out,
        (*dict.fromkeys(line for file in texts for line in describe_dialect(file)),),
    )


def _use_choices(
    file: TableFile, columns: InferredColumns, chosen: InferredColumns, left_out: Collection[str]
) -> InferredColumns:
    """Replace the columns of a CSV file by the chosen ones, and leave some columns out.

    file: the file. columns: inferred columns of the file (types, formats and missing-value
    markers), by name; those of other formats than CSV stay. chosen: columns with the types and
    formats chosen from all CSV files, by name. left_out: names of columns to leave out. Return the
    columns by name.
    """
    return {
        name: chosen.get(name, column) if file.is_text else column
        for name, column in columns.items()
        if name not in left_out
    }


def _use_timezone(columns: InferredColumns, zone: str | None) -> InferredColumns:
    """Return columns whose dates are converted to a time zone; their field `notes` states the zone.

    Only columns of dates that have a time zone change. The instants stay the same. columns:
    inferred columns (types and notes) by name. zone: the time zone to use; None: types are not
    changed, and only columns of text files, whose dates are in UTC, get a note.
    """
    found = dict(columns)
    for name, column in columns.items():
        kind = column.kind
        if not pa.types.is_timestamp(kind) or kind.tz is None:
            continue
        if zone is not None:
            kinds = (pa.timestamp(kind.unit, zone),)
            found[name] = replace(column, kinds=kinds, notes=(f"local time of {zone}",))
        elif column.is_text:
            note = "in UTC: name another time zone by timezone= (--timezone)"
            found[name] = replace(column, notes=(note,))
    return found


def _list_formats(chosen: InferredColumns, schema: pa.Schema) -> dict[str, Any]:
    """Return the text formats, by name, of those columns that are read by them.

    A `TextFormat` says how text becomes numbers or dates, such as the decimal mark. Columns in
    plain form or of text are left out. chosen: inferred columns of the CSV files, by name; schema:
    types with which all files are read.
    """
    return {
        name: column.form
        for name, column in chosen.items()
        if column.form and name in schema.names and schema.field(name).type == column.kind
    }


def _keep_words(columns: InferredColumns, file: CsvFile) -> InferredColumns:
    """Return columns in which text columns list only those missing-value markers that are in force.

    Words such as NA are not if the user states other markers, or keeps the text of the column; a
    note names these words. columns: inferred columns by name, with the markers that occur. file:
    one of the CSV files, which share names of columns of text and options. Return the columns by
    name.
    """
    found = dict(columns)
    for name in file.texts:
        markers = columns[name].markers & file.list_markers(name)
        kept = [marker or "empty fields" for marker in sorted(columns[name].markers - markers)]
        if kept or name in file.kept:
            notes = (
                *columns[name].notes,
                f"{join_names(kept)} kept as text" if kept else "text kept",
            )
            found[name] = replace(columns[name], markers=markers, notes=notes)
    return found


def _join_files(files: Sequence[TableFile], found: Sequence[InferredColumns]) -> InferredColumns:
    """Join the columns of several files by name, with types that hold the values of all files.

    files: the files; found: for each file its inferred columns (types and missing-value markers),
    by name. Return one such dictionary. Raise a ValueError if a file lacks a column that another
    has, or a column has no common type.
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
                    "must have the same columns. Add it, or leave it out by drop= (--drop)"
                )
        pairs = {name: join_columns(column, more[name]) for name, column in joined.items()}
        for name, common in pairs.items():
            if common is None:
                raise ValueError(
                    f"column {name!r} of {file.name} holds {more[name].kind}, which has no common "
                    f"type without loss with {joined[name].kind} of earlier files: convert the "
                    "column in one of them, or leave it out by drop= (--drop)"
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
    keep_words: bool = False,
) -> Iterator[Batch]:
    """Read the rows of files batch by batch, with the types of a fitted model.

    A CSV file is read only once if the model has types for all columns that are read. Otherwise it
    is read once more, before its rows, for the types of the other columns.

    Parameters
    ----------
    source : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of files; "-" is CSV from standard input.
    types : callable
        Takes the names of the columns of a file, and returns the columns of a fitted model, by name,
        whose types are string, float64 or a type of dates. A CSV column of dates stays text from the
        first batch on with a text that is no date.
    n_rows : int
        Largest number of rows of a batch.
    columns : sequence of str or None
        Names of the columns to read; those that a file lacks are left out. None: all columns.
    text_columns : collection of str
        Columns that are read from CSV files as text, unchanged, if `types` has no type for them.
    keep_words : bool
        Whether words such as NA are text in these columns, and only empty fields are missing.

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
            for table, fraction in _read_file(
                file, types, n_rows, columns, text_columns, keep_words
            ):
                if last is not None:
                    yield last
                n_read = sum(sizes[:i]) + fraction * sizes[i]
                last = Batch(table, file.name, n_read / sum(sizes))
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{file.name} could not be read: {error}") from error
    assert last is not None  # every file has a batch
    yield replace(last, is_last=True)


def _read_file(
    file: TableFile,
    types: Types,
    n_rows: int,
    columns: Sequence[str] | None,
    text_columns: Collection[str],
    keep_words: bool,
) -> Iterator[tuple[pa.Table, float]]:
    """Yield the rows of a file as tables, each with the fraction of the file that has been read.

    At least one table is yielded, without rows if the file has none. file: the file. types:
    function that takes the names of all columns, and returns the columns of a fitted model by name.
    n_rows: largest number of rows of a table. columns: names of the columns to read; None: all.
    text_columns: names of columns that are read as text unless `types` has them. keep_words:
    whether words such as NA are text in these columns.
    """
    every = file.names()
    names = [name for name in every if columns is None or name in columns]
    fitted = types(every)
    wanted = {**fitted, **dict.fromkeys(file.source.keep_text, InputColumn(pa.string()))}
    if isinstance(file, CsvFile):
        texts = [name for name in text_columns if name in every and name not in wanted]
        wanted |= dict.fromkeys(texts, InputColumn(pa.string()))
        file.kept |= {*texts} if keep_words else set()
        file.words = {name: column.words for name, column in fitted.items()}
    schema = _infer_missing_types(file, names, wanted)
    varying = file.kinds if isinstance(file, CsvFile) else ()
    is_empty = True
    for batch, fraction in file.batches_with_progress(names, n_rows):
        is_empty &= not len(batch)
        fields = [batch.schema.field(one.name) if one.name in varying else one for one in schema]
        yield convert_batch(batch, pa.schema(fields), file.name), fraction
    if is_empty:
        yield schema.empty_table(), 1.0
    file.expect_unchanged()


def _infer_missing_types(
    file: TableFile, names: list[str], wanted: Mapping[str, InputColumn]
) -> pa.Schema:
    """Return the schema with which a file is read for a fitted model, and set how a CSV file is read.

    A CSV file is first read as a whole for columns without a type in `wanted`, and for columns of
    dates if the user states an order of day and month. Columns in its `kinds` may have another type
    in each batch than in the schema: numbers may be integers or booleans, and dates stay text from
    the first batch on with a text that is no date.

    file: the file. names: names of the columns to read. wanted: columns of the model by name, whose
    types are string, float64 or types of dates.
    """
    if not isinstance(file, CsvFile):
        return infer_schema([file], lambda _: wanted, columns=names).schema
    stored, known = file.source.stored.columns, dict[str, pa.DataType]()
    for name in names:
        kind = wanted[name].type if name in wanted else None
        if kind is None or pa.types.is_null(kind):
            continue
        if name in stored and not pa.types.is_string(kind):
            known[name] = stored[name].type
        elif is_date_type(kind) and file.source.dates is not None:
            continue
        else:
            known[name] = kind
        if name in stored or pa.types.is_string(kind):
            continue
        if is_date_type(kind):
            file.kinds[name] = list_date_types()
            known[name] = file.kinds[name][0]
        else:
            # Integers come first, as float64 may not represent them.
            floats = () if file.source.decimal_mark == "," else (kind,)
            file.kinds[name] = pa.int64(), *floats, pa.bool_()
    unknown = [name for name in names if name not in known]
    found = infer_schema([file], lambda _: wanted, columns=unknown).schema if unknown else ()
    types = {**known, **{one.name: one.type for one in found}}
    file.formats |= {name: form for name, form in stored.items() if types.get(name) == form.type}
    file.fitted = {*wanted, *stored}
    file.texts = {name for name, kind in types.items() if pa.types.is_string(kind)}
    return pa.schema([(name, types[name]) for name in names])
