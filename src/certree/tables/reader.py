"""Reading of tables: as arrays, as a whole, or batch by batch, all with the same types."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from certree.interface.extras import import_extra
from certree.interface.signatures import validate_arguments
from certree.tables.column_names import join_names
from certree.tables.column_types import (
    SeenColumns,
    choose_schema,
    convert_batch,
    convert_if_possible,
    is_date_type,
    join_columns,
    list_date_types,
)
from certree.tables.table import Table, describe_columns, split_target
from certree.tables.table_files import DataSet, TableFile, open_files

if TYPE_CHECKING:
    import pyarrow as pa

# Takes the names of all columns of a file; returns the types of columns in a fitted model, string,
# float64 or a type of dates, by name. Columns that it leaves out have the types of the file.
Types = Callable[[list[str]], Mapping[str, "pa.DataType"]]

# Rows of a batch where all batches are held.
_BATCH_ROWS = 2**17


def no_types(names: list[str]) -> Mapping[str, pa.DataType]:  # noqa: ARG001 -- as `Types` has it
    """Return no types, so that all columns have the types of their files."""
    return {}


@validate_arguments
def read_table(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | None = None,
    *,
    categories: Sequence[str] = (),
) -> Table:
    """Read a CSV, Parquet or Arrow file as arrays, and describe how its columns were read.

    Fits to files, `predict_files` and the command line read files by the same rules. A CSV column is
    numeric if all its values are numbers, boolean (0 and 1) if all are true or false, one of dates
    if all are dates in ISO format, else categorical. Times without a date are refused. A target of
    dates or times has their text. Empty fields and the texts NA, N/A, NaN, null and the like are
    missing values; `description` states which of them occur.

    Parameters
    ----------
    source : path or list of paths
        Files, or folders of files, with the same columns. The suffix determines the format:
        ``.csv``, ``.tsv`` (CSV with tabs), ``.csv.gz``, ``.tsv.gz``, ``.parquet``, ``.pq``,
        ``.arrow`` or ``.feather``. "-" is CSV from standard input. CSV must be text in UTF-8, or in
        UTF-16 or UTF-32 with a byte order mark.
    target : str or None
        Name of the target column; None: all columns are features.
    categories : sequence of str
        Names of columns of codes that are categories although they look like numbers, such as
        postal codes. Their text is kept unchanged.

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
        date, or integers that float64 cannot represent.
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
    string = import_extra("pyarrow", "files").string()
    files = open_files(source)
    seen, _ = look_at_files(files)
    if unknown := [name for name in categories if name not in seen]:
        raise ValueError(
            f"categories must name columns of {files[0].name}, but there is no column "
            f"{unknown[0]!r}: name some of {join_names(seen)}"
        )
    schema = choose_schema(
        seen, dict.fromkeys(categories, string), () if target is None else [target]
    )
    columns = _read_all(files, schema)
    return split_target(columns, target, describe_columns(columns, seen))


def read(source: Any, types: Types = no_types, text_dates: Collection[str] = ()) -> pa.Table:
    """Read files as a whole.

    Parameters
    ----------
    source : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of files, with the same columns; "-" is CSV from standard input.
    types : callable
        Takes the names of the columns, and returns the types of columns in a fitted model, string or
        float64, by name. CSV columns that must be string keep their text unchanged. In other files,
        integers are converted to strings, and a dictionary of numbers to numbers. All other columns
        have the types of their files.
    text_dates : collection of str
        Names of columns of which dates and times in CSV files stay text.

    Returns
    -------
    pyarrow.Table
        All rows and columns, without a stored pandas index.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file cannot be read, two columns have the same name, or files have different columns.
    ImportError
        If pyarrow is not installed.
    """
    import_extra("pyarrow", "files")
    files = open_files(source)
    seen, _ = look_at_files(files)
    return _read_all(files, choose_schema(seen, types([*seen]), text_dates))


def _read_all(files: Sequence[TableFile | DataSet], schema: pa.Schema) -> pa.Table:
    """Read all rows of files, with the types of a schema."""
    pa = import_extra("pyarrow", "files")
    tables = [
        convert_batch(batch, schema, file.name)
        for file in files
        for batch in file.batches(schema.names, _BATCH_ROWS)
    ]
    return pa.concat_tables([schema.empty_table(), *tables])


def look_at_files(files: Sequence[TableFile | DataSet]) -> tuple[SeenColumns, list[int]]:
    """Return what is known of the columns of all files, and the number of rows of each file.

    Raise ValueError if a file lacks a column that another one has, or if there is no type that holds
    the values of all files; the message names column and file.
    """
    looks = [(file, *file.look()) for file in files]
    _, seen = reduce(_join_looks, ((file, columns) for file, columns, _ in looks))
    return seen, [n_rows for _, _, n_rows in looks]


