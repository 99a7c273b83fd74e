"""The scikit-learn estimators: parameters, a short fit, prediction."""

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import Tags, check_random_state, compute_sample_weight
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from certree import _core
from certree.columns import Float64, Int32
from certree.explain import ExplainedCell, Explainer
from certree.grow.partition import Grower, Partition
from certree.grow.stopping import MaxDepth
from certree.progress import progress
from certree.prunings import cost_complexity_family, depth_penalised_family, impurity_cost
from certree.rows import Fold, Indices, content_folds
from certree.stats import NodeStats, count
from certree.tree import LEAF, Tree, threads
from certree.tune import Method, Objective, Scoring, Search, grow_fold, tune
from certree.votes import Kind, Vote, vote
from certree.weights import (
    NodeWeights,
    Prior,
    gains_of,
    helmbold_schapire_family,
    pac_bayes_family,
    reached,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Training:
    """The rows that an estimator is fitted on; those of weight zero are gone.

    ``number`` says which rows they were, None if all are left.
    """

    X: NDArray[Any]
    y: Int32
    weight: Float64 | None
    n_classes: int
    number: Indices | None

    def folds(self, cv: Any, random_state: np.random.RandomState) -> list[Fold]:
        """Split the rows as scikit-learn's `cv` says; a number of folds goes by content."""
        if cv is None or isinstance(cv, Integral):
            n_folds = 5 if cv is None else int(cv)
            return list(content_folds(self.X, self.y, n_folds, random_state, self.weight))
        # Importing it takes longer than importing all of certree; most models never need it.
        from sklearn.model_selection import check_cv

        # A splitter splits the rows that are left; given row numbers are those of all rows.
        place = np.arange(len(self.y))
        if self.number is not None and not hasattr(cv, "split"):
            place = np.full(self.number[-1] + 1, -1)
            place[self.number] = np.arange(len(self.number))
        splits = check_cv(cv, self.y, classifier=True).split(self.X, self.y)
        return [self._fold(*(self._left(place, part) for part in split)) for split in splits]

    @staticmethod
    def _left(place: Indices, rows: Any) -> Indices:
        numbers = np.asarray(rows)
        numbers = np.flatnonzero(numbers) if numbers.dtype == bool else numbers
        kept = place[numbers[numbers < len(place)]]
        return kept[kept >= 0]

    def _fold(self, grow: Indices, judge: Indices) -> Fold:
        if self.weight is None:
            return Fold(grow, judge)
        return Fold(grow, judge, self.weight[grow], self.weight[judge])


class TreeVoteClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """What the estimators share: a tree grows, temperatures are chosen, its prunings vote.

    A subclass says which laws it chooses from (`_methods`) and which temperatures those have.
    """

    _temperatures: ClassVar[tuple[str, ...]]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "partition": [StrOptions({"cart", "dyadic", "kd"}), HasMethods(["fit", "get_params"])],
        "criterion": [StrOptions({"gini", "entropy", "misclassification"})],
        "axis": [StrOptions({"cycle", "spread"})],
        "cv": ["cv_object"],
        "scoring": [StrOptions({"error", "log_loss"})],
        "min_rows": [Interval(Real, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 0, None, closed="left"), StrOptions({"log"}), None],
        "stop_when_pure": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    partition: Partition
    criterion: Any
    axis: Any
    cv: Any
    scoring: Scoring
    min_rows: float
    max_depth: MaxDepth
    stop_when_pure: bool
    class_weight: Any
    random_state: Any
    n_jobs: int | None
    verbose: int

    @abstractmethod
    def _methods(self) -> list[Method]:
        """The families of laws that this estimator chooses from, the likeliest first."""

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
        before = self.__dict__.copy()
        try:
            self._fit(self._training_rows(X, y, sample_weight))
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)  # a fit that fails leaves the estimator as it was
            raise
        return self

    def _fit(self, rows: _Training) -> None:
        random_state = check_random_state(self.random_state)
        grow = Grower(
            self.partition,
            axis=self.axis,
            criterion=self.criterion,
            min_rows=self.min_rows,
            max_depth=self.max_depth,
            stop_when_pure=self.stop_when_pure,
            seed=int(random_state.randint(2**31 - 1)),
            n_jobs=self.n_jobs,
        )
        method, self.temperatures_ = self._tune(rows, grow, random_state)
        self._vote(rows, grow(rows.X, rows.y, rows.weight), method)

    def _training_rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> _Training:
        rows, target = validate_data(
            self, X, y, dtype=[np.float64, np.float32], order="C", ensure_all_finite="allow-nan"
        )
        check_classification_targets(target)
        weight = number = None
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, rows, dtype=np.float64, ensure_non_negative=True
            )
        if self.class_weight is not None:
            class_weight = _class_weights(self.class_weight, target, weight)
            weight = class_weight if weight is None else weight * class_weight
        if weight is not None:
            present = weight > 0
            if not present.any():
                raise ValueError("sample_weight must be positive for at least one row")
            if not present.all():
                number = np.flatnonzero(present)
                rows, target = np.ascontiguousarray(rows[number]), target[number]
                weight = weight[number]
        self.classes_, classes = np.unique(target, return_inverse=True)
        self.n_classes_ = len(self.classes_)
        # Counting takes two classes at least, so that one class is no special case later.
        return _Training(rows, classes.astype(np.int32), weight, max(2, self.n_classes_), number)

    def _tune(
        self, rows: _Training, grow: Grower, random_state: np.random.RandomState
    ) -> tuple[Method, dict[str, float]]:
        """Choose a family of laws and its temperatures."""
        given = [getattr(self, name) for name in self._temperatures]
        method, *others = self._methods()
        values = given
        if None in given:
            folds = rows.folds(self.cv, random_state)
            steps = len(folds) + 4 * (1 + len(others))
            with progress(self.verbose > 0, steps, type(self).__name__) as advance:
                grown = []
                for fold in folds:
                    grown.append(grow_fold(fold, grow, rows.X, rows.y, rows.n_classes, self.n_jobs))
                    advance()
                best = np.inf
                for candidate in (method, *others):
                    objective = Objective.of(grown, candidate, self.scoring, threads(self.n_jobs))
                    chosen = tune(objective, given, self._search(), advance)
                    loss = objective.losses(np.array([chosen]))[0]
                    if loss < best:
                        best, method, values = loss, candidate, list(chosen)
        return method, dict(zip(self._temperatures, map(float, values), strict=True))

    def _vote(self, rows: _Training, tree: Tree, method: Method) -> None:
        """Set the fitted attributes, once the temperatures are chosen."""
        stats = count(tree, rows.X, rows.y, rows.n_classes, None, rows.weight, n_jobs=self.n_jobs)
        weights = method.family(tree, stats).at(*self.temperatures_.values())
        self._set_fitted(
            tree, stats, weights, vote(tree, stats, weights, method.kind, method.smoothing)
        )

    def _set_fitted(self, tree: Tree, stats: NodeStats, weights: NodeWeights, ballot: Vote) -> None:
        self.tree_, self.stats_, self.weights_, self.vote_ = tree, stats, weights, ballot
        self._label = ballot.label

    # -- prediction --------------------------------------------------------------------------------

    def _leaves(self, X: ArrayLike) -> Int32:
        check_is_fitted(self)
        rows = validate_data(
            self,
            X,
            reset=False,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite="allow-nan",
        )
        return self.tree_.route(rows, threads(self.n_jobs))

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
        """Share of each feature in the decrease of Gini impurity, (p,).

        A split counts with the probability that a pruning drawn by its weight makes it. All zero if
        no split is worth anything.
        """
        check_is_fitted(self)
        tree = self.tree_
        inner = np.flatnonzero(tree.left != LEAF)
        decrease = -gains_of(tree, impurity_cost(self.stats_, "gini"))
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
        # A single class is counted beside an empty one.
        classes = [*self.classes_, None]
        return Explainer(self.tree_, self.stats_, self.weights_, list(names), classes)

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
        row = x if np.ndim(x) == 2 else np.asarray(x)[None]
        leaves = self._leaves(row)
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
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _class_weights(class_weight: Any, y: NDArray[Any], weight: Float64 | None) -> Float64:
    """Weight of each row's class; "balanced" counts rows by their weights, scikit-learn does not."""
    if class_weight != "balanced":
        weights: Float64 = compute_sample_weight(class_weight, y)
        return weights
    _, codes = np.unique(y, return_inverse=True)
    totals = np.bincount(codes, weight)
    present = totals > 0
    factor = totals.sum() / (present.sum() * np.where(present, totals, 1))
    return np.where(present, factor, 0)[codes]


