"""AdaBoost with its bound on the training error, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from reprlib import repr as shortened
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
from certree.ensembles.forest import TreeForestClassifier
from certree.ensembles.staged import StagedClassifier, make_constant_scores
from certree.ensembles.weak_learners import (
    WeakClassifierFitter,
    WeakTree,
    WeakTreeFitter,
    predict_class_codes,
)
from certree.explain.additive_trees import AdditiveTrees
from certree.explain.tree_model import declare_trees, has_numeric_leaves
from certree.export.formula import Formula
from certree.interface.arrays import Float64, check_column, to_row_order
from certree.interface.docstrings import copy_descriptions_from
from certree.interface.fitted_state import available_if, meta_fit_method, snapshot_method
from certree.interface.signatures import COUNT, ROUNDS
from certree.interface.stored_fields import StoredField
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.interface.threads import N_JOBS, get_n_threads
from certree.rows.training import (
    Training,
)
from certree.tree import Trees

# Fractions are sums, which may exceed 1 by rounding.
_ROUNDING = 1e-9


def _read_learners(stored: StoredState, name: str, model: Any) -> list[WeakTree]:
    """Restore the T weak learners, small trees, from a model file.

    stored: content of the file; name: name of the array of their feature importances in it, (T, p);
    model: the model that is restored, which already has the T trees.
    """
    importances = stored.get_numbers(name, (len(model.trees_), model._n_encoded), 0)
    return [
        WeakTree(tree, select_best_classes(tree.value.T), of_features)
        for tree, of_features in zip(model.trees_, importances, strict=True)
    ]


def _get_learner_importances(learners: list[WeakTree], model: Any) -> Float64:
    """Return the feature importances of T weak learners, (T, p), for a model file.

    learners: small trees; model: the model, with p encoded features.
    """
    importances = [learner.importances for learner in learners]
    return np.reshape(importances, (-1, model._n_encoded))


@copy_descriptions_from(TreeForestClassifier)
class AdaBoostTreeClassifier(MetaEstimatorMixin, StagedClassifier):
    """AdaBoost with a bound on its training error after each round.

    For two classes y = -1, 1 the rows have weights D_1 of sum 1. In round t a learner h is fitted
    to the weights D_t. Its error eps is the sum of the weights of the rows that it misses. With
    ``alpha = 1/2 ln((1 - eps) / eps)``::

        D_{t+1}(i) = D_t(i) exp(-alpha y_i h(x_i)) / Z_t,    Z_t = sum_i D_t(i) exp(-alpha y_i
        h(x_i))

    The prediction is the sign of ``f = sum_t alpha_t h_t``. The fraction of D_1 that belongs to
    rows with ``y f(x) <= 0`` is at most the product of all Z_t, and ``Z_t = 2 sqrt(eps (1 - eps))
    <= exp(-2 (1/2 - eps)^2)``. The bound is on the error on the training rows, not on new rows.

    A learner without an error ends the rounds and alone makes the predictions; the bound is 0 from
    there. A learner with eps of 1/2 or more (with K classes, of 1 - 1/K or more) ends the rounds,
    too, and is dropped. If the first learner is dropped, the class of largest weight is always
    predicted, and the bound is 1.
    Otherwise the model is that of scikit-learn's `AdaBoostClassifier` with the same `estimator`,
    such as ``DecisionTreeClassifier(max_depth=1)``; its `estimator_weights_` are twice those here.
    The trees of certree (estimator=None) may split otherwise than those of scikit-learn.

    `predict_proba` gives the second of two classes the logistic function of 2 f, and each of more
    classes the softmax of twice its sum of alphas. There a learner without an error in n rows
    counts with ``alpha = ln(n + 1) / 2``.

    K > 2 classes use SAMME: ``alpha = 1/2 (ln((1 - eps) / eps) + ln(K - 1))``, and the class with
    the largest sum of alphas is predicted. Zhu, Zou, Rosset and Hastie (section 2) show that each
    round is the best forward step for the loss ``exp(-f_y / (K - 1))`` with scores f of sum 0, and
    that the scores that minimise its expectation belong to the Bayes classifier. This does not
    bound the training error, and eps below 1 - 1/K does not bring the error to 0. The product of
    all ``Z_t = (1 - eps) exp(-alpha) + eps exp(alpha)`` bounds it for every K, as a row is missed
    only if at least half of the sum of alphas is for other classes. It falls only in rounds with
    eps below 1/K.

    Parameters
    ----------
    estimator : classifier or None, default=None
        The learner of each round: any classifier of scikit-learn whose `fit` takes `sample_weight`.
        It gets categories as integer codes; if it has a parameter `categorical_features`, this is
        set to the mask of these features. None: a tree of certree, grown by the Gini index from
        histograms of at most 255 bins per feature. Row weights are rounded to multiples of a power
        of two while a tree grows; its labels and eps are computed from the weights themselves.
    n_estimators : int, default=50
        Largest number of rounds.
    learning_rate : float, default=1
        Factor of each alpha, at most 1. Z_t is the sum above for any alpha, so the bound holds as
        well. With two classes a factor below 1 raises the Z_t of a given learner; with more classes
        it may lower it.
    max_depth : int or None, default=None
        Largest depth of the trees if `estimator` is None. None: 1, or no limit if `max_leaf_nodes`
        is set.
    {max_leaf_nodes} {categorical_features}
    random_state : int, RandomState or None, default=None
        Draws the seed of each clone of `estimator`; trees of certree need none.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes, ascending.
    estimators_ : list of T classifiers
        The fitted learners; `WeakTree` if `estimator` is None.
    estimator_weights_ : ndarray of shape (T,)
        Alpha of each learner; infinite for a learner without an error.
    estimator_errors_ : ndarray of shape (T,)
        Error eps of each learner by the row weights of its round.
    normalizers_ : ndarray of shape (T,)
        Z of each round.
    error_bounds_ : ndarray of shape (max(T, 1),)
        Bound on the training error after each round: the product of Z so far, or 1 if that is less.
    training_errors_ : ndarray of shape (max(T, 1),)
        Training error after each round: the weight D_1 of the rows that the learners so far miss.
    start_ : ndarray of shape (1,) or (K,)
        Scores before the first round: 0; if no learner is kept, half the log odds of the second of
        two classes, or half the log frequency of each class.
    trees_ : Trees or None
        The trees of all rounds, whose values are the weighted votes of nodes; None if `estimator`
        is set.
    feature_importances_ : ndarray of shape (p,)
        Mean of the learners' importances, weighted by alpha.
    {sample_hashes_} {n_features_in_} {categories_} {dates_} {is_categorical_} {feature_names_in_}

    References
    ----------
    Freund and Schapire, "A decision-theoretic generalization of on-line learning and an application
    to boosting", 1997, Theorem 6, for two classes; Schapire, Freund, Bartlett and Lee, "Boosting
    the margin", 1998, for margins; Zhu, Zou, Rosset and Hastie, "Multi-class AdaBoost", Statistics
    and Its Interface 2, 2009, for more classes. The treatment of learners without an error, the
    bound for more classes, and the probabilities of a single learner without an error are certree's
    own.

    Examples
    --------
    >>> from certree.ensembles import AdaBoostTreeClassifier
    >>> model = AdaBoostTreeClassifier().fit([[k] for k in range(40)], [0] * 20 + [1] * 20)
    >>> model.predict([[0], [39]])
    array([0, 1])

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

    # There is no such parameter, as rounds soon undo any weights of classes.
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
        """Fit the learners round by round.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows; NaN is a missing value.
        y : array-like of shape (n,)
            Class of each row.
        sample_weight : array-like of shape (n,), or None
            Weight of each row, which is divided by the sum to give D_1; None: equal weights. Rows
            of weight zero are ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        training = self._prepare_training(X, y, sample_weight)
        weight = np.ones(len(training.y)) if training.weight is None else training.weight
        distribution = weight / weight.sum()
        rounds = run_adaboost(
            self._create_fitter(training),
            training.y,
            distribution,
            self.n_classes_,
            self.n_estimators,
            float(self.learning_rate),
        )
        self.estimators_, self.estimator_weights_ = rounds.learners, rounds.weights
        self.estimator_errors_, self.normalizers_ = rounds.errors, rounds.normalizers
        self.error_bounds_ = np.minimum(np.cumprod(rounds.normalizers), 1.0)
        self.training_errors_ = rounds.training_errors
        self.start_ = np.zeros(self._n_outputs)
        if not rounds.learners:
            self._set_constant_prediction(training.y, distribution)
        # The rule of succession gives a learner without an error in n rows this score.
        certain = np.log1p(len(training.y)) / 2
        self._set_votes(np.where(np.isinf(rounds.weights), certain, rounds.weights))
        return self

    def _set_votes(self, votes: Float64) -> None:
        """Set the votes of the learners in `estimators_`, and combine their trees to `trees_`.

        votes: number that each of the T learners adds to the score of the class that it predicts,
        (T,): its alpha, or 1/2 ln(n + 1) for n training rows if it makes no error and alpha is
        infinite. `trees_` becomes None if the learners are not trees of certree. Also set `_votes`
        to votes.
        """
        self._votes = votes
        self.trees_ = self._combine_trees() if self.estimator is None else None

    _stored_fields: ClassVar[dict[str, StoredField]] = {
        "trees": declare_trees("trees_"),
        "estimator_weights": StoredField("estimator_weights_"),
        "estimator_errors": StoredField.numbers("estimator_errors_", (None,), 0, 1 + _ROUNDING),
        "normalizers": StoredField.numbers("normalizers_", (None,), 0),
        "error_bounds": StoredField.numbers("error_bounds_", (None,), 0, 1 + _ROUNDING),
        "training_errors": StoredField.numbers("training_errors_", (None,), 0, 1 + _ROUNDING),
        "importances": StoredField("estimators_", _read_learners, _get_learner_importances),
        "start": StoredField.numbers("start_", ("_n_outputs",)),
    }

    def __stored__(self) -> dict[str, Any]:
        """Return what a model file holds of the fit: arrays and numbers by name in the file.

        Entries of this class are "trees", "estimator_weights", "estimator_errors", "normalizers",
        "error_bounds", "training_errors", "importances" (of each learner) and "start"; those of the
        base class are about features, classes and hashes of the rows. Raise TypeError if the
        learners are not trees of certree.
        """
        if self.trees_ is None:
            raise TypeError(
                f"a model file cannot hold {type(self).__name__} with estimator={self.estimator!r}, "
                "as reading a fitted estimator back would execute code: save it with joblib or skops, "
                "or fit with estimator=None"
            )
        return super().__stored__()

    def _finish_restore(self, stored: StoredState) -> None:
        """Check a restored model: arrays of learners and rounds, and votes in nodes, must fit together.

        Raise ValueError otherwise. stored: content of the model file.
        """
        super()._finish_restore(stored)
        if self.estimator is not None:
            raise DamagedModelError(
                f"the model file's parameter 'estimator' must be null, got {self.estimator!r}"
            )
        trees: Any = self.trees_
        n = len(self.estimators_)
        # There is at least one round, even if no learner is kept.
        lengths = dict.fromkeys(("estimator_weights", "estimator_errors", "normalizers"), n)
        lengths |= dict.fromkeys(("error_bounds", "training_errors"), max(n, 1))
        for name, length in lengths.items():
            setattr(self, f"{name}_", check_column(name, stored[name], "float64", (length,)))
        weights = self.estimator_weights_
        # Only the last learner can be without an error, and have an infinite weight.
        if not ((weights > 0).all() and np.isfinite(weights[:-1]).all()):
            raise DamagedModelError(
                "the model file's estimator_weights must be positive, and only the last one may be "
                f"infinite, got {shortened(weights.tolist())}"
            )
        self._set_votes(np.abs(trees.value[trees.root]).max(axis=1, initial=0.0))
        if self.trees_ is None or not np.array_equal(self.trees_.value, trees.value):
            raise DamagedModelError(
                "the model file's trees must have the weight of the tree as the score of one class in "
                "every node"
            )

    def _create_fitter(self, training: Training) -> FitLearner:
        """Return a function that fits one learner to the weighted training rows.

        The learner is a tree of certree, or a clone of `estimator`. training: the n encoded rows
        with their class codes. The function takes their weights, (n,), and returns the fitted
        learner and the class code, (n,), that it predicts for each row.
        """
        mask = self._category_mask()
        if self.estimator is not None:
            labels = self.classes_[training.y]
            seeds = check_random_state(self.random_state)
            return WeakClassifierFitter(
                self.estimator, training.X, labels, self.classes_, seeds, mask
            )
        max_leaves = self.max_leaf_nodes
        max_depth = 1 if self.max_depth is None and max_leaves is None else self.max_depth
        rows = training.X, training.y, self.n_classes_
        order = training.draw_order
        return WeakTreeFitter.from_rows(
            *rows, max_depth, max_leaves, mask, self.n_jobs, feature_order=order, dates=self.dates_
        )

    def _set_constant_prediction(self, y: NDArray[Any], weight: Float64) -> None:
        """Make the model predict the most frequent class, as no learner is better than chance.

        Set `start_` to half the log odds of the second of two classes, or half the log frequency of
        each class, `error_bounds_` to [1], and `training_errors_` to the weight of all other
        classes. y: class codes, (n,); weight: row weights of sum 1, (n,).
        """
        frequencies = np.bincount(y, weight, self.n_classes_)
        scores = np.log(frequencies) / 2
        self.start_ = scores[1:] - scores[:1] if self._n_outputs == 1 else scores
        error = 1 - frequencies[select_best_classes(self.start_[:, None])[0]]
        self.error_bounds_, self.training_errors_ = np.ones(1), np.array([error])

    def _combine_trees(self, first: int = 0) -> Trees:
        """Combine the trees of learners first, ..., T - 1 to one `Trees` object.

        The learners must be trees of certree (`WeakTree`). The value of a node is the vote that its
        tree adds to the scores of a row in this node, (n_outputs,): one score for two classes, else
        one for each class.
        """
        trees = [
            learner.tree.with_value(compute_vote_scores(learner.labels, vote, self.n_classes_).T)
            for learner, vote in zip(self.estimators_[first:], self._votes[first:], strict=True)
        ]
        return Trees.joined(trees, self._n_encoded, self._n_outputs)

    # -- prediction --------------------------------------------------------------------------------

    @property
    def _first_voter(self) -> int:
        """Index of the first learner that votes in a prediction; all later ones vote, too.

        It is 0, or that of the last learner if this one made no error, as it then votes alone.
        """
        weights = self.estimator_weights_
        return len(weights) - 1 if np.isinf(weights[-1:]).any() else 0

    def _add_votes(self, scores: Float64, rows: NDArray[Any], first: int, last: int) -> Float64:
        """Return scores plus the votes of learners first, ..., last - 1, (n_outputs, n).

        scores: scores so far, (n_outputs, n), not changed; n_outputs is 1 for two classes, else the
        number of classes; rows: encoded rows, (n, p), which are numbers and category codes.
        """
        if self.trees_ is not None:
            return self.trees_.add(scores, rows, get_n_threads(self.n_jobs), first, last)
        for learner, vote in zip(
            self.estimators_[first:last], self._votes[first:last], strict=True
        ):
            codes = predict_class_codes(learner, rows, self.classes_)
            scores = scores + compute_vote_scores(codes, vote, self.n_classes_)
        return scores

    def _compute_scores(self, X: Any) -> Float64:
        rows = self._encode_new_rows(X)
        start = make_constant_scores(self.start_, len(rows))
        return self._add_votes(start, rows, self._first_voter, len(self.estimators_))

    def _iterate_scores(self, rows: NDArray[Any]) -> Iterator[Float64]:
        start = make_constant_scores(self.start_, len(rows))
        if not self.estimators_:
            yield start
        for learners in (range(self._first_voter), range(self._first_voter, len(self.estimators_))):
            if self.trees_ is not None:
                yield from self.trees_.iterate_stages(
                    start, rows, get_n_threads(self.n_jobs), learners
                )
                continue
            scores = start
            for number in learners:
                scores = self._add_votes(scores, rows, number, number + 1)
                yield scores

    def _has_numeric_leaves(self) -> bool:
        return self.estimator is None

    @available_if(has_numeric_leaves)
    @snapshot_method
    def _get_additive_trees(self) -> AdditiveTrees:
        """Return the model as a constant plus a sum of trees, from which explanations are computed.

        The result holds `start_` and the trees, whose leaf values are votes that are added to it.
        The trees are those of all learners, or of the last one alone if it makes no error.
        """
        check_is_fitted(self)
        return AdditiveTrees(
            self._combine_trees(self._first_voter),
            self.start_,
            None,
            self._build_explanation_fields,
        )

    def _compute_probabilities(self, scores: Float64) -> Float64:
        if self.n_classes_ == 1:
            return np.ones((scores.shape[1], 1))
        both = np.concatenate([-scores, scores]) if len(scores) == 1 else 2 * scores
        probabilities: Float64 = softmax(to_row_order(both), axis=1)
        return probabilities

    @snapshot_method
    def margins(self, X: ArrayLike, y: ArrayLike) -> Float64:
        """Compute the margin of each row: by how much the vote is for its class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Class of each row.

        Returns
        -------
        ndarray of shape (n,)
            Margins in [-1, 1]. For two classes ``y f(x) / sum(alpha)`` with y = -1, 1; for more,
            the sum of the alphas of learners that predict the row's class, minus the largest such
            sum of any other class, divided by the sum of all alphas. If a margin is above 0,
            `predict` is right. All are 0 if no learner is kept.

        Raises
        ------
        ValueError
            If y has a class that was not in the fit.
        """
        scores = self._compute_scores(X)
        check_consistent_length(scores.T, y)
        code = self._find_class_codes("y", y)
        if not self.estimators_:
            return np.zeros(len(code))
        margin = scores[0] * np.where(code == 1, 1, -1)
        if len(scores) > 1:
            row = np.arange(len(code))
            margin, others = scores[code, row], scores.copy()
            others[code, row] = -np.inf
            margin = margin - others.max(axis=0)
        return np.clip(margin / self._votes[self._first_voter :].sum(), -1.0, 1.0)

    def _build_formula(self) -> Formula:
        check_is_fitted(self)
        if self.trees_ is None:
            raise ValueError(
                "estimator must be None for exports, which need trees of certree, got "
                f"{self.estimator!r}: fit with estimator=None"
            )
        # Scores are half the log odds, or half the log probabilities.
        trees = self._combine_trees(self._first_voter)
        trees = trees.with_value(2 * trees.value)
        return self._make_formula(trees, "boosted", self._link(), start=2 * self.start_)

    # -- inspection --------------------------------------------------------------------------------

    @property
    @snapshot_method
    def feature_importances_(self) -> Float64:
        """Mean of the learners' feature importances, weighted by alpha, (p,).

        Zeros if no learner is kept.
        """
        learners, votes = self.estimators_[self._first_voter :], self._votes[self._first_voter :]
        importances = [
            learner.importances if isinstance(learner, WeakTree) else learner.feature_importances_
            for learner in learners
        ]
        if not importances:
            return np.zeros(self.n_features_in_)
        return self._fold_parts(np.average(importances, axis=0, weights=votes))

    def _has_code_of_unknown(self) -> bool:
        return self.estimator is None  # learners of other libraries get missing values

    def _takes_missing_values(self) -> bool:
        # An object without tags is no estimator; `fit` refuses it.
        if hasattr(self.estimator, "__sklearn_tags__"):
            return bool(get_tags(self.estimator).input_tags.allow_nan)
        return self.estimator is None
