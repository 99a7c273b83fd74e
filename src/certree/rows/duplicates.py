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
from certree.rows.columns import TableColumns, as_data_frame, get_raw_column, is_missing
from certree.rows.folds import Indices
from certree.rows.hashes import RowHashes, count_rows_with_copies, extend_hashes
from certree.rows.sparse_rows import SparseFeatures

# What is assumed of rows that are alike; "auto" and "refuse" say what to do where nothing is.
Duplicates = Literal["auto", "genuine", "copies", "refuse"]
DUPLICATES: tuple[str, ...] = get_args(Duplicates)
ColumnKind = Literal["number", "text", "other"]

# Without a word so many rows may be repeated as move the observed error by at most this part of its
# standard deviation, and one may be in any case.
_MOST_MOVED = 0.25
# So large a share of the rows may repeat others where each of them counts as the worst case.
_MAX_WORST_FRACTION = 0.02
# What an analyst can answer, and no rule can.
QUESTION = "Do equal rows mean the same customer (patient, order, measurement) twice?"
# Of fewer rows hardly anything is promised, and toy tables hold few different ones: they are only
# warned about.
FEW_ROWS = 40
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


def warn_of_many_copies(
    targets: NDArray[Any], hashes: Callable[[], UInt64], n_distinct: int
) -> None:
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
    if targets.dtype == np.float64 and count_rows_with_copies(columns[0]) <= MOST_REPEATED * n:
        return
    warn_of_repeated_rows(count_rows_with_copies(extend_hashes(hashes(), *columns)), n)


def find_first_equal_rows(X: Any, y: ArrayLike) -> Indices:
    """The first row of a table that is as each row is, target included, (n,).

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of n rows
        Rows, as they were given. Part of a table may have passed through float32; see `RowHashes`.
    y : array-like of shape (n,)
        Target of each row.
    """
    return find_first_equal_keys(RowHasher().hash_rows(X, y, are_all=True).keys)


def find_first_equal_keys(keys: UInt64) -> Indices:
    """The first of all rows that have the key of each, (n,)."""
    order = np.argsort(keys, kind="stable")
    starts = np.ones(len(keys), dtype=bool)
    starts[1:] = keys[order[1:]] != keys[order[:-1]]
    first = np.empty(len(keys), dtype=np.intp)
    first[order] = order[starts][np.cumsum(starts) - 1]
    return first


class RowHasher:
    """Hashes of rows of one table, or of several with the same columns, by which copies are found."""

    def __init__(self) -> None:
        # Of each column which values it has that are no numbers.
        self._places: list[dict[Any, float]] = []

    def hash_rows(self, X: Any, y: ArrayLike, *, are_all: bool = False) -> RowHashes:
        """Those of some rows and their targets; are_all: there are no others. See `find_first_equal_rows`."""
        target, numbers = self.encode(X, y)
        return RowHashes.hash_rows(numbers, target, are_all=are_all)

    def encode(self, X: Any, y: ArrayLike) -> tuple[NDArray[Any], list[Any]]:
        """Return the target and the features of some rows as numbers; a sparse X is one matrix."""
        columns = [np.asarray(y), *_read_columns(X)]
        self._places += [{} for _ in range(len(columns) - len(self._places))]
        target, *numbers = map(_to_numbers, columns, self._places)
        return target, numbers

    @property
    def kinds(self) -> list[ColumnKind]:
        """What each feature holds; "other" are values that are neither numbers nor text."""
        first = (next(iter(places), 0.0) for places in self._places[1:])
        return [
            "text" if isinstance(one, str) else "number" if one == 0.0 else "other" for one in first
        ]


def _read_columns(X: Any) -> list[Any]:
    """The columns of rows; the matrix of sparse ones."""
    if issparse(X):
        rows: Any = X
        return [SparseFeatures.from_csr(rows.tocsr().astype(np.float64)).matrix]
    if as_data_frame(X) is None:
        X = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
        X = X.reshape(len(X), math.prod(X.shape[1:]))
    return [*TableColumns.read(X).columns]


