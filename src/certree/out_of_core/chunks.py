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
    """The n raw rows of one block, as they are read from a file or a Dask partition.

    Parameters
    ----------
    X : data frame, Arrow table, array of shape (n, p), or None
        Features; None in passes that need only targets.
    y : array-like of shape (n,) or (n, n_targets)
        Targets.
    weight : array-like of shape (n,), or None
        Sample weights.
    where : str
        Name of the rows in error messages, such as the path of a file.
    is_validation : bool
        Whether the rows belong to a validation set that the user has passed.
    groups : ndarray of shape (n,), or None
        Group of each row.
    offset : ndarray of shape (n,) or (n, n_outputs), or None
        Offset of each row: the score from which boosting starts.
    time : ndarray of float64, shape (n,), or None
        Time of each row, or of its group, as a number; None: rows have no times, or those are not
        converted yet.
    raw_time : array-like of shape (n,), or None
        Times of the rows, as the user passed them beside X; None: there are none, or they are a column
        of X.
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
    raw_time: Any = None
    is_left_out: NDArray[np.bool_] | None = None

    def take(self, rows: Indices) -> Chunk:
        """Return a chunk (raw rows with targets, weights, groups, offsets and times) of some rows.

        rows: indices of the rows, (k,), in the order of the result.
        """
        y = np.asarray(self.y)[rows]
        weight = None if self.weight is None else np.asarray(self.weight)[rows]
        groups = None if self.groups is None else self.groups[rows]
        offset = None if self.offset is None else self.offset[rows]
        X = take_rows(self.X, rows)
        time = None if self.time is None else self.time[rows]
        raw_time = None if self.raw_time is None else take_rows(self.raw_time, rows)
        left_out = None if self.is_left_out is None else self.is_left_out[rows]
        rows_taken = replace(self, X=X, y=y, weight=weight, groups=groups, offset=offset)
        return replace(rows_taken, time=time, raw_time=raw_time, is_left_out=left_out)


@dataclass(frozen=True, slots=True, eq=False)
class WeightScaling:
    """Function that scales sample weights to a mean of 1 over all rows.

    Until the mean is known, it scales the largest weight to 1.

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
        """Return the weights of some rows, scaled so that all rows have a mean of 1.

        Until the mean is known (`factor` is None), all rows have a largest weight of 1 instead.
        weight: the weights of these rows, (n,), which are not changed.
        """
        if self.factor is None:
            return divide_by_largest(weight, self.largest)
        return scale_weights(weight, self.factor, self.largest)


def select_positive_rows(model: Any, chunk: Chunk) -> Chunk | None:
    """Check targets and weights of a chunk, and return a chunk of the rows of positive weight.

    model: the estimator that is fitted; chunk: raw rows of a block, with targets and weights. Weights
    of the result are multiplied by the class weights `model.class_weight`. Rows that the chunk marks
    as left out are dropped, too. Return None if no row is left. Raise ValueError or TypeError, with a
    note that names the chunk, for invalid targets or weights.
    """
    found = find_positive_rows(model, chunk)
    if found is None:
        return None
    target, weight, rows = found
    checked = replace(chunk, y=target, weight=weight)
    return checked if len(rows) == len(target) else checked.take(rows)


