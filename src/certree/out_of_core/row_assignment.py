"""Assign rows that are stored in several blocks to folds or sets, as if they were in one table.

All rows are sorted by stratum (class) and then by a pseudo-random number. This number depends on the
content of a row and on its number among equal rows. The position in this order decides the set of a
row. To find it, blocks exchange hashes, for a range of hashes at a time. Each block sorts its own rows
by content, so the order in which it reads them does not matter.
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
from certree.out_of_core.chunks import Chunk, WeightScaling, encode_chunk
from certree.out_of_core.executors import Executor
from certree.out_of_core.hash_ranges import (
    count_hash_ranges,
    find_hash_ranges,
    iterate_hash_intervals,
)
from certree.rows.folds import (
    Indices,
    compute_sort_keys,
    find_class_sets,
    hash_contents,
    number_groups,
    rank_classes,
    sum_classes,
)
from certree.rows.hashes import count_equal_rows, hash_samples, mix
from certree.rows.training import Training

Mask = NDArray[np.bool_]
# The distinct groups of rows, ascending, and the position of each row's group among them.
Groups = tuple[NDArray[Any], Indices]


@dataclass(frozen=True, slots=True, eq=False)
class RowsToAssign:
    """The n rows of a block, without features, as they are assigned to folds or sets.

    Rows are sorted by class, then by content and then by weight; see `RowSorter.sort_rows`.

    Parameters
    ----------
    number : int
        Number of the block.
    classes : ndarray of int32, shape (n,) or (n, n_targets)
        Class codes; 0 if the target is numeric.
    stratum : ndarray of int32, shape (n,)
        Stratum of each row: its class, or the number of its combination of classes.
    content : ndarray of uint64, shape (n,)
        Hashes of the rows.
    target : ndarray of float64, shape (n,) or (n, n_targets)
        Targets.
    ties : ndarray of float64, shape (n_outputs + 1, n), or (1, n) without offsets
        Offsets, and then weights (1 if rows have no weights), by which equal rows are sorted.
    sort_key : ndarray of uint64, shape (n,)
        Pseudo-random numbers by which rows of a stratum are sorted. Before `assign_rows` computes
        them, the hashes `content`.
    group : ndarray of intp, shape (n,), or None
        Number of each row's group among the groups of the block; None: rows have no groups. After
        `assign_by_groups` it is the number among the groups of all blocks.
    time : ndarray of float64, shape (n,), or None
        Time of each row, or of its group; None: rows have no times.
    """

    number: int
    classes: Int32
    stratum: Int32
    content: UInt64
    target: Float64
    ties: Float64
    sort_key: UInt64
    group: Indices | None
    time: Float64 | None

    @property
    def weight(self) -> Float64:
        """Weight of each row, (n,); 1 if rows have no weights."""
        return self.ties[-1]


@dataclass(frozen=True, slots=True, eq=False)
class RowSorter:
    """Sorts and splits the rows of a block in the same way in each pass, and scales their weights.

    The order depends on the contents of rows, not on the order in which they are read.

    Parameters
    ----------
    random_state : RandomState or None
        Generator of the hash function, which is not advanced; rows are stratified by class. None: a
        fixed hash function without strata.
    weight_scalings : tuple of two (WeightScaling or None)
        Functions that scale the weights of training rows, and of validation rows; None: their weights
        are not scaled.
    feature_order : ndarray of int32, shape (p,), or None
        Order in which columns are hashed; None: the draw order of the features, see
        `Training.draw_order`.
    """

    random_state: np.random.RandomState | None
    weight_scalings: tuple[WeightScaling | None, WeightScaling | None] = (None, None)
    feature_order: Int32 | None = None

    def read_rows(self, encoder: Any, chunk: Chunk) -> Training | None:
        """Encode the rows of a block, with their weights unscaled.

        Parameters
        ----------
        encoder : object
            Copy of the model, which converts features and targets of rows to numbers.
        chunk : Chunk
            Raw rows of the block.

        Returns
        -------
        Training or None
            Features, targets and weights of the rows of positive weight as numbers; None: there are
            none.
        """
        return encode_chunk(encoder, chunk, None)

    def sort_rows(self, training: Training) -> tuple[Any, UInt64, Int32, Groups | None]:
        """Find the order of a block's n rows by class, hash, weight and offsets, and then by group.

        Parameters
        ----------
        training : Training
            Encoded rows, in the order in which they were read; they are not changed.

        Returns
        -------
        order : ndarray of intp, shape (n,)
            Row indices in sorted order.
        content : ndarray of uint64, shape (n,)
            Hashes of the rows, in the order in which they were read, as all further results.
        classes : ndarray of int32, shape (n,) or (n, n_targets)
            Classes of the rows; 0 for numeric targets or without a `random_state`.
        groups : Groups or None
            Distinct groups, and the position of each row's group among them; None: no groups.
        """
        content, classes = self._hash_rows(training)
        keys = *_list_ties(training), content, *np.atleast_2d(classes.T)
        if training.split.groups is None:
            return np.lexsort(keys), content, classes, None
        # Equal rows may belong to different groups.
        groups = number_groups(training.split.groups)
        return np.lexsort((groups[1], *keys)), content, classes, groups

    def _hash_rows(self, training: Training) -> tuple[UInt64, Int32]:
        """Return the hash and the classes of each row.

        training: the n encoded rows. Return hashes of features and targets, uint64, (n,), and class
        codes, int32, (n,) or (n, n_targets), which are 0 for numeric targets or without `random_state`.
        """
        order = training.draw_order if self.feature_order is None else self.feature_order
        if self.random_state is not None:
            rng = deepcopy(self.random_state)
            return hash_contents(training.features.matrix, training.y, rng, order)
        content = hash_samples(*training.features.tables, training.y, order=order)
        return content, np.zeros(len(content), dtype=np.int32)

    @staticmethod
    def expect_rows(n: int, n_now: int) -> None:
        """Check that a block has as many rows as in an earlier pass.

        Parameters
        ----------
        n, n_now : int
            Number of rows in the earlier pass, and in this one.

        Raises
        ------
        ValueError
            If the numbers differ.
        """
        if n != n_now:
            raise ValueError(
                f"X must give the same rows whenever it is read, but a block has {n_now} rows, and had "
                f"{n} before: fit again when no program changes the source of X"
            )

    def split_rows(self, training: Training, mask: NDArray[Any]) -> list[Training]:
        """Split a block into its training rows and its validation rows, and scale their weights.

        Parameters
        ----------
        training : Training
            The n rows of the block.
        mask : ndarray of bool or uint8, shape (n,)
            1 (True) for validation rows, 0 for training rows, 2 for rows in neither set, in the
            order of `sort_rows`.

        Returns
        -------
        list of two Training
            The training rows and the validation rows, in the order in which they were read.

        Raises
        ------
        ValueError
            If the block has another number of rows than the mask.
        """
        order, both = self.sort_rows(training)[0], []
        self.expect_rows(len(mask), len(order))
        for rows, weight_scaling in zip(
            (order[mask == 0], order[mask == 1]), self.weight_scalings, strict=True
        ):
            subset = training.take(np.sort(rows))
            if weight_scaling is not None and subset.weight is not None and len(rows):
                subset = replace(subset, weight=weight_scaling(subset.weight))
            both.append(subset)
        return both


def read_sorted_rows(
    number: int, chunk: Chunk, encoder: Any, sorter: RowSorter
) -> tuple[RowsToAssign, list[tuple[int, int, NDArray[Any] | None]]]:
    """Read and sort the rows of a block.

    Parameters
    ----------
    number, chunk : int, Chunk
        Number of the block, and its raw rows.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    sorter : RowSorter
        Hashes and sorts the rows.

    Returns
    -------
    RowsToAssign
        The rows of positive weight.
    list of tuple
        One tuple: number of the block, number of its rows, and names of its distinct groups or None.
    """
    rows, order, names = sort_block(number, sorter.read_rows(encoder, chunk), sorter)
    return rows, [(number, len(order), names)]


def sort_block(
    number: int, training: Training | None, sorter: RowSorter
) -> tuple[RowsToAssign, Indices, NDArray[Any] | None]:
    """Sort the rows of a block by `RowSorter.sort_rows`.

    Parameters
    ----------
    number : int
        Number of the block.
    training : Training or None
        Its n rows; None: there are none.
    sorter : RowSorter
        Hashes and sorts the rows.

    Returns
    -------
    rows : RowsToAssign
        The sorted rows.
    order : ndarray of intp, shape (n,)
        Index in `training` of each sorted row.
    names : ndarray or None
        Distinct groups, ascending; None: rows have no groups.
    """
    if training is None:
        none, no_hashes = np.zeros(0), np.zeros(0, dtype=np.uint64)
        no_classes = np.zeros(0, dtype=np.int32)
        about = no_classes, no_classes, no_hashes, none, none[None], no_hashes, None, none
        empty = RowsToAssign(number, *about)
        return empty, np.zeros(0, dtype=np.intp), None
    order, content, classes, groups = sorter.sort_rows(training)
    ties = _list_ties(training)[:, order]
    target = training.y.astype(np.float64)[order]
    content, classes = content[order], classes[order]
    names, group = (None, None) if groups is None else (groups[0], groups[1][order])
    times = training.split.times
    rows = RowsToAssign(
        number=number,
        classes=classes,
        stratum=classes if classes.ndim == 1 else classes[:, 0],
        content=content,
        target=target,
        ties=ties,
        sort_key=content.copy(),
        group=group,
        time=None if times is None else times.values[order],
    )
    return rows, order, names


def _list_ties(training: Training) -> Float64:
    """Return the numbers by which equal rows are ordered, (k, n): offsets, and the weight as last row.

    Weights, which decide first, are 1 if rows have none. training: the n encoded rows.
    """
    weight = np.ones(len(training.y)) if training.weight is None else training.weight
    return np.vstack([*([] if training.offset is None else training.offset), weight])


def make_sorted_blocks(
    executor: Executor, encoder: Any, sorter: RowSorter
) -> tuple[list[int], list[NDArray[Any] | None]]:
    """Read and sort the rows of each block for their assignment to sets, and number the strata.

    A stratum is a class or, with several targets, a combination of their classes.

    Parameters
    ----------
    executor : Executor
        Reads the rows. Its blocks are replaced by blocks of type `RowsToAssign`.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    sorter : RowSorter
        Hashes and sorts the rows.

    Returns
    -------
    sizes : list of int
        Number of rows of positive weight in each block.
    names : list of (ndarray or None)
        Names of the distinct groups of each block; None: the block has no groups, or no rows.
    """
    blocks = sorted(executor.make_blocks(read_sorted_rows, encoder, sorter), key=itemgetter(0))
    n_classes = getattr(encoder, "n_classes_", 0)
    if isinstance(n_classes, list):
        rank = rank_classes(executor.reduce(_sum_classes, n_classes))
        sets = _find_distinct(np.concatenate(executor.reduce(_list_class_sets, n_classes, rank)))
        executor.replace_blocks(_set_strata, n_classes, rank, sets)
    return [n_rows for _, n_rows, _ in blocks], [names for *_, names in blocks]


def _sum_classes(block: RowsToAssign, n_classes: list[int]) -> UInt64 | None:
    """Count the rows of each class in a block, and sum up their hashes modulo 2^64.

    Classes are later ordered by these numbers, see `rank_classes`. n_classes: number of classes of each
    target. Return (2, sum of n_classes), counts and sums, or None if the block has no rows.
    """
    if not len(block.content):
        return None
    return sum_classes(block.classes, n_classes, block.content)


def _list_class_sets(block: RowsToAssign, n_classes: list[int], rank: Int32) -> list[Int32]:
    """Return the distinct combinations of classes of several targets in a block.

    n_classes: number of classes of each target; rank: rank of each class among the classes of all
    targets together, from `rank_classes` for all blocks, (sum of n_classes,). Return a list of one
    int32 array (k, n_targets), with the ranks of a combination in each line: ascending within the
    line, whatever the order of the targets, and lines in lexicographic order. Return an empty list
    if the block has no rows.
    """
    if not len(block.content):
        return []
    return [_find_distinct(find_class_sets(block.classes, n_classes, rank))]


def _set_strata(
    block: RowsToAssign, n_classes: list[int], rank: Int32, sets: Int32
) -> tuple[RowsToAssign, int]:
    """Return a block whose field `stratum` numbers the combination of classes of each row, and 0.

    n_classes: number of classes of each target; rank: rank of each class among the classes of all
    targets together, from `rank_classes` for all blocks, (sum of n_classes,); sets: distinct
    combinations in all blocks, as `_list_class_sets` returns them, (k, n_targets).
    """
    if not len(block.content):
        return block, 0
    rows = find_class_sets(block.classes, n_classes, rank)
    # All combinations of the block are among `sets`, so the joined array has the same numbers.
    number = np.unique(np.concatenate([sets, rows]), axis=0, return_inverse=True)[1].reshape(-1)
    return replace(block, stratum=number[len(sets) :].astype(np.int32)), 0


def _find_distinct(sets: Int32) -> Int32:
    """Return the distinct lines of a table in lexicographic order, at most k of them.

    sets: combinations of classes, as ranks that ascend within each line, (k, n_targets).
    """
    return np.unique(sets, axis=0)


def assign_rows(
    executor: Executor,
    initial: Sequence[NDArray[Any]],
    stratum_sizes: Int64,
    assign: Callable[[NDArray[np.intp]], NDArray[Any]],
    word: np.uint64 | None = None,
) -> tuple[list[NDArray[Any]], int]:
    """Assign the rows of all blocks to sets by their positions in the order of all rows.

    Parameters
    ----------
    executor : Executor
        Holds blocks of type `RowsToAssign`, whose sort keys are replaced.
    initial : sequence of ndarray
        For each block an array of zeros, with an entry for each row, of the dtype of the result.
    stratum_sizes : ndarray of int64, shape (n_strata,)
        Number of rows of each stratum in all blocks. Rows are ordered by stratum first.
    assign : callable
        ``assign(positions)`` takes positions of some rows, 0 .. n - 1, in the order of all rows, (k,),
        and returns for each the number of its set, or a bool, (k,).
    word : uint64 or None
        Random number that changes the order, see `compute_random_word`; None: the order depends on
        the hashes of rows only.

    Returns
    -------
    assigned : list of ndarray
        For each block the sets of its rows, in the order of the block.
    n_repeated : int
        Number of rows that equal another row, target included.

    Raises
    ------
    ValueError
        If the process would exceed its memory limit.
    """
    n_ranges = count_hash_ranges(int(stratum_sizes.sum()), executor.block_sizes)
    executor.expect_within_limit(int(executor.reduce(count_in_ranges, n_ranges).max()))
    n_repeated = 0
    for i in range(n_ranges):
        sort_keys, repeated = _compute_sort_keys(executor, i, n_ranges, word)
        executor.replace_blocks(set_sort_keys, i, n_ranges, per_block=sort_keys)
        n_repeated += repeated
    assigned = [block.copy() for block in initial]
    next_position = np.cumsum(stratum_sizes) - stratum_sizes
    for first, last in iterate_hash_intervals(n_ranges):
        found = executor.reduce(get_rows_between, first, last)
        number = np.repeat([entry[0] for entry in found], [len(entry[1]) for entry in found])
        row, stratum, sort_key = (np.concatenate([entry[k] for entry in found]) for k in (1, 2, 3))
        order = np.lexsort((sort_key, stratum))
        counts = np.bincount(stratum, minlength=len(stratum_sizes))
        before = np.cumsum(counts) - counts
        sorted_stratum = stratum[order]
        position = np.arange(len(order)) - before[sorted_stratum] + next_position[sorted_stratum]
        next_position = next_position + counts
        values = assign(position)
        nonzero = np.flatnonzero(values)
        selected, values = order[nonzero], values[nonzero]
        for k in np.unique(number[selected]).tolist():
            is_in_block = number[selected] == k
            assigned[k][row[selected[is_in_block]]] = values[is_in_block]
    return assigned, n_repeated


def _compute_sort_keys(
    executor: Executor, i: int, n_ranges: int, word: np.uint64 | None
) -> tuple[list[UInt64], int]:
    """Compute the pseudo-random sort keys of the rows whose hashes are in one range.

    Parameters
    ----------
    executor : Executor
        Holds blocks of type `RowsToAssign`.
    i, n_ranges : int
        Number of the range, and number of ranges.
    word : uint64 or None
        Random number that changes the keys; None: keys depend on the rows only.

    Returns
    -------
    sort_keys : list of ndarray of uint64
        For each block the sort keys of its rows in the range.
    n_repeated : int
        Number of rows in the range that equal another row, target included.
    """
    found = sorted(executor.reduce(get_contents_in_range, i, n_ranges), key=itemgetter(0))
    ends = np.cumsum([0, *(len(block[1]) for block in found)])
    stratum, content = (np.concatenate([block[k] for block in found]) for k in (1, 2))
    # Blocks without rows do not have offsets.
    ties = [block[3] for block in found if len(block[2])]
    sort_key = compute_sort_keys(
        content, stratum, np.concatenate(ties, axis=-1) if ties else (), word
    )
    # Rows of equal features and different classes are not equal.
    n_repeated = count_equal_rows(mix(content) + stratum.astype(np.uint64))
    return [sort_key[a:b] for a, b in pairwise(ends)], n_repeated


def count_in_ranges(block: RowsToAssign, n: int) -> Int64:
    """Count the rows of a block whose hashes are in each of n ranges.

    Parameters
    ----------
    block : RowsToAssign
        Rows of a block, with their hashes and sort keys.
    n : int
        Number of ranges.

    Returns
    -------
    ndarray of int64, shape (n,)
        Number of rows in each range.
    """
    return np.bincount(_find_range(block, n), minlength=n).astype(np.int64)


def _find_range(block: RowsToAssign, n: int) -> NDArray[np.intp]:
    """Return for each row of a block in which of n ranges its hash is, 0 .. n - 1.

    Hashes are mixed again, because hashes of rows of integers end in the same bits.
    """
    return find_hash_ranges(mix(block.content), n)


def get_contents_in_range(block: RowsToAssign, i: int, n: int) -> list[tuple[Any, ...]]:
    """Return the rows of a block whose hashes are in range number i of n ranges of hashes.

    Parameters
    ----------
    block : RowsToAssign
        Rows of a block, with their hashes and sort keys.
    i, n : int
        Number of the range, 0 .. n - 1, and number of ranges, into which `_find_range` divides.

    Returns
    -------
    list of one tuple
        Number of the block; and for the k rows in the range: strata, (k,), hashes, (k,), and `ties`,
        offsets and weight, (n_outputs + 1, k) or (1, k).
    """
    rows = _find_range(block, n) == i
    return [(block.number, block.stratum[rows], block.content[rows], block.ties[:, rows])]


def set_sort_keys(
    block: RowsToAssign, i: int, n: int, sort_keys: UInt64
) -> tuple[RowsToAssign, int]:
    """Set the sort keys of the rows of a block whose hashes are in a range.

    Parameters
    ----------
    block : RowsToAssign
        Rows of a block, with their hashes and sort keys.
    i, n : int
        Number of the range, and number of ranges.
    sort_keys : ndarray of uint64
        Sort keys of the rows in the range, in the order of the block.

    Returns
    -------
    block : RowsToAssign
        The block with these keys.
    zero : int
        0, as there is no partial result.
    """
    every = np.array(block.sort_key)
    every[_find_range(block, n) == i] = sort_keys
    return replace(block, sort_key=every), 0


def get_rows_between(block: RowsToAssign, first: int, last: int) -> list[tuple[Any, ...]]:
    """Return the rows of a block whose sort keys are in a range.

    Parameters
    ----------
    block : RowsToAssign
        Rows of a block, with their hashes and sort keys.
    first, last : int
        Ends of the range, both included.

    Returns
    -------
    list of one tuple
        Number of the block; and for the k rows in the range: indices in the block, strata and sort
        keys, each (k,).
    """
    is_between = (block.sort_key >= np.uint64(first)) & (block.sort_key <= np.uint64(last))
    rows = np.flatnonzero(is_between)
    return [(block.number, rows, block.stratum[rows], block.sort_key[rows])]
