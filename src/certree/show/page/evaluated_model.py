"""A fitted model with rows, their targets and its predictions, computed once for all sections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from reprlib import repr as shortened
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from certree.certificates import Guarantees
from certree.certificates.hold_out import expect_known_labels
from certree.certificates.row_order import RowOrderWarning
from certree.certificates.subsets.families import encode_groups
from certree.certificates.subsets.row_subsets import CodedLabels
from certree.ensembles import AdaBoostTreeClassifier, BoostedTreesClassifier
from certree.ensembles.boosting import BoostedTrees
from certree.ensembles.forest import Forest
from certree.estimators.naive_bayes import NaiveBayesClassifier
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.files.pipelines import split_pipeline, transform_rows
from certree.interface.arrays import Float64
from certree.interface.fitted_state import check_one_target, expect_rows
from certree.interface.formatting import format_four_digits, format_percent
from certree.interface.positive_class import check_threshold, find_positive_class
from certree.rows.columns import take_rows
from certree.rows.hashes import find_known_rows
from certree.rows.training import expect_value_per_row
from certree.show.ranking import check_costs

# Quantiles of the loss at which example rows are selected, from the best predicted row to the worst.
_EXAMPLE_QUANTILES = (0.0, 0.5, 0.75, 0.9, 0.98, 1.0)
# Smallest probability in a log loss.
_MIN_PROBABILITY = float(np.finfo(np.float64).eps)
_MODEL_TYPES = (
    TreeVoteEstimator,
    BoostedTrees,
    Forest,
    AdaBoostTreeClassifier,
    NaiveBayesClassifier,
)


@contextmanager
def ignore_unnamed_rows(model: Any) -> Iterator[None]:
    """Suppress scikit-learn's warning about rows without feature names, in a `with` statement.

    It is suppressed only if the model is a pipeline: its last step was fitted with names, but gets
    an array without names from the step before. model: the fitted estimator or pipeline.
    """
    with catch_warnings():
        if isinstance(model, Pipeline):
            filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedModel:
    """A fitted model, the rows on which the report evaluates it, and its predictions for them.

    `from_rows` makes it, and predicts once for all sections of the report.

    Parameters
    ----------
    model : fitted estimator of certree
        The model.
    X : array-like of shape (n, p)
        Rows, as the caller passed them.
    encoded : ndarray of shape (n, number of encoded columns)
        The same rows as the trees of the model read them: numbers, and the model's codes of
        categories; then the calendar parts of dates.
    y : ndarray of shape (n,)
        True classes or numbers.
    predicted : ndarray of shape (n,)
        Predicted classes or numbers.
    probabilities : ndarray of float64, shape (n, K), or None
        Predicted probabilities of the K classes of the model; None for a regressor.
    groups : CodedLabels or None
        Group of each row, such as a branch: the names of the groups, and the index of each row's
        name. None: no groups.
    user_costs : pair of float, or None
        Cost of a row of the positive class that is predicted to be of the other class, and of a
        false alarm, the reverse; None if the user gave no costs.
    pos_label : object or None
        The positive one of two classes; None: the second.
    threshold : float or None
        Probability from which `predicted` is the positive class; None: it is the most probable class.
    """

    model: Any
    X: Any
    encoded: NDArray[Any]
    y: NDArray[Any]
    predicted: NDArray[Any]
    probabilities: Float64 | None
    groups: CodedLabels | None = None
    user_costs: tuple[float, float] | None = None
    pos_label: Any = None
    threshold: float | None = None

    @classmethod
    def from_rows(
        cls,
        model: Any,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        costs: tuple[float, float] | None = None,
        pos_label: Any = None,
        threshold: float | None = None,
    ) -> EvaluatedModel:
        """Check rows and targets, predict the rows, and return all with the model.

        Parameters
        ----------
        model : fitted estimator of certree, or Pipeline that ends in one
            A tree, forest, boosted trees, AdaBoost or naive Bayes with one target. The result is about
            the last step of a pipeline, and about the rows that this step reads.
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            True classes or numbers.
        groups : array-like of shape (n,), or None
            Group of each row, with at least two different values; None: the report does not compare
            groups.
        costs : pair of float, or None
            Cost of a missed row of the positive class, and of a false alarm, a row of the other
            class that is predicted to be of the positive class; None: both cost 1.
        pos_label : object or None
            The positive one of two classes; None: the second.
        threshold : float or None
            Predict the positive class if its probability is at least this; None: predict the most
            probable class.

        Returns
        -------
        EvaluatedModel
            The model, the rows and their predictions.

        Raises
        ------
        TypeError
            If the model is not one of these estimators.
        ValueError
            If X, y and groups differ in length or are empty, there is one group only, the model has
            several targets, costs are negative or both 0, or `pos_label` is not one of two classes;
            or `threshold` is out of range, or the model has not two classes.
        NotFittedError
            If the model is not fitted.
        """
        if not isinstance(split_pipeline(model)[0], _MODEL_TYPES):
            raise TypeError(
                "model must be a tree, a forest, boosted trees, AdaBoost or naive Bayes of certree, or "
                f"a Pipeline that ends in one, got {shortened(model)}"
            )
        check_is_fitted(model)
        model, X = transform_rows(model, X)
        check_one_target("a report", model)
        target: NDArray[Any] = column_or_1d(y)
        expect_value_per_row("y", target, X)
        expect_rows(len(target), "evaluate a model")
        if is_regressor(model):
            target = target.astype(np.float64)
        row_groups = None if groups is None else encode_groups(groups, len(target))
        if costs is not None:
            check_costs(*costs)
        classes = getattr(model, "classes_", None)
        find_positive_class(classes, pos_label)
        if threshold is not None:
            check_threshold(classes, threshold, pos_label)
        encoded, (predicted, probabilities) = model._encode_new_rows(X), _predict(model, X)
        fields = (model, X, encoded, target, predicted, probabilities, row_groups, costs)
        evaluated = cls(*fields, pos_label)
        return evaluated if threshold is None else evaluated.predict_at(threshold)

    def predict_at(self, threshold: float) -> EvaluatedModel:
        """Return a copy that predicts by a threshold of the probability of the positive class.

        Only for models of two classes. threshold: number in [0, 1], or infinity, at which no row is
        predicted positive.
        """
        assert self.probabilities is not None  # Call it for classifiers only.
        positive = self.positive_index
        is_positive = self.probabilities[:, positive] >= threshold
        predicted = np.asarray(self.model.classes_)[np.where(is_positive, positive, 1 - positive)]
        return replace(self, predicted=predicted, threshold=threshold)

    def expect_known_classes(self) -> None:
        """Raise ValueError if a row of the report has a true class that the model does not have."""
        if self.probabilities is not None:
            expect_known_labels("y", self.y, np.asarray(self.model.classes_))

    def compute_guarantees(self) -> Guarantees:
        """Return a `Guarantees` object of the classifier, computed from the rows of the report.

        Its methods return upper bounds for new rows, such as on the error in each group. The rows
        are taken as independent draws. Raise a ValueError if rows are in the fit or too few.
        """
        with catch_warnings():
            # The page says so itself.
            filterwarnings("ignore", "time must be passed", RowOrderWarning)
            return Guarantees.by_rows(self.model, self.X, self.y, groups=np.arange(self.n))

    @property
    def costs(self) -> tuple[float, float]:
        """Costs of a missed row of the positive class and of a false alarm, a tuple of two floats.

        They are `user_costs`, or (1, 1) if that is None.
        """
        return (1.0, 1.0) if self.user_costs is None else self.user_costs

    @property
    def positive_class(self) -> Any:
        """The positive one of the two classes. Only for models of two classes."""
        return self.classes[self.positive_index]

    @property
    def positive_index(self) -> int:
        """Index of the positive one of the two classes. Only for models of two classes."""
        return find_positive_class(self.model.classes_, self.pos_label)

    @property
    def is_positive(self) -> NDArray[np.bool_]:
        """Which rows are of the positive class, (n,). Only for models of two classes."""
        return np.asarray(self.y == np.asarray(self.model.classes_)[self.positive_index])

    @property
    def prediction_rule(self) -> str:
        """A sentence that says which class is predicted for a row, by its probabilities.

        It names the threshold, if there is one. Only for classifiers.
        """
        if self.threshold is None:
            half = ", at threshold 0.5" if len(self.classes) == 2 else ""
            return f"The predicted class is the most probable one{half}."
        positive = self.positive_class
        return (
            f"The predicted class is {positive} if its probability is at least {self.threshold:.4g}, "
            f"else {self.classes[1 - self.positive_index]}."
        )

    @property
    def n(self) -> int:
        """Number of rows that the model is evaluated on."""
        return len(self.y)

    @property
    def classes(self) -> list[Any]:
        """The K classes of the model, in the order of the probabilities; empty for a regressor."""
        return [] if self.probabilities is None else list(self.model.classes_.tolist())

    @property
    def n_known_rows(self) -> int | None:
        """Number of rows that equal a row of the fit, or equal one in float32.

        Rows are compared by the hashes of their features, without the target. None if the model
        does not keep hashes of the rows of its fit.
        """
        hashes = getattr(self.model, "sample_hashes_", None)
        if hashes is None:
            return None
        return int(np.sum(np.logical_or(*find_known_rows(self.encoded, hashes))))

    @property
    def has_additive_trees(self) -> bool:
        """Whether predictions depend only on sums of trees' leaf values, as Shapley values need.

        True for models with a method `explain`, except naive Bayes, which has no trees.
        """
        return hasattr(self.model, "explain") and not isinstance(self.model, NaiveBayesClassifier)

    def take_rows(self, indices: Sequence[int] | NDArray[np.intp]) -> Any:
        """Return the rows of `X` with these indices, in this order, as a table of the type of `X`.

        indices: indices of rows from 0, (r,).
        """
        return take_rows(self.X, np.asarray(indices))

    def sample_indices(self, n_max: int) -> NDArray[np.intp]:
        """Return the indices of at most `n_max` random rows, ascending; the same at each call.

        All rows are taken if there are no more than `n_max`.
        """
        if self.n <= n_max:
            return np.arange(self.n)
        return np.sort(np.random.default_rng(0).choice(self.n, n_max, replace=False))

    def select_examples(self, n_max: int) -> NDArray[np.intp]:
        """Return the indices of at most `n_max` rows that the report shows as examples.

        First come the rows at six quantiles of the loss (0, 0.5, 0.75, 0.9, 0.98 and 1), from the
        best predicted row to the worst, then random rows, the same at each call. If `pos_label` is
        set, the first six are quantiles of the rows of the positive class, if there are any. With
        `n_max` below six only the first quantiles are used. The loss is the log loss, or the
        absolute error of a regressor.
        """
        is_regression = self.probabilities is None
        loss = np.abs(self.predicted - self.y) if is_regression else self.row_losses
        rows = np.flatnonzero(self._is_example_class)
        order = rows[np.argsort(loss[rows], kind="stable")]
        at_quantiles = order[np.round(np.array(_EXAMPLE_QUANTILES) * (len(rows) - 1)).astype(int)]
        indices = dict.fromkeys([*at_quantiles, *self.sample_indices(n_max)])
        return np.array(list(indices)[:n_max])

    @property
    def _is_example_class(self) -> NDArray[np.bool_]:
        """Which rows may be examples at quantiles of the loss, (n,).

        They are the rows of the positive class if `pos_label` is set and there are any, else all.
        """
        everything = np.ones(self.n, dtype=bool)
        if self.pos_label is None:
            return everything
        return self.is_positive if self.is_positive.any() else everything

    def describe_examples(self) -> str:
        """Return a sentence on the class of the rows that `select_examples` selects first.

        It begins with a space. "" if they are rows of all classes.
        """
        if self._is_example_class.all():
            return ""
        positive = self.positive_class
        return f" Rows of class {positive} come first, from the best predicted to the worst."

    @property
    def row_losses(self) -> Float64:
        """Log loss of each row in nats, (n,): minus the logarithm of its class's probability.

        Only for classifiers. Probabilities below 2.2e-16, and those of classes that the model does
        not know, count as 2.2e-16.
        """
        assert self.probabilities is not None  # Call it for classifiers only.
        position = {label: k for k, label in enumerate(self.classes)}
        column = np.array([position.get(label, -1) for label in self.y.tolist()])
        probability = np.where(column < 0, 0.0, self.probabilities[np.arange(self.n), column])
        losses: Float64 = -np.log(np.maximum(probability, _MIN_PROBABILITY))
        return losses

    def describe_row(self, i: int) -> str:
        """Return a title for row i, such as "row 3: yes, predicted no (70 %)".

        It has the index, the target, the prediction and, for a classifier, the largest probability.
        If `pos_label` is set it has the probability of this class instead, as in "row 3: yes,
        predicted no (yes 30 %)". i: index of the row.
        """
        if self.probabilities is None:
            y, predicted = (
                format_four_digits(float(values[i])) for values in (self.y, self.predicted)
            )
            return f"row {i}: {y}, predicted {predicted}"
        probability = format_percent(self.probabilities[i].max())
        if self.pos_label is not None:
            probability = format_percent(self.probabilities[i, self.positive_index])
            probability = f"{self.positive_class} {probability}"
        return f"row {i}: {self.y[i]}, predicted {self.predicted[i]} ({probability})"


def _predict(model: Any, X: ArrayLike) -> tuple[NDArray[Any], Float64 | None]:
    """Return the predictions of a fitted model for rows X (n, p), and the class probabilities.

    Predictions are classes or numbers, (n,). Probabilities are (n, K) for K classes, in the order
    of `model.classes_`, and None for a regressor.
    """
    if isinstance(model, BoostedTreesClassifier):
        # Predictions and probabilities come from the same scores, computed once.
        scores = model._compute_scores(X)
        return model._predict_from_scores(scores), model._compute_probabilities(scores)
    return np.asarray(model.predict(X)), model.predict_proba(X) if is_classifier(model) else None
