"""Rows that are not in this process's memory: named by files, or on a cluster of Dask."""

import os
from typing import Any


def is_file_source(X: Any) -> bool:
    """Whether rows are named by a path, a list of paths or a data set of Arrow."""
    if isinstance(X, str | os.PathLike):
        return True
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(one, str | os.PathLike) for one in X)
    return _is_instance_by_name(X, "pyarrow", "Dataset")


def is_dask_collection(X: Any) -> bool:
    """Whether it is an array or a data frame of Dask."""
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
    """Whether rows are in files or on a cluster."""
    return is_file_source(X) or is_dask_collection(X)


def expect_collected(name: str, values: Any) -> None:
    """Refuse a lazy frame of polars, which has no rows yet."""
    if _is_instance_by_name(values, "polars", "LazyFrame"):
        raise TypeError(
            f"{name} must be rows in memory, got a lazy frame of polars: call .collect() first"
        )


def expect_in_memory(model: Any, X: Any) -> None:
    """Refuse rows that lie elsewhere, where an estimator takes none of these, and lazy frames."""
    expect_collected("X", X)
    if is_out_of_core(X):
        raise TypeError(
            f"{type(model).__name__} takes rows in memory, got {type(X).__name__}: boosted trees "
            "and forests take files and collections of Dask, and so do single trees whose prunings "
            "vote, or are certified, and that a Cart grows between bins"
        )
