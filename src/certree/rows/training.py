"""The door: what an estimator is given becomes checked, coded and weighed rows.

Everything comes in here, in this order: target, weights (rows of weight zero are gone from then on),
which rows may grow, preprocessing, categories, the matrix of features, codes of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil, fsum
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.utils import (
    Tags,
    assert_all_finite,
    check_consistent_length,
    compute_sample_weight,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    _check_y,
    _get_feature_names,
    check_array,
    check_is_fitted,
    column_or_1d,
)

from certree.interface.arrays import (
    MAX_TOTAL_WEIGHT,
    Float64,
    Int32,
    UInt64,
    check_exact,
    find_positions,
    has_finite_total,
    has_inexact_integers,
    to_array,
    to_contiguous,
)
from certree.interface.fitted_state import available_if, snapshot_method
from certree.interface.parameter_aliases import (
    check_for_aliases,
    check_nested_parameters,
    rejects_aliases,
)
from certree.interface.stored_state import StoredState
from certree.rows.categories import Categories, categories_of, warn_of_identifiers
from certree.rows.columns import (
    TableColumns,
    expect_columns_of_numbers,
    expect_exact_numbers,
    expect_no_times,
    frame_of,
    given_values,
    is_missing,
    rows_at,
    width_of_numbers,
)
from certree.rows.draw_order import ColumnSums
from certree.rows.duplicates import (
    AlikeRows,
    Duplicates,
    count_as_worst,
    distinct_rows,
    expect_few_copies,
    first_alike,
    first_of,
    n_repeats,
    repeated_rows,
)
from certree.rows.elsewhere import expect_collected, expect_in_memory
from certree.rows.features import FeatureColumns, renumbered
from certree.rows.folds import (
    Fold,
    Indices,
    content_folds,
    content_share,
    group_folds,
    group_share,
)
from certree.rows.hashes import RowHashes, distinct, fit_hashes, sample_hashes
from certree.rows.learned import (
    restored_classes,
    restored_features,
    stored_classes,
    stored_features,
)
from certree.rows.near_copies import (
    ComparedRows,
    NearCopies,
    expect_few_near_copies,
    find_near_copies,
)
from certree.rows.precision import warn_of_float32
from certree.rows.relative_weights import WeightSpread, warn_of_uneven_weights
from certree.rows.repeat_counts import RepeatCounts, hash_table
from certree.rows.sparse_rows import AnyColumns, SparseColumns, made_dense
from certree.rows.split import Deal, TrainCalibrationSplit, checked_groups

# How scikit-learn is to check a matrix of features.
# Their numbers are int32.
_MOST_FEATURES = 2**31 - 1
# So few numbers are checked by hand where they are predicted.
_FEW_NUMBERS = 1024
_NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,  # column by column, as it may take a copy
    "input_name": "X",
}


class WeighedTarget(NamedTuple):
    """What is added up of rows in the cells of a tree; see `Training`.

    Parameters
    ----------
    y, weight, weight_unit
        Their targets, their weights, and the mean of these.
    """

    y: NDArray[Any]
    weight: Float64 | None
    weight_unit: float


@dataclass(frozen=True, eq=False)
class Training:
    """The rows that an estimator is fitted on; those of weight zero are gone.

    Parameters
    ----------
    features : FeatureColumns or SparseColumns
        Numbers, and codes of categories; NaN where one is missing.
    y : ndarray of shape (n,), or (n, n_outputs)
        Classes 0, 1, ... (int32) or a numeric target (float64), of several outputs in columns. Rows
        that only weigh may be of a class that no growing row has: the codes of these classes begin with
        `other_class`, which stands for all of them if the classes were given.
    weight : ndarray of float64, shape (n,), or None
        Positive weight of each row; None: 1 each. Only ratios of weights matter; see `weight_unit`.
    sides : Sides
        Which of the rows given these are; which grow, and which weigh a tree that they have no part in.
        Where nothing is certified all grow.
    growing : Training or None
        The rows that grow, by themselves; None: all of these, or none.
    offset : ndarray of float64, shape (n_outputs, n), or None
        What scores start from; None: 0.
    find_near_copies : callable or None
        Compares calibration rows with training rows beyond equality; None: it has done so, or
        nothing is certified.
    n_categories : tuple of (int or None), one per feature, or None
        How many categories each has, None for one of numbers; None: all are.
    known_order : ndarray of int32, shape (p,), or None
        `draw_order`, if it is known already.
    """

    features: AnyColumns
    y: NDArray[Any]
    weight: Float64 | None
    sides: TrainCalibrationSplit
    growing: Training | None = None
    offset: Float64 | None = None
    find_near_copies: Callable[[], NearCopies] | None = None
    n_categories: tuple[int | None, ...] | None = None
    known_order: Int32 | None = None
    # The features row by row, (n, p); None if they lie otherwise, as of models that take columns.
    X: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", self.features.table)

    @cached_property
    def weight_unit(self) -> float:
        """Mean weight of a row: in units of it all rows together weigh as many as they are."""
        return mean_weight(self.weight)

    @cached_property
    def draw_order(self) -> Int32:
        """In which order columns are looked at and drawn, (p,), as the rows that grow tell."""
        if self.known_order is not None:
            return self.known_order
        if self.growing is not None:
            return self.growing.draw_order
        return ColumnSums.of(self.features, self.y, self.n_categories).order()

    @property
    def target(self) -> WeighedTarget:
        """What is added up of these rows."""
        return WeighedTarget(self.y, self.weight, self.weight_unit)

    def expect_few_near_copies(self, duplicates: Duplicates) -> Training:
        """Look for near copies among these rows, once it is settled which of them certify.

        Parameters
        ----------
        duplicates : {"auto", "genuine", "copies", "refuse"}
            What rows are that are alike; see `CertifiedTreeClassifier`.

        Returns
        -------
        Training
            The same rows; `sides` say what was found.

        Raises
        ------
        ValueError
            If calibration rows are copies that only a text or a row number tells apart.

        Warns
        -----
        NearCopiesWarning
            If calibration rows nearly repeat training rows.
        """
        assert self.find_near_copies is not None
        found = self.find_near_copies()
        expect_few_near_copies(found, len(self.sides.weigh) or len(self.y), duplicates)
        sides = replace(self.sides, near_copies=found)
        return replace(self, sides=sides, find_near_copies=None)

    def at(self, indices: Indices) -> Training:
        """Take some of these rows as those of a fit of their own, with a mean weight of their own."""
        weight = None if self.weight is None else self.weight[indices]
        features, y = self.features.at(indices), self.y[indices]
        groups = None if self.sides.groups is None else self.sides.groups[indices]
        sides = replace(TrainCalibrationSplit.all_grow(len(y)), groups=groups)
        offset = None if self.offset is None else self.offset[:, indices]
        order = vars(self).get("draw_order", self.known_order)
        sizes = self.n_categories
        return Training(
            features, y, weight, sides, offset=offset, n_categories=sizes, known_order=order
        )

    def folds(self, cv: Any, random_state: np.random.RandomState) -> list[Fold]:
        """Split the rows as scikit-learn's `cv` says; a number of folds goes by content or groups."""
        if cv is None or isinstance(cv, Integral):
            n_folds = 5 if cv is None else int(cv)
            if self.sides.groups is not None:
                parts = group_folds(self.sides.groups, n_folds, random_state)
                return [Fold(*part) for part in parts]
            about = random_state, self.weight, self.draw_order
            return list(content_folds(self.features.matrix, self.y, n_folds, *about))
        # Importing it takes longer than importing all of certree; most models never need it.
        from sklearn.model_selection import check_cv

        # Text has a method of that name, too.
        splits_rows = hasattr(cv, "split") and not isinstance(cv, str | bytes)
        # A splitter splits the rows that are left; given indices are those of all rows.
        place, indices = np.arange(len(self.y)), self.sides.indices
        if indices is not None and self.sides.n_given is not None and not splits_rows:
            place = np.full(self.sides.n_given, -1)
            place[indices] = np.arange(len(indices))
        classifier = self.y.dtype == np.int32
        splits = (
            check_cv(cv, self.y, classifier=classifier).split(
                self.features.matrix, self.y, self.sides.groups
            )
            if splits_rows or not isinstance(cv, Iterable)
            else cv
        )
        folds = [Fold(*_sides(place, split)) for split in splits]
        # Rows of weight zero are as if absent, and so are folds that have no others on one side.
        folds = [fold for fold in folds if len(fold.grow) and len(fold.judge)]
        if not folds:
            raise ValueError("cv must have at least one fold, got none")
        return folds

    def held_out(
        self, size: float, random_state: np.random.RandomState
    ) -> tuple[Training, Training]:
        """Rows that train, and rows that are held out: whole groups, else by class and content.

        Parameters
        ----------
        size : int or float
            How many rows, or groups, are held out; a float is their share.
        random_state : numpy RandomState
            Source of the order.

        Returns
        -------
        trained, held_out : Training

        Raises
        ------
        ValueError
            If a side would be empty, or lack room for the classes.
        """
        groups = self.sides.groups
        n = len(self.y) if groups is None else len(np.unique(groups))
        n_held = n_held_out(size, n, "rows" if groups is None else "groups")
        if groups is not None:
            fold = Fold(*group_share(groups, n_held, random_state))
        else:
            for one in self._columns_of_classes:
                expect_classes(np.bincount(one), size, n, n_held)
            about = random_state, self.weight, self.draw_order
            fold = content_share(self.features.matrix, self.y, n_held, *about)
        columns = self._columns_of_classes
        n_lost = sum(len(np.setdiff1d(one[fold.judge], one[fold.grow])) for one in columns)
        if n_lost:
            refuse_lost_classes(size, n_lost)
        # Those that are held out have no say in the order of columns.
        return replace(self.at(fold.grow), known_order=None), self.at(fold.judge)

    @property
    def _columns_of_classes(self) -> list[Int32]:
        """Classes of each target, if these are classes."""
        return [*self.y.reshape(len(self.y), -1).T] if self.y.dtype == np.int32 else []


