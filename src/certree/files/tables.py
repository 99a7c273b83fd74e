"""Data sets by name, and reading and writing of tables in CSV, Parquet and Arrow files."""

import codecs
import gzip
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from certree.files.output_paths import expect_writable
from certree.interface.atomic_write import write_atomically
from certree.interface.extras import import_extra
from certree.parts.table_files import DataSet, file_of, files_of

if TYPE_CHECKING:
    import pyarrow as pa

DATA_VARIABLE = "CERTREE_DATA"
# The path that stands for standard input or output.
STANDARD_STREAM = "-"

# Takes the schema that a reader would choose; returns the types of the columns that must have
# another type, by name.
Types = Callable[["pa.Schema"], Mapping[str, "pa.DataType"]]

# Bytes of text that are read at a time; suffixes of files that store the types of their columns.
_HEAD, _BINARY = 2**22, (".parquet", ".pq", ".arrow", ".feather")
# Most column names that a message lists.
_LISTED = 12
# Byte order marks and their encodings. UTF-32 comes first, as its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as arrays: features, and a target if there is one.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features: float64 if all are numeric; else objects, which are str or None in categorical
        features, and float in numeric ones.
    y : ndarray of shape (n,), or None
        Target: numbers, or strings of a NumPy str dtype; None without a target.
    feature_names : list of p str
        Names of the features, in the order of the columns of X.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None
    feature_names: list[str]

    @property
    def categorical(self) -> list[int]:
        """Indices (columns of X) of the features that have a string in any row."""
        if self.X.dtype != object:
            return []
        return [j for j, x in enumerate(self.X.T) if any(isinstance(value, str) for value in x)]


# The UCI tables of the paper that OpenML has, by OpenML's data id. Its wine lacks the colour.
OPENML_IDS = {"spam": 44, "eeg": 1471, "wine": 287, "digit": 28, "letter": 6}


def _create_numeric_table(X: Any, y: Any, names: Any) -> Table:
    """Create a `Table` of numeric features X, (n, p), a target y, (n,), and feature names, (p,)."""
    return Table(np.asarray(X, dtype=np.float64), np.asarray(y), list(map(str, names)))


def _load_bundled(loader: str) -> Table:
    """Load a data set that is installed with scikit-learn, without a download.

    loader: name of a function in `sklearn.datasets`, such as "load_iris". Return features and
    target.
    """
    from sklearn import datasets

    bunch = getattr(datasets, loader)()
    return _create_numeric_table(bunch.data, bunch.target, bunch.feature_names)


BUNDLED: dict[str, Callable[[], Table]] = {
    "iris": lambda: _load_bundled("load_iris"),
    "cultivars": lambda: _load_bundled("load_wine"),
    "cancer": lambda: _load_bundled("load_breast_cancer"),
    "digits": lambda: _load_bundled("load_digits"),
}


def load(name: str, directory: str | os.PathLike[str] | None = None) -> Table:
    """Load a data set by its name.

    It is searched in this order: the file ``<directory>/<name>.parquet``, whose last column is the
    target; the data sets that scikit-learn contains ("iris", "cultivars", "cancer", "digits"); a
    download from OpenML ("spam", "eeg", "wine", "digit", "letter").

    Parameters
    ----------
    name : str
        Name of the data set.
    directory : path or None
        Directory of Parquet files. None: the value of the environment variable CERTREE_DATA; if it
        is not set, no directory is searched.

    Returns
    -------
    Table
        Features and target of all rows.

    Raises
    ------
    FileNotFoundError
        If the data set is in none of these places, or the download fails.
    ImportError
        If it is a Parquet file and pyarrow is not installed.
    """
    directory = os.environ.get(DATA_VARIABLE) if directory is None else directory
    file = None if directory is None else Path(directory) / f"{name}.parquet"
    if file is not None and file.is_file():
        columns = read(file)
        return split_target(columns, columns.column_names[-1])
    if name in BUNDLED:
        return BUNDLED[name]()
    reason = (
        f"there is no file {file}"
        if file
        else f"no folder of Parquet files is set (option --data or variable {DATA_VARIABLE})"
    )
    if name in OPENML_IDS:
        return _download(name, reason)
    available = ", ".join(sorted({*BUNDLED, *OPENML_IDS}))
    raise FileNotFoundError(
        f"data set {name!r} was not found: {reason}. Data sets that need no file are {available}"
    )


