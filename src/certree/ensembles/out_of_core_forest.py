"""Read out-of-core or distributed rows of a forest into one binned table, from which trees grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.ensembles.forest_leaves import N_COMPARED_ROWS
from certree.ensembles.forest_samples import (
    N_TIME_BLOCKS,
    ForestSamples,
    InputRows,
    sort_by_content,
)
from certree.ensembles.out_of_core_forest_features import LEAVES_PER_BLOCK, BinnedFeatures
from certree.estimators.out_of_core_trees import find_rankable_features
from certree.explain.output_groups import OutputGroups
from certree.grow.bins import EDGE_ROWS
from certree.grow.code_trees import CODES_PER_BLOCK
from certree.interface.arrays import Float64, Int32, UInt64
from certree.interface.threads import get_n_threads_or_all
from certree.out_of_core.binned_blocks import (
    SketchedRows,
    make_binned_blocks,
    sketch_rows,
    warn_of_identifiers,
)
from certree.out_of_core.chunks import (
    Chunk,
    WeightScaling,
    copy_without_class_weights,
    select_positive_rows,
)
from certree.out_of_core.executors import Executor
from certree.out_of_core.fit_hashes import set_hashes_of_fit
from certree.out_of_core.gathered_rows import GatheredRows, fill_rows
from certree.out_of_core.joined_rows import MEMORY
from certree.out_of_core.memory_limit import (
    MemoryNeed,
    bound_leaves,
    count_group_bytes,
    count_most_categories,
    count_rank_bytes,
)
from certree.out_of_core.metadata_pass import FitMetadata, collect_metadata
from certree.out_of_core.row_block import RowBlock, expect_same_rows, list_digests
from certree.out_of_core.scratch import Scratch
from certree.out_of_core.time_split import TimeArguments, read_times
from certree.rows.duplicates import warn_of_repeated_rows
from certree.rows.folds import Indices
from certree.rows.hashes import count_equal_rows
from certree.rows.relative_weights import NO_WEIGHTS, WeightUnit
from certree.stats.category_statistics import (
    MAX_SET_CATEGORIES,
    HighCardinalityFeatures,
    list_categories,
)

# Approximate fraction of the rows that a bootstrap sample contains.
_DRAWN = 0.64


@dataclass(frozen=True, slots=True, eq=False)
class IntegerWeightScaling(WeightScaling):
    """Function that converts the weights of a forest's rows to integers, which are summed exactly.

    Parameters
    ----------
    unit : WeightUnit
        Largest weight of all rows, and the number of which all weights are multiples; they
        determine the integers.
    """

    unit: WeightUnit = NO_WEIGHTS

    def __call__(self, weight: Float64) -> Float64:
        """Return weights as integers, (n,) float64. weight: weights of some rows, (n,)."""
        return self.unit.to_integers(weight)


def read_forest_samples(
    model: Any,
    executor: Executor,
    scratch: Scratch,
    time: TimeArguments | None = None,
    *,
    continues: bool = False,
) -> tuple[ForestSamples, InputRows]:
    """Read out-of-core rows into a table of bin codes, and set classes and features of the forest.

    Parameters
    ----------
    model : TreeForest
        The forest, whose fitted attributes about classes and features are set.
    executor : Executor
        Reads the rows.
    scratch : Scratch
        Folder in which the bin codes are stored.
    time : TimeArguments or None
        Name of the column of times, and gap, that were passed to `fit`. Rows are then divided into
        ten blocks of consecutive times, and a tree draws whole blocks. None: rows have no times.
    continues : bool
        Whether trees are added to those of the fitted model, which must have had the same rows.

    Returns
    -------
    samples : ForestSamples
        The rows of positive weight, sorted by content, so that the order of the table has no effect.
    input_rows : InputRows
        Targets and weights in input order, for out-of-bag scores; empty without `oob_score`.

    Raises
    ------
    ValueError, TypeError
        If rows are wrong, as `fit` says.
    """
    weighting = copy_without_class_weights(model) if model._has_balanced_bags else model
    metadata = collect_metadata(weighting, executor).with_numbered_groups(executor)
    set_attributes = metadata.update_attributes if continues else metadata.set_attributes
    set_attributes(model, None if time is None else time.stored_name)
    executor.apply_memory_limit(_estimate_memory(model, metadata, has_times=time is not None))
    blocks, first_excluded = None, None
    if time is not None:
        times = read_times(executor, metadata.encoder, time)
        blocks, first_excluded = times.number_blocks(executor, N_TIME_BLOCKS)
    weight_scaling = metadata.weight_scaling
    if weight_scaling is not None:
        summary = metadata.rows
        weight_scaling = IntegerWeightScaling(summary.largest, unit=summary.weight_unit)
    sketched = _sketch_rows(executor, metadata, weight_scaling)
    warn_of_identifiers(model, sketched.sketch)
    n, n_targets = sketched.n, metadata.rows.n_targets
    ranked = find_rankable_features(model, sketched.sketch) if n_targets == 1 else ()
    encoded = metadata.encoder, sketched
    bins, _ = make_binned_blocks(executor, *encoded, fine_ends=True, indexed=ranked)
    if is_classifier(model):
        set_hashes_of_fit(model, executor, n, continues=continues)
    order, content, group = _sort_rows(executor, n, blocks, first_excluded)
    sizes, has_weights = (n, bins.n_features, n_targets, len(ranked)), weight_scaling is not None
    rows = _gather_sorted_rows(model, executor, scratch, sizes, has_weights=has_weights)
    input_rows, positions = _NONE, _NONE.indices
    if model.oob_score:
        input_rows, positions = _read_input_rows(model, executor, metadata)
        positions = positions[order]
    columns = np.array(sketched.target_order or [0], dtype=np.intp)
    y = rows.y if rows.y.ndim == 1 else rows.y[:, columns]
    features, draw_order = BinnedFeatures(rows.codes, bins), metadata.draw_order
    about = content, columns, draw_order, group, first_excluded
    samples = ForestSamples(features, y, rows.weight, positions, *about)
    categories = np.ascontiguousarray(rows.categories.T)
    return _rank_categories(model, samples, features, ranked, categories), input_rows


def _rank_categories(
    model: Any,
    samples: ForestSamples,
    features: BinnedFeatures,
    ranked: tuple[int, ...],
    categories: Int32,
) -> ForestSamples:
    """Replace categories by ranks in the bin codes of features that have more than 30 categories.

    A rank is the position of a category in the order of mean targets. model: the forest; samples:
    its rows; features: bin codes of these rows, which are overwritten; ranked: indices of the q
    features, ascending; categories: for each of them in this order, the index of each row's
    category among those of the feature, (q, n). Return the samples with the ranks in their
    features, or unchanged if no feature gets ranks. `ForestSamples.rank_categories` does the same
    in memory.
    """
    if not ranked:
        return samples
    names = tuple(list_categories(features.edges, j) for j in ranked)
    n_classes = model.n_classes_ if is_classifier(model) else 1
    found = samples.rank_rows(HighCardinalityFeatures(ranked, names, categories), n_classes)
    if found is None:
        return samples
    features.codes[:, [*found.categories.features]] = found.ranks.T
    edges = found.replace_in_bins(features.edges)
    return replace(samples, features=BinnedFeatures(features.codes, edges, found.categories))


def _sketch_rows(
    executor: Executor, metadata: FitMetadata, weight_scaling: WeightScaling | None
) -> SketchedRows:
    """Read all rows once, and draw the sample from which bin edges are computed.

    executor: reads the rows; metadata: result of the first pass; weight_scaling: function that
    converts weights to integers, or None: rows have no weights. The `SketchedRows` also has the
    order in which several targets enter sums and hashes, which the columns of y do not affect.
    """
    rows = metadata.rows
    largest = rows.largest_targets if rows.n_targets > 1 else None
    sketched = sketch_rows(executor, metadata.encoder, weight_scaling, rows.n, largest=largest)
    order = np.argsort(sketched.sketch.target_keys, kind="stable")
    return replace(sketched, target_order=tuple(order.tolist()))


def _estimate_memory(model: Any, metadata: FitMetadata, *, has_times: bool) -> MemoryNeed:
    """Return the byte counts, such as bytes per row, that estimate the memory of a forest's fit.

    `certree.out_of_core.memory_limit` adds them up; the sum is an upper bound.

    model: the forest; metadata: numbers of rows, features and classes of the first pass; has_times:
    whether rows have times, so that trees draw blocks of consecutive times.
    """
    n, p, q = metadata.rows.n, model._n_encoded, metadata.rows.n_targets
    n_trees, n_threads = int(model.n_estimators), get_n_threads_or_all(model.n_jobs)
    classes = np.atleast_1d(getattr(model, "n_classes_", np.ones(q)))
    weight_bytes = 8.0 * (metadata.weight_scaling is not None)
    n_outputs = OutputGroups.for_classes(classes).n_outputs
    grown = model._compute_growth_parameters(n, p)
    # A tree has at most one leaf for each row that is drawn.
    drawn = _DRAWN if model.bootstrap else 1.0
    leaf_rows = grown["min_samples_leaf"]
    n_leaves = bound_leaves(ceil(drawn * n), model.max_leaf_nodes, model.max_depth, leaf_rows)
    node_bytes = 80 + 52 * (1 + n_outputs) + 12 * count_most_categories(metadata)
    nodes = 2.0 * n_leaves * n_trees * node_bytes
    # Hashes and keys while they are sorted, and the sample for bin edges; then targets and weights,
    # twice while they are gathered.
    has_groups = metadata.rows.are_grouped or has_times
    sorting = (72.0 + 64.0 * has_groups) * n + 8.0 * (p + 1) * min(n, EDGE_ROWS)
    held = (16.0 * q + 2 * weight_bytes + 4 * has_groups) * n
    # Targets and weights as integers; and for each thread the drawn rows, their gradient pairs, some of
    # them twice, and the codes of small nodes.
    has_weights = weight_bytes > 0 or model._has_balanced_bags
    pair_bytes = 24 if has_weights else 8 if is_classifier(model) and q == 1 else 16
    draw_bytes = 4 + drawn * (2 * pair_bytes + p / 6)
    # Drawn rows, and their weights relative to others and as integers.
    draw_bytes += 40.0 * model._has_balanced_bags
    growing = (8 * q + 12 * q * (q > 1) + weight_bytes + n_threads * draw_bytes) * n
    scoring, ranking = 0.0, count_rank_bytes(metadata, MAX_SET_CATEGORIES) * n
    if model.bootstrap:
        scoring = _estimate_out_of_bag_bytes(model, n, p, n_outputs, classes.sum())
    return MemoryNeed(
        fixed=16.0 * is_classifier(model) * n + count_group_bytes(n, metadata.n_groups),
        per_read_row=17 * p + 200,
        per_compared_row=150,
        after_reading=max(sorting, held + max(growing, scoring, ranking)) + nodes,
        per_thread_row=2 * p + 100,
        result_copies=2 + 60 / p,
        scratch_per_row=2.0 * p + 8 * q + 40,
    )


def _estimate_out_of_bag_bytes(
    model: Any, n: int, p: int, n_outputs: int, n_values: float
) -> float:
    """Return an upper bound of the memory of leaves and predictions of out-of-bag rows, in bytes.

    model: the forest; n, p: numbers of rows and encoded features; n_outputs: number of numbers in a
    leaf; n_values: number of predicted values of a row, such as all classes of all targets.
    """
    n_trees, n_threads = int(model.n_estimators), get_n_threads_or_all(model.n_jobs)
    # Masks of out-of-bag rows; leaves in some of the trees, and of the rows that are compared.
    masks = n * n_trees / 8
    leaves = 4.0 * min(n * n_trees, max(n, LEAVES_PER_BLOCK)) + 14.0 * n_trees * min(
        n, N_COMPARED_ROWS
    )
    leaves += n_threads * (5.0 * n + 10.0 * CODES_PER_BLOCK)
    if not model.oob_score:
        return masks + leaves
    # Rows in input order, and leaves of some of them; then predictions of all rows, and their score.
    predicted = (14.0 * n_trees + 5.0 * p) * min(n, LEAVES_PER_BLOCK // n_trees + 1)
    predicted += (60.0 + 16 * n_outputs) * n
    return masks + max(leaves, predicted, (80.0 + 28 * n_outputs + 30 * n_values) * n)


_NONE = InputRows(0, np.zeros(0, dtype=np.intp), np.zeros(0), None)


def _sort_rows(
    executor: Executor, n: int, time_block: Int32 | None, first_excluded: Int32 | None
) -> tuple[Indices, int, Int32 | None]:
    """Sort the rows of all blocks by their content, and store the position of each row in its block.

    executor: holds the blocks, whose field `keys` has hashes, which are replaced by positions in
    the sorted order; n: number of rows; time_block: if rows have times, the number of the block of
    consecutive times to which each row belongs, (n,); these blocks are then its groups;
    first_excluded: for each of these the earliest one that a tree must not have drawn if it is to
    predict rows of this one as if they were new. Return the indices that sort the rows of all
    blocks, (n,); a hash of all rows; and the group of each sorted row, (n,) int32, or None without
    groups and times; see `sort_by_content`. Raise ValueError if the blocks have not n rows. Warn if
    many rows repeat others, unless there are groups.
    """
    digests = dict(executor.reduce(list_digests))
    blocks = sorted(executor.reduce(list_hashes), key=itemgetter(0))
    ends = np.cumsum([0, *(len(hashes) for _, hashes, _, _ in blocks)])
    if ends[-1] != n:
        raise ValueError(
            f"X must give the same rows whenever it is read, but has {ends[-1]} rows, and had {n} "
            "before: fit again when no program changes the source of X"
        )
    weights = [weight for _, _, weight, _ in blocks if weight is not None]
    groups = [group for *_, group in blocks if group is not None]
    weight = np.concatenate(weights) if weights else None
    hashes, group = np.concatenate([hashes for _, hashes, _, _ in blocks]), None
    if groups:  # Groups whose rows all have weight 0 have no number.
        group = np.unique(np.concatenate(groups), return_inverse=True)[1].astype(np.int32)
    else:
        warn_of_repeated_rows(count_equal_rows(hashes), n)
    group = group if time_block is None else time_block
    order, content, group = sort_by_content(hashes, weight, group, first_excluded)
    position = np.empty(n, dtype=np.uint64)
    position[order] = np.arange(n, dtype=np.uint64)
    per_block = [position[begin:end] for begin, end in pairwise(ends)]
    executor.replace_blocks(set_positions, digests, per_block=per_block)
    return order, content, group


def _gather_sorted_rows(
    model: Any,
    executor: Executor,
    scratch: Scratch,
    sizes: tuple[int, int, int, int],
    *,
    has_weights: bool,
) -> GatheredRows:
    """Copy the rows of all blocks to one table in sorted order; bin codes are mapped to a file.

    model: the forest; executor: has blocks with the positions of their rows in the sorted order,
    see `_sort_rows`; scratch: folder of temporary files; sizes: numbers of rows, features, targets,
    and features of which blocks keep the indices of categories; has_weights: whether rows have
    weights. The `GatheredRows` has bin codes, targets, weights and categories of the rows.
    """
    n, p, n_targets, n_ranked = sizes
    rows = GatheredRows(
        # A plain array that shares the memory of the mapped one.
        codes=np.asarray(scratch.map_file("codes", (n, p), np.uint8)),
        y=np.empty((n, n_targets), np.int32 if is_classifier(model) else np.float64),
        weight=np.empty(n) if has_weights else None,
        fold=None,
        categories=np.empty((n, n_ranked), dtype=np.int32),
        keys=np.zeros(0, dtype=np.uint64),
        storage=MEMORY,
        block_rows=executor.block_sizes.block_rows,
    )
    if n_targets == 1:
        rows = replace(rows, y=rows.y[:, 0])
    fill_rows(executor, rows, p)
    return rows


def _read_input_rows(
    model: Any, executor: Executor, metadata: FitMetadata
) -> tuple[InputRows, Indices]:
    """Read targets and weights of all rows in the order of the files.

    model: the forest, whose classes are known; executor: reads the rows; metadata: result of the
    first pass. Return them as `InputRows`, and the index of each row of positive weight among all
    rows.
    """
    chunks = executor.scan(list_input_rows, metadata.encoder, targets_only=True)
    ends = np.cumsum([0, *(n for n, *_ in chunks)])
    pairs = zip(chunks, ends, strict=False)
    indices = np.concatenate([positions + begin for (_, positions, *_), begin in pairs])
    target = np.concatenate([target for _, _, target, _ in chunks if len(target)])
    y = target
    if is_classifier(model):
        y = model._find_class_codes("y", target).T.astype(np.int32)
    if metadata.weight_scaling is None:
        return InputRows(int(ends[-1]), indices, y, None), indices
    weight = np.concatenate([weight for *_, weight in chunks])
    return InputRows(int(ends[-1]), indices, y, weight), indices


# -- functions of one block


def list_hashes(
    block: RowBlock,
) -> list[tuple[int, UInt64, Float64 | None, NDArray[np.intp] | None]]:
    """Return one tuple in a list: the number of a block, and hashes, weights and groups of its rows.

    The last three are arrays (n,); weights and groups are None if rows have none. `Executor.reduce`
    concatenates the lists of all blocks.
    """
    weight = None if block.weight is None else np.array(block.weight)
    group = None if block.group is None else np.array(block.group)
    return [(block.number, np.array(block.keys), weight, group)]


def set_positions(
    block: RowBlock, digests: Mapping[int, int], positions: UInt64
) -> tuple[RowBlock, int]:
    """Return a copy of a block with positions in place of the hashes in its field `keys`, and 0.

    `Executor.replace_blocks` calls it, which adds up the second values; nothing is summed here.
    digests: checksum of each block when it was first read, by its number; positions: position of
    each row of the block in the sorted order of all rows, (n,). Raise ValueError if the block was
    recomputed from other rows.
    """
    expect_same_rows(block, digests)
    return replace(block, keys=positions), 0


def list_input_rows(chunk: Chunk, encoder: Any) -> list[tuple[Any, ...]]:
    """Return the rows of positive weight of a chunk, as a list of one entry.

    The entry is a tuple: the number of all rows of the chunk; and, for its m rows of positive
    weight, their positions in the chunk, targets and weights, (m,) each, or (m, q) for q targets.
    Weights are 1 if there are none. encoder: the model, which checks and converts the targets.
    """
    n = len(chunk.y)
    rows = select_positive_rows(encoder, replace(chunk, X=np.arange(n)[:, None]))
    if rows is None:
        return [(n, np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0))]
    weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    return [(n, rows.X[:, 0].astype(np.intp), rows.y, weight)]
