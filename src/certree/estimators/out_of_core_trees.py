"""Fit single trees to out-of-core or distributed data.

The binned rows are gathered in one table, and trees grow on it as in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree.estimators.tune import GrownFold
from certree.grow.cart import Cart, expect_histogram_cart
from certree.grow.code_trees import learn_missing_from_codes, route_codes
from certree.grow.grower import GrownTree
from certree.grow.training_samples import resolve_max_depth
from certree.interface.arrays import Int32
from certree.interface.threads import get_n_threads
from certree.out_of_core.binned_blocks import make_binned_blocks, sketch_rows, warn_of_identifiers
from certree.out_of_core.binning import Sketch
from certree.out_of_core.exact_sums import round_sum
from certree.out_of_core.executors import Executor, InMemory
from certree.out_of_core.fit_hashes import merge_fit_hashes
from certree.out_of_core.gathered_rows import BinnedSamples, GatheredRows, gather_rows
from certree.out_of_core.group_keys import set_group_keys
from certree.out_of_core.keys import count_repeated_rows, set_keys
from certree.out_of_core.memory_limit import (
    MemoryNeed,
    bound_leaves,
    count_group_bytes,
    count_most_categories,
    count_rank_bytes,
)
from certree.out_of_core.metadata_pass import (
    FitMetadata,
    collect_metadata,
    expect_one_target,
)
from certree.out_of_core.open_rows import open_rows
from certree.out_of_core.time_cut import EARLIER
from certree.out_of_core.time_split import TimeArguments, read_times
from certree.out_of_core.validation_split import FoldAssignment, assign_to_folds
from certree.rows.duplicates import warn_of_repeated_rows
from certree.rows.folds import Indices
from certree.stats import NodeStats, Stats
from certree.stats.category_statistics import (
    MAX_SET_CATEGORIES,
    MAX_TARGET_CLASSES,
    HighCardinalityFeatures,
    list_categories,
    list_features_of_many_categories,
)
from certree.stats.exact_leaf_sums import RoutedRows, count_exactly, measure_exactly
from certree.stats.ranked_categories import RankableRows, make_target
from certree.tree import Tree

# Fits with fewer rows per class are made in memory, as a fold may have fewer rows than classes.
_MIN_ROWS_PER_CLASS = 20
# Largest number of folds, as fold numbers are uint8.
_MAX_FOLDS = 255


def fit_out_of_core(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    order: TimeArguments | None,
    fit_blocks: Callable[[Executor, TimeArguments | None], None] | None = None,
) -> tuple[Any, Any, Any, Any] | None:
    """Fit a tree, and the vote of its prunings, to out-of-core or distributed rows.

    Parameters
    ----------
    model : TreeVoteEstimator
        The model, whose fitted attributes are set.
    X, y, sample_weight, groups
        As `open_rows` takes them.
    order : TimeArguments or None
        The arguments of `fit` about the order of the rows; None: rows have no times.
    fit_blocks : callable or None
        ``fit_blocks(executor, order)`` fits the model to the rows; None: its method `_fit_blocks`.

    Returns
    -------
    tuple of X, y, weights and groups, or None
        The rows, if they are so few that they must be fitted in memory; None: the model is fitted.

    Raises
    ------
    ValueError, TypeError
        If a parameter does not support out-of-core data, or rows are wrong.
    """
    expect_histogram_cart(model._resolve_grower(model.grower))
    options = {"groups": groups, "is_shown": model.verbose > 0}
    with open_rows(X, y, sample_weight, get_n_threads(model.n_jobs), **options) as executor:
        try:
            (fit_blocks or model._fit_blocks)(executor, order)
        except InMemory:
            return executor.load_rows()[:4]
    return None


def fit_tree_out_of_core(
    model: Any, executor: Executor, order: TimeArguments | None = None
) -> None:
    """Fit a tree, and the vote of its prunings, to the rows of an executor.

    model: a `TreeVoteEstimator`, whose fitted attributes are set; executor: has the rows; order: the
    arguments of `fit` about times. Raise
    `InMemory` if the rows are so few that they must be fitted in memory, and ValueError or
    TypeError if a parameter does not support out-of-core data, or rows are wrong.
    """
    metadata = collect_metadata(model, executor)
    expect_one_target(metadata.rows)
    metadata = metadata.with_numbered_groups(executor)
    n_folds = get_n_folds(model)
    if n_folds:
        expect_rows_for_classes(metadata)
    metadata.set_attributes(model, None if order is None else order.column)
    model._check_classes()
    executor.apply_memory_limit(estimate_tree_memory(metadata, n_folds))
    gap: Any = None
    if order is not None:
        times = read_times(executor, metadata.encoder, order)
        executor, gap = times.attach(executor, metadata.encoder), times.rows.gap
    trees = OutOfCoreTrees.from_blocks(
        model, executor, metadata, n_folds, check_random_state(model.random_state), gap
    )
    if is_classifier(model):
        model.sample_hashes_, model._sample_counts = merge_fit_hashes(executor, metadata.rows.n)
    folds = []
    with model._show_progress(range(trees.n_folds)) as advance:
        for fold in range(trees.n_folds):
            folds += trees.grow_fold(*trees.get_fold(fold)).grown
            advance()
        grown, stats, _ = trees.grow_whole()
        advance()
        model._finish_fit(trees.learn_missing(grown), stats, model._tune(folds, advance))


def expect_rows_for_classes(metadata: FitMetadata, train_size: float = 1.0) -> None:
    """Raise InMemory, so that rows are fitted in memory, if there are few rows for each class.

    metadata: numbers of rows and classes; train_size: fraction of the rows that grow the tree.
    """
    rows = metadata.rows
    n_classes = 1 if rows.classes is None else len(rows.classes[0])
    if rows.n * train_size < _MIN_ROWS_PER_CLASS * n_classes:
        raise InMemory


@dataclass(frozen=True, slots=True, eq=False)
class FoldTree:
    """The tree of one cross-validation fold.

    Parameters
    ----------
    grown : list of GrownFold
        The fold; an empty list if its training or its validation set has no rows.
    n_train, n_validation : int
        Numbers of rows of both sets.
    leaf : ndarray of int32, shape (n,)
        Leaf of each row of the fit in the tree; (0,) without a tree.
    """

    grown: list[GrownFold]
    n_train: int
    n_validation: int
    leaf: Int32


@dataclass(frozen=True, slots=True, eq=False)
class OutOfCoreTrees:
    """Grows the trees of an out-of-core fit, and computes the statistics of their nodes.

    Parameters
    ----------
    model : TreeVoteEstimator
        The model.
    grower : Cart
        Its grower.
    rows : GatheredRows
        The n binned training rows of the fit.
    samples : BinnedSamples
        The same rows with the settings of growth.
    weight_unit : float
        Mean weight of a row; see `NodeStats`.
    n_folds : int
        Number of folds; 1 if rows are divided by time.
    is_timed : bool
        Whether rows are divided by time: `rows.fold` then holds the sets of `TimeCut.assign`.
    """

    model: Any
    grower: Cart
    rows: GatheredRows
    samples: BinnedSamples
    weight_unit: float
    n_folds: int
    is_timed: bool

    @classmethod
    def from_blocks(
        cls,
        model: Any,
        executor: Executor,
        metadata: FitMetadata,
        n_folds: int,
        random_state: np.random.RandomState,
        gap: Any = None,
    ) -> OutOfCoreTrees:
        """Bin all rows, assign them to folds, and gather them.

        Parameters
        ----------
        model : TreeVoteEstimator
            The model.
        executor : Executor
            Has the rows.
        metadata : FitMetadata
            Result of the metadata pass over them.
        n_folds : int
            Number of folds; 0: there are none.
        random_state : RandomState
            Source of the folds and of the seed of the trees.
        gap : int, timedelta or None
            Rows to leave out before the latest fifth, which validates, if rows have times; None:
            they have none.

        Returns
        -------
        OutOfCoreTrees
        """
        grower = expect_histogram_cart(model._resolve_grower(model.grower))
        has_weights, n = metadata.weight_scaling is not None, metadata.rows.n
        seed = int(random_state.randint(2**31 - 1))
        sketched = sketch_rows(executor, metadata.encoder, None, n)
        warn_of_identifiers(model, sketched.sketch)
        folds = None
        if n_folds:
            folds = assign_to_folds(executor, metadata.encoder, n_folds, random_state, gap)
        ranked = find_rankable_features(model, sketched.sketch)
        settings = metadata.encoder, sketched, grower.checked_max_bins, folds
        bins, _ = make_binned_blocks(executor, *settings, indexed=ranked)
        _warn_of_repeated_rows(model, executor, metadata, folds)
        if ranked:
            set_row_keys(executor, metadata)
        rows = gather_rows(
            executor,
            bins,
            has_classes=is_classifier(model),
            has_weights=has_weights,
            has_folds=n_folds > 0,
            n_ranked=len(ranked),
        )
        samples = BinnedSamples(
            table=rows.codes,
            y=rows.y,
            weight=rows.weight,
            max_depth=model.max_depth,
            categorical=model._category_mask(),
            monotonic_signs=model._get_monotonic_signs(),
            random_state=seed,
            n_jobs=model.n_jobs,
            compute_feature_order=lambda: metadata.draw_order,
            edges=bins,
            storage=rows.storage,
        )
        unit = round_sum(metadata.rows.total()) / n if has_weights else 1.0
        samples = _make_rankable(model, grower, rows, samples, ranked, unit)
        is_timed = folds is not None and folds.is_timed
        return cls(model, grower, rows, samples, unit, 1 if is_timed else n_folds, is_timed)

    def get_fold(self, fold: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which rows are in the training and in the validation set of a fold, (n,) each.

        fold: number of the fold. With times, rows of the gap are in neither set.
        """
        assert self.rows.fold is not None
        is_validation = np.asarray(self.rows.fold == fold)
        is_train = np.asarray(self.rows.fold == EARLIER) if self.is_timed else ~is_validation
        return is_train, is_validation

    def grow_fold(self, is_train: NDArray[np.bool_], is_validation: NDArray[np.bool_]) -> FoldTree:
        """Grow the tree of a fold, and compute statistics of both sets of its rows.

        is_train, is_validation: whether each row grows the tree, or is in the validation set, (n,).
        """
        n_train, n_validation = (int(np.count_nonzero(rows)) for rows in (is_train, is_validation))
        if not (n_train and n_validation):
            return FoldTree([], n_train, n_validation, np.zeros(0, np.int32))
        (tree, _), leaf = self._grow(np.flatnonzero(is_train))
        stats = self._compute_stats(tree, leaf, is_train)
        validation = self._compute_stats(tree, leaf, is_validation).table
        return FoldTree([GrownFold(tree, stats, validation)], n_train, n_validation, leaf)

    def grow_whole(self) -> tuple[GrownTree, Stats, Int32]:
        """Grow a tree on all rows; return it, statistics of its nodes, and the leaves, (n,)."""
        grown, leaf = self._grow(None)
        return grown, self._compute_stats(grown.tree, leaf, None), leaf

    def learn_missing(self, grown: GrownTree) -> Tree:
        """Return a tree of all rows, as it takes encoded rows, with `missing_both` set.

        See `Tree.learn_missing`. grown: from `grow_whole`.
        """
        samples: Any = grown.rows
        tree = learn_missing_from_codes(grown.tree, samples.edges, samples.table)
        return samples.replace_ranks(tree)

    def _grow(self, indices: Indices | None) -> tuple[GrownTree, Int32]:
        """Grow a tree on the rows at `indices` (None: all); return it, and leaves of all, (n,)."""
        storage, n_threads = self.rows.storage, get_n_threads(self.model.n_jobs)
        ranked: Any = self.samples
        if ranked.rank_categories is not None:
            ranked = ranked.rank_categories(indices)
        with storage.hold_core_arrays():
            tree = self.grower.grow(ranked if indices is None else ranked.select(indices))
        leaf = storage.allocate((len(self.rows.y),), np.int32)
        route_codes(tree, ranked.edges, ranked.table, leaf, n_threads)
        return GrownTree(tree, ranked), leaf

    def _compute_stats(
        self, tree: Tree, leaf: Int32, is_counted: NDArray[np.bool_] | None
    ) -> Stats:
        """Compute statistics of rows in the nodes of a tree.

        leaf: leaf of each row, (n,); is_counted: which rows count, (n,); None: all.
        """
        rows = self.rows

        def make_block(block: slice) -> RoutedRows:
            # A mapped array becomes a plain one, which shares its memory.
            kept: Any = ... if is_counted is None else is_counted[block]
            weight = None if rows.weight is None else np.asarray(rows.weight[block])[kept]
            of_rows = np.asarray(leaf[block])[kept], np.asarray(rows.y[block])[kept]
            return RoutedRows(*of_rows, weight)

        reduce = rows.make_reduce(make_block, get_n_threads(self.model.n_jobs))
        if not is_classifier(self.model):
            return measure_exactly(tree, reduce, self.weight_unit)
        of_leaf, y, weight, squared = count_exactly(reduce, self.model._output_groups.sizes[0])
        # Without weights the sum of squares equals the sum of weights, and is not stored.
        about = self.weight_unit, weight if squared is None else squared
        stats: Stats = self.model._compute_node_stats(tree, of_leaf, y, weight, *about)
        if squared is None and isinstance(stats, NodeStats):
            return replace(stats, squared_weight=None)
        return stats


