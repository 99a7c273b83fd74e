"""The text of CSV files and of standard input: its encoding, its delimiter, and zero bytes."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from certree.interface.extras import import_extra

# The path that stands for standard input or output, and its name in messages.
STANDARD_STREAM, STANDARD_INPUT = "-", "standard input"
# Texts that are missing values in every column, quoted or not. The list is PyArrow's default, which
# later versions may change.
MISSING_MARKERS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
# Bytes at the start of a file that are checked before it is parsed, and bytes decoded at a time.
_HEAD, _DECODED = 2**16, 2**20
# Byte order marks and their encodings. UTF-32 comes first, as its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class CsvText:
    """The text of a CSV file or of standard input, which is checked whenever it is opened.

    `open` gives the text as a stream; a parser of CSV reads it. Text in UTF-16 or UTF-32 is
    converted to UTF-8 in memory; text in UTF-8 is streamed.

    Parameters
    ----------
    path : Path
        The file. Columns are separated by tabs if its suffix is ``.tsv`` or ``.tsv.gz``, else by
        commas. It is decompressed if its suffix is ``.gz``.
    content : bytes or None
        The whole text, if it came from standard input; None: it is read from the file.
    is_limited : bool
        Whether `open` raises a ValueError for files that it must hold in memory, those in UTF-16 or
        UTF-32.

    Attributes
    ----------
    name : str
        The path, or "standard input", for messages.
    delimiter : str
        A tab or a comma.
    """

    def __init__(self, path: Path, content: bytes | None = None, is_limited: bool = False) -> None:
        self.name = get_display_name(path)
        self.delimiter = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","
        self._path, self._is_limited = path, is_limited
        self._content = content if content is None else self._decode(content)

    @contextmanager
    def open(self) -> Iterator[tuple[Any, Callable[[], float]]]:
        """Open the text for the body of a with statement.

        Yield an Arrow stream of the text in UTF-8, and a function without arguments that returns the
        fraction of the file that has been read so far. Raise ValueError if the text is in an
        encoding other than its byte order mark states, is binary, or has another delimiter.
        """
        if self._content is None:
            with self._open_file() as (stream, _):
                head = stream.read(_HEAD)
            if _find_encoding(head) is not None:
                self._content = head = self._decode_file()
        else:
            head = self._content
        self._check(head[:_HEAD])
        if self._content is not None:
            yield _copy_to_arrow_memory(self._content), partial(float, 1)
            return
        with self._open_file() as (stream, place):
            size = max(self._path.stat().st_size, 1)
            yield stream, lambda: min(place() / size, 1.0)

    def expect_no_zeros(self, values: Any) -> None:
        """Raise ValueError if any text of a column has a zero byte, as binary files do.

        values: the texts, an Arrow array of type binary.
        """
        _, ends, words = values.buffers()
        if words is None or not len(values):
            return
        first, last = np.frombuffer(ends, np.int32)[[values.offset, values.offset + len(values)]]
        if not np.frombuffer(words, np.uint8)[first:last].all():
            raise self._create_zeros_error()

    def create_encoding_error(self, column: str | None) -> ValueError:
        """Return, without raising it, the ValueError for text that is not in UTF-8.

        column: name of the column with the text, for the message; None: it is in the column names.
        """
        where = "its column names are" if column is None else f"column {column!r} is"
        return ValueError(
            f"{self.name} must be text in UTF-8, but {where} in another encoding, such as latin-1: "
            "save it as UTF-8"
        )

    def _check(self, head: bytes) -> None:
        """Raise ValueError if text has zero bytes, or its first line another delimiter.

        head: start of the text. A first line with quotes is not searched for delimiters.
        """
        if b"\0" in head:
            raise self._create_zeros_error()
        first = head.partition(b"\n")[0]
        if self.delimiter.encode() in first or b'"' in first:
            return
        words = {"\t": "tabs", ",": "commas", ";": "semicolons"}
        for other in (";", "\t"):
            if other.encode() in first:
                raise ValueError(
                    f"the columns of {self.name} must be separated by {words[self.delimiter]}, but "
                    f"its first line has {words[other]} instead"
                )

    def _create_zeros_error(self) -> ValueError:
        return ValueError(
            f"{self.name} must be text in UTF-8, but contains zero bytes: it is a binary file, or "
            "text in UTF-16 without a byte order mark; save it as UTF-8"
        )

    @contextmanager
    def _open_file(self) -> Iterator[tuple[Any, Callable[[], int]]]:
        """Open the file for the body of a with statement.

        Yield an Arrow stream of its decompressed bytes, and a function without arguments that
        returns how many (compressed) bytes of the file have been read.
        """
        pa = import_extra("pyarrow", "files")
        with pa.OSFile(str(self._path), "r") as raw:
            is_compressed = self._path.name.lower().endswith(".gz")
            yield pa.CompressedInputStream(raw, "gzip") if is_compressed else raw, raw.tell

    def _decode_file(self) -> bytes:
        """Read the whole file, which has a byte order mark, and return its text in UTF-8."""
        if self._is_limited:
            raise ValueError(
                f"with memory_limit, CSV files must be text in UTF-8, but {self.name} has the byte "
                "order mark of another encoding: save it as UTF-8"
            )
        with self._open_file() as (stream, _):
            return self._decode(stream.read())

    def _decode(self, content: bytes) -> bytes:
        """Convert text to UTF-8 if it starts with the byte order mark of UTF-16 or UTF-32.

        Text without such a mark is returned unchanged. Raise ValueError if the bytes are no text in
        the encoding of the mark.
        """
        encoding = _find_encoding(content)
        if encoding is None:
            return content
        decoder, found = codecs.getincrementaldecoder(encoding)(), bytearray()
        try:
            for start in range(0, len(content), _DECODED):
                found += decoder.decode(content[start : start + _DECODED]).encode()
            decoder.decode(b"", final=True)
        except UnicodeError:
            raise ValueError(
                f"{self.name} has the byte order mark of {encoding.upper()}, but its bytes are no "
                "text in this encoding: save it as UTF-8"
            ) from None
        return bytes(found)


def get_display_name(path: Path) -> str:
    """Return the name of a file in messages: its path, or "standard input" for "-"."""
    return STANDARD_INPUT if str(path) == STANDARD_STREAM else str(path)


def read_standard_input() -> bytes:
    """Read all bytes of standard input."""
    content: bytes = sys.stdin.buffer.read()
    return content


def _find_encoding(content: bytes) -> str | None:
    """Return the encoding that a byte order mark states, "utf-16" or "utf-32"; None without one."""
    return next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)


def _copy_to_arrow_memory(content: bytes) -> Any:
    """Copy bytes (content) to memory that Arrow allocates; return a `pyarrow.BufferReader` of them.

    Arrow's threads may release the memory that they have read while the Python interpreter shuts
    down. If that memory belonged to a Python object, the process would abort.
    """
    pa = import_extra("pyarrow", "files")
    memory = pa.allocate_buffer(len(content))
    pa.FixedSizeBufferWriter(memory).write(content)
    return pa.BufferReader(memory)
