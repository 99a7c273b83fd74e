"""Selection of the columns that a fitted model needs from a table, checked against the fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.certificates.hold_out import expect_known_labels
from certree.files.tables import extract_feature, join_names, split_target
from certree.interface.extras import import_extra

if TYPE_CHECKING:
    import pyarrow as pa


def column_types(
    model: Any, target: str | None, schema: pa.Schema, extra_columns: Iterable[str] = ()
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
    schema : pyarrow.Schema
        The columns of the table, with the types that the reader would choose.
    extra_columns : iterable of str
        Columns that are neither feature nor target. They are read as strings, unchanged.

    Returns
    -------
    dict
        pyarrow types by column name: string for categories and for classes that are strings,
        float64 for numbers. Columns that are not in the schema, and numeric targets, are left out.
    """
    string = import_extra("pyarrow", "files").string()
    others = {target, *extra_columns}
    names = getattr(model, "feature_names_in_", None)
    features = [name for name in schema.names if name not in others] if names is None else names
    types = dict(zip(features, _feature_types(model), strict=False))
    if target is not None and is_classifier(model) and model.classes_.dtype.kind in "OU":
        types[target] = string
    types |= {name: string for name in extra_columns if name not in types and name != target}
    return {name: column_type for name, column_type in types.items() if name in schema.names}


def _feature_types(model: Any) -> list[pa.DataType]:
    """Return the pyarrow type that each feature had in the fit of a model, in the order of the fit.

    A list of `model.n_features_in_` types: string for categories that are strings, float64 for
    numbers and for categories that are numbers, or null for a categorical feature without any
    value.
    """
    if model.categories_ is None:
        return [import_extra("pyarrow", "files").float64()] * model.n_features_in_
    return list(map(_category_type, model.categories_.names))


def _category_type(categories: Sequence[Any] | None) -> pa.DataType:
    """Return the pyarrow type of a feature: string, float64 or null.

    categories: its categories in the fit, all str or all numbers; empty if all values were missing
    (type null); None if it is numeric.
    """
    pa = import_extra("pyarrow", "files")
    if categories is None:
        return pa.float64()
    if not categories:
        return pa.null()
    return pa.string() if isinstance(categories[0], str) else pa.float64()


def expect_valid_target(model: Any, y: NDArray[Any], target_name: str) -> None:
    """Raise ValueError unless targets are classes of the model, or numbers if it is a regressor.

    model: a fitted estimator; y: targets, (n,), any dtype; target_name: name of the target in the
    message, such as "the target 'age'".
    """
    if is_classifier(model):
        expect_known_labels(target_name, y, model.classes_)
    elif y.dtype.kind not in "biuf":
        raise ValueError(
            f"{target_name} must hold numbers as in the fit, got {y[:1].tolist()[0]!r}"
        )


def select_features(model: Any, table: pa.Table, table_name: str) -> NDArray[Any]:
    """Return the features that a model needs from a table as an array, in the order of the fit.

    Parameters
    ----------
    model : fitted estimator
        The model.
    table : pyarrow.Table
        The table. It may have other columns as well, if the model was fitted with feature names.
    table_name : str
        Name of the table in messages.

    Returns
    -------
    ndarray of shape (n, n_features_in_)
        float64 if all features are numeric; else objects, which are str or None in categorical
        features, and float in numeric ones.

    Raises
    ------
    ValueError
        If a feature is missing, or holds strings where the fit had numbers, or the reverse.
    """
    features = _select_columns(table, model, table_name)
    X = split_target(features, None).X
    _expect_feature_types(features, model)
    return X


def select_feature_table(model: Any, table: pa.Table, table_name: str) -> Any:
    """Return the features that a model needs from a table, for its `predict`.

    model: a fitted estimator; table: the rows; table_name: name of the table in messages. Return a
    pyarrow table with strings or float64, in the order of the fit, if the model was fitted with
    feature names; else the array of `select_features`. Raise the errors of `select_features`.
    """
    if getattr(model, "feature_names_in_", None) is None:
        return select_features(model, table, table_name)
    features = _select_columns(table, model, table_name)
    _expect_feature_types(features, model)
    columns = {name: extract_feature(features, name) for name in features.column_names}
    pa = import_extra("pyarrow", "files")
    return pa.table(
        {name: pa.array(values, _arrow_type(values)) for name, values in columns.items()}
    )


def _arrow_type(values: NDArray[Any]) -> pa.DataType:
    """Return the pyarrow type of a feature's values, (n,): string for objects, else float64."""
    pa = import_extra("pyarrow", "files")
    return pa.string() if values.dtype == object else pa.float64()


def _select_columns(table: pa.Table, model: Any, table_name: str) -> pa.Table:
    """Return the columns of a table that are features of a model, in the order of the fit.

    Return all columns, in the order of the table, if the model was fitted without feature names.
    Raise ValueError if a feature is missing, or the number of columns differs; table_name: name of
    the table in the message.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        if table.num_columns != model.n_features_in_:
            raise ValueError(
                f"{table_name} must have {model.n_features_in_} columns, as the model has no names "
                f"of features, got {table.num_columns}"
            )
        return table
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{table_name} must have all features of the model, but lacks "
            f"{join_names(map(repr, missing))}: add these columns"
        )
    return table.select(list(names))


def _expect_feature_types(features: pa.Table, model: Any) -> None:
    """Raise ValueError if a feature has strings but had numbers in the fit, or the reverse.

    A column without any value fits both. features: table of the feature columns, in the order of
    the fit; model: the fitted model.
    """
    pa = import_extra("pyarrow", "files")
    for name, fitted_type in zip(features.column_names, _feature_types(model), strict=True):
        column = features[name].drop_null()
        has_strings = pa.types.is_dictionary(column.type) or not (
            pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
            or pa.types.is_boolean(column.type)
        )
        if fitted_type == pa.float64() and has_strings and len(column):
            texts = column.cast(pa.string()).to_pylist()
            expected, example = "numbers", next(filter(_is_not_numeric, texts), texts[0])
        elif fitted_type == pa.string() and not has_strings:
            numbers = np.asarray(column.cast(pa.float64()))
            present = numbers[~np.isnan(numbers)]
            if not len(present):
                continue
            expected, example = "strings", float(present[0])
        else:
            continue
        raise ValueError(f"feature {name!r} must hold {expected} as in the fit, got {example!r}")


def _is_not_numeric(text: str) -> bool:
    """Return whether `float` cannot parse a text."""
    try:
        float(text)
    except ValueError:
        return True
    return False
