"""Cases that interrupt a call: it must end by KeyboardInterrupt and change nothing."""

import copy
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from random import Random
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from certree import _core
from fuzz.functions import Attempt
from fuzz.models import ESTIMATORS
from fuzz.relations import drawn_estimator, of_rows, same
from test_interrupt import LOOPS, Posteriors, looks_of

# Steps between looks: small tables have none of the usual ones.
_STEPS = (1, 100, 10_000)


@cache
def _posteriors(n_jobs: int) -> Posteriors:
    return Posteriors(20_000, n_jobs)


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt once after so many seconds."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _stopped_at(look: int, steps: int) -> Iterator[None]:
    """Raise KeyboardInterrupt at one of the next checks for interrupts in the core."""
    _core.interrupt_at(look, steps)
    try:
        yield
    finally:
        _core.interrupt_at(0)


def _stop(random: Random, call: Callable[[], Any], again: Callable[[], Any] | None = None) -> None:
    """Call, and interrupt it at a check of the core or after some time; `again` makes the same call
    undisturbed.
    """
    steps, began = random.choice(_STEPS), time.perf_counter()
    looks = looks_of(again or call, steps)
    seconds = time.perf_counter() - began
    if looks and random.random() < 0.7:
        stopping = _stopped_at(random.randint(1, looks), steps)
    else:
        stopping = _stopped_after(max(random.random() * seconds, 1e-5))
    with suppress(KeyboardInterrupt), stopping:
        call()


def interrupt(random: Random) -> Iterator[Attempt]:
    """Interrupt a function of the core, a fit, or a prediction."""
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        yield partial(_a_door if random.random() < 0.3 else _a_fit, random)


def _a_door(random: Random) -> None:
    """Interrupt a function of the core; its arguments must be unchanged, and the next call must
    give the same result.
    """
    posteriors, door = _posteriors(random.choice([1, 2])), LOOPS[random.choice([*LOOPS])]
    expected = door(posteriors)
    _stop(random, partial(door, posteriors))
    _expect_alike(door(posteriors), expected)


def _expect_alike(found: Any, expected: Any) -> None:
    """Assert that two results have the same arrays, at any memory address."""
    if isinstance(expected, np.ndarray | float | int | bool | np.generic):
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, tuple | list):
        for a, b in zip(found, expected, strict=True):
            _expect_alike(a, b)


def _a_fit(random: Random) -> None:
    """Interrupt a fit or prediction; the model must be unchanged, and the same fit must give the
    same bits later.
    """
    rng = np.random.default_rng(random.getrandbits(63))
    n = random.choice([30, 300])
    X = rng.normal(size=(n, 3))
    model = drawn_estimator(random, random.choice(ESTIMATORS), 3)
    if "Fourier" in type(model).__name__:
        X = (X > 0).astype(float)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int if is_classifier(model) else float)
    model.fit(X[: n // 2], y[: n // 2])  # whatever is imported late is imported now
    first, before = dict(vars(model)), of_rows(model, X)
    expected = of_rows(copy.copy(model).fit(X, y), X)
    if random.random() < 0.3:
        _stop(random, partial(of_rows, model, X))
    else:
        _stop(random, partial(model.fit, X, y), partial(copy.copy(model).fit, X, y))
    is_as_before = all(vars(model).get(name) is value for name, value in first.items())
    same(of_rows(model, X), before if is_as_before else expected)
    assert vars(model).keys() == first.keys(), "a stopped call has left something"
    same(of_rows(copy.copy(model).fit(X, y), X), expected)
