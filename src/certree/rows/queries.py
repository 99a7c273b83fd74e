"""Rows that are documents of queries: which belong together, and an order that contents decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from certree.interface.arrays import Float64, Int32, UInt64, to_array
from certree.rows.columns import is_missing
from certree.rows.folds import Indices
from certree.rows.hashes import compute_keys, hash_samples, mix
from certree.rows.training import Training


def number_queries(n: int, group: Any, qid: Any, suffix: str = "") -> Int32:
    """Number the queries of n rows, 0, 1, ...

    Parameters
    ----------
    n : int
        Number of rows.
    group : array-like of int, shape (n_queries,), or None
        How many rows each query has; those of a query stand together.
    qid : array-like of shape (n,), or None
        Number or name of each row's query.
    suffix : str
        What follows the names of the two in errors.

    Returns
    -------
    ndarray of int32, shape (n,)

    Raises
    ------
    ValueError
        If not exactly one of the two is given, or if it does not fit to the rows.
    """
    if (group is None) == (qid is None):
        found = "neither" if group is None else "both"
        raise ValueError(
            f"a ranker takes either group{suffix}, the sizes of queries, or qid{suffix}, the query of "
            f"each row, but {found} of them was given"
        )
    if group is None:
        return _number_by_names(n, to_array(f"qid{suffix}", qid), f"qid{suffix}")
    return _number_by_sizes(n, to_array(f"group{suffix}", group), f"group{suffix}")


def expect_no_queries(group: Any, qid: Any) -> None:
    """Refuse queries of an evaluation set that is not given."""
    if group is not None or qid is not None:
        name = "qid_val" if group is None else "group_val"
        raise ValueError(f"{name} takes X_val and y_val, which were not provided")


def _number_by_sizes(n: int, sizes: NDArray[Any], name: str) -> Int32:
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(
            f"{name} must hold the sizes of queries, whole numbers >= 1, got {sizes!r}"
        )
    if sum(sizes.tolist()) != n:
        raise ValueError(f"{name} must sum to the number of rows, {n}, got {sum(sizes.tolist())}")
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def _number_by_names(n: int, names: NDArray[Any], name: str) -> Int32:
    names = column_or_1d(names)
    if len(names) != n:
        raise ValueError(f"{name} must have shape ({n},), got {names.shape}")
    values = names.tolist() if names.dtype.kind in "fO" else []
    if missing := sum(map(is_missing, values)):
        raise ValueError(f"{name} must name a query of every row, got none for {missing} of {n}")
    if names.dtype.kind != "O":
        return np.unique(names, return_inverse=True)[1].astype(np.int32)
    number: dict[Any, int] = {}  # names of several kinds have no order
    return np.array([number.setdefault(one, len(number)) for one in values], dtype=np.int32)


def expect_equal_weights_in_queries(weight: Float64, query: Int32) -> None:
    """Refuse weights (n,) that differ within a query."""
    of_query = np.zeros(int(query.max()) + 1)
    of_query[query] = weight
    if (of_query[query] != weight).any():
        raise ValueError("sample_weight must be the same for all rows of a query")


def sort_by_query(rows: Training, query: Int32) -> Training:
    """Sort rows so that those of a query stand together, in an order that contents decide.

    Parameters
    ----------
    rows : Training
        Rows that were taken in.
    query : ndarray of int32, shape (n_given,)
        Query of each row that was given.

    Returns
    -------
    Training
        Its groups are int32 numbers 0, 1, ..., in runs. Neither where rows stood nor what queries
        were called changes it.

    Raises
    ------
    ValueError
        If rows of a query differ in weight.
    """
    indices, given = rows.split.indices, rows.weight
    if given is not None:
        weight = given
        if indices is not None:
            weight = np.zeros(len(query))
            weight[indices] = given
        expect_equal_weights_in_queries(weight, query)
    kept = query if indices is None else query[indices]
    order = np.argsort(kept, kind="stable")
    number = np.cumsum(np.diff(kept[order], prepend=-1) != 0) - 1
    by_content = _order_by_content(rows.take(order), number)
    same = np.diff(number[by_content], prepend=-1) != 0
    made, numbers = rows.take(order[by_content]), (np.cumsum(same) - 1).astype(np.int32)
    return replace(made, split=replace(made.split, groups=numbers))


def _order_by_content(rows: Training, number: Indices) -> Indices:
    """An order of rows in which queries stay together; alike are only rows or queries that are."""
    hashes = hash_samples(*rows.features.tables, rows.y, order=rows.draw_order)
    # The unit of weights means nothing, so they are in no hash.
    weight = np.zeros(len(number)) if rows.weight is None else rows.weight
    return np.lexsort((hashes, number, weight, _sum_by_group(mix(hashes), number)[number]))


def compute_group_keys(hashes: UInt64, group: NDArray[Any], weight: Float64 | None) -> UInt64:
    """Compute keys by which whole groups of rows are drawn, wherever their rows stand.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
        Hashes of the rows.
    group : ndarray of int, shape (n,)
        Number of each row's group, 0, 1, ....
    weight : ndarray of float64, shape (n,), or None
        Weights, by which groups of equal rows are told apart; if the rows of each group have one
        weight, from the lightest on.

    Returns
    -------
    ndarray of uint64, shape (n_groups,)
    """
    total = None if weight is None else _sum_weights_by_group(hashes, group, weight)
    return compute_keys(_sum_by_group(mix(hashes), group), total)


def _sum_weights_by_group(hashes: UInt64, group: NDArray[Any], weight: Float64) -> Float64:
    """Compute a sum of weights for each group, which also tells which of its rows weighs how much.

    Rows add up in an order that they tell themselves, so that equal groups have the same bits.
    """
    order = np.lexsort((weight, hashes, group))
    factor = 1 + (mix(hashes[order]) >> np.uint64(11)) * 2.0**-53
    return np.bincount(group[order], factor * weight[order]).astype(np.float64)


def _sum_by_group(hashes: UInt64, number: NDArray[Any]) -> UInt64:
    """The sum of each query, (n_queries,); it does not matter where its rows stand."""
    total = np.zeros(int(number.max()) + 1, dtype=np.uint64)
    np.add.at(total, number, hashes)
    return total
