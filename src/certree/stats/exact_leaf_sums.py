"""Exact sums over the rows in each leaf, which depend neither on the order of rows nor on their blocks.

Each number is added as two integers, in units of the largest number of its leaf. So the partial
results of blocks add up to the result of all rows, bit for bit, with more digits than float64 has.

Functions that take `RoutedRows` compute the partial result of one block. The others take a function
`reduce`: ``reduce(f, *arguments)`` calls ``f(rows, *arguments)`` on all blocks and adds the
results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import add_moments, convert_exact_sums, find_group_ranges, sum_groups_exactly
from certree.interface.arrays import Float64, Int32, Int64
from certree.stats.nodes import sum_squared_weights
from certree.stats.targets import TargetStats, expect_squares, noise_variance
from certree.tree import Tree

# Largest group number for which positions are looked up in a table.
_MAX_TABLE = 2**26

# reduce(f, *arguments) returns the sum of f(rows, *arguments) over the blocks of all rows.
Reduce = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class RoutedRows:
    """A block of n rows with the leaves that they reach.

    `measure_exactly` and `count_exactly` sum over the rows of such blocks.

    Parameters
    ----------
    leaf : ndarray of int32, shape (n,)
        Leaf of each row, as a node number.
    y : ndarray of shape (n,)
        Class (int32) or numeric target (float64) of each row.
    weight : ndarray of float64, shape (n,), or None
        Positive weights; None: 1.
    cache : list
        An empty list. `find_positions` keeps in it the pair of its last argument `groups` and its
        result, (n,).
    """

    leaf: Int32
    y: NDArray[Any]
    weight: Float64 | None
    # The groups of the last call and the position of each row among them, as calls repeat them.
    cache: list[tuple[Any, Int32]] = field(default_factory=list)

    def find_positions(self, groups: LeafGroups, n_classes: int) -> Int32:
        """Find for each row the position of its group among the groups of all blocks, (n,) int32.

        Row i is in the group ``groups.number[result[i]]``. groups: the groups of the rows of all
        blocks; n_classes: 0 if groups are leaves, else the number of classes, and groups are pairs
        of leaf and class. The result is kept for the next call with the same `groups`.
        """
        if not self.cache or self.cache[0][0] is not groups:
            self.cache[:] = [(groups, groups.find_positions(self.number_groups(n_classes)))]
        return self.cache[0][1]

    def number_groups(self, n_classes: int) -> NDArray[np.int64]:
        """Return the group number of each row, (n,).

        n_classes: 0 to group rows by leaf, whose number is then the group number; otherwise the
        number of classes, and rows are grouped by leaf and class with the number ``leaf * n_classes
        + y``. Leaf and class are the fields `leaf` and `y`.
        """
        leaf = self.leaf.astype(np.int64)
        return leaf if n_classes == 0 else leaf * n_classes + self.y.astype(np.int64)

    def multiply_by_weight(self, values: Float64) -> Float64:
        """Return `values`, (n,), times the weights of the rows.

        values: one number for each row. Without weights they are returned as they are.
        """
        return values if self.weight is None else self.weight * values


@dataclass(frozen=True, slots=True, eq=False)
class LeafGroups:
    """The k groups of rows that share a leaf, or a leaf and a class, with their sizes and ranges of y.

    Here y is the class or the numeric target of a row. `find_groups` makes the object of one block;
    adding two objects merges the groups of two blocks.

    Parameters
    ----------
    number : ndarray of int64, shape (k,)
        Number of each group, ascending: the leaf, or ``leaf * n_classes + class``.
    n_rows : ndarray of int64, shape (k,)
        Number of rows in each group.
    ends : ndarray of float64, shape (k, 2)
        Smallest and largest y in each group.
    has_weights : bool
        Whether rows have weights.
    """

    number: Int64
    n_rows: Int64
    ends: Float64
    has_weights: bool

    def __add__(self, other: Self) -> Self:
        """Return the groups of the rows of two blocks, with added numbers of rows and joined ranges.

        other: the groups of the other block. Ranges are the smallest and the largest y.
        """
        number = np.union1d(self.number, other.number)
        n_rows = np.zeros(len(number), dtype=np.int64)
        ends = np.tile([np.inf, -np.inf], (len(number), 1))
        for groups in (self, other):
            position = np.searchsorted(number, groups.number)
            n_rows[position] += groups.n_rows
            ends[position, 0] = np.minimum(ends[position, 0], groups.ends[:, 0])
            ends[position, 1] = np.maximum(ends[position, 1], groups.ends[:, 1])
        has_weights = self.has_weights or other.has_weights
        return replace(self, number=number, n_rows=n_rows, ends=ends, has_weights=has_weights)

    def find_positions(self, numbers: NDArray[np.int64]) -> Int32:
        """Return the position of each group number among the groups, (n,) int32.

        numbers: group numbers of n rows (the leaf, or ``leaf * n_classes + class``), (n,), all of
        which must occur in the field `number`, in which the positions are.
        """
        if not len(numbers) or self.number[-1] >= _MAX_TABLE:
            return np.searchsorted(self.number, numbers).astype(np.int32)
        table = np.zeros(int(self.number[-1]) + 1, dtype=np.int32)
        table[self.number] = np.arange(len(self.number), dtype=np.int32)
        return table[numbers]


@dataclass(frozen=True, slots=True, eq=False)
class GroupMaxima:
    """The largest magnitude, in each group of rows, of a number that each row has, such as its weight.

    Adding the objects of two blocks takes the larger magnitude for each group.

    Parameters
    ----------
    magnitude : ndarray of float64, shape (k,)
        Largest magnitude in each group of a `LeafGroups`; 0 if the block has no row of the group.
    """

    magnitude: Float64

    def __add__(self, other: Self) -> Self:
        """Return the larger magnitude of two blocks for each group, as a `GroupMaxima`.

        other: the maxima of the other block, for the same k groups.
        """
        return replace(self, magnitude=np.maximum(self.magnitude, other.magnitude))


# -- partial results of a block of rows ------------------------------------------------------------


def find_groups(rows: RoutedRows, n_classes: int) -> LeafGroups:
    """Group the rows of one block by leaf, or by leaf and class; return the groups as `LeafGroups`.

    The result holds, for each group, its number, its number of rows, and its smallest and largest
    y. The block stores the positions of its rows for `RoutedRows.find_positions`. rows: the block.
    n_classes: 0 to group by leaf, otherwise the number of classes to group by leaf and class.
    """
    numbers = rows.number_groups(n_classes)
    is_small = len(numbers) > 0 and numbers.max() < _MAX_TABLE
    number = np.flatnonzero(np.bincount(numbers)) if is_small else np.unique(numbers)
    has_weights = rows.weight is not None
    groups = LeafGroups(number.astype(np.int64), number, np.zeros((0, 2)), has_weights)
    position, y = groups.find_positions(numbers), rows.y.astype(np.float64)
    n_rows = np.bincount(position, minlength=len(number)).astype(np.int64)
    groups = replace(groups, n_rows=n_rows, ends=find_group_ranges(position, y, len(number)))
    rows.cache[:] = [(groups, position)]
    return groups


def find_largest(
    rows: RoutedRows, groups: LeafGroups, n_classes: int, values: Any, *arguments: Any
) -> GroupMaxima:
    """Find the largest magnitude of the numbers ``values(...)`` in each group of rows of a block.

    Parameters
    ----------
    rows : RoutedRows
        The block.
    groups : LeafGroups
        The k groups of the rows of all blocks.
    n_classes : int
        0 if groups are leaves, else the number of classes, and groups are pairs of leaf and class.
    values : callable
        ``values(rows, position, *arguments)`` returns one number for each row, (n,), where
        ``position[i]`` is the position of row i's group in `groups`.
    *arguments
        Further arguments of `values`.

    Returns
    -------
    GroupMaxima
        The largest magnitude in each of the k groups, 0 for groups without rows in the block.
    """
    position = rows.find_positions(groups, n_classes)
    ends = find_group_ranges(position, values(rows, position, *arguments), len(groups.number))
    return GroupMaxima(np.where(ends[:, 0] <= ends[:, 1], np.abs(ends).max(axis=1), 0.0))


def sum_values(
    rows: RoutedRows,
    groups: LeafGroups,
    n_classes: int,
    n: int,
    largest: Float64,
    values: Any,
    *arguments: Any,
) -> Int64:
    """Sum the numbers ``values(...)`` over the rows of each group in one block, exactly.

    Parameters
    ----------
    rows : RoutedRows
        The block.
    groups : LeafGroups
        The k groups of the rows of all blocks.
    n_classes : int
        0 if groups are leaves, else the number of classes, and groups are pairs of leaf and class.
    n : int
        Number of rows in all blocks.
    largest : ndarray of float64, shape (k,)
        Largest magnitude of the number in each group, over all blocks.
    values : callable
        ``values(rows, position, *arguments)`` returns one number for each row, where
        ``position[i]`` is the position of row i's group in `groups`.
    *arguments
        Further arguments of `values`.

    Returns
    -------
    ndarray of int64
        Fixed-point sums of the k groups, in a layout of the C++ core and units that depend on
        `largest` and n. The arrays of all blocks can be added; `convert_exact_sums` of
        `certree._core` turns the total into float64, (k,).
    """
    position = rows.find_positions(groups, n_classes)
    return sum_groups_exactly(position, values(rows, position, *arguments), largest, n)


def get_weights(rows: RoutedRows, position: Int32) -> Float64:
    """Return the weights of the rows of a block, (n,); 1 without weights.

    position: position of each row's group, (n,); only its length is used. The signature is that of
    `values` in `sum_values`.
    """
    return np.ones(len(position)) if rows.weight is None else np.asarray(rows.weight)


def square_weights(rows: RoutedRows, position: Int32) -> Float64:
    """Return the squared weights of the rows of a block, (n,); 1 without weights.

    position: position of each row's group, (n,); only its length is used. The signature is that of
    `values` in `sum_values`.
    """
    with np.errstate(over="ignore", under="ignore"):
        return np.square(get_weights(rows, position))


def weight_targets(rows: RoutedRows, position: Int32, varies: NDArray[np.bool_]) -> Float64:
    """Return y times weight of the rows of a block, (n,); 0 in groups whose targets are all equal.

    position: position of each row's group among the k groups, (n,); varies: whether the targets of
    each group differ, (k,). A group of equal targets needs no sum, as its mean is the common
    target.
    """
    with np.errstate(over="ignore"):
        return rows.multiply_by_weight(np.where(varies[position], rows.y, 0.0))


def weight_squared_deviations(rows: RoutedRows, position: Int32, mean: Float64) -> Float64:
    """Return weight times squared distance from the group's mean for the rows of a block, (n,).

    position: position of each row's group among the k groups, (n,); mean: mean target of each
    group, (k,).
    """
    with np.errstate(over="ignore", under="ignore"):
        distance = rows.y - mean[position]
        return rows.multiply_by_weight(distance) * distance


# -- reductions over all blocks --------------------------------------------------------------------


def _sum_groups(
    reduce: Reduce, groups: LeafGroups, n_classes: int, n: int, values: Any, *arguments: Any
) -> Float64:
    """Sum the numbers ``values(...)`` over the rows of each group in all blocks, exactly.

    Parameters
    ----------
    reduce : callable
        ``reduce(f, *arguments)`` returns the sum of ``f(rows, *arguments)`` over the blocks of all
        rows, where rows is the `RoutedRows` of a block. `reduce_in_memory` makes such a function.
    groups : LeafGroups
        The k groups of the rows of all blocks.
    n_classes : int
        0 if groups are leaves, else the number of classes, and groups are pairs of leaf and class.
    n : int
        Number of rows in all blocks.
    values : callable
        ``values(rows, position, *arguments)`` returns one number for each row, where
        ``position[i]`` is the position of row i's group in `groups`.
    *arguments
        Further arguments of `values`.

    Returns
    -------
    ndarray of float64, shape (k,)
        The sums. If a number is infinite, but all rows have equal targets, infinity for all groups.

    Raises
    ------
    ValueError
        If a number is infinite, and targets differ: then squares of the target overflow float64.
    """
    largest: Float64 = reduce(find_largest, groups, n_classes, values, *arguments).magnitude
    if not np.isfinite(largest).all():
        expect_squares(*_find_range(groups), np.inf)
        return np.full(len(largest), np.inf)
    sums: Any = reduce(sum_values, groups, n_classes, n, largest, values, *arguments)
    return convert_exact_sums(sums, largest, n)


def _find_range(groups: LeafGroups) -> tuple[float, float]:
    """Return the smallest and the largest y over the rows of all `groups`, from their ranges.

    y: class or numeric target of a row; groups: groups of rows, each with its range of y.
    """
    return float(groups.ends[:, 0].min()), float(groups.ends[:, 1].max())


def _sum_weights(reduce: Reduce, groups: LeafGroups, n_classes: int, n: int) -> Float64:
    """Sum the weights of the rows of each group in all blocks, (k,); their numbers without weights.

    reduce: ``reduce(f, *arguments)`` adds the results of a function over all blocks; groups: the k
    groups of the rows of all blocks; n_classes: 0 if groups are leaves, else the number of classes,
    and groups are pairs of leaf and class; n: number of rows in all blocks.
    """
    if not groups.has_weights:
        return groups.n_rows.astype(np.float64)
    return _sum_groups(reduce, groups, n_classes, n, get_weights)


def _sum_squared_weights(
    reduce: Reduce, groups: LeafGroups, n_classes: int, n: int
) -> Float64 | None:
    """Sum the squared weights of the rows of each group in all blocks, (k,); None without weights.

    A sum is infinite if a square overflows. reduce: ``reduce(f, *arguments)`` adds the results of a
    function over all blocks; groups: the k groups; n_classes: 0 if groups are leaves, else the
    number of classes, and groups are pairs of leaf and class; n: number of rows in all blocks.
    """
    if not groups.has_weights:
        return None
    largest: Float64 = reduce(find_largest, groups, n_classes, square_weights).magnitude
    finite = np.where(np.isfinite(largest), largest, 0.0)
    sums: Any = reduce(sum_values, groups, n_classes, n, finite, square_weights)
    return np.where(np.isfinite(largest), convert_exact_sums(sums, finite, n), np.inf)


def measure_exactly(tree: Tree, reduce: Reduce, weight_unit: float) -> TargetStats:
    """Compute mean and squared distances of a numeric target in every node by exact sums.

    Parameters
    ----------
    tree : Tree
        The tree.
    reduce : callable
        ``reduce(f, *arguments)`` returns the sum of ``f(rows, *arguments)`` over the blocks of all
        rows, where rows is the `RoutedRows` of a block. `reduce_in_memory` makes such a function.
    weight_unit : float
        Mean weight of a row of the fit. Sums of weights divided by it count as numbers of rows.

    Returns
    -------
    TargetStats
        For the rows in each node: their weight, their mean target, and the sum of squared distances
        from this mean. The unit of loss is the variance of y within nodes of at most 16 rows, by
        `noise_variance`.
    """
    groups: LeafGroups = reduce(find_groups, 0)
    n, leaf = int(groups.n_rows.sum()), groups.number.astype(np.int32)
    varies = groups.ends[:, 0] < groups.ends[:, 1]
    total = _sum_weights(reduce, groups, 0, n)
    mean, squares = groups.ends[:, 0] + 0.0, np.zeros(len(leaf))
    if varies.any():
        sums = _sum_groups(reduce, groups, 0, n, weight_targets, varies)
        # Adding 0 turns -0 into 0; a sum of integers has no signed zero either.
        mean = np.where(varies, sums / total, mean) + 0.0
        squares = _sum_groups(reduce, groups, 0, n, weight_squared_deviations, mean)
    rows, means, sse = add_moments(tree.left, leaf, total, mean, squares)
    with np.errstate(over="ignore"):
        expect_squares(*_find_range(groups), sse[0] / rows[0])
    leaf_squared = _sum_squared_weights(reduce, groups, 0, n)
    squared = None if leaf_squared is None else sum_squared_weights(tree, leaf, total, leaf_squared)
    unit = noise_variance(tree, rows, sse, weight_unit)
    return TargetStats(rows, means, sse, unit, weight_unit, squared)


def count_exactly(reduce: Reduce, n_classes: int) -> tuple[Int32, Int32, Float64, Float64 | None]:
    """Sum the weights, and the squared weights, of the rows of each class in each leaf, exactly.

    Parameters
    ----------
    reduce : callable
        ``reduce(f, *arguments)`` returns the sum of ``f(rows, *arguments)`` over the blocks of all
        rows, where rows is the `RoutedRows` of a block. `reduce_in_memory` makes such a function.
    n_classes : int
        Number of classes.

    Returns
    -------
    leaf, y : ndarray of int32, shape (k,)
        Node number of the leaf, and class, of each of the k pairs that occur, ascending by leaf and
        then by class.
    weight : ndarray of float64, shape (k,)
        Sum of the weights of the rows of each pair.
    squared_weight : ndarray of float64, shape (k,), or None
        Sum of their squared weights; None if rows have no weights.
    """
    groups: LeafGroups = reduce(find_groups, n_classes)
    n = int(groups.n_rows.sum())
    leaf, y = np.divmod(groups.number, n_classes)
    weight = _sum_weights(reduce, groups, n_classes, n)
    squared_weight = _sum_squared_weights(reduce, groups, n_classes, n)
    return leaf.astype(np.int32), y.astype(np.int32), weight, squared_weight


def reduce_in_memory(leaf: Int32, y: NDArray[Any], weight: Float64 | None) -> Reduce:
    """Return a function ``reduce(f, *arguments)`` for rows in memory, which are one block.

    leaf: node number of the leaf of each row, (n,); y: class or numeric target of each row, (n,);
    weight: positive row weights, (n,), or None. The function returns ``f(rows, *arguments)`` with
    the `RoutedRows` of these arrays.
    """
    rows = RoutedRows(leaf, y, weight)
    return lambda f, *arguments: f(rows, *arguments)
