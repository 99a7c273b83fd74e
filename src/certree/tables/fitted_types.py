"""Find the types and formats with which tables are read for a fitted model: those of its fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from certree.tables.arrow import pa
from certree.tables.csv_text import MISSING_MARKERS
from certree.tables.pipeline_columns import InputColumn, list_pipeline_columns
from certree.tables.table_source import TableFormat, with_format

# Private attribute of fitted estimators with the format of the CSV files of their fit.
FORMAT_ATTRIBUTE = "_table_format"


def get_model_format(model: Any) -> TableFormat | None:
    """Return the unusual formats in the CSV files that a model was fitted to, or None.

    A `TableFormat` has the separator, the encoding, the decimal mark, the markers of missing values
    and the formats of columns, as far as they are not the usual ones. None, too, for models that
    were not fitted to files. model: an estimator.
    """
    found: TableFormat | None = getattr(model, "__dict__", {}).get(FORMAT_ATTRIBUTE)
    return found


def use_model_format(source: Any, model: Any) -> Any:
    """Return a source whose CSV files are read with the format of a model's fit.

    source: path, list of paths, TableSource or data set of Arrow; model: a fitted estimator. Return
    a `TableSource` with the options of the source and that format, or the source itself if the
    model stores no format.
    """
    return with_format(source, get_model_format(model))


def get_fitted_columns(
    model: Any, target: str | None, names: Sequence[str], extra_columns: Iterable[str] = ()
) -> dict[str, InputColumn]:
    """Return the types and categories that columns of a table had in the fit of a model, by name.

    A table of new rows is read with these types. A file alone does not determine them: a column of
    category codes may look like numbers.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
        The model. Without feature names, all columns but the target and `extra_columns` are
        features, in their order.
    target : str or None
        Name of the target column, if there is one.
    names : sequence of str
        Names of all columns of the table.
    extra_columns : iterable of str
        Names of columns that are neither feature nor target. They get no type.

    Returns
    -------
    dict of str to InputColumn
        Types and categories by column name. The type is string for categories and for classes that
        are strings, float64 for numbers, or a type of dates. Columns that are not in the table,
        columns whose type no step of a pipeline stores, and numeric targets, are left out.
    """
    others = {target, *extra_columns}
    features, columns = list_input_columns(model)
    if features is None:
        features = [name for name in names if name not in others]
    found = {
        name: column
        for name, column in zip(features, columns, strict=False)
        if column.type is not None
    }
    if target is not None and is_classifier(model) and model.classes_.dtype.kind in "OU":
        words = MISSING_MARKERS.intersection(model.classes_.tolist())
        found[target] = InputColumn(pa.string(), words=words)
    return {name: column for name, column in found.items() if name in names}


def list_input_columns(model: Any) -> tuple[list[str] | None, list[InputColumn]]:
    """Return the names of the columns that a fitted model reads, and their types in the fit.

    Parameters
    ----------
    model : fitted estimator of certree, or Pipeline that ends in an estimator
        The model.

    Returns
    -------
    names : list of str, or None
        Names of the columns, in the order of the fit; None if the model was fitted without names.
    columns : list of InputColumn
        Type and categories of each column, in the same order.

    Raises
    ------
    TypeError
        If the first step of a pipeline does not store its columns.
    """
    if isinstance(model, Pipeline):
        last = model.steps[-1][1]
        n = getattr(last, "n_features_in_", 0)
        is_known = hasattr(last, "categories_")
        outputs = _list_model_columns(last) if is_known else [InputColumn()] * n
        return list_pipeline_columns(model, outputs)
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [*names], _list_model_columns(model)


def _list_model_columns(model: Any) -> list[InputColumn]:
    """Return an `InputColumn` for each feature of a fitted estimator of certree: type and categories.

    model: the estimator. The list is in the order of the features of the fit. Types are string for
    categories that are strings, float64 for numbers and for categories that are numbers, a type of
    dates or time spans, or null for a categorical feature without any value.
    """
    if model.categories_ is None:
        columns = [InputColumn(_category_type(None))] * model.n_features_in_
    else:
        digested = {*getattr(model.categories_, "digested", ())}
        columns = []
        for j, names in enumerate(model.categories_.names):
            kind, is_listed = _category_type(names), j not in digested
            if not pa.types.is_string(kind):
                columns.append(InputColumn(kind))
                continue
            words = model.categories_.select_known_texts(j, MISSING_MARKERS)
            columns.append(InputColumn(kind, names if is_listed else None, words=words))
    for j, dates in (getattr(model, "dates_", None) or {}).items():
        columns[j] = InputColumn(_date_type(dates))
    return columns


def _date_type(dates: Any) -> pa.DataType:
    """Return the pyarrow type of a feature of dates (date32 or microseconds) or time spans.

    dates: the `certree.rows.DateColumn` of the feature, whose kind is "date" (date32), "span" (a
    duration in microseconds) "midnight" or "datetime" (a timestamp in microseconds, with the time
    zone, if any).
    """
    if dates.kind == "date":
        return pa.date32()
    return pa.duration("us") if dates.kind == "span" else pa.timestamp("us", dates.zone)


def _category_type(categories: Sequence[Any] | None) -> pa.DataType:
    """Return the pyarrow type of a feature: string, float64 or null.

    categories: categories of the feature in the fit, all str or all numbers; empty if all values
    were missing (type null); None if the feature is numeric.
    """
    if categories is None:
        return pa.float64()
    if not categories:
        return pa.null()
    return pa.string() if isinstance(categories[0], str) else pa.float64()
