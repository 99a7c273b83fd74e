"""Split rows into a training set, which grows trees, and a calibration set, which certifies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import Float64, UInt64, to_array
from certree.interface.signatures import validate_arguments
from certree.rows.columns import is_missing
from certree.rows.duplicates import count_worst
from certree.rows.folds import Indices, make_unordered_error, number_groups, shuffle_by_content
from certree.rows.near_copies import NearCopies


@dataclass(frozen=True, slots=True, eq=False)
class TrainCalibrationSplit:
    """Training set and calibration set of the rows of a fit.

    Parameters
    ----------
    train : ndarray of intp
        Indices, ascending, of the rows that grow and label a tree.
    calibration : ndarray of intp
        Indices, ascending, of the rows that choose the weights of its prunings (subtrees) and
        certify it. No row is in both sets.
    groups : ndarray of shape (n,), or None
        Group of each row; None: rows have no groups.
    indices : ndarray of intp, shape (n,), or None
        Indices of these n rows among those that the caller passed to `fit`; None: they are all of
        them.
    n_given : int or None
        Number of rows that the caller passed, those of weight zero included; None: n.
    repeats : int
        Number of calibration rows that equal a training row, or an earlier calibration row.
    distinct : bool
        Whether equal rows were merged, as copies of one draw.
    is_worst : ndarray of bool, shape (n_calibration,), or None
        Calibration rows that repeat others and count as the worst case (as errors); None: none of
        them. If there are no calibration rows, it has the shape (n,).
    near_copies : NearCopies or None
        Result of the search for near copies; None: there was no search.
    """

    train: Indices
    calibration: Indices
    groups: NDArray[Any] | None = None
    indices: Indices | None = None
    n_given: int | None = None
    repeats: int = 0
    distinct: bool = False
    is_worst: NDArray[np.bool_] | None = None
    near_copies: NearCopies | None = None

    @property
    def worst(self) -> int:
        """Return the number of rows that count as the worst case; see `is_worst`."""
        return count_worst(self.is_worst)

    @property
    def grouped(self) -> bool:
        """Return whether rows have groups."""
        return self.groups is not None

    @property
    def n_units(self) -> int:
        """Return the number of groups; if rows have none, the number of rows."""
        if self.groups is None:
            return len(self.train) + len(self.calibration)
        return len(np.unique(self.groups))

    @property
    def calibration_places(self) -> tuple[Indices, int]:
        """Return where the calibration rows are among the rows that the caller passed to `fit`.

        The first result holds their indices, (n_calibration,); the second is the number of rows
        passed.
        """
        n = len(self.train) + len(self.calibration) if self.n_given is None else self.n_given
        return self.calibration if self.indices is None else self.indices[self.calibration], n

    @classmethod
    def train_on_all(cls, n: int) -> TrainCalibrationSplit:
        """Return a split of n rows with all of them in the training set."""
        every = np.arange(n)
        return cls(every, every[:0])


def check_groups(groups: ArrayLike, n: int) -> NDArray[Any]:
    """Convert the groups of n rows to an array (n,).

    Raise a ValueError if there are not n of them, or a row has none (None, NaN).
    """
    given = to_array("groups", groups)
    if given.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), got {given.shape}")
    expect_no_missing_groups(count_missing_groups(given), n)
    return given


def count_missing_groups(groups: NDArray[Any]) -> int:
    """Return the number of missing entries (None, NaN, NaT) in groups, (n,)."""
    if groups.dtype.kind in "mM":
        return int(np.isnat(groups).sum())
    values = groups.tolist() if groups.dtype.kind in "fO" else []
    try:
        return sum(map(is_missing, values))
    except ValueError:  # entries are arrays
        raise make_unordered_error(groups) from None


def expect_no_missing_groups(missing: int, n: int) -> None:
    """Raise a ValueError if some of n rows have no group. missing: their number."""
    if missing:
        raise ValueError(
            f"groups must name a group of every row, got none for {missing:,} of {n:,} rows"
        )


@validate_arguments
def train_calibration_split(
    n: int, train_size: float, random_state: np.random.RandomState, groups: ArrayLike | None = None
) -> TrainCalibrationSplit:
    """Split rows, or whole groups, at random into a training and a calibration set.

    Parameters
    ----------
    n : int
        Number of rows.
    train_size : float
        Fraction of the rows, or of the groups, in the training set, at least 0 and less than 1; 0:
        all rows are calibration rows.
    random_state : numpy RandomState
        Source of the order.
    groups : array-like of shape (n,), or None
        Group of each row; None: rows are drawn one by one.

    Returns
    -------
    TrainCalibrationSplit
        Row indices of both sets.

    Raises
    ------
    ValueError
        If train_size is positive, and one of the sets would be empty.
    """
    if not 0 <= n < 2**53:
        raise ValueError(f"n must be a number of rows, at least 0, got {n!r}")
    if not 0 <= train_size < 1:
        raise ValueError(f"train_size must lie in [0, 1), got {train_size!r}")
    if train_size == 0:
        whole = TrainCalibrationSplit.train_on_all(n)
        return TrainCalibrationSplit(whole.calibration, whole.train)
    if groups is None:
        n_growing = count_training_units(train_size, n, n)
        return _make_split(_mark_first(random_state.permutation(n), n_growing))
    names, group = number_groups(check_groups(groups, n))
    return _make_split(draw_training_groups(train_size, len(names), n, random_state)[group])


def draw_training_groups(
    train_size: float, n_groups: int, n: int, random_state: np.random.RandomState
) -> NDArray[np.bool_]:
    """Draw the groups of the training set at random, and return a mask of all groups, (n_groups,).

    train_size: fraction of the groups in the training set. n: number of rows, for the message of
    the ValueError that is raised if one of the sets would be empty.
    """
    n_growing = count_training_units(train_size, n_groups, n, "groups")
    return _mark_first(random_state.permutation(n_groups), n_growing)


def _mark_first(order: Indices, n_first: int) -> NDArray[np.bool_]:
    """Mark the n_first first entries of an order: a mask (n,) of rows or groups.

    order: indices of all n rows or groups, in some order.
    """
    is_first = np.zeros(len(order), dtype=bool)
    is_first[order[:n_first]] = True
    return is_first


def _make_split(grows: NDArray[np.bool_]) -> TrainCalibrationSplit:
    return TrainCalibrationSplit(np.flatnonzero(grows), np.flatnonzero(~grows))


def count_training_units(train_size: float, n_units: int, n: int, units: str = "rows") -> int:
    """Return how many rows or groups the training set gets: train_size * n_units, rounded.

    n_units: number of rows or groups. n: number of rows; units: "rows" or "groups", both for the
    message. Raise a ValueError if the result is 0 or n_units.
    """
    n_growing = round(train_size * n_units)
    if not 0 < n_growing < n_units:
        raise ValueError(
            f"train_size={train_size!r} of {n_units} {units} leaves none to "
            f"{'train' if n_growing == 0 else 'calibrate'} (n_samples = {n}): change train_size"
        )
    return n_growing


@dataclass(frozen=True, slots=True, eq=False)
class TrainCalibrationSplitter:
    """Splits the rows of a fit into a training and a calibration set when it is called.

    Parameters
    ----------
    train_size : float
        Fraction of the rows, or of the groups, in the training set; 0: all rows are calibration
        rows.
    random_state : RandomState
        Source of the order.
    by_content : bool
        Whether the split depends on contents and not on places of rows. Groups are always drawn in
        sorted order.
    is_pilot : bool
        Whether this is a trial fit, after which the rows are split again; near copies are then not
        searched for.
    """

    train_size: float
    random_state: np.random.RandomState
    by_content: bool = False
    is_pilot: bool = False

    def __call__(
        self,
        n: int,
        groups: NDArray[Any] | None,
        weight: Float64 | None,
        contents: Callable[[], UInt64],
    ) -> TrainCalibrationSplit:
        """Split n rows.

        Parameters
        ----------
        n : int
            Number of rows.
        groups : ndarray of shape (n,), or None
            Group of each row.
        weight : ndarray of float64, shape (n,), or None
            Weight of each row, which numbers equal rows if the split is by content.
        contents : callable
            Takes no argument, and returns the hash of each row, (n,). Called only if the split is
            by content.

        Returns
        -------
        TrainCalibrationSplit
        """
        if not self.by_content or groups is not None:
            return train_calibration_split(n, self.train_size, self.random_state, groups)
        n_growing = count_training_units(self.train_size, n, n)
        order = shuffle_by_content(contents(), weight, self.random_state)
        return _make_split(_mark_first(order, n_growing))
