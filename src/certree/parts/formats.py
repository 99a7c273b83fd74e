"""Formats of tables in files: each gives columns batch by batch, and says what this holds in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certree.interface.extras import import_extra
from certree.parts.arrow_files import ArrowFile

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes of a file of text that are read at a time; and where memory is limited, as are bytes of a column
# of Parquet.
_BLOCK, _SMALL_BLOCK, _BUFFER = 2**24, 2**20, 2**16
# Pages of a column that are held at a time, of its words and of its values; bytes that most writers
# give them; rows that show how large they are; and how much larger others may be.
_PAGES, _PAGE, FIRST_ROWS, SPARE = 2, 2**20, 2**10, 1.3
# Blocks of text that are held at a time, with what is made of them.
_BLOCKS = 12
# Which row groups or batches of a file, or fragments of a data set; None: all.
Piece = list[int] | None


def _runs(sizes: list[int], n_rows: int) -> list[Piece]:
    """Pieces that stand beside each other, of at most so many rows or of one."""
    runs: list[list[int]] = []
    held = 0
    for i, n in enumerate(sizes):
        if not runs or held + n > n_rows:
            runs.append([])
            held = 0
        runs[-1].append(i)
        held += n
    return [*runs]


class Format:
    """A file of some format; where memory is limited it is read piece by piece, by one thread."""

    def __init__(self, path: Path, is_limited: bool) -> None:
        self._path, self._is_limited = path, is_limited

    def look(self) -> tuple[pa.Schema, int]:
        """Its columns, and how many rows it has."""
        raise NotImplementedError

    def pieces(self, n_rows: int) -> list[Piece]:  # noqa: ARG002 -- of what cannot be divided
        """What can be read apart, of about so many rows each."""
        return [None]

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        """Batches of all, or of a piece, of at most so many rows."""
        raise NotImplementedError

    def held(self, columns: list[str]) -> int:
        """Bytes that this takes at a time where memory is limited, beside the rows that are read."""
        raise NotImplementedError


class _Parquet(Format):
    def _file(self) -> Any:
        # Without a buffer all that is read of a row group is held, however few rows are asked for.
        how: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False}
        kind = import_extra("pyarrow.parquet", "files").ParquetFile
        return kind(self._path, **(how if self._is_limited else {}))

    def look(self) -> tuple[pa.Schema, int]:
        with self._file() as file:
            return file.schema_arrow, file.metadata.num_rows

    def pieces(self, n_rows: int) -> list[Piece]:
        with self._file() as file:
            about, n = file.metadata, file.num_row_groups
            return _runs([about.row_group(i).num_rows for i in range(n)], n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        how = {"row_groups": piece, "columns": columns, "use_threads": not self._is_limited}
        with self._file() as file:
            yield from file.iter_batches(n_rows, **how)

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
    def look(self) -> tuple[pa.Schema, int]:
        with ArrowFile(self._path) as file:
            return file.schema, sum(file.lengths)

    def pieces(self, n_rows: int) -> list[Piece]:
        with ArrowFile(self._path) as file:
            return _runs(file.lengths, n_rows)

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        with ArrowFile(self._path) as file:
            for i in range(len(file.lengths)) if piece is None else piece:
                yield from file.ranges(columns, i, n_rows)

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
            # Ends of texts are copied, a buffer of each column at a time.
            return 2 * (most + file.bytes_of_dictionaries(columns)) + 2 * _BUFFER * len(columns)


class _Text(Format):
    """CSV, whose types are those that all values have, wherever they stand."""

    def _read(self, **how: Any) -> Any:
        csv = import_extra("pyarrow.csv", "files")
        delimiter = "\t" if ".tsv" in self._path.name.lower() else ","
        return csv.open_csv(
            self._path,
            read_options=csv.ReadOptions(
                block_size=_SMALL_BLOCK if self._is_limited else _BLOCK,
                use_threads=not self._is_limited,
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, **how),
        )

    def look(self) -> tuple[pa.Schema, int]:
        pa, n_rows = import_extra("pyarrow", "files"), 0
        with self._read() as first:
            names = first.schema.names
        seen: dict[str, Any] = dict.fromkeys(names, pa.null())
        with self._read(column_types=dict.fromkeys(names, pa.string())) as blocks:
            for block in blocks:
                n_rows += len(block)
                for name in names:
                    seen[name] = _type_of_text(block.column(name), seen[name])
        return pa.schema(seen.items()), n_rows

    def batches(self, columns: list[str], n_rows: int, piece: Piece = None) -> Iterator[Any]:
        del piece
        pa = import_extra("pyarrow", "files")
        types = dict.fromkeys(columns, pa.string())
        with self._read(column_types=types, include_columns=columns) as blocks:
            for block in blocks:
                for start in range(0, len(block), n_rows):
                    yield block.slice(start, n_rows)

    def held(self, columns: list[str]) -> int:
        del columns
        return _BLOCKS * _SMALL_BLOCK


def format_of(path: Path) -> type[Format]:
    """The format that a suffix names."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return _Parquet
    return _Arrow if name.endswith((".arrow", ".feather")) else _Text


def _type_of_text(column: Any, before: Any) -> Any:
    """The first of the types that text may mean, in their order, which holds all that has been seen."""
    pa = import_extra("pyarrow", "files")
    kinds = [pa.null(), pa.int64(), pa.float64(), pa.string()]
    if pa.types.is_boolean(before):
        kinds = [pa.bool_(), pa.string()]
    for kind in kinds[kinds.index(before) if before in kinds else 0 :]:
        if pa.types.is_null(kind):
            if column.null_count == len(column):
                return kind
            if _can_be(column, pa.bool_()) and not _can_be(column, pa.int64()):
                return pa.bool_()
        elif _can_be(column, kind):
            return kind
    return pa.string()


def _can_be(column: Any, kind: Any) -> bool:
    pa = import_extra("pyarrow", "files")
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
