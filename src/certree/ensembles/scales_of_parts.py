"""What all rows of parts decide together: where scores start, and what slopes of a loss take."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf, isfinite, ldexp
from typing import Any, Literal

import numpy as np

from certree._core import fixed_unit
from certree.ensembles.losses import HuberLoss, Loss, QuantileLoss, compute_quantile_rank
from certree.interface.arrays import Float64, Int64
from certree.parts.chunks import Weighing
from certree.parts.exact_quantiles import Counts, counted, order_statistics
from certree.parts.executors import Executor
from certree.parts.part import Grown, PartOfRows, ScaledGoal, begin_round, scale_terms, sums_of


def total_of(whole: int, largest: float, n: int) -> float:
    """A sum of n numbers by that of whole ones; infinite where the largest of them is no number."""
    return ldexp(float(whole), fixed_unit(largest, n)) if isfinite(largest) else inf


def units_of(largest: Sequence[float], n: Sequence[int]) -> list[int | None]:
    """Units in which so many numbers are added up; None where the largest of them is no number."""
    return [
        fixed_unit(most, one) if isfinite(most) else None
        for most, one in zip(largest, n, strict=True)
    ]


def goals_of(loss: Loss, n_targets: int) -> list[ScaledGoal]:
    """What outputs are for, in the order in which they are added up; scales are not known yet.

    Of one target all quantiles are.
    """
    return [
        ((loss.core_name, parameter, 1.0), first, n_outputs, min(target, n_targets - 1))
        for parameter, _, first, n_outputs, target in loss.list_groups()
    ]


def scaled(
    kind: Literal["mean", "quantile"],
    goals: Sequence[ScaledGoal],
    parts: Executor,
    n: int,
    grown: Grown,
) -> list[ScaledGoal]:
    """Begin a round by the steps of the one before; gives goals in the scales of all n rows.

    Parts are asked twice for means, and three times for each quantile.
    """
    if kind == "quantile":
        told: Any = parts.change(begin_round, grown, counted, scale_terms, (goals[0],))
        return [bent(goals[0], parts, n, told), *(bent(one, parts, n) for one in goals[1:])]
    most = np.max(parts.change(begin_round, grown, largest_terms, goals), axis=0).tolist()
    units = units_of(most, [n] * len(goals))
    whole = np.zeros(len(goals))
    if any(unit is not None for unit in units):
        whole = parts.collect(sums_of_terms, goals, units)
    told = zip(goals, whole.tolist(), most, strict=True)
    return [_with_scale(goal, total_of(int(one), each, n) / n) for goal, one, each in told]


def _with_scale(goal: ScaledGoal, scale: float) -> ScaledGoal:
    (name, parameter, _), first, n_outputs, target = goal
    return (name, parameter, scale), first, n_outputs, target


def bent(
    goal: ScaledGoal, parts: Executor, n: int, told: Counts | None = None, *, are_held: bool = False
) -> ScaledGoal:
    """A goal in the scale of a quantile of n rows, which may be those that are held out.

    told: what parts have told of these in the first pass already.
    """
    place = goal[0][1] * (n - 1)
    ranks = [int(place), min(int(place) + 1, n - 1)]
    found = order_statistics(parts, ranks, scale_terms, goal, are_held, told=told)
    below, above = found.tolist()
    if ranks[0] < ranks[1]:
        below += (above - below) * (place - floor(place))
    return _with_scale(goal, below)


def largest_terms(part: PartOfRows, goals: Sequence[ScaledGoal]) -> list[list[float]]:
    """The largest of the numbers of a part of which the scale of each goal is the mean."""
    return [[float(scale_terms(part, goal).max(initial=0.0)) for goal in goals]]


def sums_of_terms(
    part: PartOfRows, goals: Sequence[ScaledGoal], units: Sequence[int | None]
) -> Int64:
    """Their sums as whole numbers."""
    return sums_of([scale_terms(part, goal) for goal in goals], units)


def start_at_quantile(
    loss: QuantileLoss | HuberLoss, parts: Executor, n: int, weighing: Weighing | None, of: int
) -> Float64:
    """The smallest number that so large a share of n rows does not exceed, as `loss.start` has it.

    weighing: how these are weighed. of: which of their targets it is.
    """
    unit = None
    if weighing is not None and weighing.factor is not None:
        unit = fixed_unit(weighing.factor, n)
    quantile = 0.5 if isinstance(loss, HuberLoss) else loss.quantile
    told: Counts = parts.collect(counted, target, (of,), unit)
    rank = compute_quantile_rank(quantile, int(told.n.sum()))
    return order_statistics(parts, [rank], target, of, told=told, unit=unit)


def target(part: PartOfRows, number: int) -> Float64:
    """One of the targets of a part."""
    return np.asarray(np.atleast_2d(part.y)[number])
