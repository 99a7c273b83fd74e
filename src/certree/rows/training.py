"""Check and encode the X, y, weights and groups that `fit` gets, and the X that `predict` gets.

`training_rows` does the following, in this order: check the target and the weights, drop rows of
weight zero, split rows into training and calibration set, preprocess, learn categories, check the
features, encode the classes. `RowInputMixin` is the base class of the estimators that call it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
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
from sklearn.utils._param_validation import InvalidParameterError
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
    raise_for_zero_weights,
    to_array,
    to_contiguous,
)
from certree.interface.fitted_state import (
    DRAWN_GROUPS_ATTRIBUTE,
    GROUPS_ATTRIBUTE,
    TIME_ATTRIBUTE,
    available_if,
    snapshot_method,
)
from certree.interface.metadata_requests import shorten_request_docs
from certree.interface.parameter_aliases import (
    METHODS,
    add_attribute_hints,
    check_for_aliases,
    check_nested_parameters,
    explain_invalid_value,
    rejects_aliases,
    rejects_argument_aliases,
)
from certree.interface.stored_fields import StoredField, restore_fields, store_fields
from certree.interface.stored_state import DamagedModelError, StoredState
from certree.rows.calendar_parts import (
    DateFormat,
    append_parts,
    choose_all_parts,
    describe_dates,
    draw_samples,
    fold_parts,
    list_owners,
    list_parts,
    name_parts,
)
from certree.rows.categories import (
    Categories,
    learn_categories,
    make_categorical_mask,
    warn_about_identifiers,
)
from certree.rows.columns import (
    TableColumns,
    as_data_frame,
    copy_raw_values,
    count_numeric_columns,
    expect_columns_of_numbers,
    expect_exact_numbers,
    expect_no_times,
    expect_table,
    find_first_non_number,
    is_missing,
    take_rows,
    to_plain_columns,
)
from certree.rows.dates import DateColumn, convert_dates, learn_dates
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
    warn_if_many_repeat,
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
from certree.rows.monotonic import check_monotonic_cst
from certree.rows.near_copies import (
    ComparedRows,
    NearCopies,
    expect_few_near_copies,
    find_near_copies,
)
from certree.rows.out_of_core import expect_collected, expect_in_memory, expect_no_column_name
from certree.rows.precision import warn_of_float32
from certree.rows.relative_weights import WeightSpread, warn_of_uneven_weights
from certree.rows.repeat_counts import RepeatCounts, hash_table
from certree.rows.small_frames import encode_small_frame
from certree.rows.sparse_rows import DenseOrSparseFeatures, SparseFeatures, to_dense, to_sparse
from certree.rows.split import (
    TrainCalibrationSplit,
    TrainCalibrationSplitter,
    check_groups,
    draw_copies,
    number_by_first,
    rank_units,
)
from certree.rows.time_order import (
    RowTimes,
    expect_classes_in_both_parts,
    expect_folds_by_number,
)
from certree.tables.fitted_types import FORMAT_ATTRIBUTE
from certree.tables.table import read_attached_format

# Indices of features are int32.
_MOST_FEATURES = 2**31 - 1
# What to do if there are too few rows to hold some out. Every estimator can do it, also those whose
# fit takes no X_val, and models in a Pipeline.
_SCORE_TRAINING_ROWS = "or use validation_fraction=None, which scores the training rows"
# Fraction of the rows in time order, the latest ones, that validates instead of folds.
VALIDATION_FRACTION = 0.2
# Tables with at most so many numbers may skip scikit-learn's slow checks in predict.
_MAX_UNCHECKED_NUMBERS = 1024
_NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,  # checked column by column, which needs no copy
    "input_name": "X",
}


class WeightedTarget(NamedTuple):
    """Targets and weights of rows, from which class counts or moments of tree nodes are summed up.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, n_outputs)
        Class codes (int32) or numeric targets (float64); see `Training`.
    weight : ndarray of float64, shape (n,), or None
        Positive weight of each row; None: 1 each.
    weight_unit : float
        Mean weight of the rows. Divided by it, the weights sum to n.
    """

    y: NDArray[Any]
    weight: Float64 | None
    weight_unit: float


@dataclass(frozen=True, eq=False)
class Training:
    """The rows of a fit after checks and encoding, and their training and calibration set.

    `training_rows` makes an instance. Rows of weight zero are left out.

    Parameters
    ----------
    features : DenseFeatures or SparseFeatures
        Features of the n rows: numbers, and codes of categories; NaN where a value is missing.
    y : ndarray of shape (n,), or (n, n_outputs)
        Class codes 0, 1, ... (int32) or numeric targets (float64). Classes that only calibration
        rows have get codes from ``get_first_untrained_code(n_classes)`` on. If the classes were
        passed to `fit` as an argument, all classes that are not among them have this code.
    weight : ndarray of float64, shape (n,), or None
        Positive weight of each row; None: 1 each. Models depend on ratios of weights only.
    split : TrainCalibrationSplit
        Training set, calibration set and groups of these rows. In a fit without a certificate all
        rows are in the training set.
    train_subset : Training or None
        The rows of the training set alone; None if the training or the calibration set is empty.
    offset : ndarray of float64, shape (n_outputs, n), or None
        Score from which boosting starts in each row; None: 0.
    find_near_copies : callable or None
        Function without arguments that compares calibration with training rows and returns
        `NearCopies`. None after `expect_few_near_copies` has called it, and for estimators without
        the parameter `duplicates`, which make no certificate.
    n_categories : tuple of (int or None), length p, or None
        Number of categories of each feature, None for a numeric one; None: all features are
        numeric.
    fixed_draw_order : ndarray of int32, shape (p,), or None
        Value of `draw_order`; None: it is computed from the rows when it is first read.

    Attributes
    ----------
    X : ndarray of shape (n, p), or None
        The features as one C-ordered table; None if they are stored by columns or sparse.
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
    # The features as one C-ordered table, (n, p); None if they are stored by columns or sparse.
    X: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", self.features.table)

    @cached_property
    def weight_unit(self) -> float:
        """Mean weight of the rows, 1.0 without weights. Weights divided by it sum to n."""
        return compute_mean_weight(self.weight)

    @cached_property
    def draw_order(self) -> Int32:
        """Feature indices, (p,) int32, in the order in which trees consider or randomly draw them.

        Columns are sorted by sums of hashes of their values and of the targets in the training set
        (see `ColumnSums`), so that tables with permuted columns give the same trees. It is
        `fixed_draw_order` if that is set.
        """
        if self.fixed_draw_order is not None:
            return self.fixed_draw_order
        if self.train_subset is not None:
            return self.train_subset.draw_order
        return ColumnSums.sum_rows(self.features, self.y, self.n_categories).order_columns()

    @property
    def target(self) -> WeightedTarget:
        """Targets, weights (None: 1 each) and mean weight of these rows, as a `WeightedTarget`."""
        return WeightedTarget(self.y, self.weight, self.weight_unit)

    def expect_few_near_copies(self, duplicates: Duplicates) -> Training:
        """Compare calibration with training rows, and warn or raise if near copies are likely.

        A near copy is a calibration row that is close enough to a training row to be a changed copy
        of it. Call it once, after the split into training and calibration set is final, while
        `find_near_copies` is not None.

        Parameters
        ----------
        duplicates : {"auto", "genuine", "copies", "refuse"}
            What equal rows are: independent draws ("genuine"), copies of one draw ("copies"), not
            allowed ("refuse"), or not known ("auto").

        Returns
        -------
        Training
            A copy in which `split.near_copies` holds the result and `find_near_copies` is None.

        Raises
        ------
        ValueError
            If too many of n calibration rows equal other rows in all features except texts or row
            numbers whose values all differ: with "auto" and "copies" more than max(1, sqrt(n) / 4,
            n / 50), with "refuse" any. It is raised for classes only, and if n is at least 40.

        Warns
        -----
        NearCopiesWarning
            If more calibration rows are close to training rows than by chance, by the test of
            `NearCopies.are_likely`. Also if no error is raised, but more than max(1, sqrt(n) / 4)
            of them equal other rows in all features except such texts or integers (no limit with
            "genuine"; in regression the limit is 5 % of n, whatever duplicates is).
        """
        assert self.find_near_copies is not None
        found = self.find_near_copies()
        expect_few_near_copies(found, len(self.split.calibration) or len(self.y), duplicates)
        split = replace(self.split, near_copies=found)
        return replace(self, split=split, find_near_copies=None)

    def to_sparse(self) -> Training:
        """Return these rows with their features stored as sparse ones; the values are the same."""
        features = to_sparse(self.features)
        return replace(self, features=features, fixed_draw_order=self.draw_order)

    def take(self, indices: Indices) -> Training:
        """Return some of the rows as a `Training` whose training set has all of them.

        Weights, groups, times and offsets of the rows are kept; the calibration set is empty.
        `draw_order` is that of this object if it has been computed already; else it is computed
        from the rows that are taken. This object is not changed.

        indices: indices of the rows, (m,), in any order.
        """
        weight = None if self.weight is None else self.weight[indices]
        features, y = self.features.take(indices), self.y[indices]
        groups, times = self.split.groups, self.split.times
        split = replace(
            TrainCalibrationSplit.train_on_all(len(y)),
            groups=None if groups is None else groups[indices],
            times=None if times is None else times.take(indices),
        )
        offset = None if self.offset is None else self.offset[:, indices]
        order = vars(self).get("draw_order", self.fixed_draw_order)
        sizes = self.n_categories
        return Training(
            features, y, weight, split, offset=offset, n_categories=sizes, fixed_draw_order=order
        )

    def split_folds(self, cv: Any, random_state: np.random.RandomState) -> list[Fold]:
        """Split these rows into cross-validation folds.

        Parameters
        ----------
        cv : int, None, splitter of scikit-learn, or iterable of pairs (train, validation)
            A number of folds (None: 5) splits whole groups if there are groups; else rows,
            stratified by class, in an order that depends on their values. If rows have times, there
            is a single fold instead, whose validation set is the latest fifth of the rows or
            groups; random folds serve if all times are equal. A splitter gets these rows and
            groups. Pairs hold indices or masks of the rows that were passed to `fit`,
            those of weight zero included.
        random_state : numpy RandomState
            Source of the random order for a number of folds; a splitter has its own.

        Returns
        -------
        list of Fold
            Each has two index arrays, `train` and `validation`, of row numbers among these rows.
            Folds with an empty training or validation set are left out.

        Raises
        ------
        ValueError
            If cv holds anything else, or no fold is left.
        """
        if cv is None or isinstance(cv, Integral):
            n_folds = 5 if cv is None else int(cv)
            if self._has_time_order:
                return [self._split_latest(VALIDATION_FRACTION)]
            if self.split.groups is not None:
                parts = iterate_group_folds(self.split.groups, n_folds, random_state)
                return [Fold(*part) for part in parts]
            about = random_state, self.weight, self.draw_order
            return list(content_folds(self.features.matrix, self.y, n_folds, *about))
        # This import takes longer than that of all of certree, and most models never need it.
        from sklearn.model_selection import check_cv

        # str has a method of that name, too.
        splits_rows = hasattr(cv, "split") and not isinstance(cv, str | bytes)
        # A splitter splits the rows of positive weight; explicit indices count all rows of the caller.
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
        # Folds whose training or validation rows all have weight zero are dropped like those rows.
        folds = [fold for fold in folds if len(fold.train) and len(fold.validation)]
        if not folds:
            raise ValueError(
                "cv must have at least one fold with training and validation rows of positive "
                "weight, got none: change cv or sample_weight"
            )
        return folds

    def hold_out_rows(
        self, size: float, random_state: np.random.RandomState
    ) -> tuple[Training, Training]:
        """Split these rows into a training set and a validation set, at random or by time.

        If there are groups, whole groups are drawn. Else rows are drawn, stratified by class, in an
        order that depends on their values. If rows have times, the latest rows or groups are the
        validation set.

        Parameters
        ----------
        size : int or float
            Value of the parameter validation_fraction: number of rows (or groups) in the validation
            set. A float is their fraction, and the number is rounded up.
        random_state : numpy RandomState
            Source of the random order.

        Returns
        -------
        training, validation : Training
            The rows of both sets.

        Raises
        ------
        ValueError
            If one of the sets would be empty; without groups, if one would have fewer rows than
            there are classes, or a class has one row; or if all rows of a class would be validation
            rows.
        """
        groups = self.split.groups
        n = len(self.y) if groups is None else len(np.unique(groups))
        n_held = count_held_out(size, n, "rows" if groups is None else "groups")
        if self._has_time_order:
            fold = self._split_latest(n_held)
        elif groups is not None:
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
        # Validation rows must not influence the order of columns.
        return replace(self.take(fold.train), fixed_draw_order=None), self.take(fold.validation)

    @property
    def _has_time_order(self) -> bool:
        """Whether these rows, or the latest rows of their groups, have different times."""
        times = self.split.times
        return times is not None and times.has_order(self.split.groups)

    def _split_latest(self, size: int | float) -> Fold:
        """Return the fold whose validation set has the latest of these rows, or of their groups.

        size: an int is the number of validation rows or groups, a float their fraction. The training
        set has the earlier rows except those of the gap, the argument of `fit`: so many rows, or
        those within this time, before the validation set. Both sets are row numbers among these
        rows.
        """
        times, groups = self.split.times, self.split.groups
        assert times is not None
        n = times.n if groups is None else len(np.unique(groups))
        n_latest = size if isinstance(size, int) else max(1, round(size * n))
        return Fold(*map(np.flatnonzero, times.split_latest(n_latest, groups)))

    @property
    def _class_columns(self) -> list[Int32]:
        """Class codes of the rows, a list with an int32 array (n,) for each target; [] for numbers."""
        return [*self.y.reshape(len(self.y), -1).T] if self.y.dtype == np.int32 else []