def mean_weight(weight: Float64 | None) -> float:
    """Compute the mean weight of rows, which does not depend on their order; 1 without weights."""
    return 1.0 if weight is None else fsum(weight) / len(weight)


def refuse_lost_classes(size: float, n_lost: int) -> NoReturn:
    """Say that some classes have no rows that train."""
    raise ValueError(
        f"validation_fraction={size} holds out all rows of {n_lost} of the classes: make it smaller, "
        "or give X_val and y_val"
    )


def n_held_out(size: float, n: int, units: str) -> int:
    """How many of n rows or groups are held out, which leaves some on both sides."""
    n_held = ceil(size * n) if isinstance(size, float | np.floating) else int(size)
    if not 0 < n_held < n:
        raise ValueError(
            f"With n_samples={n} {units} and validation_fraction={size}, the resulting "
            f"{'train' if n_held else 'validation'} set will be empty. Adjust validation_fraction, or "
            "give X_val and y_val."
        )
    return n_held


def expect_classes(n_of_class: NDArray[Any], size: float, n: int, n_held: int) -> None:
    """Refuse to hold out rows by class where a class has one, or sides have less than one of each."""
    n_of_class = n_of_class[n_of_class > 0]
    if n_of_class.min() < 2:
        raise ValueError(
            "The least populated class in y has only 1 member, which is too few to hold out rows of "
            "each class: give X_val and y_val, or validation_fraction=None"
        )
    if min(n_held, n - n_held) < len(n_of_class):
        raise ValueError(
            f"The validation_fraction = {size} of {n} rows leaves {n_held} to judge and {n - n_held} "
            f"to train, which should be greater or equal to the number of classes = {len(n_of_class)}"
        )


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


