"""A part of the rows of a fit: what rounds of boosting ask of it, and what becomes of it.

A part is never changed: what becomes of it is another one, so that whoever has lost the second can make
it of the first again. Only where nobody ever does, the second is written over the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from certree import _core
from certree._core import (
    add_sums,
    part_add_steps,
    part_divide,
    part_items,
    part_largest,
    part_leaves,
    part_sums,
)
from certree.grow.bins import UInt8, transpose_codes
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.parts.exact_sums import whole_sum
from certree.tree import Trees

# Name and parameter of a loss, and the one number that all rows decide and its slopes take.
ScaledLoss = tuple[str, float, float]
# A loss, the first of its outputs, how many it has, and which target is theirs.
ScaledGoal = tuple[ScaledLoss, int, int, int]
# How many trees there are, and the last one if its steps are not taken yet.
Grown = tuple[int, Trees | None]
# Where the rows of a cell begin and end in the order of a part.
Cells = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class PartOfRows:
    """Rows of a fit that lie together, n of them.

    Parameters
    ----------
    number : int
        Which of the parts it is.
    codes : ndarray of uint8, shape (p, n)
        Bins of the values.
    y : ndarray of float64, shape (n,) or (n_targets, n)
        Targets, or codes of classes; of several targets those of each.
    weight : ndarray of float64, shape (n,), or None
        Weights.
    codes_of_rows : ndarray of uint8, shape (n, p), or (0, 0)
        The codes once more, where rows of small cells are to be read by one look at memory.
    keys : ndarray of uint64, shape (n,)
        Numbers by which rows are drawn, and their hashes before there are any.
    digest : int
        What its source says of all its rows.
    known, known_rounded : ndarray of uint64, shape (any,)
        Hashes by which a model is to know the rows again, ascending: one for each row, and the
        distinct ones of numbers that are rounded to float32.
    tables : tuple of two int
        Sums of the hashes of rows with their targets, of rows of the fit and of an evaluation set.
    scores : ndarray of float64, shape (n_outputs, n)
        What the trees so far say.
    n_trees : int
        How many trees these are.
    leaf : ndarray of int32, shape (n,)
        Leaf of each row in the tree before; of no use before there is one.
    order : ndarray of int32, shape (n,)
        Numbers of the rows: those that grow the tree, then the others, those of a cell together.
    items : ndarray of int64, shape (n, 2)
        Rows as they are added up.
    n_growing : int
        How many rows grow the tree.
    cells : mapping
        Where the growing rows of cells, by their keys, are in the order.
    ranges : ndarray of int64, shape (c, 2, 2)
        Where the rows of the cells of a single tree begin and end in the order, by number: those that
        grow it, and those that judge it.
    places : ndarray of int32, shape (q, n)
        Places of levels of q features among all, until it is known what rows see of them.
    fold : ndarray of uint8, shape (n,)
        The fold that each row judges; of no use where there are no folds.
    leaf_in_fold : ndarray of int32, shape (n,)
        Leaf of each row in the tree of the fold that it judges, once that has been grown.
    values : ndarray of float64, shape (n_held, p)
        Rows that are held out. A threshold may lie anywhere between values of bins, so bins would not
        tell all of them apart.
    y_held, weight_held, scores_held : ndarray of float64
        What these have in place of `y`, `weight` and `scores`.
    is_own : bool
        Whether nobody makes the part of another one again: what becomes of it is written over it.
    """

    number: int
    codes: UInt8
    y: Float64
    weight: Float64 | None
    keys: UInt64
    digest: int = 0
    known: UInt64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    known_rounded: UInt64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    tables: tuple[int, int] = (0, 0)
    scores: Float64 = field(default_factory=lambda: np.zeros((1, 0)))
    n_trees: int = 0
    leaf: Int32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    order: Int32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    items: Int64 = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    n_growing: int = 0
    cells: Cells = field(default_factory=dict)
    ranges: Int64 = field(default_factory=lambda: np.zeros((0, 2, 2), dtype=np.int64))
    codes_of_rows: UInt8 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint8))
    places: Int32 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    fold: UInt8 = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    leaf_in_fold: Int32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    values: Float64 = field(default_factory=lambda: np.zeros((0, 1)))
    y_held: Float64 = field(default_factory=lambda: np.zeros(0))
    weight_held: Float64 | None = None
    scores_held: Float64 = field(default_factory=lambda: np.zeros((1, 0)))
    is_own: bool = False

    @property
    def n(self) -> int:
        """How many rows train."""
        return int(self.y.shape[-1])

    @property
    def n_held(self) -> int:
        """How many rows are held out."""
        return int(self.y_held.shape[-1])

    def room(self, name: str, shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
        """Where an array of what becomes of the part is written."""
        before: NDArray[Any] = getattr(self, name)
        fits = before.shape == shape and before.dtype == kind
        return before if self.is_own and fits else np.empty(shape, kind)

    def changed(self, name: str) -> NDArray[Any]:
        """An array of the part that may be changed, and what becomes of the part has it."""
        before: NDArray[Any] = getattr(self, name)
        return before if self.is_own else before.copy()

    def rows(self, goals: Sequence[ScaledGoal]) -> tuple[Any, ...]:
        """The rows as the core takes them."""
        return goals, np.atleast_2d(self.y), self.weight, self.keys, self.scores


@dataclass(frozen=True, slots=True, eq=False)
class Largest:
    """The largest numbers of some rows, how many of them grow, and the least key.

    They are of the tree: gradient, Hessian; of each goal two terms of the dispersion; and slopes by
    output, of growing rows and of others.
    """

    numbers: Float64
    n_growing: int
    least: int

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        numbers = np.maximum(self.numbers, other.numbers)
        least = min(self.least, other.least)
        return replace(
            self, numbers=numbers, n_growing=self.n_growing + other.n_growing, least=least
        )


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """What rows of cells add up to: by feature and bin (c, any), squares (c,), and more of the root.

    These are sums of gradients, of Hessians, numbers of rows, and terms of the dispersion, as whole
    numbers.
    """

    by_bin: Int64
    squares: Int64
    of_root: Int64

    def __add__(self, other: Self) -> Self:
        """Those of both."""
        return replace(
            self,
            by_bin=add_sums(self.by_bin, other.by_bin),
            squares=self.squares + other.squares,
            of_root=self.of_root + other.of_root,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """By what rows are added up.

    Parameters
    ----------
    features : ndarray of int32, shape (k,)
        The features.
    n_bins : ndarray of int32, shape (p,)
        Numbers of bins.
    place : ndarray of uint8, shape (k, 256)
        Of each code of a feature the place of its sums: joined bins have one, and bins without any
        row none of their own.
    n_places : ndarray of int32, shape (k,)
        How many places there are.
    with_squares : bool
        Whether squares are asked for.
    """

    features: Int32
    n_bins: Int32
    place: UInt8
    n_places: Int32
    with_squares: bool

    def for_the_core(self) -> tuple[Any, ...]:
        """As the core takes it."""
        return self.features, self.n_bins, self.place, self.n_places


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Cells that are cut, one after the other.

    Parameters
    ----------
    keys : ndarray of uint64, shape (d, 3)
        Of each cell and of its children.
    feature : ndarray of int32, shape (d,)
        What is compared.
    goes_left : ndarray of uint8, shape (d, 256)
        By code.
    """

    keys: UInt64
    feature: Int32
    goes_left: UInt8


