"""Named data sets and files as tables of features and classes."""

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

from certree.files.places import expect_writable
from certree.interface.atomic_write import write_atomically
from certree.interface.extras import import_extra
from certree.parts.table_files import DataSet, file_of, files_of

if TYPE_CHECKING:
    import pyarrow as pa

DATA_VARIABLE = "CERTREE_DATA"
# What stands for standard input and output where a file is expected.
STANDARD_STREAM = "-"

# Types that columns must have, by name, given those that they seem to have.
Types = Callable[["pa.Schema"], Mapping[str, "pa.DataType"]]

# Bytes of text that are read at a time; files whose types are known.
_HEAD, _BINARY = 2**22, (".parquet", ".pq", ".arrow", ".feather")
# Names of columns that a message lists.
_LISTED = 12
# Longer marks first: that of UTF-32 begins like one of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Features and, if there is one, a target.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features: float64, or objects where some hold strings, which are categories.
    y : ndarray of shape (n,), or None
        Target.
    feature_names : list of str
        Names of the features.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None
    feature_names: list[str]

    @property
    def categorical(self) -> list[int]:
        """Numbers of the features that hold strings."""
        if self.X.dtype != object:
            return []
        return [j for j, x in enumerate(self.X.T) if any(isinstance(value, str) for value in x)]


# The UCI tables of the paper that OpenML has, by OpenML's data id. Its wine lacks the colour.
OPENML_IDS = {"spam": 44, "eeg": 1471, "wine": 287, "digit": 28, "letter": 6}


def _numbers(X: Any, y: Any, names: Any) -> Table:
    return Table(np.asarray(X, dtype=np.float64), np.asarray(y), list(map(str, names)))


def _bundled(loader: str) -> Table:
    from sklearn import datasets

    bunch = getattr(datasets, loader)()
    return _numbers(bunch.data, bunch.target, bunch.feature_names)


BUNDLED: dict[str, Callable[[], Table]] = {
    "iris": lambda: _bundled("load_iris"),
    "cultivars": lambda: _bundled("load_wine"),
    "cancer": lambda: _bundled("load_breast_cancer"),
    "digits": lambda: _bundled("load_digits"),
}


def load(name: str, directory: str | os.PathLike[str] | None = None) -> Table:
    """Load a data set by its name.

    Looked for in this order: ``<directory>/<name>.parquet`` with the label in its last column, the
    sets that scikit-learn brings along ("iris", "cultivars", "cancer", "digits"), OpenML.

    Parameters
    ----------
    name : str
        Name of the set.
    directory : path or None
        Where Parquet files are; None: what the environment variable CERTREE_DATA says, if set.

    Returns
    -------
    Table

    Raises
    ------
    FileNotFoundError
        If the set is in none of these places.
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
    looked = (
        f"{file} is no file"
        if file
        else f"no directory of Parquet files was given (option --data or variable {DATA_VARIABLE})"
    )
    if name in OPENML_IDS:
        return _download(name, looked)
    known = ", ".join(sorted({*BUNDLED, *OPENML_IDS}))
    raise FileNotFoundError(
        f"data set {name!r}: {looked}, and it can be had without one only for {known}"
    )


def _download(name: str, looked: str) -> Table:
    from sklearn.datasets import fetch_openml

    number = OPENML_IDS[name]
    try:
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
    except (OSError, ValueError, HTTPException) as error:
        raise FileNotFoundError(
            f"data set {name!r}: {looked}, and data set {number} could not be downloaded from "
            f"OpenML ({error})"
        ) from error
    return _numbers(bunch.data, bunch.target, bunch.feature_names)


def read(path: str | os.PathLike[str], types: Types = lambda _: {}) -> "pa.Table":
    """Read a CSV, Parquet or Arrow (Feather) file, or CSV from standard input.

    Parameters
    ----------
    path : path
        The file; its suffix says what it is. ``.tsv`` is CSV with tabs, and both may be compressed:
        ``.csv.gz``. ``-`` is standard input. CSV is text in UTF-8, or in UTF-16 or UTF-32 with a byte
        order mark.
    types : callable
        From the types that columns seem to have to those that some must have, by name, strings or
        float64. What CSV has written is a string where strings are expected, whatever it looks like. In
        other files whole numbers become strings, and categories that are numbers become numbers; all
        else keeps its type.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix is unknown or the file is not what the suffix says.
    ImportError
        If pyarrow is not installed.
    """
    pa = import_extra("pyarrow", "files")
    file = Path(path)
    suffix = ".csv"
    if str(path) != STANDARD_STREAM:
        if not file.is_file():
            raise FileNotFoundError(f"no such file: {file}")
        suffix = _suffix_of(file, _READERS, _READ)
    try:
        return _READERS[suffix](file, types)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{_named(file)} could not be read as {suffix[1:]}: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some of the rows of files.

    Parameters
    ----------
    table : pyarrow.Table
        The rows.
    where : str
        The file.
    share : float
        How much of all files has been read, in bytes.
    is_last : bool
        Whether no others follow; this one may have no rows.
    """

    table: "pa.Table"
    where: str
    share: float
    is_last: bool = False


