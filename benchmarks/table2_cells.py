"""Why cells of the paper's Table 2 are what they are: over many draws, and over all temperatures.

For every ratio that the paper prints: the least and the largest of ten sets of five repetitions, each
tuned as in the experiment, and what the temperatures give that are best in hindsight on the test rows
of each of the first five (a grid from 2^-9 to 2^7, wider than that of the experiment, and those that
were tuned), over the same pruning. A paper's ratio between the first two is one of the draw; one
below the third is not due to the choice of temperatures. A fourth figure is the ratio of the first five
with the same temperatures if cells without rows do not vote, as in the authors' released code. The
figures stand in results/table2_cells.csv, and in `certree.paper.table2.EXAMINED` for the cells
that are far from the paper's. Needs CERTREE_DATA; takes about ten minutes of one core.
"""

import os
from collections.abc import Iterable
from itertools import product

import numpy as np

from benchmarks.records import RESULTS, store
from certree import count, vote
from certree.files.tables import DATA_VARIABLE, load
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import Float64
from certree.paper.protocol import (
    EXPERIMENT_METHODS,
    GROWERS,
    PAPER_SETS,
    PRUNING,
    Outcome,
    Sample,
    draw,
    evaluate_methods,
)
from certree.paper.table2 import PAPER_TREE, summarise_outcomes

SETS, REPEATS = 10, 5
GRID = np.logspace(-9, 7, 11, base=2)
FIELDS = ("grower", "dataset", "method", "paper", "least", "most", "best", "silent")


def judged_again(sample: Sample, outcome: Outcome) -> dict[str, tuple[float, float]]:
    """Test error of each method at its best temperatures, and if empty cells are silent."""
    tree = GROWERS[outcome.grower].grow(TrainingSamples(sample.X, sample.y, max_depth="log"))
    stats = count(tree, sample.X, sample.y, sample.n_classes)
    leaf = tree.apply(sample.X_test)
    # Only leaves are empty. A single pruning that has such a leaf takes its label, that of the parent.
    above = np.where(stats.n[leaf] == 0, tree.parent[leaf], leaf)
    errors = {}
    for method in EXPERIMENT_METHODS:
        if method.name not in outcome.errors:
            continue
        family, tuned = method.candidate.family(tree, stats), outcome.errors[method.name]

        def score(temperatures: Iterable[float]) -> Float64:
            weights = family.solve(*temperatures)  # noqa: B023, called in this turn alone
            return vote(tree, stats, weights, method.candidate.voting).score  # noqa: B023

        scores = map(score, product(GRID, repeat=method.n_temperatures))
        best = min(wrong(each[leaf], sample) for each in scores)
        votes = score(outcome.temperatures[method.name])
        heard = np.where(votes[above].sum(axis=1) > 0, above, leaf)
        errors[method.name] = (min(best, tuned), wrong(votes[heard], sample))
    return errors


def wrong(scores: Float64, sample: Sample) -> float:
    """Share of the test rows whose label is not the one with most votes."""
    return float(np.mean(scores.argmax(axis=1) != sample.y_test))


def examined(dataset: str, grower: str, directory: str) -> list[dict[str, str | float]]:
    """The figures of one row of Table 2."""
    table = load(dataset, directory)
    samples = [draw(dataset, table, repeat) for repeat in range(SETS * REPEATS)]
    outcomes = [evaluate_methods(dataset, sample, grower, r) for r, sample in enumerate(samples)]
    sets = [
        summarise_outcomes(outcomes[i : i + REPEATS])[0] for i in range(0, len(outcomes), REPEATS)
    ]
    again = [judged_again(samples[r], outcomes[r]) for r in range(REPEATS)]
    found: list[dict[str, str | float]] = []
    for method in sets[0].ratios:
        paper = sets[0].paper(method)
        if paper is not None:
            ratios = [line.ratios[method].value for line in sets]
            best, silent = np.mean([errors[method] for errors in again], axis=0)
            pruning = sets[0].errors[PRUNING].value
            figures = (min(ratios), max(ratios), best / pruning, silent / pruning)
            rounded = [round(float(figure), 3) for figure in figures]
            row = [grower, dataset, method, paper, *rounded]
            found.append(dict(zip(FIELDS, row, strict=True)))
    return found


def main() -> None:
    directory = os.environ.get(DATA_VARIABLE)
    if not directory:
        print(f"table2_cells: skipped, {DATA_VARIABLE} does not name the directory of the tables")
        return
    rows = []
    for grower in PAPER_TREE:
        for dataset in PAPER_SETS:
            for row in examined(dataset, grower, directory):
                rows.append(row)
                print(*row.values(), flush=True)
    store(RESULTS / "table2_cells.csv", rows)


if __name__ == "__main__":
    main()
