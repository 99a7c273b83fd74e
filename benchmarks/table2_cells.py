"""Why cells of the paper's Table 2 are what they are: over many draws, and over all temperatures.

For every ratio that the paper prints: the least and the largest of ten sets of five repetitions, each
tuned as in the experiment, and what the temperatures give that are best in hindsight on the test rows
of each of the first five (a grid from 2^-9 to 2^7, wider than that of the experiment, and those that
were tuned), over the same pruning. A paper's ratio between the first two is one of the draw; one
below the last is not due to the choice of temperatures. The figures stand in results/table2_cells.csv, and in
`certree.experiments.table2.EXAMINED` for the cells that are far from the paper's. Needs CERTREE_DATA;
takes about ten minutes of one core.
"""

import csv
import os
from itertools import product

import numpy as np

from benchmarks.timing import RESULTS
from certree import count, vote
from certree.arrays import Float64
from certree.experiments.protocol import (
    CONTESTANTS,
    PAPER_SETS,
    PARTITIONS,
    PRUNING,
    Sample,
    draw,
    judge,
)
from certree.experiments.table2 import PAPER_TREE, lines
from certree.files.tables import DATA_VARIABLE, load
from certree.grow.growing import GrowingRows

SETS, REPEATS = 10, 5
GRID = np.logspace(-9, 7, 11, base=2)
FIELDS = ("partition", "dataset", "method", "paper", "least", "most", "best")


def in_hindsight(sample: Sample, partition: str) -> dict[str, Float64]:
    """Test errors of each method at all temperatures."""
    tree = PARTITIONS[partition].grow(GrowingRows(sample.X, sample.y, max_depth="log"))
    stats = count(tree, sample.X, sample.y, sample.n_classes)
    leaf = tree.apply(sample.X_test)
    errors: dict[str, Float64] = {}
    for contestant in CONTESTANTS:
        if contestant.two_classes and sample.n_classes != 2:
            continue
        family = contestant.candidate.family(tree, stats)
        labels = (
            vote(tree, stats, family.at(*temperatures), contestant.candidate.voting).label[leaf]
            for temperatures in product(GRID, repeat=contestant.n_temperatures)
        )
        errors[contestant.name] = np.array([np.mean(label != sample.y_test) for label in labels])
    return errors


def examined(dataset: str, partition: str, directory: str) -> list[dict[str, str | float]]:
    """The figures of one row of Table 2."""
    table = load(dataset, directory)
    samples = [draw(dataset, table, repeat) for repeat in range(SETS * REPEATS)]
    outcomes = [judge(dataset, sample, partition, r) for r, sample in enumerate(samples)]
    sets = [lines(outcomes[i : i + REPEATS])[0] for i in range(0, len(outcomes), REPEATS)]
    errors = [in_hindsight(sample, partition) for sample in samples[:REPEATS]]
    found: list[dict[str, str | float]] = []
    for method in sets[0].ratios:
        paper = sets[0].paper(method)
        if paper is not None:
            ratios = [line.ratios[method].value for line in sets]
            tried = zip(errors, outcomes, strict=False)
            least = np.mean([min(e[method].min(), o.errors[method]) for e, o in tried])
            best = least / sets[0].errors[PRUNING].value
            figures = [paper, *(round(float(v), 3) for v in (min(ratios), max(ratios), best))]
            found.append(dict(zip(FIELDS, [partition, dataset, method, *figures], strict=True)))
    return found


def main() -> None:
    directory = os.environ.get(DATA_VARIABLE)
    if not directory:
        print(f"table2_cells: skipped, {DATA_VARIABLE} does not name the directory of the tables")
        return
    with (RESULTS / "table2_cells.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for partition in PAPER_TREE:
            for dataset in PAPER_SETS:
                for row in examined(dataset, partition, directory):
                    writer.writerow(row)
                    print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