def start(
    part: PartOfRows, digests: Mapping[int, int], scores: Float64
) -> tuple[PartOfRows, Int64]:
    """A part before the first round, whose rows are those that they have been.

    It tells how many of them have each code of each feature, (p, 256).
    """
    expect_same_rows(part, digests)
    every, held = (np.repeat(scores[:, None], n, axis=1) for n in (part.n, part.n_held))
    counts = [np.bincount(one, minlength=256) for one in part.codes]
    n_of_codes = np.array(counts, dtype=np.int64).reshape(-1, 256)
    part = replace(
        part, codes_of_rows=transpose_codes(part.codes), scores=every, scores_held=held, n_trees=0
    )
    return part, n_of_codes


def expect_same_rows(part: PartOfRows, digests: Mapping[int, int]) -> None:
    """Refuse a part that has been made again of other rows."""
    if digests[part.number] != part.digest:
        refuse_other_rows(part)


def refuse_other_rows(part: PartOfRows) -> NoReturn:
    """Raise an error that names the part."""
    raise ValueError(
        f"partition {part.number} has been made anew and has other rows than before: its source must "
        "give the same rows whenever it is read"
    )


def digests(part: PartOfRows) -> list[tuple[int, int]]:
    """What the source of a part says of its rows, by its number."""
    return [(part.number, part.digest)]


