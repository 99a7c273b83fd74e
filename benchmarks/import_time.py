"""Seconds of imports of certree, against imports of scikit-learn's models.

Each import runs in a new interpreter, certree's and scikit-learn's in turn, 15 times after one that
writes bytecode. Only the import statement is timed. `import certree` itself imports names when they
are used. Targets: at most .06 s more than scikit-learn's model, and at most .06 s for `import certree`.
"""

import os
import statistics
import subprocess
import sys
import tempfile

import typer

from benchmarks.results import Row, report

TARGET = 0.06
MODELS = {
    "from certree import PACBayesTreeClassifier": "from sklearn.tree import DecisionTreeClassifier",
    "from certree import BoostedTreesClassifier": (
        "from sklearn.ensemble import HistGradientBoostingClassifier"
    ),
}


def measure(statement: str, bytecode: str) -> float:
    """Return the seconds of a statement in a new interpreter with bytecode in a folder."""
    script = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = kept | {"PYTHONPYCACHEPREFIX": bytecode}
    return float(
        subprocess.check_output([sys.executable, "-c", script], env=environment, text=True)
    )


def main(repeats: int = 15) -> None:
    """Measure all imports."""
    with tempfile.TemporaryDirectory() as bytecode:
        for statement in (*MODELS, *MODELS.values()):
            measure(statement, bytecode)
        alone = statistics.median(measure("import certree", bytecode) for _ in range(repeats))
        rows = [Row("import certree", alone, target=TARGET, figure=alone, unit="s")]
        for ours, theirs in MODELS.items():
            pairs = [(measure(ours, bytecode), measure(theirs, bytecode)) for _ in range(repeats)]
            more = statistics.median(a - b for a, b in pairs)
            times = [statistics.median(one) for one in zip(*pairs, strict=True)]
            rows.append(Row(ours, times[0], theirs, times[1], TARGET, more, "s more"))
    report("import_time", rows)


if __name__ == "__main__":
    typer.run(main)