def compute_mean_weight(weight: Float64 | None) -> float:
    """Compute the mean weight of rows by an exact sum, so that their order does not matter.

    weight: weight of each row, (n,); None: 1 each, so that the mean is 1.
    """
    return 1.0 if weight is None else fsum(weight) / len(weight)


def raise_for_lost_classes(size: float, n_lost: int) -> NoReturn:
    """Raise a ValueError: all rows of some classes would be in the validation set.

    size: value of the parameter validation_fraction. n_lost: number of these classes. Both are
    shown in the message.
    """
    raise ValueError(
        f"validation_fraction={size} holds out all rows of {n_lost} of the classes: make it smaller, "
        f"{_SCORE_TRAINING_ROWS}"
    )


def count_held_out(size: float, n: int, units: str) -> int:
    """Return the number of validation rows (or groups) that validation_fraction asks for.

    Parameters
    ----------
    size : int or float
        Value of the parameter validation_fraction. An int is the number itself; a float is a
        fraction of n, and the number is rounded up.
    n : int
        Number of rows or groups.
    units : str
        "rows" or "groups", for the message.

    Returns
    -------
    int
        Number of validation rows (or groups).

    Raises
    ------
    ValueError
        If the result is not in 1, ..., n - 1.
    """
    n_held = ceil(size * n) if isinstance(size, float | np.floating) else int(size)
    if not 0 < n_held < n:
        raise ValueError(
            f"With n_samples={n} {units} and validation_fraction={size}, the resulting "
            f"{'train' if n_held else 'validation'} set will be empty. Adjust validation_fraction, "
            f"{_SCORE_TRAINING_ROWS}."
        )
    return n_held


def expect_enough_rows_of_classes(
    n_of_class: NDArray[Any], size: float, n: int, n_held: int
) -> None:
    """Raise a ValueError if n rows are too few to hold out n_held of them, stratified by class.

    They are too few if a class has only one row, or if one of the two sets would have fewer rows
    than there are classes.

    Parameters
    ----------
    n_of_class : ndarray of int, shape (K,)
        Number of rows of each class; classes with 0 rows are ignored.
    size : float
        Value of the parameter validation_fraction, for the message.
    n : int
        Number of rows.
    n_held : int
        Number of rows in the validation set.
    """
    n_of_class = n_of_class[n_of_class > 0]
    if n_of_class.min() < 2:
        raise ValueError(
            "The least populated class in y has only 1 member, which is too few to hold out rows of "
            f"each class: get more rows of it, {_SCORE_TRAINING_ROWS}"
        )
    if min(n_held, n - n_held) < len(n_of_class):
        raise ValueError(
            f"validation_fraction={size} of {n} rows gives {n_held} validation and {n - n_held} "
            f"training rows, but each set needs at least {len(n_of_class)}, one for each class: "
            f"change validation_fraction, {_SCORE_TRAINING_ROWS}"
        )


def _check_fold(place: Indices, split: Any) -> tuple[Indices, Indices]:
    """Check a pair of the parameter cv, and convert it to indices among the fitted rows.

    Rows of weight zero, which are not fitted, are dropped.

    place: for each row that was passed to `fit` its index among the fitted rows, (n_given,), or -1.
    split: the pair (train, validation); both entries are indices or masks of the rows that were
    passed to `fit`.

    Return the indices of the training rows and those of the validation rows among the fitted rows.
    """
    if not isinstance(split, (tuple, list, np.ndarray)) or len(split) != 2:
        raise ValueError(
            "cv must hold pairs of training and validation rows (indices or masks), got "
            f"{split!r}: pass pairs, or a number of folds"
        )
    train, validation = (_check_row_indices(part, len(place)) for part in split)
    if not len(train) or not len(validation):
        raise ValueError(
            f"cv must have training and validation rows in each fold, got {len(train)} and "
            f"{len(validation)}: leave out empty folds"
        )
    return _find_kept_rows(place, train), _find_kept_rows(place, validation)


def _check_row_indices(rows: Any, n: int) -> Indices:
    """Convert one entry of a pair of the parameter cv to row indices, intp.

    rows: row indices, or a boolean mask of n rows. n: number of rows that were passed to `fit`.

    Raise a ValueError for anything else, and for indices outside 0, ..., n - 1.
    """
    given = np.asarray(rows)
    if given.ndim != 1:
        raise ValueError(
            f"cv must hold row indices in one dimension, got shape {given.shape}: flatten them"
        )
    if given.dtype == bool:
        if len(given) != n:
            raise ValueError(
                f"cv must have masks of {n} rows, got {len(given)}: pass True or False for each "
                "row of X"
            )
        return np.flatnonzero(given)
    if given.size == 0:
        return np.zeros(0, dtype=np.intp)
    if given.dtype.kind not in "iu":
        raise ValueError(
            f"cv must hold row indices or masks of rows, got dtype {given.dtype}: convert to "
            "integers"
        )
    if given.min() < 0 or given.max() >= n:
        raise ValueError(
            f"cv must hold row indices in 0 .. {n - 1}, got {given.min()} .. {given.max()}: number "
            "the rows of X from 0"
        )
    return given.astype(np.intp)


def _find_kept_rows(place: Indices, rows: Indices) -> Indices:
    kept = place[rows]
    return kept[kept >= 0]


def set_learned_attributes(model: Any, learned: dict[str, Any]) -> None:
    """Set the fitted attributes of an estimator that `training_rows` learned from the rows.

    model: the estimator, which is changed. learned: values by the name of their attribute, as
    `training_rows` returns them, such as `categories_`. If names or dates of features, the format of
    CSV files, or the column of groups, times or drawn groups is None, the model does not have this
    attribute afterwards.
    """
    model.__dict__.update(learned)
    roles = GROUPS_ATTRIBUTE, TIME_ATTRIBUTE, DRAWN_GROUPS_ATTRIBUTE
    for name in ("feature_names_in_", "dates_", FORMAT_ATTRIBUTE, *roles):
        if learned.get(name, model) is None:
            del model.__dict__[name]


def get_feature_names(model: Any) -> list[str]:
    """Return the names of the p features of a fitted model; "x[0]", "x[1]", ... if X had no names.

    Calendar parts of dates are not among them.
    """
    names = getattr(model, "feature_names_in_", None)
    return [f"x[{j}]" for j in range(model.n_features_in_)] if names is None else [*names]


