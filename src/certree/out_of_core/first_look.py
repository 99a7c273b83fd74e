"""What all rows tell before any of them can be coded: classes, categories, names and weights."""

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

from certree.interface.arrays import Float64, Int32, divide_by_largest
from certree.out_of_core.chunks import (
    Chunk,
    Weighing,
    positive,
    positive_rows,
    reader_of,
    training_of,
    without_class_weights,
    without_large_attributes,
)
from certree.out_of_core.exact_sums import class_totals, exact_sum, rounded
from certree.out_of_core.executors import Executor
from certree.out_of_core.resources import get_memory_limit
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
class Found:
    """What some chunks tell; those of more add up.

    Parameters
    ----------
    n : int
        Number of rows of positive weight.
    names : list of str, None or ()
        Names of the features, None where they have none; (): no rows have been seen.
    n_features : int
        Number of features.
    categories : tuple of (frozenset or None), one per feature
        Categories of each feature, None where it is one of numbers.
    classes : tuple of ndarray of shape (K,), one per target, or None
        Classes, ascending, of a classifier.
    ends : ndarray of float64, shape (n_targets, 2)
        The smallest and the largest of each target, of numbers.
    totals : tuple of Counter, one per target
        Exact weight of each class by its name, or of all rows.
    weight_unit : WeightUnit
        What decides the integers that weights become.
    spread : WeightSpread
        How much weights differ.
    dates : dict of int to DateColumn
        The features that hold dates, by index.
    where : str
        A chunk of these.
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
        """What both tell together."""
        if self.names != other.names or self.n_features != other.n_features:
            raise ValueError(
                f"all rows must have the same features, but {self.where} has "
                f"{_listed(self)} and {other.where} {_listed(other)}"
            )
        if self.n_targets != other.n_targets:
            raise ValueError(
                f"all rows must have as many targets, but {self.where} has {self.n_targets} and "
                f"{other.where} {other.n_targets}"
            )
        classes = self.classes
        if classes is not None and other.classes is not None:
            pairs = zip(classes, other.classes, strict=True)
            classes = tuple(np.unique(np.concatenate(pair)) for pair in pairs)
        return replace(
            self,
            n=self.n + other.n,
            categories=tuple(map(_united, self.categories, other.categories)),
            dates=self._join_dates(other),
            classes=classes,
            ends=ends_together(self.ends, other.ends),
            totals=tuple(map(Counter.__add__, self.totals, other.totals)),
            weight_unit=self.weight_unit + other.weight_unit,
            spread=self.spread + other.spread,
        )

    def _join_dates(self, other: Self) -> dict[int, DateColumn]:
        """Return the features that hold dates in these or in other chunks, by index.

        Raise a ValueError that names a feature with two kinds of dates.
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
        """The largest weight."""
        return self.weight_unit.largest

    def total(self) -> int:
        """Weight of all rows in units of `exact_sum`."""
        return sum(self.totals[0].values())

    @property
    def n_targets(self) -> int:
        """How many targets rows have."""
        return len(self.totals)

    @property
    def largest_targets(self) -> Float64:
        """The largest size of each target, (n_targets,), or the last code of its classes."""
        if self.classes is not None:
            return np.array([len(one) - 1.0 for one in self.classes])
        return largest_of(self.ends)


def largest_of(ends: Float64) -> Float64:
    """The largest size of each target, by its smallest and its largest number, (n_targets, 2)."""
    largest: Float64 = np.abs(ends).max(axis=1)
    return largest


