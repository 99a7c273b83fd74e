"""Estimators in which all prunings of a tree vote with PAC-Bayes posterior weights."""

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
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.signatures import NONNEGATIVE
from certree.rows.monotonic import MonotonicSigns
from certree.votes import Kind, Voting
from certree.weights.family import LossName, PosteriorFamily, Scoring
from certree.weights.pac_bayes_posteriors import PriorName, likeliest_prunings, pac_bayes_family

# Smoothing of classifiers whose `vote` is a string.
SMOOTHING = 0.1

# Constraints of the parameters that choose a posterior, for all classes that have them.
_POSTERIOR_CONSTRAINTS: dict[str, list[Any]] = {
    "prior": [StrOptions({"leaves", "branching"}), None],
    "lambda_error": [NONNEGATIVE, None],
    "lambda_penalty": [NONNEGATIVE, None],
    "search": [StrOptions({"mixture", "joint", "error-first"}), None],
}


def make_voting(vote: Voting | Kind, signs: MonotonicSigns) -> Voting:
    """Return how the prunings of a classifier vote, from its parameter `vote`.

    A pruning is the tree with some nodes turned into leaves. vote: a `Voting` object, which has the
    kind of the vote and the smoothing, or the kind alone: "mean" (by the class frequencies of the
    leaf that a row reaches) or "majority" (for its most frequent class). With the kind alone, the
    smoothing is 0.1: that many rows with the class frequencies of its parent are added to each
    node. signs: monotonic constraint of each of p features, -1, 0 or 1, (p,), which replaces that
    of the object; None: it is not replaced.
    """
    voting = Voting(vote, SMOOTHING) if isinstance(vote, str) else vote
    return voting if signs is None else replace(voting, slopes=signs)


