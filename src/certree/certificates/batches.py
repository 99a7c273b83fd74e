"""Certificates of classifiers from calibration rows that are read in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from certree.certificates.certificate import Certificate
from certree.certificates.hold_out import (
    compute_look_fraction,
    expect_classifier,
    expect_known_labels,
)
from certree.certificates.leakage_check import LeakageCheck
from certree.certificates.row_order import warn_of_row_order
from certree.interface.fitted_state import expect_rows
from certree.out_of_core.cluster import DaskRows
from certree.out_of_core.sources import FileRows
from certree.out_of_core.time_split import TimeArguments
from certree.rows.columns import copy_raw_values, take_rows
from certree.rows.dates import has_dates
from certree.rows.duplicates import Duplicates
from certree.rows.folds import Indices
from certree.rows.time_order import RowTimes
from certree.rows.training import RowInputMixin
from certree.tables.fitted_types import get_fitted_columns, list_input_columns, use_model_format
from certree.tables.pipeline_columns import create_frame
from certree.tables.reader import Types, no_types


def certify_batches(
    classifier: Any,
    batches: Iterable[tuple[Any, NDArray[Any]]],
    delta: float,
    *,
    look: int | None = None,
    duplicates: Duplicates = "auto",
    groups: Sequence[NDArray[Any]] | None = None,
    times: Sequence[Any] | None = None,
    independent: bool = False,
) -> Certificate:
    """Bound a classifier's error by calibration rows in batches.

    Does what `certify` does for rows in memory. It keeps a hash of each row, its class, and whether
    it is an error.

    Parameters
    ----------
    classifier : fitted classifier
        With ``predict`` and ``classes_``.
    batches : iterable of (array-like of shape (n_batch, p), ndarray of shape (n_batch,))
        Rows that no step of the fit has used, and their true classes. Empty batches are left out.
    delta : float
        Probability with which the bound may be below the true error.
    look : int or None
        Number j = 1, 2, ... of this inspection of rows that arrive over time, which uses the
        fraction 6 / (pi^2 j^2) of delta. None: the only inspection, which uses all of it.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        "auto": a small number of rows may equal each other or rows of the fit (`certify` states
        it); "genuine": all rows are new draws; "copies": equal rows count once; "refuse": no row
        may equal another or one of the fit.
    groups : sequence of ndarray of shape (n_batch,), or None
        Group of each row of each batch, if only groups are independent. It is read after the last
        batch, so that `batches` may fill it. None: rows are independent.
    times : sequence of (array-like of shape (n_batch,), or RowTimes), or None
        Times of the rows of each batch that is not empty, if rows are in time order. It is read
        after the last batch, as `groups` is. None: rows have no times.
    independent : bool
        Whether the user declares rows (or groups) that have times to be independent draws from one
        source; False: they may depend on earlier ones, and the bound is larger. Only used with
        `times`.

    Returns
    -------
    Certificate
        The bound by all rows of all batches.

    Raises
    ------
    ValueError
        If there are no rows, `look` is not a positive integer, a class is none of the classifier,
        too many rows equal each other or rows of the fit, or all times are equal.
    """
    expect_classifier(classifier)
    share = compute_look_fraction(look)
    check, wrong, encoded = LeakageCheck(classifier, duplicates), [], []
    for X, truth in batches:
        if not len(truth):
            continue
        check.add(X, truth)
        wrong.append(np.asarray(classifier.predict(X)) != truth)
        labels, codes = np.unique(truth, return_inverse=True)
        encoded.append((labels, codes.astype(np.int32)))
    expect_rows(len(encoded), "certify a model")
    classes = np.unique(np.concatenate([labels for labels, _ in encoded]))
    expect_known_labels("y", classes, np.asarray(classifier.classes_))
    codes = np.concatenate([np.searchsorted(classes, labels)[codes] for labels, codes in encoded])
    selected = check.select_rows(
        None if groups is None else np.concatenate(groups),
        None if times is None else RowTimes.read_batches(times, independent),
    )
    found = selected.certify_errors(np.concatenate(wrong), codes, classes, delta, share)
    warn_of_row_order(found.row_order, partial(has_dates, X))
    return found


def read_batches(
    classifier: Any,
    X: Any,
    y: Any,
    groups: Any,
    group_labels: list[NDArray[Any]],
    order: TimeArguments | None = None,
    times: list[RowTimes] | None = None,
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Read feature rows and their classes, and perhaps groups and times, from files in batches.

    A generator; it raises its errors when the first batch is read.

    Parameters
    ----------
    classifier : fitted classifier
        With ``classes_``. If it has ``feature_names_in_``, these columns are read, else all columns
        but y.
    X : path, list of paths, or pyarrow.dataset.Dataset
        Files, or folders of files.
    y : str
        Name of the column of true classes.
    groups : str or None
        Name of the column of groups; None: rows have no groups.
    group_labels : list
        The groups of the rows of each batch, (n_batch,), are appended to it.
    order : TimeArguments or None
        The column of times, which may be a feature; None: rows have no times.
    times : list or None
        The times of the rows of each batch are appended to it; None if `order` is None.

    Yields
    ------
    X : pyarrow.Table, pandas.DataFrame or ndarray of shape (n_batch, p)
        Features of a batch; an array if the classifier has no feature names, and a data frame if it
        is a pipeline.
    y : ndarray of shape (n_batch,)
        Their true classes.

    Raises
    ------
    TypeError
        If `y` or `groups` is not a str, or the classifier has no ``classes_``.
    ValueError
        If the files have no rows, lack a feature of the classifier, or cannot be read.
    """
    if not isinstance(y, str):
        raise TypeError(
            f"y must be the name of a column if X names files, got {type(y).__name__}: pass the "
            "name of the column of classes"
        )
    _expect_classes(classifier)
    is_pipeline = isinstance(classifier, Pipeline)
    # Classifiers of other libraries do not state the types of their fit.
    has_types = is_pipeline or isinstance(classifier, RowInputMixin)
    if has_types:
        names, inputs = list_input_columns(classifier)
    else:
        names, inputs = getattr(classifier, "feature_names_in_", None), []
    types = partial(get_fitted_columns, classifier, y) if has_types else no_types
    rows, columns = _open_files(X, y, groups, names, order, classifier, types)
    for chunk in rows.chunks():
        if chunk.groups is not None:
            group_labels.append(np.asarray(chunk.groups))
        if order is not None and times is not None and len(chunk.y):
            times.append(order.read_column(chunk))
        X = chunk.X.select(columns)
        if is_pipeline:
            frame = create_frame(X, inputs)
            yield frame.to_numpy() if names is None else frame, np.asarray(chunk.y)
        else:
            yield copy_raw_values(X) if names is None else X, np.asarray(chunk.y)