@add_attribute_hints
class RowInputMixin:
    """Base class of estimators that checks and encodes the rows of `fit` and of `predict`.

    `_prepare_training` checks and encodes the rows in `fit`, and sets the fitted attributes below.
    The methods `_encode_new_rows` and the like encode new rows with these attributes. Subclasses
    set class attributes to say what they accept: `_takes_sparse` (sparse X), `_takes_outputs`
    (several targets), `_takes_infinities` (infinite values), all False by default. The class has no
    constructor; subclasses have one, with their parameters.

    Attributes
    ----------
    categories_ : Categories or None
        Categories of each feature; None if all are numeric.
    dates_ : dict of int to DateColumn, or None
        The features that hold dates, by index; None: there are none.
    effective_sample_size_ : float
        Kish's effective number of rows of the fit.
    n_features_in_ : int
        Number of features, p.
    classes_ : ndarray of shape (K,), or list of them
        Sorted classes of a classifier; with several targets a list with the classes of each.
    n_classes_ : int or list of int
        Number of classes, K; with several targets a list.
    n_outputs_ : int
        Number of targets, set by estimators that accept several.
    """

    categorical_features: Any
    categories_: Categories | None
    # Features that hold dates, by index; it is set only if there are some.
    dates_: dict[int, DateColumn] | None = None
    # Kish's effective number of rows of the fit.
    effective_sample_size_: float
    n_features_in_: int
    classes_: NDArray[Any]
    n_classes_: int
    n_outputs_: int
    # Whether splits divide categories; then there is a warning about features that identify rows.
    _splits_categories: ClassVar[bool] = True
    # Whether a fit reads features column by column, without a C-ordered copy.
    _takes_columns: ClassVar[bool] = False
    # Whether y may have several columns.
    _takes_outputs: ClassVar[bool] = False
    # Whether infinite values are accepted, and replaced by the largest finite ones.
    _takes_infinities: ClassVar[bool] = False
    # Whether X may be sparse.
    _takes_sparse: ClassVar[bool] = False
    # Whether a row is one draw of the source if there are no groups; in ranking a query is.
    _draws_rows: ClassVar[bool] = True
    certificate_: Any

    def __init_subclass__(cls, **how: Any) -> None:
        """Let constructor, `fit` and predictions of a subclass reject other libraries' arguments.

        The TypeError for an argument that has LightGBM's name, say, gives certree's name for it. The
        docstrings of scikit-learn's methods ``set_{method}_request`` are shortened, too. how:
        keyword arguments of the class statement, which are passed on to the base classes.
        """
        super().__init_subclass__(**how)
        shorten_request_docs(cls)
        model: Any = cls
        if "__init__" in vars(cls):
            model.__init__ = rejects_aliases(model.__init__)
        for name in METHODS:
            if inspect.isfunction(vars(cls).get(name)):
                setattr(cls, name, rejects_argument_aliases(vars(cls)[name]))

    def _validate_params(self) -> None:
        """Check the values of the parameters, as scikit-learn does; raise InvalidParameterError.

        The message also says which value replaces the -1 with which LightGBM switches a parameter
        off.
        """
        model: Any = super()
        try:
            model._validate_params()
        except InvalidParameterError as error:
            error.args = (explain_invalid_value(str(error)),)
            raise

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, or by ``name__parameter`` for parameters of a nested estimator.

        New values take effect in the next fit. Return the estimator. Raise a TypeError if a
        parameter has the name that another library uses; the message has certree's name. Raise a
        ValueError if there is no such parameter.
        """
        model: Any = super()
        if params:
            own_parameters = model.get_params(deep=False)
            check_for_aliases(self, params, own_parameters)
            check_nested_parameters(self, params, own_parameters)
        return model.set_params(**params)

    def _set_parameters(self, parameters: dict[str, Any]) -> None:
        """Store the parameters of a constructor as attributes of the same names.

        parameters: ``locals()`` of the constructor; the entry "self" is skipped.
        """
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

    def _prepare_training(self, X: Any, y: Any, sample_weight: Any = None, **how: Any) -> Training:
        """Check and encode the rows of a fit, and set the fitted attributes learned from them.

        X: rows, (n, p). y: target, (n,) or (n, n_outputs). sample_weight: weights, (n,), or None.
        how: keyword arguments of `training_rows`: groups (group of each row), time, gap and
        independent (times of the rows; see `fit`), row_splitter (the `TrainCalibrationSplitter` that
        draws the calibration set), classes (all classes; by default those of the training set), and
        reuse_encoding (True in updates). Return the encoded rows.
        Raise a TypeError if X is a file, a Dask collection or a lazy frame of polars.
        """
        expect_in_memory(self, X)
        training, learned = training_rows(self, X, y, sample_weight, **how)
        for attribute, role in ((GROUPS_ATTRIBUTE, "groups"), (TIME_ATTRIBUTE, "time")):
            column = _find_column_name(how.get(role))
            if column is not None or not how.get("reuse_encoding", False):
                learned[attribute] = column
        if not how.get("reuse_encoding", False):
            learned[DRAWN_GROUPS_ATTRIBUTE] = None
        set_learned_attributes(self, learned)
        return training

    def __stored__(self) -> dict[str, Any]:
        """Return what a model file holds of the fit, by name: arrays, records, numbers and lists.

        These are entries about the features (number, names, categories, dates; see
        `store_features`), for a classifier also its classes and hashes of its rows (see
        `store_classes`), and the attributes that the class attribute `_stored_fields` lists, such as
        the tree. Values are not converted to JSON yet.
        """
        classes = store_classes(self) if is_classifier(self) else {}
        return {**store_features(self), **classes, **store_fields(self, self._stored_fields)}

    def __restore__(self, stored: StoredState) -> None:
        """Validate the parameters, and set the fitted attributes from the content of a model file.

        stored: what `__stored__` returned, read from the file. Raise a ValueError if an entry is
        damaged, or if the file holds several targets and this estimator predicts one.
        """
        model: Any = self
        model._validate_params()
        if self._takes_outputs:
            self.n_outputs_ = 1
        elif "n_outputs" in stored:
            raise DamagedModelError(
                f"the model file holds several targets, but {type(self).__name__} predicts one"
            )
        self.__dict__.update(restore_features(stored))
        if is_classifier(self):
            self.__dict__.update(restore_classes(stored))
        restore_fields(self, self._stored_fields, stored)
        self._finish_restore(stored)

    # What model files hold of a fit beside the features and classes, by stored name.
    _stored_fields: ClassVar[dict[str, StoredField]] = {}

    def _finish_restore(self, stored: StoredState) -> None:
        """Check the attributes of a loaded model, and compute those that model files do not store.

        `__restore__` calls this hook last; here it does nothing, and subclasses override it.
        stored: the content of the model file. Raise a ValueError if entries contradict each other.
        """

    def _has_several_targets(self) -> bool:
        return bool(self.__dict__.get("n_outputs_", 1) > 1)

    def _expect_one_target(self, what: str) -> None:
        """Raise a ValueError if this model was fitted to several targets (`n_outputs_` > 1).

        what: name of the method or parameter that needs a single target, for the message.
        """
        if self._has_several_targets():
            kind = "Classifier" if is_classifier(self) else "Regressor"
            raise ValueError(
                f"{what} takes one target, got y of {self.n_outputs_} columns: "
                f"sklearn.multioutput.MultiOutput{kind} fits one model for each column"
            )

    def _find_categories(self, X: Any, reuse_encoding: bool) -> Categories | None:
        """Return the categories with which X is encoded; None if all features are numeric.

        They are learned from the training rows X, by the parameter `categorical_features`, if
        reuse_encoding is False; else they are the fitted `categories_`. Subclasses that can be
        updated override this method, and add new categories of X to `categories_`.
        """
        return (
            self.categories_ if reuse_encoding else learn_categories(X, self.categorical_features)
        )

    def _encode_new_rows(self, X: Any) -> NDArray[Any]:
        """Check rows to predict, and encode them with the fitted attributes.

        X: rows, (n, p), not encoded. Return numbers and category codes, (n, p), float64 or float32,
        with NaN for missing values and -1 for unknown categories. Sparse rows become dense. Raise a
        ValueError if the number or names of the features differ from the fit.
        """
        return to_dense(self._encode_new_rows_or_csr(X))

    def _encode_new_rows_or_csr(self, X: Any) -> Any:
        """Check rows to predict, and encode them; return a CSR array if X is sparse.

        The result has numbers and category codes, (n, p), with NaN for missing values and -1 for
        unknown categories. Raise a ValueError if the number or names of the features differ from
        the fit.
        """
        encoded = self._encode_few_rows(X)
        return self._encode_new_features(X).matrix if encoded is None else encoded

    def _encode_new_features(self, X: Any) -> DenseOrSparseFeatures:
        """Check and encode rows to predict, without copying numeric columns of a data frame.

        Issue a UserWarning if X is float32 in a feature which a tree splits between two float64
        values that are equal in float32. Return numbers and category codes, (n, p), with NaN for
        missing values and -1 for unknown categories. Raise a ValueError if the number or names of
        the features differ from the fit.
        """
        table = _convert_dates(self, self._preprocess_new_rows(X))
        features = append_parts(
            _check_features(self, table, self.categories_, reuse_encoding=True), self.dates_
        )
        names = [self._encoded_names()[j] for j in self._float64_features if features.is_float32(j)]
        warn_of_float32(names, "X holds float32", "Pass X as float64.")
        return features

    def _score_in_blocks(self, X: Any, scores: Callable[[NDArray[Any]], Float64]) -> Float64:
        """Compute scores of rows to predict, block by block to save memory.

        X: rows, not encoded. scores: function that maps encoded rows (m, p) to scores (k, m) for k
        outputs. Return the scores of all rows, (k, n).
        """
        encoded = self._encode_few_rows(X)
        if encoded is not None:
            return scores(encoded)
        return self._encode_new_features(X).score_in_blocks(scores)

    def _encode_few_rows(self, X: Any) -> NDArray[Any] | None:
        """Encode rows to predict without checks if they are few and surely valid; else return None.

        The checks and conversions of `_encode_new_features` take up to 50 times as long as the
        prediction of a single row. For these rows they would find no error, and give this result.

        X: rows as users pass them. The result is X itself if it is an array for which
        `_can_skip_checks` is True, and the encoded rows, (n, p), of a small data frame of pandas or
        polars that has the columns of the fit.
        """
        if type(X) is np.ndarray:
            return X if self._can_skip_checks(X) else None
        fitted = self.__dict__
        names, preprocessor = fitted.get("feature_names_in_"), fitted.get("preprocessor_")
        if names is None or preprocessor is not None or self.dates_ is not None:
            return None
        encoded = encode_small_frame(
            X, names.tolist(), self.categories_, not len(self._float64_features)
        )
        if encoded is None or self._takes_missing_values() or not np.isnan(encoded).any():
            return encoded
        return None

    @property
    def _float64_features(self) -> Int32:
        """Indices, int32, of the features for which rows must not be rounded to float32.

        Trees split these features between two float64 values that become the same number in
        float32. They are read from the fitted `trees_` or `tree_`; without these the result is
        empty.
        """
        trees = self.__dict__.get("trees_", self.__dict__.get("tree_"))
        return getattr(trees, "float64_features", np.zeros(0, dtype=np.int32))

    def _can_skip_checks(self, X: Any) -> bool:
        """Return whether X is a small array that checks and encoding would return unchanged.

        This is so for at most 1024 numbers of dtype float64 (or float32, if no threshold needs
        float64) in C order, with p columns and no infinite values, and without NaN if the model
        does not accept it. The model must have no categories, dates, feature names or preprocessor.
        For a single row the checks would take about ten times as long as the prediction.
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
        if self.dates_ is not None:
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
        """Check rows to predict, and return them twice: encoded, and as they were passed.

        Return two arrays (n, p): numbers and category codes; and the values of X, with dtype object
        if a column is not numeric. If the model has a preprocessor, the latter are its output.
        """
        table = to_dense(self._preprocess_new_rows(X))
        numbers = _convert_dates(self, table)
        features = _check_features(self, numbers, self.categories_, reuse_encoding=True)
        return append_parts(features, self.dates_).matrix, copy_raw_values(table)

    def _preprocess_new_rows(self, X: Any) -> Any:
        """Apply the fitted preprocessor to rows to predict; return X if there is none.

        Sparse rows are returned as CSR. Raise a NotFittedError if the model is not fitted, and a
        TypeError if X is sparse and the model requires dense rows, or if X is a lazy frame of
        polars.
        """
        check_is_fitted(self)
        X = _check_row_type(self, X)
        preprocessor = getattr(self, "preprocessor_", None)
        return X if preprocessor is None else _check_row_type(self, preprocessor.transform(X))

    def _feature_names(self) -> list[str]:
        return get_feature_names(self)

    def _encoded_names(self) -> list[str]:
        """Return the names of the columns that trees read: features, then calendar parts of dates."""
        return name_parts(self._feature_names(), self.dates_)

    @property
    def _n_encoded(self) -> int:
        """Number of columns that trees read: the p features, and the calendar parts of dates."""
        return int(self.n_features_in_) + len(list_parts(self.dates_))

    @property
    def _date_formats(self) -> Mapping[int, DateFormat] | None:
        """Objects that write thresholds of date columns and of their parts as text, by column index.

        Each has a method ``format(value)``, which takes a threshold of the column as a float. None:
        the model has no dates.
        """
        return describe_dates(self.dates_, self.n_features_in_)

    def _get_encoded_categories(self) -> Categories | None:
        """Return the categories of the encoded columns: features, then calendar parts, which have none.

        Return None if all features are numeric.
        """
        return None if self.categories_ is None else self.categories_.extend(self._n_encoded)

    def _fold_parts(self, values: Float64) -> Float64:
        """Add the values of calendar parts (month, weekday, ...) to those of their date columns.

        values: (..., number of encoded columns), such as contributions. Return (..., p).
        """
        return fold_parts(values, self.n_features_in_, self.dates_)

    def _get_owners(self) -> NDArray[np.intp]:
        """Return the index of the user's feature to which each encoded column belongs, (k,) intp.

        The k encoded columns, which trees read, are the p features (entries 0, ..., p - 1), then the
        calendar parts of dates, such as the month, each of which belongs to its date.
        """
        return list_owners(self.n_features_in_, self.dates_)

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
        """Return the natural logarithms of the class probabilities of rows X, an array (n, K).

        With several targets return a list with an array for each target.
        """
        classifier: Any = self
        shares = classifier.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(one) for one in shares] if isinstance(shares, list) else np.log(shares)

    @property
    @snapshot_method
    def is_categorical_(self) -> NDArray[np.bool_] | None:
        """Which features are categorical, a mask (p,); None if none is."""
        check_is_fitted(self)
        mask = None if self.categories_ is None else self.categories_.mask
        return mask if mask is not None and mask.any() else None

    def _orders_categories_by_rows(self) -> bool:
        """Return whether a fit renumbers categories by their numbers of training rows.

        True in this class. Subclasses for which the numbers do not matter return False; categories
        are then numbered in the order of their names.
        """
        return True

    def _has_code_of_unknown(self) -> bool:
        """Return whether categories that the fit does not know get a code of their own, -1.

        Splits on category sets then send them to the child with the greater training weight. If the
        result is False, unknown categories are encoded as missing values.
        """
        return self._splits_categories

    def _category_mask(self) -> NDArray[np.bool_] | None:
        """Return a mask, True for categorical ones among the features and the calendar parts of dates.

        Return None if all features are numeric.
        """
        categories = self._get_encoded_categories()
        return None if categories is None else categories.mask

    def _find_class_codes(self, name: str, y: Any) -> NDArray[np.intp]:
        """Return the index of each label in `classes_`, (n,).

        With several targets the result is (n_outputs, n); labels of each target are looked up in
        its own classes. Raise a ValueError if a label is not a class of the fit.

        name: name of the argument that y was passed as, for messages. y: labels, (n,) or (n,
        n_outputs).
        """
        classes: Any = self.classes_
        if not isinstance(classes, list):
            return _find_class_places(name, classes, column_or_1d(y))
        given, n = to_array(name, y), len(classes)
        if given.ndim != 2 or given.shape[1] != n:
            raise ValueError(f"{name} must have shape (n, {n}), as in the fit, got {given.shape}")
        columns = zip(classes, split_target_columns(given), strict=True)
        return np.stack([_find_class_places(name, known, one) for known, one in columns])