class PACBayesPosteriors(BaseEstimator):
    """Settings of the cross-validation by which `CertifiedTreeClassifier` chooses posteriors.

    A pruning is the grown tree after some of its nodes have become leaves; a posterior is a
    distribution over all prunings. The object is passed as the parameter `posteriors`.

    Parameters
    ----------
    prior : {"leaves", "branching"} or None, default=None
        Prior over prunings. "leaves": each leaf that holds rows divides it by e; "branching": each
        node is a leaf with probability 1/2. None: a mixture has posteriors of both priors;
        otherwise it is chosen with the inverse temperatures, or is "leaves" if both of these are
        set.
    lambda_error : float or None, default=None
        Inverse temperature: factor of an error in the log weight of a pruning (nats); None: chosen.
    lambda_penalty : float or None, default=None
        Inverse temperature of the penalty: factor of the square root of the number of rows of a
        leaf; None: chosen; in a mixture 0, or eight values if `lambda_error` is set.
    search : {"mixture", "joint", "error-first"} or None, default=None
        How the inverse temperatures are chosen. "mixture": posteriors with eight values of
        `lambda_error` vote together, with the mixture weights of the smallest validation log loss;
        "joint": one posterior, both chosen together; "error-first": one posterior, `lambda_error`
        chosen first, then `lambda_penalty`. None: "mixture" for scoring="log_loss", else "joint".
    scoring : {"log_loss", "error"}, default="log_loss"
        Loss that the cross-validation minimises.

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
    """Base class of estimators in which all prunings vote with PAC-Bayes posterior weights.

    A pruning is the tree after some of its nodes have become leaves. The class defines the
    candidate posteriors: for classes by the errors, or the log loss, of the leaves, for numeric
    targets by their sums of squares, each with two priors over prunings (a factor 1 / e for each
    leaf; or each node is a leaf with probability 1/2). Subclasses have the constructor arguments,
    and define `_get_voting`.
    """

    _temperatures = ("lambda_error", "lambda_penalty")

    def _get_posterior_parameters(self) -> Any:
        """Return the object with the attributes prior, lambda_error, lambda_penalty and search.

        They are the prior over prunings, the two inverse temperatures, which are the factors of
        loss and size in the log weight of a pruning, and the search by which these are chosen, such
        as "mixture". Here the object is the estimator itself; certified classifiers have a
        `PACBayesPosteriors`. A pruning is the tree with some nodes turned into leaves.
        """
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
        families: dict[str, Callable[..., PosteriorFamily]] = {
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
            raise ValueError(
                'scoring must be "log_loss" with search="mixture", got "error": use search="joint"'
            )
        return search


class PACBayesTreeClassifier(UpdatableTree, CompactableTree, PACBayesTree, TreeVoteClassifier):
    """All prunings of one tree vote; errors and size determine the weight of a pruning.

    A tree is grown until its nodes are pure or small. A pruning is this tree after some nodes have
    become leaves. If the leaves A of a pruning hold n(A) training rows with err(A) errors, the
    pruning has weight ``exp(-sum over leaves of (lambda_error err(A) + lambda_penalty
    sqrt(n(A))))`` times its prior. A prediction needs one path of the tree. So the tree prunes
    itself, and no hyperparameter needs tuning against overfitting.

    There may be several targets, one in each column of y. Then splits reduce the mean impurity over
    the q targets, and the loss of a leaf is the mean loss, ``err(A) = (err_1(A) + ... + err_q(A)) /
    q``; log losses likewise. Cross-validation minimises the sum of the losses of all targets. The
    order of the columns of y does not change the model.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown. "cart": splits of the largest decrease of impurity; "kd": splits at
        medians; "dyadic": splits at midpoints. Or an object, such as ``Cart(max_leaf_nodes=64)``,
        `KD`, `Dyadic` or `Grid`; or an estimator such as ``DecisionTreeClassifier()``, which is
        cloned and fitted.
    prior : {"leaves", "branching"} or None, default=None
        Prior over prunings. "leaves": each leaf that holds rows divides it by e; "branching": each
        node is a leaf with probability 1/2; see `pac_bayes`. None: a mixture has posteriors of both
        priors; otherwise it is chosen by cross-validation, or is "leaves" if both inverse
        temperatures are set.
    lambda_error : float or None, default=None
        Inverse temperature: factor of an error in the log weight of a pruning (nats). None: chosen
        by cross-validation.
    lambda_penalty : float or None, default=None
        Inverse temperature of the penalty: factor of the square root of the number of rows of a
        leaf. None: chosen by cross-validation; in a mixture 0, or eight values if `lambda_error` is
        set.
    search : {"mixture", "joint", "error-first"} or None, default=None
        How the posterior is chosen. "mixture": posteriors with eight values of `lambda_error` vote
        together, with the mixture weights of the smallest cross-validated log loss. If
        `lambda_error` is None, the mixture has as many posteriors in which the loss of a leaf is
        the log loss of its class frequencies (nats) instead of its errors. "joint": one posterior,
        both inverse temperatures chosen together on the grids of Nguyen and Kpotufe. "error-first":
        one posterior, `lambda_error` chosen first, then `lambda_penalty`. None: "mixture" for
        scoring="log_loss", "joint" for "error". Values that are set stay fixed.
    vote : {"mean", "majority"} or Voting, default="mean"
        How a pruning votes: "mean" by the class frequencies of the leaf that a row reaches,
        "majority" for its most frequent class. With "mean" each node has a tenth of a row added,
        with the class frequencies of its parent; ``Voting("mean", smoothing=1.0)`` adds a whole
        row.
    cv : int, splitter, iterable or None, default=3
        Folds of the cross-validation. An integer is the number of random folds, stratified by
        class, which do not depend on the row order. Otherwise as in scikit-learn; None means 5
        folds.
    scoring : {"log_loss", "error"}, default="log_loss"
        Loss that the cross-validation minimises.
    max_depth : int, "log" or None, default=None
        Largest depth of the tree; the root has depth 0. "log": p times floor(log n), for n training
        rows of p features. None: no limit.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features are categorical. "from_dtype": columns of a data frame with a category,
        string or object dtype, and columns of an object array that contain a string. Otherwise a
        boolean mask, indices or names. None: no feature. `Cart` splits categories into two sets;
        the other growers treat them as numbers in the order of their names. Categories that the
        training rows of a node do not have go to the child with the greater weight; the other
        growers treat them as missing values.
    monotonic_cst : array-like of int, dict or None, default=None
        Monotonic constraint of each feature, or a dictionary by feature name: 1 if the probability
        of the second class must not fall as the feature rises, -1 if it must not rise, 0 for no
        constraint. Only with `Cart` and two classes.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; a list with one dict for each of several
        targets.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of random splits and features, and of a scikit-learn tree as grower.
    n_jobs : int or None, default=None
        Number of threads; None means 1, -1 all. The model does not depend on it.
    verbose : int, default=0
        If above 0, show progress on standard error: a bar in terminals and notebooks, else lines of
        text. Bars need the package rich; without it there are lines everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (K,), or list of ndarray
        The classes, sorted; a list with one array for each of several targets.
    n_classes_ : int, or list of int
        Number of classes, of each target.
    n_outputs_ : int
        Number of targets: columns of y, 1 if y is one-dimensional.
    sample_hashes_ : ndarray of uint64, or None
        Hashes of the training rows, by which `certify` refuses to certify the model with these
        rows; None if the model was loaded from a file that was saved without them.
    best_params_ : dict
        `lambda_error` and `lambda_penalty`, as set or chosen; a list if the posteriors of a mixture
        differ in the value.
    posteriors_ : list of str
        Loss and prior of each posterior, such as "error, leaves" or "log_loss, branching".
    mixture_weights_ : list of float
        Weight of each posterior in the vote; they sum to 1.
    tree_ : Tree
        The grown tree.
    stats_ : NodeStats, SparseNodeStats or SeveralStats
        Class counts and labels of its nodes; `SparseNodeStats` for more than 100 classes,
        `SeveralStats` for several targets.
    weights_ : NodeWeights
        Posterior weights of its prunings.
    vote_ : Vote or DeferredVote
        Class probabilities by the vote, in the leaves of `tree_`; at its splits, the part of them
        by prunings that stop there or above. `DeferredVote`, which is computed when read, for more
        than 100 classes of a single target.
    seen_rows_ : SeenRows or None
        What `partial_fit`, `forget` and `merge` need of each training row: hashes of its features,
        leaf, target, weight, and which features are missing. None if the model does not have these
        methods, was saved without them, or comes from `compact`.
    n_features_in_ : int
        Number of features, p.
    categories_ : Categories or None
        Names of the categories of each categorical feature; None if all features are numeric.
    dates_ : dict of int to DateColumn, or None
        Kind, time zone and last date of the features that hold dates, by index; None if none do.
    is_categorical_ : ndarray of bool, shape (p,), or None
        Which features are categorical; None if all features are numeric.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features; only if X had column names that are all strings.

    See Also
    --------
    CertifiedTreeClassifier : The same model with a certificate on its error on new rows.

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


