"""Atomic writing of files: a file is complete, or it is not there."""

import io
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write to a temporary file in the same directory, then rename it to `path`.

    A symbolic link stays one. An existing file keeps its mode and, if permitted, its owner. A pipe or a
    device is written directly, once all content is in memory. A killed process leaves the old file
    unchanged, and a temporary file ``.certree-XXXXXXXX.tmp``, which may be removed.

    Parameters
    ----------
    path : path
        The file to write; an old file is replaced when the new one is complete.
    write : callable
        Takes an open binary file, and writes the content to it.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    try:
        _write_or_replace(path, write)
    except OSError as error:
        # The error of a full disk does not name the file.
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _write_or_replace(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Replace a regular file, or write to a pipe or a device directly."""
    """Replace a regular file, or write to a pipe or a device directly."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if old is None or stat.S_ISREG(old.st_mode):
        _replace(Path(os.path.realpath(path)), old, write)
        return
    with open(path, "wb") as file:
        content = io.BytesIO()
        write(content)
        file.write(content.getbuffer())


def _replace(path: Path, old: os.stat_result | None, write: Callable[[BinaryIO], object]) -> None:
    """Write a temporary file and rename it to `path`; `old` is the status of the present file."""
    # The name is short, as the name of the file may already have the largest possible length.
    temporary = path.with_name(f".certree-{secrets.token_hex(4)}.tmp")
    descriptor = _open_new_file(temporary, 0o666 if old is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if old is not None:
            _copy_owner_and_mode(temporary, old)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _open_new_file(path: Path, mode: int) -> int:
    """Create a file, which must not exist, and return its descriptor.

    The system subtracts the umask from the mode.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, mode)
    except FileNotFoundError:
        raise FileNotFoundError(f"no such directory: {path.parent}") from None


def _copy_owner_and_mode(path: Path, old: os.stat_result) -> None:
    """Give a file the mode of the old file and, if permitted, its owner."""
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown"):
        try:
            os.chown(path, old.st_uid, old.st_gid)
        except PermissionError:
            # The file belongs to another group now, which must not get the permissions of the old one.
            mode &= ~(stat.S_IRWXG | stat.S_ISUID | stat.S_ISGID)
    os.chmod(path, mode)
