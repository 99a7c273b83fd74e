"""Read the text of CSV files and of standard input: find encoding and dialect, refuse zero bytes."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from certree.tables.arrow import pa, pc
from certree.tables.csv_dialects import (
    EIGHT_BITS,
    CsvDialect,
    count_characters,
    find_dialect,
    find_encoding,
    is_eight_bits,
)
from certree.tables.table_source import TableSource

# The path that stands for standard input or output, and its name in messages.
STANDARD_STREAM, STANDARD_INPUT = "-", "standard input"
# Texts that are missing values in every column, quoted or not. The list is PyArrow's default, which
# later versions may change.
MISSING_MARKERS = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
    )
)
# Bytes at the start of a file from which its dialect is found; the same if its header is longer; and
# bytes decoded at a time.
_HEAD, _LONG_HEAD, _DECODED = 2**16, 2**24, 2**20
# Largest fraction of valid characters in UTF-8 among those of text in another encoding.
_FEW = 0.05


class CsvText:
    """The text of a CSV file or of standard input, which is checked whenever it is opened.

    Text in UTF-8, and in encodings of one byte for each character, is streamed. Text in others,
    such as UTF-16, is converted to UTF-8 in memory.

    Parameters
    ----------
    path : Path
        The file. It is decompressed if its suffix is ``.gz``.
    source : TableSource
        Options of reading that the user has stated, such as the encoding, and the format of the CSV
        files of a fitted model.
    content : bytes or None
        The whole text, if it came from standard input; None: it is read from the file.
    is_limited : bool
        True if the fit has a memory limit: `open` then raises a ValueError for text in UTF-16 or
        UTF-32, which it would have to hold in memory.

    Attributes
    ----------
    name : str
        The path, or "standard input", for messages.
    usual_separator : str
        The separator that the suffix of the file states: a tab for .tsv, else a comma.
    """

    def __init__(
        self,
        path: Path,
        source: TableSource,
        content: bytes | None = None,
        is_limited: bool = False,
    ) -> None:
        self.name = get_display_name(path)
        self._path, self._source, self._is_limited = path, source, is_limited
        self._content, self._is_compressed = content, path.name.lower().endswith(".gz")
        self.usual_separator = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","

    @cached_property
    def dialect(self) -> CsvDialect:
        """How the file is divided into lines, values and a header, as its first lines show it.

        A `CsvDialect` has the encoding, the separator of values, the names of the columns, the
        numbers of lines above the first row and above the header, and whether values have quotes.
        """
        encoding = self._find_encoding(self._read_head(_HEAD))
        preferred = self._source.stored.separator or self.usual_separator
        for size in (_HEAD, _LONG_HEAD):
            head = self._read_head(size)
            # A character that is cut off at the end is left out.
            text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
            if len(head) == size:
                text = text[: text.rfind("\n") + 1]
            dialect = find_dialect(text, encoding, preferred, self._source.separator)
            if dialect.has_rows or len(head) < size:
                return dialect
        return replace(dialect, has_rows=True)

    def _find_encoding(self, head: bytes) -> str:
        """Return the name of the file's encoding, such as "utf-8".

        It is the encoding that the user stated, else the one that the first bytes show. If these
        show only that a character has 8 bits, or nothing, it is that of the model's training files;
        without a model, UTF-8. head: the first bytes. Raise a ValueError if they contain zeros and
        match no encoding.
        """
        if self._source.encoding is not None:
            return self._source.encoding
        found, stored = find_encoding(head), self._source.stored.encoding
        if found is None and b"\0" in head:
            raise self._create_zeros_error(None)
        if found in (None, EIGHT_BITS) and stored is not None and is_eight_bits(stored):
            return stored
        return found or "utf-8"

    @contextmanager
    def open(self) -> Iterator[tuple[Any, Callable[[], float]]]:
        """Open the text for the body of a with statement.

        Yield an Arrow stream of the text, and a function without arguments that returns the fraction
        of the file that has been read so far. The text is in UTF-8, or in the encoding of the
        dialect if this has one byte for each character. Raise ValueError if the text is in an
        encoding other than its byte order mark states, or is binary.
        """
        content = self._content
        if self._is_decoded(self.dialect.encoding):
            content = self._decode(self.dialect.encoding)
        head = self._read_head(_HEAD) if content is None else content[:_HEAD]
        if b"\0" in head:
            raise self._create_zeros_error(None)
        if content is not None:
            yield _copy_to_arrow_memory(content), partial(float, 1)
            return
        with pa.OSFile(str(self._path), "r") as raw:
            size = max(raw.size(), 1)
            stream = pa.CompressedInputStream(raw, "gzip") if self._is_compressed else raw
            yield stream, lambda: min(raw.tell() / size, 1.0)

    def convert_to_strings(self, values: Any, column: str) -> Any:
        """Convert values of a column, an Arrow array of type binary, to strings.

        values: texts in the encoding of the file; column: name of the column, for messages. Return
        an Arrow array of type string; nulls stay null. If the first bytes looked like UTF-8 but
        those of the column show that the file is in Windows-1252, `dialect` changes. Raise
        ValueError if a value has a zero byte, or is no text in the encoding of the file.
        """
        _, ends, words = values.buffers()
        if words is None or not len(values):
            return values.cast(pa.string())
        offsets = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
        data = np.frombuffer(words, np.uint8)[offsets[0] : offsets[-1]]
        if not data.all():
            raise self._create_zeros_error(column)
        encoding = self.dialect.encoding
        if self._is_decoded(encoding) or codecs.lookup(encoding).name == "utf-8":
            try:
                return values.cast(pa.string())
            except pa.ArrowInvalid:
                self._expect_other_encoding(column)
                encoding = self.dialect.encoding
        if not len(data) or data.max() < 128:
            return values.cast(pa.string())
        return _transcode(
            values, offsets, data, encoding, partial(self._create_bytes_error, column)
        )

    def _expect_other_encoding(self, column: str) -> None:
        """Set the encoding to Windows-1252 if the bytes of a column show that it is not UTF-8.

        Raise a ValueError if the user has stated the encoding, or other values of the file are
        UTF-8. column: name of the column with bytes that are not UTF-8.
        """
        n_valid, n_invalid = 0, 0
        if self._source.encoding is None and not self._is_decoded(self.dialect.encoding):
            with self._open_bytes() as stream:
                while content := stream.read(_LONG_HEAD):
                    more = count_characters(content)
                    n_valid, n_invalid = n_valid + more[0], n_invalid + more[1]
        if n_invalid == 0 or n_valid > _FEW * n_invalid:
            raise ValueError(
                f"{self.name} must be text in one encoding, but column {column!r} has bytes that are "
                f"not {self.dialect.encoding.upper()}: name the encoding by encoding= (--encoding), "
                "such as latin-1, or save the file as UTF-8"
            )
        self.dialect = replace(self.dialect, encoding=EIGHT_BITS)

    def find_ragged_row(self) -> str:
        """Describe the first row that has more or fewer values than the header, for a message.

        The text is, for instance, "line 7 has 3: 'a;b;c'", with the number of the line and of its
        values; or "another row has more or fewer" if none is found.
        """
        dialect = self.dialect
        n = len(dialect.names)
        with self._open_bytes() as stream:
            # Text that is converted in memory is read in UTF-8.
            encoding = "utf-8" if self._is_decoded(dialect.encoding) else dialect.encoding
            lines = io.TextIOWrapper(stream, encoding, errors="replace", newline="")
            for _ in range(dialect.n_lines):
                next(lines)
            reader = csv.reader(lines, delimiter=dialect.separator)
            for values in reader:
                if values and len(values) != n:
                    line = dialect.n_lines + reader.line_num
                    shown = dialect.separator.join(values)[:60]
                    return f"line {line:,} has {len(values):,}: {shown!r}"
        return "another row has more or fewer"

    def _open_bytes(self) -> Any:
        """Open the text and return a binary file object: decompressed, and in UTF-8 if it is converted.

        Text in encodings such as UTF-16 is converted in memory.
        """
        if self._is_decoded(self.dialect.encoding):
            return io.BytesIO(self._decode(self.dialect.encoding))
        return self._open_raw()

    def _read_head(self, size: int) -> bytes:
        """Return the first `size` bytes of the file, or all if it has fewer, after decompression."""
        with self._open_raw() as stream:
            head: bytes = stream.read(size)
        return head

    def _create_zeros_error(self, column: str | None) -> ValueError:
        """Return the error for text with zero bytes, without raising it.

        column: name of the column that contains them; None: they are at the start of the file.
        """
        where = "it" if column is None else f"column {column!r}"
        return ValueError(
            f"{self.name} must be text, but {where} contains zero bytes: the file is binary, or "
            "partly in UTF-16; save it as UTF-8, or name its encoding by encoding= (--encoding)"
        )

    def _create_bytes_error(self, column: str) -> ValueError:
        """Return, without raising it, the error for bytes that are not in the file's encoding.

        column: name of the column that contains them.
        """
        return ValueError(
            f"{self.name} must be text in {self.dialect.encoding.upper()}, but column {column!r} has "
            "bytes that are no characters of it: name the encoding by encoding= (--encoding), such "
            "as cp850, or save the file as UTF-8"
        )

    def _is_decoded(self, encoding: str) -> bool:
        """Return whether text in an encoding is converted in memory before it is parsed.

        This is so for encodings other than UTF-8 in which a character may have several bytes, such
        as UTF-16. encoding: name of the encoding.
        """
        return codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig") and not is_eight_bits(
            encoding
        )

    def _decode(self, encoding: str) -> bytes:
        """Read the whole text and convert it to UTF-8; return the bytes.

        encoding: encoding of the text, such as UTF-16. Raise a ValueError if bytes are no text in
        it, or if memory is limited.
        """
        if self._is_limited:
            raise ValueError(
                "memory_limit takes CSV files in UTF-8, or with one byte for each character, but "
                f"{self.name} has the encoding {encoding.upper()}: save it as UTF-8"
            )
        decoder, found = codecs.getincrementaldecoder(encoding)(), bytearray()
        try:
            with self._open_raw() as stream:
                while content := stream.read(_DECODED):
                    found += decoder.decode(content).encode()
            decoder.decode(b"", final=True)
        except UnicodeError:
            raise ValueError(
                f"{self.name} was taken for text in {encoding.upper()}, but its bytes are no text in "
                "this encoding: save it as UTF-8, or name its encoding by encoding= (--encoding)"
            ) from None
        return bytes(found)

    def _open_raw(self) -> Any:
        """Open the file, and return a binary file object: decompressed, in the encoding of the file."""
        if self._content is not None:
            return io.BytesIO(self._content)
        return gzip.open(self._path) if self._is_compressed else self._path.open("rb")


def get_display_name(path: Any) -> str:
    """Return the name of a file in messages: its path, or "standard input" for "-"."""
    return STANDARD_INPUT if str(path) == STANDARD_STREAM else str(path)


def _transcode(
    values: Any, offsets: Any, data: Any, encoding: str, create_error: Callable[[], ValueError]
) -> Any:
    """Convert text with one byte for each character to strings.

    Parameters
    ----------
    values : pyarrow.Array of type binary
        The texts.
    offsets : ndarray of int32, shape (n + 1,)
        Position of the first byte of each of the n texts, and the end of the last one.
    data : ndarray of uint8
        The bytes of all texts; its first byte has the position ``offsets[0]``.
    encoding : str
        Encoding of the texts.
    create_error : callable
        Function without arguments that returns the error to raise if a byte is no character.

    Returns
    -------
    pyarrow.Array of strings
    """
    sizes = np.array(
        [len(bytes([byte]).decode(encoding, "ignore").encode()) for byte in range(256)], np.int32
    )
    of_each = sizes[data]
    if not of_each.all():
        raise create_error()
    ends = np.concatenate([[0], np.cumsum(of_each)])[offsets - offsets[0]].astype(np.int32)
    text = data.tobytes().decode(encoding).encode()
    found = pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(text))
    return pc.if_else(values.is_valid(), found, None) if values.null_count else found


def _copy_to_arrow_memory(content: bytes) -> Any:
    """Copy bytes to memory that Arrow allocates; return a `pyarrow.BufferReader` of them.

    Arrow's threads may release the memory that they have read while the Python interpreter shuts
    down. If that memory belonged to a Python object, the process would abort. content: the bytes.
    """
    memory = pa.allocate_buffer(len(content))
    pa.FixedSizeBufferWriter(memory).write(content)
    return pa.BufferReader(memory)
