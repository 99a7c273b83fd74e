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
from certree.out_of_core.time_split import TimeArguments, read_times
from certree.out_of_core.validation_split import FoldAssignment, assign_to_folds
from certree.rows.duplicates import warn_of_repeated_rows
from certree.rows.folds import Indices
from certree.rows.time_order import EARLIER
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
) -> tuple[Any, Any, Any, Any, Any] | None:
    """Fit a tree, and the vote of its prunings, to out-of-core or distributed rows.

    A pruning is the tree with some nodes turned into leaves.

    Parameters
    ----------
    model : TreeVoteEstimator
        The model, whose fitted attributes are set.
    X, y, sample_weight, groups
        Rows, targets, weights and groups as `fit` gets them: paths of files, a
        `pyarrow.dataset.Dataset` or a Dask collection, and names of columns or Dask collections;
        weights and groups may be None.
    order : TimeArguments or None
        The arguments `time` and `gap` of `fit`; None: rows have no times.
    fit_blocks : callable or None
        ``fit_blocks(executor, order)`` fits the model to the blocks of rows of an `Executor`; None:
        the model's method `_fit_blocks`.

    Returns
    -------
    tuple of X, y, weights, groups and times, or None
        The rows in memory, if they are so few that the caller must fit the model to them; None: the
        model is fitted.

    Raises
    ------
    ValueError, TypeError
        If a parameter does not support out-of-core data, or rows are invalid.
    """
    expect_histogram_cart(model._resolve_grower(model.grower))
    options = {"groups": groups, "is_shown": model.verbose > 0}
    options["time"] = None if order is None else order.collection
    with open_rows(X, y, sample_weight, get_n_threads(model.n_jobs), **options) as executor:
        try:
            (fit_blocks or model._fit_blocks)(executor, order)
        except InMemory:
            rows = executor.load_rows()
            time = None if order is None else order.column or rows.raw_time
            return rows.X, rows.y, rows.weight, rows.groups, time
    return None


def fit_tree_out_of_core(
    model: Any, executor: Executor, order: TimeArguments | None = None
) -> None:
    """Fit a tree, and the vote of its prunings, to out-of-core rows, and set fitted attributes.

    A pruning is the tree after some nodes have become leaves. model: a `TreeVoteEstimator`;
    executor: reads the blocks of rows, here or on workers; order: the arguments `time` and `gap` of
    `fit`, or None.

    Raises
    ------
    InMemory
        If the rows are so few that they should be fitted in memory.
    ValueError, TypeError
        If a parameter does not support out-of-core data, or rows are invalid.
    """
    metadata = collect_metadata(model, executor)
    expect_one_target(metadata.rows)
    metadata = metadata.with_numbered_groups(executor)
    n_folds = get_n_folds(model)
    if n_folds:
        expect_rows_for_classes(metadata)
    metadata.set_attributes(model, None if order is None else order.stored_name)
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
    """Raise InMemory if there are fewer than 20 training rows for each class on average.

    The caller then fits the rows in memory. metadata: numbers of rows and classes (one for a
    numeric target); train_size: fraction of the rows that grow the tree.
    """
    rows = metadata.rows
    n_classes = 1 if rows.classes is None else len(rows.classes[0])
    if rows.n * train_size < _MIN_ROWS_PER_CLASS * n_classes:
        raise InMemory


@dataclass(frozen=True, slots=True, eq=False)
class FoldTree:
    """The tree of one cross-validation fold, with statistics of its rows and the leaf of each row.

    Parameters
    ----------
    grown : list of GrownFold
        One entry: the tree, and node statistics of the fold's training and validation rows. Empty
        if one of these sets has no rows, so that no tree was grown.
    n_train, n_validation : int
        Numbers of training and of validation rows of the fold.
    leaf : ndarray of int32, shape (n,)
        Node number of the leaf that each of all n training rows of the fit reaches in this tree;
        (0,) without a tree.
    """

    grown: list[GrownFold]
    n_train: int
    n_validation: int
    leaf: Int32


