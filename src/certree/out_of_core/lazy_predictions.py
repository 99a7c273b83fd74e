"""Predictions for Dask arrays and data frames: lazy collections, computed block by block."""

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
    """Decorate a prediction method so that it also accepts a Dask collection as X.

    The method of a fitted model must take X first and return one array with a row, or an element,
    for each row of X. For a Dask array or data frame the decorated method returns a lazy Dask
    collection: a Dask array, or a Dask series or data frame with the index of X. For any other X it
    calls the method. The signature does not change: X may be passed by position or by keyword. It
    raises ValueError if X is a collection, and any other argument than `n_iter`, the number of boosting
    rounds that predict, is not None.
    """

    @wraps(method)
    def predict_maybe_lazily(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask_collection(X):
            return method(self, X, *args, **kwargs)
        if args or any(value is not None for name, value in kwargs.items() if name != "n_iter"):
            raise ValueError(
                f"{method.__name__} accepts only n_iter besides X if X is a Dask collection: remove "
                "the other arguments, or compute X first"
            )
        predict: Any = partial(method, self, **kwargs)
        return _predict_lazily(self, predict, X)

    return cast(Method, predict_maybe_lazily)


def _predict_lazily(model: Any, predict: Callable[[Any], Any], X: Any) -> Any:
    """Build a lazy Dask collection of the predictions for a Dask collection.

    model: the fitted model; predict: returns the predictions for a block of rows in memory; X: Dask
    array or data frame with `model.n_features_in_` columns, else ValueError is raised. Only a
    made-up row is predicted at once, to find the dtype and the number of columns.
    """
    import_extra("dask", "dask")
    p = model.n_features_in_
    if X.shape[1] != p:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting {p} features as "
            "input"
        )
    if hasattr(X, "map_partitions") and hasattr(X, "columns"):
        predict_frame = partial(_predict_frame, predict)
        return X.map_partitions(predict_frame, meta=predict_frame(X._meta_nonempty).iloc[:0])
    example = _expect_array(predict(np.zeros((1, p), dtype=X.dtype)))
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    empty = example[:0]
    shape: dict[str, Any] = (
        {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], (example.shape[1],))}
    )
    predict_block = partial(_predict_block, predict, empty)
    return X.map_blocks(predict_block, dtype=example.dtype, meta=empty, **shape)


def _expect_array(predictions: Any) -> NDArray[Any]:
    """Return predictions unchanged if they are one array; raise ValueError if they are a list.

    A list has the probabilities of several targets, for which there is no Dask collection.
    """
    if isinstance(predictions, list):
        raise ValueError(
            "X must not be a Dask collection for probabilities of several targets, got a model of "
            f"{len(predictions)} targets: fit one model for each column, such as by "
            "sklearn.multioutput.MultiOutputClassifier"
        )
    array: NDArray[Any] = predictions
    return array


def _predict_block(predict: Callable[[Any], Any], empty: Any, X: Any) -> Any:
    """Predict the rows of X, a block of a Dask array; return `empty` if the block has no rows.

    predict: returns the predictions for an array of rows; empty: the array to return without rows,
    (0,) or (0, K), of the dtype of the predictions.
    """
    return predict(X) if len(X) else empty


def _predict_frame(predict: Callable[[Any], Any], X: Any) -> Any:
    """Predict the rows of X, a pandas data frame, which may have none.

    predict: returns the predictions for a data frame of at least one row. Return a Series if there
    is one prediction for each row, else a DataFrame with the columns of the predictions, with the
    index of X. Both are empty if X has no rows.
    """
    pandas = import_extra("pandas", "frames")
    predictions = _expect_array(predict(X if len(X) else _make_missing_row(X)))[: len(X)]
    make = pandas.Series if predictions.ndim == 1 else pandas.DataFrame
    return make(predictions, index=X.index)


def _make_missing_row(X: Any) -> Any:
    """Return a data frame with the columns of X and one row, all values of which are missing.

    Its index is 0. X: a pandas data frame without rows.
    """
    return X.reindex([0])
