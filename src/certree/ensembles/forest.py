"""Random forests and extra trees, behind scikit-learn's interface."""

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
from certree.ensembles.forest_of_parts import (
    expect_what_parts_can,
    samples_of_parts,
    without_hashes,
)
from certree.ensembles.forest_samples import (
    ForestSamples,
    InputRows,
    SortedFeatures,
)
from certree.ensembles.label_columns import LabelColumns
from certree.ensembles.leaves import (
    NAMED_LEAVES,
    PLAIN_LEAVES,
    LeafStatistics,
    Leaves,
    compute_leaf_values,
    compute_mean_weight,
    expand_to_all_classes,
    restore_leaves,
)
from certree.ensembles.losses import SquaredLoss
from certree.ensembles.staged import to_prediction_shape
from certree.explain.additive_trees import AdditiveTrees
from certree.explain.output_groups import OutputGroups
from certree.explain.several_targets import compute_subset_accuracy, select_classes
from certree.explain.tree_model import TreeModel
from certree.export.formula import Formula, Link
from certree.grow.binned_grower import BinnedGrower, GrownForest, RowSampling
from certree.grow.training_samples import (
    MonotonicCst,
    MonotonicSigns,
    check_monotonic_cst,
    expect_poisson_targets,
    resolve_max_features,
)
from certree.interface.arrays import (
    Float64,
    Int32,
    Int64,
    check_column,
    to_row_order,
)
from certree.interface.fitted_state import check_parameters_of_fit, fit_method, snapshot_method
from certree.interface.progress import show_progress
from certree.interface.signatures import COUNT, NONNEGATIVE, ROUNDS
from certree.interface.stored_state import StoredState
from certree.interface.threads import N_JOBS, get_n_threads_or_all
from certree.parts.executors import Executor
from certree.parts.lazy_predictions import support_dask_collections
from certree.parts.rows_elsewhere import rows_elsewhere
from certree.parts.scratch import scratch
from certree.rows.out_of_core import is_out_of_core
from certree.rows.training import training_rows
from certree.tree import Trees

LeavesName = Literal["auto", "plain", "refilled", "shrunk", "honest"]
MaxFeatures = int | float | Literal["sqrt", "log2"] | None

_FRACTION = Interval(Real, 0, 1, closed="right")
_FEATURES = [COUNT, Interval(Real, 0, 1, closed="right"), StrOptions({"sqrt", "log2"}), None]

# What a warm start may change: how many trees there are, and what is made of all of them at its end.
_CHANGEABLE_PARAMETERS = ("n_estimators", "leaves", "oob_score", "warm_start")

# A progress bar advances by so many trees.
_AT_A_TIME = 10
# Where several machines grow trees, each gets so many shares of them, as some are slower.
_JOBS_PER_WORKER = 4


