"""Checksums of rows that are read more than once, which detect files that change during a fit.

Size and modification time of a file are not enough: a program may rewrite a file in place and restore
its time, and times of some file systems are coarse.
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
    """Checksums of each column of each block of rows, to detect files that change during a fit.

    Blocks are numbered in the order in which they are read.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, array[int]] = {}

    def expect_same(self, table: pa.Table, number: int, division: Hashable, where: str) -> None:
        """Compare a block with the same block of an earlier pass, or store its checksums.

        Parameters
        ----------
        table : pyarrow.Table
            The rows, of which each column is compared.
        number : int
            Number of the block within a pass. Passes read blocks in the order 0, 1, ...
        division : hashable
            How rows are divided into blocks. Blocks of different divisions are not compared.
        where : str
            Path of the file, or paths of the files, with the rows. The error message names it.

        Raises
        ------
        ValueError
            If a column has other values, or another number of rows, than in an earlier pass.
        """
        for name in table.column_names:
            known = self._known.setdefault((division, name), array("Q"))
            # The upper 32 bits hold the number of rows, so that blocks of other lengths differ.
            found = len(table) << 32 | checksum(table.column(name))
            if number == len(known):
                known.append(found)
            elif known[number] != found:
                raise ValueError(
                    f"{where} has changed while it was read: column {name!r} has other values than "
                    "before. Fit again when no program writes to it"
                )


def checksum(column: pa.ChunkedArray) -> int:
    """Compute the CRC-32 of the values of a column and of the positions of its missing values.

    Return it as an integer. The bytes that Arrow stores in place of a missing value do not count.
    """
    crc = 0
    has_missing = column.null_count > 0
    for chunk in column.chunks:
        values = chunk
        if has_missing:
            crc = crc32(chunk.is_valid().to_numpy(zero_copy_only=False).tobytes(), crc)
            values = chunk.drop_null()
        for buffer in _list_buffers(values):
            crc = crc32(buffer, crc)
    return crc


def _list_buffers(values: pa.Array) -> list[Any]:
    """Return contiguous buffers of bytes that determine the values of an array.

    values: Arrow array of any type, without missing values. The buffers are bytes-like objects. Two
    arrays with equal values give equal bytes, whatever their offset and capacity. Values of types
    that no fit accepts are returned as one buffer of text.
    """
    pa = import_extra("pyarrow", "files")
    types, kind = pa.types, values.type
    n, start = len(values), values.offset
    if n == 0 or types.is_null(kind):
        return []
    if types.is_dictionary(kind):
        return [*_list_buffers(values.indices), *_list_buffers(values.dictionary.drop_null())]
    if types.is_boolean(kind):
        return [np.asarray(values.to_numpy(zero_copy_only=False))]
    if types.is_string(kind) or types.is_large_string(kind):
        _, offsets, text = values.buffers()
        ends = np.frombuffer(offsets, np.int64 if types.is_large_string(kind) else np.int32)
        ends = ends[start : start + n + 1]
        return [ends - ends[0], text[ends[0] : ends[-1]]] if text is not None else [ends - ends[0]]
    if types.is_primitive(kind) or types.is_decimal(kind):
        width = kind.bit_width // 8
        return [values.buffers()[1][start * width : (start + n) * width]]
    # No column of a fit has another type, so speed does not matter.
    return [repr(values.to_pylist()).encode()]