def begin_round(
    part: PartOfRows, grown: Grown, ask: Callable[..., Any], *given: Any
) -> tuple[PartOfRows, Any]:
    """Add the steps of the tree before to the scores, and ask(part, *given).

    A round may be begun again, but its steps are taken once.
    """
    n_trees, before = grown
    if before is not None and part.n_trees < n_trees:
        scores = part.room("scores", part.scores.shape, np.float64)
        part_add_steps(part.scores, part.leaf, before.value, scores)
        part = replace(part, scores=scores, n_trees=n_trees)
        if len(part.values):
            held = before.add(np.ascontiguousarray(part.scores_held), part.values, 1)
            part = replace(part, scores_held=held)
    return part, ask(part, *given)


def scale_terms(part: PartOfRows, goal: ScaledGoal, are_held: bool = False) -> Float64:
    """The numbers of a part of which the scale of a goal's loss is the mean, or a quantile."""
    rows = (part.y_held, part.scores_held) if are_held else (part.y, part.scores)
    return _core.scale_terms(*_of_goal(goal, *rows))


def _of_goal(goal: ScaledGoal, y: Float64, scores: Float64) -> tuple[ScaledLoss, Float64, Float64]:
    """The loss of a goal, its target, and its scores, as the core takes them."""
    loss, first, n_outputs, target = goal
    return loss, np.atleast_2d(y)[target], scores[first : first + n_outputs]


def weighed_losses(part: PartOfRows, goals: Sequence[Sequence[ScaledGoal]]) -> list[Float64]:
    """Losses times weights of the rows of a part that train, and of those that are held out.

    goals: of each of these sides; all of the first come first.
    """
    sides = [
        (part.y, part.scores, part.weight),
        (part.y_held, part.scores_held, part.weight_held),
    ]
    told = []
    for of_side, (y, scores, weight) in zip(goals, sides, strict=False):
        for goal in of_side:
            lost = _core.scaled_losses(*_of_goal(goal, y, scores))
            told.append(lost if weight is None else lost * weight)
    return told


def largest_losses(part: PartOfRows, goals: Sequence[Sequence[ScaledGoal]]) -> list[list[float]]:
    """The largest of these, without signs."""
    return [[float(np.abs(one).max(initial=0.0)) for one in weighed_losses(part, goals)]]


def sums_of_losses(
    part: PartOfRows, goals: Sequence[Sequence[ScaledGoal]], units: Sequence[int | None]
) -> Int64:
    """Their sums as whole numbers; see `sums_of`."""
    return sums_of(weighed_losses(part, goals), units)


def sums_of(numbers: Sequence[Float64], units: Sequence[int | None]) -> Int64:
    """Sums as whole numbers; 0 where there is no unit, as some are not finite."""
    told = zip(numbers, units, strict=True)
    sums = [0 if unit is None else whole_sum(one, unit) for one, unit in told]
    return np.array(sums, dtype=np.int64)


