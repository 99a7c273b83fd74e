"""Check the path of a figure, and write the figure."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from certree.files.output_paths import expect_suffix, expect_writable
from certree.interface.atomic_write import write_atomically
from certree.interface.extras import import_extra


def expect_figure_path(path: Path | None) -> None:
    """Raise an error if a figure cannot be written to a path; nothing is written.

    Parameters
    ----------
    path : Path or None
        The file to write; None: nothing is checked.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    OSError
        If the path is a directory, its parent does not exist, or write permission is missing.
    ValueError
        If matplotlib does not write the format of the suffix.
    """
    expect_writable(path)
    if path:
        formats = import_extra("matplotlib.backend_bases", "plot").FigureCanvasBase.filetypes
        expect_suffix(path, "a figure", [f".{name}" for name in sorted(formats)])


def _figure_format(path: Path) -> str:
    """Return the suffix of a path without the dot, in lower case; "png" if it has none."""
    return path.suffix[1:].lower() or "png"


def save_figure(path: Path, draw: Callable[[], Any]) -> None:
    """Draw a matplotlib figure and write it to a file, atomically.

    Parameters
    ----------
    path : Path
        The file; its suffix determines the format. Check it by `expect_figure_path` before.
    draw : callable
        Takes nothing and returns the figure.
    """
    figure_format = _figure_format(path)
    write_atomically(path, lambda file: draw().savefig(file, format=figure_format, dpi=150))
