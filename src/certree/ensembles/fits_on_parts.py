"""Fits of boosted trees on rows that lie in parts: the model of the same rows in one table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree._core import fixed_unit
from certree.ensembles.evaluation import stops_early
from certree.ensembles.losses import LogLoss, Loss
from certree.ensembles.many_levels import FEW_LEVELS
from certree.ensembles.rounds import importances
from certree.ensembles.rounds_of_parts import RoundsOfParts
from certree.grow.binned import BinnedGrower
from certree.grow.bins import Bins
from certree.interface.arrays import Float64, UInt64
from certree.interface.progress import progress
from certree.parts.binned_parts import Ends, Sketch, bins_of, encoded
from certree.parts.chunks import Chunk, Weighing, reader_of, training_of
from certree.parts.exact_sums import exact_sum, rounded
from certree.parts.executors import Executor
from certree.parts.first_look import (
    first_look,
    learned_by,
    weighing_of,
    with_class_weights,
    with_features,
)
from certree.parts.keys import set_keys
from certree.parts.part import Part
from certree.rows.categories import warn_if_identifier
from certree.rows.hashes import distinct, fit_hashes, sample_hashes


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
    hashes : list of ndarray
        What a model keeps to know the rows again.
    """

    ends: Ends
    totals: Counter[Any]
    hashes: list[UInt64]

    def __add__(self, other: Self) -> Self:
        """That of both."""
        ends, totals = self.ends + other.ends, Counter(self.totals)
        totals.update(other.totals)  # sums below 0 stay
        hashes = [*self.hashes, *other.hashes]
        return replace(self, ends=ends, totals=totals, hashes=[distinct(*hashes)] if hashes else [])


def sketch(chunk: Chunk, reader: Any, weighing: Weighing | None) -> Sketch | None:
    """What decides the bins of a chunk, and the sum of its weights in units of the largest one."""
    training = training_of(reader, chunk, weighing)
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
) -> tuple[Part, Made | None]:
    """The part that a chunk becomes, whose keys are hashes as yet."""
    training = training_of(reader, chunk, weighing)
    if training is None:
        none = np.zeros(0)
        codes = np.zeros((len(edges), 0), dtype=np.uint8)
        weight = None if weighing is None or weighing.are_copies else none
        return Part(number, codes, none, weight, np.zeros(0, dtype=np.uint64)), None
    features, y, weight = training.features, training.y, training.weight
    codes, ends = encoded(features, edges)
    hashes = sample_hashes(*features.parts, y, *(() if weight is None else (weight,)))
    numbers = y.astype(np.float64)
    part = Part(number, codes, numbers, weight, hashes, digest=int(hashes.sum(dtype=np.uint64)))
    if not is_classifier(reader):
        weighed = numbers if weight is None else numbers * weight
        total = len(y) if weight is None else exact_sum(weight)
        return part, Made(ends, Counter({"weight": total, "sum": exact_sum(weighed)}), [])
    counts = np.bincount(y).tolist() if weight is None else _weights(y, weight)
    return part, Made(ends, Counter(dict(enumerate(counts))), [fit_hashes(*features.parts)])


def _weights(y: Any, weight: Float64) -> list[int]:
    return [exact_sum(weight[y == k]) for k in range(int(y.max()) + 1)]


def weight_of(part: Part, unit: int) -> int:
    """Sum of the weights of a part as whole numbers."""
    if part.weight is None or not len(part.weight):
        return 0
    return int(np.rint(np.ldexp(part.weight, -unit)).astype(np.int64).sum())


def _start(loss: Loss, totals: Counter[Any], is_weighed: bool) -> Float64:
    """The scores (n_outputs,) that a run starts from."""

    def number(total: int) -> float:
        return rounded(total) if is_weighed else float(total)

    if isinstance(loss, LogLoss):
        return loss.start_of(np.array([number(totals[k]) for k in range(max(2, loss.n_outputs))]))
    return np.atleast_1d(np.float64(rounded(totals["sum"]) / number(totals["weight"])))


