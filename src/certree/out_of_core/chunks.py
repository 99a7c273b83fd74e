"""Some of the rows as they came, and what the door of fits makes of them."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from certree.interface.arrays import Float64, divide_by_largest
from certree.rows.columns import take_rows
from certree.rows.folds import Indices
from certree.rows.relative_weights import scale_weights
from certree.rows.training import Training, check_target_and_weight, training_rows


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some of the rows.

    Parameters
    ----------
    X : data frame, Arrow table or array of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Target.
    weight : array-like of shape (n,), or None
        Weights.
    where : str
        What errors call them.
    judges : bool
        Whether they judge a fit in which they have no other part.
    groups : ndarray of shape (n,), or None
        Group of each row.
    offset : ndarray of shape (n,) or (n, n_outputs), or None
        Offset of each row: the score from which boosting starts.
    """

    X: Any
    y: Any
    weight: Any
    where: str
    judges: bool = False
    groups: NDArray[Any] | None = None
    offset: NDArray[Any] | None = None

    def at(self, rows: Indices) -> Chunk:
        """Some of these rows."""
        y = np.asarray(self.y)[rows]
        weight = None if self.weight is None else np.asarray(self.weight)[rows]
        groups = None if self.groups is None else self.groups[rows]
        offset = None if self.offset is None else self.offset[rows]
        X = take_rows(self.X, rows)
        return replace(self, X=X, y=y, weight=weight, groups=groups, offset=offset)


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """What is known of the weights of all rows.

    Parameters
    ----------
    largest : float
        The largest weight.
    factor : float or None
        What weights in units of the largest one are multiplied by, so that their mean is 1; None: it
        is not known yet.
    """

    largest: float
    factor: float | None = None

    def __call__(self, weight: Float64) -> Float64:
        """Weights of a mean of 1, or as far as they are known."""
        if self.factor is None:
            return divide_by_largest(weight, self.largest)
        return scale_weights(weight, self.factor, self.largest)


def positive(model: Any, chunk: Chunk) -> Chunk | None:
    """The rows of a chunk whose weights, those of classes included, are above 0; None: none is.

    Target and weights are checked.
    """
    found = positive_rows(model, chunk)
    if found is None:
        return None
    target, weight, rows = found
    checked = replace(chunk, y=target, weight=weight)
    return checked if len(rows) == len(target) else checked.at(rows)


def positive_rows(model: Any, chunk: Chunk) -> tuple[Any, Float64 | None, Indices] | None:
    """Target and weight of all rows of a chunk, and which of them are those of positive weight."""
    try:
        if not len(chunk.y):
            return None
        given = chunk.weight
        if given is not None and not np.any(np.asarray(given)):
            return None
        target, weight = check_target_and_weight(
            model, chunk.X, chunk.y, given, is_classifier(model)
        )
    except (ValueError, TypeError) as error:
        error.add_note(f"in {chunk.where}")
        raise
    rows = np.arange(len(target)) if weight is None else np.flatnonzero(weight > 0)
    return (target, weight, rows) if len(rows) else None


# What stands beside the features of a row.
_BESIDE = ("y", "weight", "groups", "offset")


def as_list(chunk: Chunk) -> list[Chunk]:
    """One chunk, to which others are added."""
    return [chunk]


def joined(chunks: list[Chunk]) -> tuple[Any, Any, Any, Any, Any]:
    """Join the rows of chunks: X, target, and weights, groups and offsets, each or None."""
    some = [one for one in chunks if len(one.y)] or chunks[:1]
    X: Any = [one.X for one in some]
    if not isinstance(X[0], np.ndarray):
        frames = [nw.from_native(one, eager_only=True) for one in X]
        X = nw.concat(frames).to_native()
    else:
        X = np.concatenate(X)
    y, weight, groups, offset = (_behind([getattr(one, name) for one in some]) for name in _BESIDE)
    return X, y, weight, groups, offset


def _behind(columns: list[Any]) -> Any:
    return None if columns[0] is None else np.concatenate([np.asarray(one) for one in columns])


def reader_of(model: Any, learned: dict[str, Any]) -> Any:
    """A model that reads rows by what is known of all of them; class weights are weights by then."""
    reader = copy(model)
    # Of rows that are alike chunks know nothing.
    reader.__dict__.update(learned, sample_hashes_=None, _sample_counts=None, duplicates=None)
    return reader


def without_large_attributes(model: Any) -> Any:
    """Return a copy of a model without trees and hashes of a fit, to be sent to workers."""
    copied = copy(model)
    for name in ("sample_hashes_", "_sample_counts", "trees_", "_rows", "_node_sums"):
        copied.__dict__.pop(name, None)
    return copied


def without_class_weights(model: Any) -> Any:
    """A model that weighs no classes."""
    made = copy(model)
    made.class_weight = None
    return made


def get_group_names(reader: Any) -> NDArray[Any] | None:
    """Return the groups of all rows, ascending; None if the reader does not number them.

    reader: copy of the model that encodes rows; see `Learned.with_numbered_groups`.
    """
    names: NDArray[Any] | None = reader.__dict__.get("_group_names")
    return names


def number_known_groups(reader: Any, groups: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of groups, (n,); the groups unchanged if the reader does not number them."""
    names = get_group_names(reader)
    return groups if names is None else np.searchsorted(names, groups)


def training_of(reader: Any, chunk: Chunk, weighing: Weighing | None) -> Training | None:
    """The rows of a chunk as a fit takes them, weights of a mean of 1; None: there are none."""
    rows = positive(reader, _convert_offset(reader, chunk))
    if rows is None:
        return None
    try:
        training, _ = training_rows(
            without_class_weights(reader), rows.X, rows.y, rows.weight, reuse_encoding=True
        )
    except (ValueError, TypeError) as error:
        error.add_note(f"in {chunk.where}")
        raise
    groups = None if rows.groups is None else number_known_groups(reader, rows.groups)
    sides = replace(training.split, groups=groups)
    order = reader.__dict__.get("_draw_order")
    offset = None if rows.offset is None else np.ascontiguousarray(rows.offset.T)
    training = replace(training, split=sides, fixed_draw_order=order, offset=offset)
    if weighing is None or training.weight is None:
        return training
    return replace(training, weight=weighing(training.weight))


def _convert_offset(reader: Any, chunk: Chunk) -> Chunk:
    """Return a chunk whose offsets are checked and converted to float64, (n, n_outputs).

    reader: the model, which knows its loss and its classes. Raise ValueError or TypeError if it
    takes no such offsets.
    """
    if chunk.offset is None or not len(chunk.y):
        return replace(chunk, offset=None)
    try:
        name = "offset_val" if chunk.judges else "offset"
        return replace(chunk, offset=reader._convert_offset(name, chunk.offset, len(chunk.y)).T)
    except (ValueError, TypeError) as error:
        error.add_note(f"in {chunk.where}")
        raise
