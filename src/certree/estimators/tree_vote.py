"""Base classes of estimators with one tree: grow it, choose inverse temperatures, let prunings vote."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from certree._core import score_nodes
from certree.certificates.subsets.node_bounds import NodeBounds
from certree.estimators.out_of_core_trees import fit_out_of_core, fit_tree_out_of_core
from certree.estimators.tune import (
    Candidate,
    GrownFold,
    Mixture,
    Objective,
    Search,
    choose_posteriors,
)
from certree.explain.additive_trees import AdditiveTrees
from certree.explain.contributions import compute_contributions
from certree.explain.output_groups import OutputGroups
from certree.explain.path import Explainer, NestedCells
from certree.explain.rules import Rules, describe_rules, extract_rules, format_tree
from certree.explain.several_targets import score_classifier, select_classes
from certree.explain.tree_model import TreeModel, has_numeric_leaves
from certree.export.formula import Formula, Link, normalize_with_labels
from certree.grow.cart import Cart
from certree.grow.grower import GROWERS, Grower, GrownTree, grow_trees, resolve_grower
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import Float64, Int32, check_codes
from certree.interface.fitted_state import available_if, fit_method, snapshot_method
from certree.interface.formatting import format_quantity
from certree.interface.positive_class import find_positive_class
from certree.interface.progress import show_progress
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.interface.threads import N_JOBS, get_n_threads
from certree.out_of_core.executors import Executor
from certree.out_of_core.lazy_predictions import support_dask_collections
from certree.out_of_core.time_split import TimeArguments
from certree.rows.folds import Fold, Indices
from certree.rows.monotonic import MonotonicSigns, check_monotonic_cst
from certree.rows.out_of_core import is_out_of_core
from certree.rows.training import Training, WeightedTarget, to_table
from certree.stats import NodeStats, SeveralStats, SparseNodeStats, Stats, TargetStats
from certree.stats.exact_leaf_sums import count_exactly, measure_exactly, reduce_in_memory
from certree.stats.nodes import count_by_leaf
from certree.stats.ranked_categories import RankableRows
from certree.stats.sparse import MANY_CLASSES
from certree.stats.targets import measure_by_leaf
from certree.tree import LEAF, Tree, find_rows_with_missing
from certree.votes import (
    DeferredVote,
    NodePredictions,
    SparseNodePredictions,
    Vote,
    Voting,
    prediction_variance,
    scaled_distances,
    vote,
)
from certree.weights.family import Scoring, compute_gains
from certree.weights.node_weights import NodeWeights, reached
from certree.weights.rule_numbers import RuleNumbers, number_rules

# Constraints of `class_weight` for classifiers that support several targets.
WEIGHTS_OF_TARGETS: list[Any] = [dict, list, StrOptions({"balanced"}), None]
# Sums of probabilities may exceed 1 by this much.
_ROUNDING = 1e-6


def _read_tree(stored: StoredState, name: str, model: TreeModel) -> Tree:
    """Return the tree that a model file holds.

    stored, name: the content of the file, and the name of the section of the tree; model: the
    estimator that is restored, whose number of features and categories the tree must fit. Raise
    ValueError if it does not.
    """
    return model._restore_trees(Tree, stored.get_section(name))


class TreeVoteEstimator(TreeModel):
    """Base class of estimators in which the prunings of a single tree vote.

    A pruning is the tree after some of its nodes have become leaves. `fit` grows the tree, chooses
    inverse temperatures by cross-validation, computes the posterior weights of all prunings, and
    stores the outcome of their vote. A subclass has the constructor arguments, and defines the
    abstract methods: `_get_candidates` and `_get_voting` for the kind of vote, the others for the
    kind of target. It sets `_temperatures`, the names of its parameters that cross-validation may
    choose.

    Attributes
    ----------
    tree_ : Tree
        The tree, with m nodes.
    stats_ : NodeStats, SparseNodeStats, TargetStats or SeveralStats
        Statistics of the training rows in its nodes.
    weights_ : NodeWeights
        Posterior weights of its prunings, as the probability of each node to be a leaf.
    vote_ : Vote or DeferredVote
        The outcome of the vote in the leaves: class probabilities, (m, K), or predicted numbers; at
        splits, the part of it by prunings that stop there or above.
    best_params_ : dict
        The inverse temperatures by name; a list if the posteriors of a mixture differ in it.
    posteriors_ : list of str, length g
        Names of the posteriors that vote.
    mixture_weights_ : list of float, length g
        Weight of each of these posteriors; they sum to 1.
    """

    _temperatures: ClassVar[tuple[str, ...]]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "grower": [
            StrOptions(set(GROWERS)),
            HasMethods(["grow", "get_params"]),
            HasMethods(["fit", "get_params"]),
        ],
        "cv": ["cv_object"],
        "max_depth": [Interval(Integral, 0, None, closed="left"), StrOptions({"log"}), None],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "monotonic_cst": ["array-like", dict, None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    monotonic_cst: Any = None
    # Whether `fit` supports out-of-core and distributed data.
    _takes_blocks: ClassVar[bool] = False

    @abstractmethod
    def _get_candidates(self) -> dict[str, Candidate]:
        """Return the kinds of posteriors that cross-validation chooses from, by name.

        The keys are names such as "error, leaves", which `posteriors_` stores. A `Candidate` has a
        function that computes posterior weights of the prunings of a tree (the tree with some nodes
        turned into leaves), for given inverse temperatures (factors of loss and size in the log
        weight of a pruning), and the way in which prunings vote. If the estimator prunes by a rule,
        there is one candidate, whose function computes the pruning for a given alpha. Order
        matters: the first candidate with the smallest validation loss is chosen, and the first one
        is used if no inverse temperature is None.
        """

    @abstractmethod
    def _get_voting(self) -> Voting:
        """Return how a pruning (the tree with some nodes turned into leaves) votes.

        The result has the kind ("mean": by the class frequencies or mean of the leaf that a row
        reaches, "majority": for its most frequent class), the smoothing (number of rows with the
        class frequencies or mean of its parent that are added to each node) and monotonic
        constraints.
        """

    @abstractmethod
    def _compute_node_stats(
        self,
        tree: Tree,
        leaf: Int32,
        y: NDArray[Any],
        weight: Float64 | None,
        weight_unit: float,
        squared_weight: Float64 | None = None,
    ) -> Stats:
        """Compute the statistics of rows in each node of a tree.

        A pruning is the tree with some nodes turned into leaves.

        Parameters
        ----------
        tree : Tree
            The tree.
        leaf : ndarray of int32, shape (n,)
            Node number (row of the arrays of `tree`) of the leaf that each row reaches.
        y : ndarray of shape (n,), or (n, q)
            Class codes (int32) or numbers (float64); one column for each of several targets.
        weight : ndarray of float64, shape (n,), or None
            Row weights; None: 1 each.
        weight_unit : float
            Mean weight of a training row of the whole fit, also if these are rows of a fold.
            Posteriors and prunings divide sums of weights by it to get numbers of rows.
        squared_weight : ndarray of float64, shape (n,), or None
            If each entry stands for several rows, the sum of their squared weights; None: each
            entry is one row. Regressors ignore it.

        Returns
        -------
        NodeStats, SparseNodeStats, TargetStats or SeveralStats
            Class counts, or moments of a numeric target, in every node.
        """

    def _get_search(self) -> Search:
        """Return how inverse temperatures are chosen; here "joint", all together on a grid.

        Subclasses may return "error-first", one after the other, or "mixture", in which posteriors
        with several values vote together. Inverse temperatures are the factors of loss and size in
        the log weight of a pruning (the tree with some nodes turned into leaves).
        """
        return "joint"

    def _get_scoring(self) -> Scoring:
        """Return the loss that cross-validation minimises: "error", "log_loss" or "squared".

        Here it is the attribute `scoring`: "squared" for regressors, one of the other two for
        classifiers. They are the weight of wrongly predicted rows, the log loss (nats) and the
        squared error.
        """
        return self.scoring

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, or of its grower or rule by ``<component>__<parameter>``.

        Parameters
        ----------
        **params
            Values by parameter name. If the component is a string, such as grower="cart", it is
            replaced by its object first, so that ``grower__max_leaf_nodes=64`` works as well.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            If a parameter does not exist, or the component is a string that stands for no object.
        """
        for name, object_of in self._get_string_converters().items():
            value = params.get(name, getattr(self, name))
            if isinstance(value, str) and any(key.startswith(f"{name}__") for key in params):
                params[name] = object_of(value)
                if params[name] is None:
                    keys = [key for key in params if key.startswith(f"{name}__")]
                    raise ValueError(
                        f"{keys[0]} must be left out with {name}={value!r}, which has no "
                        f"parameters: set {name} to an object that has this parameter"
                    )
        return super().set_params(**params)

    def _get_string_converters(self) -> dict[str, Callable[[Any], Any]]:
        """Return functions that convert the short names of components to objects, by parameter.

        A function takes a string, such as "cart", and returns the object, such as ``Cart()``; None
        if the string stands for no object. Parameters are "grower" and, in subclasses, others such
        as "rule". `set_params` uses it.
        """
        return {"grower": self._resolve_grower}

    def _resolve_grower(self, value: Any) -> Grower:
        """Return the grower object that a value of the parameter `grower` stands for.

        value: "cart", "kd" or "dyadic", a grower, which is returned itself, or a decision tree of
        scikit-learn, which is wrapped in a grower that fits a clone of it. Raise ValueError for any
        other value.
        """
        return resolve_grower(value)

    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        time: Any = None,
        gap: Any = 0,
    ) -> Self:
        """Grow the tree, choose the inverse temperatures, and compute the vote of the prunings.

        Inverse temperatures are the factors of loss and size in the log weight of a pruning. The
        vote is the average of the predictions of all prunings (the tree with some nodes turned into
        leaves), by their posterior weights.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Training rows; NaN is a missing value, and the grower decides where it goes. If no
            training row lacks the value at a split, new rows that lack it go to both children, in
            proportion to their training rows. With a `Cart` grower that has `max_bins`, X may be
            out-of-core or distributed: paths of files, a `pyarrow.dataset.Dataset` or a Dask
            collection. Then y, sample_weight and groups are names of columns, or Dask collections.
        y : array-like of shape (n,), or (n, n_outputs)
            Class of each row, or a number. One column for each target if the estimator supports
            several.
        sample_weight : array-like of shape (n,), or None
            Weight of each row; None: 1. Only ratios of weights matter. A row of weight zero is left
            out; any other row counts as one row in folds, whatever its weight.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, if rows of one group depend on each other. All
            rows of a group are in the same fold, so no row validates a tree that its group has
            helped to grow. Groups must have an order, such as numbers or strings.
        time : array-like of shape (n,), str or None
            Time of each row, numbers or dates with or without a time zone, or the name of such a
            column of X, which stays a feature. The latest fifth of the rows (or groups)
            then validates instead of random folds; `cv` must be an integer or None, and its value
            is not used. Rows of one time stay together. The last tree
            grows on all rows. For files the name of a column; for Dask collections it may be a
            collection, too. None: rows have no times.
        gap : int or timedelta
            Rows to leave out between the rows that train and those that validate: their number, as
            in scikit-learn's `TimeSeriesSplit`, or the time they span. Only used with `time`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self._takes_blocks and is_out_of_core(X):
            order = TimeArguments.read(X, time, gap)
            arrays = self._fit_out_of_core(X, y, sample_weight, groups, order)
            if arrays is None:
                return self
            X, y, sample_weight, groups, time = arrays
        self._fit(self._prepare_training(X, y, sample_weight, groups=groups, time=time, gap=gap))
        return self

    def _fit_out_of_core(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, order: TimeArguments | None
    ) -> tuple[Any, Any, Any, Any, Any] | None:
        """Fit to rows in files or on a cluster, unless they are so few that they should be in memory.

        X: paths of files, a `pyarrow.dataset.Dataset` or a Dask collection; y, sample_weight,
        groups: names of columns, or Dask collections; the last two may be None; order: the
        arguments `time` and `gap` of `fit`, or None. Return None if the model is fitted; otherwise
        X, y, sample_weight, groups and times as arrays or data frames in memory, which the caller then
        fits.
        """
        return fit_out_of_core(self, X, y, sample_weight, groups, order)

    def _fit_blocks(self, executor: Executor, order: TimeArguments | None = None) -> None:
        """Fit to out-of-core or distributed rows, and set all fitted attributes.

        executor: holds the blocks of rows with their features, targets and weights, on this machine
        or on a cluster, and runs functions on them; order: the arguments `time` and `gap` of `fit`,
        or None.
        """
        fit_tree_out_of_core(self, executor, order)

    def _check_classes(self) -> None:
        """Raise ValueError if the method does not support the number of classes, `n_classes_`.

        Here any number is supported. `fit` calls it after `n_classes_` is set.
        """

    def _fit(self, training: Training) -> None:
        """Fit the tree and the vote to encoded training rows, and set all fitted attributes.

        training: features (numbers and category codes), targets (class codes or numbers) and
        weights of the rows.
        """
        random_state = check_random_state(self.random_state)
        grown, posteriors, _ = self._grow_and_tune(training, random_state)
        (tree, rows), weights = grown, (training.weight, training.weight_unit)
        stats = self._compute_node_stats(tree, grown.find_leaves(), training.y, *weights)
        self._finish_fit(rows.replace_ranks(tree.learn_missing(rows.X)), stats, posteriors)

    def _get_grower(self) -> Grower:
        """Return the object that grows trees, for which the parameter `grower` stands."""
        return self._resolve_grower(self.grower)

    def _orders_categories_by_rows(self) -> bool:
        # A tree that is fixed before the rows are seen must not depend on them through category codes.
        return self._resolve_grower(self.grower).depends_on_rows

    def _has_code_of_unknown(self) -> bool:
        # Only splits on category sets send unknown categories elsewhere than missing values.
        return getattr(self._resolve_grower(self.grower), "splits_categories", False)

    def _uses_exact_sums(self, y: NDArray[Any]) -> bool:
        """Return whether node statistics are exact sums, which do not depend on the row order.

        Node statistics are class counts or moments of the target. y: target of the training rows,
        (n,) or (n, n_outputs). Exact sums are used if the grower uses them, too (its attribute
        `has_exact_sums`), and y has a single target.
        """
        return y.ndim == 1 and getattr(self._get_grower(), "has_exact_sums", False)

    def _splits_by_content(self) -> bool:
        """Return whether the calibration set is drawn by the rows' values instead of their positions.

        Then the same rows in another order have the same train/calibration split. It needs a grower
        whose sums do not depend on the row order (its attribute `has_exact_sums`), and no
        preprocessor, whose fit may depend on the order.
        """
        by_rows = getattr(self._get_grower(), "has_exact_sums", False)
        return bool(by_rows and getattr(self, "preprocessor", None) is None)

    def _make_training_samples(
        self, training: Training, random_state: np.random.RandomState
    ) -> TrainingSamples:
        """Return the training rows together with the parameters of growth.

        These are the largest depth, categorical features, monotonic constraints, number of threads
        and the grower's seed, which is drawn from random_state. training: the encoded rows.
        """
        return TrainingSamples(
            training.X,
            training.y,
            training.weight,
            max_depth=self.max_depth,
            categorical=self._category_mask(),
            monotonic_signs=self._get_monotonic_signs(),
            random_state=int(random_state.randint(2**31 - 1)),
            n_jobs=self.n_jobs,
            compute_feature_order=lambda: training.draw_order,
            dates=self.dates_,
        )

    def _make_ranked_samples(
        self, training: Training, random_state: np.random.RandomState
    ) -> TrainingSamples:
        """Return the training rows with the parameters of growth, and how to rank many categories.

        They hold a function, `rank_categories`, by which growth replaces the categories of features
        with more than 30 categories by ranks: the places of the categories in the order of their
        mean targets. That needs a `Cart` grower, a dense table, and a single target of numbers or
        of at most five classes; otherwise the result is that of `_make_training_samples`. training:
        the encoded rows; random_state: source of the grower's seed.
        """
        samples, grower = self._make_training_samples(training, random_state), self._get_grower()
        mask, n_classes = samples.categorical, getattr(self, "n_classes_", 1)
        if mask is None or not isinstance(grower, Cart):
            return samples
        rows = RankableRows.from_training(training, mask, n_classes)
        if rows is None:
            return samples
        rank = partial(rows.rank_samples, samples, grower.n_ranks)
        return replace(samples, rank_categories=rank)

    def _get_monotonic_signs(self) -> MonotonicSigns:
        """Return the monotonic constraint of each feature, (p,) int8, or None if there is none.

        1: predictions must not fall as the feature rises; -1: they must not rise; 0: no constraint.
        They come from the parameter `monotonic_cst`. Raise ValueError if the grower, or several
        targets, do not support constraints.
        """
        names = getattr(self, "feature_names_in_", None)
        counts = self.n_features_in_, names, self._n_encoded
        signs = check_monotonic_cst(self.monotonic_cst, *counts, self._category_mask())
        if signs is not None:
            self._expect_one_target("monotonic_cst")
        if signs is not None and not getattr(self._get_grower(), "supports_monotonic_cst", False):
            raise ValueError(
                f"monotonic_cst needs grower to be a Cart, got {self.grower!r}: use grower='cart', or "
                "monotonic_cst=None"
            )
        return signs

    def _grow_and_tune(
        self, training: Training, random_state: np.random.RandomState
    ) -> tuple[GrownTree, Mixture, list[GrownFold]]:
        """Grow the trees of all rows and of the folds, and choose the posteriors by the folds.

        A posterior is a distribution over the prunings of a tree (the tree with some nodes turned
        into leaves).

        Parameters
        ----------
        training : Training
            The training rows: features (numbers and category codes), targets and weights.
        random_state : RandomState
            Source of the folds and of the growers' seed.

        Returns
        -------
        grown : GrownTree
            The tree of all training rows.
        posteriors : Mixture
            The chosen inverse temperatures (factors of loss and size in the log weight of a
            pruning) of each posterior, and the weights of the posteriors.
        folds : list of GrownFold
            The tree of each fold, grown on its training rows, and statistics of its training and
            validation rows in the nodes; empty if nothing is left to choose.
        """
        rows, target = self._make_ranked_samples(training, random_state), training.target
        folds = (
            training.split_folds(self.cv, random_state) if self._needs_cross_validation() else []
        )
        with self._show_progress(folds) as advance:
            *trees, whole = grow_trees(self._get_grower(), rows, [*folds, None], advance)
            leaves = [tree.find_leaves() for tree in trees]
            grown = self._compute_fold_stats(folds, trees, leaves, target)
            return whole, self._tune(grown, advance), grown

    def _show_progress(self, folds: Sequence[Any]) -> AbstractContextManager[Callable[[], None]]:
        """Return a context manager that shows a progress bar if `verbose` is positive.

        It yields a function without arguments that advances the bar by a step, or does nothing.
        There is a step for each of the folds, one for the tree of all rows, and four for each
        candidate: a kind of weights of the prunings of the tree (the tree with some nodes turned
        into leaves), or a pruning rule.
        """
        steps = len(folds) + 1 + 4 * len(self._get_candidates())
        return show_progress(self.verbose > 0, steps, type(self).__name__)

    def _needs_cross_validation(self) -> bool:
        """Return whether some inverse temperature (or alpha of the pruning rule) is None.

        Then cross-validation has to choose it. Inverse temperatures are the factors of loss and
        size in the log weight of a pruning (the tree with some nodes turned into leaves).
        """
        return None in self._get_temperatures()

    def _get_temperatures(self) -> list[float | None]:
        """Return the value of each parameter in `_temperatures`; None if it is to be chosen.

        These are the inverse temperatures of the posterior, that is, the factors of loss and size
        in the log weight of a pruning (the tree with some nodes turned into leaves); or the alpha
        of the pruning rule, the factor of its penalty.
        """
        return [getattr(self, name) for name in self._temperatures]

    def _tune(self, grown: list[GrownFold], advance: Callable[[], None] = lambda: None) -> Mixture:
        """Choose the inverse temperatures, or alpha, that are None by cross-validation.

        `_get_search` says how: together, one after the other, or as a mixture of posteriors with
        several values. Inverse temperatures are the factors of loss and size in the log weight of a
        pruning (the tree with some nodes turned into leaves).

        grown: tree, and node statistics of training and validation rows, of each fold; advance:
        function without arguments that is called after each step, for a progress bar. Return the
        chosen posteriors; if no inverse temperature is None, the posterior of the first candidate
        in `_get_candidates`, with the values that are set.
        """
        candidates = self._get_candidates()
        values = [value for value in self._get_temperatures() if value is not None]
        if not self._needs_cross_validation():
            return Mixture.from_single(next(iter(candidates)), values)
        n_threads = get_n_threads(self.n_jobs)
        objectives = {
            name: Objective.for_candidate(grown, candidate, self._get_scoring(), n_threads)
            for name, candidate in candidates.items()
        }
        return choose_posteriors(objectives, self._get_temperatures(), self._get_search(), advance)

    def _compute_fold_stats(
        self,
        folds: list[Fold],
        trees: list[GrownTree],
        leaves: list[Int32],
        rows: WeightedTarget,
    ) -> list[GrownFold]:
        """Compute, for each fold, the node statistics of its training rows and its validation rows.

        Parameters
        ----------
        folds : list of Fold
            Indices of the training rows and of the validation rows of each fold.
        trees : list of GrownTree
            The tree of each fold.
        leaves : list of ndarray of int32, shape (n,)
            For each fold, the node number in its tree of the leaf that each of the n rows reaches.
        rows : WeightedTarget
            Targets and weights of the n rows.

        Returns
        -------
        list of GrownFold
            For each fold its tree, and the statistics of its training rows and of its validation
            rows in the nodes.
        """
        return [
            GrownFold.from_rows(fold, grown.tree, self._compute_node_stats, leaf, rows)
            for fold, grown, leaf in zip(folds, trees, leaves, strict=True)
        ]

    def _finish_fit(self, tree: Tree, stats: Stats, posteriors: Mixture) -> None:
        """Compute the posterior and the vote of all prunings, and set all fitted attributes.

        The attributes are `tree_`, `stats_`, `weights_`, `vote_`, `best_params_`,
        `mixture_weights_` and `posteriors_`. A pruning is the tree with some nodes turned into
        leaves. tree: the grown tree; stats: statistics of all training rows in its nodes;
        posteriors: the inverse temperatures (factors of loss and size in the log weight of a
        pruning) and mixture weights that the user has set or cross-validation has chosen.
        """
        weights = posteriors.compute_posterior(self._get_candidates(), tree, stats)
        self._set_posteriors(posteriors)
        self._set_fitted(tree, stats, weights, vote(tree, stats, weights, self._get_voting()))

    def _set_posteriors(self, posteriors: Mixture) -> None:
        """Set `best_params_`, `mixture_weights_` and `posteriors_`.

        Inverse temperatures are the factors of loss and size in the log weight of a pruning (the
        tree with some nodes turned into leaves). posteriors: the inverse temperatures, mixture
        weights and names of the posteriors that vote. In `best_params_` a temperature is a number
        if all posteriors have the same one, else a list.
        """
        columns = posteriors.temperatures.T.tolist()
        self.best_params_ = {
            name: column[0] if len(set(column)) == 1 else column
            for name, column in zip(self._temperatures, columns, strict=True)
        }
        self.mixture_weights_ = posteriors.mixture_weights.tolist()
        self.posteriors_ = [*posteriors.candidate_names]

    def _set_fitted(
        self, tree: Tree, stats: Stats, weights: NodeWeights, outcome: Vote | DeferredVote
    ) -> None:
        """Set the fitted attributes of the tree and its vote.

        The vote is the average of the predictions of all prunings (the tree with some nodes turned
        into leaves), by their posterior weights. tree: the tree; stats: class counts, or moments of
        the target, in its nodes; weights: posterior weights of its prunings; outcome: class
        probabilities or number that the vote predicts in each leaf (at splits, the part of it by
        prunings that stop there or above). They become `tree_`, `stats_`, `weights_` and `vote_`.
        """
        self.tree_, self.stats_, self.weights_, self.vote_ = tree, stats, weights, outcome

    # -- files -------------------------------------------------------------------------------------

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        "tree": StoredField("tree_", _read_tree),
        "stats": StoredField("stats_", lambda stored, _, model: model._restore_stats(stored)),
        "weights": StoredField.record("weights_", NodeWeights),
        # The vote of many classes is not stored, as it is computed when it is read.
        "vote": StoredField.record("vote_", Vote, default=None),
        "best_params": StoredField("best_params_"),
        "mixture_weights": StoredField.value("mixture_weights_", tuple[float, ...]),
        "posteriors": StoredField.value("posteriors_", tuple[str, ...]),
    }

    def _finish_restore(self, stored: StoredState) -> None:
        """Check tree, statistics, weights and vote against each other.

        If there are so many classes that the file does not store `vote_`, compute it. Raise
        ValueError if the attributes do not fit together. stored: the content of the model file,
        from which they have been read.
        """
        super()._finish_restore(stored)
        tree, weights = self.tree_, self.weights_
        # Leaves have no feature, but monotonic constraints read the entry of every node.
        check_codes("tree.feature", tree.feature, tree.n_nodes, self._n_encoded)
        self.stats_.check_tree(tree)
        weights.check_tree(tree)
        # Each pruning has one leaf on every path, so weights along a path sum to 1.
        leaves = score_nodes(tree.left, weights.weight, None, np.ones((tree.n_nodes, 1)), 1)
        if not np.allclose(leaves[tree.is_leaf], 1):
            raise DamagedModelError(
                "the model file must have weights that sum to 1 over the path to each leaf"
            )
        self._set_posteriors(self._restore_posteriors())
        node_predictions = self._predict_nodes(tree, self.stats_)
        if isinstance(node_predictions, SparseNodePredictions):
            self.vote_ = node_predictions.compute_vote(tree, weights)
        elif self.vote_ is None or self.vote_.score.shape != (
            tree.n_nodes,
            node_predictions.n_values,
        ):
            raise DamagedModelError(
                "the model file's vote.score must have shape "
                f"{(tree.n_nodes, node_predictions.n_values)}, as the tree"
            )
        self._get_grower()
        get_n_threads(self.n_jobs)

    # Class of the node statistics of one target.
    _stats_kind: type[Any]

    def _restore_stats(self, stored: StoredState) -> Stats:
        """Return the node statistics in the content of a model file, `stored`.

        They are class counts or moments of the target in each node; `SeveralStats`, with an entry
        for each target, if there are several.
        """
        if not self._has_several_targets():
            return self._stats_kind.from_stored(stored.get_section("stats"))
        sections = (stored.get_section(f"stats.{k}") for k in range(self.n_outputs_))
        return SeveralStats(tuple(map(self._stats_kind.from_stored, sections)))

    def _restore_posteriors(self) -> Mixture:
        """Return inverse temperatures and mixture weights by attributes from a model file.

        These are `best_params_`, `mixture_weights_` and `posteriors_`. Raise ValueError if names
        differ from those of this estimator, or values are not numbers. Inverse temperatures are the
        factors of loss and size in the log weight of a pruning (the tree with some nodes turned
        into leaves).
        """
        temperatures, weights = self.best_params_, np.array(self.mixture_weights_)
        if not isinstance(temperatures, dict) or set(temperatures) != set(self._temperatures):
            raise DamagedModelError(
                f"the model file's best_params must have the keys {self._temperatures}, got "
                f"{temperatures!r}"
            )
        posteriors = [
            np.broadcast_to(np.array(temperatures[name], dtype=np.float64), weights.shape)
            for name in self._temperatures
        ]
        if np.isnan(posteriors).any():
            raise DamagedModelError(
                f"the model file's best_params must hold numbers, got {temperatures}"
            )
        return Mixture(np.stack(posteriors, axis=1), weights, self.posteriors_)

    # -- prediction --------------------------------------------------------------------------------

    def _find_leaves(self, X: ArrayLike) -> Int32:
        """Return the leaf of `tree_` that each row of X reaches, (n,) int32.

        A leaf is a node number of `tree_`. X: new rows, (n, p), as `predict` takes them, with
        categories by name. If a row lacks a value at a split where no training row lacked it, the
        child with more training rows is followed.
        """
        rows = self._encode_new_rows(X)
        return self.tree_.route(rows, get_n_threads(self.n_jobs))

    def _route_rows(
        self, X: ArrayLike, score: Float64 | None = None
    ) -> tuple[Int32, Indices, Float64]:
        """Find the leaf of each row, and the averaged values of rows that belong to several leaves.

        A row belongs to several leaves if it lacks a value at a split where no training row lacked
        it.

        Parameters
        ----------
        X : array-like of shape (n, p)
            New rows.
        score : ndarray of float64, shape (m, K), or None
            Values of the nodes to average; None: the scores of `vote_`.

        Returns
        -------
        leaves : ndarray of int32, shape (n,)
            Node number of the leaf of each row, by way of the child with more training rows at
            splits where no training row lacked the value.
        missing : ndarray of intp, shape (k,)
            Indices of rows that have a missing value; empty if no split sends rows to both
            children.
        averages : ndarray of float64, shape (k, K)
            For each of these k rows, the average of `score` over its leaves, in proportion to their
            training rows.
        """
        rows, n_threads = self._encode_new_rows(X), get_n_threads(self.n_jobs)
        leaves = self.tree_.route(rows, n_threads)
        missing = find_rows_with_missing(rows)
        if not len(missing) or not self.tree_.missing_both.any():
            return leaves, missing[:0], np.empty((0, 1 if score is None else score.shape[1]))
        score = self.vote_.score if score is None else score
        return leaves, missing, self.tree_.blend(rows[missing], self.stats_.n, score, n_threads)

    def _compute_outcomes(self, X: ArrayLike) -> Float64:
        """Compute the outcome of the vote for each row of X, (n, K).

        The vote is the average of the predictions of all prunings (the tree with some nodes turned
        into leaves), by their posterior weights. X: new rows, (n, p). Columns are class
        probabilities, or the predicted number (K = 1); several targets have their columns side by
        side. A row belongs to several leaves if it lacks a value at a split where no training row
        lacked it; it gets the average over these leaves.
        """
        leaves, missing, averages = self._route_rows(X)
        outcomes = self.vote_.outcomes(leaves)
        outcomes[missing] = averages
        return outcomes

    @snapshot_method
    def apply(self, X: ArrayLike) -> Int32:
        """Find the leaf of `tree_` that each row reaches.

        If a row lacks a value at a split where no training row lacked it, `apply` follows the child
        with more training rows. Predictions average over both children instead.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of int32, shape (n,)
            Node number of each row's leaf.
        """
        return self._find_leaves(X)

    @snapshot_method
    def decision_path(self, X: ArrayLike) -> sparse.csr_matrix:
        """Find the nodes of `tree_` on the path of each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        sparse matrix of shape (n, m)
            1 for each node from the root to the leaf that `apply` returns, 0 for the other nodes.
        """
        leaf = self._find_leaves(X)
        return self.tree_.paths_to(leaf[None])

    # -- inspection --------------------------------------------------------------------------------

    @snapshot_method
    def get_depth(self) -> int:
        """Return the depth of `tree_`: the number of splits above its deepest leaf."""
        check_is_fitted(self)
        return self.tree_.depth

    @snapshot_method
    def get_n_leaves(self) -> int:
        """Return the number of leaves of `tree_`."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def _compute_importances(self) -> Float64:
        tree = self.tree_
        inner = np.flatnonzero(tree.left != LEAF)
        decrease = -compute_gains(tree, self.stats_.impurity)
        split = reached(tree, self.weights_) - self.weights_.weight
        value = np.maximum(decrease, 0) * np.maximum(split, 0)
        worth = np.bincount(tree.feature[inner], value[inner], minlength=tree.n_features)
        return np.asarray(worth, dtype=np.float64)

    def _predict_nodes(self, tree: Tree, stats: Any) -> NodePredictions | SparseNodePredictions:
        """Compute what each node of a tree votes for if it is a leaf of a pruning.

        A pruning is the tree with some nodes turned into leaves. tree: the tree, with m nodes;
        stats: statistics of the training rows in its nodes. The result has a class label of each
        node for votes of kind "majority", or its smoothed class frequencies or mean for "mean";
        `_get_voting` has the kind and the smoothing. It is a `SparseNodePredictions`, which
        computes frequencies when they are needed, if class counts are sparse.
        """
        return self._get_voting().ballots(tree, stats)

    def _link(self) -> Link:
        return "identity"

    def _compute_contributions(self, rows: NDArray[Any]) -> tuple[Float64, Float64]:
        node_predictions, n_threads = (
            self._predict_nodes(self.tree_, self.stats_),
            get_n_threads(self.n_jobs),
        )
        posterior = self.tree_, self.weights_, self.vote_
        return compute_contributions(*posterior, node_predictions, self.stats_.n, rows, n_threads)

    @available_if(has_numeric_leaves)
    @snapshot_method
    def _get_additive_trees(self) -> AdditiveTrees:
        """Return a sum of trees that equals the prediction, which explanations read.

        It has a single tree, `tree_`, with the outcome of the vote as the value of each leaf, and
        the constant 0. For two classes the value is the probability of the second class alone. The
        vote is the average of the predictions of all prunings (the tree with some nodes turned into
        leaves), by their posterior weights.
        """
        check_is_fitted(self)
        tree, leaves = self.tree_, np.flatnonzero(self.tree_.is_leaf)
        outcomes = self._select_outputs(self.vote_.outcomes(leaves))
        value = np.zeros((tree.n_nodes, outcomes.shape[1]))
        value[leaves] = outcomes
        start = np.zeros(outcomes.shape[1])
        return AdditiveTrees(
            tree.with_value(value), start, self.stats_.n, self._build_explanation_fields
        )

    def _select_outputs(self, outcomes: Float64) -> Float64:
        """Return the columns of outcomes of the vote from which the other columns follow.

        The vote is the average of the predictions of all prunings (the tree with some nodes turned
        into leaves), by their posterior weights. outcomes: K columns of probabilities, or of
        numbers, for k nodes, (k, K). Here all K columns are returned; classifiers of two classes
        return only that of the second one, (k, 1).
        """
        return outcomes

    def _make_explainer(self) -> Explainer:
        """Return an object that describes the nodes of `tree_` in words.

        A description has the test that leads to the node, its number of training rows, its
        prediction and its posterior weight: the total weight of the prunings (the tree with some
        nodes turned into leaves) in which it is a leaf. Raise NotFittedError if the model is not
        fitted.
        """
        check_is_fitted(self)
        names, rows = self._encoded_names(), self.stats_.n
        categories = self._get_encoded_categories()
        sets = None if categories is None else categories.names
        missing, numbers = self._takes_missing_values(), self._number_rules()
        given = names, self._predict_node, sets, missing, self._date_formats, numbers
        return Explainer(self.tree_, rows, self.weights_, *given)

    @abstractmethod
    def _predict_node(self, node: int) -> Any:
        """Return what a node predicts as a leaf, from its training rows in `stats_`.

        node: node number. The result is a class or a number, a tuple of these for several targets.
        """

    @snapshot_method
    def path(self, x: ArrayLike) -> NestedCells:
        """Describe the nodes on the path of one row, with the fraction of the vote that each has.

        A pruning is the tree after some nodes have become leaves. Each pruning votes by the one
        node on the path that is its leaf.

        Parameters
        ----------
        x : array-like of shape (p,) or (1, p)
            One row; a data frame of one row keeps its names.

        Returns
        -------
        NestedCells
            A sequence of the nodes from the root to the leaf. Each has its rule, number of training
            rows, label, and `share`: the total weight of the prunings in which it is a leaf. Shares
            sum to 1.

        Raises
        ------
        ValueError
            If x is not a single row.
        """
        leaves = self._find_leaves(to_table(x))
        if len(leaves) != 1:
            raise ValueError(
                f"x must be a single row, got {len(leaves)} rows: call path for each row"
            )
        return self._make_explainer().describe_path(int(leaves[0]))

    @abstractmethod
    def _predict_outcome(
        self, outcome: Float64, shown_class: int | None = None
    ) -> tuple[Any, float | None]:
        """Return the prediction for one outcome of the vote.

        The vote is the average of the predictions of all prunings (the tree with some nodes turned
        into leaves), by their posterior weights. outcome: of a model of one target, class
        probabilities, (K,), or the predicted number, (1,). Return two values: the predicted class
        and a probability, or the number and None. The probability is that of the class of index
        `shown_class`; None: of the predicted class.
        """

    @available_if(has_numeric_leaves)
    @snapshot_method
    def rules(self, max_leaves: int = 16, *, pos_label: Any = None) -> Rules:
        """Return the part of the tree that matters most to the vote as if-then rules.

        The vote is the average of the predictions of all prunings (the tree with some nodes turned
        into leaves), by their posterior weights.

        Parameters
        ----------
        max_leaves : int
            Largest number of rules.
        pos_label : object or None
            The positive one of two classes: each rule has its probability instead of that of the
            predicted class. None: that of the predicted class.

        Returns
        -------
        Rules
            One rule for each leaf of that part: "if ... and ... then class (probability, rows)".
            That part grows from the root: next is always the split with the largest number of
            training rows times posterior probability. The prediction is the outcome of the vote.
            For a node whose children are not shown, it is the mean outcome of its training rows. If
            the whole tree is small (at most 64 leaves) and the only one of its model, rules have
            numbers: R1, R2, ... for all its leaves from left to right. They are the same in
            `export_text`, `path`, `explain`, `to_sql`, `conditional_guarantees`, figures and
            reports. For certified classifiers each rule has `error_at_most`, an upper bound on its
            error; the title has their joint probability, or the reason why there are no bounds.

        Raises
        ------
        ValueError
            If the model has several targets, or `pos_label` is not one of two classes.
        """
        self._expect_one_target("rules")
        explainer, bounds = self._make_explainer(), self._bound_nodes()
        positive = find_positive_class(getattr(self, "classes_", None), pos_label)
        shown_class = None if pos_label is None else positive
        predict = partial(self._predict_outcome, shown_class=shown_class)
        return extract_rules(explainer, self.vote_, predict, max_leaves, bounds, pos_label)

    def _describe_rules(self, rows: NDArray[Any]) -> list[str | None] | None:
        if self._number_rules() is None:
            return None
        leaves = self.tree_.route(rows, get_n_threads(self.n_jobs))
        return describe_rules(self._make_explainer(), leaves, self._find_split_rows(rows, leaves))

    def _find_split_rows(self, rows: NDArray[Any], leaves: Int32) -> NDArray[np.bool_]:
        """Return which rows go to both children of a node, as they lack the value of its split.

        Return booleans, (n,). rows: encoded rows (numbers and category codes), (n, p); leaves: node
        number of the leaf that each row reaches, (n,), by way of the child with more training rows.
        """
        tree, is_split = self.tree_, np.zeros(len(rows), dtype=np.bool_)
        if tree.missing_both.any():
            passed = tree.paths_to(leaves[None]).toarray() > 0
            for node in np.flatnonzero(tree.missing_both):
                is_split |= passed[:, node] & np.isnan(rows[:, tree.feature[node]])
        return is_split

    @snapshot_method
    def find_rules(self, X: ArrayLike) -> NDArray[Any]:
        """Find the numbered rule that each row satisfies.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of object, shape (n,)
            Numbers of rules, such as "R3", as in `rules`. None for a row that lacks the value of a
            split where no training row lacked it: it satisfies no rule.

        Raises
        ------
        ValueError
            If rules have no numbers, as the tree has more than 64 leaves or the average of many
            prunings (the tree with some nodes turned into leaves) predicts.
        """
        check_is_fitted(self)
        numbers = self._number_rules()
        if numbers is None:
            raise ValueError(
                "find_rules needs a single tree of at most 64 leaves, whose rules have numbers, got "
                f"{self._describe_predictor()}: use apply, or fit a smaller or pruned tree"
            )
        rows = self._encode_new_rows(X)
        leaves = self.tree_.route(rows, get_n_threads(self.n_jobs))
        names = np.array([numbers.get_name(leaf) for leaf in leaves.tolist()], dtype=object)
        names[self._find_split_rows(rows, leaves)] = None
        return names

    def _number_rules(self) -> RuleNumbers | None:
        """Return the numbers of the rules of `tree_`; None if it is large or its prunings vote.

        A rule is a leaf with the conditions on its path; `RuleNumbers` holds names such as "R3" by
        node number. None if the tree has more than 64 leaves. A pruning is the tree with some nodes
        turned into leaves.
        """
        return number_rules(self.tree_) if self._predicts_by_one_pruning() else None

    def _describe_predictor(self) -> str:
        """Return what predicts, as a phrase: "a vote of prunings", or "a tree of 90 leaves".

        A pruning is the tree with some nodes turned into leaves.
        """
        if not self._predicts_by_one_pruning():
            return "a vote of prunings"
        return f"a tree of {format_quantity(self.get_n_leaves(), 'leaf', 'leaves')}"

    def _predicts_by_one_pruning(self) -> bool:
        """Return whether `tree_` alone predicts, and not the vote of its prunings; here False.

        A pruning is the tree with some nodes turned into leaves.
        """
        return False

    def _bound_nodes(self) -> NodeBounds | None:
        """Return bounds on the error on new rows in each node of `tree_`; None: not certified.

        The error in a node is that of `predict` on the new rows that reach it. Here the result is
        None. Certified estimators return bounds that all hold together with probability 1 -
        `delta`, or why there are none.
        """
        return None

    @snapshot_method
    def export_text(self, max_leaves: int = 16) -> str:
        """Write the part of the tree that matters most to the vote as an indented text.

        The vote is the average of the predictions of all prunings (the tree with some nodes turned
        into leaves), by their posterior weights.

        Parameters
        ----------
        max_leaves : int
            Largest number of leaves that are shown, chosen as in `rules`: splits of many training
            rows and high posterior probability first. "..." marks nodes whose children are left
            out.

        Returns
        -------
        str
            One line for each node: its test, the mean outcome of the vote over its training rows,
            and their number. Leaves have the numbers and the error bounds of `rules`.

        Raises
        ------
        ValueError
            If the model has several targets.
        """
        self._expect_one_target("export_text")
        explainer = self._make_explainer()
        return format_tree(
            explainer,
            self.vote_,
            self._predict_outcome,
            max_leaves,
            self._get_node_notes(),
            self._bound_nodes(),
        )

    def _get_node_notes(self) -> dict[int, str]:
        """Return notes that `export_text` appends to the lines of nodes.

        The result is text by node number of `tree_`; here it is empty. Trees with models in their
        leaves mark the leaves that have one.
        """
        return {}

    @abstractmethod
    def _compute_leaf_values(self) -> Float64:
        """Return the prediction of each leaf of `tree_`: class probabilities (m, K) or a number (m, 1).

        Row v is node number v; rows of nodes that are not leaves are 0. Several targets have their
        columns side by side. The values are outcomes of the vote, from `vote_`. The vote is the
        average of the predictions of all prunings (the tree with some nodes turned into leaves), by
        their posterior weights.
        """

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        if getattr(self, "preprocessor_", None) is not None:
            raise ValueError(
                "preprocessor must be None for an export, which has the tree alone: fit "
                "make_pipeline(preprocessor, estimator) instead"
            )
        rows = self.stats_.n.astype(np.float64)
        return self._make_formula(
            self.tree_.with_value(self._compute_leaf_values()),
            "tree",
            "identity",
            rows=rows,
            numbers=self._number_rules(),
        )


