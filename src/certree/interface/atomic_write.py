"""Atomic writing of files: a file is complete, or it is not there."""

import io
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a file by way of a temporary file in the same directory, which is then renamed to `path`.

    Readers see the old file or the complete new one. A symbolic link stays a link. An existing file
    keeps its mode and, if permitted, its owner. If `path` is a pipe or a device, it is written
    directly after the whole content is in memory. A killed process leaves the old file unchanged,
    and a temporary file ``.certree-XXXXXXXX.tmp``, which may be deleted.

    Parameters
    ----------
    path : path
        The file to write.
    write : callable
        Takes a binary file that is open for writing, and writes the content to it.

    Raises
    ------
    OSError
        If the file cannot be written; `filename` of the error is set.
    """
    try:
        _write_or_replace(path, write)
    except OSError as error:
        # The error of a full disk does not name the file.
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _write_or_replace(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Replace or create a regular file, or write to an existing pipe or device directly.

    path: the file, pipe or device; write: writes the content to an open binary file.
    """
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
    """Write a temporary file in the directory of `path`, and rename it to `path`.

    old: status of the file that is replaced, or None if there is none; write: writes the content to
    an open binary file. If anything fails, the temporary file is removed.
    """
    # The name is short, as the name of the file may already have the largest possible length.
    temporary = path.with_name(f".certree-{secrets.token_hex(4)}.tmp")
    if not path.parent.exists():
        raise FileNotFoundError(
            f"the directory {path.parent} must exist to write {path.name}: create it first"
        )
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
    """Create a file, open it for writing, and return its descriptor.

    path: the file, which must not exist yet; mode: permission bits, from which the system removes
    those of the umask. Raise FileExistsError if the file exists.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, mode)


def _copy_owner_and_mode(path: Path, old: os.stat_result) -> None:
    """Give the file at `path` the permission bits, and if possible owner and group, of an old file.

    If the system does not permit that, the group loses its permissions, as it may be another group
    now. old: status of the old file.
    """
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown"):
        try:
            os.chown(path, old.st_uid, old.st_gid)
        except PermissionError:
            # The file belongs to another group now, which must not get the permissions of the old one.
            mode &= ~(stat.S_IRWXG | stat.S_ISUID | stat.S_ISGID)
    os.chmod(path, mode)
