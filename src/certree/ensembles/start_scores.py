"""Start scores of boosting for rows in several blocks: those of the same rows in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import fixed_unit
from certree.ensembles.custom_loss import CustomLossAdapter, select_checked_rows
from certree.ensembles.losses import (
    HuberLoss,
    LogLoss,
    Loss,
    MeanLoss,
    QuantileLoss,
    compute_quantile_rank,
    sum_exactly,
)
from certree.ensembles.staged import make_constant_scores
from certree.interface.arrays import Float64, UInt64
from certree.out_of_core.binned_blocks import sum_targets
from certree.out_of_core.exact_quantiles import PrefixCounts, count_prefixes, find_order_statistics
from certree.out_of_core.exact_sums import round_sum
from certree.out_of_core.executors import Executor
from certree.out_of_core.row_block import RowBlock


@dataclass(frozen=True, slots=True, eq=False)
class TargetSums:
    """Sums of weights and targets over training rows, from which start scores are computed.

    Adding two objects joins the rows.

    Parameters
    ----------
    n : int
        Number of rows.
    totals : Counter
        Exact sums of weights and targets, as integer multiples of 2^-1126. For class targets, the
        total weight of each class under the key (number of the target, class code). For numeric
        targets, the total weight under "weight", and the sum of weight times target under the
        number of the target.
    largest_weight : float or None
        Largest weight of a row; None: rows have no weights.
    """

    n: int
    totals: Counter[Any]
    largest_weight: float | None

    def __add__(self, other: Self) -> Self:
        """Return the sums over the rows of both objects. other: sums over other rows."""
        totals = Counter(self.totals)
        totals.update(other.totals)  # `+` would drop negative sums
        largest = [w for w in (self.largest_weight, other.largest_weight) if w is not None]
        return replace(
            self,
            n=self.n + other.n,
            totals=totals,
            largest_weight=max(largest) if largest else None,
        )

    def to_float(self, total: int) -> float:
        """Convert an exact sum of weights to float64.

        total: the number of rows if they have no weights, else the integer that `exact_sum`
        returns.
        """
        return float(total) if self.largest_weight is None else round_sum(total)


def sum_block(block: RowBlock, has_classes: bool) -> TargetSums:
    """Sum the weights and the weighted targets of a block's training rows; return `TargetSums`.

    block: the block, of which other rows are skipped; has_classes: whether targets are class codes;
    then the weights of each class are summed instead of the targets.
    """
    largest = None if block.weight is None else float(block.weight.max(initial=0.0))
    return TargetSums(block.n, sum_targets(block, has_classes), largest)


def compute_start_scores(
    executor: Executor, loss: Loss, sums: TargetSums, n_targets: int, *, has_offset: bool
) -> Float64:
    """Compute the constant scores with the smallest mean loss, (n_outputs,).

    Parameters
    ----------
    executor : Executor
        Holds blocks of the training rows.
    loss : Loss
        The loss that rounds minimize.
    sums : TargetSums
        Sums over all of these rows.
    n_targets : int
        Number of targets.
    has_offset : bool
        Whether the offsets of rows are added to the constants.

    Returns
    -------
    ndarray of float64, shape (n_outputs,)
        What `Loss.compute_start` returns for the same rows in one table.
    """
    targets = range(n_targets) if n_targets > 1 else [0] * len(loss.components)
    pairs = enumerate(zip(loss.components, targets, strict=True))
    return np.concatenate(
        [
            _compute_start(executor, component, sums, target, k if has_offset else None)
            for k, (component, target) in pairs
        ]
    )


def _compute_start(
    executor: Executor, loss: Loss, sums: TargetSums, target: int, output: int | None
) -> Float64:
    """Compute the start scores of the loss of one target.

    executor: holds blocks of the training rows; loss: the loss of this target; sums: sums over all
    rows; target: number of the target; output: number of the output whose offsets (known scores)
    are added; None: none are.
    """
    if isinstance(loss, QuantileLoss | HuberLoss):
        return _find_quantile(executor, loss, sums, target, output)
    if isinstance(loss, LogLoss):
        counts = [sums.totals[target, k] for k in range(max(2, loss.n_outputs))]
        weights = np.array([sums.to_float(count) for count in counts])
        if output is None:
            return loss.compute_start_from_counts(weights)
        return loss.compute_start_with_offsets(
            weights, sums.to_float(sum(counts)), partial(_sum_offset_terms, executor)
        )
    weight = sums.to_float(sums.totals["weight"])
    if isinstance(loss, CustomLossAdapter):
        return loss.find_start(partial(_compute_means, executor, weight))
    assert isinstance(loss, MeanLoss)
    totals = [sums.totals[target]]
    if output is not None:
        totals = executor.reduce(_sum_start_terms, loss, target, output)
    return loss.compute_start_from_means(np.array([round_sum(total) / weight for total in totals]))


def _sum_offset_terms(
    executor: Executor, f: Callable[..., Float64], *arguments: Any
) -> NDArray[np.object_]:
    """Sum a function of the offsets over all rows exactly; see `SumRows`.

    executor: holds the blocks; f: ``f(*arguments, offset)`` returns an array whose last axis is that
    of the rows. Return the sums as integer multiples of 2^-1126 (see `exact_sum`).
    """
    sums: NDArray[np.object_] = executor.reduce(_sum_offset_terms_of_block, f, arguments)
    return sums


def _sum_offset_terms_of_block(
    block: RowBlock, f: Callable[..., Float64], arguments: tuple[Any, ...]
) -> NDArray[np.object_] | None:
    """Sum ``f(*arguments, offset)`` exactly over the rows of a block; None: it has no rows.

    f returns (m, n) for offsets (n_outputs, n). Return (m,) weighted sums, as integer multiples of
    2^-1126.
    """
    if block.offset is None:
        return None
    return sum_exactly(f(*arguments, np.asarray(block.offset)), block.weight)


def _sum_start_terms(
    block: RowBlock, loss: MeanLoss, target: int, output: int
) -> NDArray[np.object_] | None:
    """Sum the terms of a start score exactly over the rows of a block; None: it has no rows.

    loss: the loss, whose `list_start_terms` returns the m terms of each row; target, output: number
    of the target, and of the output whose offsets are added. Return (m,) weighted sums, as integer
    multiples of 2^-1126.
    """
    if block.offset is None:
        return None
    offset = np.asarray(block.offset[output : output + 1])
    return sum_exactly(loss.list_start_terms(take_target(block, target), offset), block.weight)


def _compute_means(
    executor: Executor, weight: float, f: Callable[..., Float64], *arguments: Any
) -> Float64:
    """Compute the weighted means of functions of target and offset over all rows; see `MeanRows`.

    executor: holds the blocks; weight: sum of the weights of all rows; f: ``f(*arguments, target,
    offset)`` returns an array whose last axis is that of the rows. Return one mean for each entry
    of its first axis.
    """
    sums = executor.reduce(_sum_terms, f, arguments)
    return np.array([round_sum(total) / weight for total in sums])


def _sum_terms(
    block: RowBlock, f: Callable[..., Float64], arguments: tuple[Any, ...]
) -> NDArray[np.object_] | None:
    """Sum ``f(*arguments, target, offset)`` exactly over the rows of a block; None: no rows.

    f returns (m, n) for targets (n,) and offsets (1, n). Return (m,) weighted sums, as integer
    multiples of 2^-1126.
    """
    if not block.n:
        return None
    return sum_exactly(f(*arguments, take_target(block, 0), _get_offset(block)), block.weight)


def _get_offset(block: RowBlock) -> Float64:
    """Return the offsets of a block's rows for a loss of one output, (1, n), or zeros."""
    return np.zeros((1, block.n)) if block.offset is None else np.asarray(block.offset)


