"""Find rows that a table holds more than once: equal independent draws, or copies of one."""

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
from certree.rows.dates import read_days
from certree.rows.folds import Indices, number_groups
from certree.rows.hashes import (
    RowHashes,
    count_equal_rows,
    extend_hashes,
    mark_run_starts,
)
from certree.rows.sparse_rows import SparseFeatures

# What the caller says about equal rows; "auto" and "refuse": nothing, see `get_allowed_repeats`.
Duplicates = Literal["auto", "genuine", "copies", "refuse"]
DUPLICATES: tuple[str, ...] = get_args(Duplicates)
ColumnKind = Literal["number", "text", "other"]

# Rows may repeat others without a warning if they move the observed error by at most this
# multiple of its standard deviation. One row always may.
_MOST_MOVED = 0.25
# The largest fraction of rows that may repeat others and count as the worst case.
_MAX_WORST_FRACTION = 0.02
# Only the user can answer this question.
QUESTION = "Do equal rows mean the same customer (patient, order, measurement) twice?"
# Certificates of fewer rows say hardly anything, and toy tables hold few different rows: there is
# a warning instead of an error.
FEW_ROWS = 40
# A fit warns if more than this fraction of its rows repeat others. `benchmarks/repeated_rows.py`
# measures the fraction from which copies raise the loss by 3 %.
MOST_REPEATED = 0.25
# Number of the first value of a column that is no number; hardly any column also holds 0.5.
_FIRST_PLACE = 0.5


class RepeatedRowsWarning(UserWarning):
    """Category of the warning that many rows of a fit repeat other rows.

    Rows repeat each other if all features and the target are equal. Nothing is wrong if equal rows
    are different customers, patients or measurements, as in a frequency table. If they are copies
    of one, made by oversampling or a join, the model overfits: folds and validation sets then
    contain copies of the rows that grow the trees.

    Examples
    --------
    >>> import warnings
    >>> import certree
    >>> warnings.filterwarnings("ignore", category=certree.RepeatedRowsWarning)
    """


def warn_of_repeated_rows(n_repeated: int, n: int) -> None:
    """Issue a `RepeatedRowsWarning` if more than a quarter of the n rows of a fit repeat others.

    The warning is issued at most once in a fit, also if several estimators in it call this
    function.

    n_repeated: number of rows that equal another row in all features and the target.
    """
    if n_repeated > MOST_REPEATED * n and is_first_in_fit(RepeatedRowsWarning):
        warnings.warn(
            f"X and y hold {n_repeated:,} of {n:,} rows that repeat another row, target included. If "
            "such rows are copies of one draw, made by oversampling or a join, the model overfits: "
            "pass groups= (the draw of each row) if fit accepts it, or one row of each draw with a "
            "sample_weight. If they are separate draws, as in a frequency table, nothing is wrong: "
            "ignore the category certree.RepeatedRowsWarning",
            RepeatedRowsWarning,
            stacklevel=2,
        )


def warn_if_many_repeat(
    targets: NDArray[Any], hashes: Callable[[], UInt64], n_distinct: int
) -> None:
    """Issue a `RepeatedRowsWarning` if more than a quarter of the rows of a fit equal another row.

    Rows are equal if all features and the target are. The warning is issued at most once in a fit.

    Parameters
    ----------
    targets : ndarray of shape (n,), or (n, n_targets)
        Class codes, or numeric targets.
    hashes : callable
        Takes no argument and returns a hash of the features of each row, (n,) uint64. It is not
        called if n_distinct, or the number of equal targets, shows that the fraction is smaller.
    n_distinct : int
        A lower bound on the number of distinct feature rows; 0 if it is not known.
    """
    n = len(targets)
    if 2 * (n - n_distinct) <= MOST_REPEATED * n:  # each row that repeats another has a partner
        return
    columns = [one.astype(np.float64) + 0.0 for one in targets.reshape(n, -1).T]
    if targets.dtype == np.float64 and count_equal_rows(columns[0]) <= MOST_REPEATED * n:
        return
    warn_of_repeated_rows(count_equal_rows(extend_hashes(hashes(), *columns)), n)


