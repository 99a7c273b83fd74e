"""The door: what an estimator is given becomes checked, coded and weighed rows.

Everything comes in here, in this order: target, weights (rows of weight zero are gone from then on),
which rows may grow, preprocessing, categories, the matrix of features, codes of the target.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.utils import (
    check_consistent_length,
    check_random_state,
    compute_sample_weight,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_array,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from certree.interface.arrays import (
    MOST_ROWS,
    Float64,
    UInt64,
    array_of,
    can_be_added,
    expect_exact,
    has_far_numbers,
    places_among,
    plain,
)
from certree.rows.categories import Categories, categories_of, warn_of_identifiers
from certree.rows.columns import expect_exact_numbers, expect_no_times, given_values, rows_at
from certree.rows.deal import Sides, checked_groups, deal
from certree.rows.folds import Fold, Indices, content_folds, group_folds
from certree.rows.hashes import distinct, row_hashes

# How scikit-learn is to check a matrix of features.
_NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": "allow-nan",
}


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows that an estimator is fitted on; those of weight zero are gone.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Numbers, and codes of categories; NaN where one is missing.
    y : ndarray of shape (n,)
        Classes 0, 1, ... (int32) or a numeric target (float64). Rows that only weigh may be of a class
        that no growing row has: all such classes are `other_class`.
    weight : ndarray of float64, shape (n,), or None
        Positive weight of each row; None: 1 each.
    sides : Sides
        Which of these rows grow, and which weigh a tree that they have no part in; where nothing is
        certified all grow.
    indices : ndarray of intp, shape (n,), or None
        Which of the rows given these are; None: all.
    groups : ndarray of shape (n,), or None
        Group of each row.
    n_given : int or None
        How many rows were given, those of weight zero included; None: these are all.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    weight: Float64 | None
    sides: Sides
    indices: Indices | None = None
    groups: NDArray[Any] | None = None
    n_given: int | None = None

    def at(self, indices: Indices, weighted: bool = True) -> "Training":
        """Some of these rows, by themselves, with their weights or without."""
        weight = self.weight[indices] if weighted and self.weight is not None else None
        X, y = np.ascontiguousarray(self.X[indices]), self.y[indices]
        groups = None if self.groups is None else self.groups[indices]
        return Training(X, y, weight, Sides.all_grow(len(y)), groups=groups)

    def folds(self, cv: Any, random_state: np.random.RandomState) -> list[Fold]:
        """Split the rows as scikit-learn's `cv` says; a number of folds goes by content or groups."""
        if cv is None or isinstance(cv, Integral):
            n_folds = 5 if cv is None else int(cv)
            if self.groups is not None:
                sides = group_folds(self.groups, n_folds, random_state)
                return [self._fold(grow, judge) for grow, judge in sides]
            return list(content_folds(self.X, self.y, n_folds, random_state, self.weight))
        # Importing it takes longer than importing all of certree; most models never need it.
        from sklearn.model_selection import check_cv

        # Text has a method of that name, too.
        splits_rows = hasattr(cv, "split") and not isinstance(cv, str | bytes)
        # A splitter splits the rows that are left; given indices are those of all rows.
        place = np.arange(len(self.y))
        if self.indices is not None and self.n_given is not None and not splits_rows:
            place = np.full(self.n_given, -1)
            place[self.indices] = np.arange(len(self.indices))
        classifier = self.y.dtype == np.int32
        splits = (
            check_cv(cv, self.y, classifier=classifier).split(self.X, self.y)
            if splits_rows or not isinstance(cv, Iterable)
            else cv
        )
        folds = [self._fold(*_sides(place, split)) for split in splits]
        # Rows of weight zero are as if absent, and so are folds that have no others on one side.
        folds = [fold for fold in folds if len(fold.grow) and len(fold.judge)]
        if not folds:
            raise ValueError("cv must have at least one fold, got none")
        return folds

    def _fold(self, grow: Indices, judge: Indices) -> Fold:
        if self.weight is None:
            return Fold(grow, judge)
        return Fold(grow, judge, self.weight[grow], self.weight[judge])


