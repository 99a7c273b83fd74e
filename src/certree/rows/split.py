"""Split rows into a training set, which grows trees, and a calibration set, which certifies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certree.interface.arrays import Float64, UInt64, to_array
from certree.interface.signatures import validate_arguments
from certree.rows.columns import is_missing
from certree.rows.duplicates import count_worst
from certree.rows.folds import Indices, make_unordered_error, number_groups, shuffle_by_content
from certree.rows.near_copies import NearCopies
from certree.rows.out_of_core import expect_no_column_name
from certree.rows.time_order import Period, RowTimes


@dataclass(frozen=True, slots=True, eq=False)
class TrainCalibrationSplit:
    """Training set and calibration set of the n rows of a fit, and facts about its repeated rows.

    Parameters
    ----------
    train : ndarray of intp
        Indices, ascending, of the rows that grow and label a tree.
    calibration : ndarray of intp
        Indices, ascending, of the rows that choose the weights of its prunings (subtrees with the
        same root) and certify it. No row is in both sets.
    groups : ndarray of shape (n,), or None
        Group of each row; None: rows have no groups.
    indices : ndarray of intp, shape (n,), or None
        Indices of these n rows among the rows that were passed to `fit`; None: no row was dropped.
    n_given : int or None
        Number of rows that were passed to `fit`, those of weight zero included; None: n.
    repeats : int
        Number of calibration rows that equal a training row, or an earlier calibration row. Without
        a calibration set: number of rows that equal an earlier row.
    distinct : bool
        Whether equal rows were merged to one row, as copies of one draw.
    is_worst : ndarray of bool, shape (n_calibration,), or None
        True for calibration rows that repeat others and that a certificate counts as errors
        whatever is predicted, the worst case: with duplicates="auto", if there are more than max(1,
        sqrt(n) / 4) of n. None: there are none. Without a calibration set its shape is (n,).
    near_copies : NearCopies or None
        Result of the search for near copies; None: there was no search.
    units : ndarray of intp, shape (n_calibration,), or None
        Position, in the order of the table, of each calibration row's unit: 0, 1, .... A unit is
        what is drawn independently: a group, or a set of equal rows; see `rank_units`. None: not
        known. Without a calibration set its shape is (n,).
    times : RowTimes or None
        Times of the n rows; None: rows have no times.
    period : Period or None
        Period of the calibration rows; None: rows have no times, or there is no calibration set.
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
    units: Indices | None = None
    times: RowTimes | None = None
    period: Period | None = None

    @property
    def worst(self) -> int:
        """Number of rows that a certificate counts as errors, because they may be copies.

        They count whatever is predicted. It is the number of True entries of `is_worst`, 0 if that
        is None.
        """
        return count_worst(self.is_worst)

    @property
    def grouped(self) -> bool:
        """Whether rows have groups."""
        return self.groups is not None

    @property
    def n_units(self) -> int:
        """Number of groups; if rows have none, number of rows in both sets."""
        if self.groups is None:
            return len(self.train) + len(self.calibration)
        return len(np.unique(self.groups))

    @property
    def calibration_places(self) -> tuple[Indices, int]:
        """Indices of the calibration rows among the rows passed to `fit`, and the number of the latter.

        The first entry of the pair holds the indices, (n_calibration,); the second one is the
        number of rows that were passed to `fit`.
        """
        n = len(self.train) + len(self.calibration) if self.n_given is None else self.n_given
        return self.calibration if self.indices is None else self.indices[self.calibration], n

    def expect_whole_groups(self) -> None:
        """Raise a ValueError if a group has rows both in the training and in the calibration set.

        The sets are the fields `train` and `calibration`; without groups nothing is checked.
        """
        if self.groups is None:
            return
        shared = np.intersect1d(self.groups[self.train], self.groups[self.calibration])
        if len(shared):
            raise ValueError(
                "groups must be either in the training set or in the calibration set, but "
                f"{len(shared)} are in both, such as {shared[0]}: assign each group to one set"
            )

    @classmethod
    def train_on_all(cls, n: int) -> TrainCalibrationSplit:
        """Return a split of n rows with all of them in the training set, and none for calibration."""
        every = np.arange(n)
        return cls(every, every[:0])


