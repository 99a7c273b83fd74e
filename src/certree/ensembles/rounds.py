"""Rounds of boosting: in-bag rows grow a tree, out-of-bag rows weight its prunings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from certree._core import run_rounds
from certree.ensembles.losses import Loss, OutputOrder
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.ensembles.staged import make_constant_scores
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import MISSING, Bins
from certree.interface.arrays import (
    Float64,
    Int32,
    UInt64,
    divide_by_largest,
    get_csr_arrays,
)
from certree.out_of_core.exact_sums import compute_exact_sum, exact_sum
from certree.out_of_core.ranks import Links, sum_over_ranks
from certree.rows.folds import Fold, number_groups
from certree.rows.hashes import compute_content_keys, hash_samples
from certree.rows.queries import compute_group_keys
from certree.rows.relative_weights import scale_weights
from certree.rows.sparse_rows import DenseOrSparseFeatures
from certree.rows.training import Training
from certree.stats.category_statistics import (
    CategoryStatistics,
    CategoryTarget,
    HighCardinalityFeatures,
)
from certree.tree import LEAF, Trees

# Stop probabilities of the branching priors over prunings that a round mixes.
STOPS, NO_STOPS = np.array([0.02, 0.1, 0.5]), np.zeros(0)
# Out-of-bag rows of a round were in-bag in earlier rounds and have shaped the scores, so their Hessians
# count half in the weights of the prunings.
CURVATURE = 0.5
# Each of several targets has its own vote over the prunings, in which the losses of the other targets
# count this much: splits that serve many targets get more weight.
OTHERS = 0.1

# How the core scores rounds: whether it does, the number of rounds without an improvement after which
# it stops (0: never), the smallest improvement that counts, and the scores so far.
Watch = tuple[bool, int, float, Float64]
UNWATCHED: Watch = (False, 0, 0.0, np.zeros(0))


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters of the rounds of a run; see `BoostedTreesClassifier`.

    The constructor takes the attributes in this order.

    Attributes
    ----------
    loss : Loss
        The loss that rounds minimize.
    learning_rate : float
        Factor of the step of each tree.
    l2_regularization : float
        Sum of Hessians with which the value of a node is shrunk towards the value of its parent.
    feature_fractions : sequence of float or int
        Features that a round may split on: a float is a fraction of the features, an int a number.
        Round i uses the entry at i modulo the length.
    subsample : float
        Fraction of the rows that are in-bag in a round.
    votes : bool
        Whether a round adds the weighted mean of all prunings of its tree (subtrees with the same
        root); False: it adds the whole tree.
    """

    loss: Loss
    learning_rate: float
    l2_regularization: float
    feature_fractions: Sequence[float]  # in turn; an int is a number of features
    subsample: float
    votes: bool


