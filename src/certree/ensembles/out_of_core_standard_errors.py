"""Standard errors of boosted scores if the training rows are out-of-core or distributed.

The model is compared with three fits, each to a third of the rows; see
`certree.ensembles.standard_errors`. They are made one after the other on the ranks of the model's
fit.
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
from certree.ensembles.evaluation import average_scores
from certree.ensembles.losses import Loss
from certree.ensembles.out_of_core_categories import compute_category_statistics
from certree.ensembles.rounds import UNWATCHED, Rounds, advance, resolve_threshold_counts
from certree.ensembles.staged import make_constant_scores
from certree.ensembles.standard_errors import (
    StandardErrors,
    compute_root_mean_square,
    expect_three_thirds,
    scale_standard_errors,
)
from certree.ensembles.start_scores import TargetSums, TrainingTargets, sum_block
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins, UInt8
from certree.grow.code_trees import (
    convert_codes_to_floats,
    convert_trees_to_bin_codes,
    iterate_row_blocks,
)
from certree.interface.arrays import Float64, Int32, divide_by_largest
from certree.out_of_core.exact_sums import exact_sum, round_sum
from certree.out_of_core.executors import Executor, ExecutorWrapper
from certree.out_of_core.joined_rows import transpose_codes
from certree.out_of_core.ranks import Rank
from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.train_calibration_split import select_training_set
from certree.out_of_core.validation_split import FoldAssignment, ValidationSplit, assign_to_folds
from certree.rows.folds import Indices
from certree.stats.category_statistics import (
    CategoryStatistics,
    find_high_cardinality_features,
    list_categories,
)
from certree.tree import Trees

# Numbers of a row and output that are compared at a time.
_NUMBERS_PER_ROW = 16


def assign_to_thirds(
    executor: Executor, encoder: Any, split: ValidationSplit | None, seed: int
) -> FoldAssignment:
    """Assign the training rows to thirds, each of which gets a fit of its own, for standard errors.

    The assignment is that of `Training.split_folds` for the rows in one table.

    Parameters
    ----------
    executor : Executor
        Reads the rows.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    split : ValidationSplit or None
        Validation rows, which are in no third; None: there are none.
    seed : int
        Seed of the assignment.

    Returns
    -------
    FoldAssignment
        Number of the third, 0, 1 or 2, of each row.

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


class FoldExecutor(ExecutorWrapper):
    """An executor whose `reduce` calls functions for the training rows of one fold only.

    Parameters
    ----------
    executor : Executor
        Holds all rows, in blocks with the field `fold`.
    fold : int
        Number of the fold.
    """

    def __init__(self, executor: Executor, fold: int) -> None:
        super().__init__(executor)
        self.reduce = partial(executor.reduce, _call_on_fold, fold)


def _call_on_fold(block: RowBlock, fold: int, f: Any, *arguments: Any) -> Any:
    """Return ``f(rows, *arguments)``, where rows is a block of those training rows that are in a fold.

    block: rows with the field `fold`; fold: number of the fold.
    """
    return f(block.select_training_rows(block.fold == fold), *arguments)


@dataclass(frozen=True, slots=True, eq=False)
class ThirdFit:
    """Start of a boosted fit to one third of the rows: grower, category statistics and start scores.

    Three such fits are compared with the model to estimate its standard errors.

    Parameters
    ----------
    grower : BinnedGrower
        Grows trees on rows that are binned as those of the model; it has no rows.
    statistics : CategoryStatistics or None
        Mean targets of categories over the rows of the third, in features with many categories,
        which the grower has as further features; None: there are none.
    start : ndarray of float64, shape (n_outputs,)
        Constant start scores, to which offsets are added.
    """

    grower: BinnedGrower
    statistics: CategoryStatistics | None
    start: Float64


