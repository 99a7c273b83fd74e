"""Fit certified single trees to out-of-core or distributed data."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.certificates.model_selection import PILOT, SHARES, get_fixed_train_size
from certree.estimators.out_of_core_trees import (
    FoldTree,
    OutOfCoreTrees,
    estimate_tree_memory,
    expect_rows_for_classes,
    get_n_folds,
)
from certree.estimators.tune import GrownFold, Mixture
from certree.interface.arrays import Float64, Int32
from certree.out_of_core.chunks import copy_without_class_weights
from certree.out_of_core.executors import Executor
from certree.out_of_core.fit_hashes import merge_fit_hashes
from certree.out_of_core.gathered_rows import GatheredRows
from certree.out_of_core.memory_limit import MemoryNeed
from certree.out_of_core.merged_copies import merge_copies_of_blocks
from certree.out_of_core.metadata_pass import (
    FitMetadata,
    collect_metadata,
    measure_effective_size,
)
from certree.out_of_core.time_split import LatestPeriod, TimeArguments, read_times
from certree.out_of_core.train_calibration_split import (
    TrainCalibrationMasks,
    join_calibration_blocks,
    mark_worst_case,
    route_calibration_rows,
    select_training_set,
    split_blocks,
)
from certree.rows.duplicates import decide_worst_case
from certree.rows.split import TrainCalibrationSplit
from certree.rows.time_order import raise_for_single_class
from certree.rows.training import get_first_untrained_code
from certree.stats import Stats
from certree.stats.exact_leaf_sums import Reduce, RoutedRows
from certree.tree import Tree

# Number of folds of the pilot's learning curve.
_PILOT_FOLDS = 3
# ``reduce(limit)`` returns a `Reduce` over errors divided by the limit.
ErrorReduce = Callable[[float], Reduce]
Mask = NDArray[np.bool_]
# Bytes of a row with a group, while groups are collected from the blocks and numbered. Measured: 21.
_GROUP_ROW_BYTES = 23.0
# Bytes of a leaf, and of each class in a leaf, while classifiers are selected and certified.
_LEAF_BYTES = 1200, 400


@dataclass(slots=True, eq=False)
class OutOfCoreCertifiedFit:
    """A fit of a certified tree to rows that do not fit into memory or are on several machines.

    Its methods split the rows into a training and a calibration set, grow the tree on the training
    set, and send the calibration rows down that tree. `from_executor` makes the object.

    Parameters
    ----------
    model : CertifiedTreeClassifier or CertifiedTreeRegressor
        The estimator that is fitted. Methods set its fitted attributes on classes and features, by
        the training set.
    executor : Executor
        Reads the blocks of rows, and calls functions on them here or on workers.
    metadata : FitMetadata
        Result of the first pass over all rows: column types, categories, classes, total weight.
    classes : ndarray of shape (K,), or None
        The classes that may be predicted, sorted; None: those of the training set.
    period : LatestPeriod or None
        The times at which the rows are divided into training and calibration set; None: rows are
        assigned at random.
    """

    model: Any
    executor: Executor
    metadata: FitMetadata
    classes: NDArray[Any] | None = None
    period: LatestPeriod | None = None

    @classmethod
    def from_executor(
        cls,
        model: Any,
        executor: Executor,
        order: TimeArguments | None = None,
        classes: Any = None,
    ) -> OutOfCoreCertifiedFit:
        """Check parameters, collect the metadata of all rows, and find where to split them by time.

        With duplicates="copies", rows that equal each other are merged into one first.

        Parameters
        ----------
        model : CertifiedTreeClassifier or CertifiedTreeRegressor
            The estimator that is fitted.
        executor : Executor
            Reads the blocks of rows. Its memory limit is set.
        order : TimeArguments or None
            The arguments `time`, `gap` and `independent` of `fit`; rows of the gap between training
            and calibration set are left out. None: rows have no times.
        classes : array-like of shape (K,), or None
            The classes that may be predicted; None: those of the training set.

        Raises
        ------
        InMemory
            If there are so few rows that they should be fitted in memory.
        ValueError
            If a parameter needs rows in memory, or rows are invalid.
        """
        _expect_out_of_core_parameters(model)
        encoder, are_merged = model, model.duplicates == "copies"
        if isinstance(getattr(model, "class_weight", None), str):
            encoder = copy_without_class_weights(model)  # calibration rows must not affect them
        are_all = not are_merged and order is None
        metadata = collect_metadata(encoder, executor, are_all=are_all, has_calendar_parts=False)
        expect_rows_for_classes(metadata, _get_train_sizes(model)[0])
        metadata = metadata.with_numbered_groups(executor)
        executor.apply_memory_limit(_estimate_memory(model, metadata))
        if are_merged:
            all_rows, of_all = executor, metadata
            if order is not None:
                times = read_times(all_rows, of_all.encoder, order)
                all_rows = times.attach(all_rows, of_all.encoder)
            executor = merge_copies_of_blocks(all_rows, of_all.encoder)
            # Weights of merged rows are multiplied by class weights already.
            encoder = encoder if executor is all_rows else copy_without_class_weights(model)
            are_all = all_rows.has_weights and order is None
            metadata = collect_metadata(
                encoder, executor, are_all=are_all, has_calendar_parts=False
            ).with_groups_of(of_all)
        period = None
        if order is not None:
            times = read_times(executor, metadata.encoder, order)
            size = get_fixed_train_size(model.train_size, has_times=True)
            assert size is not None
            period = times.find_period(executor, size)
            executor = period.attach(executor, metadata.encoder)
            are_all = not are_merged or all_rows.has_weights
            metadata = collect_metadata(
                encoder, executor, are_all=are_all, has_calendar_parts=False
            ).with_groups_of(metadata)
        known = None if classes is None else np.unique(classes)
        return cls(model, executor, metadata, known, period)

    def _split(
        self, train_size: float, split_state: np.random.RandomState
    ) -> tuple[TrainCalibrationMasks, Executor, FitMetadata]:
        """Split the rows, and set the model's fitted attributes on classes and features.

        The attributes come from the training set alone. train_size: fraction of the rows in the
        training set; split_state: random generator of the split, not used for a split by time.
        Return the masks of the calibration rows by block, an executor of the training set alone,
        and the metadata of the training set.
        """
        cut = None if self.period is None else self.period.cut
        split = split_blocks(self.executor, self.metadata.encoder, train_size, split_state, cut)
        if self.model.duplicates == "copies":
            split = replace(split, repeats=0)
        elif decide_worst_case(split.repeats, split.n_calibration, self.model.duplicates):
            split = replace(split, is_worst=mark_worst_case(self.executor, split.n))
        train = select_training_set(self.executor, split.encoder, split.sorter, split.masks)
        encoder = self.model
        if isinstance(getattr(encoder, "class_weight", None), dict):
            # Weights of all classes, some of which may not be in the training set; None after copies
            # of rows were merged, whose weights are multiplied by class weights already.
            encoder = copy(encoder)
            encoder.class_weight = self.metadata.encoder.class_weight
        metadata = collect_metadata(encoder, train, are_all=False, classes=self.classes)
        metadata = metadata.with_groups_of(self.metadata)
        column = None if self.period is None else self.period.times.arguments.stored_name
        metadata.set_attributes(self.model, column)
        # The effective sample size is that of all rows, with the class weights of the training set.
        size = self.metadata.attributes["effective_sample_size_"]
        if isinstance(getattr(encoder, "class_weight", None), str):
            size = measure_effective_size(self._weight_all_classes(metadata.encoder), self.executor)
        self.model.effective_sample_size_ = size
        self.model.preprocessor_ = None
        return split, train, metadata

    def _weight_all_classes(self, encoder: Any) -> Any:
        """Return a copy of an encoder with weight 1 for classes that only calibration rows have.

        encoder: copy of the model whose `class_weight` is a dictionary with the weights of the
        classes of the training set.
        """
        encoder, classes = copy(encoder), self.metadata.rows.classes
        assert classes is not None
        encoder.class_weight = {**dict.fromkeys(classes[0].tolist(), 1.0), **encoder.class_weight}
        return encoder

    def grow_pilot(
        self,
        train_size: float,
        split_state: np.random.RandomState,
        random_state: np.random.RandomState,
    ) -> tuple[
        tuple[list[tuple[list[GrownFold], list[tuple[int, int]]]], int], TrainCalibrationMasks
    ]:
        """Grow the trees from whose errors a learning curve chooses the size of the training set.

        Parameters
        ----------
        train_size : float
            Fraction of the rows in the first training set (the pilot), which is divided into three
            folds.
        split_state, random_state : RandomState
            Random generators: of the train/calibration split; of the folds and the seed of the
            trees.

        Returns
        -------
        pilot : tuple
            First a list of two pairs, for trees that grow on one fold and for trees that grow on
            two. A pair has the list of `GrownFold` (tree, and node statistics of its training and
            validation rows), and the list of (number of training rows, number of validation rows)
            of each. Then the number of all rows.
        split : TrainCalibrationMasks
            Which rows are calibration rows.
        """
        split, train, metadata = self._split(train_size, split_state)
        trees = OutOfCoreTrees.from_blocks(self.model, train, metadata, _PILOT_FOLDS, random_state)
        folds = []
        for is_swapped in (True, False):
            pairs = (trees.get_fold(k) for k in range(_PILOT_FOLDS))
            sets = (pair[::-1] if is_swapped else pair for pair in pairs)
            trained = [_drop_leaves(fold) for fold in starmap(trees.grow_fold, sets) if fold.grown]
            grown = [fold for of_fold in trained for fold in of_fold.grown]
            folds.append((grown, [(fold.n_train, fold.n_validation) for fold in trained]))
        return (folds, self.metadata.rows.n), split

    def grow(
        self,
        train_size: float,
        split_state: np.random.RandomState,
        random_state: np.random.RandomState,
    ) -> GrownTrainingSet:
        """Grow the tree of the training set, and choose posteriors by cross-validation in it.

        A posterior is a distribution over the prunings of the tree (the tree after some nodes have
        become leaves). train_size: fraction of the rows in the training set; split_state,
        random_state: random generators of the train/calibration split, and of the folds and the
        seed of the trees. Sets the model's attributes on classes, features and hashes of its rows.
        """
        model, n_folds = self.model, get_n_folds(self.model)
        split, train, metadata = self._split(train_size, split_state)
        gap = None if self.period is None else self.period.times.rows.gap
        if self.period is not None and is_classifier(model):
            classes = metadata.rows.classes
            assert classes is not None
            if len(classes[0]) == 1:
                label = classes[0].tolist()[0]
                about = metadata.rows.n, self.period.earlier, label
                raise_for_single_class("training", *about, has_groups=self.period.has_groups)
        trees = OutOfCoreTrees.from_blocks(model, train, metadata, n_folds, random_state, gap)
        n_folds = trees.n_folds
        if is_classifier(model):
            classes = self.metadata.rows.classes
            assert classes is not None
            others = np.setdiff1d(classes[0], model.classes_)
            model._calibration_classes = others if self.classes is None else others[:0]
            model.sample_hashes_, model._sample_counts = merge_fit_hashes(train, metadata.rows.n)
        with model._show_progress(range(n_folds)) as advance:
            folds, numbers = [], []
            validation_leaf = trees.rows.storage.allocate((metadata.rows.n,), np.int32)
            for k in range(n_folds):
                is_train, is_validation = trees.get_fold(k)
                fold = trees.grow_fold(is_train, is_validation)
                if fold.grown:
                    validation_leaf[is_validation] = fold.leaf[is_validation]
                    numbers.append(k)
                folds += fold.grown
                advance()
            whole, stats, leaf = trees.grow_whole()
            advance()
            posteriors = model._tune(folds, advance)
        routed, tree = RoutedFolds(trees.rows, leaf, validation_leaf, numbers), whole.encoded_tree
        return GrownTrainingSet(split, metadata, tree, stats, posteriors, folds, routed)

    def route_calibration_set(
        self, grown: GrownTrainingSet
    ) -> tuple[TrainCalibrationSplit, Int32, Any, Any]:
        """Find the leaf that each calibration row reaches in the grown tree.

        grown: result of `grow`, of which the tree and the split are used. Return a tuple of the
        train/calibration split (row numbers in memory) and, for the n calibration rows, the node
        numbers of their leaves, (n,) int32, targets, (n,), and weights, (n,) or None for 1. For a
        classifier the hashes of the calibration rows are added to those that the model stores.
        """
        split, model = grown.split, self.model
        worst: list[Any] = split.is_worst or [None] * len(split.masks)
        blocks = self.executor.make_blocks(
            route_calibration_rows,
            grown.metadata.encoder,
            grown.tree,
            split.encoder,
            split.sorter,
            self.classes is not None,
            per_block=[*zip(split.masks, worst, strict=True)],
        )
        if is_classifier(model):
            n, of_train = split.n_calibration, (model.sample_hashes_, model._sample_counts)
            hashes, counts = merge_fit_hashes(self.executor, n, of_train)
            model.sample_hashes_, model._sample_counts = hashes, counts
        is_distinct = model.duplicates == "copies"
        joined = join_calibration_blocks(blocks, split.repeats, split.keys, is_distinct=is_distinct)
        return joined if self.period is None else self._add_period(*joined)

    def _add_period(
        self, split: TrainCalibrationSplit, leaf: Int32, y: Any, weight: Any
    ) -> tuple[TrainCalibrationSplit, Int32, Any, Any]:
        """Return the four arguments, with the period of the calibration rows added to the split.

        The period has the times of the earliest and the latest of these rows, as text. split, leaf,
        y, weight: result of `join_calibration_blocks`: the train/calibration split, and the node
        number of the leaf, (n,), target, (n,), and weight, (n,) or None, of each calibration row.
        Call it only for a split by time. Raise ValueError if all calibration rows of a classifier
        have one class.
        """
        assert self.period is not None
        if is_classifier(self.model) and (y == y[0]).all():
            classes, others = self.model.classes_, self.model._calibration_classes
            first = get_first_untrained_code(len(classes))
            label = classes[y[0]] if y[0] < first else others[y[0] - first]
            about = len(y), self.period.latest, np.array(label).tolist()
            raise_for_single_class("calibration", *about, has_groups=self.period.has_groups)
        return replace(split, period=self.period.latest, units=None), leaf, y, weight


def _drop_leaves(fold: FoldTree) -> FoldTree:
    """Return a copy of a fold's tree and statistics with an empty array `leaf`, to free memory.

    fold: the fold, whose `leaf` has the leaf of each training row; in the copy its shape is (0,).
    """
    return replace(fold, leaf=fold.leaf[:0].copy())


@dataclass(frozen=True, slots=True, eq=False)
class RoutedFolds:
    """The training rows of a certified fit, with the leaves that they reach in the fit's trees.

    There is one tree of all training rows, and a tree for each cross-validation fold.

    Parameters
    ----------
    rows : GatheredRows
        The n training rows: bin codes, targets, weights and fold numbers.
    leaf : ndarray of int32, shape (n,)
        Node number of the leaf that each row reaches in the tree of all training rows.
    validation_leaf : ndarray of int32, shape (n,)
        Node number of the leaf that each row reaches in the tree of the fold whose validation set
        contains the row; undefined for rows of folds without a tree.
    numbers : list of int
        Numbers of the folds that have a tree.
    """

    rows: GatheredRows
    leaf: Int32
    validation_leaf: Int32
    numbers: list[int]

    def compute_errors(self, node_predictions: list[Float64], block: slice) -> tuple[Mask, Float64]:
        """Compute absolute errors of the trees of the folds on their validation rows, for a block.

        node_predictions: for each fold in `numbers`, the prediction of each node of its tree;
        block: slice of the n training rows. Return a mask, (n_block,), of the rows that are in the
        validation set of a fold with a tree, and the absolute errors of these rows, in units of the
        target.
        """
        assert self.rows.fold is not None
        fold, leaf = self.rows.fold[block], self.validation_leaf[block]
        predicted, is_counted = np.zeros(len(fold)), np.zeros(len(fold), dtype=np.bool_)
        for number, of_nodes in zip(self.numbers, node_predictions, strict=True):
            is_validation = np.asarray(fold == number)
            predicted[is_validation] = of_nodes[leaf[is_validation]]
            is_counted |= is_validation
        return is_counted, np.abs(self.rows.y[block] - predicted)[is_counted]

    def reduce_errors(
        self, node_predictions: list[Float64], node_map: Int32, n_threads: int
    ) -> ErrorReduce:
        """Return a function that prepares sums over the validation errors of all rows.

        The result takes a number, the limit, by which errors are divided, and returns a function
        ``reduce(f, *arguments)``. That one returns the sum of ``f(block, *arguments)`` over blocks
        of rows. A block (`RoutedRows`) has the node number of the leaf in the predicting tree, the
        absolute error divided by the limit, and the weight of each row.

        node_predictions: for each fold in `numbers`, the prediction of each node of its tree;
        node_map: for each node of the tree of all training rows, the node of the predicting tree (a
        smaller copy of it) that contains it, (m,); n_threads: number of threads.
        """

        def make_block(limit: float, block: slice) -> RoutedRows:
            is_counted, errors = self.compute_errors(node_predictions, block)
            weight = None if self.rows.weight is None else self.rows.weight[block][is_counted]
            return RoutedRows(node_map[self.leaf[block][is_counted]], errors / limit, weight)

        return lambda limit: self.rows.make_reduce(partial(make_block, limit), n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class GrownTrainingSet:
    """The tree of the training set of a certified fit, with its statistics and posteriors.

    `OutOfCoreCertifiedFit.grow` makes it.

    Parameters
    ----------
    split : TrainCalibrationMasks
        Which rows are calibration rows; all others are training rows.
    metadata : FitMetadata
        Result of the metadata pass over the training set: column types, categories, classes.
    tree : Tree
        The tree that was grown on the training set, with m nodes, for encoded rows.
    stats : NodeStats or TargetStats
        Class counts, or moments of the target, of the training rows in each node.
    posteriors : Mixture
        The inverse temperatures (factors of loss and size in the log weight of a pruning) that
        cross-validation has chosen.
    folds : list of GrownFold
        The tree of each cross-validation fold, with node statistics of its training and validation
        rows.
    routed : RoutedFolds
        The training rows, and the leaves that they reach in all trees.
    """

    split: TrainCalibrationMasks
    metadata: FitMetadata
    tree: Tree
    stats: Stats
    posteriors: Mixture
    folds: list[GrownFold]
    routed: RoutedFolds

    def collect_errors(
        self, node_predictions: list[Float64], node_map: Int32, n_threads: int
    ) -> ValidationErrorSums:
        """Compute the absolute errors of the trees of the folds on their validation rows.

        Parameters
        ----------
        node_predictions : list of ndarray of float64
            For each fold, the prediction of each node of its tree.
        node_map : ndarray of int32, shape (m,)
            For each node of `tree`, the number of the node that contains it in the predicting tree,
            a pruned copy of `tree`.
        n_threads : int
            Number of threads.

        Returns
        -------
        ValidationErrorSums
            The largest error, the range of the targets, and a function that sums the errors by leaf
            of the predicting tree.
        """
        rows, largest = self.routed.rows, -1.0
        for begin in range(0, len(rows.y), rows.block_rows):
            block = slice(begin, begin + rows.block_rows)
            errors = self.routed.compute_errors(node_predictions, block)[1]
            largest = max(largest, float(errors.max(initial=-1.0)))
        return ValidationErrorSums(
            largest >= 0,
            max(largest, 0.0),
            tuple(self.metadata.rows.ends[0].tolist()),
            self.routed.reduce_errors(node_predictions, node_map, n_threads),
            self.stats.weight_unit,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ValidationErrorSums:
    """Absolute errors of cross-validation, by leaf of the tree that predicts.

    Parameters
    ----------
    has_any : bool
        Whether any row is in the validation set of a fold that has a tree.
    largest : float
        The largest error, in units of the target; 0 if there is none.
    ends : tuple of two floats
        The smallest and the largest target of the training rows.
    reduce_scaled : callable
        ``reduce_scaled(limit)`` returns a function ``reduce(f, *arguments)``, which adds up
        ``f(block, *arguments)`` over blocks of validation rows. A block (`RoutedRows`) has the node
        number of the leaf in the predicting tree, the error divided by `limit`, and the weight of
        each row.
    weight_unit : float
        Mean weight of a training row; sums of weights are divided by it to get numbers of rows.
    """

    has_any: bool
    largest: float
    ends: tuple[float, float]
    reduce_scaled: ErrorReduce
    weight_unit: float


def _expect_out_of_core_parameters(model: Any) -> None:
    """Raise ValueError if a parameter of a certified tree needs rows in memory.

    model: the estimator. Its `preprocessor` must be None, and `cv` None or a number of folds.
    """
    get_n_folds(model)
    if model.preprocessor is not None:
        raise ValueError(
            "preprocessor must be None for out-of-core or distributed X: remove it, or pass X as a "
            "data frame in memory"
        )


def _get_train_sizes(model: Any) -> tuple[float, float]:
    """Return the smallest and the largest fraction of training rows that a fit may choose.

    model: the estimator. Both are its parameter `train_size`; with "auto" they are 0.35 and 0.85.
    """
    if isinstance(model.train_size, str):
        return PILOT, max(SHARES)
    return model.train_size, model.train_size


def _estimate_memory(model: Any, metadata: FitMetadata) -> MemoryNeed:
    """Return an upper estimate of the memory of a certified fit to out-of-core rows.

    It covers the growth of the tree, then the certificates. model: the estimator; metadata: numbers
    of rows, features and classes, from the metadata pass.
    """
    least, most = _get_train_sizes(model)
    n_folds = max(get_n_folds(model), _PILOT_FOLDS if most > least else 0)
    leaf_bytes = _LEAF_BYTES if is_classifier(model) else (0, 0)
    n, need = metadata.rows.n, estimate_tree_memory(metadata, n_folds, most, leaf_bytes)
    n_calibration, weight_bytes = (1 - least) * n, 8.0 * (metadata.weight_scaling is not None)
    # Masks of calibration rows, twice while they are computed; leaves and targets of these rows.
    fixed = need.fixed + (3 + weight_bytes) * n + (12 + weight_bytes) * n_calibration
    if model.duplicates == "copies":
        fixed += 24 * n  # weights of merged rows, three times while they are collected
    if metadata.rows.are_grouped:
        fixed += _GROUP_ROW_BYTES * n
    else:
        fixed += 8 * n_calibration  # keys of repeated rows
    certifying = _estimate_certificate_bytes(model, n, n_calibration, weight_bytes)
    after_reading = need.after_reading + max(0.0, certifying - fixed)
    return replace(need, fixed=fixed, after_reading=after_reading)


def _estimate_certificate_bytes(
    model: Any, n: int, n_calibration: float, weight_bytes: float
) -> float:
    """Return an upper estimate of the bytes for the rows while the grown tree is certified.

    model: the estimator; n, n_calibration: numbers of all rows, and of calibration rows;
    weight_bytes: bytes of a row's weight, 0 if rows have no weights.
    """
    has_pruning = model.max_leaf_nodes is not None  # a small tree is certified after the whole one
    if is_classifier(model):
        # Hashes; masks of both sets, collected, stored and compared; leaves and classes, collected and
        # stored, and positions.
        row_bytes, calibration_bytes = 51 + 8 * has_pruning, 24 + weight_bytes + 20 * has_pruning
    else:
        # Masks of both sets; leaves, targets and errors, collected and sorted.
        row_bytes, calibration_bytes = 9, 100 + 15 * has_pruning
    return (row_bytes + weight_bytes) * n + (calibration_bytes + weight_bytes) * n_calibration
