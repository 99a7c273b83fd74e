"""Files that are written whole or not at all."""

import io
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside its place and move it there when it is complete.

    A link stays one, and a file keeps its mode and, where permitted, its owner. A pipe or a device has
    no place to move to: it is written once all is there. A killed process leaves the old file, and
    beside it what it had written as ``.certree-XXXXXXXX.tmp``, which may be removed.

    Parameters
    ----------
    path : path
        Where the file goes; what was there stays until the new file is complete.
    write : callable
        Writes to an open binary file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    try:
        _write(path, write)
    except OSError as error:
        # A full disk does not say of which file it speaks.
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _write(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
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


def _replace(place: Path, old: os.stat_result | None, write: Callable[[BinaryIO], object]) -> None:
    # The name is short, as that of the place may have all letters that a name can have.
    beside = place.with_name(f".certree-{secrets.token_hex(4)}.tmp")
    descriptor = _made(beside, 0o666 if old is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if old is not None:
            _give(beside, old)
        os.replace(beside, place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _made(path: Path, mode: int) -> int:
    """Open a file that is not there yet; the system takes the umask from its mode."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        return os.open(path, flags, mode)
    except FileNotFoundError:
        raise FileNotFoundError(f"no such directory: {path.parent}") from None


def _give(path: Path, old: os.stat_result) -> None:
    """Give a file the owner, where permitted, and the mode of another one."""
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown"):
        try:
            os.chown(path, old.st_uid, old.st_gid)
        except PermissionError:
            # What the other group was permitted is not for ours.
            mode &= ~(stat.S_IRWXG | stat.S_ISUID | stat.S_ISGID)
    os.chmod(path, mode)
