"""Rows that judge a fit, which lie in files or on a cluster as the rows of the fit do.

They are read as chunks behind those of the fit, and become parts of which no row trains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certree.interface.extras import import_extra
from certree.out_of_core.chunks import Chunk, Weighing, as_list, joined, training_of
from certree.out_of_core.executors import Executor, SomeRows
from certree.out_of_core.first_look import Judging, Learned, learn_judges
from certree.out_of_core.fit_hashes import with_hashes
from certree.out_of_core.made_parts import hashes_of_rows, put_beside
from certree.out_of_core.memory_limit import Need, RowsRead
from certree.out_of_core.part import PartOfRows


class SourceWithJudges:
    """Rows of a fit, and behind them those that judge it.

    Parameters
    ----------
    rows, judges : FileRows or Partitions
        Both.
    """

    def __init__(self, rows: Any, judges: Any) -> None:
        self._rows, self._judges = rows, judges
        self.has_weights, self.judges_have_weights = rows.has_weights, judges.has_weights

    @property
    def empty(self) -> Any:
        """See `Source`."""
        return self._rows.empty

    @property
    def n_rows(self) -> int | None:
        """See `Source`."""
        numbers = self._rows.n_rows, self._judges.n_rows
        return None if None in numbers else sum(numbers)

    @property
    def n_judges(self) -> int | None:
        """How many rows judge; None: nobody knows yet."""
        n: int | None = self._judges.n_rows
        return n

    @property
    def about(self) -> RowsRead:
        """What reading takes where memory is limited."""
        one, other = self._rows.about, self._judges.about
        reader, file = max((one.reader, one.file), (other.reader, other.file))
        return replace(
            one,
            n=one.n + other.n,
            of_row=max(one.of_row, other.of_row),
            of_words=max(one.of_words, other.of_words),
            reader=reader,
            file=file,
        )

    @property
    def part_rows(self) -> int:
        """Rows of a part."""
        n: int = self._rows.part_rows
        return n

    @part_rows.setter
    def part_rows(self, n: int) -> None:
        self._rows.part_rows = self._judges.part_rows = n

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """See `Source`."""
        yield from self._rows.chunks(targets_only=targets_only)
        for chunk in self._judges.chunks(targets_only=targets_only):
            yield _judging(chunk)

    @property
    def n_parts(self) -> int:
        """How many partitions there are where workers of a cluster read them."""
        n: int = self._rows.n_parts + self._judges.n_parts
        return n

    def partition(self, number: int) -> Any:
        """One of them, as what Dask computes where it lies."""
        n = self._rows.n_parts
        if number < n:
            return self._rows.partition(number)
        made = import_extra("dask", "dask").delayed(_judging, pure=False)
        return made(self._judges.partition(number - n))


def _judging(chunk: Chunk) -> Chunk:
    return replace(chunk, judges=True, where=f"{chunk.where} of X_val")


class JudgedParts(SomeRows):
    """The rows of a fit whose parts lie beside those of rows that judge it.

    Parameters
    ----------
    parts : Executor
        Holds both.
    source : SourceWithJudges
        Where they come from.
    """

    def __init__(self, parts: Executor, source: SourceWithJudges) -> None:
        super().__init__(parts)
        self._source, self.has_weights = source, source.has_weights
        self._reading: Reading | None = None

    def keep_to_limit(self, need: Need) -> None:
        """See `Executor`."""
        # A classifier keeps hashes of rows that decide the number of its rounds.
        always = need.always + 16.0 * (self._source.n_judges or 0)
        self._parts.keep_to_limit(replace(need, always=always))
        self.portions = self._parts.portions

    @property
    def n_judges(self) -> int | None:
        """See `SourceWithJudges`."""
        return self._source.n_judges

    def judges(self) -> JudgingSide:
        """The rows that judge, to be looked at alone."""
        return JudgingSide(self._parts, self._source.judges_have_weights)

    def read_judges(self, model: Any, learned: Learned, *, are_known: bool) -> Judging:
        """Learn how rows that judge are weighed, before parts are made.

        are_known: whether the model is to know them again as rows of its fit.
        """
        found = learn_judges(model, learned, self.judges())
        # A scorer gets weights as they came.
        weighing = found.weighing if model.scoring == "loss" else None
        self._reading = Reading(found.reader, weighing, are_known)
        return found

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """See `Executor`: at rows of the fit."""
        return self._parts.look(_on_side, False, f, given, targets_only=targets_only)

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`: parts of rows that judge have none that train."""
        return self._parts.make(_made_beside, f, given, self._reading, own=own)

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """See `Executor`: those of the fit."""
        return joined(self.look(as_list))


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """How rows that judge are read.

    Parameters
    ----------
    reader : object
        Reads them by what the rows of the fit tell.
    weighing : Weighing or None
        How they are weighed; None: as they came.
    are_known : bool
        Whether a classifier is to know them again.
    """

    reader: Any
    weighing: Weighing | None
    are_known: bool


@dataclass(frozen=True, slots=True, eq=False)
class JudgingSide:
    """The rows that judge, as if there were no others.

    Parameters
    ----------
    parts : Executor
        Holds both.
    has_weights : bool
        Whether they have weights.
    """

    parts: Executor
    has_weights: bool

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """See `Executor`."""
        return self.parts.look(_on_side, True, f, given, targets_only=targets_only)

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """See `Executor`."""
        return joined(self.look(as_list))


def _on_side(chunk: Chunk, judges: bool, f: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    return f(chunk, *given) if chunk.judges == judges else None


def _made_beside(
    number: int,
    chunk: Chunk,
    f: Callable[..., Any],
    given: tuple[Any, ...],
    reading: Reading,
    *own: Any,
) -> tuple[PartOfRows, Any]:
    if not chunk.judges:
        made: tuple[PartOfRows, Any] = f(number, chunk, *given, *own)
        return made
    part, told = f(number, replace(chunk, y=chunk.y[:0]), *given, *own)
    rows = training_of(reading.reader, chunk, reading.weighing)
    if rows is None:
        return part, told
    part, _ = put_beside(part, rows)
    part = replace(part, digest=int(hashes_of_rows(rows, ()).sum(dtype=np.uint64)))
    if reading.are_known and hasattr(reading.reader, "classes_"):
        part = with_hashes(part, rows.features.tables, rows.y, judges=True)
    return part, told
