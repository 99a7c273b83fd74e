"""Reading and writing of zip archives of NumPy arrays, safe for untrusted files.

An archive is what `numpy.savez` writes: a zip file of .npy files. Declared sizes are checked before
anything is read: the memory that an archive needs is limited by its file size, and no member is
read beyond its declared size.

Messages describe the file. `certree.files.models.load` adds its path, and what to do.
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
from certree.interface.stored_state import DamagedModelError

# Bytes that the arrays of any file may have in memory, and the ratio to the file size beyond which
# they may not have more. Deflate alone would allow a ratio of 1000.
_MIN_BYTE_LIMIT, _MAX_BYTE_RATIO = 2**26, 100
# The same for the JSON header, which takes up to 24 times its size once it is parsed.
_MIN_TEXT_LIMIT, _MAX_TEXT_RATIO = 2**22, 4
# Upper limits that no model file reaches: members of the zip file, and bytes of their directory.
_MAX_MEMBERS, _MAX_DIRECTORY_BYTES = 64, 2**14
# Upper limit for the header of one .npy file (bytes); NumPy writes 128 for arrays of numbers.
_MAX_ARRAY_HEADER_BYTES = 1024
_COMPRESSION_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_SUFFIX = ".npy"
HEADER = "header"


def write_archive(file: BinaryIO, text: bytes, arrays: dict[str, NDArray[Any]]) -> None:
    """Write a header and arrays as a zip archive.

    The archive is compressed, unless header or arrays would then be larger than `open_archive`
    allows for a file of its size: max(4 MiB, 4 size) for the header, max(64 MiB, 100 size) for all
    arrays.

    Parameters
    ----------
    file : binary file
        A seekable file, open for writing, at its start.
    text : bytes
        JSON text, which is stored as an array "header" of uint8.
    arrays : dict of ndarray
        Arrays by name; no name is "header".
    """
    members: dict[str, Any] = {
        name: np.ascontiguousarray(values) for name, values in arrays.items()
    }
    members[HEADER] = np.frombuffer(text, dtype=np.uint8)
    np.savez_compressed(file, **members)
    size = file.tell()
    n_bytes = sum(values.nbytes + _MAX_ARRAY_HEADER_BYTES for values in members.values())
    if len(text) > _max_header_bytes(size) or n_bytes > _max_array_bytes(size):
        file.seek(0)
        file.truncate()
        np.savez(file, **members)


def _max_array_bytes(file_size: int) -> int:
    """Return how many bytes all arrays of an archive may have in memory.

    This is max(64 MiB, 100 file_size). file_size: size of the archive on disk in bytes.
    """
    return max(_MIN_BYTE_LIMIT, _MAX_BYTE_RATIO * file_size)


def _max_header_bytes(file_size: int) -> int:
    """Return how many bytes the JSON header of an archive may have.

    This is max(4 MiB, 4 file_size). file_size: size of the archive on disk in bytes.
    """
    return max(_MIN_TEXT_LIMIT, _MAX_TEXT_RATIO * file_size)


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open an archive for reading; its file is closed at the end of the with statement.

    Parameters
    ----------
    path : path
        The file.

    Yields
    ------
    Archive
        Its arrays, which are read on first access, inside the with statement.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a regular file, not a zip archive as `write_archive` writes it, or declares
        more than 64 arrays, or more bytes than max(64 MiB, 100 times its size).
    """
    # Reading a pipe could block, and a device may never end.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("path must be a regular file, got a directory, pipe or device")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        _expect_directory(file, size)
        with zipfile.ZipFile(file) as archive:
            yield Archive(archive, size)


def _expect_directory(file: BinaryIO, size: int) -> None:
    """Raise a ValueError if the start or the end of a zip file shows that it is no model file.

    A zip file ends with a directory of its members, which may have at most 64 entries and 16 KiB.
    No array is read. file: open for reading, at any position, which changes. size: size of the file
    in bytes.
    """
    end = struct.Struct("<4s4H2LH")
    file.seek(0)
    first = file.read(4)
    # The end record of a zip file. A comment could follow it, but certree writes none.
    file.seek(max(size - end.size - 20, 0))
    last = file.read()
    if first != b"PK\x03\x04" or len(last) < end.size or last[-end.size :][:4] != b"PK\x05\x06":
        raise ValueError("a model file must be a zip archive of NumPy arrays, and the file is none")
    _, _, _, _, members, directory, _, comment = end.unpack(last[-end.size :])
    is_zip64 = last.startswith(b"PK\x06\x07") and size <= zipfile.ZIP64_LIMIT
    if is_zip64 or comment or members > _MAX_MEMBERS or directory > _MAX_DIRECTORY_BYTES:
        raise DamagedModelError(
            "the model file's zip directory must list at most "
            f"{_MAX_MEMBERS} arrays and nothing else, got {members} entries"
        )