def ends_together(one: Float64, other: Float64) -> Float64:
    """The smallest and the largest of each target, (n_targets, 2), of the rows of both."""
    return np.column_stack([np.minimum(one, other)[:, 0], np.maximum(one, other)[:, 1]])


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What all rows of a fit tell before they are coded.

    Parameters
    ----------
    found : Found
        What was found, by the weights of classes if there are any.
    attributes : dict
        Fitted attributes that speak of classes and features, by their names.
    reader : object
        A copy of the model that reads rows by them.
    weighing : Weighing or None
        How rows are weighed; None: each counts once.
    draw_order : ndarray of int32, shape (p,)
        In which order columns are looked at and drawn.
    """

    found: Found
    attributes: dict[str, Any]
    reader: Any
    weighing: Weighing | None
    draw_order: Int32

    def looking(self, order: Int32) -> Self:
        """The same where columns are looked at in another order."""
        reader = copy(self.reader)
        reader._draw_order = order
        return replace(self, reader=reader, draw_order=order)

    def numbering_groups(self, parts: Executor) -> Self:
        """Return a copy whose reader numbers the groups of rows, by their sorted names.

        parts: has the rows. Return this object if rows have no groups; raise ValueError if some rows
        have none, or if memory is limited.
        """
        if not self.found.are_grouped:
            return self
        expect_no_limit_of_groups(self.found, "boosted trees")
        expect_groups_of_all(self.found, parts)
        reader = copy(self.reader)
        names = parts.look(_list_groups, targets_only=True)
        reader._group_names = number_groups(np.concatenate(names))[0]
        return replace(self, reader=reader)

    def teach(self, model: Any) -> None:
        """Let a model know classes and features."""
        set_learned_attributes(model, self.attributes)

    def expect_same_encoding(self, model: Any) -> None:
        """Raise ValueError if a warm start of `model` would encode rows otherwise than its last fit.

        Features, categories, dates, targets and classes must be those of the fitted model.
        """
        known, found = model.__dict__, self.attributes
        of_features = ("n_features_in_", "feature_names_in_", "categories_", "dates_")
        for name in (*of_features, "n_outputs_", "classes_"):
            if not _are_equal(known.get(name), found.get(name)):
                argument = "X" if name in of_features else "y"
                raise ValueError(
                    f"{argument} must be that of the previous fit with warm_start=True for "
                    f"out-of-core or distributed data, got rows with another {name}: pass the same "
                    "rows in any order, or set warm_start=False"
                )


def _are_equal(known: Any, found: Any) -> bool:
    """Return whether two values of a fitted attribute about features or classes are equal."""
    if isinstance(known, Categories) and isinstance(found, Categories):
        return known.equals(found)
    if isinstance(known, list) and isinstance(found, list):  # classes of several targets
        return len(known) == len(found) and all(map(np.array_equal, known, found))
    if isinstance(known, np.ndarray) and isinstance(found, np.ndarray):
        return np.array_equal(known, found)
    return type(known) is type(found) and bool(known == found)


def learn(
    model: Any,
    parts: Executor,
    *,
    are_all: bool = True,
    has_parts: bool = True,
    classes: NDArray[Any] | None = None,
) -> Learned:
    """Learn classes and features from all rows.

    Parameters
    ----------
    model : estimator
        What is fitted; it is not changed.
    parts : Executor
        Holds the rows.
    are_all : bool
        Whether they are all rows of the fit, of which uneven weights are worth a warning.
    has_parts : bool
        Whether calendar parts of dates are chosen; False if some of these rows certify the model.
    classes : ndarray of shape (K,), or None
        The classes of the model, sorted; None: those of the rows.

    Returns
    -------
    Learned

    Raises
    ------
    ValueError
        If a row has a class that is not among `classes`.
    """
    model = without_large_attributes(model)
    # Some rows alone do not tell which classes there are, and so not what they weigh.
    found = _looked(model, without_class_weights(model), parts)
    reader, is_weighed = model, parts.has_weights
    if getattr(model, "class_weight", None) is not None:
        reader = _with_class_weights(model, found, parts.has_weights)
        found, is_weighed = _looked(model, reader, parts), True
    if are_all and parts.has_weights:
        warn_of_uneven_weights(found.spread)
    learned = _learned_by(found, model)
    if classes is not None and found.classes is not None:
        if len(unknown := np.setdiff1d(found.classes[0], classes)):
            raise ValueError(f"y must hold classes among {classes}, got {unknown}")
        learned |= {"classes_": classes, "n_classes_": len(classes)}
    size = found.spread.effective_size if is_weighed else float(found.n)
    learned["effective_sample_size_"] = size
    if has_parts and learned["dates_"] is not None and model._orders_categories_by_rows():
        learned["dates_"] = _choose_parts(learned, reader_of(reader, learned), parts)
    order = _number_categories(learned, reader_of(reader, learned), parts)
    made = reader_of(reader, learned)
    made._draw_order = order
    return Learned(found, learned, made, _weighing_of(found, is_weighed), order)


def _choose_parts(learned: dict[str, Any], reader: Any, parts: Executor) -> dict[int, DateColumn]:
    """Choose the calendar parts of dates by a sample of all rows, which no order of them changes.

    learned: fitted attributes so far. reader: the model that reads rows by them. parts: the rows.
    Return the date columns by index.
    """
    dates: dict[int, DateColumn] = learned["dates_"]
    samples: Any = parts.look(_sample_dates, reader)
    names, p = learned["feature_names_in_"], learned["n_features_in_"]
    return choose_all_parts(dates, samples.of_column, mark_constrained(reader, names, p))


@dataclass(frozen=True, slots=True, eq=False)
class _DateSamples:
    """Samples of blocks of rows for each date column.

    Parameters
    ----------
    of_column : dict of int to DateSample
        The sample by the index of the column.
    """

    of_column: dict[int, DateSample]

    def __add__(self, other: Self) -> Self:
        """Join the samples of two blocks."""
        return replace(
            self, of_column={j: one + other.of_column[j] for j, one in self.of_column.items()}
        )


def _sample_dates(chunk: Chunk, reader: Any) -> _DateSamples | None:
    """Draw the rows of a block by which calendar parts are chosen; None: it has no rows."""
    rows: Any = training_of(reader, chunk, None)
    if rows is None:
        return None
    return _DateSamples(draw_samples(reader.dates_, rows.features, rows.y, rows.weight))


def _number_categories(learned: dict[str, Any], reader: Any, parts: Executor) -> Int32:
    """Number the categories that were learned as all rows tell; gives `Training.draw_order`."""
    sums: ColumnSums = parts.look(_column_sums, reader)
    known: Categories | None = learned["categories_"]
    if known is not None:
        numbers = {j: sums.number_categories(j) for j in np.flatnonzero(known.mask).tolist()}
        learned["categories_"] = known.renumber(numbers)
    return sums.order_columns()


def _column_sums(chunk: Chunk, reader: Any) -> ColumnSums | None:
    """What the rows of a chunk add up to by column and category; None: there are none."""
    rows = training_of(reader, chunk, None)
    if rows is None:
        return None
    return ColumnSums.sum_rows(rows.features, rows.y, rows.n_categories)


@dataclass(frozen=True, slots=True, eq=False)
class Judging:
    """What rows tell that judge a fit whose classes and features are known.

    Parameters
    ----------
    found : Found
        What was found of their targets and weights.
    reader : object
        Reads them, by the weights of classes if there are any.
    weighing : Weighing or None
        How they are weighed, by a mean of 1; None: each counts once.
    """

    found: Found
    reader: Any
    weighing: Weighing | None


def learn_judges(model: Any, learned: Learned, judges: Any) -> Judging:
    """Learn how rows that judge are weighed.

    Parameters
    ----------
    model : estimator
        What is fitted.
    learned : Learned
        What the rows of the fit have told.
    judges : JudgingSide
        Looks at the rows that judge.
    """
    reader, is_weighed = copy(learned.reader), judges.has_weights
    if isinstance(getattr(model, "class_weight", None), str):  # as they have classes themselves
        found = _found(without_class_weights(reader), judges)
        reader.class_weight = _with_class_weights(model, found, is_weighed).class_weight
    found = _found(reader, judges)
    weighing = None
    if is_weighed or getattr(reader, "class_weight", None) is not None:
        total = judges.look(_weight_in_units, reader, found.largest, targets_only=True)
        weighing = Weighing(found.largest, found.n / rounded(total))
    return Judging(found, reader, weighing)


def _found(reader: Any, rows: Any) -> Found:
    found: Found | None = rows.look(_first_look, reader, targets_only=True)
    if found is None:
        raise ValueError("sample_weight must be positive for at least one row")
    return found


def _weight_in_units(chunk: Chunk, reader: Any, largest: float) -> int | None:
    """The exact weight of a chunk in units of the largest weight."""
    found = positive_rows(reader, replace(chunk, X=chunk.y))
    if found is None or found[1] is None:
        return None
    return exact_sum(divide_by_largest(found[1], largest))


def _looked(model: Any, reader: Any, parts: Executor) -> Found:
    """What all rows tell a model that has not learned yet."""
    chosen = model.categorical_features
    types_tell = parts.empty is not None and (chosen is None or isinstance(chosen, str))
    found: Found | None = parts.look(_first_look, reader, targets_only=types_tell)
    if found is None and not parts.has_weights:  # In scikit-learn's words, as in memory.
        raise ValueError(
            f"Found array with 0 sample(s) while a minimum of 1 is required by "
            f"{type(model).__name__}."
        )
    if found is None:
        raise ValueError("sample_weight must be positive for at least one row")
    return _with_features(found, parts.empty, model) if types_tell else found


def _listed(found: Found) -> str:
    return f"{found.n_features} features" if found.names is None else f"features {[*found.names]}"


def _united(one: frozenset[Any] | None, other: frozenset[Any] | None) -> frozenset[Any] | None:
    if one is None or other is None:
        return one if other is None else other
    return frozenset((*match_category_type(one, other), *match_category_type(other, one)))


def effective_size(reader: Any, parts: Executor) -> float:
    """Kish's effective number of all rows, by the weights of classes that a reader knows."""
    return _found(reader, parts).spread.effective_size