def _sides(place: Indices, split: Any) -> tuple[Indices, Indices]:
    """Both sides of a fold that was given, by the places of those rows that are left."""
    if not isinstance(split, (tuple, list, np.ndarray)) or len(split) != 2:
        raise ValueError(f"cv must hold pairs of rows that grow and rows that judge, got {split!r}")
    grow, judge = (_given_rows(part, len(place)) for part in split)
    if not len(grow) or not len(judge):
        raise ValueError(
            f"each fold of cv must have rows on both sides, got {len(grow)} and {len(judge)}"
        )
    return _left(place, grow), _left(place, judge)


def _given_rows(part: Any, n: int) -> Indices:
    """Check row numbers, or a mask of n rows, and return row numbers."""
    given = np.asarray(part)
    if given.ndim != 1:
        raise ValueError(f"cv must hold rows in one dimension, got shape {given.shape}")
    if given.dtype == bool:
        if len(given) != n:
            raise ValueError(f"a mask in cv must have {n} rows, got {len(given)}")
        return np.flatnonzero(given)
    if given.size == 0:
        return np.zeros(0, dtype=np.intp)
    if given.dtype.kind not in "iu":
        raise ValueError(f"cv must hold whole numbers or a mask of rows, got dtype {given.dtype}")
    if given.min() < 0 or given.max() >= n:
        raise ValueError(f"cv must hold rows in 0 .. {n - 1}, got {given.min()} .. {given.max()}")
    return given.astype(np.intp)


def _left(place: Indices, rows: Indices) -> Indices:
    kept = place[rows]
    return kept[kept >= 0]


def training_rows(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    grow_size: float | None = None,
    random_state: np.random.RandomState | None = None,
    categories: Callable[[Any], Categories | None] | None = None,
    classes: ArrayLike | None = None,
    reset: bool = True,
) -> Training:
    """Check and code what an estimator is fitted on, and leave out rows of weight zero.

    Sets what rows tell of features and target: ``n_features_in_``, ``feature_names_in_``,
    ``categories_`` and, of a classifier, ``classes_``, ``n_classes_`` and ``row_hashes_``.

    Parameters
    ----------
    model : estimator
        Its parameters ``categorical_features``, ``class_weight`` and ``preprocessor`` are read, where
        it has them.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Target.
    sample_weight : array-like of shape (n,), or None
        How many rows each row counts as. A row of weight zero is as if absent.
    groups : array-like of shape (n,), or None
        Group of each row.
    grow_size : float or None
        Share of the rows, or groups, that grow; 0: none of them; None: all do everything.
    random_state : numpy RandomState or None
        Deals the rows.
    categories : callable or None
        Learns the `Categories` of rows; None: those that ``categorical_features`` names, or those
        that the model knows.
    classes : array-like of shape (K,), or None
        The classes; None: those of the rows that grow.
    reset : bool
        Whether features and classes are new, or must be those that the model knows.

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        In scikit-learn's words, if rows, target, weights or groups do not go together.
    """
    if issparse(X):
        array_of("X", X)
    if not hasattr(X, "__getitem__"):  # what is no array yet cannot be divided by rows
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=model)
    target, weight = _weighed(model, X, y, sample_weight)
    n_given = len(target)
    if groups is not None:
        groups = checked_groups(groups, n_given)
    there = [X, target, weight, groups]
    indices = None
    if weight is not None and not (weight > 0).all():
        indices = np.flatnonzero(weight > 0)
        if not len(indices):
            raise ValueError("sample_weight must be positive for at least one row")
        there = [None if one is None else rows_at(one, indices) for one in there]
    X, target, weight, groups = there
    sides = Sides.all_grow(len(target))
    if grow_size is not None:
        sides = deal(len(target), grow_size, check_random_state(random_state), groups)
    if isinstance(getattr(model, "class_weight", None), str):
        weight = _times(balanced_weights(target, weight, sides), weight)
    if hasattr(model, "preprocessor"):
        X = _preprocessed(model, X, target, sides)
    if reset or categories is not None:
        learn = categories or partial(
            categories_of, categorical_features=model.categorical_features
        )
        model.categories_ = learn(_growing(X, sides))
    rows = _matrix(model, X, reset)
    if reset and categories is None and model.categories_ is not None:
        warn_of_identifiers(rows, model.categories_, getattr(model, "feature_names_in_", None))
    coded = _coded(model, target, classes, reset, sides)
    if is_classifier(model):
        model.row_hashes_ = _learned_hashes(model, rows, reset)
    return Training(rows, coded, weight, sides, indices, groups, n_given)


