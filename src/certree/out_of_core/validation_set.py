"""Validation sets of boosting that are out-of-core or distributed, as the rows of the fit are.

Their blocks are read after those of the fit. They become blocks without training rows, whose held-out
rows are the validation set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certree.interface.extras import import_extra
from certree.out_of_core.binned_blocks import hashes_of_rows, put_beside
from certree.out_of_core.chunks import Chunk, Weighing, as_list, joined, training_of
from certree.out_of_core.executors import Executor, SomeRows
from certree.out_of_core.fit_hashes import add_hashes
from certree.out_of_core.memory_limit import Need, RowsRead
from certree.out_of_core.metadata_pass import Learned, ValidationMetadata, learn_validation_set
from certree.out_of_core.row_block import PartOfRows


class SourceWithValidation:
    """A source of the rows of a fit, followed by its validation set.

    Parameters
    ----------
    rows, validation : FileRows or Partitions
        Sources of the rows of the fit, and of the validation set.
    """

    def __init__(self, rows: Any, validation: Any) -> None:
        self._rows, self._validation = rows, validation
        self.has_weights = rows.has_weights
        self.validation_has_weights = validation.has_weights

    @property
    def empty(self) -> Any:
        """See `Source`."""
        return self._rows.empty

    @property
    def n_rows(self) -> int | None:
        """See `Source`."""
        numbers = self._rows.n_rows, self._validation.n_rows
        return None if None in numbers else sum(numbers)

    @property
    def n_validation(self) -> int | None:
        """Number of rows in the validation set; None: unknown."""
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
    def part_rows(self) -> int:
        """Number of rows in a block."""
        n: int = self._rows.part_rows
        return n

    @part_rows.setter
    def part_rows(self, n: int) -> None:
        self._rows.part_rows = self._validation.part_rows = n

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """See `Source`."""
        yield from self._rows.chunks(targets_only=targets_only)
        for chunk in self._validation.chunks(targets_only=targets_only):
            yield _mark_validation(chunk)

    @property
    def n_parts(self) -> int:
        """Number of partitions of a fit on a cluster."""
        n: int = self._rows.n_parts + self._validation.n_parts
        return n

    def partition(self, number: int) -> Any:
        """Return a partition as a `dask.delayed` object, which computes its `Chunk` on a worker.

        number: 0 .. n_parts - 1. The last partitions are the validation set.
        """
        n = self._rows.n_parts
        if number < n:
            return self._rows.partition(number)
        delayed = import_extra("dask", "dask").delayed(_mark_validation, pure=False)
        return delayed(self._validation.partition(number - n))


def _mark_validation(chunk: Chunk) -> Chunk:
    """Return a block that is marked as a part of the validation set."""
    return replace(chunk, judges=True, where=f"{chunk.where} of X_val")


class PartsWithValidation(SomeRows):
    """An executor for the rows of a fit, with blocks of the validation set among its blocks.

    Passes over the rows skip the validation set. Functions that are called for the blocks get the
    validation set as held-out rows.

    Parameters
    ----------
    parts : Executor
        Reads both tables.
    source : SourceWithValidation
        The source of both tables.
    """

    def __init__(self, parts: Executor, source: SourceWithValidation) -> None:
        super().__init__(parts)
        self._source, self.has_weights = source, source.has_weights
        self._encoding: ValidationEncoding | None = None

    def keep_to_limit(self, need: Need) -> None:
        """See `Executor`."""
        # A classifier stores two hashes of 8 bytes for each row of the validation set.
        always = need.always + 16.0 * (self._source.n_validation or 0)
        self._parts.keep_to_limit(replace(need, always=always))
        self.portions = self._parts.portions

    @property
    def n_validation(self) -> int | None:
        """See `SourceWithValidation`."""
        return self._source.n_validation

    def get_validation_set(self) -> ValidationSet:
        """Return an executor for the validation set alone."""
        return ValidationSet(self._parts, self._source.validation_has_weights)

    def scan_validation_set(
        self, model: Any, learned: Learned, *, are_known: bool
    ) -> ValidationMetadata:
        """Scan the targets and weights of the validation set, which later calls of `make` need.

        Parameters
        ----------
        model : estimator
            The model that is fitted.
        learned : Learned
            Metadata of the rows of the fit.
        are_known : bool
            Whether a classifier stores hashes of the validation set, because the set chooses its
            number of rounds.

        Returns
        -------
        ValidationMetadata
            Metadata of the validation set.

        Raises
        ------
        ValueError, TypeError
            If targets or weights are wrong.
        """
        found = learn_validation_set(model, learned, self.get_validation_set())
        # A scorer gets weights as they came.
        weighing = found.weighing if model.scoring == "loss" else None
        self._encoding = ValidationEncoding(found.reader, weighing, are_known)
        return found

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """See `Executor`. Rows of the validation set are skipped."""
        return self._parts.look(_scan_table, False, f, given, targets_only=targets_only)

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`. Blocks of the validation set have no training rows.

        Before `scan_validation_set` they have no held-out rows either.
        """
        return self._parts.make(_make_block, f, given, self._encoding, own=own)

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """See `Executor`. Only rows of the fit are returned."""
        return joined(self.look(as_list))