class TreeVoteClassifier(ClassifierMixin, TreeVoteEstimator):
    """Base class of classifiers in which the prunings of a single tree vote.

    A pruning is the tree after some of its nodes have become leaves. The class adds class counts as
    node statistics, class weights, `predict` and `predict_proba`. Classes may belong to several
    targets.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of ndarray
        The classes, sorted; a list with one array for each of several targets.
    n_classes_ : int, or list of int
        Number of classes, of each target.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteEstimator._parameter_constraints,
        "scoring": [StrOptions({"error", "log_loss"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    stats_: NodeStats | SparseNodeStats | SeveralStats
    _takes_sparse_stats: ClassVar[bool] = False

    score = score_classifier

    def _has_sparse_stats(self) -> bool:
        """Return whether class counts are stored sparsely: one target with more than 100 classes.

        Sparse counts keep the classes that occur in a node alone. Only estimators whose class
        attribute `_takes_sparse_stats` is True have them.
        """
        is_one = self._takes_sparse_stats and not self._has_several_targets()
        return bool(is_one and self.n_classes_ > MANY_CLASSES)

    @property
    def _output_groups(self) -> OutputGroups:
        # Class counts have at least two columns, so that a single class is no special case later.
        """Column ranges of each target in the outcome of the vote; a target has at least 2 columns.

        The result has the numbers of columns in its attribute `sizes`. The second column of a
        target with a single class belongs to no class. The vote is the average of the predictions
        of all prunings (the tree with some nodes turned into leaves), by their posterior weights.
        """
        return OutputGroups(tuple(max(2, k) for k in np.atleast_1d(self.n_classes_).tolist()))

    def _compute_node_stats(
        self,
        tree: Tree,
        leaf: Int32,
        y: NDArray[Any],
        weight: Float64 | None,
        weight_unit: float,
        squared_weight: Float64 | None = None,
    ) -> NodeStats | SparseNodeStats | SeveralStats:
        if weight is not None and squared_weight is None and self._uses_exact_sums(y):
            sums = count_exactly(reduce_in_memory(leaf, y, weight), self._output_groups.sizes[0])
            leaf, y, weight, squared_weight = sums
        if self._has_sparse_stats():
            return SparseNodeStats.count(tree, leaf, y, weight, self.n_classes_, weight_unit)
        columns = np.atleast_2d(np.ascontiguousarray(y.T))
        arguments = weight_unit, squared_weight
        targets = [
            count_by_leaf(tree, leaf, column, weight, k, *arguments)
            for column, k in zip(columns, self._output_groups.sizes, strict=True)
        ]
        return SeveralStats(tuple(targets)) if y.ndim == 2 else targets[0]

    @property
    def _stats_kind(self) -> type[NodeStats | SparseNodeStats]:  # type: ignore[override]
        return SparseNodeStats if self._has_sparse_stats() else NodeStats

    def _finish_restore(self, stored: StoredState) -> None:
        """Check the fitted attributes of a restored classifier against each other.

        These are, for instance, `classes_`, `n_classes_` and `vote_`. Raise ValueError if numbers
        of classes differ, or leaves do not hold class probabilities. stored: the content of the
        model file.
        """
        stats: Any = self.stats_
        targets: Any = stats.of_each if isinstance(stats, SeveralStats) else (stats,)
        if (sizes := tuple(one.n_classes for one in targets)) != self._output_groups.sizes:
            raise DamagedModelError(
                f"the model file's stats must count {self._output_groups.sizes} classes, got {sizes}"
            )
        super()._finish_restore(stored)
        if not isinstance(self.vote_, Vote):
            return
        score, is_leaf = self.vote_.score, self.tree_.is_leaf
        n_classes = np.atleast_1d(self.n_classes_).tolist()
        for votes, k in zip(self._output_groups.split(score), n_classes, strict=True):
            are_fractions = ((votes >= 0) & (votes <= 1 + _ROUNDING)).all()
            if not are_fractions or not np.allclose(votes[is_leaf].sum(axis=1), 1):
                raise DamagedModelError(
                    "the model file's vote.score must hold class probabilities that sum to 1 in each "
                    "leaf"
                )
            if (label := votes[is_leaf].argmax(axis=1).max()) >= k:
                raise DamagedModelError(
                    f"the model file's leaves must predict one of {k} classes each, got class code "
                    f"{label}"
                )

    def _predict_node(self, node: int) -> Any:
        if isinstance(self.stats_, SeveralStats):
            targets: Any = zip(self.classes_, self.stats_.of_each, strict=True)
            return tuple(_get_class(classes, stats, node) for classes, stats in targets)
        return _get_class(self.classes_, self.stats_, node)

    def _predict_outcome(
        self, outcome: Float64, shown_class: int | None = None
    ) -> tuple[Any, float | None]:
        votes = outcome[: self.n_classes_]
        best = int(votes.argmax())
        shown = best if shown_class is None else shown_class
        return self.classes_[best], float(votes[shown] / votes.sum())

    def _select_outputs(self, outcomes: Float64) -> Float64:
        # The first of two classes has what the second has not.
        return outcomes[:, 1:] if self._output_groups.sizes == (2,) else outcomes

    @snapshot_method
    @support_dask_collections
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class with the largest probability, ties to the first in `classes_`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            The predicted class of each row; one column for each of several targets. For a Dask
            collection X, a Dask collection.
        """
        if self._has_several_targets():
            return select_classes(self.classes_, self._split_by_target(self._compute_outcomes(X)))
        leaves, missing, averages = self._route_rows(X)
        labels = self.vote_.label.take(leaves)
        labels[missing] = averages.argmax(axis=1)
        return self.classes_.take(labels)

    @snapshot_method
    @support_dask_collections
    def predict_proba(self, X: ArrayLike) -> Any:
        """Predict class probabilities: the fraction of the vote of all prunings for each class.

        A pruning is the tree after some nodes have become leaves; it votes with its posterior
        weight.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n, K), or list of these
            Probabilities in the order of `classes_`; rows sum to 1. A list with one array for each
            of several targets. For a Dask collection X, a Dask collection.
        """
        # Sums along paths have rounding errors; dividing makes rows sum to 1.
        probabilities = [
            votes / votes.sum(axis=1, keepdims=True)
            for votes in self._split_by_target(self._compute_outcomes(X))
        ]
        return probabilities if self._has_several_targets() else probabilities[0]

    def _split_by_target(self, outcomes: Float64) -> list[Float64]:
        """Split outcomes of the vote, (n, total), into one array (n, K) for each target.

        The vote is the average of the predictions of all prunings (the tree with some nodes turned
        into leaves), by their posterior weights. outcomes: probabilities for n rows, (n, total),
        with the columns of all targets side by side. A target of a single class has a second
        column, which belongs to no class and is dropped.
        """
        n_classes = np.atleast_1d(self.n_classes_).tolist()
        return [
            votes[:, :k]
            for votes, k in zip(self._output_groups.split(outcomes), n_classes, strict=True)
        ]

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        self._expect_one_target("an export")
        return super()._build_formula()

    def _compute_leaf_values(self) -> Float64:
        leaves = np.flatnonzero(self.tree_.is_leaf)
        values = np.zeros((self.tree_.n_nodes, self.n_classes_))
        score = self.vote_.outcomes(leaves)[:, : self.n_classes_]
        values[leaves] = normalize_with_labels(score, self.vote_.label[leaves])
        return values


