"""Which rows grow a tree, and which weigh its prunings."""

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
    """Rows that grow and label a tree, and those that weigh its prunings.

    Parameters
    ----------
    grow, weigh : ndarray of intp
        Indices of the rows, ascending; no row is on both sides.
    groups : ndarray of shape (n,), or None
        Group of each row.
    indices : ndarray of intp, shape (n,), or None
        Which of the rows given these are; None: all.
    n_given : int or None
        How many rows were given, those of weight zero included; None: these are all.
    repeats : int
        How many of those that weigh are like one that grows, or another one that weighs.
    distinct : bool
        Whether rows that are alike were taken for copies of one, which is left.
    is_worst : ndarray of bool, or None
        Which of the rows that weigh (of all, if none do) repeat others and count as the worst case;
        None: none of them.
    near_copies : NearCopies or None
        What a comparison beyond equality has found; None: rows were not compared.
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
        """How many rows count as the worst case."""
        return count_worst(self.is_worst)

    @property
    def grouped(self) -> bool:
        """Whether rows come in groups."""
        return self.groups is not None

    @property
    def n_units(self) -> int:
        """How many rows, or groups of them, there are."""
        if self.groups is None:
            return len(self.train) + len(self.calibration)
        return len(np.unique(self.groups))

    @property
    def calibration_places(self) -> tuple[Indices, int]:
        """Places of the rows that weigh among those that were given, and how many these were."""
        n = len(self.train) + len(self.calibration) if self.n_given is None else self.n_given
        return self.calibration if self.indices is None else self.indices[self.calibration], n

    @classmethod
    def train_on_all(cls, n: int) -> TrainCalibrationSplit:
        """All of n rows grow, and none are kept apart."""
        every = np.arange(n)
        return cls(every, every[:0])


def check_groups(groups: ArrayLike, n: int) -> NDArray[Any]:
    """Check one group for each of n rows."""
    given = to_array("groups", groups)
    if given.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), got {given.shape}")
    expect_no_missing_groups(count_missing_groups(given), n)
    return given


def count_missing_groups(groups: NDArray[Any]) -> int:
    """How many rows name no group."""
    if groups.dtype.kind in "mM":
        return int(np.isnat(groups).sum())
    values = groups.tolist() if groups.dtype.kind in "fO" else []
    try:
        return sum(map(is_missing, values))
    except ValueError:  # of arrays, which are no values
        raise make_unordered_error(groups) from None


def expect_no_missing_groups(missing: int, n: int) -> None:
    """Refuse n rows of which some name no group."""
    if missing:
        raise ValueError(
            f"groups must name a group of every row, got none for {missing:,} of {n:,}"
        )


@validate_arguments
def train_calibration_split(
    n: int, train_size: float, random_state: np.random.RandomState, groups: ArrayLike | None = None
) -> TrainCalibrationSplit:
    """Deal rows, or groups of them, to growing and weighing at random, whatever they hold.

    Parameters
    ----------
    n : int
        Number of rows.
    train_size : float
        Share of the rows, or groups, that grow, between 0 and 1; 0: all rows weigh.
    random_state : numpy RandomState
        Source of the order.
    groups : array-like of shape (n,), or None
        Group of each row, which stays in one piece.

    Returns
    -------
    Sides

    Raises
    ------
    ValueError
        If a side would be empty though the share is positive.
    """
    if not 0 <= n < 2**53:
        raise ValueError(f"n must be a number of rows, got {n!r}")
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
    """Which groups grow, (n_groups,), in ascending order of them; n: how many rows they have."""
    n_growing = count_training_units(train_size, n_groups, n, "groups")
    return _mark_first(random_state.permutation(n_groups), n_growing)


def _mark_first(order: Indices, n_growing: int) -> NDArray[np.bool_]:
    """Let the first ones of rows or groups in some order grow."""
    grows = np.zeros(len(order), dtype=bool)
    grows[order[:n_growing]] = True
    return grows


def _make_split(grows: NDArray[np.bool_]) -> TrainCalibrationSplit:
    return TrainCalibrationSplit(np.flatnonzero(grows), np.flatnonzero(~grows))


def count_training_units(train_size: float, n_units: int, n: int, units: str = "rows") -> int:
    """How many of some rows or groups grow, which leaves some on both sides; n: how many rows."""
    n_growing = round(train_size * n_units)
    if not 0 < n_growing < n_units:
        raise ValueError(
            f"train_size={train_size!r} of {n_units} {units} leaves none to "
            f"{'grow' if n_growing == 0 else 'weigh'} (n_samples = {n})"
        )
    return n_growing


@dataclass(frozen=True, slots=True, eq=False)
class TrainCalibrationSplitter:
    """How the rows of a fit are dealt to growing and weighing.

    Parameters
    ----------
    train_size : float
        Share of the rows, or groups, that grow; 0: all weigh.
    random_state : RandomState
        Source of the order.
    by_content : bool
        Whether rows that are no groups are dealt by what they hold, so that it does not matter where
        they stand.
    is_pilot : bool
        Whether rows may be dealt once more: near copies are not looked for yet.
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
        """Both sides of n rows; `contents` gives their hashes."""
        if not self.by_content or groups is not None:
            return train_calibration_split(n, self.train_size, self.random_state, groups)
        n_growing = count_training_units(self.train_size, n, n)
        order = shuffle_by_content(contents(), weight, self.random_state)
        return _make_split(_mark_first(order, n_growing))
