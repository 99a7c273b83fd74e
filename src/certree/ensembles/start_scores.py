"""Sums and quantiles of the training targets, from which losses compute start scores.

Rows are in blocks; those of one table in memory are one block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certree._core import fixed_unit
from certree.interface.arrays import Float64
from certree.out_of_core.binned_blocks import sum_targets
from certree.out_of_core.exact_quantiles import find_quantile
from certree.out_of_core.exact_sums import exact_sum, round_sum
from certree.out_of_core.executors import Executor, LocalBlocks
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
        number of the target. If rows have no weights, total weights are plain numbers of rows.
    largest_weight : float or None
        Largest weight of a row; None: rows have no weights.
    """

    n: int
    totals: Counter[Any]
    largest_weight: float | None

    def __add__(self, other: Self) -> Self:
        """Add the sums over two disjoint sets of rows. other: the sums over the second set."""
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

        total: number of rows if they have no weights, else the sum as an integer multiple of
        2^-1126, from `exact_sum`.
        """
        return float(total) if self.largest_weight is None else round_sum(total)


def sum_block(block: RowBlock, has_classes: bool) -> TargetSums:
    """Sum the weights and the weighted targets of a block's training rows; return `TargetSums`.

    block: the block, of which other rows are skipped; has_classes: whether targets are class codes;
    then the weights of each class are summed instead of the targets.
    """
    largest = None if block.weight is None else float(block.weight.max(initial=0.0))
    return TargetSums(block.n, sum_targets(block, has_classes), largest)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTargets:
    """Targets of the training rows in blocks, with weights and offsets.

    The methods compute means, quantiles and class weights, from which start scores (the scores of
    all rows before the first round) are computed. The results have the same bits whatever the order
    and the blocks of the rows.

    Parameters
    ----------
    executor : Executor or LocalBlocks
        Has blocks of the training rows.
    sums : TargetSums
        Sums over all of these rows.
    n_targets : int
        Number of targets.
    has_offset : bool
        Whether the methods use the offsets of rows; False: they are taken as 0.
    target : int
        Number of the target that the methods read, from 0.
    outputs : slice
        The outputs whose offsets the methods read; by default all.
    """

    executor: Executor | LocalBlocks
    sums: TargetSums
    n_targets: int = 1
    has_offset: bool = False
    target: int = 0
    outputs: slice = field(default_factory=lambda: slice(0, None))

    @classmethod
    def from_table(
        cls,
        y: NDArray[Any],
        weight: Float64 | None,
        offset: Float64 | None,
        *,
        has_classes: bool,
    ) -> Self:
        """Make the targets of one table, which is one block.

        y: numbers or class codes, (n,) or (n_targets, n); weight: (n,), or None for equal weights;
        offset: (n_outputs, n), or None for no offsets; has_classes: whether targets are class codes.
        """
        y = np.ascontiguousarray(y, dtype=np.float64)
        no_codes, no_keys = np.zeros((0, y.shape[-1]), np.uint8), np.zeros(0, np.uint64)
        block = RowBlock(0, no_codes, y, weight, no_keys, offset=offset)
        n_targets = len(np.atleast_2d(y))
        sums = sum_block(block, has_classes)
        return cls(LocalBlocks([block], 1), sums, n_targets, offset is not None)

    def select(self, component: int, n_outputs: int) -> Self:
        """Return a copy whose methods read the target and the offsets of one of several losses.

        component: number of the loss. With several targets it is also the number of its target; one
        target is shared by all losses. n_outputs: number of outputs of the loss. The first of them
        is taken to be number `component`, so the losses before it must have one output each if
        there are offsets.
        """
        target = component if self.n_targets > 1 else 0
        return replace(self, target=target, outputs=slice(component, component + n_outputs))

    @property
    def total_weight(self) -> float:
        """Total weight of all rows (their number without weights); for numeric targets only."""
        return self.sums.to_float(self.sums.totals["weight"])

    def get_class_weights(self, n_classes: int) -> tuple[Float64, float]:
        """Return the total weight of the rows of each class, (n_classes,), and of all rows.

        The classes are those of the target number `target`, a field; n_classes: their number.
        """
        counts = [self.sums.totals[self.target, k] for k in range(n_classes)]
        weights = np.array([self.sums.to_float(count) for count in counts])
        return weights, self.sums.to_float(sum(counts))

    def compute_mean(self) -> float:
        """Compute the weighted mean of the numeric target number `target`, a field of this object."""
        return round_sum(self.sums.totals[self.target]) / self.total_weight

    def sum_terms(self, f: Callable[..., Float64], *arguments: Any) -> NDArray[np.object_]:
        """Sum m functions of target and offset, times the weights, over all rows exactly.

        f: ``f(*arguments, target, offset)`` is called for the n rows of each block, by workers of a
        cluster. It gets targets (n,) and offsets (n_outputs, n), or zeros (1, n) if there are none,
        and returns the m functions of each row, (m, n). Return m integers in units of 2^-1126 (see
        `exact_sum`).
        """
        sums: NDArray[np.object_] = self.executor.reduce(
            _sum_terms_of_block, f, arguments, self.target, self.outputs, self.has_offset
        )
        return sums

    def compute_means(self, f: Callable[..., Float64], *arguments: Any) -> Float64:
        """Compute the weighted means over all rows of m functions of numeric target and offset, (m,).

        f: ``f(*arguments, target, offset)`` gets the targets (n,) and offsets (n_outputs, n), or
        zeros (1, n), of a block of rows, and returns the functions of each row, (m, n).
        """
        total = self.total_weight
        return np.array([round_sum(one) / total for one in self.sum_terms(f, *arguments)])

    def find_quantile(self, quantile: float) -> Float64:
        """Return the smallest target that at least a fraction of the rows does not exceed, (1,).

        With offsets it is a target minus its offset. Weights are rounded to integer multiples of a
        common unit. quantile: the fraction, between 0 and 1.
        """
        unit = None
        if self.sums.largest_weight is not None:
            unit = fixed_unit(self.sums.largest_weight, self.sums.n)
        output = self.outputs.start if self.has_offset else None
        return find_quantile(self.executor, quantile, unit, take_target, self.target, output)


def sum_exactly(terms: Float64, weight: Float64 | None) -> NDArray[np.object_]:
    """Sum up numbers of rows without rounding, (m,) integers in units of 2**-1126.

    terms: m numbers of each of n rows, (m, n); each of the m is summed over the rows. weight: factor
    of each row, (n,), or None: 1. Results of several blocks of rows can be added; `round_sum`
    converts the sum to float64.
    """
    every = terms if weight is None else terms * weight
    return np.array([exact_sum(np.ascontiguousarray(term)) for term in every], dtype=object)


def _sum_terms_of_block(
    block: RowBlock,
    f: Callable[..., Float64],
    arguments: tuple[Any, ...],
    target: int,
    outputs: slice,
    has_offset: bool,
) -> NDArray[np.object_] | None:
    """Sum ``f(*arguments, target, offset)`` times the weights over the training rows of a block.

    f gets one target of the rows, (n,), and their offsets, (n_outputs, n), and returns an array (m,
    n). Return m integers in units of 2^-1126 (see `sum_exactly`); None if the block has no rows.
    target: number of the target; outputs: the outputs whose offsets are passed; has_offset: False:
    zeros (1, n) are passed in place of offsets.
    """
    if not block.n:
        return None
    offset = np.zeros((1, block.n))
    if has_offset and block.offset is not None:
        offset = np.ascontiguousarray(block.offset[outputs])
    return sum_exactly(f(*arguments, take_target(block, target), offset), block.weight)


def take_target(block: RowBlock, number: int, output: int | None = None) -> Float64:
    """Return one of the targets of a block's training rows, (n,), perhaps minus an offset.

    number: number of the target, from 0; output: number of the output whose offsets are subtracted
    if the rows have offsets; None: none are subtracted.
    """
    target = np.asarray(np.atleast_2d(block.y)[number])
    if output is None or block.offset is None:
        return target
    return target - np.asarray(block.offset[output])
