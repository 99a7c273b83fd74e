"""Fit boosted trees to out-of-core or distributed rows: the same model as of one table in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree.ensembles.custom_loss import CustomLoss, check_custom_gradients
from certree.ensembles.distributed_rounds import (
    DistributedEvaluation,
    add_previous_rounds,
    make_distributed_scores,
    start_rounds,
)
from certree.ensembles.evaluation import Callback, get_scorer, stops_early
from certree.ensembles.losses import Loss
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.ensembles.out_of_core_categories import add_category_statistics
from certree.ensembles.out_of_core_folds import (
    EARLIER_ROWS,
    THIRDS,
    FoldFit,
    RoundSelection,
    assign_to_periods,
    assign_to_thirds,
    end_round_selection,
    prepare_fold_fits,
)
from certree.ensembles.out_of_core_standard_errors import compute_standard_errors
from certree.ensembles.rounds import BoostingRun, Settings
from certree.ensembles.start_scores import TargetSums, TrainingTargets
from certree.ensembles.time_limit import TimeLimit
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins
from certree.grow.code_trees import convert_trees_to_bin_codes, find_divided_feature
from certree.interface.arrays import Float64, divide_by_largest
from certree.interface.parameter_aliases import check_for_unknown_score
from certree.out_of_core.binned_blocks import (
    SketchedRows,
    add_validation_rows,
    compute_training_draw_order,
    make_binned_blocks,
    sketch_rows,
    warn_of_identifiers,
)
from certree.out_of_core.chunks import WeightScaling
from certree.out_of_core.exact_sums import exact_sum, round_sum
from certree.out_of_core.executors import Executor, InMemory
from certree.out_of_core.fit_hashes import set_hashes_of_fit
from certree.out_of_core.group_keys import set_group_keys
from certree.out_of_core.keys import set_keys
from certree.out_of_core.memory_limit import (
    MemoryNeed,
    bound_leaves,
    count_categories,
    count_group_bytes,
    count_histogram_bytes,
)
from certree.out_of_core.metadata_pass import FitMetadata, collect_metadata, find_largest_targets
from certree.out_of_core.row_block import list_digests
from certree.out_of_core.time_split import TimeArguments, read_times
from certree.out_of_core.validation_set import ExecutorWithValidation
from certree.out_of_core.validation_split import (
    FoldAssignment,
    ValidationSplit,
    split_validation_set,
)
from certree.rows.duplicates import warn_of_repeated_rows
from certree.rows.training import Training, count_held_out
from certree.stats.category_statistics import (
    MAX_SET_CATEGORIES,
    MAX_TARGET_CLASSES,
    CategoryStatistics,
    list_features_of_many_categories,
)
from certree.tree import Trees

# Largest number of rows of a fit that may be made in memory.
_IN_MEMORY = 30_000
# Bytes of a row while a loss that is written in Python is computed: about 16 numbers.
_CUSTOM_BYTES = 128.0
# Bytes of a row that a scorer gets, without those of each class: targets, weights and sort positions.
_SCORED_BYTES = 100.0
# Bytes of a row while rows are assigned to folds: thirds for standard errors, or by time. Measured: 18.
_FOLD_BYTES = 20.0
# Returns a validation set in memory, and fitted attributes by which its rows are recognised later.
MakeValidationSet = Callable[[], tuple[Training | None, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """Options of the rounds of a fit: previous trees, callbacks, time limit, and times of rows.

    Parameters
    ----------
    before : Trees or None
        Trees of the fitted model, to which rounds are added; None: rounds start from the first one.
    callbacks : sequence of callables
        Called after each round with an `Iteration`: the number of the round and its scores. One
        that returns True ends the fit.
    limit : TimeLimit
        When the fit must end.
    order : TimeArguments or None
        Name of the column of times, and gap between earlier and latest rows, that were passed to
        `fit`; None: rows have no times.
    """

    before: Trees | None = None
    callbacks: Sequence[Callback] = ()
    limit: TimeLimit = field(default_factory=TimeLimit)
    order: TimeArguments | None = None


def fit_boosting_out_of_core(
    model: Any,
    executor: Executor,
    make_validation_set: MakeValidationSet | None = None,
    options: RoundOptions = RoundOptions(),
) -> None:
    """Fit a boosted model to out-of-core or distributed rows.

    Parameters
    ----------
    model : BoostedTrees
        The model, whose fitted attributes are set.
    executor : Executor
        Reads the rows block by block, and runs functions where they are. An
        `ExecutorWithValidation` also reads a validation set.
    make_validation_set : callable or None
        Takes no argument. Returns the encoded validation set that the user has passed in memory
        (`Training`, or None), and a dictionary of fitted attributes by which the model later
        recognises its rows. It is called after the model has classes and features; see
        `BoostedTrees._make_validation_set`. None: there is no validation set in memory.
    options : RoundOptions
        Previous trees, callbacks, time limit, and times of rows.

    Raises
    ------
    InMemory
        If there are so few rows that they are fitted in memory, where more parameters are supported.
    ValueError, TypeError
        If a parameter needs rows in memory, or rows are wrong; as `BoostedTrees.fit` describes.
    """
    before, callbacks = options.before, options.callbacks
    metadata = _collect_metadata(model, executor, options)
    has_rows = make_validation_set is not None
    executor.apply_memory_limit(
        _estimate_memory(model, metadata, executor, has_rows, options.order)
    )
    if not is_classifier(model):
        model._make_loss().check_targets(metadata.rows.ends)
    stops, split = _stops_early(model, metadata), None
    if stops and not (has_rows or isinstance(executor, ExecutorWithValidation)):
        split, metadata = _split_validation_set(model, executor, metadata, options.order)
    sketched, loss = _sketch_rows(model, executor, metadata, split)
    n_rounds = _count_rounds(model, sketched.n, stops, options)
    order = options.order if n_rounds is None else None
    folds = _assign_to_folds(model, executor, metadata, split, order)
    warn_of_identifiers(model, sketched.sketch)
    n_given = _scan_validation_set(model, executor, metadata, stops or bool(callbacks))
    n, n_val, scaling = sketched.n, sketched.n_val + n_given, sketched.weight_scalings[0]
    rows = metadata.encoder, sketched
    indexed = list_features_of_many_categories(sketched.sketch.values)
    bins, totals = make_binned_blocks(executor, *rows, folds=folds, indexed=indexed)
    del rows, sketched, folds  # Free the sample of rows that has determined the bin edges.
    if is_classifier(model):
        n_fitted = metadata.rows.n + n_given
        set_hashes_of_fit(model, executor, n_fitted, continues=before is not None)
    validation, attributes = (None, {}) if make_validation_set is None else make_validation_set()
    if validation is not None:
        n_val = len(validation.y)
        _add_validation_set(executor, validation, is_scaled=model.scoring == "loss")
    _set_keys(executor, metadata, split, n)
    if before is None:
        model._set_automatic_parameters(n)
    sums = TargetSums(n, totals, None if scaling is None else scaling.factor)
    started = _start_run(model, executor, loss, bins, metadata, sums, is_chosen=n_rounds is None)
    evaluation = _make_evaluation(model, executor, n_val > 0, stops, callbacks)
    if n_rounds is None:
        n_rounds = _choose_rounds(model, executor, started, n, options)
    if started.run.statistics is not None:  # As in memory, rounds on statistics are repeated.
        options = replace(options, before=None)
    _boost(model, executor, started, n_rounds, evaluation, options)
    if evaluation.may_drop_rounds:
        model.__dict__.update(attributes)


def _collect_metadata(model: Any, executor: Executor, options: RoundOptions) -> FitMetadata:
    """Make the first pass over all rows: collect classes, features, groups and numbers of rows.

    model: boosted trees. If no earlier trees are passed in `options`, classes and features are set
    as its fitted attributes, and so are its seed and learning rate. Otherwise the columns of groups
    and times are updated; raise ValueError if classes or features differ from those of the model, or
    X has no column of times. executor: reads the rows; options: earlier trees (`before`), and the
    column of times (`order`). Return what was collected.
    """
    metadata = collect_metadata(model, executor).with_numbered_groups(executor)
    time_column = None
    if options.order is not None:
        options.order.expect_column(metadata.attributes["feature_names_in_"])
        time_column = options.order.stored_name
    if options.before is None:
        metadata.set_attributes(model, time_column)
        model._seed = int(check_random_state(model.random_state).randint(2**31 - 1))
        model._set_learning_rate(stops_early(model.early_stopping, metadata.rows.n))
    else:
        metadata.update_attributes(model, time_column)
    return metadata


def _set_keys(
    executor: Executor, metadata: FitMetadata, split: ValidationSplit | None, n: int
) -> None:
    """Replace the hashes in the field `keys` of all blocks by random keys, by which rows are drawn.

    A key is a hash of a row's values and of its number among equal rows, so that the draws of
    rounds do not depend on the division into blocks. If the metadata has groups, the rows of a
    group share a key; else warn of repeated rows. executor: holds the blocks of training rows;
    metadata: result of the first pass; split: which rows are validation rows, or None; n: number of
    training rows.
    """
    if metadata.rows.are_grouped:
        set_group_keys(executor, metadata.n_groups)
        return
    n_repeated = set_keys(executor, n)
    if split is not None:  # the warning counts validation rows, too
        n_repeated = split.n_repeated
    warn_of_repeated_rows(n_repeated, metadata.rows.n)


@dataclass(frozen=True, slots=True, eq=False)
class StartedRun:
    """A boosting run (a sequence of rounds) before its first round, without its rows.

    The rows are in the executor's blocks, such as on Dask workers.

    Parameters
    ----------
    run : BoostingRun
        The run, to which trees are appended.
    starts : tuple of two ndarrays of shape (n_outputs,)
        Constant start scores, to which offsets are added; and constant start scores without offsets.
    digests : mapping of int to int
        Checksum of the rows of each block, by the number of the block.
    thirds : list of FoldFit
        Start of the three fits to thirds of the rows, for standard errors; empty without standard
        errors.
    earlier : FoldFit or None
        Start of the fit to the earlier rows, by which the latest rows choose the number of rounds;
        None: they do not.
    bins : Bins
        Bin edges of the features, without statistics of categories.
    """

    run: BoostingRun
    starts: tuple[Float64, Float64]
    digests: Mapping[int, int]
    thirds: list[FoldFit]
    earlier: FoldFit | None
    bins: Bins


def _start_run(
    model: Any,
    executor: Executor,
    loss: Loss,
    bins: Bins,
    metadata: FitMetadata,
    sums: TargetSums,
    *,
    is_chosen: bool,
) -> StartedRun:
    """Compute start scores and statistics of categories, and return the run before its first round.

    The statistics (mean targets of categories in features with many) are added to all blocks.
    model: boosted trees that are fitted; executor: holds the blocks of training rows; loss: its
    loss; bins: bin edges; metadata: classes and features; sums: sums of targets over the training
    rows; is_chosen: whether the latest rows choose the number of rounds. Raise ValueError if the
    gradients of a `CustomLoss` are not the derivatives of its loss.
    """
    model._has_offset = metadata.rows.has_offset
    starts = _compute_starts(model, executor, loss, sums, metadata.rows.n_targets)
    grower = model._make_grower(bins, metadata.draw_order)
    check_custom_gradients(executor, loss, starts[0])
    start, folds = starts[0] if model._has_offset else None, []
    if model.standard_errors:
        folds += THIRDS
    if is_chosen:
        folds.append(EARLIER_ROWS)
    statistics = add_category_statistics(executor, loss, bins, start, keeps_categories=bool(folds))
    about = loss, grower, statistics, metadata.rows.n_targets
    fits = prepare_fold_fits(model, executor, *about, folds)
    earlier = fits.pop() if is_chosen else None
    if statistics is not None:
        grower = statistics.extend_grower(
            grower, np.zeros((statistics.n_columns, 0), dtype=np.uint8)
        )
    run = _make_run_without_rows(model, loss, grower, statistics, len(starts[0]))
    return StartedRun(run, starts, dict(executor.reduce(list_digests)), fits, earlier, bins)


def _assign_to_folds(
    model: Any,
    executor: Executor,
    metadata: FitMetadata,
    split: ValidationSplit | None,
    order: TimeArguments | None,
) -> FoldAssignment | None:
    """Assign the training rows to thirds for standard errors, and to earlier and latest rows.

    model: boosted trees, whose parameter `standard_errors` asks for thirds; executor: reads the
    rows; metadata: result of the first pass; split: which rows are validation rows, or None; order:
    column of times and gap if the latest rows choose the number of rounds, else None. Return the
    number of each row's fold, ``third + 3 * set``, or None if neither assignment is needed.
    """
    folds, about = None, (executor, metadata.encoder)
    if model.standard_errors:
        folds = assign_to_thirds(*about, split, model._seed)
    return folds if order is None else assign_to_periods(*about, order, folds, model._seed)


def _choose_rounds(
    model: Any,
    executor: Executor,
    started: StartedRun,
    n: int,
    options: RoundOptions,
) -> int:
    """Choose the number of rounds with the smallest loss on the latest rows, in a fit to earlier rows.

    model: boosted trees; executor: holds the rows, in blocks with folds; started: the run of the
    model before its first round, and the start of the fit to the earlier rows; n: number of training
    rows; options: has the time limit, and the trees of a previous fit. Raise ValueError if a warm
    start would make fewer rounds than the previous fit.
    """
    assert started.earlier is not None
    limit = options.limit.take_fraction(0.5) if model.standard_errors else options.limit
    executor.run_on_ranks(start_rounds, started.digests, started.run, *started.starts, 1)
    selection = RoundSelection(executor, started.earlier, started.run)
    how = selection.start_runs, selection.advance
    n_rounds: int = model._search_n_rounds(n, True, limit, *how)
    executor.run_on_ranks(end_round_selection)
    if options.before is not None:
        model._expect_no_fewer_rounds(n_rounds)
    return n_rounds


def _sketch_rows(
    model: Any, executor: Executor, metadata: FitMetadata, split: ValidationSplit | None
) -> tuple[SketchedRows, Loss]:
    """Draw the sample of training rows from which bin edges are computed, and make the loss.

    With several targets, the `SketchedRows` and the loss that are returned both store the order in
    which targets are added and hashed, which does not depend on the order of the columns of y.
    model: boosted trees; executor: reads the rows; metadata: result of the first pass; split: which
    rows are validation rows, or None.
    """
    loss, rows = model._make_loss(), metadata.rows
    largest = None
    if rows.n_targets > 1:
        # Validation rows may have larger targets.
        largest = (
            rows.largest_targets
            if split is None
            else find_largest_targets(split.summary.train.ends)
        )
    encoder, scaling = metadata.encoder, metadata.weight_scaling
    sketched = sketch_rows(executor, encoder, scaling, rows.n, split, largest)
    if isinstance(loss, MultiOutputLoss):
        # Without target keys, the outputs are quantiles of one target.
        keys = sketched.sketch.target_keys.tolist() or [0] * len(loss.components)
        loss = loss.with_order(keys)
        sketched = replace(sketched, target_order=loss.order)
    return sketched, loss


def _count_scored(model: Any, executor: Executor) -> int:
    """Return how many validation rows the scorer of early stopping reads in each round.

    model: boosted trees; executor: reads the rows. 0 without a validation set, or if rounds are
    scored by their loss, which needs no scorer.
    """
    if model.scoring == "loss" or not isinstance(executor, ExecutorWithValidation):
        return 0
    return executor.n_validation or 0


def _estimate_memory(
    model: Any,
    metadata: FitMetadata,
    executor: Executor,
    has_validation_rows: bool,
    order: TimeArguments | None,
) -> MemoryNeed:
    """Return the byte counts, such as bytes per row, that estimate the memory of the fit.

    `certree.out_of_core.memory_limit` adds them up; the sum is an upper bound.

    model: boosted trees; metadata: numbers of rows, features and classes; executor: reads the rows;
    has_validation_rows: whether the user has passed a validation set in memory; order: the column
    of times and the gap that were passed to `fit`; None: rows have no times.
    """
    n, p = metadata.rows.n, model._n_encoded
    K = max(int(np.sum(getattr(model, "n_classes_", 1))), model._make_loss().n_outputs)
    is_remote = isinstance(executor, ExecutorWithValidation)
    stops = stops_early(model.early_stopping, n)
    is_split = stops and model.validation_fraction is not None
    is_split = is_split and not (has_validation_rows or is_remote)
    has_folds = model.standard_errors or _is_chosen_by_latest_rows(model, n, stops, order)
    n_leaves = model.max_leaf_nodes
    if n_leaves == "auto":
        n_leaves = model._make_plan(n).max_leaf_nodes
    n_leaves = bound_leaves(n, n_leaves, model.max_depth, model.min_samples_leaf)
    # Statistics of categories are further binned features.
    n_categories = count_categories(metadata)
    n_indexed = sum(n_codes > MAX_SET_CATEGORIES for n_codes in n_categories)
    p += n_indexed * (1 + min(K, MAX_TARGET_CLASSES))
    offset_bytes = 8.0 * K * metadata.rows.has_offset
    histogram_bytes = count_histogram_bytes(p)
    # All trees, twice while they are joined.
    n_trees = (model._get_fixed_rounds(n, stops) or 0) * model._count_members()
    trees = 2.0 * n_leaves * n_trees * (250 + 32 * K + 12 * max(n_categories, default=0))
    n_scored = _count_scored(model, executor)
    if model.scoring != "loss" and is_split:
        n_scored = count_held_out(model.validation_fraction, n, "rows")
    # A small table is fitted in memory.
    in_memory = n * (100.0 * p + 500 + 100 * K) if n <= _IN_MEMORY else 0.0
    scored = n_scored * (_SCORED_BYTES + 64.0 * K)
    # Features as numbers, sorted, and split into two sets.
    feature_bytes = (41 if is_split or is_remote else 17) * p
    return MemoryNeed(
        fixed=_count_row_bytes(model, is_split, has_folds) * n
        + count_group_bytes(n, metadata.n_groups),
        per_read_row=feature_bytes + 200 + 24 * K + 6 * offset_bytes,
        per_compared_row=(300 if is_split else 150) + offset_bytes,
        after_reading=trees + 8.0 * n_leaves * histogram_bytes + in_memory + scored,
        per_thread=0.5 * n_leaves * histogram_bytes,
        per_thread_row=100 + 40 * K + p,
        scratch_per_row=_count_scratch_bytes(metadata, p, K, offset_bytes, has_folds),
    )


def _count_row_bytes(model: Any, is_split: bool, has_folds: bool) -> float:
    """Estimate the bytes of memory per row that are held during the whole fit.

    These are the hashes of a classifier's rows; the mask of validation rows, twice while it is
    computed; arrays of loss functions written in Python, which are not in files; and the number of
    each row's fold. model: boosted trees; is_split: whether validation rows are held out;
    has_folds: whether rows are assigned to thirds for standard errors, or to earlier and latest
    rows.
    """
    n_bytes = 16.0 * is_classifier(model) + 3.0 * is_split
    n_bytes += _CUSTOM_BYTES * _has_custom_loss(model)
    return n_bytes + _FOLD_BYTES * has_folds


def _count_scratch_bytes(
    metadata: FitMetadata, p: int, K: int, offset_bytes: float, has_folds: bool
) -> float:
    """Estimate the bytes of temporary files per row, with p binned features and K outputs.

    Files hold blocks and joined rows at the same time, or joined rows and the arrays of the C++
    core. metadata: numbers of features and classes; offset_bytes: bytes of a row's offsets;
    has_folds: whether there are fits to the rows of some folds.
    """
    n_bytes = 3.0 * p + 110 + 8 * metadata.rows.are_grouped + 48 * K + 2 * offset_bytes
    # A copy of the rows for one such fit at a time.
    return n_bytes + (3.0 * p + 120 + 80 * K + offset_bytes) * has_folds


def _compute_starts(
    model: Any, executor: Executor, loss: Loss, sums: TargetSums, n_targets: int
) -> tuple[Float64, Float64]:
    """Compute the constant start scores, to which offsets are added, and those without offsets.

    Start scores are the scores of all rows before the first round. Both arrays have shape
    (n_outputs,). With one output, or without offsets, the second is the first. model: boosted
    trees; executor: holds blocks of the training rows; loss: the loss that rounds minimize; sums:
    sums of targets over the training rows; n_targets: number of targets.
    """
    rows = TrainingTargets(executor, sums, n_targets, model._has_offset)
    start = loss.find_start(rows)
    if not model._has_offset or loss.n_outputs == 1:
        return start, start
    return start, loss.find_start(replace(rows, has_offset=False))


def _scan_validation_set(
    model: Any, executor: Executor, metadata: FitMetadata, has_hashes: bool
) -> int:
    """Read targets and weights of an out-of-core validation set, and return its number of rows.

    Return 0 if there is none.

    has_hashes: whether a classifier stores hashes of its rows. Raise ValueError or TypeError for
    wrong targets or weights. model: boosted trees, whose classes are known; executor: reads the
    validation set; metadata: result of the first pass over the training rows.
    """
    if not isinstance(executor, ExecutorWithValidation):
        return 0
    found = executor.scan_validation_set(model, metadata, has_hashes=has_hashes)
    if not is_classifier(model):
        model._make_loss().check_targets(found.rows.ends)
    return int(found.rows.n)


def _add_validation_set(executor: Executor, validation: Training, *, is_scaled: bool) -> None:
    """Add a validation set that is in memory to the first block of the executor.

    executor: holds the blocks; validation: rows of the validation set; is_scaled: whether their
    weights are scaled to a mean of 1.
    """
    scaling = _make_weight_scaling(validation) if is_scaled else None
    if scaling is not None and validation.weight is not None:
        validation = replace(validation, weight=scaling(validation.weight))
    per_block = [validation, *[None] * (executor.n_blocks - 1)]
    executor.replace_blocks(add_validation_rows, per_block=per_block)


def _make_weight_scaling(validation: Training) -> WeightScaling | None:
    """Return a function that scales the weights of a validation set to a mean of 1.

    validation: rows of the validation set in memory. Return None if they have no weights.
    """
    if validation.weight is None:
        return None
    largest = float(validation.weight.max())
    total = exact_sum(divide_by_largest(validation.weight, largest))
    return WeightScaling(largest, len(validation.y) / round_sum(total))


def _stops_early(model: Any, metadata: FitMetadata) -> bool:
    """Return whether early stopping is on for a fit to files.

    model: boosted trees; metadata: number of rows, by which "auto" is resolved. Raise ValueError if
    early stopping is on with a scorer that needs all rows in memory.
    """
    stops = stops_early(model.early_stopping, metadata.rows.n)
    if stops:
        expect_named_scorer(model)
    return stops


def _split_validation_set(
    model: Any, executor: Executor, metadata: FitMetadata, order: TimeArguments | None
) -> tuple[ValidationSplit | None, FitMetadata]:
    """Choose the rows that early stopping holds out; None if `validation_fraction` is None.

    Also return the metadata, in which the order in which features are drawn is computed anew from
    the training rows alone. model: boosted trees; executor: reads the rows; metadata: result of the
    first pass; order: column of times and gap, by which the latest rows validate; None: random rows
    do.
    """
    if model.validation_fraction is None:
        return None, metadata
    encoder, scaling = metadata.encoder, metadata.weight_scaling
    timed: Any = executor
    gap: Any = 0
    if order is not None:
        times = read_times(executor, encoder, order)
        timed, gap = times.attach(executor, encoder), times.rows.gap
    size, seed = model.validation_fraction, model._seed
    split = split_validation_set(timed, encoder, scaling, size, seed, gap)
    if model.scoring != "loss":  # a scorer gets weights that are not scaled
        scalings = split.sorter.weight_scalings[0], None
        split = replace(split, sorter=replace(split.sorter, weight_scalings=scalings))
    if not is_classifier(model):
        model._make_loss().check_targets(split.summary.train.ends)
    return split, metadata.with_draw_order(compute_training_draw_order(executor, encoder, split))


def _make_run_without_rows(
    model: Any,
    loss: Loss,
    grower: BinnedGrower,
    statistics: CategoryStatistics | None,
    n_outputs: int,
) -> BoostingRun:
    """Return an empty boosting run on the client, to which the trees of the workers are appended.

    The run has no rows. model: boosted trees; loss: its loss; grower: grower for the bins of all
    rows; statistics: statistics of categories as features, or None; n_outputs: number of scores.
    """
    return BoostingRun(
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
    executor: Executor,
    has_validation_set: bool,
    stops: bool,
    callbacks: Sequence[Callback],
) -> DistributedEvaluation:
    """Make the object that scores rounds and decides when to stop.

    Rounds are scored on the training rows and the validation set, if there is early stopping, a
    validation set or a callback; and for the output with ``verbose > 0``, unless the model is the
    mean of several runs. model: boosted trees; executor: holds the rows; has_validation_set:
    whether there is a validation set; stops: whether early stopping is on; callbacks: called after
    each round.
    """
    n_members, is_scored = model._count_members(), stops or has_validation_set or bool(callbacks)
    scored: Sequence[Any] = ()
    scorer = get_scorer(model) if is_scored else None
    if scorer is not None:
        scored = make_distributed_scores(model, scorer, executor)
    elif is_scored or (model.verbose > 0 and n_members == 1):
        scored = [itemgetter(0), itemgetter(1)][: 1 + has_validation_set]
    return DistributedEvaluation(
        scored,
        is_wanted=is_scored,
        is_loss=scorer is None,
        is_custom=_has_custom_loss(model),
        n_runs=n_members,
        n_iter_no_change=model.n_iter_no_change if stops else 0,
        tol=float(model.tol),
        callbacks=callbacks,
        executor=executor,
        has_validation_set=has_validation_set,
    )


def _boost(
    model: Any,
    executor: Executor,
    started: StartedRun,
    n_rounds: int,
    evaluation: DistributedEvaluation,
    options: RoundOptions,
) -> None:
    """Make the rounds in all processes that hold rows (ranks), and set the fitted attributes.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    executor : Executor
        Holds the rows, and calls functions in the processes that have them.
    started : StartedRun
        The first run of the model, before its first round.
    n_rounds : int
        Number of rounds after which the fit ends, those of the previous fit included; with early
        stopping the largest number.
    evaluation : DistributedEvaluation
        Scores the rounds, and ends the fit by early stopping or a callback.
    options : RoundOptions
        Previous trees and time limit. With standard errors, the rounds get half of the time, and
        the fits to thirds of the rows the other half.
    """
    n_members, run, before = model._count_members(), started.run, options.before
    starts, limit = started.starts, options.limit
    limit = limit.take_fraction(0.5) if model.standard_errors else limit
    start, _ = starts
    settings: Settings = executor.run_on_ranks(
        start_rounds, started.digests, run, *starts, n_members
    )
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
        model._errors = compute_standard_errors(
            model, executor, started.thirds, deviation, started.bins
        )
    model._record(evaluation.get_recorded_scores())


def _add_previous_rounds(
    model: Any, before: Trees, run: BoostingRun, evaluation: DistributedEvaluation
) -> Float64:
    """Set the scores of all rows to those by the trees of the previous fit, for a warm start.

    The scores are stored with the rows, in the processes that hold them.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    before : Trees
        Trees of the previous fit.
    run : BoostingRun
        Run without rows, with the bins of the new fit.
    evaluation : DistributedEvaluation
        Scores the rounds, and calls functions in the processes that hold rows.

    Returns
    -------
    ndarray of shape (n_iter_ + 1, 1 or 2), (n_iter_ + 1, n_outputs, n_scored), or (0,)
        Scores (of the training set, and of the validation set) by the loss, or raw predictions for a
        scorer, before the first round and after each one; (0,) if rounds are not scored.

    Raises
    ------
    ValueError
        If a tree has a threshold inside a bin, because the rows differ from those of the fitted model.
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
    options = is_scored, evaluation.has_validation_set, evaluation.is_loss
    results = evaluation.executor.gather_from_ranks(add_previous_rounds, *trees, *options)
    return np.asarray(results[0] if evaluation.is_loss else np.concatenate(results, axis=-1))