def read_partitions(
    classifier: Any,
    X: Any,
    y: Any,
    groups: Any,
    group_labels: list[NDArray[Any]],
    order: TimeArguments | None = None,
    times: list[RowTimes] | None = None,
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Compute feature rows and their classes, and perhaps groups and times, partition by partition.

    A generator; it raises its errors when the first partition is computed.

    Parameters
    ----------
    classifier : fitted classifier
        With ``classes_``. If it has ``feature_names_in_`` and X is a data frame, these columns are
        read.
    X : dask.array.Array of shape (n, p), or dask.dataframe.DataFrame
        Rows. A data frame may have further columns.
    y, groups : collection or array of shape (n,), or str
        True class and group of each row, or names of their columns in X, which are no features; groups
        may be None.
    group_labels : list
        The groups of the rows of each partition are appended to it.
    order : TimeArguments or None
        The column of times, which may be a feature, or the times as a collection or an array; None:
        rows have no times.
    times : list or None
        The times of the rows of each partition are appended to it; None if `order` is None.

    Yields
    ------
    X : data frame or ndarray of shape (n_partition, p)
        Features of a partition; an array if the classifier has no feature names.
    y : ndarray of shape (n_partition,)
        Their true classes.

    Raises
    ------
    TypeError
        If the classifier has no ``classes_``, or a name is passed with a Dask array X.
    ValueError
        If X lacks a column, or an array has another number of rows than X.
    """
    _expect_classes(classifier)
    names = getattr(classifier, "feature_names_in_", None) if hasattr(X, "columns") else None
    for name, value in (("y", y), ("groups", groups)):
        _expect_no_feature(name, value, names)
    if names is not None:
        _expect_features(names, X.columns)
    if order is not None:
        order.expect_column(getattr(X, "columns", None))
    passed = {"y": y, "groups": groups, "raw_time": None if order is None else order.collection}
    arrays = {name: value for name, value in passed.items() if _is_in_memory(value)}
    labels, units, time = (None if name in arrays else passed[name] for name in passed)
    n = 0
    for chunk in DaskRows(X, labels, groups=units, time=time).chunks():
        rows, n = np.arange(n, n + len(chunk.X)), n + len(chunk.X)
        taken = {name: _take_values(name, values, rows) for name, values in arrays.items()}
        filled = replace(chunk, **taken)
        if filled.groups is not None:
            group_labels.append(np.asarray(filled.groups))
        if order is not None and times is not None and len(filled.y):
            times.append(order.read_column(filled))
        features = filled.X if names is None else filled.X[[*names]]
        is_frame = names is None and hasattr(features, "columns")
        yield copy_raw_values(features) if is_frame else features, np.asarray(filled.y)
    for name, values in arrays.items():
        _expect_length(name, values, n)


def _is_in_memory(values: Any) -> bool:
    """Return whether an argument with a value for each row is an array, not a name or a collection."""
    return not (values is None or isinstance(values, str) or hasattr(values, "to_delayed"))


def _take_values(name: str, values: Any, rows: Indices) -> Any:
    """Select the values of an argument, an array in memory, for some rows of a Dask collection X.

    name: name of the argument, or "raw_time". values: array, series or list with a value for each
    row of X, (n,). rows: indices of the rows, (m,), ascending. Return the m values in an object of
    the same library. Raise ValueError if `values` ends before the last of these rows.
    """
    if len(rows) and rows[-1] >= len(values):
        _expect_length(name, values, int(rows[-1]) + 1)
    return take_rows(values, rows)


def _expect_length(name: str, values: Any, n: int) -> None:
    """Raise a ValueError unless an argument of `certify` has a value for each of n rows.

    name: name of the argument, or "raw_time".
    """
    if len(values) != n:
        raise ValueError(
            f"{name.removeprefix('raw_')} must have a value for each row of X, got {len(values):,} "
            f"values, but X has {'more' if len(values) < n else 'fewer'} rows: pass those of all rows"
        )


def _expect_classes(classifier: Any) -> None:
    """Raise a TypeError if a classifier lacks ``classes_``, by which labels of batches are checked."""
    if not hasattr(classifier, "classes_"):
        raise TypeError(
            "classifier must have classes_ if X is not in memory, got "
            f"{type(classifier).__name__}: read the rows into memory and pass them as arrays"
        )


def _expect_no_feature(name: str, column: Any, names: Any) -> None:
    """Raise a ValueError if a named column is a feature of the classifier.

    name, column: name and value of the argument; names: names of the features, or None.
    """
    if isinstance(column, str) and names is not None and column in list(names):
        raise ValueError(
            f"{name} must name a column that is no feature of the classifier, got {column!r}: copy "
            "the column under another name, or read the rows into memory"
        )


def _expect_features(features: Any, columns: Any) -> None:
    """Raise a ValueError if a table lacks a feature of the classifier.

    features: names of the features of the classifier; columns: names of the columns of the table.
    """
    if missing := [name for name in features if name not in columns]:
        raise ValueError(
            f"X must have a column {missing[0]!r}, as the classifier was fitted with it, got rows "
            "without it: add this column"
        )


def _open_files(
    X: Any,
    y: str,
    groups: Any,
    names: Any,
    order: TimeArguments | None,
    classifier: Any,
    types: Types,
) -> tuple[FileRows, list[str]]:
    """Return the rows of files, and the names of the columns that are the features of a classifier.

    names: names of its features, or None if it has none: then all columns but y are features;
    types: function that takes the names of all columns, and returns those whose type the fit
    determines, with this type (`InputColumn`), by name; X, y, groups, order, classifier: as
    `read_batches` takes them. The rows also have the column of times. Raise TypeError or ValueError as
    `read_batches`.
    """
    _expect_no_feature("groups", groups, names)
    features = names
    if names is not None and order is not None:
        features = [*dict.fromkeys([*names, order.column])]
    source = use_model_format(X, classifier)
    rows = FileRows(source, y, groups=groups, features=features, types=types)
    if not rows.n_rows:
        raise ValueError("X must name files that hold at least one row, got files without rows")
    columns = rows.features if names is None else list(names)
    _expect_features(columns, rows.features)
    return rows, columns
