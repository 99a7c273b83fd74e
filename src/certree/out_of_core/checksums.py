"""Checksums of rows that are read more than once, by which changed files are noticed.

The size and the time of a file do not tell all: a program may rewrite a file in place and set its time
back, and times of some file systems are coarse.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from certree.interface.extras import import_extra

if TYPE_CHECKING:
    import pyarrow as pa


class Checksums:
    """Checksums of each column of each block of rows, in the order in which blocks are read."""

    def __init__(self) -> None:
        self._known: dict[Hashable, array[int]] = {}

    def expect_same(self, table: pa.Table, number: int, division: Hashable, where: str) -> None:
        """Refuse a block that differs from the same block as it was read before.

        Parameters
        ----------
        table : pyarrow.Table
            The rows, of which each column is compared.
        number : int
            Number of the block. Blocks are read in order, from 0 on.
        division : hashable
            How rows are divided into blocks. Blocks of different divisions are not compared.
        where : str
            The file, or the files, for the error.

        Raises
        ------
        ValueError
            If a column has other values than before.
        """
        for name in table.column_names:
            known = self._known.setdefault((division, name), array("Q"))
            # The number of rows stands beside the checksum, so that blocks of other lengths differ.
            found = len(table) << 32 | checksum(table.column(name))
            if number == len(known):
                known.append(found)
            elif known[number] != found:
                raise ValueError(
                    f"{where} has changed while it was read: column {name!r} has other values than "
                    "before. Fit again when nobody writes to it"
                )


def checksum(column: pa.ChunkedArray) -> int:
    """Compute the CRC-32 of the values of a column, and of where they are missing.

    What memory holds in place of a missing value does not count.
    """
    crc = 0
    has_missing = column.null_count > 0
    for chunk in column.chunks:
        values = chunk
        if has_missing:
            crc = crc32(chunk.is_valid().to_numpy(zero_copy_only=False).tobytes(), crc)
            values = chunk.drop_null()
        for part in _buffers(values):
            crc = crc32(part, crc)
    return crc


def _buffers(values: pa.Array) -> list[Any]:
    """Contiguous bytes that say what values without missing ones are."""
    pa = import_extra("pyarrow", "files")
    of, kind = pa.types, values.type
    n, start = len(values), values.offset
    if n == 0 or of.is_null(kind):
        return []
    if of.is_dictionary(kind):
        return [*_buffers(values.indices), *_buffers(values.dictionary.drop_null())]
    if of.is_boolean(kind):
        return [np.asarray(values.to_numpy(zero_copy_only=False))]
    if of.is_string(kind) or of.is_large_string(kind):
        _, raw, words = values.buffers()
        ends = np.frombuffer(raw, np.int64 if of.is_large_string(kind) else np.int32)
        ends = ends[start : start + n + 1]
        return (
            [ends - ends[0], words[ends[0] : ends[-1]]] if words is not None else [ends - ends[0]]
        )
    if of.is_primitive(kind) or of.is_decimal(kind):
        width = kind.bit_width // 8
        return [values.buffers()[1][start * width : (start + n) * width]]
    # Types that no column of a fit has are rare enough to be written out.
    return [repr(values.to_pylist()).encode()]