class Forest(TreeModel):
    """What all forests share: how their trees grow, and what can be asked of them."""

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
        """How trees of n rows and p features grow, as `BinnedGrower` takes it."""
        least_split = _resolve_min_rows(self.min_samples_split, n, 2)
        least_leaf = _resolve_min_rows(self.min_samples_leaf, n, 1)
        return {
            "order": "depth" if self.max_leaf_nodes is None else "best",
            "max_leaves": self.max_leaf_nodes,
            # Where all are looked at they are drawn, too: else ties would go to the first ones.
            "max_features": resolve_max_features(self.max_features, p) or p,
            "max_features_per_tree": resolve_max_features(self.max_features_per_tree, p),
            "random_cuts": self.splitter == "random",
            "max_depth": self.max_depth,
            "min_samples_split": max(least_split, 2 * least_leaf),
            "min_samples_leaf": least_leaf,
            "min_gain": float(self.min_impurity_decrease),
        }

    @snapshot_method
    def __len__(self) -> int:
        """Number of trees."""
        check_is_fitted(self)
        return len(self.trees_)

    def __bool__(self) -> bool:
        """True, also before a fit, when nobody knows a length."""
        return True

    def _average_trees(self, X: Any) -> Float64:
        """What trees say on average, (n, n_outputs)."""
        return to_row_order(self._score_in_blocks(X, self._sum_trees)) / len(self.trees_)

    def _sum_trees(self, rows: NDArray[Any]) -> Float64:
        """What trees say in sum, (n_outputs, n)."""
        n = rows.shape[0]
        start = np.zeros((self.trees_.value.shape[1], n))
        return self.trees_.add(start, rows, get_n_threads_or_all(self.n_jobs, n))

    def _get_rows_per_node(self) -> Float64 | None:
        """Rows of the fit in the nodes of all trees, if they are kept."""
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
            Leaves, numbered among the nodes of their tree.
        """
        return np.ascontiguousarray(self._find_leaves(X).T - self.trees_.root)

    def _find_leaves(self, X: ArrayLike) -> Int32:
        """Find the leaf of each row in each tree, (T, n), numbered among the nodes of all trees."""
        rows = self._encode_new_rows_or_csr(X)
        return self.trees_.find_leaves(rows, get_n_threads_or_all(self.n_jobs, rows.shape[0]))

    @snapshot_method
    def decision_path(self, X: ArrayLike) -> tuple[sparse.csr_matrix, Int64]:
        """Find all nodes of all trees that contain each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        indicator : sparse matrix of shape (n, m)
            1 where the node contains the row. Columns are the nodes of all trees, one tree behind the
            other.
        n_nodes_ptr : ndarray of int64, shape (T + 1,)
            Columns ``n_nodes_ptr[t]`` to ``n_nodes_ptr[t + 1]`` are the nodes of tree t.
        """
        leaf = self._find_leaves(X)
        return self.trees_.paths_to(leaf), np.append(self.trees_.root, self.trees_.n_nodes)

    @snapshot_method
    def proximity(self, X: ArrayLike, pairs: ArrayLike) -> Float64:
        """Say in which share of the trees two rows lie in the same leaf.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        pairs : array-like of int, shape (m, 2)
            Numbers of two rows each.

        Returns
        -------
        ndarray of shape (m,)
            Shares, 0 .. 1.
        """
        rows = self._encode_new_rows_or_csr(X)
        n = rows.shape[0]
        given = np.asarray(pairs)
        if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
            raise ValueError(f"pairs must hold two rows each, got shape {given.shape}")
        if given.size and (given.min() < 0 or given.max() >= n):
            raise ValueError(f"pairs must hold rows in 0 .. {n - 1}")
        shared = np.zeros(len(given))
        for leaf in self.trees_.find_leaves(rows, get_n_threads_or_all(self.n_jobs, n)):
            shared += leaf[given[:, 0]] == leaf[given[:, 1]]
        return shared / len(self.trees_)

    def _compute_contributions(self, rows: NDArray[Any]) -> tuple[Float64, Float64]:
        trees = self.trees_
        return trees.root_value / len(trees), trees.compute_contributions(
            rows, get_n_threads_or_all(self.n_jobs, len(rows))
        ) / len(trees)

    @snapshot_method
    def _get_additive_trees(self) -> AdditiveTrees:
        """The trees, each with its share of their mean."""
        check_is_fitted(self)
        trees = self.trees_.with_value(self.trees_.value / len(self.trees_))
        start = np.zeros(trees.value.shape[1])
        return AdditiveTrees(
            trees, start, self._get_rows_per_node(), self._build_explanation_fields
        )


class ForestClassifier(ClassifierMixin, Forest):
    """A forest whose trees say shares of classes, of two classes that of the second."""

    @property
    @abstractmethod
    def _power(self) -> float:
        """What averaged shares are raised to."""

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        rows = self._get_rows_per_node()
        return self._make_formula(self.trees_, "forest", "shares", rows=rows, power=self._power)

    def _link(self) -> Link:
        return "shares"

    def _compute_probabilities(self, mean: Float64, power: float) -> Any:
        """Probabilities of the classes by what trees say on average."""
        return _shares(mean, self.n_classes_, power)

    @snapshot_method
    @support_dask_collections
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row, ties to the first in `classes_`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; of a collection of Dask one is told, when it is computed.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            Classes.
        """
        shares = self._compute_probabilities(self._average_trees(X), 1.0)
        return select_classes(self.classes_, shares)

    @snapshot_method
    @support_dask_collections
    def predict_proba(self, X: ArrayLike) -> Any:
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows, or a collection, as in `predict`.

        Returns
        -------
        ndarray of shape (n, K), or list of them
            Probabilities in the order of `classes_`; of several targets those of each.
        """
        return self._compute_probabilities(self._average_trees(X), self._power)


def _shares(mean: Float64, n_classes: int, power: float) -> Float64:
    if n_classes == 1:
        return np.where(np.isnan(mean), np.nan, 1.0)
    raised: Float64 = expand_to_all_classes(mean) ** power
    return raised / raised.sum(axis=1, keepdims=True)


class TreeForest(Forest):
    """What random forests and extra trees share, whatever the target is."""

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
    # What nodes sum up to, if further trees may be asked for; else all are grown again.
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
    ) -> Self:
        """Grow trees, each on rows and by features of its own.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), or rows that lie elsewhere
            Rows; NaN stands for a missing value. What a sparse matrix does not store is 0, and the
            fit is that of the dense table. Rows elsewhere are the path of a file or of a folder, a list
            of paths, a data set of Arrow, or a collection of Dask.
        y : array-like of shape (n,), or (n, n_outputs)
            Class of each row, or a number; of several targets a column each. Of rows elsewhere a
            column's name, a list of names, or a collection.
        sample_weight : array-like of shape (n,), or None
            Likewise: weight of each row in impurities and leaves, relative to the mean weight. A row is
            drawn like any other whatever it weighs, and counts once in `min_samples_leaf`; one of
            weight zero is as if absent. Unless weights are small multiples of a common unit, they are
            rounded to multiples of 2^-16 of the largest, one at least.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, where rows of one group depend on each other. Whole
            groups are drawn for each tree, so that no row is out of a bag that holds rows of its group;
            `max_samples` is a number or a share of groups. Rows elsewhere take none.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            With ``warm_start=True``, if the rows are others, or a parameter has changed that made the
            trees before; if rows elsewhere are fitted in a way that takes them in memory, files lack a
            column, have no common types or change while they are read, or collections are not cut
            alike.
        OSError
            If files cannot be found, or there is no room for what is made of them.
        """
        self._expect_bootstrap()
        self._expect_plain_leaves()
        if is_out_of_core(X):
            if groups is not None:
                raise ValueError("groups takes rows in memory, got X that lies elsewhere")
            return self._fit_elsewhere(X, y, sample_weight)
        before = getattr(self, "trees_", None) if self.warm_start else None
        if before is not None:
            check_parameters_of_fit(self, *_CHANGEABLE_PARAMETERS)
        training = self._prepare_training(
            X, y, sample_weight, groups=groups, reuse_encoding=before is not None
        )
        if before is None:
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return self._fit_samples(
            ForestSamples.from_training(training), InputRows.from_training(training), before
        )

    def _fit_elsewhere(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit to rows in files or on a cluster."""
        expect_what_parts_can(self)
        n_threads, shown = get_n_threads_or_all(self.n_jobs), self.verbose > 0
        with (
            scratch() as kept,
            rows_elsewhere(X, y, sample_weight, n_threads, shown=shown) as parts,
        ):
            rows, given = samples_of_parts(self, parts, kept)
            self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            return self._fit_samples(rows, given, None, parts)

    def _fit_samples(
        self,
        rows: ForestSamples,
        given: InputRows,
        before: Trees | None,
        parts: Executor | None = None,
    ) -> Self:
        """Grow trees, on the machines that hold parts of the rows if some do, and fill their leaves."""
        grower = self._create_grower(rows)
        self._expect_same_fit(rows.content ^ _hash_drawing(grower.row_sampling), before)
        trees, sums = self._grow_forest(grower, rows, before, parts)
        self._fill_leaves(trees, sums, rows, grower.row_sampling, given)
        return self

    def _expect_bootstrap(self) -> None:
        """What needs rows out of bags needs bags."""
        if self.bootstrap:
            return
        if self.max_samples is not None:
            raise ValueError(
                "`max_samples` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` "
                "or set `max_samples=None`."
            )
        if self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        if self.leaves in ("refilled", "honest"):
            raise ValueError(f'leaves="{self.leaves}" takes rows out of bags: set bootstrap=True')

    @property
    def _has_balanced_bags(self) -> bool:
        """Whether classes weigh the same among the rows that grow each tree."""
        return bool(getattr(self, "class_weight", None) == "balanced_subsample")

    def _expect_plain_leaves(self) -> None:
        """Refuse leaves that count rows by other weights than those in the bag of their tree."""
        if self._has_balanced_bags and self.leaves not in ("auto", "plain"):
            raise ValueError(
                'class_weight="balanced_subsample" takes leaves="auto" or "plain", which count rows '
                f"by their weights in the bag of each tree, got leaves={self.leaves!r}"
            )

    def _slopes(self) -> MonotonicSigns:
        """What predictions must keep to: the means of the rows that grew a tree do."""
        names = getattr(self, "feature_names_in_", None)
        slopes = check_monotonic_cst(self.monotonic_cst, self.n_features_in_, names)
        if slopes is not None:
            self._expect_one_target("monotonic_cst")
        if slopes is not None and self.leaves not in ("auto", "plain"):
            raise ValueError(
                f'monotonic_cst takes leaves="auto" or "plain", whose means keep to it, got '
                f"{self.leaves!r}"
            )
        return slopes

    def _expect_same_fit(self, origin: int, before: Trees | None) -> None:
        """Further trees are those of the fit that would have made all of them."""
        if before is not None and origin != self._fit_digest:
            raise ValueError(
                "warm_start=True adds trees on the rows of the fit before, drawn likewise; these are "
                "others"
            )
        if before is not None and self.n_estimators < len(before):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(trees_)={len(before)} when warm_start==True"
            )
        self._fit_digest = origin

    def _create_grower(self, rows: ForestSamples) -> BinnedGrower:
        n, p = len(rows.y), rows.n_features
        n_units = n if rows.group is None else int(rows.group.max()) + 1
        return BinnedGrower(
            rows.features.bins(self._category_mask(), get_n_threads_or_all(self.n_jobs)),
            bootstrap=bool(self.bootstrap),
            n_draws=_resolve_max_samples(self.max_samples, n_units),
            groups=rows.group,
            monotonic_cst=self._slopes(),
            **self._compute_growth_parameters(n, p),
            feature_order=rows.feature_order,
            seed=self._seed,
            n_jobs=get_n_threads_or_all(self.n_jobs),
        )

    @abstractmethod
    def _grow_trees(
        self, grower: BinnedGrower, rows: ForestSamples, first: int, n_trees: int
    ) -> GrownForest:
        """Grow some trees."""

    @abstractmethod
    def _collect_node_sums(self, forest: GrownForest) -> Float64:
        """What the nodes of grown trees sum up to, (M, 1 + n_lanes), targets in the order of rows."""

    @abstractmethod
    def _compute_target_scale(self, rows: ForestSamples) -> Float64:
        """In which units targets (q,) of rows err."""

    def _compute_importance_units(self, rows: ForestSamples) -> Float64:
        """In units of which means differ where features matter, (n_lanes,), or 1."""
        lanes = self._output_groups.reorder(rows.columns)
        if len(lanes.sizes) == 1:
            return np.ones(1)
        # Gini's index of two classes is twice the variance of the second.
        own = np.sqrt(0.5) if self._has_classes else 1.0
        units = self._compute_target_scale(rows) * np.where(lanes.size_array == 1, own, 1.0)
        return np.repeat(units, lanes.size_array)

    def _grow_forest(
        self,
        grower: BinnedGrower,
        rows: ForestSamples,
        before: Trees | None,
        parts: Executor | None,
    ) -> tuple[Trees, Float64]:
        """The trees and what their nodes sum up to; those of the fit before are not grown again."""
        made = []
        if before is not None and self._node_sums is not None:
            # What nodes say is made of all trees at the end.
            made.append((before.with_value(before.value[:, :0]), self._node_sums))
        first = len(made[0][0]) if made else 0
        importances = self._importances if made else np.zeros(rows.n_features)
        jobs = self._divide_trees(first, 1 if parts is None else parts.n_workers)
        forests = (
            (self._grow_trees(grower, rows, *job) for job in jobs)
            if parts is None
            else parts.spread(grow_trees_of_model, (without_hashes(self), rows), jobs)
        )
        with show_progress(self.verbose > 0, len(jobs), type(self).__name__) as advance:
            for forest in forests:
                sums = self._collect_node_sums(forest)
                units = self._compute_importance_units(rows)
                importances = add_impurity_importances(forest.trees, sums, units, importances)
                made.append((forest.trees, sums))
                advance()
        self._importances = importances
        trees = Trees.joined([one for one, _ in made], rows.n_features, 0)
        return trees, np.concatenate([sums for _, sums in made])

    def _divide_trees(self, first: int, n_workers: int) -> list[tuple[int, int]]:
        """The first of the trees that grow together, from one on, and how many they are."""
        last = int(self.n_estimators)
        step = _AT_A_TIME if self.verbose else max(last - first, 1)
        if n_workers > 1:
            step = min(step, ceil((last - first) / (_JOBS_PER_WORKER * n_workers)))
        return [(start, min(step, last - start)) for start in range(first, last, step)]

    def _sum_by_leaf(
        self, trees: Trees, sums: Float64, rows: ForestSamples, drawing: RowSampling
    ) -> LeafStatistics:
        n_threads = get_n_threads_or_all(self.n_jobs)
        return LeafStatistics(
            rows.features.walk(trees, drawing, n_threads),
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
        drawing: RowSampling,
        given: InputRows,
    ) -> None:
        """Choose what leaves say, and judge all rows out of their bags."""
        leaves = NAMED_LEAVES.get(self.leaves, PLAIN_LEAVES)
        is_free = self._slopes() is None and not self._has_balanced_bags
        for name in ("oob_score_", self._oob_attribute):
            self.__dict__.pop(name, None)
        if self.bootstrap and (self.leaves in ("auto", "refilled", "honest") or self.oob_score):
            arrived = self._sum_by_leaf(trees, sums, rows, drawing)
            if self.leaves == "auto" and is_free:
                leaves = arrived.best(self._has_classes)
            value = arrived.values(leaves)
            if self.oob_score:
                self._set_out_of_bag_scores(arrived, leaves, rows, given)
        else:
            drawn = leaves.shrinkage * compute_mean_weight(rows.weight)
            value = compute_leaf_values(trees, sums, drawn, get_n_threads_or_all(self.n_jobs))
        value = self._output_groups.restore_order(self._round_to_stored(value), rows.columns)
        self._set_trees(trees.with_value(value), sums[:, 0])
        self.leaves_ = leaves
        self._node_sums = sums if self.warm_start else None

    def _set_trees(self, trees: Trees, rows: Float64) -> None:
        """Set trees whose leaves have values; other nodes get the means below, by rows (M,)."""
        # As files hold them.
        self._rows = rows.astype(np.float32).astype(np.float64)
        self.trees_ = trees.with_value(average_leaves(trees.left, self._rows, trees.value))

    def _get_rows_per_node(self) -> Float64:
        return self._rows

    # -- files -------------------------------------------------------------------------------------

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit: what leaves say, and no more, as there are many nodes."""
        is_leaf = self.trees_.is_leaf
        return {
            **super().__stored__(),
            "trees": self.trees_,
            "trees.value": self.trees_.value[is_leaf].astype("f4" if self._has_classes else "f8"),
            "trees.rows": self._rows[is_leaf].astype(np.float32),
            "importances": self._importances,
            "seed": self._seed,
            "origin": self._fit_digest,
            "leaves": [*self.leaves_],
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        self._seed, self._fit_digest = stored.get_integer("seed"), stored.get_integer("origin")
        self.leaves_ = restore_leaves(stored["leaves"])
        is_leaf = ~check_column("compares", stored["trees.compares"], "bool", (None,))
        n_leaves, between = int(is_leaf.sum()), (0.0, 1.0) if self._has_classes else ()
        width = self._output_groups.n_outputs
        said = stored.get_numbers("trees.value", (n_leaves, width), *between)
        value, rows = np.zeros((len(is_leaf), width)), np.zeros(len(is_leaf))
        value[is_leaf] = said
        rows[is_leaf] = stored.get_numbers("trees.rows", (n_leaves,), 0)
        trees = self._restore_trees(Trees, stored.get_section("trees"), value=value)
        if not len(trees):
            raise ValueError("a forest has at least one tree, got none")
        self._set_trees(trees, rows)
        self._importances = stored.get_numbers("importances", (self.n_features_in_,), 0)
        self._node_sums = None

    _oob_attribute: ClassVar[str]
    _has_classes: ClassVar[bool]

    def _round_to_stored(self, value: Float64) -> Float64:
        """What leaves say, as files hold it."""
        # Shares that differ by less are due to chance, and files are half as large.
        return value.astype(np.float32).astype(np.float64) if self._has_classes else value

    @abstractmethod
    def _predict_out_of_bag(self, mean: Float64, leaves: Leaves) -> Any:
        """What is told of rows by the means of what trees say."""

    @abstractmethod
    def _score_out_of_bag(
        self, y: NDArray[Any], mean: Float64, leaves: Leaves, weight: Float64 | None
    ) -> float:
        """Score of what is told of rows."""

    def _set_out_of_bag_scores(
        self, arrived: LeafStatistics, leaves: Leaves, rows: ForestSamples, given: InputRows
    ) -> None:
        said, n_trees = arrived.sum_all_predictions(leaves)
        mean = self._output_groups.restore_order(
            rows.average_by_input_row(said, n_trees, given.n), rows.columns
        )
        known = ~np.isnan(mean[given.indices, 0])
        if not known.all():
            warn(
                "Some inputs do not have OOB scores. This probably means too few trees were used to "
                "compute any reliable OOB estimates.",
                UserWarning,
                stacklevel=6,
            )
        setattr(self, self._oob_attribute, self._predict_out_of_bag(mean, leaves))
        weight = None if given.weight is None else given.weight[known]
        self.oob_score_ = (
            self._score_out_of_bag(given.y[known], mean[given.indices[known]], leaves, weight)
            if known.any()
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
    ) -> Float64:
        """Say how much the loss of rows out of bags rises once the values of a feature are shuffled.

        Parameters
        ----------
        X, y, sample_weight, groups
            The rows of the fit.

        Returns
        -------
        ndarray of shape (p,)
            What each feature adds to the mean log loss, or the mean squared error, of rows that
            trees judge which did not grow on them. Leaves are filled by the rows that grew them.

        Raises
        ------
        ValueError
            If these are not the rows of the fit, or trees have no rows out of their bags.
        """
        check_is_fitted(self)
        if not self.bootstrap:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        about: dict[str, Any] = {"groups": groups, "reuse_encoding": True}
        rows = ForestSamples.from_training(training_rows(self, X, y, sample_weight, **about)[0])
        n = len(rows.y) if rows.group is None else int(rows.group.max()) + 1
        n_draws = _resolve_max_samples(self.max_samples, n) or n
        drawing = RowSampling("repeated", n_draws, self._seed, rows.group)
        if rows.content ^ _hash_drawing(drawing) != self._fit_digest:
            raise ValueError(
                "X, y, sample_weight and groups must be the rows of the fit, and these are not"
            )
        lanes = self._output_groups.reorder(rows.columns)
        X = cast(SortedFeatures, rows.features).X
        sums = sum_in_bag_targets(self.trees_, rows, X, drawing, lanes, self._has_balanced_bags)
        known = self._sum_by_leaf(self.trees_, sums, rows, drawing)
        leaves = self.leaves_._replace(filled_by="in_bag")
        return compute_permutation_importances(
            known,
            X,
            leaves,
            drawing,
            classes=self._has_classes,
            seed=self._seed,
            feature_order=rows.feature_order,
        )


def grow_trees_of_model(model: Any, rows: ForestSamples, first: int, n_trees: int) -> GrownForest:
    """Some of the trees of a forest, which may grow anywhere."""
    grown: GrownForest = model._grow_trees(model._create_grower(rows), rows, first, n_trees)
    return grown


def _hash_drawing(drawing: RowSampling) -> int:
    """A number for how rows are drawn."""
    is_repeated = drawing.kind == "repeated"
    return (drawing.n_draws * 2**20 + drawing.seed + int(is_repeated)) % 2**56


def _resolve_min_rows(given: Any, n: int, least: int) -> int:
    return int(given) if isinstance(given, Integral) else max(least, ceil(given * n))


def _resolve_max_samples(max_samples: Any, n: int) -> int | None:
    """How many rows are drawn, in scikit-learn's words; None: as many as there are."""
    if max_samples is None:
        return None
    if isinstance(max_samples, Integral):
        if int(max_samples) > n:
            raise ValueError(f"`max_samples` must be <= n_samples={n} but got value {max_samples}")
        return int(max_samples)
    return max(round(n * max_samples), 1)


