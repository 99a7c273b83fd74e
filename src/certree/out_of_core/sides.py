"""Which rows of parts grow a tree and which certify it, and the parts of those that grow.

Rows are dealt by the numbers that they would have in one table, as `shuffle_by_content` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.interface.arrays import Float64, Int32, Int64, UInt64, find_positions
from certree.out_of_core.chunks import Chunk, positive_rows, without_class_weights
from certree.out_of_core.dealt_groups import dealt_by_groups, groups_of_all
from certree.out_of_core.executors import Executor, SomeRows
from certree.out_of_core.fit_hashes import with_hashes
from certree.out_of_core.made_parts import without_rows
from certree.out_of_core.order_of_rows import Division, Groups, Mask, RowsToDeal, dealt_to, in_order
from certree.out_of_core.part import PartOfRows
from certree.rows.folds import Indices, compute_random_word, number_groups
from certree.rows.hashes import RowHashes, merge_hashes
from certree.rows.near_copies import NearCopies
from certree.rows.split import TrainCalibrationSplit, count_training_units, draw_training_groups
from certree.rows.training import encode_classes, get_first_untrained_code, training_rows
from certree.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class DealtSides:
    """Which rows of parts certify, and which grow.

    Parameters
    ----------
    reader : object
        Reads all rows.
    division : Division
        How rows are told apart.
    masks : list of ndarray of bool
        Of each part, which of its rows certify, in their order.
    n : int
        How many rows there are.
    n_groups : int or None
        How many groups rows have, which are dealt whole; None: they have none.
    repeats : int
        How many of those that certify are like one that grows, or another one that certifies.
    is_worst : list of ndarray of bool, or None
        Of each part, which of its rows count as the worst case, in their order; None: none.
    """

    reader: Any
    division: Division
    masks: list[Mask]
    n: int
    n_groups: int | None
    repeats: int
    is_worst: list[Mask] | None = None

    @property
    def n_certifying(self) -> int:
        """How many rows certify."""
        return sum(int(one.sum()) for one in self.masks)

    @property
    def n_units(self) -> int:
        """How many rows, or groups of them, there are."""
        return self.n if self.n_groups is None else self.n_groups


def deal_sides(
    parts: Executor, reader: Any, train_size: float, random_state: np.random.RandomState
) -> DealtSides:
    """Deal rows to growing and certifying, as `Deal` does by their contents, or groups of them.

    Parameters
    ----------
    parts : Executor
        Where rows lie.
    reader : object
        Reads them by what all of them tell.
    train_size : float
        Share of the rows, or groups, that grow.
    random_state : RandomState
        Source of the order.

    Raises
    ------
    ValueError
        If a side would be empty.
    """
    division = Division(None)
    told = sorted(parts.make(make_alike_rows, reader, division), key=itemgetter(0))
    _, sizes, totals, names = zip(*told, strict=True)
    n, n_groups = sum(sizes), None
    if all(one is None for one in names):
        n_growing = count_training_units(train_size, n, n)
        word = compute_random_word(sum(totals), random_state)
        every = [np.zeros(n_rows, dtype=np.bool_) for n_rows in sizes]
        masks, _ = dealt_to(parts, every, np.array([n]), lambda place: place >= n_growing, word)
    else:
        n_groups, places = groups_of_all(names)
        certify = ~draw_training_groups(train_size, n_groups, n, random_state)
        masks = dealt_by_groups(parts, places, certify)
    repeats = _n_repeats(parts, masks, n, grouped=n_groups is not None)
    return DealtSides(reader, division, masks, n, n_groups, repeats)


def _n_repeats(parts: Executor, masks: list[Mask], n: int, *, grouped: bool) -> int:
    """See `n_repeats`; what is alike is told by hashes, some million rows at a time."""
    parts.change(_knowing_sides, own=masks)
    n_ranges, repeats = max(1, -(-n // parts.portions.together)), 0
    share_keys(parts, n_ranges)
    for i in range(n_ranges):
        told = parts.collect(_alike_in_range, i, n_ranges)
        grow, certify, unit = (np.concatenate(one) for one in zip(*told, strict=True))
        if grouped:
            certify = np.unique(np.stack([certify, unit.view(np.uint64)]), axis=1)[0]
        repeats += len(certify) - int((~np.isin(np.unique(certify), grow)).sum())
    return repeats


def share_keys(parts: Executor, n_ranges: int) -> None:
    """Give copies that have passed through float32 the hashes of the rows that they are copies of."""
    told = parts.collect(_has_both)
    if not all(any(one) for one in zip(*told, strict=True)):
        return
    for i in range(n_ranges):
        some = parts.collect(_float32_in_range, i, n_ranges)
        exact, rounded = (merge_hashes(*one) for one in zip(*some, strict=True))
        if not len(exact):
            continue
        shared = rounded[find_positions(exact, rounded)[1]]
        if len(shared):
            parts.change(_with_shared_keys, shared)


def _has_both(part: AlikeRows) -> list[tuple[bool, bool]]:
    return [(len(part.rounded) > 0, bool(part.is_float32.any()))]


def _float32_in_range(part: AlikeRows, i: int, n: int) -> list[tuple[UInt64, UInt64]]:
    """Hashes in the i-th of n ranges: of rows that float32 holds, and of fractional ones in float32."""
    exact = part.alike[part.is_float32]
    rounded = part.rounded[part.rounded != part.alike] if len(part.rounded) else part.rounded
    return [(exact[exact % np.uint64(n) == i], rounded[rounded % np.uint64(n) == i])]


def _with_shared_keys(part: AlikeRows, shared: UInt64) -> tuple[AlikeRows, int]:
    if not len(part.rounded):
        return part, 0
    is_copy = find_positions(shared, part.rounded)[1]
    return replace(part, alike=np.where(is_copy, part.rounded, part.alike)), 0


def worst_rows_of_parts(parts: Executor, n: int) -> list[Mask]:
    """Which rows of each part count as the worst case, in their order; see `repeated_rows`.

    Parts are those of `deal_sides`, of n rows.
    """
    n_ranges = max(1, -(-n // parts.portions.together))
    for i in range(n_ranges):
        told = parts.collect(_alike_in_range, i, n_ranges)
        grow, certify, unit = (np.concatenate(one) for one in zip(*told, strict=True))
        order = np.lexsort((unit, certify))
        hashes, start = np.unique(certify[order], return_index=True)
        # All rows of a hash that grows are repeats, and else all but those of its first unit.
        first = np.where(np.isin(hashes, grow), -1, unit[order][start])
        parts.change(_marking_worst, i, n_ranges, hashes, first)
    masks: list[tuple[int, Mask]] = parts.collect(_worst_rows)
    return [mask for _, mask in sorted(masks, key=itemgetter(0))]


def _marking_worst(
    part: AlikeRows, i: int, n: int, hashes: UInt64, first: Int64
) -> tuple[AlikeRows, int]:
    """Mark rows of the i-th of n ranges that are not of the first unit of their hash."""
    rows = is_in_range(part, i, n) & part.certifies
    places, _ = find_positions(hashes, part.alike[rows])
    is_worst = part.is_worst.copy()
    is_worst[rows] = part.units[rows] != first[places]
    return replace(part, is_worst=is_worst), 0


def _worst_rows(part: AlikeRows) -> list[tuple[int, Mask]]:
    return [(part.number, part.is_worst)]


@dataclass(frozen=True, slots=True, eq=False)
class AlikeRows(RowsToDeal):
    """Rows to deal that know which of them are alike.

    Parameters
    ----------
    alike : ndarray of uint64, shape (n,)
        Hashes of rows and targets, and keys that copies share once they are known; see `RowHashes`.
    rounded : ndarray of uint64, shape (n,) or (0,)
        The same of fractional rows once they have passed through float32, and those of the others;
        none if no row is fractional.
    is_float32 : ndarray of bool, shape (n,)
        Which rows float32 holds as they are.
    certifies : ndarray of bool, shape (n,)
        Which of them certify, once it is known.
    is_worst : ndarray of bool, shape (n,)
        Which of them count as the worst case, once it is known.
    row : ndarray of intp, shape (n,)
        Their places in the part, as they came.
    """

    alike: UInt64
    rounded: UInt64
    is_float32: Mask
    certifies: Mask
    is_worst: Mask
    row: Indices

    @property
    def units(self) -> Int64:
        """Numbers that rows of all parts stand in order by: of their groups, or of themselves."""
        if self.group is not None:
            return self.group.astype(np.int64)
        return (np.int64(self.number) << 40) + self.row


def make_alike_rows(
    number: int, chunk: Chunk, reader: Any, division: Division
) -> tuple[AlikeRows, list[tuple[int, int, int, NDArray[Any] | None]]]:
    """The rows of a chunk in their order; tells their number, the sum of their hashes, and groups."""
    training = division.rows(reader, chunk)
    rows, order, names = in_order(number, training, division)
    hashes = RowHashes(*(np.zeros(0, dtype=one) for one in (np.uint64, np.intp, np.uint64, bool)))
    if training is not None:
        hashes = RowHashes.hash_rows(training.features.tables, training.y)
    alike, rounded = hashes.exact[order], hashes.exact
    if len(hashes.fractional):
        rounded = rounded.copy()
        rounded[hashes.fractional] = hashes.rounded
        rounded = rounded[order]
    else:
        rounded = rounded[:0]
    given = {one.name: getattr(rows, one.name) for one in fields(rows)}
    none = np.zeros(len(alike), dtype=np.bool_)
    made = AlikeRows(
        **given,
        alike=alike,
        rounded=rounded,
        is_float32=hashes.is_float32[order],
        certifies=none,
        is_worst=none,
        row=order,
    )
    return made, [(number, len(alike), int(rows.content.sum(dtype=np.uint64)), names)]


def _knowing_sides(part: AlikeRows, mask: Mask) -> tuple[AlikeRows, int]:
    return replace(part, certifies=mask), 0


def is_in_range(part: AlikeRows, i: int, n: int) -> Mask:
    """Which rows have hashes in the i-th of n ranges."""
    return np.asarray(part.alike % np.uint64(n) == i)


def _alike_in_range(part: AlikeRows, i: int, n: int) -> list[tuple[UInt64, UInt64, Int64]]:
    """Hashes of the rows of both sides in the i-th of n ranges, and units of those that certify."""
    inside = is_in_range(part, i, n)
    grow, certify = ~part.certifies & inside, part.certifies & inside
    return [(part.alike[grow], part.alike[certify], part.units[certify])]


class GrowingSide(SomeRows):
    """The rows that grow, as if there were no others: what looks at chunks sees these alone.

    Parameters
    ----------
    parts : Executor
        Holds all rows.
    sides : DealtSides
        Which of them grow.
    """

    def __init__(self, parts: Executor, sides: DealtSides) -> None:
        super().__init__(parts)
        self._sides = sides
        self.gathered, self.keep_to_limit = parts.gathered, parts.keep_to_limit

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:  # noqa: ARG002 -- features tell the side
        """See `Executor`."""
        about = self._sides.reader, self._sides.division
        return self._parts.make(_looked_at, f, given, *about, own=self._sides.masks)

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`."""
        sides = self._sides
        each: Iterable[tuple[Any, ...]] = repeat(()) if own is None else [(one,) for one in own]
        masks = [*zip(sides.masks, each, strict=False)]
        return self._parts.make(_made_of, f, given, sides.reader, sides.division, own=masks)


