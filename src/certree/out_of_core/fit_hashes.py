"""The hashes by which a model knows the rows of its fit again, of all parts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import UInt64, freeze
from certree.out_of_core.part import PartOfRows
from certree.rows.hashes import hash_fractional_rows, hash_samples, merge_hashes
from certree.rows.repeat_counts import RepeatCounts, hash_table

_NONE = np.zeros(0, dtype=np.uint64)


def with_hashes(
    part: PartOfRows, features: tuple[NDArray[Any], ...], y: NDArray[Any], *, judges: bool = False
) -> PartOfRows:
    """A part with the hashes by which a classifier knows its rows again.

    judges: whether the rows are an evaluation set, which is a table of its own.
    """
    hashes = hash_samples(*features)
    table = hash_table(hashes, y)
    hashes.sort()
    rounded = merge_hashes(hash_fractional_rows(*features))
    tables = (0, table) if judges else (table, 0)
    return replace(part, known=hashes, known_rounded=rounded, tables=tables)


def set_hashes_of_fit(model: Any, parts: Any, n: int, *, continues: bool) -> None:
    """Set the attributes by which a classifier recognises the n rows of its fit.

    model: the classifier, whose `sample_hashes_` and `_sample_counts` are set; parts: its rows;
    continues: whether the rows are added to those of its fit before, as a warm start does.
    """
    if not continues:
        model.sample_hashes_, model._sample_counts = hashes_of_fit(parts, n)
        return
    hashes, counts = model.sample_hashes_, getattr(model, "_sample_counts", None)
    if hashes is None:
        return
    before = RepeatCounts(0, 0, _NONE, _NONE) if counts is None else replace(counts, tables=())
    model.sample_hashes_, both = hashes_of_fit(parts, n, (hashes, before))
    if counts is not None:
        model._sample_counts = replace(both, tables=(*counts.tables, *both.tables))


def hashes_of_fit(
    parts: Any, n: int, beside: tuple[UInt64, RepeatCounts] | None = None
) -> tuple[UInt64, RepeatCounts]:
    """The different hashes of n rows, ascending, and counts of their repeats; parts forget theirs.

    beside: those of other rows of the same table, which are put among them.
    """
    others, before = (_NONE, RepeatCounts(0, 0, _NONE, _NONE)) if beside is None else beside
    n_ranges = max(1, -(-n // parts.portions.together))
    ends = [(i << 64) // n_ranges for i in range(n_ranges + 1)]
    # What is not written to takes no memory.
    room, n_kept = np.empty(2 * n + len(others), dtype=np.uint64), 0
    counts, tables = [before], _tables_of_all(parts.collect(_tables), before.tables)
    for first, end in pairwise(ends):
        told = parts.collect(between, first, end - 1)
        exact = np.concatenate([one for one, _ in told])
        exact.sort()
        known = in_range(others, first, end - 1)
        twice, often = (in_range(one, first, end - 1) for one in (before.twice, before.often))
        counts.append(RepeatCounts(0, 0, twice, often).add(known, exact))
        some = merge_hashes(known, exact, *(rounded for _, rounded in told))
        room[n_kept : n_kept + len(some)] = some
        n_kept += len(some)
    parts.change(without_hashes)
    hashes = room[:n_kept]
    hashes.flags.writeable = False
    return hashes, _counts_of_all(counts, tables)


def _counts_of_all(counts: list[RepeatCounts], tables: tuple[int, ...]) -> RepeatCounts:
    """Those of rows before, and what rows of ascending ranges of hashes add to them."""
    return RepeatCounts(
        sum(one.n for one in counts),
        sum(one.n_distinct for one in counts),
        freeze(np.concatenate([one.twice for one in counts[1:]])),
        freeze(np.concatenate([one.often for one in counts[1:]])),
        tables,
    )


def _tables(part: PartOfRows) -> list[tuple[int, int]]:
    return [part.tables]


def _tables_of_all(told: list[tuple[int, int]], before: tuple[int, ...]) -> tuple[int, ...]:
    """The hash of the table of the fit, and that of its evaluation set if there is one."""
    fit, judges = (sum(one) % 2**64 for one in zip(*told, strict=True))
    whole = (fit + sum(before)) % 2**64
    return (whole, judges) if judges else (whole,)


def between(part: PartOfRows, first: int, last: int) -> list[tuple[UInt64, UInt64]]:
    """Those of a part that lie in a range; they ascend."""
    # No copies: parts in files are mapped.
    return [(in_range(part.known, first, last), in_range(part.known_rounded, first, last))]


def in_range(hashes: UInt64, first: int, last: int) -> UInt64:
    """Those of ascending hashes that lie in a range."""
    ends = np.array([first, last], dtype=np.uint64)
    begin = int(np.searchsorted(hashes, ends[0], side="left"))
    end = int(np.searchsorted(hashes, ends[1], side="right"))
    return hashes[begin:end]


def without_hashes(part: PartOfRows) -> tuple[PartOfRows, int]:
    """A part that has forgotten them."""
    return replace(part, known=_NONE, known_rounded=_NONE), 0