class TreeForestClassifier(LabelColumns, ForestClassifier, TreeForest):
    """A forest of trees for classes: random forests, and extra trees.

    A drop-in for scikit-learn's `RandomForestClassifier` and `ExtraTreesClassifier`. Beyond them it
    chooses by rows out of the trees' bags what leaves say, so that probabilities need no calibration;
    it takes categories and missing values, and depends neither on the order of the rows nor on the
    number of threads. Rows may have classes in several columns, which one tree serves: what a cut
    gains is the mean over them.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Impurity that cuts lower; "log_loss" is "entropy".
    max_depth : int or None, default=None
        Depth at which cells are leaves.
    max_leaf_nodes : int or None, default=None
        So many leaves a tree at most: the cell whose cut lowers the impurity most is divided first.
    min_samples_split : int or float, default=2
        A cell of fewer rows is a leaf; a float is a share of the rows. A row counts once however often
        it was drawn.
    min_samples_leaf : int or float, default=1
        Rows on either side of a cut, likewise.
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
        Features that are looked at in a cell: a number, a share of them, the root or the logarithm of
        how many there are, or all.
    max_features_per_tree : int, float, "sqrt", "log2" or None, default=None
        Features that a tree may compare at all, drawn for each.
    min_impurity_decrease : float, default=0
        A cut is made if it lowers the impurity of its cell, times its share of the tree's rows, by so
        much at least.
    splitter : {"best", "random"}, default="best"
        "random": of each feature one cut is drawn, and the best of these is made, as in extra trees;
        scikit-learn's have ``bootstrap=False``.
    leaves : {"auto", "plain", "refilled", "shrunk", "honest"}, default="auto"
        Shares of classes in leaves. "plain": those of the rows that grew the tree; "refilled": of all
        rows; "honest": of the rows that did not grow it; "shrunk": of those that did, and one row of
        the parent's, from the root down. "auto": what has the smallest log loss of rows out of their
        bags, each left out of the leaves that judge it: of plain and refilled leaves, drawn to their
        parents by 0, 1 or 3 rows, and a power of the averaged probabilities. Plain ones, unless others
        are better by more than a standard error, and where there are no rows out of bags.
    bootstrap : bool, default=True
        Whether each tree grows on rows that are drawn, the same ones more than once; else on all.
    max_samples : int, float or None, default=None
        Number of rows drawn for a tree, or share of the rows; None: as many as there are.
    oob_score : bool or callable, default=False
        Whether to score rows by the trees that did not grow on them: their accuracy, or what
        ``oob_score(y, predicted)`` says.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if the probability of the second of two classes must not
        fall where it rises, -1 if it must not rise, 0 otherwise. Leaves are plain then.
    class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Weights of the classes, as in scikit-learn; of several targets a dict for each.
        "balanced_subsample": all classes weigh the same among the rows that are drawn for each tree;
        leaves are plain then.
    warm_start : bool, default=False
        Whether a fit on the same rows adds trees, up to `n_estimators`, to those of the fit before. Of
        the parameters only `n_estimators`, `leaves`, `oob_score`, `n_jobs`, `verbose` and `warm_start`
        may change between them.
    random_state : int, RandomState or None, default=None
        Decides rows and features of the trees.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of them
        The classes; of several targets those of each.
    n_classes_ : int, or list of int
        How many they are.
    n_outputs_ : int
        Number of columns of y; 1 where it is a column itself.
    trees_ : Trees
        The trees. Leaves say shares of the classes, of two classes that of the second, one target
        behind the other; other nodes the mean of the leaves below, by the rows in the tree's bag.
    leaves_ : Leaves
        What leaves say, and the power of the averaged probabilities.
    feature_importances_ : ndarray of shape (p,)
        Share of each feature in how far cuts lower the impurity.
    oob_score_ : float
        Score of rows out of bags, if `oob_score`.
    oob_decision_function_ : ndarray of shape (n, K), or (n, K, n_outputs)
        Their probabilities; NaN for rows that are in all bags, or of weight zero. Of several targets K
        is the largest number of classes, and 0 stands for classes that a target does not have.
    sample_hashes_ : ndarray of uint64
        Hashes of the rows of the fit.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all are numbers.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    References
    ----------
    Breiman, "Random forests", 2001; Geurts, Ernst and Wehenkel, "Extremely randomized trees", 2006.

    Examples
    --------
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

    def _slopes(self) -> MonotonicSigns:
        slopes = super()._slopes()
        if slopes is not None and self.n_classes_ > 2:
            raise ValueError(
                f"monotonic_cst takes numbers or two classes, got {self.n_classes_} classes"
            )
        return slopes

    @property
    def _power(self) -> float:
        return self.leaves_.power

    def _grow_trees(
        self, grower: BinnedGrower, rows: ForestSamples, first: int, n_trees: int
    ) -> GrownForest:
        how: dict[str, Any] = {"first": first, "sample_weight": rows.weight}
        how |= {"criterion": self.criterion, "balanced": self._has_balanced_bags}
        if self.n_outputs_ > 1:
            n_classes = [self.n_classes_[k] for k in rows.columns]
            return grower.grow_columns(rows.y, n_trees, n_classes=n_classes, **how)
        return grower.grow_classes(rows.y, self.n_classes_, n_trees, **how)

    def _collect_node_sums(self, forest: GrownForest) -> Float64:
        if self.n_outputs_ > 1:
            return np.ascontiguousarray(forest.total.reshape(-1, 1 + self._output_groups.n_outputs))
        table = forest.class_weights(self.n_classes_)
        lanes = table[:, 1:] if self.n_classes_ == 2 else table
        return np.column_stack([table.sum(axis=1), lanes])

    def _predict_out_of_bag(self, mean: Float64, leaves: Leaves) -> Float64:
        shares = self._compute_probabilities(mean, leaves.power)
        if not self._has_several_targets():
            return np.asarray(shares)
        most = max(self.n_classes_)
        padded = [np.pad(one, ((0, 0), (0, most - one.shape[1]))) for one in shares]
        padded = [np.where(np.isnan(one[:, :1]), np.nan, one) for one in padded]
        return np.stack(padded, axis=2)

    def _score_out_of_bag(
        self, y: NDArray[Any], mean: Float64, leaves: Leaves, weight: Float64 | None
    ) -> float:
        answer = select_classes(self.classes_, self._compute_probabilities(mean, leaves.power))
        truth = self._decode_targets(y)
        if callable(self.oob_score):
            return self.oob_score(truth, answer)
        if self.n_outputs_ > 1:
            return compute_subset_accuracy(truth, answer, weight)
        return float(accuracy_score(truth, answer, sample_weight=weight))

    def _compute_probabilities(self, mean: Float64, power: float) -> Any:
        return self._map_targets(lambda known, said: _shares(said, len(known), power), mean, axis=1)


class TreeForestRegressor(RegressorMixin, TreeForest):
    """A forest of trees for numbers: random forests, and extra trees.

    See `TreeForestClassifier`, whose attributes it has but for those that speak of classes. Of several
    numbers of each row a cut gains the mean of what their squared errors fall by, in units of their
    variances.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared_error", "poisson"}, default="squared_error"
        Impurity that cuts lower. "poisson": half of the Poisson deviance, for counts and rates; leaves
        say means all the same; of one number. There is no "absolute_error", as trees grow from sums,
        which tell no median: `BoostedTreesRegressor` has that loss.
    max_depth : int or None, default=None
        Depth at which cells are leaves.
    max_leaf_nodes : int or None, default=None
        So many leaves a tree at most: the cell whose cut lowers the impurity most is divided first.
    min_samples_split : int or float, default=2
        A cell of fewer rows is a leaf; a float is a share of the rows. A row counts once however often
        it was drawn.
    min_samples_leaf : int or float, default=1
        Rows on either side of a cut, likewise.
    max_features : int, float, "sqrt", "log2" or None, default=1.0
        Features that are looked at in a cell; see `TreeForestClassifier`.
    max_features_per_tree : int, float, "sqrt", "log2" or None, default=None
        Features that a tree may compare at all, drawn for each.
    min_impurity_decrease : float, default=0
        A cut is made if it lowers the variance of its cell, times its share of the tree's rows, by so
        much at least.
    splitter : {"best", "random"}, default="best"
        "random": of each feature one cut is drawn, and the best of these is made, as in extra trees;
        scikit-learn's have ``bootstrap=False``.
    leaves : {"auto", "plain", "refilled", "shrunk", "honest"}, default="auto"
        What leaves say; see `TreeForestClassifier`. "auto" goes by the squared error, and there is no
        power.
    bootstrap : bool, default=True
        Whether each tree grows on rows that are drawn, the same ones more than once; else on all.
    max_samples : int, float or None, default=None
        Number of rows drawn for a tree, or share of the rows; None: as many as there are.
    oob_score : bool or callable, default=False
        Whether to score rows by the trees that did not grow on them: by R2, or what
        ``oob_score(y, predicted)`` says.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if predictions must not fall where it rises, -1 if they
        must not rise, 0 otherwise. Leaves are plain then.
    warm_start : bool, default=False
        Whether a fit on the same rows adds trees, up to `n_estimators`, to those of the fit before. Of
        the parameters only `n_estimators`, `leaves`, `oob_score`, `n_jobs`, `verbose` and `warm_start`
        may change between them.
    random_state : int, RandomState or None, default=None
        Decides rows and features of the trees.
    n_jobs : int or None, default=None
        Number of threads; None: all that the process may use, but one in a worker of joblib.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    oob_prediction_ : ndarray of shape (n,), or (n, n_outputs)
        What trees say of rows out of their bags, if `oob_score`; NaN as in
        `TreeForestClassifier.oob_decision_function_`.

    Examples
    --------
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
                'criterion="absolute_error" takes medians, and forests grow from sums, which tell '
                'none: use BoostedTreesRegressor(loss="absolute_error"), or one tree on '
                'Cart(criterion="absolute_error")'
            )
        super()._validate_params()

    def _grow_trees(
        self, grower: BinnedGrower, rows: ForestSamples, first: int, n_trees: int
    ) -> GrownForest:
        how: dict[str, Any] = {"first": first, "sample_weight": rows.weight}
        if self.n_outputs_ == 1:
            SquaredLoss().check_targets(rows.y)
            if self.criterion == "poisson":
                expect_poisson_targets(rows.y)
            return grower.grow_numbers(rows.y, n_trees, criterion=self.criterion, **how)
        if self.criterion == "poisson":
            self._expect_one_target('criterion="poisson"')
        for one in rows.targets.T:
            SquaredLoss().check_targets(one)
        shares = 1 / (np.square(self._compute_target_scale(rows)) * self.n_outputs_)
        return grower.grow_columns(rows.targets, n_trees, shares=shares, **how)

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
        said = self._predict_out_of_bag(mean, leaves)
        if callable(self.oob_score):
            return self.oob_score(y, said)
        return float(r2_score(y, said, sample_weight=weight)) if len(y) > 1 else np.nan

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
        X : array-like of shape (n, p)
            Rows; of a collection of Dask one is told, when it is computed.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            Numbers in units of the target.
        """
        return to_prediction_shape(self._average_trees(X).T)
