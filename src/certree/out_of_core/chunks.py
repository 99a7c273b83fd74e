"""Chunks: raw rows of one block, as a source reads them, and how a fit checks and encodes them."""

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
from certree.rows.time_order import RowTimes
from certree.rows.training import Training, check_target_and_weight, training_rows


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Raw rows of one block, n of them.

    Parameters
    ----------
    X : data frame, Arrow table, array of shape (n, p), or None
        Features; None in passes that need only targets.
    y : array-like of shape (n,) or (n, n_targets)
        Targets.
    weight : array-like of shape (n,), or None
        Sample weights.
    where : str
        Name of the rows in error messages.
    is_validation : bool
        Whether the rows belong to a validation set that the user has passed.
    groups : ndarray of shape (n,), or None
        Group of each row.
    offset : ndarray of shape (n,) or (n, n_outputs), or None
        Offset of each row: the score from which boosting starts.
    time : ndarray of float64, shape (n,), or None
        Time of each row, or of its group.
    is_left_out : ndarray of bool, shape (n,), or None
        True for rows that are ignored, as rows of weight zero are; None: none are.
    """

    X: Any
    y: Any
    weight: Any
    where: str
    is_validation: bool = False
    groups: NDArray[Any] | None = None
    offset: NDArray[Any] | None = None
    time: Float64 | None = None
    is_left_out: NDArray[np.bool_] | None = None

    def take(self, rows: Indices) -> Chunk:
        """Return the rows at the given positions, (k,)."""
        y = np.asarray(self.y)[rows]
        weight = None if self.weight is None else np.asarray(self.weight)[rows]
        groups = None if self.groups is None else self.groups[rows]
        offset = None if self.offset is None else self.offset[rows]
        X = take_rows(self.X, rows)
        time = None if self.time is None else self.time[rows]
        left_out = None if self.is_left_out is None else self.is_left_out[rows]
        rows_taken = replace(self, X=X, y=y, weight=weight, groups=groups, offset=offset)
        return replace(rows_taken, time=time, is_left_out=left_out)


@dataclass(frozen=True, slots=True, eq=False)
class WeightScaling:
    """How weights are scaled: to a mean of 1, or to a largest weight of 1 until the mean is known.

    Parameters
    ----------
    largest : float
        Largest weight of all rows.
    factor : float or None
        Factor that scales weights divided by `largest` to a mean of 1; None: not known yet.
    """

    largest: float
    factor: float | None = None

    def __call__(self, weight: Float64) -> Float64:
        """Return the scaled weights of some rows, (n,)."""
        if self.factor is None:
            return divide_by_largest(weight, self.largest)
        return scale_weights(weight, self.factor, self.largest)


def select_positive_rows(model: Any, chunk: Chunk) -> Chunk | None:
    """Check targets and weights, and return the rows of positive weight; None: there are none.

    Weights of the result are multiplied by class weights. model: has `class_weight`. ValueError or
    TypeError is raised as by `check_target_and_weight`.
    """
    found = find_positive_rows(model, chunk)
    if found is None:
        return None
    target, weight, rows = found
    checked = replace(chunk, y=target, weight=weight)
    return checked if len(rows) == len(target) else checked.take(rows)


def find_positive_rows(model: Any, chunk: Chunk) -> tuple[Any, Float64 | None, Indices] | None:
    """Return checked targets and weights of all rows, and the positions of rows of positive weight.

    Weights are multiplied by class weights. Return None if there are no rows of positive weight.
    model, errors: as in `select_positive_rows`.
    """
    try:
        if not len(chunk.y):
            return None
        if chunk.weight is not None and not np.any(np.asarray(chunk.weight)):
            return None
        target, weight = check_target_and_weight(
            model, chunk.X, chunk.y, chunk.weight, is_classifier(model)
        )
    except (ValueError, TypeError) as error:
        error.add_note(f"in {chunk.where}")
        raise
    rows = np.arange(len(target)) if weight is None else np.flatnonzero(weight > 0)
    if chunk.is_left_out is not None:
        rows = rows[~chunk.is_left_out[rows]]
    return (target, weight, rows) if len(rows) else None


# Columns of a chunk apart from the features.
_OTHER_COLUMNS = ("y", "weight", "groups", "offset")


def wrap_in_list(chunk: Chunk) -> list[Chunk]:
    """Return a list of one chunk, so that a sum over chunks is a list of them."""
    return [chunk]


def join_chunks(chunks: list[Chunk]) -> tuple[Any, Any, Any, Any, Any]:
    """Join the rows of chunks: X, target, and weights, groups and offsets, each or None."""
    filled = [chunk for chunk in chunks if len(chunk.y)] or chunks[:1]
    X: Any = [chunk.X for chunk in filled]
    if not isinstance(X[0], np.ndarray):
        frames = [nw.from_native(frame, eager_only=True) for frame in X]
        X = nw.concat(frames).to_native()
    else:
        X = np.concatenate(X)
    y, weight, groups, offset = (
        _join_columns([getattr(chunk, name) for chunk in filled]) for name in _OTHER_COLUMNS
    )
    return X, y, weight, groups, offset


def _join_columns(columns: list[Any]) -> Any:
    """Join one column of all chunks to an array, (n,); return None if the first chunk lacks it.

    columns: the column of each chunk, such as the weights of its rows, or None.
    """
    return None if columns[0] is None else np.concatenate([np.asarray(one) for one in columns])


def make_encoder(model: Any, attributes: dict[str, Any]) -> Any:
    """Return a copy of a model that encodes rows by fitted attributes of all rows.

    attributes: classes, categories and features, by name. The copy does not search for repeated rows,
    because these may be in several chunks.
    """
    encoder = copy(model)
    encoder.__dict__.update(attributes, sample_hashes_=None, _sample_counts=None, duplicates=None)
    return encoder


def copy_without_large_attributes(model: Any) -> Any:
    """Return a copy of a model without trees and hashes of a fit, to be sent to workers."""
    copied = copy(model)
    for name in ("sample_hashes_", "_sample_counts", "trees_", "_rows", "_node_sums"):
        copied.__dict__.pop(name, None)
    return copied


def copy_without_class_weights(model: Any) -> Any:
    """Return a copy of a model with `class_weight` None."""
    copied = copy(model)
    copied.class_weight = None
    return copied


def get_group_names(encoder: Any) -> NDArray[Any] | None:
    """Return the groups of all rows, ascending; None if the encoder does not number them.

    encoder: copy of the model that encodes rows; see `FitMetadata.with_numbered_groups`.
    """
    names: NDArray[Any] | None = encoder.__dict__.get("_group_names")
    return names


def number_known_groups(encoder: Any, groups: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of groups, (n,); the groups unchanged if the encoder does not number them."""
    names = get_group_names(encoder)
    return groups if names is None else np.searchsorted(names, groups)


