"""Matplotlib figures that a notebook shows without `pyplot` and without a magic command."""

import io

from matplotlib.figure import Figure

_DOTS_PER_INCH = 110


class Picture(Figure):
    """A matplotlib figure that a notebook displays if it is the last value of a cell.

    It needs neither `pyplot` nor a magic command of IPython: IPython calls `_repr_png_`, which
    returns the figure as PNG, with 110 dots per inch. The constructor takes the arguments of
    matplotlib's Figure, such as `figsize` in inches.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=_DOTS_PER_INCH)
        return file.getvalue()
