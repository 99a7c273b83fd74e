"""Effect of rows on the thresholds of dyadic trees on Table 2, for the tree that stores all nodes.

The authors' released pruning sends a row on a threshold to the right during growth and to the left
during prediction; votes, and all methods here, send it to the left. Means over five repetitions: the
error of the pruning here ("here"), with rows on thresholds to the right ("right"), as released
("released"), and the ratios of PAC-Bayes to the last.
"""

import numpy as np
import typer

from benchmarks.results import store
from benchmarks.tables import find_directory
from certree import count, vote
from certree.estimators.tune import GrownFold, Objective, tune
from certree.files.tables import load
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import Float64
from certree.paper import protocol
from certree.rows.folds import content_folds
from certree.stats.nodes import count_by_leaf

SEARCHES = ("PAC-Bayes joint", "PAC-Bayes error-first")
# In units of a feature's range: less than the distance of any two values of these tables.
STEP = 1e-9


def prune(sample: protocol.Sample, repeat: int, step: Float64) -> float:
    """Return the test error of the pruning of mirrored rows, which predict a step further left."""
    # Nodes include their upper thresholds; for mirrored rows these are the lower ones.
    X, X_test, y, K = -sample.X, -sample.X_test, sample.y, sample.n_classes
    grower, candidate = (
        protocol.GROWERS[protocol.EXPANDED],
        protocol.EXPERIMENT_METHODS[0].candidate,
    )
    rows, folds = TrainingSamples(X, y, max_depth="log"), []
    for fold in content_folds(sample.X, y, 2, np.random.RandomState(repeat)):
        tree = grower.grow(rows.select(fold.train))
        leaf = tree.apply(X)
        leaf = np.where(np.isin(np.arange(len(y)), fold.validation), tree.apply(X + step), leaf)
        sets = [
            count_by_leaf(tree, leaf[one], y[one], None, K) for one in (fold.train, fold.validation)
        ]
        folds.append(GrownFold(tree, sets[0], sets[1].table))
    alpha = tune(Objective.for_candidate(folds, candidate, "error"), [None], "joint")
    tree = grower.grow(rows)
    stats = count(tree, X, y, K)
    ballot = vote(tree, stats, candidate.family(tree, stats).solve(*alpha), candidate.voting)
    return float(np.mean(ballot.label[tree.apply(X_test + step)] != sample.y_test))


def main(repeats: int = 5, only: str = "") -> None:
    """Measure all data sets; only: one data set."""
    lines = []
    for dataset in (name for name in protocol.PAPER_SETS if only in (name, "")):
        table, found = load(dataset, str(find_directory())), []
        for repeat in range(repeats):
            sample = protocol.draw(dataset, table, repeat)
            ours = protocol.evaluate_methods(dataset, sample, protocol.EXPANDED, repeat).errors
            step = STEP * np.ptp(sample.X, axis=0)
            errors = [prune(sample, repeat, 0 * step), prune(sample, repeat, step)]
            found.append([ours[protocol.PRUNING], *errors, *(ours[name] for name in SEARCHES)])
        means = np.mean(found, axis=0)
        means[3:] /= means[2]
        texts = [f"{value:.3f}" for value in means]
        names = ("here", "right", "released", *SEARCHES)
        lines.append({"dataset": dataset, **dict(zip(names, texts, strict=True))})
        print(*lines[-1].values(), flush=True)
    store("table2_borders", lines)


if __name__ == "__main__":
    typer.run(main)
