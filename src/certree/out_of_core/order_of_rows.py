"""The places of rows that lie in parts among all of them, by which they are dealt.

Copies of equal rows are numbered, and all rows stand in an order of their numbers, class by class. It
takes what rows of other parts are, told by hashes. A part knows its rows by their order among
themselves, so that it does not matter in which order it reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certree.interface.arrays import Float64, Int32, Int64, UInt64
from certree.out_of_core.chunks import Chunk, Weighing, training_of
from certree.out_of_core.executors import Executor
from certree.rows.folds import (
    Indices,
    find_class_sets,
    hash_contents,
    mix_copies,
    number_groups,
    rank_classes,
    sum_classes,
)
from certree.rows.hashes import count_rows_with_copies, hash_samples, mix
from certree.rows.training import Training

Mask = NDArray[np.bool_]
# The groups that rows have, ascending, and the place of each row's among them.
Groups = tuple[NDArray[Any], Indices]


@dataclass(frozen=True, slots=True, eq=False)
class RowsToDeal:
    """What decides which rows of a part are held out, in the order of classes, content and weight.

    Parameters
    ----------
    number : int
        Which of the parts it is.
    classes : ndarray of int32, shape (n,) or (n, n_targets)
        Their classes; 0 for numbers.
    stratum : ndarray of int32, shape (n,)
        What they are dealt by: their class, or the number of their set of classes.
    content : ndarray of uint64, shape (n,)
        Hashes of what they hold.
    target : ndarray of float64, shape (n,) or (n, n_targets)
        Targets.
    ties : ndarray of float64, shape (n_outputs + 1, n), or (1, n) without offsets
        Offsets, and weights (1 where there are none), by which equal rows are ordered.
    mixed : ndarray of uint64, shape (n,)
        Numbers in whose order they are dealt, once these are known.
    group : ndarray of intp, shape (n,), or None
        Place of the group of each among those of the part, or among all once these are known.
    """

    number: int
    classes: Int32
    stratum: Int32
    content: UInt64
    target: Float64
    ties: Float64
    mixed: UInt64
    group: Indices | None

    @property
    def weight(self) -> Float64:
        """Weights, (n,), 1 where there are none."""
        return self.ties[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """How the rows of a part are told apart, and weighed.

    Parameters
    ----------
    random_state : RandomState or None
        Decides the order of the rows, class by class, and stays as it is; None: rows of all classes
        stand in one, that of their hashes.
    weighings : tuple of two Weighings, or None
        Of those that train, and of those that are held out.
    feature_order : ndarray of int32, shape (p,), or None
        In which columns are hashed; None: as is told of the rows.
    """

    random_state: np.random.RandomState | None
    weighings: tuple[Weighing | None, Weighing | None] = (None, None)
    feature_order: Int32 | None = None

    def rows(self, reader: Any, chunk: Chunk) -> Training | None:
        """The rows of a chunk, with their weights as they came; None: there are none."""
        return training_of(reader, chunk, None)

    def order(self, training: Training) -> tuple[Any, UInt64, Int32, Groups | None]:
        """Rows in an order that hangs on nothing but them; their contents, classes and groups."""
        content, classes = self._contents(training)
        keys = *_list_ties(training), content, *np.atleast_2d(classes.T)
        if training.split.groups is None:
            return np.lexsort(keys), content, classes, None
        # Rows that are alike may be in several groups.
        groups = number_groups(training.split.groups)
        return np.lexsort((groups[1], *keys)), content, classes, groups

    def _contents(self, training: Training) -> tuple[UInt64, Int32]:
        known = self.feature_order
        order = training.draw_order if known is None else known
        if self.random_state is not None:
            about = deepcopy(self.random_state), order
            return hash_contents(training.features.matrix, training.y, *about)
        content = hash_samples(*training.features.tables, training.y, order=order)
        return content, np.zeros(len(content), dtype=np.int32)

    @staticmethod
    def expect_rows(n: int, n_now: int) -> None:
        """Refuse a source that gives more or fewer rows than before."""
        if n != n_now:
            raise ValueError(
                f"a part has {n_now} rows where it had {n} before: its source must give the same rows "
                "whenever it is read"
            )

    def sides(self, training: Training, mask: Mask) -> list[Training]:
        """The rows that train, and those that are held out, as a mask of them in order says."""
        order, both = self.order(training)[0], []
        self.expect_rows(len(mask), len(order))
        for rows, weighing in zip((order[~mask], order[mask]), self.weighings, strict=True):
            one = training.take(np.sort(rows))
            if weighing is not None and one.weight is not None and len(rows):
                one = replace(one, weight=weighing(one.weight))
            both.append(one)
        return both


def rows_to_deal(
    number: int, chunk: Chunk, reader: Any, division: Division
) -> tuple[RowsToDeal, list[tuple[int, int, NDArray[Any] | None]]]:
    """The rows of a chunk in their order; tells how many they are, and which groups they have."""
    rows, order, names = in_order(number, division.rows(reader, chunk), division)
    return rows, [(number, len(order), names)]


def in_order(
    number: int, training: Training | None, division: Division
) -> tuple[RowsToDeal, Indices, NDArray[Any] | None]:
    """Rows of a part as they are dealt, their order, and the groups that they have."""
    if training is None:
        none, no_hashes = np.zeros(0), np.zeros(0, dtype=np.uint64)
        no_classes = np.zeros(0, dtype=np.int32)
        about = no_classes, no_classes, no_hashes, none, none[None], no_hashes, None
        empty = RowsToDeal(number, *about)
        return empty, np.zeros(0, dtype=np.intp), None
    order, content, classes, groups = division.order(training)
    ties = _list_ties(training)[:, order]
    target = training.y.astype(np.float64)[order]
    content, classes = content[order], classes[order]
    stratum = classes if classes.ndim == 1 else classes[:, 0]
    names, group = (None, None) if groups is None else (groups[0], groups[1][order])
    about = classes, stratum, content, target, ties, content.copy(), group
    return RowsToDeal(number, *about), order, names


def _list_ties(training: Training) -> Float64:
    """Return the numbers by which equal rows are ordered, (k, n): offsets, then the weight.

    The last number decides first.
    """
    weight = np.ones(len(training.y)) if training.weight is None else training.weight
    return np.vstack([*([] if training.offset is None else training.offset), weight])


def sizes_of_parts(
    parts: Executor, reader: Any, division: Division
) -> tuple[list[int], list[NDArray[Any] | None]]:
    """Make parts of rows to deal; gives how many rows each has, and which groups."""
    told = sorted(parts.make(rows_to_deal, reader, division), key=itemgetter(0))
    n_classes = getattr(reader, "n_classes_", 0)
    if isinstance(n_classes, list):
        rank = rank_classes(parts.collect(_sums_of_classes, n_classes))
        sets = _distinct(np.concatenate(parts.collect(_sets_of_classes, n_classes, rank)))
        parts.change(_with_strata, n_classes, rank, sets)
    return [n_rows for _, n_rows, _ in told], [names for *_, names in told]


def _sums_of_classes(part: RowsToDeal, n_classes: list[int]) -> UInt64 | None:
    if not len(part.content):
        return None
    return sum_classes(part.classes, n_classes, part.content)


def _sets_of_classes(part: RowsToDeal, n_classes: list[int], rank: Int32) -> list[Int32]:
    if not len(part.content):
        return []
    return [_distinct(find_class_sets(part.classes, n_classes, rank))]


def _with_strata(
    part: RowsToDeal, n_classes: list[int], rank: Int32, sets: Int32
) -> tuple[RowsToDeal, int]:
    """A part that knows the numbers of its rows' sets of classes among all sets there are."""
    if not len(part.content):
        return part, 0
    own = find_class_sets(part.classes, n_classes, rank)
    # All of its own are among them, so that these have the same numbers.
    number = np.unique(np.concatenate([sets, own]), axis=0, return_inverse=True)[1].reshape(-1)
    return replace(part, stratum=number[len(sets) :].astype(np.int32)), 0