def _join_looks(
    one: tuple[TableFile | DataSet, SeenColumns], other: tuple[TableFile | DataSet, SeenColumns]
) -> tuple[TableFile | DataSet, SeenColumns]:
    """Join what is known of the columns of files and of one more file; see `look_at_files`."""
    (before, seen), (file, more) = one, other
    for has, lacks, columns, names in ((before, file, seen, more), (file, before, more, seen)):
        missing = [name for name in columns if name not in names]
        if missing:
            raise ValueError(f"{lacks.name} has no column {missing[0]!r}, which {has.name} has")
    joined = {}
    for name, column in seen.items():
        common = join_columns(column, more[name])
        if common is None:
            raise ValueError(
                f"column {name!r} of {file.name} holds {more[name].kind}, which has no common type "
                f"without loss with {column.kind} of files before it"
            )
        joined[name] = common
    return before, joined


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
    source: Any, types: Types, n_rows: int, columns: Sequence[str] | None = None
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
        string or float64, by name. A CSV column of numbers stays text from the first value on that
        is no number.
    n_rows : int
        Largest number of rows of a batch.
    columns : sequence of str or None
        Names of the columns to read; those that a file lacks are left out. None: all columns.

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
    pa = import_extra("pyarrow", "files")
    files = open_files(source)
    sizes = [max(file.n_bytes, 1) for file in files]
    last: Batch | None = None
    for i, file in enumerate(files):
        try:
            for table, fraction in _read_file(file, types, n_rows, columns):
                if last is not None:
                    yield last
                n_read = sum(sizes[:i]) + fraction * sizes[i]
                last = Batch(table, file.name, n_read / sum(sizes))
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{file.name} could not be read: {error}") from error
    assert last is not None  # every file has a batch
    yield replace(last, is_last=True)


def _read_file(
    file: TableFile | DataSet, types: Types, n_rows: int, columns: Sequence[str] | None
) -> Iterator[tuple[pa.Table, float]]:
    """Yield the rows of a file as tables, each with the fraction of the file that has been read.

    At least one table is yielded, without rows if the file has none. The parameters are those of
    `read_batches`.
    """
    every = file.names()
    names = [name for name in every if columns is None or name in columns]
    converter = _Converter(file, names, types(every))
    is_empty = True
    for batch, fraction in file.batches_with_progress(names, n_rows):
        is_empty &= not len(batch)
        yield converter.convert(batch), fraction
    if is_empty:
        yield converter.schema.empty_table(), 1.0
    file.expect_unchanged()


class _Converter:
    """Converts the batches of a file to the types of a fitted model.

    Parameters
    ----------
    file : TableFile or DataSet
        The file.
    names : list of str
        Its columns that are read.
    wanted : mapping
        Types of columns in the model, string or float64, by name.

    Attributes
    ----------
    schema : pyarrow.Schema
        Types of the columns, as long as the text of columns of numbers or dates holds nothing else.
    """

    def __init__(
        self, file: TableFile | DataSet, names: Iterable[str], wanted: Mapping[str, Any]
    ) -> None:
        pa = import_extra("pyarrow", "files")
        of = pa.types
        self._where = file.name
        # Types that all texts of a column of numbers have had so far.
        self._kinds: dict[str, tuple[Any, ...]] = {}
        known: dict[str, Any] = {}
        for name in names if file.is_text else ():
            if name in wanted and of.is_string(wanted[name]):
                known[name] = wanted[name]
            elif name in wanted and of.is_floating(wanted[name]):
                known[name] = wanted[name]
                # Integers come first, as float64 may not represent them.
                self._kinds[name] = pa.int64(), wanted[name], pa.bool_()
            elif name in wanted and is_date_type(wanted[name]):
                self._kinds[name] = list_date_types()
                known[name] = self._kinds[name][0]
        unknown = [name for name in names if name not in known]
        if unknown:
            seen = {
                name: column for name, column in file.look(unknown)[0].items() if name in unknown
            }
            chosen = choose_schema(seen, wanted)
            known |= zip(chosen.names, chosen.types, strict=True)
        self.schema = pa.schema([(name, known[name]) for name in names])

    def convert(self, batch: Any) -> pa.Table:
        """Convert a record batch of the file; columns with text that is no number or date stay text."""
        pa = import_extra("pyarrow", "files")
        fields, columns = [], []
        for field in self.schema:
            column, kind = batch.column(field.name), field.type
            if field.name in self._kinds:
                kinds = self._kinds[field.name]
                column, self._kinds[field.name] = convert_if_possible(column, kinds)
                kind = column.type
            fields.append((field.name, kind))
            columns.append(column)
        converted = pa.RecordBatch.from_arrays(columns, [name for name, _ in fields])
        return convert_batch(converted, pa.schema(fields), self._where)