def read_batches(
    source: Any, types: Types, n_rows: int, columns: Sequence[str] | None = None
) -> Iterator[Batch]:
    """Read files batch by batch, and nothing of them twice.

    Parameters
    ----------
    source : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of them; "-" is standard input.
    types : callable
        As in `read`. CSV is read with what its first block of text says where `types` says nothing.
    n_rows : int
        Rows of a batch at most.
    columns : sequence of str or None
        Those that are read, as far as they are there; None: all.

    Yields
    ------
    Batch
        The last one has the end of the rows, or none of them.

    Raises
    ------
    OSError, ValueError
        As `read`, and if a file changes while it is read.
    """
    pa = import_extra("pyarrow", "files")
    every = [_DataSetToRead(source)] if _is_data_set(source) else _files_to_read(source)
    sizes = [max(one.n_bytes, 1) for one in every]
    last: Batch | None = None
    for i, one in enumerate(every):
        try:
            for table, share in one.batches(types, n_rows, columns):
                if last is not None:
                    yield last
                done = (sum(sizes[:i]) + share * sizes[i]) / sum(sizes)
                last = Batch(table, one.name, done)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{one.name} could not be read: {error}") from error
    assert last is not None  # each file has a batch
    yield replace(last, is_last=True)


def stem_of(path: str | os.PathLike[str]) -> str:
    """Name of a table's file without the suffix that says what it is."""
    file = Path(path)
    return file.name[: -len(_suffix_of(file, _READERS, _READ))]


def _is_data_set(source: Any) -> bool:
    return not isinstance(source, str | os.PathLike | list | tuple)


def _files_to_read(source: Any) -> "list[_Stored | _Text]":
    if str(source) == STANDARD_STREAM:
        return [_Text(Path(STANDARD_STREAM))]
    files = files_of(source)
    return [
        (_Stored if one.name.lower().endswith(_BINARY) else _Text)(one)  # its types are known
        for one in files
    ]


class _Stored:
    """A Parquet or Arrow file."""

    def __init__(self, path: Path) -> None:
        self._file: Any = file_of(path)
        self.name, self.n_bytes = str(path), path.stat().st_size

    def batches(
        self, types: Types, n_rows: int, columns: Sequence[str] | None
    ) -> "Iterator[tuple[pa.Table, float]]":
        """Tables, and how much of the file has been read."""
        pa = import_extra("pyarrow", "files")
        schema, n_all = self._file.look()
        names = [one for one in schema.names if columns is None or one in columns]
        schema = pa.schema([schema.field(one) for one in names])
        n = 0
        if n_all == 0:
            yield _typed(schema.empty_table(), types), 1.0
        for batch in self._file.batches(names, n_rows):
            n += len(batch)
            table = pa.Table.from_batches([batch]).select(names).replace_schema_metadata()
            yield _typed(table, types), n / n_all
        self._file.expect_unchanged()


class _DataSetToRead(_Stored):
    """A data set of Arrow."""

    def __init__(self, given: Any) -> None:
        self._file = DataSet(given)
        self.name, self.n_bytes = self._file.name, 1


