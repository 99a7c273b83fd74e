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
from certree.out_of_core.binned_parts import Sketch
from certree.out_of_core.exact_sums import round_sum
from certree.out_of_core.executors import Executor, InMemory
from certree.out_of_core.first_look import (
    Learned,
    expect_one_target,
    learn,
)
from certree.out_of_core.fit_hashes import merge_fit_hashes
from certree.out_of_core.gathered_rows import BinnedSamples, GatheredRows, gather_rows
from certree.out_of_core.group_keys import set_group_keys
from certree.out_of_core.held_out import assign_to_folds
from certree.out_of_core.keys import count_repeated_rows, set_keys
from certree.out_of_core.made_parts import make_parts, sketched, warn_of_identifiers
from certree.out_of_core.memory_limit import (
    Need,
    bound_leaves,
    count_group_bytes,
    count_most_categories,
    count_rank_bytes,
)
from certree.out_of_core.rows_elsewhere import rows_elsewhere
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

# With fewer rows for each class the fit is made in memory: a fold may have fewer rows than classes.
_FEW_ROWS = 20
# Numbers of folds are bytes.
_MOST_FOLDS = 255


def fit_elsewhere(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    fit_blocks: Callable[[Executor], None] | None = None,
) -> tuple[Any, Any, Any, Any] | None:
    """Fit a tree, and the vote of its prunings, to rows in files or on a cluster.

    Parameters
    ----------
    model : TreeVoteEstimator
        The model, whose fitted attributes are set.
    X, y, sample_weight, groups
        As `rows_elsewhere` takes them.
    fit_blocks : callable or None
        ``fit_blocks(executor)`` fits the model to the rows; None: its method `_fit_blocks`.

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
    how = {"groups": groups, "shown": model.verbose > 0}
    with rows_elsewhere(X, y, sample_weight, get_n_threads(model.n_jobs), **how) as parts:
        try:
            (fit_blocks or model._fit_blocks)(parts)
        except InMemory:
            return parts.gathered()[:4]
    return None


def fit_tree_on_parts(model: Any, parts: Executor) -> None:
    """Fit a tree, and the vote of its prunings, to the rows of an executor.

    model: a `TreeVoteEstimator`, whose fitted attributes are set; parts: has the rows. Raise
    `InMemory` if the rows are so few that they must be fitted in memory, and ValueError or
    TypeError if a parameter does not support out-of-core data, or rows are wrong.
    """
    learned = learn(model, parts)
    expect_one_target(learned.found)
    learned = learned.with_numbered_groups(parts)
    n_folds = folds_that_choose(model)
    if n_folds:
        expect_rows_for_classes(learned)
    learned.set_attributes(model)
    model._check_classes()
    parts.keep_to_limit(need_of_tree(learned, n_folds))
    trees = OutOfCoreTrees.from_blocks(
        model, parts, learned, n_folds, check_random_state(model.random_state)
    )
    if is_classifier(model):
        model.sample_hashes_, model._sample_counts = merge_fit_hashes(parts, learned.found.n)
    folds = []
    with model._show_progress(range(n_folds)) as advance:
        for fold in range(n_folds):
            folds += trees.grow_fold(trees.get_validation_mask(fold)).grown
            advance()
        grown, stats, _ = trees.grow_whole()
        advance()
        model._finish_fit(trees.learn_missing(grown), stats, model._tune(folds, advance))


def expect_rows_for_classes(learned: Learned, share: float = 1.0) -> None:
    """Go on in memory where a share of the rows is few for each class."""
    found = learned.found
    n_classes = 1 if found.classes is None else len(found.classes[0])
    if found.n * share < _FEW_ROWS * n_classes:
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
    """

    model: Any
    grower: Cart
    rows: GatheredRows
    samples: BinnedSamples
    weight_unit: float

    @classmethod
    def from_blocks(
        cls,
        model: Any,
        parts: Executor,
        learned: Learned,
        n_folds: int,
        random_state: np.random.RandomState,
    ) -> OutOfCoreTrees:
        """Bin all rows, assign them to folds, and gather them.

        Parameters
        ----------
        model : TreeVoteEstimator
            The model.
        parts : Executor
            Has the rows.
        learned : Learned
            Result of the metadata pass over them.
        n_folds : int
            Number of folds; 0: there are none.
        random_state : RandomState
            Source of the folds and of the seed of the trees.

        Returns
        -------
        OutOfCoreTrees
        """
        grower = expect_histogram_cart(model._resolve_grower(model.grower))
        has_weights, found = learned.weighing is not None, learned.found
        seed = int(random_state.randint(2**31 - 1))
        known = sketched(parts, learned.reader, None, found.n)
        warn_of_identifiers(model, known.sketch)
        dealt = None
        if n_folds:
            dealt = assign_to_folds(parts, learned.reader, n_folds, random_state)
        many = find_rankable_features(model, known.sketch)
        bins, _ = make_parts(
            parts, learned.reader, known, grower.checked_max_bins, dealt, many=many
        )
        # Certified trees have a parameter for repeated rows, duplicates, and need no warning.
        if not (found.are_grouped or hasattr(model, "duplicates")):
            n_repeated = count_repeated_rows(parts, found.n) if dealt is None else dealt.n_repeated
            warn_of_repeated_rows(n_repeated, found.n)
        if many:
            set_row_keys(parts, learned)
        rows = gather_rows(
            parts,
            bins,
            has_classes=is_classifier(model),
            has_weights=has_weights,
            has_folds=n_folds > 0,
            n_many=len(many),
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
            compute_feature_order=lambda: learned.draw_order,
            edges=bins,
            storage=rows.storage,
        )
        unit = round_sum(found.total()) / found.n if has_weights else 1.0
        samples = _make_rankable(model, grower, rows, samples, many, unit)
        return cls(model, grower, rows, samples, unit)

    def get_validation_mask(self, fold: int) -> NDArray[np.bool_]:
        """Return whether each row is in the validation set of a fold, (n,). fold: its number."""
        assert self.rows.fold is not None
        return np.asarray(self.rows.fold == fold)

    def grow_fold(self, is_validation: NDArray[np.bool_]) -> FoldTree:
        """Grow the tree of a fold, and compute statistics of both sets of its rows.

        is_validation: whether each row is in the validation set, (n,). All other rows grow the
        tree.
        """
        n, n_validation = len(is_validation), int(np.count_nonzero(is_validation))
        if n_validation in (0, n):
            return FoldTree([], n - n_validation, n_validation, np.zeros(0, np.int32))
        (tree, _), leaf = self._grow(np.flatnonzero(~is_validation))
        stats = self._compute_stats(tree, leaf, ~is_validation)
        validation = self._compute_stats(tree, leaf, is_validation).table
        return FoldTree([GrownFold(tree, stats, validation)], n - n_validation, n_validation, leaf)

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