def check_groups(groups: ArrayLike, n: int) -> NDArray[Any]:
    """Convert the parameter groups to an array (n,), the group of each of n rows.

    groups: argument of `fit`, any array-like. Raise a ValueError if its shape is not (n,), or if an
    entry is missing (None, NaN), and a TypeError if it is the name of a column.
    """
    expect_no_column_name("groups", groups)
    given = to_array("groups", groups)
    if given.shape != (n,):
        raise ValueError(
            f"groups must have shape ({n},), got {given.shape}: pass the group of each row"
        )
    expect_no_missing_groups(count_missing_groups(given), n)
    return given


def draw_row_per_group(groups: NDArray[Any]) -> Indices:
    """Draw one row of each group at random, and return their indices, ascending, (n_groups,).

    Each row of a group is drawn with the same probability. If groups are independent draws of one
    source, so are the drawn rows: each is a random row of a new group. The draw is the same in each
    call. groups: group of each row, (n,). Raise ValueError if an entry is missing.
    """
    return _draw_row_per_unit(number_groups(check_groups(groups, len(groups)))[1], seed=0)


def draw_copies(first: Indices, kept: Indices) -> Indices:
    """Draw one row of each set of equal rows at random, and return their indices, (n_kept,).

    first: index of the first row that equals each row, (n,). kept: indices of these first rows,
    one for each set, (n_kept,); the result has their order.
    """
    drawn = _draw_row_per_unit(first)
    place = np.zeros(len(first), dtype=np.intp)
    place[first[drawn]] = drawn
    return place[kept]


def number_by_first(keys: NDArray[Any]) -> Indices:
    """Number distinct keys in the order of their first rows, and return the number of each row, (n,).

    keys: a value for each row, (n,), of any sortable type.
    """
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def rank_units(keys: NDArray[Any], places: Indices | None = None) -> Indices:
    """Rank the units of rows by position in the table; return the rank of each row's unit, (n,).

    A unit is what is drawn independently: a group of rows, or a set of equal rows. Ranks are 0, 1,
    .... The position of a unit is that of one of its rows, drawn at random. In a shuffled table the
    units are then in random order, whatever their sizes, whereas by their first rows large units
    would come first.

    keys: a value for each row, (n,), the same for all rows of a unit. places: position of each row
    in the table, (n,); None: rows are in the order of the table.
    """
    if places is None and keys.dtype.kind == "i" and (keys[1:] > keys[:-1]).all():
        return np.arange(len(keys))
    unit = number_groups(keys)[1]
    drawn = _draw_row_per_unit(unit)
    order = drawn if places is None else drawn[np.argsort(places[drawn])]
    rank = np.empty(len(drawn), dtype=np.intp)
    rank[unit[order]] = np.arange(len(drawn))
    return rank[unit]


def _draw_row_per_unit(unit: Indices, seed: int | None = None) -> Indices:
    """Draw one row of each unit at random, and return their indices, ascending, (n_units,).

    A unit is a group of rows, or a set of equal rows. unit: number of the unit of each row, (n,).
    seed: seed of the draw; the same seed draws the same positions in all tables. None: a checksum
    of `unit`, so that other rows of large units are drawn if the rows of a table are shuffled.
    """
    order = np.random.default_rng(crc32(unit.tobytes()) if seed is None else seed).permutation(
        len(unit)
    )
    _, first = np.unique(unit[order], return_index=True)
    drawn: Indices = np.sort(order[first])
    return drawn


def compute_group_weights(groups: NDArray[Any]) -> Float64:
    """Return 1 / (number of rows of its group) for each row, (n,), so that each group weighs 1.

    groups: group of each row, (n,).
    """
    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1 / size[group])


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
    """Raise a ValueError if `missing` of n rows have no group and this number is not 0."""
    if missing:
        raise ValueError(
            f"groups must name a group of every row, got none for {missing:,} of {n:,} rows: fill in "
            "the missing entries, or drop these rows"
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
        Source of the random order.
    groups : array-like of shape (n,), or None
        Group of each row; None: rows are drawn one by one.

    Returns
    -------
    TrainCalibrationSplit
        Only `train` and `calibration` are set.

    Raises
    ------
    ValueError
        If train_size is positive and one of the sets would be empty, or if an argument is out of
        range.
    """
    if not 0 <= n < 2**53:
        raise ValueError(f"n must be a number of rows in 0 .. 2**53 - 1, got {n!r}")
    if not 0 <= train_size < 1:
        raise ValueError(
            f"train_size must lie in [0, 1), got {train_size!r}: pass a fraction such as 0.5"
        )
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
    """Draw the groups of the training set at random; return True for these, (n_groups,) bool.

    train_size: fraction of the groups in the training set. n_groups: number of groups. n: number of
    rows, for the message of the ValueError that is raised if one of the sets would be empty.
    random_state: source of the random order.
    """
    n_growing = count_training_units(train_size, n_groups, n, "groups")
    return _mark_first(random_state.permutation(n_groups), n_growing)


def _mark_first(order: Indices, n_first: int) -> NDArray[np.bool_]:
    """Mark the rows or groups that are the first n_first of an order, (n,) bool.

    order: indices of all n rows or groups, in any order. Entry i of the result belongs to the row
    or group with index i.
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
            f"{'train' if n_growing == 0 else 'calibrate'} (n_samples = {n}): use more "
            f"{units}, or change train_size"
        )
    return n_growing


