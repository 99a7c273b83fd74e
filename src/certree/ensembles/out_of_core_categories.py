"""Target statistics of categories for rows that are stored in several blocks: those of one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import floor, isfinite
from typing import Any

import numpy as np

from certree._core import fixed_unit
from certree.ensembles.losses import HuberLoss, Loss
from certree.ensembles.rounds import make_newton_target
from certree.ensembles.staged import make_constant_scores
from certree.grow.bins import Bins
from certree.interface.arrays import Float64
from certree.out_of_core.exact_quantiles import find_order_statistics
from certree.out_of_core.exact_sums import convert_to_integers
from certree.out_of_core.executors import Executor
from certree.out_of_core.row_block import RowBlock
from certree.stats.category_statistics import (
    CategoryRows,
    CategoryStatistics,
    CategoryTarget,
    CategoryTotals,
    find_high_cardinality_features,
    list_categories,
)


def add_category_statistics(
    executor: Executor, loss: Loss, bins: Bins, start: Float64 | None, *, keeps_categories: bool
) -> CategoryStatistics | None:
    """Add statistics of categories, such as mean targets, to all blocks, as further binned features.

    Parameters
    ----------
    executor : Executor
        Holds the blocks, whose rows have the indices of their categories, and random keys, which
        assign rows to folds: the mean target in a row leaves out the rows of its fold. Its blocks
        are replaced by blocks with the further features.
    loss : Loss
        The loss that rounds minimize.
    bins : Bins
        Bin edges and categories of the features; the bin codes are in the blocks.
    start : ndarray of shape (n_outputs,), or None
        Constant start scores, to which offsets are added; None: rows have no offsets. With one
        output, categories are then compared by Newton steps at the start scores; see
        `BoostingRun.make_category_target`. Otherwise they are compared by targets.
    keeps_categories : bool
        Whether the new blocks keep the indices of categories.

    Returns
    -------
    CategoryStatistics or None
        The statistics of the features with more than 30 categories whose mean targets differ by
        more than chance; None: there are none.
    """
    many = find_high_cardinality_features(bins)
    if not many:
        return None
    totals = _sum_by_category(executor, loss, bins, start)
    positions = [q for q in range(len(many)) if totals.has_signal(q)]
    statistics = _make_statistics(bins, totals, positions) if positions else None
    executor.replace_blocks(_with_statistics, statistics, positions, keeps_categories)
    return statistics


def compute_category_statistics(
    executor: Executor,
    loss: Loss,
    bins: Bins,
    start: Float64 | None,
    features: tuple[int, ...],
) -> CategoryStatistics:
    """Compute the statistics of the categories of given features from the rows of all blocks.

    Statistics are mean targets of categories. executor: holds the blocks, which do not change;
    loss: the loss that rounds minimize; bins: bin edges and categories of the features; start:
    start scores, (n_outputs,), if rows have offsets, else None; features: indices of features with
    more than 30 categories.
    """
    many = find_high_cardinality_features(bins)
    totals = _sum_by_category(executor, loss, bins, start)
    return _make_statistics(bins, totals, [many.index(j) for j in features])


def _make_statistics(
    bins: Bins, totals: CategoryTotals, positions: list[int]
) -> CategoryStatistics:
    """Return the statistics (mean targets of categories) of some features with many categories.

    bins: bins and categories of all features; totals: sums of targets and weights by category, for
    all features with more than 30 categories; positions: positions of the wanted ones among these.
    """
    many = find_high_cardinality_features(bins)
    categories = tuple(list_categories(bins, j) for j in many)
    return CategoryStatistics.from_totals(many, categories, totals, positions)


def _sum_by_category(
    executor: Executor, loss: Loss, bins: Bins, start: Float64 | None
) -> CategoryTotals:
    """Sum targets and weights by category, for all features with more than 30 categories.

    executor: holds the blocks, with indices of categories; loss: the loss that rounds minimize;
    bins: bin edges and categories of the features; start: start scores, (n_outputs,), if rows have
    offsets, else None. With a start and one output, the targets are Newton steps at the start
    scores (minus gradient over Hessian).
    """
    scale = None
    if loss.n_outputs > 1:
        start = None
    if start is not None and loss.has_scale:
        scale = _compute_loss_scale(executor, loss, start)
    reduce = partial(executor.reduce, _call_on_categories, loss, start, scale)
    many = find_high_cardinality_features(bins)
    return CategoryTotals.compute(reduce, tuple(len(list_categories(bins, j)) for j in many))


def _call_on_categories(
    block: RowBlock,
    loss: Loss,
    start: Float64 | None,
    scale: float | None,
    f: Callable[..., Any],
    *arguments: Any,
) -> Any:
    """Return ``f(rows, *arguments)``, where rows has the categories and targets of a block's rows.

    rows: a `CategoryRows` (targets, weights, indices of categories and keys), made from `block`;
    loss: the loss that rounds minimize; start, scale: start scores, (n_outputs,), and scale of the
    loss (such as Huber's limit), if targets are Newton steps (minus gradient over Hessian at the
    start scores), else None.
    """
    target = _make_target(block, loss, start, scale)
    return f(CategoryRows(target, np.asarray(block.categories), np.asarray(block.keys)), *arguments)


def _make_target(
    block: RowBlock, loss: Loss, start: Float64 | None, scale: float | None
) -> CategoryTarget:
    """Return the targets and weights of a block's rows, from which category statistics are computed.

    loss: the loss that rounds minimize; start, scale: start scores, (n_outputs,), and scale of the
    loss (such as Huber's limit), if targets are Newton steps (minus gradient over Hessian at the
    start scores, for rows with offsets), else None: targets are those of the loss, such as class
    codes. See `BoostingRun.make_category_target`.
    """
    y = loss.encode_targets(np.asarray(block.y))
    if start is None or block.offset is None:
        return CategoryTarget(loss.get_output_targets(y), loss.n_outputs, block.weight)
    scores = make_constant_scores(start, block.n, np.asarray(block.offset))
    return make_newton_target(loss, y, scores, block.weight, scale)


def _compute_loss_scale(executor: Executor, loss: Loss, start: Float64) -> float:
    """Compute the scale of a loss with `Loss.has_scale` over the rows of all blocks.

    The scale is a number on which the gradients of the loss depend, such as Huber's limit. It is
    the mean of `Loss.compute_scale_terms` (infinity if a term is not finite); for Huber's loss the
    quantile `loss.quantile`, interpolated linearly. start: constant start scores, (1,), to which
    offsets are added. executor: holds the blocks.
    """
    blocks = executor.reduce(_find_largest_term, loss, start)
    n, largest = sum(n_rows for n_rows, _ in blocks), max(term for _, term in blocks)
    if isinstance(loss, HuberLoss):
        place = loss.quantile * (n - 1)
        rank = int(place)
        ranks = [rank, min(rank + 1, n - 1)]
        below, above = find_order_statistics(
            executor, ranks, _list_scale_terms, loss, start
        ).tolist()
        return float(below + (above - below) * (place - floor(place)))
    if not isfinite(largest):
        return float("inf")
    unit = int(fixed_unit(largest, n))
    total = executor.reduce(_sum_scale_terms, loss, start, unit)
    return float(np.ldexp(float(total), unit)) / n


def _list_scale_terms(block: RowBlock, loss: Loss, start: Float64) -> Float64:
    """Compute a number for each row of a block, (n,), from which the scale of the loss follows.

    The scale is the mean of these numbers over all rows, or a quantile of them; see
    `Loss.compute_scale_terms`. start: constant scores, (n_outputs,), at which they are computed,
    with the offsets of the rows added.
    """
    scores = make_constant_scores(start, block.n, block.offset)
    return loss.compute_scale_terms(np.asarray(block.y), scores)


def _find_largest_term(block: RowBlock, loss: Loss, start: Float64) -> list[tuple[int, float]]:
    """Return the number of rows of a block and its largest scale term, as a list of one pair.

    The scale of a loss, such as Huber's limit, is a mean or quantile of these terms. loss: the
    loss; start: start scores, (1,), at which terms are computed. `Executor.reduce` concatenates the
    lists of all blocks.
    """
    terms = _list_scale_terms(block, loss, start)
    return [(block.n, float(np.nan_to_num(terms, nan=np.inf, posinf=np.inf).max(initial=0.0)))]


def _sum_scale_terms(block: RowBlock, loss: Loss, start: Float64, unit: int) -> int:
    """Sum the scale terms of a block as integers, so that the order of blocks does not matter.

    The scale of a loss is the mean of its scale terms. loss: the loss; start: start scores, (1,),
    at which terms are computed; unit: exponent; terms are rounded to multiples of 2^unit. Return
    the sum divided by 2^unit.
    """
    return int(convert_to_integers(_list_scale_terms(block, loss, start), unit).sum())


def _with_statistics(
    block: RowBlock,
    statistics: CategoryStatistics | None,
    positions: list[int],
    keeps_categories: bool,
) -> tuple[RowBlock, int]:
    """Return a block with statistics of categories as further binned features, and 0.

    `Executor.replace_blocks` calls it, which adds up the second values; nothing is summed here.
    block: rows with indices of categories, and with random keys, which assign the rows to folds: the
    mean target in a row leaves out the rows of its fold; statistics: mean targets of categories
    in some features, or None: none are added; positions: positions of these features among those
    of `RowBlock.categories`; keeps_categories: whether the block keeps the indices of categories.
    """
    categories = np.asarray(block.categories)[positions]
    if not keeps_categories:
        block = replace(block, categories=np.zeros((0, 0), dtype=np.int32))
    if statistics is None:
        return block, 0
    codes = np.concatenate(
        [block.codes, statistics.encode_rows(categories, np.asarray(block.keys))]
    )
    X_val = block.X_val
    if len(X_val):
        X_val = np.concatenate([X_val, statistics.encode_new_rows(X_val)], axis=1)
    return replace(block, codes=codes, X_val=X_val), 0