def _to_numbers(column: Any, places: dict[Any, float]) -> Any:
    """The numbers of a column; of other values, which of those that it has."""
    if issparse(column):
        return column
    given = get_raw_column(column)
    if given.dtype.kind in "biuf":
        return given
    values = (_number_value(one, places) for one in given.tolist())
    return np.fromiter(values, np.float64, len(given))


def _number_value(value: Any, places: dict[Any, float]) -> float:
    """Numbers are themselves; so 1 and 1.0 are alike, whichever library has them."""
    if isinstance(value, Real):
        with suppress(OverflowError):
            return float(value)
    if not isinstance(value, Hashable):
        value = repr(np.asarray(value).tolist())
    return math.nan if is_missing(value) else places.setdefault(value, _FIRST_PLACE + len(places))


def merge_copies(
    first: Indices, weight: Float64 | None, groups: NDArray[Any] | None = None
) -> tuple[Indices, Float64 | None]:
    """The first of all rows that are alike, with the sum of their weights.

    Parameters
    ----------
    first : ndarray of shape (n,)
        See `find_first_equal_rows`.
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


def count_repeats(
    first: Indices, grow: Indices, weigh: Indices, groups: NDArray[Any] | None = None
) -> int:
    """How many of the rows that judge are like one that grows, or like another one that judges.

    Parameters
    ----------
    first : ndarray of shape (n,)
        See `find_first_equal_rows`.
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


def mark_repeats(
    first: Indices, grow: Indices, weigh: Indices, groups: NDArray[Any] | None = None
) -> NDArray[np.bool_]:
    """Which rows that judge are like one that grows, or like another one that judges.

    Parameters
    ----------
    first, grow, weigh, groups
        As in `n_repeats`.

    Returns
    -------
    ndarray of bool, shape (n_judging,)
        Of rows that are alike the first one is none, or those of the first group; all of them are if
        one grows, or if rows grow and judge.
    """
    if not len(weigh):
        return np.asarray(np.bincount(first, minlength=len(first))[first[grow]] > 1)
    known = np.zeros(len(first), dtype=bool)
    known[first[grow]] = True
    judged = first[weigh]
    unit = np.arange(len(judged))
    if groups is not None:
        unit = np.unique(groups, return_inverse=True)[1][weigh]
    lowest = np.full(len(first), len(first))
    np.minimum.at(lowest, judged, unit)
    return np.asarray(known[judged] | (lowest[judged] != unit))


def count_worst(is_worst: NDArray[np.bool_] | None) -> int:
    """Return the number of rows that count as the worst case, 0 if there is no mask of them."""
    return 0 if is_worst is None else int(is_worst.sum())


def get_allowed_repeats(n: int, duplicates: Duplicates) -> tuple[float, float]:
    """How many of n rows that judge may repeat others as draws, and as the worst case."""
    if duplicates == "genuine":
        return math.inf, math.inf
    if duplicates == "refuse":
        return 0.0, 0.0
    few = max(1.0, _MOST_MOVED * math.sqrt(n))
    return (few if duplicates == "auto" else 0.0), max(few, _MAX_WORST_FRACTION * n)


def decide_worst_case(repeats: int, n: int, duplicates: Duplicates) -> bool:
    """Whether rows that judge and are repeated count as the worst case, not as draws of their own.

    Parameters
    ----------
    repeats, n : int
        How many of n rows that judge repeat others.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        What is known of them.

    Raises
    ------
    ValueError
        If there are any with ``duplicates="refuse"``, or too many with "auto".
    """
    few, most = get_allowed_repeats(n, duplicates)
    if repeats <= most:
        return repeats > few
    said = (
        f"{repeats:,} of {n:,} rows that certify repeat other rows, target included. {QUESTION} If "
        'so, say duplicates="copies", which counts each of them once. If not, because each row was '
        'drawn by itself and some happen to be equal, say duplicates="genuine"'
    )
    if duplicates == "refuse" or n >= FEW_ROWS:
        raise ValueError(said)
    warnings.warn(said, RepeatedRowsWarning, stacklevel=2)
    return False
