"""Models in the leaves of a tree: error beyond the Bayes error and time, where the boundary is smooth.

The classes are divided by a sine of the other features, in 2 and 3 dimensions, without noise, so that
the Bayes error is 0 and the error on half a million even points is the excess. Model trees with
logistic regression of degree 2 and with naive Bayes in the leaves compete with the vote of all
prunings, with one pruning and with one support vector machine for all rows (on standardised features,
up to 100000 rows), all at their defaults. Quadratic leaves are also pruned by rule (3) of Scott and
Nowak, with its price tuned and as printed. At a million rows only quadratic leaves and the pruning
are run. The bounded figures are the excess of the quadratic leaves over that of the pruning and of the
support vector machine, which is to be below 1; beside them stand the times of the fits. One thread, one
sample each; takes some minutes.
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
from certree.paper.rates import BOUNDARIES, draw_rows, generate_even_points, make_quadratic_leaf
from certree.prunings import Polynomial

SIZES = (2_000, 10_000, 100_000, 1_000_000)
SMOOTH = BOUNDARIES[1]
OURS, PEERS = "quadratic leaves", ("one pruning", "SVC")


def by_rule_3(alpha: float | None) -> DecoratedTreeClassifier:
    """Quadratic leaves, pruned by Scott and Nowak's rule for them."""
    return DecoratedTreeClassifier(
        make_quadratic_leaf(), rule=Polynomial(smoothness=3), alpha=alpha, random_state=0
    )


# What is run on so many rows at most.
CANDIDATES: dict[str, tuple[Callable[[], Any], int]] = {
    OURS: (lambda: DecoratedTreeClassifier(make_quadratic_leaf(), random_state=0), 1_000_000),
    "the same by rule (3)": (lambda: by_rule_3(None), 1_000_000),
    "the same by rule (3) as printed": (lambda: by_rule_3(1.0), 1_000_000),
    "naive Bayes leaves": (
        lambda: DecoratedTreeClassifier(NaiveBayesClassifier(), scale=False, random_state=0),
        100_000,
    ),
    "all prunings": (lambda: PACBayesTreeClassifier(random_state=0), 100_000),
    "one pruning": (lambda: PrunedTreeClassifier(random_state=0), 1_000_000),
    "SVC": (lambda: make_pipeline(StandardScaler(), SVC()), 100_000),
}


def measured(dimension: int, n_rows: int) -> dict[str, tuple[float, float]]:
    """Seconds of a fit and excess error of every candidate."""
    X, y = draw_rows(SMOOTH, dimension, n_rows, 0, 0.0)
    points = generate_even_points(dimension)
    truth = SMOOTH.is_above(points)
    figures = {}
    for name, (candidate, most_rows) in CANDIDATES.items():
        if n_rows <= most_rows:
            model = candidate()
            time = seconds(lambda: model.fit(X, y))  # noqa: B023
            figures[name] = time, float(np.mean(model.predict(points) != truth))
    return figures


def compared(dimension: int, n_rows: int) -> list[Row]:
    """Excess of each candidate, and time and excess of ours against the peers."""
    figures = measured(dimension, n_rows)
    case = f"{dimension} features, {n_rows} rows"
    rows = [
        Row(f"{case}, {name}", time, figure=excess, unit="excess error")
        for name, (time, excess) in figures.items()
    ]
    seconds_of_ours, excess_of_ours = figures[OURS]
    for peer in PEERS:
        if peer in figures:
            time, excess = figures[peer]
            share = excess_of_ours / excess
            rows.append(Row(case, seconds_of_ours, peer, time, 1.0, share, "of the excess"))
    return rows


def main() -> None:
    """Measure all sizes in both dimensions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="rows of the largest sample")
    largest = parser.parse_args().largest
    cases = [(p, n) for p in (2, 3) for n in SIZES if n <= largest]
    report("model_trees", [row for case in cases for row in compared(*case)])


if __name__ == "__main__":
    main()
