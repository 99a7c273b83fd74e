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
from certree.rows.categories import Categories, learn_categories, warn_about_identifiers
from certree.rows.columns import (
    TableColumns,
    as_data_frame,
    copy_raw_values,
    count_numeric_columns,
    expect_columns_of_numbers,
    expect_exact_numbers,
    expect_no_times,
    is_missing,
    take_rows,
)
from certree.rows.draw_order import ColumnSums
from certree.rows.duplicates import (
    Duplicates,
    RowHasher,
    count_repeats,
    decide_worst_case,
    find_first_equal_keys,
    find_first_equal_rows,
    mark_repeats,
    merge_copies,
    warn_of_many_copies,
)
from certree.rows.features import DenseFeatures, renumber_codes
from certree.rows.fitted_attributes import (
    restore_classes,
    restore_features,
    store_classes,
    store_features,
)
from certree.rows.folds import (
    Fold,
    Indices,
    content_folds,
    iterate_group_folds,
    split_by_content,
    split_by_groups,
)
from certree.rows.hashes import RowHashes, compute_fit_hashes, hash_samples, merge_hashes
from certree.rows.near_copies import (
    ComparedRows,
    NearCopies,
    expect_few_near_copies,
    find_near_copies,
)
from certree.rows.out_of_core import expect_collected, expect_in_memory
from certree.rows.precision import warn_of_float32
from certree.rows.relative_weights import WeightSpread, warn_of_uneven_weights
from certree.rows.repeat_counts import RepeatCounts, hash_table
from certree.rows.sparse_rows import DenseOrSparseFeatures, SparseFeatures, to_dense
from certree.rows.split import TrainCalibrationSplit, TrainCalibrationSplitter, check_groups

# How scikit-learn is to check a matrix of features.
# Their numbers are int32.
_MOST_FEATURES = 2**31 - 1
# So few numbers are checked by hand where they are predicted.
_MAX_UNCHECKED_NUMBERS = 1024
_NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,  # column by column, as it may take a copy
    "input_name": "X",
}


