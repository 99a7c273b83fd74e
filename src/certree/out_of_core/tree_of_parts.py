"""Growth of one tree on rows that lie in parts, by sums of what these tell.

A cell is cut by its own sums alone, as in memory. So all cells of a level are cut together, and there
are no more passes over the parts than the tree is deep, and one. Where leaves are limited, cells are
cut ahead: those that may still be among the best, as far as is known.

Of the two cells that a cut makes parts add up the smaller one: the sums of the other are what it leaves
of those above it. These are kept until then, as long as they are no more than half of what is asked of
parts at a time; the cells below others are both added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree._core import cut_cells, fixed_unit, key_of_root, tables_of_some, tree_of_cells
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins
from certree.grow.cart import Cart, expect_monotonic_support
from certree.grow.training_samples import MaxDepth, expect_poisson_targets
from certree.interface.arrays import Float64, Int32, Int64
from certree.out_of_core.cells_of_tree import (
    FoldOfParts,
    GrowingRows,
    WholeUnits,
    begin_cells,
    divide,
    settle,
    tables_of,
)
from certree.out_of_core.executors import Executor
from certree.out_of_core.part import digests
from certree.out_of_core.waiting_cells import (
    CutCells,
    TablesOfCells,
    WaitingCells,
    joined,
    lanes_at,
)
from certree.rows.monotonic import MonotonicSigns
from certree.tree import LEAF, Tree, Trees


@dataclass(frozen=True, slots=True, eq=False)
class BlockGrowthSettings:
    """The settings with which trees grow on blocks of rows.

    Parameters
    ----------
    max_depth, monotonic_signs, categorical, random_state, n_jobs, feature_order
        See `TrainingSamples`.
    has_classes : bool
        Whether the target is a class.
    has_weights : bool
        Whether rows have weights.
    n_targets : int
        Number of targets.
    """

    max_depth: MaxDepth
    monotonic_signs: MonotonicSigns
    categorical: NDArray[np.bool_] | None
    random_state: int
    n_jobs: int | None
    feature_order: Int32
    has_classes: bool
    has_weights: bool
    n_targets: int = 1


@dataclass(slots=True, eq=False)
class _Growing:
    """A tree that grows by the sums of parts.

    Parameters
    ----------
    parts : Executor
        Holds the rows.
    grower : BinnedGrower
        Knows the bins and the limits.
    target : tuple
        What is grown on, as the core takes it.
    of_root : tuple
        What the root decides for all cells: the order of features, and the least gain.
    n_cells : int
        How many cells there are.
    cuts : list of CutCells
        How cells are cut, level by level; cells below are numbered in turn.
    worth : ndarray of float64, shape (any,)
        Of all of these.
    """

    parts: Executor
    grower: BinnedGrower
    target: tuple[Any, ...]
    of_root: tuple[Int32, float]
    n_cells: int = 1
    cuts: list[CutCells] = field(default_factory=list)
    worth: Float64 = field(default_factory=lambda: np.zeros(0))
    _room: int = 0  # for so many bytes of what cells of a level add up to

    def grow(self, root: WaitingCells) -> tuple[Tree, NDArray[np.bool_]]:
        """The tree, and nodes that compare what some row there lacks; rows know then their leaves."""
        waiting, worth = root.at(np.flatnonzero(self._may_be_cut(root))), np.array([np.inf])
        above = TablesOfCells.none()
        while len(waiting.number):
            self._room = self.parts.portions.bytes_of_sums // 2
            parts = [
                self._cut(waiting.at(some), worth[some], above) for some in self._batches(waiting)
            ]
            del above  # nothing is kept twice
            waiting, worth, above = self._sent_on(parts)
            del parts
        return self._settled()

    def _may_be_cut(self, cells: WaitingCells) -> NDArray[np.bool_]:
        """Which cells are no leaves whatever their rows add up to."""
        most, depth, split, rows, *_ = self.grower.options[0]
        may = (cells.depth < depth) & (cells.n_rows >= split) & (cells.n_rows // 2 >= rows)
        return may & ~cells.are_pure(self.target[0]) & (most > 1)

    def _batches(self, cells: WaitingCells) -> Iterator[NDArray[np.intp]]:
        """Some cells after others, whose sums are looked at together: with a cell what is beside it."""
        width = 1 + 8 * (cells.n_lanes + 1).astype(np.int64)
        size = np.minimum(cells.n_rows, 256) * width * self.grower.bins.n_features
        batch = np.cumsum(size) // self.parts.portions.bytes_of_sums
        is_left = (cells.above >= 0) & (cells.number % 2 == 1)
        batch[1:] = np.where(is_left[:-1], batch[:-1], batch[1:])
        ends = np.flatnonzero(np.append(batch[1:] != batch[:-1], True)) + 1
        yield from np.split(np.arange(len(size)), ends[:-1])

    def _cut(self, cells: WaitingCells, worth: Float64, above: TablesOfCells) -> CutCells:
        """Cut cells by what their rows add up to."""
        told = self._told(cells, above)
        waits = np.flatnonzero(cells.waits)
        cells, worth = cells.at(waits), worth[waits]
        waiting = cells.n_rows, cells.depth, cells.key, cells.bounds, cells.totals
        limits, slopes, *_ = self.grower.options
        made: Any = cut_cells(
            self.grower.bins.core_columns,
            limits,
            slopes,
            self.target,
            (*waiting[:3], cells.bounds if slopes is not None else _NO_BOUNDS, cells.totals),
            told.tables,
            *self.of_root,
        )
        is_cut, (*columns, starts, categories), goes_left, below, self.of_root = made
        some = np.flatnonzero(is_cut)
        n_rows, key, bounds, totals = below
        depth = np.repeat(cells.depth[some] + 1, 2).astype(np.int32)
        none = np.zeros(len(key), np.int32)
        children = WaitingCells(
            none, n_rows, depth, key, bounds, none.astype(np.bool_), none - 1, totals
        )
        gain = np.minimum(columns[0], worth[some])
        children, kept = self._kept_of(told, some, gain, children)
        return CutCells(
            cells.number[some],
            gain,
            tuple(columns),
            np.diff(starts),
            categories,
            goes_left,
            children,
            kept,
        )

    def _told(self, cells: WaitingCells, above: TablesOfCells) -> TablesOfCells:
        """What the rows of those cells add up to that wait."""
        adds_up, waits = cells.add_up(), cells.waits
        # The spread of numbers is no sum, so parts tell it of all.
        n_classes, _, counts_rows, *_ = self.target
        beside = np.flatnonzero(waits & ~adds_up) if n_classes == 0 else _NONE
        asked = cells.at(np.append(np.flatnonzero(adds_up), beside))
        own = asked.at(np.arange(np.count_nonzero(adds_up)))
        width = own.n_lanes + np.int32(counts_rows)
        told = self.parts.collect(tables_of, asked.number, asked.totals, self.target, width)
        if np.array_equal(adds_up, waits):
            return TablesOfCells(told.whole(), own.totals)
        # A cell that is not added up is beside one that is.
        place = np.cumsum(adds_up) - 1
        is_left = cells.number % 2 == 1
        other = np.clip(np.arange(len(place)) + np.where(is_left, 1, -1), 0, len(place) - 1)
        about = np.full(len(place), -1)
        about[beside] = len(own.number) + np.arange(len(beside))
        places = np.column_stack(
            [
                np.where(adds_up, place, place[other]),
                np.where(adds_up, -1, cells.above),
                np.where(adds_up, -1, about),
            ]
        )[waits].astype(np.int32)
        lanes = lanes_at(cells.totals, np.flatnonzero(waits))
        whole = told.whole()
        del told
        made: Any = tables_of_some(
            whole, own.totals, above.tables, above.lanes, lanes, places, self.target
        )
        return TablesOfCells(made, lanes)

    def _kept_of(
        self, told: TablesOfCells, cut: NDArray[np.intp], worth: Float64, children: WaitingCells
    ) -> tuple[WaitingCells, TablesOfCells]:
        """Children that know which of them wait, and where what is kept of the cells above them is."""
        waits = self._may_be_cut(children)
        p, counts_rows = self.grower.bins.n_features, int(self.target[2])
        wanted = waits.reshape(-1, 2).any(axis=1) & (worth >= self._least_worth())
        size = np.where(wanted, told.n_bytes(p, counts_rows)[cut], 0)
        room = self._room - np.cumsum(size)
        kept = np.flatnonzero(wanted & (room >= 0))
        self._room -= int(size[kept].sum())
        above = np.full(len(cut), -1, dtype=np.int32)
        above[kept] = np.arange(len(kept), dtype=np.int32)
        children = replace(children, waits=waits, above=np.repeat(above, 2))
        if not len(kept):
            return children, TablesOfCells.none()
        return children, told.some(cut[kept].astype(np.int32), self.target)

    def _sent_on(self, made: list[CutCells]) -> tuple[WaitingCells, Float64, TablesOfCells]:
        """Send rows on where cells may be among the best; gives those below that may be cut."""
        self.worth = np.concatenate([self.worth, *(one.worth for one in made)])
        least = self._least_worth()
        some = [one.at(np.flatnonzero(one.worth >= least)) for one in made]
        some = [one for one in some if len(one.number)]
        if not some:
            return (
                joined([one.children.at(_NONE) for one in made]),
                np.zeros(0),
                TablesOfCells.none(),
            )
        # Parts write down where all their cells are, so they are asked once.
        asked = ([one.number, one.columns[1], one.goes_left] for one in some)
        self.parts.change(divide, *map(np.concatenate, zip(*asked, strict=True)))
        waiting, worths, n_kept = [], [], 0
        for cuts in some:
            number = np.arange(self.n_cells, self.n_cells + 2 * len(cuts.number), dtype=np.int32)
            self.n_cells += len(number)
            children = cuts.children
            above = np.where(children.above < 0, -1, children.above + n_kept).astype(np.int32)
            n_kept += len(cuts.kept.lanes[0]) - 1
            pair_waits = children.waits.reshape(-1, 2).any(axis=1)
            is_there = np.where(above < 0, children.waits, np.repeat(pair_waits, 2))
            below = np.flatnonzero(is_there)
            waiting.append(replace(children, number=number, above=above).at(below))
            worths.append(np.repeat(cuts.worth, 2)[below])
            none = children.at(_NONE)
            self.cuts.append(
                replace(cuts, goes_left=_NO_SIDES, children=none, kept=TablesOfCells.none())
            )
        kept = TablesOfCells.joined([one.kept for one in some])
        return joined(waiting), np.concatenate(worths), kept

    def _least_worth(self) -> float:
        """What a cut must be worth to be among those that are made, as far as is known."""
        n_cuts = self.grower.options[0][0] - 1
        if len(self.worth) <= n_cuts:
            return -np.inf
        return float(np.partition(self.worth, len(self.worth) - n_cuts)[len(self.worth) - n_cuts])

    def _settled(self) -> tuple[Tree, NDArray[np.bool_]]:
        """The tree of all cuts."""
        n, cuts = self.n_cells, self.cuts
        number = np.concatenate([np.zeros(0, np.int32), *(one.number for one in cuts)])
        child = np.full(n, LEAF, dtype=np.int32)
        child[number] = np.arange(1, n, 2, dtype=np.int32)
        columns = []
        for k, kind in enumerate(("float64", "int32", "float64", "uint8", "uint8")):
            column = np.zeros(n, dtype=kind)
            column[number] = np.concatenate([np.zeros(0), *(one.columns[k] for one in cuts)])
            columns.append(column)
        gain, feature, threshold, default_left, has_missing = columns
        starts, categories = _sets_by_cell(n, number, cuts)
        made, cell = tree_of_cells(
            child, feature, gain, threshold, default_left, starts, categories,
            self.grower.order, self.grower.options[0][0],
        )  # fmt: skip
        bins = self.grower.bins
        tree = bins.place_on_dates(Trees.from_ensemble_columns(made, bins.n_features)).tree(0)
        leaves = np.flatnonzero(tree.is_leaf).astype(np.int32)
        self.parts.change(settle, cell[leaves], leaves)
        return tree, has_missing[cell].astype(np.bool_) & ~tree.is_leaf


_NONE = np.zeros(0, dtype=np.intp)
_NO_BOUNDS = np.zeros((0, 2))
_NO_SIDES = np.zeros((0, 256), dtype=np.uint8)


def _sets_by_cell(n: int, number: Int32, cuts: list[CutCells]) -> tuple[Int64, Int32]:
    """Where the sets of all cells start, and these."""
    sizes = np.concatenate([np.zeros(0, np.int64), *(one.n_categories for one in cuts)])
    categories = np.concatenate([np.zeros(0, np.int32), *(one.categories for one in cuts)])
    of_cell = np.zeros(n, dtype=np.int64)
    of_cell[number] = sizes
    begin = np.cumsum(sizes) - sizes
    order = np.argsort(number)
    entries = [categories[begin[d] : begin[d] + sizes[d]] for d in order if sizes[d]]
    starts = np.append(0, np.cumsum(of_cell)).astype(np.int64)
    return starts, np.concatenate([np.zeros(0, np.int32), *entries])


def grow_on_parts(
    cart: Cart,
    parts: Executor,
    bins: Bins,
    settings: BlockGrowthSettings,
    about: GrowingRows,
    fold: FoldOfParts | None = None,
) -> tuple[Tree, NDArray[np.bool_]]:
    """Grow a tree of the rows of an executor; parts know then the leaf of each.

    Parameters
    ----------
    cart : Cart
        Says how the tree is grown; with `max_bins`.
    parts : Executor
        Holds the rows, of which parts are made.
    bins : Bins
        Their bins, without codes.
    settings : BlockGrowthSettings
        Settings of the growth, and the kind of target.
    about : GrowingRows
        What is known of the rows that grow it.
    fold : FoldOfParts or None
        Rows that judge it are sent along, without influence; None: all rows grow the tree.

    Returns
    -------
    tree : Tree
        The tree.
    lacking : ndarray of bool, shape (m,)
        Nodes that compare a value that some row there lacks.
    """
    n_classes = int(about.ends[1]) + 1 if settings.has_classes else 0
    criterion = cart.resolve_histogram_criterion(np.zeros(0, np.int32 if n_classes else np.float64))
    if settings.monotonic_signs is not None:
        expect_monotonic_support(settings, n_classes)
    if criterion == "poisson":
        expect_poisson_targets(np.array(about.ends), are_all=fold is None)
    units, bits = _units(about, n_classes, criterion)
    known = dict(parts.collect(digests))
    total: Int64 = parts.change(begin_cells, known, units, fold)
    grower = cart.make_binned_grower(bins, about.n, settings)
    has_sets = bool(bins.is_categorical.any())
    target = n_classes, criterion, settings.has_weights, has_sets, bits, units.unit
    of_root = settings.feature_order, 0.0
    return _Growing(parts, grower, target, of_root).grow(_root(total, about.n, grower.seed))


def _units(about: GrowingRows, n_classes: int, criterion: str) -> tuple[WholeUnits, int]:
    """What rows are added up in, as in memory; and the bits of the largest number."""
    units = WholeUnits(n_classes, about.of_weights)
    if n_classes > 0:
        return units, 1
    least, most = about.ends
    start = 0.0 if criterion == "poisson" else least
    heaviest = int(units.weights(np.array([about.of_weights.largest]))[0])
    units = replace(units, start=start, unit=fixed_unit(most - start, about.n * heaviest))
    return units, max(1, int(units.numbers(np.array([most]))[0]).bit_length())


def _root(total: Int64, n: int, seed: int) -> WaitingCells:
    """The cell of all rows, by what these add up to."""
    lane = (
        np.flatnonzero(total).astype(np.int32) if len(total) > 2 else np.arange(2, dtype=np.int32)
    )
    lanes = np.array([0, len(lane)], dtype=np.int64), lane, total[lane]
    key = np.array([key_of_root(seed)], dtype=np.uint64)
    no = np.zeros(1, dtype=np.int32)
    bounds = np.array([[-np.inf, np.inf]])
    n_rows, waits = np.array([n], dtype=np.int64), np.ones(1, dtype=np.bool_)
    return WaitingCells(no, n_rows, no, key, bounds, waits, no - 1, lanes)