class _Text:
    """A file of CSV, or standard input."""

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, _named(path)
        self._is_stream = str(path) == STANDARD_STREAM
        self._file = None if self._is_stream else file_of(path)
        self.n_bytes = 1 if self._is_stream else path.stat().st_size
        self._delimiter = "\t" if ".tsv" in path.name.lower() else ","

    def batches(
        self, types: Types, n_rows: int, columns: Sequence[str] | None
    ) -> "Iterator[tuple[pa.Table, float]]":
        """Tables, and how much of the file has been read."""
        content = self._content()
        with self._reader(content, {}, None) as (first, _):
            seen = first.schema
        _expect_utf8(seen.empty_table(), self.name)
        expect_distinct(seen.names)
        names = [one for one in seen.names if columns is None or one in columns]
        chosen = _types_of_text(seen, types(seen))
        chosen = {one: chosen[one] for one in names}
        is_empty = True
        with self._reader(content, chosen, names) as (reader, place):
            for block in reader:
                is_empty &= not len(block)
                table = import_extra("pyarrow", "files").Table.from_batches([block]).select(names)
                for start in range(0, len(table), n_rows):
                    yield table.slice(start, n_rows), min(place() / max(self.n_bytes, 1), 1.0)
        if is_empty:
            yield import_extra("pyarrow", "files").schema(chosen.items()).empty_table(), 1.0
        if self._file is not None:
            self._file.expect_unchanged()

    def _content(self) -> bytes | None:
        """All text, where it has to be read whole: of streams, and in other encodings than UTF-8."""
        if self._is_stream:
            whole = _text_of(self._path)
            _expect_delimiter(whole, self._delimiter, self.name)
            return whole
        with self._opened() as (stream, _):
            head = stream.read(_HEAD)
        content: bytes | None = None
        if any(head.startswith(mark) for mark in _MARKS):
            content = head = _text_of(self._path)
        _expect_no_zeros(head, self.name)
        _expect_delimiter(head, self._delimiter, self.name)
        return content

    @contextmanager
    def _opened(self) -> "Iterator[tuple[Any, Callable[[], int]]]":
        """The text of the file, and what tells how much of the file has been read."""
        pa = import_extra("pyarrow", "files")
        with pa.OSFile(str(self._path), "r") as raw:
            stream = raw
            if self._path.name.lower().endswith(".gz"):
                stream = pa.CompressedInputStream(raw, "gzip")
            yield stream, raw.tell

    @contextmanager
    def _reader(
        self, content: bytes | None, types: "Mapping[str, pa.DataType]", names: Any
    ) -> "Iterator[tuple[Any, Callable[[], int]]]":
        """What reads blocks of the text, and tells how much of the file has been read."""
        csv = import_extra("pyarrow.csv", "files")
        chosen = {} if names is None else {"include_columns": names}
        how = csv.ConvertOptions(strings_can_be_null=True, column_types=types, **chosen)
        with ExitStack() as open_files:
            stream: Any = _copied_to_arrow(content or b"")
            place: Callable[[], int] = partial(int, 1)
            if content is None:
                stream, place = open_files.enter_context(self._opened())
            reader = csv.open_csv(
                stream,
                read_options=csv.ReadOptions(block_size=_HEAD),
                parse_options=csv.ParseOptions(delimiter=self._delimiter),
                convert_options=how,
            )
            yield open_files.enter_context(reader), place


def _types_of_text(
    seen: "pa.Schema", wanted: "Mapping[str, pa.DataType]"
) -> "dict[str, pa.DataType]":
    """Types to read text by: what looks like numbers in the first block may be no whole ones later."""
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


def _suffix_of(file: Path, known: Iterable[str], expected: str) -> str:
    """The suffix of a file, two of a compressed one."""
    for suffix in known:
        if file.name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"expected a {expected} file, got {file}")


def _named(file: Path) -> str:
    return "standard input" if str(file) == STANDARD_STREAM else str(file)


def _read_csv(file: Path, types: Types, delimiter: str = ",") -> "pa.Table":
    pa = import_extra("pyarrow", "files")
    content = _text_of(file)
    _expect_delimiter(content, delimiter, _named(file))
    table = _parsed(content, delimiter, {})
    _expect_utf8(table, _named(file))
    expect_distinct(table.column_names)
    is_string, seen = pa.types.is_string, table.schema
    wanted = {name: kind for name, kind in types(seen).items() if is_string(kind)}
    if all(is_string(seen.field(name).type) for name in wanted):
        return table
    return _parsed(content, delimiter, wanted)


def _parsed(content: bytes, delimiter: str, types: Mapping[str, "pa.DataType"]) -> "pa.Table":
    csv = import_extra("pyarrow.csv", "files")
    return csv.read_csv(
        _copied_to_arrow(content),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, column_types=types),
    )


