"""The regressors: parameters and prediction of numbers."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions

from certree.columns import Float64, Int32
from certree.estimator import PACBayesVote, PrunedVote, TreeVoteEstimator
from certree.grow.dyadic import Resolution
from certree.grow.partition import Partition
from certree.grow.stopping import MaxDepth
from certree.stats import TargetStats, measured
from certree.tree import Tree
from certree.tune import Search
from certree.votes import spread
from certree.weights import Prior


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
        parts = spread(self.tree_, self.stats_, self.weights_, method.smoothing, method.slopes)
        return np.sqrt(np.column_stack([parts.between[leaves], parts.within[leaves]]))


class PACBayesTreeRegressor(PACBayesVote, TreeVoteRegressor):
    """All prunings of one tree predict together, weighed by their sums of squares and their size.

    A tree is grown until its cells hold one value or are small. A pruning whose leaves A hold n(A)
    rows with sums of squares sse(A) has weight ``exp(-sum over leaves of (lambda_error sse(A) / s +
    lambda_penalty sqrt(n(A))))`` times its prior, where s is the noise variance. The prediction is
    the average of the prunings' leaf means. Prediction walks one path of the tree.

    Parameters
    ----------
    partition : {"cart", "kd", "dyadic"} or scikit-learn decision tree, default="cart"
        How the tree is grown: cut where the sum of squares falls most, cut at medians, halved at
        midpoints, or by an estimator such as ``DecisionTreeRegressor()``, which is cloned and
        fitted.
    axis : {"spread", "cycle"}, default="spread"
        Which feature cuts a cell of the KD partition: the one with the largest range in it, or all
        in turn.
    splitter : {"best", "random"}, default="best"
        Whether the CART partition makes the best cut of a cell, or the best of one random cut for
        each feature; see `grow_cart`.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories: those of a data frame with a dtype of categories, strings or
        objects, or those of a mask, of indices or of names; None: none. The CART partition divides
        categories in two sets, the other partitions take them as numbers in the order of their
        names. Categories that were not seen go where missing values go.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if predictions must not fall where it rises, -1 if they
        must not rise, 0 otherwise. For the CART partition only.
    prior : {"leaves", "branching"} or None, default="leaves"
        See `pac_bayes`; None: chosen by cross-validation with the temperatures, "leaves" if both are
        given.
    smoothing : float, default=2
        Rows with the value of its parent that every cell is given; see `vote`.
    lambda_error : float or None, default=None
        Weight of a sum of squares of one noise variance (nats); None: chosen by cross-validation.
    lambda_penalty : float or None, default=0
        Weight of the square root of a leaf's rows; None: chosen by cross-validation.
    search : {"joint", "error-first"}, default="joint"
        Whether the two are chosen together or in turn.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation, which minimises the squared error. A number of folds deals the
        rows at random, copies of a row apart; anything else means what it means to scikit-learn.
    min_rows : float, default=1
        A cell of at most so many rows is a leaf of the tree.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    max_leaves : int or None, default=None
        The CART partition stops at so many leaves; the cell with the largest gain is cut first.
    min_gain : float, default=0
        The CART partition makes no cut that lowers rows times impurity by less.
    max_features : int, float, "sqrt", "log2" or None, default=None
        How many features the CART partition looks at in each cell, drawn at random; None: all.
    stop_when_pure : bool, default=True
        Whether a cell whose rows have one value of the target is a leaf.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    temperatures_ : dict
        `lambda_error` and `lambda_penalty`, given or chosen.
    tree_ : Tree
        The tree.
    stats_ : TargetStats
        Moments of the target in its nodes; ``stats_.unit`` is the noise variance.
    weights_ : NodeWeights
        The law over its prunings.
    vote_ : Vote
        The prediction in every cell.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018, for the law;
    the squared loss in place of errors is ours.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certree import PACBayesTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PACBayesTreeRegressor(random_state=0).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PACBayesVote._parameter_constraints,
        "search": [StrOptions({"joint", "error-first"})],
    }

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        axis: str = "spread",
        splitter: str = "best",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        prior: Prior | None = "leaves",
        smoothing: float = 2.0,
        lambda_error: float | None = None,
        lambda_penalty: float | None = 0.0,
        search: Search = "joint",
        cv: Any = 5,
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        max_leaves: int | None = None,
        min_gain: float = 0.0,
        max_features: Any = None,
        stop_when_pure: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.axis = axis
        self.splitter = splitter
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.prior: Prior | None = prior
        self.smoothing = smoothing
        self.lambda_error = lambda_error
        self.lambda_penalty = lambda_penalty
        self.search: Search = search
        self.cv = cv
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_gain = min_gain
        self.max_features = max_features
        self.stop_when_pure = stop_when_pure
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class PrunedTreeRegressor(PrunedVote, TreeVoteRegressor):
    """One pruning of one regression tree by a rule, its penalty chosen by cross-validation.

    Parameters
    ----------
    partition : {"cart", "kd", "dyadic"} or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeRegressor`.
    axis : {"spread", "cycle"}, default="spread"
        Which feature cuts a cell of the KD partition.
    splitter : {"best", "random"}, default="best"
        Whether the CART partition makes the best cut of a cell, or the best of one random cut for
        each feature; see `grow_cart`.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories: those of a data frame with a dtype of categories, strings or
        objects, or those of a mask, of indices or of names; None: none. The CART partition divides
        categories in two sets, the other partitions take them as numbers in the order of their
        names. Categories that were not seen go where missing values go.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if predictions must not fall where it rises, -1 if they
        must not rise, 0 otherwise. For the CART partition only.
    rule : str, default="cost-complexity"
        What a pruning pays besides its sum of squares. "cost-complexity": a price per leaf, "depth":
        more for deep leaves; see `cost_complexity` and `depth_penalised`. "sibling-merge": sibling
        leaves merge, the cheapest first, as long as the squares that a merge adds are within its
        price; see `sibling_merge_path`. "square-root", "spatially-adaptive", "polynomial": see
        `square_root_penalised`, `spatially_adaptive` and `polynomial_penalised`, whose constants were
        meant for errors.
    lambda_penalty : float or None, default=None
        Weight of that penalty, in noise variances: the price of a leaf or merge, else the `constant`
        of the rule's function; None: chosen by cross-validation.
    count_empty : bool, default=False
        Whether leaves without rows count, in "square-root", "spatially-adaptive" and "polynomial" on
        the dyadic tree. `tree_` does not show those inside chains.
    resolution : "paper" or None, default=None
        "paper": the dyadic tree halves all sides as often as the theorem of one of these three rules
        has it, whatever `stop_when_pure` says; see `grow_dyadic` and `dyadic_resolution`. The
        number of its cells then takes the place of the number of its leaves in the penalty. In
        cross-validation a fold has the tree for its own rows, counted by weight.
    smoothness : int, default=2
        How often the boundary between classes can be differentiated, for "polynomial".
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation; see `PACBayesTreeRegressor`.
    min_rows : float, default=1
        A cell of at most so many rows is a leaf of the tree.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    max_leaves : int or None, default=None
        The CART partition stops at so many leaves; the cell with the largest gain is cut first.
    min_gain : float, default=0
        The CART partition makes no cut that lowers rows times impurity by less.
    max_features : int, float, "sqrt", "log2" or None, default=None
        How many features the CART partition looks at in each cell, drawn at random; None: all.
    stop_when_pure : bool, default=True
        Whether a cell whose rows have one value of the target is a leaf.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    temperatures_ : dict
        `lambda_penalty`, given or chosen.
    tree_ : Tree
        The pruned tree.
    stats_ : TargetStats
        Moments of the target in its nodes.
    weights_ : NodeWeights
        1 at its leaves.
    vote_ : Vote
        Means of its leaves.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984, Chapter 8.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PrunedVote._parameter_constraints

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        axis: str = "spread",
        splitter: str = "best",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        rule: str = "cost-complexity",
        lambda_penalty: float | None = None,
        count_empty: bool = False,
        resolution: Resolution = None,
        smoothness: int = 2,
        cv: Any = 5,
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        max_leaves: int | None = None,
        min_gain: float = 0.0,
        max_features: Any = None,
        stop_when_pure: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.axis = axis
        self.splitter = splitter
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.rule = rule
        self.lambda_penalty = lambda_penalty
        self.count_empty = count_empty
        self.resolution: Resolution = resolution
        self.smoothness = smoothness
        self.cv = cv
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_gain = min_gain
        self.max_features = max_features
        self.stop_when_pure = stop_when_pure
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