def largest(part: PartOfRows, goals: Sequence[ScaledGoal], draws: tuple[Any, ...]) -> Largest:
    """The largest numbers of a part."""
    return Largest(*part_largest(part.rows(goals), draws))


def begin_tree(
    part: PartOfRows,
    goals: Sequence[ScaledGoal],
    draws: tuple[Any, ...],
    of_all: tuple[Any, ...],
    layout: Layout,
) -> tuple[PartOfRows, Sums]:
    """Draw the rows that grow a tree, and add them up."""
    n = part.n
    order, items = part.room("order", (n,), np.int32), part.room("items", (n, 2), np.int64)
    n_growing, total, terms = part_items(part.rows(goals), draws, of_all, order, items)
    part = replace(part, order=order, items=items, n_growing=n_growing, cells={0: (0, n_growing)})
    of_root = np.array([*total, *terms], dtype=np.int64)
    return part, replace(_sums(part, [0], layout), of_root=of_root)


def go_on(
    part: PartOfRows, cuts: Cuts, wanted: list[int], layout: Layout
) -> tuple[PartOfRows, Sums]:
    """Cut cells, and add up those that are wanted, by their keys."""
    part = _cut(part, cuts)
    return part, _sums(part, wanted, layout)


def end_tree(
    part: PartOfRows,
    goals: Sequence[ScaledGoal],
    cuts: Cuts,
    new: Cuts,
    nodes: Mapping[int, int],
    n_nodes: int,
    sides: tuple[Any, ...],
) -> tuple[PartOfRows, Int64]:
    """Find the leaf of each row, and add up what leaves step by.

    nodes: of the leaves, by their keys. new: those of the cuts that have not been made yet.
    """
    part = _cut(part, new)
    n, first = part.n, part.n_growing
    others = _cut(replace(part, cells={0: (first, n)}), cuts)
    both = [one.cells[key] for one in (part, others) for key in nodes]
    cells = np.array(both, dtype=np.int64).reshape(-1, 2)
    node = np.array([*nodes.values()] * 2, dtype=np.int32)
    leaf = part.room("leaf", (n,), np.int32)
    sums = part_leaves(part.rows(goals), others.order, first, cells, node, n_nodes, sides, leaf)
    return replace(part, leaf=leaf), sums


def _cut(part: PartOfRows, cuts: Cuts) -> PartOfRows:
    if not len(cuts.feature):
        return part
    place: dict[int, int] = {}
    given: list[tuple[int, int]] = []
    cells: list[int] = []
    for d, (key, *below) in enumerate(cuts.keys.tolist()):
        if key not in place:
            place[key] = -1 - len(given)
            given.append(part.cells[key])
        cells.append(place[key])
        place.update(zip(below, (2 * d, 2 * d + 1), strict=True))
    # Those that are given stand before those that the cuts make.
    cell = np.array([-1 - c if c < 0 else len(given) + c for c in cells], dtype=np.int32)
    ranges = np.array(given, dtype=np.int64).reshape(-1, 2)
    order = part.changed("order")
    made = part_divide(part.codes, order, ranges, cell, cuts.feature, cuts.goes_left)
    below = dict(zip(cuts.keys[:, 1:].ravel().tolist(), map(tuple, made.tolist()), strict=True))
    return replace(part, order=order, cells={**part.cells, **below})


def _sums(part: PartOfRows, keys: list[int], layout: Layout) -> Sums:
    cells = np.array([part.cells[key] for key in keys], dtype=np.int64).reshape(-1, 2)
    by_bin, squares = part_sums(
        part.codes,
        part.codes_of_rows,
        layout.for_the_core(),
        part.order,
        part.items,
        cells,
        layout.with_squares,
    )
    if not layout.with_squares:
        squares = np.zeros(len(keys), dtype=np.int64)
    return Sums(by_bin, squares, np.zeros(0, dtype=np.int64))