def _with_features(found: Found, X: Any, model: Any) -> Found:
    """What a table tells of its features."""
    names = _get_feature_names(X)
    p = len(X.columns) if hasattr(X, "columns") else _num_features(X)
    X, dates = convert_training_dates(model, X, False)
    known: Categories | None = model._find_categories(X, False)
    of_features = [None] * p if known is None else known.names
    return replace(
        found,
        names=None if names is None else tuple(map(str, names)),
        n_features=p,
        categories=tuple(None if one is None else frozenset(one) for one in of_features),
        table_format=read_attached_format(getattr(X, "schema", None)),
        dates=_with_last_dates(dates, X),
    )


def _with_last_dates(dates: dict[int, DateColumn], X: Any) -> dict[int, DateColumn]:
    """Return the features that hold dates, by index, with the latest dates of the rows X, in days."""
    if not dates:
        return dates
    columns = TableColumns.read(X).columns
    return {
        j: one.with_last(to_float64_column(columns[j], f"feature {j}")) for j, one in dates.items()
    }


def _first_look(chunk: Chunk, model: Any) -> Found | None:
    """What one chunk tells an estimator. Where it has no X nothing is said of features."""
    rows = positive(model, chunk if chunk.X is not None else replace(chunk, X=chunk.y))
    if rows is None:
        return None
    columns = split_target_columns(rows.y)
    weight: Float64 | None = rows.weight
    found = Found(
        n=len(rows.y),
        where=chunk.where,
        are_grouped=rows.groups is not None,
        has_offset=rows.offset is not None,
    )
    if chunk.X is not None:
        found = _with_features(found, rows.X, model)
    if weight is not None:
        unit, spread = WeightUnit.find(weight), WeightSpread.measure(weight)
        found = replace(found, weight_unit=unit, spread=spread)
    if not is_classifier(model):
        total = 0 if weight is None else exact_sum(weight)
        numbers = [np.asarray(one, dtype=np.float64) for one in columns]
        ends = np.array([(one.min(), one.max()) for one in numbers])
        return replace(found, ends=ends, totals=tuple(Counter({"all": total}) for _ in columns))
    told = [np.unique(one, return_inverse=True) for one in columns]
    totals = [
        Counter(dict(zip(known.tolist(), class_totals(codes, weight), strict=True)))
        for known, codes in told
    ]
    return replace(found, classes=tuple(known for known, _ in told), totals=tuple(totals))