def _copied_to_arrow(content: bytes) -> Any:
    """Copy bytes to memory of Arrow, and return a file of Arrow that reads them.

    Threads of Arrow may release what they have read while the interpreter ends. Memory of Python cannot
    be released then: the process aborts.
    """
    pa = import_extra("pyarrow", "files")
    memory = pa.allocate_buffer(len(content))
    pa.FixedSizeBufferWriter(memory).write(content)
    return pa.BufferReader(memory)


def _text_of(file: Path) -> bytes:
    """The text of a CSV file in UTF-8."""
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
                f"{_named(file)} has the byte order mark of {encoding.upper()}, but is no text in it"
            ) from None
    _expect_no_zeros(content, _named(file))
    return content


def _expect_no_zeros(content: bytes, file: str) -> None:
    if b"\0" in content:
        raise ValueError(
            f"{file} must be text in UTF-8, but has bytes that are 0, as binary files have, "
            "and UTF-16 without a byte order mark"
        )


def _expect_delimiter(content: bytes, delimiter: str, file: str) -> None:
    """Refuse one column that is called what several in another notation would be."""
    first = content.partition(b"\n")[0]
    if delimiter.encode() in first or b'"' in first:
        return
    words = {"\t": "tabs", ",": "commas", ";": "semicolons"}
    for other in (";", "\t"):
        if other.encode() in first:
            raise ValueError(
                f"the columns of {file} must be separated by {words[delimiter]}, but its first line "
                f"has {words[other]} and none of them"
            )


def _expect_utf8(table: "pa.Table", file: str) -> None:
    """Refuse bytes, which is what is read of words in another encoding."""
    wanted = f"{file} must be text in UTF-8, but"
    try:
        names = table.column_names
    except UnicodeDecodeError:
        raise ValueError(f"{wanted} the names of its columns are in another encoding") from None
    is_binary = import_extra("pyarrow", "files").types.is_binary
    kinds = zip(names, table.schema.types, strict=True)
    other = [name for name, kind in kinds if is_binary(kind)]
    if other:
        columns = listed(map(repr, other))
        raise ValueError(f"{wanted} column {columns} is in another encoding, such as latin-1")


def _read_parquet(file: Path, types: Types) -> "pa.Table":
    return _typed(import_extra("pyarrow.parquet", "files").read_table(file), types)


def _read_feather(file: Path, types: Types) -> "pa.Table":
    return _typed(import_extra("pyarrow.feather", "files").read_table(file), types)


def _typed(table: "pa.Table", types: Types) -> "pa.Table":
    """Give columns the types they must have where that changes no value, and leave out an index."""
    of = import_extra("pyarrow", "files").types
    table = _without_index(table)
    expect_distinct(table.column_names)
    for name, wanted in types(table.schema).items():
        j = table.column_names.index(name)
        kind = table.schema.field(j).type
        if of.is_dictionary(kind) and of.is_floating(wanted) and not of.is_string(kind.value_type):
            table = table.set_column(j, name, table.column(j).cast(kind.value_type))
        elif of.is_integer(kind) and of.is_string(wanted):
            table = table.set_column(j, name, table.column(j).cast(wanted))
    return table


def _without_index(table: "pa.Table") -> "pa.Table":
    """Leave out what pandas has written as the index of its rows: often their numbers."""
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


def _write_csv(parts: "Iterator[pa.Table]", file: IO[bytes], delimiter: str = ",") -> None:
    csv, first = import_extra("pyarrow.csv", "files"), next(parts)
    how = csv.WriteOptions(delimiter=delimiter)
    with csv.CSVWriter(file, first.schema, write_options=how) as writer:
        for one in chain([first], parts):
            writer.write_table(one)


def _write_csv_gz(parts: "Iterator[pa.Table]", file: BinaryIO) -> None:
    # Without the time, so that the same table gives the same file.
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as inner:
        _write_csv(parts, cast("IO[bytes]", inner))


def _write_parquet(parts: "Iterator[pa.Table]", file: BinaryIO) -> None:
    first = next(parts)
    with import_extra("pyarrow.parquet", "files").ParquetWriter(file, first.schema) as writer:
        for one in chain([first], parts):
            writer.write_table(one)


_WRITERS: dict[str, Callable[["Iterator[pa.Table]", BinaryIO], None]] = {
    ".csv": _write_csv,
    ".csv.gz": _write_csv_gz,
    ".tsv": partial(_write_csv, delimiter="\t"),
    ".parquet": _write_parquet,
}


