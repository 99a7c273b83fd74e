"""Warn of values of new rows that a fitted model does not know: unseen categories, empty features."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from warnings import warn

from certree.interface.formatting import format_quantity
from certree.tables.arrow import pa, pc
from certree.tables.column_types import is_text_type
from certree.tables.fitted_types import list_input_columns
from certree.tables.reader import Batch
from certree.tables.table_files import name_range
from certree.tables.text_formats import count_values

# Unseen categories that a warning lists; and rows in which a feature without values is a warning.
_LISTED, _SEVERAL = 3, 5


def warn_of_new_values(
    model: Any, batches: Iterable[Batch], others: Sequence[str]
) -> Iterator[Batch]:
    """Yield batches of new rows unchanged, and warn of values that the model does not know.

    These are categories that the training rows did not have, and features that are missing in all
    of at least five rows. The warnings are given before the last batch is yielded. Models predict
    for such rows as well, so that mistakes in a table would not show in the predictions.

    Parameters
    ----------
    model : fitted estimator
        The model.
    batches : iterable of Batch
        The new rows.
    others : sequence of str
        Names of columns that are no features. For a model without feature names, all other columns
        are features.
    """
    features, columns = list_input_columns(model)
    names, known = list[str](), dict[str, Any]()
    unseen, n_present = defaultdict[str, Counter[str]](Counter), Counter[str]()
    n_rows, places = 0, dict[str, None]()
    for batch in batches:
        table = batch.table
        if not places:
            every = [name for name in table.column_names if name not in others]
            names = every if features is None else [*features]
            pairs = zip(names, columns, strict=False)
            known = {name: pa.array(one.categories) for name, one in pairs if one.categories}
        places[batch.where] = None
        n_rows += len(table)
        for name in table.column_names:
            if name not in names:
                continue
            column = table[name]
            n_present[name] += len(column) - column.null_count
            if name in known and is_text_type(column.type):
                column = column.cast(pa.string())  # pandas writes large strings.
                is_unseen = pc.invert(pc.is_in(column, known[name]))
                unseen[name] += count_values(column.filter(pc.and_(is_unseen, column.is_valid())))
        if batch.is_last:
            where = name_range([*places])
            for name in names:
                if n_rows >= _SEVERAL and n_present.get(name) == 0:
                    warn(f"feature {name!r} is missing in all rows of {where}", stacklevel=2)
                if unseen[name]:
                    _warn_of_categories(name, unseen[name], where)
        yield batch


def _warn_of_categories(name: str, unseen: Counter[str], where: str) -> None:
    """Warn that a column of new rows has categories that the training rows did not have.

    name: name of the feature. unseen: number of rows with each such category. where: name of the
    file, or of the first and the last one, for the message.
    """
    listed = ", ".join(repr(text) for text, _ in unseen.most_common(_LISTED))
    number = format_quantity(len(unseen), "category", "categories")
    more = ", ..." if len(unseen) > _LISTED else ""
    warn(
        f"feature {name!r} of {where} has {number} that the fit has not seen, in "
        f"{format_quantity(unseen.total(), 'row')}: {listed}{more}",
        stacklevel=3,
    )