def _warn_of_repeated_rows(
    model: Any, executor: Executor, metadata: FitMetadata, folds: FoldAssignment | None
) -> None:
    """Warn if many rows of a fit are equal, unless they have groups.

    Certified trees have a parameter for repeated rows, duplicates, and need no warning. folds: the
    folds of the rows, which may know the number of repeated rows. Others: as in `OutOfCoreTrees`.
    """
    if metadata.rows.are_grouped or hasattr(model, "duplicates"):
        return
    n_repeated = None if folds is None else folds.n_repeated
    if n_repeated is None:
        n_repeated = count_repeated_rows(executor, metadata.rows.n)
    warn_of_repeated_rows(n_repeated, metadata.rows.n)


def set_row_keys(executor: Executor, metadata: FitMetadata) -> None:
    """Replace the hash of each row by a key that orders rows randomly, in all blocks.

    Rows of a group have the same key. executor: has the blocks; metadata: numbers of rows and
    groups.
    """
    if metadata.rows.are_grouped:
        set_group_keys(executor, metadata.n_groups)
    else:
        set_keys(executor, metadata.rows.n)


def find_rankable_features(model: Any, sketch: Sketch) -> tuple[int, ...]:
    """Return the features of more than 30 categories, which get ranks; none for many classes.

    model: knows its classes, if it is a classifier; sketch: has the categories.
    """
    if np.max(getattr(model, "n_classes_", 1)) > MAX_TARGET_CLASSES:
        return ()
    return list_features_of_many_categories(sketch.values)


