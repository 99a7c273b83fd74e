"""Models in the leaves of a tree: error beyond the Bayes error and time, where the boundary is smooth.

The classes are divided by a sine of the other features, in 2 and 3 dimensions, without noise, so that
the Bayes error is 0 and the error on half a million even points is the excess. Decorated trees with
logistic regression of degree 2 and with naive Bayes in the leaves compete with the vote of all
prunings, with one pruning and with one support vector machine for all rows (on standardised features,
up to 10000 rows), all at their defaults. Quadratic leaves are also pruned by rule (3) of Scott and
Nowak, with its constant tuned and as printed. At a million rows only quadratic leaves and the pruning
are run. The bounded figure is the excess of the quadratic leaves over that of the pruning; beside it
stand the times of their fits. One thread, one sample each.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.timing import Row, report, seconds
from certree import (
    DecoratedTreeClassifier,
    NaiveBayesClassifier,
    PACBayesTreeClassifier,
    PrunedTreeClassifier,
)
from certree.experiments.rates import BOUNDARIES, draw_rows, even_points, quadratic_leaf

SIZES = (2_000, 10_000, 100_000, 1_000_000)
SMOOTH = BOUNDARIES[1]
OURS, PRUNED = "quadratic leaves", "one pruning"


def by_rule_3(constant: float | None) -> DecoratedTreeClassifier:
    """Quadratic leaves, pruned by Scott and Nowak's rule for them."""
    return DecoratedTreeClassifier(
        quadratic_leaf(), rule="polynomial", smoothness=3, constant=constant, random_state=0
    )


# What is run on so many rows at most.
CANDIDATES: dict[str, tuple[Callable[[], Any], int]] = {
    OURS: (lambda: DecoratedTreeClassifier(quadratic_leaf(), random_state=0), 1_000_000),
    "the same by rule (3)": (lambda: by_rule_3(None), 1_000_000),
    "the same by rule (3) as printed": (lambda: by_rule_3(1.0), 1_000_000),
    "naive Bayes leaves": (
        lambda: DecoratedTreeClassifier(NaiveBayesClassifier(), scale=False, random_state=0),
        100_000,
    ),
    "all prunings": (lambda: PACBayesTreeClassifier(random_state=0), 100_000),
    PRUNED: (lambda: PrunedTreeClassifier(random_state=0), 1_000_000),
    "SVC": (lambda: make_pipeline(StandardScaler(), SVC()), 10_000),
}
TARGET = 0.5  # of the excess of one pruning


def measured(dimension: int, n_rows: int) -> dict[str, tuple[float, float]]:
    """Seconds of a fit and excess error of every candidate."""
    X, y = draw_rows(SMOOTH, dimension, n_rows, 0, 0.0)
    points = even_points(dimension)
    truth = SMOOTH.above(points)
    figures = {}
    for name, (candidate, most_rows) in CANDIDATES.items():
        if n_rows <= most_rows:
            model = candidate()
            time = seconds(lambda: model.fit(X, y))  # noqa: B023
            figures[name] = time, float(np.mean(model.predict(points) != truth))
    return figures


def compared(dimension: int, n_rows: int) -> list[Row]:
    """Excess of each candidate, and time and excess of ours against one pruning."""
    figures = measured(dimension, n_rows)
    case = f"{dimension} features, {n_rows} rows"
    rows = [
        Row(f"{case}, {name}", time, figure=excess, unit="excess error")
        for name, (time, excess) in figures.items()
    ]
    ours, peer = figures[OURS], figures[PRUNED]
    ratio = ours[1] / peer[1]
    return [*rows, Row(case, ours[0], PRUNED, peer[0], TARGET, ratio, "of the excess")]


def main() -> None:
    """Measure all sizes in both dimensions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="rows of the largest sample")
    largest = parser.parse_args().largest
    cases = [(p, n) for p in (2, 3) for n in SIZES if n <= largest]
    report("decorated", [row for case in cases for row in compared(*case)])


if __name__ == "__main__":
    main()