class WeightedTarget(NamedTuple):
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

    features: DenseOrSparseFeatures
    y: NDArray[Any]
    weight: Float64 | None
    split: TrainCalibrationSplit
    train_subset: Training | None = None
    offset: Float64 | None = None
    find_near_copies: Callable[[], NearCopies] | None = None
    n_categories: tuple[int | None, ...] | None = None
    fixed_draw_order: Int32 | None = None
    # The features row by row, (n, p); None if they lie otherwise, as of models that take columns.
    X: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", self.features.table)

    @cached_property
    def weight_unit(self) -> float:
        """Mean weight of a row: in units of it all rows together weigh as many as they are."""
        return compute_mean_weight(self.weight)

    @cached_property
    def draw_order(self) -> Int32:
        """In which order columns are looked at and drawn, (p,), as the rows that grow tell."""
        if self.fixed_draw_order is not None:
            return self.fixed_draw_order
        if self.train_subset is not None:
            return self.train_subset.draw_order
        return ColumnSums.sum_rows(self.features, self.y, self.n_categories).order_columns()

    @property
    def target(self) -> WeightedTarget:
        """What is added up of these rows."""
        return WeightedTarget(self.y, self.weight, self.weight_unit)

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
        expect_few_near_copies(found, len(self.split.calibration) or len(self.y), duplicates)
        split = replace(self.split, near_copies=found)
        return replace(self, split=split, find_near_copies=None)

    def take(self, indices: Indices) -> Training:
        """Take some of these rows as those of a fit of their own, with a mean weight of their own."""
        weight = None if self.weight is None else self.weight[indices]
        features, y = self.features.take(indices), self.y[indices]
        groups = None if self.split.groups is None else self.split.groups[indices]
        split = replace(TrainCalibrationSplit.train_on_all(len(y)), groups=groups)
        offset = None if self.offset is None else self.offset[:, indices]
        order = vars(self).get("draw_order", self.fixed_draw_order)
        sizes = self.n_categories
        return Training(
            features, y, weight, split, offset=offset, n_categories=sizes, fixed_draw_order=order
        )

    def split_folds(self, cv: Any, random_state: np.random.RandomState) -> list[Fold]:
        """Split the rows as scikit-learn's `cv` says; a number of folds goes by content or groups."""
        if cv is None or isinstance(cv, Integral):
            n_folds = 5 if cv is None else int(cv)
            if self.split.groups is not None:
                parts = iterate_group_folds(self.split.groups, n_folds, random_state)
                return [Fold(*part) for part in parts]
            about = random_state, self.weight, self.draw_order
            return list(content_folds(self.features.matrix, self.y, n_folds, *about))
        # Importing it takes longer than importing all of certree; most models never need it.
        from sklearn.model_selection import check_cv

        # Text has a method of that name, too.
        splits_rows = hasattr(cv, "split") and not isinstance(cv, str | bytes)
        # A splitter splits the rows that are left; given indices are those of all rows.
        place, indices = np.arange(len(self.y)), self.split.indices
        if indices is not None and self.split.n_given is not None and not splits_rows:
            place = np.full(self.split.n_given, -1)
            place[indices] = np.arange(len(indices))
        classifier = self.y.dtype == np.int32
        splits = (
            check_cv(cv, self.y, classifier=classifier).split(
                self.features.matrix, self.y, self.split.groups
            )
            if splits_rows or not isinstance(cv, Iterable)
            else cv
        )
        folds = [Fold(*_check_fold(place, split)) for split in splits]
        # Rows of weight zero are as if absent, and so are folds that have no others on one side.
        folds = [fold for fold in folds if len(fold.train) and len(fold.validation)]
        if not folds:
            raise ValueError("cv must have at least one fold, got none")
        return folds

    def hold_out_rows(
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
        groups = self.split.groups
        n = len(self.y) if groups is None else len(np.unique(groups))
        n_held = count_held_out(size, n, "rows" if groups is None else "groups")
        if groups is not None:
            fold = Fold(*split_by_groups(groups, n_held, random_state))
        else:
            for one in self._class_columns:
                expect_enough_rows_of_classes(np.bincount(one), size, n, n_held)
            about = random_state, self.weight, self.draw_order
            fold = split_by_content(self.features.matrix, self.y, n_held, *about)
        columns = self._class_columns
        n_lost = sum(len(np.setdiff1d(one[fold.validation], one[fold.train])) for one in columns)
        if n_lost:
            raise_for_lost_classes(size, n_lost)
        # Those that are held out have no say in the order of columns.
        return replace(self.take(fold.train), fixed_draw_order=None), self.take(fold.validation)

    @property
    def _class_columns(self) -> list[Int32]:
        """Classes of each target, if these are classes."""
        return [*self.y.reshape(len(self.y), -1).T] if self.y.dtype == np.int32 else []


def compute_mean_weight(weight: Float64 | None) -> float:
    """Compute the mean weight of rows, which does not depend on their order; 1 without weights."""
    return 1.0 if weight is None else fsum(weight) / len(weight)


def raise_for_lost_classes(size: float, n_lost: int) -> NoReturn:
    """Say that some classes have no rows that train."""
    raise ValueError(
        f"validation_fraction={size} holds out all rows of {n_lost} of the classes: make it smaller, "
        "or give X_val and y_val"
    )


def count_held_out(size: float, n: int, units: str) -> int:
    """How many of n rows or groups are held out, which leaves some on both sides."""
    n_held = ceil(size * n) if isinstance(size, float | np.floating) else int(size)
    if not 0 < n_held < n:
        raise ValueError(
            f"With n_samples={n} {units} and validation_fraction={size}, the resulting "
            f"{'train' if n_held else 'validation'} set will be empty. Adjust validation_fraction, or "
            "give X_val and y_val."
        )
    return n_held


def expect_enough_rows_of_classes(
    n_of_class: NDArray[Any], size: float, n: int, n_held: int
) -> None:
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


def _check_fold(place: Indices, split: Any) -> tuple[Indices, Indices]:
    """Both sides of a fold that was given, by the places of those rows that are left."""
    if not isinstance(split, (tuple, list, np.ndarray)) or len(split) != 2:
        raise ValueError(f"cv must hold pairs of rows that grow and rows that judge, got {split!r}")
    grow, judge = (_check_row_indices(part, len(place)) for part in split)
    if not len(grow) or not len(judge):
        raise ValueError(
            f"each fold of cv must have rows on both sides, got {len(grow)} and {len(judge)}"
        )
    return _find_kept_rows(place, grow), _find_kept_rows(place, judge)


def _check_row_indices(part: Any, n: int) -> Indices:
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


def _find_kept_rows(place: Indices, rows: Indices) -> Indices:
    kept = place[rows]
    return kept[kept >= 0]


def get_feature_names(model: Any) -> list[str]:
    """Names of the features of any fitted model, "x[0]" and so on where rows had none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x[{j}]" for j in range(model.n_features_in_)] if names is None else [*names]


class RowInputMixin:
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

    def _set_parameters(self, parameters: dict[str, Any]) -> None:
        """Keep ``locals()`` of a constructor, each parameter under its own name."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    def _prepare_training(self, X: Any, y: Any, sample_weight: Any = None, **how: Any) -> Training:
        """Take in rows as `training_rows` does, and keep what they tell."""
        expect_in_memory(self, X)
        training, learned = training_rows(self, X, y, sample_weight, **how)
        self.__dict__.update(learned)
        if learned.get("feature_names_in_", self) is None:
            del self.__dict__["feature_names_in_"]
        return training

    def __stored__(self) -> dict[str, Any]:
        """What a file holds of the fit."""
        classes = store_classes(self) if is_classifier(self) else {}
        return {**store_features(self), **classes}

    def __restore__(self, stored: StoredState) -> None:
        """Check the parameters and what a file holds, and set the fitted attributes."""
        model: Any = self
        model._validate_params()
        if self._takes_outputs:
            self.n_outputs_ = 1
        elif "n_outputs" in stored:
            raise ValueError(f"it holds several targets, and {type(self).__name__} predicts one")
        self.__dict__.update(restore_features(stored))
        if is_classifier(self):
            self.__dict__.update(restore_classes(stored))

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

    def _find_categories(self, X: Any, reuse_encoding: bool) -> Categories | None:
        """The categories of rows; `again`: those that are known, and more where they may be added."""
        return (
            self.categories_ if reuse_encoding else learn_categories(X, self.categorical_features)
        )

    def _encode_new_rows(self, X: Any) -> NDArray[Any]:
        """Check rows to predict against what is known; categories become codes, and all is dense."""
        return to_dense(self._encode_new_rows_or_csr(X))

    def _encode_new_rows_or_csr(self, X: Any) -> Any:
        """Do the same, and leave rows sparse that are."""
        if self._can_skip_checks(X):
            return X
        return self._encode_new_features(X).matrix

    def _encode_new_features(self, X: Any) -> DenseOrSparseFeatures:
        """Do what `_encode_new_rows` does, and leave the features in the memory in which they came."""
        features = _check_features(
            self, self._preprocess_new_rows(X), self.categories_, reuse_encoding=True
        )
        names = [self._feature_names()[j] for j in self._float64_features if features.is_float32(j)]
        warn_of_float32(names, "X holds float32", "Pass X as float64.")
        return features

    def _score_in_blocks(self, X: Any, scores: Callable[[NDArray[Any]], Float64]) -> Float64:
        """Scores (k, n) of rows to predict by those of a table of some of them."""
        return (
            scores(X)
            if self._can_skip_checks(X)
            else self._encode_new_features(X).score_in_blocks(scores)
        )

    @property
    def _float64_features(self) -> Int32:
        """Find the features that must be float64, (any,); see `Trees.float64_features`."""
        trees = self.__dict__.get("trees_", self.__dict__.get("tree_"))
        return getattr(trees, "float64_features", np.zeros(0, dtype=np.int32))

    def _can_skip_checks(self, X: Any) -> bool:
        """Whether these are a few rows that all checks would hand back unchanged.

        They take some ten times as long as the prediction of a row.
        """
        fitted = self.__dict__
        if type(X) is not np.ndarray or X.ndim != 2 or not 0 < X.size <= _MAX_UNCHECKED_NUMBERS:
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

    def _encode_with_raw_values(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Do the same, and give beside the rows their values as they were given, or preprocessed."""
        table = to_dense(self._preprocess_new_rows(X))
        return _check_features(
            self, table, self.categories_, reuse_encoding=True
        ).matrix, copy_raw_values(table)

    def _preprocess_new_rows(self, X: Any) -> Any:
        """Rows as the fit learned them: dense and preprocessed."""
        check_is_fitted(self)
        X = _check_row_type(self, X)
        preprocessor = getattr(self, "preprocessor_", None)
        return X if preprocessor is None else _check_row_type(self, preprocessor.transform(X))

    def _feature_names(self) -> list[str]:
        return get_feature_names(self)

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

    def _orders_categories_by_rows(self) -> bool:
        """Whether rows that grow number categories; else they are numbered by spelling."""
        return True

    def _category_mask(self) -> NDArray[np.bool_] | None:
        """Which features hold categories; None: none does."""
        return None if self.categories_ is None else self.categories_.mask

    def _find_class_codes(self, name: str, y: Any) -> NDArray[np.intp]:
        """Places of classes among those of the fit, (n,) or (n_outputs, n); others are an error."""
        classes: Any = self.classes_
        if not isinstance(classes, list):
            return _find_class_places(name, classes, column_or_1d(y))
        given, n = to_array(name, y), len(classes)
        if given.ndim != 2 or given.shape[1] != n:
            raise ValueError(f"{name} must have shape (n, {n}), as in the fit, got {given.shape}")
        columns = zip(classes, split_target_columns(given), strict=True)
        return np.stack([_find_class_places(name, known, one) for known, one in columns])


def _find_class_places(name: str, classes: NDArray[Any], given: NDArray[Any]) -> NDArray[np.intp]:
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
    row_splitter: TrainCalibrationSplitter | None = None,
    classes: ArrayLike | None = None,
    reuse_encoding: bool = False,
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
    X = _check_row_type(model, X)
    if not hasattr(X, "__getitem__"):  # what is no array yet cannot be divided by rows
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=model)
    is_of_classes = is_classifier(model)
    target, weight = check_target_and_weight(model, X, y, sample_weight, is_of_classes)
    n_given = len(target)
    if groups is not None:
        groups = check_groups(groups, n_given)
    duplicates = getattr(model, "duplicates", None)
    (X, target, weight, groups), indices = _drop_rows(X, target, weight, groups, duplicates)
    split = TrainCalibrationSplit.train_on_all(len(target))
    if row_splitter is not None:
        split = row_splitter(len(target), groups, weight, partial(_hash_rows, model, X, target))
    repeats, is_worst, find = 0, None, None
    if duplicates is not None:
        repeats, is_worst, find = _find_repeats(X, target, split, groups, duplicates, is_of_classes)
    if getattr(model, "class_weight", None) == "balanced":  # not in the bags of a forest
        weight = _multiply_weights(compute_balanced_weights(target, weight, split), weight)
    learned = {} if reuse_encoding else _measure_effective_size(weight, len(target), sample_weight)
    if hasattr(model, "preprocessor"):
        learned["preprocessor_"] = step = _fit_preprocessor(model.preprocessor, X, target, split)
        X = X if step is None else _check_row_type(model, step.transform(X))
    features, codes, hashes, of_rows, order = _encode_rows(
        model, X, target, classes, split, reuse_encoding
    )
    learned |= of_rows
    if model._draws_rows and not reuse_encoding and groups is None and duplicates is None:
        counts = of_rows.get("_sample_counts")
        warn_of_many_copies(codes, hashes, 0 if counts is None else counts.n_distinct)
    about = groups, indices, n_given, repeats, duplicates == "copies", is_worst
    split = TrainCalibrationSplit(split.train, split.calibration, *about)
    sizes = None if learned["categories_"] is None else learned["categories_"].sizes
    inferred: dict[str, Any] = {"n_categories": sizes, "fixed_draw_order": order}
    training = Training(features, codes, weight, split, find_near_copies=find, **inferred)
    if duplicates is not None and not (row_splitter is not None and row_splitter.is_pilot):
        training = training.expect_few_near_copies(duplicates)
    if len(split.train) and len(split.calibration):
        training = replace(training, train_subset=training.take(split.train))
    return training, learned


def _find_repeats(
    X: Any,
    target: NDArray[Any],
    split: TrainCalibrationSplit,
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
    rows, frame, repeats, is_worst = RowHasher(), as_data_frame(X), 0, None
    y, columns = rows.encode(X, target)
    keys = RowHashes.hash_rows(columns, y, are_all=True).keys
    if duplicates != "copies":
        alike = find_first_equal_keys(keys), split.train, split.calibration, groups
        repeats = count_repeats(*alike)
        if decide_worst_case(repeats, len(split.calibration) or len(target), duplicates):
            is_worst = mark_repeats(*alike)
    compared = ComparedRows(columns, rows.kinds, y, split.train, split.calibration, groups)
    names = None if frame is None else frame.columns
    find = partial(find_near_copies, compared, names, keys, repeats, with_target=is_of_classes)
    return repeats, is_worst, find


def _encode_rows(
    model: Any,
    X: Any,
    target: NDArray[Any],
    classes: ArrayLike | None,
    split: TrainCalibrationSplit,
    reuse_encoding: bool,
) -> tuple[DenseOrSparseFeatures, NDArray[Any], Callable[[], Any], dict[str, Any], Int32 | None]:
    """Encode features and targets.

    Returns both, a function that hashes rows, what is learned, and `draw_order` if it is known.
    """
    features, learned = _encode_features(model, X, split, reuse_encoding)
    if is_classifier(model):
        codes, of_target = _encode_target(model, target, classes, split, reuse_encoding)
    else:
        codes, of_target = (
            to_contiguous(target, np.float64),
            _count_outputs(model, target, reuse_encoding),
        )
    order = None
    has_growing = not reuse_encoding and len(split.train) > 0 and model._orders_categories_by_rows()
    if has_growing and learned["categories_"] is not None:
        known = learned["categories_"]
        features, learned["categories_"], order = _renumber_categories(
            features, known, codes, split
        )
    if not model._takes_columns and not isinstance(features, SparseFeatures):
        features = DenseFeatures((features.matrix,))
    learned |= of_target
    if not is_classifier(model):
        return features, codes, partial(hash_samples, *features.tables), learned, order
    exact, of_rows = _hash_fit_rows(model, features, codes, reuse_encoding)
    return features, codes, lambda: exact, learned | of_rows, order


def _renumber_categories(
    features: DenseOrSparseFeatures,
    categories: Categories,
    codes: NDArray[Any],
    split: TrainCalibrationSplit,
) -> tuple[DenseFeatures, Categories, Int32]:
    """Number categories as the rows that grow tell; returns `draw_order`, too."""
    assert isinstance(features, DenseFeatures)  # sparse rows hold no categories
    growing, y = features, codes
    if len(split.train) and len(split.calibration):
        growing, y = features.take(split.train), codes[split.train]
    sums = ColumnSums.sum_rows(growing, y, categories.sizes)
    numbers = {j: sums.number_categories(j) for j in np.flatnonzero(categories.mask).tolist()}
    return renumber_codes(features, numbers), categories.renumber(numbers), sums.order_columns()


def _measure_effective_size(weight: Float64 | None, n: int, sample_weight: Any) -> dict[str, Any]:
    """Kish's effective number of n rows; warn if the weights that were given make it small."""
    if weight is None:
        return {"effective_sample_size_": float(n)}
    spread = WeightSpread.measure(weight)
    if sample_weight is not None:
        warn_of_uneven_weights(spread)
    return {"effective_sample_size_": spread.effective_size}


def _hash_rows(model: Any, X: Any, target: NDArray[Any]) -> UInt64:
    """Hashes of rows and their targets, as all rows tell features and classes."""
    categories = model._find_categories(X, False)
    features = _check_features(model, X, categories, False)
    is_of_classes = is_classifier(model)
    y = (
        np.unique(target, return_inverse=True)[1]
        if is_of_classes
        else to_contiguous(target, np.float64)
    )
    if categories is None:
        order = ColumnSums.sum_rows(features, y).order_columns()
    else:
        all_grow = TrainCalibrationSplit.train_on_all(len(y))
        features, _, order = _renumber_categories(features, categories, y, all_grow)
    return hash_samples(*features.tables, y, order=order)


def _drop_rows(
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
        rows = _take_each(rows, indices)
    if duplicates != "copies":
        return rows, indices
    kept, summed = merge_copies(find_first_equal_rows(rows[0], rows[1]), *rows[2:])
    if len(kept) < len(rows[1]):
        X, target, _, groups = _take_each(rows, kept)
        rows, indices = (X, target, summed, groups), kept if indices is None else indices[kept]
    return rows, indices


def _take_each(rows: tuple[Any, ...], indices: Indices) -> Any:
    return tuple(None if one is None else take_rows(one, indices) for one in rows)


def check_target_and_weight(
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
        several = _has_target_columns(model, times)
        target = _check_y(y, several, y_numeric=not is_of_classes, estimator=model)
    check_consistent_length(X, target)
    weight = None
    if sample_weight is not None:
        expect_numbers("sample_weight", sample_weight, "biuf")
        weight = to_contiguous(
            _check_sample_weight(sample_weight, target, dtype=np.float64, ensure_non_negative=True)
        )
    if is_of_classes:
        columns = split_target_columns(target)
        for one in columns:
            check_classification_targets(one)
        factors = getattr(model, "class_weight", None)
        if isinstance(factors, (dict, list)):
            check_class_weights(factors, len(columns))
            weight = _multiply_weights(compute_sample_weight(factors, target), weight)
    _expect_finite_total(weight)
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


def _has_target_columns(model: Any, y: NDArray[Any]) -> bool:
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


def split_target_columns(target: NDArray[Any]) -> list[NDArray[Any]]:
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


def _multiply_weights(factor: Float64, weight: Float64 | None) -> Float64:
    """Weights with those of the classes."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = factor if weight is None else weight * factor
    _expect_finite_total(product)
    return product


def _expect_finite_total(weight: Float64 | None) -> None:
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


def _take_training_rows(X: Any, split: TrainCalibrationSplit) -> Any:
    """The rows that grow; all, if none do."""
    both = len(split.train) and len(split.calibration)
    return take_rows(X, split.train) if both else X


def _fit_preprocessor(
    given: Any, X: Any, target: NDArray[Any], split: TrainCalibrationSplit
) -> Any:
    """A preprocessor that only the rows that grow have fitted; None: none is asked for."""
    if given is None:
        return None
    if not len(split.train):
        raise ValueError("preprocessor takes rows that grow the tree, and here none do")
    return clone(given).fit(_take_training_rows(X, split), target[split.train])


def _check_row_type(model: Any, X: Any) -> Any:
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


def _encode_features(
    model: Any, X: Any, split: TrainCalibrationSplit, reuse_encoding: bool
) -> tuple[DenseOrSparseFeatures, dict[str, Any]]:
    """Checked features, and what they tell; see `training_rows`."""
    given = getattr(model, "categorical_features", None)
    if not reuse_encoding and issparse(X) and given is not None and not isinstance(given, str):
        raise ValueError(
            f'categorical_features must be None or "from_dtype" where X is sparse, got {given!r}'
        )
    categories = model._find_categories(_take_training_rows(X, split), reuse_encoding)
    if reuse_encoding:
        return _check_features(model, X, categories, reuse_encoding), {"categories_": categories}
    names, features = _get_feature_names(X), _check_features(model, X, categories, reuse_encoding)
    if categories is not None and model._splits_categories and isinstance(features, DenseFeatures):
        warn_about_identifiers(features, categories, names)
    learned = {"categories_": categories, "n_features_in_": features.n_features}
    return features, {**learned, "feature_names_in_": names}


def _check_features(
    model: Any, X: Any, categories: Categories | None, reuse_encoding: bool
) -> DenseOrSparseFeatures:
    """Features as numbers; `again`: those that the model knows."""
    if issparse(X):
        return _check_sparse_features(model, X, categories, reuse_encoding)
    if categories is None and count_numeric_columns(X):
        categories = Categories((None,) * count_numeric_columns(X))
    if categories is not None:
        if reuse_encoding:
            _check_feature_names(model, X, reset=False)
            try:
                _check_n_features(model, X, reset=False)
            except LookupError:  # of a first row, where there is none
                TableColumns.read(X)
                raise
        features = DenseFeatures(tuple(categories.encode_columns(X)))
        shape = len(features), features.n_features
        check_array(np.broadcast_to(0.0, shape), estimator=model, **_NUMBERS)
        return _check_finite(model, features)
    expect_exact_numbers(X)
    try:
        if reuse_encoding:
            _check_feature_names(model, X, reset=False)
        rows = check_array(X, estimator=model, **_NUMBERS)
        features = _check_finite(model, DenseFeatures((np.require(rows, None, ["A"]),)))
        if reuse_encoding:
            _check_n_features(model, rows, reset=False)
    except (ValueError, OverflowError):
        expect_columns_of_numbers(X)
        expect_numbers("X", X)
        raise
    return features


def _check_sparse_features(
    model: Any, X: Any, categories: Categories | None, reuse_encoding: bool
) -> SparseFeatures:
    """The same of a CSR matrix."""
    if categories is not None:
        raise ValueError("X is sparse, but the model was fitted on features of categories")
    if reuse_encoding:
        _check_feature_names(model, X, reset=False)
    expect_exact_numbers(X.data[:, None])
    rows = SparseFeatures.from_csr(check_array(X, accept_sparse="csr", estimator=model, **_NUMBERS))
    if rows.n_features > _MOST_FEATURES:
        raise ValueError(f"sparse X has at most {_MOST_FEATURES} features, got {rows.n_features}")
    if reuse_encoding:
        _check_n_features(model, rows.matrix, reset=False)
    (values,) = _check_finite(model, DenseFeatures((rows.matrix.data,))).tables
    if values is rows.matrix.data:
        return rows
    bounded = rows.matrix.copy()
    bounded.data = values
    return SparseFeatures(bounded)


def _check_finite(model: Any, features: DenseFeatures) -> DenseFeatures:
    """Refuse infinite numbers in scikit-learn's words, or make them the outermost finite ones."""
    if model._takes_infinities:
        return DenseFeatures(tuple(map(_clip_infinities, features.tables)))
    for part in features.tables:
        # Of a table that lies by columns it would make a copy.
        table = part.T if part.flags.f_contiguous else part
        with np.errstate(invalid="ignore"):  # it adds all numbers up to look for infinite ones
            assert_all_finite(
                table, allow_nan=True, estimator_name=type(model).__name__, input_name="X"
            )
    return features


def _clip_infinities(part: NDArray[Any]) -> NDArray[Any]:
    """Numbers, infinite ones made the largest of float64: no cut between others tells them apart."""
    if not part.size:
        return part
    ends = np.fmin.reduce(part, axis=None), np.fmax.reduce(part, axis=None)
    if not np.isinf(ends).any():
        return part
    largest = np.finfo(np.float64).max
    bounded: NDArray[Any] = np.clip(part.astype(np.float64), -largest, largest)
    return bounded


def _encode_target(
    model: Any,
    target: NDArray[Any],
    classes: ArrayLike | None,
    split: TrainCalibrationSplit,
    reuse_encoding: bool,
) -> tuple[Int32, dict[str, Any]]:
    """Codes of the target as int32, and the classes; see `training_rows`."""
    outputs = _count_outputs(model, target, reuse_encoding)
    if target.ndim == 1:
        known = _find_classes(target, classes, split) if not reuse_encoding else model.classes_
        codes, others = _encode_column_of_classes(target, known, split)
        learned = {"classes_": known, "n_classes_": len(known)}
        if classes is not None:
            codes, others = np.minimum(codes, get_first_untrained_code(len(known))), others[:0]
        if len(split.calibration):
            learned["_calibration_classes"] = others
        return codes, {**learned, **outputs}
    columns = split_target_columns(target)
    of_each = (
        model.classes_ if reuse_encoding else [_find_classes(one, None, split) for one in columns]
    )
    of_columns = [
        _encode_column_of_classes(one, known, split)[0]
        for one, known in zip(columns, of_each, strict=True)
    ]
    learned = {"classes_": of_each, "n_classes_": [len(known) for known in of_each]}
    return np.column_stack(of_columns), {**learned, **outputs}


def _find_classes(
    target: NDArray[Any], classes: ArrayLike | None, split: TrainCalibrationSplit
) -> NDArray[Any]:
    """Classes of a target: those of the rows that grow, if none are given."""
    return np.unique(_take_training_rows(target, split) if classes is None else classes)


def _encode_column_of_classes(
    target: NDArray[Any], known: NDArray[Any], split: TrainCalibrationSplit
) -> tuple[Int32, NDArray[Any]]:
    """The classes of a target by their numbers, and those that are not known."""
    is_known = find_positions(known, target)[1]
    # A class that no growing row has is one that the tree cannot predict: an error, whatever it says.
    if not is_known[split.train].all() or not is_known.any():
        raise ValueError(f"y must hold classes among {known}, got {np.unique(target[~is_known])}")
    others = np.unique(target[~is_known])
    return encode_classes(target, known, others), others


def encode_classes(target: NDArray[Any], known: NDArray[Any], others: NDArray[Any]) -> Int32:
    """Number classes: those that training samples have, then others; see `Training.y`."""
    codes, is_known = find_positions(known, target)
    if len(others):
        beyond = get_first_untrained_code(len(known)) + find_positions(others, target)[0]
        codes = np.where(is_known, codes, beyond)
    return codes.astype(np.int32)


def _count_outputs(model: Any, target: NDArray[Any], reuse_encoding: bool) -> dict[str, Any]:
    """How many outputs rows have, for models that take several."""
    if not model._takes_outputs:
        return {}
    n_outputs = 1 if target.ndim == 1 else target.shape[1]
    if reuse_encoding and n_outputs != model.n_outputs_:
        raise ValueError(f"y must have {model.n_outputs_} outputs, as in the fit, got {n_outputs}")
    return {"n_outputs_": n_outputs}


def _hash_fit_rows(
    model: Any, features: DenseOrSparseFeatures, codes: NDArray[Any], reuse_encoding: bool
) -> tuple[UInt64 | None, dict[str, Any]]:
    """Hash each row, and find what the model keeps; None if that of earlier rows is unknown."""
    if reuse_encoding and model.sample_hashes_ is None:
        return None, {"sample_hashes_": None, "_sample_counts": None}
    exact = hash_samples(*features.tables)
    known = compute_fit_hashes(*features.tables, exact=exact)
    ordered, tables = np.sort(exact), (hash_table(exact, codes),)
    if not reuse_encoding:
        counts = RepeatCounts.count(ordered, tables)
        return exact, {"sample_hashes_": known, "_sample_counts": counts}
    before = getattr(model, "_sample_counts", None)
    both = None if before is None else before.add(model.sample_hashes_, ordered, tables)
    known = merge_hashes(model.sample_hashes_, known)
    return exact, {"sample_hashes_": known, "_sample_counts": both}


def get_first_untrained_code(n_classes: int) -> int:
    """The first code of classes but those that are known; counting takes two at least."""
    return max(2, n_classes)


def compute_balanced_weights(
    y: NDArray[Any], weight: Float64 | None, split: TrainCalibrationSplit
) -> Float64:
    """Weight of each row's class by the weights of the training samples; scikit-learn counts them.

    What grows the tree must not depend on rows that only weigh. Where none grow all are counted: their
    weights then shape the posterior alone, and all labellings are certified at once. The mean
    factor, 1, is for classes that no growing row has. Of several targets the factors are multiplied.
    """
    if y.ndim == 2:
        columns = (compute_balanced_weights(one, weight, split) for one in split_target_columns(y))
        return np.prod(np.column_stack([*columns]), axis=1)
    classes, codes = np.unique(_take_training_rows(y, split), return_inverse=True)
    totals: NDArray[Any] = np.bincount(codes)
    if weight is not None:  # added up in whatever order they come
        known = _take_training_rows(weight, split)
        totals = np.array([fsum(known[codes == k]) for k in range(len(classes))])
    places, is_known = find_positions(classes, y)
    return np.where(is_known, compute_balanced_factors(totals)[places], 1.0)


def compute_balanced_factors(totals: NDArray[Any]) -> Float64:
    """What the rows of classes of these weights count, so that all classes weigh the same."""
    with np.errstate(over="ignore"):
        factors: Float64 = totals.sum() / (len(totals) * totals)
    return factors


def check_class_weights(
    class_weight: dict[Any, Any] | list[dict[Any, Any]], n_columns: int = 1
) -> None:
    """Refuse what is no weight: rows that do not weigh more than 0 are left out without a word."""
    if n_columns == 1 and isinstance(class_weight, list):
        raise ValueError(
            f'class_weight must be a dict or "balanced" for y of one column, got {class_weight!r}'
        )
    of_each = class_weight if isinstance(class_weight, list) else [class_weight]
    for label, factor in (pair for one in of_each for pair in _get_class_weights(one)):
        if not isinstance(factor, Real) or not 0 <= float(factor) < np.inf:
            raise ValueError(
                f"class_weight must be finite and non-negative, got {factor!r} for class {label!r}"
            )


def _get_class_weights(class_weight: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must hold a dict for each column, got {class_weight!r}")
    return class_weight.items()


def to_table(x: ArrayLike) -> ArrayLike:
    """Give one row of shape (p,) two dimensions; a table stays as it is."""
    given = to_array("x", x)
    if given.ndim == 2:
        return x
    # Numbers beside strings stay numbers.
    return np.asarray(x, dtype=object if given.dtype.kind == "U" else None)[None]
