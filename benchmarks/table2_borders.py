"""What rows on the borders of dyadic cells do to Table 2, on the tree that stores every cell.

The authors' released pruning sends a row on a border to the right when the tree grows, and to the left
when it predicts; their vote, as ours, to the left both times. Five repetitions: the error of the
pruning as it is here, with borders on the right both times, and as released, and the ratios of
PAC-Bayes over the last. Needs CERTREE_DATA; takes about a minute of one core.
"""

import os
from functools import partial

import numpy as np

from benchmarks.records import RESULTS, store
from certree import count, vote
from certree.estimators.tune import GrownFold, Objective, tune
from certree.files.tables import DATA_VARIABLE, load
from certree.grow.training_samples import TrainingSamples
from certree.interface.arrays import Float64
from certree.paper.protocol import (
    EXPANDED,
    EXPERIMENT_METHODS,
    GROWERS,
    PAPER_SETS,
    PRUNING,
    Sample,
    draw,
    evaluate_methods,
)
from certree.rows.folds import content_folds
from certree.stats.nodes import count_by_leaf

REPEATS = 5
SEARCHES = ("PAC-Bayes joint", "PAC-Bayes error-first")
# Of the range of a feature: less than any two values of these tables differ by.
NUDGE = 1e-9


def pruned(sample: Sample, repeat: int, nudge: Float64) -> float:
    """Test error of the pruning of mirrored rows, which are judged a nudge further left."""
    # Cells hold their upper borders; those of mirrored rows hold the lower ones.
    X, X_test = -sample.X, -sample.X_test
    cells, candidate = GROWERS[EXPANDED], EXPERIMENT_METHODS[0].candidate
    rows = TrainingSamples(X, sample.y, max_depth="log")
    summarise = partial(count_by_leaf, n_classes=sample.n_classes)
    folds = []
    for fold in content_folds(sample.X, sample.y, 2, np.random.RandomState(repeat)):
        tree = cells.grow(rows.part(fold.train, fold.grow_weight))
        leaf = tree.apply(X).copy()
        leaf[fold.validation] = tree.apply(X[fold.validation] + nudge)
        folds.append(GrownFold.from_rows(fold, tree, summarise, leaf, sample.y))
    alpha = tune(Objective.for_candidate(folds, candidate, "error"), [None], "joint")
    tree = cells.grow(rows)
    stats = count(tree, X, sample.y, sample.n_classes)
    outcome = vote(tree, stats, candidate.family(tree, stats).solve(*alpha), candidate.voting)
    return float(np.mean(outcome.label[tree.apply(X_test + nudge)] != sample.y_test))


def main() -> None:
    directory = os.environ.get(DATA_VARIABLE)
    if not directory:
        print(f"table2_borders: skipped, {DATA_VARIABLE} does not name the directory of the tables")
        return
    lines = []
    for dataset in PAPER_SETS:
        table, errors = load(dataset, directory), []
        for repeat in range(REPEATS):
            sample = draw(dataset, table, repeat)
            ours = evaluate_methods(dataset, sample, EXPANDED, repeat).errors
            nudge = NUDGE * np.ptp(sample.X, axis=0)
            right, released = (pruned(sample, repeat, step) for step in (0 * nudge, nudge))
            errors.append([ours[PRUNING], right, released, *(ours[name] for name in SEARCHES)])
        mean = np.mean(errors, axis=0)
        mean[3:] /= mean[2]
        figures = zip(("here", "right", "released", *SEARCHES), mean, strict=True)
        lines.append({"dataset": dataset, **{name: f"{value:.3f}" for name, value in figures}})
        print(*lines[-1].values(), flush=True)
    store(RESULTS / "table2_borders.csv", lines)


if __name__ == "__main__":
    main()
