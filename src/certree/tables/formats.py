"""Table files by format: each class reads columns in batches, and estimates the memory it needs."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import warn

from certree.interface.extras import import_extra
from certree.tables.arrow import csv, pa, parquet, pc
from certree.tables.arrow_files import ArrowFile
from certree.tables.column_evidence import ColumnEvidence, TextCounts
from certree.tables.column_names import expect_distinct
from certree.tables.column_types import (
    InferredColumn,
    InferredColumns,
    convert_if_possible,
    is_date_type,
    list_stored_columns,
    list_text_types,
)
from certree.tables.csv_dialects import CsvDialect
from certree.tables.csv_text import (
    MISSING_MARKERS,
    STANDARD_INPUT,
    STANDARD_STREAM,
    CsvText,
    get_display_name,
)
from certree.tables.table_files import DataSet, Piece, TableFile, list_files
from certree.tables.table_source import TableSource
from certree.tables.text_formats import ENOUGH, TextFormat, convert_texts, count_values

# Bytes of text that are parsed at a time; the same if memory is limited; and bytes of a column of
# Parquet that are read at a time if memory is limited.
_BLOCK, _SMALL_BLOCK, _BUFFER = 2**24, 2**20, 2**16
# Pages of a Parquet column that are held at a time, for its dictionary and for its values; their size
# in files of most writers; rows that show the size; and how much larger other pages may be.
_PAGES, _PAGE, FIRST_ROWS, SPARE = 2, 2**20, 2**10, 1.3
# Blocks of text that are held at a time, with what they are converted to.
_BLOCKS = 12
# Exceptions that a message lists.
_LISTED = 3


def open_files(source: Any, is_limited: bool = False) -> list[TableFile]:
    """Return an object for each file of a source, in the order in which files are read.

    Parameters
    ----------
    source : path, list of paths, TableSource or pyarrow.dataset.Dataset
        Files, or folders of files; "-" is CSV from standard input, which is read here.
    is_limited : bool
        Whether the fit has a memory limit, so that files are read in small blocks.

    Returns
    -------
    list of TableFile
        One object for each file; a single one for a data set or standard input.

    Raises
    ------
    FileNotFoundError, ValueError
        If a file does not exist or has no supported suffix, or a folder has no such file; if memory
        is limited, and the source is a data set or standard input.
    """
    import_extra("pyarrow", "files")  # Its absence is the first error.
    source = TableSource(source)
    is_data_set = not isinstance(source.source, str | os.PathLike | list | tuple)
    is_stream = str(source) == STANDARD_STREAM
    if is_limited and (is_data_set or is_stream):
        reason = f"{STANDARD_INPUT}: it is held in memory"
        if not is_stream:
            reason = "a data set: pyarrow reads ahead in these"
        raise ValueError(
            f"memory_limit takes paths of files, got {reason}; pass paths, or leave it out"
        )
    if is_data_set:
        return [DataSet(source)]
    if is_stream:
        return [CsvFile(Path(STANDARD_STREAM), source, content=sys.stdin.buffer.read())]
    return [open_file(path, is_limited, source) for path in list_files(source.source)]


def open_file(path: Path, is_limited: bool = False, source: TableSource | None = None) -> TableFile:
    """Return the object that reads a file, by the suffix of its path; CSV for an unknown suffix.

    path: the file; is_limited: whether the fit has a memory limit, so that it is read in small
    blocks. source: options of reading; None: all options are detected.
    """
    name, options = path.name.lower(), TableSource(path) if source is None else source
    if name.endswith((".parquet", ".pq")):
        return _Parquet(str(path), options, [path], is_limited)
    if name.endswith((".arrow", ".feather")):
        return _Arrow(str(path), options, [path], is_limited)
    return CsvFile(path, options, is_limited)


def _group_pieces(sizes: list[int], n_rows: int) -> list[Piece]:
    """Group consecutive row groups of a file into pieces of at most n_rows rows.

    A row group with more rows is a piece of its own. sizes: number of rows of each row group, in
    order. Return a list of pieces: each is the list of the indices of its row groups.
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