def find_first_equal_rows(X: Any, y: ArrayLike) -> Indices:
    """Find for each row the first row that equals it in all features and the target.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of n rows
        Rows, before encoding. A row of float64 numbers and the same row rounded to float32 count as
        equal; see `RowHashes`.
    y : array-like of shape (n,)
        Target of each row.

    Returns
    -------
    ndarray of intp, shape (n,)
        Index of the first equal row; that of the row itself if there is no earlier one.
    """
    return find_first_equal_keys(RowHasher().hash_rows(X, y, are_all=True).keys)


def find_first_equal_keys(keys: UInt64) -> Indices:
    """Return for each entry of keys, (n,), the index of the first entry that equals it, (n,) intp.

    An entry without an equal earlier one gets its own index.
    """
    order = np.argsort(keys, kind="stable")
    starts = np.ones(len(keys), dtype=bool)
    starts[1:] = keys[order[1:]] != keys[order[:-1]]
    first = np.empty(len(keys), dtype=np.intp)
    first[order] = order[starts][np.cumsum(starts) - 1]
    return first


class RowHasher:
    """Hashes rows as the caller passed them, to find equal rows in one or several tables.

    All tables must have the same columns. Texts and other values that are not numbers are replaced
    by numbers, which the instance stores. So hashes are comparable between tables that were hashed
    by the same instance, and only between these. The constructor has no arguments.
    """

    def __init__(self) -> None:
        # For each column, target first: the number of each of its values that are no numbers.
        self._places: list[dict[Any, float]] = []

    def hash_rows(self, X: Any, y: ArrayLike, *, are_all: bool = False) -> RowHashes:
        """Hash rows with their targets.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of n rows
            Rows, not encoded.
        y : array-like of shape (n,)
            Target of each row.
        are_all : bool
            True if these rows are compared with each other only, and not with rows of other tables.
            This saves time if no row was rounded to float32.

        Returns
        -------
        RowHashes
            Its `keys`, (n,), are equal for equal rows of this table. `RowHashes.concatenate`
            compares several tables.
        """
        target, numbers = self.encode(X, y)
        return RowHashes.hash_rows(numbers, target, are_all=are_all)

    def encode(self, X: Any, y: ArrayLike) -> tuple[NDArray[Any], list[Any]]:
        """Convert rows and targets to numbers without learning categories.

        A value that is not a number, such as a text, gets a number of its column: 0.5, 1.5, ... in
        the order in which the values first occur. The instance stores them, so that the same value
        gets the same number in later tables. Missing values become NaN.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of n rows
            Rows, not encoded.
        y : array-like of shape (n,)
            Target of each row.

        Returns
        -------
        target : ndarray of shape (n,)
            Targets as numbers.
        columns : list of ndarray of shape (n,)
            The features as numbers; for a sparse X a list with one CSR matrix.
        """
        columns = [np.asarray(y), *_read_columns(X)]
        self._places += [{} for _ in range(len(columns) - len(self._places))]
        target, *numbers = map(_to_numbers, columns, self._places)
        return target, numbers

    @property
    def kinds(self) -> list[ColumnKind]:
        """What each feature holds in the rows encoded so far: "number", "text" or "other".

        A list with an entry for each feature, from left to right. An entry is "number" if all
        values are numbers or missing. Else the first value that is not a number decides between
        "text" and "other".
        """
        first = (next(iter(places), 0.0) for places in self._places[1:])
        return [
            "text" if isinstance(one, str) else "number" if one == 0.0 else "other" for one in first
        ]


def _read_columns(X: Any) -> list[Any]:
    """Return the columns of X as a list of arrays (n,) or narwhals Series.

    For a sparse X the list holds one CSR matrix with all columns.
    """
    if issparse(X):
        rows: Any = X
        return [SparseFeatures.from_csr(rows.tocsr().astype(np.float64)).matrix]
    if as_data_frame(X) is None:
        X = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
        X = X.reshape(len(X), math.prod(X.shape[1:]))
    return [*TableColumns.read(X).columns]


