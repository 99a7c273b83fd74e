"""Validation sets of boosting that are out-of-core or distributed, as the rows of the fit are.

Their chunks are read after those of the fit. They become blocks without training rows, whose validation
rows are the validation set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certree.interface.extras import import_extra
from certree.out_of_core.binned_blocks import add_validation_rows, hash_rows
from certree.out_of_core.chunks import Chunk, WeightScaling, encode_chunk, join_chunks, wrap_in_list
from certree.out_of_core.executors import Executor, ExecutorWrapper
from certree.out_of_core.fit_hashes import add_hashes
from certree.out_of_core.memory_limit import MemoryNeed, RowsRead
from certree.out_of_core.metadata_pass import (
    FitMetadata,
    ValidationMetadata,
    collect_validation_metadata,
)
from certree.out_of_core.row_block import RowBlock


class SourceWithValidation:
    """A source that reads the rows of a fit, and then the user's validation set.

    Parameters
    ----------
    rows, validation : FileRows or DaskRows
        Sources of the rows of the fit, and of the validation set.
    """

    def __init__(self, rows: Any, validation: Any) -> None:
        self._rows, self._validation = rows, validation
        self.has_weights = rows.has_weights
        self.validation_has_weights = validation.has_weights

    @property
    def empty_table(self) -> Any:
        """An Arrow table with the columns of the features and no rows.

        None if a feature may be categorical, that is, if some features hold strings, categories or
        dates. Always None for Dask collections.
        """
        return self._rows.empty_table

    @property
    def n_rows(self) -> int | None:
        """Number of rows of both tables; None if it is unknown before the rows are read."""
        numbers = self._rows.n_rows, self._validation.n_rows
        return None if None in numbers else sum(numbers)

    @property
    def n_validation(self) -> int | None:
        """Number of rows in the validation set; None if it is unknown before they are read."""
        n: int | None = self._validation.n_rows
        return n

    @property
    def about(self) -> RowsRead:
        """Size of both tables, and the memory that reading them takes."""
        first, second = self._rows.about, self._validation.about
        reader_bytes, file = max(
            (first.reader_bytes, first.file), (second.reader_bytes, second.file)
        )
        return replace(
            first,
            n=first.n + second.n,
            row_bytes=max(first.row_bytes, second.row_bytes),
            text_bytes=max(first.text_bytes, second.text_bytes),
            reader_bytes=reader_bytes,
            file=file,
        )

    @property
    def block_rows(self) -> int:
        """Number of rows in a block of either table."""
        n: int = self._rows.block_rows
        return n

    @block_rows.setter
    def block_rows(self, n: int) -> None:
        self._rows.block_rows = self._validation.block_rows = n

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """Yield the rows of the fit, and then those of the validation set, as chunks of raw rows.

        Chunks of the validation set have `is_validation` set. targets_only: whether chunks may have
        None as their features X.
        """
        yield from self._rows.chunks(targets_only=targets_only)
        for chunk in self._validation.chunks(targets_only=targets_only):
            yield _mark_validation(chunk)

    @property
    def n_partitions(self) -> int:
        """Number of partitions of both tables, for a fit on a Dask cluster."""
        n: int = self._rows.n_partitions + self._validation.n_partitions
        return n

    def partition(self, number: int) -> Any:
        """Return a partition as a `dask.delayed` object, which a worker computes.

        Its value is a `Chunk`: raw rows with features, targets, weights, groups and offsets. number:
        0 .. n_partitions - 1. The last partitions are the validation set.
        """
        n = self._rows.n_partitions
        if number < n:
            return self._rows.partition(number)
        delayed = import_extra("dask", "dask").delayed(_mark_validation, pure=False)
        return delayed(self._validation.partition(number - n))


def _mark_validation(chunk: Chunk) -> Chunk:
    """Return a copy of a chunk of rows that is marked as part of the user's validation set `X_val`."""
    return replace(chunk, is_validation=True, where=f"{chunk.where} of X_val")


