"""Values of new rows that a fitted model does not know: unseen categories, and empty features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from warnings import warn

from certree.interface.formatting import format_quantity
from certree.tables.arrow import pa, pc
from certree.tables.reader import Batch

# Unseen categories that a warning lists; and rows in which a feature without values is a warning.
_LISTED, _SEVERAL = 3, 5


class NewValues:
    """Counts unseen categories and missing values of new rows, to warn of them once.

    Models predict for such rows as well, so that mistakes in a table would show nowhere.

    Parameters
    ----------
    model : fitted estimator
        The model.
    names : sequence of str
        Names of its features in the table.
    """

    def __init__(self, model: Any, names: Sequence[str]) -> None:
        self._names, self._n_rows = [*names], 0
        self._n_present: Counter[str] = Counter()
        self._unseen: dict[str, Counter[str]] = {}
        self._known: dict[str, Any] = {}
        known = model.categories_
        if known is None:
            return
        digested = {*getattr(known, "digested", ())}
        for j, (name, categories) in enumerate(zip(self._names, known.names, strict=False)):
            if categories and isinstance(categories[0], str) and j not in digested:
                values = pa.array(categories)
                self._known[name], self._unseen[name] = values, Counter()

    def add(self, table: pa.Table) -> None:
        """Count the values of a table, which may have other columns as well."""
        self._n_rows += len(table)
        for name in self._names:
            if name not in table.column_names:
                continue
            column = table[name]
            self._n_present[name] += len(column) - column.null_count
            if name in self._known and pa.types.is_string(column.type):
                is_unseen = pc.invert(pc.is_in(column, self._known[name]))
                unseen = column.filter(pc.and_(is_unseen, column.is_valid()))
                for one in unseen.value_counts().to_pylist() if len(unseen) else ():
                    self._unseen[name][one["values"]] += one["counts"]

    def warn(self, where: str) -> None:
        """Warn of each feature with unseen categories or without values; where: the table."""
        for name in self._names:
            is_known = self._n_rows >= _SEVERAL and name in self._n_present
            if is_known and not self._n_present[name]:
                warn(f"feature {name!r} is missing in all rows of {where}", stacklevel=3)
            unseen = self._unseen.get(name)
            if unseen:
                listed = ", ".join(repr(text) for text, _ in unseen.most_common(_LISTED))
                number = format_quantity(len(unseen), "category", "categories")
                more = ", ..." if len(unseen) > _LISTED else ""
                warn(
                    f"feature {name!r} of {where} has {number} that the fit has not seen, in "
                    f"{format_quantity(unseen.total(), 'row')}: {listed}{more}",
                    stacklevel=3,
                )


def warn_of_new_values(
    model: Any, batches: Iterator[Batch], others: Sequence[str]
) -> Iterator[Batch]:
    """Yield the batches unchanged, and warn behind the last one of values that a model does not know.

    model: a fitted estimator; batches: its new rows; others: columns that are no features.
    """
    new: NewValues | None = None
    places: list[str] = []
    for batch in batches:
        if new is None:
            new = create_new_values(model, batch.table, others)
        new.add(batch.table)
        places = places if batch.where in places else [*places, batch.where]
        if batch.is_last:
            new.warn(places[0] if len(places) == 1 else f"{places[0]} .. {places[-1]}")
        yield batch


def create_new_values(model: Any, table: pa.Table, others: Sequence[str]) -> NewValues:
    """Return a `NewValues` for the features of a model in a table.

    others: columns of the table that are no features, of which models without names of features take
    all others.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [name for name in table.column_names if name not in others]
    return NewValues(model, names)
