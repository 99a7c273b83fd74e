"""Who asks all parts of rows, and adds up what they tell: here, on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial, reduce
from itertools import count, repeat
from typing import Any, Protocol

from certree.interface.progress import RowRate, show_progress
from certree.out_of_core.chunks import Chunk, as_list, joined
from certree.out_of_core.joined_rows import JoinedRows, Storage, choose_storage, count_bytes
from certree.out_of_core.memory_limit import (
    Need,
    Portions,
    choose_portions,
    expect_memory_within,
    get_smallest_portions,
    make_plan,
    measure_memory,
    release_memory,
)
from certree.out_of_core.part import PartOfRows
from certree.out_of_core.plan import FitPlan, PlannedError, is_planned
from certree.out_of_core.ranks import Rank
from certree.out_of_core.scratch import Scratch

_NO_LIMIT = 2**62  # bytes


class InMemory(Exception):  # noqa: N818 # no error: it says how to go on
    """Raised where the rows are so few that a fit in memory is meant, and does more."""


def added(told: Iterable[Any]) -> Any:
    """What parts tell, together; None tells nothing."""
    known = (one for one in told if one is not None)
    return reduce(add, known, None)


def add(one: Any, other: Any) -> Any:
    """What two tell together."""
    return other if one is None else one + other


class Source(Protocol):
    """Where rows lie, chunk by chunk; their order and sizes mean nothing."""

    has_weights: bool

    @property
    def empty(self) -> Any:
        """A table of the features without rows, if none of them can hold categories; or None."""
        ...

    @property
    def n_rows(self) -> int | None:
        """How many rows there are; None: nobody knows yet."""
        ...

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """All rows; without X where targets alone are asked for."""
        ...


class Executor(Protocol):
    """Calls a function with each of the parts, and adds up what comes back.

    Functions belong to modules, as they may be called elsewhere, and twice: they change nothing that
    they are given.
    """

    has_weights: bool
    portions: Portions

    @property
    def is_distributed(self) -> bool:
        """Whether workers of a cluster hold the rows."""
        ...

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        ...

    @property
    def empty(self) -> Any:
        """See `Source`."""
        ...

    def keep_to_limit(self, need: Need) -> None:
        """Choose portions with which a fit that needs so much keeps to its limit, if it has one.

        Call it once, after the first pass over all rows.
        """
        ...

    def expect_within_limit(self, n_together: int = 0) -> None:
        """Stop where more memory is held than the limit says, if there is one, or would be.

        n_together: so many rows are looked at together next.
        """
        ...

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """The sum of f(chunk, ...) over the rows as they came."""
        ...

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """Make parts of chunks: f(number, chunk, ...) gives a part and what is added up.

        own: what is given to each of them alone, behind all else.
        """
        ...

    def collect(self, f: Callable[..., Any], *given: Any) -> Any:
        """The sum of f(part, ...) over all parts."""
        ...

    def change(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """Put in the place of each part what f(part, ...) gives, and add up what it gives beside it.

        own: what is given to each of them alone, behind all else.
        """
        ...

    def run_on_ranks(self, f: Callable[..., Any], *given: Any) -> Any:
        """Call f(rank, *given) on each machine, and return what it returns on rank 0.

        The first call joins the parts of each machine, which are gone then, to the table of a `Rank`.
        Functions of later calls find what those before have left in its `state`. If a machine is
        lost, all calls are repeated from the first.
        """
        ...

    def collect_from_ranks(self, f: Callable[..., Any], *given: Any) -> list[Any]:
        """Do the same as `run_on_ranks`, and return what f returns on each rank, rank 0 first."""
        ...

    def choose_storage(self, n_bytes: int) -> Storage:
        """Return where gathered rows of that many bytes lie: in memory, or in files."""
        ...

    @property
    def n_workers(self) -> int:
        """How many jobs go on at a time where they are spread; 1: they are not."""
        ...

    def spread(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """F(*shared, *job) of each job, in their order, wherever there is room."""
        ...

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """Return all rows in memory: X, target, and weights, groups and offsets, each or None."""
        ...


class SomeRows:
    """An executor of some of the rows that another one holds: what it looks at is for it to say.

    Parameters
    ----------
    parts : Executor
        Holds all rows.
    """

    def __init__(self, parts: Executor) -> None:
        self._parts = parts
        self.has_weights, self.empty, self.portions = parts.has_weights, parts.empty, parts.portions
        self.collect, self.change = parts.collect, parts.change
        self.run_on_ranks, self.choose_storage = parts.run_on_ranks, parts.choose_storage
        self.collect_from_ranks = parts.collect_from_ranks
        self.spread, self.expect_within_limit = parts.spread, parts.expect_within_limit

    @property
    def n_parts(self) -> int:
        """See `Executor`."""
        return self._parts.n_parts

    @property
    def is_distributed(self) -> bool:
        """See `Executor`."""
        return self._parts.is_distributed

    @property
    def n_workers(self) -> int:
        """See `Executor`."""
        return self._parts.n_workers


class Parts:
    """Parts that lie here.

    Parameters
    ----------
    parts : list of PartOfRows
        The parts.
    n_threads : int
        So many of them at a time.
    kept : Scratch or None
        Where they lie; None: in memory.
    """

    def __init__(
        self, parts: list[PartOfRows], n_threads: int, kept: Scratch | None = None
    ) -> None:
        self._parts, self._scratch = parts, kept
        self._work_with(n_threads)

    def _work_with(self, n_threads: int) -> None:
        self._n_threads = n_threads
        # Its threads stay, and with them the memory that loops keep for the next of their calls.
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self._parts)

    def collect(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`."""
        return added(self._mapped(partial(_looked, f, given), iter(self._parts)))

    def change(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`."""
        each = [()] * self.n_parts if own is None else [(one,) for one in own]
        parts = zip(self._parts, each, strict=True)
        return added(self._put(self._mapped(partial(_changed, f, given, self._scratch), parts)))

    def _put(self, made: Iterator[tuple[PartOfRows, Any]]) -> Iterator[Any]:
        self._parts = []
        for part, told in made:
            self._parts.append(part)
            yield told

    def _mapped(self, f: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
        """F of items, one after the other; no more of them are taken than there are threads."""
        if self._pool is None:
            yield from map(f, items)
            return
        waiting: list[Future[Any]] = []
        try:
            for item in items:
                waiting.append(self._pool.submit(f, item))
                if len(waiting) > self._n_threads:
                    yield waiting.pop(0).result()
                elif len(waiting) == self._n_threads:
                    wait(waiting, return_when=FIRST_COMPLETED)
            while waiting:
                yield waiting.pop(0).result()
        finally:
            # Where something has failed, nobody works on the parts any more once it is told.
            wait([one for one in waiting if not one.cancel()])


class Here(Parts):
    """The parts of a fit on this machine, in files of a scratch folder.

    Parameters
    ----------
    source : Source
        Where rows come from.
    kept : Scratch or None
        Where parts lie; None: in memory.
    n_threads : int
        So many parts at a time.
    shown : bool
        Whether progress of what is read is shown.
    limit : int or None
        Bytes of memory that the fit is to keep to, where rows are in files; None: any number.
    """

    def __init__(
        self,
        source: Source,
        kept: Scratch | None,
        n_threads: int,
        *,
        shown: bool = False,
        limit: int | None = None,
    ) -> None:
        super().__init__([], n_threads, kept)
        self._source, self._shown = source, shown
        self._limit, self._most_threads = limit, n_threads
        self._rank: Rank | None = None
        self.has_weights = source.has_weights
        self.portions = Portions(n_threads)
        if limit is not None:
            known: Any = source
            self._take(get_smallest_portions(known.n_rows))
            # Where less is too little, the least is told once the first look is made.
            self._most = max(limit, 2 * measure_memory())

    def keep_to_limit(self, need: Need) -> None:
        """See `Executor`."""
        known: Any = self._source
        if is_planned():
            limit = _NO_LIMIT if self._limit is None else self._limit
            portions = choose_portions(limit, need, known.about, self._most_threads)
            raise PlannedError(make_plan(need, known.about, portions))
        if self._limit is None:
            return
        self._most = self._limit
        self._take(choose_portions(self._limit, need, known.about, self._most_threads))

    def expect_within_limit(self, n_together: int = 0) -> None:
        """See `Executor`."""
        if self._limit is not None:
            expect_memory_within(self._most, n_together / self.portions.together)

    def _take(self, portions: Portions) -> None:
        """Go on with other portions; no part has been made yet."""
        source: Any = self._source
        source.part_rows = portions.part_rows
        self.portions = portions
        self._work_with(portions.n_threads)

    @property
    def empty(self) -> Any:
        """See `Source`."""
        return self._source.empty

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """See `Executor`."""
        chunks = self._read(targets_only=targets_only)
        told = added(self._mapped(self._giving_back(partial(_looked, f, given)), chunks))
        release_memory()  # else libraries keep what one pass has taken beside what the next one takes
        return told

    def run_on_ranks(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`: there is one rank."""
        if self._rank is None:
            self._rank = Rank(self._join())
        return f(self._rank, *given)

    def collect_from_ranks(self, f: Callable[..., Any], *given: Any) -> list[Any]:
        """See `Executor`: there is one rank."""
        return [self.run_on_ranks(f, *given)]

    def _join(self) -> JoinedRows:
        """Join all parts, which are gone then, to one table."""
        joined = JoinedRows.join(self._parts, self.choose_storage(count_bytes(self._parts)))
        if self._scratch is not None:
            self._scratch.clear()
        self._parts = []
        return joined

    def choose_storage(self, n_bytes: int) -> Storage:
        """See `Executor`: files if a memory limit is set, or the rows are many."""
        return choose_storage(self._scratch, n_bytes, is_limited=self._limit is not None)

    def _giving_back(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """F, which gives back what it has freed if there is a limit."""
        return f if self._limit is None else partial(_gave_back, f)

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`."""
        each = repeat(()) if own is None else ((one,) for one in own)
        chunks = zip(count(), self._read(), each, strict=False)
        made = self._mapped(self._giving_back(partial(_made, f, given, self._scratch)), chunks)
        told = added(self._put(made))
        release_memory()
        return told

    def _read(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """The rows as they lie, whose number is shown."""
        n_rows = self._source.n_rows
        with show_progress(self._shown and n_rows is not None, n_rows or 0, "reading") as show:
            pace = RowRate()
            for chunk in self._source.chunks(targets_only=targets_only):
                n = len(chunk.y)
                yield chunk
                del chunk
                if self._limit is not None:
                    release_memory()
                    self.expect_within_limit()
                show(n, pace.update(n))

    @property
    def is_distributed(self) -> bool:
        """See `Executor`."""
        return False

    @property
    def n_workers(self) -> int:
        """See `Executor`: jobs have threads of their own."""
        return 1

    def spread(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """See `Executor`."""
        return (f(*shared, *job) for job in jobs)

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """See `Executor`."""
        if is_planned():
            source: Any = self._source
            about = source.about
            raise PlannedError(FitPlan(about.n, about.n_features, 0, 1, measure_memory(), 0))
        return joined(self.look(as_list))


def _gave_back(f: Callable[[Any], Any], item: Any) -> Any:
    told = f(item)
    release_memory()
    return told


def _looked(f: Callable[..., Any], given: tuple[Any, ...], item: Any) -> Any:
    return f(item, *given)


def _made(
    f: Callable[..., Any],
    given: tuple[Any, ...],
    kept: Scratch | None,
    item: tuple[int, Chunk, tuple[Any, ...]],
) -> tuple[PartOfRows, Any]:
    number, chunk, own = item
    part, told = f(number, chunk, *given, *own)
    return part if kept is None else kept.keep(part), told


def _changed(
    f: Callable[..., Any],
    given: tuple[Any, ...],
    kept: Scratch | None,
    item: tuple[PartOfRows, tuple[Any, ...]],
) -> tuple[PartOfRows, Any]:
    part, told = f(item[0], *given, *item[1])
    return part if kept is None else kept.keep(part), told
