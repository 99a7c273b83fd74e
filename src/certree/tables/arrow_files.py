"""Read ranges of rows from Arrow (IPC) files, without mapping them to memory.

A mapped file that is truncated while it is read ends the interpreter with a bus error, which no code
can catch. Arrow itself reads a record batch as a whole, and a file may have a single one. So the places
of its buffers are read from its metadata, and of each column only the bytes of the rows asked for.

The layout is that of the Arrow columnar format, "File.fbs", "Message.fbs" and "Schema.fbs"
(https://arrow.apache.org/docs/format/Columnar.html).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from certree.tables.arrow import ipc, pa, pc

# Bytes: the mark at the start of a file, and what precedes the metadata of a message.
_MAGIC, _PREFIX = 8, 8
# Numbers of fields in tables of flatbuffers.
_SCHEMA, _DICTIONARIES, _RECORD_BATCHES = 1, 2, 3  # of a footer
_HEADER, _ENDIANNESS = 2, 0  # of a message, and of a schema
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3  # of a record batch


class _Flatbuffer:
    """A table of a flatbuffer, the binary format of Arrow's metadata; its fields are numbered.

    Parameters
    ----------
    data : bytes
        The flatbuffer, which may contain several tables.
    place : int or None
        Index of the table's first byte in data; None: the first four bytes of data state it.
    """

    def __init__(self, data: bytes, place: int | None = None) -> None:
        self._data = data
        self._place = self._number("<I", 0) if place is None else place

    def _number(self, form: str, place: int) -> int:
        (number,) = struct.unpack_from(form, self._data, place)
        return int(number)

    def _field(self, number: int) -> int | None:
        """Return the index of the field's first byte in the data; None: the field has its default.

        number: number of the field.
        """
        vtable = self._place - self._number("<i", self._place)
        slot = 4 + 2 * number
        if slot >= self._number("<H", vtable):
            return None
        offset = self._number("<H", vtable + slot)
        return self._place + offset if offset else None

    def integer(self, number: int, form: str) -> int:
        """Return the integer in the field `number`, 0 if the field is missing.

        form: its format, as in Python's module `struct`.
        """
        place = self._field(number)
        return 0 if place is None else self._number(form, place)

    def table(self, number: int) -> _Flatbuffer | None:
        """Return the table that the field `number` refers to; None if the field is missing."""
        place = self._field(number)
        if place is None:
            return None
        return _Flatbuffer(self._data, place + self._number("<I", place))

    def structs(self, number: int, form: str) -> list[tuple[int, ...]]:
        """Return the structs in the field `number`, each a tuple; [] if the field is missing.

        form: format of a struct, as in Python's module `struct`. Raise struct.error if the structs
        extend beyond the end of the data.
        """
        place = self._field(number)
        if place is None:
            return []
        start = place + self._number("<I", place)
        n, size = self._number("<I", start), struct.calcsize(form)
        content = self._data[start + 4 : start + 4 + n * size]
        if len(content) < n * size:
            raise struct.error("a vector lies beyond the end")
        return [*struct.iter_unpack(form, content)]


class _BatchLayout(NamedTuple):
    """Number of rows of a record batch, and the positions of its buffers in the file.

    Attributes
    ----------
    n_rows : int
        Number of rows of the batch.
    body : int
        Position of the first byte of the buffers in the file.
    buffers : list of (int, int)
        For each buffer of all columns, in order: its position, counted from `body`, and its number
        of bytes.
    is_compressed : bool
        Whether buffers are compressed.
    """

    n_rows: int
    body: int
    buffers: list[tuple[int, ...]]
    is_compressed: bool


class ArrowFile:
    """An open Arrow (IPC) file, whose rows are read in ranges; it is a context manager.

    The constructor opens the file, and the end of the with statement closes it. Methods raise
    `pyarrow.ArrowInvalid` if the file is damaged.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns.

    Raises
    ------
    pyarrow.ArrowException, OSError
        If the file is no Arrow file, is damaged or is truncated.
    """

    def __init__(self, path: Path) -> None:
        self._file = pa.OSFile(str(path), "r")
        try:
            self._size = self._file.size()
            self.schema: pa.Schema = ipc.open_file(self._file).schema
            (n_footer,) = struct.unpack("<i", self._bytes(self._size - 10, 4))
            footer = _Flatbuffer(self._bytes(self._size - 10 - n_footer, n_footer))
            schema = footer.table(_SCHEMA)
            self._is_big_endian = schema is not None and schema.integer(_ENDIANNESS, "<h") != 0
            # Of each message: its first byte, and bytes of its metadata and of its body behind these.
            batches = footer.structs(_RECORD_BATCHES, "<qi4xq")
            self._dictionaries = footer.structs(_DICTIONARIES, "<qi4xq")
            self._layouts = [self._layout(*one) for one in batches]
        except struct.error:
            self._file.close()
            raise pa.ArrowInvalid(
                "the metadata of the file is damaged: write or download the file again"
            ) from None
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def lengths(self) -> list[int]:
        """Return the number of rows of each record batch of the file, in order."""
        return [one.n_rows for one in self._layouts]

    def read_ranges(
        self, columns: Sequence[str], number: int, n_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read a record batch of the file in ranges of rows.

        Parameters
        ----------
        columns : sequence of str
            Names of the columns to read.
        number : int
            Index of the record batch in the file.
        n_rows : int
            Number of rows of a range; the last range may have fewer.

        Yields
        ------
        pyarrow.RecordBatch
            The next n_rows rows, with these columns.
        """
        n = self._layouts[number].n_rows
        whole = None if self.can_read_ranges(number) else self.read_batch(columns, number)
        for start in range(0, n, n_rows):
            stop = min(start + n_rows, n)
            if whole is not None:
                yield whole.slice(start, n_rows)
                continue
            arrays = [self._column(name, number, start, stop) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))

    def can_read_ranges(self, number: int) -> bool:
        """Return whether `read_ranges` reads only the bytes of the rows of a range.

        Otherwise it reads the whole record batch first: if the batch is compressed, or the file has
        nested types or numbers in big-endian order. number: index of the record batch.
        """
        if self._is_big_endian or self._layouts[number].is_compressed:
            return False
        return None not in self._n_buffers

    def read_batch(self, columns: Sequence[str], number: int) -> pa.RecordBatch:
        """Read all rows of a record batch.

        columns: names of the columns to read. number: index of the record batch in the file.
        """
        numbers = [self.schema.get_field_index(name) for name in columns]
        how = ipc.IpcReadOptions(included_fields=sorted(numbers))
        batch = ipc.open_file(self._file, options=how).get_batch(number)
        if len(batch) != self._layouts[number].n_rows:
            raise pa.ArrowInvalid(
                "the metadata of the file is damaged: write or download the file again"
            )
        return batch.select(list(columns))

    def bytes_of_dictionaries(self, columns: Sequence[str]) -> int:
        """Return the number of bytes in memory of the categories of dictionary-encoded columns.

        columns: names of the columns to add up; columns that are not dictionary-encoded add 0.
        """
        named = [one for one in columns if pa.types.is_dictionary(self.schema.field(one).type)]
        return sum(self._categories[name].nbytes for name in named)

    def _bytes(self, offset: int, n: int) -> bytes:
        content: bytes = self._buffer(offset, n).to_pybytes()
        return content

    def _buffer(self, offset: int, n: int) -> Any:
        """Return n bytes of the file from the byte `offset` on, as a `pyarrow.Buffer`.

        Raise `pyarrow.ArrowInvalid` if the file does not have these bytes.
        """
        if offset < 0 or n < 0 or offset + n > self._size:
            raise pa.ArrowInvalid(
                "the metadata of the file is damaged, as it names bytes beyond the end of the "
                "file: write or download the file again"
            )
        self._file.seek(offset)
        buffer = self._file.read_buffer(n)
        if len(buffer) < n:
            raise pa.ArrowInvalid(
                "the file has been truncated since it was opened: do not write to it while it is read"
            )
        return buffer

    def _layout(self, offset: int, n_metadata: int, n_body: int) -> _BatchLayout:
        """Read the layout of a record batch from the metadata of its message, and return it.

        offset: position of the message in the file. n_metadata: number of bytes of its metadata.
        n_body: number of bytes behind the metadata; not read. Raise struct.error if the metadata is
        damaged.
        """
        del n_body
        content = self._bytes(offset, n_metadata)
        # Files of before 2019 have no mark in front of the length.
        is_marked = content[:4] == b"\xff\xff\xff\xff"
        header = _Flatbuffer(content[_PREFIX if is_marked else 4 :]).table(_HEADER)
        if header is None:
            raise struct.error("a message has no header")
        n_rows, buffers = header.integer(_LENGTH, "<q"), header.structs(_BUFFERS, "<qq")
        if n_rows < 0:
            raise struct.error("a record batch has a negative length")
        is_compressed = header.table(_COMPRESSION) is not None
        return _BatchLayout(n_rows, offset + n_metadata, buffers, is_compressed)

    @cached_property
    def _n_buffers(self) -> list[int | None]:
        """Number of buffers that Arrow stores for each column of the schema; None for nested types.

        `read_ranges` reads whole record batches if there is a nested type.
        """
        return [self._buffers_of(one.type) for one in self.schema]

    def _buffers_of(self, kind: Any) -> int | None:
        if pa.types.is_null(kind):
            return 0
        if self._has_offsets(kind):
            return 3
        of = pa.types
        is_fixed = of.is_primitive(kind) or of.is_decimal(kind) or of.is_fixed_size_binary(kind)
        return 2 if is_fixed or of.is_dictionary(kind) else None

    def _has_offsets(self, kind: Any) -> bool:
        is_small = pa.types.is_string(kind) or pa.types.is_binary(kind)
        return bool(is_small or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))

    def _column(self, name: str, number: int, start: int, stop: int) -> pa.Array:
        """Read the rows start, ..., stop - 1 of a column of a record batch; return an Arrow array.

        name: name of the column. number: index of the record batch, for which `can_read_ranges` is
        True.
        """
        j = self.schema.get_field_index(name)
        kind = self.schema.field(j).type
        if pa.types.is_null(kind):
            return pa.nulls(stop - start)
        first = sum(n or 0 for n in self._n_buffers[:j])
        stored = kind.index_type if pa.types.is_dictionary(kind) else kind
        # All buffers begin at the same row, and those of bits at a whole byte.
        shift = start % 8
        begin = start - shift
        # Nothing says that values are missing where none are.
        has_validity = any(n for _, n in self._layouts[number].buffers[first : first + 1])
        validity = self._range(number, first, begin // 8, -(-stop // 8)) if has_validity else None
        buffers = [validity, *self._values(number, first + 1, stored, begin, stop)]
        array = pa.Array.from_buffers(stored, stop - start, buffers, offset=shift)
        array.validate(full=True)
        if stored is kind:
            return array
        categories = self._categories[name]
        return pa.DictionaryArray.from_arrays(array, categories, ordered=kind.ordered)

    def _values(self, number: int, k: int, kind: Any, begin: int, stop: int) -> list[Any]:
        """Return the Arrow buffers of the values of a column in the rows begin, ..., stop - 1.

        The list has one buffer of numbers, or two for texts: offsets and characters. number: index
        of the record batch. k: index of the first of these buffers in the batch. kind: pyarrow type
        of the values. begin: a multiple of 8.
        """
        if not self._has_offsets(kind):
            if pa.types.is_boolean(kind):
                return [self._range(number, k, begin // 8, -(-stop // 8))]
            width = kind.bit_width // 8
            return [self._range(number, k, begin * width, stop * width)]
        is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        width = 8 if is_large else 4
        raw = self._range(number, k, begin * width, (stop + 1) * width)
        ends = pa.Array.from_buffers(
            pa.int64() if is_large else pa.int32(), stop + 1 - begin, [None, raw]
        )
        words = self._range(number, k + 1, ends[0].as_py(), ends[-1].as_py())
        return [pc.subtract(ends, ends[0]).buffers()[1], words]

    def _range(self, number: int, k: int, start: int, stop: int) -> Any:
        """Return the bytes start, ..., stop - 1 of a buffer of a record batch, as a `pyarrow.Buffer`.

        number: index of the record batch. k: index of the buffer among those of the batch.
        """
        layout = self._layouts[number]
        if k >= len(layout.buffers) or not 0 <= start <= stop <= layout.buffers[k][1]:
            raise pa.ArrowInvalid(
                "the metadata of the file is damaged, as a buffer is too short for its rows: write "
                "or download the file again"
            )
        return self._buffer(layout.body + layout.buffers[k][0] + start, stop - start)

    @cached_property
    def _categories(self) -> dict[str, pa.Array]:
        """Return the categories of each dictionary-encoded column, by its name.

        Arrow reads them from a stream with the same schema and dictionaries, and no rows.
        """
        (mark, n) = struct.unpack("<Ii", self._bytes(_MAGIC, _PREFIX))
        n_schema = n + _PREFIX if mark == 0xFFFFFFFF else mark + 4
        empty = self.schema.empty_table().combine_chunks()
        stream = pa.BufferOutputStream()
        stream.write(self._buffer(_MAGIC, n_schema))
        for offset, n_metadata, n_body in self._dictionaries:
            stream.write(self._buffer(offset, n_metadata + n_body))
        arrays = [pa.concat_arrays(one.chunks) for one in empty.columns]
        stream.write(pa.RecordBatch.from_arrays(arrays, schema=self.schema).serialize())
        batches = [*ipc.open_stream(stream.getvalue())]
        if not batches:
            raise pa.ArrowInvalid(
                "the metadata of the file is damaged, as a dictionary ends early: write or "
                "download the file again"
            )
        is_dictionary = pa.types.is_dictionary
        return {
            one.name: batches[0].column(j).dictionary
            for j, one in enumerate(self.schema)
            if is_dictionary(one.type)
        }
