"""Number the queries of a ranking, and order their rows by the values of the rows."""

from __future__ import annotations

from dataclasses import replace
from reprlib import repr as shortened
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
    """Number the queries of a ranking 0, 1, ..., and return the number of each row's query.

    Exactly one of group and qid must be passed, as in LightGBM and XGBoost. Queries of
    group are numbered in the order of the table. Those of qid are numbered in the order of its
    sorted values, or of first occurrence if qid holds Python objects.

    Parameters
    ----------
    n : int
        Number of rows.
    group : array-like of int, shape (n_queries,), or None
        Number of rows of each query; rows of a query are adjacent.
    qid : array-like of shape (n,), or None
        Number or name of each row's query; rows of a query need not be adjacent.
    suffix : str
        Is appended to the names of both arguments in messages, for instance "_val".

    Returns
    -------
    ndarray of int32, shape (n,)
        Number of each row's query.

    Raises
    ------
    ValueError
        If none or both of group and qid are passed, or if the argument does not fit n rows.
    """
    if (group is None) == (qid is None):
        found = "neither" if group is None else "both"
        raise ValueError(
            f"either group{suffix}, the sizes of queries, or qid{suffix}, the query of each row, "
            f"must be passed, got {found}"
        )
    if group is None:
        return _number_by_names(n, to_array(f"qid{suffix}", qid), f"qid{suffix}")
    return _number_by_sizes(n, to_array(f"group{suffix}", group), f"group{suffix}")


def expect_no_queries(group: Any, qid: Any) -> None:
    """Raise a ValueError if group_val or qid_val was passed; callers have no X_val and y_val.

    group: value of the parameter group_val, the sizes of the queries of the validation set. qid:
    value of the parameter qid_val, the query of each validation row. None: not passed.
    """
    if group is not None or qid is not None:
        name = "qid_val" if group is None else "group_val"
        raise ValueError(
            f"{name} takes X_val and y_val, which were not provided: pass both, or leave {name} out"
        )


def _number_by_sizes(n: int, sizes: NDArray[Any], name: str) -> Int32:
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(
            f"{name} must hold the sizes of queries, integers >= 1, got {shortened(sizes)}: pass "
            f"the query of each row as {name.replace('group', 'qid')}"
        )
    if sum(sizes.tolist()) != n:
        raise ValueError(
            f"{name} must sum to the number of rows, {n}, got {sum(sizes.tolist())}: pass the "
            "number of rows of each query"
        )
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def _number_by_names(n: int, names: NDArray[Any], name: str) -> Int32:
    names = column_or_1d(names)
    if len(names) != n:
        raise ValueError(
            f"{name} must have shape ({n},), got {names.shape}: pass a value for each row"
        )
    values = names.tolist() if names.dtype.kind in "fO" else []
    if missing := sum(map(is_missing, values)):
        raise ValueError(
            f"{name} must give each row a query, got none for {missing} of {n}: fill in the "
            "missing entries, or drop these rows"
        )
    if names.dtype.kind != "O":
        return np.unique(names, return_inverse=True)[1].astype(np.int32)
    number: dict[Any, int] = {}  # names of mixed types cannot be sorted
    return np.array([number.setdefault(one, len(number)) for one in values], dtype=np.int32)


def expect_equal_weights_in_queries(weight: Float64, query: Int32) -> None:
    """Raise a ValueError if rows of one query have different weights.

    weight: weight of each row, (n,); query: number of its query, (n,).
    """
    of_query = np.zeros(int(query.max()) + 1)
    of_query[query] = weight
    if (of_query[query] != weight).any():
        raise ValueError(
            "sample_weight must be the same for all rows of a query, got different weights: give each "
            "query one weight"
        )


def sort_by_query(rows: Training, query: Int32) -> Training:
    """Sort rows by query, in an order that the values of the rows determine.

    Neither the order in which rows were passed nor the names of queries changes the result.

    Parameters
    ----------
    rows : Training
        Encoded rows of a fit. It does not contain rows of weight zero.
    query : ndarray of int32, shape (n_passed,)
        Number of each row's query, 0, 1, ..., as `number_queries` returns it, for all rows that
        were passed to `fit`, those of weight zero included.

    Returns
    -------
    Training
        The rows in their new order, those of a query next to each other. Its `split.groups`, (n,),
        holds the number of each row's query; queries are renumbered 0, 1, ... in the new order.

    Raises
    ------
    ValueError
        If rows of one query have different weights.
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
    sorted_rows, numbers = rows.take(order[by_content]), (np.cumsum(same) - 1).astype(np.int32)
    return replace(sorted_rows, split=replace(sorted_rows.split, groups=numbers))


def _order_by_content(rows: Training, number: Indices) -> Indices:
    """Return row indices, (n,), in an order that the values of rows determine, query by query.

    Queries are sorted by the sums of the hashes of their rows, and by weight if the sums are equal;
    rows of a query are sorted by their hashes. Only queries that have equal rows, or equal rows of
    a query, keep their relative order.

    rows: encoded rows, sorted by query. number: number of each row's query, 0, 1, ..., (n,).
    """
    hashes = hash_samples(*rows.features.tables, rows.y, order=rows.draw_order)
    # Weights are not hashed, as their unit must not matter.
    weight = np.zeros(len(number)) if rows.weight is None else rows.weight
    return np.lexsort((hashes, number, weight, _sum_by_group(mix(hashes), number)[number]))


def compute_group_keys(hashes: UInt64, group: NDArray[Any], weight: Float64 | None) -> UInt64:
    """Compute the key of each group of rows: a random number that the values of its rows determine.

    Callers draw whole groups by comparing or sorting keys, so that the draw does not depend on the
    order of the rows.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n,)
        Hashes of the rows.
    group : ndarray of int, shape (n,)
        Number of each row's group, 0, 1, ....
    weight : ndarray of float64, shape (n,), or None
        Weight of each row. Groups with equal rows get different keys: they are numbered by a sum
        over the weights of their rows, ascending; None: in the order of their group numbers.

    Returns
    -------
    ndarray of uint64, shape (n_groups,)
        Key of each group.
    """
    total = None if weight is None else sum_weights_by_group(hashes, group, weight)
    return compute_keys(_sum_by_group(mix(hashes), group), total)


def sum_weights_by_group(hashes: UInt64, group: NDArray[Any], weight: Float64) -> Float64:
    """Compute a number for each group, (n_groups,), by which groups with equal rows are ordered.

    It is the sum of the weights of the rows, each multiplied by a factor that the row's hash
    determines. So groups with equal rows, but with the weights distributed differently, differ.
    Rows are added in the order of hashes and weights, so that equal groups have exactly equal sums.

    hashes, group, weight: hash, group number and weight of each row, (n,).
    """
    order = np.lexsort((weight, hashes, group))
    factor = 1 + (mix(hashes[order]) >> np.uint64(11)) * 2.0**-53
    return np.bincount(group[order], factor * weight[order]).astype(np.float64)


def _sum_by_group(hashes: UInt64, number: NDArray[Any]) -> UInt64:
    """Sum up the hashes of each group, modulo 2^64, (n_groups,).

    hashes: hash of each row, (n,); number: number of its group, 0, 1, ..., (n,).
    """
    total = np.zeros(int(number.max()) + 1, dtype=np.uint64)
    np.add.at(total, number, hashes)
    return total
