"""Columns that a fitted scikit-learn pipeline reads: names, types, categories and missing values.

A pipeline stores the names of its input columns, but not their types. The fitted steps show most
types: encoders hold the categories, scalers accept only numbers, and the last step is an estimator
of certree, which stores the types of the columns that it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from certree.interface.extras import import_extra
from certree.tables.arrow import pa
from certree.tables.csv_text import MISSING_MARKERS


@dataclass(frozen=True, slots=True, eq=False)
class InputColumn:
    """Type and categories, in the fit of a model, of a table column that the model reads.

    Attributes
    ----------
    type : pyarrow.DataType or None
        Type of the column in the fit: string, float64, null (no value at all) or a type of dates.
        None: no step of the pipeline stores it, and the type of the file is used.
    categories : sequence of str or None
        The categories of the fit, if the column is of text and they are stored.
    missing : object
        Object that replaces missing texts in the table that a pipeline receives: NaN or None.
    words : frozenset of str
        Categories of the fit that mean a missing value in other columns, such as "NA".
    """

    type: pa.DataType | None = None
    categories: Sequence[str] | None = None
    missing: Any = np.nan
    words: frozenset[str] = frozenset()


# None in place of a column: the step drops it.
_Columns = list[InputColumn | None]


def get_first_step(pipeline: Pipeline) -> Any:
    """Return the first step of a fitted pipeline that is an object, also inside nested pipelines.

    Steps that are "passthrough" or None are skipped, and so are nested pipelines of these alone. The
    step may be the final model. Return None if there is no such step.
    """
    for _, step in pipeline.steps:
        first = get_first_step(step) if isinstance(step, Pipeline) else step
        if first is not None and not isinstance(first, str):
            return first
    return None


def list_pipeline_columns(
    pipeline: Pipeline, outputs: Sequence[InputColumn]
) -> tuple[list[str] | None, list[InputColumn]]:
    """Find the columns that a fitted pipeline reads, by what its steps store.

    Parameters
    ----------
    pipeline : Pipeline
        The fitted pipeline.
    outputs : sequence of InputColumn
        The columns that the last step reads.

    Returns
    -------
    names : list of str, or None
        Names of the input columns; None if the pipeline was fitted without names. Columns that a
        `ColumnTransformer` drops are left out, as scikit-learn does not need them.
    columns : list of InputColumn
        The columns, in the same order; without names they are those of the fit by position.

    Raises
    ------
    TypeError
        If the first step does not store the number of its columns, such as a text vectorizer.
    """
    first = get_first_step(pipeline)
    n = getattr(first, "n_features_in_", None)
    if n is None:
        raise TypeError(
            "model must be a pipeline whose first step stores the columns of its fit, but "
            f"{type(first).__name__} does not: put it into a ColumnTransformer"
        )
    found: _Columns | None = [*outputs]
    for _, step in reversed(pipeline.steps[:-1]):
        found = _find_inputs(step, found)
    columns: _Columns = [InputColumn()] * n if found is None or len(found) != n else found
    names = getattr(first, "feature_names_in_", None)
    if names is None:
        return None, [column or InputColumn() for column in columns]
    used = [(str(name), column) for name, column in zip(names, columns, strict=True) if column]
    return [name for name, _ in used], [column for _, column in used]


def create_frame(table: pa.Table, columns: Sequence[InputColumn]) -> Any:
    """Convert the columns of a table to a data frame of pandas for a pipeline.

    Return a `pandas.DataFrame`. Text becomes a column of objects whose missing values are those of
    the fit (NaN or None). table: the columns that the pipeline reads. columns: an `InputColumn` for
    each column of the table, in its order.
    """
    pd = import_extra("pandas", "frames")
    series = {}
    for field, column in zip(table.schema, columns, strict=True):
        name, is_coded = field.name, pa.types.is_dictionary(field.type)
        values = table[name].cast(field.type.value_type) if is_coded else table[name]
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            series[name] = values.to_pandas()
            continue
        texts = values.to_numpy(zero_copy_only=False).astype(object)
        texts[np.asarray(values.is_null())] = column.missing
        series[name] = pd.Series(texts, dtype=object)
    return pd.DataFrame(series)


def _find_inputs(step: Any, outputs: _Columns | None) -> _Columns | None:
    """Return the columns that a fitted step of a pipeline reads; None if the step does not store them.

    An entry of the list is an `InputColumn` (type and categories of a column), or None for a column
    that the step drops. step: a transformer, a pipeline of transformers, "passthrough" or None.
    outputs: the columns that the next step reads; None if these are not known.
    """
    if step is None or isinstance(step, str):
        return outputs
    if isinstance(step, Pipeline):
        for _, inner in reversed(step.steps):
            outputs = _find_inputs(inner, outputs)
        return outputs
    if isinstance(step, ColumnTransformer):
        return _find_inputs_of_parts(step, outputs)
    if isinstance(step, FeatureUnion):
        parts = [_find_inputs(part, None) for _, part in step.transformer_list if part != "drop"]
        return _merge_all([part for part in parts if part is not None])
    if isinstance(step, FunctionTransformer) and step.func is None:
        return outputs
    if hasattr(step, "categories_"):
        return [_describe_categories([*known]) for known in step.categories_]
    if hasattr(step, "statistics_"):
        return _find_inputs_of_imputer(step, outputs)
    return _find_inputs_by_tags(step)


def _find_inputs_of_parts(step: ColumnTransformer, outputs: _Columns | None) -> _Columns:
    """Return the columns that a fitted ColumnTransformer reads; entries are None for those it drops.

    An entry of the list is an `InputColumn`: type and categories of a column. step: the
    transformer; outputs: the columns that the next step reads; None if these are not known.
    """
    columns: _Columns = [None] * step.n_features_in_
    for name, part, _ in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        indices = step._transformer_to_input_indices[name]
        found = _find_inputs(part, None if outputs is None else outputs[step.output_indices_[name]])
        if found is None or len(found) != len(indices):
            found = [InputColumn()] * len(indices)
        for j, column in zip(indices, found, strict=True):
            columns[j] = _merge(columns[j], column or InputColumn())
    return columns


def _merge(first: InputColumn | None, second: InputColumn) -> InputColumn:
    """Merge what two steps of a pipeline store about the same column: return the one with a type.

    first: what the first step stores, which is returned if it has a type; None: it stores nothing.
    second: what the second step stores.
    """
    if first is None:
        return second
    return first if first.type is not None else second


def _merge_all(parts: Sequence[_Columns]) -> _Columns | None:
    """Merge what several transformers of a pipeline store about the columns of the same table.

    An entry is an `InputColumn` (type and categories), or None for a column that the transformer
    drops; of several entries for a column, the first one with a type is returned. parts: for each
    transformer a list with an entry for each column of the table. Return one such list; None if
    there are no parts, or their lengths differ.
    """
    if not parts or len({len(part) for part in parts}) > 1:
        return None
    merged: _Columns = parts[0]
    for part in parts[1:]:
        merged = [
            _merge(first, second or InputColumn())
            for first, second in zip(merged, part, strict=True)
        ]
    return merged


def _describe_categories(values: list[Any]) -> InputColumn:
    """Return an `InputColumn` for a column whose categories an encoder has stored.

    Its type is string, float64 for numbers, or None if no category shows it; it also has the
    categories if they are strings. values: the categories, among which may be None or NaN for
    missing values.
    """
    missing = None if any(value is None for value in values) else np.nan
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        words = MISSING_MARKERS.intersection(texts)
        return InputColumn(pa.string(), texts, missing, words)
    is_number = any(isinstance(value, int | float | np.number | np.bool_) for value in values)
    is_known = is_number and not all(value is None or value != value for value in values)
    return InputColumn(pa.float64() if is_known else None, None, missing)


def _find_inputs_of_imputer(step: Any, outputs: _Columns | None) -> _Columns:
    """Return the columns that a fitted SimpleImputer reads, by the values that it fills in.

    Return a list of `InputColumn`: type and categories of each column. step: the imputer; outputs:
    the columns that the next step reads, or None if these are not known. If there are as many as
    the imputer has columns, the imputer's columns are the same, and have their types.
    """
    missing = None if step.missing_values is None else np.nan
    columns: _Columns = []
    for j, value in enumerate(np.asarray(step.statistics_).tolist()):
        column = _describe_categories([value])
        same = outputs is not None and len(outputs) == len(step.statistics_)
        following = outputs[j] if outputs is not None and same else None
        known = column if following is None or following.type is None else following
        categories = known.categories if same else None
        columns.append(InputColumn(known.type, categories, missing, known.words))
    return columns


def _find_inputs_by_tags(step: Any) -> _Columns | None:
    """Return the columns that a fitted transformer of scikit-learn reads, by its tags.

    Return a list of `InputColumn`: the type of each column. step: the transformer. Most
    transformers accept only numbers; vectorizers of documents read a column of text. Return None if
    the transformer is none of scikit-learn, or its tags do not determine the types.
    """
    if not type(step).__module__.startswith("sklearn."):
        return None
    tags = get_tags(step)
    if tags.no_validation or tags.input_tags.categorical:
        return None
    if tags.input_tags.string:
        return None if tags.input_tags.two_d_array else [InputColumn(pa.string())]
    n = getattr(step, "n_features_in_", None)
    return None if n is None else [InputColumn(pa.float64())] * n