class PACBayesTreeClassifier(TreeVoteClassifier):
    """All prunings of one tree vote, weighed by their errors and their size.

    A tree is grown until its cells are pure or small. A pruning whose leaves A hold n(A) rows with
    err(A) errors has weight ``exp(-sum over leaves of (lambda_error err(A) + lambda_penalty
    sqrt(n(A))))`` times its prior. Prediction walks one path of the tree.

    Parameters
    ----------
    partition : {"cart", "kd", "dyadic"} or scikit-learn decision tree, default="cart"
        How the tree is grown: cut where the classes become purest, cut at medians, halved at
        midpoints, or by an estimator such as ``DecisionTreeClassifier()``, which is cloned and
        fitted.
    criterion : {"entropy", "gini", "misclassification"}, default="entropy"
        What a cut of the CART partition lowers; see `grow_cart`.
    axis : {"spread", "cycle"}, default="spread"
        Which feature cuts a cell of the KD partition: the one with the largest range in it, or all
        in turn.
    prior : {"leaves", "branching"} or None, default=None
        See `pac_bayes`; None: chosen by cross-validation with the temperatures, "leaves" if both are
        given.
    vote : {"majority", "mean"}, default="mean"
        Whether a pruning votes for the majority class of the leaf that x is in, or spreads its vote
        like the classes there.
    smoothing : float, default=0.5
        Rows with the classes of its parent that every cell is given in the mean vote; see `vote`.
    lambda_error : float or None, default=None
        Weight of an error (nats); None: chosen by cross-validation.
    lambda_penalty : float or None, default=None
        Weight of the square root of a leaf's rows; None: chosen by cross-validation.
    search : {"joint", "error-first"}, default="joint"
        Whether the two are chosen together or in turn.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation. A number of folds deals the rows by class and otherwise at
        random, copies of a row apart; anything else means what it means to scikit-learn.
    scoring : {"log_loss", "error"}, default="log_loss"
        What the cross-validation minimises.
    min_rows : float, default=1
        A cell of at most so many rows is a leaf of the tree.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    stop_when_pure : bool, default=True
        Whether a cell whose rows are of one class is a leaf.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Decides the folds, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    temperatures_ : dict
        `lambda_error` and `lambda_penalty`, given or chosen.
    tree_ : Tree
        The tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    weights_ : NodeWeights
        The law over its prunings.
    vote_ : Vote
        The outcome of the vote in every cell.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certree import PACBayesTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PACBayesTreeClassifier(random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _temperatures = ("lambda_error", "lambda_penalty")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteClassifier._parameter_constraints,
        "prior": [StrOptions({"leaves", "branching"}), None],
        "vote": [StrOptions({"majority", "mean"})],
        "lambda_error": [Interval(Real, 0, None, closed="left"), None],
        "lambda_penalty": [Interval(Real, 0, None, closed="left"), None],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "search": [StrOptions({"joint", "error-first"})],
    }

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        criterion: str = "entropy",
        axis: str = "spread",
        prior: Prior | None = None,
        vote: Kind = "mean",
        smoothing: float = 0.5,
        lambda_error: float | None = None,
        lambda_penalty: float | None = None,
        search: Search = "joint",
        cv: Any = 5,
        scoring: Scoring = "log_loss",
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        stop_when_pure: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.criterion = criterion
        self.axis = axis
        self.prior: Prior | None = prior
        self.vote: Kind = vote
        self.smoothing = smoothing
        self.lambda_error = lambda_error
        self.lambda_penalty = lambda_penalty
        self.search: Search = search
        self.cv = cv
        self.scoring = scoring
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.stop_when_pure = stop_when_pure
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _methods(self) -> list[Method]:
        priors: list[Prior] = ["leaves", "branching"] if self.prior is None else [self.prior]
        return [
            Method(partial(pac_bayes_family, prior=prior), self.vote, self.smoothing)
            for prior in priors
        ]

    def _search(self) -> Search:
        return self.search


class PrunedTreeClassifier(TreeVoteClassifier):
    """One optimal pruning of one tree, its penalty chosen by cross-validation.

    Parameters
    ----------
    partition : {"cart", "kd", "dyadic"} or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeClassifier`.
    criterion : {"entropy", "gini", "misclassification"}, default="entropy"
        What a cut of the CART partition lowers; see `grow_cart`.
    axis : {"spread", "cycle"}, default="spread"
        Which feature cuts a cell of the KD partition.
    rule : {"cost-complexity", "depth"}, default="cost-complexity"
        What a pruning pays besides its errors: a price per leaf, or more for deep leaves; see
        `cost_complexity` and `depth_penalised`.
    lambda_penalty : float or None, default=None
        Weight of that penalty (errors per leaf, or Scott and Nowak's constant); None: chosen by
        cross-validation.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation; see `PACBayesTreeClassifier`.
    scoring : {"error", "log_loss"}, default="error"
        What the cross-validation minimises.
    min_rows : float, default=1
        A cell of at most so many rows is a leaf of the tree.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    stop_when_pure : bool, default=True
        Whether a cell whose rows are of one class is a leaf.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Decides the folds, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    temperatures_ : dict
        `lambda_penalty`, given or chosen.
    tree_ : Tree
        The pruned tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    weights_ : NodeWeights
        1 at its leaves.
    vote_ : Vote
        Class frequencies of its leaves.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984. Scott and Nowak,
    "Minimax-optimal classification with dyadic decision trees", IEEE Trans. Information Theory 2006.
    """

    _temperatures = ("lambda_penalty",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteClassifier._parameter_constraints,
        "rule": [StrOptions({"cost-complexity", "depth"})],
        "lambda_penalty": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        criterion: str = "entropy",
        axis: str = "spread",
        rule: str = "cost-complexity",
        lambda_penalty: float | None = None,
        cv: Any = 5,
        scoring: Scoring = "error",
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        stop_when_pure: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.criterion = criterion
        self.axis = axis
        self.rule = rule
        self.lambda_penalty = lambda_penalty
        self.cv = cv
        self.scoring = scoring
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.stop_when_pure = stop_when_pure
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _methods(self) -> list[Method]:
        family = (
            cost_complexity_family if self.rule == "cost-complexity" else depth_penalised_family
        )
        return [Method(family, "mean")]

    def _vote(self, rows: _Training, tree: Tree, method: Method) -> None:
        super()._vote(rows, tree, method)
        self._set_fitted(*collapsed(self.tree_, self.stats_, self.weights_, self.vote_))


class HelmboldSchapireClassifier(TreeVoteClassifier):
    """All prunings of one tree vote by Helmbold and Schapire's weights, for two classes.

    Parameters
    ----------
    partition : {"cart", "kd", "dyadic"} or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeClassifier`.
    criterion : {"entropy", "gini", "misclassification"}, default="entropy"
        What a cut of the CART partition lowers; see `grow_cart`.
    axis : {"spread", "cycle"}, default="spread"
        Which feature cuts a cell of the KD partition.
    temperature : float or None, default=None
        Weight of a unit of absolute loss (nats); None: chosen by cross-validation.
    smoothing : float, default=0.5
        Rows with the classes of its parent that every cell is given in the vote, see `vote`; 0 is
        the vote of the reference.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation; see `PACBayesTreeClassifier`.
    scoring : {"error", "log_loss"}, default="error"
        What the cross-validation minimises.
    min_rows : float, default=1
        A cell of at most so many rows is a leaf of the tree.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    stop_when_pure : bool, default=True
        Whether a cell whose rows are of one class is a leaf.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Decides the folds, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, at most two.
    temperatures_ : dict
        `temperature`, given or chosen.
    tree_ : Tree
        The tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    weights_ : NodeWeights
        The law over its prunings.
    vote_ : Vote
        The averaged class frequencies in every cell.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Helmbold and Schapire, "Predicting nearly as well as the best pruning of a decision tree", Machine
    Learning 1997.
    """

    _temperatures = ("temperature",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteClassifier._parameter_constraints,
        "temperature": [Interval(Real, 0, None, closed="left"), None],
        "smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        criterion: str = "entropy",
        axis: str = "spread",
        temperature: float | None = None,
        smoothing: float = 0.5,
        cv: Any = 5,
        scoring: Scoring = "error",
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        stop_when_pure: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.criterion = criterion
        self.axis = axis
        self.temperature = temperature
        self.smoothing = smoothing
        self.cv = cv
        self.scoring = scoring
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.stop_when_pure = stop_when_pure
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _methods(self) -> list[Method]:
        return [Method(helmbold_schapire_family, "mean", self.smoothing)]

    def _training_rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> _Training:
        rows = super()._training_rows(X, y, sample_weight)
        if self.n_classes_ > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass "
                f"({self.n_classes_} classes)."
            )
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def collapsed(
    tree: Tree, stats: NodeStats, weights: NodeWeights, ballot: Vote
) -> tuple[Tree, NodeStats, NodeWeights, Vote]:
    """Cut a tree and its columns down to one pruning, given by weights 0 and 1."""
    kept = np.flatnonzero(_core.reach(tree.left, weights.log_odds) > 0)
    # What is left of the chain of a leaf is the cell at which the pruning stops.
    pruned = tree.restricted(kept, weights.weight[kept] > 0)
    law = NodeWeights(weights.weight[kept], weights.log_odds[kept], 0.0, *2 * [np.zeros(len(kept))])
    return (
        pruned,
        NodeStats(stats.counts[kept], stats.label[kept]),
        law,
        Vote(ballot.score[kept]),
    )
