"""The paper's experiment: all errors and ratios, with standard errors over five repetitions.

One line for each grower, data set and method, as `certree table2` prints them.
"""

import typer

from benchmarks.results import store
from benchmarks.tables import find_directory
from certree.paper.protocol import GROWERS, PAPER_SETS, run
from certree.paper.table2 import summarise_outcomes


def main(repeats: int = 5, sets: int = len(PAPER_SETS)) -> None:
    """Run the experiment; sets: number of data sets."""
    outcomes = run(PAPER_SETS[:sets], list(GROWERS), repeats, str(find_directory()), n_jobs=1)
    rows = []
    for line in summarise_outcomes(outcomes):
        for method, error in line.errors.items():
            ratio = line.ratios[method]
            rows.append({
                "grower": line.grower, "dataset": line.dataset, "method": method,
                "error": error.value, "error_se": error.standard_error,
                "ratio": ratio.value, "ratio_se": ratio.standard_error,
                "outside": line.outside, "nodes": line.n_nodes,
            })  # fmt: skip
    store("table2_errors", rows)


if __name__ == "__main__":
    typer.run(main)
