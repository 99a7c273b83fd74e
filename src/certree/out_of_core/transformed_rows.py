"""Executors of rows that a function changes, block by block, before each pass over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from certree.out_of_core.binned_blocks import without_rows
from certree.out_of_core.chunks import Chunk
from certree.out_of_core.executors import Executor, SomeRows
from certree.out_of_core.row_block import PartOfRows


class TransformedRows(SomeRows):
    """An executor of rows that a function changes before each pass, such as to leave out some.

    Parameters
    ----------
    parts : Executor
        Reads all rows.
    transform : callable
        ``transform(chunk, *arguments, own)`` returns a `Chunk` of the changed rows of a block.
    arguments : tuple
        Arguments of `transform` that all blocks share. The first is a copy of the model that
        encodes rows.
    own : sequence
        For each block, the last argument of `transform`.
    has_weights : bool or None
        Whether changed rows have weights; None: if the rows of `parts` have some.
    """

    def __init__(
        self,
        parts: Executor,
        transform: Callable[..., Chunk],
        arguments: tuple[Any, ...],
        own: Sequence[Any],
        *,
        has_weights: bool | None = None,
    ) -> None:
        super().__init__(parts)
        self._transform, self._arguments, self._own = transform, arguments, own
        self.has_weights = parts.has_weights if has_weights is None else has_weights
        self.gathered, self.keep_to_limit = parts.gathered, parts.keep_to_limit

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:  # noqa: ARG002 -- `transform` needs the features, and the number of the block
        """See `Executor`."""
        given = f, given, self._transform, self._arguments
        return self._parts.make(_scan_transformed, *given, own=self._own)

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`."""
        each = [()] * len(self._own) if own is None else [(argument,) for argument in own]
        pairs = [*zip(self._own, each, strict=True)]
        given = f, given, self._transform, self._arguments
        return self._parts.make(_make_transformed, *given, own=pairs)


def _scan_transformed(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    given: tuple[Any, ...],
    transform: Callable[..., Chunk],
    arguments: tuple[Any, ...],
    own: Any,
) -> tuple[PartOfRows, Any]:
    """Return a block without rows, and ``f(rows, *given)`` for the changed rows of a block.

    number, chunk: number of the block, and its rows; transform, arguments, own: see
    `TransformedRows`.
    """
    reader = arguments[0]
    part = without_rows(number, reader, None, reader._n_encoded)
    return part, f(transform(chunk, *arguments, own), *given)


def _make_transformed(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    given: tuple[Any, ...],
    transform: Callable[..., Chunk],
    arguments: tuple[Any, ...],
    own: tuple[Any, tuple[Any, ...]],
) -> tuple[Any, Any]:
    """Return the block, and partial result, that f makes of the changed rows of a block.

    They are ``f(number, rows, *given, *own[1])``. number, chunk: number of the block, and its rows;
    transform, arguments, own[0]: see `TransformedRows`.
    """
    block: tuple[Any, Any] = f(number, transform(chunk, *arguments, own[0]), *given, *own[1])
    return block
