"""Random forests and extra trees, as scikit-learn estimators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, cast
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree._core import average_leaves
from certree.ensembles.forest_importances import (
    add_impurity_importances,
    compute_permutation_importances,
    sum_in_bag_targets,
)
from certree.ensembles.forest_leaves import (
    AUTO_FILLS,
    FILLED_BY,
    NAMED_LEAVES,
    PLAIN_LEAVES,
    LeafStatistics,
    Leaves,
    compute_leaf_values,
    compute_mean_weight,
    expand_to_all_classes,
)
from certree.ensembles.forest_samples import (
    ForestSamples,
    InputRows,
    SortedFeatures,
)
from certree.ensembles.label_columns import LabelColumns
from certree.ensembles.losses import SquaredLoss
from certree.ensembles.out_of_core_forest import read_forest_samples
from certree.ensembles.staged import to_prediction_shape
from certree.explain.additive_trees import AdditiveTrees
from certree.explain.output_groups import OutputGroups
from certree.explain.several_targets import compute_subset_accuracy, select_classes
from certree.explain.tree_model import TreeModel
from certree.export.formula import Formula, Link
from certree.grow.binned_grower import BinnedGrower, GrownForest, RowSampling
from certree.grow.training_samples import expect_poisson_targets, resolve_max_features
from certree.interface.arrays import (
    Float64,
    Int32,
    Int64,
    check_column,
    to_row_order,
)
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import check_parameters_of_fit, fit_method, snapshot_method
from certree.interface.progress import show_progress
from certree.interface.signatures import COUNT, NONNEGATIVE, ROUNDS
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.interface.threads import N_JOBS, get_n_threads_or_all
from certree.out_of_core.chunks import copy_without_large_attributes
from certree.out_of_core.executors import Executor
from certree.out_of_core.lazy_predictions import support_dask_collections
from certree.out_of_core.open_rows import open_rows
from certree.out_of_core.scratch import open_scratch
from certree.out_of_core.time_split import TimeArguments
from certree.rows.monotonic import MonotonicCst, MonotonicSigns, check_monotonic_cst
from certree.rows.out_of_core import is_out_of_core
from certree.rows.sparse_rows import is_mostly_zero
from certree.rows.training import training_rows
from certree.tree import Trees

LeavesName = Literal["auto", "plain", "refilled", "shrunk", "honest"]
MaxFeatures = int | float | Literal["sqrt", "log2"] | None

_FRACTION = Interval(Real, 0, 1, closed="right")
_FEATURES = [COUNT, Interval(Real, 0, 1, closed="right"), StrOptions({"sqrt", "log2"}), None]

# Parameters that may change between fits with warm_start=True: they do not affect how trees grow.
# Numbers of `Leaves` in model files must not be larger.
_MOST_SHRINKAGE = 2.0**16
_CHANGEABLE_PARAMETERS = ("n_estimators", "leaves", "oob_score", "warm_start")

# Trees that grow between two updates of the progress bar.
_TREES_PER_UPDATE = 10
# Jobs per worker of a cluster; several, as some workers are slower.
_JOBS_PER_WORKER = 4


class Forest(TreeModel):
    """Base class of all forests: parameters of growth, and methods that every fitted forest has.

    A forest predicts the mean of its trees' leaf values. A subclass has the constructor, sets
    `trees_` in `fit`, and defines `_link` and `_build_formula`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [ROUNDS],
        "max_depth": [COUNT, None],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "min_samples_leaf": [COUNT, Interval(Real, 0, 1, closed="neither")],
        "max_features": _FEATURES,
        "max_features_per_tree": _FEATURES,
        "min_impurity_decrease": [NONNEGATIVE],
        "splitter": [StrOptions({"best", "random"})],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    _takes_infinities: ClassVar[bool] = True

    trees_: Trees

    def _compute_growth_parameters(self, n: int, p: int) -> dict[str, Any]:
        """Translate the parameters of the estimator into arguments of `BinnedGrower`.

        n: number of rows, to which fractions in `min_samples_split` and `min_samples_leaf` refer;
        p: number of features, likewise for `max_features`. Return nine arguments by name: "order"
        ("depth", or "best" if the best split is made first), "max_leaves", "max_depth",
        "max_features", "max_features_per_tree", "random_cuts" (whether splits are drawn at random),
        "min_samples_split", "min_samples_leaf" and "min_gain". Numbers of rows and features are
        integers there; None is no limit.
        """
        min_split = _resolve_min_rows(self.min_samples_split, n, 2)
        min_leaf = _resolve_min_rows(self.min_samples_leaf, n, 1)
        return {
            "order": "depth" if self.max_leaf_nodes is None else "best",
            "max_leaves": self.max_leaf_nodes,
            # p features are drawn in random order, so that ties do not always go to the first ones.
            "max_features": resolve_max_features(self.max_features, p) or p,
            "max_features_per_tree": resolve_max_features(self.max_features_per_tree, p),
            "random_cuts": self.splitter == "random",
            "max_depth": self.max_depth,
            "min_samples_split": max(min_split, 2 * min_leaf),
            "min_samples_leaf": min_leaf,
            "min_gain": float(self.min_impurity_decrease),
        }

    @snapshot_method
    def __len__(self) -> int:
        """Return the number of trees; raise NotFittedError before a fit."""
        check_is_fitted(self)
        return len(self.trees_)

    def __bool__(self) -> bool:
        """Return True, also before a fit, when `len` raises an error."""
        return True

    def _average_trees(self, X: Any) -> Float64:
        """Compute the mean over trees of the leaf values of each row, (n, n_outputs).

        X: rows as users pass them, (n, p), which are checked and encoded. n_outputs: number of
        values of a leaf.
        """
        return to_row_order(self._score_in_blocks(X, self._sum_trees)) / len(self.trees_)

    def _sum_trees(self, rows: NDArray[Any]) -> Float64:
        """Compute the sum over trees of the leaf values of each row, (n_outputs, n).

        rows: encoded rows, (n, p), which are numbers and category codes. n_outputs: number of
        values of a leaf.
        """
        n = rows.shape[0]
        start = np.zeros((self.trees_.value.shape[1], n))
        return self.trees_.add(start, rows, get_n_threads_or_all(self.n_jobs, n))

    def _get_rows_per_node(self) -> Float64 | None:
        """Return the total weight of the in-bag rows in each node, (n_nodes,), or None.

        In-bag rows are those that the node's tree was grown on. None if they are not kept, as in
        this base class.
        """
        return None

    @snapshot_method
    def apply(self, X: ArrayLike) -> Int64:
        """Find the leaf of each row in each tree.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of int64, shape (n, T)
            Index of the leaf among the nodes of its tree, for each of the T trees.
        """
        return np.ascontiguousarray(self._find_leaves(X).T - self.trees_.root)

    def _find_leaves(self, X: ArrayLike) -> Int32:
        """Find the leaf of each row in each tree, (T, n), as an index among the nodes of all trees.

        X: rows as users pass them, (n, p).
        """
        rows = self._encode_new_rows_or_csr(X)
        return self.trees_.find_leaves(rows, get_n_threads_or_all(self.n_jobs, rows.shape[0]))

    @snapshot_method
    def decision_path(self, X: ArrayLike) -> tuple[sparse.csr_matrix, Int64]:
        """Find the nodes on the path of each row in each tree.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        indicator : sparse matrix of shape (n, m)
            1 if the row passes through the node, or ends in it. Columns are the m nodes of all T
            trees, tree after tree.
        n_nodes_ptr : ndarray of int64, shape (T + 1,)
            Columns ``n_nodes_ptr[t]``, ..., ``n_nodes_ptr[t + 1] - 1`` are the nodes of tree t.
        """
        leaf = self._find_leaves(X)
        return self.trees_.paths_to(leaf), np.append(self.trees_.root, self.trees_.n_nodes)

    @snapshot_method
    def proximity(self, X: ArrayLike, pairs: ArrayLike) -> Float64:
        """Compute the fraction of the trees in which two rows reach the same leaf.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        pairs : array-like of int, shape (m, 2)
            Indices of two rows of X for each pair.

        Returns
        -------
        ndarray of shape (m,)
            The fraction for each pair, in [0, 1].

        Raises
        ------
        ValueError
            If `pairs` has another shape, or indices outside 0 .. n - 1.
        """
        rows = self._encode_new_rows_or_csr(X)
        n = rows.shape[0]
        indices = np.asarray(pairs)
        if indices.ndim != 2 or indices.shape[1] != 2 or indices.dtype.kind not in "iu":
            raise ValueError(
                "pairs must be an array of integers of shape (m, 2), got dtype "
                f"{indices.dtype} and shape {indices.shape}: pass two row indices for each pair"
            )
        if indices.size and (indices.min() < 0 or indices.max() >= n):
            raise ValueError(
                f"pairs must hold indices of rows in 0 .. {n - 1}, got {indices.min()} .. "
                f"{indices.max()}: count rows of X from 0"
            )
        n_shared = np.zeros(len(indices))
        for leaf in self.trees_.find_leaves(rows, get_n_threads_or_all(self.n_jobs, n)):
            n_shared += leaf[indices[:, 0]] == leaf[indices[:, 1]]
        return n_shared / len(self.trees_)

    def _compute_contributions(self, rows: NDArray[Any]) -> tuple[Float64, Float64]:
        trees = self.trees_
        return trees.root_value / len(trees), trees.compute_contributions(
            rows, get_n_threads_or_all(self.n_jobs, len(rows))
        ) / len(trees)

    @snapshot_method
    def _get_additive_trees(self) -> AdditiveTrees:
        """Return the model as a constant plus a sum of trees, from which explanations are computed.

        Leaf values are divided by the number of trees, and the constant is 0. The result holds the
        trees, the constant, and the weight of in-bag rows per node if it is stored.
        """
        check_is_fitted(self)
        trees = self.trees_.with_value(self.trees_.value / len(self.trees_))
        start = np.zeros(trees.value.shape[1])
        return AdditiveTrees(
            trees, start, self._get_rows_per_node(), self._build_explanation_fields
        )

    def _finish_restore(self, stored: StoredState) -> None:
        """Check the forest that was read from a model file: raise ValueError if it has no tree.

        Loading calls it after the attributes are set. stored: content of the model file.
        """
        super()._finish_restore(stored)
        if not len(self.trees_):
            raise DamagedModelError("the model file's forest must have at least one tree, got none")


