"""Recognise rows that are not in this process's memory: files and Dask collections."""

import os
from typing import Any


def is_file_source(X: Any) -> bool:
    """Return whether X is a path, a non-empty list of paths, or a data set of Arrow."""
    if isinstance(X, str | os.PathLike):
        return True
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(one, str | os.PathLike) for one in X)
    return _is_instance_by_name(X, "pyarrow", "Dataset")


def is_dask_collection(X: Any) -> bool:
    """Return whether X is an array or a data frame of Dask."""
    return callable(getattr(X, "__dask_graph__", None)) and _is_instance_by_name(
        X, "dask", "Array", "DataFrame"
    )


def _is_instance_by_name(X: Any, package: str, *names: str) -> bool:
    kinds = type(X).__mro__
    return any(
        kind.__name__ in names and kind.__module__.partition(".")[0].startswith(package)
        for kind in kinds
    )


def is_out_of_core(X: Any) -> bool:
    """Return whether X is a path, a list of paths, a data set of Arrow, or a Dask collection."""
    return is_file_source(X) or is_dask_collection(X)


def expect_collected(name: str, values: Any) -> None:
    """Raise a TypeError if values are a lazy frame of polars, whose rows are not in memory.

    name: name of the argument, for the message. values: the argument, of any type.
    """
    if _is_instance_by_name(values, "polars", "LazyFrame"):
        raise TypeError(
            f"{name} must be rows in memory, got a lazy frame of polars: call .collect() first"
        )


def expect_no_column_name(name: str, values: Any) -> None:
    """Raise a TypeError if an argument that must have a value for each row of X is a text.

    X is in memory. For out-of-core X, arguments such as weights may be names of columns. name: name
    of the argument, for the message. values: the argument, of any type.
    """
    if isinstance(values, str):
        raise TypeError(
            f"{name} must have one value for each row of X, got the text {values!r}: pass the column "
            "itself, and leave it out of X. Names of columns are for fits to files"
        )


def expect_in_memory(model: Any, X: Any) -> None:
    """Raise a TypeError if X is out of core or a lazy frame of polars.

    Estimators that need all rows in memory call it. Out of core are paths, lists of paths, data
    sets of Arrow and Dask collections. model: the estimator, whose class the message names. X: the
    argument of `fit`, of any type.
    """
    expect_collected("X", X)
    if is_out_of_core(X):
        raise TypeError(
            f"X must be rows in memory for {type(model).__name__}, got {type(X).__name__}: load it "
            "into an array or a data frame. Only boosted trees and forests without a certificate take "
            "files and Dask collections, and single trees whose grower is a Cart that bins features"
        )