def names_of_features(model: Any) -> list[str]:
    """Names of the features of any fitted model, "x[0]" and so on where rows had none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x[{j}]" for j in range(model.n_features_in_)] if names is None else [*names]


class TakesRows:
    """Estimators that take rows in, keep what a fit learns of them, and read new ones by that."""

    categorical_features: Any
    categories_: Categories | None
    # Kish's effective number of the rows of the fit, by their weights.
    effective_sample_size_: float
    n_features_in_: int
    classes_: NDArray[Any]
    n_classes_: int
    n_outputs_: int
    # Whether categories make cells, which those of an identifier would spoil.
    _splits_categories: ClassVar[bool] = True
    # Whether a fit reads features column by column, in whatever memory they came.
    _takes_columns: ClassVar[bool] = False
    # Whether rows may have several targets; else they are refused.
    _takes_outputs: ClassVar[bool] = False
    # Whether infinite numbers count as the outermost ones; else they are refused.
    _takes_infinities: ClassVar[bool] = False
    # Whether rows may be sparse.
    _takes_sparse: ClassVar[bool] = False
    # Whether each row is one draw, unless groups are given; in ranking a query is.
    _draws_rows: ClassVar[bool] = True

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if "__init__" in vars(cls):
            model: Any = cls
            model.__init__ = rejects_aliases(model.__init__)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of parts as ``part__parameter``.

        Parameters
        ----------
        **params : dict
            Values by names; they are those of the next fit.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        TypeError
            If a parameter has the name of another library; the error says what it is called here.
        ValueError
            If there is no such parameter; if a part is said to have one that the estimator itself has,
            the error says so.
        """
        model: Any = super()
        if params:
            own = model.get_params(deep=False)
            check_for_aliases(self, params, own)
            check_nested_parameters(self, params, own)
        return model.set_params(**params)

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep ``locals()`` of a constructor, each parameter under its own name."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    def _take(self, X: Any, y: Any, sample_weight: Any = None, **how: Any) -> Training:
        """Take in rows as `training_rows` does, and keep what they tell."""
        expect_in_memory(self, X)
        training, learned = training_rows(self, X, y, sample_weight, **how)
        self.__dict__.update(learned)
        if learned.get("feature_names_in_", self) is None:
            del self.__dict__["feature_names_in_"]
        return training

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit."""
        classes = stored_classes(self) if is_classifier(self) else {}
        return {**stored_features(self), **classes}

    def __restore__(self, stored: StoredState) -> None:
        """Check the parameters and what a file holds, and set the fitted attributes."""
        model: Any = self
        model._validate_params()
        if self._takes_outputs:
            self.n_outputs_ = 1
        elif "n_outputs" in stored:
            raise ValueError(f"it holds several targets, and {type(self).__name__} predicts one")
        self.__dict__.update(restored_features(stored))
        if is_classifier(self):
            self.__dict__.update(restored_classes(stored))

    def _has_several_targets(self) -> bool:
        return bool(self.__dict__.get("n_outputs_", 1) > 1)

    def _expect_one_target(self, what: str) -> None:
        """Refuse several targets where something is about one."""
        if self._has_several_targets():
            kind = "Classifier" if is_classifier(self) else "Regressor"
            raise ValueError(
                f"{what} takes one target, got y of {self.n_outputs_} columns: "
                f"sklearn.multioutput.MultiOutput{kind} fits one model for each column"
            )

    def _categories_of(self, X: Any, again: bool) -> Categories | None:
        """The categories of rows; `again`: those that are known, and more where they may be added."""
        return self.categories_ if again else categories_of(X, self.categorical_features)

    def _new_rows(self, X: Any) -> NDArray[Any]:
        """Check rows to predict against what is known; categories become codes, and all is dense."""
        return made_dense(self._rows_to_walk(X))

    def _rows_to_walk(self, X: Any) -> Any:
        """Do the same, and leave rows sparse that are."""
        if self._takes_as_they_are(X):
            return X
        return self._new_features(X).matrix

    def _new_features(self, X: Any) -> AnyColumns:
        """Do what `_new_rows` does, and leave the features in the memory in which they came."""
        features = _checked(self, self._table(X), self.categories_, again=True)
        names = [self._feature_names()[j] for j in self._float64_features if features.is_float32(j)]
        warn_of_float32(names, "X holds float32", "Pass X as float64.")
        return features

    def _by_blocks(self, X: Any, scores: Callable[[NDArray[Any]], Float64]) -> Float64:
        """Scores (k, n) of rows to predict by those of a table of some of them."""
        return scores(X) if self._takes_as_they_are(X) else self._new_features(X).said(scores)

    @property
    def _float64_features(self) -> Int32:
        """Find the features that must be float64, (any,); see `Trees.float64_features`."""
        trees = self.__dict__.get("trees_", self.__dict__.get("tree_"))
        return getattr(trees, "float64_features", np.zeros(0, dtype=np.int32))

    def _takes_as_they_are(self, X: Any) -> bool:
        """Whether these are a few rows that all checks would hand back unchanged.

        They take some ten times as long as the prediction of a row.
        """
        fitted = self.__dict__
        if type(X) is not np.ndarray or X.ndim != 2 or not 0 < X.size <= _FEW_NUMBERS:
            return False
        if (
            X.shape[1] != fitted.get("n_features_in_")
            or fitted.get("feature_names_in_") is not None
        ):
            return False
        if self.categories_ is not None or fitted.get("preprocessor_") is not None:
            return False
        if X.dtype.char == "f" and len(self._float64_features):
            return False
        if X.dtype.char not in "fd" or not (
            X.flags.c_contiguous and X.flags.aligned and X.dtype.isnative
        ):
            return False
        return bool(np.isfinite(X).all()) or (
            self._takes_missing_values() and not np.isinf(X).any()
        )

    def _rows_and_values(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Do the same, and give beside the rows their values as they were given, or preprocessed."""
        table = made_dense(self._table(X))
        return _checked(self, table, self.categories_, again=True).matrix, given_values(table)

    def _table(self, X: Any) -> Any:
        """Rows as the fit learned them: dense and preprocessed."""
        check_is_fitted(self)
        X = _expected_rows(self, X)
        preprocessor = getattr(self, "preprocessor_", None)
        return X if preprocessor is None else _expected_rows(self, preprocessor.transform(X))

    def _feature_names(self) -> list[str]:
        return names_of_features(self)

    def _takes_missing_values(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc] # of BaseEstimator
        tags.input_tags.allow_nan = self._takes_missing_values()
        tags.target_tags.multi_output = self._takes_outputs
        tags.input_tags.sparse = self._takes_sparse
        return tags

    @available_if(lambda model: hasattr(model, "predict_proba"))
    def predict_log_proba(self, X: ArrayLike) -> Any:
        """Predict the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.

        Returns
        -------
        ndarray of shape (n, K), or list of them
            Logarithms (nats) in the order of `classes_`; of several targets those of each.
        """
        classifier: Any = self
        shares = classifier.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(one) for one in shares] if isinstance(shares, list) else np.log(shares)

    @property
    @snapshot_method
    def is_categorical_(self) -> NDArray[np.bool_] | None:
        """Which features hold categories, (p,); None: none does."""
        check_is_fitted(self)
        mask = self._category_mask()
        return mask if mask is not None and mask.any() else None

    def _numbers_categories(self) -> bool:
        """Whether rows that grow number categories; else they are numbered by spelling."""
        return True

    def _category_mask(self) -> NDArray[np.bool_] | None:
        """Which features hold categories; None: none does."""
        return None if self.categories_ is None else self.categories_.mask

    def _class_codes(self, name: str, y: Any) -> NDArray[np.intp]:
        """Places of classes among those of the fit, (n,) or (n_outputs, n); others are an error."""
        classes: Any = self.classes_
        if not isinstance(classes, list):
            return _places_of(name, classes, column_or_1d(y))
        given, n = to_array(name, y), len(classes)
        if given.ndim != 2 or given.shape[1] != n:
            raise ValueError(f"{name} must have shape (n, {n}), as in the fit, got {given.shape}")
        columns = zip(classes, columns_of_targets(given), strict=True)
        return np.stack([_places_of(name, known, one) for known, one in columns])


