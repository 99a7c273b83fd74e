"""Options of commands that state how CSV files are read, and lines about the columns that were read."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any

import typer

from certree.cli.app import print_note
from certree.tables.column_names import UnknownColumnError
from certree.tables.table import TableDescription
from certree.tables.table_source import TableSource

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
    day_first : "dd/mm", 3 April
    month_first : "mm/dd", March 4
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
        help="Text that is a missing value in every column, such as -999, in place of NA, NULL and the "
        "like, which remain missing among numbers and dates; repeat for more.",
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
        help="Column of codes that are categories although they look like numbers, dates or missing "
        "values such as NA; repeat for more.",
        rich_help_panel=_PANEL,
    ),
]
# Words that stand for separators which are hard to type.
_SIGNS = {"tab": "\t", "\\t": "\t", "space": " "}
_Timezone = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        metavar="NAME",
        help="Time zone of dates with times that have an offset from UTC, such as Europe/Zurich, in "
        "which their weekday and hour are read.",
        show_default="UTC",
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
    "timezone": _Timezone,
}


def takes_source(argument: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the argument FILE and the options of reading.

    Parameters
    ----------
    argument : annotation
        Annotation of the command's argument FILE, a path.

    Returns
    -------
    callable
        Takes a command with a parameter `source`, a `TableSource`, and returns the command that
        Typer calls: this takes a path in place of `source`, and the options as last parameters.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            given = {name: kwargs.pop(name, None) for name in _OPTIONS}
            chosen: dict[str, Any] = {
                name: str(value) if isinstance(value, StrEnum) else value
                for name, value in given.items()
                if value is not None
            }
            if "separator" in chosen:
                chosen["separator"] = _SIGNS.get(chosen["separator"], chosen["separator"])
            file = kwargs["source"]
            source = None if file is None else TableSource(file, **chosen)
            with _explain_separator(chosen.get("separator")):
                function(*args, **{**kwargs, "source": source})

        signature = inspect.signature(function)
        last = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            *(
                {
                    **signature.parameters,
                    "source": signature.parameters["source"].replace(annotation=argument),
                }
            ).values(),
            *(
                inspect.Parameter(name, last, default=None, annotation=kind)
                for name, kind in _OPTIONS.items()
            ),
        ]
        run.__annotations__ = {**function.__annotations__, "source": argument, **_OPTIONS}
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


@contextmanager
def _explain_separator(separator: str | None) -> Iterator[None]:
    """Let errors in a with statement's body say that --separator may be wrong, if it is used.

    Without this option, they say that it may be needed. separator: value of the option, or None.
    """
    try:
        yield
    except UnknownColumnError as error:
        if separator in (None, error.separator) or error.separator is None:
            raise
        raise ValueError(
            f"{error.reason}; {error.separator!r} seems to separate its values instead of "
            f"{separator!r}: give --separator {error.separator!r}, or leave --separator out"
        ) from None


def announce(description: TableDescription) -> None:
    """Print on standard error how the columns of a table were read, one line for each column.

    Columns of one type without any note share a line. description: number of rows, and for each
    column its type, its missing values and notes.
    """
    for line in description.summarize():
        print_note(line)