class _Parquet(TableFile):
    """A Parquet file, whose separately readable pieces are lists of row groups.

    Its constructor and methods are those of `TableFile`.
    """

    def _file(self) -> Any:
        # Without a buffer a whole row group is held, even if few of its rows are requested.
        how: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False}
        return parquet.ParquetFile(self.name, **(how if self._is_limited else {}))

    def _infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        del columns
        with self._file() as file:
            return list_stored_columns(file.schema_arrow), file.metadata.num_rows

    def _pieces(self, n_rows: int) -> list[Piece]:
        with self._file() as file:
            about, n = file.metadata, file.num_row_groups
            return _group_pieces([about.row_group(i).num_rows for i in range(n)], n_rows)

    def _batches(
        self, columns: list[str], n_rows: int, piece: Piece
    ) -> Iterator[tuple[Any, float]]:
        how = {"row_groups": piece, "columns": columns, "use_threads": not self._is_limited}
        with self._file() as file:
            n_read = 0
            for batch in file.iter_batches(n_rows, **how):
                n_read += len(batch)
                yield batch, n_read / file.metadata.num_rows

    def _held(self, columns: list[str]) -> int:
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


class _Arrow(TableFile):
    """An Arrow (IPC, Feather) file, whose separately readable pieces are lists of record batches.

    Its constructor and methods are those of `TableFile`.
    """

    def _infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        del columns
        with ArrowFile(Path(self.name)) as file:
            return list_stored_columns(file.schema), sum(file.lengths)

    def _pieces(self, n_rows: int) -> list[Piece]:
        with ArrowFile(Path(self.name)) as file:
            return _group_pieces(file.lengths, n_rows)

    def _batches(
        self, columns: list[str], n_rows: int, piece: Piece
    ) -> Iterator[tuple[Any, float]]:
        with ArrowFile(Path(self.name)) as file:
            n_read, n_all = 0, sum(file.lengths)
            for i in range(len(file.lengths)) if piece is None else piece:
                for batch in file.read_ranges(columns, i, n_rows):
                    n_read += len(batch)
                    yield batch, n_read / n_all

    def _held(self, columns: list[str]) -> int:
        most = 0
        with ArrowFile(Path(self.name)) as file:
            for i in range(len(file.lengths)):
                if file.can_read_ranges(i):
                    continue
                before = pa.total_allocated_bytes()
                batch = file.read_batch(columns, i)
                most = max(most, pa.total_allocated_bytes() - before)
                del batch
            # Offsets of texts are copied, those of one column at a time.
            return 2 * (most + file.bytes_of_dictionaries(columns)) + 2 * _BUFFER * len(columns)