def _places_of(name: str, classes: NDArray[Any], given: NDArray[Any]) -> NDArray[np.intp]:
    """Places of classes among those that are known."""
    places, known = find_positions(classes, given)
    if not known.all():
        raise ValueError(
            f"{name} must hold classes among {classes}, got {np.unique(given[~known])}"
        )
    return places


def training_rows(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    dealt: Deal | None = None,
    classes: ArrayLike | None = None,
    again: bool = False,
) -> tuple[Training, dict[str, Any]]:
    """Check and code what an estimator is fitted on, and leave out rows of weight zero.

    Parameters
    ----------
    model : TakesRows
        The estimator, which is not changed. Its parameters ``class_weight`` and ``preprocessor`` are
        read, where it has them, and it says which categories rows have.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,), or (n, n_outputs)
        Target; several of them where the model takes them.
    sample_weight : array-like of shape (n,), or None
        Weight of each row, relative to the others. A row of weight zero is as if absent.
    groups : array-like of shape (n,), or None
        Group of each row.
    dealt : Deal or None
        Says which of the rows that are left grow; None: all do everything.
    classes : array-like of shape (K,), or None
        The classes; None: those of the rows that grow.
    again : bool
        Whether features and classes must be those that the model knows.

    Returns
    -------
    training : Training
        The rows.
    learned : dict
        What they tell of features and target: fitted attributes by their names. The names of features
        are None where rows have none, and only a classifier learns classes and hashes of its rows.

    Raises
    ------
    ValueError
        In scikit-learn's words, if rows, target, weights or groups do not go together.
    """
    X = _expected_rows(model, X)
    if not hasattr(X, "__getitem__"):  # what is no array yet cannot be divided by rows
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=model)
    is_of_classes = is_classifier(model)
    target, weight = weighed_targets(model, X, y, sample_weight, is_of_classes)
    n_given = len(target)
    if groups is not None:
        groups = checked_groups(groups, n_given)
    duplicates = getattr(model, "duplicates", None)
    (X, target, weight, groups), indices = _kept(X, target, weight, groups, duplicates)
    sides = TrainCalibrationSplit.all_grow(len(target))
    if dealt is not None:
        sides = dealt(len(target), groups, weight, partial(_contents, model, X, target))
    repeats, is_worst, find = 0, None, None
    if duplicates is not None:
        repeats, is_worst, find = _compared(X, target, sides, groups, duplicates, is_of_classes)
    if getattr(model, "class_weight", None) == "balanced":  # not in the bags of a forest
        weight = _times(balanced_weights(target, weight, sides), weight)
    learned = {} if again else _effective_size(weight, len(target), sample_weight)
    if hasattr(model, "preprocessor"):
        learned["preprocessor_"] = step = _preprocessor(model.preprocessor, X, target, sides)
        X = X if step is None else _expected_rows(model, step.transform(X))
    features, codes, hashes, of_rows, order = _encode_rows(model, X, target, classes, sides, again)
    learned |= of_rows
    if model._draws_rows and not again and groups is None and duplicates is None:
        counts = of_rows.get("_sample_counts")
        expect_few_copies(codes, hashes, 0 if counts is None else counts.n_distinct)
    about = groups, indices, n_given, repeats, duplicates == "copies", is_worst
    sides = TrainCalibrationSplit(sides.grow, sides.weigh, *about)
    sizes = None if learned["categories_"] is None else learned["categories_"].sizes
    inferred: dict[str, Any] = {"n_categories": sizes, "known_order": order}
    training = Training(features, codes, weight, sides, find_near_copies=find, **inferred)
    if duplicates is not None and not (dealt is not None and dealt.is_pilot):
        training = training.expect_few_near_copies(duplicates)
    if len(sides.grow) and len(sides.weigh):
        training = replace(training, growing=training.at(sides.grow))
    return training, learned