def _with_class_weights(model: Any, found: Found, is_weighed: bool) -> Any:
    """A model whose weights of classes are those of all rows."""
    given, made = model.class_weight, copy(model)
    if found.classes is None:
        return made
    of_each = []
    if not isinstance(given, str):
        check_class_weights(given, found.n_targets)
    if isinstance(given, list) and len(given) != found.n_targets:
        raise ValueError(
            f"class_weight must hold a dict for each of {found.n_targets} columns, got {len(given)}"
        )
    for k, (classes, of_class) in enumerate(zip(found.classes, found.totals, strict=True)):
        if isinstance(given, str):
            counts = [of_class[label] for label in classes.tolist()]
            totals = np.array([rounded(one) for one in counts] if is_weighed else counts)
            factors = compute_balanced_factors(totals)
        else:
            own = given[k] if isinstance(given, list) else given
            factors = compute_class_weight(own, classes=classes, y=classes)
        of_each.append(dict(zip(classes.tolist(), map(float, factors), strict=True)))
    made.class_weight = of_each if found.n_targets > 1 else of_each[0]
    return made


def _learned_by(found: Found, model: Any) -> dict[str, Any]:
    """The fitted attributes of a model that all rows tell, by their names."""
    # Objects are categories in a chunk in which all dates are missing.
    found_categories = [
        None if j in found.dates and not one else one for j, one in enumerate(found.categories)
    ]
    names = tuple(None if one is None else tuple(sorted(one)) for one in found_categories)
    has_any = any(one is not None for one in names)
    learned: dict[str, Any] = {
        "categories_": Categories(names, (), not model._has_code_of_unknown()) if has_any else None,
        "dates_": found.dates or None,
        FORMAT_ATTRIBUTE: found.table_format,
        "n_features_in_": found.n_features,
        "feature_names_in_": None if found.names is None else np.array(found.names, dtype=object),
    }
    if model._takes_outputs:
        learned["n_outputs_"] = found.n_targets
    if found.classes is None:
        return learned
    classes, numbers = [*found.classes], [len(one) for one in found.classes]
    if found.n_targets == 1:
        return learned | {"classes_": classes[0], "n_classes_": numbers[0]}
    return learned | {"classes_": classes, "n_classes_": numbers}


