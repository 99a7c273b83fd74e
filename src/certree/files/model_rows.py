"""Selection of the columns that a fitted model needs from a table, checked against the fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from certree.certificates.hold_out import expect_known_labels
from certree.interface.extras import import_extra
from certree.tables.column_names import expect_fitted_columns
from certree.tables.column_types import extract_feature, is_date_type, is_number_type
from certree.tables.fitted_types import list_input_columns
from certree.tables.pipeline_columns import create_frame
from certree.tables.table import create_arrow_table, split_target

if TYPE_CHECKING:
    import pyarrow as pa


def expect_valid_target(model: Any, y: NDArray[Any], target_name: str) -> None:
    """Raise a ValueError unless targets are classes of the model, or numbers if it is a regressor.

    model: a fitted estimator. y: targets, (n,), any dtype. target_name: name of the target in the
    message, such as "the target 'age'".
    """
    if is_classifier(model):
        expect_known_labels(target_name, y, model.classes_)
    elif y.dtype.kind not in "biuf":
        raise ValueError(
            f"{target_name} must hold numbers as in the fit, got {y[:1].tolist()[0]!r}: convert "
            "the column"
        )


def select_features(model: Any, table: pa.Table, table_name: str) -> Any:
    """Return the features that a model needs from a table as an array, in the order of the fit.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
        The model.
    table : pyarrow.Table
        The table. It may have other columns as well, if the model was fitted with feature names.
    table_name : str
        Name of the table in messages.

    Returns
    -------
    ndarray of shape (n, n_features_in_), or pandas.DataFrame
        float64 if all features are numeric; else objects, which are str or None in categorical
        features, float in numeric ones, and those of `datetime`, or None, in features of dates. For
        a pipeline, the rows that its `predict` needs: a data frame if it was fitted with names.

    Raises
    ------
    ValueError
        If a feature is missing, or holds strings, say, where it held numbers or dates in the fit.
    """
    if isinstance(model, Pipeline):
        return select_feature_table(model, table, table_name)
    features = _select_columns(table, model, table_name)
    X = split_target(features, None).X
    _expect_feature_types(features, model, table_name)
    return X


def select_feature_table(model: Any, table: pa.Table, table_name: str) -> Any:
    """Return the features that a model needs from a table in the form that its `predict` takes.

    A model that was fitted with feature names gets a pyarrow table with strings, float64 or dates,
    in the order of the fit; a model without names gets the array of `select_features`. A pipeline
    gets a data frame of pandas, or an array if it was fitted without names.

    model: a fitted estimator, or a pipeline that ends in one. table: the rows. table_name: name of
    the table in messages. Raise the errors of `select_features`.
    """
    names, columns = list_input_columns(model)
    is_pipeline = isinstance(model, Pipeline)
    if names is None and not is_pipeline:
        return select_features(model, table, table_name)
    features = _select_columns(table, model, table_name)
    _expect_feature_types(features, model, table_name)
    # A column whose type is not known stays as the file has it.
    known = {
        field.name: features[field.name]
        if is_date_type(field.type) or column.type is None
        else extract_feature(features, field.name)
        for field, column in zip(features.schema, columns, strict=True)
    }
    converted = create_arrow_table(known)
    if not is_pipeline:
        return converted
    frame = create_frame(converted, columns)
    return frame.to_numpy() if names is None else frame


def _select_columns(table: pa.Table, model: Any, table_name: str) -> pa.Table:
    """Return the columns of a table that are features of a model, in the order of the fit.

    Return all columns, in the order of the table, if the model was fitted without feature names.
    table_name: name of the table in the message. Raise a ValueError if a feature is missing, or the
    number of columns differs.
    """
    names, columns = list_input_columns(model)
    if names is None:
        if table.num_columns != len(columns):
            raise ValueError(
                f"{table_name} must have the {len(columns)} features of the model and no other "
                f"columns, as the model has no names of features, got {table.num_columns} columns"
            )
        return table
    expect_fitted_columns(table.column_names, names, table_name)
    return table.select(names)


def _expect_feature_types(features: pa.Table, model: Any, table_name: str) -> None:
    """Raise a ValueError if a feature holds strings, say, where it held numbers or dates in the fit.

    A column without any value is accepted. features: table of the feature columns, in the order of
    the fit. model: the fitted model. table_name: name of the table in the message.
    """
    pa = import_extra("pyarrow", "files")
    _, columns = list_input_columns(model)
    for name, fitted in zip(features.column_names, columns, strict=True):
        fitted_type = fitted.type
        if fitted_type is None:
            continue
        column = features[name].drop_null()
        has_strings = not (is_number_type(column.type) or pa.types.is_boolean(column.type))
        if fitted_type == pa.float64() and has_strings and len(column):
            texts = column.cast(pa.string()).to_pylist()
            expected, example = "numbers", next(filter(_is_not_numeric, texts), texts[0])
        elif is_date_type(fitted_type) != is_date_type(column.type) and len(column):
            expected = "dates" if is_date_type(fitted_type) else "strings"
            example = column.cast(pa.string()).to_pylist()[0]
        elif fitted_type == pa.string() and not has_strings:
            numbers = np.asarray(column.cast(pa.float64()))
            present = numbers[~np.isnan(numbers)]
            if not len(present):
                continue
            expected, example = "strings", float(present[0])
        else:
            continue
        message = (
            f"feature {name!r} must hold {expected} as in the fit, got {example!r} in {table_name}"
        )
        if expected == "dates":
            message += (
                ": write dates such as 2024-12-31, or state the order of day and month by dates= "
                "(--dates dd/mm)"
            )
        raise ValueError(message)


def _is_not_numeric(text: str) -> bool:
    """Return whether `float` cannot parse a text."""
    try:
        float(text)
    except ValueError:
        return True
    return False