def _weighed(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Float64 | None]:
    """Target and weight of each row."""
    if y is None:
        raise ValueError(
            f"This {type(model).__name__} estimator requires y to be passed, but the target y is None."
        )
    if isinstance(y, (list, tuple)):
        y = array_of("y", y)
    if not is_classifier(model):
        _expect_numbers("y", y)
    times = np.asarray(y)
    if times.dtype.kind in "mM" and np.isnat(times).any():
        raise ValueError("Input y contains NaT, where every row must have a class.")
    with np.errstate(invalid="ignore"):  # it adds all numbers up to look for infinite ones
        target = _check_y(y, y_numeric=not is_classifier(model), estimator=model)
    check_consistent_length(X, target)
    weight = None
    if sample_weight is not None:
        _expect_numbers("sample_weight", sample_weight, "biuf")
        weight = plain(
            _check_sample_weight(sample_weight, target, dtype=np.float64, ensure_non_negative=True)
        )
    if is_classifier(model):
        check_classification_targets(target)
        factors = getattr(model, "class_weight", None)
        if isinstance(factors, dict):
            _expect_class_weights(factors)
            weight = _times(compute_sample_weight(factors, target), weight)
    _expect_sum(weight)
    return target, weight


def _times(factor: Float64, weight: Float64 | None) -> Float64:
    """Weights with those of the classes."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = factor if weight is None else weight * factor
    _expect_sum(product)
    return product


def _expect_sum(weight: Float64 | None) -> None:
    if weight is not None and not can_be_added(weight):
        raise ValueError(
            f"the weights of all rows must sum to at most {MOST_ROWS:g}, class_weight included"
        )


def _expect_numbers(name: str, values: Any, kinds: str = "biufc") -> None:
    """Refuse words and objects before they are made numbers of; scikit-learn refuses complex ones."""
    given = array_of(name, values).ravel()
    expect_no_times(given, name)
    numbers = given
    if (
        given.dtype.kind in "iuO"
    ):  # objects: numbers of Python, or what pandas makes of missing ones
        try:
            numbers = given.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must hold numbers, got {shortened(values)}") from None
    if numbers.dtype.kind not in kinds:
        raise ValueError(f"{name} must hold numbers, got dtype {given.dtype}")
    if numbers is not given and has_far_numbers(numbers):
        expect_exact(name, given, numbers)


def _growing(X: Any, sides: Sides) -> Any:
    """The rows that grow; all, if none do."""
    both = len(sides.grow) and len(sides.weigh)
    return rows_at(X, sides.grow) if both else X


def _preprocessed(model: Any, X: Any, target: NDArray[Any], sides: Sides) -> Any:
    """Transform all rows by a preprocessor that only those that grow have fitted."""
    model.preprocessor_ = None  # that of a fit before is forgotten
    if model.preprocessor is None:
        return X
    if not len(sides.grow):
        raise ValueError("preprocessor takes rows that grow the tree, and here none do")
    step = clone(model.preprocessor)
    model.preprocessor_ = step.fit(_growing(X, sides), target[sides.grow])
    return model.preprocessor_.transform(X)


def _matrix(model: Any, X: Any, reset: bool) -> NDArray[Any]:
    """Rows as a matrix of numbers; sets or checks the number and the names of the features."""
    if model.categories_ is None:
        expect_exact_numbers(X)
        try:
            with np.errstate(invalid="ignore"):  # it adds all numbers up to look for infinite ones
                rows: NDArray[Any] = validate_data(model, X, reset=reset, **_NUMBERS)
        except (ValueError, OverflowError):
            _expect_numbers("X", X)
            raise
        return plain(rows)
    validate_data(model, X, reset=reset, skip_check_array=True)
    coded = model.categories_.encode(X)
    return check_array(coded, estimator=model, input_name="X", **_NUMBERS)


def _coded(
    model: Any, target: NDArray[Any], classes: ArrayLike | None, reset: bool, sides: Sides
) -> NDArray[Any]:
    """The target as int32 classes or float64 numbers."""
    if not is_classifier(model):
        return plain(target, np.float64)
    if reset:
        model.classes_ = np.unique(_growing(target, sides) if classes is None else classes)
        model.n_classes_ = len(model.classes_)
    codes, known = places_among(model.classes_, target)
    # A class that no growing row has is one that the tree cannot predict: an error, whatever it says.
    if not known[sides.grow].all() or not known.any():
        raise ValueError(
            f"y must hold classes among {model.classes_}, got {np.unique(target[~known])}"
        )
    return np.where(known, codes, other_class(model)).astype(np.int32)


def _learned_hashes(model: Any, rows: NDArray[Any], reset: bool) -> UInt64 | None:
    """Hashes of the rows of the fit; None if those of earlier ones are not known."""
    if reset:
        return distinct(row_hashes(rows))
    if model.row_hashes_ is None:
        return None
    return distinct(model.row_hashes_, row_hashes(rows))


def other_class(model: Any) -> int:
    """The code of all classes that a classifier does not know; counting takes two at least."""
    return max(2, len(model.classes_))


def balanced_weights(y: NDArray[Any], weight: Float64 | None, sides: Sides) -> Float64:
    """Weight of each row's class by the weights of the growing rows; scikit-learn counts them.

    What grows the tree must not depend on rows that only weigh. Where none grow all are counted: their
    weights then shape the law alone, and all labellings are certified at once. The mean factor, 1, is
    for classes that no growing row has.
    """
    classes, codes = np.unique(_growing(y, sides), return_inverse=True)
    totals = np.bincount(codes, None if weight is None else _growing(weight, sides))
    with np.errstate(over="ignore"):
        factor = totals.sum() / (len(classes) * totals)
    places, known = places_among(classes, y)
    return np.where(known, factor[places], 1.0)


def _expect_class_weights(class_weight: dict[Any, Any]) -> None:
    """Refuse what is no weight: rows that do not weigh more than 0 are left out without a word."""
    for label, factor in class_weight.items():
        if not isinstance(factor, Real) or not 0 <= float(factor) < np.inf:
            raise ValueError(
                f"class_weight must be finite and non-negative, got {factor!r} for class {label!r}"
            )


def new_rows(model: Any, X: Any) -> NDArray[Any]:
    """Check rows to predict against what a fitted model knows; categories become codes."""
    return _matrix(model, _expected(model, X), reset=False)


def rows_and_values(model: Any, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Do the same, and give beside the rows their values as they were given, or preprocessed."""
    table = _expected(model, X)
    return _matrix(model, table, reset=False), given_values(table)


def names_of_features(model: Any) -> list[str]:
    """Names of the features of a fitted model, "x[0]" and so on where rows had none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x[{j}]" for j in range(model.n_features_in_)] if names is None else [*names]


def _expected(model: Any, X: Any) -> Any:
    """Rows as a fitted model learned them: dense and preprocessed."""
    check_is_fitted(model)
    if issparse(X):
        array_of("X", X)
    if getattr(model, "preprocessor_", None) is not None:
        return model.preprocessor_.transform(X)
    return X


def known_classes(model: Any, name: str, y: Any) -> NDArray[np.intp]:
    """Places of classes in the ``classes_`` of a fitted classifier; others are an error."""
    given = column_or_1d(y)
    places, known = places_among(model.classes_, given)
    if not known.all():
        raise ValueError(
            f"{name} must hold classes among {model.classes_}, got {np.unique(given[~known])}"
        )
    return places


def one_row(x: ArrayLike) -> ArrayLike:
    """Give one row of shape (p,) two dimensions; a table stays as it is."""
    given = array_of("x", x)
    if given.ndim == 2:
        return x
    # Numbers beside strings stay numbers.
    return np.asarray(x, dtype=object if given.dtype.kind == "U" else None)[None]