def _looked_at(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    given: tuple[Any, ...],
    reader: Any,
    division: Division,
    mask: Mask,
) -> tuple[PartOfRows, Any]:
    grow = _growing(chunk, reader, division, mask)
    return without_rows(number, reader, None, reader._n_encoded), f(grow, *given)


def _made_of(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    given: tuple[Any, ...],
    reader: Any,
    division: Division,
    own: tuple[Mask, tuple[Any, ...]],
) -> tuple[Any, Any]:
    mask, more = own
    grow = _growing(chunk, reader, division, mask)
    made: tuple[Any, Any] = f(number, grow, *given, *more)
    return made


def _places(chunk: Chunk, reader: Any, division: Division, mask: Mask) -> tuple[Any, Indices, Mask]:
    """The target of a chunk, its rows of positive weight, and which of these certify."""
    found, training = positive_rows(reader, chunk), division.rows(reader, chunk)
    if found is None or training is None:
        division.expect_rows(len(mask), 0)
        return chunk.y, np.zeros(0, dtype=np.intp), mask
    target, _, rows = found
    order, certifies = division.order(training)[0], np.empty(len(rows), dtype=np.bool_)
    division.expect_rows(len(mask), len(order))
    certifies[order] = mask
    return target, rows, certifies


def _growing(chunk: Chunk, reader: Any, division: Division, mask: Mask) -> Chunk:
    """The rows of a chunk that grow."""
    target, rows, certifies = _places(chunk, reader, division, mask)
    return _some(chunk, target, rows[~certifies])


