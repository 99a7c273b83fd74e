"""Executors of rows that a function changes, block by block, before each pass over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from certree.out_of_core.binned_blocks import make_empty_block
from certree.out_of_core.chunks import Chunk
from certree.out_of_core.executors import Executor, ExecutorWrapper
from certree.out_of_core.row_block import RowBlock


class TransformedRows(ExecutorWrapper):
    """An executor of rows that a function changes before each pass, such as to leave out some.

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
        For each block, the last argument of `transform`.
    has_weights : bool or None
        Whether changed rows have weights; None: if the rows of `executor` have some.
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
        """Read all rows once, and return the sum of ``f(chunk, *arguments)`` over the chunks.

        See `Executor.scan`.
        """
        arguments = f, arguments, self._transform, self._transform_arguments
        return self._executor.make_blocks(_scan_transformed, *arguments, per_block=self._per_block)

    def make_blocks(
        self, f: Callable[..., Any], *arguments: Any, per_block: Sequence[Any] | None = None
    ) -> Any:
        """Read all rows once, and make a block of each chunk; return the sum of partial results.

        See `Executor.make_blocks`.
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
    """Return a block without rows, and ``f(rows, *arguments)`` for the changed rows of a block.

    number, chunk: number of the block, and its rows; transform, transform_arguments, per_block: see
    `TransformedRows`.
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
    """Return the block, and partial result, that f makes of the changed rows of a block.

    They are ``f(number, rows, *arguments, *per_block[1])``. number, chunk: number of the block, and
    its rows; transform, arguments, per_block[0]: see `TransformedRows`.
    """
    block: tuple[Any, Any] = f(
        number, transform(chunk, *transform_arguments, per_block[0]), *arguments, *per_block[1]
    )
    return block
