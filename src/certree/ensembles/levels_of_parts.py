"""What is known of levels by rows that lie in parts, which have it as more features from then on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certree.ensembles.category_statistics import (
    CategoryRows,
    CategoryStatistics,
    CategoryTarget,
    CategoryTotals,
    find_high_cardinality_features,
    list_categories,
)
from certree.ensembles.losses import Loss
from certree.grow.bins import Bins
from certree.out_of_core.executors import Executor
from certree.out_of_core.part import PartOfRows


def see_levels(parts: Executor, loss: Loss, bins: Bins) -> CategoryStatistics | None:
    """Let rows of parts see what is known of their levels.

    Parameters
    ----------
    parts : Executor
        Holds the rows, which have their keys and know their levels.
    loss : Loss
        What is lowered.
    bins : Bins
        Those of all rows, without codes.

    Returns
    -------
    CategoryStatistics or None
        What is known of those features whose levels differ; None: of none.
    """
    many = find_high_cardinality_features(bins)
    if not many:
        return None
    levels = tuple(list_categories(bins, j) for j in many)
    known = CategoryTotals.compute(partial(parts.collect, _asked, loss), tuple(map(len, levels)))
    some = [q for q in range(len(many)) if known.has_signal(q)]
    statistics = CategoryStatistics.from_totals(many, levels, known, some) if some else None
    parts.change(_seeing, statistics, some)
    return statistics


def _asked(part: PartOfRows, loss: Loss, f: Callable[..., Any], *given: Any) -> Any:
    """Ask the rows of a part that train."""
    y = loss.get_output_targets(loss.encode_targets(np.asarray(part.y)))
    target = CategoryTarget(y, loss.n_outputs, part.weight)
    return f(CategoryRows(target, np.asarray(part.places), np.asarray(part.keys)), *given)


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
