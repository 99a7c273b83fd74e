"""Rows of Dask: their parts stay in the memory of workers, where each is asked.

Rows are read, and parts made of them, by tasks of Dask. From then on the parts of a worker are an
actor of Dask. Jobs go to one of them, which asks the others. Dask makes tasks of a lost
worker again, but no actors: the fit lets their parts be made of their source again and change as they
did, which gives the same bits, and the job is done again.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from certree.interface.arrays import stack_columns
from certree.interface.extras import import_extra
from certree.out_of_core.chunks import Chunk, as_list, joined
from certree.out_of_core.executors import added
from certree.out_of_core.joined_rows import Storage, choose_storage
from certree.out_of_core.memory_limit import Need, Portions
from certree.out_of_core.on_worker import Below, Leader, OnWorker, dump, received
from certree.out_of_core.sources import normalize_targets
from certree.out_of_core.worker_links import Epoch, Unlinked

# What stands beside X, by the names of arguments.
_BESIDE = ("y", "sample_weight", "groups", "offset")
# What so many tell is added up by one task, or where the fit is made.
_TOGETHER = 8
# So often the parts of one worker may be lost while one question is answered.
_MOST_LOST = 4
# Seconds after which it is looked whether the cluster is still there.
_PATIENCE = 3.0
# A fit that waits for longer than so many seconds on a cluster without workers is given up.
_WITHOUT_WORKERS = 300.0
_LOGGER = logging.getLogger("certree")


class Partitions:
    """Rows of collections of Dask, which are cut alike.

    Parameters
    ----------
    X : dask.array.Array of shape (n, p), or dask.dataframe.DataFrame
        Rows.
    y : collection of shape (n,) or (n, n_targets), str, or list of str
        Target, or several; or their columns in X.
    weight, groups : collection of shape (n,), str, or None
        Weights, and groups; or their columns in X.
    offset : collection of shape (n,) or (n, n_outputs), str, list of str, or None
        Offsets; or their columns in X.

    Raises
    ------
    TypeError, ValueError
        If these are no such collections, or are cut otherwise than X.
    """

    empty = n_rows = None

    def __init__(
        self, X: Any, y: Any, weight: Any = None, groups: Any = None, offset: Any = None
    ) -> None:
        y, offset = normalize_targets("y", y), normalize_targets("offset", offset)
        beside = zip(_BESIDE, (y, weight, groups, offset), strict=True)
        named = [
            (name, one)
            for name, given in beside
            for one in (given if isinstance(given, tuple) else [given])
        ]
        for name, given in named:
            if isinstance(given, str) and not hasattr(X, "columns"):
                raise TypeError(
                    f"{name}={given!r} names a column, but X is an array, which has no names"
                )
        columns = [one for _, one in named if isinstance(one, str)]
        unknown = [one for one in columns if one not in X.columns]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no column of X; there are {[*X.columns]}")
        y, offset = ([*one] if isinstance(one, tuple) else one for one in (y, offset))
        # Columns are taken out of each partition: of fewer columns Dask may make other partitions.
        every = y, weight, groups, offset
        names = [one if isinstance(one, str | list) else None for one in every]
        self._names = names if columns else None
        given = [one if name is None else None for one, name in zip(every, names, strict=True)]
        if hasattr(X, "numblocks") and len(X.numblocks) != 2:
            raise ValueError(f"Expected 2D array, got array of shape {X.shape} instead")
        if hasattr(X, "numblocks") and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if groups is not None and getattr(given[2], "ndim", 1) != 1:
            raise ValueError(f"groups must have shape (n,), got {given[2].ndim} dimensions")
        self.has_weights = weight is not None
        self._rows, self._beside = _cut_alike(X, given)

    @property
    def n_parts(self) -> int:
        """How many there are."""
        return len(self._rows)

    def partition(self, number: int) -> Any:
        """One of them, as what is computed where it lies."""
        beside = (None if one is None else one[number] for one in self._beside)
        made = import_extra("dask", "dask").delayed(as_chunk, pure=False)
        return made(number, self._rows[number], *beside, self._names)

    def chunks(self, *, targets_only: bool = False) -> Iterator[Chunk]:
        """All rows, one partition after the other."""
        del targets_only
        dask = import_extra("dask", "dask")
        for number in range(self.n_parts):
            yield dask.compute(self.partition(number))[0]


def _cut_alike(X: Any, given: list[Any]) -> tuple[list[Any], list[list[Any] | None]]:
    """Return the partitions of X, and those of y, weight, groups and offset, as tasks.

    given: collections for y, weight, groups and offset, or None, for which None is returned. Raise a
    ValueError if one of them has another number of partitions than X.
    """
    collections = {
        name: _alike(name, one, X)
        for name, one in zip(_BESIDE, given, strict=True)
        if one is not None
    }
    # Dask joins small files when it optimises, and how many may depend on the columns.
    for is_optimised in (True, False):
        rows = _delayed(X, is_optimised)
        beside = {name: _delayed(one, is_optimised) for name, one in collections.items()}
        if all(len(one) == len(rows) for one in beside.values()):
            break
    for name, one in beside.items():
        if len(one) != len(rows):
            raise ValueError(
                f"X and {name} must be cut alike, got {len(rows)} and {len(one)} partitions: make "
                "both from one collection, or pass the name of a column of X"
            )
    return rows, [beside.get(name) for name in _BESIDE]


def _delayed(collection: Any, is_optimised: bool) -> list[Any]:
    """Return the partitions of a collection of Dask as tasks, in order.

    is_optimised: whether Dask may optimise the graph first, which can join partitions.
    """
    tasks = collection.to_delayed(optimize_graph=is_optimised)
    return [*np.ravel(np.array(tasks, dtype=object))]


def _alike(name: str, given: Any, X: Any) -> Any:
    """Return what stands beside X, cut into partitions as X, as far as their rows are known."""
    if not hasattr(given, "to_delayed"):
        raise TypeError(
            f"{name} must be a collection of Dask as X is, or a column's name, got "
            f"{type(given).__name__}"
        )
    if hasattr(given, "chunks") and hasattr(X, "chunks"):
        known = not np.isnan([*X.chunks[0], *given.chunks[0]]).any()
        if known and given.chunks[0] != X.chunks[0]:
            if given.shape[0] != X.shape[0]:
                raise ValueError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"[{X.shape[0]}, {given.shape[0]}]"
                )
            given = given.rechunk({0: X.chunks[0]})
    if len(getattr(given, "numblocks", ())) == 2 and given.numblocks[1] > 1:
        given = given.rechunk({1: -1})
    return given


def as_chunk(
    number: int,
    X: Any,
    y: Any,
    weight: Any,
    groups: Any,
    offset: Any,
    names: Sequence[str | list[str] | None] | None = None,
) -> Chunk:
    """Return a partition as a chunk of rows for a fit.

    names: for each of y, weight, groups and offset the names of its columns in X, or None if it is
    given; None: X has features alone.
    """
    if names is not None:
        given = (y, weight, groups, offset)
        y, weight, groups, offset = (
            one if name is None else X[name] for one, name in zip(given, names, strict=True)
        )
        several = [[name] if isinstance(name, str) else name or [] for name in names]
        X = X.drop(columns=[*dict.fromkeys(chain.from_iterable(several))])
    for name, given in zip(_BESIDE, (y, weight, groups, offset), strict=True):
        if given is not None and len(given) != len(X):
            raise ValueError(
                f"X and {name} must be cut alike, but partition {number} has {len(X)} rows of X and "
                f"{len(given)} of {name}"
            )
    weights, groups, offset = (
        None if one is None else np.asarray(one) for one in (weight, groups, offset)
    )
    if hasattr(y, "columns") and len(y.columns) > 1:  # of whatever types Dask has made them
        y = stack_columns([np.asarray(y[name]) for name in y.columns])
    return Chunk(X, y, weights, f"partition {number}", groups=groups, offset=offset)


class Partitioned(Protocol):
    """Where rows lie, partition by partition."""

    has_weights: bool

    @property
    def n_parts(self) -> int:
        """How many there are."""
        ...

    def partition(self, number: int) -> Any:
        """One of them, as what Dask computes where it lies."""
        ...


@dataclass(frozen=True, slots=True)
class Held:
    """Parts that a worker holds.

    Parameters
    ----------
    numbers : tuple of int
        Which of the partitions they are.
    future : distributed.Future
        Keeps them there, and knows whether they are lost.
    actor : distributed.Actor
        Is asked: an `OnWorker`.
    """

    numbers: tuple[int, ...]
    future: Any
    actor: Any

    @property
    def is_lost(self) -> bool:
        """Whether the worker is known to be gone."""
        return self.future.status not in ("finished", "pending")


class _Lost(Exception):  # noqa: N818 # no error: it says how to go on
    """Raised where a worker is gone."""


class OnCluster:
    """The parts of a fit in the memory of the workers of a cluster.

    Parameters
    ----------
    source : Partitioned
        Rows.
    client : distributed.Client
        The cluster's.
    files : Storage or None
        Where rows that are gathered here lie if they are many; None: in memory.
    """

    empty = None

    def __init__(self, source: Partitioned, client: Any, files: Storage | None = None) -> None:
        self._source, self._client, self._files = source, client, files
        self.has_weights = source.has_weights
        self.portions = Portions()
        self._held: list[Held] = []
        self._made_by: tuple[Any, ...] = ()
        self._have_met = False
        # How jobs have changed parts since they were made, which is done again where some are lost.
        self._changes: list[bytes] = []
        self._n_changes = 0
        # Addresses of the workers that have met, the set of ranks that are linked, and all calls of
        # ranks, which are repeated when one is lost.
        self._addresses: list[str] = []
        self._token: str | None = None
        self._calls: list[bytes] = []
        # Workers that were lost since ranks were linked the last time, and how often they were linked.
        self._lost: list[str] = []
        self._n_epochs = 0
        self._alone_since: float | None = None  # when the cluster was first seen without workers

    @property
    def n_parts(self) -> int:
        """Number of partitions."""
        return self._source.n_parts

    def keep_to_limit(self, need: Need) -> None:
        """See `Executor`: workers have limits of their own."""

    def expect_within_limit(self, n_together: int = 0) -> None:
        """See `Executor`."""

    def look(self, f: Callable[..., Any], *given: Any, targets_only: bool = False) -> Any:
        """See `Executor`."""
        del targets_only
        return self._added(self._of_chunks(_looked_at, f, given))

    def make(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`."""
        # As it is now: who calls may change what it has given, such as a random state, afterwards.
        self._made_by = f, dump(given), own
        self._release()
        self._addresses, self._have_met, self._token = [], False, None
        self._changes, self._n_changes, self._calls = [], 0, []
        pairs = self._of_chunks(_made_of, f, given, own)
        told = self._added([self._submit(itemgetter(1), pair) for pair in pairs])
        self._held = [
            self._holding(numbers, [pairs[i] for i in numbers])
            for numbers in self._lying_together(pairs)
        ]
        return told

    def _lying_together(self, made: list[Any]) -> list[tuple[int, ...]]:
        """Which of futures lie on one worker."""
        where = self._client.who_has(made)
        of_worker: dict[str, list[int]] = {}
        for number, one in enumerate(made):
            worker = next(iter(where.get(one.key, ())), "")
            of_worker.setdefault(worker, []).append(number)
        return [*map(tuple, of_worker.values())]

    def _holding(self, numbers: tuple[int, ...], pairs: list[Any]) -> Held:
        future = self._client.submit(OnWorker, numbers, *pairs, pure=False, actor=True)
        return Held(numbers, future, self._result(future))

    def collect(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`."""
        return self.led(Leader.collect, f, *given)

    def change(self, f: Callable[..., Any], *given: Any, own: Sequence[Any] | None = None) -> Any:
        """See `Executor`."""
        return self.led(_changed, f, given, None if own is None else dict(enumerate(own)))

    def run_on_ranks(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`: the parts of each worker are a rank."""
        return self._run_on_ranks(f, given, from_all=False)[0]

    def collect_from_ranks(self, f: Callable[..., Any], *given: Any) -> list[Any]:
        """See `Executor`."""
        return self._run_on_ranks(f, given, from_all=True)

    def _run_on_ranks(
        self, f: Callable[..., Any], given: tuple[Any, ...], *, from_all: bool
    ) -> list[Any]:
        """Call f(rank, *given) on all ranks, and return what it returns on rank 0, or on each."""
        self._calls.append(dump((f, given)))
        for _ in range(_MOST_LOST):
            try:
                self._meet()
                if self._token is None:
                    self._token = uuid4().hex
                    self._log_epoch()
                    told = self._call_ranks(self._calls, from_all)
                else:
                    told = self._call_ranks(self._calls[-1:], from_all)
            except (_Lost, Unlinked):
                self._have_met, self._token = False, None
                continue
            return [pickle.loads(one) for one in told[: None if from_all else 1]]
        raise self._given_up()

    def _log_epoch(self) -> None:
        """Log the addresses of the ranks, and the workers that were lost since the last epoch."""
        self._n_epochs += 1
        _LOGGER.log(
            logging.WARNING if self._lost else logging.INFO,
            "epoch %d of fit %s: ranks %s; lost: %s",
            self._n_epochs,
            self._token,
            ", ".join(f"{rank}={one}" for rank, one in enumerate(self._addresses)),
            ", ".join(self._lost) or "none",
        )
        self._lost = []

    def choose_storage(self, n_bytes: int) -> Storage:
        """See `Executor`."""
        return choose_storage(self._files, n_bytes)

    def _call_ranks(self, calls: Sequence[bytes], from_all: bool) -> list[bytes]:
        """Return what each rank answers to calls; raise what one of the ranks has raised.

        from_all: whether ranks other than rank 0 send their answers.
        """
        addresses, token = tuple(self._addresses), str(self._token)
        asked = [
            (held, self._ask(held, "run_on_rank", Epoch(token, rank, addresses), calls, from_all))
            for rank, held in enumerate(self._held)
        ]
        told, errors = [], []
        for one in asked:
            try:
                told.append(self._answer(*one))
            except Exception as error:  # noqa: BLE001 # it is raised below
                errors.append(error)
        # Where one has failed, others only know that it does not answer.
        errors.sort(key=lambda error: isinstance(error, Unlinked | _Lost))
        if errors:
            raise errors[0]
        return told

    def close(self) -> None:
        """End what ranks do, close their links, and let workers free the parts."""
        if self._token is not None:
            with suppress(Exception):  # who does not answer is gone
                asked = [self._ask(held, "end_rank") for held in self._held]
                for one in asked:
                    one.result(timeout=_PATIENCE)
        self._token = None
        self._release()

    def _release(self) -> None:
        """Let workers free the parts; actors are in reference cycles, which would hold them longer."""
        if self._client.status == "running":
            with suppress(Exception):
                self._client.cancel([held.future for held in self._held])
        self._held = []

    def led(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`: the worker at the top does it."""
        job = dump((f, given))
        for _ in range(_MOST_LOST):
            try:
                self._meet()
                told, changes, n = self._waited(self._held[0], "lead", job, self._n_changes)
            except (_Lost, Unlinked):
                self._have_met = False
                continue
            if n > 0:
                self._changes.append(changes)
                self._n_changes += n
            return pickle.loads(told)
        raise self._given_up()

    def _given_up(self) -> RuntimeError:
        return RuntimeError(
            "the fit was given up as workers died again and again that had a part of the rows, or "
            "could not reach each other: they may have too little memory"
        )

    def _meet(self) -> None:
        """Let workers know those below them; parts of lost ones are made again before."""
        if self._have_met:
            return
        known: dict[int, Below] = {}
        self._addresses = self._addresses or [""] * len(self._held)
        for place in reversed(range(len(self._held))):
            below = [known.pop(one) for one in (2 * place + 1, 2 * place + 2) if one in known]
            try:
                address = self._waited(self._held[place], "meet", below)
            except _Lost:
                self._lost.append(self._addresses[place] or "unknown")
                self._hold_again(place)
                address = self._waited(self._held[place], "meet", below)
            held, self._addresses[place] = self._held[place], address
            numbers = held.numbers, *(one.numbers for one in below)
            known[place] = Below(address, held.future.key, sum(numbers, ()))
        self._have_met = True

    def _waited(self, held: Held, method: str, *given: Any) -> Any:
        """What an actor answers."""
        return self._answer(held, self._ask(held, method, *given))

    def _ask(self, held: Held, method: str, *given: Any) -> Any:
        """Ask an actor; the answer comes later."""
        try:
            ask = getattr(held.actor, method)
        except (RuntimeError, ValueError) as error:  # the worker is known to be lost
            raise _Lost from error
        return ask(*given)

    def _answer(self, held: Held, answer: Any) -> Any:
        """Wait for an answer of an actor."""
        distributed = import_extra("distributed", "dask")
        while True:
            try:
                return answer.result(timeout=_PATIENCE)
            except TimeoutError:
                self._expect_cluster()
                if held.is_lost:
                    break
                if any(one.is_lost for one in self._held):
                    raise Unlinked from None
            except (OSError, distributed.CancelledError):
                self._expect_cluster()
                break
        raise _Lost

    def _hold_again(self, place: int) -> None:
        """Let parts of a lost worker be made again, as they were."""
        numbers, (f, given, own) = self._held[place].numbers, self._made_by
        pairs = self._of_chunks(_made_of, f, pickle.loads(given), own, numbers)
        held = self._holding(numbers, pairs)
        self._waited(held, "change_again", self._changes)
        self._held[place] = held

    @property
    def n_workers(self) -> int:
        """See `Executor`: threads of all workers."""
        return max(1, sum(self._client.nthreads().values()))

    def spread(
        self, f: Callable[..., Any], shared: tuple[Any, ...], jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """See `Executor`: what is shared is sent to each worker once."""
        (given,) = self._client.scatter([shared], broadcast=True, hash=False)
        for future in [self._submit(_done, f, given, *job) for job in jobs]:
            yield self._result(future)

    def gathered(self) -> tuple[Any, Any, Any, Any, Any]:
        """See `Executor`."""
        return joined(self.look(as_list))

    def _of_chunks(
        self,
        call: Callable[..., Any],
        f: Any,
        given: tuple[Any, ...],
        own: Sequence[Any] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[Any]:
        """Futures of a call with some partitions, or all, which are made of their source for it."""
        delayed = import_extra("dask", "dask").delayed(call, pure=False)
        tasks = [
            delayed(f, (*given, *(() if own is None else (own[i],))), i, self._source.partition(i))
            for i in (range(self.n_parts) if numbers is None else numbers)
        ]
        futures: list[Any] = self._client.compute(tasks)
        return futures

    def _submit(self, f: Callable[..., Any], *given: Any) -> Any:
        # By a name of its own: what is given need not be looked through for one.
        return self._client.submit(_called, f, *given, pure=False)

    def _added(self, told: list[Any]) -> Any:
        """The sum of what is told, added up where it is as long as there is much of it."""
        while len(told) > _TOGETHER:
            starts = range(0, len(told), _TOGETHER)
            told = [self._submit(_added, *told[i : i + _TOGETHER]) for i in starts]
        return added(map(self._result, told))

    def _result(self, future: Any) -> Any:
        distributed = import_extra("distributed", "dask")
        try:
            while True:
                try:
                    return received(future.result(timeout=_PATIENCE))
                except TimeoutError:
                    self._expect_cluster()
        except distributed.KilledWorker as error:
            raise RuntimeError(
                f"the fit was given up as workers died again and again that had a part of the rows: "
                f"they may have too little memory ({error})"
            ) from error
        except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
            raise RuntimeError(
                f"the cluster went away while the fit was made ({type(error).__name__})"
            ) from error

    def _expect_cluster(self) -> None:
        # Dask waits for a scheduler to come back, which knows nothing of the fit then.
        if self._client.status != "running":
            raise RuntimeError("the cluster went away while the fit was made")
        now = time.monotonic()
        if self._client.nthreads():
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since > _WITHOUT_WORKERS:
            raise RuntimeError(
                f"the cluster has had no workers for {_WITHOUT_WORKERS:.0f} s, and the fit waits for "
                f"one to hold {self.n_parts} partitions: start workers, and fit again"
            )


def _done(f: Callable[..., Any], shared: tuple[Any, ...], *job: Any) -> Any:
    return f(*shared, *job)


def _called(f: Callable[..., Any], *given: Any) -> Any:
    return f(*received(given))


def _changed(top: Leader, f: Callable[..., Any], given: tuple[Any, ...], own: Any) -> Any:
    return top.change(f, *given, own=own)


def _added(*told: Any) -> Any:
    return added(told)


def _looked_at(f: Callable[..., Any], given: tuple[Any, ...], _: int, chunk: Chunk) -> Any:
    return f(chunk, *received(given))


def _made_of(f: Callable[..., Any], given: tuple[Any, ...], number: int, chunk: Chunk) -> Any:
    return f(number, chunk, *received(given))