def _find_class_places(name: str, classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of each label in the sorted array classes, (n,).

    Raise a ValueError if a label is not in classes. name: name of the argument that holds the
    labels, for the message.
    """
    places, known = find_positions(classes, labels)
    if not known.all():
        raise ValueError(
            f"{name} must hold classes among {classes}, got {np.unique(labels[~known])}: drop rows "
            "of classes that the fit did not have"
        )
    return places


def training_rows(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    time: Any = None,
    gap: Any = 0,
    independent: bool = False,
    row_splitter: TrainCalibrationSplitter | None = None,
    classes: ArrayLike | None = None,
    reuse_encoding: bool = False,
) -> tuple[Training, dict[str, Any]]:
    """Check and encode the rows of a fit, and drop rows of weight zero and of the gap.

    With `duplicates="copies"` of the model also merge equal rows to one.

    Parameters
    ----------
    model : RowInputMixin
        The estimator; it is not changed. Its parameters `categorical_features`, `class_weight`,
        `preprocessor` and `duplicates` are read, if it has them.
    X : array-like, sparse matrix or data frame of shape (n, p)
        Rows.
    y : array-like of shape (n,), or (n, n_outputs)
        Target; several columns only if the model accepts several targets.
    sample_weight : array-like of shape (n,), or None
        Weight of each row, relative to the others; None: 1 each.
    groups : array-like of shape (n,), or None
        Group of each row; a group is not divided between training and calibration set. None: rows
        have no groups.
    time : array-like of shape (n,), str or None
        Time of each row, or a column of X: the latest rows calibrate, or validate. None: rows have
        no times.
    gap : int or timedelta
        Rows to leave out between earlier and later rows: their number, or the time that they span.
    independent : bool
        Whether rows of one period are independent draws.
    row_splitter : TrainCalibrationSplitter or None
        Draws the training and the calibration set of the remaining rows. None: all rows are in the
        training set.
    classes : array-like of shape (K,), or None
        The classes; None: those of the training set.
    reuse_encoding : bool
        True in an update of a fitted model: features must be those of the fit, and its categories
        and classes are used. False: they are learned from X and y.

    Returns
    -------
    training : Training
        The encoded rows.
    learned : dict of str to object
        Fitted attributes by name, which `set_learned_attributes` sets: `categories_`, `dates_`,
        `n_features_in_`, `feature_names_in_` (None if X has no names), `effective_sample_size_`,
        `preprocessor_` if the model has that parameter, `n_outputs_` if it accepts several targets,
        the format of the files of X, and of classifiers also `classes_`, `n_classes_`,
        `sample_hashes_` (distinct hashes of the rows) and `_sample_counts`. With reuse_encoding
        the effective sample size and the number, names and format of features are left out.

    Raises
    ------
    ValueError, TypeError
        If X, y, weights, groups or times differ in length, or hold values that the model does not
        accept; or if with times a set has a single class.
    """
    X = _check_row_type(model, X)
    expect_no_column_name("y", y)
    expect_no_column_name("sample_weight", sample_weight)
    if not hasattr(X, "__getitem__"):  # other objects have no rows to take
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=model)
    is_of_classes = is_classifier(model)
    target, weight = check_target_and_weight(model, X, y, sample_weight, is_of_classes)
    n_given = len(target)
    if groups is not None:
        groups = check_groups(groups, n_given)
    times = RowTimes.read(time, X, n_given, gap, independent)
    duplicates = getattr(model, "duplicates", None)
    rows, indices, places = _drop_rows(X, target, weight, groups, times, duplicates)
    (X, target, weight, groups), indices, split = _split_rows(model, rows, indices, row_splitter)
    compared = X, target, split, groups, None if times is not None else places
    repeats, is_worst, find, units = _find_repeats(*compared, duplicates, is_of_classes)
    if getattr(model, "class_weight", None) == "balanced":  # forests balance each bag themselves
        weight = _multiply_weights(compute_balanced_weights(target, weight, split), weight)
    learned = {} if reuse_encoding else _measure_effective_size(weight, len(target), sample_weight)
    if hasattr(model, "preprocessor"):
        learned["preprocessor_"] = step = _fit_preprocessor(model.preprocessor, X, target, split)
        X = X if step is None else _check_row_type(model, step.transform(X))
    features, codes, hashes, of_rows, order = _encode_rows(
        model, X, target, weight, classes, split, reuse_encoding
    )
    learned |= of_rows
    if model._draws_rows and not reuse_encoding and groups is None and duplicates is None:
        counts = of_rows.get("_sample_counts")
        warn_if_many_repeat(codes, hashes, 0 if counts is None else counts.n_distinct)
    about = groups, indices, n_given, repeats, duplicates == "copies", is_worst
    units = None if split.times is not None else units
    found = None, units, split.times, split.period  # near copies are found below
    split = TrainCalibrationSplit(split.train, split.calibration, *about, *found)
    known = learned["categories_"]
    sizes = None if known is None else known.extend(features.n_features).sizes
    inferred: dict[str, Any] = {"n_categories": sizes, "fixed_draw_order": order}
    training = Training(features, codes, weight, split, find_near_copies=find, **inferred)
    if duplicates is not None and not (row_splitter is not None and row_splitter.is_pilot):
        training = training.expect_few_near_copies(duplicates)
    if len(split.train) and len(split.calibration):
        training = replace(training, train_subset=training.take(split.train))
    return training, learned


def _find_column_name(values: Any) -> str | None:
    """Return the name of the column that holds the groups or times of the rows of a fit.

    values: the argument `groups` or `time` of `fit`: the name, a column that has a name, or an array.
    Return "" for an array or column without a name, and None if `values` is None.
    """
    name = values if isinstance(values, str) else getattr(values, "name", "")
    return None if values is None else name if isinstance(name, str) else ""


def convert_training_dates(
    model: Any, X: Any, reuse_encoding: bool
) -> tuple[Any, dict[int, DateColumn]]:
    """Replace dates by days in the rows of a fit; return the rows, and the date columns by index.

    Columns that the parameter `categorical_features` lists keep their dates.

    model: the estimator. X: rows, not encoded. reuse_encoding: whether the columns must be those of
    the fitted model, as in a warm start, in an update and for a validation set. If so, raise a
    ValueError if a column that held dates in the fit holds numbers or text, or dates that
    `DateColumn.takes` refuses. Otherwise raise it if a column holds values of several kinds, such as
    dates and time spans, or times without a date.
    """
    if reuse_encoding:
        return _convert_dates(model, X), dict(model.dates_ or {})
    chosen = getattr(model, "categorical_features", None)
    dates = learn_dates(X)
    if dates and chosen is not None and not isinstance(chosen, str):
        table = TableColumns.read(X)
        is_category = make_categorical_mask(chosen, len(table.columns), table.names)
        dates = {j: one for j, one in dates.items() if not is_category[j]}
    return convert_dates(X, dates), dates


def _convert_dates(model: Any, X: Any) -> Any:
    """Replace dates by days in the columns that held dates in the fit; see `convert_dates`.

    model: the fitted estimator. X: rows, not encoded; it is returned unchanged if the model has no
    such columns. Raise a ValueError if the number or names of the features differ from the fit.
    """
    if model.dates_ is None:
        return X
    names, given = getattr(model, "feature_names_in_", None), _get_feature_names(X)
    if names is not None and given is not None and not np.array_equal(names, given):
        _check_feature_names(model, X, reset=False)
    if issparse(X):
        raise ValueError(
            "X must be dense, as the model was fitted on dates, got a sparse matrix: use .toarray()"
        )
    if len(TableColumns.read(X).columns) != model.n_features_in_:
        _check_n_features(model, X, reset=False)
    return convert_dates(X, model.dates_)


def _find_last_dates(
    dates: dict[int, DateColumn], features: DenseOrSparseFeatures, split: TrainCalibrationSplit
) -> dict[int, DateColumn] | None:
    """Return copies of the date columns, by index, with `last`, the latest training date.

    Return None if there are no date columns. dates: the date columns, by index. features: the
    encoded rows. split: its training rows are read, or all rows if the training set is empty.
    """
    if not dates:
        return None
    assert isinstance(features, DenseFeatures)  # sparse rows hold no dates
    rows, columns = split.train if len(split.train) else split.calibration, features.columns
    return {j: one.with_last(columns[j][rows]) for j, one in dates.items()}


def _split_rows(
    model: Any,
    rows: tuple[Any, ...],
    indices: Indices | None,
    row_splitter: TrainCalibrationSplitter | None,
) -> tuple[tuple[Any, ...], Indices | None, TrainCalibrationSplit]:
    """Split the rows of a fit into training and calibration set.

    With times the latest rows are the calibration set, and rows of the gap before them are left
    out.

    Parameters
    ----------
    model : RowInputMixin
        The estimator.
    rows : tuple (X, target, weight, groups, times)
        Rows of positive weight, from `_drop_rows`.
    indices : ndarray of intp, or None
        Indices of these rows among the rows that were passed to `fit`; None: no row was dropped.
    row_splitter : TrainCalibrationSplitter or None
        Draws the sets; None: all rows are in the training set.

    Returns
    -------
    rows : tuple (X, target, weight, groups)
        The rows that are kept.
    indices : ndarray of intp, or None
        Indices of the kept rows among the rows that were passed to `fit`; None: no row was dropped.
    split : TrainCalibrationSplit
        Both sets, and the times.

    Raises
    ------
    ValueError
        If one of the sets would be empty; with times, if all are equal, a set has one class, or the
        model has a `cv` that is no number.
    """
    X, target, weight, groups, times = rows
    split = replace(TrainCalibrationSplit.train_on_all(len(target)), times=times)
    if times is not None:
        times.expect_order(groups)
        expect_folds_by_number(getattr(model, "cv", None))
    if row_splitter is None:
        return rows[:-1], indices, split
    if times is None:
        contents = partial(_hash_rows, model, X, target)
        return rows[:-1], indices, row_splitter(len(target), groups, weight, contents)
    split, kept = row_splitter.split_by_time(times, groups)
    if len(kept) < len(target):
        rows = _take_each(rows[:-1], kept)
        indices = kept if indices is None else indices[kept]
    if is_classifier(model):
        assert split.times is not None
        _, y, _, groups, *_ = rows
        expect_classes_in_both_parts(y, split.train, split.calibration, split.times, groups)
    return rows[:4], indices, split


def _find_repeats(
    X: Any,
    target: NDArray[Any],
    split: TrainCalibrationSplit,
    groups: NDArray[Any] | None,
    places: Indices | None,
    duplicates: Duplicates | None,
    is_of_classes: bool,
) -> tuple[int, NDArray[np.bool_] | None, Callable[[], NearCopies] | None, Indices | None]:
    """Count calibration rows that equal other rows, target included; raise if they are too many.

    Without a calibration set, all n rows take the place of the calibration rows.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of n rows
        Rows before encoding.
    target : ndarray of shape (n,)
        Target of each row.
    split : TrainCalibrationSplit
        Training and calibration set.
    groups : ndarray of shape (n,), or None
        Group of each row; equal rows of one group count as one row.
    places : ndarray of intp, shape (n,), or None
        Position of each row in the table, if rows were merged; None: rows are in the table's order.
    duplicates : {"auto", "genuine", "copies", "refuse"} or None
        What equal rows are: independent draws ("genuine"), copies of one draw ("copies"), not
        allowed ("refuse"), or not known ("auto"). With "copies" equal rows were merged before, and
        nothing is counted. None: the estimator makes no certificate, and nothing is computed.
    is_of_classes : bool
        Whether the target is a class.

    Returns
    -------
    repeats : int
        Number of calibration rows that equal another row.
    is_worst : ndarray of bool, shape (n_calibration,), or None
        True for calibration rows that a certificate counts as errors whatever is predicted: with
        "auto" the repeated rows, if there are more than max(1, sqrt(n) / 4). None: there are none.
    find : callable or None
        Function without arguments that searches the same rows for near copies and returns
        `NearCopies`; None if `duplicates` is None.
    units : ndarray of intp, shape (n_calibration,), or None
        Rank 0, 1, ... of each calibration row's unit, which is its group, or the set of rows that
        equal it. Units are ranked by the position in the table of one of their rows, drawn at
        random. None if `duplicates` is None.

    Raises
    ------
    ValueError
        If the number of repeated rows is above 0 with "refuse", or above max(1, sqrt(n) / 4,
        n / 50) with "auto" and n >= 40, where n is the number of calibration rows.
    """
    if duplicates is None:
        return 0, None, None, None
    rows, frame, repeats, is_worst = RowHasher(), as_data_frame(X), 0, None
    y, columns = rows.encode(X, target)
    keys, first = RowHashes.hash_rows(columns, y, are_all=True).keys, np.arange(len(target))
    if duplicates != "copies":
        first = find_first_equal_keys(keys)
        alike = first, split.train, split.calibration, groups
        repeats = count_repeats(*alike)
        if decide_worst_case(repeats, len(split.calibration) or len(target), duplicates):
            is_worst = mark_repeats(*alike)
    compared = ComparedRows(columns, rows.kinds, y, split.train, split.calibration, groups)
    names = None if frame is None else frame.columns
    find = partial(find_near_copies, compared, names, keys, repeats, with_target=is_of_classes)
    of_rows = split.calibration if len(split.calibration) else split.train
    unit_keys = number_by_first(first[of_rows]) if groups is None else groups[of_rows]
    units = rank_units(unit_keys, None if places is None else places[of_rows])
    return repeats, is_worst, find, units


def _encode_rows(
    model: Any,
    X: Any,
    target: NDArray[Any],
    weight: Float64 | None,
    classes: ArrayLike | None,
    split: TrainCalibrationSplit,
    reuse_encoding: bool,
) -> tuple[DenseOrSparseFeatures, NDArray[Any], Callable[[], Any], dict[str, Any], Int32 | None]:
    """Encode features and targets, and choose the calendar parts of dates.

    model: the estimator. X: rows, (n, p), after the preprocessor. target: (n,) or (n, n_outputs).
    weight: (n,), or None. classes: argument of `fit`, or None. split: training and calibration set,
    of which the first one determines categories and classes. reuse_encoding: whether to take those
    of the fitted model.

    Returns
    -------
    features : DenseFeatures or SparseFeatures
        Encoded features.
    codes : ndarray
        Class codes 0, 1, ... (int32), or numeric targets as float64. Classes that only calibration
        rows have get codes from ``get_first_untrained_code(n_classes)`` on.
    hashes : callable
        Returns the hash of the features of each row, (n,) uint64.
    learned : dict of str to object
        Fitted attributes by name: `categories_`, `dates_`, `n_features_in_`, `feature_names_in_`
        and, if the model accepts several targets, `n_outputs_`; for classifiers also `classes_`,
        `n_classes_`, `sample_hashes_` and `_sample_counts`, by which the model recognises rows of
        its fit. With reuse_encoding numbers and names of features are left out.
    draw_order : ndarray of int32, shape (p,), or None
        Feature indices in the order in which trees consider them. It is computed only when
        categories are renumbered by their training rows; else None.
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
    if has_growing and learned["dates_"] is not None:
        assert isinstance(features, DenseFeatures)  # sparse rows hold no dates
        rows = features.take(split.train), codes[split.train]
        train_weight = None if weight is None else weight[split.train]
        samples = draw_samples(learned["dates_"], *rows, train_weight)
        is_constrained = mark_constrained(model, learned["feature_names_in_"], features.n_features)
        learned["dates_"] = choose_all_parts(learned["dates_"], samples, is_constrained)
    features = append_parts(features, learned["dates_"])
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


def mark_constrained(model: Any, names: Any, n_features: int) -> NDArray[np.bool_]:
    """Return a mask (p,), True for features that the parameter monotonic_cst constrains.

    model: the estimator. names: names of the features, or None. n_features: number of features, p.
    Raise a ValueError if the parameter is malformed.
    """
    signs = check_monotonic_cst(getattr(model, "monotonic_cst", None), n_features, names)
    return np.zeros(n_features, dtype=np.bool_) if signs is None else signs != 0


def _renumber_categories(
    features: DenseOrSparseFeatures,
    categories: Categories,
    codes: NDArray[Any],
    split: TrainCalibrationSplit,
) -> tuple[DenseFeatures, Categories, Int32]:
    """Renumber category codes by the training rows: categories with more rows get smaller codes.

    Categories with equally many rows are ordered by hashes of these rows. So codes do not depend on
    how categories are spelled.

    Parameters
    ----------
    features : DenseFeatures
        Encoded features of all rows.
    categories : Categories
        The categories with their present codes.
    codes : ndarray of shape (n,) or (n, n_outputs)
        Class codes or numeric targets of the rows.
    split : TrainCalibrationSplit
        Its training rows are counted; all rows if one of both sets is empty.

    Returns
    -------
    features : DenseFeatures
        Features with the new codes, stored as separate columns.
    categories : Categories
        The categories in the order of the new codes.
    order : ndarray of int32, shape (p,)
        Feature indices in the order in which trees consider them; see `Training.draw_order`.
    """
    assert isinstance(features, DenseFeatures)  # sparse rows hold no categories
    training, y = features, codes
    if len(split.train) and len(split.calibration):
        training, y = features.take(split.train), codes[split.train]
    sums = ColumnSums.sum_rows(training, y, categories.extend(features.n_features).sizes)
    numbers = {j: sums.number_categories(j) for j in np.flatnonzero(categories.mask).tolist()}
    return renumber_codes(features, numbers), categories.renumber(numbers), sums.order_columns()


def _measure_effective_size(weight: Float64 | None, n: int, sample_weight: Any) -> dict[str, Any]:
    """Compute the fitted attribute effective_sample_size_, and return it in a dict by its name.

    It is (sum of weights)^2 / sum of squared weights; n without weights. Issue a UserWarning if it
    is below n / 10, unless sample_weight is None.

    weight: weight of each of n rows, class weights included, (n,); None: 1 each. sample_weight: the
    argument of `fit`.
    """
    if weight is None:
        return {"effective_sample_size_": float(n)}
    spread = WeightSpread.measure(weight)
    if sample_weight is not None:
        warn_of_uneven_weights(spread)
    return {"effective_sample_size_": spread.effective_size}


def _hash_rows(model: Any, X: Any, target: NDArray[Any]) -> UInt64:
    """Hash each row with its target, (n,) uint64, for a random split by the values of rows.

    Neither the order of columns nor the names of classes and categories change a hash: columns are
    hashed in the order of `ColumnSums.order_columns`, and names are replaced by numbers.

    model: the estimator, which determines the categorical features. X: rows, not encoded. target:
    target of each row, (n,) or (n, n_outputs).
    """
    X, _ = convert_training_dates(model, X, False)
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
    times: RowTimes | None,
    duplicates: str | None,
) -> tuple[
    tuple[Any, NDArray[Any], Float64 | None, NDArray[Any] | None, RowTimes | None],
    Indices | None,
    Indices | None,
]:
    """Drop rows of weight zero; with duplicates="copies" also merge equal rows to one row.

    The weight of a merged row is the sum of the weights of the equal rows, and its time the latest
    one of theirs.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of n rows
        Rows before encoding.
    target : ndarray of shape (n,) or (n, n_outputs)
        Target of each row.
    weight : ndarray of shape (n,), or None
        Weight of each row; None: 1 each.
    groups : ndarray of shape (n,), or None
        Group of each row; None: rows have no groups.
    times : RowTimes or None
        Time of each row; None: rows have no times.
    duplicates : str or None
        Parameter of the estimator; None if it has no such parameter.

    Returns
    -------
    rows : tuple (X, target, weight, groups, times)
        The arguments for the rows that are kept.
    indices : ndarray of intp, or None
        Indices of the rows that are kept; None: all rows are.
    places : ndarray of intp, or None
        Index of a row, drawn at random, of those that each merged row stands for; None: no rows were
        merged. The indices are those of rows of positive weight.

    Raises
    ------
    ValueError
        If all weights are zero, or equal rows to merge are in different groups.
    """
    indices: Indices | None = None
    rows = X, target, weight, groups
    if weight is not None and not (weight > 0).all():
        indices = np.flatnonzero(weight > 0)
        if not len(indices):
            raise_for_zero_weights()
        rows = _take_each(rows, indices)
        times = None if times is None else times.take(indices)
    if duplicates != "copies":
        return (*rows, times), indices, None
    first = find_first_equal_rows(rows[0], rows[1])
    kept, summed = merge_copies(first, *rows[2:])
    if len(kept) == len(first):
        return (*rows, times), indices, None
    X, target, _, groups = _take_each(rows, kept)
    rows, indices = (X, target, summed, groups), kept if indices is None else indices[kept]
    times = None if times is None else times.merge(first).take(kept)
    return (*rows, times), indices, draw_copies(first, kept)