def _download(name: str, reason: str) -> Table:
    """Download a data set from OpenML, and return its features and target.

    name: a key of `OPENML_IDS`; reason: text of the error message that says why the data set was
    not read from a file, such as "there is no file spam.parquet". Raise FileNotFoundError if the
    download fails.
    """
    from sklearn.datasets import fetch_openml

    number = OPENML_IDS[name]
    try:
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
    except (OSError, ValueError, HTTPException) as error:
        raise FileNotFoundError(
            f"data set {name!r} was not found: {reason}, and data set {number} could not be "
            f"downloaded from OpenML ({error}). Check the connection, or provide {name}.parquet"
        ) from error
    return _create_numeric_table(bunch.data, bunch.target, bunch.feature_names)


def read(path: str | os.PathLike[str], types: Types = lambda _: {}) -> "pa.Table":
    """Read a whole CSV, Parquet or Arrow (Feather) file, or CSV from standard input.

    Parameters
    ----------
    path : path
        The file. Its suffix determines the format: ``.csv``, ``.tsv`` (CSV with tabs), ``.csv.gz``,
        ``.tsv.gz``, ``.parquet``, ``.pq``, ``.arrow`` or ``.feather``. ``-`` is CSV from standard
        input. CSV must be text in UTF-8, or in UTF-16 or UTF-32 with a byte order mark.
    types : callable
        Takes the schema that the reader would choose. Returns the types of columns that must have
        another type, by name: string or float64. A CSV column that must be string keeps its text
        unchanged. In other files, integers are converted to strings, and a dictionary of numbers to
        numbers. All other columns keep their type.

    Returns
    -------
    pyarrow.Table
        All rows and columns, without a stored pandas index.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix is unknown, the file cannot be read in the format of its suffix, or two
        columns have the same name.
    ImportError
        If pyarrow is not installed.
    """
    pa = import_extra("pyarrow", "files")
    file = Path(path)
    suffix = ".csv"
    if str(path) != STANDARD_STREAM:
        if not file.is_file():
            raise FileNotFoundError(f"no such file: {file}")
        suffix = _find_suffix(file, _READERS, _READ)
    try:
        return _READERS[suffix](file, types)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{_get_display_name(file)} could not be read as {suffix[1:]}: {error}"
        ) from error


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

    table: "pa.Table"
    where: str
    fraction_read: float
    is_last: bool = False


