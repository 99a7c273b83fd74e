"""Which rows of parts are held out, or judge a fold: those that would be in one table.

Every so many of all rows are held out, or they are dealt to folds in turn, of each class its share.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.interface.arrays import Float64, Int32, Int64, divide_by_largest
from certree.out_of_core.chunks import Weighing
from certree.out_of_core.dealt_groups import dealt_by_groups, groups_of_all
from certree.out_of_core.exact_sums import exact_sum, rounded
from certree.out_of_core.executors import Executor
from certree.out_of_core.first_look import ends_together
from certree.out_of_core.order_of_rows import Division, Mask, RowsToDeal, dealt_to, sizes_of_parts
from certree.rows.folds import (
    assign_groups_to_folds,
    draw_validation_groups,
    expect_folds,
    hash_contents,
    mark_validation_places,
)
from certree.rows.training import (
    count_held_out,
    expect_enough_rows_of_classes,
    raise_for_lost_classes,
)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What rows of one side are known by; those of more add up.

    Parameters
    ----------
    n : int
        How many rows it has.
    n_of_stratum : ndarray of int64, shape (n_strata,)
        How many of them are dealt together.
    n_of_class : list of ndarray of int64
        How many of them each class has, column by column.
    largest : float
        The largest weight.
    ends : ndarray of float64, shape (n_targets, 2)
        The smallest and the largest of each target.
    """

    n: int
    n_of_stratum: Int64
    n_of_class: list[Int64]
    largest: float
    ends: Float64

    def __add__(self, other: Side) -> Side:
        """That of both."""
        # A part without rows does not know how many columns there are.
        none = np.zeros(0, dtype=np.int64)
        both = zip_longest(self.n_of_class, other.n_of_class, fillvalue=none)
        n_of_class = [_counts_together(*one) for one in both]
        return Side(
            self.n + other.n,
            _counts_together(self.n_of_stratum, other.n_of_stratum),
            n_of_class,
            max(self.largest, other.largest),
            ends_together(self.ends, other.ends),
        )


def _counts_together(one: Int64, other: Int64) -> Int64:
    counts = np.zeros(max(len(one), len(other)), dtype=np.int64)
    counts[: len(one)] += one
    counts[: len(other)] += other
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """The rows that train, and those that are held out; what is told of more adds up."""

    train: Side
    held: Side

    def __add__(self, other: Sides) -> Sides:
        """Those of both."""
        return Sides(self.train + other.train, self.held + other.held)


@dataclass(frozen=True, slots=True, eq=False)
class RowsHeldOut:
    """Which rows are held out.

    Parameters
    ----------
    division : Division
        How rows are told apart and weighed.
    masks : list of ndarray of bool
        Of each part, which of its rows are held out, in their order.
    sides : Sides
        What is known of both.
    n_repeated : int
        How many rows of both sides equal another one, target included; 0 if groups are held out.
    """

    division: Division
    masks: list[Mask]
    sides: Sides
    n_repeated: int


def hold_out(
    parts: Executor, reader: Any, weighing: Weighing | None, size: float, seed: int
) -> RowsHeldOut:
    """Decide which rows are held out, or which groups of rows: a number of them, or a share.

    Parameters
    ----------
    parts : Executor
        Where rows lie.
    reader : estimator
        Reads them.
    weighing : Weighing or None
        How rows are weighed; None: each counts once.
    size : int or float
        How many rows, or groups, or their share.
    seed : int
        Decides which.

    Raises
    ------
    ValueError
        If a side would be empty, or lack room for the classes.
    """
    division = Division(np.random.RandomState(seed), feature_order=reader._draw_order)
    sizes, names = sizes_of_parts(parts, reader, division)
    is_of_classes = hasattr(reader, "classes_")
    if any(one is not None for one in names):
        n_groups, places = groups_of_all(names)
        n_held = count_held_out(size, n_groups, "groups")
        is_held = draw_validation_groups(n_groups, n_held, np.random.RandomState(seed))
        masks, n_repeated = dealt_by_groups(parts, places, is_held), 0
    else:
        masks, n_repeated = _hold_out_rows(parts, sizes, size, is_of_classes)
    sides: Sides = parts.change(sides_of, own=masks)
    if is_of_classes and (n_lost := _n_lost(sides)):
        raise_for_lost_classes(size, n_lost)
    if weighing is not None:
        largest = sides.train.largest, sides.held.largest
        totals = parts.change(weights_of_sides, largest, own=masks)
        n_of_sides = sides.train.n, sides.held.n
        of_train, of_held = (
            Weighing(most, n_rows / rounded(int(total)))
            for most, n_rows, total in zip(largest, n_of_sides, totals, strict=True)
        )
        division = replace(division, weighings=(of_train, of_held))
    return RowsHeldOut(division, masks, sides, n_repeated)