class ExecutorWithValidation(ExecutorWrapper):
    """An executor for the rows of a fit that also holds blocks of the user's validation set.

    Passes over raw rows (`scan`, `load_rows`) skip the validation set. `make_blocks` makes blocks of
    both; those of the validation set have no training rows.

    Parameters
    ----------
    executor : Executor
        Reads both tables.
    source : SourceWithValidation
        The source of both tables.
    """

    def __init__(self, executor: Executor, source: SourceWithValidation) -> None:
        super().__init__(executor)
        self._source, self.has_weights = source, source.has_weights
        self._encoding: ValidationEncoding | None = None

    def apply_memory_limit(self, need: MemoryNeed) -> None:
        """Choose the largest block sizes with which the fit stays within its memory limit, if any.

        need: terms from which the memory of the fit is estimated; 16 bytes for each row of the
        validation set are added. Raise ValueError if even the smallest block sizes exceed the limit.
        """
        # A classifier stores two hashes of 8 bytes for each row of the validation set.
        fixed = need.fixed + 16.0 * (self._source.n_validation or 0)
        self._executor.apply_memory_limit(replace(need, fixed=fixed))
        self.block_sizes = self._executor.block_sizes

    @property
    def n_validation(self) -> int | None:
        """Number of rows in the validation set; None if it is unknown before they are read."""
        return self._source.n_validation

    def get_validation_executor(self) -> ValidationExecutor:
        """Return an executor that reads the same blocks, but skips the rows of the fit.

        Its passes read the validation set alone.
        """
        return ValidationExecutor(self._executor, self._source.validation_has_weights)

    def scan_validation_set(
        self, model: Any, metadata: FitMetadata, *, has_hashes: bool
    ) -> ValidationMetadata:
        """Read targets and weights of the validation set, on which later calls of `make_blocks` depend.

        Parameters
        ----------
        model : estimator
            The model that is fitted.
        metadata : FitMetadata
            Metadata of the rows of the fit.
        has_hashes : bool
            Whether a classifier stores hashes of the validation set, because the set chooses its
            number of rounds.

        Returns
        -------
        ValidationMetadata
            Classes, target ranges and sums of weights of the validation set.

        Raises
        ------
        ValueError, TypeError
            If targets or weights are wrong.
        """
        found = collect_validation_metadata(model, metadata, self.get_validation_executor())
        # A scorer gets weights as they came.
        weight_scaling = found.weight_scaling if model.scoring == "loss" else None
        self._encoding = ValidationEncoding(found.encoder, weight_scaling, has_hashes)
        return found

    def scan(self, f: Callable[..., Any], *arguments: Any, targets_only: bool = False) -> Any:
        """Read all rows once, and return the sum of ``f(chunk, *arguments)`` over the chunks.

        A chunk has raw rows; chunks of the validation set are skipped. Results are added with `+`; None
        is skipped. targets_only: whether f does not use the features, so that they need not be read.
        """
        return self._executor.scan(_scan_table, False, f, arguments, targets_only=targets_only)

    def make_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Read all rows once, and make a block of each chunk; return the sum of partial results.

        A chunk has raw rows. ``f(number, chunk, *arguments)`` returns a block (binned rows) and a
        partial result, which `+` adds; per_block: for each chunk, a further last argument of f. Chunks
        of the validation set become blocks without training rows. Before `scan_validation_set` is
        called, these blocks have no validation rows either.
        """
        return self._executor.make_blocks(
            _make_block, f, arguments, self._encoding, per_block=per_block
        )

    def load_rows(self) -> Chunk:
        """Read the rows of the fit, without the validation set, as one chunk (`join_chunks`)."""
        return join_chunks(self.scan(wrap_in_list))


@dataclass(frozen=True, slots=True, eq=False)
class ValidationEncoding:
    """How features, targets and weights of the validation set are converted to numbers.

    Parameters
    ----------
    encoder : object
        Copy of the model, which encodes rows by the classes and categories of the rows of the fit.
    weight_scaling : WeightScaling or None
        Function that scales weights; None: they are not scaled.
    has_hashes : bool
        Whether a classifier stores hashes of the validation rows, because they choose its number of
        rounds; the fitted model later recognizes the rows by them. A regressor ignores it.
    """

    encoder: Any
    weight_scaling: WeightScaling | None
    has_hashes: bool


@dataclass(frozen=True, slots=True, eq=False)
class ValidationExecutor:
    """An executor for the validation set alone: passes over the rows skip the rows of the fit.

    Parameters
    ----------
    executor : Executor
        Reads both tables.
    has_weights : bool
        Whether rows of the validation set have weights.
    """

    executor: Executor
    has_weights: bool

    def scan(self, f: Callable[..., Any], *arguments: Any, targets_only: bool = False) -> Any:
        """Read the validation set once, and return the sum of ``f(chunk, *arguments)`` over its chunks.

        A chunk has raw rows. Results are added with `+`; None is skipped, and returned if all are
        None. targets_only: whether f does not use the features, so that they need not be read.
        """
        return self.executor.scan(_scan_table, True, f, arguments, targets_only=targets_only)

    def load_rows(self) -> Chunk:
        """Read the validation set into memory, and return it as one chunk (`join_chunks`)."""
        return join_chunks(self.scan(wrap_in_list))


def _scan_table(
    chunk: Chunk, is_validation: bool, f: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Return ``f(chunk, *arguments)`` for a chunk of one of the two tables, and None for the other.

    is_validation: whether f is called for chunks of the validation set, or for those of the fit.
    """
    return f(chunk, *arguments) if chunk.is_validation == is_validation else None


def _make_block(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    arguments: tuple[Any, ...],
    encoding: ValidationEncoding | None,
    *block_arguments: Any,
) -> tuple[RowBlock, Any]:
    """Make a block of training rows or, for the validation set, of validation rows.

    Parameters
    ----------
    number, chunk : int, Chunk
        Number of the block, and its raw rows.
    f, arguments : callable, tuple
        ``f(number, chunk, *arguments, *block_arguments)`` makes a block of training rows, and a
        partial result.
    encoding : ValidationEncoding or None
        How rows of the validation set are encoded; None: they are skipped.
    *block_arguments : object
        Arguments of `f` for this block.

    Returns
    -------
    block : RowBlock
        Block of training rows without validation rows, or the other way round.
    result : object
        The partial result of f; for the validation set that of a chunk without rows.
    """
    if not chunk.is_validation:
        made: tuple[RowBlock, Any] = f(number, chunk, *arguments, *block_arguments)
        return made
    block, result = f(number, replace(chunk, y=chunk.y[:0]), *arguments, *block_arguments)
    rows = None
    if encoding is not None:
        rows = encode_chunk(encoding.encoder, chunk, encoding.weight_scaling)
    if encoding is None or rows is None:
        return block, result
    block, _ = add_validation_rows(block, rows)
    block = replace(block, digest=int(hash_rows(rows, ()).sum(dtype=np.uint64)))
    if encoding.has_hashes and hasattr(encoding.encoder, "classes_"):
        block = add_hashes(block, rows.features.tables, rows.y, is_validation=True)
    return block, result
