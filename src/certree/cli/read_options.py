"""Options of commands that state how CSV files are read, and lines on how they were read."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any

import typer

from certree.cli.app import print_note
from certree.tables.table import TableDescription
from certree.tables.table_source import ReadOptions

_PANEL = "Reading of CSV files"
_DETECTED = "detected"


class DecimalMark(StrEnum):
    """Values of the option --decimal.

    Attributes
    ----------
    point : a point, as in 1,234.5
    comma : a comma, as in 1.234,5
    """

    point = "."
    comma = ","


class DateOrder(StrEnum):
    """Values of the option --dates: order of day and month in dates such as 03/04/2024.

    Attributes
    ----------
    day_first : 3 April
    month_first : March 4
    """

    day_first = "dd/mm"
    month_first = "mm/dd"


_Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="SIGN",
        help="Sign between values; tab for tabs.",
        show_default=_DETECTED,
        rich_help_panel=_PANEL,
    ),
]
_Decimal = Annotated[
    DecimalMark | None,
    typer.Option(
        "--decimal",
        metavar="SIGN",
        help="Decimal mark of numbers: . or ,",
        show_default=_DETECTED,
        rich_help_panel=_PANEL,
    ),
]
_Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the text, such as latin-1.",
        show_default=_DETECTED,
        rich_help_panel=_PANEL,
    ),
]
_Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="TEXT",
        help="Text that is a missing value in every column, such as -999, beside NA, NULL and the "
        "like; repeat for more.",
        rich_help_panel=_PANEL,
    ),
]
_Dates = Annotated[
    DateOrder | None,
    typer.Option(
        "--dates",
        metavar="ORDER",
        help="Order of day and month in dates such as 03/04/2024: dd/mm or mm/dd.",
        show_default=_DETECTED,
        rich_help_panel=_PANEL,
    ),
]
_Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMN",
        help="Column to leave out; repeat for more.",
        rich_help_panel=_PANEL,
    ),
]
_KeepText = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-text",
        metavar="COLUMN",
        help="Column of codes that are categories although they look like numbers or dates; repeat "
        "for more.",
        rich_help_panel=_PANEL,
    ),
]
_OPTIONS = {
    "separator": _Separator,
    "decimal": _Decimal,
    "encoding": _Encoding,
    "missing": _Missing,
    "dates": _Dates,
    "drop": _Drop,
    "keep_text": _KeepText,
}


def takes_read_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of reading to a command.

    Parameters
    ----------
    function : callable
        A command with a last parameter `options`, which gets them as `ReadOptions`.

    Returns
    -------
    callable
        The command, with a parameter for each option in place of `options`.
    """
    signature = inspect.signature(function)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _OPTIONS.items()
    ]
    kept = [one for name, one in signature.parameters.items() if name != "options"]

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        given = {name: kwargs.pop(name, None) for name in _OPTIONS}
        function(*args, **kwargs, options=_create_options(**given))

    annotations = {
        name: kind for name, kind in function.__annotations__.items() if name != "options"
    }
    run.__annotations__ = {**annotations, **_OPTIONS}
    run.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
    return run


def _create_options(
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
    missing: list[str] | None,
    dates: str | None,
    drop: list[str] | None,
    keep_text: list[str] | None,
) -> ReadOptions:
    """Return the options of reading; the parameters are the values of the command's options."""
    names = {"tab": "\t", "\\t": "\t", "space": " "}
    return ReadOptions(
        names.get(separator or "", separator),
        None if decimal is None else str(decimal),
        encoding,
        tuple(missing or ()),
        None if dates is None else str(dates),
        tuple(drop or ()),
        tuple(keep_text or ()),
    )


def announce(description: TableDescription) -> None:
    """Print on standard error how the columns of a table were read, one line for each column.

    Columns of one type of which there is nothing else to say have one line together.
    """
    for line in description.summarize():
        print_note(line)
