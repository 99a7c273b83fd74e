"""Check the names of columns (distinct, known), and list names in messages."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from difflib import get_close_matches

# Most column names that a message lists.
_LISTED = 12
# Smallest similarity of a name to an unknown one, in [0, 1], with which a message suggests it.
_SIMILAR = 0.7


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
        raise ValueError(
            f"the target must be a column of {where}, but there is no column {target!r}: "
            f"{suggest_names(target, every)}{suggest_separator(every)}"
        )


def suggest_separator(names: Iterable[str]) -> str:
    """Return a hint for the end of a message: the values may be separated by another character.

    The hint names the sign that seems to separate the values, and the option for it. If there are
    several columns, the sign is the first semicolon, tab or vertical bar in any name. If there is a
    single column, it is the first character of its name that is neither a letter, digit or underscore
    nor one of . - ' and ", such as a comma or a space. Return "" if there is none. names: names of
    all columns.
    """
    every = [*names]
    signs = r"[^\w\s.'\"-]|\s" if len(every) == 1 else r"[;\t|]"
    sign = re.search(signs, " ".join(name.strip() for name in every))
    if sign is None:
        return ""
    shown = repr(sign[0])
    return f"; if {shown} separates its values, state separator={shown} (--separator {shown})"


def expect_fitted_columns(names: Collection[str], features: Iterable[str], where: str) -> None:
    """Raise a ValueError if the table lacks a feature of a fitted model.

    names: names of all columns. features: names of the model's features. where: name of the file,
    for the message.
    """
    if missing := [name for name in features if name not in names]:
        raise ValueError(
            f"{where} must have all features of the model, but lacks "
            f"{join_names(map(repr, missing))}: add these columns{suggest_separator(names)}"
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
        raise ValueError(
            f"{option} must name a column, but there is no column {name!r} beside the target: "
            f"{suggest_names(name, others)}{suggest_separator(every)}"
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
