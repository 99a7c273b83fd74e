"""Choose the validation set, or assign rows to folds, for rows that are stored in several blocks.

The result is the same as for one table: the validation rows are at equal distances in an order of all
rows by class, and folds take rows of this order in turn. So both are stratified by class.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.interface.arrays import Float64, Int32, Int64, divide_by_largest
from certree.out_of_core.chunks import WeightScaling
from certree.out_of_core.exact_sums import exact_sum, round_sum
from certree.out_of_core.executors import Executor
from certree.out_of_core.group_assignment import assign_by_groups, number_all_groups
from certree.out_of_core.metadata_pass import join_ranges
from certree.out_of_core.row_assignment import (
    Mask,
    RowSorter,
    RowsToAssign,
    assign_rows,
    make_sorted_blocks,
)
from certree.out_of_core.time_cut import (
    assign_by_time,
    count_rows,
    has_order,
    has_times,
)
from certree.rows.folds import (
    assign_groups_to_folds,
    draw_validation_groups,
    expect_folds,
    hash_contents,
    mark_validation_places,
)
from certree.rows.time_order import GAP, LATEST
from certree.rows.training import (
    VALIDATION_FRACTION,
    count_held_out,
    expect_enough_rows_of_classes,
    raise_for_lost_classes,
)


@dataclass(frozen=True, slots=True, eq=False)
class SetSummary:
    """Number of rows, class counts, largest weight and target ranges of a set of rows.

    Adding two objects joins the sets.

    Parameters
    ----------
    n : int
        Number of rows.
    n_of_stratum : ndarray of int64, shape (n_strata,)
        Number of rows in each stratum: a class, or combination of classes of several targets, whose
        rows are assigned in proportion.
    n_of_class : list of ndarray of int64
        For each target the number of rows of each class.
    largest : float
        Largest weight; 0 without rows.
    ends : ndarray of float64, shape (n_targets, 2)
        Smallest and largest value of each target; inf and -inf without rows.
    """

    n: int
    n_of_stratum: Int64
    n_of_class: list[Int64]
    largest: float
    ends: Float64

    def __add__(self, other: SetSummary) -> SetSummary:
        """Return the summary of the rows of both sets. other: the summary of the other set."""
        # A block without rows has one column, even if there are several targets.
        none = np.zeros(0, dtype=np.int64)
        both = zip_longest(self.n_of_class, other.n_of_class, fillvalue=none)
        return SetSummary(
            self.n + other.n,
            _add_counts(self.n_of_stratum, other.n_of_stratum),
            [_add_counts(*counts) for counts in both],
            max(self.largest, other.largest),
            join_ranges(self.ends, other.ends),
        )


def _add_counts(first: Int64, second: Int64) -> Int64:
    """Add two arrays of counts, of which the shorter one is filled with zeros at its end.

    first, second: number of rows with each code 0, 1, ... Return an array of the length of the longer
    one.
    """
    counts = np.zeros(max(len(first), len(second)), dtype=np.int64)
    counts[: len(first)] += first
    counts[: len(second)] += second
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class SplitSummary:
    """Summaries of the training set and of the validation set. Adding two objects joins the sets.

    Parameters
    ----------
    train, validation : SetSummary
        Summary of each set.
    """

    train: SetSummary
    validation: SetSummary

    def __add__(self, other: SplitSummary) -> SplitSummary:
        """Return the summaries of the rows of both objects, set by set. other: the other summaries."""
        return SplitSummary(self.train + other.train, self.validation + other.validation)


@dataclass(frozen=True, slots=True, eq=False)
class ValidationSplit:
    """Masks of the validation rows and of the training rows of all blocks.

    Rows are stored in several blocks, tables on this machine or on a cluster.
    `split_validation_set` returns the object.

    Parameters
    ----------
    sorter : RowSorter
        Sorts the rows of a block in the order of the masks, and scales the weights of both sets.
    masks : list of ndarray of bool or uint8
        For each block: 1 (True) for validation rows, 0 for training rows, 2 for rows of the gap
        between both, in the order to which `sorter` sorts the rows of the block.
    summary : SplitSummary
        Summaries of the training set and of the validation set.
    n_repeated : int
        Number of rows, of both sets, that equal another row in features and target; 0 if whole
        groups of rows are assigned, or rows are assigned by time.
    """

    sorter: RowSorter
    masks: list[Mask] | list[NDArray[np.uint8]]
    summary: SplitSummary
    n_repeated: int


def split_validation_set(
    executor: Executor,
    encoder: Any,
    weight_scaling: WeightScaling | None,
    size: float,
    seed: int,
    gap: int | timedelta = 0,
) -> ValidationSplit:
    """Choose the validation set for early stopping, and summarize training and validation set.

    If rows have times, the latest rows or groups are the validation set. If they have groups, whole
    groups are drawn; otherwise rows are drawn, stratified by class.

    Parameters
    ----------
    executor : Executor
        Reads the rows. Its blocks are replaced by blocks of type `RowsToAssign`.
    encoder : estimator
        Copy of the model, which converts features and targets of rows to numbers.
    weight_scaling : WeightScaling or None
        How weights are scaled; None: rows have no weights.
    size : int or float
        Number (int) or fraction (float) of the validation rows, or of the groups if rows have groups.
    seed : int
        Seed of the random choice, which depends on the contents of rows, or names of groups, not on
        the order of rows. With times the choice does not depend on it.
    gap : int or timedelta
        What to leave out between the training rows and the validation rows if rows have times: a
        number of rows, or a duration.

    Returns
    -------
    ValidationSplit
        Which rows are validation rows, and a summary of both sets. Its sorter scales the weights of
        each set to a mean of 1.

    Raises
    ------
    ValueError
        If a set would be empty, or have too few rows for the classes.
    """
    sorter = RowSorter(np.random.RandomState(seed), feature_order=encoder._draw_order)
    sizes, names = make_sorted_blocks(executor, encoder, sorter)
    masks: list[Mask] | list[NDArray[np.uint8]]
    has_classes, is_grouped = hasattr(encoder, "classes_"), any(one is not None for one in names)
    if has_times(executor):
        masks, n_repeated = _choose_latest_rows(executor, names, size, gap), 0
    elif is_grouped:
        n_groups, numbers = number_all_groups(names)
        n_val = count_held_out(size, n_groups, "groups")
        is_validation = draw_validation_groups(n_groups, n_val, np.random.RandomState(seed))
        masks, n_repeated = assign_by_groups(executor, numbers, is_validation), 0
    else:
        masks, n_repeated = _choose_validation_rows(executor, sizes, size, has_classes)
    summary: SplitSummary = executor.replace_blocks(summarize_split, per_block=masks)
    if has_classes and (n_lost := _count_lost_classes(summary)):
        raise_for_lost_classes(size, n_lost)
    if weight_scaling is not None:
        largest = summary.train.largest, summary.validation.largest
        totals = executor.replace_blocks(sum_weights, largest, per_block=masks)
        n_of_sets = summary.train.n, summary.validation.n
        train_weighing, held_weighing = (
            WeightScaling(most, n_rows / round_sum(int(total)))
            for most, n_rows, total in zip(largest, n_of_sets, totals, strict=True)
        )
        sorter = replace(sorter, weight_scalings=(train_weighing, held_weighing))
    return ValidationSplit(sorter, masks, summary, n_repeated)


def _choose_latest_rows(
    executor: Executor,
    names: Sequence[NDArray[Any] | None],
    size: float,
    gap: int | timedelta,
) -> list[NDArray[np.uint8]]:
    """Choose the latest rows, or groups, as the validation set.

    executor: holds blocks of type `RowsToAssign` with times; names: for each block the names of its
    groups, or None; size: number (int) or fraction (float) of validation rows, or of groups if
    there are some; gap: number of rows, or duration, to leave out before them. Return for each
    block the set of each row, uint8: 1 for validation rows, 0 for training rows, 2 for rows of the
    gap.
    """
    is_grouped = any(groups is not None for groups in names)
    n = number_all_groups(names)[0] if is_grouped else count_rows(executor)
    n_val = count_held_out(size, n, "groups" if is_grouped else "rows")
    return [
        np.where(sets == GAP, 2, sets == LATEST).astype(np.uint8)
        for sets in assign_by_time(executor, names, n_val, gap)
    ]


def _choose_validation_rows(
    executor: Executor, sizes: list[int], size: float, has_classes: bool
) -> tuple[list[Mask], int]:
    """Choose the rows of the validation set at random, if rows have neither groups nor times.

    Parameters
    ----------
    executor : Executor
        Holds blocks of type `RowsToAssign`.
    sizes : list of int
        Number of rows of each block.
    size : int or float
        Number of validation rows, or their fraction.
    has_classes : bool
        Whether targets are classes.

    Returns
    -------
    masks : list of ndarray of bool
        For each block: True for validation rows, in the order of the rows of its `RowsToAssign`.
    n_repeated : int
        Number of rows, of both sets, that equal another row.
    """
    n = sum(sizes)
    n_val = count_held_out(size, n, "rows")
    initial = [np.zeros(n_rows, dtype=np.bool_) for n_rows in sizes]
    every: SetSummary = executor.replace_blocks(summarize_split, per_block=initial).train
    if has_classes:
        for n_of_class in every.n_of_class:
            expect_enough_rows_of_classes(n_of_class, size, n, n_val)
    return assign_rows(
        executor,
        initial,
        every.n_of_stratum,
        lambda position: mark_validation_places(position, n_val, n),
    )


def _count_lost_classes(summary: SplitSummary) -> int:
    """Count the classes that occur in validation rows but in no training row, over all targets.

    summary: number of rows of each class in both sets.
    """
    both = zip(summary.train.n_of_class, summary.validation.n_of_class, strict=True)
    return sum(int(((train == 0) & (validation > 0)).sum()) for train, validation in both)


@dataclass(frozen=True, slots=True, eq=False)
class FoldAssignment:
    """The cross-validation fold of each row of all blocks; `assign_to_folds` returns it.

    Parameters
    ----------
    sorter : RowSorter
        Sorts the rows of a block in the order of `folds`, which does not depend on the file.
    folds : list of ndarray of uint8
        For each block: number of the fold whose validation set has each row, in the order to which
        `sorter` sorts the rows of the block.
    n_repeated : int or None
        Number of rows that equal another row, target included; 0 if rows are assigned by groups;
        None if it is not known.
    is_timed : bool
        Whether rows are assigned by time. `folds` then has the codes of the sets `LATEST` (0:
        validation set), `EARLIER` (1: training set) and `GAP` (2: left out between them). In the
        result of `assign_to_periods` each number is 3 times such a code, plus the number of the
        row's fold among three random ones, if there are any.
    """

    sorter: RowSorter
    folds: list[NDArray[np.uint8]]
    n_repeated: int | None
    is_timed: bool = False


def assign_to_folds(
    executor: Executor,
    encoder: Any,
    n_folds: int,
    random_state: np.random.RandomState,
    gap: int | timedelta | None = None,
) -> FoldAssignment:
    """Assign rows, or whole groups of rows, to the folds of a cross-validation at random.

    Rows are stratified by class if targets are classes. All rows of a group are in one fold. The
    fold of a row depends on `random_state` and its content, or the names of the groups, not on the
    order of the rows, so that it is the same as in a fit to one table. If rows have times, and
    these are not all equal, the latest fifth is the only validation set.

    Parameters
    ----------
    executor : Executor
        Reads the rows. Its blocks are replaced by blocks of type `RowsToAssign`.
    encoder : estimator
        Copy of the model, which converts features and targets of rows to numbers.
    n_folds : int
        Number of folds, 2 .. 255.
    random_state : RandomState
        Source of randomness. Its state afterwards is the same as after a fit to one table.
    gap : int, timedelta or None
        What to leave out between the training set and the latest fifth: a number of rows or a duration.
        None: rows have no times.

    Returns
    -------
    FoldAssignment
        The fold of each row.

    Raises
    ------
    ValueError
        If there are fewer rows or groups than folds.
    """
    # A copy, because each later pass hashes the rows with the same state.
    sorter = RowSorter(deepcopy(random_state))
    sizes, names = make_sorted_blocks(executor, encoder, sorter)
    if gap is not None and has_order(executor):
        sets = assign_by_time(executor, names, VALIDATION_FRACTION, gap)
        return FoldAssignment(sorter, sets, None, is_timed=True)
    if any(groups is not None for groups in names):
        n_groups, numbers = number_all_groups(names)
        fold = assign_groups_to_folds(n_groups, n_folds, random_state).astype(np.uint8)
        return FoldAssignment(sorter, assign_by_groups(executor, numbers, fold), 0)
    # Hashing a row of zeros advances the generator as hashing a table does.
    y: Any = np.zeros(1, np.int32 if is_classifier(encoder) else np.float64)
    hash_contents(np.zeros((1, encoder._n_encoded)), y, random_state)
    expect_folds(n_folds, sum(sizes))
    initial = [np.zeros(n_rows, dtype=np.uint8) for n_rows in sizes]
    no_masks = [folds.astype(np.bool_) for folds in initial]
    every: SetSummary = executor.replace_blocks(summarize_split, per_block=no_masks).train
    folds, n_repeated = assign_rows(
        executor,
        initial,
        every.n_of_stratum,
        lambda position: (position % n_folds).astype(np.uint8),
    )
    return FoldAssignment(sorter, folds, n_repeated)


def summarize_split(block: RowsToAssign, mask: Mask) -> tuple[RowsToAssign, SplitSummary]:
    """Summarize the training rows and the validation rows of a block.

    Parameters
    ----------
    block : RowsToAssign
        A block of n rows.
    mask : ndarray of bool or uint8, shape (n,)
        Set of each row, in the order of the block: 0 for training rows, 1 for validation rows, 2
        for rows in neither set.

    Returns
    -------
    block : RowsToAssign
        The block, unchanged.
    summary : SplitSummary
        Numbers of rows and classes, largest weight and target ranges of both sets.
    """
    return block, SplitSummary(_summarize(block, mask == 0), _summarize(block, mask == 1))


def _summarize(block: RowsToAssign, rows: Mask) -> SetSummary:
    """Summarize some of the n rows of a block.

    block: the rows; rows: mask of the rows to summarize, (n,). Return their number, the numbers of
    rows of each stratum and class, their largest weight, and the range of each target.
    """
    target = block.target[rows] if block.target.ndim > 1 else block.target[rows, None]
    least, most = target.min(axis=0, initial=np.inf), target.max(axis=0, initial=-np.inf)
    ends = np.column_stack([least, most])
    largest = float(block.weight[rows].max(initial=0.0))
    n_of_class = [_count_codes(column, rows) for column in np.atleast_2d(block.classes.T)]
    return SetSummary(int(rows.sum()), _count_codes(block.stratum, rows), n_of_class, largest, ends)


def _count_codes(codes: Int32, rows: Mask) -> Int64:
    """Count the rows with each code among those that a mask selects.

    codes: integer codes of n rows, from 0 on; rows: the mask, (n,). Return the counts by code, an
    array of the length 1 + largest code of all n rows.
    """
    n_codes = int(codes.max(initial=-1)) + 1
    return np.bincount(codes[rows], minlength=n_codes).astype(np.int64)


def sum_weights(
    block: RowsToAssign, largest: tuple[float, float], mask: Mask
) -> tuple[RowsToAssign, NDArray[Any]]:
    """Sum the weights of the training rows, and of the validation rows, of a block exactly.

    Parameters
    ----------
    block : RowsToAssign
        A block of n rows.
    largest : tuple of two float
        Largest weight of all training rows, and of all validation rows.
    mask : ndarray of bool or uint8, shape (n,)
        Set of each row, in the order of the block: 0 for training rows, 1 for validation rows, 2
        for rows in neither set.

    Returns
    -------
    block : RowsToAssign
        The block, unchanged.
    sums : ndarray of int (object), shape (2,)
        Sums of the weights divided by `largest`, as integer multiples of 2^-1126: first of the
        training rows, then of the validation rows.
    """
    sums = [
        exact_sum(divide_by_largest(block.weight[rows], most))
        for rows, most in zip((mask == 0, mask == 1), largest, strict=True)
    ]
    return block, np.array(sums, dtype=object)
