"""The door: what an estimator is given becomes checked, coded and weighed rows."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import (
    check_is_fitted,
    check_X_y,
    validate_data,
)

from certree.arrays import Float64
from certree.rows.folds import Fold, Indices, content_folds


@dataclass(frozen=True, slots=True, eq=False)
class _Training:
    """The rows that an estimator is fitted on; those of weight zero are gone.

    ``y`` holds classes 0, 1, ... (int32) or a numeric target (float64); ``number`` says which rows
    they were, None if all are left.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    weight: Float64 | None
    number: Indices | None

    def folds(self, cv: Any, random_state: np.random.RandomState, classifier: bool) -> list[Fold]:
        """Split the rows as scikit-learn's `cv` says; a number of folds goes by content."""
        if cv is None or isinstance(cv, Integral):
            n_folds = 5 if cv is None else int(cv)
            return list(content_folds(self.X, self.y, n_folds, random_state, self.weight))
        # Importing it takes longer than importing all of certree; most models never need it.
        from sklearn.model_selection import check_cv

        # A splitter splits the rows that are left; given row numbers are those of all rows.
        place = np.arange(len(self.y))
        if self.number is not None and not hasattr(cv, "split"):
            place = np.full(self.number[-1] + 1, -1)
            place[self.number] = np.arange(len(self.number))
        splits = check_cv(cv, self.y, classifier=classifier).split(self.X, self.y)
        return [self._fold(*(self._left(place, part) for part in split)) for split in splits]

    @staticmethod
    def _left(place: Indices, rows: Any) -> Indices:
        numbers = np.asarray(rows)
        numbers = np.flatnonzero(numbers) if numbers.dtype == bool else numbers
        kept = place[numbers[numbers < len(place)]]
        return kept[kept >= 0]

    def _fold(self, grow: Indices, judge: Indices) -> Fold:
        if self.weight is None:
            return Fold(grow, judge)
        return Fold(grow, judge, self.weight[grow], self.weight[judge])


# How scikit-learn is to check a matrix of features.
_NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": "allow-nan",
}


def checked_rows(
    model: Any, X: ArrayLike, y: ArrayLike, reset: bool = True
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Check training rows and their target; categories become codes.

    Parameters
    ----------
    model : estimator
        Its ``categories_`` are those of the rows. Number and names of the features are set.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Target.
    reset : bool
        Whether the features are new, or must be those that the model knows.

    Returns
    -------
    tuple of two ndarrays
        A matrix of numbers, NaN where one is missing, and the target.
    """
    checks = {**_NUMBERS, "y_numeric": not is_classifier(model)}
    if model.categories_ is None:
        rows, target = validate_data(model, X, y, reset=reset, **checks)
    else:
        validate_data(model, X, reset=reset, skip_check_array=True)
        encoded = model.categories_.encode(X)
        rows, target = check_X_y(encoded, y, estimator=model, **checks)
    return rows, target


def new_rows(model: Any, X: ArrayLike) -> NDArray[Any]:
    """Check rows to predict against what a fitted model knows; categories become codes."""
    check_is_fitted(model)
    if model.categories_ is None:
        rows: NDArray[Any] = validate_data(model, X, reset=False, **_NUMBERS)
        return rows
    validate_data(model, X, reset=False, skip_check_array=True)
    return np.asarray(model.categories_.encode(X))


def one_row(x: ArrayLike) -> ArrayLike:
    """Give one row of shape (p,) two dimensions; a table stays as it is."""
    if np.ndim(x) == 2:
        return x
    # Numbers beside strings stay numbers.
    return np.asarray(x, dtype=object if np.asarray(x).dtype.kind == "U" else None)[None]


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