def _hold_out_rows(
    parts: Executor, sizes: list[int], size: float, is_of_classes: bool
) -> tuple[list[Mask], int]:
    """Decide which rows without groups are held out; return the masks, and how many rows are repeated.

    sizes: number of rows of each part; size: see `hold_out`; is_of_classes: whether targets are
    classes.
    """
    n = sum(sizes)
    n_held = count_held_out(size, n, "rows")
    every = [np.zeros(n_rows, dtype=np.bool_) for n_rows in sizes]
    of_all = parts.change(sides_of, own=every).train
    if is_of_classes:
        for n_of_class in of_all.n_of_class:
            expect_enough_rows_of_classes(n_of_class, size, n, n_held)
    return dealt_to(
        parts,
        every,
        of_all.n_of_stratum,
        lambda place: mark_validation_places(place, n_held, n),
    )


def _n_lost(sides: Sides) -> int:
    """How many classes have rows that are held out, and none that train."""
    both = zip(sides.train.n_of_class, sides.held.n_of_class, strict=True)
    return sum(int(((train == 0) & (held > 0)).sum()) for train, held in both)


@dataclass(frozen=True, slots=True, eq=False)
class DealtRows:
    """To which fold each row is dealt.

    Parameters
    ----------
    division : Division
        How rows are told apart.
    folds : list of ndarray of uint8
        Of each part, the fold that its rows judge, in their order.
    n_repeated : int
        How many rows equal another one, target included; 0: they are dealt by groups.
    """

    division: Division
    folds: list[NDArray[np.uint8]]
    n_repeated: int


def deal_to_folds(
    parts: Executor,
    reader: Any,
    n_folds: int,
    random_state: np.random.RandomState,
) -> DealtRows:
    """Deal rows to folds as `content_folds` does, or groups of them as `group_folds`; see `hold_out`.

    n_folds: at most 255. random_state: goes on as it does there.
    """
    # A copy, as parts are divided by it again later on.
    division = Division(deepcopy(random_state))
    sizes, names = sizes_of_parts(parts, reader, division)
    if any(one is not None for one in names):
        n_groups, places = groups_of_all(names)
        of_group = assign_groups_to_folds(n_groups, n_folds, random_state).astype(np.uint8)
        return DealtRows(division, dealt_by_groups(parts, places, of_group), 0)
    y: Any = np.zeros(1, np.int32 if is_classifier(reader) else np.float64)
    hash_contents(np.zeros((1, reader._n_encoded)), y, random_state)
    expect_folds(n_folds, sum(sizes))
    every = [np.zeros(n_rows, dtype=np.uint8) for n_rows in sizes]
    of_all = parts.change(sides_of, own=[one.astype(np.bool_) for one in every])
    counts = of_all.train.n_of_stratum
    folds, n_repeated = dealt_to(
        parts, every, counts, lambda place: (place % n_folds).astype(np.uint8)
    )
    return DealtRows(division, folds, n_repeated)


def sides_of(part: RowsToDeal, mask: Mask) -> tuple[RowsToDeal, Sides]:
    """What both sides of a part are known by."""
    return part, Sides(*(_side(part, rows) for rows in (~mask, mask)))


def _side(part: RowsToDeal, rows: Mask) -> Side:
    target = part.target[rows] if part.target.ndim > 1 else part.target[rows, None]
    least, most = target.min(axis=0, initial=np.inf), target.max(axis=0, initial=-np.inf)
    ends = np.column_stack([least, most])
    largest = float(part.weight[rows].max(initial=0.0))
    n_of_class = [_counts(one, rows) for one in np.atleast_2d(part.classes.T)]
    return Side(int(rows.sum()), _counts(part.stratum, rows), n_of_class, largest, ends)


def _counts(codes: Int32, rows: Mask) -> Int64:
    """How many of some rows have each code, of all that others have, too."""
    n_codes = int(codes.max(initial=-1)) + 1
    return np.bincount(codes[rows], minlength=n_codes).astype(np.int64)


def weights_of_sides(
    part: RowsToDeal, largest: tuple[float, float], mask: Mask
) -> tuple[RowsToDeal, NDArray[Any]]:
    """Exact sums of the weights of both sides, in units of the largest one of each."""
    sums = [
        exact_sum(divide_by_largest(part.weight[rows], most))
        for rows, most in zip((~mask, mask), largest, strict=True)
    ]
    return part, np.array(sums, dtype=object)
