"""All errors and ratios of the paper's experiment: five repetitions, seven data sets, four growers.

What `certree table2` prints, a line for each grower, data set and method, with standard errors over the
repetitions, in results/table2_errors.csv. Repetition r draws and deals rows by the seed r. Needs
CERTREE_DATA; takes about 40 s of one core.
"""

import os

from benchmarks.records import RESULTS, store
from certree.files.tables import DATA_VARIABLE
from certree.paper.protocol import GROWERS, PAPER_SETS, run
from certree.paper.table2 import Line, summarise_outcomes

REPEATS = 5


def records(line: Line) -> list[dict[str, str | float | None]]:
    """A line of the file for each method."""
    return [
        {
            "grower": line.grower,
            "dataset": line.dataset,
            "method": method,
            "error": error.value,
            "error_se": error.standard_error,
            "ratio": line.ratios[method].value,
            "ratio_se": line.ratios[method].standard_error,
            "outside": line.outside,
            "nodes": line.n_nodes,
        }
        for method, error in line.errors.items()
    ]


def main() -> None:
    """Run the experiment."""
    directory = os.environ.get(DATA_VARIABLE)
    if not directory:
        print(f"table2_errors: skipped, {DATA_VARIABLE} does not name the directory of the tables")
        return
    table = summarise_outcomes(run(PAPER_SETS, list(GROWERS), REPEATS, directory, n_jobs=1))
    store(RESULTS / "table2_errors.csv", [one for line in table for one in records(line)])


if __name__ == "__main__":
    main()