def check_custom_gradients(executor: Executor, loss: Loss, start: Float64) -> None:
    """Raise ValueError if the gradients of a `CustomLoss` are not the derivatives of its loss.

    executor: holds blocks of the training rows, with random keys or hashes; loss: any loss, of
    which only a `CustomLoss` is checked; start: its start scores, (1,). See
    `CustomLossAdapter.check_gradients`.
    """
    if loss.is_custom:
        rows = zip(*executor.reduce(_list_checked_rows, start), strict=True)
        y, scores, keys = (np.concatenate(columns, axis=-1) for columns in rows)
        loss.check_gradients(y, scores, keys)


def _list_checked_rows(block: RowBlock, start: Float64) -> list[tuple[Float64, Float64, UInt64]]:
    """Return targets (m,), scores (1, m) and keys (m,) of the rows of a block that may be checked.

    The gradients of a `CustomLoss` are checked in the 256 rows with the smallest keys. start: start
    scores, (1,). The list has one tuple, or none if the block has no rows.
    """
    if not block.n:
        return []
    y, keys = take_target(block, 0), np.asarray(block.keys)
    scores = make_constant_scores(start, block.n, block.offset)
    rows = select_checked_rows(keys, y, scores)
    return [(y[rows], scores[:, rows], keys[rows])]


def _find_quantile(
    executor: Executor,
    loss: QuantileLoss | HuberLoss,
    sums: TargetSums,
    target: int,
    output: int | None,
) -> Float64:
    """Return the smallest number that at least a fraction of the rows does not exceed, (1,).

    It is the start score. The fraction is the quantile of the loss, or 0.5 for Huber's. executor:
    holds blocks of the training rows; sums: sums over all rows; target: number of the target;
    output: number of the output whose offsets are subtracted; None: none are.
    """
    unit = None
    if sums.largest_weight is not None:
        unit = fixed_unit(sums.largest_weight, sums.n)
    quantile = 0.5 if isinstance(loss, HuberLoss) else loss.quantile
    first: PrefixCounts = executor.reduce(count_prefixes, take_target, (target, output), unit)
    rank = compute_quantile_rank(quantile, int(first.counts.sum()))
    return find_order_statistics(
        executor, [rank], take_target, target, output, first_counts=first, unit=unit
    )


def take_target(block: RowBlock, number: int, output: int | None = None) -> Float64:
    """Return one of the targets of a block's training rows, (n,).

    number: number of the target; output: number of the output whose offsets are subtracted; None:
    none are.
    """
    target = np.asarray(np.atleast_2d(block.y)[number])
    if output is None or block.offset is None:
        return target
    return target - np.asarray(block.offset[output])