def _get_class(classes: NDArray[Any], stats: Any, node: int) -> Any:
    """Return the class that a node predicts; None if its label is no class.

    classes: classes of the target, (K,); stats: class counts and labels of the nodes; node: node
    number. The class is that of the node's training rows. A label beyond the K classes occurs only
    with K = 1, as class counts have at least two columns.
    """
    label = stats.label[node]
    return classes[label] if label < len(classes) else None


class TreeVoteRegressor(RegressorMixin, TreeVoteEstimator):
    """Base class of regressors in which the prunings of a single tree vote.

    A pruning is the tree after some of its nodes have become leaves. The class adds moments of the
    target (row weight, mean, sum of squares) as node statistics, `predict` and `predict_std`. There
    may be several numeric targets.
    """

    scoring = "squared"
    stats_: TargetStats | SeveralStats
    _stats_kind = TargetStats

    def _compute_node_stats(
        self,
        tree: Tree,
        leaf: Int32,
        y: NDArray[Any],
        weight: Float64 | None,
        weight_unit: float,
        squared_weight: Float64 | None = None,  # noqa: ARG002 -- of classes
    ) -> TargetStats | SeveralStats:
        if self._uses_exact_sums(y):
            return measure_exactly(tree, reduce_in_memory(leaf, y, weight), weight_unit)
        arguments: dict[str, Any] = {"weight_unit": weight_unit}
        if y.ndim == 1:
            return measure_by_leaf(tree, leaf, y, weight, **arguments)
        columns = np.ascontiguousarray(y.T)
        return SeveralStats(
            tuple(measure_by_leaf(tree, leaf, column, weight, **arguments) for column in columns)
        )

    def _predict_node(self, node: int) -> Any:
        if isinstance(self.stats_, SeveralStats):
            targets: Any = self.stats_.of_each
            return tuple(float(stats.mean[node]) for stats in targets)
        return float(self.stats_.mean[node])

    def _predict_outcome(
        self,
        outcome: Float64,
        shown_class: int | None = None,  # noqa: ARG002 -- numbers have no classes
    ) -> tuple[Any, float | None]:
        return float(outcome[0]), None

    @snapshot_method
    @support_dask_collections
    def predict(self, X: ArrayLike) -> Float64:
        """Predict the target: the weighted average over prunings of the mean in the row's leaf.

        A pruning is the tree after some nodes have become leaves; weights are posterior weights.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            Predictions, in units of the target. For a Dask collection X, a Dask collection.
        """
        outcomes = self._compute_outcomes(X)
        return outcomes if self._has_several_targets() else outcomes[:, 0]

    def _compute_leaf_values(self) -> Float64:
        is_leaf = self.tree_.is_leaf[:, None]
        return np.where(is_leaf, self.vote_.outcomes(np.arange(self.tree_.n_nodes)), 0.0)

    @available_if(has_numeric_leaves)
    @snapshot_method
    @support_dask_collections
    def predict_std(self, X: ArrayLike) -> Float64:
        """Predict two standard deviations of the target around its prediction.

        The sum of their squares is the variance of a target that is drawn as follows: draw a
        pruning (the tree with some nodes turned into leaves) by its posterior weight, then a
        training row from the leaf of the pruning that the row reaches.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n, 2)
            In units of the target. First column: standard deviation of the predictions of the
            prunings. Second column: standard deviation within their leaves, of training rows; it is
            too small if leaves are small.

        Raises
        ------
        ValueError
            If the model has several targets.
        """
        check_is_fitted(self)
        self._expect_one_target("predict_std")
        stats: Any = self.stats_
        variance = prediction_variance(self.tree_, stats, self.weights_, self._get_voting())
        mean, exponent = scaled_distances(self.vote_.score[:, 0], stats.mean[0])
        between = np.ldexp(variance.between, -2 * exponent)
        leaves, missing, averages = self._route_rows(
            X, np.column_stack([mean, between + mean**2, variance.within])
        )
        result = np.column_stack([variance.between, variance.within])[leaves]
        with np.errstate(over="ignore"):
            result[missing, 0] = np.ldexp(
                np.maximum(averages[:, 1] - averages[:, 0] ** 2, 0.0), 2 * exponent
            )
        result[missing, 1] = averages[:, 2]
        return np.sqrt(result)
