"""What all commands share: the app, errors in one line, and options of one meaning."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any
from warnings import catch_warnings, filterwarnings

import typer
from rich.console import Console
from rich.markup import escape

import certree
from certree.files.places import expect_writable
from certree.interface.atomic_write import write_atomically
from certree.interface.extras import import_extra
from certree.interface.formatting import escape_controls

app = typer.Typer(
    help="Trees that prune themselves, boosted trees and forests, with certificates on their error.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

MODELS, ANSWERS, PAPER = "Models", "What a model says", "The paper's experiments"

Jobs = Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Delta = Annotated[
    float, typer.Option(metavar="P", help="Probability with which the certificate may fail.")
]


def command(panel: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command whose errors are one line each."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            with _one_line_errors(), _one_line_warnings():
                function(*args, **kwargs)

        app.command(rich_help_panel=panel)(run)
        return function

    return add


# An option that names a file to write, which nobody has to be able to read.
file_to_write = partial(typer.Option, readable=False)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Say what went wrong in one line, and exit with 1; after Ctrl-C as shells do, with 130."""
    try:
        yield
    except BrokenPipeError:
        raise  # who reads the output has seen enough: nobody needs to be told
    except (ImportError, MemoryError, OSError, TypeError, ValueError) as error:
        _complain("[bold red]error:[/]", _words_of(error) or "not enough memory")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        raise typer.Exit(130) from None


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Say warnings at the end, without the lines of source that they come from."""
    with catch_warnings(record=True) as found:
        # Rows come in the order of the model's features, and without their names.
        filterwarnings("ignore", "X does not have valid feature names")
        try:
            yield
        finally:
            for one in found:
                _complain("[bold yellow]warning:[/]", str(one.message))


def _words_of(error: BaseException) -> str:
    """What went wrong; of an error of the system also where, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _complain(kind: str, words: str) -> None:
    text = f"{kind} {escape(escape_controls(' '.join(words.split())))}"
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print text as it is, whatever brackets it holds."""
    lines = "\n".join(map(escape_controls, text.split("\n")))
    Console().print(lines, highlight=False, markup=False, soft_wrap=True)


def expect_to_draw(picture: Path | None) -> None:
    """Say what drawing to a file needs before anything is computed."""
    expect_writable(picture)
    if picture:
        known = import_extra("matplotlib.backend_bases", "plot").FigureCanvasBase.filetypes
        if _kind_of_picture(picture) not in known:
            raise ValueError(
                f"expected a file .{', .'.join(sorted(known))} to draw to, got {picture}"
            )


def _kind_of_picture(picture: Path) -> str:
    """Format that the suffix of a file names."""
    return picture.suffix[1:].lower() or "png"


def draw_to(picture: Path, draw: Callable[[], Any]) -> None:
    """Draw a figure and write it to a file, whole or not at all."""
    kind = _kind_of_picture(picture)
    write_atomically(picture, lambda file: draw().savefig(file, format=kind, dpi=150))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"certree {certree.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Trees that prune themselves, boosted trees and forests, with certificates on their error."""
