"""The training and the calibration set of a certified fit whose rows are stored in several blocks.

The result is the same as for the rows in one table, see `TrainCalibrationSplitter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.interface.arrays import Float64, Int32, Int64, UInt64, find_positions
from certree.out_of_core.binned_blocks import make_empty_block
from certree.out_of_core.chunks import (
    Chunk,
    copy_without_class_weights,
    find_positive_rows,
    number_known_groups,
)
from certree.out_of_core.executors import Executor
from certree.out_of_core.fit_hashes import add_hashes
from certree.out_of_core.group_assignment import assign_by_groups, number_all_groups
from certree.out_of_core.hash_ranges import count_hash_ranges, find_hash_ranges
from certree.out_of_core.row_assignment import (
    Groups,
    Mask,
    RowSorter,
    RowsToAssign,
    assign_rows,
    sort_block,
)
from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.time_cut import assign_by_cut
from certree.out_of_core.transformed_rows import TransformedRows
from certree.rows.duplicates import count_repeated_units, mark_repeats_by_key
from certree.rows.folds import Indices, compute_random_word, number_groups
from certree.rows.hashes import RowHashes, merge_hashes
from certree.rows.near_copies import NearCopies
from certree.rows.split import (
    TrainCalibrationSplit,
    count_training_units,
    draw_training_groups,
    number_by_first,
    rank_units,
)
from certree.rows.time_order import LATEST, TimeCut
from certree.rows.training import encode_classes, get_first_untrained_code, training_rows
from certree.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class TrainCalibrationMasks:
    """Masks of the calibration rows of all blocks; all other rows are the training set.

    Rows are stored in several blocks, and only rows of positive weight count. `split_blocks`
    returns it.

    Parameters
    ----------
    encoder : object
        Copy of the model, which converts features and targets of all rows to numbers.
    sorter : RowSorter
        Sorts the rows of a block in the order of the masks, which does not depend on the file.
    masks : list of ndarray of bool
        For each block: True for calibration rows, in the order of `RowSorter.sort_rows`.
    n : int
        Number of rows of positive weight.
    n_groups : int or None
        Number of groups of rows, each of which is in one set; None: rows have no groups.
    repeats : int
        Number of calibration rows that equal a training row or another calibration row. With groups,
        equal rows of one group count once.
    keys : ndarray of uint64, or None
        Key of each calibration row, in the order in which rows are read; equal rows have equal keys.
        None: no calibration row is repeated, or rows have groups or times.
    is_worst : list of ndarray of bool, or None
        For each block: True for repeated calibration rows, which certificates count as errors whatever
        is predicted, as they may be copies (the worst case), in the order of `masks`; None: there are
        no such rows.
    """

    encoder: Any
    sorter: RowSorter
    masks: list[Mask]
    n: int
    n_groups: int | None
    repeats: int
    keys: UInt64 | None = None
    is_worst: list[Mask] | None = None

    @property
    def n_calibration(self) -> int:
        """Number of calibration rows in all blocks."""
        return sum(int(mask.sum()) for mask in self.masks)

    @property
    def n_units(self) -> int:
        """Number of groups in all blocks, or of rows of positive weight if rows have no groups."""
        return self.n if self.n_groups is None else self.n_groups


def split_blocks(
    executor: Executor,
    encoder: Any,
    train_size: float,
    random_state: np.random.RandomState,
    cut: TimeCut | None = None,
) -> TrainCalibrationMasks:
    """Assign the rows of all blocks, or whole groups of rows, to the training or calibration set.

    Parameters
    ----------
    executor : Executor
        Reads the rows. Its blocks are replaced by `HashedRows`, which `mark_worst_case` needs later.
    encoder : object
        Copy of the model, which encodes rows by the classes and categories of all rows.
    train_size : float
        Fraction of the rows, or groups, in the training set.
    random_state : RandomState
        Source of randomness.
    cut : TimeCut or None
        Time that separates earlier rows, or groups, which become the training set, from the latest
        ones, which become the calibration set. None: rows are assigned at random.

    Returns
    -------
    TrainCalibrationMasks
        Which rows are calibration rows, and how many of them are repeated.

    Raises
    ------
    ValueError
        If a set would be empty.
    """
    sorter = RowSorter(None)
    blocks = sorted(executor.make_blocks(read_hashed_rows, encoder, sorter), key=itemgetter(0))
    _, sizes, totals, names = zip(*blocks, strict=True)
    n, n_groups = sum(sizes), None
    if cut is not None:
        if any(groups is not None for groups in names):
            n_groups, numbers = number_all_groups(names)
            assign_by_groups(executor, numbers, np.zeros(n_groups, dtype=np.bool_))
        masks = [sets == LATEST for sets in assign_by_cut(executor, cut)]
    elif all(groups is None for groups in names):
        n_train = count_training_units(train_size, n, n)
        word = compute_random_word(sum(totals), random_state)
        initial = [np.zeros(n_rows, dtype=np.bool_) for n_rows in sizes]
        masks, _ = assign_rows(
            executor, initial, np.array([n]), lambda position: position >= n_train, word
        )
    else:
        n_groups, numbers = number_all_groups(names)
        is_calibration = ~draw_training_groups(train_size, n_groups, n, random_state)
        masks = assign_by_groups(executor, numbers, is_calibration)
    repeats, keys = _count_repeats(executor, masks, n), None
    if repeats and n_groups is None and cut is None:
        found = sorted(executor.reduce(_list_calibration_keys), key=itemgetter(0))
        keys = np.concatenate([of_block for _, of_block in found])
    return TrainCalibrationMasks(encoder, sorter, masks, n, n_groups, repeats, keys)


def _count_repeats(executor: Executor, masks: list[Mask], n: int) -> int:
    """Count the calibration rows that equal a training row or another calibration row.

    Rows of all blocks are compared by their hashes, one range of hashes at a time. The blocks are
    changed: they store which rows are calibration rows, and a row that equals another one after
    rounding to float32 gets its hash.

    Parameters
    ----------
    executor : Executor
        Holds blocks of type `HashedRows`.
    masks : list of ndarray of bool
        For each block: True for calibration rows.
    n : int
        Number of rows in all blocks.

    Returns
    -------
    int
        Number of repeats; equal rows of one group count once.
    """
    executor.replace_blocks(_set_calibration_rows, per_block=masks)
    n_ranges, repeats = count_hash_ranges(n, executor.block_sizes), 0
    share_keys(executor, n_ranges)
    for i in range(n_ranges):
        _, rows = _collect_calibration_rows(executor, i, n_ranges)
        repeats += count_repeated_units(*rows)
    return repeats


def _collect_calibration_rows(
    executor: Executor, i: int, n: int
) -> tuple[list[int], tuple[UInt64, Mask, Int64]]:
    """Return the calibration rows whose key is in range number i of n ranges, block by block.

    executor: holds blocks of type `HashedRows`. Return the number of such rows in each block, and for
    the m rows of all blocks the tuple of arguments of `mark_repeats_by_key`: their keys, whether a
    training row has the same key, and the number of the row's group (or of the row), each (m,).
    """
    found = sorted(executor.reduce(_get_hashes_in_range, i, n), key=itemgetter(0))
    sizes = [len(keys) for _, _, keys, _ in found]
    train, keys, units = (np.concatenate([block[k] for block in found]) for k in (1, 2, 3))
    return sizes, (keys, np.isin(keys, train), units)


def share_keys(executor: Executor, n_ranges: int) -> None:
    """Give equal keys to rows that are copies of each other after rounding to float32.

    A copy that was stored as float32 gets the same key as its original in float64, so that `key`
    finds it as a repeated row. executor: holds blocks of type `HashedRows`, which are replaced by
    blocks with another field `key` if there are such copies; n_ranges: number of ranges into which
    hashes are divided, one of which is compared at a time.
    """
    kinds = executor.reduce(_has_both_kinds)
    if not all(any(has_kind) for has_kind in zip(*kinds, strict=True)):
        return
    for i in range(n_ranges):
        found = executor.reduce(_get_float32_hashes, i, n_ranges)
        exact, rounded = (merge_hashes(*hashes) for hashes in zip(*found, strict=True))
        if not len(exact):
            continue
        shared = rounded[find_positions(exact, rounded)[1]]
        if len(shared):
            executor.replace_blocks(_set_shared_keys, shared)


def _has_both_kinds(block: HashedRows) -> list[tuple[bool, bool]]:
    """Return whether float32 rounds some rows of a block, and whether others are exact in float32.

    The two bools are returned as a list of one pair, which `Executor.reduce` concatenates.
    """
    return [(len(block.rounded) > 0, bool(block.is_float32.any()))]


def _get_float32_hashes(block: HashedRows, i: int, n: int) -> list[tuple[UInt64, UInt64]]:
    """Return those hashes of a block's rows that are in range number i of n ranges of hashes.

    A hash is in the range of its remainder modulo n. Return a list of one pair: the hashes of rows that
    are exact in float32, and the hashes after rounding to float32 of rows that are not.
    """
    exact, rounded = block.key[block.is_float32], block.rounded
    return [(exact[find_hash_ranges(exact, n) == i], rounded[find_hash_ranges(rounded, n) == i])]


def _set_shared_keys(block: HashedRows, shared: UInt64) -> tuple[HashedRows, int]:
    """Return a block whose rows with a float32 copy have the key of the copy, and 0.

    A float32 copy is a row that equals the row after rounding to float32; 0 is the partial result for
    `Executor.replace_blocks`. block: n rows with hashes; shared: hashes, ascending, that some row has
    without rounding, and another one after rounding to float32.
    """
    hashes = RowHashes(block.key, block.fractional, block.rounded, block.is_float32)
    return replace(block, key=hashes.compute_keys_among(shared)), 0


def mark_worst_case(executor: Executor, n: int) -> list[Mask]:
    """Mark the repeated calibration rows, which certificates count as errors in the worst case.

    They may be copies, and count whatever is predicted. A calibration row is repeated if it equals a
    training row or an earlier calibration row, in the order in which rows are read; with groups, one
    of a group with a smaller number.

    Parameters
    ----------
    executor : Executor
        Holds the blocks of type `HashedRows` that `split_blocks` has made. They are replaced by blocks
        with the marks.
    n : int
        Number of rows in all blocks.

    Returns
    -------
    list of ndarray of bool
        For each block: True for repeated calibration rows, in the order of `RowSorter.sort_rows`. They
        are the rows that `certree.rows.duplicates.mark_repeats` marks in one table.
    """
    n_ranges = count_hash_ranges(n, executor.block_sizes)
    for i in range(n_ranges):
        sizes, rows = _collect_calibration_rows(executor, i, n_ranges)
        marks = np.split(mark_repeats_by_key(*rows), np.cumsum(sizes)[:-1])
        executor.replace_blocks(_mark_block, i, n_ranges, per_block=marks)
    masks: list[tuple[int, Mask]] = executor.reduce(_get_worst_rows)
    return [mask for _, mask in sorted(masks, key=itemgetter(0))]


def _mark_block(block: HashedRows, i: int, n: int, marks: Mask) -> tuple[HashedRows, int]:
    """Mark repeated calibration rows of a block; return the block with the marks, and 0.

    0 is the partial result for `Executor.replace_blocks`. i, n: number of the range of hashes, and
    number of ranges; marks: for each calibration row in the range, in the order of the block, True if
    it is repeated.
    """
    rows = (find_hash_ranges(block.key, n) == i) & block.is_calibration
    is_worst = block.is_worst.copy()
    is_worst[rows] = marks
    return replace(block, is_worst=is_worst), 0


def _get_worst_rows(block: HashedRows) -> list[tuple[int, Mask]]:
    """Return the number of a block and its mask of repeated calibration rows, as a list of one pair."""
    return [(block.number, block.is_worst)]


@dataclass(frozen=True, slots=True, eq=False)
class HashedRows(RowsToAssign):
    """The n rows of a block, with hashes by which equal rows are found over all blocks.

    A fractional row has values that float32 rounds. See `RowsToAssign` for all other fields.

    Parameters
    ----------
    key : ndarray of uint64, shape (n,)
        Hashes of features and target. After `share_keys` rows have the same key if one of them is a
        copy of the other that was rounded to float32; see `RowHashes`.
    fractional : ndarray of intp, shape (m,)
        Indices of the fractional rows.
    rounded : ndarray of uint64, shape (m,)
        Hashes of the fractional rows after rounding to float32.
    is_float32 : ndarray of bool, shape (n,)
        True for rows whose values are exact in float32.
    is_calibration : ndarray of bool, shape (n,)
        True for calibration rows; False before they are chosen.
    is_worst : ndarray of bool, shape (n,)
        True for repeated calibration rows, which certificates count as errors whatever is predicted;
        False before they are found.
    row : ndarray of intp, shape (n,)
        Indices of the rows in the order in which the block was read.
    """

    key: UInt64
    fractional: Indices
    rounded: UInt64
    is_float32: Mask
    is_calibration: Mask
    is_worst: Mask
    row: Indices

    @property
    def units(self) -> Int64:
        """Number of each row's group among the groups of all blocks, (n,).

        Without groups it is a number of the row, which no other row of any block has.
        """
        if self.group is not None:
            return self.group.astype(np.int64)
        return (np.int64(self.number) << 40) + self.row


def read_hashed_rows(
    number: int, chunk: Chunk, encoder: Any, sorter: RowSorter
) -> tuple[HashedRows, list[tuple[int, int, int, NDArray[Any] | None]]]:
    """Read, sort and hash the rows of a block.

    Parameters
    ----------
    number, chunk : int, Chunk
        Number of the block, and its raw rows.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    sorter : RowSorter
        Sorts the rows in an order that does not depend on the file.

    Returns
    -------
    HashedRows
        The rows of positive weight.
    list of tuple
        One tuple: number of the block, number of its rows, sum of their hashes modulo 2^64, and
        names of its distinct groups, or None if rows have no groups.
    """
    training = sorter.read_rows(encoder, chunk)
    rows, order, names = sort_block(number, training, sorter)
    hashes = RowHashes(
        *(np.zeros(0, dtype=dtype) for dtype in (np.uint64, np.intp, np.uint64, bool))
    )
    if training is not None:
        hashes = RowHashes.hash_rows(training.features.tables, training.y)
    key = hashes.exact[order]
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    none = np.zeros(len(key), dtype=np.bool_)
    block = HashedRows(
        **{field.name: getattr(rows, field.name) for field in fields(rows)},
        key=key,
        fractional=place[hashes.fractional],
        rounded=hashes.rounded,
        is_float32=hashes.is_float32[order],
        is_calibration=none,
        is_worst=none,
        row=order,
    )
    return block, [(number, len(key), int(rows.content.sum(dtype=np.uint64)), names)]


def _list_calibration_keys(block: HashedRows) -> list[tuple[int, UInt64]]:
    """Return ``[(number of the block, keys of its calibration rows)]``.

    Keys are hashes that equal rows share, in the order in which rows were read. The list lets
    `Executor.reduce` concatenate the pairs of all blocks.
    """
    order = np.argsort(block.row)
    return [(block.number, block.key[order][block.is_calibration[order]])]


def _set_calibration_rows(block: HashedRows, mask: Mask) -> tuple[HashedRows, int]:
    """Store in a block which of its rows are calibration rows; return the new block, and 0.

    0 is the partial result for `Executor.replace_blocks`. mask: True for calibration rows, in the order
    of the block's rows.
    """
    return replace(block, is_calibration=mask), 0


def _get_hashes_in_range(
    block: HashedRows, i: int, n: int
) -> list[tuple[int, UInt64, UInt64, Int64]]:
    """Return the keys of a block's rows that are in range number i of n ranges, as a list of one tuple.

    A key, a hash that equal rows share, is in the range of its remainder modulo n. The tuple has the
    number of the block, the keys of training rows, the keys of calibration rows, and for each of the
    latter the number of its group (or of the row, without groups).
    """
    is_inside = find_hash_ranges(block.key, n) == i
    train, calibration = ~block.is_calibration & is_inside, block.is_calibration & is_inside
    keys = block.key[train], block.key[calibration]
    return [(block.number, *keys, block.units[calibration])]


def select_training_set(
    executor: Executor, encoder: Any, sorter: RowSorter, masks: Sequence[NDArray[Any]]
) -> TransformedRows:
    """Return an executor for the training set alone: passes over the rows skip all other rows.

    Parameters
    ----------
    executor : Executor
        Reads all rows.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    sorter : RowSorter
        Sorts the rows of a block in the order of the masks, which does not depend on the file.
    masks : sequence of ndarray of bool or uint8
        For each block: True, or not 0, for rows to skip, in the order of `RowSorter.sort_rows`.
    """
    return TransformedRows(executor, _take_training_rows, (encoder, sorter), masks)


def _find_rows(
    chunk: Chunk, encoder: Any, sorter: RowSorter, mask: Mask
) -> tuple[Any, Indices, Mask]:
    """Find the rows of positive weight in a block, and translate a mask of them.

    Parameters
    ----------
    chunk : Chunk
        Raw rows of the block.
    encoder, sorter : object, RowSorter
        Copy of the model, which encodes rows; and the order of the rows in `mask`.
    mask : ndarray of bool, shape (k,)
        Mask of the k rows of positive weight, in the order of `RowSorter.sort_rows`.

    Returns
    -------
    target : ndarray
        Checked target of all rows of the block, those of weight 0 included.
    rows : ndarray of intp, shape (k,)
        Positions of the rows of positive weight in the block, ascending.
    mask : ndarray of bool, shape (k,)
        The mask in the order of `rows`.

    Raises
    ------
    ValueError
        If the block has another number of rows than the mask.
    """
    found, training = find_positive_rows(encoder, chunk), sorter.read_rows(encoder, chunk)
    if found is None or training is None:
        sorter.expect_rows(len(mask), 0)
        return chunk.y, np.zeros(0, dtype=np.intp), mask
    target, _, rows = found
    order, translated = sorter.sort_rows(training)[0], np.empty(len(rows), dtype=np.bool_)
    sorter.expect_rows(len(mask), len(order))
    translated[order] = mask
    return target, rows, translated


def _take_training_rows(chunk: Chunk, encoder: Any, sorter: RowSorter, mask: Mask) -> Chunk:
    """Return the training rows of a block, in the order in which they were read.

    chunk: raw rows of the block; encoder: copy of the model, which encodes rows; sorter: order of
    the rows in the mask; mask: for each row of positive weight, True for the other (calibration)
    rows, which are left out.
    """
    target, rows, is_calibration = _find_rows(chunk, encoder, sorter, mask)
    return _take(chunk, target, rows[~is_calibration])


def _take(chunk: Chunk, target: Any, rows: Indices) -> Chunk:
    """Return some rows of a chunk, with checked targets in place of its own.

    chunk: raw rows of a block; target: checked target of all its rows; rows: positions of the rows to
    return, (k,).
    """
    return replace(chunk, y=target).take(rows)


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationBlock:
    """The m calibration rows of a block with k rows of positive weight.

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
        True for repeated calibration rows, which certificates count as errors whatever is predicted;
        None: no such rows.
    leaf : ndarray of int32, shape (m,)
        Node number of the leaf that each calibration row reaches.
    y : ndarray, shape (m,)
        Class code (int32) or numeric target (float64) of each calibration row.
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
    encoder: Any,
    tree: Tree,
    full_encoder: Any,
    sorter: RowSorter,
    are_classes_given: bool,
    masks: tuple[Mask, Mask | None],
) -> tuple[RowBlock, list[CalibrationBlock]]:
    """Find the calibration rows of a block, and route them through the tree.

    Parameters
    ----------
    number, chunk : int, Chunk
        Number of the block, and all of its rows.
    encoder : object
        Copy of the model, which encodes rows by the classes and categories of the training set.
    tree : Tree
        The tree that was grown on the training set.
    full_encoder : object
        Copy of the model, which encodes rows by the classes of the training and the calibration set.
    sorter : RowSorter
        Sorts the rows of a block in the order of the masks.
    are_classes_given : bool
        Whether the user has passed the classes to `fit`. All classes without training rows then get the
        same code.
    masks : tuple of (ndarray of bool, ndarray of bool or None), shape (k,)
        Which of the k rows of positive weight are calibration rows, and which of these are repeated
        rows that certificates count as errors whatever is predicted, as they may be copies (None: no
        such rows), in the order of `sorter`.

    Returns
    -------
    RowBlock
        A block without rows, which replaces the former one. A classifier's block has the hashes of the
        calibration rows.
    list of CalibrationBlock
        One entry: the calibration rows of the block, with their leaves and targets.
    """
    mask, worst = masks
    target, rows, is_calibration = _find_rows(chunk, full_encoder, sorter, mask)
    if worst is not None:
        worst = _find_rows(chunk, full_encoder, sorter, worst)[2][is_calibration]
    calibration = _take(chunk, target, rows[is_calibration])
    block, n_given = make_empty_block(number, encoder, None, encoder._n_encoded), len(chunk.y)
    positive = None if len(rows) == n_given else rows
    groups = None
    if chunk.groups is not None and len(rows):
        groups = number_groups(number_known_groups(full_encoder, chunk.groups[rows]))
    make_calibration_block = partial(
        CalibrationBlock, number, n_given, positive, is_calibration, groups, worst
    )
    plain = copy_without_class_weights(encoder)
    found = find_positive_rows(plain, calibration)
    if found is None:
        no_leaf = np.zeros(0, dtype=np.int32)
        return block, [
            make_calibration_block(
                no_leaf, no_leaf if is_classifier(encoder) else np.zeros(0), None
            )
        ]
    target, weight, _ = found
    accepted = target
    if is_classifier(encoder):
        # The encoder refuses classes that no training row has, so it gets a placeholder.
        accepted = np.repeat(encoder.classes_[:1], len(target))
    training, _ = training_rows(plain, calibration.X, accepted, None, reuse_encoding=True)
    leaf, y = tree.route(training.X, 1), training.y
    if is_classifier(encoder):
        others = np.setdiff1d(full_encoder.classes_, encoder.classes_)
        y = encode_classes(target, encoder.classes_, others)
        if are_classes_given:
            y = np.minimum(y, get_first_untrained_code(len(encoder.classes_)))
        block = add_hashes(block, training.features.tables, y)
    return block, [
        make_calibration_block(leaf, y, _multiply_class_weights(encoder, target, weight))
    ]