def prepare_thirds(
    model: Any,
    executor: Executor,
    loss: Loss,
    grower: BinnedGrower,
    statistics: CategoryStatistics | None,
    n_targets: int,
) -> list[ThirdFit]:
    """Prepare a boosted fit to each third of the rows: start scores and category statistics.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    executor : Executor
        Holds the rows, in blocks whose field `fold` is the number of the third.
    loss : Loss
        The loss that rounds minimize.
    grower : BinnedGrower
        Grows trees on the binned rows, without statistics of categories.
    statistics : CategoryStatistics or None
        Statistics of categories over all rows; the same features get statistics over each third.
    n_targets : int
        Number of targets.

    Returns
    -------
    list of three ThirdFit
        One for each third, before its first round.
    """
    thirds, has_offset = [], model._has_offset
    for k in range(3):
        rows: Any = FoldExecutor(executor, k)
        sums: TargetSums = rows.reduce(sum_block, is_classifier(model))
        start = loss.find_start(TrainingTargets(rows, sums, n_targets, has_offset))
        third_grower, third_statistics = grower, None
        if statistics is not None:
            third_statistics = compute_category_statistics(
                rows, loss, grower.bins, start if has_offset else None, statistics.features
            )
            no_codes = np.zeros((third_statistics.n_columns, 0), dtype=np.uint8)
            third_grower = third_statistics.extend_grower(grower, no_codes)
        thirds.append(ThirdFit(third_grower, third_statistics, start))
    return thirds


def compute_standard_errors(
    model: Any, executor: Executor, thirds: Sequence[ThirdFit], deviation: Float64, bins: Bins
) -> StandardErrors:
    """Fit boosted trees to each third of the rows, and compute the standard errors of the model.

    Parameters
    ----------
    model : BoostedTrees
        The model, which has its trees.
    executor : Executor
        Calls functions in the processes (ranks) that hold the rows and have grown the model's trees.
    thirds : sequence of three ThirdFit
        Start of the rounds on each third.
    deviation : ndarray of float64, shape (m, n_outputs)
        Standard deviation of each node's value over the prunings of its tree (subtrees with the
        same root).
    bins : Bins
        Bin edges of the features, without statistics of categories.

    Returns
    -------
    StandardErrors
        Deviations of nodes and their scale, from which `predict_std` computes standard errors. They are
        those of `ThirdFits.compute_standard_errors` for the same rows in one table.
    """
    n_members, n_outputs = model._count_members(), len(model.start_)
    for k, third in enumerate(thirds):
        executor.run_on_ranks(fit_third, k, third, n_members, model.n_iter_)
    both = model.trees_.with_value(np.concatenate([model.trees_.value, deviation], axis=1))
    categories = {j: list_categories(bins, j) for j in find_high_cardinality_features(bins)}
    code_trees = convert_trees_to_bin_codes(both, bins, categories)
    largest = executor.gather_from_ranks(score_model, code_trees, model.start_, categories)
    most = np.max(largest, axis=0)
    sums: NDArray[Any] = sum(executor.gather_from_ranks(sum_squares, most))
    means = [
        compute_root_mean_square(float(of_output), round_sum(squares), round_sum(weight))
        for of_output, (squares, weight) in zip(most[:-1], sums, strict=True)
    ]
    size, difference = np.array(means[:n_outputs]), np.array(means[n_outputs:])
    return scale_standard_errors(deviation, size, difference)


