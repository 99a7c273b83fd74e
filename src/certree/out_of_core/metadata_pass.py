"""First passes over out-of-core data: classes, categories, names, dates, weights and target ranges.

Rows can be encoded only after these passes. Metadata of blocks is added up, and does not depend on how
rows are divided into blocks.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _get_feature_names, _num_features

from certree.interface.arrays import Float64, Int32, divide_by_largest, raise_for_zero_weights
from certree.interface.fitted_state import (
    DRAWN_GROUPS_ATTRIBUTE,
    GROUPS_ATTRIBUTE,
    TIME_ATTRIBUTE,
)
from certree.out_of_core.chunks import (
    Chunk,
    WeightScaling,
    copy_without_class_weights,
    copy_without_large_attributes,
    encode_chunk,
    find_positive_rows,
    get_group_names,
    make_encoder,
    select_positive_rows,
)
from certree.out_of_core.exact_sums import exact_sum, round_sum, sum_class_weights
from certree.out_of_core.executors import Executor
from certree.rows.calendar_parts import DateSample, choose_all_parts, draw_samples
from certree.rows.categories import Categories, match_category_type
from certree.rows.columns import TableColumns, to_float64_column
from certree.rows.dates import DateColumn
from certree.rows.draw_order import ColumnSums
from certree.rows.folds import number_groups
from certree.rows.relative_weights import (
    NO_WEIGHTS,
    WeightSpread,
    WeightUnit,
    warn_of_uneven_weights,
)
from certree.rows.split import count_missing_groups, expect_no_missing_groups
from certree.rows.training import (
    check_class_weights,
    compute_balanced_factors,
    convert_training_dates,
    mark_constrained,
    set_learned_attributes,
    split_target_columns,
)
from certree.tables.fitted_types import FORMAT_ATTRIBUTE
from certree.tables.table import read_attached_format
from certree.tables.table_source import TableFormat


@dataclass(frozen=True, slots=True, eq=False)
class RowMetadata:
    """Types, classes, categories and sums of the rows of one or several blocks.

    Adding two objects joins their rows.

    Parameters
    ----------
    n : int
        Number of rows of positive weight.
    names : tuple of str, None or ()
        Names of the features; None: features have no names; (): features have not been read.
    n_features : int
        Number of features.
    categories : tuple of (frozenset or None), length p
        Categories of each feature; None for a numeric one.
    classes : tuple of ndarray of shape (K,), one per target, or None
        Classes of each target, ascending; None for regression.
    ends : ndarray of float64, shape (n_targets, 2)
        Smallest and largest value of each target; empty for classification.
    totals : tuple of Counter, one per target
        Sum of the weights of each class, by the class, as an integer multiple of 2^-1126 (see
        `exact_sum`). Without weights, the number of rows of the class. For regression, the sum of all
        weights under the key "all"; 0 without weights.
    weight_unit : WeightUnit
        Largest weight, and the number of which all weights are multiples.
    spread : WeightSpread
        Sums of weights and of their squares, from which Kish's effective sample size is computed.
    dates : dict of int to DateColumn
        For each feature that holds dates, by index: kind and time zone of the dates.
    where : str
        Name of the first block, for error messages.
    are_grouped, has_offset : bool
        Whether rows have groups, and offsets.
    table_format : TableFormat or None
        Format of the CSV files that hold the rows, if it is unusual.
    """

    n: int = 0
    names: Any = ()
    n_features: int = 0
    categories: tuple[frozenset[Any] | None, ...] = ()
    classes: tuple[NDArray[Any], ...] | None = None
    ends: Float64 = field(default_factory=lambda: np.zeros((0, 2)))
    totals: tuple[Counter[Any], ...] = ()
    weight_unit: WeightUnit = NO_WEIGHTS
    spread: WeightSpread = field(default_factory=WeightSpread)
    dates: dict[int, DateColumn] = field(default_factory=dict)
    where: str = ""
    are_grouped: bool = False
    has_offset: bool = False
    table_format: TableFormat | None = None

    def __add__(self, other: Self) -> Self:
        """Return the metadata of the rows of both objects.

        other: metadata of other rows. ValueError is raised if both have different features or
        different numbers of targets.
        """
        if self.names != other.names or self.n_features != other.n_features:
            raise ValueError(
                f"X must have the same features in all rows, but {self.where} has "
                f"{_describe_features(self)} and {other.where} {_describe_features(other)}: make both "
                "from one table"
            )
        if self.n_targets != other.n_targets:
            raise ValueError(
                f"y must have the same number of columns in all rows, but {self.where} has "
                f"{self.n_targets} and {other.where} {other.n_targets}: make both from one table"
            )
        classes = self.classes
        if classes is not None and other.classes is not None:
            pairs = zip(classes, other.classes, strict=True)
            classes = tuple(np.unique(np.concatenate(pair)) for pair in pairs)
        return replace(
            self,
            n=self.n + other.n,
            categories=tuple(map(_join_categories, self.categories, other.categories)),
            dates=self._join_dates(other),
            classes=classes,
            ends=join_ranges(self.ends, other.ends),
            totals=tuple(map(Counter.__add__, self.totals, other.totals)),
            weight_unit=self.weight_unit + other.weight_unit,
            spread=self.spread + other.spread,
        )

    def _join_dates(self, other: Self) -> dict[int, DateColumn]:
        """Merge the date features of these and of other rows.

        other: metadata of the other rows. Return the merged type of each date feature, by its
        index. Raise a ValueError that names a feature with two kinds of dates.
        """
        dates = {**self.dates, **other.dates}
        for j in self.dates.keys() & other.dates.keys():
            try:
                dates[j] = self.dates[j] + other.dates[j]
            except ValueError as error:
                name = j if self.names is None else repr(self.names[j])
                raise ValueError(f"feature {name}: {error}") from None
        return dict(sorted(dates.items()))

    @property
    def largest(self) -> float:
        """Largest sample weight of the rows; 0 if rows have no weights."""
        return self.weight_unit.largest

    def total(self) -> int:
        """Return the exact sum of all weights, as an integer multiple of 2^-1126 (see `exact_sum`).

        Without weights, return the number of rows for a classifier, and 0 for a regressor.
        """
        return sum(self.totals[0].values())

    @property
    def n_targets(self) -> int:
        """Number of target columns."""
        return len(self.totals)

    @property
    def largest_targets(self) -> Float64:
        """Largest absolute value of each target, or its largest class code, (n_targets,)."""
        if self.classes is not None:
            return np.array([len(classes) - 1.0 for classes in self.classes])
        return find_largest_targets(self.ends)


def find_largest_targets(ends: Float64) -> Float64:
    """Return the largest magnitude of each target, (n_targets,).

    ends: smallest and largest value of each target, (n_targets, 2).
    """
    largest: Float64 = np.abs(ends).max(axis=1)
    return largest


def join_ranges(first: Float64, second: Float64) -> Float64:
    """Return the smallest and largest value of each target in two sets of rows.

    Parameters
    ----------
    first, second : ndarray of float64, shape (n_targets, 2)
        Smallest and largest value of each target in one set.

    Returns
    -------
    ndarray of float64, shape (n_targets, 2)
        Smallest and largest value of each target in both sets.
    """
    return np.column_stack([np.minimum(first, second)[:, 0], np.maximum(first, second)[:, 1]])


@dataclass(frozen=True, slots=True, eq=False)
class FitMetadata:
    """Classes, categories and sums over all rows of a fit, by which its rows are encoded.

    `collect_metadata` returns it.

    Parameters
    ----------
    rows : RowMetadata
        Sums over all rows. Weights are multiplied by class weights.
    attributes : dict of str to object
        Fitted attributes about classes, categories and features, by name, such as "classes_".
    encoder : object
        Copy of the model with these attributes, which converts features and targets of rows to numbers.
    weight_scaling : WeightScaling or None
        Scales the weights of rows; None: rows have no weights.
    draw_order : ndarray of int32, shape (p,)
        Order in which features are hashed and drawn at random. It depends on the contents of the
        columns, so that permuted columns give the same model; see `Training.draw_order`.
    """

    rows: RowMetadata
    attributes: dict[str, Any]
    encoder: Any
    weight_scaling: WeightScaling | None
    draw_order: Int32

    def with_draw_order(self, order: Int32) -> Self:
        """Return a copy with another order in which features are hashed and drawn.

        order: indices of the features, (p,).
        """
        encoder = copy(self.encoder)
        encoder._draw_order = order
        return replace(self, encoder=encoder, draw_order=order)

    def with_numbered_groups(self, executor: Executor) -> Self:
        """Return a copy whose encoder replaces the names of groups by their numbers in sorted order.

        This takes two passes over the groups. Call it before `Executor.apply_memory_limit`, so that the
        memory of the names counts. executor: reads the rows. Return this object if rows have no groups.
        Raise ValueError if some rows have none, and TypeError if groups cannot be sorted.
        """
        if not self.rows.are_grouped:
            return self
        counts = executor.scan(_count_missing_groups, targets_only=True)
        expect_no_missing_groups(*map(int, counts))
        encoder = copy(self.encoder)
        encoder._group_names = executor.scan(_list_groups, targets_only=True).names
        return replace(self, encoder=encoder)

    def with_groups_of(self, other: Self) -> Self:
        """Return a copy whose encoder numbers groups as that of `other` does.

        other: metadata with numbered groups of a table, of which these rows are a part.
        """
        encoder = copy(self.encoder)
        encoder._group_names = get_group_names(other.encoder)
        return replace(self, encoder=encoder)

    @property
    def n_groups(self) -> int:
        """Number of groups of rows, if `with_numbered_groups` was called; 0 without groups."""
        names = get_group_names(self.encoder)
        return 0 if names is None else len(names)

    def set_attributes(self, model: Any, time_column: str | None = None) -> None:
        """Set the fitted attributes about classes, categories and features, in place.

        model: the model that is fitted; time_column: name of the column of the rows' times, which the
        model stores; None: rows have no times.
        """
        set_learned_attributes(model, {**self.attributes, TIME_ATTRIBUTE: time_column})

    def update_attributes(self, model: Any, time_column: str | None = None) -> None:
        """Check the rows of a warm start, and store that they had groups or times.

        Without groups or times, what the model has stored of earlier fits stays, as in memory.
        model, time_column: as in `set_attributes`. Raise ValueError as `expect_same_encoding`.
        """
        self.expect_same_encoding(model)
        found = {**self.attributes, TIME_ATTRIBUTE: time_column}
        for name in (GROUPS_ATTRIBUTE, TIME_ATTRIBUTE):
            if found[name] is not None:
                setattr(model, name, found[name])

    def expect_same_encoding(self, model: Any) -> None:
        """Check before a warm start that rows are encoded as in the last fit of the model.

        Raise ValueError unless features, categories, dates, targets and classes are those of `model`.
        """
        fitted, attributes = model.__dict__, self.attributes
        of_features = ("n_features_in_", "feature_names_in_", "categories_", "dates_")
        for name in (*of_features, "n_outputs_", "classes_"):
            if not _are_equal(fitted.get(name), attributes.get(name)):
                argument = "X" if name in of_features else "y"
                raise ValueError(
                    f"{argument} must be that of the previous fit with warm_start=True for "
                    f"out-of-core or distributed data, got rows with another {name}: pass the same "
                    "rows in any order, or set warm_start=False"
                )


def _are_equal(first: Any, second: Any) -> bool:
    """Return whether two values of a fitted attribute are equal.

    first, second: arrays, lists of arrays, `Categories` or other objects.
    """
    if isinstance(first, Categories) and isinstance(second, Categories):
        return first.equals(second)
    if isinstance(first, list) and isinstance(second, list):  # classes of several targets
        return len(first) == len(second) and all(map(np.array_equal, first, second))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return type(first) is type(second) and bool(first == second)


def collect_metadata(
    model: Any,
    executor: Executor,
    *,
    are_all: bool = True,
    has_calendar_parts: bool = True,
    classes: NDArray[Any] | None = None,
) -> FitMetadata:
    """Find classes, categories, names, dates and weights of all rows, in two or more passes.

    Parameters
    ----------
    model : estimator
        The model that is fitted; it is not changed.
    executor : Executor
        Reads the rows.
    are_all : bool
        Whether `executor` reads all rows of the fit. Only then very different weights cause a warning.
    has_calendar_parts : bool
        Whether calendar parts of dates (such as month and weekday) are chosen as features. False if
        some of the rows are calibration rows, on which a model must not depend.
    classes : ndarray of shape (K,), or None
        The classes of the model, sorted; None: those of the rows.

    Returns
    -------
    FitMetadata
        Classes, categories and sums over all rows, and a copy of the model that encodes rows.

    Raises
    ------
    ValueError
        If there are no rows of positive weight, or blocks have different features. If a row has a
        class that is not among `classes`.
    TypeError, ValueError
        If targets, weights or class weights are wrong.
    """
    model = copy_without_large_attributes(model)
    # The first pass finds the classes, on which class weights may depend.
    found = _scan(model, copy_without_class_weights(model), executor)
    weighting, is_weighed = model, executor.has_weights
    if getattr(model, "class_weight", None) is not None:
        weighting = _set_class_weights(model, found, executor.has_weights)
        found, is_weighed = _scan(model, weighting, executor), True
    if are_all and executor.has_weights:
        warn_of_uneven_weights(found.spread)
    attributes = _make_attributes(found, model)
    if classes is not None and found.classes is not None:
        if len(unknown := np.setdiff1d(found.classes[0], classes)):
            raise ValueError(
                f"y must hold classes among {classes}, got {unknown}: add them to classes, or leave "
                "out their rows"
            )
        attributes |= {"classes_": classes, "n_classes_": len(classes)}
    size = found.spread.effective_size if is_weighed else float(found.n)
    attributes["effective_sample_size_"] = size
    if (
        has_calendar_parts
        and attributes["dates_"] is not None
        and model._orders_categories_by_rows()
    ):
        attributes["dates_"] = _choose_parts(
            attributes, make_encoder(weighting, attributes), executor
        )
    order = _number_categories(attributes, make_encoder(weighting, attributes), executor)
    encoder = make_encoder(weighting, attributes)
    encoder._draw_order = order
    weight_scaling = WeightScaling(found.largest) if is_weighed else None
    return FitMetadata(found, attributes, encoder, weight_scaling, order)


def _choose_parts(
    attributes: dict[str, Any], encoder: Any, executor: Executor
) -> dict[int, DateColumn]:
    """Choose the calendar parts of dates, such as month and weekday, that become features.

    They are chosen on a sample that does not depend on the order of rows. attributes: fitted
    attributes so far, by name, of which "dates_" has the date columns; encoder: copy of the model,
    which encodes rows; executor: reads the rows. Return copies of the date columns that name the chosen
    parts, by the index of the column. `attributes` are not changed.
    """
    dates: dict[int, DateColumn] = attributes["dates_"]
    samples: Any = executor.scan(_sample_dates, encoder)
    names, p = attributes["feature_names_in_"], attributes["n_features_in_"]
    return choose_all_parts(dates, samples.by_column, mark_constrained(encoder, names, p))


@dataclass(frozen=True, slots=True, eq=False)
class _DateSamples:
    """Samples of rows for each date column. Adding two objects joins their rows.

    Parameters
    ----------
    by_column : dict of int to DateSample
        For each date column, by its index: dates, targets and weights of at most 10,000 rows.
    """

    by_column: dict[int, DateSample]

    def __add__(self, other: Self) -> Self:
        """Return the samples of the rows of both objects. other: samples of other rows."""
        return replace(
            self,
            by_column={j: sample + other.by_column[j] for j, sample in self.by_column.items()},
        )


def _sample_dates(chunk: Chunk, encoder: Any) -> _DateSamples | None:
    """Draw a sample of a chunk's rows for each date column, by which calendar parts are chosen.

    The rows with the smallest hashes of date and target are drawn. chunk: raw rows; encoder: copy of
    the model, which encodes rows. Return None if no row has a positive weight.
    """
    rows: Any = encode_chunk(encoder, chunk, None)
    if rows is None:
        return None
    return _DateSamples(draw_samples(encoder.dates_, rows.features, rows.y, rows.weight))


def _number_categories(attributes: dict[str, Any], encoder: Any, executor: Executor) -> Int32:
    """Number the categories of each feature, and the features, by their rows.

    Categories with more rows come first; sums of row hashes decide between equally many rows, so
    that the numbers do not depend on names and positions. attributes: fitted attributes, of which
    "categories_" is replaced by the same categories in the order of their new codes; encoder: copy
    of the model, which encodes rows; executor: reads the rows. Return the order in which features
    are drawn at random, a permutation of their indices, (p,); see `Training.draw_order`.
    """
    sums: ColumnSums = executor.scan(_sum_columns, encoder)
    categories: Categories | None = attributes["categories_"]
    if categories is not None:
        numbers = {j: sums.number_categories(j) for j in np.flatnonzero(categories.mask).tolist()}
        attributes["categories_"] = categories.renumber(numbers)
    return sums.order_columns()


def _sum_columns(chunk: Chunk, encoder: Any) -> ColumnSums | None:
    """Sum hashes of a chunk's rows by column and by category, to order columns and categories.

    chunk: raw rows; encoder: copy of the model, which encodes rows. Return sums that `+` adds to those
    of other chunks, or None if no row has a positive weight.
    """
    rows = encode_chunk(encoder, chunk, None)
    if rows is None:
        return None
    return ColumnSums.sum_rows(rows.features, rows.y, rows.n_categories)


@dataclass(frozen=True, slots=True, eq=False)
class ValidationMetadata:
    """Targets and weights of a validation set, summarized; features are encoded as those of the fit.

    Parameters
    ----------
    rows : RowMetadata
        Classes, target ranges and sums of weights. Weights are multiplied by class weights.
    encoder : object
        Copy of the model, which encodes the rows of the validation set, with its class weights.
    weight_scaling : WeightScaling or None
        Scales the weights of the validation set to a mean of 1; None: rows have no weights.
    """

    rows: RowMetadata
    encoder: Any
    weight_scaling: WeightScaling | None


def collect_validation_metadata(
    model: Any, metadata: FitMetadata, validation: Any
) -> ValidationMetadata:
    """Summarize targets and weights of a validation set, in up to three passes.

    Parameters
    ----------
    model : estimator
        The model that is fitted.
    metadata : FitMetadata
        Metadata of the rows of the fit.
    validation : ValidationExecutor
        Reads the rows of the validation set.

    Returns
    -------
    ValidationMetadata
        Classes, target ranges and sums of weights.

    Raises
    ------
    ValueError
        If no row has a positive weight.
    TypeError, ValueError
        If targets or weights are wrong.
    """
    encoder, is_weighed = copy(metadata.encoder), validation.has_weights
    if isinstance(getattr(model, "class_weight", None), str):
        # "balanced" depends on the frequencies of classes in the validation set itself.
        found = _scan_targets(copy_without_class_weights(encoder), validation)
        encoder.class_weight = _set_class_weights(model, found, is_weighed).class_weight
    found = _scan_targets(encoder, validation)
    weight_scaling = None
    if is_weighed or getattr(encoder, "class_weight", None) is not None:
        total = validation.scan(_sum_scaled_weights, encoder, found.largest, targets_only=True)
        weight_scaling = WeightScaling(found.largest, found.n / round_sum(total))
    return ValidationMetadata(found, encoder, weight_scaling)


def _scan_targets(encoder: Any, rows: Any) -> RowMetadata:
    """Read targets and weights of all rows, and return their metadata without features.

    encoder: copy of the model with class weights, by which weights are multiplied; rows: executor that
    reads the rows: a validation set, or rows of a fit that are known to have positive weights.
    ValueError, which names X_val, is raised if no row has a positive weight.
    """
    found: RowMetadata | None = rows.scan(_scan_block, encoder, targets_only=True)
    if found is None:
        raise ValueError(
            "X_val must hold at least one row of positive weight, got none: pass other rows, or leave "
            "out sample_weight_val"
        )
    return found


def _sum_scaled_weights(chunk: Chunk, encoder: Any, largest: float) -> int | None:
    """Sum the weights of a chunk's rows, divided by the largest weight of all rows, exactly.

    Weights are sample weights times class weights; rows without sample weights have their class
    weights. encoder: copy of the model, which has the class weights; largest: the largest such weight
    of all rows. Return the sum as an integer multiple of 2^-1126 (see `exact_sum`), or None if no row
    has a positive weight, or there are neither sample weights nor class weights.
    """
    found = find_positive_rows(encoder, replace(chunk, X=chunk.y))
    if found is None or found[1] is None:
        return None
    return exact_sum(divide_by_largest(found[1], largest))


def _scan(model: Any, encoder: Any, executor: Executor) -> RowMetadata:
    """Read all rows, and return their metadata.

    If the schema shows that all features are numeric, features are not read.

    Parameters
    ----------
    model : estimator
        The model that is fitted.
    encoder : object
        Copy of the model with the class weights by which weights are multiplied.
    executor : Executor
        Reads the rows.

    Returns
    -------
    RowMetadata
        Classes, categories, dates, names of features, and sums of weights.

    Raises
    ------
    ValueError
        If there are no rows, or none has a positive weight.
    """
    chosen = model.categorical_features
    is_schema_enough = executor.empty_table is not None and (
        chosen is None or isinstance(chosen, str)
    )
    found: RowMetadata | None = executor.scan(_scan_block, encoder, targets_only=is_schema_enough)
    if found is None and not executor.has_weights:  # The message of scikit-learn, as in memory.
        raise ValueError(
            f"Found array with 0 sample(s) while a minimum of 1 is required by "
            f"{type(model).__name__}."
        )
    if found is None:
        raise_for_zero_weights()
    return _add_features(found, executor.empty_table, model) if is_schema_enough else found


def _describe_features(found: RowMetadata) -> str:
    """Describe the features of a table for an error message: "features ['age']", or "3 features".

    found: metadata of the table. Features without names are counted.
    """
    return f"{found.n_features} features" if found.names is None else f"features {[*found.names]}"


def _join_categories(
    first: frozenset[Any] | None, second: frozenset[Any] | None
) -> frozenset[Any] | None:
    """Return all categories of a feature in two sets of rows; None if it is numeric in both.

    first, second: categories in each set; None: numeric. Integers become strings of digits if the other
    set has digits of integers beyond 2^53. If the feature is numeric in one set, return the categories
    of the other.
    """
    if first is None or second is None:
        return first if second is None else second
    return frozenset((*match_category_type(first, second), *match_category_type(second, first)))


def measure_effective_size(encoder: Any, executor: Executor) -> float:
    """Compute Kish's effective sample size of all rows, (sum of weights)^2 / sum of squared weights.

    Parameters
    ----------
    encoder : object
        Copy of the model with class weights, by which weights are multiplied.
    executor : Executor
        Reads the rows.

    Returns
    -------
    float
        The effective sample size.

    Raises
    ------
    ValueError
        If no row has a positive weight.
    """
    return _scan_targets(encoder, executor).spread.effective_size


def _add_features(found: RowMetadata, X: Any, model: Any) -> RowMetadata:
    """Return metadata of targets and weights with that of the features: names, categories, dates.

    found: metadata without features, which is not changed; X: rows, or a table without rows that has
    the columns; model: the model that is fitted, whose parameter `categorical_features` chooses the
    categorical features. The result also has the format of the CSV file, if X has one attached.
    """
    names = _get_feature_names(X)
    p = len(X.columns) if hasattr(X, "columns") else _num_features(X)
    X, dates = convert_training_dates(model, X, False)
    categories: Categories | None = model._find_categories(X, False)
    by_feature = [None] * p if categories is None else categories.names
    return replace(
        found,
        names=None if names is None else tuple(map(str, names)),
        n_features=p,
        categories=tuple(None if known is None else frozenset(known) for known in by_feature),
        table_format=read_attached_format(getattr(X, "schema", None)),
        dates=_set_last_dates(dates, X),
    )


def _set_last_dates(dates: dict[int, DateColumn], X: Any) -> dict[int, DateColumn]:
    """Return copies of date features with the latest date of the rows X, in days since 1970.

    dates: kind of dates of each feature that holds dates, by its index.
    """
    if not dates:
        return dates
    columns = TableColumns.read(X).columns
    return {
        j: column.with_last(to_float64_column(columns[j], f"feature {j}"))
        for j, column in dates.items()
    }


def _scan_block(chunk: Chunk, model: Any) -> RowMetadata | None:
    """Return metadata of a chunk's rows of positive weight; None if there are none.

    chunk: raw rows; if its X is None, the result has no metadata of features; model: copy of the
    model with class weights, by which weights are multiplied.
    """
    rows = select_positive_rows(model, chunk if chunk.X is not None else replace(chunk, X=chunk.y))
    if rows is None:
        return None
    columns = split_target_columns(rows.y)
    weight: Float64 | None = rows.weight
    found = RowMetadata(
        n=len(rows.y),
        where=chunk.where,
        are_grouped=rows.groups is not None,
        has_offset=rows.offset is not None,
    )
    if chunk.X is not None:
        found = _add_features(found, rows.X, model)
    if weight is not None:
        unit, spread = WeightUnit.find(weight), WeightSpread.measure(weight)
        found = replace(found, weight_unit=unit, spread=spread)
    if not is_classifier(model):
        total = 0 if weight is None else exact_sum(weight)
        targets = [np.asarray(column, dtype=np.float64) for column in columns]
        ends = np.array([(target.min(), target.max()) for target in targets])
        return replace(found, ends=ends, totals=tuple(Counter({"all": total}) for _ in columns))
    encoded = [np.unique(column, return_inverse=True) for column in columns]
    totals = [
        Counter(dict(zip(classes.tolist(), sum_class_weights(codes, weight), strict=True)))
        for classes, codes in encoded
    ]
    return replace(found, classes=tuple(classes for classes, _ in encoded), totals=tuple(totals))


def _set_class_weights(model: Any, found: RowMetadata, is_weighed: bool) -> Any:
    """Return a copy of a model whose class weights are dictionaries with a factor for each class.

    Parameters
    ----------
    model : estimator
        The model, with the parameter `class_weight`.
    found : RowMetadata
        Metadata of all rows, without class weights.
    is_weighed : bool
        Whether rows have weights.

    Returns
    -------
    estimator
        The copy. Its `class_weight` is a dictionary, or a list of one for each of several targets.

    Raises
    ------
    ValueError
        If class_weight is wrong.
    """
    class_weight, weighted = model.class_weight, copy(model)
    if found.classes is None:
        return weighted
    by_target = []
    if not isinstance(class_weight, str):
        check_class_weights(class_weight, found.n_targets)
    if isinstance(class_weight, list) and len(class_weight) != found.n_targets:
        raise ValueError(
            f"class_weight must hold a dict for each of {found.n_targets} columns, got "
            f"{len(class_weight)}: pass one dict per column of y, in their order"
        )
    for k, (classes, class_totals) in enumerate(zip(found.classes, found.totals, strict=True)):
        if isinstance(class_weight, str):
            counts = [class_totals[label] for label in classes.tolist()]
            totals = np.array([round_sum(total) for total in counts] if is_weighed else counts)
            factors = compute_balanced_factors(totals)
        else:
            target_weight = class_weight[k] if isinstance(class_weight, list) else class_weight
            factors = compute_class_weight(target_weight, classes=classes, y=classes)
        by_target.append(dict(zip(classes.tolist(), map(float, factors), strict=True)))
    weighted.class_weight = by_target if found.n_targets > 1 else by_target[0]
    return weighted


def _make_attributes(found: RowMetadata, model: Any) -> dict[str, Any]:
    """Return the fitted attributes about classes, categories and features, by name.

    Such names are "classes_", "categories_", "dates_", "n_features_in_" and "feature_names_in_". found:
    metadata of all rows; model: the model that is fitted, which is not changed.
    """
    # A column of Python objects without values counts as categorical in its block, even if it holds
    # dates in other blocks.
    by_feature = [
        None if j in found.dates and not known else known
        for j, known in enumerate(found.categories)
    ]
    names = tuple(None if known is None else tuple(sorted(known)) for known in by_feature)
    has_any = any(known is not None for known in names)
    attributes: dict[str, Any] = {
        "categories_": Categories(names, (), not model._has_code_of_unknown()) if has_any else None,
        "dates_": found.dates or None,
        FORMAT_ATTRIBUTE: found.table_format,
        GROUPS_ATTRIBUTE: "" if found.are_grouped else None,
        DRAWN_GROUPS_ATTRIBUTE: None,
        "n_features_in_": found.n_features,
        "feature_names_in_": None if found.names is None else np.array(found.names, dtype=object),
    }
    if model._takes_outputs:
        attributes["n_outputs_"] = found.n_targets
    if found.classes is None:
        return attributes
    classes, numbers = [*found.classes], [len(known) for known in found.classes]
    if found.n_targets == 1:
        return attributes | {"classes_": classes[0], "n_classes_": numbers[0]}
    return attributes | {"classes_": classes, "n_classes_": numbers}


def _count_missing_groups(chunk: Chunk) -> NDArray[np.int64]:
    """Return ``[number of rows whose group is missing, number of all rows]`` of a chunk, (2,).

    chunk: raw rows with groups.
    """
    groups: Any = chunk.groups
    return np.array([count_missing_groups(groups), len(groups)])


@dataclass(frozen=True, slots=True, eq=False)
class _GroupNames:
    """Names of the distinct groups of some rows. Adding two objects joins the rows.

    Parameters
    ----------
    names : ndarray of shape (n_groups,)
        The names (values of the argument `groups` of fit), ascending.
    """

    names: NDArray[Any]

    def __add__(self, other: Self) -> Self:
        """Return the names of the groups of both objects. other: names of the groups of other rows."""
        return replace(self, names=number_groups(np.concatenate([self.names, other.names]))[0])


def _list_groups(chunk: Chunk) -> _GroupNames | None:
    """Return the names of the distinct groups of a chunk's rows; None if it has no rows."""
    if not len(chunk.y):
        return None
    return _GroupNames(number_groups(np.asarray(chunk.groups))[0])


def expect_one_target(found: RowMetadata) -> None:
    """Raise ValueError if rows have several targets, as single trees on bins support only one.

    found: metadata of the rows.
    """
    if found.n_targets > 1:
        raise ValueError(
            f"y must be one column for a tree that is grown from bins, got {found.n_targets} columns: "
            "load the rows into memory and use grower=Cart(), or fit a tree for each column"
        )