@dataclass(frozen=True, slots=True, eq=False)
class TrainCalibrationSplitter:
    """Callable that splits the rows of a fit into a training and a calibration set.

    Parameters
    ----------
    train_size : float
        Fraction of the rows, or of the groups, in the training set; 0: all rows are calibration
        rows.
    random_state : RandomState
        Source of the random order.
    by_content : bool
        True: rows are drawn by hashes of their values, so that their order in the table does not
        matter; False: by their positions. Groups are always drawn by their sorted names.
    is_pilot : bool
        Whether this is a trial fit, after which the rows are split again; near copies are then not
        searched for.
    """

    train_size: float
    random_state: np.random.RandomState
    by_content: bool = False
    is_pilot: bool = False

    def split_by_time(
        self, times: RowTimes, groups: NDArray[Any] | None
    ) -> tuple[TrainCalibrationSplit, Indices]:
        """Split rows, or whole groups, so that the latest ones calibrate and earlier ones train.

        The attribute `train_size` is the fraction of the rows, or groups, that are earlier than the
        calibration set, the gap included. The split depends on times, groups and the number of rows
        alone; rows of one time stay together.

        Parameters
        ----------
        times : RowTimes
            Times of the n rows, and the gap: rows to leave out between earlier and later rows.
        groups : ndarray of shape (n,), or None
            Group of each row; a group has the time of its latest row. None: rows have no groups.

        Returns
        -------
        split : TrainCalibrationSplit
            Both sets, as indices among the rows in `kept`; times and period are set.
        kept : ndarray of intp
            Indices, ascending, of the rows that are not left out as the gap.

        Raises
        ------
        ValueError
            If all times are equal, or one of the sets would be empty.
        """
        n_units = times.n if groups is None else len(np.unique(groups))
        n_train = count_training_units(
            self.train_size, n_units, times.n, "rows" if groups is None else "groups"
        )
        is_train, is_latest = times.split_latest(n_units - n_train, groups)
        kept = np.flatnonzero(is_train | is_latest)
        split = _make_split(is_train[kept])
        latest = times.take(np.flatnonzero(is_latest))
        period = latest.name_period(None if groups is None else groups[is_latest])
        return replace(split, times=times.take(kept), period=period), kept

    def __call__(
        self,
        n: int,
        groups: NDArray[Any] | None,
        weight: Float64 | None,
        contents: Callable[[], UInt64],
    ) -> TrainCalibrationSplit:
        """Split n rows, or whole groups, at random, by the attributes of this object.

        `random_state` is advanced.

        Parameters
        ----------
        n : int
            Number of rows.
        groups : ndarray of shape (n,), or None
            Group of each row; None: rows have no groups.
        weight : ndarray of float64, shape (n,), or None
            Weight of each row. It orders equal rows, and is read only if `by_content` is True and
            there are no groups.
        contents : callable
            Takes no argument, and returns the hash of each row, (n,). It is called only if
            `by_content` is True and there are no groups.

        Returns
        -------
        TrainCalibrationSplit
            Only `train` and `calibration` are set.

        Raises
        ------
        ValueError
            If one of the sets would be empty; with train_size=0 only if rows are drawn by their
            hashes.
        """
        if not self.by_content or groups is not None:
            return train_calibration_split(n, self.train_size, self.random_state, groups)
        n_growing = count_training_units(self.train_size, n, n)
        order = shuffle_by_content(contents(), weight, self.random_state)
        return _make_split(_mark_first(order, n_growing))