def _to_numbers(column: Any, places: dict[Any, float]) -> Any:
    """Convert the values of a column to numbers, (n,), with NaN for missing values.

    Numeric columns are returned as arrays without conversion, a sparse matrix is returned
    unchanged. Dates become days.

    column: array (n,), narwhals Series, or CSR matrix. places: for this column, the number of each
    value that is not a number, such as a text, by value. New values are added to it, with the
    numbers 0.5, 1.5, ... in the order in which they occur.
    """
    if issparse(column):
        return column
    days = read_days(column, "X")
    if days is not None:
        return days
    given = get_raw_column(column)
    if given.dtype.kind in "biuf":
        return given
    values = (_number_value(one, places) for one in given.tolist())
    return np.fromiter(values, np.float64, len(given))


def _number_value(value: Any, places: dict[Any, float]) -> float:
    """Return the number that stands for a value, which is added to `places` if it is no number.

    Numbers are returned as float: equal numbers become equal floats, whether they are NumPy's,
    Python's or another library's. Missing values become NaN. Any other value becomes its entry in
    places, which for a new value is 0.5 + len(places).
    """
    if isinstance(value, Real):
        with suppress(OverflowError):
            return float(value)
    if not isinstance(value, Hashable):
        value = repr(np.asarray(value).tolist())
    return math.nan if is_missing(value) else places.setdefault(value, _FIRST_PLACE + len(places))


def merge_copies(
    first: Indices, weight: Float64 | None, groups: NDArray[Any] | None = None
) -> tuple[Indices, Float64 | None]:
    """Keep the first row of each set of equal rows, and sum up the weights of the set.

    Parameters
    ----------
    first : ndarray of intp, shape (n,)
        Index of the first row that equals each row; see `find_first_equal_rows`.
    weight : ndarray of shape (n,), or None
        Weight of each row; None: 1 each.
    groups : ndarray of shape (n,), or None
        Group of each row; None: rows have no groups.

    Returns
    -------
    rows : ndarray of intp, shape (m,)
        Indices of the rows that are kept, ascending.
    summed : ndarray of float64, shape (m,), or None
        Sum of the weights of each kept row and the rows that equal it. If no rows are equal, the
        argument `weight` itself, which may be None.

    Raises
    ------
    ValueError
        If equal rows are in different groups.
    """
    number, ones = np.arange(len(first)), np.ones(len(first))
    kept = np.flatnonzero(first == number)
    if len(kept) == len(first):
        return kept, weight
    summed = ones if weight is None else weight.copy()
    _, copied, total = sum_copies(first, number, summed, ones if groups is None else groups)
    summed[copied] = total
    return kept, summed[kept]


def sum_copies(
    keys: NDArray[Any], number: NDArray[Any], weight: Float64, groups: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], Float64]:
    """Sum the weights of rows with equal keys, in the order of their numbers.

    Parameters
    ----------
    keys : ndarray of int, shape (n,)
        A hash, or another integer that equal rows share. If rows are in several blocks, all rows that
        have some keys are passed together.
    number : ndarray of int, shape (n,)
        Number of each row in the order of the table.
    weight : ndarray of float64, shape (n,)
        Weight of each row.
    groups : ndarray of shape (n,)
        Group of each row; equal entries if there are no groups.

    Returns
    -------
    copied : ndarray of int, shape (k,)
        The keys that several rows have, ascending.
    first : ndarray of int, shape (k,)
        The smallest number of the rows with each of them.
    total : ndarray of float64, shape (k,)
        The sum of their weights.

    Raises
    ------
    ValueError
        If equal rows are in different groups.
    """
    order = np.lexsort((number, keys))
    keys, number, weight, groups = keys[order], number[order], weight[order], groups[order]
    starts = np.flatnonzero(mark_run_starts(keys))
    n_copies = np.diff(np.append(starts, len(keys)))
    run = np.repeat(np.arange(len(starts)), n_copies)
    if (groups != groups[starts][run]).any():
        raise ValueError(
            'groups must be the same for copies of a row if duplicates="copies", got equal rows '
            "in several groups: give them one group"
        )
    total: Float64 = np.bincount(run, weight).astype(np.float64)  # in the order of the numbers
    is_copied = n_copies > 1
    return keys[starts][is_copied], number[starts][is_copied], total[is_copied]


