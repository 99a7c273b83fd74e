"""A model with the rows that judge it, asked once for all parts of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from certree.certificates.parts.answers import Kinds
from certree.certificates.parts.families import groups_among
from certree.ensembles import AdaBoostTreeClassifier, BoostedTreesClassifier
from certree.ensembles.boosting import BoostedTrees
from certree.ensembles.forest import Forest
from certree.estimators.naive_bayes import NaiveBayesClassifier
from certree.estimators.tree_vote import TreeVoteEstimator
from certree.interface.arrays import Float64
from certree.interface.fitted_state import check_one_target
from certree.interface.formatting import format_four_digits, format_percent
from certree.rows.columns import rows_at
from certree.rows.hashes import known_rows
from certree.show.ranking import expect_costs

# Rows to look at, by what they cost.
_QUANTILES = (0.0, 0.5, 0.75, 0.9, 0.98, 1.0)
_SMALLEST = float(np.finfo(np.float64).eps)
_KINDS = (TreeVoteEstimator, BoostedTrees, Forest, AdaBoostTreeClassifier, NaiveBayesClassifier)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A model, rows that it is asked about, and its answers.

    Parameters
    ----------
    model : fitted estimator of certree
        The model.
    X : array-like of shape (n, p)
        Rows, as they were given.
    coded : ndarray of shape (n, p)
        The same as the model's trees see them: numbers, and codes of categories.
    y : ndarray of shape (n,)
        Their classes or numbers.
    predicted : ndarray of shape (n,)
        What the model predicts.
    shares : ndarray of shape (n, K), or None
        Probabilities of the classes; None: the target is a number.
    groups : Kinds or None
        A group of each row, such as a branch; None: there are none.
    named_costs : pair of float, or None
        What a missed row of the second of two classes costs, and a false alarm; None: alike.
    """

    model: Any
    X: Any
    coded: NDArray[Any]
    y: NDArray[Any]
    predicted: NDArray[Any]
    shares: Float64 | None
    groups: Kinds | None = None
    named_costs: tuple[float, float] | None = None

    @classmethod
    def of(
        cls,
        model: Any,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        costs: tuple[float, float] | None = None,
    ) -> Judged:
        """Ask a model about rows.

        Raises
        ------
        TypeError
            If the model is of another kind.
        ValueError
            If rows, targets and groups do not go together, or costs are no costs.
        """
        if not isinstance(model, _KINDS):
            raise TypeError(
                "model must be a tree, a forest, boosted trees, AdaBoost or naive Bayes of certree, "
                f"got {shortened(model)}"
            )
        check_is_fitted(model)
        check_one_target("a report", model)
        truth: NDArray[Any] = column_or_1d(y)
        check_consistent_length(X, truth)
        if not len(truth):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
        if is_regressor(model):
            truth = truth.astype(np.float64)
        kinds = None if groups is None else groups_among(groups, len(truth))
        if costs is not None:
            expect_costs(*costs)
        return cls(model, X, model._new_rows(X), truth, *_asked(model, X), kinds, costs)

    @property
    def costs(self) -> tuple[float, float]:
        """What a missed row of the second of two classes costs, and a false alarm."""
        return (1.0, 1.0) if self.named_costs is None else self.named_costs

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def classes(self) -> list[Any]:
        """The classes of the model; none if the target is a number."""
        return [] if self.shares is None else list(self.model.classes_.tolist())

    @property
    def n_repeated(self) -> int | None:
        """How many rows also occur among those of the fit; None: the model does not know."""
        hashes = getattr(self.model, "sample_hashes_", None)
        return (
            None if hashes is None else int(np.sum(np.logical_or(*known_rows(self.coded, hashes))))
        )

    @property
    def adds_up(self) -> bool:
        """Whether the model is trees whose leaves say numbers that are added up."""
        return hasattr(self.model, "explain") and not isinstance(self.model, NaiveBayesClassifier)

    def rows(self, indices: Sequence[int] | NDArray[np.intp]) -> Any:
        """Some of the rows as they were given."""
        return rows_at(self.X, np.asarray(indices))

    def some(self, most: int) -> NDArray[np.intp]:
        """Indices of at most so many rows, drawn at random, in their order."""
        if self.n <= most:
            return np.arange(self.n)
        return np.sort(np.random.default_rng(0).choice(self.n, most, replace=False))

    def picked(self, most: int) -> NDArray[np.intp]:
        """Rows to look at: from the one that is told best to the one that is told worst, and more."""
        cost = np.abs(self.predicted - self.y) if self.shares is None else self.row_losses
        order = np.argsort(cost, kind="stable")
        telling = order[np.round(np.array(_QUANTILES) * (self.n - 1)).astype(int)]
        return np.array(list(dict.fromkeys([*telling, *self.some(most)]))[:most])

    @property
    def row_losses(self) -> Float64:
        """Log loss of each row (nats), that of a class which the model does not know as of share 0."""
        assert self.shares is not None  # asked of classifiers alone
        place = {label: k for k, label in enumerate(self.classes)}
        column = np.array([place.get(label, -1) for label in self.y.tolist()])
        known = np.where(column < 0, 0.0, self.shares[np.arange(self.n), column])
        losses: Float64 = -np.log(np.maximum(known, _SMALLEST))
        return losses

    def title_of(self, i: int) -> str:
        """A row in words: what it is, and what is predicted of it."""
        if self.shares is None:
            true, said = (format_four_digits(float(each[i])) for each in (self.y, self.predicted))
            return f"row {i}: {true}, predicted {said}"
        sure = format_percent(self.shares[i].max())
        return f"row {i}: {self.y[i]}, predicted {self.predicted[i]} ({sure})"


def _asked(model: Any, X: ArrayLike) -> tuple[NDArray[Any], Float64 | None]:
    """What a model predicts, and the probabilities of its classes."""
    if isinstance(model, BoostedTreesClassifier):
        # Both come from one walk through many trees.
        scores = model._scores(X)
        return model._answers(scores), model._shares(scores)
    return np.asarray(model.predict(X)), model.predict_proba(X) if is_classifier(model) else None
