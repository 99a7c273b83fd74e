"""Answers to rows of Dask: collections that are computed when somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from certree.interface.extras import import_extra
from certree.rows.out_of_core import is_dask_collection

Method = TypeVar("Method", bound=Callable[..., Any])


def support_dask_collections(method: Method) -> Method:
    """Let a method that predicts each row of X return a lazy collection for a collection of Dask.

    The signature stays as it is: X may be passed by position or by keyword.
    """

    @wraps(method)
    def answered(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask_collection(X):
            return method(self, X, *args, **kwargs)
        if args or any(value is not None for name, value in kwargs.items() if name != "n_iter"):
            raise ValueError(
                f"{method.__name__} of a collection of Dask takes n_iter alone beside X"
            )
        said: Any = partial(method, self, **kwargs)
        return _answers(self, said, X)

    return cast(Method, answered)


def _answers(model: Any, said: Callable[[Any], Any], X: Any) -> Any:
    """What a function says of the rows of a collection."""
    import_extra("dask", "dask")
    p = model.n_features_in_
    if X.shape[1] != p:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting {p} features as "
            "input"
        )
    if hasattr(X, "map_partitions") and hasattr(X, "columns"):
        told = partial(_of_frame, said)
        return X.map_partitions(told, meta=told(X._meta_nonempty).iloc[:0])
    few = _array_of(said(np.zeros((1, p), dtype=X.dtype)))
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    none = few[:0]
    how = {"drop_axis": 1} if few.ndim == 1 else {"chunks": (X.chunks[0], (few.shape[1],))}
    return X.map_blocks(partial(_of_rows, said, none), dtype=few.dtype, meta=none, **how)


def _array_of(said: Any) -> NDArray[Any]:
    """What is said of rows, if it is one array and not one of each target."""
    if isinstance(said, list):
        raise ValueError(
            "a collection of probabilities takes one target, got a model of "
            f"{len(said)}: sklearn.multioutput.MultiOutputClassifier fits one model for each column"
        )
    array: NDArray[Any] = said
    return array


def _of_rows(said: Callable[[Any], Any], none: Any, X: Any) -> Any:
    """What is said of a block, which may have no rows."""
    return said(X) if len(X) else none


def _of_frame(said: Callable[[Any], Any], X: Any) -> Any:
    """The same of a data frame, with its index."""
    pandas = import_extra("pandas", "frames")
    told = _array_of(said(X if len(X) else _one_row(X)))[: len(X)]
    make = pandas.Series if told.ndim == 1 else pandas.DataFrame
    return make(told, index=X.index)


def _one_row(X: Any) -> Any:
    """A frame of a row without values."""
    return X.reindex([0])
