"""Base classes of models that add up scores tree by tree, with predictions after each round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from certree.ensembles.adaboost_rounds import select_best_classes
from certree.explain.tree_model import TreeModel
from certree.export.formula import Link
from certree.interface.arrays import Float64, to_row_order
from certree.interface.fitted_state import snapshot_method


def make_constant_scores(start: Float64, n: int, offset: Float64 | None = None) -> Float64:
    """Return scores (n_outputs, n) that are `start`, (n_outputs,), in each row, plus the offsets.

    n: number of rows; offset: (n_outputs, n), or None for no offsets.
    """
    scores = np.repeat(start[:, None], n, axis=1)
    return scores if offset is None else scores + offset


def to_prediction_shape(scores: Float64) -> Float64:
    """Convert scores (n_outputs, n) to (n,) for one output, else to (n, n_outputs)."""
    return scores[0] if len(scores) == 1 else to_row_order(scores)


def select_top_class(classes: NDArray[Any], scores: Float64) -> NDArray[Any]:
    """Return the class with the largest score in each row, (n,); ties go to the first class.

    classes: (K,); scores: (1, n) for one or two classes, the log odds of the second; else (K, n).
    """
    if len(classes) == 1:
        return np.repeat(classes, scores.shape[1])
    return classes.take(select_best_classes(scores))


class StagedTrees(TreeModel):
    """Base class of models that predict from sums of the scores of trees, (n_outputs, n).

    A stage is the model after some of its rounds. A subclass defines `_compute_scores`,
    `_iterate_scores` and `_predict_from_scores`. The subclass also has the constructor.
    """

    @abstractmethod
    def _compute_scores(self, X: Any) -> Float64:
        """Return the scores of new rows by all rounds, (n_outputs, n); subclasses implement it.

        A score is a sum over the trees, from which the prediction is computed, such as the log odds
        of a class. X: rows as the user gives them.
        """

    @abstractmethod
    def _iterate_scores(self, rows: NDArray[Any]) -> Iterator[Float64]:
        """Yield the scores of rows, (n_outputs, n), after each round; subclasses implement it.

        A score is a sum over the trees so far, such as the log odds of a class. rows: encoded rows
        (numbers and category codes), (n, p).
        """

    @abstractmethod
    def _predict_from_scores(self, scores: Float64) -> NDArray[Any]:
        """Convert scores, (n_outputs, n), to what `predict` returns.

        These are classes or numbers, (n,), or (n, n_targets) for several targets. Subclasses
        implement the method.
        """

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row, or its number.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,), or (n, n_targets) for several targets
            The class with the largest score, in a tie the first in `classes_`; or the predicted
            number in units of the target.
        """
        return self._predict_from_scores(self._compute_scores(X))

    @snapshot_method
    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Predict the class of each row, or its number, after each round.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Yields
        ------
        ndarray of shape (n,), or (n, n_targets) for several targets
            What `predict` returns for the rounds so far. AdaBoost yields once if it keeps no weak
            learner.
        """
        return map(self._predict_from_scores, self._iterate_scores(self._encode_new_rows(X)))


class StagedClassifier(ClassifierMixin, StagedTrees):
    """Base class of staged classifiers.

    Two classes have one score, positive for the second class; K > 2 classes have K scores. A
    subclass has the constructor, and defines `_compute_probabilities`, `_compute_scores` and
    `_iterate_scores`.
    """

    @property
    def _n_outputs(self) -> int:
        return self.n_classes_ if self.n_classes_ > 2 else 1

    def _link(self) -> Link:
        """Return the link from scores to probabilities: "logistic" for one score, else "softmax"."""
        return "logistic" if self._n_outputs == 1 else "softmax"

    def _predict_from_scores(self, scores: Float64) -> NDArray[Any]:
        return select_top_class(self.classes_, scores)

    @abstractmethod
    def _compute_probabilities(self, scores: Float64) -> Any:
        """Convert scores, (n_outputs, n), to the probabilities of the classes, (n, K).

        With several targets, columns of classes, return a list of such arrays, one for each target.
        Subclasses implement the method.
        """

    @snapshot_method
    def decision_function(self, X: ArrayLike) -> Float64:
        """Compute the scores of rows.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            For boosted trees the log odds of the second of two classes, or K scores whose softmax
            are the probabilities. For AdaBoost each weak learner has a weight alpha. With two
            classes the score is the sum of the alphas of learners that predict the second class
            minus that of the others; else for each class the sum of the alphas of the learners that
            predict it. A weak learner without errors is used alone and has alpha ``1/2 ln(n + 1)``,
            with the number n of training rows.
        """
        return to_prediction_shape(self._compute_scores(X))

    @snapshot_method
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Predict the probabilities of the classes.

        For AdaBoost these are the probabilities for which its scores minimize the expected loss,
        the softmax of twice the scores. They are overconfident after many rounds, which
        `CalibratedClassifierCV` corrects. If a weak learner without errors is used alone, its class
        has probability ``(w + 1) / (w + K)``, with the total weight w of the training rows (rule of
        succession).

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities in the order of `classes_`.
        """
        return self._compute_probabilities(self._compute_scores(X))

    @snapshot_method
    def staged_predict_proba(self, X: ArrayLike) -> Iterator[Any]:
        """Predict the probabilities of the classes after each round.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Yields
        ------
        ndarray of shape (n, K)
            What `predict_proba` returns for the rounds so far.
        """
        return map(self._compute_probabilities, self._iterate_scores(self._encode_new_rows(X)))
