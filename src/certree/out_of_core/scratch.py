"""Arrays of parts in files of a folder that goes away whatever happens."""

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
from certree.out_of_core.row_block import PartOfRows

# Bytes that are written at a time.
_BLOCK = 2**20


class Scratch:
    """A folder of memory-mapped arrays.

    Parameters
    ----------
    folder : path
        Where they lie.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._mapped: dict[str, NDArray[Any]] = {}

    def keep(self, part: PartOfRows) -> PartOfRows:
        """The same part, whose arrays lie in files; those of the same name are written over."""
        kept: dict[str, Any] = {
            one.name: self._kept(f"{part.number}.{one.name}", value)
            for one in fields(part)
            if isinstance(value := getattr(part, one.name), np.ndarray)
            and getattr(value, "_mmap", None) is None
        }
        return replace(part, **kept)

    def _kept(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if not values.size:
            if self._mapped.pop(name, None) is not None:
                (self.folder / name).unlink()
            return values
        mapped = self._mapped.get(name)
        if mapped is None or mapped.shape != values.shape or mapped.dtype != values.dtype:
            mapped = self._mapped[name] = self.room(name, values.shape, values.dtype)
        mapped[...] = values
        return mapped

    @contextmanager
    def hold_core_arrays(self) -> Iterator[None]:
        """Let the core keep its large arrays in files of the folder, until the block is left."""
        before = set_scratch_folder(str(self.folder))
        try:
            yield
        finally:
            set_scratch_folder(before)

    def clear(self) -> None:
        """Delete the files of all parts; arrays that are still mapped keep their values."""
        for array in self._mapped:
            (self.folder / array).unlink()
        self._mapped.clear()

    def allocate(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array of zeros in a file without a name, which is gone with the array."""
        if not prod(shape):
            return np.zeros(shape, dtype)
        array = self.room("allocated", shape, dtype)
        (self.folder / "allocated").unlink()
        return array

    def room(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array in a file, whose values are 0."""
        file, n_bytes = self.folder / name, prod(shape) * np.dtype(dtype).itemsize
        try:
            file.unlink(missing_ok=True)  # what is mapped stays
            with open(file, "wb") as whole:
                _fill(whole, n_bytes)
            return np.memmap(file, dtype, "r+", shape=shape)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{n_bytes:,} more bytes of scratch are needed ({error.strerror}); the variable "
                "TMPDIR names another folder",
                str(self.folder),
            ) from error


def _fill(file: BinaryIO, n_bytes: int) -> None:
    """Take room on the disk: sparse files would fail only when written to, and by a signal."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    for start in range(0, n_bytes, _BLOCK):
        file.write(bytes(min(_BLOCK, n_bytes - start)))


@contextmanager
def scratch() -> Iterator[Scratch]:
    """A folder for the arrays of parts, until the block is left."""
    folder = tempfile.mkdtemp(prefix="certree-")
    try:
        yield Scratch(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
