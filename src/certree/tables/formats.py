"""Formats of files: each reads columns batch by batch, and estimates the memory that this takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certree.tables.arrow import csv, pa, parquet, pc
from certree.tables.arrow_files import ArrowFile
from certree.tables.column_evidence import ColumnScan, TextCounts
from certree.tables.column_names import expect_distinct
from certree.tables.column_types import InferredColumns, list_stored_columns, list_text_types
from certree.tables.csv_text import CsvReading, CsvText, Exceptions
from certree.tables.text_formats import convert_texts

# Bytes of text that are parsed at a time; the same if memory is limited; and bytes of a column of
# Parquet that are read at a time if memory is limited.
_BLOCK, _SMALL_BLOCK, _BUFFER = 2**24, 2**20, 2**16
# Pages of a Parquet column that are held at a time, for its dictionary and for its values; their size
# in files of most writers; rows that show the size; and how much larger other pages may be.
_PAGES, _PAGE, FIRST_ROWS, SPARE = 2, 2**20, 2**10, 1.3
# Blocks of text that are held at a time, with what they are converted to.
_BLOCKS = 12
# Numbers of row groups or batches of a file, or of fragments of a data set; None: all.
Piece = list[int] | None


def _group_pieces(sizes: list[int], n_rows: int) -> list[Piece]:
    """Group consecutive row groups of a file into pieces of at most n_rows rows.

    A row group with more rows is a piece of its own. sizes: number of rows of each row group, in
    order. Return for each piece the list of the indices of its row groups.
    """
    pieces: list[list[int]] = []
    n_held = 0
    for i, n in enumerate(sizes):
        if not pieces or n_held + n > n_rows:
            pieces.append([])
            n_held = 0
        pieces[-1].append(i)
        n_held += n
    return [*pieces]


class Format:
    """Base class of readers of one table file; a subclass for each format defines the methods.

    A subclass must define `infer_columns`, `batches` and `held`, and may override `names` and
    `pieces`. Each method opens the file and closes it again.

    Parameters
    ----------
    path : Path
        The file.
    is_limited : bool
        Whether the fit has a memory limit, so that the file is read in small blocks by one thread.
    reading : CsvReading or None
        How a CSV file is read; others ignore it.

    Attributes
    ----------
    fraction_read : float
        Fraction of the file that `batches` has read so far, 0 to 1.
    """

    def __init__(
        self, path: Path, is_limited: bool = False, reading: CsvReading | None = None
    ) -> None:
        del reading
        self._path, self._is_limited = path, is_limited
        self.fraction_read = 0.0

    def names(self) -> list[str]:
        """Return the names of the columns, without a stored pandas index."""
        return [*self.infer_columns()[0]]

    def infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        """Return types and missing-value markers of columns, by name, and the number of rows.

        columns: names of the columns to inspect; None: all. A format that stores types returns all
        columns of the file, whatever this argument is.
        """
        raise NotImplementedError

    def pieces(self, n_rows: int) -> list[Piece]:  # noqa: ARG002 -- a file that cannot be divided
        """Return pieces of the file that can be read separately, of about n_rows rows each.

        A piece is a value of the argument `piece` of `batches`: a list of indices of row groups or
        record batches, or None for the whole file, which this class returns as the only piece.
        """
        return [None]

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Yield `pyarrow.RecordBatch` objects of at most n_rows rows each, and set `fraction_read`.

        columns: names of the columns to read. piece: an element of the result of `pieces`; None:
        all rows.
        """
        raise NotImplementedError

    def held(self, columns: list[str]) -> int:
        """Estimate the memory, in bytes, that reading takes besides the record batches themselves.

        The estimate is for a reader with `is_limited`. columns: names of the columns to read.
        """
        raise NotImplementedError