def fit_third(rank: Rank, number: int, third: ThirdFit, n_members: int, n_rounds: int) -> None:
    """Fit boosted trees to the rows of one third, and store their scores of all training rows.

    It runs in each process that holds rows; the scores are stored in `rank.third_scores`.

    Parameters
    ----------
    rank : Rank
        Rows of this process, whose `state` has the boosting runs of the model.
    number : int
        Number of the third: 0, 1 or 2.
    third : ThirdFit
        Start of the rounds.
    n_members : int
        Number of runs (sequences of rounds) that are averaged; run k has the seed of the model plus k.
    n_rounds : int
        Number of rounds.
    """
    rows, model_run = rank.rows, rank.state[0]
    assert rows.fold is not None
    is_own = rows.fold == number
    order = np.concatenate([np.flatnonzero(is_own), np.flatnonzero(~is_own)])
    n_own, storage = int(np.count_nonzero(is_own)), rows.storage

    def take(values: NDArray[Any], n: int = rows.n) -> NDArray[Any]:
        """Copy the first n rows of an array in an order that begins with the rows of this third.

        values: array whose last axis is that of the rows; n: number of rows to copy. Return an
        array in the storage of the rows, with n as its last dimension.
        """
        taken = storage.allocate((*values.shape[:-1], n), values.dtype)
        for into, column in zip(np.atleast_2d(taken), np.atleast_2d(values), strict=True):
            np.take(column, order[:n], out=into, mode="clip")
        return taken

    with storage.hold_core_arrays():
        keys = take(rows.keys, n_own)
        codes = _take_codes(rank, third, order, keys)
        by_row = np.zeros((0, 0), np.uint8)
        if not resolve_threshold_counts(model_run.thresholds).any():
            by_row = transpose_codes(codes, storage)
        grower = replace(third.grower, bins=third.grower.bins.with_codes(codes, by_row))
        offset = None if rows.offset is None else take(rows.offset[:, : rows.n])
        run: Rounds = model_run.copy_without_trees(
            grower=replace(grower, n_jobs=model_run.grower.n_jobs),
            y=take(model_run.y[..., : rows.n]),
            weight=None if rows.weight is None else take(rows.weight[: rows.n]),
            keys=keys,
            values=None,
        )
        runs = []
        for member in range(n_members):
            scores = make_start_scores(storage, rows.n, third.start, offset)
            seed = model_run.seed + member
            runs.append(run.copy_without_trees(scores=scores, seed=seed, updates_scores=True))
        advance(runs, 0, n_rounds, UNWATCHED, rank.links)
    of_rows = storage.allocate((len(third.start), rows.n), np.float64)
    for block in iterate_row_blocks(rows.n, len(third.start)):
        of_rows[:, order[block]] = average_scores(runs, block)
    rank.third_scores = [*rank.third_scores[:number], of_rows]


def _take_codes(rank: Rank, third: ThirdFit, order: Indices, keys: NDArray[np.uint64]) -> UInt8:
    """Return the bin codes of all rows of a process, those of one third first, (p + n_columns, n).

    The last n_columns features are the category statistics of the third. rank: rows of the process;
    order: indices of the rows, those of the third first; keys: random keys of the rows of the
    third.
    """
    rows, statistics = rank.rows, third.statistics
    n_columns = 0 if statistics is None else statistics.n_columns
    p = third.grower.bins.n_features - n_columns
    codes = rows.storage.allocate((p + n_columns, rows.n), np.uint8)
    for j in range(p):
        np.take(rows.codes[j], order, out=codes[j], mode="clip")
    if statistics is None:
        return codes
    many = find_high_cardinality_features(third.grower.bins)
    positions = [many.index(j) for j in statistics.features]
    for block in iterate_row_blocks(rows.n, len(codes)):
        indices = rows.categories[:, order[block]][positions]
        codes[p:, block] = statistics.encode_rows(indices, keys[block])
    return codes


