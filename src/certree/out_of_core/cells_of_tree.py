"""What a single tree asks of a part of the rows, and what becomes of it.

Cells are numbered in the order in which they are made. A part says of each which of its rows lie there,
and what these add up to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from certree._core import add_tables, part_divide, part_tables
from certree.grow.bins import UInt8
from certree.interface.arrays import Float64, Int32, Int64
from certree.out_of_core.exact_sums import exact_sum
from certree.out_of_core.part import PartOfRows, expect_same_rows
from certree.rows.relative_weights import NO_WEIGHTS, WeightUnit

# Sums of cells in lanes, as the core takes them: where those of each cell start, lanes, and sums.
Lanes = tuple[Int64, Int32, Int64]


@dataclass(frozen=True, slots=True)
class WholeUnits:
    """What rows are added up in.

    Parameters
    ----------
    n_classes : int
        Number of classes; 0: targets are numbers.
    of_weights : WeightUnit
        What decides the integers that weights become.
    start : float
        What is taken from numbers.
    unit : int
        Then numbers are rounded to multiples of two to the power of this.
    """

    n_classes: int
    of_weights: WeightUnit = NO_WEIGHTS
    start: float = 0.0
    unit: int = 0

    def weights(self, weight: Float64) -> Int64:
        """Weights as whole numbers."""
        return self.of_weights.to_integers(weight).astype(np.int64)

    def numbers(self, y: Float64) -> Int64:
        """Targets as whole numbers."""
        if self.n_classes > 0:
            return y.astype(np.int64)
        return np.rint(np.ldexp(y - self.start, -self.unit)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class GrowingRows:
    """What is known of the rows that grow a tree; that of more adds up.

    Parameters
    ----------
    n, n_others : int
        How many grow the tree, and how many judge it.
    ends : tuple of two floats
        The smallest and the largest target, or class.
    of_weights : WeightUnit
        What decides the integers that weights become.
    weight : int
        Exact sum of the weights.
    """

    n: int
    n_others: int
    ends: tuple[float, float]
    of_weights: WeightUnit
    weight: int

    def __add__(self, other: Self) -> Self:
        """That of both."""
        return replace(
            self,
            n=self.n + other.n,
            n_others=self.n_others + other.n_others,
            ends=(min(self.ends[0], other.ends[0]), max(self.ends[1], other.ends[1])),
            of_weights=self.of_weights + other.of_weights,
            weight=self.weight + other.weight,
        )


@dataclass(frozen=True, slots=True)
class FoldOfParts:
    """Which rows judge a tree: those that are dealt to a fold, or, if it is turned, all others."""

    number: int
    is_turned: bool = False


def growing_rows(part: PartOfRows, fold: FoldOfParts | None) -> GrowingRows:
    """What is known of the rows of a part that grow a tree: those that do not judge a fold."""
    rows, others = _sides(part, fold)
    y, ends = part.y[rows], (np.inf, -np.inf)
    if len(rows):
        ends = float(y.min()), float(y.max())
    if part.weight is None:
        return GrowingRows(len(rows), len(others), ends, NO_WEIGHTS, 0)
    weight = part.weight[rows]
    return GrowingRows(len(rows), len(others), ends, WeightUnit.find(weight), exact_sum(weight))


def _sides(part: PartOfRows, fold: FoldOfParts | None) -> tuple[Int32, Int32]:
    """Numbers of the rows that grow a tree, and of those that judge it."""
    if fold is None:
        return np.arange(len(part.y), dtype=np.int32), np.zeros(0, dtype=np.int32)
    judges = (part.fold == fold.number) != fold.is_turned
    return np.flatnonzero(~judges).astype(np.int32), np.flatnonzero(judges).astype(np.int32)


def begin_cells(
    part: PartOfRows, digests: Mapping[int, int], units: WholeUnits, fold: FoldOfParts | None
) -> tuple[PartOfRows, Int64]:
    """A part whose rows lie in the root; gives what those that grow weigh by class, or their sums."""
    expect_same_rows(part, digests)
    rows, others = _sides(part, fold)
    n, n_all = len(rows), len(part.y)
    numbers, weight = units.numbers(part.y[rows]), np.ones(n, dtype=np.int64)
    if part.weight is not None:
        weight = units.weights(part.weight[rows])
    # Those that do not grow the tree are added up by nobody.
    items = np.tile(np.array([1, 0], dtype=np.int64), (n_all, 1))
    items[rows] = np.column_stack([weight, numbers])
    if units.n_classes > 2:
        total = np.zeros(units.n_classes, dtype=np.int64)
        np.add.at(total, numbers, weight)
    else:
        total = np.array([weight.sum(), (weight * numbers).sum()], dtype=np.int64)
    part = replace(
        part,
        order=np.concatenate([rows, others]),
        items=items,
        ranges=np.array([[[0, n], [n, n_all]]], dtype=np.int64),
        n_growing=n,
    )
    return part, total


def divide(
    part: PartOfRows, cell: Int32, feature: Int32, goes_left: UInt8
) -> tuple[PartOfRows, int]:
    """Send the rows of cells on, by their numbers; cells below come behind all others, two by two."""
    # Both sides of a cell are cut like two cells.
    sides = np.column_stack([2 * cell, 2 * cell + 1]).ravel().astype(np.int32)
    cuts = np.repeat(feature, 2), np.repeat(goes_left, 2, axis=0)
    ranges = part.ranges.reshape(-1, 2)
    order = part.changed("order")
    below = part_divide(part.codes, order, ranges, sides, *cuts)
    children = below.reshape(-1, 2, 2, 2).swapaxes(1, 2).reshape(-1, 2, 2)
    return replace(part, order=order, ranges=np.concatenate([part.ranges, children])), 0


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What rows of cells add up to by feature and bin; those of more add up.

    Parameters
    ----------
    width : ndarray of int32, shape (c,)
        How many numbers a bin of each cell has.
    tables : tuple
        Tables, as the core makes them, the larger ones first: they are added up when the next one is as
        large, so that each number is moved a few times, however many parts there are.
    """

    width: Int32
    tables: tuple[tuple[Any, ...], ...]

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        tables = [*self.tables]
        for one in other.tables:
            tables.append(one)
            while len(tables) > 1 and len(tables[-2][1]) <= 2 * len(tables[-1][1]):
                last = tables.pop()
                tables[-1] = add_tables(tables[-1], last, self.width)
        return replace(self, tables=tuple(tables))

    def __reduce__(self) -> tuple[Any, ...]:
        """As one table: what a worker tells has each number once."""
        return Tables, (self.width, (self.whole(),))

    def whole(self) -> tuple[Any, ...]:
        """One table of all."""
        first, *others = self.tables
        for one in others:
            first = add_tables(first, one, self.width)
        return first