def count_repeats(
    first: Indices, train: Indices, calibration: Indices, groups: NDArray[Any] | None = None
) -> int:
    """Count the calibration rows that equal a training row, or an earlier calibration row.

    Parameters
    ----------
    first : ndarray of intp, shape (n,)
        Index of the first row that equals each row; see `find_first_equal_rows`.
    train, calibration : ndarray of intp
        Indices of the training and the calibration rows. If there are no calibration rows, the
        result is the number of training rows that equal an earlier training row.
    groups : ndarray of shape (n,), or None
        Group of each row; equal counted rows of one group count as one row. None: rows have no
        groups.

    Returns
    -------
    int
        Number of such rows. Of equal calibration rows that equal no training row, all but one
        count.
    """
    counted, trained = (calibration, train) if len(calibration) else (train, train[:0])
    keys, units = first[counted], _number_units(groups, counted)
    return count_repeated_units(keys, _mark_first_rows(first, trained)[keys], units)


def _mark_first_rows(first: Indices, rows: Indices) -> NDArray[np.bool_]:
    """Mark each row that is the first of a set of equal rows to which one of `rows` belongs, (n,) bool.

    first: index of the first row that equals each row of the table, (n,); rows: indices of rows.
    """
    is_marked = np.zeros(len(first), dtype=bool)
    is_marked[first[rows]] = True
    return is_marked


def _number_units(groups: NDArray[Any] | None, rows: Indices) -> Indices:
    """Return a number for each of m rows, (m,), which rows of one group share.

    Groups are numbered 0, 1, ... in sorted order. Without groups each row has a number of its own,
    0 .. m - 1. groups: group of each row of the table, (n,), or None; rows: indices of the m rows
    in the table, (m,).
    """
    if groups is None:
        return np.arange(len(rows))
    return number_groups(groups[rows])[1]


def count_repeated_units(
    keys: NDArray[Any], is_trained: NDArray[np.bool_], units: NDArray[Any]
) -> int:
    """Count the calibration rows that equal a training row, or a row of an earlier unit.

    A unit is a group, or a row if there are no groups; equal rows of one unit count as one row.
    keys: a hash, or another integer that equal rows share, of each calibration row, (n,);
    is_trained: whether each of them equals a training row, (n,); units: number of the unit of each
    row, in the order of the table, (n,).
    """
    order = np.lexsort((units, keys))
    is_new = mark_run_starts(keys[order])
    is_counted = is_new | mark_run_starts(units[order])
    return int(np.count_nonzero(is_counted) - np.count_nonzero(is_new & ~is_trained[order]))


def mark_repeats(
    first: Indices, train: Indices, calibration: Indices, groups: NDArray[Any] | None = None
) -> NDArray[np.bool_]:
    """Mark the calibration rows that equal a training row, or an earlier calibration row.

    Parameters
    ----------
    first : ndarray of intp, shape (n,)
        Index of the first row that equals each row; see `find_first_equal_rows`.
    train, calibration : ndarray of intp
        Indices of the training and the calibration rows.
    groups : ndarray of shape (n,), or None
        Group of each row. Equal calibration rows of one group do not repeat each other. If several
        groups have equal rows, the rows of all groups but the first, in sorted order, are marked.
        None: each row is its own group.

    Returns
    -------
    ndarray of bool, shape (n_calibration,)
        True for repeated rows. If there are no calibration rows, the shape is (n_train,), and all
        training rows that equal another training row are marked, the first one included.
    """
    if not len(calibration):
        return np.asarray(np.bincount(first, minlength=len(first))[first[train]] > 1)
    keys, units = first[calibration], _number_units(groups, calibration)
    return mark_repeats_by_key(keys, _mark_first_rows(first, train)[keys], units)