class ForestClassifier(ClassifierMixin, Forest):
    """Base class of forests for classes.

    The value of a leaf is a probability for each class; of two classes, only that of the second. A
    subclass defines `_power`, and has the constructor and `fit`.
    """

    @property
    @abstractmethod
    def _power(self) -> float:
        """Exponent of the class probabilities after they are averaged over trees.

        They are then divided by their sum. 1 leaves them unchanged.
        """

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        rows = self._get_rows_per_node()
        return self._make_formula(self.trees_, "forest", "shares", rows=rows, power=self._power)

    def _link(self) -> Link:
        return "shares"

    def _compute_probabilities(self, mean: Float64, power: float) -> Any:
        """Compute class probabilities, (n, K), from the mean of the trees' leaf values.

        mean: (n, K), or (n, 1) with that of the second of two classes; power: exponent of the mean
        probabilities, which are then divided by their sum. Subclasses with several targets return a
        list of such arrays.
        """
        return _compute_probabilities(mean, self.n_classes_, power)

    @snapshot_method
    @support_dask_collections
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row: the most probable one; ties go to the first in `classes_`.

        Parameters
        ----------
        X : array-like of shape (n, p), or Dask collection
            Rows. For a Dask array or data frame the result is a lazy Dask collection.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            Predicted classes; a column for each of several targets.
        """
        probabilities = self._compute_probabilities(self._average_trees(X), 1.0)
        return select_classes(self.classes_, probabilities)

    @snapshot_method
    @support_dask_collections
    def predict_proba(self, X: ArrayLike) -> Any:
        """Predict the probabilities of the classes for each row.

        Parameters
        ----------
        X : array-like of shape (n, p), or Dask collection
            Rows. For a Dask array or data frame the result is a lazy Dask collection.

        Returns
        -------
        ndarray of shape (n, K), or list of them
            Probabilities in the order of `classes_`; for several targets a list with one array
            each.
        """
        return self._compute_probabilities(self._average_trees(X), self._power)


def _compute_probabilities(mean: Float64, n_classes: int, power: float) -> Float64:
    """Raise mean leaf values to a power and normalise them to probabilities of all classes, (n, K).

    mean: class probabilities averaged over trees, (n, K), or (n, 1) with that of the second of two
    classes; NaN for rows without a prediction, which stay NaN. n_classes: K; a single class has
    probability 1. power: exponent of the averaged probabilities.
    """
    if n_classes == 1:
        return np.where(np.isnan(mean), np.nan, 1.0)
    raised: Float64 = expand_to_all_classes(mean) ** power
    return raised / raised.sum(axis=1, keepdims=True)


def _read_leaf_values(stored: StoredState, name: str, model: TreeForest) -> Trees:
    """Return the trees of a model file, with values (n_nodes, n_outputs): 0 at inner nodes.

    stored, name: the content of the file, and the section of the trees in it. model: the model that
    is restored, which determines n_outputs (number of values of a leaf). Raise ValueError if the
    section is malformed, or if probabilities of classes are not in 0 .. 1.
    """
    is_leaf = ~check_column(f"{name}.compares", stored[f"{name}.compares"], "bool", (None,))
    value = np.zeros((len(is_leaf), model._output_groups.n_outputs))
    shape, limits = (int(is_leaf.sum()), value.shape[1]), (0.0, 1.0) if model._has_classes else ()
    value[is_leaf] = stored.get_numbers(f"{name}.value", shape, *limits)
    return model._restore_trees(Trees, stored.get_section(name), value=value)


def _read_leaf_rows(stored: StoredState, name: str, model: TreeForest) -> Float64:
    """Return the total weight of the in-bag rows of each leaf, 0 at inner nodes, (n_nodes,).

    stored, name: the content of a model file, and the name of the weights of the leaves in it.
    model: the model that is restored, with its trees.
    """
    rows, is_leaf = np.zeros(model.trees_.n_nodes), model.trees_.is_leaf
    rows[is_leaf] = stored.get_numbers(name, (int(is_leaf.sum()),), 0)
    return rows


class TreeForest(Forest):
    """Base class of `TreeForestClassifier` and `TreeForestRegressor`.

    A fit sorts the rows by a hash of their content, so that the model does not depend on their
    order. Then it bins the features, grows all trees, and computes the leaf values of all trees.
    Subclasses implement growth (`_grow_trees`, `_collect_node_sums`, `_compute_target_scale`) and
    out-of-bag scores (`_predict_out_of_bag`, `_score_out_of_bag`) for classes and for numbers.

    n_outputs is the number of values of a leaf: one for each numeric target, one for a target of
    two classes, and K for a target of K > 2 classes. M is the number of nodes of all trees. The
    constructor is that of the subclass.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Forest._parameter_constraints,
        "leaves": [StrOptions({"auto", *NAMED_LEAVES})],
        "bootstrap": ["boolean"],
        "max_samples": [
            None,
            Interval(Real, 0, 1, closed="right"),
            COUNT,
        ],
        "oob_score": ["boolean", callable],
        "monotonic_cst": ["array-like", dict, None],
        "warm_start": ["boolean"],
    }

    _takes_columns: ClassVar[bool] = True
    _takes_outputs: ClassVar[bool] = True
    _takes_sparse: ClassVar[bool] = True

    leaves_: Leaves
    oob_score_: float
    _seed: int
    _fit_digest: int
    _rows: Float64
    # Total weight, and weighted sum of each output, over the in-bag rows of each node, (M, 1 +
    # n_outputs), after a fit with warm_start=True; else None, and a warm start grows all trees
    # again.
    _node_sums: Float64 | None

    # -- fit ---------------------------------------------------------------------------------------

    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        time: Any = None,
        gap: Any = 0,
    ) -> Self:
        """Grow the trees, each on its own sample of rows and features, and fill their leaves.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), or out-of-core or distributed data
            Rows; NaN is a missing value. A value that a sparse matrix does not store is 0; the fit
            equals that of the dense table. Out-of-core or distributed data are the path of a file
            or a folder, a list of paths, a `pyarrow.dataset.Dataset`, or a Dask collection.
        y : array-like of shape (n,), or (n, n_outputs)
            Class or number of each row; a column for each of several targets. For files the name of
            a column, or a list of names; for a Dask collection a collection or a name.
        sample_weight : array-like of shape (n,), or None
            Weight of each row in impurities and leaves, relative to the mean weight; for files the
            name of a column. Weights do not change how likely a row is drawn, and in
            `min_samples_leaf` each row counts once. Rows of weight zero are ignored. Weights that
            are not small multiples of a common unit are rounded to multiples of 2^-16 of the
            largest weight, at least one.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, if rows of one group depend on each other. Whole
            groups are drawn for each tree, so a row is out of a bag only if its whole group is.
            `max_samples` then counts groups. For files the name of a column; for a Dask collection
            a collection or a name.
        time : array-like of shape (n,), str or None
            Time of each row, numbers or dates, or the name of such a column of X, for rows in time
            order. Ten blocks of consecutive times are then drawn for each tree instead of rows, and
            `max_samples` counts blocks. Out-of-bag estimates are about the rows of the latest two
            blocks, which are predicted by the trees whose bags hold only earlier blocks. For files
            the name of a column; for Dask collections it may be a collection, too. None: rows have
            no times.
        gap : int or timedelta
            Rows, or time, before a block that the trees which predict it must not have drawn
            either, as the labels of these rows would not be known in time.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If `time` misses a time, or all times are equal; or with `time`, if no row is out of a
            bag, or out-of-bag rows fill the leaves. With ``warm_start=True``, if the rows are not
            those of the previous fit, or a parameter has changed that affects how trees grow. For
            out-of-core or distributed data, if a parameter needs rows in memory, if files lack a
            column, differ in types or change during the fit, or if the collections have different
            partitions.
        OSError
            If a file is not found, or the disk is full.
        """
        self._expect_bootstrap()
        self._expect_plain_leaves()
        if time is not None:
            self._expect_bags_in_time_order()
        previous = getattr(self, "trees_", None) if self.warm_start else None
        if previous is not None:
            check_parameters_of_fit(self, *_CHANGEABLE_PARAMETERS)
        if is_out_of_core(X):
            order = TimeArguments.read(X, time, gap)
            return self._fit_out_of_core(X, y, sample_weight, groups, previous, order)
        options: dict[str, Any] = {"groups": groups, "time": time, "gap": gap}
        training = self._prepare_training(
            X, y, sample_weight, **options, reuse_encoding=previous is not None
        )
        n_compared = resolve_max_features(self.max_features, training.features.n_features)
        if self.categories_ is None and is_mostly_zero(training.features, n_compared):
            training = training.to_sparse()
        if previous is None:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        samples, input_rows = (
            ForestSamples.from_training(training),
            InputRows.from_training(training),
        )
        return self._fit_samples(samples, input_rows, previous)

    def _fit_out_of_core(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        previous: Trees | None,
        order: TimeArguments | None,
    ) -> Self:
        """Fit to files or a Dask collection, set the fitted attributes, and return self.

        X, y, sample_weight, groups: as `fit` takes them: files and names of columns, or Dask
        collections; previous: trees of the previous fit with a warm start, else None; order: the
        column of times and the gap that `fit` was called with, or None if rows have no times.
        """
        n_threads, how = get_n_threads_or_all(self.n_jobs), {"is_shown": self.verbose > 0}
        how["time"] = None if order is None else order.collection
        with (
            open_scratch() as scratch,
            open_rows(X, y, sample_weight, n_threads, groups=groups, **how) as executor,
        ):
            rows, input_rows = read_forest_samples(
                self, executor, scratch, order, continues=previous is not None
            )
            if previous is None:
                self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            return self._fit_samples(rows, input_rows, previous, executor)

    def _fit_samples(
        self,
        rows: ForestSamples,
        input_rows: InputRows,
        previous: Trees | None,
        executor: Executor | None = None,
    ) -> Self:
        """Grow trees, fill their leaves, and set `trees_` and the other attributes of a fit.

        The seed `_seed`, the classes, and the attributes about features must be set before.

        Parameters
        ----------
        rows : ForestSamples
            The training rows, sorted by content.
        input_rows : InputRows
            The same rows in input order, for out-of-bag scores.
        previous : Trees or None
            Trees of the previous fit, to which a warm start adds trees; None: all trees are grown.
        executor : Executor or None
            Runs functions on the workers of a cluster; None: trees grow in this process.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        n_classes = self.n_classes_ if self._has_classes else 1
        rows = rows.rank_categories(self._category_mask(), n_classes)
        grower = self._create_grower(rows)
        self._expect_same_fit(rows.content ^ _hash_row_sampling(grower.row_sampling), previous)
        trees, sums = self._grow_forest(grower, rows, previous, executor)
        self._fill_leaves(trees, sums, rows, grower.row_sampling, input_rows)
        return self

    def _expect_bootstrap(self) -> None:
        """Raise ValueError if `bootstrap` is False, but a parameter needs bags or out-of-bag rows.

        These are `max_samples`, `oob_score`, and the values "refilled" and "honest" of `leaves`.
        """
        if self.bootstrap:
            return
        if self.max_samples is not None:
            raise ValueError(
                "`max_samples` cannot be set if `bootstrap=False`. Either switch to "
                "`bootstrap=True` or set `max_samples=None`."
            )
        if self.oob_score:
            raise ValueError(
                "oob_score must be False with bootstrap=False, as no row is out of a bag: set "
                "bootstrap=True"
            )
        if self.leaves in ("refilled", "honest"):
            raise ValueError(
                'leaves must be "auto", "plain" or "shrunk" with bootstrap=False, got '
                f'"{self.leaves}", '
                "which needs out-of-bag rows: set bootstrap=True"
            )

    def _expect_bags_in_time_order(self) -> None:
        """Raise ValueError if a parameter does not fit rows in time order.

        Rows must be predicted by trees that were grown on earlier rows only. So `bootstrap` must be
        True, and out-of-bag rows, which may be later, must not fill the leaves.
        """
        if not self.bootstrap:
            raise ValueError(
                "time must be None with bootstrap=False, as no row is out of a bag: set "
                "bootstrap=True, or fit without time"
            )
        if self.leaves in ("refilled", "honest"):
            raise ValueError(
                f'leaves must be "auto", "plain" or "shrunk" with time, got {self.leaves!r}: '
                "out-of-bag rows would fill the leaves that predict them and rows next to them. Set "
                "one of these, or fit without time"
            )

    @property
    def _has_balanced_bags(self) -> bool:
        """Whether all classes have the same total weight in the bag of each tree.

        True with ``class_weight="balanced_subsample"``. The bag of a tree is the sample of rows it
        grows on.
        """
        return bool(getattr(self, "class_weight", None) == "balanced_subsample")

    def _expect_plain_leaves(self) -> None:
        """Raise ValueError if class_weight="balanced_subsample" and `leaves` is not "auto" or "plain".

        Other ways to fill leaves count rows outside of the bag, which have no balanced weight.
        """
        if self._has_balanced_bags and self.leaves not in ("auto", "plain"):
            raise ValueError(
                'leaves must be "auto" or "plain" with class_weight="balanced_subsample", as row '
                f"weights are defined only in the bag of each tree, got leaves={self.leaves!r}: set "
                'one of them, or class_weight="balanced"'
            )

    def _parse_monotonic_constraints(self) -> MonotonicSigns:
        """Return the monotonic constraint on each feature, (p,) int8; None if there are none.

        1: predictions must not fall as the feature rises; -1: they must not rise; 0: no constraint.
        Raise ValueError if `monotonic_cst` is malformed, there are several targets, or `leaves` is
        neither "auto" nor "plain".
        """
        names = getattr(self, "feature_names_in_", None)
        constraints = check_monotonic_cst(
            *(self.monotonic_cst, self.n_features_in_, names, self._n_encoded),
            self._category_mask(),
        )
        if constraints is not None:
            self._expect_one_target("monotonic_cst")
        if constraints is not None and self.leaves not in ("auto", "plain"):
            raise ValueError(
                'leaves must be "auto" or "plain" with monotonic_cst, as other leaves may violate the '
                f"constraints, got leaves={self.leaves!r}: set one of them, or leave monotonic_cst out"
            )
        return constraints

    def _expect_same_fit(self, digest: int, previous: Trees | None) -> None:
        """Raise ValueError if a warm start cannot add trees to the previous fit; set `_fit_digest`.

        The rows, and the way in which bags are drawn, must be those of the previous fit, and
        `n_estimators` at least the number of its trees. Without a warm start nothing is checked.

        digest: hash of the rows and of how bags are drawn, which becomes `_fit_digest`; previous:
        trees of the previous fit, or None without a warm start.
        """
        if previous is not None and digest != self._fit_digest:
            raise ValueError(
                "warm_start=True adds trees to the previous fit, but X, y, sample_weight, groups, "
                "time or gap are not those of that fit: pass the same ones, or set warm_start=False"
            )
        if previous is not None and self.n_estimators < len(previous):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(trees_)={len(previous)} when warm_start==True: raise it, or set warm_start=False"
            )
        self._fit_digest = digest

    def _create_grower(self, rows: ForestSamples) -> BinnedGrower:
        """Bin the training rows, and return the object that grows trees on them.

        rows: the training rows, whose features, groups and number are used; targets and weights are
        passed to the grower later. The grower has the estimator's parameters of growth and the seed
        `_seed`, which must be set.
        """
        n, p = len(rows.y), rows.n_features
        n_units = n if rows.group is None else int(rows.group.max()) + 1
        bins = rows.features.bins(self._category_mask(), get_n_threads_or_all(self.n_jobs))
        return BinnedGrower(
            bins.with_dates(self.dates_),
            bootstrap=bool(self.bootstrap),
            n_draws=_resolve_max_samples(self.max_samples, n_units),
            groups=rows.group,
            monotonic_cst=self._parse_monotonic_constraints(),
            **self._compute_growth_parameters(n, p),
            feature_order=rows.feature_order,
            seed=self._seed,
            n_jobs=get_n_threads_or_all(self.n_jobs),
        )

    @abstractmethod
    def _grow_trees(
        self, grower: BinnedGrower, rows: ForestSamples, first: int, n_trees: int
    ) -> GrownForest:
        """Grow the trees with numbers first, ..., first + n_trees - 1.

        grower: object that grows trees on the binned training rows; rows: the training rows, whose
        targets and weights are used. Return the trees, without leaf values, and for each node the
        weight of its in-bag rows and the sums of their targets. A tree depends on its number, not
        on which trees grow with it.
        """

    @abstractmethod
    def _collect_node_sums(self, forest: GrownForest) -> Float64:
        """Return sums over the in-bag rows of each node, (M, 1 + n_outputs).

        In column 0 the total weight, then the weighted sum of each output: the indicator of a
        class, or a number. Targets are in the order of `ForestSamples.y`. forest: trees with M
        nodes, and for each node the weight and the sums of the targets of its in-bag rows. For two
        classes there is one output, the indicator of the second.
        """

    @abstractmethod
    def _compute_target_scale(self, rows: ForestSamples) -> Float64:
        """Return the scale of each target, (q,), by which its errors are divided.

        They are the standard deviation over `rows` of each of several numeric targets, in the order
        of the columns of ``rows.y``; 1 for a single target, and for classes.
        """

    def _compute_importance_units(self, rows: ForestSamples) -> Float64:
        """Return the unit of each output in impurity importances, (n_outputs,); [1] for one target.

        Differences of child means are divided by it, which gives several targets the same scale.
        The unit of a number is its standard deviation over `rows`, and that of each class of more
        than two is 1. For two classes it is sqrt(1/2), as their Gini index is twice the variance of
        their single output.
        """
        groups = self._output_groups.reorder(rows.columns)
        if len(groups.sizes) == 1:
            return np.ones(1)
        # The Gini index of two classes is twice the variance of the second class.
        unit = np.sqrt(0.5) if self._has_classes else 1.0
        units = self._compute_target_scale(rows) * np.where(groups.size_array == 1, unit, 1.0)
        return np.repeat(units, groups.size_array)

    def _grow_forest(
        self,
        grower: BinnedGrower,
        rows: ForestSamples,
        previous: Trees | None,
        executor: Executor | None,
    ) -> tuple[Trees, Float64]:
        """Grow all trees, and set `_importances`, the sum over trees of feature importances, (p,).

        A warm start reuses the trees of the previous fit if `_node_sums` holds their sums, which
        only a fit with ``warm_start=True`` keeps. Otherwise all trees are grown again.

        Parameters
        ----------
        grower : BinnedGrower
            Grows trees on the binned training rows, with the estimator's parameters of growth.
        rows : ForestSamples
            The training rows, sorted by content.
        previous : Trees or None
            Trees of the previous fit, to which a warm start adds trees; None: all trees are grown.
        executor : Executor or None
            Runs functions on the workers of a cluster; None: trees grow in this process.

        Returns
        -------
        trees : Trees
            All trees, without leaf values.
        sums : ndarray of shape (M, 1 + n_outputs)
            Sums over the in-bag rows of each node: total weight, then the weighted sum of each
            output (indicator of a class, or number).
        """
        grown = []
        if previous is not None and self._node_sums is not None:
            # Leaf values are recomputed for all trees at the end.
            grown.append((previous.with_value(previous.value[:, :0]), self._node_sums))
        first = len(grown[0][0]) if grown else 0
        importances = self._importances if grown else np.zeros(rows.n_features)
        jobs = self._divide_trees(first, 1 if executor is None else executor.n_workers)
        forests = (
            (self._grow_trees(grower, rows, *job) for job in jobs)
            if executor is None
            else executor.map_jobs(
                grow_trees_of_model, (copy_without_large_attributes(self), rows), jobs
            )
        )
        with show_progress(self.verbose > 0, len(jobs), type(self).__name__) as advance:
            for forest in forests:
                sums = self._collect_node_sums(forest)
                units = self._compute_importance_units(rows)
                importances = add_impurity_importances(forest.trees, sums, units, importances)
                grown.append((forest.trees, sums))
                advance()
        self._importances = importances
        trees = Trees.joined([part for part, _ in grown], rows.n_features, 0)
        return trees, np.concatenate([sums for _, sums in grown])

    def _divide_trees(self, first: int, n_workers: int) -> list[tuple[int, int]]:
        """Divide the trees with numbers first, ..., n_estimators - 1 into jobs.

        n_workers: number of machines that grow trees. Return (number of the first tree, number of
        trees) for each job. There is a single job if one machine grows trees and no progress bar is
        shown. Otherwise there are at most ten trees in a job with a progress bar, and about four
        jobs for each of several machines.
        """
        last = int(self.n_estimators)
        step = _TREES_PER_UPDATE if self.verbose else max(last - first, 1)
        if n_workers > 1:
            step = min(step, max(1, ceil((last - first) / (_JOBS_PER_WORKER * n_workers))))
        return [(start, min(step, last - start)) for start in range(first, last, step)]

    def _compute_leaf_statistics(
        self, trees: Trees, sums: Float64, rows: ForestSamples, row_sampling: RowSampling
    ) -> LeafStatistics:
        """Route out-of-bag rows to the leaves of each tree, and sum their targets in each node.

        trees: the trees, of M nodes, without leaf values; sums: sums over the in-bag rows of each
        node, (M, 1 + n_outputs): total weight, then the weighted sum of each output (indicator of a
        class, or number); rows: the training rows; row_sampling: how the bags were drawn (number of
        draws, seed, with or without replacement). The returned `LeafStatistics` hold, for each of
        the M nodes, the total weight and the weighted sum of each output over in-bag and over
        out-of-bag rows; the leaves of the out-of-bag rows; and the targets and weights of `rows`.
        """
        n_threads = get_n_threads_or_all(self.n_jobs)
        return LeafStatistics(
            rows.find_out_of_bag_leaves(trees, row_sampling, n_threads),
            sums,
            rows.targets,
            rows.weight,
            self._output_groups.reorder(rows.columns),
            self._compute_target_scale(rows),
            n_threads,
        )

    def _fill_leaves(
        self,
        trees: Trees,
        sums: Float64,
        rows: ForestSamples,
        row_sampling: RowSampling,
        input_rows: InputRows,
    ) -> None:
        """Choose how leaves are filled, and compute leaf values and out-of-bag scores.

        The parameter `leaves` names the rows whose targets are averaged, or is "auto": then the
        loss of out-of-bag rows decides. Set `trees_`, `leaves_` and `_node_sums`; with `oob_score`
        also `oob_score_` and the out-of-bag predictions.

        Parameters
        ----------
        trees : Trees
            The trees, of M nodes, without leaf values.
        sums : ndarray of shape (M, 1 + n_outputs)
            Sums over the in-bag rows of each node: total weight, then the weighted sum of each
            output (indicator of a class, or number).
        rows, input_rows : ForestSamples and InputRows
            The training rows, sorted by content and in input order.
        row_sampling : RowSampling
            How the bags were drawn: number of draws, seed, with or without replacement.
        """
        leaves = NAMED_LEAVES.get(self.leaves, PLAIN_LEAVES)
        may_choose = self._parse_monotonic_constraints() is None and not self._has_balanced_bags
        for name in ("oob_score_", self._oob_attribute):
            self.__dict__.pop(name, None)
        if self.bootstrap and (self.leaves in ("auto", "refilled", "honest") or self.oob_score):
            statistics = self._compute_leaf_statistics(trees, sums, rows, row_sampling)
            if self.leaves == "auto" and may_choose:
                fills = FILLED_BY[:1] if rows.first_excluded is not None else AUTO_FILLS
                leaves = statistics.choose_leaves(self._has_classes, fills)
            value = statistics.compute_values(leaves)
            if self.oob_score:
                self._set_out_of_bag_scores(statistics, leaves, rows, input_rows)
        else:
            shrinkage = leaves.shrinkage * compute_mean_weight(rows.weight)
            n_threads = get_n_threads_or_all(self.n_jobs)
            value = compute_leaf_values(trees, sums, shrinkage, n_threads)
        value = self._output_groups.restore_order(self._round_to_stored(value), rows.columns)
        encoded_trees = rows.features.replace_ranks(trees)
        self._set_trees(encoded_trees.with_value(value), sums[:, 0])
        self.leaves_ = leaves
        # Trees on ranks are grown again in a warm start, as out-of-bag rows have ranks.
        keeps_sums = self.warm_start and encoded_trees is trees
        self._node_sums = sums if keeps_sums else None

    def _set_trees(self, trees: Trees, rows_per_node: Float64) -> None:
        """Set `trees_` with values at all nodes, and `_rows`, the total weight of in-bag rows per node.

        trees: trees with leaf values. The value of an inner node becomes the mean of the leaves
        below, weighted by their in-bag rows. rows_per_node: total weight of the in-bag rows in each
        node, (n_nodes,), which is rounded to float32 as in model files. A node whose leaves have no
        such rows gets the plain mean of its children.
        """
        self._rows = rows_per_node.astype(np.float32).astype(np.float64)
        self.trees_ = trees.with_value(average_leaves(trees.left, self._rows, trees.value))

    def _get_rows_per_node(self) -> Float64:
        """Return the total weight of the in-bag rows in each node of all trees, (n_nodes,).

        In-bag rows are those that the node's tree was grown on.
        """
        return self._rows

    # -- files -------------------------------------------------------------------------------------

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        "trees": StoredField("trees_", _read_leaf_values),
        "trees.rows": StoredField("_rows", _read_leaf_rows),
        "importances": StoredField.numbers("_importances", ("_n_encoded",), 0),
        "seed": StoredField.value("_seed", int),
        "origin": StoredField.value("_fit_digest", int),
        "leaves": StoredField.value("leaves_", Leaves, 0, _MOST_SHRINKAGE),
    }

    def __stored__(self) -> dict[str, Any]:
        """Return what a model file holds of the fit, by name in the file.

        Entries "trees.value" (leaf values, (n_leaves, n_outputs)) and "trees.rows" (total weight of
        in-bag rows, (n_leaves,)) have leaves only; `_finish_restore` computes values of inner nodes.
        Other entries are those of the base class: features, classes, hashes of the rows, the nodes
        of the trees, importances, seed and `leaves_`.
        """
        is_leaf = self.trees_.is_leaf
        value = self.trees_.value[is_leaf].astype("f4" if self._has_classes else "f8")
        rows = self._rows[is_leaf].astype(np.float32)
        return super().__stored__() | {"trees.value": value, "trees.rows": rows}

    def _finish_restore(self, stored: StoredState) -> None:
        """Compute the values of inner nodes of the loaded trees, as model files hold those of leaves.

        Loading calls it after the attributes are set, and it changes `trees_`. The sums that a warm
        start needs are set to None. stored: content of the model file.
        """
        super()._finish_restore(stored)
        self._set_trees(self.trees_, self._rows)
        self._node_sums = None

    # Name of the attribute that holds out-of-bag predictions.
    _oob_attribute: ClassVar[str]
    _has_classes: ClassVar[bool]

    def _round_to_stored(self, value: Float64) -> Float64:
        """Round leaf values to the precision of model files.

        It is float32 for classes, and float64 for numbers. value: values of all nodes, (n_nodes,
        n_outputs). Return a float64 array of the same shape.
        """
        # Probabilities that differ by less differ by chance, and files become half as large.
        return value.astype(np.float32).astype(np.float64) if self._has_classes else value

    @abstractmethod
    def _predict_out_of_bag(self, mean: Float64, leaves: Leaves) -> Any:
        """Return the out-of-bag predictions of the n rows of `fit`, as users see them.

        For classes these are probabilities, (n, K), or (n, K, n_targets) for several targets; for
        numbers predictions, (n,), or (n, n_targets). Rows that are in every bag have NaN. mean:
        mean of a row's leaf values over the trees of whose bags it is out, (n, n_outputs); leaves:
        for classes, the mean probabilities are raised to ``leaves.power`` and divided by their sum.
        """

    @abstractmethod
    def _score_out_of_bag(
        self, y: NDArray[Any], mean: Float64, leaves: Leaves, weight: Float64 | None
    ) -> float:
        """Score out-of-bag predictions of k rows: accuracy, R2, or the callable `oob_score`.

        Accuracy for classes and R2 for numbers, unless `oob_score` is callable. y: class codes or
        numbers, (k,), or (k, q) for q targets; mean: mean out-of-bag leaf values, (k, n_outputs);
        leaves: mean probabilities are raised to ``leaves.power`` and divided by their sum; weight:
        row weights, (k,), or None.
        """

    def _set_out_of_bag_scores(
        self,
        statistics: LeafStatistics,
        leaves: Leaves,
        rows: ForestSamples,
        input_rows: InputRows,
    ) -> None:
        """Set `oob_score_` and the out-of-bag predictions of all input rows.

        Rows that no tree predicts, as they are in every bag, are not scored; warn if there are any.
        In a fit with the argument `time`, trees predict only rows of the latest two blocks of time
        that are later than their bags; warn only if no row is scored. statistics: sums of targets by
        node, and the leaves of out-of-bag rows; leaves: which rows' targets (in-bag, out-of-bag or
        all) determine leaf values, how much these are shrunk, and the exponent of probabilities;
        rows: the training rows, sorted by content; input_rows: targets and weights of the same rows
        in input order, by which they are scored. The score is NaN if no row is scored.
        """
        total, n_trees = statistics.sum_all_predictions(leaves)
        mean = self._output_groups.restore_order(
            rows.average_by_input_row(total, n_trees, input_rows.n), rows.columns
        )
        has_score = ~np.isnan(mean[input_rows.indices, 0])
        if not (has_score.all() if rows.first_excluded is None else has_score.any()):
            warn(
                "Some inputs do not have OOB scores. This probably means too few trees were used to "
                "compute any reliable OOB estimates.",
                UserWarning,
                stacklevel=8,
            )
        setattr(self, self._oob_attribute, self._predict_out_of_bag(mean, leaves))
        weight = None if input_rows.weight is None else input_rows.weight[has_score]
        self.oob_score_ = (
            self._score_out_of_bag(
                input_rows.y[has_score], mean[input_rows.indices[has_score]], leaves, weight
            )
            if has_score.any()
            else np.nan
        )

    # -- inspection --------------------------------------------------------------------------------

    @snapshot_method
    def out_of_bag_importances(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        time: Any = None,
        gap: Any = 0,
    ) -> Float64:
        """Compute by how much the out-of-bag loss rises if the values of a feature are shuffled.

        Parameters
        ----------
        X, y, sample_weight, groups, time, gap
            The rows of the fit, as they were passed to `fit`.

        Returns
        -------
        ndarray of shape (p,)
            For each feature the rise of the mean log loss (nats), or of the mean squared error, of
            each row as predicted by the trees of whose bags it is out. Leaves are filled by in-bag
            rows.

        Raises
        ------
        ValueError
            If these are not the rows of the fit, or the forest was fitted with ``bootstrap=False``.
        """
        check_is_fitted(self)
        if not self.bootstrap:
            raise ValueError(
                "bootstrap must be True for out_of_bag_importances, which needs out-of-bag rows, got "
                "False: fit with bootstrap=True"
            )
        options: dict[str, Any] = {"groups": groups, "time": time, "gap": gap}
        training = training_rows(self, X, y, sample_weight, **options, reuse_encoding=True)[0]
        rows = ForestSamples.from_training(training)
        n_units = len(rows.y) if rows.group is None else int(rows.group.max()) + 1
        n_draws = _resolve_max_samples(self.max_samples, n_units) or n_units
        row_sampling = RowSampling("repeated", n_draws, self._seed, rows.group)
        if rows.content ^ _hash_row_sampling(row_sampling) != self._fit_digest:
            raise ValueError(
                "X, y, sample_weight, groups, time and gap must be those of the fit, and they are not: "
                "pass them unchanged"
            )
        groups_of_outputs = self._output_groups.reorder(rows.columns)
        X = cast(SortedFeatures, rows.features).X
        is_balanced = self._has_balanced_bags
        sums = sum_in_bag_targets(
            self.trees_, rows, X, row_sampling, groups_of_outputs, is_balanced
        )
        return compute_permutation_importances(
            self._compute_leaf_statistics(self.trees_, sums, rows, row_sampling),
            X,
            self.leaves_._replace(filled_by="in_bag"),
            row_sampling,
            classes=self._has_classes,
            seed=self._seed,
            feature_order=rows.feature_order,
            owners=self._get_owners(),
            keep_leaves=rows.keep_earlier_bags,
        )


def grow_trees_of_model(model: Any, rows: ForestSamples, first: int, n_trees: int) -> GrownForest:
    """Grow the trees with numbers first, ..., first + n_trees - 1 in this worker of a cluster.

    model: the `TreeForest` that is being fitted, with its `_seed`; rows: its training rows, which
    are binned here again. Return the trees, without leaf values, and for each node the weight of
    its in-bag rows and the sums of their targets.
    """
    grown: GrownForest = model._grow_trees(model._create_grower(rows), rows, first, n_trees)
    return grown


def _hash_row_sampling(row_sampling: RowSampling) -> int:
    """Return an integer below 2**56 that identifies how rows are drawn for each tree.

    row_sampling: how bags are drawn. The integer depends on three of its fields: the number of draws,
    the seed, and whether rows are drawn with replacement.
    """
    is_repeated = row_sampling.kind == "repeated"
    return (row_sampling.n_draws * 2**20 + row_sampling.seed + int(is_repeated)) % 2**56


def _resolve_min_rows(value: Any, n: int, smallest: int) -> int:
    """Return the number of rows that `min_samples_split` or `min_samples_leaf` stands for.

    value: an int, which is returned; or a float (1.0, too), which is a fraction of n. The product
    is rounded up, and is at least `smallest`.
    """
    return int(value) if isinstance(value, Integral) else max(smallest, ceil(value * n))


def _resolve_max_samples(max_samples: Any, n: int) -> int | None:
    """Return how many of n rows, or groups, are drawn for a tree; None stands for n.

    max_samples: an int, which is the number; or a float (1.0, too), which is a fraction of n, where
    the product is rounded and is at least 1; or None, which is returned. Raise ValueError if an int
    is larger than n.
    """
    if max_samples is None:
        return None
    if isinstance(max_samples, Integral):
        if int(max_samples) > n:
            raise ValueError(
                f"`max_samples` must be <= n_samples={n} but got value {max_samples}: lower it, or "
                "pass a fraction"
            )
        return int(max_samples)
    return max(round(n * max_samples), 1)


class TreeForestClassifier(LabelColumns, ForestClassifier, TreeForest):
    """A random forest, or extra trees, for classes.

    A drop-in replacement of scikit-learn's `RandomForestClassifier` and `ExtraTreesClassifier`. In
    addition it chooses on out-of-bag rows how leaves are filled, so that probabilities need no
    calibration. It handles categories and missing values. The model does not depend on the order of
    the rows or on the number of threads. y may have several columns of classes; one tree then
    predicts all of them, and the gain of a split is the mean over the columns.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Impurity that splits lower; "log_loss" is the same as "entropy".
    max_depth : int or None, default=None
        Largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves of a tree; None: no limit. The node whose split lowers the impurity
        most is split first.
    min_samples_split : int or float, default=2
        Smallest number of rows of a node that is split; a float is a fraction of the rows. A row
        that was drawn several times counts once.
    min_samples_leaf : int or float, default=1
        Smallest number of rows of each child of a split; a float is a fraction of the rows.
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
        Number of features that are tried in a node, drawn for each node: an integer, a fraction of
        all features, the square root or the binary logarithm of their number; None: all.
    max_features_per_tree : int, float, "sqrt", "log2" or None, default=None
        Number of features that a tree may use, which are drawn for each tree; None: all.
    min_impurity_decrease : float, default=0
        Smallest decrease of the impurity by a split, times the fraction of the tree's rows in the
        node.
    splitter : {"best", "random"}, default="best"
        "random": draw one split of each feature, and make the best of these, as in extra trees.
        scikit-learn's extra trees also have ``bootstrap=False``.
    leaves : {"auto", "plain", "refilled", "shrunk", "honest"}, default="auto"
        How the class probabilities of leaves are computed. "plain": frequencies among the in-bag
        rows; "refilled": among all rows; "honest": among the out-of-bag rows; "shrunk": among the
        in-bag rows plus one row with the probabilities of the parent node, from the root down.
        "auto": the combination with the smallest log loss of out-of-bag rows, each left out of the
        leaves that predict it. It tries plain and refilled leaves, shrunk by 0, 1 or 3 rows, and an
        exponent of the averaged probabilities. It keeps plain leaves if nothing is better by more
        than one standard error, and if there are no out-of-bag rows.
    bootstrap : bool, default=True
        Whether each tree grows on rows that are drawn with replacement; else on all rows.
    max_samples : int, float or None, default=None
        Number of rows that are drawn for a tree; a float is a fraction of the rows; None: n.
    oob_score : bool or callable, default=False
        Whether to score the predictions of out-of-bag rows, each by the trees of whose bags it is
        out: by accuracy, or by a callable ``oob_score(y, predicted)``, which returns a float.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features are categorical. "from_dtype": columns of a data frame with a category,
        string or object dtype, and columns of an object array that contain a string. Otherwise a
        boolean mask, indices or names. None: no feature.
    monotonic_cst : array-like of int, dict or None, default=None
        For each feature, or by feature name: 1 if the probability of the second of two classes must
        not fall as the feature rises, -1 if it must not rise, 0 for no constraint. Leaves are then
        "plain".
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Weights of the classes, as in scikit-learn; a list of dicts for several targets.
        "balanced_subsample": all classes have the same total weight in the bag of each tree; leaves
        are then "plain".
    warm_start : bool, default=False
        Whether a fit on the same rows keeps the trees of the previous fit, and adds trees until
        there are `n_estimators`. Between these fits only `n_estimators`, `leaves`, `oob_score`,
        `n_jobs`, `verbose` and `warm_start` may change.
    random_state : int, RandomState or None, default=None
        Draws the rows and features of the trees.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        If above 0, show progress on standard error: a bar in terminals and notebooks, else lines of
        text. Bars need the package rich; without it there are lines everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of them
        The classes, ascending; a list with one array for each of several targets.
    n_classes_ : int, or list of int
        Number of classes; a list for several targets.
    n_outputs_ : int
        Number of columns of y; 1 if y has one dimension.
    trees_ : Trees
        The trees. The value of a leaf is a probability for each class, or of the second of two
        classes; several targets follow each other. The value of an inner node is the mean of the
        leaves below, weighted by the rows in the tree's bag.
    leaves_ : Leaves
        How leaves were filled, and the exponent of the averaged probabilities.
    feature_importances_ : ndarray of shape (p,)
        Fraction of a tree's decrease of the impurity that splits on each feature make, averaged
        over trees.
    oob_score_ : float
        Score of the out-of-bag rows, if `oob_score` is set.
    oob_decision_function_ : ndarray of shape (n, K), or (n, K, n_outputs)
        Class probabilities of each row by the trees of whose bags it is out, if `oob_score` is set;
        NaN for rows that are in all bags, or have weight zero. For several targets K is the largest
        number of classes; classes that a target does not have get 0.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the training rows, by which `certify` refuses to certify the model with these
        rows; None if the model was loaded from a file that was saved without them.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numeric.
    dates_ : dict of int to DateColumn, or None
        Kind, time zone and last date of the features that hold dates, by index; None if none do.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features are categorical; None if none are.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had names.

    References
    ----------
    Breiman, "Random forests", 2001; Geurts, Ernst and Wehenkel, "Extremely randomized trees", 2006.

    Examples
    --------
    >>> from certree.ensembles import TreeForestClassifier
    >>> model = TreeForestClassifier().fit([[k] for k in range(40)], [0] * 20 + [1] * 20)
    >>> model.predict([[0], [39]])
    array([0, 1])

    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree.ensembles import TreeForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TreeForestClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeForest._parameter_constraints,
        "criterion": [StrOptions({"gini", "entropy", "log_loss"})],
        "class_weight": [dict, list, StrOptions({"balanced", "balanced_subsample"}), None],
    }
    _oob_attribute, _has_classes = "oob_decision_function_", True

    oob_decision_function_: Float64

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: Literal["gini", "entropy", "log_loss"] = "gini",
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        max_features: MaxFeatures = "sqrt",
        max_features_per_tree: MaxFeatures = None,
        min_impurity_decrease: float = 0.0,
        splitter: Literal["best", "random"] = "best",
        leaves: LeavesName = "auto",
        bootstrap: bool = True,
        max_samples: float | None = None,
        oob_score: bool | Callable[..., float] = False,
        categorical_features: Any = "from_dtype",
        monotonic_cst: MonotonicCst = None,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _compute_target_scale(self, rows: ForestSamples) -> Float64:
        return np.ones(len(rows.columns))

    def _parse_monotonic_constraints(self) -> MonotonicSigns:
        constraints = super()._parse_monotonic_constraints()
        if constraints is not None and self.n_classes_ > 2:
            raise ValueError(
                "monotonic_cst must be None for more than two classes, as it constrains the "
                f"probability of the second of two, got {self.n_classes_} classes: leave it out"
            )
        return constraints

    @property
    def _power(self) -> float:
        """Exponent of the averaged class probabilities: `leaves_.power`.

        The out-of-bag loss chooses it with ``leaves="auto"``; else it is 1.
        """
        return self.leaves_.power

    def _grow_trees(
        self, grower: BinnedGrower, rows: ForestSamples, first: int, n_trees: int
    ) -> GrownForest:
        options: dict[str, Any] = {"first": first, "sample_weight": rows.weight}
        options |= {"criterion": self.criterion, "balanced": self._has_balanced_bags}
        if self.n_outputs_ > 1:
            n_classes = [self.n_classes_[k] for k in rows.columns]
            return grower.grow_columns(rows.y, n_trees, n_classes=n_classes, **options)
        return grower.grow_classes(rows.y, self.n_classes_, n_trees, **options)

    def _collect_node_sums(self, forest: GrownForest) -> Float64:
        if self.n_outputs_ > 1:
            return np.ascontiguousarray(forest.total.reshape(-1, 1 + self._output_groups.n_outputs))
        table = forest.class_weights(self.n_classes_)
        outputs = table[:, 1:] if self.n_classes_ == 2 else table
        return np.column_stack([table.sum(axis=1), outputs])

    def _predict_out_of_bag(self, mean: Float64, leaves: Leaves) -> Float64:
        probabilities = self._compute_probabilities(mean, leaves.power)
        if not self._has_several_targets():
            return np.asarray(probabilities)
        most = max(self.n_classes_)
        padded = [np.pad(table, ((0, 0), (0, most - table.shape[1]))) for table in probabilities]
        padded = [np.where(np.isnan(table[:, :1]), np.nan, table) for table in padded]
        return np.stack(padded, axis=2)

    def _score_out_of_bag(
        self, y: NDArray[Any], mean: Float64, leaves: Leaves, weight: Float64 | None
    ) -> float:
        predicted = select_classes(self.classes_, self._compute_probabilities(mean, leaves.power))
        target = self._decode_targets(y)
        if callable(self.oob_score):
            return self.oob_score(target, predicted)
        if self.n_outputs_ > 1:
            return compute_subset_accuracy(target, predicted, weight)
        return float(accuracy_score(target, predicted, sample_weight=weight))

    def _compute_probabilities(self, mean: Float64, power: float) -> Any:
        def compute(classes: NDArray[Any], outputs: Float64) -> Float64:
            return _compute_probabilities(outputs, len(classes), power)

        return self._map_targets(compute, mean, axis=1)