def _distinct(sets: Int32) -> Int32:
    return np.unique(sets, axis=0)


def dealt_to(
    parts: Executor,
    every: Sequence[NDArray[Any]],
    n_of_stratum: Int64,
    number_of: Callable[[NDArray[np.intp]], NDArray[Any]],
    word: np.uint64 | None = None,
) -> tuple[list[NDArray[Any]], int]:
    """What the rows of each part are dealt to, by their places among all; how many rows are repeated.

    every: what they are dealt to so far, 0.
    word: mixed into the numbers by which they stand; see `compute_random_word`.
    """
    n_ranges = max(1, -(-int(n_of_stratum.sum()) // parts.portions.together))
    parts.expect_within_limit(int(parts.collect(n_in_ranges, n_ranges).max()))
    n_repeated = 0
    for i in range(n_ranges):
        mixed_of_parts, repeated = _mixed_of(parts, i, n_ranges, word)
        parts.change(with_mixed, i, n_ranges, own=mixed_of_parts)
        n_repeated += repeated
    numbers = [one.copy() for one in every]
    next_place = np.cumsum(n_of_stratum) - n_of_stratum
    ends = [(i << 64) // n_ranges for i in range(n_ranges + 1)]
    for first, end in pairwise(ends):
        told = parts.collect(between, first, end - 1)
        part = np.repeat([one[0] for one in told], [len(one[1]) for one in told])
        row, stratum, mixed = (np.concatenate([one[k] for one in told]) for k in (1, 2, 3))
        order = np.lexsort((mixed, stratum))
        counts = np.bincount(stratum, minlength=len(n_of_stratum))
        before = np.cumsum(counts) - counts
        own_stratum = stratum[order]
        place = np.arange(len(order)) - before[own_stratum] + next_place[own_stratum]
        next_place = next_place + counts
        dealt = number_of(place)
        some = np.flatnonzero(dealt)
        places, dealt = order[some], dealt[some]
        for number in np.unique(part[places]).tolist():
            own = part[places] == number
            numbers[number][row[places[own]]] = dealt[own]
    return numbers, n_repeated


def _mixed_of(
    parts: Executor, i: int, n_ranges: int, word: np.uint64 | None
) -> tuple[list[UInt64], int]:
    """Numbers of the rows of each part whose hashes are in a range, in whose order they are dealt.

    Returns them, and how many of these rows another one equals, target included.
    """
    told = sorted(parts.collect(in_range, i, n_ranges), key=itemgetter(0))
    ends = np.cumsum([0, *(len(one[1]) for one in told)])
    stratum, content = (np.concatenate([one[k] for one in told]) for k in (1, 2))
    # Blocks without rows do not have offsets.
    ties = [one[3] for one in told if len(one[2])]
    order = np.lexsort((*(np.concatenate(ties, axis=-1) if ties else ()), content, stratum))
    mixed = np.empty(len(order), dtype=np.uint64)
    numbers = mix_copies(content[order], stratum[order])
    mixed[order] = numbers if word is None else mix(numbers ^ word)
    # Equal contents of different classes are different rows.
    n_repeated = count_rows_with_copies(mix(content) + stratum.astype(np.uint64))
    return [mixed[a:b] for a, b in pairwise(ends)], n_repeated


def n_in_ranges(part: RowsToDeal, n: int) -> Int64:
    """How many rows of a part have hashes in each of n ranges."""
    return np.bincount(_range_of(part, n), minlength=n).astype(np.int64)


def _range_of(part: RowsToDeal, n: int) -> NDArray[np.intp]:
    """Which of n ranges the rows of a part are in; contents of whole numbers end in the same bits."""
    return (mix(part.content) % np.uint64(n)).astype(np.intp)


def in_range(part: RowsToDeal, i: int, n: int) -> list[tuple[Any, ...]]:
    """Strata, hashes, and offsets and weights of the rows with hashes in the i-th of n ranges."""
    rows = _range_of(part, n) == i
    return [(part.number, part.stratum[rows], part.content[rows], part.ties[:, rows])]


def with_mixed(part: RowsToDeal, i: int, n: int, mixed: UInt64) -> tuple[RowsToDeal, int]:
    """A part that knows the numbers of these rows."""
    every = np.array(part.mixed)
    every[_range_of(part, n) == i] = mixed
    return replace(part, mixed=every), 0


def between(part: RowsToDeal, first: int, last: int) -> list[tuple[Any, ...]]:
    """The rows of a part whose numbers lie in a range, their strata, and these."""
    inside = (part.mixed >= np.uint64(first)) & (part.mixed <= np.uint64(last))
    rows = np.flatnonzero(inside)
    return [(part.number, rows, part.stratum[rows], part.mixed[rows])]
