"""Load data sets by name, and write tables to CSV and Parquet files."""

import gzip
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from certree.files.output_paths import expect_writable
from certree.interface.atomic_write import write_atomically
from certree.interface.extras import import_extra
from certree.tables.csv_text import STANDARD_STREAM
from certree.tables.reader import read
from certree.tables.table import Table, split_target
from certree.tables.table_files import find_suffix

if TYPE_CHECKING:
    import pyarrow as pa

DATA_VARIABLE = "CERTREE_DATA"

# The UCI tables of the paper that OpenML has, by OpenML's data id. Its wine lacks the colour.
OPENML_IDS = {"spam": 44, "eeg": 1471, "wine": 287, "digit": 28, "letter": 6}


def _create_numeric_table(X: Any, y: Any, names: Any) -> Table:
    """Create a `Table` of numeric features X, (n, p), a target y, (n,), and feature names, (p,)."""
    return Table(np.asarray(X, dtype=np.float64), np.asarray(y), list(map(str, names)))


def _load_bundled(loader: str) -> Table:
    """Load a data set that is installed with scikit-learn, and return it as a `Table`.

    loader: name of a function in `sklearn.datasets`, such as "load_iris".
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
    """Download a data set from OpenML, and return it as a `Table`.

    name: a key of `OPENML_IDS`. reason: words of the error message on why the data set was not read
    from a file, such as "there is no file spam.parquet". Raise FileNotFoundError if the download
    fails.
    """
    from sklearn.datasets import fetch_openml

    number = OPENML_IDS[name]
    try:
        bunch = fetch_openml(data_id=number, as_frame=False, parser="liac-arff")
    except (OSError, ValueError, HTTPException) as error:
        raise FileNotFoundError(
            f"data set {name!r} was not found: {reason}, and data set {number} could not be "
            f"downloaded from OpenML ({error}). Check the connection, or put {name}.parquet into "
            "the folder that the environment variable CERTREE_DATA names"
        ) from error
    return _create_numeric_table(bunch.data, bunch.target, bunch.feature_names)


def _write_csv(batches: "Iterator[pa.Table]", file: IO[bytes], delimiter: str = ",") -> None:
    """Write tables below each other to an open file as CSV in UTF-8, with one header line.

    batches: the tables, at least one, all of one schema. file: open for writing. delimiter:
    character between two values.
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
    """Raise an error if a table cannot be written to a path; nothing is written.

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
        find_suffix(Path(path), _WRITERS, ".csv, .csv.gz, .tsv or .parquet")


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

    batches: the tables, at least one, all of one schema; each is written before the next one is
    requested. path: the file, whose suffix determines the format as in `write`; None or "-":
    standard output. Raise an OSError or ValueError if the file cannot be written.
    """
    expect_table_place(path)
    if path is None or str(path) == STANDARD_STREAM:
        sys.stdout.flush()
        _write_csv(iter(batches), sys.stdout.buffer)  # in UTF-8, as in files
        return
    put = _WRITERS[find_suffix(Path(path), _WRITERS, "")]
    write_atomically(path, lambda file: put(iter(batches), file))