@copy_descriptions_from(TreeForestClassifier)
class TreeForestRegressor(RegressorMixin, TreeForest):
    """A random forest, or extra trees, for numbers.

    See `TreeForestClassifier`; it has the same attributes, except for those about classes. For
    several columns of y the gain of a split is the mean over columns of the decrease of the squared
    error, each divided by the variance of the column.

    Parameters
    ----------
    {n_estimators}
    criterion : {"squared_error", "poisson"}, default="squared_error"
        Impurity that splits lower. "poisson": half of the Poisson deviance, for counts and rates,
        and one target only; the values of leaves are means, too. "absolute_error" is not available,
        as the histograms from which trees grow do not give medians; `BoostedTreesRegressor` has
        that loss.
    {max_depth} {max_leaf_nodes} {min_samples_split} {min_samples_leaf}
    max_features : int, float, "sqrt", "log2" or None, default=1.0
        Number of features that are tried in a node, drawn for each node: an integer, a fraction of
        all features, the square root or the binary logarithm of their number; None: all.
    {max_features_per_tree}
    min_impurity_decrease : float, default=0
        Smallest decrease of the variance by a split, times the fraction of the tree's rows in the
        node.
    {splitter}
    leaves : {"auto", "plain", "refilled", "shrunk", "honest"}, default="auto"
        How the means of leaves are computed. "plain": over the in-bag rows; "refilled": over all
        rows; "honest": over the out-of-bag rows; "shrunk": over the in-bag rows plus one row with
        the mean of the parent node, from the root down. "auto": the best of plain and refilled
        leaves, shrunk by 0, 1 or 3 rows, by the squared errors of out-of-bag rows; see
        `TreeForestClassifier`.
    {bootstrap} {max_samples}
    oob_score : bool or callable, default=False
        Whether to score the predictions of out-of-bag rows, each by the trees of whose bags it is
        out: by R2, or by a callable ``oob_score(y, predicted)``, which returns a float.
    {categorical_features}
    monotonic_cst : array-like of int, dict or None, default=None
        For each feature, or by feature name: 1 if predictions must not fall as the feature rises,
        -1 if they must not rise, 0 for no constraint. Leaves are then "plain".
    {warm_start} {random_state} {n_jobs} {verbose}

    Attributes
    ----------
    oob_prediction_ : ndarray of shape (n,), or (n, n_outputs)
        Mean prediction of each row over the trees of whose bags it is out, if `oob_score` is set;
        NaN for rows that are in all bags, or have weight zero.

    Examples
    --------
    >>> from certree.ensembles import TreeForestRegressor
    >>> model = TreeForestRegressor().fit([[k] for k in range(40)], [5.0] * 20 + [9.0] * 20)
    >>> model.predict([[0], [39]]).round()
    array([5., 9.])

    >>> from sklearn.datasets import load_diabetes
    >>> from certree.ensembles import TreeForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TreeForestRegressor(random_state=0).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeForest._parameter_constraints,
        "criterion": [StrOptions({"squared_error", "poisson"})],
    }
    _oob_attribute, _has_classes = "oob_prediction_", False

    oob_prediction_: Float64

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: Literal["squared_error", "poisson"] = "squared_error",
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        max_features: MaxFeatures = 1.0,
        max_features_per_tree: MaxFeatures = None,
        min_impurity_decrease: float = 0.0,
        splitter: Literal["best", "random"] = "best",
        leaves: LeavesName = "auto",
        bootstrap: bool = True,
        max_samples: float | None = None,
        oob_score: bool | Callable[..., float] = False,
        categorical_features: Any = "from_dtype",
        monotonic_cst: MonotonicCst = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _validate_params(self) -> None:
        if isinstance(self.criterion, str) and self.criterion == "absolute_error":
            raise ValueError(
                'criterion="absolute_error" is not supported, as histogram-based forests have no '
                'medians: use criterion="squared_error", BoostedTreesRegressor(loss="absolute_error"), '
                'or a single tree with Cart(criterion="absolute_error")'
            )
        super()._validate_params()

    def _grow_trees(
        self, grower: BinnedGrower, rows: ForestSamples, first: int, n_trees: int
    ) -> GrownForest:
        options: dict[str, Any] = {"first": first, "sample_weight": rows.weight}
        if self.n_outputs_ == 1:
            SquaredLoss().check_targets(rows.y)
            if self.criterion == "poisson":
                expect_poisson_targets(rows.y)
            return grower.grow_numbers(rows.y, n_trees, criterion=self.criterion, **options)
        if self.criterion == "poisson":
            self._expect_one_target('criterion="poisson"')
        for target in rows.targets.T:
            SquaredLoss().check_targets(target)
        factors = 1 / (np.square(self._compute_target_scale(rows)) * self.n_outputs_)
        return grower.grow_columns(rows.targets, n_trees, shares=factors, **options)

    @property
    def _output_groups(self) -> OutputGroups:
        return OutputGroups((1,) * self.n_outputs_)

    def _compute_target_scale(self, rows: ForestSamples) -> Float64:
        return rows.deviations if self.n_outputs_ > 1 else np.ones(1)

    def _collect_node_sums(self, forest: GrownForest) -> Float64:
        return np.ascontiguousarray(forest.total.reshape(-1, 1 + self.n_outputs_))

    def _predict_out_of_bag(self, mean: Float64, leaves: Leaves) -> Float64:  # noqa: ARG002 -- no power
        return to_prediction_shape(mean.T)

    def _score_out_of_bag(
        self, y: NDArray[Any], mean: Float64, leaves: Leaves, weight: Float64 | None
    ) -> float:
        predicted = self._predict_out_of_bag(mean, leaves)
        if callable(self.oob_score):
            return self.oob_score(y, predicted)
        return float(r2_score(y, predicted, sample_weight=weight)) if len(y) > 1 else np.nan

    def _link(self) -> Link:
        return "identity"

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        rows = self._get_rows_per_node()
        return self._make_formula(self.trees_, "forest", "identity", rows=rows)

    @snapshot_method
    @support_dask_collections
    def predict(self, X: ArrayLike) -> Float64:
        """Predict the number of each row.

        Parameters
        ----------
        X : array-like of shape (n, p), or Dask collection
            Rows. For a Dask array or data frame the result is a lazy Dask collection.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            Predictions in units of the target; a column for each of several targets.
        """
        return to_prediction_shape(self._average_trees(X).T)
