"""Standard errors of boosted scores if the training rows are out-of-core or distributed.

The model is compared with three fits, each to a third of the rows; see
`certree.ensembles.standard_errors`. They are made one after the other on the ranks of the model's
fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.ensembles.distributed_rounds import make_start_scores
from certree.ensembles.evaluation import average_scores
from certree.ensembles.out_of_core_folds import FoldFit, make_fold_run, order_rows
from certree.ensembles.rounds import UNWATCHED, advance
from certree.ensembles.staged import make_constant_scores
from certree.ensembles.standard_errors import (
    StandardErrors,
    compute_root_mean_square,
    scale_standard_errors,
)
from certree.grow.bins import Bins
from certree.grow.code_trees import (
    convert_codes_to_floats,
    convert_trees_to_bin_codes,
    iterate_row_blocks,
)
from certree.interface.arrays import Float64, Int32, divide_by_largest
from certree.out_of_core.exact_sums import exact_sum, round_sum
from certree.out_of_core.executors import Executor
from certree.out_of_core.ranks import Rank
from certree.stats.category_statistics import (
    find_high_cardinality_features,
    list_categories,
)
from certree.tree import Trees

# Numbers of a row and output that are compared at a time.
_NUMBERS_PER_ROW = 16


def compute_standard_errors(
    model: Any, executor: Executor, thirds: Sequence[FoldFit], deviation: Float64, bins: Bins
) -> StandardErrors:
    """Fit boosted trees to each third of the rows, and compute the standard errors of the model.

    Parameters
    ----------
    model : BoostedTrees
        The model, which has its trees.
    executor : Executor
        Calls functions in the processes (ranks) that hold the rows and have grown the model's trees.
    thirds : sequence of three FoldFit
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


def fit_third(rank: Rank, number: int, third: FoldFit, n_members: int, n_rounds: int) -> None:
    """Fit boosted trees to the rows of one third, and store their scores of all training rows.

    It runs in each process that holds rows; the scores are stored in `rank.third_scores`.

    Parameters
    ----------
    rank : Rank
        Rows of this process, whose `state` has the boosting runs of the model.
    number : int
        Number of the third: 0, 1 or 2. Call the function for 0, 1 and 2 in this order.
    third : FoldFit
        Start of the rounds: folds of the third, grower, category statistics and start scores.
    n_members : int
        Number of runs (sequences of rounds) that are averaged; run k has the seed of the model plus k.
    n_rounds : int
        Number of rounds.
    """
    rows, model_run = rank.rows, rank.state[0]
    storage, (order, n_own) = rows.storage, order_rows(rank, third)
    with storage.hold_core_arrays():
        run, runs = make_fold_run(rank, third, order, n_own), []
        for member in range(n_members):
            scores = make_start_scores(storage, rows.n, third.start, run.offset)
            runs.append(run.copy_without_trees(scores=scores, seed=model_run.seed + member))
        advance(runs, 0, n_rounds, UNWATCHED, rank.links)
    of_rows = storage.allocate((len(third.start), rows.n), np.float64)
    for block in iterate_row_blocks(rows.n, len(third.start)):
        of_rows[:, order[block]] = average_scores(runs, block)
    rank.third_scores = [*rank.third_scores[:number], of_rows]


def score_model(
    rank: Rank, code_trees: Trees, start: Float64, categories: dict[int, Int32]
) -> Float64:
    """Compute scores and deviations of the model for the training rows of one process.

    The deviation of a row is the sum, over the trees, of the standard deviation of its leaf's value
    over the prunings of the tree.

    Parameters
    ----------
    rank : Rank
        Rows of the process, for which `fit_third` has been called for each third. Its
        `model_scores` and `deviations` are set.
    code_trees : Trees
        Trees of the model with bin codes as thresholds. The values of their m nodes, (m, 2 *
        n_outputs), are first those of the model, and then their standard deviations over the
        prunings of the tree (subtrees with the same root).
    start : ndarray of shape (n_outputs,)
        Constant start scores of the model.
    categories : dict of int to ndarray of int32
        For each feature of `JoinedRows.categories`, by its index and in its order: the category
        code that each of the row's indices stands for. Trees have these codes in place of bin codes.

    Returns
    -------
    ndarray of float64, shape (2 * n_outputs + 1,)
        For each output the largest deviation of a row; for each output the largest absolute
        difference between two of the scores that are compared on a row (of the model, and of the
        two fits to thirds without the row); and the largest weight.
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

    The deviation of a row is the sum, over the trees, of the standard deviation of its leaf's value
    over the prunings of the tree; `score_model` stores it in `rank.deviations`. The differences are
    those between the scores of the model and of the two fits to thirds without the row, pair by
    pair. Sums are exact, so that they do not depend on how rows are distributed.

    Parameters
    ----------
    rank : Rank
        Rows of the process, for which `score_model` has been called.
    largest : ndarray of float64, shape (2 * n_outputs + 1,)
        Largest numbers over all ranks, as `score_model` returns them, by which numbers and weights
        are divided before they are summed.

    Returns
    -------
    ndarray of int (object), shape (2 * n_outputs, 2)
        For each output the weighted sum of squares, and the sum of weights, as integer multiples of
        2^-1126 (see `exact_sum`): first of deviations, then of differences. Both sums are of the
        divided numbers; `compute_root_mean_square` multiplies by the largest one again.
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
    rank: training rows of one process, for which `fit_third` and `score_model` have stored scores.
    Yield the slice of the block, the differences of the three pairs, (3, n_outputs, b), and the
    weights, (b,).
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
