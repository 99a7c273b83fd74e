"""The classifiers: parameters and prediction of classes."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, compute_sample_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from certree.certified import CertifiedVote, Tune
from certree.columns import Float64, Int32
from certree.deployment import Deploy
from certree.estimator import CLASS_RULES, PACBayesVote, PrunedVote, Rules, TreeVoteEstimator
from certree.grow.dyadic import Resolution
from certree.grow.partition import Partition
from certree.grow.stopping import MaxDepth
from certree.stats import NodeStats, counted
from certree.tree import Tree
from certree.tune import Method, Search
from certree.votes import Kind
from certree.weights import Prior, Scoring, helmbold_schapire_family


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


def class_weights(class_weight: Any, y: NDArray[Any], weight: Float64 | None) -> Float64:
    """Weight of each row's class; "balanced" counts rows by their weights, scikit-learn does not."""
    if class_weight != "balanced":
        weights: Float64 = compute_sample_weight(class_weight, y)
        return weights
    _, codes = np.unique(y, return_inverse=True)
    totals = np.bincount(codes, weight)
    present = totals > 0
    factor = totals.sum() / (present.sum() * np.where(present, totals, 1))
    return np.where(present, factor, 0)[codes]


class PACBayesTreeClassifier(CertifiedVote, PACBayesVote, TreeVoteClassifier):
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
        must not rise, 0 otherwise. For the CART partition and two classes only.
    prior : {"leaves", "branching"} or None, default=None
        See `pac_bayes`; None: chosen by cross-validation with the temperatures, "leaves" if both are
        given.
    vote : {"majority", "mean"}, default="mean"
        Whether a pruning votes for the majority class of the leaf that x is in, or spreads its vote
        like the classes there.
    smoothing : float, default=0.1
        Rows with the classes of its parent that every cell is given in the mean vote; see `vote`.
    lambda_error : float or None, default=None
        Weight of an error (nats); None: chosen by cross-validation.
    lambda_penalty : float or None, default=None
        Weight of the square root of a leaf's rows; None: chosen by cross-validation.
    search : {"mixture", "joint", "error-first"} or None, default=None
        "mixture": laws with eight values of `lambda_error`, and `lambda_penalty` 0, vote together,
        with the shares that give the smallest log loss. "joint", "error-first": one law, the two
        chosen together or in turn, on the grids of the paper. None: "mixture" by log loss, "joint"
        by error. A value that is given stays.
    cv : int, splitter, iterable or None, default=3
        Folds of the cross-validation. A number of folds deals the rows by class and otherwise at
        random, copies of a row apart; anything else means what it means to scikit-learn.
    scoring : {"log_loss", "error"}, default="log_loss"
        What the cross-validation minimises.
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
        Whether a cell whose rows are of one class is a leaf.
    box : array-like of shape (2, p), or None, default=None
        Lower and upper corner of a box that is known without the rows. With the partition "dyadic"
        the tree then halves that box `max_depth` times (log2 n if None), whatever rows there are,
        and all rows weigh labelled prunings and certify the vote: no split is needed. For few
        features.
    split : float or None, default=None
        Share of the rows that grow and label the tree; the others weigh its prunings and certify
        the error. None: all rows do everything, and there is no certificate.
    delta : float, default=0.05
        Probability with which the certificate may fail.
    deploy : {"best", "vote"}, default="best"
        With a split, what predicts: the vote or the cross-validated pruning of the growing rows,
        whichever has the lower bound, or the vote in any case.
    tune : {"cv", "bound"} or None, default=None
        How temperatures are chosen: by cross-validation, or by the bound along the path of Gibbs
        posteriors, which needs a split. None: "bound" with a split and no temperature given, else
        "cv".
    preprocessor : transformer or None, default=None
        Fitted on the rows that grow the tree, and applied to all, before anything else.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    temperatures_ : dict
        `lambda_error` and `lambda_penalty`, given or chosen; a list if it is not the same in all
        laws of a mixture. 0 if the bound chose and a single pruning predicts.
    shares_ : list of float
        Share of each law in the vote; 1 for a single one.
    tree_ : Tree
        The tree.
    stats_ : NodeStats
        Class counts and labels of its nodes.
    weights_ : NodeWeights
        The law over its prunings.
    vote_ : Vote
        The outcome of the vote in every cell.
    certificate_ : Certificate or None
        What is promised about the error on new rows; None without a split.
    certificates_ : tuple of Certificate
        Those of the two candidates, which hold together, and further ones, each by itself.
    election_ : Election, LabelledElection or None
        The rows that certify, and what may be certified by them; None without a split or a box.
    preprocessor_ : transformer or None
        The fitted preprocessor.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PACBayesVote._parameter_constraints,
        **TreeVoteClassifier._parameter_constraints,
        **CertifiedVote._parameter_constraints,
        "vote": [StrOptions({"majority", "mean"})],
    }

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        criterion: str = "entropy",
        axis: str = "spread",
        splitter: str = "best",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        prior: Prior | None = None,
        vote: Kind = "mean",
        smoothing: float = 0.1,
        lambda_error: float | None = None,
        lambda_penalty: float | None = None,
        search: Search | None = None,
        cv: Any = 3,
        scoring: Scoring = "log_loss",
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        max_leaves: int | None = None,
        min_gain: float = 0.0,
        max_features: Any = None,
        stop_when_pure: bool = True,
        box: Any = None,
        split: float | None = None,
        delta: float = 0.05,
        deploy: Deploy = "best",
        tune: Tune = None,
        preprocessor: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.criterion = criterion
        self.axis = axis
        self.splitter = splitter
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.prior: Prior | None = prior
        self.vote: Kind = vote
        self.smoothing = smoothing
        self.lambda_error = lambda_error
        self.lambda_penalty = lambda_penalty
        self.search: Search | None = search
        self.cv = cv
        self.scoring = scoring
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_gain = min_gain
        self.max_features = max_features
        self.stop_when_pure = stop_when_pure
        self.box = box
        self.split = split
        self.delta = delta
        self.deploy: Deploy = deploy
        self.tune: Tune = tune
        self.preprocessor = preprocessor
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