def read_batches(
    source: Any, types: Types, n_rows: int, columns: Sequence[str] | None = None
) -> Iterator[Batch]:
    """Read the rows of files batch by batch; each file is read only once.

    Parameters
    ----------
    source : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of files; "-" is CSV from standard input.
    types : callable
        Takes the schema that the reader would choose for a file, and returns by name the types of
        columns that must have another type: string or float64. The types of other columns of CSV
        files are inferred from the first block of text (4 MiB).
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
    every = [_ArrowDatasetReader(source)] if _is_arrow_dataset(source) else _create_readers(source)
    sizes = [max(one.n_bytes, 1) for one in every]
    last: Batch | None = None
    for i, one in enumerate(every):
        try:
            for table, share in one.read_batches(types, n_rows, columns):
                if last is not None:
                    yield last
                done = (sum(sizes[:i]) + share * sizes[i]) / sum(sizes)
                last = Batch(table, one.name, done)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{one.name} could not be read: {error}") from error
    assert last is not None  # every file has a batch
    yield replace(last, is_last=True)


def get_stem(path: str | os.PathLike[str]) -> str:
    """Return the name of a table's file without folder and suffix: "b" for the path "a/b.csv.gz".

    Raise ValueError if `read` does not support the suffix.
    """
    file = Path(path)
    return file.name[: -len(_find_suffix(file, _READERS, _READ))]


def _is_arrow_dataset(source: Any) -> bool:
    """Return whether a source is a `pyarrow.dataset.Dataset`, not a path or a list of paths."""
    return not isinstance(source, str | os.PathLike | list | tuple)


def _create_readers(source: Any) -> "list[_ArrowFileReader | _CsvFileReader]":
    """Return a reader for each file of a source, in the order in which they are read.

    source: path of a file or folder, a list of these, or "-" for standard input. The method
    `read_batches` of a reader yields tables of consecutive rows.
    """
    if str(source) == STANDARD_STREAM:
        return [_CsvFileReader(Path(STANDARD_STREAM))]
    files = files_of(source)
    return [
        (_ArrowFileReader if one.name.lower().endswith(_BINARY) else _CsvFileReader)(one)
        for one in files
    ]


class _ArrowFileReader:
    """Reads a Parquet or Arrow file batch by batch.

    Parameters
    ----------
    path : Path
        The file, which must exist.

    Attributes
    ----------
    name : str
        The path, for messages.
    n_bytes : int
        Size of the file.
    """

    def __init__(self, path: Path) -> None:
        self._file: Any = file_of(path)
        self.name, self.n_bytes = str(path), path.stat().st_size

    def read_batches(
        self, types: Types, n_rows: int, columns: Sequence[str] | None
    ) -> "Iterator[tuple[pa.Table, float]]":
        """Yield (table, fraction of the file that has been read): consecutive rows of the file.

        types: takes the schema that the reader would choose, and returns by name the types of
        columns that must have another type, string or float64; n_rows: largest number of rows of a
        table; columns: names of the columns to read, None for all. At least one table is yielded,
        without rows if the file has none. Raise ValueError if the file has changed while it was
        read.
        """
        pa = import_extra("pyarrow", "files")
        schema, n_all = self._file.look()
        names = [one for one in schema.names if columns is None or one in columns]
        schema = pa.schema([schema.field(one) for one in names])
        n = 0
        if n_all == 0:
            yield _convert_columns(schema.empty_table(), types), 1.0
        for batch in self._file.batches(names, n_rows):
            n += len(batch)
            table = pa.Table.from_batches([batch]).select(names).replace_schema_metadata()
            yield _convert_columns(table, types), n / n_all
        self._file.expect_unchanged()


class _ArrowDatasetReader(_ArrowFileReader):
    """Reads an Arrow data set batch by batch, as if it were a single file.

    Its `n_bytes`, which only measures progress, is 1, as the size of a data set is unknown.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The data set.
    """

    def __init__(self, dataset: Any) -> None:
        self._file = DataSet(dataset)
        self.name, self.n_bytes = self._file.name, 1


class _CsvFileReader:
    """Reads a CSV file, or CSV from standard input, batch by batch.

    Parameters
    ----------
    path : Path
        The file, with tabs if its suffix is ``.tsv``, possibly compressed by gzip; "-" is standard
        input.

    Attributes
    ----------
    name : str
        The path, or "standard input", for messages.
    n_bytes : int
        Size of the file; 1 for standard input.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, _get_display_name(path)
        self._is_stream = str(path) == STANDARD_STREAM
        self._file = None if self._is_stream else file_of(path)
        self.n_bytes = 1 if self._is_stream else path.stat().st_size
        self._delimiter = "\t" if ".tsv" in path.name.lower() else ","

    def read_batches(
        self, types: Types, n_rows: int, columns: Sequence[str] | None
    ) -> "Iterator[tuple[pa.Table, float]]":
        """Yield (table, fraction of the file that has been read): consecutive rows of the file.

        types: takes the schema that the reader would choose, and returns by name the types of
        columns that must have another type, string or float64; n_rows: largest number of rows of a
        table; columns: names of the columns to read, None for all. At least one table is yielded,
        without rows if the file has none. Raise ValueError if the file has changed while it was
        read.
        """
        content = self._read_unless_streamable()
        with self._open_csv_reader(content, {}, None) as (first, _):
            seen = first.schema
        _expect_utf8(seen.empty_table(), self.name)
        expect_distinct(seen.names)
        names = [one for one in seen.names if columns is None or one in columns]
        chosen = _choose_csv_types(seen, types(seen))
        chosen = {one: chosen[one] for one in names}
        is_empty = True
        with self._open_csv_reader(content, chosen, names) as (reader, place):
            for block in reader:
                is_empty &= not len(block)
                table = import_extra("pyarrow", "files").Table.from_batches([block]).select(names)
                for start in range(0, len(table), n_rows):
                    yield table.slice(start, n_rows), min(place() / max(self.n_bytes, 1), 1.0)
        if is_empty:
            yield import_extra("pyarrow", "files").schema(chosen.items()).empty_table(), 1.0
        if self._file is not None:
            self._file.expect_unchanged()

    def _read_unless_streamable(self) -> bytes | None:
        """Read the whole text if it cannot be read block by block, and return it in UTF-8.

        This holds for standard input, and for files in UTF-16 or UTF-32. Return None for files in
        UTF-8, which can be read block by block. Raise ValueError if the file is binary, or its
        first line has another delimiter.
        """
        if self._is_stream:
            whole = _read_text_as_utf8(self._path)
            _expect_delimiter(whole, self._delimiter, self.name)
            return whole
        with self._open_stream() as (stream, _):
            head = stream.read(_HEAD)
        content: bytes | None = None
        if any(head.startswith(mark) for mark in _MARKS):
            content = head = _read_text_as_utf8(self._path)
        _expect_no_zero_bytes(head, self.name)
        _expect_delimiter(head, self._delimiter, self.name)
        return content

    @contextmanager
    def _open_stream(self) -> "Iterator[tuple[Any, Callable[[], int]]]":
        """Open the file for the body of a with statement.

        A compressed file (.gz) is decompressed as it is read. Yield a pyarrow stream of the
        decompressed text, and a function without arguments that returns how many bytes of the file
        have been read so far.
        """
        pa = import_extra("pyarrow", "files")
        with pa.OSFile(str(self._path), "r") as raw:
            stream = raw
            if self._path.name.lower().endswith(".gz"):
                stream = pa.CompressedInputStream(raw, "gzip")
            yield stream, raw.tell

    @contextmanager
    def _open_csv_reader(
        self, content: bytes | None, types: "Mapping[str, pa.DataType]", names: Any
    ) -> "Iterator[tuple[Any, Callable[[], int]]]":
        """Open a CSV reader for the body of a with statement.

        Yield a `pyarrow.csv.CSVStreamingReader`, and a function without arguments that returns how
        many bytes of the file have been read so far.

        content: the text in UTF-8; None: the file is opened and read block by block; types: types
        of columns by name, those of other columns are inferred; names: list of the columns to
        read, or None for all.
        """
        csv = import_extra("pyarrow.csv", "files")
        chosen = {} if names is None else {"include_columns": names}
        how = csv.ConvertOptions(strings_can_be_null=True, column_types=types, **chosen)
        with ExitStack() as open_files:
            stream: Any = _copy_to_arrow_memory(content or b"")
            place: Callable[[], int] = partial(int, 1)
            if content is None:
                stream, place = open_files.enter_context(self._open_stream())
            reader = csv.open_csv(
                stream,
                read_options=csv.ReadOptions(block_size=_HEAD),
                parse_options=csv.ParseOptions(delimiter=self._delimiter),
                convert_options=how,
            )
            yield open_files.enter_context(reader), place


