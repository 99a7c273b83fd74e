"""Files of results: write them, note the versions of a run, and read them."""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

from certree.interface.atomic_write import write_atomically

RESULTS = Path(__file__).parent / "results"
RUNS = RESULTS / "runs.csv"
UNKNOWN = "not recorded"
# Columns of fits that hold no numbers.
NAMES = ("table", "world", "method")
# Whose versions matter to what is measured, if they are installed.
PEERS = ("numpy", "scikit-learn", "lightgbm", "catboost", "xgboost", "mapie", "shap")


def store(path: Path, rows: Sequence[Mapping[str, Any]], added: bool = False) -> None:
    """Write the lines of a file whole, and what made it down in runs.csv.

    Parameters
    ----------
    path : Path
        The file. Of those outside RESULTS nothing is noted.
    rows : sequence of mappings
        The lines by columns, at least one; what a line lacks is left empty.
    added : bool
        Whether lines of earlier runs stand among them, whose date and versions stay.
    """
    path.parent.mkdir(exist_ok=True)
    _write(path, rows)
    if path.parent == RESULTS:
        note_run(path.name, added)


def note_run(file: str, added: bool = False) -> None:
    """Note in runs.csv when a file of results was made, and with which versions of the peers."""
    found = [(name, installed(name)) for name in PEERS]
    run = {
        "file": file,
        "date": date.today().isoformat(),
        "versions": ", ".join(f"{name} {number}" for name, number in found if number),
    }
    runs = {row["file"]: row for row in _lines(RUNS)}
    if added:
        before = runs.get(file, {"file": file, "date": UNKNOWN, "versions": UNKNOWN})
        run = {key: _joined(before[key], value) for key, value in run.items()}
    runs[file] = run
    _write(RUNS, [runs[name] for name in sorted(runs)])


def _joined(before: str, now: str) -> str:
    """Join the notes of earlier runs and of this one, without repetitions."""
    return "; ".join(dict.fromkeys([*before.split("; "), now]))


def installed(name: str) -> str | None:
    """Return the version of a distribution, None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def known(path: Path) -> list[dict[str, Any]]:
    """Read the results of earlier fits: a list of {column: name or number}."""
    if not path.exists():
        return []
    return [
        {key: value if key in NAMES else float(value or "nan") for key, value in row.items()}
        for row in _lines(path)
    ]


def _lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    text = io.StringIO()
    columns = dict.fromkeys(chain.from_iterable(rows))
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, lambda file: file.write(text.getvalue().encode()))
