"""Why ratios of the paper's Table 2 differ from ours: other draws, and other inverse temperatures.

For each ratio that the paper prints: the smallest and the largest of ten sets of five repetitions
("least", "most"); the ratio at the inverse temperatures that are best on the test rows ("best"); and
the ratio if nodes without rows do not vote, as in the authors' released code ("silent").
`certree.paper.table2.EXAMINED` has the figures for distant ratios. Takes ten minutes.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
import typer

from benchmarks.results import store
from benchmarks.tables import find_directory
from certree import count, vote
from certree.files.tables import load
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import Float64
from certree.paper import protocol
from certree.paper.table2 import PAPER_TREE, summarise_outcomes

REPEATS = 5
GRID = np.logspace(-9, 7, 11, base=2)


def evaluate_again(
    sample: protocol.Sample, outcome: protocol.Outcome
) -> dict[str, tuple[float, float]]:
    """Return the test error of each method at its best temperatures, and without empty nodes."""
    grower = protocol.GROWERS[outcome.grower]
    tree = grower.grow(TrainingSamples(sample.X, sample.y, max_depth="log"))
    stats = count(tree, sample.X, sample.y, sample.n_classes)
    leaf = tree.apply(sample.X_test)
    # Only leaves are empty. A pruning that has such a leaf gives it the label of its parent.
    parent = np.where(stats.n[leaf] == 0, tree.parent[leaf], leaf)
    errors = {}

    def compute_error(scores: Float64) -> float:
        return float(np.mean(scores.argmax(axis=1) != sample.y_test))

    for method in protocol.EXPERIMENT_METHODS:
        if method.name in outcome.errors:
            family = method.candidate.family(tree, stats)

            def score(temperatures: Iterable[float]) -> Float64:
                weights = family.solve(*temperatures)  # noqa: B023, called in this iteration
                return vote(tree, stats, weights, method.candidate.voting).score  # noqa: B023

            tried = map(score, product(GRID, repeat=method.n_temperatures))
            best = min(compute_error(scores[leaf]) for scores in tried)
            votes = score(outcome.temperatures[method.name])
            voting = np.where(votes[parent].sum(axis=1) > 0, parent, leaf)
            found = min(best, outcome.errors[method.name]), compute_error(votes[voting])
            errors[method.name] = found
    return errors


def examine(dataset: str, grower: str, sets: int) -> Iterator[dict[str, Any]]:
    """Yield a line for each method that the paper has."""
    table = load(dataset, str(find_directory()))
    samples = [protocol.draw(dataset, table, repeat) for repeat in range(sets * REPEATS)]
    outcomes = [protocol.evaluate_methods(dataset, one, grower, r) for r, one in enumerate(samples)]
    lines = [
        summarise_outcomes(outcomes[i : i + REPEATS])[0] for i in range(0, len(outcomes), REPEATS)
    ]
    again = [evaluate_again(*pair) for pair in zip(samples[:REPEATS], outcomes, strict=False)]
    for method in lines[0].ratios:
        if (printed := lines[0].paper(method)) is not None:
            ratios = [line.ratios[method].value for line in lines]
            errors = (
                np.mean([one[method] for one in again], axis=0)
                / lines[0].errors[protocol.PRUNING].value
            )
            figures = dict(
                zip(
                    ("least", "most", "best", "silent"),
                    (min(ratios), max(ratios), *errors),
                    strict=True,
                )
            )
            rounded = {name: round(float(value), 3) for name, value in figures.items()}
            yield {
                "grower": grower,
                "dataset": dataset,
                "method": method,
                "paper": printed,
                **rounded,
            }


def main(sets: int = 10, only: str = "") -> None:
    """Examine all data sets; sets: of five repetitions; only: one data set."""
    names = [name for name in protocol.PAPER_SETS if only in (name, "")]
    rows = [row for grower in PAPER_TREE for name in names for row in examine(name, grower, sets)]
    store("table2_cells", rows)


if __name__ == "__main__":
    typer.run(main)
