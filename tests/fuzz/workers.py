"""Processes that run cases one after the other; one that crashes or hangs is replaced."""

import multiprocessing
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

# What runs a case, given its number and the kinds it may be of; a text if it found something.
Run = Callable[[int, Sequence[str]], str | None]

_NONE = -1  # no case has begun


def _work(one: Run, numbers: range, kinds: list[str], seconds: float, at: Any, pipe: Any) -> None:
    """Run cases until the time is over, and report findings through the pipe."""
    until = time.monotonic() + seconds
    for number in numbers:
        if time.monotonic() > until:
            break
        at.value = number
        finding = one(number, kinds)
        if finding is not None:
            pipe.send((number, finding))
    pipe.send(None)


class Worker:
    """A process that runs every k-th case."""

    def __init__(self, one: Run, numbers: range, kinds: list[str], seconds: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.numbers = numbers
        self._at = context.Value("q", _NONE, lock=False)
        self._pipe, theirs = context.Pipe(duplex=False)
        arguments = one, numbers, kinds, seconds, self._at, theirs
        self._process = context.Process(target=_work, args=arguments)
        self._process.start()
        theirs.close()
        self._seen, self._since = _NONE, time.monotonic()

    @property
    def pipe(self) -> Any:
        """The connection at which its reports arrive."""
        return self._pipe

    @property
    def n_ran(self) -> int:
        """Number of cases that it has begun."""
        return 0 if self._at.value == _NONE else self.numbers.index(self._at.value) + 1

    @property
    def rest(self) -> range:
        """Numbers of the cases that it has not begun."""
        return self.numbers[self.n_ran :]

    def news(self, patience: float) -> tuple[list[tuple[int, str]], bool]:
        """Return its findings since the last call, and whether it has ended."""
        found = []
        try:
            while self._pipe.poll():
                report = self._pipe.recv()
                if report is None:
                    self._process.join()
                    return found, True
                found.append(report)
        except EOFError:
            self._process.join()
            if self._at.value == _NONE:
                raise RuntimeError("the process could not begin") from None
            text = f"the interpreter ended with {self._process.exitcode}"
            return [*found, (self._at.value, text)], True
        if self._hangs(patience):
            self._process.kill()
            self._process.join()
            return [*found, (self._at.value, f"takes more than {patience:g} seconds")], True
        return found, False

    def _hangs(self, patience: float) -> bool:
        # Imports take long at times; only cases are timed.
        if self._at.value == _NONE or self._at.value != self._seen:
            self._seen, self._since = self._at.value, time.monotonic()
        return time.monotonic() - self._since > patience


def watch(options: Namespace, one: Run) -> tuple[int, list[tuple[int, str]]]:
    """Run cases in all processes until the time is over; return how many ran, and the findings."""
    until = time.monotonic() + options.seconds
    every = range(options.start, options.start + options.cases)
    kinds = options.kinds
    shares = [every[k :: options.processes] for k in range(options.processes)]
    workers = [Worker(one, share, kinds, options.seconds) for share in shares if share]
    n_ran, found = 0, []
    while workers:
        wait([worker.pipe for worker in workers], timeout=1.0)
        for worker in [*workers]:
            news, has_ended = worker.news(options.patience)
            for number, text in news:
                print(f"-- case {number} of {' '.join(kinds)}\n{text}", flush=True)
            found += news
            if not has_ended:
                continue
            workers.remove(worker)
            n_ran += worker.n_ran
            left = until - time.monotonic()
            if worker.rest and left > 0:  # it crashed, or hung
                workers.append(Worker(one, worker.rest, kinds, left))
    return n_ran, found
