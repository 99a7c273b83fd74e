"""The Typer application, and what all commands share: options, messages, and output files."""

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
from certree.files.output_paths import expect_writable
from certree.interface.atomic_write import write_atomically
from certree.interface.extras import import_extra
from certree.interface.formatting import escape_controls

app = typer.Typer(
    help="Pruned trees, boosted trees and forests, with certified bounds on their error.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

# Panels of the help page.
MODELS, EXPLANATIONS, PAPER = (
    "Fit, predict and certify",
    "Explain, draw and export",
    "Experiments of the paper",
)

Jobs = Annotated[int, typer.Option(metavar="N", help="Number of threads; -1: all cores.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")]
Delta = Annotated[
    float, typer.Option(metavar="P", help="Probability with which the certificate may fail.")
]


def command(panel: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that registers a function as a command of `app`.

    The command has the function's name. It calls the function and prints errors and warnings as one
    line each. The decorator returns the function itself, unchanged.

    Parameters
    ----------
    panel : str
        Heading of the help page under which the command is listed: `MODELS`, `EXPLANATIONS` or
        `PAPER`.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        """Register a function as a command, and return it unchanged.

        `panel`, the argument of `command`, is the heading of the help page under which it is listed.
        """

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            with _print_errors_in_one_line(), _print_warnings_in_one_line():
                function(*args, **kwargs)

        app.command(rich_help_panel=panel)(run)
        return function

    return register


# Declares an option whose value is a file to write, which need not be readable. Takes the arguments
# of typer.Option.
output_file_option = partial(typer.Option, readable=False)


@contextmanager
def _print_errors_in_one_line() -> Iterator[None]:
    """Print an error of the with statement's body as one line on standard error, and exit.

    The exit status is 1, or 130 after Ctrl-C. A broken pipe and errors of unexpected types are not
    caught, so that Python prints their traceback.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # The reader of the output has closed it on purpose: this is no error to print.
    except (ImportError, MemoryError, OSError, TypeError, ValueError) as error:
        _print_message("[bold red]error:[/]", _describe_error(error) or "not enough memory")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        raise typer.Exit(130) from None


@contextmanager
def _print_warnings_in_one_line() -> Iterator[None]:
    """Collect the warnings of the with statement's body; at its end print each as one line.

    They go to standard error, without the source lines that caused them.
    """
    with catch_warnings(record=True) as warnings:
        # Commands pass columns in the order of the model's features, but without their names.
        filterwarnings("ignore", "X does not have valid feature names")
        try:
            yield
        finally:
            for warning in warnings:
                _print_message("[bold yellow]warning:[/]", str(warning.message))


def _describe_error(error: BaseException) -> str:
    """Return the message of an error, without its type; of a file error "FILE: reason"."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _print_message(label: str, message: str) -> None:
    """Print a label, such as "error:", and a message as one line on standard error.

    label: text with rich markup; message: plain text, whose control characters are escaped.
    """
    text = f"{label} {escape(escape_controls(' '.join(message.split())))}"
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)


def print_text(text: str) -> None:
    """Print text, possibly of several lines, on standard output.

    Brackets are not interpreted as rich markup, and control characters are escaped.
    """
    lines = "\n".join(map(escape_controls, text.split("\n")))
    Console().print(lines, highlight=False, markup=False, soft_wrap=True)


def print_note(text: str) -> None:
    """Print a line on standard error, where it does not mix with the output of the command."""
    line = escape_controls(text)
    Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)


def expect_figure_path(path: Path | None) -> None:
    """Check, before anything is computed, that a figure can be written to a path.

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
        if _figure_format(path) not in formats:
            raise ValueError(
                f"the name of a figure must end in one of .{', .'.join(sorted(formats))}, got "
                f"{path}"
            )


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


def _print_version(is_requested: bool) -> None:
    """Print the version of certree and exit, if the option --version was given.

    is_requested: whether it was given; if not, nothing happens.
    """
    if is_requested:
        typer.echo(f"certree {certree.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Pruned trees, boosted trees and forests, with certified bounds on their error."""
