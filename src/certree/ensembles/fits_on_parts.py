"""Fits of boosted trees on rows that lie in parts: the model of the same rows in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree.ensembles.category_statistics import (
    MAX_SET_CATEGORIES,
    MAX_TARGET_CLASSES,
    CategoryStatistics,
)
from certree.ensembles.custom_loss import CustomLoss
from certree.ensembles.evaluation import Callback, Evaluation, average_scores, stops_early
from certree.ensembles.levels_of_parts import see_levels
from certree.ensembles.losses import HuberLoss, LogLoss, Loss, QuantileLoss
from certree.ensembles.multi_output_loss import MultiOutputLoss
from certree.ensembles.rounds import Rounds, add_gain_importances, resolve_threshold_counts
from certree.ensembles.rounds_of_parts import RoundsOfParts
from certree.ensembles.scales_of_parts import start_at_quantile
from certree.grow.binned_grower import BinnedGrower
from certree.grow.bins import Bins
from certree.interface.arrays import Float64, Int32, divide_by_largest
from certree.interface.progress import RowRate, show_progress
from certree.parts.binned_parts import Sketch
from certree.parts.chunks import Weighing
from certree.parts.exact_sums import exact_sum, rounded
from certree.parts.executors import Executor, InMemory
from certree.parts.first_look import Learned, largest_of, learn
from certree.parts.fit_hashes import hashes_of_fit
from certree.parts.held_out import RowsHeldOut, hold_out
from certree.parts.joined_rows import JoinedRows
from certree.parts.judging_rows import JudgedParts
from certree.parts.keys import set_keys
from certree.parts.made_parts import (
    Sketched,
    make_parts,
    order_of_training,
    put_beside,
    sketched,
    total_weight,
    warn_of_identifiers,
)
from certree.parts.memory_limit import Need, most_leaves, numbers_of_categories, sums_of_cell
from certree.rows.duplicates import warn_of_repeated_rows
from certree.rows.training import Training
from certree.tree import Trees

# Most rows of fits that may be made in memory.
_IN_MEMORY = 30_000
# See `fit_on_parts`.
Judged = Callable[[], tuple[Training | None, dict[str, Any]]]


def fit_on_parts(
    model: Any,
    parts: Executor,
    judged: Judged | None = None,
    callbacks: Sequence[Callback] = (),
) -> None:
    """Fit a boosted model to rows that an executor holds.

    Parameters
    ----------
    model : BoostedTrees
        The model.
    parts : Executor
        Holds the rows.
    judged : callable or None
        Gives once the model knows classes and features the rows that judge it, in memory, and the
        attributes that tell the rows of a fit in which they have a part; None: none do, or such as a
        `JudgedParts` holds.
    callbacks : sequence of callables
        Are called after each round.

    Raises
    ------
    InMemory
        If rows are so few that a fit in memory does what a fit on parts cannot.
    ValueError, TypeError
        If the fit is one that takes rows in memory, or rows are wrong; as `fit` says.
    """
    learned = learn(model, parts)
    learned.teach(model)
    is_judged, lie_apart = judged is not None, isinstance(parts, JudgedParts)
    parts.keep_to_limit(_need(model, learned, is_judged, lie_apart))
    if not is_classifier(model):
        model._make_loss().check_targets(learned.found.ends)
    model._seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    stops = _stops(model, learned)
    held = _held_out(model, parts, learned) if stops and not (is_judged or lie_apart) else None
    if held is not None:
        learned = learned.looking(order_of_training(parts, learned.reader, held))
    known, loss = _sketched(model, parts, learned, held)
    n_rounds = _n_rounds(model, known.n, stops)
    warn_of_identifiers(model, known.sketch)
    n, n_held, (weighing, of_held) = known.n, known.n_held, known.weighings
    if isinstance(parts, JudgedParts):
        n_held, of_held = _read_judges(model, parts, learned, stops or bool(callbacks))
    bins, totals = make_parts(parts, learned.reader, known, many=_many_levels(known.sketch))
    del known  # and the rows that have told edges of bins
    if is_classifier(model):
        model.sample_hashes_, model._sample_counts = hashes_of_fit(parts, n + n_held)
    judges, of_rows = judged() if judged is not None else (None, dict[str, Any]())
    if judges is not None:
        n_held, of_held = len(judges.y), _put_beside(parts, judges)
    n_repeated = set_keys(parts, n)
    if held is not None:  # rows that are held out are rows of the fit, too
        n_repeated = held.n_repeated
    warn_of_repeated_rows(n_repeated, learned.found.n)
    model._set_automatic_parameters(n)
    grower, statistics = _grower(model, parts, loss, bins, learned.draw_order)
    weight, n_targets = total_weight(parts, n, weighing), learned.found.n_targets
    held_out, settings = _held_of(parts, n_held, of_held), model._make_settings(loss)
    how = model.thresholds_, model._seed, n_targets, held_out, statistics
    run = RoundsOfParts(settings, grower, n, weight, *how)
    start = _start(loss, parts, n, n_targets, totals, weighing)
    evaluation = _boost(model, parts, run, start, n_rounds, stops, callbacks)
    if evaluation.may_drop_rounds:
        model.__dict__.update(of_rows)


def _grower(
    model: Any, parts: Executor, loss: Loss, bins: Bins, order: Int32
) -> tuple[BinnedGrower, CategoryStatistics | None]:
    """What grows trees, and what is known of levels, which parts have as more features."""
    grower, statistics = model._make_grower(bins, order), see_levels(parts, loss, bins)
    if statistics is not None:
        grower = statistics.extend_grower(
            grower, np.zeros((statistics.n_columns, 0), dtype=np.uint8)
        )
    return grower, statistics


def _sketched(
    model: Any, parts: Executor, learned: Learned, held: RowsHeldOut | None
) -> tuple[Sketched, Loss]:
    """What decides the bins of all rows, and the loss, which knows the order of several targets."""
    loss, found = model._make_loss(), learned.found
    largest = None
    if found.n_targets > 1:
        # Rows that are held out may have larger ones.
        largest = found.largest_targets if held is None else largest_of(held.sides.train.ends)
    known = sketched(parts, learned.reader, learned.weighing, found.n, held, largest)
    if isinstance(loss, MultiOutputLoss):
        # Quantiles are of one target.
        loss = loss.with_order(known.sketch.target_keys.tolist() or [0] * len(loss.components))
        known = replace(known, order=loss.order)
    return known, loss


def _need(model: Any, learned: Learned, is_judged: bool, lie_apart: bool) -> Need:
    """What the fit holds in memory, from above.

    is_judged, lie_apart: whether there are rows that judge, in memory or elsewhere.
    """
    n, p = learned.found.n, model._n_encoded
    K = max(int(np.sum(getattr(model, "n_classes_", 1))), model._make_loss().n_outputs)
    stops = stops_early(model.early_stopping, n)
    is_dealt = stops and model.validation_fraction is not None and not (is_judged or lie_apart)
    n_leaves = model.max_leaf_nodes
    if n_leaves == "auto":
        n_leaves = max(model._SCHEDULE.max_leaf_nodes)
    n_leaves = most_leaves(n, n_leaves, model.max_depth, model.min_samples_leaf)
    n_rounds = model._get_fixed_rounds(n, stops)
    # What rows see of levels is in bins as features are.
    n_levels = numbers_of_categories(learned)
    p += sum(one > MAX_SET_CATEGORIES for one in n_levels) * (1 + min(K, MAX_TARGET_CLASSES))
    # Hashes of a classifier's rows; which rows are held out, and while it is decided.
    of_row = 16.0 * is_classifier(model) + 3.0 * is_dealt
    of_cell = sums_of_cell(p)
    # Trees, all of them and once more when they are put together.
    trees = (
        2.0
        * n_leaves
        * (n_rounds or 0)
        * model._count_members()
        * (250 + 32 * K + 12 * max(n_levels, default=0))
    )
    # Where rows are few they are fitted in memory.
    in_memory = n * (100.0 * p + 500 + 100 * K) if n <= _IN_MEMORY else 0.0
    return Need(
        always=of_row * n,
        # Features as numbers, in order, and both sides of them; hashes, targets, scores.
        worked=(40 if is_dealt or lie_apart else 16) * p + p + 200 + 24 * K,
        together=300 if is_dealt else 150,
        later=trees + 8.0 * n_leaves * of_cell + in_memory,
        of_thread=0.5 * n_leaves * of_cell,
        of_thread_row=100 + 40 * K + p,
        # Parts beside the joined rows, or these and the arrays of the core; see `JoinedRows`.
        scratch_row=3.0 * p + 110 + 48 * K,
    )


def _start(
    loss: Loss,
    parts: Executor,
    n: int,
    n_targets: int,
    totals: Counter[Any],
    weighing: Weighing | None,
) -> Float64:
    """The scores (n_outputs,) that a run on n rows of so many targets starts from."""
    targets = range(n_targets) if n_targets > 1 else [0] * len(loss.components)
    told = zip(loss.components, targets, strict=True)
    return np.concatenate([_start_of(one, parts, n, k, totals, weighing) for one, k in told])


def _start_of(
    loss: Loss, parts: Executor, n: int, of: int, totals: Counter[Any], weighing: Weighing | None
) -> Float64:
    """The same of the loss of one of the targets."""
    if isinstance(loss, QuantileLoss | HuberLoss):
        return start_at_quantile(loss, parts, n, weighing, of)
    is_weighed = weighing is not None and weighing.factor is not None

    def number(total: int) -> float:
        return rounded(total) if is_weighed else float(total)

    if isinstance(loss, LogLoss):
        counts = [number(totals[of, k]) for k in range(max(2, loss.n_outputs))]
        return loss.compute_start_from_counts(np.array(counts))
    mean = np.atleast_1d(np.float64(rounded(totals[of]) / number(totals["weight"])))
    return np.log(mean) if loss.is_log else mean


def _read_judges(
    model: Any, parts: JudgedParts, learned: Learned, are_known: bool
) -> tuple[int, Weighing | None]:
    """How many rows elsewhere judge, and how they are weighed; see `JudgedParts.read_judges`."""
    judging = parts.read_judges(model, learned, are_known=are_known)
    if not is_classifier(model):
        model._make_loss().check_targets(judging.found.ends)
    return judging.found.n, judging.weighing


def _put_beside(parts: Executor, judges: Training) -> Weighing | None:
    """Let rows in memory lie beside one of the parts; gives how they are weighed."""
    weighing = _normalised(judges)
    if weighing is not None and judges.weight is not None:
        judges = replace(judges, weight=weighing(judges.weight))
    parts.change(put_beside, own=[judges, *[None] * (parts.n_parts - 1)])
    return weighing


def _held_of(parts: Executor, n: int, weighing: Weighing | None) -> tuple[int, float]:
    """How many rows are held out, and the sum of their weights."""
    total = total_weight(parts, n, weighing, are_held=True)
    return n, float(n) if total is None else total


def _normalised(judges: Training) -> Weighing | None:
    """How rows in memory are weighed: by a mean of 1."""
    if judges.weight is None:
        return None
    largest = float(judges.weight.max())
    total = exact_sum(divide_by_largest(judges.weight, largest))
    return Weighing(largest, len(judges.y) / rounded(total))


def _stops(model: Any, learned: Learned) -> bool:
    """Whether rounds stop early, as rows say that are held out."""
    stops = stops_early(model.early_stopping, learned.found.n)
    if stops:
        expect_judged_by_loss(model)
    return stops


def _held_out(model: Any, parts: Executor, learned: Learned) -> RowsHeldOut | None:
    """Rows that are held out, which in memory have no part in bins and weights of the others."""
    if model.validation_fraction is None:
        return None
    about = learned.reader, learned.weighing
    held = hold_out(parts, *about, model.validation_fraction, model._seed)
    if not is_classifier(model):
        model._make_loss().check_targets(held.sides.train.ends)
    return held


def _evaluation(
    model: Any, run: RoundsOfParts, stops: bool, callbacks: Sequence[Callback]
) -> Evaluation:
    """What rounds are judged by, if somebody wants to know."""
    if not (stops or run.held[0] or callbacks):
        return Evaluation()
    # What is said are the scores of both sides.
    sides = [itemgetter(side) for side in range(2 if run.held[0] else 1)]
    n_iter_no_change = model.n_iter_no_change if stops else 0
    return Evaluation(
        sides,
        is_wanted=True,
        n_iter_no_change=n_iter_no_change,
        tol=float(model.tol),
        callbacks=callbacks,
    )


def _boost(
    model: Any,
    parts: Executor,
    run: RoundsOfParts,
    start: Float64,
    n_rounds: int,
    stops: bool,
    callbacks: Sequence[Callback],
) -> Evaluation:
    """Make the rounds of all members, and set what they have made; see `_boost_joined_rows`."""
    joined = parts.join()
    if joined is not None:
        return _boost_joined_rows(model, joined, run, start, n_rounds, stops, callbacks)
    evaluation = _evaluation(model, run, stops, callbacks)
    n_members, runs, pace = model._count_members(), [], RowRate()
    with show_progress(model.verbose > 0, n_members * n_rounds, type(model).__name__) as show:
        for member in range(n_members):
            one = replace(run, seed=run.seed + member, grown=[], rows=[])
            for n_made in one.advance(parts, start, n_rounds):
                scores = [one.scores_of_sides(parts)] if evaluation.is_wanted else []
                if n_made == 0:
                    evaluation.record_previous_scores(scores)
                    continue
                for said in scores:
                    evaluation.record_scores(said, n_made)
                show(1, evaluation.progress_text or pace.update(run.n))
                if evaluation.is_over:
                    break
            runs.append(one)
    made = len(runs[0].grown)
    model.start_, model.n_iter_, model._n_first_trees = (
        start,
        evaluation.count_kept_rounds(0, made),
        0,
    )
    model._has_offset, model._errors = False, None
    model._loss_factors = getattr(runs[0].settings.loss, "factors", ())
    model._importances = np.zeros(model._n_encoded)
    grown = [one.trees().keep_first(model.n_iter_) for one in runs]
    for one, trees in zip(runs, grown, strict=True):
        rows = np.concatenate([np.zeros(0), *one.rows])[: trees.n_nodes]
        outputs = one.settings.loss.output_order
        model._importances = add_gain_importances(trees, rows, model._importances, outputs)
    model._set_trees(grown)
    model._record(evaluation.get_recorded_scores())
    return evaluation


def _boost_joined_rows(
    model: Any,
    rows: JoinedRows,
    of_parts: RoundsOfParts,
    start: Float64,
    n_rounds: int,
    stops: bool,
    callbacks: Sequence[Callback],
) -> Evaluation:
    """Make the rounds on one table, as in memory, and set the fitted attributes.

    Parameters
    ----------
    model : BoostedTrees
        The model that is fitted.
    rows : JoinedRows
        Training rows, followed by the validation set.
    of_parts : RoundsOfParts
        Has settings, grower without codes, thresholds, seed, and category statistics.
    start : ndarray of shape (n_outputs,)
        Constant start scores.
    n_rounds : int
        Number of rounds; if the fit stops early the largest number.
    stops, callbacks
        See `BoostedTrees._make_evaluation`.

    Returns
    -------
    Evaluation
        See `BoostedTrees._fit_rounds`.
    """
    with rows.storage.hold_core_arrays():
        run = _start_joined_run(rows, of_parts, start)
        members = [
            run.copy_without_trees(
                seed=of_parts.seed + k, scores=_make_start_scores(rows, start, run.y.shape[-1])
            )
            for k in range(model._count_members())
        ]
        evaluation = model._make_evaluation(run, None, rows.values, stops, callbacks)
        evaluation.record_previous_scores(average_scores(members) for _ in range(1))
        model._n_first_trees, model._has_offset, model._errors = 0, False, None
        model._loss_factors = getattr(run.settings.loss, "factors", ())
        model._importances = np.zeros(model._n_encoded)
        last = model._run_rounds(members, 0, n_rounds, evaluation)
    model.start_, model.n_iter_ = start, evaluation.count_kept_rounds(0, last)
    before = Trees.joined([], model._n_encoded, len(start))
    model._append_new_trees(before, members, model.n_iter_)
    model._record(evaluation.get_recorded_scores())
    return evaluation


def _start_joined_run(rows: JoinedRows, of_parts: RoundsOfParts, start: Float64) -> Rounds:
    """Make the run on one table before its first round; see `_boost_joined_rows`."""
    settings, loss = of_parts.settings, of_parts.settings.loss
    n, y = rows.n, rows.y
    if isinstance(loss, MultiOutputLoss) and len(y) < len(loss.components):  # quantiles
        y = rows.storage.allocate((len(loss.components), y.shape[1]), np.float64)
        y[:] = rows.y
    scores = _make_start_scores(rows, start, y.shape[1])
    if isinstance(loss, MultiOutputLoss) and loss.needs_factors:
        weight = None if rows.weight is None else rows.weight[:n]
        means = [
            one.compute_mean(y[k, :n], scores[k : k + 1, :n], weight)
            for k, one in enumerate(loss.components)
        ]
        settings = replace(settings, loss=loss.with_factors(means))
    by_row = np.zeros((0, 0), np.uint8)
    if not resolve_threshold_counts(of_parts.thresholds).any():
        by_row = rows.transpose_codes()
    grower = replace(of_parts.grower, bins=of_parts.bins.with_codes(rows.codes, by_row))
    return Rounds(
        settings,
        grower,
        y if isinstance(loss, MultiOutputLoss) else y[0],
        rows.weight,
        rows.keys,
        of_parts.thresholds,
        scores,
        of_parts.seed,
        values=rows.values,
        statistics=of_parts.statistics,
        updates_scores=True,
    )


def _make_start_scores(rows: JoinedRows, start: Float64, n_all: int) -> Float64:
    """Make scores (n_outputs, n_all) that are `start`, (n_outputs,), in each row, in a file."""
    scores = rows.storage.allocate((len(start), n_all), np.float64)
    scores[:] = start[:, None]
    return scores


def _n_rounds(model: Any, n: int, stops: bool) -> int:
    """How many rounds there are, of n rows."""
    if model._has_linear_start(n):
        raise InMemory
    known = model._get_fixed_rounds(n, stops)
    if known is None:
        raise InMemory
    return int(known)


def _many_levels(known: Sketch) -> tuple[int, ...]:
    """Features of categories that have many levels."""
    return tuple(
        j
        for j, values in enumerate(known.values)
        if isinstance(values, tuple) and len(values[0]) > MAX_SET_CATEGORIES
    )


def expect_what_parts_can(model: Any, given: dict[str, Any], *, judges: bool) -> None:
    """Refuse what takes rows in memory, by its name.

    Parameters
    ----------
    model : BoostedTrees
        The model.
    given : dict
        What `fit` was given beside rows, target, weights and rows that judge, by name.
    judges : bool
        Whether there are rows that judge.
    """
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} takes rows in memory, got X that lies elsewhere")
    if not is_classifier(model) and isinstance(model.loss, CustomLoss):
        raise ValueError(f"loss={model.loss!r} takes rows in memory, got X that lies elsewhere")
    if model.standard_errors:
        raise ValueError("standard_errors=True takes rows in memory, got X that lies elsewhere")
    if model.warm_start:
        raise ValueError("warm_start=True takes rows in memory, got X that lies elsewhere")
    if model.early_stopping is True or judges:
        expect_judged_by_loss(model)


def expect_judged_by_loss(model: Any) -> None:
    """Refuse to judge rounds by what takes rows in memory."""
    for name, other in (("scoring", "loss"), ("quality", ("fast", "default"))):
        value = getattr(model, name)
        if not (isinstance(value, str) and value in np.atleast_1d(other)):
            raise ValueError(
                f"{name}={value!r} takes rows in memory where rounds are judged, got X that lies "
                "elsewhere"
            )
