"""Places that files are written to, looked at before the work and not after it."""

import os
from pathlib import Path
from reprlib import repr as shortened
from typing import Any


def expect_path(path: Any) -> None:
    """Check that it is a name of a file."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a path, got {shortened(path)}")


def expect_writable(path: str | os.PathLike[str] | None) -> None:
    """Say why a file could not be written, while nothing has been computed yet.

    Parameters
    ----------
    path : path or None
        Where the file will go; None: nowhere.

    Raises
    ------
    OSError
        If it is a directory, its directory is missing, or either must not be written to.
    """
    if path is None:
        return
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(f"expected a file to write, but {path} is a directory")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no directory {place.parent}")
    # A pipe or a device is written where it is, a file beside its place first.
    is_moved = place.is_file() or not place.exists()
    for part in (place, place.parent) if is_moved else (place,):
        if part.exists() and not os.access(part, os.W_OK):
            raise PermissionError(f"{path} cannot be written: no permission to write to {part}")
