"""Timing two things side by side, and reporting what came out.

The two take turns, A, B, A, B, ..., in one process, so that whatever else the machine does hits
both alike. Medians are reported. The bounded figure of a row is the ratio to the peer unless the
row says otherwise.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.records import RESULTS, store
from benchmarks.results_on_pages import lines_of

Clock = Callable[[], float]


def seconds(run: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Time of one run, wall time unless a clock says otherwise."""
    start = clock()
    run()
    return clock() - start


def median(run: Callable[[], object], repeats: int) -> float:
    """Median wall time of so many runs; of several, one more goes before and does not count."""
    if repeats > 1:
        run()
    return statistics.median(seconds(run) for _ in range(repeats))


def medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Take the medians of both sides."""
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def alternate(
    ours: Callable[[], object],
    peer: Callable[[], object],
    repeats: int,
    clock: Clock = time.perf_counter,
) -> tuple[float, float]:
    """Take the median times of ours and of the peer, run in turn after one run of each."""
    ours(), peer()
    return medians([(seconds(ours, clock), seconds(peer, clock)) for _ in range(repeats)])


def peak_kib() -> int:
    """Peak memory of this process so far, in KiB."""
    import resource  # not on every platform

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a benchmark.

    Parameters
    ----------
    case : str
        What was run.
    certree_seconds : float or None
        Median time of ours; None where no time is measured.
    peer : str
        What it is compared with; "" for nothing.
    peer_seconds : float or None
        Median time of the peer.
    target : float or None
        What the figure must not exceed; None if nothing is asked.
    figure : float or None
        The bounded figure, if it is not the ratio of the times.
    unit : str
        What the figure counts.
    """

    case: str
    certree_seconds: float | None
    peer: str = ""
    peer_seconds: float | None = None
    target: float | None = None
    figure: float | None = None
    unit: str = "ratio"

    @property
    def ratio(self) -> float | None:
        """Time of ours over time of the peer."""
        if self.certree_seconds is None or self.peer_seconds is None:
            return None
        return self.certree_seconds / self.peer_seconds

    @property
    def bounded(self) -> float | None:
        """The figure that the target bounds."""
        return self.ratio if self.figure is None else self.figure

    @property
    def verdict(self) -> str:
        """Whether the target is met."""
        if self.target is None or self.bounded is None:
            return ""
        return "met" if self.bounded <= self.target else "MISSED"


def report(name: str, rows: Sequence[Row], *, added: bool = False) -> None:
    """Print the rows of a benchmark and write them to its file of results.

    Parameters
    ----------
    name : str
        Of the benchmark and its file.
    rows : sequence of Row
        What was measured.
    added : bool
        Whether lines of other cases stay in the file.
    """
    table = Table(title=name, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("case", "certree s", "peer", "peer s", "figure", "target", ""):
        numeric = heading in ("certree s", "peer s", "figure", "target")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        figure = "" if row.bounded is None else f"{_short(row.bounded)} {row.unit}"
        target = "" if row.target is None else f"<= {row.target:g}"
        times = _short(row.certree_seconds), _short(row.peer_seconds)
        table.add_row(row.case, times[0], row.peer, times[1], figure, target, row.verdict)
    Console(width=200).print(table)  # no narrower than its rows, whatever the terminal
    path, cases = RESULTS / f"{name}.csv", {row.case for row in rows}
    known = lines_of(path.name) if added and path.exists() else []
    before = [one for one in known if one["case"] not in cases]
    store(path, [*before, *(record(name, row) for row in rows)], added=bool(before))


def record(name: str, row: Row) -> dict[str, Any]:
    """A line of the file: times in seconds, an empty field for what does not apply."""
    return {
        "benchmark": name,
        "case": row.case,
        "certree_seconds": _short(row.certree_seconds),
        "peer": row.peer,
        "peer_seconds": _short(row.peer_seconds),
        "ratio": _short(row.ratio),
        "figure": _short(row.bounded),
        "unit": row.unit,
        "target": _short(row.target),
        "cores": os.cpu_count(),
        "date": date.today().isoformat(),
    }


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