def _take_each(rows: tuple[Any, ...], indices: Indices) -> Any:
    return tuple(None if one is None else take_rows(one, indices) for one in rows)


def expect_value_per_row(name: str, values: Any, rows: Any, rows_name: str = "X") -> None:
    """Raise ValueError unless there are as many values as rows.

    name, values: name and value of an argument, such as "y"; None: nothing is checked. rows, rows_name:
    the rows, and the name of their argument.
    """
    try:
        check_consistent_length(rows, values)
    except ValueError as error:
        raise ValueError(
            f"{name} must have one value for each row of {rows_name}: {error}"
        ) from None


def check_target_and_weight(
    model: Any, X: Any, y: Any, sample_weight: Any, is_of_classes: bool
) -> tuple[Any, Float64 | None]:
    """Check the target and the weights of a fit, and multiply weights by class weights.

    Parameters
    ----------
    model : RowInputMixin
        The estimator. If its parameter `class_weight` is a dict or a list of dicts, weights are
        multiplied by it here; "balanced" is left to the caller.
    X : array-like of n rows
        Rows; only their number is checked.
    y : array-like of shape (n,) or (n, n_outputs)
        Target.
    sample_weight : array-like of shape (n,), or None
        Weight of each row; None: 1 each.
    is_of_classes : bool
        Whether the target holds classes; else numbers.

    Returns
    -------
    target : ndarray of shape (n,) or (n, n_outputs)
        The target; classes are not encoded yet.
    weight : ndarray of float64, shape (n,), or None
        Non-negative weights, class weights included; None if there are neither.

    Raises
    ------
    ValueError, TypeError
        If the target or weights have another length than X, hold missing or infinite values, or if
        a weight is negative.
    """
    if y is None:
        raise ValueError(
            f"This {type(model).__name__} estimator requires y to be passed, but the target y is None. "
            "Pass the target of each row"
        )
    expect_collected("y", y)
    if isinstance(y, (list, tuple)):
        y = to_array("y", y)
    _expect_no_missing_targets(y)
    if not is_of_classes:
        expect_numbers("y", y)
    times = np.asarray(y)
    if times.dtype.kind in "mM" and np.isnat(times).any():
        raise ValueError("Input y contains NaT. Every row must have a class: drop these rows")
    with np.errstate(invalid="ignore"):  # it sums up all numbers to find infinite ones
        several = _has_target_columns(model, times)
        target = _check_y(y, several, y_numeric=not is_of_classes, estimator=model)
    expect_value_per_row("y", target, X)
    weight = None
    if sample_weight is not None:
        expect_numbers("sample_weight", sample_weight, "biuf")
        weight = to_contiguous(
            _check_sample_weight(sample_weight, target, dtype=np.float64, ensure_non_negative=True)
        )
    if is_of_classes:
        columns = split_target_columns(target)
        for one in columns:
            _expect_one_type(one)
            check_classification_targets(one)
        factors = getattr(model, "class_weight", None)
        if isinstance(factors, (dict, list)):
            check_class_weights(factors, len(columns))
            weight = _multiply_weights(compute_sample_weight(factors, target), weight)
    _expect_finite_total(weight)
    return target, weight