def _compared(
    X: Any,
    target: NDArray[Any],
    sides: TrainCalibrationSplit,
    groups: NDArray[Any] | None,
    duplicates: Duplicates,
    is_of_classes: bool,
) -> tuple[int, NDArray[np.bool_] | None, Callable[[], NearCopies]]:
    """Find calibration rows that repeat others, or refuse them.

    Returns
    -------
    repeats : int
        How many do.
    is_worst : ndarray of bool, or None
        Which of them count as the worst case; None: none.
    find : callable
        Finds near copies among them as well.
    """
    rows, frame, repeats, is_worst = AlikeRows(), frame_of(X), 0, None
    y, columns = rows.numbers(X, target)
    keys = RowHashes.of(columns, y, are_all=True).keys
    if duplicates != "copies":
        alike = first_of(keys), sides.grow, sides.weigh, groups
        repeats = n_repeats(*alike)
        if count_as_worst(repeats, len(sides.weigh) or len(target), duplicates):
            is_worst = repeated_rows(*alike)
    compared = ComparedRows(columns, rows.kinds, y, sides.grow, sides.weigh, groups)
    names = None if frame is None else frame.columns
    find = partial(find_near_copies, compared, names, keys, repeats, with_target=is_of_classes)
    return repeats, is_worst, find


def _encode_rows(
    model: Any,
    X: Any,
    target: NDArray[Any],
    classes: ArrayLike | None,
    sides: TrainCalibrationSplit,
    again: bool,
) -> tuple[AnyColumns, NDArray[Any], Callable[[], Any], dict[str, Any], Int32 | None]:
    """Encode features and targets.

    Returns both, a function that hashes rows, what is learned, and `draw_order` if it is known.
    """
    features, learned = _features(model, X, sides, again)
    if is_classifier(model):
        codes, of_target = _classes(model, target, classes, sides, again)
    else:
        codes, of_target = to_contiguous(target, np.float64), _outputs(model, target, again)
    order = None
    has_growing = not again and len(sides.grow) > 0 and model._numbers_categories()
    if has_growing and learned["categories_"] is not None:
        known = learned["categories_"]
        features, learned["categories_"], order = _numbered(features, known, codes, sides)
    if not model._takes_columns and not isinstance(features, SparseColumns):
        features = FeatureColumns((features.matrix,))
    learned |= of_target
    if not is_classifier(model):
        return features, codes, partial(sample_hashes, *features.parts), learned, order
    exact, of_rows = _hashes(model, features, codes, again)
    return features, codes, lambda: exact, learned | of_rows, order


def _numbered(
    features: AnyColumns,
    categories: Categories,
    codes: NDArray[Any],
    sides: TrainCalibrationSplit,
) -> tuple[FeatureColumns, Categories, Int32]:
    """Number categories as the rows that grow tell; returns `draw_order`, too."""
    assert isinstance(features, FeatureColumns)  # sparse rows hold no categories
    growing, y = features, codes
    if len(sides.grow) and len(sides.weigh):
        growing, y = features.at(sides.grow), codes[sides.grow]
    sums = ColumnSums.of(growing, y, categories.sizes)
    numbers = {j: sums.numbers_of(j) for j in np.flatnonzero(categories.mask).tolist()}
    return renumbered(features, numbers), categories.renumbered(numbers), sums.order()


def _effective_size(weight: Float64 | None, n: int, sample_weight: Any) -> dict[str, Any]:
    """Kish's effective number of n rows; warn if the weights that were given make it small."""
    if weight is None:
        return {"effective_sample_size_": float(n)}
    spread = WeightSpread.of(weight)
    if sample_weight is not None:
        warn_of_uneven_weights(spread)
    return {"effective_sample_size_": spread.effective_size}


def _contents(model: Any, X: Any, target: NDArray[Any]) -> UInt64:
    """Hashes of rows and their targets, as all rows tell features and classes."""
    categories = model._categories_of(X, False)
    features = _checked(model, X, categories, False)
    is_of_classes = is_classifier(model)
    y = (
        np.unique(target, return_inverse=True)[1]
        if is_of_classes
        else to_contiguous(target, np.float64)
    )
    if categories is None:
        order = ColumnSums.of(features, y).order()
    else:
        all_grow = TrainCalibrationSplit.all_grow(len(y))
        features, _, order = _numbered(features, categories, y, all_grow)
    return sample_hashes(*features.parts, y, order=order)


