"""What all estimators share: a tree grows, temperatures are chosen, its prunings vote."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
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
from certree.certificates.subsets.families import CertificateFamily
from certree.estimators.trees_on_parts import fit_elsewhere, fit_tree_on_parts
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
from certree.explain.rules import Rules, extract_rules, format_tree
from certree.explain.several_targets import score_classifier, select_classes
from certree.explain.tree_model import TreeModel, has_numeric_leaves
from certree.export.formula import Formula, Link, normalize_with_labels
from certree.grow.grower import GROWERS, Grower, grow_trees, resolve_grower
from certree.grow.training_samples import MonotonicSigns, TrainingSamples, check_monotonic_cst
from certree.interface.arrays import Float64, Int32, check_codes
from certree.interface.fitted_state import available_if, fit_method, snapshot_method
from certree.interface.progress import show_progress
from certree.interface.stored_state import StoredState
from certree.interface.threads import N_JOBS, get_n_threads
from certree.parts.executors import Executor
from certree.parts.lazy_predictions import support_dask_collections
from certree.rows.folds import Fold, Indices
from certree.rows.out_of_core import is_out_of_core
from certree.rows.training import Training, WeightedTarget, to_table
from certree.stats import NodeStats, SeveralStats, SparseNodeStats, Stats, TargetStats
from certree.stats.exact_leaf_sums import count_exactly, measure_exactly, reduce_in_memory
from certree.stats.nodes import count_by_leaf
from certree.stats.sparse import MANY_CLASSES
from certree.stats.targets import measure_by_leaf
from certree.tree import LEAF, Tree, find_rows_with_missing
from certree.votes import (
    Ballots,
    DeferredVote,
    SparseBallots,
    Vote,
    Voting,
    prediction_variance,
    scaled_distances,
    vote,
)
from certree.weights.family import Scoring, compute_gains
from certree.weights.node_weights import NodeWeights, reached

# What weighs classes where rows may have several targets.
WEIGHTS_OF_TARGETS: list[Any] = [dict, list, StrOptions({"balanced"}), None]
# Sums of shares, which may be above 1 by so much.
_ROUNDING = 1e-6


class TreeVoteEstimator(TreeModel):
    """A tree grows, temperatures are chosen, its prunings vote.

    What the target is decides over `_compute_node_stats`; the method over `_get_candidates` and its temperatures.
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
    # Whether rows may lie in files or on clusters.
    _takes_blocks: ClassVar[bool] = False

    @abstractmethod
    def _get_candidates(self) -> dict[str, Candidate]:
        """The families of posteriors that this estimator chooses from, by name, the likeliest first."""

    @abstractmethod
    def _get_voting(self) -> Voting:
        """How prunings vote."""

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
        """Compute the statistics of rows that have been routed to their leaves.

        Parameters
        ----------
        tree : Tree
            The tree.
        leaf : ndarray of int32, shape (n,)
            Leaf of each row.
        y : ndarray of shape (n,), or (n, q)
            Classes or numbers; of several targets a column each.
        weight : ndarray of float64, shape (n,), or None
            Weights; None: 1 each.
        weight_unit : float
            Mean weight of a row of the whole fit, also in folds; see `NodeStats`.
        squared_weight : ndarray of float64, shape (n,), or None
            Sum of the squared weights of the rows that each given one stands for; None: each stands for
            itself.
        """

    def _get_search(self) -> Search:
        return "joint"

    def _get_scoring(self) -> Scoring:
        return self.scoring

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of a grower or a rule that was given by its name.

        Parameters
        ----------
        **params
            As in scikit-learn; ``grower__max_leaf_nodes=64`` also where the grower is "cart".

        Returns
        -------
        self : object
            The estimator.
        """
        for name, object_of in self._get_string_converters().items():
            value = params.get(name, getattr(self, name))
            if isinstance(value, str) and any(key.startswith(f"{name}__") for key in params):
                params[name] = object_of(value)
                if params[name] is None:
                    raise ValueError(f"{name}={value!r} has no parameters of its own")
        return super().set_params(**params)

    def _get_string_converters(self) -> dict[str, Callable[[Any], Any]]:
        """Parameters that may be given by a name, and what makes objects of the names."""
        return {"grower": self._resolve_grower}

    def _resolve_grower(self, value: Any) -> Grower:
        return resolve_grower(value)

    @fit_method
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Grow the tree, choose the temperatures and let the prunings vote.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value and goes where the grower sends it. What no row of a
            cell lacks sends new rows that lack it both ways. With a `Cart` that cuts between bins,
            trees also take paths of files, a `pyarrow.dataset.Dataset` or a collection of Dask; `y`,
            `sample_weight` and `groups` then are names of columns, or collections.
        y : array-like of shape (n,), or (n, n_outputs)
            Class of each row, or a number; where the estimator takes several targets, a column each.
        sample_weight : array-like of shape (n,), or None
            Weight of each row, relative to the mean weight: all rows together count as many as they
            are. A row is one draw whatever it weighs, and in one fold; one of weight zero is as if
            absent.
        groups : array-like of shape (n,), or None
            Group of each row, such as a patient, where rows of one group depend on each other. Folds
            deal whole groups, so that no row judges a tree that rows of its group have grown. Groups
            are dealt by their order, which is that of their values: of categories, too, and wherever
            rows lie.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self._takes_blocks and is_out_of_core(X):
            few = self._fit_out_of_core(X, y, sample_weight, groups)
            if few is None:
                return self
            X, y, sample_weight, groups = few
        self._fit(self._prepare_training(X, y, sample_weight, groups=groups))
        return self

    def _fit_out_of_core(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, Any, Any, Any] | None:
        """Fit to rows in files or on a cluster; so few that memory is meant are given back."""
        return fit_elsewhere(self, X, y, sample_weight, groups)

    def _fit_blocks(self, parts: Executor) -> None:
        """Fit to rows that an executor holds."""
        fit_tree_on_parts(self, parts)

    def _check_classes(self) -> None:
        """Refuse classes that the method cannot tell apart, once they are known."""

    def _fit(self, training: Training) -> None:
        tree, posteriors, _ = self._grow_and_tune(training, check_random_state(self.random_state))
        leaf = tree.route(training.X, get_n_threads(self.n_jobs))
        about = training.weight, training.weight_unit
        stats = self._compute_node_stats(tree, leaf, training.y, *about)
        self._finish_fit(tree.learn_missing(training.X), stats, posteriors)

    def _get_grower(self) -> Grower:
        """What grows the tree."""
        return self._resolve_grower(self.grower)

    def _orders_categories_by_rows(self) -> bool:
        # Cells that are fixed before any row is seen must not depend on rows by the numbers of codes.
        return self._resolve_grower(self.grower).depends_on_rows

    def _uses_exact_sums(self, y: NDArray[Any]) -> bool:
        """Whether no order of the rows is to change a bit, as in the tree itself."""
        return y.ndim == 1 and getattr(self._get_grower(), "has_exact_sums", False)

    def _splits_by_content(self) -> bool:
        """Whether the order of the rows is not to decide either which of them certify."""
        by_rows = getattr(self._get_grower(), "has_exact_sums", False)
        return bool(by_rows and getattr(self, "preprocessor", None) is None)

    def _make_training_samples(
        self, training: Training, random_state: np.random.RandomState
    ) -> TrainingSamples:
        """The rows with what the parameters say of their growth."""
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
        )

    def _get_monotonic_signs(self) -> MonotonicSigns:
        """Along which features predictions rise or fall."""
        names = getattr(self, "feature_names_in_", None)
        slopes = check_monotonic_cst(self.monotonic_cst, self.n_features_in_, names)
        if slopes is not None:
            self._expect_one_target("monotonic_cst")
        if slopes is not None and not self._get_grower().supports_monotonic_cst:
            raise ValueError(f"monotonic_cst takes a Cart grower, got {self.grower!r}")
        return slopes

    def _grow_and_tune(
        self, training: Training, random_state: np.random.RandomState
    ) -> tuple[Tree, Mixture, list[GrownFold]]:
        """Grow the tree, and choose a posterior, or a mixture of several, by the trees of folds."""
        rows, n_threads = (
            self._make_training_samples(training, random_state),
            get_n_threads(self.n_jobs),
        )
        target = training.target
        folds = (
            training.split_folds(self.cv, random_state) if self._needs_cross_validation() else []
        )
        with self._show_progress(folds) as advance:
            *trees, tree = grow_trees(self._get_grower(), rows, [*folds, None], advance)
            leaves = [one.route(rows.X, n_threads) for one in trees]
            grown = self._compute_fold_stats(folds, trees, leaves, target)
            return tree, self._tune(grown, advance), grown

    def _show_progress(self, folds: Sequence[Any]) -> AbstractContextManager[Callable[[], None]]:
        steps = len(folds) + 1 + 4 * len(self._get_candidates())
        return show_progress(self.verbose > 0, steps, type(self).__name__)

    def _needs_cross_validation(self) -> bool:
        """Whether a temperature is left to choose."""
        return None in self._get_temperatures()

    def _get_temperatures(self) -> list[float | None]:
        """The temperatures, None for each that is to be chosen."""
        return [getattr(self, name) for name in self._temperatures]

    def _tune(self, grown: list[GrownFold], advance: Callable[[], None] = lambda: None) -> Mixture:
        """Choose by folds that are grown."""
        candidates = self._get_candidates()
        known = [value for value in self._get_temperatures() if value is not None]
        if not self._needs_cross_validation():
            return Mixture.from_single(next(iter(candidates)), known)
        n_threads = get_n_threads(self.n_jobs)
        objectives = {
            name: Objective.for_candidate(grown, one, self._get_scoring(), n_threads)
            for name, one in candidates.items()
        }
        return choose_posteriors(objectives, self._get_temperatures(), self._get_search(), advance)

    def _compute_fold_stats(
        self, folds: list[Fold], trees: list[Tree], leaves: list[Int32], rows: WeightedTarget
    ) -> list[GrownFold]:
        """The tree of each fold with the statistics of its two sides."""
        return [
            GrownFold.from_rows(fold, tree, self._compute_node_stats, leaf, rows)
            for fold, tree, leaf in zip(folds, trees, leaves, strict=True)
        ]

    def _finish_fit(self, tree: Tree, stats: Stats, posteriors: Mixture) -> None:
        """Set the fitted attributes, once the posteriors are chosen."""
        weights = posteriors.compute_posterior(self._get_candidates(), tree, stats)
        self._set_posteriors(posteriors)
        self._set_fitted(tree, stats, weights, vote(tree, stats, weights, self._get_voting()))

    def _set_posteriors(self, posteriors: Mixture) -> None:
        columns = posteriors.temperatures.T.tolist()
        self.best_params_ = {
            name: column[0] if len(set(column)) == 1 else column
            for name, column in zip(self._temperatures, columns, strict=True)
        }
        self.mixture_weights_ = posteriors.mixture_weights.tolist()
        self.posteriors_ = [*posteriors.families]

    def _set_fitted(
        self, tree: Tree, stats: Stats, weights: NodeWeights, ballot: Vote | DeferredVote
    ) -> None:
        self.tree_, self.stats_, self.weights_, self.vote_ = tree, stats, weights, ballot

    # -- files -------------------------------------------------------------------------------------

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit; a vote on many classes is made again of the rest."""
        votes = {"vote": self.vote_} if isinstance(self.vote_, Vote) else {}
        posteriors = {
            name: getattr(self, f"{name}_")
            for name in ("best_params", "mixture_weights", "posteriors")
        }
        stats: dict[str, Any] = {"stats": self.stats_}
        if isinstance(self.stats_, SeveralStats):
            stats = {f"stats.{k}": one for k, one in enumerate(self.stats_.of_each)}
        return {
            **super().__stored__(),
            "tree": self.tree_,
            **stats,
            "weights": self.weights_,
            **votes,
            **posteriors,
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        tree = self._restore_trees(Tree, stored.get_section("tree"))
        # Leaves compare none, but slopes look it up at all nodes.
        check_codes("feature", tree.feature, tree.n_nodes, self.n_features_in_)
        stats = self._restore_stats(stored).check_tree(tree)
        posterior = NodeWeights.from_stored(stored.get_section("weights")).check_tree(tree)
        # Each pruning has one leaf on every path; a vote of ones adds up to how many there are.
        leaves = score_nodes(tree.left, posterior.weight, None, np.ones((tree.n_nodes, 1)), 1)
        if not np.allclose(leaves[tree.is_leaf], 1):
            raise ValueError("weight must sum to 1 along every path of the tree")
        self._set_posteriors(self._restore_posteriors(stored))
        ballots = self._compute_ballots(tree, stats)
        if isinstance(ballots, SparseBallots):
            self._set_fitted(tree, stats, posterior, ballots.cast(tree, posterior))
        else:
            score = stored.get_section("vote").get_numbers(
                "score", (tree.n_nodes, ballots.n_values)
            )
            self._set_fitted(tree, stats, posterior, Vote(score))
        self._get_grower()
        get_n_threads(self.n_jobs)

    def _restore_stats(self, stored: StoredState) -> Stats:
        """The statistics that a file holds."""
        if not self._has_several_targets():
            return self._restore_target_stats(stored.get_section("stats"))
        of_each = (
            self._restore_target_stats(stored.get_section(f"stats.{k}"), k)
            for k in range(self.n_outputs_)
        )
        return SeveralStats(tuple(of_each))

    @abstractmethod
    def _restore_target_stats(self, stored: StoredState, number: int = 0) -> Any:
        """The statistics of one target that a file holds."""

    def _restore_posteriors(self, stored: StoredState) -> Mixture:
        """The posteriors that a file holds."""
        temperatures, families = stored["best_params"], stored["posteriors"]
        if not isinstance(temperatures, dict) or set(temperatures) != set(self._temperatures):
            raise ValueError(f"expected temperatures {self._temperatures}, got {temperatures!r}")
        if not isinstance(families, list) or not all(isinstance(name, str) for name in families):
            raise ValueError(f"posteriors must be a list of names, got {families!r}")
        shares = np.array(stored["mixture_weights"], dtype=np.float64)
        posteriors = [
            np.broadcast_to(np.array(temperatures[name], dtype=np.float64), shares.shape)
            for name in self._temperatures
        ]
        if np.isnan(posteriors).any():
            raise ValueError(f"temperatures must be numbers, got {temperatures}")
        return Mixture(np.stack(posteriors, axis=1), shares, families)

    # -- prediction --------------------------------------------------------------------------------

    def _find_leaves(self, X: ArrayLike) -> Int32:
        rows = self._encode_new_rows(X)
        return self.tree_.route(rows, get_n_threads(self.n_jobs))

    def _route_rows(
        self, X: ArrayLike, score: Float64 | None = None
    ) -> tuple[Int32, Indices, Float64]:
        """The leaf of each row, which rows may belong to several, and the average scores of these."""
        rows, n_threads = self._encode_new_rows(X), get_n_threads(self.n_jobs)
        leaves = self.tree_.route(rows, n_threads)
        lacking = find_rows_with_missing(rows)
        if not len(lacking) or not self.tree_.missing_both.any():
            return leaves, lacking[:0], np.empty((0, 1 if score is None else score.shape[1]))
        score = self.vote_.score if score is None else score
        return leaves, lacking, self.tree_.blend(rows[lacking], self.stats_.n, score, n_threads)

    def _compute_outcomes(self, X: ArrayLike) -> Float64:
        """Votes in the leaves that rows belong to, (n, K)."""
        leaves, lacking, blended = self._route_rows(X)
        found = self.vote_.outcomes(leaves)
        found[lacking] = blended
        return found

    @snapshot_method
    def apply(self, X: ArrayLike) -> Int32:
        """Find the leaf of `tree_` that each row reaches.

        A row that lacks a value which no row of the fit lacked in that cell is followed to the child
        with more rows; predictions average over both.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of int32, shape (n,)
            Node numbers.
        """
        return self._find_leaves(X)

    @snapshot_method
    def decision_path(self, X: ArrayLike) -> sparse.csr_matrix:
        """Find all nodes of `tree_` that contain each row.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        sparse matrix of shape (n, m)
            1 where the node contains the row.
        """
        leaf = self._find_leaves(X)
        return self.tree_.paths_to(leaf[None])

    # -- inspection --------------------------------------------------------------------------------

    @snapshot_method
    def get_depth(self) -> int:
        """Number of cells above the deepest cell of `tree_`."""
        check_is_fitted(self)
        return self.tree_.depth

    @snapshot_method
    def get_n_leaves(self) -> int:
        """Number of leaves of `tree_`."""
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

    def _compute_ballots(self, tree: Tree, stats: Any) -> Ballots | SparseBallots:
        """What the nodes of a tree vote for."""
        return self._get_voting().ballots(tree, stats)

    def _link(self) -> Link:
        return "identity"

    def _compute_contributions(self, rows: NDArray[Any]) -> tuple[Float64, Float64]:
        ballots, n_threads = (
            self._compute_ballots(self.tree_, self.stats_),
            get_n_threads(self.n_jobs),
        )
        posterior = self.tree_, self.weights_, self.vote_
        return compute_contributions(*posterior, ballots, self.stats_.n, rows, n_threads)

    @available_if(has_numeric_leaves)
    @snapshot_method
    def _get_additive_trees(self) -> AdditiveTrees:
        """The tree and the outcomes of the vote at its leaves."""
        check_is_fitted(self)
        tree, leaves = self.tree_, np.flatnonzero(self.tree_.is_leaf)
        said = self._select_outputs(self.vote_.outcomes(leaves))
        value = np.zeros((tree.n_nodes, said.shape[1]))
        value[leaves] = said
        start = np.zeros(said.shape[1])
        return AdditiveTrees(
            tree.with_value(value), start, self.stats_.n, self._build_explanation_fields
        )

    def _select_outputs(self, outcomes: Float64) -> Float64:
        """Outcomes of the vote, (k, K), that tell all of them."""
        return outcomes

    def _make_explainer(self) -> Explainer:
        check_is_fitted(self)
        names, rows = self._feature_names(), self.stats_.n
        sets = None if self.categories_ is None else self.categories_.names
        # Where it is known which nodes no row lacked a value at, all others send it one way.
        missing = bool(self.tree_.missing_left.any() or self.tree_.missing_both.any())
        return Explainer(self.tree_, rows, self.weights_, names, self._predict_node, sets, missing)

    @abstractmethod
    def _predict_node(self, node: int) -> Any:
        """What a node predicts as a leaf."""

    @snapshot_method
    def path(self, x: ArrayLike) -> NestedCells:
        """Say which nested cells contain a row, and what share of the vote each has.

        Parameters
        ----------
        x : array-like of shape (p,) or (1, p)
            One row; a data frame of one row keeps its names.

        Returns
        -------
        NestedCells
            A sequence from the root inwards of cells, each with its rule, rows, label and share;
            shares sum to 1.
        """
        leaves = self._find_leaves(to_table(x))
        if len(leaves) != 1:
            raise ValueError(f"path takes one row, got {len(leaves)}")
        return self._make_explainer().describe_path(int(leaves[0]))

    @abstractmethod
    def _predict_outcome(self, outcome: Float64) -> tuple[Any, float | None]:
        """What an outcome of the vote, (K,), predicts: a class and its probability, or a number."""

    @available_if(has_numeric_leaves)
    @snapshot_method
    def rules(self, max_leaves: int = 16) -> Rules:
        """Give the part of the tree that matters most to the vote as rules.

        Parameters
        ----------
        max_leaves : int
            At most so many rules.

        Returns
        -------
        Rules
            One rule for each leaf of that part: "if ... and ... then class (probability, rows)". A leaf
            of `tree_` predicts what the vote says of every row there. A cell whose inside is not shown
            predicts the mean of what the vote says of its training rows. Where the rows that certify
            the fit are at hand, each has `error_at_most`.

        Raises
        ------
        ValueError
            If the model is of several targets.
        """
        self._expect_one_target("rules")
        explainer, certified = self._make_explainer(), self._certify_nodes()
        return extract_rules(explainer, self.vote_, self._predict_outcome, max_leaves, certified)

    def _certify_nodes(self) -> CertificateFamily | None:
        """Certificates of all nodes of the tree; None: no rows certify them."""
        return None

    @snapshot_method
    def export_text(self, max_leaves: int = 16) -> str:
        """Write the part of the tree that matters most to the vote as indented rules.

        Parameters
        ----------
        max_leaves : int
            At most so many leaves are shown; "..." marks what goes on below.

        Returns
        -------
        str
            One line per node: rule, what the vote says of its training rows on average, and how many
            these are.

        Raises
        ------
        ValueError
            If the model is of several targets.
        """
        self._expect_one_target("export_text")
        explainer = self._make_explainer()
        return format_tree(
            explainer, self.vote_, self._predict_outcome, max_leaves, self._get_node_notes()
        )

    def _get_node_notes(self) -> dict[int, str]:
        """What else is to be said of nodes."""
        return {}

    @abstractmethod
    def _compute_leaf_values(self) -> Float64:
        """What leaves of `tree_` predict, (m, K) or (m, 1); zeros elsewhere."""

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        if getattr(self, "preprocessor_", None) is not None:
            raise ValueError(
                "exports read rows as the tree does, and here a preprocessor makes them: "
                "fit the estimator behind it in a Pipeline"
            )
        rows = self.stats_.n.astype(np.float64)
        return self._make_formula(
            self.tree_.with_value(self._compute_leaf_values()), "tree", "identity", rows=rows
        )


class TreeVoteClassifier(ClassifierMixin, TreeVoteEstimator):
    """What the classifiers share: classes, their weights and their shares of the vote."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteEstimator._parameter_constraints,
        "scoring": [StrOptions({"error", "log_loss"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    stats_: NodeStats | SparseNodeStats | SeveralStats
    _takes_sparse_stats: ClassVar[bool] = False

    score = score_classifier

    def _has_sparse_stats(self) -> bool:
        """Whether classes of one target are so many that most nodes hold few of them."""
        is_one = self._takes_sparse_stats and not self._has_several_targets()
        return bool(is_one and self.n_classes_ > MANY_CLASSES)

    @property
    def _output_groups(self) -> OutputGroups:
        # Counting takes two classes at least, so that one class is no special case later.
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
        about = weight_unit, squared_weight
        of_each = [
            count_by_leaf(tree, leaf, one, weight, k, *about)
            for one, k in zip(columns, self._output_groups.sizes, strict=True)
        ]
        return SeveralStats(tuple(of_each)) if y.ndim == 2 else of_each[0]

    def _restore_target_stats(
        self, stored: StoredState, number: int = 0
    ) -> NodeStats | SparseNodeStats:
        kind = SparseNodeStats if self._has_sparse_stats() else NodeStats
        stats: NodeStats | SparseNodeStats = kind.from_stored(stored)
        if stats.n_classes != self._output_groups.sizes[number]:
            n_classes = np.atleast_1d(self.n_classes_)[number]
            raise ValueError(f"stats must be of {n_classes} classes, got {stats.n_classes}")
        return stats

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        super().__restore__(stored)
        if not isinstance(self.vote_, Vote):
            return
        score, is_leaf = self.vote_.score, self.tree_.is_leaf
        n_classes = np.atleast_1d(self.n_classes_).tolist()
        for one, k in zip(self._output_groups.split(score), n_classes, strict=True):
            shares = ((one >= 0) & (one <= 1 + _ROUNDING)).all()
            if not shares or not np.allclose(one[is_leaf].sum(axis=1), 1):
                raise ValueError("the votes in a leaf are no shares that sum to 1")
            if one[is_leaf].argmax(axis=1).max() >= k:
                raise ValueError(f"a leaf votes for another class than the {k} that there are")

    def _predict_node(self, node: int) -> Any:
        if isinstance(self.stats_, SeveralStats):
            of_each: Any = zip(self.classes_, self.stats_.of_each, strict=True)
            return tuple(_get_class(known, one, node) for known, one in of_each)
        return _get_class(self.classes_, self.stats_, node)

    def _predict_outcome(self, outcome: Float64) -> tuple[Any, float | None]:
        shares = outcome[: self.n_classes_]
        best = int(shares.argmax())
        return self.classes_[best], float(shares[best] / shares.sum())

    def _select_outputs(self, outcomes: Float64) -> Float64:
        # The first of two classes has what the second has not.
        return outcomes[:, 1:] if self._output_groups.sizes == (2,) else outcomes

    @snapshot_method
    @support_dask_collections
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class with the most votes, ties to the first in `classes_`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            Classes.
        """
        if self._has_several_targets():
            return select_classes(self.classes_, self._split_by_target(self._compute_outcomes(X)))
        leaves, lacking, blended = self._route_rows(X)
        labels = self.vote_.label.take(leaves)
        labels[lacking] = blended.argmax(axis=1)
        return self.classes_.take(labels)

    @snapshot_method
    @support_dask_collections
    def predict_proba(self, X: ArrayLike) -> Any:
        """Predict each class's share of the vote.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K), or list of them
            Shares in the order of `classes_`; rows sum to 1. Of several targets those of each.
        """
        # Path sums are right to a few units of rounding; a sum of exactly 1 costs nothing.
        of_each = [
            shares / shares.sum(axis=1, keepdims=True)
            for shares in self._split_by_target(self._compute_outcomes(X))
        ]
        return of_each if self._has_several_targets() else of_each[0]

    def _split_by_target(self, outcomes: Float64) -> list[Float64]:
        """Outcomes of the vote on the classes of each target."""
        n_classes = np.atleast_1d(self.n_classes_).tolist()
        return [
            one[:, :k]
            for one, k in zip(self._output_groups.split(outcomes), n_classes, strict=True)
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
    """The class that a node predicts; None where it is none that there is."""
    label = stats.label[node]
    return classes[label] if label < len(classes) else None


class TreeVoteRegressor(RegressorMixin, TreeVoteEstimator):
    """What the regressors share: a numeric target, its prediction and its spread."""

    scoring = "squared"
    stats_: TargetStats | SeveralStats

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
        how: dict[str, Any] = {"weight_unit": weight_unit}
        if y.ndim == 1:
            return measure_by_leaf(tree, leaf, y, weight, **how)
        columns = np.ascontiguousarray(y.T)
        return SeveralStats(
            tuple(measure_by_leaf(tree, leaf, one, weight, **how) for one in columns)
        )

    def _restore_target_stats(self, stored: StoredState, number: int = 0) -> TargetStats:  # noqa: ARG002 -- all alike
        return TargetStats.from_stored(stored)

    def _predict_node(self, node: int) -> Any:
        if isinstance(self.stats_, SeveralStats):
            of_each: Any = self.stats_.of_each
            return tuple(float(one.mean[node]) for one in of_each)
        return float(self.stats_.mean[node])

    def _predict_outcome(self, outcome: Float64) -> tuple[Any, float | None]:
        return float(outcome[0]), None

    @snapshot_method
    @support_dask_collections
    def predict(self, X: ArrayLike) -> Float64:
        """Predict the average of the prunings' means.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,), or (n, n_outputs)
            Predictions, in units of the target.
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
        """Say how far the target may lie from its prediction.

        The squares of the two parts sum to the variance of a target that is drawn from the leaf of
        a pruning that is drawn by its weight.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, 2)
            Standard deviation between the predictions of the prunings, and within their leaves, in
            units of the target. The second is that of training rows: small leaves make it too small.

        Raises
        ------
        ValueError
            If the model is of several targets.
        """
        check_is_fitted(self)
        self._expect_one_target("predict_std")
        stats: Any = self.stats_
        parts = prediction_variance(self.tree_, stats, self.weights_, self._get_voting())
        mean, exponent = scaled_distances(self.vote_.score[:, 0], stats.mean[0])
        between = np.ldexp(parts.between, -2 * exponent)
        leaves, lacking, blended = self._route_rows(
            X, np.column_stack([mean, between + mean**2, parts.within])
        )
        found = np.column_stack([parts.between, parts.within])[leaves]
        with np.errstate(over="ignore"):
            found[lacking, 0] = np.ldexp(
                np.maximum(blended[:, 1] - blended[:, 0] ** 2, 0.0), 2 * exponent
            )
        found[lacking, 1] = blended[:, 2]
        return np.sqrt(found)