@dataclass(frozen=True, slots=True, eq=False)
class ValidationEncoding:
    """How rows of the validation set are encoded and weighted.

    Parameters
    ----------
    reader : object
        Copy of the model that encodes rows, by the classes and categories of the rows of the fit.
    weighing : Weighing or None
        How weights are scaled; None: they are not scaled.
    are_known : bool
        Whether a classifier stores hashes of the rows.
    """

    reader: Any
    weighing: Weighing | None
    are_known: bool


@dataclass(frozen=True, slots=True, eq=False)
class ValidationSet:
    """An executor for the validation set alone: passes over the rows skip the rows of the fit.

    Parameters
    ----------
    parts : Executor
        Reads both tables.
    has_weights : bool
        Whether rows of the validation set have weights.
    """

    parts: Executor
    has_weights: bool

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """See `Executor`."""
        return self.parts.look(_scan_table, True, f, given, targets_only=targets_only)

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """See `Executor`."""
        return joined(self.look(as_list))


def _scan_table(
    chunk: Chunk, is_validation: bool, f: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Return ``f(chunk, *arguments)`` for a block of one of the two tables, else None.

    is_validation: whether the function is called for the validation set, or for the rows of the fit.
    """
    return f(chunk, *arguments) if chunk.judges == is_validation else None


def _make_block(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    arguments: tuple[Any, ...],
    encoding: ValidationEncoding | None,
    *own: Any,
) -> tuple[PartOfRows, Any]:
    """Make a block of training rows or, for the validation set, of held-out rows.

    Parameters
    ----------
    number, chunk : int, Chunk
        Number of the block, and the block.
    f, arguments : callable, tuple
        ``f(number, chunk, *arguments, *own)`` makes a block of training rows, and a partial result.
    encoding : ValidationEncoding or None
        How rows of the validation set are encoded; None: they are skipped.
    *own : object
        Arguments of `f` for this block.

    Returns
    -------
    part : PartOfRows
        The block.
    result : object
        The partial result; for the validation set the one for a block without rows.
    """
    if not chunk.judges:
        block: tuple[PartOfRows, Any] = f(number, chunk, *arguments, *own)
        return block
    part, result = f(number, replace(chunk, y=chunk.y[:0]), *arguments, *own)
    rows = None
    if encoding is not None:
        rows = training_of(encoding.reader, chunk, encoding.weighing)
    if encoding is None or rows is None:
        return part, result
    part, _ = put_beside(part, rows)
    part = replace(part, digest=int(hashes_of_rows(rows, ()).sum(dtype=np.uint64)))
    if encoding.are_known and hasattr(encoding.reader, "classes_"):
        part = add_hashes(part, rows.features.tables, rows.y, is_validation=True)
    return part, result
