"""The Typer application, and what all commands share: options, messages and printing."""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any
from warnings import catch_warnings, filterwarnings

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup
from typer.main import get_group

import certree
from certree.interface.formatting import escape_controls
from certree.interface.progress import hide_lines

# Name of the command that runs.
_running_command: ContextVar[str | None] = ContextVar("running command", default=None)
# Key of the arguments of the command line in the context of the group.
_ARGUMENTS_OF_COMMAND = "certree arguments"
# Parameters of commands, by other names that these have in messages of Python functions.
_ARGUMENTS = {
    "X": "source",
    "y": "target",
    "target": "output",
    "model": "model_file",
    "pos_label": "positive",
    "sample_weight": "weights",
    "threshold": "thresholds",
}

# Headings of the help page.
_MODELS, _EXPLANATIONS, _PAPER = (
    "Fit, predict and certify",
    "Explain, draw and export",
    "Experiments of the paper",
)

# Module, heading and summary of each command, in the order of the help page. The summary is the
# first paragraph of the docstring, which is not read before the command runs.
_COMMANDS = {
    "fit": (
        "fit_command",
        _MODELS,
        "Fit a model to a table, score it on a test set, and write it to a model file.",
    ),
    "predict": (
        "prediction_commands",
        _MODELS,
        "Predict every row of a table, with class probabilities.",
    ),
    "evaluate": (
        "prediction_commands",
        _MODELS,
        "Score a model on the rows of a table or folder, and print each score with its 95 % "
        "interval.",
    ),
    "certify": (
        "prediction_commands",
        _MODELS,
        "Certify the error of a classifier on rows that were never used for it.",
    ),
    "monitor": (
        "monitor_command",
        _MODELS,
        "Test on a batch of labelled new rows whether the certified bound of a model still holds.",
    ),
    "info": (
        "prediction_commands",
        _MODELS,
        "Print what a model file holds: parameters, features and their types, classes, size.",
    ),
    "demo": (
        "demo_command",
        _MODELS,
        "Compare certree with scikit-learn on a built-in data set and write an HTML page.",
    ),
    "explain": (
        "explanation_commands",
        _EXPLANATIONS,
        "Print how much each feature adds to the prediction of a row.",
    ),
    "rules": (
        "explanation_commands",
        _EXPLANATIONS,
        "Print the rules of a single tree: conditions, prediction, rows and error bounds.",
    ),
    "report": (
        "explanation_commands",
        _EXPLANATIONS,
        "Write an HTML page about a model and its scores on the rows of a table.",
    ),
    "plot": (
        "explanation_commands",
        _EXPLANATIONS,
        "Draw a figure of a model: tree, importance, calibration, ranking, loss, and others.",
    ),
    "export": (
        "explanation_commands",
        _EXPLANATIONS,
        "Export a model to a file of ONNX, SQL, JSON, C, Java, JavaScript or scikit-learn.",
    ),
    "table1": (
        "paper_commands",
        _PAPER,
        "Print the sizes of the data sets beside those in Table 1 of Nguyen and Kpotufe's paper.",
    ),
    "table2": (
        "paper_commands",
        _PAPER,
        "Rerun the comparison of methods for pruning trees in Table 2 of Nguyen and Kpotufe's "
        "paper.",
    ),
    "figure2": (
        "paper_commands",
        _PAPER,
        "Rerun the comparison of Nguyen and Kpotufe's Figure 2 for five training sizes.",
    ),
    "rates": (
        "paper_commands",
        _PAPER,
        "Simulate how fast the error of a pruned tree falls to the Bayes error as rows are added.",
    ),
}


