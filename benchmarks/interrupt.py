"""How long after Ctrl-C a call still runs, at 1e6 rows of 20 features.

A timer raises a signal at several moments of each call, whose handler takes the time and raises.
Target: at most .2 s from the signal to the exception, for every call and moment.
"""

import argparse
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import NoReturn

import numpy as np

from benchmarks.timing import Row, report
from certree import PACBayesTreeClassifier, grow_cart, grow_dyadic, grow_kd

FEATURES = 20
TARGET = 0.2


class StopError(Exception):
    """What the handler raises."""


def delay(call: Callable[[], object], after: float) -> float | None:
    """Seconds from the signal to the end of the call; None if it had ended before."""

    def stop(*_: object) -> NoReturn:
        raise StopError

    before = signal.signal(signal.SIGALRM, stop)
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        call()
    except StopError:
        return time.perf_counter() - start - after
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return None


def longest_delay(call: Callable[[], object], moments: int, last: float) -> float:
    """The longest delay over moments up to the last one, in seconds."""
    delays = [delay(call, after) for after in np.linspace(last / moments, last, moments)]
    return max(found for found in delays if found is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--moments", type=int, default=20)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(arguments.rows, FEATURES))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(np.int32)
    fitted = PACBayesTreeClassifier(random_state=0, n_jobs=-1).fit(X[:100_000], y[:100_000])
    rows = []
    for n_jobs in (1, 2):
        model = PACBayesTreeClassifier(random_state=0, n_jobs=n_jobs)
        fitted.set_params(n_jobs=n_jobs)
        calls: dict[str, tuple[Callable[[], object], float]] = {
            "grow_cart": (partial(grow_cart, X, y, n_jobs=n_jobs), 6.0),
            "grow_kd": (partial(grow_kd, X, axis="spread", n_jobs=n_jobs), 1.5),
            "grow_dyadic": (partial(grow_dyadic, X, n_jobs=n_jobs), 1.0),
            "fit": (partial(model.fit, X, y), 20.0),
            "predict_proba": (partial(fitted.predict_proba, X), 0.25),
        }
        for name, (call, last) in calls.items():
            found = longest_delay(call, arguments.moments, last)
            case = f"{name}, {n_jobs} threads, longest of {arguments.moments}"
            rows.append(Row(case, None, target=TARGET, figure=found, unit="s"))
    report("interrupt", rows)


if __name__ == "__main__":
    main()
