"""Fits of boosted trees on rows that lie in parts: the model of the same rows in one table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree._core import fixed_unit
from certree.ensembles.custom_loss import CustomLoss
from certree.ensembles.evaluation import stops_early
from certree.ensembles.losses import HuberLoss, LogLoss, Loss, QuantileLoss
from certree.ensembles.many_levels import FEW_LEVELS
from certree.ensembles.rounds import importances
from certree.ensembles.rounds_of_parts import RoundsOfParts
from certree.ensembles.scales_of_parts import start_at_quantile
from certree.interface.arrays import Float64
from certree.interface.progress import Pace, progress
from certree.parts.binned_parts import Ends, Sketch, bins_of, encoded
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
from certree.parts.keys import set_keys
from certree.parts.part import PartOfRows
from certree.rows.categories import warn_if_identifier
from certree.rows.hashes import fit_hashes, sample_hashes


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


def sketch(chunk: Chunk, reader: Any, weighing: Weighing | None) -> Sketch | None:
    """What decides the bins of a chunk, and the sum of its weights in units of the largest one."""
    training: Any = training_of(reader, chunk, weighing)
    if training is None:
        return None
    made = Sketch.of(training.features, _category(reader))
    weight = training.weight
    return made if weight is None else replace(made, weight=exact_sum(weight))


def _category(reader: Any) -> Any:
    mask = reader._category_mask()
    return np.zeros(reader.n_features_in_, np.uint8) if mask is None else mask.astype(np.uint8)


def made_part(
    number: int, chunk: Chunk, reader: Any, weighing: Weighing | None, edges: tuple[Any, ...]
) -> tuple[PartOfRows, Made | None]:
    """The part that a chunk becomes, whose keys are hashes as yet."""
    training: Any = training_of(reader, chunk, weighing)
    if training is None:
        none = np.zeros(0)
        codes = np.zeros((len(edges), 0), dtype=np.uint8)
        weight = None if weighing is None or weighing.are_copies else none
        return PartOfRows(number, codes, none, weight, np.zeros(0, dtype=np.uint64)), None
    features, y, weight = training.features, training.y, training.weight
    codes, ends = encoded(features, edges)
    hashes = sample_hashes(*features.parts, y, *(() if weight is None else (weight,)))
    numbers = y.astype(np.float64)
    part = PartOfRows(
        number, codes, numbers, weight, hashes, digest=int(hashes.sum(dtype=np.uint64))
    )
    if not is_classifier(reader):
        weighed = numbers if weight is None else numbers * weight
        total = len(y) if weight is None else exact_sum(weight)
        return part, Made(ends, Counter({"weight": total, "sum": exact_sum(weighed)}))
    counts = class_totals(y, weight)
    part = replace(part, known=fit_hashes(*features.parts))
    return part, Made(ends, Counter(dict(enumerate(counts))))


def weight_of(part: PartOfRows, unit: int) -> int:
    """Sum of the weights of a part as whole numbers."""
    return 0 if part.weight is None else whole_sum(part.weight, unit)


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


def fit_on_parts(model: Any, parts: Executor) -> None:
    """Fit a boosted model to rows that an executor holds.

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
    known = parts.look(sketch, reader, weighing)
    n_rounds = _n_rounds(model, known.n)
    if weighing is not None and not weighing.are_copies:
        _expect_copies(model, loss)
        weighing = replace(weighing, factor=known.n / rounded(known.weight))
    _expect_few_levels(model, known)
    edges = known.edges()
    made = parts.make(made_part, reader, weighing, edges)
    if is_classifier(model):
        model.sample_hashes_ = hashes_of_fit(parts, known.n)
    set_keys(parts, known.n)
    model._seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    model._choose_parameters(known.n)
    total = _total_weight(parts, known.n, weighing)
    bins = bins_of(edges, made.ends, _category(reader))
    about = known.n, total, model.thresholds_, model._seed
    run = RoundsOfParts(model._settings(loss), parts, model._grower_in(bins), *about)
    start = _start(loss, parts, known.n, made.totals, total is not None)
    _boost(model, run, start, n_rounds)


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


def _total_weight(parts: Executor, n: int, weighing: Weighing | None) -> float | None:
    """Sum of the weights of n rows as sums of losses have it; None: each counts once."""
    if weighing is None or weighing.factor is None:
        return None
    unit = fixed_unit(weighing.factor, n)
    return float(np.ldexp(float(parts.collect(weight_of, unit)), unit))


def _boost(model: Any, run: RoundsOfParts, start: Float64, n_rounds: int) -> None:
    """Make the rounds of all members, and set what they have made."""
    n_members, runs, pace = model._n_members(), [], Pace()
    with progress(model.verbose > 0, n_members * n_rounds, type(model).__name__) as show:
        for member in range(n_members):
            one = replace(run, seed=run.seed + member, grown=[], rows=[])
            for _ in one.advance(start, n_rounds):
                show(1, pace.of(run.n))
            runs.append(one)
    model.start_, model.n_iter_, model._n_first_trees = start, n_rounds, 0
    model._has_offset, model._loss_shares = False, ()
    model._importances = np.zeros(model.n_features_in_)
    grown = [one.trees() for one in runs]
    for one, trees in zip(runs, grown, strict=True):
        rows = np.concatenate([np.zeros(0), *one.rows])
        model._importances = importances(trees, rows, model._importances)
    model._set_trees(grown)
    model._record({})


def _n_rounds(model: Any, n: int) -> int:
    """How many rounds there are, of n rows."""
    name = type(model).__name__
    if stops_early(model.early_stopping, n):
        raise ValueError(
            f"early_stopping takes rows in memory, got {name} on rows that lie elsewhere: give "
            "max_iter as a number, with early_stopping=False"
        )
    if model._starts_from_line(n):
        raise InMemory
    known = model._known_rounds(n, stops=False)
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


def expect_what_parts_can(model: Any, given: dict[str, Any]) -> None:
    """Refuse what takes rows in memory, by its name.

    Parameters
    ----------
    model : BoostedTrees
        The model.
    given : dict
        What `fit` was given beside rows, target and weights, by name.
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
    if model.early_stopping is True:
        _n_rounds(model, 1)
