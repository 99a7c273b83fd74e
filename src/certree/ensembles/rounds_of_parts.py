"""Boosting round by round on rows that lie in parts, by sums of what these tell.

A tree grows best leaf first, as on rows in one table. As each look at the rows takes a pass over all
parts, cells are looked at ahead: in each pass those that may still be divided, as far as is known, so
that there are no more passes than the tree is deep, and one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certree._core import (
    dispersion_of_sums,
    draw_round,
    grow_gradients_by_sums,
    join_bins,
    round_steps_by_sums,
    sums_by_bin,
)
from certree.ensembles.category_statistics import CategoryStatistics
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.ensembles.rounds import (
    CURVATURE,
    NO_STOPS,
    OTHERS,
    STOPS,
    Settings,
    resolve_feature_counts,
    resolve_threshold_counts,
)
from certree.ensembles.scales_of_parts import bent, goals_of, scaled, total_of, units_of
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins
from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.parts.executors import Executor
from certree.parts.part import (
    Cuts,
    Grown,
    Largest,
    Layout,
    ScaledGoal,
    Sums,
    begin_round,
    begin_tree,
    digests,
    end_tree,
    go_on,
    largest,
    largest_losses,
    start,
    sums_of_losses,
)
from certree.tree import LEAF, Trees

# Bytes of the cuts of a cell, as the core keeps them.
_CUT_BYTES = 400


@dataclass(slots=True)
class _Growth:
    """A tree that grows by the sums of parts.

    Parameters
    ----------
    parts : Executor
        Where the rows lie.
    bins : tuple
        What is kept of the bins of this round, as the core takes it.
    into : ndarray of uint8, shape (p, 256)
        What codes of the parts are in these bins.
    layout : Layout
        By what rows are added up.
    columns : ndarray of int64, or None
        Where their sums are among those of all bins, as the core takes them; None: these are all.
    options : tuple
        Limits, slopes, and groups of features, as the core takes them.
    given : tuple
        What is known of the gradients of all rows, as the core takes it.
    """

    parts: Executor
    bins: tuple[Any, ...]
    into: NDArray[np.uint8]
    layout: Layout
    columns: Int64 | None
    options: tuple[Any, ...]
    given: tuple[Any, ...]
    # Cells that wait, by their keys, and what they add up to.
    waiting: list[int] = field(default_factory=list)
    sums: Int64 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    squares: Int64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    decided: list[UInt64] = field(default_factory=list)
    cuts: list[NDArray[np.uint8]] = field(default_factory=list)
    made: set[int] = field(default_factory=set)  # keys of the cells that parts have cut

    def grow(self, root: Sums) -> tuple[tuple[Any, ...], Float64, Cuts]:
        """The columns of the tree, the growing rows of its nodes, and how cells were cut."""
        self._wait([0], root, [(-1, 0, -1)])
        while True:
            keys = np.array(self.waiting, dtype=np.uint64)
            of_waiting = keys, self.sums, self.squares
            known = _joined(self.decided), _joined(self.cuts, _CUT_BYTES), *of_waiting
            limits, slopes, groups = self.options
            made: Any = grow_gradients_by_sums(
                self.bins, self.layout.features, limits, slopes, groups, self.given, known
            )
            columns, sums, told, ids, feature, goes_left, n_rows, wanted = made
            self.decided.append(keys)
            self.cuts.append(told)
            cuts = Cuts(ids, feature, self._by_code(feature, goes_left))
            if not wanted.any():
                return columns, sums[:, 2], cuts
            self._look_at(cuts, n_rows, wanted.astype(np.bool_))

    def _wait(self, keys: list[int], told: Sums, rows: list[tuple[int, int, int]]) -> None:
        """Let cells wait, by what is told of some of them, and of those that waited before.

        rows: for each that is told of where the one above is among those before, and where itself and
        its sibling are among the keys; -1: nowhere.
        """
        width = 3 * int((self.bins[0][self.layout.features] + 1).sum(dtype=np.int64))
        table = np.array(rows, dtype=np.int32).reshape(-1, 3)
        above = self.sums.reshape(-1, width)
        self.sums = sums_by_bin(told.by_bin, self.columns, above, table, len(keys), width)
        squares = np.zeros(len(keys), dtype=np.int64)
        for (up, small, large), own in zip(rows, told.squares.tolist(), strict=True):
            if small >= 0:
                squares[small] = own
            if large >= 0:
                squares[large] = self.squares[up] - own
        self.waiting, self.squares = keys, squares

    def _by_code(self, feature: Int32, goes_left: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Where codes of the parts go by where those of this round do."""
        return np.take_along_axis(goes_left, self.into[feature].astype(np.intp), axis=1)

    def _look_at(self, cuts: Cuts, n_rows: Int64, wanted: NDArray[np.bool_]) -> None:
        """Let cells wait that are wanted; of two children the smaller one is added up."""
        place = {key: i for i, key in enumerate(self.waiting)}
        asked: list[int] = []
        keys: list[int] = []
        rows: list[tuple[int, int, int]] = []
        for d in np.flatnonzero(wanted.any(axis=1)):
            parent, *children = cuts.keys[d].tolist()
            small = int(n_rows[d, 1] < n_rows[d, 0])
            asked.append(children[small])
            at = [-1, -1]
            for i, side in enumerate((small, 1 - small)):
                if wanted[d, side]:
                    at[i] = len(keys)
                    keys.append(children[side])
            rows.append((place[parent], at[0], at[1]))
        self._wait(keys, self.parts.change(go_on, self.new(cuts), asked, self.layout), rows)

    def new(self, cuts: Cuts) -> Cuts:
        """Those of some cuts that parts have not made yet."""
        keys = cuts.keys[:, 0].tolist()
        rows = [d for d, key in enumerate(keys) if key not in self.made]
        self.made.update(keys)
        return Cuts(cuts.keys[rows], cuts.feature[rows], cuts.goes_left[rows])