def expect_groups_of_all(found: Found, parts: Executor) -> None:
    """Refuse rows of which some name no group, if they have groups."""
    if found.are_grouped:
        expect_no_missing_groups(*map(int, parts.look(_without_group, targets_only=True)))


def expect_no_limit_of_groups(found: Found, models: str) -> None:
    """Raise ValueError if rows have groups and memory is limited.

    models: kind of the models, in the plural, for the message.
    """
    if get_memory_limit() is not None and found.are_grouped:
        raise ValueError(
            f"memory_limit takes {models} of rows without groups, got groups, of which nobody knows "
            "how many there are before they are held"
        )


def _without_group(chunk: Chunk) -> NDArray[np.int64]:
    """How many rows of a chunk name no group, and how many there are."""
    groups: Any = chunk.groups
    return np.array([count_missing_groups(groups), len(groups)])


def _list_groups(chunk: Chunk) -> list[NDArray[Any]]:
    """Return the distinct groups of a chunk, as a list of one array; []: it has no rows."""
    return [] if not len(chunk.y) else [number_groups(np.asarray(chunk.groups))[0]]


def expect_one_target(found: Found) -> None:
    """Refuse rows of several targets, of which no tree is grown from bins."""
    if found.n_targets > 1:
        raise ValueError(
            f"trees grown from bins take one target, got y with {found.n_targets} columns: those of "
            "several take rows in memory and grower=Cart()"
        )


def _weighing_of(found: Found, is_weighed: bool) -> Weighing | None:
    """How rows are weighed; None: each counts once."""
    return Weighing(found.largest) if is_weighed else None
