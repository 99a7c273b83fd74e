"""How every picture looks: colours that colour-blind readers tell apart, letters and sizes."""

import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from certree.interface.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure
else:
    Figure = Any  # signatures are read at the door, where matplotlib may be missing

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Okabe and Ito's palette.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
# Less of something, neither, more of it.
DIVERGING = (BLUE, "#EDEDED", VERMILLION)
# Ten classes: Paul Tol's "muted" palette, and grey.
CLASSES = (
    "#332288", "#DDCC77", "#117733", "#CC6677", "#88CCEE",
    "#882255", "#44AA99", "#999933", "#AA4499", "#777777",
)  # fmt: skip
# Numbers from low to high.
SEQUENTIAL = "cividis"

INK, FAINT, LINE = "#222222", "#777777", "#AAAAAA"
SIZE = (6.4, 4.0)  # inches, of a picture that does not say otherwise
WIDE = 11.0  # inches, of a page
SMALL = 8.0  # points, of words within a picture
ON_LIGHT = "#111111"  # words on cells that are light in every surrounding
PANEL = (4.2, 3.6)  # inches, of one of several pictures that stand alone
_TITLE, _TICKS = 10.5, 8.5  # points

# Draws a part of a picture on axes.
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


def styled(plot: Callable[_P, _R]) -> Callable[_P, _R]:
    """Draw a picture in the style of all others, whatever matplotlib is set to elsewhere."""

    @wraps(plot)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with import_extra("matplotlib", "plot").rc_context(_SETTINGS):
            return plot(*args, **kwargs)

    return drawn


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure of so many inches, which a notebook shows by itself."""
    import_extra("matplotlib", "plot")
    # Its base class comes with the extra.
    from certree.show.picture import Picture

    return Picture(figsize=size, layout="constrained")


def axes_of(ax: Any, size: tuple[float, float] = SIZE) -> Any:
    """The axes to draw on: those given, or those of a new figure."""
    return new_figure(size).add_subplot() if ax is None else ax


def titled(ax: Any, words: str) -> None:
    """Give axes a title, in as many lines as it takes beside the names along the axis."""
    names = [len(line) for tick in ax.get_yticklabels() for line in tick.get_text().split("\n")]
    beside = 0.58 * _TICKS / 72 * max(names, default=4) + 0.5
    width: float = ax.figure.get_size_inches()[0]
    if (spec := ax.get_subplotspec()) is not None:
        ratios = spec.get_gridspec().get_width_ratios()
        width *= sum(ratios[k] for k in spec.colspan) / sum(ratios)
    room = letters(width - beside, _TITLE)
    # A number and its % are one word.
    lines = [textwrap.fill(line.replace(" %", "\xa0%"), room) for line in words.split("\n")]
    ax.set_title("\n".join(lines).replace("\xa0", " "), parse_math=False)


@styled
def each_alone(panels: Sequence[Panel], sizes: Sequence[tuple[float, float]]) -> list[Figure]:
    """Parts of a picture as pictures of their own, which may stand below each other."""
    figures = [new_figure(size) for size in sizes]
    for draw, figure in zip(panels, figures, strict=True):
        draw(figure.add_subplot())
    return figures


def letters(inches: float, points: float) -> int:
    """Number of letters of a size that a width has room for, at least ten."""
    # A letter of DejaVu Sans is .58 of its size wide on average, and a point is 1/72 inch.
    return max(10, int(inches * 72 / (0.58 * points)))
