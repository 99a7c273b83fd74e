"""Whole groups of the rows of parts, dealt as those of one table: parts tell which ones they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.parts.chunks import Weighing
from certree.parts.executors import Executor
from certree.parts.held_out import DealtRows
from certree.parts.order_of_rows import Division, RowsToDeal, rows_to_deal
from certree.rows.folds import Indices, distinct_groups, folds_of_groups


def groups_of_all(names: Sequence[NDArray[Any] | None]) -> tuple[int, list[Indices]]:
    """How many groups all parts have, and the places among these, which ascend, of those of each.

    names: groups of each part; None: it has no rows.
    """
    ends = np.cumsum([0, *(0 if one is None else len(one) for one in names)])
    known, place = distinct_groups(np.concatenate([one for one in names if one is not None]))
    return len(known), [place[a:b] for a, b in pairwise(ends)]


def dealt_by_groups(
    parts: Executor, places: Sequence[Indices], of_group: NDArray[Any]
) -> list[NDArray[Any]]:
    """What the rows of each part are dealt to, by what groups are; parts know then which these are.

    places: of the groups of each part among all.
    """
    parts.expect_within_limit()
    told = parts.change(_with_groups, own=[(place, of_group[place]) for place in places])
    return [dealt for _, dealt in sorted(told, key=itemgetter(0))]


def _with_groups(
    part: RowsToDeal, own: tuple[Indices, NDArray[Any]]
) -> tuple[RowsToDeal, list[tuple[int, NDArray[Any]]]]:
    place, dealt = own
    if part.group is None:
        return part, [(part.number, dealt)]
    return replace(part, group=place[part.group]), [(part.number, dealt[part.group])]


def deal_groups_to_folds(
    parts: Executor,
    reader: Any,
    weighing: Weighing | None,
    n_folds: int,
    random_state: np.random.RandomState,
) -> DealtRows:
    """Deal whole groups to folds as `group_folds` does."""
    division = Division(weighing, None)
    told = sorted(parts.make(rows_to_deal, reader, division), key=itemgetter(0))
    n_groups, places = groups_of_all([names for *_, names in told])
    of_group = folds_of_groups(n_groups, n_folds, random_state).astype(np.uint8)
    return DealtRows(division, dealt_by_groups(parts, places, of_group))