def _multiply_class_weights(
    encoder: Any, target: NDArray[Any], weight: Float64 | None
) -> Float64 | None:
    """Multiply the weights of rows, (m,), by those of their classes; None stands for weights of 1.

    encoder: its attribute `class_weight`, if any, is a dictionary from a class to its weight, or
    None; classes that it lacks have 1. target: class of each row, (m,). Return `weight` itself, which
    may be None, if there are no class weights.
    """
    factors = getattr(encoder, "class_weight", None)
    if factors is None:
        return weight
    labels, places = np.unique(target, return_inverse=True)
    factor = np.array([factors.get(label, 1.0) for label in labels.tolist()])[places]
    return factor if weight is None else factor * weight


def _number_row_groups(groups: list[Groups | None]) -> Indices | None:
    """Number the groups of all blocks, and return the number of each row's group, (n,).

    groups: for each block the names of its groups and the index of each row's group, or None for a
    block without rows. The rows of the blocks are joined in this order. Return None if rows have no
    groups.
    """
    if all(block is None for block in groups):
        return None
    _, numbers = number_all_groups([None if block is None else block[0] for block in groups])
    pairs = zip(numbers, groups, strict=True)
    return np.concatenate([number[block[1]] for number, block in pairs if block is not None])


def join_calibration_blocks(
    blocks: list[CalibrationBlock],
    repeats: int,
    keys: UInt64 | None = None,
    *,
    is_distinct: bool = False,
) -> tuple[TrainCalibrationSplit, Int32, NDArray[Any], Float64 | None]:
    """Join the calibration rows of all blocks, in the order of the blocks' numbers.

    Parameters
    ----------
    blocks : list of CalibrationBlock
        All blocks, in any order.
    repeats : int
        Number of calibration rows that equal a training row or another calibration row.
    keys : ndarray of uint64, shape (m,), or None
        `TrainCalibrationMasks.keys`: keys of the calibration rows, which equal rows share; None: no
        row is repeated, or rows have groups or times.
    is_distinct : bool
        Whether equal rows of the table were merged to one row before the split.

    Returns
    -------
    split : TrainCalibrationSplit
        Indices of the training and the calibration rows among all rows of positive weight, their
        groups, and how many calibration rows are repeated.
    leaf : ndarray of int32, shape (m,)
        Node number of the leaf that each calibration row reaches.
    y : ndarray, shape (m,)
        Class code (int32) or numeric target (float64) of each calibration row.
    weight : ndarray of float64, shape (m,), or None
        Weight of each calibration row; None: 1.
    """
    blocks = sorted(blocks, key=attrgetter("number"))
    is_calibration = np.concatenate([block.is_calibration for block in blocks])
    groups, units = _number_row_groups([block.groups for block in blocks]), None
    if not is_distinct:  # else places of copies are not known
        row = np.arange(len(is_calibration)) if groups is None else groups
        units = rank_units(row[is_calibration] if keys is None else number_by_first(keys))
    split = TrainCalibrationSplit(
        np.flatnonzero(~is_calibration),
        np.flatnonzero(is_calibration),
        groups,
        indices=_join_positions(blocks),
        n_given=sum(block.n_given for block in blocks),
        repeats=repeats,
        distinct=is_distinct,
        is_worst=_join_masks([block.is_worst for block in blocks]),
        near_copies=NearCopies(0),  # A search would need more passes over all rows.
        units=units,
    )
    filled = [block for block in blocks if len(block.leaf)]
    leaf, y = (np.concatenate([getattr(block, name) for block in filled]) for name in ("leaf", "y"))
    weights = [block.weight for block in filled if block.weight is not None]
    # Either all blocks have weights or none has.
    return split, leaf, y, np.concatenate(weights) if len(weights) == len(filled) else None


def _join_masks(masks: list[Mask | None]) -> Mask | None:
    """Join the masks of all blocks, each (n_i,), to one array; return None if all are None."""
    known = [mask for mask in masks if mask is not None]
    return np.concatenate(known) if known else None


def _join_positions(blocks: list[CalibrationBlock]) -> Indices | None:
    """Return the positions, in the whole table, of the rows of positive weight.

    blocks: the blocks of the table, in order. Return None if all rows have positive weight.
    """
    if all(block.rows is None for block in blocks):
        return None
    starts: Int64 = np.cumsum([0, *(block.n_given for block in blocks)])[:-1]
    rows = (np.arange(block.n_given) if block.rows is None else block.rows for block in blocks)
    return np.concatenate([block + start for block, start in zip(rows, starts, strict=True)])
