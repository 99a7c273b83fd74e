"""What is known of levels by rows that lie in parts, which have it as more features from then on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certree.ensembles.category_statistics import (
    MAX_SET_CATEGORIES,
    CategoryRows,
    CategoryStatistics,
    CategoryTarget,
    CategoryTotals,
    find_high_cardinality_features,
    list_categories,
)
from certree.ensembles.losses import GammaLoss, LogLoss, Loss, PoissonLoss, SquaredLoss
from certree.ensembles.rounds import make_newton_target
from certree.ensembles.staged import make_constant_scores
from certree.grow.bins import Bins
from certree.interface.arrays import Float64
from certree.out_of_core.executors import Executor
from certree.out_of_core.part import PartOfRows

# Losses whose gradients of a row do not depend on other rows.
_ROWWISE = SquaredLoss, PoissonLoss, GammaLoss, LogLoss


def see_levels(
    parts: Executor,
    loss: Loss,
    bins: Bins,
    starts: tuple[Float64, Float64] | None = None,
    *,
    has_offset: bool = False,
) -> CategoryStatistics | None:
    """Let rows of parts see what is known of their levels.

    Parameters
    ----------
    parts : Executor
        Holds the rows, which have their keys and know their levels.
    loss : Loss
        What is lowered.
    bins : Bins
        Those of all rows, without codes.
    starts : tuple of two ndarrays of shape (n_outputs,), or None
        Constant start scores, the first of which offsets are added to. None: they are not known yet.
    has_offset : bool
        Whether rows have offsets. If there is one output, categories are then compared by Newton
        steps at the start scores; see `Rounds.make_category_target`. Otherwise by targets.

    Returns
    -------
    CategoryStatistics or None
        What is known of those features whose levels differ; None: of none.

    Raises
    ------
    ValueError
        If categories are compared by Newton steps and those of a row depend on the other rows.
    """
    many = find_high_cardinality_features(bins)
    if not many:
        return None
    uses_steps = has_offset and loss.n_outputs == 1
    if uses_steps and not isinstance(loss, _ROWWISE):
        raise ValueError(
            f"offset takes rows in memory with this loss where a feature has more than "
            f"{MAX_SET_CATEGORIES} categories, got X that lies elsewhere: leave these features out"
        )
    start = starts[0] if uses_steps and starts is not None else None
    levels = tuple(list_categories(bins, j) for j in many)
    known = CategoryTotals.compute(
        partial(parts.collect, _asked, loss, start), tuple(map(len, levels))
    )
    some = [q for q in range(len(many)) if known.has_signal(q)]
    statistics = CategoryStatistics.from_totals(many, levels, known, some) if some else None
    parts.change(_seeing, statistics, some)
    return statistics


def _asked(
    part: PartOfRows, loss: Loss, start: Float64 | None, f: Callable[..., Any], *given: Any
) -> Any:
    """Ask the rows of a part that train."""
    target = _make_target(part, loss, start)
    return f(CategoryRows(target, np.asarray(part.places), np.asarray(part.keys)), *given)


def _make_target(part: PartOfRows, loss: Loss, start: Float64 | None) -> CategoryTarget:
    """Return the targets and weights of rows for category statistics.

    See `Rounds.make_category_target`; start: constant start scores if the targets are Newton steps,
    or None.
    """
    y = loss.encode_targets(np.asarray(part.y))
    if start is None or part.offset is None:
        return CategoryTarget(loss.get_output_targets(y), loss.n_outputs, part.weight)
    scores = make_constant_scores(start, part.n, np.asarray(part.offset))
    return make_newton_target(loss, y, scores, part.weight)


def _seeing(
    part: PartOfRows, statistics: CategoryStatistics | None, some: list[int]
) -> tuple[PartOfRows, int]:
    """A part whose rows see what is known of their levels, which they do not know any more."""
    places = np.asarray(part.places)[some]
    part = replace(part, places=np.zeros((0, 0), dtype=np.int32))
    if statistics is None:
        return part, 0
    codes = np.concatenate([part.codes, statistics.encode_rows(places, np.asarray(part.keys))])
    values = part.values
    if len(values):
        values = np.concatenate([values, statistics.encode_new_rows(values)], axis=1)
    return replace(part, codes=codes, values=values), 0