def _some(chunk: Chunk, target: Any, rows: Indices) -> Chunk:
    """Some rows of a chunk, as they came."""
    return replace(chunk, y=target).at(rows)


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationBlock:
    """The calibration rows of one block, m of the k rows of positive weight.

    Parameters
    ----------
    number, n_given : int
        Number of the block, and number of its rows, those of weight zero included.
    rows : ndarray of intp, shape (k,), or None
        Positions in the block of its rows of positive weight; None: all.
    is_calibration : ndarray of bool, shape (k,)
        True for calibration rows, False for training rows.
    groups : tuple of two ndarrays, or None
        Names of the groups of the k rows, ascending, and for each row the index of its group among
        them; None: rows have no groups.
    is_worst : ndarray of bool, shape (m,), or None
        True for repeated calibration rows that count as errors; None: no such rows.
    leaf : ndarray of int32, shape (m,)
        Node number of the leaf that each calibration row reaches.
    y : ndarray, shape (m,)
        Class code of each calibration row, int32, or its target, float64.
    weight : ndarray of float64, shape (m,), or None
        Weight of each calibration row; None: 1.
    """

    number: int
    n_given: int
    rows: Indices | None
    is_calibration: Mask
    groups: Groups | None
    is_worst: Mask | None
    leaf: Int32
    y: NDArray[Any]
    weight: Float64 | None


