"""Which of scikit-learn's own tests of boosting, forests and trees pass with certree's estimators.

`tests/peers/drop_in.py` puts them in place. A test may fail as it looks into scikit-learn's own
parts, as a parameter or an attribute has no counterpart, or as it asks for what users may expect: the
causes tell. Prints the counts and the causes, those of the most tests first, and writes them to
results/peers.csv; `--tests` prints the test of each cause, too.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.records import RESULTS, store

SUITES = {
    "boosting": "sklearn.ensemble.tests.test_gradient_boosting",
    "boosting by histograms": "sklearn.ensemble._hist_gradient_boosting.tests.test_gradient_boosting",
    "warm starts": "sklearn.ensemble._hist_gradient_boosting.tests.test_warm_start",
    "monotonic": "sklearn.ensemble._hist_gradient_boosting.tests.test_monotonic_constraints",
    "forests": "sklearn.ensemble.tests.test_forest",
    "trees": "sklearn.tree.tests.test_tree",
}
MOST_SECONDS = 900


def run(module: str) -> list[dict[str, str]]:
    """How the tests of a module end."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        tests = str(Path(__file__).parents[1] / "tests")
        environment = {**os.environ, "PYTHONPATH": tests, "PEERS_FOUND": str(found)}
        command = ["-m", "pytest", "-q", "-p", "peers.drop_in", "-p", "no:randomly", "-p"]
        subprocess.run(
            [sys.executable, *command, "no:cacheprovider", "--pyargs", module],
            env=environment,
            cwd=folder,
            timeout=MOST_SECONDS,
            capture_output=True,
            check=False,
        )
        return json.loads(found.read_text())


def kind(cause: str) -> str:
    """A cause without what differs from test to test."""
    line = next((one for one in cause.splitlines() if one.strip()), "")
    line = re.sub(r"0x[0-9a-f]+|[-+]?\d[\d.e+-]*", "#", line)
    return re.sub(r"\s+", " ", line)[:110]


def main() -> None:
    """Run all suites."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", action="store_true", help="print the tests of each cause")
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], help="these alone")
    options = parser.parse_args()
    rows = []
    for name in options.suites or SUITES:
        found = run(SUITES[name])
        counts = Counter(one["outcome"] for one in found)
        print(f"{name}: {dict(counts)}")
        causes = defaultdict(list)
        for one in found:
            if one["outcome"] == "failed":
                causes[kind(one["cause"])].append(one["test"].split("::")[-1])
        rows.append({"suite": name, "outcome": "passed", "tests": counts["passed"]})
        for cause, tests in sorted(causes.items(), key=lambda pair: -len(pair[1])):
            print(f"  {len(tests):4} {cause}")
            if options.tests:
                print("".join(f"         {test}\n" for test in tests), end="")
            rows.append({"suite": name, "outcome": cause, "tests": len(tests)})
    if not options.suites:
        store(RESULTS / "peers.csv", rows)


if __name__ == "__main__":
    main()
