"""Archives of arrays, for files that nobody vouches for: what is declared is checked before it is read.

An archive is what `numpy.savez` writes: a zip file of .npy files. One may not ask for more memory than
it pays for with its size, and no stream is read beyond what it has declared.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import has_valid_booleans

# All arrays may have 64 MB and a hundred times the size of their file. Deflate makes a thousand of one.
_FREE, _RATIO = 2**26, 100
# JSON takes up to 24 times its own size once it is read.
_FREE_TEXT, _TEXT_RATIO = 2**22, 4
# More members than any form has, and more bytes than their directory takes.
_MOST_MEMBERS, _LARGEST_DIRECTORY = 64, 2**14
# NumPy's headers of arrays of numbers have 128 bytes.
_LARGEST_HEADER = 1024
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_SUFFIX = ".npy"
HEADER = "header"


def write_archive(file: BinaryIO, text: bytes, arrays: dict[str, NDArray[Any]]) -> None:
    """Write a header and arrays, compressed unless that makes them smaller than `opened` trusts."""
    plain: dict[str, Any] = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    plain[HEADER] = np.frombuffer(text, dtype=np.uint8)
    np.savez_compressed(file, **plain)
    size = file.tell()
    whole = sum(values.nbytes + _LARGEST_HEADER for values in plain.values())
    if len(text) > _most_text(size) or whole > _most_bytes(size):
        file.seek(0)
        file.truncate()
        np.savez(file, **plain)


def _most_bytes(size: int) -> int:
    """How many bytes the arrays of a file of this size may have."""
    return max(_FREE, _RATIO * size)


def _most_text(size: int) -> int:
    """How many bytes the header of a file of this size may have."""
    return max(_FREE_TEXT, _TEXT_RATIO * size)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open an archive.

    Parameters
    ----------
    path : path
        The file.

    Yields
    ------
    Archive

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no regular file, no archive, or declares what it may not hold.
    """
    # A pipe would be waited for, and a device may never end.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("not a regular file")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _expect_directory(file, size)
        with zipfile.ZipFile(file) as archive:
            yield Archive(archive, size)


def _expect_directory(file: BinaryIO, size: int) -> None:
    """Refuse what is no zip file, or has a directory that is larger than that of any model."""
    end = struct.Struct("<4s4H2LH")
    file.seek(0)
    first = file.read(4)
    # Without a comment, which none of our files has, this is how a zip file ends.
    file.seek(max(size - end.size - 20, 0))
    last = file.read()
    if first != b"PK\x03\x04" or len(last) < end.size or last[-end.size :][:4] != b"PK\x05\x06":
        raise ValueError("not a zip archive of arrays")
    _, _, _, _, members, directory, _, comment = end.unpack(last[-end.size :])
    larger = last.startswith(b"PK\x06\x07") and size <= zipfile.ZIP64_LIMIT
    if larger or comment or members > _MOST_MEMBERS or directory > _LARGEST_DIRECTORY:
        raise ValueError(f"its directory says that it has {members} parts or more")


class Archive(Mapping[str, NDArray[Any]]):
    """The arrays of an open zip file, the header among them, of which none has been read yet.

    Parameters
    ----------
    archive : ZipFile
        The file.
    size : int
        Its bytes.
    """

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive, self.size = archive, size
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        for one in archive.infolist():
            self._add(one)
        declared = sum(one.file_size for one in self._members.values())
        if declared > _most_bytes(size):
            raise ValueError(
                f"its parts have {declared:,} bytes, where a file of {size:,} bytes may hold "
                f"{_most_bytes(size):,}"
            )

    def _add(self, one: zipfile.ZipInfo) -> None:
        name = one.filename.removesuffix(_SUFFIX)
        if name == one.filename:
            raise ValueError(f"its part {one.filename!r} is no array")
        if name in self._members:
            raise ValueError(f"it has two parts of the name {name!r}")
        if one.flag_bits & _ENCRYPTED:
            raise ValueError(f"its part {name!r} is encrypted")
        if one.compress_type not in _METHODS:
            raise ValueError(f"its part {name!r} is compressed in another way than by deflate")
        self._members[name] = one

    def header(self) -> bytes:
        """The text of the header."""
        most = _most_text(self.size)
        if HEADER in self._members and self._members[HEADER].file_size > most:
            raise ValueError(f"its header has more than {most:,} bytes")
        text = self[HEADER]
        if text.dtype != np.uint8 or text.ndim != 1:
            raise ValueError(f"its header is no text, but {text.dtype} of shape {text.shape}")
        return text.tobytes()

    def __getitem__(self, name: str) -> NDArray[Any]:
        """An array, which is read when it is asked for first."""
        if name not in self._arrays:
            if name not in self._members:
                raise ValueError(f"it lacks {name}")
            stream = self._archive.open(self._members[name])
            dtype, shape = _declared(stream, self._members[name].file_size)
            self._arrays[name] = _read(stream, dtype, shape)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members


def _declared(stream: Any, size: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Type and shape of a .npy file that is open at its start, if they go with its size."""
    start = stream.read(np.lib.format.MAGIC_LEN + 2)
    if np.lib.format.read_magic(io.BytesIO(start)) != (1, 0):
        raise ValueError("it has an array of another version of .npy")
    (length,) = struct.unpack("<H", start[-2:])
    if length > _LARGEST_HEADER:
        raise ValueError(f"an array has a header of {length} bytes")
    header = io.BytesIO(start[-2:] + stream.read(length))
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(header)
    if dtype.hasobject or by_columns or min(shape, default=0) < 0:
        raise ValueError(f"it has an array of shape {shape} and dtype {dtype} that is no column")
    if prod(shape) * dtype.itemsize != size - len(start) - length:
        raise ValueError(f"an array of shape {shape} and dtype {dtype} cannot have {size:,} bytes")
    return dtype, shape


def _read(stream: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    # One byte more than there may be, so that the end is seen and the checksum is looked at.
    content = stream.read(prod(shape) * dtype.itemsize + 1)
    if len(content) != prod(shape) * dtype.itemsize:
        raise ValueError("an array ends early")
    # NumPy makes letters of any numbers, and Python takes those that are none for corrupt memory.
    if dtype.kind == "U" and (np.frombuffer(content, "<u4") > sys.maxunicode).any():
        raise ValueError("it holds text that is none")
    array = np.frombuffer(content, dtype).reshape(shape)
    if not has_valid_booleans(array):
        raise ValueError("it has truth values with bytes other than 0 and 1")
    return array