def _count_rounds(model: Any, n: int, stops: bool, options: RoundOptions) -> int | None:
    """Return the number of rounds of a fit to n rows, including those of the previous fit.

    model: boosted trees; stops: whether early stopping is on; then return the largest number;
    options: previous trees, and column of times. Return None if the latest rows of a large table
    choose the number. Raise `InMemory`, so that the caller fits in memory, if the fit needs
    cross-validation of a small table or starts from a ridge regression. Raise ValueError if the
    model already has more rounds.
    """
    if model._has_linear_start(n):
        raise InMemory
    n_rounds = model._get_fixed_rounds(n, stops, has_times=options.order is not None)
    if n_rounds is None:
        if not _is_chosen_by_latest_rows(model, n, stops, options.order):
            raise InMemory
        return None
    if options.before is not None:
        model._expect_no_fewer_rounds(n_rounds)
    return int(n_rounds)


def _is_chosen_by_latest_rows(model: Any, n: int, stops: bool, order: TimeArguments | None) -> bool:
    """Return whether the latest of n rows choose the number of rounds, and are not in memory.

    They do if rows have times, the parameters of the model do not set the number, and n > 30,000.
    model: boosted trees; stops: whether rounds stop early; order: column of times and gap, or None.
    """
    is_chosen = order is not None and model._get_fixed_rounds(n, stops, has_times=True) is None
    return is_chosen and n > _IN_MEMORY


def expect_out_of_core_parameters(model: Any, *, is_scored: bool) -> None:
    """Raise ValueError if rounds are scored by a scorer that needs all rows in memory.

    That is, unless the parameter `scoring` is "loss" or the name of a scorer. model: boosted trees;
    is_scored: whether rounds are scored because of a validation set or a callback; early_stopping=
    True scores them, too.
    """
    if model.early_stopping is True or is_scored:
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