def _kept(
    X: Any,
    target: NDArray[Any],
    weight: Float64 | None,
    groups: NDArray[Any] | None,
    duplicates: str | None,
) -> tuple[tuple[Any, NDArray[Any], Float64 | None, NDArray[Any] | None], Indices | None]:
    """Rows of positive weight, copies as one row, and which of those given they are; None: all."""
    indices: Indices | None = None
    rows = X, target, weight, groups
    if weight is not None and not (weight > 0).all():
        indices = np.flatnonzero(weight > 0)
        if not len(indices):
            raise ValueError("sample_weight must be positive for at least one row")
        rows = _rows_at(rows, indices)
    if duplicates != "copies":
        return rows, indices
    kept, summed = distinct_rows(first_alike(rows[0], rows[1]), *rows[2:])
    if len(kept) < len(rows[1]):
        X, target, _, groups = _rows_at(rows, kept)
        rows, indices = (X, target, summed, groups), kept if indices is None else indices[kept]
    return rows, indices


def _rows_at(rows: tuple[Any, ...], indices: Indices) -> Any:
    return tuple(None if one is None else rows_at(one, indices) for one in rows)


def weighed_targets(
    model: Any, X: Any, y: Any, sample_weight: Any, is_of_classes: bool
) -> tuple[Any, Float64 | None]:
    """Target and weight of each row, checked; those of classes that are given by name are in it."""
    if y is None:
        raise ValueError(
            f"This {type(model).__name__} estimator requires y to be passed, but the target y is None."
        )
    expect_collected("y", y)
    if isinstance(y, (list, tuple)):
        y = to_array("y", y)
    _expect_no_missing_targets(y)
    if not is_of_classes:
        expect_numbers("y", y)
    times = np.asarray(y)
    if times.dtype.kind in "mM" and np.isnat(times).any():
        raise ValueError("Input y contains NaT, where every row must have a class.")
    with np.errstate(invalid="ignore"):  # it adds all numbers up to look for infinite ones
        several = _several_outputs(model, times)
        target = _check_y(y, several, y_numeric=not is_of_classes, estimator=model)
    check_consistent_length(X, target)
    weight = None
    if sample_weight is not None:
        expect_numbers("sample_weight", sample_weight, "biuf")
        weight = to_contiguous(
            _check_sample_weight(sample_weight, target, dtype=np.float64, ensure_non_negative=True)
        )
    if is_of_classes:
        columns = columns_of_targets(target)
        for one in columns:
            check_classification_targets(one)
        factors = getattr(model, "class_weight", None)
        if isinstance(factors, (dict, list)):
            expect_class_weights(factors, len(columns))
            weight = _times(compute_sample_weight(factors, target), weight)
    _expect_sum(weight)
    return target, weight


def _expect_no_missing_targets(y: Any) -> None:
    """Refuse objects among which values are missing; scikit-learn refuses NaN of numbers."""
    given = np.asarray(y)
    if given.dtype.kind != "O" or not given.ndim:  # sparse matrices are objects to NumPy
        return
    values = given.ravel().tolist()
    # Arrays are no targets, and compare with themselves element by element.
    missing = np.flatnonzero([isinstance(one, Hashable) and is_missing(one) for one in values])
    if len(missing):
        row = missing[0] // (given.size // len(given))
        raise ValueError(
            f"Input y contains NaN or other missing values: {len(missing)} of {given.size}, the first "
            f"of them in row {row}. Every row must have a target: leave these rows out"
        )


# Estimators that take several targets, by their kind.
_TAKING_SEVERAL = {
    "Classifier": ("PACBayesTree", "PrunedTree", "TreeForest", "BoostedTrees"),
    "Regressor": ("PACBayesTree", "PrunedTree", "TreeForest", "BoostedTrees"),
}


def _several_outputs(model: Any, y: NDArray[Any]) -> bool:
    """Whether targets are in several columns, which not all models take."""
    if y.ndim != 2 or y.shape[1] < 2:
        return False
    if not model._takes_outputs:
        kind = "Classifier" if is_classifier(model) else "Regressor"
        *others, last = [f"{name}{kind}" for name in _TAKING_SEVERAL[kind]]
        takers = f"{', '.join(others)} and {last}"
        raise ValueError(
            f"y should be a 1d array, got an array of shape {y.shape} instead: "
            f"{type(model).__name__} predicts one output. {takers} take several, and "
            f"sklearn.multioutput.MultiOutput{kind} fits one model for each column"
        )
    return True


def columns_of_targets(target: NDArray[Any]) -> list[NDArray[Any]]:
    """Each target of rows, (n,); numbers that stand beside words are numbers."""
    if target.ndim == 1:
        return [target]
    if target.dtype != object:
        return [*target.T]
    words = [any(isinstance(value, str) for value in one) for one in target.T]
    return [
        one if has_words else np.array(one.tolist())
        for one, has_words in zip(target.T, words, strict=True)
    ]