def score_model(
    rank: Rank, code_trees: Trees, start: Float64, categories: dict[int, Int32]
) -> Float64:
    """Compute scores of the model, and sums of deviations, for the training rows of one process.

    Parameters
    ----------
    rank : Rank
        Rows of the process. Its `model_scores` and `deviations` are set.
    code_trees : Trees
        Trees of the model with bin codes, whose values (m, 2 * n_outputs) are followed by
        deviations.
    start : ndarray of shape (n_outputs,)
        Constant start scores of the model.
    categories : dict of int to ndarray of int32
        Category codes of the features in which trees have categories in place of bin codes, in the
        order of `JoinedRows.categories`.

    Returns
    -------
    ndarray of float64, shape (2 * n_outputs + 1,)
        Largest sum of deviations for each output, largest absolute difference between two of the
        scores that are compared, and largest weight.
    """
    rows, n_outputs = rank.rows, len(start)
    both = rows.storage.allocate((2 * n_outputs, rows.n), np.float64)
    starts, p = np.append(start, np.zeros(n_outputs)), code_trees.n_features
    values = [np.append(codes, np.nan).astype(np.float32) for codes in categories.values()]
    for block in iterate_row_blocks(rows.n, p):
        X = convert_codes_to_floats(np.ascontiguousarray(rows.codes[:p, block].T))
        for j, codes, index in zip(categories, values, rows.categories[:, block], strict=False):
            X[:, j] = codes[index]
        constant = make_constant_scores(starts, len(X))
        both[:, block] = code_trees.add(constant, X, rank.state[0].grower.n_jobs)
    if rows.offset is not None:
        both[:n_outputs] += rows.offset[:, : rows.n]
    rank.model_scores, rank.deviations = both[:n_outputs], both[n_outputs:]
    most = np.zeros(2 * n_outputs + 1)
    for block, compared, weight in _iterate_compared(rank):
        largest = [np.abs(rank.deviations[:, block]).max(axis=1, initial=0.0)]
        largest.append(np.abs(compared).max(axis=(0, 2), initial=0.0))
        np.maximum(most, [*np.concatenate(largest), weight.max(initial=0.0)], out=most)
    return most


def sum_squares(rank: Rank, largest: Float64) -> NDArray[np.object_]:
    """Sum squared deviations, squared differences of scores, and weights over a process's rows.

    Sums are exact, so that they do not depend on how rows are distributed.

    Parameters
    ----------
    rank : Rank
        Rows of the process, for which `score_model` has been called.
    largest : ndarray of float64, shape (2 * n_outputs + 1,)
        Largest numbers over all ranks, as `score_model` returns them, by which numbers and weights
        are divided.

    Returns
    -------
    ndarray of int (object), shape (2 * n_outputs, 2)
        For each output the weighted sum of squares, and the sum of weights, as integer multiples of
        2^-1126 (see `exact_sum`): first of deviations, then of differences.
    """
    n_outputs = len(rank.deviations)
    sums = np.zeros((2 * n_outputs, 2), dtype=object)
    for block, compared, weight in _iterate_compared(rank):
        share = divide_by_largest(weight, float(largest[-1]))
        total = exact_sum(share)
        columns = [row[None] for row in rank.deviations[:, block]]
        columns += [compared[:, k] for k in range(n_outputs)]
        for into, numbers, most in zip(sums, columns, largest, strict=False):
            into[1] += len(numbers) * total
            if most > 0:
                into[0] += sum(
                    exact_sum(share * divide_by_largest(row, float(most)) ** 2) for row in numbers
                )
    return sums


def _iterate_compared(rank: Rank) -> Any:
    """Yield, for blocks of b rows, the differences of scores between models, and the rows' weights.

    On each row, the two fits to thirds without the row, and the model, are compared pair by pair.
    rank: rows of one process. Yield the slice of the block, differences (3, n_outputs, b), and
    weights (b,).
    """
    rows = rank.rows
    for block in iterate_row_blocks(rows.n, _NUMBERS_PER_ROW * len(rank.deviations)):
        fold = np.asarray(rows.fold)[block]
        thirds = np.stack([scores[:, block] for scores in rank.third_scores])
        row = np.arange(len(fold))
        first, second = (thirds[(fold + k) % 3, :, row].T for k in (1, 2))
        model = rank.model_scores[:, block]
        compared = np.stack([first - second, first - model, second - model])
        weight = np.ones(len(fold)) if rows.weight is None else rows.weight[block]
        yield block, compared, weight
