"""Executors of rows that a function changes, block by block, before each pass over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from certree.out_of_core.binned_blocks import make_empty_block
from certree.out_of_core.chunks import Chunk
from certree.out_of_core.executors import Executor, ExecutorWrapper
from certree.out_of_core.row_block import RowBlock


class TransformedRows(ExecutorWrapper):
    """An executor that changes the rows of another one before each pass, such as to drop some.

    Parameters
    ----------
    executor : Executor
        Reads all rows.
    transform : callable
        ``transform(chunk, *transform_arguments, per_block)`` returns a `Chunk` of the changed rows
        of a block.
    transform_arguments : tuple
        Arguments of `transform` that all blocks share. The first is a copy of the model that
        encodes rows.
    per_block : sequence
        For each block, the last argument of `transform`, such as the numbers of the rows to keep.
    has_weights : bool or None
        Whether the changed rows have weights; None: as the rows of `executor`.
    """

    def __init__(
        self,
        executor: Executor,
        transform: Callable[..., Chunk],
        transform_arguments: tuple[Any, ...],
        per_block: Sequence[Any],
        *,
        has_weights: bool | None = None,
    ) -> None:
        super().__init__(executor)
        self._transform, self._transform_arguments, self._per_block = (
            transform,
            transform_arguments,
            per_block,
        )
        self.has_weights = executor.has_weights if has_weights is None else has_weights
        self.load_rows, self.apply_memory_limit = executor.load_rows, executor.apply_memory_limit

    def scan(self, f: Callable[..., Any], *arguments: Any, targets_only: bool = False) -> Any:  # noqa: ARG002 -- `transform` needs the features, and the number of the block
        """Read all rows once, and return the sum of ``f(chunk, *arguments)`` over the changed chunks.

        A chunk has the raw rows of one block (features, targets, weights, groups, offsets). The
        function `transform`, with which this object was made, changes it before f gets it. Results are
        added with `+`; None is skipped, and returned if all are None. targets_only: ignored, as
        `transform` needs the features.
        """
        arguments = f, arguments, self._transform, self._transform_arguments
        return self._executor.make_blocks(_scan_transformed, *arguments, per_block=self._per_block)

    def make_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Read all rows once, make a block of each changed chunk, and sum the partial results.

        A chunk has raw rows, which the function `transform` of this object changes. Then ``f(number,
        chunk, *arguments)`` returns a block (binned rows), which the executor keeps, and a partial
        result. per_block: for each chunk, a further last argument of f. Return the sum of the partial
        results, which `+` adds; None is skipped, and returned if all are None.
        """
        each = (
            [()] * len(self._per_block)
            if per_block is None
            else [(argument,) for argument in per_block]
        )
        pairs = [*zip(self._per_block, each, strict=True)]
        arguments = f, arguments, self._transform, self._transform_arguments
        return self._executor.make_blocks(_make_transformed, *arguments, per_block=pairs)


def _scan_transformed(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    arguments: tuple[Any, ...],
    transform: Callable[..., Chunk],
    transform_arguments: tuple[Any, ...],
    per_block: Any,
) -> tuple[RowBlock, Any]:
    """Transform the raw rows of a block, and compute a function of them.

    The signature is the one that `Executor.make_blocks` calls, although no block is kept.

    Parameters
    ----------
    number : int
        Number of the block.
    chunk : Chunk
        Raw rows of the block.
    f : callable
        ``f(changed_chunk, *arguments)`` returns a partial result.
    arguments : tuple
        Further arguments of f.
    transform, transform_arguments, per_block
        ``transform(chunk, *transform_arguments, per_block)`` returns the changed chunk. The first
        entry of `transform_arguments` is the model that encodes rows.

    Returns
    -------
    block : RowBlock
        A block without rows.
    result : object
        The partial result.
    """
    encoder = transform_arguments[0]
    block = make_empty_block(number, encoder, None, encoder._n_encoded)
    return block, f(transform(chunk, *transform_arguments, per_block), *arguments)


def _make_transformed(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    arguments: tuple[Any, ...],
    transform: Callable[..., Chunk],
    transform_arguments: tuple[Any, ...],
    per_block: tuple[Any, tuple[Any, ...]],
) -> tuple[Any, Any]:
    """Transform the raw rows of a block, and make a block of the changed rows.

    Parameters
    ----------
    number : int
        Number of the block.
    chunk : Chunk
        Raw rows of the block.
    f : callable
        ``f(number, changed_chunk, *arguments, *per_block[1])`` returns a block and a partial result.
    arguments : tuple
        Arguments of f that all blocks share.
    transform, transform_arguments
        ``transform(chunk, *transform_arguments, per_block[0])`` returns the changed chunk.
    per_block : tuple
        Last argument of `transform` for this block, and a tuple of further arguments of f.

    Returns
    -------
    tuple
        What f returns: the block, and its partial result.
    """
    block: tuple[Any, Any] = f(
        number, transform(chunk, *transform_arguments, per_block[0]), *arguments, *per_block[1]
    )
    return block