def _times(factor: Float64, weight: Float64 | None) -> Float64:
    """Weights with those of the classes."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = factor if weight is None else weight * factor
    _expect_sum(product)
    return product


def _expect_sum(weight: Float64 | None) -> None:
    if weight is not None and not has_finite_total(weight):
        raise ValueError(
            f"the weights of all rows must sum to at most {MAX_TOTAL_WEIGHT:g}, class_weight included"
        )


def expect_numbers(name: str, values: Any, kinds: str = "biufc") -> None:
    """Refuse words and objects before they are made numbers of; scikit-learn refuses complex ones."""
    given = to_array(name, values).ravel()
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
    if numbers is not given and has_inexact_integers(numbers):
        check_exact(name, given, numbers)


def _growing(X: Any, sides: TrainCalibrationSplit) -> Any:
    """The rows that grow; all, if none do."""
    both = len(sides.grow) and len(sides.weigh)
    return rows_at(X, sides.grow) if both else X


def _preprocessor(given: Any, X: Any, target: NDArray[Any], sides: TrainCalibrationSplit) -> Any:
    """A preprocessor that only the rows that grow have fitted; None: none is asked for."""
    if given is None:
        return None
    if not len(sides.grow):
        raise ValueError("preprocessor takes rows that grow the tree, and here none do")
    return clone(given).fit(_growing(X, sides), target[sides.grow])


def _expected_rows(model: Any, X: Any) -> Any:
    """Rows as they were given, sparse ones as CSR; refuse those where a model takes none."""
    expect_collected("X", X)
    if not issparse(X):
        return X
    if not model._takes_sparse:
        raise TypeError(
            f"Sparse data was passed for X, but {type(model).__name__} requires dense data: use "
            ".toarray(), or sparse_output=False in the encoder that made it. Boosted trees and forests "
            "of trees take sparse X, as BoostedTreesClassifier does"
        )
    rows: Any = X
    if rows.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse array of shape {rows.shape} instead")
    return rows.tocsr()


def _features(
    model: Any, X: Any, sides: TrainCalibrationSplit, again: bool
) -> tuple[AnyColumns, dict[str, Any]]:
    """Checked features, and what they tell; see `training_rows`."""
    given = getattr(model, "categorical_features", None)
    if not again and issparse(X) and given is not None and not isinstance(given, str):
        raise ValueError(
            f'categorical_features must be None or "from_dtype" where X is sparse, got {given!r}'
        )
    categories = model._categories_of(_growing(X, sides), again)
    if again:
        return _checked(model, X, categories, again), {"categories_": categories}
    names, features = _get_feature_names(X), _checked(model, X, categories, again)
    if categories is not None and model._splits_categories and isinstance(features, FeatureColumns):
        warn_of_identifiers(features, categories, names)
    learned = {"categories_": categories, "n_features_in_": features.n_features}
    return features, {**learned, "feature_names_in_": names}


def _checked(model: Any, X: Any, categories: Categories | None, again: bool) -> AnyColumns:
    """Features as numbers; `again`: those that the model knows."""
    if issparse(X):
        return _checked_sparse(model, X, categories, again)
    if categories is None and width_of_numbers(X):
        categories = Categories((None,) * width_of_numbers(X))
    if categories is not None:
        if again:
            _check_feature_names(model, X, reset=False)
            try:
                _check_n_features(model, X, reset=False)
            except LookupError:  # of a first row, where there is none
                TableColumns.of(X)
                raise
        features = FeatureColumns(tuple(categories.columns(X)))
        shape = len(features), features.n_features
        check_array(np.broadcast_to(0.0, shape), estimator=model, **_NUMBERS)
        return _finite(model, features)
    expect_exact_numbers(X)
    try:
        if again:
            _check_feature_names(model, X, reset=False)
        rows = check_array(X, estimator=model, **_NUMBERS)
        features = _finite(model, FeatureColumns((np.require(rows, None, ["A"]),)))
        if again:
            _check_n_features(model, rows, reset=False)
    except (ValueError, OverflowError):
        expect_columns_of_numbers(X)
        expect_numbers("X", X)
        raise
    return features


def _checked_sparse(
    model: Any, X: Any, categories: Categories | None, again: bool
) -> SparseColumns:
    """The same of a CSR matrix."""
    if categories is not None:
        raise ValueError("X is sparse, but the model was fitted on features of categories")
    if again:
        _check_feature_names(model, X, reset=False)
    expect_exact_numbers(X.data[:, None])
    rows = SparseColumns.of(check_array(X, accept_sparse="csr", estimator=model, **_NUMBERS))
    if rows.n_features > _MOST_FEATURES:
        raise ValueError(f"sparse X has at most {_MOST_FEATURES} features, got {rows.n_features}")
    if again:
        _check_n_features(model, rows.matrix, reset=False)
    (values,) = _finite(model, FeatureColumns((rows.matrix.data,))).parts
    if values is rows.matrix.data:
        return rows
    bounded = rows.matrix.copy()
    bounded.data = values
    return SparseColumns(bounded)


def _finite(model: Any, features: FeatureColumns) -> FeatureColumns:
    """Refuse infinite numbers in scikit-learn's words, or make them the outermost finite ones."""
    if model._takes_infinities:
        return FeatureColumns(tuple(map(_bounded, features.parts)))
    for part in features.parts:
        # Of a table that lies by columns it would make a copy.
        table = part.T if part.flags.f_contiguous else part
        with np.errstate(invalid="ignore"):  # it adds all numbers up to look for infinite ones
            assert_all_finite(
                table, allow_nan=True, estimator_name=type(model).__name__, input_name="X"
            )
    return features


def _bounded(part: NDArray[Any]) -> NDArray[Any]:
    """Numbers, infinite ones made the largest of float64: no cut between others tells them apart."""
    if not part.size:
        return part
    ends = np.fmin.reduce(part, axis=None), np.fmax.reduce(part, axis=None)
    if not np.isinf(ends).any():
        return part
    largest = np.finfo(np.float64).max
    bounded: NDArray[Any] = np.clip(part.astype(np.float64), -largest, largest)
    return bounded


def _classes(
    model: Any,
    target: NDArray[Any],
    classes: ArrayLike | None,
    sides: TrainCalibrationSplit,
    again: bool,
) -> tuple[Int32, dict[str, Any]]:
    """Codes of the target as int32, and the classes; see `training_rows`."""
    outputs = _outputs(model, target, again)
    if target.ndim == 1:
        known = _classes_of(target, classes, sides) if not again else model.classes_
        codes, others = _codes(target, known, sides)
        learned = {"classes_": known, "n_classes_": len(known)}
        if classes is not None:
            codes, others = np.minimum(codes, other_class(len(known))), others[:0]
        if len(sides.weigh):
            learned["_calibration_classes"] = others
        return codes, {**learned, **outputs}
    columns = columns_of_targets(target)
    of_each = model.classes_ if again else [_classes_of(one, None, sides) for one in columns]
    of_columns = [_codes(one, known, sides)[0] for one, known in zip(columns, of_each, strict=True)]
    learned = {"classes_": of_each, "n_classes_": [len(known) for known in of_each]}
    return np.column_stack(of_columns), {**learned, **outputs}


