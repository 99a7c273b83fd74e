"""Formats of files: each reads columns batch by batch, and estimates the memory that this takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certree.interface.extras import import_extra
from certree.tables.arrow_files import ArrowFile
from certree.tables.column_names import expect_distinct
from certree.tables.column_types import (
    SeenColumn,
    SeenColumns,
    list_text_types,
    narrow_text_types,
    see_schema,
)
from certree.tables.csv_text import MISSING_MARKERS, CsvText

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

    A subclass must define `look`, `batches` and `held`, and may override `names` and `pieces`. Each
    method opens the file and closes it again.

    Parameters
    ----------
    path : Path
        The file.
    is_limited : bool
        Whether the fit has a memory limit, so that the file is read in small blocks by one thread.

    Attributes
    ----------
    fraction_read : float
        Fraction of the file that `batches` has read so far, 0 to 1.
    """

    def __init__(self, path: Path, is_limited: bool = False) -> None:
        self._path, self._is_limited = path, is_limited
        self.fraction_read = 0.0

    def names(self) -> list[str]:
        """Return the names of the columns, without a stored pandas index."""
        return [*self.look()[0]]

    def look(self, columns: Sequence[str] | None = None) -> tuple[SeenColumns, int]:
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
        kind = import_extra("pyarrow.parquet", "files").ParquetFile
        return kind(self._path, **(how if self._is_limited else {}))

    def look(self, columns: Sequence[str] | None = None) -> tuple[SeenColumns, int]:
        del columns
        with self._file() as file:
            return see_schema(file.schema_arrow), file.metadata.num_rows

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
        pa = import_extra("pyarrow", "files")
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

    def look(self, columns: Sequence[str] | None = None) -> tuple[SeenColumns, int]:
        del columns
        with ArrowFile(self._path) as file:
            return see_schema(file.schema), sum(file.lengths)

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
        pa, most = import_extra("pyarrow", "files"), 0
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

    `look` infers the types of its columns from all values; `batches` yields texts.

    Parameters
    ----------
    path : Path
        The file.
    is_limited : bool
        As in `Format`.
    content : bytes or None
        The whole text, if it came from standard input; None: it is read from the file.
    """

    def __init__(self, path: Path, is_limited: bool = False, content: bytes | None = None) -> None:
        super().__init__(path, is_limited)
        self._text = CsvText(path, content, is_limited)
        self._block = _SMALL_BLOCK if is_limited else _BLOCK

    def names(self) -> list[str]:
        """Return the names of the columns, which are in the first line."""
        try:
            names = self._read_names(_SMALL_BLOCK)
        except import_extra("pyarrow", "files").ArrowInvalid:
            # A row may be longer than a small block.
            names = self._read_names(self._block)
        expect_distinct(names)
        return names

    def _read_names(self, block: int) -> list[str]:
        """Read the names of the columns from the first line; block: bytes of text to parse."""
        with self._open_parser(None, MISSING_MARKERS, block) as (parser, _):
            try:
                names: list[str] = parser.schema.names
            except UnicodeDecodeError:
                raise self._text.create_encoding_error(None) from None
        return names

    def look(self, columns: Sequence[str] | None = None) -> tuple[SeenColumns, int]:
        """Return the inferred types of each column, by name, and the number of rows.

        columns: names of the columns to inspect; None: all. The whole text is read.
        """
        pa, pc = import_extra("pyarrow", "files"), import_extra("pyarrow.compute", "files")
        names = [name for name in self.names() if columns is None or name in columns]
        kinds = dict.fromkeys(names, list_text_types())
        markers: dict[str, set[str]] = {name: set() for name in names}
        all_markers, n_rows = pa.array(MISSING_MARKERS), 0
        for block in self._parse(names, missing=()):
            n_rows += len(block)
            for name in names:
                values = block.column(name)
                is_missing = pc.is_in(values, all_markers)
                markers[name] |= {*pc.unique(values.filter(is_missing)).to_pylist()}
                kinds[name] = narrow_text_types(kinds[name], values.filter(pc.invert(is_missing)))
        seen = {name: SeenColumn(kinds[name], True, frozenset(markers[name])) for name in names}
        return seen, n_rows

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Yield record batches of strings, with null for texts of `MISSING_MARKERS`, such as "NA".

        columns: names of the columns to read. n_rows: largest number of rows of a batch. piece: not
        used, as the text cannot be divided.
        """
        del piece
        for block in self._parse(columns, MISSING_MARKERS):
            for start in range(0, len(block), n_rows):
                yield block.slice(start, n_rows)

    def held(self, columns: list[str]) -> int:
        """Return the bytes of the blocks of text in memory at a time, with `is_limited`."""
        del columns
        return _BLOCKS * _SMALL_BLOCK

    def _parse(self, names: Sequence[str], missing: Sequence[str]) -> Iterator[Any]:
        """Yield record batches of texts, block by block.

        names: the columns to read; missing: texts that become null. Raise ValueError if a text is
        not in UTF-8, or has a zero byte.
        """
        pa = import_extra("pyarrow", "files")
        with self._open_parser(names, missing, self._block) as (parser, fraction):
            for block in parser:
                self.fraction_read = fraction()
                columns = []
                for name in names:
                    values = block.column(name)
                    self._text.expect_no_zeros(values)
                    try:
                        columns.append(values.cast(pa.string()))
                    except pa.ArrowInvalid:
                        raise self._text.create_encoding_error(name) from None
                yield pa.RecordBatch.from_arrays(columns, [*names])

    @contextmanager
    def _open_parser(
        self, names: Sequence[str] | None, missing: Sequence[str], block: int
    ) -> Iterator[tuple[Any, Callable[[], float]]]:
        """Open a parser for the body of a with statement.

        Yield a `pyarrow.csv.CSVStreamingReader`, and a function without arguments that returns the
        fraction of the file that has been read so far.

        names: columns to read, as bytes, whose encoding is checked later; None: all, of any type;
        missing: texts that become null; block: bytes of text that are parsed at a time.
        """
        pa, csv = import_extra("pyarrow", "files"), import_extra("pyarrow.csv", "files")
        how: dict[str, Any] = {}
        if names is not None:
            how = {"include_columns": names, "column_types": dict.fromkeys(names, pa.binary())}
        with self._text.open() as (stream, fraction):
            parser = csv.open_csv(
                stream,
                read_options=csv.ReadOptions(block_size=block, use_threads=not self._is_limited),
                parse_options=csv.ParseOptions(delimiter=self._text.delimiter),
                convert_options=csv.ConvertOptions(
                    strings_can_be_null=True, null_values=[*missing], **how
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
