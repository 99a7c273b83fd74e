"""Fits of boosted trees on rows that lie in parts: the model of the same rows in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree.ensembles.custom_loss import CustomLoss
from certree.ensembles.evaluation import Callback, get_scorer, stops_early
from certree.ensembles.levels_of_parts import add_category_statistics
from certree.ensembles.losses import Loss
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.ensembles.rounds import Rounds, Settings
from certree.ensembles.rounds_on_ranks import (
    EvaluationOnRanks,
    add_previous_rounds,
    make_scores_on_ranks,
    start_rounds,
)
from certree.ensembles.start_scores import (
    TargetSums,
    check_custom_gradients,
    compute_start_scores,
)
from certree.ensembles.thirds_on_ranks import (
    ThirdFit,
    assign_to_thirds,
    compute_standard_errors,
    prepare_thirds,
)
from certree.ensembles.time_limit import TimeLimit
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins
from certree.grow.code_trees import convert_trees_to_bin_codes, find_divided_feature
from certree.interface.arrays import Float64, divide_by_largest
from certree.interface.parameter_aliases import check_for_unknown_score
from certree.out_of_core.chunks import Weighing
from certree.out_of_core.exact_sums import exact_sum, round_sum
from certree.out_of_core.executors import Executor, InMemory
from certree.out_of_core.first_look import Learned, find_largest_targets, learn
from certree.out_of_core.fit_hashes import set_hashes_of_fit
from certree.out_of_core.group_keys import set_group_keys
from certree.out_of_core.held_out import RowsHeldOut, hold_out
from certree.out_of_core.judging_rows import PartsWithValidation
from certree.out_of_core.keys import set_keys
from certree.out_of_core.made_parts import (
    Sketched,
    make_parts,
    order_of_training,
    put_beside,
    sketched,
    warn_of_identifiers,
)
from certree.out_of_core.memory_limit import (
    Need,
    bound_leaves,
    count_categories,
    count_group_bytes,
    count_histogram_bytes,
)
from certree.out_of_core.part import digests
from certree.rows.duplicates import warn_of_repeated_rows
from certree.rows.training import Training, count_held_out
from certree.stats.category_statistics import (
    MAX_SET_CATEGORIES,
    MAX_TARGET_CLASSES,
    CategoryStatistics,
    list_features_of_many_categories,
)
from certree.tree import Trees

# Most rows of fits that may be made in memory.
_IN_MEMORY = 30_000
# Bytes of a row while a loss that is written in Python is computed: about 16 numbers.
_CUSTOM_BYTES = 128.0
# Bytes of a row that a scorer gets, beside those of each class: targets, weights and places in order.
_SCORED_BYTES = 100.0
# Bytes of a row while rows are assigned to thirds, and put in their order, for standard errors.
_THIRD_BYTES = 40.0
# See `fit_on_parts`.
Judged = Callable[[], tuple[Training | None, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """What precedes the rounds of a fit, watches them and ends them.

    Parameters
    ----------
    before : Trees or None
        Trees of the fitted model, to which rounds are added; None: rounds begin at the first.
    callbacks : sequence of callables
        Called after each round with an `Iteration`.
    limit : TimeLimit
        When the fit must end.
    """

    before: Trees | None = None
    callbacks: Sequence[Callback] = ()
    limit: TimeLimit = field(default_factory=TimeLimit)


def fit_on_parts(
    model: Any,
    parts: Executor,
    judged: Judged | None = None,
    options: RoundOptions = RoundOptions(),
) -> None:
    """Fit a boosted model to out-of-core or distributed rows.

    Parameters
    ----------
    model : BoostedTrees
        The model, whose fitted attributes are set.
    parts : Executor
        Reads the rows.
    judged : callable or None
        Returns the validation set of the user, once the model has classes and features, and
        attributes by which the model knows its rows; see `BoostedTrees._make_validation_set`. None:
        there is no validation set in memory. A `PartsWithValidation` has one out-of-core.
    options : RoundOptions
        What precedes, watches and ends the rounds.

    Raises
    ------
    InMemory
        If there are so few rows that they are fitted in memory, which may do more.
    ValueError, TypeError
        If a parameter needs rows in memory, or rows are wrong; as `BoostedTrees.fit` describes.
    """
    before, callbacks = options.before, options.callbacks
    learned = _learn(model, parts, before)
    is_judged, lie_apart = judged is not None, isinstance(parts, PartsWithValidation)
    parts.keep_to_limit(_need(model, learned, is_judged, lie_apart, _count_scored(model, parts)))
    if not is_classifier(model):
        model._make_loss().check_targets(learned.found.ends)
    stops = _stops(model, learned)
    held = _held_out(model, parts, learned) if stops and not (is_judged or lie_apart) else None
    if held is not None:
        learned = learned.with_draw_order(order_of_training(parts, learned.reader, held))
    known, loss = _sketched(model, parts, learned, held)
    n_rounds = _n_rounds(model, known.n, stops, before)
    thirds = None
    if model.standard_errors:
        thirds = assign_to_thirds(parts, learned.reader, held, model._seed)
    warn_of_identifiers(model, known.sketch)
    n, n_held, weighing = known.n, known.n_held, known.weighings[0]
    if isinstance(parts, PartsWithValidation):
        n_held = _read_judges(model, parts, learned, stops or bool(callbacks))
    many = list_features_of_many_categories(known.sketch.values)
    bins, totals = make_parts(parts, learned.reader, known, dealt=thirds, many=many)
    del known, thirds  # Free the sample of rows that has determined the bin edges.
    if is_classifier(model):
        set_hashes_of_fit(model, parts, n + n_held, continues=before is not None)
    judges, of_rows = judged() if judged is not None else (None, dict[str, Any]())
    if judges is not None:
        n_held = len(judges.y)
        _put_beside(parts, judges, normalises=model.scoring == "loss")
    _set_keys(parts, learned, held, n)
    if before is None:
        model._set_automatic_parameters(n)
    model._has_offset = learned.found.has_offset
    sums = TargetSums(n, totals, None if weighing is None else weighing.factor)
    starts = _compute_starts(model, parts, loss, sums, learned.found.n_targets)
    started = _start_run(model, parts, loss, bins, learned, starts)
    evaluation = _make_evaluation(model, parts, n_held > 0, stops, callbacks)
    if started.run.statistics is not None:  # As in memory, rounds on statistics are repeated.
        options = replace(options, before=None)
    _boost(model, parts, started, n_rounds, evaluation, options)
    if evaluation.may_drop_rounds:
        model.__dict__.update(of_rows)


def _learn(model: Any, parts: Executor, before: Trees | None) -> Learned:
    """Learn classes, features and groups from all rows, and set them in a new fit.

    A new fit also gets its seed and learning rate. model, parts, before: as in `fit_on_parts`.
    Raise ValueError if rounds are added to a fit with other classes or features.
    """
    learned = learn(model, parts).with_numbered_groups(parts)
    if before is None:
        learned.set_attributes(model)
        model._seed = int(check_random_state(model.random_state).randint(2**31 - 1))
        model._set_learning_rate(stops_early(model.early_stopping, learned.found.n))
    else:
        learned.expect_same_encoding(model)
    return learned


def _set_keys(parts: Executor, learned: Learned, held: RowsHeldOut | None, n: int) -> None:
    """Give n rows the keys by which they, or their groups, are drawn.

    Warn of repeated rows unless there are groups. held: which rows are held out, or None.
    """
    if learned.found.are_grouped:
        set_group_keys(parts, learned.n_groups)
        return
    n_repeated = set_keys(parts, n)
    if held is not None:  # rows that are held out are rows of the fit, too
        n_repeated = held.n_repeated
    warn_of_repeated_rows(n_repeated, learned.found.n)


@dataclass(frozen=True, slots=True, eq=False)
class StartedRun:
    """The run of a model before its first round, without rows, which are on the ranks.

    Parameters
    ----------
    run : Rounds
        The run, to which trees are appended.
    starts : tuple of two ndarrays of shape (n_outputs,)
        Constant start scores, to which offsets are added; and what they are without offsets.
    digests : mapping of int to int
        Digests of the rows of all blocks, by the number of the block.
    thirds : list of ThirdFit
        Fits to thirds, for standard errors; empty if they are not asked for.
    bins : Bins
        Bin edges of the features, without statistics of categories.
    """

    run: Rounds
    starts: tuple[Float64, Float64]
    digests: Mapping[int, int]
    thirds: list[ThirdFit]
    bins: Bins


def _start_run(
    model: Any,
    parts: Executor,
    loss: Loss,
    bins: Bins,
    learned: Learned,
    starts: tuple[Float64, Float64],
) -> StartedRun:
    """Add statistics of categories to all blocks, and return the run before its first round.

    Parameters are those of the fit; starts: as in `StartedRun`. Raise ValueError if the gradients of
    a `CustomLoss` are not the derivatives of its loss.
    """
    grower = model._make_grower(bins, learned.draw_order)
    check_custom_gradients(parts, loss, starts[0])
    start, keeps = starts[0] if model._has_offset else None, model.standard_errors
    statistics = add_category_statistics(parts, loss, bins, start, keeps_categories=keeps)
    thirds = []
    if model.standard_errors:
        n_targets = learned.found.n_targets
        thirds = prepare_thirds(model, parts, loss, grower, statistics, n_targets)
    if statistics is not None:
        grower = statistics.extend_grower(
            grower, np.zeros((statistics.n_columns, 0), dtype=np.uint8)
        )
    run = _make_run_without_rows(model, loss, grower, statistics, len(starts[0]))
    return StartedRun(run, starts, dict(parts.collect(digests)), thirds, bins)


def _sketched(
    model: Any, parts: Executor, learned: Learned, held: RowsHeldOut | None
) -> tuple[Sketched, Loss]:
    """What decides the bins of all rows, and the loss, which knows the order of several targets."""
    loss, found = model._make_loss(), learned.found
    largest = None
    if found.n_targets > 1:
        # Rows that are held out may have larger ones.
        largest = (
            found.largest_targets if held is None else find_largest_targets(held.sides.train.ends)
        )
    known = sketched(parts, learned.reader, learned.weighing, found.n, held, largest)
    if isinstance(loss, MultiOutputLoss):
        # Quantiles are of one target.
        loss = loss.with_order(known.sketch.target_keys.tolist() or [0] * len(loss.components))
        known = replace(known, order=loss.order)
    return known, loss


def _count_scored(model: Any, parts: Executor) -> int:
    """Return how many rows of an out-of-core validation set a scorer gets in each round; 0: none."""
    if model.scoring == "loss" or not isinstance(parts, PartsWithValidation):
        return 0
    return parts.n_validation or 0


def _need(model: Any, learned: Learned, is_judged: bool, lie_apart: bool, n_scored: int) -> Need:
    """What the fit holds in memory, from above.

    is_judged, lie_apart: whether there are rows that judge, in memory or elsewhere; n_scored: see
    `_count_scored`.
    """
    n, p = learned.found.n, model._n_encoded
    K = max(int(np.sum(getattr(model, "n_classes_", 1))), model._make_loss().n_outputs)
    stops = stops_early(model.early_stopping, n)
    is_dealt = stops and model.validation_fraction is not None and not (is_judged or lie_apart)
    n_leaves = model.max_leaf_nodes
    if n_leaves == "auto":
        n_leaves = model._make_plan(n).max_leaf_nodes
    n_leaves = bound_leaves(n, n_leaves, model.max_depth, model.min_samples_leaf)
    n_rounds = model._get_fixed_rounds(n, stops)
    # What rows see of levels is in bins as features are.
    n_levels = count_categories(learned)
    p += sum(one > MAX_SET_CATEGORIES for one in n_levels) * (1 + min(K, MAX_TARGET_CLASSES))
    # Hashes of a classifier's rows; which rows are held out, and while it is decided.
    # The arrays of Python functions do not lie in files.
    of_offset = 8.0 * K * learned.found.has_offset
    of_row = 16.0 * is_classifier(model) + 3.0 * is_dealt + _CUSTOM_BYTES * _has_custom_loss(model)
    if model.standard_errors:
        of_row += _THIRD_BYTES
    of_cell = count_histogram_bytes(p)
    # Trees, all of them and once more when they are put together.
    trees = 2.0 * n_leaves * (n_rounds or 0) * model._count_members()
    trees *= 250 + 32 * K + 12 * max(n_levels, default=0)
    if model.scoring != "loss" and is_dealt:
        n_scored = count_held_out(model.validation_fraction, n, "rows")
    # Where rows are few they are fitted in memory.
    in_memory = n * (100.0 * p + 500 + 100 * K) if n <= _IN_MEMORY else 0.0
    return Need(
        always=of_row * n + count_group_bytes(n, learned.n_groups),
        # Features as numbers, in order, and both sides of them; hashes, targets, scores.
        worked=(40 if is_dealt or lie_apart else 16) * p + p + 200 + 24 * K + 6 * of_offset,
        together=(300 if is_dealt else 150) + of_offset,
        later=trees + 8.0 * n_leaves * of_cell + in_memory + n_scored * (_SCORED_BYTES + 64.0 * K),
        of_thread=0.5 * n_leaves * of_cell,
        of_thread_row=100 + 40 * K + p,
        # Parts beside the joined rows, or these and the arrays of the core; see `JoinedRows`.
        scratch_row=3.0 * p
        + 110
        + 8 * learned.found.are_grouped
        + 48 * K
        + 2 * of_offset
        + (3.0 * p + 120 + 80 * K + of_offset) * model.standard_errors,
    )


def _compute_starts(
    model: Any, parts: Executor, loss: Loss, sums: TargetSums, n_targets: int
) -> tuple[Float64, Float64]:
    """Compute the constant start scores, to which offsets are added, and those without offsets.

    The latter, (n_outputs,) each, are needed for several outputs only. sums, n_targets: as in
    `compute_start_scores`.
    """
    compute = partial(compute_start_scores, parts, loss, sums, n_targets)
    start = compute(has_offset=model._has_offset)
    if not model._has_offset or loss.n_outputs == 1:
        return start, start
    return start, compute(has_offset=False)


def _read_judges(model: Any, parts: PartsWithValidation, learned: Learned, are_known: bool) -> int:
    """How many rows elsewhere judge; see `PartsWithValidation.scan_validation_set`."""
    judging = parts.scan_validation_set(model, learned, are_known=are_known)
    if not is_classifier(model):
        model._make_loss().check_targets(judging.found.ends)
    return int(judging.found.n)


def _put_beside(parts: Executor, judges: Training, *, normalises: bool) -> None:
    """Let rows in memory lie beside one of the parts, weighed by a mean of 1 if `normalises`."""
    weighing = _normalised(judges) if normalises else None
    if weighing is not None and judges.weight is not None:
        judges = replace(judges, weight=weighing(judges.weight))
    parts.change(put_beside, own=[judges, *[None] * (parts.n_parts - 1)])


def _normalised(judges: Training) -> Weighing | None:
    """How rows in memory are weighed: by a mean of 1."""
    if judges.weight is None:
        return None
    largest = float(judges.weight.max())
    total = exact_sum(divide_by_largest(judges.weight, largest))
    return Weighing(largest, len(judges.y) / round_sum(total))


def _stops(model: Any, learned: Learned) -> bool:
    """Whether rounds stop early, as rows say that are held out."""
    stops = stops_early(model.early_stopping, learned.found.n)
    if stops:
        expect_named_scorer(model)
    return stops


def _held_out(model: Any, parts: Executor, learned: Learned) -> RowsHeldOut | None:
    """Rows that are held out, which in memory have no part in bins and weights of the others."""
    if model.validation_fraction is None:
        return None
    about = learned.reader, learned.weighing
    held = hold_out(parts, *about, model.validation_fraction, model._seed)
    if model.scoring != "loss":  # a scorer gets weights as they came
        division = replace(held.division, weighings=(held.division.weighings[0], None))
        held = replace(held, division=division)
    if not is_classifier(model):
        model._make_loss().check_targets(held.sides.train.ends)
    return held


def _make_run_without_rows(
    model: Any,
    loss: Loss,
    grower: BinnedGrower,
    statistics: CategoryStatistics | None,
    n_outputs: int,
) -> Rounds:
    """Make the run of a model to which the trees are appended that ranks grow; see `Rounds`."""
    return Rounds(
        model._make_settings(loss),
        grower,
        y=np.zeros(0),
        weight=None,
        keys=np.zeros(0, np.uint64),
        thresholds=model.thresholds_,
        scores=np.zeros((n_outputs, 0)),
        seed=model._seed,
        statistics=statistics,
    )


def _make_evaluation(
    model: Any,
    parts: Executor,
    has_validation_set: bool,
    stops: bool,
    callbacks: Sequence[Callback],
) -> EvaluationOnRanks:
    """Make the object that scores rounds and decides when to stop.

    stops, callbacks: see `BoostedTrees._make_evaluation`. Rounds of several members that nobody asks
    for are not scored, as that takes a pass over the rows.
    """
    n_members, is_wanted = model._count_members(), stops or has_validation_set or bool(callbacks)
    scored: Sequence[Any] = ()
    scorer = get_scorer(model) if is_wanted else None
    if scorer is not None:
        scored = make_scores_on_ranks(model, scorer, parts)
    elif is_wanted or (model.verbose > 0 and n_members == 1):
        scored = [itemgetter(0), itemgetter(1)][: 1 + has_validation_set]
    return EvaluationOnRanks(
        scored,
        is_wanted=is_wanted,
        is_loss=scorer is None,
        is_custom=_has_custom_loss(model),
        n_runs=n_members,
        n_iter_no_change=model.n_iter_no_change if stops else 0,
        tol=float(model.tol),
        callbacks=callbacks,
        parts=parts,
        has_validation_set=has_validation_set,
    )


def _boost(
    model: Any,
    parts: Executor,
    started: StartedRun,
    n_rounds: int,
    evaluation: EvaluationOnRanks,
    options: RoundOptions,
) -> None:
    """Make the rounds on the ranks of an executor, and set the fitted attributes.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    parts : Executor
        Has the rows.
    started : StartedRun
        The first run of the model, before its first round.
    n_rounds : int
        Number of rounds; if the fit stops early the largest number.
    evaluation : EvaluationOnRanks
        Scores the rounds, and ends the fit by early stopping or a callback.
    options : RoundOptions
        What precedes and ends the rounds. Half of the time is left for the fits to thirds that
        standard errors need.
    """
    n_members, run, before = model._count_members(), started.run, options.before
    starts, limit = started.starts, options.limit
    limit = limit.take_fraction(0.5) if model.standard_errors else limit
    start, _ = starts
    settings: Settings = parts.run_on_ranks(start_rounds, started.digests, run, *starts, n_members)
    members = [
        run.copy_without_trees(settings=settings, seed=run.seed + k) for k in range(n_members)
    ]
    model._loss_factors = getattr(settings.loss, "factors", ())
    if before is None:
        first, before = 0, Trees.joined([], model._n_encoded, len(start))
        model._n_first_trees, model._importances = 0, np.zeros(model._n_encoded)
        model._errors = None
        evaluation.record_previous_scores(evaluation.compute_scores() for _ in range(1))
    else:
        first, start = model.n_iter_, model.start_
        evaluation.record_previous_scores(_add_previous_rounds(model, before, run, evaluation))
    last = model._run_rounds(members, first, n_rounds, evaluation, limit)
    model.start_, model.n_iter_ = start, evaluation.count_kept_rounds(first, last)
    model.stopped_by_ = evaluation.stop_reason
    model._append_new_trees(before, members, model.n_iter_ - first)
    if started.thirds:
        deviation = model._join_deviations(members, first)
        about = started.thirds, deviation, started.bins
        model._errors = compute_standard_errors(model, parts, *about)
    model._record(evaluation.get_recorded_scores())


def _add_previous_rounds(
    model: Any, before: Trees, run: Rounds, evaluation: EvaluationOnRanks
) -> Float64:
    """Let the rows on ranks have the scores by the trees of the fitted model.

    Parameters
    ----------
    model, before, run, evaluation
        As in `_boost`.

    Returns
    -------
    ndarray of shape (n_iter_ + 1, 1 or 2), (n_iter_ + 1, n_outputs, n_scored), or (0,)
        Scores, or raw predictions for a scorer, of the rows before the first round and after each
        one, if rounds are scored.

    Raises
    ------
    ValueError
        If the rows are in other bins than those of the fitted model, and a tree separates them.
    """
    j = find_divided_feature(before, run.bins)
    if j is not None:
        names = getattr(model, "feature_names_in_", ())
        feature = repr(names[j]) if j < len(names) else j
        raise ValueError(
            "X must be that of the previous fit with warm_start=True for out-of-core or distributed "
            f"data, got rows with other bins of feature {feature}: pass the same rows in any order, or "
            "set warm_start=False"
        )
    is_scored, n_trees = len(evaluation.scored) > 0, len(before)
    ends = range(model._n_first_trees, n_trees + 1) if is_scored else [n_trees]
    code_trees = convert_trees_to_bin_codes(before, run.bins)
    trees = model.start_, before, code_trees, [*ends]
    how = is_scored, evaluation.has_validation_set, evaluation.is_loss
    told = evaluation.parts.collect_from_ranks(add_previous_rounds, *trees, *how)
    return np.asarray(told[0] if evaluation.is_loss else np.concatenate(told, axis=-1))


def _n_rounds(model: Any, n: int, stops: bool, before: Trees | None) -> int:
    """How many rounds there are, of n rows, with those of the trees before."""
    if model._has_linear_start(n):
        raise InMemory
    known = model._get_fixed_rounds(n, stops)
    if known is None:
        raise InMemory
    if before is not None:
        model._expect_no_fewer_rounds(known)
    return int(known)


def expect_what_parts_can(model: Any, *, judges: bool) -> None:
    """Refuse what takes rows in memory, by its name.

    Parameters
    ----------
    model : BoostedTrees
        The model.
    judges : bool
        Whether there are rows that judge.
    """
    if model.early_stopping is True or judges:
        expect_named_scorer(model)


def _has_custom_loss(model: Any) -> bool:
    """Return whether the loss of a model, classifier or regressor, is a `CustomLoss`."""
    return not is_classifier(model) and isinstance(model.loss, CustomLoss)


def expect_named_scorer(model: Any) -> None:
    """Raise ValueError unless the parameter `scoring` of a model is "loss" or a scorer's name.

    Other scorers may read the features, which are not in memory. Call this for fits that score
    rounds.
    """
    if not isinstance(model.scoring, str):
        raise ValueError(
            'scoring must be "loss" or the name of a scorer of scikit-learn for out-of-core or '
            f"distributed X, got {model.scoring!r}: pass a name, or X as an array or data frame in "
            "memory"
        )
    check_for_unknown_score(model.scoring)