def tables_of(
    part: PartOfRows, cells: Int32, totals: Lanes, target: tuple[Any, ...], width: Int32
) -> Tables:
    """What the rows of some cells add up to: those that have a width; of others what is told beside."""
    ranges = part.ranges[cells, 0]
    made = part_tables(part.codes, part.order, part.items, ranges, len(width), totals, target)
    return Tables(width, (made,))


def settle(part: PartOfRows, cells: Int32, leaf: Int32) -> tuple[PartOfRows, int]:
    """Tell each row its leaf, by the cells that leaves are."""
    ranges = part.ranges[cells].reshape(-1, 2)
    leaf = np.repeat(leaf, 2)
    leaves = np.empty(len(part.y), dtype=np.int32)
    by_begin = np.lexsort((ranges[:, 1], ranges[:, 0]))
    sizes = (ranges[:, 1] - ranges[:, 0])[by_begin]
    leaves[part.order] = np.repeat(leaf[by_begin], sizes)
    return replace(part, leaf=leaves), 0


def with_leaves_of_fold(part: PartOfRows, fold: int) -> tuple[PartOfRows, int]:
    """A part that remembers where the rows that judge a fold are in its tree, which is the last one."""
    judges = part.fold == fold
    before = part.leaf_in_fold if len(part.leaf_in_fold) else np.zeros(len(part.y), dtype=np.int32)
    return replace(part, leaf_in_fold=np.where(judges, part.leaf, before)), 0