class Archive(Mapping[str, NDArray[Any]]):
    """Mapping from names to the arrays of an open model file, which is a zip file.

    Each array is read on first access and then kept in memory. The JSON header is the array
    "header".

    Parameters
    ----------
    archive : ZipFile
        The open zip file.
    size : int
        Size of the file in bytes, which limits the size of the arrays.

    Raises
    ------
    ValueError
        If a member is not a .npy file, is encrypted, has the name of another member, or is
        compressed by another method than deflate; or if all members together declare more bytes
        than max(64 MiB, 100 size).
    """

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive, self.size = archive, size
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        for member in archive.infolist():
            self._add_member(member)
        n_bytes = sum(member.file_size for member in self._members.values())
        if n_bytes > _max_array_bytes(size):
            raise DamagedModelError(
                f"the model file's arrays declare {n_bytes:,} bytes, but a file of "
                f"{size:,} bytes may hold at most {_max_array_bytes(size):,}"
            )

    def _add_member(self, member: zipfile.ZipInfo) -> None:
        """Register a member of the zip file under the name of its array, without reading it.

        The name is that of the member without ".npy". Raise ValueError if it is not a .npy file, is
        encrypted, repeats a name, or is not compressed by deflate.
        """
        name = member.filename.removesuffix(_SUFFIX)
        if name == member.filename:
            raise DamagedModelError(
                f"the model file must hold .npy arrays only, got {member.filename!r}"
            )
        if name in self._members:
            raise DamagedModelError(
                f"the model file must have one array of each name, got two called {name!r}"
            )
        if member.flag_bits & _ENCRYPTED:
            raise DamagedModelError(f"the model file's array {name!r} is encrypted")
        if member.compress_type not in _COMPRESSION_METHODS:
            raise DamagedModelError(
                f"the model file's array {name!r} must be stored or compressed by deflate"
            )
        self._members[name] = member

    def header(self) -> bytes:
        """Return the JSON text of the header in UTF-8.

        Raise ValueError if it is missing, or longer than max(4 MiB, 4 times the size of the file).
        """
        limit = _max_header_bytes(self.size)
        if HEADER in self._members and self._members[HEADER].file_size > limit:
            raise DamagedModelError(f"the model file's JSON header has more than {limit:,} bytes")
        text = self[HEADER]
        if text.dtype != np.uint8 or text.ndim != 1:
            raise DamagedModelError(
                f"the model file's JSON header must be a vector of uint8, got {text.dtype} of "
                f"shape {text.shape}"
            )
        return text.tobytes()

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the array of a name, read-only.

        Raise ValueError, not KeyError, if there is no such array, or its bytes are damaged.
        """
        if name not in self._arrays:
            if name not in self._members:
                raise DamagedModelError(f"the model file lacks {name}")
            stream = self._archive.open(self._members[name])
            dtype, shape = _read_array_header(stream, self._members[name].file_size)
            self._arrays[name] = _read_array(stream, dtype, shape)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members


def _read_array_header(stream: Any, size: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Read the header of a .npy file; return the dtype and the shape of its array.

    stream: binary file at its start; afterwards it is at the start of the data. size: bytes of the
    whole .npy file. Raise a ValueError if dtype and shape contradict this size, for dtypes of
    objects, for Fortran order (columns first), and for other versions of the format than 1.0.
    """
    start = stream.read(np.lib.format.MAGIC_LEN + 2)
    if (version := np.lib.format.read_magic(io.BytesIO(start))) != (1, 0):
        raise DamagedModelError(
            "the model file's arrays must have the .npy version 1.0, as certree.save writes them, got "
            f"{version[0]}.{version[1]}"
        )
    (length,) = struct.unpack("<H", start[-2:])
    if length > _MAX_ARRAY_HEADER_BYTES:
        raise DamagedModelError(
            f"the model file's arrays must have .npy headers of at most {_MAX_ARRAY_HEADER_BYTES} "
            f"bytes, got {length}"
        )
    header = io.BytesIO(start[-2:] + stream.read(length))
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(header)
    if dtype.hasobject or is_fortran or min(shape, default=0) < 0:
        raise DamagedModelError(
            f"the model file's arrays must have no objects and be in C order, got dtype {dtype} "
            f"and shape {shape}, Fortran order: {is_fortran}"
        )
    if prod(shape) * dtype.itemsize != size - len(start) - length:
        raise DamagedModelError(
            f"the model file's array of shape {shape} and dtype {dtype} cannot have {size:,} bytes"
        )
    return dtype, shape


def _read_array(stream: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Read the data of a .npy file and return the array, read-only.

    stream: binary file at the start of the data, after the header. dtype, shape: dtype and shape
    that the header declares. Raise a ValueError if data are missing, text has invalid code points,
    or a boolean is neither 0 nor 1.
    """
    # Reading one byte beyond the data reaches the end of the member, where zipfile checks the
    # checksum.
    content = stream.read(prod(shape) * dtype.itemsize + 1)
    if len(content) != prod(shape) * dtype.itemsize:
        raise DamagedModelError("the model file has an array that is shorter than it declares")
    # NumPy accepts code points that do not exist, but Python aborts on them.
    if dtype.kind == "U" and (np.frombuffer(content, "<u4") > sys.maxunicode).any():
        raise DamagedModelError(
            "the model file has an array of text with invalid code points (above U+10FFFF)"
        )
    array = np.frombuffer(content, dtype).reshape(shape)
    if not has_valid_booleans(array):
        raise DamagedModelError(
            "the model file has an array of booleans with bytes other than 0 and 1"
        )
    return array