def fit_on_parts(model: Any, parts: Executor) -> None:
    """Fit a boosted model to rows that an executor holds.

    Raises
    ------
    InMemory
        If rows are so few that a fit in memory does what a fit on parts cannot.
    ValueError, TypeError
        If the fit is one that takes rows in memory, or rows are wrong; as `fit` says.
    """
    found = parts.look(first_look, model, targets_only=_needs_targets_only(model, parts))
    if found is None:
        raise ValueError("Found array with 0 sample(s) of positive weight while 1 is required")
    if found.names == ():
        found = with_features(found, parts.empty, model)
    is_weighed = parts.has_weights or getattr(model, "class_weight", None) is not None
    model.__dict__.update(learned := learned_by(found))
    if learned["feature_names_in_"] is None:
        del model.__dict__["feature_names_in_"]
    loss = model._loss()
    if not is_classifier(model):
        loss.expect_domain(np.array(found.ends))
    reader = reader_of(with_class_weights(model, found, parts.has_weights), learned)
    if isinstance(getattr(model, "class_weight", None), str):
        found = parts.look(first_look, reader, targets_only=True)
    weighing = weighing_of(found, is_weighed)
    known = parts.look(sketch, reader, weighing)
    n = known.n
    n_rounds = _n_rounds(model, n)
    if weighing is not None and not weighing.are_copies:
        weighing = replace(weighing, factor=n / rounded(known.weight))
    category = _category(reader)
    _expect_few_levels(model, known)
    edges = known.edges()
    made = parts.make(made_part, reader, weighing, edges)
    if is_classifier(model):
        model.sample_hashes_ = distinct(*made.hashes)
    set_keys(parts, n)
    model._seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    model._choose_parameters(n)
    has_weight = weighing is not None and not weighing.are_copies
    start = _start(loss, made.totals, has_weight)
    total = None
    if weighing is not None and weighing.factor is not None:
        unit = fixed_unit(weighing.factor, n)
        total = float(np.ldexp(float(parts.collect(weight_of, unit)), unit))
    run = RoundsOfParts(
        model._settings(loss),
        parts,
        _grower(model, bins_of(edges, made.ends, category)),
        n,
        total,
        model.thresholds_,
        model._seed,
    )
    _boost(model, run, start, n_rounds)


def _needs_targets_only(model: Any, parts: Executor) -> bool:
    """Whether features tell nothing that their types do not."""
    chosen = model.categorical_features
    return parts.empty is not None and (chosen is None or isinstance(chosen, str))


def _boost(model: Any, run: RoundsOfParts, start: Float64, n_rounds: int) -> None:
    """Make the rounds of all members, and set what they have made."""
    n_members, runs = model._n_members(), []
    with progress(model.verbose > 0, n_members * n_rounds, type(model).__name__) as show:
        for member in range(n_members):
            one = replace(run, seed=run.seed + member, grown=[], rows=[])
            for _ in one.advance(start, n_rounds):
                show(1, "")
            runs.append(one)
    model.start_, model.n_iter_, model._n_first_trees = start, n_rounds, 0
    model._has_offset = False
    model._importances = np.zeros(model.n_features_in_)
    grown = [one.trees() for one in runs]
    for one, trees in zip(runs, grown, strict=True):
        rows = np.concatenate([np.zeros(0), *one.rows])
        model._importances = importances(trees, rows, model._importances)
    model._set_trees(grown)
    for name in ("train_score_", "validation_score_"):
        model.__dict__.pop(name, None)


def _grower(model: Any, bins: Bins) -> BinnedGrower:
    return model._grower_in(bins)


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
    loss = getattr(model, "loss", "squared_error")
    if not is_classifier(model) and loss != "squared_error":
        raise ValueError(
            f'loss={loss!r} takes rows in memory: rows that lie elsewhere take "squared_error", and '
            "classes"
        )
    if model.warm_start:
        raise ValueError("warm_start=True takes rows in memory, got X that lies elsewhere")
    if model.early_stopping is True:
        _n_rounds(model, 1)
