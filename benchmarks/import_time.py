"""Importing certree, against importing the parts of scikit-learn that every estimator needs.

Every import runs in a fresh interpreter, ours and the peer's in turn, 15 times each; the time is
that of the import statement alone. Target: certree adds at most 0.15 s to ``import sklearn.tree,
sklearn.model_selection``. This is looked at twice: as the median difference of two interpreters,
which is noisy, as each takes a second or more, and as the time of ``import certree`` in one that
has loaded those parts before. ``import sklearn`` alone loads less than any of its estimators needs;
the row against it shows how much less and has no target.
"""

import argparse
import statistics
import subprocess
import sys

from benchmarks.timing import Row, medians, report

PARTS = "import sklearn.tree, sklearn.model_selection"
TARGET = 0.15


def import_seconds(statement: str, before: str = "") -> float:
    """Wall time of a statement in a fresh interpreter, after another one that is not timed."""
    script = (
        f"import time\n{before}\nstart = time.perf_counter()\n{statement}\n"
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", script]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    import_seconds("import certree")  # the files are in the page cache from here on
    rows = []
    for peer, target in ((PARTS, TARGET), ("import sklearn", None)):
        pairs = [(import_seconds("import certree"), import_seconds(peer)) for _ in range(repeats)]
        added = statistics.median(ours - theirs for ours, theirs in pairs)
        times = medians(pairs)
        rows.append(Row("import certree", times[0], peer, times[1], target, added, "s more"))
    after = statistics.median(import_seconds("import certree", PARTS) for _ in range(repeats))
    case = "import certree, these parts loaded before"
    rows.append(Row(case, after, target=TARGET, figure=after, unit="s"))
    report("import_time", rows)


if __name__ == "__main__":
    main()
