"""How a line of results/ is read, and how its figures are written on a page."""

import csv
import re

import numpy as np

from benchmarks.records import RESULTS, UNKNOWN


def short(value: float) -> str:
    """A number below 1 without its zero, as pages write them."""
    if value >= 0.995:
        return f"{value:.3g}" if value >= 10 else f"{value:.2f}"
    return f"{value:.2g}".removeprefix("0")


def decimals(value: float, places: int = 3) -> str:
    """A number with so many places, below 1 without its zero; tens of thousands are set apart."""
    form = f",.{places}f" if value >= 10_000 else f".{places}f"
    return format(value, form).removeprefix("0")


def lines_of(file: str) -> list[dict[str, str]]:
    """All lines of a file of results."""
    with (RESULTS / file).open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def the_line(file: str, wanted: dict[str, str]) -> dict[str, str]:
    """The one line of a file with these fields."""
    found = [one for one in lines_of(file) if wanted.items() <= one.items()]
    if len(found) != 1:
        raise ValueError(f"{len(found)} lines of {file} have {wanted}, expected one")
    return found[0]


def lines_where(file: str, *where: str) -> list[dict[str, str]]:
    """All lines in which every "column=value" holds; "column~part" asks for a part of the value."""
    found = lines_of(file)
    for one in where:
        column, sign, wanted = re.split("([=~])", one, maxsplit=1)
        found = [
            line
            for line in found
            if (line[column] == wanted if sign == "=" else wanted in line[column])
        ]
    if not found:
        raise ValueError(f"no line of {file} has {' and '.join(where)}")
    return found


def average(file: str, column: str, *where: str) -> str:
    """The mean of a column over some lines."""
    return short(float(np.mean([float(one[column]) for one in lines_where(file, *where)])))


def span(file: str, column: str, *where: str) -> str:
    """From the least to the most of a column over some lines."""
    values = [float(one[column]) for one in lines_where(file, *where)]
    low, high = short(min(values)), short(max(values))
    return low if low == high else f"{low} to {high}"


def largest(file: str, column: str, *where: str) -> str:
    """The most that a column is away from 0 over some lines."""
    return short(max(abs(float(one[column])) for one in lines_where(file, *where)))


def of_case(benchmark: str, case: str, column: str = "ratio", peer: str = "") -> str:
    """One field of a case of a benchmark, of the peer's line if there are several."""
    wanted = {"case": case} | ({"peer": peer} if peer else {})
    return short(float(the_line(f"{benchmark}.csv", wanted)[column]))


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def table(head: list[str], lines: list[list[str]]) -> str:
    """A table of Markdown, with room around it."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n\n"


def made(*benchmarks: str) -> str:
    """When files of results were made, and by which versions of others."""
    runs = {one["file"]: one for one in lines_of("runs.csv")}
    found: dict[tuple[str, str], list[str]] = {}
    for name in benchmarks:
        file = f"{name}.csv"
        run = runs.get(file, {"versions": UNKNOWN})
        day = run.get("date") or lines_of(file)[0].get("date", "on a day not recorded")
        found.setdefault((day, run["versions"]), []).append(f"`{file}`")
    return "; ".join(
        f"{', '.join(files)} {day} (versions: {versions})"
        for (day, versions), files in found.items()
    )
