"""Memory-mapped arrays of blocks in a temporary folder, which is deleted in any case."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from certree._core import set_scratch_folder
from certree.out_of_core.row_block import RowBlock

# Bytes that are written at a time.
_WRITE_SIZE = 2**20


class Scratch:
    """A folder for the arrays of row blocks, which are files that are mapped to memory.

    Parameters
    ----------
    folder : path
        The folder, which must exist.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._mapped: dict[str, NDArray[Any]] = {}

    def store(self, block: RowBlock) -> RowBlock:
        """Copy the arrays of a block to files, and return the block with memory maps of them.

        Files of an earlier block with the same number are overwritten. Arrays that are memory maps
        already are not copied. OSError is raised if the disk is full.
        """
        stored: dict[str, Any] = {
            field.name: self._store_array(f"{block.number}.{field.name}", value)
            for field in fields(block)
            if isinstance(value := getattr(block, field.name), np.ndarray)
            and getattr(value, "_mmap", None) is None
        }
        return replace(block, **stored)

    def _store_array(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Copy an array to a file of the scratch folder, and return a memory map of the copy.

        name: name of the file, which is reused if it holds an array of this shape and dtype;
        values: the array. Of an empty array a copy is returned, without a file.
        """
        if not values.size:
            if self._mapped.pop(name, None) is not None:
                (self.folder / name).unlink()
            return values.copy()  # An empty view would keep the array it was taken from in memory.
        mapped = self._mapped.get(name)
        if mapped is None or mapped.shape != values.shape or mapped.dtype != values.dtype:
            mapped = self._mapped[name] = self.map_file(name, values.shape, values.dtype)
        mapped[...] = values
        return mapped

    @contextmanager
    def hold_core_arrays(self) -> Iterator[None]:
        """Return a context in which the compiled core allocates large arrays in the folder."""
        before = set_scratch_folder(str(self.folder))
        try:
            yield
        finally:
            set_scratch_folder(before)

    def clear(self) -> None:
        """Delete the files of all blocks; arrays that are still mapped keep their values."""
        for name in self._mapped:
            (self.folder / name).unlink()
        self._mapped.clear()

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array of zeros that is mapped from a file.

        The file has no name any more, so that the disk space is free once the array is deleted.
        OSError is raised if the disk is full.
        """
        if not prod(shape):
            return np.zeros(shape, dtype)
        array = self.map_file("allocated", shape, dtype)
        (self.folder / "allocated").unlink()
        return array

    def map_file(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array of zeros that is mapped to a new file, (shape).

        name: name of the file; an old file of this name is replaced. Space on the disk is allocated
        first, and OSError is raised if there is too little.
        """
        file, n_bytes = self.folder / name, prod(shape) * np.dtype(dtype).itemsize
        try:
            file.unlink(missing_ok=True)  # arrays that are mapped to it keep their values
            with open(file, "wb") as opened:
                _fill(opened, n_bytes)
            return np.memmap(file, dtype, "r+", shape=shape)
        except OSError as error:
            raise OSError(
                error.errno,
                f"the folder for temporary files needs {n_bytes:,} more bytes ({error.strerror}): "
                "free them, or set the environment variable TMPDIR to another folder",
                str(self.folder),
            ) from error


def _fill(file: BinaryIO, n_bytes: int) -> None:
    """Allocate n_bytes for a file on the disk, filled with zeros.

    Writing to a mapped file without allocated space may kill the process if the disk is full.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    for start in range(0, n_bytes, _WRITE_SIZE):
        file.write(bytes(min(_WRITE_SIZE, n_bytes - start)))


@contextmanager
def open_scratch() -> Iterator[Scratch]:
    """Create a temporary folder for arrays, and delete it at the end of the with statement."""
    folder = tempfile.mkdtemp(prefix="certree-")
    try:
        yield Scratch(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