def _choose_csv_types(
    seen: "pa.Schema", wanted: "Mapping[str, pa.DataType]"
) -> "dict[str, pa.DataType]":
    """Choose the type of each column of a CSV file, and return the types by column name.

    seen: schema that pyarrow inferred from the first block of text; wanted: types, string or
    float64, that the caller requests for columns by name. A column gets the requested type if it is
    string, or if it is float64 and the first block has numbers or no values in this column. All
    other columns get the inferred type.
    """
    of = import_extra("pyarrow", "files").types
    types = {}
    for field in seen:
        kind = wanted.get(field.name)
        are_numbers = of.is_integer(field.type) or of.is_floating(field.type)
        is_read = kind is not None and (
            of.is_string(kind) or (of.is_floating(kind) and (are_numbers or of.is_null(field.type)))
        )
        types[field.name] = kind if is_read else field.type
    return types


def _find_suffix(file: Path, known: Iterable[str], expected: str) -> str:
    """Return the suffix of a file's name, such as ".csv.gz", in lower case.

    file: the path; known: supported suffixes, of which the first that the name ends in is returned;
    expected: text of the error message that lists them. Raise ValueError if no supported suffix
    matches.
    """
    for suffix in known:
        if file.name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"the name of the file must end in {expected}, got {file}")


def _get_display_name(file: Path) -> str:
    """Return the name of a file for messages: its path, or "standard input" for "-"."""
    return "standard input" if str(file) == STANDARD_STREAM else str(file)