def _expect_no_missing_targets(y: Any) -> None:
    """Raise a ValueError if any value of the target y is missing (None, NaN, pandas.NA)."""
    given = np.asarray(y)
    if (
        given.dtype.kind not in "Of" or not given.ndim
    ):  # NumPy wraps a sparse matrix in an array of objects
        return
    if given.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(given))
    else:
        values = given.ravel().tolist()
        # Arrays are no targets, and `is_missing` would compare them element by element.
        missing = np.flatnonzero([isinstance(one, Hashable) and is_missing(one) for one in values])
    if len(missing):
        row = missing[0] // (given.size // len(given))
        raise ValueError(
            f"Input y contains NaN or other missing values: {len(missing)} of {given.size}, the first "
            f"of them in row {row}. Every row must have a target: drop these rows"
        )


def _expect_one_type(y: NDArray[Any]) -> None:
    """Raise a ValueError if some classes of y, (n,), are text and others are of another type."""
    kinds = {type(one) for one in y.tolist()} if y.dtype.kind == "O" else set()
    if len({issubclass(kind, str) for kind in kinds}) > 1:
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"y must hold classes of one type, got {names}: convert all of them to text"
        )


# Prefixes of the estimators that accept several targets, for messages.
_TAKING_SEVERAL = {
    "Classifier": ("PACBayesTree", "PrunedTree", "TreeForest", "BoostedTrees"),
    "Regressor": ("PACBayesTree", "PrunedTree", "TreeForest", "BoostedTrees"),
}