class CsvFile(TableFile):
    """A CSV file, or CSV from standard input, which cannot be divided into pieces.

    `infer_columns` infers the types of the columns from all values; `infer_schema` then sets the
    attributes below. `batches` yields texts, and numbers or dates for columns in `formats` or
    `kinds`. Texts without the format, called exceptions, become null there.

    Parameters
    ----------
    path : Path
        The file.
    source : TableSource
        Options of reading.
    is_limited : bool
        Whether the fit has a memory limit, so that the file is read in small blocks by one thread.
    content : bytes or None
        The whole text, if it came from standard input; None: it is read from the file.

    Attributes
    ----------
    formats : dict of str to TextFormat
        Formats by which columns become numbers or dates, by name.
    kinds : dict of str to tuple of pyarrow.DataType
        Types that columns in plain form may have, by name: those to which all texts of earlier
        blocks convert. The columns of a block get the first one. If none is left, text in a numeric
        column is numbers with exceptions, and a column of dates stays text.
    kept : set of str
        Names of columns whose text is kept, also words such as NA.
    texts : set of str
        Names of columns that are known to be text, in which only the stated markers are missing, if
        any are stated.
    words : dict of str to frozenset of str
        Words such as NA that are categories of a fitted model, by column. They are missing values
        only if the option `missing` states them.
    fitted : set of str
        Names of columns whose format is that of a fit, which the rows of this file may lack.
    """

    is_text = True

    def __init__(
        self,
        path: Path,
        source: TableSource,
        is_limited: bool = False,
        content: bytes | None = None,
    ) -> None:
        paths = [path] if content is None else []
        super().__init__(get_display_name(path), source, paths, is_limited)
        self._text = CsvText(path, source, content, is_limited)
        self.formats: dict[str, TextFormat] = {}
        self.kinds: dict[str, tuple[Any, ...]] = {}
        self.kept, self.texts = {*source.keep_text, *source.stored.keep_text}, set[str]()
        self.words: dict[str, frozenset[str]] = {}
        self.fitted: set[str] = set()
        # By column of numbers or dates: values that are not missing, and exceptions among them.
        self._n_values: Counter[str] = Counter()
        self._exceptions: defaultdict[str, Counter[str]] = defaultdict(Counter)

    @property
    def dialect(self) -> CsvDialect:
        """Encoding, separator, header and column names of the file."""
        return self._text.dialect

    @property
    def separator(self) -> str:
        """Usual separator of CSV files with the suffix of this file: a tab for .tsv, else a comma."""
        return self._text.usual_separator

    def list_markers(self, name: str) -> set[str]:
        """Return the texts that stand for a missing value in a column, such as "" and "NA".

        name: name of the column. These are the markers that the user has stated, and the usual
        ones, such as NA, without words that are categories of a fitted model. Of the usual ones
        there is only "" if the text of the column is kept, or if it is known to be text and the
        user has stated markers.
        """
        has_own = name in self.texts and self.source.missing is not None
        usual = {""} if name in self.kept or has_own else MISSING_MARKERS
        return {*(usual - self.words.get(name, set())), *(self.source.missing or ())}

    def count_texts(self, columns: Sequence[str]) -> dict[str, TextCounts]:
        """Read the file, and count the texts of some columns that have the form of numbers or dates.

        columns: names of the columns. Return a `TextCounts` for each column, by name: numbers of
        its texts by decimal mark, currency or percent sign, separator of thousands, and order of
        dates. Missing values are left out.
        """
        counts = {name: TextCounts() for name in columns}
        with self._errors_named():
            for block, _ in self._parse_values(columns):
                for name in columns:
                    counts[name].add_texts(block.column(name).drop_null())
        return counts

    def _names(self) -> Iterable[str]:
        names = self.dialect.names
        if not names:
            raise pa.ArrowInvalid("it is empty: pass a file with a header and rows")
        expect_distinct(names)
        return names

    def _infer_columns(self, columns: Sequence[str] | None = None) -> tuple[InferredColumns, int]:
        names = [name for name in self._names() if columns is None or name in columns]
        found = {name: ColumnEvidence(self._list_types(name)) for name in names}
        markers = {name: pa.array(self.list_markers(name)) for name in names}
        counted = pa.array({*MISSING_MARKERS, *(self.source.missing or ())})
        n_rows = 0
        has_comma = self.dialect.separator == ","
        for number, (block, _) in enumerate(self._parse(names, missing=())):
            n_rows += len(block)
            for name, evidence in found.items():
                values = block.column(name)
                if pc.any(is_marker := pc.is_in(values, counted)).as_py():
                    evidence.markers += count_values(values.filter(is_marker))
                    values = values.filter(pc.invert(pc.is_in(values, markers[name])))
                evidence.add(values, len(block), number, has_comma)
        return {
            name: InferredColumn(one.kinds, True, frozenset(one.markers), one)
            for name, one in found.items()
        }, n_rows

    def _batches(
        self, columns: list[str], n_rows: int, piece: Piece
    ) -> Iterator[tuple[Any, float]]:
        del piece
        self._n_values.clear()
        self._exceptions.clear()
        for block, fraction in self._parse_values(columns):
            converted = [self._convert(name, block.column(name)) for name in columns]
            batch = pa.RecordBatch.from_arrays(converted, columns)
            for start in range(0, len(batch), n_rows):
                yield batch.slice(start, n_rows), fraction
        self._expect_few_exceptions()

    def _held(self, columns: list[str]) -> int:
        del columns
        return _BLOCKS * _SMALL_BLOCK

    def _list_types(self, name: str) -> tuple[Any, ...]:
        """Return the pyarrow types that are tried for the text of a column, in order.

        They are null, int64, bool, float64, date, time, date with time, and string. name: name of
        the column. A column that is kept as text has the string type alone; with a decimal comma,
        floats are left out, as they have formats of their own.
        """
        kinds = list_text_types()
        if name in self.kept:
            return kinds[-1:]
        has_comma = self.source.decimal_mark == ","
        return tuple(kind for kind in kinds if not (has_comma and pa.types.is_floating(kind)))

    def _convert(self, name: str, texts: Any) -> Any:
        """Convert the texts of one block of a column to numbers or dates; return an Arrow array.

        Texts that do not convert become null and are counted in `_exceptions`, by column. `formats`
        has the format of the column, or `kinds` the types that are tried; both may change if the
        block shows it. A column without format or types stays text, and is returned unchanged.
        name: name of the column. texts: an Arrow array.
        """
        form, exceptions = self.formats.get(name), texts.slice(0, 0)
        is_open = False
        if name in self.kinds:
            values, kinds = convert_if_possible(texts, self.kinds[name])
            if kinds:
                self.kinds[name] = kinds
            elif not is_date_type(self.kinds[name][0]):
                form, is_open = self.source.choose_number_format(), True
        elif form is None:
            return texts
        if form is not None:
            values, exceptions = convert_texts(texts, form)
            if len(exceptions):
                chosen = self._choose_symbol_by_block(name, texts, form, is_open)
                values, exceptions = convert_texts(texts, chosen or form)
        self._n_values[name] += len(values) - values.null_count + len(exceptions)
        self._exceptions[name] += count_values(exceptions)
        return values

    def _choose_symbol_by_block(
        self, name: str, texts: Any, form: TextFormat, is_open: bool
    ) -> TextFormat | None:
        """Choose another number format for a column of a fitted model, by the symbols of one block.

        A symbol is a currency or percent sign. The symbol of the block is its most frequent one, or
        "" if no number has one, or if that is "%" but more numbers lack it. Another format is chosen
        in two cases. If the model stores no format of the column, and the block has a symbol, it is
        a format with this symbol. If the format of the fit has percent signs, and the symbol of the
        block is "", it is the format of the fit without the sign, with a warning. Neither applies if
        an earlier block has values of the column and one of the two formats has percent signs, as
        the numbers would differ in their unit.

        name: name of the column. texts: its texts in a block that has exceptions to the format
        `form`. is_open: whether the model stores no format of the column. Return the chosen format,
        and store it in `formats` for later blocks; return None if `form` stays.
        """
        is_bare = form.symbol == "%" and name in self.fitted
        if not is_open and not is_bare:
            return None
        counts = TextCounts()
        counts.add_texts(texts.drop_null())
        symbol = counts.choose_symbol()
        if "%" in (symbol, form.symbol) and self._n_values[name]:
            return None
        if is_bare:
            chosen = None if symbol else self._remove_percent_sign(name, form)
        else:
            chosen = self.choose_number_format(name, counts) if symbol else None
        if chosen is not None:
            self.kinds.pop(name, None)
            self.formats[name] = chosen
        return chosen

    def _remove_percent_sign(self, name: str, form: TextFormat) -> TextFormat:
        """Return a format without its percent sign, and warn how numbers without the sign are read.

        name: name of the column, whose numbers had percent signs in the fit. form: the format of
        the fit.
        """
        warn(
            f"column {name!r} of {self.name}: its numbers lack the percent signs of the fit, and are "
            "read as if they had them, so that 5 means 5 %; multiply the column by 100 if it has "
            "fractions such as 0.05",
            stacklevel=2,
        )
        return replace(form, symbol="")

    def choose_number_format(self, name: str, counts: TextCounts) -> TextFormat:
        """Return the number format of a column for which a fitted model stores no format.

        Warn if most numbers have a percent sign, as the numbers of the fit may be fractions. name:
        name of the column. counts: counts of its texts by decimal mark, symbol (currency or percent
        sign) and other properties. The most frequent symbol is that of the format; its decimal mark
        is that which the user has stated, else that of the fit, else a point.
        """
        symbol = counts.choose_symbol()
        if symbol == "%":
            warn(
                f"column {name!r} of {self.name}: percent signs are removed, so that 5 % becomes 5; "
                "divide the column by 100 if the fit had fractions such as 0.05",
                stacklevel=2,
            )
        return self.source.choose_number_format(symbol)

    def _expect_few_exceptions(self) -> None:
        """Warn of values without the format of a fitted column, or raise a ValueError if they are many.

        Many are more than 1 % of the values of the column. `_convert` has counted them while the
        file was read; call this after the last block.
        """
        for column, texts in self._exceptions.items():
            n, n_values = texts.total(), self._n_values[column]
            if column not in self.fitted or not n:
                continue
            form = self.formats.get(column)
            number, kind = f"{n:,} of {n_values:,} values", f"{form.kind if form else 'number'}s"
            listed = ", ".join(repr(text) for text in [*texts][:_LISTED])
            listed += ", ..." if len(texts) > _LISTED else ""
            if n > (1 - ENOUGH) * n_values:
                read_as = "" if form is None else f" (read as: {form})"
                option, name = "decimal mark", "decimal"
                if form is not None and form.kind == "date":
                    option, name = "order of day and month", "dates"
                stated = getattr(self.source, name)
                which = f"their {option}" if stated is None else f"another {option} than {stated!r}"
                raise ValueError(
                    f"feature {column!r} must hold {kind} as in the fit{read_as}, got {listed} in "
                    f"{self.name}: {number} cannot be read as such {kind}; write them as in the fit, "
                    f"state {which} by {name}= (--{name}), or what is missing by missing= (--missing)"
                )
            warn(
                f"column {column!r} of {self.name}: {number} cannot be read as {kind} and count as "
                f"missing: {listed}",
                stacklevel=2,
            )

    def _parse_values(self, names: Sequence[str]) -> Iterator[tuple[Any, float]]:
        """Yield record batches of texts, with nulls in place of the markers of missing values.

        A marker is a text that stands for a missing value, such as NA; columns have different ones.
        names: columns to read. Each batch has texts, and comes with the fraction of the file that
        has been read. Raise a ValueError if a text is not in the encoding of the file, or rows have
        different numbers of values.
        """
        markers = {name: self.list_markers(name) for name in names}
        shared = set[str].intersection(*markers.values()) if markers else {""}
        others = {name: pa.array(one - shared) for name, one in markers.items() if one - shared}
        for block, fraction in self._parse(names, [*shared]):
            columns = [
                pc.if_else(pc.is_in(texts, others[name]), None, texts) if name in others else texts
                for name, texts in zip(names, block.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, [*names]), fraction

    def _parse(self, names: Sequence[str], missing: Sequence[str]) -> Iterator[tuple[Any, float]]:
        """Yield record batches of texts, block by block, each with the fraction of the file read.

        names: names of the columns to read. missing: texts that become null, such as NA. Raise a
        ValueError if a text is not in the encoding of the file, or has a zero byte, or if rows have
        different numbers of values.
        """
        dialect = self.dialect
        if not dialect.has_rows:
            return
        how: dict[str, Any] = {}
        how["read_options"] = csv.ReadOptions(
            block_size=_SMALL_BLOCK if self._is_limited else _BLOCK,
            use_threads=not self._is_limited,
            column_names=[*dialect.names],
            skip_rows=dialect.n_lines,
        )
        how["parse_options"] = csv.ParseOptions(
            delimiter=dialect.separator, newlines_in_values=dialect.has_quotes
        )
        how["convert_options"] = csv.ConvertOptions(
            strings_can_be_null=True,
            null_values=[*missing],
            include_columns=names,
            column_types=dict.fromkeys(names, pa.binary()),  # Their encoding is checked later.
        )
        try:
            with (
                self._text.open() as (stream, fraction),
                csv.open_csv(stream, **how) as parser,
            ):
                for block in parser:
                    columns = [
                        self._text.convert_to_strings(block.column(name), name) for name in names
                    ]
                    yield pa.RecordBatch.from_arrays(columns, [*names]), fraction()
        except pa.ArrowInvalid as error:
            if not re.search(r"Expected \d+ columns", str(error)):
                raise
            how_to = "name" if self.source.separator is None else "correct or leave out"
            raise ValueError(
                f"{self.name} has {len(dialect.names):,} columns, but "
                f"{self._text.find_ragged_row()}; mend or remove this row, or {how_to} the separator, "
                "separator= (--separator)"
            ) from None