def route_calibration_rows(
    number: int,
    chunk: Chunk,
    reader: Any,
    tree: Tree,
    of_all: Any,
    division: Division,
    are_classes_given: bool,
    masks: tuple[Mask, Mask | None],
) -> tuple[PartOfRows, list[CalibrationBlock]]:
    """Find the calibration rows of a block, and route them through the tree.

    Parameters
    ----------
    number, chunk : int, Chunk
        Number of the block, and all of its rows.
    reader : object
        Encodes rows by the classes and categories of the training set.
    tree : Tree
        The tree that was grown on the training set.
    of_all : object
        Encodes rows by the classes of all rows.
    division : Division
        How rows are ordered within a block.
    are_classes_given : bool
        Whether `fit` got the classes; all others then have one code.
    masks : tuple of two ndarrays of bool
        Which rows are calibration rows, and which count as errors (None: no such rows), in the
        order of `division`.

    Returns
    -------
    PartOfRows
        A block without rows; a classifier's block has the hashes of the calibration rows.
    list of CalibrationBlock
        One entry.
    """
    mask, worst = masks
    target, rows, is_calibration = _places(chunk, of_all, division, mask)
    if worst is not None:
        worst = _places(chunk, of_all, division, worst)[2][is_calibration]
    some = _some(chunk, target, rows[is_calibration])
    part, n_given = without_rows(number, reader, None, reader._n_encoded), len(chunk.y)
    given = None if len(rows) == n_given else rows
    groups = None
    if chunk.groups is not None and len(rows):
        groups = number_groups(chunk.groups[rows])
    block = partial(CalibrationBlock, number, n_given, given, is_calibration, groups, worst)
    plain = without_class_weights(reader)
    found = positive_rows(plain, some)
    if found is None:
        no_leaf = np.zeros(0, dtype=np.int32)
        return part, [block(no_leaf, no_leaf if is_classifier(reader) else np.zeros(0), None)]
    target, weight, _ = found
    known = target
    if is_classifier(reader):
        # Rows of classes that no training row has are read as well.
        known = np.repeat(reader.classes_[:1], len(target))
    training, _ = training_rows(plain, some.X, known, None, reuse_encoding=True)
    leaf, y = tree.route(training.X, 1), training.y
    if is_classifier(reader):
        others = np.setdiff1d(of_all.classes_, reader.classes_)
        y = encode_classes(target, reader.classes_, others)
        if are_classes_given:
            y = np.minimum(y, get_first_untrained_code(len(reader.classes_)))
        part = with_hashes(part, training.features.tables, y)
    return part, [block(leaf, y, _multiply_class_weights(reader, target, weight))]