@dataclass(frozen=True, slots=True, eq=False)
class OutOfCoreTrees:
    """Grows the trees of an out-of-core fit, of all rows and of folds, and computes node statistics.

    Parameters
    ----------
    model : TreeVoteEstimator
        The model, whose parameters set growth.
    grower : Cart
        The grower of the model, for histogram-based growth.
    rows : GatheredRows
        The n training rows of the fit: bin codes, targets, weights and fold numbers.
    samples : BinnedSamples
        The same rows with the largest depth, constraints, seed and other settings of growth.
    weight_unit : float
        Mean weight of a row; sums of weights are divided by it to get numbers of rows.
    n_folds : int
        Number of folds; 1 if rows are divided by time.
    is_timed : bool
        Whether rows are divided by time. `rows.fold` then has, for each row, `LATEST` (validation),
        `EARLIER` (training) or `GAP` (left out) instead of the number of a fold.
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
        """Bin all rows, assign them to folds, and gather their bin codes in one table.

        Parameters
        ----------
        model : TreeVoteEstimator
            The model.
        executor : Executor
            Reads the blocks of rows, here or on workers.
        metadata : FitMetadata
            Result of the metadata pass over these rows: column types, categories, classes, total
            weight.
        n_folds : int
            Number of folds; 0: there are none.
        random_state : RandomState
            Source of the folds and of the seed of the trees.
        gap : int, timedelta or None
            If rows have times, the rows to leave out before the latest fifth, which is the
            validation set: their number, or the time that they span. None: rows have no times.

        Returns
        -------
        OutOfCoreTrees
            Its methods grow the trees of the folds and of all rows.
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
        """Return two masks, (n,): the training rows and the validation rows of a fold.

        fold: number of the fold, from 0. If rows are divided by time, 0 is the only fold: its
        validation rows are the latest ones, and rows of the gap, which are left out between training
        and validation rows, are in neither mask.
        """
        assert self.rows.fold is not None
        is_validation = np.asarray(self.rows.fold == fold)
        is_train = np.asarray(self.rows.fold == EARLIER) if self.is_timed else ~is_validation
        return is_train, is_validation

    def grow_fold(self, is_train: NDArray[np.bool_], is_validation: NDArray[np.bool_]) -> FoldTree:
        """Grow the tree of a cross-validation fold, and compute node statistics of both of its sets.

        is_train, is_validation: masks, (n,), of the rows that grow the tree, and of its validation
        set. The result has the tree, both statistics, the sizes of both sets, and the leaf of each of
        the n rows. If a set is empty, no tree is grown.
        """
        n_train, n_validation = (int(np.count_nonzero(rows)) for rows in (is_train, is_validation))
        if not (n_train and n_validation):
            return FoldTree([], n_train, n_validation, np.zeros(0, np.int32))
        (tree, _), leaf = self._grow(np.flatnonzero(is_train))
        stats = self._compute_stats(tree, leaf, is_train)
        validation = self._compute_stats(tree, leaf, is_validation).table
        return FoldTree([GrownFold(tree, stats, validation)], n_train, n_validation, leaf)

    def grow_whole(self) -> tuple[GrownTree, Stats, Int32]:
        """Grow the tree of all n training rows.

        Return the tree, class counts or moments of the target in its nodes, and the node number of
        each row's leaf, (n,) int32.
        """
        grown, leaf = self._grow(None)
        return grown, self._compute_stats(grown.tree, leaf, None), leaf

    def learn_missing(self, grown: GrownTree) -> Tree:
        """Convert a grown tree to one that takes encoded rows, and mark splits without missing values.

        At a split where no training row lacks the value, new rows that lack it will go to both
        children (`Tree.missing_both`). Splits on ranks of categories, the places in the order of
        their mean targets, become splits on sets of category codes. grown: a result of `grow_whole`,
        which is not changed.
        """
        samples: Any = grown.rows
        tree = learn_missing_from_codes(grown.tree, samples.edges, samples.table)
        return samples.replace_ranks(tree)

    def _grow(self, indices: Indices | None) -> tuple[GrownTree, Int32]:
        """Grow a tree on some training rows; return it, and the leaf of every training row.

        indices: indices of the rows that grow the tree; None: all. The leaves of all n training
        rows, also of those that did not grow the tree, are node numbers, (n,) int32.
        """
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
        """Compute class counts, or moments of the target, of some rows in each node of a tree.

        Rows count with their weights. tree: the tree; leaf: node number of the leaf of each
        training row, (n,); is_counted: mask of the rows that count, (n,); None: all.
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
    """Warn if many rows of a fit equal another row, unless rows have groups.

    `warn_of_repeated_rows` says how many. Certified trees get no warning, as their parameter
    `duplicates` says how such rows count. model: the estimator; executor: reads the rows; metadata:
    their number, and whether they have groups; folds: the folds of the rows, of which only the
    number of repeated rows is read, if it was counted; None, or not counted: it is counted here.
    """
    if metadata.rows.are_grouped or hasattr(model, "duplicates"):
        return
    n_repeated = None if folds is None else folds.n_repeated
    if n_repeated is None:
        n_repeated = count_repeated_rows(executor, metadata.rows.n)
    warn_of_repeated_rows(n_repeated, metadata.rows.n)


def set_row_keys(executor: Executor, metadata: FitMetadata) -> None:
    """Replace the hash of each row in all blocks by a key, a pseudo-random number.

    Rows sorted by key have the same order however they are divided into blocks. A key is computed
    from the row's values and its copy number (0 for the first of equal rows, 1 for the second,
    ...). With groups it is computed from the group, so that rows of a group have the same key.
    executor: holds the blocks, which it replaces; metadata: numbers of rows and groups.
    """
    if metadata.rows.are_grouped:
        set_group_keys(executor, metadata.n_groups)
    else:
        set_keys(executor, metadata.rows.n)


def find_rankable_features(model: Any, sketch: Sketch) -> tuple[int, ...]:
    """Return the indices of the features with more than 30 categories, whose categories get ranks.

    The rank of a category is its place in the order of the mean targets of categories. Empty for
    classifiers of more than five classes. model: the estimator, with its number of classes if it is
    a classifier; sketch: the distinct categories of each feature.
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
    """Return training samples that can replace the categories of some features by ranks.

    The rank of a category is its place in the order of the mean targets of categories. model: the
    estimator; grower: its grower; rows: the n training rows; samples: the same rows with the
    settings of growth; ranked: indices of the features, of which none means that `samples` is
    returned; weight_unit: mean weight of a row.
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
    """Return an upper estimate, in bytes, of the memory of an out-of-core fit of a tree and its folds.

    metadata: numbers of rows, features, classes and categories; n_folds: number of cross-validation
    folds; train_size: fraction of the rows that grow the tree; leaf_bytes: bytes to add for each
    leaf, and for each class of a leaf.
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
    """Return the number of cross-validation folds of an estimator: its parameter `cv`, 5 for None.

    Return 0 if all inverse temperatures (or alpha) are set, so that nothing has to be chosen.
    Inverse temperatures are the factors of loss and size in the log weight of a pruning (the tree
    with some nodes turned into leaves). model: the estimator. Raise ValueError unless `cv` is None
    or a number of folds, at most 255.
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
