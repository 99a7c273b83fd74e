"""Names of columns: they must be distinct, and messages list them."""

from collections import Counter
from collections.abc import Iterable

# Most column names that a message lists.
_LISTED = 12


def expect_distinct(names: Iterable[str]) -> None:
    """Raise ValueError if a column name occurs more than once; names: names of all columns."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"column names must be distinct, but {join_names(twice)} occurs more than once: rename "
            "one of the columns"
        )


def join_names(names: Iterable[str]) -> str:
    """Join names with commas for a message; after 12 names write "and k more" for the others."""
    every = [*names]
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more
