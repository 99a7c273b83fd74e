"""Rounds of boosting on the ranks of an out-of-core or distributed fit.

Each machine, a rank, holds some of the rows as one table. `Executor.run_on_ranks` calls the
functions of this module there. The runs on the client have trees, but no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.ensembles.evaluation import (
    Evaluation,
    Score,
    ScorerScore,
    average_scores,
    count_strata,
)
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.ensembles.rounds import (
    BoostingRun,
    Settings,
    Watch,
    advance,
    resolve_threshold_counts,
)
from certree.ensembles.scored_sample import (
    KeySample,
    compute_key_limits,
    count_classes,
    count_sampled_rows,
    draw_smallest_keys,
    find_sampled_rows,
    get_strata,
    merge_samples,
)
from certree.grow.code_trees import (
    convert_codes_to_floats,
    convert_trees_to_bin_codes,
    iterate_row_blocks,
)
from certree.interface.arrays import Float64, Int64, UInt64
from certree.out_of_core.executors import Executor
from certree.out_of_core.joined_rows import JoinedRows, Storage
from certree.out_of_core.ranks import Rank
from certree.out_of_core.row_block import raise_for_changed_rows
from certree.tree import Trees

# Time of the rounds that a cluster makes in one call; as much is lost with a worker.
_SECONDS_AT_ONCE = 10.0


@dataclass(frozen=True, slots=True)
class NewRounds:
    """Trees and scores of the rounds that one call of `make_rounds` has made, in each run of a fit.

    Attributes
    ----------
    scores : ndarray of shape (n_rounds, 2)
        Negated mean losses of training rows and validation set after each round; no rows if rounds
        are not scored.
    batches : list of tuple
        For each run four lists, new entries of the fields of `BoostingRun`: `tree_batches`, the new
        trees; `deviations`, standard deviations of their node values; `in_bag_counts`, numbers of
        in-bag rows in their nodes; `losses`, of the validation rows after the rounds.
    """

    scores: Float64
    batches: list[tuple[list[Trees], list[Float64], list[Float64], list[Float64]]]


def start_rounds(
    rank: Rank,
    digests: Mapping[int, int],
    run: BoostingRun,
    start: Float64,
    plain_start: Float64,
    n_members: int,
) -> Settings:
    """Make the boosting runs of a fit on the rows of one process, and store them as `rank.state`.

    A run is a sequence of rounds with its own seed.

    Parameters
    ----------
    rank : Rank
        Rows of the process, and its connections to the others.
    digests : mapping of int to int
        Checksum of each block when it was first read, by the number of the block.
    run : BoostingRun
        The first run, without rows: its settings, seed, thresholds, and grower of trees.
    start : ndarray of shape (n_outputs,)
        Constant start scores, to which offsets are added.
    plain_start : ndarray of shape (n_outputs,)
        Constant start scores without offsets, at which losses of several targets are compared.
    n_members : int
        Number of runs that are averaged; run k has the seed of the first one plus k.

    Returns
    -------
    Settings
        Settings of the runs. A loss of several targets has its factors, which depend on the start
        scores of all rows.

    Raises
    ------
    ValueError
        If a block that was lost was recomputed from other rows.
    """
    rows, settings = rank.rows, run.settings
    for number, digest in rows.digests.items():
        if digest != digests[number]:
            raise_for_changed_rows(number)
    with rows.storage.hold_core_arrays():
        loss, n, y = settings.loss, rows.n, rows.y
        if isinstance(loss, MultiOutputLoss) and len(y) < len(loss.components):  # quantiles
            y = rows.storage.allocate((len(loss.components), y.shape[1]), np.float64)
            y[:] = rows.y
        if isinstance(loss, MultiOutputLoss) and loss.needs_factors:
            weight = None if rows.weight is None else rows.weight[:n]
            scores = make_start_scores(rows.storage, rows.y.shape[1], plain_start)
            means = [
                component.compute_mean(
                    np.ascontiguousarray(y[k, :n]), scores[k : k + 1, :n].copy(), weight, rank.links
                )
                for k, component in enumerate(loss.components)
            ]
            settings = replace(settings, loss=loss.with_factors(means))
        by_row = np.zeros((0, 0), np.uint8)
        if not resolve_threshold_counts(run.thresholds).any():
            by_row = rows.transpose_codes()
        grower = replace(run.grower, bins=run.bins.with_codes(rows.codes, by_row))
        if rank.n_threads is not None:
            grower = replace(grower, n_jobs=rank.n_threads)
        rank.state = [
            run.copy_without_trees(
                settings=settings,
                grower=grower,
                y=y if isinstance(loss, MultiOutputLoss) else y[0],
                weight=rows.weight,
                keys=rows.keys,
                scores=make_start_scores(rows.storage, rows.y.shape[1], start, rows.offset),
                seed=run.seed + k,
                values=rows.X_val,
                updates_scores=True,
            )
            for k in range(n_members)
        ]
    return settings


def add_previous_rounds(
    rank: Rank,
    start: Float64,
    trees: Trees,
    code_trees: Trees,
    ends: Sequence[int],
    is_scored: bool,
    has_validation_set: bool,
    is_loss: bool,
) -> Float64:
    """Set the scores of a process's rows to those by the trees of a previous fit, for a warm start.

    Parameters
    ----------
    rank : Rank
        Rows of the process, with one run from `start_rounds`.
    start : ndarray of shape (n_outputs,)
        Constant start scores of the previous fit.
    trees, code_trees : Trees
        The trees of that fit, and the same trees with bin codes in place of thresholds.
    ends : sequence of int
        Numbers of trees after which rows are scored, ascending; the last one is that of all trees.
    is_scored : bool
        Whether rows are scored.
    has_validation_set : bool
        Whether any process has rows of a validation set.
    is_loss : bool
        Whether rows are scored by the loss, and not by a scorer.

    Returns
    -------
    ndarray of shape (len(ends), 1) or (len(ends), 2), or (len(ends), n_outputs, m)
        For each entry of `ends`: negated mean losses of the training rows of all processes and, if
        there is one, of the validation set; or for a scorer the raw predictions of the m rows of
        this process that it gets. (0,) if rows are not scored.
    """
    (run,), rows, stages = rank.state, rank.rows, []
    run.scores[:] = make_start_scores(rows.storage, rows.y.shape[1], start, rows.offset)
    for first, last in pairwise([0, *ends]):
        _add_trees(rows, run, trees, code_trees, first, last)
        if is_scored:
            stages.append(
                score_rounds(rank, has_validation_set) if is_loss else get_scored_predictions(rank)
            )
    return np.array(stages)


def _add_trees(
    rows: JoinedRows, run: Any, trees: Trees, code_trees: Trees, first: int, last: int
) -> None:
    """Add the values of trees first, ..., last - 1 to the scores of all rows of a process, in place.

    rows: the training rows, then the validation rows; run: has their scores; trees, code_trees: the
    trees, and the same trees with bin codes in place of thresholds, for the training rows.
    """
    n_threads = run.grower.n_jobs
    for block in iterate_row_blocks(rows.n, len(rows.codes)):
        X = convert_codes_to_floats(np.ascontiguousarray(rows.codes[:, block].T))
        scores = np.ascontiguousarray(run.scores[:, block])
        run.scores[:, block] = code_trees.add(scores, X, n_threads, first, last)
    if rows.X_val is not None:
        scores = np.ascontiguousarray(run.scores[:, rows.n :])
        run.scores[:, rows.n :] = trees.add(scores, rows.X_val, n_threads, first, last)


def restore_rounds(rank: Rank, trees: Sequence[tuple[Trees, Trees]]) -> None:
    """Add the trees of earlier rounds to the scores of a process's rows, after a worker was lost.

    rank: rows of the process, whose `state` has the runs before these rounds; trees: for each run its
    trees, which split on the features of the grower, and the same trees with bin codes in place of
    thresholds.
    """
    for run, (of_run, code_trees) in zip(rank.state, trees, strict=True):
        _add_trees(rank.rows, run, of_run, code_trees, 0, len(of_run))


def make_rounds(rank: Rank, first: int, last: int, watch: Watch) -> NewRounds:
    """Make rounds first, ..., last - 1 of the runs in a process; return the new trees and scores.

    All processes with rows of the fit call it together, and grow the same trees. rank: rows of the
    process, whose `state` has the runs (from `start_rounds`); the runs keep scores but no trees.
    watch: whether the C++ core scores rounds, the number of rounds without an improvement after
    which it stops (0: never), the smallest improvement that counts, and the scores so far.
    """
    runs: list[BoostingRun] = rank.state
    with rank.rows.storage.hold_core_arrays():
        scores = advance(runs, first, last, watch, rank.links)
    batches = [(run.tree_batches, run.deviations, run.in_bag_counts, run.losses) for run in runs]
    # A rank needs no trees of earlier rounds.
    rank.state = [run.copy_without_trees() for run in runs]
    return NewRounds(scores, batches)


def score_rounds(rank: Rank, has_validation_set: bool) -> Float64:
    """Compute the negated mean loss over the rows of all processes, after the rounds so far.

    Predictions are averaged over the runs. rank: rows of this process, and its connections to the
    others, which call the function, too; has_validation_set: whether any process has rows of a
    validation set. Return the score of the training rows and, with a validation set, its score,
    (1,) or (2,).
    """
    runs: list[BoostingRun] = rank.state
    run, raw = runs[0], average_scores(runs)
    n = len(run.keys)
    sets = [slice(n), slice(n, None)][: 1 + has_validation_set]
    return np.array(
        [
            -run.settings.loss.compute_mean(
                np.ascontiguousarray(run.y[..., rows]),
                np.ascontiguousarray(raw[:, rows]),
                None if run.weight is None else run.weight[rows],
                rank.links,
            )
            for rows in sets
        ]
    )


class ScoredRows(NamedTuple):
    """Targets and weights of those rows of one process that a scorer of scikit-learn gets.

    Training rows come first, then those of the validation set.

    Attributes
    ----------
    y : ndarray of float64, shape (n_targets, m)
        Numbers or class codes.
    weight : ndarray of float64, shape (m,), or None
        Weights, of training rows with a mean of 1; None: 1.
    n_training : int
        Number of training rows.
    """

    y: Float64
    weight: Float64 | None
    n_training: int


def count_classes_of_rank(rank: Rank, n_classes: int) -> Int64:
    """Count the training rows of one process in each class, (n_classes,).

    rank: rows of the process; n_classes: number of classes; 1: all rows count as one class.
    """
    return count_classes(_get_strata(rank, n_classes), n_classes)


def draw_keys(rank: Rank, seed: int, n_sampled: Int64) -> KeySample:
    """Find the smallest random keys of each class among a process's rows, as a random sample of rows.

    rank: rows of the process; seed: seed of the draw, with which the keys of rows are mixed;
    n_sampled: number of rows to draw of each class, (n_classes,). Return the mixed keys, at most
    this number for each class, and the classes of their rows, in the fields `keys` and `classes`.
    """
    return draw_smallest_keys(rank.rows.keys, _get_strata(rank, len(n_sampled)), seed, n_sampled)


def choose_scored_rows(rank: Rank, seed: int, limits: UInt64) -> ScoredRows:
    """Choose those rows of a process that a scorer gets, and return their targets and weights.

    They are a random sample of the training rows, and all validation rows. Set `rank.scored` to
    their indices. rank: rows of the process; seed: seed of the draw, with which the random keys of
    rows are mixed; limits: largest mixed key that is drawn of each class, (n_classes,).
    """
    rows = rank.rows
    sampled = find_sampled_rows(rows.keys, _get_strata(rank, len(limits)), seed, limits)
    rank.scored = np.append(sampled, np.arange(rows.n, rows.y.shape[1]))
    weight = None if rows.weight is None else rows.weight[rank.scored]
    return ScoredRows(rows.y[:, rank.scored], weight, len(sampled))


def get_scored_predictions(rank: Rank) -> Float64:
    """Return the raw predictions of the rows that a scorer gets, (n_outputs, m).

    rank: rows of one process, of which `rank.scored` has the m indices. Predictions are averaged
    over the runs.
    """
    return average_scores(rank.state, rank.scored)


def _get_strata(rank: Rank, n_classes: int) -> NDArray[Any]:
    """Return the class by which each training row of a rank is drawn, (n,).

    rank: rows of one worker; n_classes: number of classes; 1: all rows have class 0.
    """
    return get_strata(rank.rows.y[0, : rank.rows.n], n_classes)


def make_distributed_scores(model: Any, scorer: Any, executor: Executor) -> list[Score]:
    """Make functions that score training rows and the validation set by a scorer.

    The training rows are a random sample of 10,000 if there are more (`count_sampled_rows`). The
    call sets `rank.scored`, the indices of the scored rows, in each process that holds rows;
    `get_scored_predictions` reads it.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted, with its `_seed`; its parameter `scoring` is the scorer's name.
    scorer : callable
        ``scorer(model, X, y)``, as scikit-learn's.
    executor : Executor
        Calls functions in the processes (ranks) that hold the rows.

    Returns
    -------
    list of callables
        One function, or two with a validation set; each takes the raw predictions of the scored
        rows of all ranks, (n_outputs, n_scored), as `get_scored_predictions` returns them.
    """
    counts: Any = sum(executor.gather_from_ranks(count_classes_of_rank, count_strata(model)))
    n_sampled = count_sampled_rows(counts)
    drawn = executor.gather_from_ranks(draw_keys, model._seed, n_sampled)
    limits = compute_key_limits(merge_samples(drawn, n_sampled), n_sampled)
    ranks: list[ScoredRows] = executor.gather_from_ranks(choose_scored_rows, model._seed, limits)
    y = np.concatenate([rows.y for rows in ranks], axis=1)
    y = y[0] if len(y) == 1 else y.T
    if is_classifier(model):
        y = y.astype(np.int32)
    weight = np.concatenate(
        [np.ones(rows.y.shape[1]) if rows.weight is None else rows.weight for rows in ranks]
    )
    is_training = np.concatenate([np.arange(rows.y.shape[1]) < rows.n_training for rows in ranks])
    sets = [np.flatnonzero(is_training), np.flatnonzero(~is_training)]
    return [
        ScorerScore.from_named_scorer(model, scorer, y[columns], weight[columns], columns)
        for columns in sets
        if len(columns)
    ]


def make_start_scores(
    storage: Storage, n: int, start: Float64, offset: Float64 | None = None
) -> Float64:
    """Make scores (n_outputs, n) that are `start`, (n_outputs,), in each row, plus the offsets.

    storage: allocates the array, in memory or as a file; offset: offsets of the rows, (n_outputs,
    n), or None for no offsets.
    """
    scores = storage.allocate((len(start), n), np.float64)
    scores[:] = start[:, None]
    if offset is not None:
        scores += offset
    return scores


@dataclass(slots=True, kw_only=True)
class DistributedEvaluation(Evaluation):
    """Score rounds that are made in several processes (ranks), each with some of the rows.

    See `Evaluation` for early stopping and callbacks, and for its fields, which the constructor takes
    too. Of these `scored` differs: it is the sequence of functions that return a score, the higher the
    better, of the training rows and, if there is one, of the validation set. Here they take the negated
    mean losses that `score_rounds` returns, or for a scorer of scikit-learn the raw predictions of the
    scored rows of all ranks.

    Parameters
    ----------
    executor : Executor
        Calls functions in the processes that hold the rows, on which `start_rounds` has been called.
    has_validation_set : bool
        Whether any process has rows of a validation set.
    """

    executor: Executor
    has_validation_set: bool
    # Number of calls of ranks before the first new round, and time of the last checkpoint.
    _n_first_calls: int | None = field(default=None, init=False)
    _checkpoint_time: float = field(default_factory=perf_counter, init=False)

    @property
    def seconds_at_once(self) -> float:
        """Time of the rounds that may be made in one call: some seconds if workers may be lost."""
        return inf if self.executor.n_rank_calls is None else _SECONDS_AT_ONCE

    def _make_rounds(self, runs: Sequence[BoostingRun], first: int, last: int) -> Float64:
        """Make rounds first, ..., last - 1 in all processes that hold rows, and return their scores.

        runs: boosting runs without rows on the client, to which the new trees are appended. The
        scores are negated mean losses, (n_rounds, 2), and have no rows if the C++ core does not
        score rounds. See `Evaluation._make_rounds`.
        """
        if self._n_first_calls is None:
            self._n_first_calls = self.executor.n_rank_calls
        new: NewRounds = self.executor.run_on_ranks(make_rounds, first, last, self._get_watch())
        for run, (trees, deviations, counts, losses) in zip(runs, new.batches, strict=True):
            run.tree_batches.extend(trees)
            run.deviations.extend(deviations)
            run.in_bag_counts.extend(counts)
            run.losses.extend(losses)
        self._make_checkpoint(runs)
        return new.scores

    def _make_checkpoint(self, runs: Sequence[BoostingRun]) -> None:
        """Store the trees so far, from which scores are restored if a worker is lost later.

        Do nothing within some seconds of the last checkpoint, as each one copies all trees. runs: the
        runs with all trees of this fit.
        """
        now = perf_counter()
        if self._n_first_calls is None or now - self._checkpoint_time < _SECONDS_AT_ONCE:
            return
        trees = [run.join_trees() for run in runs]
        pairs = [
            (one, convert_trees_to_bin_codes(one, run.bins))
            for one, run in zip(trees, runs, strict=True)
        ]
        self.executor.replace_rank_calls(self._n_first_calls, restore_rounds, pairs)
        self._checkpoint_time = now

    def _predict(self, runs: Sequence[BoostingRun]) -> Float64:
        """Return the argument of the score functions after the rounds so far; `runs` is ignored.

        The score functions are those in the field `scored`. Their argument is the negated mean losses,
        (1,) or (2,), or raw predictions, as `compute_scores` states.
        """
        del runs
        return self.compute_scores()

    def compute_scores(self) -> Float64:
        """Return the argument of the score functions after the rounds so far.

        The score functions are those in the field `scored`. If rounds are scored by the loss, their
        argument is the negated mean loss of training rows and validation set, (1,) or (2,); for a
        scorer, the raw predictions of the rows that it gets, (n_outputs, n_scored).
        """
        if not self.is_loss:
            return np.concatenate(self.executor.gather_from_ranks(get_scored_predictions), axis=1)
        scores: Any = self.executor.run_on_ranks(score_rounds, self.has_validation_set)
        return np.asarray(scores)
