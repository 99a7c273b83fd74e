"""Columns of tables as the rows that a model reads, in its order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.certificates.hold_out import expect_known_labels
from certree.files.tables import feature_of, listed, split_target
from certree.interface.extras import import_extra

if TYPE_CHECKING:
    import pyarrow as pa


def types_of(
    model: Any, target: str | None, seen: pa.Schema, beside: Iterable[str] = ()
) -> dict[str, pa.DataType]:
    """Types of columns as the fit had them: codes may look like numbers where they come alone.

    beside: columns that are no features and stay as they are written.
    """
    string = import_extra("pyarrow", "files").string()
    others = {target, *beside}
    known = getattr(model, "feature_names_in_", None)
    features = [name for name in seen.names if name not in others] if known is None else known
    types = dict(zip(features, _kinds(model), strict=False))
    if target is not None and is_classifier(model) and model.classes_.dtype.kind in "OU":
        types[target] = string
    types |= {name: string for name in beside if name not in types and name != target}
    return {name: kind for name, kind in types.items() if name in seen.names}


def _kinds(model: Any) -> list[pa.DataType]:
    """What the features held in the fit: strings, numbers, or nothing that is known."""
    if model.categories_ is None:
        return [import_extra("pyarrow", "files").float64()] * model.n_features_in_
    return list(map(_kind, model.categories_.names))


def _kind(names: Sequence[Any] | None) -> pa.DataType:
    pa = import_extra("pyarrow", "files")
    if names is None:
        return pa.float64()
    if not names:
        return pa.null()
    return pa.string() if isinstance(names[0], str) else pa.float64()


def expect_known(model: Any, truth: NDArray[Any], name: str) -> None:
    """Refuse a target that nobody could have fitted the model to."""
    if is_classifier(model):
        expect_known_labels(name, truth, model.classes_)
    elif truth.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers as in the fit, got {truth[:1].tolist()[0]!r}")


def rows_for(model: Any, columns: pa.Table, where: str) -> NDArray[Any]:
    """The rows (n, p) of a table as a model reads them.

    Parameters
    ----------
    model : fitted estimator
        The model.
    columns : pyarrow.Table
        All columns; where the model knows no names of features, these alone.
    where : str
        What errors call the table.

    Raises
    ------
    ValueError
        If a feature is missing, or holds words where the fit had numbers, or the other way round.
    """
    features = _features(columns, model, where)
    table = split_target(features, None)
    _expect_kinds(features, model)
    return table.X


def named_rows_for(model: Any, columns: pa.Table, where: str) -> Any:
    """The same as a table with names where the model knows these."""
    if getattr(model, "feature_names_in_", None) is None:
        return rows_for(model, columns, where)
    features = _features(columns, model, where)
    _expect_kinds(features, model)
    kept = {name: feature_of(features, name) for name in features.column_names}
    pa = import_extra("pyarrow", "files")
    return pa.table({name: pa.array(one, _type_of(one)) for name, one in kept.items()})


def _type_of(values: NDArray[Any]) -> pa.DataType:
    pa = import_extra("pyarrow", "files")
    return pa.string() if values.dtype == object else pa.float64()


def _features(columns: pa.Table, model: Any, where: str) -> pa.Table:
    """The columns that a model reads, in its order."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        if columns.num_columns != model.n_features_in_:
            raise ValueError(
                f"the model knows no names of features, and {where} has {columns.num_columns} columns "
                f"where it expects {model.n_features_in_}"
            )
        return columns
    missing = [name for name in names if name not in columns.column_names]
    if missing:
        raise ValueError(f"{where} has no column {listed(map(repr, missing))}")
    return columns.select(list(names))


def _expect_kinds(features: pa.Table, model: Any) -> None:
    """Name a column that holds words where the model was fitted on numbers, or the other way round."""
    pa = import_extra("pyarrow", "files")
    for name, kind in zip(features.column_names, _kinds(model), strict=True):
        column = features[name].drop_null()
        of = column.type
        are_words = pa.types.is_dictionary(of) or not (
            pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_boolean(of)
        )
        if kind == pa.float64() and are_words and len(column):
            words = column.cast(pa.string()).to_pylist()
            wanted, strange = "numbers", next(filter(_is_no_number, words), words[0])
        elif kind == pa.string() and not are_words:
            numbers = np.asarray(column.cast(pa.float64()))
            present = numbers[~np.isnan(numbers)]
            if not len(present):
                continue
            wanted, strange = "strings", float(present[0])
        else:
            continue
        raise ValueError(f"feature {name!r} must hold {wanted} as in the fit, got {strange!r}")


def _is_no_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return True
    return False
