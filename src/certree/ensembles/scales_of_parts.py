"""What all rows of parts decide together: where scores start, and what slopes of a loss take."""

from __future__ import annotations

from math import floor, inf, isfinite, ldexp

import numpy as np

from certree._core import fixed_unit
from certree.ensembles.losses import HuberLoss, Loss, QuantileLoss, rank_of
from certree.interface.arrays import Float64
from certree.parts.chunks import Weighing
from certree.parts.exact_quantiles import Counts, counted, order_statistics
from certree.parts.exact_sums import whole_sum
from certree.parts.executors import Executor
from certree.parts.part import Grown, PartOfRows, ScaledLoss, begin_round, scale_terms


def total_of(whole: int, largest: float, n: int) -> float:
    """A sum of n numbers by that of whole ones; infinite where the largest of them is no number."""
    return ldexp(float(whole), fixed_unit(largest, n)) if isfinite(largest) else inf


def scaled(loss: Loss, parts: Executor, n: int, grown: Grown) -> ScaledLoss:
    """Begin a round by the steps of the one before; gives the loss in the scale of all n rows.

    Parts are asked twice for a mean, and three times for a quantile.
    """
    unscaled = loss.name, loss.parameter, 1.0
    if loss.scale == "mean":
        most = float(np.max(parts.change(begin_round, grown, largest_term, unscaled)))
        unit = fixed_unit(most, n) if isfinite(most) else 0
        whole = parts.collect(sum_of_terms, unscaled, unit) if isfinite(most) else 0
        return loss.name, loss.parameter, total_of(whole, most, n) / n
    told = parts.change(begin_round, grown, counted, scale_terms, (unscaled,))
    return bent(loss, parts, n, told)


def bent(
    loss: Loss, parts: Executor, n: int, told: Counts | None = None, *, are_held: bool = False
) -> ScaledLoss:
    """The loss in the scale of a quantile of n rows, which may be those that are held out.

    told: what parts have told of these in the first pass already.
    """
    unscaled, place = (loss.name, loss.parameter, 1.0), loss.parameter * (n - 1)
    ranks = [int(place), min(int(place) + 1, n - 1)]
    found = order_statistics(parts, ranks, scale_terms, unscaled, are_held, told=told)
    below, above = found.tolist()
    if ranks[0] < ranks[1]:
        below += (above - below) * (place - floor(place))
    return loss.name, loss.parameter, below


def largest_term(part: PartOfRows, loss: ScaledLoss) -> list[float]:
    """The largest of the numbers of a part of which the scale is the mean."""
    return [float(scale_terms(part, loss).max(initial=0.0))]


def sum_of_terms(part: PartOfRows, loss: ScaledLoss, unit: int) -> int:
    """Their sum as whole numbers."""
    return whole_sum(scale_terms(part, loss), unit)


def start_at_quantile(
    loss: QuantileLoss | HuberLoss, parts: Executor, n: int, weighing: Weighing | None
) -> Float64:
    """The smallest target that so large a share of n rows does not exceed, as `loss.start` has it.

    weighing: how these are weighed.
    """
    unit = None
    if weighing is not None and weighing.factor is not None:
        unit = fixed_unit(weighing.factor, n)
    quantile = 0.5 if isinstance(loss, HuberLoss) else loss.quantile
    told: Counts = parts.collect(counted, target, (), unit)
    rank = rank_of(quantile, int(told.n.sum()))
    return order_statistics(parts, [rank], target, told=told, unit=unit)


def target(part: PartOfRows) -> Float64:
    """The targets of a part."""
    return np.asarray(part.y)