@copy_descriptions_from(PACBayesTreeClassifier)
class PACBayesTreeRegressor(UpdatableTree, CompactableTree, PACBayesTree, TreeVoteRegressor):
    """All prunings of one tree predict together; sums of squares and size determine their weights.

    A tree is grown until its nodes hold a single value or are small. A pruning is this tree after
    some nodes have become leaves. If the leaves A of a pruning hold n(A) training rows with sums of
    squares sse(A), the pruning has weight ``exp(-sum over leaves of (lambda_error sse(A) / s +
    lambda_penalty sqrt(n(A))))`` times its prior, where s is the noise variance, estimated as the
    variance of the target within small nodes. The prediction is the weighted average of the leaf
    means of all prunings, along one path of the tree.

    There may be several targets, one in each column of y. Then splits reduce the mean over targets
    of the variance, each divided by its variance over all rows. The loss of a leaf is the mean over
    the q targets, each with its noise variance: ``(sse_1(A) / s_1 + ... + sse_q(A) / s_q) / q``.
    Cross-validation minimises the sum of squared errors divided by the variances. The order of the
    columns of y does not change the model; their units can only change which rows are in which
    fold.

    Parameters
    ----------
    grower : {"cart", "kd", "dyadic"}, grower or scikit-learn decision tree, default="cart"
        How the tree is grown. "cart": splits of the largest decrease of the sum of squares; "kd":
        splits at medians; "dyadic": splits at midpoints. Or an object, such as
        ``Cart(max_leaf_nodes=64)``, `KD`, `Dyadic` or `Grid`; or an estimator such as
        ``DecisionTreeRegressor()``, which is cloned and fitted.
    {prior}
    lambda_error : float or None, default=None
        Inverse temperature: factor of a sum of squares in noise variances (nats). None: chosen by
        cross-validation.
    {lambda_penalty}
    search : {"mixture", "joint", "error-first"}, default="mixture"
        How the posterior is chosen. "mixture": posteriors with eight values of `lambda_error`
        predict together, with the mixture weights of the smallest cross-validated squared error. If
        `prior` and `lambda_error` are None, the mixture also has, for each posterior, the single
        pruning with its largest weight. "joint": one posterior, both inverse temperatures chosen
        together. "error-first": one posterior, `lambda_error` chosen first, then `lambda_penalty`.
        Values that are set stay fixed.
    smoothing : float, default=2
        Number of rows with the mean of its parent that are added to each node; see `Voting`.
    cv : int, splitter, iterable or None, default=5
        Folds of the cross-validation, which minimises the squared error. An integer is the number
        of random folds, which do not depend on the row order. Otherwise as in scikit-learn; None
        means 5 folds.
    {max_depth} {categorical_features}
    monotonic_cst : array-like of int, dict or None, default=None
        Monotonic constraint of each feature, or a dictionary by feature name: 1 if predictions must
        not fall as the feature rises, -1 if they must not rise, 0 for no constraint. Only with
        `Cart`.
    {random_state} {n_jobs} {verbose}

    Attributes
    ----------
    {best_params_}
    posteriors_ : list of str
        Loss and prior of each posterior: "squared, leaves", "squared, branching"; or "likeliest
        pruning".
    mixture_weights_ : list of float
        Weight of each posterior in the prediction; they sum to 1.
    {tree_} {n_outputs_}
    stats_ : TargetStats or SeveralStats
        Moments of the target in its nodes; ``stats_.unit`` is the noise variance. `SeveralStats`
        for several targets.
    {weights_}
    vote_ : Vote
        The prediction in the leaves of `tree_`; at its splits, the part of it by prunings that stop
        there or above.
    {seen_rows_} {n_features_in_} {categories_} {dates_} {is_categorical_} {feature_names_in_}

    References
    ----------
    Nguyen and Kpotufe, "PAC-Bayes Tree: weighted subtrees with guarantees", NeurIPS 2018, for the
    posterior. The squared loss in place of errors is new here.

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
