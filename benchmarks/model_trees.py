"""Models in the leaves of a tree on smooth class boundaries without noise: excess error and seconds.

Classes are divided by a sine in 2 and 3 dimensions, so the error on half a million even points is the
excess error. Quadratic leaves (also pruned by Scott and Nowak's rule (3) with alpha tuned, and with 1)
and naive Bayes leaves against the vote of all prunings, one pruning, and a support vector machine; all
at their defaults, one thread. Targets: an excess below that of the pruning and of the machine.
"""

from typing import Any

import numpy as np
import typer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import certree
from benchmarks.results import Row, report
from benchmarks.timing import measure_seconds
from certree.paper.rates import BOUNDARIES, draw_rows, generate_even_points, make_quadratic_leaf
from certree.prunings import Polynomial

SIZES, SMOOTH, OURS = (2_000, 10_000, 100_000, 1_000_000), BOUNDARIES[1], "quadratic leaves"


def make_models() -> dict[str, tuple[Any, int]]:
    """Return each model with the largest number of rows that it is fitted to."""

    def decorate(leaf: Any, **parameters: Any) -> Any:
        return certree.DecoratedTreeClassifier(leaf, random_state=0, **parameters)

    leaf, rule = make_quadratic_leaf(), Polynomial(smoothness=3)
    bayes = decorate(certree.NaiveBayesClassifier(), scale=False)
    return {
        OURS: (decorate(leaf), 1_000_000),
        "the same by rule (3)": (decorate(leaf, rule=rule), 1_000_000),
        "the same by rule (3) as printed": (decorate(leaf, rule=rule, alpha=1.0), 1_000_000),
        "naive Bayes leaves": (bayes, 100_000),
        "all prunings": (certree.PACBayesTreeClassifier(random_state=0), 100_000),
        "one pruning": (certree.PrunedTreeClassifier(random_state=0), 1_000_000),
        "SVC": (make_pipeline(StandardScaler(), SVC()), 100_000),
    }


def main(largest: int = SIZES[-1]) -> None:
    """Measure all sizes in both dimensions; largest: the largest number of rows."""
    rows = []
    for p in (2, 3):
        points = generate_even_points(p)
        truth = SMOOTH.is_above(points)
        for n in (n for n in SIZES if n <= largest):
            X, y = draw_rows(SMOOTH, p, n, 0, 0.0)
            case, found = f"{p} features, {n} rows", {}
            for name, (model, most) in make_models().items():
                if n <= most:
                    seconds = measure_seconds(lambda: model.fit(X, y))  # noqa: B023
                    found[name] = seconds, float(np.mean(model.predict(points) != truth))
                    rows.append(
                        Row(
                            f"{case}, {name}",
                            *found[name][:1],
                            figure=found[name][1],
                            unit="excess error",
                        )
                    )
            for peer in ("one pruning", "SVC"):
                if peer in found:
                    ratio = found[OURS][1] / found[peer][1]
                    seconds = found[OURS][0], peer, found[peer][0]
                    rows.append(Row(case, *seconds, 1.0, ratio, "of the excess"))
    report("model_trees", rows)


if __name__ == "__main__":
    typer.run(main)
