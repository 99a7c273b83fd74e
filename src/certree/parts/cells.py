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
from certree.parts.part import PartOfRows, expect_same_rows

# Sums of cells in lanes, as the core takes them: where those of each cell start, lanes, and sums.
Lanes = tuple[Int64, Int32, Int64]


@dataclass(frozen=True, slots=True)
class WholeUnits:
    """What rows are added up in.

    Parameters
    ----------
    n_classes : int
        Number of classes; 0: targets are numbers.
    weight : int or None
        Weights are rounded to multiples of two to the power of this; None: they are whole.
    start : float
        What is taken from numbers.
    unit : int
        Then they are rounded to multiples of two to the power of this.
    """

    n_classes: int
    weight: int | None = None
    start: float = 0.0
    unit: int = 0

    def weights(self, weight: Float64 | None, n: int) -> Int64:
        """Weights of n rows as whole numbers."""
        if weight is None:
            return np.ones(n, dtype=np.int64)
        if self.weight is None:
            return weight.astype(np.int64)
        return np.maximum(np.rint(np.ldexp(weight, -self.weight)), 1.0).astype(np.int64)

    def numbers(self, y: Float64) -> Int64:
        """Targets as whole numbers."""
        if self.n_classes > 0:
            return y.astype(np.int64)
        return np.rint(np.ldexp(y - self.start, -self.unit)).astype(np.int64)


def begin_cells(
    part: PartOfRows, digests: Mapping[int, int], units: WholeUnits
) -> tuple[PartOfRows, Int64]:
    """A part all of whose rows lie in the root; gives their weight by class, or weight and sum."""
    expect_same_rows(part, digests)
    n = len(part.y)
    weight, numbers = units.weights(part.weight, n), units.numbers(part.y)
    if units.n_classes > 2:
        total = np.zeros(units.n_classes, dtype=np.int64)
        np.add.at(total, numbers, weight)
    else:
        total = np.array([weight.sum(), (weight * numbers).sum()], dtype=np.int64)
    part = replace(
        part,
        order=np.arange(n, dtype=np.int32),
        items=np.column_stack([weight, numbers]),
        ranges=np.array([[0, n]], dtype=np.int64),
    )
    return part, total


def divide(
    part: PartOfRows, cell: Int32, feature: Int32, goes_left: UInt8
) -> tuple[PartOfRows, int]:
    """Send the rows of cells on, by their numbers; cells below come behind all others, two by two."""
    order, below = part_divide(part.codes, part.order, part.ranges, cell, feature, goes_left)
    return replace(part, order=order, ranges=np.concatenate([part.ranges, below])), 0


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

    def whole(self) -> tuple[Any, ...]:
        """One table of all."""
        first, *others = self.tables
        for one in others:
            first = add_tables(first, one, self.width)
        return first


def tables_of(
    part: PartOfRows, cells: Int32, totals: Lanes, target: tuple[Any, ...], width: Int32
) -> Tables:
    """What the rows of some cells add up to."""
    made = part_tables(part.codes, part.order, part.items, part.ranges[cells], totals, target)
    return Tables(width, (made,))


def settle(part: PartOfRows, cells: Int32, leaf: Int32) -> tuple[PartOfRows, int]:
    """Tell each row its leaf, by the cells that leaves are."""
    ranges = part.ranges[cells]
    leaves = np.empty(len(part.y), dtype=np.int32)
    by_begin = np.lexsort((ranges[:, 1], ranges[:, 0]))
    sizes = (ranges[:, 1] - ranges[:, 0])[by_begin]
    leaves[part.order] = np.repeat(leaf[by_begin], sizes)
    return replace(part, leaf=leaves), 0