def _read_csv(file: Path, types: Types, delimiter: str = ",") -> "pa.Table":
    """Read a whole CSV file, or standard input.

    file: the path, or "-"; types: takes the schema that the reader would choose, and returns by
    name the types of columns that must have another type, string or float64; delimiter: separates
    columns. The text is parsed again if a column that must be string was inferred to be something
    else.
    """
    pa = import_extra("pyarrow", "files")
    content = _read_text_as_utf8(file)
    _expect_delimiter(content, delimiter, _get_display_name(file))
    table = _parse_csv(content, delimiter, {})
    _expect_utf8(table, _get_display_name(file))
    expect_distinct(table.column_names)
    is_string, seen = pa.types.is_string, table.schema
    wanted = {name: kind for name, kind in types(seen).items() if is_string(kind)}
    if all(is_string(seen.field(name).type) for name in wanted):
        return table
    return _parse_csv(content, delimiter, wanted)


def _parse_csv(content: bytes, delimiter: str, types: Mapping[str, "pa.DataType"]) -> "pa.Table":
    """Parse the text of a CSV file, and return its table; empty fields become null.

    content: text in UTF-8; delimiter: separates columns; types: types of columns by name, those of
    other columns are inferred.
    """
    csv = import_extra("pyarrow.csv", "files")
    return csv.read_csv(
        _copy_to_arrow_memory(content),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, column_types=types),
    )


def _copy_to_arrow_memory(content: bytes) -> Any:
    """Copy bytes (content) to memory that Arrow allocates; return a `pyarrow.BufferReader` of them.

    Arrow's threads may release the memory that they have read while the Python interpreter shuts
    down. If that memory belonged to a Python object, the process would abort.
    """
    pa = import_extra("pyarrow", "files")
    memory = pa.allocate_buffer(len(content))
    pa.FixedSizeBufferWriter(memory).write(content)
    return pa.BufferReader(memory)


def _read_text_as_utf8(file: Path) -> bytes:
    """Read a whole CSV file and return its text in UTF-8.

    file: the path, decompressed if its suffix is ".gz"; "-" is standard input. Raise ValueError if
    the text contradicts its byte order mark, or contains zero bytes.
    """
    if str(file) == STANDARD_STREAM:
        content = sys.stdin.buffer.read()
    else:
        compression = "gzip" if file.name.lower().endswith(".gz") else None
        with import_extra("pyarrow", "files").input_stream(str(file), compression) as stream:
            content = stream.read()
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
    if encoding is not None:
        try:
            content = content.decode(encoding).encode()
        except UnicodeError:
            raise ValueError(
                f"{_get_display_name(file)} has the byte order mark of {encoding.upper()}, but its "
                "bytes are no text in this encoding: save it as UTF-8"
            ) from None
    _expect_no_zero_bytes(content, _get_display_name(file))
    return content


def _expect_no_zero_bytes(content: bytes, file: str) -> None:
    """Raise ValueError if the content of a text file has zero bytes.

    content: bytes of the file; file: its name in the message.
    """
    if b"\0" in content:
        raise ValueError(
            f"{file} must be text in UTF-8, but contains zero bytes: it is a binary file, or text "
            "in UTF-16 without a byte order mark; save it as UTF-8"
        )


def _expect_delimiter(content: bytes, delimiter: str, file: str) -> None:
    """Raise ValueError if the first line lacks the delimiter, but has semicolons or tabs instead.

    content: text of the file in UTF-8; delimiter: the expected one, a comma or a tab; file: name
    of the file in the message. A first line with quotes is not checked.
    """
    first = content.partition(b"\n")[0]
    if delimiter.encode() in first or b'"' in first:
        return
    words = {"\t": "tabs", ",": "commas", ";": "semicolons"}
    for other in (";", "\t"):
        if other.encode() in first:
            raise ValueError(
                f"the columns of {file} must be separated by {words[delimiter]}, but its first "
                f"line has {words[other]} instead"
            )


def _expect_utf8(table: "pa.Table", file: str) -> None:
    """Raise ValueError if the names or values of columns of a CSV file are not in UTF-8.

    table: as pyarrow read it from the file; columns in another encoding have type binary there;
    file: name of the file in the message.
    """
    wanted = f"{file} must be text in UTF-8, but"
    try:
        names = table.column_names
    except UnicodeDecodeError:
        raise ValueError(
            f"{wanted} its column names are in another encoding, such as latin-1: save it as UTF-8"
        ) from None
    is_binary = import_extra("pyarrow", "files").types.is_binary
    kinds = zip(names, table.schema.types, strict=True)
    other = [name for name, kind in kinds if is_binary(kind)]
    if other:
        columns = join_names(map(repr, other))
        raise ValueError(
            f"{wanted} column {columns} is in another encoding, such as latin-1: save it as UTF-8"
        )