def mark_repeats_by_key(
    keys: NDArray[Any], is_trained: NDArray[np.bool_], units: NDArray[Any]
) -> NDArray[np.bool_]:
    """Mark the calibration rows that equal a training row, or a row of an earlier unit.

    Parameters
    ----------
    keys : ndarray of int, shape (n,)
        A hash, or another integer that equal rows share, of each calibration row. If rows are in
        several blocks, all rows that have some keys are passed together.
    is_trained : ndarray of bool, shape (n,)
        Whether each of them equals a training row.
    units : ndarray of int, shape (n,)
        Number of the unit of each row: of its group or, without groups, of the row, in the order of
        the table. Rows of one unit do not repeat each other. If several units have equal rows, the
        rows of all units but the first are marked.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for repeated rows.
    """
    order, is_repeat = np.lexsort((units, keys)), is_trained.copy()
    starts, units = mark_run_starts(keys[order]), units[order]
    is_repeat[order] |= units != units[starts][np.cumsum(starts) - 1]
    return is_repeat


def count_worst(is_worst: NDArray[np.bool_] | None) -> int:
    """Return how many calibration rows a certificate counts as errors, because they may be copies.

    These rows repeat others, and count whatever is predicted. is_worst: True for these rows,
    (n_calibration,); in a fit without a calibration set a mask of all rows, (n,). None: there are
    no such rows, and the result is 0.
    """
    return 0 if is_worst is None else int(is_worst.sum())


def get_allowed_repeats(n: int, duplicates: Duplicates) -> tuple[float, float]:
    """Return how many of n calibration rows may equal other rows, as two limits.

    Up to the first limit, repeated rows count like any other row. Up to the second one, the
    certificate counts each of them as an error whatever is predicted, the worst case. Above the
    second limit `decide_worst_case` refuses the fit.

    Parameters
    ----------
    n : int
        Number of calibration rows.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        Parameter of certified estimators. "genuine": equal rows are independent draws; "copies":
        they are copies of one draw; "refuse": there must be none; "auto": not known.

    Returns
    -------
    few : float
        The first limit: infinity for "genuine", 0 for "copies" and "refuse". For "auto" max(1,
        sqrt(n) / 4): so many rows move the observed error by at most a quarter of its standard
        deviation.
    most : float
        The second limit: infinity for "genuine", 0 for "refuse", else max(1, sqrt(n) / 4, n / 50).
    """
    if duplicates == "genuine":
        return math.inf, math.inf
    if duplicates == "refuse":
        return 0.0, 0.0
    few = max(1.0, _MOST_MOVED * math.sqrt(n))
    return (few if duplicates == "auto" else 0.0), max(few, _MAX_WORST_FRACTION * n)


def decide_worst_case(repeats: int, n: int, duplicates: Duplicates) -> bool:
    """Decide whether a certificate counts calibration rows that repeat other rows as errors.

    Parameters
    ----------
    repeats : int
        Number of calibration rows that equal other rows.
    n : int
        Number of calibration rows; in a fit without a calibration set that of all rows.
    duplicates : {"auto", "genuine", "copies", "refuse"}
        What equal rows are. "genuine": independent draws, any number of which counts like other
        rows. "copies": copies of one draw; up to max(1, sqrt(n) / 4, n / 50) count as errors.
        "refuse": there must be none. "auto": not known; up to max(1, sqrt(n) / 4) count like other
        rows, and more count as errors, up to the limit of "copies".

    Returns
    -------
    bool
        True: repeated rows count as errors whatever is predicted, the worst case. False: they count
        like other rows.

    Raises
    ------
    ValueError
        If there are more repeated rows than duplicates allows. If n < 40, and duplicates is "auto"
        or "copies", a `RepeatedRowsWarning` is issued instead, and the result is False.
    """
    few, most = get_allowed_repeats(n, duplicates)
    if repeats <= most:
        return repeats > few
    message = (
        f"{repeats:,} of {n:,} rows that certify repeat other rows, target included. {QUESTION} If "
        'so, pass duplicates="copies", which counts each of them once. If not, because each row was '
        'drawn by itself and some happen to be equal, pass duplicates="genuine"'
    )
    if duplicates == "refuse" or n >= FEW_ROWS:
        raise ValueError(message)
    warnings.warn(message, RepeatedRowsWarning, stacklevel=2)
    return False
