"""Whole groups of the rows of parts, dealt as those of one table: parts tell which ones they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.out_of_core.executors import Executor
from certree.out_of_core.order_of_rows import RowsToDeal
from certree.rows.folds import Indices, number_groups


def groups_of_all(names: Sequence[NDArray[Any] | None]) -> tuple[int, list[Indices]]:
    """How many groups all parts have, and the places among these, which ascend, of those of each.

    names: groups of each part; None: it has no rows.
    """
    ends = np.cumsum([0, *(0 if one is None else len(one) for one in names)])
    known, place = number_groups(np.concatenate([one for one in names if one is not None]))
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
