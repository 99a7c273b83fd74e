"""Rows that a table holds more than once: draws that happen to be alike, or copies of one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from certree.interface.arrays import Float64, UInt64
from certree.interface.fitted_state import is_first_in_fit
from certree.rows.columns import TableColumns, as_given, frame_of, is_missing
from certree.rows.folds import Indices
from certree.rows.hashes import n_with_copies, sample_hashes, with_numbers
from certree.rows.sparse_rows import SparseColumns

# What is assumed of rows that are alike; "auto" and "refuse" say what to do where nothing is.
Duplicates = Literal["auto", "genuine", "copies", "refuse"]
DUPLICATES: tuple[str, ...] = get_args(Duplicates)

# Without a word so many rows may be repeated as move the observed error by at most this part of its
# standard deviation, and one may be in any case.
_MOST_MOVED = 0.25
# Of fewer rows hardly anything is promised, and toy tables hold few different ones: they are only
# warned about.
_FEW_ROWS = 40
# A fit warns if more than this share of its rows repeat others. `benchmarks/repeated_rows.py` measures
# from which share on copies cost 3 % of the loss.
MOST_REPEATED = 0.25
# Numbers of values that are none: those beside them in a column are hardly ever alike.
_FIRST_PLACE = 0.5


class RepeatedRowsWarning(UserWarning):
    """Category of the warning that many rows of a fit repeat other rows, target included.

    Nothing is wrong if equal rows are separate draws, as in a frequency table. If they are copies of
    one draw, made by oversampling or a join, the model overfits: folds and held-out rows then contain
    copies of the rows that grow the trees.

    Examples
    --------
    >>> import warnings
    >>> import certree
    >>> warnings.filterwarnings("ignore", category=certree.RepeatedRowsWarning)
    """


def warn_of_repeated_rows(n_repeated: int, n: int) -> None:
    """Warn, once in a fit, if more than a quarter of its n rows repeat others."""
    if n_repeated > MOST_REPEATED * n and is_first_in_fit(RepeatedRowsWarning):
        warnings.warn(
            f"X and y hold {n_repeated:,} of {n:,} rows that repeat another row, target included. If "
            "such rows are copies of one draw, made by oversampling or a join, the model overfits: "
            "give groups= (the draw of each row), where fit takes it, or one row of each with a "
            "sample_weight. If they are separate draws, as in a frequency table, nothing is wrong: "
            "ignore the category certree.RepeatedRowsWarning",
            RepeatedRowsWarning,
            stacklevel=2,
        )


def expect_few_copies(targets: NDArray[Any], hashes: Callable[[], UInt64], n_distinct: int) -> None:
    """Warn, once in a fit, if more than a quarter of its rows repeat others, target included.

    Parameters
    ----------
    targets : ndarray of shape (n,), or (n, n_targets)
        Codes of classes, or numbers.
    hashes : callable
        Returns the hashes of the features, (n,). It is called only if the next parameter and the
        targets leave room for so many repeated rows.
    n_distinct : int
        A number of distinct rows that X has at least.
    """
    n = len(targets)
    if 2 * (n - n_distinct) <= MOST_REPEATED * n:  # each row that repeats another has a partner
        return
    columns = [one.astype(np.float64) + 0.0 for one in targets.reshape(n, -1).T]
    if targets.dtype == np.float64 and n_with_copies(columns[0]) <= MOST_REPEATED * n:
        return
    warn_of_repeated_rows(n_with_copies(with_numbers(hashes(), *columns)), n)


def first_alike(X: Any, y: ArrayLike) -> Indices:
    """The first row of a table that is as each row is, target included, (n,).

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of n rows
        Rows, as they were given. Numbers are compared as float32 holds them: part of a table may have
        passed through it.
    y : array-like of shape (n,)
        Target of each row.
    """
    return first_of(AlikeRows().hashes(X, y))


def first_of(keys: UInt64) -> Indices:
    """The first of all rows that have the hash of each, (n,)."""
    order = np.argsort(keys, kind="stable")
    starts = np.ones(len(keys), dtype=bool)
    starts[1:] = keys[order[1:]] != keys[order[:-1]]
    first = np.empty(len(keys), dtype=np.intp)
    first[order] = order[starts][np.cumsum(starts) - 1]
    return first


class AlikeRows:
    """Hashes of rows of one table, or of several with the same columns: equal where rows are alike."""

    def __init__(self) -> None:
        # Of each column which values it has that are no numbers.
        self._places: list[dict[Any, float]] = []

    def hashes(self, X: Any, y: ArrayLike) -> UInt64:
        """Those of some rows and their targets; see `first_alike`."""
        columns = [np.asarray(y), *_columns(X)]
        self._places += [{} for _ in range(len(columns) - len(self._places))]
        target, *numbers = map(_numbers, columns, self._places)
        return sample_hashes(*numbers, target, rounded=True)


def _columns(X: Any) -> list[Any]:
    """The columns of rows; the matrix of sparse ones."""
    if issparse(X):
        rows: Any = X
        return [SparseColumns.of(rows.tocsr().astype(np.float64)).matrix]
    if frame_of(X) is None:
        X = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
        X = X.reshape(len(X), math.prod(X.shape[1:]))
    return [*TableColumns.of(X).columns]


def _numbers(column: Any, places: dict[Any, float]) -> Any:
    """The numbers of a column; of other values, which of those that it has."""
    if issparse(column):
        return column
    given = as_given(column)
    if given.dtype.kind in "biuf":
        return given
    values = (_place(one, places) for one in given.tolist())
    return np.fromiter(values, np.float64, len(given))


def _place(value: Any, places: dict[Any, float]) -> float:
    """Numbers are themselves; so 1 and 1.0 are alike, whichever library has them."""
    if isinstance(value, Real):
        with suppress(OverflowError):
            return float(value)
    if not isinstance(value, Hashable):
        value = repr(np.asarray(value).tolist())
    return math.nan if is_missing(value) else places.setdefault(value, _FIRST_PLACE + len(places))


def distinct_rows(
    first: Indices, weight: Float64 | None, groups: NDArray[Any] | None = None
) -> tuple[Indices, Float64 | None]:
    """The first of all rows that are alike, with the sum of their weights.

    Parameters
    ----------
    first : ndarray of shape (n,)
        See `first_alike`.
    weight : ndarray of shape (n,), or None
        Weight of each row; None: 1.
    groups : ndarray of shape (n,), or None
        Group of each row.

    Returns
    -------
    rows : ndarray of intp, shape (m,)
        Which rows are left, ascending.
    weight : ndarray of shape (m,), or None
        Sum of the weights of the rows that each stands for; None: 1.

    Raises
    ------
    ValueError
        If copies of one row are in several groups.
    """
    kept = np.flatnonzero(first == np.arange(len(first)))
    if len(kept) == len(first):
        return kept, weight
    if groups is not None and (groups[first] != groups).any():
        raise ValueError(
            'copies of a row must be in the same group where duplicates="copies", got some in several'
        )
    return kept, np.bincount(first, weight, minlength=len(first))[kept].astype(np.float64)


def n_repeats(
    first: Indices, grow: Indices, weigh: Indices, groups: NDArray[Any] | None = None
) -> int:
    """How many of the rows that judge are like one that grows, or like another one that judges.

    Parameters
    ----------
    first : ndarray of shape (n,)
        See `first_alike`.
    grow, weigh : ndarray of intp
        Rows that grow, and rows that judge; if there are none, all rows are both, though never for the
        same tree.
    groups : ndarray of shape (n,), or None
        Group of each row; rows that are alike within one are no repeats.
    """
    judging = weigh if len(weigh) else grow
    known = np.zeros(len(first), dtype=bool)
    if len(weigh):
        known[first[grow]] = True
    judged = first[judging]
    if groups is not None:
        group = np.unique(groups, return_inverse=True)[1][judging]
        judged = np.unique(np.stack([judged, group]), axis=1)[0]
    return len(judged) - int(np.sum(~known[np.unique(judged)]))


def expect_few_repeats(repeats: int, n: int, duplicates: Duplicates) -> None:
    """Refuse rows that judge and are repeated, unless they are few or a word says what they are.

    Raises
    ------
    ValueError
        If there are any with ``duplicates="refuse"``, or too many with "auto".
    """
    most = max(1, _MOST_MOVED * math.sqrt(n)) if duplicates == "auto" else 0
    if repeats <= most or duplicates in ("genuine", "copies"):
        return
    said = (
        f"{repeats:,} of {n:,} rows that certify repeat other rows, target included. If each row "
        'was drawn by itself, say duplicates="genuine"; if rows were copied, by oversampling or a '
        'join, say duplicates="copies", as no certificate holds for copies that are taken for draws'
    )
    if duplicates == "refuse" or n >= _FEW_ROWS:
        raise ValueError(said)
    warnings.warn(said, RepeatedRowsWarning, stacklevel=2)
