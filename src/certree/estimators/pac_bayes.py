"""Estimators in which all prunings vote by the PAC-Bayes posterior."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from certree.estimators.compact import CompactableTree
from certree.estimators.tree_vote import (
    WEIGHTS_OF_TARGETS,
    TreeVoteClassifier,
    TreeVoteEstimator,
    TreeVoteRegressor,
)
from certree.estimators.tune import Candidate, Search
from certree.estimators.updatable import UpdatableTree
from certree.grow.training_samples import MaxDepth
from certree.interface.signatures import NONNEGATIVE
from certree.votes import Kind, Voting
from certree.weights.family import Family, LossName, Scoring
from certree.weights.pac_bayes_posteriors import PriorName, likeliest_prunings, pac_bayes_family

# Of the mean vote, where a classifier is given no `Voting` of its own.
SMOOTHING = 0.1

# What chooses a posterior; the same parameters wherever they stand.
_POSTERIOR_CONSTRAINTS: dict[str, list[Any]] = {
    "prior": [StrOptions({"leaves", "branching"}), None],
    "lambda_error": [NONNEGATIVE, None],
    "lambda_penalty": [NONNEGATIVE, None],
    "search": [StrOptions({"mixture", "joint", "error-first"}), None],
}


def make_voting(vote: Voting | Kind, slopes: Any) -> Voting:
    """How the prunings of a classifier vote."""
    given = Voting(vote, SMOOTHING) if isinstance(vote, str) else vote
    return given if slopes is None else replace(given, slopes=slopes)


class PACBayesPosteriors(BaseEstimator):
    """How a posterior over prunings is chosen by cross-validation, for `CertifiedTreeClassifier`.

    Parameters
    ----------
    prior : {"leaves", "branching"} or None, default=None
        See `pac_bayes`; None: chosen with the temperatures, "leaves" if both are given.
    lambda_error : float or None, default=None
        Weight of an error (nats); None: chosen by cross-validation.
    lambda_penalty : float or None, default=None
        Weight of the square root of a leaf's rows; None: chosen by cross-validation.
    search : {"mixture", "joint", "error-first"} or None, default=None
        See `PACBayesTreeClassifier`.
    scoring : {"log_loss", "error"}, default="log_loss"
        What the cross-validation minimises.

    Examples
    --------
    >>> from certree import CertifiedTreeClassifier, PACBayesPosteriors
    >>> model = CertifiedTreeClassifier(posteriors=PACBayesPosteriors(lambda_error=1.0))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_POSTERIOR_CONSTRAINTS,
        "scoring": [StrOptions({"error", "log_loss"})],
    }

    def __init__(
        self,
        *,
        prior: PriorName | None = None,
        lambda_error: float | None = None,
        lambda_penalty: float | None = None,
        search: Search | None = None,
        scoring: Scoring = "log_loss",
    ) -> None:
        self.prior: PriorName | None = prior
        self.lambda_error = lambda_error
        self.lambda_penalty = lambda_penalty
        self.search: Search | None = search
        self.scoring: Scoring = scoring


class PACBayesTree(TreeVoteEstimator):
    """Estimators in which all prunings vote by the PAC-Bayes posterior, whatever the target is."""

    _temperatures = ("lambda_error", "lambda_penalty")

    def _get_posterior_parameters(self) -> Any:
        """What holds the parameters of `PACBayesPosteriors`."""
        return self

    def _get_temperatures(self) -> list[float | None]:
        return [getattr(self._get_posterior_parameters(), name) for name in self._temperatures]

    def _get_candidates(self) -> dict[str, Candidate]:
        posteriors, voting = self._get_posterior_parameters(), self._get_voting()
        numbers = self._get_scoring() == "squared"
        mixes = posteriors.lambda_error is None and self._get_search() == "mixture"
        priors: list[PriorName] = (
            ["leaves", "branching"] if posteriors.prior is None else [posteriors.prior]
        )
        losses: list[LossName] = ["error", "log_loss"] if mixes and not numbers else ["error"]
        families: dict[str, Callable[..., Family]] = {
            f"{'squared' if numbers else loss}, {prior}": partial(
                pac_bayes_family, prior=prior, loss=loss
            )
            for loss in losses
            for prior in priors
        }
        if mixes and numbers and posteriors.prior is None:
            families["likeliest pruning"] = likeliest_prunings
        return {name: Candidate(family, voting) for name, family in families.items()}

    def _get_search(self) -> Search:
        search, scoring = self._get_posterior_parameters().search, self._get_scoring()
        if search is None:
            return "joint" if scoring == "error" else "mixture"
        if search == "mixture" and scoring == "error":
            raise ValueError('search="mixture" takes scoring="log_loss", got "error"')
        return search


