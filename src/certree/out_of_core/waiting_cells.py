"""Cells of a tree on rows that lie in parts, before and after they are cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import tables_of_some
from certree.grow.bins import UInt8
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.out_of_core.cells_of_tree import Lanes

# All but totals.
_COLUMNS = "number", "n_rows", "depth", "key", "bounds", "waits", "above"


@dataclass(frozen=True, slots=True, eq=False)
class WaitingCells:
    """Cells, c of them, that may be cut.

    Parameters
    ----------
    number : ndarray of int32, shape (c,)
        Which they are.
    n_rows, depth : ndarray of int64 and int32, shape (c,)
        Number of their rows, and of the cuts above.
    key : ndarray of uint64, shape (c,)
        What decides what is drawn.
    bounds : ndarray of float64, shape (c, 2)
        Of what may be said below.
    waits : ndarray of bool, shape (c,)
        Whether they wait themselves, and not the other side of a cut alone.
    above : ndarray of int32, shape (c,)
        Which of the tables that are kept is of the cell above; -1: none. Then both sides are there.
    totals : Lanes
        What their rows add up to.
    """

    number: Int32
    n_rows: Int64
    depth: Int32
    key: UInt64
    bounds: Float64
    waits: NDArray[np.bool_]
    above: Int32
    totals: Lanes

    def at(self, some: NDArray[Any]) -> WaitingCells:
        """Some of them."""
        columns: list[Any] = [getattr(self, name)[some] for name in _COLUMNS]
        columns.append(lanes_at(self.totals, some))
        return WaitingCells(*columns)

    @property
    def n_lanes(self) -> Int32:
        """How many sums each has."""
        return np.diff(self.totals[0]).astype(np.int32)

    def are_pure(self, n_classes: int) -> NDArray[np.bool_]:
        """Which are known to be of one class."""
        begin, _, total = self.totals
        if n_classes > 2:
            return self.n_lanes == 1
        weight, of_second = total[begin[:-1]], total[begin[:-1] + 1]
        return (n_classes > 0) & ((of_second == 0) | (of_second == weight))

    def add_up(self) -> NDArray[np.bool_]:
        """Which are added up: of two sides of a cut the smaller one, if the cell above is known."""
        is_small = np.ones(len(self.number), dtype=np.bool_)
        left = np.flatnonzero((self.above >= 0) & (self.number % 2 == 1))
        is_small[left] = self.n_rows[left] <= self.n_rows[left + 1]
        is_small[left + 1] = ~is_small[left]
        return np.where(self.above < 0, self.waits, is_small)


@dataclass(frozen=True, slots=True, eq=False)
class TablesOfCells:
    """What cells that are cut add up to, from which that of cells below is told.

    Parameters
    ----------
    tables : tuple
        As the core makes them.
    lanes : Lanes
        Of these cells.
    """

    tables: tuple[Int32, UInt8, Int64, Int64]
    lanes: Lanes

    @classmethod
    def none(cls) -> TablesOfCells:
        """Those of no cells."""
        kinds = np.int32, np.uint8, np.int64, np.int64
        no_lanes = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64)
        tables: Any = tuple(np.zeros(0, kind) for kind in kinds)
        return cls(tables, no_lanes)

    @classmethod
    def joined(cls, kept: list[TablesOfCells]) -> TablesOfCells:
        """Some of them one behind the other."""
        tables: Any = tuple(map(np.concatenate, zip(*(one.tables for one in kept), strict=True)))
        return cls(tables, _joined_lanes([one.lanes for one in kept]))

    def some(self, places: Int32, target: tuple[Any, ...]) -> TablesOfCells:
        """Those of some cells."""
        own = np.column_stack([places, np.full((len(places), 2), -1)]).astype(np.int32)
        lanes = lanes_at(self.lanes, places)
        of_some: Any = tables_of_some(
            self.tables, self.lanes, self.tables, self.lanes, lanes, own, target
        )
        return TablesOfCells(of_some, lanes)

    def n_bytes(self, p: int, counts_rows: int) -> Int64:
        """Bytes of each cell, by the number of features and whether rows are counted."""
        width = 1 + 8 * (np.diff(self.lanes[0]) + counts_rows)
        return self.tables[0].reshape(-1, p).sum(axis=1, dtype=np.int64) * width


@dataclass(frozen=True, slots=True, eq=False)
class CutCells:
    """Cells that are cut, d of them, as the core says it.

    Parameters
    ----------
    number : ndarray of int32, shape (d,)
        Which they are.
    worth : ndarray of float64, shape (d,)
        What the cut gains, or one above it, if that is less.
    columns : tuple of ndarray
        Gain, feature, threshold, where missing values and unseen categories go (bits of the
        column default_left of the core), and whether there are missing values.
    n_categories, categories : ndarray of int64, shape (d,), and int32, shape (any,)
        The sets, one behind the other.
    goes_left : ndarray of uint8, shape (d, 256)
        By code.
    children : WaitingCells
        Of each two, without numbers.
    kept : TablesOfCells
        What some of the cells add up to.
    """

    number: Int32
    worth: Float64
    columns: tuple[NDArray[Any], ...]
    n_categories: Int64
    categories: Int32
    goes_left: NDArray[np.uint8]
    children: WaitingCells
    kept: TablesOfCells

    def at(self, some: NDArray[np.intp]) -> CutCells:
        """Some of them; of what is kept of others nothing is lost."""
        starts = np.cumsum(self.n_categories) - self.n_categories
        sets = [self.categories[starts[d] : starts[d] + self.n_categories[d]] for d in some]
        return CutCells(
            self.number[some],
            self.worth[some],
            tuple(one[some] for one in self.columns),
            self.n_categories[some],
            np.concatenate([np.zeros(0, np.int32), *sets]),
            self.goes_left[some],
            self.children.at(np.column_stack([2 * some, 2 * some + 1]).ravel()),
            self.kept,
        )


def lanes_at(lanes: Lanes, some: NDArray[Any]) -> Lanes:
    """Those of some cells."""
    begin, lane, total = lanes
    sizes = np.diff(begin)[some]
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    entries = np.repeat(begin[:-1][some] - starts[:-1], sizes) + np.arange(starts[-1])
    return starts, lane[entries], total[entries]


def _joined_lanes(lanes: list[Lanes]) -> Lanes:
    """Lanes of cells one behind the other."""
    sizes = np.concatenate([np.diff(begin) for begin, _, _ in lanes])
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    _, lane, total = zip(*lanes, strict=True)
    return starts, np.concatenate(lane), np.concatenate(total)


def joined(cells: list[WaitingCells]) -> WaitingCells:
    """Cells one behind the other."""
    columns: list[Any] = [
        np.concatenate([getattr(one, name) for one in cells]) for name in _COLUMNS
    ]
    columns.append(_joined_lanes([one.totals for one in cells]))
    return WaitingCells(*columns)
