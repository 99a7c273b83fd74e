"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside its place and move it there when it is complete.

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
    place = Path(path)
    umask = os.umask(0)
    os.umask(umask)
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
