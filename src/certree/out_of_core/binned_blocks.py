"""Make binned blocks of the rows of an out-of-core fit, and sum up their bins and targets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.grow.bins import MISSING, Bins, UInt8
from certree.interface.arrays import Float64, Int32, UInt64
from certree.out_of_core.binning import (
    BinRanges,
    Sketch,
    bin_rows,
    choose_hash_limit,
    find_category_positions,
    make_bins,
)
from certree.out_of_core.chunks import Chunk, WeightScaling, encode_chunk, get_group_names
from certree.out_of_core.exact_sums import exact_sum, round_sum, sum_class_weights
from certree.out_of_core.executors import Executor
from certree.out_of_core.fit_hashes import add_hashes
from certree.out_of_core.row_assignment import Mask, RowSorter
from certree.out_of_core.row_block import RowBlock
from certree.out_of_core.validation_split import FoldAssignment, ValidationSplit
from certree.rows.categories import warn_if_identifier
from certree.rows.draw_order import ColumnSums
from certree.rows.hashes import hash_samples, hash_target
from certree.rows.training import Training


@dataclass(frozen=True, slots=True, eq=False)
class SketchedRows:
    """What bin edges depend on: a sample of the training rows, and how their weights are scaled.

    `sketch_rows` returns it.

    Parameters
    ----------
    sketch : Sketch
        Random sample, and distinct values, of the training rows, by which bin edges are chosen.
    weight_scalings : tuple of two (WeightScaling or None)
        How weights of training rows, and of validation rows, are scaled; None: they are not.
    split : ValidationSplit or None
        Which rows are validation rows; None: none.
    target_order : tuple of int
        Order in which several targets of a row are hashed, so that hashes do not depend on the order of
        target columns; (): 0, 1, ...
    """

    sketch: Sketch
    weight_scalings: tuple[WeightScaling | None, WeightScaling | None]
    split: ValidationSplit | None = None
    target_order: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """Number of training rows in all blocks."""
        return self.sketch.n

    @property
    def n_val(self) -> int:
        """Number of validation rows in all blocks."""
        return 0 if self.split is None else self.split.summary.validation.n


@dataclass(frozen=True, slots=True, eq=False)
class BinningSummary:
    """Value range of each bin and sums of targets of some blocks; ``+`` joins the rows of two.

    Parameters
    ----------
    ranges : BinRanges
        Smallest and largest value in each bin.
    totals : Counter
        Exact sums: integer multiples of 2^-1126, see `exact_sum`. For class targets, the total
        weight of each class under the key (number of the target, class code). For numeric targets,
        the total weight under "weight", and the sum of weight times target under the number of the
        target. Without weights, rows are counted.
    """

    ranges: BinRanges
    totals: Counter[Any]

    def __add__(self, other: Self) -> Self:
        """Return value ranges of bins and sums of targets over the rows of both objects.

        other: ranges and sums of other rows.
        """
        ranges, totals = self.ranges + other.ranges, Counter(self.totals)
        totals.update(other.totals)  # `+` would drop negative sums
        return replace(self, ranges=ranges, totals=totals)


def sketch_rows(
    executor: Executor,
    encoder: Any,
    weight_scaling: WeightScaling | None,
    n: int,
    split: ValidationSplit | None = None,
    largest: Float64 | None = None,
) -> SketchedRows:
    """Draw the sample of training rows that bin edges depend on, in one or two passes over all rows.

    The sample has the rows with the smallest hashes, so that it does not depend on the order of rows.

    Parameters
    ----------
    executor : Executor
        Reads the rows in blocks, and runs functions on each block.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    weight_scaling : WeightScaling or None
        Function that divides weights by the largest one, until their mean is known; None: rows have
        no weights.
    n : int
        Number of rows.
    split : ValidationSplit or None
        Which rows are validation rows, which are skipped; None: there are none.
    largest : ndarray of float64, shape (n_targets,), or None
        Largest magnitude of each target of the training rows, by which several targets are ordered;
        None: the order does not matter.

    Returns
    -------
    SketchedRows
        The sample with the distinct values of features, and the factor that scales weights to a
        mean of 1.
    """
    if split is not None:
        sketch: Sketch = executor.make_blocks(
            _sketch_training_rows, encoder, split.sorter, largest, per_block=split.masks
        )
        return SketchedRows(sketch, split.sorter.weight_scalings, split)
    sketch = executor.scan(_sketch_chunk, encoder, weight_scaling, largest, choose_hash_limit(n))
    if not sketch.is_complete:
        sketch = executor.scan(_sketch_chunk, encoder, weight_scaling, largest)
    if weight_scaling is not None:
        weight_scaling = replace(weight_scaling, factor=sketch.n / round_sum(sketch.weight))
    return SketchedRows(sketch, (weight_scaling, None))


def compute_training_draw_order(executor: Executor, encoder: Any, split: ValidationSplit) -> Int32:
    """Return feature indices, (p,), in the order in which trees consider or randomly draw them.

    The order is computed from the training rows. It depends on the contents of columns, not on their
    positions, so that permuted columns give the same model. executor: reads the rows, and holds
    blocks without rows afterwards; encoder: copy of the model, which converts features and targets to
    numbers; split: which rows are validation rows, which are skipped.
    """
    sums: ColumnSums = executor.make_blocks(
        _sum_training_columns, encoder, split.sorter, per_block=split.masks
    )
    return sums.order_columns()


def make_binned_blocks(
    executor: Executor,
    encoder: Any,
    sketched: SketchedRows,
    n_bins: int = MISSING,
    folds: FoldAssignment | None = None,
    *,
    fine_ends: bool = False,
    indexed: tuple[int, ...] = (),
) -> tuple[Bins, Counter[Any]]:
    """Read all rows, and make the binned blocks that the executor holds from then on.

    The field `keys` of each block holds hashes of its rows; the caller replaces them by random keys
    of the rows, with `set_keys`.

    Parameters
    ----------
    executor : Executor
        Reads the rows in blocks, and runs functions on each. Its blocks are replaced by the binned
        ones.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    sketched : SketchedRows
        Result of `sketch_rows`.
    n_bins : int
        Largest number of bins of a numeric feature.
    folds : FoldAssignment or None
        Folds of the training rows; None: there are no folds.
    fine_ends : bool
        Whether bins are narrower near the smallest and largest values; see `Bins.from_table`.
    indexed : tuple of int
        Indices of the categorical features for which blocks store the index of each row's category,
        because they have more categories than bins.

    Returns
    -------
    bins : Bins
        Bin edges of the features, without the bin codes of rows.
    totals : Counter
        Exact sums of weights and targets over all training rows; see `BinningSummary`.
    """
    edges = sketched.sketch.choose_edges(
        n_bins, fine_ends=fine_ends, n_threads=executor.block_sizes.n_threads
    )
    split = sketched.split
    sorters = (
        None if split is None else split.sorter,
        None if folds is None else folds.sorter,
    )
    masks: list[Any] = [] if split is None else split.masks
    numbers: list[Any] = [] if folds is None else folds.folds
    per_block = [*zip_longest(masks, numbers)] or None  # one of the lists may be empty
    summary: BinningSummary = executor.make_blocks(
        _make_binned_block,
        encoder,
        sketched.weight_scalings[0],
        edges,
        indexed,
        sketched.target_order,
        sorters,
        per_block=per_block,
    )
    bins = make_bins(edges, summary.ranges, _mark_categorical(encoder))
    return bins.with_dates(encoder.dates_), summary.totals


def warn_of_identifiers(model: Any, sketch: Sketch) -> None:
    """Warn of each categorical feature in which almost every row has a category of its own.

    Such a feature is most likely an identifier. model: its fitted attributes have the names of
    features and categories; sketch: distinct values of each feature in all training rows.
    """
    names = getattr(model, "feature_names_in_", None)
    categories = getattr(model, "categories_", None)
    for j, values in enumerate(sketch.values):
        if isinstance(values, tuple):
            texts = () if categories is None else categories.names[j] or ()
            warn_if_identifier(j, names, int(values[1].sum()), len(values[0]), texts)


def add_validation_rows(block: RowBlock, validation: Training | None) -> tuple[RowBlock, int]:
    """Return a copy of a block with these validation rows in place of its own, and 0.

    An executor calls the function for each block, and adds up the second results, which are not
    needed here. block: the block; its training rows stay the same. validation: validation rows, with
    features and targets as numbers; None: the block is returned unchanged.
    """
    if validation is None:
        return block, 0
    X_val = validation.features.matrix.astype(np.float64)
    y_val = np.ascontiguousarray(validation.y.T.astype(np.float64))
    weight, offset = validation.weight, validation.offset
    return replace(block, X_val=X_val, y_val=y_val, weight_val=weight, offset_val=offset), 0


# -- functions of one chunk


def _sketch_chunk(
    chunk: Chunk,
    encoder: Any,
    weight_scaling: WeightScaling | None,
    largest: Float64 | None,
    below: int | None = None,
) -> Sketch | None:
    """Return the sample and distinct values of a chunk's rows, with the sum of their weights.

    chunk: raw rows, all of which are training rows; encoder: copy of the model, which converts
    features and targets to numbers; weight_scaling: function that scales weights; None: they are not
    scaled; largest: largest magnitude of each of several targets, by which they are hashed; None:
    they are not; below: the sample has only rows whose hash is smaller; None: rows with any hash.
    Return None if no row has a positive weight.
    """
    training: Any = encode_chunk(encoder, chunk, weight_scaling)
    if training is None:
        return None
    sketch, weight = _sketch_encoded_rows(training, encoder, largest, below), training.weight
    return sketch if weight is None else replace(sketch, weight=exact_sum(weight))


def _sketch_training_rows(
    number: int,
    chunk: Chunk,
    encoder: Any,
    sorter: RowSorter,
    largest: Float64 | None,
    mask: Mask,
) -> tuple[RowBlock, Sketch | None]:
    """Return a block without rows, and the sample and distinct values of a chunk's training rows.

    number: number of the block; chunk: its raw rows; encoder: copy of the model, which converts
    features and targets to numbers; sorter: sorts the rows in the order of `mask`; mask: True for
    validation rows, which are skipped; largest: largest magnitude of each of several targets, by
    which they are hashed, (n_targets,); None: they are not. The second result is None if there are
    no training rows.
    """
    training: Any = sorter.read_rows(encoder, chunk)
    sketch = None
    if training is not None and not mask.all():
        train: Any = sorter.split_rows(training, mask)[0]
        sketch = _sketch_encoded_rows(train, encoder, largest)
    return make_empty_block(number, encoder, None, encoder._n_encoded), sketch


def _sum_training_columns(
    number: int, chunk: Chunk, encoder: Any, sorter: RowSorter, mask: Mask
) -> tuple[RowBlock, ColumnSums | None]:
    """Return a block without rows, and sums of hashes of each column over a chunk's training rows.

    From these sums, added over all chunks, columns get an order that does not depend on their
    positions. number: number of the block; chunk: its raw rows; encoder: copy of the model, which
    converts features and targets to numbers; sorter: sorts the rows in the order of `mask`; mask:
    True for validation rows, which are skipped. The second result is None if there are no training
    rows.
    """
    training, sums = sorter.read_rows(encoder, chunk), None
    if training is not None and not mask.all():
        train = sorter.split_rows(training, mask)[0]
        sums = ColumnSums.sum_rows(train.features, train.y, train.n_categories)
    return make_empty_block(number, encoder, None, encoder._n_encoded), sums


def _sketch_encoded_rows(
    rows: Any, encoder: Any, largest: Float64 | None, below: int | None = None
) -> Sketch:
    """Return the sample and distinct values of encoded rows.

    rows: a `Training`, rows with features and targets as numbers; encoder: the model that has encoded
    them; largest: largest magnitude of each target; if it is not None, the result has hashes by which
    targets are ordered; below: the sample has only rows whose hash is smaller; None: any rows.
    """
    order = rows.draw_order
    sketch = Sketch.from_rows(rows.features, _mark_categorical(encoder), below, order)
    if largest is None:
        return sketch
    hashes, targets = hash_samples(*rows.features.tables, order=order), rows.y.T.astype(np.float64)
    pairs = zip(targets, largest.tolist(), strict=True)
    keys = [hash_target(target, hashes, largest=most) for target, most in pairs]
    return replace(sketch, target_keys=np.array(keys, dtype=np.uint64))


def make_empty_block(
    number: int, encoder: Any, weight_scaling: WeightScaling | None, p: int, n_indexed: int = 0
) -> RowBlock:
    """Return a block without rows.

    number: number of the block; encoder: copy of the model, of which only `n_outputs_` is used, the
    number of targets; weight_scaling: None if rows have no weights; p: number of features;
    n_indexed: number of features for which `RowBlock.categories` has indices of categories.
    """
    n_targets, codes = getattr(encoder, "n_outputs_", 1), np.zeros((p, 0), dtype=np.uint8)
    y = np.zeros(0) if n_targets == 1 else np.zeros((n_targets, 0))
    weight = None if weight_scaling is None else np.zeros(0)
    categories, keys = np.zeros((n_indexed, 0), dtype=np.int32), np.zeros(0, dtype=np.uint64)
    return RowBlock(number, codes, y, weight, keys, categories=categories, y_val=y)


def _mark_categorical(encoder: Any) -> UInt8:
    """Return 1 for each categorical feature, and 0 for each numeric one, (p,) uint8.

    encoder: copy of the model, which has the categories of the features.
    """
    mask = encoder._category_mask()
    return np.zeros(encoder._n_encoded, np.uint8) if mask is None else mask.astype(np.uint8)


def _make_binned_block(
    number: int,
    chunk: Chunk,
    encoder: Any,
    weight_scaling: WeightScaling | None,
    edges: tuple[Any, ...],
    indexed: tuple[int, ...] = (),
    target_order: tuple[int, ...] = (),
    sorters: tuple[RowSorter | None, RowSorter | None] = (None, None),
    assigned: tuple[Mask | None, NDArray[np.uint8] | None] = (None, None),
) -> tuple[RowBlock, BinningSummary | None]:
    """Make a binned block of the rows of a chunk. Its field `keys` holds hashes of the rows.

    Parameters
    ----------
    number, chunk : int, Chunk
        Number of the block, and its raw rows.
    encoder : object
        Copy of the model, which converts features and targets of rows to numbers.
    weight_scaling : WeightScaling or None
        How weights are scaled if there are no validation rows; None: they are not. If there are,
        the first of `sorters` scales the weights of training rows and of validation rows.
    edges : tuple
        Bin edges of each feature, from `Sketch.choose_edges`.
    indexed : tuple of int
        Indices of the features for which the block stores the index of each row's category.
    target_order : tuple of int
        Order in which several targets of a row are hashed; (): 0, 1, ...
    sorters : tuple of two (RowSorter or None)
        How the rows are sorted for the mask of validation rows, and for the folds; None: there is no
        such mask, or there are no folds.
    assigned : tuple of two (ndarray or None)
        Mask of the validation rows (1 or True; 0 for training rows, 2 for rows in neither set), and
        fold of each training row, in the orders of `sorters`; None: there are no validation rows, or
        no folds.

    Returns
    -------
    block : RowBlock
        Bin codes of the training rows, and feature values of the validation rows.
    summary : BinningSummary or None
        Value range of each bin, and sums of targets, of the training rows; None: no row has a positive
        weight.
    """
    (sorter, fold_sorter), (mask, folds) = sorters, assigned
    training = encode_chunk(encoder, chunk, None)
    if training is None:
        return make_empty_block(number, encoder, weight_scaling, len(edges), len(indexed)), None
    settings = encoder, edges, indexed, target_order
    if sorter is None or mask is None:
        rows = _scale_weights(training, weight_scaling)
        block, summary = _make_training_block(number, rows, *settings)
    else:
        train, validation = sorter.split_rows(training, mask)
        block, summary = _make_training_block(number, train, *settings)
        block, _ = add_validation_rows(block, validation)
        hashes = hash_rows(validation, target_order)
        digest = compute_digest(hashes, validation.weight, validation.offset)
        block = replace(block, digest=block.digest + digest)
    if fold_sorter is not None and folds is not None:
        unscaled = training
        if sorter is not None and mask is not None:
            unscaled = replace(sorter, weight_scalings=(None, None)).split_rows(training, mask)[0]
        order, fold = fold_sorter.sort_rows(unscaled)[0], np.empty(block.n, dtype=np.uint8)
        fold_sorter.expect_rows(len(folds), len(order))
        fold[order] = folds
        block = replace(block, fold=fold)
    return _add_fit_hashes(block, encoder, training), summary


def _scale_weights(training: Training, weight_scaling: WeightScaling | None) -> Training:
    """Return a copy of encoded rows with scaled weights; `training` if its weights are None.

    weight_scaling: function that scales weights; if it is None, `training` is returned, too.
    """
    if weight_scaling is None or training.weight is None:
        return training
    return replace(training, weight=weight_scaling(training.weight))


def _add_fit_hashes(block: RowBlock, encoder: Any, training: Training) -> RowBlock:
    """Return a classifier's block with hashes of its rows, by which fitted rows are detected later.

    encoder: the model; training: all rows of the block, with features and targets as numbers. A
    regressor's block is returned unchanged.
    """
    if not is_classifier(encoder):
        return block
    return add_hashes(block, training.features.tables, training.y)


def _make_training_block(
    number: int,
    training: Any,
    encoder: Any,
    edges: tuple[Any, ...],
    indexed: tuple[int, ...],
    target_order: tuple[int, ...],
) -> tuple[RowBlock, BinningSummary]:
    """Bin encoded training rows; return their block, and value ranges of bins and sums of targets.

    number: number of the block; training: a `Training` with scaled weights; encoder: the model that
    has encoded it; edges: bin edges of each feature, from `Sketch.choose_edges`; indexed: indices of
    the features of which the block stores the index of each row's category; target_order: order in
    which several targets are hashed; (): 0, 1, ...
    """
    weight, hashes = training.weight, hash_rows(training, target_order)
    codes, ranges = bin_rows(training.features, edges)
    y = np.ascontiguousarray(training.y.T).astype(np.float64)
    has_groups = get_group_names(encoder) is not None
    block = RowBlock(
        number,
        codes,
        y,
        weight,
        hashes,
        compute_digest(hashes, weight, training.offset),
        categories=find_category_positions(training.features, {j: edges[j][0] for j in indexed}),
        y_val=y[..., :0],
        offset=training.offset,
        group=training.split.groups if has_groups else None,
    )
    return block, BinningSummary(ranges, sum_targets(block, is_classifier(encoder)))


def sum_targets(block: RowBlock, has_classes: bool) -> Counter[Any]:
    """Sum weights and targets of the training rows of a block exactly.

    has_classes: whether targets are class codes. Return integer multiples of 2^-1126 (see
    `exact_sum`): for classes, the total weight under the key (number of the target, class code);
    for numbers, the total weight under "weight", and the sum of weight times target under the
    number of the target. Without weights, rows are counted.
    """
    totals: Counter[Any] = Counter()
    if has_classes:
        for k, codes in enumerate(np.atleast_2d(block.y)):
            sums = sum_class_weights(codes.astype(np.intp), block.weight)
            totals.update({(k, c): weight for c, weight in enumerate(sums)})
        return totals
    totals["weight"] = block.n if block.weight is None else exact_sum(block.weight)
    for k, numbers in enumerate(np.atleast_2d(block.y)):
        totals[k] = exact_sum(numbers if block.weight is None else numbers * block.weight)
    return totals


def hash_rows(rows: Training, target_order: tuple[int, ...]) -> UInt64:
    """Return a hash of features and targets of each row, (n,).

    rows: n rows, with features and targets as numbers. target_order: order in which several targets
    are hashed; (): 0, 1, ...
    """
    y = rows.y[:, list(target_order)] if target_order and rows.y.ndim > 1 else rows.y
    return hash_samples(*rows.features.tables, y, order=rows.draw_order)


def compute_digest(hashes: UInt64, weight: Float64 | None, offset: Float64 | None = None) -> int:
    """Return a checksum of n rows, which changes if their hashes, weights or offsets change.

    hashes: (n,); weight: (n,) or None; offset: (n_outputs, n) or None. It does not depend on the
    order of the rows.
    """
    digest = int(hashes.sum(dtype=np.uint64))
    for numbers in (weight, offset):
        if numbers is not None:
            digest += int(numbers.view(np.uint64).sum(dtype=np.uint64))
    return digest
