"""Boosting round by round: some rows grow a tree, the others weigh its prunings, all set its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from certree._core import run_rounds
from certree.ensembles.losses import Loss, Outputs
from certree.ensembles.many_levels import LevelStatistics, ManyLevels, Target
from certree.ensembles.several_losses import SeveralLosses
from certree.ensembles.staged import constant_scores
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import MISSING, Bins
from certree.interface.arrays import Float64, Int32, UInt64, divide_by_largest, get_csr_arrays
from certree.rows.folds import Fold, number_groups
from certree.rows.hashes import compute_content_keys, hash_samples
from certree.rows.queries import compute_group_keys
from certree.rows.sparse_rows import DenseOrSparseFeatures
from certree.rows.training import Training
from certree.tree import LEAF, Trees

# Stop probabilities of the branching priors that a round mixes.
STOPS, NO_STOPS = np.array([0.02, 0.1, 0.5]), np.zeros(0)
# Rows that weigh have shaped the scores that they weigh, so their Hessians count half.
CURVATURE = 0.5
# Each of several numbers has a vote of its own, in which losses of all others count so much: cuts that
# serve many of them are made more gladly, and those that serve one do not move the others by noise.
OTHERS = 0.1

# Whether scores are taken after each round, so many rounds without a gain are the last ones (0: any
# number), what a gain must exceed, and the scores so far.
Watch = tuple[bool, int, float, Float64]
UNWATCHED: Watch = (False, 0, 0.0, np.zeros(0))


@dataclass(frozen=True, slots=True)
class Settings:
    """What rounds are made with; see `BoostedTreesClassifier`."""

    loss: Loss
    learning_rate: float
    l2_regularization: float
    feature_shares: Sequence[float]  # one after the other, and again; whole numbers are of features
    subsample: float
    votes: bool


@dataclass(slots=True)
class Rounds:
    """A run of boosting on the rows of one table, some of which may judge it.

    Parameters
    ----------
    settings : Settings
        How rounds are made.
    grower : BinnedGrower
        Grows trees on the rows: first those that train, then those that judge.
    y : ndarray of float64, shape (n,) or (n_targets, n)
        Targets, or codes of classes; of several targets those of each.
    weight : ndarray of shape (n,), or None
        Weights of the rows, in units of the mean weight of all rows that train the model.
    keys : ndarray of uint64, shape (n_training,)
        Numbers by which rows are drawn, wherever they stand; rows of a group share one, so that whole
        groups grow a tree or weigh its prunings.
    thresholds : sequence of int or None
        Numbers of thresholds of a feature that rounds draw in turn; None: all.
    scores : ndarray of shape (n_outputs, n)
        What the trees so far say.
    seed : int
        Decides with the number of a round what it draws.
    offset : ndarray of shape (n_outputs, n), or None
        What scores start from beside what is the same for all rows.
    query : ndarray of int32, shape (n,), or None
        Number of each row's query, where queries are ranked: rows of one stand together.
    values : ndarray or csr_array of shape (any, p), or None
        The last rows, where these judge and are not among those of the grower.
    many : ManyLevels or None
        Levels of the rows, if some features have many.
    statistics : LevelStatistics or None
        What is known of these levels, which the rows of the grower have as more features.
    """

    settings: Settings
    grower: BinnedGrower
    y: Float64
    weight: Float64 | None
    keys: UInt64
    thresholds: Sequence[int | None]
    scores: Float64
    seed: int
    offset: Float64 | None = None
    query: Int32 | None = None
    values: Any = None
    many: ManyLevels | None = None
    statistics: LevelStatistics | None = None
    parts: list[Trees] = field(default_factory=list)
    deviations: list[Float64] = field(default_factory=list)  # of what prunings say from steps
    rows: list[Float64] = field(default_factory=list)  # growing ones in each node
    losses: list[Float64] = field(default_factory=list)  # of the rows that judge

    @property
    def bins(self) -> Bins:
        """Its rows, as trees see them."""
        return self.grower.bins

    def trees(self) -> Trees:
        """All trees so far, on the features of the table."""
        statistics = self.statistics
        trees = Trees.joined(self.parts, self.bins.n_features, len(self.scores))
        return trees if statistics is None else statistics.as_sets(trees)

    def deviations_of_nodes(self) -> Float64:
        """How far what the prunings say lies from the steps of all trees so far, (m, n_outputs)."""
        return np.concatenate([np.zeros((0, len(self.scores))), *self.deviations])

    def rows_of_nodes(self) -> Float64:
        """How many rows grew each node of all trees so far, (m,)."""
        return np.concatenate([np.zeros(0), *self.rows])

    def fold(self, fold: Fold, longer: int = 1) -> Rounds:
        """A run on some of its rows that others judge, in the same bins, before its first round.

        Its steps are so many times as long. Of levels it knows nothing yet.
        """
        rate = longer * self.settings.learning_rate
        rows = np.concatenate([fold.train, fold.validation])
        weight = None if self.weight is None else self.weight[rows]
        y, n = self.y[..., rows], len(fold.train)
        offset = None if self.offset is None else self.offset[:, rows]
        of_training = [None if one is None else one[..., :n] for one in (weight, offset)]
        start = self.settings.loss.start(y[..., :n], *of_training)
        return self.anew(
            settings=replace(self.settings, learning_rate=rate),
            grower=replace(self.grower, bins=self.bins.select_rows(rows)),
            y=y,
            weight=weight,
            keys=self.keys[fold.train],
            scores=constant_scores(start, len(rows), offset),
            offset=offset,
            query=None if self.query is None else self.query[rows],
            many=None if self.many is None else self.many.at(rows),
        )

    def with_statistics(self) -> Rounds:
        """The run before its first round, cutting by statistics of levels where there are many."""
        if self.many is None:
            return self
        statistics = self.many.statistics(self.target(), self.keys)
        values = self.values
        if values is not None:
            values = np.concatenate([values, statistics.seen_by(values)], axis=1)
        grower = statistics.beside(self.grower, statistics.coded(self.many.place, self.keys))
        return self.anew(grower=grower, values=values, statistics=statistics)

    def target(self) -> Target:
        """What means of levels are taken of, before the first round.

        Beside offsets of one score that is where a row would step by itself, weighed by its Hessian:
        of counts beside the logs of exposures the rate, weighed by the exposure.
        """
        n, weight = len(self.keys), self.weight
        if self.offset is None or len(self.scores) > 1:
            y = self.settings.loss.of_scores(self.y)
            return Target(y, len(self.scores), weight).at(slice(n))
        gradient, hessian = self.settings.loss.compute_gradients(self.y, self.scores)
        factors = hessian[0] if weight is None else hessian[0] * weight
        return Target(-gradient[0] / hessian[0], 1, factors).at(slice(n))

    def judged_by(self, rows: Training, start: Float64) -> Rounds:
        """The same beside other rows that judge it, which may have values that are in no bin."""
        weight = None
        if self.weight is not None or rows.weight is not None:
            own = np.ones(self.y.shape[-1]) if self.weight is None else self.weight
            others = np.ones(len(rows.y)) if rows.weight is None else _normalised(rows.weight)
            weight = np.concatenate([own, others])
        y = np.concatenate([self.y, self.settings.loss.targets(rows.y.T)], axis=-1)
        offset = query = None
        if self.offset is not None and rows.offset is not None:
            offset = np.concatenate([self.offset, rows.offset], axis=1)
        if self.query is not None and rows.split.groups is not None:
            query = np.concatenate([self.query, rows.split.groups])
        return self.anew(
            y=y,
            weight=weight,
            query=query,
            scores=constant_scores(start, y.shape[-1], offset),
            offset=offset,
            values=rows.features.matrix.astype(np.float64, copy=False),
        )

    def anew(self, **others: Any) -> Rounds:
        """The same run before its first round, with other parameters."""
        return replace(self, **others, parts=[], deviations=[], rows=[], losses=[])

    def loss_of_judges(self) -> float:
        """Sum of losses of the rows that judge."""
        n = len(self.keys)
        weight = np.ones(self.y.shape[-1] - n) if self.weight is None else self.weight[n:]
        return fsum(weight * self.settings.loss.of_rows(self.y[..., n:], self.scores[:, n:]))

    def _arguments(self) -> tuple[Any, ...]:
        """The run as the core takes it."""
        n_thresholds = numbers_of_thresholds(self.thresholds)
        y = np.atleast_2d(self.y)
        # Rounds that draw thresholds have codes of their own, which would be a third copy.
        codes = self.bins.codes if n_thresholds.any() else self.bins.codes_by_feature_and_row
        rows = codes, self.bins.core_columns, y, self.weight, self.keys
        values = np.zeros((0, self.bins.n_features)) if self.values is None else self.values
        values = get_csr_arrays(values) if issparse(values) else values
        n = len(self.keys)
        loss, scores = self.settings.loss, self.scores[:, :n]
        gradients = loss.stack_custom_gradients(self.y[..., :n], scores)
        ranked = None if self.query is None else (self.query, *self.settings.loss.depths)
        return *rows, n_thresholds, self.seed, self.scores, values, gradients, ranked


def importances(
    trees: Trees, rows: Float64, before: Float64, outputs: Outputs = slice(None)
) -> Float64:
    """How far cuts by each feature move the rows (m,) of nodes, squared, (p,), and what was before.

    Outputs are added up in their order.
    """
    inner, value = np.flatnonzero(trees.left != LEAF), trees.value[:, outputs]
    # One node after the other, so that it does not matter which fit has made which round.
    child = trees.left[inner, None] + [0, 1]
    moved = np.square(value[child] - value[inner, None]).sum(axis=2)
    total = before.copy()
    np.add.at(total, np.repeat(trees.feature[inner], 2), (rows[child] * moved).ravel())
    return total


def advance(runs: Sequence[Rounds], first: int, last: int, watch: Watch = UNWATCHED) -> Float64:
    """Make rounds first, ..., last - 1 of some runs, which differ in rows, thresholds and seeds alone.

    They go on side by side; where it is interrupted none has changed.

    Returns
    -------
    ndarray of shape (n_rounds, 2)
        Where the rounds of one run are watched, its scores of the rows that train and of those that
        judge, after each round; there may be less than were asked for. None of a custom loss.
    """
    if not runs[0].settings.loss.is_custom:
        return _make(runs, first, last, watch)
    for number in range(first, last):
        _make(runs, number, number + 1, UNWATCHED)
    for run in runs:
        run.losses.append(np.array([run.loss_of_judges()]))
    return np.zeros((0, 2))


def _make(runs: Sequence[Rounds], first: int, last: int, watch: Watch) -> Float64:
    """Make rounds by the core."""
    settings, loss, p = runs[0].settings, runs[0].settings.loss, runs[0].bins.n_features
    limits, slopes, groups, n_threads = runs[0].grower.gradient_options
    made: Any = run_rounds(
        [run._arguments() for run in runs],
        (
            loss.core_name,
            loss.goals(),
            settings.learning_rate,
            OTHERS,
            settings.l2_regularization,
            CURVATURE,
            settings.subsample,
            STOPS if settings.votes else NO_STOPS,
            numbers_of_features(settings.feature_shares, p),
        ),
        watch,
        limits,
        slopes,
        groups,
        first,
        last,
        n_threads,
    )
    for run, (scores, columns, value, deviations, rows, losses, _) in zip(runs, made, strict=True):
        run.scores = scores
        run.parts.append(Trees.from_ensemble_columns(columns, p, value))
        run.deviations.append(deviations)
        run.rows.append(rows)
        run.losses.append(losses)
    watched: Float64 = made[0][-1]
    return watched


def numbers_of_features(shares: Sequence[float], p: int) -> Int32:
    """How many of p features rounds look at in turn; shares that are whole are such numbers."""
    numbers = [min(one, p) if isinstance(one, int) else max(1, round(one * p)) for one in shares]
    return np.array(numbers, dtype=np.int32)


def numbers_of_thresholds(thresholds: Sequence[int | None]) -> Int32:
    """How many thresholds of a feature rounds draw in turn, as the core takes it; 0: all."""
    return np.array([min(one or 0, MISSING) for one in thresholds], dtype=np.int32)


def _normalised(weight: Float64) -> Float64:
    """Weights with a mean of 1.

    Their unit means nothing, and large ones would overflow; summed in whatever order they come.
    """
    weight = divide_by_largest(weight)
    return weight * (len(weight) / fsum(weight))


def started(
    settings: Settings,
    grower: BinnedGrower,
    features: DenseOrSparseFeatures,
    y: NDArray[Any],
    weight: Float64 | None,
    thresholds: Sequence[int | None],
    seed: int,
    offset: Float64 | None = None,
    groups: NDArray[Any] | None = None,
) -> tuple[Rounds, Float64]:
    """A run before its first round, and the scores (n_outputs,) that it starts from.

    groups: group of each row, (n,), all rows of which are drawn together; None: each row by itself.
    """
    if weight is not None:
        weight = _normalised(weight)
    # The keys first: they take the most memory while they are made.
    loss, told_apart, order = settings.loss, y, grower.checked_feature_order
    if isinstance(loss, SeveralLosses):
        loss = loss.known_by(y.T, weight, hash_samples(*features.tables, order=order))
        settings, told_apart = replace(settings, loss=loss), loss.ordered(y)
    if groups is None:
        keys = compute_content_keys(*features.tables, told_apart, weight=weight, order=order)
    else:
        _, group = number_groups(groups)
        hashes = hash_samples(*features.tables, told_apart, order=order)
        keys = compute_group_keys(hashes, group, weight)[group]
    start = loss.start(y.T, weight, offset)
    scores = constant_scores(start, len(y), offset)
    targets = loss.targets(y.T)
    run = Rounds(settings, grower, targets, weight, keys, thresholds, scores, seed, offset)
    run.many = ManyLevels.of(features, grower.bins, run.target(), keys)
    return run, start
