"""The hashes by which a model knows the rows of its fit again, of all parts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from certree.interface.arrays import UInt64
from certree.parts.part import PartOfRows
from certree.rows.hashes import distinct


def hashes_of_fit(parts: Any, n: int, beside: UInt64 | None = None) -> UInt64:
    """The different hashes of n rows, ascending; parts forget theirs.

    beside: those of other rows, ascending, which are put among them.
    """
    others = np.zeros(0, dtype=np.uint64) if beside is None else beside
    n_ranges = max(1, -(-n // parts.portions.together))
    ends = [(i << 64) // n_ranges for i in range(n_ranges + 1)]
    # What is not written to takes no memory.
    room, n_kept = np.empty(2 * n + len(others), dtype=np.uint64), 0
    for first, end in pairwise(ends):
        told = parts.collect(between, first, end - 1)
        some = distinct(*told, in_range(others, first, end - 1))
        room[n_kept : n_kept + len(some)] = some
        n_kept += len(some)
    parts.change(without_hashes)
    hashes = room[:n_kept]
    hashes.flags.writeable = False
    return hashes


def between(part: PartOfRows, first: int, last: int) -> list[UInt64]:
    """Those of a part that lie in a range; they ascend."""
    return [in_range(part.known, first, last)]  # no copy: parts in files are mapped


def in_range(hashes: UInt64, first: int, last: int) -> UInt64:
    """Those of ascending hashes that lie in a range."""
    ends = np.array([first, last], dtype=np.uint64)
    begin = int(np.searchsorted(hashes, ends[0], side="left"))
    end = int(np.searchsorted(hashes, ends[1], side="right"))
    return hashes[begin:end]


def without_hashes(part: PartOfRows) -> tuple[PartOfRows, int]:
    """A part that has forgotten them."""
    return replace(part, known=np.zeros(0, dtype=np.uint64)), 0