def find_positive_rows(model: Any, chunk: Chunk) -> tuple[Any, Float64 | None, Indices] | None:
    """Check targets and weights of a chunk, and find the rows of positive weight.

    model: the estimator that is fitted; chunk: n raw rows of a block, with targets and weights.
    Return targets, (n,) or (n, n_targets), and weights, (n,) or None, of all rows, and the positions
    of the rows of positive weight that the chunk does not mark as left out, (k,). Weights are
    multiplied by the class weights `model.class_weight`. Return None if there are no such rows. Raise
    ValueError or TypeError, with a note that names the chunk, for invalid targets or weights.
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
    """Return ``[chunk]``, so that the sum of results over all chunks is the list of chunks.

    chunk: raw rows of a block. The function is run on each chunk, and results are added by ``+``.
    """
    return [chunk]


def join_chunks(chunks: list[Chunk]) -> Chunk:
    """Join the rows of chunks to one chunk in memory.

    Its features are an array or a data frame of the type of the chunks; its targets, weights, groups
    and offsets are arrays; its raw times are an array or a series. Weights, groups, offsets and times
    are None if the chunks have none.
    """
    filled = [chunk for chunk in chunks if len(chunk.y)] or chunks[:1]
    y, weight, groups, offset = (
        _join_columns([getattr(chunk, name) for chunk in filled]) for name in _OTHER_COLUMNS
    )
    X, times = _join_tables([chunk.X for chunk in filled]), [chunk.raw_time for chunk in filled]
    raw_time = None if times[0] is None else _join_tables(times)
    first = filled[0]
    others: dict[str, Any] = {"groups": groups, "offset": offset, "raw_time": raw_time}
    return Chunk(X, y, weight, first.where, first.is_validation, **others)


def _join_tables(tables: list[Any]) -> Any:
    """Join the rows of arrays, data frames or series of one library, at least one."""
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    joined = [nw.from_native(table, eager_only=True, allow_series=True) for table in tables]
    if isinstance(joined[0], nw.Series):
        frame = nw.concat([column.to_frame() for column in joined])
        return frame[frame.columns[0]].to_native()
    return nw.concat(joined).to_native()


def _join_columns(columns: list[Any]) -> Any:
    """Join one column of all chunks to an array; return None if the first chunk lacks it.

    columns: for each chunk its column, such as the weights of its rows, (n,), or None. The result has
    the rows of the first chunk first.
    """
    return None if columns[0] is None else np.concatenate([np.asarray(one) for one in columns])


def make_encoder(model: Any, attributes: dict[str, Any]) -> Any:
    """Return a copy of a model with fitted attributes, which encodes the rows of each chunk.

    To encode is to convert features and targets to numbers. attributes: fitted attributes about
    classes, categories and features of all rows, by name, such as "classes_". The copy does not
    search for repeated rows, because these may be in several chunks.
    """
    encoder = copy(model)
    encoder.__dict__.update(attributes, sample_hashes_=None, _sample_counts=None, duplicates=None)
    return encoder


def copy_without_large_attributes(model: Any) -> Any:
    """Return a shallow copy of a model without the trees and row hashes of a previous fit.

    The copy is sent to workers.
    """
    copied = copy(model)
    for name in ("sample_hashes_", "_sample_counts", "trees_", "_rows", "_node_sums"):
        copied.__dict__.pop(name, None)
    return copied


def copy_without_class_weights(model: Any) -> Any:
    """Return a shallow copy of a model whose parameter `class_weight` is None."""
    copied = copy(model)
    copied.class_weight = None
    return copied


def get_group_names(encoder: Any) -> NDArray[Any] | None:
    """Return the names of the groups of all rows, ascending, which the encoder replaces by numbers.

    encoder: copy of the model, which encodes rows; `FitMetadata.with_numbered_groups` gives it the
    names. Return None if it has none, so that groups keep their names.
    """
    names: NDArray[Any] | None = encoder.__dict__.get("_group_names")
    return names


def number_known_groups(encoder: Any, groups: NDArray[Any]) -> NDArray[Any]:
    """Return the number of each row's group, (n,), if the encoder numbers groups.

    encoder: copy of the model with the names of all groups, see `get_group_names`; groups: name of
    each row's group, (n,), which is returned unchanged if the encoder does not number groups.
    """
    names = get_group_names(encoder)
    return groups if names is None else np.searchsorted(names, groups)


def encode_chunk(
    encoder: Any, chunk: Chunk, weight_scaling: WeightScaling | None
) -> Training | None:
    """Check the rows of a chunk, and convert features and targets to numbers as a fit in memory does.

    Rows of weight zero are dropped; return None if no row is left.

    encoder: copy of the model, from `make_encoder`; chunk: raw rows of a block, with targets and
    weights; weight_scaling: function that scales weights; None: they are not scaled. ValueError or
    TypeError is raised for invalid rows, with a note that names the chunk.
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
    """Return a copy of a chunk whose offsets are checked and converted to float64, (n, n_outputs).

    encoder: copy of the model, whose loss and classes say what offsets it takes; chunk: n rows with
    offsets (scores from which boosting starts), or with None, which stays None. Raise ValueError or
    TypeError, with a note that names the chunk, if the offsets are invalid.
    """
    if chunk.offset is None or not len(chunk.y):
        return replace(chunk, offset=None)
    try:
        name = "offset_val" if chunk.is_validation else "offset"
        return replace(chunk, offset=encoder._convert_offset(name, chunk.offset, len(chunk.y)).T)
    except (ValueError, TypeError) as error:
        error.add_note(f"in {chunk.where}")
        raise
