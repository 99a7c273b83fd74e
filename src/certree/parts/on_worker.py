"""The parts of a fit that a worker of Dask holds, and how workers ask each other.

Workers form a tree: each asks those below it what it is asked, and adds what they tell to what its own
parts do. So none has more than two answers to read, however many workers there are. The one at the top
decides, too: a job of many questions, as a round of boosting is, is made there.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from certree.interface.extras import needed
from certree.parts.executors import Parts, added, owned
from certree.parts.links import Address, Door, Link, Unlinked, link_to


@dataclass(frozen=True, slots=True)
class Asked:
    """What parts are asked.

    Parameters
    ----------
    f : callable
        A function of a part.
    given : tuple
        What else it is given.
    change : int or None
        Which change of parts it is, in whose places is put what it gives; None: it is none.
    own : mapping or None
        What is given to each of the parts alone, by their numbers.
    """

    f: Callable[..., Any]
    given: tuple[Any, ...]
    change: int | None = None
    own: Mapping[int, Any] | None = None

    def of(self, numbers: Sequence[int]) -> Asked:
        """What some of the parts are asked, by their numbers."""
        return self if self.own is None else replace(self, own={i: self.own[i] for i in numbers})


@dataclass(frozen=True, slots=True)
class Below:
    """A worker that is asked by another one.

    Parameters
    ----------
    address : Address
        Where it is reached.
    numbers : tuple of int
        Of its parts, and of those of workers below it.
    """

    address: Address
    numbers: tuple[int, ...]


class OnWorker(Parts):
    """The parts of a fit on a worker, as many of which are asked at a time as it has threads.

    Parameters
    ----------
    numbers : tuple of int
        Which of the partitions they are.
    *pairs : tuples
        The parts, and what they have told when they were made.
    """

    def __init__(self, numbers: tuple[int, ...], *pairs: tuple[Any, Any]) -> None:
        worker = needed("distributed", "dask").get_worker()
        super().__init__([owned(received(part)) for part, _ in pairs], worker.state.nthreads)
        self._numbers = numbers
        self._below: list[tuple[Link, tuple[int, ...]]] = []
        self._ends: list[Link | Door] = []  # all links, and where one is waited for
        # The change that was made last, and what it told, as somebody on the way may have been lost.
        self._last: tuple[int, Any] = (-1, None)
        self._turn = threading.Lock()

    async def meet(self, below: Sequence[Below]) -> Address:
        """Leave all links, link to the workers below, and wait for the one above.

        Raises
        ------
        Unlinked
            If a worker below cannot be reached.
        """
        # Here and not where an actor is asked: somebody may wait there for a worker that is lost.
        return await asyncio.to_thread(self._meet, below)

    def _meet(self, below: Sequence[Below]) -> Address:
        _close(self._ends)
        with self._turn:  # once nobody is asked any more
            self._below, self._ends = [], []
            weakref.finalize(self, _close, self._ends)
            for one in below:
                link = link_to(one.address)
                self._ends.append(link)
                self._below.append((link, one.numbers))
            door = Door()
            self._ends.append(door)
        threading.Thread(target=_serve, args=(weakref.ref(self), door), daemon=True).start()
        return door.address

    def answer(self, above: Link) -> None:
        """Tell the worker above what it asks, as long as it is linked."""
        self._ends.append(above)
        try:
            while True:
                above.send(self.told(above.receive()))
        finally:  # whatever has happened, who waits for an answer learns that there is none
            above.close()

    def lead(self, job: bytes, n_changes: int) -> tuple[bytes, bytes, int]:
        """What a job tells, the changes that it has made, and how many; see `Executor.led`.

        job: a function and what it is given. n_changes: how many there have been before.

        All are pickled, as Dask takes its time for each of many small arrays.

        Raises
        ------
        Unlinked
            If a worker is lost.
        """
        leader = Leader(self, n_changes)
        f, given = pickle.loads(job)
        told = pickle.dumps(f(leader, *given), 5)
        return told, pickle.dumps(leader.changes, 5), len(leader.changes)

    def told(self, asked: Asked) -> Any:
        """What the parts here and below tell together, or an error.

        Raises
        ------
        Unlinked
            If a worker below is lost.
        """
        with self._turn:
            for link, numbers in self._below:
                link.send(asked.of(numbers))
            told = [self._own(asked), *(link.receive() for link, _ in self._below)]
        failed = [one for one in told if isinstance(one, _Failed)]
        return failed[0] if failed else added(told)

    def _own(self, asked: Asked) -> Any:
        """What the parts here tell; errors, too, as others still tell what they are asked."""
        try:
            if asked.change is None:
                return self.collect(asked.f, *asked.given)
            if asked.change != self._last[0]:
                own = None if asked.own is None else [asked.own[i] for i in self._numbers]
                self._last = asked.change, self.change(asked.f, *asked.given, own=own)
            return self._last[1]
        except Exception as error:  # noqa: BLE001 # it is raised where the fit is made
            return _Failed(error)

    def change_again(self, jobs: Sequence[bytes]) -> None:
        """Make the changes of jobs that parts before these have made."""
        for job in jobs:
            for one in pickle.loads(job):
                known(self._own(one))


@dataclass(frozen=True, slots=True)
class _Failed:
    """What is told where parts cannot answer."""

    error: Exception


def known(told: Any) -> Any:
    """What is told, if it is no error."""
    if isinstance(told, _Failed):
        raise told.error
    return told


def _serve(parts: weakref.ref[OnWorker], door: Door) -> None:
    """Let the worker above in, and answer it."""
    with suppress(Unlinked):
        above = door.opened()
        asked = parts()
        if asked is None:
            above.close()
        else:
            asked.answer(above)


def _close(ends: Sequence[Link | Door]) -> None:
    for one in ends:
        one.close()


class Leader:
    """Asks all parts of a fit from the worker at the top.

    Parameters
    ----------
    top : OnWorker
        Its own parts.
    n_changes : int
        How many changes there have been.
    """

    def __init__(self, top: OnWorker, n_changes: int) -> None:
        self._top, self._n_changes = top, n_changes
        self.changes: list[Asked] = []

    def collect(self, f: Callable[..., Any], *given: Any) -> Any:
        """See `Executor`."""
        return known(self._top.told(Asked(f, given)))

    def change(
        self, f: Callable[..., Any], *given: Any, own: Mapping[int, Any] | None = None
    ) -> Any:
        """See `Executor`."""
        asked = Asked(f, given, self._n_changes + len(self.changes), own)
        told = known(self._top.told(asked))
        self.changes.append(asked)
        return told


def received(given: Any) -> Any:
    """What came in a message of Dask, whose arrays may start at any byte, as the core reads it."""
    if isinstance(given, np.ndarray):
        return given if given.flags.aligned else given.copy()
    if isinstance(given, dict):
        return type(given)({key: received(one) for key, one in given.items()})
    if isinstance(given, tuple | list):
        made = map(received, given)
        return type(given)(*made) if hasattr(given, "_fields") else type(given)(made)
    if not is_dataclass(given) or isinstance(given, type):
        return given
    own = {one.name: getattr(given, one.name) for one in fields(given) if one.init}
    told = {name: received(one) for name, one in own.items()}
    moved = {name: one for name, one in told.items() if one is not own[name]}
    return replace(given, **moved) if moved else given