@dataclass(slots=True)
class BoostingRun:
    """A run of boosting on the rows of one table: its data, its trees so far, and their scores.

    A run is a complete sequence of rounds with its own seed; each round adds a tree. Training rows
    come first; a validation set may follow. The function `advance` makes rounds: it replaces
    `scores` and appends to `tree_batches`, `deviations`, `in_bag_counts` and `losses`.

    Parameters
    ----------
    settings : Settings
        Parameters of the rounds.
    grower : BinnedGrower
        Grows trees on the binned rows.
    y : ndarray of float64, shape (n,) or (n_targets, n)
        Targets, numbers or class codes; a row for each of several targets.
    weight : ndarray of shape (n,), or None
        Weights of the rows; those of the training rows, and those of a validation set, have been
        divided by their mean. A run on a fold has the weights of its parent run. None: 1.
    keys : ndarray of uint64, shape (n_training,)
        Random keys of the training rows, which decide which rows rounds draw. A key is a hash of a
        row's values and of its number among equal rows; it does not depend on the row's position.
        Rows of a group share a key, so that they are in-bag together.
    thresholds : sequence of (int or None)
        Number of random thresholds per feature that the tree of a round may split at; an entry
        None stands for all thresholds. Entries are used in turn, each for one round, or for two if
        rounds alternate between 30 % and all features.
    scores : ndarray of shape (n_outputs, n)
        Scores of the rows by the trees so far.
    seed : int
        Seed of the random draws of all rounds.
    offset : ndarray of shape (n_outputs, n), or None
        Offsets of the rows, which `scores` includes; None: no offsets.
    query : ndarray of int32, shape (n,), or None
        For rankings, number of each row's query; rows of a query follow each other.
    values : ndarray or csr_array of shape (n_val, p), or None
        Feature values of the validation set if the grower has bins of the training rows only; None:
        the grower has bins of all rows.
    high_cardinality : HighCardinalityFeatures or None
        Category of each row in features with more than 30 categories; None: no feature has so many.
    statistics : CategoryStatistics or None
        Statistics of these categories, which the grower has as additional features; None: it has
        none.
    tree_batches : list of Trees
        For each batch of rounds, the trees that were grown. A batch is one round with a
        `CustomLoss`, and otherwise all rounds of a call of `advance`.
    deviations : list of ndarray of shape (n_nodes, n_outputs)
        For each batch, the standard deviation of the value that a row gets at each node, over the
        prunings of the node's tree (subtrees with the same root).
    in_bag_counts : list of ndarray of shape (n_nodes,)
        For each batch, the number of in-bag rows in each node.
    losses : list of ndarray
        Weighted sums of the losses of the validation rows. The last entry of the last array is the
        sum after the last round.
    updates_scores : bool
        Whether `advance` writes to the array `scores`, which is a file; False: it makes a new one.
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
    high_cardinality: HighCardinalityFeatures | None = None
    statistics: CategoryStatistics | None = None
    tree_batches: list[Trees] = field(default_factory=list)
    deviations: list[Float64] = field(default_factory=list)  # of the values of the prunings
    in_bag_counts: list[Float64] = field(default_factory=list)
    losses: list[Float64] = field(default_factory=list)  # of the validation set
    updates_scores: bool = False

    @property
    def bins(self) -> Bins:
        """Bin edges, and bin codes of the training rows and, if it is binned, the validation set."""
        return self.grower.bins

    def trees(self) -> Trees:
        """Return all trees so far, whose splits are on the features of the table.

        Splits on category statistics (mean targets of categories, which are features of the grower)
        are replaced by splits on sets of categories.
        """
        statistics, trees = self.statistics, self.join_trees()
        return trees if statistics is None else statistics.replace_by_category_sets(trees)

    def join_trees(self) -> Trees:
        """Return all trees so far as they were grown, with splits on category statistics, too."""
        return Trees.joined(self.tree_batches, self.bins.n_features, len(self.scores))

    def get_node_deviations(self) -> Float64:
        """Concatenate `deviations` to one array (n_nodes, n_outputs) for all trees so far.

        An entry is the standard deviation of the node's value over the prunings of its tree, that
        is, over the subtrees with the same root.
        """
        return np.concatenate([np.zeros((0, len(self.scores))), *self.deviations])

    def get_in_bag_counts(self) -> Float64:
        """Concatenate `in_bag_counts` to one array (n_nodes,) for all trees so far.

        An entry is the number of in-bag rows in the node.
        """
        return np.concatenate([np.zeros(0), *self.in_bag_counts])

    def make_fold_run(self, fold: Fold, rate_factor: int = 1) -> BoostingRun:
        """Make a run before its first round on the training and validation rows of a fold.

        Bins are those of this run; start scores are computed anew from the training rows. Category
        statistics (mean targets of categories as features) are missing: call `with_statistics` to
        add them. fold: indices, among the rows of this run, of the training rows (`train`) and of
        the validation rows (`validation`), which follow them in the new run; rate_factor: factor of
        the learning rate.
        """
        rate = rate_factor * self.settings.learning_rate
        rows = np.concatenate([fold.train, fold.validation])
        weight = None if self.weight is None else self.weight[rows]
        y, n = self.y[..., rows], len(fold.train)
        offset = None if self.offset is None else self.offset[:, rows]
        of_training = [None if one is None else one[..., :n] for one in (weight, offset)]
        start = self.settings.loss.compute_start(y[..., :n], *of_training)
        return self.copy_without_trees(
            settings=replace(self.settings, learning_rate=rate),
            grower=replace(self.grower, bins=self.bins.select_rows(rows)),
            y=y,
            weight=weight,
            keys=self.keys[fold.train],
            scores=make_constant_scores(start, len(rows), offset),
            offset=offset,
            query=None if self.query is None else self.query[rows],
            high_cardinality=None
            if self.high_cardinality is None
            else self.high_cardinality.select_rows(rows),
        )

    def with_statistics(self) -> BoostingRun:
        """Return a copy of the run before its first round with category statistics as features.

        The statistics, mean targets of the categories of features with more than 30, are computed
        from the training rows and added to the features of the grower. Return the run itself if
        there is no such feature.
        """
        if self.high_cardinality is None:
            return self
        statistics = self.high_cardinality.compute_statistics(
            self.make_category_target(), self.keys
        )
        values = self.values
        if values is not None:
            values = np.concatenate([values, statistics.encode_new_rows(values)], axis=1)
        grower = statistics.extend_grower(
            self.grower, statistics.encode_rows(self.high_cardinality.indices, self.keys)
        )
        return self.copy_without_trees(grower=grower, values=values, statistics=statistics)

    def make_category_target(self) -> CategoryTarget:
        """Return the targets and weights of the training rows for category statistics.

        Call before the first round. Without offsets, or with several outputs, targets are those of
        the loss: numbers, class codes or indicators of classes. With offsets and one output, the
        target of a row is its Newton step, minus gradient over Hessian, at the start scores, and
        its weight is multiplied by the Hessian. For counts whose offset is the log exposure,
        categories are thus compared by their rates.
        """
        n, weight = len(self.keys), self.weight
        if self.offset is None or len(self.scores) > 1:
            y = self.settings.loss.get_output_targets(self.y)
            return CategoryTarget(y, len(self.scores), weight).select_rows(slice(n))
        target = make_newton_target(self.settings.loss, self.y, self.scores, weight)
        return target.select_rows(slice(n))

    def with_validation_set(self, rows: Training, start: Float64) -> BoostingRun:
        """Return a copy of the run with a validation set. Call it before the first round.

        rows: the validation set, which follows the training rows and is not binned; start: constant
        start scores, (n_outputs,), to which the offsets of the rows are added.
        """
        weight = None
        if self.weight is not None or rows.weight is not None:
            own = np.ones(self.y.shape[-1]) if self.weight is None else self.weight
            others = np.ones(len(rows.y)) if rows.weight is None else _divide_by_mean(rows.weight)
            weight = np.concatenate([own, others])
        y = np.concatenate([self.y, self.settings.loss.encode_targets(rows.y.T)], axis=-1)
        offset = query = None
        if self.offset is not None and rows.offset is not None:
            offset = np.concatenate([self.offset, rows.offset], axis=1)
        if self.query is not None and rows.split.groups is not None:
            query = np.concatenate([self.query, rows.split.groups])
        return self.copy_without_trees(
            y=y,
            weight=weight,
            query=query,
            scores=make_constant_scores(start, y.shape[-1], offset),
            offset=offset,
            values=rows.features.matrix.astype(np.float64, copy=False),
        )

    def copy_without_trees(self, **others: Any) -> BoostingRun:
        """Return a copy of the run without trees, in which some fields have other values.

        Scores stay those of the trees so far, unless they are among `others`. others: the values by
        name, such as `seed` and `scores`.
        """
        return replace(self, **others, tree_batches=[], deviations=[], in_bag_counts=[], losses=[])

    def sum_validation_losses(self, links: Links | None = None) -> float:
        """Return the weighted sum of the losses of the validation rows at their current scores.

        Targets are those of `y`, and the loss that of `settings`. The sum is 0 without a validation
        set. links: connections to the other processes, whose rows count too; None: there are none.
        """
        n = len(self.keys)
        weight = np.ones(self.y.shape[-1] - n) if self.weight is None else self.weight[n:]
        losses = weight * self.settings.loss.compute_row_losses(self.y[..., n:], self.scores[:, n:])
        return fsum(losses) if links is None else sum_over_ranks([exact_sum(losses)], links)[0]

    def _get_core_arguments(self) -> tuple[Any, ...]:
        """Return the data of the run in the form that `run_rounds` of the C++ core takes.

        It is a tuple: bin codes, column data of the bins, targets, weights, keys, numbers of
        thresholds, seed, scores, feature values of the validation set (with 0 rows if it is
        binned), gradients of a custom loss or None, for rankings (query, cutoffs), else None, and
        the scores again if they are written to, else None.
        """
        n_thresholds = resolve_threshold_counts(self.thresholds)
        y = np.atleast_2d(self.y)
        # Rounds that draw thresholds make their own codes, so a second layout would be a third copy.
        codes = self.bins.codes if n_thresholds.any() else self.bins.codes_by_feature_and_row
        rows = codes, self.bins.core_columns, y, self.weight, self.keys
        values = np.zeros((0, self.bins.n_features)) if self.values is None else self.values
        values = get_csr_arrays(values) if issparse(values) else values
        n = len(self.keys)
        loss, scores = self.settings.loss, self.scores[:, :n]
        gradients = loss.stack_custom_gradients(self.y[..., :n], scores)
        ranked = None if self.query is None else (self.query, *self.settings.loss.cutoffs)
        updated = self.scores if self.updates_scores else None
        return *rows, n_thresholds, self.seed, self.scores, values, gradients, ranked, updated


def make_newton_target(
    loss: Loss, y: Float64, scores: Float64, weight: Float64 | None, scale: float | None = None
) -> CategoryTarget:
    """Return the Newton steps of rows as targets, with the weights times the Hessians as weights.

    The Newton step of a row is minus gradient over Hessian of the loss. loss: a loss of one output;
    y: targets, (n,); scores: scores of the rows at which steps are computed, (1, n); weight: (n,),
    or None for equal weights; scale: a number on which the gradients of some losses depend, such as
    Huber's limit; None: it is computed from these rows.
    """
    gradient, hessian = loss.compute_gradients(y, scores, scale)
    factors = hessian[0] if weight is None else hessian[0] * weight
    return CategoryTarget(-gradient[0] / hessian[0], 1, factors)


def add_gain_importances(
    trees: Trees, rows: Float64, before: Float64, outputs: OutputOrder = slice(None)
) -> Float64:
    """Return the importances of earlier trees plus the gain importances of `trees`, (p,).

    The gain importance of a feature is the sum over its splits of the squared differences between
    the values of children and parent, summed over outputs, times the number of in-bag rows in the
    child.

    Parameters
    ----------
    trees : Trees
        Trees with values (n_nodes, n_outputs).
    rows : ndarray of shape (n_nodes,)
        Number of in-bag rows in each node.
    before : ndarray of shape (p,)
        Importances of earlier trees; zeros if there are none. The array is not changed.
    outputs : slice or list of int
        Order in which the squared differences of outputs are added; by default from the first to
        the last.
    """
    inner, value = np.flatnonzero(trees.left != LEAF), trees.value[:, outputs]
    # Nodes are added one by one, so that the sum is the same for rounds of one fit or of two.
    child = trees.left[inner, None] + [0, 1]
    moved = np.square(value[child] - value[inner, None]).sum(axis=2)
    total = before.copy()
    np.add.at(total, np.repeat(trees.feature[inner], 2), (rows[child] * moved).ravel())
    return total


def advance(
    runs: Sequence[BoostingRun],
    first: int,
    last: int,
    watch: Watch = UNWATCHED,
    links: Links | None = None,
) -> Float64:
    """Make rounds first, ..., last - 1 of several runs: grow trees, and update scores of rows.

    A run is a sequence of boosting rounds with its own seed; the new trees are appended to it. Runs
    do not change if the C++ core is interrupted, with two exceptions: with a `CustomLoss` they keep
    the finished rounds, and with `updates_scores` their scores are undefined.

    Parameters
    ----------
    runs : sequence of BoostingRun
        Runs that have made `first` rounds. They may differ in rows, thresholds and seeds; settings
        and grower options are those of the first.
    first, last : int
        Index of the first round, and of the round after the last one.
    watch : tuple
        How the C++ core scores rounds and stops early: (whether it does so, number of rounds
        without an improvement after which it stops or 0, smallest improvement that counts, scores
        so far that decide). `UNWATCHED`: it does neither.
    links : Links or None
        Connections to the other processes (ranks), which hold the other rows; None: there is one
        process. Trees, and what is computed from all rows, are the same in all processes. Tables
        must be dense, and rankings are not possible.

    Returns
    -------
    ndarray of shape (n_rounds, 2)
        Negated mean losses (NDCG - 1 for rankings) of the training rows and of the validation set
        of the first run, after each round. The array has less than last - first rows if the C++
        core stopped early, and no rows if it does not score rounds, or for a `CustomLoss`.
    """
    if not runs[0].settings.loss.is_custom:
        return _run_core(runs, first, last, watch, links)
    for number in range(first, last):
        _run_core(runs, number, number + 1, UNWATCHED, links)
    if (
        links is None
    ):  # With links, sums take messages: `advance_selection` asks for those it needs.
        for run in runs:
            run.losses.append(np.array([run.sum_validation_losses()]))
    return np.zeros((0, 2))


def _run_core(
    runs: Sequence[BoostingRun], first: int, last: int, watch: Watch, links: Links | None = None
) -> Float64:
    """Make rounds first, ..., last - 1 of several runs by the C++ core, and update the runs.

    runs: runs that have made `first` rounds; watch: how the C++ core scores rounds and stops early;
    links: connections to other processes that hold rows, or None. Return the scores of the rounds,
    (n_rounds, 2): negated mean losses of the training rows and of the validation set of the first
    run; no rows if `watch` is not set. See `advance`, which calls it for one round at a time if the
    loss is a `CustomLoss`, as gradients are computed once, before the first round.
    """
    settings, loss, p = runs[0].settings, runs[0].settings.loss, runs[0].bins.n_features
    limits, monotonic_signs, groups, n_threads = runs[0].grower.gradient_options
    made: Any = run_rounds(
        [run._get_core_arguments() for run in runs],
        (
            loss.core_name,
            loss.list_groups(),
            settings.learning_rate,
            OTHERS,
            settings.l2_regularization,
            CURVATURE,
            settings.subsample,
            STOPS if settings.votes else NO_STOPS,
            resolve_feature_counts(settings.feature_fractions, p),
        ),
        watch,
        limits,
        monotonic_signs,
        groups,
        first,
        last,
        n_threads,
        links,
    )
    for run, (scores, columns, value, deviations, counts, losses, _) in zip(
        runs, made, strict=True
    ):
        run.scores = run.scores if scores is None else scores
        trees = Trees.from_ensemble_columns(columns, p, value)
        share_gaps = None if links is None else partial(_share_gaps, links)
        run.tree_batches.append(run.bins.place_on_dates(trees, run.values, share_gaps))
        run.deviations.append(deviations)
        run.in_bag_counts.append(counts)
        run.losses.append(losses)
    watched: Float64 = made[0][-1]
    return watched


def _share_gaps(links: Links, lower: Float64, upper: Float64) -> tuple[Float64, Float64]:
    """Intersect k intervals over all processes that hold rows; return lower and upper ends, (k,) each.

    An interval is the gap between two values of a date feature in which a threshold may be placed.
    links: connections to the other processes; lower, upper: for each of k thresholds the ends of its
    gap in the rows of this process, (k,) each. The results are the largest lower and the smallest
    upper end over all processes, the same in each.
    """
    largest = np.int64(2**63 - 1)
    words = np.concatenate([lower, -upper]).view(np.int64)
    # Bits of negative numbers are in the opposite order.
    words = np.where(words < 0, words ^ largest, words)
    links.reduce(words, 0)
    links.share(words)
    ends = np.where(words < 0, words ^ largest, words).view(np.float64)
    return ends[: len(lower)], -ends[len(lower) :]


def resolve_feature_counts(fractions: Sequence[float], p: int) -> Int32:
    """Return how many of p features rounds may split on, (len(fractions),), int32.

    fractions: the field `Settings.feature_fractions`: a float is a fraction of p, and an int a
    number of features. Results are in 1 .. p.
    """
    numbers = [min(one, p) if isinstance(one, int) else max(1, round(one * p)) for one in fractions]
    return np.array(numbers, dtype=np.int32)


def resolve_threshold_counts(thresholds: Sequence[int | None]) -> Int32:
    """Convert `BoostingRun.thresholds` to int32 for the C++ core, (len(thresholds),).

    None, which stands for all thresholds, becomes 0. Numbers above 255 become 255.
    """
    return np.array([min(one or 0, MISSING) for one in thresholds], dtype=np.int32)


def _divide_by_mean(weight: Float64) -> Float64:
    """Return positive weights, (n,), divided by their mean.

    The result of a row has the same bits whatever the order of the rows.
    """
    return scale_weights(weight, len(weight) / compute_exact_sum(divide_by_largest(weight)))


def start_run(
    settings: Settings,
    grower: BinnedGrower,
    features: DenseOrSparseFeatures,
    y: NDArray[Any],
    weight: Float64 | None,
    thresholds: Sequence[int | None],
    seed: int,
    offset: Float64 | None = None,
    groups: NDArray[Any] | None = None,
) -> tuple[BoostingRun, Float64]:
    """Make a run before its first round, with random keys and start scores of the rows.

    Parameters
    ----------
    settings : Settings
        Parameters of the rounds.
    grower : BinnedGrower
        Grows trees on the binned training rows.
    features : DenseFeatures or SparseFeatures
        The features of the training rows, from which the random keys of rows are computed.
    y : ndarray of shape (n,), or (n, n_targets)
        Targets: numbers or class codes.
    weight : ndarray of shape (n,), or None
        Weights of the rows, on any scale; None: 1.
    thresholds : sequence of (int or None)
        Number of random thresholds per feature that the tree of a round may split at, used in turn;
        an entry None stands for all thresholds.
    seed : int
        Seed of the random draws.
    offset : ndarray of shape (n_outputs, n), or None
        Offsets of the rows; None: no offsets.
    groups : ndarray of shape (n,), or None
        Group of each row; the rows of a group are in-bag together. None: each row is a group.

    Returns
    -------
    run : BoostingRun
        Binned rows, start scores, keys and settings; no tree is grown yet.
    start : ndarray of shape (n_outputs,)
        Its constant start scores, without offsets.
    """
    if weight is not None:
        weight = _divide_by_mean(weight)
    # Compute the keys first, as this needs the most memory.
    loss, key_targets, order = settings.loss, y, grower.checked_feature_order
    if isinstance(loss, MultiOutputLoss):
        loss = loss.with_training_rows(y.T, weight, hash_samples(*features.tables, order=order))
        settings, key_targets = replace(settings, loss=loss), loss.reorder_columns(y)
    if groups is None:
        keys = compute_content_keys(*features.tables, key_targets, weight=weight, order=order)
    else:
        _, group = number_groups(groups)
        hashes = hash_samples(*features.tables, key_targets, order=order)
        keys = compute_group_keys(hashes, group, weight)[group]
    start = loss.compute_start(y.T, weight, offset)
    scores = make_constant_scores(start, len(y), offset)
    targets = loss.encode_targets(y.T)
    run = BoostingRun(settings, grower, targets, weight, keys, thresholds, scores, seed, offset)
    run.high_cardinality = HighCardinalityFeatures.find(
        features, grower.bins, run.make_category_target(), keys
    )
    return run, start
