"""Figures of the page on large data: costs of out-of-core and distributed fits."""

import re
from math import log2

from benchmarks.results_on_pages import lines_of, short, table

FILE = "scale.csv"
_CASE = re.compile(
    r"(?P<rows>[0-9.e+]+) x (?P<p>\d+), (?P<rounds>\d+) rounds of 31 leaves(, rate (?P<rate>[0-9.]+))?"
)
# Rows, features and rounds.
Size = tuple[float, int, int]
# Rates of steps that fits on a cluster were measured with.
RATES = "0.1", "0.3"
# What projections are of: machines, cores of each, bits a second of the network of one.
MACHINES, CORES, BITS = 100, 2, 1e10


def _found(rate: str | None = None) -> dict[Size, dict[str, dict[str, str]]]:
    """Return the results of each size (rows, features, rounds), by the measured quantity."""
    found: dict[Size, dict[str, dict[str, str]]] = {}
    for line in lines_of(FILE):
        what, _, case = line["case"].partition(": ")
        size = _CASE.fullmatch(case)
        if size and size["rate"] == rate:
            key = float(size["rows"]), int(size["p"]), int(size["rounds"])
            found.setdefault(key, {})[what] = line
    return found


def _number(of: dict[str, dict[str, str]], what: str, column: str = "figure") -> float:
    return float(of[what][column]) if what in of and of[what][column] else float("nan")


def _cell(value: float, form: str = ",.0f") -> str:
    return "" if value != value else format(value, form)


def costs() -> str:
    """Make the table of CPU seconds, memory and disk space of out-of-core and in-memory fits."""
    head = ["rows x features", "rounds", "in memory: CPU s", "MB", "files: CPU s", "s", "MB"]
    head += ["scratch GB", "CPU time over that in memory"]
    lines = []
    for (n, p, rounds), of in sorted(_found().items()):
        if "files, CPU" not in of:
            continue
        ratio = _number(of, "files, CPU", "ratio")
        lines.append(
            [
                f"{n:,.0f} x {p}",
                str(rounds),
                _cell(_number(of, "files, CPU", "peer_seconds")),
                _cell(_number(of, "memory, peak")),
                _cell(_number(of, "files, CPU", "certree_seconds")),
                _cell(_number(of, "files, wall", "certree_seconds")),
                _cell(_number(of, "files, peak")),
                _cell(_number(of, "scratch"), ".2f"),
                "" if ratio != ratio else short(ratio),
            ]
        )
    return table(head, lines)


def on_cluster() -> str:
    """Return seconds and log losses of our fits and LightGBM's on one cluster."""
    head = ["rows x features", "rounds", "rate", "certree, s", "LightGBM, s", "ratio", "log losses"]
    lines = []
    sizes = [(rate, *one) for rate in RATES for one in sorted(_found(rate).items())]
    for rate, (n, p, rounds), of in sizes:
        losses = [_number(of, f"Dask, {who}") for who in ("certree", "lightgbm")]
        lines.append(
            [
                f"{n:,.0f} x {p}",
                str(rounds),
                short(float(rate)),
                short(_number(of, "Dask", "certree_seconds")),
                short(_number(of, "Dask", "peer_seconds")),
                short(_number(of, "Dask", "ratio")),
                ", ".join(f"{one:.4f}".removeprefix("0") for one in losses),
            ]
        )
    return table(head, lines)


def told(what: str) -> str:
    """Return what one worker sends in a round: the number of passes ("passes"), or megabytes."""
    of = next(one for one in _found().values() if "passes of a round" in one)
    return short(_number(of, "passes of a round" if what == "passes" else "told in a round"))


def _largest(p: str) -> tuple[float, dict[str, dict[str, str]]]:
    """Return the largest number of rows with p features in an out-of-core fit of 100 rounds."""
    found = _found()
    sizes = [key for key in found if key[1:] == (int(p), 100) and "scratch" in found[key]]
    return max(sizes)[0], found[max(sizes)]


def minutes(rows: str, p: str, by: str) -> str:
    """Estimate minutes of a fit of 100 rounds on two cores, from the largest measured fit."""
    n, of = _largest(p)
    cores = CORES if by == "CPU" else 1
    return short(_number(of, f"files, {by}", "certree_seconds") * float(rows) / n / cores / 60)


def gigabytes(rows: str, p: str, what: str) -> str:
    """Estimate disk space or memory of a fit, from the largest measured fits."""
    n, of = _largest(p)
    if what == "scratch":
        return short(_number(of, "scratch") * float(rows) / n)
    found = _found()
    smaller = max(
        key for key in found if key[1:] == (int(p), 100) and key[0] < n and "scratch" in found[key]
    )
    a, b = _number(found[smaller], "files, peak"), _number(of, "files, peak")
    each = (b - a) / (n - smaller[0])
    return short((b + each * (float(rows) - n)) / 1000)


def on_machines(rows: str, what: str) -> str:
    """Estimate hours of a fit of 28 features on 100 machines, by "hours" of cores or "network"."""
    n, of = _largest("28")
    if what == "hours":
        seconds = _number(of, "files, CPU", "certree_seconds") * float(rows) / n / MACHINES / CORES
        return short(seconds / 3600)
    of_rounds = next(one for one in _found().values() if "passes of a round" in one)
    rounds, levels = 100, int(log2(MACHINES))  # of machines, each of which reads from two
    bits = 8e6 * _number(of_rounds, "told in a round") * rounds * 2 * levels
    return short(bits / BITS / 3600)