class PrunedTreeClassifier(PrunedVote, TreeVoteClassifier):
    """One pruning of one tree by a rule, its penalty chosen by cross-validation.

    Parameters
    ----------
    partition : {"cart", "kd", "dyadic"} or scikit-learn decision tree, default="cart"
        How the tree is grown; see `PACBayesTreeClassifier`.
    criterion : {"entropy", "gini", "misclassification"}, default="entropy"
        What a cut of the CART partition lowers; see `grow_cart`.
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
        must not rise, 0 otherwise. For the CART partition and two classes only.
    rule : str, default="cost-complexity"
        What a pruning pays besides its errors. "cost-complexity": a price per leaf, "depth": more
        for deep leaves; see `cost_complexity` and `depth_penalised`. "sibling-merge": sibling leaves
        merge, the cheapest first, as long as the errors that a merge adds are within its price; see
        `sibling_merge_path`. "square-root", "spatially-adaptive", "polynomial": see
        `square_root_penalised`, `spatially_adaptive` and `polynomial_penalised`. "pessimistic",
        "description-length": see `pessimistic` and `minimum_description_length`.
    lambda_penalty : float or None, default=None
        Weight of that penalty: errors per leaf or merge, else the `constant` of the rule's function,
        1 as published; None: chosen by cross-validation.
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
        Folds of the cross-validation; see `PACBayesTreeClassifier`.
    scoring : {"error", "log_loss"}, default="error"
        What the cross-validation minimises.
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
        Whether a cell whose rows are of one class is a leaf.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
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
    shares_ : list of float
        [1.0]: a single law is used.
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
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984. Scott and Nowak,
    "Minimax-optimal classification with dyadic decision trees", IEEE Trans. Information Theory 2006.
    """

    _rules: ClassVar[Rules] = CLASS_RULES
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrunedVote._parameter_constraints,
        **TreeVoteClassifier._parameter_constraints,
        "rule": [StrOptions(set(CLASS_RULES))],
    }

    def __init__(
        self,
        partition: Partition = "cart",
        *,
        criterion: str = "entropy",
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
        scoring: Scoring = "error",
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        max_leaves: int | None = None,
        min_gain: float = 0.0,
        max_features: Any = None,
        stop_when_pure: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.criterion = criterion
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
        self.scoring = scoring
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_gain = min_gain
        self.max_features = max_features
        self.stop_when_pure = stop_when_pure
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


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
        must not rise, 0 otherwise. For the CART partition and two classes only.
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
    max_leaves : int or None, default=None
        The CART partition stops at so many leaves; the cell with the largest gain is cut first.
    min_gain : float, default=0
        The CART partition makes no cut that lowers rows times impurity by less.
    max_features : int, float, "sqrt", "log2" or None, default=None
        How many features the CART partition looks at in each cell, drawn at random; None: all.
    stop_when_pure : bool, default=True
        Whether a cell whose rows are of one class is a leaf.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
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
    shares_ : list of float
        [1.0]: a single law is used.
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
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.

    References
    ----------
    Helmbold and Schapire, "Predicting nearly as well as the best pruning of a decision tree", Machine
    Learning 1997.
    """

    _temperatures = ("temperature",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteEstimator._parameter_constraints,
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
        splitter: str = "best",
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        temperature: float | None = None,
        smoothing: float = 0.5,
        cv: Any = 5,
        scoring: Scoring = "error",
        min_rows: float = 1,
        max_depth: MaxDepth = None,
        max_leaves: int | None = None,
        min_gain: float = 0.0,
        max_features: Any = None,
        stop_when_pure: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.partition = partition
        self.criterion = criterion
        self.axis = axis
        self.splitter = splitter
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.temperature = temperature
        self.smoothing = smoothing
        self.cv = cv
        self.scoring = scoring
        self.min_rows = min_rows
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_gain = min_gain
        self.max_features = max_features
        self.stop_when_pure = stop_when_pure
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _methods(self) -> list[Method]:
        return [Method(helmbold_schapire_family, "mean", self.smoothing, self._slopes())]

    def _coded(self, y: NDArray[Any]) -> NDArray[Any]:
        codes = super()._coded(y)
        if self.n_classes_ > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass "
                f"({self.n_classes_} classes)."
            )
        return codes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
