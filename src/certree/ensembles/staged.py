"""Models that add up scores tree by tree: what they predict, at the end and after each round."""

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


def constant_scores(start: Float64, n: int, offset: Float64 | None = None) -> Float64:
    """The same scores (n_outputs,) for all rows, beside what each starts from, (n_outputs, n)."""
    scores = np.repeat(start[:, None], n, axis=1)
    return scores if offset is None else scores + offset


def columns_of(scores: Float64) -> Float64:
    """Scores (n_outputs, n) as those who ask have them, (n,) or (n, K)."""
    return scores[0] if len(scores) == 1 else to_row_order(scores)


def likeliest(classes: NDArray[Any], scores: Float64) -> NDArray[Any]:
    """The class of each row by scores (n_outputs, n), ties to the first."""
    if len(classes) == 1:
        return np.repeat(classes, scores.shape[1])
    return classes.take(select_best_classes(scores))


class StagedTrees(TreeModel):
    """A model that says the scores of rows, (n_outputs, n), and what they predict."""

    @abstractmethod
    def _scores(self, X: Any) -> Float64:
        """What all rounds say, (n_outputs, n)."""

    @abstractmethod
    def _staged(self, rows: NDArray[Any]) -> Iterator[Float64]:
        """The scores after each round."""

    @abstractmethod
    def _answers(self, scores: Float64) -> NDArray[Any]:
        """What scores predict."""

    @snapshot_method
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row, ties to the first in `classes_`, or its number.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Classes, or numbers in units of the target.
        """
        return self._answers(self._scores(X))

    @snapshot_method
    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Predict after each round.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Yields
        ------
        ndarray of shape (n,)
            What `predict` says of the rounds so far; of AdaBoost once, if no learner is kept.
        """
        return map(self._answers, self._staged(self._encode_new_rows(X)))


class StagedClassifier(ClassifierMixin, StagedTrees):
    """A model whose scores are one for two classes, above 0 for the second, or one for each class."""

    @property
    def _n_outputs(self) -> int:
        return self.n_classes_ if self.n_classes_ > 2 else 1

    def _link(self) -> Link:
        return "logistic" if self._n_outputs == 1 else "softmax"

    def _answers(self, scores: Float64) -> NDArray[Any]:
        return likeliest(self.classes_, scores)

    @abstractmethod
    def _shares(self, scores: Float64) -> Any:
        """Probabilities of the classes, (n, K), or a list of them."""

    @snapshot_method
    def decision_function(self, X: ArrayLike) -> Float64:
        """Give the scores of rows.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            Of boosted trees the log odds of the second of two classes, or scores whose softmax are the
            probabilities. Of AdaBoost f(x) of two classes, or the sum of the alphas of the learners
            that say each class. For a learner that decides alone, ``1/2 ln(n + 1)`` with the number n
            of the rows of the fit has the place of its alpha.
        """
        return columns_of(self._scores(X))

    @snapshot_method
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Predict the probabilities of the classes.

        Those of AdaBoost would make its scores the best ones. The expected loss is smallest where these
        are half of the log probabilities, up to a number that all classes share. Many rounds drive them
        far apart, so that they are too sure: `CalibratedClassifierCV` mends that. A learner that
        decides alone is right with probability ``(w + 1) / (w + K)``, by the rule of succession.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities in the order of `classes_`: softmax of the scores, of AdaBoost of twice these.
        """
        return self._shares(self._scores(X))

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
            What `predict_proba` says of the rounds so far.
        """
        return map(self._shares, self._staged(self._encode_new_rows(X)))