def _joined(parts: Sequence[NDArray[Any]], width: int = 0) -> NDArray[Any]:
    """Arrays one behind the other, of which there may be none."""
    if not parts:
        return np.zeros((0, width), np.uint8) if width else np.zeros(0, dtype=np.uint64)
    return np.concatenate(parts)


@dataclass(slots=True)
class RoundsOfParts:
    """A run of boosting on rows that lie in parts.

    Parameters
    ----------
    settings : Settings
        How rounds are made.
    grower : BinnedGrower
        Grows trees in the bins of the rows, of which it has none.
    n : int
        Number of rows that train.
    total_weight : float or None
        Sum of their weights; None: each counts once.
    thresholds : sequence of int or None
        Numbers of thresholds of a feature that rounds draw in turn; None: all.
    seed : int
        Decides with the number of a round what it draws.
    n_targets : int
        How many targets rows have.
    """

    settings: Settings
    grower: BinnedGrower
    n: int
    total_weight: float | None
    thresholds: Sequence[int | None]
    seed: int
    n_targets: int = 1
    held: tuple[int, float] = (0, 0.0)  # how many rows are held out, and the sum of their weights
    # What is known of levels, where features have many: parts have it as more features.
    statistics: CategoryStatistics | None = None
    # Whether any row has each code of each feature.
    has_rows: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 256), dtype=np.bool_))
    before: Trees | None = None  # the tree whose steps are not taken yet
    grown: list[Trees] = field(default_factory=list)
    rows: list[Float64] = field(default_factory=list)  # growing ones in each node

    def advance(self, parts: Executor, scores: Float64, n_rounds: int) -> Iterable[int]:
        """Make rounds from scores (n_outputs,) that all rows share; yields how many there are.

        parts: where the rows lie.
        """
        known = dict(parts.collect(digests))
        self.has_rows = parts.change(start, known, scores) > 0
        self._take_shares(parts)
        yield 0
        for number in range(n_rounds):
            alone = replace(self, grown=[], rows=[], statistics=None)
            self.before, rows = parts.led(_made, alone, number)
            self.grown.append(self.before)
            self.rows.append(rows)
            yield number + 1

    def _take_shares(self, parts: Executor) -> None:
        """Let losses of several numbers count in units of what they are before the first round."""
        loss = self.settings.loss
        if isinstance(loss, MultiOutputLoss) and loss.needs_factors:
            lost = [0.0] * len(loss.components)
            for k, mean in zip(loss.order, self._mean_losses(parts, 1)[0], strict=True):
                lost[k] = mean
            self.settings = replace(self.settings, loss=loss.with_factors(lost))

    def scores_of_sides(self, parts: Executor) -> Float64:
        """Negated mean losses of the rows that train, and of those that are held out, if some are."""
        shares = [share for _, share, *_ in self.settings.loss.list_groups()]
        means = self._mean_losses(parts, 2 if self.held[0] else 1)
        # Added up one after the other, as the core does it.
        return np.array(
            [-sum(share * one for share, one in zip(shares, side, strict=True)) for side in means]
        )

    def _mean_losses(self, parts: Executor, n_sides: int) -> list[list[float]]:
        """Mean losses of each goal, of the rows that train, and of those that are held out."""
        goals = [self._goals] * n_sides
        G, (n_held, weight_held) = len(goals[0]), self.held
        if self._scale == "quantile":
            goals[0] = scaled("quantile", goals[0], parts, self.n, self._taken())
            if n_sides > 1:
                goals[1] = [bent(one, parts, n_held, are_held=True) for one in goals[1]]
        told = parts.change(begin_round, self._taken(), largest_losses, goals)
        n = np.repeat([self.n, n_held][:n_sides], G).tolist()
        largest = np.max(told, axis=0).tolist()
        whole = parts.collect(sums_of_losses, goals, units_of(largest, n)).tolist()
        totals = [total_of(*one) for one in zip(whole, largest, n, strict=True)]
        weights = float(self.n) if self.total_weight is None else self.total_weight, weight_held
        return [
            [one / weights[side] for one in totals[side * G : (side + 1) * G]]
            for side in range(n_sides)
        ]

    @property
    def _goals(self) -> list[ScaledGoal]:
        return goals_of(self.settings.loss, self.n_targets)

    @property
    def _scale(self) -> Literal["mean", "quantile"] | None:
        return self.settings.loss.components[0].scale

    def _grown_for(self, number: int) -> tuple[int, int]:
        """The first of the goals that a round's tree grows for, and how many these are.

        All of classes; of numbers each has its turn.
        """
        single = self.settings.loss.components
        return (0, len(single)) if single[0].has_one_unit else (number % len(single), 1)

    def _taken(self) -> Grown:
        """The tree whose steps are taken now."""
        before, self.before = self.before, None
        return len(self.grown), before

    def trees(self) -> Trees:
        """All trees so far, on the features of the rows."""
        statistics = self.statistics
        trees = Trees.joined(self.grown, self.bins.n_features, self.settings.loss.n_outputs)
        return trees if statistics is None else statistics.replace_by_category_sets(trees)

    @property
    def bins(self) -> Bins:
        """The bins of the rows."""
        return self.grower.bins

    def make(self, parts: Executor, number: int) -> tuple[Trees, Float64]:
        """The tree of a round, by the steps of the one before; and growing rows of its nodes."""
        settings = self.settings
        draws, *of_bins = self._drawn(number)
        goals, draws, most = self._begun(parts, (number, self.before), draws)
        # Of the tree; of each goal two terms of the dispersion; of each output and side two slopes.
        of_slopes, terms, of_outputs = np.split(most.numbers, [2, 2 + 2 * len(goals)])
        gradient, hessian = of_slopes.tolist()
        of_tree = gradient, hessian, most.n_growing
        bins, into, layout, places = self._layout(*of_bins)
        of_all = *of_tree, terms, self.n
        root = parts.change(begin_tree, goals, draws, of_all, layout)
        options = self.grower.gradient_options[:3]
        given = (0.0, 0.0, *of_tree, np.ascontiguousarray(root.of_root[:3]))
        growth = _Growth(parts, bins, into, layout, places, options, given)
        columns, rows, cuts = growth.grow(root)
        sides = most.n_growing, self.n - most.n_growing, of_outputs.reshape(-1, 2)
        left = columns[2]
        whole = parts.change(
            end_tree, goals, cuts, growth.new(cuts), _leaves(left, cuts), len(left), sides
        )
        step, *_ = round_steps_by_sums(
            left,
            sides,
            whole,
            settings.l2_regularization,
            self._voters(goals, terms, root.of_root[3:]),
            OTHERS,
            CURVATURE,
            STOPS if settings.votes else NO_STOPS,
            columns[0],
            options[1],
        )
        trees = Trees.from_ensemble_columns(
            columns, self.bins.n_features, step * settings.learning_rate
        )
        return self.bins.place_on_dates(trees), rows

    def _drawn(self, number: int) -> tuple[Any, ...]:
        """What a round draws: of rows, as the core takes it; features, number of edges, and key."""
        p, (first, n_goals) = self.bins.n_features, self._grown_for(number)
        n_outputs = sum(goal[2] for goal in self._goals[first : first + n_goals])
        odd, other_odd, factors, *of_bins = draw_round(
            self.seed,
            number,
            n_outputs,
            resolve_feature_counts(self.settings.feature_fractions, p),
            resolve_threshold_counts(self.thresholds),
            p,
            self.grower.checked_feature_order,
        )
        return (odd, other_odd, self.settings.subsample, factors, None, (first, n_goals)), *of_bins

    def _begun(
        self, parts: Executor, grown: Grown, draws: tuple[Any, ...]
    ) -> tuple[list[ScaledGoal], tuple[Any, ...], Largest]:
        """Take the steps of the round before; gives goals, what is drawn, and largest numbers."""
        goals, kind = self._goals, self._scale
        if kind is None:
            most: Largest = parts.change(begin_round, grown, largest, goals, draws)
        else:
            goals = scaled(kind, goals, parts, self.n, grown)
            most = parts.collect(largest, goals, draws)
        if most.n_growing == 0:
            *others, _, grown_for = draws
            draws = *others, most.least, grown_for
            most = parts.collect(largest, goals, draws)
        return goals, draws, most

    def _voters(
        self, goals: list[ScaledGoal], largest: Float64, whole: Int64
    ) -> list[tuple[int, int, float]]:
        """Who votes: first output and number of outputs of each goal, and one over its dispersion.

        largest, whole: of the terms of the dispersions.
        """
        told = zip(whole.tolist(), largest.tolist(), strict=True)
        sums = np.array([total_of(one, most, self.n) for one, most in told]).reshape(-1, 2)
        n = float(self.n) if self.total_weight is None else self.total_weight
        return [
            (first, n_outputs, 1.0 / dispersion_of_sums(loss, of_goal, n))
            for (loss, first, n_outputs, _), of_goal in zip(goals, sums, strict=True)
        ]

    def _layout(
        self, features: Int32, n_edges: int, key: int
    ) -> tuple[tuple[Any, ...], NDArray[np.uint8], Layout, Int64 | None]:
        """The bins of a round, what codes are in them, by what rows are added up, and where it goes."""
        kept = self.bins.core_columns
        into = np.broadcast_to(np.arange(256, dtype=np.uint8), (self.bins.n_features, 256))
        bins = kept
        if n_edges > 0:
            joined, n_bins, low, high = join_bins(
                kept, features, n_edges, key, self.grower.checked_feature_order
            )
            into = into.copy()
            into[features] = joined
            bins = n_bins, kept[1], low, high, *kept[4:]
        place, n_places, columns = self._places(features, into, bins[0])
        has_categories = bool(self.bins.is_categorical[features].any())
        return bins, into, Layout(features, kept[0], place, n_places, has_categories), columns

    def _places(
        self, features: Int32, into: NDArray[np.uint8], n_bins: Int32
    ) -> tuple[NDArray[np.uint8], Int32, Int64 | None]:
        """Places of the bins that have rows; see `Layout` and `_Growth`."""
        place = np.zeros((len(features), 256), dtype=np.uint8)
        n_places, columns, start = np.empty(len(features), dtype=np.int32), [], 0
        for i, j in enumerate(features.tolist()):
            has_rows = np.zeros(256, dtype=np.bool_)
            has_rows[into[j][self.has_rows[j]]] = True
            bins, width = np.flatnonzero(has_rows), int(n_bins[j]) + 1
            place[i] = (np.cumsum(has_rows) - 1).clip(0)[into[j]]
            n_places[i] = max(1, len(bins))
            own = np.minimum(bins, width - 1) if len(bins) else np.array([width - 1])
            columns.append((start + width * np.arange(3)[:, None] + own).ravel())
            start += 3 * width
        found = np.concatenate(columns)
        return place, n_places, None if len(found) == start else found.astype(np.int64)


def _made(parts: Executor, run: RoundsOfParts, number: int) -> tuple[Trees, Float64]:
    return run.make(parts, number)


def _leaves(left: Int32, cuts: Cuts) -> dict[int, int]:
    """The numbers of the leaves of a tree, by the keys of their cells."""
    node = {0: 0}
    for parent, *children in cuts.keys.tolist():
        first = int(left[node[parent]])
        node |= {children[0]: first, children[1]: first + 1}
    return {key: v for key, v in node.items() if left[v] == LEAF}
