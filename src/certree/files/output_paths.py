"""Checks of the paths of output files, made before anything is computed."""

import os
from pathlib import Path
from reprlib import repr as shortened
from typing import Any


def expect_path(path: Any) -> None:
    """Raise TypeError unless a path is a str or path-like object.

    Return None. path: any object that a user has passed; whether the file exists does not matter.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a path-like object, got {shortened(path)}")


def expect_writable(path: str | os.PathLike[str] | None) -> None:
    """Check, without writing, that a file can be written; call it before long computations.

    Parameters
    ----------
    path : path or None
        The file to be written; None: nothing is checked.

    Raises
    ------
    OSError
        If the path is a directory, its parent does not exist, or write permission is missing.
    """
    if path is None:
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"the output must be a file, but {path} is a directory")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no directory {target.parent}")
    # A regular file is replaced by a temporary file from its directory; pipes and devices are not.
    is_replaced = target.is_file() or not target.exists()
    for checked in (target, target.parent) if is_replaced else (target,):
        if checked.exists() and not os.access(checked, os.W_OK):
            raise PermissionError(f"{path} cannot be written: no permission to write to {checked}")
