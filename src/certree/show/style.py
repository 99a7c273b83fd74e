"""The style of all figures: colours that colour-blind readers can distinguish, fonts and sizes."""

import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from certree.interface.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure
else:
    Figure = Any  # Signatures are evaluated at import, when matplotlib may be missing.

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Okabe and Ito's palette.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
# Low, middle and high end of a diverging scale.
DIVERGING = (BLUE, "#EDEDED", VERMILLION)
# Ten classes: Paul Tol's "muted" palette, and grey.
CLASSES = (
    "#332288", "#DDCC77", "#117733", "#CC6677", "#88CCEE",
    "#882255", "#44AA99", "#999933", "#AA4499", "#777777",
)  # fmt: skip
# Colormap for numbers from low to high.
SEQUENTIAL = "cividis"

INK, FAINT, LINE = "#222222", "#777777", "#AAAAAA"
SIZE = (6.4, 4.0)  # inches, default size of a figure
WIDE = 11.0  # inches, width of a page
SMALL = 8.0  # points, font size of text inside a figure
ON_LIGHT = "#111111"  # colour of text on cells that stay light in dark mode
PANEL = (4.2, 3.6)  # inches, size of a panel that is drawn as a figure of its own
_TITLE, _TICKS = 10.5, 8.5  # points, font sizes

# A function that draws one panel of a figure on the axes it is given.
Panel = Callable[[Any], None]

_SETTINGS = {
    "font.size": 9.5,
    "axes.titlesize": _TITLE,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": _TICKS,
    "ytick.labelsize": _TICKS,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "axes.formatter.use_mathtext": False,
}


def use_style(plot: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function that draws, so that it uses certree's fonts, colours and line widths.

    They replace the user's settings of matplotlib during the call. plot: the function. The returned
    function has the same signature; it raises ImportError if matplotlib is not installed.
    """

    @wraps(plot)
    def draw_in_style(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with import_extra("matplotlib", "plot").rc_context(_SETTINGS):
            return plot(*args, **kwargs)

    return draw_in_style


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure, which a notebook can display without `pyplot`.

    size: width and height in inches. Raise ImportError if matplotlib is not installed.
    """
    import_extra("matplotlib", "plot")
    # Importing this module imports matplotlib, which may be missing until here.
    from certree.show.picture import Picture

    return Picture(figsize=size, layout="constrained")


def get_axes(ax: Any, size: tuple[float, float] = SIZE) -> Any:
    """Return `ax` or, if it is None, the axes of a new figure.

    ax: matplotlib Axes or None. size: width and height of the new figure in inches.
    """
    return new_figure(size).add_subplot() if ax is None else ax


def set_title(ax: Any, title: str) -> None:
    """Set the title of matplotlib axes, wrapped to the width that they have.

    Call it after the tick labels of the y axis are set: lines are as long as the figure is wide
    beside these labels. Dollar signs are printed, not parsed as formulas. ax: matplotlib Axes.
    title: the text; line breaks are kept.
    """
    lengths = [len(line) for tick in ax.get_yticklabels() for line in tick.get_text().split("\n")]
    label_width = 0.58 * _TICKS / 72 * max(lengths, default=4) + 0.5
    width: float = ax.figure.get_size_inches()[0]
    if (spec := ax.get_subplotspec()) is not None:
        ratios = spec.get_gridspec().get_width_ratios()
        width *= sum(ratios[k] for k in spec.colspan) / sum(ratios)
    line_length = count_letters(width - label_width, _TITLE)
    # No line break between a number and its percent sign.
    lines = [textwrap.fill(line.replace(" %", "\xa0%"), line_length) for line in title.split("\n")]
    ax.set_title("\n".join(lines).replace("\xa0", " "), parse_math=False)


@use_style
def draw_separately(panels: Sequence[Panel], sizes: Sequence[tuple[float, float]]) -> list[Figure]:
    """Draw each panel on a new figure of its own, and return the figures.

    panels: functions that draw on the matplotlib axes they are called with. sizes: width and height
    in inches of the figure of each panel.
    """
    figures = [new_figure(size) for size in sizes]
    for draw, figure in zip(panels, figures, strict=True):
        draw(figure.add_subplot())
    return figures


def count_letters(inches: float, points: float) -> int:
    """Return how many letters of DejaVu Sans fit into a width on average, at least 10.

    A letter counts as 0.58 times the size of the font. inches: the width. points: size of the font
    (1 point is 1/72 inch).
    """
    # A letter of DejaVu Sans is .58 of its size wide on average, and a point is 1/72 inch.
    return max(10, int(inches * 72 / (0.58 * points)))