class _Parquet(Format):
    """Reader of a Parquet file, whose pieces are lists of row groups; see `Format`."""

    def _file(self) -> Any:
        # Without a buffer a whole row group is held, even if few of its rows are requested.
        how: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False}
        kind = parquet.ParquetFile
        return kind(self._path, **(how if self._is_limited else {}))

    def infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        del columns
        with self._file() as file:
            return list_stored_columns(file.schema_arrow), file.metadata.num_rows

    def pieces(self, n_rows: int) -> list[Piece]:
        with self._file() as file:
            about, n = file.metadata, file.num_row_groups
            return _group_pieces([about.row_group(i).num_rows for i in range(n)], n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        how = {"row_groups": piece, "columns": columns, "use_threads": not self._is_limited}
        with self._file() as file:
            n_read = 0
            for batch in file.iter_batches(n_rows, **how):
                n_read += len(batch)
                self.fraction_read = n_read / file.metadata.num_rows
                yield batch

    def held(self, columns: list[str]) -> int:
        with self._file() as file:
            about, largest = file.metadata, (0, 0, 0)
            for i in range(about.num_row_groups):
                group = about.row_group(i)
                chunks = [group.column(j) for j in range(group.num_columns)]
                sizes = [
                    one.total_uncompressed_size
                    for one in chunks
                    if one.path_in_schema.split(".")[0] in columns
                ]
                pages = sum(min(_PAGE, one) for one in sizes)
                largest = max(largest, (sum(sizes), pages, i))
            before, found = pa.total_allocated_bytes(), 0
            for _ in file.iter_batches(
                FIRST_ROWS, row_groups=[largest[2]], columns=columns, use_threads=False
            ):
                found = pa.total_allocated_bytes() - before
                break
            buffers = 2 * _BUFFER * len(columns) + 8 * about.serialized_size
            return int(SPARE * max(_PAGES * largest[1], found)) + buffers


class _Arrow(Format):
    """Reader of an Arrow (IPC, Feather) file, whose pieces are lists of record batches."""

    def infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        del columns
        with ArrowFile(self._path) as file:
            return list_stored_columns(file.schema), sum(file.lengths)

    def pieces(self, n_rows: int) -> list[Piece]:
        with ArrowFile(self._path) as file:
            return _group_pieces(file.lengths, n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        with ArrowFile(self._path) as file:
            n_read, n_all = 0, sum(file.lengths)
            for i in range(len(file.lengths)) if piece is None else piece:
                for batch in file.ranges(columns, i, n_rows):
                    n_read += len(batch)
                    self.fraction_read = n_read / n_all
                    yield batch

    def held(self, columns: list[str]) -> int:
        most = 0
        with ArrowFile(self._path) as file:
            for i in range(len(file.lengths)):
                if file.has_ranges(i):
                    continue
                before = pa.total_allocated_bytes()
                batch = file.whole(columns, i)
                most = max(most, pa.total_allocated_bytes() - before)
                del batch
            # Offsets of texts are copied, those of one column at a time.
            return 2 * (most + file.bytes_of_dictionaries(columns)) + 2 * _BUFFER * len(columns)


class CsvFormat(Format):
    """Reader of a CSV file, or of CSV from standard input.

    `infer_columns` infers the types of its columns from all values; `batches` yields texts.

    Parameters
    ----------
    path : Path
        The file.
    is_limited : bool
        Whether memory is limited.
    reading : CsvReading or None
        How the file is read; None: everything is detected.
    content : bytes or None
        The whole text, if it came from standard input; None: it is read from the file.
    """

    def __init__(
        self,
        path: Path,
        is_limited: bool = False,
        reading: CsvReading | None = None,
        content: bytes | None = None,
    ) -> None:
        super().__init__(path, is_limited)
        self._reading = CsvReading() if reading is None else reading
        self._text = CsvText(path, self._reading, content, is_limited)
        self._block = _SMALL_BLOCK if is_limited else _BLOCK

    def names(self) -> list[str]:
        """Return the names of the columns in the header."""
        names = self._text.dialect.names
        if not names:
            raise pa.ArrowInvalid("Empty CSV file")
        expect_distinct(names)
        return [*names]

    def infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        """Return the inferred types of each column, by name, and the number of rows.

        columns: names of the columns to inspect; None: all. The whole text is read.
        """
        names = [name for name in self.names() if columns is None or name in columns]
        scans = {name: ColumnScan(self._list_types(name)) for name in names}
        markers, n_rows = pa.array(self._reading.missing), 0
        has_comma = self._text.dialect.separator == ","
        for number, block in enumerate(self._parse(names, missing=())):
            n_rows += len(block)
            for name, scan in scans.items():
                values = block.column(name)
                is_missing = pc.is_in(values, markers)
                if pc.any(is_missing).as_py():
                    scan.markers |= {*pc.unique(values.filter(is_missing)).to_pylist()}
                    values = values.filter(pc.invert(is_missing))
                scan.add(values, len(block), number, has_comma)
        return {name: scan.to_inferred_column() for name, scan in scans.items()}, n_rows

    def count_texts(self, columns: Sequence[str]) -> dict[str, TextCounts]:
        """Return counts of the texts of columns in all rows, by name."""
        counts = {name: TextCounts() for name in columns}
        for block in self._parse(columns, self._reading.missing):
            for name in columns:
                counts[name].add_texts(block.column(name).drop_null())
        return counts

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Yield record batches of texts, which are null if they are markers of missing values.

        Columns that have a format are numbers or dates.
        """
        del piece
        for block in self._parse(columns, self._reading.missing):
            converted = [self._convert(name, block.column(name)) for name in columns]
            batch = pa.RecordBatch.from_arrays(converted, columns)
            for start in range(0, len(batch), n_rows):
                yield batch.slice(start, n_rows)

    def held(self, columns: list[str]) -> int:
        """Return the bytes of the blocks of text in memory at a time, with `is_limited`."""
        del columns
        return _BLOCKS * _SMALL_BLOCK

    def _list_types(self, name: str) -> tuple[Any, ...]:
        """Return the types that the text of a column may have."""
        kinds = list_text_types()
        if name in self._reading.options.keep_text:
            return kinds[-1:]
        has_comma = self._reading.decimal == ","
        return tuple(kind for kind in kinds if not (has_comma and pa.types.is_floating(kind)))

    def _convert(self, name: str, texts: Any) -> Any:
        """Convert texts of a column if it has a format, and count those that do not have it."""
        form = self._reading.formats.get(name)
        if form is None:
            return texts
        values, exceptions = convert_texts(texts, form)
        counted = self._reading.exceptions.setdefault(name, Exceptions())
        counted.add(len(values) - values.null_count + len(exceptions), exceptions)
        return values

    def _parse(self, names: Sequence[str], missing: Sequence[str]) -> Iterator[Any]:
        """Yield record batches of texts, block by block.

        names: the columns to read; missing: texts that become null. Raise ValueError if a text is
        not in the encoding of the file, or has a zero byte, or if rows differ in their length.
        """
        if not self._text.dialect.has_rows:
            return
        try:
            with self._open_parser(names, missing) as (parser, fraction):
                for block in parser:
                    self.fraction_read = fraction()
                    columns = [
                        self._text.convert_to_strings(block.column(name), name) for name in names
                    ]
                    yield pa.RecordBatch.from_arrays(columns, [*names])
        except pa.ArrowInvalid as error:
            if not re.search(r"Expected \d+ columns", str(error)):
                raise
            n = len(self._text.dialect.names)
            raise ValueError(
                f"{self._text.name} has {n:,} columns, but {self._text.find_ragged_row()}; mend or "
                "remove this row, or name the separator by separator= (--separator)"
            ) from None

    @contextmanager
    def _open_parser(
        self, names: Sequence[str], missing: Sequence[str]
    ) -> Iterator[tuple[Any, Callable[[], float]]]:
        """Open a parser for the body of a with statement.

        Yield a `pyarrow.csv.CSVStreamingReader`, and a function without arguments that returns the
        fraction of the file that has been read so far.

        names: columns to read, as bytes, whose encoding is checked later; missing: texts that become
        null.
        """
        dialect = self._text.dialect
        with self._text.open() as (stream, fraction):
            parser = csv.open_csv(
                stream,
                read_options=csv.ReadOptions(
                    block_size=self._block,
                    use_threads=not self._is_limited,
                    column_names=[*dialect.names],
                    skip_rows=dialect.n_lines,
                ),
                parse_options=csv.ParseOptions(
                    delimiter=dialect.separator, newlines_in_values=dialect.has_quotes
                ),
                convert_options=csv.ConvertOptions(
                    strings_can_be_null=True,
                    null_values=[*missing],
                    include_columns=names,
                    column_types=dict.fromkeys(names, pa.binary()),
                ),
            )
            with parser:
                yield parser, fraction


def get_format(path: Path) -> type[Format]:
    """Return the subclass of `Format` for the suffix of a file; CSV for an unknown suffix."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return _Parquet
    return _Arrow if name.endswith((".arrow", ".feather")) else CsvFormat