class PACBayesTreeClassifier(UpdatableTree, CompactableTree, PACBayesTree, TreeVoteClassifier):
    """All prunings of one tree vote, weighed by their errors and their size.

    A tree is grown until its cells are pure or small. A pruning whose leaves A hold n(A) rows with
    err(A) errors has weight ``exp(-sum over leaves of (lambda_error err(A) + lambda_penalty
    sqrt(n(A))))`` times its prior. Prediction walks one path of the tree. So the tree prunes itself:
    there is no hyperparameter that has to be tuned against overfitting.

    Rows may have classes of several targets, in columns, which one tree serves. Cuts lower the mean of
    the impurities, and a leaf pays the mean of what each of q targets pays, ``err(A) = (err_1(A) + ...
    + err_q(A)) / q``, log losses likewise. What is chosen by cross-validation has the smallest sum of
    losses. The order of the columns changes nothing but theirs.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown: cut where the classes become purest, cut at medians, halved at
        midpoints; an object such as ``Cart(max_leaf_nodes=64)``, `KD`, `Dyadic` or `Grid`; or an
        estimator such as ``DecisionTreeClassifier()``, which is cloned and fitted.
    prior : {"leaves", "branching"} or None, default=None
        See `pac_bayes`; None: both, or chosen by cross-validation with the temperatures, or "leaves"
        if both are given.
    lambda_error : float or None, default=None
        Weight of an error (nats); None: chosen by cross-validation.
    lambda_penalty : float or None, default=None
        Weight of the square root of a leaf's rows; None: chosen by cross-validation, in a mixture 0.
    search : {"mixture", "joint", "error-first"} or None, default=None
        "mixture": posteriors with eight values of `lambda_error`, and `lambda_penalty` 0, vote
        together, with the shares that give the smallest log loss: posteriors of both priors, where
        none is given, and, where `lambda_error` is not, as many in which leaves pay the log loss of
        their class frequencies (nats) instead of errors. "joint", "error-first": one posterior, the
        two chosen together or in turn, on the grids of the paper. None: "mixture" by log loss,
        "joint" by error. A value that is given stays.
    vote : {"mean", "majority"} or Voting, default="mean"
        Whether a pruning spreads its vote like the classes in the leaf that x is in, or votes for the
        majority class there. In "mean" every cell is given a tenth of a row with the classes of its
        parent; ``Voting("mean", smoothing=1.0)`` gives more.
    cv : int, splitter, iterable or None, default=3
        Folds of the cross-validation. A number of folds deals the rows by class and otherwise at
        random, equal rows apart; anything else means what it means to scikit-learn.
    scoring : {"log_loss", "error"}, default="log_loss"
        What the cross-validation minimises.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories: those of a data frame with a dtype of categories, strings or
        objects and those of an array of objects with a string in them, or those of a mask, of indices
        or of names; None: none. `Cart` divides categories in two sets, the other growers take them
        as numbers in the order of their names. Categories that were not seen go where missing values
        go.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if predictions must not fall where it rises, -1 if they
        must not rise, 0 otherwise. For `Cart` and two classes only.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; of several targets a dict for each.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
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
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the rows of the fit, by which `certify` knows them; None if loaded from a file that
        was saved without.
    best_params_ : dict
        `lambda_error` and `lambda_penalty`, given or chosen; a list if it is not the same in all
        posteriors of a mixture.
    posteriors_ : list of str
        What a leaf pays in each posterior, and its prior: "error, leaves", "log_loss, branching".
    mixture_weights_ : list of float
        Share of each posterior in the vote; 1 for a single one.
    tree_ : Tree
        The tree.
    stats_ : NodeStats, SparseNodeStats or SeveralStats
        Class counts and labels of its nodes; `SparseNodeStats` if there are more than 100 classes,
        `SeveralStats` of several targets.
    weights_ : NodeWeights
        The distribution over its prunings.
    vote_ : Vote or DeferredVote
        The outcome of the vote in every cell; the latter if there are more than 100 classes of one
        target.
    seen_rows_ : SeenRows or None
        What `partial_fit`, `forget` and `merge` go on from, of each row: hashes of its features, leaf,
        target, weight and which features it lacks; None where there are no such methods, and in models
        that were saved without or made by `compact`.
    n_features_in_ : int
        Number of features.
    categories_ : Categories or None
        The categories of the features; None if all are numbers.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features hold categories; None if all are numbers.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had them.

    See Also
    --------
    CertifiedTreeClassifier : The same with a certificate on its error on new rows.

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
        **TreeVoteClassifier._parameter_constraints,
        **_POSTERIOR_CONSTRAINTS,
        "vote": [StrOptions({"majority", "mean"}), Voting],
        "class_weight": WEIGHTS_OF_TARGETS,
    }

    _takes_outputs = True
    _takes_blocks = True

    def __init__(
        self,
        grower: Any = "cart",
        *,
        prior: PriorName | None = None,
        lambda_error: float | None = None,
        lambda_penalty: float | None = None,
        search: Search | None = None,
        vote: Voting | Kind = "mean",
        cv: Any = 3,
        scoring: Scoring = "log_loss",
        max_depth: MaxDepth = None,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    _takes_sparse_stats = True

    def _get_voting(self) -> Voting:
        return make_voting(self.vote, self._get_monotonic_signs())


class PACBayesTreeRegressor(UpdatableTree, CompactableTree, PACBayesTree, TreeVoteRegressor):
    """All prunings of one tree predict together, weighed by their sums of squares and their size.

    A tree is grown until its cells hold one value or are small. A pruning whose leaves A hold n(A)
    rows with sums of squares sse(A) has weight ``exp(-sum over leaves of (lambda_error sse(A) / s +
    lambda_penalty sqrt(n(A))))`` times its prior, where s is the noise variance. The prediction is
    the average of the prunings' leaf means. Prediction walks one path of the tree.

    Rows may have several numbers, in columns, which one tree serves. Cuts lower the mean of the
    variances, each in units of that of all rows, and a leaf pays the mean over q numbers, each with a
    noise variance of its own: ``(sse_1(A) / s_1 + ... + sse_q(A) / s_q) / q``. What is chosen by
    cross-validation has the smallest sum of squared errors in units of variances. The order of the
    columns changes nothing but theirs; their units decide at most which rows are in which fold.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown: cut where the sum of squares falls most, cut at medians, halved at
        midpoints; an object such as ``Cart(max_leaf_nodes=64)``, `KD`, `Dyadic` or `Grid`; or an
        estimator such as ``DecisionTreeRegressor()``, which is cloned and fitted.
    prior : {"leaves", "branching"} or None, default=None
        See `pac_bayes`; None: both, or chosen by cross-validation with the temperatures, or "leaves"
        if both are given.
    lambda_error : float or None, default=None
        Weight of a sum of squares of one noise variance (nats); None: chosen by cross-validation.
    lambda_penalty : float or None, default=None
        Weight of the square root of a leaf's rows; None: chosen by cross-validation, in a mixture 0.
    search : {"mixture", "joint", "error-first"}, default="mixture"
        "mixture": posteriors with eight values of `lambda_error`, and `lambda_penalty` 0, predict
        together, with the shares that give the smallest squared error; of both priors, with the
        likeliest prunings of each, where they are not given. "joint", "error-first": one posterior,
        the two chosen together or in turn. A value that is given stays.
    smoothing : float, default=2
        Rows with the value of its parent that every cell is given; see `Voting`.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation, which minimises the squared error. A number of folds deals the
        rows at random, equal rows apart; anything else means what it means to scikit-learn.
    max_depth : int, "log" or None, default=None
        Depth at which cells are leaves; "log" is p times the whole part of log n.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    monotonic_cst : array-like of int, dict or None, default=None
        For every feature, or by its name, 1 if predictions must not fall where it rises, -1 if they
        must not rise, 0 otherwise. For `Cart` only.
    random_state : int, RandomState or None, default=None
        Decides the folds, random cuts and features, and an estimator's own randomness.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all. The model does not depend on it.
    verbose : int, default=0
        Whether a progress bar is shown.

    Attributes
    ----------
    best_params_ : dict
        `lambda_error` and `lambda_penalty`, given or chosen; a list if it is not the same in all
        posteriors of a mixture.
    posteriors_ : list of str
        What a leaf pays in each posterior, and its prior: "squared, leaves", "squared, branching",
        "likeliest pruning".
    mixture_weights_ : list of float
        Share of each posterior in the prediction; 1 for a single one.
    tree_ : Tree
        The tree.
    n_outputs_ : int
        Number of columns of y; 1 where it is a column itself.
    stats_ : TargetStats or SeveralStats
        Moments of the target in its nodes; ``stats_.unit`` is the noise variance. `SeveralStats` of
        several numbers.
    weights_ : NodeWeights
        The distribution over its prunings.
    vote_ : Vote
        The prediction in every cell.
    seen_rows_ : SeenRows or None
        What `partial_fit`, `forget` and `merge` go on from, of each row: hashes of its features, leaf,
        target, weight and which features it lacks; None where there are no such methods, and in models
        that were saved without or made by `compact`.
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
    Nguyen and Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018, for the
    posterior; the squared loss in place of errors is ours.

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
        **TreeVoteRegressor._parameter_constraints,
        **_POSTERIOR_CONSTRAINTS,
        "search": [StrOptions({"mixture", "joint", "error-first"})],
        "smoothing": [NONNEGATIVE],
    }

    _takes_outputs = True
    _takes_blocks = True

    def __init__(
        self,
        grower: Any = "cart",
        *,
        prior: PriorName | None = None,
        lambda_error: float | None = None,
        lambda_penalty: float | None = None,
        search: Search = "mixture",
        smoothing: float = 2.0,
        cv: Any = 5,
        max_depth: MaxDepth = None,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _get_voting(self) -> Voting:
        return Voting("mean", self.smoothing, self._get_monotonic_signs())