def _multiply_class_weights(
    reader: Any, target: NDArray[Any], weight: Float64 | None
) -> Float64 | None:
    """Multiply the weights of rows, (m,), by those of their classes; None stands for weights of 1.

    reader: its attribute `class_weight`, if any, is a dictionary from a class to its weight, or
    None; target: class of each row, (m,).
    """
    factors = getattr(reader, "class_weight", None)
    if factors is None:
        return weight
    labels, places = np.unique(target, return_inverse=True)
    factor = np.array([factors.get(label, 1.0) for label in labels.tolist()])[places]
    return factor if weight is None else factor * weight


def _numbered_groups(told: list[Groups | None]) -> Indices | None:
    """A number for the group of each row of parts, one behind the other; None: there are none."""
    if all(one is None for one in told):
        return None
    _, places = groups_of_all([None if one is None else one[0] for one in told])
    pairs = zip(places, told, strict=True)
    return np.concatenate([place[one[1]] for place, one in pairs if one is not None])


def join_calibration_blocks(
    blocks: list[CalibrationBlock], repeats: int, *, is_distinct: bool = False
) -> tuple[TrainCalibrationSplit, Int32, NDArray[Any], Float64 | None]:
    """Join the calibration rows of all blocks, in the order of the blocks' numbers.

    repeats: number of calibration rows that equal a training row or another calibration row.
    is_distinct: whether equal rows were merged. Return the train/calibration split of all rows; and
    leaf, class code or target, and weight (None: 1) of each calibration row.
    """
    blocks = sorted(blocks, key=lambda block: block.number)
    is_calibration = np.concatenate([block.is_calibration for block in blocks])
    split = TrainCalibrationSplit(
        np.flatnonzero(~is_calibration),
        np.flatnonzero(is_calibration),
        _numbered_groups([block.groups for block in blocks]),
        indices=_places_of_all(blocks),
        n_given=sum(block.n_given for block in blocks),
        repeats=repeats,
        distinct=is_distinct,
        is_worst=_joined_masks([block.is_worst for block in blocks]),
        near_copies=NearCopies(0),  # to look for them would take more passes over all rows
    )
    some = [block for block in blocks if len(block.leaf)]
    leaf, y = (np.concatenate([getattr(block, name) for block in some]) for name in ("leaf", "y"))
    weights = [block.weight for block in some if block.weight is not None]
    # All blocks have weights, or none has.
    return split, leaf, y, np.concatenate(weights) if len(weights) == len(some) else None


def _joined_masks(masks: list[Mask | None]) -> Mask | None:
    """One mask of rows of all parts; None: they have none."""
    known = [one for one in masks if one is not None]
    return np.concatenate(known) if known else None


def _places_of_all(blocks: list[CalibrationBlock]) -> Indices | None:
    """Return the positions of the rows of positive weight among the rows of all blocks; None: all."""
    if all(block.rows is None for block in blocks):
        return None
    starts: Int64 = np.cumsum([0, *(block.n_given for block in blocks)])[:-1]
    rows = (np.arange(block.n_given) if block.rows is None else block.rows for block in blocks)
    return np.concatenate([own + start for own, start in zip(rows, starts, strict=True)])
