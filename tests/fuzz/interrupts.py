"""Cases that stop a call at some moment: it ends by KeyboardInterrupt, and changes nothing.

Where the core has `interrupt_at`, its looks are stopped one after the other; elsewhere, and in Python's
own lines, a timer strikes. Whatever ends the interpreter is reported by the process that watches.
"""

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
from test_interrupt import LOOPS, Laws

_HAS_HOOK = hasattr(_core, "interrupt_at")
# A call of the core asks for signals every 50 milliseconds, so that timers need long calls.
_ROWS = 20_000 if _HAS_HOOK else 200_000
# Nobody counts the looks of all doors that a fit goes through: the first ones are stopped.
_FEW_LOOKS = 20
_DOORS = 0.3 if _HAS_HOOK else 0.05


@cache
def _laws() -> Laws:
    return Laws(_ROWS)


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt once in what runs so long."""

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
def _stopped_at(look: int) -> Iterator[None]:
    """Raise KeyboardInterrupt at one of the looks of the core from now on."""
    _core.interrupt_at(look)
    try:
        yield
    finally:
        _core.interrupt_at(0)


def _stop(random: Random, call: Callable[[], Any], seconds: float, looks: int) -> None:
    """Call, and stop it at a look or after some time, unless it ends before."""
    hooked = _HAS_HOOK and looks and random.random() < 0.7
    stopping = (
        _stopped_at(random.randint(1, looks))
        if hooked
        else _stopped_after(max(random.random() * seconds, 1e-5))
    )
    with suppress(KeyboardInterrupt), stopping:
        call()


def interrupt(random: Random) -> Iterator[Attempt]:
    """Stop a door of the core, a fit, or a prediction."""
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        yield partial(_a_door if random.random() < _DOORS else _a_fit, random)


def _a_door(random: Random) -> None:
    """A stopped call of the core leaves its arguments; the next one answers as ever."""
    laws, door = _laws(), LOOPS[random.choice([*LOOPS])]
    began = time.perf_counter()
    expected = door(laws)
    seconds = time.perf_counter() - began
    _stop(random, partial(door, laws), seconds, _core.looks())
    _expect_alike(door(laws), expected)


def _expect_alike(found: Any, expected: Any) -> None:
    """The same arrays, wherever they are kept."""
    if isinstance(expected, np.ndarray | float | int | bool | np.generic):
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, tuple | list):
        for a, b in zip(found, expected, strict=True):
            _expect_alike(a, b)


def _a_fit(random: Random) -> None:
    """A stopped fit or prediction leaves the model, and the same fit gives the same bits later."""
    rng = np.random.default_rng(random.getrandbits(63))
    n = random.choice([30, 300])
    X = rng.normal(size=(n, 3))
    model = drawn_estimator(random, random.choice(ESTIMATORS), 3)
    if "Fourier" in type(model).__name__:
        X = (X > 0).astype(float)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int if is_classifier(model) else float)
    model.fit(X[: n // 2], y[: n // 2])  # whatever is imported late is imported now
    first, before = dict(vars(model)), of_rows(model, X)
    began = time.perf_counter()
    expected = of_rows(copy.copy(model).fit(X, y), X)
    seconds = time.perf_counter() - began
    asked = partial(of_rows, model, X) if random.random() < 0.3 else partial(model.fit, X, y)
    _stop(random, asked, seconds, _FEW_LOOKS)
    is_as_before = all(vars(model).get(name) is value for name, value in first.items())
    same(of_rows(model, X), before if is_as_before else expected)
    assert vars(model).keys() == first.keys(), "a stopped call has left something"
    same(of_rows(copy.copy(model).fit(X, y), X), expected)