def expect_table_place(path: str | os.PathLike[str] | None) -> None:
    """Say why a table could not be written, while nothing has been computed yet.

    Parameters
    ----------
    path : path or None
        Where it will go; None and ``-``: standard output.

    Raises
    ------
    OSError
        As `expect_writable`.
    ValueError
        If the suffix is none of ``.csv``, ``.csv.gz``, ``.tsv`` and ``.parquet``.
    """
    if path is not None and str(path) != STANDARD_STREAM:
        expect_writable(path)
        _suffix_of(Path(path), _WRITERS, ".csv, .csv.gz, .tsv or .parquet")


def write(table: "pa.Table", path: str | os.PathLike[str] | None) -> None:
    """Write a table to a file, whole or not at all, or as CSV to standard output.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    path : path or None
        The file, whose suffix says what it is; see `expect_table_place`.
    """
    write_all([table], path)


def write_all(parts: "Iterable[pa.Table]", path: str | os.PathLike[str] | None) -> None:
    """Write tables of the same columns, at least one, below each other; see `write`."""
    expect_table_place(path)
    if path is None or str(path) == STANDARD_STREAM:
        sys.stdout.flush()
        _write_csv(iter(parts), sys.stdout.buffer)  # in UTF-8, as in files
        return
    put = _WRITERS[_suffix_of(Path(path), _WRITERS, "")]
    write_atomically(path, lambda file: put(iter(parts), file))


def expect_distinct(names: Iterable[str]) -> None:
    """Refuse names of columns that are alike."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"the names of columns must differ, got {listed(twice)} more than once")


def listed(names: Iterable[str]) -> str:
    """Names of columns, of many the first."""
    every = [*names]
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more


def split_target(columns: "pa.Table", target: str | None) -> Table:
    """Split a table into its features and its target.

    Parameters
    ----------
    columns : pyarrow.Table
        All columns. Strings in features are categories; nulls become NaN, or None among strings.
    target : str or None
        Name of the target; None if there is none.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If the target is missing or holds nulls, or a feature is neither numbers nor strings.
    """
    expect_distinct(columns.column_names)
    y = None
    if target is not None:
        y = target_of(columns, target)
        columns = columns.drop_columns([target])
    features = [feature_of(columns, name) for name in columns.column_names]
    if not features:
        raise ValueError("there is no feature column")
    kind = np.result_type(*features)  # object as soon as one of them is
    X = np.empty((columns.num_rows, len(features)), dtype=kind)
    for j, feature in enumerate(features):
        X[:, j] = feature
    return Table(X, y, list(columns.column_names))


def target_of(columns: "pa.Table", target: str) -> NDArray[Any]:
    """The target (n,) of a table; see `split_target`."""
    if target not in columns.column_names:
        raise ValueError(f"no column {target!r}; there are {listed(columns.column_names)}")
    values = columns.column(target).combine_chunks()
    if values.null_count:
        raise ValueError(f"the target {target!r} has {values.null_count} missing values")
    y: NDArray[Any] = np.asarray(values.to_numpy(zero_copy_only=False))
    return _strings(y, target) if y.dtype == object else y


def _strings(values: NDArray[Any], target: str) -> NDArray[Any]:
    if any(isinstance(value, str) and value.endswith("\0") for value in values):
        raise ValueError(f"the target {target!r} has values that end in a NUL, which NumPy drops")
    return values.astype(str)


def feature_of(columns: "pa.Table", name: str) -> NDArray[Any]:
    """A feature (n,) of a table; see `split_target`."""
    pa = import_extra("pyarrow", "files")
    kind, values = columns.schema.field(name).type, columns.column(name)
    of = pa.types
    if of.is_string(kind) or of.is_large_string(kind) or of.is_dictionary(kind):
        return np.asarray(values.cast(pa.string()).to_numpy(), dtype=object)
    # A column without any value has a type of its own; all of it is NaN.
    accepted = (of.is_integer, of.is_floating, of.is_boolean, of.is_null)
    if not any(accepts(kind) for accepts in accepted):
        raise ValueError(f"feature {name!r} must hold numbers or strings, got {kind}")
    try:
        return np.asarray(values.cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid:
        raise ValueError(
            f"feature {name!r} holds whole numbers beyond 2^53, of which several are one number of "
            "float64: leave it out if it is an identifier, or write it as text"
        ) from None
