"""Check the names of columns (distinct, known), and list names in messages."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from difflib import get_close_matches

# Most column names that a message lists.
_LISTED = 12
# Smallest similarity of a name to an unknown one, in [0, 1], with which a message suggests it.
_SIMILAR = 0.7


class UnknownColumnError(ValueError):
    """Error: a table lacks a column. The message names the sign that seems to separate its values.

    Attributes
    ----------
    reason : str
        The message without the hint on this sign.
    separator : str or None
        The sign that seems to separate the values of the table; None: there is no such sign.
    """

    reason: str
    separator: str | None


def _make_unknown_column_error(reason: str, names: Iterable[str]) -> UnknownColumnError:
    """Return the error of a table that lacks a column.

    reason: the message without a hint on the separator. names: names of all columns of the table.
    """
    separator, hint = _find_separator(names), ""
    if separator is not None:
        sign = repr(separator)
        hint = f"; if {sign} separates its values, state separator={sign} (--separator {sign})"
    error = UnknownColumnError(f"{reason}{hint}")
    error.reason, error.separator = reason, separator
    return error


def expect_distinct(names: Iterable[str]) -> None:
    """Raise a ValueError if a column name occurs more than once. names: names of all columns."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"column names must be distinct, but {join_names(twice)} occurs more than once: rename "
            "one of the columns"
        )


def expect_target(names: Iterable[str], target: str, where: str) -> None:
    """Raise a ValueError if the table has no column with the name of the target.

    names: names of all columns. target: name of the target. where: name of the file, for the
    message.
    """
    every = [*names]
    if target not in every:
        raise _make_unknown_column_error(
            f"the target must be a column of {where}, but there is no column {target!r}: "
            f"{suggest_names(target, every)}",
            every,
        )


def _find_separator(names: Iterable[str]) -> str | None:
    """Return the sign that seems to separate the values of a table, or None if there is none.

    It is the first semicolon, tab or vertical bar in any name. If there is a single column without
    them, it is the first comma of its name, or else the first character that is neither a letter,
    digit or underscore nor one of . - ' and ", such as a space. names: names of all columns.
    """
    every = [*names]
    text = " ".join(name.strip() for name in every)
    patterns = (r"[;\t|]", ",", r"[^\w\s.'\"-]|\s") if len(every) == 1 else (r"[;\t|]",)
    found = [sign[0] for pattern in patterns if (sign := re.search(pattern, text)) is not None]
    return found[0] if found else None


def expect_fitted_columns(names: Collection[str], features: Iterable[str], where: str) -> None:
    """Raise a ValueError if the table lacks a feature of a fitted model.

    names: names of all columns. features: names of the model's features. where: name of the file,
    for the message.
    """
    if missing := [name for name in features if name not in names]:
        raise _make_unknown_column_error(
            f"{where} must have all features of the model, but lacks "
            f"{join_names(map(repr, missing))}: add these columns",
            names,
        )


def expect_known_columns(
    option: str, chosen: Iterable[str], names: Iterable[str], where: str
) -> None:
    """Raise a ValueError if an option of reading names a column that a file does not have.

    option: name of the option. chosen: names of columns that the option has. names: names of all
    columns of the file. where: name of the file, for the message.
    """
    every = [*names]
    if unknown := [name for name in chosen if name not in every]:
        raise ValueError(
            f"{option} must name columns of {where}, but there is no column {unknown[0]!r}: "
            f"{suggest_names(unknown[0], every)}"
        )


def expect_other_column(option: str, name: str, names: Iterable[str], target: str) -> None:
    """Raise ValueError unless an option names a column other than the target.

    option: name of the option; name: the column that it names; names: names of all columns; target:
    column of the target.
    """
    every = [*names]
    if name not in every or name == target:
        others = [column for column in every if column != target]
        raise _make_unknown_column_error(
            f"{option} must name a column, but there is no column {name!r} beside the target: "
            f"{suggest_names(name, others)}",
            every,
        )


def expect_features(names: Collection[str], others: Iterable[str], where: str) -> None:
    """Raise a ValueError if a table has no feature.

    names: names of the features. others: roles of the columns that are no features, such as "the
    target". where: name of the file, for the message.
    """
    if not names:
        raise ValueError(
            f"{where} must have a feature column, but has none besides {' and '.join(others)}: add "
            "columns, or check the separator"
        )


def suggest_names(unknown: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: a similar one if there is one, and all names.

    Case does not matter. names: the known names, such as those of columns.
    """
    every = [*names]
    by_case = {name.casefold(): name for name in reversed(every)}
    similar = get_close_matches(unknown.strip().casefold(), by_case, 1, _SIMILAR)
    text = f"name one of {join_names(every)}"
    return f"did you mean {by_case[similar[0]]!r}? Or {text}" if similar else text


def join_names(names: Iterable[str]) -> str:
    """Join names with commas for a message; write "and k more" for those after the first 12."""
    every = [*names]
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more
