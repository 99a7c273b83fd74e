"""Fits of boosted trees on rows that lie in parts: the model of the same rows in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Self, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree._core import fixed_unit
from certree.ensembles.custom_loss import CustomLoss
from certree.ensembles.evaluation import Evaluation, stops_early
from certree.ensembles.losses import HuberLoss, LogLoss, Loss, QuantileLoss
from certree.ensembles.many_levels import FEW_LEVELS
from certree.ensembles.rounds import importances
from certree.ensembles.rounds_of_parts import RoundsOfParts
from certree.ensembles.scales_of_parts import start_at_quantile
from certree.interface.arrays import Float64, UInt64, in_units_of_largest
from certree.interface.progress import Pace, progress
from certree.parts.binned_parts import Ends, Sketch, bins_of, encoded, hashes_below
from certree.parts.chunks import Chunk, Weighing, reader_of, training_of, without_class_weights
from certree.parts.exact_sums import class_totals, exact_sum, rounded, whole_sum
from certree.parts.executors import Executor
from certree.parts.first_look import (
    Found,
    first_look,
    learned_by,
    weighing_of,
    with_class_weights,
    with_features,
)
from certree.parts.fit_hashes import hashes_of_fit
from certree.parts.held_out import Division, Mask, RowsHeldOut, hold_out
from certree.parts.keys import set_keys
from certree.parts.part import PartOfRows
from certree.rows.categories import warn_if_identifier
from certree.rows.folds import MOST_COPIES
from certree.rows.hashes import fit_hashes, sample_hashes
from certree.rows.training import Training

# See `fit_on_parts`.
Judged = Callable[[], tuple[Training | None, UInt64 | None]]


class InMemory(Exception):  # noqa: N818 # no error: it says how to go on
    """Raised where the rows are so few that a fit in memory is meant, and does more."""


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """What is known of all rows once parts are made; those of more add up.

    Parameters
    ----------
    ends : Ends
        Of the bins.
    totals : Counter
        Exact weight of each class by its code; of numbers the weight ("weight"), and the weighed sum
        ("sum"). Weights of 1 are counted.
    """

    ends: Ends
    totals: Counter[Any]

    def __add__(self, other: Self) -> Self:
        """That of both."""
        ends, totals = self.ends + other.ends, Counter(self.totals)
        totals.update(other.totals)  # sums below 0 stay
        return replace(self, ends=ends, totals=totals)


def sketch(
    chunk: Chunk, reader: Any, weighing: Weighing | None, below: int | None = None
) -> Sketch | None:
    """What decides the bins of a chunk, and the sum of its weights in units of the largest one.

    below: of rows whose hashes are below it; None: of all.
    """
    training: Any = training_of(reader, chunk, weighing)
    if training is None:
        return None
    made = Sketch.of(training.features, _category(reader), below)
    weight = training.weight
    return made if weight is None else replace(made, weight=exact_sum(weight))


def sketch_of_side(
    number: int, chunk: Chunk, reader: Any, division: Division, mask: Mask
) -> tuple[PartOfRows, Sketch | None]:
    """What decides the bins: the rows of a chunk that train; the part is an empty one."""
    training: Any = division.rows(reader, chunk)
    made = None
    if training is not None and not mask.all():
        train: Any = division.sides(training, mask)[0]
        made = Sketch.of(train.features, _category(reader))
    return _without_rows(number, reader.n_features_in_, None), made


def _without_rows(number: int, p: int, weighing: Weighing | None) -> PartOfRows:
    """A part that a chunk becomes of which no row weighs anything."""
    none, codes = np.zeros(0), np.zeros((p, 0), dtype=np.uint8)
    weight = None if weighing is None or weighing.are_copies else none
    return PartOfRows(number, codes, none, weight, np.zeros(0, dtype=np.uint64))


def _category(reader: Any) -> Any:
    mask = reader._category_mask()
    return np.zeros(reader.n_features_in_, np.uint8) if mask is None else mask.astype(np.uint8)


def made_part(
    number: int,
    chunk: Chunk,
    reader: Any,
    weighing: Weighing | None,
    edges: tuple[Any, ...],
    division: Division | None = None,
    mask: Mask | None = None,
) -> tuple[PartOfRows, Made | None]:
    """The part that a chunk becomes, whose keys are hashes as yet.

    division, mask: how rows are told apart, and which of them are held out; None: none are.
    """
    training: Any = (
        training_of(reader, chunk, weighing) if division is None else division.rows(reader, chunk)
    )
    if training is None:
        return _without_rows(number, len(edges), weighing), None
    if division is None or mask is None:
        part, made = _coded(number, training, reader, edges)
    else:
        train, held = division.sides(training, mask)
        part, made = _coded(number, train, reader, edges)
        part, _ = beside(part, held)
        part = replace(part, digest=part.digest + int(_hashes(held).sum(dtype=np.uint64)))
    if is_classifier(reader):
        part = replace(part, known=fit_hashes(*training.features.parts))
    return part, made


def beside(part: PartOfRows, held: Training | None) -> tuple[PartOfRows, int]:
    """A part that has rows beside it which are held out; None: it has none."""
    if held is None:
        return part, 0
    values, y = held.features.matrix.astype(np.float64), held.y.astype(np.float64)
    return replace(part, values=values, y_held=y, weight_held=held.weight), 0


def _coded(
    number: int, training: Any, reader: Any, edges: tuple[Any, ...]
) -> tuple[PartOfRows, Made]:
    """The part that rows become which train."""
    y, weight, hashes = training.y, training.weight, _hashes(training)
    codes, ends = encoded(training.features, edges)
    numbers, digest = y.astype(np.float64), int(hashes.sum(dtype=np.uint64))
    part = PartOfRows(number, codes, numbers, weight, hashes, digest)
    if is_classifier(reader):
        return part, Made(ends, Counter(dict(enumerate(class_totals(y, weight)))))
    weighed = numbers if weight is None else numbers * weight
    total = len(y) if weight is None else exact_sum(weight)
    return part, Made(ends, Counter({"weight": total, "sum": exact_sum(weighed)}))


def _hashes(rows: Training) -> UInt64:
    """Hashes of rows, their targets and their weights."""
    beside = () if rows.weight is None else (rows.weight,)
    return sample_hashes(*rows.features.parts, rows.y, *beside)


def weight_of(part: PartOfRows, unit: int, are_held: bool) -> int:
    """Sum of the weights of a part, or of its rows that are held out, as whole numbers."""
    weight = part.weight_held if are_held else part.weight
    return 0 if weight is None else whole_sum(weight, unit)


def _start(loss: Loss, parts: Executor, n: int, totals: Counter[Any], is_weighed: bool) -> Float64:
    """The scores (n_outputs,) that a run on n rows starts from."""
    if isinstance(loss, QuantileLoss | HuberLoss):
        return start_at_quantile(loss, parts, n)

    def number(total: int) -> float:
        return rounded(total) if is_weighed else float(total)

    if isinstance(loss, LogLoss):
        return loss.start_of(np.array([number(totals[k]) for k in range(max(2, loss.n_outputs))]))
    mean = np.atleast_1d(np.float64(rounded(totals["sum"]) / number(totals["weight"])))
    return np.log(mean) if loss.is_log else mean


def fit_on_parts(model: Any, parts: Executor, judged: Judged | None = None) -> None:
    """Fit a boosted model to rows that an executor holds.

    Parameters
    ----------
    model : BoostedTrees
        The model.
    parts : Executor
        Holds the rows.
    judged : callable or None
        Gives once the model knows classes and features the rows that judge it, in memory, and the
        hashes of a fit in which they have a part; None: none do.

    Raises
    ------
    InMemory
        If rows are so few that a fit in memory does what a fit on parts cannot.
    ValueError, TypeError
        If the fit is one that takes rows in memory, or rows are wrong; as `fit` says.
    """
    found, reader = _learn(model, parts)
    loss, weighing = model._loss(), weighing_of(found, _is_weighed(model, parts))
    if not is_classifier(model):
        loss.expect_domain(np.array(found.ends))
    if weighing is not None and not weighing.are_copies:
        _expect_copies(model, loss)
    model._seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    stops, held = _stops(model, found, weighing), None
    if stops and model.validation_fraction is not None and judged is None:
        held = _held_out(model, parts, reader, found, weighing)
    known, weighings = _sketched(parts, reader, found.n, weighing, held)
    n_rounds = _n_rounds(model, known.n, stops)
    _expect_few_levels(model, known)
    edges = known.edges()
    made = _made(parts, reader, weighings[0], edges, held)
    n_held = 0 if held is None else held.sides.held.n
    if is_classifier(model):
        model.sample_hashes_ = hashes_of_fit(parts, known.n + n_held)
    judges, hashes = (None, None) if judged is None else judged()
    if judges is not None:
        n_held, weighings = len(judges.y), (weighings[0], _put_beside(parts, judges))
    set_keys(parts, known.n)
    model._choose_parameters(known.n)
    total = _total_weight(parts, known.n, weighings[0])
    bins = bins_of(edges, made.ends, _category(reader))
    run = RoundsOfParts(
        model._settings(loss),
        parts,
        model._grower_in(bins),
        known.n,
        total,
        model.thresholds_,
        model._seed,
        _held_of(parts, n_held, weighings[1]),
    )
    start = _start(loss, parts, known.n, made.totals, total is not None)
    _boost(model, run, start, n_rounds, stops)
    if stops and hashes is not None:
        model.sample_hashes_ = hashes


def _sketched(
    parts: Executor, reader: Any, n: int, weighing: Weighing | None, held: RowsHeldOut | None
) -> tuple[Sketch, tuple[Weighing | None, Weighing | None]]:
    """What decides the bins, and how rows that train and rows that are held out are weighed."""
    if held is not None:
        known: Sketch = parts.make(sketch_of_side, reader, held.division, own=held.masks)
        return known, held.division.weighings
    known = parts.look(sketch, reader, weighing, hashes_below(n))
    if not known.is_whole:
        known = parts.look(sketch, reader, weighing)
    if weighing is not None and not weighing.are_copies:
        weighing = replace(weighing, factor=known.n / rounded(known.weight))
    return known, (weighing, None)


def _made(
    parts: Executor,
    reader: Any,
    weighing: Weighing | None,
    edges: tuple[Any, ...],
    held: RowsHeldOut | None,
) -> Made:
    """What is known of the rows once parts are made."""
    if held is None:
        return cast("Made", parts.make(made_part, reader, weighing, edges))
    given = reader, weighing, edges, held.division
    return cast("Made", parts.make(made_part, *given, own=held.masks))


def _put_beside(parts: Executor, judges: Training) -> Weighing | None:
    """Let rows in memory lie beside one of the parts; gives how they are weighed."""
    weighing = _normalised(judges)
    if weighing is not None and judges.weight is not None:
        judges = replace(judges, weight=weighing(judges.weight))
    parts.change(beside, own=[judges, *[None] * (parts.n_parts - 1)])
    return weighing


def _held_of(parts: Executor, n: int, weighing: Weighing | None) -> tuple[int, float]:
    """How many rows are held out, and the sum of their weights."""
    total = _total_weight(parts, n, weighing, are_held=True)
    return n, float(n) if total is None else total


def _normalised(judges: Training) -> Weighing | None:
    """How rows in memory are weighed: by a mean of 1."""
    if judges.weight is None:
        return None
    largest = float(judges.weight.max())
    total = exact_sum(in_units_of_largest(judges.weight, largest))
    return Weighing(False, largest, len(judges.y) / rounded(total))


def _stops(model: Any, found: Found, weighing: Weighing | None) -> bool:
    """Whether rounds stop early, as rows say that are held out."""
    are_copies = weighing is not None and weighing.are_copies
    n = int(rounded(found.total())) if are_copies else found.n
    stops = stops_early(model.early_stopping, n)
    if stops:
        expect_judged_by_loss(model)
    return stops


def _held_out(
    model: Any, parts: Executor, reader: Any, found: Found, weighing: Weighing | None
) -> RowsHeldOut:
    """Rows that are held out, which in memory have no part in bins and weights of the others."""
    is_dealt_apart = found.are_whole and rounded(found.total()) <= MOST_COPIES
    if weighing is not None and not weighing.are_copies and is_dealt_apart:
        raise ValueError(
            "whole weights of more than ten for each row on average take rows in memory with "
            "early_stopping, which deals each copy by itself, got X that lies elsewhere"
        )
    held = hold_out(parts, reader, weighing, model.validation_fraction, model._seed)
    if not is_classifier(model):
        model._loss().expect_domain(np.array(held.sides.train.ends))
    return held


def _learn(model: Any, parts: Executor) -> tuple[Found, Any]:
    """Learn classes and features; gives what was found, and a model that reads rows by it."""
    # Some rows alone do not tell which classes there are, and so not what they weigh.
    found = _looked(model, without_class_weights(model), parts)
    reader = model
    if getattr(model, "class_weight", None) is not None:
        reader = with_class_weights(model, found, parts.has_weights)
        found = _looked(model, reader, parts)
    learned = learned_by(found)
    model.__dict__.update(learned)
    if learned["feature_names_in_"] is None:
        del model.__dict__["feature_names_in_"]
    return found, reader_of(reader, learned)


def _looked(model: Any, reader: Any, parts: Executor) -> Found:
    """What all rows tell a model that has not learned yet."""
    chosen = model.categorical_features
    types_tell = parts.empty is not None and (chosen is None or isinstance(chosen, str))
    found: Found | None = parts.look(first_look, reader, targets_only=types_tell)
    if found is None:
        raise ValueError("sample_weight must be positive for at least one row")
    return with_features(found, parts.empty, model) if types_tell else found


def _is_weighed(model: Any, parts: Executor) -> bool:
    return parts.has_weights or getattr(model, "class_weight", None) is not None


def _total_weight(
    parts: Executor, n: int, weighing: Weighing | None, *, are_held: bool = False
) -> float | None:
    """Sum of the weights of n rows as sums of losses have it; None: each counts once."""
    if weighing is None or weighing.factor is None:
        return None
    unit = fixed_unit(weighing.factor, n)
    return float(np.ldexp(float(parts.collect(weight_of, unit, are_held)), unit))


def _boost(model: Any, run: RoundsOfParts, start: Float64, n_rounds: int, stops: bool) -> None:
    """Make the rounds of all members, and set what they have made."""
    n_members, runs, pace = model._n_members(), [], Pace()
    evaluation = Evaluation()
    is_wanted = stops or run.held[0] > 0
    if is_wanted:
        # What is said are the scores of both sides.
        sides = [itemgetter(side) for side in range(2 if run.held[0] else 1)]
        n_iter_no_change = model.n_iter_no_change if stops else 0
        evaluation = Evaluation(
            sides, is_wanted=True, n_iter_no_change=n_iter_no_change, tol=float(model.tol)
        )
    with progress(model.verbose > 0, n_members * n_rounds, type(model).__name__) as show:
        for member in range(n_members):
            one = replace(run, seed=run.seed + member, grown=[], rows=[])
            for n_made in one.advance(start, n_rounds):
                if is_wanted:
                    evaluation.take(one.scores_of_sides(), n_made)
                if n_made > 0:
                    show(1, evaluation.note or pace.of(run.n))
                if evaluation.is_over:
                    break
            runs.append(one)
    made = len(runs[0].grown)
    model.start_, model.n_iter_, model._n_first_trees = start, evaluation.best(0, made), 0
    model._has_offset, model._loss_shares = False, ()
    model._importances = np.zeros(model.n_features_in_)
    grown = [one.trees().first(model.n_iter_) for one in runs]
    for one, trees in zip(runs, grown, strict=True):
        rows = np.concatenate([np.zeros(0), *one.rows])[: trees.n_nodes]
        model._importances = importances(trees, rows, model._importances)
    model._set_trees(grown)
    model._record(evaluation.recorded())


def _n_rounds(model: Any, n: int, stops: bool) -> int:
    """How many rounds there are, of n rows."""
    if model._starts_from_line(n):
        raise InMemory
    known = model._known_rounds(n, stops)
    if known is None:
        raise InMemory
    return int(known)


def _expect_copies(model: Any, loss: Loss) -> None:
    """Refuse weights that are no copies where the start is a quantile.

    In memory such weights are added up as they come, by ascending targets, and rounded each time.
    """
    if isinstance(loss, QuantileLoss | HuberLoss):
        raise ValueError(
            f"weights that are no whole numbers, or more than ten for each row on average, take rows "
            f'in memory with loss="{model.loss}", got X that lies elsewhere'
        )


def _expect_few_levels(model: Any, known: Sketch) -> None:
    names = getattr(model, "feature_names_in_", None)
    for j, values in enumerate(known.values):
        if not isinstance(values, tuple):
            continue
        n_levels = len(values[0])
        warn_if_identifier(j, names, int(values[1].sum()), n_levels)
        if n_levels > FEW_LEVELS:
            feature = j if names is None else repr(str(names[j]))
            raise ValueError(
                f"feature {feature} has {n_levels} categories: on rows that lie elsewhere a feature "
                f"may have {FEW_LEVELS}, as cuts by mean targets of more take rows in memory. Leave it "
                "out, join rare categories, or make it a number"
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
    if not is_classifier(model):
        of_loss = {
            f"loss={model.loss!r}": isinstance(model.loss, CustomLoss),
            f"quantile={model.quantile!r}": model._n_quantiles > 1,
        }
        for name, is_given in of_loss.items():
            if is_given:
                raise ValueError(f"{name} takes rows in memory, got X that lies elsewhere")
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