def encode_chunk(
    encoder: Any, chunk: Chunk, weight_scaling: WeightScaling | None
) -> Training | None:
    """Check and encode the rows of a chunk as a fit in memory does; None: no row has positive weight.

    encoder: copy of the model, from `make_encoder`; weight_scaling: how weights are scaled, None: they
    are not. ValueError or TypeError is raised for invalid rows, with a note that names the chunk.
    """
    rows = select_positive_rows(encoder, _convert_offset(encoder, chunk))
    if rows is None:
        return None
    try:
        training, _ = training_rows(
            copy_without_class_weights(encoder), rows.X, rows.y, rows.weight, reuse_encoding=True
        )
    except (ValueError, TypeError) as error:
        error.add_note(f"in {chunk.where}")
        raise
    groups = None if rows.groups is None else number_known_groups(encoder, rows.groups)
    times = None if rows.time is None else RowTimes(rows.time)
    split = replace(training.split, groups=groups, times=times)
    order = encoder.__dict__.get("_draw_order")
    offset = None if rows.offset is None else np.ascontiguousarray(rows.offset.T)
    training = replace(training, split=split, fixed_draw_order=order, offset=offset)
    if weight_scaling is None or training.weight is None:
        return training
    return replace(training, weight=weight_scaling(training.weight))


def _convert_offset(encoder: Any, chunk: Chunk) -> Chunk:
    """Return a chunk whose offsets are checked and converted to float64, (n, n_outputs).

    encoder: copy of the model, with its loss and its classes. Raise ValueError or TypeError if it
    takes no such offsets.
    """
    if chunk.offset is None or not len(chunk.y):
        return replace(chunk, offset=None)
    try:
        name = "offset_val" if chunk.is_validation else "offset"
        return replace(chunk, offset=encoder._convert_offset(name, chunk.offset, len(chunk.y)).T)
    except (ValueError, TypeError) as error:
        error.add_note(f"in {chunk.where}")
        raise
