"""Importing certree, against importing the parts of scikit-learn that every estimator needs.

Every import runs in a fresh interpreter, ours and the peer's in turn, 15 times each, after one that
writes bytecode of both; the time is that of the import statement alone. ``import certree`` alone
imports names when they are used, so models are imported, too. Target: each adds at most 0.06 s to
the import of the peer, and ``import certree`` takes at most that long itself.

What both import (NumPy, SciPy, joblib, and pandas where it is installed) takes most of the time.
The last rows leave it out: the models in an interpreter that has loaded the peer's parts before.
There a full garbage collection comes or does not, by how many objects are there; it looks at those
of all libraries and takes longer than our modules do.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.timing import Row, medians, report

TARGET = 0.06
# What a program imports to fit a tree or boosted trees, by certree and by scikit-learn.
MODELS = {
    "from certree import PACBayesTreeClassifier": "from sklearn.tree import DecisionTreeClassifier",
    "from certree import BoostedTreesClassifier": (
        "from sklearn.ensemble import HistGradientBoostingClassifier"
    ),
}


def import_seconds(statement: str, before: str, bytecode: str) -> float:
    """Wall time of a statement in a fresh interpreter, after another one that is not timed."""
    script = (
        f"import time\n{before}\nstart = time.perf_counter()\n{statement}\n"
        "print(time.perf_counter() - start)"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=kept | {"PYTHONPYCACHEPREFIX": bytecode},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def rows_of(repeats: int, bytecode: str) -> list[Row]:
    """All rows, with bytecode in a folder that is empty at first."""

    def taken(statement: str, before: str = "") -> float:
        return import_seconds(statement, before, bytecode)

    for ours, theirs in MODELS.items():
        taken(ours), taken(theirs)
    alone = statistics.median(taken("import certree") for _ in range(repeats))
    rows = [Row("import certree", alone, target=TARGET, figure=alone, unit="s")]
    for ours, theirs in MODELS.items():
        pairs = [(taken(ours), taken(theirs)) for _ in range(repeats)]
        added = statistics.median(one - other for one, other in pairs)
        times = medians(pairs)
        rows.append(Row(ours, times[0], theirs, times[1], TARGET, added, "s more"))
    for ours, theirs in MODELS.items():
        after = statistics.median(taken(ours, theirs) for _ in range(repeats))
        rows.append(Row(f"{ours}, after the peer's", after, figure=after, unit="s"))
        collected = f"{theirs}; import gc; gc.disable()"
        after = statistics.median(taken(ours, collected) for _ in range(repeats))
        rows.append(Row(f"{ours}, nothing collected", after, figure=after, unit="s"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as bytecode:
        report("import_time", rows_of(repeats, bytecode))


if __name__ == "__main__":
    main()
