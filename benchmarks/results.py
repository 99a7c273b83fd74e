"""Result files of the benchmarks: read and write them, and record the versions of each run.

Each benchmark writes `benchmarks/results/<name>.csv`, which `benchmarks/figures.py` reads.
"""

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from certree.interface.atomic_write import write_atomically

RESULTS = Path(__file__).parent / "results"
UNKNOWN = "not recorded"
# Columns of fits that hold no numbers.
NAMES = ("table", "world", "method")
# Versions of these libraries, if installed, are recorded with each run.
LIBRARIES = ("numpy", "scikit-learn", "lightgbm", "catboost", "xgboost", "mapie", "shap")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a benchmark that compares times, or one figure, with a target.

    Parameters
    ----------
    case : str
        The measured case.
    seconds : float or None
        Time of certree; None if the benchmark measures no time.
    peer : str
        The other library; "" if there is none.
    peer_seconds : float or None
        Time of the other library.
    target : float or None
        Largest allowed figure; None if there is no goal.
    figure : float or None
        The figure; None stands for the ratio of the times.
    unit : str
        Unit of the figure.
    """

    case: str
    seconds: float | None = None
    peer: str = ""
    peer_seconds: float | None = None
    target: float | None = None
    figure: float | None = None
    unit: str = "ratio"

    def to_fields(self, benchmark: str) -> dict[str, Any]:
        """Return the line of the result file; fields that do not apply are empty."""
        both = self.seconds is not None and self.peer_seconds
        ratio = self.seconds / self.peer_seconds if both else None
        numbers = {
            "certree_seconds": self.seconds, "peer": self.peer, "peer_seconds": self.peer_seconds,
            "ratio": ratio, "figure": ratio if self.figure is None else self.figure,
            "unit": self.unit, "target": self.target,
        }  # fmt: skip
        texts = {name: _format(value) for name, value in numbers.items()}
        ran = {"cores": os.cpu_count(), "date": date.today().isoformat()}
        return {"benchmark": benchmark, "case": self.case, **texts, **ran}


def _format(value: Any) -> str:
    """Return a number with four digits, a text as it is, and "" for None."""
    return f"{value:.4g}" if isinstance(value, float | int) else value or ""


def report(benchmark: str, rows: Sequence[Row], added: bool = False) -> None:
    """Print rows, and write them to the result file; `added`: keep the other cases of the file."""
    lines = [row.to_fields(benchmark) for row in rows]
    hidden = ["benchmark", "ratio", "cores", "date"]
    print(pd.DataFrame(lines).drop(columns=hidden).to_string(index=False), flush=True)
    cases = {row.case for row in rows}
    kept = [line for line in read_lines(benchmark) if line["case"] not in cases] if added else []
    store(benchmark, [*kept, *lines], added=bool(kept))


def run_missing(
    benchmark: str, fits: Iterable[tuple[dict[str, Any], Callable[[], dict[str, float]]]]
) -> None:
    """Run the fits that the result file does not have yet, and store the file after each.

    benchmark: name of the file; fits: pairs of the columns that identify a fit, and of a function
    that fits and returns the other columns.
    """
    rows = read_fits(benchmark)
    added = bool(rows)
    for key, run in fits:
        if not any(key.items() <= row.items() for row in rows):
            rows.append({**key, **run()})
            print(*rows[-1].values(), flush=True)
            store(benchmark, rows, added)


def store(benchmark: str, rows: Sequence[Mapping[str, Any]], added: bool = False) -> None:
    """Write a result file, and record date and versions in runs.csv.

    benchmark: name of the file; rows: its lines, at least one (missing columns are empty); added:
    whether lines of earlier runs are among them, whose dates and versions are kept.
    """
    _write(benchmark, rows)
    found = [(name, _find_version(name)) for name in LIBRARIES]
    run = {
        "file": f"{benchmark}.csv",
        "date": date.today().isoformat(),
        "versions": ", ".join(f"{name} {number}" for name, number in found if number),
    }
    runs = {row["file"]: row for row in read_lines("runs")}
    if added:
        before = runs.get(run["file"], dict.fromkeys(run, UNKNOWN))
        notes = {key: [*before[key].split("; "), run[key]] for key in ("date", "versions")}
        run |= {key: "; ".join(dict.fromkeys(texts)) for key, texts in notes.items()}
    runs[run["file"]] = run
    _write("runs", [runs[name] for name in sorted(runs)])


def _find_version(library: str) -> str | None:
    """Return the version of a library, or None if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def read_lines(benchmark: str) -> list[dict[str, str]]:
    """Read the lines of a result file as texts; there are none if it does not exist."""
    path = RESULTS / f"{benchmark}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_fits(benchmark: str) -> list[dict[str, Any]]:
    """Read the lines of a result file with numbers in all columns but NAMES."""
    return [
        {k: v if k in NAMES else float(v or "nan") for k, v in line.items()}
        for line in read_lines(benchmark)
    ]


def _write(benchmark: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write lines to a result file, all or nothing."""
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(dict.fromkeys(chain.from_iterable(rows))), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    content = text.getvalue().encode()
    write_atomically(RESULTS / f"{benchmark}.csv", lambda file: file.write(content))
