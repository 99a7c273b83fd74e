"""Checks of the paths of output files, made before anything is computed."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from certree.tables.csv_text import STANDARD_STREAM
from certree.tables.table_files import SUFFIXES
from certree.tables.table_source import TableSource


def expect_path(path: Any) -> None:
    """Raise a TypeError unless a path is a str or path-like object; the file need not exist.

    path: any object that a user has passed.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path must be a str or a path-like object, got {shortened(path)}: pass the name of a "
            "file"
        )


def expect_writable(path: str | os.PathLike[str] | None) -> None:
    """Raise an OSError if a file cannot be written; nothing is written, so call it early.

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
        raise IsADirectoryError(
            f"the output must be a file, but {path} is a directory: add the name of a file"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{path} cannot be written: there is no directory {target.parent}; create it"
        )
    # A regular file is replaced by a temporary file from its directory; pipes and devices are not.
    is_replaced = target.is_file() or not target.exists()
    for checked in (target, target.parent) if is_replaced else (target,):
        if checked.exists() and not os.access(checked, os.W_OK):
            raise PermissionError(
                f"{path} cannot be written: no permission to write to {checked}; write to another place"
            )


def expect_suffix(path: str | os.PathLike[str] | None, what: str, suffixes: Iterable[str]) -> None:
    """Raise a ValueError if the name of an output file ends in the suffix of another format.

    A name without a suffix is accepted. path: the file to be written; None: nothing is checked.
    what: words for the content in the message, such as "a figure". suffixes: suffixes of its formats
    in lower case, such as ".png".
    """
    known = [*suffixes]
    if path is not None and Path(path).suffix.lower() not in ("", *known):
        raise ValueError(
            f"the name of {what} must end in one of {', '.join(known)}, got {path}: write "
            f"{Path(path).with_suffix(known[0])} instead"
        )


def expect_not_input(
    path: str | os.PathLike[str] | None,
    source: Any,
    name: str = "output",
    *,
    is_table: bool = False,
) -> None:
    """Raise a ValueError if an output file would replace an input file.

    Parameters
    ----------
    path : path or None
        The file to be written; None or "-": nothing is checked.
    source : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of files, that are read; "-" is standard input.
    name : str
        Name of the parameter `path` in the message.
    is_table : bool
        Whether the output is a table, which a second run would read from a folder of `source`.

    Raises
    ------
    ValueError
        If the output is an input file, also under another name, or a table in a folder that is
        read, at any depth.
    """
    if path is None or str(path) == STANDARD_STREAM:
        return
    target = Path(os.path.realpath(path))
    source = TableSource(source).source
    inputs = getattr(source, "files", source)  # A data set lists its files.
    for one in inputs if isinstance(inputs, list | tuple) else [inputs]:
        if str(one) == STANDARD_STREAM and _is_standard_input(target):
            raise ValueError(
                f"{name} must not be the file that standard input reads, but {path} is this file and "
                "would be lost: write to another file"
            )
        if not isinstance(one, str | os.PathLike) or not os.path.exists(one):
            continue
        place = Path(os.path.realpath(one))
        if is_table and place in target.parents:
            raise ValueError(
                f"{name} must lie outside the folders that are read, but {path} is in {one}: "
                "write to another folder"
            )
        is_in_folder = place in target.parents and target.name.lower().endswith(SUFFIXES)
        if target.is_file() and (is_in_folder or target.samefile(place)):
            raise ValueError(
                f"{name} must not be a file that is read, but {path} is one and would be lost: "
                "write to another file"
            )


def _is_standard_input(target: Path) -> bool:
    """Return whether standard input reads from a file, as after ``< FILE``. target: the file."""
    try:
        return target.is_file() and os.path.samestat(target.stat(), os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError, AttributeError):  # There is none, or it is no file.
        return False
