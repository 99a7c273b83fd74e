"""What all estimators share: a tree grows, temperatures are chosen, its prunings vote."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context, is_classifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
)

from certree.arrays import Float64, Int32
from certree.explain import ExplainedCell, Explainer
from certree.grow.cart import slopes_of
from certree.grow.partition import Grower, Partition
from certree.grow.stopping import MaxDepth
from certree.progress import progress
from certree.rows.categories import categories_of
from certree.rows.folds import Fold
from certree.rows.training import _Training, checked_rows, class_weights, new_rows, one_row
from certree.stats import NodeStats, Stats, TargetStats, counted, measured
from certree.tree import LEAF, Tree, threads
from certree.tune import Candidate, GrownFold, Mixture, Objective, Search, grow_fold, mixture, tune
from certree.votes import Slopes, Vote, spread, vote
from certree.weights.family import Scoring, gains_of
from certree.weights.node_weights import NodeWeights, reached


class TreeVoteEstimator(BaseEstimator, metaclass=ABCMeta):
    """A tree grows, temperatures are chosen, its prunings vote.

    What the target is decides over `_coded`, `_summarise` and `_growing_criterion`; the method over
    `_methods` and its temperatures.
    """

    _temperatures: ClassVar[tuple[str, ...]]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "partition": [StrOptions({"cart", "dyadic", "kd"}), HasMethods(["fit", "get_params"])],
        "axis": [StrOptions({"cycle", "spread"})],
        "splitter": [StrOptions({"best", "random"})],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "monotonic_cst": ["array-like", dict, None],
        "cv": ["cv_object"],
        "min_rows": [Interval(Real, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 0, None, closed="left"), StrOptions({"log"}), None],
        "max_leaves": [Interval(Integral, 1, None, closed="left"), None],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "min_gain": [Interval(Real, 0, None, closed="left")],
        "stop_when_pure": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    partition: Partition
    axis: Any
    splitter: Any
    categorical_features: Any
    monotonic_cst: Any
    max_leaves: int | None
    max_features: Any
    min_gain: float
    cv: Any
    scoring: Scoring
    min_rows: float
    max_depth: MaxDepth
    stop_when_pure: bool
    random_state: Any
    n_jobs: int | None
    verbose: int

    @abstractmethod
    def _methods(self) -> list[Candidate]:
        """The families of laws that this estimator chooses from, the likeliest first."""

    @abstractmethod
    def _coded(self, y: NDArray[Any]) -> NDArray[Any]:
        """The target as int32 classes or float64 numbers; sets what the target tells of itself."""

    @abstractmethod
    def _summarise(self, tree: Tree, leaf: Int32, y: NDArray[Any], weight: Float64 | None) -> Stats:
        """The statistics of rows that have been routed to their leaves."""

    @abstractmethod
    def _growing_criterion(self) -> Any:
        """What greedy cuts lower."""

    @abstractmethod
    def _given_weights(self, y: NDArray[Any], sample_weight: Float64 | None) -> Float64 | None:
        """Weight of each row, before those of weight zero are left out."""

    def _search(self) -> Search:
        return "joint"

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree, choose the temperatures and let the prunings vote.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value and goes where the partition sends it.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            How many rows each row counts as. A row of weight w is treated like w copies of it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with self._unchanged_by_failure():
            self._fit(self._training_rows(X, y, sample_weight))
        return self

    @contextmanager
    def _unchanged_by_failure(self) -> Iterator[None]:
        """A fit that fails leaves the estimator as it was."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, rows: _Training) -> None:
        random_state = check_random_state(self.random_state)
        grow = self._grower(int(random_state.randint(2**31 - 1))).on(rows.X)
        method, laws = self._tune(rows, grow, random_state)
        self._vote(rows, grow(rows.X, rows.y, rows.weight), method, laws)

    def _grower(self, seed: int) -> Grower:
        mask = None if self.categories_ is None else self.categories_.mask
        return Grower(
            self.partition,
            axis=self.axis,
            criterion=self._growing_criterion(),
            splitter=self.splitter,
            min_rows=self.min_rows,
            max_depth=self.max_depth,
            max_leaves=self.max_leaves,
            min_gain=self.min_gain,
            max_features=self.max_features,
            categorical_features=mask,
            monotonic_cst=self._slopes(),
            stop_when_pure=self.stop_when_pure,
            seed=seed,
            n_jobs=self.n_jobs,
        )

    def _slopes(self) -> Slopes:
        """Along which features predictions rise or fall."""
        names = getattr(self, "feature_names_in_", None)
        slopes = slopes_of(self.monotonic_cst, self.n_features_in_, names)
        if slopes is not None and self.partition != "cart":
            raise ValueError(
                f'monotonic_cst takes partition="cart", got partition={self.partition!r}'
            )
        return slopes

    def _training_rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> _Training:
        self.categories_ = categories_of(X, self.categorical_features)
        rows, target = checked_rows(self, X, y)
        weight, number = self._row_weights(rows, target, sample_weight), None
        if weight is not None:
            present = weight > 0
            if not present.any():
                raise ValueError("sample_weight must be positive for at least one row")
            if not present.all():
                number = np.flatnonzero(present)
                rows, target = np.ascontiguousarray(rows[number]), target[number]
                weight = weight[number]
        return _Training(rows, self._coded(target), weight, number)

    def _row_weights(
        self, rows: NDArray[Any], target: NDArray[Any], sample_weight: ArrayLike | None
    ) -> Float64 | None:
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, rows, dtype=np.float64, ensure_non_negative=True
            )
        return self._given_weights(target, weight)

    def _tune(
        self, rows: _Training, grow: Grower, random_state: np.random.RandomState
    ) -> tuple[Candidate, Mixture]:
        """Choose a family of laws, and one of them or a mixture of several."""
        folds = rows.folds(self.cv, random_state, is_classifier(self)) if self._is_tuned() else []
        steps = len(folds) + 4 * len(self._methods())
        with progress(self.verbose > 0, steps, type(self).__name__) as advance:
            return self._tuned(self._grown_folds(rows, folds, grow, advance), advance)

    def _is_tuned(self) -> bool:
        """Whether a temperature is left to choose."""
        return any(getattr(self, name) is None for name in self._temperatures)

    def _tuned(
        self, grown: list[GrownFold], advance: Callable[[], None] = lambda: None
    ) -> tuple[Candidate, Mixture]:
        """Choose by folds that are grown."""
        given = [getattr(self, name) for name in self._temperatures]
        methods = self._methods()
        if not self._is_tuned():
            return methods[0], Mixture.of_one(given)
        n_threads = threads(self.n_jobs)
        objectives = [Objective.of(grown, method, self.scoring, n_threads) for method in methods]
        number, laws = self._choose(objectives, given, advance)
        return methods[number], laws

    def _grown_folds(
        self,
        rows: _Training,
        folds: list[Fold],
        grow: Grower,
        advance: Callable[[], None] = lambda: None,
    ) -> list[GrownFold]:
        """The tree of each fold with the statistics of its two sides."""
        grown = []
        for fold in folds:
            part = grow.part(fold.grow)
            grown.append(grow_fold(fold, part, self._summarise, rows.X, rows.y, self.n_jobs))
            advance()
        return grown

    def _choose(
        self,
        objectives: list[Objective],
        given: list[float | None],
        advance: Callable[[], None],
    ) -> tuple[int, Mixture]:
        """The number of the best method, and its laws."""
        search = self._search()
        if search == "mixture":
            return mixture(objectives, given, advance)
        found = [tune(objective, given, search, advance) for objective in objectives]
        losses = [
            objective.losses(np.array([values]))[0]
            for objective, values in zip(objectives, found, strict=True)
        ]
        best = int(np.argmin(losses))
        return best, Mixture.of_one(found[best])

    def _vote(self, rows: _Training, tree: Tree, method: Candidate, laws: Mixture) -> None:
        """Set the fitted attributes, once the laws are chosen."""
        leaf = tree.route(rows.X, threads(self.n_jobs))
        stats = self._summarise(tree, leaf, rows.y, rows.weight)
        weights = laws.law(method.family(tree, stats))
        self._set_laws(laws)
        self._set_fitted(
            tree,
            stats,
            weights,
            vote(tree, stats, weights, method.voting),
        )

    def _set_laws(self, laws: Mixture) -> None:
        columns = laws.temperatures.T.tolist()
        self.temperatures_ = {
            name: column[0] if len(set(column)) == 1 else column
            for name, column in zip(self._temperatures, columns, strict=True)
        }
        self.shares_ = laws.shares.tolist()

    def _set_fitted(self, tree: Tree, stats: Stats, weights: NodeWeights, ballot: Vote) -> None:
        self.tree_, self.stats_, self.weights_, self.vote_ = tree, stats, weights, ballot

    # -- prediction --------------------------------------------------------------------------------

    def _leaves(self, X: ArrayLike) -> Int32:
        rows = new_rows(self, X)
        return self.tree_.route(rows, threads(self.n_jobs))

    def apply(self, X: ArrayLike) -> Int32:
        """Find the leaf of `tree_` that each row reaches.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of int32, shape (n,)
            Node numbers.
        """
        return self._leaves(X)

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
        nodes = self._leaves(X)
        parent = self.tree_.parent
        rows = np.arange(len(nodes))
        pairs = []
        while len(nodes):
            pairs.append((rows, nodes))
            nodes = parent[nodes]
            rows, nodes = rows[nodes >= 0], nodes[nodes >= 0]
        row, node = (np.concatenate(part) for part in zip(*pairs, strict=True))
        shape = (int(row.max()) + 1, self.tree_.n_nodes)
        path = sparse.csr_matrix((np.ones(len(row), dtype=np.int64), (row, node)), shape=shape)
        path.sort_indices()
        return path

    # -- inspection --------------------------------------------------------------------------------

    def get_depth(self) -> int:
        """Number of cells above the deepest cell of `tree_`."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Number of leaves of `tree_`."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> Float64:
        """Share of each feature in the decrease of impurity, (p,): Gini's, or sums of squares.

        A split counts with the probability that a pruning drawn by its weight makes it. All zero if
        no split is worth anything.
        """
        check_is_fitted(self)
        tree = self.tree_
        inner = np.flatnonzero(tree.left != LEAF)
        decrease = -gains_of(tree, self.stats_.impurity)
        split = reached(tree, self.weights_) - self.weights_.weight
        value = np.maximum(decrease, 0) * np.maximum(split, 0)
        importances = np.bincount(tree.feature[inner], value[inner], minlength=tree.n_features)
        total = importances.sum()
        shares: Float64 = importances / (total if total > 0 else 1.0)
        return shares

    def _explainer(self) -> Explainer:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x[{j}]" for j in range(self.tree_.n_features)]
        rows = self.stats_.n
        sets = None if self.categories_ is None else self.categories_.names
        return Explainer(self.tree_, rows, self.weights_, list(names), self._prediction_of, sets)

    @abstractmethod
    def _prediction_of(self, node: int) -> Any:
        """What a node predicts as a leaf."""

    def explain(self, x: ArrayLike) -> list[ExplainedCell]:
        """Say which nested cells contain a row, and what share of the vote each has.

        Parameters
        ----------
        x : array-like of shape (p,) or (1, p)
            One row; a data frame of one row keeps its names.

        Returns
        -------
        list of ExplainedCell
            From the root inwards, each with its rule, rows, label and share; shares sum to 1.
        """
        leaves = self._leaves(one_row(x))
        if len(leaves) != 1:
            raise ValueError(f"explain takes one row, got {len(leaves)}")
        return self._explainer().path(int(leaves[0]))

    def export_text(self, max_leaves: int = 16) -> str:
        """Write the part of the tree that matters most to the vote as indented rules.

        Parameters
        ----------
        max_leaves : int
            At most so many leaves are shown; "..." marks what goes on below.

        Returns
        -------
        str
            One line per node: rule, rows, label and share of the vote.
        """
        return self._explainer().text(max_leaves)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class TreeVoteClassifier(ClassifierMixin, TreeVoteEstimator):
    """What the classifiers share: classes, their weights and their shares of the vote."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({"gini", "entropy", "misclassification"})],
        "scoring": [StrOptions({"error", "log_loss"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    criterion: Any
    class_weight: Any
    stats_: NodeStats

    def _growing_criterion(self) -> Any:
        return self.criterion

    def _given_weights(self, y: NDArray[Any], sample_weight: Float64 | None) -> Float64 | None:
        check_classification_targets(y)
        if self.class_weight is None:
            return sample_weight
        weight = class_weights(self.class_weight, y, sample_weight)
        return weight if sample_weight is None else sample_weight * weight

    def _coded(self, y: NDArray[Any]) -> NDArray[Any]:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.n_classes_ = len(self.classes_)
        return codes.astype(np.int32)

    def _summarise(
        self, tree: Tree, leaf: Int32, y: NDArray[Any], weight: Float64 | None
    ) -> NodeStats:
        # Counting takes two classes at least, so that one class is no special case later.
        return counted(tree, leaf, y, weight, max(2, self.n_classes_))

    def _set_fitted(self, *columns: Any) -> None:
        super()._set_fitted(*columns)
        self._label = self.vote_.label

    def _prediction_of(self, node: int) -> Any:
        label = self.stats_.label[node]
        return self.classes_[label] if label < self.n_classes_ else None

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class with the most votes, ties to the first in `classes_`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Classes.
        """
        leaves = self._leaves(X)
        labels: NDArray[Any] = self.classes_.take(self._label.take(leaves))
        return labels

    def predict_proba(self, X: ArrayLike) -> Float64:
        """Predict each class's share of the vote.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            Shares in the order of `classes_`; rows sum to 1.
        """
        leaves = self._leaves(X)
        shares = self.vote_.score[leaves, : self.n_classes_]
        # Path sums are right to a few units of rounding; a sum of exactly 1 costs nothing.
        normalised: Float64 = shares / shares.sum(axis=1, keepdims=True)
        return normalised


class TreeVoteRegressor(RegressorMixin, TreeVoteEstimator):
    """What the regressors share: a numeric target, its prediction and its spread."""

    scoring = "squared"
    stats_: TargetStats

    def _growing_criterion(self) -> Any:
        return "squared"

    def _given_weights(self, _: NDArray[Any], sample_weight: Float64 | None) -> Float64 | None:
        return sample_weight

    def _coded(self, y: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(y, dtype=np.float64)

    def _summarise(
        self, tree: Tree, leaf: Int32, y: NDArray[Any], weight: Float64 | None
    ) -> TargetStats:
        return measured(tree, leaf, y, weight)

    def _prediction_of(self, node: int) -> Any:
        return float(self.stats_.mean[node])

    def predict(self, X: ArrayLike) -> Float64:
        """Predict the average of the prunings' means.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Predictions, in units of the target.
        """
        leaves = self._leaves(X)
        predicted: Float64 = self.vote_.score[leaves, 0]
        return predicted

    def predict_spread(self, X: ArrayLike) -> Float64:
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
        """
        leaves = self._leaves(X)
        method = self._methods()[0]
        parts = spread(self.tree_, self.stats_, self.weights_, method.voting)
        return np.sqrt(np.column_stack([parts.between[leaves], parts.within[leaves]]))