def _read_parquet(file: Path, types: Types) -> "pa.Table":
    """Read a whole Parquet file, without a stored pandas index.

    types: takes the schema that the reader would choose, and returns by name the types of columns
    that must have another type, string or float64.
    """
    return _convert_columns(import_extra("pyarrow.parquet", "files").read_table(file), types)


def _read_feather(file: Path, types: Types) -> "pa.Table":
    """Read a whole Arrow (Feather) file, without a stored pandas index.

    types: takes the schema that the reader would choose, and returns by name the types of columns
    that must have another type, string or float64.
    """
    return _convert_columns(import_extra("pyarrow.feather", "files").read_table(file), types)


def _convert_columns(table: "pa.Table", types: Types) -> "pa.Table":
    """Convert columns of a table to requested types, and drop a stored pandas index.

    table: as it was read from a Parquet or Arrow file; types: takes its schema, and returns by name
    the requested type of columns, string or float64. Dictionaries of numbers become numbers if
    float64 is requested, and integers become strings if string is requested. All other columns stay
    unchanged. Raise ValueError if two columns have the same name.
    """
    of = import_extra("pyarrow", "files").types
    table = _drop_pandas_index(table)
    expect_distinct(table.column_names)
    for name, wanted in types(table.schema).items():
        j = table.column_names.index(name)
        kind = table.schema.field(j).type
        if of.is_dictionary(kind) and of.is_floating(wanted) and not of.is_string(kind.value_type):
            table = table.set_column(j, name, table.column(j).cast(kind.value_type))
        elif of.is_integer(kind) and of.is_string(wanted):
            table = table.set_column(j, name, table.column(j).cast(wanted))
    return table


def _drop_pandas_index(table: "pa.Table") -> "pa.Table":
    """Return a table without the columns in which pandas stored the index of a data frame.

    The metadata of the table name these columns; a table that pandas did not write is unchanged.
    """
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return table.drop_columns([name for name in index if name in table.column_names])


_read_tsv = partial(_read_csv, delimiter="\t")
_READERS: dict[str, Callable[[Path, Types], "pa.Table"]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".tsv": _read_tsv,
    ".tsv.gz": _read_tsv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".arrow": _read_feather,
    ".feather": _read_feather,
}
_READ = ".csv, .csv.gz, .tsv, .parquet, .arrow or .feather"


def _write_csv(batches: "Iterator[pa.Table]", file: IO[bytes], delimiter: str = ",") -> None:
    """Write tables below each other to an open file as CSV in UTF-8, with one header line.

    batches: the tables, at least one, all of one schema; file: open for writing; delimiter:
    separates columns.
    """
    csv, first = import_extra("pyarrow.csv", "files"), next(batches)
    how = csv.WriteOptions(delimiter=delimiter)
    with csv.CSVWriter(file, first.schema, write_options=how) as writer:
        for one in chain([first], batches):
            writer.write_table(one)


def _write_csv_gz(batches: "Iterator[pa.Table]", file: BinaryIO) -> None:
    """Write tables below each other to an open file as CSV that is compressed by gzip.

    batches: the tables, at least one, all of one schema.
    """
    # Without the time, so that the same table gives the same file.
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as inner:
        _write_csv(batches, cast("IO[bytes]", inner))


def _write_parquet(batches: "Iterator[pa.Table]", file: BinaryIO) -> None:
    """Write tables below each other to an open file as Parquet.

    batches: the tables, at least one, all of one schema.
    """
    first = next(batches)
    with import_extra("pyarrow.parquet", "files").ParquetWriter(file, first.schema) as writer:
        for one in chain([first], batches):
            writer.write_table(one)


_WRITERS: dict[str, Callable[["Iterator[pa.Table]", BinaryIO], None]] = {
    ".csv": _write_csv,
    ".csv.gz": _write_csv_gz,
    ".tsv": partial(_write_csv, delimiter="\t"),
    ".parquet": _write_parquet,
}


def expect_table_place(path: str | os.PathLike[str] | None) -> None:
    """Check, before anything is computed, that a table can be written to a path.

    Parameters
    ----------
    path : path or None
        The file to write; None and ``-`` are standard output, for which nothing is checked.

    Raises
    ------
    OSError
        If the path is a directory, its parent does not exist, or write permission is missing.
    ValueError
        If the suffix is none of ``.csv``, ``.csv.gz``, ``.tsv`` and ``.parquet``.
    """
    if path is not None and str(path) != STANDARD_STREAM:
        expect_writable(path)
        _find_suffix(Path(path), _WRITERS, ".csv, .csv.gz, .tsv or .parquet")


