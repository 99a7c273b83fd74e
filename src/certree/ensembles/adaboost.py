"""AdaBoost as its theorem states it, behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from certree.ensembles.adaboost_rounds import (
    FitLearner,
    compute_vote_scores,
    run_adaboost,
    select_best_classes,
)
from certree.ensembles.staged import StagedClassifier, make_constant_scores
from certree.ensembles.weak_learners import (
    WeakClassifierFitter,
    WeakTree,
    WeakTreeFitter,
    predict_class_codes,
)
from certree.explain.additive_trees import AdditiveTrees
from certree.explain.tree_model import has_numeric_leaves
from certree.export.formula import Formula
from certree.interface.arrays import Float64, check_column, to_row_order
from certree.interface.fitted_state import available_if, meta_fit_method, snapshot_method
from certree.interface.signatures import COUNT, ROUNDS
from certree.interface.stored_state import StoredState
from certree.interface.threads import N_JOBS, get_n_threads
from certree.rows.training import (
    Training,
)
from certree.tree import Trees

# Columns of one number for each round, and those that speak of predictions: one at least.
_OF_ROUNDS = ("estimator_weights", "estimator_errors", "normalizers")
_OF_PREDICTIONS = ("error_bounds", "training_errors")
# Sums of shares, which may be above 1 by so much.
_ROUNDING = 1e-9
# What is added to a score is not 0, however small all weights are.
_SMALLEST = float(np.finfo(np.float64).tiny)


class AdaBoostTreeClassifier(MetaEstimatorMixin, StagedClassifier):
    """AdaBoost with its bound on the training error, round by round.

    Two classes y = -1, 1, rows with weights D_1 of sum 1. In round t a learner h is fitted to the
    weights D_t, and misses a share eps of them. With ``alpha = 1/2 ln((1 - eps) / eps)``::

        D_{t+1}(i) = D_t(i) exp(-alpha y_i h(x_i)) / Z_t,    Z_t = sum_i D_t(i) exp(-alpha y_i h(x_i))

    The sign of ``f = sum_t alpha_t h_t`` is predicted. The share of D_1 whose rows have ``y f(x) <= 0``
    is at most the product of all Z_t, and ``Z_t = 2 sqrt(eps (1 - eps)) <= exp(-2 (1/2 - eps)^2)``.
    That speaks of the rows of the fit, not of new ones.

    A learner without an error decides alone, and ends the rounds: the bound is 0 from there. One with
    eps of 1/2 or more ends them too, and is dropped. If it is the first, no learner is kept, the class
    of largest weight is predicted, and the bound is 1. Elsewhere this is scikit-learn's
    `AdaBoostClassifier`, whose `estimator_weights_` are twice those here.

    K > 2 classes are SAMME: ``alpha = 1/2 (ln((1 - eps) / eps) + ln(K - 1))``, and the class with the
    largest sum of alphas is predicted. What is proven of it (Zhu, Zou, Rosset and Hastie, section 2):
    each round is the best forward step for the loss ``exp(-f_y / (K - 1))`` with scores f of sum 0, and
    the scores that minimise its expectation belong to the Bayes classifier. That is no bound on
    the training error, and eps below 1 - 1/K does not bring it to 0. The product of all ``Z_t = (1 -
    eps) exp(-alpha) + eps exp(alpha)`` does bound it, for every K (a row is missed only if half of the
    alphas are not for its class), but falls only in rounds with eps below 1/K.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Fitted in each round: any classifier of scikit-learn whose `fit` takes weights. Categories come
        to it as codes; if it has a parameter `categorical_features`, it is told which. None: a tree of
        certree, grown by Gini index from sums over at most 255 bins a feature. The weights that grow
        it are rounded to multiples of a power of two; its classes, and eps, are those of the weights
        themselves.
    n_estimators : int, default=50
        So many rounds at most.
    learning_rate : float, default=1
        Factor of each alpha, at most 1. Z_t is the sum above whatever the alphas are, so the bound
        holds as well; with a factor below 1 it falls more slowly.
    max_depth : int or None, default=None
        Depth of the trees if `estimator` is None. None: 1, or any if `max_leaf_nodes` is given.
    max_leaf_nodes : int or None, default=None
        So many leaves a tree at most: the cell whose cut lowers the impurity most is divided first.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Which features hold categories; see `PACBayesTreeClassifier`.
    random_state : int, RandomState or None, default=None
        Gives each copy of `estimator` a seed; trees of certree take none.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    estimators_ : list of T classifiers
        The learners, `WeakTree` if `estimator` is None.
    estimator_weights_ : ndarray of shape (T,)
        Alpha of each learner; infinite for one that decides alone.
    estimator_errors_ : ndarray of shape (T,)
        Share eps of the weights of its round that each learner misses.
    normalizers_ : ndarray of shape (T,)
        Z of each round.
    error_bounds_ : ndarray of shape (max(T, 1),)
        Bound on the training error after each round: the product of Z so far, or 1 if that is less.
    training_errors_ : ndarray of shape (max(T, 1),)
        Training error after each round: share of D_1.
    start_ : ndarray of shape (1,) or (K,)
        Scores before the first round: 0, or those of the class of largest weight if no learner is
        kept.
    trees_ : Trees or None
        The trees as one set of columns; None with other learners.
    feature_importances_ : ndarray of shape (p,)
        Mean of the learners' importances, weighed by alpha.
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
    Freund and Schapire, "A decision-theoretic generalization of on-line learning and an application to
    boosting", 1997, Theorem 6, for two classes; Schapire, Freund, Bartlett and Lee, "Boosting the
    margin", 1998, for margins; Zhu, Zou, Rosset and Hastie, "Multi-class AdaBoost", Statistics and Its
    Interface 2, 2009, for more classes. Rounds without an error, the bound for more classes and the
    probabilities of a learner that decides alone are ours.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certree.ensembles import AdaBoostTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostTreeClassifier(n_estimators=20).fit(X, y)
    >>> bool(model.training_errors_[-1] <= model.error_bounds_[-1] <= 0.3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict", "get_params"]), None],
        "n_estimators": [ROUNDS],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "max_depth": [COUNT, None],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    # Rounds make the classes weigh alike again, whatever weights they begin with: no parameter.
    class_weight: ClassVar[None] = None

    estimators_: list[Any]
    estimator_weights_: Float64
    estimator_errors_: Float64
    normalizers_: Float64
    error_bounds_: Float64
    training_errors_: Float64
    start_: Float64
    trees_: Trees | None
    _votes: Float64

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._set_parameters(locals())

    # -- fit ---------------------------------------------------------------------------------------

    @meta_fit_method
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit learners, each to weights that have grown where those before it were wrong.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN stands for a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row: D_1 before its sum is made 1. A row of weight zero is as if absent.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        training = self._prepare_training(X, y, sample_weight)
        weight = np.ones(len(training.y)) if training.weight is None else training.weight
        first = weight / weight.sum()
        made = run_adaboost(
            self._teacher(training),
            training.y,
            first,
            self.n_classes_,
            self.n_estimators,
            float(self.learning_rate),
        )
        self.estimators_, self.estimator_weights_ = made.learners, made.weights
        self.estimator_errors_, self.normalizers_ = made.errors, made.normalizers
        self.error_bounds_ = np.minimum(np.cumprod(made.normalizers), 1.0)
        self.training_errors_ = made.training_errors
        self.start_ = np.zeros(self._n_outputs)
        if not made.learners:
            self._predict_the_prior(training.y, first)
        # A learner without an error in n rows: the rule of succession is this score.
        sure = np.log1p(len(training.y)) / 2
        self._set_votes(np.where(np.isinf(made.weights), sure, made.weights))
        return self

    def _set_votes(self, votes: Float64) -> None:
        """Set what each learner adds to the score of the class that it says, and put trees together."""
        self._votes = votes
        self.trees_ = self._packed() if self.estimator is None else None

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit, if the learners are trees of certree."""
        if self.trees_ is None:
            raise TypeError(
                f"{type(self).__name__} of other learners than certree's trees holds fitted "
                "estimators, and reading them back means executing code, which no model file of "
                "certree asks for: write it with joblib or skops"
            )
        importances = [one.importances for one in self.estimators_]
        return {
            **super().__stored__(),
            "trees": self.trees_,
            "trees.value": self.trees_.value,
            **{name: getattr(self, f"{name}_") for name in (*_OF_ROUNDS, *_OF_PREDICTIONS)},
            "importances": np.reshape(importances, (-1, self.n_features_in_)),
            "start": self.start_,
        }

    def __restore__(self, stored: StoredState) -> None:
        """Check what a file holds, and set the fitted attributes."""
        if self.estimator is not None:
            raise ValueError("estimator must be null: files hold certree's own trees")
        super().__restore__(stored)
        value = stored.get_numbers("trees.value", (None, self._n_outputs))
        trees = self._restore_trees(Trees, stored.get_section("trees"), value=value)
        n = len(trees)
        self.estimator_weights_ = weights = check_column(
            "estimator_weights", stored["estimator_weights"], "float64", (n,)
        )
        # Infinite is the weight of a learner that decides alone, which is the last one.
        if not ((weights > 0).all() and np.isfinite(weights[:-1]).all()):
            raise ValueError("estimator_weights must be positive, and finite but for the last")
        self.estimator_errors_ = stored.get_numbers("estimator_errors", (n,), 0, 1 + _ROUNDING)
        self.normalizers_ = stored.get_numbers("normalizers", (n,), 0)
        for name in _OF_PREDICTIONS:
            setattr(self, f"{name}_", stored.get_numbers(name, (max(n, 1),), 0, 1 + _ROUNDING))
        self.start_ = stored.get_numbers("start", (self._n_outputs,))
        self.estimators_ = [
            WeakTree(tree, select_best_classes(tree.value.T), importances)
            for tree, importances in zip(
                trees, stored.get_numbers("importances", (n, self.n_features_in_), 0), strict=True
            )
        ]
        self._set_votes(np.abs(trees.value[trees.root]).max(axis=1, initial=0.0))
        if self.trees_ is None or not np.array_equal(self.trees_.value, trees.value):
            raise ValueError("every node of a tree must vote by its tree's weight for one class")

    def _teacher(self, training: Training) -> FitLearner:
        mask = self._category_mask()
        if self.estimator is not None:
            labels = self.classes_[training.y]
            seeds = check_random_state(self.random_state)
            return WeakClassifierFitter(
                self.estimator, training.X, labels, self.classes_, seeds, mask
            )
        leaves = self.max_leaf_nodes
        depth = 1 if self.max_depth is None and leaves is None else self.max_depth
        rows = training.X, training.y, self.n_classes_
        order = training.draw_order
        return WeakTreeFitter.from_rows(
            *rows, depth, leaves, mask, self.n_jobs, feature_order=order
        )

    def _predict_the_prior(self, y: NDArray[Any], weight: Float64) -> None:
        """Let the shares of the classes answer, as no learner is better than chance."""
        shares = np.bincount(y, weight, self.n_classes_)
        scores = np.log(shares) / 2
        self.start_ = scores[1:] - scores[:1] if self._n_outputs == 1 else scores
        wrong = 1 - shares[select_best_classes(self.start_[:, None])[0]]
        self.error_bounds_, self.training_errors_ = np.ones(1), np.array([wrong])

    def _packed(self, first: int = 0) -> Trees:
        """The trees from a number on, with what their nodes say."""
        trees = [
            one.tree.with_value(compute_vote_scores(one.says, vote, self.n_classes_).T)
            for one, vote in zip(self.estimators_[first:], self._votes[first:], strict=True)
        ]
        return Trees.joined(trees, self.n_features_in_, self._n_outputs)

    # -- prediction --------------------------------------------------------------------------------

    @property
    def _first(self) -> int:
        """The first learner that has a say."""
        weights = self.estimator_weights_
        return len(weights) - 1 if np.isinf(weights[-1:]).any() else 0

    def _added(self, scores: Float64, rows: NDArray[Any], first: int, last: int) -> Float64:
        """Scores with what learners first .. last - 1 say added in turn."""
        if self.trees_ is not None:
            return self.trees_.add(scores, rows, get_n_threads(self.n_jobs), first, last)
        for one, vote in zip(self.estimators_[first:last], self._votes[first:last], strict=True):
            scores = scores + compute_vote_scores(
                predict_class_codes(one, rows, self.classes_), vote, self.n_classes_
            )
        return scores

    def _compute_scores(self, X: Any) -> Float64:
        rows = self._encode_new_rows(X)
        start = make_constant_scores(self.start_, len(rows))
        return self._added(start, rows, self._first, len(self.estimators_))

    def _iterate_scores(self, rows: NDArray[Any]) -> Iterator[Float64]:
        start = make_constant_scores(self.start_, len(rows))
        if not self.estimators_:
            yield start
        for learners in (range(self._first), range(self._first, len(self.estimators_))):
            if self.trees_ is not None:
                yield from self.trees_.iterate_stages(
                    start, rows, get_n_threads(self.n_jobs), learners
                )
                continue
            scores = start
            for number in learners:
                scores = self._added(scores, rows, number, number + 1)
                yield scores

    def _has_numeric_leaves(self) -> bool:
        return self.estimator is None

    @available_if(has_numeric_leaves)
    @snapshot_method
    def _get_additive_trees(self) -> AdditiveTrees:
        """The trees that have a say, which keep no rows of their nodes."""
        check_is_fitted(self)
        return AdditiveTrees(
            self._packed(self._first), self.start_, None, self._build_explanation_fields
        )

    def _compute_probabilities(self, scores: Float64) -> Float64:
        if self.n_classes_ == 1:
            return np.ones((scores.shape[1], 1))
        both = np.concatenate([-scores, scores]) if len(scores) == 1 else 2 * scores
        shares: Float64 = softmax(to_row_order(both), axis=1)
        return shares

    @snapshot_method
    def margins(self, X: ArrayLike, y: ArrayLike) -> Float64:
        """Say by how far the vote about each row goes for its class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Class of each row.

        Returns
        -------
        ndarray of shape (n,)
            ``y f(x) / sum(alpha)`` in [-1, 1]; of more classes, what learners for the class weigh
            more than those for the strongest other, as a share of all. Above 0 only where `predict`
            is right; 0 everywhere if no learner is kept.

        Raises
        ------
        ValueError
            If y holds a class that the fit had not.
        """
        scores = self._compute_scores(X)
        check_consistent_length(scores.T, y)
        place = self._find_class_codes("y", y)
        if not self.estimators_:
            return np.zeros(len(place))
        own = scores[0] * np.where(place == 1, 1, -1)
        if len(scores) > 1:
            row = np.arange(len(place))
            own, others = scores[place, row], scores.copy()
            others[place, row] = -np.inf
            own = own - others.max(axis=0)
        return np.clip(own / self._votes[self._first :].sum(), -1.0, 1.0)

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        if self.trees_ is None:
            raise ValueError(f"exports take trees of certree, got estimator={self.estimator!r}")
        # Half of the log odds, and half of log probabilities.
        trees = self._packed(self._first)
        trees = trees.with_value(2 * trees.value)
        return self._make_formula(trees, "boosted", self._link(), start=2 * self.start_)

    # -- inspection --------------------------------------------------------------------------------

    @property
    @snapshot_method
    def feature_importances_(self) -> Float64:
        """Mean of the learners' importances, weighed by alpha, (p,)."""
        learners, votes = self.estimators_[self._first :], self._votes[self._first :]
        parts = [
            one.importances if isinstance(one, WeakTree) else one.feature_importances_
            for one in learners
        ]
        if not parts:
            return np.zeros(self.n_features_in_)
        return np.average(parts, axis=0, weights=votes)

    def _takes_missing_values(self) -> bool:
        # What is no estimator is refused by the fit, and has no tags to ask.
        if hasattr(self.estimator, "__sklearn_tags__"):
            return bool(get_tags(self.estimator).input_tags.allow_nan)
        return self.estimator is None