def _make_rankable(
    model: Any,
    grower: Cart,
    rows: GatheredRows,
    samples: BinnedSamples,
    ranked: tuple[int, ...],
    weight_unit: float,
) -> BinnedSamples:
    """Return samples that can rank the categories of some features; see `RankableRows`.

    ranked: the features, whose samples are returned as they are if there are none; weight_unit: mean
    weight of a row. Other arguments are those of `OutOfCoreTrees`.
    """
    if not ranked:
        return samples
    names = tuple(list_categories(samples.edges, j) for j in ranked)
    categories = HighCardinalityFeatures(ranked, names, rows.categories.T)
    relative = None if rows.weight is None else np.asarray(rows.weight) / weight_unit
    target = make_target(np.asarray(rows.y), getattr(model, "n_classes_", 1), relative)
    rankable = RankableRows(categories, target, np.asarray(rows.keys))
    rank = partial(rankable.rank_samples, samples, grower.n_ranks)
    return replace(samples, rank_categories=rank)


def estimate_tree_memory(
    metadata: FitMetadata,
    n_folds: int,
    train_size: float = 1.0,
    leaf_bytes: tuple[int, int] = (0, 0),
) -> MemoryNeed:
    """Estimate from above the memory of a tree of a fraction of the rows, and of its folds.

    metadata: result of the metadata pass; n_folds: number of folds; train_size: the fraction;
    leaf_bytes: further bytes of each leaf, and of each class of a leaf.
    """
    model = metadata.encoder
    cart, is_split = (
        expect_histogram_cart(model._resolve_grower(model.grower)),
        n_folds > 0 or train_size < 1,
    )
    n, p = int(np.ceil(train_size * metadata.rows.n)), metadata.rows.n_features
    K = getattr(model, "n_classes_", 1)
    least: Any = cart.min_samples_leaf
    n_leaves = bound_leaves(
        n,
        cart.max_leaf_nodes,
        resolve_max_depth(model.max_depth, p, n),
        int(least) if isinstance(least, Integral) else int(least * n),
    )
    # Hashes of a classifier's rows; folds of rows, three times while they are assigned.
    row_bytes = 16.0 * is_classifier(model) + 3.0 * (n_folds > 0)
    # Rows of a fold: masks, indices and targets; copies of targets that the core gets; weights, also as
    # integers.
    target_bytes, has_weights = (
        8 if is_classifier(model) else 24,
        metadata.weight_scaling is not None,
    )
    grown = ((18 if n_folds > 0 else 0) + target_bytes + 40 * has_weights) * n
    ranking = count_rank_bytes(metadata, MAX_SET_CATEGORIES) * n
    # Nodes while they are split, and weights of prunings; and the trees of other folds.
    bytes_per_leaf = (
        leaf_bytes[0] + 450 + (leaf_bytes[1] + 60) * K + 36 * count_most_categories(metadata)
    )
    bytes_per_leaf += max(0, n_folds - 1) * (750 + 130 * K)
    return MemoryNeed(
        fixed=row_bytes * n + count_group_bytes(n, metadata.n_groups),
        per_read_row=(40 if is_split else 16) * p + p + 200,
        per_compared_row=300 if is_split else 150,
        after_reading=grown + ranking + float(bytes_per_leaf) * n_leaves,
        per_thread=100.0 * n_leaves,
        per_thread_row=200,
        scratch_per_row=(2.2 + is_split) * p + 180.0 + 8 * metadata.rows.are_grouped,
    )


def get_n_folds(model: Any) -> int:
    """Return the number of cross-validation folds; 0 if no parameter must be chosen.

    Raise ValueError unless the parameter `cv` is None or a number of folds, at most 255. model: the
    estimator.
    """
    if not model._needs_cross_validation():
        return 0
    cv = 5 if model.cv is None else model.cv
    if not isinstance(cv, Integral) or not cv <= _MAX_FOLDS:
        raise ValueError(
            f"cv must be a number of folds, at most {_MAX_FOLDS}, for out-of-core or distributed X, "
            f"got {model.cv!r}"
        )
    return int(cv)