def set_row_keys(parts: Executor, learned: Learned) -> None:
    """Replace the hashes of all rows by random keys of the rows, or of their groups."""
    if learned.found.are_grouped:
        set_group_keys(parts, learned.n_groups)
    else:
        set_keys(parts, learned.found.n)


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
    many: tuple[int, ...],
    weight_unit: float,
) -> BinnedSamples:
    """Return samples that can rank the categories of some features; see `RankableRows`.

    many: the features, whose samples are returned as they are if there are none; weight_unit: mean
    weight of a row. Other arguments are those of `OutOfCoreTrees`.
    """
    if not many:
        return samples
    categories = tuple(list_categories(samples.edges, j) for j in many)
    of_rows = HighCardinalityFeatures(many, categories, rows.places.T)
    relative = None if rows.weight is None else np.asarray(rows.weight) / weight_unit
    target = make_target(np.asarray(rows.y), getattr(model, "n_classes_", 1), relative)
    rankable = RankableRows(of_rows, target, np.asarray(rows.keys))
    rank = partial(rankable.rank_samples, samples, grower.n_ranks)
    return replace(samples, rank_categories=rank)


def need_of_tree(
    learned: Learned, n_folds: int, share: float = 1.0, of_leaf: tuple[int, int] = (0, 0)
) -> Need:
    """Estimate from above the memory of a tree of a fraction of the rows, and of its folds.

    learned: result of the metadata pass; n_folds: number of folds; share: the fraction; of_leaf:
    further bytes of each leaf, and of each class of a leaf.
    """
    model = learned.reader
    cart, are_dealt = (
        expect_histogram_cart(model._resolve_grower(model.grower)),
        n_folds > 0 or share < 1,
    )
    n, p = int(np.ceil(share * learned.found.n)), learned.found.n_features
    K = getattr(model, "n_classes_", 1)
    least: Any = cart.min_samples_leaf
    n_leaves = bound_leaves(
        n,
        cart.max_leaf_nodes,
        resolve_max_depth(model.max_depth, p, n),
        int(least) if isinstance(least, Integral) else int(least * n),
    )
    # Hashes of a classifier's rows; the folds of rows, and while they are dealt.
    of_row = 16.0 * is_classifier(model) + 3.0 * (n_folds > 0)
    # Rows of a fold: masks, indices and targets; targets, which are copied and checked before the core
    # takes them; weights, also as integers.
    of_target, is_weighed = 8 if is_classifier(model) else 24, learned.weighing is not None
    of_ranks = count_rank_bytes(learned, MAX_SET_CATEGORIES)
    grown = ((18 if n_folds > 0 else 0) + of_target + 40 * is_weighed + of_ranks) * n
    # Nodes as they are split, and weights of prunings; the trees of folds, which have some of the rows.
    bytes_of_leaf = of_leaf[0] + 450 + (of_leaf[1] + 60) * K + 36 * count_most_categories(learned)
    bytes_of_leaf += max(0, n_folds - 1) * (750 + 130 * K)
    return Need(
        always=of_row * n + count_group_bytes(n, learned.n_groups),
        worked=(40 if are_dealt else 16) * p + p + 200,
        together=300 if are_dealt else 150,
        later=grown + float(bytes_of_leaf) * n_leaves,
        of_thread=100.0 * n_leaves,
        of_thread_row=200,
        scratch_row=(2.2 + are_dealt) * p + 180.0 + 8 * learned.found.are_grouped,
    )


def folds_that_choose(model: Any) -> int:
    """How many folds choose what is not given; 0: all is."""
    if not model._needs_cross_validation():
        return 0
    cv = 5 if model.cv is None else model.cv
    if not isinstance(cv, Integral) or not cv <= _MOST_FOLDS:
        raise ValueError(
            f"cv must be a number of folds, at most {_MOST_FOLDS}, for out-of-core X, got "
            f"{model.cv!r}"
        )
    return int(cv)
