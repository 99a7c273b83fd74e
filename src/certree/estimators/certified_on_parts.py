"""Fit certified single trees to out-of-core or distributed data."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.certificates.model_selection import PILOT, SHARES
from certree.estimators.trees_on_parts import (
    FoldTree,
    OutOfCoreTrees,
    expect_rows_for_classes,
    folds_that_choose,
    need_of_tree,
)
from certree.estimators.tune import GrownFold, Mixture
from certree.interface.arrays import Float64, Int32
from certree.out_of_core.chunks import without_class_weights
from certree.out_of_core.executors import Executor
from certree.out_of_core.first_look import (
    Learned,
    learn,
    measure_effective_size,
)
from certree.out_of_core.fit_hashes import merge_fit_hashes
from certree.out_of_core.gathered_rows import GatheredRows
from certree.out_of_core.memory_limit import Need
from certree.out_of_core.merged_copies import merge_copies_of_blocks
from certree.out_of_core.sides import (
    TrainCalibrationMasks,
    join_calibration_blocks,
    mark_worst_case,
    route_calibration_rows,
    select_training_set,
    split_blocks,
)
from certree.rows.duplicates import decide_worst_case
from certree.rows.split import TrainCalibrationSplit
from certree.stats import Stats
from certree.stats.exact_leaf_sums import Reduce, RoutedRows
from certree.tree import Tree

# Of the learning curve of the pilot.
_PILOT_FOLDS = 3
# ``reduce(limit)`` returns a `Reduce` over errors divided by the limit.
ErrorReduce = Callable[[float], Reduce]
Mask = NDArray[np.bool_]
# Bytes of a leaf, and for each class of it, by which classifiers are elected.
_OF_LEAF = 1200, 400


@dataclass(slots=True, eq=False)
class CertifiedFitOfParts:
    """A fit to parts of which some rows grow and the others certify.

    Parameters
    ----------
    model : CertifiedTreeClassifier or CertifiedTreeRegressor
        The model, which learns what the rows that grow tell.
    parts : Executor
        Holds all rows.
    known : Learned
        What all rows tell, by which they are dealt.
    classes : ndarray of shape (K,), or None
        The classes that may be predicted, sorted; None: those of the rows that grow.
    """

    model: Any
    parts: Executor
    known: Learned
    classes: NDArray[Any] | None = None

    @classmethod
    def of(cls, model: Any, parts: Executor, classes: Any = None) -> CertifiedFitOfParts:
        """Learn what all rows tell; classes: the argument of `fit`.

        Raises
        ------
        ValueError
            If the fit needs rows in memory.
        """
        _expect_parts(model)
        reader, are_merged = model, model.duplicates == "copies"
        if isinstance(getattr(model, "class_weight", None), str):
            reader = without_class_weights(model)  # rows that certify have no say in them
        known = learn(reader, parts, are_all=not are_merged, has_parts=False)
        expect_rows_for_classes(known, _shares(model)[0])
        known = known.with_numbered_groups(parts)
        parts.keep_to_limit(_need(model, known))
        if are_merged:
            given = parts
            parts = merge_copies_of_blocks(parts, known.reader)
            # Weights of merged rows are multiplied by those of classes.
            reader = reader if parts is given else without_class_weights(model)
            learned = learn(reader, parts, are_all=given.has_weights, has_parts=False)
            known = learned.with_groups_of(known)
        return cls(model, parts, known, None if classes is None else np.unique(classes))

    def _dealt(
        self, share: float, dealing: np.random.RandomState
    ) -> tuple[TrainCalibrationMasks, Executor, Learned]:
        """Both sides, the one that grows, and what it has told the model."""
        sides = split_blocks(self.parts, self.known.reader, share, dealing)
        if self.model.duplicates == "copies":
            sides = replace(sides, repeats=0)
        elif decide_worst_case(sides.repeats, sides.n_certifying, self.model.duplicates):
            sides = replace(sides, is_worst=mark_worst_case(self.parts, sides.n))
        growing = select_training_set(self.parts, sides.reader, sides.division, sides.masks)
        reader = self.model
        if isinstance(getattr(reader, "class_weight", None), dict):
            reader = copy(reader)  # of all classes, some of which may not grow
            reader.class_weight = self.known.reader.class_weight  # None: copies are merged by it
        learned = learn(reader, growing, are_all=False, classes=self.classes)
        learned = learned.with_groups_of(self.known)
        learned.set_attributes(self.model)
        # That of the rows which certify, too, by the same weights of classes.
        size = self.known.attributes["effective_sample_size_"]
        if isinstance(getattr(reader, "class_weight", None), str):
            size = measure_effective_size(self._weighing_all(learned.reader), self.parts)
        self.model.effective_sample_size_ = size
        self.model.preprocessor_ = None
        return sides, growing, learned

    def _weighing_all(self, reader: Any) -> Any:
        """A copy of what reads rows that grow; rows of classes which only certify count once."""
        reader, classes = copy(reader), self.known.found.classes
        assert classes is not None
        reader.class_weight = {**dict.fromkeys(classes[0].tolist(), 1.0), **reader.class_weight}
        return reader

    def pilot(
        self, share: float, dealing: np.random.RandomState, random_state: np.random.RandomState
    ) -> tuple[
        tuple[list[tuple[list[GrownFold], list[tuple[int, int]]]], int], TrainCalibrationMasks
    ]:
        """What a learning curve takes, folds of each size and the number of rows; and both sides."""
        sides, growing, learned = self._dealt(share, dealing)
        trees = OutOfCoreTrees.from_blocks(self.model, growing, learned, _PILOT_FOLDS, random_state)
        folds = []
        for is_swapped in (True, False):
            masks = (trees.get_validation_mask(k) != is_swapped for k in range(_PILOT_FOLDS))
            made = [_without_leaves(one) for one in map(trees.grow_fold, masks) if one.grown]
            grown = [fold for one in made for fold in one.grown]
            folds.append((grown, [(one.n_train, one.n_validation) for one in made]))
        return (folds, self.known.found.n), sides

    def grown(
        self, share: float, dealing: np.random.RandomState, random_state: np.random.RandomState
    ) -> GrownOnSide:
        """Grow the tree of a share of the rows, and choose posteriors by folds of them.

        dealing: source of the order of all rows; random_state: of all else.
        """
        model, n_folds = self.model, folds_that_choose(self.model)
        sides, growing, learned = self._dealt(share, dealing)
        trees = OutOfCoreTrees.from_blocks(model, growing, learned, n_folds, random_state)
        if is_classifier(model):
            classes = self.known.found.classes
            assert classes is not None
            others = np.setdiff1d(classes[0], model.classes_)
            model._calibration_classes = others if self.classes is None else others[:0]
            model.sample_hashes_, model._sample_counts = merge_fit_hashes(growing, learned.found.n)
        with model._show_progress(range(n_folds)) as advance:
            folds, numbers = [], []
            validation_leaf = trees.rows.storage.allocate((learned.found.n,), np.int32)
            for k in range(n_folds):
                is_validation = trees.get_validation_mask(k)
                made = trees.grow_fold(is_validation)
                if made.grown:
                    validation_leaf[is_validation] = made.leaf[is_validation]
                    numbers.append(k)
                folds += made.grown
                advance()
            whole, stats, leaf = trees.grow_whole()
            advance()
            posteriors = model._tune(folds, advance)
        routed, tree = RoutedFolds(trees.rows, leaf, validation_leaf, numbers), whole.encoded_tree
        return GrownOnSide(sides, learned, tree, stats, posteriors, folds, routed)

    def route_calibration_set(
        self, grown: GrownOnSide
    ) -> tuple[TrainCalibrationSplit, Int32, Any, Any]:
        """Return the train/calibration split; leaf, target and weight of each calibration row."""
        sides = grown.sides
        of_all = sides.reader, sides.division, self.classes is not None
        about = grown.learned.reader, grown.tree, *of_all
        worst: list[Any] = sides.is_worst or [None] * len(sides.masks)
        masks = [*zip(sides.masks, worst, strict=True)]
        blocks = self.parts.make(route_calibration_rows, *about, own=masks)
        if is_classifier(self.model):
            model, n = self.model, sides.n_certifying
            beside = model.sample_hashes_, model._sample_counts
            model.sample_hashes_, model._sample_counts = merge_fit_hashes(self.parts, n, beside)
        is_distinct = self.model.duplicates == "copies"
        return join_calibration_blocks(blocks, sides.repeats, is_distinct=is_distinct)


def _without_leaves(fold: FoldTree) -> FoldTree:
    """Return the tree of a fold without the leaves of rows, which take memory."""
    return replace(fold, leaf=fold.leaf[:0].copy())


@dataclass(frozen=True, slots=True, eq=False)
class RoutedFolds:
    """The training rows of a certified fit, and the leaves that they reach.

    Parameters
    ----------
    rows : GatheredRows
        The n rows.
    leaf : ndarray of int32, shape (n,)
        Leaf of each row in the tree of all of them.
    validation_leaf : ndarray of int32, shape (n,)
        Leaf of each row in the tree of the fold whose validation set has the row.
    numbers : list of int
        Numbers of the folds that have a tree.
    """

    rows: GatheredRows
    leaf: Int32
    validation_leaf: Int32
    numbers: list[int]

    def compute_errors(self, values: list[Float64], block: slice) -> tuple[Mask, Float64]:
        """Compute absolute validation errors of a block of rows.

        values: the prediction in each node of the tree of each fold; block: the rows. Return which
        rows of the block are in the validation set of a fold that has a tree, and their errors.
        """
        assert self.rows.fold is not None
        fold, leaf = self.rows.fold[block], self.validation_leaf[block]
        predicted, is_counted = np.zeros(len(fold)), np.zeros(len(fold), dtype=np.bool_)
        for number, of_nodes in zip(self.numbers, values, strict=True):
            is_validation = np.asarray(fold == number)
            predicted[is_validation] = of_nodes[leaf[is_validation]]
            is_counted |= is_validation
        return is_counted, np.abs(self.rows.y[block] - predicted)[is_counted]

    def reduce_errors(self, values: list[Float64], node_map: Int32, n_threads: int) -> ErrorReduce:
        """Return a function of a limit that returns a `Reduce` over errors divided by the limit.

        values: as in `compute_errors`; node_map: number of each node of the tree in the predicting
        tree, (m,); n_threads: number of threads.
        """

        def make_block(limit: float, block: slice) -> RoutedRows:
            is_counted, errors = self.compute_errors(values, block)
            weight = None if self.rows.weight is None else self.rows.weight[block][is_counted]
            return RoutedRows(node_map[self.leaf[block][is_counted]], errors / limit, weight)

        return lambda limit: self.rows.make_reduce(partial(make_block, limit), n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class GrownOnSide:
    """The result of the training set of a certified fit.

    Parameters
    ----------
    sides : TrainCalibrationMasks
        Which rows are in the training set.
    learned : Learned
        Result of the metadata pass over the training set.
    tree : Tree
        The tree that was grown on it.
    stats : NodeStats or TargetStats
        Statistics of its rows in the nodes.
    posteriors : Mixture
        The posteriors that cross-validation has chosen.
    folds : list of GrownFold
        The folds of the cross-validation.
    routed : RoutedFolds
        Its rows, and the leaves that they reach.
    """

    sides: TrainCalibrationMasks
    learned: Learned
    tree: Tree
    stats: Stats
    posteriors: Mixture
    folds: list[GrownFold]
    routed: RoutedFolds

    def collect_errors(
        self, values: list[Float64], node_map: Int32, n_threads: int
    ) -> ValidationErrorSums:
        """Compute absolute validation errors of all folds.

        Parameters
        ----------
        values : list of ndarray of float64
            The prediction in each node of the tree of each fold.
        node_map : ndarray of int32, shape (m,)
            Number of each node of `tree` in the predicting tree.
        n_threads : int
            Number of threads.

        Returns
        -------
        ValidationErrorSums
        """
        rows, largest = self.routed.rows, -1.0
        for begin in range(0, len(rows.y), rows.block_rows):
            block = slice(begin, begin + rows.block_rows)
            errors = self.routed.compute_errors(values, block)[1]
            largest = max(largest, float(errors.max(initial=-1.0)))
        return ValidationErrorSums(
            largest >= 0,
            max(largest, 0.0),
            tuple(self.learned.found.ends[0].tolist()),
            self.routed.reduce_errors(values, node_map, n_threads),
            self.stats.weight_unit,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ValidationErrorSums:
    """Absolute errors of a cross-validation.

    Parameters
    ----------
    has_any : bool
        Whether any row is in the validation set of a fold that has a tree.
    largest : float
        The largest error; 0 if there is none.
    ends : tuple of two floats
        The smallest and the largest target.
    reduce_scaled : callable
        ``reduce_scaled(limit)`` returns a `Reduce` over the errors divided by a limit, in the leaves
        of the predicting tree.
    weight_unit : float
        Mean weight of a training row; see `NodeStats`.
    """

    has_any: bool
    largest: float
    ends: tuple[float, float]
    reduce_scaled: ErrorReduce
    weight_unit: float


def _expect_parts(model: Any) -> None:
    """Raise ValueError for parameters that need rows in memory."""
    folds_that_choose(model)
    if model.preprocessor is not None:
        raise ValueError(
            "preprocessor needs rows in memory, got out-of-core X: load it into a data frame"
        )


def _shares(model: Any) -> tuple[float, float]:
    """The least and the largest share of the rows that may grow the tree."""
    if isinstance(model.train_size, str):
        return PILOT, max(SHARES)
    return model.train_size, model.train_size


def _need(model: Any, known: Learned) -> Need:
    """What the fit holds in memory, from above: to grow a tree, and then to certify it."""
    least, most = _shares(model)
    n_folds = max(folds_that_choose(model), _PILOT_FOLDS if most > least else 0)
    of_leaf = _OF_LEAF if is_classifier(model) else (0, 0)
    n, need = known.found.n, need_of_tree(known, n_folds, most, of_leaf)
    n_certifying, of_weight = (1 - least) * n, 8.0 * (known.weighing is not None)
    # Which rows certify, also while it is decided; and what parts tell of these.
    always = need.always + (3 + of_weight) * n + (12 + of_weight) * n_certifying
    if model.duplicates == "copies":
        always += (
            24 * n
        )  # the weights of merged rows, also as they are told, and those that are kept
    if known.found.are_grouped:
        # Groups of rows on both sides, as they are numbered, collected and kept.
        always += 48 * n
    at_last = _at_last(model, n, n_certifying, of_weight)
    return replace(need, always=always, later=need.later + max(0.0, at_last - always))


def _at_last(model: Any, n: int, n_certifying: float, of_weight: float) -> float:
    """Bytes of what is known of rows where they certify, n_certifying of n."""
    is_small = model.max_leaf_nodes is not None  # which is certified after the whole tree
    if is_classifier(model):
        # Hashes; which rows are on which side, as they are told, kept, and compared with each other;
        # leaves and classes, as they are told and kept, and places.
        of_row, of_certifying = 51 + 8 * is_small, 24 + of_weight + 20 * is_small
    else:
        # Which rows are on which side; leaves, targets and errors, as they are told and put in order.
        of_row, of_certifying = 9, 100 + 15 * is_small
    return (of_row + of_weight) * n + (of_certifying + of_weight) * n_certifying
