"""Estimators in which all prunings vote by the PAC-Bayes law."""

from functools import partial
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from certree.certificates.election import Deploy
from certree.estimators.certified import CertifiedVote, Tune
from certree.estimators.tree_vote import TreeVoteClassifier, TreeVoteEstimator, TreeVoteRegressor
from certree.grow.partition import Partition
from certree.grow.stopping import MaxDepth
from certree.tune import Candidate, Search
from certree.votes import Kind, Voting
from certree.weights.family import Scoring
from certree.weights.pac_bayes import Prior, pac_bayes_family


class PACBayesVote(TreeVoteEstimator):
    """Estimators in which all prunings vote by the PAC-Bayes law, whatever the target is."""

    _temperatures = ("lambda_error", "lambda_penalty")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeVoteEstimator._parameter_constraints,
        "prior": [StrOptions({"leaves", "branching"}), None],
        "lambda_error": [Interval(Real, 0, None, closed="left"), None],
        "lambda_penalty": [Interval(Real, 0, None, closed="left"), None],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "search": [StrOptions({"mixture", "joint", "error-first"}), None],
    }

    prior: Prior | None
    vote: Kind = "mean"
    smoothing: float
    search: Search | None

    def _methods(self) -> list[Candidate]:
        priors: list[Prior] = ["leaves", "branching"] if self.prior is None else [self.prior]
        return [
            Candidate(
                partial(pac_bayes_family, prior=prior),
                Voting(self.vote, self.smoothing, self._slopes()),
            )
            for prior in priors
        ]

    def _search(self) -> Search:
        if self.search is None:
            return "mixture" if self.scoring == "log_loss" else "joint"
        if self.search == "mixture" and self.scoring != "log_loss":
            raise ValueError(f'search="mixture" takes scoring="log_loss", got {self.scoring!r}')
        return self.search


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
