"""Fits of single trees on rows that lie in parts: the model of the same rows in one table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certree.estimators.tune import GrownFold
from certree.grow.bins import Bins
from certree.grow.cart import Cart, expect_histogram_cart
from certree.grow.training_samples import resolve_max_depth
from certree.interface.threads import get_n_threads
from certree.out_of_core.cells_of_tree import FoldOfParts, GrowingRows, growing_rows
from certree.out_of_core.exact_sums import rounded
from certree.out_of_core.executors import Executor, InMemory
from certree.out_of_core.first_look import (
    Learned,
    expect_groups_of_all,
    expect_one_target,
    learn,
)
from certree.out_of_core.fit_hashes import hashes_of_fit
from certree.out_of_core.held_out import deal_to_folds
from certree.out_of_core.keys import n_repeated_rows
from certree.out_of_core.made_parts import make_parts, sketched, warn_of_identifiers
from certree.out_of_core.memory_limit import Need, most_categories, most_leaves
from certree.out_of_core.part import PartOfRows
from certree.out_of_core.rows_elsewhere import rows_elsewhere
from certree.out_of_core.tree_of_parts import BlockGrowthSettings, grow_on_parts
from certree.rows.duplicates import warn_of_repeated_rows
from certree.stats import NodeStats, Stats
from certree.stats.exact_leaf_sums import (
    Reduce,
    RoutedRows,
    count_exactly,
    measure_exactly,
)
from certree.tree import Tree

# So few rows for each class are fitted in memory: of them folds may have fewer than there are classes.
_FEW_ROWS = 20
# Folds are numbered in bytes.
_MOST_FOLDS = 255


def fit_elsewhere(
    model: Any, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Any, Any, Any, Any] | None:
    """Fit a tree and the vote of its prunings to rows in files or on a cluster.

    Parameters
    ----------
    model : TreeVoteEstimator
        The model.
    X, y, sample_weight, groups
        As `rows_elsewhere` takes them.

    Returns
    -------
    tuple of X, y, weights and groups, or None
        Rows so few that they are to be fitted in memory; None: the model is fitted.

    Raises
    ------
    ValueError, TypeError
        If the fit is one that takes rows in memory, or rows are wrong.
    """
    expect_histogram_cart(model._resolve_grower(model.grower))
    how = {"groups": groups, "shown": model.verbose > 0}
    with rows_elsewhere(X, y, sample_weight, get_n_threads(model.n_jobs), **how) as parts:
        try:
            model._fit_blocks(parts)
        except InMemory:
            return parts.gathered()
    return None


def fit_tree_on_parts(model: Any, parts: Executor) -> None:
    """The same of rows that an executor holds."""
    learned = learn(model, parts)
    expect_one_target(learned.found)
    n_folds = folds_that_choose(model)
    if n_folds:
        expect_rows_for_classes(learned)
    expect_groups_of_all(learned.found, parts)
    learned.teach(model)
    model._check_classes()
    parts.keep_to_limit(need_of_tree(learned, n_folds))
    trees = TreesOfParts.of(model, parts, learned, n_folds, check_random_state(model.random_state))
    if is_classifier(model):
        model.sample_hashes_, model._sample_counts = hashes_of_fit(parts, learned.found.n)
    folds = []
    with model._show_progress(range(n_folds)) as advance:
        for fold in range(n_folds):
            folds += trees.fold(FoldOfParts(fold)).grown
            advance()
        tree, lacking, stats = trees.whole()
        advance()
        model._finish_fit(tree.with_missing_nodes(lacking), stats, model._tune(folds, advance))


def expect_rows_for_classes(learned: Learned, share: float = 1.0) -> None:
    """Go on in memory where a share of the rows is few for each class."""
    found = learned.found
    n_classes = 1 if found.classes is None else len(found.classes[0])
    if found.n * share < _FEW_ROWS * n_classes:
        raise InMemory


@dataclass(frozen=True, slots=True, eq=False)
class FoldTree:
    """The tree of a fold and both its sides, if both have rows.

    Parameters
    ----------
    grown : list of GrownFold
        The fold; none if a side has no rows.
    n, n_others : int
        How many rows have grown it, and how many judge it.
    """

    grown: list[GrownFold]
    n: int
    n_others: int


@dataclass(frozen=True, slots=True, eq=False)
class TreesOfParts:
    """What grows the trees of a fit to parts.

    Parameters
    ----------
    model : TreeVoteEstimator
        The model.
    grower : Cart
        Its grower.
    parts : Executor
        Holds the rows, which lie in bins.
    bins : Bins
        These, without codes.
    settings : BlockGrowthSettings
        Settings of the growth, and the kind of target.
    weight_unit : float
        Mean weight of a row; see `NodeStats`.
    """

    model: Any
    grower: Cart
    parts: Executor
    bins: Bins
    settings: BlockGrowthSettings
    weight_unit: float

    @classmethod
    def of(
        cls,
        model: Any,
        parts: Executor,
        learned: Learned,
        n_folds: int,
        random_state: np.random.RandomState,
    ) -> TreesOfParts:
        """Let parts be made of rows that have told what they are, and dealt to so many folds."""
        grower = expect_histogram_cart(model._resolve_grower(model.grower))
        is_weighed, found = learned.weighing is not None, learned.found
        settings = BlockGrowthSettings(
            model.max_depth,
            model._get_monotonic_signs(),
            model._category_mask(),
            int(random_state.randint(2**31 - 1)),
            model.n_jobs,
            learned.draw_order,
            is_classifier(model),
            is_weighed,
        )
        known = sketched(parts, learned.reader, None, found.n)
        warn_of_identifiers(model, known.sketch)
        dealt = None
        if n_folds:
            dealt = deal_to_folds(parts, learned.reader, n_folds, random_state)
        bins, _ = make_parts(parts, learned.reader, known, grower.checked_max_bins, dealt)
        # Certified trees have a parameter for repeated rows, duplicates, and need no warning.
        if not (found.are_grouped or hasattr(model, "duplicates")):
            n_repeated = n_repeated_rows(parts, found.n) if dealt is None else dealt.n_repeated
            warn_of_repeated_rows(n_repeated, found.n)
        unit = rounded(found.total()) / found.n if is_weighed else 1.0
        return cls(model, grower, parts, bins, settings, unit)

    def fold(self, fold: FoldOfParts) -> FoldTree:
        """The tree of a fold, and both its sides."""
        about: GrowingRows = self.parts.collect(growing_rows, fold)
        if about.n == 0 or about.n_others == 0:
            return FoldTree([], about.n, about.n_others)
        tree, _ = grow_on_parts(self.grower, self.parts, self.bins, self.settings, about, fold)
        stats, judging = (self._stats(tree, are_growing) for are_growing in (True, False))
        return FoldTree([GrownFold(tree, stats, judging.table)], about.n, about.n_others)

    def whole(self) -> tuple[Tree, Any, Stats]:
        """The tree of all rows, nodes that compare what some row there lacks, and statistics."""
        about: GrowingRows = self.parts.collect(growing_rows, None)
        tree, lacking = grow_on_parts(self.grower, self.parts, self.bins, self.settings, about)
        return tree, lacking, self._stats(tree, None)

    def _stats(self, tree: Tree, are_growing: bool | None) -> Stats:
        """Statistics of all rows in leaves, of those that have grown the tree, or of the others."""
        ask: Reduce = partial(self.parts.collect, _asked, are_growing)
        if not is_classifier(self.model):
            return measure_exactly(tree, ask, self.weight_unit)
        leaf, y, weight, squared = count_exactly(ask, self.model._output_groups.sizes[0])
        # Sums of weights of 1 are those of their squares, which say nothing then.
        about = self.weight_unit, weight if squared is None else squared
        stats: Stats = self.model._compute_node_stats(tree, leaf, y, weight, *about)
        if squared is None and isinstance(stats, NodeStats):
            return replace(stats, squared_weight=None)
        return stats


def need_of_tree(
    learned: Learned, n_folds: int, share: float = 1.0, of_leaf: tuple[int, int] = (0, 0)
) -> Need:
    """What a tree of a share of the rows and folds of these hold in memory, from above.

    of_leaf: what is held beside of each leaf, and for each of its classes.
    """
    model = learned.reader
    cart, are_dealt = (
        expect_histogram_cart(model._resolve_grower(model.grower)),
        n_folds > 0 or share < 1,
    )
    n, p = int(np.ceil(share * learned.found.n)), learned.found.n_features
    K = getattr(model, "n_classes_", 1)
    least: Any = cart.min_samples_leaf
    n_leaves = most_leaves(
        n,
        cart.max_leaf_nodes,
        resolve_max_depth(model.max_depth, p, n),
        int(least) if isinstance(least, Integral) else int(least * n),
    )
    # Hashes of a classifier's rows; the folds of rows, and while they are dealt.
    of_row = 16.0 * is_classifier(model) + 3.0 * (n_folds > 0)
    # Cells as they are cut, and what prunings weigh; the trees of folds, which have some of the rows.
    bytes_of_leaf = of_leaf[0] + 450 + (of_leaf[1] + 60) * K + 36 * most_categories(learned)
    bytes_of_leaf += max(0, n_folds - 1) * (750 + 130 * K)
    return Need(
        always=of_row * n,
        worked=(40 if are_dealt else 16) * p + p + 200,
        together=300 if are_dealt else 150,
        later=float(bytes_of_leaf) * n_leaves,
        of_thread=100.0 * n_leaves,
        of_thread_row=200,
        sums=7,
        scratch_row=p + 80.0 + 60 * are_dealt + 64 * n_leaves / max(n, 1),
    )


def _asked(part: PartOfRows, are_growing: bool | None, f: Any, *given: Any) -> Any:
    """Ask the rows of a part that know their leaves: all, those that grow a tree, or the others."""
    leaf, y, weight = np.asarray(part.leaf), part.y, part.weight
    if are_growing is not None:
        n = part.n_growing
        rows = np.asarray(part.order[:n] if are_growing else part.order[n:])
        leaf, y, weight = leaf[rows], y[rows], None if weight is None else weight[rows]
    return f(RoutedRows(leaf, y, weight), *given)


def folds_that_choose(model: Any) -> int:
    """How many folds choose what is not given; 0: all is."""
    if not model._needs_cross_validation():
        return 0
    cv = 5 if model.cv is None else model.cv
    if not isinstance(cv, Integral) or not cv <= _MOST_FOLDS:
        raise ValueError(
            f"cv must be a number of folds, at most {_MOST_FOLDS}, where X lies elsewhere, got "
            f"{model.cv!r}"
        )
    return int(cv)