def write(table: "pa.Table", path: str | os.PathLike[str] | None) -> None:
    """Write a table to a file, or as CSV to standard output.

    The file is written atomically: if writing fails, an existing file stays unchanged.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    path : path or None
        The file; its suffix, ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet``, determines the
        format. None and ``-``: standard output.

    Raises
    ------
    OSError
        If the path is a directory, its parent does not exist, or write permission is missing.
    ValueError
        If the suffix is none of these.
    """
    write_all([table], path)


def write_all(batches: "Iterable[pa.Table]", path: str | os.PathLike[str] | None) -> None:
    """Write tables below each other to one file, atomically, or as CSV to standard output.

    batches: the tables, at least one, all of one schema; each is written before the next is
    requested. path: the file, whose suffix determines the format as in `write`; None or "-":
    standard output. Raise OSError or ValueError if the file cannot be written.
    """
    expect_table_place(path)
    if path is None or str(path) == STANDARD_STREAM:
        sys.stdout.flush()
        _write_csv(iter(batches), sys.stdout.buffer)  # in UTF-8, as in files
        return
    put = _WRITERS[_find_suffix(Path(path), _WRITERS, "")]
    write_atomically(path, lambda file: put(iter(batches), file))


def expect_distinct(names: Iterable[str]) -> None:
    """Raise ValueError if a column name occurs more than once; names: names of all columns."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"column names must be distinct, but {join_names(twice)} occurs more than once: rename "
            "one of the columns"
        )


def join_names(names: Iterable[str]) -> str:
    """Join names with commas for a message; after 12 names write "and k more" for the others."""
    every = [*names]
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more


def split_target(columns: "pa.Table", target: str | None) -> Table:
    """Convert an Arrow table to arrays of features and target.

    Parameters
    ----------
    columns : pyarrow.Table
        All columns, with distinct names. String and dictionary columns are categorical features;
        integer, float and boolean ones are numeric. Nulls become NaN in numeric and None in
        categorical features.
    target : str or None
        Name of the target column; None: there is none.

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
    return Table(X, y, list(columns.column_names))


def extract_target(columns: "pa.Table", target: str) -> NDArray[Any]:
    """Convert the target column of a table to an array, (n,): numbers, or strings of a str dtype.

    columns: the table; target: name of the column. Raise ValueError if there is no such column, it
    has nulls, or a string ends in NUL.
    """
    if target not in columns.column_names:
        raise ValueError(
            f"the target must be a column, but there is no column {target!r}: name one of "
            f"{join_names(columns.column_names)}"
        )
    values = columns.column(target).combine_chunks()
    if values.null_count:
        raise ValueError(
            f"the target {target!r} must have no missing values, got {values.null_count}: "
            "drop these rows"
        )
    y: NDArray[Any] = np.asarray(values.to_numpy(zero_copy_only=False))
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


def extract_feature(columns: "pa.Table", name: str) -> NDArray[Any]:
    """Convert a feature column of a table to an array, (n,).

    columns: the table; name: name of the column. A string or dictionary column becomes an array of
    objects: str, or None for null. An integer, float or boolean column, or one without any value,
    becomes float64, with NaN for null. Raise ValueError for other types, and for integers that
    float64 cannot represent.
    """
    pa = import_extra("pyarrow", "files")
    kind, values = columns.schema.field(name).type, columns.column(name)
    of = pa.types
    if of.is_string(kind) or of.is_large_string(kind) or of.is_dictionary(kind):
        return np.asarray(values.cast(pa.string()).to_numpy(), dtype=object)
    # A column without any value has the type null; it becomes NaN.
    accepted = (of.is_integer, of.is_floating, of.is_boolean, of.is_null)
    if not any(accepts(kind) for accepts in accepted):
        raise ValueError(
            f"feature {name!r} must hold numbers or strings, got {kind}: convert or drop the column"
        )
    try:
        return np.asarray(values.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        raise ValueError(
            f"feature {name!r} must hold numbers that float64 can represent, got integers beyond "
            "2^53: drop the column if it is an identifier, or store it as text"
        ) from None
