"""Boosting on some of the rows of an out-of-core fit: on thirds of them, or on the earlier rows.

The rows of a fit have the number of a fold, `third + 3 * set`: the third of the row for standard
errors (0 without them), and its set in the order of time (`LATEST`, `EARLIER` or `GAP`; 0 without
times). Runs on some folds are made on the ranks of the model's fit and share its bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.ensembles.distributed_rounds import make_start_scores
from certree.ensembles.losses import Loss
from certree.ensembles.out_of_core_categories import compute_category_statistics
from certree.ensembles.rounds import UNWATCHED, BoostingRun, advance, resolve_threshold_counts
from certree.ensembles.standard_errors import expect_three_thirds
from certree.ensembles.start_scores import TargetSums, TrainingTargets, sum_block
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import UInt8
from certree.grow.code_trees import iterate_row_blocks
from certree.interface.arrays import Float64
from certree.out_of_core.executors import Executor, ExecutorWrapper
from certree.out_of_core.joined_rows import transpose_codes
from certree.out_of_core.ranks import Rank
from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.time_split import TimeArguments, read_times
from certree.out_of_core.train_calibration_split import select_training_set
from certree.out_of_core.validation_split import FoldAssignment, ValidationSplit, assign_to_folds
from certree.rows.folds import Indices
from certree.rows.time_order import EARLIER, GAP, LATEST
from certree.stats.category_statistics import CategoryStatistics, find_high_cardinality_features

# Folds of each third, and those of the earlier and of the latest rows.
THIRDS = [tuple(third + 3 * rows for rows in (LATEST, EARLIER, GAP)) for third in range(3)]
EARLIER_ROWS = tuple(third + 3 * EARLIER for third in range(3))
LATEST_ROWS = tuple(third + 3 * LATEST for third in range(3))


def assign_to_thirds(
    executor: Executor, encoder: Any, split: ValidationSplit | None, seed: int
) -> FoldAssignment:
    """Assign the training rows to thirds, each of which gets a fit of its own, for standard errors.

    The assignment is that of `Training.split_folds` for the rows in one table.

    Parameters
    ----------
    executor : Executor
        Reads the rows. Its blocks are replaced by blocks of type `RowsToAssign`.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    split : ValidationSplit or None
        Validation rows, which are in no third; None: there are none.
    seed : int
        Seed of the assignment.

    Returns
    -------
    FoldAssignment
        Number of the third, 0, 1 or 2, of each training row.

    Raises
    ------
    ValueError
        If there are fewer than three rows, or groups.
    """
    rows: Any = executor
    if split is not None:
        rows = select_training_set(executor, encoder, split.sorter, split.masks)
    thirds = assign_to_folds(rows, encoder, 3, np.random.RandomState(seed))
    every = np.concatenate([np.zeros(0, np.uint8), *thirds.folds])
    expect_three_thirds(int(np.count_nonzero(np.bincount(every, minlength=3))), len(every))
    return thirds


def assign_to_periods(
    executor: Executor,
    encoder: Any,
    order: TimeArguments,
    thirds: FoldAssignment | None,
    seed: int,
) -> FoldAssignment:
    """Assign the training rows by time: to the earlier rows, the gap, and the latest fifth.

    Parameters
    ----------
    executor : Executor
        Reads the rows. Its blocks are replaced by blocks of type `RowsToAssign`.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    order : TimeArguments
        Name of the column of times, and size of the gap (rows that are left out between earlier and
        latest ones: their number, or the time that they span).
    thirds : FoldAssignment or None
        Result of `assign_to_thirds` for the same seed, which is kept in the folds; None: no thirds.
    seed : int
        Seed of the assignment.

    Returns
    -------
    FoldAssignment
        Number of the fold of each row, ``third + 3 * set``: its third (0 without thirds), and its
        set, 0 for the latest rows, 1 for the earlier ones, 2 for the gap.

    Raises
    ------
    ValueError, TypeError
        If there is no such column, its values are no times, a time is missing, all times are equal,
        or the gap leaves no earlier rows.
    """
    times = read_times(executor, encoder, order)
    timed, state = times.attach(executor, encoder), np.random.RandomState(seed)
    found = assign_to_folds(timed, encoder, 3, state, times.rows.gap)
    folds = [3 * sets for sets in found.folds]
    if thirds is not None:
        folds = [sets + third for sets, third in zip(folds, thirds.folds, strict=True)]
    return replace(found, folds=folds)


class FoldExecutor(ExecutorWrapper):
    """An executor whose `reduce` calls functions for the training rows of some folds only.

    Parameters
    ----------
    executor : Executor
        Holds all rows, in blocks with the field `fold`, the number of each row's fold.
    folds : tuple of int
        Numbers of the folds.
    """

    def __init__(self, executor: Executor, folds: tuple[int, ...]) -> None:
        super().__init__(executor)
        self.reduce = partial(executor.reduce, _call_on_folds, folds)


def _call_on_folds(block: RowBlock, folds: tuple[int, ...], f: Any, *arguments: Any) -> Any:
    """Return ``f(rows, *arguments)``, where rows is a block of those training rows that are in folds.

    block: rows with the field `fold`, the number of each row's fold; folds: numbers of the folds.
    """
    return f(block.select_training_rows(np.isin(block.fold, folds)), *arguments)


@dataclass(frozen=True, slots=True, eq=False)
class FoldFit:
    """Start of a boosted fit to some folds: grower, category statistics and start scores.

    Parameters
    ----------
    folds : tuple of int
        Numbers of the folds.
    grower : BinnedGrower
        Grows trees on rows that are binned as those of the model; it has no rows.
    statistics : CategoryStatistics or None
        Mean targets of categories over the rows of the folds, in features with many categories,
        which the grower has as further features; None: there are none.
    start : ndarray of float64, shape (n_outputs,)
        Constant start scores, to which offsets are added.
    """

    folds: tuple[int, ...]
    grower: BinnedGrower
    statistics: CategoryStatistics | None
    start: Float64


def prepare_fold_fits(
    model: Any,
    executor: Executor,
    loss: Loss,
    grower: BinnedGrower,
    statistics: CategoryStatistics | None,
    n_targets: int,
    folds: Sequence[tuple[int, ...]],
) -> list[FoldFit]:
    """Prepare boosted fits to the rows of some folds: start scores and category statistics.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    executor : Executor
        Holds the rows, in blocks with the field `fold`, the number of each row's fold.
    loss : Loss
        The loss that rounds minimize.
    grower : BinnedGrower
        Grows trees on the binned rows, without statistics of categories.
    statistics : CategoryStatistics or None
        Mean targets of categories over all rows; the same features get them over the folds' rows.
    n_targets : int
        Number of targets.
    folds : sequence of tuple of int
        For each fit the numbers of its folds.

    Returns
    -------
    list of FoldFit
        One for each entry of `folds`, before its first round.
    """
    fits, has_offset = [], model._has_offset
    for numbers in folds:
        rows: Any = FoldExecutor(executor, numbers)
        sums: TargetSums = rows.reduce(sum_block, is_classifier(model))
        start = loss.find_start(TrainingTargets(rows, sums, n_targets, has_offset))
        fold_grower, fold_statistics = grower, None
        if statistics is not None:
            fold_statistics = compute_category_statistics(
                rows, loss, grower.bins, start if has_offset else None, statistics.features
            )
            no_codes = np.zeros((fold_statistics.n_columns, 0), dtype=np.uint8)
            fold_grower = fold_statistics.extend_grower(grower, no_codes)
        fits.append(FoldFit(numbers, fold_grower, fold_statistics, start))
    return fits


def order_rows(
    rank: Rank, fit: FoldFit, others: tuple[int, ...] | None = None
) -> tuple[Indices, int]:
    """Return the indices of rows of a process, those of a fit first, and the number of the latter.

    rank: the rows of the process, with the number of each row's fold; fit: names the folds whose
    rows come first; others: numbers of the folds whose rows follow; None: all other rows do.
    """
    fold = np.asarray(rank.rows.fold)
    is_own = np.isin(fold, fit.folds)
    is_other = ~is_own if others is None else np.isin(fold, others)
    return np.concatenate([np.flatnonzero(is_own), np.flatnonzero(is_other)]), int(is_own.sum())


def make_fold_run(rank: Rank, fit: FoldFit, order: Indices, n_own: int) -> BoostingRun:
    """Return a run on some rows of a process, before its first round and without start scores.

    Call it in the context ``rank.rows.storage.hold_core_arrays()``.

    Parameters
    ----------
    rank : Rank
        Rows and state of the process; the state is a list of the runs of the model.
    fit : FoldFit
        Grower and category statistics of the run.
    order : ndarray of intp, shape (m,)
        Indices of the rows: those that grow trees, and then those that get scores only.
    n_own : int
        Number of rows that grow trees.

    Returns
    -------
    BoostingRun
        A run with copies of the m rows; the caller sets its field `scores`.
    """
    rows, model_run, storage = rank.rows, rank.state[0], rank.rows.storage

    def take(values: NDArray[Any], n: int = len(order)) -> NDArray[Any]:
        """Copy the entries of the first n rows of `order`, and return them as a new array.

        `order`, indices of rows, and `storage` are variables of the enclosing function. `storage`,
        that of the process's rows, allocates the new array: in memory, or in a file if the rows are
        in files. values: array whose last axis is that of the rows; n: by default all. The last
        axis of the result has n entries.
        """
        taken = storage.allocate((*values.shape[:-1], n), values.dtype)
        for into, column in zip(np.atleast_2d(taken), np.atleast_2d(values), strict=True):
            np.take(column, order[:n], out=into, mode="clip")
        return taken

    keys = take(rows.keys, n_own)
    codes = _take_codes(rank, fit, order, keys)
    by_row = np.zeros((0, 0), np.uint8)
    if not resolve_threshold_counts(model_run.thresholds).any():
        by_row = transpose_codes(codes, storage)
    grower = replace(fit.grower, bins=fit.grower.bins.with_codes(codes, by_row))
    offset = None if rows.offset is None else take(rows.offset[:, : rows.n])
    return model_run.copy_without_trees(
        grower=replace(grower, n_jobs=model_run.grower.n_jobs),
        y=take(model_run.y[..., : rows.n]),
        weight=None if rows.weight is None else take(rows.weight[: rows.n]),
        keys=keys,
        values=None,
        offset=offset,
        updates_scores=True,
    )


def _take_codes(rank: Rank, fit: FoldFit, order: Indices, keys: NDArray[np.uint64]) -> UInt8:
    """Return the bin codes of some rows of a process, (p + n_columns, m).

    They are the codes of the p features, and of n_columns statistics of categories (weights and mean
    targets), which are features as well. rank: rows of the process; fit: has the statistics; order:
    indices of the rows, (m,), those of the fit first; keys: random key of each row of the fit,
    (n_fit,), which assigns it to a fold of the statistics. The mean target in a row of the fit leaves
    out the rows of its fold; that in any other row is over all rows of the fit.
    """
    rows, statistics = rank.rows, fit.statistics
    n_columns = 0 if statistics is None else statistics.n_columns
    p = fit.grower.bins.n_features - n_columns
    codes = rows.storage.allocate((p + n_columns, len(order)), np.uint8)
    for j in range(p):
        np.take(rows.codes[j], order, out=codes[j], mode="clip")
    if statistics is None:
        return codes
    many = find_high_cardinality_features(fit.grower.bins)
    positions = [many.index(j) for j in statistics.features]
    for block in iterate_row_blocks(len(order), len(codes)):
        indices = rows.categories[:, order[block]][positions]
        codes[p:, block] = statistics.encode_rows(indices, keys[block])
    return codes


def start_round_selection(rank: Rank, fit: FoldFit, rate_factor: int) -> None:
    """Start a boosting run on the earlier rows of a process; the latest rows are its validation set.

    Fits with `time=` call it to choose the number of rounds.

    Parameters
    ----------
    rank : Rank
        Rows and state of the process; the state is a list of the runs of the model. The new run is
        stored in its attribute `selection`.
    fit : FoldFit
        Start of the rounds on the earlier rows.
    rate_factor : int
        Factor of the learning rate.
    """
    storage = rank.rows.storage
    order, n_own = order_rows(rank, fit, LATEST_ROWS)
    with storage.hold_core_arrays():
        run = make_fold_run(rank, fit, order, n_own)
        rate = rate_factor * run.settings.learning_rate
        settings = replace(run.settings, learning_rate=rate)
        rank.selection = run.copy_without_trees(
            settings=settings,
            scores=make_start_scores(storage, len(order), fit.start, run.offset),
        )


def advance_selection(rank: Rank, first: int, last: int) -> float:
    """Make rounds of the run of `start_round_selection`, and return its validation loss.

    Only fits with `time=` choose the number of rounds in this way: the run is fitted to the earlier
    rows, and the latest rows are its validation set. rank: rows of one process, and its run; first,
    last: the run gets the rounds first, ..., last - 1. Return the weighted sum of the losses of the
    validation rows of all processes after these rounds. The new trees are dropped.
    """
    run: BoostingRun = rank.selection
    with rank.rows.storage.hold_core_arrays():
        advance([run], first, last, UNWATCHED, rank.links)
    is_summed = rank.links is None or not run.settings.loss.is_custom
    loss = run.losses[-1][-1] if is_summed else run.sum_validation_losses(rank.links)
    rank.selection = run.copy_without_trees()  # frees the trees
    return float(loss)


def end_round_selection(rank: Rank) -> None:
    """Free the memory of the boosting run that `start_round_selection` has stored in `rank`."""
    rank.selection = None


@dataclass(frozen=True, slots=True, eq=False)
class RoundSelection:
    """A boosting run on the earlier rows of a distributed fit, which is validated on the latest rows.

    Fits with `time=` choose their number of rounds by it. The rows are in the processes of the
    executor (ranks); the run that the methods take and return stands for the runs there.

    Parameters
    ----------
    executor : Executor
        Calls functions in the processes that hold rows; `start_rounds` has been called there.
    fit : FoldFit
        Start of the rounds on the earlier rows.
    run : BoostingRun
        The run of the model, without rows, of which `start_runs` returns a copy.
    """

    executor: Executor
    fit: FoldFit
    run: BoostingRun

    def start_runs(self, rate_factor: int) -> list[BoostingRun]:
        """Start the run, and return it in a list, as `choose_rounds` takes it.

        It has no rows, and stands for the run in the processes that hold rows. rate_factor: factor
        of the learning rate.
        """
        self.executor.run_on_ranks(start_round_selection, self.fit, rate_factor)
        return [self.run.copy_without_trees()]

    def advance(self, runs: list[BoostingRun], first: int, last: int) -> None:
        """Make rounds first, ..., last - 1 of the run, and append its loss to `BoostingRun.losses`.

        The loss is the weighted sum over the latest rows after the last round. runs: what
        `start_runs` has returned; the rounds are made in the processes that hold rows.
        """
        (run,) = runs
        loss = self.executor.run_on_ranks(advance_selection, first, last)
        run.losses.append(np.array([loss]))