class _CommandGroup(TyperGroup):
    """Group of commands whose modules are imported when a command runs.

    So `certree --help` and `certree --version` need not import scikit-learn. Until a command runs,
    the group has only its name, heading and summary.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and return what it returns; explain decimal commas in values of options.

        ctx: click's context of the group. Raise typer.BadParameter if the value of an option has a
        wrong type; if it is a number with a decimal comma, the message says to write a point.
        """
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            options = "|".join(map(re.escape, error.param.opts if error.param else ()))
            text = "\n".join(ctx.meta.get(_ARGUMENTS_OF_COMMAND, ()))
            found = re.search(rf"^(?:{options})[=\n]([-+]?\d*),(\d+)$", text, re.MULTILINE)
            if found is not None and "integer" not in error.message:
                point = f"write a decimal point, {found[1]}.{found[2]}"
                error.message = f"{error.message.rstrip('.')}: {point}"
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return name, command and remaining arguments of a command line.

        ctx: click's context of the group. args: the arguments after the group's own options; the
        first one is the name of the command. Import the module of the command, and store args in
        `ctx.meta`. Raise click.UsageError if there is no such command.
        """
        ctx.meta[_ARGUMENTS_OF_COMMAND] = args
        name, command, rest = super().resolve_command(ctx, args)
        return name, self._load_command(name) if command else None, rest

    def _load_command(self, name: Any) -> Any:
        """Import the module of a command, which registers it, and return the click command.

        name: name of the command, such as "fit".
        """
        import_module(f"certree.cli.{_COMMANDS[name][0]}")
        return get_group(_loaded_commands).commands[name]


def list_commands() -> dict[str, Any]:
    """Import all commands, and return each click command by name, in the order of the help page."""
    group: Any = get_group(app)
    return {name: group._load_command(name) for name in _COMMANDS}


app, _loaded_commands = (
    typer.Typer(
        cls=cls,
        help="Pruned trees, boosted trees and forests, with certified bounds on their error.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
    )
    for cls in (_CommandGroup, TyperGroup)
)
for _name, (_, _heading, _summary) in _COMMANDS.items():
    app.command(_name, help=_summary, rich_help_panel=_heading)(lambda: None)

Jobs = Annotated[int, typer.Option(metavar="N", help="Number of threads; -1: all cores.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")]
Delta = Annotated[
    float, typer.Option(metavar="P", help="Probability with which the certificate may fail.")
]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a function as the command of its name, and return the function unchanged.

    The command calls the function, unless a file that it would write is one that it reads, and
    prints errors and warnings as one line each. Its name, module and summary must be in `_COMMANDS`.
    """

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        _running_command.set(function.__name__)
        with _print_errors_in_one_line(), _print_warnings_in_one_line(), hide_lines():
            _expect_no_output_is_input(function, kwargs)
            function(*args, **kwargs)

    _loaded_commands.command()(run)
    return function


def _expect_no_output_is_input(function: Callable[..., None], values: dict[str, Any]) -> None:
    """Raise ValueError if a command would replace a file that it reads.

    function: the command; its parameters that `output_file_option` declares are files to write, its
    other paths are files to read; values: values of its options and arguments by name.
    """
    from certree.files.output_paths import expect_not_input  # --help needs no tables

    options = inspect.signature(function).parameters
    paths = {name: value for name, value in values.items() if isinstance(value, Path)}
    outputs = [name for name in paths if not options[name].annotation.__metadata__[0].readable]
    for name in outputs:
        for source in paths.keys() - outputs:
            expect_not_input(paths[name], paths[source], name)


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
    """Return the message of an error without its type; for errors about a file "FILE: reason"."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


@cache
def _list_options(name: str | None) -> dict[str, Any]:
    """Return the options and arguments of a command as click parameters, by their Python names.

    name: the command, whose module must have been imported, such as "fit"; None: no command runs,
    and {} is returned.
    """
    group: Any = get_group(_loaded_commands)
    return {} if name is None else {one.name: one for one in group.commands[name].params}


def _use_option_names(message: str) -> str:
    """Return a message with names of options in place of names of Python parameters.

    The parameter at the start of a message becomes the option or argument of the running command, so
    "keep must" becomes "--keep must", "source must" becomes "FILE must", and "recall=0.9 is" becomes
    "--recall 0.9 is". "independent=True" becomes "--independent" everywhere. Of a parameter with its
    option in brackets, such as "drop= (--drop)", the option remains.
    """
    options = _list_options(_running_command.get())
    for name, option in options.items():
        pattern = rf"\b{name}=[^()]*? ?\(({option.opts[0]}\b[^()]*)\)"
        message = re.sub(pattern, r"\1", message)
        message = re.sub(rf"\b{name}=True\b", option.opts[0], message)
    start = re.match(r"""(\w+)=["']?([^\s"']+)["']? """, message)
    if start is not None and start[1] in options:
        return f"{options[start[1]].opts[0]} {start[2]} {message[start.end() :]}"
    name = message.partition(" must ")[0]
    option = options.get(name if name in options else _ARGUMENTS.get(name, ""))
    if option is None:
        return message
    # An argument has the name in the usage line, such as FILE.
    is_option = option.opts[0].startswith("-")
    shown = option.opts[0] if is_option else str(option.metavar).strip("[]")
    return shown + message.removeprefix(name)


def _print_message(label: str, message: str) -> None:
    """Print a label, such as "error:", and a message as one line on standard error.

    label: text with rich markup; message: plain text, whose control characters are escaped.
    """
    text = f"{label} {escape(escape_controls(' '.join(_use_option_names(message).split())))}"
    Console(stderr=True).print(text, highlight=False, soft_wrap=True, emoji=False)


def print_text(text: str) -> None:
    """Print text, possibly of several lines, on standard output.

    Brackets are not interpreted as rich markup, and control characters are escaped.
    """
    lines = "\n".join(map(escape_controls, text.split("\n")))
    Console().print(lines, highlight=False, markup=False, soft_wrap=True, emoji=False)


def print_note(text: str) -> None:
    """Print a line of text on standard error, so that it is no part of the command's output.

    Control characters of the text are escaped, and names of parameters become names of options.
    """
    line = escape_controls(_use_option_names(text))
    Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True, emoji=False)


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
