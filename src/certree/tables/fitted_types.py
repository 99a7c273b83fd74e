"""Types and formats with which columns are read for a fitted model: those of its fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sklearn.base import is_classifier

from certree.tables.arrow import pa
from certree.tables.table_source import TableFormat, with_format

# Private attribute of fitted estimators with the format of the CSV files of their fit.
FORMAT_ATTRIBUTE = "_table_format"


def get_model_format(model: Any) -> TableFormat | None:
    """Return the format of the CSV files that a model was fitted to; None: there is nothing unusual."""
    found: TableFormat | None = getattr(model, "__dict__", {}).get(FORMAT_ATTRIBUTE)
    return found


def use_model_format(source: Any, model: Any) -> Any:
    """Return a source whose CSV files are read with the format of a model's fit.

    source: path, list of paths, TableSource or data set of Arrow; model: a fitted estimator.
    """
    return with_format(source, get_model_format(model))


def get_column_types(
    model: Any, target: str | None, names: Sequence[str], extra_columns: Iterable[str] = ()
) -> dict[str, pa.DataType]:
    """Return the types with which the columns of a table must be read to be those of a fit.

    A file alone does not determine them: a column of category codes may look like numbers.

    Parameters
    ----------
    model : fitted estimator
        The model. Without feature names, all columns but the target and `extra_columns` are
        features, in their order.
    target : str or None
        Column of the target, if there is one.
    names : sequence of str
        Names of all columns of the table.
    extra_columns : iterable of str
        Columns that are neither feature nor target. They get no type.

    Returns
    -------
    dict
        pyarrow types by column name: string for categories and for classes that are strings,
        float64 for numbers, and types of dates. Columns that are not in the table, and numeric
        targets, are left out.
    """
    string = pa.string()
    others = {target, *extra_columns}
    features = getattr(model, "feature_names_in_", None)
    if features is None:
        features = [name for name in names if name not in others]
    types = dict(zip(features, list_feature_types(model), strict=False))
    if target is not None and is_classifier(model) and model.classes_.dtype.kind in "OU":
        types[target] = string
    return {name: column_type for name, column_type in types.items() if name in names}


def list_feature_types(model: Any) -> list[pa.DataType]:
    """Return the pyarrow type that each feature had in the fit of a model, in the order of the fit.

    A list of `model.n_features_in_` types: string for categories that are strings, float64 for
    numbers and for categories that are numbers, a type of dates or time spans, or null for a
    categorical feature without any value.
    """
    if model.categories_ is None:
        types = [pa.float64()] * model.n_features_in_
    else:
        types = list(map(_category_type, model.categories_.names))
    for j, dates in (getattr(model, "dates_", None) or {}).items():
        types[j] = _date_type(dates)
    return types


def _date_type(dates: Any) -> pa.DataType:
    """Return the pyarrow type of a feature of dates or time spans, with microseconds.

    dates: its `certree.rows.DateColumn`.
    """
    if dates.kind == "date":
        return pa.date32()
    return pa.duration("us") if dates.kind == "span" else pa.timestamp("us", dates.zone)


def _category_type(categories: Sequence[Any] | None) -> pa.DataType:
    """Return the pyarrow type of a feature: string, float64 or null.

    categories: its categories in the fit, all str or all numbers; empty if all values were missing
    (type null); None if it is numeric.
    """
    if categories is None:
        return pa.float64()
    if not categories:
        return pa.null()
    return pa.string() if isinstance(categories[0], str) else pa.float64()