def _classes_of(
    target: NDArray[Any], classes: ArrayLike | None, sides: TrainCalibrationSplit
) -> NDArray[Any]:
    """Classes of a target: those of the rows that grow, if none are given."""
    return np.unique(_growing(target, sides) if classes is None else classes)


def _codes(
    target: NDArray[Any], known: NDArray[Any], sides: TrainCalibrationSplit
) -> tuple[Int32, NDArray[Any]]:
    """The classes of a target by their numbers, and those that are not known."""
    is_known = find_positions(known, target)[1]
    # A class that no growing row has is one that the tree cannot predict: an error, whatever it says.
    if not is_known[sides.grow].all() or not is_known.any():
        raise ValueError(f"y must hold classes among {known}, got {np.unique(target[~is_known])}")
    others = np.unique(target[~is_known])
    return codes_of(target, known, others), others


def codes_of(target: NDArray[Any], known: NDArray[Any], others: NDArray[Any]) -> Int32:
    """Number classes: those that training samples have, then others; see `Training.y`."""
    codes, is_known = find_positions(known, target)
    if len(others):
        beyond = other_class(len(known)) + find_positions(others, target)[0]
        codes = np.where(is_known, codes, beyond)
    return codes.astype(np.int32)


def _outputs(model: Any, target: NDArray[Any], again: bool) -> dict[str, Any]:
    """How many outputs rows have, for models that take several."""
    if not model._takes_outputs:
        return {}
    n_outputs = 1 if target.ndim == 1 else target.shape[1]
    if again and n_outputs != model.n_outputs_:
        raise ValueError(f"y must have {model.n_outputs_} outputs, as in the fit, got {n_outputs}")
    return {"n_outputs_": n_outputs}


def _hashes(
    model: Any, features: AnyColumns, codes: NDArray[Any], again: bool
) -> tuple[UInt64 | None, dict[str, Any]]:
    """Hash each row, and find what the model keeps; None if that of earlier rows is unknown."""
    if again and model.sample_hashes_ is None:
        return None, {"sample_hashes_": None, "_sample_counts": None}
    exact = sample_hashes(*features.parts)
    known = fit_hashes(*features.parts, exact=exact)
    ordered, tables = np.sort(exact), (hash_table(exact, codes),)
    if not again:
        counts = RepeatCounts.of(ordered, tables)
        return exact, {"sample_hashes_": known, "_sample_counts": counts}
    before = getattr(model, "_sample_counts", None)
    both = None if before is None else before.plus(model.sample_hashes_, ordered, tables)
    known = distinct(model.sample_hashes_, known)
    return exact, {"sample_hashes_": known, "_sample_counts": both}


def other_class(n_classes: int) -> int:
    """The first code of classes but those that are known; counting takes two at least."""
    return max(2, n_classes)


def balanced_weights(
    y: NDArray[Any], weight: Float64 | None, sides: TrainCalibrationSplit
) -> Float64:
    """Weight of each row's class by the weights of the training samples; scikit-learn counts them.

    What grows the tree must not depend on rows that only weigh. Where none grow all are counted: their
    weights then shape the posterior alone, and all labellings are certified at once. The mean
    factor, 1, is for classes that no growing row has. Of several targets the factors are multiplied.
    """
    if y.ndim == 2:
        columns = (balanced_weights(one, weight, sides) for one in columns_of_targets(y))
        return np.prod(np.column_stack([*columns]), axis=1)
    classes, codes = np.unique(_growing(y, sides), return_inverse=True)
    totals: NDArray[Any] = np.bincount(codes)
    if weight is not None:  # added up in whatever order they come
        known = _growing(weight, sides)
        totals = np.array([fsum(known[codes == k]) for k in range(len(classes))])
    places, is_known = find_positions(classes, y)
    return np.where(is_known, balanced_factors(totals)[places], 1.0)


def balanced_factors(totals: NDArray[Any]) -> Float64:
    """What the rows of classes of these weights count, so that all classes weigh the same."""
    with np.errstate(over="ignore"):
        factors: Float64 = totals.sum() / (len(totals) * totals)
    return factors


def expect_class_weights(
    class_weight: dict[Any, Any] | list[dict[Any, Any]], n_columns: int = 1
) -> None:
    """Refuse what is no weight: rows that do not weigh more than 0 are left out without a word."""
    if n_columns == 1 and isinstance(class_weight, list):
        raise ValueError(
            f'class_weight must be a dict or "balanced" for y of one column, got {class_weight!r}'
        )
    of_each = class_weight if isinstance(class_weight, list) else [class_weight]
    for label, factor in (pair for one in of_each for pair in _pairs(one)):
        if not isinstance(factor, Real) or not 0 <= float(factor) < np.inf:
            raise ValueError(
                f"class_weight must be finite and non-negative, got {factor!r} for class {label!r}"
            )


def _pairs(class_weight: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must hold a dict for each column, got {class_weight!r}")
    return class_weight.items()


def one_row(x: ArrayLike) -> ArrayLike:
    """Give one row of shape (p,) two dimensions; a table stays as it is."""
    given = to_array("x", x)
    if given.ndim == 2:
        return x
    # Numbers beside strings stay numbers.
    return np.asarray(x, dtype=object if given.dtype.kind == "U" else None)[None]