def _has_target_columns(model: Any, y: NDArray[Any]) -> bool:
    """Return whether y has two or more columns.

    Raise a ValueError if it has and the model accepts only one target (`model._takes_outputs` is
    False).
    """
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
    """Return the columns of a target as a list of arrays (n,).

    A column of an object array becomes numeric if it holds no strings.

    target: (n,), for a list of one array, or (n, n_outputs).
    """
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
    """Multiply row weights by the factors of their classes; return (n,) float64.

    factor: class weight of each row, (n,). weight: weight of each row, (n,), or None: 1 each. Raise
    a ValueError if the sum of the products exceeds 1e280.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = factor if weight is None else weight * factor
    _expect_finite_total(product)
    return product


def _expect_finite_total(weight: Float64 | None) -> None:
    if weight is not None and not has_finite_total(weight):
        raise ValueError(
            f"sample_weight must sum to at most {MAX_TOTAL_WEIGHT:g}, class_weight included, got "
            "more: divide sample_weight by a constant"
        )


def expect_numbers(name: str, values: Any, kinds: str = "biufc") -> None:
    """Raise a ValueError if values are not numbers but dates, strings or other objects.

    Integers that float64 cannot represent also raise an error.

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    values : array-like
        The argument, of any shape. Python objects are accepted if they convert to float64.
    kinds : str
        Accepted kinds of dtypes, as in `numpy.dtype.kind`. The default accepts complex numbers,
        which scikit-learn refuses afterwards.
    """
    given = to_array(name, values).ravel()
    expect_no_times(given, name)
    remedy = (
        ": convert it to numbers, or fit a classifier if y holds classes" if name == "y" else ""
    )
    numbers = given
    if given.dtype.kind in "iuO":  # objects may be Python numbers, or pandas.NA beside numbers
        try:
            numbers = given.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            value = shortened(find_first_non_number(given))
            raise ValueError(f"{name} must hold numbers, got {value}{remedy}") from None
    if numbers.dtype.kind not in kinds:
        raise ValueError(f"{name} must hold numbers, got dtype {given.dtype}{remedy}")
    if numbers is not given and has_inexact_integers(numbers):
        check_exact(name, given, numbers)


def _take_training_rows(X: Any, split: TrainCalibrationSplit) -> Any:
    """Return the rows of X in the training set of split, in an object of the type of X.

    X may also be the target. Return all of X if the training or the calibration set is empty.
    """
    both = len(split.train) and len(split.calibration)
    return take_rows(X, split.train) if both else X


def _fit_preprocessor(
    preprocessor: Any, X: Any, target: NDArray[Any], split: TrainCalibrationSplit
) -> Any:
    """Fit a clone of the parameter preprocessor to the training set, and return the clone.

    Return None if the parameter is None. Raise a ValueError if the training set is empty.

    preprocessor: transformer of scikit-learn, or None. X, target: rows and targets of training and
    calibration set together; the calibration rows are not read. split: indices of both sets.
    """
    if preprocessor is None:
        return None
    if not len(split.train):
        raise ValueError(
            "preprocessor needs training rows, but there are none, as train_size is 0 or the grower "
            "uses none: make train_size larger, or transform X before the fit"
        )
    return clone(preprocessor).fit(_take_training_rows(X, split), target[split.train])


def _check_row_type(model: Any, X: Any) -> Any:
    """Return X unchanged if it is dense, and as CSR if it is sparse.

    Sparse columns of a data frame become dense. Raise a TypeError for lazy frames of polars, for
    dictionaries, and for sparse X if the model requires dense rows (`model._takes_sparse` is
    False); a ValueError for a series, a data frame without columns or with two columns of one name,
    and for sparse X without two dimensions.
    """
    expect_collected("X", X)
    if not issparse(X):
        expect_table(X)
        return to_plain_columns(X)
    if not model._takes_sparse:
        raise TypeError(
            f"Sparse data was passed for X, but {type(model).__name__} requires dense data: use "
            ".toarray(), or sparse_output=False in the encoder that made it. Boosted trees and forests "
            "of trees take sparse X, as BoostedTreesClassifier does"
        )
    rows: Any = X
    if rows.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a sparse array of shape {rows.shape} instead: X must have "
            "shape (n_samples, n_features). Use .reshape(1, -1) for a row"
        )
    return rows.tocsr()


def _encode_features(
    model: Any, X: Any, split: TrainCalibrationSplit, reuse_encoding: bool
) -> tuple[DenseOrSparseFeatures, dict[str, Any]]:
    """Learn categories and dates from the training rows, and encode the features of all rows.

    Issue a UserWarning for categorical features with nearly as many categories as rows.

    model: the estimator. X: rows, (n, p), not encoded. split: its training set has the training
    rows. reuse_encoding: whether to take categories, number and names of features from the fit.

    Return the encoded features, and a dict of fitted attributes by name: `categories_`, `dates_`,
    `n_features_in_` and `feature_names_in_`, and the format of the files of X, if it was unusual; with
    reuse_encoding only the first two.
    """
    given = getattr(model, "categorical_features", None)
    if not reuse_encoding and issparse(X) and given is not None and not isinstance(given, str):
        raise ValueError(
            'categorical_features must be None or "from_dtype" if X is sparse, as all features are '
            f"numbers then, got {given!r}"
        )
    X, dates = convert_training_dates(model, X, reuse_encoding)
    categories = model._find_categories(_take_training_rows(X, split), reuse_encoding)
    if categories is not None and not reuse_encoding:
        categories = replace(categories, unknown_are_missing=not model._has_code_of_unknown())
    names, features = _get_feature_names(X), _check_features(model, X, categories, reuse_encoding)
    learned = {"categories_": categories, "dates_": _find_last_dates(dates, features, split)}
    if reuse_encoding:
        return features, learned
    if categories is not None and model._splits_categories and isinstance(features, DenseFeatures):
        are_inferred = isinstance(given, str)
        warn_about_identifiers(features, categories, names, are_inferred)
    return features, {
        **learned,
        "n_features_in_": features.n_features,
        "feature_names_in_": names,
        FORMAT_ATTRIBUTE: read_attached_format(getattr(X, "schema", None)),
    }


def _check_features(
    model: Any, X: Any, categories: Categories | None, reuse_encoding: bool
) -> DenseOrSparseFeatures:
    """Check the features of X, and encode its categories.

    Parameters
    ----------
    model : RowInputMixin
        The estimator, for messages and for `_takes_infinities`.
    X : array-like, CSR matrix or data frame of shape (n, p)
        Rows before encoding.
    categories : Categories or None
        Categories with which X is encoded; None: all features are numeric.
    reuse_encoding : bool
        Whether the number and the names of the features must be those of the fitted model.

    Returns
    -------
    DenseFeatures or SparseFeatures
        Numbers and category codes of the n rows; NaN where a value is missing or a category is not
        among `categories`. A model that accepts infinite values gets the largest float64 of their
        sign instead.

    Raises
    ------
    ValueError, TypeError
        If a numeric feature holds anything but numbers and missing values, or infinite values that
        the model does not accept; with reuse_encoding if number or names of features differ.
    """
    if issparse(X):
        return _check_sparse_features(model, X, categories, reuse_encoding)
    if categories is None and (n_numeric := count_numeric_columns(X)):
        categories = Categories((None,) * n_numeric)
    if categories is not None:
        if reuse_encoding:
            _check_feature_names(model, X, reset=False)
            try:
                _check_n_features(model, X, reset=False)
            except LookupError:  # there is no first row
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
    """Check the features of a CSR matrix X, and return them without stored zeros.

    Raise a ValueError if categories is not None, as sparse features must be numeric, and for
    infinite values; a model that accepts these gets the largest float64 of their sign instead.

    model: the estimator. reuse_encoding: whether the number and the names of the features must be
    those of the fitted model.
    """
    if categories is not None:
        raise ValueError(
            "X must be dense, as the model was fitted on categorical features, got a sparse "
            "matrix: use .toarray()"
        )
    if reuse_encoding:
        _check_feature_names(model, X, reset=False)
    expect_exact_numbers(X.data[:, None])
    rows = SparseFeatures.from_csr(check_array(X, accept_sparse="csr", estimator=model, **_NUMBERS))
    if rows.n_features > _MOST_FEATURES:
        raise ValueError(
            f"X must have at most {_MOST_FEATURES} features if it is sparse, got "
            f"{rows.n_features}: drop columns"
        )
    if reuse_encoding:
        _check_n_features(model, rows.matrix, reset=False)
    (values,) = _check_finite(model, DenseFeatures((rows.matrix.data,))).tables
    if values is rows.matrix.data:
        return rows
    bounded = rows.matrix.copy()
    bounded.data = values
    return SparseFeatures(bounded)


def _check_finite(model: Any, features: DenseFeatures) -> DenseFeatures:
    """Raise a ValueError for infinite values, or replace them if the model accepts them.

    A model with `_takes_infinities` gets features with the largest float64 of their sign in place
    of infinite values. For other models the features are returned unchanged. NaN is kept.
    """
    if model._takes_infinities:
        return DenseFeatures(tuple(map(_clip_infinities, features.tables)))
    for part in features.tables:
        # scikit-learn would copy a table in Fortran order.
        table = part.T if part.flags.f_contiguous else part
        with np.errstate(invalid="ignore"):  # it sums up all numbers to find infinite ones
            assert_all_finite(
                table, allow_nan=True, estimator_name=type(model).__name__, input_name="X"
            )
    return features


def _clip_infinities(values: NDArray[Any]) -> NDArray[Any]:
    """Replace infinite values of an array by the largest float64 of their sign.

    Trees do not change by that, as no threshold separates the two. The result is a float64 copy.
    Without infinite values the array itself is returned. NaN is kept.
    """
    if not values.size:
        return values
    ends = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if not np.isinf(ends).any():
        return values
    largest = np.finfo(np.float64).max
    bounded: NDArray[Any] = np.clip(values.astype(np.float64), -largest, largest)
    return bounded


def _encode_target(
    model: Any,
    target: NDArray[Any],
    classes: ArrayLike | None,
    split: TrainCalibrationSplit,
    reuse_encoding: bool,
) -> tuple[Int32, dict[str, Any]]:
    """Encode classes as int32 codes.

    The classes are `model.classes_` with reuse_encoding, which is True in an update. Else they are
    the argument classes (only for a single target), or those of the training set of split if it is
    None. target: class of each row, (n,) or (n, n_outputs). K is the number of classes.

    Returns
    -------
    codes : ndarray of int32, shape (n,) or (n, n_outputs)
        Class codes 0, 1, ...; classes that no training row has get codes from max(2, K) on.
    learned : dict of str to object
        Fitted attributes by name: `classes_`, `n_classes_` and, if the model accepts several
        targets, `n_outputs_`. For a single target with a calibration set also
        `_calibration_classes`: sorted classes that only calibration rows have; empty if the
        argument classes was passed.
    """
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
    """Return the argument classes sorted, (K,); if it is None, those of the training set.

    target: class of each row, (n,). split: its training set has the rows to read; if the training
    or the calibration set is empty, all rows are read.
    """
    return np.unique(_take_training_rows(target, split) if classes is None else classes)


def _encode_column_of_classes(
    target: NDArray[Any], known: NDArray[Any], split: TrainCalibrationSplit
) -> tuple[Int32, NDArray[Any]]:
    """Encode a column of classes as codes, (n,) int32; also return the sorted classes not in known.

    Calibration rows may have such classes, with codes from max(2, len(known)) on. Raise a
    ValueError if a training row has one, or if all rows have.

    target: class of each row, (n,). known: sorted classes of the fit. split: indices of both sets.
    """
    is_known = find_positions(known, target)[1]
    # Calibration rows may have other classes, which the tree cannot predict: they count as errors.
    if not is_known[split.train].all() or not is_known.any():
        raise ValueError(
            f"y must hold classes among {known}, got {np.unique(target[~is_known])}: correct these "
            "labels, or drop their rows"
        )
    others = np.unique(target[~is_known])
    return encode_classes(target, known, others), others


def encode_classes(target: NDArray[Any], known: NDArray[Any], others: NDArray[Any]) -> Int32:
    """Encode classes as int32 codes, (n,).

    A class in known gets its index there. A class in others gets its index there plus
    ``get_first_untrained_code(len(known))``.

    target: class of each row, (n,). known, others: sorted arrays of distinct classes, without
    common ones. If others is empty, all classes of target must be in known.
    """
    codes, is_known = find_positions(known, target)
    if len(others):
        beyond = get_first_untrained_code(len(known)) + find_positions(others, target)[0]
        codes = np.where(is_known, codes, beyond)
    return codes.astype(np.int32)


def _count_outputs(model: Any, target: NDArray[Any], reuse_encoding: bool) -> dict[str, Any]:
    """Return the fitted attribute n_outputs_, the number of targets, in a dict by its name.

    The dict is empty if the model accepts only one target. With reuse_encoding raise a ValueError
    if the number differs from that of the fit.

    target: (n,) or (n, n_outputs).
    """
    if not model._takes_outputs:
        return {}
    n_outputs = 1 if target.ndim == 1 else target.shape[1]
    if reuse_encoding and n_outputs != model.n_outputs_:
        raise ValueError(
            f"y must have {model.n_outputs_} outputs, as in the fit, got {n_outputs} columns: pass the "
            "same targets"
        )
    return {"n_outputs_": n_outputs}


def _hash_fit_rows(
    model: Any, features: DenseOrSparseFeatures, codes: NDArray[Any], reuse_encoding: bool
) -> tuple[UInt64 | None, dict[str, Any]]:
    """Hash the features of each row, and collect the hashes by which the model recognises its rows.

    Parameters
    ----------
    model : RowInputMixin
        The classifier.
    features : DenseFeatures or SparseFeatures
        Encoded features of the rows.
    codes : ndarray of shape (n,) or (n, n_outputs)
        Class codes of the rows.
    reuse_encoding : bool
        True in an update: the rows are added to those that the model was fitted on before.

    Returns
    -------
    hashes : ndarray of uint64, shape (n,), or None
        Hash of the features of each row.
    learned : dict of str to object
        Fitted attributes by name: `sample_hashes_`, the distinct hashes of all rows of the fit, also
        rounded to float32 (see `compute_fit_hashes`), and `_sample_counts`, a `RepeatCounts`: how
        many rows have a hash that another row has. In an update of a model without hashes, `hashes`
        and both values are None.
    """
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
    """Return the first class code of classes that no training row has: max(2, n_classes).

    n_classes: number of classes of the training set.
    """
    return max(2, n_classes)


def compute_balanced_weights(
    y: NDArray[Any], weight: Float64 | None, split: TrainCalibrationSplit
) -> Float64:
    """Compute the factor that class_weight="balanced" gives each row, (n,).

    It is that of scikit-learn, the total weight / (number of classes * weight of the row's class),
    computed from the weights of the training set: calibration rows are not counted, as the tree
    must not depend on them. If one of both sets is empty, all rows are counted. Rows of a class
    that no training row has get 1. With several targets the factors of the columns are multiplied.

    Parameters
    ----------
    y : ndarray of shape (n,) or (n, n_outputs)
        Classes.
    weight : ndarray of float64, shape (n,), or None
        Weight of each row; None: 1 each.
    split : TrainCalibrationSplit
        Training and calibration set.
    """
    if y.ndim == 2:
        columns = (compute_balanced_weights(one, weight, split) for one in split_target_columns(y))
        return np.prod(np.column_stack([*columns]), axis=1)
    classes, codes = np.unique(_take_training_rows(y, split), return_inverse=True)
    totals: NDArray[Any] = np.bincount(codes)
    if weight is not None:  # fsum does not depend on the order of the rows
        known = _take_training_rows(weight, split)
        totals = np.array([fsum(known[codes == k]) for k in range(len(classes))])
    places, is_known = find_positions(classes, y)
    return np.where(is_known, compute_balanced_factors(totals)[places], 1.0)


def compute_balanced_factors(totals: NDArray[Any]) -> Float64:
    """Compute the balanced weight of each of K classes, ``sum(totals) / (K * totals)``, (K,).

    totals: total row weight of each class, (K,).
    """
    with np.errstate(over="ignore"):
        factors: Float64 = totals.sum() / (len(totals) * totals)
    return factors


def check_class_weights(
    class_weight: dict[Any, Any] | list[dict[Any, Any]], n_columns: int = 1
) -> None:
    """Raise a ValueError if a class weight is negative, infinite or not a number.

    class_weight: weight by class, a dict; for several targets a list with a dict for each target.
    n_columns: number of targets. If it is 1, a list raises a ValueError, too.
    """
    if n_columns == 1 and isinstance(class_weight, list):
        raise ValueError(
            'class_weight must be a dict, "balanced" or None for y of one column, got '
            f"{class_weight!r}"
        )
    of_each = class_weight if isinstance(class_weight, list) else [class_weight]
    for label, factor in (pair for one in of_each for pair in _get_class_weights(one)):
        if not isinstance(factor, Real) or not 0 <= float(factor) < np.inf:
            raise ValueError(
                f"class_weight must be finite and non-negative, got {factor!r} for class "
                f"{label!r}: use 0 to leave out a class"
            )


def _get_class_weights(class_weight: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight must hold a dict for each column, got {class_weight!r}: pass a list with "
            "one dict for each column of y"
        )
    return class_weight.items()


def to_table(x: ArrayLike) -> ArrayLike:
    """Return a single row, shape (p,), as a table (1, p); return a table (n, p) unchanged."""
    given = to_array("x", x)
    if given.ndim == 2:
        return x
    # NumPy would convert numbers beside strings to strings.
    return np.asarray(x, dtype=object if given.dtype.kind == "U" else None)[None]
