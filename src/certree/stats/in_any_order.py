"""What leaves hold, by sums that no order of the rows changes, wherever these lie.

A number is added up as two whole ones, in units of the largest number of its leaf. So sums of parts of
the rows add up to those of all, bit by bit, with as many digits as a float64 has, and more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import ends_of_cells, gather_moments, numbers_of_sums, sums_of_cells
from certree.interface.arrays import Float64, Int32, Int64
from certree.stats.nodes import squared_weights
from certree.stats.targets import TargetStats, expect_squares, noise_variance
from certree.tree import Tree

# Cells are found by a table of their numbers, if that has no more entries.
_TABLE = 2**26

# ask(f, *given): the sum of f(rows, *given) over all rows.
Ask = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class RowsInLeaves:
    """Some rows whose leaves are known.

    Parameters
    ----------
    leaf : ndarray of int32, shape (n,)
        The leaf that each reaches.
    y : ndarray of shape (n,)
        Classes or numbers.
    weight : ndarray of float64, shape (n,), or None
        Positive weights; None: each counts once.
    """

    leaf: Int32
    y: NDArray[Any]
    weight: Float64 | None
    # Where they stand among cells that have been asked for: rows in memory are asked again and again.
    known: list[tuple[Any, Int32]] = field(default_factory=list)

    def places(self, cells: LeafCells, n_classes: int) -> Int32:
        """Where the cells of rows stand among those of all."""
        if not self.known or self.known[0][0] is not cells:
            self.known[:] = [(cells, cells.places(self.cells(n_classes)))]
        return self.known[0][1]

    def cells(self, n_classes: int) -> NDArray[np.int64]:
        """The leaf of each row, or leaf and class, as one number."""
        leaf = self.leaf.astype(np.int64)
        return leaf if n_classes == 0 else leaf * n_classes + self.y.astype(np.int64)

    def weighed(self, values: Float64) -> Float64:
        """Values times weights."""
        return values if self.weight is None else self.weight * values


@dataclass(frozen=True, slots=True, eq=False)
class LeafCells:
    """Cells of some rows: leaves, or leaves and classes; those of more add up.

    Parameters
    ----------
    number : ndarray of int64, shape (k,)
        Which they are, ascending.
    n_rows : ndarray of int64, shape (k,)
        Number of their rows.
    ends : ndarray of float64, shape (k, 2)
        The smallest and the largest target.
    are_weighed : bool
        Whether rows have weights.
    """

    number: Int64
    n_rows: Int64
    ends: Float64
    are_weighed: bool

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        number = np.union1d(self.number, other.number)
        n_rows = np.zeros(len(number), dtype=np.int64)
        ends = np.tile([np.inf, -np.inf], (len(number), 1))
        for one in (self, other):
            at = np.searchsorted(number, one.number)
            n_rows[at] += one.n_rows
            ends[at, 0] = np.minimum(ends[at, 0], one.ends[:, 0])
            ends[at, 1] = np.maximum(ends[at, 1], one.ends[:, 1])
        are_weighed = self.are_weighed or other.are_weighed
        return replace(self, number=number, n_rows=n_rows, ends=ends, are_weighed=are_weighed)

    def places(self, cells: NDArray[np.int64]) -> Int32:
        """Where cells stand among these."""
        if not len(cells) or self.number[-1] >= _TABLE:
            return np.searchsorted(self.number, cells).astype(np.int32)
        table = np.zeros(int(self.number[-1]) + 1, dtype=np.int32)
        table[self.number] = np.arange(len(self.number), dtype=np.int32)
        return table[cells]


@dataclass(frozen=True, slots=True, eq=False)
class LargestInCells:
    """The largest magnitude of a number in each cell, (k,); of more rows the larger one."""

    of_cell: Float64

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        return replace(self, of_cell=np.maximum(self.of_cell, other.of_cell))


# -- what is asked of rows


def cells_of(rows: RowsInLeaves, n_classes: int) -> LeafCells:
    """The cells that rows lie in; of each class apart, if there are classes."""
    own = rows.cells(n_classes)
    is_table = len(own) > 0 and own.max() < _TABLE
    number = np.flatnonzero(np.bincount(own)) if is_table else np.unique(own)
    found = LeafCells(number.astype(np.int64), number, np.zeros((0, 2)), rows.weight is not None)
    at, y = found.places(own), rows.y.astype(np.float64)
    n_rows = np.bincount(at, minlength=len(number)).astype(np.int64)
    found = replace(found, n_rows=n_rows, ends=ends_of_cells(at, y, len(number)))
    rows.known[:] = [(found, at)]
    return found


def largest_in(
    rows: RowsInLeaves, cells: LeafCells, n_classes: int, values: Any, *given: Any
) -> LargestInCells:
    """The largest magnitudes of numbers in cells."""
    at = rows.places(cells, n_classes)
    ends = ends_of_cells(at, values(rows, at, *given), len(cells.number))
    return LargestInCells(np.where(ends[:, 0] <= ends[:, 1], np.abs(ends).max(axis=1), 0.0))


def sums_in(
    rows: RowsInLeaves,
    cells: LeafCells,
    n_classes: int,
    n: int,
    largest: Float64,
    values: Any,
    *given: Any,
) -> Int64:
    """Their sums, as whole numbers."""
    at = rows.places(cells, n_classes)
    return sums_of_cells(at, values(rows, at, *given), largest, n)


def weights(rows: RowsInLeaves, at: Int32) -> Float64:
    """Weights of rows."""
    return np.ones(len(at)) if rows.weight is None else np.asarray(rows.weight)


def weight_squares(rows: RowsInLeaves, at: Int32) -> Float64:
    """Compute the squared weights of rows."""
    with np.errstate(over="ignore", under="ignore"):
        return np.square(weights(rows, at))


def weighed_targets(rows: RowsInLeaves, at: Int32, varies: NDArray[np.bool_]) -> Float64:
    """Targets times weights; 0 where all of a cell are equal."""
    with np.errstate(over="ignore"):
        return rows.weighed(np.where(varies[at], rows.y, 0.0))


def weighed_squares(rows: RowsInLeaves, at: Int32, mean: Float64) -> Float64:
    """Squared distances from the mean of a cell, times weights."""
    with np.errstate(over="ignore", under="ignore"):
        distance = rows.y - mean[at]
        return rows.weighed(distance) * distance


# -- what is made of the answers


def _totals(
    ask: Ask, cells: LeafCells, n_classes: int, n: int, values: Any, *given: Any
) -> Float64:
    """Sums of numbers in cells, of n rows in all."""
    largest: Float64 = ask(largest_in, cells, n_classes, values, *given).of_cell
    if not np.isfinite(largest).all():
        expect_squares(*_ends(cells), np.inf)
        return np.full(len(largest), np.inf)
    sums: Any = ask(sums_in, cells, n_classes, n, largest, values, *given)
    return numbers_of_sums(sums, largest, n)


def _ends(cells: LeafCells) -> tuple[float, float]:
    return float(cells.ends[:, 0].min()), float(cells.ends[:, 1].max())


def _weight(ask: Ask, cells: LeafCells, n_classes: int, n: int) -> Float64:
    if not cells.are_weighed:
        return cells.n_rows.astype(np.float64)
    return _totals(ask, cells, n_classes, n, weights)


def _squared_weight(ask: Ask, cells: LeafCells, n_classes: int, n: int) -> Float64 | None:
    """Sum the squared weights of the rows in each cell; None: each weighs 1."""
    if not cells.are_weighed:
        return None
    largest: Float64 = ask(largest_in, cells, n_classes, weight_squares).of_cell
    finite = np.where(np.isfinite(largest), largest, 0.0)
    sums: Any = ask(sums_in, cells, n_classes, n, finite, weight_squares)
    return np.where(np.isfinite(largest), numbers_of_sums(sums, finite, n), np.inf)


def measured_in_any_order(tree: Tree, ask: Ask, weight_unit: float) -> TargetStats:
    """Compute the moments of a numeric target in every node, of rows in their leaves.

    weight_unit: mean weight of a row of the fit; see `NodeStats`.
    """
    cells: LeafCells = ask(cells_of, 0)
    n, leaf = int(cells.n_rows.sum()), cells.number.astype(np.int32)
    varies = cells.ends[:, 0] < cells.ends[:, 1]
    total = _weight(ask, cells, 0, n)
    mean, squares = cells.ends[:, 0] + 0.0, np.zeros(len(leaf))
    if varies.any():
        sums = _totals(ask, cells, 0, n, weighed_targets, varies)
        # A sum of whole numbers has no sign of zero either.
        mean = np.where(varies, sums / total, mean) + 0.0
        squares = _totals(ask, cells, 0, n, weighed_squares, mean)
    rows, means, sse = gather_moments(tree.left, leaf, total, mean, squares)
    with np.errstate(over="ignore"):
        expect_squares(*_ends(cells), sse[0] / rows[0])
    of_leaves = _squared_weight(ask, cells, 0, n)
    squared = None if of_leaves is None else squared_weights(tree, leaf, total, of_leaves)
    unit = noise_variance(tree, rows, sse, weight_unit)
    return TargetStats(rows, means, sse, unit, weight_unit, squared)


def counted_in_any_order(ask: Ask, n_classes: int) -> tuple[Int32, Int32, Float64, Float64 | None]:
    """Sum the weights, and the squared weights, of the rows of each class in each leaf.

    Returns
    -------
    leaf, y : ndarray of int32, shape (k,)
        Leaves and classes.
    weight : ndarray of float64, shape (k,)
        Sum of the weights of their rows.
    squared_weight : ndarray of float64, shape (k,), or None
        Sum of the squared weights; None: each row weighs 1.
    """
    cells: LeafCells = ask(cells_of, n_classes)
    n = int(cells.n_rows.sum())
    leaf, y = np.divmod(cells.number, n_classes)
    sums = _weight(ask, cells, n_classes, n), _squared_weight(ask, cells, n_classes, n)
    return leaf.astype(np.int32), y.astype(np.int32), *sums


def asking(leaf: Int32, y: NDArray[Any], weight: Float64 | None) -> Ask:
    """Ask rows in memory."""
    rows = RowsInLeaves(leaf, y, weight)
    return lambda f, *given: f(rows, *given)
